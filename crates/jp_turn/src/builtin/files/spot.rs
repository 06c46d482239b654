//! A place in the workspace, with its directory held open.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use cap_fs_ext::{DirExt, FileTypeExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, FileType, OpenOptions};
use jp_resource::Checksum;

/// The size of the largest file that is read at once, in bytes: far more than a context window, and
/// small enough for memory.
pub(crate) const MAX_BYTES: u64 = 10_000_000;

/// The number of names that are tried for a temporary file. Each name in use is a leftover of a
/// crash.
const MAX_TEMPORARY: usize = 100;

/// A place in the workspace: a name in a directory that is open.
///
/// Each operation uses that name in that directory and follows no link. If a directory on the way
/// is replaced meanwhile, the operation does not notice.
#[derive(Debug)]
pub(crate) struct Spot {
    /// The path from the root, with no link in it.
    pub(crate) path: PathBuf,
    /// The content when the path was followed.
    pub(crate) found: Found,
    /// The directory of the name. If it is missing, too, the innermost directory that exists.
    pub(super) parent: Dir,
    /// Empty for the root itself.
    pub(super) name: OsString,
}

/// The content of a place.
#[derive(Debug)]
pub(crate) enum Found {
    File,
    Directory(Dir),
    /// A link that was not followed.
    Link,
    /// Something else, for example a pipe, in words.
    Special(&'static str),
    /// Nothing; some of the directories above it may be missing too.
    Nothing {
        above: Vec<OsString>,
    },
}

/// A file's content.
#[derive(Debug)]
pub(crate) enum Content {
    Whole(Vec<u8>),
    /// It has more than [`MAX_BYTES`].
    TooLarge {
        size: u64,
    },
}

impl Spot {
    /// Returns the path from the root, for texts.
    pub(crate) fn display(&self) -> String {
        display_path(&self.path)
    }

    /// Fails unless there is a file.
    pub(crate) fn check_file(&self) -> Result<(), String> {
        let path = self.display();
        Err(match self.found {
            Found::File => return Ok(()),
            Found::Directory(_) => {
                format!("{path} is a directory. Use `list_files` to list it.")
            }
            Found::Link => format!("{path} is a symbolic link. Use the path of its target."),
            Found::Special(kind) => format!("{path} is {kind}, not a file."),
            Found::Nothing { .. } => {
                format!("{path} does not exist. Use `list_files` to see what exists.")
            }
        })
    }

    /// Returns the error of an operation on the place.
    pub(crate) fn describe_error(&self, operation: &str, error: &io::Error) -> String {
        format!("{} can't be {operation}: {error}.", self.display())
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<File, String> {
        self.check_file()?;
        open(&self.parent, &self.name).map_err(|error| self.describe_error("read", &error))
    }

    /// Reads the file.
    pub(crate) fn content(&self) -> Result<Content, String> {
        let file = self.open()?;
        let size = file
            .metadata()
            .map_err(|error| self.describe_error("read", &error))?
            .len();
        let mut bytes = Vec::new();
        if size <= MAX_BYTES {
            file.take(MAX_BYTES + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| self.describe_error("read", &error))?;
        }
        // The file may have grown since its size was read.
        let size = size.max(bytes.len() as u64);
        Ok(if size > MAX_BYTES {
            Content::TooLarge { size }
        } else {
            Content::Whole(bytes)
        })
    }

    /// Fails if the file's content has changed.
    pub(crate) fn check_unchanged(&self, checksum: Checksum) -> Result<(), String> {
        match self.content()? {
            Content::Whole(bytes) if Checksum::compute(&bytes) == checksum => Ok(()),
            _ => Err(format!(
                "{} was changed by something else after this call was made. Read it again.",
                self.display()
            )),
        }
    }

    /// Replaces the file's content if it still has the checksum. At every moment, the file has
    /// either the old or the new content as a whole.
    pub(crate) fn replace(&self, checksum: Checksum, content: &[u8]) -> Result<(), String> {
        let permissions = self
            .open()?
            .metadata()
            .map_err(|error| self.describe_error("written", &error))?
            .permissions();
        let (name, mut file) = self
            .create_temporary()
            .map_err(|error| self.describe_error("written", &error))?;
        // Set the permissions before writing, so that the new content is never readable by more
        // users than the old.
        let written = file
            .set_permissions(permissions)
            .and_then(|()| file.write_all(content));
        let placed = written
            .and_then(|()| file.sync_all())
            .map_err(|error| self.describe_error("written", &error))
            .and_then(|()| {
                self.check_unchanged(checksum)?;
                self.parent
                    .rename(&name, &self.parent, &self.name)
                    .map_err(|error| self.describe_error("written", &error))
            });
        if placed.is_err() {
            // If this fails, too, the temporary file stays. The first error is the one to report.
            _ = self.parent.remove_file(&name);
        }
        placed
    }

    /// Creates the file and missing directories above it.
    pub(crate) fn create(&self, content: &[u8]) -> Result<(), String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{} was created in the meantime.", self.display())
            }
            _ => self.describe_error("written", &error),
        };
        let parent = self.create_parents().map_err(failed)?;
        let mut file = new_file(&parent, &self.name, &OpenOptions::new()).map_err(failed)?;
        file.write_all(content)
            .and_then(|()| file.sync_all())
            .map_err(|error| {
                _ = parent.remove_file(&self.name);
                failed(error)
            })
    }

    /// Removes the file or the empty directory.
    pub(crate) fn remove(&self) -> Result<(), String> {
        let removed = match self.found {
            Found::Directory(_) => self.parent.remove_dir(&self.name),
            _ => self.parent.remove_file(&self.name),
        };
        removed.map_err(|error| self.describe_error("deleted", &error))
    }

    /// Moves the file to an empty place.
    ///
    /// Creates a hard link and removes the old name. Unlike a rename, that never replaces a file
    /// that appeared meanwhile. If the file system has no hard links, the file is renamed.
    pub(crate) fn move_to(&self, to: &Self) -> Result<(), String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{} was created in the meantime.", to.display())
            }
            _ => format!(
                "{} can't be moved to {}: {error}.",
                self.display(),
                to.display()
            ),
        };
        let parent = to.create_parents().map_err(failed)?;
        match self.parent.hard_link(&self.name, &parent, &to.name) {
            Ok(()) => self.parent.remove_file(&self.name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) if parent.symlink_metadata(&to.name).is_ok() => {
                Err(io::ErrorKind::AlreadyExists.into())
            }
            Err(_) => self.parent.rename(&self.name, &parent, &to.name),
        }
        .map_err(failed)
    }

    /// Opens the directory for the name, and creates missing directories.
    fn create_parents(&self) -> io::Result<Dir> {
        let mut parent = self.parent.try_clone()?;
        if let Found::Nothing { above } = &self.found {
            for name in above {
                match parent.create_dir(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => parent = parent.open_dir_nofollow(name)?,
                }
            }
        }
        Ok(parent)
    }

    /// Creates an empty file in the same directory that only the user can read.
    fn create_temporary(&self) -> io::Result<(OsString, File)> {
        let mut names =
            (0..MAX_TEMPORARY).map(|number| OsString::from(format!(".{number}.jp-edit")));
        let made = names.find_map(
            |name| match new_file(&self.parent, &name, &private_options()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                made => Some(made.map(|file| (name, file))),
            },
        );
        made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
    }
}

/// Opens a file for reading. Refuses links, and anything that could block, for example a pipe.
pub(crate) fn open(directory: &Dir, name: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true).follow(FollowSymlinks::No);
    let file = directory.open_with(name, &options)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no longer a file")),
    }
}

/// Returns options that create a file that only the user can read from the start.
fn private_options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only there a file has a mode"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn new_file(directory: &Dir, name: &OsString, options: &OpenOptions) -> io::Result<File> {
    let mut options = options.clone();
    options
        .write(true)
        .create_new(true)
        .follow(FollowSymlinks::No);
    directory.open_with(name, &options)
}

/// Returns a path from the root for texts, with `/` as the separator.
pub(crate) fn display_path(path: &Path) -> String {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    if names.iter().all(|name| name.is_empty()) {
        ".".to_owned()
    } else {
        names.join("/")
    }
}

/// Returns the words for something that is not a file, a directory or a link.
pub(crate) fn special_kind(kind: FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() || kind.is_dir() || kind.is_symlink() => None,
        _ if kind.is_fifo() => Some("a pipe"),
        _ if kind.is_socket() => Some("a socket"),
        _ if kind.is_block_device() || kind.is_char_device() => Some("a device"),
        _ => Some("something special"),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// A file that only its owner may read, and its place.
    fn owned(root: &Path) -> Spot {
        fs::write(root.join("a"), "old").unwrap();
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
        let parent = Dir::open_ambient_dir(root, cap_std::ambient_authority()).unwrap();
        Spot {
            path: "a".into(),
            found: Found::File,
            parent,
            name: "a".into(),
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn new_content_is_never_readable_by_others() {
        let root = tempfile::tempdir().unwrap();
        let spot = owned(root.path());
        let (name, _) = spot.create_temporary().unwrap();
        assert_eq!(mode(&root.path().join(name)), 0o600, "as it is made");
        spot.replace(Checksum::compute(b"old"), b"new").unwrap();
        assert_eq!(mode(&root.path().join("a")), 0o600);
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "new");
    }
}
