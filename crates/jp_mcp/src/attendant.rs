//! Answers what a server asks by itself, and passes on what it tells.

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

/// How many changes of a server are kept for whoever asks for them.
const MAX_CHANGES: usize = 1_000;

/// What comes up while a request runs, for whoever waits for it.
pub(crate) enum Event {
    Asked(Elicitation, oneshot::Sender<Elicited>),
    Done(Result<Value, crate::Fault>),
}

/// What changes how long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The server is at it.
    Alive,
    /// A person is asked, who has all the time they need.
    Asking,
    /// They have answered.
    Answered,
}

/// A request that runs.
#[derive(Clone)]
pub(crate) struct Running {
    key: u64,
    id: Option<RequestId>,
    token: Option<String>,
    events: Sender<Event>,
    signs: UnboundedSender<Sign>,
    /// How far it is, until whoever waits has seen it.
    progress: Arc<Mutex<Option<Progress>>>,
    /// How often something was asked for it.
    asked: Arc<AtomicUsize>,
}

/// Something that a server says has changed.
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

/// What a connection shares with what rmcp runs for it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) raw: Arc<Raw>,
    client: Client,
    running: Mutex<Vec<Running>>,
    changes: Mutex<Vec<Change>>,
    keys: AtomicU64,
    /// How often one request may ask.
    rounds: usize,
    /// Whether a stream of changes ended and could not be opened again.
    pub(crate) is_deaf: AtomicBool,
}

/// What rmcp runs for a connection.
#[derive(Debug, Clone)]
pub(crate) struct Attendant {
    shared: Arc<Shared>,
    /// What is asked for with `initialize`.
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

    /// Adds a request; it is taken away with [`Self::end`].
    pub(crate) fn begin(
        &self,
        events: Sender<Event>,
        signs: UnboundedSender<Sign>,
        progress: Arc<Mutex<Option<Progress>>>,
    ) -> u64 {
        let key = self.keys.fetch_add(1, Relaxed);
        let (id, token, asked) = (None, None, Arc::default());
        self.running().push(Running {
            key,
            id,
            token,
            events,
            signs,
            progress,
            asked,
        });
        key
    }

    /// Says what the protocol knows a request by.
    pub(crate) fn identify(&self, key: u64, id: &RequestId, token: &Value) {
        if let Some(running) = self.running().iter_mut().find(|running| running.key == key) {
            (running.id, running.token) = (Some(id.clone()), Some(token.to_string()));
        }
    }

    pub(crate) fn end(&self, key: u64) {
        self.running().retain(|running| running.key != key);
    }

    /// Returns what changed since the last time, as far as it is wanted.
    pub(crate) fn changes(&self, is_wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.extract_if(.., |change| is_wanted(change)).collect()
    }

    pub(crate) fn note_change(&self, change: Change) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() < MAX_CHANGES && !changes.contains(&change) {
            changes.push(change);
        }
    }

    /// Takes a notification.
    pub(crate) fn take_notification(&self, notification: ServerNotification) {
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
            // Nobody waits for it any more where this fails.
            _ = running.signs.send(Sign::Alive);
            *running
                .progress
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(progress);
        }
    }

    /// Has a person asked by whoever waits for the request that led to it.
    ///
    /// Where nothing says which one that is, it is the one that runs; of several nobody is asked in another's place.
    pub(crate) async fn ask(&self, elicitation: Elicitation, of: Option<&RequestId>) -> Elicited {
        let running = {
            let running = self.running();
            match (of, running.as_slice()) {
                (Some(id), all) => all
                    .iter()
                    .find(|running| running.id.as_ref() == Some(id))
                    .cloned(),
                (None, [one]) => Some(one.clone()),
                (None, _) => None,
            }
        };
        let Some(running) = running else {
            self.raw.remark(
                "it asked something, and nothing says for which request: it was declined"
                    .to_owned(),
            );
            return Elicited::Decline;
        };
        if running.asked.fetch_add(1, Relaxed) > self.rounds {
            return Elicited::Decline;
        }
        let (reply, answer) = oneshot::channel();
        _ = running.signs.send(Sign::Asking);
        let answer = match running.events.send(Event::Asked(elicitation, reply)) {
            Ok(()) => answer.await.unwrap_or(Elicited::Cancel),
            Err(_) => Elicited::Cancel,
        };
        _ = running.signs.send(Sign::Answered);
        answer
    }

    /// Answers `roots/list`: the workspace is the one root.
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
        let params = self.shared.raw.question(&context.id);
        let (method, origin) = match &request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::ListRootsRequest(_) => return Ok(custom(self.shared.roots())),
            ServerRequest::CreateMessageRequest(_) => ("sampling/createMessage", None),
            ServerRequest::ElicitRequest(request) => ("elicitation/create", origin(request)),
            ServerRequest::CustomRequest(request) => (request.method.as_str(), origin(request)),
            _ => ("what it asks for", None),
        };
        match method {
            "elicitation/create" => {
                let elicitation = Elicitation::read(&params)
                    .map_err(|reason| ErrorData::invalid_params(reason, None))?;
                Ok(custom(
                    self.shared.ask(elicitation, origin).await.into_result(),
                ))
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
        self.shared.take_notification(notification);
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

fn custom(result: Value) -> ClientResult {
    ClientResult::CustomResult(CustomResult::new(result))
}

/// Returns the request whose stream another came on, where the transport can tell.
fn origin(request: &impl GetExtensions) -> Option<&RequestId> {
    match request.extensions().get::<InboundStreamOrigin>() {
        Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
        _ => None,
    }
}
