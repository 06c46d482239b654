//! The process behind `shell`. It reads one request per line and writes one response per line.

use std::{
    collections::VecDeque,
    io::{self, BufRead, Write},
    process::ExitStatus,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use jp_process::grace;
use jp_tool::{ContentBlock, Status, ToolResponse};
use serde::Deserialize;

use super::{
    Key,
    output::{MAX_KEPT, Output, Prompt, Shown},
    pty::Terminal,
};

/// The maximum time until the first prompt.
const START: Duration = Duration::from_secs(5);
/// The default time to wait for the prompt, in seconds.
const WAIT: f64 = 10.0;
const WAIT_FOR_KEYS: f64 = 2.0;
/// The longest wait.
const MAX_WAIT: f64 = 100.0;
/// The silence after which a prompt counts as the last, if fewer prompts came than lines were
/// typed: a program may have read some lines.
const QUIET: Duration = Duration::from_secs(1);
/// The pause between two checks whether the shell has ended.
const TICK: Duration = Duration::from_millis(20);
/// The longest line that can be typed, in bytes: Linux drops what exceeds 4,095 bytes in canonical
/// mode (termios(3)).
const MAX_LINE: usize = 4000;

/// Runs a shell, types what the requests say, and answers each, until the shell or `input` ends.
///
/// A request is `{"action","arguments":{"text"?,"keys"?,"wait_secs"?}}`, an answer a tool's
/// response with a status. Everything that was started in the shell ends with it.
pub fn serve(input: impl BufRead + Send + 'static, mut output: impl Write) -> io::Result<()> {
    let (to, events) = sync_channel(16);
    let screen = to.clone();
    let secret = std::process::id();
    let terminal = Terminal::open(secret, move |bytes| {
        screen.send(Event::Shown(bytes.to_vec())).is_ok()
    })?;
    thread::Builder::new()
        .name("requests".into())
        .spawn(move || listen(input, &to))?;
    let mut session = ShellSession {
        terminal,
        events,
        output: Output::new(secret),
        requests: VecDeque::new(),
        is_cut: false,
        lines: 1,
    };
    // The first prompt and everything before it are no answer to a request.
    session.await_prompt(START);
    session.output.take();
    while let Some(line) = session.next_request() {
        let response = session.respond(&line);
        serde_json::to_writer(&mut output, &response)?;
        output.write_all(b"\n")?;
        output.flush()?;
        if response.status == Some(Status::Stopped) {
            break;
        }
    }
    Ok(())
}

/// An event from the terminal or the input.
enum Event {
    /// The terminal shows something.
    Shown(Vec<u8>),
    /// A request came.
    Request(String),
    /// No more requests come.
    Cut,
}

fn listen(input: impl BufRead, to: &SyncSender<Event>) {
    for line in input.lines().map_while(Result::ok) {
        if to.send(Event::Request(line)).is_err() {
            return;
        }
    }
    _ = to.send(Event::Cut);
}

#[derive(Deserialize)]
struct Request {
    action: String,
    #[serde(default)]
    arguments: Input,
}

#[derive(Deserialize, Default)]
struct Input {
    text: Option<String>,
    keys: Option<String>,
    wait_secs: Option<f64>,
}

struct ShellSession {
    terminal: Terminal,
    events: Receiver<Event>,
    output: Output,
    /// Requests that came before the one at hand was answered.
    requests: VecDeque<String>,
    is_cut: bool,
    /// The number of lines that were typed last. As many prompts follow if only the shell reads
    /// them.
    lines: usize,
}

impl ShellSession {
    /// Waits for a request, and keeps output that comes meanwhile.
    fn next_request(&mut self) -> Option<String> {
        loop {
            if let Some(request) = self.requests.pop_front() {
                return Some(request);
            }
            if self.is_cut {
                return None;
            }
            let event = self.events.recv().ok()?;
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Shown(bytes) => self.output.push(&bytes),
            Event::Request(request) => self.requests.push_back(request),
            Event::Cut => self.is_cut = true,
        }
    }

    fn respond(&mut self, line: &str) -> ToolResponse {
        let request: Request = match serde_json::from_str(line) {
            Ok(request) => request,
            Err(error) => return self.refuse(format!("The request can't be read: {error}.")),
        };
        match request.action.as_str() {
            "abort" => return self.respond_stopped(),
            "fetch" => self.await_prompt(wait_time(&request.arguments, 0.0)),
            _ => {
                if let Err(reason) = self.enter(&request.arguments) {
                    return self.refuse(reason);
                }
            }
        }
        if self.terminal.has_ended() {
            self.respond_stopped()
        } else {
            self.respond_running()
        }
    }

    /// Types the model's input, and waits for the prompt.
    fn enter(&mut self, input: &Input) -> Result<(), String> {
        let (bytes, lines, wait) = match (&input.text, &input.keys) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => {
                return Err("Send either `text` or `keys`, not both.".to_owned());
            }
            (Some(text), None) => {
                if text.lines().any(|line| line.len() > MAX_LINE) {
                    return Err(format!(
                        "A line of more than {MAX_LINE} bytes can't be typed into a terminal. Write it to a file and use the file."
                    ));
                }
                let typed = format!("{text}\n");
                (
                    typed.clone().into_bytes(),
                    typed.matches('\n').count(),
                    wait_time(input, WAIT),
                )
            }
            (None, Some(name)) => {
                let key = Key::ALL.into_iter().find(|key| key.name() == name);
                let key = key.ok_or_else(|| format!("There is no key {name:?}."))?;
                (key.bytes().to_vec(), 1, wait_time(input, WAIT_FOR_KEYS))
            }
        };
        // Prompts that came before belong to earlier input.
        self.output.expect_prompt();
        self.lines = lines;
        self.terminal.enter(&bytes);
        self.await_prompt(wait);
        Ok(())
    }

    /// Waits until the prompt is back, the shell or the input has ended, or the time is over.
    fn await_prompt(&mut self, wait: Duration) {
        let started = Instant::now();
        let mut shown = Instant::now();
        loop {
            match self.events.recv_timeout(TICK) {
                Ok(event) => {
                    self.take(event);
                    shown = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) if self.terminal.has_ended() => return,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let is_last = self.output.prompts >= self.lines && self.output.last.is_some();
            let is_over = self.is_cut || started.elapsed() >= wait;
            if is_last || is_over || (shown.elapsed() >= QUIET && self.prompt().is_some()) {
                return;
            }
        }
    }

    /// Returns the shell's current prompt, if it is known.
    ///
    /// A program may read some of several lines. So fewer prompts are enough if the output ends
    /// with one and no program is in the foreground.
    fn prompt(&self) -> Option<Prompt> {
        let Output {
            prompts,
            last,
            ends_with_prompt,
            ..
        } = self.output;
        let is_back = prompts >= self.lines || (ends_with_prompt && self.terminal.is_at_shell());
        last.filter(|_| is_back)
    }

    fn respond_running(&mut self) -> ToolResponse {
        let state = match self.prompt() {
            Some(Prompt::Ready(status)) => format!("The prompt is back; exit status {status}."),
            Some(Prompt::More) => "The shell is waiting for the rest of the command.".to_owned(),
            None => "The prompt is not back: a program is running or waiting for input.".to_owned(),
        };
        self.respond_with(state, Status::Running)
    }

    fn respond_stopped(&mut self) -> ToolResponse {
        let ending = self
            .terminal
            .end()
            .map_or_else(String::new, describe_status);
        // The last output may still be on its way. A process that left the session may write
        // forever, so the wait is bounded.
        let ended = Instant::now();
        while ended.elapsed() < grace::LAST_BYTES
            && let Ok(event) = self.events.recv_timeout(TICK)
        {
            self.take(event);
        }
        self.respond_with(format!("The shell has ended{ending}."), Status::Stopped)
    }

    fn respond_with(&mut self, state: String, status: Status) -> ToolResponse {
        let Shown {
            text,
            printed,
            left_out,
        } = self.output.take();
        let text = Some(text.trim_end().to_owned()).filter(|text| !text.is_empty());
        let lost = (left_out > 0).then(|| {
            format!(
                "The command printed {printed} bytes. jp keeps at most {MAX_KEPT} bytes per call, so {left_out} bytes in the middle are lost. Write long output to a file and read parts of the file."
            )
        });
        let is_error = lost.is_some();
        let blocks = text
            .into_iter()
            .chain(lost)
            .chain([state])
            .map(ContentBlock::text);
        ToolResponse {
            status: Some(status),
            is_error,
            ..ToolResponse::new(blocks)
        }
    }

    fn refuse(&self, reason: String) -> ToolResponse {
        ToolResponse {
            status: Some(Status::Running),
            ..ToolResponse::from_error(reason)
        }
    }
}

fn describe_status(status: ExitStatus) -> String {
    format!(" ({status})")
}

fn wait_time(input: &Input, default: f64) -> Duration {
    Duration::from_secs_f64(input.wait_secs.unwrap_or(default).clamp(0.0, MAX_WAIT))
}
