//! The server's queries to a registry, apart from reads.

use tokio::sync::broadcast;

use super::check::CheckedTemplate;
use super::table::Page;
use super::{Event, Registry};
use crate::call::Interruption;
use crate::{Partial, Resource};

/// A completion that failed.
#[derive(Debug)]
pub(crate) enum CompleteError {
    UnknownTemplate,
    UnknownVariable,
    Interrupted(Interruption),
}

impl Registry {
    /// Returns values for a variable; none if it has no completer.
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

    /// Drops the last values, so that the others have no more bytes than [`Limits::bytes`].
    ///
    /// [`Limits::bytes`]: crate::Limits::bytes
    pub(crate) fn truncate_values(&self, values: &mut Vec<String>) {
        let mut bytes: usize = 0;
        let fitting = values.iter().take_while(|value| {
            bytes = bytes.saturating_add(value.len());
            bytes <= self.shared.limits.bytes
        });
        values.truncate(fitting.count());
    }

    /// Returns the resources after a place in the order of their registration.
    pub(crate) fn resources(&self, after: Option<u64>, limit: usize) -> Page<Resource> {
        self.state().resources.page(after, limit)
    }

    /// Returns the templates after a place in the order of their registration.
    pub(crate) fn templates(&self, after: Option<u64>, limit: usize) -> Page<CheckedTemplate> {
        self.state().templates.page(after, limit)
    }

    /// Runs what changes subscriptions. It waits for their observers, for as long as a handler may run.
    pub(crate) async fn run_observed<O: Send + 'static>(
        &self,
        work: impl FnOnce() -> O + Send + 'static,
    ) -> Result<O, Interruption> {
        self.shared
            .observer_room
            .run(self.shared.limits.time, work)
            .await
    }

    /// Subscribes to the changes from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }
}
