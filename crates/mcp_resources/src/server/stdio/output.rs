//! Writes lines, those that are ready together in one go.

use std::collections::VecDeque;
use std::io;
use std::sync::{MutexGuard, PoisonError};

use rmcp::service::{RoleServer, TxJsonRpcMessage};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, Notify};
use tokio::task::yield_now;

/// The most bytes of one write, unless one line has more. A pipe on Linux has room for as many, so more
/// would block in any case.
const AT_ONCE: usize = 64 * 1024;

/// The output for lines, until a write fails. Short lines that are ready together are written together, so
/// that a client with many requests wakes up once.
pub(super) struct Output<W> {
    /// The lines that are not being written yet.
    lines: std::sync::Mutex<VecDeque<Vec<u8>>>,
    /// `None` once a write failed or was given up.
    writer: Mutex<Option<W>>,
    failed: Notify,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    pub(super) fn new(writer: W) -> Self {
        Self {
            lines: Default::default(),
            writer: Mutex::new(Some(writer)),
            failed: Notify::new(),
        }
    }

    /// Adds a line to those to be written, and returns its length in bytes.
    pub(super) fn push(&self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<usize> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let bytes = line.len();
        self.lines().push_back(line);
        Ok(bytes)
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first line, and those after it that are written with it.
    fn take(&self) -> Vec<u8> {
        let mut waiting = self.lines();
        let mut lines = waiting.pop_front().unwrap_or_default();
        while waiting
            .front()
            .is_some_and(|next| lines.len() + next.len() <= AT_ONCE)
        {
            lines.extend(waiting.pop_front().unwrap_or_default());
        }
        lines
    }

    /// Writes the line at the front, which another task may have pushed. Once each task that pushed a
    /// line has called this, all lines are written.
    pub(super) async fn write(&self) -> io::Result<()> {
        // Other answers that are ready get into the same write.
        yield_now().await;
        let mut output = self.writer.lock().await;
        let lines = self.take();
        // Nothing may follow half a line. So the writer is put back only after a whole write.
        let mut writer = output.take().ok_or(io::ErrorKind::NotConnected)?;
        if lines.is_empty() {
            *output = Some(writer);
            return Ok(());
        }
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

    /// Waits until a write fails.
    pub(super) async fn wait_for_failure(&self) {
        self.failed.notified().await;
    }

    /// Closes the output once nothing is being written.
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
    async fn lines_that_are_ready_together_are_written_in_order_at_once() {
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
            lines
                .iter()
                .map(|line| line["id"].as_i64().unwrap())
                .collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
        assert!(tasks.join_all().await.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn long_line_is_written_alone() {
        let (output, mut client) = output(1 << 20);
        let long = ErrorData::internal_error("x".repeat(AT_ONCE), None);
        for number in 0..6 {
            let id = Some(RequestId::Number(number));
            let error = if number % 3 == 1 {
                long.clone()
            } else {
                ErrorData::internal_error("none", None)
            };
            output
                .push(&TxJsonRpcMessage::<RoleServer>::error(error, id))
                .unwrap();
        }
        let mut lines = Vec::new();
        for at_once in [1, 1, 2, 1, 1, 0] {
            output.write().await.unwrap();
            let mut read = vec![0; 1 << 20];
            let count = if at_once == 0 {
                0
            } else {
                client.read(&mut read).await.unwrap()
            };
            lines.extend_from_slice(&read[..count]);
            assert_eq!(
                read[..count].iter().filter(|byte| **byte == b'\n').count(),
                at_once
            );
        }
        let ids = lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let ids = ids.map(|line| {
            serde_json::from_slice::<serde_json::Value>(line).unwrap()["id"]
                .as_i64()
                .unwrap()
        });
        assert_eq!(ids.collect::<Vec<_>>(), (0..6).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn half_a_line_is_followed_by_nothing() {
        let (output, mut client) = output(10);
        output.push(&message(1)).unwrap();
        timeout(Duration::from_millis(20), output.write())
            .await
            .unwrap_err();
        output.push(&message(2)).unwrap();
        assert_eq!(
            output.write().await.unwrap_err().kind(),
            io::ErrorKind::NotConnected
        );
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, &serde_json::to_vec(&message(1)).unwrap()[..10]);
    }

    #[tokio::test]
    async fn all_writers_learn_of_a_failure() {
        let (output, client) = output(10);
        drop(client);
        for number in 0..3 {
            output.push(&message(number)).unwrap();
        }
        output.write().await.unwrap_err();
        output.write().await.unwrap_err();
        timeout(Duration::from_secs(20), output.wait_for_failure())
            .await
            .unwrap();
    }
}
