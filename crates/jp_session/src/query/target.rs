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

/// What a query is prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be sent.
    Send,
    /// To be looked at: nothing is stored, and a model isn't needed.
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
    /// A new one.
    New {
        store: Store,
        is_local: bool,
        title: Option<String>,
    },
    /// One that is there; locked unless nothing is stored.
    Existing {
        found: Found,
        conversation: Box<Conversation>,
        lock: Option<Lock>,
    },
}

impl Target {
    pub(crate) fn open(
        request: &QueryRequest,
        purpose: Purpose,
        session: &Session,
    ) -> Result<Self, SessionError> {
        let new = |is_local: bool, title: Option<String>| Self::New {
            store: session.store(is_local),
            is_local,
            title,
        };
        let found = match &request.to {
            Recipient::New { is_local, title } => return Ok(new(*is_local, title.clone())),
            Recipient::Existing(id) => session.selected(Some(id))?,
            Recipient::Current => match session.current()? {
                Some(found) => found,
                None => return Ok(new(false, None)),
            },
        };
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

    pub(crate) fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::New { .. } => None,
            Self::Existing { conversation, .. } => Some(conversation),
        }
    }

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

    pub(crate) fn stream(&self) -> Cow<'_, Stream> {
        self.conversation()
            .map_or_else(Cow::default, |conversation| {
                Cow::Borrowed(&conversation.stream)
            })
    }

    pub(crate) fn into_stream(self) -> Stream {
        match self {
            Self::New { .. } => Stream::default(),
            Self::Existing { conversation, .. } => conversation.stream,
        }
    }

    pub(crate) fn store(&self) -> &Store {
        match self {
            Self::New { store, .. } => store,
            Self::Existing { found, .. } => &found.store,
        }
    }
}
