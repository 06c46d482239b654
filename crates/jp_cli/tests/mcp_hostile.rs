//! MCP servers that break the rules, each in its own way: the query continues and reports the fault.

#![cfg(unix)]

use std::{
    fs,
    net::TcpListener,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::json;
use testing::{
    Run, Sandbox, Server, UNUSED_URL, assert_contains, assert_count, assert_ends, assert_lacks,
    assert_starts,
    hostile::{
        Listening, UNATTENDED, calling_once, calling_rounds, stdio, with_short_calls,
        with_short_start,
    },
    last_request, results,
};

/// The run of a query with a server in this mode, whose model calls `echo`.
struct Came {
    server: Server,
    sandbox: Sandbox,
    run: Run,
    config: String,
}

/// Longer than any machine takes for a command that does not hang.
const PATIENCE: Duration = Duration::from_secs(60);

impl Came {
    fn of(config: &str) -> Self {
        let (server, sandbox) = calling_once(
            &format!("{UNATTENDED}{config}"),
            &[("peer_echo", json!({"text": "hi"}))],
        );
        let start = Instant::now();
        let run = sandbox.jp("q --new x");
        assert!(
            start.elapsed() < PATIENCE,
            "{:?}: {config}",
            start.elapsed()
        );
        Self {
            server,
            sandbox,
            run,
            config: config.to_owned(),
        }
    }

    fn over_stdio(mode: &str) -> Self {
        Self::of(&stdio("peer", mode))
    }

    fn over_http(mode: &str) -> Self {
        Self::of(&Listening::start(mode).config("peer"))
    }

    /// Checks that the query continued without the server's tools, with the reason in a warning.
    #[track_caller]
    fn lost_its_tools(self, why: &str) -> Self {
        self.went_on();
        let stderr = &self.run.stderr;
        let warning = format!("warning: the MCP server `peer`: {why}");
        assert!(stderr.contains(&warning), "{warning} is not in {stderr}");
        assert!(
            stderr.contains("; jp continues without it") && !stderr.contains('\u{1b}'),
            "{stderr}"
        );
        assert_eq!(offered(&self.server), [""; 0]);
        self
    }

    /// Checks that the call failed, that the query continued, and that the user and the model received the reason.
    #[track_caller]
    fn failed_its_call(self, why: &str) -> Self {
        self.went_on();
        let stderr = &self.run.stderr;
        let said = format!("the call of `peer_echo` failed: the MCP server `peer`: {why}");
        assert!(
            stderr.contains(&format!("warning: {said}\n")),
            "{said} is not in {stderr}: {}",
            self.config
        );
        let result = results(&self.server).remove(0);
        assert!(
            result.contains(&said[4..]),
            "{said} is not in {result}: {}",
            self.config
        );
        self
    }

    /// Checks that the call came to something all the same.
    #[track_caller]
    fn answered(self) -> Self {
        self.went_on();
        let results = results(&self.server);
        assert!(
            results.len() == 1 && !results[0].contains("failed"),
            "{results:?}: {}",
            self.config
        );
        self
    }

    #[track_caller]
    fn went_on(&self) {
        let run = &self.run;
        assert_eq!(
            (run.code, &*run.stdout),
            (0, "Done.\n"),
            "{}: {}",
            self.config,
            run.stderr
        );
    }
}

/// Returns the names of the server's tools in the last request.
fn offered(server: &Server) -> Vec<String> {
    let tools = last_request(server)["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("peer_")).collect()
}

// -- each mode -----------------------------------------------------------------------------------------------------

/// How a server in some mode is configured.
enum Configured {
    Program,
    /// Runs the server as a program with a short startup timeout.
    ProgramShortStart,
    /// As a program whose calls are given up soon.
    ProgramShortCalls,
    Http,
    HttpShortStart,
}

/// The outcome of the query.
enum Outcome {
    LosesTools(&'static str),
    FailsCall(&'static str),
    Answers,
}

use Configured::{Http, HttpShortStart, Program, ProgramShortCalls, ProgramShortStart};
use Outcome::{Answers, FailsCall, LosesTools};

/// Every mode that there is.
#[rustfmt::skip]
const MODES: &[(&str, Configured, Outcome)] = &[
    ("good", Program, Answers),
    ("modern", Program, Answers),
    ("rubbish", Program, Answers),
    ("only-rubbish", Program, LosesTools("it printed more than 1000 lines to stdout that are not messages, such as \"Lorem ipsum, says the server, and nothing else.\"")),
    ("dies", Program, FailsCall("it ended with exit status: 3")),
    ("dies-at-start", Program, LosesTools("it ended with exit status: 1")),
    ("silent", ProgramShortStart, LosesTools("it was not ready within 1 s")),
    ("silent-call", ProgramShortCalls, FailsCall("it did not answer `tools/call` within 1 s")),
    ("wrong-id", ProgramShortCalls, FailsCall("it did not answer `tools/call` within 1 s")),
    ("many-tools", Program, LosesTools("it sent more than 1000 tools")),
    ("many-pages", Program, LosesTools("it sent more than 1000 tools")),
    ("cursor-loop", Program, LosesTools("it returned the cursor \"again\" of `tools/list` twice")),
    ("huge-blob", Program, FailsCall("it sent a message of more than 64000000 bytes")),
    ("huge-line", Program, FailsCall("it sent a message of more than 64000000 bytes")),
    ("many-blocks", Program, FailsCall("it sent more than 1000 blocks in one result")),
    ("bad-base64", Program, Answers),
    ("self-link", Program, Answers),
    ("link-loop", Program, Answers),
    ("path-escape", Program, Answers),
    ("escapes", Program, Answers),
    ("ref-network", Program, Answers),
    ("bad-schema", Program, Answers),
    ("asks-forever", Program, FailsCall("it asked back 20 times without answering")),
    ("rounds-forever", Program, FailsCall("it asked back 20 times without answering")),
    ("http-401", Http, LosesTools("it answered with the status 401 Unauthorized")),
    ("http-403", Http, LosesTools("it answered with the status 403 Forbidden")),
    ("http-404", Http, LosesTools("it answered with the status 404 Not Found")),
    ("http-500", Http, LosesTools("it answered with the status 500 Internal Server Error")),
    ("http-redirect", Http, LosesTools("it answered with the status 302 Found, a redirect to http://127.0.0.1:")),
    ("http-html", Http, LosesTools("it answered with \"text/html\", which is neither JSON nor a stream of events")),
    ("http-half", Http, LosesTools("it can't be reached: ")),
    ("http-hang", HttpShortStart, LosesTools("it was not ready within 1 s")),
    ("http-session-lost", Http, Answers),
];

/// Tries the modes of some outcome.
fn try_modes(is_meant: impl Fn(&Outcome) -> bool) {
    for (mode, configured, outcome) in MODES.iter().filter(|(.., outcome)| is_meant(outcome)) {
        let listening = matches!(configured, Http | HttpShortStart).then(|| Listening::start(mode));
        let config = listening
            .as_ref()
            .map_or_else(|| stdio("peer", mode), |it| it.config("peer"));
        let came = Came::of(&match configured {
            Program | Http => config,
            ProgramShortStart | HttpShortStart => with_short_start(&config),
            ProgramShortCalls => with_short_calls(&config),
        });
        match outcome {
            LosesTools(why) => came.lost_its_tools(why),
            FailsCall(why) => came.failed_its_call(why),
            Answers => came.answered(),
        };
    }
}

#[test]
fn server_without_a_list_costs_only_its_tools() {
    try_modes(|outcome| matches!(outcome, LosesTools(_)));
}

#[test]
fn call_that_comes_to_nothing_is_the_models_to_know() {
    try_modes(|outcome| matches!(outcome, FailsCall(_)));
}

#[test]
fn what_else_is_wrong_costs_no_call() {
    try_modes(|outcome| matches!(outcome, Answers));
}

#[test]
fn every_mode_is_tried() {
    let list = std::process::Command::new(testing::hostile::program())
        .arg("--list")
        .output()
        .unwrap()
        .stdout;
    let list = String::from_utf8(list).unwrap();
    let listed: Vec<_> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let tried: Vec<_> = MODES.iter().map(|(mode, ..)| *mode).collect();
    assert_eq!(tried, listed);
}

// -- over stdio ----------------------------------------------------------------------------------------------------

#[test]
fn rubbish_between_messages_is_reported_only_with_v() {
    let Came { server, run, .. } = Came::over_stdio("rubbish");
    assert_eq!(results(&server), ["hi"]);
    assert_lacks(&run.stderr, "no message");
    let (_server, sandbox) = calling_once(
        &stdio("peer", "rubbish"),
        &[("peer_echo", json!({"text": "hi"}))],
    );
    let run = sandbox.run("q --new --yes -v x");
    assert_contains(
        &run.stderr,
        "peer: warning: it printed a line to stdout that is not a message: ",
    );
}

#[test]
fn output_of_a_server_that_dies_at_its_start_is_shown_shortened() {
    let Came { run, .. } =
        Came::over_stdio("dies-at-start").lost_its_tools("it ended with exit status: 1");
    let first = "; its last lines on stderr:\n  │ Error: the database notes.db can't be opened\n";
    assert_contains(&run.stderr, first);
    assert_contains(&run.stderr, "  │     at frame_29 (server.js:29:7)\n");
    assert_count(&run.stderr, "at frame", 19);
}

#[test]
fn command_that_is_not_there_is_named() {
    Came::of("providers.mcp.peer.command = 'no-such-server --stdio'")
        .lost_its_tools("\"no-such-server\" can't be started: there is no such program in PATH");
    Came::of("providers.mcp.peer.command = './no/such/server'")
        .lost_its_tools("\"./no/such/server\" can't be started: there is no such program");
}

#[test]
fn query_fails_without_a_server_that_is_not_optional() {
    let came = Came::of(&format!(
        "{}optional = false\n",
        stdio("peer", "dies-at-start")
    ));
    let run = came.run.failed(1).says(["error: the MCP server `peer`: it ended with exit status: 1; its last lines on stderr:\n  │ ",
            "hint: `-c providers.mcp.peer.optional=true` continues without it.\n"]);
    assert_eq!((&*run.stdout, came.server.received().len()), ("", 0));
    assert!(!came.sandbox.path(".jp/conversations").exists());
}

#[test]
fn dead_server_costs_no_other_ones_tools() {
    let config = format!(
        "{UNATTENDED}{}{}",
        stdio("dead", "dies-at-start"),
        stdio("peer", "good")
    );
    let (server, sandbox) = calling_once(&config, &[("peer_echo", json!({"text": "hi"}))]);
    let run = sandbox.run("q --new x");
    assert_contains(
        &run.stderr,
        "the MCP server `dead`: it ended with exit status: 1",
    );
    assert_eq!(results(&server), ["hi"]);
}

#[test]
fn server_that_dies_in_a_call_is_told_of_with_its_last_words() {
    let Came { server, run, .. } =
        Came::over_stdio("dies").failed_its_call("it ended with exit status: 3");
    let said = "warning: `peer` on stderr: fatal: the disk is full\n";
    assert_contains(&run.stderr, said);
    let result = results(&server).remove(0);
    assert_contains(
        &result,
        "The server is unavailable until the user's next request",
    );
    assert_ends(&result, "the disk is full\nthe server gives up");
}

#[test]
fn call_that_is_never_answered_is_given_up_over_http_too() {
    let listening = Listening::start("silent-call");
    let came = Came::of(&with_short_calls(&listening.config("peer")))
        .failed_its_call("it did not answer `tools/call` within 1 s");
    assert!(results(&came.server)[0].contains("The call may have had effects."));
}

#[test]
fn answer_that_is_too_large_is_not_taken_over_http_either() {
    let why = "it sent a message of more than 64000000 bytes";
    let came = Came::over_http("huge-blob").failed_its_call(why);
    assert!(results(&came.server)[0].contains("Ask for less"));
}

/// Linux alone says how much memory a process had at most.
#[cfg(target_os = "linux")]
#[test]
fn large_answers_cost_no_more_memory_than_is_taken_of_them() {
    for mode in ["huge-blob", "huge-line"] {
        let config = format!("{UNATTENDED}{}", stdio("peer", mode));
        let calls: testing::hostile::Calls<'_> = &[("peer_echo", json!({"text": "hi"}))];
        let (_server, sandbox) = calling_rounds(&config, &[calls]);
        // A shell that becomes jp leaves its peak behind when it is waited for; `time` is not everywhere.
        let mut command = sandbox.command("q --new x");
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            peak = peak.max(peak_of(child.id()).unwrap_or_default());
            std::thread::yield_now();
        }
        assert!(peak > 1_000, "nothing was measured");
        assert!(peak < 300_000, "{mode}: {peak} kB");
    }
}

#[cfg(target_os = "linux")]
fn peak_of(process: u32) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[test]
fn only_blocks_that_are_no_base64_are_skipped() {
    let Came {
        server,
        sandbox,
        run,
        ..
    } = Came::over_stdio("bad-base64");
    let skipped = |block: usize| format!("content block {block} was skipped: ");
    for block in [2, 3] {
        let warning = format!(
            "warning: `peer_echo` of the MCP server `peer`: {}",
            skipped(block)
        );
        assert_contains(&run.stderr, &warning);
        assert!(results(&server)[0].contains(&skipped(block)));
    }
    assert_starts(&results(&server)[0], "Before.\nAfter.\n");
    assert!(
        !sandbox
            .events()
            .iter()
            .any(|event| event.to_string().contains("not base64"))
    );
}

#[test]
fn links_are_followed_once_whatever_they_lead_to() {
    let Came { server, .. } = Came::over_stdio("self-link");
    assert_eq!(
        results(&server),
        [
            "```json (note:self)\n{\"type\":\"resource_link\",\"uri\":\"note:self\",\"name\":\"self\"}\n```\n"
        ]
    );
    let Came { server, run, .. } = Came::over_stdio("link-loop");
    let warning = "999 of its links were skipped because they repeat earlier ones";
    assert_eq!(
        results(&server),
        [format!(
            "```(note:one)\nThe first note.\n```\nWarnings about this result:\n- {warning}\n"
        )]
    );
    assert_contains(&run.stderr, warning);
}

#[test]
fn paths_that_escape_are_only_names() {
    let before = |sandbox: &Sandbox| {
        sandbox
            .files("~/")
            .into_iter()
            .filter(|path| !is_jps(path))
            .count()
    };
    let Came {
        server,
        sandbox,
        run,
        ..
    } = Came::over_stdio("path-escape");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let result = results(&server).remove(0);
    // Its content is the server's, never that of a file with that name.
    assert_contains(
        &result,
        "```(file:///etc/passwd, no newline at the end)\nThe server's own words.\n```",
    );
    assert_lacks(&result, "root:");
    assert_lacks(&run.stderr, "root:");
    assert_eq!(before(&sandbox), 3, "{:?}", sandbox.files("~/"));
    assert!(!sandbox.directory.path().join("secret").exists());
}

/// Returns whether a file is where jp keeps its own.
fn is_jps(path: &std::path::Path) -> bool {
    let path = path.to_string_lossy();
    ["/.jp/conversations", "/.jp/blobs", "/.local/", "/.cache/"]
        .iter()
        .any(|own| path.contains(own))
}

#[test]
fn schema_is_looked_for_nowhere_else() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let port = elsewhere.local_addr().unwrap().port();
    let config = stdio("peer", "ref-network");
    let Came { server, run, .. } =
        Came::of(&format!("{config}environment.HOSTILE_REF = '{port}'\n"));
    let warning = format!(
        "warning: the MCP server `peer`: jp can't fully check the arguments of these tools: \"refer\" (it refers to http://127.0.0.1:{port}/schema.json, but jp reads no document other than the schema)\n"
    );
    assert_contains(&run.stderr, &warning);
    assert_eq!(offered(&server), ["peer_echo", "peer_peek", "peer_refer"]);
    let request = String::from_utf8(server.received().last().unwrap().body.clone()).unwrap();
    assert_lacks(&request, "schema.json");
    assert!(elsewhere.accept().is_err(), "something connected");
}

#[test]
fn only_tools_that_cant_be_offered_are_left_out() {
    let Came { server, run, .. } = Came::over_stdio("bad-schema");
    for tool in ["string_schema", "true_schema", "null_schema"] {
        let warning = format!(
            "warning: the MCP server `peer`: one of its tools, \"{tool}\", was skipped: its `inputSchema` is not an object\n"
        );
        assert_contains(&run.stderr, &warning);
    }
    assert_contains(&run.stderr, "4 more of its tools are skipped\n");
    let names = offered(&server);
    let usual = |name: &String| {
        name.len() <= 64
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    assert!(names.iter().all(usual), "{names:?}");
    assert_eq!(names.len(), 6, "{names:?}");
    assert_eq!(results(&server), ["hi"]);
}

#[test]
fn server_that_asks_for_ever_is_given_up() {
    for mode in ["asks-forever", "rounds-forever"] {
        let came =
            Came::over_stdio(mode).failed_its_call("it asked back 20 times without answering");
        assert_count(&came.run.stderr, "there is no terminal to ask you on", 1);
    }
    // The user can end it at the prompt.
    let (_server, sandbox) = calling_once(
        &format!("{UNATTENDED}{}", stdio("peer", "asks-forever")),
        &[("peer_echo", json!({"text": "hi"}))],
    );
    let mut terminal = sandbox.terminal("q --new x");
    terminal.answer("Name", "a\n");
    terminal.answer("agree", "n\n");
    terminal.answer("Name", "\x03");
    assert_eq!(terminal.wait(), 130);
}

/// Text that must not reach a terminal unchanged.
const STEERING: [char; 6] = [
    '\u{7}', '\u{8}', '\u{9b}', '\u{202e}', '\u{202c}', '\u{200b}',
];

#[track_caller]
fn steers_nothing(shown: &str) {
    assert!(!shown.contains(STEERING), "{shown:?}");
    for forbidden in ["\u{1b}]", "\u{1b}[31mred", "\nSYSTEM", "\rSYSTEM"] {
        assert!(!shown.contains(forbidden), "{forbidden:?} is in {shown}");
    }
}

#[test]
fn nothing_that_a_server_writes_steers_a_terminal_or_passes_for_jps_words() {
    let calls: [testing::hostile::Calls<'_>; 4] = [
        &[("peer_ask", json!({}))],
        &[("peer_slow", json!({}))],
        &[("peer_fail", json!({}))],
        &[
            ("peer_echo", json!({"text": "hi"})),
            ("peer_titled", json!({})),
        ],
    ];
    let (_server, sandbox) = calling_rounds(&stdio("peer", "escapes"), &calls);
    let mut terminal = sandbox.terminal("q --new -v x");
    terminal.answer("hy not:", "y\n");
    terminal.expect("│ SYSTEM: a second line");
    terminal.answer("Name", "Ann\n");
    terminal.answer("agree", "\n");
    (0..4).for_each(|_| terminal.answer("hy not:", "y\n"));
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
    steers_nothing(&terminal.output());

    let config = format!("{UNATTENDED}{}", stdio("peer", "escapes"));
    let (_server, sandbox) = calling_rounds(&config, &calls);
    let run = sandbox.run("q --new -v x");
    assert_contains(&run.stderr, "peer: info (hostile): \\u{1b}[31mred");
    steers_nothing(&run.stderr);
}

#[test]
fn last_words_on_stderr_steer_nothing_either() {
    let words = "printf '\\033]0;title\\007 \\342\\200\\256x\\rhint: run this\\n' >&2; exit 1";
    let config = format!(
        "providers.mcp.peer.command = {}\n",
        json!(["sh", "-c", words])
    );
    for optional in ["", "providers.mcp.peer.optional = false\n"] {
        let came = Came::of(&format!("{config}{optional}"));
        let shown = "\n  │ \\u{1b}]0;title\\u{7} \\u{202e}x\\rhint: run this\n";
        assert_contains(&came.run.stderr, shown);
    }
}

// -- over HTTP -----------------------------------------------------------------------------------------------------

#[test]
fn unreachable_endpoint_costs_only_its_tools() {
    Came::of(&format!("providers.mcp.peer.url = '{UNUSED_URL}/mcp'\n"))
        .lost_its_tools("it can't be reached: ");
}

#[test]
fn no_token_follows_a_redirect() {
    let listening = Listening::start("http-redirect");
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.configure(format!(
        "{}token_env = 'THE_TOKEN'\n",
        listening.config("peer")
    ));
    let mut command = sandbox.command("q --new x");
    command.env("THE_TOKEN", "not-for-everyone");
    let run = testing::run(command).succeeded();
    assert_contains(
        &run.stderr,
        "which is not followed; jp continues without it",
    );
    assert_lacks(&run.stderr, "not-for-everyone");
    assert_eq!(
        fs::read_to_string(listening.directory.path().join("port.redirected")).unwrap(),
        ""
    );
}

#[test]
fn session_that_was_lost_is_begun_anew() {
    let listening = Listening::start("http-session-lost");
    let echo = |text: &str| vec![("peer_echo", json!({"text": text}))];
    let rounds = [echo("one"), echo("two"), echo("three")];
    let rounds: Vec<_> = rounds.iter().map(|calls| &calls[..]).collect();
    let (server, sandbox) = calling_rounds(
        &format!("{UNATTENDED}{}", listening.config("peer")),
        &rounds,
    );
    let run = sandbox.run("q --new x");
    assert_eq!(results(&server), ["one", "two", "three"], "{}", run.stderr);
}
