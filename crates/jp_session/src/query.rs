//! `jp query`: from the arguments to the answer, in the order in which it happens.

pub(crate) mod body;
pub mod budget;
mod compose;
pub mod contents;
pub mod delivery;
pub mod explain;
pub mod finish;
mod prepare;
pub(crate) mod ready_query;
mod record;
pub mod refusal;
pub mod request;
mod schema;
mod send;
mod supersede;
mod target;

use std::sync::Arc;

use jp_config::Resolved;
use jp_conversation::{ChatRequest, Stream};

pub use self::{
    contents::Scratch,
    explain::{Explained, Explanation},
    finish::Report,
    request::{QueryRequest, Recipient},
};
use self::{
    ready_query::ReadyQuery,
    record::Recording,
    target::{Purpose, Target},
};
use crate::{
    attachments::store::KeptContent,
    error::SessionError,
    model,
    notice::Notice,
    session::{Session, Setup},
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
        warn_of_unknown_keys(Setup::new(session, &config));
        let tools = tools::choose(
            &request,
            Setup::new(session, &config),
            target.conversation(),
        )?;
        // Without a model there is no use in resolving or storing anything.
        let model = choose_model(purpose, Setup::new(session, &config))?;
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
    fn prepare(self) -> Result<(ReadyQuery<'s>, Option<Recording>), SessionError> {
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
            Setup::new(session, &config),
            &target,
            message,
            &tools,
            scratch.as_ref(),
        )?;
        let KeptContent { files, measures } = std::mem::take(&mut prepared.kept);
        let mut asked = ReadyQuery {
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

/// Chooses the model, and says what the user should know of it; to explain a query none is needed.
fn choose_model(purpose: Purpose, setup: Setup<'_>) -> Result<Option<model::Model>, SessionError> {
    let Setup { session, config } = setup;
    let model = match model::choose(config) {
        Err(failure) if purpose == Purpose::Explain => {
            session.person.tell(Notice::NoModel {
                reason: failure.message,
            });
            model::configured(config)?
        }
        model => Some(model?),
    };
    model.iter().for_each(|model| model.warn(&*session.person));
    Ok(model)
}

fn warn_of_unknown_keys(setup: Setup<'_>) {
    let Setup { session, config } = setup;
    let is_ours = |layer: &jp_config::Layer| {
        !matches!(
            layer,
            jp_config::Layer::Conversation | jp_config::Layer::Default
        )
    };
    for (key, layer) in config.unknown.iter().filter(|(_, layer)| is_ours(layer)) {
        session.person.tell(Notice::UnknownKey {
            key: key.to_string(),
            layer: layer.without_value(),
        });
    }
}
