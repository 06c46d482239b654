//! Prepares the events that a query adds to its conversation.

use std::collections::HashSet;

use crate::{
    attachments::{
        approval::{list_approvals, warn_of_outside_file},
        declarations::{self, read_configured, resolve_context, warn_of_unreadable},
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
    resolution::{self, Change},
};
use jp_storage::{Batch, Stamps};
use serde_json::json;

/// The events to append, and the content that they name.
pub(crate) struct Prepared {
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) batch: Batch,
    /// The files and the measures of that content.
    pub(crate) kept: KeptContent,
    pub(crate) now: jiff::Timestamp,
}

impl Prepared {
    /// Returns no events, for a message that is sent again.
    fn empty(batch: Batch, now: jiff::Timestamp) -> Self {
        Self {
            kinds: Vec::new(),
            batch,
            kept: KeptContent::default(),
            now,
        }
    }

    /// Returns the conversation with these events, without recording them. Their content goes to the
    /// store of the batch.
    pub(crate) fn into_stream(self, mut stream: Stream) -> Result<Stream, SessionError> {
        self.batch.commit()?;
        self.kinds
            .into_iter()
            .for_each(|kind| stream.push(Event::new(self.now, kind)));
        Ok(stream)
    }
}

/// Resolves the attachments and puts together the events of the request.
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
        check_repeat(request, target)?;
        return Ok(Prepared::empty(batch, now));
    };
    let place = declarations::place(setup)?;
    let configured = read_configured(config, &place)?;
    let stamps = session.workspace.stamps();
    let keeper = BatchStore::new(&batch, &stamps);
    let resolving = resolve_context(setup, &place, &keeper, request.skip_unavailable)?;
    let explicit = parse(setup, &request.attach, &place, resolving.unavailable)?;
    // Earlier declarations are compared with these, so they need the same form.
    let typed = stored_forms(&explicit);
    let approved = list_approvals(&explicit, &place);
    let plan = resolution::plan(&target.stream(), &configured.declarations, &typed)
        .resolve_found(|declaration| configured.sources.contains_key(declaration));
    let mut earlier: HashSet<Declaration> = plan.declarations().cloned().collect();
    earlier.retain(|declaration| !typed.contains(declaration));
    warn_of_unreadable(session, &target.stream());
    for declaration in &configured.refused {
        warn_of_outside_file(session, declaration);
    }
    let declared = EarlierDeclarations {
        plan,
        configured: &configured,
        is_new: target.conversation().is_none(),
        named: request.conversation_id(),
    };
    let attachments = attach(setup, declared, explicit, &resolving, &stamps)?;
    let stale = find_notifications(
        setup,
        &target.stream(),
        &configured,
        &attachments,
        &resolving,
        &stamps,
    )?;
    // Only now: a query that failed, or that stores nothing, leaves no approvals behind.
    if scratch.is_none() {
        session.remember_approvals(approved.iter().map(String::as_str));
        save_file_states(session, &stamps);
    }
    let excludes = typed.into_iter().filter(Declaration::is_exclude);
    let delta = build_delta(request, tools, &attachments, &earlier, excludes);
    let kept = keeper.into_kept_content();
    Ok(Prepared {
        kinds: build_turn(delta, stale, message, attachments),
        batch,
        kept,
        now,
    })
}

/// Resolves the attachments, while another thread reads the cache of file states.
fn attach(
    setup: Setup<'_>,
    earlier: EarlierDeclarations<'_>,
    explicit: Vec<Declared>,
    resolving: &jp_attachment::Context<'_>,
    stamps: &Stamps,
) -> Result<Attachments, SessionError> {
    let session = setup.session;
    let attaches = !explicit.is_empty() || !earlier.plan.resolve.is_empty();
    // The first call starts a thread and waits for it. That is fastest before other threads run.
    _ = session.interrupt();
    std::thread::scope(|scope| {
        if attaches {
            // If no thread can be started, the cache is read when it is needed.
            _ = std::thread::Builder::new().spawn_scoped(scope, || stamps.preload());
        }
        resolve(setup, earlier, explicit, resolving)
    })
}

/// Saves the cache of file states. If that fails, the next query reads the files again.
fn save_file_states(session: &Session, stamps: &Stamps) {
    if let Err(error) = stamps.save() {
        session.person.tell(Notice::FileStatesNotSaved {
            error: error.to_string(),
        });
    }
}

/// Returns the events that a turn begins with, in their order in the conversation.
fn build_turn(
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
    // Before the message, so that the model reads first which sources have changed.
    kinds.extend(stale.into_iter().map(EventKind::Notification));
    kinds.push(EventKind::ChatRequest(ChatRequest {
        resources: snapshots,
        delivered,
        ..message
    }));
    kinds
}

/// Checks that a query without a message has an unanswered one to send again.
fn check_repeat(request: &QueryRequest, target: &Target) -> Result<(), SessionError> {
    let conversation = target.conversation();
    let message = if !request.attach.is_empty() {
        "there is no message to send with the attachments"
    } else if request.schema.is_some() {
        // A stored message is sent again byte for byte, so that a provider can serve it from its cache.
        "there is no message to send with that schema; jp sends a stored message again with its own schema"
    } else {
        match conversation.map(|conversation| conversation.stream.unanswered_request()) {
            Some(Some(_)) => return Ok(()),
            Some(None) => "there is no message to send, and no unanswered message to send again",
            None => "there is no message to send",
        }
    };
    Err(SessionError::usage(message)
        .with_hint("pass a message: `jp query \"your question\"`, or pipe it in."))
}

/// Returns the settings that the user chose with this request, so that later requests of the
/// conversation use them too. `earlier` are the declarations of earlier requests.
fn build_delta(
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
    // Earlier declarations are in the conversation or in the configuration already.
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
