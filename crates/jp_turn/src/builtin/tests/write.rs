use super::*;

/// The detail of what a user is shown.
fn detail(called: &Called) -> &str {
    called.preview.detail.as_deref().unwrap_or_default()
}

#[test]
fn new_file_is_created_with_its_directories() {
    let workspace = Workspace::new(&[("a.rs", "x")]);
    let called = workspace
        .call(
            "create_file",
            &json!({"path": "src/b/c.rs", "content": "one\ntwo"}),
        )
        .unwrap();
    assert_eq!(called.preview.title, "create src/b/c.rs");
    insta::assert_snapshot!(detail(&called), @r#"
    --- src/b/c.rs
    +++ src/b/c.rs
    @@ -0,0 +1,2 @@
    +one
    +two
    \ No newline at end of file
    "#);
    assert_eq!(called.text(), "Created src/b/c.rs: 2 lines.");
    assert_eq!(workspace.text("src/b/c.rs"), "one\ntwo");
    let checksum = Checksum::compute(b"one\ntwo").to_string();
    assert_eq!(
        called.marks(),
        [json!({"path": "src/b/c.rs", "checksum": checksum})]
    );
    let told = |path: &str| workspace.told("create_file", &json!({"path": path, "content": "y"}));
    insta::assert_snapshot!(told("a.rs"), @"a.rs already exists. Use `edit_file` to change it.");
    insta::assert_snapshot!(told("src"), @"src already exists and is not a file.");
    insta::assert_snapshot!(told("new/"), @r#""new/" names a directory, but new is not a directory."#);
    insta::assert_snapshot!(told("a.rs/b"), @r#""a.rs/b" can't be reached: a.rs is not a directory."#);
    assert_eq!(workspace.text("a.rs"), "x");
}

#[test]
fn file_that_came_meanwhile_is_not_overwritten() {
    let workspace = Workspace::new(&[("from", "x")]);
    let mut create = workspace
        .plan("create_file", &json!({"path": "d/a", "content": "y"}))
        .unwrap();
    let mut rename = workspace
        .plan("move_file", &json!({"path": "from", "to": "d/a"}))
        .unwrap();
    workspace.write("d/a", "somebody's");
    for plan in [&mut create, &mut rename] {
        let response = (plan.act)(&Map::new(), &Line::unheard(false));
        assert_eq!(
            response.content,
            [ContentBlock::text("d/a was created in the meantime.")]
        );
    }
    assert_eq!(workspace.text("d/a"), "somebody's");
    assert_eq!(workspace.text("from"), "x");
}

#[test]
fn edit_returns_the_changed_lines() {
    let content: String = (1..=9).map(|number| format!("line {number}\n")).collect();
    let workspace = Workspace::new(&[("src/a.rs", &content)]);
    let arguments = json!({"path": "src/a.rs", "old": "line 5\n", "new": "five\nand more\n"});
    let called = workspace.call("edit_file", &arguments).unwrap();
    assert_eq!(called.preview.title, "edit src/a.rs");
    insta::assert_snapshot!(detail(&called), @"
    --- src/a.rs
    +++ src/a.rs
    @@ -2,7 +2,8 @@
     line 2
     line 3
     line 4
    -line 5
    +five
    +and more
     line 6
     line 7
     line 8
    ");
    insta::assert_snapshot!(called.text(), @r#"
    Edited src/a.rs: 2 lines added, 1 removed.
    [file://ROOT/src/a.rs#L2-9 text/x-rust]
    Text("line 2\nline 3\nline 4\nfive\nand more\nline 6\nline 7\nline 8\n")
    "#);
    let now = content.replace("line 5", "five\nand more");
    assert_eq!(workspace.text("src/a.rs"), now);
    let mark =
        json!({"path": "src/a.rs", "checksum": Checksum::compute(now.as_bytes()).to_string()});
    assert_eq!(called.marks(), [mark.clone(), mark]);
    let [_, ContentBlock::Resource { resource, .. }] = called.response.content.as_slice() else {
        panic!()
    };
    assert_eq!(
        resource.content.as_text(),
        Some("line 2\nline 3\nline 4\nfive\nand more\nline 6\nline 7\nline 8\n")
    );
}

#[test]
fn patch_is_applied_as_an_edit() {
    let workspace = Workspace::new(&[("a.rs", "one\ntwo\nthree\n")]);
    let patch = "--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,2 @@\n one\n-two\n three\n";
    let called = workspace
        .call("edit_file", &json!({"path": "a.rs", "patch": patch}))
        .unwrap();
    insta::assert_snapshot!(called.text(), @r#"
    Edited a.rs: 0 lines added, 1 removed.
    [file://ROOT/a.rs#L1-2 text/x-rust]
    Text("one\nthree\n")
    "#);
    assert_eq!(workspace.text("a.rs"), "one\nthree\n");
    let told = |arguments: Value| workspace.told("edit_file", &arguments);
    insta::assert_snapshot!(told(json!({"path": "a.rs", "patch": patch})), @"The patch does not apply to a.rs: error applying hunk #1. Its context lines must match the file exactly. Read the file again.");
    insta::assert_snapshot!(told(json!({"path": "a.rs", "old": "one"})), @"Give either both `old` and `new`, or `patch`.");
    insta::assert_snapshot!(told(json!({"path": "none.rs", "old": "one", "new": "1"})), @"none.rs does not exist. Use `list_files` to see what exists.");
    workspace.write("binary", b"\xff\0");
    insta::assert_snapshot!(told(json!({"path": "binary", "old": "one", "new": "1"})), @"binary is not UTF-8 text, so it can't be edited.");
}

#[test]
fn first_of_many_changed_places_are_shown() {
    let content: String = (1..=120)
        .map(|number| format!("{}\n", if number % 10 == 0 { "x" } else { "-" }))
        .collect();
    let workspace = Workspace::new(&[("a", &content)]);
    let arguments = json!({"path": "a", "old": "x", "new": "y", "replace_all": true});
    let called = workspace.call("edit_file", &arguments).unwrap();
    assert_eq!(called.response.content.len(), 11);
    let text = called.text();
    insta::assert_snapshot!(text.lines().next().unwrap(), @"Edited a: 12 lines added, 12 removed. Not shown here: 2 more changed places.");
}

#[test]
fn first_of_many_changed_lines_are_shown() {
    let workspace = Workspace::new(&[("a", &"x\n".repeat(20_000))]);
    let arguments = json!({"path": "a", "old": "x", "new": "y", "replace_all": true});
    let called = workspace.call("edit_file", &arguments).unwrap();
    assert!(detail(&called).starts_with("--- a\n+++ a\n@@ -1,20000 +1,20000 @@\n-x\n-x\n"));
    let [
        ContentBlock::Text { text, .. },
        ContentBlock::Resource { resource, .. },
    ] = called.response.content.as_slice()
    else {
        panic!()
    };
    insta::assert_snapshot!(text, @"Edited a: 20000 lines added, 20000 removed. Not shown here: 19800 more lines.");
    assert!(resource.uri.ends_with("/a#L1-200"), "{}", resource.uri);
    assert_eq!(resource.content.as_text(), Some(&*"y\n".repeat(200)));
}

#[test]
fn only_the_previewed_change_is_written() {
    let workspace = Workspace::new(&[("a.rs", "one\n"), ("gone.rs", "one\n")]);
    let edit = |path: &str| {
        workspace
            .plan(
                "edit_file",
                &json!({"path": path, "old": "one", "new": "1"}),
            )
            .unwrap()
    };
    let (mut first, mut second, mut gone) = (edit("a.rs"), edit("a.rs"), edit("gone.rs"));
    let act = |plan: &mut Plan<'_>| (plan.act)(&Map::new(), &Line::unheard(false));
    assert!(!act(&mut first).is_error);
    let refused = act(&mut second);
    insta::assert_debug_snapshot!(refused.content, @r#"
    [
        Text {
            text: "a.rs was changed by something else after this call was made. Read it again.",
            annotations: None,
            meta: None,
        },
    ]
    "#);
    fs::remove_file(workspace.path("gone.rs")).unwrap();
    assert!(act(&mut gone).is_error);
    assert_eq!(workspace.text("a.rs"), "1\n");
    let names: Vec<_> = fs::read_dir(workspace.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.rs"], "nothing is left behind");
}

#[cfg(unix)]
#[test]
fn edit_changes_only_the_content() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let workspace = Workspace::new(&[("run.sh", "one\n")]);
    fs::set_permissions(workspace.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(
        workspace.path("run.sh"),
        workspace.around.path().join("outside"),
    )
    .unwrap();
    symlink("run.sh", workspace.path("link")).unwrap();
    workspace
        .call(
            "edit_file",
            &json!({"path": "link", "old": "one", "new": "1"}),
        )
        .unwrap();
    assert_eq!(workspace.text("run.sh"), "1\n");
    let mode = fs::metadata(workspace.path("run.sh"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o750);
    assert!(
        fs::symlink_metadata(workspace.path("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        fs::read_to_string(workspace.around.path().join("outside")).unwrap(),
        "one\n"
    );
}

#[test]
fn file_is_moved_to_a_free_path() {
    let workspace = Workspace::new(&[("a.rs", "x"), ("b.rs", "y"), ("d/c", "")]);
    let called = workspace
        .call("move_file", &json!({"path": "a.rs", "to": "new/a.rs"}))
        .unwrap();
    assert_eq!(
        called.preview,
        Preview {
            title: "move a.rs to new/a.rs".into(),
            detail: None
        }
    );
    assert_eq!(called.text(), "Moved a.rs to new/a.rs.");
    assert_eq!(workspace.text("new/a.rs"), "x");
    assert!(!workspace.path("a.rs").exists());
    let told = |path: &str, to: &str| workspace.told("move_file", &json!({"path": path, "to": to}));
    insta::assert_snapshot!(told("new/a.rs", "b.rs"), @"b.rs already exists. Choose another path, or delete it first.");
    insta::assert_snapshot!(told("b.rs", "b.rs"), @"b.rs already exists. Choose another path, or delete it first.");
    insta::assert_snapshot!(told("b.rs", "d"), @"d already exists. Choose another path, or delete it first.");
    insta::assert_snapshot!(told("d", "e"), @"d is a directory. Only files can be moved.");
    insta::assert_snapshot!(told("none", "e"), @"none does not exist. Use `list_files` to see what exists.");
}

#[test]
fn file_or_empty_directory_is_deleted() {
    let workspace = Workspace::new(&[("a.rs", "one\ntwo\n"), ("d/b", ""), (".env", "K=1")]);
    fs::create_dir(workspace.path("empty")).unwrap();
    workspace
        .call("read_file", &json!({"path": "a.rs"}))
        .unwrap();
    let called = workspace
        .call("delete_file", &json!({"path": "a.rs"}))
        .unwrap();
    assert_eq!(called.preview.title, "delete a.rs (8 bytes, 2 lines)");
    assert_eq!(called.text(), "Deleted a.rs.");
    let called = workspace
        .call("delete_file", &json!({"path": "empty/"}))
        .unwrap();
    assert_eq!(called.preview.title, "delete empty (an empty directory)");
    assert!(!workspace.path("a.rs").exists() && !workspace.path("empty").exists());
    let told = |path: &str| workspace.told("delete_file", &json!({"path": path}));
    insta::assert_snapshot!(told("d"), @"d is a directory with 1 entry in it. Only an empty directory can be deleted.");
    insta::assert_snapshot!(told("."), @"The workspace root can't be deleted.");
    insta::assert_snapshot!(told("none"), @"none does not exist. Use `list_files` to see what exists.");
    workspace
        .call("read_file", &json!({"path": ".env"}))
        .unwrap();
    for (name, arguments) in [
        ("delete_file", json!({"path": ".env"})),
        ("move_file", json!({"path": ".env", "to": "env.txt"})),
        ("edit_file", json!({"path": ".env", "old": "K", "new": "L"})),
    ] {
        assert!(
            workspace.plan(name, &arguments).unwrap().is_sensitive,
            "{name}"
        );
    }
}

#[test]
fn file_closed_by_the_user_is_not_written() {
    let files = [
        ("locked/a", "x"),
        ("Cargo.lock", "x"),
        ("generated/keep.rs", "x"),
        ("open", "x"),
    ];
    let patterns = [
        "*.lock",
        "/locked/",
        "generated/**",
        "!generated/keep.rs",
        "# a comment",
    ];
    let workspace = Workspace::with_read_only(&files, &patterns);
    let edit =
        |path: &str| workspace.told("edit_file", &json!({"path": path, "old": "x", "new": "y"}));
    insta::assert_snapshot!(edit("Cargo.lock"), @r#"Cargo.lock can't be changed: the user's configuration makes "*.lock" read-only for tools."#);
    insta::assert_snapshot!(edit("locked/a"), @r#"locked/a can't be changed: the user's configuration makes "/locked/" read-only for tools."#);
    for (name, arguments) in [
        ("create_file", json!({"path": "locked/b/c", "content": ""})),
        (
            "create_file",
            json!({"path": "sub/Other.lock", "content": ""}),
        ),
        ("move_file", json!({"path": "open", "to": "generated/x"})),
        ("move_file", json!({"path": "Cargo.lock", "to": "x"})),
        ("delete_file", json!({"path": "locked/a"})),
    ] {
        let told = workspace.told(name, &arguments);
        assert!(
            told.contains("the user's configuration makes"),
            "{name} {arguments}: {told}"
        );
    }
    assert!(edit("generated/keep.rs").starts_with("Edited"));
    assert!(
        workspace
            .told("read_file", &json!({"path": "Cargo.lock"}))
            .starts_with("[file:")
    );
}
