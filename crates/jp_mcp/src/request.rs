//! A request on its way: until it is answered, wanted no more, or has taken too long.

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

/// A page must be visited before a request can be answered (MCP 2025-11-25, "URL Elicitation Required Error").
const URL_REQUIRED: i32 = -32042;

/// How many times its timeout a request may take in all, however many signs of life there are: a
/// server that reports progress for ever would hold the turn for ever.
pub(crate) const MOST_TIMEOUTS: u32 = 10;
/// How long the end of a session, or the news that a request is given up, may take to get through.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A request on its way.
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
        // The program may have ended and left a server behind, as `setsid` does: only a closed
        // connection says that the server is gone.
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
        // Nobody waits any more where this fails.
        _ = events.send(Event::Done(result));
    }

    /// Asks for what the server logs meanwhile, which it does for one request at a time where each stands for itself.
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
                    let answer = answer.map(|_| raw.take(&id).unwrap_or_default());
                    raw.forget(&id);
                    return answer;
                }
                Some(sign) = signals.recv() => clock.take(sign),
                () = until(clock.deadline()) => {
                    break Fault::Timeout { method: self.method.clone(), timeout: clock.time_given() };
                }
                _ = &mut cancelled => break Fault::Interrupted,
            }
        };
        raw.forget(&id);
        self.withdraw(id, &given_up).await;
        Err(given_up)
    }

    /// Tells the server that nobody waits any more.
    async fn withdraw(&self, id: RequestId, reason: &Fault) {
        let params = CancelledNotificationParam::new(Some(id), Some(reason.to_string()));
        let notification = CancelledNotification::new(params);
        // It may be gone.
        _ = tokio::time::timeout(
            CLOSE_TIMEOUT,
            self.peer.send_notification(notification.into()),
        )
        .await;
    }
}

/// Says how long a request may still take: so long since the last sign of life, and some times that in all. The time that
/// a person takes to answer is theirs.
struct Clock {
    timeout: Duration,
    deadline: Instant,
    most: Instant,
    /// How many questions are open, and since when there are any.
    open: usize,
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

    fn take(&mut self, sign: Sign) {
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

    /// Returns how long the request had, once its time is over.
    fn time_given(&self) -> Duration {
        if self.deadline < self.most {
            self.timeout
        } else {
            self.timeout * MOST_TIMEOUTS
        }
    }

    /// Returns when the request is given up; never while a person is asked.
    fn deadline(&self) -> Option<Instant> {
        (self.open == 0).then_some(self.deadline)
    }
}

/// Waits until a moment; for ever where there is none.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Says what went wrong with a request.
pub(crate) fn fault(method: &str, error: ServiceError, id: Option<&RequestId>, raw: &Raw) -> Fault {
    let known = raw.fault(id);
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

/// Says what a server answered instead of a result.
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
