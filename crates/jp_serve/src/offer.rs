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

/// A workspace that is offered until this is dropped.
#[derive(Debug)]
pub struct Offer {
    registry: Registry,
    root_uri: String,
    _following: Following,
    _watch: Option<FileWatch>,
}

impl Offer {
    /// Opens the workspace. Reads the conversation whose attachments are listed, and no other.
    ///
    /// `report` receives what clients don't see, for as long as the offer lives. It is called from
    /// other threads.
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
        let max_given = limits.bytes as u64;
        let conversations = Arc::new(Conversations::new(&workspace, chosen, max_given));
        let registry = Registry::with_limits(limits);
        let templates = Bundle::new()
            .template(files::template(&files))
            .templates(conversations::templates(&conversations))
            .template(blobs::template(&conversations, max_given));
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
            max_given,
        };
        let following = Following::start(registry.clone(), conversations, lister, report);
        Ok(Self {
            registry,
            root_uri,
            _following: following,
            _watch: watch,
        })
    }

    /// Makes the server. It serves as long as the offer lives.
    #[must_use]
    pub fn server(&self) -> Server {
        Server::new("jp", env!("CARGO_PKG_VERSION"), self.registry.clone())
            .title("A workspace of jp")
            .instructions(self.instructions())
    }

    /// Returns what models are told about the server.
    fn instructions(&self) -> String {
        format!(
            "This server offers a workspace, to read. The list has what is attached to the person's conversation, and \
             the snapshots of it that a model was shown. Read {root}PATH for a file of the workspace, with PATH relative \
             to its root. Files that the workspace ignores, and files that look like they hold secrets, are not offered. \
             Read jp://conversation/ID for a conversation that took place here, and jp://conversation/ID/turn/N for one \
             turn of it; completion of the templates offers the values that there are.",
            root = self.root_uri
        )
    }
}

/// Returns the limits of a read. What can be attached can be read, and conversations of the default size in
/// any case.
fn read_limits(max_bytes: u64) -> Limits {
    let mut limits = Limits::default();
    let attachable = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    limits.bytes = limits.bytes.max(attachable);
    limits
}

/// Starts to watch files. Without it clients can read, and don't hear of changes.
fn watch(registry: &Registry, report: &Report) -> Option<FileWatch> {
    let report_later = Arc::clone(report);
    FileWatch::start(registry, move |error| report_later(error.into()))
        .map_err(|error| report(error.into()))
        .ok()
}
