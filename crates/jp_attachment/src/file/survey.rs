//! What declarations of files stand for, with no file opened.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use super::{
    ignored::IgnoreRules,
    inspect::{self, Inspected},
    plan::{self, Plan},
    read::last_modified,
    walk::{Found, Scope, Walk},
};
use crate::{
    AttachError, Context, Declared, Exclude, Glob, IgnoreRule, Limits, Notice, Nowhere, Place,
    Source, Unavailable,
};

/// A directory or a glob, with what is excluded of it: what a walk goes through.
///
/// It answers for one path as the whole walk would, at the cost of listing the directories on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    declared: Declared,
    excludes: Arc<[Exclude]>,
}

/// What a declaration stands for at the moment.
#[derive(Debug, Default)]
pub struct Survey {
    /// The files, in the order in which they would be attached.
    pub files: Vec<Surveyed>,
    /// What can't be had, and what else a person should know.
    pub notices: Vec<Notice>,
    /// Files and directories, some of which may not be there: while none of them changes, the survey is what it was.
    pub depends_on: BTreeSet<PathBuf>,
}

/// A file of a [`Survey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surveyed {
    /// The canonical path.
    pub path: PathBuf,
    /// The path it was found at: that of a link, or the same.
    pub found_at: PathBuf,
    /// The canonical URI.
    pub uri: String,
    /// Its length.
    pub size: u64,
    /// When it was changed last, as RFC 3339 has it.
    pub last_modified: Option<String>,
}

/// An entry of a directory that a walk goes through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// The canonical path: that of a link's target.
    pub path: PathBuf,
    /// Whether it is a directory that is gone through too.
    pub is_directory: bool,
}

/// Why a walk does not give what is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOut {
    /// There is nothing of that name, as it is spelt.
    Missing,
    /// It is a directory, a pipe or a device.
    NotAFile,
    /// It is in a directory that is never entered.
    NeverEntered,
    /// It is behind a link to a directory.
    DirectoryLink,
    /// It is a link that leads out of the workspace.
    LeadsOut,
    /// It is ignored.
    Ignored(IgnoreRule),
    /// Its name is that of a file that holds secrets.
    Secret,
    /// Something excludes it, or the glob does not match it.
    NotSelected,
}

impl Survey {
    /// Finds the files that a declaration of a file, a directory or a glob stands for; what is unavailable is a
    /// notice.
    ///
    /// # Errors
    ///
    /// More files or bytes than the limits allow.
    pub fn of(
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
        survey.depend(declared, &plan, place);
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

    fn depend(&mut self, declared: &Declared, plan: &Plan, place: &Place) {
        let Some((base, _)) = declared.source.walked() else {
            return;
        };
        self.depends_on.insert(base.to_owned());
        self.depends_on.extend(IgnoreRules::files(base, place));
        for directory in &plan.directories {
            self.depends_on.insert(directory.clone());
            self.depends_on.extend(rules_in(directory));
        }
        for path in &plan.links {
            let elsewhere = path
                .parent()
                .filter(|parent| !self.depends_on.contains(*parent));
            let rules = elsewhere.map(|parent| IgnoreRules::files(parent, place));
            self.depends_on.extend(rules.into_iter().flatten());
            self.depends_on.insert(path.clone());
        }
        self.depends_on
            .extend(plan.files.iter().map(|file| file.path.clone()));
    }
}

/// Returns the ignore files of a directory that was gone through. That one comes to be there is a change of the
/// directory, but for what is in its `.git`.
fn rules_in(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let is_watched = |file: &PathBuf| file.parent() != Some(directory) || file.exists();
    IgnoreRules::names(directory).into_iter().filter(is_watched)
}

impl Walked {
    /// Takes a declaration of a directory or a glob, and those of what is left out of it.
    #[must_use]
    pub fn new(declared: Declared, excludes: &[Declared]) -> Self {
        let exclude = |declared: &Declared| match &declared.source {
            Source::Exclude(exclude) => Some(exclude.clone()),
            _ => None,
        };
        Self {
            declared,
            excludes: excludes.iter().filter_map(exclude).collect(),
        }
    }

    /// Returns the canonical path of the file that a walk finds at `path`, which is absolute.
    ///
    /// # Errors
    ///
    /// Why a walk does not give it. That a file is a private key is not seen: it is not opened.
    pub fn find(&self, path: &Path, place: &Place) -> Result<PathBuf, LeftOut> {
        let mut found = self.walk(Scope::To(path), place).ok_or(LeftOut::Missing)?;
        match found.files.iter().position(|file| file.place() == path) {
            Some(index) => Ok(found.files.swap_remove(index).path),
            None => Err(self.left_out(path, &found)),
        }
    }

    /// Returns what a directory holds of what a walk gives and goes through, by name; nothing where it does not go
    /// through the directory.
    #[must_use]
    pub fn names(&self, directory: &Path, place: &Place) -> Vec<Offered> {
        let found = self
            .walk(Scope::Within(directory), place)
            .unwrap_or_default();
        let offered = |found_at: &Path, path: &Path, is_directory| {
            let is_in = found_at.parent() == Some(directory);
            let name = found_at.file_name().filter(|_| is_in)?.to_str()?.to_owned();
            Some(Offered {
                name,
                path: path.to_owned(),
                is_directory,
            })
        };
        let files = found
            .files
            .iter()
            .filter_map(|file| offered(file.place(), &file.path, false));
        let directories = found
            .directories
            .iter()
            .filter_map(|path| offered(path, path, true));
        let mut names: Vec<_> = files.chain(directories).collect();
        names.sort();
        names
    }

    /// Walks as far as the scope says; finds nothing where that fails.
    fn walk(&self, scope: Scope<'_>, place: &Place) -> Option<Found> {
        let (base, glob) = self.declared.source.walked()?;
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

    fn left_out(&self, path: &Path, found: &Found) -> LeftOut {
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
            .walked()
            .and_then(|(base, _)| path.strip_prefix(base).ok());
        let is_closed = || below.is_some_and(|below| below.iter().any(super::is_never_entered));
        let is_directory = found.directories.iter().any(|directory| directory == path);
        let is_there = || std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        match noticed {
            Some(left_out) => left_out,
            None if is_directory => LeftOut::NotAFile,
            None if is_closed() => LeftOut::NeverEntered,
            None if found.excluded > 0 || (self.declared.is_glob() && is_there()) => {
                LeftOut::NotSelected
            }
            None => LeftOut::Missing,
        }
    }
}

impl Declared {
    fn is_glob(&self) -> bool {
        matches!(self.source, Source::Glob(_))
    }
}

impl Source {
    /// Returns the file that is named outright, or what a walk starts at.
    #[must_use]
    pub fn base(&self) -> Option<&Path> {
        self.walked().map(|(base, _)| base)
    }

    /// Returns what a walk starts at, and what a file must match.
    fn walked(&self) -> Option<(&Path, Option<&Glob>)> {
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
