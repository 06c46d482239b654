//! Recognition of secrets: files by their names, private keys, and patterns in text.
//!
//! The first two decide which files a directory or glob leaves out, because the user may not have
//! looked through them. They do not apply to explicitly named files. The scan for patterns is
//! optional.

mod names;
mod patterns;
mod private_key;
mod scan;

pub(crate) use self::scan::scan;
pub use self::{names::has_secret_name, private_key::is_private_key, scan::Finding};

/// Finds the first text that looks like a secret.
#[must_use]
pub fn find_secret(text: &str) -> Option<Finding> {
    scan(text).into_iter().next()
}
