//! Texts that are read only when the request that they stand in is sent.
//!
//! A request needs a length before it is sent, and a text's length in it can be known without reading the text
//! ([`Measure`]). Then the encoder leaves room for it ([`Later`]): a NUL, which JSON has nowhere else (RFC 8259 §2, §7),
//! and which [`Body`](crate::Body) replaces with the text.

use std::{borrow::Cow, collections::HashMap, error::Error as StdError, fmt, io, sync::Arc};

use jp_resource::{BlobRef, Checksum, Encoding, ResourceContent};

use crate::{
    Error,
    defuse::{self, DEFUSED_BY},
    json::JsonText,
    parts::is_blank,
};

/// The measurements of a text that it takes to leave room for it in a request.
///
/// Displayed as what [`parse`](Self::parse) reads, without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Bytes of it in a JSON string, escaped.
    escaped: u64,
    /// Number of tags in it that would close a resource.
    closings: u64,
    ends_line: bool,
}

/// Version of the measurement. Measurements are stored: bump it if texts are written in another way
/// ([`escape_growth`], [`defuse::closings`], [`DEFUSED_BY`]).
const VERSION: u64 = 1;

/// A text that was loaded, or one that there is room for.
pub(crate) enum Text<'a> {
    Now(Cow<'a, str>),
    /// Not a blank one.
    Later(Measure),
}

/// The form of a text in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextForm {
    /// As it is.
    Plain,
    /// With its closing tags defused ([`defuse`]).
    Defused,
}

/// The texts that a request has room for.
pub struct Later {
    measures: Arc<HashMap<Checksum, Measure>>,
    texts: Arc<dyn TextSource>,
    gaps: Vec<Gap>,
}

/// Room for a text.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) blob: BlobRef,
    /// Names it in errors.
    subject: Box<str>,
    form: TextForm,
    /// Bytes of it as it is written.
    length: u64,
}

/// The source of the texts when a request is sent.
pub trait TextSource: Send + Sync {
    /// Starts to read texts; they come in the order of `blobs`.
    fn read(&self, blobs: Vec<BlobRef>) -> Box<dyn Iterator<Item = Loaded> + Send>;
}

/// A payload that was read, or why it was not.
pub type Loaded = Result<ResourceContent, Box<dyn StdError + Send + Sync>>;

impl Measure {
    /// Measures a text; a blank one has none, as some formats write it in ways of their own.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        // Blank texts have no measure, because some formats write them differently.
        (!is_blank(text)).then(|| Self {
            escaped: text.len() as u64 + escapes(text.as_bytes()),
            closings: defuse::closings(text).count() as u64,
            ends_line: text.ends_with('\n'),
        })
    }

    /// Reads what it is displayed as, if this version of jp writes texts as the one that measured it did.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(',');
        let [version, escaped, closings, ends_line] = [
            next_number(&mut fields)?,
            next_number(&mut fields)?,
            next_number(&mut fields)?,
            next_number(&mut fields)?,
        ];
        // A measure of another version may be wrong by a few bytes, and then the request would
        // break off.
        let is_whole = version == VERSION && ends_line <= 1 && fields.next().is_none();
        is_whole.then_some(Self {
            escaped,
            closings,
            ends_line: ends_line == 1,
        })
    }

    fn length(&self, form: TextForm) -> u64 {
        match form {
            TextForm::Plain => self.escaped,
            TextForm::Defused => self.escaped + self.closings * DEFUSED_BY,
        }
    }
}

fn next_number<'t>(fields: &mut impl Iterator<Item = &'t str>) -> Option<u64> {
    fields.next()?.parse().ok()
}

/// Counts the bytes that escaping adds to a text in a JSON string.
fn escapes(text: &[u8]) -> u64 {
    // As many as can be summed up in a byte, so that it is done many at a time.
    text.chunks(32)
        .map(|chunk| u64::from(chunk.iter().map(|byte| escape_growth(*byte)).sum::<u8>()))
        .sum()
}

/// Returns how many bytes escaping adds to this one: `\n` has two, and `\u0001` six.
fn escape_growth(byte: u8) -> u8 {
    let is_short = matches!(byte, b'"' | b'\\' | 8 | b'\t' | b'\n' | 12 | b'\r');
    let is_long = byte < 0x20 && !is_short;
    u8::from(is_short) + 5 * u8::from(is_long)
}

impl Text<'_> {
    /// Writes the text, or leaves room for it.
    pub(crate) fn write(&self, out: &mut JsonText<'_>) -> io::Result<()> {
        match self {
            Self::Now(text) => out.push(text),
            Self::Later(_) => out.leave_gap(),
        }
    }

    /// Returns whether a model would find nothing in it.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Now(text) => is_blank(text),
            Self::Later(_) => false,
        }
    }

    /// Returns whether another line can follow.
    pub(crate) fn ends_line(&self) -> bool {
        match self {
            Self::Now(text) => text.is_empty() || text.ends_with('\n'),
            Self::Later(measure) => measure.ends_line,
        }
    }
}

impl Later {
    /// Leaves room for the texts that are measured, which are read from `texts`.
    #[must_use]
    pub fn new(measures: Arc<HashMap<Checksum, Measure>>, texts: Arc<dyn TextSource>) -> Self {
        Self {
            measures,
            texts,
            gaps: Vec::new(),
        }
    }

    /// Takes the gaps so far, and returns them with the source of their texts.
    pub(crate) fn take_gaps(&mut self) -> (Arc<[Gap]>, Arc<dyn TextSource>) {
        (
            std::mem::take(&mut self.gaps).into(),
            Arc::clone(&self.texts),
        )
    }

    /// Records a gap for a text if its measure is known; `subject` names the text in errors.
    pub(crate) fn leave_room(
        &mut self,
        blob: &BlobRef,
        subject: &str,
        form: TextForm,
    ) -> Option<Measure> {
        let measure = *self
            .measures
            .get(&blob.checksum)
            // Two blobs with one checksum may be stored as text and as bytes; only text is
            // measured.
            .filter(|_| blob.encoding == Encoding::Utf8)?;
        let length = measure.length(form);
        self.gaps.push(Gap {
            blob: *blob,
            subject: subject.into(),
            form,
            length,
        });
        Some(measure)
    }
}

impl Gap {
    /// Returns how many bytes there is room for.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Writes the text that was read for it.
    pub(crate) fn fill(&self, read: Option<Loaded>, out: &mut dyn io::Write) -> Result<(), Error> {
        let content = read
            .unwrap_or_else(|| Err("nothing was read".into()))
            .map_err(|source| self.error(source))?;
        let ResourceContent::Text(text) = content else {
            return Err(self.error("it is no text".into()));
        };
        // Content-Length is sent already: neither more nor less may follow.
        let mut room = Room {
            out,
            left: self.length,
        };
        let mut json = JsonText::inside(&mut room);
        let written = match self.form {
            TextForm::Plain => json.push(&text),
            TextForm::Defused => defuse::write_defused(&mut json, &text),
        };
        match written {
            Ok(()) if room.left > 0 => Err(self.error("it is shorter than the room for it".into())),
            written => written.map_err(|reason| self.error(reason.into())),
        }
    }

    fn error(&self, source: Box<dyn StdError + Send + Sync>) -> Error {
        Error::Load {
            subject: self.subject.to_string(),
            source,
        }
    }
}

/// Takes as many bytes as there is room for: more would go on in the place of what follows.
struct Room<'w> {
    out: &'w mut dyn io::Write,
    left: u64,
}

impl io::Write for Room<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| io::Error::other("it is longer than the room for it"))?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            escaped,
            closings,
            ends_line,
        } = self;
        write!(f, "{VERSION},{escaped},{closings},{}", u8::from(*ends_line))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jp_conversation::view;
    use jp_resource::Payload;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Body, Capabilities, Contents, Format, Note, Request,
        fixtures::{self, Store, any_steps, any_text},
        json::JsonWriter,
    };

    /// A store that leaves room for every text that can be measured.
    struct Lazy<'s> {
        store: &'s mut Store,
        later: Later,
    }

    impl Contents for Lazy<'_> {
        fn load(&mut self, blob: &BlobRef) -> Loaded {
            self.store.load(blob)
        }

        fn later(&mut self) -> Option<&mut Later> {
            Some(&mut self.later)
        }
    }

    impl TextSource for Mutex<Store> {
        fn read(&self, blobs: Vec<BlobRef>) -> Box<dyn Iterator<Item = Loaded> + Send> {
            let mut store = self.lock().unwrap();
            Box::new(
                blobs
                    .iter()
                    .map(|blob| store.load(blob))
                    .collect::<Vec<_>>()
                    .into_iter(),
            )
        }
    }

    /// Encodes with room for every text of `measured`, which are read from `texts`.
    fn body(
        format: Format,
        request: &Request<'_>,
        measured: &Store,
        store: &mut Store,
        texts: Store,
    ) -> (Body, Vec<Note>) {
        let later = Later::new(measures(measured), Arc::new(Mutex::new(texts)));
        format.body(request, &mut Lazy { store, later }).unwrap()
    }

    fn measures(store: &Store) -> Arc<HashMap<Checksum, Measure>> {
        let texts = store
            .bytes
            .iter()
            .filter_map(|(blob, bytes)| Some((blob, str::from_utf8(bytes).ok()?)));
        Arc::new(
            texts
                .filter_map(|(blob, text)| Some((blob.checksum, Measure::from_text(text)?)))
                .collect(),
        )
    }

    fn copy(store: &Store) -> Store {
        Store {
            bytes: store.bytes.clone(),
            asked: Vec::new(),
        }
    }

    fn bytes(body: &Body) -> Result<Vec<u8>, Error> {
        body.chunks()
            .collect::<Result<Vec<_>, _>>()
            .map(|chunks| chunks.concat())
    }

    /// A conversation with one text attached, encoded with room for it; and how much was loaded.
    fn attached(text: &str, change: impl FnOnce(&mut Store)) -> (Body, usize) {
        let mut store = Store::default();
        let resources = vec![fixtures::text("file:///a", text)];
        let stream = fixtures::stream(vec![fixtures::request("x", resources)], &mut store);
        let thread = view::thread(&stream);
        let (measured, mut texts) = (copy(&store), copy(&store));
        change(&mut texts);
        let (body, _) = body(
            Format::Chat,
            &Request::new("p/m", &thread),
            &measured,
            &mut store,
            texts,
        );
        (body, store.asked.len())
    }

    /// Counts the texts of a thread that room can be left for.
    fn measurable(thread: &view::Thread<'_>, measured: &Store) -> usize {
        let measures = measures(measured);
        let requests = thread.messages.iter().filter_map(|message| match message {
            view::Message::User { request, .. } => Some(request),
            _ => None,
        });
        let is_measured =
            |resource: &&jp_resource::Snapshot| match (&resource.formatted, &resource.content) {
                (None, Payload::Stored(blob)) => {
                    blob.encoding == Encoding::Utf8 && measures.contains_key(&blob.checksum)
                }
                _ => false,
            };
        requests
            .flat_map(|request| &request.resources)
            .filter(is_measured)
            .count()
    }

    #[test]
    fn attached_text_is_read_each_time_the_body_is() {
        let text = "a \"text\"\n".repeat(100_000);
        let (body, loaded) = attached(&text, |_| {});
        assert_eq!(loaded, 0);
        let sent = bytes(&body).unwrap();
        assert_eq!(body.len(), sent.len() as u64);
        let json: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        assert!(
            json["messages"][0]["content"][1]["text"]
                .as_str()
                .unwrap()
                .contains(&text)
        );
        assert!(bytes(&body).unwrap() == sent);
    }

    #[test]
    fn text_that_is_gone_or_has_changed_is_an_error_that_names_it() {
        let (body, _) = attached("text", |store| store.bytes.clear());
        let error = bytes(&body).unwrap_err();
        assert_eq!(
            crate::error::with_causes(&error),
            "load file:///a for the request: no such blob"
        );
        let (body, _) = attached("text", |store| {
            for bytes in store.bytes.values_mut() {
                *bytes = b"te\"t".to_vec();
            }
        });
        let error = bytes(&body).unwrap_err();
        assert_eq!(
            crate::error::with_causes(&error),
            "load file:///a for the request: it is longer than the room for it"
        );
    }

    #[test]
    fn measure_that_is_damaged_or_of_another_version_is_none() {
        for text in [
            "",
            "1",
            "1,1,2",
            "1,1,2,2",
            "1,-1,2,0",
            "1,x,2,0",
            "1,1,2,0,1",
            "2,1,2,0",
        ] {
            assert_eq!(Measure::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn measure_is_the_length_of_what_is_written(text in any_text(), times in 1usize..30) {
            let text = text.repeat(times) + &text;
            let measure = Measure::from_text(&text);
            prop_assert_eq!(measure.is_none(), is_blank(&text));
            let Some(measure) = measure else { return Ok(()) };
            prop_assert_eq!(Measure::parse(&measure.to_string()), Some(measure));
            let mut json = Vec::new();
            JsonWriter::new(&mut json).string(|out| out.push(&text)).unwrap();
            prop_assert_eq!(measure.length(TextForm::Plain) + 2, json.len() as u64);
            json.clear();
            JsonWriter::new(&mut json).string(|out| defuse::write_defused(out, &text)).unwrap();
            prop_assert_eq!(measure.length(TextForm::Defused) + 2, json.len() as u64);
        }

        #[test]
        fn body_is_the_same_whether_texts_are_loaded_now_or_later(steps in any_steps(), takes in any::<bool>()) {
            use Format::{Anthropic, Chat, Gemini, Ollama, OpenAi, OpenRouter};
            let mut store = Store::default();
            let stream = fixtures::stream(steps.concat(), &mut store);
            let thread = view::thread(&stream);
            let capabilities = Capabilities { images: takes, pdf: takes, binary_results: takes, ..Default::default() };
            let request = Request { capabilities, ..Request::new("p/m", &thread) };
            for format in [Anthropic, Chat, Gemini, Ollama, OpenAi, OpenRouter] {
                let mut expected = Vec::new();
                let notes = format.encode(&request, &mut store, &mut expected).unwrap();
                let (measured, texts) = (copy(&store), copy(&store));
                let (body, lazy_notes) = self::body(format, &request, &measured, &mut store, texts);
                prop_assert_eq!(body.len(), expected.len() as u64);
                prop_assert_eq!(body.gaps().len(), measurable(&thread, &store), "room for all attached texts");
                prop_assert_eq!(String::from_utf8(bytes(&body).unwrap()), String::from_utf8(expected));
                prop_assert_eq!(lazy_notes, notes);
            }
        }
    }
}
