//! A command line for the user to read.

use crate::excerpt;

/// The number of characters of a word in a title.
const SHOWN: usize = 80;

/// Joins the words of a command as a shell would read them, on one line.
pub(super) fn join_words(words: &[String]) -> String {
    words
        .iter()
        .map(|word| quote(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Like [`join_words`], with the middle of long words left out; `None` where none is long.
pub(super) fn short_line(words: &[String]) -> Option<String> {
    if words.iter().all(|word| word.chars().count() <= SHOWN) {
        return None;
    }
    Some(join_words(
        &words
            .iter()
            .map(|word| excerpt::ends(word, SHOWN))
            .collect::<Vec<_>>(),
    ))
}

/// Quotes a word if a shell needs it, and escapes characters that are invisible or control a
/// terminal.
fn quote(word: &str) -> String {
    match shlex::try_quote(word) {
        Ok(quoted) if !word.contains(is_hidden) => quoted.into_owned(),
        // The form of bash and ksh for words with escapes.
        _ => format!("$'{}'", word.chars().map(escape).collect::<String>()),
    }
}

/// Returns whether a character is invisible or changes the order or look of others on a terminal.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn escape(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\\' | '\'' => format!("\\{c}"),
        c if is_hidden(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let plain = words(&["grep", "-n", "a b", "$(id)", "it's", "", "src/*.rs"]);
        insta::assert_snapshot!(join_words(&plain), @r#"grep -n 'a b' '$(id)' "it's" '' 'src/*.rs'"#);
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let hidden = words(&["a\nb\t'c'", "\x1b[2J", "x\u{202e}y", "\0"]);
        insta::assert_snapshot!(join_words(&hidden), @r"$'a\nb\t\'c\'' $'\u001b[2J' $'x\u202ey' $'\u0000'");
    }

    #[test]
    fn long_words_lose_their_middle() {
        assert_eq!(short_line(&words(&["a", &"x".repeat(80)])), None);
        let long = format!("{}{}", "é".repeat(100), "z".repeat(100));
        let expected = format!("a '{}…{}'", "é".repeat(53), "z".repeat(26));
        assert_eq!(short_line(&words(&["a", &long])), Some(expected));
    }
}
