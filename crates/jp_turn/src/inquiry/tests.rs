use std::sync::Arc;

use jp_conversation::{Event, Stream, ToolCallRequest, view};
use jp_llm::{BaseUrl, Capabilities, Client, Contents, Endpoint, Request, Tool};
use jp_resource::{BlobRef, ResourceContent};
use testing::{Reply, Server, block_on, chunk};

use super::*;
use crate::{Files, Surroundings, Toolbox};

const FORMATS: [Format; 6] = [
    Format::Anthropic,
    Format::Chat,
    Format::Gemini,
    Format::OpenAi,
    Format::OpenRouter,
    Format::Ollama,
];

struct NoContents;

impl Contents for NoContents {
    fn load(
        &mut self,
        _: &BlobRef,
    ) -> Result<ResourceContent, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing is stored".into())
    }
}

fn encoded(format: Format, kinds: &[EventKind]) -> String {
    let event =
        |kind: &EventKind| Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind.clone());
    let stream = Stream::from_events(kinds.iter().map(event).collect());
    let thread = view::thread(&stream);
    let parameters = json!({"type": "object", "properties": {}})
        .as_object()
        .unwrap()
        .clone();
    let tools = ["merge", "look"].map(|name| Tool {
        name: name.to_owned(),
        description: "Does.".to_owned(),
        parameters: parameters.clone(),
    });
    let capabilities = Capabilities {
        schema: true,
        tools: true,
        ..Capabilities::default()
    };
    let request = Request {
        system: Some("You are jp."),
        tools: &tools,
        capabilities,
        ..Request::new("p/m", &thread)
    };
    let mut out = Vec::new();
    format.encode(&request, &mut NoContents, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn call(id: &str, name: &str) -> ToolCallRequest {
    ToolCallRequest {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: Map::new(),
        metadata: Map::new(),
    }
}

fn asking() -> Inquiry {
    let answer = json!({"type": "string", "enum": ["main", "next"]})
        .as_object()
        .unwrap()
        .clone();
    Inquiry {
        call: call("1", "merge"),
        context: vec![ContentBlock::text("Two branches are open.")],
        input: InputRequest::new("branch", "Into which?", answer).with_default("main"),
    }
}

/// The conversation up to the calls, the first of which asks.
fn conversation() -> Vec<EventKind> {
    vec![
        EventKind::ChatRequest(ChatRequest::new("Merge it.")),
        EventKind::ChatResponse(ChatResponse::message("I merge.")),
        EventKind::ToolCallRequest(call("1", "merge")),
        EventKind::ToolCallRequest(call("2", "look")),
    ]
}

/// What the cache goes by: all of a request up to its end, without the marks that move, and where a
/// server tells the model nothing of a schema, from the system prompt on.
fn cached(format: Format, body: &str) -> String {
    let body = match format {
        Format::Chat | Format::Ollama => &body[body.find(r#""messages""#).unwrap()..],
        _ => body,
    };
    body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn question_follows_the_bytes_of_the_request_before_it_in_every_format() {
    for format in FORMATS {
        let conversation = conversation();
        let before = cached(format, &encoded(format, &conversation[..1]));
        let asked = encoded(
            format,
            &[&conversation[..], &build_aside(&asking(), &["2"], format)].concat(),
        );
        let shared = before.trim_end_matches(['}', ']']);
        assert!(
            cached(format, &asked).starts_with(shared),
            "{format:?}\n{before}\n{asked}"
        );
        let places = [
            "I merge.",
            "Two branches are open.",
            "This call has not ended yet.",
            "Into which?",
        ];
        let places = places.map(|words| {
            asked
                .find(words)
                .unwrap_or_else(|| panic!("no {words}: {asked}"))
        });
        assert!(places.is_sorted(), "{format:?}: {asked}");
        assert_eq!(asked.matches(r#"enum"#).count(), 1, "{format:?}: {asked}");
    }
}

#[test]
fn question_names_the_tool_with_an_instruction() {
    let asked = |format| {
        let EventKind::ChatRequest(request) = build_aside(&asking(), &[], format).pop().unwrap()
        else {
            panic!()
        };
        (
            request.content,
            request
                .schema
                .map(|schema| Value::Object(schema).to_string()),
        )
    };
    let (words, schema) = asked(Format::Anthropic);
    insta::assert_snapshot!(words, @r#"
    The tool "merge" asks: Into which?
    Its default is "main".

    Answer with one JSON object and nothing else. Do not call a tool. It must match this JSON Schema:
    {"type":"object","properties":{"branch":{"type":"string","enum":["main","next"]}},"required":["branch"],"additionalProperties":false}
    "#);
    assert_eq!(schema, None);
    let (words, schema) = asked(Format::Chat);
    insta::assert_snapshot!(words, @r#"
    The tool "merge" asks: Into which?
    Its default is "main".

    Answer with one JSON object and nothing else. Do not call a tool. Put the answer in its property `branch`.
    "#);
    insta::assert_snapshot!(schema.unwrap(), @r#"{"type":"object","properties":{"branch":{"type":"string","enum":["main","next"]}},"required":["branch"],"additionalProperties":false}"#);
}

#[test]
fn references_of_a_nested_schema_are_rebased() {
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}},
        "additionalProperties": false}}});
    let input = InputRequest::new("a/b c", "Which?", tree.as_object().unwrap().clone());
    let schema = wrap_schema(&input);
    assert_eq!(
        schema["properties"]["a/b c"]["$ref"],
        "#/properties/a~1b%20c/$defs/node"
    );
    let schema = Schema::compile(&schema)
        .map_err(|error| error.to_string())
        .unwrap();
    assert_eq!(schema.check_value(&json!({"a/b c": {"next": {}}})), Ok(()));
    assert!(
        schema
            .check_value(&json!({"a/b c": {"next": {"x": 1}}}))
            .is_err()
    );
}

#[test]
fn answer_is_read_bare_or_out_of_a_fence() {
    let schema = Schema::compile(json!({"type": "boolean"}).as_object().unwrap())
        .map_err(|_| ())
        .unwrap();
    let answer = |words: &str| {
        ModelReply {
            words: words.to_owned(),
            ..ModelReply::default()
        }
        .answer("ok", &schema)
    };
    for words in [
        r#"{"ok": true}"#,
        "\n{\"ok\": true}\n",
        "```json\n{\"ok\": true}\n```",
        "Sure.\n\n```\n{\"ok\": true}\n```\nThat is all.",
    ] {
        assert_eq!(answer(words), Ok(json!(true)), "{words}");
    }
    for (words, fault) in [
        (
            "Yes.",
            "it is not a JSON object: expected value at line 1 column 1",
        ),
        (
            "```",
            "it is not a JSON object: expected value at line 1 column 1",
        ),
        (r#"{"yes": true}"#, "it has no `ok`"),
        (
            r#"{"ok": "yes"}"#,
            "its `ok` does not match the schema: at its top: want boolean, but got string",
        ),
    ] {
        assert_eq!(answer(words), Err(fault.to_owned()), "{words}");
    }
}

/// Records the events of a host. A body contains only the number of events in `aside`.
#[derive(Default)]
struct Witness {
    asides: Vec<Vec<EventKind>>,
    told: Vec<String>,
}

impl Host for Witness {
    fn take(&mut self, event: TurnEvent<'_>) {
        self.told.push(match event {
            TurnEvent::Record(kinds) => format!("record {:?}", kinds[0]).chars().take(13).collect(),
            other => format!("{other:?}"),
        });
    }

    fn body(
        &mut self,
        aside: &[EventKind],
    ) -> Result<jp_llm::Body, Box<dyn std::error::Error + Send + Sync>> {
        self.asides.push(aside.to_vec());
        Ok(jp_llm::Body::new(|_| Ok(()))?.0)
    }

    fn blob(
        &mut self,
        _: &jp_resource::Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(None)
    }
}

fn reply(words: &str, reason: &str) -> Reply {
    let finish =
        format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n");
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";
    Reply::stream(&(chunk(words) + &finish + usage))
}

/// Asks the branch of a model that answers like this.
fn inferred(replies: Vec<Reply>) -> (Result<Value, String>, Witness) {
    let server = Server::new(replies);
    let mut endpoint = Endpoint::new("llamacpp", BaseUrl::parse(server.url()).unwrap(), "m");
    endpoint.retry.max_retries = 0;
    let client = Client::new(endpoint).unwrap();
    let root = tempfile::tempdir().unwrap();
    let files = Files::open(root.path(), &[]).unwrap();
    let toolbox = Arc::new(Toolbox::new(Vec::new(), Surroundings::default(), files));
    let turn = Turn {
        client: &client,
        toolbox: &toolbox,
        model: "llamacpp/m",
        check: None,
        max_rounds: 1,
    };
    let mut witness = Witness::default();
    let answer = block_on(infer(asking(), &[], &turn, &mut witness));
    (answer, witness)
}

#[test]
fn valid_answer_records_only_its_usage() {
    let (answer, witness) = inferred(vec![reply(r#"{"branch": "next"}"#, "stop")]);
    assert_eq!(answer, Ok(json!("next")));
    assert_eq!(witness.told, ["record Usage("]);
}

#[test]
fn model_gets_one_chance_to_correct_its_answer() {
    let called = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"look","arguments":"{}"}}]}}]}"#;
    let called = Reply::stream(
        &(called.to_owned()
            + "\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"),
    );
    for (first, said, fault) in [
        (
            reply("Into next.", "stop"),
            "Into next.",
            "it is not a JSON object: expected value at line 1 column 1",
        ),
        (
            reply(r#"{"branch": "old"}"#, "stop"),
            r#"{"branch": "old"}"#,
            "its `branch` does not match the schema: at its top: value must be one of 'main', 'next'",
        ),
        (
            reply(r#"{"bra"#, "length"),
            r#"{"bra"#,
            "it was cut off: the length limit was reached",
        ),
        (
            Reply::stream(&chunk("{")),
            "{",
            "it was cut off: it ended before it was complete",
        ),
        (called, "", "a tool was called"),
    ] {
        let (answer, witness) =
            inferred(vec![first.clone(), reply(r#"{"branch": "main"}"#, "stop")]);
        assert_eq!(answer, Ok(json!("main")), "{fault}");
        let [once, twice] = &witness.asides[..] else {
            panic!("{:?}", witness.asides)
        };
        assert_eq!(format!("{:?}", &twice[..once.len()]), format!("{once:?}"));
        let more: Vec<_> = twice[once.len()..]
            .iter()
            .map(|kind| match kind {
                EventKind::ChatResponse(response) => format!("{:?}", response.content),
                EventKind::ChatRequest(request) => request.content.clone(),
                other => format!("{other:?}"),
            })
            .collect();
        let answer = (!said.is_empty()).then(|| format!("Message({said:?})"));
        let start = format!("This does not answer the question: {fault}.");
        assert_eq!(more.len(), 1 + usize::from(answer.is_some()), "{more:?}");
        assert!(answer.is_none_or(|answer| more[0] == answer), "{more:?}");
        assert!(more.last().unwrap().starts_with(&start), "{more:?}");

        let (answer, witness) = inferred(vec![first]);
        assert_eq!((answer, witness.asides.len()), (Err(fault.to_owned()), 2));
    }
}

#[test]
fn request_that_fails_is_not_made_again() {
    let (answer, witness) = inferred(vec![Reply::json(400, r#"{"error":"no"}"#)]);
    assert!(answer.unwrap_err().contains("400: no"));
    assert_eq!(witness.asides.len(), 1);
}
