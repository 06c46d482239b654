use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::{self, FileType},
    path::{Path, PathBuf},
};

use super::{ignored::IgnoreRules, linked::Linked};
use crate::{
    AttachError, Context, Exclude, Glob, IgnoreRule, Notice, canonical_path, place::slashed,
    secret, special::special_file,
};

/// Directories that nothing is attached from, unless they are named outright.
const NEVER_ENTERED: [&str; 5] = [".git", ".hg", ".jj", ".jp", ".svn"];

/// How many entries are looked at for an example of what is ignored.
const EXAMPLE_BUDGET: usize = 10_000;

/// Finds the files below a directory.
pub(super) struct Walk<'a> {
    /// What it is called in messages.
    pub(super) input: &'a str,
    /// The canonical directory.
    pub(super) base: &'a Path,
    /// Whether links may lead out of the workspace: what comes with it may not.
    pub(super) is_trusted: bool,
    /// What a file must match.
    pub(super) glob: Option<&'a Glob>,
    pub(super) excludes: &'a [&'a Exclude],
    /// Canonical paths that are attached because they are named outright.
    pub(super) named: &'a HashSet<&'a OsStr>,
    pub(super) context: &'a Context<'a>,
    /// How much of what is below the directory is looked at.
    pub(super) scope: Scope<'a>,
}

/// How much of a walk is done: what it says of a path does not depend on that.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    Whole,
    /// The way to this path.
    To(&'a Path),
    /// What this directory holds, and the way to it.
    Within(&'a Path),
}

/// What a walk found.
#[derive(Default)]
pub(super) struct Found {
    /// Files, sorted by the bytes of the path they were found at.
    pub(super) files: Vec<FoundFile>,
    pub(super) notices: Vec<Notice>,
    /// Names of files that were left out as their names tell secrets.
    pub(super) secrets: Vec<String>,
    /// Number of files that a walk leaves out and that are named outright: what names them gives them.
    pub(super) left_to_others: usize,
    /// Directories that were gone through, or that would have been outside of the scope.
    pub(super) directories: Vec<PathBuf>,
    /// Links that might give a file, and the files that they lead to.
    pub(super) links: Vec<PathBuf>,
    pub(super) ignored: Vec<Ignored>,
    /// The first link to what no walk enters.
    closed: Option<String>,
    pub(super) excluded: usize,
}

pub(super) struct FoundFile {
    /// The canonical path.
    pub(super) path: PathBuf,
    /// The path it was found at, where that is a link.
    pub(super) link: Option<PathBuf>,
}

pub(super) struct Ignored {
    path: PathBuf,
    is_directory: bool,
    pub(super) rule: IgnoreRule,
}

struct Entry {
    name: OsString,
    kind: FileType,
}

impl Walk<'_> {
    /// Fails where a walk has found nothing.
    pub(super) fn check(&self, found: Found) -> Result<Found, AttachError> {
        let is_settled = !found.files.is_empty() || found.has_skipped() || found.left_to_others > 0;
        if is_settled {
            Ok(found)
        } else {
            Err(self.nothing(found))
        }
    }

    /// Walks. Fails where there is more than may be attached; that nothing is found is no failure.
    pub(super) fn find(&self) -> Result<Found, AttachError> {
        let mut found = Found::default();
        let (rules, ignoring) = IgnoreRules::above(self.base, self.context.place);
        // A directory that is named outright is walked, even if ignored; what a glob starts with is not that.
        match ignoring.filter(|_| self.glob.is_some()) {
            _ if self
                .excludes
                .iter()
                .any(|exclude| exclude.covers(self.base, true)) =>
            {
                found.excluded += 1
            }
            Some(rule) => found.ignored.push(Ignored {
                path: self.base.to_owned(),
                is_directory: true,
                rule,
            }),
            None => {
                let linked = Linked::new(self.base, self.context.place);
                Walking {
                    walk: self,
                    rules,
                    linked,
                    found: &mut found,
                }
                .run(self.base)?;
            }
        }
        found
            .files
            .sort_by(|left, right| left.found_at().cmp(right.found_at()));
        Ok(found)
    }

    fn selects(&self, path: &Path) -> bool {
        let relative = path.strip_prefix(self.base);
        self.glob
            .is_none_or(|glob| relative.is_ok_and(|relative| glob.matches(relative)))
    }

    fn depth(&self) -> usize {
        self.glob.map_or(usize::MAX, Glob::depth)
    }

    /// Says why nothing is found.
    fn nothing(&self, found: Found) -> AttachError {
        let (input, directory) = (self.input.to_owned(), self.base.to_owned());
        if let Some(example) = found.secrets.into_iter().next() {
            return AttachError::AllSecret { input, example };
        }
        if let Some(example) = found.closed {
            return AttachError::AllClosed { input, example };
        }
        let mut budget = EXAMPLE_BUDGET;
        let example = found.ignored.iter().find_map(|ignored| {
            let example = match ignored.is_directory {
                true => self.example(&ignored.path, &mut budget),
                false => Some(ignored.path.clone()),
            }?;
            Some((self.context.place.shown(&example), ignored.rule.clone()))
        });
        match (example, self.glob) {
            (Some((example, rule)), _) => AttachError::AllIgnored {
                input,
                example,
                rule,
            },
            (None, _) if found.excluded > 0 => AttachError::AllExcluded { input, directory },
            (None, Some(_)) => AttachError::NoMatch { input, directory },
            (None, None) => AttachError::EmptyDirectory { input, directory },
        }
    }

    /// Returns a file in an ignored directory that would have been attached.
    fn example(&self, directory: &Path, budget: &mut usize) -> Option<PathBuf> {
        for entry in entries(directory).ok()? {
            *budget = budget.checked_sub(1)?;
            let path = directory.join(&entry.name);
            let example = match entry.kind.is_dir() {
                true if is_never_entered(&entry.name) => None,
                true => self.example(&path, budget),
                false => Some(path).filter(|path| self.selects(path)),
            };
            if example.is_some() {
                return example;
            }
        }
        None
    }
}

impl Scope<'_> {
    /// Returns whether the entry of this name in `directory` is looked at.
    fn has(self, directory: &Path, name: &OsStr) -> bool {
        match self {
            Self::Whole => true,
            Self::Within(path) if path == directory => true,
            Self::To(path) | Self::Within(path) => {
                let rest = path.strip_prefix(directory).ok();
                rest.and_then(|rest| rest.iter().next()) == Some(name)
            }
        }
    }

    /// Returns whether a directory is gone through.
    fn enters(self, directory: &Path) -> bool {
        match self {
            Self::Whole => true,
            Self::To(path) => path != directory,
            Self::Within(path) => path.starts_with(directory),
        }
    }
}

/// A walk under way.
struct Walking<'a> {
    walk: &'a Walk<'a>,
    rules: IgnoreRules<'a>,
    linked: Linked<'a>,
    found: &'a mut Found,
}

/// A directory that is being walked.
struct Level {
    directory: PathBuf,
    entries: std::vec::IntoIter<Entry>,
    has_rules: bool,
}

impl Walking<'_> {
    /// Walks `base`, without recursion: a tree can be deeper than a stack.
    fn run(&mut self, base: &Path) -> Result<(), AttachError> {
        let mut levels: Vec<Level> = self.enter(base.to_owned())?.into_iter().collect();
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                if level.has_rules {
                    self.rules.leave();
                }
                levels.pop();
                continue;
            };
            let path = level.directory.join(&entry.name);
            let depth = levels.len() - 1;
            let Some(directory) = self.entry(path, &entry, depth)? else {
                continue;
            };
            if self.walk.scope.enters(&directory) {
                levels.extend(self.enter(directory)?);
            } else {
                self.found.directories.push(directory);
            }
        }
        Ok(())
    }

    /// Reads a directory; none where it can't be and that is tolerated.
    fn enter(&mut self, directory: PathBuf) -> Result<Option<Level>, AttachError> {
        self.walk.context.check_cancelled()?;
        let entries = entries(&directory).map_err(|error| {
            AttachError::io(self.walk.input, "read the directory", &directory, error)
        });
        self.found.directories.push(directory.clone());
        let mut entries = match self.walk.context.unavailable.tolerate(entries)? {
            Ok(entries) => entries,
            Err(error) => {
                self.found.notices.push(Notice::Skipped(error));
                return Ok(None);
            }
        };
        let has_rules = self.rules.enter(
            &directory,
            entries.iter().map(|entry| entry.name.as_os_str()),
        );
        entries.retain(|entry| self.walk.scope.has(&directory, &entry.name));
        Ok(Some(Level {
            directory,
            entries: entries.into_iter(),
            has_rules,
        }))
    }

    /// Takes an entry in; returns it if it is a directory to walk.
    fn entry(
        &mut self,
        path: PathBuf,
        entry: &Entry,
        depth: usize,
    ) -> Result<Option<PathBuf>, AttachError> {
        let is_directory = entry.kind.is_dir();
        let is_possible = if is_directory {
            depth < self.walk.depth() && !is_never_entered(&entry.name)
        } else {
            entry.name != ".git" && (entry.kind.is_symlink() || self.walk.selects(&path))
        };
        if !is_possible {
            return Ok(None);
        }
        if self
            .walk
            .excludes
            .iter()
            .any(|exclude| exclude.matches(&path, is_directory))
        {
            self.found.excluded += 1;
        } else if let Some(rule) = self.rules.ignoring(&path, is_directory) {
            if is_directory || self.walk.selects(&path) {
                self.found.ignored.push(Ignored {
                    path,
                    is_directory,
                    rule,
                });
            }
        } else if is_directory {
            return Ok(Some(path));
        } else if entry.kind.is_symlink() {
            self.link(path, depth)?;
        } else if let Some(kind) = special_file(entry.kind) {
            self.found.notices.push(Notice::Special {
                name: self.name(&path),
                kind,
            });
        } else if secret::has_secret_name(&path) {
            self.secret(&path, &path);
        } else {
            self.file(FoundFile { path, link: None })?;
        }
        Ok(None)
    }

    /// Leaves out a file whose name tells secrets.
    fn secret(&mut self, found_at: &Path, path: &Path) {
        if !self.is_named(path) {
            self.found.secrets.push(self.name(found_at));
        }
    }

    /// Returns whether a file that is left out is named outright, and counts it.
    fn is_named(&mut self, path: &Path) -> bool {
        let is_named = self.walk.named.contains(path.as_os_str());
        self.found.left_to_others += usize::from(is_named);
        is_named
    }

    /// Follows a link to a file.
    fn link(&mut self, path: PathBuf, depth: usize) -> Result<(), AttachError> {
        let is_selected = self.walk.selects(&path);
        self.found.links.extend(is_selected.then(|| path.clone()));
        let name = || self.name(&path);
        let notice = match fs::metadata(&path) {
            Ok(target) if target.is_file() && is_selected => return self.target(path),
            Ok(target) if target.is_dir() && depth < self.walk.depth() => {
                Notice::DirectoryLink { name: name() }
            }
            Ok(target) if is_selected => match special_file(target.file_type()) {
                Some(kind) => Notice::Special { name: name(), kind },
                None => return Ok(()),
            },
            Err(_) if is_selected => Notice::BrokenLink { name: name() },
            _ => return Ok(()),
        };
        self.found.notices.push(notice);
        Ok(())
    }

    fn target(&mut self, link: PathBuf) -> Result<(), AttachError> {
        let target = canonical_path(&link);
        let target =
            target.map_err(|error| AttachError::io(self.walk.input, "resolve", &link, error))?;
        self.found.links.push(target.clone());
        if self
            .walk
            .excludes
            .iter()
            .any(|exclude| exclude.covers(&target, false))
        {
            self.found.excluded += 1;
            return Ok(());
        }
        let place = self.walk.context.place;
        let leads_out = place.relative(&target).is_none() && !target.starts_with(self.walk.base);
        if leads_out && !self.walk.is_trusted {
            self.found.notices.push(Notice::LeftOut {
                name: self.name(&link),
            });
            return Ok(());
        }
        if let Some(directory) = self.linked.never_entered(&target) {
            self.closed(&link, &target, directory);
            return Ok(());
        }
        if secret::has_secret_name(&link) || secret::has_secret_name(&target) {
            self.secret(&link, &target);
            return Ok(());
        }
        if let Some(rule) = self.linked.ignoring(&target) {
            self.ignored(link, &target, rule);
            return Ok(());
        }
        if leads_out {
            let uri = place.declaration(&target).ok();
            self.found.notices.push(Notice::LeavesWorkspace {
                name: self.name(&link),
                uri,
            });
        }
        self.file(FoundFile {
            path: target,
            link: Some(link),
        })
    }

    /// Leaves out a link to what no walk enters.
    fn closed(&mut self, link: &Path, target: &Path, directory: &OsStr) {
        if !self.is_named(target) {
            let (name, directory) = (self.name(link), directory.to_string_lossy().into_owned());
            self.found.closed.get_or_insert_with(|| name.clone());
            self.found
                .notices
                .push(Notice::ClosedLink { name, directory });
        }
    }

    /// Leaves out a link to a file that is ignored.
    fn ignored(&mut self, link: PathBuf, target: &Path, rule: IgnoreRule) {
        if !self.is_named(target) {
            self.found.notices.push(Notice::IgnoredLink {
                name: self.name(&link),
            });
            self.found.ignored.push(Ignored {
                path: link,
                is_directory: false,
                rule,
            });
        }
    }

    fn file(&mut self, file: FoundFile) -> Result<(), AttachError> {
        let limit = self.walk.context.limits.max_files;
        if self.found.files.len() == limit {
            return Err(AttachError::TooManyFiles {
                input: self.walk.input.to_owned(),
                limit,
            });
        }
        self.found.files.push(file);
        Ok(())
    }

    /// Returns what a notice calls `path`.
    fn name(&self, path: &Path) -> String {
        let place = self.walk.context.place;
        let relative = place
            .relative(path)
            .or(path.strip_prefix(self.walk.base).ok())
            .unwrap_or(path);
        slashed(relative).unwrap_or_else(|_| relative.to_string_lossy().into_owned())
    }
}

impl Found {
    fn has_skipped(&self) -> bool {
        let is_skip =
            |notice: &Notice| matches!(notice, Notice::Skipped(_) | Notice::LeftOut { .. });
        self.notices.iter().any(is_skip)
    }
}

impl FoundFile {
    /// Returns the path it was found at.
    pub(super) fn place(&self) -> &Path {
        self.link.as_ref().unwrap_or(&self.path)
    }

    fn found_at(&self) -> &[u8] {
        self.place().as_os_str().as_encoded_bytes()
    }
}

/// Returns whether no walk enters a directory of this name: it is a version control system's or jp's own.
#[must_use]
pub fn is_never_entered(name: &OsStr) -> bool {
    NEVER_ENTERED.iter().any(|never| *never == name)
}

/// Lists a directory by name.
fn entries(directory: &Path) -> std::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        entries.push(Entry {
            kind: entry.file_type()?,
            name: entry.file_name(),
        });
    }
    entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}
