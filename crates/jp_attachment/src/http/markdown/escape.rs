//! Escaping of text and links for Markdown.

/// The longest link target, in bytes. Longer ones are of no use to a model.
const MAX_LINK: usize = 4096;

/// Encodes the target of a link for Markdown. Returns `None` if it leads nowhere outside the page.
pub(super) fn encode_target(target: &str) -> Option<String> {
    let target = target.trim();
    let scheme = target
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    let leads_nowhere = target.is_empty()
        || target.starts_with('#')
        || target.len() > MAX_LINK
        || scheme.is_some_and(|scheme| scheme == "javascript" || scheme == "data");
    if leads_nowhere {
        return None;
    }
    let mut shown = String::with_capacity(target.len());
    for character in target.chars() {
        match character {
            ' ' => shown.push_str("%20"),
            '(' => shown.push_str("%28"),
            ')' => shown.push_str("%29"),
            '<' => shown.push_str("%3C"),
            '>' => shown.push_str("%3E"),
            '|' => shown.push_str("%7C"),
            '\\' => shown.push_str("%5C"),
            _ if character.is_ascii_control() => {}
            _ => shown.push(character),
        }
    }
    Some(shown)
}

/// Escapes characters that would be formatting (CommonMark §2.4) or, in a table, would end a cell.
pub(super) fn escape(text: &str, is_in_cell: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut is_start = true;
    while let Some(character) = characters.next() {
        let next = characters.peek();
        let is_escaped = match character {
            '\\' | '*' | '`' => true,
            // Within a word, as in `snake_case`, it is no formatting (CommonMark §6.2).
            '_' => is_start || next.is_none(),
            '<' => next
                .is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?')),
            '|' => is_in_cell,
            _ => false,
        };
        if is_escaped {
            escaped.push('\\');
        }
        escaped.push(character);
        is_start = false;
    }
    escaped
}

/// Escapes a word that would make its line a heading, an item, a quote or a rule.
pub(super) fn escape_start(word: &str) -> String {
    let is_marker = ['#', '-', '+', '=']
        .into_iter()
        .any(|marker| word.chars().all(|character| character == marker));
    let number = word.trim_end_matches(['.', ')']);
    if word.starts_with('>') || is_marker {
        format!("\\{word}")
    } else if number.len() + 1 == word.len()
        && number.bytes().all(|digit| digit.is_ascii_digit())
        && !number.is_empty()
    {
        format!("{number}\\{}", &word[number.len()..])
    } else {
        word.to_owned()
    }
}
