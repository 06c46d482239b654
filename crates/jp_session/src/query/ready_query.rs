//! A query that is ready to send.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use jp_config::Resolved;
use jp_conversation::{ChatRequest, Stream, ToolCallRequest};
use jp_llm::Measure;
use jp_resource::Checksum;
use jp_storage::{ConversationId, Store};
use jp_turn::Verdict;
use serde_json::{Map, Value};

use crate::{
    model::Model,
    query::{contents::Scratch, delivery::Compared},
    session::{Session, Setup},
    tools::{Tools, call_outcome::EndedCall},
};

/// A query that is ready to send: a conversation that ends with a request, and everything that sending it needs.
pub(crate) struct ReadyQuery<'s> {
    pub(crate) session: &'s Session,
    pub(crate) config: Resolved,
    pub(crate) store: Store,
    /// The store for the content of a query that the conversation does not keep.
    pub(crate) scratch: Option<Scratch>,
    /// Files whose bytes are the content of the request, by checksum. They are faster to read than blobs.
    pub(crate) files: Arc<HashMap<Checksum, PathBuf>>,
    /// The measures of texts that come from files.
    pub(crate) measures: Arc<HashMap<Checksum, Measure>>,
    pub(crate) tools: Tools,
    pub(crate) stream: Stream,
    /// The model. Only an explained query may have none.
    pub(crate) model: Option<Model>,
    /// The id of the conversation, if it has one.
    pub(crate) id: Option<ConversationId>,
    /// The largest request to send, in estimated tokens.
    pub(crate) budget: Option<u64>,
    /// Texts that delivery has read to compare them.
    pub(crate) compared: Compared,
}

impl ReadyQuery<'_> {
    /// Returns the session with the configuration.
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup::new(self.session, &self.config)
    }

    /// Returns the model of a query that is not only explained.
    pub(crate) fn model(&self) -> &Model {
        let model = self.model.as_ref();
        model.expect("without a model a query is only explained")
    }

    /// Returns a call that ended, with the decision about it.
    pub(crate) fn end_call(
        &self,
        call: &ToolCallRequest,
        verdict: Option<Verdict>,
        edited: Option<&Map<String, Value>>,
    ) -> EndedCall {
        let circumstances = self
            .tools
            .circumstances(&call.name, self.session.options.yes);
        EndedCall::new(verdict, edited, circumstances)
    }

    /// Returns whether the conversation keeps the message, so that it can be sent again.
    pub(crate) fn is_kept(&self) -> bool {
        self.scratch.is_none()
    }
}

/// Returns the newest request and its turn, which counts from 1.
pub(crate) fn newest_request(stream: &Stream) -> Option<(usize, &ChatRequest)> {
    stream.requests().last()
}
