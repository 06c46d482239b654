use std::io::Write;

use jp_conversation::{ChatResponse, ResponseContent, view::AnswerPart};
use jp_resource::BlobRef;
use reqwest::{RequestBuilder, header::HeaderValue};

use crate::{
    Body, Contents, Decoder, Error, Loaded, Note, Request, Secret, anthropic,
    chat::{self, Dialect},
    gemini, ollama, openai,
};

/// A provider's wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The Messages API.
    Anthropic,
    /// Chat Completions: llama.cpp and compatible servers.
    Chat,
    /// Google Gemini's `streamGenerateContent`.
    Gemini,
    /// OpenAI's Responses.
    OpenAi,
    /// Chat Completions as OpenRouter has them.
    OpenRouter,
    /// Ollama's own.
    Ollama,
}

/// Contents that are all loaded at once.
struct Now<'c>(&'c mut dyn Contents);

impl Contents for Now<'_> {
    fn load(&mut self, blob: &BlobRef) -> Loaded {
        self.0.load(blob)
    }
}

impl Format {
    /// Returns the format that a provider of this name speaks; Chat Completions if none is known.
    #[must_use]
    pub fn of_provider(provider: &str) -> Self {
        match provider {
            "google" => Self::Gemini,
            "openai" => Self::OpenAi,
            "anthropic" => Self::Anthropic,
            "openrouter" => Self::OpenRouter,
            "ollama" => Self::Ollama,
            _ => Self::Chat,
        }
    }

    /// Makes the body of a request, with room for the texts that `contents` has for later; returns it with what the
    /// model is not given as it is.
    pub fn body(
        self,
        request: &Request<'_>,
        contents: &mut dyn Contents,
    ) -> Result<(Body, Vec<Note>), Error> {
        let (body, notes) = Body::new(|out| self.write(request, contents, out))?;
        let body = match contents.later() {
            Some(later) => body.with_room(later),
            None => body,
        };
        Ok((body, notes))
    }

    /// Writes a request's JSON with all content and returns what the model is not given as it is.
    ///
    /// Equal requests give equal bytes, and what a request says of the history is a prefix of what the next
    /// one says. One payload is in memory at a time; `out` should be buffered.
    pub fn encode(
        self,
        request: &Request<'_>,
        contents: &mut dyn Contents,
        out: &mut dyn Write,
    ) -> Result<Vec<Note>, Error> {
        self.write(request, &mut Now(contents), out)
    }

    fn write(
        self,
        request: &Request<'_>,
        contents: &mut dyn Contents,
        out: &mut dyn Write,
    ) -> Result<Vec<Note>, Error> {
        let (request, left_out) = request.without_refused_tools();
        let request = &request;
        let mut notes = match self {
            Self::Anthropic => anthropic::encode(request, contents, out),
            Self::Gemini => gemini::encode(request, contents, out),
            Self::OpenAi => openai::encode(request, contents, out),
            Self::Chat => chat::encode(Dialect::Generic, request, contents, out),
            Self::OpenRouter => chat::encode(Dialect::OpenRouter, request, contents, out),
            Self::Ollama => ollama::encode(request, contents, out),
        }?;
        notes.extend(request.schema_note());
        notes.extend(left_out);
        Ok(notes)
    }

    /// Returns whether an answer is held to a schema without a change of the prompt, so that its cache holds: by what
    /// the server lets the model write. Elsewhere the schema is told before all else, or may be.
    #[must_use]
    pub fn holds_to_schema_apart(self) -> bool {
        matches!(self, Self::Chat | Self::Ollama)
    }

    /// Returns whether a part of an answer goes back to the model `label`: words and calls do, reasoning where the
    /// provider takes it from the model that made it.
    #[must_use]
    pub fn sends_back(self, part: &AnswerPart<'_>, label: &str) -> bool {
        match part {
            AnswerPart::Response(response) => match &response.content {
                ResponseContent::Message(_) => true,
                ResponseContent::Reasoning(_) => self.sends_back_reasoning(response, label),
            },
            AnswerPart::Call(_) => true,
        }
    }

    fn sends_back_reasoning(self, response: &ChatResponse, label: &str) -> bool {
        match self {
            Self::Anthropic => anthropic::sends_back(response, label),
            Self::Gemini => gemini::sends_back(response, label),
            Self::OpenAi => openai::sends_back(response, label),
            Self::Chat => chat::sends_back(Dialect::Generic, response, label),
            Self::OpenRouter => chat::sends_back(Dialect::OpenRouter, response, label),
            Self::Ollama => ollama::sends_back(response, label),
        }
    }

    /// Returns what reads the answer's stream.
    #[must_use]
    pub fn decoder(self) -> Decoder {
        match self {
            Self::Anthropic => anthropic::decoder(),
            Self::Gemini => gemini::decoder(),
            Self::OpenAi => openai::decoder(),
            Self::Chat => chat::decoder(Dialect::Generic),
            Self::OpenRouter => chat::decoder(Dialect::OpenRouter),
            Self::Ollama => ollama::decoder(),
        }
    }

    /// Returns where requests for a model go, below the server's root; OpenRouter's is `https://openrouter.ai/api`.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            Self::Anthropic => "v1/messages".to_owned(),
            Self::Gemini => gemini::path(model),
            Self::OpenAi => "v1/responses".to_owned(),
            Self::Chat | Self::OpenRouter => "v1/chat/completions".to_owned(),
            Self::Ollama => "api/chat".to_owned(),
        }
    }

    /// Returns the media type of an answer's stream.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }

    /// Adds the key, and the headers that the format wants on every request.
    pub(crate) fn authorize(self, request: RequestBuilder, key: Option<&Secret>) -> RequestBuilder {
        let request = match self {
            Self::Anthropic => request.header("anthropic-version", anthropic::VERSION),
            _ => request,
        };
        match (self, key) {
            (Self::Anthropic, Some(key)) => with_key(request, "x-api-key", key),
            (Self::Gemini, Some(key)) => with_key(request, "x-goog-api-key", key),
            (_, Some(key)) => request.bearer_auth(key.expose()),
            (_, None) => request,
        }
    }
}

/// Adds a key in a header of its own; one that can't stand in a header makes the request fail to build.
fn with_key(request: RequestBuilder, name: &'static str, key: &Secret) -> RequestBuilder {
    match HeaderValue::from_str(key.expose()) {
        Ok(mut value) => {
            value.set_sensitive(true);
            request.header(name, value)
        }
        Err(_) => request.header(name, key.expose()),
    }
}

#[cfg(test)]
mod tests {
    use Format::{Anthropic, Chat, Gemini, Ollama, OpenAi, OpenRouter};
    use jp_conversation::{EventKind, view};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        Capabilities, Tool,
        fixtures::{self, Store, any_request, any_round, encode_events, said, tool},
    };

    const ALL: [Format; 6] = [Anthropic, Chat, Gemini, Ollama, OpenAi, OpenRouter];

    /// Encodes a conversation for a model with these tools; returns the body and the notes.
    fn encode(
        format: Format,
        label: &str,
        kinds: Vec<EventKind>,
        capabilities: Capabilities,
        tools: &[Tool],
    ) -> (String, Vec<String>) {
        encode_events(kinds, |thread, store, out| {
            let request = Request {
                capabilities,
                tools,
                ..Request::new(label, thread)
            };
            format.encode(&request, store, out)
        })
    }

    /// Encodes a conversation for a model that takes text alone.
    fn encode_text(format: Format, kinds: Vec<EventKind>) -> String {
        encode(format, "p/m", kinds, Capabilities::default(), &[]).0
    }

    /// What a model is told that takes no schemas: a message with one, then the next.
    fn told(format: Format, turns: usize) -> (String, Vec<String>) {
        let kinds = [
            fixtures::question("Is it?", json!({"type": "boolean"})),
            said("true"),
            fixtures::request("And?", vec![]),
        ];
        let capabilities = Capabilities {
            images: true,
            ..Default::default()
        };
        let kinds = kinds[..turns * 2 - 1].to_vec();
        encode(format, "p/m", kinds, capabilities, &[])
    }

    #[test]
    fn model_without_schemas_is_told_in_words_that_stay() {
        for format in ALL {
            let (first, notes) = told(format, 1);
            assert_eq!(
                notes,
                [
                    "the schema is left out: this model does not support schemas, so the message describes it"
                ]
            );
            let words = r#"Is it?\n\nAnswer with one JSON document and nothing else. It must match this JSON Schema:\n{\"type\":\"boolean\"}"#;
            assert_eq!(first.matches("boolean").count(), 1, "{format:?}: {first}");
            let (history, _) = first
                .split_once(words)
                .unwrap_or_else(|| panic!("{format:?}: {first}"));
            let (second, notes) = told(format, 2);
            assert!(
                second.starts_with(&format!("{history}{words}\"")),
                "{format:?}: {second}"
            );
            assert_eq!(notes, [""; 0]);
        }
    }

    #[test]
    fn reasoning_is_said_to_go_back_exactly_where_it_is_in_the_request() {
        let own = json!({
            "model": "p/m", "signature": "s", "thoughtSignature": "s", "encrypted_content": "e", "id": "r",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
        });
        let mut of_another = own.clone();
        of_another["model"] = "p/n".into();
        let bare = json!({"model": "p/m"});
        let redacted = json!({"model": "p/m", "redacted_thinking": "x"});
        let empty = json!({"model": "p/m", "reasoning_details": []});
        let rows: [(serde_json::Value, &[Format]); 5] = [
            (own, &[Anthropic, Gemini, Ollama, OpenAi, OpenRouter]),
            (of_another, &[]),
            (bare, &[Ollama]),
            (redacted, &[Anthropic, Ollama]),
            (empty, &[Ollama]),
        ];
        for (metadata, expected) in rows {
            let metadata = metadata.as_object().cloned().unwrap();
            let reasoning = ChatResponse {
                metadata,
                ..ChatResponse::reasoning("hm")
            };
            let part = AnswerPart::Response(&reasoning);
            for format in ALL {
                let body = |kinds: &[EventKind]| {
                    let hi = [fixtures::request("Hi", vec![])];
                    encode_text(format, [&hi, kinds, &[said("Yes.")]].concat())
                };
                let is_sent = body(&[EventKind::ChatResponse(reasoning.clone())]) != body(&[]);
                let expected = expected.contains(&format);
                assert_eq!(
                    (is_sent, format.sends_back(&part, "p/m")),
                    (expected, expected),
                    "{format:?}"
                );
            }
        }
        let EventKind::ChatResponse(words) = said("Yes.") else {
            unreachable!("words were said")
        };
        assert!(
            ALL.iter()
                .all(|format| format.sends_back(&AnswerPart::Response(&words), "p/m"))
        );
    }

    #[test]
    fn missing_payload_names_what_it_belongs_to() {
        let attached = fixtures::request("See", vec![fixtures::text("file:///a", "x")]);
        let stream = fixtures::stream(vec![attached], &mut Store::default());
        let thread = view::thread(&stream);
        for format in ALL {
            let request = Request::new("p/m", &thread);
            let error = format
                .encode(&request, &mut Store::default(), &mut Vec::new())
                .unwrap_err();
            assert_eq!(error.to_string(), "load file:///a for the request");
            let source = std::error::Error::source(&error).unwrap();
            assert_eq!(source.to_string(), "no such blob", "{format:?}");
        }
    }

    #[test]
    fn name_that_a_model_made_up_goes_back_as_one_that_is_taken() {
        let call = |name: &str| match fixtures::call("1") {
            EventKind::ToolCallRequest(call) => {
                EventKind::ToolCallRequest(jp_conversation::ToolCallRequest {
                    name: name.to_owned(),
                    ..call
                })
            }
            _ => unreachable!("a call was made"),
        };
        let long = "x".repeat(300);
        for (name, sent) in [
            ("functions.read file", Some("functions_read_file")),
            ("", Some("_")),
            (&long, None),
        ] {
            let kinds = vec![
                fixtures::request("Hi", vec![]),
                call(name),
                fixtures::result("1", true, vec![]),
            ];
            for (format, longest) in [
                (Anthropic, 200),
                (Chat, 64),
                (OpenAi, 64),
                (OpenRouter, 64),
                (Gemini, 64),
            ] {
                let body = encode_text(format, kinds.clone());
                let sent = sent.unwrap_or(&long[..longest]);
                assert!(
                    body.contains(&format!("\"name\":\"{sent}\"")),
                    "{format:?}: {body}"
                );
            }
        }
    }

    #[test]
    fn model_without_tools_is_sent_none() {
        let tools = [tool("read_file", "", json!({}))];
        for format in ALL {
            let encoded = |tools: &[Tool], takes_tools| {
                let capabilities = Capabilities {
                    tools: takes_tools,
                    ..Default::default()
                };
                let kinds = vec![fixtures::request("Hi", vec![])];
                encode(format, "p/m", kinds, capabilities, tools)
            };
            let (with_none, _) = encoded(&[], true);
            let note =
                "the list of tools is left out: this model does not support tools".to_owned();
            assert_eq!(
                encoded(&tools, false),
                (with_none, vec![note]),
                "{format:?}"
            );
            let (with_tools, notes) = encoded(&tools, true);
            assert!(
                with_tools.contains("read_file") && notes.is_empty(),
                "{format:?}: {with_tools}"
            );
        }
    }

    #[test]
    fn providers_that_refuse_alternatives_at_the_root_of_a_schema_get_none() {
        let parameters =
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        let tools = [tool("find", "Finds.", parameters)];
        let capabilities = Capabilities {
            tools: true,
            ..Default::default()
        };
        for (format, takes_them) in [
            (Anthropic, false),
            (OpenAi, false),
            (OpenRouter, false),
            (Chat, true),
            (Gemini, true),
            (Ollama, true),
        ] {
            let kinds = vec![fixtures::request("Hi", vec![])];
            let (body, _) = encode(format, "llamacpp/m", kinds, capabilities, &tools);
            assert_eq!(
                body.contains(r#""anyOf":"#),
                takes_them,
                "{format:?}: {body}"
            );
            let is_said = body.contains("must also match at least one of these JSON Schemas");
            assert_eq!(is_said, !takes_them, "{format:?}: {body}");
        }
    }

    #[test]
    fn anthropic_has_headers_of_its_own() {
        let format = Format::of_provider("anthropic");
        let headers = |key: Option<Secret>| {
            let url = crate::BaseUrl::parse("http://localhost").unwrap();
            let request = crate::http::client(&url).unwrap().post("http://localhost");
            let request = format.authorize(request, key.as_ref()).build().unwrap();
            format!("{:?}", request.headers())
        };
        assert_eq!(format.path("m"), "v1/messages");
        assert_eq!(headers(None), r#"{"anthropic-version": "2023-06-01"}"#);
        assert_eq!(
            headers(Some(Secret::new("sk-1"))),
            r#"{"anthropic-version": "2023-06-01", "x-api-key": Sensitive}"#
        );
    }

    /// What the cache of a conversation goes by, without the marks that move and the ends of what is open.
    fn history(body: &str) -> String {
        let start = ["\"messages\":[", "\"contents\":[", "\"input\":["]
            .iter()
            .find_map(|key| body.find(key));
        let history = &body[start.expect("a request has messages")..];
        history
            .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
            .trim_end_matches([']', '}'])
            .to_owned()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rounds_of_a_turn_with_tools_keep_the_history_as_a_prefix(
            start in any_request(),
            rounds in prop::collection::vec(any_round(), 1..5),
        ) {
            let tools = ["list", "read"].map(|name| tool(name, "Reads.", json!({"type": "object"})));
            let capabilities = Capabilities { images: true, schema: true, tools: true, ..Default::default() };
            // A round that called nothing ends the turn.
            let rounds: Vec<_> =
                rounds.into_iter().filter(|round| matches!(round.last(), Some(EventKind::ToolCallResponse(_)))).collect();
            for format in ALL {
                let body = |count: usize| {
                    let kinds = [&start[..], &rounds[..count].concat()].concat();
                    encode(format, "openrouter/anthropic/m", kinds, capabilities, &tools).0
                };
                let bodies: Vec<_> = (0..=rounds.len()).map(body).collect();
                let is_offered = |body: &String| ["\"list\"", "\"read\""].iter().all(|name| body.contains(name));
                prop_assert!(bodies.iter().all(is_offered) || format == Format::Gemini, "{:?}: {}", format, bodies[0]);
                for pair in bodies.windows(2) {
                    prop_assert!(history(&pair[1]).starts_with(&history(&pair[0])), "{:?}\n{}\n{}", format, pair[0], pair[1]);
                }
            }
        }
    }
}
