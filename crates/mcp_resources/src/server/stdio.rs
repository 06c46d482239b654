//! Serves one client on standard input and output.

mod envelope;
mod output;
mod reader;
mod transport;

use std::sync::Arc;

use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use rmcp::{ServerHandler, ServiceExt};
use tokio::runtime::Builder;

use super::{ServeError, Server};
use transport::LineTransport;

impl<H: ServerHandler> Server<H> {
    /// Serves the client on standard input and output until it closes them.
    ///
    /// This is for a program whose `main` does nothing else: it makes its own runtime, and at the end it
    /// doesn't wait for handlers that still block.
    ///
    /// The program must write nothing else to standard output. Standard error is free.
    ///
    /// A client that doesn't read its answers can't exhaust memory:
    ///
    /// | open requests and unread answers | what the server does |
    /// |---|---|
    /// | 32 unread answers | begins no further answer |
    /// | 1,024 in all, or 64 MiB | reads one line a second |
    /// | 128 MiB | refuses requests |
    /// | 2,048 unread, or 128 MiB unread | reads nothing |
    ///
    /// When the client closes standard input, the server still answers open requests. It ends when none
    /// of them has been answered for two seconds.
    ///
    /// # Errors
    ///
    /// [`ServeError::Runtime`], and those of [`Server::serve_stdio`].
    pub fn run_stdio(self) -> Result<(), ServeError> {
        // With one client, answers are faster if they don't go from thread to thread.
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
    /// A runtime that is dropped waits for handlers that block. [`Server::run_stdio`] doesn't.
    ///
    /// # Errors
    ///
    /// [`ServeError::Connect`] if the client sends something else before it is connected, and
    /// [`ServeError::Stopped`].
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        let session = Arc::new(self).session();
        let (input, output) = stdio_pipes();
        let transport = LineTransport::new(input, output, &session);
        let running = match session.serve(transport).await {
            Ok(running) => running,
            // The client only checked that the server starts, or it reads no answer.
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
