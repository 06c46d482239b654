//! The cryptography of TLS connections.

/// Chooses the implementation for this process.
pub(crate) fn install() {
    // Fails if one is chosen already, which serves as well.
    _ = rustls::crypto::ring::default_provider().install_default();
}
