//! What the protocol asks a registry for, beside reading.

use tokio::sync::broadcast;

use super::table::Page;
use super::{Event, Registry, Template};
use crate::call::Interruption;
use crate::{Partial, Resource};

/// Why nothing is offered for a variable.
#[derive(Debug)]
pub(crate) enum CompleteError {
    UnknownTemplate,
    UnknownVariable,
    Interrupted(Interruption),
}

impl Registry {
    /// Offers values of a variable; none where no one offers any.
    pub(crate) async fn complete(
        &self,
        uri_template: &str,
        variable: &str,
        partial: Partial,
    ) -> Result<Vec<String>, CompleteError> {
        let template = self
            .state()
            .templates
            .entry(uri_template)
            .ok_or(CompleteError::UnknownTemplate)?;
        if !template.matcher.template().variables().contains(&variable) {
            return Err(CompleteError::UnknownVariable);
        }
        match template.description.completer(variable) {
            Some(completer) => {
                let values = completer
                    .run(partial, self.shared.limits.time, &self.shared.room)
                    .await;
                values.map_err(CompleteError::Interrupted)
            }
            None => Ok(Vec::new()),
        }
    }

    /// Returns whether a template completes a variable.
    pub(crate) fn completes_variables(&self) -> bool {
        self.state().completes_variables()
    }

    /// How many of these values, from the first on, have no more bytes than may be given.
    pub(crate) fn fitting(&self, values: &[String]) -> usize {
        let mut bytes: usize = 0;
        let fits = |value: &&String| {
            bytes = bytes.saturating_add(value.len());
            bytes <= self.shared.limits.bytes
        };
        values.iter().take_while(fits).count()
    }

    /// The resources after a place, in the order in which they were registered.
    pub(crate) fn resources(&self, after: Option<u64>, limit: usize) -> Page<Resource> {
        self.state().resources.page(after, limit)
    }

    /// The templates after a place, in the order in which they were registered.
    pub(crate) fn templates(&self, after: Option<u64>, limit: usize) -> Page<Template> {
        self.state().templates.page(after, limit)
    }

    /// Runs what changes subscriptions and so waits for those that observe them, within the time of a handler.
    pub(crate) async fn run_observed<O: Send + 'static>(
        &self,
        work: impl FnOnce() -> O + Send + 'static,
    ) -> Result<O, Interruption> {
        self.shared
            .room_of_observers
            .run(self.shared.limits.time, work)
            .await
    }

    /// What happens from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }
}
