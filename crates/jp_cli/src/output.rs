//! The one place that prints: data on stdout, everything else on stderr.

use std::{
    io::{self, BufRead as _, Write},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use serde::Serialize;

use crate::{
    args::{Color, Format, Global},
    environment::Environment,
    error::{Code, Failure},
};

/// Where the command says things.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
    quiet: bool,
    verbose: bool,
    color: bool,
    stdin_is_terminal: bool,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// Nobody reads stdout any more: what is left to do is done quietly.
    is_closed: AtomicBool,
}

impl Output {
    pub(crate) fn new(global: &Global, environment: &Environment) -> Self {
        let color = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => environment.stderr_is_terminal && !environment.no_color,
        };
        Self {
            format: global.format,
            quiet: global.quiet,
            verbose: global.verbose > 0,
            color,
            stdin_is_terminal: environment.stdin_is_terminal,
            stdout_is_terminal: environment.stdout_is_terminal,
            stderr_is_terminal: environment.stderr_is_terminal,
            is_closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Writes data, as it is.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_closed.load(Relaxed) {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed.store(true, Relaxed);
                Ok(())
            }
            Err(error) => Err(Failure::new(format!("failed to write to stdout: {error}"))),
        }
    }

    /// Writes content that came from elsewhere; what is not text is not for a terminal.
    pub(crate) fn content(&self, bytes: &[u8]) -> Result<(), Failure> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text),
            Err(_) if self.stdout_is_terminal => {
                Err(Failure::new("the content is not text, and stdout is a terminal")
                    .with_hint("write it to a file: add `> FILE`."))
            }
            Err(_) => self.bytes(bytes),
        }
    }

    /// Writes text that came from elsewhere; a terminal gets it without what would steer it.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        if self.stdout_is_terminal {
            self.bytes(printable(text).as_bytes())
        } else {
            self.bytes(text.as_bytes())
        }
    }

    /// Writes a line of data.
    pub(crate) fn line(&self, line: &str) -> Result<(), Failure> {
        self.text(&format!("{line}\n"))
    }

    /// Writes the command's one JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let mut json = serde_json::to_vec_pretty(value)?;
        json.push(b'\n');
        self.bytes(&json)
    }

    /// Says how things stand.
    pub(crate) fn status(&self, line: &str) {
        if !self.quiet {
            self.stderr("", line);
        }
    }

    /// Says what is of interest with `-v` only.
    pub(crate) fn detail(&self, line: &str) {
        if self.verbose {
            self.stderr("", line);
        }
    }

    /// Shows a model's reasoning while it arrives, to a person who watches.
    pub(crate) fn reasoning(&self, text: &str) {
        if self.stderr_is_terminal && !self.quiet && !self.is_json() {
            let _ = write!(io::stderr().lock(), "{}", self.paint(&printable(text), "2"));
        }
    }

    pub(crate) fn warn(&self, line: &str) {
        self.stderr(&self.paint("warning: ", "33;1"), line);
    }

    pub(crate) fn hint(&self, line: &str) {
        if !self.quiet {
            self.stderr(&self.paint("hint: ", "36"), line);
        }
    }

    /// Returns whether somebody watches who would like to see how far things are.
    pub(crate) fn shows_progress(&self) -> bool {
        self.stderr_is_terminal && !self.quiet
    }

    /// Shows how far things are, in the place of what it showed before; nothing clears the line.
    pub(crate) fn progress(&self, line: &str) {
        let _ = write!(io::stderr().lock(), "\r\x1b[K{}", printable(line));
    }

    /// Asks a question that is answered with yes or no; `None` where nobody is there to answer.
    pub(crate) fn confirm(&self, question: &str) -> Option<bool> {
        if !(self.stdin_is_terminal && self.stderr_is_terminal) {
            return None;
        }
        let _ = write!(io::stderr().lock(), "{} [y/N] ", printable(question));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Says what went wrong; returns the exit code.
    pub(crate) fn fail(&self, failure: &Failure) -> Code {
        self.stderr(&self.paint("error: ", "31;1"), &failure.message);
        for hint in &failure.hints {
            self.stderr(&self.paint("hint: ", "36"), hint);
        }
        failure.code
    }

    fn paint(&self, text: &str, style: &str) -> String {
        if self.color { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Writes one of our own labels and a line that may hold anything.
    fn stderr(&self, label: &str, line: &str) {
        let line = if self.stderr_is_terminal { printable(line) } else { line.to_owned() };
        // Nothing is left to say it to if this fails.
        let _ = writeln!(io::stderr().lock(), "{label}{line}");
    }
}

/// Returns a text with the credentials of the URLs in it taken out.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut pieces = text.split("://");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(['/', '?', '#', '"', '\'', ' ']).unwrap_or(piece.len());
        let (authority, rest) = piece.split_at(end);
        let host = authority.rsplit_once('@').map(|(_, host)| format!("…@{host}"));
        shown += &format!("://{}{rest}", host.as_deref().unwrap_or(authority));
    }
    shown
}

/// Removes control characters other than newline and tab, so that text can't steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Quotes a word for a shell, where it needs that.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Lays out rows in columns; the last column is not padded. A control character in a cell is shown as
/// its escape, so that a name can't forge a row.
pub(crate) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let is_control = |cell: &String| cell.contains(char::is_control);
    let escape =
        |cell: &String| if is_control(cell) { cell.escape_debug().to_string() } else { cell.clone() };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(escape).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let last = row.len().saturating_sub(1);
        let cells = row.iter().enumerate().map(|(index, cell)| {
            if index == last { cell.clone() } else { format!("{cell:<width$}", width = widths[index]) }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}
