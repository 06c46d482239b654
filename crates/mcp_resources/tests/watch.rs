//! Files that change, told to subscribers. The servers run in this process; the files are real.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use mcp_resources::{
    FileWatch, Interest, Parameters, ReadError, Registry, Resource, ResourceTemplate, Root, Server,
    WatchError,
};
use serde_json::json;
use tempfile::TempDir;
use testing::assert_contains;
use testing::mcp::{Client, Era};

const ERAS: [Era; 2] = [Era::Legacy("2025-11-25"), Era::Modern];

/// A server of all files of a directory, by a template, and of `a.org` by a URI of its own.
fn registry(directory: &Path) -> Registry {
    let root = Root::open(directory).unwrap();
    let (files, path) = (root.path().to_owned(), directory.join("a.org"));
    let registry = Registry::new();
    let note = Resource::new("org://a.org", "a.org", || "").source(path);
    registry.register_resource(note).unwrap();
    let template =
        ResourceTemplate::new("file:///{+path}", "File", move |parameters: Parameters| {
            root.read_text(&parameters.path("path")?)
                .map_err(ReadError::from)
        });
    let source = move |parameters: &Parameters| Some(files.join(parameters.optional("path")?));
    registry.register_template(template.source(source)).unwrap();
    registry
}

fn write(directory: &TempDir, name: &str, content: &str) {
    fs::write(directory.path().join(name), content).unwrap();
}

/// Ends what `subscribe` began: with the session, and with the stream.
async fn leave(mut client: Client) {
    if client.era == Era::Modern {
        client
            .notify("notifications/cancelled", json!({ "requestId": 1 }))
            .await;
        client.result("resources/list", json!({})).await;
    }
}

/// Waits until all is told that happened before: a step may be several changes, which a busy machine may tell apart.
/// Directories are made, each of which is one, and the second one when that of the first is told.
async fn settle(client: &mut Client, directory: &Path, step: &str) {
    for name in [format!("{step}-1"), format!("{step}-2")] {
        let uri = format!("file:///{name}");
        client.subscribe(&[&uri]).await;
        fs::create_dir(directory.join(name)).unwrap();
        while client.updated().await != *uri {}
    }
}

#[test]
fn errors_repeat_their_cause() {
    let message = WatchError::Start("there are no more watches".into()).to_string();
    assert_eq!(
        message,
        "files can't be watched, so changes are not reported: there are no more watches"
    );
}

fn watch(registry: &Registry) -> FileWatch {
    FileWatch::start(registry, |error| panic!("{error}")).unwrap()
}

#[tokio::test]
async fn subscriber_hears_of_every_change_of_a_file() {
    for era in ERAS {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.org");
        fs::write(&file, "1").unwrap();
        let registry = registry(directory.path());
        let _watch = watch(&registry);
        let mut client = support::serve(Server::new("test", "1", registry), era).await;
        client.subscribe(&["org://a.org"]).await;
        fs::write(&file, "2").unwrap();
        assert_eq!(client.updated().await, "org://a.org", "{era:?}");
        settle(&mut client, directory.path(), "written").await;
        write(&directory, "new", "3");
        fs::rename(directory.path().join("new"), &file).unwrap();
        assert_eq!(client.updated().await, "org://a.org", "{era:?}");
        settle(&mut client, directory.path(), "replaced").await;
        fs::remove_file(&file).unwrap();
        assert_eq!(client.updated().await, "org://a.org", "{era:?}");
        settle(&mut client, directory.path(), "removed").await;
        fs::write(&file, "4").unwrap();
        assert_eq!(client.updated().await, "org://a.org", "{era:?}");
    }
}

#[tokio::test]
async fn subscriber_of_a_template_hears_only_of_its_own_file() {
    for era in ERAS {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b c.org", "d.org"] {
            write(&directory, name, "1");
        }
        let registry = registry(directory.path());
        let _watch = watch(&registry);
        let mut client = support::serve(Server::new("test", "1", registry), era).await;
        client.subscribe(&["file:///b%20c.org"]).await;
        client.subscribe(&["file:///d.org"]).await;
        client
            .result("resources/read", json!({ "uri": "file:///b%20c.org" }))
            .await;
        write(&directory, "d.org", "2");
        assert_eq!(client.updated().await, "file:///d.org", "{era:?}");
        write(&directory, "b c.org", "2");
        let mut uri = client.updated().await;
        // Writing is two changes, which a busy machine may tell apart.
        while uri == "file:///d.org" {
            uri = client.updated().await;
        }
        assert_eq!(uri, "file:///b%20c.org", "{era:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn subscriber_hears_of_a_file_behind_a_link() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = elsewhere.path().join("real.org");
    fs::write(&file, "1").unwrap();
    std::os::unix::fs::symlink(&file, directory.path().join("a.org")).unwrap();
    let registry = registry(directory.path());
    let _watch = watch(&registry);
    let mut client = support::serve(Server::new("test", "1", registry), ERAS[0]).await;
    client.subscribe(&["org://a.org"]).await;
    fs::write(&file, "2").unwrap();
    assert_eq!(client.updated().await, "org://a.org");
    let other = elsewhere.path().join("sub/other.org");
    fs::create_dir(other.parent().unwrap()).unwrap();
    fs::write(&other, "3").unwrap();
    std::os::unix::fs::symlink(&other, directory.path().join("new")).unwrap();
    fs::rename(directory.path().join("new"), directory.path().join("a.org")).unwrap();
    client
        .expect_update("org://a.org", "the link leads elsewhere")
        .await;
    fs::write(&other, "4").unwrap();
    client
        .expect_update("org://a.org", "what it leads to is watched")
        .await;
    settle(&mut client, directory.path(), "watched").await;
    for circle in ["a.org", "a.org/x"] {
        std::os::unix::fs::symlink(circle, directory.path().join("new")).unwrap();
        fs::rename(directory.path().join("new"), directory.path().join("a.org")).unwrap();
        assert_eq!(client.updated().await, "org://a.org", "a link in a circle");
        settle(
            &mut client,
            directory.path(),
            circle.split('/').next_back().unwrap(),
        )
        .await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn subscriber_hears_of_a_link_to_a_directory_that_is_turned_elsewhere() {
    use std::os::unix::fs::symlink;
    for named in ["a.org", "data/a.org"] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for version in ["v1", "v2", "v3"] {
            fs::create_dir(path(version)).unwrap();
            fs::write(path(version).join("a.org"), version).unwrap();
        }
        symlink("v1", path("data")).unwrap();
        symlink("data/a.org", path("a.org")).unwrap();
        let registry = registry(directory.path());
        let _watch = FileWatch::start(&registry, |_| ()).unwrap();
        let note = Resource::new("org://note", "note", || "").source(path(named));
        registry.register_resource(note).unwrap();
        let mut client = support::serve(Server::new("test", "1", registry), ERAS[0]).await;
        client.subscribe(&["org://note"]).await;
        symlink("./v2", path("new")).unwrap();
        fs::rename(path("new"), path("data")).unwrap();
        client
            .expect_update("org://note", &format!("{named}: the link leads elsewhere"))
            .await;
        settle(&mut client, directory.path(), "turned").await;
        fs::remove_file(path("data")).unwrap();
        client
            .expect_update("org://note", &format!("{named}: the link is gone"))
            .await;
        settle(&mut client, directory.path(), "gone").await;
        symlink(path("v3"), path("data")).unwrap();
        client
            .expect_update("org://note", &format!("{named}: the link is back"))
            .await;
        settle(&mut client, directory.path(), "back").await;
        fs::write(path("v3/a.org"), "changed").unwrap();
        client
            .expect_update(
                "org://note",
                &format!("{named}: what it leads to is watched"),
            )
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_is_seen_once_its_missing_directory_comes() {
    let directory = tempfile::tempdir().unwrap();
    let registry = registry(directory.path());
    let (sender, reports) = mpsc::channel();
    let _watch = FileWatch::start(&registry, move |error| {
        sender.send(error.to_string()).unwrap()
    })
    .unwrap();
    let mut client = support::serve(Server::new("test", "1", registry), ERAS[0]).await;
    client.subscribe(&["file:///no/b.org"]).await;
    let report = reports.recv_timeout(testing::mcp::PATIENCE).unwrap();
    assert_contains(
        &report,
        "no can't be watched, so its changes are not reported for now",
    );
    fs::create_dir(directory.path().join("no")).unwrap();
    client
        .expect_update("file:///no/b.org", "the directory is there")
        .await;
    write(&directory, "no/b.org", "1");
    assert_eq!(client.updated().await, "file:///no/b.org", "the file is");
}

#[tokio::test]
async fn subscriber_hears_of_a_file_in_a_directory_that_was_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (folder, file) = (
        directory.path().join("folder"),
        directory.path().join("folder/b.org"),
    );
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "1").unwrap();
    let registry = registry(directory.path());
    let _watch = FileWatch::start(&registry, |_| ()).unwrap();
    let mut client = support::serve(Server::new("test", "1", registry), ERAS[0]).await;
    client.subscribe(&["file:///folder/b.org"]).await;
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(client.updated().await, "file:///folder/b.org", "it is gone");
    fs::create_dir(&folder).unwrap();
    client
        .expect_update("file:///folder/b.org", "the directory is back")
        .await;
    fs::write(&file, "2").unwrap();
    client
        .expect_update("file:///folder/b.org", "the file is")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interest_lasts_from_the_first_subscriber_to_the_last() {
    for era in ERAS {
        let registry = Registry::new();
        registry
            .register_resource(Resource::new("org://a.org", "a", || ""))
            .unwrap();
        let (sender, interests) = mpsc::channel();
        let _observing = registry.on_interest(move |_, interest| {
            let told = match interest {
                Interest::Begins(uri) => format!("begins {uri}"),
                Interest::Ends(uri) => format!("ends {uri}"),
                other => panic!("{other:?}"),
            };
            sender.send(told).unwrap();
        });
        let server = Arc::new(Server::new("test", "1", registry));
        let mut one = support::share(&server, era).await;
        let mut other = support::share(&server, era).await;
        one.subscribe(&["ORG://a.org"]).await;
        other.subscribe(&["org://a.org"]).await;
        leave(one).await;
        leave(other).await;
        let next = || interests.recv_timeout(testing::mcp::PATIENCE).unwrap();
        let told = tokio::task::block_in_place(|| [next(), next()]);
        assert_eq!(told, ["begins org://a.org", "ends org://a.org"], "{era:?}");
    }
}

#[tokio::test]
async fn subscriber_hears_of_each_file_that_a_template_names() {
    for era in ERAS {
        let directory = tempfile::tempdir().unwrap();
        let files = ["a.org", "b.org"].map(|file| directory.path().join(file));
        let sources = files.clone();
        let template = ResourceTemplate::new("org://id/{id}", "Headline", |_: Parameters| "");
        let registry = Registry::new();
        registry
            .register_template(template.source(move |_| sources.clone()))
            .unwrap();
        let _watch = watch(&registry);
        let mut client = support::serve(Server::new("test", "1", registry), era).await;
        client.subscribe(&["org://id/1"]).await;
        for file in files {
            fs::write(file, "1").unwrap();
            assert_eq!(client.updated().await, "org://id/1", "{era:?}");
        }
    }
}

#[tokio::test]
async fn watcher_that_takes_long_for_each_file_is_waited_for_once_for_all() {
    let (end, ended) = mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    // As one with many files: together they take most of a minute.
    let source = move |_: &Parameters| {
        count.fetch_add(1, Ordering::Relaxed);
        let _ = ended
            .lock()
            .unwrap()
            .recv_timeout(std::time::Duration::from_millis(500));
        None::<std::path::PathBuf>
    };
    let registry = Registry::new();
    let template = ResourceTemplate::new("org://id/{id}", "Headline", |_: Parameters| "");
    registry.register_template(template.source(source)).unwrap();
    let _watch = watch(&registry);
    let mut client = support::serve(Server::new("test", "1", registry), Era::Modern).await;
    let uris: Vec<String> = (0..100)
        .map(|number| format!("org://id/{number}"))
        .collect();
    client
        .listen(json!({ "resourceSubscriptions": uris }))
        .await;
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked < 100, "the client waited for all {asked}");
    client.result("resources/list", json!({})).await;
    drop(end);
}

#[tokio::test]
async fn watcher_that_does_not_answer_is_waited_for_once() {
    let (end, ended) = mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    // As a file system that hangs.
    let source = move |_: &Parameters| {
        let _ = ended.lock().unwrap().recv();
        None::<std::path::PathBuf>
    };
    let registry = Registry::new();
    let template = ResourceTemplate::new("org://id/{id}", "Headline", |_: Parameters| "");
    registry.register_template(template.source(source)).unwrap();
    let _watch = watch(&registry);
    let mut client = support::serve(Server::new("test", "1", registry), Era::Modern).await;
    let uris: Vec<String> = (0..100)
        .map(|number| format!("org://id/{number}"))
        .collect();
    client
        .listen(json!({ "resourceSubscriptions": uris }))
        .await;
    drop(end);
}
