//! One writer a conversation: an OS lock on a file, which ends with the process that holds it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
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

/// Tries to take the lock at `path`; makes the file and its directory where they lack.
///
/// Doesn't wait for a writer, but for up to a quarter of a second for a reader, or for a holder that can't be seen.
pub fn try_lock(path: &Path) -> io::Result<TryLock> {
    try_lock_for(path, patience)
}

/// Tries to take the lock for as long as `patience` allows; it is told whether the holder is a writer.
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
            Ok(()) => return own(file).map(TryLock::Acquired),
            Err(TryLockError::WouldBlock) if started.elapsed() >= patience(held.is_a_writers()) => {
                return Ok(TryLock::Held(held));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// How long to wait before a lock is tried again.
const PAUSE: Duration = Duration::from_millis(1);

/// Returns for how long a lock is tried: a reader may have it ([`is_held_by_another`]), who is gone soon.
///
/// If no writer can be seen, the holder is a reader, who gets more time because the system may not let them go on, or
/// a writer in another container, whose process number means nothing here.
fn patience(is_a_writers: bool) -> Duration {
    Duration::from_millis(if is_a_writers { 50 } else { 250 })
}

/// Returns whether another process holds the lock at `path`; makes nothing.
///
/// Nothing but taking a lock shows whether somebody has it, so a reader has it for a moment, beside other readers.
#[must_use]
pub fn is_held_by_another(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held
        && Held {
            path: path.to_owned(),
        }
        .holder()
            != Some(std::process::id())
}

impl Held {
    /// Returns the process that has the lock, if it said.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        fs::read_to_string(&self.path).ok()?.trim().parse().ok()
    }

    /// Returns whether the process that wrote itself down is there, so may have the lock still.
    ///
    /// A lock on Windows keeps others from reading the file, so an unreadable one is a writer's there.
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

/// Nobody can say here.
#[cfg(not(unix))]
fn is_alive(_process: u32) -> bool {
    true
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
    fn writer_waits_for_a_reader_that_looks_whether_the_lock_is_held() {
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
    fn lock_of_a_process_that_is_there_is_given_up_soon() {
        assert!(is_alive(std::process::id()));
        assert_eq!(patience(true), Duration::from_millis(50));
    }

    #[test]
    fn lock_whose_holder_can_not_be_seen_is_given_up_soon() {
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
