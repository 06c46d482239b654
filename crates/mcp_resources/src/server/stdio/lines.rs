//! One client's lines of JSON-RPC, and the lines that it is answered with.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, GetExtensions, GetMeta,
    JsonRpcMessage, ProtocolVersion, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};

use super::output::Output;
use crate::server::backlog::{Backlog, Kind};
use crate::server::batch;
use crate::server::message::{TOO_MANY_VALUES, has_too_many_values};
use crate::server::session::Session;
use crate::server::wire::shown;

/// How long a line may be in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// How long nothing is read from a client that has no room. What it says may be what others of its requests wait for.
const PAUSE: Duration = Duration::from_secs(1);

/// How long more is looked for before the thread sleeps: to wake up takes longer than most programs do from an answer to
/// their next request.
const AWAKE: Duration = Duration::from_micros(60);

/// How long a client that says no more is waited for while nothing that it asked comes to its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long writing is waited for at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A transport of lines with one message each, or with a batch where the client's revision has them.
///
/// Each request gets an answer with its id, if it can be read from the line. From a client that does not read its answers
/// a line a second is read once they are many, and nothing once they are twice as many.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    /// What was read of a line.
    line: Vec<u8>,
    /// Whether the line is longer than one may be, and what follows of it is passed over.
    is_too_long: bool,
    /// The revisions that a client may start with.
    revisions: Cow<'static, [ProtocolVersion]>,
    /// Whether the client started.
    is_started: bool,
    /// Whether the client may send batches.
    has_batches: bool,
    /// What was read and not taken yet.
    messages: VecDeque<RxJsonRpcMessage<RoleServer>>,
    output: Arc<Output<W>>,
    /// Until when nothing is read.
    paused_until: Option<Instant>,
    /// How little was open since the client's end, and until when less has to be.
    settling: Option<(usize, Instant)>,
    /// Whether what was made meanwhile could be taken since the last message.
    has_yielded: bool,
    backlog: Backlog,
    /// Whether the client wrote all: requests that wait for changes then wait for nothing, and rmcp waits for requests.
    ended: watch::Sender<bool>,
}

impl<R: AsyncRead + Unpin + Send + 'static, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new<H: ServerHandler>(input: R, output: W, session: &Session<H>) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_too_long: false,
            revisions: session.supported_protocol_versions(),
            is_started: false,
            has_batches: false,
            messages: VecDeque::new(),
            output: Arc::new(Output::new(output)),
            paused_until: None,
            settling: None,
            has_yielded: false,
            backlog: session.backlog(),
            ended: session.client_ended(),
        }
    }

    /// Reads the rest of a line, which may be the last and have no end; says whether there was one. Who waits for it no
    /// more loses nothing.
    async fn read_line(&mut self) -> bool {
        loop {
            let bytes = self.input.fill_buf().await.unwrap_or_default();
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (part, count) = match end {
                Some(end) => (&bytes[..end], end + 1),
                None => (bytes, bytes.len()),
            };
            if self.line.len() + part.len() > MAX_LINE {
                self.is_too_long = true;
                self.line.clear();
            } else if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            let is_end = bytes.is_empty();
            self.input.consume(count);
            if end.is_some() || is_end {
                return end.is_some() || self.is_too_long || !self.line.is_empty();
            }
        }
    }

    /// Waits for more to read, for no longer than is worth staying awake; others may run meanwhile.
    async fn stay_awake(&mut self) {
        // Tokio's may stand still.
        let start = std::time::Instant::now();
        while start.elapsed() < AWAKE {
            tokio::select! {
                biased;
                _ = self.input.fill_buf() => return,
                () = yield_now() => std::thread::yield_now(),
            }
        }
    }

    /// Takes the messages of a line that was read.
    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            let why = format!("a line has more than {MAX_LINE} bytes");
            return self.refuse(None, ErrorData::invalid_request(why, None));
        }
        let line = line
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&line)
            .trim_ascii();
        if line.is_empty() {
            return;
        }
        if has_too_many_values(line) {
            return match batch::is_batch(line) {
                true => self.refuse(None, ErrorData::invalid_request(TOO_MANY_VALUES, None)),
                false => self.misread(line, &TOO_MANY_VALUES),
            };
        }
        if !batch::is_batch(line) {
            return self.take(line);
        }
        match batch::messages(line) {
            Ok(messages) if self.has_batches && batch::is_sound(messages.len()) => {
                messages
                    .iter()
                    .for_each(|message| self.take(message.get().as_bytes()));
            }
            Ok(_) => {
                let why =
                    "a batch, which 2025-03-26 alone has, of 1 to 100 messages, is no request";
                self.refuse(None, ErrorData::invalid_request(why, None));
            }
            Err(error) => self.misread(line, &error),
        }
    }

    fn take(&mut self, message: &[u8]) {
        let bytes = message.len();
        let mut message: RxJsonRpcMessage<RoleServer> = match serde_json::from_slice(message) {
            Ok(message) => message,
            Err(error) => return self.misread(message, &error),
        };
        match &mut message {
            JsonRpcMessage::Request(request) => {
                if let (ClientRequest::InitializeRequest(initialize), false) =
                    (&request.request, self.is_started)
                {
                    self.has_batches =
                        initialize.params.protocol_version.as_str() == batch::revision();
                }
                self.is_started |= starts(&request.request, &self.revisions);
                let kind = match request.request {
                    ClientRequest::SubscriptionsListenRequest(_) => Kind::Stream,
                    _ => Kind::Other,
                };
                if let Err(why) = self.backlog.begin(&request.id, kind) {
                    let id = Some(request.id.clone());
                    return self.refuse(id, ErrorData::invalid_request(why, None));
                }
                request
                    .request
                    .extensions_mut()
                    .insert(self.backlog.count(kind, bytes));
            }
            // rmcp would end for what comes before the client starts, and there is nothing yet that it could tell of.
            _ if !self.is_started => return,
            JsonRpcMessage::Notification(notification) => {
                notification
                    .notification
                    .extensions_mut()
                    .insert(self.backlog.count(Kind::Other, bytes));
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.backlog.cancel(id);
                }
            }
            _ => (),
        }
        self.messages.push_back(message);
    }

    /// Answers what can't be read, unless it asks for no answer. What is an answer itself is an error to who waits for it.
    fn misread(&mut self, message: &[u8], error: &dyn Display) {
        if serde_json::from_slice::<&RawValue>(message).is_err() {
            let why = format!("a line is not JSON: {error}");
            return self.refuse(None, ErrorData::new(ErrorCode::PARSE_ERROR, why, None));
        }
        // It looks into no value, so that one that is nested too deep, or is no Unicode, hides no id.
        let fields: HashMap<String, &RawValue> =
            serde_json::from_slice(message).unwrap_or_default();
        let id = fields
            .get("id")
            .and_then(|id| serde_json::from_str(id.get()).ok());
        let method = fields
            .get("method")
            .and_then(|method| serde_json::from_str::<String>(method.get()).ok());
        let is_versioned = fields
            .get("jsonrpc")
            .is_some_and(|version| version.get() == "\"2.0\"");
        let is_response = fields.contains_key("result") || fields.contains_key("error");
        match method.filter(|_| is_versioned) {
            _ if is_response => {
                if let Some(id) = id.filter(|_| self.is_started) {
                    let why = format!("the client's answer can't be read: {error}");
                    self.messages.push_back(JsonRpcMessage::error(
                        ErrorData::internal_error(why, None),
                        Some(id),
                    ));
                }
            }
            Some(_) if !fields.contains_key("id") => (),
            Some(method) if id.is_some() => {
                let why = format!(
                    "the parameters of {} can't be read: {error}",
                    shown(&method)
                );
                self.refuse(id, ErrorData::invalid_params(why, None));
            }
            _ => {
                let why = "no request of JSON-RPC 2.0, which has \"jsonrpc\": \"2.0\", an id and a method";
                self.refuse(id, ErrorData::invalid_request(why, None));
            }
        }
    }

    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        tokio::spawn(self.write(&TxJsonRpcMessage::<RoleServer>::error(error, id), None));
    }

    /// Writes a message, which may be the answer to a request.
    fn write(
        &self,
        message: &TxJsonRpcMessage<RoleServer>,
        answered: Option<&RequestId>,
    ) -> impl Future<Output = io::Result<()>> + Send + use<R, W> {
        let output = Arc::clone(&self.output);
        let pushed = output.push(message);
        let sending = self.backlog.send(answered, *pushed.as_ref().unwrap_or(&0));
        async move {
            let _sending = sending;
            pushed?;
            output.write().await
        }
    }

    /// Waits until nothing is open any more, or nothing has come to its end for a while, over however many calls.
    async fn settle(&mut self) {
        loop {
            let (least, until) = *self
                .settling
                .get_or_insert_with(|| (usize::MAX, Instant::now() + PATIENCE));
            match timeout_at(until, self.backlog.fewer_open(least)).await {
                Ok(0) | Err(_) => return,
                Ok(fewer) => self.settling = Some((fewer, Instant::now() + PATIENCE)),
            }
        }
    }

    /// Waits until the client has room for more, for a while, over however many calls.
    async fn wait_for_room(&mut self) {
        let until = *self
            .paused_until
            .get_or_insert_with(|| Instant::now() + PAUSE);
        match timeout_at(until, self.backlog.room_for_request()).await {
            Ok(()) => self.paused_until = None,
            Err(_) => self.backlog.room_for_answers().await,
        }
    }
}

/// Whether a client starts with this request: what does not say its revision, and a `server/discover`, is answered, and
/// rmcp waits for another.
fn starts(request: &ClientRequest, revisions: &[ProtocolVersion]) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let is_whole = meta
                .missing_required_keys(&ProtocolVersion::V_2026_07_28)
                .is_empty();
            is_whole
                && meta
                    .protocol_version()
                    .is_some_and(|revision| revisions.contains(&revision))
        }
    }
}

impl<R: AsyncRead + Unpin + Send + 'static, W: AsyncWrite + Unpin + Send + 'static>
    Transport<RoleServer> for Lines<R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        self.write(&message, answered)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        // rmcp takes answers one by one from the tasks that made them; a client whose lines are all here would have
        // more and more of these wait.
        if !self.has_yielded && !self.input.buffer().is_empty() {
            self.has_yielded = true;
            yield_now().await;
        }
        loop {
            if let Some(message) = self.messages.pop_front() {
                self.has_yielded = false;
                return Some(message);
            }
            let output = Arc::clone(&self.output);
            if *self.ended.borrow() {
                // rmcp takes nothing more to write but answers once it is told that there are no more messages.
                tokio::select! {
                    () = self.settle() => (),
                    () = output.failed() => (),
                }
                return None;
            }
            let next_line = async {
                self.wait_for_room().await;
                self.stay_awake().await;
                let is_line = self.read_line().await;
                self.paused_until = None;
                is_line
            };
            tokio::select! {
                is_line = next_line => match is_line {
                    true => self.take_line(),
                    false => _ = self.ended.send_replace(true),
                },
                // It reads no more, and is answered nothing.
                () = output.failed() => {
                    self.ended.send_replace(true);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Who writes to a client that does not read has it for good.
        let _ = timeout(LAST_WORDS, self.output.close()).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use rmcp::model::ServerResult;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::{Registry, Server};

    /// The lines of a client that writes to the first and reads from the second.
    fn lines() -> (
        Lines<DuplexStream, DuplexStream>,
        DuplexStream,
        DuplexStream,
    ) {
        let session = Arc::new(Server::new("test", "1", Registry::new())).session();
        let ((input, theirs), (output, read)) = (duplex(1 << 20), duplex(1 << 10));
        (Lines::new(input, output, &session), theirs, read)
    }

    fn ping(id: i64) -> String {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
    }

    fn answer(id: i64) -> TxJsonRpcMessage<RoleServer> {
        TxJsonRpcMessage::<RoleServer>::response(ServerResult::empty(()), RequestId::Number(id))
    }

    /// Receives with the client's first line here.
    async fn started(lines: &mut Lines<DuplexStream, DuplexStream>, client: &mut DuplexStream) {
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
    async fn nothing_is_lost_of_a_line_that_comes_byte_by_byte_to_who_waits_for_it_again_and_again()
    {
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
    async fn line_a_second_is_read_where_much_is_at_work_and_none_where_much_is_unread() {
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
    async fn end_is_told_once_all_is_done_or_nothing_is_any_more_whatever_else_happens() {
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
                    drop(lines.backlog.send(None, 1));
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
    async fn answer_that_cannot_be_read_is_an_error_to_who_waits_for_it() {
        let (mut lines, mut client, _read) = lines();
        started(&mut lines, &mut client).await;
        let numbers = vec!["0"; 200_000].join(",");
        for result in [format!("{{\"x\":[{numbers}]}}"), "\"\\ud800\"".to_owned()] {
            client
                .write_all(
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{result}}}\n").as_bytes(),
                )
                .await
                .unwrap();
            let message = lines.receive().await.unwrap();
            assert!(
                matches!(message, JsonRpcMessage::Error(error) if error.id == Some(RequestId::Number(5)))
            );
        }
        assert_eq!(
            lines.backlog.fewer_open(usize::MAX).await,
            0,
            "nothing is refused"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_nobody_reads_count() {
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
}
