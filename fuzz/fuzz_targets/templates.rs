//! A template and a URI that may be of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_checks::templates(text));
