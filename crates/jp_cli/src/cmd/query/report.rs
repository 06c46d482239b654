//! The report of a query: the lines after the answer, or the JSON document.

use jp_conversation::Usage;
use jp_resource::Snapshot;
use jp_session::{query::Report, size};
use serde_json::{Value, json};

use crate::{
    cmd::resource::snapshots::TurnSnapshot,
    error::{Code, SessionError},
    output::{Output, format_table},
};

/// Shows the report of a turn; returns the exit code.
pub(super) fn show(report: Report<'_>, output: &Output) -> Result<Code, SessionError> {
    if let (Ok(_), Some(reason)) = (&report.answered, report.incomplete()) {
        output.warn(&format!("the answer is incomplete: {reason}"));
    }
    if let (Ok(structured), true) = (&report.answered, output.is_json()) {
        output.json(&to_json(&report, structured.as_ref()))?;
    }
    // Also after a failure: the tokens of a partial answer are spent.
    if report.has_answer() && !output.is_json() {
        summarise(&report, output);
    }
    if report.answered.is_ok() {
        hint_at_next_steps(report.conversation(), output);
    }
    let code = match report.has_refusal_unasked() {
        // The model answered, but without a call that needed a permission which no one could give.
        true => Code::Refused,
        false => Code::Done,
    };
    // A failed answer is reported last, below the part of it that was shown and stored.
    report.into_answered()?;
    Ok(code)
}

/// Prints the attachments and the tokens of the turn.
fn summarise(report: &Report<'_>, output: &Output) {
    output.status("");
    list_attached(report.resources())
        .iter()
        .for_each(|line| output.status(line));
    let usage = report.usage().unwrap_or_default();
    if let Some(line) = format_usage(&usage, report.saved_tokens()) {
        output.status(&line);
    }
}

/// Returns the document of `--format json`, with the answer in JSON if the query had a schema.
fn to_json(report: &Report<'_>, structured: Option<&Value>) -> Value {
    let turn = report.turn();
    let resources: Vec<Value> = report
        .resources()
        .iter()
        .map(|snapshot| TurnSnapshot { turn, snapshot }.to_json())
        .collect();
    let mut document = json!({
        "conversation": report.conversation(), "turn": turn, "model": report.model(),
        "answer": report.answer(), "reasoning": report.reasoning(),
        "incomplete": report.incomplete(), "calls": report.calls(), "resources": resources,
        "usage": report.usage(), "saved_tokens": report.saved_tokens(),
    });
    if let Some(structured) = structured {
        document["structured"] = structured.clone();
    }
    document
}

fn hint_at_next_steps(id: Option<&str>, output: &Output) {
    match id {
        Some(id) => output.hint(&format!(
            "`jp query \"…\"` continues conversation {id}; `jp resource ls` lists its resources."
        )),
        None => output.status("Nothing was stored."),
    }
}

/// Lists the resources that were attached to the message, if there are any.
fn list_attached(snapshots: &[Snapshot]) -> Vec<String> {
    /// The number of resources that are listed, so that a directory doesn't push the answer off the screen.
    const SHOWN: usize = 10;
    if snapshots.is_empty() {
        return Vec::new();
    }
    // The sizes come from the history, which may be damaged, so the sum must not overflow.
    let bytes =
        jp_conversation::view::sum(snapshots.iter().map(|snapshot| snapshot.blob_ref().size));
    let count = size::count(snapshots.len(), "resource");
    let mut lines = vec![format!("Attached {count}, {}:", size::bytes(bytes))];
    let rows = snapshots.iter().take(SHOWN).map(|snapshot| {
        vec![
            format!("  {}", snapshot.label()),
            size::bytes(snapshot.blob_ref().size),
            snapshot.uri.clone(),
        ]
    });
    lines.extend(format_table(&rows.collect::<Vec<_>>()));
    if snapshots.len() > SHOWN {
        lines.push(format!(
            "  … and {} more",
            size::thousands((snapshots.len() - SHOWN) as u64)
        ));
    }
    lines
}

/// Formats the figures that the provider reported, and the number of tokens saved.
fn format_usage(usage: &Usage, saved: u64) -> Option<String> {
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
    fn usage_lists_only_reported_figures() {
        let usage = Usage {
            input: Some(12_345),
            cached_read: Some(40),
            output: Some(7),
            reasoning: Some(3),
            ..Usage::default()
        };
        assert_eq!(
            format_usage(&usage, 12_300).as_deref(),
            Some(
                "Tokens: 12,345 input, 40 from cache, 7 output, 3 of that reasoning, about 12,300 not sent again"
            )
        );
        let output_alone = Usage {
            output: Some(7),
            ..Usage::default()
        };
        assert_eq!(
            format_usage(&output_alone, 0).as_deref(),
            Some("Tokens: 7 output")
        );
        assert_eq!(
            format_usage(&Usage::default(), 5).as_deref(),
            Some("Tokens: about 5 not sent again")
        );
        assert_eq!(format_usage(&Usage::default(), 0), None);
    }

    #[test]
    fn sum_of_sizes_does_not_overflow() {
        let blob = jp_resource::BlobRef {
            size: u64::MAX,
            ..jp_resource::BlobRef::for_content(b"", jp_resource::Encoding::Utf8)
        };
        let snapshot = || Snapshot::new("a:b", jp_resource::Payload::Stored(blob));
        assert_eq!(list_attached(&[snapshot(), snapshot()]).len(), 3);
    }
}
