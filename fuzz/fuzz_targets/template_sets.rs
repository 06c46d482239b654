//! Templates and a URI that may be of some of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_checks::template_sets(text));
