mod ignored;
mod inspect;
mod linked;
mod plan;
mod read;
mod survey;
mod walk;

use std::collections::HashSet;

use jp_resource::{Annotations, Resource};

pub use self::{
    ignored::IgnoreRules,
    survey::{LeftOut, Offered, Survey, Surveyed, Walked},
    walk::is_never_entered,
};
use self::{
    plan::{Given, Plan},
    read::{Content, Kept},
};
use crate::{
    AttachError, Context, Declared, Delivered, Notice, Resolved, Source, Unavailable,
    handler::Handler, place::Identity,
};

/// Resolves files, directories and globs, inside the workspace and outside.
///
/// Directories and globs respect `.gitignore`, `.ignore`, `.jpignore` and `.git/info/exclude`, from the
/// root of the repository or workspace on, and never enter `.git`, `.hg`, `.jj`, `.jp` and `.svn`; what
/// is named outright is attached even if ignored. Links to files are followed where all of this lets the file
/// be that they lead to, links to directories in a directory are not.
///
/// A directory or glob gives no file that looks like it holds secrets, by its name (`.env`, `id_rsa`) or
/// as it is a private key, and each that is left out is a [`Notice::SecretFile`]. What is named outright is
/// attached.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileHandler;

impl Handler for FileHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["file"]
    }

    /// Reads no file that [`ContentStore::known`](crate::ContentStore::known) knows; for any other
    /// there are five system calls: stat, open, read, fstat, close. A thread holds one file's content.
    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError> {
        refuse_only_excludes(declared)?;
        let plan = plan::plan(declared, context)?;
        let inspected = inspect::inspect(&plan.files, declared, context)?;
        inspect::check_total(&inspected, context)?;
        let kept = read::read(&plan.files, inspected, declared, context)?;
        assemble(plan, kept, declared, context)
    }
}

fn refuse_only_excludes(declared: &[Declared]) -> Result<(), AttachError> {
    match declared.first() {
        Some(first)
            if declared
                .iter()
                .all(|one| matches!(one.source, Source::Exclude(_))) =>
        {
            Err(AttachError::OnlyExcludes(first.input.clone()))
        }
        _ => Ok(()),
    }
}

/// An error that [`Unavailable`] tolerates, in the place of a value.
type Tolerated<T> = Result<T, AttachError>;

impl Unavailable {
    /// Lets an error stand for a value where it may, and fails with it otherwise.
    pub(crate) fn tolerate<T>(
        self,
        result: Result<T, AttachError>,
    ) -> Result<Tolerated<T>, AttachError> {
        match (self, result) {
            (Self::Skip, Err(error)) if error.is_unavailable() => Ok(Err(error)),
            (_, Err(error)) => Err(error),
            (_, Ok(value)) => Ok(Ok(value)),
        }
    }
}

/// Puts together what the steps found out.
fn assemble(
    plan: Plan,
    contents: Vec<Tolerated<Content>>,
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let resources = Vec::with_capacity(contents.len());
    let mut resolved = Resolved {
        notices: plan.notices,
        resources,
        ..Resolved::default()
    };
    let mut outcomes = Vec::with_capacity(contents.len());
    let (paths, identities): (Vec<_>, Vec<_>) = plan
        .files
        .into_iter()
        .map(|file| (file.path, file.identity))
        .unzip();
    for (identity, content) in identities.into_iter().zip(contents) {
        outcomes.push(resolved.outcome(identity, content));
    }
    for (index, (declared, given)) in declared.iter().zip(plan.given).enumerate() {
        let Some(given) = given else { continue };
        let given = match context
            .unavailable
            .tolerate(without_keys(given, &outcomes, declared))?
        {
            Ok(given) => given,
            Err(error) => {
                resolved.notices.push(Notice::Skipped(error));
                continue;
            }
        };
        match &declared.declaration {
            Some(declaration) => resolved.deliver(index, declaration, &given, &outcomes),
            None => {
                for file in given {
                    let declaration = context.place.declaration(&paths[file]);
                    let declaration = declaration.expect("a planned path is UTF-8: it has a URI");
                    resolved.deliver(index, &declaration, &[file], &outcomes);
                }
            }
        }
    }
    let mut seen = HashSet::new();
    resolved
        .delivered
        .retain(|delivered| seen.insert(delivered.declaration.clone()));
    Ok(resolved)
}

/// What became of a planned file.
enum Outcome {
    /// The resource with this index.
    Resource { index: usize, is_private_key: bool },
    /// A private key, with its name, that is left out.
    LeftOut(String),
    /// An error that is tolerated.
    Skipped,
}

/// Takes private keys out of what a directory or glob gives. Fails where that leaves nothing, unless
/// another declaration names one of them.
fn without_keys(
    given: Given,
    outcomes: &[Outcome],
    declared: &Declared,
) -> Result<Vec<usize>, AttachError> {
    let Given { mut files, is_walk } = given;
    let (mut left_out, mut named) = (None, false);
    files.retain(|file| match &outcomes[*file] {
        Outcome::LeftOut(name) => {
            left_out = left_out.or(Some(name));
            false
        }
        Outcome::Resource {
            is_private_key: true,
            ..
        } if is_walk => {
            named = true;
            false
        }
        Outcome::Resource { .. } | Outcome::Skipped => true,
    });
    match left_out {
        Some(example) if files.is_empty() && !named => Err(AttachError::AllSecret {
            input: declared.input.clone(),
            example: example.clone(),
        }),
        _ => Ok(files),
    }
}

impl Resolved {
    /// Takes in what became of a file.
    fn outcome(&mut self, identity: Identity, content: Tolerated<Content>) -> Outcome {
        match content {
            Ok(Content::Kept(kept)) => {
                let (index, is_private_key) = (self.resources.len(), kept.is_private_key);
                self.add(identity, kept);
                Outcome::Resource {
                    index,
                    is_private_key,
                }
            }
            Ok(Content::LeftOut) => {
                let name = identity.name;
                self.notices.push(Notice::SecretFile { name: name.clone() });
                Outcome::LeftOut(name)
            }
            Err(error) => {
                self.notices.push(Notice::Skipped(error));
                Outcome::Skipped
            }
        }
    }

    fn add(&mut self, identity: Identity, kept: Kept) {
        let mut resource = Resource::new(identity.uri, kept.blob).with_name(identity.name);
        resource.mime_type = Some(kept.mime_type);
        resource.annotations = kept.last_modified.map(|time| Annotations {
            last_modified: Some(time),
            ..Annotations::default()
        });
        self.notices.extend(kept.notices);
        self.totals.files += 1;
        self.totals.bytes += kept.blob.size;
        self.totals.known += usize::from(kept.was_known);
        self.resources.push(resource);
    }

    /// Records what a declaration gave, unless all of it was skipped.
    fn deliver(
        &mut self,
        declared: usize,
        declaration: &str,
        given: &[usize],
        outcomes: &[Outcome],
    ) {
        let resource = |file: &usize| match outcomes[*file] {
            Outcome::Resource { index, .. } => Some(index),
            Outcome::LeftOut(_) | Outcome::Skipped => None,
        };
        let resources: Vec<usize> = given.iter().filter_map(resource).collect();
        if resources.is_empty() && !given.is_empty() {
            return;
        }
        self.delivered.push(Delivered {
            declared,
            declaration: declaration.to_owned(),
            resources,
        });
    }
}
