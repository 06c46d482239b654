use std::error::Error;

/// Why a resource of an MCP server could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// Nothing here can reach servers.
    #[error("no MCP servers are configured for this command")]
    NoClient,
    /// The configuration has no such server.
    #[error("it is not configured")]
    Unknown {
        /// The servers that it has.
        known: Vec<String>,
    },
    /// The server has no such resource.
    #[error("there is no such resource: {0}")]
    NotFound(String),
    /// The server answered with no content.
    #[error("the server gave nothing for it")]
    Empty,
    /// The server can't be reached, or refused.
    #[error(transparent)]
    Read(Box<dyn Error + Send + Sync>),
}
