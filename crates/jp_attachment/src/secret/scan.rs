use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::patterns::{Check, PATTERNS};

/// What looks like a secret in a text. The secret itself is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// What it is, with its article.
    pub kind: &'static str,
    /// The line it begins in, counted from 1.
    pub line: usize,
}

/// Compiled once for all threads, and only where a scan is asked for.
static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);

/// Finds the first secret of each kind, in the order of the text.
///
/// Takes time linear in the length of the text: one pass finds where something begins as a secret does,
/// and a match from there is bounded.
pub(crate) fn scan(text: &str) -> Vec<Finding> {
    SCANNER.scan(text)
}

struct Scanner {
    /// Finds what secrets begin with.
    starts: AhoCorasick,
    /// For each such beginning, the index of its pattern.
    owners: Vec<usize>,
    /// For each pattern, once something begins as it does.
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

    /// Returns what matches the pattern with this index at the start of a text.
    fn regex(&self, index: usize) -> &Regex {
        let pattern = || format!("^(?:{})", PATTERNS[index].regex);
        self.regexes[index]
            .get_or_init(|| Regex::new(&pattern()).expect("a test compiles every pattern"))
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
        let line = |offset: usize| {
            text.as_bytes()[..offset]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1
        };
        found
            .into_iter()
            .map(|(offset, kind)| Finding {
                kind,
                line: line(offset),
            })
            .collect()
    }

    /// Returns whether there is what the pattern says at `offset`, and no placeholder for it.
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
        // By chance a long one spells any word somewhere.
        let token = &found.as_str()[..found.len().min(LONGEST_WORD_SEARCH)];
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

/// Returns whether a token may begin after `before`: after no letter, digit or `_`, but for the `n` of an
/// escaped line break.
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

/// How much of a token is searched for words, in bytes.
const LONGEST_WORD_SEARCH: usize = 64;

/// Words and signs that stand for a secret, in lower case.
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

/// Words in a value that a person chose to be no secret, in lower case.
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

/// Returns whether a text stands for a secret rather than being one.
fn is_placeholder(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| text.contains(word)) || has_sequence(text.as_bytes())
}

/// Returns whether six signs follow each other as in `123456` or `abcdef`.
fn has_sequence(text: &[u8]) -> bool {
    let follows = |pair: &[u8]| pair[0].checked_add(1) == Some(pair[1]);
    text.windows(6).any(|six| six.windows(2).all(follows))
}

fn has_word(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// Returns whether a URL's password may be one: `postgres:postgres@` and `user:pass…@` are examples.
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

/// Returns whether a quoted value is hardly anything but a secret: signs of three kinds, or of two and
/// several digits, and not the parts of a name, path or template.
fn is_quoted_secret(value: &str) -> bool {
    if is_placeholder(value) || has_word(value) || is_reference(value) || entropy(value) < 2.75 {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    match Signs::of(value) {
        Signs {
            lower: true,
            upper: true,
            other: true,
            ..
        } => digits > 0 || has_rare(value),
        Signs {
            digit: true,
            other: true,
            upper,
            lower,
        } => digits >= 3 && (upper || lower) || has_rare(value),
        Signs {
            digit: true,
            lower: true,
            upper: true,
            ..
        } => value.len() >= 10,
        Signs { digit: true, .. } => digits >= 3 && value.len() >= 12 && entropy(value) >= 3.0,
        _ => false,
    }
}

/// Returns whether a value without quotes is hardly anything but a secret: what is written in a program
/// is a name or a call far more often, so it has to be random.
fn is_bare_secret(value: &str) -> bool {
    let is_hex = value.len() >= 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Signs {
        lower,
        upper,
        digit,
        ..
    } = Signs::of(value);
    let is_mixed = lower
        && upper
        && digit
        && entropy(value) >= 3.5
        && !value.contains('.')
        && is_shuffled(value);
    (is_hex || is_mixed) && !is_placeholder(value) && !has_word(value) && !is_reference(value)
}

/// Returns whether lower-case letters, upper-case letters and digits alternate as by chance, where three of
/// five neighbours differ, rather than as words in a name: two of five do.
fn is_shuffled(value: &str) -> bool {
    let kind = |byte: u8| {
        (
            byte.is_ascii_lowercase(),
            byte.is_ascii_uppercase(),
            byte.is_ascii_digit(),
        )
    };
    let changes = value
        .as_bytes()
        .windows(2)
        .filter(|two| kind(two[0]) != kind(two[1]))
        .count();
    changes * 5 >= value.len() * 2
}

/// Returns whether a value names what it is rather than being it: a path, a URL, a variable.
fn is_reference(value: &str) -> bool {
    value.contains("://")
        || value.starts_with(['/', '.', '$', '%', '@', '#'])
        || value.contains(['(', '\\'])
}

/// Returns whether a value has a sign that names and versions do not.
fn has_rare(value: &str) -> bool {
    value.contains(['!', '?', '^', '&', '*', '~', '+', '='])
}

/// Which kinds of signs a value has.
struct Signs {
    lower: bool,
    upper: bool,
    digit: bool,
    other: bool,
}

impl Signs {
    fn of(value: &str) -> Self {
        let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
        Self {
            lower: has(u8::is_ascii_lowercase),
            upper: has(u8::is_ascii_uppercase),
            digit: has(u8::is_ascii_digit),
            other: has(|byte| !byte.is_ascii_alphanumeric()),
        }
    }
}

/// Returns the Shannon entropy of a text, in bits a byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(share)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests;
