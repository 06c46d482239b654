//! `jp query --schema`: answers that are JSON, and fit.

use std::sync::Mutex;

use testing::{
    Reply, Sandbox, Server, answer, answering, assert_contains, assert_fields, chunk, last_message,
    last_request,
};

const SCHEMA: &str = r#"{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"}},"required":["title"]}"#;

/// Returns the next reply to each query; reports no model.
fn answering_each(replies: Vec<Reply>) -> Server {
    let replies = Mutex::new(replies.into_iter());
    Server::scripted(move |_, path| match path {
        "/v1/chat/completions" => replies.lock().unwrap().next().unwrap(),
        _ => Reply::json(404, "{}"),
    })
}

#[test]
fn answer_that_fits_is_all_of_stdout() {
    let (sandbox, server) = Sandbox::with_model(answering(r#"{"title": "x"}"#));
    sandbox.write("schema.json", SCHEMA);
    let run = sandbox.run("q --new -s @schema.json what?");
    assert_eq!(run.stdout, "{\"title\": \"x\"}\n");
    let sent = &last_request(&server)["response_format"]["json_schema"]["schema"];
    assert_eq!(sent.to_string(), SCHEMA);
    let document = sandbox.json(&["q", "--schema", SCHEMA, "and?"]);
    assert_fields!(document, {"structured": {"title": "x"}, "answer": r#"{"title": "x"}"#});
    assert!(sandbox.json("q 'in words'").get("structured").is_none());
    assert!(last_request(&server).get("response_format").is_none());
}

#[test]
fn answer_that_does_not_fit_is_an_error_with_its_place() {
    let (sandbox, _) = Sandbox::with_model(answering_each(vec![
        answer(r#"{"title": "x", "n": "three"}"#),
        answer("Sure!"),
    ]));
    let run = sandbox
        .fail(&["q", "--new", "-s", SCHEMA, "what?"], 1)
        .says([
            "the answer does not match the schema: at /n: want integer, but got string",
            "is kept",
        ]);
    assert_contains(&run.stdout, "three");
    assert!(sandbox.has_event("chat_response"));
    let run = sandbox
        .fail(&["q", "-F", "json", "-s", SCHEMA, "what?"], 1)
        .says(["the answer is not valid JSON: expected value at line 1 column 1"]);
    assert_eq!(run.stdout, "");
}

#[test]
fn answer_that_was_cut_off_says_so() {
    let end =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let (sandbox, _) = Sandbox::with_model(answering_each(vec![Reply::stream(&format!(
        "{}{end}",
        chunk("{\"title\": \"x")
    ))]));
    sandbox
        .fail(&["q", "--new", "-s", SCHEMA, "what?"], 1)
        .says(["the answer was cut off, length limit reached: the answer is not valid JSON"]);
}

#[test]
fn message_that_is_sent_again_keeps_its_schema() {
    let (sandbox, server) = Sandbox::with_model(answering_each(vec![
        Reply::json(400, "{}"),
        answer("[]"),
        answer(r#"{"title":"x"}"#),
    ]));
    sandbox
        .fail(&["q", "--new", "-s", SCHEMA, "what?"], 1)
        .says(["sends it again"]);
    sandbox
        .fail(&["q", "-s", SCHEMA], 2)
        .says(["with its own schema"]);
    sandbox.fail("q", 1).says([
        "at its top: want object, but got array",
        "without a message asks again",
    ]);
    sandbox.run("q");
    sandbox.fail("q", 2).says(["no unanswered message"]);
    let received = server.received();
    let mut queries = received
        .iter()
        .filter(|request| request.head.starts_with("post "));
    let (first, second) = (queries.next().unwrap(), queries.next().unwrap());
    assert_eq!(first.body, second.body);
}

#[test]
fn schema_that_is_none_is_refused_before_anything_happens() {
    let (sandbox, server) = Sandbox::with_answer("{}");
    sandbox.write("list.json", "[]");
    sandbox.write("other.json", "{}");
    for (schema, words) in [
        (
            "{",
            "the argument is not JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("@missing.json", "failed to read missing.json: No such file"),
        ("@list.json", "list.json is not a JSON Schema object"),
        (
            r#"{"type":"text"}"#,
            "the argument is not a JSON Schema: at /type: value must be one of",
        ),
        (
            r#"{"$ref":"https://example.com/a.json"}"#,
            "it refers to https://example.com/a.json, but jp reads no document other than the schema",
        ),
        (
            r#"{"$ref":"other.json"}"#,
            "it refers to other.json, but jp reads no document other than the schema",
        ),
    ] {
        let run = sandbox.jp(&["q", "--new", "-a", "missing", "-s", schema, "what?"]);
        run.failed(2).says(["invalid --schema: ", words, "hint: "]);
    }
    assert_eq!(server.received().len(), 0);
    assert!(!sandbox.path(".jp/conversations").exists());
}

#[test]
fn explain_shows_the_schema() {
    let (sandbox, server) = Sandbox::with_answer("{}");
    let document = sandbox.json(&["q", "--new", "--explain", "-s", SCHEMA, "what?"]);
    assert_fields!(document["request"]["response_format"], {"type": "json_schema"});
    sandbox.run(&["q", "--new", "-s", r#"{"type":"object"}"#, "what?"]);
    assert_eq!(last_message(&server), "what?");
}
