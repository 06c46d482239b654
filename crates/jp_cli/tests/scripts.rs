//! Scripts of the workspace that an attached command runs: approved as they are, and asked about once they change.

#![cfg(unix)]

use std::{fs, process::Command};

use serde_json::json;
use testing::{Sandbox, assert_contains, assert_lacks};

/// The ways in which a command reaches the script `x.sh` or `bin/x`, which do the same.
const SCRIPTS: [&str; 6] = [
    "sh x.sh",
    "./x.sh",
    "sh -c './x.sh | cat'",
    "env A=b sh ./bin/../x.sh",
    "/bin/sh ROOT/x.sh",
    "x",
];

/// Writes an executable script that says a word.
fn write_script(sandbox: &Sandbox, word: &str) {
    for path in ["x.sh", "bin/x"] {
        let path = sandbox.write(path, format!("#!/bin/sh\necho {word} >>ran\necho {word}\n"));
        Command::new("chmod").arg("+x").arg(path).status().unwrap();
    }
}

/// Returns the commands that ran since the last call.
fn ran(sandbox: &Sandbox) -> String {
    let ran = fs::read_to_string(sandbox.path("ran")).unwrap_or_default();
    fs::remove_file(sandbox.path("ran")).ok();
    ran
}

/// Runs jp with a directory of the workspace in `PATH`.
fn jp(sandbox: &Sandbox, arguments: &[&str]) -> testing::Run {
    let mut command = sandbox.command(arguments);
    let path = std::env::var("PATH").unwrap();
    command.env(
        "PATH",
        format!("{}:bin:{path}", sandbox.root.join("none").display()),
    );
    testing::run(command)
}

#[test]
fn script_that_has_changed_is_asked_about_before_its_command_runs_again() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let config = sandbox.read(".jp/config.toml");
    for line in SCRIPTS {
        let line = line.replace("ROOT", sandbox.root.to_str().unwrap());
        let attachment = format!("cmd:{line}");
        write_script(&sandbox, "one");
        sandbox.write(".jp/config.toml", &config);
        jp(&sandbox, &["q", "--new", "-a", &attachment, "x"]).succeeded();
        assert_eq!(ran(&sandbox), "one\n", "{line}");

        sandbox.write(
            ".jp/config.toml",
            format!("conversation.attachments = [{attachment:?}]\n{config}"),
        );
        jp(&sandbox, &["q", "--new", "x"]).succeeded();
        assert_eq!(
            ran(&sandbox),
            "one\n",
            "{line}: it is as it was when the user attached it"
        );

        write_script(&sandbox, "two");
        let words = [
            "whose current content you have not approved",
            "no terminal to ask",
            "pass `--yes` to run it",
        ];
        jp(&sandbox, &["q", "--new", "x"]).failed(1).says(words);
        jp(&sandbox, &["resource", "refresh", &attachment])
            .failed(1)
            .says(words);
        assert_eq!(ran(&sandbox), "", "{line}");
        jp(&sandbox, &["q", "--new", "--yes", "x"]).succeeded();
        assert_eq!(ran(&sandbox), "two\n", "{line}");
        jp(&sandbox, &["q", "--new", "x"]).failed(1).says(words);

        write_script(&sandbox, "one");
        jp(&sandbox, &["q", "--new", "x"]).succeeded();
        assert_eq!(
            ran(&sandbox),
            "one\n",
            "{line}: it is again what the user approved"
        );
    }
}

#[test]
fn file_that_a_shell_runs_is_a_script_whatever_it_looks_like() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let config = sandbox.read(".jp/config.toml");
    let write = |word: &str| {
        for path in ["run", "tools/gen"] {
            sandbox.write(path, format!("echo {word} >>\"$ROOT/ran\"\necho {word}\n"));
        }
    };
    let jp = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env("ROOT", &sandbox.root);
        testing::run(command)
    };
    for line in [
        "sh -c '. ./run && true'",
        "sh run",
        "sh -c 'sh <run'",
        "sh -c 'cd tools && sh gen'",
        "env -C tools sh gen",
    ] {
        let attachment = format!("cmd:{line}");
        write("one");
        sandbox.write(".jp/config.toml", &config);
        jp(&["q", "--new", "-a", &attachment, "x"]).succeeded();
        sandbox.write(
            ".jp/config.toml",
            format!("conversation.attachments = [{attachment:?}]\n{config}"),
        );
        jp(&["q", "--new", "x"]).succeeded();
        assert_eq!(ran(&sandbox), "one\none\n", "{line}");
        write("two");
        jp(&["q", "--new", "x"])
            .failed(1)
            .says(["whose current content you have not approved"]);
        assert_eq!(ran(&sandbox), "", "{line}");
    }
}

#[test]
fn command_that_reads_data_is_not_asked_about_when_it_changes() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let config = sandbox.read(".jp/config.toml");
    sandbox.write("package.json", "1\n");
    sandbox.run("q --new -a 'cmd:sed -n 1,9p package.json' x");
    let watched = "conversation.attachments = [{ type = 'cmd', path = 'sed', params = { arg = ['-n', '1,9p', 'package.json'] }, refresh = 'notify' }]\n";
    sandbox.write(".jp/config.toml", format!("{watched}{config}"));
    sandbox.write("package.json", "2\n");
    sandbox.run("q y").says(["jp tells the model"]);
    sandbox.run("q --new z");
}

#[test]
fn script_that_was_replaced_or_removed_is_asked_about() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    write_script(&sandbox, "one");
    sandbox.run("q --new -a 'cmd:sh x.sh' x");
    sandbox.run("conversation fork --turns 0");
    ran(&sandbox);
    let outside = sandbox.write("~/evil.sh", "echo evil >>ran\n");
    fs::remove_file(sandbox.path("x.sh")).unwrap();
    sandbox
        .fail("q x", 1)
        .says(["sh x.sh", "no terminal to ask"]);
    sandbox.link(outside, "x.sh");
    sandbox.fail("q x", 1).says([
        "x.sh, whose current content you have not approved",
        "no terminal to ask",
    ]);
    assert_eq!(ran(&sandbox), "");
}

#[test]
fn script_that_changes_while_it_runs_is_approved_as_it_was() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("x.sh", "echo ran >>ran\necho 'echo other >>ran' >x.sh\n");
    sandbox.run("q --new -a 'cmd:sh x.sh' x");
    sandbox.run("conversation fork --turns 0");
    sandbox
        .fail("q x", 1)
        .says(["x.sh, whose current content you have not approved"]);
    assert_eq!(ran(&sandbox), "ran\n");
}

#[test]
fn script_of_a_workspace_that_the_users_own_file_names_is_asked_about_once() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    write_script(&sandbox, "one");
    sandbox.configure("conversation.attachments = ['cmd:sh x.sh', 'cmd:cat x.sh']\n");
    sandbox
        .fail("q --new x", 1)
        .says(["`sh x.sh`", "whose current content you have not approved"]);
    assert_eq!(ran(&sandbox), "");
    let mut terminal = sandbox.terminal("q --new x");
    let question = "Attaching the output of `sh x.sh` runs x.sh, whose current content you have not approved. Run it?";
    terminal.answer(question, "y\n");
    assert_eq!(terminal.wait(), 0, "{}", terminal.output());
    sandbox.run("q --new x");
    assert_eq!(ran(&sandbox), "one\none\n");
    sandbox.configure("");
    sandbox.run("q --new -c 'conversation.attachments+=cmd:sh x.sh' x");
}

#[test]
fn command_whose_script_has_changed_is_not_run_to_see_whether_its_output_has() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    write_script(&sandbox, "one");
    let watched = "conversation.attachments = [{ type = 'cmd', path = 'sh', params = { arg = ['x.sh'] }, refresh = 'notify' }]\n\
         conversation.tools.refresh_resource.run = 'unattended'\n";
    sandbox.prepend_config(watched);
    sandbox.run("q --new -a 'cmd:sh x.sh' x");
    sandbox.run("q y");
    assert_eq!(
        ran(&sandbox),
        "one\none\n",
        "it is run again as the user approved it"
    );
    write_script(&sandbox, "two");
    sandbox.run("q z").says([
        "can't tell whether",
        "it runs x.sh, whose current content you have not approved",
        "hint: attach it once",
    ]);
    assert_eq!(ran(&sandbox), "");
}

#[test]
fn refresh_that_skips_an_unapproved_script_fails_with_a_hint() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    write_script(&sandbox, "one");
    sandbox.write("a.txt", "old");
    sandbox.run("q --new -a 'cmd:sh x.sh' -a a.txt x");
    assert_eq!(ran(&sandbox), "one\n");
    write_script(&sandbox, "two");
    sandbox.write("a.txt", "new");
    let words = [
        "skipped: failed to attach the output of `sh x.sh`",
        "hint: pass `--yes` to run it.",
    ];
    let run = sandbox.fail("resource refresh", 1).says(words);
    assert!(
        run.stderr.contains("a.txt has a new snapshot"),
        "the rest is refreshed: {}",
        run.stderr
    );
    let run = sandbox.fail("resource refresh -F json", 1).says(words);
    assert_contains(&run.stdout, "\"unchanged\"");
    assert_eq!(ran(&sandbox), "");
    let run = sandbox.run("resource refresh --yes");
    assert_contains(&run.stderr, "sh x.sh has a new snapshot");
    assert_eq!(ran(&sandbox), "two\n");
}

#[test]
fn ctrl_c_at_the_question_of_a_refresh_is_no_skip() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    write_script(&sandbox, "one");
    sandbox.run("q --new -a 'cmd:sh x.sh' x");
    assert_eq!(ran(&sandbox), "one\n");
    write_script(&sandbox, "two");
    let mut terminal = sandbox.terminal("resource refresh");
    terminal.answer("Run it? [y/N]", "\u{3}");
    assert_eq!(terminal.wait(), 130, "{}", terminal.output());
    assert_lacks(terminal.output(), "skipped");
    assert_eq!(ran(&sandbox), "");
}

#[test]
fn model_does_not_refresh_a_command_whose_script_has_changed() {
    let (sandbox, _) = Sandbox::with_answer("Seen.");
    write_script(&sandbox, "one");
    sandbox.configure("conversation.tools.refresh_resource.run = 'unattended'");
    sandbox.run("q --new -a 'cmd:sh x.sh' look");
    let refreshing = |sandbox: Sandbox| {
        let call = testing::calling(&[("refresh_resource", json!({"uri": "cmd://sh?arg=x.sh"}))]);
        let server = testing::playing(vec![call, testing::answer("Done.")]);
        let sandbox = sandbox.with_server(&server);
        sandbox.jp("q again");
        (testing::results(&server).pop().unwrap(), sandbox)
    };
    let (result, sandbox) = refreshing(sandbox);
    assert_lacks(&result, "refused");
    assert_eq!(ran(&sandbox), "one\none\n");
    write_script(&sandbox, "two");
    let (result, sandbox) = refreshing(sandbox);
    assert_contains(&result, "there is no terminal");
    assert_eq!(ran(&sandbox), "");
}
