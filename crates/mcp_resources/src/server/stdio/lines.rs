//! One client's lines of JSON-RPC, and the lines that it is answered with.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout, timeout_at};

use super::output::Output;
use crate::server::backlog::Backlog;
use crate::server::batch;
use crate::server::session::Session;

/// How long a line may be in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// How many answers to lines that are no messages may wait for the client.
const MAX_REFUSALS: usize = 64;

/// How long nothing is read from a client that has no room. What it says may be what others of its requests wait for.
const PAUSE: Duration = Duration::from_secs(1);

/// How long more is looked for before the thread sleeps: to wake up takes longer than most programs do from an answer to
/// their next request.
const AWAKE: Duration = Duration::from_micros(60);

/// How long a client that says no more may take to read what it is still told.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A transport of lines with one message each, or with a batch where the client's revision has them.
///
/// Each request gets an answer with its id, if it can be read from the line. From a client that does not read its answers
/// a line a second is read once they are many.
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
    /// Whether the client may send batches, once it has initialized.
    has_batches: Option<bool>,
    /// What was read and not taken yet.
    messages: VecDeque<RxJsonRpcMessage<RoleServer>>,
    output: Arc<Output<W>>,
    /// Answers to lines that are no messages, on their way.
    refusals: JoinSet<io::Result<()>>,
    /// Until when nothing is read.
    paused_until: Option<Instant>,
    /// Whether what was made meanwhile could be taken since the last message.
    has_yielded: bool,
    backlog: Backlog,
    /// Whether the client wrote all: requests that wait for changes then wait for nothing, and rmcp waits for requests.
    ended: watch::Sender<bool>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new<H: ServerHandler>(input: R, output: W, session: &Session<H>) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_too_long: false,
            revisions: session.supported_protocol_versions(),
            is_started: false,
            has_batches: None,
            messages: VecDeque::new(),
            output: Arc::new(Output::new(output)),
            refusals: JoinSet::new(),
            paused_until: None,
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
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
        if line.is_empty() {
            return;
        }
        self.has_batches = self.has_batches.or_else(|| batch::initializes(line));
        if !batch::is_batch(line) {
            return self.take(line);
        }
        match batch::messages(line) {
            Ok(messages) if self.has_batches == Some(true) && batch::is_sound(messages.len()) => {
                messages.iter().for_each(|message| self.take(message.get().as_bytes()));
            }
            Ok(_) => {
                let why = "a batch, which 2025-03-26 alone has, of 1 to 100 messages, is no request";
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
                self.is_started |= starts(&request.request, &self.revisions);
                let is_listening = matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
                if let Err(why) = self.backlog.begin(&request.id, is_listening) {
                    let id = Some(request.id.clone());
                    return self.refuse(id, ErrorData::invalid_request(why, None));
                }
                request.request.extensions_mut().insert(self.backlog.count(is_listening, bytes));
            }
            // rmcp would end for what comes before the client starts, and there is nothing yet that it could tell of.
            _ if !self.is_started => return,
            JsonRpcMessage::Notification(notification) => {
                notification.notification.extensions_mut().insert(self.backlog.count(false, bytes));
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.backlog.cancel(id);
                }
            }
            _ => (),
        }
        self.messages.push_back(message);
    }

    /// Answers what can't be read, unless it asks for no answer.
    fn misread(&mut self, message: &[u8], error: &serde_json::Error) {
        if serde_json::from_slice::<&RawValue>(message).is_err() {
            let why = format!("a line is not JSON: {error}");
            return self.refuse(None, ErrorData::new(ErrorCode::PARSE_ERROR, why, None));
        }
        // It looks into no value, so that one that is nested too deep, or is no Unicode, hides no id.
        let fields: HashMap<String, &RawValue> = serde_json::from_slice(message).unwrap_or_default();
        let id = fields.get("id").and_then(|id| serde_json::from_str(id.get()).ok());
        let method =
            fields.get("method").and_then(|method| serde_json::from_str::<String>(method.get()).ok());
        let is_versioned = fields.get("jsonrpc").is_some_and(|version| version.get() == "\"2.0\"");
        let is_response = fields.contains_key("result") || fields.contains_key("error");
        match method.filter(|_| is_versioned) {
            _ if is_response => (),
            Some(_) if !fields.contains_key("id") => (),
            Some(method) if id.is_some() => {
                let why = format!("the parameters of {method} can't be read: {error}");
                self.refuse(id, ErrorData::invalid_params(why, None));
            }
            _ => {
                let why = "no request of JSON-RPC 2.0, which has \"jsonrpc\": \"2.0\", an id and a method";
                self.refuse(id, ErrorData::invalid_request(why, None));
            }
        }
    }

    /// Waits until no more than so many of them are on their way.
    async fn write_refusals(&mut self, most: usize) {
        while self.refusals.len() > most {
            self.refusals.join_next().await;
        }
        while self.refusals.try_join_next().is_some() {}
    }

    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        let output = Arc::clone(&self.output);
        let pushed = output.push(&TxJsonRpcMessage::<RoleServer>::error(error, id));
        self.refusals.spawn(async move {
            pushed?;
            output.write().await
        });
    }

    /// Waits until the client has room for more, for a while, over however many calls.
    async fn wait_for_room(&mut self) {
        let until = *self.paused_until.get_or_insert_with(|| Instant::now() + PAUSE);
        let room = async {
            self.backlog.room_for_request().await;
            self.write_refusals(MAX_REFUSALS).await;
        };
        if timeout_at(until, room).await.is_ok() {
            self.paused_until = None;
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
            let is_whole = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
            is_whole && meta.protocol_version().is_some_and(|revision| revisions.contains(&revision))
        }
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleServer>
    for Lines<R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sending = self.backlog.send(match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        });
        let output = Arc::clone(&self.output);
        let pushed = output.push(&message);
        async move {
            let _sending = sending;
            pushed?;
            output.write().await
        }
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
            if !*self.ended.borrow() {
                let output = Arc::clone(&self.output);
                let next_line = async {
                    self.wait_for_room().await;
                    self.stay_awake().await;
                    let is_line = self.read_line().await;
                    self.paused_until = None;
                    is_line
                };
                let is_line = tokio::select! {
                    is_line = next_line => is_line,
                    // It reads no more, and is answered nothing.
                    () = output.failed() => false,
                };
                if is_line {
                    self.take_line();
                    continue;
                }
                self.ended.send_replace(true);
            }
            let _ = timeout(LAST_WORDS, self.write_refusals(0)).await;
            return None;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Who writes to a client that does not read has it for good.
        let _ = timeout(LAST_WORDS, self.output.close()).await;
        Ok(())
    }
}
