//! What of each resource is visible in a request so far.

use std::{
    collections::{HashMap, VecDeque},
    ops::{Deref, Range},
    sync::Arc,
};

use jp_resource::{BlobRef, Checksum, Encoding, Payload, ResourceContent, Snapshot, uri};

use super::{
    Delivery, KnownLines, Message, Place, Policy, Shown, Texts, WhyFull, diff,
    hints::content_bytes,
    lines::{self, Span},
    runs, words,
};

/// So many visible parts of one file are looked at, the newest first.
const MOST_PIECES: usize = 16;
/// So much text is searched for the lines of one block.
const MOST_SEARCHED: usize = 4 << 20;
/// Fewer bytes of lines are not referred to: what names them is about as long.
const LEAST_KNOWN: usize = 200;
/// A diff, or the lines that are not known, are sent where they are less than this part of the whole.
const WORTHWHILE: f64 = 0.6;

/// A resource on its way into the request.
pub(super) struct Candidate<'m> {
    pub(super) snapshot: &'m Snapshot,
    /// Where it will stand.
    pub(super) place: Place,
    /// The MCP server it is from.
    pub(super) server: Option<&'m str>,
    /// How much of it is shown, if not all.
    pub(super) shown: Option<Shown>,
    /// Whether it may be a reference.
    pub(super) is_covered: bool,
}

/// What of each resource is visible so far.
#[derive(Default)]
pub(super) struct Coverage {
    /// How often the model has answered.
    round: usize,
    /// By URI without its fragment.
    files: HashMap<String, File>,
    /// By whole URI.
    versions: HashMap<String, Versions>,
}

/// The visible parts of a file.
#[derive(Default)]
struct File {
    /// What is delivered as it is, oldest first.
    pieces: VecDeque<Piece>,
}

/// Lines that are visible as they are.
struct Piece {
    place: Place,
    server: Option<String>,
    /// The number of the first visible line.
    first: usize,
    /// The bytes of the content that are visible; all of them where that is not said.
    part: Option<Range<usize>>,
}

/// The versions of one URI.
#[derive(Default)]
struct Versions {
    by_checksum: HashMap<Checksum, Version>,
    /// By the server that they are from.
    newest: HashMap<Option<String>, Checksum>,
}

/// One version of one URI.
#[derive(Default)]
struct Version {
    /// Where its content stands.
    seen: Option<Seen>,
    /// In which round it was answered with a reference.
    answered: Option<usize>,
}

struct Seen {
    place: Place,
    /// The turn of the oldest content that it takes to know it.
    oldest: usize,
    shown: Option<Shown>,
    stands: Stands,
}

/// How content stands in the request.
#[derive(Clone)]
pub(super) enum Stands {
    /// Whole, as lines that a diff can build on.
    Lines,
    /// Whole, as something else.
    Otherwise,
    /// As what changed from the version that stands there.
    Diff(Place),
    /// As references to lines, and the others.
    Parts,
}

/// What stands in the request so far, to be read.
pub(super) struct Visible<'m, 'a, 't> {
    pub(super) messages: &'m [Message<'a>],
    pub(super) texts: &'t mut dyn Texts,
}

/// A text that is in a message or was read.
enum Text<'m> {
    Borrowed(&'m str),
    Shared(Arc<str>),
}

/// A delivery that is shorter than the whole: how, and what stands there.
type Shorter = (Delivery, String);

impl Coverage {
    /// Says that the model has answered: what it asks for from here on it asks knowing what came before.
    pub(super) fn end_round(&mut self) {
        self.round += 1;
    }

    /// Decides how a resource is delivered, and takes it into what is visible. Returns the text that stands in its
    /// place, where that is not its content.
    pub(super) fn take(
        &mut self,
        candidate: &Candidate<'_>,
        policy: &Policy,
        visible: &mut Visible<'_, '_, '_>,
    ) -> (Delivery, Option<String>) {
        if !policy.is_enabled {
            return (Delivery::Full(WhyFull::SwitchedOff), None);
        }
        let (delivery, text) = match self.shorter(candidate, policy, visible) {
            Ok((delivery, text)) => (delivery, Some(text)),
            Err(why) => (Delivery::Full(why), None),
        };
        self.add(candidate, &delivery, visible);
        (delivery, text)
    }

    fn shorter(
        &self,
        candidate: &Candidate<'_>,
        policy: &Policy,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Result<Shorter, WhyFull> {
        let snapshot = candidate.snapshot;
        let size = content_bytes(snapshot);
        if !candidate.is_covered {
            return Err(WhyFull::SwitchedOff);
        }
        if size < policy.min_bytes {
            return Err(WhyFull::Small);
        }
        let shorter = match self.reference(candidate, policy)? {
            Some(reference) => reference,
            None => self.compared(candidate, policy, visible)?,
        };
        if (shorter.1.len() as u64) < size { Ok(shorter) } else { Err(WhyFull::NotShorter) }
    }

    /// Refers to the same content; `None` where none is visible.
    fn reference(&self, candidate: &Candidate<'_>, policy: &Policy) -> Result<Option<Shorter>, WhyFull> {
        let Some(versions) = self.versions.get(&candidate.snapshot.uri) else { return Ok(None) };
        let Some(version) = versions.by_checksum.get(&candidate.place.checksum) else { return Ok(None) };
        if version.answered.is_some_and(|round| round < self.round) {
            return Err(WhyFull::AskedAgain);
        }
        let shows_as_much = |seen: &&Seen| seen.shown.is_none() || seen.shown == candidate.shown;
        let Some(seen) = version.seen.as_ref().filter(shows_as_much) else { return Ok(None) };
        if !is_near(seen.oldest, candidate, policy) {
            return Ok(None);
        }
        let newest = versions.newest.get(&candidate.server.map(str::to_owned));
        let is_back = newest.is_some_and(|newest| *newest != candidate.place.checksum);
        let text = words::reference(candidate.snapshot, &seen.place, &seen.stands, is_back);
        Ok(Some((Delivery::Reference { at: seen.place.clone() }, text)))
    }

    /// Refers to visible lines, or says what changed.
    fn compared(
        &self,
        candidate: &Candidate<'_>,
        policy: &Policy,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Result<Shorter, WhyFull> {
        let (place, fragment) = uri::split_fragment(&candidate.snapshot.uri);
        let pieces = self.files.get(place).map(|file| &file.pieces);
        let Some(pieces) = pieces.filter(|pieces| !pieces.is_empty()) else { return Err(WhyFull::New) };
        let is_same_server = |piece: &&Piece| piece.server.as_deref() == candidate.server;
        let mut is_far = false;
        let near = pieces.iter().rev().filter(is_same_server).filter(|piece| {
            let is_near = is_near(piece.place.turn, candidate, policy);
            is_far |= !is_near;
            is_near
        });
        let near: Vec<&Piece> = near.collect();
        if near.is_empty() {
            return Err(if is_far { WhyFull::TooFarBack } else { WhyFull::New });
        }
        let first = match fragment.map(Span::of_fragment) {
            None => 1,
            Some(Some(span)) => span.first,
            Some(None) => return Err(WhyFull::New),
        };
        let Some(content) = candidate.lines(visible) else { return Err(WhyFull::New) };
        let compared = Compared { candidate, content: &content, ours: Span::of_text(&content, first) };
        if policy.ranges
            && fragment.is_some()
            && let Some(lines) = compared.inside(&near, visible)
        {
            return Ok(lines);
        }
        self.changed(&compared, &near, policy, visible).or_else(|why| {
            // A file that changed so much since it stood whole is better read as it is now.
            let is_whole = fragment.is_none() && why == WhyFull::ChangedMuch;
            let parts =
                if policy.ranges && !is_whole { compared.parts(&near, policy, visible) } else { None };
            parts.ok_or(why)
        })
    }

    /// Says what changed since the newest visible version, if that is visible whole.
    fn changed(
        &self,
        compared: &Compared<'_, '_>,
        near: &[&Piece],
        policy: &Policy,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Result<Shorter, WhyFull> {
        let candidate = compared.candidate;
        let (file, _) = uri::split_fragment(&candidate.snapshot.uri);
        let of_uri = [candidate.snapshot.uri.as_str(), file].map(|uri| self.newest(uri, candidate.server));
        let newest = of_uri.into_iter().flatten().max_by_key(|seen| (seen.place.message, seen.place.block));
        let Some(newest) = newest else { return Err(WhyFull::New) };
        let can_build = policy.diffs && matches!(newest.stands, Stands::Lines);
        let piece = near.iter().find(|piece| can_build && piece.place == newest.place);
        let piece = piece.ok_or(WhyFull::Changed)?;
        let base = visible.piece(piece).ok_or(WhyFull::Changed)?;
        // Of another range of lines, or of the whole file, those that this one is of are the base.
        let is_same = self
            .newest(&candidate.snapshot.uri, candidate.server)
            .is_some_and(|same| same.place == newest.place);
        let (base, first) = match compared.ours.indexes(piece.first).filter(|_| !is_same) {
            None => (&*base, piece.first),
            Some(lines) => (lines::slice(&base, lines).ok_or(WhyFull::Changed)?, compared.ours.first),
        };
        // The same lines, where those are not referred to.
        if base == compared.content {
            return Err(WhyFull::SwitchedOff);
        }
        let most = (compared.content.len() as f64 * WORTHWHILE) as usize;
        let text = diff::unified(base, compared.content, first, compared.ours.first, most);
        let text =
            text.map(|text| words::diff(candidate.snapshot, candidate.place.checksum, &piece.place, &text));
        let text = text.filter(|text| text.len() < most).ok_or(WhyFull::ChangedMuch)?;
        Ok((Delivery::Diff { base: piece.place.clone() }, text))
    }

    /// Returns the newest version of a URI from a server, where its content is visible.
    fn newest(&self, uri: &str, server: Option<&str>) -> Option<&Seen> {
        let versions = self.versions.get(uri)?;
        let newest = versions.newest.get(&server.map(str::to_owned))?;
        versions.by_checksum.get(newest)?.seen.as_ref()
    }

    fn add(&mut self, candidate: &Candidate<'_>, delivery: &Delivery, visible: &mut Visible<'_, '_, '_>) {
        let (file, fragment) = uri::split_fragment(&candidate.snapshot.uri);
        let span = fragment.map(Span::of_fragment);
        let has_lines = candidate.has_lines() && span != Some(None);
        let first = span.flatten().map_or(1, |span| span.first);
        let new: Vec<(usize, Option<Range<usize>>)> = match delivery {
            Delivery::Full(_) if has_lines => vec![(first, None)],
            Delivery::Lines { known } => {
                let content = candidate.lines(visible);
                let rest = content.map(|content| rest(&content, first, known)).unwrap_or_default();
                rest.into_iter().map(|(first, part)| (first, Some(part))).collect()
            }
            _ => Vec::new(),
        };
        let has_new = !new.is_empty();
        for (first, part) in new {
            let pieces = &mut self.files.entry(file.to_owned()).or_default().pieces;
            let (place, server) = (candidate.place.clone(), candidate.server.map(str::to_owned));
            pieces.push_back(Piece { place, server, first, part });
            if pieces.len() > MOST_PIECES {
                pieces.pop_front();
            }
        }
        let versions = self.versions.entry(candidate.snapshot.uri.clone()).or_default();
        let version = versions.by_checksum.entry(candidate.place.checksum).or_default();
        let stands = match delivery {
            Delivery::Full(_) if has_lines => Some(Stands::Lines),
            Delivery::Full(_) => Some(Stands::Otherwise),
            Delivery::Diff { base } => Some(Stands::Diff(base.clone())),
            Delivery::Lines { .. } if has_new => Some(Stands::Parts),
            _ => None,
        };
        match stands {
            Some(stands) => {
                let place = candidate.place.clone();
                let oldest = delivery.places().map(|place| place.turn).min().unwrap_or(place.turn);
                let seen = Seen { place, oldest, shown: candidate.shown, stands };
                *version = Version { seen: Some(seen), answered: None };
            }
            None => _ = version.answered.get_or_insert(self.round),
        }
        versions.newest.insert(candidate.server.map(str::to_owned), candidate.place.checksum);
    }
}

/// Returns the lines beginning at `first` that are not among `known`: the first of each part, and its bytes.
fn rest(content: &str, first: usize, known: &[KnownLines]) -> Vec<(usize, Range<usize>)> {
    let mut starts: Vec<usize> = content
        .split_inclusive('\n')
        .scan(0, |at, line| {
            *at += line.len();
            Some(*at - line.len())
        })
        .collect();
    starts.push(content.len());
    let at = |line: usize| starts[(line - first).min(starts.len() - 1)];
    let mut rest = Vec::new();
    let mut next = first;
    let end = Span { first: first + starts.len() - 1, last: 0 };
    for span in known.iter().map(|known| known.ours).chain([end]) {
        if next < span.first {
            rest.push((next, at(next)..at(span.first)));
        }
        next = span.last + 1;
    }
    rest
}

fn is_near(turn: usize, candidate: &Candidate<'_>, policy: &Policy) -> bool {
    candidate.place.turn - turn <= policy.lookback_turns
}

/// Content that is compared with what is visible.
struct Compared<'c, 'm> {
    candidate: &'c Candidate<'m>,
    content: &'c str,
    ours: Span,
}

impl Compared<'_, '_> {
    /// Refers to visible lines that are these.
    fn inside(&self, pieces: &[&Piece], visible: &mut Visible<'_, '_, '_>) -> Option<Shorter> {
        let mut searched = 0;
        pieces.iter().find_map(|piece| {
            let text = visible.piece(piece)?;
            searched += text.len();
            if searched > MOST_SEARCHED {
                return None;
            }
            let index = lines::find(&text, self.content, self.ours.first.checked_sub(piece.first))?;
            let theirs = Span::of_text(self.content, piece.first + index);
            let text = words::lines(self.candidate.snapshot, self.ours, theirs, &piece.place);
            let known = vec![KnownLines { ours: self.ours, at: piece.place.clone(), theirs }];
            Some((Delivery::Lines { known }, text))
        })
    }

    /// Refers to visible lines among these, where little is left.
    fn parts(
        &self,
        pieces: &[&Piece],
        policy: &Policy,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Option<Shorter> {
        let pieces = pieces.iter().filter_map(|piece| Some((*piece, visible.piece(piece)?)));
        let (pieces, texts): (Vec<&Piece>, Vec<Part<'_>>) = pieces.unzip();
        let least = usize::try_from(policy.min_bytes).unwrap_or(usize::MAX).max(LEAST_KNOWN);
        let known = runs::find(self.content, &texts, least).into_iter().map(|run| {
            let piece = pieces[run.text];
            let span = |start: usize| Span { first: start, last: start + run.ours.len() - 1 };
            let (ours, theirs) = (span(self.ours.first + run.ours.start), span(piece.first + run.theirs));
            KnownLines { ours, at: piece.place.clone(), theirs }
        });
        let known: Vec<KnownLines> = known.collect();
        let new = rest(self.content, self.ours.first, &known).into_iter().map(|(first, part)| {
            let content = &self.content[part];
            words::Part::New(Span::of_text(content, first), content)
        });
        let mut parts: Vec<_> = known.iter().cloned().map(words::Part::Known).chain(new).collect();
        parts.sort_by_key(words::Part::first);
        let text = words::parts(self.candidate.snapshot, &parts);
        let is_worthwhile = !known.is_empty() && (text.len() as f64) < self.content.len() as f64 * WORTHWHILE;
        is_worthwhile.then_some((Delivery::Lines { known }, text))
    }
}

impl<'m> Candidate<'m> {
    /// Returns whether its content is shown as lines, as it is.
    fn has_lines(&self) -> bool {
        self.shown.is_none() && self.snapshot.formatted.is_none() && is_text(self.snapshot)
    }

    /// Returns its content, where that is shown as it is.
    fn lines(&self, visible: &mut Visible<'_, '_, '_>) -> Option<Text<'m>> {
        if self.has_lines() { visible.content(self.snapshot) } else { None }
    }
}

fn is_text(snapshot: &Snapshot) -> bool {
    match &snapshot.content {
        Payload::Inline(content) => content.as_text().is_some(),
        Payload::Stored(blob) => blob.encoding == Encoding::Utf8,
    }
}

impl<'m> Visible<'m, '_, '_> {
    fn content<'s>(&mut self, snapshot: &'s Snapshot) -> Option<Text<'s>> {
        match &snapshot.content {
            Payload::Inline(ResourceContent::Text(text)) => Some(Text::Borrowed(text)),
            Payload::Inline(ResourceContent::Blob(_))
            | Payload::Stored(BlobRef { encoding: Encoding::Binary, .. }) => None,
            Payload::Stored(blob) => self.texts.text(blob).map(Text::Shared),
        }
    }

    /// Returns the lines of a piece.
    fn piece(&mut self, piece: &Piece) -> Option<Part<'m>> {
        let messages = self.messages;
        let snapshot = messages[piece.place.message].resource(piece.place.block)?;
        let text = self.content(snapshot)?;
        let part = piece.part.clone().unwrap_or(0..text.len());
        Some(Part { text, part })
    }
}

/// A part of a text.
struct Part<'m> {
    text: Text<'m>,
    part: Range<usize>,
}

impl AsRef<str> for Part<'_> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Deref for Part<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.text.get(self.part.clone()).unwrap_or_default()
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}
