//! Streamable HTTP, on the loopback, byte by byte.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::SocketAddr;
use std::process::Stdio;

use mcp_resources::{Http, Registry, Resource, ServeError, Server};
use serde_json::{Value, json};
use support::example;
use testing::assert_fields;
use testing::mcp::{PATIENCE, initialize, meta, within_patience};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

/// An answer, with its body as it came.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The message: the body, or the last event of a stream.
    fn message(&self) -> Value {
        let event = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .next_back();
        let text = event.unwrap_or(&self.body);
        serde_json::from_str(text)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.head, self.body))
    }
}

/// A request's head and body.
fn request(method: &str, headers: &[(&str, &str)], body: &Value) -> String {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut head = format!(
        "{method} /mcp HTTP/1.1\r\nContent-Length: {}\r\n",
        body.len()
    );
    let defaults = [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    for (name, value) in defaults
        .iter()
        .filter(|(name, _)| headers.iter().all(|(other, _)| other != name))
        .chain(headers)
    {
        head += &format!("{name}: {value}\r\n");
    }
    head + "\r\n" + &body
}

async fn post(address: SocketAddr, headers: &[(&str, &str)], body: &Value) -> Answer {
    let headers: Vec<_> = headers
        .iter()
        .copied()
        .chain([("Connection", "close")])
        .collect();
    exchange(address, &request("POST", &headers, body)).await
}

async fn exchange(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    within_patience(stream.read_to_end(&mut bytes)).await;
    let answer = String::from_utf8(bytes).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let answer = Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    };
    match answer.header("transfer-encoding") {
        Some("chunked") => Answer {
            body: joined(body),
            ..answer
        },
        _ => answer,
    }
}

fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body += &rest[..size];
        chunks = rest[size..].trim_start_matches("\r\n");
    }
    body
}

fn call(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Posts a call in a session.
async fn post_call(
    address: SocketAddr,
    headers: &[(&str, &str)],
    method: &str,
    params: Value,
) -> Answer {
    post(address, headers, &call(method, params)).await
}

/// A request of 2026-07-28, with the headers that it needs.
async fn modern(address: SocketAddr, method: &str, mut params: Value) -> Answer {
    params["_meta"] = meta();
    let name = params["uri"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ];
    headers.extend((!name.is_empty()).then_some(("Mcp-Name", name.as_str())));
    post(address, &headers, &call(method, params)).await
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new("x:a", "a", || "text"))
        .unwrap();
    registry
}

fn http(registry: &Registry) -> Http {
    Http::new(Server::new("test", "1", registry.clone()))
}

async fn start(http: Http) -> SocketAddr {
    let bound = http.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = bound.address();
    tokio::spawn(bound.serve());
    address
}

#[tokio::test]
async fn client_with_a_session_is_served() {
    let address = start(http(&registry())).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let initialized = post(address, &[], &call("initialize", initialize(version))).await;
        assert_eq!(initialized.message()["result"]["protocolVersion"], version);
        let session = initialized.header("mcp-session-id").unwrap();
        let headers = [
            ("Mcp-Session-Id", session),
            ("MCP-Protocol-Version", version),
        ];
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(post(address, &headers, &notice).await.status, 202);
        let listed = post(address, &headers, &call("resources/list", json!({}))).await;
        assert_eq!(
            listed.message()["result"],
            json!({ "resources": [{ "uri": "x:a", "name": "a" }] })
        );
        for (method, empty) in [
            ("tools/list", json!({ "tools": [] })),
            ("prompts/list", json!({ "prompts": [] })),
        ] {
            let listed = post(address, &headers, &call(method, json!({}))).await;
            assert_eq!(listed.message()["result"], empty, "{method}");
        }
        let read = post_call(address, &headers, "resources/read", json!({ "uri": "x:a" })).await;
        assert_eq!(read.message()["result"]["contents"][0]["text"], "text");
        let none = post_call(address, &headers, "resources/read", json!({ "uri": "x:b" })).await;
        assert_eq!(none.message()["error"]["code"], -32602);
        let closing: Vec<_> = headers
            .into_iter()
            .chain([("Connection", "close")])
            .collect();
        let ended = exchange(address, &request("DELETE", &closing, &Value::Null)).await;
        // Python's client warns of anything but 200 and 204.
        assert_eq!(ended.status, 204);
        let answer = post(address, &headers, &call("resources/list", json!({}))).await;
        assert_eq!(answer.status, 404);
    }
}

/// Initializes; gives the session.
async fn session(address: SocketAddr, version: &str) -> String {
    let initialized = post(address, &[], &call("initialize", initialize(version))).await;
    let session = initialized.header("mcp-session-id").unwrap().to_owned();
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = post(address, &[("Mcp-Session-Id", session.as_str())], &notice).await;
    assert_eq!(answer.status, 202);
    session
}

#[tokio::test]
async fn batch_of_a_client_of_2025_03_26_is_answered_in_one_stream() {
    let address = start(http(&registry())).await;
    let session = session(address, "2025-03-26").await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    let request = |id: &str, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    let batch = json!([
        notice,
        request("a", "ping"),
        notice,
        request("b", "resources/list")
    ]);
    let answer = post(address, &headers, &batch).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let events = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let mut answers: Vec<Value> = events
        .filter_map(|event| serde_json::from_str(event).ok())
        .collect();
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!(
        answers,
        [
            json!({ "jsonrpc": "2.0", "id": "a", "result": {} }),
            json!({ "jsonrpc": "2.0", "id": "b", "result": { "resources": [{ "uri": "x:a", "name": "a" }] } }),
        ]
    );
    let answer = post(address, &headers, &json!([notice, notice])).await;
    assert_eq!(answer.status, 202);
    let answer = post(address, &[("Mcp-Session-Id", "none")], &batch).await;
    assert_eq!(answer.status, 404);
    let mixed = json!([request("a", "ping"), { "id": "b" }, 5, request("c", "ping")]);
    let answer = post(address, &headers, &mixed).await;
    for expected in [
        r#""id":"a""#,
        r#""id":"b""#,
        r#""id":null"#,
        r#""id":"c""#,
        "-32600",
    ] {
        assert!(
            answer.body.contains(expected),
            "{expected}: {}",
            answer.body
        );
    }
    let modern =
        json!({ "jsonrpc": "2.0", "id": "d", "method": "ping", "params": { "_meta": meta() } });
    let answer = post(address, &headers, &json!([request("a", "ping"), modern])).await;
    let events = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let mut answers = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let refused = answers.find(|answer| answer["id"] == "d").unwrap();
    let error = json!({ "code": -32020, "message": "request _meta protocolVersion requires MCP-Protocol-Version header" });
    assert_eq!(refused["error"], error, "the refusal of the message itself");
}

#[tokio::test]
async fn server_that_is_full_of_sessions_ends_the_one_that_was_not_used_for_the_longest_time() {
    let address = start(http(&registry())).await;
    let initialize = call("initialize", initialize("2025-11-25"));
    let begin = async || {
        post(address, &[], &initialize)
            .await
            .header("mcp-session-id")
            .unwrap()
            .to_owned()
    };
    let list = async |session: &str| {
        post(
            address,
            &[("Mcp-Session-Id", session)],
            &call("resources/list", json!({})),
        )
        .await
        .status
    };
    let (streaming, used, idle) = (begin().await, begin().await, begin().await);
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    let get = request("GET", &[("Mcp-Session-Id", &streaming)], &Value::Null);
    stream.get_mut().write_all(get.as_bytes()).await.unwrap();
    let mut status = String::new();
    within_patience(stream.read_line(&mut status)).await;
    assert!(status.contains("200"), "{status}");
    for _ in 3..1024 {
        begin().await;
    }
    assert_eq!(list(&used).await, 200);
    for _ in 0..2 {
        begin().await;
    }
    assert_eq!(
        (list(&streaming).await, list(&used).await, list(&idle).await),
        (200, 200, 404)
    );
    let at_once: tokio::task::JoinSet<_> = (0..20)
        .map(|_| self::session(address, "2025-11-25"))
        .collect();
    for session in at_once.join_all().await {
        assert_eq!(list(&session).await, 200, "others that begin don't end it");
    }
    let read = modern(address, "resources/read", json!({ "uri": "x:a" })).await;
    assert_eq!(read.message()["result"]["contents"][0]["text"], "text");
    drop(stream);
}

#[tokio::test]
async fn batch_is_refused_where_there_may_be_none() {
    let address = start(http(&registry())).await;
    let ping = || json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]);
    let initialize = json!([call("initialize", initialize("2025-03-26"))]);
    let table = [
        ("2025-06-18", ping()),
        ("2025-11-25", ping()),
        ("2026-07-28", ping()),
        ("2025-03-26", json!([])),
        ("2025-03-26", json!([5])),
        ("2025-03-26", json!([{ "id": 1 }])),
        ("2025-03-26", vec![ping()[0].clone(); 101].into()),
        ("2025-03-26", initialize),
    ];
    for (version, batch) in table {
        let answer = post(address, &[("MCP-Protocol-Version", version)], &batch).await;
        assert_eq!(answer.status, 400, "{version} {batch}");
        let error = answer.message();
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (&json!(null), &json!(-32600))
        );
    }
}

#[tokio::test]
async fn body_that_is_no_message_is_refused() {
    let address = start(http(&registry())).await;
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n";
    let table = [
        ("application/json", "{", 400, Some(-32700)),
        ("application/json; charset=utf-8", "", 400, Some(-32700)),
        ("application/json", "5", 400, Some(-32600)),
        (
            "application/json",
            r#"{"id":1,"method":"ping"}"#,
            400,
            Some(-32600),
        ),
        ("text/plain", "{", 415, None),
    ];
    for (content_type, body, status, code) in table {
        let length = body.len();
        let request =
            format!("{head}Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}");
        let answer = exchange(address, &request).await;
        assert_eq!(answer.status, status, "{body}");
        if let Some(code) = code {
            let message = answer.message();
            assert_eq!(
                (&message["id"], &message["error"]["code"]),
                (&json!(null), &json!(code)),
                "{body}"
            );
        }
    }
}

#[tokio::test]
async fn request_of_2026_07_28_is_refused_as_the_revision_says() {
    let address = start(http(&registry())).await;
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let read = ("Mcp-Method", "resources/read");
    let list = ("Mcp-Method", "resources/list");
    let with_meta = |mut params: Value| {
        params["_meta"] = meta();
        params
    };
    let mut other = with_meta(json!({}));
    other["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let a = || with_meta(json!({ "uri": "x:a" }));
    let table = [
        (
            vec![version],
            "resources/list",
            with_meta(json!({})),
            400,
            -32020,
        ),
        (
            vec![list],
            "resources/list",
            with_meta(json!({})),
            400,
            -32020,
        ),
        (
            vec![("MCP-Protocol-Version", "2025-11-25"), list],
            "resources/list",
            with_meta(json!({})),
            400,
            -32020,
        ),
        (vec![version, list], "resources/read", a(), 400, -32020),
        (vec![version, read], "resources/read", a(), 400, -32020),
        (
            vec![version, read, ("Mcp-Name", "x:b")],
            "resources/read",
            a(),
            400,
            -32020,
        ),
        (
            vec![version, list],
            "resources/list",
            json!({}),
            400,
            -32602,
        ),
        (
            vec![("MCP-Protocol-Version", "2030-01-01"), list],
            "resources/list",
            other,
            400,
            -32022,
        ),
        (
            vec![version, ("Mcp-Method", "ping")],
            "ping",
            with_meta(json!({})),
            404,
            -32601,
        ),
        (
            vec![version, ("Mcp-Method", "no/such")],
            "no/such",
            with_meta(json!({})),
            404,
            -32601,
        ),
    ];
    for (headers, method, params, status, code) in table {
        let answer = post(address, &headers, &call(method, params)).await;
        let message = answer.message();
        assert_eq!(
            (answer.status, &message["error"]["code"]),
            (status, &json!(code)),
            "{headers:?} {message}"
        );
        assert_eq!(message["id"], 1);
    }
    for method in ["GET", "DELETE"] {
        let closing = [version, ("Connection", "close")];
        let answer = exchange(address, &request(method, &closing, &Value::Null)).await;
        assert_eq!(answer.status, 405, "{method}");
    }
}

#[tokio::test]
async fn results_of_2026_07_28_always_have_a_ttl() {
    let address = start(http(&registry())).await;
    let requests = [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "x:a" })),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
    ];
    for (method, params) in requests {
        let result = &modern(address, method, params).await.message()["result"];
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(0), &json!("private")),
            "{method}"
        );
    }
}

#[tokio::test]
async fn body_that_is_too_long_is_refused() {
    let address = start(http(&registry())).await;
    let long = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "x".repeat(5 << 20) } });
    let request = request("POST", &[("Connection", "close")], &long);
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before all was written.
    _ = stream.write_all(request.as_bytes()).await;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}

#[tokio::test]
async fn body_of_too_many_values_is_refused_before_it_is_read() {
    let address = start(http(&registry())).await;
    let numbers = |count: usize| call("ping", json!({ "x": vec![0; count] }));
    let refused = post(address, &[], &numbers(100_001)).await;
    assert_eq!(
        (refused.status, &refused.message()["error"]["code"]),
        (400, &json!(-32600))
    );
    let initialize = post(address, &[], &call("initialize", initialize("2025-11-25"))).await;
    let headers = [(
        "Mcp-Session-Id",
        initialize.header("mcp-session-id").unwrap(),
    )];
    assert_eq!(post(address, &headers, &numbers(90_000)).await.status, 200);
}

#[tokio::test]
async fn client_without_a_session_is_served() {
    let address = start(http(&registry())).await;
    let discovered = modern(address, "server/discover", json!({}))
        .await
        .message();
    assert_eq!(
        discovered["result"]["capabilities"]["resources"],
        json!({ "listChanged": true, "subscribe": true })
    );
    let listed = modern(address, "resources/list", json!({})).await.message();
    assert_fields!(listed["result"], {"resources": [{ "uri": "x:a", "name": "a" }]});
    assert_eq!(listed["result"]["resultType"], "complete");
    let read = modern(address, "resources/read", json!({ "uri": "x:a" })).await;
    assert_eq!((read.status, read.header("mcp-session-id")), (200, None));
    assert_eq!(read.message()["result"]["contents"][0]["text"], "text");
    let none = modern(address, "resources/read", json!({ "uri": "x:b" }))
        .await
        .message();
    assert_eq!(
        (&none["error"]["code"], &none["error"]["data"]["uri"]),
        (&json!(-32602), &json!("x:b"))
    );
}

/// Reads the events of a stream until one has this method.
async fn event(stream: &mut BufReader<TcpStream>, method: &str) -> Value {
    let read = async {
        loop {
            let mut line = String::new();
            assert!(
                stream.read_line(&mut line).await.unwrap() > 0,
                "the stream ended"
            );
            let Some(data) = line.trim().strip_prefix("data: ") else {
                continue;
            };
            let message: Value = serde_json::from_str(data).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect(method)
}

#[tokio::test]
async fn session_hears_of_changes_on_its_stream() {
    let registry = registry();
    let address = start(http(&registry)).await;
    let initialized = post(address, &[], &call("initialize", initialize("2025-11-25"))).await;
    let session = initialized.header("mcp-session-id").unwrap();
    let headers = [
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    post(
        address,
        &headers,
        &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    )
    .await;
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = BufReader::new(stream);
    stream
        .write_all(request("GET", &headers, &Value::Null).as_bytes())
        .await
        .unwrap();
    let subscribed = post_call(
        address,
        &headers,
        "resources/subscribe",
        json!({ "uri": "x:a" }),
    )
    .await;
    assert_eq!(subscribed.message()["result"], json!({}));
    registry.notify_updated("x:a");
    assert_eq!(
        event(&mut stream, "notifications/resources/updated").await["params"]["uri"],
        "x:a"
    );
    registry.unregister_resource("x:a");
    event(&mut stream, "notifications/resources/list_changed").await;
}

#[tokio::test]
async fn listener_hears_of_changes_in_its_answer() {
    let registry = registry();
    let address = start(http(&registry)).await;
    let mut params = json!({ "notifications": { "resourceSubscriptions": ["x:a"], "resourcesListChanged": true } });
    params["_meta"] = meta();
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    let body = call("subscriptions/listen", params);
    stream
        .write_all(request("POST", &headers, &body).as_bytes())
        .await
        .unwrap();
    event(&mut stream, "notifications/subscriptions/acknowledged").await;
    registry.notify_updated("x:a");
    assert_eq!(
        event(&mut stream, "notifications/resources/updated").await["params"]["uri"],
        "x:a"
    );
    registry.unregister_resource("x:a");
    event(&mut stream, "notifications/resources/list_changed").await;
}

#[tokio::test]
async fn requests_in_the_name_of_another_host_or_page_are_refused() {
    let address = start(http(&registry())).await;
    let body = call("initialize", initialize("2025-11-25"));
    let own = format!("http://127.0.0.1:{}", address.port());
    let table = [
        ("Host", "evil.example", 403),
        ("Host", "evil.example:80", 403),
        ("Host", "localhost.evil.example", 403),
        ("Host", "127.0.0.1.evil.example", 403),
        ("Host", "0.0.0.0", 403),
        ("Host", "localhost", 200),
        ("Host", "localhost:9999", 200),
        ("Host", "[::1]:80", 200),
        ("Origin", "http://evil.example", 403),
        ("Origin", "https://localhost.evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "nonsense", 403),
        ("Origin", "http://localhost:6274", 200),
        ("Origin", own.as_str(), 200),
    ];
    for (name, value, status) in table {
        let answer = post(address, &[(name, value)], &body).await;
        assert_eq!(answer.status, status, "{name}: {value}: {}", answer.body);
    }
}

#[tokio::test]
async fn requests_that_name_two_hosts_pages_tokens_or_sessions_are_refused() {
    let address = start(http(&registry())).await;
    let body = call("initialize", initialize("2025-11-25"));
    let pair = |name, one, other| [(name, one), (name, other)];
    let page = "http://localhost";
    for headers in [
        pair("Host", "localhost", "evil.example"),
        pair("Host", "evil.example", "localhost"),
        pair("Host", "localhost", "localhost"),
        pair("Origin", page, "http://evil.example"),
        pair("Authorization", "Bearer good", "Bearer bad"),
        pair("Mcp-Session-Id", "one", "another"),
    ] {
        let answer = post(address, &headers, &body).await;
        assert_eq!(answer.status, 400, "{headers:?}");
    }
    let close = ("Connection", "close");
    for (host, status) in [("evil.example", 400), ("LOCALHOST", 200)] {
        let request = request("POST", &[("Host", "localhost"), close], &body);
        let request = request.replacen(" /mcp ", &format!(" http://{host}/mcp "), 1);
        assert_eq!(exchange(address, &request).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn named_hosts_and_origins_take_the_place_of_the_loopback() {
    let named = http(&registry())
        .allowed_hosts(["notes.example"])
        .allowed_origins(["https://app.example:443"]);
    let address = start(named).await;
    let body = call("initialize", initialize("2025-11-25"));
    let table = [
        ("notes.example", "https://app.example", 200),
        ("localhost", "https://app.example", 403),
        ("notes.example", "http://localhost:1", 403),
    ];
    for (host, origin, status) in table {
        let answer = post(address, &[("Host", host), ("Origin", origin)], &body).await;
        assert_eq!(answer.status, status, "{host} {origin}");
    }
}

#[tokio::test]
async fn token_is_needed_where_it_is_set() {
    let address = start(http(&registry()).token("s3cret")).await;
    let body = call("initialize", initialize("2025-11-25"));
    let refused = post(address, &[], &body).await;
    assert_eq!(
        (refused.status, refused.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    let table = [
        ("Bearer s3cret", 200),
        ("bearer s3cret", 200),
        ("Bearer s3creT", 401),
        ("Bearer s3cre", 401),
        ("Bearer s3cret2", 401),
        ("Bearer ", 401),
        ("Basic s3cret", 401),
        ("s3cret", 401),
    ];
    for (value, status) in table {
        let answer = post(address, &[("Authorization", value)], &body).await;
        assert_eq!(answer.status, status, "{value}");
    }
}

#[tokio::test]
async fn token_that_no_client_can_send_is_refused() {
    let mut tokens = vec!["".into(), "two words".into(), "tök".into(), "a\n".into()];
    #[cfg(unix)]
    tokens.push(std::os::unix::ffi::OsStringExt::from_vec(b"\xff".to_vec()));
    for token in tokens {
        let token: std::ffi::OsString = token;
        let bound = http(&registry())
            .token(&token)
            .bind(([127, 0, 0, 1], 0).into())
            .await;
        assert!(
            matches!(bound, Err(ServeError::UnsendableToken)),
            "{token:?}"
        );
    }
}

#[tokio::test]
async fn other_machines_are_served_with_a_token_and_named_hosts_only() {
    let everywhere: SocketAddr = ([0, 0, 0, 0], 0).into();
    let exposed = [
        http(&registry()),
        http(&registry()).token("t"),
        http(&registry()).allowed_hosts(["a.example"]),
    ];
    for http in exposed {
        assert!(matches!(
            http.bind(everywhere).await,
            Err(ServeError::Exposed { .. })
        ));
    }
    http(&registry())
        .token("t")
        .allowed_hosts(["a.example"])
        .bind(everywhere)
        .await
        .unwrap();
}

#[tokio::test]
async fn address_in_use_is_an_error_that_names_it() {
    let address = start(http(&registry())).await;
    let error = http(&registry()).bind(address).await.unwrap_err();
    let ServeError::Bind { source, .. } = &error else {
        panic!("{error:?}")
    };
    let message =
        format!("{address} can't be used; choose another port, or 0 for any free port: {source}");
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn other_paths_are_not_found() {
    let address = start(http(&registry())).await;
    let elsewhere = "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(exchange(address, elsewhere).await.status, 404);
}

#[tokio::test]
async fn server_that_is_dropped_closes_its_connections() {
    let bound = http(&registry())
        .bind(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let address = bound.address();
    let serving = tokio::spawn(bound.serve());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(request("POST", &[], &call("initialize", initialize("2025-11-25"))).as_bytes())
        .await
        .unwrap();
    stream.read_u8().await.unwrap();
    serving.abort();
    let mut rest = Vec::new();
    within_patience(stream.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn notes_serves_over_http() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.md"), "text").unwrap();
    let mut command = Command::new(example("notes"));
    command
        .args(["--http", "127.0.0.1:0"])
        .arg(directory.path())
        .env("NOTES_TOKEN", "t");
    let mut child = command
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .await
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap()
        .parse()
        .unwrap();
    let body = call("initialize", initialize("2025-11-25"));
    assert_eq!(post(address, &[], &body).await.status, 401);
    let initialized = post(address, &[("Authorization", "Bearer t")], &body)
        .await
        .message();
    assert_eq!(initialized["result"]["serverInfo"]["title"], "Notes");
}

#[tokio::test]
async fn notes_with_a_token_that_is_set_to_nothing_serves_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(example("notes"));
    command
        .args(["--http", "127.0.0.1:0"])
        .arg(directory.path())
        .env("NOTES_TOKEN", "");
    let output = within_patience(command.kill_on_drop(true).output()).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .starts_with("error: the token is empty")
    );
}
