//! Servers that are programs: started in a group of their own, spoken to line by line (MCP, "Transports", "stdio").

use std::{
    collections::VecDeque,
    io,
    process::{Child, Command, ExitStatus, Stdio as Pipe},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jp_process::group::{self, Mark, Strays};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::{Instant, sleep, timeout},
};

use crate::{
    Fault, Limits, Program,
    error::PipeError,
    raw::{self, Raw, quoted},
};

/// How many lines of stderr are kept, and how much of each.
const MAX_FIRST_LINES: usize = 8;
const MAX_LAST_LINES: usize = 12;
const MAX_STDERR_LINE: usize = 500;
/// How long a program has to end once its stdin is closed, and again once it was asked to.
const PATIENCE: Duration = Duration::from_millis(400);
/// How often it is looked whether a program has ended.
const TICK: Duration = Duration::from_millis(5);

/// The process of a server.
#[derive(Debug)]
pub(crate) struct Process {
    held: Mutex<Held>,
    mark: Mark,
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    stderr: Arc<Mutex<Lines>>,
}

#[derive(Debug)]
struct Held {
    child: Child,
    /// How it ended, once it is reaped: from then on its id may be another's.
    status: Option<ExitStatus>,
}

/// The messages to and from a process.
pub(crate) struct Messages {
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    stdout: BufReader<ChildStdout>,
    raw: Arc<Raw>,
    limits: Limits,
    /// The beginning of a line.
    partial: Vec<u8>,
    /// Messages that came together.
    batch: VecDeque<Value>,
    rubbish: usize,
}

/// Starts a program; needs a runtime around it.
pub(crate) fn start(
    program: &Program,
    raw: Arc<Raw>,
    limits: Limits,
) -> Result<(Process, Messages), Fault> {
    let failure = |error: io::Error| Fault::Start {
        program: program.program.clone(),
        reason: reason(&error, program),
    };
    let mut command = Command::new(&program.program);
    command
        .args(&program.arguments)
        .current_dir(&program.directory);
    program
        .withheld
        .iter()
        .for_each(|variable| _ = command.env_remove(variable));
    command.envs(&program.environment);
    command
        .stdin(Pipe::piped())
        .stdout(Pipe::piped())
        .stderr(Pipe::piped());
    group::separate(&mut command);
    let mark = Mark::put_on(&mut command);
    let mut child = command.spawn().map_err(failure)?;
    let pipes = || -> Option<_> {
        Some((
            child.stdin.take()?,
            child.stdout.take()?,
            child.stderr.take()?,
        ))
    }();
    let Some((stdin, stdout, stderr)) = pipes else {
        unreachable!("each was asked for")
    };
    let stdin = Arc::new(tokio::sync::Mutex::new(Some(
        ChildStdin::from_std(stdin).map_err(failure)?,
    )));
    let stdout = BufReader::new(ChildStdout::from_std(stdout).map_err(failure)?);
    let kept = Arc::new(Mutex::default());
    tokio::spawn(keep_stderr(
        ChildStderr::from_std(stderr).map_err(failure)?,
        Arc::clone(&kept),
    ));
    let process = Process {
        held: Mutex::new(Held {
            child,
            status: None,
        }),
        mark,
        stdin: Arc::clone(&stdin),
        stderr: kept,
    };
    Ok((
        process,
        Messages {
            stdin,
            stdout,
            raw,
            limits,
            partial: Vec::new(),
            batch: VecDeque::new(),
            rubbish: 0,
        },
    ))
}

fn reason(error: &io::Error, program: &Program) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if !program.directory.is_dir() => {
            format!("there is no directory {:?} to run it in", program.directory)
        }
        io::ErrorKind::NotFound if program.program.contains('/') => {
            "there is no such program".to_owned()
        }
        io::ErrorKind::NotFound => "there is no such program in PATH".to_owned(),
        _ => error.to_string(),
    }
}

/// Keeps the first and the last lines of what a program writes to stderr.
async fn keep_stderr(stderr: ChildStderr, kept: Arc<Mutex<Lines>>) {
    let mut stderr = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        // What is longer is a line of its own.
        match (&mut stderr)
            .take(MAX_STDERR_LINE as u64)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        kept.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }
}

/// The first and the last lines of an output.
#[derive(Debug, Default)]
struct Lines {
    first: Vec<String>,
    last: VecDeque<String>,
    left_out: usize,
}

impl Lines {
    fn push(&mut self, line: String) {
        if self.first.len() < MAX_FIRST_LINES {
            return self.first.push(line);
        }
        if self.last.len() == MAX_LAST_LINES {
            self.last.pop_front();
            self.left_out += 1;
        }
        self.last.push_back(line);
    }

    /// Returns the lines, and forgets them.
    fn take(&mut self) -> Vec<String> {
        let Self {
            first,
            last,
            left_out,
        } = std::mem::take(self);
        let gap = (left_out > 0).then(|| format!("… ({left_out} lines are left out here)"));
        first.into_iter().chain(gap).chain(last).collect()
    }
}

impl Process {
    /// Returns the first and the last lines that it wrote to stderr since this was asked before.
    pub(crate) fn take_stderr(&self) -> Vec<String> {
        self.stderr
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Says how it ended, having waited a moment for that.
    pub(crate) async fn end(&self) -> String {
        if !self.ends_within(PATIENCE).await {
            return "it closed its stdout".to_owned();
        }
        // What it wrote last is still on its way.
        sleep(TICK * 4).await;
        let status = self.held().reaped(&self.mark);
        status.map_or_else(
            || "it ended".to_owned(),
            |status| format!("it ended with {status}"),
        )
    }

    /// Ends it: closes its stdin, asks it to end, and ends it, each after a while.
    pub(crate) async fn stop(&self) {
        // A program that reads nothing may be written to for ever.
        if let Ok(mut stdin) = timeout(PATIENCE, self.stdin.lock()).await {
            *stdin = None;
        }
        // What leaves the program's group is found only while the program is there.
        let found = self.held().strays(&self.mark);
        if !self.ends_within(PATIENCE).await {
            self.held().terminate();
            self.ends_within(PATIENCE).await;
        }
        self.held().reaped(&self.mark);
        found.into_iter().for_each(Strays::kill);
    }

    /// Waits until the program has ended; returns whether it did.
    async fn ends_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            if self.held().has_ended() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(TICK).await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn has_ended(&mut self) -> bool {
        self.status.is_some() || group::has_ended(&mut self.child).unwrap_or(true)
    }

    fn terminate(&mut self) {
        if self.status.is_none() {
            group::terminate(&mut self.child);
        }
    }

    /// Finds what the program started, unless its id may be another's by now.
    fn strays(&self, mark: &Mark) -> Option<Strays> {
        self.status
            .is_none()
            .then(|| Strays::of(&self.child, Some(mark)))
    }

    /// Ends the program with all that it started, and returns how it ended.
    fn reaped(&mut self, mark: &Mark) -> Option<ExitStatus> {
        if self.status.is_none() {
            let found = self.strays(mark);
            group::kill(&mut self.child);
            self.status = self.child.wait().ok();
            found.into_iter().for_each(Strays::kill);
        }
        self.status
    }
}

/// Ends what was not asked to end before, such as a server that is not ready yet.
impl Drop for Process {
    fn drop(&mut self) {
        self.held().reaped(&self.mark);
    }
}

impl Messages {
    /// Reads a line; nothing once there are no more. May be dropped and called again.
    async fn line(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            let chunk = self.stdout.fill_buf().await.unwrap_or_default();
            if chunk.is_empty() {
                let last = std::mem::take(&mut self.partial);
                return Ok(Some(last).filter(|last| !last.is_empty()));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(chunk.len(), |end| end + 1);
            self.partial.extend_from_slice(&chunk[..length]);
            self.stdout.consume(length);
            if self.partial.len() > self.limits.message {
                return Err(Fault::MessageTooLong(self.limits.message));
            }
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
    }

    /// Passes over a line that is no message; fails where there are too many.
    fn pass_over(&mut self, line: &[u8]) -> Result<(), Fault> {
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        self.rubbish += 1;
        let quoted = quoted(line.trim_end());
        if self.rubbish > self.limits.rubbish {
            let count = self.limits.rubbish;
            return Err(Fault::Malformed(format!(
                "it printed more than {count} lines to stdout that are no messages, such as {quoted}"
            )));
        }
        self.raw.remark(format!(
            "it printed a line to stdout that is no message: {quoted}"
        ));
        Ok(())
    }
}

impl Transport<RoleClient> for Messages {
    type Error = PipeError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.raw.sent(&message);
        let stdin = Arc::clone(&self.stdin);
        async move {
            let mut line = serde_json::to_vec(&message).map_err(io::Error::from)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let stdin = stdin
                .as_mut()
                .ok_or(io::Error::from(io::ErrorKind::BrokenPipe))?;
            stdin.write_all(&line).await?;
            Ok(stdin.flush().await?)
        }
    }

    /// May be dropped and called again: what was read stays in the buffers.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                match self.raw.received(message) {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let line = match self.line().await {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(fault) => {
                    self.raw.end(fault);
                    return None;
                }
            };
            let taken = match raw::read(&line, &self.limits) {
                Ok(Some(Value::Array(messages))) if messages.iter().all(Value::is_object) => {
                    self.batch.extend(messages);
                    Ok(())
                }
                Ok(Some(message @ Value::Object(_))) => {
                    self.batch.push_back(message);
                    Ok(())
                }
                Ok(_) => self.pass_over(&line),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = taken {
                self.raw.end(fault);
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
