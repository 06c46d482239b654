//! One writer a conversation: an OS lock on a file, which ends with the process that holds it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The right to write, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// What trying to lock gave.
#[derive(Debug)]
pub enum TryLock {
    /// The lock is ours.
    Acquired(Lock),
    /// Another process has it.
    Held(Held),
}

/// A lock that another process has.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
}

/// Tries to take the lock at `path` without waiting; makes the file and its directory where they lack.
pub fn try_lock(path: &Path) -> io::Result<TryLock> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => own(file).map(TryLock::Acquired),
        Err(TryLockError::WouldBlock) => Ok(TryLock::Held(Held { path: path.to_owned() })),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Held {
    /// Returns the process that has the lock, if it said.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        fs::read_to_string(&self.path).ok()?.trim().parse().ok()
    }
}

/// Says in the file whose the lock is, for the message of those who wait.
///
/// Over what it said before, and as long: on ext4, a file that is emptied and written anew goes to the disk when it is
/// closed.
fn own(mut file: File) -> io::Result<Lock> {
    file.write_all(format!("{:10}\n", std::process::id()).as_bytes())?;
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_writer_is_told_who_has_the_lock_and_gets_it_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("locks/1.lock");
        let TryLock::Acquired(first) = try_lock(&path).unwrap() else { panic!("nobody has it") };
        let TryLock::Held(held) = try_lock(&path).unwrap() else { panic!("the first has it") };
        assert_eq!(held.holder(), Some(std::process::id()));
        drop(first);
        fs::write(&path, "4000000000\n").unwrap();
        assert!(matches!(try_lock(&path).unwrap(), TryLock::Acquired(_)));
        assert_eq!(fs::read_to_string(&path).unwrap().trim(), std::process::id().to_string());
    }
}
