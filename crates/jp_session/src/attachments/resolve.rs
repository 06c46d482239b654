//! Resolves declarations to snapshots.

use std::collections::{HashMap, HashSet};

use crate::{
    attachments::{
        advice,
        approval::{is_out_of_bounds, obtain_approval, warn_of_outside_file},
        declarations::ConfiguredDeclarations,
        progress::resolve_with_progress,
        template::expand_input,
    },
    error::{ErrorKind, SessionError, chain},
    notice::Notice,
    servers::reading,
    session::{Session, Setup},
    text::quote_word,
};
use jp_attachment::{
    AttachError, Declared, Place, Resolved, Source, Unavailable, parse_input, parse_stored,
};
use jp_conversation::{Declaration, Delivered, resolution::Plan};
use jp_resource::Snapshot;

/// Snapshots and their declarations.
#[derive(Debug, Default)]
pub struct Attachments {
    /// The snapshots, in order.
    pub snapshots: Vec<Snapshot>,
    /// The snapshots of each declaration, by index.
    pub delivered: Vec<Delivered>,
    /// Jp skipped a declaration because it needs an approval and no one could be asked.
    pub lacks_approval: bool,
}

/// Earlier declarations that jp may resolve.
#[derive(Debug, Default)]
struct Pending {
    declared: Vec<Declared>,
    /// As in [`Attachments`].
    lacks_approval: bool,
}

impl Attachments {
    /// Adds earlier snapshots of a declaration. The first `fresh` snapshots here were resolved just now.
    ///
    /// A resource that another declaration delivers too is in the message once, for both, if it is equal or fresh.
    fn add_copies(&mut self, declaration: Declaration, snapshots: Vec<Snapshot>, fresh: usize) {
        let mut indexes_by_uri = self.indexes_by_uri(declaration.server());
        let mut resources = Vec::with_capacity(snapshots.len());
        // Contents of one resource of an MCP server may share a URI, so they stay together.
        for snapshots in snapshots.chunk_by(|one, next| one.uri == next.uri) {
            let indexes = indexes_by_uri
                .remove(snapshots[0].uri.as_str())
                .filter(|indexes| {
                    indexes.len() == snapshots.len()
                        && indexes.iter().zip(snapshots).all(|(index, snapshot)| {
                            *index < fresh || self.snapshots[*index] == *snapshot
                        })
                });
            match indexes {
                Some(indexes) => resources.extend(indexes),
                None => {
                    resources.extend(self.snapshots.len()..self.snapshots.len() + snapshots.len());
                    self.snapshots.extend_from_slice(snapshots);
                }
            }
        }
        self.delivered.push(Delivered {
            declaration,
            resources,
        });
    }

    /// Returns the indexes of the snapshots of each URI that declarations of a server deliver, or declarations without
    /// a server.
    fn indexes_by_uri(&self, server: Option<&str>) -> HashMap<String, Vec<usize>> {
        let mut by_uri: HashMap<String, Vec<usize>> = HashMap::new();
        let delivered = self
            .delivered
            .iter()
            .filter(|delivered| delivered.declaration.server() == server);
        for index in delivered.flat_map(|delivered| &delivered.resources) {
            if let Some(snapshot) = self.snapshots.get(*index) {
                let indexes = by_uri.entry(snapshot.uri.clone()).or_default();
                if !indexes.contains(index) {
                    indexes.push(*index);
                }
            }
        }
        by_uri
    }
}

/// Parses the inputs that the user typed, with their templates expanded.
pub fn parse(
    setup: Setup<'_>,
    inputs: &[String],
    place: &Place,
    unavailable: Unavailable,
) -> Result<Vec<Declared>, SessionError> {
    let session = setup.session;
    let mut declared = Vec::new();
    for input in inputs {
        let input = expand_input(setup, input)?;
        match parse_input(&input, place) {
            Ok(read) => {
                if matches!(read.source, Source::Exclude(_)) && read.declaration.is_none() {
                    session.person.tell(Notice::ExcludeNotStored {
                        input: input.clone(),
                    });
                }
                declared.push(read);
            }
            Err(error) if unavailable == Unavailable::Skip && error.is_unavailable() => {
                warn_of_skipped(session, &error)
            }
            Err(error) => return Err(advice::failure(error)),
        }
    }
    Ok(declared)
}

/// Returns the stored forms of typed declarations, except those that are unknown before jp resolves them.
pub fn stored_forms(explicit: &[Declared]) -> Vec<Declaration> {
    explicit
        .iter()
        .filter_map(|declared| declared.declaration.as_deref())
        .map(Declaration::new)
        .collect()
}

/// The declarations of the configuration and of the conversation.
pub struct EarlierDeclarations<'a> {
    /// The plan for resolving them.
    pub plan: Plan,
    /// The declarations of the configuration.
    pub configured: &'a ConfiguredDeclarations,
    /// The conversation is new, so that nothing can be detached from it.
    pub is_new: bool,
    /// The id of the conversation if the user named it; hints name it again.
    pub named: Option<&'a str>,
}

/// Returns the command that detaches quoted declarations from the current conversation, or from the named one.
pub fn detach_command(quoted: &str, named: Option<&str>) -> String {
    let id = named.map(|id| format!(" -i {id}")).unwrap_or_default();
    format!("jp attachment rm {quoted}{id}")
}

/// Resolves the declarations of a plan and the typed ones, and tells the user what they should know.
///
/// # Errors
///
/// If a declaration can't be resolved and the context skips nothing, or if the user interrupts.
pub fn resolve(
    setup: Setup<'_>,
    earlier: EarlierDeclarations<'_>,
    explicit: Vec<Declared>,
    resolving: &jp_attachment::Context<'_>,
) -> Result<Attachments, SessionError> {
    let session = setup.session;
    let typed = stored_forms(&explicit);
    let pending = parse_earlier(setup, &earlier, &typed, resolving)?;
    let inputs: Vec<String> = pending
        .declared
        .iter()
        .map(|declared| declared.input.clone())
        .collect();
    let wanted: Vec<Declared> = pending.declared.into_iter().chain(explicit).collect();
    let mut declared = earlier.parse_excludes(&wanted, &typed, resolving.place)?;
    declared.extend(wanted);
    let resolved = resolve_declared(setup, &declared, resolving)?.map_err(|error| {
        // The error names its input, which is an earlier declaration if the user did not type it now.
        let shown = error.to_string();
        let failed: Vec<String> = inputs
            .into_iter()
            .filter(|input| shown.contains(&format!("{input:?}")))
            .collect();
        earlier.add_hints(advice::failure(error), &failed)
    })?;
    for notice in &resolved.notices {
        match notice {
            jp_attachment::Notice::Skipped(error) => warn_of_skipped(session, error),
            notice => session.person.tell(Notice::Attachment {
                text: notice.to_string(),
            }),
        }
    }
    Ok(Attachments {
        lacks_approval: pending.lacks_approval,
        ..with_copies(session, resolved, earlier)
    })
}

/// Resolves declarations after it has started the servers that they need. The inner error is about a declaration.
fn resolve_declared(
    setup: Setup<'_>,
    declared: &[Declared],
    resolving: &jp_attachment::Context<'_>,
) -> Result<Result<Resolved, AttachError>, SessionError> {
    if declared.is_empty() {
        return Ok(Ok(Resolved::default()));
    }
    let servers = reading::find_servers(setup)?;
    if resolving.unavailable == Unavailable::Fail
        && let Some(error) = reading::find_unknown_server(servers, declared)
    {
        return Ok(Err(error));
    }
    // This thread has the terminal, but the handlers run on others, which can't ask for approvals.
    if let Some(servers) = servers {
        reading::start(setup.session, servers, declared)?;
    }
    Ok(resolve_with_progress(setup.session, declared, resolving))
}

/// Parses declarations that the configuration or the conversation made earlier, and obtains approval for them.
fn parse_earlier(
    setup: Setup<'_>,
    earlier: &EarlierDeclarations<'_>,
    typed: &[Declaration],
    resolving: &jp_attachment::Context<'_>,
) -> Result<Pending, SessionError> {
    let session = setup.session;
    let mut pending = Pending::default();
    let mut failed = Vec::new();
    let mut first = None;
    for declaration in earlier
        .plan
        .resolve
        .iter()
        // A declaration that the user typed now is theirs, so the earlier one doesn't count.
        .filter(|declaration| !typed.contains(declaration))
    {
        let mut lacks_approval = false;
        let approved = match earlier.configured.read(declaration, resolving.place) {
            Ok(declared) if is_out_of_bounds(&declared, resolving.place) => {
                warn_of_outside_file(session, declaration.as_str());
                continue;
            }
            Ok(declared) => {
                let approved = obtain_approval(setup, declared, resolving.place);
                lacks_approval = approved.is_err();
                approved
            }
            Err(error) => Err(advice::failure(error)),
        };
        match approved {
            Ok(declared) => pending.declared.extend(declared),
            // Ctrl-C at the prompt ends the command, even if it skips unavailable attachments.
            Err(failure) if failure.kind == ErrorKind::Interrupted => return Err(failure),
            Err(failure) if resolving.unavailable == Unavailable::Skip => {
                pending.lacks_approval |= lacks_approval;
                session.person.tell(Notice::AttachmentSkipped {
                    reason: failure.message,
                    hints: match lacks_approval {
                        true => failure.hints,
                        false => Vec::new(),
                    },
                });
            }
            Err(failure) => {
                failed.push(declaration.to_string());
                // The error shows the first failure in full and counts the others.
                first.get_or_insert(failure);
            }
        }
    }
    let Some(mut failure) = first else {
        return Ok(pending);
    };
    if failed.len() > 1 {
        failure.message.push_str(&format!(
            " (and {} more that can't be attached)",
            failed.len() - 1
        ));
    }
    Err(earlier.add_hints(failure, &failed))
}

fn warn_of_skipped(session: &Session, error: &AttachError) {
    let words = reading::last_words(error).unwrap_or_default();
    session.person.tell(Notice::AttachmentSkipped {
        reason: format!("failed to {}{words}", chain(error)),
        hints: Vec::new(),
    });
}

impl EarlierDeclarations<'_> {
    /// Parses the excludes of earlier queries, unless they would exclude nothing. `typed` excludes are in `wanted`.
    ///
    /// Excludes without a file to exclude are an error only if the user types them now.
    fn parse_excludes(
        &self,
        wanted: &[Declared],
        typed: &[Declaration],
        place: &Place,
    ) -> Result<Vec<Declared>, SessionError> {
        let has_files = wanted
            .iter()
            .any(|one| matches!(one.source, Source::Path(_) | Source::Glob(_)));
        if !has_files {
            return Ok(Vec::new());
        }
        self.plan
            .excludes
            .iter()
            .filter(|declaration| !typed.contains(declaration))
            .map(|declaration| parse_stored(declaration.as_str(), place).map_err(advice::failure))
            .collect()
    }

    /// Adds hints how to remove earlier declarations that can't be resolved.
    fn add_hints(&self, failure: SessionError, failed: &[String]) -> SessionError {
        if failed.is_empty() {
            return failure;
        }
        let quoted = failed
            .iter()
            .map(|declaration| quote_word(declaration))
            .collect::<Vec<_>>()
            .join(" ");
        let advice = if self.is_new {
            format!("the configuration attaches {quoted}; `jp config show` shows where.")
        } else {
            let command = detach_command(&quoted, self.named);
            format!(
                "it was attached earlier or by the configuration; `{command}` detaches it from this conversation."
            )
        };
        let failure = failure.with_hint(advice);
        if failure.hints.iter().any(|hint| hint == advice::SKIP_HINT) {
            return failure;
        }
        failure.with_hint(advice::SKIP_HINT)
    }
}

/// Adds earlier snapshots that are delivered again, and warns about those that are missing.
fn with_copies(
    session: &Session,
    resolved: Resolved,
    earlier: EarlierDeclarations<'_>,
) -> Attachments {
    let EarlierDeclarations { plan, named, .. } = earlier;
    let delivered = |delivered: jp_attachment::Delivered| Delivered {
        declaration: Declaration::new(delivered.declaration),
        resources: delivered.resources,
    };
    let mut attachments = Attachments {
        snapshots: resolved.resources.into_iter().map(Snapshot::from).collect(),
        delivered: resolved.delivered.into_iter().map(delivered).collect(),
        lacks_approval: false,
    };
    let resolved: HashSet<Declaration> = attachments
        .delivered
        .iter()
        .map(|delivered| delivered.declaration.clone())
        .collect();
    // If a declaration was resolved after all, its earlier snapshots are older.
    let copies = plan
        .copies
        .into_iter()
        .filter(|(declaration, _)| !resolved.contains(declaration));
    let fresh = attachments.snapshots.len();
    for (declaration, snapshots) in copies {
        attachments.add_copies(declaration, snapshots, fresh);
    }
    for declaration in plan.lost {
        session.person.tell(Notice::SnapshotMissing {
            declaration: declaration.to_string(),
            conversation: named.map(str::to_owned),
        });
    }
    attachments
}
