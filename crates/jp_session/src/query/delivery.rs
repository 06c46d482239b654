//! The view of the conversation that the model gets, by what the configuration says of delivery.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use crate::query::{contents, ready_query::ReadyQuery};
use jp_config::{Config, SupersededPolicy as Configured};
use jp_conversation::{
    Stream,
    view::{self, Policy, SupersededPolicy, Texts, Thread},
};
use jp_resource::{BlobRef, Checksum, ResourceContent};
use jp_storage::{Batch, Blobs};

/// Texts that the view compared, by checksum: each request of a turn compares the same ones.
///
/// That a text could not be read is not remembered: what is not stored yet is there the next time.
#[derive(Debug, Default)]
pub(crate) struct Compared(RefCell<HashMap<Checksum, Arc<str>>>);

/// Reads what the view compares.
struct Reader<'a> {
    asked: &'a ReadyQuery<'a>,
    /// Holds content of the stream that is not stored yet.
    batch: Option<&'a Batch>,
}

impl ReadyQuery<'_> {
    /// Builds what the model gets of a stream of this conversation.
    pub(crate) fn thread<'s>(&self, stream: &'s Stream) -> Thread<'s> {
        view::deliver(stream, &policy(&self.config.config), &mut self.texts())
    }

    /// Builds the same of a stream whose newest content is in a batch: what is decided by it holds once that is stored.
    pub(crate) fn thread_beside<'s>(&self, stream: &'s Stream, batch: &Batch) -> Thread<'s> {
        view::deliver(
            stream,
            &policy(&self.config.config),
            &mut self.texts_beside(batch),
        )
    }

    /// Reads texts that the view compares.
    fn texts(&self) -> impl Texts {
        Reader {
            asked: self,
            batch: None,
        }
    }

    /// Reads texts of which some are in a batch.
    pub(crate) fn texts_beside<'t>(&'t self, batch: &'t Batch) -> impl Texts + 't {
        Reader {
            asked: self,
            batch: Some(batch),
        }
    }
}

impl Texts for Reader<'_> {
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>> {
        let compared = &self.asked.compared.0;
        if let Some(text) = compared.borrow().get(&blob.checksum) {
            return Some(Arc::clone(text));
        }
        let staged = self.batch.and_then(|batch| batch.read_content(blob).ok());
        let content = staged.or_else(|| contents::read(self.asked, blob).ok())?;
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

/// Builds what a model gets of a conversation that is stored.
pub fn stored<'s>(stream: &'s Stream, config: &Config, blobs: &Blobs) -> Thread<'s> {
    view::deliver(stream, &policy(config), &mut Stored(blobs))
}

/// Reads what the view compares where there is no query.
struct Stored<'a>(&'a Blobs);

impl Texts for Stored<'_> {
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>> {
        match self.0.read_content(blob) {
            Ok(ResourceContent::Text(text)) => Some(text.into()),
            _ => None,
        }
    }
}

/// Reads the policy of delivery out of the configuration.
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
