use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use url::Url;

/// The configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its name in the configuration.
    pub name: String,
    /// The way to reach it.
    pub transport: Transport,
    /// The revision of MCP to speak; `None` negotiates it.
    pub revision: Option<Revision>,
    /// The time limit from the start of the program or connection to the end of the handshake.
    pub startup_timeout: Duration,
    /// The time limit for a request without a sign of life. The total limit is ten times as long.
    pub timeout: Duration,
}

/// A revision of MCP that jp can ask for. For one that begins with `initialize`, the server may
/// answer with an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28, which is stateless.
    V2026_07_28,
}

impl Revision {
    /// All revisions, the oldest first.
    pub const ALL: [Self; 4] = [
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The revisions that a server may answer with. jp never requests the oldest one.
    pub(crate) const SUPPORTED: [&str; 5] = [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ];

    /// Returns its name in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }
}

/// The way to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that jp starts, and that speaks on its stdin and stdout.
    Stdio(Program),
    /// An endpoint of Streamable HTTP.
    Http(Endpoint),
}

/// A program that is a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that it gets in addition to those of jp.
    pub environment: BTreeMap<String, String>,
    /// Variables of jp that it doesn't get, because they hold keys.
    pub withheld: Vec<String>,
    /// The directory that it runs in.
    pub directory: PathBuf,
}

/// An endpoint of Streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The endpoint, whole.
    pub url: Url,
    /// Headers of each request. They may hold keys.
    pub headers: BTreeMap<String, String>,
    /// The bearer token.
    pub token: Option<String>,
}

/// Leaves out fields that may contain keys.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: Vec<_> = self.environment.keys().collect();
        f.debug_struct("Program")
            .field("program", &self.program)
            .field("environment", &variables)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Leaves out fields that may contain keys.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Endpoint")
            .field("host", &self.url.host_str())
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// Returns true if a URL leads to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Returns true if requests to a URL are encrypted or stay on this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_loopback(url)
}

/// The client, as servers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its version.
    pub version: String,
    /// The workspace root, the only one in the answer to `roots/list`.
    pub root: PathBuf,
    /// True to ask servers to log from the level `info` on; otherwise they log what they like.
    pub wants_logs: bool,
}

/// Bounds on what a server sends. A server is not trusted: it may be broken or hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Length of one message in bytes.
    pub message: usize,
    /// Number of values in one message.
    pub values: usize,
    /// Number of blocks in one result.
    pub blocks: usize,
    /// Length of the text of one block or resource in bytes.
    pub text: usize,
    /// Length of the bytes of one block or resource, decoded.
    pub blob: usize,
    /// Number of pages of one list.
    pub pages: usize,
    /// Number of tools.
    pub tools: usize,
    /// Number of resources, and of templates.
    pub resources: usize,
    /// Number of times that a server may ask something before it answers one request.
    pub rounds: usize,
    /// Number of links that are followed for one result.
    pub links: usize,
    /// Number of lines on stdout that are no messages.
    pub rubbish: usize,
}

impl Limits {
    /// The bounds for every server.
    ///
    /// They keep a broken server from filling the memory or holding a turn for ever.
    pub const USUAL: Self = Self {
        // A blob of the greatest length is 13.3 MB in base64; a result may have several.
        message: 64_000_000,
        // A value takes far more memory than the two bytes that it can be written with.
        values: 2_000_000,
        blocks: 1_000,
        text: 10_000_000,
        blob: 10_000_000,
        // Servers page by 50 or more: 200 pages reach the bound on resources.
        pages: 200,
        tools: 1_000,
        resources: 10_000,
        // More questions than a person would answer for one call.
        rounds: 20,
        links: 20,
        rubbish: 1_000,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_shown_without_keys() {
        let url = Url::parse("https://example.com/mcp").expect("it is a URL");
        let headers = BTreeMap::from([("X-Key".to_owned(), "hush".to_owned())]);
        let endpoint = Endpoint {
            url,
            headers,
            token: Some("hush".to_owned()),
        };
        let shown = r#"Endpoint { host: Some("example.com"), headers: ["X-Key"], .. }"#;
        assert_eq!(format!("{endpoint:?}"), shown);
    }
}
