//! The connection to a server.

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
    model::{
        ClientRequest, CustomRequest, ErrorCode, ProtocolVersion, ServerPeerInfo,
        SubscriptionFilter,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
    },
};
use serde_json::{Map, Value, json};
use tokio::{runtime::Handle, sync::oneshot};

use crate::{
    Caller, Change, Client, Elicitation, Elicited, Endpoint, Fault, Limits, ResourceInfo, Revision,
    ServerConfig, ServerError, Tokens, Transport,
    attendant::{Attendant, Event, Shared},
    http::{self, Http},
    probe::Probing,
    raw::Raw,
    request::{CLOSE_TIMEOUT, MOST_TIMEOUTS, Request, fault, refusal},
    stdio::{self, Process},
};

/// How often a wait looks whether the caller cancelled: faster than a person notices.
const TICK: Duration = Duration::from_millis(50);
/// How often a stream of changes that ended is opened again, and the pause before. Both bound the
/// requests to a server that ends each stream at once.
const MOST_STREAMS: usize = 1_000;
const STREAM_PAUSE: Duration = Duration::from_secs(1);

/// The connection to a server.
///
/// Each request blocks its caller's thread; several threads may make requests at once.
pub struct Connection {
    pub(crate) name: String,
    runtime: Handle,
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Attendant>>>,
    pub(crate) process: Option<Arc<Process>>,
    pub(crate) shared: Arc<Shared>,
    about: About,
    timeout: Duration,
    pub(crate) limits: Limits,
    /// Held by the running call if the protocol doesn't say which call a question belongs to.
    calling: Mutex<()>,
    /// URIs that links of results led to.
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

/// Starts a server and negotiates the revision.
pub(crate) async fn connect(
    config: &ServerConfig,
    client: &Client,
    tokens: Option<&Tokens>,
    limits: Limits,
) -> Result<Connection, ServerError> {
    let raw = Arc::new(Raw::default());
    let shared = Arc::new(Shared::new(Arc::clone(&raw), client.clone(), limits.rounds));
    let failure = |fault| ServerError::new(&config.name, fault);
    let attendant = Attendant::new(Arc::clone(&shared), config.revision);
    let (process, served) = match &config.transport {
        Transport::Stdio(program) => {
            let (process, lines) =
                stdio::start(program, Arc::clone(&raw), limits).map_err(failure)?;
            let lines = Probing::new(lines, config.startup_timeout);
            let served = serve_client_with_lifecycle(attendant, lines, lifecycle(config.revision));
            let served = async { Ok(served.await?) };
            (Some(process), ready(config, served).await)
        }
        Transport::Http(endpoint) => {
            let http = Http::new(endpoint, tokens, Arc::clone(&raw), limits).map_err(failure)?;
            (
                None,
                ready(
                    config,
                    serve_http(config.revision, endpoint, &http, limits, attendant),
                )
                .await,
            )
        }
    };
    let service = match served {
        Ok(service) => service,
        Err(failure) => return Err(not_ready(config, failure, process, &raw).await),
    };
    let peer = service.peer().clone();
    let info = peer.peer_info();
    let about = info.as_deref().map(About::read).unwrap_or_default();
    let logs = info
        .as_deref()
        .is_some_and(|info| info.capabilities.logging.is_some());
    if client.wants_logs && logs && !about.is_stateless() {
        tokio::spawn(ask_for_logs(peer.clone()));
    }
    Ok(Connection {
        name: config.name.clone(),
        runtime: Handle::current(),
        peer,
        service: Mutex::new(Some(service)),
        process: process.map(Arc::new),
        shared,
        about,
        timeout: config.timeout,
        limits,
        calling: Mutex::default(),
        followed: Mutex::default(),
        listed: OnceLock::new(),
    })
}

/// Asks a server to log. It need not.
async fn ask_for_logs(peer: Peer<RoleClient>) {
    let request = CustomRequest::new("logging/setLevel", Some(json!({"level": "info"})));
    _ = peer
        .send_request(ClientRequest::CustomRequest(request))
        .await;
}

/// Probes for the newest revision and falls back to `initialize`, unless one of them is asked for.
fn lifecycle(revision: Option<Revision>) -> ClientLifecycleMode {
    let newest = vec![ProtocolVersion::V_2026_07_28];
    match revision {
        None => ClientLifecycleMode::Auto {
            preferred_versions: newest,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        Some(Revision::V2026_07_28) => ClientLifecycleMode::Discover {
            preferred_versions: newest,
        },
        Some(_) => ClientLifecycleMode::Initialize,
    }
}

type Served = Result<RunningService<RoleClient, Attendant>, NotReady>;

/// Reason why a session did not start.
enum NotReady {
    /// The server took too long.
    Late,
    /// A failure with a cause that jp knows.
    Known(Fault),
    /// rmcp could not start the session.
    Failed(Box<ClientInitializeError>),
}

impl From<ClientInitializeError> for NotReady {
    fn from(error: ClientInitializeError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Starts a session over HTTP.
///
/// Unlike on stdio, each request has its own answer there, so jp waits for the one to the probe, however long that takes;
/// rmcp would give it up and take it for the next one. A session of an older revision begins on a transport of its own.
async fn serve_http(
    revision: Option<Revision>,
    endpoint: &Endpoint,
    http: &Http,
    limits: Limits,
    attendant: Attendant,
) -> Served {
    let serve = async |lifecycle| {
        let transport = http::transport(http.clone(), endpoint, limits).map_err(NotReady::Known)?;
        Ok(serve_client_with_lifecycle(attendant.clone(), transport, lifecycle).await?)
    };
    match serve(lifecycle(Some(revision.unwrap_or(Revision::V2026_07_28)))).await {
        Err(NotReady::Failed(error)) if revision.is_none() && is_of_older_server(&error) => {
            serve(ClientLifecycleMode::Initialize).await
        }
        served => served,
    }
}

/// Returns whether a server that does not know `server/discover` may have answered it with this error.
fn is_of_older_server(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::JsonRpcError(error) = error else {
        return false;
    };
    !matches!(
        error.code,
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | ErrorCode::HEADER_MISMATCH
    )
}

async fn ready(config: &ServerConfig, served: impl Future<Output = Served>) -> Served {
    let served = tokio::time::timeout(config.startup_timeout, served).await;
    let mut service = served.map_err(|_| NotReady::Late)??;
    let version = service
        .peer()
        .peer_info()
        .map(|info| info.protocol_version.to_string());
    match version.filter(|version| !Revision::SPOKEN.contains(&&**version)) {
        None => Ok(service),
        Some(version) => {
            _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
            Err(NotReady::Known(Fault::NoCommonRevision(version)))
        }
    }
}

/// Ends a server that did not get ready, and returns the error.
async fn not_ready(
    config: &ServerConfig,
    failure: NotReady,
    process: Option<Process>,
    raw: &Raw,
) -> ServerError {
    let fault = match (&failure, raw.start_fault()) {
        (NotReady::Known(fault), _) => fault.clone(),
        (NotReady::Late, None | Some(Fault::Status(_))) => {
            Fault::StartTimeout(config.startup_timeout)
        }
        (_, Some(fault)) => fault,
        (NotReady::Failed(error), None) => match (start_fault(error), &process) {
            (Some(fault), _) => fault,
            (None, Some(process)) => Fault::Ended(process.describe_end().await),
            (None, None) => Fault::Ended(format!("the connection failed: {error}")),
        },
    };
    let mut stderr = Vec::new();
    if let Some(process) = process {
        process.stop().await;
        stderr = process.take_stderr();
    }
    ServerError {
        stderr,
        ..ServerError::new(&config.name, fault)
    }
}

/// Returns the fault of a server that answered the handshake with something else; `None` if it
/// did not answer.
fn start_fault(error: &ClientInitializeError) -> Option<Fault> {
    match error {
        ClientInitializeError::JsonRpcError(error) => Some(refusal("initialize", error)),
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let all: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            Some(Fault::NoCommonRevision(all.join(", ")))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => start_fault(fallback),
        ClientInitializeError::ExpectedInitResponse(Some(_))
        | ClientInitializeError::ExpectedInitResult(Some(_))
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => Some(Fault::Malformed(
            "it answered `initialize` with something else".to_owned(),
        )),
        _ => None,
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
    fn read(info: &ServerPeerInfo) -> Self {
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
                .is_some_and(|of| of.list_changed == Some(true)),
            has_subscriptions: capabilities
                .resources
                .as_ref()
                .is_some_and(|of| of.subscribe == Some(true)),
        }
    }

    /// Returns whether each request stands for itself (MCP from 2026-07-28 on).
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

    /// Returns whether the server is gone, or sends no notifications any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed() || self.shared.is_deaf.load(Relaxed)
    }

    /// Returns the changes of resources and their lists since the last call.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.shared.changes(|change| *change != Change::Tools)
    }

    /// Returns whether the server's list of tools has changed since the last call.
    #[must_use]
    pub fn has_other_tools(&self) -> bool {
        !self
            .shared
            .changes(|change| *change == Change::Tools)
            .is_empty()
    }

    /// Subscribes to changes of the server's lists, if that needs a request; does not wait.
    pub fn watch_lists(&self) {
        if self.about.is_stateless() && self.about.tells_of_tools {
            drop(self.listen(&[]));
        }
    }

    /// Subscribes to changes of these resources, which [`Self::changes`] returns.
    ///
    /// With a stateless revision this is one stream, which carries changes of lists too.
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

    /// Opens a stream of changes; the receiver gets a message once it is open.
    fn listen(&self, uris: &[&str]) -> mpsc::Receiver<Result<(), ServiceError>> {
        let mut filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .resources_list_changed();
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
                        // Fails if the caller doesn't wait for it.
                        _ = acknowledge.map(|acknowledge| acknowledge.send(Err(error)));
                        break;
                    }
                };
                _ = acknowledge
                    .take()
                    .map(|acknowledge| acknowledge.send(Ok(())));
                if attempt > 0 {
                    // Changes in between were not sent, so anything may have changed.
                    uris.iter()
                        .for_each(|uri| shared.note_change(Change::Resource(uri.clone())));
                    shared.note_change(Change::Tools);
                }
                while let Ok(Some(notification)) = stream.next().await {
                    shared.take_notification(notification);
                }
                tokio::time::sleep(STREAM_PAUSE).await;
            }
            shared.is_deaf.store(true, Relaxed);
        });
        acknowledged
    }

    /// Waits for its turn to call a tool.
    ///
    /// Before 2026-07-28 a question of the server doesn't name the call that it belongs to. jp makes
    /// one call at a time to such a server, so that the user never answers for the wrong tool.
    pub(crate) fn turn(
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

    /// Makes a request and waits for its answer; the caller answers the questions in between.
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
        let mut asked = params.clone();
        for _ in 0..=self.limits.rounds {
            let answer = match self.request_once(method, asked, &asking) {
                Err(ServerError {
                    fault: Fault::UrlRequired(pages),
                    ..
                }) => {
                    self.ask_to_visit(&pages, &asking)?;
                    asked = params.clone();
                    continue;
                }
                answer => answer?,
            };
            if answer.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(answer);
            }
            asked = params.clone();
            let responses = self.responses(&answer, &asking)?;
            asked["inputResponses"] = responses.into();
            if let Some(state) = answer.get("requestState") {
                asked["requestState"] = state.clone();
            }
        }
        Err(self.error(Fault::TooManyRounds(self.limits.rounds)))
    }

    /// Answers the questions that a server puts before its result (MCP 2026-07-28, "Multi Round-Trip Requests").
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
                    let reason = format!("it asks back for {method:?}, which jp does not offer");
                    return Err(self.error(Fault::Malformed(reason)));
                }
            };
            responses.insert(key.clone(), response);
        }
        Ok(responses)
    }

    /// Asks the caller to visit the pages that the server wants visited first.
    fn ask_to_visit(&self, pages: &[Value], asking: &Asking<'_>) -> Result<(), ServerError> {
        for page in pages {
            let text = |key: &str| page.get(key).and_then(Value::as_str).map(str::to_owned);
            let (Some(message), Some(url)) = (text("message"), text("url")) else {
                return Err(self.error(Fault::Malformed(
                    "it wants a page visited and does not say which".into(),
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
        let tell = || {
            self.shared
                .raw
                .remarks()
                .iter()
                .for_each(|remark| caller.logged(remark));
            let newest = progress
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            newest
                .iter()
                .for_each(|progress| caller.progressed(progress));
        };
        let result = loop {
            tell();
            match arrived.recv_timeout(TICK) {
                Ok(Event::Done(result)) => break result,
                Ok(Event::Asked(elicitation, reply)) => match asking.answer(&elicitation) {
                    // Fails if the request is gone.
                    Ok(answer) => _ = reply.send(answer),
                    // Dropping `cancel` gives the request up.
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
        tell();
        result.map_err(|fault| self.error_with_stderr(fault))
    }

    /// Makes an error of a fault; if the server may be gone, with its last lines of stderr.
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

    /// Returns the most that one operation may take, however many signs of life there are.
    pub(crate) fn longest(&self) -> Duration {
        self.timeout * MOST_TIMEOUTS
    }

    pub(crate) fn error(&self, fault: Fault) -> ServerError {
        ServerError::new(&self.name, fault)
    }

    /// Ends the session, and the program.
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
        let answer = self.caller.asked(elicitation);
        match self.caller.is_cancelled() {
            true => Err(self.connection.error(Fault::Interrupted)),
            false => Ok(answer),
        }
    }
}
