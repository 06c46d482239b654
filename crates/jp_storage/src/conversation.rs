use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use jp_conversation::{Event, EventError, Stream};
use serde_json::Value;

use crate::{
    ConversationId, Metadata, Places, ReadError,
    concurrent_read::{self, Writers},
    directory::Access,
    events::parse::{self, ParseError, Parsed},
    legacy,
    tree::{Tree, split},
};

/// A conversation from disk.
#[derive(Debug)]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// Its directory.
    pub directory: PathBuf,
    /// Title and times.
    pub metadata: Metadata,
    /// The events.
    pub stream: Stream,
    /// The configuration that an older version wrote to a separate file.
    pub base_config: Option<Value>,
    /// Problems that didn't prevent reading.
    pub warnings: Vec<String>,
    pub(crate) form: Form,
}

/// The form of an events file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Events can be appended.
    Current,
    /// The torn end must be removed before the next append.
    Torn,
    /// The file must be rewritten in the current format before the next append.
    Older,
}

/// The JSON of an event, with places in their form on disk.
pub(crate) struct Line {
    pub json: String,
    /// True if it was in an older format. Its content must then go to the store.
    pub is_converted: bool,
    /// True if it may contain markers of places. Older versions wrote none, so in their events the same
    /// characters are ordinary text.
    pub has_places: bool,
}

impl Line {
    /// Makes the line of an event in the current format.
    fn unchanged(event: &str, has_places: bool) -> Self {
        Self {
            json: event.to_owned(),
            is_converted: false,
            has_places,
        }
    }
}

/// The events of a file as lines in the current format.
pub(crate) struct ReadEvents {
    pub lines: Vec<Line>,
    /// The bytes after the last whole event that a torn file loses.
    pub torn: Option<Vec<u8>>,
    pub warnings: Vec<String>,
    pub form: Form,
}

pub(crate) const EVENTS: &str = "events.json";
pub(crate) const METADATA: &str = "metadata.json";
/// The file of versions before `events.json`, with exchanges of a message and its reply.
const MESSAGES: &str = "messages.json";
/// The configuration that an older version wrote to a separate file.
pub(crate) const BASE_CONFIG: &str = "base_config.json";

/// Reads an events file in any known format, at any path.
///
/// Returns the events, and problems that didn't prevent reading.
pub fn read_events(path: &Path, places: &Places) -> Result<(Stream, Vec<String>), ReadError> {
    let (parent, _) = split(path).map_err(ReadError::io(path))?;
    let tree = Tree::new(parent, Access::Shared);
    read_stream(&tree, path, Writers::Unknown, places)
        .map(|(stream, _, warnings)| (stream, warnings))
}

/// Reads the conversation in `directory`.
pub(crate) fn read(
    tree: &Tree,
    directory: &Path,
    id: ConversationId,
    places: &Places,
    writers: Writers<'_>,
) -> Result<Conversation, ReadError> {
    let read = read_files(tree, directory, id, places, writers);
    let is_whole = read
        .as_ref()
        .is_ok_and(|conversation| conversation.warnings.is_empty());
    if is_whole {
        read
    } else {
        fail_if_removed(directory).and(read)
    }
}

fn read_files(
    tree: &Tree,
    directory: &Path,
    id: ConversationId,
    places: &Places,
    writers: Writers<'_>,
) -> Result<Conversation, ReadError> {
    let (stream, form, mut warnings) =
        read_either(directory, |path| read_stream(tree, path, writers, places))?;
    let metadata = read_metadata(tree, directory, &mut warnings)?;
    let base_config = read_json(tree, &directory.join(BASE_CONFIG))?;
    Ok(Conversation {
        id,
        directory: directory.to_owned(),
        metadata,
        stream,
        base_config,
        warnings,
        form,
    })
}

/// Fails if the conversation was removed. An error of reading it then is no sign of damage.
pub(crate) fn fail_if_removed(directory: &Path) -> Result<(), ReadError> {
    match directory.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ReadError::Removed {
            directory: directory.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn read_stream(
    tree: &Tree,
    path: &Path,
    writers: Writers<'_>,
    places: &Places,
) -> Result<(Stream, Form, Vec<String>), ReadError> {
    concurrent_read::read_events(tree, path, writers, |bytes, parsed| {
        if has_older(parsed) {
            let read = convert(path, bytes, parsed)?;
            return Ok((
                stream_of_lines(path, &read.lines, places)?,
                read.form,
                read.warnings,
            ));
        }
        let warnings = torn_warning(path, bytes, parsed);
        Ok((
            stream_of_file(path, bytes, parsed, places)?,
            form_of(path, parsed),
            warnings,
        ))
    })
}

/// Reads the events file in `directory`, or the file of older versions.
pub(crate) fn read_either<T>(
    directory: &Path,
    read: impl Fn(&Path) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let events = read(&directory.join(EVENTS));
    if !events.as_ref().is_err_and(ReadError::is_not_found) {
        return events;
    }
    match read(&directory.join(MESSAGES)) {
        // If both are missing, the error names today's file.
        Err(error) if error.is_not_found() => events,
        messages => messages,
    }
}

/// Reads the events in `directory` as lines of JSON in the current format.
pub(crate) fn read_lines(
    tree: &Tree,
    directory: &Path,
    writers: Writers<'_>,
) -> Result<ReadEvents, ReadError> {
    let read = read_either(directory, |path| {
        concurrent_read::read_events(tree, path, writers, |bytes, parsed| {
            take_lines(path, bytes, parsed)
        })
    });
    // A conversation that another process removes meanwhile is not damaged.
    if read.is_ok() {
        read
    } else {
        fail_if_removed(directory).and(read)
    }
}

fn take_lines(path: &Path, bytes: &[u8], parsed: &Parsed<'_>) -> Result<ReadEvents, ReadError> {
    if has_older(parsed) {
        return convert(path, bytes, parsed);
    }
    let events = parsed.events.iter();
    Ok(ReadEvents {
        lines: events.map(|event| Line::unchanged(event, true)).collect(),
        form: form_of(path, parsed),
        warnings: torn_warning(path, bytes, parsed),
        torn: lost_end_of(bytes, parsed),
    })
}

/// Converts the events of an older version.
///
/// If most events are older, all count as older, because the time of an event may have been edited by
/// hand.
fn convert(path: &Path, bytes: &[u8], parsed: &Parsed<'_>) -> Result<ReadEvents, ReadError> {
    let older: Vec<bool> = parsed
        .events
        .iter()
        .map(|event| legacy::is_older(event))
        .collect();
    // Half is enough: of a file of two events, one may have had its time edited.
    let are_all = older.iter().filter(|is_older| **is_older).count() * 2 >= older.len();
    // In a mixture, an event that looks older may have had its time edited, so it may have places.
    let has_places = older.contains(&false);
    let mut values = Vec::with_capacity(parsed.events.len());
    let mut time = time_before(path, parsed);
    for (event, is_older) in parsed.events.iter().zip(&older) {
        time = legacy::time_of(event).unwrap_or(time);
        if are_all || *is_older {
            let mut value = serde_json::from_str(event)
                .map_err(|error| event_error(path, bytes, event, &error.into()))?;
            legacy::add_time(&mut value, time);
            values.push(value);
        }
    }
    let converted = legacy::convert(values, are_all);
    let mut events = converted.events.iter();
    let mut lines = Vec::with_capacity(parsed.events.len());
    for (event, is_older) in parsed.events.iter().zip(&older) {
        if are_all || *is_older {
            let event = events.next().expect("one for each");
            // One message of an older version may become several events.
            lines.extend(event.iter().map(|event| Line {
                json: event.to_string(),
                is_converted: true,
                has_places,
            }));
        } else {
            lines.push(Line::unchanged(event, has_places));
        }
    }
    let mut warnings = torn_warning(path, bytes, parsed);
    warnings.extend(
        converted
            .warnings
            .iter()
            .map(|warning| format!("{}: {warning}", path.display())),
    );
    Ok(ReadEvents {
        lines,
        torn: lost_end_of(bytes, parsed),
        warnings,
        form: Form::Older,
    })
}

/// Returns the time for events before the first one with a time: that of the conversation's creation,
/// from the directory's name.
fn time_before(path: &Path, parsed: &Parsed<'_>) -> Timestamp {
    let name = path
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let made = name
        .and_then(ConversationId::from_directory_name)
        .and_then(ConversationId::created_at);
    made.or_else(|| first_time(parsed))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns the time of the first event that has one.
fn first_time(parsed: &Parsed<'_>) -> Option<Timestamp> {
    let mut events = parsed.events.iter();
    events.find_map(|event| legacy::time_of(event))
}

/// Returns true if an older version wrote an event. After a merge, only some events may be older.
fn has_older(parsed: &Parsed<'_>) -> bool {
    parsed.events.iter().any(|event| legacy::is_older(event))
}

fn form_of(path: &Path, parsed: &Parsed<'_>) -> Form {
    match parsed.torn {
        _ if path.ends_with(MESSAGES) => Form::Older,
        Some(_) => Form::Torn,
        None => Form::Current,
    }
}

/// Returns the range of bytes that a torn file loses; `None` if only the closing bracket is missing.
fn lost_end(bytes: &[u8], parsed: &Parsed<'_>) -> Option<Range<usize>> {
    let torn = parsed.torn.clone()?;
    // A file that stops right after its `[` loses nothing either.
    (!matches!(bytes[torn.clone()].trim_ascii(), b"" | b"[")).then_some(torn)
}

fn lost_end_of(bytes: &[u8], parsed: &Parsed<'_>) -> Option<Vec<u8>> {
    lost_end(bytes, parsed).map(|torn| bytes[torn].to_owned())
}

fn torn_warning(path: &Path, bytes: &[u8], parsed: &Parsed<'_>) -> Vec<String> {
    let Some(torn) = lost_end(bytes, parsed) else {
        return Vec::new();
    };
    let (path, events) = (path.display(), parsed.events.len());
    let bytes = match torn.len() {
        1 => "1 byte".to_owned(),
        length => format!("{length} bytes"),
    };
    vec![format!(
        "{path} is cut off after event {events}: jp ignores the {bytes} after it, and the next write saves them next to it as {EVENTS}.torn-1 or with a higher number"
    )]
}

fn stream_of_file(
    path: &Path,
    bytes: &[u8],
    parsed: &Parsed<'_>,
    places: &Places,
) -> Result<Stream, ReadError> {
    let mut events = Vec::with_capacity(parsed.events.len());
    for text in &parsed.events {
        let mut event =
            Event::from_json(text).map_err(|error| event_error(path, bytes, text, &error))?;
        event.rewrite_places(|place| places.read(place));
        events.push(event);
    }
    Ok(Stream::from_events(events))
}

/// Parses events, some of which were converted from an older format.
fn stream_of_lines(path: &Path, lines: &[Line], places: &Places) -> Result<Stream, ReadError> {
    let mut events = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let mut event = Event::from_json(&line.json).map_err(|error| ReadError::Events {
            path: path.to_owned(),
            source: locate_by_index(index, error),
        })?;
        if line.has_places {
            event.rewrite_places(|place| places.read(place));
        }
        events.push(event);
    }
    Ok(Stream::from_events(events))
}

/// Locates a mistake by the number of its event. After a conversion, the position in the text is unknown.
fn locate_by_index(index: usize, error: EventError) -> ParseError {
    match error {
        EventError::Json(error) => ParseError::in_event(index, &parse::without_position(&error)),
        error => ParseError::in_event(index, &error),
    }
}

/// Makes the error of an event, with its position in the file.
fn event_error(path: &Path, bytes: &[u8], event: &str, error: &EventError) -> ReadError {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let start = if text.is_empty() {
        0
    } else {
        parse::offset(text, event)
    };
    let (reason, inside) = match error {
        EventError::Json(error) => (parse::without_position(error), offset_in(event, error)),
        EventError::Timestamp { .. } => (error.to_string(), 0),
    };
    let source = ParseError {
        reason,
        ..parse::position(bytes, start + inside)
    };
    ReadError::Events {
        path: path.to_owned(),
        source,
    }
}

fn offset_in(event: &str, error: &serde_json::Error) -> usize {
    let line_start: usize = event
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    (line_start + error.column().saturating_sub(1)).min(event.len())
}

fn read_metadata(
    tree: &Tree,
    directory: &Path,
    warnings: &mut Vec<String>,
) -> Result<Metadata, ReadError> {
    let path = directory.join(METADATA);
    match tree.read(&path) {
        Ok(bytes) if bytes.iter().any(|byte| *byte != 0) => Ok(Metadata::from_json(&bytes)
            .unwrap_or_else(|error| {
                replace_damaged(&path, &describe_damage(&bytes, &error), warnings)
            })),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(replace_damaged(&path, &error.to_string(), warnings))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ReadError::Io {
            path,
            source: error,
        }),
        // It is missing, or a loss of power left only zeroes.
        _ => {
            warnings.push(format!(
                "{} is missing or empty: the conversation has no title",
                path.display()
            ));
            Ok(Metadata::default())
        }
    }
}

fn describe_damage(bytes: &[u8], error: &serde_json::Error) -> String {
    let has_marks = bytes
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"<<<<<<< "));
    match has_marks {
        true => "it contains git's conflict markers; keep one side".to_owned(),
        false => error.to_string(),
    }
}

/// Returns empty metadata for a file that can't be read. The conversation works without it.
fn replace_damaged(path: &Path, cause: &str, warnings: &mut Vec<String>) -> Metadata {
    let path = path.display();
    warnings.push(format!(
        "{path} can't be read, so the conversation has no title: {cause}; the next message renames the file to {METADATA}.damaged-1 or a higher number"
    ));
    Metadata::unreadable()
}

fn read_json(tree: &Tree, path: &Path) -> Result<Option<Value>, ReadError> {
    tree.read_if_present(path)
        .map_err(ReadError::io(path))?
        .map(|bytes| serde_json::from_slice(&bytes))
        .transpose()
        .map_err(|source| ReadError::Json {
            path: path.to_owned(),
            source,
        })
}
