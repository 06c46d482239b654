//! Bounds the memory that one client can make the server use.
//!
//! Each session has one [`Budget`], with a ledger of what is open. A [`Charge`] is an entry in the ledger
//! until it is dropped. The transport asks the budget before it reads a line and before it accepts a
//! request. Handlers ask it before they begin an answer. A transport that charges nothing, such as
//! rmcp's over HTTP, always has room.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{Instant, timeout, timeout_at};

const MIB: usize = 1024 * 1024;

/// The longest line in bytes. It has room for a tool call with 10 MiB as base64.
pub(super) const MAX_LINE: usize = 16 * MIB;

/// The open messages, or their bytes, from which the server reads slowly. Open are messages that are
/// being worked on and lines that the client has not read. Programs that send all their requests at once
/// send hundreds. The bytes matter because a URI or an id may fill a line: without them, 400 pings with
/// ids of 1 MiB would stay in memory.
const SLOW_FROM: Amount = Amount {
    count: 1024,
    bytes: 64 * MIB,
};

/// The unread lines, or their bytes, from which the server stops reading. From as many bytes of open
/// messages, it refuses requests. It is twice [`SLOW_FROM`], because some clients only read when they
/// have written everything.
const STOP_FROM: Amount = Amount {
    count: 2 * SLOW_FROM.count,
    bytes: 2 * SLOW_FROM.bytes,
};

/// The pause between two lines when the server reads slowly. It must read on while something is being
/// worked on, because the next line may cancel that or answer its question.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The most `subscriptions/listen` that may be open, and the most bytes of them: 4 KiB each if all are.
/// They don't count as open messages, because they last: a client with 1,024 of them would be read
/// from slowly for good.
const STREAMS: Amount = Amount {
    count: 4096,
    bytes: 16 * MIB,
};

/// The most `subscriptions/listen` that are prepared and not started. Only those that the client
/// cancelled before they started stay there, so the oldest can be dropped.
pub(super) const MAX_PENDING_STREAMS: usize = 1024;

/// The most URIs that a client may subscribe to, or that one of its streams may be about, and the
/// most bytes of them.
pub(super) const STREAM_URIS: Amount = Amount {
    count: 1024,
    bytes: MIB,
};

/// The most bytes that the URIs of all streams of a client may take in memory, [`URI_OVERHEAD`]
/// included: 16 full streams. Without it, 4,096 streams of 1 MiB would take 4 GiB.
pub(super) const MAX_URI_BYTES: usize = 16 * STREAM_URIS.bytes;

/// The approximate memory of a subscribed URI in addition to its bytes: keys and nodes of two maps.
pub(super) const URI_OVERHEAD: usize = 256;

/// The most unread answers before the server begins no further ones, and the most that it begins at
/// once. A short request may have a long answer: 32 reads of 10 MiB, the default limit of a read, are
/// 320 MiB.
const MAX_ANSWERS: usize = 32;

/// The time for which an answer in progress keeps others from beginning. Only finished answers count as
/// unread, so those that are nearly finished have to count here. One that takes longer, such as that of
/// a tool that waits for something, must not delay the rest.
const BEGINNING: Duration = Duration::from_millis(250);

/// The time after the end of input for which the server waits for the next open message to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The time for which the server waits at its end for a line that is being written. Otherwise, a client
/// that no longer reads would keep the process alive.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// The open messages of one client and their bounds. Clones share the budget.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    ledger: watch::Sender<Ledger>,
    /// A permit for each answer that is being begun.
    beginnings: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// The requests that the transport has no answer to.
    requests: HashMap<RequestId, Stage>,
    /// The number of them that are [`Stage::Made`].
    made: usize,
    /// Open `subscriptions/listen`.
    streams: Amount,
    /// Other messages that are being worked on, even if they were cancelled.
    working: Amount,
    /// Lines that are being written.
    sending: Amount,
    /// Subscribed URIs, with [`URI_OVERHEAD`] each.
    uris: Amount,
}

/// The stage of the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The handler has made it, and the transport does not have it yet.
    Made,
}

/// A number of things, and their bytes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Amount {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

/// The kind of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Account {
    /// A `subscriptions/listen`, which lasts until the client cancels it.
    Stream,
    /// Any other message.
    Work,
    /// A line for the client.
    Line,
    /// A URI that the client subscribed to.
    Uri,
}

/// The pace at which the server reads from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Intake {
    Free,
    /// A line after each [`PAUSE`].
    Slow,
    Stopped,
}

/// Something in the ledger, until it is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Budget,
    account: Account,
    bytes: usize,
    /// The request, if it is for one.
    request: Option<RequestId>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            ledger: watch::Sender::default(),
            beginnings: Arc::new(Semaphore::new(MAX_ANSWERS)),
        }
    }
}

impl Budget {
    /// Charges for something of so many bytes.
    pub(super) fn charge(&self, account: Account, bytes: usize) -> Charge {
        self.change(|ledger| ledger.account(account).add(bytes));
        self.issue(account, bytes)
    }

    /// Makes the charge of what is in the ledger already.
    fn issue(&self, account: Account, bytes: usize) -> Charge {
        Charge {
            budget: self.clone(),
            account,
            bytes,
            request: None,
        }
    }

    /// Charges for a request, unless it has to be refused; the error says why.
    pub(super) fn accept(
        &self,
        id: &RequestId,
        account: Account,
        bytes: usize,
    ) -> Result<Charge, String> {
        self.ledger.borrow().check(account)?;
        let mut is_new = false;
        self.change(|ledger| is_new = ledger.open(id));
        if !is_new {
            return Err("a request with this id has no answer yet".to_owned());
        }
        let mut charge = self.charge(account, bytes);
        charge.request = Some(id.clone());
        Ok(charge)
    }

    /// Charges for a line that is being written. If it answers a request, that request is no longer
    /// open and its id is free.
    pub(super) fn charge_line(&self, answered: Option<&RequestId>, bytes: usize) -> Charge {
        let charge = self.charge(Account::Line, bytes);
        if let Some(id) = answered {
            self.close(id);
        }
        charge
    }

    /// Charges for a URI, if the stream has room for it beside what it `has`, and the client beside
    /// its other streams.
    pub(super) fn charge_uri(&self, has: Amount, uri: &str) -> Option<Charge> {
        let bytes = uri.len() + URI_OVERHEAD;
        let fits_stream =
            has.count < STREAM_URIS.count && has.bytes + uri.len() <= STREAM_URIS.bytes;
        let fits = fits_stream && self.ledger.send_if_modified(|ledger| ledger.add_uri(bytes));
        fits.then(|| self.issue(Account::Uri, bytes))
    }

    /// Forgets a request: the client wants no answer any more, or the transport has it.
    pub(super) fn close(&self, id: &RequestId) {
        self.change(|ledger| ledger.close(id));
    }

    /// Waits until the next line may be read. A caller that gives up and calls again keeps its place:
    /// `pause_ends` holds the end of the pause until a line was read.
    pub(super) async fn wait_to_read(&self, pause_ends: &mut Option<Instant>) {
        let end = *pause_ends.get_or_insert_with(|| Instant::now() + PAUSE);
        match timeout_at(end, self.wait(|ledger| ledger.intake() == Intake::Free)).await {
            Ok(()) => *pause_ends = None,
            Err(_) => self.wait(|ledger| ledger.intake() < Intake::Stopped).await,
        }
    }

    /// Waits until nothing is open, or nothing came to its end for [`PATIENCE`]. A caller that gives
    /// up and calls again keeps its place: `progress` holds the fewest that were open so far, and
    /// when there have to be fewer.
    pub(super) async fn settle(&self, progress: &mut Option<(usize, Instant)>) {
        loop {
            let (fewest, end) =
                *progress.get_or_insert_with(|| (usize::MAX, Instant::now() + PATIENCE));
            match timeout_at(end, self.wait_for_fewer(fewest)).await {
                Ok(0) | Err(_) => return,
                Ok(fewer) => *progress = Some((fewer, Instant::now() + PATIENCE)),
            }
        }
    }

    /// Waits until fewer things are open, and returns how many.
    pub(super) async fn wait_for_fewer(&self, than: usize) -> usize {
        let mut open = 0;
        self.wait(|ledger| {
            open = ledger.open_count();
            open < than
        })
        .await;
        open
    }

    /// Makes the answer to a request once there is room for it, if the request is charged for. One that
    /// is cancelled does not wait for room: its work ends by itself.
    pub(super) async fn answer<T>(
        &self,
        charge: Option<Arc<Charge>>,
        cancelled: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        // It is held until the answer is made, whatever becomes of the message that it came with.
        let Some(charge) = charge else {
            return work.await;
        };
        let beginning = tokio::select! {
            beginning = self.wait_to_begin() => beginning,
            () = cancelled => None,
        };
        let soon = timeout(BEGINNING, &mut work).await;
        drop(beginning);
        let answer = match soon {
            Ok(answer) => answer,
            Err(_) => work.await,
        };
        let made = charge.request.as_ref();
        self.change(|ledger| made.into_iter().for_each(|id| ledger.mark_made(id)));
        answer
    }

    async fn wait_to_begin(&self) -> Option<SemaphorePermit<'_>> {
        let beginning = self.beginnings.acquire().await.ok();
        self.wait(|ledger| ledger.unread().count < MAX_ANSWERS)
            .await;
        beginning
    }

    async fn wait(&self, mut has_room: impl FnMut(&Ledger) -> bool) {
        if !has_room(&self.ledger.borrow()) {
            // It fails only once the sender is gone, which is in this budget.
            let _ = self.ledger.subscribe().wait_for(has_room).await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Ledger)) {
        self.ledger.send_modify(change);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget
            .change(|ledger| ledger.account(self.account).remove(self.bytes));
    }
}

/// Says why a URI was not charged for.
pub(super) fn uri_refusal() -> String {
    format!(
        "a client may subscribe to {} resources, with URIs of 1 MiB in all, and of 16 MiB with all its streams; unsubscribe from some first",
        STREAM_URIS.count
    )
}

impl Ledger {
    fn account(&mut self, account: Account) -> &mut Amount {
        match account {
            Account::Stream => &mut self.streams,
            Account::Work => &mut self.working,
            Account::Line => &mut self.sending,
            Account::Uri => &mut self.uris,
        }
    }

    /// Returns whether the id was free.
    fn open(&mut self, id: &RequestId) -> bool {
        match self.requests.entry(id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Stage::Open);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn mark_made(&mut self, id: &RequestId) {
        if let Some(stage @ Stage::Open) = self.requests.get_mut(id) {
            *stage = Stage::Made;
            self.made += 1;
        }
    }

    fn close(&mut self, id: &RequestId) {
        if self.requests.remove(id) == Some(Stage::Made) {
            self.made -= 1;
        }
    }

    /// Returns whether there was room for it.
    fn add_uri(&mut self, bytes: usize) -> bool {
        let fits = self.uris.bytes + bytes <= MAX_URI_BYTES;
        if fits {
            self.uris.add(bytes);
        }
        fits
    }

    /// Returns why a request can't be accepted. Other messages always are: a request that is being
    /// worked on may wait for them.
    fn check(&self, account: Account) -> Result<(), String> {
        let Amount { count, bytes } = self.busy();
        if account == Account::Work && bytes >= STOP_FROM.bytes {
            return Err(format!(
                "{count} messages of {bytes} bytes are at work or unread; read answers first"
            ));
        }
        let Amount { count, bytes } = self.streams;
        if account == Account::Stream && self.streams.reaches(STREAMS) {
            return Err(format!(
                "{count} streams are open, of {bytes} bytes; cancel one first"
            ));
        }
        Ok(())
    }

    /// Returns how to read from the client. Work alone never stops it: the work may wait for what the
    /// client says next.
    fn intake(&self) -> Intake {
        if self.unread().reaches(STOP_FROM) {
            Intake::Stopped
        } else if self.busy().reaches(SLOW_FROM) {
            Intake::Slow
        } else {
            Intake::Free
        }
    }

    /// Counts the answers and other lines that the client has not read. Answers that the transport
    /// does not have yet have no bytes.
    fn unread(&self) -> Amount {
        Amount {
            count: self.made + self.sending.count,
            bytes: self.sending.bytes,
        }
    }

    fn busy(&self) -> Amount {
        let unread = self.unread();
        Amount {
            count: self.working.count + unread.count,
            bytes: self.working.bytes + unread.bytes,
        }
    }

    fn open_count(&self) -> usize {
        self.streams.count + self.busy().count
    }
}

impl Amount {
    pub(super) fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.count -= 1;
        self.bytes -= bytes;
    }

    fn reaches(self, bound: Self) -> bool {
        self.count >= bound.count || self.bytes >= bound.bytes
    }
}

#[cfg(all(test, feature = "stdio"))]
mod tests;
