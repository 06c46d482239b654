use std::{fmt, str::FromStr};

use jiff::Timestamp;

/// The id of a conversation: the time of its creation, in tenths of a second since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(u64);

/// The error of a text that isn't a conversation id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a conversation id is a number such as 17648402467, not {0:?}")]
pub struct ParseIdError(String);

impl ConversationId {
    /// Makes the id of a conversation created at `time`.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self(u64::try_from(time.as_millisecond() / 100).unwrap_or_default())
    }

    /// Returns the next id, to try if this one is taken.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the time of the conversation's creation.
    #[must_use]
    pub fn created_at(self) -> Option<Timestamp> {
        let milliseconds = self.0.checked_mul(100)?;
        Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()
    }

    /// Reads the id at the start of a directory's name, `ID` or `ID-SLUG`.
    #[must_use]
    pub fn from_directory_name(name: &str) -> Option<Self> {
        name.split('-').next()?.parse().ok()
    }

    /// Returns the name of the conversation's directory.
    #[must_use]
    pub fn directory_name(self, title: Option<&str>) -> String {
        match title.map(slug).filter(|slug| !slug.is_empty()) {
            Some(slug) => format!("{self}-{slug}"),
            None => self.to_string(),
        }
    }
}

/// Returns the words of a title in a form that every file system accepts.
fn slug(title: &str) -> String {
    // Short enough for a path that tools print on one line.
    const MAX_BYTES: usize = 50;
    let lower = title.to_lowercase();
    let words = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words.take_while(|word| word.len() <= MAX_BYTES) {
        if slug.len() + word.len() >= MAX_BYTES {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(word);
    }
    slug
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for ConversationId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let id = text
            .parse()
            .ok()
            .filter(|_| is_number && !text.starts_with('0'));
        id.map(Self).ok_or_else(|| ParseIdError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_the_time_in_tenths_of_a_second() {
        let time: Timestamp = "2025-12-04T09:24:06.746Z".parse().unwrap();
        let id = ConversationId::at(time);
        assert_eq!(id.to_string(), "17648402467");
        assert_eq!(
            id.created_at().unwrap().to_string(),
            "2025-12-04T09:24:06.7Z"
        );
    }

    #[test]
    fn directory_name_has_the_title_as_a_slug() {
        let id: ConversationId = "17648402467".parse().unwrap();
        assert_eq!(
            id.directory_name(Some("Why: does `x` fail?")),
            "17648402467-why-does-x-fail"
        );
        assert_eq!(id.directory_name(Some("…")), "17648402467");
        assert_eq!(
            ConversationId::from_directory_name("17648402467-why-does"),
            Some(id)
        );
        assert_eq!(
            ConversationId::from_directory_name(".tmp-17648402467"),
            None
        );
    }

    #[test]
    fn malformed_id_is_refused() {
        for text in ["", "x", "1-a", "+1", "007", "99999999999999999999"] {
            assert!(text.parse::<ConversationId>().is_err(), "{text}");
        }
    }
}
