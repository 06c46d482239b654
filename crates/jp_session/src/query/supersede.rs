//! Leaves out superseded snapshots once that costs no cached tokens.

use crate::{
    model::Model,
    notice::Notice,
    query::{delivery, prepare::Prepared, ready_query::ReadyQuery},
};
use jp_conversation::{
    Event, EventKind, Stream, Superseded,
    view::{self, SupersededPolicy},
};

/// Decides which snapshots to leave out from now on, if the provider's prompt cache of the
/// conversation is lost anyway, and adds the decision to the prepared events.
///
/// It follows the message, because the attachments of that message supersede earlier ones.
pub(crate) fn supersede(
    prepared: &mut Prepared,
    stream: &Stream,
    model: &Model,
    query: &ReadyQuery<'_>,
) {
    let policy = delivery::policy(&query.config.config);
    let has_message = prepared
        .kinds
        .iter()
        .any(|kind| matches!(kind, EventKind::ChatRequest(_)));
    // A message that is sent again keeps the decision of its first attempt, and thus its bytes.
    if !has_message
        || policy.superseded != SupersededPolicy::WhenCold
        || !is_cold(stream, prepared.now, model)
    {
        return;
    }
    let dropped = view::find_superseded(
        &prepared.preview(stream),
        &policy,
        &mut query.texts_with_batch(&prepared.batch),
    );
    if dropped.is_empty() {
        return;
    }
    query.session.person.tell(Notice::SupersededLeftOut {
        snapshots: dropped.len(),
    });
    prepared
        .kinds
        .push(EventKind::Superseded(Superseded { dropped }));
}

/// Returns whether the provider's prompt cache has lost the last request to this model.
pub(crate) fn is_cold(stream: &Stream, now: jiff::Timestamp, model: &Model) -> bool {
    let lifetime = model.endpoint.format.cache_lifetime(&model.endpoint.model);
    view::is_cold(stream, now, &model.label, lifetime)
}

impl Prepared {
    /// Returns the conversation with the prepared events, which are not stored yet.
    pub(crate) fn preview(&self, stream: &Stream) -> Stream {
        let mut stream = stream.clone();
        self.kinds
            .iter()
            .for_each(|kind| stream.push(Event::new(self.now, kind.clone())));
        stream
    }
}
