//! The lines after an answer, and the document of `--format json`.

use jp_conversation::Usage;
use jp_resource::Snapshot;
use jp_session::{query::Report, size};
use serde_json::{Value, json};

use crate::{
    cmd::resource::{Attached, describe},
    error::{Code, Failure},
    output::{Output, table},
};

/// Shows what a turn came to.
pub(super) fn show(report: Report<'_>, output: &Output) -> Result<Code, Failure> {
    if let (Ok(_), Some(reason)) = (&report.answered, report.incomplete()) {
        output.warn(&format!("the answer is incomplete: {reason}"));
    }
    if let (Ok(structured), true) = (&report.answered, output.is_json()) {
        output.json(&document(&report, structured.as_ref()))?;
    }
    if report.has_answer() && !output.is_json() {
        summarise(&report, output);
    }
    if report.answered.is_ok() {
        show_way_on(report.conversation(), output);
    }
    let code = match report.has_refusal_unasked() {
        // The answer is whole, but not what it would be with the permission.
        true => Code::Refused,
        false => Code::Done,
    };
    report.into_answered()?;
    Ok(code)
}

/// Says what the model was given and what it cost.
fn summarise(report: &Report<'_>, output: &Output) {
    output.status("");
    attached_lines(report.resources())
        .iter()
        .for_each(|line| output.status(line));
    let usage = report.usage().unwrap_or_default();
    if let Some(line) = usage_line(&usage, report.saved_tokens()) {
        output.status(&line);
    }
}

/// Returns all of it, with the document that was asked for.
fn document(report: &Report<'_>, structured: Option<&Value>) -> Value {
    let turn = report.turn();
    let resources: Vec<Value> = report
        .resources()
        .iter()
        .map(|snapshot| describe(&Attached { turn, snapshot }))
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

fn show_way_on(id: Option<&str>, output: &Output) {
    match id {
        Some(id) => output.hint(&format!(
            "`jp query \"…\"` goes on with conversation {id}; `jp resource ls` shows what it holds."
        )),
        None => output.status("Nothing was stored."),
    }
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
    fn sizes_that_overflow_are_listed_all_the_same() {
        let blob = jp_resource::BlobRef {
            size: u64::MAX,
            ..jp_resource::BlobRef::for_content(b"", jp_resource::Encoding::Utf8)
        };
        let snapshot = || Snapshot::new("a:b", jp_resource::Payload::Stored(blob));
        assert_eq!(attached_lines(&[snapshot(), snapshot()]).len(), 3);
    }
}
