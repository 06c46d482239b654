//! One client, on standard input and output.

use std::sync::Arc;

use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use rmcp::{ServerHandler, ServiceExt};
use tokio::runtime::Runtime;

use super::{ServeError, Server};

impl<H: ServerHandler> Server<H> {
    /// Serves the client on standard input and output until it closes them, as a program whose `main` does no more:
    /// with a runtime of its own, and without waiting for handlers that still block at the end.
    ///
    /// Nothing else may be written to standard output; standard error is free.
    ///
    /// # Errors
    ///
    /// [`ServeError::Runtime`], and those of [`Server::serve_stdio`].
    pub fn run_stdio(self) -> Result<(), ServeError> {
        let runtime = Runtime::new().map_err(ServeError::Runtime)?;
        let result = runtime.block_on(self.serve_stdio());
        runtime.shutdown_background();
        result
    }

    /// Serves the client on standard input and output until it closes them.
    ///
    /// A runtime that ends waits for handlers that block, however long they do: see [`Server::run_stdio`].
    ///
    /// # Errors
    ///
    /// [`ServeError::Connect`] for a client that does not start as one, [`ServeError::Stopped`].
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        let running = match Arc::new(self).session().serve(stdio_pipes()).await {
            Ok(running) => running,
            // A client that only looked whether the server starts.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Connect(error.into())),
        };
        running.waiting().await.map(drop).map_err(|error| ServeError::Stopped(error.into()))
    }
}
