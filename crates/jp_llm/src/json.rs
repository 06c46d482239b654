//! JSON written piece by piece, straight to where a request goes.
//!
//! An encoder never holds a whole request: it writes one value after the other, and content while it is loaded. serde
//! writes the small parts ([`JsonWriter::value`], [`JsonWriter::fields`]); [`JsonText`] writes long strings in chunks.

use std::io::{self, Write};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use serde::Serialize;
use serde_json::{Serializer, ser::Formatter};

/// Writes one JSON document (RFC 8259) without spaces, and all its commas and brackets.
///
/// The caller keeps to the grammar: a key before each value of an object, and none in an array.
pub(crate) struct JsonWriter<'w> {
    out: &'w mut dyn Write,
    /// The closing brackets of all open objects and arrays, the innermost last.
    open: Vec<u8>,
    /// True if the next key or value follows another. One flag is enough for all levels: an object or array that just began
    /// is empty, and one that just ended is itself a value.
    needs_comma: bool,
}

impl<'w> JsonWriter<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            open: Vec::new(),
            needs_comma: false,
        }
    }

    /// Begins an object, which lasts until [`end`](Self::end).
    pub(crate) fn begin_object(&mut self) -> io::Result<()> {
        self.begin(b"{", b'}')
    }

    /// Begins an array, which lasts until [`end`](Self::end).
    pub(crate) fn begin_array(&mut self) -> io::Result<()> {
        self.begin(b"[", b']')
    }

    fn begin(&mut self, bracket: &[u8], closing: u8) -> io::Result<()> {
        self.write_comma()?;
        self.out.write_all(bracket)?;
        self.open.push(closing);
        self.needs_comma = false;
        Ok(())
    }

    /// Ends the innermost open object or array.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        debug_assert!(!self.open.is_empty(), "nothing is open");
        self.out.write_all(self.open.pop().as_slice())?;
        self.needs_comma = true;
        Ok(())
    }

    /// Ends all open objects and arrays.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        while !self.open.is_empty() {
            self.end()?;
        }
        Ok(())
    }

    /// Writes the key of the value that comes next; it needs no escaping.
    pub(crate) fn key(&mut self, key: &'static str) -> io::Result<()> {
        self.write_comma()?;
        self.out.write_all(b"\"")?;
        self.out.write_all(key.as_bytes())?;
        self.out.write_all(b"\":")?;
        self.needs_comma = false;
        Ok(())
    }

    /// Writes a value.
    pub(crate) fn value(&mut self, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.write_comma()?;
        serde_json::to_writer(&mut *self.out, value)?;
        self.needs_comma = true;
        Ok(())
    }

    /// Writes a key and its value.
    pub(crate) fn field(
        &mut self,
        key: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> io::Result<()> {
        self.key(key)?;
        self.value(value)
    }

    /// Writes the fields of a struct or map into the open object.
    pub(crate) fn fields(&mut self, value: &impl Serialize) -> io::Result<()> {
        let formatter = FieldsOnly {
            depth: 0,
            needs_comma: &mut self.needs_comma,
        };
        let mut serializer = Serializer::with_formatter(&mut *self.out, formatter);
        Ok(value.serialize(&mut serializer)?)
    }

    /// Writes a string, whose text `fill` pushes in pieces of any size.
    pub(crate) fn string<E: From<io::Error>>(
        &mut self,
        fill: impl FnOnce(&mut JsonText<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.write_comma()?;
        self.out.write_all(b"\"")?;
        fill(&mut JsonText::inside(self.out))?;
        self.out.write_all(b"\"")?;
        self.needs_comma = true;
        Ok(())
    }

    /// Writes bytes as a string of base64 (RFC 4648 §4).
    pub(crate) fn base64(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.base64_after(&["\""], bytes)
    }

    /// Writes bytes as a string that is a `data:` URL (RFC 2397); the media type needs no escaping.
    pub(crate) fn data_url(&mut self, mime: &str, bytes: &[u8]) -> io::Result<()> {
        self.base64_after(&["\"data:", mime, ";base64,"], bytes)
    }

    fn base64_after(&mut self, beginning: &[&str], bytes: &[u8]) -> io::Result<()> {
        self.write_comma()?;
        for piece in beginning {
            self.out.write_all(piece.as_bytes())?;
        }
        // Encodes through a small buffer of its own: a copy of the whole would be a third larger than the content.
        let mut encoder = EncoderWriter::new(&mut *self.out, &STANDARD);
        encoder.write_all(bytes)?;
        encoder.finish()?.write_all(b"\"")?;
        self.needs_comma = true;
        Ok(())
    }

    /// Writes values or fields that were written apart.
    pub(crate) fn append(&mut self, fragment: Fragment) -> io::Result<()> {
        if fragment.is_empty() {
            return Ok(());
        }
        self.write_comma()?;
        self.out.write_all(&fragment.json)?;
        self.needs_comma = true;
        Ok(())
    }

    fn write_comma(&mut self) -> io::Result<()> {
        if self.needs_comma {
            self.out.write_all(b",")
        } else {
            Ok(())
        }
    }
}

/// Values or fields that have to wait for their place in a document, with commas between them.
#[derive(Default)]
pub(crate) struct Fragment {
    json: Vec<u8>,
}

impl Fragment {
    pub(crate) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// Returns a writer of the next values or fields.
    pub(crate) fn writer(&mut self) -> JsonWriter<'_> {
        let needs_comma = !self.is_empty();
        JsonWriter {
            out: &mut self.json,
            open: Vec::new(),
            needs_comma,
        }
    }
}

/// Formats an object without its outermost braces, so that its fields join those of the open object.
struct FieldsOnly<'c> {
    /// Number of open objects, the outermost included.
    depth: usize,
    needs_comma: &'c mut bool,
}

impl Formatter for FieldsOnly<'_> {
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(if self.depth == 1 { b"" } else { b"{" })
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(if self.depth == 0 { b"" } else { b"}" })
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        let needs_comma = match self.depth {
            1 => std::mem::replace(self.needs_comma, true),
            _ => !is_first,
        };
        out.write_all(if needs_comma { b"," } else { b"" })
    }
}

/// The inside of a JSON string: escapes what may not stand there (RFC 8259 §7).
pub(crate) struct JsonText<'w> {
    out: &'w mut dyn Write,
    /// A chunk with quotes around it, kept for its memory.
    escaped: Vec<u8>,
}

/// Bytes of text that are escaped at once. Small, because six times as much is reserved for the result, which should stay
/// in the cache.
const CHUNK: usize = 8 << 10;

/// Stands in a request for a text that is read when it is sent; JSON itself has no such byte.
pub(crate) const GAP: u8 = 0;

impl<'w> JsonText<'w> {
    /// Continues in the middle of a string.
    pub(crate) fn inside(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            escaped: Vec::new(),
        }
    }

    /// Leaves room for a text.
    pub(crate) fn leave_gap(&mut self) -> io::Result<()> {
        self.out.write_all(&[GAP])
    }

    /// Writes the next piece of the text.
    pub(crate) fn push(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (chunk, after) = split_chunk(rest);
            self.escaped.clear();
            json_escape_simd::escape_into(chunk, &mut self.escaped);
            self.out
                .write_all(&self.escaped[1..self.escaped.len() - 1])?;
            rest = after;
        }
        Ok(())
    }
}

/// Cuts off as many whole characters as fit in a chunk.
fn split_chunk(text: &str) -> (&str, &str) {
    let longest = text.len().min(CHUNK);
    // A character has at most four bytes, so one of the last four places is between two.
    let mut splits = (0..=longest)
        .rev()
        .filter_map(|end| text.split_at_checked(end));
    splits.next().expect("a text can be split at its start")
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use proptest::{prelude::*, sample::Index};
    use serde_json::{Map, Value, json};

    use super::*;

    /// Ways to write a value.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Way {
        /// Containers by `begin` and `end`, strings by `string`.
        Pieces,
        /// The fields of objects by `fields`.
        Fields,
        /// The values of arrays as fragments.
        Fragments,
        /// Everything by `value`.
        Serde,
    }

    fn written(write: impl FnOnce(&mut JsonWriter<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        let mut json = JsonWriter::new(&mut out);
        write(&mut json).unwrap();
        json.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Writes a value in the ways that are next in `ways`.
    fn write(json: &mut JsonWriter<'_>, value: &Value, ways: &mut impl Iterator<Item = Way>) {
        let way = ways.next().unwrap_or(Way::Pieces);
        match value {
            _ if way == Way::Serde => json.value(value).unwrap(),
            Value::String(text) => json
                .string(|out| {
                    let middle = (0..=text.len() / 2)
                        .rev()
                        .find(|at| text.is_char_boundary(*at))
                        .unwrap();
                    out.push(&text[..middle])?;
                    out.push(&text[middle..])
                })
                .unwrap(),
            Value::Array(values) => {
                json.begin_array().unwrap();
                if way == Way::Fragments {
                    let mut fragment = Fragment::default();
                    for value in values {
                        write(&mut fragment.writer(), value, ways);
                    }
                    json.append(fragment).unwrap();
                } else {
                    values.iter().for_each(|value| write(json, value, ways));
                }
                json.end().unwrap();
            }
            Value::Object(object) => {
                json.begin_object().unwrap();
                if way == Way::Fields {
                    // In three goes, of which the second is empty.
                    let (first, last): (Map<_, _>, Map<_, _>) = object
                        .clone()
                        .into_iter()
                        .partition(|(key, _)| key.as_str() == "a");
                    json.fields(&first).unwrap();
                    json.fields(&Map::new()).unwrap();
                    json.fields(&last).unwrap();
                } else {
                    for (key, value) in object {
                        json.key(KEYS.iter().find(|known| *known == key).unwrap())
                            .unwrap();
                        write(json, value, ways);
                    }
                }
                json.end().unwrap();
            }
            other => json.value(other).unwrap(),
        }
    }

    const KEYS: [&str; 3] = ["a", "b", "long key"];

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "([\\x00-\\x7f]|(?s).){0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(prop::sample::select(&KEYS[..]), inner, 0..4).prop_map(
                    |object| object
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect::<Map<_, _>>()
                        .into()
                ),
            ]
        })
    }

    proptest! {
        #[test]
        fn document_has_the_bytes_that_serde_writes(
            value in any_value(),
            ways in prop::collection::vec(
                prop::sample::select(vec![Way::Pieces, Way::Fields, Way::Fragments, Way::Serde]),
                0..40,
            ),
        ) {
            let json = written(|json| {
                write(json, &value, &mut ways.into_iter());
                Ok(())
            });
            prop_assert_eq!(json, serde_json::to_string(&value).unwrap());
        }

        #[test]
        fn bytes_are_base64_of_any_length(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let json = written(|json| {
                json.begin_array()?;
                json.base64(&bytes)?;
                json.data_url("image/png", &bytes)
            });
            let base64 = STANDARD.encode(&bytes);
            prop_assert_eq!(json, format!(r#"["{base64}","data:image/png;base64,{base64}"]"#));
        }

        #[test]
        fn string_reads_back_however_it_is_cut(
            line in "([\\x00-\\x7f]|(?s).){0,600}",
            lines in prop_oneof![Just(1), 2usize..60],
            cut in any::<Index>(),
        ) {
            let text = line.repeat(lines);
            let cuts: Vec<usize> = (0..=text.len()).filter(|end| text.is_char_boundary(*end)).collect();
            let (start, end) = text.split_at(*cut.get(&cuts));
            let json = written(|json| json.string(|out| {
                out.push(start)?;
                out.push(end)
            }));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }

    #[test]
    fn fields_join_those_of_the_open_object() {
        let json = written(|json| {
            json.begin_object()?;
            json.field("a", &1)?;
            json.fields(&json!({"b": {"c": {}, "d": [{}]}, "e": ""}))?;
            json.fields(&json!({}))?;
            json.field("f", "x")
        });
        assert_eq!(json, r#"{"a":1,"b":{"c":{},"d":[{}]},"e":"","f":"x"}"#);
    }

    #[test]
    fn empty_fragment_leaves_no_comma() {
        let json = written(|json| {
            json.begin_array()?;
            json.append(Fragment::default())?;
            json.value(&1)?;
            json.append(Fragment::default())?;
            json.value(&2)
        });
        assert_eq!(json, "[1,2]");
    }
}
