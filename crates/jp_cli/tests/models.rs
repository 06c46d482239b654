//! What models there are, what each takes, and who says so.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use jp_llm::testing::{Reply, Server, UNUSED_URL};
use serde_json::{Value, json};
use support::Sandbox;

const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn llamacpp(vision: bool) -> Server {
    let properties = json!({
        "modalities": {"vision": vision},
        "chat_template_caps": {"supports_tools": false},
        "default_generation_settings": {"n_ctx": 4096},
    });
    Server::routed(vec![
        ("/v1/models", Reply::json(200, r#"{"data":[{"id":"m","meta":{"n_ctx_train":8192}}]}"#)),
        ("/props", Reply::json(200, &properties.to_string())),
        ("/v1/chat/completions", Reply::stream(ANSWER)),
    ])
}

/// Returns the bodies of the conversation's requests.
fn sent(server: &Server) -> Vec<Value> {
    let received = server.received().into_iter();
    let queries = received.filter(|request| request.head.starts_with("post /v1/chat/completions"));
    queries.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

#[test]
fn every_provider_that_is_set_up_is_listed_with_what_its_models_take() {
    let local = llamacpp(false);
    let hosted = Server::routed(vec![(
        "/v1/models?limit=1000",
        Reply::json(
            200,
            r#"{"data":[{"id":"claude-x","max_input_tokens":200000,"max_tokens":64000,"capabilities":
                {"image_input":{"supported":true},"pdf_input":{"supported":true},"structured_outputs":{"supported":true}}}]}"#,
        ),
    )]);
    let sandbox = Sandbox::new().with_server(&local);
    let config = format!(
        "[providers.aliases]\nx = \"anthropic/claude-x\"\n[providers.llm.anthropic]\nbase_url = \"{}\"\n\
         [providers.llm.anthropic.models.claude-x]\npdf = false\n[providers.llm.gone]\nbase_url = \"{}\"\n",
        hosted.url(),
        UNUSED_URL,
    );
    sandbox.write("~/.config/jp/config.toml", config);
    let mut command = sandbox.command(&["model", "ls"]);
    command.env("ANTHROPIC_API_KEY", "sk-test");
    let run = support::run(command).succeeded();
    insta::assert_snapshot!(run.stdout, @r"
       model               tokens   takes                                        known from                              alias
       anthropic/claude-x  200,000  text, images, binary results, schema, tools  configuration, provider, documentation  x
    *  llamacpp/m          4,096    text, schema, tools                          configuration, provider, assumed
    ");
    assert!(
        run.stderr.contains("warning: the models of gone are not listed: failed to reach gone at"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("llamacpp/m answers"), "{}", run.stderr);
    assert!(hosted.received()[0].head.contains("x-api-key: sk-test"));

    let mut command = sandbox.command(&["model", "ls", "anthropic", "-F", "json"]);
    command.env("ANTHROPIC_API_KEY", "sk-test");
    let listed: Value = serde_json::from_str(&support::run(command).succeeded().stdout).unwrap();
    assert_eq!(
        listed,
        json!([{
            "id": "anthropic/claude-x", "used": false, "aliases": ["x"], "context_tokens": 200_000, "max_output_tokens": 64_000,
            "takes": {"images": true, "pdf": false, "files": false, "audio": false, "binary_results": true, "schema": true, "tools": true},
            "known_from": ["configuration", "provider", "documentation"],
        }])
    );
}

#[test]
fn provider_that_does_not_answer_is_an_error_if_it_is_asked_for() {
    let sandbox = Sandbox::new().with_url(UNUSED_URL);
    sandbox.jp(&["model", "ls", "llamacpp"]).failed(1, &["failed to reach llamacpp", "connection refused"]);
    sandbox.jp(&["model", "ls", "nobody"]).failed(1, &["nothing is known of the provider `nobody`"]);
    let run = sandbox.jp(&["model", "ls", "anthropic"]).failed(1, &["ANTHROPIC_API_KEY is not set"]);
    assert_eq!(run.stdout, "");
}

#[test]
fn model_that_answers_is_listed_even_if_its_provider_does_not_list_it() {
    let server = llamacpp(false);
    let sandbox = Sandbox::new().with_server(&server);
    let run = sandbox.jp(&["model", "ls", "-c", "assistant.model.id=llamacpp/other"]).succeeded();
    assert!(run.stdout.lines().any(|line| line.starts_with("*  llamacpp/other ")), "{}", run.stdout);
    assert!(
        run.stderr.contains("llamacpp/other would answer, but its provider does not list it"),
        "{}",
        run.stderr
    );
}

#[test]
fn image_goes_to_a_model_that_takes_it_or_a_note_says_why_not() {
    for (vision, setting, is_sent) in [
        (true, None, true),
        (false, None, false),
        (false, Some("providers.llm.llamacpp.models.m.images=true"), true),
        (true, Some("providers.llm.llamacpp.models.m.images=false"), false),
    ] {
        let server = llamacpp(vision);
        let sandbox = Sandbox::new().with_server(&server);
        sandbox.write("shot.png", PNG);
        let setting: Vec<_> = setting.into_iter().flat_map(|setting| ["-c", setting]).collect();
        let query = [&["query", "--new", "-a", "shot.png", "See?"], &setting[..]].concat();
        let note = "shot.png is not shown: this model does not take image/png";

        let explained = sandbox.jp(&[&query[..], &["--explain"]].concat()).succeeded();
        assert_eq!(explained.stderr.contains(note), !is_sent, "{}", explained.stderr);
        assert!(sent(&server).is_empty());
        let document = sandbox.json(&[&query[..], &["--explain"]].concat());
        let noted = document["notes"].as_array().unwrap();
        assert_eq!(noted.len(), usize::from(!is_sent), "{noted:?}");
        let delivery = &document["turns"][0]["blocks"][1]["delivery"];
        assert_eq!(delivery, if is_sent { "full" } else { "note" });

        let run = sandbox.jp(&query).succeeded();
        assert_eq!(run.stderr.contains(note), !is_sent, "{}", run.stderr);
        let body = sent(&server).remove(0).to_string();
        assert_eq!(body.contains("image_url"), is_sent, "{body}");
        assert!(body.contains("image/png"), "{body}");
        let explained = document["request"].clone();
        assert_eq!(explained["messages"].to_string(), sent(&server)[0]["messages"].to_string());
    }
}

#[test]
fn model_without_tools_is_warned_of_only_if_a_tool_was_switched_on() {
    let server = llamacpp(true);
    let sandbox = Sandbox::new().with_server(&server);
    let own = "conversation.tools.own={command='echo'}";
    for (flags, is_wanted) in [
        (&[][..], false),
        (&["-T=list_files"], false),
        (&["-c", "conversation.tools.read_file.enable=false"], false),
        (&["-t", "read_file"], true),
        (&["-t", "create_file"], true),
        (&["-c", "conversation.tools.read_file.enable=true"], true),
        (&["-c", own], true),
    ] {
        let lacks = ["-c", "providers.llm.llamacpp.models.m.tools=false"];
        let query = [&["query", "--new", "Hi"], &lacks[..], flags].concat();
        let warning = "warning: the list of tools is left out: this model takes none\n";
        for more in [&[][..], &["--explain"]] {
            let run = sandbox.jp(&[&query[..], more].concat()).succeeded();
            assert_eq!(run.stderr.contains(warning), is_wanted, "{flags:?} {more:?}: {}", run.stderr);
        }
        assert!(sent(&server).pop().unwrap().get("tools").is_none());
    }
}

#[test]
fn what_a_server_said_holds_while_it_does_not_say_it() {
    let is_busy = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&is_busy);
    let server = Server::scripted(move |_, path| match path {
        "/v1/chat/completions" => Reply::stream(ANSWER),
        _ if says.load(Relaxed) => Reply::hang(),
        "/props" => Reply::json(200, r#"{"modalities":{"vision":false}}"#),
        _ => Reply::json(404, "{}"),
    });
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("shot.png", PNG);
    sandbox.jp(&["query", "--new", "-a", "shot.png", "See?"]).succeeded();
    is_busy.store(true, Relaxed);
    let run = sandbox.jp(&["query", "-v", "And now?"]).succeeded();
    assert!(run.stderr.contains("llamacpp did not say what the model takes"), "{}", run.stderr);
    let messages: Vec<_> = sent(&server).iter().map(|body| body["messages"][0].clone()).collect();
    assert!(messages[0].to_string().contains("[not shown: this model"), "{messages:?}");
    assert_eq!(messages[0], messages[1]);
}

#[test]
fn requests_name_their_conversation_to_the_providers_cache() {
    let server = Server::routed(vec![(
        "/v1/responses",
        Reply::stream(concat!(
            "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hello.\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\"}}\n\n",
        )),
    )]);
    let sandbox = Sandbox::new();
    let url = format!("providers.llm.openai.base_url={}", server.url());
    for words in ["One.", "Two."] {
        sandbox.jp(&["query", "-m", "openai/gpt-5", "-c", &url, words]).succeeded();
    }
    let bodies = server.received();
    let keys: Vec<Value> = bodies
        .iter()
        .map(|request| serde_json::from_slice::<Value>(&request.body).unwrap()["prompt_cache_key"].clone())
        .collect();
    let directory = sandbox.conversation();
    let id = directory.file_name().unwrap().to_str().unwrap().split('-').next().unwrap();
    assert_eq!(keys, [json!(format!("jp-{id}")), json!(format!("jp-{id}"))]);
}

#[test]
fn request_that_is_longer_than_the_model_takes_is_told_of_before_it_is_sent() {
    let server = llamacpp(false);
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("long.txt", "word ".repeat(1000));
    let limit = "providers.llm.llamacpp.models.m.context_tokens=1000";
    for explain in [&["--explain"][..], &[]] {
        let query = [&["query", "--new", "-a", "long.txt", "-c", limit, "See?"], explain].concat();
        let run = sandbox.jp(&query).succeeded();
        assert!(run.stderr.contains("tokens, and the model takes 1,000"), "{}", run.stderr);
    }
}

#[test]
fn anthropic_gets_no_larger_limit_than_its_model_has() {
    let stream = "data: {\"type\":\"message_stop\"}\n\n";
    let server = Server::routed(vec![
        ("/v1/models/claude-x", Reply::json(200, r#"{"id":"claude-x","max_tokens":8192}"#)),
        ("/v1/messages", Reply::stream(stream)),
    ]);
    let sandbox = Sandbox::new();
    sandbox.write(
        "~/.config/jp/config.toml",
        format!("[providers.llm.anthropic]\nbase_url = \"{}\"\n", server.url()),
    );
    sandbox.write("shot.png", PNG);
    for flags in [&["-a", "shot.png"][..], &[]] {
        sandbox.jp(&[&["query", "-m", "anthropic/claude-x", "See?"], flags].concat());
    }
    let received = server.received();
    let bodies = received.iter().filter(|request| request.head.starts_with("post /v1/messages"));
    let limits: Vec<_> = bodies
        .map(|request| serde_json::from_slice::<Value>(&request.body).unwrap()["max_tokens"].clone())
        .collect();
    assert_eq!(limits, [8192, 8192]);
}

#[test]
fn key_that_no_header_takes_is_told_before_anything_is_stored() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["query", "-m", "openai/m", "x"]);
    command.env("OPENAI_API_KEY", "sk-a\nb");
    let run = support::run(command).failed(1, &["the API key of openai in OPENAI_API_KEY"]);
    assert!(!run.stderr.contains("sk-a"), "{}", run.stderr);
    assert!(!sandbox.path(".jp/conversations").exists());
}

#[test]
fn workspace_names_no_secret_but_an_api_key() {
    let sandbox = Sandbox::new();
    sandbox.write(".jp/config.toml", "[providers.llm.openrouter]\napi_key_env = \"AWS_SECRET_ACCESS_KEY\"\n");
    sandbox.jp(&["query", "-m", "openrouter/a/b", "x"]).failed(1, &["names AWS_SECRET_ACCESS_KEY"]);
    assert!(!sandbox.path(".jp/conversations").exists());
}
