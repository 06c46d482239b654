//! The person in front of the program, as a session meets them.

use std::fmt;

use jp_conversation::{ToolCallRequest, ToolCallResponse};
use jp_tool::ContentBlock;
use jp_turn::{Decision, PermissionRequest, Reply};
use serde_json::{Map, Value};

use crate::{error::SessionError, notice::Notice};

/// The person: a terminal, a page, a script or a test.
///
/// A session asks, tells and shows; it never prints. Several threads may call at once.
pub trait Person: fmt::Debug + Send + Sync {
    /// Asks a question and waits for the answer; `None` if nobody can be asked.
    fn ask(&self, question: Question<'_>) -> Option<Answer>;

    /// Tells how things stand.
    fn tell(&self, notice: Notice);

    /// Shows a part of the answer or of the way to it.
    ///
    /// # Errors
    ///
    /// If it can't be written to where the user reads it.
    fn show(&self, shown: Shown<'_>) -> Result<(), SessionError>;
}

/// What a session asks.
#[derive(Debug)]
pub enum Question<'a> {
    /// Whether anyone can be asked at all: [`Answer::Yes`].
    Presence,
    /// Yes or no.
    Confirm {
        /// The sentence before the details.
        intro: Option<&'a str>,
        /// The details, a line each, shown whole.
        details: &'a [String],
        /// The question.
        question: &'a str,
    },
    /// A line of text.
    Line {
        /// Lines to show before the prompt.
        intro: &'a [String],
        /// What is asked for.
        prompt: &'a str,
    },
    /// Whether a tool call may run.
    Permission {
        /// The call.
        request: &'a PermissionRequest,
        /// What the workspace lets the tool do, if the user may approve that for good.
        approvable: Option<&'a str>,
    },
    /// What a tool asks.
    Tool(&'a jp_turn::Question),
}

/// What the person answers.
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
    /// Yes to a call, and to what the workspace lets the tool do from now on.
    Trust,
    /// An answer to a tool.
    Reply(Reply),
    /// The person ended the input.
    Nothing,
    /// The person interrupted.
    Interrupted,
}

/// What a session shows while it works.
#[derive(Debug)]
pub enum Shown<'a> {
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of the model's reasoning.
    Reasoning(&'a str),
    /// How far the work is, one line that replaces the one before; empty if it ended.
    Progress(&'a str),
    /// How far a call is, as the tool says.
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
    /// What a tool returned after its last question.
    Blocks {
        /// The tool.
        tool: &'a str,
        /// What it returned.
        blocks: &'a [ContentBlock],
    },
    /// What a tool returned for the user alone.
    UserOnly {
        /// The tool.
        tool: &'a str,
        /// What it returned.
        blocks: &'a [ContentBlock],
    },
    /// The answer ended.
    End,
}
