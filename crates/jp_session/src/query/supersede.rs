//! Leaves out what newer versions replaced, at a moment when that costs nothing.

use crate::{
    model::Model,
    notice::Notice,
    query::{delivery, prepare::Prepared, ready_query::ReadyQuery},
};
use jp_conversation::{
    Event, EventKind, Stream, Superseded,
    view::{self, SupersededPolicy},
};

/// Adds the decision to a request of a conversation whose prompt cache is lost anyway; it stands behind the message, as
/// what is attached to that replaces what was attached before.
pub(crate) fn supersede(
    prepared: &mut Prepared,
    stream: &Stream,
    model: &Model,
    asked: &ReadyQuery<'_>,
) {
    let policy = delivery::policy(&asked.config.config);
    let has_message = prepared
        .kinds
        .iter()
        .any(|kind| matches!(kind, EventKind::ChatRequest(_)));
    if !has_message
        || policy.superseded != SupersededPolicy::WhenCold
        || !is_cold(stream, prepared.now, model)
    {
        return;
    }
    let dropped = view::find_superseded(
        &prepared.beside(stream),
        &policy,
        &mut asked.texts_beside(&prepared.batch),
    );
    if dropped.is_empty() {
        return;
    }
    asked.session.person.tell(Notice::SupersededLeftOut {
        snapshots: dropped.len(),
    });
    prepared
        .kinds
        .push(EventKind::Superseded(Superseded { dropped }));
}

/// Returns whether the model's provider has nothing left in its prompt cache of what was sent last.
pub(crate) fn is_cold(stream: &Stream, now: jiff::Timestamp, model: &Model) -> bool {
    let lifetime = model.endpoint.format.cache_lifetime(&model.endpoint.model);
    view::is_cold(stream, now, &model.label, lifetime)
}

impl Prepared {
    /// Returns the conversation with what is prepared, before that is stored.
    pub(crate) fn beside(&self, stream: &Stream) -> Stream {
        let mut stream = stream.clone();
        self.kinds
            .iter()
            .for_each(|kind| stream.push(Event::new(self.now, kind.clone())));
        stream
    }
}
