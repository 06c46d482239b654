//! Allows one writer for each conversation with a lock of the operating system on a file. The lock ends
//! with its process.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// The right to write a conversation, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The result of trying to lock.
#[derive(Debug)]
pub enum TryLock {
    /// This process has the lock.
    Acquired(Lock),
    /// Another process has it.
    Held(Held),
}

/// A lock that another process has.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
}

/// Tries to take the lock at `path`. Makes the file and its directory if they are missing.
///
/// It doesn't wait for a writer, but up to a quarter of a second for a reader or an unknown holder.
pub fn try_lock(path: &Path) -> io::Result<TryLock> {
    try_lock_for(path, patience)
}

/// Tries to take the lock while `patience` allows. Its argument is true if the holder is a writer.
fn try_lock_for(path: &Path, patience: fn(bool) -> Duration) -> io::Result<TryLock> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let held = Held {
        path: path.to_owned(),
    };
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return write_owner(file).map(TryLock::Acquired),
            Err(TryLockError::WouldBlock) if started.elapsed() >= patience(held.is_a_writers()) => {
                return Ok(TryLock::Held(held));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The pause between two attempts. A reader holds the lock for less.
const PAUSE: Duration = Duration::from_millis(1);

/// Returns how long to try. A reader may hold the lock for a moment ([`is_held_by_another`]).
///
/// If no writer is visible, the holder is a reader or a writer in another container, whose process id
/// means nothing here. A reader gets more time, because the system may suspend it.
fn patience(is_a_writers: bool) -> Duration {
    Duration::from_millis(if is_a_writers { 50 } else { 250 })
}

/// Returns true if another process holds the lock at `path`. Doesn't make the file.
///
/// The only way to find out is to take the lock. So a reader shares it with other readers for a moment.
#[must_use]
pub fn is_held_by_another(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let held = Held {
        path: path.to_owned(),
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
        && held.holder() != Some(std::process::id())
}

impl Held {
    /// Returns the id of the process that holds the lock, if it is in the file.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        fs::read_to_string(&self.path).ok()?.trim().parse().ok()
    }

    /// Returns true if the process in the file is alive, so that it may still hold the lock.
    ///
    /// On Windows, a lock prevents others from reading the file. An unreadable file has a writer there.
    fn is_a_writers(&self) -> bool {
        self.holder().map_or(cfg!(not(unix)), is_alive)
    }
}

#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    use rustix::{
        io::Errno,
        process::{Pid, test_kill_process},
    };
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    id.is_some_and(|id| test_kill_process(id) != Err(Errno::SRCH))
}

/// Returns true, because this system can't check it.
#[cfg(not(unix))]
fn is_alive(_process: u32) -> bool {
    true
}

/// Writes this process's id into the file, for the message of processes that wait.
///
/// It overwrites an id of the same length. ext4 would flush a truncated and rewritten file to the disk
/// when it is closed.
fn write_owner(mut file: File) -> io::Result<Lock> {
    file.write_all(format!("{:10}\n", std::process::id()).as_bytes())?;
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_writer_gets_the_lock_after_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("locks/1.lock");
        let TryLock::Acquired(first) = try_lock(&path).unwrap() else {
            panic!("nobody has it")
        };
        let TryLock::Held(held) = try_lock(&path).unwrap() else {
            panic!("the first has it")
        };
        assert_eq!(held.holder(), Some(std::process::id()));
        drop(first);
        fs::write(&path, "4000000000\n").unwrap();
        assert!(matches!(try_lock(&path).unwrap(), TryLock::Acquired(_)));
        assert_eq!(
            fs::read_to_string(&path).unwrap().trim(),
            std::process::id().to_string()
        );
    }

    #[test]
    fn writer_waits_for_a_reader() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.lock");
        // No process has this number.
        fs::write(&path, "4000000000\n").unwrap();
        let reader = File::open(&path).unwrap();
        reader.try_lock_shared().unwrap();
        let writer = thread::spawn({
            let path = path.clone();
            // Far more than the reader takes, however busy the machine is.
            move || try_lock_for(&path, |_| Duration::from_secs(60)).unwrap()
        });
        // The reader is not let go on for longer than a few attempts take.
        thread::park_timeout(Duration::from_millis(75));
        drop(reader);
        assert!(matches!(writer.join().unwrap(), TryLock::Acquired(_)));
    }

    #[test]
    fn writer_does_not_wait_long_for_a_writer() {
        assert!(is_alive(std::process::id()));
        assert_eq!(patience(true), Duration::from_millis(50));
    }

    #[test]
    fn writer_waits_longer_for_an_unknown_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.lock");
        // As of a process in another container: no process here has this number.
        fs::write(&path, "4000000000\n").unwrap();
        let writer = File::open(&path).unwrap();
        writer.lock().unwrap();
        assert!(matches!(try_lock(&path).unwrap(), TryLock::Held(_)));
        assert_eq!(patience(false), Duration::from_millis(250));
    }
}
