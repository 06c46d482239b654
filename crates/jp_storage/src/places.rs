//! How the workspace's path is written on disk (decision 5).
//!
//! In memory and to models, URIs and paths are absolute; under `.jp/` they start with a marker, so
//! that history neither names the person's home nor breaks on another machine:
//!
//! | in memory | on disk |
//! |---|---|
//! | `file:///home/me/project/src` (the root's URI, then `/`, or not) | `workspace:///src` |
//! | `file://localhost/home/me/project/src` | `workspace-localhost:///src` |
//! | `/home/me/project/src` (the root's path) | `workspace-path:///src` |
//! | `workspace://` or another marker itself, with any number of `~` before the slashes | one `~` more |
//!
//! Each at the boundary of a path segment or word. The last row makes the writing reversible for every
//! text, and leaves alone what no marker is: `workspace::Type`, `jp_workspace://`.
//!
//! The program and the arguments of a `cmd://` URL are looked at decoded: `cmd://cat?arg=%2Fhome%2Fme%2Fproject%2Fa` is
//! `cmd://cat?arg=workspace-path:%2F%2F%2Fa`. One that a person encoded otherwise than jp does is looked at as it stands,
//! as the way back must give their spelling.

use std::borrow::Cow;

use jp_resource::uri::{PathStyle, encode_argument, encode_program, file_uri, percent_decode};

/// Writes and reads places relative to one workspace.
#[derive(Debug, Clone)]
pub struct Places {
    /// The root's URI without its trailing slash.
    uri: String,
    /// The same with `localhost` for its host.
    localhost: String,
    /// The root's path without a trailing slash; empty where the root is the file system's.
    path: String,
}

impl Places {
    /// Makes the pair of rewritings for a workspace; `root` is its canonical path.
    #[must_use]
    pub fn new(root: &str) -> Self {
        let uri = file_uri(root, PathStyle::native()).unwrap_or_else(|_| format!("file://{root}"));
        let trim = |text: &str| text.trim_end_matches(['/', '\\']).to_owned();
        let uri = if uri == "file:///" {
            "file://".to_owned()
        } else {
            trim(&uri)
        };
        let localhost = format!("file://localhost{}", uri.trim_start_matches("file://"));
        Self {
            uri,
            localhost,
            path: trim(root),
        }
    }

    /// Returns `text` as it is written on disk.
    #[must_use]
    pub fn to_disk(&self, text: &str) -> String {
        self.plain_to_disk(&rewrite_command(text, |part| self.plain_to_disk(part)))
    }

    /// Returns `text` as it is in memory.
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

    /// Finds the root at the beginning of `rest`: the marker for it, and how many bytes name it.
    fn root_at(&self, rest: &str, previous: Option<char>) -> Option<(&'static str, usize)> {
        let ends_segment = |length: usize| !rest[length..].chars().next().is_some_and(is_segment);
        for (marker, uri) in [
            ("workspace://", &self.uri),
            ("workspace-localhost://", &self.localhost),
        ] {
            if rest.starts_with(uri) && ends_segment(uri.len()) {
                return Some((marker, uri.len()));
            }
        }
        let is_path =
            !self.path.is_empty() && previous != Some('/') && rest.starts_with(&self.path);
        (is_path && ends_segment(self.path.len())).then_some(("workspace-path://", self.path.len()))
    }

    /// Returns `text` with `stand_in` instead of the root, for messages: `.` before a path is left out.
    ///
    /// This can't be undone, so don't use it for text that is read again.
    #[must_use]
    pub fn shorten(&self, text: &str, stand_in: &str) -> String {
        let shorten = |text: &str| {
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
        };
        shorten(&rewrite_command(text, shorten))
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

    /// Rewrites in place for the disk, where there is anything to rewrite.
    pub fn write(&self, text: &mut String) {
        if let Some(below) = self.below(text) {
            *text = format!("workspace://{below}");
        } else if is_command(text) || self.may_change(text) {
            *text = self.to_disk(text);
        }
    }

    /// Returns what follows the root in a plain URI of the workspace: most of what is written is one.
    fn below<'t>(&self, text: &'t str) -> Option<&'t str> {
        let below = text
            .strip_prefix(&self.uri)
            .filter(|below| below.starts_with('/'))?;
        (!self.may_change(below) && !self.path.is_empty()).then_some(below)
    }

    /// Returns whether there may be anything to rewrite in a text that is no command.
    fn may_change(&self, text: &str) -> bool {
        [&self.path, &self.uri, &self.localhost, "workspace"]
            .iter()
            .any(|part| text.contains(part))
    }

    /// Rewrites in place from the disk, where there is anything to rewrite.
    pub fn read(&self, text: &mut String) {
        if text.contains("workspace") {
            *text = self.from_disk(text);
        }
    }
}

/// `workspace://`, `workspace-localhost://` or `workspace-path://`, with tildes before the slashes where it was escaped.
struct Marker {
    name: &'static str,
    tildes: usize,
    length: usize,
}

impl Marker {
    fn at(text: &str) -> Option<Self> {
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

/// Rewrites the program and the arguments of a `cmd://` URL, decoded; any other text stays as it is.
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

/// Rewrites what `encode` made; what it would have made otherwise stays as it is.
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

/// Replaces what `replace` finds at the starts of words; it is given the rest and the character before.
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

/// Returns whether a character belongs to a path segment's name.
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
    fn root_is_replaced_at_segment_boundaries_only() {
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
    fn message_names_what_is_in_the_root_without_where_that_is() {
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
    fn command_of_a_table_names_the_place_as_one_that_was_typed() {
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
