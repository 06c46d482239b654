//! The view of the conversation that the model gets, by what the configuration says of delivery.

use std::{cell::RefCell, collections::HashMap, fs, sync::Arc};

use jp_config::{Config, SupersededPolicy as Configured};
use jp_conversation::{
    Stream,
    view::{self, Policy, SupersededPolicy, Texts, Thread},
};
use jp_resource::{BlobRef, Checksum, ResourceContent};
use jp_storage::Blobs;

use super::{Asked, contents};

/// Texts that the view compared, by checksum: each request of a turn compares the same ones.
#[derive(Debug, Default)]
pub(super) struct Compared(RefCell<HashMap<Checksum, Option<Arc<str>>>>);

/// Reads what the view compares.
struct Reader<'a>(&'a Asked<'a>);

impl Asked<'_> {
    /// Builds what the model gets of a stream of this conversation.
    pub(super) fn thread<'s>(&self, stream: &'s Stream) -> Thread<'s> {
        view::delivered(stream, &policy(&self.config.config), &mut self.texts())
    }

    /// Reads texts that the view compares.
    pub(super) fn texts(&self) -> impl Texts {
        Reader(self)
    }
}

impl Texts for Reader<'_> {
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>> {
        let read = || match contents::read(self.0, blob) {
            Ok(ResourceContent::Text(text)) => Some(text.into()),
            Ok(ResourceContent::Blob(_)) => None,
            Err(_) => attached(self.0, blob),
        };
        self.0.compared.0.borrow_mut().entry(blob.checksum).or_insert_with(read).clone()
    }
}

/// Reads the file that was just attached, as long as it still is that: its content may not be stored yet.
fn attached(asked: &Asked<'_>, blob: &BlobRef) -> Option<Arc<str>> {
    let text = fs::read_to_string(asked.files.get(&blob.checksum)?).ok()?;
    (Checksum::of(text.as_bytes()) == blob.checksum).then(|| text.into())
}

/// Builds what a model gets of a conversation that is stored.
pub(crate) fn stored<'s>(stream: &'s Stream, config: &Config, blobs: &Blobs) -> Thread<'s> {
    view::delivered(stream, &policy(config), &mut Stored(blobs))
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
    let (deduplication, superseded) = (&config.conversation.deduplication, &config.conversation.superseded);
    let results = config.conversation.tools.iter();
    let results = results.filter_map(|(name, settings)| Some((name.clone(), settings.deduplicate?)));
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
