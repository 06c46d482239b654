use std::{io, path::PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The input of a local tool: one JSON document on its stdin.
///
/// ```
/// use jp_tool::Invocation;
///
/// let document = br#"{
///     "tool": {"name": "delete_note", "arguments": {"name": "milk"}, "answers": {"confirm": true}, "options": {}},
///     "context": {"root": "/project", "conversation_id": "1234"}
/// }"#;
/// // A tool has `std::io::stdin()` here.
/// let invocation = Invocation::read(&document[..])?;
/// assert_eq!(invocation.tool.arguments["name"], "milk");
/// assert_eq!(invocation.answer("confirm"), Some(true));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The call.
    pub tool: ToolCall,
    /// The place of the call.
    pub context: CallContext,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool's name in the configuration. One program may be several tools.
    pub name: String,
    /// The model's arguments, which match the configured parameters.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The answers to the tool's questions, by their ids.
    #[serde(default)]
    pub answers: Map<String, Value>,
    /// The options from the configuration.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// The place of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallContext {
    /// The workspace root, which is also the tool's current directory.
    pub root: PathBuf,
    /// The conversation's id, if it has one.
    #[serde(default)]
    pub conversation_id: Option<String>,
}

impl Invocation {
    /// Reads the document to its end.
    pub fn read(from: impl io::Read) -> io::Result<Self> {
        Ok(serde_json::from_reader(from)?)
    }

    /// Reads the arguments as a type of the tool.
    pub fn arguments<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_value(Value::Object(self.tool.arguments.clone()))
    }

    /// Returns the answer to a question; `None` if it was not asked yet, or if the answer is not a
    /// `T`.
    #[must_use]
    pub fn answer<T: DeserializeOwned>(&self, id: &str) -> Option<T> {
        serde_json::from_value(self.tool.answers.get(id)?.clone()).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invocation_reads_what_it_writes() {
        let document = json!({
            "tool": {"name": "t", "arguments": {"a": [1]}, "answers": {"q": "yes"}, "options": {"o": null}},
            "context": {"root": "/p", "conversation_id": "1"},
        });
        let invocation: Invocation = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(serde_json::to_value(&invocation).unwrap(), document);
    }

    #[test]
    fn answer_of_another_type_counts_as_none() {
        let document = r#"{"tool":{"name":"t","answers":{"q":"yes"}},"context":{"root":"/p"}}"#;
        let invocation = Invocation::read(document.as_bytes()).unwrap();
        assert_eq!(invocation.answer::<String>("q").as_deref(), Some("yes"));
        assert_eq!(
            (
                invocation.answer::<bool>("q"),
                invocation.answer::<bool>("r")
            ),
            (None, None)
        );
    }

    #[test]
    fn arguments_are_read_as_a_type() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Arguments {
            path: String,
            lines: Option<u32>,
        }
        let document = r#"{"tool":{"name":"t","arguments":{"path":"a"}},"context":{"root":"/p"}}"#;
        let invocation = Invocation::read(document.as_bytes()).unwrap();
        let arguments = Arguments {
            path: "a".to_owned(),
            lines: None,
        };
        assert_eq!(invocation.arguments::<Arguments>().unwrap(), arguments);
        assert!(invocation.arguments::<Map<String, Value>>().is_ok());
    }
}
