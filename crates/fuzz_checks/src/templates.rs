use std::time::{Duration, Instant};

use mcp_resources::template::{
    MAX_URI_LENGTH, Match, Matcher, TemplateSet, UriTemplate, Value, Values, Variable,
};

/// The longest that matching one URI may take, unoptimised and on a busy machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes the first line of `text` as a template and the rest as a URI.
///
/// No input panics; matching ends soon; the URI that the template makes of the values found has the same values,
/// where these are what a URI can say.
pub fn templates(text: &str) {
    let (template, uri) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(template) = UriTemplate::parse(template) else {
        return;
    };
    assert_eq!(
        UriTemplate::parse(template.as_str()).as_ref(),
        Ok(&template)
    );
    let matchers = [Matcher::new(&template), Matcher::lenient(&template)];
    assert_eq!(matchers[0].is_ok(), matchers[1].is_ok(), "{template}");
    let [Ok(strict), Ok(lenient)] = matchers else {
        return;
    };
    check(&strict, uri);
    check(&lenient, uri);
    if let Some(found) = strict.matches(uri) {
        let both = lenient.matches(uri).is_some();
        assert!(!both || lenient.overlaps(&strict), "{template} and {uri:?}");
        let set = TemplateSet::new(vec![strict]);
        assert_eq!(set.find(uri), Some((0, found)), "{template} and {uri:?}");
    }
}

fn check(matcher: &Matcher, uri: &str) {
    let start = Instant::now();
    let found = matcher.matches(uri);
    let time = start.elapsed();
    assert!(
        time < PATIENCE,
        "{} and {uri:?}: {time:?}",
        matcher.template()
    );
    if let Some(found) = found {
        check_inverse(matcher, uri, found);
    }
}

/// The values of a URI make one that has them again, unless they were encoded where the template would not encode them:
/// then they may hold what ends a value. A lone `{&…}` says nothing of its `{?…}`, and a variable with two mentions may
/// be left out of one of them.
fn check_inverse(matcher: &Matcher, uri: &str, found: Match) {
    let template = matcher.template();
    let names = template.variables();
    assert!(
        found
            .variables()
            .iter()
            .all(|variable| names.contains(&&*variable.name)),
        "{template}"
    );
    let is_inverse = found.variables().iter().all(is_written_plainly)
        && !template.as_str().contains("{&")
        && mentions(template) == names.len();
    let values = found.into_values();
    let Ok(again) = template.expand(&values) else {
        return;
    };
    if is_inverse && again.len() <= MAX_URI_LENGTH {
        let second = matcher.matches(&again).map(Match::into_values);
        assert_eq!(
            second.as_ref(),
            Some(&values),
            "{template}, {uri:?}, then {again:?}"
        );
    }
}

fn mentions(template: &UriTemplate) -> usize {
    let expressions = template
        .as_str()
        .split('{')
        .skip(1)
        .filter_map(|text| text.split('}').next());
    expressions
        .map(|variables| variables.split(',').count())
        .sum()
}

/// Whether a URI has the value in the form that `{+v}` gives it.
fn is_written_plainly(variable: &Variable) -> bool {
    let template = UriTemplate::parse("{+v*}").expect("it is one");
    let written = template.expand(&Values::from([("v".to_owned(), variable.value.clone())]));
    let raw = match &variable.raw {
        Value::Text(raw) => raw.clone(),
        Value::List(raw) => raw.join(","),
        Value::Map(_) => panic!("a match has no maps"),
    };
    written == Ok(raw)
}
