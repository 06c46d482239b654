use std::fmt;

use jp_resource::uri::split_mcp;

/// A resource of an MCP server, written `mcp+SERVER+URI`.
///
/// The server's name has no `+`. The URI is the server's own, byte for byte: it may be of any
/// scheme, hold further `+` and be a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpUri {
    /// The name of the server, as the configuration has it.
    pub server: String,
    /// The URI that the server knows the resource by.
    pub uri: String,
}

impl McpUri {
    /// Parses `mcp+SERVER+URI`. The error is the reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (server, uri) = split_mcp(text).unwrap_or_default();
        if server.is_empty() {
            return Err("`mcp+SERVER+URI` needs the name of a server".to_owned());
        }
        if uri.is_empty() {
            return Err(format!(
                "`mcp+SERVER+URI` needs a URI to read from the server {server:?}"
            ));
        }
        if !has_scheme(uri) {
            return Err(format!(
                "{uri:?} is not a URI: it has no scheme, such as `file:`"
            ));
        }
        Ok(Self {
            server: server.to_owned(),
            uri: uri.to_owned(),
        })
    }
}

/// Returns whether a URI starts with a scheme (RFC 3986 §3.1), and something follows it.
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !rest.is_empty()
    })
}

impl fmt::Display for McpUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mcp+{}+{}", self.server, self.uri)
    }
}
