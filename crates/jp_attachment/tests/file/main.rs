//! The file handler on real directories.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod named;
mod secrets;
mod support;
mod walks;
