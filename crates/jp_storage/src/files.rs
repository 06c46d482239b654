//! Writing small files so that a crash leaves the old one or the new one.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
    time::Duration,
};

/// Start of the names of what is not complete yet.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Returns whether what is at `path` was not complete when its writer last saw it.
pub(crate) fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

/// Returns whether there is a directory at `path` that is no link.
pub(crate) fn is_own_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Removes a file or a directory that has not changed for `age`; returns whether it did, `None` where it is gone already.
pub(crate) fn remove_stale(path: &Path, age: Duration) -> io::Result<Option<bool>> {
    let remove = || {
        let metadata = fs::symlink_metadata(path)?;
        let is_stale = metadata.modified()?.elapsed().is_ok_and(|elapsed| elapsed >= age);
        match (is_stale, metadata.is_dir()) {
            (true, true) => fs::remove_dir_all(path)?,
            (true, false) => fs::remove_file(path)?,
            (false, _) => {}
        }
        Ok::<bool, io::Error>(is_stale)
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Replaces the file at `path`, durably: content, name and all are on disk on return.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_soon(path, bytes)?;
    sync_directory(parent(path)?)
}

/// Replaces the file at `path`; a crash soon after may leave the old one, whole.
pub(crate) fn replace_soon(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = parent(path)?;
    let mut file = staging(0o666).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Replaces a file whose newest content may be lost in a crash; makes its directory where it lacks.
pub(crate) fn replace_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = parent(path)?;
    fs::create_dir_all(directory)?;
    let mut file = staging(0o666).tempfile_in(directory)?;
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

/// Reads a file whole, and nothing that would have to be waited for: a pipe or a device is an error.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_unblocked(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let mut bytes = room_for(metadata.len())?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns room for a file that says it is this long, as a sparse one says of itself at no cost.
fn room_for(length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    Ok(bytes)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(directory)?.sync_all() }
}

/// Makes temporary files, or directories, that get the mode of ordinary ones: what the person's umask leaves of it.
pub(crate) fn staging(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let _ = mode;
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

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("a file has a directory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_longer_than_memory_is_an_error_and_ends_nothing() {
        assert_eq!(room_for(1 << 62).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(room_for(u64::MAX).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }
}
