use proptest::prelude::*;

use crate::template::{MAX_TEMPLATE_LENGTH, MAX_VARIABLES, Problem, TemplateError, UriTemplate};

fn failure(template: &str) -> TemplateError {
    UriTemplate::parse(template).expect_err(template)
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let table = [
        ("a{/id*", Problem::Unclosed, 1),
        ("/id*}", Problem::Unopened, 4),
        ("a b", Problem::LiteralCharacter(' '), 1),
        ("é\"", Problem::LiteralCharacter('"'), 2),
        ("a\u{fdd0}", Problem::LiteralCharacter('\u{fdd0}'), 1),
        ("100%", Problem::Percent, 3),
        ("{%2x}", Problem::Percent, 1),
        ("{=path}", Problem::ReservedOperator('='), 1),
        ("{|var*}", Problem::ReservedOperator('|'), 1),
        ("a{}", Problem::NameMissing, 2),
        ("{a,}", Problem::NameMissing, 3),
        ("{*keys}", Problem::NameMissing, 1),
        ("{$var}", Problem::NameCharacter('$'), 1),
        ("{/?id}", Problem::NameCharacter('?'), 2),
        ("{?x, y}", Problem::NameCharacter(' '), 4),
        ("{a-b}", Problem::NameCharacter('-'), 2),
        ("{a{b}}", Problem::NameCharacter('{'), 2),
        ("{ä}", Problem::NameCharacter('ä'), 1),
        ("{x.}", Problem::NameDot, 2),
        ("{x..y}", Problem::NameDot, 2),
        ("{var:}", Problem::Prefix, 5),
        ("{var:0}", Problem::Prefix, 5),
        ("{var:01}", Problem::Prefix, 5),
        ("{var:10000}", Problem::Prefix, 5),
        ("{hello:2*}", Problem::AfterModifier('*'), 8),
        ("{keys*?}", Problem::AfterModifier('?'), 6),
    ];
    for (template, problem, offset) in table {
        let error = failure(template);
        assert_eq!(
            (error.problem(), error.offset()),
            (&problem, offset),
            "{template}"
        );
    }
}

#[test]
fn error_shows_the_text_at_the_place() {
    let error = failure("org://{file name}/headline/{+path}");
    let text = r#"the character ' ' can't be in the name of a variable, at byte 11: " name}/headline/{+path}""#;
    assert_eq!(error.to_string(), text);
    assert_eq!(
        failure("100%").to_string(),
        r#""%" needs two hexadecimal digits after it, at byte 3: "%""#
    );
}

#[test]
fn long_templates_and_many_variables_are_refused() {
    assert!(UriTemplate::parse(&"a".repeat(MAX_TEMPLATE_LENGTH)).is_ok());
    let length = MAX_TEMPLATE_LENGTH + 1;
    assert_eq!(
        failure(&"a".repeat(length)).problem(),
        &Problem::TooLong { length }
    );
    assert!(UriTemplate::parse(&"{a}/".repeat(MAX_VARIABLES)).is_ok());
    let error = failure(&"{a}/".repeat(MAX_VARIABLES + 1));
    assert_eq!(
        (error.problem(), error.offset()),
        (&Problem::TooManyVariables, 4 * MAX_VARIABLES + 1)
    );
}

#[test]
fn variables_come_once_in_order() {
    let template = UriTemplate::parse("a{/b:3,a.c}{x%20y}{?b,_1*}").unwrap();
    assert_eq!(template.variables(), ["b", "a.c", "x%20y", "_1"]);
    assert_eq!(
        UriTemplate::parse("").unwrap().variables(),
        <[&str; 0]>::default()
    );
}

#[test]
fn template_prints_as_it_was_written() {
    let source = "é%2f'{/b:3,a.c}{?b,_1*}{#z}";
    assert_eq!(UriTemplate::parse(source).unwrap().to_string(), source);
    assert_eq!(source.parse::<UriTemplate>().unwrap().as_str(), source);
}

#[test]
fn official_negative_templates_are_refused() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/uritemplate-test/negative-tests.json"
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        return;
    };
    let suite: serde_json::Value = serde_json::from_str(&text).unwrap();
    let templates = suite["Failure Tests"]["testcases"].as_array().unwrap();
    assert_eq!(templates.len(), 36);
    for template in templates.iter().map(|case| case[0].as_str().unwrap()) {
        // These are well formed; what is wrong is that `keys` is a map, which expanding finds out.
        let only_expanding_fails = ["{keys:1}", "{+keys:1}"].contains(&template);
        assert_eq!(
            UriTemplate::parse(template).is_ok(),
            only_expanding_fails,
            "{template}"
        );
    }
}

proptest! {
    #[test]
    fn parser_points_into_any_text(source in "[a{}?*:1%2F,.é=/ #]{0,24}|.{0,24}") {
        match UriTemplate::parse(&source) {
            Ok(template) => prop_assert_eq!(template.as_str(), &source),
            Err(error) => prop_assert!(source.is_char_boundary(error.offset()), "{}", error),
        }
    }
}
