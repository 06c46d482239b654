//! A newer version replaces an older one only if all of it is visible.

use jp_resource::{Annotations, Role};
use jp_tool::StoredBlock;

use super::*;
use crate::{Compaction, Strip};

const URI: &str = "file:///w/a.rs";

impl Script {
    /// A round in which the model calls `get` once.
    fn get(self, version: usize, shown: As) -> Self {
        self.get_of(URI, version, shown)
    }

    fn get_of(mut self, uri: &str, number: usize, shown: As) -> Self {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        let text = version(number);
        let resource = match shown {
            As::Text | As::Cut => resource(uri, &text),
            As::Formatted => Resource {
                formatted: Some(format!("<{text}>")),
                ..resource(uri, &text)
            },
            As::Binary => Resource::new(uri, ResourceContent::Blob(text.into_bytes()))
                .with_mime_type("image/png"),
            As::ForPerson => {
                let audience = Some(vec![Role::User, Role::User]);
                let annotations = Some(Annotations {
                    audience,
                    ..Annotations::default()
                });
                Resource {
                    annotations,
                    ..resource(uri, &text)
                }
            }
        };
        let EventKind::ToolCallResponse(mut response) = result(&id, resource, None) else {
            unreachable!()
        };
        if shown == As::Cut {
            Shown::mark(
                Some(Shown {
                    head: 1000,
                    tail: 1000,
                }),
                &mut response.content[0],
            );
        }
        self.event(call(&id, "get"))
            .event(EventKind::ToolCallResponse(response))
    }

    /// Records what newer versions have replaced, and continues.
    fn supersede(self) -> Self {
        let dropped = find_superseded(&self.stream(), &Policy::default(), &mut NoTexts);
        self.event(EventKind::Superseded(Superseded { dropped }))
            .ask(&[])
    }
}

fn asked() -> Script {
    Script::default().ask(&[])
}

#[test]
fn version_stays_while_no_more_than_head_and_tail_of_a_newer_one_are_visible() {
    let script = Script::default()
        .ask(&[(URI, &version(1))])
        .get(2, As::Cut)
        .supersede();
    assert_eq!(script.names(), ["full", "full"]);
    assert_eq!(script.texts()[0], version(1));
    // Once all of the newer version is there, both give way.
    let script = script.get(3, As::Text).supersede();
    assert_eq!(script.names(), ["tombstone", "tombstone", "full"]);
    assert!(
        script.texts()[0].contains("is in the result of call 1 of turn 2"),
        "{}",
        script.texts()[0]
    );
}

#[test]
fn newest_version_of_which_all_is_visible_is_the_one_that_replaces() {
    let script = asked()
        .get(1, As::Text)
        .get(2, As::Text)
        .get(3, As::Cut)
        .supersede();
    assert_eq!(script.names(), ["tombstone", "full", "full"]);
    assert!(
        script.texts()[0].contains("is in the result of call 2 of turn 1"),
        "{}",
        script.texts()[0]
    );
}

#[test]
fn result_that_is_cut_replaces_where_it_refers_to_what_stands_whole() {
    let script = asked()
        .get(1, As::Text)
        .get(2, As::Text)
        .get(1, As::Cut)
        .supersede();
    assert_eq!(script.names(), ["full", "tombstone", "reference"]);
    assert!(
        script.texts()[1].contains("is in the result of call 1 of turn 1"),
        "{}",
        script.texts()[1]
    );
}

#[test]
fn parts_of_a_newer_version_replace_nothing() {
    let whole = || Script::default().ask(&[(URI, &version(1))]);
    let range = format!("{URI}#L1-200");
    assert_eq!(
        whole()
            .read(&range, &part(&version(2), 1, 200))
            .supersede()
            .names(),
        ["full", "full"]
    );
    let block = |text: &str| StoredBlock::from(ContentBlock::resource(resource(URI, text)));
    let note = |text: &str| StoredBlock::from(ContentBlock::text(text));
    let mut response = ToolCallResponse {
        id: "1".to_owned(),
        content: vec![note("a"), block(&version(2)), note("b")],
        is_error: false,
        structured_content: None,
        meta: Map::new(),
    };
    crate::view::Hidden::mark(Some(crate::view::Hidden(1..2)), &mut response);
    let script = whole()
        .event(call("1", "get"))
        .event(EventKind::ToolCallResponse(response))
        .supersede();
    assert_eq!(script.texts()[0], version(1));
}

#[test]
fn content_that_the_model_is_not_sent_replaces_nothing() {
    let script = Script::default()
        .ask(&[(URI, &version(1))])
        .get(2, As::ForPerson)
        .supersede();
    assert_eq!(script.texts()[0], version(1));
    // Nor is it referred to.
    let script = script.read(URI, &version(2));
    assert_eq!(script.names().last(), Some(&"full"));
}

#[test]
fn other_forms_replace_their_own_kind_alone() {
    let names = |older, newer| asked().get(1, older).get(2, newer).supersede().names();
    for (older, newer, expected) in [
        (As::Text, As::Formatted, "full"),
        (As::Text, As::Binary, "full"),
        (As::Formatted, As::Binary, "full"),
        (As::Formatted, As::Formatted, "tombstone"),
        (As::Binary, As::Binary, "tombstone"),
        (As::Binary, As::Text, "tombstone"),
        (As::Formatted, As::Text, "tombstone"),
        (As::Cut, As::Text, "tombstone"),
        (As::Cut, As::Cut, "full"),
    ] {
        assert_eq!(
            names(older, newer),
            [expected, "full"],
            "{older:?} {newer:?}"
        );
    }
}

#[test]
fn contents_of_one_message_do_not_replace_each_other() {
    let texts = [1, 2, 3].map(version);
    let [one, two, three] = texts.each_ref().map(|text| (URI, text.as_str()));
    let script = Script::default().ask(&[one, two]).answer().supersede();
    assert_eq!(script.names(), ["full", "full"]);
    let script = script.answer().ask(&[one, three]).answer().supersede();
    assert_eq!(script.names(), ["full", "tombstone", "reference", "full"]);
}

#[test]
fn newer_version_that_a_compaction_leaves_out_replaces_nothing() {
    let compaction = Compaction {
        strip: vec![Strip::Tools],
        ..Compaction::default()
    };
    let script = Script::default()
        .ask(&[(URI, &version(1))])
        .get(2, As::Text)
        .answer();
    let script = script.event(EventKind::Compaction(compaction)).supersede();
    assert_eq!(script.names(), ["full", "compacted"]);
}

#[test]
fn earlier_decision_for_head_and_tail_is_not_followed() {
    let script = Script::default()
        .ask(&[(URI, &version(1))])
        .get(2, As::Cut)
        .answer();
    let script = script.event(drop_of(URI, &version(1))).ask(&[]);
    assert_eq!(script.names(), ["full", "full"]);
    // What comes later changes nothing of that.
    assert_eq!(script.get(3, As::Text).names(), ["full", "full", "full"]);
}
