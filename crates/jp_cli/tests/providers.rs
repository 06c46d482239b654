//! Each provider in its own format: the URL of requests, the key, and the answer.

use serde_json::{Value, json};
use testing::{Reply, Sandbox, Server};

struct Provider {
    name: &'static str,
    path: &'static str,
    variable: &'static str,
    /// The header that carries the key, as a server gets it.
    header: &'static str,
    /// The place of the message in the request.
    words: &'static str,
    stream: &'static str,
    content_type: &'static str,
    usage: (u64, u64),
}

const SSE: &str = "text/event-stream";

const PROVIDERS: [Provider; 5] = [
    Provider {
        name: "anthropic",
        path: "/v1/messages",
        variable: "ANTHROPIC_API_KEY",
        header: "x-api-key: sk-test",
        words: "/messages/0/content/0/text",
        stream: concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":2}}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello.\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        content_type: SSE,
        usage: (12, 3),
    },
    Provider {
        name: "openai",
        path: "/v1/responses",
        variable: "OPENAI_API_KEY",
        header: "authorization: bearer sk-test",
        words: "/input/0/content/0/text",
        stream: concat!(
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n",
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hello.\"}\n\n",
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"usage\":{\"input_tokens\":12,\"output_tokens\":3}}}\n\n",
        ),
        content_type: SSE,
        usage: (12, 3),
    },
    Provider {
        name: "google",
        path: "/v1beta/models/m:streamgeneratecontent?alt=sse",
        variable: "GEMINI_API_KEY",
        header: "x-goog-api-key: sk-test",
        words: "/contents/0/parts/0/text",
        stream: "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Hello.\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":12,\"candidatesTokenCount\":3}}\n\n",
        content_type: SSE,
        usage: (12, 3),
    },
    Provider {
        name: "openrouter",
        path: "/v1/chat/completions",
        variable: "OPENROUTER_API_KEY",
        header: "authorization: bearer sk-test",
        words: "/messages/0/content/0/text",
        stream: "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
        content_type: SSE,
        usage: (12, 3),
    },
    Provider {
        name: "ollama",
        path: "/api/chat",
        variable: "UNUSED",
        header: "content-type: application/json",
        words: "/messages/0/content",
        stream: concat!(
            "{\"message\":{\"role\":\"assistant\",\"content\":\"Hel\"},\"done\":false}\n",
            "{\"message\":{\"role\":\"assistant\",\"content\":\"lo.\"},\"done\":false}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":12,\"eval_count\":3}\n",
        ),
        content_type: "application/x-ndjson",
        usage: (12, 3),
    },
];

impl Provider {
    fn reply(&self) -> Reply {
        let (kind, stream) = (self.content_type, self.stream);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            stream.len()
        );
        Reply::raw(head + stream)
    }
}

#[test]
fn every_provider_is_spoken_to_in_its_own_format() {
    for provider in &PROVIDERS {
        let server = Server::new(vec![provider.reply()]);
        let sandbox = Sandbox::new();
        let name = provider.name;
        let config = format!(
            "[providers.llm.{name}]\nbase_url = \"{}\"\nmodels.m.tools = true\n",
            server.url()
        );
        sandbox.configure(config);
        sandbox.write("a.txt", "attached text");
        let ask = |words: &str, flags: &[&str]| {
            let mut command =
                sandbox.command(&["q", "-m", &format!("{name}/m"), "-a", "a.txt", words]);
            command.args(flags).env(provider.variable, "sk-test");
            testing::run(command).succeeded()
        };
        assert_eq!(ask("What is it?", &[]).stdout, "Hello.\n", "{name}");
        let explained = ask("And now?", &["--explain", "--format", "json"]).stdout;
        ask("And now?", &[]);
        let received = server.received();
        let first: Value = serde_json::from_slice(&received[0].body).unwrap();
        let request_line = received[0].head.lines().next().unwrap();
        assert_eq!(
            request_line,
            format!("post {} http/1.1", provider.path),
            "{name}"
        );
        assert!(
            received[0].head.contains(provider.header),
            "{name}: {}",
            received[0].head
        );
        let words = first
            .pointer(provider.words)
            .and_then(Value::as_str)
            .unwrap_or_default();
        assert!(words.starts_with("What is it?"), "{name}: {first}");
        assert!(
            first.to_string().contains("attached text"),
            "{name}: {first}"
        );
        let second = String::from_utf8_lossy(&received[1].body).into_owned();
        assert!(
            second.contains("Hello.") && second.contains("And now?"),
            "{name}: {second}"
        );
        assert!(
            explained.contains(&format!("\"request\": {second}")),
            "{name}: {explained}"
        );
        assert!(!explained.contains("sk-test"), "{name}: {explained}");
        let usage = &sandbox.events_of("usage")[0];
        assert_eq!(
            (&usage["input"], &usage["output"]),
            (&json!(provider.usage.0), &json!(provider.usage.1)),
            "{name}"
        );
        let stored = std::fs::read_to_string(sandbox.events_path()).unwrap();
        assert!(!stored.contains("sk-test"));
    }
}

#[test]
fn missing_key_fails_before_anything_is_stored() {
    let sandbox = Sandbox::new();
    for (provider, variable) in [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("google", "GEMINI_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
    ] {
        sandbox
            .fail(
                &["q", "-m", &format!("{provider}/m"), "-a", "missing", "x"],
                1,
            )
            .says([variable, "is not set"]);
    }
    assert!(!sandbox.path(".jp/conversations").exists());
}

#[test]
fn workspace_that_names_the_server_gets_no_usual_key() {
    let provider = &PROVIDERS[0];
    let server = Server::new(vec![provider.reply()]);
    let sandbox = Sandbox::new();
    let config = format!(
        "assistant.model.id = \"anthropic/m\"\n[providers.llm.anthropic]\nbase_url = \"{}\"\n",
        server.url()
    );
    sandbox.write(".jp/config.toml", config);
    let mut command = sandbox.command("q x");
    command.env("ANTHROPIC_API_KEY", "sk-test");
    testing::run(command).succeeded();
    assert!(!server.received()[0].head.contains("sk-test"));
}
