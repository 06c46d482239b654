use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rmcp::model::{ErrorData, ServerResult};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::server::budget::{PATIENCE, PAUSE};
use crate::{Registry, Server};

/// The lines of a client that writes to the first and reads from the second.
fn lines() -> (
    LineTransport<DuplexStream, DuplexStream>,
    DuplexStream,
    DuplexStream,
) {
    let session = Arc::new(Server::new("test", "1", Registry::new())).session();
    let ((input, theirs), (output, read)) = (duplex(1 << 20), duplex(1 << 10));
    (LineTransport::new(input, output, &session), theirs, read)
}

fn ping(id: i64) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
}

fn answer(id: i64) -> TxJsonRpcMessage<RoleServer> {
    TxJsonRpcMessage::<RoleServer>::response(ServerResult::empty(()), RequestId::Number(id))
}

/// Receives with the client's first line here.
async fn started(lines: &mut LineTransport<DuplexStream, DuplexStream>, client: &mut DuplexStream) {
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    client
        .write_all((initialize.replace('\n', "") + "\n").as_bytes())
        .await
        .unwrap();
    lines.receive().await.unwrap();
}

/// As rmcp does when anything else happens.
async fn polled_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn line_that_comes_byte_by_byte_is_read_by_a_caller_that_gives_up_each_time() {
    let (mut lines, mut client, _read) = lines();
    started(&mut lines, &mut client).await;
    for byte in ping(1).bytes() {
        assert!(polled_once(lines.receive()).await.is_none());
        client.write_all(&[byte]).await.unwrap();
    }
    assert!(matches!(
        lines.receive().await,
        Some(JsonRpcMessage::Request(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn crowded_client_is_read_from_a_line_a_second() {
    let (mut lines, mut client, mut read) = lines();
    started(&mut lines, &mut client).await;
    let mut at_work = Vec::new();
    for id in 1..1024 {
        client.write_all(ping(id).as_bytes()).await.unwrap();
        at_work.push(lines.receive().await.unwrap());
    }
    // The first is at work, too: rmcp holds what counts it.
    let start = Instant::now();
    client
        .write_all((ping(2000) + &ping(2001)).as_bytes())
        .await
        .unwrap();
    at_work.push(lines.receive().await.unwrap());
    at_work.push(lines.receive().await.unwrap());
    assert!(
        (1..=2).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );

    let unread: Vec<_> = (0..2048).map(|id| lines.write(&answer(id), None)).collect();
    client.write_all(ping(2002).as_bytes()).await.unwrap();
    assert!(
        timeout(Duration::from_secs(3600), lines.receive())
            .await
            .is_err()
    );
    drop((at_work, unread));
    assert!(lines.receive().await.is_some());
    drop(lines);
    read.read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn end_is_reported_once_all_is_done_or_nothing_moves() {
    for done in 0..=3 {
        let (mut lines, mut client, _read) = lines();
        started(&mut lines, &mut client).await;
        client
            .write_all((1..=3).map(ping).collect::<String>().as_bytes())
            .await
            .unwrap();
        let mut at_work = Vec::new();
        for _ in 0..3 {
            at_work.push(lines.receive().await.unwrap());
        }
        drop(client);
        let start = Instant::now();
        // Each is done in time, and rmcp waits anew whenever anything happens.
        for _ in 0..done {
            for _ in 0..3 {
                assert!(timeout(PATIENCE / 4, lines.receive()).await.is_err());
                drop(lines.budget.charge_line(None, 1));
            }
            at_work.pop();
        }
        while timeout(PATIENCE / 4, lines.receive()).await.is_err() {}
        let last = if done == 3 { Duration::ZERO } else { PATIENCE };
        let waited = start.elapsed() - PATIENCE / 4 * 3 * done;
        assert!(
            waited.abs_diff(last) < Duration::from_millis(10),
            "{done}: {waited:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_answer_is_an_error_for_its_request() {
    let (mut lines, mut client, _read) = lines();
    started(&mut lines, &mut client).await;
    let numbers = vec!["0"; 200_000].join(",");
    for result in [format!("{{\"x\":[{numbers}]}}"), "\"\\ud800\"".to_owned()] {
        client
            .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{result}}}\n").as_bytes())
            .await
            .unwrap();
        let message = lines.receive().await.unwrap();
        assert!(
            matches!(message, JsonRpcMessage::Error(error) if error.id == Some(RequestId::Number(5)))
        );
    }
    assert_eq!(
        lines.budget.wait_for_fewer(usize::MAX).await,
        0,
        "nothing is refused"
    );
}

#[tokio::test(start_paused = true)]
async fn unread_bytes_pause_reading() {
    let (mut lines, mut client, _read) = lines();
    started(&mut lines, &mut client).await;
    let id = RequestId::String("x".repeat(1 << 20).into());
    let large =
        TxJsonRpcMessage::<RoleServer>::error(ErrorData::internal_error("x", None), Some(id));
    let start = Instant::now();
    client.write_all(ping(1).as_bytes()).await.unwrap();
    let unread: Vec<_> = (0..100).map(|_| lines.write(&large, None)).collect();
    lines.receive().await.unwrap();
    assert_eq!(start.elapsed(), PAUSE);
    drop(unread);
}
