//! Delivery of resources that a model has received before.

#![cfg(unix)]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::Child,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use jp_resource::Checksum;
use serde_json::{Value, json};
use testing::{
    Reply, Sandbox, Server, answer, assert_contains, assert_count, assert_ends, assert_fields,
    assert_lacks, assert_starts, calling, copy_directory, finish, items, playing, requests,
    requests_to, results, start,
    wire::{WIRES, Wire},
};

/// Returns lines that are all different.
fn lines(word: &str, count: usize) -> String {
    (1..=count)
        .map(|line| format!("{word} {line} of a file that is longer than a reference\n"))
        .collect()
}

/// Calls `read_file` once.
fn reading(arguments: Value) -> Reply {
    calling(&[("read_file", arguments)])
}

/// Returns the messages of each request to the model.
fn messages(server: &Server) -> Vec<Vec<Value>> {
    let sent = requests(server);
    let messages = sent.iter().map(|request| &request["messages"]);
    messages.map(|messages| items(messages).to_vec()).collect()
}

/// Returns the rows that `--explain` has of resources.
fn resources(explained: &Value) -> Vec<Value> {
    let turns = items(&explained["turns"]).iter();
    let rows = turns.flat_map(|turn| items(&turn["blocks"]).iter().map(move |row| (turn, row)));
    let rows = rows.filter(|(_, row)| row["uri"].is_string());
    rows.map(|(turn, row)| json!({"turn": turn["turn"], "row": row}))
        .collect()
}

/// Returns how each resource is delivered, a line each.
fn told(explained: &Value) -> String {
    let line = |found: &Value| {
        let (turn, row) = (&found["turn"], &found["row"]);
        format!(
            "{turn} {}: {}",
            row["delivery"].as_str().unwrap(),
            row["reason"].as_str().unwrap()
        )
    };
    resources(explained)
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn explained(sandbox: &Sandbox, settings: &[&str]) -> Value {
    let settings = settings.iter().flat_map(|setting| ["-c", setting]);
    sandbox.json(
        &["q", "--explain", "next"]
            .into_iter()
            .chain(settings)
            .collect::<Vec<_>>(),
    )
}

/// A conversation in which a file is attached, read whole and by lines, read again, edited, read and attached again.
fn of_one_file(config: &str) -> (Server, Sandbox) {
    let whole = || reading(json!({"path": "a.rs"}));
    let (sandbox, server) = Sandbox::with_replies(vec![
        answer("One."),
        whole(),
        answer("Two."),
        reading(json!({"path": "a.rs", "first_line": 5, "last_line": 20})),
        answer("Three."),
        whole(),
        answer("Four."),
        whole(),
        answer("Five."),
        answer("Six."),
    ]);
    sandbox.configure(config);
    sandbox.write("a.rs", lines("line", 60));
    sandbox.run("q --new -a a.rs one");
    for words in ["two", "three", "four"] {
        sandbox.run(&["q", words]);
    }
    sandbox.write("a.rs", edited());
    sandbox.run("q five");
    sandbox.run("q -a a.rs six");
    (server, sandbox)
}

fn edited() -> String {
    lines("line", 60).replace("line 30 ", "LINE 30 ")
}

#[test]
fn known_content_is_not_sent_whole_again() {
    let (server, sandbox) = of_one_file("");
    let uri = format!("file://{}/a.rs", testing::shown(&sandbox.root));
    let results = results(&server);
    let attached = testing::last_message(&server);
    let shown = |text: &str| text.replace(&uri, "URI");
    insta::assert_snapshot!(shown(&results[0]), @"URI has not changed. Its content, sha256 11e58fdb0f21, is in the attachments of turn 1.");
    insta::assert_snapshot!(shown(&results[1]), @"URI#L5-20: lines 5-20 are lines 5-20 of the content in the attachments of turn 1, sha256 11e58fdb0f21.");
    assert_eq!(
        results[2],
        format!("```rs (a.rs)\n{}```\n", lines("line", 60))
    );
    insta::assert_snapshot!(shown(&results[3]), @r"
    URI has changed. These are the changes from the version in the result of call 1 of turn 4 (`read_file`, call_1), sha256 11e58fdb0f21, to sha256 8b4a48fcbde8:
    ```diff
    @@ -27,7 +27,7 @@
     line 27 of a file that is longer than a reference
     line 28 of a file that is longer than a reference
     line 29 of a file that is longer than a reference
    -line 30 of a file that is longer than a reference
    +LINE 30 of a file that is longer than a reference
     line 31 of a file that is longer than a reference
     line 32 of a file that is longer than a reference
     line 33 of a file that is longer than a reference
    ```
    ");
    insta::assert_snapshot!(shown(&attached), @r#"
    six
    <resource uri="URI" name="a.rs" mimeType="text/x-rust">
    URI has not changed. Its content, sha256 8b4a48fcbde8, is the version in the result of call 1 of turn 4 (`read_file`, call_1), sha256 11e58fdb0f21, with the changes in the result of call 1 of turn 5 (`read_file`, call_1).
    </resource>
    "#);

    let explained = explained(&sandbox, &[]);
    insta::assert_snapshot!(told(&explained), @r"
    1 full: no other version of it is in this request
    2 reference: the same content is in the attachments of turn 1
    3 lines: its lines 5-20 are lines 5-20 in the attachments of turn 1
    4 full: asked for again after a reference
    5 diff: the changes since the version in the result of call 1 of turn 4 (`read_file`, call_1)
    6 reference: the same content is in the result of call 1 of turn 5 (`read_file`, call_1)
    ");
    let bytes: Vec<_> = resources(&explained)
        .iter()
        .map(|found| found["row"]["bytes"].clone())
        .collect();
    let whole = lines("line", 60).len();
    let [reference, known, _, diff] = [0, 1, 2, 3].map(|index| results[index].len());
    assert_eq!(
        bytes[..5],
        [
            json!(whole),
            json!(reference),
            json!(known),
            json!(whole),
            json!(diff)
        ]
    );
    let saved = explained["plain_tokens"].as_u64().unwrap() - explained["tokens"].as_u64().unwrap();
    assert!(saved > 1000, "{saved}");
    let sent = messages(&server).pop().unwrap();
    assert_eq!(
        items(&explained["request"]["messages"])[..sent.len()],
        sent[..]
    );
}

#[test]
fn person_is_shown_how_each_part_of_a_request_is_delivered() {
    let (_server, sandbox) = of_one_file("");
    sandbox.write("ä b%.txt", lines("other", 4));
    let shown = sandbox.run("q --explain -T -a 'ä b%.txt' next").stdout;
    // How many bytes a reference has depends on where the workspace is.
    let column = shown.find("delivery").unwrap();
    let rows = shown
        .lines()
        .map_while(|line| line.get(column..))
        .filter(|row| !row.contains("history"));
    insta::assert_snapshot!(rows.take(9).collect::<Vec<_>>().join("\n"), @r"
    delivery   what        why
    full       a.rs        no other version of it is in this request
    reference  a.rs        the same content is in the attachments of turn 1
    lines      a.rs#L5-20  its lines 5-20 are lines 5-20 in the attachments of turn 1
    full       a.rs        asked for again after a reference
    diff       a.rs        the changes since the version in the result of call 1 of turn 4 (`read_file`, call_1)
    reference  a.rs        the same content is in the result of call 1 of turn 5 (`read_file`, call_1)
    full       -           new in this turn
    full       ä b%.txt    new in this turn; too small for a reference
    ");
    assert_contains(&shown, "\n1     message          4        1  full       -");
    assert_ends(&shown, " tokens fewer than without references and diffs\n");
}

#[test]
fn each_setting_switches_off_what_it_names() {
    let (_server, sandbox) = of_one_file("");
    let told = |setting: &str| {
        let explained = explained(
            &sandbox,
            &[&format!("conversation.deduplication.{setting}")],
        );
        told(&explained)
            .replace(" of call 1", "")
            .replace(" (`read_file`, call_1)", "")
    };
    let settings = [
        "enabled:=false",
        "ranges:=false",
        "diffs:=false",
        "min_bytes:=100000",
        "lookback_turns:=1",
    ];
    let all: Vec<_> = settings
        .iter()
        .map(|setting| format!("{setting}\n{}", told(setting)))
        .collect();
    insta::assert_snapshot!(all.join("\n\n"), @r"
    enabled:=false
    1 full: references are switched off for it
    2 full: references are switched off for it
    3 full: references are switched off for it
    4 full: references are switched off for it
    5 full: references are switched off for it
    6 full: references are switched off for it

    ranges:=false
    1 full: no other version of it is in this request
    2 reference: the same content is in the attachments of turn 1
    3 full: references are switched off for it
    4 full: asked for again after a reference
    5 diff: the changes since the version in the result of turn 4
    6 reference: the same content is in the result of turn 5

    diffs:=false
    1 full: no other version of it is in this request
    2 reference: the same content is in the attachments of turn 1
    3 lines: its lines 5-20 are lines 5-20 in the attachments of turn 1
    4 full: asked for again after a reference
    5 lines: its lines 1-29 are lines 1-29 in the result of turn 4; its lines 31-60 are lines 31-60 in the result of turn 4
    6 reference: the same content is in the result of turn 5

    min_bytes:=100000
    1 full: too small for a reference
    2 full: too small for a reference
    3 full: too small for a reference
    4 full: too small for a reference
    5 full: too small for a reference
    6 full: too small for a reference

    lookback_turns:=1
    1 full: no other version of it is in this request
    2 reference: the same content is in the attachments of turn 1
    3 full: it is too many turns back
    4 full: asked for again after a reference
    5 diff: the changes since the version in the result of turn 4
    6 full: it is too many turns back
    ");
}

#[test]
fn switched_off_it_is_the_plain_history_byte_for_byte() {
    let off = "[conversation]\ndeduplication.enabled = false\nsuperseded.policy = 'keep'";
    let (server, plain) = of_one_file(off);
    let requests = messages(&server);
    let text = json!(requests).to_string();
    assert_lacks(&text, "has not changed");
    assert_lacks(&text, "```diff");
    let fenced =
        [lines("line", 60), edited()].map(|content| format!("```rs (a.rs)\n{content}```\n"));
    let read = results(&server);
    assert_eq!(
        [&read[0], &read[2], &read[3]],
        [&fenced[0], &fenced[0], &fenced[1]]
    );
    assert_count(
        told(&explained(&plain, &[])),
        "full: references are switched off for it",
        6,
    );

    // Without references, the second conversation sends the same as the first.
    let (_server, delivered) = of_one_file("");
    let off = [
        "conversation.deduplication.enabled:=false",
        "conversation.superseded.policy=keep",
    ];
    let [plain, delivered] = [(&plain, &[][..]), (&delivered, &off)].map(|(sandbox, settings)| {
        let root = testing::shown(&sandbox.root);
        explained(sandbox, settings)["request"]
            .to_string()
            .replace(&root, "ROOT")
    });
    assert_eq!(plain, delivered);
}

/// Declares tools whose results are blocks, and one that prints a text.
fn with_local_tools(server: &Server) -> Sandbox {
    let sandbox = Sandbox::new().with_server(server);
    let content = lines("line", 20);
    let uri = format!("file://{}/a.txt", testing::shown(&sandbox.root));
    let resource = json!({"uri": uri, "mimeType": "text/plain", "text": content});
    // Outside the workspace, so that the user's approval is enough.
    let blocks = sandbox.write(
        "~/blocks.json",
        json!({"content": [{"type": "resource", "resource": resource}]}).to_string(),
    );
    let fenced = sandbox.write("~/fenced.txt", format!("```txt (a.txt)\n{content}```\n"));
    let tool = |name: &str, file: &Path, more: &str| {
        let file = file.display();
        format!("[conversation.tools.{name}]\ncommand = 'cat {file}'\nrun = 'unattended'\n{more}\n")
    };
    let tools = [
        ("show", &blocks, ""),
        ("always", &blocks, "deduplicate = false"),
        ("text", &fenced, ""),
    ];
    sandbox.configure(
        tools
            .map(|(name, file, more)| tool(name, file, more))
            .concat(),
    );
    sandbox.write("a.txt", content);
    sandbox
}

#[test]
fn only_resources_of_local_tools_are_deduplicated() {
    let calls = ["show", "always", "text", "text"].map(|name| (name, json!({})));
    let server = playing(vec![calling(&calls), answer("Done.")]);
    let sandbox = with_local_tools(&server);
    sandbox.run("q --new -a a.txt look");
    let results = results(&server);
    assert!(
        results[0].ends_with("is in the attachments of turn 1."),
        "{results:?}"
    );
    let fenced = sandbox.read("~/fenced.txt");
    assert!(results[1].contains(&lines("line", 20)), "{results:?}");
    assert_eq!(results[2..], [fenced.clone(), fenced]);
    insta::assert_snapshot!(told(&explained(&sandbox, &[])), @r"
    1 full: no other version of it is in this request
    1 reference: the same content is in the attachments of turn 1
    1 full: references are switched off for it
    ");
}

/// Someone who talks to a provider that plays a script.
struct Person {
    wire: &'static Wire,
    server: Server,
    sandbox: Sandbox,
}

impl Person {
    fn new(wire: &'static Wire, script: Vec<String>) -> Self {
        let count = AtomicUsize::new(0);
        let kind = if wire.provider == "ollama" {
            "application/x-ndjson"
        } else {
            "text/event-stream"
        };
        let server = Server::scripted(move |_, path| match path.starts_with(wire.path) {
            true => {
                let stream = &script[count.fetch_add(1, Relaxed).min(script.len() - 1)];
                Reply::with_headers(200, &format!("content-type: {kind}\r\n"), stream)
            }
            false => Reply::json(404, "{}"),
        });
        let sandbox = Sandbox::new();
        let (name, url) = (wire.provider, server.url());
        sandbox.configure(format!("[assistant.model]\nid = '{name}/m'\n[providers.llm.{name}]\nbase_url = '{url}'\nmodels.m = {{ tools = true, images = true }}\n"));
        Self {
            wire,
            server,
            sandbox,
        }
    }

    fn query(&self, arguments: &[&str]) {
        let mut command = self.sandbox.command(&[&["q"], arguments].concat());
        command.env(self.wire.variable, "sk-test");
        testing::run(command).succeeded();
    }

    /// Returns the messages of each request, without the cache marks: those move.
    fn requests(&self) -> Vec<Vec<Value>> {
        let requests = requests_to(&self.server, self.wire.path).into_iter();
        let messages = requests.map(|mut request| request[self.wire.messages].take());
        messages
            .map(|messages| items(&unmarked(messages)).to_vec())
            .collect()
    }
}

/// Removes the cache marks.
fn unmarked(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(unmarked).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| name != "cache_control")
            .map(|(name, value)| (name, unmarked(value)))
            .collect(),
        other => other,
    }
}

#[test]
fn each_request_begins_with_the_messages_of_the_one_before_in_every_format() {
    for wire in &WIRES {
        let whole = || json!({"path": "a.rs"});
        let part = |first: usize, last: usize| json!({"path": "a.rs", "first_line": first, "last_line": last});
        let person = Person::new(
            wire,
            vec![
                (wire.says)("One."),
                (wire.reads)(&[whole()]),
                (wire.reads)(&[part(5, 20), part(40, 59)]),
                (wire.says)("Two."),
                (wire.reads)(&[whole()]),
                (wire.reads)(&[whole(), part(20, 40)]),
                (wire.says)("Three."),
                (wire.says)("Four."),
            ],
        );
        person.sandbox.write("a.rs", lines("line", 60));
        person.sandbox.write("b.rs", lines("other", 30));
        person.query(&["--new", "-a", "a.rs", "-a", "b.rs", "one"]);
        person.query(&["two"]);
        person.sandbox.write("a.rs", edited());
        person.query(&["-a", "a.rs", "three"]);
        person.query(&["-a", "b.rs", "four"]);
        let (requests, name) = (person.requests(), wire.provider);
        assert_eq!(requests.len(), 8, "{name}");
        for (index, pair) in requests.windows(2).enumerate() {
            let [before, after] = pair else {
                unreachable!()
            };
            assert!(before.len() < after.len(), "{name}");
            assert_eq!(before[..], after[..before.len()], "{name}, request {index}");
        }
        let last = json!(requests.last()).to_string();
        for words in [
            "has not changed. Its content",
            "lines 5-20 are lines 5-20",
            "```diff",
            "LINE 30",
        ] {
            assert!(last.contains(words), "{name}: {words}: {last}");
        }
        assert_eq!(last.matches("other 30 of").count(), 1, "{name}: {last}");
    }
}

#[test]
fn picture_that_is_attached_again_is_a_reference() {
    for wire in WIRES.iter().filter(|wire| wire.provider != "ollama") {
        let person = Person::new(wire, vec![(wire.says)("Yes.")]);
        person
            .sandbox
            .write("a.png", [&b"\x89PNG\r\n\x1a\n"[..], &[0xff; 400]].concat());
        person.query(&["--new", "-a", "a.png", "one"]);
        person.query(&["-a", "a.png", "two"]);
        let requests = person.requests();
        let (last, name) = (json!(requests.last()).to_string(), wire.provider);
        // The base64 of the first bytes of each PNG.
        assert_eq!(last.matches("iVBORw0KGgr///").count(), 1, "{name}: {last}");
        let newest = requests[1].last().unwrap().to_string();
        assert!(
            newest.contains("is in the attachments of turn 1."),
            "{name}: {newest}"
        );
    }
}

#[test]
fn block_of_an_unknown_type_is_a_note_in_every_format() {
    for wire in &WIRES {
        let replies = vec![
            (wire.reads)(&[json!({"path": "a.rs"})]),
            (wire.says)("One."),
            (wire.says)("Two."),
        ];
        let person = Person::new(wire, replies);
        person.sandbox.write("a.rs", lines("line", 3));
        person.query(&["--new", "one"]);
        let block = json!({"length": 2, "type": "video", "uri": "workspace:///v"});
        let mut events = person.sandbox.events();
        for event in events
            .iter_mut()
            .filter(|event| event["type"] == "tool_call_response")
        {
            event["content"].as_array_mut().unwrap().push(block.clone());
        }
        fs::write(person.sandbox.events_path(), json!(events).to_string()).unwrap();
        person.query(&["two"]);
        let (last, name) = (json!(person.requests().last()).to_string(), wire.provider);
        let note = "is not shown: this version of jp does not know that type.";
        assert_eq!(last.matches(note).count(), 1, "{name}: {last}");
        for shown in [&["c", "print"][..], &["c", "print", "--as-sent"]] {
            assert!(
                person.sandbox.run(shown).stdout.contains(note),
                "{name}: {shown:?}"
            );
        }
        let fork = person.sandbox.json("c fork")["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let is_fork = |path: &std::path::PathBuf| {
            path.ends_with("events.json") && path.to_string_lossy().contains(&fork)
        };
        let forked = person
            .sandbox
            .files(".jp/conversations")
            .into_iter()
            .find(is_fork)
            .unwrap();
        assert!(
            fs::read_to_string(forked)
                .unwrap()
                .contains(&block.to_string()),
            "{name}"
        );
    }
}

#[test]
fn print_as_sent_shows_what_the_provider_is_sent() {
    for wire in &WIRES {
        let replies = vec![
            (wire.reads)(&[json!({"path": "b.rs"})]),
            (wire.says)("One."),
        ];
        let person = Person::new(wire, replies);
        person.sandbox.write("a.rs", "fn a() {}\n");
        person.sandbox.write("b.rs", "fn b() {}\n");
        person.sandbox.write("c.png", b"\x89PNG\r\n\x1a\n\0\xff");
        person.query(&["--new", "-a", "a.rs", "-a", "c.png", "one"]);
        let text = person.sandbox.run("c print --as-sent").stdout;
        let sent = json!(person.requests().last()).to_string();
        let name = wire.provider;
        for frame in [
            "<resource uri=",
            "```rs (b.rs)",
            "[the next part of this message]",
            "[image 1 of this message]",
        ] {
            let is_sent = sent.contains(frame) || sent.contains(&frame.replace('=', "=\\\""));
            assert_eq!(text.contains(frame), is_sent, "{name}: {frame}: {text}");
        }
        let root = testing::shown(&person.sandbox.root);
        let document = format!(
            "[document: b.rs]\nURI: file://{root}/b.rs\nMIME type: text/x-rust\n\nfn b() {{}}\n"
        );
        assert_eq!(
            text.contains(&document),
            name == "anthropic",
            "{name}: {text}"
        );
        assert!(
            text.contains("image/png, 10 B]") || name == "ollama",
            "{name}: {text}"
        );
    }
}

/// A conversation with two versions of a large file that have little in common, attached in two turns.
fn of_two_versions() -> (Server, Sandbox) {
    let (sandbox, server) = Sandbox::with_replies(vec![answer("Seen.")]);
    for (version, turn) in [("old", "one"), ("new", "two")] {
        sandbox.write("a.txt", lines(version, 200));
        sandbox.run(&["q", "-a", "a.txt", turn]);
    }
    (server, sandbox)
}

fn superseded(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.events_of("superseded")
}

/// Returns whether a request has the older version, and whether it says that this is left out.
fn has_old(request: &[Value]) -> (bool, bool) {
    let text = json!(request).to_string();
    (
        text.contains("old 200 of a file"),
        text.contains("is left out here: a newer version"),
    )
}

#[test]
fn replaced_version_stays_out_once_the_cache_was_cold() {
    const OTHER: [&str; 4] = [
        "-m",
        "llamacpp/n",
        "-c",
        "providers.llm.llamacpp.models.n.tools:=true",
    ];
    for (is_old, model) in [(true, &[][..]), (false, &OTHER)] {
        let (server, sandbox) = of_two_versions();
        sandbox.run("q 'two and a half'");
        assert_eq!(has_old(messages(&server).last().unwrap()), (true, false));
        assert!(superseded(&sandbox).is_empty());
        if is_old {
            sandbox.age_events();
        }
        sandbox.run(&[&["q", "three"], model].concat());
        let [decision] = &superseded(&sandbox)[..] else {
            panic!("{:?}", sandbox.events())
        };
        let version = json!({"uri": "workspace:///a.txt", "checksum": Checksum::compute(lines("old", 200).as_bytes())});
        assert_eq!(decision["dropped"], json!([version]));
        sandbox.run(&[&["q", "four"], model].concat());
        assert_eq!(superseded(&sandbox).len(), 1);
        // The request has no left-out content, so nothing refers to it when it returns.
        sandbox.write("a.txt", lines("old", 200));
        sandbox.run(&[&["q", "-a", "a.txt", "five"], model].concat());
        let requests = messages(&server);
        let [.., third, fourth, fifth] = &requests[..] else {
            unreachable!()
        };
        assert_eq!(
            [has_old(third), has_old(fourth), has_old(fifth)],
            [(false, true), (false, true), (true, true)]
        );
        assert_eq!(third[..], fourth[..third.len()]);
        assert_eq!(fourth[..], fifth[..fourth.len()]);
        let explained = explained(&sandbox, &[]);
        assert_eq!(resources(&explained)[0]["row"]["delivery"], "tombstone");
        assert_starts(
            told(&explained),
            "1 tombstone: a newer version is in the attachments of turn 2\n",
        );
    }
}

#[test]
fn request_after_a_cold_cache_stays_what_it_was() {
    let attachments = ["a.txt", "cmd:cat a.txt"];
    for (attachment, budget) in attachments
        .iter()
        .flat_map(|name| [(name, &[][..]), (name, &["--budget=900000"])])
    {
        let (sandbox, server) = Sandbox::with_replies(vec![answer("Yes.")]);
        let ask = |words: &[&str]| sandbox.run(&[&["q", "--yes"], words, budget].concat());
        sandbox.write("a.txt", lines("line", 200));
        ask(&["--new", "-a", attachment, "one"]);
        sandbox.age_events();
        sandbox.write("a.txt", lines("line", 200).replace("line 30 ", "LINE 30 "));
        ask(&["-a", attachment, "two"]);
        ask(&["three"]);
        let requests = messages(&server);
        assert_eq!(
            requests[1][..],
            requests[2][..requests[1].len()],
            "{attachment} {budget:?}"
        );
        // The second version is a diff against the first, so the first is not dropped.
        assert!(superseded(&sandbox).is_empty(), "{attachment} {budget:?}");
        let text = json!(requests[1]).to_string();
        assert_contains(&text, "-line 30 of a file");
        assert_contains(&text, "+LINE 30 of a file");
    }
}

#[test]
fn replaced_versions_are_kept_or_always_left_out_where_the_person_says_so() {
    for (policy, expected) in [("keep", (true, false)), ("always", (false, true))] {
        let (server, sandbox) = of_two_versions();
        sandbox.age_events();
        let setting = format!("conversation.superseded.policy={policy}");
        sandbox.run(&["q", "-c", &setting, "three"]);
        assert_eq!(
            has_old(messages(&server).last().unwrap()),
            expected,
            "{policy}"
        );
        assert!(superseded(&sandbox).is_empty(), "{policy}");
    }
}

#[test]
fn clone_at_another_path_continues_with_the_same_bytes() {
    let (_server, sandbox) = of_one_file("");
    sandbox.write("b.txt", lines("other", 30));
    sandbox.run("q -a b.txt seven");
    let clone = Sandbox::new();
    copy_directory(&sandbox.root, &clone.root);
    let id = sandbox.json("c ls")[0]["id"].as_str().unwrap().to_owned();
    clone.jp(&["c", "use", &id]).succeeded();
    let [here, there] = [&sandbox, &clone].map(|sandbox| testing::shown(&sandbox.root));
    let sent = |sandbox: &Sandbox| sandbox.run("c print --as-sent").stdout;
    assert_eq!(sent(&sandbox).replace(&here, &there), sent(&clone));
    assert_eq!(
        told(&explained(&sandbox, &[])),
        told(&explained(&clone, &[]))
    );

    let uri = format!("file://{there}/b.txt");
    let refresh = calling(&[("refresh_resource", json!({"uri": uri}))]);
    let server = playing(vec![answer("Seen."), refresh, answer("Done.")]);
    let clone = clone.with_server(&server);
    clone.jp(&["q", "-a", "b.txt", "eight"]).succeeded();
    let attached = testing::last_message(&server);
    assert_contains(&attached, format!("{uri} has not changed."));
    clone.write("b.txt", lines("other", 30).replace("other 7 ", "OTHER 7 "));
    clone.jp(&["q", "nine"]).succeeded();
    let refreshed = results(&server).pop().unwrap();
    assert_starts(&refreshed, format!("{uri} has changed."));
    assert_contains(&refreshed, "\n+OTHER 7 ");
    for path in clone.files(".jp") {
        let content = fs::read(&path).unwrap();
        let names = |place: &str| {
            content
                .windows(place.len())
                .any(|bytes| bytes == place.as_bytes())
        };
        assert!(
            !names(&here) && !names(&there),
            "{} names a place",
            path.display()
        );
    }
}

/// A server that holds its answers back.
#[derive(Default)]
struct Gate {
    /// Which requests to the model came, and how many may be answered.
    state: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl Gate {
    /// Waits until so many requests have come.
    fn wait_for(&self, requests: usize) {
        let state = self.state.lock().unwrap();
        let waited = self
            .changed
            .wait_timeout_while(state, PATIENCE, |(came, _)| *came < requests);
        assert!(!waited.unwrap().1.timed_out(), "the model is not asked");
    }

    fn open(&self, answers: usize) {
        self.state.lock().unwrap().1 = answers;
        self.changed.notify_all();
    }

    fn pass(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        let number = state.0;
        drop(
            self.changed
                .wait_while(state, |(_, answers)| *answers < number)
                .unwrap(),
        );
        number
    }
}

/// The time to wait for an event that must come.
const PATIENCE: Duration = Duration::from_secs(20);

fn gated() -> (Arc<Gate>, Server) {
    let gate = Arc::<Gate>::default();
    let held = Arc::clone(&gate);
    let server = Server::scripted(move |_, path| match path {
        "/v1/chat/completions" => answer(&format!("Answer {}.", held.pass())),
        _ => Reply::json(404, "{}"),
    });
    (gate, server)
}

/// Starts a query and returns when it says that it waits.
fn waiting(sandbox: &Sandbox, words: &str) -> Child {
    let mut child = start(sandbox.command(&["q", words]));
    let mut told = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut told)
        .unwrap();
    assert_starts(&told, "Waiting for ");
    child
}

#[track_caller]
fn ended(child: Child) -> String {
    finish(child).succeeded().stdout
}

#[test]
fn writers_of_one_conversation_wait_for_each_other() {
    let (gate, server) = gated();
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("a.txt", lines("line", 30));
    gate.open(1);
    sandbox.run("q --new one");
    let first = start(sandbox.command("q -a a.txt two"));
    gate.wait_for(2);
    let second = waiting(&sandbox, "three");
    sandbox.fail("q --no-wait never", 1).says(["is in use by"]);
    gate.open(3);
    assert_eq!(
        [ended(first), ended(second)],
        ["Answer 2.\n", "Answer 3.\n"]
    );

    let compaction = start(sandbox.command("c compact --summarize --keep-last 1"));
    gate.wait_for(4);
    let third = waiting(&sandbox, "four");
    sandbox.fail("q --no-wait never", 1).says(["is in use by"]);
    gate.open(5);
    ended(compaction);
    assert_eq!(ended(third), "Answer 5.\n");
    let requests = messages(&server);
    assert_eq!(requests[1][..], requests[2][..requests[1].len()]);
    let last = json!(requests[4]).to_string();
    assert_contains(&last, "Answer 4.");
    assert_contains(&last, "three");
    assert_lacks(&last, "never");
    let events = sandbox.events();
    let asked: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "chat_request")
        .map(|event| &event["content"])
        .collect();
    assert_eq!(json!(asked), json!(["one", "two", "three", "four"]));
}

#[test]
fn what_was_not_sent_again_is_told_after_the_answer() {
    let read = || reading(json!({"path": "a.rs"}));
    let (sandbox, _) = Sandbox::with_replies(vec![
        answer("One."),
        read(),
        answer("Two."),
        answer("Three."),
    ]);
    sandbox.write("a.rs", lines("line", 60));
    assert_eq!(sandbox.json("q --new -a a.rs one")["saved_tokens"], 0);
    let document = sandbox.json("q two");
    let explained = explained(&sandbox, &[]);
    let saved = document["saved_tokens"].as_u64().unwrap();
    assert!(saved > 700, "{document}");
    assert_eq!(
        explained["plain_tokens"].as_u64().unwrap() - explained["tokens"].as_u64().unwrap(),
        saved
    );

    let mut terminal = sandbox.terminal("q three");
    terminal.finish(&format!(
        "Tokens: 50 input, 40 from cache, 7 output, about {saved} not sent again"
    ));
    let shown = sandbox.json("c show");
    assert_fields!(shown["usage"], {"input": 150, "requests": 3});
}

#[test]
fn explain_deduplicates_older_conversations() {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/jp-conversations");
    if !source.is_dir() {
        return testing::skip(&format!("{} is not there", source.display()));
    }
    let (sandbox, _) = Sandbox::with_replies(vec![answer("Seen.")]);
    copy_directory(&source, &sandbox.path(".jp/conversations"));
    sandbox.write("a.txt", lines("line", 30));
    let rows = sandbox.json("c ls");
    for id in items(&rows).iter().map(|row| row["id"].as_str().unwrap()) {
        let asked = [
            "q",
            "-i",
            id,
            "-m",
            "llamacpp/m",
            "--skip-unavailable",
            "-a",
            "a.txt",
            "Look.",
        ];
        let explain = || sandbox.json(&[&asked[..], &["--explain"]].concat());
        let before = told(&explain());
        assert!(
            before.ends_with("full: new in this turn; no other version of it is in this request"),
            "{id}: {before}"
        );
        sandbox.run(&asked);
        let after = told(&explain());
        let turn = sandbox.json(&["c", "show", id])["turns"].clone();
        assert!(
            after.ends_with(&format!(
                "the same content is in the attachments of turn {turn}"
            )),
            "{id}: {after}"
        );
    }
}
