//! A clone whose `.jp/` has links in it, or pipes where files belong: jp opens nothing through them, and never blocks.

#![cfg(unix)]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::mpsc,
    time::{Duration, SystemTime},
};
use testing::{
    Run, Sandbox, Server, answering, assert_count, assert_lacks, copy_directory, finish, git, run,
    shown, start,
};

/// Content that only the other project has.
const SECRET: &str = "the salary of each of us";

/// A project with a conversation, and a clone of a foreign repository next to it.
struct Scene {
    /// The other project.
    theirs: Sandbox,
    _their_server: Server,
    /// The server that the clone configures.
    server: Server,
    clone: PathBuf,
    /// Where the conversation is, relative to each project.
    conversation: PathBuf,
    id: String,
}

impl Scene {
    /// Makes the other project, and a clone of which `.jp/` is prepared in a repository upstream.
    ///
    /// `prepare` gets the directory of the other project, and that of the repository, which starts with a conversation of
    /// the same files.
    fn new(prepare: impl FnOnce(&Path, &Path, &Path)) -> Self {
        let (theirs, their_server) = Sandbox::with_answer("Noted.");
        theirs.write("notes.txt", format!("{SECRET}\n").repeat(20));
        theirs
            .jp(&["q", "--new", "-a", "notes.txt", SECRET])
            .succeeded();
        let conversation = theirs
            .conversation()
            .strip_prefix(&theirs.root)
            .unwrap()
            .to_owned();
        let name = conversation.file_name().unwrap().to_str().unwrap();
        let id = name.split('-').next().unwrap().to_owned();

        let server = answering("Thank you.");
        let [upstream, clone] = ["upstream", "work/clone"].map(|name| theirs.home.join(name));
        copy_directory(&theirs.root, &upstream);
        fs::write(upstream.join(".jp/.id"), "clone\n").unwrap();
        let url = server.url();
        let config = format!(
            "[assistant.model]\nid = \"llamacpp/m\"\n[providers.llm.llamacpp]\nbase_url = \"{url}\"\nmodels.m.tools = true\n"
        );
        fs::write(upstream.join(".jp/config.toml"), config).unwrap();
        prepare(&theirs.root, &upstream, &conversation);
        git(&upstream, &["init", "-q"]);
        git(&upstream, &["add", "-Af", "."]);
        git(&upstream, &["commit", "-qm", "Everything"]);
        git(&theirs.home, &["clone", "-q", "upstream", "work/clone"]);
        Self {
            theirs,
            _their_server: their_server,
            server,
            clone,
            conversation,
            id,
        }
    }

    fn jp(&self, arguments: &[&str]) -> Run {
        let mut command = self.theirs.command(arguments);
        command.current_dir(&self.clone);
        run(command)
    }

    /// Runs everything that touches a conversation, in an order in which nothing is needed that was removed before.
    fn run_all(&self) -> Vec<(Vec<&str>, Run)> {
        let id = &*self.id;
        let commands: [&[&str]; 17] = [
            &["query", "and now?"],
            &["query", "-i", id, "and now?"],
            &["query", "--explain", "and now?"],
            &["conversation", "ls"],
            &["conversation", "show", "--files", id],
            &["conversation", "print", id],
            &["conversation", "print", "--as-sent", id],
            &["resource", "ls", "-i", id],
            &["resource", "show", "-i", id, "notes.txt"],
            &["resource", "refresh", "-i", id],
            &["attachment", "add", "-i", id, "notes.txt"],
            &["conversation", "fork", id],
            &["conversation", "compact", id],
            &["storage", "check"],
            &["storage", "status"],
            &["config", "show"],
            &["conversation", "rm", id],
        ];
        commands
            .into_iter()
            .map(|command| (command.to_vec(), self.jp(command)))
            .collect()
    }
}

/// Puts a link in the place of a file or directory.
fn link(target: impl AsRef<Path>, at: PathBuf) {
    match at.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&at).unwrap(),
        Ok(_) => fs::remove_file(&at).unwrap(),
        Err(_) => {}
    }
    symlink(target, at).unwrap();
}

/// Returns every file below a directory with its content and the time it changed, and every directory.
fn states(directory: &Path) -> BTreeMap<PathBuf, Option<(Vec<u8>, SystemTime)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(states(&path));
            found.insert(path, None);
        } else {
            let modified = path.metadata().unwrap().modified().unwrap();
            found.insert(path.clone(), Some((fs::read(&path).unwrap(), modified)));
        }
    }
    found
}

/// The other project is untouched, and nothing of it was sent or shown.
#[track_caller]
fn check_untouched(
    scene: &Scene,
    before: &BTreeMap<PathBuf, Option<(Vec<u8>, SystemTime)>>,
    runs: &[(Vec<&str>, Run)],
) {
    assert_eq!(&states(&scene.theirs.root), before);
    for request in scene.server.received() {
        assert_lacks(String::from_utf8_lossy(&request.body), SECRET);
    }
    for (command, run) in runs {
        assert!(!run.stdout.contains(SECRET), "{command:?}: {}", run.stdout);
        assert!(
            run.code <= 3,
            "{command:?} ended with {}: {}",
            run.code,
            run.stderr
        );
    }
}

/// Commands that have to name the link, by their first words.
#[track_caller]
fn check_refused(runs: &[(Vec<&str>, Run)], refused: &[&str], at: &Path) {
    for (command, run) in runs {
        let words = command.join(" ");
        if refused.iter().any(|first| words.starts_with(first)) {
            let said = format!("{}{}", run.stdout, run.stderr);
            assert!(
                run.code == 1 && names_link(&said, at),
                "{words} ended with {}: {said}",
                run.code
            );
        }
    }
}

/// Returns whether an error says that a path is a link, and names it once.
fn names_link(said: &str, at: &Path) -> bool {
    let (at, link) = (at.display(), "is a symbolic link, which jp does not follow");
    let says = |text: String| said.contains(&text);
    (says(format!("{at} {link}")) || says(format!("{at}: it {link}")))
        && !says(format!("{at}: {at}"))
}

#[track_caller]
fn check_names_link(run: &Run, at: &Path) {
    assert!(
        run.code == 1 && names_link(&run.stderr, at),
        "{}",
        run.stderr
    );
}

/// Commands that read a conversation, and commands that remove one.
const OF_CONVERSATION: [&str; 13] = [
    "query and",
    "query -i",
    "query --explain",
    "conversation show",
    "conversation print",
    "resource ls",
    "resource show",
    "resource refresh",
    "attachment add",
    "conversation fork",
    "conversation compact",
    "storage check",
    "storage status",
];

#[test]
fn linked_conversations_are_neither_read_nor_sent_nor_changed() {
    for absolute in [true, false] {
        let scene = Scene::new(|theirs, upstream, _| {
            let relative = Path::new("../../project/.jp/conversations");
            let target = if absolute {
                theirs.join(".jp/conversations")
            } else {
                relative.to_owned()
            };
            link(target, upstream.join(".jp/conversations"));
        });
        let before = states(&scene.theirs.root);
        let runs = scene.run_all();
        check_untouched(&scene, &before, &runs);
        assert!(scene.server.received().is_empty());
        let refused: Vec<&str> = OF_CONVERSATION
            .into_iter()
            .chain(["conversation ls", "conversation rm"])
            .collect();
        check_refused(&runs, &refused, &scene.clone.join(".jp/conversations"));
        let new = scene
            .jp(&["query", "--new", "hello"])
            .failed(1)
            .says(["hint: ", "rm "]);
        check_names_link(&new, &scene.clone.join(".jp/conversations"));
        assert!(scene.server.received().is_empty());
        assert_eq!(states(&scene.theirs.root), before);
    }
}

#[test]
fn linked_conversation_is_neither_read_nor_removed() {
    let scene = Scene::new(|theirs, upstream, conversation| {
        link(theirs.join(conversation), upstream.join(conversation));
    });
    let before = states(&scene.theirs.root);
    let runs = scene.run_all();
    check_untouched(&scene, &before, &runs);
    assert!(scene.server.received().is_empty());
    let refused: Vec<&str> = OF_CONVERSATION
        .into_iter()
        .chain(["conversation rm"])
        .collect();
    check_refused(&runs, &refused, &scene.clone.join(&scene.conversation));
}

#[test]
fn linked_file_of_a_conversation_is_neither_read_nor_written() {
    for file in ["events.json", "metadata.json", "base_config.json"] {
        let scene = Scene::new(|theirs, upstream, conversation| {
            fs::write(theirs.join(conversation).join("base_config.json"), "{}\n").unwrap();
            link(
                theirs.join(conversation).join(file),
                upstream.join(conversation).join(file),
            );
        });
        let before = states(&scene.theirs.root);
        let runs = scene.run_all();
        let mut refused = OF_CONVERSATION.to_vec();
        // The names of files are no content; only events are counted.
        refused.retain(|command| *command != "conversation show");
        refused.retain(|command| file == "events.json" || *command != "storage status");
        check_refused(
            &runs,
            &refused,
            &scene.clone.join(&scene.conversation).join(file),
        );
        assert!(scene.server.received().is_empty(), "{file}");
        assert_eq!(states(&scene.theirs.root), before, "{file}");
    }
}

#[test]
fn nothing_is_read_from_linked_blobs_or_written_there() {
    let checksum = |conversation: &Path| {
        let events = fs::read_to_string(conversation.join("events.json")).unwrap();
        events.split_once("\"$blob\":\"").unwrap().1[..64].to_owned()
    };
    for place in ["", "ab", "ab/rest"] {
        let mut at = PathBuf::new();
        let scene = Scene::new(|theirs, upstream, conversation| {
            let checksum = checksum(&theirs.join(conversation));
            let (shard, rest) = checksum.split_at(2);
            at = match place {
                "" => PathBuf::from(".jp/blobs"),
                "ab" => Path::new(".jp/blobs").join(shard),
                _ => Path::new(".jp/blobs")
                    .join(shard)
                    .join(format!("{rest}.blob.gz")),
            };
            link(theirs.join(&at), upstream.join(&at));
        });
        let before = states(&scene.theirs.root);
        let id = &*scene.id;
        let refused: [&[&str]; 4] = [
            &["resource", "show", "-i", id, "notes.txt"],
            &["conversation", "print", "--as-sent", id],
            &["query", "--new", "-a", "notes.txt", "hello"],
            &["storage", "check"],
        ];
        for command in refused {
            let run = scene.jp(command);
            let said = format!("{}{}", run.stdout, run.stderr);
            let is_named = names_link(&said, &scene.clone.join(&at));
            assert!(run.code == 1 && is_named, "{command:?}: {said}");
        }
        // The rest is checked all the same.
        let checked = scene.jp(&["storage", "check", "-F", "json"]).failed(1);
        let checked: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
        let is_named = names_link(&checked["problems"].to_string(), &scene.clone.join(&at));
        assert!(checked["conversations"] == 1 && is_named, "{checked}");
        scene.run_all();
        assert_eq!(states(&scene.theirs.root), before, "{place}");
    }
}

#[test]
fn linked_workspace_files_are_not_read() {
    for file in ["config.toml", ".id"] {
        let scene = Scene::new(|theirs, upstream, _| {
            link(
                theirs.join(".jp").join(file),
                upstream.join(".jp").join(file),
            );
        });
        let before = states(&scene.theirs.root);
        let at = scene.clone.join(".jp").join(file);
        for command in [
            &["query", "--new", "x"][..],
            &["config", "show"],
            &["init"],
            &["attachment", "ls"],
        ] {
            let run = scene.jp(command).failed(1).says(["hint: "]);
            check_names_link(&run, &at);
        }
        assert!(scene.server.received().is_empty());
        assert_eq!(states(&scene.theirs.root), before);
    }
}

#[test]
fn linked_dot_jp_is_no_workspace() {
    let scene = Scene::new(|theirs, upstream, _| link(theirs.join(".jp"), upstream.join(".jp")));
    let before = states(&scene.theirs.root);
    let mut runs = scene.run_all();
    runs.push((vec!["init"], scene.jp(&["init"])));
    check_untouched(&scene, &before, &runs);
    check_refused(&runs, &[""], &scene.clone.join(".jp"));
    assert!(scene.server.received().is_empty());
}

#[test]
fn links_that_lead_nowhere_or_back_are_refused_too() {
    let scene = Scene::new(|_, upstream, conversation| {
        fs::rename(
            upstream.join(conversation),
            upstream.join(".jp/conversations/real"),
        )
        .unwrap();
        link("real", upstream.join(conversation));
    });
    check_names_link(
        &scene.jp(&["query", "x"]),
        &scene.clone.join(&scene.conversation),
    );
    for file in ["config.toml", ".id", "conversations"] {
        let at = scene.clone.join(".jp").join(file);
        let saved = scene.clone.join(".jp/saved");
        fs::rename(&at, &saved).unwrap();
        symlink("nowhere", &at).unwrap();
        check_names_link(&scene.jp(&["query", "--new", "x"]), &at);
        assert!(!scene.clone.join(".jp/nowhere").exists());
        fs::remove_file(&at).unwrap();
        fs::rename(saved, at).unwrap();
    }
    let archive = scene.clone.join(".jp/conversations/.archive");
    symlink(scene.theirs.path(".jp/conversations"), &archive).unwrap();
    check_names_link(&scene.jp(&["conversation", "ls", "--archived"]), &archive);
    let at = scene.theirs.home.join("empty");
    fs::create_dir(&at).unwrap();
    symlink("nowhere", at.join(".jp")).unwrap();
    check_names_link(&scene.jp(&["init", &shown(&at)]), &at.join(".jp"));
    assert!(!at.join("nowhere").exists() && scene.server.received().is_empty());
}

#[test]
fn harmless_links_are_followed() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    fs::create_dir_all(sandbox.home.join("disk/data")).unwrap();
    fs::create_dir_all(sandbox.home.join(".local")).unwrap();
    sandbox.link(sandbox.home.join("disk"), "~/.local/share");
    sandbox.link("data", "~/disk/jp");
    sandbox.run("q --new --local x");
    assert!(
        sandbox
            .home
            .join("disk/data/workspaces/test/conversations")
            .is_dir()
    );
    sandbox.run("q --new y");
    fs::hard_link(sandbox.events_path(), sandbox.home.join("backup.json")).unwrap();
    sandbox.run("q z");
    assert_count(
        fs::read_to_string(sandbox.home.join("backup.json")).unwrap(),
        "chat_request",
        2,
    );
}

#[test]
fn local_conversation_can_be_read_by_its_user_alone() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("notes.txt", SECRET.repeat(20));
    sandbox.run("q --new --local -a notes.txt x");
    sandbox.run("q y");
    sandbox.run("conversation fork");
    let data = sandbox.home.join(".local/share/jp/workspaces/test");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let mut files = 0;
    for store in ["conversations", "blobs"] {
        assert_eq!(mode(&data.join(store)), 0o700);
        for (path, file) in states(&data.join(store)) {
            let wanted = if file.is_some() { 0o600 } else { 0o700 };
            assert_eq!(mode(&path), wanted, "{}", path.display());
            files += usize::from(file.is_some());
        }
    }
    assert_eq!(files, 5);
    // The next write restricts the permissions that an older version left open.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.run("q z");
    assert_eq!(mode(&data), 0o700);
}

/// Runs a command that must not wait.
#[track_caller]
fn at_once(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let mut child = start(sandbox.command(arguments));
    let process = rustix::process::Pid::from_child(&child);
    let (ended, is_ended) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let is_late =
            is_ended.recv_timeout(Duration::from_secs(20)) == Err(mpsc::RecvTimeoutError::Timeout);
        is_late.then(|| rustix::process::kill_process(process, rustix::process::Signal::KILL));
        is_late
    });
    let code = child.wait().unwrap().code().unwrap_or(-1);
    drop(ended);
    assert!(!watch.join().unwrap(), "{arguments:?} waited");
    let run = finish(child);
    Run { code, ..run }
}

/// Puts something that is no file at a path.
fn put(kind: &str, at: &Path) -> Option<std::os::unix::net::UnixListener> {
    fs::remove_file(at).unwrap();
    match kind {
        "a named pipe" => {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, at, mode).unwrap();
            None
        }
        "a socket" => {
            // The path may be too long for the address of a socket.
            let short = tempfile::tempdir().unwrap();
            let listener = std::os::unix::net::UnixListener::bind(short.path().join("s")).unwrap();
            fs::rename(short.path().join("s"), at).unwrap();
            Some(listener)
        }
        _ => {
            fs::create_dir(at).unwrap();
            None
        }
    }
}

#[test]
fn what_is_no_file_is_an_error_at_once_in_the_place_of_any_file() {
    for kind in ["a named pipe", "a socket", "a directory"] {
        let (sandbox, _) = Sandbox::with_answer("Yes.");
        sandbox.write("notes.txt", SECRET.repeat(20));
        sandbox.run("q --new -a notes.txt x");
        let conversation = sandbox.conversation();
        let blob = sandbox.files(".jp/blobs").remove(0);
        let commands: [&[&str]; 9] = [
            &["storage", "check"],
            &["storage", "status"],
            &["resource", "show", "notes.txt"],
            &["conversation", "print"],
            &["conversation", "print", "--as-sent"],
            &["conversation", "fork"],
            &["q", "and now?"],
            &["q", "--new", "-a", "notes.txt", "again"],
            &["conversation", "ls"],
        ];
        for (path, refused) in [
            (blob.clone(), &[0, 2, 4, 6, 7][..]),
            (conversation.join("events.json"), &[0, 2, 3, 4, 5, 6]),
            (conversation.join("metadata.json"), &[]),
            (sandbox.path(".jp/config.toml"), &[6, 7]),
            (sandbox.path(".jp/.id"), &[]),
        ] {
            let saved = fs::read(&path).unwrap();
            let _listener = put(kind, &path);
            for (index, command) in commands.iter().enumerate() {
                let run = at_once(&sandbox, command);
                if refused.contains(&index) {
                    let said = format!("{}{}", run.stdout, run.stderr);
                    let is_named = said.contains(&format!("it is {kind}, not a regular file"));
                    assert!(
                        run.code == 1 && is_named,
                        "{command:?} beside {}: {said}",
                        path.display()
                    );
                }
            }
            if kind == "a directory" {
                fs::remove_dir(&path)
            } else {
                fs::remove_file(&path)
            }
            .unwrap();
            fs::write(&path, saved).unwrap();
            // A query that could go on added to the list of conversations.
            for other in fs::read_dir(sandbox.path(".jp/conversations"))
                .unwrap()
                .map(Result::unwrap)
            {
                if other.path() != conversation {
                    fs::remove_dir_all(other.path()).unwrap();
                }
            }
            sandbox.run(&[
                "conversation",
                "use",
                &testing::conversation_id(&conversation),
            ]);
        }
    }
}
