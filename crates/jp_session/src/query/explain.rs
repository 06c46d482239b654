//! `jp query --explain`: what would be sent, and nothing is.

use crate::runtime::runtime;
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
    /// About how many tokens it has.
    pub tokens: u64,
    /// What it would be with everything whole.
    pub plain_tokens: u64,
    /// About how many tokens the system prompt has.
    pub system_tokens: u64,
    /// About how many tokens the last request carried already.
    pub cached_prefix_tokens: u64,
    /// Whether the provider's cache of what was sent last is gone.
    pub cache_is_cold: bool,
    /// Where the request asks the provider to cache.
    pub cache_marks: Vec<Mark>,
    /// What the model is not shown.
    pub notes: Vec<Note>,
    /// What the offered tools cost.
    pub tools: Vec<ToolRow>,
    /// The body, byte for byte.
    pub request: Box<RawValue>,
}

/// A cache mark of the request.
#[derive(Debug, Serialize)]
pub struct Mark {
    /// The turn; 0 for what stands before all turns.
    pub turn: usize,
}

/// A query that would be sent.
#[derive(Debug)]
pub struct Explained {
    /// What the request is made of.
    pub explanation: Explanation,
    /// The length of its body, in bytes.
    pub bytes: u64,
    /// How many tokens the model takes, if that is known.
    pub limit: Option<u64>,
    /// Why it would not be sent, if it is beyond the budget.
    pub over_budget: Option<SessionError>,
}

/// Builds the request of a query, and says what it is made of.
pub(crate) fn explain(asked: &ReadyQuery<'_>) -> Result<Explained, SessionError> {
    let thread = asked.thread(&asked.stream);
    let offered = toolbox::assemble(asked)?.offered();
    let facts = match &asked.model {
        Some(model) => runtime()?.block_on(facts::facts(model, asked.session, &thread, &offered)),
        None => models::built_in(Format::Chat, ""),
    };
    let model = asked.model.as_ref();
    let Written { body, notes, .. } = body::encode(asked, &thread, &offered, model, facts)?;
    let (format, request) = body::request(asked, &thread, &offered, model, facts);
    let marks = marks(&format.cache_marks(&request), &thread);
    let taken = budget::taken(&offered, facts);
    let explanation = Explanation::new(asked, &thread, taken, notes, marks, &body)?;
    let warnings = explanation
        .notes
        .iter()
        .filter(|note| body::is_worth_a_warning(note, asked));
    warnings.for_each(|note| {
        let note = note.clone();
        asked.session.person.tell(Notice::NotShown { note });
    });
    let over_budget = budget::over(asked, &thread, taken, || Ok(explanation.notes.clone()))?;
    Ok(Explained {
        explanation,
        bytes: body.len(),
        limit: facts.context_tokens,
        over_budget,
    })
}

impl Explanation {
    /// Returns about how many tokens the offers of tools have.
    pub fn tool_tokens(&self) -> u64 {
        budget::tool_tokens(&self.tools)
    }

    fn new(
        asked: &ReadyQuery<'_>,
        thread: &Thread<'_>,
        offered: &[Tool],
        notes: Vec<Note>,
        cache_marks: Vec<Mark>,
        body: &Body,
    ) -> Result<Self, SessionError> {
        let mut turns = asked.rows(thread);
        notes
            .iter()
            .for_each(|note| budget::mark(note, thread, &mut turns));
        let sent = last_sent(asked);
        let cached = sent.as_ref().map_or(0, |sent| {
            let (sent, thread) = (asked.thread(sent), thread.clone());
            match &asked.model {
                Some(model) => view::shared_prefix(&model.taken(sent), &model.taken(thread)),
                None => view::shared_prefix(&sent, &thread),
            }
        });
        let blocks = turns
            .iter()
            .flat_map(|turn| &turn.blocks)
            .filter(|block| block.is_sent());
        let cached = blocks.take(cached).map(|block| block.tokens);
        let cached_prefix_tokens = view::sum(cached);
        let tokens = budget::tokens(&turns);
        let is_cold = |model| supersede::is_cold(&asked.stream, asked.session.now(), model);
        Ok(Self {
            tokens,
            plain_tokens: tokens.saturating_add(budget::saved_tokens(asked, &asked.stream)),
            system_tokens: budget::system_tokens(asked),
            cached_prefix_tokens,
            cache_is_cold: sent.is_some() && asked.model.as_ref().is_some_and(is_cold),
            cache_marks,
            tools: offered.iter().map(ToolRow::of).collect::<Result<_, _>>()?,
            request: serde_json::from_slice(&body::bytes(body)?)?,
            turns,
            notes,
        })
    }
}

fn marks(marks: &CacheMarks, thread: &Thread<'_>) -> Vec<Mark> {
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

/// Returns what the last request of this conversation was made of; `None` where there was none.
///
/// A fork has answers that are older than itself: what those requests carried was not sent for it.
fn last_sent(asked: &ReadyQuery<'_>) -> Option<Stream> {
    let length = view::last_request(&asked.stream)?;
    let answer = asked.stream.events()[length..]
        .iter()
        .find(|event| is_answer(event))?;
    let made = asked.id.and_then(ConversationId::created_at);
    let is_own = made.is_none_or(|made| answer.timestamp >= made);
    is_own.then(|| Stream::from_events(asked.stream.events()[..length].to_vec()))
}

fn is_answer(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::ChatResponse(_) | EventKind::ToolCallRequest(_) | EventKind::Usage(_)
    )
}
