use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Outline, segment};

const TASKS: &str = "\
#+TITLE: Tasks
* TODO [#A] Tasks [1/2] :work:@home:
Do them.
** Urgent
*bold* is no headline, nor is
 * this.
*** DONE Call / write
** Later
* Tasks
** Urgent
The second.
** Other
";

fn titles(text: &str) -> Vec<String> {
    let outline = Outline::new(text);
    outline
        .headlines
        .iter()
        .map(|headline| outline.title(headline).to_owned())
        .collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(&Outline::new(text).to_json()).unwrap()
}

#[test]
fn outline_is_a_tree_with_paths_and_ids() {
    let text = "* A/B\n:PROPERTIES:\n:ID: one\n:END:\n*** Deep\n* C\n";
    let expected = json!([
        { "title": "A/B", "level": 1, "path": "A%2FB", "id": "one", "children": [
            { "title": "Deep", "level": 3, "path": "A%2FB/Deep", "children": [] },
        ] },
        { "title": "C", "level": 1, "path": "C", "children": [] },
    ]);
    assert_eq!(json(text), expected);
    assert_eq!(json(""), json!([]));
    assert_eq!(json("Text alone."), json!([]));
}

#[test]
fn title_has_no_keyword_priority_comment_and_tags() {
    let expected = [
        "Tasks [1/2]",
        "Urgent",
        "Call / write",
        "Later",
        "Tasks",
        "Urgent",
        "Other",
    ];
    assert_eq!(titles(TASKS), expected);
    let text = "* COMMENT Draft :x:\n* COMMENTARY\n* TODO\n* :only:tags:\n*   Spaced  out  \n* TODOS\n* [#B] Next :a b:\n";
    assert_eq!(
        titles(text),
        [
            "Draft",
            "COMMENTARY",
            "",
            "",
            "Spaced  out",
            "TODOS",
            "Next :a b:"
        ]
    );
}

#[test]
fn priority_may_be_a_number_up_to_64() {
    let text = "* TODO [#10] Ten :t:\n* [#1]One\n* [#64] COMMENT Most\n* [#65] Text\n* [#+9] Text\n* [#100] Text\n";
    assert_eq!(
        titles(text),
        [
            "Ten",
            "One",
            "Most",
            "[#65] Text",
            "[#+9] Text",
            "[#100] Text"
        ]
    );
}

#[test]
fn long_headline_has_its_title_without_tags() {
    for word in ["word ", "é", ":a", "*/_+ "] {
        let title = format!("A{}Z", word.repeat(5_000));
        let text = format!("* TODO [#A] COMMENT {title} :work:@home:\n");
        assert_eq!(titles(&text), [&*title], "{word}");
        let path = segment(&title);
        assert_eq!(Outline::new(&text).at(&path), Some(&*text), "{word}");
    }
    let deep = format!("{} TODO A :t:\n", "*".repeat(5_000));
    assert_eq!(titles(&deep), ["A"]);
}

#[test]
fn keywords_of_the_text_are_known_wherever_it_names_them() {
    let text = "* WAIT One\n* NEXT Two\n* TODO Three\n#+todo: WAIT(w@/!) | CANCELLED\n  #+SEQ_TODO: NEXT\n";
    assert_eq!(titles(text), ["One", "Two", "TODO Three"]);
}

#[test]
fn headline_is_a_line_of_stars_and_a_space() {
    let text = "* One\n#+begin_src org\n,* quoted\n* Two\n#+end_src\n*Three\n**\n** \n *\n";
    assert_eq!(
        titles(text),
        ["One", "Two", ""],
        "a block does not hide one, as Org has it"
    );
}

#[test]
fn headline_has_all_up_to_the_next_of_its_level_or_above() {
    let outline = Outline::new(TASKS);
    let urgent = "** Urgent\n*bold* is no headline, nor is\n * this.\n*** DONE Call / write\n";
    assert_eq!(outline.at("Tasks [1%2F2]/Urgent"), Some(urgent));
    assert_eq!(
        outline.at("Tasks [1%2F2]/Urgent/Call %2F write"),
        Some("*** DONE Call / write\n")
    );
    assert_eq!(outline.at("Tasks/Other"), Some("** Other\n"));
    for none in [
        "",
        "/",
        "Urgent",
        "Tasks/",
        "/Tasks",
        "tasks",
        "Tasks [1%2F2]/Urgent/Call / write",
    ] {
        assert_eq!(outline.at(none), None, "{none}");
    }
}

#[test]
fn first_of_equal_headlines_wins() {
    let text = "* A\nfirst\n* A\nsecond\n** B\n";
    assert_eq!(Outline::new(text).at("A"), Some("* A\nfirst\n"));
    assert_eq!(
        Outline::new(text).at("A/B"),
        Some("** B\n"),
        "what only the second has is found"
    );
    let text = "* A\n:PROPERTIES:\n:ID: x\n:END:\n* B\n:PROPERTIES:\n:ID: x\n:END:\n";
    assert!(Outline::new(text).with_id("x").unwrap().starts_with("* A"));
}

#[test]
fn id_is_one_of_a_property_drawer_alone() {
    let text = "\
# A comment.
:PROPERTIES:
:ID: whole
:END:
* One
DEADLINE: <2026-01-01 Thu>
  :properties:
  :Effort: 1:00
  :id:   one
  :end:
* Two
Text.
:PROPERTIES:
:ID: too-late
:END:
* Three
#+begin_example
:ID: in-text
#+end_example
:LOGBOOK:
:ID: other-drawer
:END:
* Four
:PROPERTIES:
:ID: never-ended
";
    let outline = Outline::new(text);
    assert_eq!(outline.ids().collect::<Vec<_>>(), ["whole", "one"]);
    assert_eq!(outline.with_id("whole"), Some(text));
    assert!(
        outline
            .with_id("one")
            .unwrap()
            .starts_with("* One\nDEADLINE")
    );
    assert_eq!(outline.with_id("too-late"), None);
}

#[test]
fn id_of_the_text_may_stand_below_comments() {
    for comments in [
        "",
        "# -*- mode: org -*-\n",
        "#\n",
        "#\r\n# A\r\n",
        "\n  # Indented\n  #\n\n",
    ] {
        let text = format!("{comments}:PROPERTIES:\n:ID: whole\n:END:\n");
        assert_eq!(
            Outline::new(&text).ids().collect::<Vec<_>>(),
            ["whole"],
            "{comments:?}"
        );
    }
    for other in ["#+TITLE: A\n", "#a\n", "Text\n"] {
        let text = format!("{other}:PROPERTIES:\n:ID: none\n:END:\n");
        assert_eq!(Outline::new(&text).ids().count(), 0, "{other:?}");
    }
}

#[test]
fn windows_line_ends_change_nothing_but_themselves() {
    let text = TASKS.replace('\n', "\r\n");
    assert_eq!(titles(&text), titles(TASKS));
    assert_eq!(Outline::new(&text).at("Tasks/Other"), Some("** Other\r\n"));
    let drawer = "* A :t:\r\nSCHEDULED: <2026-01-01>\r\n:PROPERTIES:\r\n:ID: a\r\n:END:\r\n";
    assert_eq!(Outline::new(drawer).ids().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn text_that_starts_with_a_byte_order_mark_has_its_first_headline() {
    assert_eq!(titles("\u{feff}* A\n* B\n"), ["A", "B"]);
}

#[test]
fn segment_is_unambiguous() {
    for (title, expected) in [
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("100%", "100%25"),
        ("5% off", "5%25 off"),
        ("é #1?", "é #1?"),
    ] {
        assert_eq!(segment(title), expected);
    }
}

#[test]
fn hostile_texts_cost_little() {
    let deep: String = (1..4_000).map(|level| "*".repeat(level) + " h\n").collect();
    let marks = format!("* {}\n", "*/_+".repeat(80_000));
    let links = format!("* {}\n", "[[".repeat(160_000));
    let tags = format!("* a {}:\n", ":a".repeat(160_000));
    let drawers = "* a\n".to_owned() + &":PROPERTIES:\n".repeat(200_000);
    let fitting = format!("* {}\n", "*/_+[[{{{src_".repeat(180));
    for text in [deep, marks, links, tags, drawers, fitting] {
        let start = std::time::Instant::now();
        let outline = Outline::new(&text);
        let json = outline.to_json();
        assert!(json.len() < 11 * 1024 * 1024);
        assert_eq!(outline.at("none"), None);
        // Less than a second each; without limits some take minutes.
        assert!(
            start.elapsed().as_secs() < 30,
            "{:?} for {}",
            start.elapsed(),
            &text[..20]
        );
    }
}

proptest! {
    #[test]
    fn every_headline_is_found_by_its_path(
        text in "([*]{0,3} ?(TODO |\\[#A\\] |COMMENT )?[a-c/% :*#_=~\\[\\]{}<>é-]{0,8}(:t:)?\r?\n|:PROPERTIES:\n:ID: [a-c]?\n:END:\n){0,8}",
    ) {
        let outline = Outline::new(&text);
        let paths: Vec<String> = outline.paths().collect();
        for path in &paths {
            let first = paths.iter().position(|other| other == path).unwrap();
            prop_assert_eq!(outline.at(path), Some(&text[outline.headlines[first].range.clone()]));
        }
        for id in outline.ids() {
            prop_assert!(outline.with_id(id).is_some());
        }
        let value: Value = serde_json::from_str(&outline.to_json()).unwrap();
        prop_assert!(value.is_array());
    }
}
