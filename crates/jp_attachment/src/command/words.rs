use std::{borrow::Cow, str::CharIndices};

/// The error of a quote that is not closed, or of a backslash at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclosed {
    /// The quote or backslash.
    pub(super) mark: char,
    /// Its offset in bytes.
    pub(super) at: usize,
}

/// Splits a text into words as a POSIX shell does (POSIX.1-2024, Shell Command Language §2.2).
///
/// Expands nothing and knows no operators: `$`, `*`, `~`, `|` and `>` are ordinary characters. So
/// is `#`, because a comment would silently cut the line off.
pub(super) fn split(text: &str) -> Result<Vec<String>, Unclosed> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = text.char_indices();
    while let Some((at, mark)) = rest.next() {
        let closed = match mark {
            ' ' | '\t' | '\n' => {
                words.extend(word.take());
                Some(())
            }
            '\'' => read_single_quoted(&mut rest, word.get_or_insert_default()),
            '"' => read_double_quoted(&mut rest, word.get_or_insert_default()),
            '\\' => match rest.next() {
                // A line continuation.
                Some((_, '\n')) => Some(()),
                escaped => escaped.map(|(_, escaped)| word.get_or_insert_default().push(escaped)),
            },
            plain => {
                word.get_or_insert_default().push(plain);
                Some(())
            }
        };
        closed.ok_or(Unclosed { mark, at })?;
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing quote. Returns `None` if there is none.
fn read_single_quoted(rest: &mut CharIndices<'_>, word: &mut String) -> Option<()> {
    loop {
        match rest.next()?.1 {
            '\'' => return Some(()),
            quoted => word.push(quoted),
        }
    }
}

/// Reads up to the closing quote, with escapes (§2.2.3). Returns `None` if there is none.
fn read_double_quoted(rest: &mut CharIndices<'_>, word: &mut String) -> Option<()> {
    loop {
        match rest.next()?.1 {
            '"' => return Some(()),
            '\\' => match rest.next()?.1 {
                '\n' => {}
                escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            quoted => word.push(quoted),
        }
    }
}

/// Joins words into a line as a user would type it into a shell. The inverse of [`split`].
pub(super) fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(quote).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> Cow<'_, str> {
    let needs_quotes = word
        .chars()
        .any(|character| !character.is_alphanumeric() && !"-_./:,=@%+".contains(character));
    if !word.is_empty() && !needs_quotes {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_split_as_in_a_shell() {
        let table: [(&str, &[&str]); 14] = [
            ("git diff --cached", &["git", "diff", "--cached"]),
            ("  git\tdiff \n", &["git", "diff"]),
            ("", &[]),
            ("''", &[""]),
            ("a '' \"\"", &["a", "", ""]),
            (r"a\ b 'c d' e'f g'h", &["a b", "c d", "ef gh"]),
            (r#""$HOME \$x \n \"q\"""#, &[r#"$HOME $x \n "q""#]),
            (r"'a\'b", &[r"a\b"]),
            ("a\\\nb \\\n c", &["ab", "c"]),
            ("\"a\\\nb\"", &["ab"]),
            ("rg #include #x", &["rg", "#include", "#x"]),
            (
                "git log | head > *.txt",
                &["git", "log", "|", "head", ">", "*.txt"],
            ),
            ("'a\nb' 🦀", &["a\nb", "🦀"]),
            (r"\'", &["'"]),
        ];
        for (text, words) in table {
            assert_eq!(split(text).unwrap(), words, "{text:?}");
        }
    }

    #[test]
    fn unclosed_quote_is_located() {
        for (text, mark, at) in [
            ("a 'b", '\'', 2),
            ("é \"b\\\"", '"', 3),
            ("a \\", '\\', 2),
            ("'a' 'b", '\'', 4),
            ("\"a\\", '"', 0),
        ] {
            assert_eq!(split(text), Err(Unclosed { mark, at }), "{text:?}");
        }
    }

    #[test]
    fn only_words_that_need_quotes_have_them() {
        let join = |words: &[&str]| join(words.iter().copied());
        assert_eq!(
            join(&["git", "log", "--format=%h", "src/é.rs"]),
            "git log --format=%h src/é.rs"
        );
        assert_eq!(join(&["sh", "-c", "echo $HOME"]), "sh -c 'echo $HOME'");
        assert_eq!(join(&["echo", "", "it's", "~"]), r"echo '' 'it'\''s' '~'");
    }

    proptest! {
        #[test]
        fn split_undoes_join(words: Vec<String>) {
            prop_assert_eq!(split(&join(words.iter().map(String::as_str))), Ok(words));
        }

        #[test]
        fn splits_as_shlex_does(text in "[ab'\"\\\\ \t$é]{0,16}") {
            prop_assert_eq!(split(&text).ok(), shlex::split(&text));
        }
    }

    #[cfg(unix)]
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn shell_splits_joined_words(words in proptest::collection::vec("[^\0]{0,12}", 0..5)) {
            let script = format!("printf '%s\\0' x {}", join(words.iter().map(String::as_str)));
            let printed = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
            let printed = String::from_utf8(printed).unwrap();
            let expected: String = ["x"].into_iter().chain(words.iter().map(String::as_str))
                .flat_map(|word| [word, "\0"]).collect();
            prop_assert_eq!(printed, expected);
        }
    }
}
