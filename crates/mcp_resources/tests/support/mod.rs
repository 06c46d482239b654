//! Servers of the library in this process, and where its examples are.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use mcp_resources::Server;
use mcp_resources::rmcp::{ServerHandler, ServiceExt};
use testing::mcp::{Client, Era};

/// Serves it in this process, and returns a client.
pub async fn serve<H: ServerHandler>(server: Server<H>, era: Era) -> Client {
    share(&Arc::new(server), era).await
}

/// Serves it in this process to one more client.
pub async fn share<H: ServerHandler>(server: &Arc<Server<H>>, era: Era) -> Client {
    let (near, far) = tokio::io::duplex(1 << 16);
    let session = server.session();
    tokio::spawn(async move { session.serve(far).await.unwrap().waiting().await });
    let (input, output) = tokio::io::split(near);
    Client::connect(input, output, era).await
}

/// Returns the path of an example of the library.
pub fn example(name: &str) -> PathBuf {
    testing::example("mcp_resources", name)
}
