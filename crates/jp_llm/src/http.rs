//! HTTP as it is needed here: no redirects, no proxy to this machine, bounded reading.

use std::{error::Error as StdError, io, time::Duration};

use reqwest::{Response, redirect};

use crate::BaseUrl;

/// Longest time for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Longest time that a connection waits for the next request. Servers close idle connections, some after five seconds, and
/// a turn waits for tools and for the person.
const POOL_TIMEOUT: Duration = Duration::from_secs(4);

/// Makes a client for one server.
///
/// Without encryption no root certificates are read: that would be most of the cost.
pub(crate) fn client(base_url: &BaseUrl) -> reqwest::Result<reqwest::Client> {
    // Fails only where a provider is installed already, which serves as well.
    _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_TIMEOUT);
    if base_url.is_loopback() {
        // A new connection costs nothing here, one that was closed meanwhile does.
        builder = builder.no_proxy().pool_max_idle_per_host(0);
    }
    if !base_url.is_encrypted() {
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// Returns whether the other side refused the connection.
pub(crate) fn is_refused(error: &reqwest::Error) -> bool {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

/// Reads a response up to `limit` bytes, as far as it can be read.
pub(crate) async fn read_text(response: &mut Response, limit: usize) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < limit
        && let Ok(Some(chunk)) = response.chunk().await
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(limit);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Escapes all but unreserved characters (RFC 3986 §2.3).
pub(crate) fn percent_encode(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    });
    escaped.collect()
}
