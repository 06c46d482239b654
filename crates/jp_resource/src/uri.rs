//! Canonical `file:` and `external:` URIs.
//!
//! All functions are pure. The caller resolves links, the current directory and the [`true_case`]
//! of a path, and then asks for its [`file_uri`]. [`canonical_file_uri`] canonicalises a URI from
//! another source. Equal files have equal URIs, byte for byte. [`external_uri`] returns the URI of
//! a file outside the workspace, which does not contain its directory.
//!
//! The rules of Unix and of Windows work on every platform; [`PathStyle`] chooses between them.
//!
//! ```
//! use jp_resource::uri::{PathStyle, canonical_file_uri, file_path, file_uri};
//!
//! let uri = file_uri("/project/a b/../src/main.rs", PathStyle::Unix)?;
//! assert_eq!(uri, "file:///project/src/main.rs");
//! assert_eq!(canonical_file_uri("FILE://localhost/project/%73rc/./main.rs", PathStyle::Unix)?, uri);
//! assert_eq!(file_path(&uri, PathStyle::Unix)?, "/project/src/main.rs");
//! # Ok::<(), jp_resource::uri::UriError>(())
//! ```

mod case;
mod external;
mod file;
mod percent;

pub use case::true_case;
pub use external::{external_name, external_uri, is_external};
pub use file::{canonical_file_uri, file_path, file_uri};
pub use percent::{
    decode_hex_pair, encode_argument, encode_path, encode_program, ends_with_name, percent_decode,
    percent_encode_segment,
};

/// The platform whose rules a path follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathStyle {
    /// `/` separates; every other character is part of a name.
    Unix,
    /// `/` and `\` separate; a path starts with a drive (`C:\`) or a server (`\\server\share`).
    Windows,
}

/// An error of converting a path to a URI or back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// The scheme is not `file`.
    #[error("{0:?} is not a file: URI")]
    NotFile(String),
    /// The path does not start at a root: `/`, a drive, a server.
    #[error("{0:?} does not name an absolute path")]
    Relative(String),
    /// The file is on another machine, which Unix paths can't express.
    #[error("{uri:?} names a file on another machine, {host:?}")]
    RemoteHost {
        /// The URI.
        uri: String,
        /// The machine it names.
        host: String,
    },
    /// The path names a device (`\\.\COM1`), not a file.
    #[error("{0:?} names a Windows device, not a file")]
    Device(String),
    /// A name contains an encoded separator (`%2F`), which no file's name can.
    #[error("{0:?} has an encoded path separator inside a file name")]
    EncodedSeparator(String),
    /// A path or a decoded URI contains a NUL, which no file's name can.
    #[error("{0:?} has a NUL in it")]
    Nul(String),
    /// The percent-encoded bytes are not UTF-8.
    #[error("{0:?} does not decode to UTF-8")]
    NotUtf8(String),
}

impl PathStyle {
    /// Returns the style of the platform that jp was compiled for.
    #[must_use]
    pub const fn native() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else {
            Self::Unix
        }
    }

    fn separators(self) -> &'static [char] {
        match self {
            Self::Unix => &['/'],
            Self::Windows => &['/', '\\'],
        }
    }
}

/// Splits a URI at its first `#` (RFC 3986 §3.5) into the URI of the resource and the fragment.
#[must_use]
pub fn split_fragment(uri: &str) -> (&str, Option<&str>) {
    match uri.split_once('#') {
        Some((resource, fragment)) => (resource, Some(fragment)),
        None => (uri, None),
    }
}

/// Splits `mcp+SERVER+URI`, the URI of a resource of an MCP server, into the server and its URI.
///
/// The case of `mcp` does not matter, and the server's name has no `+`. The server's URI is not
/// checked; it is empty if it is missing.
#[must_use]
pub fn split_mcp(text: &str) -> Option<(&str, &str)> {
    const PREFIX: &str = "mcp+";
    let (prefix, rest) = text.split_at_checked(PREFIX.len())?;
    prefix
        .eq_ignore_ascii_case(PREFIX)
        .then(|| rest.split_once('+').unwrap_or((rest, "")))
}

/// Removes `scheme` and its colon from `uri`. Case does not matter (RFC 3986 §3.1).
fn strip_scheme<'a>(uri: &'a str, scheme: &str) -> Option<&'a str> {
    let (found, rest) = uri.split_once(':')?;
    found.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Removes the prefix with which a Windows path bypasses the Win32 parser: `\\?\C:\x` becomes
/// `C:\x`, `\\?\UNC\server\share` becomes `\\server\share`.
fn strip_verbatim(path: &str) -> std::borrow::Cow<'_, str> {
    let Some(rest) = path.strip_prefix(r"\\?\") else {
        return path.into();
    };
    match rest.split_at_checked(4) {
        Some((unc, share)) if unc.eq_ignore_ascii_case(r"UNC\") => format!(r"\\{share}").into(),
        _ => rest.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_uri_is_split_at_the_second_plus() {
        let cases = [
            (
                "mcp+docs+git+https://h/+",
                Some(("docs", "git+https://h/+")),
            ),
            ("MCP+docs+note:x", Some(("docs", "note:x"))),
            ("mcp+docs", Some(("docs", ""))),
            ("mcp++note:x", Some(("", "note:x"))),
            ("mcp:docs", None),
            ("mc", None),
            ("ééé", None),
        ];
        for (text, split) in cases {
            assert_eq!(split_mcp(text), split, "{text}");
        }
    }

    #[test]
    fn fragment_starts_at_the_first_number_sign() {
        assert_eq!(
            split_fragment("file:///a#L10-200"),
            ("file:///a", Some("L10-200"))
        );
        assert_eq!(
            split_fragment("file:///a?q#x#y"),
            ("file:///a?q", Some("x#y"))
        );
        assert_eq!(split_fragment("file:///a#"), ("file:///a", Some("")));
        assert_eq!(split_fragment("file:///a%23b"), ("file:///a%23b", None));
    }

    #[test]
    fn native_style_is_the_platforms() {
        const NATIVE: PathStyle = PathStyle::native();
        assert_eq!(NATIVE == PathStyle::Windows, cfg!(windows));
    }
}
