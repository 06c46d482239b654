//! How the workspace's path is written on disk (decision 5).
//!
//! In memory and to models, URIs and paths are absolute; under `.jp/` they start with a marker, so
//! that history neither names the person's home nor breaks on another machine:
//!
//! | in memory | on disk |
//! |---|---|
//! | `file:///home/me/project/src` (the root's URI, then `/`, or not) | `workspace:///src` |
//! | `/home/me/project/src` (the root's path) | `workspace:./src` |
//! | `workspace:` itself | `workspace::` |
//!
//! The last row makes the writing reversible for every text.

use jp_resource::uri::{PathStyle, file_uri};

const MARKER: &str = "workspace:";

/// Writes and reads places relative to one workspace.
#[derive(Debug, Clone)]
pub struct Places {
    /// The root's URI without its trailing slash.
    uri: String,
    /// The root's path without a trailing slash; empty where the root is the file system's.
    path: String,
}

impl Places {
    /// Makes the pair of rewritings for a workspace; `root` is its canonical path.
    #[must_use]
    pub fn new(root: &str) -> Self {
        let uri = file_uri(root, PathStyle::native()).unwrap_or_else(|_| format!("file://{root}"));
        let trim = |text: &str| text.trim_end_matches(['/', '\\']).to_owned();
        let uri = if uri == "file:///" { "file://".to_owned() } else { trim(&uri) };
        Self { uri, path: trim(root) }
    }

    /// Returns `text` as it is written on disk.
    #[must_use]
    pub fn to_disk(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut previous = None;
        while let Some(next) = rest.chars().next() {
            let (marker, length) = self.marker_at(rest, previous).unwrap_or(("", next.len_utf8()));
            let taken = &rest[..length];
            out.push_str(if marker.is_empty() { taken } else { marker });
            previous = taken.chars().next_back();
            rest = &rest[length..];
        }
        out
    }

    /// Returns `text` as it is in memory.
    #[must_use]
    pub fn from_disk(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(position) = rest.find(MARKER) {
            out.push_str(&rest[..position]);
            let after = &rest[position + MARKER.len()..];
            let (replacement, length) = match after.as_bytes() {
                [b'/', b'/', ..] => (self.uri.as_str(), 2),
                [b'.', ..] => (self.path.as_str(), 1),
                [b':', ..] => (MARKER, 1),
                _ => (MARKER, 0),
            };
            out.push_str(replacement);
            rest = &after[length..];
        }
        out.push_str(rest);
        out
    }

    /// Rewrites in place for the disk, where there is anything to rewrite.
    pub fn write(&self, text: &mut String) {
        if text.contains(&self.path) || text.contains(&self.uri) || text.contains(MARKER) {
            *text = self.to_disk(text);
        }
    }

    /// Rewrites in place from the disk, where there is anything to rewrite.
    pub fn read(&self, text: &mut String) {
        if text.contains(MARKER) {
            *text = self.from_disk(text);
        }
    }

    /// Returns what stands on disk for the start of `rest`, and how much of it that is.
    fn marker_at(&self, rest: &str, previous: Option<char>) -> Option<(&'static str, usize)> {
        let ends_segment = |length: usize| !rest[length..].chars().next().is_some_and(is_segment);
        if rest.starts_with(MARKER) {
            return Some(("workspace::", MARKER.len()));
        }
        if rest.starts_with(&self.uri) && ends_segment(self.uri.len()) {
            return Some(("workspace://", self.uri.len()));
        }
        let starts_path = !previous.is_some_and(|previous| is_segment(previous) || previous == '/');
        if !self.path.is_empty()
            && starts_path
            && rest.starts_with(&self.path)
            && ends_segment(self.path.len())
        {
            return Some(("workspace:.", self.path.len()));
        }
        None
    }
}

/// Returns whether a character belongs to a path segment's name.
fn is_segment(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '~' | '%')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn root_is_replaced_at_segment_boundaries_only() {
        let places = Places::new("/home/me/my project");
        for (memory, disk) in [
            ("file:///home/me/my%20project/src/a.rs", "workspace:///src/a.rs"),
            ("file:///home/me/my%20project", "workspace://"),
            ("file:///home/me/my%20project2/a", "file:///home/me/my%20project2/a"),
            ("/home/me/my project/src", "workspace:./src"),
            ("cat '/home/me/my project'; ls", "cat 'workspace:.'; ls"),
            ("/home/me/my project.bak", "/home/me/my project.bak"),
            ("/mnt/home/me/my project/x", "/mnt/home/me/my project/x"),
            ("workspace:///literal", "workspace::///literal"),
            ("workspace::", "workspace:::"),
        ] {
            assert_eq!(places.to_disk(memory), disk);
            assert_eq!(places.from_disk(disk), memory);
        }
    }

    #[test]
    fn moved_workspace_reads_its_own_place() {
        let disk = Places::new("/home/me/project").to_disk("file:///home/me/project/a");
        assert_eq!(Places::new("/srv/checkout").from_disk(&disk), "file:///srv/checkout/a");
    }

    #[test]
    fn root_of_the_file_system_is_a_workspace_too() {
        let places = Places::new("/");
        assert_eq!(places.to_disk("file:///a /b"), "workspace:///a /b");
        assert_eq!(places.from_disk("workspace:///a"), "file:///a");
    }

    proptest! {
        #[test]
        fn writing_is_reversible(pieces in prop::collection::vec(
            prop_oneof![
                Just("/w/p".to_owned()), Just("file://".to_owned()), Just("workspace:".to_owned()),
                Just("/".to_owned()), Just(":".to_owned()), Just(".".to_owned()), "[a-zé]{0,3}",
            ], 0..8)) {
            let text = pieces.concat();
            let places = Places::new("/w/p");
            prop_assert_eq!(places.from_disk(&places.to_disk(&text)), text);
        }
    }
}
