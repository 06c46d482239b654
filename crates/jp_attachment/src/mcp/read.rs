use std::time::Duration;

use jp_resource::Resource;

use super::McpError;

/// Reads resources of MCP servers; whoever has the connections implements it.
///
/// Called from several threads. How long a request may take is the implementation's to limit.
pub trait ReadMcp: Sync {
    /// Returns what the resource `uri` of the server holds (MCP 2026-07-28, `resources/read`), with name, title and
    /// MIME type as far as the server tells them, and URIs byte for byte. Waits no longer once `is_cancelled`.
    fn read(
        &self,
        server: &str,
        uri: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<McpContents, McpError>;
}

/// What a resource of an MCP server holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpContents {
    /// Its contents, in the server's order.
    pub contents: Vec<Resource>,
    /// How long the server takes them for current, where it says so (`ttlMs`).
    pub ttl: Option<Duration>,
    /// What of it was passed over, and why.
    pub warnings: Vec<String>,
}
