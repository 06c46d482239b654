//! What one client has asked and not got yet, so that one that does not read can't have a server gather answers.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;

/// How many requests are taken before the client gets an answer.
#[cfg(feature = "stdio")]
const MAX_REQUESTS: usize = 1024;

/// How many bytes the messages may have that something is done for, with the lines that wait for the client, before no
/// more are taken.
#[cfg(feature = "stdio")]
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// How many requests may wait for changes.
#[cfg(feature = "stdio")]
const MAX_STREAMS: usize = 4096;

/// How many bytes those requests may have.
#[cfg(feature = "stdio")]
const MAX_STREAM_BYTES: usize = 16 * 1024 * 1024;

/// How many answers may wait for the client before no more are begun, and how many are begun at once.
const MAX_ANSWERS: usize = 32;

/// How long making an answer keeps others from being begun.
const BEGINNING: Duration = Duration::from_millis(250);

/// The requests of one client that are not answered. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Backlog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    requests: Mutex<HashMap<RequestId, Stage>>,
    load: watch::Sender<Load>,
    beginnings: Semaphore,
}

/// How far the answer to a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[cfg_attr(
        not(feature = "stdio"),
        expect(dead_code, reason = "only a transport of ours knows")
    )]
    Open,
    Made,
}

/// What a transport tells of its client; where it tells nothing, this is nothing, and there is always room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    /// Requests that wait for changes, until their streams end.
    streams: Messages,
    /// Other messages that something is still done for, also requests that were cancelled.
    running: Messages,
    /// How many requests have an answer that the transport does not have.
    made: usize,
    /// Lines that are being written.
    sending: Messages,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Messages {
    count: usize,
    bytes: usize,
}

/// What is done for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "stdio"),
    expect(dead_code, reason = "only a transport of ours knows")
)]
pub(super) enum Kind {
    /// Telling of changes, until the client wants no more.
    Stream,
    Other,
}

/// A request to answer.
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) counted: Option<Counted>,
}

/// A message that something is done for until the last clone is dropped: rmcp hands it on with the message.
#[derive(Debug, Clone)]
pub(super) struct Counted(#[expect(dead_code, reason = "it is dropped")] Arc<Count>);

#[derive(Debug)]
struct Count {
    backlog: Backlog,
    kind: Kind,
    bytes: usize,
}

/// A line of so many bytes that is being written, whatever the client says; once this is dropped, it is no more.
#[cfg(feature = "stdio")]
#[derive(Debug)]
pub(super) struct Sending(Backlog, usize);

impl Default for Backlog {
    fn default() -> Self {
        let beginnings = Semaphore::new(MAX_ANSWERS);
        Self(Arc::new(Shared {
            requests: Mutex::default(),
            load: watch::Sender::default(),
            beginnings,
        }))
    }
}

impl Backlog {
    /// A request came.
    ///
    /// # Errors
    ///
    /// Why it can't be taken.
    #[cfg(feature = "stdio")]
    pub(super) fn begin(&self, id: &RequestId, kind: Kind) -> Result<(), String> {
        let load = *self.0.load.borrow();
        // Others than requests are read all the same: they may be what requests wait for.
        if kind == Kind::Other && load.bytes() >= 2 * MAX_BYTES {
            let (count, bytes) = (load.running.count + load.unread(), load.bytes());
            return Err(format!(
                "{count} messages of {bytes} bytes are at work or unread; read answers first"
            ));
        }
        let Messages { count, bytes } = load.streams;
        if kind == Kind::Stream && (count >= MAX_STREAMS || bytes >= MAX_STREAM_BYTES) {
            return Err(format!(
                "{count} streams are open, of {bytes} bytes; cancel one first"
            ));
        }
        let mut is_new = false;
        self.change(id, |stage| {
            is_new = stage.is_none();
            stage.or(Some(Stage::Open))
        });
        if is_new {
            Ok(())
        } else {
            Err("a request with this id has no answer yet".to_owned())
        }
    }

    /// Counts a message of so many bytes for as long as something is done for it.
    #[cfg(feature = "stdio")]
    pub(super) fn count(&self, kind: Kind, bytes: usize) -> Counted {
        self.0.load.send_modify(|load| load.of(kind).add(bytes));
        Counted(Arc::new(Count {
            backlog: self.clone(),
            kind,
            bytes,
        }))
    }

    /// The transport has a line of so many bytes to write, which may be the answer to a request.
    #[cfg(feature = "stdio")]
    pub(super) fn send(&self, answered: Option<&RequestId>, bytes: usize) -> Sending {
        self.0.load.send_modify(|load| load.sending.add(bytes));
        if let Some(id) = answered {
            self.change(id, |_| None);
        }
        Sending(self.clone(), bytes)
    }

    /// The client wants no answer any more.
    #[cfg(feature = "stdio")]
    pub(super) fn cancel(&self, id: &RequestId) {
        self.change(id, |_| None);
    }

    /// Waits until another message may be taken.
    #[cfg(feature = "stdio")]
    pub(super) async fn room_for_request(&self) {
        self.wait(|load| {
            load.running.count + load.unread() < MAX_REQUESTS && load.bytes() < MAX_BYTES
        })
        .await;
    }

    /// Waits until the client has read so much that it is sure to read.
    #[cfg(feature = "stdio")]
    pub(super) async fn room_for_answers(&self) {
        self.wait(|load| load.unread() < 2 * MAX_REQUESTS && load.sending.bytes < 2 * MAX_BYTES)
            .await;
    }

    /// Waits until fewer messages and lines are open; says how many.
    #[cfg(feature = "stdio")]
    pub(super) async fn fewer_open(&self, than: usize) -> usize {
        let mut fewer = 0;
        self.wait(|load| {
            fewer = load.open();
            fewer < than
        })
        .await;
        fewer
    }

    /// Makes an answer once there is room for it. What is `cancelled` waits for none: it ends by itself.
    pub(super) async fn answer<T>(
        &self,
        Asked { id, counted }: Asked,
        cancelled: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        // Until the answer is made, whatever becomes of the context that it was in.
        let Some(_counted) = counted else {
            return work.await;
        };
        let beginning = tokio::select! {
            beginning = self.room_for_answer() => beginning,
            () = cancelled => None,
        };
        let soon = timeout(BEGINNING, &mut work).await;
        drop(beginning);
        let answer = match soon {
            Ok(answer) => answer,
            Err(_) => work.await,
        };
        self.change(&id, |stage| stage.map(|stage| stage.max(Stage::Made)));
        answer
    }

    async fn room_for_answer(&self) -> Option<SemaphorePermit<'_>> {
        let beginning = self.0.beginnings.acquire().await.ok();
        self.wait(|load| load.unread() < MAX_ANSWERS).await;
        beginning
    }

    async fn wait(&self, mut has_room: impl FnMut(&Load) -> bool) {
        if !has_room(&self.0.load.borrow()) {
            // An error would say that nobody can make room any more, but what waits can.
            let _ = self.0.load.subscribe().wait_for(has_room).await;
        }
    }

    fn change(&self, id: &RequestId, change: impl FnOnce(Option<Stage>) -> Option<Stage>) {
        let mut requests = self
            .0
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = requests.get(id).copied();
        let after = change(before);
        if after == before {
            return;
        }
        match after {
            Some(stage) => _ = requests.insert(id.clone(), stage),
            None => _ = requests.remove(id),
        }
        let is_made = |stage| usize::from(stage == Some(Stage::Made));
        self.0
            .load
            .send_modify(|load| load.made = load.made + is_made(after) - is_made(before));
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.backlog
            .0
            .load
            .send_modify(|load| load.of(self.kind).remove(self.bytes));
    }
}

#[cfg(feature = "stdio")]
impl Drop for Sending {
    fn drop(&mut self) {
        self.0
            .0
            .load
            .send_modify(|load| load.sending.remove(self.1));
    }
}

impl Load {
    fn of(&mut self, kind: Kind) -> &mut Messages {
        match kind {
            Kind::Stream => &mut self.streams,
            Kind::Other => &mut self.running,
        }
    }

    /// Answers and other lines that the client has not got.
    fn unread(&self) -> usize {
        self.made + self.sending.count
    }

    #[cfg(feature = "stdio")]
    fn bytes(&self) -> usize {
        self.running.bytes + self.sending.bytes
    }

    /// What is not at its end.
    #[cfg(feature = "stdio")]
    fn open(&self) -> usize {
        self.streams.count + self.running.count + self.unread()
    }
}

impl Messages {
    #[cfg(feature = "stdio")]
    fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.count -= 1;
        self.bytes -= bytes;
    }
}

#[cfg(all(test, feature = "stdio"))]
mod tests {
    use std::task::{Context, Waker};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is asked, cancelled, made, done and written, in whatever order: once all is over nothing is left.
        #[test]
        fn load_is_what_is_open(steps in prop::collection::vec((0..6_usize, 0..4_i64), 0..60)) {
            let backlog = Backlog::default();
            let (mut counted, mut writing) = (Vec::new(), Vec::new());
            for (step, number) in steps {
                let (id, bytes) = (RequestId::Number(number), number as usize);
                match step {
                    0 | 1 => {
                        let kind = [Kind::Stream, Kind::Other][step];
                        if backlog.begin(&id, kind).is_ok() {
                            counted.push((kind, bytes, backlog.count(kind, bytes)));
                        }
                    }
                    2 => backlog.cancel(&id),
                    3 => backlog.change(&id, |stage| stage.map(|stage| stage.max(Stage::Made))),
                    4 if writing.len() < 3 => {
                        writing.push((bytes, backlog.send((number > 0).then_some(&id), bytes)));
                    }
                    4 => drop(writing.remove(0)),
                    _ => counted.truncate(bytes),
                }
                let of = |kind| {
                    let bytes = counted.iter().filter(|(of, ..)| *of == kind).map(|(_, bytes, _)| *bytes);
                    Messages { count: bytes.clone().count(), bytes: bytes.sum() }
                };
                let requests = backlog.0.requests.lock().unwrap();
                let expected = Load {
                    streams: of(Kind::Stream),
                    running: of(Kind::Other),
                    made: requests.values().filter(|stage| **stage == Stage::Made).count(),
                    sending: Messages { count: writing.len(), bytes: writing.iter().map(|(bytes, _)| bytes).sum() },
                };
                prop_assert_eq!(*backlog.0.load.borrow(), expected);
            }
            drop((counted, writing));
            (0..4).for_each(|id| backlog.cancel(&RequestId::Number(id)));
            prop_assert_eq!(*backlog.0.load.borrow(), Load::default());
        }
    }

    #[test]
    fn id_is_free_once_its_answer_is_being_written() {
        let backlog = Backlog::default();
        let id = RequestId::Number(1);
        backlog.begin(&id, Kind::Other).unwrap();
        backlog.begin(&id, Kind::Other).unwrap_err();
        backlog.begin(&id, Kind::Stream).unwrap_err();
        let writing = backlog.send(Some(&id), 1);
        backlog.begin(&id, Kind::Other).unwrap();
        drop(writing);
        backlog.begin(&id, Kind::Other).unwrap_err();
    }

    #[test]
    fn request_is_refused_where_twice_as_many_bytes_are_at_work_and_a_stream_is_not() {
        let backlog = Backlog::default();
        let at_work = backlog.count(Kind::Other, 2 * MAX_BYTES - 1);
        backlog.begin(&RequestId::Number(1), Kind::Other).unwrap();
        let unread = backlog.send(None, 1);
        let why = backlog
            .begin(&RequestId::Number(2), Kind::Other)
            .unwrap_err();
        assert_eq!(
            why,
            "2 messages of 134217728 bytes are at work or unread; read answers first"
        );
        backlog.begin(&RequestId::Number(2), Kind::Stream).unwrap();
        drop(unread);
        backlog.begin(&RequestId::Number(3), Kind::Other).unwrap();
        drop(at_work);
    }

    #[test]
    fn streams_are_so_many_of_so_many_bytes_and_keep_nothing_else_from_being_taken() {
        let backlog = Backlog::default();
        let open = |number, bytes| {
            let id = RequestId::Number(number);
            backlog
                .begin(&id, Kind::Stream)
                .map(|()| backlog.count(Kind::Stream, bytes))
        };
        let few: Vec<_> = (0..4)
            .map(|number| open(number, MAX_STREAM_BYTES / 4).unwrap())
            .collect();
        open(4, 1).unwrap_err();
        drop(few);
        let many: Vec<_> = (4..).map_while(|number| open(number, 1).ok()).collect();
        assert_eq!(many.len(), MAX_STREAMS);
        let room = pin!(backlog.room_for_request());
        assert!(
            room.poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        );
    }
}
