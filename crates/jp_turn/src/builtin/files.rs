//! The workspace's files that tools may access.
//!
//! `path_names` parses a path. `find` follows it from the open root, directory by directory, to a
//! [`Spot`], which has all operations. `reserved_names` and the user's patterns say what is
//! read-only. `seen_files` remembers what the model saw last. `walk` visits directories.
//!
//! A file is known by the name that was used. A hard link may give it a second name, even outside
//! the workspace.

mod find;
mod git;
mod path_names;
mod reserved_names;
mod seen_files;
mod spot;
mod walk;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cap_std::{ambient_authority, fs::Dir};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use jp_attachment::{Place, canonical_path, has_secret_name};
use jp_conversation::Stream;
use jp_resource::{
    Checksum, Resource, ResourceContent,
    uri::{PathStyle, file_uri},
};
use jp_tool::ContentBlock;

use self::find::Finding;
pub use self::seen_files::{FileState, marked_files};
pub(super) use self::{
    find::LastLink,
    seen_files::{Extent, SeenFiles, gone_mark, mark, moved_mark},
    spot::{Content, Found, MAX_BYTES, Spot, display_path, open, special_kind},
    walk::{Entry, Walk},
};

/// The workspace's files that tools may access.
///
/// Nothing outside is read or written, whatever links point there and even if a directory is
/// replaced by a link meanwhile. `.git`, `.jp` and files that match the user's patterns are never
/// written.
#[derive(Debug)]
pub struct Files {
    /// The canonical root.
    place: Place,
    /// The roots with which an absolute path may start: the canonical one and the one that was
    /// given.
    roots: [PathBuf; 2],
    root: Dir,
    read_only: Gitignore,
    /// Locked while a file is changed, so that the second of two changes at the same time sees the
    /// first.
    seen: Mutex<SeenFiles>,
}

/// An error from opening the workspace's files.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The root can't be opened.
    #[error("open the workspace at {path:?}")]
    Open {
        /// The root.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A pattern of files that tools may not write is malformed.
    #[error("read {pattern:?} as a pattern of read-only files: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The fault in it.
        reason: String,
    },
}

/// A part of a text file, in lines that count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Files {
    /// Opens the workspace. `read_only` has the patterns of files that are never written, as lines
    /// of a `.gitignore` in the root.
    pub fn open(root: &Path, read_only: &[String]) -> Result<Self, FilesError> {
        let canonical = canonical_path(root).map_err(|error| open_error(root, error))?;
        let place = Place::new(&canonical);
        Ok(Self {
            place,
            root: Dir::open_ambient_dir(&canonical, ambient_authority())
                .map_err(|error| open_error(root, error))?,
            roots: [canonical, root.to_owned()],
            read_only: compile_patterns(read_only)?,
            seen: Mutex::default(),
        })
    }

    /// Remembers which files the model saw in a conversation, so that no later change is
    /// overwritten unseen.
    pub fn remember(&self, stream: &Stream) {
        *self.lock_seen() = SeenFiles::from_stream(stream);
    }

    /// Locks and returns the files that the model saw. Hold the lock while you read or change a
    /// file.
    pub(super) fn lock_seen(&self) -> MutexGuard<'_, SeenFiles> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.apply_sights(&self.roots);
        seen
    }

    /// Finds the place of a path for reading.
    pub(super) fn find_readable(&self, text: &str) -> Result<Spot, String> {
        let names = path_names::parse(text, &self.roots)?;
        let spot = Finding::new(&self.root, &self.roots, names, LastLink::Followed, text).run()?;
        check_slash(text, &spot)?;
        Ok(spot)
    }

    /// Finds the place of a path for writing.
    pub(super) fn find_writable(&self, text: &str, last_link: LastLink) -> Result<Spot, String> {
        let names = path_names::parse(text, &self.roots)?;
        let written: PathBuf = names.iter().collect();
        let spot = Finding::new(&self.root, &self.roots, names, last_link, text).run()?;
        check_slash(text, &spot)?;
        for path in [&written, &spot.path] {
            self.check_writable(path, matches!(spot.found, Found::Directory(_)))?;
        }
        Ok(spot)
    }

    fn check_writable(&self, path: &Path, is_directory: bool) -> Result<(), String> {
        let shown = display_path(path);
        if path.iter().any(reserved_names::is_reserved) {
            return Err(format!(
                "{shown} can't be changed: `.git` and `.jp` are read-only for tools."
            ));
        }
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let matched = self
            .read_only
            .matched_path_or_any_parents(path, is_directory);
        match matched.inner().filter(|_| matched.is_ignore()) {
            Some(glob) => Err(format!(
                "{shown} can't be changed: the user's configuration makes {:?} read-only for tools.",
                glob.original()
            )),
            None => Ok(()),
        }
    }

    /// Returns the path from the root of a `file:` URI in the workspace, in the form of results.
    pub(super) fn path_from_uri(&self, uri: &str) -> Option<String> {
        seen_files::path_from_uri(uri, &self.roots)
    }

    /// Returns the absolute path of a place.
    pub(super) fn absolute_path(&self, spot: &Spot) -> PathBuf {
        self.place.root.join(&spot.path)
    }

    /// Returns whether git has the content of a file: committed, or in the index.
    pub(super) fn git_has(
        &self,
        spot: &Spot,
        content: &Content,
        is_moot: &dyn Fn() -> bool,
    ) -> bool {
        git::has(&self.absolute_path(spot), content, is_moot)
    }

    /// Makes a block of a file's content, or of some of its lines. `checksum` is that of the whole
    /// file.
    pub(super) fn block(
        &self,
        spot: &Spot,
        content: ResourceContent,
        mime_type: &str,
        lines: Option<Lines>,
        checksum: Option<Checksum>,
    ) -> Result<ContentBlock, String> {
        let path = spot.display();
        let absolute = self.absolute_path(spot);
        let uri = absolute
            .to_str()
            .and_then(|absolute| file_uri(absolute, PathStyle::native()).ok());
        let mut uri =
            uri.ok_or_else(|| format!("{path} has no URI because its name is not UTF-8."))?;
        match lines {
            Some(Lines { first, last }) if first == last => uri.push_str(&format!("#L{first}")),
            Some(Lines { first, last }) => uri.push_str(&format!("#L{first}-{last}")),
            None => {}
        }
        let resource = Resource::new(uri, content)
            .with_name(path.clone())
            .with_mime_type(mime_type);
        Ok(ContentBlock::Resource {
            resource,
            meta: checksum.map(|checksum| mark(&path, checksum)),
        })
    }
}

/// Returns whether jp asks before it reads the file at a path from the root, even if the tool runs
/// unattended.
///
/// These are files whose names suggest secrets, and everything in `.git` and `.jp`: the URLs of
/// remotes may contain passwords, and other conversations may contain anything.
pub(super) fn is_sensitive(path: &Path) -> bool {
    has_secret_name(path) || path.iter().any(reserved_names::is_reserved)
}

fn open_error(root: &Path, source: io::Error) -> FilesError {
    FilesError::Open {
        path: root.to_owned(),
        source,
    }
}

fn pattern_error(pattern: &str, error: &ignore::Error) -> FilesError {
    FilesError::Pattern {
        pattern: pattern.to_owned(),
        reason: error.to_string(),
    }
}

fn compile_patterns(lines: &[String]) -> Result<Gitignore, FilesError> {
    let mut builder = GitignoreBuilder::new("");
    // On a file system that ignores case, `CARGO.LOCK` must not get around the pattern
    // `Cargo.lock`.
    let is_caseless = cfg!(any(windows, target_os = "macos"));
    builder
        .case_insensitive(is_caseless)
        .map_err(|error| pattern_error("", &error))?;
    for line in lines {
        builder
            .add_line(None, line)
            .map_err(|error| pattern_error(line, &error))?;
    }
    builder
        .build()
        .map_err(|error| pattern_error(&lines.join("\n"), &error))
}

/// Refuses a path that ends with a slash but is not a directory.
fn check_slash(text: &str, spot: &Spot) -> Result<(), String> {
    match spot.found {
        Found::Directory(_) => Ok(()),
        _ if text.ends_with('/') => Err(format!(
            "{text:?} names a directory, but {} is not a directory.",
            spot.display()
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_pattern_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = Files::open(root.path(), &["ok".into(), "a{b".into()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "read \"a{b\" as a pattern of read-only files: error parsing glob 'a{b': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"
        );
        let missing = Files::open(&root.path().join("none"), &[]).unwrap_err();
        assert!(
            missing.to_string().starts_with("open the workspace at "),
            "{missing}"
        );
    }
}
