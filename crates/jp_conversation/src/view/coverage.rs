//! The content of resources that is visible in a request so far.

use std::{
    cell::OnceCell,
    collections::VecDeque,
    ops::{Deref, Range},
    sync::Arc,
};

use hashbrown::HashMap;
use jp_resource::{BlobRef, Checksum, Encoding, Payload, ResourceContent, Snapshot, uri};
use serde_json::{Map, Value};

use super::{
    Delivery, KnownLines, Message, Place, Policy, Shown, Texts, WhyFull,
    candidate::{Candidate, is_text},
    diff,
    lines::{self, Span},
    runs::{self, Hasher, LineTable, Run},
    size::{content_bytes, resource_bytes},
    words::{self, Stands},
};

/// The most visible pieces of one file that are compared, the newest first. Each costs a table of lines.
const MOST_PIECES: usize = 16;
/// The fewest bytes of lines that become a reference. The reference is about as long.
const LEAST_KNOWN: usize = 200;
/// The largest share of the whole that a diff or a list of new lines may have. A longer one saves little and is
/// harder to read than the whole.
const WORTHWHILE: f64 = 0.6;
/// The most turns between a call and its repetition. Within them, the model repeats it because it didn't find the
/// referenced content.
const REPEATED_WITHIN: usize = 2;

/// The content of resources that is visible so far.
#[derive(Default)]
pub(super) struct Coverage {
    /// The number of the model's answers so far.
    round: usize,
    /// The number of each URI, which takes less room than the URI.
    uris: HashMap<String, UriNumber>,
    /// The visible pieces of each file, oldest first, by its URI without a fragment.
    files: HashMap<UriNumber, VecDeque<Piece>>,
    /// The versions by whole URI.
    versions: HashMap<(UriNumber, Checksum), VisibleVersion>,
    /// The newest version from a server, by whole URI.
    newest: HashMap<(UriNumber, Option<String>), Checksum>,
    hasher: Hasher,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct UriNumber(usize);

/// Lines that are visible unchanged.
struct Piece {
    place: Place,
    server: Option<String>,
    /// The number of the first visible line.
    first: usize,
    /// The visible bytes of the content; `None` means all.
    part: Option<Range<usize>>,
    /// Its lines, computed at the first comparison; `None` if they can't be read.
    table: OnceCell<Option<LineTable>>,
}

/// One version of one URI.
#[derive(Default)]
struct VisibleVersion {
    /// The place of its content.
    seen: Option<Seen>,
    /// The calls whose result was a reference to it.
    referred: Vec<ReferredCall>,
}

/// A call whose result was a reference, with its later repetitions.
///
/// Repetitions with at most [`REPEATED_WITHIN`] turns between them belong together. They receive the content once:
/// a model that asks again after that waits for a change, so "has not changed" is the right answer.
struct ReferredCall {
    /// The message of the last repetition.
    message: usize,
    turn: usize,
    /// The round of the reference.
    round: usize,
    /// True if the content was sent because the call was repeated.
    is_sent: bool,
}

struct Seen {
    place: Place,
    /// The turn of the oldest content that it builds on.
    oldest: usize,
    shown: Option<Shown>,
    stands: Stands,
}

/// The readable request so far.
pub(super) struct Visible<'m, 'a, 't> {
    pub(super) messages: &'m [Message<'a>],
    pub(super) texts: &'t mut dyn Texts,
}

/// A text in a message or from the store.
enum Text<'m> {
    Borrowed(&'m str),
    Shared(Arc<str>),
}

/// A delivery that is shorter than the whole, with the text that replaces the content.
type Shorter = (Delivery, String);

impl Coverage {
    /// Notes an answer of the model. The model's later calls know everything before it.
    pub(super) fn end_round(&mut self) {
        self.round += 1;
    }

    /// Decides the delivery of a resource and adds it to the visible content. Also returns the text that replaces
    /// its content, if any.
    pub(super) fn take(
        &mut self,
        candidate: &Candidate<'_>,
        policy: &Policy,
        visible: &mut Visible<'_, '_, '_>,
    ) -> (Delivery, Option<String>) {
        if !policy.is_enabled {
            return (Delivery::Full(WhyFull::SwitchedOff), None);
        }
        // Decide first, because a resource must not refer to itself.
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
        // The order of these checks decides the reason that `--explain` shows.
        if !candidate.is_covered {
            return Err(WhyFull::SwitchedOff);
        }
        if size < policy.min_bytes {
            return Err(WhyFull::Small);
        }
        // A reference is always shorter than a diff, so it is tried first.
        let shorter = match self.reference(candidate, policy, visible.messages)? {
            Some(reference) => reference,
            None => self.compare(candidate, policy, visible)?,
        };
        if (shorter.1.len() as u64) < candidate.shown_bytes() {
            Ok(shorter)
        } else {
            Err(WhyFull::NotShorter)
        }
    }

    /// Refers to the same content; `None` if none is visible.
    fn reference(
        &self,
        candidate: &Candidate<'_>,
        policy: &Policy,
        messages: &[Message<'_>],
    ) -> Result<Option<Shorter>, WhyFull> {
        let Some(uri) = self.uris.get(&candidate.snapshot.uri) else {
            return Ok(None);
        };
        let Some(version) = self.versions.get(&(*uri, candidate.place.checksum)) else {
            return Ok(None);
        };
        let repeated = version
            .referred
            .iter()
            .find(|call| call.is_repeated_by(candidate, messages));
        // After a reference, the model asks again because it did not find the content.
        if repeated.is_some_and(|call| call.round < self.round && !call.is_sent) {
            return Err(WhyFull::AskedAgain);
        }
        let Some(seen) = &version.seen else {
            return Ok(None);
        };
        // A cut text can't replace one that would be whole or cut at another place.
        if seen.shown.is_some() && seen.shown != candidate.shown {
            return Ok(None);
        }
        if !is_near(seen.oldest, candidate, policy) {
            return Ok(None);
        }
        let newest = self.newest.get(&(*uri, candidate.server.clone()));
        // Another version came in between, so "has not changed" would be wrong.
        let is_back = newest.is_some_and(|newest| *newest != candidate.place.checksum);
        let text = words::reference(candidate.snapshot, &seen.place, &seen.stands, is_back);
        Ok(Some((
            Delivery::Reference {
                at: seen.place.clone(),
            },
            text,
        )))
    }

    /// Refers to visible lines, or describes the changes.
    fn compare(
        &self,
        candidate: &Candidate<'_>,
        policy: &Policy,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Result<Shorter, WhyFull> {
        let near = self.near(candidate, policy)?;
        let (_, fragment) = uri::split_fragment(&candidate.snapshot.uri);
        let first = match fragment.map(Span::from_fragment) {
            None => 1,
            Some(Some(span)) => span.first,
            Some(None) => return Err(WhyFull::New),
        };
        let Some(content) = candidate.lines(visible) else {
            return Err(WhyFull::New);
        };
        let (table, ours) = (
            self.hasher.table(&content),
            Span::from_text(&content, first),
        );
        let compared = Compared {
            candidate,
            content: &content,
            table,
            ours,
            near,
            policy,
        };
        if fragment.is_some() {
            // Without a diff, because lines that left the range still exist in the file.
            return self.refer_to_parts(&compared, visible);
        }
        match self.diff(&compared, visible) {
            // After so many changes since the whole version, the new content is easier to read.
            Err(why) if why != WhyFull::ChangedMuch => self
                .refer_to_parts(&compared, visible)
                .map_err(|few| if why == WhyFull::New { few } else { why }),
            changed => changed,
        }
    }

    /// Returns the visible lines of the same file that are not too far back, the newest first. Fails if there are
    /// none.
    fn near(&self, candidate: &Candidate<'_>, policy: &Policy) -> Result<Vec<&Piece>, WhyFull> {
        let (file, _) = uri::split_fragment(&candidate.snapshot.uri);
        let pieces = self.uris.get(file).and_then(|file| self.files.get(file));
        let pieces = pieces.into_iter().flat_map(|pieces| pieces.iter().rev());
        let of_server: Vec<&Piece> = pieces
            .filter(|piece| piece.server == candidate.server)
            .collect();
        let why = if of_server.is_empty() {
            WhyFull::New
        } else {
            WhyFull::TooFarBack
        };
        let near = of_server
            .into_iter()
            .filter(|piece| is_near(piece.place.turn, candidate, policy));
        let near: Vec<&Piece> = near.collect();
        if near.is_empty() { Err(why) } else { Ok(near) }
    }

    /// Describes the changes since the newest visible version, if all of it is visible.
    fn diff(
        &self,
        compared: &Compared<'_, '_>,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Result<Shorter, WhyFull> {
        let candidate = compared.candidate;
        let newest = self.newest(&candidate.snapshot.uri, &candidate.server);
        // Contents of one MCP resource may share a URI. They aren't versions of each other.
        let newest = newest.filter(|newest| newest.place.message != candidate.place.message);
        let newest = newest.ok_or(WhyFull::New)?;
        let can_build = compared.policy.diffs && matches!(newest.stands, Stands::Lines);
        let piece = compared
            .near
            .iter()
            .find(|piece| can_build && piece.place == newest.place)
            .ok_or(WhyFull::Changed)?;
        let most = (compared.content.len() as f64 * WORTHWHILE) as usize;
        let table = self.table(piece, visible).ok_or(WhyFull::Changed)?;
        // A lower bound of the diff's length that needs no diff.
        if compared.table.different_bytes(table) > most {
            return Err(WhyFull::ChangedMuch);
        }
        let base = visible.piece(piece).ok_or(WhyFull::Changed)?;
        let text = diff::unified_diff(&base, compared.content, most);
        let checksum = candidate.place.checksum;
        let text = text.map(|text| words::diff(candidate.snapshot, checksum, &newest.place, &text));
        let text = text
            .filter(|text| text.len() < most)
            .ok_or(WhyFull::ChangedMuch)?;
        Ok((
            Delivery::Diff {
                base: newest.place.clone(),
            },
            text,
        ))
    }

    /// Refers to the visible lines among these, if there are few others.
    fn refer_to_parts(
        &self,
        compared: &Compared<'_, '_>,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Result<Shorter, WhyFull> {
        if !compared.policy.ranges {
            return Err(WhyFull::SwitchedOff);
        }
        let (content, snapshot) = (compared.content, compared.candidate.snapshot);
        let known = self.find_known(compared, visible);
        let text = match known.as_slice() {
            [] => return Err(WhyFull::FewLines),
            [known] if known.ours == compared.ours => words::lines(snapshot, known),
            known => {
                let new =
                    rest(content, compared.ours.first, known)
                        .into_iter()
                        .map(|(first, part)| {
                            words::Part::New(
                                Span::from_text(&content[part.clone()], first),
                                &content[part],
                            )
                        });
                let mut parts: Vec<_> = known.iter().map(words::Part::Known).chain(new).collect();
                parts.sort_by_key(words::Part::first);
                words::parts(snapshot, &parts)
            }
        };
        let is_worthwhile = (text.len() as f64) < content.len() as f64 * WORTHWHILE;
        if is_worthwhile {
            Ok((Delivery::Lines { known }, text))
        } else {
            Err(WhyFull::FewLines)
        }
    }

    /// Finds the lines that are visible somewhere.
    fn find_known(
        &self,
        compared: &Compared<'_, '_>,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Vec<KnownLines> {
        let mut texts: Vec<(&Piece, &LineTable)> = Vec::new();
        for piece in &compared.near {
            let Some(table) = self.table(piece, visible) else {
                continue;
            };
            if let Some(theirs) = table.find_all(&compared.table) {
                let run = Run {
                    ours: 0..compared.table.len(),
                    text: 0,
                    theirs,
                };
                if let Some(all) = compared.verify(run, &[(*piece, table)], visible) {
                    return vec![all];
                }
            }
            texts.push((*piece, table));
        }
        let tables: Vec<&LineTable> = texts.iter().map(|(_, table)| *table).collect();
        let least = usize::try_from(compared.policy.min_bytes)
            .unwrap_or(usize::MAX)
            .max(LEAST_KNOWN);
        let runs = runs::find(&compared.table, &tables, least.min(compared.content.len()));
        runs.into_iter()
            .filter_map(|run| compared.verify(run, &texts, visible))
            .collect()
    }

    fn table<'p>(
        &self,
        piece: &'p Piece,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Option<&'p LineTable> {
        piece
            .table
            .get_or_init(|| visible.piece(piece).map(|text| self.hasher.table(&text)))
            .as_ref()
    }

    /// Returns the newest version of a URI from a server, if its content is visible.
    fn newest(&self, uri: &str, server: &Option<String>) -> Option<&Seen> {
        let uri = *self.uris.get(uri)?;
        let newest = *self.newest.get(&(uri, server.clone()))?;
        self.versions.get(&(uri, newest))?.seen.as_ref()
    }

    fn add(
        &mut self,
        candidate: &Candidate<'_>,
        delivery: &Delivery,
        visible: &mut Visible<'_, '_, '_>,
    ) {
        let (file, _) = uri::split_fragment(&candidate.snapshot.uri);
        let new = candidate.new_lines(delivery, visible);
        let has_new = !new.is_empty();
        let file = self.number(file);
        for (first, part) in new {
            // Most files occur once.
            let pieces = self
                .files
                .entry(file)
                .or_insert_with(|| VecDeque::with_capacity(1));
            let (place, server) = (candidate.place.clone(), candidate.server.clone());
            pieces.push_back(Piece {
                place,
                server,
                first,
                part,
                table: OnceCell::new(),
            });
            // The oldest is dropped, because it is the first to be too far back.
            if pieces.len() > MOST_PIECES {
                pieces.pop_front();
            }
        }
        let uri = self.number(&candidate.snapshot.uri);
        let version = self
            .versions
            .entry((uri, candidate.place.checksum))
            .or_default();
        let stands = match delivery {
            Delivery::Full(_) if has_new => Some(Stands::Lines),
            Delivery::Full(_) => Some(Stands::Otherwise),
            Delivery::Diff { base } => Some(Stands::Diff(Box::new(base.clone()))),
            Delivery::Lines { .. } if has_new => Some(Stands::Parts),
            _ => None,
        };
        match stands {
            Some(stands) => {
                let place = candidate.place.clone();
                let oldest = delivery
                    .places()
                    .map(|place| place.turn)
                    .min()
                    .unwrap_or(place.turn);
                let seen = Seen {
                    place,
                    oldest,
                    shown: candidate.shown,
                    stands,
                };
                // The content is visible here again, so earlier calls no longer matter.
                *version = VisibleVersion {
                    seen: Some(seen),
                    referred: Vec::new(),
                };
                // Mark the call as sent, so that a third repetition gets a reference.
                if *delivery == Delivery::Full(WhyFull::AskedAgain) {
                    version
                        .referred
                        .push(ReferredCall::new(candidate, self.round, true));
                }
            }
            None => version.refer(candidate, self.round, visible.messages),
        }
        self.newest
            .insert((uri, candidate.server.clone()), candidate.place.checksum);
    }

    /// Returns the number of a URI. A new URI gets the next number.
    fn number(&mut self, uri: &str) -> UriNumber {
        let next = UriNumber(self.uris.len());
        *self.uris.entry_ref(uri).or_insert(next)
    }
}

impl VisibleVersion {
    /// Records a call whose result is a reference. Attachments have no call.
    fn refer(&mut self, candidate: &Candidate<'_>, round: usize, messages: &[Message<'_>]) {
        if candidate.place.call.is_none() {
            return;
        }
        let new = ReferredCall::new(candidate, round, false);
        match self
            .referred
            .iter_mut()
            .find(|call| call.is_repeated_by(candidate, messages))
        {
            Some(call) => (call.message, call.turn) = (new.message, new.turn),
            None => {
                self.referred.retain(|call| call.is_recent(candidate));
                self.referred.push(new);
            }
        }
    }
}

impl ReferredCall {
    fn new(candidate: &Candidate<'_>, round: usize, is_sent: bool) -> Self {
        let Place { message, turn, .. } = candidate.place;
        Self {
            message,
            turn,
            round,
            is_sent,
        }
    }

    fn is_recent(&self, candidate: &Candidate<'_>) -> bool {
        candidate.place.turn.saturating_sub(self.turn) <= REPEATED_WITHIN
    }

    /// Returns true if a candidate is the result of the same call: the same tool with the same arguments.
    fn is_repeated_by(&self, candidate: &Candidate<'_>, messages: &[Message<'_>]) -> bool {
        let asked = tool_and_arguments(&messages[candidate.place.message]);
        self.is_recent(candidate)
            && asked.is_some()
            && asked == tool_and_arguments(&messages[self.message])
    }
}

fn tool_and_arguments<'m>(
    message: &'m Message<'_>,
) -> Option<(&'m String, &'m Map<String, Value>)> {
    match message {
        Message::Tool { call, .. } => Some((&call.name, &call.arguments)),
        _ => None,
    }
}

/// Returns the parts of a content that are not among `known`: the number of the first line of each, and its bytes.
/// `first` is the number of the content's first line.
fn rest(content: &str, first: usize, known: &[KnownLines]) -> Vec<(usize, Range<usize>)> {
    let starts = lines::starts(content);
    let last = starts.len() - 1;
    let mut rest = Vec::new();
    let mut next = first;
    let end = Span {
        first: first + last,
        last: 0,
    };
    for span in known.iter().map(|known| known.ours).chain([end]) {
        if next < span.first {
            let start = starts[(next - first).min(last)];
            rest.push((next, start..starts[(span.first - first).min(last)]));
        }
        next = span.last + 1;
    }
    rest
}

fn is_near(turn: usize, candidate: &Candidate<'_>, policy: &Policy) -> bool {
    candidate.place.turn - turn <= policy.lookback_turns
}

/// Content that is compared with the visible lines.
struct Compared<'c, 'm> {
    candidate: &'c Candidate<'m>,
    content: &'c str,
    table: LineTable,
    ours: Span,
    /// The visible lines of the same file, the newest first.
    near: Vec<&'c Piece>,
    policy: &'c Policy,
}

impl Compared<'_, '_> {
    /// Describes the lines of a run. Equal hashes are most likely equal lines, but a reference needs certainty.
    fn verify(
        &self,
        run: Run,
        texts: &[(&Piece, &LineTable)],
        visible: &mut Visible<'_, '_, '_>,
    ) -> Option<KnownLines> {
        let (piece, table) = texts[run.text];
        let theirs = run.theirs..run.theirs + run.ours.len();
        let text = visible.piece(piece)?;
        let is_same =
            text.get(table.bytes(&theirs)) == self.content.get(self.table.bytes(&run.ours));
        is_same.then(|| KnownLines {
            ours: Span::from_indexes(self.ours.first, &run.ours),
            at: piece.place.clone(),
            theirs: Span::from_indexes(piece.first, &theirs),
        })
    }
}

impl<'m> Candidate<'m> {
    /// Returns its length in the form that the model would receive.
    fn shown_bytes(&self) -> u64 {
        let whole = resource_bytes(self.snapshot);
        self.shown.map_or(whole, |shown| {
            whole.min((shown.head as u64).saturating_add(shown.tail as u64))
        })
    }

    /// Returns true if its content is shown as unchanged lines.
    fn has_lines(&self) -> bool {
        self.shown.is_none() && self.snapshot.formatted.is_none() && is_text(self.snapshot)
    }

    /// Returns the parts that it makes visible: the number of the first line of each, and its bytes if it isn't all.
    fn new_lines(
        &self,
        delivery: &Delivery,
        visible: &mut Visible<'_, '_, '_>,
    ) -> Vec<(usize, Option<Range<usize>>)> {
        let (_, fragment) = uri::split_fragment(&self.snapshot.uri);
        let span = fragment.map(Span::from_fragment);
        let first = span.flatten().map_or(1, |span| span.first);
        match delivery {
            Delivery::Full(_) if self.has_lines() && span != Some(None) => vec![(first, None)],
            Delivery::Lines { known } => {
                let content = self.lines(visible);
                let rest = content
                    .map(|content| rest(&content, first, known))
                    .unwrap_or_default();
                rest.into_iter()
                    .map(|(first, part)| (first, Some(part)))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns its content if it is shown unchanged.
    fn lines(&self, visible: &mut Visible<'_, '_, '_>) -> Option<Text<'m>> {
        if self.has_lines() {
            visible.content(self.snapshot)
        } else {
            None
        }
    }
}

impl<'m> Visible<'m, '_, '_> {
    fn content<'s>(&mut self, snapshot: &'s Snapshot) -> Option<Text<'s>> {
        match &snapshot.content {
            Payload::Inline(ResourceContent::Text(text)) => Some(Text::Borrowed(text)),
            Payload::Inline(ResourceContent::Blob(_))
            | Payload::Stored(BlobRef {
                encoding: Encoding::Binary,
                ..
            }) => None,
            Payload::Stored(blob) => self.texts.text(blob).map(Text::Shared),
        }
    }

    /// Returns the lines of a piece.
    fn piece(&mut self, piece: &Piece) -> Option<TextPart<'m>> {
        let messages = self.messages;
        let snapshot = messages[piece.place.message].resource(piece.place.block)?;
        let text = self.content(snapshot)?;
        let part = piece.part.clone().unwrap_or(0..text.len());
        Some(TextPart { text, part })
    }
}

/// A part of a text.
struct TextPart<'m> {
    text: Text<'m>,
    part: Range<usize>,
}

impl Deref for TextPart<'_> {
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
