//! One place in the workspace, its directory held open.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use cap_fs_ext::{DirExt, FileTypeExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, FileType, OpenOptions};
use jp_resource::Checksum;

/// Size of the largest file that is read at once, in bytes.
pub(crate) const MAX_BYTES: u64 = 10_000_000;

/// How many names are tried for a temporary file.
const MAX_TEMPORARY: usize = 100;

/// A place in the workspace: a name in a directory that is open.
///
/// What is done with it is done with that name in that directory, and no link is followed for it. So whatever is put in
/// place of a directory on the way meanwhile, it is not gone through.
#[derive(Debug)]
pub(crate) struct Spot {
    /// The path from the root, with no link in it.
    pub(crate) path: PathBuf,
    /// What was there.
    pub(crate) found: Found,
    /// Where the name is; for what is not there, the innermost directory that is.
    pub(super) parent: Dir,
    /// Empty for the root itself.
    pub(super) name: OsString,
}

/// What is at a place.
#[derive(Debug)]
pub(crate) enum Found {
    File,
    Directory(Dir),
    /// A link, where links are not followed.
    Link,
    /// What is neither: a pipe, say.
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
    /// Returns what to call the place: its path from the root.
    pub(crate) fn shown(&self) -> String {
        shown(&self.path)
    }

    /// Refuses what is no file; the error says what it is.
    pub(crate) fn check_file(&self) -> Result<(), String> {
        let path = self.shown();
        Err(match self.found {
            Found::File => return Ok(()),
            Found::Directory(_) => {
                format!("{path} is a directory; `list_files` lists what is in it.")
            }
            Found::Link => format!("{path} is a symbolic link; name the file that it leads to."),
            Found::Special(kind) => format!("{path} is {kind} and no file."),
            Found::Nothing { .. } => {
                format!("There is no {path}; `list_files` lists what there is.")
            }
        })
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<File, String> {
        self.check_file()?;
        open(&self.parent, &self.name)
            .map_err(|error| format!("{} can't be read: {error}.", self.shown()))
    }

    /// Reads the file.
    pub(crate) fn content(&self) -> Result<Content, String> {
        let file = self.open()?;
        let failed = |error: io::Error| format!("{} can't be read: {error}.", self.shown());
        let size = file.metadata().map_err(failed)?.len();
        let mut bytes = Vec::new();
        if size <= MAX_BYTES {
            file.take(MAX_BYTES + 1)
                .read_to_end(&mut bytes)
                .map_err(failed)?;
        }
        let size = size.max(bytes.len() as u64);
        Ok(if size > MAX_BYTES {
            Content::TooLarge { size }
        } else {
            Content::Whole(bytes)
        })
    }

    /// Refuses a file that no longer has the bytes it had.
    pub(crate) fn check_unchanged(&self, checksum: Checksum) -> Result<(), String> {
        match self.content()? {
            Content::Whole(bytes) if Checksum::compute(&bytes) == checksum => Ok(()),
            _ => Err(format!(
                "{} was changed by something else after this call was made; read it again.",
                self.shown()
            )),
        }
    }

    /// Puts new content in place of the file, if its bytes still have the checksum; at every moment either the old or
    /// the new content is there, whole.
    pub(crate) fn replace(&self, checksum: Checksum, content: &[u8]) -> Result<(), String> {
        let failed = |error: io::Error| format!("{} can't be written: {error}.", self.shown());
        let permissions = self.open()?.metadata().map_err(failed)?.permissions();
        let (name, mut file) = self.temporary().map_err(failed)?;
        // In this order: nobody reads the new content who may not read the old.
        let written = file
            .set_permissions(permissions)
            .and_then(|()| file.write_all(content));
        let placed = written
            .and_then(|()| file.sync_all())
            .map_err(failed)
            .and_then(|()| {
                self.check_unchanged(checksum)?;
                self.parent
                    .rename(&name, &self.parent, &self.name)
                    .map_err(failed)
            });
        if placed.is_err() {
            // What can't be removed is left behind; the error that counts is the other.
            _ = self.parent.remove_file(&name);
        }
        placed
    }

    /// Makes the file, and the directories above it that are missing.
    pub(crate) fn create(&self, content: &[u8]) -> Result<(), String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!("{} exists by now.", self.shown()),
            _ => format!("{} can't be written: {error}.", self.shown()),
        };
        let parent = self.with_parents().map_err(failed)?;
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
        removed.map_err(|error| format!("{} can't be deleted: {error}.", self.shown()))
    }

    /// Moves the file to a place where nothing is.
    ///
    /// By a second link to it, which unlike a renaming never replaces what has come there meanwhile; where the file
    /// system has no links, by renaming.
    pub(crate) fn move_to(&self, to: &Self) -> Result<(), String> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!("{} exists by now.", to.shown()),
            _ => format!(
                "{} can't be moved to {}: {error}.",
                self.shown(),
                to.shown()
            ),
        };
        let parent = to.with_parents().map_err(failed)?;
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

    /// Opens the directory that the name is to be in, making what is missing of it.
    fn with_parents(&self) -> io::Result<Dir> {
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

    /// Makes an empty file beside this one, which nobody else may read.
    fn temporary(&self) -> io::Result<(OsString, File)> {
        let mut names =
            (0..MAX_TEMPORARY).map(|number| OsString::from(format!(".{number}.jp-edit")));
        let made = names.find_map(|name| match new_file(&self.parent, &name, &private()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            made => Some(made.map(|file| (name, file))),
        });
        made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
    }
}

/// Opens a file for reading: no link, and nothing that would have to be waited for.
pub(crate) fn open(directory: &Dir, name: impl AsRef<Path>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true).follow(FollowSymlinks::No);
    let file = directory.open_with(name, &options)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no file any more")),
    }
}

/// Returns what opens a file that nobody else may read, from the moment on when it is made.
fn private() -> OpenOptions {
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

/// Returns what to call a path from the root.
pub(crate) fn shown(path: &Path) -> String {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    if names.iter().all(|name| name.is_empty()) {
        ".".to_owned()
    } else {
        names.join("/")
    }
}

/// Returns what to call what is neither file nor directory nor link.
pub(crate) fn special(kind: FileType) -> Option<&'static str> {
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
        let (name, _) = spot.temporary().unwrap();
        assert_eq!(mode(&root.path().join(name)), 0o600, "as it is made");
        spot.replace(Checksum::compute(b"old"), b"new").unwrap();
        assert_eq!(mode(&root.path().join("a")), 0o600);
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "new");
    }
}
