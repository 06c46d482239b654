//! `jp query`: from the arguments to the answer, in the order in which it happens.

pub(crate) mod body;
pub mod budget;
mod compose;
pub mod contents;
pub mod delivery;
pub mod explain;
pub mod finish;
mod prepare;
mod record;
pub mod refusal;
pub mod request;
mod schema;
mod send;
mod supersede;

use std::{borrow::Cow, collections::HashMap, path::PathBuf, sync::Arc};

use jp_config::Resolved;
use jp_conversation::{ChatRequest, Stream};
use jp_llm::Measure;
use jp_resource::Checksum;
use jp_storage::{Conversation, ConversationId};

use self::record::Recording;
pub use self::send::runtime;
pub use self::{
    contents::Scratch,
    explain::{Explained, Explanation},
    finish::Report,
    request::{QueryRequest, Recipient},
};
use crate::{
    attachments::store::Kept,
    error::SessionError,
    lock, model,
    session::{Found, Session},
    tools::{self, Tools},
};

/// Asks the model, and records the question and the answer.
///
/// # Errors
///
/// If nothing could be sent. What happens after that is in the report.
pub fn run(session: &Session, request: QueryRequest) -> Result<Report<'_>, SessionError> {
    let opened = Opened::new(session, request, Purpose::Send)?;
    let (asked, recording) = opened.prepare()?;
    send::run(asked, recording)
}

/// Says what [`run`] would send, and sends nothing.
///
/// # Errors
///
/// If there is nothing to send, or it can't be prepared.
pub fn explain(session: &Session, request: QueryRequest) -> Result<Explained, SessionError> {
    let opened = Opened::new(session, request, Purpose::Explain)?;
    let (asked, _) = opened.prepare()?;
    explain::explain(&asked)
}

/// What a query is prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To be sent.
    Send,
    /// To be looked at: nothing is stored, and a model isn't needed.
    Explain,
}

/// A query whose conversation, model and tools are chosen.
struct Opened<'s> {
    session: &'s Session,
    request: QueryRequest,
    purpose: Purpose,
    message: Option<ChatRequest>,
    target: Target,
    config: Resolved,
    tools: Tools,
    model: Option<model::Model>,
}

impl<'s> Opened<'s> {
    fn new(
        session: &'s Session,
        request: QueryRequest,
        purpose: Purpose,
    ) -> Result<Self, SessionError> {
        let message = compose::compose(&request, session)?;
        let target = Target::open(&request, purpose, session)?;
        let config = target.config(&request, session)?;
        warn_of_unknown_keys(session, &config);
        let tools = tools::choose(&request, session, &config, target.conversation())?;
        // Without a model there is no use in resolving or storing anything.
        let model = choose_model(purpose, session, &config)?;
        Ok(Self {
            session,
            request,
            purpose,
            message,
            target,
            config,
            tools,
            model,
        })
    }

    /// Resolves the attachments, and records the message if the query is kept.
    fn prepare(self) -> Result<(Asked<'s>, Option<Recording>), SessionError> {
        let Self {
            session,
            request,
            purpose,
            message,
            target,
            config,
            tools,
            model,
        } = self;
        let scratch = match purpose.persists(session) {
            true => None,
            false => Some(Scratch::new()?),
        };
        let store = target.store().clone();
        let mut prepared = prepare::prepare(
            &request,
            session,
            &target,
            &config,
            message,
            &tools,
            scratch.as_ref(),
        )?;
        let Kept { files, measures } = std::mem::take(&mut prepared.kept);
        let mut asked = Asked {
            session,
            config,
            store,
            scratch,
            files: Arc::new(files),
            measures: Arc::new(measures),
            tools,
            stream: Stream::default(),
            model,
            id: target.conversation().map(|conversation| conversation.id),
            budget: request.budget,
            compared: delivery::Compared::default(),
        };
        if let Some(model) = &asked.model {
            supersede::supersede(&mut prepared, &target.stream(), model, &asked);
        }
        if asked.budget.is_some() && purpose == Purpose::Send {
            asked.stream = prepared.beside(&target.stream());
            budget::check(&asked, &prepared.batch)?;
        }
        if !purpose.persists(session) {
            asked.stream = prepared.into_stream(target.into_stream())?;
            return Ok((asked, None));
        }
        let (stream, recording) = record::record(session, target, prepared)?;
        session.remember_tools(recording.writer.id(), asked.tools.chosen_on());
        (asked.stream, asked.id) = (stream, Some(recording.writer.id()));
        Ok((asked, Some(recording)))
    }
}

impl Purpose {
    /// Returns whether the conversation keeps the query.
    fn persists(self, session: &Session) -> bool {
        self == Self::Send && !session.options.no_persist
    }
}

/// Chooses the model, and says what the user should know of it; to explain a query none is needed.
fn choose_model(
    purpose: Purpose,
    session: &Session,
    config: &Resolved,
) -> Result<Option<model::Model>, SessionError> {
    let model = match model::choose(config) {
        Err(failure) if purpose == Purpose::Explain => {
            session.person.warn(&failure.message);
            model::configured(config)?
        }
        model => Some(model?),
    };
    model.iter().for_each(|model| model.warn(&*session.person));
    Ok(model)
}

/// A conversation whose newest request is to be answered.
pub(crate) struct Asked<'s> {
    pub(crate) session: &'s Session,
    pub(crate) config: Resolved,
    pub(crate) store: jp_storage::Store,
    /// Where the content is of a query that stores nothing.
    pub(crate) scratch: Option<Scratch>,
    /// Files that hold content of the request as it is.
    pub(crate) files: Arc<HashMap<Checksum, PathBuf>>,
    /// The measures of texts that are from files.
    pub(crate) measures: Arc<HashMap<Checksum, Measure>>,
    pub(crate) tools: Tools,
    pub(crate) stream: Stream,
    /// The model that is asked, where one is known.
    pub(crate) model: Option<model::Model>,
    /// The conversation, where it has an id.
    pub(crate) id: Option<ConversationId>,
    /// About how many tokens a request may have.
    pub(crate) budget: Option<u64>,
    /// Texts that were read to be compared.
    pub(crate) compared: delivery::Compared,
}

impl Asked<'_> {
    /// Returns the model of a query that is sent.
    pub(crate) fn model(&self) -> &model::Model {
        let model = self.model.as_ref();
        model.expect("without a model a query is only explained")
    }

    /// Returns whether the message is in the conversation, to be sent again.
    pub(crate) fn is_kept(&self) -> bool {
        self.scratch.is_none()
    }
}

/// The conversation that a query goes to.
enum Target {
    /// A new one.
    New {
        store: jp_storage::Store,
        is_local: bool,
        title: Option<String>,
    },
    /// One that is there; locked unless nothing is stored.
    Existing {
        found: Found,
        conversation: Box<Conversation>,
        lock: Option<jp_storage::lock::Lock>,
    },
}

impl Target {
    fn open(
        request: &QueryRequest,
        purpose: Purpose,
        session: &Session,
    ) -> Result<Self, SessionError> {
        let new = |is_local: bool, title: Option<String>| Self::New {
            store: session.store(is_local),
            is_local,
            title,
        };
        let found = match &request.to {
            Recipient::New { is_local, title } => return Ok(new(*is_local, title.clone())),
            Recipient::Existing(id) => session.selected(Some(id))?,
            Recipient::Current => match session.current()? {
                Some(found) => found,
                None => return Ok(new(false, None)),
            },
        };
        let lock = match purpose.persists(session) {
            true => Some(lock::acquire(session, &found)?),
            false => None,
        };
        let conversation = Box::new(session.read(&found)?);
        Ok(Self::Existing {
            found,
            conversation,
            lock,
        })
    }

    fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::New { .. } => None,
            Self::Existing { conversation, .. } => Some(conversation),
        }
    }

    fn config(&self, request: &QueryRequest, session: &Session) -> Result<Resolved, SessionError> {
        let model = request
            .model
            .as_deref()
            .map(|model| ("--model", "assistant.model.id", model));
        session.config(self.conversation(), &Vec::from_iter(model))
    }

    fn stream(&self) -> Cow<'_, Stream> {
        self.conversation()
            .map_or_else(Cow::default, |conversation| {
                Cow::Borrowed(&conversation.stream)
            })
    }

    fn into_stream(self) -> Stream {
        match self {
            Self::New { .. } => Stream::default(),
            Self::Existing { conversation, .. } => conversation.stream,
        }
    }

    fn store(&self) -> &jp_storage::Store {
        match self {
            Self::New { store, .. } => store,
            Self::Existing { found, .. } => &found.store,
        }
    }
}

fn warn_of_unknown_keys(session: &Session, config: &Resolved) {
    let is_ours = |layer: &jp_config::Layer| {
        !matches!(
            layer,
            jp_config::Layer::Conversation | jp_config::Layer::Default
        )
    };
    for (key, layer) in config.unknown.iter().filter(|(_, layer)| is_ours(layer)) {
        session.person.warn(&format!(
            "unknown key `{key}` in {}: it has no effect",
            layer.without_value()
        ));
    }
}

/// Returns the request that is to be answered, with its turn.
fn newest_request(stream: &Stream) -> Option<(usize, &jp_conversation::ChatRequest)> {
    stream.requests().last()
}
