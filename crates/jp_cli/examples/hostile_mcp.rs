//! The MCP server of `testing::hostile_mcp`, as a program: cargo builds a package's examples with its tests, and a
//! binary of another package it does not.

fn main() {
    testing::hostile_mcp::main();
}
