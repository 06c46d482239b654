//! Writes the message, and then the turn, to the conversation.

use std::{
    io::ErrorKind,
    sync::mpsc,
    thread::{Scope, ScopedJoinHandle},
};

use jp_conversation::{Event, EventKind, Stream};
use jp_storage::{Pending, WriteError, Writer};

use crate::{
    error::SessionError,
    notice::Notice,
    query::{
        compose, finish::kept_message, prepare::Prepared, ready_query::ReadyQuery, target::Target,
    },
    session::Session,
};

/// A conversation that jp writes to.
pub(crate) struct Recording {
    pub(crate) writer: Writer,
    /// The message, written but not synced.
    message: Option<Pending>,
    /// The time of its last use, written but not synced.
    activation: Option<Pending>,
}

/// Stores the prepared events. Returns the conversation with them.
pub(crate) fn record(
    session: &Session,
    target: Target,
    prepared: Prepared,
) -> Result<(Stream, Recording), SessionError> {
    let Prepared {
        kinds, batch, now, ..
    } = prepared;
    let events: Vec<_> = kinds
        .into_iter()
        .map(|kind| Event::new(now, kind))
        .collect();
    let mut activation = None;
    let (mut stream, mut writer) = match target {
        Target::New {
            store,
            is_local,
            title,
        } => {
            // Without a title, lists show the first words of the message.
            let title = title.or_else(|| events.iter().find_map(compose::title));
            (
                Stream::default(),
                store.start(title.as_deref(), now, &[session.store(!is_local)])?,
            )
        }
        Target::Existing {
            found,
            conversation,
            lock,
        } => {
            // `Target::open` has locked it, because this query is recorded.
            let lock = lock.ok_or_else(|| SessionError::new("the conversation is not locked"))?;
            let mut writer = found.store.writer(&conversation, lock);
            activation = Some(writer.activate(now));
            (conversation.stream, writer)
        }
    };
    // A message that is sent again is in the conversation already: there is nothing to write.
    let mut message = None;
    if !events.is_empty() {
        let (events, unsynced) = writer.write(events, batch)?;
        events.into_iter().for_each(|event| stream.push(event));
        message = Some(unsynced);
    }
    Ok((
        stream,
        Recording {
            writer,
            message,
            activation,
        },
    ))
}

impl Recording {
    /// Does some work while the disk syncs the message, and waits for both.
    ///
    /// The request is sent only after that, so a message that a provider answers is never lost. The
    /// conversation then becomes the current one.
    pub(crate) fn finish_during<T>(
        &mut self,
        session: &Session,
        work: impl FnOnce() -> T,
    ) -> Result<T, SessionError> {
        let pending = [self.message.take(), self.activation.take()];
        let (done, [message, activation]) = std::thread::scope(|scope| {
            let finishing =
                pending.map(|pending| pending.map(|pending| start_finishing(scope, pending)));
            let done = work();
            (
                done,
                finishing.map(|finishing| finishing.map_or(Ok(()), wait_for)),
            )
        });
        // The message is stored even if the time of its last use is not.
        message?;
        activation.map_err(|failure| kept_message(failure, true))?;
        if let Err(error) = session.sessions().set_current(self.writer.id()) {
            session.person.tell(Notice::CurrentNotSaved {
                error: error.to_string(),
            });
        }
        Ok(done)
    }
}

/// Appends the events of a turn to its conversation, and remembers its outcome.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// `None` if the conversation does not keep the query, or after a write failed: later events
    /// would leave a gap in the answer.
    writer: Option<Writer>,
    /// The answers, calls and usage of this turn.
    pub(crate) kept: Vec<EventKind>,
    /// The estimated tokens that delivery saved in the answered requests.
    pub(crate) saved_tokens: u64,
}

impl Recorder {
    pub(crate) fn new(writer: Option<Writer>) -> Self {
        Self {
            writer,
            ..Self::default()
        }
    }

    /// Appends events and syncs them.
    pub(crate) fn append(
        &mut self,
        query: &mut ReadyQuery<'_>,
        kinds: Vec<EventKind>,
    ) -> Result<(), SessionError> {
        let from_model = kinds.iter().filter(|kind| is_from_model(kind));
        self.kept.extend(from_model.cloned());
        let now = query.session.now();
        let events: Vec<_> = kinds
            .into_iter()
            .map(|kind| Event::new(now, kind))
            .collect();
        // If the write fails, the writer stays away and later events are not written.
        let events = match self.writer.take() {
            None => store_payloads(query, events)?,
            Some(mut writer) => {
                let batch = writer.batch();
                let events = writer.append(events, batch).map_err(describe_loss)?;
                self.writer = Some(writer);
                events
            }
        };
        events
            .into_iter()
            .for_each(|event| query.stream.push(event));
        Ok(())
    }
}

/// Returns whether an event comes from the model. Only the results of calls don't.
pub(crate) fn is_from_model(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::ToolCallResponse(_))
}

/// Moves the payloads of events into the scratch store, if the query has one.
fn store_payloads(
    query: &ReadyQuery<'_>,
    mut events: Vec<Event>,
) -> Result<Vec<Event>, SessionError> {
    if let Some(scratch) = &query.scratch {
        let batch = scratch.blobs().batch();
        let mut put = |bytes: &[u8], encoding| batch.put(bytes, encoding);
        events
            .iter_mut()
            .try_for_each(|event| event.store_payloads(&mut put))?;
        batch.commit()?;
    }
    Ok(events)
}

/// Adds to a failed write which part of the answer is lost.
fn describe_loss(error: WriteError) -> SessionError {
    let is_gone =
        matches!(&error, WriteError::Io { source, .. } if source.kind() == ErrorKind::NotFound);
    let failure = SessionError::from(error);
    if is_gone {
        return failure.with_hint("the conversation was removed, so the answer is not stored.");
    }
    failure.with_hint(
        "the end of the answer is not stored. `jp query` without a message continues from what is stored.",
    )
}

/// The thread that syncs the message. If the system could not start one, the result of syncing it
/// here.
type Finishing<'scope> =
    Result<ScopedJoinHandle<'scope, Result<(), WriteError>>, Result<(), WriteError>>;

/// Syncs on another thread, or here if the system can't start one.
fn start_finishing<'scope>(
    scope: &'scope Scope<'scope, '_>,
    pending: Pending,
) -> Finishing<'scope> {
    // A failed start drops its closure, so `pending` must not be in there.
    let (sender, receiver) = mpsc::channel::<Pending>();
    let finish = move || receiver.recv().map_or(Ok(()), Pending::finish);
    match std::thread::Builder::new().spawn_scoped(scope, finish) {
        Ok(thread) => {
            sender.send(pending).expect("the thread waits for it");
            Ok(thread)
        }
        Err(_) => Err(pending.finish()),
    }
}

/// Waits until a thread has synced.
fn wait_for(finishing: Finishing<'_>) -> Result<(), SessionError> {
    let synced = match finishing {
        Ok(thread) => thread
            .join()
            .map_err(|_| SessionError::new("failed to store the message: its thread panicked"))?,
        Err(synced) => synced,
    };
    Ok(synced?)
}
