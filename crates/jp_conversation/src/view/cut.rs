//! Shows models the start and the end of a long result.
//!
//! The event has the whole text. A mark in a block's `_meta` has the length of the shown start and end. So the view
//! stays a pure function of the events, and the rest can be read later.

use std::borrow::Cow;

use jp_resource::{BlobRef, Checksum, Encoding, Payload, ResourceContent};
use jp_tool::{ContentBlock, Media, StoredBlock};
use serde_json::{Map, Value, json};

use super::{render::resource_label, size::whole_bytes};
use crate::INLINE_BYTES;

/// The field of `_meta` with the mark.
const MARK: &str = "computer.jp/shown";
/// The fewest bytes to leave out of a text. The line that replaces them is nearly as long, and `read_more` needs a
/// blob, which shorter text doesn't have.
const LEAST: usize = INLINE_BYTES;

/// The amount of a text that a model sees, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The bytes at its start.
    pub head: usize,
    /// The bytes at its end.
    pub tail: usize,
}

impl Shown {
    /// Chooses the shown part of `text`: at most `bytes`, half at the start and half at the end. Both are whole lines
    /// if that costs at most half of their length. `None` if all of it is shown.
    #[must_use]
    pub fn within(text: &str, bytes: usize) -> Option<Self> {
        // Otherwise, the line in between would cost more than the cut saves.
        if text.len() <= bytes.saturating_add(LEAST) {
            return None;
        }
        let most = bytes / 2;
        let head = floor(text, most);
        let tail = ceil(text, text.len() - most);
        let line_end = text[..head]
            .rfind('\n')
            .map(|at| at + 1)
            // A very long line is cut inside, because whole lines would show almost nothing.
            .filter(|end| *end >= most / 2);
        // A line that starts exactly there is whole.
        let newline = text.as_bytes()[tail.saturating_sub(1)..]
            .iter()
            .position(|byte| *byte == b'\n');
        let line_start = newline.map(|at| tail.max(1) + at).filter(|start| {
            let left = text.len() - start;
            left > 0 && left >= most / 2
        });
        let (head, tail) = (line_end.unwrap_or(head), line_start.unwrap_or(tail));
        Some(Self {
            head,
            tail: text.len() - tail,
        })
    }

    /// Nothing of the content is shown.
    pub const NOTHING: Self = Self { head: 0, tail: 0 };

    /// Reads the mark of a block.
    #[must_use]
    pub fn read_mark(block: &StoredBlock) -> Option<Self> {
        let (ContentBlock::Text { meta, .. }
        | ContentBlock::Resource { meta, .. }
        | ContentBlock::Image(Media { meta, .. })
        | ContentBlock::Audio(Media { meta, .. })) = block
        else {
            return None;
        };
        let mark = meta.as_ref()?.get(MARK)?;
        Some(Self {
            head: number(mark, "head")?,
            tail: number(mark, "tail")?,
        })
    }

    /// Marks a block, or removes its mark. A block without content stays unchanged.
    ///
    /// Binary content is shown whole or [not at all](Self::NOTHING).
    pub fn mark(shown: Option<Self>, block: &mut StoredBlock) {
        let (ContentBlock::Text { meta, .. }
        | ContentBlock::Resource { meta, .. }
        | ContentBlock::Image(Media { meta, .. })
        | ContentBlock::Audio(Media { meta, .. })) = block
        else {
            return;
        };
        match shown {
            Some(Self { head, tail }) => {
                let mark = json!({"head": head, "tail": tail});
                meta.get_or_insert_with(Map::new)
                    .insert(MARK.to_owned(), mark);
            }
            None => {
                let had_mark = meta
                    .as_mut()
                    .is_some_and(|meta| meta.shift_remove(MARK).is_some());
                if had_mark && meta.as_ref().is_some_and(Map::is_empty) {
                    *meta = None;
                }
            }
        }
    }
}

/// Reads a number of a mark; `None` if the mark is damaged.
pub(super) fn number(mark: &Value, name: &str) -> Option<usize> {
    usize::try_from(mark.get(name)?.as_u64()?).ok()
}

/// Returns the text of a result's block that a model receives: all of it, or the start and end of the block's mark,
/// with a line in between that says how to read the rest.
#[must_use]
pub fn shown_text<'t>(block: &StoredBlock, text: Cow<'t, str>) -> Cow<'t, str> {
    let Some(Shown { head, tail }) = Shown::read_mark(block) else {
        return text;
    };
    let (head, tail) = (
        floor(&text, head),
        ceil(&text, text.len().saturating_sub(tail)),
    );
    // The mark belongs to another text or is damaged. Show all instead of repeating a part.
    if head >= tail {
        return text;
    }
    let checksum =
        stored_text(block).map_or_else(|| Checksum::compute(text.as_bytes()), |blob| blob.checksum);
    let newline = if head == 0 || text[..head].ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let line = cut_line(tail - head, checksum, head);
    Cow::Owned(format!("{}{newline}{line}{}", &text[..head], &text[tail..]))
}

/// Returns the type and the length in bytes of a block's content if it is binary.
#[must_use]
pub fn describe_binary(block: &StoredBlock) -> Option<(&str, u64)> {
    const UNKNOWN: &str = "application/octet-stream";
    match block {
        ContentBlock::Image(media) | ContentBlock::Audio(media) => {
            Some((&media.mime_type, whole_bytes(block)))
        }
        ContentBlock::Resource { resource, .. } if resource.formatted.is_none() => {
            let encoding = match &resource.content {
                Payload::Inline(content) => content.encoding(),
                Payload::Stored(blob) => blob.encoding,
            };
            let mime_type = resource.mime_type.as_deref().unwrap_or(UNKNOWN);
            (encoding == Encoding::Binary).then(|| (mime_type, whole_bytes(block)))
        }
        ContentBlock::Resource { .. }
        | ContentBlock::Text { .. }
        | ContentBlock::Question { .. }
        | ContentBlock::Unknown(_) => None,
    }
}

/// Returns the note that replaces a binary block that is left out.
pub(super) fn note_for_left_out(block: &StoredBlock) -> Option<StoredBlock> {
    let (mime_type, bytes) = Shown::read_mark(block).and_then(|_| describe_binary(block))?;
    let label = match block {
        ContentBlock::Resource { resource, .. } => resource_label(resource),
        _ => "Part of the result".to_owned(),
    };
    Some(ContentBlock::text(format!(
        "[{label} is not shown: {mime_type}, {bytes} bytes, over the limit for a tool result. Request a smaller version or a part of it. The user can raise `max_output_bytes` for this tool, or attach the file.]\n"
    )).into())
}

/// Returns the approximate number of bytes of a block that a model receives.
pub(super) fn shown_bytes(block: &StoredBlock) -> u64 {
    let whole = whole_bytes(block);
    let Some(Shown { head, tail }) = Shown::read_mark(block) else {
        return whole;
    };
    let shown = (head as u64).saturating_add(tail as u64);
    match usize::try_from(whole.saturating_sub(shown)) {
        Ok(0) | Err(_) => whole,
        Ok(left_out) => {
            shown + cut_line(left_out, Checksum::from_bytes([0; 32]), head).len() as u64
        }
    }
}

fn cut_line(left_out: usize, checksum: Checksum, offset: usize) -> String {
    format!(
        "… {left_out} bytes are left out here; call `read_more` with uri \"jp://blob/{checksum}\" and offset {offset} to continue …\n"
    )
}

/// Returns the blob of a block's text, if it is stored.
fn stored_text(block: &StoredBlock) -> Option<BlobRef> {
    match block {
        ContentBlock::Text { text, .. } => text.blob(),
        ContentBlock::Resource { resource, .. } => match &resource.formatted {
            Some(formatted) => formatted.blob(),
            None => resource.content.blob(),
        },
        ContentBlock::Image(_)
        | ContentBlock::Audio(_)
        | ContentBlock::Question { .. }
        | ContentBlock::Unknown(_) => None,
    }
}

/// Returns the text of a block that is not stored yet.
#[must_use]
pub fn inline_text(block: &StoredBlock) -> Option<&str> {
    match block {
        ContentBlock::Text { text, .. } => text.inline().map(String::as_str),
        ContentBlock::Resource { resource, .. } => match &resource.formatted {
            Some(formatted) => formatted.inline().map(String::as_str),
            None => match &resource.content {
                Payload::Inline(ResourceContent::Text(text)) => Some(text),
                _ => None,
            },
        },
        ContentBlock::Image(_)
        | ContentBlock::Audio(_)
        | ContentBlock::Question { .. }
        | ContentBlock::Unknown(_) => None,
    }
}

/// Returns the last boundary of a character up to `at`.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Returns the first boundary of a character from `at` on.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use jp_resource::{Encoding, Resource};
    use proptest::prelude::*;

    use super::*;

    fn text_block(text: &str) -> StoredBlock {
        ContentBlock::text(text).into()
    }

    fn marked(text: &str, head: usize, tail: usize) -> StoredBlock {
        let mut block = text_block(text);
        Shown::mark(Some(Shown { head, tail }), &mut block);
        block
    }

    #[test]
    fn block_without_a_mark_is_shown_whole() {
        let text = "x".repeat(10_000);
        assert_eq!(shown_text(&text_block(&text), Cow::Borrowed(&*text)), text);
        assert_eq!(shown_bytes(&text_block(&text)), 10_000);
    }

    #[test]
    fn cut_text_ends_at_lines() {
        let text: String = (0..200).map(|n| format!("line {n:04}\n")).collect();
        let shown = Shown::within(&text, 64).unwrap();
        assert_eq!(shown, Shown { head: 30, tail: 30 });
        let block = marked(&text, shown.head, shown.tail);
        insta::assert_snapshot!(shown_text(&block, Cow::Borrowed(&text)), @r#"
        line 0000
        line 0001
        line 0002
        … 1940 bytes are left out here; call `read_more` with uri "jp://blob/3687c5d6189e4854287b43cba131a88d2e156c8976d0359d60055da525a84330" and offset 30 to continue …
        line 0197
        line 0198
        line 0199
        "#);
    }

    #[test]
    fn inline_text_is_shown_like_stored_text() {
        let text = "é".repeat(1000);
        let inline = marked(&text, 301, 11);
        let mut stored = inline.clone();
        if let ContentBlock::Text { text: payload, .. } = &mut stored {
            *payload = Payload::Stored(BlobRef::for_content(text.as_bytes(), Encoding::Utf8));
        }
        let shown = shown_text(&inline, Cow::Borrowed(&*text));
        assert_eq!(shown, shown_text(&stored, Cow::Borrowed(&*text)));
        assert!(
            shown.starts_with(&format!("{}\n… 1690 bytes", "é".repeat(150))),
            "{shown}"
        );
        assert!(shown.ends_with(&format!("…\n{}", "é".repeat(5))));
        assert_eq!(shown_bytes(&inline), shown_bytes(&stored));
    }

    #[test]
    fn formatted_text_of_a_resource_is_cut() {
        let mut resource = Resource::new("a:b", ResourceContent::Text("raw".to_owned()));
        resource.formatted = Some("f".repeat(1000));
        let mut block: StoredBlock = ContentBlock::resource(resource).into();
        assert_eq!(inline_text(&block).map(str::len), Some(1000));
        Shown::mark(Some(Shown { head: 10, tail: 10 }), &mut block);
        let formatted = "f".repeat(1000);
        let shown = shown_text(&block, Cow::Borrowed(&*formatted));
        assert!(
            shown.contains(&Checksum::compute(formatted.as_bytes()).to_string()),
            "{shown}"
        );
    }

    #[test]
    fn removed_mark_leaves_other_metadata() {
        let mut block = marked("x", 0, 0);
        Shown::mark(None, &mut block);
        assert_eq!(block, text_block("x"));
    }

    #[test]
    fn left_out_content_is_described() {
        let content = ResourceContent::Blob(vec![0xff; 5]);
        let resource = Resource::new("file:///w/a.png", content)
            .with_name("a.png")
            .with_mime_type("image/png");
        let data = vec![0; 3];
        let media = Media {
            data,
            mime_type: "audio/wav".to_owned(),
            annotations: None,
            meta: None,
        };
        let mut notes = Vec::new();
        for block in [ContentBlock::resource(resource), ContentBlock::Audio(media)] {
            let mut block: StoredBlock = block.into();
            assert_eq!(note_for_left_out(&block), None);
            Shown::mark(Some(Shown::NOTHING), &mut block);
            notes.push(
                inline_text(&note_for_left_out(&block).unwrap())
                    .unwrap()
                    .to_owned(),
            );
        }
        insta::assert_snapshot!(notes.concat(), @r"
        [a.png (file:///w/a.png) is not shown: image/png, 5 bytes, over the limit for a tool result. Request a smaller version or a part of it. The user can raise `max_output_bytes` for this tool, or attach the file.]
        [Part of the result is not shown: audio/wav, 3 bytes, over the limit for a tool result. Request a smaller version or a part of it. The user can raise `max_output_bytes` for this tool, or attach the file.]
        ");
        assert_eq!(note_for_left_out(&marked("text", 0, 0)), None);
    }

    proptest! {
        #[test]
        fn cut_text_accounts_for_every_byte(text in "[a-zé€\n]{0,900}", bytes in 0usize..700) {
            match Shown::within(&text, bytes) {
                None => prop_assert!(text.len() <= bytes + LEAST),
                Some(Shown { head, tail }) => {
                    prop_assert!(head + tail <= bytes && head + tail < text.len());
                    let block = marked(&text, head, tail);
                    let shown = shown_text(&block, Cow::Borrowed(&*text));
                    let left_out = text.len() - head - tail;
                    let said = format!("… {left_out} bytes are left out here;");
                    prop_assert!(shown.contains(&said), "{}", shown);
                    prop_assert!(shown.starts_with(&text[..head]) && shown.ends_with(&text[text.len() - tail..]));
                    prop_assert!(shown.len() as u64 - shown_bytes(&block) <= 1);
                }
            }
        }

        #[test]
        fn any_mark_is_accepted(text in "[aé€\n]{0,40}", head in any::<u64>(), tail in 0u64..80) {
            for (head, tail) in [(head, tail), (tail, head), (head % 50, tail)] {
                let block = marked(&text, head as usize, tail as usize);
                let shown = shown_text(&block, Cow::Borrowed(&*text));
                let (head, tail) = ((head as usize).min(text.len()), (tail as usize).min(text.len()));
                shown_bytes(&block);
                let Some((before, line)) = shown.split_once("… ") else {
                    prop_assert!(head + tail >= text.len());
                    prop_assert_eq!(&*shown, &*text);
                    continue;
                };
                let after = line.split_once(" …\n").unwrap().1;
                let left_out: usize = line.split(' ').next().unwrap().parse().unwrap();
                let (start, end) = (text.len() - after.len() - left_out, text.len() - after.len());
                let rest_of_before = before.strip_prefix(&text[..start]);
                prop_assert!(matches!(rest_of_before, Some("" | "\n")), "{:?}", shown);
                prop_assert_eq!(after, &text[end..]);
                // No more than the mark says, and no less except for a character that it goes through.
                prop_assert!((start..start + 3).contains(&head) && (after.len()..after.len() + 3).contains(&tail));
            }
        }
    }
}
