//! Reads SWE-agent's trajectories, of old and new versions.
//!
//! `trajectory` has the steps: the model's words (`response`), its command (`action`) and the output
//! (`observation`). The instructions are in `history`. If a file has only `history`, the steps come
//! from there. The conversation has one turn, because the user sent one message.

use std::{borrow::Cow, fs, path::Path};

use jp_tool::{ContentBlock, StoredBlock};
use serde_json::{Map, Value, json};

use super::{Conversation, Events, is_set, string};
use crate::{
    Error,
    recover::{Piece, ROOT, cat_n, window},
};

const WINDOW: &str = "file window";
const CAT_N: &str = "cat -n view";

/// Reads a trajectory.
pub(super) fn read(path: &Path) -> Result<Conversation, Error> {
    let text = fs::read(path).map_err(|source| Error::io(path, source))?;
    let trajectory: Value = serde_json::from_slice(&text).map_err(|source| Error::Trajectory {
        path: path.to_owned(),
        source,
    })?;
    let (steps, history) = (
        list(&trajectory, "trajectory"),
        list(&trajectory, "history"),
    );
    if steps.is_empty() && history.is_empty() {
        return Err(Error::Unknown {
            path: path.to_owned(),
        });
    }
    let mut reading = Reading::default();
    reading.events.request(&instructions(history), Vec::new());
    let steps = match steps {
        [] => steps_from_history(history),
        steps => steps.iter().filter_map(Step::from_json).collect(),
    };
    for step in &steps {
        reading.add_step(step);
    }
    let stream = reading.events.into_stream();
    reading.conversation.streams.push(stream);
    Ok(reading.conversation)
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the messages of a history without demonstrations, which show a solved example.
fn messages(history: &[Value]) -> impl Iterator<Item = &Value> {
    history.iter().filter(|item| !is_set(item, "is_demo"))
}

fn is_answer(item: &Value) -> bool {
    string(item, "role") == "assistant"
}

/// Returns the text of all messages before the first answer.
fn instructions(history: &[Value]) -> String {
    let before: Vec<_> = messages(history)
        .take_while(|item| !is_answer(item))
        .map(words)
        .collect();
    before.join("\n\n")
}

/// Returns the text of a message, which is a string or a list of blocks.
fn words(item: &Value) -> Cow<'_, str> {
    match item.get("content") {
        Some(Value::String(words)) => words.into(),
        Some(Value::Array(blocks)) => blocks.iter().map(|block| string(block, "text")).collect(),
        _ => "".into(),
    }
}

/// An answer of the model with its command and the output.
struct Step<'v> {
    response: Cow<'v, str>,
    action: &'v str,
    observation: Cow<'v, str>,
    state: State,
}

/// The state of the shell and the viewer after a step.
#[derive(Default)]
struct State {
    /// The working directory, an absolute path.
    directory: Option<String>,
    /// The file in the viewer, an absolute path.
    open_file: Option<String>,
}

impl<'v> Step<'v> {
    fn from_json(step: &'v Value) -> Option<Self> {
        let observation = match step.get("observation") {
            Some(Value::String(text)) => text.into(),
            None | Some(Value::Null) => "".into(),
            Some(other) => Cow::Owned(other.to_string()),
        };
        let response = match string(step, "response") {
            "" => string(step, "thought"),
            response => response,
        };
        let (action, state) = (string(step, "action"), State::from_json(step.get("state")));
        step.is_object().then(|| Self {
            response: response.into(),
            action,
            observation,
            state,
        })
    }
}

impl State {
    /// Reads the state, which older versions wrote as JSON in a string.
    fn from_json(state: Option<&Value>) -> Self {
        let parsed = match state {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(state) => state.clone(),
            None => Value::Null,
        };
        Self {
            directory: absolute(string(&parsed, "working_dir")),
            open_file: absolute(string(&parsed, "open_file")),
        }
    }

    /// Reads the prompt at the end of a message in a history.
    fn from_prompt(words: &str) -> Self {
        Self {
            directory: prompt_path(words, "(Current directory: "),
            open_file: prompt_path(words, "(Open file: "),
        }
    }

    /// Returns the directory of a relative path that the viewer printed.
    ///
    /// The viewer's paths need not be relative to the working directory, but the open file's path
    /// ends with them.
    fn root_of(&self, path: &str) -> &str {
        self.open_file
            .as_ref()
            .and_then(|open| open.strip_suffix(path)?.strip_suffix('/'))
            .or(self.directory.as_deref())
            .unwrap_or(ROOT)
    }
}

/// Returns the path if it is absolute. An unknown one is empty or `n/a`.
fn absolute(path: &str) -> Option<String> {
    path.starts_with('/').then(|| path.to_owned())
}

/// Returns the path on the last line of the form `(NAME: PATH)`, of which `start` is the part before
/// the path.
fn prompt_path(words: &str, start: &str) -> Option<String> {
    words
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(start)?.strip_suffix(')'))
        .and_then(absolute)
}

/// Pairs the answers of a history with the messages that follow them.
fn steps_from_history(history: &[Value]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for item in messages(history) {
        if is_answer(item) {
            steps.push(Step {
                response: words(item),
                action: string(item, "action"),
                observation: "".into(),
                state: State::default(),
            });
        } else if let Some(step) = steps.last_mut() {
            let words = words(item);
            step.state = State::from_prompt(&words);
            step.observation.to_mut().push_str(&words);
        }
    }
    steps
}

#[derive(Default)]
struct Reading {
    events: Events,
    conversation: Conversation,
    calls: usize,
}

impl Reading {
    fn add_step(&mut self, step: &Step<'_>) {
        self.events.message(&step.response);
        if step.action.is_empty() && step.observation.is_empty() {
            return;
        }
        self.calls += 1;
        let id = self.calls.to_string();
        let name = step.action.split_whitespace().next().unwrap_or("none");
        let arguments = Map::from_iter([("command".to_owned(), json!(step.action))]);
        self.events.call(&id, name, arguments);
        let content = self.blocks(step);
        self.events.result(&id, content, false);
    }

    fn blocks(&mut self, step: &Step<'_>) -> Vec<StoredBlock> {
        let output = &*step.observation;
        self.conversation.recorded_bytes += output.len() as u64;
        let (form, pieces) = if let Some(pieces) = cat_n::pieces(step.action, output) {
            (CAT_N, pieces)
        } else if let Some(pieces) = window::pieces(output) {
            (WINDOW, pieces)
        } else {
            return vec![ContentBlock::text(output).into()];
        };
        pieces
            .into_iter()
            .map(|piece| {
                let directory = match &piece {
                    Piece::Excerpt(excerpt) => step.state.root_of(&excerpt.path),
                    Piece::Text(_) => ROOT,
                };
                self.conversation.block(form, piece, directory)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::outline;

    fn read_json(trajectory: &Value) -> Conversation {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.traj");
        fs::write(&path, trajectory.to_string()).unwrap();
        read(&path).unwrap()
    }

    #[test]
    fn steps_become_calls_with_resources() {
        let conversation = read_json(&json!({
            "trajectory": [
                {"response": "Look.", "action": "open src/a.py", "state": {"working_dir": "/r", "open_file": "/r/src/a.py"},
                 "observation": "[File: src/a.py (1 lines total)]\r\n1:a"},
                {"thought": "Edit.", "action": "edit 1:1\nb\nend_of_edit", "state": "{\"open_file\": \"/r/src/a.py\"}",
                 "observation": "Done.\n[File: /r/src/a.py (1 lines total)]\n1:b\n"},
                {"response": "View.", "action": "str_replace_editor view /r/b.py",
                 "observation": "Here's the result of running `cat -n` on /r/b.py:\n     1\tx\n     2\t\n\n"},
                {"response": "Run.", "action": "ls -l", "observation": "b.py"},
                {"response": "I give up.", "action": "", "observation": null},
            ],
            "history": [
                {"role": "system", "content": "Fix it."},
                {"role": "user", "content": "shown", "is_demo": true},
                {"role": "user", "content": [{"type": "text", "text": "The issue."}]},
                {"role": "assistant", "content": "Look."},
            ],
        }));
        assert_eq!(
            outline(&conversation.streams[0]),
            [
                r#"user "Fix it.\n\nThe issue.""#,
                r#"Message("Look.")"#,
                r#"call 1 open {"command":"open src/a.py"}"#,
                "result 1 false",
                r#"  file:///r/src/a.py "a\n""#,
                r#"Message("Edit.")"#,
                r#"call 2 edit {"command":"edit 1:1\nb\nend_of_edit"}"#,
                "result 2 false",
                r#"  text "Done.\n""#,
                r#"  file:///r/src/a.py "b\n""#,
                r#"Message("View.")"#,
                r#"call 3 str_replace_editor {"command":"str_replace_editor view /r/b.py"}"#,
                "result 3 false",
                r#"  file:///r/b.py "x\n""#,
                r#"Message("Run.")"#,
                r#"call 4 ls {"command":"ls -l"}"#,
                "result 4 false",
                r#"  text "b.py""#,
                r#"Message("I give up.")"#,
            ]
        );
        assert_eq!(
            (
                conversation.recovered[WINDOW].resources,
                conversation.recovered[CAT_N].resources
            ),
            (2, 1)
        );
    }

    #[test]
    fn history_alone_gives_the_steps() {
        let conversation = read_json(&json!({"trajectory": [], "history": [
            {"role": "user", "content": "The issue."},
            {"role": "assistant", "content": "Look.", "action": "open a.py"},
            {"role": "tool", "content": "[File: /r/a.py (1 lines total)]\n1:a\n(Open file: /r/a.py)"},
            {"role": "assistant", "content": "Again.", "action": "open b/c.py"},
            {
                "role": "tool",
                "content": "[File: b/c.py (1 lines total)]\n1:c\n(Open file: n/a)\n(Current directory: /r)\nbash-$",
            },
        ]}));
        assert_eq!(
            outline(&conversation.streams[0]),
            [
                r#"user "The issue.""#,
                r#"Message("Look.")"#,
                r#"call 1 open {"command":"open a.py"}"#,
                "result 1 false",
                r#"  file:///r/a.py "a\n""#,
                r#"  text "(Open file: /r/a.py)""#,
                r#"Message("Again.")"#,
                r#"call 2 open {"command":"open b/c.py"}"#,
                "result 2 false",
                r#"  file:///r/b/c.py "c\n""#,
                r#"  text "(Open file: n/a)\n(Current directory: /r)\nbash-$""#,
            ]
        );
    }

    #[test]
    fn error_names_a_file_without_a_trajectory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.traj");
        fs::write(&path, "{\"trajectory\": [").unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("read {} as a SWE-agent trajectory", path.display())
        );
        fs::write(&path, "{}").unwrap();
        assert!(matches!(read(&path), Err(Error::Unknown { .. })));
    }
}
