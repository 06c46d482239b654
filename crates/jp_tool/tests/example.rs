//! Runs the example as jp runs a tool.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use jp_tool::{CallContext, ContentBlock, Invocation, ToolCall, ToolResponse};
use serde_json::{Map, Value, json};

fn run(root: &Path, name: &str, answers: Map<String, Value>) -> ToolResponse {
    let Value::Object(arguments) = json!({"name": name}) else {
        unreachable!()
    };
    let tool = ToolCall {
        name: "delete_note".to_owned(),
        arguments,
        answers,
        ..ToolCall::default()
    };
    let context = CallContext {
        root: root.to_owned(),
        conversation_id: None,
    };
    let mut command = Command::new(testing::example("jp_tool", "delete_note"));
    command
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .expect("the example is not built; `cargo build -p jp_tool --example delete_note` does it");
    serde_json::to_writer(child.stdin.take().unwrap(), &Invocation { tool, context }).unwrap();
    let output = child.wait_with_output().unwrap();
    let (response, warnings) =
        ToolResponse::from_json(serde_json::from_slice(&output.stdout).unwrap()).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    response
}

#[test]
fn example_asks_before_it_deletes() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("notes")).unwrap();
    let note = root.path().join("notes/milk.md");
    fs::write(&note, "Buy milk.").unwrap();

    let response = run(root.path(), "milk", Map::new());
    let [
        ContentBlock::Resource { resource, .. },
        ContentBlock::Question { question },
    ] = &response.content[..]
    else {
        panic!("{response:?}")
    };
    assert_eq!(
        (&*resource.uri, resource.content.as_text()),
        ("file:notes/milk.md", Some("Buy milk."))
    );

    let answers = |answer: bool| Map::from_iter([(question.id.clone(), answer.into())]);
    let kept = run(root.path(), "milk", answers(false));
    assert_eq!(
        kept.content,
        [ContentBlock::text("notes/milk.md was not deleted.")]
    );
    assert!(note.exists());
    let deleted = run(root.path(), "milk", answers(true));
    assert_eq!(
        deleted.content,
        [ContentBlock::text("notes/milk.md is deleted.")]
    );
    assert!(!note.exists());

    let missing = run(root.path(), "milk", Map::new());
    assert!(missing.is_error && !missing.error.unwrap().trace.is_empty());
}
