mod ignored;
mod inspect;
mod plan;
mod read;
mod walk;

use std::collections::HashSet;

use jp_resource::{Annotations, Resource};

use self::{
    plan::{Plan, Planned},
    read::Kept,
};
use crate::{
    AttachError, Context, Declared, Delivered, Handler, Notice, Resolved, Scheme, Source, Unavailable, glob,
};

/// Resolves files, directories and globs, inside the workspace and outside.
///
/// Directories and globs respect `.gitignore`, `.ignore`, `.jpignore` and `.git/info/exclude`, from the
/// root of the repository or workspace on, and never enter `.git`, `.hg`, `.jj`, `.jp` and `.svn`; what
/// is named outright is attached even if ignored. Links to files are followed, links to directories in a
/// directory are not.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileHandler;

impl Handler for FileHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["file"]
    }

    fn validate(&self, declaration: &str) -> Result<(), AttachError> {
        let input = || declaration.to_owned();
        let Some((Scheme::File, path)) = Scheme::split(declaration) else {
            return Err(AttachError::Unsupported { input: input(), scheme: declaration.to_owned() });
        };
        let path = path.strip_suffix("?exclude").unwrap_or(path);
        let pattern = glob::decode(path).map_err(|source| AttachError::Url { input: input(), source })?;
        glob::compile(&pattern).map_err(|reason| AttachError::InvalidGlob { input: input(), reason })?;
        Ok(())
    }

    /// Reads no file that [`ContentStore::known`](crate::ContentStore::known) knows; for any other
    /// there are five system calls: stat, open, read, fstat, close. A thread holds one file's content.
    fn resolve(&self, declared: &[Declared], context: &Context<'_>) -> Result<Resolved, AttachError> {
        refuse_only_excludes(declared)?;
        let plan = plan::plan(declared, context)?;
        let stamps = inspect::inspect(&plan.files, declared, context)?;
        inspect::check_total(&stamps, context)?;
        let kept = read::read(&plan.files, stamps, declared, context)?;
        Ok(assemble(plan, kept, declared, context))
    }
}

fn refuse_only_excludes(declared: &[Declared]) -> Result<(), AttachError> {
    match declared.first() {
        Some(first) if declared.iter().all(|one| matches!(one.source, Source::Exclude(_))) => {
            Err(AttachError::OnlyExcludes(first.input.clone()))
        }
        _ => Ok(()),
    }
}

/// An error that [`Unavailable`] tolerates, in the place of a value.
type Tolerated<T> = Result<T, AttachError>;

impl Unavailable {
    /// Lets an error stand for a value where it may, and fails with it otherwise.
    pub(crate) fn tolerate<T>(self, result: Result<T, AttachError>) -> Result<Tolerated<T>, AttachError> {
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
    kept: Vec<Tolerated<Kept>>,
    declared: &[Declared],
    context: &Context<'_>,
) -> Resolved {
    let mut resolved = Resolved { notices: plan.notices, ..Resolved::default() };
    let mut indexes = Vec::with_capacity(kept.len());
    let paths: Vec<_> = plan.files.iter().map(|file| file.path.clone()).collect();
    for (file, kept) in plan.files.into_iter().zip(kept) {
        indexes.push(kept.is_ok().then_some(resolved.resources.len()));
        match kept {
            Ok(kept) => resolved.add(file, kept),
            Err(error) => resolved.notices.push(Notice::Skipped(error)),
        }
    }
    for (index, (declared, given)) in declared.iter().zip(plan.given).enumerate() {
        let Some(given) = given else { continue };
        match &declared.declaration {
            Some(declaration) => resolved.deliver(index, declaration, &given, &indexes),
            None => {
                for file in given {
                    let declaration = context.place.declaration(&paths[file]);
                    let declaration = declaration.expect("a planned path is UTF-8: it has a URI");
                    resolved.deliver(index, &declaration, &[file], &indexes);
                }
            }
        }
    }
    let mut seen = HashSet::new();
    resolved.delivered.retain(|delivered| seen.insert(delivered.declaration.clone()));
    resolved
}

impl Resolved {
    fn add(&mut self, file: Planned, kept: Kept) {
        let mut resource = Resource::new(file.identity.uri, kept.blob).with_name(file.identity.name);
        resource.mime_type = Some(kept.mime_type);
        resource.annotations = kept
            .last_modified
            .map(|time| Annotations { last_modified: Some(time), ..Annotations::default() });
        self.totals.files += 1;
        self.totals.bytes += kept.blob.size;
        self.totals.known += usize::from(kept.was_known);
        self.resources.push(resource);
    }

    /// Records what a declaration gave, unless all of it was skipped.
    fn deliver(&mut self, declared: usize, declaration: &str, given: &[usize], indexes: &[Option<usize>]) {
        let resources: Vec<usize> = given.iter().filter_map(|&file| indexes[file]).collect();
        if resources.is_empty() && !given.is_empty() {
            return;
        }
        self.delivered.push(Delivered { declared, declaration: declaration.to_owned(), resources });
    }
}
