//! Reading beside another process that writes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use jiff::Timestamp;
use jp_conversation::{ChatRequest, ChatResponse, Event, EventKind};
use jp_resource::Encoding;
use jp_storage::{BlobError, Located, ReadError, Store, Workspace, lock::TryLock};

/// Where the writer finds the workspace; without it the test that is the writer does nothing.
const DIRECTORY: &str = "JP_TEST_BESIDE";

fn workspace(directory: &Path) -> Workspace {
    let root = directory.join("project");
    fs::create_dir_all(root.join(".jp")).unwrap();
    Workspace::open(&root, &directory.join("data"), &directory.join("cache")).unwrap()
}

fn event(kind: EventKind) -> Event {
    Event::new(Timestamp::UNIX_EPOCH, kind)
}

fn start(store: &Store) -> Located {
    let mut writer = store
        .start(
            Some("A title"),
            "2026-11-21T12:00:00Z".parse().unwrap(),
            &[],
        )
        .unwrap();
    let long = |_| {
        event(EventKind::ChatResponse(ChatResponse::message(
            "word ".repeat(200),
        )))
    };
    let mut events = vec![event(EventKind::ChatRequest(ChatRequest::new("go")))];
    events.extend((0..400).map(long));
    writer.append(events, store.batch()).unwrap();
    store.find(writer.id()).unwrap().unwrap()
}

#[test]
fn content_is_found_in_a_recreated_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = workspace(directory.path()).store();
    let put = |store: &Store, content: &[u8]| {
        let batch = store.blobs().batch();
        let blob = batch.put(content, Encoding::Utf8).unwrap();
        batch.commit().unwrap();
        blob
    };
    let first = put(&store, b"first");
    assert_eq!(store.blobs().read(&first).unwrap(), b"first");
    // As a checkout of another state does, while this process keeps its store open.
    fs::remove_dir_all(directory.path().join("project/.jp")).unwrap();
    assert!(matches!(
        store.blobs().read(&first),
        Err(BlobError::Missing { .. })
    ));
    let second = put(&workspace(directory.path()).store(), b"second");
    assert_eq!(store.blobs().read(&second).unwrap(), b"second");
}

/// Runs a test of this file in a process of its own.
fn run_beside(test: &str, directory: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(DIRECTORY, directory);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn directory_of_writer() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// No test: the process that writes, torn ends and older files included.
#[test]
fn write_in_a_loop() {
    let Some(directory) = directory_of_writer() else {
        return;
    };
    let store = workspace(&directory).store();
    let located = store.list().unwrap().remove(0);
    for round in 0..80 {
        let TryLock::Acquired(lock) = store.try_lock(located.id).unwrap() else {
            panic!("nobody else writes")
        };
        if round % 10 == 5 {
            let file = fs::File::options()
                .write(true)
                .open(located.events())
                .unwrap();
            file.set_len(file.metadata().unwrap().len() - 20).unwrap();
        } else if round % 10 == 8 {
            let text = fs::read_to_string(located.events()).unwrap();
            let whole = directory.join("older.json");
            fs::write(
                &whole,
                text.replace("\"1970-01-01T00:00:00Z\"", "\"1970-01-01 00:00:00.0\""),
            )
            .unwrap();
            fs::rename(whole, located.events()).unwrap();
        }
        let mut writer = store.writer(&store.read(&located).unwrap(), lock);
        let answer = || {
            event(EventKind::ChatResponse(ChatResponse::message(
                "more ".repeat(round * 7),
            )))
        };
        writer
            .append(vec![answer(), answer()], store.batch())
            .unwrap();
    }
}

#[test]
fn reader_finds_nothing_wrong_while_another_process_writes() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = workspace(directory.path());
    let store = workspace.store();
    let located = start(&store);
    let mut writer = run_beside("write_in_a_loop", directory.path());
    let mut reads = 0;
    while writer.try_wait().unwrap().is_none() {
        let conversation = store
            .read(&located)
            .unwrap_or_else(|error| panic!("read {reads}: {error:?}"));
        assert_eq!(conversation.warnings, [""; 0], "read {reads}");
        assert!(conversation.stream.events().len() > 400);
        assert_eq!(store.blobs_of(&located).unwrap().len(), 0);
        assert_eq!(workspace.index().summary(&store, &located).turns, Some(1));
        reads += 1;
    }
    assert!(writer.wait().unwrap().success() && reads > 5, "{reads}");
}

/// No test: the process that removes conversations.
#[test]
fn remove_in_a_loop() {
    let Some(directory) = directory_of_writer() else {
        return;
    };
    let store = workspace(&directory).store();
    for located in store.list().unwrap() {
        let TryLock::Acquired(lock) = store.try_lock(located.id).unwrap() else {
            panic!("nobody else writes")
        };
        store.remove(&located, lock).unwrap();
    }
}

#[test]
fn conversation_that_is_removed_meanwhile_is_not_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let store = workspace(directory.path()).store();
    let located: Vec<_> = (0..30).map(|_| start(&store)).collect();
    let mut remover = run_beside("remove_in_a_loop", directory.path());
    while !store.list().unwrap().is_empty() {
        for located in &located {
            match store.read(located) {
                Ok(conversation) => assert_eq!(conversation.warnings, [""; 0]),
                Err(error) => assert!(matches!(error, ReadError::Removed { .. }), "{error:?}"),
            }
        }
        assert!(
            remover
                .try_wait()
                .unwrap()
                .is_none_or(|status| status.success())
        );
    }
    assert!(remover.wait().unwrap().success());
}
