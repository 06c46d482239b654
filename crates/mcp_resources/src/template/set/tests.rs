use proptest::prelude::*;

use super::*;
use crate::template::UriTemplate;
use crate::template::matcher::steps::steps_of;

fn set(templates: &[&str]) -> TemplateSet {
    let matcher = |template: &&str| Matcher::new(&UriTemplate::parse(template).unwrap()).unwrap();
    TemplateSet::new(templates.iter().map(matcher).collect())
}

fn found<'t>(templates: &[&'t str], uri: &str) -> Option<&'t str> {
    set(templates).find(uri).map(|(index, _)| templates[index])
}

#[test]
fn most_specific_template_wins() {
    let templates = [
        "org://{+path}",
        "{+anything}",
        "org://{file}/outline",
        "org://id/{id}",
        "org://id/x{id}",
    ];
    let table = [
        ("org://a/outline", "org://{file}/outline"),
        ("org://id/7", "org://id/{id}"),
        ("org://id/x7", "org://id/x{id}"),
        ("org://id/outline", "org://{file}/outline"),
        ("org://id/x/y", "org://{+path}"),
        ("http://x", "{+anything}"),
    ];
    for (uri, template) in table {
        assert_eq!(found(&templates, uri), Some(template), "{uri}");
    }
}

#[test]
fn among_equally_specific_templates_the_first_wins() {
    assert_eq!(found(&["x:{a}/b", "x:/{+b}b"], "x:/b"), Some("x:{a}/b"));
    assert_eq!(found(&["x:/{+b}b", "x:{a}/b"], "x:/b"), Some("x:/{+b}b"));
    assert_eq!(found(&["x:{a}", "x:{b}"], "x:1"), Some("x:{a}"));
    assert_eq!(found(&["y:1", "x:{b}", "x:{+a}"], "x:1"), Some("x:{b}"));
    assert_eq!(found(&["y:1", "x:{+a}", "x:{b}"], "x:1"), Some("x:{+a}"));
}

#[test]
fn uri_of_no_template_is_found_nowhere() {
    let templates = ["a:1{b}", "a:2{b}", "b:{b}"];
    for uri in ["", "a:", "a:0", "a:3", "c:1", "a:1%", "a:1/"] {
        assert_eq!(found(&templates, uri), None, "{uri}");
    }
    assert_eq!(set(&[]).find("a:1"), None);
}

#[test]
fn uri_without_one_query_may_have_another() {
    let templates = [
        "x:{+a}{?q}",
        "x:{+a}{&q}",
        "x:{+a}{?r}",
        "x:{+a}{&r}",
        "x:{+a}{?s}",
        "x:{+a}{&s}",
    ];
    let table = [
        ("x:1", "x:{+a}{?q}"),
        ("x:1?r=2", "x:{+a}{&q}"),
        ("x:1?r=2&s", "x:{+a}{&s}"),
        ("x:1&r=2", "x:{+a}{?q}"),
        ("x:1?z=2", "x:{+a}{&q}"),
        ("x:1?z=2&s=3", "x:{+a}{&s}"),
        ("x:1#?z=2", "x:{+a}{&q}"),
    ];
    for (uri, template) in table {
        assert_eq!(found(&templates, uri), Some(template), "{uri}");
    }
}

#[test]
fn prefixes_are_compared_as_matching_does() {
    let templates = ["ORG://é/{a}", "ht{b}", "{c}:é", "/x/{d}", "org"];
    let table = [
        ("org://%c3%a9/1", "ORG://é/{a}"),
        ("Org://é/1", "ORG://é/{a}"),
        ("htx", "ht{b}"),
        ("HTTP:%C3%A9", "{c}:é"),
        ("/x/1", "/x/{d}"),
        ("org", "org"),
    ];
    for (uri, template) in table {
        assert_eq!(found(&templates, uri), Some(template), "{uri}");
    }
}

proptest! {
    #[test]
    fn set_agrees_with_trying_all(uri in "([abA]:)?[abc/.?#]{0,9}([?&#][abc]=?){0,2}") {
        let starts = ["", "a:", "a:b", "a:b/", "a:bc", "b:", "a:b/c/", "a:{u}", "a:{u}/", "a:{+u}/"];
        let starts = starts.iter().chain(&["a:{+u}/{t}c", "a:{t}c/{+u}"]);
        let ends = ["/{v}", "/{+v}", "c{v}", "/{v}/c", "{/v}", "", "/{v}c{w}", "/c/{v}{?q}", "/{v}/{w}"];
        let ends = [ends.as_slice(), &["/c{#f}", "/{v*}/c", "{?a}", "{?b,a}{#f}", "?c{&b}", "#c{#f}", "/{+v}{&a}", "/{+v}{?a}"]].concat();
        let templates: Vec<String> =
            starts.flat_map(|start| ends.iter().map(move |end| format!("{start}{end}"))).collect();
        let set = set(&templates.iter().map(String::as_str).collect::<Vec<_>>());
        let matching =
            set.matchers().iter().enumerate().filter(|(_, matcher)| matcher.matches(&uri).is_some());
        let best = matching.min_by_key(|(index, matcher)| (usize::MAX - matcher.literal_length(), *index));
        prop_assert_eq!(set.find(&uri).map(|(index, _)| index), best.map(|(index, _)| index));
    }
}

/// Shapes of templates, with `@` numbered, and for each a URI of the seventh.
const SHAPES: &[(&str, &str)] = &[
    ("app://kind@/{id}/{+path}", "app://kind7/12/some/path"),
    ("x:{a}/k@", "x:some/k7"),
    ("x:{a}/kind@/{+b}", "x:some/kind7/1/2"),
    ("x:{a}/{b}/kind@/{c}{?q}", "x:some/thing/kind7/1?q=2"),
    ("x:kind@{?q}", "x:kind7?q=1"),
    ("x:{+a}/k@", "x:1/2/k7"),
    ("x:{+a}/k@/{b}", "x:1/2/k7/3"),
    ("x:{a}/{+b}.k@", "x:1/2/3.k7"),
    // Not found by their place.
    ("x:{a}-{b}-k@-{c}", "x:1-2-k7-3"),
    ("x:{+a}/kind@/{+b}", "x:1/kind7/2"),
    ("x:{a}k@-{b}", "x:1k7-2"),
    ("x:{+p}/k@{?q}", "x:1/2/k7?q=3"),
    ("x:{a}.k@.{+b}#k@", "x:1.k7.2#k7"),
    ("x:{+a}k@", "x:1/2/k7"),
    (
        "x:{+p}/k@/attachments/thumbnails/{+r}",
        "x:1/k7/attachments/thumbnails/2",
    ),
    // Found by their queries.
    ("x:{?k@}", "x:?k7=1"),
    ("x:{?k@,a*}", "x:?k7=1&a=2"),
    (
        "x:{?k@,a,b,c,d,e,f,g,h,i,j,l,m,n,o,p,q,r,s,t}",
        "x:?a=1&k7=2&t",
    ),
    ("x:{+a}{?k@}{#f}", "x:1/2?k7=3#4"),
    ("x:?z=1{&k@}", "x:?z=1&k7=2"),
];

fn numbered(shape: &str, count: usize) -> TemplateSet {
    let templates: Vec<String> = (0..count)
        .map(|number| shape.replace('@', &number.to_string()))
        .collect();
    set(&templates.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn thousand_templates_cost_at_most_three_times_as_much_as_ten() {
    for (shape, uri) in SHAPES {
        let steps = |count| {
            let set = numbered(shape, count);
            let steps =
                steps_of(|| assert_eq!(set.find(uri).map(|(index, _)| index), Some(7), "{shape}"));
            steps
                + set
                    .tree
                    .find(&Text::new(uri))
                    .into_iter()
                    .map(<[_]>::len)
                    .sum::<usize>()
        };
        let (ten, thousand) = (steps(10), steps(1000));
        assert!(thousand <= 3 * ten, "{shape}: {ten}, then {thousand}");
    }
}

#[test]
fn hostile_uris_cost_in_proportion_to_their_length_among_a_thousand_templates() {
    for (shape, _) in SHAPES {
        let set = numbered(shape, 1000);
        for unit in [
            "-", "a-", "a", "/", "a/", "/kind", "/kind7", "k7/", ".k7", "kind77/", "/k", "?q=1&",
            "?k7&", "#",
        ] {
            for start in ["x:", "x:1/", "app://kind7/", "x:a/b/kind7/"] {
                let uri = format!("{start}{}", unit.repeat(16 * 1024 / unit.len()));
                let steps = steps_of(|| drop(set.find(&uri)));
                assert!(
                    steps <= 12 * uri.len(),
                    "{shape} and {start}{unit}…: {steps}"
                );
            }
        }
    }
}

#[test]
fn uri_that_has_the_text_of_all_is_given_up_on() {
    let set = numbered("x:{a}-kind@-{b}", 1000);
    let texts: String = (0..1000).map(|number| format!("-kind{number}-")).collect();
    let uri =
        |length: usize, end: &str| format!("x:{}{texts}{end}", "a".repeat(length - texts.len()));
    let steps = steps_of(|| assert_eq!(set.find(&uri(64 * 1024, "/")), None));
    assert!(steps <= 4 * MAX_COMPARED, "{steps}");
    assert_eq!(
        set.find(&uri(64 * 1024, "")).map(|(index, _)| index),
        Some(100),
        "one of the longest texts"
    );
    assert!(set.find("x:a-kind7-b").is_some());
}

#[test]
fn long_value_that_has_pieces_of_all_is_no_text_of_theirs() {
    let set = numbered("x:{+a}/kind@/{+b}", 1000);
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(digits[state as usize >> 26])
    };
    let value: String = (0..60 * 1024).map(|_| next()).collect();
    let uri = format!("x:{value}/kind999/1");
    let steps = steps_of(|| assert_eq!(set.find(&uri).map(|(index, _)| index), Some(999)));
    assert!(steps <= 12 * uri.len(), "{steps}");
}

#[test]
fn nested_literals_cost_no_more_than_their_length() {
    let templates: Vec<String> = (0..300)
        .map(|length| format!("x:{}{{b}}/!", "a".repeat(length)))
        .collect();
    let set = set(&templates.iter().map(String::as_str).collect::<Vec<_>>());
    let uri = format!("x:{}", "a".repeat(16 * 1024));
    let length: usize = templates.iter().map(String::len).sum();
    let steps = steps_of(|| assert_eq!(set.find(&uri), None));
    assert!(steps <= 8 * (uri.len() + length), "{steps}");
}
