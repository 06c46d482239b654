use super::*;

fn refusal(path: &str) -> Option<String> {
    PathParam::new(path).err().map(|error| format!("{error:?}"))
}

#[test]
fn table_of_paths_holds() {
    let accepted = [
        "notes.org",
        "a/b c.org",
        "..a",
        "a..",
        "...",
        "%2e%2e/x",
        "%2Fetc",
        "é/ü",
        "ab:c",
        "1:x",
        "~",
        "-",
        "a?b#c",
    ];
    for path in accepted {
        assert_eq!(refusal(path), None, "{path}");
    }
    let refused = [
        ("/etc/passwd", "Absolute"),
        ("//host/share", "Absolute"),
        ("/", "Absolute"),
        ("..", "Dots"),
        ("../x", "Dots"),
        ("a/../b", "Dots"),
        ("a/..", "Dots"),
        (".", "Dots"),
        ("a/./b", "Dots"),
        ("", "EmptyName"),
        ("a//b", "EmptyName"),
        ("a/", "EmptyName"),
        ("C:/x", "DriveLetter"),
        ("c:x", "DriveLetter"),
        ("a/C:x", "DriveLetter"),
        ("a\\b", "Backslash"),
        ("..\\x", "Backslash"),
        ("\\\\host\\share", "Backslash"),
        ("a\0b", "Nul"),
        ("a/b\0", "Nul"),
    ];
    for (path, error) in refused {
        assert_eq!(refusal(path).as_deref(), Some(error), "{path:?}");
    }
}

#[test]
fn root_gives_the_files_below_it() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("sub/a b"), "text").unwrap();
    std::fs::write(directory.path().join("bytes"), [0xFF]).unwrap();
    let root = Root::open(directory.path()).unwrap();
    let path = PathParam::new("sub/a b").unwrap();
    assert_eq!(root.read_text(&path).unwrap(), "text");
    assert_eq!(root.join(&path).unwrap(), root.path().join("sub/a b"));
    let bytes = PathParam::new("bytes").unwrap();
    assert_eq!(root.read(&bytes).unwrap(), [0xFF]);
    assert!(matches!(root.read_text(&bytes), Err(PathError::Io(_))));
    assert!(matches!(
        root.read(&PathParam::new("sub").unwrap()),
        Err(PathError::NotAFile)
    ));
    let none = crate::ReadError::from(root.read(&PathParam::new("none").unwrap()).unwrap_err());
    assert!(matches!(none, crate::ReadError::NotFound));
}

#[test]
fn paths_that_no_file_can_have_are_not_found() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    std::fs::create_dir(directory.path().join("directory")).unwrap();
    let root = Root::open(directory.path()).unwrap();
    let error =
        |path: &str| crate::ReadError::from(root.read(&PathParam::new(path).unwrap()).unwrap_err());
    assert!(matches!(error("file/below"), crate::ReadError::NotFound));
    assert!(matches!(
        error(&"long".repeat(100)),
        crate::ReadError::NotFound
    ));
    assert!(matches!(
        error("directory"),
        crate::ReadError::BadParameters(_)
    ));
    let opened = crate::ReadError::from(
        std::fs::read_to_string(directory.path().join("directory")).unwrap_err(),
    );
    assert!(
        matches!(opened, crate::ReadError::BadParameters(_)),
        "{opened:?}"
    );
}

#[test]
fn file_over_the_limit_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let endless = std::fs::File::create(directory.path().join("large")).unwrap();
    endless.set_len(1 << 40).unwrap();
    let root = Root::open(directory.path()).unwrap().with_limit(10);
    let large = PathParam::new("large").unwrap();
    assert!(matches!(
        root.read(&large),
        Err(PathError::TooLarge { limit: 10 })
    ));
    std::fs::write(directory.path().join("large"), "0123456789").unwrap();
    assert_eq!(root.read_text(&large).unwrap(), "0123456789");
}

#[cfg(unix)]
#[test]
fn links_are_followed_only_within_the_root() {
    use std::os::unix::fs::symlink;

    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("root");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::create_dir(outside.path().join("root-sibling")).unwrap();
    for file in ["secret", "root-sibling/secret", "root/sub/note"] {
        std::fs::write(outside.path().join(file), file).unwrap();
    }
    symlink("sub/note", root.join("inside")).unwrap();
    symlink(outside.path().join("secret"), root.join("absolute")).unwrap();
    symlink("../secret", root.join("relative")).unwrap();
    symlink("../../root-sibling", root.join("sub/directory")).unwrap();
    symlink("absolute", root.join("chain")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let root = Root::open(&root).unwrap();
    assert_eq!(
        root.read_text(&PathParam::new("inside").unwrap()).unwrap(),
        "root/sub/note"
    );
    assert!(
        root.join(&PathParam::new("inside").unwrap())
            .unwrap()
            .ends_with("root/sub/note")
    );
    for path in ["absolute", "relative", "sub/directory/secret", "chain"] {
        let path = PathParam::new(path).unwrap();
        assert!(
            matches!(root.read(&path), Err(PathError::Escape)),
            "{path}: {:?}",
            root.read(&path)
        );
        assert!(matches!(root.join(&path), Err(PathError::Escape)), "{path}");
        assert_eq!(root.source(&path), None, "{path}");
    }
    symlink("../nothing", root.path().join("dangling")).unwrap();
    for path in ["dangling", "sub/directory/new", "none/new"] {
        assert_eq!(root.source(&PathParam::new(path).unwrap()), None, "{path}");
    }
    assert_eq!(
        root.source(&PathParam::new("inside").unwrap()),
        Some(root.path().join("sub/note"))
    );
    assert_eq!(
        root.source(&PathParam::new("sub/new").unwrap()),
        Some(root.path().join("sub/new"))
    );
    assert!(root.read(&PathParam::new("loop").unwrap()).is_err());
}

#[cfg(unix)]
#[test]
fn pipes_are_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(directory.path().join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let root = Root::open(directory.path()).unwrap();
    assert!(matches!(
        root.read(&PathParam::new("pipe").unwrap()),
        Err(PathError::NotAFile)
    ));
}

#[test]
fn file_that_a_person_named_is_read_up_to_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "0123456789").unwrap();
    assert_eq!(read_file(&path, 10).unwrap(), b"0123456789");
    assert!(matches!(
        read_file(&path, 9),
        Err(PathError::TooLarge { limit: 9 })
    ));
    std::fs::File::create(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert!(matches!(
        read_file(&path, 10),
        Err(PathError::TooLarge { limit: 10 })
    ));
    assert!(matches!(
        read_file(directory.path(), 10),
        Err(PathError::NotAFile)
    ));
    let none = crate::ReadError::from(read_file(directory.path().join("none"), 10).unwrap_err());
    assert!(matches!(none, crate::ReadError::NotFound));
}

#[cfg(unix)]
#[test]
fn file_that_a_user_named_may_be_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (link, pipe) = (directory.path().join("link"), directory.path().join("pipe"));
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("sub/file"), "text").unwrap();
    std::os::unix::fs::symlink("sub/file", &link).unwrap();
    assert_eq!(read_file(&link, 10).unwrap(), b"text");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    assert!(matches!(read_file(&pipe, 10), Err(PathError::NotAFile)));
}

#[cfg(unix)]
#[test]
fn file_is_read_through_no_link() {
    let outside = tempfile::tempdir().unwrap();
    let real = outside.path().canonicalize().unwrap();
    std::fs::create_dir(real.join("directory")).unwrap();
    std::fs::write(real.join("directory/file"), "mine").unwrap();
    std::os::unix::fs::symlink("directory", real.join("way")).unwrap();
    std::os::unix::fs::symlink("file", real.join("directory/link")).unwrap();
    assert_eq!(
        read_unlinked(real.join("directory/file"), 9).unwrap(),
        b"mine"
    );
    for path in ["way/file", "directory/link", "directory/missing"] {
        assert!(
            matches!(read_unlinked(real.join(path), 9), Err(PathError::Io(_))),
            "{path}"
        );
    }
    assert!(matches!(
        read_unlinked(real.join("directory"), 9),
        Err(PathError::NotAFile)
    ));
    assert!(matches!(
        read_unlinked(real.join("directory/file"), 3),
        Err(PathError::TooLarge { limit: 3 })
    ));
    assert!(matches!(read_unlinked("file", 9), Err(PathError::Dots)));
    let root = Root::open(&real).unwrap().with_limit(4);
    assert_eq!(root.read_unlinked("directory/file").unwrap(), b"mine");
    for path in [
        "way/file",
        "directory/link",
        "directory/missing",
        "../file",
        "/etc/passwd",
    ] {
        assert!(
            matches!(root.read_unlinked(path), Err(PathError::Io(_))),
            "{path}"
        );
    }
    assert!(matches!(
        root.read_unlinked("directory"),
        Err(PathError::NotAFile)
    ));
    assert!(matches!(root.read_unlinked(""), Err(PathError::Dots)));
    let root = root.with_limit(3);
    assert!(matches!(
        root.read_unlinked("directory/file"),
        Err(PathError::TooLarge { limit: 3 })
    ));
}
