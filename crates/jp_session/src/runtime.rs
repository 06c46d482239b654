//! The runtime for what waits on a network.

use crate::error::SessionError;

/// Starts a runtime for what waits on a network: one thread.
///
/// # Errors
///
/// If the system has no thread or file for it.
pub fn runtime() -> Result<tokio::runtime::Runtime, SessionError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| SessionError::from_system("start the network runtime", error))
}
