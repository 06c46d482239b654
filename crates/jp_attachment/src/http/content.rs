//! The type of a page, by its header and its content.

use std::time::Duration;

use jiff::Timestamp;
use jp_resource::{Annotations, Resource, ResourceContent, mime};

use super::{
    HttpUrl,
    charset::{Decoded, Doubt, Foreign, decode},
    fetch::Page,
    markdown::{self, Conversion},
};
use crate::{
    Notice,
    classify::{classify, magic_type},
};

/// The most time to convert a page to Markdown. An ordinary page takes a few milliseconds; this
/// stops a malicious one.
const BUDGET: Duration = Duration::from_secs(5);

/// Creates the resource of `url` from a page.
///
/// The content of text in another charset than UTF-8 is its bytes, and `formatted` is the decoded
/// text. For HTML, `formatted` is Markdown.
pub(super) fn read(url: &HttpUrl, page: Page) -> (Resource, Vec<Notice>) {
    let declared = page.content_type.as_deref().and_then(MimeType::parse);
    let mut reader = TextReader {
        name: url.to_string(),
        notices: Vec::new(),
    };
    let mut resource = match declared.filter(|declared| !declared.is_unspecific(&page.bytes)) {
        None => {
            let (content, mime_type) = classify(page.bytes, url.file_name());
            Resource::new(url.to_string(), content).with_mime_type(mime_type)
        }
        Some(declared) if mime::is_text(&declared.essence) => reader.read(page.bytes, &declared),
        Some(declared) => Resource::new(url.to_string(), ResourceContent::Blob(page.bytes))
            .with_mime_type(declared.essence),
    };
    let last_modified = page.last_modified.as_deref().and_then(rfc3339);
    resource.annotations = last_modified.map(|date| Annotations {
        last_modified: Some(date),
        ..Annotations::default()
    });
    (resource.with_name(url.as_str()), reader.notices)
}

/// Decodes a page of text.
struct TextReader {
    name: String,
    notices: Vec<Notice>,
}

impl TextReader {
    fn read(&mut self, bytes: Vec<u8>, declared: &MimeType) -> Resource {
        let uri = self.name.clone();
        match decode(bytes, declared.charset.as_deref()) {
            Decoded::Utf8(text) => {
                let page = declared.is_html().then(|| self.markdown(&text));
                let resource = Resource::new(uri, ResourceContent::Text(text));
                let mut resource = resource.with_mime_type(&declared.essence);
                (resource.title, resource.formatted) = page.unwrap_or_default();
                resource
            }
            Decoded::Other(Foreign {
                bytes,
                text,
                charset,
                doubt,
            }) => {
                self.notices
                    .extend(doubt.map(|doubt| self.doubt_notice(doubt, &charset)));
                let page = declared.is_html().then(|| self.markdown(&text));
                let mime_type = format!("{}; charset={charset}", declared.essence);
                let mut resource =
                    Resource::new(uri, ResourceContent::Blob(bytes)).with_mime_type(mime_type);
                (resource.title, resource.formatted) = page.unwrap_or_default();
                resource.formatted.get_or_insert(text);
                resource
            }
            Decoded::Binary(bytes) => {
                let (name, mime_type) = (self.name.clone(), declared.essence.clone());
                self.notices.push(Notice::NotText { name, mime_type });
                let (content, mime_type) = classify(bytes, "");
                Resource::new(uri, content).with_mime_type(mime_type)
            }
        }
    }

    /// Returns the title and the Markdown of HTML.
    fn markdown(&mut self, html: &str) -> (Option<String>, Option<String>) {
        let name = self.name.clone();
        match markdown::convert(html, BUDGET) {
            Conversion::Done { title, markdown } if markdown.is_empty() => {
                self.notices.push(Notice::EmptyPage { name });
                (title, None)
            }
            Conversion::Done { title, markdown } => (title, Some(markdown)),
            Conversion::GivenUp => {
                self.notices.push(Notice::NotConverted { name });
                (None, None)
            }
        }
    }

    fn doubt_notice(&self, doubt: Doubt, charset: &str) -> Notice {
        let (name, charset) = (self.name.clone(), charset.to_owned());
        match doubt {
            Doubt::Guessed => Notice::GuessedCharset { name, charset },
            Doubt::Replaced => Notice::Garbled { name, charset },
        }
    }
}

/// A `Content-Type` (RFC 9110 §8.3).
#[derive(Debug, PartialEq, Eq)]
struct MimeType {
    /// Type and subtype in lower case.
    essence: String,
    charset: Option<String>,
}

impl MimeType {
    /// Parses a header. Returns `None` if type or subtype is no token (RFC 9110 §5.6.2), or for
    /// `*/*`, which some servers send.
    fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split(';').map(str::trim);
        let essence = parts.next()?.to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) || subtype == "*" {
            return None;
        }
        let charset = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        Some(Self {
            essence,
            charset: charset.filter(|charset| !charset.is_empty()),
        })
    }

    /// Returns whether servers use this type for content that they don't know, so that the content
    /// itself has to decide.
    fn is_unspecific(&self, bytes: &[u8]) -> bool {
        match &*self.essence {
            "application/octet-stream"
            | "binary/octet-stream"
            | "application/x-download"
            | "application/force-download"
            | "application/x-unknown-content-type" => true,
            // Some servers send `text/plain` for all files whose extension they don't know.
            "text/plain" => {
                bytes.starts_with(b"%PDF-") || (self.charset.is_none() && is_known_binary(bytes))
            }
            _ => false,
        }
    }

    fn is_html(&self) -> bool {
        matches!(&*self.essence, "text/html" | "application/xhtml+xml")
    }
}

/// Returns whether a text is a token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte))
}

fn is_known_binary(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err() && magic_type(bytes).is_some()
}

/// Converts an HTTP date to RFC 3339.
fn rfc3339(date: &str) -> Option<String> {
    let date = httpdate::parse_http_date(date).ok()?;
    Timestamp::try_from(date).ok().map(|date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    /// The path, header and content of a page; its type, and whether it is text.
    type Case = (
        &'static str,
        Option<&'static str>,
        &'static [u8],
        &'static str,
        bool,
    );

    fn read_page(path: &str, content_type: Option<&str>, bytes: &[u8]) -> (Resource, Vec<String>) {
        let (url, _) = HttpUrl::parse(&format!("http://h/{path}")).unwrap();
        let content_type = content_type.map(str::to_owned);
        let (resource, notices) = read(
            &url,
            Page {
                content_type,
                last_modified: None,
                bytes: bytes.to_vec(),
            },
        );
        assert_eq!(resource.content.as_bytes(), bytes);
        assert_eq!(
            (&*resource.uri, resource.name.as_deref()),
            (url.as_str(), Some(url.as_str()))
        );
        (resource, notices.iter().map(Notice::to_string).collect())
    }

    #[test]
    fn server_decides_unless_it_is_unspecific() {
        let table: [Case; 22] = [
            ("a", Some("text/plain"), b"x", "text/plain", true),
            (
                "a.rs",
                Some("text/plain; charset=utf-8"),
                b"x",
                "text/plain",
                true,
            ),
            (
                "a",
                Some("Application/JSON"),
                b"{}",
                "application/json",
                true,
            ),
            (
                "a",
                Some("application/problem+json"),
                b"{}",
                "application/problem+json",
                true,
            ),
            (
                "a",
                Some("application/atom+xml;type=feed"),
                b"<a/>",
                "application/atom+xml",
                true,
            ),
            (
                "a",
                Some("application/javascript"),
                b"x",
                "application/javascript",
                true,
            ),
            ("a", Some("text/csv"), b"a,b", "text/csv", true),
            (
                "a",
                Some("application/yaml"),
                b"a: b",
                "application/yaml",
                true,
            ),
            ("a", Some("image/svg+xml"), b"<svg/>", "image/svg+xml", true),
            ("a", Some("image/png"), PNG, "image/png", false),
            (
                "a",
                Some("application/pdf"),
                b"%PDF-1.4",
                "application/pdf",
                false,
            ),
            (
                "a",
                Some("application/vnd.ms-excel"),
                b"text",
                "application/vnd.ms-excel",
                false,
            ),
            ("a.rs", None, b"fn main() {}", "text/x-rust", true),
            ("a", None, PNG, "image/png", false),
            ("a", None, b"\0\x01", "application/octet-stream", false),
            (
                "a.toml",
                Some("application/octet-stream"),
                b"a = 1",
                "text/toml",
                true,
            ),
            (
                "a.docx",
                Some("application/octet-stream"),
                b"PK\x03\x04\x14\0\0\0\0\0 other",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                false,
            ),
            ("a", Some("text/plain"), PNG, "image/png", false),
            (
                "a",
                Some("text/plain"),
                b"%PDF-1.4",
                "application/pdf",
                false,
            ),
            ("a", Some("nonsense"), b"x", "text/plain", true),
            ("a", Some("*/*"), b"x", "text/plain", true),
            ("a", Some(""), b"", "text/plain", true),
        ];
        for (path, content_type, bytes, mime_type, is_text) in table {
            let (resource, notices) = read_page(path, content_type, bytes);
            let found = (
                resource.mime_type.as_deref(),
                resource.content.as_text().is_some(),
            );
            let mime_type = if mime_type == "text/toml" {
                mime::from_path("a.toml").unwrap()
            } else {
                mime_type
            };
            assert_eq!(found, (Some(mime_type), is_text), "{path} {content_type:?}");
            assert_eq!(
                (notices, resource.formatted),
                (vec![], None),
                "{path} {content_type:?}"
            );
        }
    }

    #[test]
    fn page_is_shown_as_markdown() {
        let html = "<title> A \n page</title><nav>Menu</nav><h1>Head</h1><p>One <b>two</b>.";
        let (resource, notices) = read_page("", Some("text/html; charset=UTF-8"), html.as_bytes());
        assert_eq!(
            resource.formatted.as_deref(),
            Some("# Head\n\nOne **two**.")
        );
        assert_eq!(resource.title.as_deref(), Some("A page"));
        assert_eq!(resource.mime_type.as_deref(), Some("text/html"));
        assert_eq!(notices, [""; 0]);
    }

    #[test]
    fn page_in_another_charset_keeps_its_bytes() {
        let (resource, notices) =
            read_page("", Some("text/html;charset=iso-8859-1"), b"<p>caf\xe9");
        assert_eq!(
            resource.content,
            ResourceContent::Blob(b"<p>caf\xe9".to_vec())
        );
        assert_eq!(
            resource.mime_type.as_deref(),
            Some("text/html; charset=windows-1252")
        );
        assert_eq!(resource.formatted.as_deref(), Some("café"));
        assert_eq!(notices, [""; 0]);
    }

    #[test]
    fn nothing_is_garbled_silently() {
        let table: [(&str, &[u8], &str); 4] = [
            (
                "text/plain; charset=utf-8",
                b"a\xe9b",
                r#""http://h/" has bytes that are invalid in utf-8; the model sees � in their place"#,
            ),
            (
                "text/plain",
                b"a\xe9b",
                r#""http://h/" declares no charset and is not UTF-8; it is read as windows-1252"#,
            ),
            (
                "text/css",
                b"a\0b",
                r#""http://h/" is declared as text/css but is not readable text; it is attached as binary"#,
            ),
            (
                "text/html",
                b"<script>x</script>",
                r#""http://h/" shows no text without its scripts; its HTML is attached unchanged"#,
            ),
        ];
        for (content_type, bytes, notice) in table {
            let (_, notices) = read_page("", Some(content_type), bytes);
            assert_eq!(notices, [notice]);
        }
    }

    #[test]
    fn date_is_rfc_3339() {
        for (date, is) in [
            (
                "Wed, 21 Oct 2015 07:28:00 GMT",
                Some("2015-10-21T07:28:00Z"),
            ),
            ("yesterday", None),
        ] {
            assert_eq!(rfc3339(date).as_deref(), is);
        }
    }
}
