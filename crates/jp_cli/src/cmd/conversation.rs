//! `jp conversation`.

mod as_sent;
mod compact;
mod print;
mod show;

use std::collections::HashSet;

use crate::{
    args,
    context::Context,
    error::{Code, Failure},
    output::table,
};
use jp_conversation::{
    ConfigDelta, Declaration, Event, EventKind, Stream,
    resolution::{self, Change},
};
use jp_session::{
    attachments::declarations::{place, read_configured},
    lock,
    session::Found,
    size,
};
use jp_storage::{Conversation, ConversationId, Summary, lock::TryLock};
use serde_json::{Value, json};

pub(crate) fn run(command: args::Conversation, context: &Context<'_>) -> Result<Code, Failure> {
    match command {
        args::Conversation::Ls { archived } => list(context, archived),
        args::Conversation::Show { id, files: true } => show::files(context, id.as_deref()),
        args::Conversation::Show { id, files: false } => show::run(context, id.as_deref()),
        args::Conversation::Print {
            conversation,
            turn,
            as_sent: true,
        } => as_sent::run(context, conversation.id(), turn.as_deref()),
        args::Conversation::Print {
            conversation,
            turn,
            as_sent: false,
        } => print::run(context, conversation.id(), turn.as_deref()),
        args::Conversation::Compact(compact) => compact::run(context, &compact),
        args::Conversation::Use { id } => make_current(context, &id),
        args::Conversation::Fork { id, turns, title } => {
            fork(context, id.as_deref(), turns, title.as_deref())
        }
        args::Conversation::Rm { ids } => remove(context, &ids),
    }
}

fn list(context: &Context<'_>, archived: bool) -> Result<Code, Failure> {
    let (mut conversations, mut others) = (
        context.session.conversations()?,
        context.session.archived_conversations()?,
    );
    if archived {
        std::mem::swap(&mut conversations, &mut others);
    }
    let current = context.session.current_id()?;
    let mut index = context.session.workspace.index();
    let rows = conversations
        .iter()
        .map(|found| (found, index.summary(&found.store, &found.located)));
    // One that was removed meanwhile is not unreadable.
    let rows = rows.filter(|(found, summary)| summary.turns.is_some() || found.located.exists());
    let rows: Vec<_> = rows.collect();
    let located: Vec<_> = conversations
        .iter()
        .chain(&others)
        .map(|found| found.located.clone())
        .collect();
    if let Err(error) = index.save(&located) {
        context.output.detail(&format!(
            "the index of conversations was not saved: {error}"
        ));
    }
    if context.output.is_json() {
        let document = |(found, summary): &(&Found, Summary)| describe(found, summary, current);
        context
            .output
            .json(&rows.iter().map(document).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    let row = |(found, summary): &(&Found, Summary)| {
        let mark = if Some(found.located.id) == current {
            "*"
        } else {
            " "
        };
        let turns = summary
            .turns
            .map_or("unreadable".to_owned(), |turns| size::count(turns, "turn"));
        let local = if found.is_local { " (local)" } else { "" };
        let title = summary.title.as_deref().unwrap_or("(no title)");
        vec![
            format!("{mark} {}", found.located.id),
            turns,
            used(summary),
            format!("{title}{local}"),
        ]
    };
    table(&rows.iter().map(row).collect::<Vec<_>>())
        .iter()
        .try_for_each(|line| context.output.line(line))?;
    match (rows.is_empty(), archived) {
        (true, true) => context.output.status("No conversation is archived."),
        (true, false) => {
            context.output.status("There are no conversations yet.");
            context
                .output
                .hint("`jp query --new \"your question\"` starts one.");
        }
        _ => {}
    }
    if !archived && !others.is_empty() {
        let archived = size::count(others.len(), "archived conversation");
        context.output.hint(&format!(
            "`jp conversation ls --archived` lists {archived}."
        ));
    }
    Ok(Code::Done)
}

fn used(summary: &Summary) -> String {
    let time = summary
        .last_activated_at
        .as_deref()
        .and_then(|time| time.parse::<jiff::Timestamp>().ok());
    time.map_or_else(String::new, |time| {
        time.to_zoned(jiff::tz::TimeZone::system())
            .strftime("%Y-%m-%d %H:%M")
            .to_string()
    })
}

fn describe(found: &Found, summary: &Summary, current: Option<ConversationId>) -> Value {
    json!({
        "id": found.located.id.to_string(),
        "title": summary.title,
        "turns": summary.turns,
        "created_at": found.located.id.created_at().map(|time| time.to_string()),
        "last_activated_at": summary.last_activated_at,
        "current": Some(found.located.id) == current,
        "local": found.is_local,
        "archived": found.located.is_archived(),
    })
}

fn make_current(context: &Context<'_>, id: &str) -> Result<Code, Failure> {
    let found = context.session.selected(Some(id))?;
    found.refuse_archived()?;
    let conversation = context.session.read(&found)?;
    context
        .session
        .sessions()
        .set_current(found.located.id)
        .map_err(|error| Failure::from_system("remember the current conversation", error))?;
    if context.output.is_json() {
        context
            .output
            .json(&json!({"id": found.located.id.to_string()}))?;
    } else {
        let title = conversation.metadata.title().unwrap_or("(no title)");
        context.output.status(&format!(
            "Conversation {} is the current one: {title}",
            found.located.id
        ));
    }
    Ok(Code::Done)
}

fn fork(
    context: &Context<'_>,
    id: Option<&str>,
    turns: Option<usize>,
    title: Option<&str>,
) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let kept = conversation
        .stream
        .kept_by_fork(turns.unwrap_or(usize::MAX));
    let title = title.or_else(|| conversation.metadata.title());
    let now = context.session.now();
    let added = carried_over(context, &conversation, &kept)?;
    let added = added.map(|delta| Event::new(now, EventKind::ConfigDelta(delta)));
    let mut writer = context.session.start(found.is_local, title, now)?;
    found.store.copy_events(
        &found.located,
        &kept,
        added.into_iter().collect(),
        &mut writer,
    )?;
    let own = context
        .session
        .tools_of_history(&conversation)
        .into_iter()
        .filter(|(_, is_own)| *is_own);
    let own: Vec<_> = own.map(|(name, _)| name).collect();
    context
        .session
        .remember_tools(writer.id(), own.iter().map(String::as_str));
    if let Err(error) = context.session.sessions().set_current(writer.id()) {
        context.output.warn(&format!(
            "the current conversation was not remembered: {error}"
        ));
    }
    let turns = turns_of(&conversation.stream, &kept);
    if context.output.is_json() {
        context.output.json(
            &json!({"id": writer.id().to_string(), "from": found.located.id.to_string(), "turns": turns}),
        )?;
    } else {
        context.output.line(&writer.id().to_string())?;
        let turns = size::count(turns, "turn");
        context.output.status(&format!(
            "Forked {} with {turns}; {} is the current conversation.",
            found.located.id,
            writer.id()
        ));
    }
    Ok(Code::Done)
}

fn declared_by_files(
    context: &Context<'_>,
    conversation: &Conversation,
) -> Result<Vec<Declaration>, Failure> {
    let config = context.session.config(Some(conversation), &[])?;
    Ok(read_configured(&config, &place(context.setup(&config))?)?.declarations)
}

fn turns_of(stream: &Stream, kept: &[usize]) -> usize {
    kept.iter()
        .filter(|index| matches!(stream.events()[**index].kind, EventKind::ChatRequest(_)))
        .count()
}

/// Finds the snapshots that a fork declares and no longer holds, and that can't be resolved again: it
/// takes the newest along. Snapshots taken by hand that went with a turn it lacks are taken anew.
fn carried_over(
    context: &Context<'_>,
    conversation: &Conversation,
    kept: &[usize],
) -> Result<Option<ConfigDelta>, Failure> {
    let events = kept
        .iter()
        .map(|index| conversation.stream.events()[*index].clone())
        .collect();
    let stream = Stream::from_events(events);
    let configured = declared_by_files(context, conversation)?;
    let plan = resolution::plan(&stream, &configured, &[]);
    let declared = resolution::effective(&stream, &configured);
    let snapshots = resolution::newest_snapshots(&conversation.stream);
    let snapshot =
        |declaration: &Declaration| snapshots.get(declaration.as_str()).copied().cloned();
    let resources: Vec<_> = plan.lost.iter().filter_map(snapshot).collect();
    let add = taken_by_hand(conversation, kept, &declared);
    if resources.is_empty() && add.is_empty() {
        return Ok(None);
    }
    let change = if add.is_empty() {
        ConfigDelta::default()
    } else {
        Change {
            add,
            ..Change::default()
        }
        .into_delta()
    };
    Ok(Some(ConfigDelta {
        resources,
        ..change
    }))
}

/// Returns the declarations in force of which snapshots were taken by hand, if a turn is not kept: those
/// snapshots may lack what went with that turn.
fn taken_by_hand(
    conversation: &Conversation,
    kept: &[usize],
    declared: &[Declaration],
) -> Vec<Declaration> {
    let events = conversation.stream.events();
    let kept: HashSet<usize> = kept.iter().copied().collect();
    let is_lost = |(index, event): (usize, &Event)| {
        matches!(event.kind, EventKind::ChatRequest(_)) && !kept.contains(&index)
    };
    if !events.iter().enumerate().any(is_lost) {
        return Vec::new();
    }
    let taken = events.iter().filter_map(|event| match &event.kind {
        EventKind::ConfigDelta(delta) => Some(&delta.delivered),
        _ => None,
    });
    let taken: HashSet<&Declaration> = taken
        .flatten()
        .map(|delivered| &delivered.declaration)
        .collect();
    let is_taken = |one: &&Declaration| taken.contains(one) && !one.names_snapshot();
    declared.iter().filter(is_taken).cloned().collect()
}

fn remove(context: &Context<'_>, ids: &[String]) -> Result<Code, Failure> {
    let mut found: Vec<Found> = Vec::new();
    for id in ids {
        let selected = context.session.selected(Some(id))?;
        if !found.iter().any(|found| found.located == selected.located) {
            found.push(selected);
        }
    }
    for found in &found {
        let lock = match found.store.try_lock(found.located.id)? {
            TryLock::Acquired(lock) => lock,
            TryLock::Held(held) => return Err(lock::in_use_error(found.located.id, &held).into()),
        };
        let ended = jp_turn::end_kept(&context.session.workspace.handles(found.located.id));
        if ended > 0 {
            let ended = size::count(ended, "tool");
            context
                .output
                .status(&format!("Ended {ended} that outlived the turn."));
        }
        found.store.remove(&found.located, lock)?;
        context
            .output
            .status(&format!("Removed conversation {}.", found.located.id));
    }
    if context.output.is_json() {
        context.output.json(&json!({"removed": ids}))?;
    }
    Ok(Code::Done)
}
