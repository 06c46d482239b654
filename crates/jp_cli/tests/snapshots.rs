//! Snapshots over a conversation's life: taken once, refreshed, printed, piped in.

use std::{
    fs,
    io::{Read as _, Write as _},
    process::Stdio,
};

use serde_json::{Value, json};
use testing::{
    Run, Sandbox, assert_contains, assert_fields, assert_lacks, assert_starts, finish, items,
    last_message,
};

fn piped(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) -> Run {
    let mut command = sandbox.command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Fails where the command does not read it.
    _ = child.stdin.take().unwrap().write_all(input);
    finish(child)
}

fn column(rows: &Value, key: &str) -> Vec<Value> {
    testing::column(items(rows), key)
}

#[test]
fn piped_stdin_is_a_resource_only_if_it_is_attached() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    piped(
        &sandbox,
        &["q", "--new", "-a", "-", "what is this?"],
        b"from a pipe\n",
    )
    .succeeded();
    let message = last_message(&server);
    assert_contains(&message, "<resource uri=\"stdin:");
    assert_contains(&message, "from a pipe");
    assert_starts(&message, "what is this?\n<resource");
    let row = sandbox.json("attachment ls")[0].clone();
    assert_fields!(row, {"kind": "stdin", "name": "stdin", "turn": 1});
    let checksum = sandbox.json("resource ls")[0]["checksum"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(row["uri"], json!(format!("stdin:{checksum}")));

    piped(&sandbox, &["q", "and this?"], b"more\n").succeeded();
    assert_eq!(last_message(&server), "more\n\nand this?");
    assert_eq!(items(&sandbox.json("resource ls")).len(), 1);

    piped(&sandbox, &["q", "-a", "-", "x"], b"")
        .failed(1)
        .says(["stdin", "it is empty", "--skip-unavailable"]);
    piped(&sandbox, &["attachment", "add", "-"], b"kept for later").succeeded();
    sandbox.run("q now?");
    assert_contains(last_message(&server), "kept for later");
}

#[test]
fn stdin_of_a_turn_that_a_fork_lacks_is_taken_along() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    piped(&sandbox, &["q", "--new", "-a", "-", "one"], b"from a pipe").succeeded();
    sandbox.run("q two");
    sandbox.run("conversation fork --turns 1");
    sandbox.run("q three");
    assert_contains(last_message(&server), "from a pipe");
}

#[test]
fn long_data_url_is_not_repeated() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let long = format!("data:text/plain,{}", "y".repeat(500));
    sandbox.run(&[
        "q",
        "--new",
        "-a",
        "data:text/markdown,%23%20Hi",
        "-a",
        &long,
        "what?",
    ]);
    let message = last_message(&server);
    assert!(
        message.contains("# Hi") && message.contains(&"y".repeat(500)),
        "{message}"
    );
    let rows = sandbox.json("attachment ls");
    assert_eq!(rows[0]["uri"], "data:text/markdown,%23%20Hi");
    assert_starts(rows[1]["uri"].as_str().unwrap(), "data:text/plain;sha256=");
    let stored = fs::read_to_string(sandbox.events_path()).unwrap();
    assert!(!stored.contains(&"y".repeat(100)));
    sandbox
        .fail("q -a data:text/plain;base64,% x", 1)
        .says(["base64"]);
}

#[test]
fn refresh_takes_a_snapshot_now_that_goes_with_the_next_message() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("src/a.txt", "a1");
    sandbox.write("src/b.txt", "b1");
    sandbox.write("~/outside.txt", "outside");
    sandbox.run("q --new -a src -a ~/outside.txt one");
    let report = sandbox.json("resource refresh src/a.txt");
    assert_eq!(report, json!({"refreshed": [], "unchanged": ["src/a.txt"]}));
    let before = sandbox.events().len();

    sandbox.write("src/a.txt", "a2");
    sandbox.write("src/b.txt", "b2");
    let report = sandbox.json("resource refresh src/a.txt");
    assert_eq!(report, json!({"refreshed": ["src/a.txt"], "unchanged": []}));
    assert_eq!(sandbox.events().len(), before + 1);
    let rows = sandbox.json("attachment ls");
    assert_eq!(
        column(&rows, "name"),
        ["src/a.txt", "src/b.txt", "outside.txt"]
    );
    assert_eq!(column(&rows, "turn"), [Value::Null, json!(1), json!(1)]);

    // A snapshot no longer changes, even if no message has sent it yet.
    sandbox.write("src/a.txt", "a3");
    sandbox.run("q two");
    let message = last_message(&server);
    assert_contains(&message, "a2");
    assert_lacks(&message, "a3");
    assert_lacks(&message, "b2");
    sandbox.run("q three");
    assert_eq!(last_message(&server), "three");

    let run = sandbox.run("resource refresh");
    assert_contains(&run.stderr, "src/a.txt has a new snapshot");
    assert_contains(&run.stderr, "src/b.txt has a new snapshot");
    assert_contains(&run.stderr, "Skipped 1 snapshot that can't be read again");
    sandbox
        .fail("resource refresh outside.txt", 1)
        .says(["can't be read again", "attach the file"]);
    sandbox
        .fail("resource refresh nothing", 1)
        .says(["nothing is not attached"]);
}

#[test]
fn refreshed_snapshot_of_a_turn_that_a_fork_lacks_is_taken_anew() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a1");
    sandbox.write("b.txt", "b1");
    sandbox.run("q --new -a *.txt one");
    sandbox.write("a.txt", "a2");
    sandbox.run("resource refresh a.txt");
    sandbox.run("q two");
    sandbox.run("q three");
    sandbox.write("a.txt", "a3");
    sandbox.run("conversation fork --turns 1");
    sandbox.run("q four");
    let message = last_message(&server);
    assert_contains(&message, "a3");
    assert_contains(&message, "b1");
    assert_lacks(&message, "a2");
}

#[test]
fn refreshed_directory_brings_new_files() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("src/a.txt", "a1");
    sandbox.write("src/b.txt", "b1");
    sandbox.run("q --new -a src one");
    sandbox.write("src/a.txt", "a2");
    sandbox.run("resource refresh src/a.txt");
    sandbox.write("src/b.txt", "b2");
    sandbox.write("src/c.txt", "c1");
    let report = sandbox.json("resource refresh src/b.txt");
    assert_eq!(report, json!({"refreshed": ["src/b.txt"], "unchanged": []}));
    let report = sandbox.json("resource refresh src");
    assert_eq!(
        report,
        json!({"refreshed": ["src/c.txt"], "unchanged": ["src/a.txt", "src/b.txt"]})
    );
    sandbox.run("q two");
    let message = last_message(&server);
    assert!(
        ["a2", "b2", "c1"].iter().all(|text| message.contains(text)),
        "{message}"
    );
    // Declarations that were removed and added again are sent again as a whole.
    sandbox.run("attachment rm src");
    sandbox.run("attachment add src");
    sandbox.run("resource refresh src/a.txt");
    sandbox.run("q three");
    let message = last_message(&server);
    assert!(
        ["a2", "b2", "c1"].iter().all(|text| message.contains(text)),
        "{message}"
    );
}

#[test]
fn fork_keeps_a_refresh_without_its_turn() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("src/a.txt", "a1");
    sandbox.write("src/b.txt", "b1");
    sandbox.run("q --new -a src one");
    let original = sandbox.json("conversation show")["id"]
        .as_str()
        .unwrap()
        .to_owned();
    sandbox.write("src/a.txt", "a2");
    sandbox.run("resource refresh src/a.txt");
    for turns in ["0", "1"] {
        sandbox.run(&["conversation", "fork", &original, "--turns", turns]);
        sandbox.run("q next");
        let message = last_message(&server);
        let has_b = message.contains("b1");
        assert!(
            message.contains("a2") && has_b == (turns == "0"),
            "{turns}: {message}"
        );
        sandbox.run(&["conversation", "use", &original]);
    }
    sandbox.run("q two");
    sandbox.run("conversation fork --turns 1");
    sandbox.run("q three");
    assert_contains(last_message(&server), "b1");
    sandbox.run(&["conversation", "use", &original]);
    sandbox.run("attachment rm src");
    sandbox.run("conversation fork --turns 1");
    assert_eq!(
        sandbox.json("attachment ls"),
        json!([]),
        "a removal survives"
    );
}

#[test]
fn removal_survives_a_fork() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    sandbox.write("b.txt", "def");
    sandbox.prepend_config("conversation.attachments = [\"a.txt\", \"b.txt\"]");
    sandbox.run("q --new one");
    sandbox.run("attachment rm a.txt");
    for turns in ["9", "1", "0"] {
        sandbox.run(&["conversation", "fork", "--turns", turns]);
        assert_eq!(
            column(&sandbox.json("attachment ls"), "declaration"),
            ["file:b.txt"],
            "{turns}"
        );
        sandbox.run("q two");
        assert!(!last_message(&server).contains("abc"), "{turns}");
    }
}

#[test]
fn print_reads_only_what_was_not_sent() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a1\n");
    sandbox.write("b.txt", "b1\n");
    sandbox.write("data.bin", [0, 159, 146, 150]);
    sandbox.run("q --new -a a.txt -a data.bin one");
    sandbox.write("a.txt", "a2\n");
    sandbox.run("attachment add b.txt");
    let events = sandbox.events();

    let run = sandbox.run("attachment print a.txt");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("a1\n", ""));
    let run = sandbox.run("attachment print b.txt");
    assert_eq!(run.stdout, "b1\n");
    assert_contains(&run.stderr, "file:b.txt was not sent yet");
    let run = sandbox.run("attachment print");
    assert_eq!(
        run.stdout,
        "==> a.txt <==\na1\n\n==> data.bin <==\n[application/octet-stream, 4 bytes]\n\n==> b.txt <==\nb1\n"
    );
    let mut binary = sandbox.command("attachment print data.bin");
    assert_eq!(binary.output().unwrap().stdout, [0, 159, 146, 150]);
    let rows = sandbox.json("attachment print data.bin");
    assert_fields!(rows[0], {"blob": "AJ+Slg==", "name": "data.bin"});
    sandbox
        .fail("attachment print c.txt", 1)
        .says(["c.txt is not attached"]);
    assert_eq!(sandbox.events(), events, "nothing is stored");
}

#[test]
fn files_of_one_name_are_told_apart_without_their_path() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("~/one/config.yaml", "one");
    sandbox.write("~/two/config.yaml", "two");
    sandbox.run("q --new -a ~/one/config.yaml -a ~/two/config.yaml ?");
    let rows = sandbox.json("attachment ls");
    assert_eq!(column(&rows, "kind"), ["external", "external"]);
    assert_eq!(column(&rows, "name"), ["config.yaml", "config.yaml"]);
    let [first, second] = [0, 1].map(|row| rows[row]["uri"].as_str().unwrap().to_owned());
    assert_ne!(first, second);
    assert_eq!(sandbox.run(&["attachment", "print", &second]).stdout, "two");
    let run = sandbox
        .fail("resource show config.yaml", 1)
        .says(["name of 2 resources", &first]);
    assert_lacks(&run.stderr, "/one/");
    sandbox.run(&["attachment", "rm", &first]);
    assert_eq!(
        column(&sandbox.json("attachment ls"), "uri"),
        [json!(second)]
    );
}

#[test]
fn interrupt_while_attaching_stores_nothing() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let mut command = sandbox.command("q --new -v -a - one");
    let (reader, writer) = std::io::pipe().unwrap();
    command
        .stdin(reader)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut writer = writer;
    // More than a pipe holds: once it is written the command is reading.
    writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let code = child.wait().unwrap().code();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!((code, said.as_str()), (Some(130), "error: interrupted\n"));
    assert!(!sandbox.path(".jp/conversations").exists());
    drop(writer);
}
