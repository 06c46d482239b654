//! The input of a turn, its outcome, and the host that receives its events.

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

/// Checks the text of an answer and returns the error in it, if there is one.
pub type Check<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The input of a turn.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The client of the provider's endpoint.
    pub client: &'a Client,
    /// The tools that the model may call.
    pub toolbox: &'a Arc<Toolbox>,
    /// The model to record usage for, as `provider/name`.
    pub model: &'a str,
    /// Checks a complete answer. If it finds an error, the answer is recorded as incomplete.
    pub check: Option<Check<'a>>,
    /// The maximum number of requests. The default is [`Turn::MAX_ROUNDS`].
    pub max_rounds: usize,
}

impl Turn<'_> {
    /// The default maximum number of requests in a turn. Long tasks take some dozens; a model that
    /// calls tools in a loop would continue forever.
    pub const MAX_ROUNDS: usize = 200;
}

/// An event in a turn. The host receives it when it happens.
#[derive(Debug)]
pub enum TurnEvent<'a> {
    /// A piece of the answer to show.
    Delta(Delta<'a>),
    /// A request failed, and jp will send it again.
    Retry(RetryNotice<'a>),
    /// A message that the user should read.
    Notice(&'a str),
    /// The progress of a call. It holds until the next event.
    Progress(&'a str),
    /// A message for a user who wants details.
    Detail(&'a str),
    /// Complete events to store in this order, all or none; never empty.
    Record(Vec<EventKind>),
    /// A call needs the user's permission. The host drops the channel if there is no terminal.
    Permit(PermissionRequest, oneshot::Sender<Decision>),
    /// A tool asks the user a question. The host drops the channel if there is no terminal.
    Ask(Question, oneshot::Sender<Reply>),
    /// The blocks that a tool returned after the last question that the user answered.
    Show {
        /// The tool.
        tool: &'a str,
        /// The blocks.
        blocks: &'a [ContentBlock],
    },
    /// The blocks that a tool returned only for the user. Models don't receive them.
    ShowToUser {
        /// The tool.
        tool: &'a str,
        /// The blocks.
        blocks: &'a [ContentBlock],
    },
    /// A call has a result, which is recorded next.
    Called {
        /// The call, as the model made it.
        call: &'a ToolCallRequest,
        /// The result.
        response: &'a ToolCallResponse,
        /// The decision about it; `None` if it failed before a decision.
        verdict: Option<Verdict>,
        /// The arguments that it ran with, if the user changed them.
        edited: Option<&'a Map<String, Value>>,
    },
}

/// The application that runs a turn. It owns the conversation, shows and stores events, and answers
/// requests.
///
/// A method that takes long, for example a prompt, holds up the turn: running calls continue, but
/// nothing is recorded and no other call starts.
pub trait Host {
    /// Handles an event.
    fn take(&mut self, event: TurnEvent<'_>);

    /// Returns the tools of MCP servers if they changed since the last call. Called before each
    /// request.
    fn changed_tools(&mut self) -> Option<Vec<Tool>> {
        None
    }

    /// Encodes the next request from all recorded events and from `aside`, events that only this
    /// request contains.
    fn body(&mut self, aside: &[EventKind]) -> Result<Body, Box<dyn StdError + Send + Sync>>;

    /// Reads content that an event of the conversation names; `None` if no event names it.
    fn blob(
        &mut self,
        checksum: &Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn StdError + Send + Sync>>;
}

/// A piece of an answer; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Reasoning.
    Reasoning(&'a str),
}

/// The end of a turn. Everything that was shown is recorded in each case.
#[derive(Debug)]
pub enum Outcome {
    /// The model ended its answer.
    Done {
        /// The reason that the provider gave.
        finish: FinishReason,
    },
    /// The user cancelled the turn.
    Interrupted,
    /// A request failed. There is no answer, or only the beginning of one.
    Failed(Error),
    /// The next request could not be built.
    Unprepared(Box<dyn StdError + Send + Sync>),
    /// The model still called tools after the maximum number of requests.
    Endless {
        /// The number of requests.
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
