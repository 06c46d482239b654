//! `jp conversation show`: a conversation's attachments, size and token usage.

use std::collections::BTreeMap;

use crate::{
    cmd::{
        conversation::{describe, format_last_use},
        resource::snapshots::list_snapshots,
    },
    context::Context,
    error::{Code, SessionError},
};
use jp_conversation::{EventKind, Stream, Usage, resolution};
use jp_session::size;
use jp_storage::{Conversation, Summary};
use serde::Serialize;
use serde_json::json;

/// The sums of the providers' own figures. A figure that no provider reported is absent.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Totals {
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_write: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<u64>,
    /// The share of the input that was read from the provider's cache, in percent. Counts only requests that report both.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_percent: Option<u64>,
    /// The number of requests with a usage event.
    requests: usize,
}

pub(super) fn run(context: &Context<'_>, id: Option<&str>) -> Result<Code, SessionError> {
    let target = context.open_conversation(id)?;
    let summary = summarise(&target.conversation);
    let snapshots = list_snapshots(target.stream()).count();
    let configured = target.read_configured(&target.find_place()?)?;
    let declared = resolution::effective(target.stream(), &configured.declarations);
    let totals = Totals::sum(usages(target.stream()));
    let by_model = sum_by_model(target.stream());
    if context.output.is_json() {
        let current = context.session.current_id()?;
        let mut document = describe(&target.found, &summary, current);
        document["attachments"] = json!(declared);
        document["resources"] = json!(snapshots);
        document["usage"] = json!(totals);
        document["by_model"] = json!(by_model);
        context.output.json(&document)?;
        return Ok(Code::Done);
    }
    let stored = match target.found.is_local {
        true => "for this user only",
        false => "in the workspace",
    };
    let declared: Vec<_> = declared.iter().map(ToString::to_string).collect();
    let last_use = format_last_use(&summary);
    let mut rows = vec![
        ("id", target.found.located.id.to_string()),
        (
            "title",
            summary.title.unwrap_or_else(|| "(none)".to_owned()),
        ),
        ("turns", summary.turns.unwrap_or_default().to_string()),
        ("last used", last_use),
        ("stored", stored.to_owned()),
        ("attachments", declared.join(", ")),
        ("resources", size::count(snapshots, "snapshot")),
        ("tokens", totals.line()),
    ];
    // With one model its line would repeat the total.
    if by_model.len() > 1 {
        let lines = by_model.iter();
        rows.extend(lines.map(|(model, totals)| ("", format!("{model}: {}", totals.line()))));
    }
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(key, value)| vec![key.to_owned(), value])
        .collect();
    context.output.table(&rows)?;
    Ok(Code::Done)
}

fn summarise(conversation: &Conversation) -> Summary {
    Summary {
        title: conversation.metadata.title().map(str::to_owned),
        turns: Some(conversation.stream.turns().len()),
        last_activated_at: conversation
            .metadata
            .last_activated_at()
            .map(|time| time.to_string()),
    }
}

fn usages(stream: &Stream) -> impl Iterator<Item = &Usage> {
    stream
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Usage(usage) => Some(usage),
            _ => None,
        })
}

fn sum_by_model(stream: &Stream) -> BTreeMap<&str, Totals> {
    let mut by_model: BTreeMap<&str, Vec<&Usage>> = BTreeMap::new();
    usages(stream).for_each(|usage| by_model.entry(&usage.model).or_default().push(usage));
    by_model
        .into_iter()
        .map(|(model, usages)| (model, Totals::sum(usages.into_iter())))
        .collect()
}

impl Totals {
    fn sum<'u>(usages: impl Iterator<Item = &'u Usage>) -> Self {
        let mut totals = Self::default();
        let (mut input, mut cached) = (0, 0);
        for usage in usages {
            totals.requests += 1;
            add(&mut totals.input, usage.input);
            add(&mut totals.cached_read, usage.cached_read);
            add(&mut totals.cached_write, usage.cached_write);
            add(&mut totals.output, usage.output);
            add(&mut totals.reasoning, usage.reasoning);
            if let (Some(total), Some(read)) = (usage.input, usage.cached_read) {
                input = total.saturating_add(input);
                cached = read.saturating_add(cached);
            }
        }
        // `checked_div` returns `None` for an input of 0, and then there is no percentage.
        totals.cached_percent = cached.saturating_mul(100).checked_div(input);
        totals
    }

    /// Formats the figures in one line.
    fn line(&self) -> String {
        let figures = [
            ("input", self.input),
            ("cached read", self.cached_read),
            ("cached write", self.cached_write),
            ("output", self.output),
            ("reasoning", self.reasoning),
        ];
        let figures = figures
            .into_iter()
            .filter_map(|(name, tokens)| Some(format!("{} {name}", size::thousands(tokens?))));
        // A missing figure is not zero: no provider reported it.
        let figures: Vec<_> = figures.collect();
        if figures.is_empty() {
            return "unknown".to_owned();
        }
        let share = self
            .cached_percent
            .map(|percent| format!("; {percent} % of the input was read from cache"));
        let requests = size::count(self.requests, "request");
        format!(
            "{} in {requests}{}",
            figures.join(", "),
            share.unwrap_or_default()
        )
    }
}

fn add(total: &mut Option<u64>, tokens: Option<u64>) {
    if let Some(tokens) = tokens {
        *total = Some(total.unwrap_or_default().saturating_add(tokens));
    }
}

/// Prints the paths of all files that a conversation needs, relative to the current directory if they are below it.
pub(super) fn print_files(context: &Context<'_>, id: Option<&str>) -> Result<Code, SessionError> {
    let found = context.session.select(id)?;
    let mut paths = found.store.files_of(&found.located)?;
    let blobs = found.store.blobs_of(&found.located)?;
    // Several events may name the same blob.
    let checksums: std::collections::BTreeSet<_> = blobs.iter().map(|blob| blob.checksum).collect();
    paths.extend(
        checksums
            .iter()
            .map(|checksum| found.store.blobs().path(checksum)),
    );
    // The store's paths are canonical, so the prefix must be, too.
    let current_dir = std::fs::canonicalize(&context.session.surroundings.current_dir)
        .map_err(|error| SessionError::from_system("read the current directory", error))?;
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.strip_prefix(&current_dir).unwrap_or(path))
        .map(|path| path.display().to_string())
        .collect();
    if context.output.is_json() {
        context.output.json(&paths)?;
    } else {
        paths
            .iter()
            .try_for_each(|path| context.output.line(path))?;
    }
    Ok(Code::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreported_figures_are_absent_from_the_totals() {
        let given = |input, cached_read, output| Usage {
            input,
            cached_read,
            output,
            ..Usage::default()
        };
        let usages = [
            given(Some(100), Some(50), Some(7)),
            given(Some(1000), None, None),
            Usage::default(),
        ];
        let totals = Totals::sum(usages.iter());
        assert_eq!(
            totals.line(),
            "1,100 input, 50 cached read, 7 output in 3 requests; 50 % of the input was read from cache"
        );
        assert_eq!(
            json!(totals),
            json!({"input": 1100, "cached_read": 50, "output": 7, "cached_percent": 50, "requests": 3})
        );
        assert_eq!(Totals::sum([].iter()).line(), "unknown");
    }
}
