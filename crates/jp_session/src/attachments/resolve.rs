//! From what was declared to snapshots.

use std::collections::{HashMap, HashSet};

use crate::{
    attachments::{
        advice,
        approval::{agreed, is_out_of_bounds, refused},
        declarations::Configured,
        progress::watched,
        template::expanded,
    },
    error::{ErrorKind, SessionError, chain},
    notice::Notice,
    servers::reading,
    session::{Session, Setup},
    text::quoted,
};
use jp_attachment::{
    AttachError, Declared, Place, Resolved, Source, Unavailable, parse_input, parse_stored,
};
use jp_conversation::{Declaration, Delivered, resolution::Plan};
use jp_resource::Snapshot;

/// Snapshots with the declarations that gave them.
#[derive(Debug, Default)]
pub struct Attachments {
    /// The snapshots, in order.
    pub snapshots: Vec<Snapshot>,
    /// Which declaration gave which snapshot.
    pub delivered: Vec<Delivered>,
    /// Whether a declaration was skipped because it needs an approval, and nobody could be asked.
    pub lacks_approval: bool,
}

/// Declarations of earlier that may be resolved.
#[derive(Debug, Default)]
struct Pending {
    declared: Vec<Declared>,
    /// As in [`Attachments`].
    lacks_approval: bool,
}

impl Attachments {
    /// Adds snapshots of a declaration; the first `fresh` ones of those that are there were resolved just now.
    ///
    /// What another declaration gives is in the message once, for both, if it is the same or fresh.
    fn add_copies(&mut self, declaration: Declaration, snapshots: Vec<Snapshot>, fresh: usize) {
        let mut given = self.given(declaration.server());
        let mut resources = Vec::with_capacity(snapshots.len());
        // Contents of one resource of an MCP server may share a URI: they stay together.
        for snapshots in snapshots.chunk_by(|one, next| one.uri == next.uri) {
            let known = given.remove(snapshots[0].uri.as_str()).filter(|known| {
                let is_same = |(index, one): (&usize, &Snapshot)| {
                    *index < fresh || self.snapshots[*index] == *one
                };
                known.len() == snapshots.len() && known.iter().zip(snapshots).all(is_same)
            });
            match known {
                Some(known) => resources.extend(known),
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

    /// Returns the indexes of what declarations of a server, or of none, give of each URI.
    fn given(&self, server: Option<&str>) -> HashMap<String, Vec<usize>> {
        let mut given: HashMap<String, Vec<usize>> = HashMap::new();
        let delivered = self
            .delivered
            .iter()
            .filter(|delivered| delivered.declaration.server() == server);
        for index in delivered.flat_map(|delivered| &delivered.resources) {
            if let Some(snapshot) = self.snapshots.get(*index) {
                let known = given.entry(snapshot.uri.clone()).or_default();
                if !known.contains(index) {
                    known.push(*index);
                }
            }
        }
        given
    }
}

/// Reads what the person typed.
pub fn parse(
    setup: Setup<'_>,
    inputs: &[String],
    place: &Place,
    unavailable: Unavailable,
) -> Result<Vec<Declared>, SessionError> {
    let session = setup.session;
    let mut declared = Vec::new();
    for input in inputs {
        let input = expanded(setup, input)?;
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
                skipped(session, &error)
            }
            Err(error) => return Err(advice::failure(error)),
        }
    }
    Ok(declared)
}

/// Returns the stored forms of what was typed, as far as they are known before it is resolved.
pub fn stored_forms(explicit: &[Declared]) -> Vec<Declaration> {
    explicit
        .iter()
        .filter_map(|declared| declared.declaration.as_deref())
        .map(Declaration::new)
        .collect()
}

/// What there is beside what was typed.
pub struct Earlier<'a> {
    /// What to resolve.
    pub plan: Plan,
    /// What configuration files declare.
    pub configured: &'a Configured,
    /// Whether there is a conversation yet that something could be detached from.
    pub is_new: bool,
    /// The id of the conversation if it was named: advice names it again.
    pub named: Option<&'a str>,
}

/// Returns the command that detaches declarations, which are quoted, from the current conversation or the one named.
pub fn detach_command(quoted: &str, named: Option<&str>) -> String {
    let id = named.map(|id| format!(" -i {id}")).unwrap_or_default();
    format!("jp attachment rm {quoted}{id}")
}

/// Resolves what a plan asks for, and what was typed; says what the person should know.
pub fn resolve(
    setup: Setup<'_>,
    earlier: Earlier<'_>,
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
    // Excludes of earlier queries alone ask for nothing; those of this one must have something to exclude from.
    let has_files = wanted
        .iter()
        .any(|one| matches!(one.source, Source::Path(_) | Source::Glob(_)));
    let excludes = earlier
        .plan
        .excludes
        .iter()
        .filter(|declaration| !typed.contains(declaration));
    let excludes = excludes.filter(|_| has_files);
    let excludes = excludes.map(|declaration| parse_stored(declaration.as_str(), resolving.place));
    let excludes = excludes
        .collect::<Result<Vec<_>, _>>()
        .map_err(advice::failure)?;
    let declared: Vec<_> = excludes.into_iter().chain(wanted).collect();
    let resolved = if declared.is_empty() {
        Resolved::default()
    } else {
        let failure = |error: AttachError| {
            let shown = error.to_string();
            let failed = inputs
                .iter()
                .filter(|input| shown.contains(&format!("{input:?}")));
            let failed: Vec<String> = failed.cloned().collect();
            earlier.advise(advice::failure(error), &failed)
        };
        let servers = reading::configured(setup)?;
        let unknown = reading::unknown(servers, &declared);
        if let Some(error) = unknown.filter(|_| resolving.unavailable == Unavailable::Fail) {
            return Err(failure(error));
        }
        servers.map_or(Ok(()), |servers| {
            reading::start(session, servers, &declared)
        })?;
        watched(session, &declared, resolving).map_err(failure)?
    };
    for notice in &resolved.notices {
        match notice {
            jp_attachment::Notice::Skipped(error) => skipped(session, error),
            notice => session.person.tell(Notice::Attachment {
                text: notice.to_string(),
            }),
        }
    }
    let attachments = with_copies(session, resolved, earlier);
    Ok(Attachments {
        lacks_approval: pending.lacks_approval,
        ..attachments
    })
}

/// Reads declarations that were made earlier, by a configuration or in the conversation.
fn parse_earlier(
    setup: Setup<'_>,
    earlier: &Earlier<'_>,
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
        .filter(|declaration| !typed.contains(declaration))
    {
        let mut lacks_approval = false;
        let agreed = match earlier.configured.read(declaration, resolving.place) {
            Ok(declared) if is_out_of_bounds(&declared, resolving.place) => {
                refused(session, declaration.as_str());
                continue;
            }
            Ok(declared) => {
                let agreed = agreed(setup, declared, resolving.place);
                lacks_approval = agreed.is_err();
                agreed
            }
            Err(error) => Err(advice::failure(error)),
        };
        match agreed {
            Ok(declared) => pending.declared.extend(declared),
            // Ctrl-C at the question ends the command, also if it skips what is unavailable.
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
    Err(earlier.advise(failure, &failed))
}

fn skipped(session: &Session, error: &AttachError) {
    let words = reading::last_words(error).unwrap_or_default();
    session.person.tell(Notice::AttachmentSkipped {
        reason: format!("failed to {}{words}", chain(error)),
        hints: Vec::new(),
    });
}

impl Earlier<'_> {
    /// Says how to get rid of declarations that were made earlier and can't be resolved.
    fn advise(&self, failure: SessionError, failed: &[String]) -> SessionError {
        if failed.is_empty() {
            return failure;
        }
        let quoted = failed
            .iter()
            .map(|declaration| quoted(declaration))
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

/// Adds what is delivered without being resolved, and warns of what is lost.
fn with_copies(session: &Session, resolved: Resolved, earlier: Earlier<'_>) -> Attachments {
    let Earlier { plan, named, .. } = earlier;
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
    // It was found after all: what was kept of it is older.
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
