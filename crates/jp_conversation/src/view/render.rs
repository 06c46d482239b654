use std::borrow::Cow;

use jp_resource::{Resource, mime, uri};

use super::lines::Span;

/// Renders a resource of a tool's result: its content in a code fence that nothing in it can close.
///
/// The info line says language, name (the URI where there is none) and lines; formatted text takes
/// the place of the whole (seed RFD 058, "JP-controlled resource formatting").
#[must_use]
pub fn resource_block<C, T>(resource: &Resource<C, T>, content: &str) -> String {
    if resource.formatted.is_some() {
        return content.to_owned();
    }
    let fence = mime::fence_for(content);
    let language = resource.mime_type.as_deref().and_then(mime::fence_language).unwrap_or_default();
    let label = label(resource).replace(['\n', '\r', '`'], " ");
    let label = one_line(&label);
    let separator = if language.is_empty() { "" } else { " " };
    let newline = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}{separator}({label})\n{content}{newline}{fence}\n")
}

/// Returns what stands for the result of a call that was interrupted.
#[must_use]
pub fn text_of_missing_result() -> &'static str {
    "No result: the call was interrupted before the tool answered."
}

/// Returns what stands for the answer of a request that got none.
#[must_use]
pub fn text_of_missing_answer() -> &'static str {
    "No answer: the request was interrupted."
}

fn label<C, T>(resource: &Resource<C, T>) -> String {
    let (place, fragment) = uri::split_fragment(&resource.uri);
    match (&resource.name, fragment.and_then(line_range)) {
        (Some(name), Some(lines)) => format!("{name}, {lines}"),
        (Some(name), None) => name.clone(),
        (None, Some(lines)) => format!("{place}, {lines}"),
        (None, None) => resource.uri.clone(),
    }
}

/// Reads `L10-200` as "lines 10-200", `L7` as "line 7".
fn line_range(fragment: &str) -> Option<String> {
    Span::of_fragment(fragment).map(|span| span.to_string())
}

/// Shows what would end the line, or is not seen, as its escape: what names and URIs say is no text of jp's.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    let is_hidden = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    if !text.contains(is_hidden) {
        return text.into();
    }
    let shown = |character: char| match character {
        character if is_hidden(character) => character.escape_unicode().to_string(),
        character => character.to_string(),
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(uri: &str) -> Resource<(), String> {
        Resource::new(uri, ()).with_mime_type("text/x-rust")
    }

    #[test]
    fn info_line_has_language_name_and_lines() {
        let named = rust("file:///p/src/main.rs#L1-3").with_name("src/main.rs");
        assert_eq!(
            resource_block(&named, "fn main() {}"),
            "```rs (src/main.rs, lines 1-3)\nfn main() {}\n```\n"
        );
        let unnamed = rust("file:///p/src/main.rs");
        assert_eq!(resource_block(&unnamed, "x\n"), "```rs (file:///p/src/main.rs)\nx\n```\n");
    }

    #[test]
    fn fence_is_longer_than_any_in_the_content() {
        let block = resource_block(&Resource::<(), String>::new("a:b", ()), "````\n```");
        assert_eq!(block, "`````(a:b)\n````\n```\n`````\n");
    }

    #[test]
    fn formatted_text_is_verbatim() {
        let mut resource = rust("a:b");
        resource.formatted = Some(String::new());
        assert_eq!(resource_block(&resource, "as it is"), "as it is");
    }
}
