//! The store's directory, opened once, so that a name in it is looked up from there.

use std::{fs::File, io, path::Path};

#[cfg(not(unix))]
pub(super) use self::portable::Directory;
#[cfg(unix)]
pub(super) use self::unix::Directory;

impl Directory {
    /// Opens the directory at `path`, making it if it is absent.
    pub(super) fn open_or_create(path: &Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(path)?;
                Self::open(path)
            }
            result => result,
        }
    }

    /// Creates a file that must not exist, and its directory where that is absent.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        match self.create_file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_parent(name)?;
                self.create_file(name)
            }
            result => result,
        }
    }

    fn create_parent(&self, name: &str) -> io::Result<()> {
        let parent = Path::new(name).parent().and_then(Path::to_str).unwrap_or_default();
        match self.create_directory(parent) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            result => result,
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::OwnedFd;

    use rustix::{
        fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat},
        io::retry_on_intr,
    };

    use super::*;

    /// A directory, and names relative to it.
    #[derive(Debug)]
    pub(in super::super) struct Directory {
        directory: OwnedFd,
    }

    impl Directory {
        pub(in super::super) fn open(path: &Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = retry_on_intr(|| openat(CWD, path, flags, Mode::empty()))?;
            Ok(Self { directory })
        }

        /// Opens a file to read it and to freshen its modification time.
        pub(in super::super) fn open_file(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = retry_on_intr(|| openat(&self.directory, name, flags, Mode::empty()))?;
            Ok(file.into())
        }

        pub(super) fn create_file(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o666);
            let file = retry_on_intr(|| openat(&self.directory, name, flags, mode))?;
            Ok(file.into())
        }

        pub(super) fn create_directory(&self, name: &str) -> io::Result<()> {
            Ok(mkdirat(&self.directory, name, Mode::from_raw_mode(0o777))?)
        }

        pub(in super::super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(renameat(&self.directory, from, &self.directory, to)?)
        }

        pub(in super::super) fn remove(&self, name: &str) -> io::Result<()> {
            Ok(unlinkat(&self.directory, name, AtFlags::empty())?)
        }

        /// Makes everything written to this file system durable.
        #[cfg(target_os = "linux")]
        pub(in super::super) fn sync_file_system(&self) -> io::Result<()> {
            Ok(retry_on_intr(|| rustix::fs::syncfs(&self.directory))?)
        }

        /// Returns whether the sync of any file also makes durable every name given before.
        ///
        /// So it is with the one journal of ext4 and XFS, and without a disk. Btrfs logs files one by one.
        #[cfg(target_os = "linux")]
        pub(in super::super) fn orders_names(&self) -> bool {
            const EXT4: u32 = 0xef53;
            const XFS: u32 = 0x5846_5342;
            const TMPFS: u32 = 0x0102_1994;
            let kind = rustix::fs::fstatfs(&self.directory).map(|system| system.f_type as u32);
            matches!(kind, Ok(EXT4 | XFS | TMPFS))
        }

        /// Returns `false`: nothing of the kind is promised here.
        #[cfg(not(target_os = "linux"))]
        pub(in super::super) fn orders_names(&self) -> bool {
            false
        }

        /// Makes the names in a directory durable; `""` is this one.
        #[cfg(not(target_os = "linux"))]
        pub(in super::super) fn sync_names(&self, name: &str) -> io::Result<()> {
            let name = if name.is_empty() { "." } else { name };
            self.open_file(name)?.sync_all()
        }
    }
}

#[cfg(not(unix))]
mod portable {
    use std::path::PathBuf;

    use super::*;

    /// A directory, and names relative to it.
    #[derive(Debug)]
    pub(in super::super) struct Directory {
        path: PathBuf,
    }

    impl Directory {
        pub(in super::super) fn open(path: &Path) -> io::Result<Self> {
            std::fs::metadata(path)?;
            Ok(Self { path: path.to_owned() })
        }

        /// Opens a file to read it and to freshen its modification time.
        pub(in super::super) fn open_file(&self, name: &str) -> io::Result<File> {
            File::options().read(true).write(true).open(self.path.join(name))
        }

        pub(super) fn create_file(&self, name: &str) -> io::Result<File> {
            File::options().write(true).create_new(true).open(self.path.join(name))
        }

        pub(super) fn create_directory(&self, name: &str) -> io::Result<()> {
            std::fs::create_dir(self.path.join(name))
        }

        pub(in super::super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            std::fs::rename(self.path.join(from), self.path.join(to))
        }

        pub(in super::super) fn remove(&self, name: &str) -> io::Result<()> {
            std::fs::remove_file(self.path.join(name))
        }

        /// Returns `true`: nothing is known to the contrary here.
        pub(in super::super) fn orders_names(&self) -> bool {
            true
        }

        /// Does nothing: here the file system orders names by itself, and a directory can't be synced.
        pub(in super::super) fn sync_names(&self, _name: &str) -> io::Result<()> {
            Ok(())
        }
    }
}
