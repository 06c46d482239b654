//! Text as a URI, a path and a file name.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_checks::uris(text));
