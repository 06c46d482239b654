//! Attached resources as text that a model can tell apart: `<resource uri="…">` … `</resource>`.

use std::io;

use jp_conversation::view::lacks_newline;
use jp_resource::Resource;

use crate::{defuse::write_defused, json::JsonText, later::Text};

/// Writes a resource with its text between the tags.
///
/// The opening tag says if the last line has no newline.
///
/// A text that would close the tag early can't: `</resource`, in whatever case, is written
/// `<\/resource`.
pub(crate) fn write_text<C, T>(
    out: &mut JsonText<'_>,
    resource: &Resource<C, T>,
    text: &Text<'_>,
) -> io::Result<()> {
    write_attributes(out, resource)?;
    out.push(if lacks_newline(resource, text.ends_line()) {
        " endsWithNewline=\"false\">\n"
    } else {
        ">\n"
    })?;
    match text {
        Text::Now(text) => write_defused(out, text)?,
        Text::Later(_) => out.leave_gap()?,
    }
    out.push(if text.ends_line() { "" } else { "\n" })?;
    out.push("</resource>")
}

/// Writes a resource that can't be shown, with a note in its place.
pub(crate) fn write_note<C, T>(
    out: &mut JsonText<'_>,
    resource: &Resource<C, T>,
    note: &str,
) -> io::Result<()> {
    write_attributes(out, resource)?;
    out.push(">")?;
    write_defused(out, note)?;
    out.push("</resource>")
}

/// Writes the label before a resource whose content is a separate part without a name and URI.
pub(crate) fn write_label<C, T>(
    out: &mut JsonText<'_>,
    resource: &Resource<C, T>,
) -> io::Result<()> {
    write_note(out, resource, "[the next part of this message]")
}

/// Writes the opening tag except for its end.
fn write_attributes<C, T>(out: &mut JsonText<'_>, resource: &Resource<C, T>) -> io::Result<()> {
    out.push(&format!("<resource uri=\"{}\"", escape(&resource.uri)))?;
    if let Some(name) = &resource.name {
        out.push(&format!(" name=\"{}\"", escape(name)))?;
    }
    if let Some(mime_type) = &resource.mime_type {
        out.push(&format!(" mimeType=\"{}\"", escape(mime_type)))?;
    }
    Ok(())
}

/// Escapes an attribute's value (XML 1.0 §2.4, §3.3.3).
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => {
                escaped.push_str(&format!("&#{};", u32::from(control)))
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::JsonWriter;

    fn written(resource: &Resource<(), ()>, text: &str) -> String {
        let mut json = Vec::new();
        let text = Text::Now(text.into());
        JsonWriter::new(&mut json)
            .string(|out| write_text(out, resource, &text))
            .unwrap();
        serde_json::from_slice(&json).unwrap()
    }

    #[test]
    fn attributes_are_escaped() {
        let resource = Resource::new("file:///a&b", ());
        assert_eq!(
            written(&resource, "x\n"),
            "<resource uri=\"file:///a&amp;b\">\nx\n</resource>"
        );
        let resource = resource
            .with_name("\"a\"\n<b>")
            .with_mime_type("text/plain");
        assert_eq!(
            written(&resource, "x\n"),
            "<resource uri=\"file:///a&amp;b\" name=\"&quot;a&quot;&#10;&lt;b&gt;\" mimeType=\"text/plain\">\nx\n</resource>"
        );
    }

    #[test]
    fn closing_tag_in_the_text_is_defused_in_any_case() {
        let resource = Resource::new("a:b", ());
        for (text, body) in [
            ("</resource>", "<\\/resource>"),
            ("a</ReSource >b</RESOURCE", "a<\\/ReSource >b<\\/RESOURCE"),
            ("</</resource></resourc", "</<\\/resource></resourc"),
            ("</rësource>", "</rësource>"),
        ] {
            assert_eq!(
                written(&resource, text),
                format!("<resource uri=\"a:b\">\n{body}\n</resource>")
            );
        }
    }

    #[test]
    fn last_line_without_a_newline_is_said_to_lack_it() {
        let resource = Resource::new("file:///a", ());
        let unended = "<resource uri=\"file:///a\" endsWithNewline=\"false\">\nx\n</resource>";
        assert_eq!(written(&resource, "x"), unended);
        assert_eq!(
            written(&resource, ""),
            "<resource uri=\"file:///a\">\n</resource>"
        );
        assert_eq!(
            written(&resource, "\n"),
            "<resource uri=\"file:///a\">\n\n</resource>"
        );
        let reference = Resource {
            formatted: Some(()),
            ..resource
        };
        assert_eq!(
            written(&reference, "x"),
            "<resource uri=\"file:///a\">\nx\n</resource>"
        );
    }

    proptest! {
        #[test]
        fn only_the_last_tag_closes(text in "(<|/|\\\\|resource|RESOURCE|é|>){0,20}") {
            let written = written(&Resource::new("a:b", ()), &text).to_lowercase();
            prop_assert_eq!(written.find("</resource"), Some(written.len() - "</resource>".len()));
        }
    }
}
