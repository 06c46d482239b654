//! `jp mcp serve`: the real binary as a server, with clients that write JSON lines, over HTTP, and `jp` itself.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Sandbox, answering};
use terminal::Terminal;

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

/// A client of `jp mcp serve` on stdio.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    notices: Vec<Value>,
    era: Era,
    next: u64,
}

impl Client {
    fn new(sandbox: &Sandbox, era: Era) -> Self {
        Self::with(sandbox.command(&["mcp", "serve", "--stdio"]), era)
    }

    fn with(mut command: Command, era: Era) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let input = process.stdin.take();
        let mut client = Self { process, input, messages, notices: Vec::new(), era, next: 0 };
        if era == Era::Legacy {
            let client_info = json!({"name": "test", "version": "1"});
            let hello =
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info});
            client.result("initialize", hello);
            client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
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
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    #[track_caller]
    fn read(&mut self, uri: &str) -> Value {
        let mut contents = self.result("resources/read", json!({"uri": uri}))["contents"].take();
        assert_eq!(contents.as_array().unwrap().len(), 1, "{contents}");
        contents[0].take()
    }

    #[track_caller]
    fn text(&mut self, uri: &str) -> String {
        self.read(uri)["text"].as_str().unwrap().to_owned()
    }

    fn list(&mut self) -> Vec<Value> {
        self.result("resources/list", json!({}))["resources"].as_array().unwrap().clone()
    }

    fn names(&mut self) -> Vec<String> {
        self.list().iter().map(|resource| resource["name"].as_str().unwrap().to_owned()).collect()
    }

    fn completed(&mut self, template: &str, name: &str, value: &str, others: Value) -> Vec<String> {
        let reference = json!({"type": "ref/resource", "uri": template});
        let argument = json!({"name": name, "value": value});
        let params = json!({"ref": reference, "argument": argument, "context": {"arguments": others}});
        let result = self.result("completion/complete", params);
        let values = result["completion"]["values"].as_array().unwrap().clone();
        values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
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
                true => {
                    self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {method} {uri:?}"))
                }
                false => self.notices.remove(0),
            };
            if message["method"] == method && uri.is_none_or(|uri| message["params"]["uri"] == uri) {
                return;
            }
        }
    }

    fn end(mut self) -> i32 {
        self.input = None;
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A server over HTTP.
struct Endpoint {
    process: Child,
    address: String,
}

impl Endpoint {
    fn new(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next());
        let address = address.unwrap_or_else(|| panic!("no URL in {line:?}")).to_owned();
        Self { process, address }
    }

    /// Posts a request with these headers beside the usual ones; gives the status and the rest.
    fn post(&self, headers: &str) -> (u16, String) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }})
        .to_string();
        let host =
            if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
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

impl Drop for Endpoint {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A workspace with a conversation of one turn, to which README.md is attached.
fn workspace() -> Sandbox {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("README.md", "# Read me\n");
    sandbox.write("src/main.rs", "fn main() {}\n");
    sandbox.jp(&["q", "--new", "-a", "README.md", "first"]).succeeded();
    sandbox
}

/// Has another model answer from now on.
fn configure(sandbox: &Sandbox, url: &str) {
    let model = "[assistant.model]\nid = \"llamacpp/m\"\n[providers.llm.llamacpp]\n";
    sandbox.write(".jp/config.toml", format!("{model}base_url = \"{url}\"\nmodels.m.tools = true\n"));
}

fn id(sandbox: &Sandbox) -> String {
    sandbox.conversation().file_name().unwrap().to_str().unwrap().split('-').next().unwrap().to_owned()
}

fn uri(sandbox: &Sandbox, path: &str) -> String {
    format!("file://{}/{path}", sandbox.root.display())
}

/// The template of files, as a client is told it.
fn files(sandbox: &Sandbox) -> String {
    uri(sandbox, "{+path}")
}

#[test]
fn attachments_and_snapshots_are_listed_and_read_in_each_era() {
    let sandbox = workspace();
    sandbox.write("README.md", "# Read me again\n");
    for era in ERAS {
        let mut client = Client::new(&sandbox, era);
        let listed = client.list();
        let [file, snapshot] = &listed[..] else { panic!("{listed:?}") };
        assert_eq!(file["uri"], uri(&sandbox, "README.md"), "{era:?}");
        assert_eq!((&file["name"], &file["mimeType"]), (&json!("README.md"), &json!("text/markdown")));
        assert_eq!(file["size"], 16);
        assert!(file["annotations"]["lastModified"].is_string(), "{file}");
        assert_eq!((&snapshot["name"], &snapshot["size"]), (&json!("README.md (turn 1)"), &json!(10)));
        assert_eq!(client.text(file["uri"].as_str().unwrap()), "# Read me again\n");
        let kept = snapshot["uri"].as_str().unwrap();
        assert!(kept.starts_with("jp://blob/"), "{kept}");
        let read = client.read(kept);
        assert_eq!((&read["text"], &read["mimeType"]), (&json!("# Read me\n"), &json!("text/markdown")));
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn files_are_read_and_completed_below_the_root() {
    let sandbox = workspace();
    sandbox.write("a b/ü?.txt", "named strangely\n");
    sandbox.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\0");
    let mut client = Client::new(&sandbox, Era::Modern);
    let main = client.read(&uri(&sandbox, "src/main.rs"));
    assert_eq!((&main["text"], &main["mimeType"]), (&json!("fn main() {}\n"), &json!("text/x-rust")));
    assert_eq!(client.text(&uri(&sandbox, "a%20b/%C3%BC%3F.txt")), "named strangely\n");
    let picture = client.read(&uri(&sandbox, "picture.png"));
    assert_eq!((&picture["blob"], &picture["mimeType"]), (&json!("iVBORw0KGgoAAAAA"), &json!("image/png")));
    let template = files(&sandbox);
    assert_eq!(
        client.completed(&template, "path", "", json!({})),
        ["README.md", "a b/", "picture.png", "src/"]
    );
    assert_eq!(client.completed(&template, "path", "src/m", json!({})), ["src/main.rs"]);
    assert_eq!(client.completed(&template, "path", "../", json!({})), [""; 0]);
    let (code, message) = client.refused(&uri(&sandbox, "src/none.rs"));
    assert_eq!(
        (code, message.as_str()),
        (-32602, "the workspace has no file src/none.rs; completion of the template offers what there is")
    );
}

#[test]
fn conversation_and_turn_are_what_print_writes() {
    let sandbox = workspace();
    let again = answering("No.");
    configure(&sandbox, again.url());
    sandbox.jp(&["q", "second"]).succeeded();
    let id = id(&sandbox);
    let printed = sandbox.jp(&["conversation", "print"]).succeeded().stdout;
    let second = sandbox.jp(&["conversation", "print", "--turn", "2"]).succeeded().stdout;
    for era in ERAS {
        let mut client = Client::new(&sandbox, era);
        let whole = client.read(&format!("jp://conversation/{id}"));
        assert_eq!((&whole["text"], &whole["mimeType"]), (&json!(printed), &json!("text/markdown")));
        assert_eq!(client.text(&format!("jp://conversation/{id}/turn/2")), second);
        let template = "jp://conversation/{id}/turn/{n}";
        assert_eq!(client.completed(template, "id", &id[..3], json!({})), [id.as_str()]);
        assert_eq!(client.completed(template, "n", "", json!({"id": id})), ["2", "1"]);
        let (code, message) = client.refused(&format!("jp://conversation/{id}/turn/3"));
        assert_eq!(code, -32602);
        assert!(message.contains("has no turn 3, it has 2; turns are counted from 1"), "{message}");
        let (_, message) = client.refused("jp://conversation/17");
        assert!(message.contains("no conversation 17; completion of"), "{message}");
        let (_, message) = client.refused("jp://conversation/..%2F..");
        assert!(message.contains("a conversation id is a number"), "{message}");
    }
}

#[test]
fn damaged_conversation_keeps_nothing_else_from_being_read() {
    let sandbox = workspace();
    let id = id(&sandbox);
    sandbox.write(".jp/conversations/17-damaged/events.json", "{");
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), ["README.md", "README.md (turn 1)"]);
    assert_eq!(client.completed("jp://conversation/{id}", "id", "", json!({})), [id.as_str(), "17"]);
    let (code, message) = client.refused("jp://conversation/17");
    assert_eq!(code, -32603);
    assert!(
        message.contains("conversation 17 is damaged or can't be opened; `jp storage check`"),
        "{message}"
    );
    assert!(!message.contains(sandbox.home.to_str().unwrap()), "{message}");
}

#[test]
fn what_is_not_of_the_workspace_is_its_snapshot_and_nothing_runs() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    let outside = sandbox.write("~/elsewhere/plan.md", "The plan\n");
    let command = "cmd:sh -c 'echo ran >> ran; echo printed'";
    let outside = outside.to_str().unwrap();
    sandbox.jp(&["q", "--new", "-a", outside, "-a", command, "first"]).succeeded();
    fs::remove_file(outside).unwrap();
    let mut client = Client::new(&sandbox, Era::Legacy);
    let listed = client.list();
    assert_eq!(listed.len(), 4, "{listed:?}");
    assert!(listed[0]["uri"].as_str().unwrap().starts_with("external:"), "{listed:?}");
    assert!(!json!(listed).to_string().contains("elsewhere"), "{listed:?}");
    assert_eq!(client.text(listed[0]["uri"].as_str().unwrap()), "The plan\n");
    assert_eq!(client.text(listed[1]["uri"].as_str().unwrap()), "printed\n");
    assert_eq!(client.text(listed[2]["uri"].as_str().unwrap()), "The plan\n");
    assert_eq!(fs::read_to_string(sandbox.path("ran")).unwrap(), "ran\n");
}

#[test]
fn blob_is_read_by_its_checksum_alone_and_verified() {
    let sandbox = workspace();
    let blob = client_blob(&sandbox);
    let other = answering("Yes.");
    configure(&sandbox, other.url());
    sandbox.jp(&["q", "--new", "another conversation"]).succeeded();
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), [""; 0], "nothing is attached to the current conversation");
    assert_eq!(client.read(&blob)["mimeType"], "text/markdown");
    let (code, message) = client.refused(&format!("jp://blob/{}", "0".repeat(64)));
    assert_eq!(code, -32602);
    assert!(message.contains("keeps no snapshot with the checksum 000"), "{message}");
    assert!(client.refused("jp://blob/..%2Fid").1.contains("64 hexadecimal digits"));
    let file = sandbox.files(".jp/blobs").into_iter().find(|file| is_of(file, &blob)).unwrap();
    fs::write(&file, "damaged").unwrap();
    let (code, message) = client.refused(&blob);
    assert_eq!(code, -32603);
    assert!(message.contains("is damaged or can't be opened; `jp storage check`"), "{message}");
    assert!(!message.contains(sandbox.home.to_str().unwrap()), "{message}");
}

fn client_blob(sandbox: &Sandbox) -> String {
    let mut client = Client::new(sandbox, Era::Legacy);
    client.list()[1]["uri"].as_str().unwrap().to_owned()
}

fn is_of(file: &std::path::Path, blob: &str) -> bool {
    let checksum = blob.rsplit('/').next().unwrap();
    file.to_str().unwrap().ends_with(&format!("{}/{}.blob.gz", &checksum[..2], &checksum[2..]))
}

#[test]
fn no_path_leads_out_of_the_workspace() {
    let sandbox = workspace();
    let secret = sandbox.write("~/work/secret.md", "SECRET");
    sandbox.write("~/work/project-too/secret.md", "SECRET");
    symlink("..", sandbox.path("link")).unwrap();
    symlink("../../secret.md", sandbox.path("src/link.md")).unwrap();
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
        let (code, message) = client.refused(&uri(&sandbox, path));
        assert_eq!(code, -32602, "{path}: {message}");
        let told = message.replace(&uri(&sandbox, path), "").replace(secret, "");
        assert!(!told.contains(sandbox.home.to_str().unwrap()), "{path}: {message}");
    }
    for other in [format!("file://{secret}"), format!("file://{}-too/secret.md", sandbox.root.display())] {
        assert_eq!(client.refused(&other).0, -32602, "{other}");
    }
}

#[test]
fn what_a_walk_would_leave_out_is_refused_and_not_offered() {
    let sandbox = workspace();
    sandbox.write(".gitignore", "target/\n*.log\n!kept.log\n");
    sandbox.write(".jpignore", "private\n");
    sandbox.write("src/.ignore", "made.rs\n");
    sandbox.write(".git/config", "[remote]\n");
    sandbox.write("key", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n");
    for path in ["target/a", "x.log", "kept.log", "private/a", "src/made.rs", ".env", "sub/.aws/credentials"]
    {
        sandbox.write(path, "text\n");
    }
    symlink("src", sandbox.path("to-src")).unwrap();
    symlink(".env", sandbox.path("harmless")).unwrap();
    symlink(".git/config", sandbox.path("settings")).unwrap();
    let mut client = Client::new(&sandbox, Era::Modern);
    let because = [
        ("target/a", ".gitignore ignores it by the rule `target/`"),
        ("x.log", ".gitignore ignores it by the rule `*.log`"),
        ("private/a", ".jpignore ignores it by the rule `private`"),
        ("src/made.rs", "src/.ignore ignores it by the rule `made.rs`"),
        (".env", "its name is that of a file that holds secrets; a person who wants it read can attach it"),
        ("sub/.aws/credentials", "its name is that of a file that holds secrets"),
        ("harmless", "its name is that of a file that holds secrets"),
        ("key", "it is a private key"),
        (".git/config", "what belongs to version control and to jp is closed"),
        (".jp/config.toml", "what belongs to version control and to jp is closed"),
        ("settings", "what belongs to version control and to jp is closed"),
        ("to-src/main.rs", "a directory on its path is a link"),
    ];
    for (path, why) in because {
        let (code, message) = client.refused(&uri(&sandbox, path));
        assert_eq!(code, -32602, "{path}: {message}");
        assert!(message.starts_with(&format!("{path} is not offered: ")), "{message}");
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(client.text(&uri(&sandbox, "kept.log")), "text\n");
    let offered = client.completed(&files(&sandbox), "path", "", json!({}));
    assert_eq!(offered, [".gitignore", ".jpignore", "README.md", "kept.log", "key", "src/", "sub/"]);
    assert_eq!(client.completed(&files(&sandbox), "path", "src/", json!({})), ["src/.ignore", "src/main.rs"]);
    for closed in ["target/", "private/", ".git/", ".jp/", "to-src/"] {
        assert_eq!(client.completed(&files(&sandbox), "path", closed, json!({})), [""; 0], "{closed}");
    }
}

#[test]
fn file_is_bounded_and_looked_through_as_the_configuration_says() {
    let sandbox = workspace();
    let settings = "[conversation.attachment]\nmax_bytes = 100\nsecrets = \"refuse\"\n";
    sandbox.write("~/.config/jp/config.toml", settings);
    sandbox.write("large", "x".repeat(101));
    sandbox.write("notes.md", format!("one\ntoken: ghp_{}\n", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"));
    let mut client = Client::new(&sandbox, Era::Modern);
    let (_, message) = client.refused(&uri(&sandbox, "large"));
    assert!(
        message.contains("more than the 100 bytes that conversation.attachment.max_bytes allows"),
        "{message}"
    );
    let (_, message) = client.refused(&uri(&sandbox, "notes.md"));
    assert!(message.contains("line 2 holds what looks like") && message.contains("refuses it"), "{message}");
    assert!(!message.contains("ghp_"), "{message}");
}

#[test]
fn what_is_attached_outright_is_read_and_a_directory_gives_no_secrets() {
    let sandbox = workspace();
    sandbox.write("conf/.env", "A=1\n");
    sandbox.write("conf/a.toml", "a = 1\n");
    sandbox.jp(&["attachment", "add", "conf"]).succeeded();
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), ["README.md", "conf/a.toml", "README.md (turn 1)"]);
    assert!(client.refused(&uri(&sandbox, "conf/.env")).1.contains("is not offered"));
    sandbox.jp(&["attachment", "add", "conf/.env"]).succeeded();
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), ["README.md", "conf/a.toml", "conf/.env", "README.md (turn 1)"]);
    assert_eq!(client.text(&uri(&sandbox, "conf/.env")), "A=1\n");
    fs::remove_file(sandbox.path("README.md")).unwrap();
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), ["conf/a.toml", "conf/.env", "README.md (turn 1)"]);
}

#[test]
fn changes_of_files_conversations_and_the_list_are_told_in_each_era() {
    for era in ERAS {
        let sandbox = workspace();
        let mut client = Client::new(&sandbox, era);
        let main = uri(&sandbox, "src/main.rs");
        client.subscribe(&main);
        sandbox.write("src/main.rs", "fn main() { changed() }\n");
        client.notice("notifications/resources/updated", Some(&main));
        let readme = uri(&sandbox, "README.md");
        client.subscribe(&readme);
        sandbox.write("README.md", "changed\n");
        client.notice("notifications/resources/updated", Some(&readme));
        let conversation = format!("jp://conversation/{}", id(&sandbox));
        client.subscribe(&conversation);
        sandbox.jp(&["attachment", "add", "src/main.rs"]).succeeded();
        client.notice("notifications/resources/updated", Some(&conversation));
        client.notice("notifications/resources/list_changed", None);
        assert_eq!(client.names(), ["README.md", "src/main.rs", "README.md (turn 1)"]);
    }
}

#[test]
fn newer_snapshot_of_what_is_attached_is_told_and_read() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("state", "one\n");
    sandbox.jp(&["q", "--new", "-a", "cmd:cat state", "first"]).succeeded();
    let mut client = Client::new(&sandbox, Era::Legacy);
    let uri = client.list()[0]["uri"].as_str().unwrap().to_owned();
    client.subscribe(&uri);
    sandbox.write("state", "two\n");
    assert_eq!(client.text(&uri), "one\n", "nothing runs for a read");
    sandbox.jp(&["resource", "refresh", &uri]).succeeded();
    client.notice("notifications/resources/updated", Some(&uri));
    assert_eq!(client.text(&uri), "two\n");
}

#[test]
fn list_is_that_of_the_conversation_that_becomes_the_current_one() {
    let sandbox = workspace();
    let first = id(&sandbox);
    let mut client = Client::new(&sandbox, Era::Legacy);
    let mut pinned = Client::with(sandbox.command(&["mcp", "serve", "--id", &first]), Era::Legacy);
    let other = answering("Yes.");
    configure(&sandbox, other.url());
    sandbox.jp(&["q", "--new", "-a", "src/main.rs", "second"]).succeeded();
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
    sandbox.jp(&["q", "--new", "--local", "-a", "src/main.rs", "mine alone"]).succeeded();
    let all = sandbox.json(&["conversation", "ls"]);
    let local = all.as_array().unwrap().iter().find(|one| one["local"] == true).unwrap();
    let id = local["id"].as_str().unwrap();
    let mut client = Client::new(&sandbox, Era::Modern);
    assert_eq!(client.names(), [""; 0]);
    let template = "jp://conversation/{id}";
    assert_eq!(client.completed(template, "id", "", json!({})), [self::id(&sandbox)]);
    assert!(client.refused(&format!("jp://conversation/{id}")).1.contains("has no conversation"));
    let mut named = Client::with(sandbox.command(&["mcp", "serve", "--id", id]), Era::Modern);
    assert_eq!(named.names(), ["src/main.rs", "src/main.rs (turn 1)"]);
    assert!(named.text(&format!("jp://conversation/{id}")).contains("mine alone"));
    let warned = sandbox.jp(&["mcp", "serve"]).succeeded().stderr;
    assert!(warned.contains(&format!("`jp mcp serve --id {id}` offers it all the same")), "{warned}");
}

/// Every file and directory of jp's in the workspace, with its time and its size.
fn tree(sandbox: &Sandbox) -> BTreeMap<PathBuf, (SystemTime, u64)> {
    let mut tree = BTreeMap::new();
    let mut pending = vec![sandbox.path(".jp")];
    while let Some(path) = pending.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        tree.insert(path, (found.modified().unwrap(), found.len()));
    }
    tree
}

#[test]
fn nothing_is_written_and_no_lock_is_held() {
    let sandbox = workspace();
    let before = tree(&sandbox);
    let id = id(&sandbox);
    let mut client = Client::new(&sandbox, Era::Legacy);
    for resource in client.list() {
        client.read(resource["uri"].as_str().unwrap());
    }
    client.subscribe(&uri(&sandbox, "README.md"));
    client.text(&format!("jp://conversation/{id}"));
    client.text(&uri(&sandbox, "src/main.rs"));
    client.completed("jp://conversation/{id}", "id", "", json!({}));
    assert_eq!(tree(&sandbox), before);
    sandbox.jp(&["attachment", "add", "src/main.rs"]).succeeded();
    assert_eq!(client.end(), 0);
}

#[test]
fn http_serves_this_machine_and_wants_the_token() {
    let sandbox = workspace();
    let mut command = sandbox.command(&["mcp", "serve", "--http", "127.0.0.1:0"]);
    let open = Endpoint::new(command);
    assert_eq!(open.post("").0, 200);
    assert_eq!(open.post("Host: elsewhere.example\r\n").0, 403);
    assert_eq!(open.post("Origin: http://elsewhere.example\r\n").0, 403);
    command = sandbox.command(&["mcp", "serve", "--http", "127.0.0.1:0", "--allow-host", "box.example"]);
    command.env("JP_MCP_TOKEN", "a-secret");
    let guarded = Endpoint::new(command);
    assert_eq!(guarded.post("").0, 401);
    assert_eq!(guarded.post("Authorization: Bearer a-secret-too\r\n").0, 401);
    assert_eq!(guarded.post("Authorization: Bearer a-secret\r\n").0, 200);
    assert_eq!(guarded.post("Host: box.example\r\nAuthorization: Bearer a-secret\r\n").0, 200);
    assert_eq!(guarded.post("Host: other.example\r\nAuthorization: Bearer a-secret\r\n").0, 403);
}

#[test]
fn ctrl_c_and_the_end_of_stdin_end_it_quietly() {
    let sandbox = workspace();
    let mut http = Endpoint::new(sandbox.command(&["mcp", "serve", "--http", "127.0.0.1:0"]));
    kill_process(Pid::from_child(&http.process), Signal::INT).unwrap();
    assert_eq!(http.process.wait().unwrap().code(), Some(0));
    let mut client = Client::new(&sandbox, Era::Legacy);
    kill_process(Pid::from_child(&client.process), Signal::INT).unwrap();
    assert_eq!(client.process.wait().unwrap().code(), Some(0));
    let run = sandbox.jp(&["mcp", "serve"]).succeeded();
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
fn person_at_a_terminal_is_told_that_a_client_is_waited_for() {
    let sandbox = workspace();
    let mut terminal = Terminal::run(sandbox.command(&["mcp", "serve"]));
    terminal.expect("to an MCP client on stdin; Ctrl-C ends it.");
    terminal.send("\u{3}");
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn what_can_not_be_served_says_why() {
    let sandbox = workspace();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    sandbox
        .jp(&["mcp", "serve", "--http", &address])
        .failed(1, &[&format!("failed to listen to {address}: "), "hint: name another port"]);
    sandbox
        .jp(&["mcp", "serve", "--http", "0.0.0.0:0"])
        .failed(2, &["can be reached from other machines", "hint: set JP_MCP_TOKEN"]);
    sandbox.jp(&["mcp", "serve", "--id", "17"]).failed(1, &["there is no conversation 17", "hint: "]);
    sandbox.jp(&["mcp", "serve", "--id", "x"]).failed(2, &["a conversation id is a number"]);
    let mut command = sandbox.command(&["mcp", "serve", "--http", "127.0.0.1:0"]);
    command.env("JP_MCP_TOKEN", "two words");
    support::run(command).failed(2, &["the token in JP_MCP_TOKEN can't be sent"]);
    let mut command = sandbox.command(&["mcp", "serve"]);
    command.current_dir(&sandbox.home);
    support::run(command).failed(1, &["no workspace at or above", "hint: `jp init`"]);
}

#[test]
fn jp_itself_is_a_client_of_it() {
    let sandbox = workspace();
    let settings = json!([env!("CARGO_BIN_EXE_jp"), "mcp", "serve"]);
    sandbox.write("~/.config/jp/config.toml", format!("[providers.mcp.here]\ncommand = {settings}\n"));
    let list = sandbox.jp(&["mcp", "ls"]).succeeded().stdout;
    assert!(list.contains("here"), "{list}");
    let resources = sandbox.jp(&["mcp", "resources"]).succeeded().stdout;
    assert!(resources.contains("README.md (turn 1)"), "{resources}");
    let templates = sandbox.jp(&["mcp", "templates"]).succeeded().stdout;
    assert!(templates.contains("jp://conversation/{id}/turn/{n}"), "{templates}");
    let read = sandbox.jp(&["mcp", "read", "here", &uri(&sandbox, "src/main.rs")]).succeeded();
    assert_eq!(read.stdout, "fn main() {}\n");
    let turn = format!("jp://conversation/{}/turn/1", id(&sandbox));
    assert!(
        sandbox.jp(&["mcp", "read", "here", &turn]).succeeded().stdout.starts_with("## Turn 1\n\nfirst\n")
    );
    sandbox
        .jp(&["mcp", "read", "here", &uri(&sandbox, ".env")])
        .failed(1, &["the workspace has no file .env"]);
}

#[test]
fn workspace_without_a_conversation_has_files_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    let mut client = Client::new(&sandbox, Era::Legacy);
    assert_eq!(client.names(), [""; 0]);
    assert_eq!(client.text(&uri(&sandbox, "a.txt")), "a\n");
}
