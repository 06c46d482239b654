//! Ways out of the workspace, none of which leads anywhere.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use super::*;

/// The content of files outside; no file inside contains it.
const SECRET: &str = "what is outside";

/// Makes a workspace with a place outside and links to it.
fn surrounded() -> Workspace {
    let workspace = Workspace::new(&[
        ("inside.txt", "inside"),
        ("dir/x", "inside"),
        (".git/config", "inside"),
        (".git/hooks/pre-commit", "inside"),
        (".jp/config.toml", "inside"),
        ("sub/.git/config", "inside"),
    ]);
    for place in ["../outside", "../project-evil"] {
        workspace.write(&format!("{place}/secret.txt"), SECRET);
    }
    #[cfg(unix)]
    for (link, target) in [
        ("link-file", "../outside/secret.txt".into()),
        ("link-dir", "../outside".into()),
        ("link-absolute", workspace.path("../outside")),
        ("link-sibling", workspace.path("../project-evil")),
        ("link-chain", "dir/link".into()),
        ("dir/link", "../link-dir".into()),
        ("link-up", "..".into()),
        ("link-far", "dir/../../project/dir/../../outside".into()),
        ("link-root", "/".into()),
        ("link-new", "../outside/new.txt".into()),
        ("link-loop", "link-loop".into()),
        ("link-proc", "/proc/self/root".into()),
        ("link-git", ".git".into()),
        ("link-hook", "dir/../.git/hooks/pre-commit".into()),
        ("link-no-jp", "dir/.jp".into()),
    ] {
        std::os::unix::fs::symlink::<PathBuf, _>(target, workspace.path(link)).unwrap();
    }
    workspace
}

/// Returns all files and links below a directory with what they hold.
fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => {
                found.insert(path.clone(), Vec::new());
                found.extend(tree(&path));
            }
            kind if kind.is_symlink() => {
                let target = fs::read_link(&path).unwrap();
                found.insert(path, target.into_os_string().into_encoded_bytes());
            }
            _ => _ = found.insert(path.clone(), fs::read(path).unwrap()),
        }
    }
    found
}

fn reads(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": path})),
        ("list_files", json!({"path": path})),
        ("search_files", json!({"path": path, "pattern": "."})),
        (
            "run_command",
            json!({"path": path, "command": "cat secret.txt"}),
        ),
    ]
}

fn writes(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("create_file", json!({"path": path, "content": "mine"})),
        (
            "edit_file",
            json!({"path": path, "old": SECRET, "new": "mine"}),
        ),
        (
            "edit_file",
            json!({"path": path, "old": "inside", "new": "mine"}),
        ),
        ("move_file", json!({"path": path, "to": "moved"})),
        ("move_file", json!({"path": "inside.txt", "to": path})),
        ("delete_file", json!({"path": path})),
    ]
}

/// Makes the calls, each of which is refused; nothing at all is changed by them.
fn assert_refused(workspace: &Workspace, calls: &[(&str, Value)]) {
    let before = tree(workspace.around.path());
    for (name, arguments) in calls {
        match workspace.call(name, arguments) {
            Err(reason) => assert!(!reason.contains(SECRET), "{name} {arguments}: {reason}"),
            Ok(called) => {
                assert!(
                    called.response.is_error,
                    "{name} {arguments}: {}",
                    called.text()
                );
                assert!(!called.text().contains(SECRET), "{name} {arguments}");
            }
        }
    }
    assert_eq!(tree(workspace.around.path()), before);
}

#[test]
fn no_path_leads_out() {
    let workspace = surrounded();
    let root = workspace.path("").display().to_string();
    let root = root.trim_end_matches('/');
    let around = workspace
        .path("..")
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    let written = [
        // `..` wherever it may stand
        "..",
        "../",
        "../outside/secret.txt",
        "./../outside/secret.txt",
        "dir/..",
        "dir/../inside.txt",
        "dir/../../outside/secret.txt",
        "dir/./.././../outside/secret.txt",
        "none/../../outside/secret.txt",
        "inside.txt/../../outside/secret.txt",
        "..//outside/secret.txt",
        ".../../../outside/secret.txt",
        // absolute
        "/",
        "//",
        "/etc/hostname",
        "/dev/null",
        "/dev/stdin",
        "{around}/outside/secret.txt",
        "{root}/../outside/secret.txt",
        "{root}/dir/../../outside/secret.txt",
        "/../{root}/../outside/secret.txt",
        "{root}-evil/secret.txt",
        "{around}/project-evil/secret.txt",
        "/proc/self/root{root}/inside.txt",
        "/proc/self/root{around}/outside/secret.txt",
        "/proc/self/cwd/Cargo.toml",
        "/proc/self/fd/0",
        // URIs, plain and encoded
        "file:///",
        "file://{around}/outside/secret.txt",
        "FILE://{around}/outside/secret.txt",
        "file:{around}/outside/secret.txt",
        "file://localhost{around}/outside/secret.txt",
        "file://elsewhere{root}/inside.txt",
        "file://{root}/../outside/secret.txt",
        "file://{root}/%2e%2e/outside/secret.txt",
        "file://{root}/%2E./outside/secret.txt",
        "file://{root}/dir/%2e%2e/.%2e/outside/secret.txt",
        "file://{root}/..%2foutside/secret.txt",
        "file://{root}/..%2Foutside%2Fsecret.txt",
        "file://{root}/dir%2F..%2F..%2Foutside%2Fsecret.txt",
        "file://{root}%2F..%2Foutside/secret.txt",
        "file://{root}-evil/secret.txt",
        "file://{root}/inside.txt%00",
        "file://{root}/%252e%252e/outside/secret.txt",
        "file://{root}/%25252e%25252e/outside/secret.txt",
        "file://{root}/..%5coutside",
        "file:",
        "file:inside.txt",
        "file:../outside/secret.txt",
        "http://example.com/inside.txt",
        "workspace:///inside.txt",
        // encoded, where nothing decodes
        "%2e%2e/outside/secret.txt",
        "%2e%2e%2foutside%2fsecret.txt",
        "..%2foutside%2fsecret.txt",
        "%252e%252e%252foutside",
        "dir/%2e%2e/%2e%2e/outside/secret.txt",
        "..%c0%af/%2e%2e",
        "..%00/x",
        // NUL
        "\0",
        "inside.txt\0",
        "../outside/secret.txt\0.rs",
        "inside.txt\0/../../outside/secret.txt",
        // home directories, drives, servers
        "~",
        "~/",
        "~/.ssh/id_rsa",
        "~root/.bashrc",
        "C:",
        "C:/Windows/win.ini",
        "c:inside.txt",
        "C:\\Windows\\win.ini",
        "\\\\server\\share\\x",
        "\\\\?\\C:\\x",
        "\\\\.\\pipe\\x",
        "//server/share/x",
        "..\\outside\\secret.txt",
        "dir\\..\\..\\outside\\secret.txt",
        "dir/..\\../outside/secret.txt",
        // nothing, and too much
        "",
        "{long}",
        "{deep}",
    ];
    let links = [
        "link-file",
        "link-file/",
        "./link-file",
        "{root}/link-file",
        "file://{root}/link-file",
        "link-dir",
        "link-dir/",
        "link-dir/.",
        "link-dir/secret.txt",
        "link-dir/new.txt",
        "link-dir/new/new.txt",
        "dir/link/secret.txt",
        "link-absolute/secret.txt",
        "link-sibling/secret.txt",
        "link-chain/secret.txt",
        "link-up/outside/secret.txt",
        "link-up/project/inside.txt",
        "link-far/secret.txt",
        "link-root",
        "link-root{around}/outside/secret.txt",
        "link-proc{around}/outside/secret.txt",
        "link-new",
        "link-loop",
        "link-loop/x",
    ];
    let links = if cfg!(unix) { links.as_slice() } else { &[] };
    for path in written.iter().chain(links) {
        let path = path.replace("{root}", root).replace("{around}", &around);
        let path = path
            .replace("{long}", &"a".repeat(5000))
            .replace("{deep}", &"a/".repeat(2000));
        assert_refused(&workspace, &[reads(&path), writes(&path)].concat());
    }
}

#[test]
fn no_spelling_of_a_reserved_name_is_written() {
    let workspace = surrounded();
    let root = workspace.path("").display().to_string();
    let root = root.trim_end_matches('/');
    let paths = [
        ".git",
        ".git/",
        ".git/config",
        ".git/new",
        ".GIT/config",
        ".Git/hooks/new",
        ".gIt",
        "sub/.git/config",
        "sub/.GIT/config",
        "sub/deep/er/.git/config",
        ".jp/config.toml",
        ".JP/config.toml",
        "dir/.jp/config.toml",
        ".git./config",
        ".git /config",
        ".git. . /config",
        ".git::$INDEX_ALLOCATION/config",
        ".git:config",
        "git~1/config",
        "GIT~1/config",
        "GIT~1",
        "jp~1/config.toml",
        ".g\u{200c}it/config",
        ".\u{feff}git/config",
        "./.git/config",
        ".//.git//config",
        "{root}/.git/config",
        "file://{root}/.git/config",
        "file://{root}/%2egit/config",
        "file://{root}/%2E%47it/config",
    ];
    let links = [
        "link-git/config",
        "link-git/new",
        "link-hook",
        "link-no-jp",
        "link-no-jp/new",
    ];
    let links = if cfg!(unix) { links.as_slice() } else { &[] };
    for path in paths.iter().chain(links) {
        assert_refused(&workspace, &writes(&path.replace("{root}", root)));
    }
    assert!(
        workspace
            .told("read_file", &json!({"path": ".git/config"}))
            .starts_with("[file:")
    );
}

#[cfg(unix)]
#[test]
fn file_swapped_after_the_prompt_is_not_followed() {
    let workspace = surrounded();
    workspace.write("d/secret.txt", "inside");
    // Else it would not be deleted.
    workspace
        .call("read_file", &json!({"path": "dir/x"}))
        .unwrap();
    let plans = [
        ("read_file", json!({"path": "d/secret.txt"})),
        ("list_files", json!({"path": "d"})),
        ("search_files", json!({"path": "d", "pattern": "."})),
        ("create_file", json!({"path": "d/new", "content": "mine"})),
        ("create_file", json!({"path": "n/e/w", "content": "mine"})),
        ("move_file", json!({"path": "inside.txt", "to": "n/moved"})),
        (
            "edit_file",
            json!({"path": "d/secret.txt", "old": "inside", "new": "mine"}),
        ),
        ("delete_file", json!({"path": "dir/x"})),
        (
            "edit_file",
            json!({"path": "inside.txt", "old": "inside", "new": "mine"}),
        ),
    ];
    let plans: Vec<_> = plans
        .iter()
        .map(|(name, arguments)| workspace.plan(name, arguments).unwrap())
        .collect();
    let swap = |path: &str, target: &str| {
        _ = fs::rename(workspace.path(path), workspace.path(&format!("{path}.was")));
        std::os::unix::fs::symlink(target, workspace.path(path)).unwrap();
    };
    swap("d", "../outside");
    swap("n", "../outside");
    swap("dir/x", "../../outside/secret.txt");
    swap("inside.txt", "../outside/secret.txt");
    let outside = tree(&workspace.path("../outside"));
    for mut plan in plans {
        let response = (plan.act)(&Map::new(), &Line::unheard(false));
        assert!(
            !format!("{response:?}").contains(SECRET),
            "{}",
            plan.preview.title
        );
    }
    assert_eq!(tree(&workspace.path("../outside")), outside);
    assert!(
        fs::symlink_metadata(workspace.path("inside.txt"))
            .unwrap()
            .is_symlink()
    );
}

#[cfg(unix)]
#[test]
fn constant_swaps_never_lead_outside() {
    // How many calls come through in a round is up to the scheduler: rounds go on until enough
    // have.
    const ROUNDS: usize = 50;
    const MOST_ROUNDS: usize = 100 * ROUNDS;
    let workspace = surrounded();
    workspace.write("d/secret.txt", "inside");
    workspace.write("f", "inside");
    let outside = tree(&workspace.path("../outside"));
    let is_over = AtomicBool::new(false);
    let swap = |path: &str, target: &str| {
        let (path, aside) = (
            workspace.path(path),
            workspace.path(&format!("{path}.aside")),
        );
        while !is_over.load(Relaxed) {
            // A step fails if a call has changed its file; a call may also have created the
            // directory again.
            if aside.exists() {
                _ = fs::remove_dir_all(&path);
                _ = fs::rename(&aside, &path);
            }
            _ = fs::rename(&path, &aside);
            _ = std::os::unix::fs::symlink(target, &path);
            thread::yield_now();
            _ = fs::remove_file(&path);
            _ = fs::rename(&aside, &path);
            thread::yield_now();
        }
    };
    let mut done = 0;
    thread::scope(|scope| {
        scope.spawn(|| swap("d", "../outside"));
        scope.spawn(|| swap("f", "../outside/secret.txt"));
        for round in 0..MOST_ROUNDS {
            if round >= ROUNDS && done > ROUNDS {
                break;
            }
            for path in ["d/secret.txt", "f"] {
                for (name, arguments) in [
                    ("read_file", json!({"path": path})),
                    (
                        "edit_file",
                        json!({"path": path, "old": "inside", "new": "inside and"}),
                    ),
                    (
                        "edit_file",
                        json!({"path": path, "old": "inside and", "new": "inside"}),
                    ),
                    (
                        "create_file",
                        json!({"path": format!("d/new-{round}"), "content": "mine"}),
                    ),
                    ("delete_file", json!({"path": format!("d/new-{round}")})),
                    ("search_files", json!({"path": "d", "pattern": "."})),
                    ("list_files", json!({"path": "d"})),
                ] {
                    let Ok(called) = workspace.call(name, &arguments) else {
                        continue;
                    };
                    assert!(!called.text().contains(SECRET), "{name} {arguments}");
                    done += usize::from(!called.response.is_error);
                }
            }
        }
        is_over.store(true, Relaxed);
    });
    assert_eq!(tree(&workspace.path("../outside")), outside);
    assert!(done > ROUNDS, "only {done} calls came through");
}

#[cfg(unix)]
#[test]
fn file_swapped_for_a_link_inside_is_not_followed() {
    let workspace = Workspace::new(&[("notes.txt", "notes"), (".env", SECRET)]);
    let mut plan = workspace
        .plan("read_file", &json!({"path": "notes.txt"}))
        .unwrap();
    assert!(!plan.is_sensitive);
    fs::remove_file(workspace.path("notes.txt")).unwrap();
    std::os::unix::fs::symlink(".env", workspace.path("notes.txt")).unwrap();
    let response = (plan.act)(&Map::new(), &Line::unheard(false));
    assert!(
        response.is_error && !format!("{response:?}").contains(SECRET),
        "{response:?}"
    );
}
