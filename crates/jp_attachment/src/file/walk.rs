use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::{self, FileType},
    path::{Path, PathBuf},
};

use super::{
    ignore_rules::{IgnoreRules, is_never_entered},
    link_targets::LinkTargets,
};
use crate::{
    AttachError, Context, Exclude, Glob, IgnoreRule, Notice, canonical_path, place::with_slashes,
    secret, special_file::special_file,
};

/// The most entries that are read to find an example of an ignored file. An ignored directory, such
/// as `node_modules`, can be huge.
const EXAMPLE_BUDGET: usize = 10_000;

/// Finds the files below a directory.
pub(super) struct Walk<'a> {
    /// The input, for messages.
    pub(super) input: &'a str,
    /// The canonical directory.
    pub(super) base: &'a Path,
    /// Whether links may lead out of the workspace. They may not if the declaration came with it.
    pub(super) is_trusted: bool,
    /// The pattern that files must match.
    pub(super) glob: Option<&'a Glob>,
    pub(super) excludes: &'a [&'a Exclude],
    /// Canonical paths that are attached by name, even if the walk leaves them out.
    pub(super) named: &'a HashSet<&'a OsStr>,
    pub(super) context: &'a Context<'a>,
    /// The part of the tree that is walked.
    pub(super) scope: Scope<'a>,
}

/// The part of a tree that is walked. The result for a path does not depend on it.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    Whole,
    /// The directories on the way to this path.
    To(&'a Path),
    /// The entries of this directory, and the directories on the way to it.
    Within(&'a Path),
}

/// The result of a walk.
#[derive(Default)]
pub(super) struct WalkResult {
    /// Files, sorted by the bytes of the path they were found at.
    pub(super) files: Vec<FoundFile>,
    pub(super) notices: Vec<Notice>,
    /// The names of files that were left out because their names are those of secrets.
    pub(super) secrets: Vec<String>,
    /// The number of files that were left out but are explicitly named, so that another declaration
    /// has them.
    pub(super) left_to_others: usize,
    /// The directories that were walked, or would have been without the scope.
    pub(super) directories: Vec<PathBuf>,
    /// The links that match, and the files that they lead to.
    pub(super) links: Vec<PathBuf>,
    pub(super) ignored: Vec<IgnoredPath>,
    /// The first link into a directory that no walk enters.
    closed: Option<String>,
    pub(super) excluded: usize,
}

pub(super) struct FoundFile {
    /// The canonical path.
    pub(super) path: PathBuf,
    /// The path of the link that leads to it, if there is one.
    pub(super) link: Option<PathBuf>,
}

pub(super) struct IgnoredPath {
    path: PathBuf,
    is_directory: bool,
    pub(super) rule: IgnoreRule,
}

struct Entry {
    name: OsString,
    kind: FileType,
}

impl Walk<'_> {
    /// Fails if a walk has found nothing.
    pub(super) fn check(&self, found: WalkResult) -> Result<WalkResult, AttachError> {
        if found.files.is_empty() && !found.has_skipped() && found.left_to_others == 0 {
            return Err(self.nothing_found(found));
        }
        Ok(found)
    }

    /// Walks. Fails if there are more files than the limits allow, but not if there are none.
    pub(super) fn find(&self) -> Result<WalkResult, AttachError> {
        let mut found = WalkResult::default();
        let (rules, ignoring) = IgnoreRules::above(self.base, self.context.place);
        // An explicitly named directory is walked even if it is ignored. The base of a glob is not
        // named.
        match ignoring.filter(|_| self.glob.is_some()) {
            _ if self.excludes_tree_of(self.base, true) => found.excluded += 1,
            Some(rule) => found.ignored.push(IgnoredPath {
                path: self.base.to_owned(),
                is_directory: true,
                rule,
            }),
            None => {
                let targets = LinkTargets::new(self.base, self.context.place);
                Walker {
                    walk: self,
                    rules,
                    targets,
                    found: &mut found,
                }
                .run()?;
            }
        }
        found
            .files
            .sort_by(|left, right| left.path_bytes().cmp(right.path_bytes()));
        Ok(found)
    }

    /// Returns whether a file matches the glob, if there is one.
    fn selects(&self, path: &Path) -> bool {
        let relative = path.strip_prefix(self.base);
        self.glob
            .is_none_or(|glob| relative.is_ok_and(|relative| glob.matches(relative)))
    }

    /// Returns whether an exclude matches `path` or a directory that it is in.
    fn excludes_tree_of(&self, path: &Path, is_directory: bool) -> bool {
        self.excludes
            .iter()
            .any(|exclude| exclude.covers(path, is_directory))
    }

    /// Returns the number of levels below the base that may have matches.
    fn max_depth(&self) -> usize {
        self.glob.map_or(usize::MAX, Glob::depth)
    }

    /// Returns the error of a walk without files: the most specific reason that is known.
    fn nothing_found(&self, found: WalkResult) -> AttachError {
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
                true => self.find_example(&ignored.path, &mut budget),
                false => Some(ignored.path.clone()),
            }?;
            Some((
                self.context.place.display_path(&example),
                ignored.rule.clone(),
            ))
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

    /// Finds a file in an ignored directory that would have been attached.
    fn find_example(&self, directory: &Path, budget: &mut usize) -> Option<PathBuf> {
        for entry in entries(directory).ok()? {
            *budget = budget.checked_sub(1)?;
            let path = directory.join(&entry.name);
            let example = match entry.kind.is_dir() {
                true if is_never_entered(&entry.name) => None,
                true => self.find_example(&path, budget),
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
    /// Returns whether the entry `name` of `directory` is in the scope.
    fn includes(self, directory: &Path, name: &OsStr) -> bool {
        match self {
            Self::Whole => true,
            Self::Within(path) if path == directory => true,
            Self::To(path) | Self::Within(path) => {
                let rest = path.strip_prefix(directory).ok();
                rest.and_then(|rest| rest.iter().next()) == Some(name)
            }
        }
    }

    /// Returns whether a directory is walked.
    fn enters(self, directory: &Path) -> bool {
        match self {
            Self::Whole => true,
            Self::To(path) => path != directory,
            Self::Within(path) => path.starts_with(directory),
        }
    }
}

/// A running walk.
struct Walker<'a> {
    walk: &'a Walk<'a>,
    rules: IgnoreRules<'a>,
    targets: LinkTargets<'a>,
    found: &'a mut WalkResult,
}

/// A directory that is being walked.
struct Level {
    directory: PathBuf,
    entries: std::vec::IntoIter<Entry>,
    has_rules: bool,
}

impl Walker<'_> {
    /// Walks the base. Without recursion, because a tree can be deeper than the stack.
    fn run(&mut self) -> Result<(), AttachError> {
        let mut levels: Vec<Level> = self.enter(self.walk.base.to_owned())?.into_iter().collect();
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
            let Some(directory) = self.add_entry(path, &entry, depth)? else {
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

    /// Reads a directory. Returns `None` if it is unreadable and that is tolerated.
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
        // After the rules are read, because ignore files are not in the scope of a path.
        entries.retain(|entry| self.walk.scope.includes(&directory, &entry.name));
        Ok(Some(Level {
            directory,
            entries: entries.into_iter(),
            has_rules,
        }))
    }

    /// Adds an entry of a directory. Returns its path if it is a directory to walk.
    fn add_entry(
        &mut self,
        path: PathBuf,
        entry: &Entry,
        depth: usize,
    ) -> Result<Option<PathBuf>, AttachError> {
        let is_directory = entry.kind.is_dir();
        let is_possible = if is_directory {
            depth < self.walk.max_depth() && !is_never_entered(&entry.name)
        } else {
            // `.git` is a file in a linked worktree. Whether a link matches depends on its target.
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
                self.found.ignored.push(IgnoredPath {
                    path,
                    is_directory,
                    rule,
                });
            }
        } else if is_directory {
            return Ok(Some(path));
        } else if entry.kind.is_symlink() {
            self.add_link(path, depth)?;
        } else if let Some(kind) = special_file(entry.kind) {
            self.found.notices.push(Notice::Special {
                name: self.name(&path),
                kind,
            });
        } else if secret::has_secret_name(&path) {
            self.leave_out_secret(&path, &path);
        } else {
            self.add_file(FoundFile { path, link: None })?;
        }
        Ok(None)
    }

    /// Leaves out a file whose name is that of a secret.
    fn leave_out_secret(&mut self, found_at: &Path, path: &Path) {
        if !self.leave_to_others(path) {
            self.found.secrets.push(self.name(found_at));
        }
    }

    /// Counts a left out file if another declaration names it. Returns whether one does, so that
    /// there is nothing to report.
    fn leave_to_others(&mut self, path: &Path) -> bool {
        let is_named = self.walk.named.contains(path.as_os_str());
        self.found.left_to_others += usize::from(is_named);
        is_named
    }

    /// Adds the target of a link if it is a file, or the notice that the link is not followed.
    fn add_link(&mut self, path: PathBuf, depth: usize) -> Result<(), AttachError> {
        let is_selected = self.walk.selects(&path);
        self.found.links.extend(is_selected.then(|| path.clone()));
        let name = self.name(&path);
        let notice = match fs::metadata(&path) {
            Ok(target) if target.is_file() && is_selected => return self.add_target(path),
            // The glob could have matched files below the link.
            Ok(target) if target.is_dir() && depth < self.walk.max_depth() => {
                Notice::DirectoryLink { name }
            }
            Ok(target) if is_selected => match special_file(target.file_type()) {
                Some(kind) => Notice::Special { name, kind },
                None => return Ok(()),
            },
            Err(_) if is_selected => Notice::BrokenLink { name },
            _ => return Ok(()),
        };
        self.found.notices.push(notice);
        Ok(())
    }

    /// Adds the file that a link leads to, if all rules of the walk allow it.
    fn add_target(&mut self, link: PathBuf) -> Result<(), AttachError> {
        let target = canonical_path(&link)
            .map_err(|error| AttachError::io(self.walk.input, "resolve", &link, error))?;
        self.found.links.push(target.clone());
        if self.walk.excludes_tree_of(&target, false) {
            self.found.excluded += 1;
            return Ok(());
        }
        // Before all rules that look at the target, so that a declaration of the workspace reveals
        // nothing about files outside.
        let place = self.walk.context.place;
        let leads_out = place.relative(&target).is_none() && !target.starts_with(self.walk.base);
        if leads_out && !self.walk.is_trusted {
            self.found.notices.push(Notice::LeftOut {
                name: self.name(&link),
            });
            return Ok(());
        }
        if let Some(directory) = self.targets.never_entered(&target) {
            self.leave_out_closed(&link, &target, directory);
            return Ok(());
        }
        if secret::has_secret_name(&link) || secret::has_secret_name(&target) {
            self.leave_out_secret(&link, &target);
            return Ok(());
        }
        if let Some(rule) = self.targets.ignoring(&target) {
            self.leave_out_ignored(link, &target, rule);
            return Ok(());
        }
        if leads_out {
            let uri = place.declaration(&target).ok();
            self.found.notices.push(Notice::LeavesWorkspace {
                name: self.name(&link),
                uri,
            });
        }
        self.add_file(FoundFile {
            path: target,
            link: Some(link),
        })
    }

    /// Leaves out a link into a directory that no walk enters.
    fn leave_out_closed(&mut self, link: &Path, target: &Path, directory: &OsStr) {
        if !self.leave_to_others(target) {
            let (name, directory) = (self.name(link), directory.to_string_lossy().into_owned());
            self.found.closed.get_or_insert_with(|| name.clone());
            self.found
                .notices
                .push(Notice::ClosedLink { name, directory });
        }
    }

    /// Leaves out a link to an ignored file.
    fn leave_out_ignored(&mut self, link: PathBuf, target: &Path, rule: IgnoreRule) {
        if !self.leave_to_others(target) {
            self.found.notices.push(Notice::IgnoredLink {
                name: self.name(&link),
            });
            self.found.ignored.push(IgnoredPath {
                path: link,
                is_directory: false,
                rule,
            });
        }
    }

    fn add_file(&mut self, file: FoundFile) -> Result<(), AttachError> {
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

    /// Returns the name of `path` in notices.
    fn name(&self, path: &Path) -> String {
        let place = self.walk.context.place;
        let relative = place
            .relative(path)
            .or(path.strip_prefix(self.walk.base).ok())
            .unwrap_or(path);
        with_slashes(relative).unwrap_or_else(|_| relative.to_string_lossy().into_owned())
    }
}

impl WalkResult {
    /// Returns whether something was left out that is reported already, so that it is no error if
    /// nothing else was found.
    fn has_skipped(&self) -> bool {
        self.notices
            .iter()
            .any(|notice| matches!(notice, Notice::Skipped(_) | Notice::LeftOut { .. }))
    }
}

impl FoundFile {
    /// Returns the path it was found at.
    pub(super) fn found_at(&self) -> &Path {
        self.link.as_ref().unwrap_or(&self.path)
    }

    fn path_bytes(&self) -> &[u8] {
        self.found_at().as_os_str().as_encoded_bytes()
    }
}

/// Lists a directory, sorted by name.
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
