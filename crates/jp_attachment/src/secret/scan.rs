use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::patterns::{Check, PATTERNS};

/// A text that looks like a secret. It does not contain the secret itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The kind of secret, with its article.
    pub kind: &'static str,
    /// The line that it starts in, counted from 1.
    pub line: usize,
}

/// The scanner, which the first scan compiles for all threads.
static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);

/// Finds the first secret of each kind, in the order of the text.
///
/// Takes time proportional to the length of the text: one pass finds all possible starts of
/// secrets, and the length of a match is bounded.
pub(crate) fn scan(text: &str) -> Vec<Finding> {
    SCANNER.scan(text)
}

struct Scanner {
    /// Finds the possible starts of secrets.
    starts: AhoCorasick,
    /// The index of the pattern of each start.
    owners: Vec<usize>,
    /// The expression of each pattern, which is compiled when its start is found.
    regexes: Vec<OnceLock<Regex>>,
}

impl Scanner {
    fn new() -> Self {
        let indexed = PATTERNS.iter().enumerate();
        let (starts, owners): (Vec<&str>, Vec<usize>) = indexed
            .flat_map(|(index, pattern)| pattern.starts.iter().map(move |start| (*start, index)))
            .unzip();
        Self {
            starts: AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::DFA))
                .ascii_case_insensitive(true)
                .build(starts)
                .expect("a test builds it"),
            owners,
            regexes: PATTERNS.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the expression of a pattern, which matches only at the start of a text.
    fn regex(&self, index: usize) -> &Regex {
        self.regexes[index].get_or_init(|| {
            let anchored = format!("^(?:{})", PATTERNS[index].regex);
            Regex::new(&anchored).expect("a test compiles every pattern")
        })
    }

    fn scan(&self, text: &str) -> Vec<Finding> {
        let mut found: Vec<(usize, &'static str)> = Vec::new();
        for start in self.starts.find_overlapping_iter(text) {
            let index = self.owners[start.pattern()];
            let kind = PATTERNS[index].kind;
            let is_new = !found.iter().any(|(_, known)| *known == kind);
            if is_new && self.is_secret(index, text, start.start()) {
                found.push((start.start(), kind));
            }
        }
        found.sort_unstable();
        found
            .into_iter()
            .map(|(offset, kind)| Finding {
                kind,
                line: text[..offset].matches('\n').count() + 1,
            })
            .collect()
    }

    /// Returns whether the pattern matches at `offset`, and the match is not a placeholder.
    fn is_secret(&self, index: usize, text: &str, offset: usize) -> bool {
        let Some(rest) = text.get(offset..) else {
            return false;
        };
        match PATTERNS[index].check {
            Check::Token => is_boundary(&text.as_bytes()[..offset]) && self.is_token(index, rest),
            check => self.is_marked_secret(index, check, rest),
        }
    }

    fn is_token(&self, index: usize, rest: &str) -> bool {
        let Some(found) = self.regex(index).find(rest) else {
            return false;
        };
        let is_end = !rest
            .as_bytes()
            .get(found.end())
            .copied()
            .is_some_and(is_word);
        // A long random token may contain any word by chance.
        let token = &found.as_str()[..found.len().min(LONGEST_WORD_SEARCH)];
        // 2.5 bits: a repeated character has 0, words have about 3, random Base64 has over 4.
        is_end && !is_placeholder(token) && entropy(token) >= 2.5
    }

    fn is_marked_secret(&self, index: usize, check: Check, rest: &str) -> bool {
        let Some(groups) = self.regex(index).captures(rest) else {
            return false;
        };
        let group = |name: &str| groups.name(name).map(|found| found.as_str());
        match check {
            Check::Token | Check::Nothing => {
                group("secret").is_none_or(|secret| !is_placeholder(secret))
            }
            Check::UrlPassword => {
                group("secret").is_some_and(|secret| is_password(secret, group("user")))
            }
            Check::Value => match group("double").or(group("single")) {
                Some(quoted) => is_quoted_secret(quoted),
                None => group("bare").is_some_and(is_bare_secret),
            },
        }
    }
}

/// Returns whether a token may start after `before`: not after a letter, digit or `_`, except the
/// letter of an escaped line break or tab.
fn is_boundary(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., last] => !is_word(*last),
        [] => true,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The number of bytes of a token that are searched for placeholders. By chance a longer one may
/// spell any short word.
const LONGEST_WORD_SEARCH: usize = 64;

/// Words and signs of placeholders, in lower case.
const PLACEHOLDERS: [&str; 20] = [
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "replace",
    "your",
    "dummy",
    "fake",
    "sample",
    "redacted",
    "xxxx",
    "****",
    "....",
    "<",
    "{",
    "$(",
    "%(",
    "insert",
    "____",
];

/// Words in values that are not secrets, in lower case.
const WORDS: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "test",
    "demo",
    "mock",
    "default",
    "undefined",
];

/// Returns whether a text is a placeholder for a secret.
fn is_placeholder(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| text.contains(word)) || has_sequence(text.as_bytes())
}

/// Returns whether a text contains a sequence of six characters, such as `123456` or `abcdef`.
fn has_sequence(text: &[u8]) -> bool {
    text.windows(6).any(|six| {
        six.windows(2)
            .all(|pair| pair[0].checked_add(1) == Some(pair[1]))
    })
}

fn has_word(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// Returns whether the password of a URL may be real. `postgres:postgres@` and `user:pass…@` are
/// examples.
fn is_password(secret: &str, user: Option<&str>) -> bool {
    let is_variable =
        secret.starts_with(['$', '%']) && !secret[1..].contains(|sign| !is_name(sign));
    let is_example =
        is_placeholder(secret) || has_word(secret) || secret.to_ascii_lowercase().contains("pass");
    !is_variable && !is_example && user != Some(secret) && entropy(secret) >= 2.0
}

fn is_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}

/// Returns whether a quoted value is most likely a secret: it has characters of three kinds, or of
/// two kinds with several digits, and is not part of a name, path or template.
///
/// The numbers here and below are estimates. The tests have keys and harmless constants near them.
fn is_quoted_secret(value: &str) -> bool {
    if is_placeholder(value) || has_word(value) || is_reference(value) || entropy(value) < 2.75 {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    match CharacterKinds::in_text(value) {
        CharacterKinds {
            lower: true,
            upper: true,
            other: true,
            ..
        } => digits > 0 || has_rare(value),
        CharacterKinds {
            digit: true,
            other: true,
            upper,
            lower,
        } => digits >= 3 && (upper || lower) || has_rare(value),
        CharacterKinds {
            digit: true,
            lower: true,
            upper: true,
            ..
        } => value.len() >= 10,
        CharacterKinds { digit: true, .. } => {
            digits >= 3 && value.len() >= 12 && entropy(value) >= 3.0
        }
        _ => false,
    }
}

/// Returns whether an unquoted value is most likely a secret. In a program it is far more often a
/// name or a call, so it has to look random.
fn is_bare_secret(value: &str) -> bool {
    // 32 hexadecimal digits have 128 bits, as many keys do.
    let is_hex = value.len() >= 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let CharacterKinds {
        lower,
        upper,
        digit,
        ..
    } = CharacterKinds::in_text(value);
    let is_mixed = lower
        && upper
        && digit
        && entropy(value) >= 3.5
        && !value.contains('.')
        && is_shuffled(value);
    (is_hex || is_mixed) && !is_placeholder(value) && !has_word(value) && !is_reference(value)
}

/// Returns whether lower-case letters, upper-case letters and digits alternate as in random text.
/// There, three of five neighbours differ in kind; in names that consist of words, fewer than two
/// of five do.
fn is_shuffled(value: &str) -> bool {
    let changes = value
        .as_bytes()
        .windows(2)
        .filter(|pair| character_kind(pair[0]) != character_kind(pair[1]))
        .count();
    changes * 5 >= value.len() * 2
}

fn character_kind(byte: u8) -> (bool, bool, bool) {
    (
        byte.is_ascii_lowercase(),
        byte.is_ascii_uppercase(),
        byte.is_ascii_digit(),
    )
}

/// Returns whether a value refers to a secret: a path, a URL, a variable.
fn is_reference(value: &str) -> bool {
    value.contains("://")
        || value.starts_with(['/', '.', '$', '%', '@', '#'])
        || value.contains(['(', '\\'])
}

/// Returns whether a value has a character that names and versions don't have.
fn has_rare(value: &str) -> bool {
    value.contains(['!', '?', '^', '&', '*', '~', '+', '='])
}

/// The kinds of characters in a value.
struct CharacterKinds {
    lower: bool,
    upper: bool,
    digit: bool,
    other: bool,
}

impl CharacterKinds {
    fn in_text(value: &str) -> Self {
        let mut bytes = value.bytes();
        Self {
            lower: bytes.clone().any(|byte| byte.is_ascii_lowercase()),
            upper: bytes.clone().any(|byte| byte.is_ascii_uppercase()),
            digit: bytes.clone().any(|byte| byte.is_ascii_digit()),
            other: bytes.any(|byte| !byte.is_ascii_alphanumeric()),
        }
    }
}

/// Returns the Shannon entropy of a text, in bits per byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len() as f64;
    counts
        .into_iter()
        .filter(|count| *count > 0)
        .map(|count| f64::from(count) / length)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests;
