//! `jp query`, from the shell's side.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
};

use serde_json::json;
use testing::{
    Reply, Sandbox, Server, UNUSED_URL, answer, answering, assert_contains, assert_count,
    assert_fields, assert_lacks, assert_starts, chunk, column, finish, items, last_message,
    last_request, run, start,
};

#[test]
fn only_the_answer_goes_to_stdout() {
    let (sandbox, server) = Sandbox::with_answer("It prints hello.");
    sandbox.write("src/main.rs", "fn main() {}\n");
    sandbox.write("~/outside/notes.md", "# Notes\n");
    let run = sandbox.run("query --new --attach src/ --attach ~/outside/notes.md What now?");
    assert_eq!(run.stdout, "It prints hello.\n");
    assert_lacks(&run.stderr, "warning");
    for words in [
        "Attached 2 resources, 21 B:",
        "src/main.rs",
        "notes.md",
        "external:",
        "50 input, 40 from cache, 7 output",
        "`jp query \"…\"` continues conversation",
    ] {
        assert_contains(&run.stderr, words);
    }
    let message = last_message(&server);
    assert_starts(&message, "What now?\n<resource uri=\"file:///");
    assert_contains(
        &message,
        "name=\"src/main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>",
    );
    assert_contains(
        &message,
        "name=\"notes.md\" mimeType=\"text/markdown\">\n# Notes\n</resource>",
    );
}

#[test]
fn attachments_stay_at_their_turn() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "first");
    sandbox.run("q --new -a a.txt one");
    let first = server.received().pop().unwrap().body;
    sandbox.write("a.txt", "second");
    sandbox.run("q two");
    let second = server.received().pop().unwrap().body;
    let history = first
        .strip_suffix(b"]}")
        .expect("a request ends with its messages");
    assert!(
        second.starts_with(history),
        "{}\n{}",
        String::from_utf8_lossy(&first),
        String::from_utf8_lossy(&second)
    );
    assert_lacks(String::from_utf8_lossy(&second), "second");
    sandbox.run("q -a a.txt three");
    assert_contains(last_message(&server), "second");
    let turns = column(items(&sandbox.json("resource ls")), "turn");
    assert_eq!(turns, [json!(1), json!(3)]);
}

#[test]
fn piped_input_goes_before_the_words() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let mut command = sandbox.command("query --new explain");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"error[E0308]\n")
        .unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(last_message(&server), "error[E0308]\n\nexplain");
}

#[test]
fn json_is_one_document() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    let document = sandbox.json("query --new -a a.txt 'is it?'");
    assert_fields!(document, {"answer": "Yes.", "model": "llamacpp/m", "turn": 1});
    assert_eq!(document["usage"]["cached_read"], 40);
    assert_fields!(document["resources"][0], {"name": "a.txt", "size": 3});
}

#[test]
fn no_persist_answers_without_storing() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    let before = sandbox.files(".jp");
    let run = sandbox.run("query --new --no-persist -a a.txt 'is it?'");
    assert_eq!(run.stdout, "Yes.\n");
    assert_contains(last_message(&server), "abc");
    assert_eq!(sandbox.files(".jp"), before);
}

#[test]
fn no_persist_continues_a_conversation_with_its_stored_content() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "stored before");
    sandbox.run("query --new -a a.txt one");
    let events = sandbox.events();
    sandbox.write("b.txt", "not stored");
    sandbox.run("query --no-persist -a b.txt two");
    let request = last_request(&server).to_string();
    assert_contains(&request, "stored before");
    assert_contains(&request, "not stored");
    assert_eq!(sandbox.events(), events);
}

#[test]
fn explain_has_no_effects() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    sandbox.run("query --new -a a.txt one");
    let (events, requests) = (sandbox.events(), server.received().len());
    let document = sandbox.json("query --explain -a a.txt two");
    assert_fields!(document["turns"][1]["blocks"][1], {"kind": "resource", "bytes": 3});
    assert_eq!(items(&document["turns"]).len(), 2);
    assert!(document["cached_prefix_tokens"].as_u64() < document["tokens"].as_u64());
    assert_eq!(items(&document["request"]["messages"]).len(), 3);
    let run = sandbox.run("query --explain two");
    assert_contains(&run.stdout, "about");
    assert_contains(&run.stderr, "Nothing was sent");
    assert_eq!(
        (sandbox.events(), server.received().len()),
        (events, requests)
    );
}

#[test]
fn query_without_words_sends_a_failed_one_again() {
    let sandbox = Sandbox::new().with_url(UNUSED_URL);
    sandbox.write("a.txt", "abc");
    sandbox.fail("query --new -a a.txt 'is it?'", 1).says([
        "connection refused",
        "hint: start the server",
        "`jp query` without a message sends it again",
    ]);
    assert_eq!(sandbox.events_of("chat_request").len(), 1);
    let server = answering("Yes.");
    let sandbox = sandbox.with_server(&server);
    assert_eq!(sandbox.run("query").stdout, "Yes.\n");
    assert_contains(last_message(&server), "abc");
    assert_eq!(sandbox.events_of("chat_request").len(), 1);
    sandbox
        .fail("query", 2)
        .says(["there is no message to send, and no unanswered message"]);
}

#[test]
fn half_an_answer_is_kept_with_a_mark() {
    let (sandbox, server) = Sandbox::with_model(Server::new(vec![Reply::stream(&chunk("It pri"))]));
    let run = sandbox.fail("query --new what?", 1).says([
        "ended before it was complete",
        "the incomplete answer is kept",
    ]);
    assert_eq!(run.stdout, "It pri\n");
    let answer = &sandbox.events_of("chat_response")[0];
    assert_eq!(answer["message"], "It pri");
    assert_contains(answer["incomplete"].as_str().unwrap(), "connection");
    assert_eq!(
        server.received().len(),
        1,
        "nothing is sent again once an answer was shown"
    );
}

#[test]
fn rubbish_is_an_error_that_shows_it() {
    for (reply, words) in [
        (
            Reply::with_headers(200, "content-type: text/html\r\n", "<h1>Login</h1>"),
            "text/html",
        ),
        (Reply::stream("data: {rubbish\n\n"), "rubbish"),
        (
            Reply::json(401, r#"{"error":{"message":"bad key"}}"#),
            "bad key",
        ),
        (Reply::raw("\x00\x01\x02"), "reach"),
    ] {
        let (sandbox, _) = Sandbox::with_model(Server::new(vec![reply]));
        sandbox
            .fail("query --new what?", 1)
            .says([words, "sends it again"]);
        assert!(sandbox.has_event("chat_request"));
    }
}

#[test]
fn retry_of_a_busy_server_is_reported() {
    let busy = Reply::with_headers(
        429,
        "retry-after: 0\r\n",
        r#"{"error":{"message":"slow down"}}"#,
    );
    let (sandbox, server) = Sandbox::with_model(Server::new(vec![busy, answer("Yes.")]));
    let run = sandbox.run("query --new what?");
    assert_eq!(run.stdout, "Yes.\n");
    assert_contains(&run.stderr, "slow down");
    assert_eq!(server.received().len(), 2);
}

#[test]
fn silent_server_is_given_up_after_the_idle_timeout() {
    let (sandbox, _) = Sandbox::with_model(Server::new(vec![
        Reply::stream(&chunk("Well,")).then_hang(),
    ]));
    let run = sandbox
        .fail(
            "query --new -c providers.llm.llamacpp.idle_timeout_secs=1 what?",
            1,
        )
        .says(["no data arrived for 1 s"]);
    assert_eq!(run.stdout, "Well,\n");
}

#[test]
fn server_that_says_nothing_is_named_after_ten_seconds() {
    let (sandbox, _) = Sandbox::with_model(Server::new(vec![Reply::hang()]));
    let mut child = start(sandbox.command("query --new one"));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert_eq!(
        line,
        "Still waiting for llamacpp/m. Press Ctrl-C to stop; the message stays in the conversation."
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
#[cfg(unix)]
fn interrupt_keeps_what_arrived() {
    use std::io::Read as _;
    let (sandbox, _) = Sandbox::with_model(Server::new(vec![
        Reply::stream(&chunk("Once upon a time")).then_hang(),
    ]));
    let mut child = start(sandbox.command("query --new tell"));
    let mut shown = [0; 16];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut shown)
        .unwrap();
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let run = finish(child);
    assert_eq!(run.code, 130, "{}", &run.stderr);
    let answer = &sandbox.events_of("chat_response")[0];
    assert_fields!(answer, {"message": "Once upon a time", "incomplete": "interrupted"});
}

#[test]
fn answer_is_kept_behind_a_closed_pipe() {
    let (sandbox, _) = Sandbox::with_answer("Yes, and a good deal more.");
    let mut child = start(sandbox.command("query --new what?"));
    drop(child.stdout.take());
    let run = finish(child);
    assert_eq!(run.code, 0, "{}", &run.stderr);
    assert_lacks(run.stderr.to_lowercase(), "pipe");
    let answer = &sandbox.events_of("chat_response")[0];
    assert_eq!(answer["message"], "Yes, and a good deal more.");
}

#[test]
#[cfg(target_os = "linux")]
fn answer_is_kept_if_stdout_is_full() {
    let (sandbox, _) = Sandbox::with_answer("Yes, and a good deal more.");
    let mut command = sandbox.command("query --new what?");
    command
        .stdout(
            fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .stderr(Stdio::piped());
    let run = finish(command.spawn().unwrap());
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "failed to write to stdout");
    let answer = &sandbox.events_of("chat_response")[0];
    assert_eq!(answer["message"], "Yes, and a good deal more.");
}

/// tokio wakes its thread by a write, which can fail like any other.
#[test]
#[cfg(target_os = "linux")]
fn wake_up_that_fails_is_an_error() {
    if !Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return testing::skip("strace is not installed");
    }
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let (mut failed_wake_ups, log) = (0, sandbox.home.join("trace"));
    // The number of the write that wakes the thread depends on its other writes.
    for write in 1..=8 {
        let plain = sandbox.command("query --new what?");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=write", "-e"]);
        command
            .arg(format!("inject=write:error=ENOSPC:when={write}"))
            .arg("-o")
            .arg(&log);
        command
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(&sandbox.root)
            .env_clear();
        command
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null());
        let run = testing::run(command);
        assert!(
            [0, 1].contains(&run.code) && !run.stderr.contains("panicked"),
            "write {write}: {run:?}"
        );
        if run.stderr.contains("failed to wake the network thread") {
            failed_wake_ups += 1;
            run.failed(1).says([
                "No space left on device",
                "hint: free some space on that disk",
            ]);
        }
    }
    assert!(failed_wake_ups > 0, "no wake-up was made to fail");
    sandbox.run("storage check");
}

#[test]
fn missing_key_fails_before_anything_is_resolved_or_stored() {
    let sandbox = Sandbox::new();
    sandbox.configure("assistant.model.id = 'work/m'\n[providers.llm.work]\nbase_url = 'http://127.0.0.1:1'\napi_key_env = 'WORK_KEY'\n");
    sandbox
        .fail("query --new -a missing.txt what?", 1)
        .says(["WORK_KEY is not set"]);
    assert!(!sandbox.path(".jp/conversations").exists());
}

#[test]
fn second_query_waits_for_the_first_or_fails_with_no_wait() {
    let (sandbox, _) = Sandbox::with_model(Server::new(vec![
        Reply::stream(&chunk("Hm")).then_hang(),
        answer("Yes."),
    ]));
    let mut first = start(sandbox.command("query --new one"));
    let mut shown = [0; 2];
    std::io::Read::read_exact(first.stdout.as_mut().unwrap(), &mut shown).unwrap();

    let process = first.id().to_string();
    sandbox
        .fail("query --no-wait two", 1)
        .says(["is in use by another jp", &process]);
    let mut second = start(sandbox.command("query two"));
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(second.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert_starts(&line, "Waiting for another jp");
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(second.wait_with_output().unwrap().status.success());
    let requests: Vec<_> = sandbox.events_of("chat_request");
    assert_eq!(
        requests
            .iter()
            .map(|event| &event["content"])
            .collect::<Vec<_>>(),
        ["one", "two"]
    );
}

#[test]
fn error_in_a_damaged_conversation_has_its_position() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.run("query --new one");
    let path = sandbox.events_path();
    let broken = fs::read_to_string(&path)
        .unwrap()
        .replacen("},\n", "}\n", 1);
    fs::write(&path, &broken).unwrap();
    sandbox
        .fail("query two", 1)
        .says(["expected `,` or `]` at line 3, column 1"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    assert_eq!(server.received().len(), 1);
}

#[test]
fn torn_conversation_goes_on_with_one_warning() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.run("query --new one");
    let path = sandbox.events_path();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let run = sandbox.run("query two");
    assert_count(&run.stderr, "is cut off", 1);
    assert_lacks(&sandbox.run("query three").stderr, "is cut off");
    assert!(sandbox.conversation().join("events.json.torn-1").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_leaves_nothing_half_written() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let Some(disk) = SmallDisk::mount(&sandbox.path(".jp")) else {
        return;
    };
    sandbox.write(".jp/.id", "full\n");
    let sandbox = sandbox.with_server(&server);
    let incompressible: Vec<u8> = (0..400_000_u32)
        .flat_map(|index| (index.wrapping_mul(2_654_435_761) >> 7).to_le_bytes())
        .collect();
    sandbox.write("big.bin", incompressible);
    let run = sandbox.jp("query --new -a big.bin what?");
    let left = sandbox.files(".jp");
    drop(disk);
    run.failed(1)
        .says(["No space left", "hint: free some space"]);
    assert_eq!(server.received().len(), 0);
    assert!(
        !left.iter().any(
            |path| path.ends_with("events.json") || path.extension().is_some_and(|e| e == "gz")
        ),
        "{left:?}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn message_that_a_full_disk_still_took_is_reported() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new();
    let Some(_disk) = SmallDisk::mount(&sandbox.path(".jp")) else {
        return;
    };
    sandbox.write(".jp/.id", "full\n");
    let sandbox = sandbox.with_server(&server);
    sandbox.run("query --new one");
    let _ = fs::write(sandbox.path(".jp/fill"), vec![0; 1 << 20]);
    // The events' last page has room, a new file has none.
    let said = [
        "No space left",
        "hint: free some space",
        "the message is kept: `jp query` without a message",
    ];
    sandbox.fail("query two", 1).says(said);
    fs::remove_file(sandbox.path(".jp/fill")).unwrap();
    assert_eq!(sandbox.run("query").stdout, "Yes.\n");
    let messages = sandbox
        .events()
        .into_iter()
        .filter(|event| event["type"] == "chat_request");
    assert_eq!(
        messages
            .map(|event| event["content"].clone())
            .collect::<Vec<_>>(),
        ["one", "two"]
    );
}

#[test]
#[cfg(target_os = "linux")]
fn answer_that_a_full_disk_did_not_take_can_be_repeated() {
    let server = answering(&"word ".repeat(12_000));
    let sandbox = Sandbox::new();
    let Some(_disk) = SmallDisk::mount(&sandbox.path(".jp")) else {
        return;
    };
    sandbox.write(".jp/.id", "full\n");
    let sandbox = sandbox.with_server(&server);
    sandbox.run("query --new one");
    // Room for the message, and not for the answer.
    sandbox.write(".jp/room", vec![0; 16 << 10]);
    let _ = fs::write(sandbox.path(".jp/fill"), vec![0; 1 << 20]);
    fs::remove_file(sandbox.path(".jp/room")).unwrap();
    let said = [
        "No space left",
        "hint: free some space",
        "the end of the answer is not stored",
        "`jp query` without a message",
    ];
    let run = sandbox.fail("query two", 1).says(said);
    assert!(run.stdout.starts_with("word word"), "{run:?}");
    fs::remove_file(sandbox.path(".jp/fill")).unwrap();
    sandbox.run("query");
    let kinds: Vec<_> = sandbox
        .events()
        .into_iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "chat_request").count(),
        2,
        "{kinds:?}"
    );
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "chat_response").count(),
        2,
        "{kinds:?}"
    );
}

/// A file system of 256 kB.
#[cfg(target_os = "linux")]
struct SmallDisk(String);

#[cfg(target_os = "linux")]
impl SmallDisk {
    /// Mounts it if that is permitted.
    fn mount(directory: &std::path::Path) -> Option<Self> {
        let directory = testing::shown(directory);
        let arguments = ["-t", "tmpfs", "-o", "size=256k", "tmpfs", &directory];
        let mount = std::process::Command::new("mount")
            .args(arguments)
            .stderr(Stdio::null())
            .status();
        let is_mounted = mount.is_ok_and(|status| status.success());
        if !is_mounted {
            eprintln!("skipped: a small file system can't be mounted here");
        }
        is_mounted.then_some(Self(directory))
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
#[cfg(unix)]
fn read_only_workspace_is_an_error_that_names_it() {
    use std::os::unix::fs::PermissionsExt as _;
    if testing::is_root() {
        eprintln!("skipped: root may write anywhere");
        return;
    }
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    fs::set_permissions(sandbox.path(".jp"), fs::Permissions::from_mode(0o555)).unwrap();
    sandbox
        .fail("query --new what?", 1)
        .says([".jp", "hint: check the permissions"]);
    assert_eq!(server.received().len(), 0);
}

#[test]
fn usage_errors_exit_with_2() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox
        .fail("query --new", 2)
        .says(["there is no message to send"]);
    sandbox
        .fail("query --nwe x", 2)
        .says(["unexpected argument '--nwe'"]);
    sandbox
        .fail("query --new --model nothing x", 2)
        .says(["PROVIDER/NAME"]);
    sandbox
        .fail("query --id x y", 2)
        .says(["a conversation id is a number"]);
    sandbox
        .fail("query --id 123 y", 1)
        .says(["there is no conversation 123"]);
    assert_eq!(server.received().len(), 0);
}

#[test]
fn command_works_only_in_a_workspace() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("query x");
    command.current_dir(&sandbox.home);
    run(command)
        .failed(1)
        .says(["no workspace at or above", "hint: `jp init`"]);
}

#[test]
fn flag_works_on_either_side_of_the_command() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    for arguments in [
        ["--format", "json", "query", "--new", "x"],
        ["query", "--new", "x", "--format", "json"],
    ] {
        assert_starts(sandbox.run(&arguments).stdout, "{");
    }
}

#[test]
fn model_named_once_is_kept_for_the_conversation() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.run("query --new --model llamacpp/other x");
    sandbox.run("query y");
    assert_eq!(last_request(&server)["model"], "other");
}

#[test]
fn workspace_gets_no_key_for_its_own_server() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new();
    let config = format!(
        "assistant.model.id = 'work/m'\n[providers.llm.work]\nbase_url = '{}'\n",
        server.url()
    );
    sandbox.write(".jp/config.toml", &config);
    sandbox.configure("providers.llm.work.api_key_command = 'echo sk-secret'\n");
    sandbox
        .fail("query --new what?", 1)
        .says(["gets no API key", "~/.config/jp/config.toml"]);
    assert_eq!(server.received().len(), 0);
}

#[test]
fn answer_cut_off_by_the_limit_is_said() {
    let end =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let (sandbox, _) = Sandbox::with_model(Server::new(vec![Reply::stream(&format!(
        "{}{end}",
        chunk("It is")
    ))]));
    let run = sandbox.run("query --new what?");
    assert_contains(&run.stderr, "incomplete: length limit reached");
    assert_eq!(
        sandbox.json("query --new what?")["incomplete"],
        "length limit reached"
    );
}

#[test]
fn empty_answer_is_an_error() {
    let (sandbox, _) = Sandbox::with_model(Server::new(vec![Reply::stream(
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    )]));
    sandbox
        .fail("query --new what?", 1)
        .says(["answer is empty", "sends it again"]);
}

#[test]
fn question_after_an_unanswered_one_keeps_turns_alternating() {
    let (sandbox, server) =
        Sandbox::with_model(Server::new(vec![Reply::json(400, "{}"), answer("Yes.")]));
    sandbox.fail("query --new one", 1);
    sandbox.run("query two");
    let request = last_request(&server);
    let roles = column(items(&request["messages"]), "role");
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[test]
fn no_persist_is_refused_where_there_is_nothing_else_to_do() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let id = sandbox.json("query --new one")["conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    for arguments in [
        vec!["c", "rm", &id],
        vec!["c", "fork"],
        vec!["c", "use", &id],
        vec!["a", "add", "."],
        vec!["r", "refresh"],
        vec!["init", "x"],
    ] {
        sandbox
            .fail(&[&["--no-persist"], &*arguments].concat(), 2)
            .says(["--no-persist"]);
    }
    assert_eq!(items(&sandbox.json("c ls")).len(), 1);
}

#[test]
fn key_command_of_a_workspace_is_not_run() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new();
    let config = format!(
        "assistant.model.id = 'work/m'\n[providers.llm.work]\nbase_url = '{}'\napi_key_command = ['touch', 'ran']\n",
        server.url()
    );
    sandbox.write(".jp/config.toml", &config);
    sandbox.fail("query --new what?", 1).says([
        "api_key_command",
        "is not run",
        "~/.config/jp/config.toml",
    ]);
    assert!(!sandbox.path("ran").exists());
    sandbox.write(".jp/config.toml", "");
    sandbox.configure(config.replace("['touch', 'ran']", "'echo sk-secret'"));
    sandbox.run("query --new what?");
    assert!(
        server
            .received()
            .pop()
            .unwrap()
            .head
            .contains("authorization: bearer sk-secret")
    );
    for path in sandbox.files(".jp") {
        assert_lacks(
            String::from_utf8_lossy(&fs::read(path).unwrap()),
            "sk-secret",
        );
    }
}

#[test]
fn new_conversation_that_can_not_be_stored_has_no_effects() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new first");
    let first = sandbox.conversation();
    sandbox.run("q --new second");
    let id = testing::conversation_id(&first);
    sandbox.run(&["conversation", "use", &id]);

    sandbox.write("a.txt", "text\n");
    let checksum = jp_resource::Checksum::compute(b"text\n").to_string();
    let (shard, rest) = checksum.split_at(2);
    // In the way of the content's name.
    fs::create_dir_all(sandbox.path(&format!(".jp/blobs/{shard}/{rest}.blob.gz"))).unwrap();
    sandbox
        .fail("q --new -a a.txt third", 1)
        .says(["error: ", &format!("{rest}.blob.gz")]);
    assert_eq!(server.received().len(), 2);
    assert_eq!(
        fs::read_dir(sandbox.path(".jp/conversations"))
            .unwrap()
            .count(),
        2
    );

    sandbox.run("q fourth");
    let events = fs::read_to_string(first.join("events.json")).unwrap();
    assert_contains(&events, "fourth");
}

#[test]
fn text_that_changes_while_it_is_sent_is_sent_as_it_was_attached() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.txt", "before\n");
    let server = Server::scripted(move |index, _| match index {
        0 => {
            fs::write(&file, "after!\n").unwrap();
            Reply::json(500, "{}")
        }
        _ => answer("Yes."),
    });
    let sandbox = sandbox.with_server(&server);
    sandbox.run("q --new -a a.txt x");
    let bodies: Vec<_> = server
        .received()
        .into_iter()
        .map(|received| received.body)
        .collect();
    assert_eq!(bodies.len(), 2);
    assert_contains(String::from_utf8_lossy(&bodies[0]), "before");
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn text_of_an_unexpected_length_is_read_first_the_next_time() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a text\n");
    let measure = " 1,8,0,1\n";
    // A file is remembered once it has not been written to for a moment.
    let remembered = (0..100).find_map(|_| {
        sandbox.run("q --new -a a.txt x");
        sandbox
            .file_states()
            .filter(|lines| lines.contains(measure))
    });
    let remembered = remembered.expect("the length of a text is remembered");
    sandbox.write_file_states(&remembered.replace(measure, " 1,9,0,1\n"));
    let sent = server.received().len();
    sandbox.fail("q --new -a a.txt mine", 1).says([
        "load file:///",
        "a.txt for the request: it is shorter than the room for it",
        "the message is kept",
    ]);
    sandbox.run("q");
    assert_eq!(server.received().len(), sent + 1);
    assert_contains(last_message(&server), "mine\n");
    assert_contains(last_message(&server), "a text");
}

#[test]
fn lost_content_is_named_with_a_remedy() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a text of some length\n");
    sandbox.run("q --new -a a.txt one");
    let blob = sandbox.files(".jp/blobs").pop().unwrap();
    let whole = fs::read(&blob).unwrap();
    for (lost, hint) in [
        (None, "attach its source again"),
        (
            Some(&whole[..whole.len() - 9]),
            "delete the file of the content",
        ),
    ] {
        match lost {
            None => fs::remove_file(&blob).unwrap(),
            Some(bytes) => fs::write(&blob, bytes).unwrap(),
        }
        let name = blob.file_name().unwrap().to_str().unwrap();
        let run = sandbox.jp("q two");
        run.failed(1).says([
            "a.txt for the request",
            name,
            hint,
            "hint: the message is kept",
        ]);
        assert_eq!(server.received().len(), 1);
    }
    // The hint says: delete it, and attach it again.
    fs::remove_file(&blob).unwrap();
    sandbox.run("q -a a.txt three");
    sandbox.run("q four");
    assert_eq!(fs::read(&blob).unwrap(), whole);
}
