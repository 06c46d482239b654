//! Finds recorded conversations in the paths that a person names.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::{Error, read::Format};

/// A file with a conversation in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// What wrote it.
    pub format: Format,
}

/// What a path leads to.
#[derive(Debug, Default)]
pub struct Found {
    /// The conversations, by path.
    pub recordings: Vec<Recording>,
    /// How many files of a directory are none.
    pub skipped: u64,
    /// Files and directories below a directory that can't be read.
    pub errors: Vec<Error>,
}

const EVENTS: &str = "events.json";
/// Content of conversations, not conversations.
const BLOBS: &str = "blobs";

/// Finds the conversations at `path`: a file that is one, or all below a directory. Links are not followed there.
pub fn conversations(path: &Path) -> Result<Found, Error> {
    let metadata = fs::metadata(path).map_err(|source| Error::io(path, source))?;
    let mut found = Found::default();
    if metadata.is_dir() {
        found.walk(path);
        if found.recordings.is_empty() && found.errors.is_empty() {
            return Err(Error::Nothing {
                path: path.to_owned(),
            });
        }
    } else {
        let format = format_of(path)?.ok_or_else(|| Error::Unknown {
            path: path.to_owned(),
        })?;
        found.recordings.push(Recording {
            path: path.to_owned(),
            format,
        });
    }
    Ok(found)
}

impl Found {
    fn walk(&mut self, directory: &Path) {
        let events = directory.join(EVENTS);
        if events.is_file() {
            return self.recordings.push(Recording {
                path: events,
                format: Format::Jp,
            });
        }
        match entries(directory) {
            Ok(entries) => entries
                .into_iter()
                .for_each(|(path, is_directory)| self.entry(path, is_directory)),
            Err(error) => self.errors.push(error),
        }
    }

    fn entry(&mut self, path: PathBuf, is_directory: bool) {
        if is_directory {
            if path.file_name().is_none_or(|name| name != BLOBS) {
                self.walk(&path);
            }
            return;
        }
        match Format::of_extension(&path).map(|_| format_of(&path)) {
            Some(Ok(Some(format))) => self.recordings.push(Recording { path, format }),
            Some(Err(error)) => self.errors.push(error),
            Some(Ok(None)) | None => self.skipped += 1,
        }
    }
}

/// Returns the files and directories in `directory`, by name.
fn entries(directory: &Path) -> Result<Vec<(PathBuf, bool)>, Error> {
    let error = |source| Error::io(directory, source);
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(error)? {
        let entry = entry.map_err(error)?;
        let kind = entry.file_type().map_err(error)?;
        entries.push((entry.path(), kind.is_dir()));
    }
    entries.sort();
    Ok(entries)
}

/// Finds out what wrote a file: the names that jp and SWE-agent give theirs say it, else its first bytes.
fn format_of(path: &Path) -> Result<Option<Format>, Error> {
    let by_name = Format::of_extension(path);
    if by_name == Some(Format::SweAgent) || path.file_name().is_some_and(|name| name == EVENTS) {
        return Ok(by_name);
    }
    const ENOUGH: u64 = 64 * 1024;
    let mut start = Vec::new();
    let file = fs::File::open(path).map_err(|source| Error::io(path, source))?;
    file.take(ENOUGH)
        .read_to_end(&mut start)
        .map_err(|source| Error::io(path, source))?;
    Ok(Format::of_start(&String::from_utf8_lossy(&start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) -> PathBuf {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn directory_gives_its_conversations_and_counts_what_is_none() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "b/1-x/events.json", "[]");
        write(root, "b/1-x/metadata.json", "{}");
        write(root, "b/blobs/aa/bb.blob.gz", "");
        write(root, "a.traj", "broken");
        write(
            root,
            "c.jsonl",
            r#"{"type":"user","message":{"role":"user","content":"hi"}}"#,
        );
        write(
            root,
            "d.json",
            r#"[{"timestamp":"2026-03-05 19:31:45.7","type":"turn_start"}]"#,
        );
        write(root, "e.jsonl", r#"{"n":1}"#);
        write(root, "package.json", r#"{"name":"x"}"#);
        write(root, "readme.md", "");
        let found = conversations(root).unwrap();
        let name = |recording: &Recording| {
            let path = recording
                .path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            (path, recording.format)
        };
        assert_eq!(
            found.recordings.iter().map(name).collect::<Vec<_>>(),
            [
                ("a.traj".to_owned(), Format::SweAgent),
                ("b/1-x/events.json".to_owned(), Format::Jp),
                ("c.jsonl".to_owned(), Format::ClaudeCode),
                ("d.json".to_owned(), Format::Jp),
            ]
        );
        assert_eq!(found.skipped, 3);
    }

    #[test]
    fn file_that_is_named_must_be_a_conversation() {
        let root = tempfile::tempdir().unwrap();
        let path = write(root.path(), "notes.md", "words");
        assert!(matches!(conversations(&path), Err(Error::Unknown { .. })));
        assert!(matches!(
            conversations(&root.path().join("none")),
            Err(Error::Io { .. })
        ));
        assert!(matches!(
            conversations(root.path()),
            Err(Error::Nothing { .. })
        ));
        let odd_name = write(
            root.path(),
            "run.log",
            r#"{"history": [], "trajectory": []}"#,
        );
        assert_eq!(
            conversations(&odd_name).unwrap().recordings[0].format,
            Format::SweAgent
        );
    }
}
