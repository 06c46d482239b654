use std::fmt;

/// The address of a value: `conversation.tools.'*'.run`.
///
/// Dots separate the parts. Quotes around a part work as in TOML, without escapes. The part of a
/// list's element is its index from 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<String>);

impl Key {
    pub(crate) fn root() -> Self {
        Self(Vec::new())
    }

    /// Returns the parts, outermost first.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn child(&self, name: impl Into<String>) -> Self {
        let mut parts = self.0.clone();
        parts.push(name.into());
        Self(parts)
    }

    /// Returns the key and then each of its ancestors, down to the root.
    pub(crate) fn with_ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        (0..=self.0.len())
            .rev()
            .map(|length| Self(self.0[..length].to_vec()))
    }

    pub(crate) fn is_at_or_below(&self, ancestor: &Self) -> bool {
        self.0.starts_with(&ancestor.0)
    }
}

impl<T: Into<String>> FromIterator<T> for Key {
    fn from_iter<I: IntoIterator<Item = T>>(parts: I) -> Self {
        Self(parts.into_iter().map(Into::into).collect())
    }
}

/// Returns the offset of the first `=` outside quotes.
pub(crate) fn find_equals(text: &str) -> Option<usize> {
    let mut open = None;
    for (offset, character) in text.char_indices() {
        match (open, character) {
            (None, '=') => return Some(offset),
            (None, '\'' | '"') => open = Some(character),
            (Some(quote), character) if quote == character => open = None,
            _ => {}
        }
    }
    None
}

/// Parses a key; `None` if a part of it is empty or badly quoted.
pub(crate) fn parse(text: &str) -> Option<Key> {
    let (mut parts, mut rest) = (Vec::new(), text.trim());
    loop {
        let (part, after) = split_part(rest)?;
        parts.push(part.to_owned());
        if after.is_empty() {
            return Some(Key(parts));
        }
        rest = after.strip_prefix('.')?;
    }
}

fn split_part(text: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = text.strip_prefix('\'') {
        return quoted.split_once('\'');
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split_once('"');
    }
    let (part, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let part = part.trim();
    (!part.is_empty()).then_some((part, rest))
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_str(".")?;
            }
            match part {
                part if is_bare(part) => formatter.write_str(part)?,
                part if part.contains('\'') => write!(formatter, "\"{part}\"")?,
                part => write!(formatter, "'{part}'")?,
            }
        }
        Ok(())
    }
}

fn is_bare(part: &str) -> bool {
    !part.is_empty()
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_quoted_as_in_toml() {
        let key: Key = ["conversation", "tools", "*", "a.b", "it's"]
            .into_iter()
            .collect();
        assert_eq!(key.to_string(), r#"conversation.tools.'*'.'a.b'."it's""#);
        assert_eq!(key.to_string().parse(), Ok(key));
    }

    #[test]
    fn star_needs_no_quotes_on_the_command_line() {
        assert_eq!("tools.*.run".parse::<Key>(), "tools.'*'.run".parse());
    }

    #[test]
    fn malformed_keys_are_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "a.'b", "'a'b"] {
            let text = text.to_owned();
            assert_eq!(text.parse::<Key>(), Err(crate::Error::Key { text }));
        }
    }
}
