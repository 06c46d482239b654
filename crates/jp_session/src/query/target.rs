//! The conversation that a query goes to.

use std::borrow::Cow;

use jp_config::Resolved;
use jp_conversation::Stream;
use jp_storage::{Conversation, Store, lock::Lock};

use crate::{
    error::SessionError,
    lock,
    query::request::{QueryRequest, Recipient},
    session::{Found, Session},
};

/// The purpose that a query is prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Sending it.
    Send,
    /// Explaining it: jp stores nothing and needs no model.
    Explain,
}

impl Purpose {
    /// Returns whether the conversation keeps the query.
    pub(crate) fn persists(self, session: &Session) -> bool {
        self == Self::Send && !session.options.no_persist
    }
}

/// The conversation that a query goes to.
pub(crate) enum Target {
    /// A new conversation.
    New {
        store: Store,
        is_local: bool,
        title: Option<String>,
    },
    /// An existing conversation, locked unless the query stores nothing.
    Existing {
        found: Found,
        conversation: Box<Conversation>,
        lock: Option<Lock>,
    },
}

impl Target {
    /// Finds the conversation and locks it. Nothing is created before the message is recorded.
    pub(crate) fn open(
        request: &QueryRequest,
        purpose: Purpose,
        session: &Session,
    ) -> Result<Self, SessionError> {
        let found = match &request.to {
            Recipient::New { is_local, title } => {
                return Ok(Self::create(*is_local, title.clone(), session));
            }
            Recipient::Existing(id) => session.select(Some(id))?,
            Recipient::Current => match session.current()? {
                Some(found) => found,
                None => return Ok(Self::create(false, None, session)),
            },
        };
        // Locked before it is read: another process may append to it until then.
        let lock = match purpose.persists(session) {
            true => Some(lock::acquire(session, &found)?),
            false => None,
        };
        let conversation = Box::new(session.read(&found)?);
        Ok(Self::Existing {
            found,
            conversation,
            lock,
        })
    }

    fn create(is_local: bool, title: Option<String>, session: &Session) -> Self {
        Self::New {
            store: session.store(is_local),
            is_local,
            title,
        }
    }

    /// Returns the conversation, if it exists already.
    pub(crate) fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::New { .. } => None,
            Self::Existing { conversation, .. } => Some(conversation),
        }
    }

    /// Resolves the configuration of the query.
    pub(crate) fn config(
        &self,
        request: &QueryRequest,
        session: &Session,
    ) -> Result<Resolved, SessionError> {
        let model = request
            .model
            .as_deref()
            .map(|model| ("--model", "assistant.model.id", model));
        session.config(self.conversation(), &Vec::from_iter(model))
    }

    /// Returns the events so far.
    pub(crate) fn stream(&self) -> Cow<'_, Stream> {
        self.conversation()
            .map_or_else(Cow::default, |conversation| {
                Cow::Borrowed(&conversation.stream)
            })
    }

    /// Returns the events so far.
    pub(crate) fn into_stream(self) -> Stream {
        match self {
            Self::New { .. } => Stream::default(),
            Self::Existing { conversation, .. } => conversation.stream,
        }
    }

    /// Returns the store of the conversation.
    pub(crate) fn store(&self) -> &Store {
        match self {
            Self::New { store, .. } => store,
            Self::Existing { found, .. } => &found.store,
        }
    }
}
