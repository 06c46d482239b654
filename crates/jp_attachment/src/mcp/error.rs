use std::error::Error;

/// An error of reading a resource of an MCP server.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The command has no connections to servers.
    #[error("no MCP servers are configured for this command")]
    NoClient,
    /// The configuration has no such server.
    #[error("it is not configured")]
    Unknown {
        /// The configured servers.
        known: Vec<String>,
    },
    /// The server has no such resource.
    #[error("there is no such resource: {0}")]
    NotFound(String),
    /// The server answered with no content.
    #[error("the server returned no content")]
    Empty,
    /// The server can't be reached, or refused.
    #[error(transparent)]
    Read(Box<dyn Error + Send + Sync>),
}
