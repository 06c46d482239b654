//! Writes the text that replaces content. It is neutral, and equal inputs give equal text.

use jp_resource::{Checksum, Snapshot, mime};

use super::{
    KnownLines, Place,
    lines::Span,
    render::{lacks_newline, one_line},
};

/// The form of content in the request.
#[derive(Clone)]
pub(super) enum Stands {
    /// Whole, as lines that a diff can build on.
    Lines,
    /// Whole, as something else.
    Otherwise,
    /// As changes since the version at this place.
    Diff(Box<Place>),
    /// As references to lines, with the other lines.
    Parts,
}

/// Refers to the place of the same content; `is_back` is true if another version came in between.
pub(super) fn reference(snapshot: &Snapshot, at: &Place, stands: &Stands, is_back: bool) -> String {
    let (uri, checksum) = (one_line(&snapshot.uri), at.checksum.short());
    let relation = if is_back {
        "is back to an earlier version"
    } else {
        "has not changed"
    };
    let said = match stands {
        Stands::Lines | Stands::Otherwise => format!("is {at}"),
        Stands::Parts => format!("appears in parts {at}"),
        Stands::Diff(base) => {
            let old = base.checksum.short();
            format!("is the version {base}, sha256 {old}, with the changes {at}")
        }
    };
    format!("{uri} {relation}. Its content, sha256 {checksum}, {said}.")
}

/// Refers to visible lines that are all of a resource.
pub(super) fn lines(snapshot: &Snapshot, KnownLines { ours, at, theirs }: &KnownLines) -> String {
    let (uri, checksum) = (one_line(&snapshot.uri), at.checksum.short());
    let are = if ours.first == ours.last { "is" } else { "are" };
    format!("{uri}: {ours} {are} {theirs} of the content {at}, sha256 {checksum}.")
}

/// Refers to the visible lines of a resource, with the other lines between them.
pub(super) fn parts(snapshot: &Snapshot, parts: &[Part<'_>]) -> String {
    let mut text = format!("{}, in parts:\n", one_line(&snapshot.uri));
    let language = snapshot.mime_type.as_deref().and_then(mime::fence_language);
    for part in parts {
        let said = match part {
            Part::Known(KnownLines { ours, at, theirs }) => {
                let checksum = at.checksum.short();
                format!(
                    "{} {theirs} of the content {at}, sha256 {checksum}.\n",
                    are(*ours)
                )
            }
            Part::New(lines, content) => {
                let is_unended = lacks_newline(snapshot, content.ends_with('\n'));
                let end = if is_unended {
                    ", without a newline at the end"
                } else {
                    ""
                };
                format!("{}{end}:\n{}", are(*lines), fence_block(language, content))
            }
        };
        text.push_str(&said);
    }
    text
}

/// A part of a resource.
pub(super) enum Part<'c> {
    /// Lines that are visible.
    Known(&'c KnownLines),
    /// Lines that aren't visible yet.
    New(Span, &'c str),
}

impl Part<'_> {
    /// Returns the first of its lines.
    pub(super) fn first(&self) -> usize {
        match self {
            Self::Known(KnownLines { ours: lines, .. }) | Self::New(lines, _) => lines.first,
        }
    }
}

/// Introduces a diff.
pub(super) fn diff(snapshot: &Snapshot, checksum: Checksum, base: &Place, diff: &str) -> String {
    let (uri, old, new) = (
        one_line(&snapshot.uri),
        base.checksum.short(),
        checksum.short(),
    );
    let block = fence_block(Some("diff"), diff);
    format!(
        "{uri} has changed. These are the changes from the version {base}, sha256 {old}, to sha256 {new}:\n{block}"
    )
}

/// Replaces outdated content and names the place of the newer one, if there is one.
pub(super) fn tombstone(snapshot: &Snapshot, newer: Option<&Place>) -> String {
    let (uri, old) = (
        one_line(&snapshot.uri),
        snapshot.blob_ref().checksum.short(),
    );
    match newer {
        Some(newer) if newer.checksum == snapshot.blob_ref().checksum => {
            format!("{uri}, sha256 {old}, is left out here: the same content is {newer}.")
        }
        Some(newer) => {
            let new = newer.checksum.short();
            format!(
                "{uri}, sha256 {old}, is left out here: a newer version, sha256 {new}, is {newer}."
            )
        }
        None => format!("{uri}, sha256 {old}, is left out here: it is outdated."),
    }
}

/// Begins a sentence about lines.
fn are(lines: Span) -> String {
    if lines.first == lines.last {
        format!("Line {} is", lines.first)
    } else {
        format!("Lines {}-{} are", lines.first, lines.last)
    }
}

fn fence_block(language: Option<&str>, content: &str) -> String {
    let fence = mime::fence_for(content);
    let newline = if content.is_empty() || content.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!(
        "{fence}{}\n{content}{newline}{fence}\n",
        language.unwrap_or_default()
    )
}
