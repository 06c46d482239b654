use std::borrow::Cow;

use jp_resource::{Resource, mime, uri};
use serde_json::Value;

use super::lines::Span;

/// The field of a resource's `_meta` that is `true` if these lines of a file reach the end of the file.
pub const END_MARK: &str = "computer.jp/reachesEnd";

/// Renders a resource of a tool's result: its content in a code fence that nothing in it can close.
///
/// The info line has the language, the name (the URI if there is no name) and the lines, and says if
/// the last line has no newline ([`lacks_newline`]). Formatted text replaces the whole block.
#[must_use]
pub fn resource_block<C, T>(resource: &Resource<C, T>, content: &str) -> String {
    if resource.formatted.is_some() {
        return content.to_owned();
    }
    let fence = mime::fence_for(content);
    let language = resource
        .mime_type
        .as_deref()
        .and_then(mime::fence_language)
        .unwrap_or_default();
    let label = label(resource).replace(['\n', '\r', '`'], " ");
    let label = one_line(&label);
    let separator = if language.is_empty() { "" } else { " " };
    let ends_line = content.is_empty() || content.ends_with('\n');
    let newline = if ends_line { "" } else { "\n" };
    let end = if lacks_newline(resource, ends_line) {
        ", no newline at the end"
    } else {
        ""
    };
    format!("{fence}{language}{separator}({label}{end})\n{content}{newline}{fence}\n")
}

/// Returns true if a frame must say that the file has no newline at its end.
///
/// A frame ends the last line itself, so the content doesn't show it. Only files are written back, so
/// other resources never say it. A part of a file says it only if it is marked to reach the end
/// ([`END_MARK`]). Formatted text is not the content, so it says nothing either. `ends_line` is
/// true if the content ends with a newline or is empty.
#[must_use]
pub fn lacks_newline<C, T>(resource: &Resource<C, T>, ends_line: bool) -> bool {
    let (place, fragment) = uri::split_fragment(&resource.uri);
    let is_file = ["file:", "external:"]
        .iter()
        .any(|scheme| place.starts_with(scheme));
    let mark = resource.meta.as_ref().and_then(|meta| meta.get(END_MARK));
    let reaches_end = fragment.is_none() || mark == Some(&Value::Bool(true));
    !ends_line && is_file && reaches_end && resource.formatted.is_none()
}

/// Names a resource by its name and its URI, on one line.
///
/// References name the same URI, so a model finds what they are about.
#[must_use]
pub fn resource_label<C, T>(resource: &Resource<C, T>) -> String {
    let uri = one_line(&resource.uri);
    match &resource.name {
        Some(name) if *name != resource.uri => format!("{} ({uri})", one_line(name)),
        _ => uri.into_owned(),
    }
}

/// Returns the text in place of the result of an interrupted call.
#[must_use]
pub fn text_of_missing_result() -> &'static str {
    "No result: the call was interrupted before the tool answered."
}

/// Returns the text in place of a missing answer.
#[must_use]
pub fn text_of_missing_answer() -> &'static str {
    "No answer: the request was interrupted."
}

fn label<C, T>(resource: &Resource<C, T>) -> String {
    let (place, fragment) = uri::split_fragment(&resource.uri);
    let name = resource.name.as_ref();
    match (name, fragment.and_then(line_range)) {
        // References use the URI, so the label must contain it or imply it.
        (Some(name), Some(lines)) if !implies_uri(place, name) => {
            format!("{name}, {place}, {lines}")
        }
        (Some(name), None) if !implies_uri(place, name) => format!("{name}, {}", resource.uri),
        (Some(name), Some(lines)) => format!("{name}, {lines}"),
        (Some(name), None) => name.clone(),
        (None, Some(lines)) => format!("{place}, {lines}"),
        (None, None) => resource.uri.clone(),
    }
}

/// Returns true if a name implies its URI: the URI ends with it, or jp made the name from the URI.
fn implies_uri(uri: &str, name: &str) -> bool {
    const OWN: [&str; 6] = ["cmd", "stdin", "clip", "data", "bear", "external"];
    let is_own = uri
        .split_once(':')
        .is_some_and(|(scheme, _)| OWN.contains(&scheme));
    is_own || uri::ends_with_name(uri, name)
}

/// Reads `L10-200` as "lines 10-200", `L7` as "line 7".
fn line_range(fragment: &str) -> Option<String> {
    Span::from_fragment(fragment).map(|span| span.to_string())
}

/// Escapes characters that end a line or are invisible, because names and URIs come from outside.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown.into()
}

fn is_hidden(character: char) -> bool {
    // In Unicode, the separators of lines and paragraphs end a line, too.
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(uri: &str) -> Resource<(), String> {
        Resource::new(uri, ()).with_mime_type("text/x-rust")
    }

    #[test]
    fn info_line_describes_the_resource() {
        let named = rust("file:///p/src/main.rs#L1-3").with_name("src/main.rs");
        assert_eq!(
            resource_block(&named, "fn main() {}"),
            "```rs (src/main.rs, lines 1-3)\nfn main() {}\n```\n"
        );
        let unnamed = rust("file:///p/src/main.rs");
        assert_eq!(
            resource_block(&unnamed, "x\n"),
            "```rs (file:///p/src/main.rs)\nx\n```\n"
        );
    }

    #[test]
    fn info_line_says_that_the_last_line_lacks_its_newline() {
        let file = rust("file:///p/a.rs").with_name("a.rs");
        assert_eq!(
            resource_block(&file, "x"),
            "```rs (a.rs, no newline at the end)\nx\n```\n"
        );
        assert_eq!(resource_block(&file, ""), "```rs (a.rs)\n```\n");
        let mut formatted = file;
        formatted.formatted = Some("x".to_owned());
        assert_eq!(resource_block(&formatted, "x"), "x");
    }

    #[test]
    fn lines_say_it_of_the_end_of_the_file_alone() {
        let mut lines = rust("file:///p/a.rs#L2-3").with_name("a.rs");
        assert_eq!(
            resource_block(&lines, "x"),
            "```rs (a.rs, lines 2-3)\nx\n```\n"
        );
        lines.meta = Some([(END_MARK.to_owned(), true.into())].into_iter().collect());
        assert_eq!(
            resource_block(&lines, "x"),
            "```rs (a.rs, lines 2-3, no newline at the end)\nx\n```\n"
        );
        assert_eq!(
            resource_block(&lines, "x\n"),
            "```rs (a.rs, lines 2-3)\nx\n```\n"
        );
    }

    #[test]
    fn name_that_the_uri_does_not_tell_stands_before_it() {
        let block = |uri: &str, name: &str| {
            resource_block(&Resource::<(), String>::new(uri, ()).with_name(name), "")
                .lines()
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(block("note:1", "Report"), "```(Report, note:1)");
        assert_eq!(
            block("note:1#L2-3", "Report"),
            "```(Report, note:1, lines 2-3)"
        );
        assert_eq!(block("note:report", "report"), "```(report)");
        assert_eq!(block("file:///a/b%20c.txt", "a/b c.txt"), "```(a/b c.txt)");
        assert_eq!(block("cmd://git?arg=diff", "git diff"), "```(git diff)");
    }

    #[test]
    fn fence_is_longer_than_any_in_the_content() {
        let block = resource_block(&Resource::<(), String>::new("a:b", ()), "````\n```");
        assert_eq!(block, "`````(a:b)\n````\n```\n`````\n");
    }

    #[test]
    fn label_is_on_one_line() {
        let named = rust("file:///p/a.png").with_name("a\n.png");
        assert_eq!(resource_label(&named), r"a\u{a}.png (file:///p/a.png)");
        assert_eq!(resource_label(&rust("https://x/a.png")), "https://x/a.png");
        assert_eq!(
            resource_label(&rust("https://x/").with_name("https://x/")),
            "https://x/"
        );
    }

    #[test]
    fn formatted_text_is_verbatim() {
        let mut resource = rust("a:b");
        resource.formatted = Some(String::new());
        assert_eq!(resource_block(&resource, "as it is"), "as it is");
    }
}
