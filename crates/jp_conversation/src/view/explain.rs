//! Explains the size of each block in a request, and the reason for its delivery.

use std::borrow::Cow;

use jp_resource::{Encoding, Snapshot};
use jp_tool::StoredBlock;
use serde::Serialize;

use super::{
    AnswerPart, Delivery, KnownLines, Message, Thread, WhyFull,
    cut::{Shown, shown_bytes},
    render::{text_of_missing_answer, text_of_missing_result},
    size::{resource_bytes, tokens},
};
use crate::ResponseContent;

/// The share of one turn in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnRow {
    /// The turn, from 1.
    pub turn: usize,
    /// Its blocks, in the order of the request.
    pub blocks: Vec<BlockRow>,
}

/// The share of one block in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockRow {
    /// The resource's URI, for resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The tool, for a call and its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The kind of block: `request`, `resource`, `message`, `reasoning`, `tool_call`, `tool_result`.
    pub kind: &'static str,
    /// The bytes of its content.
    pub bytes: u64,
    /// The approximate number of tokens.
    pub tokens: u64,
    /// The name of its delivery.
    pub delivery: &'static str,
    /// The reason for its delivery.
    pub reason: Cow<'static, str>,
}

/// The approximate tokens that providers charge for an image of any size.
const IMAGE_TOKENS: u64 = 1500;

/// Explains each turn of a request to a model that accepts all its earlier answers.
#[must_use]
pub fn explain(thread: &Thread<'_>) -> Vec<TurnRow> {
    explain_for(thread, |_| true)
}

/// Explains each turn of a request to a model that only accepts the parts of its earlier answers for which
/// `takes_back` is true.
#[must_use]
pub fn explain_for(
    thread: &Thread<'_>,
    takes_back: impl Fn(&AnswerPart<'_>) -> bool,
) -> Vec<TurnRow> {
    let newest = thread
        .messages
        .iter()
        .map(Message::turn)
        .max()
        .unwrap_or_default();
    let mut turns: Vec<TurnRow> = Vec::new();
    for message in &thread.messages {
        let mut blocks = message_rows(message, &takes_back);
        if message.turn() == newest {
            blocks.iter_mut().for_each(mark_new);
        }
        match turns.last_mut().filter(|last| last.turn == message.turn()) {
            Some(last) => last.blocks.extend(blocks),
            None => turns.push(TurnRow {
                turn: message.turn(),
                blocks,
            }),
        }
    }
    turns
}

/// Adds to the reason that a block belongs to the newest turn.
fn mark_new(row: &mut BlockRow) {
    const NEW: &str = "new in this turn";
    row.reason = match &*row.reason {
        IN_HISTORY => NEW.into(),
        reason if row.uri.is_some() => format!("{NEW}; {reason}").into(),
        _ => return,
    };
}

fn message_rows(
    message: &Message<'_>,
    takes_back: impl Fn(&AnswerPart<'_>) -> bool,
) -> Vec<BlockRow> {
    match message {
        Message::User {
            request,
            deliveries,
            ..
        } => {
            let words = row("request", request.content.len() as u64);
            let attached = request
                .resources
                .iter()
                .enumerate()
                .map(|(index, resource)| {
                    add_delivery(
                        resource_row("resource", resource, resource_bytes(resource)),
                        deliveries.get(index),
                    )
                });
            std::iter::once(words).chain(attached).collect()
        }
        Message::NoAnswer { .. } => {
            let mut missing = row("message", text_of_missing_answer().len() as u64);
            missing.reason = "the request got no answer".into();
            vec![missing]
        }
        Message::Assistant { parts, .. } => {
            let rows = parts
                .iter()
                .map(|part| (answer_row(part), takes_back(part)));
            rows.map(|(row, is_sent)| if is_sent { row } else { left_out(row) })
                .collect()
        }
        Message::Tool {
            call,
            response: Some(response),
            deliveries,
            ..
        } => {
            let blocks = response.content.iter().enumerate();
            let rows = blocks.map(|(index, block)| result_row(block, deliveries.get(index)));
            rows.map(|row| BlockRow {
                tool: Some(call.name.clone()),
                ..row
            })
            .collect()
        }
        Message::Tool { response: None, .. } => {
            let mut missing = row("tool_result", text_of_missing_result().len() as u64);
            missing.reason = "no result was recorded".into();
            vec![missing]
        }
    }
}

/// Adds the delivery of its block to a row.
fn add_delivery(row: BlockRow, delivery: Option<&Delivery>) -> BlockRow {
    match delivery {
        Some(delivery) => BlockRow {
            delivery: delivery.name(),
            reason: delivery.reason(),
            ..row
        },
        None => row,
    }
}

impl BlockRow {
    /// Returns true if it is part of the request.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.delivery != LEFT_OUT
    }
}

impl Delivery {
    /// Returns the reason for a delivery, or the place of the content that it refers to.
    #[must_use]
    pub fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::Full(why) => why_full(*why).into(),
            Self::Reference { at } => format!("the same content is {at}").into(),
            Self::Lines { known } => {
                let lines: Vec<_> = known.iter().map(describe_lines).collect();
                lines.join("; ").into()
            }
            Self::Diff { base } => format!("the changes since the version {base}").into(),
            Self::Tombstone { newer: Some(newer) } => format!("a newer version is {newer}").into(),
            Self::Tombstone { newer: None } => "it is outdated".into(),
            Self::Compacted => "a compaction left it out".into(),
        }
    }
}

fn describe_lines(known: &KnownLines) -> String {
    format!("its {} are {} {}", known.ours, known.theirs, known.at)
}

fn why_full(why: WhyFull) -> &'static str {
    match why {
        WhyFull::NoResource => IN_HISTORY,
        WhyFull::SwitchedOff => "references are switched off for it",
        WhyFull::Small => "too small for a reference",
        WhyFull::New => "no other version of it is in this request",
        WhyFull::TooFarBack => "it is too many turns back",
        WhyFull::AskedAgain => "asked for again after a reference",
        WhyFull::Changed => "it changed, and no earlier whole version is in this request",
        WhyFull::ChangedMuch => "it changed too much for a diff",
        WhyFull::FewLines => "too few of its lines are in this request",
        WhyFull::NotShorter => "a reference would not be shorter",
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
            let row = row("tool_call", (call.name.len() + arguments) as u64);
            BlockRow {
                tool: Some(call.name.clone()),
                ..row
            }
        }
    }
}

/// Returns the row of a part of an answer that the request leaves out.
fn left_out(row: BlockRow) -> BlockRow {
    let reason = "the provider does not accept it".into();
    BlockRow {
        bytes: 0,
        tokens: 0,
        delivery: LEFT_OUT,
        reason,
        ..row
    }
}

fn result_row(block: &StoredBlock, delivery: Option<&Delivery>) -> BlockRow {
    let bytes = shown_bytes(block);
    let row = match block {
        StoredBlock::Resource { resource, .. } => resource_row("tool_result", resource, bytes),
        _ => row("tool_result", bytes),
    };
    let row = add_delivery(row, delivery);
    let is_cut = row.delivery == FULL && Shown::read_mark(block).is_some();
    if is_cut {
        BlockRow {
            delivery: "cut",
            ..row
        }
    } else {
        row
    }
}

fn resource_row(kind: &'static str, snapshot: &Snapshot, bytes: u64) -> BlockRow {
    // The request has the resource's names, too, in tags of about this length.
    const TAGS: usize = 50;
    let names = [
        Some(&snapshot.uri),
        snapshot.name.as_ref(),
        snapshot.mime_type.as_ref(),
    ];
    let around = TAGS + names.into_iter().flatten().map(String::len).sum::<usize>();
    let mime_type = snapshot
        .mime_type
        .as_deref()
        .filter(|_| snapshot.formatted.is_none());
    let is_image = mime_type.is_some_and(|mime| mime.starts_with("image/"));
    let tokens = match is_image
        && snapshot
            .content
            .blob()
            .is_some_and(|blob| blob.encoding == Encoding::Binary)
    {
        true => IMAGE_TOKENS,
        false => tokens(bytes.saturating_add(around as u64)),
    };
    BlockRow {
        uri: Some(snapshot.uri.clone()),
        tokens,
        ..row(kind, bytes)
    }
}

const IN_HISTORY: &str = "part of the history";
const FULL: &str = "full";
const LEFT_OUT: &str = "left out";

fn row(kind: &'static str, bytes: u64) -> BlockRow {
    BlockRow {
        uri: None,
        tool: None,
        kind,
        bytes,
        tokens: tokens(bytes),
        delivery: FULL,
        reason: IN_HISTORY.into(),
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{Checksum, Resource, ResourceContent};
    use jp_tool::ContentBlock;
    use serde_json::Map;

    use super::*;
    use crate::{
        ChatRequest, ToolCallRequest, ToolCallResponse,
        view::{Call, Place, Span, inline_text, shown_text},
    };

    #[test]
    fn cut_result_counts_its_shown_part() {
        let mut block: StoredBlock = ContentBlock::text("line\n".repeat(1000)).into();
        let text = inline_text(&block).unwrap().to_owned();
        Shown::mark(Shown::within(&text, 100), &mut block);
        let shown = shown_text(&block, text.as_str().into()).len() as u64;
        let (id, name) = ("1".to_owned(), "read".to_owned());
        let call = ToolCallRequest {
            id,
            name,
            arguments: Map::new(),
            metadata: Map::new(),
        };
        let response = ToolCallResponse {
            id: "1".to_owned(),
            content: vec![block],
            is_error: false,
            structured_content: None,
            meta: Map::new(),
        };
        let response = Some(Cow::Borrowed(&response));
        let messages = vec![Message::Tool {
            turn: 1,
            number: 1,
            call: &call,
            response,
            deliveries: vec![],
        }];
        let rows = explain(&Thread { messages });
        let row = &rows[0].blocks[0];
        assert_eq!(
            (row.bytes, row.tokens, row.delivery),
            (shown, tokens(shown), "cut")
        );
        assert!(shown < 300);
    }

    #[test]
    fn left_out_part_costs_nothing() {
        let [thought, words] = [
            crate::ChatResponse::reasoning("hm"),
            crate::ChatResponse::message("Yes."),
        ];
        let parts = vec![AnswerPart::Response(&thought), AnswerPart::Response(&words)];
        let thread = Thread {
            messages: vec![Message::Assistant { turn: 1, parts }],
        };
        let is_said = |part: &AnswerPart<'_>| *part == AnswerPart::Response(&words);
        let rows = explain_for(&thread, is_said);
        let row = |index: usize| {
            let BlockRow {
                kind,
                bytes,
                tokens,
                delivery,
                reason,
                ..
            } = &rows[0].blocks[index];
            (*kind, *bytes, *tokens, *delivery, &**reason)
        };
        assert_eq!(
            row(0),
            (
                "reasoning",
                0,
                0,
                "left out",
                "the provider does not accept it"
            )
        );
        assert_eq!(row(1), ("message", 4, 1, "full", "new in this turn"));
    }

    #[test]
    fn sums_of_impossible_sizes_do_not_overflow() {
        let blob = jp_resource::BlobRef {
            size: u64::MAX,
            ..jp_resource::BlobRef::for_content(b"", Encoding::Utf8)
        };
        let huge = || Snapshot::new("a:b", jp_resource::Payload::Stored(blob));
        let request = ChatRequest {
            resources: vec![huge(), huge()],
            ..ChatRequest::new("go")
        };
        let request = Cow::Borrowed(&request);
        let thread = Thread {
            messages: vec![Message::User {
                turn: 1,
                request,
                deliveries: vec![],
            }],
        };
        assert_eq!(explain(&thread)[0].blocks[2].bytes, u64::MAX);
        assert_eq!(thread.cache_hints()[0].bytes, u64::MAX);
    }

    fn place(call: Option<(&str, &str)>) -> Place {
        let call = call.map(|(id, tool)| Call {
            id: id.to_owned(),
            number: 2,
            tool: tool.to_owned(),
        });
        Place {
            message: 0,
            block: 0,
            turn: 1,
            call,
            checksum: Checksum::compute(b"x"),
        }
    }

    #[test]
    fn referenced_image_costs_as_much_as_the_reference() {
        let image = |formatted: Option<&str>| {
            let content = jp_resource::Payload::Stored(jp_resource::BlobRef::for_content(
                &[0; 9],
                Encoding::Binary,
            ));
            let formatted = formatted.map(|text| jp_resource::Payload::Inline(text.to_owned()));
            Snapshot {
                formatted,
                ..Snapshot::new("a:b", content).with_mime_type("image/png")
            }
        };
        let tokens =
            |image: &Snapshot| resource_row("resource", image, resource_bytes(image)).tokens;
        assert_eq!(tokens(&image(None)), IMAGE_TOKENS);
        assert!(tokens(&image(Some("a:b has not changed."))) < 50);
    }

    #[test]
    fn each_row_has_the_reason_of_its_delivery() {
        let why = [
            WhyFull::NoResource,
            WhyFull::SwitchedOff,
            WhyFull::Small,
            WhyFull::New,
            WhyFull::TooFarBack,
            WhyFull::AskedAgain,
            WhyFull::Changed,
            WhyFull::ChangedMuch,
            WhyFull::FewLines,
            WhyFull::NotShorter,
        ];
        let (attached, returned) = (place(None), place(Some(("7", "read_file"))));
        let other = [
            Delivery::Reference {
                at: attached.clone(),
            },
            Delivery::Lines {
                known: vec![KnownLines {
                    ours: Span { first: 3, last: 9 },
                    at: returned.clone(),
                    theirs: Span { first: 1, last: 7 },
                }],
            },
            Delivery::Diff { base: attached },
            Delivery::Tombstone {
                newer: Some(returned),
            },
            Delivery::Compacted,
        ];
        let deliveries: Vec<_> = why.into_iter().map(Delivery::Full).chain(other).collect();
        let resource = Resource::new("file:///a", ResourceContent::Text("x".to_owned()));
        let resources = vec![Snapshot::from(resource); deliveries.len()];
        let old = ChatRequest {
            resources,
            ..ChatRequest::new("See")
        };
        let new = ChatRequest {
            resources: vec![old.resources[0].clone()],
            ..ChatRequest::new("And?")
        };
        let messages = vec![
            Message::User {
                turn: 1,
                request: Cow::Borrowed(&old),
                deliveries,
            },
            Message::User {
                turn: 2,
                request: Cow::Borrowed(&new),
                deliveries: vec![Delivery::Full(WhyFull::Changed)],
            },
        ];
        let turns = explain(&Thread { messages });
        let lines = turns.iter().flat_map(|turn| {
            turn.blocks
                .iter()
                .map(move |row| format!("{} {}: {}", turn.turn, row.delivery, row.reason))
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
        1 full: part of the history
        1 full: part of the history
        1 full: references are switched off for it
        1 full: too small for a reference
        1 full: no other version of it is in this request
        1 full: it is too many turns back
        1 full: asked for again after a reference
        1 full: it changed, and no earlier whole version is in this request
        1 full: it changed too much for a diff
        1 full: too few of its lines are in this request
        1 full: a reference would not be shorter
        1 reference: the same content is in the attachments of turn 1
        1 lines: its lines 3-9 are lines 1-7 in the result of call 2 of turn 1 (`read_file`, 7)
        1 diff: the changes since the version in the attachments of turn 1
        1 tombstone: a newer version is in the result of call 2 of turn 1 (`read_file`, 7)
        1 compacted: a compaction left it out
        2 full: new in this turn
        2 full: new in this turn; it changed, and no earlier whole version is in this request
        ");
    }
}
