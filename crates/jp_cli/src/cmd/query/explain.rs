//! `jp query --explain`: what would be sent, and nothing is.

use std::{ops::RangeInclusive, path::Path};

use jp_conversation::{
    Event, EventKind, Stream,
    view::{self, BlockRow, Thread, TurnRow},
};
use jp_llm::{Body, CacheMarks, Format, Note, Tool, models};
use jp_storage::ConversationId;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    Asked, answer,
    answer::Written,
    budget::{self, ToolRow},
    cold, facts,
    model::Model,
    refused::{one_line, place},
    tools,
};
use crate::{
    error::{Code, Failure},
    output::{Output, table},
    size,
};

/// The document of `--format json`.
#[derive(Serialize)]
struct Explanation {
    turns: Vec<TurnRow>,
    tokens: u64,
    /// What it would be with everything whole.
    plain_tokens: u64,
    system_tokens: u64,
    cached_prefix_tokens: u64,
    /// Whether the provider's cache of what was sent last is gone.
    cache_is_cold: bool,
    cache_marks: Vec<Mark>,
    notes: Vec<Note>,
    tools: Vec<ToolRow>,
    /// The body, byte for byte.
    request: Box<RawValue>,
}

/// A cache mark of the request.
#[derive(Serialize)]
struct Mark {
    /// The turn; 0 for what stands before all turns.
    turn: usize,
}

pub(super) fn run(asked: &Asked<'_>, model: Option<&Model>) -> Result<Code, Failure> {
    let thread = asked.thread(&asked.stream);
    let offered = tools::toolbox(asked)?.offered();
    let facts = match model {
        Some(model) => {
            answer::runtime()?.block_on(facts::facts(model, asked.context, &thread, &offered))
        }
        None => models::built_in(Format::Chat, ""),
    };
    let Written { body, notes, .. } = answer::encode(asked, &thread, &offered, model, facts)?;
    let (format, request) = answer::request(asked, &thread, &offered, model, facts);
    let marks = marks(&format.cache_marks(&request), &thread);
    let taken = budget::taken(&offered, facts);
    let explanation = Explanation::new(asked, &thread, taken, notes, marks, &body)?;
    let output = asked.context.output;
    let warnings = explanation
        .notes
        .iter()
        .filter(|note| answer::is_worth_a_warning(note, asked));
    warnings.for_each(|note| output.warn(&note.to_string()));
    match output.is_json() {
        true => output.json(&explanation)?,
        false => {
            explanation.show(body.len(), asked.context.workspace.root(), output)?;
            if let Some(limit) = facts.context_tokens {
                output.line(&format!(
                    "the model takes {} tokens",
                    size::thousands(limit)
                ))?;
                answer::warn_of_length(asked.context, explanation.tokens, limit);
            }
            output.status("Nothing was sent, and nothing was stored.");
        }
    }
    let notes = explanation.notes;
    budget::over(asked, &thread, taken, || Ok(notes))?.map_or(Ok(Code::Done), Err)
}

impl Explanation {
    fn new(
        asked: &Asked<'_>,
        thread: &Thread<'_>,
        offered: &[Tool],
        notes: Vec<Note>,
        cache_marks: Vec<Mark>,
        body: &Body,
    ) -> Result<Self, Failure> {
        let mut turns = asked.rows(thread);
        notes
            .iter()
            .for_each(|note| budget::mark(note, thread, &mut turns));
        let sent = last_sent(asked);
        let cached = sent.as_ref().map_or(0, |sent| {
            let (sent, thread) = (asked.thread(sent), thread.clone());
            match asked.model {
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
        let is_cold = |model| cold::is_cold(&asked.stream, asked.context.now(), model);
        Ok(Self {
            tokens,
            plain_tokens: tokens.saturating_add(budget::saved_tokens(asked, &asked.stream)),
            system_tokens: budget::system_tokens(asked),
            cached_prefix_tokens,
            cache_is_cold: sent.is_some() && asked.model.is_some_and(is_cold),
            cache_marks,
            tools: offered.iter().map(ToolRow::of).collect::<Result<_, _>>()?,
            request: serde_json::from_slice(&answer::bytes(body)?)?,
            turns,
            notes,
        })
    }

    fn show(&self, bytes: u64, root: &Path, output: &Output) -> Result<(), Failure> {
        table(&self.rows(root))
            .iter()
            .try_for_each(|line| output.line(line))?;
        let cold = if self.cache_is_cold {
            ", but the provider's cache of it is gone"
        } else {
            ""
        };
        output.line(&format!(
            "about {} tokens in a request of {}; the last request carried about {} of them already{cold}",
            size::thousands(self.tokens),
            size::bytes(bytes),
            size::thousands(self.cached_prefix_tokens),
        ))?;
        if self.system_tokens > 0 {
            let tokens = size::thousands(self.system_tokens);
            output.line(&format!("system prompt: about {tokens} tokens more"))?;
        }
        if !self.tools.is_empty() {
            let names: Vec<_> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
            let tokens = size::thousands(budget::tool_tokens(&self.tools));
            output.line(&format!(
                "tools: {}, about {tokens} tokens more",
                names.join(", ")
            ))?;
        }
        if !self.cache_marks.is_empty() {
            let marks: Vec<_> = self.cache_marks.iter().map(Mark::place).collect();
            output.line(&format!("cache marks after: {}", marks.join(", ")))?;
        }
        match self.plain_tokens - self.tokens {
            0 => Ok(()),
            saved => output.line(&format!(
                "about {} tokens less than with everything whole",
                size::thousands(saved)
            )),
        }
    }

    fn rows(&self, root: &Path) -> Vec<Vec<String>> {
        let header = [
            "turn", "kind", "bytes", "~tokens", "delivery", "what", "why",
        ];
        let rows = self.turns.iter().flat_map(|turn| {
            turn.blocks.iter().map(|block| {
                vec![
                    turn.turn.to_string(),
                    block.kind.to_owned(),
                    size::thousands(block.bytes),
                    size::thousands(block.tokens),
                    block.delivery.to_owned(),
                    what(block, root),
                    block.reason.clone().into_owned(),
                ]
            })
        });
        let mut rows: Vec<_> = std::iter::once(header.map(str::to_owned).to_vec())
            .chain(rows)
            .collect();
        NUMBERS.for_each(|column| align_right(&mut rows, column));
        rows
    }
}

/// The columns of bytes and tokens.
const NUMBERS: RangeInclusive<usize> = 2..=3;

fn align_right(rows: &mut [Vec<String>], column: usize) {
    let width = rows
        .iter()
        .map(|row| row[column].len())
        .max()
        .unwrap_or_default();
    rows.iter_mut()
        .for_each(|row| row[column] = format!("{:>width$}", row[column]));
}

/// Names a block: by its resource, else by its tool.
fn what(block: &BlockRow, root: &Path) -> String {
    match (&block.uri, &block.tool) {
        (Some(uri), _) => one_line(&place(uri, root)),
        (None, Some(tool)) => tool.clone(),
        (None, None) => "-".to_owned(),
    }
}

impl Mark {
    fn place(&self) -> String {
        match self.turn {
            0 => "what stands before all turns".to_owned(),
            turn => format!("turn {turn}"),
        }
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
fn last_sent(asked: &Asked<'_>) -> Option<Stream> {
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
