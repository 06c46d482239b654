//! A call that is repeated after a reference gets the content; nothing else does.

use super::*;

#[test]
fn person_who_attaches_what_a_tool_was_referred_to_gets_a_reference() {
    let text = file(20, &[]);
    let script = Script::default()
        .ask(&[])
        .read("a:b", &text)
        .read("a:b", &text)
        .answer();
    let script = script
        .turns(7)
        .ask(&[("a:b", &text)])
        .answer()
        .ask(&[("a:b", &text)]);
    assert_eq!(
        script.names(),
        ["full", "reference", "reference", "reference"]
    );
}

#[test]
fn other_calls_are_answered_with_references_of_their_own() {
    let text = file(20, &[]);
    let give = |script: Script, id: &str, tool: &str, path: &str| {
        let (id, name) = (id.to_owned(), tool.to_owned());
        let arguments = Map::from_iter([("path".to_owned(), json!(path))]);
        let result = result(&id, resource("a:b", &text), None);
        let call = ToolCallRequest {
            id,
            name,
            arguments,
            metadata: Map::new(),
        };
        script.event(EventKind::ToolCallRequest(call)).event(result)
    };
    let script = Script::default().ask(&[("a:b", &text)]);
    let script = give(
        give(give(script, "1", "read", "b"), "2", "get", "b"),
        "3",
        "read",
        "./b",
    );
    assert_eq!(
        script.names(),
        ["full", "reference", "reference", "reference"]
    );
    // The first call again, for all that was asked in between.
    let script = give(script, "4", "read", "b");
    assert_eq!(script.names()[4], "full");
    // That is newer than what the others were referred to.
    let script = give(script, "5", "get", "b");
    assert_eq!(script.names()[5], "reference");
}

#[test]
fn endless_repetition_gets_the_content_once() {
    let text = file(2000, &[]);
    let read = |script: Script| script.read("a:b", &text);
    let rest = |script: Script| script.names()[1..].to_vec();
    let once = ["reference", "full", "reference", "reference", "reference"];
    let attached = || Script::default().ask(&[("a:b", &text)]);
    assert_eq!(
        rest((0..5).fold(attached(), |script, _| read(script))),
        once
    );
    for (turns, expected) in [(0, once), (1, once), (2, ["reference"; 5])] {
        let spaced = |script: Script, _| read(script.answer().turns(turns).ask(&[]));
        assert_eq!(
            rest((0..5).fold(attached(), spaced)),
            expected,
            "{turns} turns between"
        );
    }
    // After a pause the model may have lost it again.
    let script = (0..4)
        .fold(attached(), |script, _| read(script))
        .answer()
        .turns(3)
        .ask(&[]);
    assert_eq!(
        rest(read(read(read(script))))[4..],
        ["reference", "full", "reference"]
    );
}
