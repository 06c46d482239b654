//! `jp query --explain`: what would be sent, and nothing is.

use jp_conversation::view::{self, Message, TurnRow};
use jp_llm::{Format, Note, Tool, models};
use jp_resource::Snapshot;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Asked, answer, facts, model::Model, tools};
use crate::{
    error::{Code, Failure},
    output::table,
    size,
};

/// What it costs to offer a tool.
#[derive(Serialize)]
struct ToolRow {
    name: String,
    bytes: u64,
    tokens: u64,
}

/// The document of `--format json`.
#[derive(Serialize)]
struct Explanation {
    turns: Vec<TurnRow>,
    tokens: u64,
    cached_prefix_tokens: u64,
    notes: Vec<Note>,
    tools: Vec<ToolRow>,
    /// The body, byte for byte.
    request: Box<RawValue>,
}

pub(super) fn run(asked: &Asked<'_>, model: Option<&Model>) -> Result<Code, Failure> {
    let thread = asked.thread(&asked.stream);
    let offered = tools::toolbox(asked)?.offered();
    let facts = match model {
        Some(model) => answer::runtime()?.block_on(facts::facts(model, asked.context, &thread, &offered)),
        None => models::built_in(Format::Chat, ""),
    };
    let (body, notes) = answer::encode(asked, &thread, &offered, model, facts)?;
    let tools = offered.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    let mut turns = view::explain(&thread);
    notes.iter().for_each(|note| mark(note, &thread, &mut turns));
    let tokens = answer::tokens(&turns);
    let cached = cached_prefix_tokens(&turns);
    let output = asked.context.output;
    notes.iter().for_each(|note| output.warn(&note.to_string()));
    if output.is_json() {
        let request = serde_json::from_slice(&answer::bytes(&body)?)?;
        output.json(&Explanation { turns, tokens, cached_prefix_tokens: cached, notes, tools, request })?;
        return Ok(Code::Done);
    }
    let header = ["turn", "kind", "bytes", "~tokens", "delivery", "what", "why"].map(str::to_owned).to_vec();
    let rows = turns.iter().flat_map(|turn| {
        turn.blocks.iter().map(|block| {
            vec![
                turn.turn.to_string(),
                block.kind.to_owned(),
                size::thousands(block.bytes),
                size::thousands(block.tokens),
                block.delivery.to_owned(),
                block.uri.clone().unwrap_or_else(|| "-".to_owned()),
                block.reason.to_owned(),
            ]
        })
    });
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    table(&rows).iter().try_for_each(|line| output.line(line))?;
    output.line(&format!(
        "about {} tokens in a request of {}; the last request carried about {} of them already",
        size::thousands(tokens),
        size::bytes(body.len()),
        size::thousands(cached),
    ))?;
    if !tools.is_empty() {
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let tokens = size::thousands(tools.iter().map(|tool| tool.tokens).sum());
        output.line(&format!("tools: {}, about {tokens} tokens more", names.join(", ")))?;
    }
    if let Some(limit) = facts.context_tokens {
        output.line(&format!("the model takes {} tokens", size::thousands(limit)))?;
        answer::warn_of_length(asked.context, tokens, limit);
    }
    output.status("Nothing was sent, and nothing was stored.");
    Ok(Code::Done)
}

/// Says about how large the offer of a tool is; providers write it differently.
fn row(tool: &Tool) -> serde_json::Result<ToolRow> {
    let offer = (&tool.name, &tool.description, &tool.parameters);
    let bytes = serde_json::to_vec(&offer)?.len() as u64;
    Ok(ToolRow { name: tool.name.clone(), bytes, tokens: view::tokens(bytes) })
}

/// Says of a block that a note goes in its place.
fn mark(note: &Note, thread: &view::Thread<'_>, turns: &mut [TurnRow]) {
    let is_meant = |snapshot: &&Snapshot| *snapshot.name.as_ref().unwrap_or(&snapshot.uri) == note.subject;
    let messages = thread.messages.iter().filter(|message| message.turn() == note.turn);
    let mut attached = messages.filter_map(|message| match message {
        Message::User { request, .. } => request.resources.iter().find(is_meant),
        _ => None,
    });
    let uri = attached.next().map_or(&note.subject, |snapshot| &snapshot.uri);
    let rows = turns.iter_mut().filter(|row| row.turn == note.turn).flat_map(|row| &mut row.blocks);
    for block in rows.filter(|block| note.bytes.is_some() && block.uri.as_ref() == Some(uri)) {
        block.tokens = view::tokens(note.to_string().len() as u64);
        (block.delivery, block.reason) = ("note", "the model does not take it");
    }
}

/// Counts what stands before the newest turn: the last request ended there or later.
fn cached_prefix_tokens(turns: &[TurnRow]) -> u64 {
    let earlier = turns.split_last().map_or(&[][..], |(_, earlier)| earlier);
    earlier.iter().flat_map(|turn| &turn.blocks).map(|block| block.tokens).sum()
}
