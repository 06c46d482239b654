//! Replaces the workspace's path with a marker on disk.
//!
//! In memory and for models, URIs and paths are absolute. Below `.jp/` they start with a marker. So the
//! history doesn't contain the user's home, and it works on another machine:
//!
//! | in memory | on disk |
//! |---|---|
//! | `file:///home/me/project/src` (the root's URI, and what is below it) | `workspace:///src` |
//! | `file://localhost/home/me/project/src` | `workspace-localhost:///src` |
//! | `/home/me/project/src` (the root's path) | `workspace-path:///src` |
//! | a marker itself, with any number of `~` before the slashes | one more `~` |
//!
//! Only text at the boundary of a path segment or word counts. The last row makes the conversion
//! reversible for every text. Other text such as `workspace::Type` and `jp_workspace://` stays as it
//! was.
//!
//! The program and the arguments of a `cmd://` URL are decoded first:
//! `cmd://cat?arg=%2Fhome%2Fme%2Fproject%2Fa` becomes `cmd://cat?arg=workspace-path:%2F%2F%2Fa`. If the
//! user encoded them differently from jp, they are not decoded, because reading must restore the user's
//! spelling.

use std::borrow::Cow;

use jp_resource::uri::{PathStyle, encode_argument, encode_program, file_uri, percent_decode};

/// Converts paths and URIs below one workspace.
#[derive(Debug, Clone)]
pub struct Places {
    /// The root's URI without its trailing slash.
    uri: String,
    /// The root's URI with the host `localhost`.
    localhost: String,
    /// The root's path without a trailing slash; empty for the root of the file system.
    path: String,
}

impl Places {
    /// Makes the conversion for the workspace with this canonical path.
    #[must_use]
    pub fn new(root: &str) -> Self {
        let uri = file_uri(root, PathStyle::native()).unwrap_or_else(|_| format!("file://{root}"));
        let uri = match uri.as_str() {
            // Trimming would take the slashes of the scheme, too.
            "file:///" => "file://".to_owned(),
            uri => trim_separators(uri),
        };
        let localhost = format!("file://localhost{}", uri.trim_start_matches("file://"));
        Self {
            uri,
            localhost,
            path: trim_separators(root),
        }
    }

    /// Converts `text` to its form on disk.
    #[must_use]
    pub fn to_disk(&self, text: &str) -> String {
        self.plain_to_disk(&rewrite_command(text, |part| self.plain_to_disk(part)))
    }

    /// Converts `text` to its form in memory.
    #[must_use]
    pub fn from_disk(&self, text: &str) -> String {
        rewrite_command(&self.plain_from_disk(text), |part| {
            self.plain_from_disk(part)
        })
        .into_owned()
    }

    fn plain_to_disk(&self, text: &str) -> String {
        rewrite(text, |rest, previous| {
            if let Some(marker) = Marker::at(rest) {
                return Some((marker.text(marker.tildes + 1), marker.length));
            }
            let (marker, length) = self.root_at(rest, previous)?;
            Some((marker.to_owned(), length))
        })
    }

    /// Finds the root at the beginning of `rest`. Returns its marker and its length in bytes.
    fn root_at(&self, rest: &str, previous: Option<char>) -> Option<(&'static str, usize)> {
        for (marker, uri) in [
            ("workspace://", &self.uri),
            ("workspace-localhost://", &self.localhost),
        ] {
            if starts_with_segments(rest, uri) {
                return Some((marker, uri.len()));
            }
        }
        // After a slash, an equal path is a part of another one, as in `/mnt//home/me/project`.
        let is_path = !self.path.is_empty()
            && previous != Some('/')
            && starts_with_segments(rest, &self.path);
        is_path.then_some(("workspace-path://", self.path.len()))
    }

    /// Replaces the root with `stand_in`, for messages. A `.` before a path is left out.
    ///
    /// The result can't be converted back, so don't store it.
    #[must_use]
    pub fn shorten(&self, text: &str, stand_in: &str) -> String {
        self.plain_shorten(
            &rewrite_command(text, |part| self.plain_shorten(part, stand_in)),
            stand_in,
        )
    }

    fn plain_shorten(&self, text: &str, stand_in: &str) -> String {
        rewrite(text, |rest, previous| {
            let (_, length) = self.root_at(rest, previous)?;
            let below = rest[length..]
                .strip_prefix('/')
                .and_then(|below| below.chars().next());
            match below.is_some_and(is_segment) && stand_in == "." {
                true => Some((String::new(), length + 1)),
                false => Some((stand_in.to_owned(), length)),
            }
        })
    }

    fn plain_from_disk(&self, text: &str) -> String {
        rewrite(text, |rest, _| {
            let marker = Marker::at(rest)?;
            let replacement = match (marker.tildes, marker.name) {
                (0, "workspace") => self.uri.clone(),
                (0, "workspace-localhost") => self.localhost.clone(),
                (0, _) => self.path.clone(),
                (tildes, _) => marker.text(tildes - 1),
            };
            Some((replacement, marker.length))
        })
    }

    /// Converts `text` in place to its form on disk. Skips work if nothing can change.
    pub fn write(&self, text: &mut String) {
        if let Some(below) = self.below(text) {
            *text = format!("workspace://{below}");
        } else if is_command(text) || self.may_change(text) {
            *text = self.to_disk(text);
        }
    }

    /// Returns the part after the root in a plain URI of the workspace, the most common text.
    fn below<'t>(&self, text: &'t str) -> Option<&'t str> {
        let below = text
            .strip_prefix(&self.uri)
            .filter(|below| below.starts_with('/'))?;
        (!self.may_change(below) && !self.path.is_empty()).then_some(below)
    }

    /// Returns true if conversion may change a text that isn't a command.
    fn may_change(&self, text: &str) -> bool {
        [&self.path, &self.uri, &self.localhost, "workspace"]
            .iter()
            .any(|part| text.contains(part))
    }

    /// Converts `text` in place to its form in memory. Skips work if nothing can change.
    pub fn read(&self, text: &mut String) {
        if text.contains("workspace") {
            *text = self.from_disk(text);
        }
    }
}

/// `workspace://`, `workspace-localhost://` or `workspace-path://`, with tildes before the slashes if it
/// was escaped.
struct Marker {
    name: &'static str,
    tildes: usize,
    length: usize,
}

impl Marker {
    fn at(text: &str) -> Option<Self> {
        // `workspace` is last, because the others start with it.
        let names = ["workspace-path", "workspace-localhost", "workspace"];
        let name = names.into_iter().find(|name| text.starts_with(name))?;
        let rest = text[name.len()..].strip_prefix(':')?;
        let slashes = rest.trim_start_matches('~');
        let tildes = rest.len() - slashes.len();
        slashes.starts_with("//").then_some(Self {
            name,
            tildes,
            length: name.len() + 1 + tildes + 2,
        })
    }

    fn text(&self, tildes: usize) -> String {
        format!("{}:{}//", self.name, "~".repeat(tildes))
    }
}

const COMMAND: &str = "cmd://";

fn is_command(text: &str) -> bool {
    text.get(..COMMAND.len())
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(COMMAND))
}

/// Rewrites the decoded program and arguments of a `cmd://` URL. Other text stays unchanged.
fn rewrite_command(text: &str, rewrite: impl Fn(&str) -> String) -> Cow<'_, str> {
    if !is_command(text) {
        return text.into();
    }
    let (scheme, rest) = text.split_at(COMMAND.len());
    let (program, query) = rest
        .split_once('?')
        .map_or((rest, None), |(program, query)| (program, Some(query)));
    let mut out = scheme.to_owned() + &rewrite_decoded(program, encode_program, &rewrite);
    for (index, parameter) in query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .enumerate()
    {
        out.push(if index == 0 { '?' } else { '&' });
        let value = parameter
            .find('=')
            .map_or(parameter.len(), |equals| equals + 1);
        let (name, value) = parameter.split_at(value);
        out.push_str(name);
        out.push_str(&rewrite_decoded(value, encode_argument, &rewrite));
    }
    out.into()
}

/// Rewrites a text that `encode` made. A text with another encoding stays unchanged.
fn rewrite_decoded<'t>(
    encoded: &'t str,
    encode: fn(&str) -> String,
    rewrite: impl Fn(&str) -> String,
) -> Cow<'t, str> {
    match percent_decode(encoded) {
        Ok(text) if encode(&text) == encoded => encode(&rewrite(&text)).into(),
        _ => encoded.into(),
    }
}

/// Replaces text at the starts of words. `replace` receives the rest of the text and the character
/// before it. It returns the replacement and the number of bytes to replace.
fn rewrite(text: &str, replace: impl Fn(&str, Option<char>) -> Option<(String, usize)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = None;
    while let Some(next) = rest.chars().next() {
        let starts_word = !previous.is_some_and(is_segment);
        let length = match starts_word.then(|| replace(rest, previous)).flatten() {
            Some((replacement, length)) => {
                out.push_str(&replacement);
                length
            }
            None => {
                out.push(next);
                next.len_utf8()
            }
        };
        previous = rest[..length].chars().next_back();
        rest = &rest[length..];
    }
    out
}

/// Returns true if `text` starts with `prefix` and the last path segment ends there.
fn starts_with_segments(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| !rest.starts_with(is_segment))
}

fn trim_separators(path: &str) -> String {
    path.trim_end_matches(['/', '\\']).to_owned()
}

/// Returns true if a character can be in the name of a path segment.
fn is_segment(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '~' | '%')
}

#[cfg(test)]
mod tests {
    use jp_conversation::Declaration;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn root_is_replaced_only_at_segment_boundaries() {
        let places = Places::new("/home/me/my project");
        let mut written = "see file://localhost/home/me/my%20project/a".to_owned();
        places.write(&mut written);
        assert_eq!(written, "see workspace-localhost:///a");
        for (memory, disk) in [
            (
                "file:///home/me/my%20project/src/a.rs",
                "workspace:///src/a.rs",
            ),
            ("file:///home/me/my%20project", "workspace://"),
            (
                "file:///home/me/my%20project2/a",
                "file:///home/me/my%20project2/a",
            ),
            (
                "file://localhost/home/me/my%20project/a",
                "workspace-localhost:///a",
            ),
            (
                "file://localhost/home/me/my%20project2/a",
                "file://localhost/home/me/my%20project2/a",
            ),
            (
                "workspace-localhost:///literal",
                "workspace-localhost:~///literal",
            ),
            ("/home/me/my project/src", "workspace-path:///src"),
            (
                "cat '/home/me/my project'; ls",
                "cat 'workspace-path://'; ls",
            ),
            ("/home/me/my project.bak", "/home/me/my project.bak"),
            ("/mnt/home/me/my project/x", "/mnt/home/me/my project/x"),
            ("workspace:///literal", "workspace:~///literal"),
            ("workspace:~//", "workspace:~~//"),
            (
                "use workspace::Foo; jp_workspace:///x",
                "use workspace::Foo; jp_workspace:///x",
            ),
            (
                "cmd://cat?arg=/home/me/my project/a",
                "cmd://cat?arg=workspace-path:///a",
            ),
            (
                "cmd://cat?arg=%2Fhome%2Fme%2Fmy%20project%2Fa",
                "cmd://cat?arg=workspace-path:%2F%2F%2Fa",
            ),
            (
                "cmd://cat?arg=%2Fhome%2Fme%2Fmy%20project.bak",
                "cmd://cat?arg=%2Fhome%2Fme%2Fmy%20project.bak",
            ),
            (
                "cmd://cat?arg=file:%2F%2F%2Fhome%2Fme%2Fmy%2520project",
                "cmd://cat?arg=workspace:%2F%2F",
            ),
            (
                "cmd://sh?arg=-c&arg=cat%20'%2Fhome%2Fme%2Fmy%20project';%20ls&x",
                "cmd://sh?arg=-c&arg=cat%20'workspace-path:%2F%2F';%20ls&x",
            ),
            (
                "cmd:///home/me/my%20project/x.sh?",
                "cmd://workspace-path%3A///x.sh?",
            ),
            // As good as a name that ends so.
            (
                "cmd://cc?arg=-I%2Fhome%2Fme%2Fmy%20project%2Fx",
                "cmd://cc?arg=-I%2Fhome%2Fme%2Fmy%20project%2Fx",
            ),
            (
                "cmd://echo?arg=workspace-path:%2F%2F",
                "cmd://echo?arg=workspace-path:~%2F%2F",
            ),
            // Not as jp spells it, so it stays as it is.
            (
                "cmd://cat?arg=%2fhome%2Fme%2Fmy%20project",
                "cmd://cat?arg=%2fhome%2Fme%2Fmy%20project",
            ),
        ] {
            assert_eq!(places.to_disk(memory), disk);
            assert_eq!(places.from_disk(disk), memory);
        }
    }

    #[test]
    fn message_does_not_contain_the_root() {
        let places = Places::new("/home/me/my project");
        for (text, shortened) in [
            ("file:///home/me/my%20project/src/a.rs", "src/a.rs"),
            ("file://localhost/home/me/my%20project/src/a.rs", "src/a.rs"),
            ("/home/me/my project/src", "src"),
            ("cat '/home/me/my project'; ls", "cat '.'; ls"),
            ("/home/me/my project.bak", "/home/me/my project.bak"),
            (
                "cmd://cat?arg=%2Fhome%2Fme%2Fmy%20project%2Fa",
                "cmd://cat?arg=a",
            ),
            ("workspace:///a", "workspace:///a"),
        ] {
            assert_eq!(places.shorten(text, "."), shortened);
        }
        let home = Places::new("/home/me");
        assert_eq!(
            home.shorten("/home/me/bin/run /home/me", "~"),
            "~/bin/run ~"
        );
    }

    #[test]
    fn command_in_a_table_equals_a_typed_one() {
        let root = "/home/me/p (x)!$'*,;:@=+&#";
        let table = json!({"type": "cmd", "path": format!("{root}/run.sh"), "params": {"arg": format!("-f={root}")}});
        let places = Places::new(root);
        let declaration = Declaration::from_json(&table).unwrap();
        let disk = places.to_disk(declaration.as_str());
        assert_eq!(
            disk,
            "cmd://workspace-path%3A///run.sh?arg=-f%3Dworkspace-path:%2F%2F"
        );
        assert_eq!(places.from_disk(&disk), declaration.as_str());
    }

    #[test]
    fn moved_workspace_reads_its_own_place() {
        let disk = Places::new("/home/me/project").to_disk("file:///home/me/project/a");
        assert_eq!(
            Places::new("/srv/checkout").from_disk(&disk),
            "file:///srv/checkout/a"
        );
        let disk = Places::new("/home/me/project")
            .to_disk("cmd://cat?arg=%2Fhome%2Fme%2Fproject%2Fa&arg=b");
        let moved = Places::new("/srv/a&b=c%").from_disk(&disk);
        assert_eq!(moved, "cmd://cat?arg=%2Fsrv%2Fa%26b%3Dc%25%2Fa&arg=b");
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
                Just("cmd://".to_owned()), Just("%2Fw%2Fp".to_owned()), Just("?arg=".to_owned()),
                Just("%2F".to_owned()), Just("workspace-path:%2F%2F".to_owned()), "[?&=+%' ]",
                Just("/w/p".to_owned()), Just("file://".to_owned()), Just("workspace".to_owned()),
                Just("-path".to_owned()), Just("-localhost".to_owned()), Just("file://localhost/w/p".to_owned()), Just("~".to_owned()), Just(" ".to_owned()),
                Just("/".to_owned()), Just(":".to_owned()), Just("://".to_owned()), "[a-zé]{0,3}",
            ], 0..8)) {
            let places = Places::new("/w/p");
            for text in [pieces.concat(), format!("cmd://{}", pieces.concat())] {
                let mut written = text.clone();
                places.write(&mut written);
                prop_assert_eq!(&written, &places.to_disk(&text));
                places.read(&mut written);
                prop_assert_eq!(written, text);
            }
        }
    }
}
