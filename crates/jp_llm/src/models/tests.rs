use super::*;
use crate::BaseUrl;
use testing::{Reply, Server, UNUSED_URL, block_on};

const LIMIT: Duration = Duration::from_secs(2);

fn endpoint(server: &Server, provider: &str, model: &str) -> Endpoint {
    Endpoint::new(provider, BaseUrl::parse(server.url()).unwrap(), model)
}

/// Writes a list, a line a model.
fn lines(server: &Server, provider: &str) -> String {
    let listed = block_on(list(&endpoint(server, provider, ""), LIMIT)).unwrap();
    let line = |model: Listed| format!("{} {}", model.name, json!(model.facts));
    listed.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn serve(path: &'static str, body: &str) -> Server {
    Server::routed(vec![(path, Reply::json(200, body))])
}

const ANTHROPIC: &str = r#"{"id":"claude-x","display_name":"X","max_input_tokens":200000,"max_tokens":64000,
    "capabilities":{"image_input":{"supported":true},"pdf_input":{"supported":false},"structured_outputs":{"supported":true}}}"#;

#[test]
fn anthropic_says_what_each_model_takes() {
    let list = format!(r#"{{"data":[{ANTHROPIC},{{"id":"claude-old","capabilities":null}}]}}"#);
    insta::assert_snapshot!(lines(&serve("/v1/models?limit=1000", &list), "anthropic"), @r#"
    claude-x {"images":true,"pdf":false,"schema":true,"context_tokens":200000,"max_output_tokens":64000}
    claude-old {}
    "#);
    let server = serve("/v1/models/claude-x", ANTHROPIC);
    let facts = block_on(ask(&endpoint(&server, "anthropic", "claude-x"), LIMIT)).unwrap();
    assert_eq!((facts.images, facts.pdf), (Some(true), Some(false)));
}

#[test]
fn gemini_lists_what_generates_content() {
    let list = r#"{"models":[
        {"name":"models/gemini-3-pro","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"]},
        {"name":"models/embedding-1","supportedGenerationMethods":["embedContent"]}]}"#;
    insta::assert_snapshot!(lines(&serve("/v1beta/models?pagesize=1000", list), "google"), @r#"gemini-3-pro {"context_tokens":1048576,"max_output_tokens":65536}"#);
}

#[test]
fn openrouter_describes_its_models() {
    let list = r#"{"data":[{"id":"a/b","context_length":1000,"top_provider":{"max_completion_tokens":100},
        "architecture":{"input_modalities":["text","image","audio"]},"supported_parameters":["tools","structured_outputs"]},
        {"id":"c/d","architecture":{"input_modalities":["text"]},"supported_parameters":["temperature"]}]}"#;
    insta::assert_snapshot!(lines(&serve("/v1/models", list), "openrouter"), @r#"
    a/b {"images":true,"audio":true,"schema":true,"tools":true,"context_tokens":1000,"max_output_tokens":100}
    c/d {"images":false,"audio":false,"schema":false,"tools":false}
    "#);
    for (model, expected) in [
        (
            r#"{"data":{"architecture":{"input_modalities":["text","image"]},"endpoints":[
                {"context_length":10,"supported_parameters":["tools"]},
                {"context_length":30,"supported_parameters":["structured_outputs"]}]}}"#,
            r#"{"images":true,"audio":false,"schema":true,"tools":true,"context_tokens":30}"#,
        ),
        ("{}", "{}"),
    ] {
        let server = serve("/v1/models/a/b/endpoints", model);
        let facts = block_on(ask(&endpoint(&server, "openrouter", "a/b"), LIMIT)).unwrap();
        assert_eq!(json!(facts).to_string(), expected);
    }
}

#[test]
fn openai_names_its_models() {
    let server = serve(
        "/v1/models",
        r#"{"data":[{"id":"gpt-6"},{"id":"whisper-1"},{"id":"text-embedding-3"},{"id":"o5"}]}"#,
    );
    assert_eq!(lines(&server, "openai"), "gpt-6 {}\no5 {}");
    assert_eq!(
        block_on(ask(&endpoint(&server, "openai", "a"), LIMIT)).unwrap(),
        Facts::default()
    );
}

#[test]
fn ollama_is_asked_about_each_model() {
    let show = r#"{"capabilities":["completion","tools","vision"],"model_info":{"gemma3.context_length":8192,"x":1}}"#;
    let server = Server::routed(vec![
        (
            "/api/tags",
            Reply::json(200, r#"{"models":[{"name":"gemma3:4b"}]}"#),
        ),
        ("/api/show", Reply::json(200, show)),
    ]);
    assert_eq!(
        lines(&server, "ollama"),
        r#"gemma3:4b {"images":true,"tools":true}"#
    );
    assert_eq!(server.received()[1].body, br#"{"model":"gemma3:4b"}"#);
    let server = serve("/api/show", r#"{"capabilities":["completion","thinking"]}"#);
    let facts = block_on(ask(&endpoint(&server, "ollama", "qwen3"), LIMIT)).unwrap();
    assert_eq!((facts.images, facts.tools), (Some(false), Some(false)));
}

#[test]
fn llamacpp_takes_tools_where_its_template_has_a_place_for_them() {
    for (properties, tools) in [
        (
            r#"{"chat_template_caps":{"supports_tools":false,"supports_tool_calls":false}}"#,
            Some(false),
        ),
        (
            r#"{"chat_template_caps":{"supports_tools":true}}"#,
            Some(true),
        ),
        ("{}", None),
    ] {
        let facts = block_on(ask(
            &endpoint(&serve("/props", properties), "llamacpp", "m"),
            LIMIT,
        ))
        .unwrap();
        assert_eq!(facts.tools, tools, "{properties}");
        assert_eq!(
            facts.or(built_in(Format::Chat, "m")).capabilities().tools,
            tools != Some(false)
        );
    }
}

#[test]
fn llamacpp_takes_images_if_either_document_says_so() {
    for (capabilities, properties, images) in [
        (
            r#""completion""#,
            r#"{"modalities":{"vision":false}}"#,
            Some(false),
        ),
        (r#""completion""#, "{}", Some(false)),
        (r#""completion","multimodal""#, "{}", Some(true)),
        (
            r#""completion""#,
            r#"{"modalities":{"vision":true}}"#,
            Some(true),
        ),
    ] {
        let models =
            format!(r#"{{"models":[{{"capabilities":[{capabilities}]}}],"data":[{{"id":"m"}}]}}"#);
        let server = Server::routed(vec![
            ("/v1/models", Reply::json(200, &models)),
            ("/props", Reply::json(200, properties)),
        ]);
        let facts = block_on(ask(&endpoint(&server, "llamacpp", "m"), LIMIT)).unwrap();
        assert_eq!(facts.images, images, "{capabilities} {properties}");
    }
    let server = Server::routed(vec![
        (
            "/v1/models",
            Reply::json(200, r#"{"data":[{"id":"m","meta":{"n_ctx_train":8192}}]}"#),
        ),
        (
            "/props",
            Reply::json(200, r#"{"default_generation_settings":{"n_ctx":4096}}"#),
        ),
    ]);
    assert_eq!(lines(&server, "llamacpp"), r#"m {"context_tokens":4096}"#);
}

#[test]
fn server_of_ones_own_is_assumed_to_take_images() {
    let server = serve(
        "/v1/models",
        r#"{"data":[{"id":"m","max_model_len":32768}]}"#,
    );
    assert_eq!(lines(&server, "work"), r#"m {"context_tokens":32768}"#);
    let asked = server.received().len();
    let facts = block_on(ask(&endpoint(&server, "work", "m"), LIMIT)).unwrap();
    assert_eq!((facts, server.received().len()), (Facts::default(), asked));
    assert!(facts.or(built_in(Format::Chat, "m")).capabilities().images);
}

#[test]
fn server_that_is_not_there_is_an_error_that_names_it() {
    for provider in ["anthropic", "llamacpp", "ollama", "openrouter"] {
        let endpoint = Endpoint::new(provider, BaseUrl::parse(UNUSED_URL).unwrap(), "m");
        let expected = format!("reach {provider} at {UNUSED_URL}: connection refused");
        assert_eq!(
            block_on(list(&endpoint, LIMIT)).unwrap_err().to_string(),
            expected
        );
        assert_eq!(
            block_on(ask(&endpoint, LIMIT)).unwrap_err().to_string(),
            expected
        );
    }
}

#[test]
fn what_is_said_first_holds() {
    let said = Facts {
        images: Some(false),
        context_tokens: Some(1),
        ..Facts::default()
    };
    let facts = said.or(built_in(Format::Anthropic, "claude"));
    assert_eq!(
        (facts.images, facts.pdf, facts.context_tokens),
        (Some(false), Some(true), Some(1))
    );
    let takes = |model| built_in(Format::OpenAi, model).capabilities().images;
    assert!(takes("gpt-6") && takes("gpt-4o") && !takes("gpt-4") && !takes("gpt-3.5-turbo"));
}

#[test]
fn name_of_a_model_leads_nowhere_else() {
    let names = ["claude-x", "a/b:free", "../../admin", "m?x=1#y", "a b"].map(escape_name);
    assert_eq!(
        names,
        ["claude-x", "a/b:free", "admin", "m%3Fx%3D1%23y", "a%20b"]
    );
}
