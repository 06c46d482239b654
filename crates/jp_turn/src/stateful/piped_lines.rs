//! A process that ends with the turn: its lines go through pipes.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, BufReader, Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use jp_process::group::{self, Mark, Strays};

use super::process::{GRACE, LINGER, MAX_ERRORS, MAX_LINE, Reply, SHORT_TICK, TICK};

/// How long a process that was told that no more comes may take to end.
const FAREWELL: Duration = Duration::from_millis(500);

/// A process that reads and writes lines; dropping it ends it and all of its group.
#[derive(Debug)]
pub(super) struct Owned {
    child: Child,
    /// What everything has that it starts.
    mark: Mark,
    /// What it started in other groups, once it is to end.
    strays: Option<Strays>,
    /// Gone once nothing more is sent.
    input: Option<Sender<Vec<u8>>>,
    lines: Receiver<Heard>,
    errors: Arc<Mutex<Tail>>,
    /// Whether a line was sent that it has not answered.
    pub(super) is_owed: bool,
    is_reaped: bool,
}

/// What comes from the process.
#[derive(Debug)]
enum Heard {
    Line(Vec<u8>),
    TooLong,
}

impl Owned {
    /// Starts a process, in a group of its own.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        group::separate(&mut command);
        let mark = Mark::put_on(&mut command);
        let mut child = command.spawn()?;
        let (input, to_write) = channel();
        let (heard, lines) = sync_channel(1);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self {
            child,
            mark,
            strays: None,
            input: Some(input),
            lines,
            errors: Arc::default(),
            is_owed: false,
            is_reaped: false,
        };
        let errors = Arc::clone(&process.errors);
        if let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) {
            on_thread(move || write(stdin, &to_write))?;
            on_thread(move || listen(stdout, &heard))?;
            on_thread(move || remember(stderr, &errors))?;
        }
        Ok(process)
    }

    /// Sends a line; that the process takes it is not waited for.
    pub(super) fn send(&mut self, line: Vec<u8>) {
        if let Some(input) = &self.input {
            // Where nobody reads any more, the wait for the answer finds that out.
            _ = input.send(line);
            self.is_owed = true;
        }
    }

    /// Waits for a line, for at most so long.
    pub(super) fn receive(&mut self, timeout: Duration, is_moot: &dyn Fn() -> bool) -> Reply {
        let started = Instant::now();
        let mut ended: Option<Instant> = None;
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(heard) => return self.taken(heard),
                Err(RecvTimeoutError::Disconnected) => return Reply::Gone,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if ended.is_none() && self.has_ended() {
                ended = Some(Instant::now());
            }
            // What the process started may hold its output open for as long as it likes.
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

    /// Takes a line that came unasked, or late.
    pub(super) fn receive_ready(&mut self) -> Option<Reply> {
        self.lines.try_recv().ok().map(|heard| self.taken(heard))
    }

    fn taken(&mut self, heard: Heard) -> Reply {
        self.is_owed = false;
        match heard {
            Heard::Line(line) => Reply::Line(line),
            Heard::TooLong => Reply::TooLong,
        }
    }

    /// Returns the end of what came on stderr.
    pub(super) fn errors(&self) -> String {
        let started = Instant::now();
        // The last words of a process that has ended may be on their way.
        while self.is_reaped && !lock(&self.errors).is_over && started.elapsed() < FAREWELL {
            thread::sleep(SHORT_TICK);
        }
        lock(&self.errors).text()
    }

    /// Gives the process a moment to end, makes it, and returns how it ended.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        self.hang_up();
        self.await_end(Instant::now() + FAREWELL);
        self.terminate();
        self.await_end(Instant::now() + GRACE);
        self.reap()
    }

    /// Ends many at once, in the time that one takes.
    pub(super) fn end_all(mut processes: Vec<Self>) {
        processes.iter_mut().for_each(Self::hang_up);
        let farewell = Instant::now() + FAREWELL;
        processes
            .iter_mut()
            .for_each(|process| process.await_end(farewell));
        processes.iter_mut().for_each(Self::terminate);
        let grace = Instant::now() + GRACE;
        processes
            .iter_mut()
            .for_each(|process| process.await_end(grace));
        for process in &mut processes {
            process.reap();
        }
    }

    fn hang_up(&mut self) {
        if !self.is_reaped && self.strays.is_none() {
            self.strays = Some(Strays::of(&self.child, Some(&self.mark)));
        }
        self.input = None;
    }

    fn terminate(&mut self) {
        if !self.is_reaped && !self.has_ended() {
            group::terminate(&mut self.child);
        }
    }

    fn await_end(&mut self, until: Instant) {
        while !self.is_reaped && !self.has_ended() && Instant::now() < until {
            thread::sleep(SHORT_TICK);
        }
    }

    fn has_ended(&mut self) -> bool {
        // What can't be asked about was never there.
        group::has_ended(&mut self.child).unwrap_or(true)
    }

    fn reap(&mut self) -> Option<ExitStatus> {
        if !self.is_reaped {
            group::kill(&mut self.child);
            self.strays.take().into_iter().for_each(Strays::kill);
            self.is_reaped = true;
        }
        self.child.wait().ok()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.end();
        }
    }
}

/// The last that came.
#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
    /// Whether nothing more comes.
    is_over: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(MAX_ERRORS);
        self.bytes.drain(..excess);
    }

    fn text(&self) -> String {
        let bytes: Vec<_> = self.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// On a thread that is not waited for: what left the group may hold a pipe for as long as it likes.
pub(super) fn on_thread(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name("stateful tool".into())
        .spawn(run)
        .map(drop)
}

pub(super) fn write(mut stdin: impl Write, lines: &Receiver<Vec<u8>>) {
    while let Ok(line) = lines.recv() {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn listen(stdout: impl Read, to: &SyncSender<Heard>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match stdout
            .by_ref()
            .take(MAX_LINE as u64 + 1)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(length) if length > MAX_LINE => {
                _ = to.send(Heard::TooLong);
                return;
            }
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) if to.send(Heard::Line(line)).is_err() => return,
            Ok(_) => {}
        }
    }
}

fn remember(mut stderr: impl Read, errors: &Mutex<Tail>) {
    let mut buffer = vec![0; 4096];
    loop {
        match stderr.read(&mut buffer) {
            Ok(length) if length > 0 => lock(errors).push(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => {
                lock(errors).is_over = true;
                return;
            }
        }
    }
}

fn lock(errors: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    errors.lock().unwrap_or_else(PoisonError::into_inner)
}
