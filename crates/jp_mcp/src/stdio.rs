//! Runs servers that are programs, and exchanges messages with them, one per line (MCP, "Transports",
//! "stdio"). Each has its own process group.

use std::{
    collections::VecDeque,
    io,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jp_process::{Pipes, Supervisor, grace};
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
    raw::{self, Raw, quote},
};

/// The number of first lines of stderr that are kept. They often have the cause.
const MAX_FIRST_LINES: usize = 8;
/// The number of last lines of stderr that are kept. They often have the effect.
const MAX_LAST_LINES: usize = 12;
/// The length in bytes at which a line of stderr is split.
const MAX_STDERR_LINE: usize = 500;
/// The time for reading the stderr that a program wrote just before its end.
const STDERR_PAUSE: Duration = Duration::from_millis(20);

/// The process of a server. Drop kills the program if it was never ready.
#[derive(Debug)]
pub(crate) struct Process {
    program: Mutex<Supervisor>,
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    stderr: Arc<Mutex<Lines>>,
}

/// The messages to and from a process.
pub(crate) struct Messages {
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    stdout: BufReader<ChildStdout>,
    raw: Arc<Raw>,
    limits: Limits,
    /// The start of an incomplete line.
    partial: Vec<u8>,
    /// The messages of a batch that rmcp hasn't received.
    batch: VecDeque<Value>,
    /// The number of lines that weren't messages.
    rubbish: usize,
}

/// Starts a program. Must be called in a tokio runtime.
pub(crate) fn start(
    program: &Program,
    raw: Arc<Raw>,
    limits: Limits,
) -> Result<(Process, Messages), Fault> {
    let started = Supervisor::start_piped(&mut command(program));
    started
        .and_then(|(supervisor, pipes)| connect(supervisor, pipes, raw, limits))
        .map_err(|error| Fault::Start {
            program: program.program.clone(),
            reason: reason(&error, program),
        })
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.program);
    command
        .args(&program.arguments)
        .current_dir(&program.directory);
    for variable in &program.withheld {
        command.env_remove(variable);
    }
    // After that: the configuration may give the server another value for a variable.
    command.envs(&program.environment);
    command
}

fn connect(
    program: Supervisor,
    (stdin, stdout, stderr): Pipes,
    raw: Arc<Raw>,
    limits: Limits,
) -> io::Result<(Process, Messages)> {
    let stdin = Arc::new(tokio::sync::Mutex::new(Some(ChildStdin::from_std(stdin)?)));
    let stdout = BufReader::new(ChildStdout::from_std(stdout)?);
    let lines = Arc::new(Mutex::default());
    tokio::spawn(keep_stderr(
        ChildStderr::from_std(stderr)?,
        Arc::clone(&lines),
    ));
    let process = Process {
        program: Mutex::new(program),
        stdin: Arc::clone(&stdin),
        stderr: lines,
    };
    let messages = Messages {
        stdin,
        stdout,
        raw,
        limits,
        partial: Vec::new(),
        batch: VecDeque::new(),
        rubbish: 0,
    };
    Ok((process, messages))
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
        // The rest of a longer line becomes the next line.
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

    /// Takes the lines.
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
    /// Takes the first and the last lines of stderr since the last call.
    pub(crate) fn take_stderr(&self) -> Vec<String> {
        self.stderr
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Waits a moment for the end of a program that has closed its stdout, and describes it.
    pub(crate) async fn describe_end(&self) -> String {
        let deadline = Instant::now() + grace::OUTPUT_AND_EXIT;
        while !self.program().has_ended() {
            if Instant::now() >= deadline {
                return "it closed its stdout".to_owned();
            }
            sleep(grace::TICK).await;
        }
        // Wait for the last lines of stderr.
        sleep(STDERR_PAUSE).await;
        match self.program().kill() {
            Some(status) => format!("it ended with {status}"),
            None => "it ended".to_owned(),
        }
    }

    /// Ends the program: closes its stdin and continues with the stages of [`Supervisor`].
    pub(crate) async fn stop(&self) {
        self.program().begin_end();
        // A write to a program that doesn't read its stdin holds the lock for ever.
        if let Ok(mut stdin) = timeout(grace::AFTER_INPUT, self.stdin.lock()).await {
            *stdin = None;
        }
        while !self.program().advance_end() {
            sleep(grace::TICK).await;
        }
    }

    fn program(&self) -> MutexGuard<'_, Supervisor> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages {
    /// Reads a line; `None` at the end of the output. Can be cancelled and called again.
    async fn read_line(&mut self) -> Result<Option<Vec<u8>>, Fault> {
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

    /// Reports a line that isn't a message. Fails if there are too many.
    fn report_rubbish(&mut self, line: &[u8]) -> Result<(), Fault> {
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        self.rubbish += 1;
        let quoted = quote(line.trim_end());
        if self.rubbish > self.limits.rubbish {
            let count = self.limits.rubbish;
            return Err(Fault::Malformed(format!(
                "it printed more than {count} lines to stdout that are not messages, such as {quoted}"
            )));
        }
        self.raw.remark(format!(
            "it printed a line to stdout that is not a message: {quoted}"
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
        self.raw.note_request(&message);
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

    /// Can be cancelled and called again, because the buffers keep the data.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                match self.raw.hand_through(message) {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let line = match self.read_line().await {
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
                Ok(_) => self.report_rubbish(&line),
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
