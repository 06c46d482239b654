//! The transport of rmcp for one client on standard input and output.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    ClientNotification, ClientRequest, GetExtensions, GetMeta, JsonRpcMessage, JsonRpcRequest,
    ProtocolVersion, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::envelope::{Batches, Incoming, Refusal, parse_line};
use super::output::Output;
use super::reader::{Line, LineReader};
use crate::server::batch;
use crate::server::budget::{Account, Budget, Charge, LAST_WORDS, MAX_LINE};
use crate::server::session::Session;

/// Reads and writes lines with one message each, or with a batch if the client's revision has them.
///
/// Each request gets an answer with its id, if the line has a readable one. The budget says when the next
/// line may be read.
pub(super) struct LineTransport<R, W> {
    reader: LineReader<R>,
    output: Arc<Output<W>>,
    budget: Budget,
    /// The revisions that a client may start with.
    revisions: Cow<'static, [ProtocolVersion]>,
    is_started: bool,
    batches: Batches,
    /// The messages that were read and that rmcp has not taken.
    messages: VecDeque<RxJsonRpcMessage<RoleServer>>,
    /// For [`Budget::wait_to_read`].
    pause_ends: Option<Instant>,
    /// For [`Budget::settle`].
    settling: Option<(usize, Instant)>,
    /// True if rmcp's tasks had their turn since the last message.
    has_yielded: bool,
    /// Set at the end of input. Streams of changes then end, and rmcp waits for requests.
    ended: watch::Sender<bool>,
}

impl<R: AsyncRead + Unpin + Send + 'static, W: AsyncWrite + Unpin + Send + 'static>
    LineTransport<R, W>
{
    pub(super) fn new<H: ServerHandler>(input: R, output: W, session: &Session<H>) -> Self {
        Self {
            reader: LineReader::new(input),
            output: Arc::new(Output::new(output)),
            budget: session.budget(),
            revisions: session.supported_protocol_versions(),
            is_started: false,
            batches: Batches::Refused,
            messages: VecDeque::new(),
            pause_ends: None,
            settling: None,
            has_yielded: false,
            ended: session.client_ended(),
        }
    }

    /// Reads the next line once the budget lets it; `None` at the end of input.
    async fn read_line(&mut self) -> Option<Line> {
        self.budget.wait_to_read(&mut self.pause_ends).await;
        let line = self.reader.read().await;
        self.pause_ends = None;
        line
    }

    fn take_line(&mut self, line: Line) {
        let line = match line {
            Line::Bytes(line) => line,
            Line::TooLong => {
                let why = format!("a line has more than {MAX_LINE} bytes");
                return self.refuse(*Refusal::invalid_request(None, why));
            }
        };
        for parsed in parse_line(&line, self.batches) {
            if let Err(refusal) = parsed.and_then(|incoming| self.take(incoming)) {
                self.refuse(*refusal);
            }
        }
    }

    fn take(&mut self, Incoming { mut message, bytes }: Incoming) -> Result<(), Box<Refusal>> {
        match &mut message {
            JsonRpcMessage::Request(request) => self.accept(request, bytes)?,
            // rmcp would end on what comes before the client starts, and it can't be about anything yet.
            _ if !self.is_started => return Ok(()),
            JsonRpcMessage::Notification(notification) => {
                let notification = &mut notification.notification;
                let charge = self.budget.charge(Account::Work, bytes);
                attach(notification, charge);
                if let ClientNotification::CancelledNotification(cancelled) = notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.budget.close(id);
                }
            }
            _ => (),
        }
        self.messages.push_back(message);
        Ok(())
    }

    /// Charges for a request, and notes what it says about the client.
    fn accept(
        &mut self,
        request: &mut JsonRpcRequest<ClientRequest>,
        bytes: usize,
    ) -> Result<(), Box<Refusal>> {
        if let (ClientRequest::InitializeRequest(initialize), false) =
            (&request.request, self.is_started)
        {
            self.batches = match initialize.params.protocol_version.as_str() == batch::revision() {
                true => Batches::Accepted,
                false => Batches::Refused,
            };
        }
        self.is_started |= starts(&request.request, &self.revisions);
        let account = match request.request {
            ClientRequest::SubscriptionsListenRequest(_) => Account::Stream,
            _ => Account::Work,
        };
        match self.budget.accept(&request.id, account, bytes) {
            Ok(charge) => {
                attach(&mut request.request, charge);
                Ok(())
            }
            Err(why) => Err(Refusal::invalid_request(Some(request.id.clone()), why)),
        }
    }

    fn refuse(&mut self, Refusal { id, error }: Refusal) {
        tokio::spawn(self.write(&TxJsonRpcMessage::<RoleServer>::error(error, id), None));
    }

    /// Writes a message. If it is the answer to a request, that request's id is free.
    fn write(
        &self,
        message: &TxJsonRpcMessage<RoleServer>,
        answered: Option<&RequestId>,
    ) -> impl Future<Output = io::Result<()>> + Send + use<R, W> {
        let output = Arc::clone(&self.output);
        let pushed = output.push(message);
        let charge = self
            .budget
            .charge_line(answered, *pushed.as_ref().unwrap_or(&0));
        async move {
            let _charge = charge;
            pushed?;
            output.write().await
        }
    }
}

/// Attaches a charge to a message: rmcp hands it on with that, and drops it when the work is done.
fn attach(message: &mut impl GetExtensions, charge: Charge) {
    message.extensions_mut().insert(Arc::new(charge));
}

/// Returns whether a client starts with this request. rmcp answers a `server/discover`, and a request
/// without a revision, and then still waits for the client to start.
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
    Transport<RoleServer> for LineTransport<R, W>
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
        // rmcp takes answers one by one from the tasks that made them. If all of a client's lines are
        // here, taking those first would let more and more answers wait.
        if !self.has_yielded && self.reader.has_input() {
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
                // Once rmcp is told the end, it writes nothing but answers.
                tokio::select! {
                    () = self.budget.settle(&mut self.settling) => (),
                    () = output.wait_for_failure() => (),
                }
                return None;
            }
            tokio::select! {
                line = self.read_line() => match line {
                    Some(line) => self.take_line(line),
                    None => _ = self.ended.send_replace(true),
                },
                // The client reads no more, so nothing is left to answer.
                () = output.wait_for_failure() => {
                    self.ended.send_replace(true);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A task that writes to a client which does not read never gives the output back.
        let _ = timeout(LAST_WORDS, self.output.close()).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
