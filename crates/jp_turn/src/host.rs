//! What a turn works on, and the host that it tells and asks.

use std::{error::Error as StdError, sync::Arc};

use jp_conversation::{EventKind, ToolCallRequest, ToolCallResponse};
use jp_llm::{Body, Client, Error, FinishReason, RetryNotice};
use jp_resource::Checksum;
use jp_tool::ContentBlock;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::{
    ask::{Decision, PermissionRequest, Question, Reply, Verdict},
    tool::Tool,
    toolbox::Toolbox,
};

/// Says what is wrong with the words of an answer; `None` where nothing is.
pub type Check<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What to send where.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The endpoint.
    pub client: &'a Client,
    /// The tools that the model may call.
    pub toolbox: &'a Arc<Toolbox>,
    /// What usage is booked on: `provider/name`.
    pub model: &'a str,
    /// Says what is wrong with a whole answer, if anything is: it is recorded as incomplete then.
    pub check: Option<Check<'a>>,
    /// How often the model is asked at most; [`Turn::MAX_ROUNDS`] is plenty.
    pub max_rounds: usize,
}

impl Turn<'_> {
    /// How often a model is asked at most where nothing else is wanted.
    pub const MAX_ROUNDS: usize = 200;
}

/// Something that happened in a turn, as soon as it did.
#[derive(Debug)]
pub enum TurnEvent<'a> {
    /// A piece of the answer, to be shown.
    Delta(Delta<'a>),
    /// The request failed and will be sent again.
    Retry(RetryNotice<'a>),
    /// A sentence that the person should read.
    Notice(&'a str),
    /// How far a call is, until the next event.
    Progress(&'a str),
    /// A sentence for a person who wants to know more.
    Detail(&'a str),
    /// What is complete, to be stored in this order, all of it or nothing; never empty.
    Record(Vec<EventKind>),
    /// A call needs the person's leave. Where the channel is dropped, nobody is there to give it.
    Permit(PermissionRequest, oneshot::Sender<Decision>),
    /// A tool asks the person something. Where the channel is dropped, nobody is there to answer.
    Ask(Question, oneshot::Sender<Reply>),
    /// What a tool returned after the last question that the person answered.
    Show {
        /// The tool.
        tool: &'a str,
        /// What it returned.
        blocks: &'a [ContentBlock],
    },
    /// What a tool returned only for the user. Models don't receive it.
    ShowToUser {
        /// The tool.
        tool: &'a str,
        /// What it returned.
        blocks: &'a [ContentBlock],
    },
    /// A call has its result, which is recorded next.
    Called {
        /// The call, as the model made it.
        call: &'a ToolCallRequest,
        /// The result.
        response: &'a ToolCallResponse,
        /// What was decided about it; nothing if it failed before that.
        verdict: Option<Verdict>,
        /// The arguments that it ran with, if the person changed them.
        edited: Option<&'a Map<String, Value>>,
    },
}

/// Who a turn is run for: shows, stores and answers what it is told of, and has the conversation.
///
/// What takes long here, as a prompt does, holds up the turn: calls that run go on, but nothing is recorded and no
/// other call begins.
pub trait Host {
    /// Takes what happened.
    fn take(&mut self, event: TurnEvent<'_>);

    /// Returns the tools of MCP servers, where they changed since the last time. Asked before each request.
    fn served(&mut self) -> Option<Vec<Tool>> {
        None
    }

    /// Encodes the next request: of all that was recorded, and of `aside`, which is not and only this request has.
    fn body(&mut self, aside: &[EventKind]) -> Result<Body, Box<dyn StdError + Send + Sync>>;

    /// Reads content that an event of the conversation names; `None` where none does.
    fn blob(
        &mut self,
        checksum: &Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn StdError + Send + Sync>>;
}

/// A piece of an answer; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Words.
    Text(&'a str),
    /// Reasoning.
    Reasoning(&'a str),
}

/// How a turn ended. What was shown is recorded in each case.
#[derive(Debug)]
pub enum Outcome {
    /// The model ended its answer.
    Done {
        /// Why it did.
        finish: FinishReason,
    },
    /// `cancel` came first.
    Interrupted,
    /// There was no answer, or only the beginning of one.
    Failed(Error),
    /// The next request could not be put together.
    Unprepared(Box<dyn StdError + Send + Sync>),
    /// The model called tools again and again.
    Endless {
        /// How often it was asked.
        rounds: usize,
    },
}

/// Describes a failed request for an event, without the URI of content that could not be loaded: it
/// may be a path of this machine.
pub(crate) fn describe_failure(error: &Error) -> String {
    match error {
        Error::Load { .. } => "load content for the request".to_owned(),
        error => error.to_string(),
    }
}
