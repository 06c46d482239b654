//! Detects a model's arguments that awk or sed may read as code.
//!
//! An argument may be any text, so it may be an option if it stands where one can: `-eBEGIN { … }`.
//! The rules hold for all implementations: gawk, mawk, the original awk, the seds of GNU and BSD,
//! and busybox. These know different options, so the rules refuse what only some of them read as
//! code.

use super::super::template::holds_words_of_model;

/// The kind of an option's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionKind {
    /// No value, or one in the same word: `-i.bak`, `--lint=fatal`.
    Flag,
    /// A value, in the same word or the next.
    Value,
    /// The program or its file, in the same word or the next.
    Program,
}

/// The options of a program. An option that is not among them may have a value, so nothing is known
/// of the words behind it.
struct Syntax {
    /// Letters that other letters may follow in the same word.
    flags: &'static str,
    letters: &'static [(&'static str, OptionKind)],
    names: &'static [(&'static [&'static str], OptionKind)],
}

const AWK: Syntax = Syntax {
    flags: "bcgIMNnOPrsSt",
    letters: &[
        ("dDLop", OptionKind::Flag),
        ("Filv", OptionKind::Value),
        ("eEf", OptionKind::Program),
    ],
    names: &[
        (
            &[
                "bignum",
                "characters-as-bytes",
                "csv",
                "debug",
                "dump-variables",
                "lint",
                "lint-old",
            ],
            OptionKind::Flag,
        ),
        (
            &[
                "no-optimize",
                "non-decimal-data",
                "optimize",
                "posix",
                "pretty-print",
                "profile",
            ],
            OptionKind::Flag,
        ),
        (
            &["re-interval", "sandbox", "traditional", "use-lc-numeric"],
            OptionKind::Flag,
        ),
        (
            &["assign", "field-separator", "include", "load"],
            OptionKind::Value,
        ),
        (&["exec", "file", "source"], OptionKind::Program),
    ],
};

const SED: Syntax = Syntax {
    flags: "bEnrsuz",
    letters: &[
        ("i", OptionKind::Flag),
        ("l", OptionKind::Value),
        ("ef", OptionKind::Program),
    ],
    names: &[
        (
            &[
                "binary",
                "debug",
                "follow-symlinks",
                "in-place",
                "null-data",
                "posix",
                "quiet",
            ],
            OptionKind::Flag,
        ),
        (
            &["regexp-extended", "separate", "silent", "unbuffered"],
            OptionKind::Flag,
        ),
        (&["line-length"], OptionKind::Value),
        (&["expression", "file"], OptionKind::Program),
    ],
};

impl Syntax {
    /// Reads the option that the words begin with, and returns its words and whether its value is
    /// the program.
    fn read<'w>(&self, words: &'w [String]) -> Option<(&'w [String], bool)> {
        let (kind, has_value) = self.read_word(words.first()?)?;
        let has_value = has_value || kind == OptionKind::Flag;
        let option = words.get(..if has_value { 1 } else { 2 })?;
        // An implementation that doesn't know this option's value reads it as the next option.
        let is_clear = option.get(1).is_none_or(|value| !value.starts_with('-'));
        is_clear.then_some((option, kind == OptionKind::Program))
    }

    /// Returns the kind of an option, and whether its value is in the same word.
    fn read_word(&self, word: &str) -> Option<(OptionKind, bool)> {
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next()?;
            let (_, kind) = self.names.iter().find(|(names, _)| names.contains(&name))?;
            return Some((*kind, long.contains('=')));
        }
        let rest = word
            .strip_prefix('-')?
            .trim_start_matches(|letter: char| self.flags.contains(letter));
        let Some(letter) = rest.chars().next() else {
            return Some((OptionKind::Flag, false));
        };
        let (_, kind) = self
            .letters
            .iter()
            .find(|(letters, _)| letters.contains(letter))?;
        Some((*kind, rest.len() > letter.len_utf8()))
    }
}

/// Returns the first word of awk's that may be code and holds an argument of the model's.
///
/// An argument is safe in the value of `-v NAME=…`, and behind the program. Behind a program that
/// an option names, it is only safe after `--` or another operand.
pub(super) fn find_in_awk(words: &[String]) -> Option<&str> {
    let mut rest = words;
    let mut has_program = false;
    while let Some((word, after)) = rest.split_first() {
        if word == "--" {
            rest = after;
            break;
        }
        // No awk reads options behind the first operand.
        if is_operand(word) {
            break;
        }
        let Some((option, is_program)) = AWK.read(rest) else {
            return find_argument(rest);
        };
        if let Some(argument) = find_argument(option).filter(|_| !is_assignment(option)) {
            return Some(argument);
        }
        // The original awk ignores `--file=…` and `-e…`, and takes the next operand for the
        // program.
        has_program |= is_program && (option.len() == 2 || word.starts_with("-f"));
        rest = &rest[option.len()..];
        // gawk's `-E` ends the options.
        if word == "-E" || word == "--exec" {
            break;
        }
    }
    if has_program {
        None
    } else {
        find_argument(&rest[..rest.len().min(1)])
    }
}

/// Returns the first word of sed's that may be code and holds an argument of the model's.
///
/// An argument is safe after `--`, unless it is the program, and anywhere if `--sandbox` is the
/// first word.
pub(super) fn find_in_sed(words: &[String]) -> Option<&str> {
    // GNU sed runs nothing in its sandbox, but compiles `-e` at once, so the sandbox has to come
    // first. Behind `-i`, BSD's sed takes it for a suffix.
    if words.first().is_some_and(|word| word == "--sandbox") {
        return None;
    }
    let mut rest = words;
    let mut has_program = false;
    while let Some((word, after)) = rest.split_first() {
        match word.as_str() {
            // For BSD's sed an operand before this may be the value of `-i`, so the program may
            // follow.
            "--" if has_program => return None,
            "--" => return find_argument(&after[..after.len().min(1)]),
            _ => {}
        }
        let (read, is_program) = match SED.read(rest) {
            // GNU sed reads options behind operands, too.
            _ if is_operand(word) => (&rest[..1], false),
            Some(option) => option,
            None => return find_argument(rest),
        };
        if let Some(argument) = find_argument(read) {
            return Some(argument);
        }
        has_program |= is_program;
        rest = &rest[read.len()..];
    }
    None
}

/// Returns whether a word is no option, whatever its placeholders stand for.
fn is_operand(word: &str) -> bool {
    word == "-" || !(word.starts_with('-') || word.starts_with("{{"))
}

fn find_argument(words: &[String]) -> Option<&str> {
    words
        .iter()
        .map(String::as_str)
        .find(|word| holds_words_of_model(word))
}

/// Returns whether an option gives a variable whose name is known a value.
///
/// The original awk ignores `--assign` and takes the next word for the program, so the value has to
/// be in the same word.
fn is_assignment(option: &[String]) -> bool {
    let value = match option {
        [word] => word
            .strip_prefix("-v")
            .or_else(|| word.strip_prefix("--assign=")),
        [word, value] if word == "-v" => Some(value.as_str()),
        _ => None,
    };
    let name = value
        .and_then(|value| value.split_once('='))
        .map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '_')
    })
}
