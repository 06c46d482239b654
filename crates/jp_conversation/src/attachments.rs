//! The attachments that were delivered to a model, and the declarations that gave them.

use std::collections::HashMap;

use jp_resource::Snapshot;

use crate::{Declaration, Delivered, EventKind, Stream};

/// A snapshot with its turn; 0 if no message has taken it yet.
pub type Taken<'a> = (usize, &'a Snapshot);

/// Returns the newest snapshots of each declaration, in the order in which its contents first came.
pub fn newest_by_declaration(stream: &Stream) -> HashMap<&Declaration, Vec<Taken<'_>>> {
    let mut newest: HashMap<&Declaration, Vec<Option<Taken<'_>>>> = HashMap::new();
    let mut places = HashMap::new();
    for (turn, resources, delivered) in deliveries(stream) {
        for delivered in delivered {
            let given = newest.entry(&delivered.declaration).or_default();
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for snapshot in delivered
                .resources
                .iter()
                .filter_map(|index| resources.get(*index))
            {
                // Contents of one resource of an MCP server may share a URI; their order tells them apart.
                let count = counts
                    .entry(&snapshot.uri)
                    .and_modify(|count| *count += 1)
                    .or_default();
                let place = *places
                    .entry((&delivered.declaration, snapshot.uri.as_str(), *count))
                    .or_insert_with(|| given.len());
                match given.get_mut(place) {
                    Some(known) => *known = Some((turn, snapshot)),
                    None => given.push(Some((turn, snapshot))),
                }
            }
            // Where there are fewer contents than there were, the last are gone.
            for (uri, last) in counts {
                let gone = (last + 1..)
                    .map_while(|count| places.get(&(&delivered.declaration, uri, count)));
                gone.for_each(|place| given[*place] = None);
            }
        }
    }
    newest
        .into_iter()
        .map(|(declaration, given)| (declaration, given.into_iter().flatten().collect()))
        .collect()
}

/// A turn, the snapshots it delivered and the declarations that gave them.
pub type AttachedTurn<'a> = (usize, &'a [Snapshot], &'a [Delivered]);

/// Returns the deliveries, oldest first, and the snapshots taken by hand since, with turn 0.
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
