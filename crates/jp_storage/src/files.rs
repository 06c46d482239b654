//! Names of temporary files, and files of the user's own that links may lead to.

use std::{
    ffi::OsStr,
    fs::{self, Metadata},
    io::{self, Write},
    path::Path,
    time::SystemTime,
};

/// Start of the names of what is not complete yet.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Returns whether a name is that of something that was not complete when its writer last saw it.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
}

/// Replaces a file whose newest content may be lost in a crash; makes its directory where it lacks.
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

/// Opens a file for reading without waiting, should it be a pipe.
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

/// Identifies one state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    /// Device and inode: a file that was replaced is another one.
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

/// Returns the version of what is at `path`; links are not followed.
pub(crate) fn version(path: &Path) -> io::Result<FileVersion> {
    Ok(FileVersion::new(&fs::symlink_metadata(path)?))
}

/// Makes temporary files that get the mode of ordinary ones: what the person's umask leaves of it.
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

/// Returns whether two directories are on one file system; `false` where that is not known.
pub(crate) fn share_file_system(one: &Path, other: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let device = |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.dev());
        device(one).is_some() && device(one) == device(other)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (one, other);
        false
    }
}
