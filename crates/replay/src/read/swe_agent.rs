//! SWE-agent's trajectories, of old versions and new.
//!
//! `trajectory` has the steps: what the model said (`response`), the command it ran (`action`) and what came of it
//! (`observation`). The instructions are in `history`. A file with nothing but `history` is read from there. All is one
//! turn, as one request of a person started it.

use std::{borrow::Cow, fs, path::Path};

use serde_json::{Map, Value, json};

use super::{Conversation, Events};
use crate::{
    Error,
    recover::{Piece, ROOT, cat_n, window},
};

const WINDOW: &str = "file window";
const CAT_N: &str = "cat -n view";

/// Reads a trajectory.
pub(super) fn read(path: &Path) -> Result<Conversation, Error> {
    let text = fs::read(path).map_err(|source| Error::io(path, source))?;
    let json = |source| Error::Trajectory {
        path: path.to_owned(),
        source,
    };
    let trajectory: Value = serde_json::from_slice(&text).map_err(json)?;
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
    match steps {
        [] => steps_of(history).iter().for_each(|step| reading.step(step)),
        steps => steps
            .iter()
            .filter_map(Step::of)
            .for_each(|step| reading.step(&step)),
    }
    let Reading {
        events,
        mut conversation,
        ..
    } = reading;
    conversation.streams.push(events.into_stream());
    Ok(conversation)
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn string<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the words before the first answer, those of demonstrations left out.
fn instructions(history: &[Value]) -> String {
    let is_answer = |item: &&Value| string(item, "role") == "assistant" && !is_demonstration(item);
    let before = history
        .iter()
        .take_while(|item| !is_answer(item))
        .filter(|item| !is_demonstration(item));
    before
        .map(|item| words(item))
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn is_demonstration(item: &Value) -> bool {
    item.get("is_demo")
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

/// Returns the words of a message: a string, or blocks with texts.
fn words(item: &Value) -> Cow<'_, str> {
    match item.get("content") {
        Some(Value::String(words)) => words.into(),
        Some(Value::Array(blocks)) => blocks.iter().map(|block| string(block, "text")).collect(),
        _ => "".into(),
    }
}

/// What the model did once, and what came of it.
struct Step<'v> {
    response: Cow<'v, str>,
    action: &'v str,
    observation: Cow<'v, str>,
    /// The directory that commands ran in, and the file that was open.
    state: State,
}

/// Where a step was run.
#[derive(Default)]
struct State {
    directory: Option<String>,
    open_file: Option<String>,
}

impl<'v> Step<'v> {
    fn of(step: &'v Value) -> Option<Self> {
        let observation = match step.get("observation") {
            Some(Value::String(text)) => text.into(),
            None | Some(Value::Null) => "".into(),
            Some(other) => Cow::Owned(other.to_string()),
        };
        let response = match string(step, "response") {
            "" => string(step, "thought"),
            response => response,
        };
        let (action, state) = (string(step, "action"), State::of(step.get("state")));
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
    fn of(state: Option<&Value>) -> Self {
        let parsed = match state {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(state) => state.clone(),
            None => Value::Null,
        };
        let absolute = |name| Some(string(&parsed, name)).filter(|path| path.starts_with('/'));
        Self {
            directory: absolute("working_dir").map(str::to_owned),
            open_file: absolute("open_file").map(str::to_owned),
        }
    }

    /// Reads the prompt that a history has after the output.
    fn of_prompt(words: &str) -> Self {
        let named = |name| {
            let value = |line: &str| Some(line.strip_prefix(name)?.strip_suffix(')')?.to_owned());
            words
                .lines()
                .rev()
                .find_map(value)
                .filter(|path| path.starts_with('/'))
        };
        Self {
            directory: named("(Current directory: "),
            open_file: named("(Open file: "),
        }
    }

    /// Returns the directory that a path the viewer printed starts at: it may be relative to one that is not the
    /// working directory.
    fn root_of(&self, path: &str) -> &str {
        let of_open_file = || {
            self.open_file
                .as_ref()?
                .strip_suffix(path)?
                .strip_suffix('/')
        };
        of_open_file().or(self.directory.as_deref()).unwrap_or(ROOT)
    }
}

/// Pairs the answers of a history with the messages that follow them.
fn steps_of(history: &[Value]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for item in history.iter().filter(|item| !is_demonstration(item)) {
        if string(item, "role") == "assistant" {
            let (response, action) = (words(item), string(item, "action"));
            steps.push(Step {
                response,
                action,
                observation: "".into(),
                state: State::default(),
            });
        } else if let Some(step) = steps.last_mut() {
            let words = words(item);
            step.state = State::of_prompt(&words);
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
    fn step(&mut self, step: &Step<'_>) {
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

    fn blocks(&mut self, step: &Step<'_>) -> Vec<jp_tool::StoredBlock> {
        let output = &*step.observation;
        self.conversation.recorded_bytes += output.len() as u64;
        let windows = || window::pieces(output).map(|pieces| (WINDOW, pieces));
        let views = cat_n::pieces(step.action, output).map(|pieces| (CAT_N, pieces));
        let as_text = || (WINDOW, vec![Piece::Text(output.to_owned())]);
        let (form, pieces) = views.or_else(windows).unwrap_or_else(as_text);
        let block = |piece: Piece| {
            let directory = match &piece {
                Piece::Excerpt(excerpt) => step.state.root_of(&excerpt.path),
                Piece::Text(_) => ROOT,
            };
            self.conversation.block(form, piece, directory)
        };
        pieces.into_iter().map(block).collect()
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
    fn steps_become_calls_and_windows_resources() {
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
    fn file_that_is_no_trajectory_names_itself() {
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
