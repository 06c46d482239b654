//! Parses an events file.

use std::{fmt, ops::Range};

use serde::{Deserializer, de};
use serde_json::value::RawValue;

/// The events of a file as slices of its text.
#[derive(Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The JSON of each event.
    pub events: Vec<&'a str>,
    /// The range after the last whole event, if the file's end is torn.
    pub torn: Option<Range<usize>>,
}

/// The error of a file that isn't an array of events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at line {line}, column {column}")]
pub struct ParseError {
    /// The mistake.
    pub reason: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

impl ParseError {
    /// Makes the error of an event. Its line is that of a file with one event per line.
    pub(crate) fn in_event(index: usize, reason: &dyn fmt::Display) -> Self {
        Self {
            reason: format!("event {}: {reason}", index + 1),
            line: index + 1,
            column: 1,
        }
    }
}

/// Parses an events file.
///
/// After a crash or a loss of power, an array may stop early or contain NUL bytes. Such a torn file is
/// read up to its last whole event. Any other mistake is an error: the file was never an array, or its
/// end is there and someone edited it.
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, ParseError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        let reason = "a byte order mark, which JSON does not allow,".to_owned();
        return Err(ParseError {
            reason,
            line: 1,
            column: 1,
        });
    }
    let text = valid_prefix(bytes);
    let mut events = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = deserializer
        .deserialize_seq(Elements(&mut events))
        .and_then(|()| deserializer.end());
    let end = events.last().map_or(0, |last: &&RawValue| {
        offset(text, last.get()) + last.get().len()
    });
    let events = events.into_iter().map(RawValue::get).collect();
    let is_utf8 = text.len() == bytes.len();
    match outcome {
        Ok(()) if is_utf8 => Ok(Parsed { events, torn: None }),
        Err(error) if is_torn(bytes, text.len(), end, &error) => Ok(Parsed {
            events,
            torn: Some(end..bytes.len()),
        }),
        Err(error) if is_utf8 => Err(ParseError {
            reason: without_position(&error),
            line: error.line(),
            column: error.column(),
        }),
        _ => Err(ParseError {
            reason: "invalid UTF-8".to_owned(),
            ..position(bytes, text.len())
        }),
    }
}

/// Returns the offset of `element` in `text`, of which it is a slice.
#[must_use]
pub fn offset(text: &str, element: &str) -> usize {
    element.as_ptr().addr() - text.as_ptr().addr()
}

/// Returns the line and column of a byte offset, as an error without a reason.
#[must_use]
pub fn position(bytes: &[u8], offset: usize) -> ParseError {
    let before = &bytes[..offset];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before
        .iter()
        .rev()
        .take_while(|byte| **byte != b'\n')
        .count()
        + 1;
    ParseError {
        reason: String::new(),
        line,
        column,
    }
}

/// Returns serde's message without its position, which is relative to one event.
#[must_use]
pub fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message
        .rsplit_once(" at line ")
        .map_or(message.clone(), |(reason, _)| reason.to_owned())
}

fn valid_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid up to there")
        }
    }
}

/// Returns true if a crash may have torn the end of a file.
///
/// `valid` is the length of its valid UTF-8, and `end` the end of its last whole event.
fn is_torn(bytes: &[u8], valid: usize, end: usize, error: &serde_json::Error) -> bool {
    // The most bytes of a UTF-8 character that a cut can leave.
    const CUT_CHARACTER: usize = 3;
    // The smallest unit that a disk writes.
    const SECTOR: usize = 512;
    let is_array = bytes.trim_ascii_start().starts_with(b"[");
    let has_end = bytes.trim_ascii_end().ends_with(b"\n]");
    let stops = error.is_eof() && bytes.len() - valid <= CUT_CHARACTER;
    let rest = &bytes[end..];
    // Parts that the disk never wrote are zeroes: to the end of the file, for whole sectors, or from the
    // old end to the end of its sector.
    let is_damaged = if has_end {
        rest.split(|byte| *byte != 0).any(|zeroes| {
            let after = zeroes.as_ptr_range().end.addr() - bytes.as_ptr().addr();
            zeroes.len() >= SECTOR || (!zeroes.is_empty() && after.is_multiple_of(SECTOR))
        })
    } else {
        stops || rest.contains(&0)
    };
    is_array && is_damaged
}

/// Collects elements up to the first mistake.
struct Elements<'v, 'de>(&'v mut Vec<&'de RawValue>);

impl<'de> de::Visitor<'de> for Elements<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            self.0.push(element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TWO: &str = "[\n{\"a\":1},\n{\"b\":\"é\"}\n]\n";

    #[test]
    fn whole_file_gives_its_events() {
        assert_eq!(
            parse(TWO.as_bytes()),
            Ok(Parsed {
                events: vec!["{\"a\":1}", "{\"b\":\"é\"}"],
                torn: None
            })
        );
        assert_eq!(
            parse(b" [ ] "),
            Ok(Parsed {
                events: vec![],
                torn: None
            })
        );
    }

    #[test]
    fn every_cut_is_a_torn_end_that_keeps_whole_events() {
        for length in 1..TWO.len() - 2 {
            let parsed = parse(&TWO.as_bytes()[..length]).unwrap();
            let whole = usize::from(length >= 9) + usize::from(length >= 21);
            assert_eq!(
                (parsed.events.len(), parsed.torn.is_some()),
                (whole, true),
                "cut at {length}"
            );
        }
    }

    #[test]
    fn zeroes_after_a_loss_of_power_are_a_torn_end() {
        let parsed = parse(b"[\n{\"a\":1},\n\0\0\0\0\0\0").unwrap();
        assert_eq!(
            (parsed.events, parsed.torn),
            (vec!["{\"a\":1}"], Some(9..17))
        );
        assert_eq!(parse(b"[\0\0\0").unwrap().torn, Some(0..4));
        let with_hole =
            |zeroes: usize| format!("[\n{{\"a\":1}},\n{{\"b{}\":2}}\n]\n", "\0".repeat(zeroes));
        assert_eq!(
            parse(with_hole(512).as_bytes()).unwrap().events,
            ["{\"a\":1}"]
        );
        assert_eq!(
            parse(with_hole(1).as_bytes()).unwrap_err().line,
            3,
            "what follows is there"
        );
    }

    #[test]
    fn unwritten_page_with_the_old_end_is_a_torn_end() {
        let old = "[\n{\"a\":1}\n]\n";
        let with_hole =
            |end: usize| format!("{old}{}{{\"b\":2}}\n]\n", "\0".repeat(end - old.len()));
        for end in [512, 4096] {
            let text = with_hole(end);
            let parsed = parse(text.as_bytes()).unwrap();
            assert_eq!(
                (parsed.events, parsed.torn),
                (vec!["{\"a\":1}"], Some(9..text.len())),
                "{end}"
            );
        }
        assert!(
            parse(with_hole(500).as_bytes()).is_err(),
            "no sector ends there"
        );
    }

    #[test]
    fn mistake_in_json_has_its_position() {
        let error = parse(b"[\n{\"a\":1}\n{\"b\":2}\n]\n").unwrap_err();
        assert_eq!(error.to_string(), "expected `,` or `]` at line 3, column 1");
        assert!(parse(b"{\"a\":[]}\n]").is_err());
        let error = parse(b"[\n{\"a\":\"\xff\"}]").unwrap_err();
        assert_eq!((error.line, error.column), (2, 7));
        let unclosed = parse(b"[\n{\"a\":1},\n{\"b\":[},\n{\"c\":3}\n]\n").unwrap_err();
        assert_eq!(unclosed.line, 3);
        for unclosed in ["[\n{\"a\":[1,\n{\"b\":2}\n]\n", "[\n{\"a\":\"1},\n{}\n]\n"] {
            assert!(parse(unclosed.as_bytes()).is_err(), "{unclosed}");
        }
    }

    #[test]
    fn other_files_are_not_empty_conversations() {
        let pointer = "version https://git-lfs.github.com/spec/v1\n";
        for text in [
            "",
            "{}",
            "\0\0\0",
            pointer,
            "[\n{\"a\":1}\n] and more",
            "\u{feff}[]",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&bytes);
        }
    }
}
