//! `jp mcp` with a real server, over stdio and HTTP.

#![cfg(unix)]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testing::{
    Background, Sandbox, assert_contains, assert_ends, assert_fields, assert_lacks, assert_starts,
    finish, items, start,
};

const NOTES: &str = testing::programs::NOTES;

/// Makes a workspace; the user configures the servers, `NAME = COMMAND`, with a program of their own.
fn with(servers: &[(&str, &str)]) -> Sandbox {
    let settings = servers
        .iter()
        .map(|(name, command)| format!("{name}.command = {}\n", json!(command)));
    configured(&settings.collect::<String>())
}

fn configured(settings: &str) -> Sandbox {
    let sandbox = with_program();
    sandbox.write("~/notes.py", NOTES);
    let settings = settings.replace("notes.py", "../../notes.py");
    sandbox.configure(format!("[providers.mcp]\n{settings}"));
    sandbox
}

fn with_program() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("notes.py", NOTES);
    sandbox
}

fn good() -> Sandbox {
    with(&[("notes", "python3 notes.py")])
}

/// The server over HTTP; it ends with the value, as its stdin does.
struct Endpoint {
    _server: Background,
    url: String,
}

impl Endpoint {
    fn new(sandbox: &Sandbox, mode: &str) -> Self {
        let mut command = Command::new("python3");
        command.args(["notes.py", mode, "--http"]);
        command.current_dir(&sandbox.root).stdin(Stdio::piped());
        let (_server, port) = Background::announce(&mut command);
        let url = format!("http://127.0.0.1:{port}/mcp");
        Self { _server, url }
    }
}

fn line(from: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn servers_are_listed_with_what_they_offer() {
    let sandbox = with(&[
        ("notes", "python3 notes.py"),
        (
            "dead",
            r#"sh -c 'printf "\033[31mNo\033[0m \033[2Jdata\n" >&2; exit 3'"#,
        ),
        ("loop", "python3 notes.py loop"),
        ("wrong", "no-such-program"),
    ]);
    let run = sandbox.run("mcp ls");
    insta::assert_snapshot!(run.stdout, @r#"
    server  tools  resources  templates  MCP         software
    dead    -      -          -          -           -          failed: it ended with exit status: 3
    loop    4+     8+         1          2025-11-25  notes 1.0  runs `python3 ../../notes.py loop`
    notes   2      4          1          2025-11-25  notes 1.0  runs `python3 ../../notes.py`
    wrong   -      -          -          -           -          failed: "no-such-program" can't be started: there is no such program in PATH
    "#);
    insta::assert_snapshot!(run.stderr, @r#"
    warning: `dead` wrote to stderr:
      │ No \u{1b}[2Jdata
    warning: the MCP server `loop`: it returned the cursor "again" of `tools/list` twice
    warning: the MCP server `loop`: it returned the cursor "again" of `resources/list` twice
    hint: `wrong`: check providers.mcp.wrong.command; a program outside PATH needs its full path.
    "#);
}

#[test]
fn servers_are_listed_as_a_document() {
    let sandbox = with(&[
        ("notes", "python3 notes.py"),
        ("dead", "sh -c 'echo why >&2; exit 3'"),
    ]);
    assert_eq!(
        sandbox.json("mcp ls"),
        json!([
            {
                "name": "dead", "optional": true, "type": "stdio", "command": ["sh", "-c", "echo why >&2; exit 3"],
                "error": "the MCP server `dead`: it ended with exit status: 3", "stderr": ["why"],
            },
            {
                "name": "notes", "optional": true, "type": "stdio", "command": ["python3", "../../notes.py"],
                "revision": "2025-11-25", "server": {"name": "notes", "version": "1.0"}, "instructions": null,
                "tools": 2, "resources": 4, "templates": 1, "warnings": [],
            },
        ])
    );
}

#[test]
fn list_fails_where_no_server_can_be_had() {
    let sandbox = with(&[("dead", "sh -c 'exit 3'"), ("wrong", "no-such-program")]);
    let hint = "hint: `dead`: it wrote nothing to stderr; run its command in a shell to see more.";
    sandbox.fail("mcp ls", 1).says([hint]);
    let run = sandbox
        .fail("mcp resources", 1)
        .says(["warning: the MCP server `dead`"]);
    assert_eq!(run.stdout, "");
    let none = configured("").jp(&["mcp", "ls"]).succeeded();
    assert_starts(&none.stderr, "There are no configured MCP servers.\nhint: ");
    assert_eq!(configured("").json(&["mcp", "resources"]), json!([]));
}

#[test]
fn servers_start_at_once() {
    let waits = |own: &str, other: &str| {
        format!(
            "sh -c 'touch {own}; until [ -e {other} ]; do sleep 0.01; done; exec python3 notes.py'"
        )
    };
    let sandbox = with(&[("a", &waits("a", "b")), ("b", &waits("b", "a"))]);
    assert_eq!(items(&sandbox.json("mcp templates")).len(), 2);
}

#[test]
fn tools_of_a_server_are_listed() {
    let sandbox = good();
    let run = sandbox.run("mcp ls notes");
    assert_eq!(
        run.stdout,
        "count_notes  notes_count_notes  Counts the notes.\nadd_note     notes_add_note     Add a note\n"
    );
    assert_contains(&run.stderr, "was skipped: missing field `name`");
    let tools = sandbox.json("mcp ls notes");
    assert_eq!(tools[0]["annotations"], json!({"readOnlyHint": true}));
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    assert_eq!(
        tools[1],
        json!({"name": "add_note", "title": "Add a note", "inputSchema": schema, "offeredAs": ["notes_add_note"]})
    );
}

#[test]
fn everything_a_server_offers_is_listed() {
    let sandbox = with(&[
        ("docs", "python3 notes.py"),
        ("notes", "python3 notes.py"),
        ("dead", "sh -c 'exit 3'"),
    ]);
    let run = sandbox.run("mcp resources");
    insta::assert_snapshot!(run.stdout, @"
    server  name      type        size  URI
    docs    Note one  text/plain  15 B  note:one
    docs    both      -           -     note:both
    docs    picture   image/png   -     note:picture
    docs    file      -           -     note:file
    notes   Note one  text/plain  15 B  note:one
    notes   both      -           -     note:both
    notes   picture   image/png   -     note:picture
    notes   file      -           -     note:file
    ");
    assert_starts(
        &run.stderr,
        "warning: the MCP server `dead`: it ended with exit status: 3; jp continues without it\n",
    );
    let templates = sandbox.run("mcp templates notes");
    insta::assert_snapshot!(templates.stdout, @"
    server  name  type  template            description
    notes   note  -     note:{name}{?lang}  A note by its name.
    ");
    let resources = sandbox.json("mcp resources notes notes");
    assert_eq!(
        (items(&resources).len(), &resources[0]),
        (
            4,
            &json!({"server": "notes", "uri": "note:one", "name": "one", "title": "Note one", "mimeType": "text/plain", "size": 15})
        )
    );
    let template = json!({"server": "notes", "uriTemplate": "note:{name}{?lang}", "name": "note", "description": "A note by its name."});
    assert_eq!(sandbox.json("mcp templates notes"), json!([template]));
}

#[test]
fn list_that_is_cut_is_shown_as_far_as_it_goes() {
    let run = with(&[("loop", "python3 notes.py loop")])
        .jp(&["mcp", "resources", "loop"])
        .succeeded();
    assert_eq!(run.stdout.lines().count(), 1 + 8);
    let warning =
        "warning: the MCP server `loop`: only the first 8 are shown because it returned the cursor";
    assert_starts(&run.stderr, warning);
}

#[test]
fn content_is_written_as_it_is() {
    let sandbox = good();
    let read = |uri: &str| {
        sandbox
            .command(&["mcp", "read", "notes", uri])
            .output()
            .unwrap()
    };
    assert_eq!(read("note:one?lang=de").stdout, b"The first note, in de.\n");
    assert_eq!(read("note:picture").stdout, b"\x89PNG\r\n\x1a\n\xff");
    let both = read("note:both");
    assert_eq!(both.stdout, b"no end of line\x89PNG\r\n\x1a\n\xffTwo.\n");
    assert_eq!(
        String::from_utf8(both.stderr).unwrap(),
        "note:one (no type, 14 B):\nnote:picture (image/png, 9 B):\nnote:two (no type, 5 B):\n"
    );
}

#[test]
fn content_as_a_document_has_what_the_list_says_of_it() {
    let sandbox = good();
    let one = json!({"uri": "note:one", "mimeType": "text/plain", "text": "The first note.\n", "name": "one", "title": "Note one"});
    assert_eq!(
        sandbox.json("mcp read notes note:one"),
        json!({"contents": [one], "ttlMs": 5000})
    );
    let picture = sandbox.json("mcp read notes note:picture");
    assert_eq!(picture["contents"][0]["blob"], "iVBORw0KGgr/");
}

/// Returns the output of a command at a terminal.
fn on_terminal(sandbox: &Sandbox, arguments: &[&str], code: i32) -> String {
    let mut terminal = sandbox.terminal(arguments);
    assert_eq!(terminal.wait(), code, "{}", terminal.output());
    terminal.output()
}

#[test]
fn terminal_is_shown_text_only() {
    let sandbox = good();
    let picture = on_terminal(&sandbox, &["mcp", "read", "notes", "note:picture"], 1);
    assert_contains(&picture, "the content is binary, and stdout is a terminal");
    let both = on_terminal(&sandbox, &["mcp", "read", "notes", "note:both"], 1);
    assert_contains(&both, "no end of line\r\n");
    assert_contains(&both, "Two.\r\n");
}

#[test]
fn nothing_of_a_server_steers_a_terminal() {
    let sandbox = with(&[("nasty", "python3 notes.py nasty")]);
    for arguments in [
        &["mcp", "ls"][..],
        &["mcp", "ls", "nasty"],
        &["mcp", "resources", "nasty"],
        &["mcp", "templates", "nasty", "-v"],
    ] {
        let shown = on_terminal(&sandbox, arguments, 0);
        assert!(
            !shown.contains("\u{1b}[2J") && !shown.contains("forged  row\r"),
            "{arguments:?}: {shown}"
        );
    }
    let content = on_terminal(&sandbox, &["mcp", "read", "nasty", "note:one"], 0);
    assert_contains(&content, "gone\r\nforged");
    assert_lacks(&content, "\u{1b}[2J");
    let refused = sandbox.jp("mcp read nasty note:none");
    let refused = refused
        .failed(1)
        .says([r"such thing\u{1b}[2Jall\u{202e}gone\nforged  row"]);
    assert!(!refused.stderr.contains('\u{1b}'));
    let raw = sandbox.run("mcp read nasty note:one");
    assert_eq!(
        raw.stdout,
        "The first note.\n\u{1b}[2Jall\u{202e}gone\nforged  row"
    );
}

#[test]
fn what_a_server_logs_is_shown_with_v() {
    let sandbox = with(&[("notes", "python3 notes.py slow")]);
    let mut child = start(sandbox.command("mcp read notes note:one -v"));
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut told)
        .unwrap();
    assert_eq!(told, "notes: info (disk): a note is read\n");
    sandbox.write("go", "");
    assert_eq!(
        child.wait_with_output().unwrap().stdout,
        b"The first note.\n"
    );
    assert_eq!(sandbox.run("mcp read notes note:one").stderr, "");
}

#[test]
fn failure_names_the_next_step() {
    let sandbox = with(&[
        ("notes", "python3 notes.py"),
        ("dead", r#"sh -c 'printf "no\tdata\n" >&2; exit 3'"#),
        ("wrong", "no-such-program"),
    ]);
    let failing = |server: &str, uri: &str| sandbox.fail(&["mcp", "read", server, uri], 1).stderr;
    let told = [
        failing("nots", "note:one"),
        failing("elsewhere", "note:one"),
        failing("wrong", "note:one"),
        failing("dead", "note:one"),
        failing("notes", "note:none"),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
    error: there is no MCP server `nots`
    hint: did you mean `notes`?
    hint: the configured servers are: dead, notes, wrong.

    error: there is no MCP server `elsewhere`
    hint: the configured servers are: dead, notes, wrong.

    error: the MCP server `wrong`: "no-such-program" can't be started: there is no such program in PATH
    hint: check providers.mcp.wrong.command; a program outside PATH needs its full path.

    error: the MCP server `dead`: it ended with exit status: 3; its last lines on stderr:
      │ no data

    error: the MCP server `notes`: it answered `resources/read` with the error -32002: there is no such thing
    hint: `jp mcp resources notes` lists its resources, `jp mcp templates notes` its templates.
    "#);
}

#[test]
fn endpoint_is_reached_over_http() {
    let sandbox = with_program();
    let endpoint = Endpoint::new(&sandbox, "good");
    sandbox.configure(format!(
        "[providers.mcp.notes]\nurl = \"{}\"\n",
        endpoint.url
    ));
    let listed = sandbox.json("mcp ls");
    assert_fields!(listed[0], {"type": "http", "url": endpoint.url, "resources": 4, "error": null});
    let read = sandbox.run("mcp read notes note:one");
    assert_eq!(read.stdout, "The first note.\n");
}

#[test]
fn endpoint_that_refuses_is_told_with_what_to_set() {
    let sandbox = with_program();
    for (status, hint) in [
        (
            "401",
            "hint: `jp mcp login notes` logs in; if you have a token, set providers.mcp.notes.token_env to",
        ),
        ("404", "hint: check providers.mcp.notes.url"),
        (
            "307",
            "set providers.mcp.notes.url = \"https://other.example/mcp\"",
        ),
    ] {
        let endpoint = Endpoint::new(&sandbox, status);
        sandbox.configure(format!(
            "[providers.mcp.notes]\nurl = \"{}\"\n",
            endpoint.url
        ));
        sandbox
            .fail("mcp read notes note:one", 1)
            .says([status, hint]);
    }
    sandbox.configure(
        "[providers.mcp.notes]\nurl = 'http://127.0.0.1:9/mcp'\ntoken_env = 'NOTES_TOKEN'\n",
    );
    let hint = "hint: set NOTES_TOKEN, or name another variable in providers.mcp.notes.token_env.";
    sandbox
        .fail("mcp read notes note:one", 1)
        .says(["`NOTES_TOKEN`", hint]);
}

#[test]
fn server_of_the_workspace_starts_only_where_the_person_agrees() {
    let sandbox = with_program();
    let command = "sh -c 'touch started; exec python3 notes.py'";
    sandbox.write(
        ".jp/config.toml",
        format!("[providers.mcp.notes]\ncommand = {}\n", json!(command)),
    );
    let is_started = || fs::remove_file(sandbox.path("started")).is_ok();
    let read = ["mcp", "read", "notes", "note:one"];

    sandbox.fail(&read, 1).says([
        "there is no terminal to ask you on",
        "hint: `--yes` starts it.",
    ]);
    let listed = sandbox.fail("mcp ls", 1);
    assert_contains(&listed.stdout, "not started: the workspace configures it");
    assert!(!is_started());
    sandbox.run("--yes mcp read notes note:one");
    assert!(is_started());

    let mut terminal = sandbox.terminal(&read);
    terminal.answer("Start it? [y/N]", "n\n");
    assert_eq!(terminal.wait(), 1);
    assert!(!is_started());
    let mut terminal = sandbox.terminal(&read);
    terminal.answer("Start it? [y/N]", "y\n");
    terminal.finish("The first note.");
    sandbox.run(&read);
    assert!(is_started(), "it is asked once");
}

#[test]
fn server_of_the_user_that_runs_a_file_of_the_workspace_starts_only_where_they_agree() {
    let sandbox = with_program();
    let settings = "[providers.mcp.notes]\ncommand = 'python3 notes.py'\n";
    sandbox.configure(settings);
    let read = ["mcp", "read", "notes", "note:one"];
    let why = "needs your approval before it starts: it runs a file of the workspace";
    sandbox.fail(&read, 1).says([
        why,
        "there is no terminal to ask you on",
        "hint: `--yes` starts it.",
    ]);
    assert_contains(
        &sandbox.fail("mcp ls", 1).stdout,
        "not started: it runs a file of the workspace",
    );

    let mut terminal = sandbox.terminal(&read);
    terminal.expect("Your MCP server `notes` runs a file of the workspace:");
    terminal.expect("notes.py is a file of the workspace; you approve its current content");
    terminal.answer("Start it? [y/N]", "y\n");
    assert_eq!(terminal.wait(), 0);
    sandbox.run(&read);
    sandbox.write("notes.py", format!("{NOTES}# changed\n"));
    sandbox.fail(&read, 1).says([why]);

    sandbox.configure("");
    sandbox.run(
        &[
            &["-c", "providers.mcp.notes.command=python3 notes.py"],
            &read[..],
        ]
        .concat(),
    );
}

#[test]
fn server_of_the_user_that_their_own_path_finds_in_the_workspace_starts_unasked() {
    let sandbox = with_program();
    let notes = sandbox.path("notes.py");
    let script = format!("#!/bin/sh\nexec python3 {}\n", notes.display());
    let program = sandbox.write_program(".venv/bin/notes-server", script);
    sandbox.configure("[providers.mcp.notes]\ncommand = 'notes-server'\n");
    let run_with = |directory: &Path| {
        let path = format!("{}:{}", directory.display(), env::var("PATH").unwrap());
        let mut command = sandbox.command("mcp read notes note:one");
        command.env("PATH", path);
        testing::run(command)
    };
    run_with(program.parent().unwrap()).succeeded();
    // Every workspace may have a directory of that name.
    run_with(Path::new(".venv/bin"))
        .failed(1)
        .says(["needs your approval before it starts: it runs a file of the workspace"]);
}

#[test]
fn server_of_the_user_starts_unasked_if_path_finds_their_program_before_a_file_of_the_workspace() {
    let sandbox = with_program();
    let notes = sandbox.path("notes.py");
    let script = format!("#!/bin/sh\nexec python3 {}\n", notes.display());
    for path in ["~/bin/notes-server", "notes-server"] {
        sandbox.write_program(path, &script);
    }
    sandbox.configure("[providers.mcp.notes]\ncommand = 'notes-server'\n");
    let run_with = |first: &Path, second: &Path| {
        let path = format!(
            "{}:{}:{}",
            first.display(),
            second.display(),
            env::var("PATH").unwrap()
        );
        let mut command = sandbox.command("mcp read notes note:one");
        command.env("PATH", path);
        testing::run(command)
    };
    let (own, current) = (sandbox.path("~/bin"), Path::new("."));
    run_with(&own, current).succeeded();
    run_with(current, &own)
        .failed(1)
        .says(["needs your approval before it starts: it runs a file of the workspace"]);
}

#[test]
fn all_that_the_workspace_adds_is_shown_before_it_is_agreed_to() {
    let sandbox = with_program();
    sandbox.configure(
        "[providers.mcp.plain]\ncommand = 'python3 notes.py'\nenvironment.MINE = 'hush'\n\
         [providers.mcp.far]\nurl = 'http://jean:hush@127.0.0.1:9/mcp'\nheaders.X-Key = 'hush'\n",
    );
    sandbox.write(
        ".jp/config.toml",
        "[providers.mcp.plain]\nenvironment.PYTHONPATH = 'evil'\nvariables = ['A_TOKEN']\n\
         [providers.mcp.far]\nheaders.X-Sent = \"first\\u001b[2J\\nlast\"\ntoken_env = 'B_TOKEN'\n",
    );
    let shown = |server: &str| {
        let mut terminal = sandbox.terminal(&["--color", "never", "mcp", "read", server, "x"]);
        terminal.answer("Start it? [y/N]", "n\n");
        assert_eq!(terminal.wait(), 1);
        let output = terminal.output().replace("\r\n", "\n");
        output[..output.find("Start it?").unwrap()].to_owned()
    };
    insta::assert_snapshot!(shown("plain"), @r#"
    The workspace configures the MCP server `plain`:
      │ command = "python3 notes.py"
      │ environment.MINE, as you set it
      │ environment.PYTHONPATH = "evil" (.jp/config.toml)
      │ variables = ["A_TOKEN"] (.jp/config.toml)
      │ notes.py is a file of the workspace; you approve its current content
    "#);
    insta::assert_snapshot!(shown("far"), @r#"
    The workspace configures the MCP server `far`:
      │ url = "http://…@127.0.0.1:9/mcp"
      │ headers.X-Key, as you set it
      │ headers.X-Sent = "first\u001b[2J\nlast" (.jp/config.toml)
      │ token_env = "B_TOKEN" (.jp/config.toml)
    "#);
}

#[test]
fn secrets_stay_here_unless_they_are_named() {
    let sandbox = configured(
        "plain.command = 'python3 notes.py'\nnamed = { command = 'python3 notes.py', variables = ['NOTES_TOKEN'] }\n",
    );
    let passed = |server: &str| {
        let mut command = sandbox.command(&["mcp", "read", server, "note:environment"]);
        command
            .env("NOTES_TOKEN", "t")
            .env("OTHER_API_KEY", "k")
            .env("PLAIN", "p");
        command
            .env("GITHUB_PAT", "g")
            .env("NPM_CONFIG__AUTH", "a")
            .env("AWS_SESSION", "s");
        testing::run(command).succeeded().stdout
    };
    assert_eq!(
        (&*passed("plain"), &*passed("named")),
        ("PLAIN", "NOTES_TOKEN PLAIN")
    );
}

#[test]
fn interrupt_ends_waiting_for_a_silent_server() {
    let sandbox = with(&[("notes", "python3 notes.py silent")]);
    let asked = sandbox.path("asked");
    // A pipe, so that the test knows when the server is waited for.
    assert!(
        Command::new("mkfifo")
            .arg(&asked)
            .status()
            .unwrap()
            .success()
    );
    let mut command = sandbox.command("mcp read notes note:one");
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    fs::read(&asked).unwrap();
    let before = std::time::Instant::now();
    interrupt(&child);
    let run = finish(child);
    assert_eq!((run.code, &*run.stderr), (130, "error: interrupted\n"));
    // Far less than the server has for its answer.
    assert!(before.elapsed().as_secs() < 30, "{:?}", before.elapsed());
}

#[test]
fn login_asks_for_the_rights_that_the_server_misses() {
    let sandbox = with_program();
    let endpoint = Endpoint::new(&sandbox, "403");
    sandbox.configure(format!(
        "[providers.mcp.notes]\nurl = \"{}\"\n",
        endpoint.url
    ));
    let mut command = sandbox.command("mcp login notes --client-id jp");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let page = told.find(|line| line.starts_with("http://")).unwrap();
    assert!(
        page.contains("/agree?") && page.contains("scope=notes%3Awrite"),
        "{page}"
    );
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn login_is_refused_where_a_variable_is_to_hold_the_token() {
    let sandbox =
        configured("notes = { url = 'http://127.0.0.1:9/mcp', token_env = 'NOTES_TOKEN' }\n");
    let hints = [
        "hint: set NOTES_TOKEN, or",
        "hint: to log in instead, remove providers.mcp.notes.token_env.",
    ];
    sandbox.fail("mcp login notes", 1).says(hints);
}

#[test]
fn token_that_others_can_read_on_its_way_is_warned_of() {
    let sandbox = with_program();
    let endpoint = Endpoint::new(&sandbox, "good");
    // An address that leads here and does not say so.
    let far = endpoint.url.replace("127.0.0.1", "0.0.0.0");
    let told = |url: &str| {
        let settings =
            format!("[providers.mcp.notes]\nurl = \"{url}\"\ntoken_env = 'NOTES_TOKEN'\n");
        sandbox.configure(settings);
        let mut command = sandbox.command("mcp read notes note:one");
        command.env("NOTES_TOKEN", "hush");
        testing::run(command).succeeded().stderr
    };
    assert_eq!(told(&endpoint.url), "");
    insta::assert_snapshot!(told(&far), @"
    warning: the MCP server `notes` receives the token in NOTES_TOKEN over plain HTTP, which others can read
    hint: set providers.mcp.notes.url to an https URL.
    ");
}

#[test]
fn closed_pipe_is_quiet() {
    let sandbox = good();
    for arguments in [&["mcp", "ls"][..], &["mcp", "read", "notes", "note:one"]] {
        let mut child = start(sandbox.command(arguments));
        drop(child.stdout.take());
        let run = finish(child);
        assert_eq!((run.code, &*run.stderr), (0, ""));
    }
}

#[test]
fn watched_resource_is_written_again_when_it_changes() {
    let sandbox = good();
    sandbox.write("note.txt", "one\n");
    let mut child = start(sandbox.command("mcp read notes note:file --watch"));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut stdout), "one\n");
    sandbox.write("next", "two\n");
    fs::rename(sandbox.path("next"), sandbox.path("note.txt")).unwrap();
    assert_eq!(line(&mut stdout), "two\n");
    interrupt(&child);
    let run = finish(child);
    assert_eq!(run.code, 130);
    assert_eq!(run.stderr, "note:file changed.\nerror: interrupted\n");
}

#[test]
fn watching_ends_with_either_side() {
    let sandbox = good();
    sandbox.write("note.txt", "one\n");
    let arguments = ["mcp", "read", "notes", "note:file", "--watch"];
    let mut child = start(sandbox.command(&arguments));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut stdout), "one\n");
    fs::remove_file(sandbox.path("note.txt")).unwrap();
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_ends(
        &told,
        "error: the MCP server `notes` has ended\nhint: run `jp mcp read` again to restart it.\n",
    );

    sandbox.write("note.txt", "one\n");
    let mut child = start(sandbox.command(&arguments));
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let still = with(&[("notes", "python3 notes.py still")]).jp(&arguments);
    still.failed(1).says([
        "it has no subscriptions",
        "hint: it does not report changes; leave out `--watch` to read it once.",
    ]);
    let words = [
        "--watch writes the content repeatedly",
        "hint: remove one of the two options.",
    ];
    sandbox
        .fail(&[&arguments[..], &["-F", "json"]].concat(), 2)
        .says(words);
}

#[test]
fn person_sees_how_far_a_server_is() {
    let sandbox = with(&[("notes", "python3 notes.py slow")]);
    let mut terminal = sandbox.terminal("mcp read notes note:one -v");
    terminal.expect("notes: info (disk): a note is read");
    terminal.expect("digging …");
    sandbox.write("go", "");
    terminal.finish("The first note.");
}

#[test]
fn what_a_server_asks_is_declined() {
    let sandbox = with(&[("notes", "python3 notes.py asks")]);
    let run = sandbox.run("mcp read notes note:one");
    assert_eq!(run.stdout, "decline");
    assert_eq!(
        run.stderr,
        "warning: the MCP server `notes` asked a question that jp can't pass on to you: Who?\n"
    );
}
