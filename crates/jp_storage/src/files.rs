//! Writing small files so that a crash leaves the old one or the new one.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Replaces the file at `path`, durably: content, name and all are on disk on return.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = parent(path)?;
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    set_ordinary_mode(file.as_file())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// Replaces a file that may be lost in a crash; makes its directory where it lacks.
pub(crate) fn replace_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = parent(path)?;
    fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(directory)?.sync_all() }
}

/// Gives a temporary file, which is its owner's alone, the mode that a shared file has.
fn set_ordinary_mode(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("a file has a directory"))
}
