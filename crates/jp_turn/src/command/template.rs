//! The placeholders in the words of a command.

use std::cell::Cell;

use serde_json::Value;

/// Fills in the placeholders of one word: `{{context}}` is the whole document,
/// `{{tool.arguments.NAME}}`, `{{context.root}}` and the like are parts of it by their path.
///
/// A string goes in bare, anything else as JSON; an absent value or null becomes nothing. Braces
/// around anything else are part of the word. What goes in is not looked at again, and the word
/// stays one word.
pub(crate) fn fill(word: &str, document: &Value) -> String {
    fill_with(word, &|path| part(path, document))
}

/// Like [`fill`], but for what stands for all of the document or for all of the tool.
pub(crate) fn fill_parts(word: &str, document: &Value) -> String {
    fill_with(word, &|path| {
        if matches!(path, "context" | "tool") {
            None
        } else {
            part(path, document)
        }
    })
}

/// Returns whether words of a model go into a word: arguments, answers, or a document that has
/// them.
pub(crate) fn holds_words_of_model(word: &str) -> bool {
    let holds = Cell::new(false);
    // `fill_with` finds the placeholders; what it makes of the word doesn't matter.
    fill_with(word, &|path| {
        holds.set(holds.get() || names_words_of_model(path));
        part(path, &Value::Null)
    });
    holds.get()
}

fn names_words_of_model(path: &str) -> bool {
    matches!(path, "context" | "tool")
        || ["tool.arguments", "tool.answers"].iter().any(|name| {
            path.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

fn fill_with(word: &str, part: &dyn Fn(&str) -> Option<String>) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        match after
            .split_once("}}")
            .and_then(|(path, after)| Some((part(path.trim())?, after)))
        {
            Some((value, after)) => {
                filled.push_str(&value);
                rest = after;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled + rest
}

/// Returns what a placeholder stands for; `None` if it is not a placeholder.
fn part(path: &str, document: &Value) -> Option<String> {
    if path == "context" {
        return Some(document.to_string());
    }
    let is_ours = path == "tool" || path.starts_with("tool.") || path.starts_with("context.");
    is_ours.then(|| match find(document, path) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    })
}

/// Finds a value by a path; a name may hold dots itself.
fn find<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let object = value.as_object()?;
    object.get(path).or_else(|| {
        let (name, rest) = path.split_once('.')?;
        find(object.get(name)?, rest)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(word: &str) -> String {
        let arguments = json!({
            "name": "a b'\"\n$(id) {{tool.name}}", "n": 3, "list": [1, "x"], "none": null, "a.b": "dotted",
        });
        let document = json!({
            "tool": {"name": "t", "arguments": arguments},
            "context": {"root": "/p", "conversation_id": null},
        });
        fill(word, &document)
    }

    #[test]
    fn placeholders_are_parts_of_the_document() {
        for (word, expected) in [
            ("plain", "plain"),
            ("{{tool.name}}", "t"),
            ("--n={{tool.arguments.n}}", "--n=3"),
            ("{{ tool.arguments.list }}", "[1,\"x\"]"),
            ("{{tool.arguments.a.b}}", "dotted"),
            ("{{context.root}}/x/{{tool.name}}.md", "/p/x/t.md"),
            (
                "[{{tool.arguments.absent}}{{tool.arguments.none}}{{context.conversation_id}}]",
                "[]",
            ),
            ("{{tool.arguments.n.deeper}}", ""),
        ] {
            assert_eq!(filled(word), expected, "{word}");
        }
        let whole: Value = serde_json::from_str(&filled("{{context}}")).unwrap();
        assert_eq!(whole["tool"]["arguments"]["n"], 3);
        assert_eq!(filled("{{tool}}"), whole["tool"].to_string());
    }

    #[test]
    fn inserted_text_is_not_expanded_again() {
        assert_eq!(
            filled("<{{tool.arguments.name}}>"),
            "<a b'\"\n$(id) {{tool.name}}>"
        );
    }

    #[test]
    fn other_braces_are_left_as_they_are() {
        for word in [
            "{{.Names}}",
            "{{",
            "}}",
            "{{}}",
            "{{tools}}",
            "{{contextual}}",
            "{x}",
            "{{tool.name",
        ] {
            assert_eq!(filled(word), word);
        }
        assert_eq!(filled("{{{tool.name}}}"), "{{{tool.name}}}");
        assert_eq!(filled("{{x}} {{tool.name}}"), "{{x}} t");
    }
}
