use std::time::Duration;

use jp_resource::Resource;

use super::McpError;

/// Reads resources of MCP servers. The owner of the connections implements it.
///
/// Called from several threads. The implementation limits the time of a request.
pub trait ReadMcp: Sync {
    /// Returns the contents of the resource `uri` of the server (MCP 2026-07-28, `resources/read`).
    ///
    /// Name, title and MIME type are those of the server, if it has any; URIs are kept byte for
    /// byte. Stops waiting once `is_cancelled` returns true.
    fn read(
        &self,
        server: &str,
        uri: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<McpContents, McpError>;
}

/// The contents of a resource of an MCP server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpContents {
    /// The contents, in the server's order.
    pub contents: Vec<Resource>,
    /// The time for which they are current, if the server says so (`ttlMs`).
    pub ttl: Option<Duration>,
    /// The parts that were left out, with the reasons.
    pub warnings: Vec<String>,
}
