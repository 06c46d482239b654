//! Makes text from servers, files and models safe to show.

/// Returns a text with the credentials of its URLs replaced by `…`.
pub fn without_credentials(text: &str) -> String {
    let mut pieces = text.split("://");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // The authority of a URL ends here (RFC 3986 §3.2), or the URL does.
        let end = piece
            .find(['/', '?', '#', '"', '\'', ' '])
            .unwrap_or(piece.len());
        let (authority, rest) = piece.split_at(end);
        let host = authority
            .rsplit_once('@')
            .map(|(_, host)| format!("…@{host}"));
        shown += &format!("://{}{rest}", host.as_deref().unwrap_or(authority));
    }
    shown
}

/// Removes characters that could steer a terminal or reverse the order of letters, except for newline
/// and tab.
pub fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !is_steering(*c) || matches!(c, '\n' | '\t'))
        .collect()
}

/// Returns whether a character is a control, or an override, embedding or isolate of Unicode's bidirectional algorithm.
pub fn is_steering(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes every character that could steer a terminal, reverse the order of letters or be invisible,
/// so that the user sees the whole text. A tab stays.
pub fn visible(text: &str) -> String {
    /// Spaces of other scripts and of typography.
    const SPACES: [char; 3] = ['\u{a0}', '\u{202f}', '\u{3000}'];
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let is_plain = matches!(character, ' '..='~' | '\t') || SPACES.contains(&character);
        if is_plain || (!character.is_ascii() && !is_blank(character) && is_seen(character)) {
            shown.push(character);
        } else {
            shown.extend(character.escape_debug());
        }
    }
    shown
}

/// Returns the first `most` characters of a text, on one line and [`visible`].
pub fn one_line(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let mut left = most;
    for character in text.chars() {
        let piece = if character == '\t' {
            " ".to_owned()
        } else {
            visible(character.encode_utf8(&mut [0; 4]))
        };
        let Some(rest) = left.checked_sub(piece.chars().count()) else {
            return shown + "…";
        };
        left = rest;
        shown += &piece;
    }
    shown
}

/// Returns whether a character is invisible although Unicode counts it as a letter, a mark or a symbol.
fn is_blank(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Returns whether a character is visible after a letter, as accents are.
fn is_seen(character: char) -> bool {
    let pair = String::from_iter(['x', character]);
    pair.escape_debug().eq(pair.chars())
}

/// Returns whether a name consists of the characters that providers accept in names of tools: a-z, A-Z, 0-9, _ and -.
pub(crate) fn has_usual_characters(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Quotes a word for a shell, if it needs quotes.
pub fn quote_word(word: &str) -> String {
    let mut characters = word.chars();
    if !word.is_empty() && characters.all(|c| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c))
    {
        return word.to_owned();
    }
    // A quote can't stand between quotes: end them, add an escaped one, and begin again.
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_shown_as_escapes() {
        assert_eq!(visible("a\tb \\ \"c\" 'd' ~"), "a\tb \\ \"c\" 'd' ~");
        assert_eq!(
            visible("\u{1b}[2J\r\n\0\u{7f}\u{9b}1m"),
            r"\u{1b}[2J\r\n\0\u{7f}\u{9b}1m"
        );
        assert_eq!(
            visible("a\u{202e}b\u{2066}c\u{200b}d\u{e0041}"),
            r"a\u{202e}b\u{2066}c\u{200b}d\u{e0041}"
        );
        assert_eq!(
            visible("\u{2028}\u{feff}\u{ad}\u{e000}"),
            r"\u{2028}\u{feff}\u{ad}\u{e000}"
        );
    }

    #[test]
    fn one_line_is_cut_at_its_shown_length() {
        assert_eq!(one_line("a\tb\nc", 10), r"a b\nc");
        assert_eq!(one_line("ab\u{1b}[1m", 6), "ab…");
        assert_eq!([one_line("abc", 3), one_line("abcd", 3)], ["abc", "abc…"]);
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in [
            "naïve “é” e\u{301} – 10 €",
            "日本語\u{3000}한국어",
            "हिन्दी",
            "שלום عربى",
            "✅ 🎉",
            "prix\u{a0}: 3",
        ] {
            assert_eq!(visible(text), text);
        }
    }
}
