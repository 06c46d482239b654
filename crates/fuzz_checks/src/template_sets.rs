use mcp_resources::template::{MAX_COMPARED, Matcher, TemplateSet, UriTemplate};

/// More are not looked at: each is tried against each.
const TEMPLATES: usize = 32;

/// Takes the last line of `text` as a URI and those before as templates.
///
/// A set finds a template if one of them matches, with the same values, and which one it is does not depend on how
/// many others there are: against each other that matches it wins where they are but two.
pub fn template_sets(text: &str) {
    let (templates, uri) = text.rsplit_once('\n').unwrap_or((text, ""));
    // What is not ASCII takes three times the room.
    if 3 * uri.len() > MAX_COMPARED / TEMPLATES {
        return;
    }
    let matcher = |(index, template): (usize, &str)| {
        let template = UriTemplate::parse(template).ok()?;
        if index % 4 == 3 {
            Matcher::lenient(&template).ok()
        } else {
            Matcher::new(&template).ok()
        }
    };
    let matchers: Vec<Matcher> = templates
        .lines()
        .enumerate()
        .filter_map(matcher)
        .take(TEMPLATES)
        .collect();
    let found = TemplateSet::new(matchers.clone()).find(uri);
    let matching: Vec<usize> = (0..matchers.len())
        .filter(|index| matchers[*index].matches(uri).is_some())
        .collect();
    let Some((best, values)) = found else {
        assert!(
            matching.is_empty(),
            "{matching:?} of {templates:?} match {uri:?}"
        );
        return;
    };
    assert_eq!(
        matchers[best].matches(uri),
        Some(values),
        "{templates:?} and {uri:?}"
    );
    for other in matching.into_iter().filter(|other| *other != best) {
        let (first, second) = (best.min(other), best.max(other));
        let two = TemplateSet::new(vec![matchers[first].clone(), matchers[second].clone()]);
        let winner = two.find(uri).map(|(index, _)| [first, second][index]);
        assert_eq!(winner, Some(best), "{templates:?} and {uri:?}");
    }
}
