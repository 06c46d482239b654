//! The lines of a process that outlives the turn: they go through named pipes, in a directory of
//! its own.
//!
//! The process has both ends of its pipes open, so it sees no end of its input when jp ends, and
//! what it writes waits for the next turn. jp reads only while a call waits for a line, and leaves
//! what it read beyond the line in a file next to the pipes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use jp_process::{Identity, Supervisor, grace, pipe::InputQueue};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
};
use serde::{Deserialize, Serialize};

use super::{
    pending::Pending,
    reply::{LINE_TICK, LineReply, MAX_ERRORS, MAX_LINE},
};

const INPUT: &str = "in";
const OUTPUT: &str = "out";
const ERRORS: &str = "errors";
const UNREAD: &str = "unread";
const STATE: &str = "state.json";
/// The size of the stderr file above which jp shortens it, in bytes.
const MAX_ERRORS_FILE: u64 = 1_000_000;
/// The number of attempts to shorten it between two writes of the process.
const MAX_TRIMS: usize = 100;

/// The jp ends of the pipes of a process that stays.
#[derive(Debug)]
pub(super) struct NamedPipes {
    directory: PathBuf,
    input: InputQueue,
    output: File,
    /// Bytes that were read behind the last line.
    unread: Vec<u8>,
    /// The number of those bytes that are known to contain no newline.
    searched: usize,
    /// The end of stderr, once the directory is gone.
    last_words: String,
}

/// A process that an earlier turn left and that still runs.
pub(super) struct Left {
    pub(super) program: Supervisor,
    pub(super) pipes: NamedPipes,
    pub(super) is_owed: bool,
    pub(super) pending: Option<Pending>,
}

/// The content of `state.json`: what a later turn has to know.
#[derive(Debug, Serialize, Deserialize)]
struct SavedState {
    id: Identity,
    is_owed: bool,
    pending: Option<Pending>,
}

/// Finds the processes that earlier turns left, by tool and handle. Of one that has ended, the
/// error is the end of its stderr.
pub(super) fn find_all(handles: &Path) -> Vec<((String, String), Result<Left, String>)> {
    let Ok(entries) = fs::read_dir(handles) else {
        return Vec::new();
    };
    let found = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (tool, handle) = name.split_once('=')?;
        let directory = entry.path();
        let left = resume(&directory).ok_or_else(|| {
            let errors = last_errors(&directory);
            remove(&directory);
            errors
        });
        Some(((tool.to_owned(), handle.to_owned()), left))
    });
    found.collect()
}

fn resume(directory: &Path) -> Option<Left> {
    let state: SavedState = serde_json::from_slice(&fs::read(directory.join(STATE)).ok()?).ok()?;
    let program = Supervisor::find(state.id)?;
    let mut pipes = NamedPipes::open(directory).ok()?;
    pipes.unread = fs::read(directory.join(UNREAD)).unwrap_or_default();
    Some(Left {
        program,
        pipes,
        is_owed: state.is_owed,
        pending: state.pending,
    })
}

impl NamedPipes {
    /// Starts a process with its pipes in a directory of its own.
    pub(super) fn start(mut command: Command, directory: &Path) -> io::Result<(Supervisor, Self)> {
        let handles = directory.parent().unwrap_or(directory);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(handles)?;
        DirBuilder::new().mode(0o700).create(directory)?;
        let started = Self::start_in(&mut command, directory);
        if started.is_err() {
            remove(directory);
        }
        started
    }

    fn start_in(command: &mut Command, directory: &Path) -> io::Result<(Supervisor, Self)> {
        // Without a start time, a later turn could end another process that got the same id.
        if !Identity::is_supported() {
            let reason =
                "this system has no `/proc`, which jp needs to find the process in a later turn";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        make_pipes(directory)?;
        let errors = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(directory.join(ERRORS))?;
        command
            .stdin(open_both_ends(&directory.join(INPUT))?)
            .stdout(open_both_ends(&directory.join(OUTPUT))?)
            .stderr(errors);
        // Open the pipes before the process runs: if that failed later, no one could reach the
        // process.
        let pipes = Self::open(directory)?;
        Ok((Supervisor::start_lasting(command)?, pipes))
    }

    /// Opens the jp ends; fails with `ENXIO` if no process reads the input.
    fn open(directory: &Path) -> io::Result<Self> {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let input = OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(directory.join(INPUT))?;
        // Only opening must not block; writes happen on a thread.
        rustix::fs::fcntl_setfl(&input, OFlags::empty())?;
        let output = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(directory.join(OUTPUT))?;
        Ok(Self {
            directory: directory.to_owned(),
            input: InputQueue::new(input)?,
            output,
            unread: Vec::new(),
            searched: 0,
            last_words: String::new(),
        })
    }

    /// Writes down what a later turn has to know.
    pub(super) fn save(&self, id: Identity, is_owed: bool, pending: Option<&Pending>) {
        // A process that was ended has no directory any more.
        if !self.directory.exists() {
            return;
        }
        self.trim_errors();
        let state = SavedState {
            id,
            is_owed,
            pending: pending.cloned(),
        };
        // If this fails, the next turn takes the process for one that ended.
        _ = serde_json::to_vec(&state).map(|state| fs::write(self.directory.join(STATE), state));
        _ = fs::write(self.directory.join(UNREAD), &self.unread);
    }

    pub(super) fn send(&self, line: Vec<u8>) {
        self.input.send(line);
    }

    /// Waits a moment for a line.
    pub(super) fn await_line(&mut self) -> Option<LineReply> {
        let reply = self.receive_ready();
        if reply.is_none() {
            self.await_output();
            self.trim_errors();
        }
        reply
    }

    pub(super) fn receive_ready(&mut self) -> Option<LineReply> {
        let mut buffer = [0; 16 * 1024];
        let mut received = 0;
        loop {
            if let Some(line) = self.next_line() {
                return Some(LineReply::Line(line));
            }
            if self.unread.len() > MAX_LINE {
                return Some(LineReply::TooLong);
            }
            // Empty lines may come without end.
            if received > MAX_LINE {
                return None;
            }
            match self.output.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => {
                    received += length;
                    self.unread.extend_from_slice(&buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Takes the next line that is not empty.
    fn next_line(&mut self) -> Option<Vec<u8>> {
        if self.searched == 0 {
            let blank = self
                .unread
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            self.unread.drain(..blank);
        }
        let start = std::mem::replace(&mut self.searched, self.unread.len());
        let end = start
            + self.unread[start..]
                .iter()
                .position(|byte| *byte == b'\n')?;
        self.searched = 0;
        Some(self.unread.drain(..=end).collect())
    }

    /// Waits a moment for more.
    fn await_output(&self) {
        let mut watched = [PollFd::new(&self.output, PollFlags::IN)];
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(LINE_TICK.subsec_nanos()),
        };
        let found = poll(&mut watched, Some(&tick));
        // If no process has the pipe open for writing, `poll` returns at once, so the loop needs a
        // pause.
        if found.is_err() || watched[0].revents().contains(PollFlags::HUP) {
            thread::sleep(grace::TICK);
        }
    }

    pub(super) fn errors(&self) -> String {
        if self.last_words.is_empty() {
            last_errors(&self.directory)
        } else {
            self.last_words.clone()
        }
    }

    /// Removes the directory of a process that was ended, and keeps the end of its stderr.
    pub(super) fn forget(&mut self) {
        self.last_words = last_errors(&self.directory);
        remove(&self.directory);
    }

    /// Shortens the file of stderr to its end if it is too long.
    fn trim_errors(&self) {
        // If it fails, the next call tries again.
        _ = self.try_to_trim_errors();
    }

    fn try_to_trim_errors(&self) -> io::Result<()> {
        let mut errors = OpenOptions::new()
            .append(true)
            .open(self.directory.join(ERRORS))?;
        for attempt in 1..=MAX_TRIMS {
            let length = errors.metadata()?.len();
            if length <= MAX_ERRORS_FILE {
                break;
            }
            let last = tail(&self.directory)?;
            // Truncating loses what the process wrote since `tail`, so try again if it wrote. If
            // it never pauses, the file has to be truncated all the same.
            if errors.metadata()?.len() == length || attempt == MAX_TRIMS {
                // The process opened the file for appending, so it continues at the new end.
                errors.set_len(0)?;
                errors.write_all(&last)?;
            }
        }
        Ok(())
    }
}

/// Opens a pipe for reading and writing, so that neither side notices if the other closes it.
fn open_both_ends(pipe: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(pipe)
}

fn make_pipes(directory: &Path) -> io::Result<()> {
    // rustix offers no call for this on every Unix, so run the program.
    let made = Command::new("mkfifo")
        .args(["-m", "600"])
        .args([INPUT, OUTPUT])
        .current_dir(directory)
        .output()?;
    match made.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&made.stderr).trim().to_owned(),
        )),
    }
}

fn last_errors(directory: &Path) -> String {
    String::from_utf8_lossy(&tail(directory).unwrap_or_default())
        .trim()
        .to_owned()
}

/// Reads the last that came on stderr.
fn tail(directory: &Path) -> io::Result<Vec<u8>> {
    let mut errors = File::open(directory.join(ERRORS))?;
    let length = errors.metadata()?.len();
    errors.seek(SeekFrom::Start(length.saturating_sub(MAX_ERRORS as u64)))?;
    let mut last = Vec::new();
    errors.take(MAX_ERRORS as u64).read_to_end(&mut last)?;
    Ok(last)
}

/// Removes what was kept of a process.
fn remove(directory: &Path) {
    // What can't be removed is found again and taken for ended.
    _ = fs::remove_dir_all(directory);
}
