//! What comes of servers that answer the beginning of a conversation in their own way, over real HTTP.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeMap,
    env,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use jp_mcp::{Client, Endpoint, ServerConfig, Servers, Transport};
use serde_json::{Value, json};
use support::Response;
use url::Url;

fn servers(url: Url) -> Servers {
    let config = ServerConfig {
        name: "notes".to_owned(),
        transport: Transport::Http(Endpoint {
            url,
            headers: BTreeMap::new(),
            token: None,
        }),
        revision: None,
        startup_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
    };
    Servers::new(
        vec![config],
        Client {
            version: "1".to_owned(),
            root: env::temp_dir(),
            wants_logs: false,
        },
    )
    .unwrap()
}

/// A server that answers each method with a result.
fn start(result: impl Fn(&str) -> Value + Send + Sync + 'static) -> Url {
    support::start(move |request| {
        let Ok(message) = serde_json::from_str::<Value>(&request.body) else {
            return Response::empty("405 Method Not Allowed", "Allow: POST");
        };
        match message.get("id") {
            Some(id) => {
                let result = result(message["method"].as_str().unwrap());
                Response::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
            None => Response::empty("202 Accepted", "Cache-Control: no-store"),
        }
    })
}

#[test]
fn server_that_answers_anything_with_nothing_is_spoken_to_as_it_knows() {
    let url = start(|method| match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "notes", "version": "1"},
        }),
        _ => json!({}),
    });
    let servers = servers(url);
    let connection = servers.connect("notes", &()).unwrap();
    assert_eq!(connection.about().revision, "2025-06-18");
}

/// Official SDKs drop a question that they ask while the stream isn't open.
#[test]
fn requests_of_a_session_wait_until_its_stream_is_open() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let url = support::start(move |request| {
        let note = |event: &str| seen.lock().unwrap().push(event.to_owned());
        let Ok(message) = serde_json::from_str::<Value>(&request.body) else {
            if request.what.starts_with("GET") {
                thread::sleep(Duration::from_millis(300));
                note("stream");
            }
            return Response::empty("405 Method Not Allowed", "Allow: POST");
        };
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"},
            }),
            "tools/list" => {
                note("tools/list");
                json!({"tools": []})
            }
            "notifications/initialized" => {
                return Response::empty("202 Accepted", "Cache-Control: no-store");
            }
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                return Response::json(
                    &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                );
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        Response {
            status: "200 OK",
            header: "Mcp-Session-Id: 1".to_owned(),
            body,
        }
    });
    let servers = servers(url);
    servers.connect("notes", &()).unwrap().tools(&()).unwrap();
    assert_eq!(*events.lock().unwrap(), ["stream", "tools/list"]);
}

#[test]
fn tool_whose_headers_cannot_be_made_is_not_offered_over_http() {
    let url = start(|method| match method {
        "tools/list" => {
            let tool = |name: &str, header: &str| {
                let schema = json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}});
                json!({"name": name, "inputSchema": schema})
            };
            json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [tool("bad", "a b"), tool("good", "A")]})
        }
        _ => json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        }),
    });
    let servers = servers(url);
    let tools = servers.connect("notes", &()).unwrap().tools(&()).unwrap();
    assert_eq!(
        tools
            .items
            .iter()
            .map(|tool| &*tool.name)
            .collect::<Vec<_>>(),
        ["good"]
    );
    let warning = r#"one of its tools, "bad", was skipped: `x-mcp-header` is "a b", which is not a header name"#;
    assert_eq!(tools.warnings, [warning]);
}
