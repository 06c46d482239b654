//! About how many tokens a request has, and whether the person wants to send so many.

use crate::query::body;
use crate::runtime::runtime;
use crate::{
    error::{ErrorKind, SessionError},
    model::{Model, facts},
    query::{ready_query::ReadyQuery, refusal},
    size,
    tools::toolbox,
};
use jp_conversation::{
    Stream,
    view::{self, NoTexts, Policy, Thread, TurnRow},
};
use jp_llm::{
    Contents, Format, Loaded, Note, Tool,
    models::{self, Facts},
};
use jp_resource::{BlobRef, Encoding, ResourceContent, Snapshot};
use jp_storage::Batch;
use serde::Serialize;

/// What it costs to offer a tool.
#[derive(Debug, Serialize)]
pub struct ToolRow {
    /// The name of the tool.
    pub name: String,
    bytes: u64,
    pub(crate) tokens: u64,
}

impl ToolRow {
    /// Says about how large the offer of a tool is; providers write it differently.
    pub fn of(tool: &Tool) -> serde_json::Result<Self> {
        let offer = (&tool.name, &tool.description, &tool.parameters);
        let bytes = serde_json::to_vec(&offer)?.len() as u64;
        Ok(Self {
            name: tool.name.clone(),
            bytes,
            tokens: view::tokens(bytes),
        })
    }
}

/// Returns about how many tokens the blocks of a request have.
pub fn tokens(turns: &[TurnRow]) -> u64 {
    view::sum(
        turns
            .iter()
            .flat_map(|turn| &turn.blocks)
            .map(|block| block.tokens),
    )
}

/// Says what a request of the thread carries to a model; where none is known, all that the model said goes back.
pub fn rows(thread: &Thread<'_>, model: Option<&Model>) -> Vec<TurnRow> {
    view::explain_for(thread, |part| {
        model.is_none_or(|model| model.takes_back(part))
    })
}

impl ReadyQuery<'_> {
    /// Says what a request of the thread carries to the model that is asked.
    pub(crate) fn rows(&self, thread: &Thread<'_>) -> Vec<TurnRow> {
        rows(thread, self.model.as_ref())
    }
}

/// Returns the tools that a model is told of.
pub fn taken(offered: &[Tool], facts: Facts) -> &[Tool] {
    if facts.capabilities().tools {
        offered
    } else {
        &[]
    }
}

/// Returns about how many tokens the offers of tools have.
pub(crate) fn tool_tokens(offered: &[ToolRow]) -> u64 {
    view::sum(offered.iter().map(|tool| tool.tokens))
}

/// Returns about how many tokens the system prompt has.
pub(crate) fn system_tokens(asked: &ReadyQuery<'_>) -> u64 {
    let system = asked.config.config.assistant.system_prompt.as_deref();
    view::tokens(system.map_or(0, str::len) as u64)
}

/// Returns about how many tokens fewer a request of the stream has than one with everything whole.
pub(crate) fn saved_tokens(asked: &ReadyQuery<'_>, stream: &Stream) -> u64 {
    let plain = view::deliver(stream, &Policy::plain(), &mut NoTexts);
    tokens(&asked.rows(&plain)).saturating_sub(tokens(&asked.rows(&asked.thread(stream))))
}

/// Refuses the first request of a turn where it is beyond the budget, before anything of it is stored; its new content
/// is in the batch.
pub(crate) fn check(asked: &ReadyQuery<'_>, batch: &Batch) -> Result<(), SessionError> {
    if asked.budget.is_none() {
        return Ok(());
    }
    let offered = toolbox::assemble(asked)?.offered();
    let thread = asked.thread_beside(&asked.stream, batch);
    let facts = match &asked.model {
        Some(model) => runtime()?.block_on(facts::facts(model, asked.session, &thread, &offered)),
        None => models::built_in(Format::Chat, ""),
    };
    match over(asked, &thread, taken(&offered, facts), || {
        notes(asked, &thread, &offered, facts)
    })? {
        None => Ok(()),
        Some(failure) => Err(failure
            .with_hint(
                "nothing was sent or stored. Run the same command with a larger --budget to send it.",
            )
            .with_hint("run it with --explain to see every part of the request.")),
    }
}

/// Returns why a request is not sent that is beyond the budget; `offered` are the tools that the model is told of, and
/// `notes` says what it is not shown.
pub(crate) fn over(
    asked: &ReadyQuery<'_>,
    thread: &Thread<'_>,
    offered: &[Tool],
    notes: impl FnOnce() -> Result<Vec<Note>, SessionError>,
) -> Result<Option<SessionError>, SessionError> {
    let Some(budget) = asked.budget else {
        return Ok(None);
    };
    let offered = offered
        .iter()
        .map(ToolRow::of)
        .collect::<Result<Vec<_>, _>>()?;
    let others = view::sum([tool_tokens(&offered), system_tokens(asked)]);
    let total = |turns: &[TurnRow]| view::sum([tokens(turns), others]);
    let mut turns = asked.rows(thread);
    if total(&turns) <= budget {
        return Ok(None);
    }
    notes()?
        .iter()
        .for_each(|note| mark(note, thread, &mut turns));
    let tokens = total(&turns);
    if tokens <= budget {
        return Ok(None);
    }
    let [tokens, budget] = [tokens, budget].map(size::thousands);
    let largest = refusal::largest_lines(asked, &turns);
    let message =
        format!("the request has about {tokens} tokens, and the budget is {budget}{largest}");
    let failure = SessionError {
        kind: ErrorKind::Refused,
        ..SessionError::new(message)
    };
    let has_history = thread.messages.first().map(view::Message::turn)
        != thread.messages.last().map(view::Message::turn);
    Ok(Some(match has_history {
        true => {
            failure.with_hint("`jp conversation compact` shortens older turns in later requests.")
        }
        false => failure,
    }))
}

/// Says what of a request its model is not shown, which the types of what it has decide.
pub(crate) fn notes(
    asked: &ReadyQuery<'_>,
    thread: &Thread<'_>,
    tools: &[Tool],
    facts: Facts,
) -> Result<Vec<Note>, SessionError> {
    /// Has nothing of any payload.
    struct Nothing;

    impl Contents for Nothing {
        fn load(&mut self, blob: &BlobRef) -> Loaded {
            Ok(match blob.encoding {
                Encoding::Utf8 => ResourceContent::Text(String::new()),
                Encoding::Binary => ResourceContent::Blob(Vec::new()),
            })
        }
    }

    let (format, request) = body::request(asked, thread, tools, asked.model.as_ref(), facts);
    let (_, notes) = format.body(&request, &mut Nothing)?;
    Ok(notes)
}

/// Says of a block that a note goes in its place.
pub(crate) fn mark(note: &Note, thread: &Thread<'_>, turns: &mut [TurnRow]) {
    let is_meant =
        |snapshot: &&Snapshot| *snapshot.name.as_ref().unwrap_or(&snapshot.uri) == note.subject;
    let messages = thread
        .messages
        .iter()
        .filter(|message| message.turn() == note.turn);
    let mut attached = messages.filter_map(|message| match message {
        view::Message::User { request, .. } => request.resources.iter().find(is_meant),
        _ => None,
    });
    let uri = attached
        .next()
        .map_or(&note.subject, |snapshot| &snapshot.uri);
    let rows = turns
        .iter_mut()
        .filter(|row| row.turn == note.turn)
        .flat_map(|row| &mut row.blocks);
    for block in rows.filter(|block| note.bytes.is_some() && block.uri.as_ref() == Some(uri)) {
        block.tokens = view::tokens(note.to_string().len() as u64);
        (block.delivery, block.reason) = ("note", "the model does not take it".into());
    }
}
