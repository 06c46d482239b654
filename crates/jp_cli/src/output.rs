//! The one place that prints: data on stdout, everything else on stderr.

use std::{
    io::{self, StderrLock, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::{
    args::{Color, Format, Global},
    environment::Environment,
    error::{Code, Failure},
};

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

/// Returns a text with the credentials of the URLs in it taken out.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut pieces = text.split("://");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece
            .find(['/', '?', '#', '"', '\'', ' '])
            .unwrap_or(piece.len());
        let (authority, rest) = piece.split_at(end);
        let host = authority
            .rsplit_once('@')
            .map(|(_, host)| format!("…@{host}"));
        shown += &format!("://{}{rest}", host.as_deref().unwrap_or(authority));
    }
    shown
}

/// Removes what could steer a terminal or turn the order of letters round, but for newline and tab.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !is_steering(*c) || matches!(c, '\n' | '\t'))
        .collect()
}

/// Returns whether a character is a control, or an override, embedding or isolate of Unicode's bidirectional algorithm.
fn is_steering(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes every character that has no look of its own as its escape, so that what is shown is all there is.
///
/// That is what could steer a terminal, turn the order of letters round, or hide. A tab stays.
pub(crate) fn visible(text: &str) -> String {
    /// Spaces of other scripts and of typography.
    const SPACES: [char; 3] = ['\u{a0}', '\u{202f}', '\u{3000}'];
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let is_plain = matches!(character, ' '..='~' | '\t') || SPACES.contains(&character);
        if is_plain || (!character.is_ascii() && !is_blank(character) && is_seen(character)) {
            shown.push(character);
        } else {
            shown.extend(character.escape_debug());
        }
    }
    shown
}

/// Returns the beginning of a text that came from elsewhere, on one line and [`visible`].
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let mut left = most;
    for character in text.chars() {
        let piece = if character == '\t' {
            " ".to_owned()
        } else {
            visible(character.encode_utf8(&mut [0; 4]))
        };
        let Some(rest) = left.checked_sub(piece.chars().count()) else {
            return shown + "…";
        };
        left = rest;
        shown += &piece;
    }
    shown
}

/// Returns whether a letter or a sign by its kind looks like nothing.
fn is_blank(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Returns whether a character can be seen where it follows a letter, as accents do.
fn is_seen(character: char) -> bool {
    let pair = String::from_iter(['x', character]);
    pair.escape_debug().eq(pair.chars())
}

/// Quotes a word for a shell, where it needs that.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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

    #[test]
    fn what_can_not_be_seen_is_shown_as_its_escape() {
        assert_eq!(visible("a\tb \\ \"c\" 'd' ~"), "a\tb \\ \"c\" 'd' ~");
        assert_eq!(
            visible("\u{1b}[2J\r\n\0\u{7f}\u{9b}1m"),
            r"\u{1b}[2J\r\n\0\u{7f}\u{9b}1m"
        );
        assert_eq!(
            visible("a\u{202e}b\u{2066}c\u{200b}d\u{e0041}"),
            r"a\u{202e}b\u{2066}c\u{200b}d\u{e0041}"
        );
        assert_eq!(
            visible("\u{2028}\u{feff}\u{ad}\u{e000}"),
            r"\u{2028}\u{feff}\u{ad}\u{e000}"
        );
    }

    #[test]
    fn one_line_is_cut_where_it_is_too_long_as_it_is_shown() {
        assert_eq!(one_line("a\tb\nc", 10), r"a b\nc");
        assert_eq!(one_line("ab\u{1b}[1m", 6), "ab…");
        assert_eq!([one_line("abc", 3), one_line("abcd", 3)], ["abc", "abc…"]);
    }

    #[test]
    fn what_people_write_is_shown_as_it_is() {
        for text in [
            "naïve “é” e\u{301} – 10 €",
            "日本語\u{3000}한국어",
            "हिन्दी",
            "שלום عربى",
            "✅ 🎉",
            "prix\u{a0}: 3",
        ] {
            assert_eq!(visible(text), text);
        }
    }
}
