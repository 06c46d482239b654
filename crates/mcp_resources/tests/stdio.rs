//! The example `notes`, as a client starts it: a child process that reads and writes JSON lines.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::example;
use tempfile::TempDir;
use testing::items;
use testing::mcp::{Client, ERAS, Era, within_patience};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

const LATEST: Era = Era::Legacy("2025-11-25");

/// A directory of notes, within one that has a secret.
fn notes() -> (TempDir, std::path::PathBuf) {
    let outside = tempfile::tempdir().unwrap();
    let directory = outside.path().join("notes");
    std::fs::create_dir_all(directory.join("sub")).unwrap();
    std::fs::create_dir(outside.path().join("notes-too")).unwrap();
    std::fs::write(outside.path().join("secret.md"), "# Secret").unwrap();
    std::fs::write(outside.path().join("notes-too/secret.md"), "# Secret").unwrap();
    std::fs::write(
        directory.join("todo.md"),
        "# Tasks\n## Urgent\nCall\n### Today\nNow\n## Later\nRest\n",
    )
    .unwrap();
    std::fs::write(directory.join("a b.md"), "# Spaced").unwrap();
    std::fs::write(directory.join("sub/deep.txt"), "deep").unwrap();
    (outside, directory)
}

fn start(directory: &Path) -> Child {
    let mut command = Command::new(example("notes"));
    command
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command.spawn().unwrap()
}

/// Returns the peak memory of a process, in kB.
#[cfg(target_os = "linux")]
fn peak_memory(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id().unwrap())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn connect(child: &mut Child, era: Era) -> Client {
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    Client::connect(output, input, era).await
}

/// Starts the server and a client of it.
async fn open(directory: &Path, era: Era) -> (Child, Client) {
    let mut child = start(directory);
    let client = connect(&mut child, era).await;
    (child, client)
}

async fn read(client: &mut Client, uri: &str) -> Value {
    client.read_uri(uri).await["contents"].take()
}

#[tokio::test]
async fn notes_are_served_in_each_era() {
    let (_outside, directory) = notes();
    for era in ERAS {
        let (_child, mut client) = open(&directory, era).await;
        let listed = client.result("resources/list", json!({})).await;
        let expected = json!({
            "uri": "notes://a%20b.md", "name": "a b.md", "description": "A file of notes", "mimeType": "text/markdown",
            "annotations": { "audience": ["user", "assistant"] },
        });
        assert_eq!(listed["resources"][0], expected, "{era:?}");
        let templates = client.result("resources/templates/list", json!({})).await;
        assert_eq!(
            templates["resourceTemplates"][1]["uriTemplate"],
            "notes://{file}/outline"
        );
        let file =
            json!([{ "uri": "notes://a%20b.md", "mimeType": "text/markdown", "text": "# Spaced" }]);
        assert_eq!(read(&mut client, "notes://a%20b.md").await, file);
        let deep = json!([{ "uri": "notes:///sub/deep.txt", "text": "deep" }]);
        assert_eq!(read(&mut client, "notes:///sub/deep.txt").await, deep);
        let outline = read(&mut client, "notes://todo.md/outline").await;
        assert_eq!(outline[0]["mimeType"], "application/json");
        let headlines: Value = serde_json::from_str(outline[0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(headlines[2], json!({ "level": 3, "title": "Today" }));
        let headline = read(&mut client, "notes://todo.md/headline/Tasks/Urgent").await;
        assert_eq!(headline[0]["text"], "Call\n### Today\nNow");
        let none = client.refusal("notes://todo.md/headline/Tasks/None").await;
        assert_eq!(
            (none.0, none.2),
            (
                -32602,
                json!({ "uri": "notes://todo.md/headline/Tasks/None" })
            )
        );
        let completed = client
            .complete("notes://{file}/outline", "file", "t", json!({}))
            .await;
        assert_eq!(completed["values"], json!(["todo.md"]));
    }
}

#[tokio::test]
async fn client_may_initialize_after_discovering() {
    let (_outside, directory) = notes();
    let (_child, mut client) = open(&directory, Era::Modern).await;
    let discovered = client.result("server/discover", json!({})).await;
    assert!(items(&discovered["supportedVersions"]).contains(&json!("2025-11-25")));
    // Neither this nor what is refused for want of a revision starts anything that a notification could be about.
    client
        .notify("notifications/cancelled", json!({ "requestId": 1 }))
        .await;
    client.era = LATEST;
    assert_eq!(client.error("resources/list", json!({})).await.0, -32602);
    client
        .notify("notifications/cancelled", json!({ "requestId": 2 }))
        .await;
    client
        .result("initialize", testing::mcp::initialize("2025-11-25"))
        .await;
    client.notify("notifications/initialized", json!({})).await;
    assert_eq!(
        read(&mut client, "notes://a%20b.md").await[0]["text"],
        "# Spaced"
    );
}

#[tokio::test]
async fn changes_of_files_are_announced_in_each_era() {
    for era in [LATEST, Era::Modern] {
        let (_outside, directory) = notes();
        let (_child, mut client) = open(&directory, era).await;
        match era {
            Era::Legacy(_) => {
                _ = client
                    .result("resources/subscribe", json!({ "uri": "notes://todo.md" }))
                    .await
            }
            Era::Modern => {
                let wanted = json!({ "resourceSubscriptions": ["notes://todo.md"], "resourcesListChanged": true });
                client.listen(wanted).await;
            }
        }
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
        let file = std::fs::File::options()
            .write(true)
            .open(directory.join("todo.md"))
            .unwrap();
        file.set_modified(later).unwrap();
        let notice = client.notice().await;
        assert_eq!(
            notice["method"], "notifications/resources/updated",
            "{era:?}"
        );
        assert_eq!(notice["params"]["uri"], "notes://todo.md");
        std::fs::write(directory.join("new.md"), "new").unwrap();
        client
            .expect_notice("notifications/resources/list_changed")
            .await;
        assert_eq!(read(&mut client, "notes://new.md").await[0]["text"], "new");
        std::fs::remove_file(directory.join("new.md")).unwrap();
        client
            .expect_notice("notifications/resources/list_changed")
            .await;
        assert_eq!(client.refusal("notes://new.md").await.0, -32602);
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_directory() {
    let (outside, directory) = notes();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outside.path(), directory.join("link")).unwrap();
        std::os::unix::fs::symlink("../secret.md", directory.join("sub/link.md")).unwrap();
        std::os::unix::fs::symlink("../secret.md", directory.join("link.md")).unwrap();
        std::os::unix::fs::symlink("nowhere", directory.join(".#todo.md")).unwrap();
    }
    let secret = outside.path().join("secret.md");
    let secret = secret.to_str().unwrap();
    let (_child, mut client) = open(&directory, LATEST).await;
    let listed = client.result("resources/list", json!({})).await;
    assert_eq!(listed["resources"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(client.refusal("notes://link.md").await.0, -32602);
    let paths = [
        "link.md",
        "../secret.md",
        "sub/../../secret.md",
        "%2e%2e/secret.md",
        "%2E%2E%2Fsecret.md",
        "%252e%252e/secret.md",
        "%252e%252e%252fsecret.md",
        "..%5Csecret.md",
        "../notes-too/secret.md",
        "./../secret.md",
        "link/secret.md",
        "link/notes-too/secret.md",
        "sub/link.md",
        "C:/secret.md",
        "C:%5Csecret.md",
        "secret.md%00",
        "%00../secret.md",
        "todo.md%00.txt",
        "..%c0%afsecret.md",
        "//secret.md",
        secret,
        &format!("/{secret}"),
        &secret.replace('/', "%2F"),
    ];
    for path in paths {
        for uri in [
            format!("notes:///{path}"),
            format!("notes://{}/outline", path.replace('/', "%2F")),
        ] {
            let (code, message, _) = client.refusal(&uri).await;
            assert_eq!(code, -32602, "{uri}: {message}");
            let of_machine = outside.path().to_str().unwrap();
            let repeated = path.replace("%2F", "/").contains(of_machine);
            assert!(
                repeated || !message.contains(of_machine),
                "{uri}: {message}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_message_does_not_end_the_server() {
    let (_outside, directory) = notes();
    let (_child, mut client) = open(&directory, LATEST).await;
    for line in ["", "not JSON", "{", "\u{feff}", "null"] {
        client.write_line(line).await;
    }
    client.write_line(&"x".repeat(1 << 20)).await;
    client
        .write(json!({ "jsonrpc": "2.0", "method": "notifications/unknown" }))
        .await;
    client
        .write(json!({ "jsonrpc": "2.0", "id": 77, "result": {} }))
        .await;
    client
        .write(json!({ "jsonrpc": "2.0", "id": 78, "method": "resources/read", "params": { "uri": 5 } }))
        .await;
    let listed = client.result("resources/list", json!({})).await;
    assert_eq!(listed["resources"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_asks_nothing_before_the_first_request_is_left_out() {
    let (_outside, directory) = notes();
    for era in ERAS {
        let mut child = start(&directory);
        let mut stdin = child.stdin.take().unwrap();
        for first in [
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
            json!({ "jsonrpc": "2.0", "id": 9, "result": {} }),
            json!({ "jsonrpc": "2.0", "id": 9, "error": { "code": 1, "message": "" } }),
        ] {
            stdin
                .write_all(format!("{first}\n").as_bytes())
                .await
                .unwrap();
        }
        let mut client = Client::connect(child.stdout.take().unwrap(), stdin, era).await;
        let listed = client.result("resources/list", json!({})).await;
        assert_eq!(listed["resources"].as_array().unwrap().len(), 2, "{era:?}");
    }
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let (_outside, directory) = notes();
    let (_child, mut client) = open(&directory, LATEST).await;
    let mut open = std::collections::BTreeSet::new();
    for _ in 0..500 {
        open.insert(client.send_read("notes://todo.md").await);
    }
    while !open.is_empty() {
        let answer = client.read().await;
        assert_eq!(answer["result"]["contents"][0]["uri"], "notes://todo.md");
        assert!(
            open.remove(&answer["id"].as_u64().unwrap()),
            "one answer each"
        );
    }
}

#[tokio::test]
async fn server_ends_with_its_client() {
    let (_outside, directory) = notes();
    let mut child = start(&directory);
    drop(child.stdin.take());
    assert!(
        within_patience(child.wait()).await.success(),
        "without a word"
    );
    let (mut child, mut client) = open(&directory, LATEST).await;
    client.close().await;
    assert!(within_patience(child.wait()).await.success());
}

#[tokio::test]
async fn last_line_is_answered_without_its_end() {
    let (_outside, directory) = notes();
    let request = |method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }).to_string()
    };
    let initialize = |version: &str| request("initialize", testing::mcp::initialize(version));
    let ping = request("ping", json!({}));
    for (lines, answered) in [
        (vec![initialize("2025-11-25")], "initialize"),
        (vec![initialize("2025-11-25"), ping.clone()], "ping"),
        (vec![initialize("2025-03-26"), format!("[{ping}]")], "ping"),
        (
            vec![
                initialize("2025-11-25"),
                r#"{"id":"unversioned","method":"ping"}"#.to_owned(),
            ],
            "unversioned",
        ),
    ] {
        let mut child = start(&directory);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(lines.join("\n").as_bytes()).await.unwrap();
        drop(stdin);
        let output = within_patience(child.wait_with_output()).await;
        let output = String::from_utf8(output.stdout).unwrap();
        let answers: Vec<Value> = output
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            answers.last().map(|answer| &answer["id"]),
            Some(&json!(answered)),
            "{lines:?}"
        );
        assert_eq!(answers.len(), lines.len(), "{lines:?}");
    }
}

/// rmcp waits five seconds for requests that are not answered when the client is gone.
#[tokio::test]
async fn server_does_not_outlive_a_client_that_listened() {
    let (_outside, directory) = notes();
    let (mut child, mut client) = open(&directory, Era::Modern).await;
    let notifications = json!({ "resourceSubscriptions": ["notes://a%20b.md"] });
    client.listen(notifications).await;
    std::fs::write(directory.join("a b.md"), "# Changed").unwrap();
    client
        .expect_notice("notifications/resources/updated")
        .await;
    client.close().await;
    let end = tokio::time::timeout(Duration::from_secs(4), child.wait()).await;
    assert!(end.expect("it waits for the listener").unwrap().success());
}

/// A shell pipes one request into a server and closes its input.
#[tokio::test]
async fn stream_on_the_last_line_is_acknowledged() {
    let (_outside, directory) = notes();
    let mut child = start(&directory);
    let notifications = json!({ "resourcesListChanged": true });
    let params = json!({ "_meta": testing::mcp::meta(), "notifications": notifications });
    let listen =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    child
        .stdin
        .take()
        .unwrap()
        .write_all(listen.to_string().as_bytes())
        .await
        .unwrap();
    let output = tokio::time::timeout(Duration::from_secs(4), child.wait_with_output()).await;
    let output =
        String::from_utf8(output.expect("it waits for the listener").unwrap().stdout).unwrap();
    let lines: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[0]["method"], "notifications/subscriptions/acknowledged",
        "{output}"
    );
    assert_eq!((&lines[1]["id"], lines.len()), (&json!(1), 2), "{output}");
    assert!(lines[1]["result"].is_object(), "{output}");
}

#[tokio::test]
async fn slow_client_that_asks_no_more_gets_all_its_answers() {
    const READS: usize = 24;
    let (_outside, directory) = notes();
    std::fs::write(directory.join("large.md"), "x".repeat(1_000_000)).unwrap();
    let (mut child, mut client) = open(&directory, LATEST).await;
    let mut open = std::collections::BTreeSet::new();
    for _ in 0..READS {
        open.insert(client.send_read("notes://large.md").await);
    }
    client.close().await;
    while !open.is_empty() {
        // Longer, in all, than rmcp waits for what is open.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let answer = client.read().await;
        assert!(open.remove(&answer["id"].as_u64().unwrap()) && answer["result"].is_object());
    }
    assert!(within_patience(child.wait()).await.success());
}

#[tokio::test]
async fn handler_that_blocks_neither_stops_others_nor_the_end() {
    let mut command = Command::new(example("resource_bench"));
    command
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut client = connect(&mut child, LATEST).await;
    client.send_read("bench://forever").await;
    assert!(read(&mut client, "bench://small").await[0]["text"].is_string());
    client.close().await;
    assert!(within_patience(child.wait()).await.success());
}

#[tokio::test]
async fn notes_without_a_directory_says_what_is_wrong() {
    let output = Command::new(example("notes"))
        .arg("no such directory")
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .starts_with("error: ")
    );
    assert_eq!(
        Command::new(example("notes"))
            .output()
            .await
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}

#[tokio::test]
async fn batch_of_a_client_of_2025_03_26_is_answered_message_by_message() {
    let (_outside, directory) = notes();
    let (_child, mut client) = open(&directory, Era::Legacy("2025-03-26")).await;
    let request = |id: &str, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    let batch = json!([
        request("a", "ping"),
        notice,
        request("b", "resources/list"),
        5
    ]);
    client.write_line(&format!(" \t{batch}")).await;
    let mut answers = std::collections::BTreeMap::new();
    for _ in 0..3 {
        let answer = client.read().await;
        answers.insert(answer["id"].to_string(), answer);
    }
    assert_eq!(answers["\"a\""]["result"], json!({}));
    assert_eq!(items(&answers["\"b\""]["result"]["resources"]).len(), 2);
    assert_eq!(answers["null"]["error"]["code"], -32600);
    assert_eq!(client.result("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn batch_is_what_the_client_that_was_accepted_may_send() {
    let (_outside, directory) = notes();
    let mut child = start(&directory);
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let refused = json!({ "protocolVersion": "2025-11-25" });
    let initialize = |params: Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
    };
    let ping = json!([{ "jsonrpc": "2.0", "id": 2, "method": "ping" }]).to_string();
    let lines = [
        initialize(refused),
        initialize(testing::mcp::initialize("2025-03-26")),
        ping,
    ];
    input
        .write_all((lines.join("\n") + "\n").as_bytes())
        .await
        .unwrap();
    let mut answers = tokio::io::BufReader::new(output).lines();
    let mut answer = async || -> Value {
        serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap()
    };
    assert_eq!(answer().await["error"]["code"], -32602);
    assert_eq!(answer().await["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(
        answer().await,
        json!({ "jsonrpc": "2.0", "id": 2, "result": {} })
    );
}

#[tokio::test]
async fn batch_is_refused_where_the_revision_has_none() {
    let (_outside, directory) = notes();
    for era in [Era::Legacy("2025-06-18"), LATEST, Era::Modern] {
        let (_child, mut client) = open(&directory, era).await;
        client.result("resources/list", json!({})).await;
        for batch in [
            json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]),
            json!([]),
        ] {
            client.write(batch).await;
            let answer = client.read().await;
            assert_eq!(
                (answer.get("id"), &answer["error"]["code"]),
                (None, &json!(-32600)),
                "{era:?}"
            );
        }
        client.result("resources/list", json!({})).await;
    }
}

#[tokio::test]
async fn batch_has_a_hundred_messages_at_the_most_with_an_id_each() {
    let (_outside, directory) = notes();
    let (_child, mut client) = open(&directory, Era::Legacy("2025-03-26")).await;
    let request = |id: u64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read",
        "params": { "uri": "notes://todo.md", "filler": "x".repeat(1000) } })
    };
    client.write((1000..1100).map(request).collect()).await;
    let mut open: std::collections::BTreeSet<u64> = (1000..1100).collect();
    while !open.is_empty() {
        let answer = client.read().await;
        assert_eq!(answer["result"]["contents"][0]["uri"], "notes://todo.md");
        assert!(
            open.remove(&answer["id"].as_u64().unwrap()),
            "one answer each"
        );
    }
    client.write((1000..1101).map(request).collect()).await;
    let answer = client.read().await;
    assert_eq!(
        (answer.get("id"), &answer["error"]["code"]),
        (None, &json!(-32600))
    );
    client.write_line(&format!("[{}", request(1000))).await;
    let answer = client.read().await;
    assert_eq!(
        (answer.get("id"), &answer["error"]["code"]),
        (None, &json!(-32700))
    );
    client.write(json!([request(1000), request(1000)])).await;
    let answers = [client.read().await, client.read().await];
    let mut codes = answers.map(|answer| (answer["id"].as_u64(), answer["error"]["code"].as_i64()));
    codes.sort();
    assert_eq!(
        codes,
        [(Some(1000), None), (Some(1000), Some(-32600))],
        "one of them is refused"
    );
}

#[tokio::test]
async fn server_ends_with_its_client_though_that_does_not_read() {
    let (_outside, directory) = notes();
    std::fs::write(directory.join("large.md"), "x".repeat(9_000_000)).unwrap();
    let (mut child, mut client) = open(&directory, LATEST).await;
    client.send_read("notes://large.md").await;
    client.close().await;
    within_patience(child.wait()).await;
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_with_its_id_where_it_has_one() {
    let (_outside, directory) = notes();
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    for era in [LATEST, Era::Modern] {
        let (_child, mut client) = open(&directory, era).await;
        for (line, id, code) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":["a"]}"#,
                Some(json!(7)),
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"\ud800"}}"#,
                Some(json!("x")),
                -32602,
            ),
            (
                &format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{deep}}}"#),
                Some(json!(7)),
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":5}"#,
                Some(json!(7)),
                -32600,
            ),
            (r#"{"id":7,"method":"ping"}"#, Some(json!(7)), -32600),
            (r#"{"jsonrpc":"2.0","id":7}"#, Some(json!(7)), -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None, -32600),
            ("garbage", None, -32700),
            (r#"{"jsonrpc":"2.0","id":7} {}"#, None, -32700),
            ("5", None, -32600),
        ] {
            client.write_line(line).await;
            let answer = client.read().await;
            let told = (answer.get("id"), &answer["error"]["code"]);
            assert_eq!(told, (id.as_ref(), &json!(code)), "{era:?} {line:.100}");
        }
        // Nothing is said of notices and responses.
        for line in [
            r#"{"jsonrpc":"2.0","method":"x","params":5}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":5}"#,
        ] {
            client.write_line(line).await;
        }
        client.result("resources/list", json!({})).await;
        client.write_line(&"x".repeat(17 * 1024 * 1024)).await;
        assert_eq!(client.read().await["error"]["code"], -32600);
        client.result("resources/list", json!({})).await;
    }
}

#[tokio::test]
async fn client_that_waits_for_changes_on_many_streams_is_still_heard() {
    let (_outside, directory) = notes();
    let (mut child, mut client) = open(&directory, Era::Modern).await;
    for _ in 0..1100 {
        client.listen(json!({ "resourcesListChanged": true })).await;
    }
    assert_eq!(
        items(&client.result("resources/list", json!({})).await["resources"]).len(),
        2
    );
    client.close().await;
    assert!(within_patience(child.wait()).await.success());
}

#[tokio::test]
async fn server_ends_when_nobody_reads_its_answers_any_more() {
    let (_outside, directory) = notes();
    for is_initialized in [true, false] {
        let mut child = start(&directory);
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = tokio::io::BufReader::new(output);
        let params = testing::mcp::initialize("2025-11-25");
        let line = |id: u64, method: &str, params: &Value| {
            format!(
                "{}\n",
                json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
            )
        };
        if is_initialized {
            input
                .write_all(line(1, "initialize", &params).as_bytes())
                .await
                .unwrap();
            output.read_line(&mut String::new()).await.unwrap();
        }
        drop(output);
        let request = if is_initialized {
            line(2, "ping", &json!({}))
        } else {
            line(1, "initialize", &params)
        };
        input.write_all(request.as_bytes()).await.unwrap();
        let ended = within_patience(child.wait()).await;
        assert!(ended.success(), "{ended}");
    }
}

/// Also where rmcp answers by itself, and drops what a request came with before it does.
#[tokio::test]
async fn client_that_does_not_read_is_not_read_from_whatever_it_asks() {
    const READS: u64 = 40;
    const OTHERS: u64 = 3000;
    let (_outside, directory) = notes();
    std::fs::write(directory.join("large.md"), "x".repeat(1_000_000)).unwrap();
    let mut child = start(&directory);
    let mut input = child.stdin.take().unwrap();
    let mut output = tokio::io::BufReader::new(child.stdout.take().unwrap());
    let line = |id: u64, method: &str, params: Value| {
        format!(
            "{}\n",
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        )
    };
    input
        .write_all(line(0, "initialize", testing::mcp::initialize("2025-11-25")).as_bytes())
        .await
        .unwrap();
    output.read_line(&mut String::new()).await.unwrap();
    let mut asking = tokio::spawn(async move {
        for id in 1..=READS {
            let read = line(id, "resources/read", json!({ "uri": "notes://large.md" }));
            input.write_all(read.as_bytes()).await.unwrap();
        }
        for id in READS + 1..=READS + OTHERS {
            let other = line(
                id,
                "tools/call",
                json!({ "name": "none", "arguments": { "filler": "x".repeat(200) } }),
            );
            input.write_all(other.as_bytes()).await.unwrap();
        }
        input
    });
    // All of it is more than the pipe holds.
    assert!(
        tokio::time::timeout(Duration::from_secs(2), &mut asking)
            .await
            .is_err(),
        "it was all read"
    );
    let mut open: std::collections::BTreeSet<u64> = (1..=READS + OTHERS).collect();
    while !open.is_empty() {
        let mut line = String::new();
        within_patience(output.read_line(&mut line)).await;
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(
            open.remove(&answer["id"].as_u64().unwrap()),
            "one answer each"
        );
    }
    drop(asking.await.unwrap());
}

/// A line may have 16 MiB, and a value of two bytes takes hundreds.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn line_of_many_values_costs_no_memory() {
    let (_outside, directory) = notes();
    let (child, mut client) = open(&directory, LATEST).await;
    let objects = vec![r#"{"":0}"#; 2_000_000].join(",");
    for (line, refused) in [
        (
            format!(
                r#"{{"jsonrpc":"2.0","id":"many","method":"ping","params":{{"x":[{objects}]}}}}"#
            ),
            Some("many"),
        ),
        (
            format!(r#"{{"params":{{"x":[{objects}]}},"id":"last","method":"x","jsonrpc":"2.0"}}"#),
            Some("last"),
        ),
        (
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":[{objects}]}}}}"#
            ),
            None,
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"x":[{objects}]}}}}"#),
            None,
        ),
    ] {
        client.write_line(&line).await;
        if let Some(id) = refused {
            let answer = client.read().await;
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&json!(id), &json!(-32602)),
                "{answer}"
            );
        }
    }
    client.result("resources/list", json!({})).await;
    let memory = peak_memory(&child);
    assert!(memory < 200_000, "{memory} kB");
}

/// The work for a request counts until it ends, even if the client has cancelled it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn client_that_cancels_all_it_asks_costs_no_memory() {
    let (_outside, directory) = notes();
    let (child, mut client) = open(&directory, LATEST).await;
    for batch in 0..300_u64 {
        let pair = |id: u64| {
            let params = json!({ "uri": "notes://todo.md" });
            let read =
                json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params });
            let method = "notifications/cancelled";
            let cancel =
                json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": id } });
            format!("{read}\n{cancel}")
        };
        let pairs: Vec<String> = (0..200)
            .map(|number| pair(1000 + batch * 200 + number))
            .collect();
        client.write_line(&pairs.join("\n")).await;
    }
    client.result("resources/list", json!({})).await;
    let memory = peak_memory(&child);
    assert!(memory < 150_000, "{memory} kB");
}

/// Of 200 answers of 9 MB each, which a client asks for and does not read, few are made; they come once it reads.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn client_that_reads_no_answers_costs_no_memory_for_all_of_them() {
    let (_outside, directory) = notes();
    std::fs::write(directory.join("large.md"), "x".repeat(9_000_000)).unwrap();
    let (child, mut client) = open(&directory, LATEST).await;
    for _ in 0..200 {
        client.send_read("notes://large.md").await;
    }
    // It has done what it does once it does no more.
    let mut before = 0;
    while peak_memory(&child) > before {
        before = peak_memory(&child);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for _ in 0..200 {
        client.skip().await;
    }
    client.result("resources/list", json!({})).await;
    // 32 wait and 32 are being made, each of which is a text and then a line; the lines of all would take more.
    let memory = peak_memory(&child);
    assert!(memory < 1_700_000, "{memory} kB");
}
