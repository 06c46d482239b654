use std::{io, time::Duration};

/// Why a page could not be had. Each message finishes "failed to …"; `at` is where the redirects led.
///
/// No message holds credentials.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// There is nothing to run requests on.
    #[error("start an HTTP client")]
    Runtime(#[source] io::Error),
    /// A client can't be made, as where no root certificate can be read.
    #[error("make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// There is no connection, or what it gives is not HTTP.
    #[error("get {at}")]
    Request {
        /// The URL.
        at: String,
        /// Why it failed.
        source: reqwest::Error,
    },
    /// The server can't show that it is the one, or does not speak TLS.
    #[error("make a secure connection (TLS) to {at}")]
    Tls {
        /// The URL.
        at: String,
        /// Why it failed.
        source: rustls::Error,
    },
    /// An address that only a person may reach for.
    #[error(
        "get {at}: its host is this machine or in a private network, which only a URL that is typed itself may name"
    )]
    PrivateAddress {
        /// The URL.
        at: String,
    },
    /// The server says that it does not give the page.
    #[error("get {at}: the server answered {status}")]
    Status {
        /// The URL.
        at: String,
        /// Status and reason.
        status: String,
    },
    /// A redirect leads where another came from.
    #[error("get {at}: its redirects lead in a circle")]
    RedirectLoop {
        /// The URL that is met twice.
        at: String,
    },
    /// There are too many redirects.
    #[error("get {at}: it is still a redirect after {limit}")]
    TooManyRedirects {
        /// The URL of the last.
        at: String,
        /// The most that are followed.
        limit: usize,
    },
    /// A redirect leads nowhere.
    #[error("get {at}: it redirects to what is no URL of a page: {reason}")]
    RedirectTarget {
        /// The URL that redirects.
        at: String,
        /// What is wrong with the target.
        reason: String,
    },
    /// A redirect leads from an encrypted page to one that is not.
    #[error(
        "get {to}: {at} redirects to it without encryption; attach that URL to get it nonetheless"
    )]
    Downgrade {
        /// The URL that redirects.
        at: String,
        /// Its target.
        to: String,
    },
    /// The server takes too long.
    #[error("get {at}: it is not there after {} s", after.as_secs_f32())]
    Timeout {
        /// The URL.
        at: String,
        /// How long it may take.
        after: Duration,
    },
    /// The content ends too early.
    #[error("read the content of {at} to its end")]
    Body {
        /// The URL.
        at: String,
        /// Why it failed.
        source: reqwest::Error,
    },
    /// The content is not compressed as the server says.
    #[error("decompress the content of {at}")]
    Decompress {
        /// The URL.
        at: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The content is compressed in a way that was not asked for.
    #[error("read the content of {at}: it is encoded as {encoding:?}, which was not asked for")]
    Encoding {
        /// The URL.
        at: String,
        /// The encoding.
        encoding: String,
    },
    /// There is more than allowed.
    #[error("read the content of {at}: it is longer than {limit} bytes")]
    TooLong {
        /// The URL.
        at: String,
        /// The most it may have.
        limit: u64,
    },
}
