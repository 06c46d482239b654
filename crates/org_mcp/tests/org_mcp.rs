//! The program, as a client starts it: a child process that reads and writes JSON lines, and real files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::mcp::{Client, ERAS, Era, within_patience};
use testing::{assert_contains, assert_fields, assert_starts};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const LATEST: Era = Era::Legacy("2025-11-25");

const TASKS: &str = "\
* TODO Tasks :work:
** Urgent / now
:PROPERTIES:
:ID: 7a-urgent
:END:
Call.
** Later
";

/// Allowed files below `org`, and what is beside it.
fn files() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("org/tasks.org", TASKS),
        ("org/office/notes.org", "* Office\n"),
        (
            "org/home/notes.org",
            "* Home\n:PROPERTIES:\n:ID: home\n:END:\n",
        ),
        ("org/secret.txt", "secret"),
        ("org/.hidden.org", "secret"),
        ("org-too/secret.org", "secret"),
        ("secret.org", "* secret\n:PROPERTIES:\n:ID: secret\n:END:\n"),
    ] {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// The program with arguments in a directory, in which no shell expands anything.
fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_org-mcp"));
    command
        .args(arguments)
        .current_dir(directory)
        .kill_on_drop(true);
    command.env("HOME", directory).env_remove("ORG_MCP_TOKEN");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

async fn start(directory: &Path, arguments: &[&str], era: Era) -> (Child, Client) {
    let mut child = command(directory, arguments).spawn().unwrap();
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = Client::connect(output, input, era).await;
    (child, client)
}

/// Runs the program for a client that leaves at once.
async fn run(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command(directory, arguments);
    let ended = command.stdin(Stdio::null()).output();
    let Output { status, stderr, .. } = within_patience(ended).await;
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Writes a file below a directory.
fn write(directory: &TempDir, path: &str, content: impl AsRef<[u8]>) {
    fs::write(directory.path().join(path), content).unwrap();
}

#[tokio::test]
async fn all_resources_are_served_in_each_era() {
    let directory = files();
    for era in ERAS {
        let (_child, mut client) = start(directory.path(), &["org/tasks.org"], era).await;
        let listed = client.result("resources/list", json!({})).await;
        let expected = json!([{
            "uri": "org://tasks.org", "name": "tasks.org", "mimeType": "text/plain",
            "description": "The whole Org file; org://tasks.org/outline has its headlines",
        }]);
        assert_eq!(listed["resources"], expected, "{era:?}");
        let templates = client.result("resources/templates/list", json!({})).await;
        let templates = templates["resourceTemplates"].as_array().unwrap();
        let templates: Vec<(&Value, &Value)> = templates
            .iter()
            .map(|template| (&template["uriTemplate"], &template["mimeType"]))
            .collect();
        let expected = json!([
            ["org://{filename}/outline", "application/json"],
            ["org://{filename}/headline/{+path}", "text/plain"],
            ["org://id/{id}", "text/plain"],
        ]);
        assert_eq!(json!(templates), expected);

        let whole = json!({ "uri": "org://tasks.org", "mimeType": "text/plain", "text": TASKS });
        assert_eq!(
            client.read_resource("org://tasks.org").await,
            whole,
            "{era:?}"
        );
        let outline = client.read_resource("org://tasks.org/outline").await;
        assert_eq!(outline["mimeType"], "application/json");
        let children = json!([
            { "title": "Urgent / now", "level": 2, "path": "Tasks/Urgent %2F now", "id": "7a-urgent", "children": [] },
            { "title": "Later", "level": 2, "path": "Tasks/Later", "children": [] },
        ]);
        let expected =
            json!([{ "title": "Tasks", "level": 1, "path": "Tasks", "children": children }]);
        assert_eq!(
            serde_json::from_str::<Value>(outline["text"].as_str().unwrap()).unwrap(),
            expected
        );
        let urgent = "** Urgent / now\n:PROPERTIES:\n:ID: 7a-urgent\n:END:\nCall.\n";
        assert_eq!(client.text("org://id/7a-urgent").await, urgent);
    }
}

#[tokio::test]
async fn client_that_asks_for_tools_and_prompts_gets_empty_lists() {
    let directory = files();
    for era in ERAS {
        let (_child, mut client) = start(directory.path(), &["org/tasks.org"], era).await;
        assert_eq!(
            client.result("tools/list", json!({})).await["tools"],
            json!([]),
            "{era:?}"
        );
        assert_eq!(
            client.result("prompts/list", json!({})).await["prompts"],
            json!([]),
            "{era:?}"
        );
    }
}

#[tokio::test]
async fn path_of_the_outline_reaches_its_headline_however_the_client_encodes_it() {
    let directory = files();
    let titles = ["a/b", "c%2Fd", "100% c", "d #1?", "é ü", "x:y+z", "\"q\""];
    let text_of = |title: &str| format!("* {title}\n");
    write(&directory, "t.org", titles.map(text_of).concat());
    let (_child, mut client) = start(directory.path(), &["t.org"], LATEST).await;
    let outline: Value = serde_json::from_str(&client.text("org://t.org/outline").await).unwrap();
    let template = "org://t.org/headline/{+path}"
        .parse::<mcp_resources::template::UriTemplate>()
        .unwrap();
    let simple = "org://t.org/headline/{path}"
        .parse::<mcp_resources::template::UriTemplate>()
        .unwrap();
    for (title, headline) in titles.iter().zip(outline.as_array().unwrap()) {
        let values = [("path".to_owned(), headline["path"].as_str().unwrap().into())].into();
        for uri in [
            template.expand(&values).unwrap(),
            simple.expand(&values).unwrap(),
        ] {
            assert_eq!(client.text(&uri).await, text_of(title), "{uri}");
        }
    }
}

#[tokio::test]
async fn what_does_not_exist_is_an_error_that_says_how_to_find_what_does() {
    let directory = files();
    let (_child, mut client) = start(directory.path(), &["org/tasks.org"], LATEST).await;
    for (uri, message) in [
        (
            "org://none.org/outline",
            "there is no file \"none.org\"; resources/list names all",
        ),
        (
            "org://tasks.org/headline/None",
            "there is no headline \"None\" in the file; its outline has the paths of all",
        ),
        ("org://id/none", "no headline has the ID \"none\""),
        ("org://none.org", "there is no resource org://none.org"),
    ] {
        let (code, told, data) = client.refusal(uri).await;
        assert_eq!((code, data), (-32602, json!({ "uri": uri })));
        assert!(told.contains(message), "{told}");
    }
}

#[tokio::test]
async fn equal_names_are_told_apart_in_all_uris() {
    let directory = files();
    let (_child, mut client) = start(directory.path(), &["org/**/notes.org"], LATEST).await;
    assert_eq!(
        client.uris().await,
        ["org://home/notes.org", "org://office/notes.org"]
    );
    assert_eq!(client.text("org://office/notes.org").await, "* Office\n");
    assert_eq!(
        client.text("org://office/notes.org/headline/Office").await,
        "* Office\n"
    );
    for uri in [
        "org://home/notes.org/outline",
        "org://home%2Fnotes.org/outline",
    ] {
        assert_contains(client.text(uri).await, r#""title":"Home""#);
    }
    assert_eq!(client.refusal("org://notes.org/outline").await.0, -32602);
}

#[tokio::test]
async fn file_named_like_a_part_of_a_uri_is_not_confused_with_it() {
    let directory = files();
    write(&directory, "org/id", "* The file\n");
    write(&directory, "org/outline", "* Outlined\n");
    let (_child, mut client) = start(
        directory.path(),
        &["org/id", "org/outline", "org/home/notes.org"],
        LATEST,
    )
    .await;
    assert_eq!(
        client.uris().await,
        ["org://org/id", "org://outline", "org://notes.org"]
    );
    assert!(client.text("org://id/home").await.starts_with("* Home"));
    assert_eq!(client.text("org://org/id").await, "* The file\n");
    assert_contains(client.text("org://org/id/outline").await, "The file");
    assert_contains(client.text("org://outline/outline").await, "Outlined");
}

#[tokio::test]
async fn names_paths_and_ids_are_completed() {
    let directory = files();
    let (_child, mut client) = start(
        directory.path(),
        &["org/tasks.org", "org/home/notes.org"],
        LATEST,
    )
    .await;
    let (outline, headline) = (
        "org://{filename}/outline",
        "org://{filename}/headline/{+path}",
    );
    assert_eq!(
        client.complete(outline, "filename", "", json!({})).await["values"],
        json!(["tasks.org", "notes.org"])
    );
    assert_eq!(
        client.complete(headline, "filename", "n", json!({})).await["values"],
        json!(["notes.org"])
    );
    let of_tasks = json!({ "filename": "tasks.org" });
    let paths = client.complete(headline, "path", "Tasks/", of_tasks).await["values"].take();
    assert_eq!(paths, json!(["Tasks/Urgent %2F now", "Tasks/Later"]));
    assert_eq!(
        client.complete(headline, "path", "", json!({})).await["values"],
        json!([])
    );
    let of_secret = json!({ "filename": "../secret.org" });
    assert_eq!(
        client.complete(headline, "path", "", of_secret).await["values"],
        json!([])
    );
    assert_eq!(
        client.complete("org://id/{id}", "id", "", json!({})).await["values"],
        json!(["7a-urgent", "home"])
    );
    assert_eq!(
        client.complete("org://id/{id}", "id", "h", json!({})).await["values"],
        json!(["home"])
    );
}

#[tokio::test]
async fn completion_counts_all_that_there_is() {
    let directory = files();
    let text: String = (0..2_500).map(|number| format!("* H{number}\n")).collect();
    write(&directory, "many.org", text);
    let (_child, mut client) = start(directory.path(), &["many.org"], LATEST).await;
    let template = "org://{filename}/headline/{+path}";
    let found = client
        .complete(template, "path", "H", json!({ "filename": "many.org" }))
        .await;
    assert_eq!(found["values"].as_array().unwrap().len(), 100);
    assert_fields!(found, {"total": 2_500, "hasMore": true});
}

#[tokio::test]
async fn id_whose_uri_is_that_of_an_outline_is_reached_by_path_alone() {
    let directory = files();
    write(
        &directory,
        "a.org",
        "* A\n:PROPERTIES:\n:ID: outline\n:END:\n",
    );
    let (_child, mut client) = start(directory.path(), &["a.org"], LATEST).await;
    let (_, message, _) = client.refusal("org://id/outline").await;
    assert!(message.contains("there is no file \"id\""), "{message}");
    assert_contains(client.text("org://a.org/headline/A").await, "outline");
}

#[cfg(unix)]
#[tokio::test]
async fn no_uri_reaches_another_file() {
    let directory = files();
    let org = directory.path().join("org");
    std::os::unix::fs::symlink("../secret.org", org.join("link.org")).unwrap();
    std::os::unix::fs::symlink("..", org.join("up")).unwrap();
    let (_child, mut client) = start(&org, &["tasks.org", "office/notes.org"], LATEST).await;
    let absolute = directory
        .path()
        .join("secret.org")
        .to_str()
        .unwrap()
        .to_owned();
    let paths = [
        "../secret.org",
        "..%2Fsecret.org",
        "%2E%2E/secret.org",
        "%2e%2e%2fsecret.org",
        "..%252Fsecret.org",
        "%252e%252e%252fsecret.org",
        "tasks.org/../../secret.org",
        "tasks.org%2F..%2F..%2Fsecret.org",
        "./secret.txt",
        "secret.txt",
        ".hidden.org",
        "link.org",
        "up/secret.org",
        "../org-too/secret.org",
        "..%2Forg-too%2Fsecret.org",
        &absolute,
        &absolute.replace('/', "%2F"),
        "C:/secret.org",
        "C%3A%5Csecret.org",
        "..%5Csecret.org",
        "tasks.org%00",
        "tasks.org%00.txt",
        "%00",
        "",
        ".",
        "..",
        "/",
        "%2F",
        "tasks.org/",
        "TASKS.ORG",
        "tasks.org.",
        "office",
        "office/../tasks.org",
        "office/notes.org",
        "file:///etc/passwd",
        "%C0%AE%C0%AE/secret.org",
        "*.org",
        "~/secret.org",
        "\u{202e}gro.terces",
        "..;/secret.org",
        "secret.org?x=tasks.org",
        "tasks.org#../secret.org",
    ];
    for path in paths {
        for uri in [
            format!("org://{path}"),
            format!("org://{path}/outline"),
            format!("org://{path}/headline/secret"),
            format!("org://id/{path}"),
        ] {
            let (code, message, _) = client.refusal(&uri).await;
            assert_eq!(code, -32602, "{uri}: {message}");
        }
    }
    assert_eq!(client.refusal("org://id/secret").await.0, -32602);
    assert_eq!(client.text("org://tasks.org").await, TASKS, "and it lives");
}

#[cfg(unix)]
#[tokio::test]
async fn link_that_is_named_is_served_under_its_own_name() {
    let directory = files();
    std::os::unix::fs::symlink("../secret.org", directory.path().join("org/link.org")).unwrap();
    let (_child, mut client) = start(directory.path(), &["org/link.org"], LATEST).await;
    assert_eq!(client.uris().await, ["org://link.org"]);
    assert!(client.text("org://link.org").await.starts_with("* secret"));
}

#[cfg(unix)]
#[tokio::test]
async fn file_that_became_a_link_to_another_is_refused() {
    let directory = files();
    let (_child, mut client) = start(directory.path(), &["org/tasks.org"], LATEST).await;
    fs::remove_file(directory.path().join("org/tasks.org")).unwrap();
    std::os::unix::fs::symlink("../secret.org", directory.path().join("org/tasks.org")).unwrap();
    for uri in [
        "org://tasks.org",
        "org://tasks.org/outline",
        "org://tasks.org/headline/secret",
    ] {
        let (code, message, _) = client.refusal(uri).await;
        assert_eq!(code, -32603, "{uri}");
        assert_contains(&message, "tasks.org is a link to another file now");
    }
}

#[tokio::test]
async fn edits_are_announced_in_both_eras() {
    for era in [LATEST, Era::Modern] {
        let directory = files();
        let (_child, mut client) = start(
            directory.path(),
            &["org/tasks.org", "org/home/notes.org"],
            era,
        )
        .await;
        let below = "org://tasks.org/headline/Tasks/Later";
        client.subscribe(&["org://tasks.org", below]).await;
        write(&directory, "org/tasks.org", "* Tasks\n** Later\nMore.\n");
        let mut told = BTreeSet::new();
        while told.len() < 2 {
            told.insert(client.updated().await.as_str().unwrap().to_owned());
        }
        assert_eq!(json!(told), json!(["org://tasks.org", below]), "{era:?}");
        assert_eq!(client.text(below).await, "** Later\nMore.\n");
        fs::remove_file(directory.path().join("org/tasks.org")).unwrap();
        client.updated().await;
        assert_eq!(client.refusal("org://tasks.org").await.0, -32602);
    }
}

#[tokio::test]
async fn subscriber_of_an_id_hears_of_it_when_it_moves_to_another_file() {
    for era in [LATEST, Era::Modern] {
        let directory = files();
        let (_child, mut client) = start(
            directory.path(),
            &["org/tasks.org", "org/home/notes.org"],
            era,
        )
        .await;
        client.subscribe(&["org://id/moved"]).await;
        write(
            &directory,
            "org/home/notes.org",
            "* M\n:PROPERTIES:\n:ID: moved\n:END:\n",
        );
        assert_eq!(client.updated().await, "org://id/moved", "{era:?}");
        assert!(client.text("org://id/moved").await.starts_with("* M\n"));
        write(
            &directory,
            "org/tasks.org",
            "* N\n:PROPERTIES:\n:ID: moved\n:END:\n",
        );
        assert_eq!(client.updated().await, "org://id/moved", "{era:?}");
        assert!(client.text("org://id/moved").await.starts_with("* N\n"));
    }
}

#[tokio::test]
async fn arguments_are_expanded_without_a_shell() {
    let directory = files();
    let (_child, mut client) = start(
        directory.path(),
        &["~/org/**/*.org", "~/org/tasks.org"],
        LATEST,
    )
    .await;
    assert_eq!(
        client.uris().await,
        [
            "org://home/notes.org",
            "org://office/notes.org",
            "org://tasks.org"
        ]
    );
    write(&directory, "a[1].org", "* Bracket\n");
    let (_child, mut client) = start(directory.path(), &["a[1].org"], LATEST).await;
    assert_eq!(
        client.uris().await,
        ["org://a%5B1%5D.org"],
        "a file is what it is, before a pattern"
    );
    assert_eq!(client.text("org://a%5B1%5D.org").await, "* Bracket\n");
}

#[cfg(unix)]
#[tokio::test]
async fn pattern_leads_through_no_link_to_a_directory() {
    let directory = files();
    let (root, org) = (directory.path(), directory.path().join("org"));
    std::os::unix::fs::symlink("/", org.join("everything")).unwrap();
    std::os::unix::fs::symlink("../..", org.join("home/up")).unwrap();
    std::os::unix::fs::symlink("../secret.org", org.join("link.org")).unwrap();
    std::os::unix::fs::symlink("org", root.join("elsewhere")).unwrap();
    fs::create_dir(org.join(".hidden")).unwrap();
    fs::write(org.join(".hidden/old.org"), "* Old\n").unwrap();
    for pattern in [
        "~/org/**/*.org",
        "org/**/*.org",
        "elsewhere/**/*.org",
        "or[g]/**/*.org",
    ] {
        let (_child, mut client) = start(root, &[pattern], LATEST).await;
        assert_eq!(
            client.uris().await,
            [
                "org://home/notes.org",
                "org://link.org",
                "org://office/notes.org",
                "org://tasks.org"
            ],
            "{pattern}"
        );
    }
    let table = [
        ("org/**/.hidden/*.org", "org://old.org"),
        ("org/.*/*.org", "org://old.org"),
        ("~//org//.hid[d]*//*.org", "org://old.org"),
        ("org/**/up/secret.org", "org://secret.org"),
    ];
    for (pattern, uri) in table {
        let (_child, mut client) = start(root, &[pattern], LATEST).await;
        assert_eq!(client.uris().await, [uri], "{pattern}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn name_that_is_not_utf_8_is_told_of_where_a_pattern_names_it() {
    use std::os::unix::ffi::OsStrExt;

    let directory = files();
    let at = |name: &[u8]| {
        directory
            .path()
            .join("org/home")
            .join(std::ffi::OsStr::from_bytes(name))
    };
    fs::write(at(b"b\xff.org"), "* B\n").unwrap();
    fs::write(at(b"c\xff.txt"), "C\n").unwrap();
    for pattern in ["org/home/*.org", "org/home/**/*.org"] {
        let (_, told) = run(directory.path(), &[pattern]).await;
        assert!(told.contains("its name is not UTF-8"), "{pattern}: {told}");
        assert!(!told.contains("c\u{fffd}.txt"), "{pattern}: {told}");
        let (_child, mut client) = start(directory.path(), &[pattern], LATEST).await;
        assert_eq!(client.uris().await, ["org://notes.org"], "{pattern}");
    }
}

#[tokio::test]
async fn rest_is_served_beside_a_reported_argument() {
    let directory = files();
    let arguments = ["none.org", "org", "none/*.org", "a**b", "org/tasks.org"];
    let (status, told) = run(directory.path(), &arguments).await;
    assert_eq!(status, Some(0), "{told}");
    let expected = "\
warning: none.org is left out: No such file or directory (os error 2); correct that and start again
warning: org is left out: it is a directory; name the files in it, such as 'org/**/*.org'
warning: nothing matches none/*.org; check the pattern, or the directory that it starts with
";
    assert!(told.starts_with(expected), "{told}");
    assert!(
        told.contains("warning: a**b is not a valid pattern"),
        "{told}"
    );
    let mut child = command(directory.path(), &arguments);
    let mut child = child.stderr(Stdio::null()).spawn().unwrap();
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let mut client = Client::connect(output, input, LATEST).await;
    assert_eq!(client.uris().await, ["org://tasks.org"]);
}

/// Two such names look the same, and it is not known which one a client would mean.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn rest_is_served_beside_names_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStrExt;

    let directory = files();
    let names = [&b"a\xff.org"[..], b"a\xfe.org"].map(std::ffi::OsStr::from_bytes);
    for name in names {
        fs::write(directory.path().join(name), "* A\n").unwrap();
    }
    let mut command = command(directory.path(), &["org/tasks.org"]);
    let ended = command.args(names).stdin(Stdio::null()).output();
    let Output { status, stderr, .. } = within_patience(ended).await;
    let line =
        "warning: a\u{fffd}.org is left out: its name is not UTF-8, so it has no URI; rename it\n";
    assert_eq!(
        (status.code(), String::from_utf8(stderr).unwrap()),
        (Some(0), line.repeat(2))
    );
}

#[tokio::test]
async fn usage_is_told_where_nothing_can_be_served() {
    let directory = files();
    let (status, told) = run(directory.path(), &["none.org"]).await;
    assert_eq!(status, Some(1));
    assert!(told.ends_with(
        "error: there is no file to serve; name Org files that exist, or a pattern that matches some\n"
    ));
    for (arguments, word) in [
        (&[][..], "<FILE>"),
        (&["--http", "nonsense", "org/tasks.org"], "127.0.0.1:8080"),
        (&["--http", "0.0.0.0:0", "org/tasks.org"], "loopback"),
        (&["--unknown", "org/tasks.org"], "--unknown"),
    ] {
        let (status, told) = run(directory.path(), arguments).await;
        assert_eq!(status, Some(2), "{told}");
        assert!(told.contains(word), "{told}");
    }
    assert_eq!(
        run(directory.path(), &["--help"]).await,
        (Some(0), String::new())
    );
    assert_eq!(
        run(directory.path(), &["--version"]).await,
        (Some(0), String::new())
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_are_served_without_being_watched_where_there_is_no_thread_for_it() {
    let directory = files();
    let mut command = command(directory.path(), &["org/tasks.org"]);
    // No thread has so much room for its stack.
    command.env("RUST_MIN_STACK", (1_u64 << 50).to_string());
    let mut child = command.spawn().unwrap();
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let mut client = Client::connect(output, input, LATEST).await;
    assert_eq!(client.uris().await, ["org://tasks.org"]);
    client.close().await;
    let output = within_patience(child.wait_with_output()).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert_starts(
        &said,
        "warning: files can't be watched, so changes are not reported: ",
    );
}

#[tokio::test]
async fn program_ends_silently_with_its_client() {
    let directory = files();
    assert_eq!(
        run(directory.path(), &["org/tasks.org"]).await,
        (Some(0), String::new())
    );
    let (mut child, mut client) = start(directory.path(), &["org/tasks.org"], LATEST).await;
    client.close().await;
    assert!(within_patience(child.wait()).await.success());
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .await
        .unwrap();
    assert_eq!(told, "");
}

#[tokio::test]
async fn file_that_is_no_text_hides_no_id() {
    let directory = files();
    write(
        &directory,
        "latin.org",
        b"* \xe9\n:PROPERTIES:\n:ID: home\n:END:\n",
    );
    let (_child, mut client) = start(
        directory.path(),
        &["latin.org", "org/tasks.org", "org/home/notes.org"],
        LATEST,
    )
    .await;
    write(&directory, "org/tasks.org", b"* \xff");
    for (uri, name) in [
        ("org://latin.org", "latin.org"),
        ("org://tasks.org/outline", "tasks.org"),
    ] {
        let (code, message, _) = client.refusal(uri).await;
        assert_eq!(code, -32603);
        assert_contains(
            &message,
            format!("{name} is not UTF-8 text; save it as UTF-8"),
        );
    }
    assert!(client.text("org://id/home").await.starts_with("* Home"));
}

#[tokio::test]
async fn http_serves_those_who_have_the_token() {
    let directory = files();
    let mut command = command(
        directory.path(),
        &["--http", "127.0.0.1:0", "org/tasks.org"],
    );
    let mut child = command.env("ORG_MCP_TOKEN", "the-token").spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .await
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("http://")
        .and_then(|line| line.strip_suffix("/mcp"))
        .unwrap();
    for (token, status) in [
        ("", "401"),
        ("Authorization: Bearer wrong\r\n", "401"),
        ("Authorization: Bearer the-token\r\n", "200"),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": testing::mcp::initialize("2025-11-25") });
        let answer = post(address, token, &body.to_string()).await;
        assert_eq!(&answer[9..12], status, "{answer}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn token_that_cannot_be_sent_is_an_error() {
    use std::os::unix::ffi::OsStrExt;

    let directory = files();
    for token in [&b"\xff"[..], b"", b"the token", "tök".as_bytes()] {
        let mut command = command(
            directory.path(),
            &["--http", "127.0.0.1:0", "org/tasks.org"],
        );
        let ended = command
            .env("ORG_MCP_TOKEN", std::ffi::OsStr::from_bytes(token))
            .output();
        let Output {
            status,
            stdout,
            stderr,
        } = within_patience(ended).await;
        assert_eq!((status.code(), stdout), (Some(1), Vec::new()), "{token:?}");
        let told = String::from_utf8(stderr).unwrap();
        assert_starts(
            &told,
            "error: ORG_MCP_TOKEN can't be used: the token is empty, has spaces",
        );
    }
}

#[tokio::test]
async fn whoever_serves_http_without_a_token_is_told_who_can_read() {
    let directory = files();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, told) = run(directory.path(), &["--http", &address, "org/tasks.org"]).await;
    let expected = format!(
        "warning: every user of this machine can read the files, because ORG_MCP_TOKEN is not set\n\
         error: {address} can't be used; choose another port, or 0 for any free port: "
    );
    assert_eq!(status, Some(1));
    assert!(told.starts_with(&expected), "{told}");
}

/// Posts a request and gives the beginning of what comes back.
async fn post(address: &str, token: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\n{token}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await.unwrap();
    answer
}
