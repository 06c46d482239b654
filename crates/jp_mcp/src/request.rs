//! Follows a request until it is answered, cancelled or too late.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientRequest, CustomRequest, ErrorData,
        RequestId, RequestMetaObject,
    },
    service::PeerRequestOptions,
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc as channel, oneshot},
    time::Instant,
};

use crate::{
    Fault, Progress,
    attendant::{Event, Shared, Sign},
    raw::{self, Raw},
    stdio::Process,
};

/// The error code of a server that requires the visit of a page (MCP 2025-11-25, "URL Elicitation Required
/// Error").
const URL_REQUIRED: i32 = -32042;

/// The most time that a request may take, as a multiple of its timeout. Otherwise, a server that reports
/// progress for ever would block the turn for ever.
pub(crate) const MOST_TIMEOUTS: u32 = 10;
/// The time limit for ending a session or cancelling a request at the server.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A request to a server.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) process: Option<Arc<Process>>,
    pub(crate) timeout: Duration,
    pub(crate) wants_logs: bool,
}

impl Request {
    pub(crate) async fn run(
        self,
        events: mpsc::Sender<Event>,
        progress: Arc<Mutex<Option<Progress>>>,
        cancelled: oneshot::Receiver<()>,
    ) {
        let (signs, signals) = channel::unbounded_channel();
        let key = self.shared.begin(events.clone(), signs, progress);
        // The program may end and leave the server running, as `setsid` does. Only a closed connection
        // shows that the server is gone.
        let gone = self
            .process
            .as_ref()
            .filter(|_| self.peer.is_transport_closed());
        let result = match gone {
            Some(process) => Err(Fault::NotSent(process.describe_end().await)),
            None => self.await_answer(key, cancelled, signals).await,
        };
        self.shared.end(key);
        let result = match (result, &self.process) {
            (Err(Fault::Ended(_)), Some(process)) => {
                Err(Fault::Ended(process.describe_end().await))
            }
            (result, _) => result,
        };
        // Fails if the caller no longer waits.
        _ = events.send(Event::Answer(result));
    }

    /// Asks for the server's log messages about this request. A stateless server logs only for requests that
    /// ask for it.
    fn options(&self) -> PeerRequestOptions {
        let options = PeerRequestOptions::no_options();
        if !self.wants_logs {
            return options;
        }
        let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
        let meta: RequestMetaObject = serde_json::from_value(meta).unwrap_or_default();
        options.with_meta(meta)
    }

    async fn await_answer(
        &self,
        key: u64,
        mut cancelled: oneshot::Receiver<()>,
        mut signals: channel::UnboundedReceiver<Sign>,
    ) -> Result<Value, Fault> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(
            &self.method,
            Some(self.params.clone()),
        ));
        let raw = &self.shared.raw;
        let sent = self
            .peer
            .send_cancellable_request(request, self.options())
            .await;
        let mut handle = sent.map_err(|error| fault(&self.method, error, None, raw))?;
        let id = handle.id.clone();
        self.shared
            .identify(key, &id, &json!(handle.progress_token));
        let mut clock = Clock::new(self.timeout);
        let given_up = loop {
            tokio::select! {
                response = &mut handle.rx => {
                    let response = response.unwrap_or(Err(ServiceError::TransportClosed));
                    let answer = response.map_err(|error| fault(&self.method, error, Some(&id), raw));
                    let answer = answer.map(|_| raw.take_answer(&id).unwrap_or_default());
                    raw.forget(&id);
                    return answer;
                }
                Some(sign) = signals.recv() => clock.apply(sign),
                () = until(clock.deadline()) => {
                    break Fault::Timeout { method: self.method.clone(), timeout: clock.time_given() };
                }
                _ = &mut cancelled => break Fault::Interrupted,
            }
        };
        raw.forget(&id);
        self.cancel(id, &given_up).await;
        Err(given_up)
    }

    /// Cancels the request at the server.
    async fn cancel(&self, id: RequestId, reason: &Fault) {
        let params = CancelledNotificationParam::new(Some(id), Some(reason.to_string()));
        let notification = CancelledNotification::new(params);
        // Fails if the server is gone.
        _ = tokio::time::timeout(
            CLOSE_TIMEOUT,
            self.peer.send_notification(notification.into()),
        )
        .await;
    }
}

/// The deadline of a request.
///
/// Each sign of life extends it by the timeout, up to [`MOST_TIMEOUTS`] times the timeout in total. The
/// user's time for answers doesn't count.
struct Clock {
    timeout: Duration,
    deadline: Instant,
    /// The latest deadline that signs of life can reach.
    most: Instant,
    /// The number of open questions.
    open: usize,
    /// The time since when there are any.
    since: Instant,
}

impl Clock {
    fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            timeout,
            deadline: now + timeout,
            most: now + timeout * MOST_TIMEOUTS,
            open: 0,
            since: now,
        }
    }

    fn apply(&mut self, sign: Sign) {
        let now = Instant::now();
        match sign {
            Sign::Alive => {}
            Sign::Asking => {
                if self.open == 0 {
                    self.since = now;
                }
                self.open += 1;
            }
            Sign::Answered => {
                self.open = self.open.saturating_sub(1);
                if self.open == 0 {
                    self.most += now - self.since;
                }
            }
        }
        self.deadline = (now + self.timeout).min(self.most);
    }

    /// Returns the time limit that was exceeded.
    fn time_given(&self) -> Duration {
        if self.deadline < self.most {
            self.timeout
        } else {
            self.timeout * MOST_TIMEOUTS
        }
    }

    /// Returns the deadline; `None` while the user is asked.
    fn deadline(&self) -> Option<Instant> {
        (self.open == 0).then_some(self.deadline)
    }
}

/// Waits until a moment, or for ever if there is none.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Returns the fault of a failed request. A fault that the transport stored is more precise than rmcp's
/// error.
pub(crate) fn fault(method: &str, error: ServiceError, id: Option<&RequestId>, raw: &Raw) -> Fault {
    let known = raw.take_fault(id);
    match error {
        ServiceError::McpError(error) if error.code.0 == URL_REQUIRED => {
            let elicitations = error
                .data
                .as_ref()
                .and_then(|data| data["elicitations"].as_array());
            Fault::UrlRequired(elicitations.cloned().unwrap_or_default())
        }
        ServiceError::McpError(error) => match known {
            Some(fault @ Fault::Malformed(_)) => fault,
            _ => refusal(method, &error),
        },
        error => {
            known.unwrap_or_else(|| Fault::Ended(format!("the connection is closed: {error}")))
        }
    }
}

/// Returns the fault of a request that the server answered with an error.
pub(crate) fn refusal(method: &str, error: &ErrorData) -> Fault {
    let data = error.data.as_ref().filter(|data| !data.is_null());
    let data = data
        .map(|data| format!(" ({})", raw::excerpt(&data.to_string())))
        .unwrap_or_default();
    Fault::Refused {
        method: method.to_owned(),
        code: error.code.0,
        message: format!("{}{data}", error.message),
    }
}
