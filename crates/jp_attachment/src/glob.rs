use std::{
    fmt,
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobMatcher};
use jp_resource::uri::{UriError, decode_hex_pair, percent_encode_segment};

/// A pattern of files below a directory.
///
/// `*` and `?` stop at `/`, `**` does not. `[a-z]` and `[!a-z]` are classes, and `{a,b}` are
/// alternatives. `\` makes the next character literal. `?` and classes match one byte of UTF-8, as
/// in `.gitignore`.
#[derive(Clone)]
pub struct Glob {
    /// The canonical directory.
    pub base: PathBuf,
    /// The pattern, relative to `base`.
    pub pattern: String,
    matcher: GlobMatcher,
}

impl Glob {
    /// Compiles `pattern`. The error is the reason why it is malformed.
    pub(crate) fn new(base: PathBuf, pattern: &str) -> Result<Self, String> {
        let mut pattern = canonicalize(pattern);
        // `dir/` means all files below the directory.
        if pattern.ends_with('/') {
            pattern.push_str("**");
        }
        let matcher = compile(&pattern)?;
        Ok(Self {
            base,
            pattern,
            matcher,
        })
    }

    /// Returns whether a path relative to the base matches.
    pub(crate) fn matches(&self, relative: &Path) -> bool {
        self.matcher.is_match(relative)
    }

    /// Returns the number of directory levels below the base that may have matches.
    pub(crate) fn depth(&self) -> usize {
        if self.pattern.contains("**") {
            usize::MAX
        } else {
            self.pattern.matches('/').count()
        }
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        (&self.base, &self.pattern) == (&other.base, &other.pattern)
    }
}

impl Eq for Glob {}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Glob")
            .field("base", &self.base)
            .field("pattern", &self.pattern)
            .finish()
    }
}

pub(crate) fn compile(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map_err(|error| error.kind().to_string())?;
    Ok(glob.compile_matcher())
}

/// Returns `pattern` in the form that storing and reading it gives: `?` is `[!/]`.
pub(crate) fn canonicalize(pattern: &str) -> String {
    decode(&encode(pattern)).unwrap_or_else(|_| pattern.to_owned())
}

/// Returns whether `pattern` has a wildcard.
pub(crate) fn has_wildcard(pattern: &str) -> bool {
    pieces(pattern)
        .any(|piece| matches!(piece, Piece::Wildcard(character) if "*?[{".contains(character)))
}

/// Returns the text that matches a pattern without wildcards.
pub(crate) fn unescape(pattern: &str) -> String {
    pieces(pattern).map(Piece::character).collect()
}

/// Returns the pattern that matches only `text`.
pub(crate) fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if is_special(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Splits `pattern` into the literal path at its start and the rest, from the first wildcard on.
///
/// A name that looks like a wildcard (`app/[slug]/*.tsx`) is literal if the path `exists`.
pub(crate) fn split(pattern: &str, exists: impl Fn(&Path) -> bool) -> (PathBuf, &str) {
    let mut base = PathBuf::from(if pattern.starts_with('/') { "/" } else { "" });
    let mut rest = pattern.trim_start_matches('/');
    while let Some((name, after)) = rest.split_once('/') {
        let literal = base.join(if has_wildcard(name) {
            name.to_owned()
        } else {
            unescape(name)
        });
        if has_wildcard(name) && !exists(&literal) {
            break;
        }
        (base, rest) = (literal, after.trim_start_matches('/'));
    }
    (base, rest)
}

/// Writes a pattern as part of a declaration: literal characters are percent-encoded, wildcards are
/// not.
///
/// `?` becomes `[!/]`, because it would start the query. The inverse of [`decode`].
pub(crate) fn encode(pattern: &str) -> String {
    let mut encoded = String::with_capacity(pattern.len());
    for piece in pieces(pattern) {
        match piece {
            Piece::Wildcard('?') => encoded.push_str("[!/]"),
            Piece::Wildcard(character) | Piece::Literal(character @ '/') => encoded.push(character),
            Piece::InClass(character) => encoded.push_str(&encode_character(character)),
            Piece::Literal(character) if is_special(character) => {
                encoded.push_str(&format!("%{:02X}", u32::from(character)));
            }
            Piece::Literal(character) => encoded.push_str(&encode_character(character)),
        }
    }
    encoded
}

/// Reads the pattern of a declaration: percent-encoded characters are literal.
pub(crate) fn decode(encoded: &str) -> Result<String, UriError> {
    let (mut pattern, mut class) = (Vec::with_capacity(encoded.len()), Class::default());
    let mut rest = encoded.as_bytes();
    while let [first, after @ ..] = rest {
        let decoded = (*first == b'%').then(|| decode_hex_pair(after)).flatten();
        let byte = decoded.unwrap_or(*first);
        rest = if decoded.is_some() {
            &after[2..]
        } else {
            after
        };
        // In a class, an encoded character is an ordinary member.
        if class.is_open {
            class.step(char::from(byte));
        } else if decoded.is_none() && byte == b'[' {
            class = Class::open();
        } else if decoded.is_some() && is_special(char::from(byte)) {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    String::from_utf8(pattern).map_err(|_| UriError::NotUtf8(encoded.to_owned()))
}

/// A character of a pattern with its meaning.
#[derive(Debug, Clone, Copy)]
enum Piece {
    Literal(char),
    Wildcard(char),
    InClass(char),
}

impl Piece {
    fn character(self) -> char {
        match self {
            Self::Literal(character) | Self::Wildcard(character) | Self::InClass(character) => {
                character
            }
        }
    }
}

/// The state within a class `[…]`. `!` negates only as its first character; `]` as the first one is
/// literal.
#[derive(Debug, Default)]
struct Class {
    is_open: bool,
    is_empty: bool,
    is_negatable: bool,
}

impl Class {
    /// Returns the state after `[`.
    fn open() -> Self {
        Self {
            is_open: true,
            is_empty: true,
            is_negatable: true,
        }
    }

    /// Reads the next character. Returns whether it closes the class.
    fn step(&mut self, character: char) -> bool {
        let negates = self.is_negatable && matches!(character, '!' | '^');
        let closes = character == ']' && !self.is_empty;
        self.is_negatable = false;
        self.is_empty &= negates;
        self.is_open = !closes;
        closes
    }
}

/// Splits a pattern into characters as globset reads it.
fn pieces(pattern: &str) -> impl Iterator<Item = Piece> {
    let (mut characters, mut class) = (pattern.chars(), Class::default());
    std::iter::from_fn(move || {
        let character = characters.next()?;
        Some(match character {
            _ if class.is_open && class.step(character) => Piece::Wildcard(character),
            _ if class.is_open => Piece::InClass(character),
            '\\' => Piece::Literal(characters.next().unwrap_or('\\')),
            '[' => {
                class = Class::open();
                Piece::Wildcard('[')
            }
            '*' | '?' | '{' | '}' | ',' => Piece::Wildcard(character),
            _ => Piece::Literal(character),
        })
    })
}

fn is_special(character: char) -> bool {
    "*?[]{},\\".contains(character)
}

/// Percent-encodes a character, except the ones that mean something in a pattern or path.
fn encode_character(character: char) -> String {
    match character {
        '[' | ']' | '/' => character.to_string(),
        _ => percent_encode_segment(character.encode_utf8(&mut [0; 4])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pattern_is_stored_with_its_literals_encoded() {
        let table = [
            ("src/**/*.rs", "src/**/*.rs"),
            ("a b/*#?.md", "a%20b/*%23[!/].md"),
            (r"\[1\]*", "%5B1%5D*"),
            ("{a,b}.rs", "%7Ba,b%7D.rs"),
            ("[a-z é].rs", "[a-z%20%C3%A9].rs"),
            ("[!]x]*", "[!]x]*"),
            (r"[\]*", "[%5C]*"),
            ("100%*", "100%25*"),
        ];
        for (pattern, encoded) in table {
            let encoded = encoded.replace("%7B", "{").replace("%7D", "}");
            assert_eq!(encode(pattern), encoded, "{pattern:?}");
            assert_eq!(
                decode(&encoded).unwrap(),
                pattern.replace('?', "[!/]"),
                "{pattern:?}"
            );
        }
    }

    #[test]
    fn base_is_the_literal_start() {
        let table = [
            ("src/**/*.rs", "src", "**/*.rs"),
            ("../x/*.rs", "../x", "*.rs"),
            ("/a//b/*", "/a/b", "*"),
            (r"a\*b/*", "a*b", "*"),
            ("*.rs", "", "*.rs"),
            ("[slug]/[a].rs", "[slug]", "[a].rs"),
            ("[sl]/[a].rs", "", "[sl]/[a].rs"),
        ];
        for (pattern, base, rest) in table {
            assert_eq!(
                split(pattern, |path| path == Path::new("[slug]")),
                (base.into(), rest),
                "{pattern:?}"
            );
        }
    }

    #[test]
    fn wildcards_stop_at_a_slash() {
        let table = [
            ("*.rs", "a.rs", true),
            ("*.rs", "b/a.rs", false),
            ("**/*.rs", "a.rs", true),
            ("**/*.rs", "b/c/a.rs", true),
            ("[!/].rs", "a.rs", true),
            ("{a,b/c}.rs", "b/c.rs", true),
            ("x/", "x/y/z", true),
            (".*", ".env", true),
            ("*", ".env", true),
        ];
        for (pattern, path, matches) in table {
            let glob = Glob::new(PathBuf::new(), pattern).unwrap();
            assert_eq!(
                glob.matches(Path::new(path)),
                matches,
                "{pattern:?} {path:?}"
            );
        }
        assert_eq!(
            Glob::new(PathBuf::new(), "[a").unwrap_err(),
            "unclosed character class; missing ']'"
        );
    }

    proptest! {
        #[test]
        fn escaped_text_matches_itself_alone(text in "[a-z*?\\[\\]{}\\\\,!é %#-]{1,12}") {
            let pattern = escape(&text);
            prop_assert!(!has_wildcard(&pattern));
            prop_assert_eq!(unescape(&pattern), text.clone());
            prop_assert!(compile(&pattern).unwrap().is_match(&text));
            prop_assert_eq!(decode(&encode(&pattern)).unwrap(), pattern);
        }

        #[test]
        fn stored_pattern_matches_the_same(pattern in "[ab*?/{},\\[\\]!-]{1,8}", path in "[ab/]{1,6}") {
            if let Ok(matcher) = compile(&pattern) {
                let stored = decode(&encode(&pattern)).unwrap();
                let again = compile(&stored);
                prop_assert!(again.is_ok(), "{:?} became {:?}", pattern, stored);
                prop_assert_eq!(again.unwrap().is_match(&path), matcher.is_match(&path), "{:?} {:?}", pattern, stored);
            }
        }

        #[test]
        fn decoding_never_panics(encoded: String) {
            let _ = decode(&encoded);
        }
    }
}
