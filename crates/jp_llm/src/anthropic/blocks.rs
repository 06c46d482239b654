use std::{
    borrow::Cow,
    collections::{HashSet, VecDeque},
    iter::once,
};

use jp_conversation::{
    ChatRequest, ChatResponse, ResponseContent, ToolCallRequest, ToolCallResponse,
    view::{self, AnswerPart, Message},
};
use jp_resource::Snapshot;
use serde_json::{Map, Value};

use super::{REDACTED_THINKING, SIGNATURE};
use crate::{
    Capabilities, Request,
    parts::{is_blank, replace_foreign},
};

/// Opens a conversation that begins with the model: the API wants the person first.
const NO_BEGINNING: &str = "(Earlier messages are left out.)";
/// Replaces a message without words and resources: the API takes no empty message.
const NO_WORDS: &str = "(An empty message.)";

/// The author of a message; the roles alternate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
}

impl Role {
    /// Returns the name that the API has for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a request; never without a block.
#[derive(Debug)]
pub(super) struct WireMessage<'a> {
    pub(super) role: Role,
    pub(super) blocks: Vec<Block<'a>>,
}

/// One content block of a message. None has a blank text.
#[derive(Debug)]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    Thinking {
        text: &'a str,
        signature: &'a str,
    },
    RedactedThinking(&'a str),
    ToolUse {
        id: String,
        call: &'a ToolCallRequest,
    },
    ToolResult(ToolResult<'a>),
    Resource {
        turn: usize,
        resource: &'a Snapshot,
    },
}

/// The result of a call.
#[derive(Debug)]
pub(super) struct ToolResult<'a> {
    pub(super) turn: usize,
    /// That of the call's block.
    pub(super) id: String,
    pub(super) call: &'a ToolCallRequest,
    pub(super) response: Option<&'a ToolCallResponse>,
}

/// Lays a request's thread out as messages whose roles alternate, the person's first.
///
/// The blocks of a message depend on nothing after it: a thread that grew gives the same blocks, and more.
///
/// Also returns the last block of each of the thread's messages, counted through all.
pub(super) fn messages<'a>(request: &Request<'a>) -> (Vec<WireMessage<'a>>, Vec<usize>) {
    let Request {
        label,
        capabilities,
        thread,
        ..
    } = *request;
    let (ids, called) = (Ids::default(), VecDeque::new());
    let mut builder = Builder {
        label,
        capabilities,
        messages: Vec::new(),
        count: 0,
        ids,
        called,
    };
    let end = |message| {
        builder.message(message);
        builder.count - 1
    };
    let ends = thread.messages.iter().map(end).collect();
    (builder.messages, ends)
}

struct Builder<'a> {
    label: &'a str,
    capabilities: Capabilities,
    messages: Vec<WireMessage<'a>>,
    /// Number of blocks in all messages.
    count: usize,
    ids: Ids,
    /// The ids of the calls whose results come next, in order.
    called: VecDeque<String>,
}

impl<'a> Builder<'a> {
    fn message(&mut self, message: &'a Message<'a>) {
        match message {
            Message::User { turn, request, .. } => self.user(*turn, request),
            Message::Assistant { parts, .. } => self.assistant(parts),
            Message::NoAnswer { .. } => self.push(Role::Assistant, missing_answer()),
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => {
                let id = self.called.pop_front().unwrap_or_default();
                let result = ToolResult {
                    turn: *turn,
                    id,
                    call,
                    response: response.as_deref(),
                };
                self.push(Role::User, Block::ToolResult(result));
            }
        }
    }

    fn user(&mut self, turn: usize, request: &'a ChatRequest) {
        let words = self.capabilities.words(request);
        if !is_blank(&words) {
            self.push(Role::User, Block::Text(words));
        } else if request.resources.is_empty() {
            self.push(Role::User, Block::Text(NO_WORDS.into()));
        }
        for resource in &request.resources {
            self.push(Role::User, Block::Resource { turn, resource });
        }
    }

    fn assistant(&mut self, parts: &'a [AnswerPart<'a>]) {
        let mut blocks = Vec::new();
        for part in parts {
            match part {
                AnswerPart::Call(call) => blocks.push(self.tool_use(call)),
                AnswerPart::Response(response) => self.response(response, &mut blocks),
            }
        }
        blocks.retain(|block| !matches!(block, Block::Text(text) if is_blank(text)));
        // An answer that was cut off while the model reasoned: the API refuses thinking as the last block.
        let said = blocks
            .iter()
            .rposition(|block| !block.is_thinking())
            .map_or(0, |last| last + 1);
        blocks.truncate(said);
        if blocks.is_empty() {
            blocks.push(missing_answer());
        }
        blocks
            .into_iter()
            .for_each(|block| self.push(Role::Assistant, block));
    }

    /// Joins words that follow each other; adds reasoning that the model may have back.
    fn response(&self, response: &'a ChatResponse, blocks: &mut Vec<Block<'a>>) {
        if let ResponseContent::Message(text) = &response.content {
            match blocks.last_mut() {
                Some(Block::Text(before)) => before.to_mut().push_str(text),
                _ => blocks.push(Block::Text(Cow::Borrowed(text))),
            }
        }
        blocks.extend(replay(response, self.label));
    }

    fn tool_use(&mut self, call: &'a ToolCallRequest) -> Block<'a> {
        let id = self.ids.claim(&call.id);
        self.called.push_back(id.clone());
        Block::ToolUse { id, call }
    }

    fn push(&mut self, role: Role, block: Block<'a>) {
        // A fork or a compaction can begin with an answer.
        if self.messages.is_empty() && role == Role::Assistant {
            self.push(Role::User, Block::Text(NO_BEGINNING.into()));
        }
        self.count += 1;
        match self.messages.last_mut() {
            Some(message) if message.role == role => message.blocks.push(block),
            _ => self.messages.push(WireMessage {
                role,
                blocks: vec![block],
            }),
        }
    }
}

/// Returns whether a part of an answer that is reasoning goes back to the model `label`.
pub(crate) fn sends_back(response: &ChatResponse, label: &str) -> bool {
    replay(response, label).is_some()
}

/// Returns the reasoning that came with a part of an answer, if this is the model that made it.
fn replay<'a>(response: &'a ChatResponse, label: &str) -> Option<Block<'a>> {
    let metadata = &response.metadata;
    if text_of(metadata, "model")? != label {
        return None;
    }
    if let Some(data) = text_of(metadata, REDACTED_THINKING) {
        return Some(Block::RedactedThinking(data));
    }
    let text = match &response.content {
        ResponseContent::Reasoning(text) => text,
        ResponseContent::Message(_) => "",
    };
    text_of(metadata, SIGNATURE).map(|signature| Block::Thinking { text, signature })
}

fn text_of<'m>(metadata: &'m Map<String, Value>, key: &str) -> Option<&'m str> {
    metadata.get(key)?.as_str()
}

/// The ids of calls, as the API wants them: of letters, digits, `_` and `-`, none twice.
///
/// Other providers and older conversations have others.
#[derive(Default)]
struct Ids {
    used: HashSet<String>,
}

impl Ids {
    /// Returns the id itself where it will do.
    fn claim(&mut self, id: &str) -> String {
        const LONGEST: usize = 64;
        let id: String = id.chars().take(LONGEST).map(replace_foreign).collect();
        let id = if id.is_empty() { "call".to_owned() } else { id };
        let numbered = (2u64..).map(|number| format!("{id}_{number}"));
        let unused = once(id.clone())
            .chain(numbered)
            .find(|id| !self.used.contains(id));
        let unused = unused.expect("numbers do not end");
        self.used.insert(unused.clone());
        unused
    }
}

impl Block<'_> {
    /// Returns whether it is reasoning, which carries no cache mark.
    pub(super) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking(_))
    }
}

fn missing_answer<'a>() -> Block<'a> {
    Block::Text(view::text_of_missing_answer().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_unique_ones_that_the_api_takes() {
        let mut ids = Ids::default();
        let given = [
            "toolu_01-a",
            "toolu_01-a",
            "f.g:0",
            "f_g_0",
            "",
            "",
            "toolu_01-a_2",
            &"x".repeat(70),
        ];
        let made = given.map(|id| ids.claim(id));
        let expected = [
            "toolu_01-a",
            "toolu_01-a_2",
            "f_g_0",
            "f_g_0_2",
            "call",
            "call_2",
            "toolu_01-a_2_2",
        ];
        assert_eq!(made[..7], expected);
        assert_eq!(made[7], "x".repeat(64));
    }
}
