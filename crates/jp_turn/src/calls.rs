//! Runs the calls of one answer in parallel, and passes their wishes to the host.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use jp_conversation::{EventKind, ToolCallRequest};
use jp_tool::ToolResponse;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{
    builtin::{Builtin, find_server},
    call,
    host::{Host, Turn, TurnEvent},
    inquiry,
    line::{EndedCall, Inquiry, Line, Wish},
    record,
    tool::Source,
    toolbox::Toolbox,
    turnstile::{Stage, Turnstile},
};

/// The maximum number of calls that run at once. Models make more calls than that only rarely, and
/// each may start a program.
const AT_ONCE: usize = 8;

/// Runs the calls to their ends, and records each result when it arrives. Returns true if `cancel`
/// was ready before the last result.
pub(crate) async fn run(
    calls: Vec<ToolCallRequest>,
    turn: &Turn<'_>,
    mut cancel: Pin<&mut impl Future<Output = ()>>,
    host: &mut dyn Host,
) -> bool {
    let (line, mut wished) = Line::new(&calls);
    mark_decided(&calls, turn.toolbox, &line.turnstile);
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = group_into_lanes(&calls, turn.toolbox)
        .into_iter()
        .map(|lane| start(lane, turn.toolbox, &line, &slots))
        .collect();
    let cancelled = Arc::clone(line.cancel_flag());
    // Only the calls hold lines now, so the channel closes when the last call ends.
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

/// Marks the calls that need no permission prompt as decided.
///
/// One of them may wait long for another of its lane, and a prompt of a later call must not wait
/// with it.
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
    /// They use the workspace's files, and at least one of them changes files.
    Files,
    /// They reach this MCP server, and a call may depend on the effects of earlier ones.
    Server(String),
}

/// Groups calls that must run one after the other, in the order of the answer. A call that shares
/// nothing with another is alone.
fn group_into_lanes(calls: &[ToolCallRequest], toolbox: &Toolbox) -> Vec<Vec<ToolCallRequest>> {
    // Without a change of files, calls that only read can run in any order.
    let has_writing = calls.iter().any(|call| {
        toolbox
            .find(&call.name)
            .is_ok_and(|tool| tool.writes_files())
    });
    let mut lanes: Vec<(Option<Lane>, Vec<ToolCallRequest>)> = Vec::new();
    for call in calls {
        let lane = find_lane(call, toolbox, has_writing);
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

fn find_lane(call: &ToolCallRequest, toolbox: &Toolbox, has_writing: bool) -> Option<Lane> {
    let tool = toolbox.find(&call.name).ok()?;
    let server = match &tool.source {
        Source::Server(tool) => Some(tool.server.clone()),
        // It reads from the server what calls before it may have changed there.
        Source::Builtin(Builtin::RefreshResource) => find_server(&call.arguments, toolbox),
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
    let (toolbox, line) = (Arc::clone(toolbox), line.for_lane(Arc::clone(slots)));
    let lines: Vec<_> = lane.iter().map(|call| line.for_call(&call.id)).collect();
    let ends = lines.clone();
    let run = move || {
        for (call, line) in lane.iter().zip(lines) {
            line.hand_in(call::run(call, &toolbox, &line));
        }
    };
    tokio::spawn(async move {
        line.enter_slot().await;
        let ran = tokio::task::spawn_blocking(run).await;
        line.leave_slot();
        // If a call panicked, the rest of its lane does not run, and no other call may wait for it.
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
    /// Fulfils a call's wish. After an interruption, jp asks nothing more.
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
            // Dropping the channel tells the call that there is no reply.
            Wish::Permit(..) | Wish::Ask(..) | Wish::Show(..) => {}
            Wish::ShowToUser(tool, blocks) => {
                self.host.take(TurnEvent::ShowToUser {
                    tool: &tool,
                    blocks: &blocks,
                });
            }
            Wish::Infer(inquiry, reply) if !is_cancelled => {
                _ = reply.send(self.infer(inquiry, cancel, cancelled).await);
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
                    // The error contains the path of the content, which must not become part of a
                    // result.
                    self.host.take(TurnEvent::Notice(&format!(
                        "content of a result can't be read: {error}"
                    )));
                    "its content is missing or damaged".to_owned()
                });
                _ = reply.send(blob);
            }
            Wish::Done(ended) => self.record_result(*ended),
        }
    }

    /// Asks the model; the answer is an error if `cancel` comes first.
    async fn infer(
        &mut self,
        inquiry: Inquiry,
        cancel: Pin<&mut impl Future<Output = ()>>,
        cancelled: &AtomicBool,
    ) -> Result<Value, String> {
        let pending = other_pending(&inquiry.call.id, self.calls, &self.is_done);
        tokio::select! {
            biased;
            () = cancel => {
                cancelled.store(true, Relaxed);
                Err("interrupted".to_owned())
            }
            answer = inquiry::infer(inquiry, &pending, self.turn, self.host) => answer,
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
            let failed = ToolResponse::from_error("The tool failed.");
            self.record_result(EndedCall::without_verdict(record::to_event(
                &call.id, failed,
            )));
        }
    }

    fn record_result(&mut self, ended: EndedCall) {
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

/// Returns the ids of the other calls that have not ended.
fn other_pending<'c>(id: &str, calls: &'c [ToolCallRequest], is_done: &[bool]) -> Vec<&'c str> {
    let calls = calls.iter().zip(is_done);
    calls
        .filter(|(call, is_done)| !**is_done && call.id != id)
        .map(|(call, _)| &*call.id)
        .collect()
}
