//! Resources and RFC 6570 templates for MCP servers.
