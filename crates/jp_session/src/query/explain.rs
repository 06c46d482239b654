//! Explains the request of a query without sending it, for `jp query --explain`.

use crate::{
    error::SessionError,
    model::facts,
    notice::Notice,
    query::{
        body::{self, Written},
        budget::{self, ToolRow},
        ready_query::ReadyQuery,
        supersede,
    },
    runtime::runtime,
    tools::toolbox,
};
use jp_conversation::{
    Event, EventKind, Stream,
    view::{self, Thread, TurnRow},
};
use jp_llm::{Body, CacheMarks, Format, Note, Tool, models};
use jp_storage::ConversationId;
use serde::Serialize;
use serde_json::value::RawValue;

/// The document of `--format json`.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The parts of the request, by turn.
    pub turns: Vec<TurnRow>,
    /// The estimated tokens of the blocks.
    pub tokens: u64,
    /// The estimated tokens of the blocks without delivery.
    pub plain_tokens: u64,
    /// The estimated tokens of the system prompt.
    pub system_tokens: u64,
    /// The estimated tokens that the last request had already, at the same place.
    pub cached_prefix_tokens: u64,
    /// True if the provider's prompt cache has lost the last request.
    pub cache_is_cold: bool,
    /// The places that the request asks the provider to cache.
    pub cache_marks: Vec<Mark>,
    /// The parts that the model is not shown.
    pub notes: Vec<Note>,
    /// The cost of the offered tools.
    pub tools: Vec<ToolRow>,
    /// The body, byte for byte.
    pub request: Box<RawValue>,
}

/// A cache mark of the request.
#[derive(Debug, Serialize)]
pub struct Mark {
    /// The turn; 0 is the head of the request, before all turns.
    pub turn: usize,
}

/// An explained query.
#[derive(Debug)]
pub struct Explained {
    /// The parts of the request.
    pub explanation: Explanation,
    /// The length of its body, in bytes.
    pub bytes: u64,
    /// The model's limit in tokens, if it is known.
    pub limit: Option<u64>,
    /// The refusal that the query would get, if it is beyond the budget.
    pub over_budget: Option<SessionError>,
}

/// Builds the request of a query, and lists its parts.
pub(crate) fn explain(query: &ReadyQuery<'_>) -> Result<Explained, SessionError> {
    let thread = query.thread(&query.stream);
    let offered = toolbox::assemble(query)?.definitions();
    let facts = match &query.model {
        Some(model) => {
            runtime()?.block_on(facts::find_facts(model, query.session, &thread, &offered))
        }
        None => models::built_in(Format::Chat, ""),
    };
    let model = query.model.as_ref();
    let Written { body, notes, .. } = body::encode(query, &thread, &offered, model, facts)?;
    let (format, request) = body::request(query, &thread, &offered, model, facts);
    let marks = list_marks(&format.cache_marks(&request), &thread);
    let taken = budget::usable_tools(&offered, facts);
    let explanation = Explanation::new(query, &thread, taken, notes, marks, &body)?;
    let warnings = explanation
        .notes
        .iter()
        .filter(|note| body::is_worth_a_warning(note, query));
    warnings.for_each(|note| {
        let note = note.clone();
        query.session.person.tell(Notice::NotShown { note });
    });
    // Beyond the budget, too, the parts are shown: they tell the user what to leave out.
    let over_budget = budget::find_excess(query, &thread, taken, || Ok(explanation.notes.clone()))?;
    Ok(Explained {
        explanation,
        bytes: body.len(),
        limit: facts.context_tokens,
        over_budget,
    })
}

impl Explanation {
    /// Returns the estimated tokens of the definitions of tools.
    pub fn tool_tokens(&self) -> u64 {
        budget::tool_tokens(&self.tools)
    }

    fn new(
        query: &ReadyQuery<'_>,
        thread: &Thread<'_>,
        offered: &[Tool],
        notes: Vec<Note>,
        cache_marks: Vec<Mark>,
        body: &Body,
    ) -> Result<Self, SessionError> {
        let mut turns = query.rows(thread);
        notes
            .iter()
            .for_each(|note| budget::mark_note(note, thread, &mut turns));
        let sent = last_sent(query);
        let cached = sent.as_ref().map_or(0, |sent| {
            // The parts of answers that the model does not receive again are not cached either.
            let (sent, thread) = (query.thread(sent), thread.clone());
            match &query.model {
                Some(model) => {
                    view::shared_prefix(&model.filter_thread(sent), &model.filter_thread(thread))
                }
                None => view::shared_prefix(&sent, &thread),
            }
        });
        // The prefix counts blocks that are sent; the rows also have others.
        let blocks = turns
            .iter()
            .flat_map(|turn| &turn.blocks)
            .filter(|block| block.is_sent());
        let cached = blocks.take(cached).map(|block| block.tokens);
        let cached_prefix_tokens = view::sum(cached);
        let tokens = budget::tokens(&turns);
        let now = query.session.now();
        let is_cold = query
            .model
            .as_ref()
            .is_some_and(|model| supersede::is_cold(&query.stream, now, model));
        Ok(Self {
            tokens,
            plain_tokens: tokens.saturating_add(budget::saved_tokens(query, &query.stream)),
            system_tokens: budget::system_tokens(query),
            cached_prefix_tokens,
            cache_is_cold: sent.is_some() && is_cold,
            cache_marks,
            tools: offered.iter().map(ToolRow::new).collect::<Result<_, _>>()?,
            request: serde_json::from_slice(&body::bytes(body)?)?,
            turns,
            notes,
        })
    }
}

/// Lists the cache marks by turn, the head first.
fn list_marks(marks: &CacheMarks, thread: &Thread<'_>) -> Vec<Mark> {
    let head = marks.head.then_some(Mark { turn: 0 });
    let messages = marks
        .messages
        .iter()
        .filter_map(|index| thread.messages.get(*index));
    head.into_iter()
        .chain(messages.map(|message| Mark {
            turn: message.turn(),
        }))
        .collect()
}

/// Returns the events of the last request of this conversation; `None` if there was no request.
///
/// The requests of answers that are older than a fork belong to its original. The provider caches
/// them under another key.
fn last_sent(query: &ReadyQuery<'_>) -> Option<Stream> {
    let length = view::last_request(&query.stream)?;
    let answer = query.stream.events()[length..]
        .iter()
        .find(|event| is_answer(event))?;
    let made = query.id.and_then(ConversationId::created_at);
    let is_own = made.is_none_or(|made| answer.timestamp >= made);
    is_own.then(|| Stream::from_events(query.stream.events()[..length].to_vec()))
}

fn is_answer(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::ChatResponse(_) | EventKind::ToolCallRequest(_) | EventKind::Usage(_)
    )
}
