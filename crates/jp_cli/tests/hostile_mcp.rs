//! Checks the modes of the MCP server that the client's tests use.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use testing::{
    assert_contains, assert_fields, assert_starts,
    hostile::{self, program},
    items, texts,
};

const MODERN: &str = "2026-07-28";

fn spawn(arguments: &[&str]) -> Child {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        .spawn()
        .expect("the server is not built; `cargo build -p jp_cli --example hostile_mcp` does it")
}

/// A server over stdio, and how many requests it was sent.
struct Peer {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    requests: u64,
}

impl Peer {
    fn start(mode: &str) -> Self {
        Self::of(spawn(&[mode]))
    }

    fn of(mut child: Child) -> Self {
        let (stdin, stdout) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        Self {
            child,
            stdin,
            stdout,
            requests: 0,
        }
    }

    /// A server whose client supports elicitation, in 2025-11-25.
    fn initialized(mode: &str) -> Self {
        let mut peer = Self::start(mode);
        let result = peer.ask("initialize", &initialize());
        assert_eq!(result["result"]["protocolVersion"], "2025-11-25");
        peer
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// Sends a request and returns its id.
    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.stdout.read_until(b'\n', &mut line).unwrap();
        line
    }

    fn message(&mut self) -> Value {
        serde_json::from_slice(&self.line()).unwrap()
    }

    /// Sends a request and returns the next message, which is its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        let message = self.message();
        assert_eq!(message["id"], id, "{message}");
        message
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Closes stdin; returns the exit status with the rest of stdout and stderr.
    fn finish(self) -> (Option<i32>, String, String) {
        let Self {
            child,
            stdin,
            mut stdout,
            ..
        } = self;
        drop(stdin);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        let run = testing::finish(child);
        (Some(run.code), rest, run.stderr)
    }
}

fn initialize() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {"form": {}, "url": {}}},
        "clientInfo": {"name": "test", "version": "1"},
    })
}

/// The parameters of a request of 2026-07-28.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
    });
    params
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{message}"))
}

fn names(message: &Value) -> Vec<&str> {
    let tools = items(&message["result"]["tools"]);
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

// -- the well-behaved ones -----------------------------------------------------------------------------------------

#[test]
fn good_is_a_server_of_2025_11_25() {
    let mut peer = Peer::start("good");
    assert_eq!(
        peer.ask("server/discover", &modern(json!({})))["error"]["code"],
        -32601
    );
    peer.ask("initialize", &initialize());
    assert!(names(&peer.ask("tools/list", &json!({}))).starts_with(&[
        "echo",
        "peek",
        "fetch",
        "many_blocks"
    ]));
    assert_eq!(text(&peer.call("echo", &json!({"text": "hi"}))), "hi");
    assert_eq!(
        peer.call("fetch", &json!({}))["result"]["content"][1]["resource"]["uri"],
        "repo://owner/repo/sha/abc/contents/src/main.rs"
    );
    assert_eq!(
        peer.ask("resources/read", &json!({"uri": "note:both"}))["result"]["contents"],
        json!([
            {"uri": "note:both", "mimeType": "text/plain", "text": "Both of them."},
            {"uri": "note:both", "mimeType": "application/octet-stream", "blob": "AAECAwQF"},
        ])
    );
    assert_eq!(
        peer.ask("resources/read", &json!({"uri": "note:x"}))["error"]["code"],
        -32002
    );
    let completed = peer.ask(
        "completion/complete",
        &json!({"ref": {"type": "ref/resource", "uri": "note:{name}{?lang}"}, "argument": {"name": "name", "value": "b"}}),
    );
    assert_fields!(completed["result"]["completion"], {"values": ["both", "blob"]});
    let (status, rest, stderr) = peer.finish();
    assert_eq!((status, &*rest, &*stderr), (Some(0), "", ""));
}

#[test]
fn good_repeats_the_answer_to_its_question() {
    let mut peer = Peer::initialized("good");
    let call = peer.request("tools/call", &json!({"name": "ask"}));
    let question = peer.message();
    assert_eq!(question["method"], "elicitation/create");
    assert_fields!(question["params"]["requestedSchema"], {"required": ["name"]});
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    let answer = peer.message();
    assert_eq!(
        (&answer["id"], text(&answer)),
        (&json!(call), r#"The answer was: {"action":"decline"}"#)
    );

    peer.request("tools/call", &json!({"name": "visit"}));
    let question = peer.message();
    assert_eq!(
        question["params"],
        json!({
            "mode": "url", "message": "Please log in.", "url": "https://example.test/login", "elicitationId": "login-1",
        })
    );
}

#[test]
fn good_does_not_ask_a_client_that_can_not_be_asked() {
    let mut peer = Peer::start("good");
    peer.ask(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
    );
    assert_eq!(peer.call("ask", &json!({}))["error"]["code"], -32021);
}

#[test]
fn good_sends_notifications() {
    let mut peer = Peer::initialized("good");
    peer.request(
        "tools/call",
        &json!({"name": "slow", "arguments": {"pause": 0}, "_meta": {"progressToken": "p"}}),
    );
    let steps: Vec<Value> = (0..3)
        .map(|_| peer.message()["params"]["progress"].clone())
        .collect();
    assert_eq!(steps, [1, 2, 3]);
    assert_eq!(peer.message()["method"], "notifications/message");
    assert_eq!(text(&peer.message()), "Done, in three steps.");

    peer.request("tools/call", &json!({"name": "grow"}));
    assert_eq!(peer.message()["method"], "notifications/tools/list_changed");
    peer.message();
    assert!(names(&peer.ask("tools/list", &json!({}))).contains(&"grown"));

    peer.ask("resources/subscribe", &json!({"uri": "note:one"}));
    peer.request("tools/call", &json!({"name": "touch"}));
    assert_eq!(peer.message()["params"], json!({"uri": "note:one"}));
    peer.message();
    let read = peer.ask("resources/read", &json!({"uri": "note:one"}));
    assert_fields!(read["result"]["contents"][0], {"text": "The first note, version 2."});
}

#[test]
fn good_confirms_a_cancellation_without_an_answer() {
    let mut peer = Peer::initialized("good");
    let call = peer.request(
        "tools/call",
        &json!({"name": "slow", "arguments": {"pause": 200}}),
    );
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}});
    peer.send(&cancel);
    let heard: Value = serde_json::from_str(text(&peer.call("heard", &json!({})))).unwrap();
    assert_fields!(heard, {"requests": ["initialize", "tools/call slow", "tools/call heard"]});
    assert_eq!(
        heard["notifications"],
        json!([{"method": "notifications/cancelled", "params": {"requestId": call}}])
    );
    assert_eq!(peer.finish().1, "");
}

#[test]
fn modern_is_a_server_of_2026_07_28() {
    let mut peer = Peer::start("modern");
    let discovered = peer.ask("server/discover", &modern(json!({})));
    assert_eq!(discovered["result"]["supportedVersions"], json!([MODERN]));
    assert_eq!(peer.ask("tools/list", &json!({}))["error"]["code"], -32602);
    let mut other = modern(json!({}));
    other["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    assert_eq!(
        peer.ask("tools/list", &other)["error"],
        json!({
            "code": -32022, "message": "unsupported protocol version",
            "data": {"requested": "2030-01-01", "supported": [MODERN]},
        })
    );
    let read = peer.ask("resources/read", &modern(json!({"uri": "note:one"})));
    let result = &read["result"];
    assert_fields!(result, {"resultType": "complete", "ttlMs": 5000, "cacheScope": "private"});
    assert_eq!(
        peer.ask("initialize", &modern(initialize()))["error"]["code"],
        -32601
    );
}

#[test]
fn modern_takes_the_answer_with_a_second_call_once() {
    let mut peer = Peer::start("modern");
    let asked = peer.ask("tools/call", &modern(json!({"name": "ask"})));
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_fields!(asked["result"]["inputRequests"]["question"], {"method": "elicitation/create"});
    let retry = modern(json!({
        "name": "ask",
        "requestState": asked["result"]["requestState"],
        "inputResponses": {"question": {"action": "accept", "content": {"name": "Ann"}}},
    }));
    assert_eq!(
        text(&peer.ask("tools/call", &retry)),
        r#"The answer was: {"action":"accept","content":{"name":"Ann"}}"#
    );
    assert_eq!(peer.ask("tools/call", &retry)["error"]["code"], -32602);
}

#[test]
fn modern_tells_subscribers_of_updates() {
    let mut peer = Peer::start("modern");
    let wants = json!({"resourceSubscriptions": ["note:one"]});
    let id = peer.request(
        "subscriptions/listen",
        &modern(json!({"notifications": wants})),
    );
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    assert_eq!(
        peer.message(),
        json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": wants, "_meta": meta},
        })
    );
    peer.request("tools/call", &modern(json!({"name": "touch"})));
    assert_eq!(
        peer.message(),
        json!({
            "jsonrpc": "2.0", "method": "notifications/resources/updated",
            "params": {"uri": "note:one", "_meta": meta},
        })
    );
}

// -- the hostile ones ----------------------------------------------------------------------------------------------

#[test]
fn only_listed_modes_are_accepted() {
    let run = testing::finish(spawn(&["--list"]));
    let list = run.stdout;
    assert_eq!(list.lines().count(), 33);
    assert!(
        list.lines()
            .all(|line| line.contains(". (") || line.ends_with('.')),
        "{list}"
    );
    for (arguments, message) in [
        (
            &["nice"][..],
            "there is no mode nice; `hostile_mcp --list` says which there are\n",
        ),
        (
            &["http-401"],
            "the mode http-401 is for HTTP: add `--http PORT-FILE`\n",
        ),
        (
            &["rubbish", "--http", "x"],
            "the mode rubbish is for stdio: leave `--http` out\n",
        ),
    ] {
        let run = testing::finish(spawn(arguments));
        assert_eq!(run.stderr, message);
        assert_eq!(run.code, 2);
    }
}

#[test]
fn rubbish_stands_before_each_answer() {
    let mut peer = Peer::start("rubbish");
    for number in 1..=8 {
        let id = peer.request("tools/list", &json!({}));
        let rubbish = serde_json::from_slice::<Value>(&peer.line());
        assert!(
            rubbish.is_err() || rubbish.unwrap().get("jsonrpc").is_none(),
            "line {number}"
        );
        assert_eq!(peer.message()["id"], id);
    }
}

#[test]
fn dying_servers_leave_half_a_message() {
    let mut peer = Peer::initialized("dies");
    peer.request("tools/call", &json!({"name": "echo"}));
    let (status, rest, stderr) = peer.finish();
    assert_eq!(
        (status, &*rest, &*stderr),
        (
            Some(3),
            r#"{"jsonrpc":"2.0","id":"#,
            "\u{1b}[31mfatal:\u{1b}[0m the disk is full\nthe server gives up\n"
        )
    );
    let (status, rest, stderr) = Peer::start("dies-at-start").finish();
    assert_eq!((status, &*rest, stderr.lines().count()), (Some(1), "", 30));
}

#[test]
fn silent_servers_answer_nothing() {
    let mut peer = Peer::start("silent");
    peer.request("initialize", &initialize());
    assert_eq!(peer.finish(), (Some(0), String::new(), String::new()));

    let mut peer = Peer::initialized("silent-call");
    peer.request("tools/call", &json!({"name": "echo"}));
    peer.request("resources/read", &json!({"uri": "note:one"}));
    assert_eq!(names(&peer.ask("tools/list", &json!({}))), ["echo", "peek"]);
}

#[test]
fn answers_come_under_a_wrong_id() {
    let mut peer = Peer::initialized("wrong-id");
    peer.request(
        "tools/call",
        &json!({"name": "echo", "arguments": {"text": "hi"}}),
    );
    let answer = peer.message();
    assert_eq!((&answer["id"], text(&answer)), (&json!(987_654), "hi"));
}

#[test]
fn lists_are_long_endless_or_go_in_circles() {
    let mut peer = Peer::initialized("many-tools");
    let listed = peer.ask("tools/list", &json!({}));
    let mut all = names(&listed);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 10_000);

    let mut peer = Peer::initialized("many-pages");
    let mut cursor = Value::Null;
    for page in 1..=20 {
        let listed = peer.ask("tools/list", &json!({"cursor": cursor}));
        assert_eq!(names(&listed).len(), 10);
        cursor = listed["result"]["nextCursor"].clone();
        assert_eq!(cursor, page.to_string());
    }

    let mut peer = Peer::initialized("cursor-loop");
    for cursor in [Value::Null, json!("again"), json!("again")] {
        assert_eq!(
            peer.ask("tools/list", &json!({"cursor": cursor}))["result"]["nextCursor"],
            "again"
        );
    }
}

#[test]
fn large_answers_are_as_large_as_they_say() {
    let mut peer = Peer::initialized("huge-blob");
    peer.request("resources/read", &json!({"uri": "note:one"}));
    assert!(peer.line().len() > 100_000_000);

    let mut peer = Peer::initialized("huge-line");
    peer.request("tools/call", &json!({"name": "echo"}));
    drop(peer.stdin);
    assert_eq!(
        io::copy(&mut peer.stdout, &mut io::sink()).unwrap(),
        300_000_000
    );
    assert_eq!(peer.child.wait().unwrap().code(), Some(0));

    let mut peer = Peer::initialized("many-blocks");
    assert_eq!(
        items(&peer.call("echo", &json!({}))["result"]["content"]).len(),
        100_000
    );
}

#[test]
fn only_rubbish_comes_to_an_end() {
    let mut peer = Peer::start("only-rubbish");
    peer.request("initialize", &initialize());
    assert!(serde_json::from_slice::<Value>(&peer.line()).is_err());
    drop(peer.stdin);
    assert!(io::copy(&mut peer.stdout, &mut io::sink()).unwrap() > 199_000_000);
    assert_eq!(peer.child.wait().unwrap().code(), Some(0));
}

#[test]
fn blobs_are_no_base64_between_blocks_that_are_fine() {
    let mut peer = Peer::initialized("bad-base64");
    let called = peer.call("echo", &json!({}));
    let content = &called["result"]["content"];
    assert_eq!(
        (&content[0]["text"], &content[3]["text"]),
        (&json!("Before."), &json!("After."))
    );
    let read = peer.ask("resources/read", &json!({"uri": "note:one"}));
    let blobs = [
        &content[1]["data"],
        &content[2]["resource"]["blob"],
        &read["result"]["contents"][0]["blob"],
    ];
    assert_eq!(blobs, ["!!! this is not base64 !!!"; 3]);
}

#[test]
fn paths_that_escape_are_offered() {
    let mut peer = Peer::initialized("path-escape");
    let listed = peer.ask("resources/list", &json!({}));
    let uris: Vec<&str> = texts(items(&listed["result"]["resources"]), "uri");
    assert!(uris.starts_with(&[
        "note:one",
        "file:///../../etc/passwd",
        "file:///etc/passwd",
        "../../secret",
    ]));
    let links = peer.call("echo", &json!({}));
    assert_eq!(
        items(&links["result"]["content"]).len(),
        2 * (uris.len() - 1)
    );
    for uri in &uris[1..] {
        let read = peer.ask("resources/read", &json!({"uri": uri}));
        assert_eq!(
            read["result"]["contents"][0],
            json!({"uri": uri, "text": "The server's own words."})
        );
    }
}

#[test]
fn escapes_are_in_all_that_is_shown() {
    let mut peer = Peer::initialized("escapes");
    peer.request("tools/call", &json!({"name": "ask"}));
    let shown = [
        peer.message()["params"]["message"].clone(),
        peer.ask("tools/list", &json!({}))["result"]["tools"][2]["title"].clone(),
        peer.ask("resources/list", &json!({}))["result"]["resources"][1]["name"].clone(),
        peer.call("echo", &json!({}))["result"]["content"][0]["text"].clone(),
        peer.call("fail", &json!({}))["result"]["content"][0]["text"].clone(),
    ];
    assert!(shown.iter().all(|text| text == &shown[0]), "{shown:?}");
    let text = shown[0].as_str().unwrap();
    assert!(
        ['\u{1b}', '\u{9b}', '\u{202e}', '\n']
            .iter()
            .all(|&hostile| text.contains(hostile)),
        "{text:?}"
    );
}

#[test]
fn schemas_refer_to_the_network_or_are_none() {
    let mut command = Command::new(program());
    command
        .arg("ref-network")
        .env("HOSTILE_REF", "4711")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut peer = Peer::of(command.spawn().unwrap());
    let tools = peer.ask("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(
        tools[2]["inputSchema"]["properties"]["elsewhere"],
        json!({"$ref": "http://127.0.0.1:4711/schema.json"})
    );

    let tools =
        Peer::initialized("bad-schema").ask("tools/list", &json!({}))["result"]["tools"].clone();
    let schemas: Vec<&Value> = items(&tools)[2..6]
        .iter()
        .map(|tool| &tool["inputSchema"])
        .collect();
    assert_eq!(
        schemas,
        [
            &json!("object"),
            &json!({"properties": {}}),
            &json!(true),
            &Value::Null
        ]
    );
}

#[test]
fn links_have_no_end() {
    let mut peer = Peer::initialized("self-link");
    assert_eq!(
        peer.call("echo", &json!({}))["result"]["content"][0]["uri"],
        "note:self"
    );
    let read = peer.ask("resources/read", &json!({"uri": "note:self"}));
    assert_contains(
        read["result"]["contents"][0]["text"].as_str().unwrap(),
        "note:self",
    );

    let mut peer = Peer::initialized("link-loop");
    let called = peer.call("echo", &json!({}));
    let links = items(&called["result"]["content"]);
    assert!(links.len() == 1000 && links.iter().all(|link| link == &links[0]));
}

#[test]
fn questions_have_no_end_in_either_era() {
    let mut peer = Peer::initialized("asks-forever");
    peer.request("tools/call", &json!({"name": "echo"}));
    for _ in 0..50 {
        let question = peer.message();
        assert_eq!(question["method"], "elicitation/create");
        peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}}));
    }

    let mut peer = Peer::start("rounds-forever");
    let mut params = modern(json!({"name": "echo"}));
    let mut states = Vec::new();
    for _ in 0..50 {
        let asked = peer.ask("tools/call", &params);
        assert_eq!(asked["result"]["resultType"], "input_required");
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({"question": {"action": "cancel"}});
        states.push(params["requestState"].clone());
    }
    states.dedup();
    assert_eq!(states.len(), 50);
}

// -- over HTTP -----------------------------------------------------------------------------------------------------

/// A server over HTTP; it ends when its stdin, which the child holds, is closed.
struct Listening(hostile::Listening);

impl Listening {
    fn start(mode: &str) -> Self {
        let server = hostile::Listening::start(mode);
        let port = fs::read_to_string(server.directory.path().join("port")).unwrap();
        assert_eq!(port, server.port.to_string());
        Self(server)
    }

    /// Sends a request to `/mcp` and returns the whole response.
    fn send(&self, method: &str, headers: &str, body: &str) -> String {
        let mut stream = self.connect(method, headers, body);
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    fn connect(&self, method: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.0.port)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    fn post(&self, headers: &str, method: &str, params: &Value) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send("POST", headers, &body.to_string())
    }
}

fn body(response: &str) -> Value {
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1)
        .unwrap_or_else(|_| panic!("{response}"))
}

#[test]
fn http_uses_json_for_answers_but_events_for_questions() {
    let server = Listening::start("good");
    let initialized = server.post("", "initialize", &initialize());
    assert_contains(&initialized, "\r\nmcp-session-id: hostile-1\r\n");
    assert_eq!(
        body(&initialized)["result"]["serverInfo"]["name"],
        "hostile"
    );
    assert!(server.send("GET", "", "").starts_with("HTTP/1.1 405 "));
    assert_starts(server.post("", "tools/list", &json!({})), "HTTP/1.1 400 ");

    let session = "mcp-session-id: hostile-1\r\n";
    let call =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ask"}});
    let mut events = BufReader::new(server.connect("POST", session, &call.to_string())).lines();
    let mut event = || {
        let line = events
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.starts_with("data: "))
            .unwrap();
        serde_json::from_str::<Value>(&line[6..]).unwrap()
    };
    let question = event();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}});
    assert_starts(
        server.send("POST", session, &answer.to_string()),
        "HTTP/1.1 202 ",
    );
    assert_eq!(text(&event()), r#"The answer was: {"action":"cancel"}"#);
}

#[test]
fn http_headers_must_agree_with_the_message_in_2026_07_28() {
    let server = Listening::start("modern");
    let headers = format!("mcp-protocol-version: {MODERN}\r\nmcp-method: tools/list\r\n");
    assert!(
        body(&server.post(&headers, "tools/list", &modern(json!({}))))["result"]["tools"]
            .is_array()
    );
    let refused = server.post(&headers, "resources/list", &modern(json!({})));
    assert!(refused.starts_with("HTTP/1.1 400 "));
    assert_eq!(body(&refused)["error"]["code"], -32020);
}

#[test]
fn http_failures_are_what_they_are_called() {
    for (mode, start) in [
        ("http-401", "HTTP/1.1 401 "),
        ("http-403", "HTTP/1.1 403 "),
        ("http-404", "HTTP/1.1 404 "),
        ("http-500", "HTTP/1.1 500 "),
        (
            "http-html",
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n",
        ),
    ] {
        let response = Listening::start(mode).post("", "initialize", &initialize());
        assert!(response.starts_with(start), "{mode}: {response}");
    }
    let half = Listening::start("http-half").post("", "initialize", &initialize());
    assert!(
        half.contains("content-length: 1000\r\n") && half.ends_with(r#"{"jsonrpc":"2.0","#),
        "{half}"
    );
}

#[test]
fn hanging_server_ends_with_its_stdin() {
    let mut server = Listening::start("http-hang");
    let mut stream = server.connect("POST", "", "{}");
    drop(server.0.child.stdin.take());
    let mut answer = Vec::new();
    // The connection breaks with the server; whether with an error is the system's choice.
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(
        (answer, server.0.child.wait().unwrap().code()),
        (Vec::new(), Some(0))
    );
}

#[test]
fn redirected_requests_are_written_down() {
    let server = Listening::start("http-redirect");
    let record = server.0.directory.path().join("port.redirected");
    let response = server.post("", "initialize", &initialize());
    assert_eq!(fs::read_to_string(&record).unwrap(), "");
    let to = response
        .lines()
        .find_map(|line| line.strip_prefix("location: http://"))
        .unwrap();
    let mut stream = TcpStream::connect(to.strip_suffix("/mcp").unwrap()).unwrap();
    stream
        .write_all(b"GET /mcp HTTP/1.1\r\nauthorization: Bearer secret\r\n\r\n")
        .unwrap();
    io::copy(&mut stream, &mut io::sink()).unwrap();
    let record = fs::read_to_string(&record).unwrap();
    assert!(
        record.starts_with("a connection\nGET /mcp ") && record.contains("Bearer secret"),
        "{record}"
    );
}

#[test]
fn new_session_replaces_a_lost_one() {
    let server = Listening::start("http-session-lost");
    server.post("", "initialize", &initialize());
    let echo = json!({"name": "echo", "arguments": {"text": "hi"}});
    let first = "mcp-session-id: hostile-1\r\n";
    assert_eq!(text(&body(&server.post(first, "tools/call", &echo))), "hi");
    assert_starts(server.post(first, "tools/call", &echo), "HTTP/1.1 404 ");
    server.post("", "initialize", &initialize());
    for _ in 0..2 {
        let second = "mcp-session-id: hostile-2\r\n";
        assert_eq!(text(&body(&server.post(second, "tools/call", &echo))), "hi");
    }
}
