//! Turns of several rounds: what is sent again, and what is kept, where one of them fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jp_llm::testing::{Reply, Server};
use support::{Sandbox, answer};

const CALL: &str = concat!(
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"look","arguments":"{}"}}]}}]}"#,
    "\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
);

/// Answers what is asked of the model, one after the other; knows nothing else.
fn server(replies: Vec<Reply>) -> Server {
    let count = AtomicUsize::new(0);
    Server::scripted(move |_, path| match path {
        "/v1/chat/completions" => replies[count.fetch_add(1, Relaxed).min(replies.len() - 1)].clone(),
        _ => Reply::json(404, "{}"),
    })
}

/// Returns the bodies of the requests to the model.
fn bodies(server: &Server) -> Vec<Vec<u8>> {
    let asks = |head: &str| head.starts_with("post /v1/chat/completions");
    server.received().into_iter().filter(|request| asks(&request.head)).map(|request| request.body).collect()
}

fn count(sandbox: &Sandbox, kind: &str) -> usize {
    sandbox.events().iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn turn_goes_on_from_its_results_after_a_round_that_failed() {
    let server = server(vec![Reply::stream(CALL), Reply::json(400, r#"{"error":"no"}"#), answer("Done.")]);
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.jp(&["query", "Look."]).failed(1, &["400"]);
    assert_eq!([count(&sandbox, "tool_call_request"), count(&sandbox, "tool_call_response")], [1, 1]);
    assert_eq!(sandbox.jp(&["query"]).succeeded().stdout, "Done.\n");
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[1], bodies[2]);
    assert_eq!([count(&sandbox, "chat_request"), count(&sandbox, "tool_call_request")], [1, 1]);
}

#[test]
fn server_that_refuses_tools_is_told_of_with_what_to_do() {
    let refused = Reply::json(400, r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#);
    let server = server(vec![refused]);
    let sandbox = Sandbox::new().with_server(&server);
    let hints =
        ["llamacpp/m takes no tools", "`jp query -T`", "providers.llm.llamacpp.models.\"m\".tools = false"];
    sandbox.jp(&["query", "Look."]).failed(1, &hints);
}
