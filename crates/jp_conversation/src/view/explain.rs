use jp_resource::{Encoding, Snapshot};
use jp_tool::StoredBlock;
use serde::Serialize;

use super::{
    AnswerPart, Message, Thread,
    cut::{Shown, shown_bytes},
    hints::resource_bytes,
};
use crate::ResponseContent;

/// What one turn puts into a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnRow {
    /// The turn, from 1.
    pub turn: usize,
    /// Its blocks, in the order they are sent.
    pub blocks: Vec<BlockRow>,
}

/// What one block puts into a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockRow {
    /// The resource's URI, for resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// What kind of block it is: `request`, `resource`, `message`, `reasoning`, `tool_call`, `tool_result`.
    pub kind: &'static str,
    /// Bytes of its content.
    pub bytes: u64,
    /// About how many tokens those are.
    pub tokens: u64,
    /// How it is delivered.
    pub delivery: &'static str,
    /// Why it is delivered so.
    pub reason: &'static str,
}

/// About what providers charge for an image, however many bytes it has.
const IMAGE_TOKENS: u64 = 1500;

/// Returns about how many tokens `bytes` of text are; providers count differently.
#[must_use]
pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Says for each turn what a request of the thread carries.
#[must_use]
pub fn explain(thread: &Thread<'_>) -> Vec<TurnRow> {
    let newest = thread.messages.iter().map(Message::turn).max().unwrap_or_default();
    let mut turns: Vec<TurnRow> = Vec::new();
    for message in &thread.messages {
        let mut blocks = message_rows(message);
        for block in blocks.iter_mut().filter(|block| message.turn() == newest && block.reason == IN_HISTORY)
        {
            block.reason = "new in this turn";
        }
        match turns.last_mut().filter(|last| last.turn == message.turn()) {
            Some(last) => last.blocks.extend(blocks),
            None => turns.push(TurnRow { turn: message.turn(), blocks }),
        }
    }
    turns
}

fn message_rows(message: &Message<'_>) -> Vec<BlockRow> {
    match message {
        Message::User { request, .. } => {
            let words = row("request", request.content.len() as u64);
            std::iter::once(words)
                .chain(request.resources.iter().map(|r| resource_row("resource", r, resource_bytes(r))))
                .collect()
        }
        Message::NoAnswer { .. } => {
            let mut missing = row("message", super::text_of_missing_answer().len() as u64);
            missing.reason = "the request got no answer";
            vec![missing]
        }
        Message::Assistant { parts, .. } => parts.iter().map(answer_row).collect(),
        Message::Tool { response: Some(response), .. } => response.content.iter().map(result_row).collect(),
        Message::Tool { response: None, .. } => {
            let mut missing = row("tool_result", super::text_of_missing_result().len() as u64);
            missing.reason = "no result was recorded";
            vec![missing]
        }
    }
}

fn answer_row(part: &AnswerPart<'_>) -> BlockRow {
    match part {
        AnswerPart::Response(response) => match &response.content {
            ResponseContent::Message(text) => row("message", text.len() as u64),
            ResponseContent::Reasoning(text) => row("reasoning", text.len() as u64),
        },
        AnswerPart::Call(call) => {
            let arguments = serde_json::to_string(&call.arguments).map_or(0, |json| json.len());
            row("tool_call", (call.name.len() + arguments) as u64)
        }
    }
}

fn result_row(block: &StoredBlock) -> BlockRow {
    let bytes = shown_bytes(block);
    let row = match block {
        StoredBlock::Resource { resource, .. } => resource_row("tool_result", resource, bytes),
        _ => row("tool_result", bytes),
    };
    let delivery = if Shown::of(block).is_some() { "cut" } else { row.delivery };
    BlockRow { delivery, ..row }
}

fn resource_row(kind: &'static str, snapshot: &Snapshot, bytes: u64) -> BlockRow {
    // What names the resource is sent with it.
    const TAGS: usize = 50;
    let names = [Some(&snapshot.uri), snapshot.name.as_ref(), snapshot.mime_type.as_ref()];
    let around = TAGS + names.into_iter().flatten().map(String::len).sum::<usize>();
    let is_image = snapshot.mime_type.as_deref().is_some_and(|mime| mime.starts_with("image/"));
    let tokens =
        match is_image && snapshot.content.stored().is_some_and(|blob| blob.encoding == Encoding::Binary) {
            true => IMAGE_TOKENS,
            false => tokens(bytes + around as u64),
        };
    BlockRow { uri: Some(snapshot.uri.clone()), tokens, ..row(kind, bytes) }
}

const IN_HISTORY: &str = "part of the history";

fn row(kind: &'static str, bytes: u64) -> BlockRow {
    BlockRow {
        uri: None,
        kind,
        bytes,
        tokens: tokens(bytes),
        delivery: "full",
        reason: "part of the history",
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use jp_tool::ContentBlock;
    use serde_json::Map;

    use super::*;
    use crate::{
        ToolCallRequest, ToolCallResponse,
        view::{inline_text, shown_text},
    };

    #[test]
    fn result_that_is_cut_counts_what_is_shown_of_it() {
        let mut block: StoredBlock = ContentBlock::text("line\n".repeat(1000)).into();
        let text = inline_text(&block).unwrap().to_owned();
        Shown::mark(Shown::within(&text, 100), &mut block);
        let shown = shown_text(&block, text.as_str().into()).len() as u64;
        let (id, name) = ("1".to_owned(), "read".to_owned());
        let call = ToolCallRequest { id, name, arguments: Map::new(), metadata: Map::new() };
        let response = ToolCallResponse {
            id: "1".to_owned(),
            content: vec![block],
            is_error: false,
            structured_content: None,
            meta: Map::new(),
        };
        let response = Some(Cow::Borrowed(&response));
        let messages = vec![Message::Tool { turn: 1, call: &call, response, deliveries: vec![] }];
        let rows = explain(&Thread { messages });
        let row = &rows[0].blocks[0];
        assert_eq!((row.bytes, row.tokens, row.delivery), (shown, tokens(shown), "cut"));
        assert!(shown < 300);
    }
}
