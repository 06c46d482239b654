//! Paths from clients, and the directory that they can't leave.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File as Opened, OpenOptions};

use crate::Limits;

#[cfg(test)]
mod tests;

/// A relative path that stays below the directory that it is joined to.
///
/// The value of a parameter is decoded once. It is not decoded again, so `%2e%2e` in it is just a name. The
/// rules are the same on all platforms, apart from one line:
///
/// | path | |
/// |---|---|
/// | `notes.org`, `a/b c.org`, `..a`, `%2e%2e/x` | accepted |
/// | `/etc/passwd`, `//host/share` | [`PathError::Absolute`] |
/// | `..`, `a/../b`, `.`, `a/./b` | [`PathError::Dots`] |
/// | ``, `a//b`, `a/` | [`PathError::EmptyName`] |
/// | `C:/x`, `c:x`, `a/C:x` | [`PathError::DriveLetter`] |
/// | `a\b`, `\\host\share` | [`PathError::Backslash`] |
/// | `a.txt:stream` | [`PathError::DriveLetter`] on Windows, where it names another content of `a.txt` |
/// | with a NUL | [`PathError::Nul`] |
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathParam(String);

/// A path that is refused, or a file that can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path starts with a slash.
    #[error("the path must be relative")]
    Absolute,
    /// A name is `..` or `.`.
    #[error("\"..\" and \".\" can't be used in the path")]
    Dots,
    /// A name is empty: between two slashes, at the end, or the whole path.
    #[error("a name in the path is empty")]
    EmptyName,
    /// A name starts with a letter and a colon; on Windows, a name has a colon.
    #[error("a drive letter can't be used in the path")]
    DriveLetter,
    /// The path has a backslash.
    #[error("the path has a backslash; names are separated by \"/\"")]
    Backslash,
    /// The path has a NUL.
    #[error("the path has a NUL character")]
    Nul,
    /// A symbolic link on the path leads out of the root.
    #[error("the path points outside the directory")]
    Escape,
    /// The path names a directory, a pipe or a device.
    #[error("the path does not name a file")]
    NotAFile,
    /// The file is larger than it may be.
    #[error("the file has more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The file system reports an error.
    #[error("the path can't be opened: {0}")]
    Io(#[source] io::Error),
}

/// A directory that a [`PathParam`] can't leave, even if symbolic links change in the meantime.
///
/// ```
/// use mcp_resources::{Parameters, ReadError, ResourceTemplate, Root};
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// let root = Root::open(directory)?;
/// let files = ResourceTemplate::new("notes:///{+path}", "Notes", move |parameters: Parameters| {
///     Ok::<_, ReadError>(root.read_text(&parameters.path("path")?)?)
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    directory: Dir,
    limit: u64,
}

impl PathParam {
    /// Checks a path.
    ///
    /// # Errors
    ///
    /// See the table.
    pub fn new(path: impl Into<String>) -> Result<Self, PathError> {
        let path = path.into();
        if path.contains('\0') {
            return Err(PathError::Nul);
        }
        if path.contains('\\') {
            return Err(PathError::Backslash);
        }
        if path.starts_with('/') {
            return Err(PathError::Absolute);
        }
        path.split('/').try_for_each(check_name)?;
        Ok(Self(path))
    }

    /// Returns the path as a text, with slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_name(name: &str) -> Result<(), PathError> {
    match name.as_bytes() {
        [] => Err(PathError::EmptyName),
        b"." | b".." => Err(PathError::Dots),
        [letter, b':', ..] if letter.is_ascii_alphabetic() => Err(PathError::DriveLetter),
        _ if cfg!(windows) && name.contains(':') => Err(PathError::DriveLetter),
        _ => Ok(()),
    }
}

impl fmt::Display for PathParam {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl AsRef<Path> for PathParam {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl Root {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().canonicalize()?;
        let directory = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self {
            path,
            directory,
            limit: Limits::default().bytes as u64,
        })
    }

    /// Sets how many bytes a file may have. The default is that of [`Limits`].
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Returns the directory, absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// [`PathError::Escape`], [`PathError::NotAFile`] or [`PathError::Io`].
    pub fn file(&self, path: &PathParam) -> Result<File, PathError> {
        check_regular(
            self.directory
                .open_with(path, &for_reading())
                .map_err(PathError::opening)?,
        )
    }

    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// [`PathError::TooLarge`], and as [`Root::file`].
    pub fn read(&self, path: &PathParam) -> Result<Vec<u8>, PathError> {
        read_up_to(self.limit, self.file(path)?)
    }

    /// Reads a whole file of UTF-8.
    ///
    /// # Errors
    ///
    /// As [`Root::read`].
    pub fn read_text(&self, path: &PathParam) -> Result<String, PathError> {
        String::from_utf8(self.read(path)?)
            .map_err(|error| PathError::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    /// Reads a whole file by a path without any symbolic link, as [`read_unlinked`] does from the root of the
    /// file system.
    ///
    /// # Errors
    ///
    /// As [`Root::read`]. A link on the path is [`PathError::Io`], and an empty path [`PathError::Dots`].
    pub fn read_unlinked(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, PathError> {
        let directory = self.directory.try_clone().map_err(PathError::Io)?;
        read_up_to(self.limit, open_unlinked(directory, path.as_ref())?)
    }

    /// Returns the absolute path of an existing file, without symbolic links, to compare it with others.
    ///
    /// To read the file, use the methods above: if you open it by this path, a link that was put there in the
    /// meantime is followed.
    ///
    /// # Errors
    ///
    /// As [`Root::file`].
    pub fn join(&self, path: &PathParam) -> Result<PathBuf, PathError> {
        let below = self
            .directory
            .canonicalize(path)
            .map_err(PathError::opening)?;
        Ok(self.path.join(below))
    }

    /// Returns the path of a file below the root for [`ResourceTemplate::source`]. The file need not exist, but
    /// its directory must. `None` for a path that leads out of the root.
    ///
    /// [`ResourceTemplate::source`]: crate::ResourceTemplate::source
    pub fn source(&self, path: &PathParam) -> Option<PathBuf> {
        match self.join(path) {
            Ok(path) => Some(path),
            Err(PathError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                self.missing_path(path)
            }
            Err(_) => None,
        }
    }

    /// Returns the path that a missing file would have; `None` for a broken link.
    fn missing_path(&self, path: &PathParam) -> Option<PathBuf> {
        let (parent, name) = path
            .as_str()
            .rsplit_once('/')
            .unwrap_or((".", path.as_str()));
        let parent = self.directory.canonicalize(parent).ok()?;
        let below = parent.join(name);
        self.directory
            .symlink_metadata(&below)
            .is_err()
            .then(|| self.path.join(below))
    }
}

/// Reads a whole file of at most `limit` bytes. Symbolic links may lead anywhere.
///
/// This is for a path from the user, for example from the command line. Use a [`Root`] for a path from a client.
///
/// ```
/// use mcp_resources::{Resource, read_file};
///
/// Resource::new("notes://today", "Today", || read_file("today.md", 1024 * 1024)).mime_type("text/markdown");
/// ```
///
/// # Errors
///
/// [`PathError::TooLarge`], [`PathError::NotAFile`] or [`PathError::Io`].
pub fn read_file(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, PathError> {
    let file = Opened::open_ambient_with(path, &for_reading(), ambient_authority());
    read_up_to(limit, check_regular(file.map_err(PathError::Io)?)?)
}

/// Reads a whole file of at most `limit` bytes by a path without any symbolic link, as `canonicalize` returns it.
///
/// The file that is read is the one at the checked path, even if the path gets a link meanwhile.
///
/// # Errors
///
/// As [`read_file`]. A link on the path is [`PathError::Io`], and a relative path [`PathError::Dots`].
pub fn read_unlinked(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, PathError> {
    let path = path.as_ref();
    let start = path.ancestors().last().unwrap_or(path);
    let (Ok(below), true) = (path.strip_prefix(start), path.is_absolute()) else {
        return Err(PathError::Dots);
    };
    let directory = Dir::open_ambient_dir(start, ambient_authority()).map_err(PathError::Io)?;
    read_up_to(limit, open_unlinked(directory, below)?)
}

fn open_unlinked(mut directory: Dir, path: &Path) -> Result<File, PathError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(PathError::Dots);
    };
    for name in parent {
        directory = directory.open_dir_nofollow(name).map_err(PathError::Io)?;
    }
    let mut options = for_reading();
    options.follow(FollowSymlinks::No);
    check_regular(directory.open_with(name, &options).map_err(PathError::Io)?)
}

/// Returns how to open a file: for reading, and without waiting for the writer of a pipe.
fn for_reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true);
    options
}

fn check_regular(file: Opened) -> Result<File, PathError> {
    match file.metadata().map_err(PathError::Io)?.is_file() {
        true => Ok(file.into_std()),
        false => Err(PathError::NotAFile),
    }
}

fn read_up_to(limit: u64, file: File) -> Result<Vec<u8>, PathError> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(PathError::Io)?;
    match bytes.len() as u64 > limit {
        true => Err(PathError::TooLarge { limit }),
        false => Ok(bytes),
    }
}

impl PathError {
    /// Converts an error of opening. cap-std refuses an escape with its own error, which has no code of the system.
    fn opening(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::Escape,
            _ => Self::Io(error),
        }
    }
}
