use std::{
    ffi::OsStr,
    io::{self, Read, Write},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use crate::{Kept, ProcessError, group};

/// How long to wait for output before looking whether it is time to end.
const TICK: Duration = Duration::from_millis(50);
/// The same for a program that has closed its output.
const SHORT_TICK: Duration = Duration::from_millis(2);
/// How long output may stay open once the program has ended: something it started holds it.
const LINGER: Duration = Duration::from_millis(500);
/// How long a program that is asked to end may take: git removes its locks.
const FAREWELL: Duration = Duration::from_millis(250);
/// How long what an ended program printed may take to come through: something that left its group may hold the pipe.
const DRAIN: Duration = Duration::from_millis(100);
/// Length of what is read at once; this many times [`QUEUE`] may be in memory beside the output.
const CHUNK: usize = 64 * 1024;
const QUEUE: usize = 4;

/// What ends a program.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// How long it may run.
    pub timeout: Duration,
    /// How much it may print, or how much is kept of each of its outputs.
    pub max_bytes: u64,
    /// Whether nobody wants the output any more; asked every 50 ms.
    pub is_moot: &'a dyn Fn() -> bool,
}

/// What a program printed, and how it ended.
#[derive(Debug, Default)]
pub struct Output {
    /// What came through its standard output.
    pub stdout: Vec<u8>,
    /// What came through its standard error.
    pub stderr: Vec<u8>,
    /// Its exit status.
    pub status: i32,
    /// Whether something that it started still held its output half a second after its end.
    pub was_held: bool,
}

/// What is left of a program, however it ended.
#[derive(Debug)]
pub struct Captured {
    /// What came through its standard output.
    pub stdout: Kept,
    /// What came through its standard error.
    pub stderr: Kept,
    /// How it ended.
    pub end: End,
    /// Whether something that it started still held its output half a second after its end.
    pub was_held: bool,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with a status.
    Exited(i32),
    /// By a signal of somebody else's.
    Signal(ExitStatus),
    /// It was ended because it ran for longer than this.
    TimedOut(Duration),
    /// It wanted to read from the terminal, and was ended.
    Stopped,
    /// Its output became moot, and it was ended.
    Moot,
}

/// Runs a program to its end, stdin empty; `None` if its output became moot before.
///
/// More output than the bounds allow, for both outputs together, is an error, and so is any end but an exit. However
/// this returns, the program has ended and, where the bounds ended it, its process group too.
pub fn run(command: Command, bounds: &Bounds<'_>) -> Result<Option<Output>, ProcessError> {
    let captured = start(command, &[])?.captured(bounds, Beyond::Refused)?;
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

/// Runs a program with `input` as its stdin, and returns what it printed however it ended.
///
/// Of each output the beginning and the end are kept, half of the bound each: a program that prints more runs on, and
/// memory stays within the bounds. It need not read its input. An error means that it was not started, or that the
/// system tells nothing of it; however this returns, the program has ended and, where the bounds ended it, its process
/// group too.
pub fn capture(
    mut command: Command,
    input: &[u8],
    bounds: &Bounds<'_>,
) -> Result<Captured, ProcessError> {
    let mark = group::Mark::put_on(&mut command);
    let mut running = start(command, input)?;
    running.mark = Some(mark);
    running.captured(bounds, Beyond::LeftOut)
}

fn start(mut command: Command, input: &[u8]) -> Result<Running, ProcessError> {
    command.stdin(if input.is_empty() {
        Stdio::null()
    } else {
        Stdio::piped()
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    group::separate(&mut command);
    let child = command
        .spawn()
        .map_err(|error| start_error(command.get_program(), error))?;
    Running::new(child, input.to_owned()).map_err(|source| ProcessError::Output { source })
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

/// Which of its outputs a program printed to.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

type Chunk = io::Result<(Stream, Vec<u8>)>;

/// What happens with output beyond the bounds.
#[derive(Debug, Clone, Copy)]
enum Beyond {
    /// It ends the program.
    Refused,
    /// It is left out, in the middle.
    LeftOut,
}

/// A program that runs; dropping it ends it.
struct Running {
    child: Child,
    /// What everything has that it starts, where it may be ended with it.
    mark: Option<group::Mark>,
    chunks: Receiver<Chunk>,
    is_reaped: bool,
}

/// What a program has printed so far.
struct Collected {
    stdout: Kept,
    stderr: Kept,
    was_held: bool,
    limit: u64,
    beyond: Beyond,
}

impl Collected {
    fn new(limit: u64, beyond: Beyond) -> Self {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let kept = || match beyond {
            Beyond::Refused => Kept::everything(),
            Beyond::LeftOut => Kept::at_most(most),
        };
        Self {
            stdout: kept(),
            stderr: kept(),
            was_held: false,
            limit,
            beyond,
        }
    }

    fn take(&mut self, chunk: Chunk) -> Result<(), ProcessError> {
        let (stream, bytes) = chunk.map_err(|source| ProcessError::Output { source })?;
        match stream {
            Stream::Stdout => self.stdout.push(&bytes),
            Stream::Stderr => self.stderr.push(&bytes),
        }
        match self.beyond {
            Beyond::Refused if self.stdout.printed() + self.stderr.printed() > self.limit => {
                Err(ProcessError::TooLong { limit: self.limit })
            }
            _ => Ok(()),
        }
    }

    fn ended(self, end: End) -> Captured {
        Captured {
            stdout: self.stdout,
            stderr: self.stderr,
            end,
            was_held: self.was_held,
        }
    }
}

impl Running {
    fn new(mut child: Child, input: Vec<u8>) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(QUEUE);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let running = Self {
            child,
            mark: None,
            chunks,
            is_reaped: false,
        };
        if let Some(stdin) = stdin {
            feed(stdin, input)?;
        }
        if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
            forward(stdout, Stream::Stdout, sender.clone())?;
            forward(stderr, Stream::Stderr, sender)?;
        }
        Ok(running)
    }

    fn captured(mut self, bounds: &Bounds<'_>, beyond: Beyond) -> Result<Captured, ProcessError> {
        let mut collected = Collected::new(bounds.max_bytes, beyond);
        let end = match self.watch(bounds, &mut collected)? {
            None => self.finish(collected.was_held)?,
            Some(end) => {
                self.give_up(&mut collected);
                end
            }
        };
        Ok(collected.ended(end))
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
            if ended.is_none() && self.has_ended()? {
                ended = Some(Instant::now());
            }
            match ended {
                Some(_) if !is_open => return Ok(None),
                Some(ended) if ended.elapsed() >= LINGER => {
                    collected.was_held = true;
                    return Ok(None);
                }
                None if started.elapsed() >= bounds.timeout => {
                    return Ok(Some(End::TimedOut(bounds.timeout)));
                }
                None if group::is_stopped(&mut self.child) => return Ok(Some(End::Stopped)),
                _ if (bounds.is_moot)() => return Ok(Some(End::Moot)),
                _ => {}
            }
        }
    }

    /// Takes what was printed, or waits a moment for it; returns whether there may be more.
    fn receive(&mut self, collected: &mut Collected) -> Result<bool, ProcessError> {
        match self.chunks.recv_timeout(TICK) {
            Ok(chunk) => collected.take(chunk).map(|()| true),
            Err(RecvTimeoutError::Timeout) => Ok(true),
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(SHORT_TICK);
                Ok(false)
            }
        }
    }

    fn has_ended(&mut self) -> Result<bool, ProcessError> {
        group::has_ended(&mut self.child).map_err(|source| ProcessError::Output { source })
    }

    /// Takes leave of a program that has ended.
    fn finish(&mut self, was_held: bool) -> Result<End, ProcessError> {
        if was_held {
            group::kill(&mut self.child);
        }
        let status = self
            .child
            .wait()
            .map_err(|source| ProcessError::Output { source })?;
        self.is_reaped = true;
        Ok(status.code().map_or(End::Signal(status), End::Exited))
    }

    /// Ends the program, and takes what it printed until then.
    fn give_up(&mut self, collected: &mut Collected) {
        self.end(|chunk| collected.take(chunk).is_ok());
        let ended = Instant::now();
        while let Some(left) = DRAIN.checked_sub(ended.elapsed())
            && let Ok(chunk) = self.chunks.recv_timeout(left)
            && collected.take(chunk).is_ok()
        {}
    }

    /// Ends the program with all of its group; what it prints while it takes leave goes to `take`, as long as that
    /// wants more.
    fn end(&mut self, mut take: impl FnMut(Chunk) -> bool) {
        if self.is_reaped {
            return;
        }
        let strays = group::Strays::of(&self.child, self.mark.as_ref());
        group::terminate(&mut self.child);
        let asked = Instant::now();
        while cfg!(unix)
            && asked.elapsed() < FAREWELL
            && matches!(group::has_ended(&mut self.child), Ok(false))
        {
            match self.chunks.recv_timeout(SHORT_TICK) {
                Ok(chunk) => {
                    if !take(chunk) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(SHORT_TICK),
            }
        }
        group::kill(&mut self.child);
        strays.kill();
        // What can't be waited for was never there.
        let _ = self.child.wait();
        self.is_reaped = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end(|_| true);
    }
}

/// Writes a program's input; it is not waited for, as nobody may ever read it.
fn feed(mut pipe: impl Write + Send + 'static, input: Vec<u8>) -> io::Result<()> {
    // A program may close its stdin without having read it.
    let write = move || drop(pipe.write_all(&input));
    thread::Builder::new()
        .name("command input".into())
        .spawn(write)
        .map(drop)
}

/// Sends what comes through a pipe, until it is closed or nobody listens.
///
/// On a thread that is not waited for: what left the group may hold the pipe open for as long as it likes.
fn forward(
    mut pipe: impl Read + Send + 'static,
    stream: Stream,
    to: SyncSender<Chunk>,
) -> io::Result<()> {
    let read = move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let chunk = match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => Ok((stream, buffer[..length].to_vec())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = chunk.is_err();
            if to.send(chunk).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("command output".into())
        .spawn(read)
        .map(drop)
}
