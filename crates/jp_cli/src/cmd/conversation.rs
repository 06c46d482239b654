//! `jp conversation`.

mod as_sent;
mod compact;
mod print;
mod show;

use std::collections::HashSet;

use crate::{
    args,
    context::{Context, OpenConversation},
    error::{Code, SessionError},
};
use jp_conversation::{
    ConfigDelta, Declaration, Event, EventKind, Stream,
    resolution::{self, Change},
};
use jp_session::{lock, notice::Notice, session::Found, size};
use jp_storage::{ConversationId, Summary, lock::TryLock};
use serde_json::{Value, json};

pub(crate) fn run(
    command: args::Conversation,
    context: &Context<'_>,
) -> Result<Code, SessionError> {
    match command {
        args::Conversation::Ls { archived } => list(context, archived),
        args::Conversation::Show { id, files: true } => show::print_files(context, id.as_deref()),
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

fn list(context: &Context<'_>, archived: bool) -> Result<Code, SessionError> {
    let (mut conversations, mut others) = (
        context.session.conversations()?,
        context.session.archived_conversations()?,
    );
    // Both lists are read in any case: one for the table, the other for the hint and the index.
    if archived {
        std::mem::swap(&mut conversations, &mut others);
    }
    let current = context.session.current_id()?;
    let rows = summarise(context, &conversations, &others);
    if context.output.is_json() {
        let rows: Vec<_> = rows
            .iter()
            .map(|(found, summary)| describe(found, summary, current))
            .collect();
        context.output.json(&rows)?;
        return Ok(Code::Done);
    }
    let cells: Vec<_> = rows
        .iter()
        .map(|(found, summary)| cells(found, summary, current))
        .collect();
    context.output.table(&cells)?;
    match (rows.is_empty(), archived) {
        (true, true) => context
            .output
            .status("There are no archived conversations."),
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

/// Returns the conversations with their summaries, and saves the index of summaries. The index covers `others`, too, so that
/// saving it doesn't drop them.
fn summarise<'a>(
    context: &Context<'_>,
    conversations: &'a [Found],
    others: &[Found],
) -> Vec<(&'a Found, Summary)> {
    let mut index = context.session.workspace.index();
    let rows = conversations
        .iter()
        .map(|found| (found, index.summary(&found.store, &found.located)))
        // A conversation that another jp has removed meanwhile is not unreadable.
        .filter(|(found, summary)| summary.turns.is_some() || found.located.exists())
        .collect();
    let located: Vec<_> = conversations
        .iter()
        .chain(others)
        .map(|found| found.located.clone())
        .collect();
    if let Err(error) = index.save(&located) {
        context.output.detail(&format!(
            "failed to save the index of conversations: {error}"
        ));
    }
    rows
}

fn cells(found: &Found, summary: &Summary, current: Option<ConversationId>) -> Vec<String> {
    let mark = match Some(found.located.id) == current {
        true => "*",
        false => " ",
    };
    // A damaged conversation is listed, too, so that the user finds out.
    let turns = summary
        .turns
        .map_or("unreadable".to_owned(), |turns| size::count(turns, "turn"));
    let local = if found.is_local { " (local)" } else { "" };
    let title = summary.title.as_deref().unwrap_or("(no title)");
    vec![
        format!("{mark} {}", found.located.id),
        turns,
        format_last_use(summary),
        format!("{title}{local}"),
    ]
}

/// Formats the time of the last use in the user's time zone; returns an empty text if it is unknown.
fn format_last_use(summary: &Summary) -> String {
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

/// Describes a conversation for `--format json`.
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

fn make_current(context: &Context<'_>, id: &str) -> Result<Code, SessionError> {
    let found = context.session.select(Some(id))?;
    // An archived conversation can't be continued, so it can't be current either.
    found.refuse_archived()?;
    let conversation = context.session.read(&found)?;
    context
        .session
        .sessions()
        .set_current(found.located.id)
        .map_err(|error| SessionError::from_system("remember the current conversation", error))?;
    if context.output.is_json() {
        context
            .output
            .json(&json!({"id": found.located.id.to_string()}))?;
    } else {
        let title = conversation.metadata.title().unwrap_or("(no title)");
        context.output.status(&format!(
            "Conversation {} is now the current one: {title}",
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
) -> Result<Code, SessionError> {
    let source = context.open_conversation(id)?;
    let kept = source.stream().kept_by_fork(turns.unwrap_or(usize::MAX));
    let title = title.or_else(|| source.conversation.metadata.title());
    let now = context.session.now();
    let added = attach_to_fork(&source, &kept)?
        .map(|delta| Event::new(now, EventKind::ConfigDelta(delta)))
        .into_iter()
        .collect();
    let mut writer = context.session.start(source.found.is_local, title, now)?;
    source
        .found
        .store
        .copy_events(&source.found.located, &kept, added, &mut writer)?;
    // The copy's history enables the same tools. Those that the user enabled stay enabled there.
    let tools = context.session.tools_of_history(&source.conversation);
    let own: Vec<_> = tools
        .into_iter()
        .filter_map(|(name, is_own)| is_own.then_some(name))
        .collect();
    context
        .session
        .remember_tools(writer.id(), own.iter().map(String::as_str));
    if let Err(error) = context.session.sessions().set_current(writer.id()) {
        let error = error.to_string();
        context
            .session
            .person
            .tell(Notice::CurrentNotSaved { error });
    }
    let from = source.found.located.id;
    let turns = count_turns(source.stream(), &kept);
    if context.output.is_json() {
        context.output.json(
            &json!({"id": writer.id().to_string(), "from": from.to_string(), "turns": turns}),
        )?;
    } else {
        // On stdout, so that a script can use the id.
        context.output.line(&writer.id().to_string())?;
        let turns = size::count(turns, "turn");
        context.output.status(&format!(
            "Forked {from} with {turns}; {} is now the current conversation.",
            writer.id()
        ));
    }
    Ok(Code::Done)
}

/// Counts the turns among the events at the indexes `kept`.
fn count_turns(stream: &Stream, kept: &[usize]) -> usize {
    kept.iter()
        .filter(|index| matches!(stream.events()[**index].kind, EventKind::ChatRequest(_)))
        .count()
}

/// Returns the change that gives a fork the attachments that it lacks.
///
/// A fork declares the same attachments, but a snapshot that can't be resolved again may be in a turn that it does not keep:
/// the change adds the newest one. The fork resolves refreshed attachments again, if it lacks a turn.
fn attach_to_fork(
    source: &OpenConversation<'_>,
    kept: &[usize],
) -> Result<Option<ConfigDelta>, SessionError> {
    let events = kept
        .iter()
        .map(|index| source.stream().events()[*index].clone())
        .collect();
    let fork = Stream::from_events(events);
    let configured = source.read_configured(&source.find_place()?)?.declarations;
    let plan = resolution::plan(&fork, &configured, &[]);
    let declared = resolution::effective(&fork, &configured);
    let snapshots = resolution::newest_snapshots(source.stream());
    // `lost` are declarations whose snapshot the fork lacks and that can't be resolved again.
    let resources: Vec<_> = plan
        .lost
        .iter()
        .filter_map(|declaration| snapshots.get(declaration.as_str()))
        .map(|snapshot| (*snapshot).clone())
        .collect();
    let change = Change::delta_that_adds(list_refreshed(source.stream(), kept, &declared));
    if resources.is_empty() && change.is_none() {
        return Ok(None);
    }
    Ok(Some(ConfigDelta {
        resources,
        ..change.unwrap_or_default()
    }))
}

/// Lists the declarations that were refreshed between messages, unless the fork keeps all turns. A refresh stores only the
/// resources that changed, so the other ones may be in a turn that the fork lacks.
fn list_refreshed(stream: &Stream, kept: &[usize], declared: &[Declaration]) -> Vec<Declaration> {
    if count_turns(stream, kept) == stream.requests().count() {
        return Vec::new();
    }
    let deltas = stream
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ConfigDelta(delta) => Some(&delta.delivered),
            _ => None,
        });
    let refreshed: HashSet<_> = deltas
        .flatten()
        .map(|delivered| &delivered.declaration)
        .collect();
    declared
        .iter()
        .filter(|declaration| refreshed.contains(declaration) && !declaration.names_snapshot())
        .cloned()
        .collect()
}

fn remove(context: &Context<'_>, ids: &[String]) -> Result<Code, SessionError> {
    // All ids are looked up first, so that a wrong one removes nothing. The same conversation may be named twice.
    let mut found: Vec<Found> = Vec::new();
    for id in ids {
        let selected = context.session.select(Some(id))?;
        if !found.iter().any(|found| found.located == selected.located) {
            found.push(selected);
        }
    }
    for found in &found {
        let lock = match found.store.try_lock(found.located.id)? {
            TryLock::Acquired(lock) => lock,
            TryLock::Held(held) => return Err(lock::in_use_error(found.located.id, &held)),
        };
        // Tools with `keep = true` outlive jp, but not their conversation.
        let ended = jp_turn::end_kept(&context.session.workspace.handles(found.located.id));
        if ended > 0 {
            let ended = size::count(ended, "tool");
            context
                .output
                .status(&format!("Ended {ended} that still ran."));
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
