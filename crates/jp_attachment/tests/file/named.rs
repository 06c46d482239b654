//! Files that are named explicitly.

use std::{
    fs,
    io::Write,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::support::{World, link, names, pipe};
use jp_attachment::{
    AttachError, Context, Counts, Delivered, Limits, Place, Progress, parse_stored, resolve,
};

const STRANGE: [&str; 9] = [
    "a b",
    "#1",
    "100%",
    "%41",
    "it's \"quoted\"",
    "🦀 ferris",
    "line\nbreak",
    "?*[x]{y}",
    "e\u{301}é",
];

#[test]
fn file_is_described() {
    let world = World::new(&["src/main.rs"]);
    let resolved = world.attach(&["src/main.rs"]).unwrap();
    let [resource] = resolved.resources.as_slice() else {
        panic!()
    };
    assert_eq!(
        resource.uri,
        format!("file://{}/src/main.rs", world.root.display())
    );
    assert_eq!(resource.name.as_deref(), Some("src/main.rs"));
    assert_eq!(resource.mime_type.as_deref(), Some("text/x-rust"));
    assert_eq!(world.text(&resource.content), "src/main.rs");
    let modified = resource
        .annotations
        .as_ref()
        .unwrap()
        .last_modified
        .as_deref()
        .unwrap();
    assert!(
        modified.len() == 20 && modified.ends_with('Z'),
        "{modified}"
    );
    assert_eq!(
        (
            resolved.totals.files,
            resolved.totals.bytes,
            resolved.totals.known
        ),
        (1, 11, 0)
    );
}

#[test]
fn strange_names_are_kept() {
    let world = World::new(&STRANGE);
    for name in STRANGE {
        let resolved = world.attach(&[&format!("./{name}")]).unwrap();
        assert_eq!(names(&resolved), [name]);
        let uri = &resolved.resources[0].uri;
        let path = jp_resource::uri::file_path(uri, jp_resource::uri::PathStyle::Unix).unwrap();
        assert_eq!(path, format!("{}/{name}", world.root.display()));
        let stored = &resolved.delivered[0].declaration;
        let again = resolve(
            &[parse_stored(stored, &world.place).unwrap()],
            &world.context(),
        )
        .unwrap();
        assert_eq!(
            (&again.resources, &again.delivered),
            (&resolved.resources, &resolved.delivered)
        );
    }
    assert_eq!(world.names(&["."]).len(), STRANGE.len());
}

#[test]
fn each_file_is_attached_once() {
    let world = World::new(&["a", "d/b", "d/c"]);
    link("d/b", world.root.join("link"));
    let resolved = world
        .attach(&["d/c", "link", "d", "d/../a", "d/c"])
        .unwrap();
    assert_eq!(names(&resolved), ["d/c", "d/b", "a"]);
    let delivered = |declared, declaration: &str, resources: &[usize]| Delivered {
        declared,
        declaration: declaration.into(),
        resources: resources.to_vec(),
    };
    assert_eq!(
        resolved.delivered,
        [
            delivered(0, "file:d/c", &[0]),
            delivered(1, "file:d/b", &[1]),
            delivered(2, "file:d/", &[1, 0]),
            delivered(3, "file:a", &[2])
        ]
    );
}

#[test]
fn resource_of_a_file_outside_does_not_contain_its_path() {
    let world = World::new(&[
        "in",
        "../confidential/dir/a.md",
        "../confidential/dir/sub/b.md",
        "../home/n.md",
        "../glob/x y.rs",
    ]);
    let inputs = [
        "in",
        "../confidential/dir",
        "~/n.md",
        "../glob/*.rs",
        "../confidential/dir/a.md",
    ];
    link(world.outer.join("home/n.md"), world.root.join("notes"));
    let resolved = world.attach(&[&inputs[..], &["notes"]].concat()).unwrap();
    assert_eq!(
        names(&resolved),
        ["in", "a.md", "sub/b.md", "n.md", "x y.rs"]
    );
    for delivered in &resolved.delivered[1..] {
        assert_eq!(delivered.resources.len(), 1);
        assert_eq!(
            delivered.declaration,
            resolved.resources[delivered.resources[0]].uri
        );
    }
    assert_eq!(resolved.delivered.len(), 5);
    let inside = format!("file://{}/", world.root.display());
    let shown = format!("{resolved:?}").replace(&inside, "");
    assert!(!shown.contains(world.outer.to_str().unwrap()), "{shown}");
    assert!(
        !shown.contains("confidential") && !shown.contains("home"),
        "{shown}"
    );
}

#[test]
fn workspace_behind_a_link_is_the_same() {
    let world = World::new(&["src/a.rs"]);
    link(&world.root, world.outer.join("link"));
    let direct = world.attach(&["src"]).unwrap();
    let place = Place {
        current_dir: world.outer.join("link/src"),
        ..world.place.clone()
    };
    for input in [".", "../src", "a.rs"] {
        let declared = jp_attachment::parse_input(input, &place).unwrap();
        let through = resolve(
            &[declared],
            &Context {
                place: &place,
                ..world.context()
            },
        )
        .unwrap();
        assert_eq!(through.resources, direct.resources);
        assert!(through.notices.is_empty());
    }
}

#[test]
fn unchanged_file_is_not_read_again() {
    let world = World::new(&["a.rs", "b"]);
    world.write("b", b"\0binary");
    let first = world.attach(&["."]).unwrap();
    world.store.drop_contents();
    let second = world.attach(&["."]).unwrap();
    assert_eq!(second.resources, first.resources);
    assert_eq!((first.totals.known, second.totals.known), (0, 2));
    assert!(world.store.is_empty());
    world.write("a.rs", "rs.a");
    assert_eq!(world.attach(&["."]).unwrap().totals.known, 1);
}

#[test]
fn file_that_was_just_written_is_not_remembered() {
    let world = World::new(&["a"]);
    let now = fs::metadata(world.root.join("a"))
        .unwrap()
        .modified()
        .unwrap()
        + Duration::from_millis(50);
    let declared = world.declare(&["a"]).unwrap();
    resolve(
        &declared,
        &Context {
            now,
            ..world.context()
        },
    )
    .unwrap();
    assert!(world.store.files().is_empty());
    resolve(
        &declared,
        &Context {
            now: now + Duration::from_secs(3),
            ..world.context()
        },
    )
    .unwrap();
    assert_eq!(world.store.files().len(), 1);
}

#[test]
fn huge_files_fail_at_once() {
    let world = World::new(&["small"]);
    for (name, size) in [("3gb", 3_000_000_000), ("1tb", 1_000_000_000_000)] {
        fs::File::create(world.root.join(name))
            .unwrap()
            .set_len(size)
            .unwrap();
        let start = Instant::now();
        assert_eq!(
            world.error(&["small", name]),
            format!(
                "attach \"{name}\": \"OUTER/workspace/{name}\" has {size} bytes, \
                 more than the 10000000 that conversation.attachment.max_bytes allows"
            )
        );
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert!(world.store.is_empty());
    let resolved = resolve(&world.declare(&["."]).unwrap(), &world.skipping()).unwrap();
    assert_eq!(
        (names(&resolved), resolved.notices.len()),
        (vec!["small".to_owned()], 2)
    );
}

#[test]
fn all_files_together_have_a_limit() {
    let world = World::new(&["aaaa", "bbbb"]);
    let limited = |max_total_bytes| Context {
        limits: Limits {
            max_total_bytes,
            ..Limits::default()
        },
        ..world.context()
    };
    let declared = world.declare(&["."]).unwrap();
    assert_eq!(resolve(&declared, &limited(8)).unwrap().totals.bytes, 8);
    let error = resolve(&declared, &limited(7)).unwrap_err().to_string();
    assert_eq!(
        error,
        "attach 2 files of 8 bytes in all, more than the 7 that conversation.attachment.max_total_bytes allows"
    );
}

#[test]
fn special_files_are_refused() {
    let world = World::new(&["a"]);
    pipe(&world.root.join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(world.root.join("socket")).unwrap();
    let table = [
        (
            "pipe",
            r#"attach "pipe": "OUTER/workspace/pipe" is a pipe, not a file or directory"#,
        ),
        (
            "socket",
            r#"attach "socket": "OUTER/workspace/socket" is a socket, not a file or directory"#,
        ),
        (
            "/dev/zero",
            r#"attach "/dev/zero": "/dev/zero" is a device, not a file or directory"#,
        ),
    ];
    for (input, message) in table {
        assert_eq!(world.error(&["a", input]), message);
    }
}

/// `/proc/self/mem` is a regular file whose first bytes not even root can read.
#[cfg(target_os = "linux")]
#[test]
fn unreadable_file_is_named() {
    let world = World::new(&["a"]);
    let path = format!("/proc/{}/mem", std::process::id());
    fs::write(world.root.join("b"), "x").unwrap();
    let declared = world.declare(&["a", &path, "b"]).unwrap();
    match resolve(&declared, &world.context()) {
        Err(AttachError::Io {
            action: "read",
            path: failed,
            ..
        }) => {
            assert_eq!(failed.to_str(), Some(path.as_str()))
        }
        // Its size is 0, so it could be taken for an empty file.
        other => panic!("{other:?}"),
    }
    assert_eq!(
        names(&resolve(&declared, &world.skipping()).unwrap()),
        ["a", "b"]
    );
}

#[test]
fn file_that_vanished_since_it_was_declared_is_missing() {
    let world = World::new(&["a", "b"]);
    let declared = world.declare(&["a", "b"]).unwrap();
    fs::remove_file(world.root.join("a")).unwrap();
    let error = resolve(&declared, &world.context())
        .unwrap_err()
        .to_string();
    assert_eq!(
        world.shorten(&error),
        r#"attach "a": "OUTER/workspace/a" does not exist"#
    );
    let resolved = resolve(&declared, &world.skipping()).unwrap();
    assert_eq!(
        resolved.delivered,
        [Delivered {
            declared: 1,
            declaration: "file:b".into(),
            resources: vec![0]
        }]
    );
    assert_eq!(
        world.notices(&resolved),
        [r#"skipped: failed to attach "a": "OUTER/workspace/a" does not exist"#]
    );
}

/// A file that is rewritten while it is read is attached in one of its states, or not at all.
#[test]
fn changing_file_is_read_whole_or_refused() {
    let world = World::new(&["changing"]);
    let states = ["a".repeat(300_000), "b".repeat(200_000)];
    world.write("changing", &states[0]);
    let stop = AtomicBool::new(false);
    let (mut whole, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let path = world.root.join("changing");
            while !stop.load(Ordering::Relaxed) {
                for state in &states {
                    let mut file = fs::File::create(&path).unwrap();
                    for part in state.as_bytes().chunks(50_000) {
                        file.write_all(part).unwrap();
                    }
                }
            }
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(500) {
            match world.attach(&["changing"]) {
                Ok(resolved) => {
                    let text = world.text(&resolved.resources[0].content);
                    assert!(
                        text.bytes().all(|byte| byte == text.as_bytes()[0]),
                        "a mixture was read"
                    );
                    whole += 1;
                }
                Err(AttachError::Changing { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(whole + refused > 0);
}

#[test]
fn progress_reaches_the_end() {
    let world = World::new(&["a", "b", "c"]);
    let progress = Progress::default();
    let context = Context {
        progress: Some(&progress),
        ..world.context()
    };
    resolve(&world.declare(&[".", "data:,four"]).unwrap(), &context).unwrap();
    assert_eq!(
        progress.counts(),
        Counts {
            items_done: 4,
            items: 4,
            bytes_done: 3,
            bytes: 3
        }
    );
}

#[test]
fn results_of_all_handlers_are_in_declared_order() {
    let world = World::new(&["a", "d/b"]);
    let resolved = world
        .attach(&["data:,1", "a", "data:,2", "d", "data:,1"])
        .unwrap();
    assert_eq!(names(&resolved), ["data:,1", "a", "data:,2", "d/b"]);
    let delivered: Vec<_> = resolved
        .delivered
        .iter()
        .map(|one| (one.declared, one.declaration.as_str(), &one.resources[..]))
        .collect();
    let expected: [(usize, &str, &[usize]); 4] = [
        (0, "data:,1", &[0]),
        (1, "file:a", &[1]),
        (2, "data:,2", &[2]),
        (3, "file:d/", &[3]),
    ];
    assert_eq!(delivered, expected);
}

#[test]
fn one_failure_fails_all_unless_it_is_tolerated() {
    let world = World::new(&["a", "b"]);
    let declared = world.declare(&["data:,1", "b", "a"]).unwrap();
    fs::remove_file(world.root.join("b")).unwrap();
    assert!(matches!(
        resolve(&declared, &world.context()),
        Err(AttachError::Missing { .. })
    ));
    assert_eq!(
        names(&resolve(&declared, &world.skipping()).unwrap()),
        ["data:,1", "a"]
    );
}

#[test]
fn limits_hold_for_all_handlers_together() {
    let world = World::new(&["four"]);
    let limits = Limits {
        max_total_bytes: 7,
        max_bytes: 4,
        ..Limits::default()
    };
    let context = Context {
        limits,
        ..world.context()
    };
    let error = |inputs: &[&str]| resolve(&world.declare(inputs).unwrap(), &context).unwrap_err();
    assert!(matches!(
        error(&["four", "data:,more"]),
        AttachError::TooManyBytes {
            files: 2,
            size: 8,
            ..
        }
    ));
    assert!(matches!(
        error(&["data:,large"]),
        AttachError::TooLong { limit: 4, .. }
    ));
}

#[test]
fn nothing_declared_gives_nothing() {
    let world = World::new(&[]);
    assert!(resolve(&[], &world.context()).unwrap().resources.is_empty());
}
