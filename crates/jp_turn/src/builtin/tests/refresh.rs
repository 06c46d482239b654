use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jp_resource::{Resource, ResourceContent};

use super::*;
use crate::{Consent, Refresh, Refreshed, Refreshing};

/// Gives `new` for whatever it is asked for; fails once it is cancelled.
#[derive(Debug)]
struct Always(Consent);

impl Refresh for Always {
    fn plan(&self, uri: &str) -> Result<Refreshing<'_>, String> {
        let (uri, named) = (uri.to_owned(), uri.to_owned());
        let take = move |cancelled: &AtomicBool| match cancelled.load(Relaxed) {
            true => Err("cancelled".to_owned()),
            false => {
                let resource = Resource::new(uri.clone(), ResourceContent::Text("new".to_owned()));
                Ok(Refreshed {
                    resource,
                    notices: Vec::new(),
                })
            }
        };
        let from = "notes\n.md".to_owned();
        Ok(Refreshing {
            uri: named,
            from,
            consent: self.0,
            take: Box::new(take),
        })
    }

    fn server(&self, _: &str) -> Option<String> {
        None
    }
}

fn workspace(consent: Consent) -> Workspace {
    let mut workspace = Workspace::new(&[("a.txt", "new")]);
    workspace.toolbox.refresh = Some(Box::new(Always(consent)));
    workspace
}

#[test]
fn refreshed_resource_is_a_block_of_its_own() {
    let workspace = workspace(Consent::Unneeded);
    let called = workspace
        .call("refresh_resource", &json!({"uri": "https://a/"}))
        .unwrap();
    assert_eq!(
        called.preview,
        Preview {
            title: r"refresh notes\n.md".into(),
            detail: None
        }
    );
    assert!(!called.is_sensitive);
    assert_eq!(called.text(), "[https://a/ ]\nText(\"new\")");
    assert_eq!(called.marks(), Vec::<Value>::new());
}

#[test]
fn refreshed_file_may_be_written_to() {
    let workspace = workspace(Consent::Unneeded);
    workspace.toolbox.files.lock_seen().record(
        "a.txt".to_owned(),
        Checksum::compute(b"old"),
        files::Extent::Whole,
    );
    let edit = json!({"path": "a.txt", "old": "new", "new": "newer"});
    assert!(
        workspace
            .told("edit_file", &edit)
            .contains("has changed since you last saw it")
    );
    let uri = format!("file://{}", workspace.path("a.txt").display());
    let called = workspace
        .call("refresh_resource", &json!({"uri": uri}))
        .unwrap();
    assert_eq!(
        called.marks(),
        [json!({"path": "a.txt", "checksum": Checksum::compute(b"new").to_string()})]
    );
    workspace.call("edit_file", &edit).unwrap();
    assert_eq!(workspace.text("a.txt"), "newer");
}

#[test]
fn user_is_asked_if_approval_is_needed() {
    let asks = |consent, uri: &str| {
        let workspace = workspace(consent);
        let root = workspace.path("").display().to_string();
        let uri = json!({"uri": uri.replace("ROOT/", &root)});
        let first = workspace
            .plan("refresh_resource", &uri)
            .unwrap()
            .is_sensitive;
        workspace
            .toolbox
            .decisions()
            .allowed
            .insert("refresh_resource".to_owned());
        [
            first,
            workspace
                .plan("refresh_resource", &uri)
                .unwrap()
                .is_sensitive,
        ]
    };
    assert_eq!(asks(Consent::Unneeded, "cmd://date"), [false, false]);
    assert_eq!(asks(Consent::OncePerTurn, "cmd://date"), [true, false]);
    assert_eq!(asks(Consent::EachTime, "cmd://date"), [true, true]);
    assert_eq!(asks(Consent::Unneeded, "file://ROOT/a.txt"), [false, false]);
    for secret in [
        "file://ROOT/.env",
        "file://ROOT/.env#L1",
        "file://ROOT/.git/config",
    ] {
        assert_eq!(asks(Consent::Unneeded, secret), [true, true], "{secret}");
    }
}

#[test]
fn interrupted_refresh_is_an_error() {
    let workspace = workspace(Consent::Unneeded);
    let uri = json!({"uri": "https://a/"});
    let called = workspace
        .call_on("refresh_resource", &uri, &Line::unheard(true))
        .unwrap();
    assert!(called.response.is_error);
    assert_eq!(called.text(), "The call was interrupted.");
}

#[test]
fn without_anything_attached_nothing_is_refreshed() {
    let workspace = Workspace::new(&[]);
    let told = workspace.told("refresh_resource", &json!({"uri": "https://a/"}));
    assert_eq!(
        told,
        "No resource is attached, so there is nothing to refresh."
    );
}

/// Is only asked for servers.
#[derive(Debug)]
struct Unplanned;

impl Refresh for Unplanned {
    fn plan(&self, uri: &str) -> Result<Refreshing<'_>, String> {
        panic!("{uri} was planned");
    }

    fn server(&self, uri: &str) -> Option<String> {
        (uri == "note:one").then(|| "peer".to_owned())
    }
}

#[test]
fn server_of_a_refresh_is_found_without_planning_it() {
    let mut workspace = Workspace::new(&[]);
    let server = |toolbox: &Toolbox, uri: &str| {
        find_server(json!({"uri": uri}).as_object().unwrap(), toolbox)
    };
    assert_eq!(server(&workspace.toolbox, "note:one"), None);
    workspace.toolbox.refresh = Some(Box::new(Unplanned));
    assert_eq!(
        server(&workspace.toolbox, "note:one").as_deref(),
        Some("peer")
    );
    assert_eq!(server(&workspace.toolbox, "a.txt"), None);
}
