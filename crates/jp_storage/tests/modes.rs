//! The modes of what is written.
//!
//! The umask is the whole process's, so there is one test here and no other.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use jp_conversation::{ChatRequest, Event, EventKind};
use jp_resource::{Payload, Resource, ResourceContent};
use jp_storage::{Workspace, lock::TryLock};

#[test]
fn umask_limits_the_modes_of_files() {
    // None of those that people have otherwise.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join(".jp")).unwrap();
    let ordinary = root.join("ordinary");
    fs::create_dir(&ordinary).unwrap();
    fs::write(ordinary.join("file"), "").unwrap();

    let store = Workspace::open(root, &root.join("data"), &root.join("cache"))
        .unwrap()
        .store();
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let mut writer = store.start(Some("A title"), now, &[]).unwrap();
    let content = Payload::Inline(ResourceContent::Text("x".repeat(100_000)));
    let request = ChatRequest {
        resources: vec![Resource::new("file:///a", content)],
        ..ChatRequest::new("look at this")
    };
    writer
        .append(
            vec![Event::new(now, EventKind::ChatRequest(request))],
            store.batch(),
        )
        .unwrap();
    let located = store.find(writer.id()).unwrap().unwrap();
    drop(writer);
    let TryLock::Acquired(lock) = store.try_lock(located.id).unwrap() else {
        panic!("nobody else writes")
    };
    let mut writer = store.writer(&store.read(&located).unwrap(), lock);
    writer
        .append(vec![Event::new(now, EventKind::TurnStart)], store.batch())
        .unwrap();
    writer.activate(now).finish().unwrap();

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&located.directory), mode(&ordinary)), (0o750, 0o750));
    let blobs = store.blobs().iter().unwrap().map(|blob| blob.unwrap().path);
    let files: Vec<PathBuf> = blobs.chain(store.files_of(&located).unwrap()).collect();
    assert_eq!(files.len(), 3);
    for file in files {
        assert_eq!(
            mode(&file),
            mode(&ordinary.join("file")),
            "{}",
            file.display()
        );
    }
}
