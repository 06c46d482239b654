//! The channel from a call to the turn. A call sends its wishes there, each with a channel for the
//! reply.

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

/// A call's wish to the driver of the turn.
pub(crate) enum Wish {
    /// Shows the user a message.
    Notice(String),
    /// Shows the progress of a call.
    Progress(String),
    /// Shows a message to a user who wants details.
    Detail(String),
    /// Asks the user for permission.
    Permit(PermissionRequest, oneshot::Sender<Decision>),
    /// Asks the user a question.
    Ask(Question, oneshot::Sender<Reply>),
    /// Shows the user the blocks after the tool's last question.
    Show(String, Vec<ContentBlock>),
    /// Shows the user the blocks that are only for them.
    ShowToUser(String, Vec<ContentBlock>),
    /// Asks the model a question.
    Infer(Inquiry, oneshot::Sender<Result<Value, String>>),
    /// Records a question and its answer.
    Keep(InquiryRequest, InquiryResponse),
    /// Reads content of the conversation.
    Blob(Checksum, oneshot::Sender<Result<Option<Vec<u8>>, String>>),
    /// Records the result.
    Done(Box<EndedCall>),
}

/// A call that has ended.
pub(crate) struct EndedCall {
    pub(crate) response: ToolCallResponse,
    /// The decision about it; `None` if it failed before a decision.
    pub(crate) verdict: Option<Verdict>,
    /// The arguments that it ran with, if the user changed them.
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

/// A call's channel to the driver of the turn.
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
    /// The slots; `None` for a line whose calls don't need one.
    slots: Option<Arc<Semaphore>>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

/// A call's turn to ask the user.
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
    pub(crate) fn wait_to_prompt(&self, kind: PromptKind) -> PromptTurn<'_> {
        self.leave_slot();
        PromptTurn {
            line: self,
            // Give up the slot first: the call that the turnstile waits for may need it.
            turn: Some(self.turnstile.enter(self.call, kind)),
        }
    }

    /// Records the stage of the call, so that later ones may ask.
    pub(crate) fn reach(&self, stage: Stage) {
        self.turnstile.reach(self.call, stage);
    }

    /// Returns whether the user cancelled the turn.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Returns the flag that is set when the user cancels the turn.
    pub(crate) fn cancel_flag(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    pub(crate) fn notice(&self, notice: String) {
        self.send(Wish::Notice(notice));
    }

    pub(crate) fn progress(&self, progress: String) {
        self.send(Wish::Progress(progress));
    }

    pub(crate) fn detail(&self, detail: String) {
        self.send(Wish::Detail(detail));
    }

    pub(crate) fn keep(&self, question: InquiryRequest, answer: InquiryResponse) {
        self.send(Wish::Keep(question, answer));
    }

    /// Asks the user for permission; `None` if there is no terminal.
    pub(crate) fn permit(&self, request: PermissionRequest) -> Option<Decision> {
        self.request(|reply| Wish::Permit(request, reply))
    }

    /// Asks the user a question; `None` if there is no terminal.
    pub(crate) fn ask(&self, question: Question) -> Option<Reply> {
        self.request(|reply| Wish::Ask(question, reply))
    }

    /// Shows the user what a tool returned after its last question.
    pub(crate) fn show(&self, tool: &str, blocks: Vec<ContentBlock>) {
        self.send(Wish::Show(tool.to_owned(), blocks));
    }

    /// Shows the user what a tool returned only for them.
    pub(crate) fn show_to_user(&self, tool: &str, blocks: Vec<ContentBlock>) {
        self.send(Wish::ShowToUser(tool.to_owned(), blocks));
    }

    /// Asks the model; the error says why there is no answer.
    pub(crate) fn infer(&self, inquiry: Inquiry) -> Result<Value, String> {
        self.request(|reply| Wish::Infer(inquiry, reply))
            .unwrap_or_else(|| Err("interrupted".to_owned()))
    }

    /// Reads content that the conversation names; `None` if it names none with that checksum.
    pub(crate) fn blob(&self, checksum: Checksum) -> Result<Option<Vec<u8>>, String> {
        self.request(|reply| Wish::Blob(checksum, reply))
            .unwrap_or_else(|| Err("interrupted".to_owned()))
    }

    fn request<T>(&self, wish: impl FnOnce(oneshot::Sender<T>) -> Wish) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.send(wish(sender));
        receiver.blocking_recv().ok()
    }

    /// Hands in the result of a call.
    pub(crate) fn hand_in(&self, ended: EndedCall) {
        self.send(Wish::Done(Box::new(ended)));
        self.reach(Stage::Ended);
    }

    fn send(&self, wish: Wish) {
        // Fails if the host dropped the turn. Then the wish doesn't matter any more.
        _ = self.wishes.send(wish);
    }
}

impl Drop for PromptTurn<'_> {
    fn drop(&mut self) {
        // Let the next call ask before this one waits for a slot.
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
    /// Makes a line without a driver: every request gets the reply that there is no terminal.
    pub(crate) fn unheard(is_cancelled: bool) -> Self {
        let (line, _) = Self::new(&[]);
        line.cancelled.store(is_cancelled, Relaxed);
        line
    }
}
