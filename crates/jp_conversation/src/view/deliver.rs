//! Chooses the delivery of each block of a thread, from the blocks before it in the same request.

use jp_resource::Payload;
use jp_tool::ContentBlock;

use super::{
    Delivery, Message, Place, Policy, Shown, Texts,
    candidate::{find_candidate, servers_of_attachments},
    coverage::{Coverage, Visible},
    superseded::{Dropped, Form},
    words,
};

/// Delivers each resource of a thread, oldest first. `events` has the index of each message's event.
pub(super) fn deliver_resources(
    messages: &mut [Message<'_>],
    events: &[usize],
    dropped: &Dropped,
    policy: &Policy,
    texts: &mut dyn Texts,
) {
    let mut coverage = Coverage::default();
    let mut tombstones = Vec::new();
    for message in 0..messages.len() {
        if matches!(messages[message], Message::Assistant { .. }) {
            coverage.end_round();
        }
        let servers = servers_of_attachments(&messages[message]);
        for block in 0..messages[message].deliveries().len() {
            let Some(candidate) = find_candidate(messages, message, block, &servers, policy) else {
                continue;
            };
            if let Some(newer) = dropped.newer(&candidate, events[message]) {
                // Written below, when the delivery of the newer versions is known.
                tombstones.push(((message, block), newer));
                continue;
            }
            let mut visible = Visible {
                messages,
                texts: &mut *texts,
            };
            let (delivery, text) = coverage.take(&candidate, policy, &mut visible);
            place(&mut messages[message], block, delivery, text);
        }
    }
    for ((message, block), newer) in tombstones {
        leave_out(messages, message, block, &newer);
    }
}

/// Replaces a snapshot with a line that names the first newer one that is fully visible.
fn leave_out(messages: &mut [Message<'_>], message: usize, block: usize, newer: &[(usize, usize)]) {
    let Some(snapshot) = messages[message].resource(block) else {
        return;
    };
    let older = Form::from_snapshot(snapshot);
    let newer = find_replacement(messages, newer, &older);
    let text = words::tombstone(snapshot, newer.as_ref());
    place(
        &mut messages[message],
        block,
        Delivery::Tombstone { newer },
        Some(text),
    );
}

/// Finds the first newer version that can replace an older one in this form.
fn find_replacement(
    messages: &[Message<'_>],
    newer: &[(usize, usize)],
    older: &Form,
) -> Option<Place> {
    // If equal content only exists in another form, the snapshot itself was a reference to that form.
    let mut in_other_form = None;
    for (message, block) in newer {
        match whole(messages, *message, *block) {
            Some((place, form)) if form.replaces(older) => return Some(place),
            Some((place, _)) => _ = in_other_form.get_or_insert(place),
            None => {}
        }
    }
    in_other_form
}

/// Returns the place and the form in which all of a resource is visible: its own place, or the target of its reference.
fn whole(messages: &[Message<'_>], message: usize, block: usize) -> Option<(Place, Form)> {
    let there = Place::find(messages, message, block)?;
    let place = match delivery_at(messages, &there) {
        Delivery::Reference { at } => at.clone(),
        _ => there,
    };
    let shown = match &messages[place.message] {
        Message::Tool {
            response: Some(response),
            ..
        } => Shown::read_mark(&response.content[place.block]),
        _ => None,
    };
    let form = Form::from_delivery(
        messages[place.message].resource(place.block)?,
        delivery_at(messages, &place),
    );
    shown.is_none().then_some((place, form))
}

fn delivery_at<'m>(messages: &'m [Message<'_>], place: &Place) -> &'m Delivery {
    &messages[place.message].deliveries()[place.block]
}

/// Sets the delivery of a resource, and replaces its content with a text if there is one.
fn place(message: &mut Message<'_>, block: usize, delivery: Delivery, text: Option<String>) {
    let formatted = text.map(|text| Some(Payload::Inline(text)));
    match message {
        Message::User {
            request,
            deliveries,
            ..
        } => {
            deliveries[block] = delivery;
            if let Some(formatted) = formatted {
                request.to_mut().resources[block].formatted = formatted;
            }
        }
        Message::Tool {
            response: Some(response),
            deliveries,
            ..
        } => {
            deliveries[block] = delivery;
            if let Some(formatted) = formatted {
                let block = &mut response.to_mut().content[block];
                // The text replaces the content, so the mark for cutting it no longer applies.
                Shown::mark(None, block);
                if let ContentBlock::Resource { resource, .. } = block {
                    resource.formatted = formatted;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
