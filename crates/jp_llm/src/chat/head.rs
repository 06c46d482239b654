use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Dialect;
use crate::{Request, Tool, flat::FlatTool};

/// The fields of a request before its messages.
#[derive(Serialize)]
pub(super) struct ChatHead<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    /// OpenRouter sends requests of one session to one server, which has their prefix in its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// A tool as Chat Completions and Ollama want it.
#[derive(Serialize)]
pub(crate) struct ChatTool<'a> {
    r#type: &'static str,
    function: DeclaredFunction<'a>,
}

#[derive(Serialize)]
struct DeclaredFunction<'a> {
    name: &'a str,
    description: Cow<'a, str>,
    parameters: Cow<'a, Map<String, Value>>,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: ChatSchema<'a>,
}

#[derive(Serialize)]
struct ChatSchema<'a> {
    name: &'static str,
    schema: &'a Map<String, Value>,
}

impl<'a> From<&'a Tool> for ChatTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        let Tool {
            name,
            description,
            parameters,
        } = tool;
        let (description, parameters) = (Cow::Borrowed(&**description), Cow::Borrowed(parameters));
        Self {
            r#type: "function",
            function: DeclaredFunction {
                name,
                description,
                parameters,
            },
        }
    }
}

impl<'a> ChatTool<'a> {
    /// Makes a tool with a schema that all providers accept.
    fn flat(tool: &'a Tool) -> Self {
        let FlatTool {
            description,
            parameters,
        } = FlatTool::new(tool);
        Self {
            r#type: "function",
            function: DeclaredFunction {
                name: &tool.name,
                description,
                parameters,
            },
        }
    }
}

/// Returns the fields of a request before its messages.
pub(super) fn head<'a>(dialect: Dialect, request: &'a Request<'_>) -> ChatHead<'a> {
    let schema = request.schema();
    let response_format = schema.map(|schema| ResponseFormat {
        r#type: "json_schema",
        json_schema: ChatSchema {
            name: "answer",
            schema,
        },
    });
    let head = ChatHead {
        model: request.model,
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        max_tokens: None,
        max_completion_tokens: None,
        prompt_cache_key: None,
        session_id: None,
        tools: request.tools.iter().map(ChatTool::from).collect(),
        response_format,
    };
    match dialect {
        Dialect::Generic => ChatHead {
            max_tokens: request.max_output,
            // llama.cpp takes any schema; others may pass the request on to who does not.
            tools: if request.label.starts_with("llamacpp/") {
                head.tools
            } else {
                flat_tools(request)
            },
            ..head
        },
        Dialect::OpenRouter => ChatHead {
            max_completion_tokens: request.max_output,
            tools: flat_tools(request),
            prompt_cache_key: request.cache_key,
            session_id: request
                .cache_key
                .filter(|key| key.len() <= SESSION_ID_BYTES),
            ..head
        },
    }
}

fn flat_tools<'a>(request: &Request<'a>) -> Vec<ChatTool<'a>> {
    request.tools.iter().map(ChatTool::flat).collect()
}

/// Most bytes that OpenRouter takes as a session's name.
const SESSION_ID_BYTES: usize = 256;
