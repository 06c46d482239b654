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
    error::{Code, SessionError},
};
use jp_session::text::{is_steering, printable, visible};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

/// The output of the command; clones share its state.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    format: Format,
    quiet: bool,
    verbose: bool,
    color: bool,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// Set if the terminal can replace a line.
    can_redraw: bool,
    /// Set after the reader of stdout has closed it. jp then finishes without writing data.
    is_closed: Arc<AtomicBool>,
    /// Set while the last line on stderr shows progress. The next line replaces it.
    has_progress: Arc<AtomicBool>,
}

/// The emphasis of a line, shown by colours.
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

/// The margin before each line of quoted text.
pub(crate) const MARGIN: &str = "  │ ";

/// The space between two columns of a table.
const COLUMN_GAP: usize = 2;

impl Output {
    pub(crate) fn new(global: &Global, environment: &Environment) -> Self {
        let color = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                // Only stderr has colours: stdout is data.
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

    /// Returns whether the reader of stdout has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }

    /// Writes data unchanged.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), SessionError> {
        if self.is_closed() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        // Flushed at once: the answer appears as it arrives.
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            // `jp … | head` is no error. jp continues, because the answer must still be stored.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed.store(true, Relaxed);
                Ok(())
            }
            Err(error) => Err(SessionError::new(format!(
                "failed to write to stdout: {error}"
            ))),
        }
    }

    /// Writes content from elsewhere. Refuses to write binary content to a terminal.
    pub(crate) fn content(&self, bytes: &[u8]) -> Result<(), SessionError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text),
            Err(_) if self.stdout_is_terminal => Err(SessionError::new(
                "the content is binary, and stdout is a terminal",
            )
            .with_hint("add `> FILE` to write it to a file.")),
            Err(_) => self.bytes(bytes),
        }
    }

    /// Writes text from elsewhere. On a terminal, removes the characters that would steer it.
    pub(crate) fn text(&self, text: &str) -> Result<(), SessionError> {
        if self.stdout_is_terminal {
            self.bytes(printable(text).as_bytes())
        } else {
            self.bytes(text.as_bytes())
        }
    }

    /// Writes a line of data.
    pub(crate) fn line(&self, line: &str) -> Result<(), SessionError> {
        self.text(&format!("{line}\n"))
    }

    /// Writes rows as a table, without spaces at the ends of lines.
    pub(crate) fn table(&self, rows: &[Vec<String>]) -> Result<(), SessionError> {
        let mut lines = format_table(rows).into_iter();
        lines.try_for_each(|line| self.line(line.trim_end()))
    }

    /// Writes the command's one JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), SessionError> {
        let mut json = serde_json::to_vec_pretty(value)?;
        json.push(b'\n');
        self.bytes(&json)
    }

    /// Prints a status line, unless `--quiet` is set.
    pub(crate) fn status(&self, line: &str) {
        if !self.quiet {
            self.stderr("", line);
        }
    }

    /// Prints a line that only `--verbose` shows.
    pub(crate) fn detail(&self, line: &str) {
        if self.verbose {
            self.stderr("", line);
        }
    }

    /// Shows a model's reasoning as it arrives, if stderr is a terminal.
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

    /// Returns whether progress can be shown.
    pub(crate) fn shows_progress(&self) -> bool {
        self.stderr_is_terminal && self.can_redraw && !self.quiet
    }

    /// Shows progress on a line that replaces the last one of its kind. An empty line clears it, as does any other output.
    pub(crate) fn progress(&self, line: &str) {
        let mut stderr = io::stderr().lock();
        self.has_progress.store(!line.is_empty(), Relaxed);
        let _ = write!(stderr, "\r\x1b[K{}", printable(line));
    }

    /// Prints a line of a prompt, even with `--quiet`: the user needs it to answer.
    pub(crate) fn tell(&self, tone: Tone, line: &str) {
        let _ = writeln!(
            self.clear_progress(),
            "{}",
            self.paint(&visible(line), tone.style())
        );
    }

    /// Prints a prompt; the cursor stays behind it.
    pub(crate) fn ask(&self, prompt: &str) {
        let prompt = self.paint(&visible(prompt), Tone::Strong.style());
        let mut stderr = self.clear_progress();
        let _ = write!(stderr, "{prompt} ").and_then(|()| stderr.flush());
    }

    /// Ends an open line of data if stdout is a terminal; returns whether it is one.
    pub(crate) fn end_line_on_screen(&self) -> Result<bool, SessionError> {
        if self.stdout_is_terminal {
            self.line("").map(|()| true)
        } else {
            Ok(false)
        }
    }

    /// Prints an error with its hints; returns the exit code.
    pub(crate) fn fail(&self, failure: &SessionError) -> Code {
        self.stderr(&self.paint("error: ", "31;1"), &failure.message);
        for hint in &failure.hints {
            self.stderr(&self.paint("hint: ", "36"), hint);
        }
        failure.kind.into()
    }

    fn paint(&self, text: &str, style: &str) -> String {
        if self.color && !style.is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Writes a label of jp and a line that may contain text from elsewhere.
    fn stderr(&self, label: &str, line: &str) {
        let line = if self.stderr_is_terminal {
            printable(line)
        } else {
            line.to_owned()
        };
        // There is no other place to report a failure of stderr.
        let _ = writeln!(self.clear_progress(), "{label}{line}");
    }

    /// Clears a progress line and returns stderr.
    fn clear_progress(&self) -> StderrLock<'static> {
        let mut stderr = io::stderr().lock();
        if self.has_progress.swap(false, Relaxed) {
            let _ = write!(stderr, "\r\x1b[K");
        }
        stderr
    }
}

/// Lays out rows in columns, with the widths that a terminal uses (UAX #11). The last column is not padded.
///
/// Control characters in a cell become escapes, so that a name can't forge a row.
pub(crate) fn format_table(rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| escape_cell(cell)).collect())
        .collect();
    let mut widths = Vec::new();
    for row in &rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.width().max(*width);
        }
    }
    rows.iter().map(|row| join_cells(row, &widths)).collect()
}

fn escape_cell(cell: &str) -> String {
    if cell.contains(is_steering) {
        cell.escape_debug().to_string()
    } else {
        cell.to_owned()
    }
}

fn join_cells(row: &[String], widths: &[usize]) -> String {
    let Some((last, others)) = row.split_last() else {
        return String::new();
    };
    let mut line = String::new();
    for (cell, width) in others.iter().zip(widths) {
        // `{:width$}` would count characters, not columns.
        line += cell;
        line += &" ".repeat(width - cell.width() + COLUMN_GAP);
    }
    line + last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bidirectional_controls_do_not_reorder_text() {
        assert_eq!(printable("a\u{202e}b\u{1b}[2J\n\tc"), "ab[2J\n\tc");
        let rows = [vec!["a\u{202e}gpj.exe".to_owned(), "b".to_owned()]];
        assert_eq!(format_table(&rows), [r"a\u{202e}gpj.exe  b"]);
    }

    #[test]
    fn column_widths_are_those_of_a_terminal() {
        let names = ["ab", "日本", "cafe\u{301}", "🎉"];
        let rows = names.map(|name| vec![name.to_owned(), "1".to_owned()]);
        assert_eq!(
            format_table(&rows),
            ["ab    1", "日本  1", "cafe\u{301}  1", "🎉    1"]
        );
    }
}
