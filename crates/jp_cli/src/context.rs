//! The context of a command: its arguments, the terminal and the session. `init` and `help` need none.

use std::sync::Arc;

use jp_config::Resolved;
use jp_session::{Options, Session, Setup};

use crate::{
    args::Global, console::Console, environment::Environment, error::Failure, output::Output,
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
    ) -> Result<Self, Failure> {
        let options = Options {
            workspace: global.workspace.clone(),
            cfg: global.cfg.clone(),
            yes: global.yes,
            no_persist: global.no_persist,
            no_wait: global.no_wait,
            wants_logs: global.verbose > 0,
            shows_progress: console.output.shows_progress(),
        };
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
}
