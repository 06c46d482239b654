use jp_conversation::{Event, EventKind};
use jp_storage::events::parse::{ParseError, Parsed, offset, parse};

/// Reads `bytes` as an events file.
///
/// No input panics; whole events and a torn end make up the file; an event that can be read can be written,
/// and then stays the same.
pub fn events_json(bytes: &[u8]) {
    match parse(bytes) {
        Ok(parsed) => {
            check_places(bytes, &parsed);
            check_repair(bytes, &parsed);
            parsed.events.iter().for_each(|event| check_event(event));
        }
        Err(error) => check_position(bytes, &error),
    }
}

/// Events stand in order, with nothing but punctuation before each, and the torn end is what follows the last.
fn check_places(bytes: &[u8], parsed: &Parsed<'_>) {
    let text = valid_prefix(bytes);
    let mut end = 0;
    for (index, event) in parsed.events.iter().enumerate() {
        let start = offset(text, event);
        let punctuation = if index == 0 { "[" } else { "," };
        assert_eq!(
            text[end..start].trim_matches(JSON_SPACE),
            punctuation,
            "before event {index}"
        );
        end = start + event.len();
        assert_eq!(&text[start..end], *event);
    }
    match &parsed.torn {
        Some(torn) => assert_eq!(*torn, end..bytes.len()),
        None => {
            let close = if parsed.events.is_empty() {
                text.trim_matches(JSON_SPACE).strip_prefix('[')
            } else {
                Some(&text[end..])
            };
            assert_eq!(close.map(|close| close.trim_matches(JSON_SPACE)), Some("]"));
        }
    }
}

/// The file without its torn end, closed, has the same events; so have the events alone, one a line.
fn check_repair(bytes: &[u8], parsed: &Parsed<'_>) {
    if let Some(torn) = &parsed.torn {
        let open: &[u8] = if parsed.events.is_empty() { b"[" } else { b"" };
        let repaired = [open, &bytes[..torn.start], b"\n]\n"].concat();
        assert_same_events(&repaired, parsed);
    }
    let rewritten = format!("[\n{}\n]\n", parsed.events.join(",\n"));
    assert_same_events(rewritten.as_bytes(), parsed);
}

fn assert_same_events(bytes: &[u8], parsed: &Parsed<'_>) {
    let again = parse(bytes).expect("whole events make a file");
    assert_eq!((again.events, again.torn), (parsed.events.clone(), None));
}

fn check_event(json: &str) {
    let Ok(event) = Event::from_json(json) else {
        return;
    };
    let written = event
        .to_json()
        .expect("an event that was read can be written");
    let again = Event::from_json(&written).expect("an event that was written can be read");
    assert_eq!(again.timestamp, event.timestamp);
    assert_eq!(again.to_json().expect("it was written before"), written);
    if !matches!(event.kind, EventKind::Unknown(_)) {
        assert!(!written.contains('\n'), "{written:?}");
    }
}

fn check_position(bytes: &[u8], error: &ParseError) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    assert!((1..=lines).contains(&error.line), "{error}");
    assert!(error.column <= bytes.len() + 1, "{error}");
}

const JSON_SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

fn valid_prefix(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
