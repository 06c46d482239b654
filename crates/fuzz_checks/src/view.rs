use jp_conversation::{
    Event, EventKind, Stream,
    view::{self, Delivery, Message, NoTexts, Policy, SupersededPolicy, Thread, deliver},
};
use jp_storage::events::parse::parse;

/// Builds what a model gets of `bytes` as an events file.
///
/// No history panics; what stands for content names other content that is in the same request; a longer history begins
/// with what the shorter one gives, but for what may change it.
pub fn view(bytes: &[u8]) {
    let Ok(parsed) = parse(bytes) else { return };
    let events: Vec<Event> = parsed
        .events
        .iter()
        .filter_map(|event| Event::from_json(event).ok())
        .collect();
    let stream = Stream::from_events(events);
    for superseded in [
        SupersededPolicy::WhenCold,
        SupersededPolicy::Always,
        SupersededPolicy::Keep,
    ] {
        for min_bytes in [0, 300] {
            let policy = Policy {
                superseded,
                min_bytes,
                superseded_min_tokens: 0,
                ..Policy::default()
            };
            let thread = deliver(&stream, &policy, &mut NoTexts);
            check_places(&thread);
            _ = view::explain(&thread);
            _ = view::find_superseded(&stream, &policy, &mut NoTexts);
        }
    }
    check_growth(&stream);
}

fn check_places(thread: &Thread<'_>) {
    for (index, message) in thread.messages.iter().enumerate() {
        for (block, delivery) in message.deliveries().iter().enumerate() {
            for place in delivery.places() {
                let is_newer = matches!(delivery, Delivery::Tombstone { .. });
                assert!(
                    is_newer || (place.message, place.block) < (index, block),
                    "{place:?}"
                );
                let there = &thread.messages[place.message];
                let content = &there.deliveries()[place.block];
                assert_eq!(there.turn(), place.turn);
                assert!(
                    !matches!(
                        content,
                        Delivery::Tombstone { .. } | Delivery::Reference { .. }
                    ),
                    "{content:?}"
                );
            }
        }
    }
}

/// Takes the history as it was at each message of the person.
fn check_growth(stream: &Stream) {
    let events = stream.events();
    let whole = deliver(stream, &Policy::default(), &mut NoTexts);
    let breaks =
        |kind: &EventKind| matches!(kind, EventKind::Superseded(_) | EventKind::Compaction(_));
    let last_break = events
        .iter()
        .rposition(|event| breaks(&event.kind))
        .unwrap_or_default();
    let requests =
        (0..events.len()).filter(|index| matches!(events[*index].kind, EventKind::ChatRequest(_)));
    for index in requests.filter(|index| *index > last_break).take(20) {
        let earlier = Stream::from_events(events[..=index].to_vec());
        let earlier = deliver(&earlier, &Policy::default(), &mut NoTexts);
        let same = |(left, right): (&Message<'_>, &Message<'_>)| left == right;
        assert!(earlier.messages.iter().zip(&whole.messages).all(same));
        assert!(earlier.messages.len() <= whole.messages.len());
    }
}
