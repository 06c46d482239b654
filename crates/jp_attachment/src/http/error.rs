use std::{io, time::Duration};

/// An error of fetching a page. Each message finishes "failed to …". `at` is the URL that the
/// redirects led to.
///
/// No message contains credentials.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The asynchronous runtime can't start.
    #[error("start an HTTP client")]
    Runtime(#[source] io::Error),
    /// A client can't be created, for example because no root certificate can be read.
    #[error("create an HTTP client")]
    Client(#[source] reqwest::Error),
    /// The connection failed, or the answer is not HTTP.
    #[error("get {at}")]
    Request {
        /// The URL.
        at: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The server's certificate is not valid, or it does not speak TLS.
    #[error("make a secure connection (TLS) to {at}")]
    Tls {
        /// The URL.
        at: String,
        /// The cause.
        source: rustls::Error,
    },
    /// Only the user may reach this address.
    #[error(
        "get {at}: its host is this machine or in a private network, which only a URL that the user typed may reach"
    )]
    PrivateAddress {
        /// The URL.
        at: String,
    },
    /// The server answered with an error status.
    #[error("get {at}: the server answered {status}")]
    Status {
        /// The URL.
        at: String,
        /// The status code and its reason phrase.
        status: String,
    },
    /// A redirect leads to a URL that redirected before.
    #[error("get {at}: its redirects form a loop")]
    RedirectLoop {
        /// The URL that was reached twice.
        at: String,
    },
    /// There are too many redirects.
    #[error("get {at}: it redirects more than {limit} times")]
    TooManyRedirects {
        /// The URL of the last one.
        at: String,
        /// The limit.
        limit: usize,
    },
    /// The target of a redirect is not a valid URL.
    #[error("get {at}: it redirects to an invalid URL: {reason}")]
    RedirectTarget {
        /// The URL that redirects.
        at: String,
        /// The reason.
        reason: String,
    },
    /// A redirect leads from `https:` to `http:`.
    #[error(
        "get {to}: {at} redirects to it without encryption; attach that URL itself to allow this"
    )]
    Downgrade {
        /// The URL that redirects.
        at: String,
        /// Its target.
        to: String,
    },
    /// The page did not arrive in time.
    #[error("get {at}: it did not arrive within {} s", after.as_secs_f32())]
    Timeout {
        /// The URL.
        at: String,
        /// The time limit.
        after: Duration,
    },
    /// The content ends too early.
    #[error("read the content of {at} to its end")]
    Body {
        /// The URL.
        at: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// The content can't be decompressed.
    #[error("decompress the content of {at}")]
    Decompress {
        /// The URL.
        at: String,
        /// The cause.
        source: io::Error,
    },
    /// The server chose an encoding that jp did not offer.
    #[error("read the content of {at}: it is encoded as {encoding:?}, which jp did not request")]
    Encoding {
        /// The URL.
        at: String,
        /// The encoding.
        encoding: String,
    },
    /// The content is longer than allowed.
    #[error("read the content of {at}: it is longer than {limit} bytes")]
    TooLong {
        /// The URL.
        at: String,
        /// The limit in bytes.
        limit: u64,
    },
}
