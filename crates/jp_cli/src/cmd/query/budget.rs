//! About how many tokens a request has, and whether the person wants to send so many.

use jp_conversation::{
    Stream,
    view::{self, NoTexts, Policy, Thread, TurnRow},
};
use jp_llm::{Tool, models::Facts};
use jp_storage::Batch;
use serde::Serialize;

use super::{Asked, answer, facts, model::Model, refused, tools};
use crate::{
    error::{Code, Failure},
    size,
};

/// What it costs to offer a tool.
#[derive(Debug, Serialize)]
pub(super) struct ToolRow {
    pub(super) name: String,
    bytes: u64,
    pub(super) tokens: u64,
}

impl ToolRow {
    /// Says about how large the offer of a tool is; providers write it differently.
    pub(super) fn of(tool: &Tool) -> serde_json::Result<Self> {
        let offer = (&tool.name, &tool.description, &tool.parameters);
        let bytes = serde_json::to_vec(&offer)?.len() as u64;
        Ok(Self { name: tool.name.clone(), bytes, tokens: view::tokens(bytes) })
    }
}

/// Returns about how many tokens the blocks of a request have.
pub(crate) fn tokens(turns: &[TurnRow]) -> u64 {
    view::sum(turns.iter().flat_map(|turn| &turn.blocks).map(|block| block.tokens))
}

/// Says what a request of the thread carries to a model; where none is known, all that the model said goes back.
pub(crate) fn rows(thread: &Thread<'_>, model: Option<&Model>) -> Vec<TurnRow> {
    view::explain_for(thread, |part| model.is_none_or(|model| model.takes_back(part)))
}

impl Asked<'_> {
    /// Says what a request of the thread carries to the model that is asked.
    pub(super) fn rows(&self, thread: &Thread<'_>) -> Vec<TurnRow> {
        rows(thread, self.model)
    }
}

/// Returns the tools that a model is told of.
pub(super) fn taken(offered: &[Tool], facts: Facts) -> &[Tool] {
    if facts.capabilities().tools { offered } else { &[] }
}

/// Returns about how many tokens the offers of tools have.
pub(super) fn tool_tokens(offered: &[ToolRow]) -> u64 {
    view::sum(offered.iter().map(|tool| tool.tokens))
}

/// Returns about how many tokens the system prompt has.
pub(super) fn system_tokens(asked: &Asked<'_>) -> u64 {
    let system = asked.config.config.assistant.system_prompt.as_deref();
    view::tokens(system.map_or(0, str::len) as u64)
}

/// Returns about how many tokens fewer a request of the stream has than one with everything whole.
pub(super) fn saved_tokens(asked: &Asked<'_>, stream: &Stream) -> u64 {
    let plain = view::delivered(stream, &Policy::plain(), &mut NoTexts);
    tokens(&asked.rows(&plain)).saturating_sub(tokens(&asked.rows(&asked.thread(stream))))
}

/// Refuses the first request of a turn where it is beyond the budget, before anything of it is stored; its new content
/// is in the batch.
pub(super) fn check(asked: &Asked<'_>, batch: &Batch) -> Result<(), Failure> {
    if asked.budget.is_none() {
        return Ok(());
    }
    let offered = tools::toolbox(asked)?.offered();
    let thread = asked.thread_beside(&asked.stream, batch);
    let offered = match asked.model {
        Some(model) => {
            let facts = facts::facts(model, asked.context, &thread, &offered);
            taken(&offered, answer::runtime()?.block_on(facts))
        }
        None => &offered,
    };
    match over(asked, &thread, offered)? {
        None => Ok(()),
        Some(failure) => Err(failure
            .with_hint("nothing was sent or stored: the same command with a larger --budget sends it.")
            .with_hint("with --explain it shows every part of the request.")),
    }
}

/// Returns why a request is not sent that is beyond the budget; `offered` are the tools that the model is told of.
pub(super) fn over(
    asked: &Asked<'_>,
    thread: &Thread<'_>,
    offered: &[Tool],
) -> Result<Option<Failure>, serde_json::Error> {
    let Some(budget) = asked.budget else { return Ok(None) };
    let offered = offered.iter().map(ToolRow::of).collect::<Result<Vec<_>, _>>()?;
    let parts = [tokens(&asked.rows(thread)), tool_tokens(&offered), system_tokens(asked)];
    let tokens = view::sum(parts);
    if tokens <= budget {
        return Ok(None);
    }
    let [tokens, budget] = [tokens, budget].map(size::thousands);
    let largest = refused::largest_lines(asked, thread);
    let message = format!("the request has about {tokens} tokens, and the budget is {budget}{largest}");
    let failure = Failure { code: Code::Refused, ..Failure::new(message) };
    let has_history =
        thread.messages.first().map(view::Message::turn) != thread.messages.last().map(view::Message::turn);
    Ok(Some(match has_history {
        true => failure.with_hint("`jp conversation compact` sends older turns shortened."),
        false => failure,
    }))
}
