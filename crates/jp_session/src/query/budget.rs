//! Estimates the tokens of a request, and holds it against the budget of `--budget`.

use crate::{
    error::{ErrorKind, SessionError},
    model::{Model, facts},
    query::{body, ready_query::ReadyQuery, refusal},
    runtime::runtime,
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

/// The cost of offering a tool.
#[derive(Debug, Serialize)]
pub struct ToolRow {
    /// The name of the tool.
    pub name: String,
    bytes: u64,
    pub(crate) tokens: u64,
}

impl ToolRow {
    /// Estimates the size of a tool's definition. It is approximate, because each provider writes it differently.
    pub fn new(tool: &Tool) -> serde_json::Result<Self> {
        let offer = (&tool.name, &tool.description, &tool.parameters);
        let bytes = serde_json::to_vec(&offer)?.len() as u64;
        Ok(Self {
            name: tool.name.clone(),
            bytes,
            tokens: view::tokens(bytes),
        })
    }
}

/// Returns the estimated tokens of the blocks of a request.
pub fn tokens(turns: &[TurnRow]) -> u64 {
    view::sum(
        turns
            .iter()
            .flat_map(|turn| &turn.blocks)
            .map(|block| block.tokens),
    )
}

/// Lists the blocks that a request of the thread sends to a model. Without a model, all parts of its
/// answers count.
pub fn rows(thread: &Thread<'_>, model: Option<&Model>) -> Vec<TurnRow> {
    view::explain_for(thread, |part| {
        model.is_none_or(|model| model.takes_back(part))
    })
}

impl ReadyQuery<'_> {
    /// Lists the blocks that a request of the thread sends to the query's model.
    pub(crate) fn rows(&self, thread: &Thread<'_>) -> Vec<TurnRow> {
        rows(thread, self.model.as_ref())
    }
}

/// Returns the tools that a model receives: none if it accepts none.
pub fn usable_tools(offered: &[Tool], facts: Facts) -> &[Tool] {
    if facts.capabilities().tools {
        offered
    } else {
        &[]
    }
}

/// Returns the estimated tokens of the definitions of tools.
pub(crate) fn tool_tokens(offered: &[ToolRow]) -> u64 {
    view::sum(offered.iter().map(|tool| tool.tokens))
}

/// Returns the estimated tokens of the system prompt.
pub(crate) fn system_tokens(query: &ReadyQuery<'_>) -> u64 {
    let system = query.config.config.assistant.system_prompt.as_deref();
    view::tokens(system.map_or(0, str::len) as u64)
}

/// Returns the estimated tokens that delivery saves in a request of the stream.
pub(crate) fn saved_tokens(query: &ReadyQuery<'_>, stream: &Stream) -> u64 {
    let plain = view::deliver(stream, &Policy::plain(), &mut NoTexts);
    tokens(&query.rows(&plain)).saturating_sub(tokens(&query.rows(&query.thread(stream))))
}

/// Refuses the first request of a turn if it is beyond the budget. Nothing of it is stored yet, and its
/// new content is in the batch.
pub(crate) fn check(query: &ReadyQuery<'_>, batch: &Batch) -> Result<(), SessionError> {
    if query.budget.is_none() {
        return Ok(());
    }
    let offered = toolbox::assemble(query)?.definitions();
    let thread = query.thread_with_batch(&query.stream, batch);
    let facts = match &query.model {
        Some(model) => {
            runtime()?.block_on(facts::find_facts(model, query.session, &thread, &offered))
        }
        None => models::built_in(Format::Chat, ""),
    };
    let sent = usable_tools(&offered, facts);
    match find_excess(query, &thread, sent, || {
        find_notes(query, &thread, &offered, facts)
    })? {
        None => Ok(()),
        Some(failure) => Err(failure
            .with_hint(
                "nothing was sent or stored. Run the same command with a larger --budget to send it.",
            )
            .with_hint("run it with --explain to see every part of the request.")),
    }
}

/// Returns the refusal of a request that is beyond the budget; `None` if it is not.
///
/// `sent` are the tools that the model receives. `notes` finds the parts that it is not shown.
pub(crate) fn find_excess(
    query: &ReadyQuery<'_>,
    thread: &Thread<'_>,
    sent: &[Tool],
    notes: impl FnOnce() -> Result<Vec<Note>, SessionError>,
) -> Result<Option<SessionError>, SessionError> {
    let Some(budget) = query.budget else {
        return Ok(None);
    };
    let rows = sent
        .iter()
        .map(ToolRow::new)
        .collect::<Result<Vec<_>, _>>()?;
    let others = view::sum([tool_tokens(&rows), system_tokens(query)]);
    let mut turns = query.rows(thread);
    let mut total = view::sum([tokens(&turns), others]);
    if total > budget {
        // Only now: finding the notes takes about as long as writing the request.
        for note in notes()? {
            mark_note(&note, thread, &mut turns);
        }
        total = view::sum([tokens(&turns), others]);
    }
    if total <= budget {
        return Ok(None);
    }
    let [tokens, budget] = [total, budget].map(size::thousands);
    let largest = refusal::largest_lines(query, &turns);
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

/// Returns the parts of a request that the model is not shown. Their types decide that, so no content
/// is read.
pub(crate) fn find_notes(
    query: &ReadyQuery<'_>,
    thread: &Thread<'_>,
    tools: &[Tool],
    facts: Facts,
) -> Result<Vec<Note>, SessionError> {
    /// Contents that are all empty.
    struct Empty;

    impl Contents for Empty {
        fn load(&mut self, blob: &BlobRef) -> Loaded {
            Ok(match blob.encoding {
                Encoding::Utf8 => ResourceContent::Text(String::new()),
                Encoding::Binary => ResourceContent::Blob(Vec::new()),
            })
        }
    }

    let (format, request) = body::request(query, thread, tools, query.model.as_ref(), facts);
    let (_, notes) = format.body(&request, &mut Empty)?;
    Ok(notes)
}

fn is_subject(snapshot: &Snapshot, note: &Note) -> bool {
    *snapshot.name.as_ref().unwrap_or(&snapshot.uri) == note.subject
}

/// Marks the block that a note replaces in the request.
pub(crate) fn mark_note(note: &Note, thread: &Thread<'_>, turns: &mut [TurnRow]) {
    let messages = thread
        .messages
        .iter()
        .filter(|message| message.turn() == note.turn);
    let mut attached = messages.filter_map(|message| match message {
        view::Message::User { request, .. } => request
            .resources
            .iter()
            .find(|snapshot| is_subject(snapshot, note)),
        _ => None,
    });
    let uri = attached
        .next()
        .map_or(&note.subject, |snapshot| &snapshot.uri);
    let rows = turns
        .iter_mut()
        .filter(|row| row.turn == note.turn)
        .flat_map(|row| &mut row.blocks);
    // A note without a length is about something else than content, such as tools.
    for block in rows.filter(|block| note.bytes.is_some() && block.uri.as_ref() == Some(uri)) {
        block.tokens = view::tokens(note.to_string().len() as u64);
        (block.delivery, block.reason) = ("note", "the model does not accept it".into());
    }
}
