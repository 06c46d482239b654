//! `jp mcp serve`: the real binary as a server, with clients that write JSON lines, over HTTP, and `jp` itself.

#![cfg(unix)]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testing::{
    Background, Sandbox, answering, assert_contains, assert_fields, assert_lacks, assert_starts,
    items,
};

/// How long an answer may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// With `initialize`.
    Legacy,
    /// With `_meta` in each request.
    Modern,
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A client of `jp mcp serve`.
struct Client {
    link: Link,
    messages: Receiver<Value>,
    notices: Vec<Value>,
    era: Era,
    next: u64,
}

enum Link {
    Stdio {
        process: Child,
        input: Option<ChildStdin>,
    },
    Http {
        address: String,
        session: Option<String>,
        sender: Sender<Value>,
    },
}

impl Client {
    fn new(sandbox: &Sandbox, era: Era) -> Self {
        Self::with(sandbox.command("mcp serve --stdio"), era)
    }

    fn with(mut command: Command, era: Era) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = process.stdout.take().unwrap();
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || receive(output, &sender));
        let input = process.stdin.take();
        Self::greeting(Link::Stdio { process, input }, messages, era)
    }

    /// A client of a server over HTTP; in the older revisions with a session and a stream for notifications.
    fn over_http(endpoint: &Endpoint, era: Era) -> Self {
        let (sender, messages) = mpsc::channel();
        let address = endpoint.address.clone();
        let mut client = Self::greeting(
            Link::Http {
                address,
                session: None,
                sender,
            },
            messages,
            era,
        );
        if era == Era::Legacy {
            client.exchange("GET", "", "");
        }
        client
    }

    fn greeting(link: Link, messages: Receiver<Value>, era: Era) -> Self {
        let mut client = Self {
            link,
            messages,
            notices: Vec::new(),
            era,
            next: 0,
        };
        if era == Era::Legacy {
            let client_info = json!({"name": "test", "version": "1"});
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info});
            client.result("initialize", hello);
            client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    fn write(&mut self, message: &Value) {
        if let Link::Stdio { input, .. } = &mut self.link {
            writeln!(input.as_mut().unwrap(), "{message}").unwrap();
            return;
        }
        let mut headers = "Content-Type: application/json\r\n".to_owned();
        if self.era == Era::Modern {
            headers += &format!("Mcp-Method: {}\r\n", message["method"].as_str().unwrap());
            if let Some(uri) = message["params"]["uri"].as_str() {
                headers += &format!("Mcp-Name: {uri}\r\n");
            }
        }
        self.exchange("POST", &headers, &message.to_string());
    }

    /// Sends a request over HTTP; a thread receives the response.
    fn exchange(&mut self, method: &str, headers: &str, body: &str) {
        let Link::Http {
            address,
            session,
            sender,
        } = &mut self.link
        else {
            unreachable!()
        };
        let version = if self.era == Era::Legacy {
            "2025-11-25"
        } else {
            "2026-07-28"
        };
        let named = session
            .iter()
            .map(|id| format!("Mcp-Session-Id: {id}\r\n"))
            .collect::<String>();
        let mut stream = TcpStream::connect(&*address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\n{headers}{named}MCP-Protocol-Version: {version}\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap() > 0 && line != "\r\n" {
            let given = line.to_lowercase().starts_with("mcp-session-id:");
            *session = given
                .then(|| line[15..].trim().to_owned())
                .or_else(|| session.take());
            line.clear();
        }
        let sender = sender.clone();
        thread::spawn(move || receive(reader, &sender));
    }

    fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.write(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("no answer");
            match message.get("method") {
                Some(_) => self.notices.push(message),
                None if message["id"] == id => return message,
                None => {}
            }
        }
    }

    #[track_caller]
    fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The code and the message of the error that a read ends with.
    #[track_caller]
    fn refused(&mut self, uri: &str) -> (i64, String) {
        let answer = self.request("resources/read", json!({"uri": uri}));
        let error = &answer["error"];
        assert!(error.is_object(), "{uri}: {answer}");
        (
            error["code"].as_i64().unwrap(),
            error["message"].as_str().unwrap().to_owned(),
        )
    }

    #[track_caller]
    fn read(&mut self, uri: &str) -> Value {
        let mut contents = self.result("resources/read", json!({"uri": uri}))["contents"].take();
        assert_eq!(items(&contents).len(), 1, "{contents}");
        contents[0].take()
    }

    #[track_caller]
    fn text(&mut self, uri: &str) -> String {
        self.read(uri)["text"].as_str().unwrap().to_owned()
    }

    fn list(&mut self) -> Vec<Value> {
        items(&self.result("resources/list", json!({}))["resources"]).to_vec()
    }

    fn names(&mut self) -> Vec<String> {
        self.list()
            .iter()
            .map(|resource| resource["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn completed(&mut self, template: &str, name: &str, value: &str, others: Value) -> Vec<String> {
        let values = self.completion(template, name, value, others)["values"].take();
        items(&values)
            .iter()
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    }

    fn completion(&mut self, template: &str, name: &str, value: &str, others: Value) -> Value {
        let reference = json!({"type": "ref/resource", "uri": template});
        let argument = json!({"name": name, "value": value});
        let params =
            json!({"ref": reference, "argument": argument, "context": {"arguments": others}});
        self.result("completion/complete", params)["completion"].take()
    }

    /// Waits until the list has these names; a notification precedes each change.
    #[track_caller]
    fn until(&mut self, names: &[&str]) {
        if self.era == Era::Modern {
            self.send(
                "subscriptions/listen",
                json!({"notifications": {"resourcesListChanged": true}}),
            );
        }
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.names() != names {
            assert!(std::time::Instant::now() < deadline, "{:?}", self.names());
            self.notice("notifications/resources/list_changed", None);
        }
    }

    /// Subscribes to a URI and to changes of the list.
    fn subscribe(&mut self, uri: &str) {
        match self.era {
            Era::Legacy => _ = self.result("resources/subscribe", json!({"uri": uri})),
            Era::Modern => {
                let wanted = json!({"resourceSubscriptions": [uri], "resourcesListChanged": true});
                self.send("subscriptions/listen", json!({"notifications": wanted}));
                self.notice("notifications/subscriptions/acknowledged", None);
            }
        }
    }

    /// Waits for a notification; others that come before it are dropped.
    #[track_caller]
    fn notice(&mut self, method: &str, uri: Option<&str>) {
        loop {
            let message = match self.notices.is_empty() {
                true => self
                    .messages
                    .recv_timeout(PATIENCE)
                    .unwrap_or_else(|_| panic!("no {method} {uri:?}")),
                false => self.notices.remove(0),
            };
            if message["method"] == method && uri.is_none_or(|uri| message["params"]["uri"] == uri)
            {
                return;
            }
        }
    }

    fn end(mut self) -> i32 {
        let Link::Stdio { process, input } = &mut self.link else {
            unreachable!()
        };
        *input = None;
        process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Link::Stdio { process, .. } = &mut self.link {
            _ = process.kill();
            _ = process.wait();
        }
    }
}

/// Passes on the messages of lines, or of a stream of events.
fn receive(output: impl std::io::Read, sender: &Sender<Value>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let line = line.strip_prefix("data:").unwrap_or(&line).trim();
        if line.starts_with('{') {
            _ = sender.send(serde_json::from_str(line).unwrap());
        }
    }
}

/// A server over HTTP.
struct Endpoint {
    server: Background,
    address: String,
    lines: Receiver<String>,
}

impl Endpoint {
    fn new(mut command: Command) -> Self {
        let mut server = Background::start(command.stderr(Stdio::piped()));
        let mut line = String::new();
        let mut stderr = BufReader::new(server.process.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .for_each(|line| _ = sender.send(line))
        });
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split("/mcp").next());
        let address = address
            .unwrap_or_else(|| panic!("no URL in {line:?}"))
            .to_owned();
        Self {
            server,
            address,
            lines,
        }
    }

    /// Waits for the line of stderr after that with the URL.
    fn hint(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Posts a request with these headers in addition to the usual ones; returns the status and the rest.
    fn post(&self, headers: &str) -> (u16, String) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }})
        .to_string();
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let head = format!(
            "POST /mcp HTTP/1.1\r\n{host}{headers}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        let mut rest = String::new();
        if !status.contains("200") {
            reader.read_to_string(&mut rest).unwrap();
        }
        (status.split(' ').nth(1).unwrap().parse().unwrap(), rest)
    }
}

/// A workspace with a conversation of one turn, to which README.md is attached.
fn workspace() -> Sandbox {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("README.md", "# Read me\n");
    sandbox.write("src/main.rs", "fn main() {}\n");
    sandbox.run("q --new -a README.md first");
    sandbox
}

/// Has another model answer from now on.
fn configure(sandbox: &Sandbox, url: &str) {
    let model = "[assistant.model]\nid = \"llamacpp/m\"\n[providers.llm.llamacpp]\n";
    sandbox.write(
        ".jp/config.toml",
        format!("{model}base_url = \"{url}\"\nmodels.m.tools = true\n"),
    );
}

/// The template of files, as clients receive it.
fn files(sandbox: &Sandbox) -> String {
    sandbox.uri("{+path}")
}

#[test]
fn listed_resources_can_be_read_in_each_era() {
    let sandbox = workspace();
    sandbox.write("README.md", "# Read me again\n");
    for era in ERAS {
        let mut client = Client::new(&sandbox, era);
        let listed = client.list();
        let [file, snapshot] = &listed[..] else {
            panic!("{listed:?}")
        };
        assert_eq!(file["uri"], sandbox.uri("README.md"), "{era:?}");
        assert_fields!(file, {"name": "README.md", "mimeType": "text/markdown", "size": 16});
        assert!(file["annotations"]["lastModified"].is_string(), "{file}");
        assert_fields!(snapshot, {"name": "README.md (turn 1)", "size": 10});
        assert_eq!(
            client.text(file["uri"].as_str().unwrap()),
            "# Read me again\n"
        );
        let kept = snapshot["uri"].as_str().unwrap();
        assert_starts(kept, "jp://blob/");
        let read = client.read(kept);
        assert_fields!(read, {"text": "# Read me\n", "mimeType": "text/markdown"});
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn client_that_asks_for_more_than_resources_gets_empty_lists() {
    let sandbox = workspace();
    for era in ERAS {
        let endpoint = Endpoint::new(sandbox.command("mcp serve --http 127.0.0.1:0"));
        for mut client in [
            Client::new(&sandbox, era),
            Client::over_http(&endpoint, era),
        ] {
            assert_eq!(
                client.result("tools/list", json!({}))["tools"],
                json!([]),
                "{era:?}"
            );
            assert_eq!(
                client.result("prompts/list", json!({}))["prompts"],
                json!([]),
                "{era:?}"
            );
        }
    }
}

#[test]
fn files_are_offered_below_the_root() {
    let sandbox = workspace();
    sandbox.write("a b/ü?.txt", "named strangely\n");
    sandbox.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\0");
    let mut client = Client::new(&sandbox, Era::Modern);
    let main = client.read(&sandbox.uri("src/main.rs"));
    assert_fields!(main, {"text": "fn main() {}\n", "mimeType": "text/x-rust"});
    assert_eq!(
        client.text(&sandbox.uri("a%20b/%C3%BC%3F.txt")),
        "named strangely\n"
    );
    let picture = client.read(&sandbox.uri("picture.png"));
    assert_fields!(picture, {"blob": "iVBORw0KGgoAAAAA", "mimeType": "image/png"});
    let template = files(&sandbox);
    assert_eq!(
        client.completed(&template, "path", "", json!({})),
        ["README.md", "a b/", "picture.png", "src/"]
    );
    assert_eq!(
        client.completed(&template, "path", "src/m", json!({})),
        ["src/main.rs"]
    );
    assert_eq!(
        client.completed(&template, "path", "../", json!({})),
        [""; 0]
    );
    let (code, message) = client.refused(&sandbox.uri("src/none.rs"));
    assert_eq!(
        (code, message.as_str()),
        (
            -32602,
            "the workspace has no file src/none.rs; completion of the template offers the files"
        )
    );
}

#[test]
fn transcript_is_what_print_writes() {
    let sandbox = workspace();
    let again = answering("No.");
    configure(&sandbox, again.url());
    sandbox.run("q second");
    let id = sandbox.id();
    let printed = sandbox.run("conversation print").stdout;
    let second = sandbox.run("conversation print --turn 2").stdout;
    for era in ERAS {
        let mut client = Client::new(&sandbox, era);
        let whole = client.read(&format!("jp://conversation/{id}"));
        assert_fields!(whole, {"text": printed, "mimeType": "text/markdown"});
        assert_eq!(
            client.text(&format!("jp://conversation/{id}/turn/2")),
            second
        );
        let template = "jp://conversation/{id}/turn/{n}";
        assert_eq!(
            client.completed(template, "id", &id[..3], json!({})),
            [id.as_str()]
        );
        assert_eq!(
            client.completed(template, "n", "", json!({"id": id})),
            ["2", "1"]
        );
        let (code, message) = client.refused(&format!("jp://conversation/{id}/turn/3"));
        assert_eq!(code, -32602);
        assert_contains(
            &message,
            "has 2 turns and no turn 3; turns are numbered from 1",
        );
        let (_, message) = client.refused("jp://conversation/17");
        assert_contains(&message, "no conversation 17; completion of");
        let (_, message) = client.refused("jp://conversation/..%2F..");
        assert_contains(&message, "a conversation id is a number");
    }
}

#[test]
fn damaged_conversation_keeps_nothing_else_from_being_read() {
    let sandbox = workspace();
    let id = sandbox.id();
    sandbox.write(".jp/conversations/17-damaged/events.json", "{");
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), ["README.md", "README.md (turn 1)"]);
    assert_eq!(
        client.completed("jp://conversation/{id}", "id", "", json!({})),
        [id.as_str(), "17"]
    );
    let (code, message) = client.refused("jp://conversation/17");
    assert_eq!(code, -32603);
    assert_contains(
        &message,
        "conversation 17 is damaged or can't be opened; the user can run `jp storage check`",
    );
    assert_lacks(&message, sandbox.home.to_str().unwrap());
}

#[test]
fn only_the_snapshot_of_a_command_is_read() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let outside = sandbox.write("~/elsewhere/plan.md", "The plan\n");
    let command = "cmd:sh -c 'echo ran >> ran; echo printed'";
    let outside = outside.to_str().unwrap();
    sandbox.run(&["q", "--new", "-a", outside, "-a", command, "first"]);
    fs::remove_file(outside).unwrap();
    let mut client = Client::new(&sandbox, Era::Legacy);
    let listed = client.list();
    assert_eq!(listed.len(), 4, "{listed:?}");
    assert_starts(listed[0]["uri"].as_str().unwrap(), "external:");
    assert!(
        !json!(listed).to_string().contains("elsewhere"),
        "{listed:?}"
    );
    assert_eq!(
        client.text(listed[0]["uri"].as_str().unwrap()),
        "The plan\n"
    );
    assert_eq!(client.text(listed[1]["uri"].as_str().unwrap()), "printed\n");
    assert_eq!(
        client.text(listed[2]["uri"].as_str().unwrap()),
        "The plan\n"
    );
    assert_eq!(sandbox.read("ran"), "ran\n");
}

#[test]
fn blob_is_read_only_if_its_checksum_fits() {
    let sandbox = workspace();
    let blob = client_blob(&sandbox);
    let other = answering("Yes.");
    configure(&sandbox, other.url());
    sandbox.run("q --new 'another conversation'");
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(
        client.names(),
        [""; 0],
        "nothing is attached to the current conversation"
    );
    assert_eq!(client.read(&blob)["mimeType"], "text/markdown");
    let (code, message) = client.refused(&format!("jp://blob/{}", "0".repeat(64)));
    assert_eq!(code, -32602);
    assert_contains(&message, "has no snapshot with the checksum 000");
    assert_contains(
        client.refused("jp://blob/..%2Fid").1,
        "64 hexadecimal digits",
    );
    let file = sandbox
        .files(".jp/blobs")
        .into_iter()
        .find(|file| is_of(file, &blob))
        .unwrap();
    fs::write(&file, "damaged").unwrap();
    let (code, message) = client.refused(&blob);
    assert_eq!(code, -32603);
    assert_contains(
        &message,
        "is damaged or can't be opened; the user can run `jp storage check`",
    );
    assert_lacks(&message, sandbox.home.to_str().unwrap());
}

fn client_blob(sandbox: &Sandbox) -> String {
    let mut client = Client::new(sandbox, Era::Legacy);
    client.list()[1]["uri"].as_str().unwrap().to_owned()
}

fn is_of(file: &std::path::Path, blob: &str) -> bool {
    let checksum = blob.rsplit('/').next().unwrap();
    file.to_str()
        .unwrap()
        .ends_with(&format!("{}/{}.blob.gz", &checksum[..2], &checksum[2..]))
}

#[test]
fn no_path_leads_out_of_the_workspace() {
    let sandbox = workspace();
    let secret = sandbox
        .write("../secret.md", "SECRET")
        .canonicalize()
        .unwrap();
    let sibling = format!(
        "../{}-too/secret.md",
        sandbox.root.file_name().unwrap().to_str().unwrap()
    );
    sandbox.write(&sibling, "SECRET");
    sandbox.link("..", "link");
    sandbox.link("../../secret.md", "src/link.md");
    let secret = secret.to_str().unwrap();
    let mut client = Client::new(&sandbox, Era::Legacy);
    let paths = [
        "../secret.md",
        "src/../../secret.md",
        "%2e%2e/secret.md",
        "%2E%2E%2Fsecret.md",
        "%252e%252e/secret.md",
        "%252e%252e%252fsecret.md",
        "..%5Csecret.md",
        "../project-too/secret.md",
        "./../secret.md",
        "link/secret.md",
        "link/project-too/secret.md",
        "src/link.md",
        "C:/secret.md",
        "C:%5Csecret.md",
        "README.md%00",
        "%00../secret.md",
        "README.md%00.txt",
        "..%c0%afsecret.md",
        "/secret.md",
        secret,
        &secret.replace('/', "%2F"),
        "",
        "src",
        "src/",
        "src//main.rs",
    ];
    for path in paths {
        let (code, message) = client.refused(&sandbox.uri(path));
        assert_eq!(code, -32602, "{path}: {message}");
        let told = message.replace(&sandbox.uri(path), "").replace(secret, "");
        assert!(
            !told.contains(sandbox.home.to_str().unwrap()),
            "{path}: {message}"
        );
    }
    for other in [
        format!("file://{secret}"),
        format!("file://{}-too/secret.md", sandbox.root.display()),
    ] {
        assert_eq!(client.refused(&other).0, -32602, "{other}");
    }
}

#[test]
fn what_a_walk_would_leave_out_is_refused() {
    let sandbox = workspace();
    sandbox.write(".gitignore", "target/\n*.log\n!kept.log\n");
    sandbox.write(".jpignore", "private\n");
    sandbox.write("src/.ignore", "made.rs\n");
    sandbox.write(".git/config", "[remote]\n");
    sandbox.write(
        "key",
        "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n",
    );
    for path in [
        "target/a",
        "x.log",
        "kept.log",
        "private/a",
        "src/made.rs",
        ".env",
        "sub/.aws/credentials",
    ] {
        sandbox.write(path, "text\n");
    }
    sandbox.link("src", "to-src");
    sandbox.link(".env", "harmless");
    sandbox.write(".git/HEAD", "ref\n");
    sandbox.link(".git/HEAD", "settings");
    sandbox.link("key", "to-key");
    let mut client = Client::new(&sandbox, Era::Modern);
    let because = [
        ("target/a", ".gitignore ignores it by the rule `target/`"),
        ("x.log", ".gitignore ignores it by the rule `*.log`"),
        ("private/a", ".jpignore ignores it by the rule `private`"),
        (
            "src/made.rs",
            "src/.ignore ignores it by the rule `made.rs`",
        ),
        (
            ".env",
            "files with this name usually contain secrets; the user can attach it with `jp attachment add`",
        ),
        (
            "sub/.aws/credentials",
            "files with this name usually contain secrets",
        ),
        ("harmless", "files with this name usually contain secrets"),
        ("key", "it is a private key"),
        ("to-key", "it is a private key"),
        (".git/config", "it belongs to version control or to jp"),
        (".jp/config.toml", "it belongs to version control or to jp"),
        ("settings", "it belongs to version control or to jp"),
        ("to-src/main.rs", "a directory in its path is a link"),
    ];
    for (path, why) in because {
        let (code, message) = client.refused(&sandbox.uri(path));
        assert_eq!(code, -32602, "{path}: {message}");
        assert_starts(&message, format!("{path} is not offered: "));
        assert_contains(&message, why);
    }
    assert_eq!(client.text(&sandbox.uri("kept.log")), "text\n");
    let offered = client.completed(&files(&sandbox), "path", "", json!({}));
    assert_eq!(
        offered,
        [
            ".gitignore",
            ".jpignore",
            "README.md",
            "kept.log",
            "key",
            "src/",
            "sub/",
            "to-key"
        ]
    );
    assert_eq!(
        client.completed(&files(&sandbox), "path", "src/", json!({})),
        ["src/.ignore", "src/main.rs"]
    );
    for closed in ["target/", "private/", ".git/", ".jp/", "to-src/"] {
        assert_eq!(
            client.completed(&files(&sandbox), "path", closed, json!({})),
            [""; 0],
            "{closed}"
        );
    }
}

#[test]
fn reads_follow_the_limits_of_the_configuration() {
    let sandbox = workspace();
    let settings = "[conversation.attachment]\nmax_bytes = 100\nsecrets = \"refuse\"\n";
    sandbox.configure(settings);
    sandbox.write("large", "x".repeat(101));
    sandbox.write(
        "notes.md",
        format!(
            "one\ntoken: ghp_{}\n",
            "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        ),
    );
    let mut client = Client::new(&sandbox, Era::Modern);
    let (_, message) = client.refused(&sandbox.uri("large"));
    assert_contains(
        &message,
        "more than the 100 bytes that conversation.attachment.max_bytes allows",
    );
    let (_, message) = client.refused(&sandbox.uri("notes.md"));
    assert_contains(&message, "line 2 seems to contain");
    assert_contains(&message, "refuses it");
    assert_lacks(&message, "ghp_");
}

#[test]
fn secret_is_read_only_if_it_is_attached_outright() {
    let sandbox = workspace();
    sandbox.write("conf/.env", "A=1\n");
    sandbox.write("conf/a.toml", "a = 1\n");
    sandbox.run("attachment add conf");
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(
        client.names(),
        ["README.md", "conf/a.toml", "README.md (turn 1)"]
    );
    assert_contains(
        client.refused(&sandbox.uri("conf/.env")).1,
        "is not offered",
    );
    sandbox.run("attachment add conf/.env");
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(
        client.names(),
        [
            "README.md",
            "conf/a.toml",
            "conf/.env",
            "README.md (turn 1)"
        ]
    );
    assert_eq!(client.text(&sandbox.uri("conf/.env")), "A=1\n");
    fs::remove_file(sandbox.path("README.md")).unwrap();
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(
        client.names(),
        ["conf/a.toml", "conf/.env", "README.md (turn 1)"]
    );
}

/// Attaches files in the workspace's configuration, as a clone may have it.
fn attach_in_workspace(sandbox: &Sandbox, files: &[&str]) {
    sandbox.prepend_config(format!("conversation.attachments = {files:?}"));
}

/// Deletes the approvals of this checkout, as in a clone of it.
fn forget(sandbox: &Sandbox) {
    let data = sandbox.files("~/.local/share/jp");
    let trusted = data
        .iter()
        .filter(|path| path.iter().any(|name| name == "trusted"));
    trusted.for_each(|path| fs::remove_file(path).unwrap());
}

const KEY: &str = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n";

#[test]
fn secret_that_a_clone_attaches_is_given_only_once_the_person_attaches_it() {
    let sandbox = workspace();
    sandbox.write(".gitignore", "made.log\n");
    for (file, content) in [
        (".env", "A=1\n"),
        ("key", KEY),
        ("made.log", "made\n"),
        ("sub/.env", "B=1\n"),
    ] {
        sandbox.write(file, content);
    }
    sandbox.run("attachment add sub/.env");
    forget(&sandbox);
    attach_in_workspace(&sandbox, &[".env", "key", "made.log"]);
    let mut client = Client::new(&sandbox, Era::Legacy);
    assert_eq!(client.names(), ["key", "README.md", "README.md (turn 1)"]);
    for closed in [".env", "key", "made.log", "sub/.env"] {
        assert_contains(client.refused(&sandbox.uri(closed)).1, "is not offered");
    }
    let told = sandbox.run("mcp serve").stderr;
    for path in [".env", "made.log", "sub/.env"] {
        assert_contains(
            &told,
            format!("the list lacks {path}: the workspace or its history attaches it"),
        );
    }
    sandbox.run("attachment add .env key");
    client.until(&[".env", "key", "README.md", "README.md (turn 1)"]);
    assert_eq!(client.text(&sandbox.uri(".env")), "A=1\n");
    assert_eq!(client.text(&sandbox.uri("key")), KEY);
    fs::remove_file(sandbox.path(".env")).unwrap();
    sandbox.link("sub/.env", ".env");
    let mut client = Client::new(&sandbox, Era::Legacy);
    assert_eq!(
        client.names(),
        ["key", "README.md", "README.md (turn 1)"],
        "a link is not what was attached"
    );
}

#[test]
fn secret_that_the_persons_own_configuration_attaches_is_given() {
    let sandbox = workspace();
    sandbox.write("key", KEY);
    sandbox.configure("conversation.attachments = [\"key\"]\n");
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.text(&sandbox.uri("key")), KEY);
}

/// Changes the events of the conversation.
fn rewrite(sandbox: &Sandbox, change: impl FnOnce(&mut Value)) {
    let path = sandbox.events_path();
    let mut events = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut events);
    fs::write(path, events.to_string()).unwrap();
}

/// Finds the first object with this key.
fn having<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    if value.get(key).is_some() {
        return Some(value);
    }
    match value {
        Value::Array(values) => values.iter_mut().find_map(|value| having(value, key)),
        Value::Object(values) => values.values_mut().find_map(|value| having(value, key)),
        _ => None,
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let large = 20_000_000;
    let sandbox = workspace();
    let conversation = format!("jp://conversation/{}", sandbox.id());
    rewrite(&sandbox, |events| {
        having(events, "$blob").unwrap()["size"] = json!(large)
    });
    let mut client = Client::new(&sandbox, Era::Modern);
    let snapshot = client.list()[1]["uri"].as_str().unwrap().to_owned();
    let (code, message) = client.refused(&snapshot);
    assert_eq!(code, -32602, "{message}");
    assert_contains(&message, "has 20000000 bytes, more than the limit of");

    rewrite(&sandbox, |events| {
        let content = having(events, "$blob").unwrap().clone();
        let block = json!({"type": "resource", "resource": {"uri": "a:b", "content": content}});
        let result = json!({
            "timestamp": "2026-11-21T12:00:00Z", "type": "tool_call_response", "id": "1", "content": [block],
        });
        events.as_array_mut().unwrap().push(result);
    });
    let (code, message) = client.refused(&conversation);
    assert_eq!(code, -32602, "{message}");
    assert_contains(&message, "the limit of one read; read one turn of it");
    let (code, message) = client.refused(&format!("{conversation}/turn/1"));
    assert_eq!(code, -32602, "{message}");
    assert_contains(&message, "the limit of one read; read another turn");
}

/// Has files and directories be as if nothing had happened to them for long.
fn settle(sandbox: &Sandbox, paths: &[&str]) {
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    paths.iter().for_each(|path| {
        fs::File::open(sandbox.path(path))
            .unwrap()
            .set_modified(long_ago)
            .unwrap()
    });
}

#[test]
fn directory_that_gives_nothing_or_too_much_is_looked_at_again() {
    let sandbox = workspace();
    sandbox.write("docs/deep/a.md", "a\n");
    sandbox.configure("[conversation.attachment]\nmax_files = 1\n");
    sandbox.run("attachment add docs");
    settle(&sandbox, &["README.md", "docs", "docs/deep"]);
    let mut client = Client::new(&sandbox, Era::Legacy);
    assert_eq!(
        client.names(),
        ["README.md", "docs/deep/a.md", "README.md (turn 1)"]
    );
    fs::remove_file(sandbox.path("docs/deep/a.md")).unwrap();
    client.until(&["README.md", "README.md (turn 1)"]);
    sandbox.write("docs/deep/b.md", "b\n");
    client.until(&["README.md", "docs/deep/b.md", "README.md (turn 1)"]);
    sandbox.write("docs/deep/c.md", "c\n");
    client.until(&["README.md", "README.md (turn 1)"]);
    settle(&sandbox, &["docs", "docs/deep"]);
    fs::remove_file(sandbox.path("docs/deep/c.md")).unwrap();
    client.until(&["README.md", "docs/deep/b.md", "README.md (turn 1)"]);
}

#[cfg(unix)]
#[test]
fn file_that_leads_out_for_a_while_comes_back() {
    let sandbox = workspace();
    sandbox.write("notes.txt", "mine\n");
    sandbox.write("~/outside.txt", "outside\n");
    sandbox.run("attachment add notes.txt");
    settle(&sandbox, &["README.md", "notes.txt"]);
    let mut client = Client::new(&sandbox, Era::Legacy);
    client.until(&["README.md", "notes.txt", "README.md (turn 1)"]);
    fs::remove_file(sandbox.path("notes.txt")).unwrap();
    sandbox.link(sandbox.path("~/outside.txt"), "notes.txt");
    client.until(&["README.md", "README.md (turn 1)"]);
    fs::remove_file(sandbox.path("notes.txt")).unwrap();
    sandbox.write("notes.txt", "mine again\n");
    client.until(&["README.md", "notes.txt", "README.md (turn 1)"]);
}

#[test]
fn file_of_a_directory_that_is_edited_in_place_is_listed_as_it_is() {
    let sandbox = workspace();
    sandbox.write("docs/a.md", "a\n");
    sandbox.run("attachment add docs");
    settle(&sandbox, &["README.md", "docs", "docs/a.md"]);
    let mut client = Client::new(&sandbox, Era::Legacy);
    let before = client.list()[1].clone();
    assert_eq!(before["size"], 2);
    sandbox.write("docs/a.md", "longer\n");
    client.notice("notifications/resources/list_changed", None);
    let after = client.list()[1].clone();
    assert_eq!(after["size"], 7);
    assert_ne!(
        before["annotations"]["lastModified"],
        after["annotations"]["lastModified"]
    );
}

#[test]
fn changes_are_announced_in_each_era() {
    for era in ERAS {
        let sandbox = workspace();
        let mut client = Client::new(&sandbox, era);
        let main = sandbox.uri("src/main.rs");
        client.subscribe(&main);
        sandbox.write("src/main.rs", "fn main() { changed() }\n");
        client.notice("notifications/resources/updated", Some(&main));
        let readme = sandbox.uri("README.md");
        client.subscribe(&readme);
        sandbox.write("README.md", "changed\n");
        client.notice("notifications/resources/updated", Some(&readme));
        let conversation = format!("jp://conversation/{}", sandbox.id());
        client.subscribe(&conversation);
        sandbox.run("attachment add src/main.rs");
        client.notice("notifications/resources/updated", Some(&conversation));
        client.notice("notifications/resources/list_changed", None);
        assert_eq!(
            client.names(),
            ["README.md", "src/main.rs", "README.md (turn 1)"]
        );
    }
}

#[test]
fn newer_snapshot_is_announced() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("state", "one\n");
    sandbox.run("q --new -a 'cmd:cat state' first");
    let mut client = Client::new(&sandbox, Era::Legacy);
    let uri = client.list()[0]["uri"].as_str().unwrap().to_owned();
    client.subscribe(&uri);
    sandbox.write("state", "two\n");
    assert_eq!(client.text(&uri), "one\n", "nothing runs for a read");
    sandbox.run(&["resource", "refresh", &uri]);
    client.notice("notifications/resources/updated", Some(&uri));
    assert_eq!(client.text(&uri), "two\n");
}

#[test]
fn list_follows_the_directories_later_than_a_read() {
    let sandbox = workspace();
    for file in ["docs/one.md", "docs/two.md", "docs/deep/three.md"] {
        sandbox.write(file, "text\n");
    }
    sandbox.run("attachment add docs");
    let mut client = Client::new(&sandbox, Era::Legacy);
    fn names<'a>(docs: &[&'a str]) -> Vec<&'a str> {
        [&["README.md"], docs, &["README.md (turn 1)"]].concat()
    }
    assert_eq!(
        client.names(),
        names(&["docs/deep/three.md", "docs/one.md", "docs/two.md"])
    );
    sandbox.write("docs/deep/four.md", "text\n");
    client.until(&names(&[
        "docs/deep/four.md",
        "docs/deep/three.md",
        "docs/one.md",
        "docs/two.md",
    ]));
    fs::remove_file(sandbox.path("docs/one.md")).unwrap();
    client.until(&names(&[
        "docs/deep/four.md",
        "docs/deep/three.md",
        "docs/two.md",
    ]));
    assert_eq!(client.text(&sandbox.uri("docs/two.md")), "text\n");
    sandbox.write(".gitignore", "two.md\n");
    assert_contains(
        client.refused(&sandbox.uri("docs/two.md")).1,
        ".gitignore ignores it by the rule `two.md`",
    );
    client.until(&names(&["docs/deep/four.md", "docs/deep/three.md"]));
    sandbox.write(".gitignore", "\n");
    client.until(&names(&[
        "docs/deep/four.md",
        "docs/deep/three.md",
        "docs/two.md",
    ]));
    sandbox.write("docs/deep/.ignore", "three.md\n");
    client.until(&names(&[
        "docs/deep/.ignore",
        "docs/deep/four.md",
        "docs/two.md",
    ]));
}

#[test]
fn listed_directory_gives_no_secrets_even_through_links() {
    let sandbox = workspace();
    sandbox.configure("[conversation.attachment]\nsecrets = \"refuse\"\n");
    sandbox.write("docs/plain.md", "text\n");
    let mut client = Client::new(&sandbox, Era::Modern);
    sandbox.run("attachment add docs");
    sandbox.write(
        "docs/key",
        "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n",
    );
    sandbox.write(
        "docs/notes.md",
        format!("token: ghp_{}\n", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
    );
    sandbox.write(
        "elsewhere/key",
        "-----BEGIN PRIVATE KEY-----\ny\n-----END PRIVATE KEY-----\n",
    );
    sandbox.link("../elsewhere/key", "docs/link");
    sandbox.link("notes.md", "docs/link.md");
    let (key, linked, notes) = (
        sandbox.uri("docs/key"),
        sandbox.uri("elsewhere/key"),
        sandbox.uri("docs/notes.md"),
    );
    client.until(&[
        "README.md",
        "docs/key",
        "elsewhere/key",
        "docs/notes.md",
        "docs/plain.md",
        "README.md (turn 1)",
    ]);
    for uri in [&key, &linked, &sandbox.uri("docs/link")] {
        assert_contains(client.refused(uri).1, "it is a private key");
    }
    for uri in [&notes, &sandbox.uri("docs/link.md")] {
        assert_contains(
            client.refused(uri).1,
            "conversation.attachment.secrets refuses it",
        );
    }
}

#[test]
fn snapshot_takes_no_uri_of_ours_whatever_its_server_called_it() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a/b", "the file\n");
    sandbox.run("q --new -a 'cmd:echo false' first");
    let id = sandbox.id();
    let events = sandbox.events_path();
    let before = fs::read_to_string(&events).unwrap();
    let listed = Client::new(&sandbox, Era::Legacy).list()[0]["uri"]
        .as_str()
        .unwrap()
        .to_owned();
    let written = format!("\"uri\":\"{listed}\"");
    assert_contains(&before, &written);
    let conversation = format!("jp://conversation/{id}");
    for hostile in [
        conversation.clone(),
        conversation.replace("jp:", "JP:"),
        sandbox.uri("a/b"),
        sandbox.uri("a%2Fb"),
        sandbox.uri("a%2fb").replace("file:", "FILE:"),
    ] {
        fs::write(
            &events,
            before.replace(&written, &format!("\"uri\":\"{hostile}\"")),
        )
        .unwrap();
        let mut client = Client::new(&sandbox, Era::Legacy);
        let uris: Vec<_> = client
            .list()
            .iter()
            .map(|one| one["uri"].as_str().unwrap().to_owned())
            .collect();
        assert!(
            uris.len() == 1 && uris[0].starts_with("jp://blob/"),
            "{hostile}: {uris:?}"
        );
        assert_eq!(client.text(&uris[0]), "false\n");
        assert_starts(client.text(&conversation), "## Turn 1");
        assert_eq!(
            client.text(&sandbox.uri("a%2Fb")),
            "the file\n",
            "{hostile}"
        );
    }
}

#[test]
fn what_is_not_listed_is_told_to_the_person() {
    let sandbox = workspace();
    sandbox.write("docs/small.md", "text\n");
    sandbox.run("attachment add docs .jp/config.toml");
    sandbox.write("docs/large.md", "x".repeat(200));
    sandbox.write("docs/a\\b.md", "text\n");
    let outside = sandbox.write("~/elsewhere/plan.md", "The plan\n");
    attach_in_workspace(&sandbox, &[outside.to_str().unwrap()]);
    sandbox.configure("[conversation.attachment]\nmax_bytes = 100\n");
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(
        client.names(),
        ["README.md", "docs/small.md", "README.md (turn 1)"],
        "nothing of .jp, nothing large"
    );
    let told = sandbox.run("mcp serve").stderr;
    assert_contains(&told, "the list lacks an attachment");
    assert_contains(&told, "large.md");
    assert_contains(
        &told,
        r#"the list lacks "docs/a\\b.md": clients can't request a path with a backslash"#,
    );
    assert_contains(&told, "plan.md is outside the workspace and is left out");
    sandbox.configure("[conversation.attachment]\nmax_files = 1\n");
    let told = sandbox.run("mcp serve").stderr;
    assert_contains(&told, "the list lacks an attachment");
}

#[cfg(target_os = "linux")]
#[test]
fn list_is_offered_as_it_is_where_there_is_no_thread_to_follow_it() {
    let sandbox = workspace();
    let mut command = sandbox.command("mcp serve --stdio");
    // No thread has so much room for its stack.
    command
        .env("RUST_MIN_STACK", (1_u64 << 50).to_string())
        .stderr(Stdio::piped());
    let mut client = Client::with(command, Era::Legacy);
    assert_eq!(client.names(), ["README.md", "README.md (turn 1)"]);
    let Link::Stdio { process, input } = &mut client.link else {
        unreachable!()
    };
    drop(input.take());
    let mut told = String::new();
    process
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert!(process.wait().unwrap().success(), "{told}");
    assert_contains(&told, "files can't be watched, so changes are not reported");
    assert_contains(
        &told,
        "the list won't show changes: the thread that follows the conversation could not be started",
    );
}

#[test]
fn completion_says_that_there_is_more_than_it_has() {
    let sandbox = workspace();
    (0..150).for_each(|number| _ = sandbox.write(&format!("many/{number}"), "x"));
    let mut client = Client::new(&sandbox, Era::Modern);
    let completion = client.completion(&files(&sandbox), "path", "many/", json!({}));
    assert_fields!(completion, {"total": 150, "hasMore": true});
    assert_eq!(items(&completion["values"]).len(), 100);
}

#[test]
fn file_that_comes_to_be_is_told_to_who_subscribed_to_it() {
    let sandbox = workspace();
    let mut client = Client::new(&sandbox, Era::Legacy);
    let new = sandbox.uri("src/new.rs");
    client.subscribe(&new);
    sandbox.write("src/new.rs", "new\n");
    client.notice("notifications/resources/updated", Some(&new));
    assert_eq!(client.text(&new), "new\n");
}

#[test]
fn http_clients_work_side_by_side() {
    for era in ERAS {
        let sandbox = workspace();
        sandbox.write(".gitignore", "target\n");
        sandbox.write("target/a", "a\n");
        let endpoint = Endpoint::new(sandbox.command("mcp serve --http 127.0.0.1:0"));
        let mut clients = [
            Client::over_http(&endpoint, era),
            Client::over_http(&endpoint, era),
        ];
        let (main, readme) = (sandbox.uri("src/main.rs"), sandbox.uri("README.md"));
        for client in &mut clients {
            assert_eq!(
                client.names(),
                ["README.md", "README.md (turn 1)"],
                "{era:?}"
            );
            assert_eq!(client.text(&readme), "# Read me\n");
            assert_eq!(client.text(&main), "fn main() {}\n");
            assert_starts(
                client.text(&format!("jp://conversation/{}", sandbox.id())),
                "## Turn 1",
            );
            for closed in ["target/a", ".jp/config.toml", ".env", "../x"] {
                assert_eq!(
                    client.refused(&sandbox.uri(closed)).0,
                    -32602,
                    "{era:?} {closed}"
                );
            }
            client.subscribe(&main);
        }
        sandbox.write("src/main.rs", "fn main() { changed() }\n");
        for client in &mut clients {
            client.notice("notifications/resources/updated", Some(&main));
        }
    }
}

#[test]
fn list_is_that_of_the_conversation_that_becomes_the_current_one() {
    let sandbox = workspace();
    let first = sandbox.id();
    let mut client = Client::new(&sandbox, Era::Legacy);
    let mut pinned = Client::with(
        sandbox.command(&["mcp", "serve", "--id", &first]),
        Era::Legacy,
    );
    let other = answering("Yes.");
    configure(&sandbox, other.url());
    sandbox.run("q --new -a src/main.rs second");
    client.notice("notifications/resources/list_changed", None);
    while client.names() != ["src/main.rs", "src/main.rs (turn 1)"] {
        client.notice("notifications/resources/list_changed", None);
    }
    assert_eq!(pinned.names(), ["README.md", "README.md (turn 1)"]);
}

#[test]
fn local_conversation_is_offered_only_where_it_is_named() {
    let sandbox = workspace();
    let other = answering("Yes.");
    configure(&sandbox, other.url());
    sandbox.run("q --new --local -a src/main.rs 'mine alone'");
    let all = sandbox.json("conversation ls");
    let local = items(&all).iter().find(|one| one["local"] == true).unwrap();
    let id = local["id"].as_str().unwrap();
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), [""; 0]);
    let template = "jp://conversation/{id}";
    assert_eq!(
        client.completed(template, "id", "", json!({})),
        [sandbox.id()]
    );
    assert_contains(
        client.refused(&format!("jp://conversation/{id}")).1,
        "has no conversation",
    );
    let mut named = Client::with(sandbox.command(&["mcp", "serve", "--id", id]), Era::Modern);
    assert_eq!(named.names(), ["src/main.rs", "src/main.rs (turn 1)"]);
    assert_contains(named.text(&format!("jp://conversation/{id}")), "mine alone");
    let warned = sandbox.run("mcp serve").stderr;
    assert_contains(
        &warned,
        format!("`jp mcp serve --id {id}` serves it anyway"),
    );
}

/// All files and directories of jp in the workspace and in the user's directories, with their times and sizes.
fn tree(sandbox: &Sandbox) -> BTreeMap<PathBuf, (SystemTime, u64)> {
    let mut tree = BTreeMap::new();
    let mut pending = vec![sandbox.path(".jp")];
    pending.extend(
        [".local", ".cache", ".config"]
            .map(|own| sandbox.home.join(own))
            .into_iter()
            .filter(|own| own.exists()),
    );
    assert!(pending.len() > 1, "the person's data is somewhere else");
    while let Some(path) = pending.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            pending.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        tree.insert(path, (found.modified().unwrap(), found.len()));
    }
    tree
}

#[test]
fn serving_leaves_the_workspace_untouched() {
    let sandbox = workspace();
    let before = tree(&sandbox);
    let id = sandbox.id();
    let mut client = Client::new(&sandbox, Era::Legacy);
    for resource in client.list() {
        client.read(resource["uri"].as_str().unwrap());
    }
    client.subscribe(&sandbox.uri("README.md"));
    client.text(&format!("jp://conversation/{id}"));
    client.text(&sandbox.uri("src/main.rs"));
    client.completed("jp://conversation/{id}", "id", "", json!({}));
    assert_eq!(tree(&sandbox), before);
    for _ in 0..200 {
        client.send(
            "resources/read",
            json!({"uri": format!("jp://conversation/{id}")}),
        );
    }
    sandbox.run("attachment add src/main.rs");
    assert_eq!(client.end(), 0);
}

#[test]
fn http_serves_this_machine_only_with_the_token() {
    let sandbox = workspace();
    let mut command = sandbox.command("mcp serve --http 127.0.0.1:0");
    let open = Endpoint::new(command);
    assert_contains(
        open.hint(),
        "hint: every user and program on this machine can read it",
    );
    assert_eq!(open.post("").0, 200);
    assert_eq!(open.post("Host: elsewhere.example\r\n").0, 403);
    assert_eq!(open.post("Origin: http://elsewhere.example\r\n").0, 403);
    let own = ["--allow-host", "localhost:8080", "--allow-host", "[::1]"];
    command = sandbox.command(&[&["mcp", "serve", "--http", "127.0.0.1:0"], &own[..]].concat());
    assert_eq!(
        Endpoint::new(command).post("").0,
        200,
        "names of this machine need no token"
    );
    command = sandbox.command("mcp serve --http 127.0.0.1:0 --allow-host box.example");
    command.env("JP_MCP_TOKEN", "a-secret");
    let guarded = Endpoint::new(command);
    assert_eq!(guarded.post("").0, 401);
    assert_eq!(
        guarded.post("Authorization: Bearer a-secret-too\r\n").0,
        401
    );
    assert_eq!(guarded.post("Authorization: Bearer a-secret\r\n").0, 200);
    assert_eq!(
        guarded
            .post("Host: box.example\r\nAuthorization: Bearer a-secret\r\n")
            .0,
        200
    );
    assert_eq!(
        guarded
            .post("Host: other.example\r\nAuthorization: Bearer a-secret\r\n")
            .0,
        403
    );
}

#[test]
fn server_ends_quietly() {
    let sandbox = workspace();
    let mut http = Endpoint::new(sandbox.command("mcp serve --http 127.0.0.1:0"));
    kill_process(Pid::from_child(&http.server.process), Signal::INT).unwrap();
    assert_eq!(http.server.process.wait().unwrap().code(), Some(0));
    let mut client = Client::new(&sandbox, Era::Legacy);
    let Link::Stdio { process, .. } = &mut client.link else {
        unreachable!()
    };
    kill_process(Pid::from_child(process), Signal::INT).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
    let run = sandbox.run("mcp serve");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
fn person_at_a_terminal_is_told_that_a_client_is_waited_for() {
    let sandbox = workspace();
    let mut terminal = sandbox.terminal("mcp serve");
    terminal.expect("to an MCP client on stdin; press Ctrl-C to stop.");
    terminal.send("\u{3}");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn what_can_not_be_served_says_why() {
    let sandbox = workspace();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    sandbox
        .fail(&["mcp", "serve", "--http", &address], 1)
        .says([
            &format!("failed to listen on {address}: "),
            "hint: choose another port",
        ]);
    sandbox
        .fail("mcp serve --http 0.0.0.0:0", 2)
        .says(["other machines can reach 0.0.0.0", "hint: set JP_MCP_TOKEN"]);
    let proxied = [
        "mcp",
        "serve",
        "--http",
        "127.0.0.1:0",
        "--allow-host",
        "box.example:8080",
    ];
    sandbox.fail(&proxied, 2).says([
        "--allow-host box.example:8080 lets other machines read the workspace",
        "hint: set JP_MCP_TOKEN",
    ]);
    sandbox
        .fail("mcp serve --http localhost", 2)
        .says(["expected an address and a port"]);
    for host in ["", "http://box/"] {
        let arguments = [
            "mcp",
            "serve",
            "--http",
            "127.0.0.1:0",
            "--allow-host",
            host,
        ];
        sandbox.fail(&arguments, 2).says(["expected a name"]);
    }
    sandbox
        .fail("mcp serve --id 17", 1)
        .says(["there is no conversation 17", "hint: "]);
    sandbox
        .fail("mcp serve --id x", 2)
        .says(["a conversation id is a number"]);
    let mut command = sandbox.command("mcp serve --http 127.0.0.1:0");
    command.env("JP_MCP_TOKEN", "two words");
    testing::run(command)
        .failed(2)
        .says(["the token in JP_MCP_TOKEN is invalid"]);
    let mut command = sandbox.command("mcp serve --http 127.0.0.1:0");
    command.env("JP_MCP_TOKEN", "");
    testing::run(command).failed(2).says([
        "the token in JP_MCP_TOKEN is invalid: it is empty",
        "letters, digits and signs, or unset it",
    ]);
    let mut command = sandbox.command("mcp serve");
    command.current_dir(&sandbox.home);
    testing::run(command)
        .failed(1)
        .says(["no workspace at or above", "hint: `jp init`"]);
}

#[test]
fn jp_itself_is_a_client_of_it() {
    let sandbox = workspace();
    let settings = json!([env!("CARGO_BIN_EXE_jp"), "mcp", "serve"]);
    sandbox.configure(format!("[providers.mcp.here]\ncommand = {settings}\n"));
    assert_contains(sandbox.run("mcp ls").stdout, "here");
    assert_contains(sandbox.run("mcp resources").stdout, "README.md (turn 1)");
    let templates = sandbox.run("mcp templates").stdout;
    assert_contains(&templates, "jp://conversation/{id}/turn/{n}");
    let read = sandbox.run(&["mcp", "read", "here", &sandbox.uri("src/main.rs")]);
    assert_eq!(read.stdout, "fn main() {}\n");
    let turn = format!("jp://conversation/{}/turn/1", sandbox.id());
    assert_starts(
        &sandbox.run(&["mcp", "read", "here", &turn]).stdout,
        "## Turn 1\n\nfirst\n",
    );
    sandbox
        .fail(&["mcp", "read", "here", &sandbox.uri(".env")], 1)
        .says(["the workspace has no file .env"]);
}

#[test]
fn workspace_without_a_conversation_has_files_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    let mut client = Client::new(&sandbox, Era::Legacy);
    assert_eq!(client.names(), [""; 0]);
    assert_eq!(client.text(&sandbox.uri("a.txt")), "a\n");
}
