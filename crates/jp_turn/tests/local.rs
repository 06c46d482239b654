//! Local tools on real programs, through a whole turn: a scripted model calls them, a host answers.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    error::Error,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};

use jp_conversation::{
    EventKind, ToolCallResponse,
    view::{Shown, inline_text, shown_text},
};
use jp_llm::{BaseUrl, Body, Client, Endpoint};
use jp_resource::Checksum;
use jp_tool::StoredBlock;
use jp_turn::{
    Builtin, Command, Decision, Files, Host, Outcome, Permission, Reply, Source, Surroundings,
    Tool, Toolbox, Turn, TurnEvent, run,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use testing::{Reply as Answer, Server, assert_contains, assert_ends, block_on, calling_as};

/// Long enough for a loaded machine, and no test waits for it unless it fails.
const LONG: Duration = Duration::from_secs(30);

struct World {
    _directory: TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        Self {
            _directory: directory,
            root,
        }
    }

    /// Writes a program into the workspace.
    fn program(&self, path: &str, text: &str) {
        let file = self.root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn toolbox(&self, tools: Vec<Tool>) -> Toolbox {
        let surroundings = Surroundings {
            root: self.root.clone(),
            conversation: Some("c1".to_owned()),
            ..Surroundings::default()
        };
        Toolbox::new(tools, surroundings, Files::open(&self.root, &[]).unwrap())
    }

    /// Calls the tool, once.
    fn call(&self, tool: Tool, arguments: Value) -> Course {
        let name = tool.name.clone();
        course(
            self.toolbox(vec![tool]),
            &[(&name, arguments)],
            Vec::new(),
            || false,
        )
    }

    /// Calls a shell script, once.
    fn shell(&self, script: &str) -> Course {
        self.call(tool(&["sh", "-c", script]), json!({}))
    }
}

/// Makes a tool of the given command.
fn tool(words: &[&str]) -> Tool {
    let words = words.iter().map(|&word| word.to_owned()).collect();
    let parameters = Map::from_iter([("type".to_owned(), "object".into())]);
    let permission = Permission::Unattended;
    Tool {
        permission,
        ..Tool::new("t", parameters, Source::Local(Command { words }))
    }
}

/// What happened.
#[derive(Default)]
struct Course {
    results: Vec<ToolCallResponse>,
    notices: Vec<String>,
    /// What the user was shown before they allowed a call.
    previews: Vec<(String, Option<String>)>,
    /// What the user was asked, with the number of blocks before it.
    asked: Vec<(String, usize)>,
    replies: Vec<Value>,
}

impl Course {
    fn result(&self) -> &ToolCallResponse {
        self.results.last().unwrap()
    }

    fn texts(&self) -> Vec<&str> {
        self.result()
            .content
            .iter()
            .filter_map(inline_text)
            .collect()
    }

    /// The text of a result that is an error.
    fn error(&self) -> String {
        assert!(self.result().is_error, "{:?}", self.texts());
        self.texts().join("\n")
    }

    /// The text of a result that is none.
    fn text(&self) -> String {
        assert!(!self.result().is_error, "{:?}", self.texts());
        self.texts().join("\n")
    }
}

impl Host for Course {
    fn take(&mut self, event: TurnEvent<'_>) {
        match event {
            TurnEvent::Record(kinds) => {
                self.results
                    .extend(kinds.into_iter().filter_map(|kind| match kind {
                        EventKind::ToolCallResponse(response) => Some(response),
                        _ => None,
                    }));
            }
            TurnEvent::Notice(notice) => self.notices.push(notice.to_owned()),
            TurnEvent::Permit(request, reply) => {
                self.previews
                    .push((request.preview.title, request.preview.detail));
                reply.send(Decision::Allow).unwrap();
            }
            TurnEvent::Ask(question, reply) => {
                self.asked
                    .push((question.input.text, question.context.len()));
                reply.send(Reply::Once(self.replies.remove(0))).unwrap();
            }
            _ => {}
        }
    }

    fn body(&mut self, _: &[EventKind]) -> Result<Body, Box<dyn Error + Send + Sync>> {
        let (body, ()) = Body::new(|_| Ok(())).unwrap();
        Ok(body)
    }

    fn blob(
        &mut self,
        checksum: &Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        let texts = self
            .results
            .iter()
            .flat_map(|result| &result.content)
            .filter_map(inline_text);
        let mut bytes = texts.map(str::as_bytes);
        Ok(bytes
            .find(|bytes| Checksum::compute(bytes) == *checksum)
            .map(<[u8]>::to_vec))
    }
}

/// Runs a turn in which the model makes one call after the other; `is_cancelled` ends it.
fn course(
    toolbox: Toolbox,
    calls: &[(&str, Value)],
    replies: Vec<Value>,
    is_cancelled: impl Fn() -> bool,
) -> Course {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        calling_as("", &[(format!("c{index}"), name, arguments)])
    };
    let mut answers: Vec<_> = calls.iter().enumerate().map(call).collect();
    answers.push(Answer::words(&["Done."]));
    let server = Server::new(answers);
    let endpoint = Endpoint::new("llamacpp", BaseUrl::parse(server.url()).unwrap(), "m");
    let client = Client::new(endpoint).unwrap();
    let toolbox = Arc::new(toolbox);
    let turn = Turn {
        client: &client,
        toolbox: &toolbox,
        model: "llamacpp/m",
        check: None,
        max_rounds: Turn::MAX_ROUNDS,
    };
    let mut course = Course {
        replies,
        ..Course::default()
    };
    let cancel = std::future::poll_fn(|context| match is_cancelled() {
        true => Poll::Ready(()),
        false => {
            wake_soon(context.waker().clone());
            Poll::Pending
        }
    });
    match block_on(run(turn, cancel, &mut course)) {
        Outcome::Done { .. } | Outcome::Interrupted => course,
        outcome => panic!("{outcome:?}"),
    }
}

fn wake_soon(waker: Waker) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(10));
        waker.wake();
    });
}

#[test]
fn shell_script_that_prints_text_is_a_tool() {
    let world = World::new();
    world.program(
        "scripts/hello",
        "#!/bin/sh\necho \"hello from $(basename \"$PWD\")\"\necho progress >&2\n",
    );
    let course = world.call(tool(&["scripts/hello"]), json!({}));
    assert_eq!(course.text(), "hello from project\n");
    assert_eq!(course.notices, Vec::<String>::new());
}

#[test]
fn programs_that_know_nothing_of_jp_are_tools() {
    let world = World::new();
    let manifest =
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(world.root.join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(world.root.join("src")).unwrap();
    fs::write(world.root.join("src/lib.rs"), "fn unused() {}\n").unwrap();
    let check = || {
        tool(&[
            "cargo",
            "check",
            "--offline",
            "--target-dir",
            "{{context.root}}/target",
        ])
    };
    let warned = world.call(check(), json!({}));
    assert_contains(warned.text(), "function `unused` is never used");
    fs::write(world.root.join("src/lib.rs"), "fn broken() -> u8 {}\n").unwrap();
    let failed = world.call(check(), json!({}));
    assert_contains(failed.error(), "mismatched types");
    assert!(failed.error().ends_with("The tool exited with status 101."));

    // Debian calls it otherwise.
    let is_there = |name: &&str| {
        std::process::Command::new(name)
            .arg("--version")
            .output()
            .is_ok()
    };
    let Some(finder) = ["fd", "fdfind"].into_iter().find(is_there) else {
        println!("skipped in part: there is no fd");
        return;
    };
    let found = world.call(
        tool(&[finder, "--extension", "{{tool.arguments.extension}}"]),
        json!({"extension": "rs"}),
    );
    assert_eq!(found.text(), "src/lib.rs\n");
}

#[test]
fn tool_receives_its_document_twice() {
    let world = World::new();
    let words = [
        "sh",
        "-c",
        "read -r document; echo \"$document\"; printf '%s' \"$1\"",
        "sh",
        "{{context}}",
    ];
    let options = Map::from_iter([("depth".to_owned(), 3.into())]);
    let course = world.call(
        Tool {
            options,
            ..tool(&words)
        },
        json!({"name": "x"}),
    );
    let text = course.text();
    let (stdin, word) = text.split_once('\n').unwrap();
    assert_eq!(stdin, word);
    assert_eq!(
        serde_json::from_str::<Value>(stdin).unwrap(),
        json!({
            "tool": {"name": "t", "arguments": {"name": "x"}, "answers": {}, "options": {"depth": 3}},
            "context": {"root": world.root, "conversation_id": "c1"},
        })
    );
}

#[test]
fn arguments_reach_the_program_as_they_are() {
    let world = World::new();
    let hostile = "a  b'\"\n$(touch made) `touch made`; touch made #\\ {{context}} *";
    let words = [
        "printf",
        "<%s>",
        "--x={{tool.arguments.x}}",
        "{{tool.arguments.none}}",
        "{{tool.arguments.n}}",
    ];
    let course = world.call(tool(&words), json!({"x": hostile, "n": [1, "2"]}));
    assert_eq!(course.text(), format!("<--x={hostile}><><[1,\"2\"]>"));
    assert!(!world.root.join("made").exists());
}

#[test]
fn user_is_shown_the_command_line_that_runs() {
    let world = World::new();
    let words = ["echo", "it is", "{{tool.arguments.text}}"];
    let asked = || Tool {
        permission: Permission::Ask,
        ..tool(&words)
    };
    let course = world.call(asked(), json!({"text": "$HOME\n"}));
    assert_eq!(
        course.previews,
        [("echo 'it is' $'$HOME\\n'".to_owned(), None)]
    );
    let course = world.call(asked(), json!({"text": "x".repeat(1000)}));
    let (title, detail) = &course.previews[0];
    assert!(title.len() < 120 && title.contains('…'), "{title}");
    let long = "x".repeat(1000);
    assert_eq!(
        detail.as_ref().unwrap(),
        &format!("echo 'it is' {long}\n{{\n  \"text\": \"{long}\"\n}}")
    );
    let nul = world.call(asked(), json!({"text": "a\0b"}));
    assert_eq!(
        (nul.error(), nul.previews.len()),
        (
            "An argument of `t` contains a NUL, which a command line can't contain.".to_owned(),
            0
        )
    );
}

#[test]
fn python_script_can_ask_questions() {
    if process::Command::new("python3")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: there is no python3");
        return;
    }
    let world = World::new();
    fs::write(world.root.join("notes.md"), "# Notes\n").unwrap();
    world.program(
        "tools/rename.py",
        r##"#!/usr/bin/env python3
import json, sys
call = json.load(sys.stdin)["tool"]
answers = call["answers"]
note = {"type": "resource", "resource": {"uri": "file:notes.md#L1", "text": "# Notes\n"}}
name = {"id": "name", "text": "New name?", "schema": {"type": "string"}}
sure = {"id": "sure", "text": "Sure?", "schema": {"type": "boolean"}, "default": True}
if len(answers) < 2:
    blocks = [note, {"type": "question", "question": name},
              {"type": "text", "text": "It can't be undone."}, {"type": "question", "question": sure}]
else:
    blocks = [{"type": "text", "text": f"{call['arguments']['from']} -> {answers['name']}: {answers['sure']}"}, note]
print(json.dumps({"content": blocks}))
"##,
    );
    let toolbox = world.toolbox(vec![tool(&["tools/rename.py"])]);
    let call = [("t", json!({"from": "notes.md"}))];
    let course = course(toolbox, &call, vec!["todo.md".into(), true.into()], || {
        false
    });
    assert_eq!(
        course.asked,
        [("New name?".to_owned(), 1), ("Sure?".to_owned(), 1)]
    );
    assert_eq!(course.texts(), ["notes.md -> todo.md: True", "# Notes\n"]);
    let StoredBlock::Resource { resource, .. } = &course.result().content[1] else {
        panic!("a resource")
    };
    assert_eq!(
        resource.uri,
        format!("file://{}/notes.md#L1", world.root.display())
    );
    assert_eq!(
        (resource.name.as_deref(), resource.mime_type.as_deref()),
        (Some("notes.md"), Some("text/markdown"))
    );
}

#[test]
fn older_tool_runs_again_with_the_answer() {
    let world = World::new();
    let script = r#"case "$(cat)" in
        *'"answers":{}'*) echo '{"type":"needs_input","question":{"id":"q","text":"Go?","answer_type":"Boolean"}}';;
        *) echo '{"type":"success","content":"gone"}';;
    esac"#;
    let toolbox = world.toolbox(vec![tool(&["sh", "-c", script])]);
    let course = course(toolbox, &[("t", json!({}))], vec![true.into()], || false);
    assert_eq!(
        (course.text(), &course.asked[..]),
        ("gone".to_owned(), &[("Go?".to_owned(), 0)][..])
    );
}

#[test]
fn program_that_can_not_be_run_is_reported() {
    let world = World::new();
    fs::create_dir(world.root.join("directory")).unwrap();
    fs::write(world.root.join("text"), "x").unwrap();
    for (program, cause) in [
        (
            "no-such-program",
            "there is no program \"no-such-program\" in PATH",
        ),
        (
            "no such program",
            "there is no program \"no such program\" in PATH.",
        ),
        ("./scripts/none", "/scripts/none\""),
        ("./directory", "directory"),
        ("./text", "ermission denied"),
    ] {
        let course = world.call(tool(&[program]), json!({}));
        let (error, notice) = (course.error(), &course.notices[0]);
        assert!(
            error.starts_with("The tool `t` did not run: ") && error.contains(cause),
            "{error}"
        );
        assert_ends(
            &error,
            " The user configures it with `conversation.tools.t.command`.",
        );
        assert_contains(notice, "`conversation.tools.t.command`");
    }
    let long = world.call(
        tool(&["echo", "{{context}}"]),
        json!({"text": "x".repeat(3_000_000)}),
    );
    assert_contains(long.error(), "can read its arguments from stdin");
}

#[test]
fn output_of_a_program_that_hangs_is_kept() {
    let world = World::new();
    let timeout = Duration::from_millis(300);
    let script = "echo half; echo why >&2; while :; do sleep 0.05; done";
    let course = world.call(
        Tool {
            timeout,
            ..tool(&["sh", "-c", script])
        },
        json!({}),
    );
    let error = course.error();
    assert!(error.starts_with("half\n\n[stderr]\nwhy\n"), "{error}");
    assert!(error.ends_with(
        "The tool ran for more than 0.3 seconds and was ended with every process that it had started."
    ));
    assert_eq!(
        course.notices,
        [
            "`t` ran for more than 0.3 s and was ended; raise `conversation.tools.t.timeout_secs` to allow more"
        ]
    );
}

#[test]
fn daemon_that_holds_the_output_is_not_waited_for() {
    let world = World::new();
    let started = Instant::now();
    let course = world.shell("sleep 20 & echo started");
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(course.text().starts_with("started\n"), "{}", course.text());
    assert_eq!(
        course.notices,
        [
            "`t`: a process that it started still had its output open; jp did not wait for that process"
        ]
    );
}

#[test]
fn very_long_output_is_kept_in_part() {
    let world = World::new();
    let script = "echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last";
    let course = world.shell(script);
    let said = "it printed 200000012 bytes to its standard output, and jp keeps at most 64000000: 136000012 bytes in the middle are lost; make it print less, or write to a file";
    assert!(course.result().is_error);
    assert_eq!(course.notices, [format!("`t`: {said}")]);
    let texts = course.texts();
    assert!(texts[1].contains(said), "{}", texts[1]);
    let text = texts[0];
    assert!(text.starts_with("first\n") && text.ends_with("x\nlast\n"));
    assert!(text.contains("x\n[136000012 bytes of the output are missing here]\nx"));
    assert!(text.len() < 64_000_100);
    let block = &course.result().content[0];
    let shown = shown_text(block, inline_text(block).unwrap().into());
    assert!(shown.len() < Tool::MAX_OUTPUT_BYTES + 300 && Shown::read_mark(block).is_some());
}

#[test]
fn shortened_result_is_read_to_its_end() {
    let world = World::new();
    let lines: String = (0..3000).map(|n| format!("line {n:04}\n")).collect();
    fs::write(world.root.join("lines"), &lines).unwrap();
    let cat = Tool {
        name: "cat".to_owned(),
        max_output_bytes: 10_000,
        ..tool(&["cat", "lines"])
    };
    let uri = format!("jp://blob/{}", Checksum::compute(lines.as_bytes()));
    let read_more = Tool {
        max_output_bytes: 10_000,
        ..Builtin::ReadMore.tool()
    };
    let calls = [
        ("cat", json!({})),
        ("read_more", json!({"uri": uri, "offset": 5000})),
        ("read_more", json!({"uri": uri, "offset": 29_990})),
        (
            "read_more",
            json!({"uri": format!("jp://blob/{}", Checksum::compute(b"")), "offset": 0}),
        ),
        ("read_more", json!({"uri": "file:///etc/hostname"})),
    ];
    let course = course(
        world.toolbox(vec![cat, read_more]),
        &calls,
        Vec::new(),
        || false,
    );
    let shown = |index: usize| {
        let block = &course.results[index].content[0];
        shown_text(block, inline_text(block).unwrap().into()).into_owned()
    };
    let cut = shown(0);
    assert!(
        cut.starts_with("line 0000\n") && cut.ends_with("line 2999\n"),
        "{cut}"
    );
    assert!(cut.contains(&format!(
        "… 20000 bytes are left out here; call `read_more` with uri \"{uri}\" and offset 5000"
    )));
    assert!(
        shown(1).starts_with("line 0500\n") && shown(1).ends_with("; continue at offset 14872.]"),
        "{}",
        shown(1)
    );
    assert_eq!(
        shown(2),
        "line 2999\n[This is the end: the text has 30000 bytes.]"
    );
    assert!(
        course.results[3].is_error && shown(3).starts_with("No result of this conversation names")
    );
    assert!(course.results[4].is_error && shown(4).contains("is not a `jp://blob/…` URI"));
}

#[test]
fn output_that_is_not_utf8_is_reported() {
    let course = World::new().shell("printf 'caf\\351\\n'");
    assert!(
        course
            .text()
            .starts_with("caf\u{fffd}\n\nWarnings about this result:\n- its standard output")
    );
    assert_eq!(course.notices.len(), 1);
}

#[test]
fn malformed_blocks_are_reported() {
    let content = json!({"content": [
        {"type": "text", "text": "kept"},
        {"type": "resource", "resource": {"uri": "file:a%00b", "text": ""}},
        {"type": "hologram"},
    ]});
    let world = World::new();
    let course = world.call(tool(&["printf", "%s", &content.to_string()]), json!({}));
    insta::assert_snapshot!(course.text(), @r#"
    kept
    Warnings about this result:
    - content block 3 skipped: unknown block type `hologram`
    - a content block was skipped: its URI "file:a%00b" names no file: a name in it contains a NUL
    "#);
    assert_eq!(course.notices.len(), 2);
}

#[test]
fn program_that_a_signal_ends_has_its_output_kept() {
    let course = World::new().shell("echo half; kill -KILL $$");
    assert_eq!(
        course.error(),
        "half\n\nThe tool was ended by a signal: 9 (SIGKILL)."
    );
}

#[test]
fn program_that_deletes_its_own_directory_does_no_harm() {
    let world = World::new();
    let toolbox = world.toolbox(vec![tool(&["sh", "-c", "rm -r \"$PWD\"; echo '{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"file:a\",\"text\":\"x\"}}]}'"])]);
    let course = course(
        toolbox,
        &[("t", json!({})), ("t", json!({}))],
        Vec::new(),
        || false,
    );
    let StoredBlock::Resource { resource, .. } = &course.results[0].content[0] else {
        panic!("a resource")
    };
    assert_eq!(resource.name.as_deref(), Some("a"));
    assert_contains(course.error(), "no longer exists");
}

#[test]
fn keys_are_not_in_the_environment_of_a_tool() {
    // A variable that every test has.
    let key = "CARGO_MANIFEST_DIR";
    let world = World::new();
    let printed = |secret_variables: Vec<String>| {
        let mut toolbox = world.toolbox(vec![tool(&[
            "sh",
            "-c",
            "echo \"<${CARGO_MANIFEST_DIR-none}>\"",
        ])]);
        toolbox.surroundings.secret_variables = secret_variables;
        course(toolbox, &[("t", json!({}))], Vec::new(), || false).text()
    };
    assert_eq!(printed(vec![key.to_owned()]), "<none>\n");
    assert_ne!(printed(vec![]), "<none>\n");
}

#[test]
fn cancelled_tool_is_ended_with_all_that_it_started() {
    let world = World::new();
    let ticks = world.root.join("ticks");
    let script = "echo half; (while :; do echo x >> ticks; sleep 0.01; done) & wait";
    let toolbox = world.toolbox(vec![tool(&["sh", "-c", script])]);
    let course = course(toolbox, &[("t", json!({}))], Vec::new(), || ticks.exists());
    assert_eq!(
        course.error(),
        "half\n\nThe call was interrupted, and the tool was ended."
    );
    assert_stops_growing(&ticks);
}

fn assert_stops_growing(file: &Path) {
    let started = Instant::now();
    let length = || fs::metadata(file).unwrap().len();
    let grows = || {
        let before = length();
        std::thread::sleep(Duration::from_millis(50));
        length() != before
    };
    while grows() {
        assert!(started.elapsed() < LONG, "what it started runs on");
    }
}
