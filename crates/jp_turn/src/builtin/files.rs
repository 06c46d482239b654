//! The workspace's files, as far as tools may reach them.
//!
//! A path is read (`named`) and followed from the open root, directory by directory (`find`), to a [`Spot`], on which
//! all else is done. `reserved` and the person's patterns say what is not written to, `seen` what the model last saw,
//! `walk` goes through directories.
//!
//! A file is what its name is: one that has a second name, be it outside, is read and known by the one that was given.

mod find;
mod git;
mod named;
mod reserved;
mod seen;
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
pub use self::seen::{FileState, marked_files};
pub(super) use self::{
    find::LastLink,
    seen::{Extent, Seen, gone_mark, mark, moved_mark},
    spot::{Content, Found, MAX_BYTES, Spot, open, shown, special},
    walk::{Entry, Walk},
};

/// The workspace's files, as far as tools may reach them.
///
/// Nothing outside is read or written, whatever links lead there and whatever is put in the place of a directory
/// meanwhile. What belongs to git and to jp is never written, nor is what the person's patterns match.
#[derive(Debug)]
pub struct Files {
    /// The root, canonical.
    place: Place,
    /// What an absolute path may start with: the root as it is and as it was given.
    roots: [PathBuf; 2],
    root: Dir,
    read_only: Gitignore,
    /// Held for as long as a file is changed, so that of two changes at a time the second sees the first.
    seen: Mutex<Seen>,
}

/// Why there are no files to reach.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The root can't be opened.
    #[error("open the workspace at {path:?}")]
    Open {
        /// The root.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A pattern of files that tools may not write is malformed.
    #[error("read {pattern:?} as a pattern of read-only files: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
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
    /// Opens the workspace; `read_only` are patterns, lines as of a `.gitignore` in the root, of what is never written.
    pub fn open(root: &Path, read_only: &[String]) -> Result<Self, FilesError> {
        let failed = |source| FilesError::Open {
            path: root.to_owned(),
            source,
        };
        let canonical = canonical_path(root).map_err(failed)?;
        let place = Place::new(&canonical);
        Ok(Self {
            place,
            root: Dir::open_ambient_dir(&canonical, ambient_authority()).map_err(failed)?,
            roots: [canonical, root.to_owned()],
            read_only: patterns(read_only)?,
            seen: Mutex::default(),
        })
    }

    /// Takes in what the model saw of files in a conversation, so that no later change is overwritten unseen.
    pub fn saw(&self, stream: &Stream) {
        *self.changing() = Seen::of(stream);
    }

    /// Returns what the model last saw, for as long as a file is read or changed.
    pub(super) fn changing(&self) -> MutexGuard<'_, Seen> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.take_in_told(&self.roots);
        seen
    }

    /// Finds a place to read.
    pub(super) fn readable(&self, text: &str) -> Result<Spot, String> {
        let names = named::names(text, &self.roots)?;
        let spot = Finding::new(&self.root, &self.roots, names, LastLink::Followed, text).run()?;
        check_slash(text, &spot)?;
        Ok(spot)
    }

    /// Finds a place to write.
    pub(super) fn writable(&self, text: &str, last_link: LastLink) -> Result<Spot, String> {
        let names = named::names(text, &self.roots)?;
        let written: PathBuf = names.iter().collect();
        let spot = Finding::new(&self.root, &self.roots, names, last_link, text).run()?;
        check_slash(text, &spot)?;
        for path in [&written, &spot.path] {
            self.check_writable(path, matches!(spot.found, Found::Directory(_)))?;
        }
        Ok(spot)
    }

    fn check_writable(&self, path: &Path, is_directory: bool) -> Result<(), String> {
        let shown = shown(path);
        if path.iter().any(reserved::is_reserved) {
            return Err(format!(
                "{shown} is not written: `.git` and `.jp` are closed to tools."
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
                "{shown} is not written: the person's configuration closes {:?} to tools.",
                glob.original()
            )),
            None => Ok(()),
        }
    }

    /// Returns the path from the root that a `file:` URI of the workspace has, as results write it.
    pub(super) fn path_of(&self, uri: &str) -> Option<String> {
        seen::path_of(uri, &self.roots)
    }

    /// Returns where a place is on the machine.
    pub(super) fn absolute(&self, spot: &Spot) -> PathBuf {
        self.place.root.join(&spot.path)
    }

    /// Returns whether git has the content of a file: committed, or in the index.
    pub(super) fn git_has(
        &self,
        spot: &Spot,
        content: &Content,
        is_moot: &dyn Fn() -> bool,
    ) -> bool {
        git::has(&self.absolute(spot), content, is_moot)
    }

    /// Makes a block of a file's content, or of some of its lines; `checksum` is of the whole file.
    pub(super) fn block(
        &self,
        spot: &Spot,
        content: ResourceContent,
        mime_type: &str,
        lines: Option<Lines>,
        checksum: Option<Checksum>,
    ) -> Result<ContentBlock, String> {
        let path = spot.shown();
        let absolute = self.absolute(spot);
        let uri = absolute
            .to_str()
            .and_then(|absolute| file_uri(absolute, PathStyle::native()).ok());
        let mut uri =
            uri.ok_or_else(|| format!("{path} has a name that is not UTF-8 and so no URI."))?;
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

/// Returns whether the person is asked before the file at a path from the root is read, whoever runs unattended.
///
/// That is what has the name of a file with secrets, and all that belongs to git and to jp: the addresses of remotes
/// may have passwords in them, other conversations whatever was said there.
pub(super) fn is_sensitive(path: &Path) -> bool {
    has_secret_name(path) || path.iter().any(reserved::is_reserved)
}

fn patterns(lines: &[String]) -> Result<Gitignore, FilesError> {
    let mut builder = GitignoreBuilder::new("");
    let failed = |pattern: &str, error: ignore::Error| {
        let (pattern, reason) = (pattern.to_owned(), error.to_string());
        FilesError::Pattern { pattern, reason }
    };
    // Where case does not tell files apart, it does not open one either.
    let is_caseless = cfg!(any(windows, target_os = "macos"));
    builder
        .case_insensitive(is_caseless)
        .map_err(|error| failed("", error))?;
    for line in lines {
        builder
            .add_line(None, line)
            .map_err(|error| failed(line, error))?;
    }
    builder
        .build()
        .map_err(|error| failed(&lines.join("\n"), error))
}

/// Refuses a path that ends in a slash and is no directory's.
fn check_slash(text: &str, spot: &Spot) -> Result<(), String> {
    match spot.found {
        Found::Directory(_) => Ok(()),
        _ if text.ends_with('/') => Err(format!(
            "{text:?} names a directory, and {} is none.",
            spot.shown()
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
