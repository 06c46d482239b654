//! What a turn came to: its answer, the lines after it, and the document of `--format json`.

use jp_conversation::{EventKind, ResponseContent, Usage};
use jp_resource::Snapshot;
use serde_json::{Value, json};

use super::{Asked, model::Model, tools};
use crate::{
    cmd::resource::{Attached, describe},
    output::table,
    size,
};

/// A turn that is over.
pub(super) struct Ended<'a> {
    pub(super) asked: &'a Asked<'a>,
    pub(super) model: &'a Model,
    /// The conversation, where it is kept.
    pub(super) id: Option<&'a str>,
    /// What the model said in this turn, and what it cost.
    pub(super) kept: &'a [EventKind],
    /// The calls that ended in this turn, in the order of their results.
    pub(super) calls: &'a [tools::EndedCall],
    /// About how many tokens delivery saved, in all requests of the turn.
    pub(super) saved_tokens: u64,
}

impl Ended<'_> {
    /// Returns whether the model said or called anything.
    pub(super) fn has_answer(&self) -> bool {
        self.kept
            .iter()
            .any(|kind| is_said(kind) || matches!(kind, EventKind::ToolCallRequest(_)))
    }

    /// Returns whether the model said anything after its last call of a tool.
    pub(super) fn has_last_words(&self) -> bool {
        since_calls(self.kept).iter().any(is_said)
    }

    /// Returns whether a call was refused because there was no terminal to ask on.
    pub(super) fn has_refusal_unasked(&self) -> bool {
        self.calls.iter().any(tools::EndedCall::is_refused_unasked)
    }

    /// Returns why the answer was cut off, if it was.
    pub(super) fn incomplete(&self) -> Option<&str> {
        self.kept.iter().find_map(|kind| match kind {
            EventKind::ChatResponse(response) => response.incomplete.as_deref(),
            _ => None,
        })
    }

    /// Returns the words of the answer, reasoning and what came before the last call of a tool aside.
    pub(super) fn answer(&self) -> String {
        text(since_calls(self.kept), |content| match content {
            ResponseContent::Message(text) => Some(text),
            ResponseContent::Reasoning(_) => None,
        })
    }

    /// Says what the model was given and what it cost.
    pub(super) fn summarise(&self) {
        let output = self.asked.context.output;
        output.status("");
        if let Some((_, request)) = super::newest_request(&self.asked.stream) {
            attached_lines(&request.resources)
                .iter()
                .for_each(|line| output.status(line));
        }
        if let Some(line) = usage_line(&usage(self.kept).unwrap_or_default(), self.saved_tokens) {
            output.status(&line);
        }
    }

    /// Returns all of it, with the document that was asked for.
    pub(super) fn document(&self, structured: Option<&Value>) -> Value {
        let Self {
            asked,
            model,
            id,
            kept,
            calls: ended,
            saved_tokens,
        } = self;
        let reasoning = text(kept, |content| match content {
            ResponseContent::Reasoning(text) => Some(text),
            ResponseContent::Message(_) => None,
        });
        let (turn, resources) =
            super::newest_request(&asked.stream).map_or((0, Vec::new()), |(turn, request)| {
                let described = |snapshot| describe(&Attached { turn, snapshot });
                (turn, request.resources.iter().map(described).collect())
            });
        let calls = kept
            .iter()
            .filter(|kind| matches!(kind, EventKind::ToolCallRequest(_)))
            .count();
        let mut document = json!({
            "conversation": id, "turn": turn, "model": model.label, "answer": self.answer(),
            "reasoning": (!reasoning.is_empty()).then_some(reasoning),
            "incomplete": self.incomplete(), "calls": tools::calls(&asked.stream, calls, ended), "resources": resources,
            "usage": usage(kept), "saved_tokens": saved_tokens,
        });
        if let Some(structured) = structured {
            document["structured"] = structured.clone();
        }
        document
    }
}

fn is_said(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ChatResponse(_))
}

/// Returns what the model said after its last call of a tool.
fn since_calls(kept: &[EventKind]) -> &[EventKind] {
    let last = kept
        .iter()
        .rposition(|kind| matches!(kind, EventKind::ToolCallRequest(_)));
    &kept[last.map_or(0, |last| last + 1)..]
}

fn text(kept: &[EventKind], is_wanted: fn(&ResponseContent) -> Option<&String>) -> String {
    let texts = kept.iter().filter_map(|kind| match kind {
        EventKind::ChatResponse(response) => is_wanted(&response.content),
        _ => None,
    });
    texts.cloned().collect()
}

/// Lists what was attached to a message; no line where nothing was.
fn attached_lines(snapshots: &[Snapshot]) -> Vec<String> {
    const SHOWN: usize = 10;
    if snapshots.is_empty() {
        return Vec::new();
    }
    let bytes =
        jp_conversation::view::sum(snapshots.iter().map(|snapshot| snapshot.blob_ref().size));
    let count = size::count(snapshots.len(), "resource");
    let mut lines = vec![format!("Attached {count}, {}:", size::bytes(bytes))];
    let row = |snapshot: &Snapshot| {
        vec![
            format!("  {}", snapshot.label()),
            size::bytes(snapshot.blob_ref().size),
            snapshot.uri.clone(),
        ]
    };
    let rows: Vec<_> = snapshots.iter().take(SHOWN).map(row).collect();
    lines.extend(table(&rows));
    if snapshots.len() > SHOWN {
        lines.push(format!(
            "  … and {} more",
            size::thousands((snapshots.len() - SHOWN) as u64)
        ));
    }
    lines
}

/// Returns what all requests of the turn cost.
fn usage(kept: &[EventKind]) -> Option<Usage> {
    let sum = |left: Option<u64>, right: Option<u64>| {
        left.map_or(right, |left| Some(left.saturating_add(right.unwrap_or(0))))
    };
    let usages = kept.iter().filter_map(|kind| match kind {
        EventKind::Usage(usage) => Some(usage.clone()),
        _ => None,
    });
    usages.reduce(|all, usage| Usage {
        model: all.model,
        input: sum(all.input, usage.input),
        cached_read: sum(all.cached_read, usage.cached_read),
        cached_write: sum(all.cached_write, usage.cached_write),
        output: sum(all.output, usage.output),
        reasoning: sum(all.reasoning, usage.reasoning),
    })
}

/// Writes the provider's own figures, as far as it gave any, and what was saved, if anything was.
fn usage_line(usage: &Usage, saved: u64) -> Option<String> {
    let figures = [
        ("input", usage.input),
        ("from cache", usage.cached_read),
        ("output", usage.output),
        ("of that reasoning", usage.reasoning),
    ];
    let figures = figures
        .into_iter()
        .filter_map(|(name, tokens)| Some(format!("{} {name}", size::thousands(tokens?))));
    let saved = (saved > 0).then(|| format!("about {} not sent again", size::thousands(saved)));
    let figures: Vec<_> = figures.chain(saved).collect();
    (!figures.is_empty()).then(|| format!("Tokens: {}", figures.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_one_line_of_the_figures_that_there_are() {
        let usage = Usage {
            input: Some(12_345),
            cached_read: Some(40),
            output: Some(7),
            reasoning: Some(3),
            ..Usage::default()
        };
        assert_eq!(
            usage_line(&usage, 12_300).as_deref(),
            Some(
                "Tokens: 12,345 input, 40 from cache, 7 output, 3 of that reasoning, about 12,300 not sent again"
            )
        );
        let output_alone = Usage {
            output: Some(7),
            ..Usage::default()
        };
        assert_eq!(
            usage_line(&output_alone, 0).as_deref(),
            Some("Tokens: 7 output")
        );
        assert_eq!(
            usage_line(&Usage::default(), 5).as_deref(),
            Some("Tokens: about 5 not sent again")
        );
        assert_eq!(usage_line(&Usage::default(), 0), None);
    }

    #[test]
    fn sums_of_a_strangers_figures_end_at_the_largest_number() {
        let huge = || {
            EventKind::Usage(Usage {
                input: Some(u64::MAX),
                ..Usage::default()
            })
        };
        assert_eq!(usage(&[huge(), huge()]).unwrap().input, Some(u64::MAX));
        let blob = jp_resource::BlobRef {
            size: u64::MAX,
            ..jp_resource::BlobRef::for_content(b"", jp_resource::Encoding::Utf8)
        };
        let snapshot = || Snapshot::new("a:b", jp_resource::Payload::Stored(blob));
        assert_eq!(attached_lines(&[snapshot(), snapshot()]).len(), 3);
    }
}
