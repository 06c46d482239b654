//! The context of a command: its arguments, the terminal and the session. `init` and `help` need none.

use std::sync::Arc;

use jp_attachment::Place;
use jp_config::Resolved;
use jp_conversation::{ConfigDelta, Event, EventKind, Stream};
use jp_session::{
    Options, Session, Setup,
    attachments::declarations::{ConfiguredDeclarations, place, read_configured},
    lock,
    session::Found,
};
use jp_storage::{Batch, Conversation};

use crate::{
    args::Global, console::Console, environment::Environment, error::SessionError, output::Output,
};

/// The arguments, the terminal and the session of a command.
pub(crate) struct Context<'a> {
    pub(crate) global: &'a Global,
    pub(crate) environment: &'a Environment,
    pub(crate) output: &'a Output,
    pub(crate) session: Session,
}

impl<'a> Context<'a> {
    /// Opens the session, which finds the workspace.
    pub(crate) fn open(
        global: &'a Global,
        environment: &'a Environment,
        console: &'a Arc<Console>,
    ) -> Result<Self, SessionError> {
        let options = Options {
            workspace: global.workspace.clone(),
            cfg: global.cfg.clone(),
            yes: global.yes,
            no_persist: global.no_persist,
            no_wait: global.no_wait,
            wants_logs: global.verbose > 0,
            shows_progress: console.output.shows_progress(),
        };
        // The session asks for the interrupt when something slow begins; only then jp handles signals.
        let listener = Arc::clone(console);
        let session = Session::open(
            options,
            environment.surroundings.clone(),
            Arc::clone(console) as _,
            Box::new(move || listener.interrupt()),
        )?;
        Ok(Self {
            global,
            environment,
            output: &console.output,
            session,
        })
    }

    /// Combines the session with a configuration.
    pub(crate) fn setup<'s>(&'s self, config: &'s Resolved) -> Setup<'s> {
        Setup::new(&self.session, config)
    }

    /// Reads a conversation and resolves its configuration; `None` is the current conversation.
    pub(crate) fn open_conversation(
        &self,
        id: Option<&str>,
    ) -> Result<OpenConversation<'_>, SessionError> {
        let found = self.session.select(id)?;
        let conversation = self.session.read(&found)?;
        let config = self.session.config(Some(&conversation), &[])?;
        Ok(OpenConversation {
            context: self,
            found,
            conversation,
            config,
        })
    }
}

/// A conversation that a command works on, with its configuration.
pub(crate) struct OpenConversation<'c> {
    context: &'c Context<'c>,
    pub(crate) found: Found,
    pub(crate) conversation: Conversation,
    pub(crate) config: Resolved,
}

impl OpenConversation<'_> {
    pub(crate) fn setup(&self) -> Setup<'_> {
        self.context.setup(&self.config)
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.conversation.stream
    }

    /// Finds the directories that declarations refer to.
    pub(crate) fn find_place(&self) -> Result<Place, SessionError> {
        place(self.setup())
    }

    /// Reads the attachments that configuration files declare.
    pub(crate) fn read_configured(
        &self,
        place: &Place,
    ) -> Result<ConfiguredDeclarations, SessionError> {
        read_configured(&self.config, place)
    }

    /// Appends a change of configuration under the conversation's lock.
    pub(crate) fn record(&self, delta: ConfigDelta, batch: Batch) -> Result<(), SessionError> {
        let session = &self.context.session;
        let lock = lock::acquire(session, &self.found)?;
        // Another jp may have appended events while this one waited for the lock.
        let conversation = self.found.store.read(&self.found.located)?;
        let event = Event::new(session.now(), EventKind::ConfigDelta(delta));
        let mut writer = self.found.store.writer(&conversation, lock);
        writer.append(vec![event], batch)?;
        Ok(())
    }
}
