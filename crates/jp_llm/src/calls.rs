//! The tool calls of an answer, put together from what a stream brings of them.
//!
//! Chat Completions and Anthropic send a call in pieces, the other formats send it whole. All of them end up here, so that
//! arguments are read and checked in one place.

use jp_conversation::{ToolCallRequest, is_shallow};
use serde_json::{Map, Value};

use crate::StreamEvent;

/// The metadata key of a tool call under which arguments stand that are no JSON object, or nested too deep to be kept
/// as one.
pub const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Collects the tool calls of one answer.
#[derive(Debug, Default)]
pub(crate) struct CallCollector {
    /// Calls that more pieces may follow, in the order in which they began.
    open: Vec<PartialCall>,
    /// The ids of the complete calls.
    complete: Vec<String>,
}

/// A piece of a call; fields that a piece does not have are empty.
#[derive(Debug, Default)]
pub(crate) struct CallPiece {
    /// The place of the call in the answer, by which its other pieces find it.
    pub(crate) index: Option<u64>,
    pub(crate) id: String,
    pub(crate) name: String,
    /// A piece of the arguments as JSON.
    pub(crate) arguments: String,
}

/// A call that came whole, or the arguments of one that began.
#[derive(Debug)]
pub(crate) enum Arguments {
    /// JSON in a string; blank if there are none.
    Text(String),
    /// JSON as a part of the message.
    Json(Value),
}

#[derive(Debug)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// The arguments that the call began with; pieces that follow replace them.
    initial: Map<String, Value>,
}

impl CallCollector {
    /// Begins a call whose pieces [`append`](Self::append) adds.
    pub(crate) fn begin(&mut self, piece: CallPiece, initial: Map<String, Value>) {
        let CallPiece {
            index,
            id,
            name,
            arguments,
        } = piece;
        self.open.push(PartialCall {
            index,
            id,
            name,
            arguments,
            initial,
        });
    }

    /// Adds arguments to the newest open call with this index, if there is one.
    pub(crate) fn append(&mut self, index: u64, arguments: &str) {
        let calls = &mut self.open;
        if let Some(call) = calls.iter_mut().rfind(|call| call.index == Some(index)) {
            call.arguments.push_str(arguments);
        }
    }

    /// Adds a piece to the open call that it belongs to, or begins a call with it.
    ///
    /// The index decides, unless the id says otherwise: some servers give every call the index 0, some give none.
    pub(crate) fn add(&mut self, piece: CallPiece) {
        let newest = self.open.iter_mut().rfind(|call| call.has_index_of(&piece));
        match newest.filter(|call| call.accepts(&piece.id)) {
            Some(call) => call.merge(piece),
            None => self.begin(piece, Map::new()),
        }
    }

    /// Completes the newest open call with this index.
    pub(crate) fn end(&mut self, index: u64) -> Option<StreamEvent> {
        let at = self
            .open
            .iter()
            .rposition(|call| call.index == Some(index))?;
        let call = self.open.remove(at);
        Some(self.complete_partial(call))
    }

    /// Completes all open calls.
    pub(crate) fn end_all(&mut self) -> Vec<StreamEvent> {
        let open = std::mem::take(&mut self.open);
        open.into_iter()
            .map(|call| self.complete_partial(call))
            .collect()
    }

    /// Takes a call that came whole. `metadata` is what the provider wants back with it.
    pub(crate) fn complete(
        &mut self,
        id: String,
        name: String,
        arguments: Arguments,
        mut metadata: Map<String, Value>,
    ) -> StreamEvent {
        let arguments = arguments.read().unwrap_or_else(|invalid| {
            metadata.insert(INVALID_ARGUMENTS.to_owned(), invalid.into());
            Map::new()
        });
        self.complete.push(id.clone());
        StreamEvent::ToolCall(ToolCallRequest {
            id,
            name,
            arguments,
            metadata,
        })
    }

    fn complete_partial(&mut self, call: PartialCall) -> StreamEvent {
        let arguments = if call.arguments.trim().is_empty() {
            Arguments::Json(Value::Object(call.initial))
        } else {
            Arguments::Text(call.arguments)
        };
        self.complete(call.id, call.name, arguments, Map::new())
    }

    /// Returns how many calls are complete.
    pub(crate) fn count(&self) -> usize {
        self.complete.len()
    }

    /// Returns whether a complete call has this id.
    pub(crate) fn has_id(&self, id: &str) -> bool {
        self.complete.iter().any(|complete| complete == id)
    }
}

impl PartialCall {
    /// Returns whether a piece may be of this call by its index; one without an index may be of any.
    fn has_index_of(&self, piece: &CallPiece) -> bool {
        piece.index.is_none() || piece.index == self.index
    }

    /// Returns whether a piece with this id may be of this call: an id comes once, or with each piece.
    fn accepts(&self, id: &str) -> bool {
        id.is_empty() || self.id.is_empty() || id == self.id
    }

    fn merge(&mut self, piece: CallPiece) {
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if self.name.is_empty() {
            self.name = piece.name;
        }
        self.arguments.push_str(&piece.arguments);
    }
}

impl Arguments {
    /// Returns the arguments as an object, or as text if they can't be kept as one. None at all are an empty object.
    fn read(self) -> Result<Map<String, Value>, String> {
        match self {
            Self::Text(text) if text.trim().is_empty() => Ok(Map::new()),
            Self::Text(text) => match serde_json::from_str(&text) {
                Ok(arguments) if are_shallow(&arguments) => Ok(arguments),
                _ => Err(text),
            },
            Self::Json(Value::Null) => Ok(Map::new()),
            Self::Json(Value::Object(arguments)) if are_shallow(&arguments) => Ok(arguments),
            Self::Json(other) => Err(other.to_string()),
        }
    }
}

/// Returns whether arguments are nested no deeper than an event may be.
fn are_shallow(arguments: &Map<String, Value>) -> bool {
    arguments.values().all(is_shallow)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Writes calls as `id:name arguments invalid`.
    fn describe(events: Vec<StreamEvent>) -> Vec<String> {
        let describe = |event| match event {
            StreamEvent::ToolCall(call) => {
                let invalid = call.metadata.get(INVALID_ARGUMENTS);
                let invalid = invalid.map_or_else(String::new, |invalid| format!(" {invalid}"));
                let arguments = Value::Object(call.arguments);
                format!("{}:{} {arguments}{invalid}", call.id, call.name)
            }
            other => panic!("not a call: {other:?}"),
        };
        events.into_iter().map(describe).collect()
    }

    fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> CallPiece {
        CallPiece {
            index,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    #[test]
    fn pieces_find_their_call() {
        let rows = [
            (
                "by the index",
                vec![
                    piece(Some(0), "a", "read", "{\"x\""),
                    piece(Some(1), "b", "list", "{"),
                    piece(Some(0), "", "", ":1}"),
                    piece(Some(1), "", "", "}"),
                ],
                vec!["a:read {\"x\":1}", "b:list {}"],
            ),
            (
                "by the id if all have one index",
                vec![
                    piece(Some(0), "a", "read", "{}"),
                    piece(Some(0), "b", "list", "{\"y\":"),
                    piece(Some(0), "b", "list", "2}"),
                ],
                vec!["a:read {}", "b:list {\"y\":2}"],
            ),
            (
                "the newest without an index",
                vec![
                    piece(None, "a", "read", "{}"),
                    piece(None, "b", "list", "{\"y\":"),
                    piece(None, "", "", "2}"),
                ],
                vec!["a:read {}", "b:list {\"y\":2}"],
            ),
            (
                "one whose id and name come late",
                vec![
                    piece(Some(0), "", "", "{}"),
                    piece(Some(0), "a", "", ""),
                    piece(Some(0), "a", "read", ""),
                ],
                vec!["a:read {}"],
            ),
            (
                "first names stay",
                vec![
                    piece(Some(0), "a", "read", ""),
                    piece(Some(0), "", "list", ""),
                ],
                vec!["a:read {}"],
            ),
            ("none", vec![], vec![]),
        ];
        for (name, pieces, expected) in rows {
            let mut calls = CallCollector::default();
            pieces.into_iter().for_each(|piece| calls.add(piece));
            assert_eq!(describe(calls.end_all()), expected, "{name}");
            assert_eq!(calls.count(), expected.len(), "{name}");
        }
    }

    #[test]
    fn call_that_ends_leaves_the_others_open() {
        let mut calls = CallCollector::default();
        let initial = json!({"x": 1}).as_object().cloned().unwrap();
        calls.begin(piece(Some(1), "a", "read", ""), initial.clone());
        calls.begin(piece(Some(2), "b", "read", ""), initial);
        calls.append(2, "{\"x\":2}");
        calls.append(7, "of no call");
        assert_eq!(describe(Vec::from_iter(calls.end(2))), ["b:read {\"x\":2}"]);
        assert_eq!(calls.end(2), None);
        assert!(calls.has_id("b") && !calls.has_id("a"));
        assert_eq!(describe(calls.end_all()), ["a:read {\"x\":1}"]);
    }

    #[test]
    fn calls_that_begin_with_one_index_are_two() {
        let mut calls = CallCollector::default();
        calls.begin(piece(Some(0), "", "read", ""), Map::new());
        calls.begin(piece(Some(0), "", "list", ""), Map::new());
        calls.append(0, "{\"x\":1}");
        assert_eq!(describe(calls.end_all()), [":read {}", ":list {\"x\":1}"]);
    }

    #[test]
    fn arguments_that_can_not_be_kept_stand_in_the_metadata() {
        fn nested(levels: usize) -> String {
            format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels))
        }
        let json = |text: &str| Arguments::Json(serde_json::from_str(text).unwrap());
        let text = |text: &str| Arguments::Text(text.to_owned());
        for (arguments, expected) in [
            (text(""), Ok("{}")),
            (text(" \n"), Ok("{}")),
            (text("{}"), Ok("{}")),
            (text(&nested(100)), Ok(&*nested(100))),
            (text(&nested(101)), Err(&*nested(101))),
            (text(&nested(1000)), Err(&nested(1000))),
            (text("[1]"), Err("[1]")),
            (text("{"), Err("{")),
            (json("null"), Ok("{}")),
            (json("{\"x\":1}"), Ok("{\"x\":1}")),
            (json(&nested(100)), Ok(&nested(100))),
            (json(&nested(101)), Err(&nested(101))),
            (json("\"x\""), Err("\"x\"")),
        ] {
            let read = arguments.read();
            let read = read.map(|arguments| Value::Object(arguments).to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), expected);
        }
    }
}
