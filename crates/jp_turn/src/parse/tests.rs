use jp_process::BoundedOutput;
use jp_resource::ResourceContent;
use jp_tool::{AnswerType, InputRequest, Status, ToolError};
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn printed(stdout: &[u8], stderr: &str, end: End) -> Parsed {
    parse_command_output(Captured {
        stdout: stdout.into(),
        stderr: stderr.into(),
        end,
        was_held: false,
    })
}

fn json(value: &Value, status: i32) -> Parsed {
    printed(value.to_string().as_bytes(), "oops\n", End::Exited(status))
}

/// The text blocks, and the types of the others.
fn blocks(parsed: &Parsed) -> Vec<String> {
    let kind = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => text.clone(),
        ContentBlock::Resource { resource, .. } => format!("<resource {}>", resource.uri),
        ContentBlock::Image(media) | ContentBlock::Audio(media) => format!("<{}>", media.mime_type),
        ContentBlock::Question { question } => format!("<question {}>", question.id),
        ContentBlock::Unknown(never) => match *never {},
    };
    parsed.response.content.iter().map(kind).collect()
}

#[test]
fn blocks_come_in_the_order_in_which_they_were_printed() {
    let parsed = json(
        &json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "resource", "resource": {"uri": "file:src/a.rs#L1-2", "text": "x"}, "formatted": "F"},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "question", "question": {"id": "q", "text": "?", "schema": {"type": "boolean"}}},
            {"type": "text", "text": "b"},
        ]}),
        0,
    );
    assert_eq!(
        blocks(&parsed),
        [
            "a",
            "<resource file:src/a.rs#L1-2>",
            "<image/png>",
            "<audio/wav>",
            "<question q>",
            "b"
        ]
    );
    assert_eq!((parsed.response.is_error, parsed.warnings), (false, vec![]));
}

#[test]
fn malformed_block_is_skipped_with_a_warning() {
    let table = [
        (json!(7), "not an object"),
        (json!({"type": "video"}), "unknown block type `video`"),
        (
            json!({"type": "resource_link", "uri": "file:///a", "name": "a"}),
            "unknown block type `resource_link`",
        ),
        (
            json!({"type": 7}),
            "`type`: invalid type: integer `7`, expected a string",
        ),
        (
            json!({"type": "text", "text": null}),
            "`text`: invalid type: null, expected a string",
        ),
        (
            json!({"type": "text", "text": "x", "annotations": 7}),
            "`annotations`: invalid type: integer `7`",
        ),
        (
            json!({"type": "text", "text": "x", "_meta": "x"}),
            "`_meta`: invalid type: string \"x\"",
        ),
        (json!({"type": "resource"}), "missing field `resource`"),
        (
            json!({"type": "resource", "resource": {"uri": "a:b"}}),
            "neither `text` nor `blob`",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "", "blob": ""}}),
            "both `text` and `blob`",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a:b", "blob": "?"}}),
            "invalid base64",
        ),
        (
            json!({"type": "resource", "resource": {"uri": 1, "text": ""}}),
            "invalid type: integer `1`",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "src/a.rs", "text": ""}}),
            "\"src/a.rs\" has no scheme",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "C:\\a", "text": ""}}),
            "has no scheme",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "", "text": ""}}),
            "\"\" has no scheme",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a:b", "text": ""}, "formatted": 1}),
            "expected a string",
        ),
        (
            json!({"type": "image", "data": "?", "mimeType": "image/png"}),
            "invalid base64",
        ),
        (
            json!({"type": "image", "data": "AA=="}),
            "missing field `mimeType`",
        ),
        (
            json!({"type": "question", "question": {"id": "q", "text": "?"}}),
            "missing field `schema`",
        ),
        (
            json!({"type": "question", "question": {"id": "q", "text": "?", "schema": true}}),
            "expected a map",
        ),
    ];
    for (block, reason) in table {
        let content = [
            json!({"type": "text", "text": "a"}),
            block.clone(),
            json!({"type": "text", "text": "b"}),
        ];
        let parsed = json(&json!({"content": content}), 0);
        assert_eq!(blocks(&parsed), ["a", "b"], "{block}");
        assert_eq!(parsed.warnings.len(), 1, "{block}: {:?}", parsed.warnings);
        assert!(
            parsed.warnings[0].contains(reason),
            "{block}: {}",
            parsed.warnings[0]
        );
    }
}

#[test]
fn malformed_field_is_skipped_with_a_warning() {
    for (field, value) in [
        ("isError", json!("yes")),
        ("_meta", json!([])),
        ("_meta", json!({"computer.jp/error": "bad"})),
        (
            "_meta",
            json!({"computer.jp/error": {"transient": "maybe"}}),
        ),
        ("_meta", json!({"computer.jp/error": {"trace": "one"}})),
        ("_meta", json!({"computer.jp/status": "asleep"})),
        ("_meta", json!({"computer.jp/status": 7})),
    ] {
        let mut object =
            Map::from_iter([("content".to_owned(), json!([{"type": "text", "text": "a"}]))]);
        object.insert(field.to_owned(), value);
        let parsed = json(&Value::Object(object.clone()), 0);
        assert_eq!(
            (blocks(&parsed), parsed.warnings.len()),
            (vec!["a".to_owned()], 1),
            "{object:?}"
        );
        assert!(!parsed.response.is_error);
    }
}

#[test]
fn metadata_of_a_response_is_read() {
    let parsed = json(
        &json!({
            "content": [{"type": "text", "text": "no"}], "isError": true,
            "_meta": {"computer.jp/error": {"transient": true, "trace": ["t"]}, "computer.jp/status": "stopped"},
        }),
        0,
    );
    let error = ToolError {
        transient: true,
        trace: vec!["t".to_owned()],
    };
    assert_eq!(
        (parsed.response.error.as_ref(), parsed.response.status),
        (Some(&error), Some(Status::Stopped))
    );
    assert_eq!(
        (parsed.response.is_error, blocks(&parsed)),
        (true, vec!["no".to_owned()])
    );
}

#[test]
fn other_output_is_text() {
    for text in [
        "plain\ntext\n",
        " {\"content\": [{\"type\": \"te",
        "[1, 2]",
        "{}",
        "{\"content\": \"text\"}",
        "{\"content\": {\"type\": \"text\"}}",
        "{\"content\": []} {\"content\": []}",
        "{\"type\": \"success\", \"content\": 7}",
        "{\"type\": \"error\", \"message\": \"m\", \"code\": 7}",
        "{\"type\": \"needs_input\", \"question\": {\"id\": \"q\", \"text\": \"?\", \"answer_type\": \"Date\"}}",
    ] {
        let parsed = printed(text.as_bytes(), "progress", End::Exited(0));
        assert_eq!(
            (blocks(&parsed), parsed.response.is_error),
            (vec![text.to_owned()], false)
        );
    }
    let deep = "{\"content\":[".repeat(500) + &"]}".repeat(500);
    assert_eq!(
        blocks(&printed(deep.as_bytes(), "", End::Exited(0))),
        [deep]
    );
}

#[test]
fn json_may_be_surrounded_by_white_space() {
    let parsed = printed(
        "\u{feff}\n {\"content\": [{\"type\":\"text\",\"text\":\"a\"}]}\r\n".as_bytes(),
        "",
        End::Exited(0),
    );
    assert_eq!(blocks(&parsed), ["a"]);
}

#[test]
fn empty_output_is_reported() {
    for stdout in ["", "\n", "{\"content\": []}"] {
        let parsed = printed(stdout.as_bytes(), "", End::Exited(0));
        assert_eq!(
            blocks(&parsed),
            ["The tool returned nothing and exited with status 0."]
        );
        assert!(!parsed.response.is_error);
    }
    let fine = json(&json!({"content": [], "isError": false}), 3);
    assert_eq!(
        blocks(&fine),
        ["The tool returned nothing and exited with status 3."]
    );
    let structured = json(&json!({"content": [], "structuredContent": 7}), 0);
    assert_eq!(blocks(&structured), Vec::<String>::new());
}

#[test]
fn stderr_of_a_program_that_prints_nothing_else_is_its_output() {
    let parsed = printed(b"", "warning: unused\n", End::Exited(0));
    assert_eq!(
        (blocks(&parsed), parsed.response.is_error),
        (vec!["[stderr]\nwarning: unused\n".to_owned()], false)
    );
}

#[test]
fn failure_has_the_whole_output() {
    let failed = printed(b"half\n", "oops\n", End::Exited(3));
    assert!(failed.response.is_error);
    assert_eq!(
        blocks(&failed),
        [
            "half\n",
            "[stderr]\noops\n",
            "The tool exited with status 3."
        ]
    );
    let silent = printed(b"", "", End::Exited(1));
    assert_eq!(
        blocks(&silent),
        ["The tool exited with status 1. It printed nothing."]
    );
    let slow = printed(
        b"half\n",
        "",
        End::TimedOut(std::time::Duration::from_millis(1500)),
    );
    assert_eq!(
        blocks(&slow),
        [
            "half\n",
            "The tool ran for more than 1.5 seconds and was ended with every process that it had started."
        ]
    );
    assert_eq!(
        blocks(&printed(b"half\n", "", End::Moot))[1],
        "The call was interrupted, and the tool was ended."
    );
}

#[test]
fn status_makes_blocks_an_error_unless_they_say_otherwise() {
    let block = json!([{"type": "text", "text": "a"}]);
    let silent = json(&json!({"content": block}), 2);
    assert_eq!(
        blocks(&silent),
        ["a", "[stderr]\noops\n", "The tool exited with status 2."]
    );
    assert!(silent.response.is_error);
    assert!(
        json(&json!({"content": block, "isError": true}), 2)
            .response
            .is_error
    );
    let fine = json(&json!({"content": block, "isError": false}), 2);
    assert_eq!(
        (blocks(&fine), fine.response.is_error),
        (vec!["a".to_owned()], false)
    );
    let ended = parse_command_output(Captured {
        stdout: json!({"content": block, "isError": false})
            .to_string()
            .into(),
        stderr: "".into(),
        end: End::Stopped,
        was_held: false,
    });
    assert!(ended.response.is_error);
}

#[test]
fn questions_of_a_program_that_was_ended_are_not_asked() {
    let content = json!({"content": [
        {"type": "question", "question": {"id": "q", "text": "?", "schema": {"type": "boolean"}}},
    ]});
    let of = |end| blocks(&printed(content.to_string().as_bytes(), "", end));
    assert_eq!(of(End::Exited(0)), ["<question q>"]);
    assert_eq!(
        of(End::Moot),
        ["The call was interrupted, and the tool was ended. It printed nothing."]
    );
}

#[test]
fn older_outcomes_become_blocks() {
    let success = json(&json!({"type": "success", "content": "done"}), 0);
    assert_eq!(
        (blocks(&success), success.response.is_error),
        (vec!["done".to_owned()], false)
    );
    let error = json(
        &json!({"type": "error", "message": "no", "trace": ["t"], "transient": true}),
        0,
    );
    assert_eq!(
        (blocks(&error), error.response.is_error),
        (vec!["no".to_owned()], true)
    );
    assert_eq!(
        error.response.error,
        Some(ToolError {
            transient: true,
            trace: vec!["t".to_owned()]
        })
    );
    let options = vec!["a".to_owned(), "b".to_owned()];
    for (answer, expected) in [
        (json!("Boolean"), AnswerType::Boolean),
        (json!("Text"), AnswerType::Text),
        (
            json!({"Select": {"options": options}}),
            AnswerType::Select {
                options: options.clone(),
            },
        ),
        (json!({"type": "boolean"}), AnswerType::Boolean),
        (
            json!({"type": "select", "options": options}),
            AnswerType::Select {
                options: options.clone(),
            },
        ),
        (json!({"type": "text"}), AnswerType::Text),
    ] {
        let question = json!({"id": "q", "text": "?", "answer_type": answer, "default": null});
        let parsed = json(&json!({"type": "needs_input", "question": question}), 0);
        let input = InputRequest::new("q", "?", expected);
        assert_eq!(
            parsed.response.content,
            [ContentBlock::question(input)],
            "{answer}"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced_with_a_warning() {
    let parsed = printed(b"caf\xe9\n", "", End::Exited(0));
    assert_eq!(blocks(&parsed), ["caf\u{fffd}\n"]);
    assert_eq!(
        parsed.warnings,
        ["its standard output is not valid UTF-8; invalid bytes are shown as \u{fffd}"]
    );
}

#[test]
fn gap_in_the_output_is_marked_at_its_place() {
    let mut stdout = BoundedOutput::at_most(10);
    stdout.push("1234é6789é2345".as_bytes());
    let parsed = parse_command_output(Captured {
        stdout,
        stderr: "".into(),
        end: End::Exited(0),
        was_held: false,
    });
    assert_eq!(
        blocks(&parsed),
        ["1234\n[8 bytes of the output are missing here]\n2345"]
    );
    let said = "it printed 16 bytes to its standard output, and jp keeps at most 64000000: 8 bytes in the middle are lost; make it print less, or write to a file";
    assert_eq!(parsed.warnings, [said]);
}

#[test]
fn gap_in_used_stderr_is_an_error() {
    let parsed = |stdout: &str| {
        let mut stderr = BoundedOutput::at_most(10);
        stderr.push(b"1234567890123456");
        let stdout = stdout.into();
        parse_command_output(Captured {
            stdout,
            stderr,
            end: End::Exited(0),
            was_held: false,
        })
    };
    let lost = parsed("");
    assert!(lost.response.is_error, "{lost:?}");
    assert!(
        lost.warnings[0].starts_with("it printed 16 bytes to its standard error"),
        "{lost:?}"
    );
    let unused = parsed("fine");
    assert!(
        !unused.response.is_error && unused.warnings.is_empty(),
        "{unused:?}"
    );
}

#[test]
fn output_with_a_gap_is_text_even_if_it_looks_whole() {
    let mut stdout = BoundedOutput::at_most(16);
    stdout.push(b"{\"content\":xxxxxxxx       []}");
    let captured = Captured {
        stdout,
        stderr: "".into(),
        end: End::Exited(0),
        was_held: false,
    };
    assert!(blocks(&parse_command_output(captured))[0].contains("are missing here"));
}

#[test]
fn held_output_is_reported() {
    let captured = Captured {
        stdout: "up".into(),
        stderr: "".into(),
        end: End::Exited(0),
        was_held: true,
    };
    let parsed = parse_command_output(captured);
    assert_eq!(
        (blocks(&parsed), parsed.warnings.len()),
        (vec!["up".to_owned()], 1)
    );
}

#[test]
fn formatted_text_does_not_change_the_content() {
    let parsed = json(
        &json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "raw"}, "formatted": "F"}]}),
        0,
    );
    let ContentBlock::Resource { resource, .. } = &parsed.response.content[0] else {
        panic!("{parsed:?}")
    };
    let raw = ResourceContent::Text("raw".to_owned()).blob_ref().checksum;
    assert_eq!(
        (resource.formatted.as_deref(), resource.checksum()),
        (Some("F"), raw)
    );
}

proptest! {
    #[test]
    fn anything_a_program_prints_gives_a_response(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{\"content\":[", "]}", "{\"type\":\"text\",\"text\":\"", "\"}", ",", "\"isError\":", "true", "null", "\\u", "é", " ",
        ]), 0..12),
        bytes in prop::collection::vec(any::<u8>(), 0..9),
        limit in 0usize..60,
        status in 0i32..2,
    ) {
        let mut stdout = BoundedOutput::at_most(limit);
        stdout.push(pieces.concat().as_bytes());
        stdout.push(&bytes);
        let captured = Captured { stdout, stderr: (&bytes[..]).into(), end: End::Exited(status), was_held: false };
        let parsed = parse_command_output(captured);
        prop_assert!(!parsed.response.content.is_empty() || !parsed.warnings.is_empty());
    }
}
