//! `refresh_resource`: an attachment is read again when the model calls it.

#![cfg(unix)]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testing::{
    Reply, Sandbox, Server, answer, answering, assert_contains, assert_count, assert_starts,
    calling, items, last_request, playing, results,
};

/// A model that answers, then refreshes each of these in a separate turn.
fn refreshing(uris: &[&str]) -> Server {
    let turns = uris.iter().flat_map(|uri| {
        [
            calling(&[("refresh_resource", json!({"uri": uri}))]),
            answer("Done."),
        ]
    });
    playing([answer("Seen.")].into_iter().chain(turns).collect())
}

/// Returns the URI of a file of the workspace.
fn file_uri(sandbox: &Sandbox, path: &str) -> String {
    format!("file://{}", sandbox.path(path).display())
}

/// A workspace with an attached file, and a model that refreshes it once.
fn with_file(path: &str, content: &str) -> (Server, Sandbox) {
    with_attached(path, path, content)
}

/// Attaches a source with one file, which the model refreshes once.
fn with_attached(input: &str, path: &str, content: &str) -> (Server, Sandbox) {
    let sandbox = Sandbox::new();
    let server = refreshing(&[&file_uri(&sandbox, path)]);
    let sandbox = sandbox.with_server(&server);
    sandbox.write(path, content);
    sandbox.run(&["q", "--new", "-a", input, "look"]);
    (server, sandbox)
}

/// Returns the events of results.
fn responses(sandbox: &Sandbox) -> Vec<Value> {
    let events = sandbox.events().into_iter();
    events
        .filter(|event| event["type"] == "tool_call_response")
        .collect()
}

/// Returns the only resource of the last result.
fn refreshed(sandbox: &Sandbox) -> Value {
    let response = responses(sandbox).pop().unwrap();
    let [block] = items(&response["content"]) else {
        panic!("{response}")
    };
    block["resource"].clone()
}

/// Returns the only text of the last result, which is an error.
fn error(sandbox: &Sandbox) -> String {
    let response = responses(sandbox).pop().unwrap();
    assert_eq!(response["is_error"], true, "{response}");
    response["content"][0]["text"].as_str().unwrap().to_owned()
}

fn offers(server: &Server) -> bool {
    let request = last_request(server);
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools
        .iter()
        .any(|tool| tool["function"]["name"] == "refresh_resource")
}

/// Returns the attachments of the first request.
fn attached(sandbox: &Sandbox) -> Value {
    let request = &sandbox.events_of("chat_request")[0];
    request["resources"][0].clone()
}

#[test]
fn changed_file_is_a_new_snapshot_of_the_same_identity() {
    let (server, sandbox) = with_file("src/a.rs", "fn old() {}\n");
    sandbox.write("src/a.rs", "fn new() {}\n");
    sandbox.run("q again");
    assert_contains(&results(&server)[0], "fn new() {}");
    let (old, new) = (attached(&sandbox), refreshed(&sandbox));
    for field in ["uri", "name", "mimeType"] {
        assert_eq!(old[field], new[field]);
    }
    assert_eq!(new["name"], "src/a.rs");
    assert_ne!(old["content"], new["content"]);
}

#[test]
fn unchanged_file_has_the_content_that_was_attached() {
    let (_server, sandbox) = with_file("a.txt", "same\n".repeat(100).as_str());
    sandbox.run("q again");
    assert_eq!(
        attached(&sandbox)["content"],
        refreshed(&sandbox)["content"]
    );
    let blobs = sandbox.files(".jp/blobs");
    let named = attached(&sandbox)["content"]["$blob"].as_str().unwrap()[2..].to_owned();
    assert_eq!(
        blobs
            .iter()
            .filter(|path| testing::shown(path).contains(&named))
            .count(),
        1
    );
}

#[test]
fn deleted_file_is_an_error_that_the_model_can_go_on_from() {
    let (_server, sandbox) = with_file("a.txt", "x");
    fs::remove_file(sandbox.path("a.txt")).unwrap();
    assert_eq!(sandbox.run("q again").stdout, "Done.\n");
    insta::assert_snapshot!(error(&sandbox), @"a.txt could not be refreshed: it no longer exists. The conversation still has the earlier snapshot.");
}

#[test]
fn file_that_is_too_large_now_is_not_read() {
    let (_server, sandbox) = with_file("a.txt", "x");
    sandbox.write("a.txt", "x".repeat(2000));
    sandbox.run("q -c conversation.attachment.max_bytes=1000 again");
    insta::assert_snapshot!(error(&sandbox), @"a.txt could not be refreshed: it has 2000 bytes now, more than the 1000 that conversation.attachment.max_bytes allows. The conversation still has the earlier snapshot.");
}

#[test]
fn secrets_are_looked_for_as_where_something_is_attached() {
    let sandbox = Sandbox::new();
    let uri = file_uri(&sandbox, "a.txt");
    let server = refreshing(&[&uri, &uri]);
    let sandbox = sandbox.with_server(&server);
    sandbox.write("a.txt", "x");
    sandbox.run("q --new -a a.txt look");
    // Put together here, so that nothing finds one in this file.
    let token = ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    sandbox.write("a.txt", format!("fine\ntoken = '{token}'\n"));
    let refuse = "conversation.attachment.secrets=refuse";
    let warned = sandbox.run("q -c conversation.attachment.secrets=warn again");
    assert_contains(&warned.stderr, "line 2 seems to contain");
    assert!(refreshed(&sandbox)["content"].is_object());
    sandbox.run(&["q", "-c", refuse, "again"]);
    insta::assert_snapshot!(error(&sandbox), @"a.txt could not be refreshed: line 2 seems to contain a password or token, and conversation.attachment.secrets refuses that. The conversation still has the earlier snapshot.");
}

#[test]
fn file_of_a_directory_or_pattern_comes_alone() {
    for (input, declaration) in [("src", "file:src/"), ("src/*.rs", "file:src/*.rs")] {
        let (_server, sandbox) = with_attached(input, "src/a.rs", "old");
        assert_eq!(
            sandbox.events()[0]["delta"]["conversation"]["attachments"]["add"],
            json!([declaration])
        );
        sandbox.write("src/a.rs", "new");
        sandbox.write("src/large.rs", "x".repeat(5000));
        // The directory can no longer be read as a whole; the file can.
        sandbox.run("q -c conversation.attachment.max_bytes=1000 again");
        assert_eq!(refreshed(&sandbox)["name"], "src/a.rs", "{input}");
        fs::remove_file(sandbox.path("src/a.rs")).unwrap();
    }
}

#[test]
fn link_that_leads_out_by_now_is_not_followed() {
    let (_server, sandbox) = with_attached("src", "src/a.rs", "old");
    let outside = sandbox.write("~/secret.txt", "the secret");
    fs::remove_file(sandbox.path("src/a.rs")).unwrap();
    sandbox.link(outside, "src/a.rs");
    sandbox.run("q again");
    insta::assert_snapshot!(error(&sandbox), @"src/a.rs could not be refreshed: it is outside the workspace; ask the user to attach it. The conversation still has the earlier snapshot.");
}

/// A server with a page that changes with each request; from the third request on it is missing.
fn page() -> Server {
    let count = Arc::new(AtomicUsize::new(0));
    Server::scripted(move |_, _| match count.fetch_add(1, Relaxed) {
        version @ ..2 => Reply::with_headers(
            200,
            "content-type: text/plain\r\n",
            &format!("version {version}\n"),
        ),
        _ => Reply::json(404, "{}"),
    })
}

#[test]
fn page_that_is_gone_is_reported() {
    let page = page();
    let url = format!("{}/notes", page.url());
    let (sandbox, server) = Sandbox::with_model(refreshing(&[&url, &url]));
    sandbox.run(&["q", "--new", "-a", &url, "look"]);
    sandbox.run("q again");
    assert_contains(&results(&server)[0], "version 1");
    assert_eq!(
        (&attached(&sandbox)["uri"], &refreshed(&sandbox)["uri"]),
        (&json!(url), &json!(url))
    );
    sandbox.run("q 'and again'");
    insta::assert_snapshot!(error(&sandbox).replace(page.url(), "http://PAGE"), @"http://PAGE/notes could not be refreshed: get http://PAGE/notes: the server answered 404 (Not Found). The conversation still has the earlier snapshot.");
}

/// Deletes the user's data and approvals of this checkout, as in a clone of it.
fn forget(sandbox: &Sandbox) {
    for path in sandbox.files("../../.local/share/jp") {
        if path.components().any(|name| name.as_os_str() == "trusted") {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn page_of_a_history_that_is_not_trusted_asks() {
    let page = page();
    let url = format!("{}/notes", page.url());
    let (sandbox, _) = Sandbox::with_model(refreshing(&[&url, &url]));
    sandbox.run(&["q", "--new", "-a", &url, "look"]);
    forget(&sandbox);
    sandbox.fail("q again", 3);
    assert_contains(error(&sandbox), "there is no terminal");
    assert_eq!(page.received().len(), 1);
    // Who agrees to the page does not agree to a private address.
    sandbox.run("q --yes again");
    assert_contains(error(&sandbox), "private network");
    assert_eq!(page.received().len(), 1);
}

#[test]
fn ctrl_c_ends_what_a_page_takes() {
    let count = AtomicUsize::new(0);
    let page = Server::scripted(move |_, _| match count.fetch_add(1, Relaxed) {
        0 => Reply::with_headers(200, "content-type: text/plain\r\n", "one"),
        _ => Reply::hang(),
    });
    let (sandbox, _) = Sandbox::with_model(refreshing(&[page.url()]));
    sandbox.run(&["q", "--new", "-a", page.url(), "look"]);
    let uri = attached(&sandbox)["uri"].as_str().unwrap().to_owned();
    let server = playing(vec![
        calling(&[("refresh_resource", json!({"uri": uri}))]),
        answer("Done."),
    ]);
    let sandbox = sandbox.with_server(&server);
    let mut child = sandbox.command("q again").spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while page.received().len() < 2 {
        assert!(Instant::now() < until, "the page is not asked for");
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(error(&sandbox), "The call was interrupted.");
}

/// A command that counts its runs. A pattern stands for its file: jp would ask about a changed file that it names.
const COUNT: &str = "cmd:sh -c 'echo x >> runs; cat run? | wc -l'";

fn with_command() -> (Server, Sandbox) {
    let (sandbox, _) = Sandbox::with_model(answering("Seen."));
    sandbox.run(&["q", "--new", "-a", COUNT, "look"]);
    let uri = attached(&sandbox)["uri"].as_str().unwrap().to_owned();
    let server = playing(vec![
        calling(&[("refresh_resource", json!({"uri": uri}))]),
        answer("Done."),
    ]);
    let sandbox = sandbox.with_server(&server);
    (server, sandbox)
}

#[test]
fn command_is_refused_without_a_terminal() {
    let (server, sandbox) = with_command();
    let run = sandbox.fail("q again", 3);
    assert_contains(&run.stderr, "`refresh_resource` was refused");
    assert_contains(&results(&server)[0], "there is no terminal");
    assert_eq!(sandbox.read("runs"), "x\n");
}

#[test]
fn approval_of_a_command_lasts_for_the_turn() {
    let (_server, sandbox) = with_command();
    let uri = attached(&sandbox)["uri"].as_str().unwrap().to_owned();
    let call = calling(&[("refresh_resource", json!({"uri": uri}))]);
    let server = playing(vec![call.clone(), call, answer("Done.")]);
    let sandbox = sandbox.with_server(&server);
    let mut terminal = sandbox.terminal("q again");
    terminal.expect("refresh the output of `sh -c");
    terminal.answer("[w]hy not:", "a\r");
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
    assert_eq!(sandbox.read("runs"), "x\nx\nx\n");
}

#[test]
fn command_runs_again_with_leave() {
    let leaves: [(&str, &[&str]); 2] = [
        ("", &["q", "--yes", "again"]),
        (
            "conversation.tools.refresh_resource.run = 'unattended'",
            &["q", "again"],
        ),
    ];
    for (config, arguments) in leaves {
        let (_server, sandbox) = with_command();
        sandbox.configure(config);
        sandbox.run(arguments);
        assert_eq!(refreshed(&sandbox)["uri"], attached(&sandbox)["uri"]);
        assert_eq!(sandbox.read("runs"), "x\nx\n");
    }
}

#[test]
fn command_of_a_history_that_is_not_trusted_asks_whatever_runs_unattended() {
    let (_server, sandbox) = with_command();
    sandbox.configure("conversation.tools.refresh_resource.run = 'unattended'");
    forget(&sandbox);
    sandbox.fail("q again", 3);
    assert_contains(error(&sandbox), "there is no terminal");
    assert_eq!(sandbox.read("runs"), "x\n");
}

#[test]
fn snapshot_of_a_file_outside_names_its_declaration() {
    let (sandbox, _) = Sandbox::with_model(answering("Seen."));
    let outside = sandbox.write("~/notes.md", "x");
    sandbox.run(&["q", "--new", "-a", &testing::shown(&outside), "look"]);
    let uri = attached(&sandbox)["uri"].as_str().unwrap().to_owned();
    let server = playing(vec![
        calling(&[("refresh_resource", json!({"uri": uri}))]),
        answer("Done."),
    ]);
    let sandbox = sandbox.with_server(&server);
    sandbox.run("q again");
    insta::assert_snapshot!(error(&sandbox), @"notes.md can't be refreshed: the conversation has its content but not its source. If you need the current content, ask the user to attach the file again with `--attach PATH`.");
}

#[test]
fn what_is_not_attached_is_refused_though_a_tool_named_it() {
    let sandbox = Sandbox::new();
    let named = file_uri(&sandbox, "named.txt");
    let server = playing(vec![
        calling(&[("read_file", json!({"path": "named.txt"}))]),
        calling(&[("refresh_resource", json!({"uri": named}))]),
        answer("Done."),
    ]);
    let sandbox = sandbox.with_server(&server);
    sandbox.write("known.txt", "x");
    sandbox.write("named.txt", "y");
    sandbox.run("q --new -a known.txt look");
    insta::assert_snapshot!(error(&sandbox), @r#""named.txt" is not attached to this conversation, so it was not read. You can refresh: known.txt."#);
}

#[test]
fn scheme_decides_where_no_declaration_is_recorded() {
    let (_server, sandbox) = with_file("a.txt", "old");
    let path = sandbox.events_path();
    let mut events = sandbox.events();
    for event in &mut events {
        event.as_object_mut().unwrap().remove("delivered");
    }
    sandbox.write_events(&events);
    sandbox.write("a.txt", "new");
    sandbox.run("q again");
    assert_ne!(
        refreshed(&sandbox)["content"],
        attached(&sandbox)["content"]
    );

    let text = json!(events)
        .to_string()
        .replace("workspace:///a.txt", "org://notes");
    assert_contains(&text, "org://notes");
    fs::write(&path, text).unwrap();
    let server = playing(vec![
        calling(&[("refresh_resource", json!({"uri": "org://notes"}))]),
        answer("Done."),
    ]);
    let sandbox = sandbox.with_server(&server);
    sandbox.run("q again");
    insta::assert_snapshot!(error(&sandbox), @"a.txt could not be refreshed: jp can't read `org:`. The conversation still has the earlier snapshot.");
}

#[test]
fn fragment_does_not_matter_where_none_was_attached() {
    let sandbox = Sandbox::new();
    let uri = format!("{}#L1-2", file_uri(&sandbox, "a.txt"));
    let server = refreshing(&[&uri]);
    let sandbox = sandbox.with_server(&server);
    sandbox.write("a.txt", "x");
    sandbox.run("q --new -a a.txt look");
    sandbox.run("q again");
    assert_eq!(refreshed(&sandbox)["uri"], attached(&sandbox)["uri"]);
}

#[test]
fn attached_file_is_meant_by_its_path_or_by_a_name_that_no_other_has() {
    let (sandbox, _) = Sandbox::with_model(refreshing(&[
        "src/a.txt",
        "a#1.txt",
        "src/a.txt#L1-2",
        "notes.md",
        "mod.rs",
    ]));
    for file in [
        "src/a.txt",
        "a#1.txt",
        "~/notes.md",
        "~/one/mod.rs",
        "~/two/mod.rs",
    ] {
        sandbox.write(file, "x");
    }
    let attach = [
        "-a",
        "src",
        "-a",
        "a#1.txt",
        "-a",
        "~/notes.md",
        "-a",
        "~/one/mod.rs",
        "-a",
        "~/two/mod.rs",
    ];
    sandbox.run(&[&["q", "--new", "look"][..], &attach].concat());
    for name in ["src/a.txt", "a#1.txt", "src/a.txt"] {
        sandbox.run("q again");
        assert_eq!(refreshed(&sandbox)["name"], name);
    }
    sandbox.run("q again");
    assert_starts(error(&sandbox), "notes.md can't be refreshed: ");
    sandbox.run("q again");
    let told = error(&sandbox);
    assert_starts(
        &told,
        "Several attached resources have the name \"mod.rs\".",
    );
    assert_count(&told, "external:", 2);
}

#[test]
fn file_with_secrets_asks_however_it_is_named() {
    let sandbox = Sandbox::new();
    let names = [
        file_uri(&sandbox, ".env"),
        ".env".to_owned(),
        "./.env".to_owned(),
        ".env#L1".to_owned(),
    ];
    let server = refreshing(&names.each_ref().map(String::as_str));
    let sandbox = sandbox.with_server(&server);
    sandbox.write(".env", "x");
    sandbox.run("q --new -a .env look");
    for name in names {
        sandbox.fail("q again", 3);
        assert!(
            error(&sandbox).contains("there is no terminal"),
            "{name}: {}",
            error(&sandbox)
        );
    }
}

#[test]
fn what_is_declared_no_longer_is_refreshed_from_where_it_was_attached() {
    let (_server, sandbox) = with_file("a.txt", "old");
    sandbox.write("a.txt", "new");
    sandbox.run("attachment rm a.txt");
    sandbox.run("q again");
    assert_ne!(
        refreshed(&sandbox)["content"],
        attached(&sandbox)["content"]
    );
    let words = [
        "a.txt is not attached to the conversation",
        "`jp attachment ls` lists the attachments",
    ];
    sandbox.fail("resource refresh a.txt", 1).says(words);
}

#[test]
fn what_nothing_here_reads_is_refused_with_what_to_do() {
    for (uri, declaration) in [
        ("mcp+notes+x://1", "mcp+notes+x://1"),
        ("bear://get/1", "bear://get/1"),
    ] {
        let (_server, sandbox) = with_file("a.txt", "old");
        let path = sandbox.events_path();
        let text = json!(sandbox.events()).to_string();
        let text = text
            .replace("workspace:///a.txt", uri)
            .replace("file:a.txt", declaration);
        fs::write(&path, text).unwrap();
        let call = calling(&[("refresh_resource", json!({"uri": uri}))]);
        let server = playing(vec![call.clone(), answer("Done."), call, answer("Done.")]);
        let sandbox = sandbox.with_server(&server);
        sandbox.run("q --yes again");
        assert_contains(error(&sandbox), "; ask the");
        sandbox.configure(format!("conversation.attachments = ['{declaration}']"));
        sandbox.run("q --yes again");
        let told = error(&sandbox);
        assert!(
            told.starts_with("a.txt could not be refreshed: ") && told.contains("ask the user to"),
            "{told}"
        );
        sandbox
            .fail(&["resource", "refresh", uri], 1)
            .says(["pipe it in with `--attach -`"]);
    }
}

#[test]
fn tool_stays_once_something_is_declared() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "x");
    sandbox.run("q --new x");
    assert!(!offers(&server));
    sandbox.run("q -a a.txt x");
    assert!(offers(&server));
    let tools = last_request(&server)["tools"].to_string();
    sandbox.run("attachment rm a.txt");
    sandbox.run("q x");
    assert_eq!(last_request(&server)["tools"].to_string(), tools);
    sandbox.run("q --new x");
    assert!(!offers(&server));
    sandbox.run("attachment add a.txt");
    sandbox.run("q x");
    assert!(offers(&server));
}

#[test]
fn tool_is_offered_where_the_configuration_declares_or_chooses_it() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new -t refresh_resource x");
    assert!(offers(&server));
    sandbox.run("q x");
    assert!(offers(&server));
    sandbox.write("a.txt", "x");
    sandbox.configure("conversation.attachments = ['file:a.txt']");
    sandbox.run("q --new x");
    assert!(offers(&server));
    sandbox.run("q -T=refresh_resource x");
    assert!(!offers(&server));
    sandbox.run("q x");
    assert!(!offers(&server));
}

/// Refreshes each of these in one turn, and returns the results.
fn refreshed_all(sandbox: Sandbox, spellings: &[String]) -> (Sandbox, Vec<Value>) {
    let calls: Vec<_> = spellings
        .iter()
        .map(|text| ("refresh_resource", json!({"uri": text})))
        .collect();
    let server = playing(vec![calling(&calls), answer("Done.")]);
    let sandbox = sandbox.with_server(&server);
    sandbox.run("q --yes again");
    let responses = responses(&sandbox);
    (sandbox, responses)
}

#[test]
fn attached_file_is_found_however_it_is_spelled() {
    let sandbox = Sandbox::new().with_server(&answering("Seen."));
    sandbox.write("src/R&D plan.txt", "x");
    sandbox.write("src/other.txt", "y");
    sandbox.link("R&D plan.txt", "src/link");
    let server = answering("Seen.");
    let sandbox = sandbox.with_server(&server);
    sandbox.run("q --new -a 'src/R&D plan.txt' look");
    let root = sandbox.root.display().to_string();
    let uri = file_uri(&sandbox, "src/R&D%20plan.txt");
    let spellings = [
        "src/R&D plan.txt".to_owned(),
        "./src/R&D plan.txt".to_owned(),
        "src/../src//R&D%20plan.txt".to_owned(),
        format!("{root}/src/R&D plan.txt"),
        format!("{root}/src/R&amp;D plan.txt#L1"),
        "src/R&#38;D plan.txt".to_owned(),
        "file:src/R&D plan.txt".to_owned(),
        "file:./src/R%26D%20plan.txt".to_owned(),
        "FILE:///src/R&D%20plan.txt".to_owned(),
        uri.replace("file://", "file:"),
        uri.replace("file://", "file://localhost"),
        uri.replace("file:", "File:"),
        uri.replace('&', "&amp;"),
        uri.replace('&', "%26"),
        uri.replace("src", "%73rc"),
        uri.replace("src", "./src/."),
        "src/link".to_owned(),
    ];
    let (sandbox, responses) = refreshed_all(sandbox, &spellings);
    assert_eq!(responses.len(), spellings.len());
    for (spelling, response) in spellings.iter().zip(responses) {
        assert_eq!(response["is_error"], false, "{spelling}: {response}");
        assert_eq!(
            response["content"][0]["resource"]["uri"],
            attached(&sandbox)["uri"],
            "{spelling}"
        );
    }
}

#[test]
fn what_is_not_held_is_refused_however_it_is_spelled() {
    let (sandbox, _) = Sandbox::with_model(answering("Seen."));
    sandbox.write("known.txt", "x");
    sandbox.write("other&.txt", "y");
    let outside = sandbox.write("~/Notes.md", "z");
    let attach = [
        "q",
        "--new",
        "-a",
        "known.txt",
        "-a",
        &testing::shown(&outside),
        "look",
    ];
    sandbox.run(&attach);
    let request = &sandbox.events_of("chat_request")[0];
    let external = request["resources"][1]["uri"].as_str().unwrap();
    assert_starts(external, "external:");
    let uri = file_uri(&sandbox, "other&.txt");
    let spellings = [
        "other&amp;.txt".to_owned(),
        "file:other%26.txt".to_owned(),
        uri.replace("file://", "file://localhost"),
        uri.replace('&', "&amp;"),
        "file:///known.txt/../other&.txt".to_owned(),
        external.replace("Notes", "%4Eotes"),
        external.replace("external:", "EXTERNAL:"),
        testing::shown(&outside),
        "~/Notes.md".to_owned(),
    ];
    let (_sandbox, responses) = refreshed_all(sandbox, &spellings);
    for (spelling, response) in spellings.iter().zip(responses) {
        let text = response["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("is not attached to this conversation"),
            "{spelling}: {response}"
        );
    }
}

#[test]
fn sources_are_found_in_other_spellings() {
    let page = page();
    let url = format!("{}/notes?a=1&b=2", page.url());
    let (sandbox, _) = Sandbox::with_model(answering("Seen."));
    sandbox.run(&["q", "--new", "-a", &url, "-a", "cmd:echo a b", "look"]);
    let spellings = [
        url.replace('&', "&amp;"),
        url.replace("http:", "HTTP:"),
        "cmd:echo a b".to_owned(),
    ];
    let (_sandbox, responses) = refreshed_all(sandbox, &spellings);
    let told: Vec<_> = responses
        .iter()
        .map(|response| response["content"][0].to_string())
        .collect();
    assert_eq!(told.len(), spellings.len());
    assert!(
        told.iter().all(|text| !text.contains("is not attached")),
        "{told:?}"
    );
}
