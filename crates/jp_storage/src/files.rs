//! Names of temporary files, and files in the user's directories, whose paths may contain links.

use std::{
    ffi::OsStr,
    fs::{self, Metadata},
    io::{self, Write},
    path::Path,
    time::SystemTime,
};

/// The start of the names of incomplete files and directories.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Returns true if a name is that of an incomplete file or directory.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
}

/// Replaces a file without syncing it, so a crash may lose the new content. Makes its directory if it is
/// missing.
pub(crate) fn replace_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path
        .parent()
        .ok_or_else(|| io::Error::other("a file has a directory"))?;
    fs::create_dir_all(directory)?;
    let mut file = staging().tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Opens a file for reading. Doesn't wait if it is a pipe.
pub(crate) fn open_unblocked(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

/// The identity of one state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    /// Device and inode. A replaced file has another inode.
    file: (u64, u64),
    length: u64,
    modified: Option<SystemTime>,
}

impl FileVersion {
    pub(crate) fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let file = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let file = (0, 0);
        Self {
            file,
            length: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// Returns the version of the file at `path`. Doesn't follow links.
pub(crate) fn version(path: &Path) -> io::Result<FileVersion> {
    Ok(FileVersion::new(&fs::symlink_metadata(path)?))
}

/// Makes temporary files with the mode of ordinary ones, which the user's umask limits.
fn staging() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// Returns true if two directories are on one file system, and false if that is unknown.
pub(crate) fn share_file_system(one: &Path, other: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        matches!(
            (fs::metadata(one), fs::metadata(other)),
            (Ok(one), Ok(other)) if one.dev() == other.dev()
        )
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (one, other);
        false
    }
}
