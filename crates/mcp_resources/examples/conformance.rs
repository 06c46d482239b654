//! The server for the official MCP conformance suite: `conformance --http ADDRESS` serves it at
//! `http://ADDRESS/mcp` and prints that URL. Port 0 takes one that is free.
//!
//! Resources, templates and subscriptions are the registry's; tools, prompts, questions to the client, logs and progress
//! go through a handler of rmcp. Names and texts are those that the suite prescribes. `scripts/check_mcp_server` runs it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints"
)]
#![expect(deprecated, reason = "clients until 2025-11-25 have sampling and logs")]

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcp_resources::rmcp::ServerHandler;
use mcp_resources::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientResult,
    CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, ElicitRequest, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequiredResult,
    InputResponses, ListPromptsResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, Prompt,
    ProtocolVersion, ServerConfig, ServerRequest, SetLevelRequestParams, SubscriptionFilter, Tool,
};
use mcp_resources::rmcp::service::{RequestContext, RoleServer, ServiceError, SubscriptionContext};
use mcp_resources::{Http, Parameters, Registry, Resource, ResourceTemplate, Server};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The pause between two notifications of a tool.
const PAUSE: Duration = Duration::from_millis(50);

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A sound of one sample.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let ["--http", address] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        eprintln!("usage: conformance --http ADDRESS");
        return ExitCode::from(2);
    };
    match serve(address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = address.parse()?;
    let server = Server::new("conformance", env!("CARGO_PKG_VERSION"), registry()?)
        .title("Conformance")
        .instructions("Answers what the MCP conformance suite asks.")
        .with_handler(Conformance {
            changes: broadcast::channel(16).0,
        });
    let bound = Http::new(server).bind(address).await?;
    println!("http://{}/mcp", bound.address());
    Ok(bound.serve().await?)
}

fn registry() -> Result<Registry, Box<dyn Error>> {
    let registry = Registry::new();
    let png = STANDARD.decode(PNG)?;
    let text = || "This is the content of the static text resource.";
    registry.register_resource(
        Resource::new("test://static-text", "Text", text)
            .description("A text that stays as it is")
            .mime_type("text/plain"),
    )?;
    registry.register_resource(
        Resource::new("test://static-binary", "Picture", move || png.clone())
            .description("A picture that stays as it is")
            .mime_type("image/png"),
    )?;
    registry.register_resource(
        Resource::new(
            "test://watched-resource",
            "Watched",
            || "Subscribe to this.",
        )
        .description("A text to subscribe to")
        .mime_type("text/plain"),
    )?;
    registry.register_template(
        ResourceTemplate::new("test://template/{id}/data", "Data", |parameters: Parameters| {
            let data = |id| json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            parameters.text("id").map(|id| data(id).to_string())
        })
        .description("The data of an id")
        .mime_type("application/json"),
    )?;
    Ok(registry)
}

/// A list that changed.
#[derive(Debug, Clone, Copy)]
enum Change {
    Tools,
    Prompts,
}

/// Tools and prompts.
#[derive(Debug)]
struct Conformance {
    changes: broadcast::Sender<Change>,
}

impl ServerHandler for Conformance {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::default();
        let list_changed = json!({ "listChanged": true });
        let capabilities = json!({ "tools": list_changed, "prompts": list_changed, "logging": {}, "completions": {} });
        config.capabilities = serde_json::from_value(capabilities).expect("these are capabilities");
        config
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(contents) = contents(&request.name) {
            let contents: Vec<ContentBlock> = serde_json::from_value(contents).map_err(internal)?;
            return Ok(CallToolResult::success(contents).into());
        }
        if let Some(rounds) = rounds(&request.name) {
            return ask(&request, rounds, &context);
        }
        match &*request.name {
            "test_error_handling" => {
                let text = "This tool intentionally returns an error for testing";
                Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into())
            }
            "test_tool_with_logging" | "test_logging_tool" => log(&context).await,
            "test_tool_with_progress" => progress(&context).await,
            "test_sampling" => sample(&request, &context).await,
            "test_elicitation" => {
                let fields = json!({
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" },
                });
                let schema = object(fields, &["username", "email"]);
                elicit(
                    argument(&request, "message")?,
                    schema,
                    "User response",
                    &context,
                )
                .await
            }
            "test_elicitation_sep1034_defaults" => {
                elicit(
                    "Change what you like",
                    object(defaults(), &[]),
                    "Elicitation completed",
                    &context,
                )
                .await
            }
            "test_elicitation_sep1330_enums" => {
                elicit(
                    "Choose",
                    object(choices(), &[]),
                    "Elicitation completed",
                    &context,
                )
                .await
            }
            "test_missing_capability" => needs_sampling(&context),
            "test_trigger_tool_change" => self.change(Change::Tools, &context).await,
            "test_trigger_prompt_change" => self.change(Change::Prompts, &context).await,
            name => Err(ErrorData::invalid_params(
                format!("there is no tool {name}"),
                None,
            )),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts: Vec<Prompt> = serde_json::from_value(prompts()).map_err(internal)?;
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            let question = Round {
                state: None,
                requests: vec![(
                    "user_context",
                    question("What context should the prompt use?", "context"),
                )],
            };
            let responses = request.input_responses.as_ref();
            if let Some(asked) = next(vec![question], responses, None)? {
                return Ok(asked.into());
            }
        }
        let given = request.arguments.unwrap_or_default();
        let argument = |name: &str| match given.get(name).and_then(Value::as_str) {
            Some(value) => Ok(value),
            None => Err(ErrorData::invalid_params(
                format!("the prompt needs the argument {name}"),
                None,
            )),
        };
        let contents = match &*request.name {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                let (first, second) = (argument("arg1")?, argument("arg2")?);
                vec![text(format!(
                    "Prompt with arguments: arg1='{first}', arg2='{second}'"
                ))]
            }
            "test_prompt_with_embedded_resource" => vec![
                embedded(
                    argument("resourceUri")?,
                    "Embedded resource content for testing.",
                ),
                text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
            "test_input_required_result_prompt" => vec![text(format!(
                "The context is {}",
                request.input_responses.unwrap_or_default()["user_context"]["content"]["context"]
            ))],
            name => {
                return Err(ErrorData::invalid_params(
                    format!("there is no prompt {name}"),
                    None,
                ));
            }
        };
        let messages = contents
            .into_iter()
            .map(|content| json!({ "role": "user", "content": content }));
        let messages = serde_json::from_value(messages.collect()).map_err(internal)?;
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = ["test", "testing"].map(str::to_owned);
        let values = values
            .into_iter()
            .filter(|value| value.starts_with(&request.argument.value))
            .collect();
        CompletionInfo::new(values)
            .map(CompleteResult::new)
            .map_err(internal)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        accepted.prompts_list_changed = requested.prompts_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        let sink = context.sink();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
            };
            // A list that the client did not ask for is not sent; that is no error here.
            _ = match change {
                Ok(Change::Tools) => sink.notify_tool_list_changed().await,
                Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return Ok(()),
            };
        }
    }
}

impl Conformance {
    /// Says that a list changed, to all that listen and to the client that caused it.
    async fn change(
        &self,
        change: Change,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // An error says that nobody listens.
        _ = self.changes.send(change);
        if !is_modern(context) {
            let told = match change {
                Change::Tools => context.peer.notify_tool_list_changed().await,
                Change::Prompts => context.peer.notify_prompt_list_changed().await,
            };
            told.map_err(internal)?;
        }
        said("The list changed.")
    }
}

/// Returns true if the client uses a revision without `initialize`. Such a client receives questions in
/// results instead of requests.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn said(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn argument<'a>(request: &'a CallToolRequestParams, name: &str) -> Result<&'a str, ErrorData> {
    let value = request
        .arguments
        .as_ref()
        .and_then(|arguments| arguments.get(name))
        .and_then(Value::as_str);
    value.ok_or_else(|| {
        ErrorData::invalid_params(format!("the tool needs the argument {name}"), None)
    })
}

/// Logs three times, where the client wants to hear of it.
async fn log(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let is_wanted = !is_modern(context) || context.meta.log_level().is_some();
    for text in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        if is_wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
            context
                .peer
                .notify_logging_message(message)
                .await
                .map_err(internal)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    said("The tool logged what it did.")
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, progress).with_total(100.0);
            context
                .peer
                .notify_progress(progress)
                .await
                .map_err(internal)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    said("The tool came to its end.")
}

fn needs_sampling(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if context
        .client_capabilities()
        .is_some_and(|capabilities| capabilities.sampling.is_some())
    {
        return said("The client has a model to ask.");
    }
    let required = ClientCapabilities::builder().enable_sampling().build();
    Err(ErrorData::missing_required_client_capability(required))
}

/// Asks the client's model, by a request of its own.
async fn sample(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let question = sampling(argument(request, "prompt")?, 100);
    let question = serde_json::from_value(question["params"].clone()).map_err(internal)?;
    let answer = context
        .peer
        .create_message(question)
        .await
        .map_err(internal)?;
    let answer = serde_json::to_value(answer).map_err(internal)?;
    said(format!(
        "LLM response: {}",
        answer["content"]["text"].as_str().unwrap_or_default()
    ))
}

/// Asks the person, by a request of its own.
async fn elicit(
    message: &str,
    schema: Value,
    label: &str,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let question = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let question = ElicitRequest::new(serde_json::from_value(question).map_err(internal)?);
    let answer = context
        .peer
        .send_request(ServerRequest::ElicitRequest(question))
        .await
        .map_err(internal)?;
    let ClientResult::ElicitResult(answer) = answer else {
        return Err(internal(ServiceError::UnexpectedResponse));
    };
    let action = serde_json::to_value(&answer.action).map_err(internal)?;
    let content = answer.content.unwrap_or_default();
    said(format!(
        "{label}: action={}, content={content}",
        action.as_str().unwrap_or_default()
    ))
}

/// The questions before a tool of 2026-07-28 continues, and the state that comes back with the answers.
struct Round {
    state: Option<&'static str>,
    requests: Vec<(&'static str, Value)>,
}

impl Round {
    fn is_answered(&self, responses: Option<&InputResponses>, state: Option<&str>) -> bool {
        let answer = |key: &str| responses.and_then(|responses| responses.get(key));
        self.state == state
            && self
                .requests
                .iter()
                .all(|(key, _)| answer(key).is_some_and(Value::is_object))
    }

    fn ask(&self) -> Result<InputRequiredResult, ErrorData> {
        let request =
            |(key, request): &(&str, Value)| -> Result<(String, InputRequest), ErrorData> {
                Ok((
                    (*key).to_owned(),
                    serde_json::from_value(request.clone()).map_err(internal)?,
                ))
            };
        let requests = self
            .requests
            .iter()
            .map(request)
            .collect::<Result<_, _>>()?;
        Ok(InputRequiredResult::new(
            Some(requests),
            self.state.map(str::to_owned),
        ))
    }
}

/// Returns the next questions; `None` after all rounds. Refuses an unknown state.
fn next(
    rounds: Vec<Round>,
    responses: Option<&InputResponses>,
    state: Option<&str>,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let place = match state {
        None => Some(0),
        Some(_) => rounds.iter().position(|round| round.state == state),
    };
    let unknown =
        || ErrorData::invalid_params("the request state is not one that this server gave", None);
    let place = place.ok_or_else(unknown)?;
    let next = place + usize::from(rounds[place].is_answered(responses, state));
    rounds.get(next).map(Round::ask).transpose()
}

fn ask(
    request: &CallToolRequestParams,
    mut rounds: Vec<Round>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if request.name == "test_input_required_result_capabilities" {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let can_answer = |request: &Value| match request["method"].as_str() {
            Some("sampling/createMessage") => capabilities.sampling.is_some(),
            _ => capabilities.elicitation.is_some(),
        };
        rounds[0]
            .requests
            .retain(|(_, request)| can_answer(request));
    }
    let responses = request.input_responses.as_ref();
    if let Some(asked) = next(rounds, responses, request.request_state.as_deref())? {
        return Ok(asked.into());
    }
    let answers = json!(responses);
    match answers["user_name"]["content"]["name"].as_str() {
        Some(name) => said(format!("Hello, {name}!")),
        None => said(format!("state-ok; the answers are {answers}")),
    }
}

/// The questions of the tools that return them instead of a result.
fn rounds(tool: &str) -> Option<Vec<Round>> {
    let round = |state, requests| Round { state, requests };
    let name = || ("user_name", question("What is your name?", "name"));
    let confirm = || {
        let fields = object(json!({ "ok": { "type": "boolean" } }), &["ok"]);
        ("confirm", elicitation("Please confirm", &fields))
    };
    let capital = || {
        (
            "capital_question",
            sampling("What is the capital of France?", 100),
        )
    };
    let roots = || {
        (
            "client_roots",
            json!({ "method": "roots/list", "params": {} }),
        )
    };
    Some(match tool {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            vec![round(None, vec![name()])]
        }
        "test_input_required_result_sampling" => vec![round(None, vec![capital()])],
        "test_input_required_result_list_roots" => vec![round(None, vec![roots()])],
        "test_input_required_result_request_state" => vec![round(Some("confirm"), vec![confirm()])],
        "test_input_required_result_tampered_state" => vec![round(Some("sealed"), vec![confirm()])],
        "test_input_required_result_capabilities" => vec![round(None, vec![capital(), name()])],
        "test_input_required_result_multiple_inputs" => {
            let greeting = ("greeting", sampling("Generate a greeting", 50));
            vec![round(Some("inputs"), vec![name(), greeting, roots()])]
        }
        "test_input_required_result_multi_round" => vec![
            round(
                Some("step1"),
                vec![("step1", question("Step 1: What is your name?", "name"))],
            ),
            round(
                Some("step2"),
                vec![(
                    "step2",
                    question("Step 2: What is your favorite color?", "color"),
                )],
            ),
        ],
        _ => return None,
    })
}

fn question(message: &str, field: &str) -> Value {
    elicitation(
        message,
        &object(json!({ field: { "type": "string" } }), &[field]),
    )
}

fn elicitation(message: &str, schema: &Value) -> Value {
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

fn sampling(prompt: &str, max_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": text(prompt) });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": max_tokens } })
}

/// The schema of an object.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A field of each type, with a default.
fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

/// A field for each way to choose.
fn choices() -> Value {
    let titled = |title: &str| {
        json!([
            { "const": "value1", "title": format!("First {title}") },
            { "const": "value2", "title": format!("Second {title}") },
            { "const": "value3", "title": format!("Third {title}") },
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}

fn text(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn embedded(uri: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": "text/plain", "text": text } })
}

/// Returns the results of tools that always return the same.
fn contents(tool: &str) -> Option<Value> {
    Some(match tool {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => {
            json!([embedded(
                "test://embedded-resource",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image(),
            embedded(
                "test://mixed-content-resource",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_reconnection" => json!([text("The call came to its end.")]),
        "json_schema_2020_12_tool" | "test_custom_header" => {
            json!([text("The arguments were taken.")])
        }
        _ => return None,
    })
}

fn tools() -> Vec<Tool> {
    let string = |name: &str| object(json!({ name: { "type": "string" } }), &[name]);
    let nothing = object(json!({}), &[]);
    let region = json!({ "region": { "type": "string", "x-mcp-header": "Region" } });
    let tools = [
        ("test_simple_text", "Returns a text", nothing.clone()),
        ("test_image_content", "Returns a picture", nothing.clone()),
        ("test_audio_content", "Returns a sound", nothing.clone()),
        (
            "test_embedded_resource",
            "Returns a resource",
            nothing.clone(),
        ),
        (
            "test_multiple_content_types",
            "Returns a text, a picture and a resource",
            nothing.clone(),
        ),
        ("test_error_handling", "Always fails", nothing.clone()),
        (
            "test_tool_with_logging",
            "Logs what it does",
            nothing.clone(),
        ),
        (
            "test_logging_tool",
            "Logs if the request asks for logs",
            nothing.clone(),
        ),
        (
            "test_tool_with_progress",
            "Tells how far it is",
            nothing.clone(),
        ),
        (
            "test_reconnection",
            "Returns a text that survives a reconnection",
            nothing.clone(),
        ),
        ("test_sampling", "Asks the client's model", string("prompt")),
        ("test_elicitation", "Asks the person", string("message")),
        (
            "test_elicitation_sep1034_defaults",
            "Asks with defaults",
            nothing.clone(),
        ),
        (
            "test_elicitation_sep1330_enums",
            "Asks with choices",
            nothing.clone(),
        ),
        (
            "test_missing_capability",
            "Needs a client that can sample",
            nothing.clone(),
        ),
        (
            "test_trigger_tool_change",
            "Says that the tools changed",
            nothing.clone(),
        ),
        (
            "test_trigger_prompt_change",
            "Says that the prompts changed",
            nothing.clone(),
        ),
        (
            "test_streaming_elicitation",
            "Asks for a name on a stream",
            nothing.clone(),
        ),
        (
            "test_input_required_result_elicitation",
            "Asks for a name",
            nothing.clone(),
        ),
        (
            "test_input_required_result_sampling",
            "Asks for a capital",
            nothing.clone(),
        ),
        (
            "test_input_required_result_list_roots",
            "Asks for the roots",
            nothing.clone(),
        ),
        (
            "test_input_required_result_request_state",
            "Asks, with a state",
            nothing.clone(),
        ),
        (
            "test_input_required_result_multiple_inputs",
            "Asks for three things at once",
            nothing.clone(),
        ),
        (
            "test_input_required_result_multi_round",
            "Asks twice",
            nothing.clone(),
        ),
        (
            "test_input_required_result_tampered_state",
            "Refuses a state of others",
            nothing.clone(),
        ),
        (
            "test_input_required_result_capabilities",
            "Asks what the client can answer",
            nothing,
        ),
        (
            "test_custom_header",
            "Has an argument that is repeated in a header",
            object(region, &["region"]),
        ),
        (
            "json_schema_2020_12_tool",
            "Has a schema of JSON Schema 2020-12",
            schema_2020_12(),
        ),
    ];
    let tool = |(name, description, schema): (_, _, Value)| {
        let schema = schema.as_object().cloned().unwrap_or_default();
        Tool::new(name, description, schema)
    };
    tools.into_iter().map(tool).collect()
}

fn schema_2020_12() -> Value {
    let string = json!({ "type": "string" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": string, "city": string },
            },
        },
        "properties": {
            "name": string,
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": string,
            "email": string,
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn prompts() -> Value {
    let argument = |name: &str, description: &str| json!({ "name": name, "description": description, "required": true });
    json!([
        { "name": "test_simple_prompt", "description": "Has no arguments" },
        {
            "name": "test_prompt_with_arguments",
            "description": "Repeats its arguments",
            "arguments": [argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
        },
        {
            "name": "test_prompt_with_embedded_resource",
            "description": "Has a resource",
            "arguments": [argument("resourceUri", "URI of the resource to embed")],
        },
        { "name": "test_prompt_with_image", "description": "Has a picture" },
        { "name": "test_input_required_result_prompt", "description": "Asks for a context" },
    ])
}
