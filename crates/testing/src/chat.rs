use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde_json::{Value, json};

use crate::{Reply, Server, chunk};

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
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        json!({"index": index, "id": format!("call_{}", index + 1),
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<_> = calls.iter().enumerate().map(call).collect();
    let chunk = json!({"choices": [{"delta": {"tool_calls": calls}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    Reply::stream(&format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
}

/// Returns the results of tools in the last request.
pub fn results(server: &Server) -> Vec<String> {
    let request = last_request(server);
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the JSON body of the last request that a server got.
pub fn last_request(server: &Server) -> Value {
    serde_json::from_slice(&server.received().last().unwrap().body).unwrap()
}

/// Returns the text of the last user message, parts joined.
pub fn last_message(server: &Server) -> String {
    let request = last_request(server);
    let message = request["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => {
            let texts = parts
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
