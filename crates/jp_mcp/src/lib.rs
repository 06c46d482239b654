//! Talks to MCP servers as a client.
