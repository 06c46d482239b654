//! Opens names in a directory without following symbolic links.
//!
//! The files below `.jp/` may come from a clone. A link there could lead to another project's
//! conversations, so every name is opened relative to a handle, and a link in it is an error. There is no
//! separate check, so a link that appears between two calls is refused, too.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

#[cfg(not(unix))]
use self::portable as system;
#[cfg(unix)]
use self::unix as system;

/// The error of a symbolic link below `.jp/`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is a symbolic link, which jp does not follow there", path.display())]
pub struct RefusedLink {
    /// The link.
    pub path: PathBuf,
}

/// The error of a directory, a pipe, a socket or a device in place of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is {kind}, not a regular file")]
pub struct NotRegular {
    kind: &'static str,
}

/// The access of other users to new files and directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The user's umask decides.
    Shared,
    /// Other users have no access.
    Private,
}

/// An open directory.
///
/// A name to open may have several parts. A name to create, rename or remove has one, because the system
/// would follow a link in the parts before the last.
#[derive(Debug)]
pub(crate) struct Directory {
    handle: system::Handle,
    path: PathBuf,
    access: Access,
}

/// The purpose of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Update,
}

impl RefusedLink {
    /// Returns the link that an error is about, if there is one.
    #[must_use]
    pub fn behind(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl NotRegular {
    /// Returns the special file that an error is about, if there is one.
    #[must_use]
    pub fn behind(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl Access {
    fn file_mode(self) -> u32 {
        match self {
            Self::Shared => 0o666,
            Self::Private => 0o600,
        }
    }

    fn directory_mode(self) -> u32 {
        match self {
            Self::Shared => 0o777,
            Self::Private => 0o700,
        }
    }
}

impl Directory {
    /// Opens the directory at `path`, which may contain links.
    pub(crate) fn open(path: &Path, access: Access) -> io::Result<Self> {
        Ok(Self {
            handle: system::Handle::open(or_this(path))?,
            path: path.to_owned(),
            access,
        })
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory below this one.
    pub(crate) fn open_directory(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let name = name.as_ref();
        let refuse = |error| self.find_link(name).map_or(error, io::Error::other);
        let handle = self.handle.open_directory(or_this(name)).map_err(refuse)?;
        Ok(Self {
            handle,
            path: self.path.join(name),
            access: self.access,
        })
    }

    /// Opens a regular file for reading and for updating its modification time. Fails for a pipe instead
    /// of waiting.
    pub(crate) fn open_file(&self, name: impl AsRef<Path>) -> io::Result<(File, Metadata)> {
        self.open_regular(name.as_ref(), Purpose::Read)
    }

    /// Opens an existing regular file for reading and writing. Fails for a pipe instead of waiting.
    pub(crate) fn open_for_update(&self, name: impl AsRef<Path>) -> io::Result<(File, Metadata)> {
        self.open_regular(name.as_ref(), Purpose::Update)
    }

    fn open_regular(&self, name: &Path, purpose: Purpose) -> io::Result<(File, Metadata)> {
        let file = self
            .handle
            .open_file(name, purpose)
            .map_err(|error| self.explain(name, error))?;
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok((file, metadata)),
            false => Err(io::Error::other(NotRegular {
                kind: kind(&metadata),
            })),
        }
    }

    /// Creates a file that must not exist.
    pub(crate) fn create_file(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let (name, mode) = (name.as_ref(), self.access.file_mode());
        self.handle
            .create_file(name, mode)
            .map_err(|error| self.explain(name, error))
    }

    /// Creates a file that must not exist, and its directory if it is missing.
    pub(crate) fn create_file_below(&self, name: &str) -> io::Result<File> {
        match self.create_file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = Path::new(name).parent().unwrap_or(Path::new(""));
                match self.create_directory(parent) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => self.create_file(name),
                }
            }
            result => result,
        }
    }

    /// Makes a directory in this one.
    pub(crate) fn create_directory(&self, name: impl AsRef<Path>) -> io::Result<()> {
        self.handle
            .create_directory(name.as_ref(), self.access.directory_mode())
    }

    /// Renames an entry of this directory.
    pub(crate) fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.handle.rename(from.as_ref(), to.as_ref())
    }

    /// Removes a file. Of a link, removes the link.
    pub(crate) fn remove_file(&self, name: impl AsRef<Path>) -> io::Result<()> {
        self.handle.remove_file(name.as_ref())
    }

    /// Removes a directory in this one and its content. Removes links without following them.
    pub(crate) fn remove_directory(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let directory = self.open_directory(&name)?;
        for entry in directory.entries()? {
            match directory.remove_entry(&entry) {
                // Another process took it for a leftover and removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        drop(directory);
        self.handle.remove_directory(name.as_ref())
    }

    fn remove_entry(&self, name: &OsStr) -> io::Result<()> {
        match self.is_directory(name)? {
            true => self.remove_directory(name),
            false => self.remove_file(name),
        }
    }

    /// Returns the names of its entries, in no particular order.
    pub(crate) fn entries(&self) -> io::Result<Vec<OsString>> {
        self.handle.entries()
    }

    /// Returns true if an entry is a directory. A link to one doesn't count.
    pub(crate) fn is_directory(&self, name: impl AsRef<Path>) -> io::Result<bool> {
        Ok(self.look_at(name.as_ref())?.is_dir())
    }

    /// Fails if an entry is a link.
    pub(crate) fn refuse_link(&self, name: impl AsRef<Path>) -> io::Result<()> {
        match self.look_at(name.as_ref())?.is_symlink() {
            true => Err(io::Error::other(RefusedLink {
                path: self.path.join(name),
            })),
            false => Ok(()),
        }
    }

    /// Returns the metadata of an entry without opening it.
    ///
    /// The entry's path may contain a new link. That is safe, because nothing is read or changed there,
    /// and later operations check for links again.
    pub(crate) fn look_at(&self, name: &Path) -> io::Result<Metadata> {
        fs::symlink_metadata(self.path.join(name))
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.handle.sync()
    }

    /// Makes everything written to this file system durable.
    #[cfg(target_os = "linux")]
    pub(crate) fn sync_file_system(&self) -> io::Result<()> {
        self.handle.sync_file_system()
    }

    /// Returns true if syncing a file also makes all earlier names durable.
    pub(crate) fn orders_names(&self) -> bool {
        self.handle.orders_names()
    }

    /// Replaces an error with one that names the link or special file, if that caused it.
    fn explain(&self, name: &Path, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::NotFound {
            return error;
        }
        if let Some(link) = self.find_link(name) {
            return io::Error::other(link);
        }
        match self.look_at(name) {
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                io::Error::other(NotRegular {
                    kind: kind(&metadata),
                })
            }
            _ => error,
        }
    }

    /// Finds the first link among the parts of a name.
    fn find_link(&self, name: &Path) -> Option<RefusedLink> {
        let mut reached = PathBuf::new();
        for part in parts(name) {
            reached.push(part);
            if self.look_at(&reached).ok()?.is_symlink() {
                return Some(RefusedLink {
                    path: self.path.join(reached),
                });
            }
        }
        None
    }
}

/// Reads an open file up to its length at the time of opening.
pub(crate) fn read_whole(file: File, metadata: &Metadata) -> io::Result<Vec<u8>> {
    let mut bytes = room_for(metadata.len())?;
    // A writer first overwrites the closing bracket. Text after the old length makes no sense without
    // that part.
    file.take(metadata.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the buffer for a file of this length. A sparse file can claim any length, so the capacity is limited.
fn room_for(length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    Ok(bytes)
}

/// Returns the usual name of a kind of file.
fn kind(metadata: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        match () {
            () if kind.is_fifo() => return "a named pipe",
            () if kind.is_socket() => return "a socket",
            () if kind.is_block_device() || kind.is_char_device() => return "a device",
            () => {}
        }
    }
    if metadata.is_dir() {
        "a directory"
    } else {
        "a special file"
    }
}

/// Returns the name for a handle. The empty name means the directory itself.
fn or_this(name: &Path) -> &Path {
    if name.as_os_str().is_empty() {
        Path::new(".")
    } else {
        name
    }
}

/// Returns the parts of a name, without `.`.
fn parts(name: &Path) -> impl Iterator<Item = Component<'_>> {
    name.components().filter(|part| *part != Component::CurDir)
}

#[cfg(unix)]
mod unix {
    use std::os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    };

    use rustix::{
        fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, renameat, unlinkat},
        io::{Errno, retry_on_intr},
    };

    use super::*;

    /// An open directory.
    #[derive(Debug)]
    pub(super) struct Handle(OwnedFd);

    /// The flags for directories before the last part of a name. `PATH` needs no permission to list them.
    #[cfg(target_os = "linux")]
    const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    const ON_THE_WAY: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);

    impl Handle {
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            Ok(Self(retry_on_intr(|| {
                openat(CWD, path, ON_THE_WAY, Mode::empty())
            })?))
        }

        pub(super) fn open_directory(&self, name: &Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(Self(open(self.0.as_fd(), name, flags, Mode::empty())?))
        }

        pub(super) fn open_file(&self, name: &Path, purpose: Purpose) -> io::Result<File> {
            let purpose = match purpose {
                Purpose::Read => OFlags::RDONLY,
                Purpose::Update => OFlags::RDWR,
            };
            // Otherwise, opening a pipe would wait, and a terminal could become jp's.
            let flags = purpose | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            Ok(open(self.0.as_fd(), name, flags, Mode::empty())?.into())
        }

        pub(super) fn create_file(&self, name: &Path, mode: u32) -> io::Result<File> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            Ok(open(self.0.as_fd(), name, flags, permissions(mode))?.into())
        }

        pub(super) fn create_directory(&self, name: &Path, mode: u32) -> io::Result<()> {
            Ok(mkdirat(&self.0, name, permissions(mode))?)
        }

        pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            Ok(renameat(&self.0, from, &self.0, to)?)
        }

        pub(super) fn remove_file(&self, name: &Path) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, AtFlags::empty())?)
        }

        pub(super) fn remove_directory(&self, name: &Path) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
        }

        pub(super) fn entries(&self) -> io::Result<Vec<OsString>> {
            Dir::read_from(&self.0)?
                .map(|entry| Ok(OsString::from_vec(entry?.file_name().to_bytes().to_vec())))
                .filter(|name| !matches!(name, Ok(name) if name == "." || name == ".."))
                .collect()
        }

        pub(super) fn sync(&self) -> io::Result<()> {
            Ok(retry_on_intr(|| rustix::fs::fsync(&self.0))?)
        }

        #[cfg(target_os = "linux")]
        pub(super) fn sync_file_system(&self) -> io::Result<()> {
            Ok(retry_on_intr(|| rustix::fs::syncfs(&self.0))?)
        }

        /// Returns true for ext4 and XFS, which have one journal, and for tmpfs, which has no disk. Btrfs
        /// logs files one by one.
        #[cfg(target_os = "linux")]
        pub(super) fn orders_names(&self) -> bool {
            const EXT4: u32 = 0xef53;
            const XFS: u32 = 0x5846_5342;
            const TMPFS: u32 = 0x0102_1994;
            let kind = rustix::fs::fstatfs(&self.0).map(|system| system.f_type as u32);
            matches!(kind, Ok(EXT4 | XFS | TMPFS))
        }

        /// Returns false, because other systems don't guarantee it.
        #[cfg(not(target_os = "linux"))]
        pub(super) fn orders_names(&self) -> bool {
            false
        }
    }

    fn permissions(mode: u32) -> Mode {
        Mode::from_bits_truncate(mode as rustix::fs::RawMode)
    }

    /// Opens a name without following a link in any of its parts.
    #[cfg(target_os = "linux")]
    fn open(
        from: BorrowedFd<'_>,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> rustix::io::Result<OwnedFd> {
        use rustix::fs::{ResolveFlags, openat2};
        match retry_on_intr(|| openat2(from, name, flags, mode, ResolveFlags::NO_SYMLINKS)) {
            // Linux before 5.6 lacks the call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => open_by_part(from, name, flags, mode),
            opened => opened,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open(
        from: BorrowedFd<'_>,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> rustix::io::Result<OwnedFd> {
        open_by_part(from, name, flags, mode)
    }

    /// Opens a name part by part, for systems that can't do it in one call.
    pub(super) fn open_by_part(
        from: BorrowedFd<'_>,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> rustix::io::Result<OwnedFd> {
        let mut parts = parts(name).peekable();
        let mut reached: Option<OwnedFd> = None;
        while let Some(part) = parts.next() {
            let at = reached.as_ref().map_or(from, AsFd::as_fd);
            let is_last = parts.peek().is_none();
            let (flags, mode) = if is_last {
                (flags, mode)
            } else {
                (ON_THE_WAY, Mode::empty())
            };
            let part = Path::new(part.as_os_str());
            reached = Some(retry_on_intr(|| {
                openat(at, part, flags | OFlags::NOFOLLOW, mode)
            })?);
        }
        reached.map_or_else(|| openat(from, ".", flags, mode), Ok)
    }
}

#[cfg(not(unix))]
mod portable {
    use super::*;

    /// The path of a directory. This system can't open names relative to a handle.
    #[derive(Debug)]
    pub(super) struct Handle(PathBuf);

    impl Handle {
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            fs::metadata(path)?;
            Ok(Self(path.to_owned()))
        }

        pub(super) fn open_directory(&self, name: &Path) -> io::Result<Self> {
            Self::open(&self.path_of(name)?)
        }

        pub(super) fn open_file(&self, name: &Path, _purpose: Purpose) -> io::Result<File> {
            File::options()
                .read(true)
                .write(true)
                .open(self.path_of(name)?)
        }

        pub(super) fn create_file(&self, name: &Path, _mode: u32) -> io::Result<File> {
            File::options()
                .write(true)
                .create_new(true)
                .open(self.path_of(name)?)
        }

        pub(super) fn create_directory(&self, name: &Path, _mode: u32) -> io::Result<()> {
            fs::create_dir(self.path_of(name)?)
        }

        pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        pub(super) fn remove_file(&self, name: &Path) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        pub(super) fn remove_directory(&self, name: &Path) -> io::Result<()> {
            fs::remove_dir(self.0.join(name))
        }

        pub(super) fn entries(&self) -> io::Result<Vec<OsString>> {
            fs::read_dir(&self.0)?
                .map(|entry| entry.map(|entry| entry.file_name()))
                .collect()
        }

        /// Does nothing, because this system can't sync a directory.
        pub(super) fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        /// Returns true, because names can't be synced in any case.
        pub(super) fn orders_names(&self) -> bool {
            true
        }

        /// Returns the path of a name if no part of it is a link.
        fn path_of(&self, name: &Path) -> io::Result<PathBuf> {
            let mut path = self.0.clone();
            for part in parts(name) {
                path.push(part);
                if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
                    return Err(io::Error::other(RefusedLink { path }));
                }
            }
            Ok(path)
        }
    }
}

/// Returns an opened directory; `None` if it is missing or a link. Readers report the link.
pub(crate) fn skip_absent(opened: io::Result<Directory>) -> io::Result<Option<Directory>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if RefusedLink::behind(&error).is_some() => Ok(None),
        opened => opened.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_longer_than_memory_is_an_error() {
        assert_eq!(
            room_for(1 << 62).unwrap_err().kind(),
            io::ErrorKind::OutOfMemory
        );
        assert_eq!(
            room_for(u64::MAX).unwrap_err().kind(),
            io::ErrorKind::OutOfMemory
        );
    }

    /// Links of every kind, at the end of a name and on the way.
    #[cfg(unix)]
    fn with_links() -> (tempfile::TempDir, Directory) {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("own/below")).unwrap();
        fs::write(root.join("own/below/file"), "own").unwrap();
        let absolute = root.join("own/below");
        for (target, link) in [
            (Path::new("below"), "own/relative"),
            (&absolute, "own/absolute"),
            (Path::new("nowhere"), "own/dangling"),
            (Path::new("below/file"), "own/to-file"),
            (Path::new("round"), "own/round"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let opened = Directory::open(root, Access::Shared).unwrap();
        (directory, opened)
    }

    #[cfg(unix)]
    const LINKS: [(&str, &str); 6] = [
        ("own/relative/file", "own/relative"),
        ("own/absolute/file", "own/absolute"),
        ("own/dangling/file", "own/dangling"),
        ("own/to-file", "own/to-file"),
        ("own/dangling", "own/dangling"),
        ("own/round", "own/round"),
    ];

    #[cfg(unix)]
    #[test]
    fn error_names_the_refused_link() {
        let (root, directory) = with_links();
        for (name, link) in LINKS {
            let refused = RefusedLink {
                path: root.path().join(link),
            };
            let behind = |error: io::Error| RefusedLink::behind(&error).cloned();
            assert_eq!(
                behind(directory.open_file(name).unwrap_err()),
                Some(refused.clone()),
                "{name}"
            );
            assert_eq!(
                behind(directory.open_for_update(name).unwrap_err()),
                Some(refused.clone())
            );
            assert_eq!(
                behind(directory.open_directory(name).unwrap_err()),
                Some(refused.clone())
            );
        }
        let error = directory.create_file("own/dangling/new").unwrap_err();
        assert!(RefusedLink::behind(&error).is_some(), "{error}");
        assert!(directory.create_file("own/dangling").is_err());
        assert_eq!(directory.open_file("own/below/file").unwrap().1.len(), 3);
        assert!(!root.path().join("own/nowhere").exists());
    }

    #[cfg(unix)]
    #[test]
    fn system_without_openat2_follows_no_link() {
        use std::os::fd::AsFd;

        use rustix::fs::{Mode, OFlags};
        let (root, _) = with_links();
        let base = File::open(root.path()).unwrap();
        let open = |name: &str| {
            super::unix::open_by_part(base.as_fd(), Path::new(name), OFlags::RDONLY, Mode::empty())
        };
        for (name, _) in LINKS {
            assert!(open(name).is_err(), "{name}");
        }
        assert!(open("own/below/file").is_ok() && open("own").is_ok() && open(".").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let root = Directory::open(directory.path(), Access::Shared).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), mode).unwrap();
        let _listener =
            std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
        fs::create_dir(directory.path().join("directory")).unwrap();
        for (name, kind) in [
            ("pipe", "a named pipe"),
            ("socket", "a socket"),
            ("directory", "a directory"),
        ] {
            let error = root.open_file(name).unwrap_err();
            assert_eq!(
                NotRegular::behind(&error),
                Some(&NotRegular { kind }),
                "{name}: {error}"
            );
        }
        assert!(root.open_for_update("pipe").is_err());
        let device = Directory::open(Path::new("/dev"), Access::Shared).unwrap();
        assert_eq!(
            device.open_file("null").unwrap_err().to_string(),
            "it is a device, not a regular file"
        );
    }

    #[cfg(unix)]
    #[test]
    fn removal_of_a_directory_follows_no_links() {
        let (root, directory) = with_links();
        fs::create_dir(root.path().join("theirs")).unwrap();
        fs::write(root.path().join("theirs/file"), "theirs").unwrap();
        std::os::unix::fs::symlink("../theirs", root.path().join("own/away")).unwrap();
        directory.remove_directory("own").unwrap();
        assert!(!root.path().join("own").exists());
        assert_eq!(
            fs::read_to_string(root.path().join("theirs/file")).unwrap(),
            "theirs"
        );
    }
}
