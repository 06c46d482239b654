//! Stands for jp where the conformance suite of MCP tests clients.
//!
//! The suite starts a server for each scenario and runs this with the server's URL as the last argument, the scenario's name
//! in `MCP_CONFORMANCE_SCENARIO` and what it needs to know in `MCP_CONFORMANCE_CONTEXT` (JSON). What is done is the same for
//! all: connect, call each tool, read each resource, and log in where the server wants to know who asks.
//! `scripts/check_mcp_client` runs the suite.

#![expect(clippy::print_stderr, reason = "the suite shows what is printed")]

use std::{env, error::Error, path::Path, process::ExitCode, thread, time::Duration};

use jp_mcp::{
    Caller, Client, Connection, Elicitation, Elicited, Endpoint, Fault, KnownClient, Login,
    ServerConfig, ServerError, Servers, Tokens, ToolInfo, Transport,
};
use serde_json::{Map, Value, json};
use url::Url;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// How often a person logs in before they give up.
const MAX_LOGINS: usize = 3;
/// The document that the suite knows clients by.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let url = env::args()
        .next_back()
        .ok_or("the URL of the server is missing")?;
    let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(context) => serde_json::from_str(&context)?,
        Err(_) => Value::Null,
    };
    let endpoint = Endpoint {
        url: Url::parse(&url)?,
        headers: Default::default(),
        token: None,
    };
    let directory = tempfile::tempdir()?;
    for _ in 0..MAX_LOGINS {
        // A server that could not be connected to stays so.
        let servers = servers(&endpoint, directory.path())?;
        let result = servers
            .connect("tested", &Person)
            .and_then(|connection| exercise(&connection, &context));
        match result {
            Err(ServerError {
                fault: Fault::Status(answer),
                ..
            }) if matches!(answer.status, 401 | 403) => {
                servers.log_in("tested", &login(&context, answer.challenge)?, &Person)?;
            }
            result => return Ok(result?),
        }
    }
    Err("the server wants to know who asks again and again".into())
}

fn login(context: &Value, challenge: Option<String>) -> Outcome<Login> {
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let client = text("client_id").map(|id| KnownClient {
        id,
        secret: text("client_secret"),
    });
    let (metadata_url, timeout) = (Some(Url::parse(METADATA)?), Duration::from_secs(10));
    Ok(Login {
        client,
        metadata_url,
        challenge,
        scopes: Vec::new(),
        port: 0,
        timeout,
    })
}

fn servers(endpoint: &Endpoint, tokens: &Path) -> Outcome<Servers> {
    let config = ServerConfig {
        name: "tested".to_owned(),
        transport: Transport::Http(endpoint.clone()),
        // It is found out, as jp does.
        revision: None,
        startup_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
    };
    let client = Client {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: env::current_dir()?,
        wants_logs: false,
    };
    Ok(Servers::new(vec![config], client)?.with_tokens(Tokens::new(tokens.to_owned())))
}

/// Calls what is called by the scenario, or else each tool, and reads each resource.
fn exercise(connection: &Connection, context: &Value) -> Result<(), ServerError> {
    let tools = connection.tools(&Person)?;
    for warning in &tools.warnings {
        eprintln!("{warning}");
    }
    match context["toolCalls"].as_array() {
        Some(calls) => {
            for call in calls {
                let name = call["name"].as_str().unwrap_or_default();
                connection.call(
                    name,
                    call["arguments"].as_object().unwrap_or(&Map::new()),
                    &Person,
                )?;
            }
        }
        None => {
            for tool in &tools.items {
                let mut arguments = arguments(tool);
                // One scenario wants to see what became of another tool's schema.
                if let (Some(schema), Some(other)) =
                    (arguments.get_mut("schema"), tools.items.first())
                {
                    *schema = Value::Object(other.input_schema.clone());
                }
                connection.call(&tool.name, &arguments, &Person)?;
            }
        }
    }
    for resource in connection.resources(&Person)?.items {
        connection.read(&resource.uri, &Person)?;
    }
    Ok(())
}

/// Makes up what a tool requires.
fn arguments(tool: &ToolInfo) -> Map<String, Value> {
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let schema = Value::Object(tool.input_schema.clone());
    names
        .map(|name| (name.to_owned(), value(&schema["properties"][name])))
        .collect()
}

fn value(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("a"),
    }
}

/// Someone who answers each question as it is proposed, and agrees on each page.
struct Person;

impl Caller for Person {
    fn answer(&self, elicitation: &Elicitation) -> Elicited {
        let schema = match elicitation {
            Elicitation::Form { schema, .. } => schema,
            Elicitation::Url { url, .. } => {
                visit(url.clone());
                return Elicited::Accept(None);
            }
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let answer = |(name, schema): (&String, &Value)| {
            let proposed = schema.get("default").cloned();
            (name.clone(), proposed.unwrap_or_else(|| value(schema)))
        };
        Elicited::Accept(Some(properties.into_iter().flatten().map(answer).collect()))
    }
}

/// Visits a page as a browser does, which goes where the page leads.
fn visit(url: String) {
    thread::spawn(move || -> Result<(), Box<dyn Error + Send + Sync>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let visit = async {
            reqwest::Client::builder()
                .no_proxy()
                .build()?
                .get(url)
                .send()
                .await
        };
        runtime.block_on(visit)?;
        Ok(())
    });
}
