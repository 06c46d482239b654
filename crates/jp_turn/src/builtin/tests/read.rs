use testing::assert_starts;

use super::*;

fn numbered(count: usize) -> String {
    (1..=count)
        .map(|number| format!("line {number}\n"))
        .collect()
}

#[test]
fn read_file_returns_a_marked_resource() {
    let workspace = Workspace::new(&[("src/a b.rs", "fn main() {}\n")]);
    let called = workspace
        .call("read_file", &json!({"path": "src/a b.rs"}))
        .unwrap();
    assert_eq!(
        called.preview,
        Preview {
            title: "read src/a b.rs".into(),
            detail: None
        }
    );
    assert!(!called.is_sensitive);
    insta::assert_snapshot!(called.text(), @r#"
    [file://ROOT/src/a%20b.rs text/x-rust]
    Text("fn main() {}\n")
    "#);
    let checksum = Checksum::compute(b"fn main() {}\n").to_string();
    assert_eq!(
        called.marks(),
        [json!({"path": "src/a b.rs", "checksum": checksum})]
    );
    let [ContentBlock::Resource { resource, .. }] = called.response.content.as_slice() else {
        panic!()
    };
    assert_eq!(resource.name.as_deref(), Some("src/a b.rs"));
}

#[test]
fn every_way_to_write_a_path_inside_reads_the_file() {
    let workspace = Workspace::new(&[("src/a.rs", "x")]);
    let root = workspace.path("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    for path in [
        "src/a.rs".to_owned(),
        "./src//a.rs".to_owned(),
        format!("{root}/src/a.rs"),
        format!("file://{root}/src/a.rs"),
        format!("FILE://localhost{root}/%73rc/a.rs#L1-2"),
    ] {
        let told = workspace.told("read_file", &json!({"path": path}));
        assert_eq!(
            told, "[file://ROOT/src/a.rs text/x-rust]\nText(\"x\")",
            "{path:?}"
        );
    }
}

#[test]
fn part_of_a_file_has_the_checksum_of_the_whole() {
    let workspace = Workspace::new(&[("a.txt", &numbered(5)), ("unended", "a\nb")]);
    let lines = |first: Option<usize>, last: Option<usize>| {
        let mut arguments = json!({"path": "a.txt", "first_line": first, "last_line": last});
        arguments
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        let called = workspace.call("read_file", &arguments)?;
        let checksum = Checksum::compute(numbered(5).as_bytes()).to_string();
        assert!(
            called.response.is_error
                || called.marks() == [json!({"path": "a.txt", "checksum": checksum})]
        );
        Ok::<_, String>(match called.response.content.as_slice() {
            [ContentBlock::Resource { resource, .. }] => {
                let (_, fragment) = resource.uri.split_once('#').unwrap();
                format!("{fragment} {:?}", resource.content.as_text().unwrap())
            }
            _ => called.text(),
        })
    };
    let table = [
        (Some(2), Some(3), "L2-3 \"line 2\\nline 3\\n\""),
        (Some(4), Some(4), "L4 \"line 4\\n\""),
        (Some(4), None, "L4-5 \"line 4\\nline 5\\n\""),
        (None, Some(2), "L1-2 \"line 1\\nline 2\\n\""),
        (Some(5), Some(99), "L5 \"line 5\\n\""),
        (Some(6), None, "a.txt has 5 lines, so there is no line 6."),
    ];
    for (first, last, told) in table {
        assert_eq!(
            lines(first, last).as_deref(),
            Ok(told),
            "{first:?} {last:?}"
        );
    }
    assert_eq!(
        lines(Some(3), Some(2)),
        Err("`last_line` (2) is before `first_line` (3).".into())
    );
    let told = workspace.told("read_file", &json!({"path": "unended", "first_line": 2}));
    assert_eq!(told, "[file://ROOT/unended#L2 text/plain]\nText(\"b\")");
}

#[test]
fn lines_up_to_an_end_without_a_newline_are_marked() {
    let workspace = Workspace::new(&[("unended", "a\nb"), ("ended", "a\nb\n")]);
    let is_marked = |path: &str, last: usize| {
        let called = workspace.call(
            "read_file",
            &json!({"path": path, "first_line": 1, "last_line": last}),
        );
        let [ContentBlock::Resource { resource, .. }] = &*called.unwrap().response.content else {
            panic!("{path} is one resource")
        };
        resource
            .meta
            .as_ref()
            .is_some_and(|meta| meta.get("computer.jp/reachesEnd") == Some(&json!(true)))
    };
    assert_eq!(
        [
            is_marked("unended", 2),
            is_marked("unended", 1),
            is_marked("ended", 2)
        ],
        [true, false, false]
    );
}

#[test]
fn unreadable_paths_have_distinct_errors() {
    let workspace = Workspace::new(&[("empty.rs", "")]);
    workspace.write("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    fs::create_dir(workspace.path("src")).unwrap();
    let told = |path: &str| workspace.told("read_file", &json!({"path": path}));
    insta::assert_snapshot!(told("empty.rs"), @r#"
    [file://ROOT/empty.rs text/x-rust]
    Text("")
    "#);
    insta::assert_snapshot!(told("logo.png"), @"
    [file://ROOT/logo.png image/png]
    Blob(16 bytes)
    ");
    insta::assert_snapshot!(told("src"), @"src is a directory. Use `list_files` to list it.");
    insta::assert_snapshot!(told("src/none.rs"), @"src/none.rs does not exist. Use `list_files` to see what exists.");
    insta::assert_snapshot!(told("empty.rs/a"), @r#""empty.rs/a" can't be reached: empty.rs is not a directory."#);
    insta::assert_snapshot!(workspace.told("read_file", &json!({"path": "logo.png", "first_line": 1})), @"logo.png is not UTF-8 text, so it has no lines. Read the whole file.");
    insta::assert_snapshot!(workspace.told("read_file", &json!({"path": "empty.rs", "first_line": 1})), @"empty.rs has 0 lines, so there is no line 1.");
}

#[test]
fn large_file_is_read_in_parts() {
    let workspace = Workspace::new(&[("log", &format!("{}\n", "x".repeat(159)).repeat(70_000))]);
    insta::assert_snapshot!(workspace.told("read_file", &json!({"path": "log"})), @"log has 11200000 bytes. At most 10000000 can be read at once. Read some of its lines with `first_line` and `last_line`, or use `search_files`.");
    let part = workspace.call(
        "read_file",
        &json!({"path": "log", "first_line": 60_000, "last_line": 60_001}),
    );
    let part = part.unwrap();
    assert_starts(part.text(), "[file://ROOT/log#L60000-60001 text/plain]\n");
    assert_eq!(part.marks(), [] as [Value; 0]);
    insta::assert_snapshot!(workspace.told("read_file", &json!({"path": "log", "first_line": 1})), @"These lines of log have more than 10000000 bytes. Read fewer lines at a time.");
    insta::assert_snapshot!(workspace.told("read_file", &json!({"path": "log", "first_line": 90_000})), @"log has 70000 lines, so there is no line 90000.");
}

#[test]
fn file_that_holds_secrets_is_asked_about() {
    let workspace = Workspace::new(&[
        (".env", "KEY=1"),
        (".env.example", ""),
        ("home/.aws/credentials", ""),
    ]);
    let is_sensitive = |path: &str| {
        workspace
            .plan("read_file", &json!({"path": path}))
            .unwrap()
            .is_sensitive
    };
    for path in [".env", "home/.aws/credentials"] {
        assert!(is_sensitive(path), "{path}");
    }
    for name in [
        ".netrc",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".git/config",
        ".GIT/modules/a/config",
        ".jp/x",
    ] {
        workspace.write(name, "secret");
        assert!(is_sensitive(name), "{name}");
        let told = workspace.told("search_files", &json!({"path": name, "pattern": "secret"}));
        assert_starts(&told, "No line matches.\nFiles not searched");
    }
    assert!(!is_sensitive(".env.example"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(".env", workspace.path("notes.txt")).unwrap();
        assert!(is_sensitive("notes.txt"));
    }
}

#[cfg(unix)]
#[test]
fn link_inside_is_followed_to_its_real_name() {
    use std::os::unix::fs::symlink;
    let workspace = Workspace::new(&[("src/a.rs", "x")]);
    symlink("src", workspace.path("code")).unwrap();
    symlink("../code/a.rs", workspace.path("src/b.rs")).unwrap();
    symlink(workspace.path("code/b.rs"), workspace.path("c.rs")).unwrap();
    let called = workspace
        .call("read_file", &json!({"path": "c.rs"}))
        .unwrap();
    assert_eq!(
        called.text(),
        "[file://ROOT/src/a.rs text/x-rust]\nText(\"x\")"
    );
    assert_eq!(called.preview.title, "read src/a.rs");
}

#[test]
fn directory_is_listed_without_ignored_entries() {
    let workspace = Workspace::new(&[
        ("b.rs", "12"),
        ("src/a.rs", "1"),
        ("src/deep/c.md", ""),
        ("src-b/x", ""),
        ("target/debug/x", ""),
        (".gitignore", "target/\n*.log\n"),
        ("x.log", ""),
        (".ignore", "!keep.log\n"),
        ("keep.log", ""),
        (".jp/conversations/x", ""),
        (".git/config", ""),
    ]);
    let told = |arguments: Value| workspace.told("list_files", &arguments);
    insta::assert_snapshot!(told(json!({})), @"
    .gitignore (14 bytes)
    .ignore (10 bytes)
    b.rs (2 bytes)
    keep.log (0 bytes)
    src/
    src-b/
    ");
    insta::assert_snapshot!(told(json!({"path": "src", "depth": 2})), @"
    src/a.rs (1 byte)
    src/deep/
    src/deep/c.md (0 bytes)
    ");
    insta::assert_snapshot!(told(json!({"glob": "*.rs"})), @"
    b.rs (2 bytes)
    src/a.rs (1 byte)
    ");
    insta::assert_snapshot!(told(json!({"glob": "!src", "depth": 9})), @"
    .gitignore (14 bytes)
    .ignore (10 bytes)
    b.rs (2 bytes)
    keep.log (0 bytes)
    src-b/x (0 bytes)
    ");
    insta::assert_snapshot!(told(json!({"glob": "*.none"})), @"Nothing found. Ignored files are not listed.");
    insta::assert_snapshot!(told(json!({"glob": "a{"})), @"`glob` is invalid: error parsing glob 'a{': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?).");
    insta::assert_snapshot!(told(json!({"path": "b.rs"})), @"b.rs is a file, not a directory. Use `read_file` to read it.");
    insta::assert_snapshot!(told(json!({"path": ".jp"})), @".jp can't be listed or searched: tools skip .jp.");
    // Named outright.
    insta::assert_snapshot!(told(json!({"path": "target", "depth": 2})), @"
    target/debug/
    target/debug/x (0 bytes)
    ");
}

#[test]
fn long_list_is_cut_visibly() {
    let workspace = Workspace::new(&[]);
    (0..1003).for_each(|number| workspace.write(&format!("{number:04}"), ""));
    let told = workspace.told("list_files", &json!({}));
    assert_eq!(told.lines().count(), 1001);
    insta::assert_snapshot!(told.lines().skip(999).collect::<Vec<_>>().join("\n"), @"
    0999 (0 bytes)
    Not listed: 3 more. Name a subdirectory or set `glob`.
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn special_files_are_listed_but_never_opened() {
    use std::os::unix::{ffi::OsStrExt, fs::symlink, net::UnixListener};
    let workspace = Workspace::new(&[("a\nb.rs (9 bytes)", "x")]);
    fs::write(
        workspace
            .path("")
            .join(std::ffi::OsStr::from_bytes(b"caf\xe9")),
        "x",
    )
    .unwrap();
    let _socket = UnixListener::bind(workspace.path("socket")).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(workspace.path("pipe"))
            .status()
            .unwrap()
            .success()
    );
    symlink("../outside\x1b[0m", workspace.path("link")).unwrap();
    insta::assert_snapshot!(workspace.told("list_files", &json!({})), @r#"
    a\nb.rs (9 bytes) (1 byte)
    caf� (1 byte)
    link -> ../outside\u{1b}[0m
    pipe (a pipe)
    socket (a socket)
    "#);
    for path in ["pipe", "socket", "caf\u{fffd}"] {
        let told = workspace.told("read_file", &json!({"path": path}));
        assert!(
            told.contains("not a file") || told.contains("does not exist"),
            "{told}"
        );
    }
    symlink("pipe", workspace.path("to-pipe")).unwrap();
    assert_eq!(
        workspace.told("read_file", &json!({"path": "to-pipe"})),
        "pipe is a pipe, not a file."
    );
    assert!(
        workspace
            .told(
                "edit_file",
                &json!({"path": "pipe", "old": "a", "new": "b"})
            )
            .contains("not a file")
    );
    assert_eq!(
        workspace
            .told("search_files", &json!({"pattern": "."}))
            .lines()
            .count(),
        2
    );
}

#[test]
fn matches_are_found_line_by_line() {
    let workspace = Workspace::new(&[
        ("src/a.rs", "one\nTwo\nthree\r\nfour\ntwo\n"),
        ("b.md", "two\n"),
        ("ignored.log", "two\n"),
        (".ignore", "*.log\n"),
        (".env", "two\n"),
        ("long", &format!("two {}\n", "é".repeat(200))),
    ]);
    workspace.write("binary", b"two\n\0two\n");
    workspace.write("latin", b"two caf\xe9\n");
    let told = |arguments: Value| workspace.told("search_files", &arguments);
    insta::assert_snapshot!(told(json!({"pattern": "two"})), @"
    b.md:1: two
    latin:1: two caf�
    long:1: two éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé… [cut]
    src/a.rs:5: two
    Files not searched because their names suggest secrets: 1.
    ");
    insta::assert_snapshot!(told(json!({"pattern": "TWO|three$", "case_insensitive": true, "glob": "*.rs"})), @"
    src/a.rs:2: Two
    src/a.rs:3: three
    src/a.rs:5: two
    ");
    insta::assert_snapshot!(told(json!({"pattern": "^t", "path": "src", "context": 1})), @"
    src/a.rs-2- Two
    src/a.rs:3: three
    src/a.rs-4- four
    src/a.rs:5: two
    ");
    insta::assert_snapshot!(told(json!({"pattern": "two", "path": "ignored.log"})), @"ignored.log:1: two");
    insta::assert_snapshot!(told(json!({"pattern": "KEY", "path": ".env"})), @"
    No line matches.
    Files not searched because their names suggest secrets: 1.
    ");
    insta::assert_snapshot!(told(json!({"pattern": "a(b"})), @"
    `pattern` can't be used as a regular expression: regex parse error:
        (?:a(b)
        ^
    error: unclosed group
    ");
    insta::assert_snapshot!(told(json!({"pattern": "a\\nb"})), @r#"`pattern` can't be used as a regular expression: the literal "\n" is not allowed in a regex"#);
}

#[test]
fn many_matches_are_cut_visibly() {
    let workspace = Workspace::new(&[
        ("a", &"x\n".repeat(150)),
        ("b", &"x\n".repeat(150)),
        ("c", "x"),
    ]);
    let told = workspace.told("search_files", &json!({"pattern": "x"}));
    assert_eq!(told.lines().count(), 201);
    insta::assert_snapshot!(told.lines().skip(199).collect::<Vec<_>>().join("\n"), @"
    b:50: x
    Only the first 200 matches are shown. Narrow `pattern`, `path` or `glob`.
    ");
    let all =
        Workspace::new(&[("a", &"x\n".repeat(200))]).told("search_files", &json!({"pattern": "x"}));
    assert_eq!(all.lines().count(), 200);
}

#[test]
fn walks_end_when_they_are_interrupted() {
    let workspace = Workspace::new(&[("a", "x")]);
    for (name, arguments) in [
        ("list_files", json!({})),
        ("search_files", json!({"pattern": "x"})),
    ] {
        let called = workspace
            .call_on(name, &arguments, &Line::unheard(true))
            .unwrap();
        assert_eq!(called.text(), "The call was interrupted.", "{name}");
        assert!(called.response.is_error);
    }
}

#[test]
fn readers_end_with_the_time_of_their_tool() {
    let mut workspace = Workspace::new(&[("a", "x")]);
    workspace
        .toolbox
        .tools
        .iter_mut()
        .for_each(|tool| tool.timeout = std::time::Duration::ZERO);
    insta::assert_snapshot!(workspace.told("list_files", &json!({})), @"Not finished: the call took more than 0 s. Ask for less. The user can raise the limit with `conversation.tools.list_files.timeout_secs`.");
    insta::assert_snapshot!(workspace.told("search_files", &json!({"pattern": "x"})), @"Not finished: the call took more than 0 s. Ask for less. The user can raise the limit with `conversation.tools.search_files.timeout_secs`.");
    insta::assert_snapshot!(workspace.told("search_files", &json!({"pattern": "x", "path": "a"})), @"Not finished: the call took more than 0 s. Ask for less. The user can raise the limit with `conversation.tools.search_files.timeout_secs`.");
    insta::assert_snapshot!(workspace.told("read_file", &json!({"path": "a", "first_line": 1})), @"Not finished: the call took more than 0 s. Ask for less. The user can raise the limit with `conversation.tools.read_file.timeout_secs`.");
}
