use std::fmt;

use jp_resource::uri::{percent_decode, split_fragment};
use url::{Host, Url};

/// A canonical `http:` or `https:` URL, without credentials and fragment.
///
/// Scheme and host are in lower case (IDNA for names, one spelling for an address), a default port and
/// dot segments are gone, an empty path is `/` (RFC 3986 §6.2.2, §6.2.3). Percent-encodings have
/// upper-case digits and in the path stand for no unreserved character; the query is kept but for the
/// case of its digits. What can't be in a URI is percent-encoded, as browsers do. A fragment never
/// reaches a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl(Url);

/// A name and password for one request; its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) user: String,
    pub(super) password: Option<String>,
}

impl HttpUrl {
    /// Reads a URL and takes the credentials off; the error is a fragment that shows nothing of it.
    pub(crate) fn parse(text: &str) -> Result<(Self, Option<Credentials>), String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        Self::from_url(url)
    }

    /// Reads what a server refers to from this URL.
    pub(super) fn join(&self, reference: &str) -> Result<Self, String> {
        let url = self.0.join(reference).map_err(|error| error.to_string())?;
        Self::from_url(url).map(|(url, _)| url)
    }

    fn from_url(mut url: Url) -> Result<(Self, Option<Credentials>), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}:` is not `http:` or `https:`", url.scheme()));
        }
        let credentials = Credentials::of(&url);
        let cannot_be_base = |()| "it has no host".to_owned();
        url.set_username("").map_err(cannot_be_base)?;
        url.set_password(None).map_err(cannot_be_base)?;
        url.set_fragment(None);
        let path = normalized(url.path(), |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
        });
        let query = url
            .query()
            .map(|query| format!("?{}", normalized(query, |_| false)))
            .unwrap_or_default();
        let canonical = format!("{}{path}{query}", url.origin().ascii_serialization());
        Url::parse(&canonical)
            .map(|url| (Self(url), credentials))
            .map_err(|error| error.to_string())
    }

    /// Canonicalises a URL that somebody else wrote, without the credentials in it; the fragment follows byte for byte.
    /// `None` where it is no URL of this scheme.
    #[must_use]
    pub fn canonical(text: &str) -> Option<String> {
        let (resource, fragment) = split_fragment(text);
        let (url, _) = Self::parse(resource).ok()?;
        let fragment = fragment
            .map(|fragment| format!("#{fragment}"))
            .unwrap_or_default();
        Some(url.as_str().to_owned() + &fragment)
    }

    /// Returns the URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn as_url(&self) -> &Url {
        &self.0
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub(super) fn host(&self) -> Option<Host<&str>> {
        self.0.host()
    }

    /// Returns whether scheme, host and port are the same.
    pub(super) fn is_same_origin(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }

    /// Returns whether a server is the same, be it with encryption on the usual port.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
        let has_usual_port = |url: &Self| url.0.port().is_none();
        let is_same_port = self.0.port_or_known_default() == other.0.port_or_known_default();
        self.0.host() == other.0.host()
            && (is_same_port || has_usual_port(self) && has_usual_port(other))
    }

    /// Returns the last name of the path, as it is encoded.
    pub(super) fn file_name(&self) -> &str {
        self.0.path().rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Credentials {
    fn of(url: &Url) -> Option<Self> {
        let decode = |text: &str| percent_decode(text).unwrap_or_else(|_| text.to_owned());
        let password = url.password().map(decode);
        (!url.username().is_empty() || password.is_some()).then(|| Self {
            user: decode(url.username()),
            password,
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// Returns the text of a URL, well formed or not, without what may be credentials.
#[must_use]
pub fn redacted(text: &str) -> String {
    let is_url = text.contains("://")
        || text
            .get(..4)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    match (
        text.split_once(':').filter(|_| is_url),
        text.rsplit_once('@'),
    ) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => text.to_owned(),
    }
}

/// Brings percent-encodings to one form: upper-case digits, and `decoded` characters as themselves.
///
/// After a `%` that encodes nothing, nothing is decoded that the two could be read as one encoding with.
fn normalized(text: &str, decoded: impl Fn(u8) -> bool) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut bare = None;
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        normal.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(byte) = encoded_byte(rest) else {
            bare = Some(normal.len());
            normal.push('%');
            rest = &rest[1..];
            continue;
        };
        let is_after_bare = bare.is_some_and(|bare| normal.len() - bare <= 2);
        if decoded(byte) && !is_after_bare {
            normal.push(char::from(byte));
        } else {
            normal.push_str(&rest[..3].to_ascii_uppercase());
        }
        rest = &rest[3..];
    }
    normal + rest
}

fn encoded_byte(text: &str) -> Option<u8> {
    let digits = text.get(1..3)?;
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hexadecimal
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        HttpUrl::parse(text)
            .unwrap_or_else(|error| panic!("{text:?}: {error}"))
            .0
            .to_string()
    }

    #[test]
    fn url_has_one_form() {
        let table = [
            ("http://example.com", "http://example.com/"),
            ("HTTP://EXAMPLE.com:80/A", "http://example.com/A"),
            ("https://example.com:443", "https://example.com/"),
            ("https://example.com:80", "https://example.com:80/"),
            ("https://example.com:", "https://example.com/"),
            (
                "https://Bücher.example/ü",
                "https://xn--bcher-kva.example/%C3%BC",
            ),
            ("http://h/a/./b/../c", "http://h/a/c"),
            ("http://h/a/%2e%2E/c", "http://h/c"),
            ("http://h/../..", "http://h/"),
            ("http://h/%7ejoe/%41%2f%c3%a9", "http://h/~joe/A%2F%C3%A9"),
            ("http://h/a//b/", "http://h/a//b/"),
            ("http://h/a b", "http://h/a%20b"),
            (
                "http://h/?q=%7e%c3%A9+a/b?c&=&&x",
                "http://h/?q=%7E%C3%A9+a/b?c&=&&x",
            ),
            ("http://h/a?", "http://h/a?"),
            ("http://h/a;v=1,2!$&'()*+=:@", "http://h/a;v=1,2!$&'()*+=:@"),
            ("http://h/a?q#fragment", "http://h/a?q"),
            ("http://h/100%", "http://h/100%"),
            ("http://h/%4%31", "http://h/%4%31"),
            ("http://h/%%341", "http://h/%%341"),
            ("http://user:pass@h/x", "http://h/x"),
            ("http://user@h/x", "http://h/x"),
            ("http://:pass@h/x", "http://h/x"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://[0:0::1]:8080", "http://[::1]:8080/"),
            ("http:\\\\h\\a", "http://h/a"),
        ];
        for (text, url) in table {
            assert_eq!(canonical(text), url, "{text:?}");
        }
    }

    #[test]
    fn malformed_url_is_refused_without_showing_it() {
        for text in [
            "http:",
            "http://",
            "http://u:secret@",
            "http://u:secret@h:99999/",
            "http://u:secret@a b/",
            "http://[::1",
            "ftp://u:secret@h/",
        ] {
            let reason = HttpUrl::parse(text).unwrap_err();
            assert!(!reason.contains("secret"), "{reason}");
            assert!(!redacted(text).contains("secret"));
        }
        assert_eq!(redacted("http://u:p@ss/w@h/x"), "http://…@h/x");
    }

    #[test]
    fn credentials_are_decoded_and_hidden() {
        let (_, credentials) = HttpUrl::parse("http://j%40e:p%3Aw%25@h/").unwrap();
        let credentials = credentials.unwrap();
        assert_eq!(
            (&*credentials.user, credentials.password.as_deref()),
            ("j@e", Some("p:w%"))
        );
        assert_eq!(format!("{credentials:?}"), "Credentials(…)");
    }

    proptest! {
        #[test]
        fn canonical_url_is_canonical(
            host in "[a-zA-Z0-9]{1,8}(\\.[a-z]{2,4})?",
            port in proptest::option::of(1u16..),
            rest in "(/[a-zA-Z0-9._~%é /\\\\:@!'\"<>{}|^-]{0,24})?(\\?[ -~é]{0,16})?(#[ -~]{0,8})?",
        ) {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            let Ok((url, _)) = HttpUrl::parse(&format!("hTTp://{host}{port}{rest}")) else { return Ok(()) };
            let (again, credentials) = HttpUrl::parse(url.as_str()).unwrap();
            prop_assert_eq!(&again, &url);
            prop_assert_eq!(again.as_str(), url.as_str());
            prop_assert!(credentials.is_none());
            prop_assert!(url.as_str().is_ascii() && !url.as_str().contains([' ', '#']));
        }

        #[test]
        fn percent_normalisation_is_idempotent(text in "[%0-9a-f~A]{0,16}") {
            let once = normalized(&text, |byte| byte.is_ascii_alphanumeric() || byte == b'~');
            prop_assert_eq!(&normalized(&once, |byte| byte.is_ascii_alphanumeric() || byte == b'~'), &once);
        }

        #[test]
        fn credentials_are_nowhere(password in "[a-zA-Z0-9!$%:@/\\\\é]{1,12}") {
            let marked = format!("SECRET{password}SECRET");
            let text = format!("http://USERNAME:{marked}@example.com/path");
            prop_assert!(!redacted(&text).contains("SECRET"));
            if let Ok((url, credentials)) = HttpUrl::parse(&text) {
                let shown = format!("{url} {url:?} {credentials:?}");
                // A slash ends the authority, so that what follows it is a path.
                if !marked.contains(['/', '\\']) {
                    prop_assert!(!shown.contains("SECRET") && !shown.contains("USERNAME"), "{}", shown);
                }
            }
        }
    }
}
