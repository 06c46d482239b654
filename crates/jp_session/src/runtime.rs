//! The runtime for network requests.

use crate::error::SessionError;

/// Starts a runtime for network requests, which has one thread.
///
/// # Errors
///
/// If the system has no file descriptor for it.
pub fn runtime() -> Result<tokio::runtime::Runtime, SessionError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| SessionError::from_system("start the network runtime", error))
}
