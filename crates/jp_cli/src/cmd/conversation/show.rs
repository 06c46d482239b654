//! `jp conversation show`: what there is to know of one, and what it cost.

use std::collections::BTreeMap;

use crate::{
    cmd::conversation::{declared_by_files, describe, used},
    context::Context,
    error::{Code, Failure},
    output::table,
};
use jp_conversation::{EventKind, Stream, Usage, resolution};
use jp_session::size;
use jp_storage::{Conversation, Summary};
use serde::Serialize;
use serde_json::json;

/// The providers' own figures, added up; one that no provider gave is absent.
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
    /// Percent of the input that was read from the provider's cache, of the requests that say both.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_percent: Option<u64>,
    /// How many requests gave figures.
    requests: usize,
}

pub(super) fn run(context: &Context<'_>, id: Option<&str>) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let summary = summary(&conversation);
    let snapshots = crate::cmd::resource::attached(&conversation.stream).count();
    let declared = resolution::effective(
        &conversation.stream,
        &declared_by_files(context, &conversation)?,
    );
    let totals = Totals::of(usages(&conversation.stream));
    let by_model = by_model(&conversation.stream);
    if context.output.is_json() {
        let current = context.session.current_id()?;
        let mut document = describe(&found, &summary, current);
        document["attachments"] = json!(declared);
        document["resources"] = json!(snapshots);
        document["usage"] = json!(totals);
        document["by_model"] = json!(by_model);
        context.output.json(&document)?;
        return Ok(Code::Done);
    }
    let mut rows = vec![
        ("id", found.located.id.to_string()),
        (
            "title",
            summary.title.clone().unwrap_or_else(|| "(none)".to_owned()),
        ),
        ("turns", summary.turns.unwrap_or_default().to_string()),
        ("last used", used(&summary)),
        (
            "kept",
            if found.is_local {
                "for this user".to_owned()
            } else {
                "in the workspace".to_owned()
            },
        ),
        (
            "attached",
            declared
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        ),
        ("resources", size::count(snapshots, "snapshot")),
        ("tokens", totals.line()),
    ];
    if by_model.len() > 1 {
        rows.extend(
            by_model
                .iter()
                .map(|(model, totals)| ("", format!("{model}: {}", totals.line()))),
        );
    }
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(key, value)| vec![key.to_owned(), value])
        .collect();
    table(&rows)
        .iter()
        .try_for_each(|line| context.output.line(line))?;
    Ok(Code::Done)
}

fn summary(conversation: &Conversation) -> Summary {
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

fn by_model(stream: &Stream) -> BTreeMap<&str, Totals> {
    let mut of_models: BTreeMap<&str, Vec<&Usage>> = BTreeMap::new();
    usages(stream).for_each(|usage| of_models.entry(&usage.model).or_default().push(usage));
    of_models
        .into_iter()
        .map(|(model, usages)| (model, Totals::of(usages.into_iter())))
        .collect()
}

impl Totals {
    fn of<'u>(usages: impl Iterator<Item = &'u Usage>) -> Self {
        let mut totals = Self::default();
        let (mut input, mut cached) = (0, 0);
        for usage in usages {
            totals.requests += 1;
            add(&mut totals.input, usage.input);
            add(&mut totals.cached_read, usage.cached_read);
            add(&mut totals.cached_write, usage.cached_write);
            add(&mut totals.output, usage.output);
            add(&mut totals.reasoning, usage.reasoning);
            if let (Some(of_it), Some(read)) = (usage.input, usage.cached_read) {
                input = of_it.saturating_add(input);
                cached = read.saturating_add(cached);
            }
        }
        totals.cached_percent = cached.saturating_mul(100).checked_div(input);
        totals
    }

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
        let figures: Vec<_> = figures.collect();
        if figures.is_empty() {
            return "not known".to_owned();
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

/// Shows the paths of all files that a conversation needs.
pub(super) fn files(context: &Context<'_>, id: Option<&str>) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let mut paths = found.store.files_of(&found.located)?;
    let blobs = found.store.blobs_of(&found.located)?;
    let checksums: std::collections::BTreeSet<_> = blobs.iter().map(|blob| blob.checksum).collect();
    paths.extend(
        checksums
            .iter()
            .map(|checksum| found.store.blobs().path(checksum)),
    );
    let current_dir = std::fs::canonicalize(&context.session.surroundings.current_dir)
        .map_err(|error| Failure::from_system("read the current directory", error))?;
    let shown = |path: &std::path::PathBuf| {
        path.strip_prefix(&current_dir)
            .unwrap_or(path)
            .display()
            .to_string()
    };
    let paths: Vec<_> = paths.iter().map(shown).collect();
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
    fn figures_that_nobody_gave_are_absent_and_the_share_is_of_those_that_say_both() {
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
        let totals = Totals::of(usages.iter());
        assert_eq!(
            totals.line(),
            "1,100 input, 50 cached read, 7 output in 3 requests; 50 % of the input was read from cache"
        );
        assert_eq!(
            json!(totals),
            json!({"input": 1100, "cached_read": 50, "output": 7, "cached_percent": 50, "requests": 3})
        );
        assert_eq!(Totals::of([].iter()).line(), "not known");
    }
}
