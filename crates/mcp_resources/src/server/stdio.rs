//! One client, on standard input and output.

mod unbatched;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use rmcp::{ServerHandler, ServiceExt};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::{ServeError, Server};
use unbatched::Unbatched;

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
        // One client has its requests answered faster where they don't go from thread to thread.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ServeError::Runtime)?;
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
        let input = Unbatched::new(Input { pipe: input, ended: session.client_ended() });
        let running = match session.serve((input, output)).await {
            Ok(running) => running,
            // A client that only looked whether the server starts.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Connect(error.into())),
        };
        running.waiting().await.map(drop).map_err(|error| ServeError::Stopped(error.into()))
    }
}

/// What the client writes, and that it wrote all: requests that wait for changes then wait for nothing, and rmcp waits
/// for requests.
struct Input<R> {
    pipe: R,
    ended: watch::Sender<bool>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let result = ready!(Pin::new(&mut self.pipe).poll_read(context, buffer));
        if result.is_err() || (buffer.filled().len() == before && room > 0) {
            self.ended.send_replace(true);
        }
        Poll::Ready(result)
    }
}
