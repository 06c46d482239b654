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

/// A conversation whose newest request is to be answered.
pub(crate) struct ReadyQuery<'s> {
    pub(crate) session: &'s Session,
    pub(crate) config: Resolved,
    pub(crate) store: Store,
    /// Where the content is of a query that stores nothing.
    pub(crate) scratch: Option<Scratch>,
    /// Files that hold content of the request as it is.
    pub(crate) files: Arc<HashMap<Checksum, PathBuf>>,
    /// The measures of texts that are from files.
    pub(crate) measures: Arc<HashMap<Checksum, Measure>>,
    pub(crate) tools: Tools,
    pub(crate) stream: Stream,
    /// The model that is asked, where one is known.
    pub(crate) model: Option<Model>,
    /// The conversation, where it has an id.
    pub(crate) id: Option<ConversationId>,
    /// About how many tokens a request may have.
    pub(crate) budget: Option<u64>,
    /// Texts that were read to be compared.
    pub(crate) compared: Compared,
}

impl ReadyQuery<'_> {
    /// Returns the session with the configuration.
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup::new(self.session, &self.config)
    }

    /// Returns the model of a query that is sent.
    pub(crate) fn model(&self) -> &Model {
        let model = self.model.as_ref();
        model.expect("without a model a query is only explained")
    }

    /// Returns a call that ended, with what was decided about it.
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

    /// Returns whether the message is in the conversation, to be sent again.
    pub(crate) fn is_kept(&self) -> bool {
        self.scratch.is_none()
    }
}

/// Returns the request that is to be answered, with its turn.
pub(crate) fn newest_request(stream: &Stream) -> Option<(usize, &ChatRequest)> {
    stream.requests().last()
}
