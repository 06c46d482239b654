//! Output of commands as attachments, and the approvals that they need.

use std::{fs, process::Command};

use serde_json::json;
use testing::{
    Sandbox, assert_contains, assert_count, assert_fields, finish, git, items, last_message,
};

/// Returns the running processes of a group, without those that have ended and wait for their parent.
#[cfg(target_os = "linux")]
fn running(group: i32) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stats =
        processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
    let is_running = |stat: &String| {
        let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
        let (state, group_of_it) = (fields.next(), fields.nth(1));
        state != Some("Z") && group_of_it == Some(&*group.to_string())
    };
    stats.filter(is_running).collect()
}

/// Makes the workspace a git repository with one commit and a change.
fn repository(sandbox: &Sandbox) {
    sandbox.write("a.txt", "one\n");
    git(&sandbox.root, &["init", "-q"]);
    git(&sandbox.root, &["add", "a.txt"]);
    git(&sandbox.root, &["commit", "-qm", "The first"]);
    sandbox.write("a.txt", "two\n");
}

#[test]
fn output_of_a_command_is_a_snapshot_that_stays_as_it_was() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    repository(&sandbox);
    sandbox.run("q --new -a 'cmd:git diff' 'what changed?'");
    assert_contains(last_message(&server), "-one\n+two");
    let row = sandbox.json("attachment ls")[0].clone();
    assert_fields!(row, {"kind": "command", "name": "git diff", "uri": "cmd://git?arg=diff"});
    sandbox.write("a.txt", "three\n");
    sandbox.run("q again?");
    assert_eq!(items(&sandbox.json("resource ls")).len(), 1);
    sandbox.run("q -a cmd://git?arg=diff 'and now?'");
    assert_contains(last_message(&server), "+three");
    let versions = sandbox.json("resource ls");
    assert_eq!(
        (&versions[0]["uri"], items(&versions).len()),
        (&versions[1]["uri"], 2)
    );
    sandbox.write("a.txt", "four\n");
    let report = sandbox.json("resource refresh 'git diff'");
    assert_eq!(report, json!({"refreshed": ["git diff"], "unchanged": []}));
    sandbox.run("attachment rm 'cmd:git diff'");
    assert_eq!(sandbox.json("attachment ls"), json!([]));
}

#[test]
fn only_a_command_that_cannot_start_is_an_error() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("ok.txt", "fine");
    sandbox.run(&[
        "q",
        "--new",
        "-a",
        "cmd:sh -c 'echo out; echo err >&2; exit 3'",
        "why?",
    ]);
    let message = last_message(&server);
    assert_contains(&message, "out\n[stderr]\nerr\n[exit status: 3]");
    let blobs = sandbox.files(".jp/blobs").len();
    for (input, limit, words) in [
        (
            "cmd:no-such-program x",
            "max_bytes=10MB",
            vec!["no-such-program", "--skip-unavailable"],
        ),
        ("cmd:sh -c 'kill -9 $$'", "max_bytes=10MB", vec!["SIGKILL"]),
        ("cmd:sleep 60", "timeout_secs=1", vec!["sleep 60", "1 s"]),
        (
            "cmd:yes",
            "max_bytes=1MB",
            vec!["yes", "1000000 bytes", "conversation.attachment.max_bytes"],
        ),
        ("cmd:git 'diff", "max_bytes=10MB", vec!["not closed"]),
    ] {
        let limit = format!("conversation.attachment.{limit}");
        sandbox
            .fail(&["q", "-c", &limit, "-a", "ok.txt", "-a", input, "x"], 1)
            .says(words);
    }
    assert_eq!(sandbox.files(".jp/blobs").len(), blobs, "nothing is stored");
    assert_eq!(sandbox.json("conversation show")["turns"], 1);
    sandbox.run("q --skip-unavailable -a ok.txt -a cmd:no-such-program x");
    assert_contains(last_message(&server), "fine");
}

#[test]
fn command_of_a_workspace_or_a_history_runs_only_with_the_persons_word() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let attachments = r#"conversation.attachments = [{ type = "cmd", path = "touch", params = { arg = ["ran"] } }]"#;
    sandbox.prepend_config(attachments);
    let ran = || fs::remove_file(sandbox.path("ran")).is_ok();

    sandbox.fail("q --new x", 1).says([
        "touch ran",
        "no terminal to ask",
        "pass `--yes` to run it",
        "--skip-unavailable",
    ]);
    let run = sandbox.run("q --new --skip-unavailable x");
    assert_contains(&run.stderr, "skipped");
    assert_contains(&run.stderr, "touch ran");
    assert!(!ran());
    sandbox.run("q --new --yes x");
    assert!(ran());
    sandbox.fail("q --new x", 1).says(["touch ran"]);
    assert!(!ran(), "--yes is for one command");
    sandbox.run("q --new -a 'cmd:touch ran' x");
    assert!(ran());
    sandbox.run("q --new x");
    assert!(ran(), "what the person attached themself is remembered");

    // A copy at another place is another checkout, and may be a stranger's.
    let copy = sandbox.home.join("copy");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(&sandbox.root)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(copied.success());
    let mut command = sandbox.command("q --new x");
    command.current_dir(&copy);
    testing::run(command).failed(1).says(["touch ran"]);
    let mut command = sandbox.command("conversation fork --turns 0");
    command.current_dir(&copy);
    testing::run(command).succeeded();
    let mut command = sandbox.command("q x");
    command.current_dir(&copy);
    testing::run(command).failed(1).says(["touch ran"]);
    assert!(!copy.join("ran").exists());
}

#[test]
fn approval_that_can_not_be_saved_is_reported() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new -a 'cmd:echo one' x");
    let trusted = sandbox
        .files("~/.local/share/jp")
        .into_iter()
        .find(|path| path.iter().any(|name| name == "trusted"));
    fs::write(trusted.unwrap(), b"\xff\n").unwrap();
    let run = sandbox.run("q --new -a 'cmd:echo two' x");
    assert_count(&run.stderr, "warning: failed to save your approvals in ", 1);
    assert_contains(&run.stderr, "/trusted/");
    assert_contains(&run.stderr, "delete it");
}

#[test]
fn command_that_a_person_attached_keeps_its_approval() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new start");
    sandbox.run("attachment add 'cmd:echo hello'");
    assert_eq!(
        sandbox.json("resource ls"),
        json!([]),
        "adding runs nothing"
    );
    sandbox.run("q one");
    assert_contains(last_message(&server), "hello");
    sandbox.run("conversation fork --turns 0");
    sandbox.run("q two");
    assert_contains(last_message(&server), "hello");
    sandbox.configure("conversation.attachments = ['cmd:echo mine']\n");
    sandbox.run("q --new three");
    // The user's own configuration needs no approval.
    assert_contains(last_message(&server), "mine");
}

#[test]
#[cfg(target_os = "linux")]
fn interrupt_ends_a_command_with_all_it_started() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let pid = sandbox.path("pid");
    // A pipe, so that the test knows when the command runs.
    assert!(Command::new("mkfifo").arg(&pid).status().unwrap().success());
    let mut command = sandbox.command(&[
        "q",
        "--new",
        "-a",
        "cmd:sh -c 'echo $$ >pid; sleep 60; true'",
        "x",
    ]);
    let child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let group: i32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let jp = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(jp, rustix::process::Signal::INT).unwrap();
    let run = finish(child);
    assert_eq!(run.code, 130);
    assert_eq!(&run.stderr, "error: interrupted\n");
    assert_eq!(
        running(group),
        Vec::<String>::new(),
        "nothing of it runs on"
    );
    assert!(!sandbox.path(".jp/conversations").exists());
}
