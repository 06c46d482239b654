use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use url::Url;

/// A server, as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// What the configuration calls it.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// The revision of MCP to speak; found out where nothing is said.
    pub revision: Option<Revision>,
    /// How long it may take until it has said who it is.
    pub startup_timeout: Duration,
    /// How long one request may go without a sign of life; ten times that is the most it may take.
    pub timeout: Duration,
}

/// A revision of MCP that can be asked for. A server that is asked by one that begins with `initialize` may answer with
/// an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28, whose requests stand for themselves.
    V2026_07_28,
}

impl Revision {
    /// Every one, the oldest first.
    pub const ALL: [Self; 4] = [
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// Revisions that a server may answer with. jp never requests the oldest one.
    pub(crate) const SPOKEN: [&str; 5] = [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ];

    /// Returns what the protocol calls it.
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

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started, and spoken to on its stdin and stdout.
    Stdio(Program),
    /// An endpoint of Streamable HTTP.
    Http(Endpoint),
}

/// What is started.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that it gets beside those of jp.
    pub environment: BTreeMap<String, String>,
    /// Variables that it doesn't get: they hold keys.
    pub withheld: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
}

/// Where requests are sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The endpoint, whole.
    pub url: Url,
    /// Headers of each request. They may hold keys.
    pub headers: BTreeMap<String, String>,
    /// What proves who asks, sent as a bearer token.
    pub token: Option<String>,
}

/// What may be a key is left out.
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

/// What may be a key is left out.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Endpoint")
            .field("host", &self.url.host_str())
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// Returns whether a URL leads to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Who speaks to servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its version, as servers are told.
    pub version: String,
    /// The workspace root: the one root that servers are told of.
    pub root: PathBuf,
    /// Whether servers are asked to log, from the level `info` on; else they log what they like.
    pub wants_logs: bool,
}

/// How much is taken of what a server sends.
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
    /// How often one request may be asked back for more.
    pub rounds: usize,
    /// Number of links that are followed for one result.
    pub links: usize,
    /// Number of lines on stdout that are no messages.
    pub rubbish: usize,
}

impl Limits {
    /// What is taken of every server.
    pub const USUAL: Self = Self {
        message: 64_000_000,
        values: 2_000_000,
        blocks: 1_000,
        text: 10_000_000,
        blob: 10_000_000,
        pages: 200,
        tools: 1_000,
        resources: 10_000,
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
