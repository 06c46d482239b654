use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use crate::{
    directory::{Access, Directory, read_whole},
    files::{FileVersion, TEMPORARY, is_temporary},
};

/// The files below a base directory, which are opened by path without following a symbolic link.
///
/// The path of the base may contain links. It is opened once, and clones share it. For `.jp/`, the base
/// is the directory that contains it, so that `.jp` can't be a link either.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    base: Arc<Path>,
    access: Access,
    opened: Arc<OnceLock<Directory>>,
}

impl Tree {
    /// Makes the tree below `base`, which need not exist. Does no I/O.
    pub(crate) fn new(base: &Path, access: Access) -> Self {
        Self {
            base: base.into(),
            access,
            opened: Arc::default(),
        }
    }

    /// Opens the directory at `path`.
    pub(crate) fn directory(&self, path: &Path) -> io::Result<Directory> {
        self.base()?.open_directory(self.below(path)?)
    }

    /// Opens the directory at `path`. Makes it and those above it if they are missing.
    pub(crate) fn make_directory(&self, path: &Path) -> io::Result<Directory> {
        match self.directory(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        if path == &*self.base {
            self.make_base()?;
            return self.directory(path);
        }
        let (parent, name) = split(path)?;
        let parent = self.make_directory(parent)?;
        match parent.create_directory(name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => parent.open_directory(name),
        }
    }

    /// Makes a private base inaccessible to other users. An older version of jp made it accessible.
    pub(crate) fn close_to_others(&self) {
        #[cfg(unix)]
        if self.access == Access::Private {
            use std::os::unix::fs::PermissionsExt;
            let is_open = fs::metadata(&self.base)
                .is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
            if is_open {
                // Some file systems have no modes. New files are private in any case.
                _ = fs::set_permissions(&self.base, fs::Permissions::from_mode(0o700));
            }
        }
    }

    /// Reads the regular file at `path` whole. Fails for a pipe instead of waiting.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.read_version(path)?.0)
    }

    /// Reads a file like [`read`](Self::read); returns `None` if it doesn't exist.
    pub(crate) fn read_if_present(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match self.read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Reads a file like [`read`](Self::read). Also returns its version at the time of opening.
    pub(crate) fn read_version(&self, path: &Path) -> io::Result<(Vec<u8>, FileVersion)> {
        let (file, metadata) = self.base()?.open_file(self.below(path)?)?;
        Ok((read_whole(file, &metadata)?, FileVersion::new(&metadata)))
    }

    /// Opens the regular file at `path` for reading and writing.
    pub(crate) fn open_for_update(&self, path: &Path) -> io::Result<File> {
        self.base()?
            .open_for_update(self.below(path)?)
            .map(|(file, _)| file)
    }

    /// Replaces the file at `path`. Its content and name are durable on return.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.replace_soon(path, bytes)?.sync()
    }

    /// Replaces the file at `path`, but doesn't sync its name: a crash may leave the old file, whole.
    /// Returns its directory.
    pub(crate) fn replace_soon(&self, path: &Path, bytes: &[u8]) -> io::Result<Directory> {
        let (parent, name) = split(path)?;
        let directory = self.directory(parent)?;
        let temporary = temporary_name();
        let written = directory.create_file(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        let replaced = written.and_then(|()| directory.rename(&temporary, name));
        match replaced {
            Ok(()) => Ok(directory),
            Err(error) => {
                _ = directory.remove_file(&temporary);
                Err(error)
            }
        }
    }

    /// Renames the entry at `path` within its directory.
    pub(crate) fn rename(&self, path: &Path, other: &Path) -> io::Result<()> {
        let ((parent, from), (_, to)) = (split(path)?, split(other)?);
        self.directory(parent)?.rename(from, to)
    }

    fn base(&self) -> io::Result<&Directory> {
        if self.opened.get().is_none() {
            let base = Directory::open(&self.base, self.access)?;
            _ = self.opened.set(base);
        }
        Ok(self.opened.get().expect("it was set above"))
    }

    fn make_base(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        if self.access == Access::Private {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        }
        builder.create(&self.base)
    }

    /// Returns a path relative to the base.
    fn below<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        path.strip_prefix(&self.base).map_err(io::Error::other)
    }
}

/// Returns a unique name for an incomplete file or directory.
pub(crate) fn temporary_name() -> String {
    format!(
        "{TEMPORARY}{:016x}",
        RandomState::new().hash_one(std::process::id())
    )
}

/// Returns the directory of a path, and the name in it.
pub(crate) fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent()
        .zip(path.file_name())
        .ok_or_else(|| io::Error::other("it has no directory"))
}

/// Returns the names of incomplete files in a directory.
pub(crate) fn temporaries(directory: &Directory) -> io::Result<Vec<OsString>> {
    let mut names = directory.entries()?;
    names.retain(|name| is_temporary(name));
    names.sort_unstable();
    Ok(names)
}

/// Removes a file or a directory that hasn't changed for `age`.
///
/// Returns true if it was removed, false if it is younger, and `None` if another process removed it.
pub(crate) fn remove_stale(
    directory: &Directory,
    name: &OsStr,
    age: Duration,
) -> io::Result<Option<bool>> {
    let remove = || {
        let metadata = directory.look_at(Path::new(name))?;
        let is_stale = metadata
            .modified()?
            .elapsed()
            .is_ok_and(|elapsed| elapsed >= age);
        match (is_stale, metadata.is_dir()) {
            (true, true) => directory.remove_directory(name)?,
            (true, false) => directory.remove_file(name)?,
            (false, _) => {}
        }
        Ok::<bool, io::Error>(is_stale)
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Reads the regular file at `path`. The directories in the path may be links, the file may not. Fails
/// for a pipe instead of waiting.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let (parent, _) = split(path)?;
    Tree::new(parent, Access::Shared).read(path)
}

/// A directory with a temporary name. Drop removes it unless it was published.
#[derive(Debug)]
pub(crate) struct StagedDirectory {
    parent: Directory,
    directory: Directory,
    name: Option<String>,
}

impl StagedDirectory {
    /// Makes one in the directory at `parent`, which is made if it is missing.
    pub(crate) fn create(tree: &Tree, parent: &Path) -> io::Result<Self> {
        let parent = tree.make_directory(parent)?;
        let name = temporary_name();
        parent.create_directory(&name)?;
        let directory = parent.open_directory(&name)?;
        Ok(Self {
            parent,
            directory,
            name: Some(name),
        })
    }

    /// Writes a file in it.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<File> {
        let mut file = self.directory.create_file(name)?;
        file.write_all(bytes)?;
        Ok(file)
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.directory.sync()
    }

    /// Renames it to its final name, durably.
    pub(crate) fn publish(mut self, name: &OsStr) -> io::Result<()> {
        if let Some(temporary) = self.name.take() {
            let renamed = self.parent.rename(&temporary, name);
            renamed.inspect_err(|_| self.name = Some(temporary))?;
        }
        self.parent.sync()
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            _ = self.parent.remove_directory(name);
        }
    }
}
