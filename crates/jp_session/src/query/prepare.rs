//! What a query adds to its conversation.

use std::collections::HashSet;

use crate::{
    attachments::{
        approval::{list_approvals, warn_of_outside_file},
        declarations::{place, read_configured, resolve_context, warn_of_unreadable},
        resolve::{Attachments, EarlierDeclarations, parse, resolve, stored_forms},
        source_changes::find_notifications,
        store::{BatchStore, KeptContent},
    },
    error::SessionError,
    notice::Notice,
    query::{contents::Scratch, request::QueryRequest, target::Target},
    session::{Session, Setup},
    tools::Tools,
};
use jp_attachment::Declared;
use jp_conversation::{
    ChatRequest, ConfigDelta, Declaration, Event, EventKind, Notification, Stream,
    resolution::{Change, plan},
};
use jp_storage::{Batch, Stamps};
use serde_json::json;

/// Events to append, and the content they name.
pub(crate) struct Prepared {
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) batch: Batch,
    /// What is known of that content.
    pub(crate) kept: KeptContent,
    pub(crate) now: jiff::Timestamp,
}

impl Prepared {
    /// Returns the conversation as it would be; its new content is in the batch's store.
    pub(crate) fn into_stream(self, mut stream: Stream) -> Result<Stream, SessionError> {
        self.batch.commit()?;
        self.kinds
            .into_iter()
            .for_each(|kind| stream.push(Event::new(self.now, kind)));
        Ok(stream)
    }
}

/// Resolves what is to be attached and puts together the events of the request.
pub(crate) fn prepare(
    request: &QueryRequest,
    setup: Setup<'_>,
    target: &Target,
    message: Option<ChatRequest>,
    tools: &Tools,
    scratch: Option<&Scratch>,
) -> Result<Prepared, SessionError> {
    let Setup { session, config } = setup;
    let batch = scratch.map_or_else(|| target.store().batch(), |scratch| scratch.blobs().batch());
    let now = session.now();
    let Some(message) = message else {
        repeat(request, target)?;
        return Ok(Prepared {
            kinds: Vec::new(),
            batch,
            kept: KeptContent::default(),
            now,
        });
    };
    let place = place(setup)?;
    let configured = read_configured(config, &place)?;
    let stamps = session.workspace.stamps();
    let keeper = BatchStore::new(&batch, &stamps);
    let resolving = resolve_context(setup, &place, &keeper, request.skip_unavailable)?;
    let explicit = parse(setup, &request.attach, &place, resolving.unavailable)?;
    let typed = stored_forms(&explicit);
    let approved = list_approvals(&explicit, &place);
    let plan = plan(&target.stream(), &configured.declarations, &typed)
        .resolve_found(|declaration| configured.sources.contains_key(declaration));
    let earlier = plan
        .declarations()
        .filter(|declaration| !typed.contains(declaration));
    let earlier: HashSet<Declaration> = earlier.cloned().collect();
    warn_of_unreadable(session, &target.stream());
    configured
        .refused
        .iter()
        .for_each(|declaration| warn_of_outside_file(session, declaration));
    let is_new = target.conversation().is_none();
    let made = EarlierDeclarations {
        plan,
        configured: &configured,
        is_new,
        named: request.named(),
    };
    let attachments = attach(setup, made, explicit, &resolving, &stamps)?;
    let stale = find_notifications(
        setup,
        &target.stream(),
        &configured,
        &attachments,
        &resolving,
        &stamps,
    )?;
    if scratch.is_none() {
        session.remember_agreed(approved.iter().map(String::as_str));
        save(session, &stamps);
    }
    let excludes = typed.into_iter().filter(Declaration::is_exclude);
    let delta = delta(request, tools, &attachments, &earlier, excludes);
    let kinds = turn(delta, stale, message, attachments);
    let kept = keeper.into_kept_content();
    Ok(Prepared {
        kinds,
        batch,
        kept,
        now,
    })
}

/// Resolves what is attached, while the cache of file states is read.
fn attach(
    setup: Setup<'_>,
    earlier: EarlierDeclarations<'_>,
    explicit: Vec<Declared>,
    resolving: &jp_attachment::Context<'_>,
    stamps: &Stamps,
) -> Result<Attachments, SessionError> {
    let session = setup.session;
    let attaches = !explicit.is_empty() || !earlier.plan.resolve.is_empty();
    // Whoever asks first waits for its thread to start: here, before another thread is in its way.
    _ = session.interrupt();
    std::thread::scope(|scope| {
        if attaches {
            // Where there is no thread for it, it is read when it is needed.
            _ = std::thread::Builder::new().spawn_scoped(scope, || stamps.preload());
        }
        resolve(setup, earlier, explicit, resolving)
    })
}

/// Saves the cache of file states; without it files are read again.
fn save(session: &Session, stamps: &Stamps) {
    if let Err(error) = stamps.save() {
        session.person.tell(Notice::FileStatesNotSaved {
            error: error.to_string(),
        });
    }
}

/// Returns the events that a turn begins with.
fn turn(
    delta: Option<ConfigDelta>,
    stale: Vec<Notification>,
    message: ChatRequest,
    attachments: Attachments,
) -> Vec<EventKind> {
    let Attachments {
        snapshots,
        delivered,
        ..
    } = attachments;
    let mut kinds = Vec::from_iter(delta.map(EventKind::ConfigDelta));
    kinds.push(EventKind::TurnStart);
    kinds.extend(stale.into_iter().map(EventKind::Notification));
    kinds.push(EventKind::ChatRequest(ChatRequest {
        resources: snapshots,
        delivered,
        ..message
    }));
    kinds
}

/// Checks that there is a request to send again.
fn repeat(request: &QueryRequest, target: &Target) -> Result<(), SessionError> {
    let usage = |message: &str| {
        Err(SessionError::usage(message)
            .with_hint("pass a message: `jp query \"your question\"`, or pipe it in."))
    };
    if !request.attach.is_empty() {
        return usage("there is no message to send with the attachments");
    }
    if request.schema.is_some() {
        return usage(
            "there is no message to send with that schema; jp sends a stored message again with its own schema",
        );
    }
    match target.conversation() {
        Some(conversation) if conversation.stream.unanswered_request().is_some() => Ok(()),
        Some(_) => usage("there is no message to send, and no unanswered message to send again"),
        None => usage("there is no message to send"),
    }
}

/// Records what the person chose with this request, so that the conversation keeps to it; `earlier` are the
/// declarations that were made before.
fn delta(
    request: &QueryRequest,
    tools: &Tools,
    attachments: &Attachments,
    earlier: &HashSet<Declaration>,
    excludes: impl Iterator<Item = Declaration>,
) -> Option<ConfigDelta> {
    let delivered = attachments
        .delivered
        .iter()
        .map(|delivered| &delivered.declaration);
    let added = delivered
        .filter(|declaration| !earlier.contains(declaration))
        .cloned();
    let add: Vec<_> = added.chain(excludes).collect();
    let mut delta = Change::delta_that_adds(add).unwrap_or_default();
    if let Some(model) = &request.model {
        delta
            .delta
            .insert("assistant".to_owned(), json!({"model": {"id": model}}));
    }
    if !tools.chosen.is_empty() {
        let conversation = delta
            .delta
            .entry("conversation")
            .or_insert_with(|| json!({}));
        conversation["tools"] = tools.chosen.clone().into();
    }
    (!delta.delta.is_empty()).then_some(delta)
}
