//! Answers the requests of a server, and passes on its notifications.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc::Sender,
    },
};

use rmcp::{
    ErrorData, RoleClient, Service,
    model::{
        ClientCapabilities, ClientResult, CustomResult, ElicitationCapability,
        FormElicitationCapability, GetExtensions, Implementation, InitializeRequestParams,
        ProtocolVersion, RequestId, RootsCapabilities, ServerNotification, ServerRequest,
        UrlElicitationCapability,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext},
};
use serde_json::{Value, json};
use tokio::sync::{mpsc::UnboundedSender, oneshot};
use url::Url;

use crate::{Client, Elicitation, Elicited, Progress, Revision, raw::Raw};

/// The most changes of a server that are kept until the client takes them. Further ones are dropped.
const MAX_CHANGES: usize = 1_000;

/// An event of a running request, for the thread that waits for it.
pub(crate) enum Event {
    Question(Elicitation, oneshot::Sender<Elicited>),
    Answer(Result<Value, crate::Fault>),
}

/// A sign that changes the deadline of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The server is working on it.
    Alive,
    /// The user is asked. Their time doesn't count.
    Asking,
    /// The user has answered.
    Answered,
}

/// A running request.
#[derive(Clone)]
pub(crate) struct Running {
    key: u64,
    id: Option<RequestId>,
    token: Option<String>,
    events: Sender<Event>,
    signs: UnboundedSender<Sign>,
    /// The newest progress that the waiting thread hasn't taken.
    progress: Arc<Mutex<Option<Progress>>>,
    /// The number of questions of the server.
    questions: Arc<AtomicUsize>,
}

/// A change that a server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The list of its tools.
    Tools,
    /// The list of its resources, or of its templates.
    Resources,
    /// The list of its prompts.
    Prompts,
    /// The content of a resource.
    Resource(String),
}

/// The state that a connection shares with its [`Attendant`].
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) raw: Arc<Raw>,
    client: Client,
    running: Mutex<Vec<Running>>,
    changes: Mutex<Vec<Change>>,
    keys: AtomicU64,
    /// The most questions for one request.
    rounds: usize,
    /// True if a stream of changes ended and could not be reopened.
    pub(crate) is_deaf: AtomicBool,
}

/// The service that rmcp runs for a connection.
#[derive(Debug, Clone)]
pub(crate) struct Attendant {
    shared: Arc<Shared>,
    /// The revision to request with `initialize`.
    version: ProtocolVersion,
}

impl Attendant {
    pub(crate) fn new(shared: Arc<Shared>, revision: Option<Revision>) -> Self {
        let version = match revision {
            Some(Revision::V2025_03_26) => ProtocolVersion::V_2025_03_26,
            Some(Revision::V2025_06_18) => ProtocolVersion::V_2025_06_18,
            Some(Revision::V2025_11_25 | Revision::V2026_07_28) | None => {
                ProtocolVersion::V_2025_11_25
            }
        };
        Self { shared, version }
    }
}

impl Shared {
    pub(crate) fn new(raw: Arc<Raw>, client: Client, rounds: usize) -> Self {
        Self {
            raw,
            client,
            running: Mutex::default(),
            changes: Mutex::default(),
            keys: AtomicU64::new(0),
            rounds,
            is_deaf: AtomicBool::new(false),
        }
    }

    pub(crate) fn wants_logs(&self) -> bool {
        self.client.wants_logs
    }

    /// Adds a running request and returns its key for [`Self::identify`] and [`Self::end`].
    pub(crate) fn begin(
        &self,
        events: Sender<Event>,
        signs: UnboundedSender<Sign>,
        progress: Arc<Mutex<Option<Progress>>>,
    ) -> u64 {
        let key = self.keys.fetch_add(1, Relaxed);
        self.running().push(Running {
            key,
            id: None,
            token: None,
            events,
            signs,
            progress,
            questions: Arc::default(),
        });
        key
    }

    /// Sets the protocol's id and progress token of a request.
    pub(crate) fn identify(&self, key: u64, id: &RequestId, token: &Value) {
        if let Some(running) = self.running().iter_mut().find(|running| running.key == key) {
            (running.id, running.token) = (Some(id.clone()), Some(token.to_string()));
        }
    }

    pub(crate) fn end(&self, key: u64) {
        self.running().retain(|running| running.key != key);
    }

    /// Takes the wanted changes since the last call.
    pub(crate) fn take_changes(&self, is_wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.extract_if(.., |change| is_wanted(change)).collect()
    }

    pub(crate) fn note_change(&self, change: Change) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() < MAX_CHANGES && !changes.contains(&change) {
            changes.push(change);
        }
    }

    /// Handles a notification.
    pub(crate) fn handle_notification(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => self.note_change(Change::Tools),
            ServerNotification::ResourceListChangedNotification(_) => {
                self.note_change(Change::Resources)
            }
            ServerNotification::PromptListChangedNotification(_) => {
                self.note_change(Change::Prompts)
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.note_change(Change::Resource(updated.params.uri));
            }
            ServerNotification::ProgressNotification(progress) => {
                self.note_progress(&json!(progress.params))
            }
            _ => {}
        }
    }

    fn note_progress(&self, params: &Value) {
        let token = params["progressToken"].to_string();
        let running = self
            .running()
            .iter()
            .find(|running| running.token.as_ref() == Some(&token))
            .cloned();
        if let (Some(running), Some(progress)) = (running, Progress::read(params)) {
            // Fails if the request has just ended.
            _ = running.signs.send(Sign::Alive);
            *running
                .progress
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(progress);
        }
    }

    /// Asks the caller of the request that a question belongs to.
    ///
    /// If the request is unknown, the question belongs to the only running one. If several run, it is
    /// declined, because the user must not answer for the wrong one.
    pub(crate) async fn ask(
        &self,
        elicitation: Elicitation,
        request: Option<&RequestId>,
    ) -> Elicited {
        let Some(running) = self.find_running(request) else {
            self.raw.remark(
                "it asked a question that belongs to no known request; jp declined it".to_owned(),
            );
            return Elicited::Decline;
        };
        if running.questions.fetch_add(1, Relaxed) > self.rounds {
            return Elicited::Decline;
        }
        let (reply, answer) = oneshot::channel();
        _ = running.signs.send(Sign::Asking);
        let answer = match running.events.send(Event::Question(elicitation, reply)) {
            Ok(()) => answer.await.unwrap_or(Elicited::Cancel),
            Err(_) => Elicited::Cancel,
        };
        _ = running.signs.send(Sign::Answered);
        answer
    }

    fn find_running(&self, request: Option<&RequestId>) -> Option<Running> {
        let running = self.running();
        match (request, running.as_slice()) {
            (Some(id), all) => all
                .iter()
                .find(|running| running.id.as_ref() == Some(id))
                .cloned(),
            (None, [one]) => Some(one.clone()),
            (None, _) => None,
        }
    }

    /// Returns the result of `roots/list`. The workspace is the only root.
    pub(crate) fn roots(&self) -> Value {
        let root: &PathBuf = &self.client.root;
        let uri = Url::from_file_path(root)
            .map(String::from)
            .unwrap_or_default();
        let name = root
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        match name {
            Some(name) => json!({"roots": [{"uri": uri, "name": name}]}),
            None => json!({"roots": [{"uri": uri}]}),
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Service<RoleClient> for Attendant {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let params = self.shared.raw.take_question(&context.id);
        let (method, origin) = match &request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::ListRootsRequest(_) => return Ok(custom_result(self.shared.roots())),
            ServerRequest::CreateMessageRequest(_) => ("sampling/createMessage", None),
            ServerRequest::ElicitRequest(request) => ("elicitation/create", origin(request)),
            ServerRequest::CustomRequest(request) => (request.method.as_str(), origin(request)),
            _ => ("what it asks for", None),
        };
        match method {
            "elicitation/create" => {
                let elicitation = Elicitation::read(&params)
                    .map_err(|reason| ErrorData::invalid_params(reason, None))?;
                let answer = self.shared.ask(elicitation, origin).await;
                Ok(custom_result(answer.into_result()))
            }
            method => Err(ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                format!("this client does not offer `{method}`"),
                None,
            )),
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        self.shared.handle_notification(notification);
        Ok(())
    }

    fn get_info(&self) -> InitializeRequestParams {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default()),
        );
        capabilities.roots = Some(RootsCapabilities::default());
        InitializeRequestParams::new(
            capabilities,
            Implementation::new("jp", &self.shared.client.version),
        )
        .with_protocol_version(self.version.clone())
    }
}

fn custom_result(result: Value) -> ClientResult {
    ClientResult::CustomResult(CustomResult::new(result))
}

/// Returns the request whose stream carried a server's request, if the transport knows it.
fn origin(request: &impl GetExtensions) -> Option<&RequestId> {
    match request.extensions().get::<InboundStreamOrigin>() {
        Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
        _ => None,
    }
}
