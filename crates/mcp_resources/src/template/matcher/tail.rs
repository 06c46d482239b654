//! Takes pieces from the end of a text.

use super::steps::count;
use crate::template::encoding::is_reserved;

/// A text, and the last places of the bytes that pieces start with. These are kept, so that no byte is looked at
/// twice for the same reason, however many pieces are asked for in vain.
pub(super) struct Tail<'u> {
    rest: &'u str,
    slash: LastByte,
    dot: LastByte,
    semicolon: LastByte,
    reserved: LastByte,
}

impl<'u> Tail<'u> {
    pub(super) fn new(text: &'u str) -> Self {
        Self {
            rest: text,
            slash: LastByte::new(text, |byte| byte == b'/'),
            dot: LastByte::new(text, |byte| byte == b'.'),
            semicolon: LastByte::new(text, |byte| byte == b';'),
            reserved: LastByte::new(text, is_reserved),
        }
    }

    pub(super) fn rest(&self) -> &'u str {
        self.rest
    }

    /// Takes a `/` or `.` and all that follows, if nothing there is reserved.
    pub(super) fn take_segment(&mut self, byte: u8) -> Option<&'u str> {
        let last = if byte == b'/' {
            &mut self.slash
        } else {
            &mut self.dot
        };
        let at = last.find(self.rest)?;
        let is_simple = self
            .reserved
            .find(self.rest)
            .is_none_or(|reserved| reserved <= at);
        is_simple.then(|| self.take(at))
    }

    /// Takes a `;`, a known name and perhaps `=` and a value in which nothing is reserved.
    pub(super) fn take_pair(&mut self, knows: impl Fn(&str) -> bool) -> Option<(&'u str, &'u str)> {
        let at = self.semicolon.find(self.rest)?;
        let reserved = self.reserved.find(self.rest)?;
        let (name, value) = match self.rest.as_bytes()[reserved] {
            b';' => (&self.rest[at + 1..], ""),
            b'=' => (&self.rest[at + 1..reserved], &self.rest[reserved + 1..]),
            _ => return None,
        };
        knows(name).then(|| {
            self.take(at);
            (name, value)
        })
    }

    /// Takes the byte here and what follows, and returns what follows.
    fn take(&mut self, at: usize) -> &'u str {
        let taken = &self.rest[at + 1..];
        self.rest = &self.rest[..at];
        taken
    }
}

/// The last place of a byte of some kind.
struct LastByte {
    is: fn(u8) -> bool,
    /// There is none from here on.
    below: usize,
}

impl LastByte {
    fn new(text: &str, is: fn(u8) -> bool) -> Self {
        Self {
            is,
            below: text.len(),
        }
    }

    fn find(&mut self, text: &str) -> Option<usize> {
        let before = &text.as_bytes()[..self.below.min(text.len())];
        let at = before.iter().rposition(|byte| (self.is)(*byte));
        self.below = at.map_or(0, |at| at + 1);
        count(before.len() - self.below);
        at
    }
}
