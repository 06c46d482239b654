//! Versions of attachments: which are sent, left out, listed and shown.

#![cfg(unix)]

use serde_json::{Value, json};
use testing::{
    Sandbox, Server, answer, assert_contains, assert_count, assert_lacks, calling, items,
    last_message, last_request, playing, results,
};

/// Returns about so many bytes of lines that are all different.
fn text(word: &str, bytes: usize) -> String {
    let line = |number| format!("{word} {number:05} of a file that is longer than a reference\n");
    (0..).map(line).take(bytes / line(0).len()).collect()
}

/// A model that calls a tool once in each of so many turns, after a first answer.
fn calling_in_turns(tool: &str, arguments: &Value, turns: usize) -> Server {
    let turn = || [calling(&[(tool, arguments.clone())]), answer("Done.")];
    playing(
        [answer("Seen.")]
            .into_iter()
            .chain((0..turns).flat_map(|_| turn()))
            .collect(),
    )
}

#[test]
fn attachment_stays_while_the_model_has_only_parts_of_the_new_version() {
    let (sandbox, server) = Sandbox::with_model(calling_in_turns(
        "refresh_resource",
        &json!({"uri": "a.txt"}),
        1,
    ));
    let old = text("old", 345_000);
    sandbox.write("a.txt", &old);
    sandbox.run("q --new -a a.txt one");
    sandbox.write("a.txt", text("new", 345_000));
    sandbox.run("q two");
    assert_contains(&results(&server)[0], "bytes are left out here");
    sandbox.age_events();
    sandbox.run("q three");
    let request = last_request(&server).to_string();
    assert_contains(&request, "old 03000 of a file");
    assert_lacks(&request, "is left out here: a newer version");
    assert!(!sandbox.has_event("superseded"));
}

#[test]
fn repeated_refresh_of_an_unchanged_file_is_answered_with_its_content_once() {
    let (sandbox, server) = Sandbox::with_model(calling_in_turns(
        "refresh_resource",
        &json!({"uri": "a.txt"}),
        5,
    ));
    sandbox.write("a.txt", text("line", 62_000));
    sandbox.run("q --new -a a.txt one");
    let mut sent: Vec<Vec<Value>> = Vec::new();
    for _ in 0..5 {
        sandbox.run("q again");
        sent.push(items(&last_request(&server)["messages"]).to_vec());
    }
    let sizes: Vec<_> = results(&server).iter().map(String::len).collect();
    let is_whole: Vec<_> = sizes.iter().map(|size| *size > 60_000).collect();
    assert_eq!(is_whole, [false, true, false, false, false], "{sizes:?}");
    // Each request begins with the one before.
    assert!(sent.windows(2).all(|pair| pair[1].starts_with(&pair[0])));
}

#[test]
fn file_that_a_tool_returned_is_a_reference_where_it_is_attached_later() {
    let reading = || calling(&[("read_file", json!({"path": "a.txt"}))]);
    let (sandbox, server) = Sandbox::with_replies(vec![reading(), reading(), answer("Done.")]);
    sandbox.write("a.txt", text("line", 5_000));
    sandbox.run("q --new one");
    for _ in 2..9 {
        sandbox.run("q and?");
    }
    sandbox.run("q -a a.txt nine");
    let message = last_message(&server);
    assert_contains(&message, "has not changed. Its content");
    assert_contains(&message, "is in the result of call 1 of turn 1");
}

/// A file that is attached on its own and with its directory.
fn of_two_declarations(server: &Server) -> Sandbox {
    let sandbox = Sandbox::new().with_server(server);
    sandbox.write("src/a.txt", text("one", 1_000));
    sandbox.write("src/b.txt", "b");
    sandbox.run("q --new -a src -a src/a.txt look");
    sandbox
}

/// Returns the names of the last message's resources, and the declaration of each.
fn taken(sandbox: &Sandbox) -> (Vec<String>, Value) {
    let events = sandbox.events();
    let request = events
        .iter()
        .rfind(|event| event["type"] == "chat_request")
        .unwrap();
    let resources = items(&request["resources"]).iter();
    let names = resources.map(|resource| resource["name"].as_str().unwrap().to_owned());
    let delivered = items(&request["delivered"]).iter();
    let delivered = delivered.map(|one| {
        (
            one["declaration"].as_str().unwrap().to_owned(),
            &one["resources"],
        )
    });
    (
        names.collect(),
        delivered
            .map(|(name, indexes)| (name, indexes.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    )
}

#[test]
fn file_of_two_declarations_is_in_a_message_once_after_a_refresh() {
    let server = playing(vec![answer("Yes.")]);
    let sandbox = of_two_declarations(&server);
    sandbox.write("src/a.txt", text("two", 1_000));
    let report = sandbox.json("resource refresh");
    assert_eq!(report["refreshed"], json!(["src/a.txt"]));
    sandbox.run("q again");
    let message = last_message(&server);
    assert_count(&message, "<resource uri=", 1);
    assert_contains(&message, "two 00001 of a file");
    let expected = json!({"file:src/": [0], "file:src/a.txt": [0]});
    assert_eq!(taken(&sandbox), (vec!["src/a.txt".to_owned()], expected));
    // Both declarations have it: nothing is left to refresh, or to send.
    assert_eq!(sandbox.json("resource refresh")["refreshed"], json!([]));
    sandbox.run("q 'and again'");
    assert_eq!(last_message(&server), "and again");
}

#[test]
fn file_that_is_attached_again_replaces_the_snapshot_that_its_directory_has_of_it() {
    let server = playing(vec![answer("Yes.")]);
    let sandbox = of_two_declarations(&server);
    sandbox.write("src/a.txt", text("two", 1_000));
    sandbox.write("src/b.txt", "b2");
    sandbox.run("resource refresh src");
    sandbox.write("src/a.txt", text("three", 1_000));
    sandbox.run("q -a src/a.txt again");
    let message = last_message(&server);
    assert_contains(&message, "three 00001 of a file");
    assert_lacks(&message, "two 00001");
    let (names, delivered) = taken(&sandbox);
    assert_eq!(names, ["src/a.txt", "src/b.txt"]);
    assert_eq!(
        delivered,
        json!({"file:src/": [0, 1], "file:src/a.txt": [0]})
    );
}

#[test]
fn versions_that_the_model_refreshed_can_be_shown() {
    let (sandbox, _) = Sandbox::with_model(calling_in_turns(
        "refresh_resource",
        &json!({"uri": "a.txt"}),
        1,
    ));
    sandbox.write("a.txt", "one");
    sandbox.write("b.txt", "other");
    sandbox.run("q --new -a a.txt -a b.txt one");
    sandbox.write("a.txt", "two");
    sandbox.run("q two");
    sandbox.write("a.txt", "three");
    sandbox.run("q -a a.txt three");
    let rows = sandbox.json("resource ls");
    let row = |row: &Value| json!([row["name"], row["turn"], row["version"], row["origin"]]);
    let attached =
        |path: &str| json!({"kind": "attachment", "declaration": format!("file:{path}")});
    let refreshed = json!({"kind": "refresh", "tool": "refresh_resource", "call": "call_1"});
    assert_eq!(
        items(&rows).iter().map(row).collect::<Vec<_>>(),
        [
            json!(["a.txt", 1, 1, attached("a.txt")]),
            json!(["b.txt", 1, 1, attached("b.txt")]),
            json!(["a.txt", 2, 2, refreshed]),
            json!(["a.txt", 3, 3, attached("a.txt")]),
        ]
    );
    let show = |version: &str| sandbox.jp(&["resource", "show", "a.txt", "--version", version]);
    for (version, content) in [("1", "one"), ("2", "two"), ("3", "three")] {
        assert_eq!(show(version).succeeded().stdout, content);
    }
    let checksum = rows[2]["checksum"].as_str().unwrap();
    assert_eq!(show(checksum).succeeded().stdout, "two");
    assert_eq!(
        sandbox.json("resource show a.txt --version 2")["origin"]["kind"],
        "refresh"
    );
    show("4")
        .failed(1)
        .says(["a.txt has no version 4, only 3 versions"]);
    let listed = sandbox.run("resource ls").stdout;
    assert_eq!(
        listed
            .lines()
            .filter(|line| line.contains("turn 2"))
            .count(),
        1,
        "{listed}"
    );
    // The number is within the first 80 columns.
    let shown = listed
        .lines()
        .map(|line| line.split("  ").next().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(
        shown,
        ["version 1", "version 1", "version 2", "version 3"],
        "{listed}"
    );
}
