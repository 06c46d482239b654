//! The output of a terminal: bounded, without prompts and escape sequences.

use jp_process::BoundedOutput;

use crate::plain_text::plain_text;

/// The maximum output of one interaction that is kept, in bytes. As JSON it takes at most three
/// times that, if all of it is replaced by U+FFFD, and so still fits into one line of a stateful
/// tool.
pub(super) const MAX_KEPT: usize = 16_000_000;
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

/// Returns the first and the second prompt of the shell. The secret keeps other output from looking
/// like a prompt.
pub(super) fn prompts(secret: u32) -> [String; 2] {
    let (start, end) = (char::from(START), char::from(END));
    [
        format!("{start}{secret}:$?{end}"),
        format!("{start}{secret}:+{end}"),
    ]
}

/// The output of a terminal in one interaction.
#[derive(Debug)]
pub(super) struct Shown {
    /// The text, with a line in place of missing bytes.
    pub(super) text: String,
    /// The number of bytes that came.
    pub(super) printed: u64,
    /// The number of missing bytes in the middle.
    pub(super) left_out: u64,
}

/// The output since it was last taken.
#[derive(Debug)]
pub(super) struct Output {
    secret: u32,
    kept: BoundedOutput,
    /// The beginning of a possible mark.
    mark: Vec<u8>,
    /// The number of prompts since the last command.
    pub(super) prompts: usize,
    /// The last of them, if one came.
    pub(super) last: Option<Prompt>,
    /// True if nothing came after it.
    pub(super) ends_with_prompt: bool,
}

impl Output {
    pub(super) fn new(secret: u32) -> Self {
        let (kept, mark) = (BoundedOutput::at_most(MAX_KEPT), Vec::new());
        Self {
            secret,
            kept,
            mark,
            prompts: 0,
            last: None,
            ends_with_prompt: false,
        }
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(&byte) = bytes.first() {
            if self.mark.is_empty() {
                // Keep everything before the next mark at once: output may be long.
                let length = bytes
                    .iter()
                    .position(|byte| *byte == START)
                    .unwrap_or(bytes.len());
                let (plain, rest) = bytes.split_at(length);
                if !plain.is_empty() {
                    self.keep(plain);
                    bytes = rest;
                    continue;
                }
            }
            bytes = &bytes[1..];
            match byte {
                START => {
                    self.flush_mark();
                    self.mark.push(byte);
                }
                END => self.end_mark(),
                _ => {
                    self.mark.push(byte);
                    if self.mark.len() > MAX_MARK {
                        self.flush_mark();
                    }
                }
            }
        }
    }

    /// Forgets the prompts that came.
    pub(super) fn expect_prompt(&mut self) {
        self.prompts = 0;
        self.last = None;
        self.ends_with_prompt = false;
    }

    /// Takes what came.
    pub(super) fn take(&mut self) -> Shown {
        let kept = std::mem::replace(&mut self.kept, BoundedOutput::at_most(MAX_KEPT));
        let (printed, left_out) = (kept.total_len(), kept.left_out());
        if left_out == 0 {
            return Shown {
                text: plain_text(&String::from_utf8_lossy(&kept.into_bytes())),
                printed,
                left_out,
            };
        }
        let (head, tail) = kept.into_parts();
        let text = format!(
            "{}\n[… {left_out} bytes are not kept …]\n{}",
            plain_text(&String::from_utf8_lossy(&head)),
            plain_text(&String::from_utf8_lossy(&tail))
        );
        Shown {
            text,
            printed,
            left_out,
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
        let mark = std::mem::take(&mut self.mark);
        if !mark.is_empty() {
            self.keep(&mark);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.ends_with_prompt = false;
        self.kept.push(bytes);
    }
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
    fn prompt_is_not_part_of_the_text() {
        let mut output = output(b"a\r\n\x1e7:130\x1fb\x1e7:+\x1f");
        assert_eq!((output.prompts, output.last), (2, Some(Prompt::More)));
        assert!(output.ends_with_prompt);
        assert_eq!(output.take().text, "a\nb");
    }

    #[test]
    fn text_that_resembles_a_prompt_stays() {
        let mut output =
            output(b"\x1e7:$?\x1f \x1e8:0\x1f \x1e7:0 and no end, for longer than a mark can be");
        assert_eq!((output.prompts, output.last), (0, None));
        assert_eq!(
            output.take().text,
            "7:$? 8:0 7:0 and no end, for longer than a mark can be"
        );
    }

    #[test]
    fn output_is_what_a_terminal_shows() {
        let written = b"10%\r20%\r\n\x1b[31mred\x1b[0m\tx\r\n\x1b]0;title\x07\xff\r\n";
        assert_eq!(output(written).take().text, "20%\nred\tx\n\u{fffd}\n");
    }

    #[test]
    fn burst_is_kept_up_to_a_limit() {
        let mut output = Output::new(7);
        let burst = |lines: usize| ["start\n", &"0123456789".repeat(lines), "\nend"].concat();
        output.push(burst(100_000).as_bytes());
        let Shown {
            text,
            printed,
            left_out,
        } = output.take();
        assert!(text == burst(100_000) && (printed, left_out) == (1_000_010, 0));
        output.push(burst(2_000_000).as_bytes());
        let Shown {
            text,
            printed,
            left_out,
        } = output.take();
        assert_eq!((printed, left_out), (20_000_010, 4_000_010));
        assert!(text.starts_with("start\n") && text.ends_with("\nend"));
        assert!(text.contains("\n[… 4000010 bytes are not kept …]\n"));
        assert_eq!(output.take().text, "");
    }
}
