//! Resources of MCP servers as attachments: `mcp+SERVER+URI`, from a server in another process.

#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};
use testing::{
    Run, Sandbox, Server, Terminal, answer, answering, assert_contains, assert_count,
    assert_fields, assert_lacks, calling, items, last_message, playing, results,
};

const USER: &str = "~/.config/jp/config.toml";

/// The resources of a correct server.
fn notes() -> Value {
    json!({
        "resources": {
            "note:one": [{"uri": "note:one", "mimeType": "text/plain", "text": "The first note."}],
            "note:one?lang=de": [{"uri": "note:one?lang=de", "text": "Die erste Notiz."}],
            "note:both": [
                {"uri": "note:both", "mimeType": "text/plain", "text": "Both of them."},
                {"uri": "note:both", "mimeType": "application/octet-stream", "blob": "AAECAwQF"},
            ],
            "note:%7e/A?b#c": [{"uri": "note:%7e/A?b#c", "text": "As it is written."}],
            "file:///../../etc/passwd": [{"uri": "file:///../../etc/passwd", "text": "The server's own words."}],
        },
        "listed": [{
            "uri": "note:one", "name": "one", "title": "Note one",
            "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"},
        }],
        "values": {"name": ["one", "other", "zero"], "lang": ["de", "en"]},
    })
}

/// Configures servers of these names in the user's own configuration, each with this `state`.
fn with_servers(server: &Server, names: &[&str], state: &Value) -> Sandbox {
    let sandbox = Sandbox::new().with_server(server);
    let tables: String = names.iter().map(|name| table(&sandbox, name)).collect();
    sandbox.configure(tables);
    names.iter().for_each(|name| has(&sandbox, name, state));
    sandbox
}

fn table(sandbox: &Sandbox, name: &str) -> String {
    let program = testing::programs::NOTES_SERVER;
    let state = testing::shown(&sandbox.path(&format!("~/{name}.json")));
    format!("[providers.mcp.{name}]\ncommand = \"python3\"\narguments = ['{program}', '{state}']\n")
}

/// Changes the state of a server.
fn has(sandbox: &Sandbox, name: &str, state: &Value) {
    sandbox.write(&format!("~/{name}.json"), state.to_string());
}

/// Returns the URIs that a server was asked to read.
fn reads(sandbox: &Sandbox, name: &str) -> Vec<String> {
    let log = fs::read_to_string(sandbox.path(&format!("~/{name}.json.log"))).unwrap_or_default();
    log.lines()
        .filter_map(|line| line.strip_prefix("resources/read "))
        .map(str::to_owned)
        .collect()
}

fn request(sandbox: &Sandbox) -> Value {
    sandbox.events_of("chat_request").pop().unwrap()
}

fn asked(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.jp(&[&["q"], arguments].concat())
}

#[test]
fn resource_is_attached_with_what_the_server_says_of_it() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    asked(&sandbox, &["--new", "-a", "mcp+docs+note:one", "what?"]).succeeded();
    let message = last_message(&server);
    assert_contains(&message, "The first note.");
    assert_contains(&message, "note:one");
    let request = request(&sandbox);
    let resource = &request["resources"][0];
    assert_fields!(resource, {"uri": "note:one", "name": "one", "title": "Note one"});
    assert_eq!(resource["mimeType"], "text/plain");
    assert_eq!(
        resource["annotations"],
        json!({"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"})
    );
    assert_eq!(
        request["delivered"],
        json!([{"declaration": "mcp+docs+note:one", "resources": [0]}])
    );
    let row = &sandbox.json("attachment ls")[0];
    assert_fields!(row, {"kind": "mcp", "declaration": "mcp+docs+note:one"});

    asked(&sandbox, &["-a", "mcp+docs+note:%7e/A?b#c", "and this?"]).succeeded();
    let resource = &self::request(&sandbox)["resources"][0];
    assert_fields!(resource, {"uri": "note:%7e/A?b#c", "name": "note:%7e/A?b#c"});
    assert_eq!(reads(&sandbox, "docs"), ["note:one", "note:%7e/A?b#c"]);
}

#[test]
fn every_content_of_a_resource_is_attached_unchanged() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    asked(&sandbox, &["--new", "-a", "mcp+docs+note:both", "what?"]).succeeded();
    assert_contains(last_message(&server), "Both of them.");
    let request = request(&sandbox);
    let told: Vec<_> = items(&request["resources"])
        .iter()
        .map(|one| &one["content"]["encoding"])
        .collect();
    assert_eq!(told, ["utf8", "binary"], "{request}");
    assert_eq!(request["delivered"][0]["resources"], json!([0, 1]));
    let shown = sandbox.run("resource show note:both");
    assert_eq!(shown.stdout.as_bytes(), [0, 1, 2, 3, 4, 5]);
    let run = sandbox.run("resource refresh");
    assert_contains(&run.stderr, "2 resources are unchanged");
}

#[test]
fn contents_that_share_a_uri_are_no_versions_of_each_other() {
    let server = answering("Yes.");
    let lines: String = (0..200)
        .map(|line| format!("line {line} of what goes on for a while\n"))
        .collect();
    let other = lines.replace("line 50 ", "LINE 50 ");
    let texts = json!([{"uri": "note:two", "text": lines}, {"uri": "note:two", "text": other}]);
    let sandbox = with_servers(
        &server,
        &["docs"],
        &json!({"resources": {"note:two": texts}}),
    );
    asked(&sandbox, &["--new", "-a", "mcp+docs+note:two", "what?"]).succeeded();
    let message = last_message(&server);
    assert_contains(&message, "LINE 50 ");
    assert_lacks(&message, "has changed");
}

#[test]
fn two_servers_may_use_one_uri() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["a", "b"], &notes());
    has(
        &sandbox,
        "b",
        &json!({"resources": {"note:one": [{"uri": "note:one", "text": "The other first note."}]}}),
    );
    asked(
        &sandbox,
        &[
            "--new",
            "-a",
            "mcp+a+note:one",
            "-a",
            "mcp+b+note:one",
            "what?",
        ],
    )
    .succeeded();
    let message = last_message(&server);
    assert_contains(&message, "The first note.");
    assert_contains(&message, "The other first note.");
}

#[test]
fn template_takes_its_values_from_what_follows_it() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    let input = "mcp+docs+note:{name}{?lang}?name=%6Fne&lang=de";
    asked(&sandbox, &["--new", "-a", input, "what?"]).succeeded();
    assert_contains(last_message(&server), "Die erste Notiz.");
    assert_eq!(
        request(&sandbox)["delivered"][0]["declaration"],
        "mcp+docs+note:one?lang=de"
    );
    asked(
        &sandbox,
        &["-a", "mcp+docs+note:{name}{?lang}?name=one", "what?"],
    )
    .succeeded();
    assert_eq!(
        request(&sandbox)["delivered"][0]["declaration"],
        "mcp+docs+note:one"
    );

    let gave = "mcp+docs+note:{name}{?lang}?name=one";
    sandbox.run(&["attachment", "rm", gave]);
    let declared = sandbox.json("attachment ls");
    assert_eq!(items(&declared).len(), 1, "{declared}");

    asked(&sandbox, &["-a", "mcp+docs+note:{name}{?lang}", "what?"])
        .failed(1)
        .says([
            "the template has no values for name, lang (optional), and there is no terminal",
            "'mcp+docs+note:{name}{?lang}?name=…&lang=…'",
        ]);
    asked(
        &sandbox,
        &["-a", "mcp+docs+note:{name}{?lang}?lang=de&nmae=x", "what?"],
    )
    .failed(1)
    .says([r#"the template has no variable "nmae"; it has: name, lang"#]);
    asked(&sandbox, &["-a", "mcp+docs+note:{na", "what?"])
        .failed(1)
        .says(["failed to attach"]);
}

#[test]
fn template_asks_at_a_terminal_with_the_values_on_offer() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    let command = sandbox.command("q --new -a mcp+docs+note:{name}{?lang} what?");
    let mut terminal = Terminal::run(command);
    terminal.expect("The MCP server docs has the template note:{name}{?lang}. Enter its values:");
    terminal.answer("name (one, other, zero):", "o?\n");
    terminal.answer("name (one, other):", "\n");
    terminal.expect("A value is required.");
    terminal.answer("name (one, other):", "one\n");
    terminal.answer("lang (de, en; optional):", "de\n");
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
    assert_contains(last_message(&server), "Die erste Notiz.");
    assert_eq!(
        request(&sandbox)["delivered"][0]["declaration"],
        "mcp+docs+note:one?lang=de"
    );

    let command = sandbox.command("attachment add mcp+docs+note:{name}{?lang}?lang=en");
    let mut terminal = Terminal::run(command);
    terminal.answer("name (one, other, zero):", "zero\n");
    terminal.finish("Attached mcp+docs+note:zero?lang=en, starting with the next message.");
}

#[test]
fn what_a_server_has_not_is_said_with_the_way_to_see_what_it_has() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    for code in [-32002, -32602] {
        has(
            &sandbox,
            "docs",
            &json!({"refusal": {"code": code, "message": "no such note"}}),
        );
        asked(&sandbox, &["--new", "-a", "mcp+docs+note:none", "what?"]).failed(1).says([r#"failed to attach "mcp+docs+note:none" from the MCP server "docs": there is no such resource: no such note"#,
                "`jp mcp resources docs`",
                "--skip-unavailable"]);
    }
    has(
        &sandbox,
        "docs",
        &json!({"refusal": {"code": -32603, "message": "the disk is full"}}),
    );
    asked(&sandbox, &["--new", "-a", "mcp+docs+note:none", "what?"])
        .failed(1)
        .says(["it answered `resources/read` with the error -32603: the disk is full"]);
    asked(&sandbox, &["--new", "-a", "mcp+dosc+note:one", "what?"])
        .failed(1)
        .says([
            r#"from the MCP server "dosc": it is not configured"#,
            "the configured servers are: docs.",
        ]);
    for input in ["mcp+docs", "mcp+docs+"] {
        asked(&sandbox, &["--new", "-a", input, "what?"])
            .failed(1)
            .says([
                "needs a URI to read from the server \"docs\"",
                "`jp mcp resources docs` lists",
            ]);
    }
    assert!(!sandbox.path(".jp/conversations").exists());
    assert_eq!(server.received().len(), 0);
}

#[test]
fn server_that_ends_can_be_skipped() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs", "dead"], &notes());
    has(
        &sandbox,
        "dead",
        &json!({"last_words": "the database is locked"}),
    );
    let both = [
        "--new",
        "-a",
        "mcp+docs+note:one",
        "-a",
        "mcp+dead+note:one",
        "what?",
    ];
    asked(&sandbox, &both).failed(1).says([
        r#"failed to attach "mcp+dead+note:one" from the MCP server "dead""#,
        "  │ the database is locked",
    ]);
    assert_eq!(server.received().len(), 0);
    let run = asked(&sandbox, &[&both[..], &["--skip-unavailable"]].concat()).succeeded();
    assert_contains(
        &run.stderr,
        r#"skipped: failed to attach "mcp+dead+note:one""#,
    );
    assert_contains(&run.stderr, "  │ the database is locked");
    assert_contains(last_message(&server), "The first note.");

    let nothing = "[providers.mcp.dead]\ncommand = \"jp-no-such-program\"\n";
    sandbox.configure(nothing);
    asked(&sandbox, &["--new", "-a", "mcp+dead+note:one", "what?"])
        .failed(1)
        .says(["jp-no-such-program"]);
    sandbox.configure("");
    asked(&sandbox, &["--new", "-a", "mcp+dead+note:one", "what?"])
        .failed(1)
        .says(["no MCP servers are configured", "`jp help mcp-servers`"]);
}

#[test]
fn waiting_for_a_server_can_be_interrupted() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    let mut state = notes();
    let file = sandbox.path("~/there");
    state["waits_for"] = json!(testing::shown(&file));
    has(&sandbox, "docs", &state);
    let arguments = ["q", "--new", "-a", "mcp+docs+note:one", "what?"];
    let mut terminal = sandbox.terminal(&arguments);
    terminal.answer("0 of 1 resource", "\u{3}");
    assert_eq!(terminal.wait(), 130, "{}", terminal.output());
    assert_eq!(server.received().len(), 0);

    let mut terminal = sandbox.terminal(&arguments);
    terminal.expect("0 of 1 resource");
    fs::write(file, "").unwrap();
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
    assert_contains(last_message(&server), "The first note.");
}

#[test]
fn log_of_a_server_that_is_read_is_told_with_v_only() {
    let server = answering("Yes.");
    let mut state = notes();
    state["logs"] = json!("a note was looked for\u{1b}[2J");
    let sandbox = with_servers(&server, &["docs"], &state);
    let told = "docs: info: a note was looked for\\u{1b}[2J\n";
    let arguments = ["--new", "-a", "mcp+docs+note:one", "what?"];
    assert_lacks(
        &asked(&sandbox, &arguments).succeeded().stderr,
        "looked for",
    );
    let run = asked(&sandbox, &[&arguments[..], &["-v"]].concat()).succeeded();
    assert_contains(&run.stderr, told);
    sandbox.run("resource refresh -v").says([told]);

    // The same holds for its messages during the completion of a template.
    let arguments = ["q", "--new", "-v", "-a", "mcp+docs+note:{name}", "what?"];
    let mut terminal = sandbox.terminal(&arguments);
    terminal.expect("a note was looked for");
    terminal.answer("name (", "one\n");
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
}

#[test]
fn what_is_told_meanwhile_takes_the_place_of_how_far_it_is() {
    let server = answering("Yes.");
    let mut state = notes();
    state["logs"] = json!("a note was looked for");
    let sandbox = with_servers(&server, &["docs"], &state);
    let file = sandbox.path("~/there");
    state["waits_for"] = json!(testing::shown(&file));
    has(&sandbox, "docs", &state);
    let mut terminal = sandbox.terminal("q --new -v -a mcp+docs+note:one what?");
    terminal.expect("0 of 1 resource");
    fs::write(file, "").unwrap();
    terminal.finish("\r\u{1b}[Kdocs: info: a note was looked for\r\n");
}

#[test]
fn what_is_too_large_is_named() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    let limit = "conversation.attachment.max_bytes=10";
    asked(
        &sandbox,
        &["--new", "-c", limit, "-a", "mcp+docs+note:one", "what?"],
    )
    .failed(1)
    .says([r#"attach "mcp+docs+note:one": it is longer than the 10 bytes"#]);
}

#[test]
fn secret_in_a_resource_is_found() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    let token = format!(
        "ghp_{}",
        "a1B2c3D4e5F6g7H8i9J0".repeat(2).get(..36).unwrap()
    );
    has(
        &sandbox,
        "docs",
        &json!({"resources": {"note:one": [{"uri": "note:one", "text": token}]}}),
    );
    let refuse = "conversation.attachment.secrets=refuse";
    asked(
        &sandbox,
        &["--new", "-c", refuse, "-a", "mcp+docs+note:one", "what?"],
    )
    .failed(3)
    .says(["seems to contain"]);
}

#[test]
fn new_snapshots_are_read_from_the_server_again() {
    let refresh = calling(&[("refresh_resource", json!({"uri": "note:one"}))]);
    let server = playing(vec![
        answer("Yes."),
        answer("Yes."),
        refresh,
        answer("Now I see."),
    ]);
    let mut state = notes();
    state["ttlMs"] = json!(3_600_000);
    let sandbox = with_servers(&server, &["docs"], &state);
    asked(&sandbox, &["--new", "-a", "mcp+docs+note:one", "what?"]).succeeded();
    state["resources"]["note:one"][0]["text"] = json!("The second version.");
    has(&sandbox, "docs", &state);
    let run = sandbox.run("resource refresh note:one");
    assert_contains(&run.stderr, "has a new snapshot");
    asked(&sandbox, &["and now?"]).succeeded();
    assert_contains(last_message(&server), "second version");

    state["resources"]["note:one"][0]["text"] = json!("The third one.");
    has(&sandbox, "docs", &state);
    asked(&sandbox, &["read it again"]).succeeded();
    assert_contains(&results(&server)[0], "third one");
    assert_eq!(reads(&sandbox, "docs").len(), 3);
}

#[test]
fn refresh_that_fails_says_why_without_a_place() {
    let refresh = calling(&[("refresh_resource", json!({"uri": "note:one"}))]);
    let server = playing(vec![
        answer("Yes."),
        refresh.clone(),
        answer("Well."),
        refresh,
        answer("Gone."),
    ]);
    let sandbox = with_servers(&server, &["docs"], &notes());
    asked(&sandbox, &["--new", "-a", "mcp+docs+note:one", "what?"]).succeeded();
    let before = sandbox.read(USER);
    let home = testing::shown(&sandbox.home);
    sandbox.configure(format!(
        "[providers.mcp.docs]\ncommand = ['{home}/no-such-program']\n"
    ));
    asked(&sandbox, &["read it again"]).succeeded();
    let result = &results(&server)[0];
    assert_contains(result, "the program of its MCP server can't be started");
    for file in sandbox.files(".jp/conversations") {
        assert!(
            !fs::read_to_string(&file).unwrap().contains(&home),
            "{}",
            file.display()
        );
    }

    sandbox.configure(before);
    has(&sandbox, "docs", &json!({}));
    asked(&sandbox, &["and again"]).succeeded();
    let result = results(&server).pop().unwrap();
    assert_contains(&result, "there is no such resource: no such note");
}

/// Declares resources in the user's own configuration, with `refresh = "notify"`.
fn watch(sandbox: &Sandbox, resources: &[&str]) {
    let table = |path: &&str| format!("{{ type = 'mcp', path = '{path}', refresh = 'notify' }}");
    let tables: Vec<_> = resources.iter().map(table).collect();
    let before = sandbox.read(USER);
    sandbox.configure(format!(
        "conversation.attachments = [{}]\n{before}",
        tables.join(", ")
    ));
}

#[test]
fn change_of_a_resource_is_told() {
    let server = answering("Yes.");
    let mut state = notes();
    let sandbox = with_servers(&server, &["docs"], &state);
    watch(&sandbox, &["docs+note:one"]);
    asked(&sandbox, &["--new", "one"]).succeeded();
    asked(&sandbox, &["two"]).succeeded();
    assert_eq!(last_message(&server), "two");
    state["resources"]["note:one"][0]["text"] = json!("Another.");
    has(&sandbox, "docs", &state);
    let run = asked(&sandbox, &["three"]).succeeded();
    assert_contains(
        &run.stderr,
        "one has changed since turn 1; jp tells the model.",
    );
    has(&sandbox, "docs", &json!({}));
    asked(&sandbox, &["four"]).succeeded();
    assert_contains(last_message(&server), "no longer exists at its source");
    assert_eq!(reads(&sandbox, "docs").len(), 4);
}

#[test]
fn unknown_fields_of_attached_contents_are_kept() {
    let server = answering("Yes.");
    let mut state = notes();
    state["resources"]["note:one"][0]["tone"] = json!("low");
    let sandbox = with_servers(&server, &["docs"], &state);
    asked(&sandbox, &["--new", "-a", "mcp+docs+note:one", "one"]).succeeded();
    assert_eq!(
        request(&sandbox)["resources"][0]["_meta"],
        json!({"computer.jp/unknown": {"tone": "low"}})
    );
}

#[test]
fn what_its_server_takes_for_current_is_not_read_for_a_notification() {
    let server = answering("Yes.");
    let mut state = notes();
    state["ttlMs"] = json!(3_600_000);
    let sandbox = with_servers(&server, &["docs"], &state);
    watch(&sandbox, &["docs+note:one"]);
    asked(&sandbox, &["--new", "one"]).succeeded();
    assert_eq!(
        request(&sandbox)["resources"][0]["_meta"],
        json!({"computer.jp/ttlMs": 3_600_000})
    );
    state["resources"]["note:one"][0]["text"] = json!("Another.");
    state["ttlMs"] = json!(1);
    has(&sandbox, "docs", &state);
    asked(&sandbox, &["two"]).succeeded();
    assert_eq!(
        (last_message(&server), reads(&sandbox, "docs").len()),
        ("two".to_owned(), 1)
    );

    // The refresh reads it again, and its current content counts from then on.
    sandbox.run("resource refresh");
    asked(&sandbox, &["three"]).succeeded();
    assert_contains(last_message(&server), "Another.");
    asked(&sandbox, &["four"]).succeeded();
    assert_eq!(reads(&sandbox, "docs").len(), 3);
}

#[test]
fn sources_that_share_a_uri_are_not_mixed() {
    let server = answering("Yes.");
    let uri = "file:///../../etc/passwd";
    let sandbox = with_servers(&server, &["a", "b"], &notes());
    let other = |text: &str| json!({"resources": {uri: [{"uri": uri, "text": text}]}});
    has(&sandbox, "b", &other("Of the other server."));
    watch(&sandbox, &[&format!("a+{uri}"), &format!("b+{uri}")]);
    asked(&sandbox, &["--new", "one"]).succeeded();
    let message = last_message(&server);
    assert_contains(&message, "The server's own words.");
    assert_contains(&message, "Of the other server.");
    assert_lacks(&message, "root:");
    assert_eq!(request(&sandbox)["resources"][0]["uri"], uri);
    let run = asked(&sandbox, &["two"]).succeeded();
    assert_eq!(last_message(&server), "two", "{}", run.stderr);
    has(&sandbox, "b", &other("It has changed."));
    asked(&sandbox, &["three"]).succeeded();
    assert_count(last_message(&server), "has changed since", 1);
    asked(&sandbox, &["four"]).succeeded();
    assert_eq!(last_message(&server), "four");
    assert_contains(&sandbox.run(&["resource", "show", uri]).stdout, "server");
}

#[test]
fn server_of_the_workspace_starts_with_the_persons_word() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    let table = sandbox.path(USER);
    let before = sandbox.read(".jp/config.toml");
    sandbox.write(
        ".jp/config.toml",
        before + &fs::read_to_string(&table).unwrap(),
    );
    sandbox.configure("");
    let arguments = ["q", "--new", "-a", "mcp+docs+note:one", "what?"];
    sandbox.fail(&arguments, 1).says([
        "it needs approval before it starts: the workspace configures it",
        "`--yes` starts it.",
    ]);
    assert!(
        !sandbox.path("~/docs.json.log").exists(),
        "the server was started"
    );
    let mut terminal = sandbox.terminal(&arguments);
    terminal.expect("The workspace configures the MCP server `docs`:");
    terminal.expect("│ command = \"python3\" (.jp/config.toml)");
    terminal.answer("Start it? [y/N]", "n\n");
    assert_eq!(terminal.wait(), 1, "{}", terminal.output());
    assert!(
        !sandbox.path("~/docs.json.log").exists(),
        "the server was started"
    );
    let run = sandbox.run(&[&arguments[..], &["--skip-unavailable"]].concat());
    assert_contains(&run.stderr, "skipped");

    let mut terminal = sandbox.terminal(&arguments);
    terminal.answer("Start it? [y/N]", "y\n");
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
    assert_contains(last_message(&server), "The first note.");
    // The approval holds until the approved text changes.
    sandbox.run(&arguments);
    sandbox.write(
        ".jp/config.toml",
        sandbox.read(".jp/config.toml") + "timeout_secs = 5\n",
    );
    sandbox
        .fail(&arguments, 1)
        .says(["it needs approval before it starts"]);
    sandbox.run(&[&arguments[..], &["--yes"]].concat());
}

#[test]
fn workspace_reads_from_a_server_of_the_persons_with_their_word() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["mail"], &notes());
    sandbox.prepend_config("conversation.attachments = ['mcp+mail+note:one']");
    asked(&sandbox, &["--new", "what?"]).failed(1).says(["failed to attach `note:one` of your MCP server `mail`: the workspace or its history attaches it",
            "pass `--yes` to read it."]);
    assert!(reads(&sandbox, "mail").is_empty());
    let mut terminal = sandbox.terminal("q --new what?");
    terminal.answer(
        "attaches `note:one` of your MCP server `mail`. Read it? [y/N]",
        "y\n",
    );
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
    assert_contains(last_message(&server), "The first note.");
    asked(&sandbox, &["--new", "what?"]).succeeded();
}

#[test]
fn declared_resource_is_stored_without_a_place() {
    let server = answering("Yes.");
    let sandbox = with_servers(&server, &["docs"], &notes());
    asked(&sandbox, &["--new", "hello"]).succeeded();
    sandbox.run("attachment add mcp+docs+note:one");
    assert!(reads(&sandbox, "docs").is_empty());
    let run = sandbox.run("attachment print mcp+docs+note:one");
    assert_eq!(run.stdout, "The first note.");
    asked(&sandbox, &["what?"]).succeeded();
    assert_contains(last_message(&server), "The first note.");
    sandbox.run("attachment rm mcp+docs+note:one");
    asked(
        &sandbox,
        &["-a", "mcp+docs+file:///../../etc/passwd", "and now?"],
    )
    .succeeded();
    let root = testing::shown(&sandbox.home);
    for file in sandbox.files(".jp") {
        let content = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(
            !content.contains(&root) && !content.contains("root:x:"),
            "{}: {content}",
            file.display()
        );
    }
}
