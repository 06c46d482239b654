//! The connection to a server: its requests and its changes.

use std::{
    cell::Cell,
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::Ordering::Relaxed,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{ProtocolVersion, ServerPeerInfo, SubscriptionFilter},
    service::RunningService,
};
use serde_json::{Map, Value, json};
use tokio::{runtime::Handle, sync::oneshot};

use crate::{
    Caller, Change, Elicitation, Elicited, Fault, Limits, Progress, ResourceInfo, ServerError,
    attendant::{Attendant, Event, Shared},
    request::{CLOSE_TIMEOUT, MOST_TIMEOUTS, Request, fault},
    stdio::Process,
};

/// The interval at which a wait checks if the caller cancelled. A person doesn't notice it.
const TICK: Duration = Duration::from_millis(50);
/// The most times that a stream of changes is opened. It bounds the requests to a server that ends each
/// stream at once.
const MOST_STREAMS: usize = 1_000;
/// The pause before an ended stream is reopened.
const STREAM_PAUSE: Duration = Duration::from_secs(1);

/// The connection to a server.
///
/// Each request blocks its caller's thread; several threads may make requests at once.
pub struct Connection {
    pub(crate) name: String,
    pub(crate) runtime: Handle,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) service: Mutex<Option<RunningService<RoleClient, Attendant>>>,
    pub(crate) process: Option<Arc<Process>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) about: About,
    pub(crate) timeout: Duration,
    pub(crate) limits: Limits,
    /// Held by the running call if questions of the server don't name their call.
    pub(crate) calling: Mutex<()>,
    /// The URIs of followed links in results.
    pub(crate) followed: Mutex<HashSet<String>>,
    /// The list of resources at the first read.
    pub(crate) listed: OnceLock<Vec<ResourceInfo>>,
}

/// A server's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The negotiated revision of MCP.
    pub revision: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Its instructions for models.
    pub instructions: Option<String>,
    /// True if it has tools.
    pub has_tools: bool,
    /// True if it has resources.
    pub has_resources: bool,
    /// True if it completes variables of templates.
    pub has_completions: bool,
    /// True if it can notify of changes to a resource.
    pub has_subscriptions: bool,
    /// True if it notifies when its list of tools changes.
    pub tells_of_tools: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name)
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}

impl Default for About {
    fn default() -> Self {
        Self::read(&ServerPeerInfo::new(
            ProtocolVersion::V_2025_11_25,
            Default::default(),
        ))
    }
}

impl About {
    pub(crate) fn read(info: &ServerPeerInfo) -> Self {
        let capabilities = &info.capabilities;
        let server = info.server_info.as_ref();
        Self {
            revision: info.protocol_version.to_string(),
            name: server
                .map(|server| server.name.clone())
                .filter(|name| !name.is_empty()),
            version: server
                .map(|server| server.version.clone())
                .filter(|version| !version.is_empty()),
            instructions: info.instructions.clone(),
            has_tools: capabilities.tools.is_some(),
            has_resources: capabilities.resources.is_some(),
            has_completions: capabilities.completions.is_some(),
            tells_of_tools: capabilities
                .tools
                .as_ref()
                .is_some_and(|tools| tools.list_changed == Some(true)),
            has_subscriptions: capabilities
                .resources
                .as_ref()
                .is_some_and(|resources| resources.subscribe == Some(true)),
        }
    }

    /// Returns true if there are no sessions (MCP from 2026-07-28 on).
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.revision.as_str() >= "2026"
    }
}

impl Connection {
    /// Returns the server's name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the server's description of itself.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns true if the connection is closed, or if the server's notifications no longer arrive.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed() || self.shared.is_deaf.load(Relaxed)
    }

    /// Takes the changes of resources and lists, except those of tools, since the last call.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.shared.take_changes(|change| *change != Change::Tools)
    }

    /// Returns true if the server's list of tools has changed since the last call.
    #[must_use]
    pub fn has_other_tools(&self) -> bool {
        !self
            .shared
            .take_changes(|change| *change == Change::Tools)
            .is_empty()
    }

    /// Subscribes to changes of the server's lists if that needs a request. Doesn't wait.
    pub fn watch_lists(&self) {
        if self.about.is_stateless() && self.about.tells_of_tools {
            drop(self.listen(&[]));
        }
    }

    /// Subscribes to changes of these resources, which [`Self::changes`] returns.
    ///
    /// With a stateless revision, one stream carries these and the changes of lists.
    pub fn subscribe(&self, uris: &[&str], caller: &dyn Caller) -> Result<(), ServerError> {
        if !self.about.is_stateless() {
            if !self.about.has_subscriptions {
                return Err(self.error(Fault::Unsupported("subscriptions")));
            }
            return uris.iter().try_for_each(|uri| {
                self.request("resources/subscribe", json!({"uri": uri}), caller)
                    .map(drop)
            });
        }
        let method = "subscriptions/listen";
        match self.listen(uris).recv_timeout(self.timeout) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.error(fault(method, error, None, &self.shared.raw))),
            Err(_) => Err(self.error(Fault::Timeout {
                method: method.to_owned(),
                timeout: self.timeout,
            })),
        }
    }

    /// Opens a stream of changes. The receiver gets a message when it is open.
    fn listen(&self, uris: &[&str]) -> mpsc::Receiver<Result<(), ServiceError>> {
        let mut filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .resources_list_changed();
        // An empty list would still be in the request.
        if !uris.is_empty() {
            filter = filter.resource_subscriptions(uris.iter().copied());
        }
        let filter = filter.build();
        let (peer, shared) = (self.peer.clone(), Arc::clone(&self.shared));
        let uris: Vec<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
        let (acknowledge, acknowledged) = mpsc::channel();
        self.runtime.spawn(async move {
            let mut acknowledge = Some(acknowledge);
            for attempt in 0..MOST_STREAMS {
                let mut stream = match peer.listen(filter.clone()).await {
                    Ok(stream) => stream,
                    Err(error) => {
                        // Fails if the caller doesn't wait.
                        _ = acknowledge.map(|acknowledge| acknowledge.send(Err(error)));
                        break;
                    }
                };
                _ = acknowledge
                    .take()
                    .map(|acknowledge| acknowledge.send(Ok(())));
                if attempt > 0 {
                    // No stream was open meanwhile, so anything may have changed.
                    uris.iter()
                        .for_each(|uri| shared.note_change(Change::Resource(uri.clone())));
                    shared.note_change(Change::Tools);
                }
                while let Ok(Some(notification)) = stream.next().await {
                    shared.handle_notification(notification);
                }
                tokio::time::sleep(STREAM_PAUSE).await;
            }
            shared.is_deaf.store(true, Relaxed);
        });
        acknowledged
    }

    /// Waits until no other call of a tool runs. The guard excludes other calls.
    ///
    /// Before 2026-07-28, a question of the server doesn't name its call. jp makes one call at a time to
    /// such a server, so that the user never answers for the wrong tool.
    pub(crate) fn wait_for_turn(
        &self,
        caller: &dyn Caller,
    ) -> Result<Option<MutexGuard<'_, ()>>, ServerError> {
        if self.about.is_stateless() {
            return Ok(None);
        }
        loop {
            match self.calling.try_lock() {
                Ok(guard) => return Ok(Some(guard)),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(Some(poisoned.into_inner())),
                Err(TryLockError::WouldBlock) if caller.is_cancelled() => {
                    return Err(self.error(Fault::Interrupted));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(TICK / 10),
            }
        }
    }

    /// Makes a request and waits for its answer. The caller answers the server's questions.
    pub(crate) fn request(
        &self,
        method: &str,
        params: Value,
        caller: &dyn Caller,
    ) -> Result<Value, ServerError> {
        let asking = Asking {
            connection: self,
            caller,
            count: Cell::new(0),
        };
        let mut next_params = params.clone();
        for _ in 0..=self.limits.rounds {
            let answer = match self.request_once(method, next_params, &asking) {
                Err(ServerError {
                    fault: Fault::UrlRequired(pages),
                    ..
                }) => {
                    self.ask_to_visit(&pages, &asking)?;
                    next_params = params.clone();
                    continue;
                }
                answer => answer?,
            };
            if answer.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(answer);
            }
            next_params = params.clone();
            let responses = self.responses(&answer, &asking)?;
            next_params["inputResponses"] = responses.into();
            if let Some(state) = answer.get("requestState") {
                next_params["requestState"] = state.clone();
            }
        }
        Err(self.error(Fault::TooManyRounds(self.limits.rounds)))
    }

    /// Answers the questions in a server's answer (MCP 2026-07-28, "Multi Round-Trip Requests").
    fn responses(
        &self,
        answer: &Value,
        asking: &Asking<'_>,
    ) -> Result<Map<String, Value>, ServerError> {
        let requests = answer.get("inputRequests").and_then(Value::as_object);
        let mut responses = Map::new();
        for (key, request) in requests.into_iter().flatten() {
            let params = request.get("params").unwrap_or(&Value::Null);
            let response = match request
                .get("method")
                .and_then(Value::as_str)
                .unwrap_or_default()
            {
                "elicitation/create" => {
                    let read = Elicitation::read(params);
                    let elicitation = read.map_err(|reason| {
                        self.error(Fault::Malformed(format!("it sent {reason}")))
                    })?;
                    asking.answer(&elicitation)?.into_result()
                }
                "roots/list" => self.shared.roots(),
                method => {
                    let reason =
                        format!("it sent the request {method:?}, which jp does not support");
                    return Err(self.error(Fault::Malformed(reason)));
                }
            };
            responses.insert(key.clone(), response);
        }
        Ok(responses)
    }

    /// Asks the caller to visit the pages that the server requires.
    fn ask_to_visit(&self, pages: &[Value], asking: &Asking<'_>) -> Result<(), ServerError> {
        for page in pages {
            let text = |key: &str| page.get(key).and_then(Value::as_str).map(str::to_owned);
            let (Some(message), Some(url)) = (text("message"), text("url")) else {
                return Err(self.error(Fault::Malformed(
                    "it wants you to visit a page but does not name it".into(),
                )));
            };
            if !matches!(
                asking.answer(&Elicitation::Url { message, url })?,
                Elicited::Accept(_)
            ) {
                return Err(self.error(Fault::Declined));
            }
        }
        Ok(())
    }

    /// Makes one request and waits for its answer.
    fn request_once(
        &self,
        method: &str,
        params: Value,
        asking: &Asking<'_>,
    ) -> Result<Value, ServerError> {
        let caller = asking.caller;
        let (events, arrived) = mpsc::channel();
        let progress = Arc::new(Mutex::new(None));
        let (cancel, cancelled) = oneshot::channel();
        let request = Request {
            method: method.to_owned(),
            params,
            peer: self.peer.clone(),
            shared: Arc::clone(&self.shared),
            process: self.process.clone(),
            timeout: caller.timeout().unwrap_or(self.timeout),
            wants_logs: self.shared.wants_logs() && self.about.is_stateless(),
        };
        self.runtime
            .spawn(request.run(events, Arc::clone(&progress), cancelled));
        let mut cancel = Some(cancel);
        let result = loop {
            self.report(&progress, caller);
            match arrived.recv_timeout(TICK) {
                Ok(Event::Answer(result)) => break result,
                Ok(Event::Question(elicitation, reply)) => match asking.answer(&elicitation) {
                    // Fails if the request is gone.
                    Ok(answer) => _ = reply.send(answer),
                    // Dropping `cancel` cancels the request.
                    Err(error) => break Err(error.fault),
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(Fault::Ended("the connection is closed".to_owned()));
                }
            }
            if caller.is_cancelled()
                && let Some(cancel) = cancel.take()
            {
                _ = cancel.send(());
            }
        };
        // Log messages of the server come before its answer.
        self.report(&progress, caller);
        result.map_err(|fault| self.error_with_stderr(fault))
    }

    /// Passes log messages and the newest progress to the caller.
    fn report(&self, progress: &Mutex<Option<Progress>>, caller: &dyn Caller) {
        for remark in &self.shared.raw.take_remarks() {
            caller.report_log(remark);
        }
        let newest = progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(progress) = &newest {
            caller.report_progress(progress);
        }
    }

    /// Makes an error from a fault. If the server may be gone, the error has its last lines of stderr.
    fn error_with_stderr(&self, fault: Fault) -> ServerError {
        let is_gone = matches!(
            fault,
            Fault::Ended(_) | Fault::NotSent(_) | Fault::MessageTooLong(_) | Fault::Timeout { .. }
        );
        // Each line is reported once.
        let stderr = self
            .process
            .as_ref()
            .filter(|_| is_gone)
            .map(|process| process.take_stderr())
            .unwrap_or_default();
        ServerError {
            stderr,
            ..self.error(fault)
        }
    }

    /// Returns the time limit for an operation with several requests, regardless of progress.
    pub(crate) fn longest(&self) -> Duration {
        self.timeout * MOST_TIMEOUTS
    }

    pub(crate) fn error(&self, fault: Fault) -> ServerError {
        ServerError::new(&self.name, fault)
    }

    /// Ends the session and the program.
    pub(crate) async fn close(&self) {
        let service = self
            .service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut service) = service {
            if let Some(process) = &self.process {
                process.stop().await;
            }
            _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
        }
    }
}

/// The questions of one request.
struct Asking<'a> {
    connection: &'a Connection,
    caller: &'a dyn Caller,
    count: Cell<usize>,
}

impl Asking<'_> {
    /// Asks the caller, within the bound on questions.
    fn answer(&self, elicitation: &Elicitation) -> Result<Elicited, ServerError> {
        let limit = self.connection.limits.rounds;
        if self.count.replace(self.count.get() + 1) >= limit {
            return Err(self.connection.error(Fault::TooManyRounds(limit)));
        }
        let answer = self.caller.answer(elicitation);
        match self.caller.is_cancelled() {
            true => Err(self.connection.error(Fault::Interrupted)),
            false => Ok(answer),
        }
    }
}
