use super::percent::{canonical_host, canonical_segment, encode_host};
use super::{
    PathStyle, UriError, percent_decode, percent_encode_segment, strip_scheme, strip_verbatim,
};

/// The parts of a canonical file URI.
struct Location {
    style: PathStyle,
    /// The encoded name of the machine; empty for this one.
    host: String,
    /// The encoded names from the root on. None is empty, `.` or `..`. With [`PathStyle::Windows`]
    /// the first is a drive (`C:`) or, if there is a host, a share.
    segments: Vec<String>,
}

/// Returns the canonical URI of an absolute path (RFC 8089 §2).
///
/// `.`, `..`, duplicate and trailing slashes are removed, and names are encoded with
/// [`percent_encode_segment`](super::percent_encode_segment). The caller has resolved links. With
/// [`PathStyle::Windows`] the drive letter becomes upper-case, a server's name becomes lower-case,
/// and `\\?\` is removed: `\\server\share\x` is `file://server/share/x` (RFC 8089 §E.3.1).
///
/// # Errors
///
/// A relative path, NUL, and devices of Windows.
pub fn file_uri(path: &str, style: PathStyle) -> Result<String, UriError> {
    if path.contains('\0') {
        return Err(UriError::Nul(path.to_owned()));
    }
    let location = match style {
        PathStyle::Unix => Location::from_unix_path(path),
        PathStyle::Windows => Location::from_windows_path(path),
    };
    location.map(|location| location.to_uri())
}

/// Returns the path of a file URI, without query and fragment. The inverse of [`file_uri`].
///
/// The path is normalised even if the URI is not canonical.
///
/// # Errors
///
/// An encoded separator or NUL in a name, bytes that are not UTF-8, another machine (which only
/// [`PathStyle::Windows`] can express), and on Windows a URI without a drive or server.
pub fn file_path(uri: &str, style: PathStyle) -> Result<String, UriError> {
    let (location, _) = Location::from_uri(uri, style)?;
    match style {
        PathStyle::Unix => location.to_unix_path(uri),
        PathStyle::Windows => location.to_windows_path(uri),
    }
}

/// Canonicalises a file URI from another source (RFC 3986 §6.2.2, RFC 8089 §2 and Appendix E).
///
/// `file:/p`, `file:///p` and `FILE://localhost/p` are equal. Unnecessary percent-encodings are
/// decoded, missing ones are added, and a `%` that encodes nothing becomes `%25`. `.` and `..`,
/// also encoded ones, duplicate and trailing slashes are removed. An encoded slash stays encoded,
/// because it is no separator. Query and fragment are kept byte for byte. The function is
/// idempotent, and its result equals the [`file_uri`] of the path.
///
/// The path need not be valid: `file://elsewhere/x` has a canonical form on Unix, too.
///
/// # Errors
///
/// Another scheme, and a relative path.
pub fn canonical_file_uri(uri: &str, style: PathStyle) -> Result<String, UriError> {
    let (location, suffix) = Location::from_uri(uri, style)?;
    Ok(location.to_uri() + suffix)
}

impl Location {
    fn from_unix_path(path: &str) -> Result<Self, UriError> {
        if !path.starts_with('/') {
            return Err(UriError::Relative(path.to_owned()));
        }
        Ok(Self::new(
            String::new(),
            path.split('/').map(percent_encode_segment),
            PathStyle::Unix,
        ))
    }

    fn from_windows_path(path: &str) -> Result<Self, UriError> {
        let style = PathStyle::Windows;
        let relative = || UriError::Relative(path.to_owned());
        let stripped = strip_verbatim(path);
        let Some(share) = strip_two_separators(&stripped, style) else {
            // A path without a server needs a drive. `C:a` has one, but is relative to the
            // directory of that drive.
            let (drive, _) = stripped
                .split_once(style.separators())
                .ok_or_else(relative)?;
            if !drive.ends_with(':') || drive_letter(drive).is_none() {
                return Err(relative());
            }
            let segments = stripped
                .split(style.separators())
                .map(percent_encode_segment);
            return Ok(Self::new(String::new(), segments, style));
        };
        let mut names = share
            .split(style.separators())
            .filter(|name| !name.is_empty());
        let host = names.next().ok_or_else(relative)?;
        // `\\.\COM1` is a device: reading it could block for ever.
        if is_device(host) {
            return Err(UriError::Device(path.to_owned()));
        }
        Ok(Self::new(
            encode_host(host.bytes()),
            names.map(percent_encode_segment),
            style,
        ))
    }

    /// Splits a URI into its location, and its query and fragment without changes.
    fn from_uri(uri: &str, style: PathStyle) -> Result<(Self, &str), UriError> {
        let rest = strip_scheme(uri, "file").ok_or_else(|| UriError::NotFile(uri.to_owned()))?;
        // Before the path is split, because query and fragment may contain slashes and dots.
        let (rest, suffix) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (host, path) = split_host(rest, style);
        if !path.starts_with(style.separators()) && !starts_with_drive(&host, path, style) {
            return Err(UriError::Relative(uri.to_owned()));
        }
        let segments = path.split(style.separators()).map(canonical_segment);
        Ok((Self::new(host, segments, style), suffix))
    }

    /// Creates a location from encoded parts, and removes dot segments (RFC 3986 §5.2.4).
    fn new(host: String, segments: impl Iterator<Item = String>, style: PathStyle) -> Self {
        let mut location = Self {
            style,
            host,
            segments: Vec::new(),
        };
        // Before the segments: `..` must not climb above a drive that came as the host.
        location.turn_host_into_drive();
        for segment in segments {
            match segment.as_str() {
                "" | "." => {}
                ".." => location.ascend(),
                _ => location.segments.push(segment),
            }
        }
        // After the segments: only they tell whether `localhost` serves a share.
        location.forget_localhost();
        if let Some(letter) = location.drive() {
            location.segments[0] = format!("{letter}:");
        }
        location
    }

    /// Reads `file://c:/x`, a common mistake, the way browsers do.
    fn turn_host_into_drive(&mut self) {
        if self.style == PathStyle::Windows && drive_letter(&self.host).is_some() {
            self.segments
                .push(std::mem::take(&mut self.host).replace("%3A", ":"));
        }
    }

    /// Goes one directory up, stopping at the root: on Windows that is the drive or the share.
    fn ascend(&mut self) {
        let has_share = self.style == PathStyle::Windows && !self.host.is_empty();
        let root = usize::from(has_share || self.drive().is_some());
        if self.segments.len() > root {
            self.segments.pop();
        }
    }

    /// Removes the host `localhost`, unless it serves a Windows share.
    fn forget_localhost(&mut self) {
        if self.host != "localhost" {
            return;
        }
        // `drive` needs an empty host, so remove it first.
        let host = std::mem::take(&mut self.host);
        if self.style == PathStyle::Windows && self.drive().is_none() {
            self.host = host;
        }
    }

    /// Returns the letter of the drive that the path starts with, in upper case.
    fn drive(&self) -> Option<char> {
        let is_local = self.style == PathStyle::Windows && self.host.is_empty();
        self.segments
            .first()
            .filter(|_| is_local)
            .and_then(|first| drive_letter(first))
    }

    fn to_uri(&self) -> String {
        // `file:///C:` would be the current directory of the drive, `file:///C:/` is its root.
        let root_slash = if self.drive().is_some() && self.segments.len() == 1 {
            "/"
        } else {
            ""
        };
        format!(
            "file://{}/{}{root_slash}",
            self.host,
            self.segments.join("/")
        )
    }

    fn to_unix_path(&self, uri: &str) -> Result<String, UriError> {
        if !self.host.is_empty() {
            return Err(UriError::RemoteHost {
                uri: uri.to_owned(),
                host: self.host.clone(),
            });
        }
        Ok(format!("/{}", self.names(uri)?.join("/")))
    }

    fn to_windows_path(&self, uri: &str) -> Result<String, UriError> {
        let names = self.names(uri)?;
        if self.host.is_empty() {
            let (drive, names) = match names.split_first() {
                Some((drive, names)) if self.drive().is_some() => (drive, names),
                _ => return Err(UriError::Relative(uri.to_owned())),
            };
            return Ok(format!(r"{drive}\{}", names.join(r"\")));
        }
        let host = decode_name(&self.host, uri, self.style)?;
        if is_device(&host) {
            return Err(UriError::Device(uri.to_owned()));
        }
        Ok(format!(r"\\{host}\{}", names.join(r"\")))
    }

    fn names(&self, uri: &str) -> Result<Vec<String>, UriError> {
        self.segments
            .iter()
            .map(|segment| decode_name(segment, uri, self.style))
            .collect()
    }
}

/// Splits the text after `file:` into a canonical host and a path (RFC 8089 §2).
fn split_host(rest: &str, style: PathStyle) -> (String, &str) {
    let Some(authority) = strip_two_separators(rest, style) else {
        return (String::new(), rest);
    };
    let (host, path) = split_name(authority, style);
    let host = canonical_host(host);
    // `file:////server/share`, with any number of slashes (RFC 8089 §E.3.2).
    if style == PathStyle::Windows
        && (host.is_empty() || host == "localhost")
        && let Some(share) = strip_two_separators(path, style)
    {
        let (server, path) = split_name(share.trim_start_matches(style.separators()), style);
        if !server.is_empty() {
            return (canonical_host(server), path);
        }
    }
    (host, path)
}

/// Splits before the first separator.
fn split_name(text: &str, style: PathStyle) -> (&str, &str) {
    text.split_at(text.find(style.separators()).unwrap_or(text.len()))
}

fn strip_two_separators(text: &str, style: PathStyle) -> Option<&str> {
    text.strip_prefix(style.separators())?
        .strip_prefix(style.separators())
}

/// Returns whether a drive is in the place of the slash: `file:c:/x` (RFC 8089 §E.2), `file://c:`.
fn starts_with_drive(host: &str, path: &str, style: PathStyle) -> bool {
    let first = if host.is_empty() {
        &canonical_segment(split_name(path, style).0)
    } else {
        host
    };
    style == PathStyle::Windows && drive_letter(first).is_some()
}

/// Returns the upper-case letter of an encoded `c:`, or of `c|`, which older software wrote (RFC
/// 8089 §E.2.2).
fn drive_letter(encoded: &str) -> Option<char> {
    let mut characters = encoded.chars();
    let letter = characters.next().filter(char::is_ascii_alphabetic)?;
    matches!(characters.as_str(), ":" | "%3A" | "%7C").then(|| letter.to_ascii_uppercase())
}

/// Returns whether a decoded server name is that of a device namespace of Windows: `\\.\`, `\\?\`.
fn is_device(host: &str) -> bool {
    matches!(host, "." | ".." | "?")
}

fn decode_name(segment: &str, uri: &str, style: PathStyle) -> Result<String, UriError> {
    let name = percent_decode(segment).map_err(|_| UriError::NotUtf8(uri.to_owned()))?;
    // A decoded separator would split the name and lead to another file.
    if name.contains(style.separators()) {
        return Err(UriError::EncodedSeparator(uri.to_owned()));
    }
    if name.contains('\0') {
        return Err(UriError::Nul(uri.to_owned()));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        PathStyle::{Unix, Windows},
        *,
    };

    const STYLES: [PathStyle; 2] = [Unix, Windows];

    #[test]
    fn unix_path_has_one_uri() {
        let table = [
            ("/", "file:///"),
            ("//", "file:///"),
            ("/..", "file:///"),
            ("/../../a", "file:///a"),
            ("/a/", "file:///a"),
            ("//a///b//", "file:///a/b"),
            ("/a/./b/../c/.", "file:///a/c"),
            (
                "/project/./src/../src/main.rs",
                "file:///project/src/main.rs",
            ),
            ("/a b", "file:///a%20b"),
            ("/a#1?x", "file:///a%231%3Fx"),
            ("/100%", "file:///100%25"),
            ("/%41", "file:///%2541"),
            ("/%2e%2e/a", "file:///%252e%252e/a"),
            ("/it's \"quoted\"", "file:///it's%20%22quoted%22"),
            ("/[id]/{x}|<y>", "file:///%5Bid%5D/%7Bx%7D%7C%3Cy%3E"),
            ("/🦀.rs", "file:///%F0%9F%A6%80.rs"),
            ("/a\nb", "file:///a%0Ab"),
            ("/\u{e9}", "file:///%C3%A9"),
            ("/e\u{301}", "file:///e%CC%81"),
            ("/a./b.../c ", "file:///a./b.../c%20"),
            (r"/a\b", "file:///a%5Cb"),
            (r"/..\a", "file:///..%5Ca"),
            ("/c:/x", "file:///c:/x"),
            ("/localhost/x", "file:///localhost/x"),
        ];
        for (path, uri) in table {
            assert_eq!(file_uri(path, Unix).as_deref(), Ok(uri), "{path:?}");
        }
    }

    #[test]
    fn windows_path_has_one_uri() {
        let table = [
            (r"C:\", "file:///C:/"),
            ("C:/", "file:///C:/"),
            (r"c:\Users\jean", "file:///C:/Users/jean"),
            (r"C:/a\b//c\\d\", "file:///C:/a/b/c/d"),
            (r"C:\..\..\a", "file:///C:/a"),
            (r"C:\a\..\..\b\.", "file:///C:/b"),
            (r"\\?\C:\a b", "file:///C:/a%20b"),
            (r"\\?\c:\", "file:///C:/"),
            (r"\\?\UNC\Server\Share\x", "file://server/Share/x"),
            (r"\\?\unc\server\share", "file://server/share"),
            (r"\\Server\share\x\", "file://server/share/x"),
            ("//server/share/x", "file://server/share/x"),
            (r"\\server\share\..\..\x", "file://server/share/x"),
            (r"\\server", "file://server/"),
            (r"\\localhost\share\x", "file://localhost/share/x"),
            (
                r"\\server@ssl\DavWWWRoot\x",
                "file://server%40ssl/DavWWWRoot/x",
            ),
            (r"C:\a.txt.\b ", "file:///C:/a.txt./b%20"),
            (r"C:\a:stream", "file:///C:/a:stream"),
        ];
        for (path, uri) in table {
            assert_eq!(file_uri(path, Windows).as_deref(), Ok(uri), "{path:?}");
        }
    }

    #[test]
    fn path_without_a_root_has_no_uri() {
        for path in ["", ".", "a", "a/b", "./a", "../a", "~/a", r"\a", r"C:\a"] {
            assert_eq!(
                file_uri(path, Unix),
                Err(UriError::Relative(path.into())),
                "{path:?}"
            );
        }
        for path in [
            "",
            "a",
            r"a\b",
            r"\a",
            "/a",
            "C:",
            "C:a",
            r"C|\a",
            "C%3A/a",
            r"é:\a",
            r"\\",
            r"\\?\Volume{1}\a",
        ] {
            assert_eq!(
                file_uri(path, Windows),
                Err(UriError::Relative(path.into())),
                "{path:?}"
            );
        }
        for path in [r"\\.\COM1", "//?/C:/a", r"\\..\a"] {
            assert_eq!(
                file_uri(path, Windows),
                Err(UriError::Device(path.into())),
                "{path:?}"
            );
        }
        assert_eq!(file_uri("/a\0", Unix), Err(UriError::Nul("/a\0".into())));
    }

    #[test]
    fn foreign_uri_becomes_canonical() {
        let table = [
            ("file:/p", "file:///p"),
            ("file:///p", "file:///p"),
            ("file://localhost/p", "file:///p"),
            ("FILE://LocalHost/p", "file:///p"),
            ("file://%6cocalhost/p", "file:///p"),
            ("file:///", "file:///"),
            ("file:/", "file:///"),
            ("file:////a//b/", "file:///a/b"),
            (
                "file:///project/./src/../src/main.rs",
                "file:///project/src/main.rs",
            ),
            ("file:///a/%2e/b/%2E%2e/c", "file:///a/c"),
            ("file:///a/.%2E/.%2e/b", "file:///b"),
            ("file:///%7euser/%41%2d", "file:///~user/A-"),
            ("file:///%c3%a9", "file:///%C3%A9"),
            ("file:///é/a b/\"", "file:///%C3%A9/a%20b/%22"),
            ("file:///e\u{301}", "file:///e%CC%81"),
            ("file:///a%2fb%2F..", "file:///a%2Fb%2F.."),
            ("file:///100%", "file:///100%25"),
            ("file:///%4/%zz/%%41", "file:///%254/%25zz/%25A"),
            ("file:///%2541", "file:///%2541"),
            ("file:///%2%35", "file:///%2525"),
            ("file:///a%23b%3Fc", "file:///a%23b%3Fc"),
            ("file:///a%00%ff", "file:///a%00%FF"),
            ("file:///a/#L10-200", "file:///a#L10-200"),
            ("file:///a?x=%7e/../#%7e/..", "file:///a?x=%7e/../#%7e/.."),
            ("file:///a#x?y", "file:///a#x?y"),
            ("file://Elsewhere/x", "file://elsewhere/x"),
            (r"file:///a\b", "file:///a%5Cb"),
            ("file:///c:/x", "file:///c:/x"),
        ];
        for (uri, canonical) in table {
            assert_eq!(
                canonical_file_uri(uri, Unix).as_deref(),
                Ok(canonical),
                "{uri:?}"
            );
        }
    }

    #[test]
    fn foreign_windows_uri_becomes_canonical() {
        let table = [
            ("file:///c:/x", "file:///C:/x"),
            ("file:/c:/x", "file:///C:/x"),
            ("file:c:/x", "file:///C:/x"),
            ("file://c:/x", "file:///C:/x"),
            ("file://localhost/c:/x", "file:///C:/x"),
            ("file:///c%3A/x", "file:///C:/x"),
            ("file:///c|/x", "file:///C:/x"),
            (r"file:///c:\x\..\y", "file:///C:/y"),
            ("file:///a/../c:/x", "file:///C:/x"),
            ("file:///c:", "file:///C:/"),
            ("file:///c:/..", "file:///C:/"),
            ("file:///c:/#L1", "file:///C:/#L1"),
            ("file://Server/Share/x/", "file://server/Share/x"),
            ("file://server/share/../..", "file://server/share"),
            ("file:////server/share/x", "file://server/share/x"),
            ("file://///server/share/x", "file://server/share/x"),
            (r"file:\\server\share", "file://server/share"),
            ("file://localhost/share/x", "file://localhost/share/x"),
            ("file:////c:/x", "file:///C:/x"),
            ("file:///home/x", "file:///home/x"),
            ("file:///c:/a%5cb", "file:///C:/a%5Cb"),
        ];
        for (uri, canonical) in table {
            assert_eq!(
                canonical_file_uri(uri, Windows).as_deref(),
                Ok(canonical),
                "{uri:?}"
            );
        }
    }

    #[test]
    fn only_absolute_file_uris_are_canonicalised() {
        for style in STYLES {
            for uri in [
                "",
                "/a",
                "a",
                "http://a/b",
                "files:///a",
                "file",
                r"C:\a",
                "#file:///a",
            ] {
                assert_eq!(
                    canonical_file_uri(uri, style),
                    Err(UriError::NotFile(uri.into())),
                    "{uri:?}"
                );
            }
            for uri in [
                "file:",
                "file:a",
                "file:#a",
                "file:../a",
                "file://",
                "file://localhost",
                "file://docs?x",
            ] {
                assert_eq!(
                    canonical_file_uri(uri, style),
                    Err(UriError::Relative(uri.into())),
                    "{uri:?}"
                );
            }
        }
        assert_eq!(
            canonical_file_uri("file:c:/x", Unix),
            Err(UriError::Relative("file:c:/x".into()))
        );
    }

    #[test]
    fn uri_names_a_path() {
        let table = [
            (Unix, "file:///", "/"),
            (Unix, "file:///a%20b/%2541?q#f", "/a b/%41"),
            (Unix, "file://localhost/a/%2e%2e/b/", "/b"),
            (Unix, "file:///a%5Cb", r"/a\b"),
            (Unix, "file:///%F0%9F%A6%80%0A", "/🦀\n"),
            (Windows, "file:///c:/", r"C:\"),
            (Windows, "file:///C:/a%20b/c", r"C:\a b\c"),
            (Windows, "file://server/share/x", r"\\server\share\x"),
            (Windows, "file://server/", r"\\server\"),
            (Windows, "file://server%40ssl/x", r"\\server@ssl\x"),
        ];
        for (style, uri, path) in table {
            assert_eq!(file_path(uri, style).as_deref(), Ok(path), "{uri:?}");
        }
    }

    #[test]
    fn uri_that_names_no_path_is_refused() {
        type Refusal = fn(String) -> UriError;
        let table: [(PathStyle, &str, Refusal); 13] = [
            (Unix, "http://a/b", UriError::NotFile),
            (Unix, "file:a", UriError::Relative),
            (Unix, "file:///a%2Fb", UriError::EncodedSeparator),
            (Unix, "file:///..%2fetc/passwd", UriError::EncodedSeparator),
            (Unix, "file:///a%00", UriError::Nul),
            (Unix, "file:///a%FF", UriError::NotUtf8),
            (Windows, "file:///C:/a%2Fb", UriError::EncodedSeparator),
            (Windows, "file:///C:/..%5Cb", UriError::EncodedSeparator),
            (Windows, "file://a%5Cb/c", UriError::EncodedSeparator),
            (Windows, "file://./pipe/x", UriError::Device),
            (Windows, "file://%3F/C:/x", UriError::Device),
            (Windows, "file:////%2e/COM1", UriError::Device),
            (Windows, "file:///home/x", UriError::Relative),
        ];
        for (style, uri, refusal) in table {
            assert_eq!(file_path(uri, style), Err(refusal(uri.into())), "{uri:?}");
        }
        let uri = "file://Elsewhere/x".to_owned();
        assert_eq!(
            file_path(&uri, Unix),
            Err(UriError::RemoteHost {
                uri,
                host: "elsewhere".into()
            })
        );
    }

    #[test]
    fn very_long_path_survives() {
        let path = "/é".repeat(50_000);
        let uri = file_uri(&path, Unix).unwrap();
        assert_eq!(file_path(&uri, Unix), Ok(path));
    }

    /// Text with many characters that have a meaning in paths and URIs.
    fn dense() -> impl Strategy<Value = String> {
        prop_oneof![
            "[/\\\\.%:|?#cC2eEfF5é ]{0,24}",
            "(/|\\\\|\\.|\\.\\.|%2[eEfF]|%5[cC]|%3A|%00|c|C|:|localhost|unc|é|\\?){0,12}",
            ".*",
        ]
    }

    fn path() -> impl Strategy<Value = String> {
        (
            "(/|//|[cC]:/|\\\\\\\\|\\\\\\\\\\?\\\\|\\\\\\\\\\?\\\\UNC\\\\|[cC]:\\\\)?",
            dense(),
        )
            .prop_map(|(root, rest)| root + &rest)
    }

    fn uri() -> impl Strategy<Value = String> {
        (
            "((file|FILE):/{0,5}(localhost|[cC](:|\\||%3[aA]))?/{0,2})?",
            dense(),
        )
            .prop_map(|(start, rest)| start + &rest)
    }

    fn normalise(path: &str) -> String {
        let mut names = Vec::new();
        for name in path.split('/').filter(|name| !["", "."].contains(name)) {
            if name == ".." {
                names.pop();
            } else {
                names.push(name);
            }
        }
        format!("/{}", names.join("/"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn unix_path_comes_back_normalised(rest in dense()) {
            let path = format!("/{}", rest.replace('\0', ""));
            let uri = file_uri(&path, Unix).unwrap();
            prop_assert_eq!(file_path(&uri, Unix), Ok(normalise(&path)));
        }

        #[test]
        fn path_reads_back_from_its_uri(path in path()) {
            for style in STYLES {
                if let Ok(uri) = file_uri(&path, style) {
                    prop_assert_eq!(canonical_file_uri(&uri, style), Ok(uri.clone()));
                    let normalised = file_path(&uri, style);
                    prop_assert!(normalised.is_ok(), "{} gives {:?}", uri, normalised);
                    prop_assert_eq!(file_uri(&normalised.unwrap(), style), Ok(uri));
                }
            }
        }

        #[test]
        fn canonical_uri_is_stable(uri in uri()) {
            for style in STYLES {
                let path = file_path(&uri, style);
                if let Ok(canonical) = canonical_file_uri(&uri, style) {
                    prop_assert_eq!(canonical_file_uri(&canonical, style), Ok(canonical.clone()));
                    prop_assert_eq!(file_path(&canonical, style).ok(), path.clone().ok());
                    let resource = canonical.split(['?', '#']).next().unwrap_or_default();
                    if let Ok(path) = path {
                        prop_assert_eq!(file_uri(&path, style), Ok(resource.to_owned()));
                    }
                } else {
                    prop_assert!(path.is_err());
                }
            }
        }
    }
}
