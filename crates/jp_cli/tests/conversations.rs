//! `jp conversation`, `resource`, `storage`, `config` and `init`.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use testing::{
    Sandbox, assert_contains, assert_ends, assert_fields, assert_lacks, assert_starts, items, run,
};

fn with_two_conversations() -> (testing::Server, Sandbox, [String; 2]) {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    let id = |document: Value| document["conversation"].as_str().unwrap().to_owned();
    let first = id(sandbox.json("q --new -a a.txt 'The first question of all'"));
    let second = id(sandbox.json("q --new --title Second two"));
    (server, sandbox, [first, second])
}

#[test]
fn results_are_printed_with_their_calls() {
    let (sandbox, _) = Sandbox::with_replies(vec![
        testing::calling(&[
            ("read_file", json!({"path": "a.txt"})),
            ("read_file", json!({"path": "gone.txt"})),
        ]),
        testing::answer("Done."),
    ]);
    sandbox.write("a.txt", "content\n");
    sandbox.run("q --new look");
    let printed = sandbox.run("conversation print").stdout;
    insta::assert_snapshot!(printed, @r#"
    ## Turn 1

    look

    ### Tool call: read_file

    ```json
    {
      "path": "a.txt"
    }
    ```

    ### Tool result

    ```(a.txt)
    content
    ```

    ### Tool call: read_file

    ```json
    {
      "path": "gone.txt"
    }
    ```

    ### Tool error

    gone.txt does not exist. Use `list_files` to see what exists.

    Done.
    "#);
}

#[test]
fn list_marks_the_current_one_among_the_newest_first() {
    let (_server, sandbox, [first, second]) = with_two_conversations();
    let rows = sandbox.json("conversation ls");
    let row = |index: usize, key: &str| rows[index][key].clone();
    assert_eq!(
        (row(0, "id"), row(0, "title"), row(0, "current")),
        (json!(second), json!("Second"), json!(true))
    );
    assert_eq!(
        (row(1, "id"), row(1, "title"), row(1, "turns")),
        (json!(first), json!("The first question of all"), json!(1))
    );
    assert_eq!(
        (row(1, "local"), row(1, "current")),
        (json!(false), json!(false))
    );
    sandbox.run(&["c", "use", &first]);
    sandbox.run("q 'goes on with the first'");
    let rows = sandbox.json("conversation ls");
    assert_fields!(rows[1], {"turns": 2, "current": true});
    let text = sandbox.run("c ls").stdout;
    assert!(
        text.lines()
            .nth(1)
            .unwrap()
            .starts_with(&format!("* {first}  2 turns")),
        "{text}"
    );
}

#[test]
fn local_conversation_stays_out_of_the_workspace() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    sandbox.run("q --new --local -a a.txt mine");
    assert!(!sandbox.path(".jp/conversations").exists() && !sandbox.path(".jp/blobs").exists());
    assert_eq!(sandbox.json("c ls")[0]["local"], true);
    sandbox.run("q more");
    assert_eq!(sandbox.json("c show")["turns"], 2);
    assert_eq!(sandbox.run("r show a.txt").stdout, "abc");
}

#[test]
fn local_conversation_never_shares_an_id_with_one_of_the_workspace() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    for flags in [
        &["q", "--new", "a"][..],
        &["q", "--new", "--local", "b"],
        &["q", "--new", "c"],
    ] {
        sandbox.run(flags);
    }
    let rows = sandbox.json("c ls");
    let ids: std::collections::BTreeSet<_> = items(&rows)
        .iter()
        .map(|row| row["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 3, "{rows}");
}

#[test]
fn name_of_two_resources_is_not_enough() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("~/a/config.yaml", "a");
    sandbox.write("~/b/config.yaml", "b");
    sandbox.run("q --new -a ~/a/config.yaml -a ~/b/config.yaml x");
    sandbox
        .fail("r show config.yaml", 1)
        .says(["the name of 2 resources", "external:"]);
}

#[test]
fn print_shows_turns_in_both_formats() {
    let (_server, sandbox, [first, _]) = with_two_conversations();
    sandbox.run(&["q", "-i", &first, "And then?"]);
    let text = sandbox.run(&["c", "print", &first]).stdout;
    assert_starts(
        &text,
        "## Turn 1\n\nThe first question of all\n\n- attached: a.txt (3 B) <file:///",
    );
    assert_ends(&text, "## Turn 2\n\nAnd then?\n\nYes.\n\n");
    let document = sandbox.json(&["c", "print", &first, "--turn", "2"]);
    assert_eq!(items(&document["turns"]).len(), 1);
    assert_eq!(document["turns"][0]["events"][0]["content"], "And then?");
    sandbox
        .fail(&["c", "print", &first, "--turn", "3..x"], 2)
        .says(["not a range of turns"]);
}

#[test]
fn files_of_a_conversation_are_all_it_needs() {
    let (_server, sandbox, [first, _]) = with_two_conversations();
    let files = sandbox.run(&["c", "show", &first, "--files"]).stdout;
    let clone = Sandbox::new();
    fs::copy(sandbox.path(".jp/.id"), clone.path(".jp/.id")).unwrap();
    for file in files.lines() {
        let target = clone.root.join(file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(sandbox.root.join(file), target).unwrap();
    }
    assert_eq!(
        clone
            .jp(&["r", "show", "a.txt", "-i", &first])
            .succeeded()
            .stdout,
        "abc"
    );
    clone.jp(&["storage", "check"]).succeeded();
}

#[test]
fn removal_touches_no_other_conversation() {
    let (_server, sandbox, [first, second]) = with_two_conversations();
    sandbox.run(&["c", "rm", &second]);
    let rows = sandbox.json("c ls");
    assert_eq!((items(&rows).len(), &rows[0]["id"]), (1, &json!(first)));
    sandbox
        .fail(&["c", "rm", &second], 1)
        .says(["there is no conversation"]);
}

#[test]
fn versions_of_a_resource_are_chosen_by_number_or_checksum() {
    let (_server, sandbox, [first, _]) = with_two_conversations();
    sandbox.write("a.txt", "changed");
    sandbox.run(&["q", "-i", &first, "-a", "a.txt", "and now?"]);
    let rows = sandbox.json("r ls");
    let checksum = rows[0]["checksum"].as_str().unwrap();
    let show = |arguments: &[&str]| {
        sandbox
            .run(&[&["r", "show", "a.txt"], arguments].concat())
            .stdout
    };
    assert_eq!(
        [
            show(&[]),
            show(&["--version", "1"]),
            show(&["--version", &checksum[..12]])
        ],
        ["changed", "abc", "abc"]
    );
    assert_eq!(sandbox.json("r show a.txt")["text"], "changed");
    sandbox
        .fail("r show a.txt --version 3", 1)
        .says(["has no version 3", "2 versions"]);
    sandbox
        .fail("r show b.txt", 1)
        .says(["no resource b.txt", "hint: `jp resource ls`"]);
}

#[test]
fn check_names_the_conversation_of_a_damaged_blob() {
    let (_server, sandbox, [first, _]) = with_two_conversations();
    sandbox.run("storage check");
    let blob = sandbox.files(".jp/blobs").pop().unwrap();
    let mut bytes = fs::read(&blob).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&blob, bytes).unwrap();
    let run = sandbox.fail("storage check", 1).says(["1 problem"]);
    assert_contains(&run.stdout, &first);
    assert_contains(&run.stdout, "is damaged");
    sandbox
        .fail(&["r", "show", "a.txt", "-i", &first], 1)
        .says(["is damaged"]);
    sandbox
        .fail(&["q", "-i", &first, "x"], 1)
        .says(["is damaged"]);
}

#[test]
fn id_that_two_conversations_have_means_neither() {
    let (_server, sandbox, [_, second]) = with_two_conversations();
    let directory = sandbox.path(&format!(".jp/conversations/{second}-second"));
    fs::create_dir(sandbox.path(&format!(".jp/conversations/{second}-renamed"))).unwrap();
    for name in ["events.json", "metadata.json"] {
        fs::copy(
            directory.join(name),
            sandbox.path(&format!(".jp/conversations/{second}-renamed/{name}")),
        )
        .unwrap();
    }
    assert_eq!(items(&sandbox.json("conversation ls")).len(), 3);
    let said = [
        "two conversations have the id",
        "-renamed",
        "-second",
        "hint: rename or remove one",
    ];
    sandbox.fail("query more", 1).says(said);
    sandbox
        .fail(&["conversation", "print", &second], 1)
        .says(said);
    fs::remove_dir_all(directory).unwrap();
    sandbox.run("query more");
}

#[test]
fn check_tells_what_interrupted_writers_left() {
    let (_server, sandbox, _) = with_two_conversations();
    let directory = sandbox
        .files(".jp/conversations")
        .pop()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    let neighbour = format!(
        "{}/.tmp-4",
        directory.strip_prefix(sandbox.path("")).unwrap().display()
    );
    let leftovers = [
        ".jp/blobs/00/.tmp-1",
        ".jp/conversations/.tmp-2/events.json",
        ".jp/conversations/.tmp-5",
        ".jp/blobs/00/.tmp-3",
        &neighbour,
    ];
    for path in leftovers {
        sandbox.write(path, "half");
    }
    for path in [
        ".jp/blobs/00/.tmp-1",
        ".jp/conversations/.tmp-2",
        ".jp/conversations/.tmp-5",
    ] {
        let long_ago = SystemTime::now() - Duration::from_secs(7200);
        fs::File::open(sandbox.path(path))
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
    }
    let removed = "Removed 3 temporary files of an interrupted jp.";
    let left = "Kept 2 temporary files less than an hour old";
    assert_lacks(&sandbox.run("conversation show --files").stdout, ".tmp-");
    sandbox.run("storage check").says([removed, left]);
    let is_there = leftovers.map(|path| sandbox.path(path).exists());
    assert_eq!(is_there, [false, false, false, true, true]);
    let run = sandbox.run("storage check");
    assert_lacks(&run.stderr, "Removed");
    assert_contains(&run.stderr, left);
}

#[test]
fn file_that_git_could_not_merge_is_named_with_what_to_do() {
    let (_server, sandbox, _) = with_two_conversations();
    // The events are needed, and the metadata is not.
    for (name, code, advice) in [
        ("events.json", 1, "hint: "),
        ("metadata.json", 0, "has no title: "),
    ] {
        let file = sandbox
            .files(".jp/conversations")
            .into_iter()
            .rfind(|path| path.ends_with(name))
            .unwrap();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            format!("<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> theirs\n"),
        )
        .unwrap();
        let marks = format!("{advice}it contains git's conflict markers");
        sandbox.fail("c show", code).says([name, &marks]);
        fs::write(&file, "{").unwrap();
        let damaged = sandbox.fail("c show", code).says([name, "line 1"]);
        assert!(
            code == 0
                || damaged
                    .stderr
                    .contains("hint: fix it by hand, or restore it")
        );
        fs::write(&file, text).unwrap();
    }
}

/// A link in the workspace may have come with a clone.
#[cfg(unix)]
#[test]
fn check_removes_nothing_through_a_link() {
    let (_server, sandbox, _) = with_two_conversations();
    let outside = tempfile::tempdir().unwrap();
    let theirs = outside.path().join(".tmp-theirs");
    fs::write(&theirs, "theirs").unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    fs::File::open(&theirs)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    let theirs = [theirs, outside.path().join("0a/.tmp-theirs")];
    fs::create_dir(outside.path().join("0a")).unwrap();
    fs::rename(&theirs[0], &theirs[1]).unwrap();
    fs::hard_link(&theirs[1], &theirs[0]).unwrap();
    for link in [
        ".jp/conversations/link",
        ".jp/conversations/17000000000-link",
        ".jp/blobs/0a",
    ] {
        sandbox.link(outside.path(), link);
    }
    sandbox.jp("storage check");
    fs::rename(sandbox.path(".jp/blobs"), sandbox.path("blobs")).unwrap();
    sandbox.link(outside.path(), ".jp/blobs");
    sandbox.jp("storage check");
    assert!(theirs.iter().all(|path| path.exists()));
}

#[test]
fn status_counts_what_is_there() {
    let (_server, sandbox, _) = with_two_conversations();
    let rows = sandbox.json("storage status");
    assert_fields!(rows[0], {"conversations": 2, "blobs": 1});
    assert_eq!(rows[1]["conversations"], 0);
}

#[test]
fn config_shows_each_value_with_its_layer() {
    let (_server, sandbox, _) = with_two_conversations();
    sandbox.configure("conversation.attachment.max_files = 7\n");
    let entries = sandbox.json("config show -c conversation.attachment.max_bytes=1MB");
    let layer = |key: &str| {
        let entries = items(&entries);
        entries.iter().find(|entry| entry["key"] == key).unwrap()["layer"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(layer("assistant.model.id").contains(".jp/config.toml"));
    assert!(layer("conversation.attachment.max_files").contains(".config/jp/config.toml"));
    assert!(layer("conversation.attachment.max_bytes").contains("-c"));
    assert_eq!(layer("conversation.deduplication.enabled"), "default");
    sandbox.write(".jp/config.toml", "[conversation\n");
    sandbox
        .fail("config show", 1)
        .says([".jp/config.toml", "line 1"]);
    let path = sandbox.path(".jp/config.toml");
    fs::remove_file(&path).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    sandbox
        .fail("config show", 1)
        .says([".jp/config.toml", "it is a named pipe, not a regular file"]);
    fs::remove_file(&path).unwrap();
    sandbox.write(
        ".jp/config.toml",
        "conversation.attachment.max_bytes = 'lots'\n",
    );
    sandbox
        .fail("config show", 1)
        .says(["max_bytes", "lots", ".jp/config.toml"]);
    sandbox.write(".jp/config.toml", "assistent.model.id = 'a/b'\n");
    sandbox.run("config show").says(["unknown key `assistent`"]);
    sandbox
        .fail("config show -c assistent=1", 2)
        .says(["assistent"]);
}

#[test]
fn second_init_overwrites_nothing() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("init fresh");
    command.current_dir(&sandbox.home);
    run(command).succeeded();
    let config = sandbox.home.join("fresh/.jp/config.toml");
    assert!(config.exists());
    fs::write(&config, "# mine\n").unwrap();
    let mut command = sandbox.command("init");
    command.current_dir(sandbox.home.join("fresh"));
    assert_contains(run(command).succeeded().stderr, "already");
    assert_eq!(fs::read_to_string(config).unwrap(), "# mine\n");
}

#[test]
fn reading_commands_find_no_problems_while_others_write() {
    let (_server, sandbox, [first, second]) = with_two_conversations();
    let is_second = |path: &std::path::PathBuf| path.to_string_lossy().contains(&second);
    let events = sandbox
        .files(".jp/conversations")
        .into_iter()
        .find(is_second)
        .unwrap();
    let source = events.parent().unwrap();
    let copies: Vec<String> = (1..=80_u64)
        .map(|index| (10_000_000_000 + index).to_string())
        .collect();
    for id in &copies {
        let copy = sandbox.path(".jp/conversations").join(id);
        fs::create_dir(&copy).unwrap();
        for name in ["events.json", "metadata.json"] {
            fs::copy(source.join(name), copy.join(name)).unwrap();
        }
    }
    let (first, second) = (first.as_str(), second.as_str());
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| {
            sandbox.jp(&[
                &["c", "rm"],
                &*Vec::from_iter(copies.iter().map(String::as_str)),
            ]
            .concat())
        });
        let writing = scope.spawn(|| {
            for _ in 0..4 {
                sandbox.run(&["c", "fork", first]);
                sandbox.run(&["q", "-i", second, "more"]);
            }
        });
        let mut checks = 0;
        while checks < 5 || !removing.is_finished() || !writing.is_finished() {
            let checked = sandbox.run("storage check");
            assert!(
                checked.stdout.is_empty() && !checked.stderr.contains("warning"),
                "{checked:?}"
            );
            let listed = sandbox.run("c ls").stdout;
            assert_lacks(&listed, "unreadable");
            assert_lacks(&listed, "no title");
            checks += 1;
        }
        removing.join().unwrap().succeeded();
        writing.join().unwrap();
    });
}

#[test]
fn archived_conversations_are_read_only() {
    let (_server, sandbox, [first, second]) = with_two_conversations();
    let is_first = |path: &std::path::PathBuf| path.to_string_lossy().contains(&first);
    let events = sandbox
        .files(".jp/conversations")
        .into_iter()
        .find(is_first)
        .unwrap();
    let directory = events.parent().unwrap();
    let archive = sandbox.path(".jp/conversations/.archive");
    fs::create_dir(&archive).unwrap();
    fs::rename(directory, archive.join(directory.file_name().unwrap())).unwrap();

    let listed = sandbox.run("c ls");
    assert_contains(&listed.stdout, &second);
    assert_lacks(&listed.stdout, &first);
    assert_contains(
        &listed.stderr,
        "`jp conversation ls --archived` lists 1 archived conversation.",
    );
    let archived = sandbox.json("c ls --archived");
    assert_eq!(
        (&archived[0]["id"], &archived[0]["archived"], &archived[1]),
        (&json!(first), &json!(true), &json!(null))
    );
    let printed = sandbox.run(&["c", "print", &first]);
    assert_contains(&printed.stdout, "The first question of all");
    assert_eq!(
        sandbox.run(&["r", "show", "a.txt", "-i", &first]).stdout,
        "abc"
    );
    for writing in [
        &["q", "-i", &first, "more"][..],
        &["c", "use", &first],
        &["a", "add", "a.txt", "-i", &first],
    ] {
        let hint = format!("hint: `jp conversation fork {first}` continues a copy of it.");
        sandbox
            .fail(writing, 1)
            .says([&format!("conversation {first} is archived"), &hint]);
    }
    assert_eq!(sandbox.json("storage check")["conversations"], 2);
    let fork = sandbox.json(&["c", "fork", &first])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_contains(&sandbox.run("c ls").stdout, &fork);
    sandbox.run(&["c", "rm", &first]);
    assert_eq!(sandbox.json("c ls --archived"), json!([]));
}

#[test]
fn unreadable_metadata_is_kept_with_its_conversation() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new 'The question'");
    let metadata = sandbox.conversation().join("metadata.json");
    for (number, damage) in ["{\"title\": \"Half", "no JSON", "[]"].iter().enumerate() {
        fs::write(&metadata, damage).unwrap();
        let printed = sandbox.run("c print");
        let kept =
            "the next message renames the file to metadata.json.damaged-1 or a higher number";
        assert_contains(&printed.stdout, "The question");
        assert_contains(&printed.stderr, kept);
        assert_contains(
            &sandbox.fail("storage check", 1).stdout,
            "metadata.json can't be read",
        );
        assert_eq!(
            &fs::read_to_string(&metadata).unwrap(),
            damage,
            "a reader changes nothing"
        );
        sandbox.run("q 'go on'");
        let aside = sandbox
            .conversation()
            .join(format!("metadata.json.damaged-{}", number + 1));
        assert_eq!(&fs::read_to_string(aside).unwrap(), damage);
        assert_contains(fs::read_to_string(&metadata).unwrap(), "last_activated_at");
    }
    sandbox.run("storage check");
}

#[test]
fn older_conversations_can_be_used() {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/jp-conversations");
    if !source.is_dir() {
        eprintln!("skipped: {} is not there", source.display());
        return;
    }
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let target = sandbox.path(".jp/conversations").join(entry.file_name());
        fs::create_dir_all(&target).unwrap();
        for file in fs::read_dir(entry.path()).unwrap() {
            let file = file.unwrap();
            fs::write(
                target.join(file.file_name()),
                fs::read(file.path()).unwrap(),
            )
            .unwrap();
        }
    }
    let rows = sandbox.json("c ls");
    assert!(items(&rows).len() >= 5);
    for row in items(&rows) {
        let id = row["id"].as_str().unwrap();
        assert!(
            row["turns"].as_u64().unwrap() > 0 && row["title"].is_string(),
            "{row}"
        );
        sandbox.run(&["c", "print", id]);
        sandbox.run(&[
            "q",
            "-i",
            id,
            "-m",
            "llamacpp/m",
            "--skip-unavailable",
            "Summarise.",
        ]);
        let after = sandbox.json(&["c", "show", id]);
        assert_eq!(
            after["turns"].as_u64().unwrap(),
            row["turns"].as_u64().unwrap() + 1
        );
    }
    sandbox.run("storage check");
}

#[test]
fn older_conversation_has_an_alias_to_itself() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let directory = ".jp/conversations/17600000000-old";
    let request =
        json!({"timestamp": "2025-12-04 09:28:23.2", "type": "chat_request", "content": "old"});
    sandbox.write(
        &format!("{directory}/events.json"),
        json!([request]).to_string(),
    );
    let metadata = json!({"title": "Old", "last_activated_at": "2025-12-04 09:24:06.7"});
    sandbox.write(&format!("{directory}/metadata.json"), metadata.to_string());
    let aliases = json!({"mine": {"provider": "llamacpp", "name": "of-alias"}});
    let base =
        json!({"assistant": {"model": {"id": "mine"}}, "providers": {"llm": {"aliases": aliases}}});
    sandbox.write(&format!("{directory}/base_config.json"), base.to_string());
    sandbox.run("q -i 17600000000 'go on'");
    assert_eq!(testing::last_request(&server)["model"], "of-alias");
    sandbox
        .fail("q -i 17600000000 -m mine 'go on'", 2)
        .says(["the model `mine`"]);
    let user = sandbox.path("~/.config/jp/config.toml");
    let text = fs::read_to_string(&user).unwrap_or_default();
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(
        &user,
        format!("{text}\n[providers.aliases]\nmine = 'llamacpp/of-the-person'\n"),
    )
    .unwrap();
    sandbox.run("q -i 17600000000 'go on'");
    assert_eq!(testing::last_request(&server)["model"], "of-the-person");
}

#[test]
fn fork_that_fails_leaves_no_conversation() {
    let (_server, sandbox, _) = with_two_conversations();
    let config = sandbox.read(".jp/config.toml");
    sandbox.write(".jp/config.toml", "assistant = 'x'\n");
    let before = sandbox.files(".jp/conversations");
    sandbox.fail("c fork", 1).says(["assistant"]);
    assert_eq!(sandbox.files(".jp/conversations"), before);
    sandbox.write(".jp/config.toml", config);
    sandbox.run("c fork");
    assert!(sandbox.files(".jp/conversations").len() > before.len());
}

#[test]
fn converted_fork_keeps_its_configuration() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let directory = ".jp/conversations/17600000000-old";
    let text = "QSBsb25nIHJlc3VsdCB0aGF0IGJlbG9uZ3MgaW4gdGhlIGJsb2Igc3RvcmUuIA".repeat(20) + "==";
    let events = format!(
        "[{{\"timestamp\": \"2025-12-04 09:28:23.2\", \"type\": \"chat_request\", \"content\": \"old\", \"mood\": \"good\"}},\n{{\"timestamp\": \"2025-12-04 09:28:24.2\", \"type\": \"tool_call_response\", \"id\": \"1\", \"content\": \"{}\", \"is_error\": false}}]",
        text.trim_end_matches('=')
    );
    sandbox.write(&format!("{directory}/events.json"), events);
    sandbox.write(
        &format!("{directory}/metadata.json"),
        "{\"title\": \"Old\", \"last_activated_at\": \"2025-12-04 09:24:06.7\"}",
    );
    sandbox.write(
        &format!("{directory}/base_config.json"),
        "{\"assistant\": {\"model\": {\"id\": \"llamacpp/from-base\"}}}",
    );
    let fork = sandbox.json("c fork 17600000000")["id"]
        .as_str()
        .unwrap()
        .to_owned();
    sandbox.run(&["q", "-i", &fork, "go on"]);
    assert_eq!(
        testing::last_request(&server)["model"],
        "llamacpp/from-base".trim_start_matches("llamacpp/")
    );
    let forked = sandbox
        .files(".jp/conversations")
        .into_iter()
        .find(|path| path.ends_with("events.json") && path.to_string_lossy().contains(&fork));
    let text = fs::read_to_string(forked.unwrap()).unwrap();
    assert_contains(&text, "$blob");
    assert_contains(&text, "\"mood\":\"good\"");
    assert_contains(&text, "2025-12-04T09:28:23.2Z");
    sandbox.run("storage check");
}
