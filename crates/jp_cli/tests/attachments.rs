//! Attachments: which are possible, and what the conversation stores of them.

use std::{fs, os::unix::ffi::OsStrExt as _, process::Stdio};

use serde_json::{Value, json};
use testing::{
    Sandbox, assert_contains, assert_count, assert_fields, assert_lacks, assert_starts, items,
    last_message, texts,
};

fn names(rows: &Value) -> Vec<&str> {
    items(rows)
        .iter()
        .map(|row| row["name"].as_str().unwrap_or("-"))
        .collect()
}

#[test]
fn directory_gives_its_unignored_files_in_order() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    for path in [
        "src/b.rs",
        "src/a.rs",
        "src/sub/c.rs",
        "src/skip.log",
        "src/gen/x.rs",
        "src/.hidden",
    ] {
        sandbox.write(path, path);
    }
    sandbox.write(".gitignore", "*.log\n");
    sandbox.run("q --new -a src -a !src/gen/ what?");
    let rows = sandbox.json("resource ls");
    assert_eq!(
        names(&rows),
        ["src/.hidden", "src/a.rs", "src/b.rs", "src/sub/c.rs"]
    );
    sandbox.run("q -a src/skip.log 'and this?'");
    assert_contains(last_message(&server), "src/skip.log");
}

#[test]
fn strange_names_survive_attaching() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let strange = [
        "with space.txt",
        "a#b",
        "100%.txt",
        "%41.txt",
        "it's \"quoted\"",
        "🌱.md",
        "two\nlines",
        "a[1].txt",
        "q?.txt",
        "é",
        "e\u{301}",
    ];
    for name in strange {
        sandbox.write(name, name);
    }
    let mut arguments = vec!["q", "--new", "what?"];
    strange
        .iter()
        .for_each(|name| arguments.extend(["-a", name]));
    sandbox.run(&arguments);
    let rows = sandbox.json("resource ls");
    assert_eq!(names(&rows), strange);
    let uris = texts(items(&rows), "uri");
    assert!(
        uris.iter()
            .all(|uri| uri.is_ascii() && !uri.contains([' ', '"', '\n'])),
        "{uris:?}"
    );
    for (name, uri) in strange.iter().zip(&uris) {
        assert_eq!(sandbox.run(&["resource", "show", uri]).stdout, *name);
    }
    assert_eq!(items(&sandbox.json("attachment ls")).len(), strange.len());
    sandbox.run("q again?");
    assert_eq!(
        sandbox.json("resource ls"),
        rows,
        "nothing is attached twice"
    );
}

#[test]
fn what_cannot_be_attached_stops_the_query_before_anything_is_stored() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("ok.txt", "fine");
    fs::create_dir(sandbox.path("empty")).unwrap();
    fs::File::create(sandbox.path("huge"))
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    sandbox.make_fifo("fifo");
    sandbox.link("loop", "loop");
    for (input, words) in [
        ("missing.rs", vec!["\"missing.rs\"", "does not exist"]),
        ("*.nothing", vec!["*.nothing", "matches"]),
        ("empty", vec!["empty", "no file"]),
        (
            "huge",
            vec![
                "huge",
                "3221225472 bytes",
                "conversation.attachment.max_bytes",
            ],
        ),
        (
            "fifo",
            vec![
                "is a pipe",
                "hint: pipe the content in: `COMMAND | jp query -a - …`",
            ],
        ),
        (
            "/dev/fd/0",
            vec![
                "is a pipe",
                "hint: pipe the content in: `COMMAND | jp query -a - …`",
            ],
        ),
        (
            "/proc/version",
            vec![
                "the system generates the content of",
                "hint: `-a 'cmd:cat /proc/version'`",
            ],
        ),
        ("file:", vec!["attach an empty name"]),
        ("loop", vec!["loop"]),
        ("gopher://example.com/", vec!["gopher:", "not supported"]),
        ("external:00/x", vec!["attach its source again"]),
        ("!ok.txt", vec!["exclude"]),
    ] {
        let mut command = sandbox.command(&["q", "--new", "-a", "ok.txt", "-a", input, "what?"]);
        if input == "/dev/fd/0" {
            command.stdin(Stdio::piped());
        }
        let run = testing::run(command);
        if input == "!ok.txt" {
            // The only file is excluded, which is the only error.
            assert_contains(&run.stderr, "excluded");
            continue;
        }
        run.failed(1).says(words);
        assert!(!sandbox.path(".jp/conversations").exists(), "{input}");
        let blobs = sandbox.files(".jp/blobs");
        assert_eq!(blobs, Vec::<std::path::PathBuf>::new(), "{input}");
    }
}

#[test]
fn skipped_unavailable_is_reported() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("ok.txt", "fine");
    sandbox.write("big.txt", "x".repeat(2000));
    let limit = "conversation.attachment.max_bytes=1KB";
    sandbox
        .fail(
            &[
                "q", "--new", "-c", limit, "-a", "ok.txt", "-a", "big.txt", "?",
            ],
            1,
        )
        .says(["--skip-unavailable"]);
    let run = sandbox.run(&[
        "q",
        "--new",
        "-c",
        limit,
        "--skip-unavailable",
        "-a",
        "ok.txt",
        "-a",
        "big.txt",
        "?",
    ]);
    assert_contains(&run.stderr, "skipped");
    assert_contains(&run.stderr, "big.txt");
    assert_eq!(names(&sandbox.json("resource ls")), ["ok.txt"]);
}

#[test]
#[cfg(target_os = "linux")]
fn name_that_is_not_utf8_is_named_in_the_error() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let name = std::ffi::OsStr::from_bytes(b"bad\xff.txt");
    fs::write(sandbox.root.join(name), "x").unwrap();
    sandbox.fail("q --new -a . what?", 1).says(["bad", "UTF-8"]);
    let mut arguments: Vec<&std::ffi::OsStr> = ["q", "--new", "what?", "-a"]
        .iter()
        .map(std::ffi::OsStr::new)
        .collect();
    arguments.push(name);
    let run = sandbox.jp(&arguments);
    assert_ne!(run.code, 0, "{run:?}");
}

#[test]
fn directory_loop_is_reported() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("src/a.rs", "x");
    sandbox.link("../src", "src/again");
    let run = sandbox.run("q --new -a src what?");
    assert_contains(&run.stderr, "link to a directory");
    assert_eq!(names(&sandbox.json("resource ls")), ["src/a.rs"]);
}

#[test]
fn workspace_under_a_symlink_is_the_same_workspace() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    sandbox.link(&sandbox.root, "~/link");
    let through_link = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.current_dir(sandbox.home.join("link"));
        testing::run(command).succeeded()
    };
    through_link(&["q", "--new", "-a", "a.txt", "what?"]);
    sandbox.run("q -a a.txt again?");
    let rows = sandbox.json("resource ls");
    assert_eq!(rows[0]["uri"], rows[1]["uri"]);
    assert_eq!(items(&sandbox.json("attachment ls")).len(), 1);
}

#[test]
fn link_out_of_the_workspace_is_reported_as_external() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let outside = sandbox.write("~/outside/notes.md", "# Notes");
    sandbox.link(outside, "notes.md");
    let run = sandbox.run("q --new -a notes.md what?");
    assert_contains(&run.stderr, "points outside the workspace");
    assert_starts(
        sandbox.json("resource ls")[0]["uri"].as_str().unwrap(),
        "external:",
    );
}

#[test]
fn binary_file_is_attached_with_a_warning_that_models_miss_it() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("data.bin", [0, 159, 146, 150]);
    let run = sandbox.run("q --new -a data.bin what?");
    assert_contains(&run.stderr, "data.bin");
    assert_contains(&run.stderr, "not shown");
    assert_contains(last_message(&server), "data.bin");
    let mut show = sandbox.command("resource show data.bin");
    assert_eq!(show.output().unwrap().stdout, [0, 159, 146, 150]);
}

#[test]
fn attachments_change_with_the_next_message() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    sandbox.write("~/outside/notes.md", "outside");
    sandbox.run("q --new start");
    sandbox.run("attachment add a.txt ~/outside/notes.md");
    let rows = sandbox.json("attachment ls");
    assert_eq!(
        rows[0],
        json!({"declaration": "file:a.txt", "kind": "workspace", "uri": null, "name": null, "size": null, "turn": null})
    );
    assert_fields!(rows[1], {"kind": "external", "name": "notes.md", "turn": null});
    sandbox.run("q look");
    assert_contains(last_message(&server), "abc");
    assert_contains(last_message(&server), "outside");
    let rows = sandbox.json("attachment ls");
    assert_eq!((&rows[0]["turn"], &rows[1]["turn"]), (&json!(2), &json!(2)));

    sandbox.run("attachment rm a.txt notes.md");
    assert_eq!(sandbox.json("attachment ls"), json!([]));
    sandbox.run("q 'still there?'");
    assert_eq!(items(&sandbox.json("resource ls")).len(), 2);
    sandbox.fail("attachment rm a.txt", 1).says([
        "a.txt is not attached",
        "hint: the conversation has no attachments",
    ]);
}

#[test]
fn vanished_file_of_the_configuration_names_the_way_out() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new before");
    let attachments = "[conversation]\nattachments = [\"file:gone.md\", \"cmd:no-such-program\"]\n";
    sandbox.append_config(attachments);
    sandbox.fail("q --new what?", 1).says([
        "gone.md",
        "1 more",
        "the configuration attaches file:gone.md cmd://no-such-program",
    ]);
    sandbox.fail("q what?", 1).says([
        "gone.md",
        "`jp attachment rm file:gone.md cmd://no-such-program`",
    ]);
    let id = sandbox.json("c ls")[0]["id"].as_str().unwrap().to_owned();
    sandbox.fail(&["q", "-i", &id, "what?"], 1).says([&format!(
        "`jp attachment rm file:gone.md cmd://no-such-program -i {id}`"
    )]);
    sandbox.run("attachment rm file:gone.md cmd:no-such-program");
    sandbox.run("q what?");
}

#[test]
fn only_the_user_may_attach_files_outside() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("~/id_rsa", "PRIVATE");
    sandbox.link(sandbox.home.join("id_rsa"), "link");
    let attachments = "[conversation]\nattachments = ['~/id_rsa', 'link', '../../id_rsa']\n";
    let config = sandbox.read(".jp/config.toml");
    sandbox.write(".jp/config.toml", format!("{config}{attachments}"));
    let run = sandbox.run("q --new -c conversation.attachments+=.jp/.id what?");
    assert_count(&run.stderr, "is left out", 3);
    sandbox.write(".jp/config.toml", config);
    let delta = json!({"conversation":{"attachments":{"add":["file:../../id_rsa","file:link","file:///etc/hostname"]}}});
    sandbox.prepend_delta(&delta);
    let run = sandbox.run("q again?");
    assert_count(&run.stderr, "is left out", 3);
    for request in server.received() {
        assert_lacks(String::from_utf8_lossy(&request.body), "PRIVATE");
    }
    // The user may attach any file.
    sandbox.run("q -a link mine");
    assert_contains(last_message(&server), "PRIVATE");
}

#[test]
fn directory_of_a_workspace_or_a_history_does_not_lead_out_by_its_links() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("~/history.txt", "PRIVATE");
    sandbox.write("docs/a.md", "public");
    sandbox.link(sandbox.home.join("history.txt"), "docs/link");
    let config = sandbox.read(".jp/config.toml");
    for declared in ["docs", "docs/*", "file:docs/"] {
        sandbox.write(
            ".jp/config.toml",
            format!("conversation.attachments = [\"{declared}\"]\n{config}"),
        );
        let run = sandbox.run("q --new what?");
        assert_contains(
            &run.stderr,
            "\"docs/link\" points outside the workspace and was left out",
        );
        assert_contains(last_message(&server), "public");
        assert_lacks(last_message(&server), "PRIVATE");
    }
    sandbox.write(".jp/config.toml", config);
    sandbox.run("q --new -a docs mine");
    assert_contains(last_message(&server), "PRIVATE");
    sandbox.run("conversation fork --turns 0");
    sandbox.run("q again");
    // A history can be a stranger's.
    assert_lacks(last_message(&server), "PRIVATE");
}

#[test]
fn declaration_of_a_history_that_cannot_be_read_is_said() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a");
    sandbox.run("q --new start");
    let delta = json!({"conversation":{"attachments":{"add":[{"type":"file"},"file:a.txt"]}}});
    sandbox.prepend_delta(&delta);
    for arguments in [["attachment", "ls"], ["q", "and now?"]] {
        let run = sandbox.run(&arguments);
        let warning =
            r#"can't be read: {"type":"file"}: a declaration table needs `path` as a string"#;
        assert_count(&run.stderr, warning, 1);
    }
    assert_eq!(names(&sandbox.json("resource ls")), ["a.txt"]);
}

#[test]
#[cfg(target_os = "linux")]
fn clipboard_is_that_of_the_desktop_that_the_command_runs_on() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let program = sandbox.write_program(
        "~/bin/wl-paste",
        "#!/bin/sh\necho \"copied on $WAYLAND_DISPLAY\"\n",
    );
    let query = |display: &str| {
        let mut command = sandbox.command("q --new -a clip: ?");
        let path = format!(
            "{}:/usr/bin:/bin",
            testing::shown(program.parent().unwrap())
        );
        command.env("PATH", path).env("WAYLAND_DISPLAY", display);
        testing::run(command)
    };
    query("wayland-7").succeeded();
    assert_contains(last_message(&server), "copied on wayland-7");
    query("")
        .failed(1)
        .says(["neither WAYLAND_DISPLAY nor DISPLAY is set"]);
}

#[test]
fn history_does_not_loosen_what_the_person_set() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.configure("conversation.attachment.max_bytes = '10B'\n");
    sandbox.write("a.txt", "more than ten bytes");
    sandbox.run("q --new start");
    let delta = json!({"conversation":{"attachment":{"max_bytes":"1GB","secrets":"off"}}});
    sandbox.prepend_delta(&delta);
    sandbox.fail("q -a a.txt x", 1).says(["the 10 that"]);
}

#[test]
fn exclude_of_an_earlier_message_does_not_keep_out_what_is_named_outright() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a");
    sandbox.write("x.lock", "locked");
    sandbox.run("q --new -a . -a !*.lock one");
    sandbox.run("q -a . two");
    assert_lacks(last_message(&server), "locked");
    let run = sandbox.run("q -a x.lock three");
    assert!(last_message(&server).contains("locked"), "{}", run.stderr);
    sandbox.run("attachment add x.lock");
    let rows = sandbox.run("attachment ls").stdout;
    assert_contains(&rows, "turn 3, again with the next");
    sandbox.run("q four");
    assert_contains(last_message(&server), "locked");
}

#[test]
fn part_of_a_directory_is_not_removed_but_it_is_said_how_to() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("src/a.txt", "a");
    sandbox.write("src/b.txt", "b");
    sandbox.write("~/out/c.txt", "c");
    let long = format!("data:text/plain,{}", "y".repeat(500));
    sandbox.run(&[
        "q",
        "--new",
        "-a",
        "src",
        "-a",
        &long,
        "-a",
        "~/out/*.txt",
        "one",
    ]);
    sandbox.fail("attachment rm src/a.txt", 1).says([
        "src/a.txt is a part of the attachment file:src/",
        "jp attachment rm 'file:src/'",
        "jp attachment add '!src/a.txt'",
    ]);
    sandbox.run(&["attachment", "rm", "src", &long, "~/out/*.txt"]);
    assert_eq!(sandbox.json("attachment ls"), json!([]));
}

#[test]
fn removing_takes_exactly_what_adding_declared() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a");
    sandbox.write("src/b.txt", "b");
    sandbox.write("~/out/c.txt", "c");
    let inputs = ["~/out/c.txt", "cmd:echo hi", "a.txt", "data:,x", "!*.log"];
    let mut arguments = vec!["q", "--new", "what?"];
    inputs
        .iter()
        .for_each(|input| arguments.extend(["-a", input]));
    sandbox.run(&arguments);
    let declared = || -> Vec<String> {
        let rows = sandbox.json("attachment ls");
        items(&rows)
            .iter()
            .map(|row| row["declaration"].as_str().unwrap().to_owned())
            .collect()
    };
    let before = declared();
    assert_eq!(before.len(), inputs.len());
    for name in [".", "./", "src/..", "src"] {
        sandbox.fail(&["attachment", "rm", name], 1).says([
            &format!("{name} is not attached to conversation"),
            "'cmd://echo?arg=hi'",
            "'file:a.txt'",
        ]);
        sandbox
            .fail(&["attachment", "rm", "a.txt", name], 1)
            .says(["is not attached"]);
    }
    assert_eq!(declared(), before);
    sandbox.run("attachment add .");
    sandbox.run("attachment rm .");
    assert_eq!(declared(), before);
}

#[test]
fn walk_says_which_links_it_left_out() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "a");
    sandbox.write("ignd/s.txt", "s");
    sandbox.write(".gitignore", "ignd/\n");
    for (target, name) in [("ignd/s.txt", "l.txt"), (".jp/config.toml", "j.txt")] {
        sandbox.link(target, name);
    }
    let stderr = sandbox.run("q --new -a . what?").stderr;
    assert_contains(
        &stderr,
        r#""l.txt" is a link to an ignored file and was left out"#,
    );
    assert_contains(&stderr, r#""j.txt" is a link into ".jp" and was left out"#);
    assert_eq!(names(&sandbox.json("resource ls")), [".gitignore", "a.txt"]);
}

#[test]
fn exclude_by_name_holds_outside_the_workspace_too() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("~/outside/a.md", "a");
    sandbox.write("~/outside/a.key", "secret");
    sandbox.run("q --new -a ~/outside -a !*.key what?");
    assert_eq!(names(&sandbox.json("resource ls")), ["a.md"]);
}

#[test]
fn exclude_by_path_outside_the_workspace_warns_that_it_counts_once() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("~/outside/a.md", "a");
    sandbox.write("~/outside/private/b.md", "b");
    let arguments = [
        "q",
        "--new",
        "-a",
        "~/outside",
        "-a",
        "!~/outside/private",
        "what?",
    ];
    let run = sandbox.run(&arguments);
    assert_contains(
        &run.stderr,
        "warning: `!~/outside/private` applies to this command only",
    );
    assert_eq!(names(&sandbox.json("resource ls")), ["a.md"]);
    let run = sandbox.run("q --new -a ~/outside -a !*.key what?");
    assert_lacks(&run.stderr, "applies to this command only");
}

#[test]
fn directory_outside_is_removed_by_the_name_it_was_attached_by() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("~/outside/a.md", "a");
    sandbox.write("~/outside/more/b.md", "b");
    sandbox.run("q --new -a ~/outside what?");
    sandbox.run("attachment rm ~/outside");
    assert_eq!(sandbox.json("attachment ls"), json!([]));
}

#[test]
fn configured_files_outside_the_workspace_are_attached_to_each_new_conversation_once() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("~/guides/style.md", "tabs");
    sandbox.write("~/guides/more/naming.md", "nouns");
    sandbox.configure("conversation.attachments = ['~/guides/style.md', '~/guides/more']\n");
    for _ in 0..2 {
        sandbox.run("q --new one");
        assert_eq!(
            names(&sandbox.json("resource ls")),
            ["style.md", "naming.md"]
        );
        sandbox.run("q two");
        assert_eq!(
            names(&sandbox.json("resource ls")),
            ["style.md", "naming.md"]
        );
    }
}

#[test]
fn fork_resolves_only_trimmed_snapshots_again() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "first");
    sandbox.write("~/outside/notes.md", "outside");
    sandbox.run("q --new -a a.txt -a ~/outside/notes.md one");
    sandbox.run("q two");
    let original = sandbox.json("conversation show")["id"]
        .as_str()
        .unwrap()
        .to_owned();
    sandbox.write("a.txt", "second");

    let fork = sandbox.json("conversation fork");
    assert_eq!(fork["turns"], 2);
    sandbox.run("q three");
    assert_eq!(names(&sandbox.json("resource ls")).len(), 2);

    sandbox.json(&["conversation", "fork", &original, "--turns", "1"]);
    sandbox.run("q three");
    let message = last_message(&server);
    assert_contains(&message, "second");
    assert_contains(&message, "outside");
    assert_lacks(&message, "first");
    assert_eq!(
        items(&sandbox.json(&["resource", "ls", "-i", &original])).len(),
        2,
        "the original is untouched"
    );
}

#[test]
fn attaching_an_unchanged_tree_again_creates_no_file() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    for index in 0..20 {
        sandbox.write(&format!("src/{index}.txt"), format!("file {index}"));
    }
    sandbox.run("q --new -a src one");
    let before = sandbox.files(".jp");
    sandbox.run("q -a src two");
    assert_eq!(sandbox.files(".jp"), before);
}
