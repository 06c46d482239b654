use serde_json::{Map, Value};

/// OpenRouter's `reasoning_details`, put together from the pieces of a stream.
#[derive(Debug, Default)]
pub(super) struct Details {
    whole: Vec<Value>,
}

/// The fields that come in pieces.
const TEXTS: [&str; 2] = ["text", "summary"];

impl Details {
    /// Takes a piece, which continues the last detail or begins the next.
    pub(super) fn add(&mut self, piece: Value) {
        match (self.whole.last_mut(), piece) {
            (Some(Value::Object(last)), Value::Object(piece)) if continues(last, &piece) => {
                merge(last, piece)
            }
            (_, piece) => self.whole.push(piece),
        }
    }

    /// Takes all details so far.
    pub(super) fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.whole)
    }
}

/// Returns whether both are of one text: same type and place, and no signature, which ends it, came yet.
fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let is_text = matches!(
        last.get("type").and_then(Value::as_str),
        Some("reasoning.text" | "reasoning.summary")
    );
    let same_id = id(last)
        .zip(id(piece))
        .is_none_or(|(last, piece)| last == piece);
    is_text
        && last.get("type") == piece.get("type")
        && last.get("index") == piece.get("index")
        && same_id
        && !last.get("signature").is_some_and(Value::is_string)
}

fn id(detail: &Map<String, Value>) -> Option<&str> {
    detail.get("id").and_then(Value::as_str)
}

fn merge(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (field, value) in piece {
        match (last.get_mut(&field), value) {
            (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&&*field) => {
                text.push_str(&more);
            }
            // Later pieces repeat fields as null that an earlier one set.
            (Some(_), Value::Null) => {}
            (_, value) => _ = last.insert(field, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn whole(pieces: Value) -> Value {
        let mut details = Details::default();
        pieces
            .as_array()
            .unwrap()
            .iter()
            .cloned()
            .for_each(|piece| details.add(piece));
        details.take().into()
    }

    #[test]
    fn pieces_of_a_text_become_one_detail() {
        let pieces = json!([
            {"type": "reasoning.text", "text": "Let ", "format": "f", "index": 0, "signature": null},
            {"type": "reasoning.text", "text": "me", "index": 0, "id": "a"},
            {"type": "reasoning.text", "text": null, "signature": "S", "index": 0},
            {"type": "reasoning.text", "text": "Next", "index": 0},
            {"type": "reasoning.summary", "summary": "A", "index": 1, "id": "b"},
            {"type": "reasoning.summary", "summary": "B", "index": 1, "id": "c"},
            {"type": "reasoning.encrypted", "data": "x", "index": 1},
            {"type": "reasoning.encrypted", "data": "y", "index": 1},
            "odd",
        ]);
        assert_eq!(
            whole(pieces),
            json!([
                {"type": "reasoning.text", "text": "Let me", "format": "f", "index": 0, "signature": "S", "id": "a"},
                {"type": "reasoning.text", "text": "Next", "index": 0},
                {"type": "reasoning.summary", "summary": "A", "index": 1, "id": "b"},
                {"type": "reasoning.summary", "summary": "B", "index": 1, "id": "c"},
                {"type": "reasoning.encrypted", "data": "x", "index": 1},
                {"type": "reasoning.encrypted", "data": "y", "index": 1},
                "odd",
            ])
        );
    }
}
