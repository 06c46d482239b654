use proptest::prelude::*;
use serde_json::{Map, Value as Json};

use super::steps::steps_of;
use super::*;
use crate::template::Problem;

fn matcher(template: &str) -> Matcher {
    Matcher::new(&UriTemplate::parse(template).expect(template)).expect(template)
}

fn json(found: &Match) -> Json {
    let value = |value: &Value| match value {
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(items) => Json::from(items.as_slice()),
        Value::Map(_) => panic!("a match has no maps"),
    };
    let pairs = found
        .variables()
        .iter()
        .map(|variable| (variable.name.to_string(), value(&variable.value)));
    Json::Object(pairs.collect::<Map<_, _>>())
}

/// The rows of the tables in the documentation, each with its template, URI and result.
fn documented(heading: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let tables = include_str!("../matcher.rs").split("/// | template | URI |");
    let table = tables
        .map(str::trim_start)
        .find(|table| table.starts_with(heading))
        .expect(heading);
    let rows = table
        .lines()
        .skip(2)
        .map_while(|line| line.trim().strip_prefix("/// | "));
    let cells = rows.map(|row| {
        row.split(" | ")
            .map(|cell| cell.trim_end_matches(" |"))
            .collect::<Vec<_>>()
    });
    let named = cells.filter(|cells| !cells[0].starts_with("**"));
    named
        .map(|cells| {
            (
                cells[0].trim_matches('`'),
                cells[1].trim_matches('`'),
                cells[2],
            )
        })
        .collect()
}

fn assert_row(matcher: &Matcher, uri: &str, result: &str) {
    let found = matcher.matches(uri).map(|found| json(&found));
    let expected = result.strip_prefix('`').map(|result| {
        let object = result.split('`').next().unwrap();
        serde_json::from_str::<Json>(object).unwrap()
    });
    assert!(expected.is_some() || result.starts_with("none"), "{result}");
    assert_eq!(found, expected, "{} and {uri}", matcher.template());
}

#[test]
fn documented_semantics_hold() {
    let rows = documented("match |");
    assert!(rows.len() > 60, "{}", rows.len());
    for (template, uri, result) in rows {
        assert_row(&matcher(template), uri, result);
    }
}

#[test]
fn documented_lenient_semantics_hold() {
    let rows = documented("lenient match |");
    assert_eq!(rows.len(), 8);
    for (template, uri, result) in rows {
        assert_row(
            &Matcher::lenient(&UriTemplate::parse(template).unwrap()).unwrap(),
            uri,
            result,
        );
    }
}

#[test]
fn further_matches() {
    let table = [
        ("{v}", "", r#"`{"v":""}`"#),
        ("{scheme}://x", "HTTP://x", r#"`{"scheme":"HTTP"}`"#),
        ("{v}", "a:b", "none"),
        ("{&x,y}", "&y=1&x=2", r#"`{"x":"2","y":"1"}`"#),
        ("{&x}", "?x=1", "none"),
        (
            "x:?a=1&b={b}{&c}",
            "x:?a=1&b=2&c=3",
            r#"`{"b":"2","c":"3"}`"#,
        ),
        ("x:{?a}", "x:?", "none"),
        ("x:{?a}#top", "x:?a=1#top", r#"`{"a":"1"}`"#),
        ("x:{?a}#top", "x:?a=1", "none"),
        ("x:{?a}", "x:?a=1#2", "none"),
        ("x:{?a:1,a}", "x:?a=1&a=1", r#"`{"a":"1"}`"#),
        ("x:{?a%c3%bc}", "x:?aü=1", r#"`{"a%c3%bc":"1"}`"#),
        ("x:{#a,b}", "x:#1/,2,3", r#"`{"a":"1/","b":"2,3"}`"#),
        ("x:{#a}/end", "x:#1/end", r#"`{"a":"1"}`"#),
        ("x:{#a}/end", "x:/end", "none"),
        ("x:{a}{.e}.json", "x:1.2.json", r#"`{"a":"1","e":"2"}`"#),
        ("x:{a}{.e}.json", "x:1.json", r#"`{"a":"1"}`"#),
        ("x:{a}{/b}{/c}", "x:1/2/3", r#"`{"a":"1","b":"2","c":"3"}`"#),
        ("x:{a}{;p}/y", "x:1;p=2/y", r#"`{"a":"1","p":"2"}`"#),
        (
            "x:{a}{;p,q}/y/{b}",
            "x:1;q=3;p/y/2",
            r#"`{"a":"1","p":"","q":"3","b":"2"}`"#,
        ),
        ("x:{+a}{;p}", "x:1;o=2;p=3", r#"`{"a":"1;o=2","p":"3"}`"#),
        ("x:{+a}{.e}", "x:1.2/3", r#"`{"a":"1.2/3"}`"#),
        ("x:{+a}{.e}", "x:1.2/3.4", r#"`{"a":"1.2/3","e":"4"}`"#),
        (
            "x:{/l*,p:4}",
            "x:/1/2/%2Ffoo",
            r#"`{"p":"/foo","l":["1","2"]}"#,
        ),
        ("x:{l*}/{v}", "x:1,2/3", r#"`{"l":["1","2"],"v":"3"}`"#),
        ("x:{+l*}", "x:1/2,3", r#"`{"l":["1/2","3"]}`"#),
        ("x:{/l*}/{v}", "x:1/2", "none"),
        (
            "x:{/l*}/y{/m*}",
            "x:/1/y/2/3",
            r#"`{"l":["1"],"m":["2","3"]}`"#,
        ),
        ("x:{/l*}", "x:/a:b", "none"),
        (
            "users{/id}/posts{/post}",
            "users/7/posts/9",
            r#"`{"id":"7","post":"9"}`"#,
        ),
        ("users{/id}/posts{/post}", "users/posts", r#"`{}`"#),
    ];
    for (template, uri, result) in table {
        assert_row(&matcher(template), uri, result);
    }
}

#[test]
fn raw_form_keeps_the_encoding() {
    let found = matcher("x:{a}/{+b}{?l*}")
        .matches("x:%2f%61/c%20é?l=%31&l=2")
        .unwrap();
    assert_eq!(found.text("a"), Some("/a"));
    assert_eq!(found.raw("a"), Some(&Value::from("%2Fa")));
    assert_eq!(found.raw("b"), Some(&Value::from("c%20%C3%A9")));
    assert_eq!(
        found.list("l"),
        Some(["1".to_owned(), "2".to_owned()].as_slice())
    );
    assert_eq!(found.raw("l"), Some(&Value::from(["1", "2"])));
    assert_eq!(found.value("other"), None);
}

#[test]
fn ambiguous_templates_expand_but_have_no_matcher() {
    let neighbours = |first: &str, second: &str| Problem::Neighbours {
        first: first.into(),
        second: second.into(),
    };
    let table = [
        ("{a}{b}", neighbours("a", "b"), 4),
        ("{a}{+b}", neighbours("a", "b"), 5),
        ("{+a}{b}", neighbours("a", "b"), 5),
        ("{/a}{b}", neighbours("a", "b"), 5),
        ("{a,b}{c}", neighbours("b", "c"), 6),
        ("{+a}{/b*}", neighbours("a", "b"), 6),
        ("{/a*,b*}", neighbours("a", "b"), 5),
        ("{/a*}{.c}{/b*}", neighbours("c", "b"), 11),
        ("{?a}/x", Problem::MisplacedQuery, 4),
        ("{?a}{b}", Problem::MisplacedQuery, 4),
        ("{?a}{?b}", Problem::MisplacedQuery, 4),
        ("{#a}{?b}", Problem::MisplacedQuery, 4),
        ("{#a}x{#b}", Problem::MisplacedFragment, 5),
    ];
    for (template, problem, offset) in table {
        let parsed = UriTemplate::parse(template).unwrap();
        assert!(parsed.expand(&Values::new()).is_ok());
        let error = Matcher::new(&parsed).expect_err(template);
        assert_eq!(
            (error.problem(), error.offset()),
            (&problem, offset),
            "{template}"
        );
    }
}

#[test]
fn long_uris_and_many_values_match_nothing() {
    let wide = matcher("{+a}");
    assert!(wide.matches(&"a".repeat(MAX_URI_LENGTH)).is_some());
    assert!(wide.matches(&"a".repeat(MAX_URI_LENGTH + 1)).is_none());
    let items = |count| vec!["1"; count].join(",");
    let list = matcher("{l*}");
    assert!(list.matches(&items(MAX_ITEMS)).is_some());
    assert!(list.matches(&items(MAX_ITEMS + 1)).is_none());
    let query = "?l=1".to_owned() + &"&l=1".repeat(MAX_ITEMS);
    assert!(matcher("{?l*}").matches(&query).is_none());
    assert!(matcher("{?l}").matches(&query).is_none());
}

/// Templates and the units that URIs made to hurt them repeat.
const HOSTILE: &[(&str, &[&str])] = &[
    ("{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}!", &["-", "a", "a-", "/"]),
    ("{a}-{b}-{c}-{d}-{e}-{f}-{g}/{h}!", &["-", "a-", "a-/"]),
    ("{+a}aab{+b}aab{+c}aab{+d}!", &["a", "aab", "aa"]),
    ("{+a}aab{b}aab{c}aab{d}!", &["a", "aab", "baa"]),
    ("{a}{.b}{.c}{.d}{.e}{.f}/{g}!", &[".", "a.", "/"]),
    ("{a}{/b}{.c}{/d}{.e}{/f*}!", &["/a", "./", "/.", "a"]),
    ("{+p}{/b}{.c}{;d,e}{/f}!", &["/:", ";d=1", "/.;"]),
    ("x{;a,b,c}{;d}!", &[";a=1", ";d"]),
    ("x{?a,b,c*}{&d}", &["?a=1&c=2", "&c=2"]),
    ("{l*}!", &[",", "a", "%41,"]),
    ("{/l*}!", &["/", "/%41", "%41"]),
    ("{+a}!", &["a", "%c3%a9", "é"]),
    ("{v:9999}!", &["é", "a"]),
    ("{;l*}/end/{+z}!", &[";l=1", "/en", "a", ";l"]),
    ("{a}ababababac{b}ababababac{c}!", &["ab", "ababababa", "c"]),
    (
        "{+a}ababababac{b}ababababac{c}!",
        &["ab", "ababababa", "cababababa"],
    ),
    ("{?v:1,v:2,v:9999,v}", &["?v=a", "&v=a", "a"]),
    ("{v}/{v}/{v}/{+v}!", &["a", "a/"]),
];

/// Pieces that templates are repeated from as often as there may be variables.
const REPEATED: &[&str] = &[
    "{/v#}",
    "{.v#}",
    "{;v#}",
    "{;v#}{.w#}",
    "{.v#}{/w#}",
    "{;v#}{/w#}{.x#}",
    "/{v#}",
    "-{v#}",
    "/aab{v#}",
    "/{v}",
    "{.v#}-",
    "{/v#}/",
    "{/v#*}-",
    "{;v#*}/",
    "/{v#,w#}",
    "ab{v#*}",
];

/// The text around them.
const FRAMES: &[(&str, &str)] = &[
    ("x:", ""),
    ("x:{+w}", ""),
    ("x:", "/end/{+z}"),
    ("x:{+w}/end", "!"),
    ("x:{+w}x", "{?q,r}{#f}"),
];

/// The repeated parts of hostile URIs.
const UNITS: &[&str] = &[
    "a", "/", ".", "/a", ".a", ";a", "/en", "/aa", ";v1=1", ";v1=1.a", ";v1", "/.;", "é", "a:",
    "/aab", "a-",
];

/// The text at one of their ends.
const STARTS: &[&str] = &["", "/a", ".a", ";v1=1", "-", "/aab"];

/// The template, with `#` numbered, of as many of the pieces as there may be.
fn repeated(piece: &str, (start, end): (&str, &str)) -> String {
    let count = (crate::template::MAX_VARIABLES - 4)
        / piece
            .matches('{')
            .count()
            .max(piece.matches(',').count() + 1);
    let pieces: String = (0..count)
        .map(|number| piece.replace('#', &number.to_string()))
        .collect();
    format!("{start}{pieces}{end}")
}

/// The most bytes looked at for a byte of the URI and the template.
const STEPS: usize = 8;

fn assert_cheap(matcher: &Matcher, uri: &str) {
    let steps = steps_of(|| drop(matcher.matches(uri)));
    let length =
        Uri::new(uri).unwrap().with_lower_scheme().len() + matcher.template().as_str().len();
    assert!(
        steps <= STEPS * length,
        "{steps} for {length}: {} and {uri}",
        matcher.template()
    );
}

#[test]
fn hostile_uris_cost_in_proportion_to_their_length() {
    for (template, units) in HOSTILE {
        let matcher = matcher(template);
        for (unit, end) in units
            .iter()
            .flat_map(|unit| ["", "!", "/!"].map(|end| (unit, end)))
        {
            assert_cheap(
                &matcher,
                &format!("x{}{end}", unit.repeat(8 * 1024 / unit.len())),
            );
        }
    }
}

#[test]
fn hostile_uris_cost_no_more_where_there_are_many_variables() {
    let frames = |piece: &'static &str| FRAMES.iter().map(move |frame| repeated(piece, *frame));
    let matchers = REPEATED
        .iter()
        .flat_map(frames)
        .filter_map(|template| Matcher::new(&UriTemplate::parse(&template).expect(&template)).ok());
    for matcher in matchers {
        for (start, unit) in STARTS
            .iter()
            .flat_map(|start| UNITS.iter().map(move |unit| (start, unit)))
        {
            let (start, rest) = (start.repeat(61), unit.repeat(512 / unit.len()));
            for end in ["/end/q", ":"] {
                assert_cheap(&matcher, &format!("x:{start}{rest}{end}"));
                assert_cheap(&matcher, &format!("x:{rest}{start}{end}"));
            }
        }
    }
}

#[test]
fn long_literals_are_compared_in_no_time() {
    let long = "a".repeat(8000);
    let (one, other) = (
        matcher(&format!("x:{{+v}}{long}")),
        matcher(&format!("x:{{+v}}{long}b")),
    );
    let mut overlaps = true;
    let steps = steps_of(|| overlaps = one.overlaps(&other));
    assert!(!overlaps);
    assert!(steps < 8 * long.len(), "{steps}");
}

/// A stretch of a template, and the variable in it if it is defined.
type Piece = (String, Option<(String, Value)>);

fn any_text() -> impl Strategy<Value = String> {
    "\\PC{0,6}|[a/%?#,;=&.é ]{0,6}"
}

/// A text, often one that is a template's own text too.
fn segment() -> impl Strategy<Value = String> {
    prop_oneof![any_text(), "b", "b/b?"]
}

fn any_list() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any_text(), 0..4)
}

fn optional(
    piece: &'static str,
    name: &'static str,
    text: impl Strategy<Value = String>,
) -> impl Strategy<Value = Vec<Piece>> {
    let variable = |text| (name.to_owned(), Value::Text(text));
    prop::option::of(text).prop_map(move |text| vec![(piece.to_owned(), text.map(variable))])
}

fn simple(side: &'static str) -> impl Strategy<Value = Vec<Piece>> {
    let piece = move |(index, text)| {
        let name = format!("{side}_{index}");
        (
            format!("/{side}{index}/{{{name}}}"),
            Some((name, Value::Text(text))),
        )
    };
    let pieces = move |texts: Vec<String>| texts.into_iter().enumerate().map(piece).collect();
    prop::collection::vec(any_text(), 0..3).prop_map(pieces)
}

fn wide() -> impl Strategy<Value = Vec<Piece>> {
    let text = "[^%?#]{0,8}|[a/&wide0_]{0,8}".prop_map(|text| {
        vec![(
            "/wide/{+w}".to_owned(),
            Some(("w".to_owned(), Value::Text(text))),
        )]
    });
    let list = any_list().prop_map(|items| {
        let items = Some(items).filter(|items| !items.is_empty());
        vec![(
            "/wide{/w*}".to_owned(),
            items.map(|items| ("w".to_owned(), Value::List(items))),
        )]
    });
    prop_oneof![text, list]
}

fn query() -> impl Strategy<Value = Vec<Piece>> {
    (prop::option::of(any_text()), any_list()).prop_map(|(text, items)| {
        let list = Some(items).filter(|items| text.is_some() && !items.is_empty());
        vec![
            (
                "{?q,r}".to_owned(),
                text.map(|text| ("r".to_owned(), Value::Text(text))),
            ),
            (
                "{&l*}".to_owned(),
                list.map(|items| ("l".to_owned(), Value::List(items))),
            ),
        ]
    })
}

/// A template, and values for it that come back (see the documentation of [`Matcher`]).
fn invertible() -> impl Strategy<Value = (String, Values)> {
    let start = optional("x://h/{p:3}", "p", "\\PC{0,3}").prop_map(|mut pieces| {
        let empty = ("p".to_owned(), Value::from(""));
        pieces[0].1.get_or_insert(empty);
        pieces
    });
    let marked = (
        optional("{;m}", "m", any_text()),
        optional("/x{.e}", "e", any_text()),
    );
    let fragment = optional("{#f}", "f", "[^%]{0,6}");
    let all = (
        start,
        marked,
        simple("b"),
        wide(),
        simple("a"),
        query(),
        fragment,
    );
    all.prop_map(
        |(start, (one, two), before, wide, after, query, fragment)| {
            let pieces = [start, one, two, before, wide, after, query, fragment].concat();
            let (templates, variables): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
            (
                templates.concat(),
                variables.into_iter().flatten().collect(),
            )
        },
    )
}

#[test]
fn templates_without_a_common_uri_do_not_overlap() {
    let table = [
        ("x:{a}", "x:{a}/{b}", false),
        ("x:{a}", "y:{a}", false),
        ("X:{a}", "x:{b}", true),
        ("x:{a}/b", "x:a/{b}", true),
        ("x:{a}/b", "x:{a}/c", false),
        ("x:{a}/b", "x:{+a}/c", false),
        ("x:{+a}/b", "x:c/{+a}", true),
        ("x:%2fa{b}", "x:%2Fa{c}", true),
        ("x:a{/b}", "x:a.{c}", false),
        ("x:a", "x:{a}", true),
        ("x:a#{b}", "x:{a}", false),
        ("x:a{#b}", "x:{a}", true),
    ];
    for (one, other, expected) in table {
        assert_eq!(
            matcher(one).overlaps(&matcher(other)),
            expected,
            "{one} and {other}"
        );
        assert_eq!(
            matcher(other).overlaps(&matcher(one)),
            expected,
            "{other} and {one}"
        );
    }
}

/// Templates whose values come back whatever `a` and `b`, which may be undefined, and `c` hold.
const INVERTIBLE: &[&str] = &[
    "x:{;a}{;b}/{c}",
    "x:{;b}{;a}{/c}",
    "x:{/a}/b/{c}{?b}",
    "x:{/a}/{c}{?b}",
    "x:{?c,a:1,a}{&b:2,b:1,b}",
];

proptest! {
    #[test]
    fn neighbours_and_repeated_names_come_back(
        (a, b, c) in (prop::option::of(segment()), prop::option::of(any_text()), segment()),
        template in prop::sample::select(INVERTIBLE),
    ) {
        let template = UriTemplate::parse(template).unwrap();
        let values = [("a", a), ("b", b), ("c", Some(c))].into_iter();
        let values: Values =
            values.filter_map(|(name, value)| Some((name.to_owned(), Value::Text(value?)))).collect();
        let uri = template.expand(&values).unwrap();
        let found = Matcher::new(&template).unwrap().matches(&uri);
        prop_assert_eq!(found.map(Match::into_values), Some(values), "{} gives {}", template, uri);
    }

    #[test]
    fn matching_is_the_inverse_of_expanding((template, values) in invertible()) {
        let template = UriTemplate::parse(&template).unwrap();
        let uri = template.expand(&values).unwrap();
        let found = Matcher::new(&template).unwrap().matches(&uri);
        prop_assert_eq!(found.map(Match::into_values), Some(values), "{} gives {}", template, uri);
    }

    #[test]
    fn prefix_of_a_value_with_triplets_is_that_of_what_they_encode(
        pieces in prop::collection::vec(prop::sample::select(&["g", "/", "é", "%", "%2F", "%67", "%c3%A9", "%E2%82%AC"][..]), 0..6),
        length in 1..8_usize,
    ) {
        let values = Values::from([("v".to_owned(), Value::Text(pieces.concat()))]);
        let decoded = |template: &str| {
            let matcher = matcher(template);
            let uri = matcher.template().expand(&values).unwrap();
            matcher.matches(&uri).and_then(|found| Some(found.text("v")?.to_owned()))
        };
        let (Some(whole), prefix) = (decoded("x:{+v}"), decoded(&format!("x:{{+v:{length}}}"))) else {
            return Err(TestCaseError::fail("what is encoded here is UTF-8"));
        };
        prop_assert_eq!(prefix, Some(whole.chars().take(length).collect::<String>()));
    }

    #[test]
    fn values_of_a_uri_expand_to_one_with_the_same_values(uri in "x:[a-c%2Fé/!.-]{0,12}") {
        for template in ["x:{a}", "x:{a}/{b}", "x:{a}-{b}.{c}"] {
            let matcher = matcher(template);
            let Some(values) = matcher.matches(&uri).map(Match::into_values) else { continue };
            let again = matcher.template().expand(&values).unwrap();
            prop_assert_eq!(matcher.matches(&again).map(Match::into_values), Some(values), "{} {}", uri, again);
        }
    }

    #[test]
    fn templates_that_match_one_uri_overlap(uri in "x:[ab/?&#;.,=-]{0,10}") {
        let templates = [
            "x:{a}", "x:{+a}", "x:a{b}", "x:{a}/{b}", "x:{a}{.b}", "x:a{/b,c}", "x:{a}{/b*}", "x:a{;b}", "{a}:{+b}",
            "x:{a*}", "x:a{?b}", "x:{a}{#b}", "x:{+a}#{b}", "x:{a,b}", "x:{a}{?b}{&c}",
        ];
        let matching: Vec<_> =
            templates.map(matcher).into_iter().filter(|matcher| matcher.matches(&uri).is_some()).collect();
        for (one, other) in matching.iter().flat_map(|one| matching.iter().map(move |other| (one, other))) {
            prop_assert!(one.overlaps(other), "{} and {}: {uri}", one.template(), other.template());
        }
    }

    #[test]
    fn no_template_and_uri_panic(template in "[ab{}+/?&#;.,*:1-]{0,24}", uri in "[ab/?&#;.,=%41-]{0,24}|.{0,12}") {
        if let Ok(template) = UriTemplate::parse(&template) {
            for matcher in [Matcher::new(&template), Matcher::lenient(&template)].into_iter().flatten() {
                matcher.matches(&uri);
            }
        }
    }
}
