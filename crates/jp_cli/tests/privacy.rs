//! Nothing that jp writes under `.jp/` names a place on this machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, io::Read as _};

use support::{Sandbox, answering};

/// Reads a file, decompressed where it is a blob.
fn content(path: &std::path::Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let output = std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn no_path_of_the_machine_is_stored() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    fs::rename(sandbox.path(".jp/config.toml"), sandbox.home.join("config.toml")).unwrap();
    let home = support::shown(&sandbox.home);
    let declared = format!(
        "conversation.attachments = ['{home}/outside/style.md', '~/outside/all/', '{home}/outside/all/*.txt']\n"
    );
    let config = sandbox.home.join("config.toml");
    fs::write(&config, declared + &fs::read_to_string(&config).unwrap()).unwrap();
    let config = support::shown(&config);
    sandbox.write("~/outside/style.md", "style");
    sandbox.write("~/outside/all/d.txt", "d");
    sandbox.write("src/main.rs", "fn main() {}");
    sandbox.write("~/outside/notes.md", "# Notes");
    sandbox.write("~/outside/more/a.txt", "a");
    sandbox.write("~/outside/more/b.txt", "b");
    sandbox.write("~/outside/glob/c.md", "c");
    std::os::unix::fs::symlink(sandbox.home.join("outside/notes.md"), sandbox.path("link.md")).unwrap();
    let root = support::shown(&sandbox.root);
    let jp = |arguments: &[&str]| {
        let mut all = vec!["-c", &*config];
        all.extend(arguments);
        sandbox.jp(&all).succeeded()
    };
    jp(&[
        "q",
        "--new",
        "-a",
        "src/",
        "-a",
        "~/outside/notes.md",
        "-a",
        "~/outside/more",
        "-a",
        "~/outside/glob/*.md",
        "-a",
        "link.md",
        "-a",
        &format!("{root}/src/main.rs"),
        "-a",
        "!*.lock",
        "one",
    ]);
    jp(&["q", "-a", "~/outside/notes.md", "two"]);
    jp(&["attachment", "add", "~/outside/more/a.txt"]);
    jp(&["attachment", "rm", "~/outside/notes.md"]);
    jp(&["conversation", "fork", "--turns", "1"]);
    jp(&["q", "three"]);

    let files = sandbox.files(".jp");
    assert!(files.iter().filter(|path| path.ends_with("events.json")).count() == 2 && files.len() > 8);
    for path in files {
        let mut bytes = Vec::new();
        content(&path).as_slice().read_to_end(&mut bytes).unwrap();
        for private in
            [support::shown(&sandbox.home), "jean".to_owned(), "outside/".to_owned(), "file:///".to_owned()]
        {
            let found = bytes.windows(private.len()).any(|window| window == private.as_bytes());
            assert!(!found, "{private:?} is in {}: {}", path.display(), String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn moved_workspace_finds_its_files() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("a.txt", "abc");
    sandbox.jp(&["q", "--new", "-a", "a.txt", "one"]).succeeded();
    let moved = Sandbox { root: sandbox.home.join("elsewhere"), ..sandbox };
    fs::rename(moved.home.join("work/project"), &moved.root).unwrap();
    let uri = moved.json(&["resource", "ls"])[0]["uri"].as_str().unwrap().to_owned();
    assert!(uri.ends_with("/elsewhere/a.txt"), "{uri}");
    moved.jp(&["q", "-a", "a.txt", "two"]).succeeded();
    let rows = moved.json(&["resource", "ls"]);
    assert_eq!(rows[0]["uri"], rows[1]["uri"]);
}

#[test]
fn key_makes_external_uris_unguessable_and_may_not_be_in_the_workspace() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("~/outside/notes.md", "x");
    sandbox.write("~/key", "secret\n");
    sandbox.write(".jp/key", "secret\n");
    let uri = |key: &str| {
        let key = format!("conversation.attachment.external_key={key}");
        sandbox.jp(&["q", "--new", "-c", &key, "-a", "~/outside/notes.md", "x"]).succeeded();
        sandbox.json(&["resource", "ls"])[0]["uri"].as_str().unwrap().to_owned()
    };
    let keyed = uri("~/key");
    sandbox.jp(&["q", "--new", "-a", "~/outside/notes.md", "x"]).succeeded();
    assert_ne!(sandbox.json(&["resource", "ls"])[0]["uri"].as_str().unwrap(), keyed);
    assert_eq!(uri("~/key"), keyed);
    sandbox
        .jp(&[
            "q",
            "--new",
            "-c",
            "conversation.attachment.external_key=.jp/key",
            "-a",
            "~/outside/notes.md",
            "x",
        ])
        .failed(1, &["inside the workspace"]);
}
