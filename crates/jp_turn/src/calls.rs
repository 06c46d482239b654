//! Runs the calls of one answer, several at a time, and puts what they want to whoever drives the turn.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use jp_conversation::{EventKind, InquiryRequest, InquiryResponse, ToolCallRequest};
use jp_resource::Checksum;
use jp_tool::{ContentBlock, InputRequest, ToolResponse};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::{
    Decision, Host, PermissionRequest, Question, Reply, Source, Toolbox, Turn, TurnEvent,
    builtin::{Builtin, refreshed_server},
    call::{self, EndedCall},
    inquiry, record,
    turnstile::{AskingTurn, PATIENCE, PromptKind, Stage, Turnstile},
};

/// How many calls run at once.
const AT_ONCE: usize = 8;

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
    turnstile: Arc<Turnstile>,
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

    /// Returns the line of one of the calls.
    fn of_call(&self, id: &str) -> Self {
        Self {
            call: self.turnstile.number(id),
            ..self.clone()
        }
    }

    /// Waits until the call may prompt the user.
    ///
    /// Meanwhile others may run in its place: an earlier call may wait for one.
    pub(crate) fn asking(&self, kind: PromptKind) -> PromptTurn<'_> {
        self.slot.leave();
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
    pub(crate) fn cancelled(&self) -> &AtomicBool {
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

    fn wish(&self, wish: Wish) {
        // Nobody listens once the turn is given up; then there is nothing left to wish for.
        _ = self.wishes.send(wish);
    }
}

impl Drop for PromptTurn<'_> {
    fn drop(&mut self) {
        self.turn = None;
        self.line.slot.take();
    }
}

impl Slot {
    /// Leaves the place to another call.
    fn leave(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for a place.
    fn take(&self) {
        if let Some(slots) = &self.slots {
            let acquired =
                tokio::runtime::Handle::current().block_on(Arc::clone(slots).acquire_owned());
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = acquired.ok();
        }
    }
}

/// Runs the calls to their ends; each result is recorded as soon as it is there. Returns whether `cancel` came
/// before.
pub(crate) async fn run(
    calls: Vec<ToolCallRequest>,
    turn: &Turn<'_>,
    mut cancel: Pin<&mut impl Future<Output = ()>>,
    host: &mut dyn Host,
) -> bool {
    let (line, mut wished) = Line::new(&calls);
    mark_decided(&calls, turn.toolbox, &line.turnstile);
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = lanes(&calls, turn.toolbox)
        .into_iter()
        .map(|lane| start(lane, turn.toolbox, &line, &slots))
        .collect();
    let cancelled = Arc::clone(&line.cancelled);
    // What is left are the calls' own, so the channel ends with them.
    drop(line);
    let mut driver = Driver {
        calls: &calls,
        turn,
        host,
        is_done: vec![false; calls.len()],
    };
    loop {
        let is_cancelled = cancelled.load(Relaxed);
        tokio::select! {
            biased;
            () = cancel.as_mut(), if !is_cancelled => cancelled.store(true, Relaxed),
            wish = wished.recv() => match wish {
                Some(wish) => driver.fulfil(wish, is_cancelled, cancel.as_mut(), &cancelled).await,
                None => break,
            },
        }
    }
    for task in tasks {
        if let Err(error) = task.await {
            driver
                .host
                .take(TurnEvent::Notice(&format!("a tool failed: {error}")));
        }
    }
    driver.close();
    cancelled.load(Relaxed)
}

/// Marks the calls as decided that need no prompt for it.
///
/// One of them may wait long for another of its lane, and a prompt of a later call must not wait with it.
fn mark_decided(calls: &[ToolCallRequest], toolbox: &Toolbox, turnstile: &Turnstile) {
    for (number, call) in calls.iter().enumerate() {
        if toolbox
            .find(&call.name)
            .is_ok_and(|tool| call::never_prompts(&tool, toolbox))
        {
            turnstile.reach(number, Stage::Decided);
        }
    }
}

/// The reason why calls run one after the other.
#[derive(PartialEq)]
enum Lane {
    /// They use the workspace's files, and one of them changes some.
    Files,
    /// They reach this MCP server: what one does there may depend on those before it.
    Server(String),
}

/// Sorts calls into those that run one after the other, in the order of the message. A call that has nothing in common
/// with another is alone.
fn lanes(calls: &[ToolCallRequest], toolbox: &Toolbox) -> Vec<Vec<ToolCallRequest>> {
    let has_writing = calls.iter().any(|call| {
        toolbox
            .find(&call.name)
            .is_ok_and(|tool| tool.writes_files())
    });
    let mut lanes: Vec<(Option<Lane>, Vec<ToolCallRequest>)> = Vec::new();
    for call in calls {
        let lane = lane(call, toolbox, has_writing);
        match lanes
            .iter_mut()
            .find(|(other, _)| lane.is_some() && *other == lane)
        {
            Some((_, calls)) => calls.push(call.clone()),
            None => lanes.push((lane, vec![call.clone()])),
        }
    }
    lanes.into_iter().map(|(_, calls)| calls).collect()
}

fn lane(call: &ToolCallRequest, toolbox: &Toolbox, has_writing: bool) -> Option<Lane> {
    let tool = toolbox.find(&call.name).ok()?;
    let server = match &tool.source {
        Source::Server(tool) => Some(tool.server.clone()),
        // It reads from the server what calls before it may have changed there.
        Source::Builtin(Builtin::RefreshResource) => refreshed_server(&call.arguments, toolbox),
        Source::Builtin(_) | Source::Local(_) => None,
    };
    server
        .map(Lane::Server)
        .or((has_writing && tool.sees_files()).then_some(Lane::Files))
}

fn start(
    lane: Vec<ToolCallRequest>,
    toolbox: &Arc<Toolbox>,
    line: &Line,
    slots: &Arc<Semaphore>,
) -> tokio::task::JoinHandle<()> {
    let (toolbox, slots) = (Arc::clone(toolbox), Arc::clone(slots));
    let slot = Arc::new(Slot {
        slots: Some(Arc::clone(&slots)),
        held: Mutex::default(),
    });
    let line = Line {
        slot: Arc::clone(&slot),
        ..line.clone()
    };
    let lines: Vec<_> = lane.iter().map(|call| line.of_call(&call.id)).collect();
    let ends = lines.clone();
    let run = move || {
        for (call, line) in lane.iter().zip(lines) {
            let ended = call::run(call, &toolbox, &line);
            line.wish(Wish::Done(Box::new(ended)));
            line.reach(Stage::Ended);
        }
    };
    tokio::spawn(async move {
        *slot.held.lock().unwrap_or_else(PoisonError::into_inner) =
            slots.acquire_owned().await.ok();
        let ran = tokio::task::spawn_blocking(run).await;
        slot.leave();
        // Where one failed, the others of its lane don't run, and nobody is to wait for them.
        ends.iter().for_each(|line| line.reach(Stage::Ended));
        if let Err(error) = ran {
            std::panic::resume_unwind(error.into_panic());
        }
    })
}

struct Driver<'a, 'h> {
    calls: &'a [ToolCallRequest],
    turn: &'a Turn<'a>,
    host: &'h mut dyn Host,
    is_done: Vec<bool>,
}

impl Driver<'_, '_> {
    /// Does what a call wishes; after an interruption nobody is asked any more.
    async fn fulfil(
        &mut self,
        wish: Wish,
        is_cancelled: bool,
        cancel: Pin<&mut impl Future<Output = ()>>,
        cancelled: &AtomicBool,
    ) {
        match wish {
            Wish::Notice(notice) => self.host.take(TurnEvent::Notice(&notice)),
            Wish::Progress(progress) => self.host.take(TurnEvent::Progress(&progress)),
            Wish::Detail(detail) => self.host.take(TurnEvent::Detail(&detail)),
            Wish::Permit(request, reply) if !is_cancelled => {
                self.host.take(TurnEvent::Permit(request, reply));
            }
            Wish::Ask(question, reply) if !is_cancelled => {
                self.host.take(TurnEvent::Ask(question, reply))
            }
            Wish::Show(tool, blocks) if !is_cancelled => {
                self.host.take(TurnEvent::Show {
                    tool: &tool,
                    blocks: &blocks,
                });
            }
            Wish::Permit(..) | Wish::Ask(..) | Wish::Show(..) => {}
            Wish::ShowToUser(tool, blocks) => {
                self.host.take(TurnEvent::ShowToUser {
                    tool: &tool,
                    blocks: &blocks,
                });
            }
            Wish::Infer(inquiry, reply) if !is_cancelled => {
                let pending = pending_beside(&inquiry.call.id, self.calls, &self.is_done);
                let answer = tokio::select! {
                    biased;
                    () = cancel => {
                        cancelled.store(true, Relaxed);
                        Err("interrupted".to_owned())
                    }
                    answer = inquiry::infer(inquiry, &pending, self.turn, self.host) => answer,
                };
                _ = reply.send(answer);
            }
            Wish::Infer(_, reply) => _ = reply.send(Err("interrupted".to_owned())),
            Wish::Keep(question, answer) => {
                let kinds = vec![
                    EventKind::InquiryRequest(question),
                    EventKind::InquiryResponse(answer),
                ];
                self.host.take(TurnEvent::Record(kinds));
            }
            Wish::Blob(checksum, reply) => {
                let blob = self.host.blob(&checksum).map_err(|error| {
                    // It says where the content is stored, which no result may hold.
                    self.host.take(TurnEvent::Notice(&format!(
                        "content of a result can't be read: {error}"
                    )));
                    "its content is missing or damaged".to_owned()
                });
                _ = reply.send(blob);
            }
            Wish::Done(ended) => self.done(*ended),
        }
    }

    /// Gives an error result to each call that has none.
    fn close(&mut self) {
        let open = self
            .calls
            .iter()
            .zip(&self.is_done)
            .filter(|(_, is_done)| !**is_done);
        for call in open.map(|(call, _)| call).collect::<Vec<_>>() {
            let failed = ToolResponse::error([ContentBlock::text("The tool failed.")]);
            self.done(EndedCall::without_verdict(record::response(
                &call.id, failed,
            )));
        }
    }

    fn done(&mut self, ended: EndedCall) {
        let EndedCall {
            response,
            verdict,
            edited,
        } = ended;
        let position = self.calls.iter().position(|call| call.id == response.id);
        if let Some(index) = position {
            self.is_done[index] = true;
            let (call, edited) = (&self.calls[index], edited.as_ref());
            self.host.take(TurnEvent::Called {
                call,
                response: &response,
                verdict,
                edited,
            });
        }
        self.host
            .take(TurnEvent::Record(vec![EventKind::ToolCallResponse(
                response,
            )]));
    }
}

/// Returns the ids of the calls that have not ended, but for one.
fn pending_beside<'c>(id: &str, calls: &'c [ToolCallRequest], is_done: &[bool]) -> Vec<&'c str> {
    let calls = calls.iter().zip(is_done);
    calls
        .filter(|(call, is_done)| !**is_done && call.id != id)
        .map(|(call, _)| &*call.id)
        .collect()
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
