//! One client, on standard input and output.

mod lines;
mod output;

use std::sync::Arc;

use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use rmcp::{ServerHandler, ServiceExt};
use tokio::runtime::Builder;

use super::{ServeError, Server};
use lines::Lines;

impl<H: ServerHandler> Server<H> {
    /// Serves the client on standard input and output until it closes them, as a program whose `main` does no more:
    /// with a runtime of its own, and without waiting for handlers that still block at the end.
    ///
    /// Nothing else may be written to standard output; standard error is free. For a client that does not read, no more
    /// answers are begun once 32 wait for it; with 1,024 requests open, or 64 MiB of requests and answers, it is read from
    /// a line a second. With twice as many bytes its requests are refused, and with twice as much that it does not read it
    /// is read from no more.
    ///
    /// Once the client closes standard input, what is open is still answered, for as long as anything of it comes to its
    /// end in two seconds.
    ///
    /// # Errors
    ///
    /// [`ServeError::Runtime`], and those of [`Server::serve_stdio`].
    pub fn run_stdio(self) -> Result<(), ServeError> {
        // One client has its requests answered faster where they don't go from thread to thread.
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ServeError::Runtime)?;
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
        let session = Arc::new(self).session();
        let (input, output) = stdio_pipes();
        let lines = Lines::new(input, output, &session);
        let running = match session.serve(lines).await {
            Ok(running) => running,
            // A client that only looked whether the server starts, or that reads no answer.
            Err(
                ServerInitializeError::ConnectionClosed(_)
                | ServerInitializeError::TransportError { .. },
            ) => {
                return Ok(());
            }
            Err(error) => return Err(ServeError::Connect(error.into())),
        };
        running
            .waiting()
            .await
            .map(drop)
            .map_err(|error| ServeError::Stopped(error.into()))
    }
}
