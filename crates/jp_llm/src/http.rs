//! HTTP as it is needed here: no redirects, no proxy to this machine, bounded reading.

use std::{error::Error as StdError, io, time::Duration};

use reqwest::{Response, redirect};
use serde_json::Value;

use crate::{BaseUrl, error::excerpt};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a connection may wait for the next request: servers close what waits, some after five seconds, and a turn
/// waits for tools and for the person.
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

/// Finds the error object in the body of an error response; a body that is no JSON is a string of its own.
pub(crate) fn error_in(body: &str) -> Value {
    let Ok(json) = serde_json::from_str::<Value>(body) else {
        return body.into();
    };
    let response = json.get(0).unwrap_or(&json);
    unpack(response.get("error").unwrap_or(response))
}

/// Unpacks an error: a server that asks another one hands on what that said, as a string.
pub(crate) fn unpack(error: &Value) -> Value {
    match error.as_str().map(serde_json::from_str::<Value>) {
        Some(Ok(inner)) if inner.is_object() => unpack(inner.get("error").unwrap_or(&inner)),
        _ => error.clone(),
    }
}

/// Finds the message in the error that a body holds.
pub(crate) fn error_message(error: &Value, body: &str) -> String {
    excerpt(message_in(error).unwrap_or(body))
}

/// Finds the message in an error object, or takes a string as it.
pub(crate) fn message_in(error: &Value) -> Option<&str> {
    let fields = ["message", "detail"]
        .into_iter()
        .filter_map(|field| error.get(field)?.as_str());
    error
        .as_str()
        .into_iter()
        .chain(fields)
        .find(|message| !message.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_message_is_found_where_servers_put_it() {
        for (body, message) in [
            (
                r#"{"error":{"code":400,"message":"too long\n","type":"x"}}"#,
                "too long",
            ),
            (r#"{"error":"model 'x' not found"}"#, "model 'x' not found"),
            (
                r#"{"error":"{\"error\":{\"message\":\"too long\"}}"}"#,
                "too long",
            ),
            (r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
            (r#"{"message":"no"}"#, "no"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (r#"{"error":{"code":1}}"#, r#"{"error":{"code":1}}"#),
            ("<html>\n<b>Bad Gateway</b>", "<html> <b>Bad Gateway</b>"),
            ("", ""),
        ] {
            assert_eq!(error_message(&error_in(body), body), message);
        }
    }
}
