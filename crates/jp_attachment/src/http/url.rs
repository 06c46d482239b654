use std::fmt;

use jp_resource::uri::{decode_hex_pair, percent_decode, split_fragment};
use url::{Host, Url};

/// A canonical `http:` or `https:` URL, without credentials and fragment.
///
/// Scheme and host are in lower case (IDNA for names, one spelling for an address). A default port
/// and dot segments are removed, and an empty path is `/` (RFC 3986 §6.2.2, §6.2.3).
/// Percent-encodings have upper-case digits; the path encodes no unreserved character. In the query
/// only the case of digits changes. Characters that a URI can't have are percent-encoded, as
/// browsers do. There is no fragment, because servers never receive it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl(Url);

/// A name and password for one request; its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) user: String,
    pub(super) password: Option<String>,
}

impl HttpUrl {
    /// Parses a URL and separates the credentials. The error is a reason that shows nothing of the
    /// URL.
    pub(crate) fn parse(text: &str) -> Result<(Self, Option<Credentials>), String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        Self::from_url(url)
    }

    /// Resolves a reference that the server of this URL gave (RFC 3986 §5).
    pub(super) fn join(&self, reference: &str) -> Result<Self, String> {
        let url = self.0.join(reference).map_err(|error| error.to_string())?;
        Self::from_url(url).map(|(url, _)| url)
    }

    fn from_url(mut url: Url) -> Result<(Self, Option<Credentials>), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}:` is not `http:` or `https:`", url.scheme()));
        }
        let credentials = Credentials::from_url(&url);
        url.set_username("")
            .and_then(|()| url.set_password(None))
            .map_err(|()| "it has no host".to_owned())?;
        url.set_fragment(None);
        let path = normalize_percents(url.path(), |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
        });
        let query = url
            .query()
            .map(|query| format!("?{}", normalize_percents(query, |_| false)))
            .unwrap_or_default();
        let canonical = format!("{}{path}{query}", url.origin().ascii_serialization());
        Url::parse(&canonical)
            .map(|url| (Self(url), credentials))
            .map_err(|error| error.to_string())
    }

    /// Canonicalises a URL and removes its credentials. The fragment is kept byte for byte. Returns
    /// `None` if it is not an HTTP URL.
    ///
    /// Servers' resource lists may contain such URLs.
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

    /// Returns whether the server is the same. `http:` and `https:` on their default ports count as
    /// one server.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
        let (url, other) = (&self.0, &other.0);
        let has_default_ports = url.port().is_none() && other.port().is_none();
        let is_same_port = url.port_or_known_default() == other.port_or_known_default();
        url.host() == other.host() && (has_default_ports || is_same_port)
    }

    /// Returns the last segment of the path, still encoded.
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
    fn from_url(url: &Url) -> Option<Self> {
        let has_any = !url.username().is_empty() || url.password().is_some();
        has_any.then(|| Self {
            user: decode_or_keep(url.username()),
            password: url.password().map(decode_or_keep),
        })
    }
}

fn decode_or_keep(text: &str) -> String {
    percent_decode(text).unwrap_or_else(|_| text.to_owned())
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// Removes what may be credentials from the text of a URL, well formed or not.
#[must_use]
pub fn redact(text: &str) -> String {
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

/// Normalizes percent-encodings: digits are in upper case, and bytes that `is_decoded` accepts are
/// not encoded.
///
/// A `%` that encodes nothing stays. The two characters after it are not decoded: `%%341` would
/// become `%41`, which means something else.
fn normalize_percents(text: &str, is_decoded: impl Fn(u8) -> bool) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut bare = None;
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        normal.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(byte) = decode_hex_pair(&rest.as_bytes()[1..]) else {
            bare = Some(normal.len());
            normal.push('%');
            rest = &rest[1..];
            continue;
        };
        let is_after_bare = bare.is_some_and(|bare| normal.len() - bare <= 2);
        if is_decoded(byte) && !is_after_bare {
            normal.push(char::from(byte));
        } else {
            normal.push_str(&rest[..3].to_ascii_uppercase());
        }
        rest = &rest[3..];
    }
    normal + rest
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
            assert!(!redact(text).contains("secret"));
        }
        assert_eq!(redact("http://u:p@ss/w@h/x"), "http://…@h/x");
    }

    #[test]
    fn credentials_are_decoded() {
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
            let once = normalize_percents(&text, |byte| byte.is_ascii_alphanumeric() || byte == b'~');
            prop_assert_eq!(&normalize_percents(&once, |byte| byte.is_ascii_alphanumeric() || byte == b'~'), &once);
        }

        #[test]
        fn credentials_are_nowhere(password in "[a-zA-Z0-9!$%:@/\\\\é]{1,12}") {
            let marked = format!("SECRET{password}SECRET");
            let text = format!("http://USERNAME:{marked}@example.com/path");
            prop_assert!(!redact(&text).contains("SECRET"));
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
