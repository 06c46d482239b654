//! Templates and a URI that may be of some of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| jp_fuzz::template_sets(text));
