//! The wire formats of all providers: what a model streams that says something or reads files.

use serde_json::{Value, json};

/// A provider's wire format: where its requests go and what its messages are called.
pub struct Wire {
    /// The provider's name.
    pub provider: &'static str,
    /// The path of its requests, or how it starts.
    pub path: &'static str,
    /// The environment variable of its key.
    pub variable: &'static str,
    /// The field of a request that holds the messages.
    pub messages: &'static str,
    /// Makes the stream of an answer.
    pub says: fn(&str) -> String,
    /// Makes the stream of calls of `read_file`.
    pub reads: fn(&[Value]) -> String,
}

/// All wire formats.
pub const WIRES: [Wire; 6] = [
    Wire {
        provider: "anthropic",
        path: "/v1/messages",
        variable: "ANTHROPIC_API_KEY",
        messages: "messages",
        says: |words| anthropic(&[json!({"type": "text", "text": words})]),
        reads: |reads| {
            let call = |(index, input): (usize, &Value)| json!({"type": "tool_use", "id": format!("call_{index}"), "name": "read_file", "input": input});
            anthropic(&reads.iter().enumerate().map(call).collect::<Vec<_>>())
        },
    },
    Wire {
        provider: "openai",
        path: "/v1/responses",
        variable: "OPENAI_API_KEY",
        messages: "input",
        says: |words| {
            responses(&[
                json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": words}]}),
            ])
        },
        reads: |reads| {
            let call = |(index, input): (usize, &Value)| json!({"type": "function_call", "id": format!("f{index}"), "call_id": format!("call_{index}"), "name": "read_file", "arguments": input.to_string()});
            responses(&reads.iter().enumerate().map(call).collect::<Vec<_>>())
        },
    },
    Wire {
        provider: "google",
        path: "/v1beta/models/m:stream",
        variable: "GEMINI_API_KEY",
        messages: "contents",
        says: |words| gemini(&[json!({"text": words})]),
        reads: |reads| {
            let call =
                |input: &Value| json!({"functionCall": {"name": "read_file", "args": input}});
            gemini(&reads.iter().map(call).collect::<Vec<_>>())
        },
    },
    Wire {
        provider: "openrouter",
        path: "/v1/chat/completions",
        variable: "OPENROUTER_API_KEY",
        messages: "messages",
        says: |words| chat(&json!({"content": words}), "stop"),
        reads: chat_reads,
    },
    Wire {
        provider: "llamacpp",
        path: "/v1/chat/completions",
        variable: "UNUSED",
        messages: "messages",
        says: |words| chat(&json!({"content": words}), "stop"),
        reads: chat_reads,
    },
    Wire {
        provider: "ollama",
        path: "/api/chat",
        variable: "UNUSED",
        messages: "messages",
        says: |words| ollama(&json!({"role": "assistant", "content": words})),
        reads: |reads| {
            let call =
                |input: &Value| json!({"function": {"name": "read_file", "arguments": input}});
            let calls: Vec<_> = reads.iter().map(call).collect();
            ollama(&json!({"role": "assistant", "content": "", "tool_calls": calls}))
        },
    },
];

/// Writes an event of a stream whose events have a type.
fn typed(event: &Value) -> String {
    format!(
        "event: {}\ndata: {event}\n\n",
        event["type"].as_str().unwrap()
    )
}

fn anthropic(blocks: &[Value]) -> String {
    let mut stream =
        typed(&json!({"type": "message_start", "message": {"usage": {"input_tokens": 10}}}));
    for (index, block) in blocks.iter().enumerate() {
        let mut start = block.clone();
        let delta = match block["text"].as_str() {
            Some(text) => json!({"type": "text_delta", "text": text}),
            None => json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
        };
        match delta["text"].is_string() {
            true => start["text"] = json!(""),
            false => start["input"] = json!({}),
        }
        stream +=
            &typed(&json!({"type": "content_block_start", "index": index, "content_block": start}));
        stream += &typed(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        stream += &typed(&json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if blocks[0]["text"].is_string() {
        "end_turn"
    } else {
        "tool_use"
    };
    stream += &typed(
        &json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}),
    );
    stream + &typed(&json!({"type": "message_stop"}))
}

fn responses(items: &[Value]) -> String {
    let mut stream = typed(&json!({"type": "response.created", "response": {"id": "r"}}));
    for (index, item) in items.iter().enumerate() {
        let mut started = item.clone();
        match item["arguments"].is_string() {
            true => started["arguments"] = json!(""),
            false => started["content"] = json!([]),
        }
        stream += &typed(
            &json!({"type": "response.output_item.added", "output_index": index, "item": started}),
        );
        stream += &match item["arguments"].as_str() {
            Some(arguments) => typed(
                &json!({"type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": index, "delta": arguments}),
            ),
            None => typed(
                &json!({"type": "response.output_text.delta", "item_id": item["id"], "output_index": index, "content_index": 0, "delta": item["content"][0]["text"]}),
            ),
        };
        stream += &typed(
            &json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    let usage = json!({"input_tokens": 12, "output_tokens": 3});
    stream
        + &typed(
            &json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "usage": usage}}),
        )
}

fn gemini(parts: &[Value]) -> String {
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    format!(
        "data: {}\n\n",
        json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 12}})
    )
}

fn chat(delta: &Value, reason: &str) -> String {
    let chunk = json!({"choices": [{"delta": delta, "finish_reason": reason}], "usage": {"prompt_tokens": 12}});
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn chat_reads(reads: &[Value]) -> String {
    let call = |(index, input): (usize, &Value)| json!({"index": index, "id": format!("call_{index}"), "function": {"name": "read_file", "arguments": input.to_string()}});
    chat(
        &json!({"tool_calls": reads.iter().enumerate().map(call).collect::<Vec<_>>()}),
        "tool_calls",
    )
}

fn ollama(message: &Value) -> String {
    let last = json!({"message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 12});
    format!("{}\n{last}\n", json!({"message": message, "done": false}))
}
