use std::{
    ffi::OsStr,
    io::{self, Read},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    BoundedOutput, ProcessError, Supervisor, grace,
    pipe::{InputQueue, detach, read_chunks},
};

/// The time to wait for output before checking the bounds: short enough that Ctrl-C feels
/// immediate.
const OUTPUT_TICK: Duration = Duration::from_millis(50);
/// Chunks of output that wait for jp: beyond that the program waits, so that memory is bounded.
const QUEUED_CHUNKS: usize = 4;

/// Limits at which a program is ended.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// Time that it may run.
    pub timeout: Duration,
    /// For [`run`], the most it may print to both outputs; for [`capture`], the most that is kept
    /// of each. In bytes.
    pub max_bytes: u64,
    /// Returns true once the output is no longer wanted. Called every 50 ms.
    pub is_moot: &'a dyn Fn() -> bool,
}

/// The output of a program that exited.
#[derive(Debug, Default)]
pub struct Output {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Its exit status.
    pub status: i32,
    /// True if a process that it started still held its output half a second after its end.
    pub was_held: bool,
}

/// The output of a program, however it ended.
#[derive(Debug)]
pub struct Captured {
    /// Its standard output.
    pub stdout: BoundedOutput,
    /// Its standard error.
    pub stderr: BoundedOutput,
    /// The way in which it ended.
    pub end: End,
    /// True if a process that it started still held its output half a second after its end.
    pub was_held: bool,
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Exited(i32),
    /// A signal that jp did not send ended it.
    Signal(ExitStatus),
    /// jp ended it because it ran for longer than this.
    TimedOut(Duration),
    /// jp ended it because it wanted to read from the terminal.
    Stopped,
    /// jp ended it because its output was no longer wanted.
    Moot,
}

/// Runs a program with an empty stdin until it exits; `None` if its output is no longer wanted.
///
/// It is an error if the program prints more than the bounds allow, or ends in another way than by
/// an exit. When this returns, the program has ended; if the bounds ended it, its group has too.
pub fn run(command: Command, bounds: &Bounds<'_>) -> Result<Option<Output>, ProcessError> {
    // Without a mark: an attached `env` must print the same each time.
    let running = Running::start(command, &[], Supervisor::start_unmarked)?;
    let captured = running.finish(bounds, Excess::Refuse)?;
    let Captured {
        stdout,
        stderr,
        end,
        was_held,
    } = captured;
    match end {
        End::Exited(status) => Ok(Some(Output {
            stdout: stdout.into_bytes(),
            stderr: stderr.into_bytes(),
            status,
            was_held,
        })),
        End::Signal(status) => Err(ProcessError::Signal { status }),
        End::TimedOut(limit) => Err(ProcessError::Timeout { limit }),
        End::Stopped => Err(ProcessError::Stopped),
        End::Moot => Ok(None),
    }
}

/// Runs a program with `input` as its stdin, and returns its output however it ends.
///
/// The beginning and the end of each output are kept, half of the bound each: a program that prints
/// more runs on, and memory stays bounded. The program need not read its input. It is an error if
/// the program can't be started, or if the system can't tell how it ended. When this returns, the
/// program has ended; if the bounds ended it, its group and strays have too.
pub fn capture(
    command: Command,
    input: &[u8],
    bounds: &Bounds<'_>,
) -> Result<Captured, ProcessError> {
    Running::start(command, input, Supervisor::start)?.finish(bounds, Excess::LeaveOut)
}

fn start_error(program: &OsStr, source: io::Error) -> ProcessError {
    let path = Path::new(program);
    let is_path = path.parent().is_some_and(|parent| parent != Path::new(""));
    let name = program.to_string_lossy().into_owned();
    match source.kind() {
        io::ErrorKind::NotFound if !is_path => ProcessError::NotFound { program: name },
        io::ErrorKind::NotFound if !path.exists() => ProcessError::Missing {
            path: path.to_owned(),
        },
        // The system says "permission denied".
        _ if is_path && path.is_dir() => ProcessError::Start {
            program: name,
            source: io::ErrorKind::IsADirectory.into(),
        },
        _ => ProcessError::Start {
            program: name,
            source,
        },
    }
}

fn output_error(source: io::Error) -> ProcessError {
    ProcessError::Output { source }
}

/// The output that a chunk comes from.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

type Chunk = io::Result<(Stream, Vec<u8>)>;

/// The rule for output beyond the bounds.
#[derive(Debug, Clone, Copy)]
enum Excess {
    /// It is an error, which ends the program.
    Refuse,
    /// The middle of the output is left out.
    LeaveOut,
}

/// The output of a program so far.
struct Collected {
    stdout: BoundedOutput,
    stderr: BoundedOutput,
    was_held: bool,
    limit: u64,
    excess: Excess,
}

impl Collected {
    fn new(limit: u64, excess: Excess) -> Self {
        let output = match excess {
            Excess::Refuse => BoundedOutput::everything(),
            Excess::LeaveOut => {
                BoundedOutput::at_most(usize::try_from(limit).unwrap_or(usize::MAX))
            }
        };
        Self {
            stdout: output.clone(),
            stderr: output,
            was_held: false,
            limit,
            excess,
        }
    }

    fn push(&mut self, chunk: Chunk) -> Result<(), ProcessError> {
        let (stream, bytes) = chunk.map_err(output_error)?;
        match stream {
            Stream::Stdout => self.stdout.push(&bytes),
            Stream::Stderr => self.stderr.push(&bytes),
        }
        match self.excess {
            Excess::Refuse if self.stdout.total_len() + self.stderr.total_len() > self.limit => {
                Err(ProcessError::TooLong { limit: self.limit })
            }
            _ => Ok(()),
        }
    }
}

/// A program whose output is collected; dropping it ends the program.
struct Running {
    program: Supervisor,
    chunks: Receiver<Chunk>,
}

impl Running {
    fn start(
        mut command: Command,
        input: &[u8],
        start: impl FnOnce(&mut Command) -> io::Result<Supervisor>,
    ) -> Result<Self, ProcessError> {
        command.stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let program =
            start(&mut command).map_err(|error| start_error(command.get_program(), error))?;
        let (sender, chunks) = sync_channel(QUEUED_CHUNKS);
        let mut running = Self { program, chunks };
        running.connect(input, sender).map_err(output_error)?;
        Ok(running)
    }

    /// Feeds the input to the program, and its outputs to the channel.
    fn connect(&mut self, input: &[u8], sender: SyncSender<Chunk>) -> io::Result<()> {
        let Some(child) = self.program.child() else {
            return Ok(());
        };
        if let Some(stdin) = child.stdin.take() {
            InputQueue::new(stdin)?.send(input.to_owned());
        }
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            forward(stdout, Stream::Stdout, sender.clone())?;
            forward(stderr, Stream::Stderr, sender)?;
        }
        Ok(())
    }

    fn finish(mut self, bounds: &Bounds<'_>, excess: Excess) -> Result<Captured, ProcessError> {
        let mut collected = Collected::new(bounds.max_bytes, excess);
        let end = match self.watch(bounds, &mut collected)? {
            None => self.reap(collected.was_held)?,
            Some(end) => {
                self.give_up(&mut collected);
                end
            }
        };
        Ok(Captured {
            stdout: collected.stdout,
            stderr: collected.stderr,
            end,
            was_held: collected.was_held,
        })
    }

    /// Collects output until the program has ended; returns why it has to be ended, if it has not.
    fn watch(
        &mut self,
        bounds: &Bounds<'_>,
        collected: &mut Collected,
    ) -> Result<Option<End>, ProcessError> {
        let started = Instant::now();
        let mut ended: Option<Instant> = None;
        loop {
            let is_open = self.receive(collected)?;
            if ended.is_none() && self.program.has_ended() {
                ended = Some(Instant::now());
            }
            match ended {
                Some(_) if !is_open => return Ok(None),
                // A background process may hold the output for as long as it likes.
                Some(ended) if ended.elapsed() >= grace::OUTPUT_AND_EXIT => {
                    collected.was_held = true;
                    return Ok(None);
                }
                None if started.elapsed() >= bounds.timeout => {
                    return Ok(Some(End::TimedOut(bounds.timeout)));
                }
                None if self.program.is_stopped() => return Ok(Some(End::Stopped)),
                _ if (bounds.is_moot)() => return Ok(Some(End::Moot)),
                _ => {}
            }
        }
    }

    /// Collects a chunk, or waits a moment for one; returns whether there may be more.
    fn receive(&mut self, collected: &mut Collected) -> Result<bool, ProcessError> {
        match self.chunks.recv_timeout(OUTPUT_TICK) {
            Ok(chunk) => collected.push(chunk).map(|()| true),
            Err(RecvTimeoutError::Timeout) => Ok(true),
            // Returns at once from now on, so the caller's loop needs a pause.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(grace::TICK);
                Ok(false)
            }
        }
    }

    /// Returns the end of a program that jp did not end. Its group is killed only if it holds the
    /// output: a daemon that the program started may stay.
    fn reap(&mut self, was_held: bool) -> Result<End, ProcessError> {
        if was_held {
            self.program.kill_group();
        }
        let status = self.program.reap().map_err(output_error)?;
        Ok(status.code().map_or(End::Signal(status), End::Exited))
    }

    /// Ends the program, and collects what it printed until then.
    fn give_up(&mut self, collected: &mut Collected) {
        self.end(|chunk| collected.push(chunk).is_ok());
        let ended = Instant::now();
        while let Some(left) = grace::LAST_BYTES.checked_sub(ended.elapsed())
            && let Ok(chunk) = self.chunks.recv_timeout(left)
            && collected.push(chunk).is_ok()
        {}
    }

    /// Ends the program by signals. Its output goes to `take` meanwhile, or it might block on a
    /// full pipe instead of ending; once `take` returns false, the program is killed.
    fn end(&mut self, mut take: impl FnMut(Chunk) -> bool) {
        self.program.terminate();
        while !self.program.advance_end() {
            match self.chunks.recv_timeout(grace::TICK) {
                Ok(chunk) => {
                    if !take(chunk) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(grace::TICK),
            }
        }
        self.program.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end(|_| true);
    }
}

/// Sends what comes through a pipe, until it is closed or the receiver is gone.
fn forward(
    pipe: impl Read + Send + 'static,
    stream: Stream,
    to: SyncSender<Chunk>,
) -> io::Result<()> {
    detach(move || {
        let read = read_chunks(pipe, |bytes| to.send(Ok((stream, bytes.to_vec()))).is_ok());
        if let Err(error) = read {
            _ = to.send(Err(error));
        }
    })
}
