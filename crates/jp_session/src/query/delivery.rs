//! Delivery with the configured policy: the view of the conversation that the model receives.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use crate::query::{contents, ready_query::ReadyQuery};
use jp_config::{Config, SupersededPolicy as Configured};
use jp_conversation::{
    Stream,
    view::{self, Policy, SupersededPolicy, Texts, Thread},
};
use jp_resource::{BlobRef, Checksum, ResourceContent};
use jp_storage::{Batch, Blobs};

/// Texts that delivery has compared, by checksum. Each request of a turn compares the same ones.
///
/// A failed read is not remembered, because the content may be stored by the next time.
#[derive(Debug, Default)]
pub(crate) struct Compared(RefCell<HashMap<Checksum, Arc<str>>>);

/// Reads the texts that delivery compares.
struct TextReader<'a> {
    query: &'a ReadyQuery<'a>,
    /// Content of the stream that is not stored yet.
    batch: Option<&'a Batch>,
}

impl ReadyQuery<'_> {
    /// Builds the view of a stream of this conversation.
    pub(crate) fn thread<'s>(&self, stream: &'s Stream) -> Thread<'s> {
        view::deliver(stream, &policy(&self.config.config), &mut self.texts())
    }

    /// Builds the view of a stream whose newest content is in a batch. It stays the same once that is
    /// stored.
    pub(crate) fn thread_with_batch<'s>(&self, stream: &'s Stream, batch: &Batch) -> Thread<'s> {
        view::deliver(
            stream,
            &policy(&self.config.config),
            &mut self.texts_with_batch(batch),
        )
    }

    /// Reads the texts that delivery compares.
    fn texts(&self) -> impl Texts {
        TextReader {
            query: self,
            batch: None,
        }
    }

    /// Reads the texts that delivery compares, some of them from a batch.
    pub(crate) fn texts_with_batch<'t>(&'t self, batch: &'t Batch) -> impl Texts + 't {
        TextReader {
            query: self,
            batch: Some(batch),
        }
    }
}

impl Texts for TextReader<'_> {
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>> {
        let compared = &self.query.compared.0;
        if let Some(text) = compared.borrow().get(&blob.checksum) {
            return Some(Arc::clone(text));
        }
        let staged = self.batch.and_then(|batch| batch.read_content(blob).ok());
        let content = staged.or_else(|| contents::read(self.query, blob).ok())?;
        let ResourceContent::Text(text) = content else {
            return None;
        };
        let text: Arc<str> = text.into();
        compared
            .borrow_mut()
            .insert(blob.checksum, Arc::clone(&text));
        Some(text)
    }
}

/// Builds the view of a stored conversation, without a query.
pub fn deliver_stored<'s>(stream: &'s Stream, config: &Config, blobs: &Blobs) -> Thread<'s> {
    view::deliver(stream, &policy(config), &mut StoredTexts(blobs))
}

/// Reads the texts that delivery compares from a store.
struct StoredTexts<'a>(&'a Blobs);

impl Texts for StoredTexts<'_> {
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>> {
        match self.0.read_content(blob) {
            Ok(ResourceContent::Text(text)) => Some(text.into()),
            _ => None,
        }
    }
}

/// Returns the configured policy of delivery.
pub(crate) fn policy(config: &Config) -> Policy {
    let (deduplication, superseded) = (
        &config.conversation.deduplication,
        &config.conversation.superseded,
    );
    let results = config.conversation.tools.iter();
    let results =
        results.filter_map(|(name, settings)| Some((name.clone(), settings.deduplicate?)));
    Policy {
        is_enabled: deduplication.enabled,
        min_bytes: deduplication.min_bytes,
        lookback_turns: usize::try_from(deduplication.lookback_turns).unwrap_or(usize::MAX),
        ranges: deduplication.ranges,
        diffs: deduplication.diffs,
        results: results.collect(),
        superseded: match superseded.policy {
            Configured::WhenCold => SupersededPolicy::WhenCold,
            Configured::Keep => SupersededPolicy::Keep,
            Configured::Always => SupersededPolicy::Always,
        },
        superseded_min_tokens: superseded.min_tokens,
    }
}
