use std::time::{Duration, Instant};

use super::*;
use crate::template::UriTemplate;

fn set(templates: &[&str]) -> TemplateSet {
    let matcher = |template: &&str| Matcher::new(&UriTemplate::parse(template).unwrap()).unwrap();
    TemplateSet::new(templates.iter().map(matcher).collect())
}

fn found<'t>(templates: &[&'t str], uri: &str) -> Option<&'t str> {
    set(templates).find(uri).map(|(index, _)| templates[index])
}

#[test]
fn most_specific_template_wins() {
    let templates =
        ["org://{+path}", "{+anything}", "org://{file}/outline", "org://id/{id}", "org://id/x{id}"];
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

#[test]
fn set_agrees_with_trying_all() {
    let starts = ["", "a:", "a:b", "a:b/", "a:bc", "b:", "a:b/c/"];
    let ends = ["{v}", "{+v}", "c{v}", "{v}/c", "{/v}", ""];
    let templates: Vec<String> =
        starts.iter().flat_map(|start| ends.iter().map(move |end| format!("{start}{end}"))).collect();
    let templates: Vec<&str> = templates.iter().map(String::as_str).collect();
    let set = set(&templates);
    for uri in ["a:", "a:b", "a:bc", "a:b/c", "a:b/c/", "a:b/c/d", "b:c", "A:b/1/c", "c:d", "", "a:bcc/c"] {
        let matching =
            set.matchers().iter().enumerate().filter(|(_, matcher)| matcher.matches(uri).is_some());
        let best = matching.min_by_key(|(index, matcher)| (usize::MAX - matcher.literal_length(), *index));
        assert_eq!(set.find(uri).map(|(index, _)| index), best.map(|(index, _)| index), "{uri}");
    }
}

fn time(count: usize) -> Duration {
    let templates: Vec<String> =
        (0..count).map(|number| format!("app://kind{number}/{{id}}/{{+path}}")).collect();
    let set = set(&templates.iter().map(String::as_str).collect::<Vec<_>>());
    let once = |_| {
        let start = Instant::now();
        for _ in 0..100 {
            assert!(std::hint::black_box(&set).find("app://kind7/12/some/path").is_some());
        }
        start.elapsed()
    };
    (0..20).map(once).min().expect("twenty times")
}

#[test]
fn thousand_templates_cost_at_most_three_times_as_much_as_ten() {
    let (ten, thousand) = (time(10), time(1000));
    assert!(thousand < ten * 3, "{ten:?}, then {thousand:?}");
}
