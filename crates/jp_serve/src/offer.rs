use std::sync::Arc;

use mcp_resources::{Bundle, FileWatch, Limits, Registry, Server};

use crate::{
    blobs,
    conversations::{self, Conversations},
    error::{OpenError, Report, Warning},
    files::{self, Files},
    follow::Following,
    listing::{Lister, UserAttachments},
    settings::Settings,
};

/// An offered workspace. Drop ends the offer.
#[derive(Debug)]
pub struct Offer {
    registry: Registry,
    root_uri: String,
    _following: Following,
    _watch: Option<FileWatch>,
}

impl Offer {
    /// Opens the workspace. Reads only the conversation whose attachments are listed.
    ///
    /// `report` receives warnings while the offer exists. Other threads call it.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the root can't be opened, or its path can't be part of a URI.
    pub fn open(
        settings: Settings,
        report: impl Fn(Warning) + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let Settings {
            workspace,
            place,
            configured,
            own,
            limits: attachable,
            secrets,
            chosen,
        } = settings;
        let report: Report = Arc::new(report);
        let files = Arc::new(Files::open(place, attachable.max_bytes, secrets)?);
        let limits = read_limits(attachable.max_bytes);
        let max_read_bytes = limits.bytes as u64;
        let conversations = Arc::new(Conversations::new(&workspace, chosen, max_read_bytes));
        let registry = Registry::with_limits(limits);
        let templates = Bundle::new()
            .template(files::template(&files))
            .templates(conversations::templates(&conversations))
            .template(blobs::template(&conversations, max_read_bytes));
        registry.register_server("workspace", templates)?;
        let root_uri = files.root_uri().to_owned();
        let watch = watch(&registry, &report);
        let lister = Lister {
            files,
            configured,
            by_user: UserAttachments {
                configured: own,
                trust: workspace.trust(),
            },
            limits: attachable,
            max_read_bytes,
        };
        let following = Following::start(registry.clone(), conversations, lister, report);
        Ok(Self {
            registry,
            root_uri,
            _following: following,
            _watch: watch,
        })
    }

    /// Makes the server, which works while the offer exists.
    #[must_use]
    pub fn server(&self) -> Server {
        Server::new("jp", env!("CARGO_PKG_VERSION"), self.registry.clone())
            .title("A jp workspace")
            .instructions(self.instructions())
    }

    /// Returns the server's instructions for models.
    fn instructions(&self) -> String {
        format!(
            "This server lets you read a workspace. The list contains the attachments of the user's conversation \
             and their snapshots. To read a file of the workspace, read {root}PATH, with PATH relative to the workspace's root. \
             Ignored files and files that look like secrets are not offered. To read a conversation, read \
             jp://conversation/ID; to read one turn of it, read jp://conversation/ID/turn/N. Use \
             completion to get the values of the templates.",
            root = self.root_uri
        )
    }
}

/// Returns the limits of a read. The limit is at least the default, so that conversations can be read, and at
/// least the largest attachment.
fn read_limits(max_bytes: u64) -> Limits {
    let mut limits = Limits::default();
    let attachable = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    limits.bytes = limits.bytes.max(attachable);
    limits
}

/// Starts to watch files. If that fails, clients can still read, but receive no notifications.
fn watch(registry: &Registry, report: &Report) -> Option<FileWatch> {
    let report_later = Arc::clone(report);
    FileWatch::start(registry, move |error| report_later(error.into()))
        .map_err(|error| report(error.into()))
        .ok()
}
