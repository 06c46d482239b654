//! What looks like a secret: a file by its name, a file by the private key in it, a text by what it holds.
//!
//! The first two decide what a directory or glob gives, which a person may not have looked through. What
//! is named outright is attached, and the scan for patterns is asked for.

mod names;
mod patterns;
mod private_key;
mod scan;

pub(crate) use self::scan::scan;
pub use self::{names::has_secret_name, private_key::is_private_key, scan::Finding};

/// Finds what looks like a secret in a text: the first of all, with where it begins.
#[must_use]
pub fn find_secret(text: &str) -> Option<Finding> {
    scan(text).into_iter().next()
}
