//! The interface between a session and its front end: questions, notices and output.

use std::fmt;

use jp_conversation::{ToolCallRequest, ToolCallResponse};
use jp_tool::ContentBlock;
use jp_turn::{Decision, PermissionRequest, Reply};
use serde_json::{Map, Value};

use crate::{error::SessionError, notice::Notice};

/// The front end that stands for the user: a terminal, a page, a script or a test.
///
/// A session never prints. Several threads may call these methods at once.
pub trait Person: fmt::Debug + Send + Sync {
    /// Asks a question and waits for the answer. Returns `None` if no one can be asked.
    fn ask(&self, question: Question<'_>) -> Option<Answer>;

    /// Passes on a notice.
    fn tell(&self, notice: Notice);

    /// Shows a part of the answer or of the work.
    ///
    /// # Errors
    ///
    /// If the output can't be written.
    fn show(&self, shown: Shown<'_>) -> Result<(), SessionError>;
}

/// A question of a session.
#[derive(Debug)]
pub enum Question<'a> {
    /// Asks for [`Answer::Yes`] if the user can be asked at all.
    Presence,
    /// Asks for yes or no.
    Confirm {
        /// The sentence before the details.
        intro: Option<&'a str>,
        /// The details, a line each, shown whole.
        details: &'a [String],
        /// The question.
        question: &'a str,
    },
    /// Asks for a line of text.
    Line {
        /// Lines to show before the prompt.
        intro: &'a [String],
        /// The prompt.
        prompt: &'a str,
    },
    /// Asks for permission to run a tool call.
    Permission {
        /// The call.
        request: &'a PermissionRequest,
        /// The text to approve, if the user may approve what the workspace lets the tool do for later
        /// calls as well.
        approvable: Option<&'a str>,
    },
    /// The question of a tool.
    Tool(&'a jp_turn::Question),
}

/// The user's answer.
#[derive(Debug)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// A line, without its end.
    Line(String),
    /// A decision about a call.
    Decision(Decision),
    /// Yes to a call, and an approval of what the workspace lets the tool do.
    Trust,
    /// An answer to a tool.
    Reply(Reply),
    /// The user ended the input.
    Nothing,
    /// The user interrupted.
    Interrupted,
}

/// Output of a session.
#[derive(Debug)]
pub enum Shown<'a> {
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// The progress of the work: one line, which replaces the line before. It is empty when the work ended.
    Progress(&'a str),
    /// The progress of a call, as the tool reports it.
    CallProgress(&'a str),
    /// A call that ended.
    Call {
        /// The call.
        request: &'a ToolCallRequest,
        /// The arguments that it ran with, if the user changed them.
        edited: Option<&'a Map<String, Value>>,
        /// Its result.
        response: &'a ToolCallResponse,
    },
    /// The result of a tool after its last question.
    Blocks {
        /// The tool.
        tool: &'a str,
        /// The content.
        blocks: &'a [ContentBlock],
    },
    /// The part of a result that is only for the user.
    UserOnly {
        /// The tool.
        tool: &'a str,
        /// The content.
        blocks: &'a [ContentBlock],
    },
    /// The answer ended.
    End,
}
