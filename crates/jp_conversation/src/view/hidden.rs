//! Hides blocks of a result from the model: those that are only for the user, those that don't fit, and binaries that
//! are too large.
//!
//! As with cut text, the event has everything. A mark has the range of the blocks that don't fit. Annotations mark
//! those for the user.

use std::{borrow::Cow, ops::Range};

use jp_tool::{ContentBlock, StoredBlock};
use serde_json::json;

use super::cut::{note_for_left_out, number};
use crate::ToolCallResponse;

/// The field of a response's `_meta` with the mark.
const MARK: &str = "computer.jp/hidden";

/// Successive blocks of a result that models don't receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden(pub Range<usize>);

impl Hidden {
    /// Reads the mark of a response.
    #[must_use]
    pub fn read_mark(response: &ToolCallResponse) -> Option<Self> {
        let mark = response.meta.get(MARK)?;
        Some(Self(number(mark, "start")?..number(mark, "end")?))
    }

    /// Marks a response, or removes its mark.
    pub fn mark(hidden: Option<Self>, response: &mut ToolCallResponse) {
        match hidden {
            Some(Self(Range { start, end })) => {
                response
                    .meta
                    .insert(MARK.to_owned(), json!({"start": start, "end": end}));
            }
            None => _ = response.meta.shift_remove(MARK),
        }
    }
}

/// The note that replaces a result that is only for the user.
const SHOWN_TO_USER: &str =
    "[jp showed this tool output to the user. It is only for the user, so you don't receive it.]";

/// Returns a response in the form that models receive: without the blocks for the user, with one line in place of the
/// hidden blocks, and with a note in place of each binary that is left out.
pub(super) fn shown_response(response: &ToolCallResponse) -> Cow<'_, ToolCallResponse> {
    let blocks = &response.content;
    let range = Hidden::read_mark(response).map(|Hidden(range)| range);
    let range = range.filter(|range| range.start < range.end && range.end <= blocks.len());
    if range.is_none() && !blocks.iter().any(is_changed) {
        return Cow::Borrowed(response);
    }
    let range = range.unwrap_or(blocks.len()..blocks.len());
    let mut content = shown_blocks(&blocks[..range.start]);
    content.extend((!range.is_empty()).then(|| hidden_line(range.len())));
    content.extend(shown_blocks(&blocks[range.end..]));
    if content.is_empty() {
        content.push(ContentBlock::text(SHOWN_TO_USER).into());
    }
    Cow::Owned(ToolCallResponse {
        id: response.id.clone(),
        content,
        is_error: response.is_error,
        structured_content: response.structured_content.clone(),
        meta: response.meta.clone(),
    })
}

fn is_changed(block: &StoredBlock) -> bool {
    block.is_for_user() || note_for_left_out(block).is_some()
}

fn shown_blocks(blocks: &[StoredBlock]) -> Vec<StoredBlock> {
    blocks
        .iter()
        .filter(|block| !block.is_for_user())
        .map(|block| note_for_left_out(block).unwrap_or_else(|| block.clone()))
        .collect()
}

fn hidden_line(count: usize) -> StoredBlock {
    let subject = if count == 1 { "block is" } else { "blocks are" };
    let text = format!(
        "… {count} {subject} left out here because the result is too long; a call that requests less can show them …\n"
    );
    ContentBlock::text(text).into()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::{
        ChatRequest, Event, EventKind, Stream, ToolCallRequest,
        view::{Message, inline_text, thread},
    };

    fn result(texts: &[&str], hidden: Option<Range<usize>>) -> ToolCallResponse {
        let mut response = ToolCallResponse {
            id: "1".to_owned(),
            content: texts
                .iter()
                .map(|text| ContentBlock::text(*text).into())
                .collect(),
            is_error: true,
            structured_content: Some(json!(1)),
            meta: Map::new(),
        };
        Hidden::mark(hidden.map(Hidden), &mut response);
        response
    }

    #[test]
    fn hidden_blocks_become_one_line() {
        let (id, name) = ("1".to_owned(), "read".to_owned());
        let call = ToolCallRequest {
            id,
            name,
            arguments: Map::new(),
            metadata: Map::new(),
        };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let kinds = [
            EventKind::ChatRequest(ChatRequest::new("Read.")),
            EventKind::ToolCallRequest(call),
            EventKind::ToolCallResponse(result(&["a", "b", "c", "d"], Some(1..3))),
        ];
        let stream = Stream::from_events(kinds.map(|kind| Event::new(now, kind)).into());
        let thread = thread(&stream);
        let Some(Message::Tool {
            response: Some(shown),
            ..
        }) = thread.messages.last()
        else {
            panic!("{thread:?}")
        };
        let texts: Vec<_> = shown.content.iter().filter_map(inline_text).collect();
        insta::assert_snapshot!(texts.join("|"), @r"
        a|… 2 blocks are left out here because the result is too long; a call that requests less can show them …
        |d
        ");
        assert!(shown.is_error && shown.structured_content.is_some());
        let Some(EventKind::ToolCallResponse(kept)) =
            stream.events().last().map(|event| &event.kind)
        else {
            panic!("{stream:?}")
        };
        assert_eq!(kept.content.len(), 4);
    }

    fn for_user(text: &str) -> StoredBlock {
        let annotations = serde_json::from_value(json!({"audience": ["user"]})).unwrap();
        ContentBlock::Text {
            text: text.to_owned(),
            annotations: Some(annotations),
            meta: None,
        }
        .into()
    }

    #[test]
    fn blocks_for_the_user_are_hidden_from_models() {
        let shown = |content: Vec<StoredBlock>, hidden| {
            let response = ToolCallResponse {
                content,
                ..result(&[], hidden)
            };
            let shown = shown_response(&response);
            shown
                .content
                .iter()
                .filter_map(inline_text)
                .collect::<Vec<_>>()
                .join("|")
        };
        let text = |text: &str| StoredBlock::from(ContentBlock::text(text));
        assert_eq!(
            shown(vec![text("a"), for_user("b"), text("c")], None),
            "a|c"
        );
        assert_eq!(shown(vec![for_user("b")], None), SHOWN_TO_USER);
        assert_eq!(shown(vec![], None), "");
        let many = shown(
            vec![for_user("a"), text("b"), for_user("c"), text("d")],
            Some(1..3),
        );
        assert_eq!(many, format!("{}|d", inline_text(&hidden_line(2)).unwrap()));
    }

    #[test]
    fn any_mark_is_accepted() {
        for range in [
            Range { start: 2, end: 1 },
            1..1,
            0..3,
            5..9,
            usize::MAX..usize::MAX,
        ] {
            let response = result(&["a", "b"], Some(range));
            assert_eq!(*shown_response(&response), response);
        }
        let mut response = result(&["a"], None);
        response.meta.insert(MARK.to_owned(), json!("all"));
        assert_eq!(*shown_response(&response), response);
        Hidden::mark(None, &mut response);
        assert_eq!(response, result(&["a"], None));
    }
}
