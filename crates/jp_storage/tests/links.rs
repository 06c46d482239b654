//! A link that appears after something was looked at is not followed either.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use jp_conversation::{Event, EventKind};
use jp_resource::Encoding;
use jp_storage::{Located, Store, Workspace, lock::TryLock};
use testing::assert_starts;

/// Makes a workspace with one conversation in a directory.
fn workspace(root: &Path) -> (Store, Located) {
    fs::create_dir_all(root.join(".jp")).unwrap();
    let store = Workspace::open(root, &root.join("data"), &root.join("cache"))
        .unwrap()
        .store();
    let mut writer = store
        .start(None, "2026-11-21T12:00:00Z".parse().unwrap(), &[])
        .unwrap();
    writer.append(vec![turn()], store.batch()).unwrap();
    let located = store.find(writer.id()).unwrap().unwrap();
    (store, located)
}

fn turn() -> Event {
    Event::new(
        "2026-11-21T12:00:00Z".parse().unwrap(),
        EventKind::TurnStart,
    )
}

/// Moves what is at a path aside and puts a link to `target` there.
fn replace_with_link(path: &Path, target: &Path) {
    fs::rename(path, path.with_extension("aside")).unwrap();
    symlink(target, path).unwrap();
}

#[test]
fn conversation_that_becomes_a_link_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| workspace(&root.join(name)));
    let parts = |located: &Located| -> [PathBuf; 3] {
        let conversations = located.directory.parent().unwrap().to_owned();
        [located.events(), located.directory.clone(), conversations]
    };
    let before = fs::read(theirs.1.events()).unwrap();
    for (path, target) in parts(&ours.1).into_iter().zip(parts(&theirs.1)) {
        let (store, located) = &ours;
        let lock = |store: &Store| match store.try_lock(located.id).unwrap() {
            TryLock::Acquired(lock) => lock,
            TryLock::Held(_) => panic!("nobody else writes"),
        };
        let mut writer = store.writer(&store.read(located).unwrap(), lock(store));
        replace_with_link(&path, &target);
        let error = writer.append(vec![turn()], store.batch()).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_starts(&cause, format!("{} is a symbolic link", path.display()));
        if path != located.events() {
            assert!(
                writer
                    .activate("2026-11-21T12:00:00Z".parse().unwrap())
                    .finish()
                    .is_err()
            );
            drop(writer);
            assert!(store.remove(located, lock(store)).is_err());
        }
        assert_eq!(fs::read(theirs.1.events()).unwrap(), before);
        fs::remove_file(&path).unwrap();
        fs::rename(path.with_extension("aside"), &path).unwrap();
    }
    assert!(ours.0.read(&ours.1).is_ok());
}

#[test]
fn blob_directory_that_becomes_a_link_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = workspace(&directory.path().join("ours"));
    let outside = directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let batch = store.batch();
    let blob = batch.put(b"content", Encoding::Utf8).unwrap();
    let path = store.blobs().path(&blob.checksum);
    replace_with_link(path.parent().unwrap(), &outside);
    assert!(batch.commit().is_err());
    assert!(fs::read_dir(&outside).unwrap().next().is_none());
    // Nor is it reused because a file of its length is there.
    fs::write(outside.join(path.file_name().unwrap()), [0; 27]).unwrap();
    let batch = store.batch();
    assert!(batch.reuse(&blob, Some(27)).is_err());
    assert!(store.blobs().iter().unwrap().any(|blob| blob.is_err()));
    assert!(store.blobs().read(&blob).is_err());
}
