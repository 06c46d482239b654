use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

use jp_process::group;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    process::{Pid, Signal, kill_process_group, test_kill_process},
};
use serde::{Deserialize, Serialize};

use crate::stateful::{
    handles::{Left, Pending},
    owned::{on_thread, write},
    process::{GRACE, LINGER, MAX_ERRORS, MAX_LINE, Reply, SHORT_TICK, TICK},
};

const INPUT: &str = "in";
const OUTPUT: &str = "out";
const ERRORS: &str = "errors";
const UNREAD: &str = "unread";
const STATE: &str = "state.json";
/// How much of what comes on stderr is left where it is, in bytes.
const MAX_ERRORS_FILE: u64 = 1_000_000;
/// How often it is tried to cut it down while the process writes nothing to it.
const MAX_TRIMS: usize = 100;

/// A process that stays.
#[derive(Debug)]
pub(in crate::stateful) struct Kept {
    directory: PathBuf,
    id: Identity,
    input: Sender<Vec<u8>>,
    output: File,
    /// What was read behind the last line.
    unread: Vec<u8>,
    /// How much of that is known to have no end of a line.
    searched: usize,
    /// Whether a line was sent that it has not answered.
    pub(in crate::stateful) is_owed: bool,
    /// The process, in the turn that started it.
    child: Option<Child>,
    /// The last that came on stderr, once it is ended.
    last_words: String,
}

/// What a later turn has to know.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    id: Identity,
    is_owed: bool,
    pending: Option<Pending>,
}

/// Which process it is: ids are given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    pid: i32,
    /// When it started, in the system's own measure, where the system has `/proc`.
    started: Option<u64>,
}

impl Kept {
    /// Starts a process, in a group of its own, with its pipes in a directory of its own.
    pub(in crate::stateful) fn start(mut command: Command, directory: &Path) -> io::Result<Self> {
        let handles = directory.parent().unwrap_or(directory);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(handles)?;
        DirBuilder::new().mode(0o700).create(directory)?;
        let started = Self::started(&mut command, directory);
        if started.is_err() {
            forget(directory);
        }
        started
    }

    fn started(command: &mut Command, directory: &Path) -> io::Result<Self> {
        if started(std::process::id().cast_signed()).is_none() {
            let reason =
                "this system has no `/proc`, by which it could be told from others in a later turn";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        make_pipes(directory)?;
        // With both ends open neither side sees the other leave.
        let both = |name: &str| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(directory.join(name))
        };
        let errors = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(directory.join(ERRORS))?;
        command
            .stdin(both(INPUT)?)
            .stdout(both(OUTPUT)?)
            .stderr(errors);
        group::separate(command);
        // Nothing may fail once it runs: it would be left to itself.
        let pipes = Pipes::open(directory)?;
        let child = command.spawn()?;
        let id = Identity::of(Pid::from_child(&child));
        Ok(Self {
            child: Some(child),
            ..Self::new(directory, id, pipes)
        })
    }

    /// Finds what earlier turns left: what goes on, or the last that came on stderr of what does not.
    pub(in crate::stateful) fn all(handles: &Path) -> Vec<Left> {
        let Ok(entries) = fs::read_dir(handles) else {
            return Vec::new();
        };
        let found = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (tool, handle) = name.split_once('=')?;
            let directory = entry.path();
            let resumed = Self::resumed(&directory).ok_or_else(|| {
                let errors = last_errors(&directory);
                forget(&directory);
                errors
            });
            Some(((tool.to_owned(), handle.to_owned()), resumed))
        });
        found.collect()
    }

    fn resumed(directory: &Path) -> Option<(Self, Option<Pending>)> {
        let state: State = serde_json::from_slice(&fs::read(directory.join(STATE)).ok()?).ok()?;
        if !state.id.is_alive() {
            return None;
        }
        let kept = Self::new(directory, state.id, Pipes::open(directory).ok()?);
        let unread = fs::read(directory.join(UNREAD)).unwrap_or_default();
        Some((
            Self {
                unread,
                is_owed: state.is_owed,
                ..kept
            },
            state.pending,
        ))
    }

    fn new(directory: &Path, id: Identity, pipes: Pipes) -> Self {
        let Pipes { input, output } = pipes;
        Self {
            directory: directory.to_owned(),
            id,
            input,
            output,
            unread: Vec::new(),
            searched: 0,
            is_owed: false,
            child: None,
            last_words: String::new(),
        }
    }

    /// Writes down what a later turn has to know.
    pub(in crate::stateful) fn save(&self, pending: Option<&Pending>) {
        // One that ended has no directory any more.
        if !self.directory.exists() {
            return;
        }
        self.trim_errors();
        let state = State {
            id: self.id,
            is_owed: self.is_owed,
            pending: pending.cloned(),
        };
        // Where it can't be written, the next turn takes the process for one that ended.
        _ = serde_json::to_vec(&state).map(|state| fs::write(self.directory.join(STATE), state));
        _ = fs::write(self.directory.join(UNREAD), &self.unread);
    }

    pub(in crate::stateful) fn send(&mut self, line: Vec<u8>) {
        // Where nobody reads any more, the wait for the answer finds that out.
        _ = self.input.send(line);
        self.is_owed = true;
    }

    pub(in crate::stateful) fn receive(
        &mut self,
        timeout: Duration,
        is_moot: &dyn Fn() -> bool,
    ) -> Reply {
        let started = Instant::now();
        let mut ended: Option<Instant> = None;
        loop {
            if let Some(reply) = self.receive_ready() {
                return reply;
            }
            self.await_output();
            self.trim_errors();
            if ended.is_none() && self.has_ended() {
                ended = Some(Instant::now());
            }
            if ended.is_some_and(|ended| ended.elapsed() >= LINGER) {
                return Reply::Gone;
            }
            if is_moot() {
                return Reply::Moot;
            }
            if started.elapsed() >= timeout {
                return Reply::Silence;
            }
        }
    }

    pub(in crate::stateful) fn receive_ready(&mut self) -> Option<Reply> {
        let mut buffer = [0; 16 * 1024];
        let mut received = 0;
        loop {
            if let Some(line) = self.next_line() {
                self.is_owed = false;
                return Some(Reply::Line(line));
            }
            if self.unread.len() > MAX_LINE {
                return Some(Reply::TooLong);
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
            tv_nsec: i64::from(TICK.subsec_nanos()),
        };
        let found = poll(&mut watched, Some(&tick));
        // An end that nobody writes to any more is always ready.
        if found.is_err() || watched[0].revents().contains(PollFlags::HUP) {
            thread::sleep(SHORT_TICK);
        }
    }

    pub(in crate::stateful) fn errors(&self) -> String {
        if self.last_words.is_empty() {
            last_errors(&self.directory)
        } else {
            self.last_words.clone()
        }
    }

    /// Ends the process and all of its group, and removes what was kept of it.
    pub(in crate::stateful) fn end(&mut self) -> Option<ExitStatus> {
        self.await_end(GRACE);
        self.signal(Signal::TERM);
        self.await_end(GRACE);
        self.signal(Signal::KILL);
        self.last_words = last_errors(&self.directory);
        forget(&self.directory);
        self.child.as_mut().and_then(|child| child.wait().ok())
    }

    /// Keeps the last that came on stderr of what has become too long.
    fn trim_errors(&self) {
        let trim = || -> io::Result<()> {
            let mut errors = OpenOptions::new()
                .append(true)
                .open(self.directory.join(ERRORS))?;
            for attempt in 1..=MAX_TRIMS {
                let length = errors.metadata()?.len();
                if length <= MAX_ERRORS_FILE {
                    break;
                }
                let last = tail(&self.directory)?;
                // What it wrote while its last words were read would be lost; one that never pauses is cut off all the same.
                if errors.metadata()?.len() == length || attempt == MAX_TRIMS {
                    // The process appends, too, so it goes on at the new end.
                    errors.set_len(0)?;
                    errors.write_all(&last)?;
                }
            }
            Ok(())
        };
        // Where it fails, it is tried again soon.
        _ = trim();
    }

    fn await_end(&mut self, time: Duration) {
        let started = Instant::now();
        while !self.has_ended() && started.elapsed() < time {
            thread::sleep(SHORT_TICK);
        }
    }

    fn has_ended(&mut self) -> bool {
        match &mut self.child {
            Some(child) => group::has_ended(child).unwrap_or(true),
            None => !self.id.is_alive(),
        }
    }

    /// Signals the group, unless its id may be somebody else's by now.
    fn signal(&self, signal: Signal) {
        if self.child.is_none() && !self.id.is_alive() {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.id.pid) {
            // Fails where there is nothing left to end.
            _ = kill_process_group(pid, signal);
        }
    }
}

/// The ends of the pipes that are jp's.
struct Pipes {
    input: Sender<Vec<u8>>,
    output: File,
}

impl Pipes {
    /// Opens them; fails with `ENXIO` where nobody reads the one.
    fn open(directory: &Path) -> io::Result<Self> {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let input = OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(directory.join(INPUT))?;
        rustix::fs::fcntl_setfl(&input, OFlags::empty())?;
        let output = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(directory.join(OUTPUT))?;
        let (sender, to_write) = channel();
        on_thread(move || write(input, &to_write))?;
        Ok(Self {
            input: sender,
            output,
        })
    }
}

impl Identity {
    fn of(pid: Pid) -> Self {
        Self {
            pid: pid.as_raw_pid(),
            started: started(pid.as_raw_pid()),
        }
    }

    /// Returns whether it runs; one of which nobody knows when it started may be any other.
    fn is_alive(self) -> bool {
        let is_there = Pid::from_raw(self.pid).is_some_and(|pid| test_kill_process(pid).is_ok());
        is_there && self.started.is_some() && started(self.pid) == self.started
    }
}

/// Returns when a process started, unless all that is left of it is its status.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything: the state first, and the start as number 20.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next() == Some("Z") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn make_pipes(directory: &Path) -> io::Result<()> {
    // The program, as not every system has the call where it could be used safely.
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
fn forget(directory: &Path) {
    // What can't be removed is found again and taken for ended.
    _ = fs::remove_dir_all(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_of_an_unknown_start_is_never_taken_for_one_that_runs() {
        let mut child = Command::new("true").spawn().unwrap();
        while !group::has_ended(&mut child).unwrap() {
            thread::sleep(SHORT_TICK);
        }
        // Not reaped: there is an id, and no start any more.
        let id = Identity::of(Pid::from_child(&child));
        assert_eq!((id.started, id.is_alive()), (None, false));
        child.wait().unwrap();
    }
}
