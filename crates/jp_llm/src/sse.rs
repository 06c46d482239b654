//! Server-sent events (WHATWG HTML §9.2.6), whatever pieces they arrive in.

/// Splits a stream of bytes into events.
///
/// Comments and the fields `id` and `retry` are passed over; the line ends LF, CR LF and CR may be
/// mixed. Bytes that are not UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    after_return: bool,
    past_first_line: bool,
    event: Event,
    has_data: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The field `event`; empty if there is none.
    pub name: String,
    /// The fields `data`, a line each.
    pub data: String,
}

impl SseDecoder {
    /// Takes the next bytes and returns the events they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    /// Takes the end of the stream and returns an event that lacks its empty line.
    ///
    /// The standard drops it; servers that close the connection right after `[DONE]` rely on more.
    pub fn finish(&mut self) -> Option<Event> {
        self.end_line().or_else(|| self.end_event())
    }

    /// Returns how many bytes of an unfinished event are held.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.line.len() + self.event.name.len() + self.event.data.len()
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let is_first = !std::mem::replace(&mut self.past_first_line, true);
        let line = line
            .strip_prefix('\u{feff}')
            .filter(|_| is_first)
            .unwrap_or(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        self.take_field(field, value.strip_prefix(' ').unwrap_or(value));
        None
    }

    fn take_field(&mut self, field: &str, value: &str) {
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = SseDecoder::default();
        let mut events: Vec<Event> = chunks
            .iter()
            .flat_map(|chunk| decoder.push(chunk))
            .collect();
        events.extend(decoder.finish());
        events
            .into_iter()
            .map(|event| (event.name, event.data))
            .collect()
    }

    #[test]
    fn lines_are_read_as_the_standard_says() {
        let stream = "\u{feff}data: a\n\n: ping\n\nevent: e\r\ndata:b\r\ndata:  c\r\nid: 1\r\n\r\nevent: x\n\ndata\r\rdata: last";
        let expected = [("", "a"), ("e", "b\n c"), ("", ""), ("", "last")];
        assert_eq!(
            decode(&[stream.as_bytes()]),
            expected.map(|(name, data)| (name.to_owned(), data.to_owned()))
        );
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same_events(
            stream in "(data: |event: |:|[aé]|\n|\r|\r\n){0,30}",
            cuts in prop::collection::vec(0usize..100, 0..5),
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&chunks), decode(&[bytes]));
        }

        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            decode(&[&bytes]);
        }
    }
}
