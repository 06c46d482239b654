//! Available models, their capabilities, and the sources of these.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use serde_json::{Value, json};
use testing::{
    Reply, Sandbox, Server, UNUSED_URL, assert_contains, assert_lacks, column, items, requests,
    requests_to,
};

const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn llamacpp(vision: bool) -> Server {
    let properties = json!({
        "modalities": {"vision": vision},
        "chat_template_caps": {"supports_tools": false},
        "default_generation_settings": {"n_ctx": 4096},
    });
    Server::routed(vec![
        (
            "/v1/models",
            Reply::json(200, r#"{"data":[{"id":"m","meta":{"n_ctx_train":8192}}]}"#),
        ),
        ("/props", Reply::json(200, &properties.to_string())),
        ("/v1/chat/completions", Reply::stream(ANSWER)),
    ])
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
    sandbox.configure(config);
    let mut command = sandbox.command("model ls");
    command.env("ANTHROPIC_API_KEY", "sk-test");
    let run = testing::run(command).succeeded();
    insta::assert_snapshot!(run.stdout, @r"
       model               tokens   accepts                                      source                                  alias
       anthropic/claude-x  200,000  text, images, binary results, schema, tools  configuration, provider, documentation  x
    *  llamacpp/m          4,096    text, schema, tools                          configuration, provider, assumed
    ");
    assert_contains(
        &run.stderr,
        "warning: the models of gone are not listed: failed to reach gone at",
    );
    assert_contains(&run.stderr, "jp uses llamacpp/m");
    assert!(hosted.received()[0].head.contains("x-api-key: sk-test"));

    let mut command = sandbox.command("model ls anthropic -F json");
    command.env("ANTHROPIC_API_KEY", "sk-test");
    let listed: Value = serde_json::from_str(&testing::run(command).succeeded().stdout).unwrap();
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
    sandbox
        .fail("model ls llamacpp", 1)
        .says(["failed to reach llamacpp", "connection refused"]);
    sandbox
        .fail("model ls nobody", 1)
        .says(["unknown provider `nobody`"]);
    let run = sandbox
        .fail("model ls anthropic", 1)
        .says(["ANTHROPIC_API_KEY is not set"]);
    assert_eq!(run.stdout, "");
}

#[test]
fn model_that_answers_is_listed_even_if_its_provider_does_not_list_it() {
    let (sandbox, _) = Sandbox::with_model(llamacpp(false));
    let run = sandbox.run("model ls -c assistant.model.id=llamacpp/other");
    assert!(
        run.stdout
            .lines()
            .any(|line| line.starts_with("*  llamacpp/other ")),
        "{}",
        run.stdout
    );
    assert_contains(
        &run.stderr,
        "jp uses llamacpp/other, but its provider does not list it",
    );
}

#[test]
fn image_goes_to_a_model_that_takes_it_or_a_note_says_why_not() {
    for (vision, setting, is_sent) in [
        (true, None, true),
        (false, None, false),
        (
            false,
            Some("providers.llm.llamacpp.models.m.images=true"),
            true,
        ),
        (
            true,
            Some("providers.llm.llamacpp.models.m.images=false"),
            false,
        ),
    ] {
        let (sandbox, server) = Sandbox::with_model(llamacpp(vision));
        sandbox.write("shot.png", PNG);
        let setting: Vec<_> = setting
            .into_iter()
            .flat_map(|setting| ["-c", setting])
            .collect();
        let query = [&["query", "--new", "-a", "shot.png", "See?"], &setting[..]].concat();
        let note = "shot.png is not shown: this model does not accept image/png";

        let explained = sandbox.run(&[&query[..], &["--explain"]].concat());
        assert_eq!(
            explained.stderr.contains(note),
            !is_sent,
            "{}",
            explained.stderr
        );
        assert!(requests(&server).is_empty());
        let document = sandbox.json(&[&query[..], &["--explain"]].concat());
        let noted = items(&document["notes"]);
        assert_eq!(noted.len(), usize::from(!is_sent), "{noted:?}");
        let delivery = &document["turns"][0]["blocks"][1]["delivery"];
        assert_eq!(delivery, if is_sent { "full" } else { "note" });

        let run = sandbox.run(&query);
        assert_eq!(run.stderr.contains(note), !is_sent, "{}", run.stderr);
        let body = requests(&server).remove(0).to_string();
        assert_eq!(body.contains("image_url"), is_sent, "{body}");
        assert_contains(&body, "image/png");
        let explained = document["request"].clone();
        assert_eq!(
            explained["messages"].to_string(),
            requests(&server)[0]["messages"].to_string()
        );
    }
}

#[test]
fn model_without_tools_is_warned_of_only_if_a_tool_was_switched_on() {
    let (sandbox, server) = Sandbox::with_model(llamacpp(true));
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
        let warning = "warning: the list of tools is left out: this model does not support tools\n";
        for more in [&[][..], &["--explain"]] {
            let run = sandbox.run(&[&query[..], more].concat());
            assert_eq!(
                run.stderr.contains(warning),
                is_wanted,
                "{flags:?} {more:?}: {}",
                run.stderr
            );
        }
        assert!(requests(&server).pop().unwrap().get("tools").is_none());
    }
}

#[test]
fn what_a_server_said_holds_while_it_does_not_say_it() {
    let is_busy = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&is_busy);
    let (sandbox, server) = Sandbox::with_model(Server::scripted(move |_, path| match path {
        "/v1/chat/completions" => Reply::stream(ANSWER),
        _ if says.load(Relaxed) => Reply::hang(),
        "/props" => Reply::json(200, r#"{"modalities":{"vision":false}}"#),
        _ => Reply::json(404, "{}"),
    }));
    sandbox.write("shot.png", PNG);
    sandbox.run("query --new -a shot.png See?");
    is_busy.store(true, Relaxed);
    let run = sandbox.run("query -v 'And now?'");
    assert_contains(
        &run.stderr,
        "llamacpp did not report the model's capabilities",
    );
    let messages: Vec<_> = requests(&server)
        .iter()
        .map(|body| body["messages"][0].clone())
        .collect();
    assert_contains(messages[0].to_string(), "[not shown: this model");
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
        sandbox.run(&["query", "-m", "openai/gpt-5", "-c", &url, words]);
    }
    let keys = column(&requests_to(&server, ""), "prompt_cache_key");
    let directory = sandbox.conversation();
    let id = testing::conversation_id(&directory);
    assert_eq!(keys, [json!(format!("jp-{id}")), json!(format!("jp-{id}"))]);
}

#[test]
fn request_that_is_longer_than_the_model_takes_is_told_of_before_it_is_sent() {
    let (sandbox, _) = Sandbox::with_model(llamacpp(false));
    sandbox.write("long.txt", "word ".repeat(1000));
    let limit = "providers.llm.llamacpp.models.m.context_tokens=1000";
    for explain in [&["--explain"][..], &[]] {
        let query = [
            &["query", "--new", "-a", "long.txt", "-c", limit, "See?"],
            explain,
        ]
        .concat();
        let run = sandbox.run(&query);
        assert_contains(&run.stderr, "tokens, but the model accepts at most 1,000");
    }
}

#[test]
fn anthropic_gets_no_larger_limit_than_its_model_has() {
    let stream = "data: {\"type\":\"message_stop\"}\n\n";
    let server = Server::routed(vec![
        (
            "/v1/models/claude-x",
            Reply::json(200, r#"{"id":"claude-x","max_tokens":8192}"#),
        ),
        ("/v1/messages", Reply::stream(stream)),
    ]);
    let sandbox = Sandbox::new();
    sandbox.configure(format!(
        "[providers.llm.anthropic]\nbase_url = \"{}\"\n",
        server.url()
    ));
    sandbox.write("shot.png", PNG);
    for flags in [&["-a", "shot.png"][..], &[]] {
        sandbox.jp(&[&["query", "-m", "anthropic/claude-x", "See?"], flags].concat());
    }
    let received = server.received();
    let bodies = received
        .iter()
        .filter(|request| request.head.starts_with("post /v1/messages"));
    let limits: Vec<_> = bodies
        .map(|request| {
            serde_json::from_slice::<Value>(&request.body).unwrap()["max_tokens"].clone()
        })
        .collect();
    assert_eq!(limits, [8192, 8192]);
}

#[test]
fn key_that_no_header_takes_is_told_before_anything_is_stored() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("query -m openai/m x");
    command.env("OPENAI_API_KEY", "sk-a\nb");
    let run = testing::run(command)
        .failed(1)
        .says(["invalid API key of openai in OPENAI_API_KEY"]);
    assert_lacks(&run.stderr, "sk-a");
    assert!(!sandbox.path(".jp/conversations").exists());
}

#[test]
fn workspace_names_no_secret_but_an_api_key() {
    let sandbox = Sandbox::new();
    sandbox.write(
        ".jp/config.toml",
        "[providers.llm.openrouter]\napi_key_env = \"AWS_SECRET_ACCESS_KEY\"\n",
    );
    sandbox
        .fail("query -m openrouter/a/b x", 1)
        .says(["names AWS_SECRET_ACCESS_KEY"]);
    assert!(!sandbox.path(".jp/conversations").exists());
}

/// The file that no other server than the user's may receive.
const ATTACHED: &str = "what is attached";

/// Asks a model about an attached file, with keys in the environment.
fn ask(sandbox: &Sandbox, model: &[&str]) -> testing::Run {
    sandbox.write("a.txt", ATTACHED);
    let mut command =
        sandbox.command(&[&["q", "--new", "-a", "a.txt"], model, &["What is it?"]].concat());
    for variable in ["ANTHROPIC_API_KEY", "WORK_API_KEY", "OTHER_API_KEY"] {
        command.env(variable, format!("sk-{variable}"));
    }
    testing::run(command)
}

#[test]
fn workspace_redirects_no_model_that_the_user_names() {
    let (own, other) = (testing::answering("Yes."), testing::answering("No."));
    let sandbox = Sandbox::new();
    sandbox.configure(format!("[providers.llm.work]\nbase_url = '{}'\nmodels.m.tools = true\n[providers.aliases]\nfast = 'work/m'\n", own.url()));
    sandbox.write(
        ".jp/config.toml",
        format!(
            "[providers.llm.other]\nbase_url = '{}'\nmodels.m.tools = true\n\
             [providers.llm.work]\nbase_url = '{0}'\n\
             [providers.aliases]\nfast = 'other/m'\n'work/m' = 'other/m'\n",
            other.url()
        ),
    );
    for model in ["work/m", "fast"] {
        let run = ask(&sandbox, &["--model", model]).succeeded();
        assert_eq!(run.stdout, "Yes.\n", "{model}: {}", run.stderr);
        for words in [
            "providers.aliases.'work/m' in .jp/config.toml is ignored",
            "hint: rename it",
        ] {
            assert_contains(&run.stderr, words);
        }
    }
    assert_eq!(
        other.received().len(),
        0,
        "nothing was sent to the workspace's server"
    );
    assert_contains(String::from_utf8_lossy(&own.received()[0].body), ATTACHED);
}

#[test]
fn alias_that_reads_as_a_model_is_ignored_with_a_warning() {
    let (own, other) = (testing::answering("Yes."), testing::answering("No."));
    let sandbox = Sandbox::new();
    sandbox.configure(format!(
        "[providers.llm.work]\nbase_url = '{}'\nmodels.m.tools = true\n\
             [providers.llm.other]\nbase_url = '{}'\nmodels.m.tools = true\n\
             [providers.aliases]\n'work/m' = 'other/m'\n'old/x' = 'other/m'\n",
        own.url(),
        other.url()
    ));
    let run = ask(&sandbox, &["--model", "work/m"]).succeeded();
    assert_eq!(run.stdout, "Yes.\n", "{}", run.stderr);
    for words in [
        "providers.aliases.'work/m' in ~/.config/jp/config.toml is ignored",
        "providers.aliases.'old/x' in ~/.config/jp/config.toml is ignored",
        "can't contain a `/`",
        "hint: rename it",
    ] {
        assert_contains(&run.stderr, words);
    }
}

#[test]
fn ignored_alias_is_named_by_the_key_that_the_user_wrote() {
    let (sandbox, _) = Sandbox::with_model(testing::answering("Yes."));
    let settings = [
        (
            "[providers.llm.aliases]\n'a/b' = 'llamacpp/m'\n",
            "providers.llm.aliases.'a/b'",
        ),
        (
            "[providers.aliases]\n'a/b' = 'llamacpp/m'\n",
            "providers.aliases.'a/b'",
        ),
    ];
    for (config, key) in settings {
        sandbox.configure(config);
        let run = ask(&sandbox, &[]).succeeded();
        let warning = format!("warning: {key} in ~/.config/jp/config.toml is ignored");
        assert_contains(&run.stderr, &warning);
    }
}

#[test]
fn workspace_does_not_move_a_provider_that_jp_knows() {
    let other = testing::answering("No.");
    let sandbox = Sandbox::new();
    let moved = format!("[providers.llm.anthropic]\nbase_url = '{}'\n", other.url());
    sandbox.write(".jp/config.toml", &moved);
    sandbox.write("a.txt", ATTACHED);
    let explicit = [
        "q",
        "--new",
        "-a",
        "a.txt",
        "--model",
        "anthropic/claude-x",
        "What is it?",
    ];
    // Without a key the provider's own server is not asked either.
    let words = [
        "ANTHROPIC_API_KEY is not set",
        "hint: providers.llm.anthropic.base_url in .jp/config.toml is ignored",
        "~/.config/jp/config.toml",
    ];
    sandbox.fail(&explicit, 1).says(words);
    sandbox.fail("model ls anthropic", 1).says(words);
    sandbox.configure("assistant.model.id = 'anthropic/claude-x'\n");
    sandbox
        .fail("q --new -a a.txt 'What is it?'", 1)
        .says(words);
    assert_eq!(other.received().len(), 0);
}

#[test]
fn workspace_takes_no_name_that_differs_from_a_known_providers_only_in_case() {
    let (own, other) = (testing::answering("Yes."), testing::answering("No."));
    let sandbox = Sandbox::new();
    sandbox.configure(format!(
        "[providers.llm.work]\nbase_url = '{}'\nmodels.m.tools = true\n",
        own.url()
    ));
    let provider = |name: &str, url: &str| {
        format!("[providers.llm.{name}]\nbase_url = '{url}'\nmodels.m.tools = true\n")
    };
    for (name, known) in [("Anthropic", "anthropic"), ("WORK", "work")] {
        sandbox.write(".jp/config.toml", provider(name, other.url()));
        let said = format!("providers.llm.{name}.base_url in .jp/config.toml is ignored");
        let words = [
            &*format!("unknown provider `{name}`"),
            &said,
            &format!("`{known}`"),
        ];
        let refused = ask(&sandbox, &["--model", &format!("{name}/m")])
            .failed(1)
            .says(words);
        assert_lacks(
            &refused.stderr,
            format!("set providers.llm.{name}.base_url"),
        );
        assert_contains(&refused.stderr, format!("hint: use `--model {known}/m`"));
    }
    // Nor if the workspace chooses the model, too.
    let chosen = format!(
        "assistant.model.id = 'WORK/m'\n{}",
        provider("WORK", other.url())
    );
    sandbox.write(".jp/config.toml", chosen);
    ask(&sandbox, &[])
        .failed(1)
        .says(["providers.llm.WORK.base_url in .jp/config.toml is ignored"]);
    assert_eq!(other.received().len(), 0);
    // The user may use any name.
    sandbox.write(".jp/config.toml", "");
    sandbox.configure(provider("Anthropic", own.url()));
    assert_eq!(
        ask(&sandbox, &["--model", "Anthropic/m"])
            .succeeded()
            .stdout,
        "Yes.\n"
    );
}

#[test]
fn workspace_chooses_no_key_of_the_user_for_a_provider() {
    let server = testing::answering("Yes.");
    let sandbox = Sandbox::new();
    let work = format!(
        "assistant.model.id = 'work/m'\n[providers.llm.work]\nbase_url = '{}'\nmodels.m.tools = true\n",
        server.url()
    );
    sandbox.configure(format!(
            "{work}[providers.llm.else]\nbase_url = 'http://127.0.0.1:9'\napi_key_env = 'OTHER_API_KEY'\n"
        ));
    for (variable, owner) in [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GOOGLE_API_KEY", "google"),
        ("OTHER_API_KEY", "else"),
    ] {
        sandbox.write(
            ".jp/config.toml",
            format!("providers.llm.work.api_key_env = '{variable}'\n"),
        );
        let words = format!("providers.llm.work.api_key_env in .jp/config.toml names {variable}");
        ask(&sandbox, &[]).failed(1).says([
            &words,
            &format!("the key of {owner}"),
            "hint: set it in your own",
        ]);
    }
    assert_eq!(server.received().len(), 0);

    sandbox.write(
        ".jp/config.toml",
        "providers.llm.work.api_key_env = 'WORK_API_KEY'\n",
    );
    let run = ask(&sandbox, &[]).succeeded();
    assert_contains(
        &run.stderr,
        "providers.llm.work.api_key_env in .jp/config.toml is ignored",
    );
    assert_lacks(&server.received()[0].head, "sk-");
}

#[test]
fn dot_in_the_name_of_a_workspaces_provider_gets_it_no_key() {
    let server = testing::answering("Yes.");
    let sandbox = Sandbox::new();
    let config = |variable: &str| {
        format!(
            "assistant.model.id = 'a.b/m'\n[providers.llm.'a.b']\nbase_url = '{}'\napi_key_env = '{variable}'\n",
            server.url()
        )
    };
    sandbox.write(".jp/config.toml", config("ANTHROPIC_API_KEY"));
    ask(&sandbox, &[]).failed(1).says([
        "providers.llm.'a.b'.api_key_env in .jp/config.toml",
        "the key of anthropic",
    ]);
    sandbox.write(".jp/config.toml", config("WORK_API_KEY"));
    ask(&sandbox, &[])
        .failed(1)
        .says(["providers.llm.'a.b'.base_url in .jp/config.toml gets no API key"]);
    assert_eq!(server.received().len(), 0);
}

#[test]
fn history_sets_nothing_of_a_provider() {
    let (own, other) = (testing::answering("Yes."), testing::answering("No."));
    let sandbox = Sandbox::new();
    let work = format!(
        "assistant.model.id = 'work/m'\n[providers.llm.work]\nbase_url = '{}'\nmodels.m.tools = true\n",
        own.url()
    );
    sandbox.configure(work);
    ask(&sandbox, &[]).succeeded();
    let server = json!({"base_url": other.url(), "api_key_env": "ANTHROPIC_API_KEY", "models": {"m": {"tools": false}}});
    let delta = json!({
        "assistant": {"model": {"id": "work/m"}},
        "providers": {"llm": {"work": server, "anthropic": server, "aliases": {"work/m": "anthropic/m"}}, "aliases": {"work/m": "anthropic/m"}},
    });
    sandbox.prepend_delta(&delta);
    let mut command = sandbox.command("q -a a.txt 'And now?'");
    command.env("ANTHROPIC_API_KEY", "sk-test");
    assert_eq!(testing::run(command).succeeded().stdout, "Yes.\n");
    assert_eq!((own.received().len(), other.received().len()), (2, 0));
    assert!(!own.received()[1].head.contains("sk-test"));
}
