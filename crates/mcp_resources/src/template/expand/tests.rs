use std::path::Path;

use serde_json::Value as Json;

use crate::template::{ExpandError, UriTemplate, Value, Values};

fn values() -> Values {
    let text = |name: &str, text: &str| (name.to_owned(), Value::from(text));
    let pairs =
        [("semi", ";"), ("empty", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    Values::from([
        text("v", "a b"),
        text("path", "/x/y"),
        text("empty", ""),
        text("greek", "αβγ"),
        text("triplet", "1%2F%zz%"),
        // One character, and one that lacks its last byte.
        text("euro", "%E2%82%AC%E2%82"),
        text("x%20y", "z"),
        ("list".to_owned(), Value::from(["1", "", "é,"])),
        ("map".to_owned(), Value::Map(pairs.to_vec())),
        ("none".to_owned(), Value::List(Vec::new())),
        ("no_entries".to_owned(), Value::Map(Vec::new())),
    ])
}

fn expand(template: &str) -> String {
    UriTemplate::parse(template)
        .expect(template)
        .expand(&values())
        .expect(template)
}

fn assert_expansions(table: &[(&str, &str)]) {
    for (template, uri) in table {
        assert_eq!(expand(template), *uri, "{template}");
    }
}

#[test]
fn literals_are_encoded_where_a_uri_needs_it() {
    assert_expansions(&[("x://é/%2f'!", "x://%C3%A9/%2f'!"), ("", "")]);
}

#[test]
fn simple_expansion() {
    assert_expansions(&[
        ("{v}", "a%20b"),
        ("{v,undefined,path}", "a%20b,%2Fx%2Fy"),
        ("-{undefined}-{empty}-{none}-{no_entries}-", "-----"),
        ("{triplet}", "1%252F%25zz%25"),
        ("{triplet:3}", "1%252"),
        ("{greek:2}", "%CE%B1%CE%B2"),
        ("{greek:9999}", "%CE%B1%CE%B2%CE%B3"),
        ("{list}", "1,,%C3%A9%2C"),
        ("{list*}", "1,,%C3%A9%2C"),
        ("{map}", "semi,%3B,empty,"),
        ("{map*}", "semi=%3B,empty="),
    ]);
}

#[test]
fn reserved_expansion_keeps_reserved_characters_and_triplets() {
    assert_expansions(&[
        ("{+path,v}", "/x/y,a%20b"),
        ("{+path:2}", "/x"),
        ("{+triplet}", "1%2F%25zz%25"),
        // A prefix does not end within a triplet, nor within a character of several (§2.4.1).
        ("{+triplet:1}", "1"),
        ("{+triplet:2}", "1%2F"),
        ("{+triplet:3}", "1%2F%25"),
        ("{+triplet:9999}", "1%2F%25zz%25"),
        ("{+euro:1}", "%E2%82%AC"),
        ("{+euro:2}", "%E2%82%AC%E2"),
        ("{+euro:3}", "%E2%82%AC%E2%82"),
        ("{+greek:2}", "%CE%B1%CE%B2"),
        ("{+list}", "1,,%C3%A9,"),
        ("{+map*}", "semi=;,empty="),
    ]);
}

#[test]
fn fragment_expansion() {
    assert_expansions(&[
        ("{#path,v}", "#/x/y,a%20b"),
        ("{#triplet}", "#1%2F%25zz%25"),
        ("{#triplet:2}", "#1%2F"),
        ("{#empty}", "#"),
        ("{#undefined}", ""),
        ("{#map}", "#semi,;,empty,"),
    ]);
}

#[test]
fn label_expansion() {
    assert_expansions(&[
        ("X{.v,undefined,path}", "X.a%20b.%2Fx%2Fy"),
        ("X{.empty}", "X."),
        ("X{.list}", "X.1,,%C3%A9%2C"),
        ("X{.list*}", "X.1..%C3%A9%2C"),
        ("X{.map*}", "X.semi=%3B.empty="),
        ("X{.none*}", "X"),
    ]);
}

#[test]
fn path_expansion() {
    assert_expansions(&[
        ("{/v,undefined,path}", "/a%20b/%2Fx%2Fy"),
        ("{/v:1,empty}", "/a/"),
        ("{/list}", "/1,,%C3%A9%2C"),
        ("{/list*}", "/1//%C3%A9%2C"),
        ("{/map*}", "/semi=%3B/empty="),
    ]);
}

#[test]
fn parameter_expansion_drops_the_equals_sign_of_empty_values() {
    assert_expansions(&[
        ("{;v,empty,undefined}", ";v=a%20b;empty"),
        ("{;list}", ";list=1,,%C3%A9%2C"),
        ("{;list*}", ";list=1;list;list=%C3%A9%2C"),
        ("{;map}", ";map=semi,%3B,empty,"),
        ("{;map*}", ";semi=%3B;empty"),
        ("{;x%20y}", ";x%20y=z"),
    ]);
}

#[test]
fn query_expansion_keeps_the_equals_sign_of_empty_values() {
    assert_expansions(&[
        ("{?v,empty,undefined}", "?v=a%20b&empty="),
        ("{?undefined,v:1}", "?v=a"),
        ("{?list*}", "?list=1&list=&list=%C3%A9%2C"),
        ("{?map*}", "?semi=%3B&empty="),
        ("{?none,no_entries*}", ""),
        ("?a=1{&v,list}", "?a=1&v=a%20b&list=1,,%C3%A9%2C"),
    ]);
}

#[test]
fn prefix_of_a_list_or_map_is_an_error() {
    for (template, variable) in [("{list:1}", "list"), ("{?v,map:1}", "map")] {
        let error = UriTemplate::parse(template)
            .unwrap()
            .expand(&values())
            .unwrap_err();
        assert_eq!(
            error,
            ExpandError::PrefixOfComposite {
                variable: variable.to_owned(),
                length: 1
            }
        );
    }
}

#[test]
fn official_suite_passes() {
    let folder = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/uritemplate-test"
    ));
    if !folder.is_dir() {
        return;
    }
    let files = [
        "spec-examples",
        "spec-examples-by-section",
        "extended-tests",
        "negative-tests",
    ];
    let cases: usize = files
        .map(|name| check_file(&folder.join(name).with_extension("json")))
        .iter()
        .sum();
    assert_eq!(cases, 270);
}

fn check_file(path: &Path) -> usize {
    let suite: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    suite.as_object().unwrap().values().map(check_section).sum()
}

fn check_section(section: &Json) -> usize {
    let variables = section["variables"].as_object().unwrap().iter();
    let values = variables
        .filter_map(|(name, value)| Some((name.clone(), value_of(value)?)))
        .collect();
    let cases = section["testcases"].as_array().unwrap();
    for case in cases {
        check_case(case[0].as_str().unwrap(), &case[1], &values);
    }
    cases.len()
}

fn check_case(template: &str, expected: &Json, values: &Values) {
    let expanded = UriTemplate::parse(template)
        .ok()
        .and_then(|template| template.expand(values).ok());
    let expanded = expanded.map_or(Json::Bool(false), Json::String);
    let fits = match expected {
        Json::Array(any) => any.contains(&expanded),
        one => *one == expanded,
    };
    assert!(fits, "{template} gives {expanded}, not {expected}");
}

fn value_of(value: &Json) -> Option<Value> {
    match value {
        Json::Null => None,
        Json::Array(items) => Some(Value::List(items.iter().map(text_of).collect())),
        Json::Object(entries) => Some(Value::Map(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), text_of(value)))
                .collect(),
        )),
        value => Some(Value::Text(text_of(value))),
    }
}

fn text_of(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
