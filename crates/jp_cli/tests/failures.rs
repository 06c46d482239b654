//! Refusals of providers: each gives one clear error, and the question stays.

use std::process::Command;

use serde_json::json;
use testing::{Reply, Sandbox, Server, assert_contains, assert_count, assert_lacks};

/// A provider, and how it refuses: status and body.
struct Provider {
    name: &'static str,
    variable: Option<&'static str>,
    answer: (&'static str, &'static str),
    wrong_key: (u16, &'static str),
    unknown_model: (u16, &'static str),
    too_long: (u16, &'static str),
    /// The part of the error about the length.
    length: &'static str,
}

const SSE: &str = "text/event-stream";
const CHAT: (&str, &str) = (
    SSE,
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
);

const PROVIDERS: [Provider; 6] = [
    Provider {
        name: "anthropic",
        variable: Some("ANTHROPIC_API_KEY"),
        answer: (
            SSE,
            concat!(
                "data: {\"type\":\"message_start\",\"message\":{}}\n\n",
                "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hello.\"}}\n\n",
                "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
                "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
                "data: {\"type\":\"message_stop\"}\n\n",
            ),
        ),
        wrong_key: (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
        ),
        unknown_model: (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
        ),
        too_long: (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 191989 tokens > 180000 maximum"}}"#,
        ),
        length: "too long for anthropic/m: it has 191,989 tokens, and the limit is 180,000\n",
    },
    Provider {
        name: "openai",
        variable: Some("OPENAI_API_KEY"),
        answer: (
            SSE,
            concat!(
                "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello.\"}\n\n",
                "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
            ),
        ),
        wrong_key: (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-test.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        ),
        unknown_model: (
            400,
            r#"{"error":{"message":"The requested model 'm' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
        ),
        too_long: (
            200,
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model. Please adjust your input and try again.\"}}}\n\n",
        ),
        length: "too long for openai/m: Your input exceeds the context window of this model.",
    },
    Provider {
        name: "google",
        variable: Some("GEMINI_API_KEY"),
        answer: (
            SSE,
            "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Hello.\"}]},\"finishReason\":\"STOP\"}]}\n\n",
        ),
        wrong_key: (
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        ),
        unknown_model: (
            404,
            r#"{"error":{"code":404,"message":"models/m is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}"#,
        ),
        too_long: (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ),
        length: "too long for google/m: it has 1,200,293 tokens, and the limit is 1,048,576\n",
    },
    Provider {
        name: "openrouter",
        variable: Some("OPENROUTER_API_KEY"),
        answer: CHAT,
        wrong_key: (401, r#"{"error":{"message":"User not found.","code":401}}"#),
        unknown_model: (
            400,
            r#"{"error":{"message":"m is not a valid model ID","code":400}}"#,
        ),
        too_long: (
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input).","code":400}}"#,
        ),
        length: "too long for openrouter/m: it has 42,832 tokens, and the limit is 32,768\n",
    },
    Provider {
        name: "ollama",
        variable: None,
        answer: (
            "application/x-ndjson",
            "{\"message\":{\"role\":\"assistant\",\"content\":\"Hello.\"},\"done\":true,\"done_reason\":\"stop\"}\n",
        ),
        wrong_key: (401, r#"{"error":"unauthorized"}"#),
        unknown_model: (404, r#"{"error":"model 'm' not found"}"#),
        too_long: (
            400,
            r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (351 tokens) exceeds the available context size (256 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":351,\"n_ctx\":256}}"}"#,
        ),
        length: "too long for ollama/m: it has 351 tokens, and the limit is 256\n",
    },
    Provider {
        name: "llamacpp",
        variable: None,
        answer: CHAT,
        wrong_key: (
            401,
            r#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#,
        ),
        unknown_model: (
            400,
            r#"{"error":{"code":400,"message":"model not found","type":"invalid_request_error"}}"#,
        ),
        too_long: (
            500,
            r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
        ),
        length: "too long for llamacpp/m: it has 1,407 tokens, and the limit is 256\n",
    },
];

fn refusal((status, body): (u16, &str)) -> Reply {
    if status == 200 {
        Reply::stream(body)
    } else {
        Reply::json(status, body)
    }
}

impl Provider {
    fn reply(&self) -> Reply {
        let (kind, stream) = self.answer;
        Reply::with_headers(200, &format!("content-type: {kind}\r\n"), stream)
    }

    fn command(&self, sandbox: &Sandbox, arguments: &[&str]) -> Command {
        let mut command = sandbox.command(arguments);
        command.envs(self.variable.map(|variable| (variable, "sk-test")));
        command
    }

    /// Asks, is refused with these words, and asks again without words.
    fn is_refused(&self, how: (u16, &str), words: &[&str]) -> String {
        let name = self.name;
        let server = Server::new(vec![refusal(how), self.reply()]);
        let sandbox = Sandbox::new();
        let config = format!(
            "[providers.llm.{name}]\nbase_url = \"{}\"\nmodels.m.tools = true\n",
            server.url()
        );
        sandbox.configure(config);
        sandbox.write("big.txt", "word ".repeat(400));
        let model = format!("{name}/m");
        let ask = self.command(
            &sandbox,
            &["q", "--new", "-m", &model, "-a", "big.txt", "What is it?"],
        );
        let run = testing::run(ask).failed(1).says(words);
        assert_eq!(run.stdout, "", "{name}");
        assert_eq!(
            run.stderr.matches("error: ").count(),
            1,
            "{name}: {}",
            run.stderr
        );
        assert!(
            !run.stderr.contains("retry") && !run.stderr.contains("sk-test"),
            "{name}: {}",
            run.stderr
        );
        assert_contains(
            &run.stderr,
            "hint: the message is kept: `jp query` without a message sends it again.",
        );
        assert!(
            sandbox
                .events()
                .iter()
                .any(|event| event["content"] == "What is it?"),
            "{name}"
        );
        let again = testing::run(self.command(&sandbox, &["q"])).succeeded();
        assert_eq!(again.stdout, "Hello.\n", "{name}");
        let [first, second] = &server.received()[..] else {
            panic!("{name}: two requests")
        };
        assert_eq!(first.body, second.body, "{name}");
        run.stderr.replace(server.url(), "URL")
    }
}

#[test]
fn wrong_key_names_where_it_came_from() {
    for provider in &PROVIDERS {
        let said = match provider.variable {
            Some(variable) => format!(" rejects the API key from {variable}: "),
            None => " requires an API key, and jp sent none: ".to_owned(),
        };
        provider.is_refused(provider.wrong_key, &[provider.name, &said]);
    }
}

#[test]
fn wrong_key_of_a_command_names_the_command() {
    let server = Server::new(vec![refusal(PROVIDERS[0].wrong_key)]);
    let sandbox = Sandbox::new();
    let config = format!(
        "[providers.llm.anthropic]\nbase_url = \"{}\"\napi_key_command = \"echo sk-secret\"\n",
        server.url()
    );
    sandbox.configure(config);
    let run = sandbox.fail("q -m anthropic/m x", 1).says([
        "rejects the API key from the command in providers.llm.anthropic.api_key_command: ",
    ]);
    assert_lacks(&run.stderr, "sk-secret");
}

#[test]
fn unknown_model_is_named_with_its_provider() {
    for provider in &PROVIDERS {
        let words = [provider.name, " has no model `m`: ", "`jp model ls`"];
        let said = provider.is_refused(provider.unknown_model, &words);
        assert_eq!(
            said.contains("`ollama pull m`"),
            provider.name == "ollama",
            "{said}"
        );
    }
}

#[test]
fn too_long_request_says_what_is_largest_in_it() {
    for provider in &PROVIDERS {
        let words = [
            provider.length,
            "big.txt, turn 1",
            "`jp query --new`",
            "--model PROVIDER/NAME",
        ];
        provider.is_refused(provider.too_long, &words);
    }
    insta::assert_snapshot!(PROVIDERS[5].is_refused(PROVIDERS[5].too_long, &[]), @r"
    error: the request is too long for llamacpp/m: it has 1,407 tokens, and the limit is 256
      about 529 tokens: big.txt, turn 1
      about 3 tokens: the message, turn 1
    hint: a conversation keeps what you sent. `jp query --new` starts one without big.txt; `--attach '!PATTERN'` excludes files of a directory.
    hint: `llama-server --ctx-size N` raises the limit.
    hint: `jp query --model PROVIDER/NAME` without a message asks a model that accepts more.
    hint: the message is kept: `jp query` without a message sends it again.
    ");
}

#[test]
fn what_is_large_in_the_history_can_be_left_behind() {
    let provider = &PROVIDERS[0];
    let server = Server::new(vec![
        provider.reply(),
        refusal(provider.too_long),
        provider.reply(),
    ]);
    let sandbox = Sandbox::new();
    let config = format!(
        "[providers.llm.anthropic]\nbase_url = \"{}\"\n",
        server.url()
    );
    sandbox.configure(config);
    sandbox.write("big.txt", "word ".repeat(400));
    let jp = |arguments: &[&str]| testing::run(provider.command(&sandbox, arguments));
    jp(&["q", "--new", "-m", "anthropic/m", "-a", "big.txt", "one"]).succeeded();
    jp(&["q", "two"]).failed(1).says(["  about 529 tokens: big.txt, turn 1\n",
            "`jp conversation fork --turns 1` continues without turn 1; `jp attachment rm file:big.txt` then leaves out big.txt."]);
    jp(&["c", "fork", "--turns", "1"]).succeeded();
    jp(&["a", "rm", "file:big.txt"]).succeeded();
    assert_eq!(jp(&["q"]).succeeded().stdout, "Hello.\n");
    let request = String::from_utf8(server.received().pop().unwrap().body).unwrap();
    assert_contains(&request, "two");
    assert_lacks(&request, "word word");
}

#[test]
fn missing_key_stores_nothing_at_all() {
    for provider in &PROVIDERS {
        let Some(variable) = provider.variable else {
            continue;
        };
        let sandbox = Sandbox::new();
        sandbox.write("a.txt", "abc");
        let before = sandbox.files(".jp");
        sandbox
            .fail(
                &[
                    "q",
                    "-m",
                    &format!("{}/m", provider.name),
                    "-a",
                    "a.txt",
                    "x",
                ],
                1,
            )
            .says([&format!(
                "the API key of {} is missing: {variable} is not set",
                provider.name
            )]);
        assert_eq!(sandbox.files(".jp"), before);
        assert!(!sandbox.path(".jp/conversations").exists());
    }
}

#[test]
fn of_many_things_that_a_model_is_not_shown_ten_are_named() {
    let (sandbox, _) = Sandbox::with_model(testing::answering("Yes."));
    for number in 0..15 {
        sandbox.write(&format!("raw/{number}.zip"), b"PK\x05\x06\0\0\0\0");
    }
    let run = sandbox.run("q --new -a raw x");
    assert_count(&run.stderr, "is not shown", 10);
    assert_contains(&run.stderr, "warning: 5 more are not shown");
}

#[cfg(unix)]
#[test]
fn what_is_not_utf_8_is_named() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let sandbox = Sandbox::new();
    let name = OsStr::from_bytes(b"bad\xff.txt");
    let arguments = [OsStr::new("q"), OsStr::new("-a"), name, OsStr::new("x")];
    sandbox
        .fail(&arguments, 2)
        .says([r#"the argument "bad\xFF.txt" is not UTF-8; rename a file of that name"#]);
    sandbox
        .fail(&[OsStr::new("init"), name], 1)
        .says([r#"bad\xFF.txt" as a workspace: its path is not UTF-8"#]);
    assert!(!sandbox.path("").join(name).exists());
}

#[test]
fn base_url_that_is_none_says_where_it_was_set() {
    let sandbox = Sandbox::new();
    let setting = "providers.llm.work.base_url";
    let asked = [
        "q",
        "-m",
        "work/m",
        "-c",
        &format!("{setting}=localhost:1"),
        "x",
    ];
    sandbox
        .fail(&asked, 1)
        .says(["it does not start with http://", setting]);
}

#[test]
fn image_that_a_model_cannot_take_is_reported_to_both_sides() {
    let provider = &PROVIDERS[4];
    let server = Server::routed(vec![
        (
            "/api/show",
            Reply::json(200, r#"{"capabilities":["completion"]}"#),
        ),
        ("/api/chat", Reply::json(400, "{}")),
    ]);
    let sandbox = Sandbox::new();
    let config = format!(
        "[providers.llm.{}]\nbase_url = \"{}\"\n",
        provider.name,
        server.url()
    );
    sandbox.configure(config);
    sandbox.write("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\0");
    let run = sandbox.jp("q -m ollama/m -a logo.png 'What is it?'");
    let run = run
        .failed(1)
        .says(["logo.png is not shown: this model does not accept image/png"]);
    let (note, error) = (run.stderr.find("is not shown"), run.stderr.find("error:"));
    assert!(
        note < error,
        "the note comes before anything is sent: {}",
        run.stderr
    );
    let request = &testing::requests_to(&server, "/api/chat")[0];
    assert_eq!(request["messages"][0]["images"], json!(null));
    let content = request["messages"][0]["content"].as_str().unwrap();
    assert_contains(
        content,
        "[not shown: this model does not accept image/png; 12 bytes]",
    );
}
