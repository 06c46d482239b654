//! What comes from a terminal: prompts told apart, bounded, without what only terminals understand.

use std::collections::VecDeque;

/// How much is kept of the start and of the end of what comes in one interaction.
const HEAD: usize = 32 * 1024;
const TAIL: usize = 32 * 1024;
/// The longest mark of a prompt.
const MAX_MARK: usize = 32;
const START: u8 = 0x1e;
const END: u8 = 0x1f;

/// A prompt that the shell wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prompt {
    /// It is ready for a command; the one before ended with this status.
    Ready(i32),
    /// It waits for the rest of a command.
    More,
}

/// Returns what the shell is to write as its first and its second prompt.
pub(super) fn prompts(secret: u32) -> [String; 2] {
    let (start, end) = (char::from(START), char::from(END));
    [format!("{start}{secret}:$?{end}"), format!("{start}{secret}:+{end}")]
}

/// What came since it was last taken.
#[derive(Debug, Default)]
pub(super) struct Output {
    secret: u32,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
    /// What may become a mark.
    mark: Vec<u8>,
    /// How many prompts came since they were last counted.
    pub(super) prompts: usize,
    /// The last of them, if one came.
    pub(super) last: Option<Prompt>,
    /// Whether nothing came after it.
    pub(super) ends_with_prompt: bool,
}

impl Output {
    pub(super) fn new(secret: u32) -> Self {
        Self { secret, ..Self::default() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                START => {
                    self.flush_mark();
                    self.mark.push(byte);
                }
                END if !self.mark.is_empty() => self.end_mark(),
                _ if !self.mark.is_empty() => {
                    self.mark.push(byte);
                    if self.mark.len() > MAX_MARK {
                        self.flush_mark();
                    }
                }
                _ => self.keep(byte),
            }
        }
    }

    /// Forgets the prompts that came.
    pub(super) fn expect_prompt(&mut self) {
        self.prompts = 0;
        self.last = None;
        self.ends_with_prompt = false;
    }

    /// Takes what came, as text that says what it leaves out.
    pub(super) fn take(&mut self) -> String {
        let mut bytes = std::mem::take(&mut self.head);
        let tail: Vec<_> = std::mem::take(&mut self.tail).into();
        match std::mem::take(&mut self.left_out) {
            0 => {
                bytes.extend(tail);
                plain(&bytes)
            }
            left_out => {
                format!("{}\n[… {left_out} bytes are left out …]\n{}", plain(&bytes), plain(&tail))
            }
        }
    }

    fn end_mark(&mut self) {
        let prompt = std::str::from_utf8(&self.mark[1..])
            .ok()
            .and_then(|mark| mark.strip_prefix(&format!("{}:", self.secret)))
            .and_then(|what| match what {
                "+" => Some(Prompt::More),
                status => status.parse().ok().map(Prompt::Ready),
            });
        if prompt.is_none() {
            self.mark.push(END);
            return self.flush_mark();
        }
        self.mark.clear();
        self.prompts += 1;
        self.last = prompt;
        self.ends_with_prompt = true;
    }

    fn flush_mark(&mut self) {
        for byte in std::mem::take(&mut self.mark) {
            self.keep(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        self.ends_with_prompt = false;
        if self.head.len() < HEAD {
            return self.head.push(byte);
        }
        self.tail.push_back(byte);
        if self.tail.len() > TAIL {
            self.tail.pop_front();
            self.left_out += 1;
        }
    }
}

/// Returns the text as a person would be left with it: lines that were written over are gone, and so are colours.
fn plain(bytes: &[u8]) -> String {
    // Tabs would be taken for control characters.
    const TAB: &str = "\u{f0009}";
    let text = String::from_utf8_lossy(bytes).replace('\t', TAB);
    let lines: Vec<_> = text.split('\n').map(left_of_line).collect();
    strip_ansi_escapes::strip_str(lines.join("\n")).replace(TAB, "\t")
}

fn left_of_line(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(bytes: &[u8]) -> Output {
        let mut output = Output::new(7);
        bytes.iter().for_each(|byte| output.push(&[*byte]));
        output
    }

    #[test]
    fn prompt_is_no_part_of_the_text() {
        let mut output = output(b"a\r\n\x1e7:130\x1fb\x1e7:+\x1f");
        assert_eq!((output.prompts, output.last), (2, Some(Prompt::More)));
        assert!(output.ends_with_prompt);
        assert_eq!(output.take(), "a\nb");
    }

    #[test]
    fn what_only_looks_like_a_prompt_is_text() {
        let mut output =
            output(b"\x1e7:$?\x1f \x1e8:0\x1f \x1e7:0 and no end, for longer than a mark can be");
        assert_eq!((output.prompts, output.last), (0, None));
        assert_eq!(output.take(), "7:$? 8:0 7:0 and no end, for longer than a mark can be");
    }

    #[test]
    fn only_what_a_terminal_shows_is_left() {
        let written = b"10%\r20%\r\n\x1b[31mred\x1b[0m\tx\r\n\x1b]0;title\x07\xff\r\n";
        assert_eq!(output(written).take(), "20%\nred\tx\n\u{fffd}\n");
    }

    #[test]
    fn middle_of_a_burst_is_left_out() {
        let mut output = Output::new(7);
        output.push(b"start\n");
        (0..100_000).for_each(|_| output.push(b"0123456789"));
        output.push(b"\nend");
        let text = output.take();
        assert!(text.len() < HEAD + TAIL + 100);
        assert!(text.starts_with("start\n") && text.ends_with("\nend"), "{text}");
        assert!(text.contains("\n[… 934474 bytes are left out …]\n"), "{}", &text[HEAD - 10..HEAD + 60]);
        assert_eq!(output.take(), "");
    }
}
