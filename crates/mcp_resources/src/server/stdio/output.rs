//! The lines that a client is answered with.

use std::io;
use std::sync::PoisonError;

use rmcp::service::{RoleServer, TxJsonRpcMessage};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, Notify};
use tokio::task::yield_now;

/// Where lines are written, until that fails: those that are ready together together, so that a client that has asked
/// much wakes up once for all.
pub(super) struct Output<W> {
    /// Lines that nobody writes yet.
    lines: std::sync::Mutex<Vec<u8>>,
    writer: Mutex<Option<W>>,
    failed: Notify,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { lines: Default::default(), writer: Mutex::new(Some(writer)), failed: Notify::new() }
    }

    /// Puts a line behind those to be written; says how many bytes it has.
    pub(super) fn push(&self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<usize> {
        let line = serde_json::to_vec(message)?;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(&line);
        lines.push(b'\n');
        Ok(line.len())
    }

    /// Writes what was pushed before, by whomever.
    pub(super) async fn write(&self) -> io::Result<()> {
        yield_now().await;
        let mut output = self.writer.lock().await;
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        // Nothing follows half a line: where this fails or is dropped, the writer is gone.
        let mut writer = output.take().ok_or(io::ErrorKind::NotConnected)?;
        let written = async {
            writer.write_all(&lines).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            self.failed.notify_one();
            return Err(error);
        }
        *output = Some(writer);
        Ok(())
    }

    /// Waits until writing failed.
    pub(super) async fn failed(&self) {
        self.failed.notified().await;
    }

    /// Closes it once nobody writes.
    pub(super) async fn close(&self) {
        self.writer.lock().await.take();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rmcp::model::{ErrorData, RequestId};
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    fn message(number: i64) -> TxJsonRpcMessage<RoleServer> {
        TxJsonRpcMessage::<RoleServer>::error(
            ErrorData::internal_error("none", None),
            Some(RequestId::Number(number)),
        )
    }

    fn output(room: usize) -> (Arc<Output<DuplexStream>>, DuplexStream) {
        let (ours, theirs) = duplex(room);
        (Arc::new(Output::new(ours)), theirs)
    }

    #[tokio::test]
    async fn lines_that_are_ready_together_are_written_at_once_and_in_order() {
        let (output, mut client) = output(1 << 16);
        let mut tasks = JoinSet::new();
        for number in 0..10 {
            let output = Arc::clone(&output);
            tasks.spawn(async move {
                output.push(&message(number))?;
                output.write().await
            });
        }
        let mut first = [0; 1 << 16];
        let count = client.read(&mut first).await.unwrap();
        let lines: Vec<serde_json::Value> = first[..count]
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(
            lines.iter().map(|line| line["id"].as_i64().unwrap()).collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
        assert!(tasks.join_all().await.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn half_a_line_is_followed_by_nothing() {
        let (output, mut client) = output(10);
        output.push(&message(1)).unwrap();
        timeout(Duration::from_millis(20), output.write()).await.unwrap_err();
        output.push(&message(2)).unwrap();
        assert_eq!(output.write().await.unwrap_err().kind(), io::ErrorKind::NotConnected);
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, &serde_json::to_vec(&message(1)).unwrap()[..10]);
    }

    #[tokio::test]
    async fn all_who_write_learn_that_it_failed() {
        let (output, client) = output(10);
        drop(client);
        for number in 0..3 {
            output.push(&message(number)).unwrap();
        }
        output.write().await.unwrap_err();
        output.write().await.unwrap_err();
        timeout(Duration::from_secs(20), output.failed()).await.unwrap();
    }
}
