use std::{
    ffi::OsStr,
    io::{self, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use crate::{ProcessError, group};

/// How long to wait for output before looking whether it is time to end.
const TICK: Duration = Duration::from_millis(50);
/// The same for a program that has closed its output.
const SHORT_TICK: Duration = Duration::from_millis(2);
/// How long output may stay open once the program has ended: something it started holds it.
const LINGER: Duration = Duration::from_millis(500);
/// How long a program that is asked to end may take: git removes its locks.
const FAREWELL: Duration = Duration::from_millis(250);
/// Length of what is read at once; this many times [`QUEUE`] may be in memory beside the output.
const CHUNK: usize = 64 * 1024;
const QUEUE: usize = 4;

/// What ends a program.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// How long it may run.
    pub timeout: Duration,
    /// How much it may print.
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

/// Runs a program to its end, stdin empty; `None` if its output became moot before.
///
/// However this returns, the program has ended and, where the bounds ended it, its process group too.
pub fn run(mut command: Command, bounds: &Bounds<'_>) -> Result<Option<Output>, ProcessError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    group::separate(&mut command);
    let child = command.spawn().map_err(|error| start_error(command.get_program(), error))?;
    let mut running = Running::new(child).map_err(|source| ProcessError::Output { source })?;
    Ok(if running.watch(bounds)? { Some(running.finish()?) } else { None })
}

fn start_error(program: &OsStr, source: io::Error) -> ProcessError {
    let path = Path::new(program);
    let is_path = path.parent().is_some_and(|parent| parent != Path::new(""));
    let name = program.to_string_lossy().into_owned();
    match source.kind() {
        io::ErrorKind::NotFound if !is_path => ProcessError::NotFound { program: name },
        io::ErrorKind::NotFound if !path.exists() => ProcessError::Missing { path: path.to_owned() },
        _ if is_path && path.is_dir() => {
            ProcessError::Start { program: name, source: io::ErrorKind::IsADirectory.into() }
        }
        _ => ProcessError::Start { program: name, source },
    }
}

/// Which of its outputs a program printed to.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

type Chunk = io::Result<(Stream, Vec<u8>)>;

/// A program that runs; dropping it ends it.
struct Running {
    child: Child,
    chunks: Receiver<Chunk>,
    output: Output,
    is_reaped: bool,
}

impl Running {
    fn new(mut child: Child) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(QUEUE);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let running = Self { child, chunks, output: Output::default(), is_reaped: false };
        if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
            forward(stdout, Stream::Stdout, sender.clone())?;
            forward(stderr, Stream::Stderr, sender)?;
        }
        Ok(running)
    }

    /// Collects output until the program has ended; returns whether it is still wanted then.
    fn watch(&mut self, bounds: &Bounds<'_>) -> Result<bool, ProcessError> {
        let started = Instant::now();
        let mut ended: Option<Instant> = None;
        loop {
            let is_open = self.receive(bounds.max_bytes)?;
            if ended.is_none() && self.has_ended()? {
                ended = Some(Instant::now());
            }
            match ended {
                Some(_) if !is_open => return Ok(true),
                Some(ended) if ended.elapsed() >= LINGER => {
                    self.output.was_held = true;
                    return Ok(true);
                }
                None if started.elapsed() >= bounds.timeout => {
                    return Err(ProcessError::Timeout { limit: bounds.timeout });
                }
                None if group::is_stopped(&mut self.child) => return Err(ProcessError::Stopped),
                _ if (bounds.is_moot)() => return Ok(false),
                _ => {}
            }
        }
    }

    /// Takes what was printed, or waits a moment for it; returns whether there may be more.
    fn receive(&mut self, limit: u64) -> Result<bool, ProcessError> {
        match self.chunks.recv_timeout(TICK) {
            Ok(chunk) => {
                let (stream, bytes) = chunk.map_err(|source| ProcessError::Output { source })?;
                let Output { stdout, stderr, .. } = &mut self.output;
                if (stdout.len() + stderr.len() + bytes.len()) as u64 > limit {
                    return Err(ProcessError::TooLong { limit });
                }
                match stream {
                    Stream::Stdout => stdout.extend(bytes),
                    Stream::Stderr => stderr.extend(bytes),
                }
                Ok(true)
            }
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
    fn finish(mut self) -> Result<Output, ProcessError> {
        if self.output.was_held {
            group::kill(&mut self.child);
        }
        let status = self.child.wait().map_err(|source| ProcessError::Output { source })?;
        self.is_reaped = true;
        self.output.status = status.code().ok_or(ProcessError::Signal { status })?;
        Ok(std::mem::take(&mut self.output))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        group::terminate(&mut self.child);
        let asked = Instant::now();
        while cfg!(unix)
            && asked.elapsed() < FAREWELL
            && matches!(group::has_ended(&mut self.child), Ok(false))
        {
            thread::sleep(SHORT_TICK);
        }
        group::kill(&mut self.child);
        // What can't be waited for was never there.
        let _ = self.child.wait();
    }
}

/// Sends what comes through a pipe, until it is closed or nobody listens.
///
/// On a thread that is not waited for: what left the group may hold the pipe open for as long as it likes.
fn forward(mut pipe: impl Read + Send + 'static, stream: Stream, to: SyncSender<Chunk>) -> io::Result<()> {
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
    thread::Builder::new().name("command output".into()).spawn(read).map(drop)
}
