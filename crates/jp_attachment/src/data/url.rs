//! Parsing of `data:` URLs.

use data_url::{DataUrl, mime::Mime};
use jp_resource::{Checksum, Resource, ResourceContent};

use crate::{AttachError, classify::classify};

/// The longest URL that is its resource's URI, in bytes. A longer one would bloat every reference
/// to the resource.
const MAX_URI: usize = 256;
/// The number of characters of a URL in its name, which fits into a line of a terminal.
const NAME_CHARS: usize = 60;

/// Returns the stored form of a URL; `None` if its URI has a checksum in the place of the content.
pub(crate) fn declaration(url: &str) -> Result<Option<String>, AttachError> {
    decode(url).map_err(|reason| AttachError::invalid(&shorten(url), reason))?;
    Ok((url.len() <= MAX_URI).then(|| url.to_owned()))
}

/// Returns the URI of the resource that a URL gives.
pub(crate) fn uri(url: &str) -> Option<String> {
    decode(url).ok().map(|resource| resource.uri)
}

/// Shortens a URL for messages.
pub(crate) fn shorten(url: &str) -> String {
    match url.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("{}…", &url[..end]),
        None => url.to_owned(),
    }
}

/// Decodes a URL. Refuses text that is not UTF-8, because it would be garbled.
pub(super) fn decode(url: &str) -> Result<Resource, String> {
    let parsed =
        DataUrl::process(url).map_err(|_| "a data: URL is `data:TYPE[;base64],DATA`".to_owned())?;
    let (bytes, _) = parsed
        .decode_to_vec()
        .map_err(|_| "its base64 is malformed".to_owned())?;
    let declared = parsed.mime_type();
    let mime_type = format!("{}/{}", declared.type_, declared.subtype);
    let content = if is_text(declared) {
        ResourceContent::Text(
            String::from_utf8(bytes).map_err(|_| "its text is not UTF-8".to_owned())?,
        )
    } else {
        classify(bytes, "").0
    };
    // The checksum keeps URIs of different contents apart.
    let uri = if url.len() <= MAX_URI {
        url.to_owned()
    } else {
        format!(
            "data:{mime_type};sha256={},",
            Checksum::compute(content.as_bytes())
        )
    };
    Ok(Resource::new(uri, content)
        .with_mime_type(mime_type)
        .with_name(shorten(url)))
}

/// Returns whether the declared type is one of text.
fn is_text(mime: &Mime) -> bool {
    let charset = mime.get_parameter("charset");
    mime.type_ == "text" || charset.is_some_and(|charset| charset.eq_ignore_ascii_case("utf-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_has_its_content() {
        for (url, mime_type, text) in [
            ("data:,A%20note", "text/plain", Some("A note")),
            (
                "data:text/html;charset=utf-8,%3Cp%3E",
                "text/html",
                Some("<p>"),
            ),
            ("DATA:text/plain;base64,w6k=", "text/plain", Some("é")),
            ("data:application/json,{}", "application/json", Some("{}")),
            ("data:image/png;base64,iVBORw0KGgoA", "image/png", None),
        ] {
            let resource = decode(url).unwrap();
            assert_eq!(resource.uri, url);
            assert_eq!(resource.mime_type.as_deref(), Some(mime_type), "{url}");
            assert_eq!(resource.content.as_text(), text, "{url}");
        }
    }

    #[test]
    fn malformed_url_is_refused() {
        for url in [
            "data:",
            "data:text/plain;base64,%",
            "data:text/plain;base64,a",
            "data:text/plain,%ff",
        ] {
            assert!(decode(url).is_err(), "{url}");
        }
    }

    #[test]
    fn long_url_is_named_by_its_checksum() {
        let url = format!("data:text/plain,{}", "x".repeat(300));
        let resource = decode(&url).unwrap();
        let checksum = Checksum::compute("x".repeat(300).as_bytes());
        assert_eq!(resource.uri, format!("data:text/plain;sha256={checksum},"));
        assert_eq!(declaration(&url).unwrap(), None);
    }
}
