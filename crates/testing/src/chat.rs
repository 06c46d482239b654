use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde_json::{Value, json};

use crate::{Reply, Server, assert::items, chunk};

/// A server that always answers with these words, and with what they cost.
pub fn answering(words: &str) -> Server {
    Server::new(vec![answer(words)])
}

/// Makes an answer of these words, with what they cost.
pub fn answer(words: &str) -> Reply {
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":40}}}\n\n";
    Reply::stream(&format!("{}{end}{usage}data: [DONE]\n\n", chunk(words)))
}

/// A server that gives each request to the model the next reply, and the last for ever.
pub fn playing(replies: Vec<Reply>) -> Server {
    let count = AtomicUsize::new(0);
    Server::scripted(move |_, path| match path {
        "/v1/chat/completions" => {
            replies[count.fetch_add(1, Relaxed).min(replies.len() - 1)].clone()
        }
        _ => Reply::json(404, "{}"),
    })
}

/// Calls tools: each has a name and its arguments; their ids count from 1.
pub fn calling(calls: &[(&str, Value)]) -> Reply {
    let calls = calls.iter().zip(1..);
    let calls: Vec<_> = calls
        .map(|((name, arguments), number)| (format!("call_{number}"), *name, arguments))
        .collect();
    calling_as("", &calls)
}

/// Says these words and calls tools: each call has an id, a name and its arguments.
pub fn calling_as(words: &str, calls: &[(String, &str, &Value)]) -> Reply {
    let call = |(index, (id, name, arguments)): (usize, &(String, &str, &Value))| {
        json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<_> = calls.iter().enumerate().map(call).collect();
    let chunk = json!({"choices": [{"delta": {"content": words, "tool_calls": calls}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    Reply::stream(&format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
}

/// Makes replies that make one of these calls each, and one that says `Done.`
pub fn calling_in_turn(calls: &[(&str, Value)]) -> Vec<Reply> {
    let replies = calls.iter().map(std::slice::from_ref).map(calling);
    replies.chain([answer("Done.")]).collect()
}

/// Returns the results of tools in the last request.
pub fn results(server: &Server) -> Vec<String> {
    let request = last_request(server);
    let messages = items(&request["messages"]).iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the JSON body of each request to the model.
pub fn requests(server: &Server) -> Vec<Value> {
    requests_to(server, "/v1/chat/completions")
}

/// Returns the JSON body of each POST request whose path starts with `path`.
pub fn requests_to(server: &Server, path: &str) -> Vec<Value> {
    let mut requests = server.received();
    requests.retain(|request| request.head.starts_with(&format!("post {path}")));
    let bodies = requests.iter();
    bodies
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect()
}

/// Returns the JSON body of the last request that a server got.
pub fn last_request(server: &Server) -> Value {
    serde_json::from_slice(&server.received().last().unwrap().body).unwrap()
}

/// Returns the text of the last user message, parts joined.
pub fn last_message(server: &Server) -> String {
    let request = last_request(server);
    content_text(&items(&request["messages"]).last().unwrap()["content"])
}

/// Returns the text of a message's content, parts joined.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => {
            let texts = items(parts).iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
