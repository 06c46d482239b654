//! Finds recorded conversations in files and directories.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::{Error, read::Format};

/// A file that contains a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// The program that wrote it.
    pub format: Format,
}

/// The recordings at or below a path.
#[derive(Debug, Default)]
pub struct Found {
    /// The conversations, sorted by path.
    pub recordings: Vec<Recording>,
    /// The number of files below a directory that aren't conversations.
    pub skipped: u64,
    /// The errors of files and directories that can't be read.
    pub errors: Vec<Error>,
}

const EVENTS: &str = "events.json";
/// The directory for the content of conversations. A walk skips it.
const BLOBS: &str = "blobs";
/// The bytes of a file that are searched for its format. They are enough for the long first lines
/// of a transcript.
const START_BYTES: u64 = 64 * 1024;

/// Finds the conversations at `path`, which is one itself or a directory. A walk of a directory
/// follows no links.
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
        // A conversation directory of jp contains nothing else to replay.
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
                .for_each(|(path, is_directory)| self.visit(path, is_directory)),
            Err(error) => self.errors.push(error),
        }
    }

    fn visit(&mut self, path: PathBuf, is_directory: bool) {
        if is_directory {
            if path.file_name().is_none_or(|name| name != BLOBS) {
                self.walk(&path);
            }
            return;
        }
        match Format::from_extension(&path).map(|_| format_of(&path)) {
            Some(Ok(Some(format))) => self.recordings.push(Recording { path, format }),
            Some(Err(error)) => self.errors.push(error),
            Some(Ok(None)) | None => self.skipped += 1,
        }
    }
}

/// Returns the files and directories in `directory`, sorted by name; `true` marks a directory.
fn entries(directory: &Path) -> Result<Vec<(PathBuf, bool)>, Error> {
    let read = || -> io::Result<Vec<_>> {
        fs::read_dir(directory)?
            .map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir()))))
            .collect()
    };
    let mut entries = read().map_err(|source| Error::io(directory, source))?;
    entries.sort();
    Ok(entries)
}

/// Finds the format of a file by the names that jp and SWE-agent use, or by its first bytes.
fn format_of(path: &Path) -> Result<Option<Format>, Error> {
    let by_name = Format::from_extension(path);
    if by_name == Some(Format::SweAgent) || path.file_name().is_some_and(|name| name == EVENTS) {
        return Ok(by_name);
    }
    let mut start = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(START_BYTES).read_to_end(&mut start))
        .map_err(|source| Error::io(path, source))?;
    Ok(Format::from_start(&String::from_utf8_lossy(&start)))
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
    fn walk_returns_conversations_while_counting_other_files() {
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
        let expected = [
            ("a.traj", Format::SweAgent),
            ("b/1-x/events.json", Format::Jp),
            ("c.jsonl", Format::ClaudeCode),
            ("d.json", Format::Jp),
        ];
        assert_eq!(
            found.recordings,
            expected.map(|(path, format)| Recording {
                path: root.join(path),
                format
            })
        );
        assert_eq!(found.skipped, 3);
    }

    #[test]
    fn path_must_lead_to_a_conversation() {
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
