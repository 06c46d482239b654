//! The one place that prints: data on stdout, everything else on stderr.

use std::{
    io::{self, StderrLock, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::{
    args::{Color, Format, Global},
    environment::Environment,
    error::{Code, Failure},
};
use jp_session::text::{is_steering, printable, visible};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

/// Where the command says things; a clone is the same place.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    format: Format,
    quiet: bool,
    verbose: bool,
    color: bool,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// Whether the terminal can clear a line and write another in its place.
    can_redraw: bool,
    /// Nobody reads stdout any more: what is left to do is done quietly.
    is_closed: Arc<AtomicBool>,
    /// Whether the last line on stderr is one that says how far things are, which makes way for any other.
    has_progress: Arc<AtomicBool>,
}

/// How a line stands out where there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Faint,
    Fault,
    Added,
    Removed,
}

impl Tone {
    fn style(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Fault | Self::Removed => "31",
            Self::Added => "32",
        }
    }
}

impl Output {
    pub(crate) fn new(global: &Global, environment: &Environment) -> Self {
        let color = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                environment.stderr_is_terminal
                    && !environment.no_color
                    && !environment.terminal_is_dumb
            }
        };
        Self {
            format: global.format,
            quiet: global.quiet,
            verbose: global.verbose > 0,
            color,
            stdout_is_terminal: environment.stdout_is_terminal,
            stderr_is_terminal: environment.stderr_is_terminal,
            can_redraw: !environment.terminal_is_dumb,
            is_closed: Arc::default(),
            has_progress: Arc::default(),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Returns whether nobody reads stdout any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }

    /// Writes data, as it is.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_closed() {
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
            Err(_) if self.stdout_is_terminal => Err(Failure::new(
                "the content is not text, and stdout is a terminal",
            )
            .with_hint("write it to a file: add `> FILE`.")),
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
        self.stderr_is_terminal && self.can_redraw && !self.quiet
    }

    /// Shows how far things are, in the place of what it showed before; nothing clears the line, and so does all else that
    /// is said meanwhile.
    pub(crate) fn progress(&self, line: &str) {
        let mut stderr = io::stderr().lock();
        self.has_progress.store(!line.is_empty(), Relaxed);
        let _ = write!(stderr, "\r\x1b[K{}", printable(line));
    }

    /// Tells a line to a person who is going to be asked something, `-q` or not.
    pub(crate) fn tell(&self, tone: Tone, line: &str) {
        let _ = writeln!(
            self.free_line(),
            "{}",
            self.paint(&visible(line), tone.style())
        );
    }

    /// Asks a person something; the cursor stays behind it.
    pub(crate) fn ask(&self, prompt: &str) {
        let prompt = self.paint(&visible(prompt), Tone::Strong.style());
        let mut stderr = self.free_line();
        let _ = write!(stderr, "{prompt} ").and_then(|()| stderr.flush());
    }

    /// Ends a line of data that is open on the person's screen; returns whether it is there, and not in a file.
    pub(crate) fn end_line_on_screen(&self) -> Result<bool, Failure> {
        if self.stdout_is_terminal {
            self.line("").map(|()| true)
        } else {
            Ok(false)
        }
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
        if self.color && !style.is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Writes one of our own labels and a line that may hold anything.
    fn stderr(&self, label: &str, line: &str) {
        let line = if self.stderr_is_terminal {
            printable(line)
        } else {
            line.to_owned()
        };
        // Nothing is left to say it to if this fails.
        let _ = writeln!(self.free_line(), "{label}{line}");
    }

    /// Returns stderr, without a line that says how far things are.
    fn free_line(&self) -> StderrLock<'static> {
        let mut stderr = io::stderr().lock();
        if self.has_progress.swap(false, Relaxed) {
            let _ = write!(stderr, "\r\x1b[K");
        }
        stderr
    }
}

/// Lays out rows in columns, as wide as a terminal shows them (UAX #11); the last column is not padded. A control
/// character in a cell is shown as its escape, so that a name can't forge a row.
pub(crate) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let escape = |cell: &String| {
        if cell.contains(is_steering) {
            cell.escape_debug().to_string()
        } else {
            cell.clone()
        }
    };
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(escape).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.width())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let last = row.len().saturating_sub(1);
        let cells = row.iter().enumerate().map(|(index, cell)| {
            let padding = if index == last {
                0
            } else {
                widths[index] - cell.width()
            };
            cell.clone() + &" ".repeat(padding)
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_letters_is_not_turned() {
        assert_eq!(printable("a\u{202e}b\u{1b}[2J\n\tc"), "ab[2J\n\tc");
        let rows = [vec!["a\u{202e}gpj.exe".to_owned(), "b".to_owned()]];
        assert_eq!(table(&rows), [r"a\u{202e}gpj.exe  b"]);
    }

    #[test]
    fn columns_are_as_wide_as_a_terminal_shows_them() {
        let names = ["ab", "日本", "cafe\u{301}", "🎉"];
        let rows = names.map(|name| vec![name.to_owned(), "1".to_owned()]);
        assert_eq!(
            table(&rows),
            ["ab    1", "日本  1", "cafe\u{301}  1", "🎉    1"]
        );
    }
}
