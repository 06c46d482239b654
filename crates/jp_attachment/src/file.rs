mod ignore_rules;
mod inspect;
mod link_targets;
mod plan;
mod read;
mod survey;
mod walk;

use std::collections::HashSet;

use jp_resource::{Annotations, Resource};

pub use self::{
    ignore_rules::{IgnoreRules, is_never_entered},
    survey::{LeftOut, Offered, Survey, Surveyed, Walked},
};
use self::{
    plan::{Plan, PlannedSource},
    read::{FileContent, KeptFile},
};
use crate::{
    AttachError, Context, Declared, Delivered, Notice, Resolved, Source, context::Tolerated,
    place::Identity,
};

/// Resolves files, directories and globs, inside the workspace and outside.
///
/// Directories and globs respect `.gitignore`, `.ignore`, `.jpignore` and `.git/info/exclude`, from
/// the root of the repository or workspace on. They never enter `.git`, `.hg`, `.jj`, `.jp` and
/// `.svn`. A link to a file is followed if the same rules allow the target. Links to directories
/// are not followed.
///
/// A directory or glob leaves out files that look like they hold secrets, by their name (`.env`,
/// `id_rsa`) or because they are private keys, each with a [`Notice::SecretFile`].
///
/// None of these rules applies to an explicitly named file or directory.
///
/// Does not read files that the [`ContentStore`](crate::ContentStore) knows. Any other file costs
/// five system calls: stat, open, read, fstat, close. Each thread holds the content of one file.
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    refuse_only_excludes(declared)?;
    let plan = plan::plan(declared, context)?;
    let inspected = inspect::inspect(&plan.files, declared, context)?;
    inspect::check_total(&inspected, context)?;
    let contents = read::read(&plan.files, inspected, declared, context)?;
    assemble(plan, contents, declared, context)
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

/// Assembles the result from the plan and the contents of its files.
fn assemble(
    plan: Plan,
    contents: Vec<Tolerated<FileContent>>,
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let mut resolved = Resolved {
        notices: plan.notices,
        resources: Vec::with_capacity(contents.len()),
        ..Resolved::default()
    };
    let mut outcomes = Vec::with_capacity(contents.len());
    let mut paths = Vec::with_capacity(contents.len());
    for (file, content) in plan.files.into_iter().zip(contents) {
        outcomes.push(resolved.add_file(file.identity, content));
        paths.push(file.path);
    }
    for (index, (declared, source)) in declared.iter().zip(plan.sources).enumerate() {
        let Some(source) = source else { continue };
        let files = match context
            .unavailable
            .tolerate(without_keys(source, &outcomes, declared))?
        {
            Ok(files) => files,
            Err(error) => {
                resolved.notices.push(Notice::Skipped(error));
                continue;
            }
        };
        match &declared.declaration {
            Some(declaration) => resolved.deliver(index, declaration, &files, &outcomes),
            None => {
                for file in files {
                    let declaration = context.place.declaration(&paths[file]);
                    let declaration = declaration.expect("a planned path is UTF-8: it has a URI");
                    resolved.deliver(index, &declaration, &[file], &outcomes);
                }
            }
        }
    }
    // Two directories outside the workspace may declare the same file.
    let mut seen = HashSet::new();
    resolved
        .delivered
        .retain(|delivered| seen.insert(delivered.declaration.clone()));
    Ok(resolved)
}

/// The outcome of reading a planned file.
enum FileOutcome {
    /// It is the resource with this index.
    Resource { index: usize, is_private_key: bool },
    /// It is a private key of this name and was left out.
    LeftOut(String),
    /// It failed, which is tolerated.
    Skipped,
}

/// Removes private keys from the files of a directory or glob. Fails if no file is left, unless
/// another declaration names one of the keys.
fn without_keys(
    source: PlannedSource,
    outcomes: &[FileOutcome],
    declared: &Declared,
) -> Result<Vec<usize>, AttachError> {
    let PlannedSource { mut files, is_walk } = source;
    let (mut left_out, mut named) = (None, false);
    files.retain(|file| match &outcomes[*file] {
        FileOutcome::LeftOut(name) => {
            left_out = left_out.or(Some(name));
            false
        }
        // Another declaration names the key, so it is a resource, but not one of this directory.
        FileOutcome::Resource {
            is_private_key: true,
            ..
        } if is_walk => {
            named = true;
            false
        }
        FileOutcome::Resource { .. } | FileOutcome::Skipped => true,
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
    /// Adds the content of a file, or the notice that it is left out.
    fn add_file(&mut self, identity: Identity, content: Tolerated<FileContent>) -> FileOutcome {
        match content {
            Ok(FileContent::Kept(kept)) => {
                let (index, is_private_key) = (self.resources.len(), kept.is_private_key);
                self.add_resource(identity, kept);
                FileOutcome::Resource {
                    index,
                    is_private_key,
                }
            }
            Ok(FileContent::LeftOut) => {
                let name = identity.name;
                self.notices.push(Notice::SecretFile { name: name.clone() });
                FileOutcome::LeftOut(name)
            }
            Err(error) => {
                self.notices.push(Notice::Skipped(error));
                FileOutcome::Skipped
            }
        }
    }

    fn add_resource(&mut self, identity: Identity, kept: KeptFile) {
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

    /// Records the resources of a declaration, unless all its files were skipped.
    fn deliver(
        &mut self,
        declared: usize,
        declaration: &str,
        files: &[usize],
        outcomes: &[FileOutcome],
    ) {
        let resources: Vec<usize> = files
            .iter()
            .filter_map(|file| match outcomes[*file] {
                FileOutcome::Resource { index, .. } => Some(index),
                FileOutcome::LeftOut(_) | FileOutcome::Skipped => None,
            })
            .collect();
        if resources.is_empty() && !files.is_empty() {
            return;
        }
        self.delivered.push(Delivered {
            declared,
            declaration: declaration.to_owned(),
            resources,
        });
    }
}
