//! `jp query --explain`: shows a request without sending it.

use std::{ops::RangeInclusive, path::Path};

use jp_conversation::view::BlockRow;
use jp_session::{
    query::{
        Explained, Explanation,
        explain::Mark,
        refusal::{display_uri, escape_name},
    },
    size,
};

use crate::{
    context::Context,
    error::{Code, SessionError},
    output::Output,
};

/// Shows a request; fails if it exceeds the budget.
pub(super) fn show(explained: Explained, context: &Context<'_>) -> Result<Code, SessionError> {
    let Explained {
        explanation,
        bytes,
        limit,
        over_budget,
    } = explained;
    let output = context.output;
    if output.is_json() {
        output.json(&explanation)?;
    } else {
        show_text(
            &explanation,
            bytes,
            context.session.workspace.root(),
            output,
        )?;
        if let Some(limit) = limit {
            output.line(&format!(
                "the model accepts at most {} tokens",
                size::thousands(limit)
            ))?;
            context.session.warn_of_length(explanation.tokens, limit);
        }
        output.status("Nothing was sent or stored.");
    }
    // The explanation comes first: it shows what to leave out.
    over_budget.map_or(Ok(Code::Done), Err)
}

fn show_text(
    explanation: &Explanation,
    bytes: u64,
    root: &Path,
    output: &Output,
) -> Result<(), SessionError> {
    output.table(&list_blocks(explanation, root))?;
    let cold = if explanation.cache_is_cold {
        ", but the provider no longer caches them"
    } else {
        ""
    };
    output.line(&format!(
        "about {} tokens in a request of {}; the last request already had about {} of them{cold}",
        size::thousands(explanation.tokens),
        size::bytes(bytes),
        size::thousands(explanation.cached_prefix_tokens),
    ))?;
    // The system prompt and the tools are not in the table, so they come on top.
    if explanation.system_tokens > 0 {
        let tokens = size::thousands(explanation.system_tokens);
        output.line(&format!("system prompt: about {tokens} more tokens"))?;
    }
    if !explanation.tools.is_empty() {
        let names: Vec<_> = explanation
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let tokens = size::thousands(explanation.tool_tokens());
        output.line(&format!(
            "tools: {}, about {tokens} more tokens",
            names.join(", ")
        ))?;
    }
    if !explanation.cache_marks.is_empty() {
        let marks: Vec<_> = explanation.cache_marks.iter().map(name_mark).collect();
        output.line(&format!("cache marks after: {}", marks.join(", ")))?;
    }
    match explanation.plain_tokens - explanation.tokens {
        0 => Ok(()),
        saved => output.line(&format!(
            "about {} tokens fewer than without references and diffs",
            size::thousands(saved)
        )),
    }
}

/// Returns a row for each block of the request, below a header.
fn list_blocks(explanation: &Explanation, root: &Path) -> Vec<Vec<String>> {
    let header = [
        "turn", "kind", "bytes", "~tokens", "delivery", "what", "why",
    ];
    let rows = explanation.turns.iter().flat_map(|turn| {
        turn.blocks.iter().map(|block| {
            vec![
                turn.turn.to_string(),
                block.kind.to_owned(),
                size::thousands(block.bytes),
                size::thousands(block.tokens),
                block.delivery.to_owned(),
                name_block(block, root),
                block.reason.clone().into_owned(),
            ]
        })
    });
    let mut rows: Vec<_> = std::iter::once(header.map(str::to_owned).to_vec())
        .chain(rows)
        .collect();
    NUMERIC_COLUMNS.for_each(|column| align_right(&mut rows, column));
    rows
}

/// The columns with bytes and tokens, which are aligned to the right.
const NUMERIC_COLUMNS: RangeInclusive<usize> = 2..=3;

fn align_right(rows: &mut [Vec<String>], column: usize) {
    let width = rows
        .iter()
        .map(|row| row[column].len())
        .max()
        .unwrap_or_default();
    rows.iter_mut()
        .for_each(|row| row[column] = format!("{:>width$}", row[column]));
}

/// Names a block by its resource, else by its tool.
fn name_block(block: &BlockRow, root: &Path) -> String {
    match (&block.uri, &block.tool) {
        (Some(uri), _) => escape_name(&display_uri(uri, root)),
        (None, Some(tool)) => tool.clone(),
        (None, None) => "-".to_owned(),
    }
}

/// Names the place of a cache mark. Turn 0 is everything before the first message.
fn name_mark(mark: &Mark) -> String {
    match mark.turn {
        0 => "the system prompt and the tools".to_owned(),
        turn => format!("turn {turn}"),
    }
}
