//! Finds the files of declarations without opening them.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use super::{
    ignore_rules::IgnoreRules,
    inspect::{self, Inspected},
    plan::{self, Plan},
    read::last_modified,
    walk::{Scope, Walk, WalkResult},
};
use crate::{
    AttachError, Context, Declared, Exclude, Glob, IgnoreRule, Limits, Notice, Nowhere, Place,
    Source, Unavailable,
};

/// A directory or a glob with its excludes.
///
/// It can answer for one path as the whole walk would, and lists only the directories on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    declared: Declared,
    excludes: Arc<[Exclude]>,
}

/// The current files of a declaration.
#[derive(Debug, Default)]
pub struct Survey {
    /// The files, in the order in which they would be attached.
    pub files: Vec<Surveyed>,
    /// Errors of unavailable files, and other warnings.
    pub notices: Vec<Notice>,
    /// Paths of files and directories that may not exist. While none of them changes, the survey
    /// stays valid.
    pub depends_on: BTreeSet<PathBuf>,
}

/// A file of a [`Survey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surveyed {
    /// The canonical path.
    pub path: PathBuf,
    /// The path it was found at: that of a link, or the canonical path.
    pub found_at: PathBuf,
    /// The canonical URI.
    pub uri: String,
    /// Its length in bytes.
    pub size: u64,
    /// The time of its last change (RFC 3339).
    pub last_modified: Option<String>,
}

/// An entry of a directory that a walk finds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// The canonical path; for a link, that of its target.
    pub path: PathBuf,
    /// Whether it is a directory, which the walk enters.
    pub is_directory: bool,
}

/// A reason why a walk leaves out a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOut {
    /// Nothing has this name, with this case.
    Missing,
    /// It is a directory, a pipe or a device.
    NotAFile,
    /// It is in a directory that no walk enters.
    NeverEntered,
    /// It is behind a link to a directory.
    DirectoryLink,
    /// It is a link that leads out of the workspace.
    LeadsOut,
    /// It is ignored.
    Ignored(IgnoreRule),
    /// Its name is that of a file that holds secrets.
    Secret,
    /// An exclude matches it, or the glob does not.
    NotSelected,
}

impl Survey {
    /// Finds the files of a declaration of a file, a directory or a glob. Unavailable files are
    /// notices.
    ///
    /// # Errors
    ///
    /// More files or bytes than the limits allow.
    pub fn take(
        declared: &Declared,
        excludes: &[Declared],
        place: &Place,
        limits: Limits,
    ) -> Result<Self, AttachError> {
        let context = context(place, limits);
        let all: Vec<_> = std::iter::once(declared).chain(excludes).cloned().collect();
        let plan = plan::plan(&all, &context)?;
        let inspected = inspect::inspect(&plan.files, &all, &context)?;
        inspect::check_total(&inspected, &context)?;
        let mut survey = Self::default();
        survey.record_dependencies(declared, &plan, place);
        survey.notices = plan.notices;
        for (file, inspected) in plan.files.into_iter().zip(inspected) {
            match inspected {
                Ok(Inspected { stamp, .. }) => survey.files.push(Surveyed {
                    path: file.path,
                    found_at: file.found_at,
                    uri: file.identity.uri,
                    size: stamp.size,
                    last_modified: last_modified(&stamp),
                }),
                Err(error) => survey.notices.push(Notice::Skipped(error)),
            }
        }
        Ok(survey)
    }

    /// Records the paths that the survey depends on.
    fn record_dependencies(&mut self, declared: &Declared, plan: &Plan, place: &Place) {
        let Some((base, _)) = declared.source.walk_root() else {
            return;
        };
        self.depends_on.insert(base.to_owned());
        self.depends_on.extend(IgnoreRules::files(base, place));
        for directory in &plan.directories {
            self.depends_on.insert(directory.clone());
            self.depends_on.extend(watched_rule_files(directory));
        }
        for path in &plan.links {
            // The target of a link may be in another tree with other ignore files.
            if let Some(parent) = path.parent()
                && !self.depends_on.contains(parent)
            {
                self.depends_on.extend(IgnoreRules::files(parent, place));
            }
            self.depends_on.insert(path.clone());
        }
        self.depends_on
            .extend(plan.files.iter().map(|file| file.path.clone()));
    }
}

/// Returns the ignore files of a walked directory that have to be watched. A new file changes the
/// directory, which is watched already, unless it is in `.git`.
fn watched_rule_files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    IgnoreRules::own_files(directory)
        .into_iter()
        .filter(move |file| file.parent() != Some(directory) || file.exists())
}

impl Walked {
    /// Creates a source from the declaration of a directory or a glob, and those of its excludes.
    #[must_use]
    pub fn new(declared: Declared, excludes: &[Declared]) -> Self {
        let excludes = excludes
            .iter()
            .filter_map(|exclude| exclude.source.as_exclude())
            .cloned()
            .collect();
        Self { declared, excludes }
    }

    /// Returns the canonical path of the file that a walk finds at `path`, which is absolute.
    ///
    /// # Errors
    ///
    /// The reason why a walk leaves it out. A private key is not recognised, because it is not
    /// opened.
    pub fn find(&self, path: &Path, place: &Place) -> Result<PathBuf, LeftOut> {
        let mut found = self.walk(Scope::To(path), place).ok_or(LeftOut::Missing)?;
        match found.files.iter().position(|file| file.found_at() == path) {
            Some(index) => Ok(found.files.swap_remove(index).path),
            None => Err(self.reason(path, &found)),
        }
    }

    /// Returns the entries of a directory that a walk finds or enters, sorted by name. There are
    /// none if the walk does not enter the directory.
    #[must_use]
    pub fn names(&self, directory: &Path, place: &Place) -> Vec<Offered> {
        let found = self
            .walk(Scope::Within(directory), place)
            .unwrap_or_default();
        let files = found
            .files
            .iter()
            .map(|file| (file.found_at(), &file.path, false));
        let directories = found
            .directories
            .iter()
            .map(|path| (path.as_path(), path, true));
        let mut entries: Vec<_> = files
            .chain(directories)
            .filter(|(found_at, ..)| found_at.parent() == Some(directory))
            .filter_map(|(found_at, path, is_directory)| {
                Some(Offered {
                    name: found_at.file_name()?.to_str()?.to_owned(),
                    path: path.clone(),
                    is_directory,
                })
            })
            .collect();
        entries.sort();
        entries
    }

    /// Walks within the scope. Returns `None` if that fails.
    fn walk(&self, scope: Scope<'_>, place: &Place) -> Option<WalkResult> {
        let (base, glob) = self.declared.source.walk_root()?;
        let context = context(
            place,
            Limits {
                max_files: usize::MAX,
                ..Limits::default()
            },
        );
        let excludes: Vec<&Exclude> = self.excludes.iter().collect();
        let walk = Walk {
            input: &self.declared.input,
            base,
            is_trusted: self.declared.is_trusted,
            glob,
            excludes: &excludes,
            named: &HashSet::new(),
            context: &context,
            scope,
        };
        walk.find().ok()
    }

    /// Returns the reason why a walk that was limited to `path` has not found it.
    fn reason(&self, path: &Path, found: &WalkResult) -> LeftOut {
        if let Some(ignored) = found.ignored.first() {
            return LeftOut::Ignored(ignored.rule.clone());
        }
        if !found.secrets.is_empty() {
            return LeftOut::Secret;
        }
        let noticed = found.notices.iter().find_map(|notice| match notice {
            Notice::LeftOut { .. } => Some(LeftOut::LeadsOut),
            Notice::DirectoryLink { .. } => Some(LeftOut::DirectoryLink),
            Notice::ClosedLink { .. } => Some(LeftOut::NeverEntered),
            Notice::Special { .. } => Some(LeftOut::NotAFile),
            _ => None,
        });
        let below = self
            .declared
            .source
            .walk_root()
            .and_then(|(base, _)| path.strip_prefix(base).ok());
        if let Some(reason) = noticed {
            return reason;
        }
        if found.directories.iter().any(|directory| directory == path) {
            return LeftOut::NotAFile;
        }
        if below.is_some_and(|below| below.iter().any(super::is_never_entered)) {
            return LeftOut::NeverEntered;
        }
        let is_unmatched = matches!(self.declared.source, Source::Glob(_))
            && std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
        if found.excluded > 0 || is_unmatched {
            return LeftOut::NotSelected;
        }
        LeftOut::Missing
    }
}

impl Source {
    /// Returns the explicitly named file, or the directory that a walk starts at.
    #[must_use]
    pub fn base(&self) -> Option<&Path> {
        self.walk_root().map(|(base, _)| base)
    }

    /// Returns the path that a walk starts at, and the pattern that files must match.
    fn walk_root(&self) -> Option<(&Path, Option<&Glob>)> {
        match self {
            Self::Path(path) => Some((path, None)),
            Self::Glob(glob) => Some((&glob.base, Some(glob))),
            _ => None,
        }
    }
}

fn context(place: &Place, limits: Limits) -> Context<'_> {
    Context {
        limits,
        unavailable: Unavailable::Skip,
        ..Context::new(place, &Nowhere, SystemTime::now())
    }
}
