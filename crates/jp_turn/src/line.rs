//! A call's line to the turn: what a call needs from outside goes there, with a channel for the reply.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use jp_conversation::{InquiryRequest, InquiryResponse, ToolCallRequest, ToolCallResponse};
use jp_resource::Checksum;
use jp_tool::{ContentBlock, InputRequest};
use serde_json::{Map, Value};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
};

use crate::{
    ask::{Decision, PermissionRequest, Question, Reply, Verdict},
    turnstile::{AskingTurn, PATIENCE, PromptKind, Stage, Turnstile},
};

/// The result of a call after the user ended the turn.
pub(crate) const INTERRUPTED: &str = "The call was interrupted.";

/// What a call wants of whoever drives the turn.
pub(crate) enum Wish {
    /// A word to the person.
    Notice(String),
    /// The stage of a call.
    Progress(String),
    /// A word to a person who wants to know more.
    Detail(String),
    /// Leave to run.
    Permit(PermissionRequest, oneshot::Sender<Decision>),
    /// The person's answer.
    Ask(Question, oneshot::Sender<Reply>),
    /// That the person sees what the tool returned after its last question.
    Show(String, Vec<ContentBlock>),
    /// That the person sees what a tool returned for them alone.
    ShowToUser(String, Vec<ContentBlock>),
    /// The model's answer.
    Infer(Inquiry, oneshot::Sender<Result<Value, String>>),
    /// That the question and its answer are kept.
    Keep(InquiryRequest, InquiryResponse),
    /// Content that the conversation holds.
    Blob(Checksum, oneshot::Sender<Result<Option<Vec<u8>>, String>>),
    /// That its result is kept.
    Done(Box<EndedCall>),
}

/// A call that has ended.
pub(crate) struct EndedCall {
    pub(crate) response: ToolCallResponse,
    /// What was decided about it; nothing if it failed before that.
    pub(crate) verdict: Option<Verdict>,
    /// The arguments that it ran with, if the person changed them.
    pub(crate) edited: Option<Map<String, Value>>,
}

impl EndedCall {
    pub(crate) fn without_verdict(response: ToolCallResponse) -> Self {
        Self {
            response,
            verdict: None,
            edited: None,
        }
    }
}

/// A question to the model, with what the tool returned before it.
pub(crate) struct Inquiry {
    pub(crate) call: ToolCallRequest,
    pub(crate) context: Vec<ContentBlock>,
    pub(crate) input: InputRequest,
}

/// A call's line to whoever drives the turn.
#[derive(Clone)]
pub(crate) struct Line {
    wishes: mpsc::UnboundedSender<Wish>,
    cancelled: Arc<AtomicBool>,
    pub(crate) turnstile: Arc<Turnstile>,
    /// The number of the call in its answer.
    call: usize,
    slot: Arc<Slot>,
}

/// One of the places that calls run in.
#[derive(Default)]
struct Slot {
    /// Nothing where calls run without.
    slots: Option<Arc<Semaphore>>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

/// A call's turn to ask the person.
pub(crate) struct PromptTurn<'a> {
    line: &'a Line,
    turn: Option<AskingTurn<'a>>,
}

impl Line {
    /// Makes a line and its other end.
    pub(crate) fn new(calls: &[ToolCallRequest]) -> (Self, mpsc::UnboundedReceiver<Wish>) {
        let (wishes, wished) = mpsc::unbounded_channel();
        let turnstile = Arc::new(Turnstile::new(calls, PATIENCE));
        (
            Self {
                wishes,
                cancelled: Arc::default(),
                turnstile,
                call: 0,
                slot: Arc::default(),
            },
            wished,
        )
    }

    /// Returns a line whose calls share one of the slots, as they run one after the other.
    pub(crate) fn for_lane(&self, slots: Arc<Semaphore>) -> Self {
        let slot = Slot {
            slots: Some(slots),
            held: Mutex::default(),
        };
        Self {
            slot: Arc::new(slot),
            ..self.clone()
        }
    }

    /// Waits for a slot, in which the calls of the lane run.
    pub(crate) async fn enter_slot(&self) {
        if let Some(slots) = &self.slot.slots {
            let acquired = Arc::clone(slots).acquire_owned().await;
            self.slot.hold(acquired.ok());
        }
    }

    /// Leaves the slot to another lane.
    pub(crate) fn leave_slot(&self) {
        self.slot.hold(None);
    }

    /// Returns the line of one of the calls.
    pub(crate) fn for_call(&self, id: &str) -> Self {
        Self {
            call: self.turnstile.number(id),
            ..self.clone()
        }
    }

    /// Waits until the call may prompt the user.
    ///
    /// Meanwhile others may run in its place: an earlier call may wait for one.
    pub(crate) fn asking(&self, kind: PromptKind) -> PromptTurn<'_> {
        self.leave_slot();
        PromptTurn {
            line: self,
            turn: Some(self.turnstile.enter(self.call, kind)),
        }
    }

    /// Records the stage of the call, so that later ones may ask.
    pub(crate) fn reach(&self, stage: Stage) {
        self.turnstile.reach(self.call, stage);
    }

    /// Returns whether the person wants no more of this.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Returns the flag that is set once the person wants no more of this.
    pub(crate) fn cancelled(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    pub(crate) fn notice(&self, notice: String) {
        self.wish(Wish::Notice(notice));
    }

    pub(crate) fn progress(&self, progress: String) {
        self.wish(Wish::Progress(progress));
    }

    pub(crate) fn detail(&self, detail: String) {
        self.wish(Wish::Detail(detail));
    }

    pub(crate) fn keep(&self, question: InquiryRequest, answer: InquiryResponse) {
        self.wish(Wish::Keep(question, answer));
    }

    /// Asks for leave; `None` where nobody is there to give it.
    pub(crate) fn permit(&self, request: PermissionRequest) -> Option<Decision> {
        self.put(|reply| Wish::Permit(request, reply))
    }

    /// Asks the person; `None` where nobody is there.
    pub(crate) fn ask(&self, question: Question) -> Option<Reply> {
        self.put(|reply| Wish::Ask(question, reply))
    }

    /// Shows the person what a tool returned after its last question.
    pub(crate) fn show(&self, tool: &str, blocks: Vec<ContentBlock>) {
        self.wish(Wish::Show(tool.to_owned(), blocks));
    }

    /// Shows the user what a tool returned only for them.
    pub(crate) fn show_to_user(&self, tool: &str, blocks: Vec<ContentBlock>) {
        self.wish(Wish::ShowToUser(tool.to_owned(), blocks));
    }

    /// Asks the model; the error says why there is no answer.
    pub(crate) fn infer(&self, inquiry: Inquiry) -> Result<Value, String> {
        self.put(|reply| Wish::Infer(inquiry, reply))
            .unwrap_or_else(|| Err("interrupted".to_owned()))
    }

    /// Reads content that the conversation names; `None` where it names none of that checksum.
    pub(crate) fn blob(&self, checksum: Checksum) -> Result<Option<Vec<u8>>, String> {
        self.put(|reply| Wish::Blob(checksum, reply))
            .unwrap_or_else(|| Err("interrupted".to_owned()))
    }

    fn put<T>(&self, wish: impl FnOnce(oneshot::Sender<T>) -> Wish) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.wish(wish(sender));
        receiver.blocking_recv().ok()
    }

    /// Hands in the result of a call.
    pub(crate) fn hand_in(&self, ended: EndedCall) {
        self.wish(Wish::Done(Box::new(ended)));
        self.reach(Stage::Ended);
    }

    fn wish(&self, wish: Wish) {
        // Nobody listens once the turn is given up; then there is nothing left to wish for.
        _ = self.wishes.send(wish);
    }
}

impl Drop for PromptTurn<'_> {
    fn drop(&mut self) {
        self.turn = None;
        if self.line.slot.slots.is_some() {
            // Calls run on threads for blocking work, so one may wait here.
            Handle::current().block_on(self.line.enter_slot());
        }
    }
}

impl Slot {
    fn hold(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }
}

#[cfg(test)]
impl Line {
    /// A line that leads nowhere: nobody is there to ask.
    pub(crate) fn unheard(is_cancelled: bool) -> Self {
        let (line, _) = Self::new(&[]);
        line.cancelled.store(is_cancelled, Relaxed);
        line
    }
}
