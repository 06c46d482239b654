//! The steps of a query, from the request to the report, in the order in which they run.

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

use jp_config::{Layer, Resolved};
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
/// If jp could not send the first request. A later failure is in the report.
pub fn run(session: &Session, request: QueryRequest) -> Result<Report<'_>, SessionError> {
    let opened = OpenQuery::new(session, request, Purpose::Send)?;
    let (query, recording) = opened.prepare()?;
    send::run(query, recording)
}

/// Builds the request that [`run`] would send, and neither sends nor stores it.
///
/// # Errors
///
/// If there is no message to send, or the request can't be prepared.
pub fn explain(session: &Session, request: QueryRequest) -> Result<Explained, SessionError> {
    let opened = OpenQuery::new(session, request, Purpose::Explain)?;
    let (query, _) = opened.prepare()?;
    explain::explain(&query)
}

/// A query with its conversation, configuration, tools and model.
struct OpenQuery<'s> {
    session: &'s Session,
    request: QueryRequest,
    purpose: Purpose,
    message: Option<ChatRequest>,
    target: Target,
    config: Resolved,
    tools: Tools,
    model: Option<model::Model>,
}

impl<'s> OpenQuery<'s> {
    fn new(
        session: &'s Session,
        request: QueryRequest,
        purpose: Purpose,
    ) -> Result<Self, SessionError> {
        let message = compose::compose(&request, session)?;
        let target = Target::open(&request, purpose, session)?;
        let config = target.config(&request, session)?;
        let setup = Setup::new(session, &config);
        warn_of_unknown_keys(setup);
        let tools = tools::choose(&request, setup, target.conversation())?;
        Ok(Self {
            // Before the attachments: without a model, resolving and storing them would be wasted.
            model: choose_model(purpose, setup)?,
            session,
            request,
            purpose,
            message,
            target,
            config,
            tools,
        })
    }

    /// Resolves the attachments, and records the message if the conversation keeps the query.
    fn prepare(self) -> Result<(ReadyQuery<'s>, Option<Recording>), SessionError> {
        let (session, target) = (self.session, self.target);
        let scratch = match self.purpose.persists(session) {
            true => None,
            false => Some(Scratch::new()?),
        };
        let mut prepared = prepare::prepare(
            &self.request,
            Setup::new(session, &self.config),
            &target,
            self.message,
            &self.tools,
            scratch.as_ref(),
        )?;
        let KeptContent { files, measures } = std::mem::take(&mut prepared.kept);
        let mut query = ReadyQuery {
            session,
            config: self.config,
            store: target.store().clone(),
            scratch,
            files: Arc::new(files),
            measures: Arc::new(measures),
            tools: self.tools,
            stream: Stream::default(),
            model: self.model,
            id: target.conversation().map(|conversation| conversation.id),
            budget: self.request.budget,
            compared: delivery::Compared::default(),
        };
        if let Some(model) = &query.model {
            supersede::supersede(&mut prepared, &target.stream(), model, &query);
        }
        // An explained query shows every part of a request that is beyond the budget.
        if query.budget.is_some() && self.purpose == Purpose::Send {
            query.stream = prepared.preview(&target.stream());
            budget::check(&query, &prepared.batch)?;
        }
        if !query.is_kept() {
            query.stream = prepared.into_stream(target.into_stream())?;
            return Ok((query, None));
        }
        let (stream, recording) = record::record(session, target, prepared)?;
        session.remember_tools(recording.writer.id(), query.tools.chosen_on());
        (query.stream, query.id) = (stream, Some(recording.writer.id()));
        Ok((query, Some(recording)))
    }
}

/// Chooses the model, and warns of settings that don't apply to it.
///
/// Only a query that is sent needs a model. An explained one continues without.
fn choose_model(purpose: Purpose, setup: Setup<'_>) -> Result<Option<model::Model>, SessionError> {
    let Setup { session, config } = setup;
    let model = match model::choose(config) {
        Err(failure) if purpose == Purpose::Explain => {
            session.person.tell(Notice::NoModel {
                reason: failure.message,
            });
            model::find_configured(config)?
        }
        model => Some(model?),
    };
    model.iter().for_each(|model| model.warn(&*session.person));
    Ok(model)
}

/// Warns of keys that jp doesn't know. The history of a conversation may have keys of a newer
/// version of jp, which the user can't change.
fn warn_of_unknown_keys(setup: Setup<'_>) {
    let Setup { session, config } = setup;
    for (key, layer) in &config.unknown {
        if matches!(layer, Layer::Conversation | Layer::Default) {
            continue;
        }
        session.person.tell(Notice::UnknownKey {
            key: key.to_string(),
            layer: layer.without_value(),
        });
    }
}
