//! Writing the message, and then the turn, to the conversation.

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

/// A conversation that is being written to.
pub(crate) struct Recording {
    pub(crate) writer: Writer,
    /// The message on its way to the disk.
    message: Option<Pending>,
    /// That the conversation is used, on its way there, too.
    activation: Option<Pending>,
}

/// Stores what was prepared; returns the conversation with it.
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
            let lock = lock.ok_or_else(|| SessionError::new("the conversation is not locked"))?;
            let mut writer = found.store.writer(&conversation, lock);
            activation = Some(writer.activate(now));
            (conversation.stream, writer)
        }
    };
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
    /// Does some work while the disk takes what was written; nothing is sent before both are done. Once it is stored,
    /// the conversation is the current one.
    pub(crate) fn beside<T>(
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
                finishing.map(|finishing| finishing.map_or(Ok(()), finished)),
            )
        });
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

/// Appends what happens in a turn to its conversation, and remembers what the turn came to.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// `None` if nothing is stored, or once storing failed: what came after it would be an answer
    /// with a hole in it.
    writer: Option<Writer>,
    /// What the model said in this turn, and what it cost.
    pub(crate) kept: Vec<EventKind>,
    /// About how many tokens delivery saved in the requests that were answered.
    pub(crate) saved_tokens: u64,
}

impl Recorder {
    pub(crate) fn new(writer: Option<Writer>) -> Self {
        Self {
            writer,
            ..Self::default()
        }
    }

    /// Appends events, which are on disk when this returns.
    pub(crate) fn append(
        &mut self,
        asked: &mut ReadyQuery<'_>,
        kinds: Vec<EventKind>,
    ) -> Result<(), SessionError> {
        let said = kinds.iter().filter(|kind| is_the_models(kind));
        self.kept.extend(said.cloned());
        let now = asked.session.now();
        let events: Vec<_> = kinds
            .into_iter()
            .map(|kind| Event::new(now, kind))
            .collect();
        let events = match self.writer.take() {
            None => store_payloads(asked, events)?,
            Some(mut writer) => {
                let batch = writer.batch();
                let events = writer.append(events, batch).map_err(unkept)?;
                self.writer = Some(writer);
                events
            }
        };
        events
            .into_iter()
            .for_each(|event| asked.stream.push(event));
        Ok(())
    }
}

/// Returns whether an event is the model's own, not a tool's result.
pub(crate) fn is_the_models(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::ToolCallResponse(_))
}

/// Moves the payloads of events into the scratch store, if the query has one.
fn store_payloads(
    asked: &ReadyQuery<'_>,
    mut events: Vec<Event>,
) -> Result<Vec<Event>, SessionError> {
    if let Some(scratch) = &asked.scratch {
        let batch = scratch.blobs().batch();
        let mut put = |bytes: &[u8], encoding| batch.put(bytes, encoding);
        events
            .iter_mut()
            .try_for_each(|event| event.store_payloads(&mut put))?;
        batch.commit()?;
    }
    Ok(events)
}

/// Says what is lost if the answer could not be stored, and what is not.
fn unkept(error: WriteError) -> SessionError {
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

/// What writes the message: a thread, or, where the system had none for it, what came of it already.
type Finishing<'scope> =
    Result<ScopedJoinHandle<'scope, Result<(), WriteError>>, Result<(), WriteError>>;

fn start_finishing<'scope>(
    scope: &'scope Scope<'scope, '_>,
    pending: Pending,
) -> Finishing<'scope> {
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

/// Waits for what a thread writes.
fn finished(finishing: Finishing<'_>) -> Result<(), SessionError> {
    let panicked = |_| SessionError::new("failed to store the message: its thread panicked");
    let done = finishing.map_or_else(Ok, |thread| thread.join().map_err(panicked));
    Ok(done??)
}
