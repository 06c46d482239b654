//! Finds the delivered attachments and their declarations.

use std::collections::HashMap;

use jp_resource::Snapshot;

use crate::{Declaration, Delivered, EventKind, Stream};

/// A snapshot with its turn; 0 if no message has delivered it yet.
pub type Taken<'a> = (usize, &'a Snapshot);

/// Returns the newest snapshots of each declaration, in the order in which its contents first appeared.
pub fn newest_by_declaration(stream: &Stream) -> HashMap<&Declaration, Vec<Taken<'_>>> {
    let mut newest: HashMap<&Declaration, NewestContents<'_>> = HashMap::new();
    for (turn, resources, delivered) in deliveries(stream) {
        for delivered in delivered {
            let snapshots = delivered
                .resources
                .iter()
                .filter_map(|index| resources.get(*index));
            newest
                .entry(&delivered.declaration)
                .or_default()
                .update(turn, snapshots);
        }
    }
    newest
        .into_iter()
        .map(|(declaration, newest)| (declaration, newest.into_contents().collect()))
        .collect()
}

/// The newest contents of one declaration, each with the turn or event that has it.
#[derive(Default)]
pub(crate) struct NewestContents<'a> {
    contents: Vec<Option<(usize, &'a Snapshot)>>,
    /// The indexes of contents by URI and count. Contents of one MCP resource may share a URI, so only their
    /// order distinguishes them.
    places: HashMap<(&'a str, usize), usize>,
}

impl<'a> NewestContents<'a> {
    /// Replaces the contents of these snapshots' URIs. If a URI has fewer contents than before, its last ones
    /// are removed.
    pub(crate) fn update(&mut self, number: usize, snapshots: impl Iterator<Item = &'a Snapshot>) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for snapshot in snapshots {
            let uri = snapshot.uri.as_str();
            let count = counts.entry(uri).or_default();
            let next = self.contents.len();
            let place = *self.places.entry((uri, *count)).or_insert(next);
            if place == next {
                self.contents.push(None);
            }
            self.contents[place] = Some((number, snapshot));
            *count += 1;
        }
        for (uri, count) in counts {
            let removed = (count..).map_while(|count| self.places.get(&(uri, count)));
            removed.for_each(|place| self.contents[*place] = None);
        }
    }

    pub(crate) fn into_contents(self) -> impl Iterator<Item = (usize, &'a Snapshot)> {
        self.contents.into_iter().flatten()
    }
}

/// A turn with its delivered snapshots and their declarations.
pub type AttachedTurn<'a> = (usize, &'a [Snapshot], &'a [Delivered]);

/// Returns the deliveries, oldest first, and the snapshots that the user refreshed since, with turn 0.
pub fn deliveries(stream: &Stream) -> Vec<AttachedTurn<'_>> {
    let mut turn = 0;
    let mut deliveries: Vec<AttachedTurn<'_>> = Vec::new();
    for event in stream.events() {
        match &event.kind {
            EventKind::ChatRequest(request) => {
                turn += 1;
                deliveries.retain(|(turn, ..)| *turn > 0);
                deliveries.push((turn, &request.resources[..], &request.delivered[..]));
            }
            EventKind::ConfigDelta(delta) => {
                deliveries.push((0, &delta.resources[..], &delta.delivered[..]))
            }
            _ => {}
        }
    }
    deliveries
}
