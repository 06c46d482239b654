use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::walk::{FoundFile, Scope, Walk, WalkResult};
use crate::{AttachError, Context, Declared, Exclude, Glob, Notice, Source, place::Identity};

/// The files to read, and the declarations that they belong to.
pub(super) struct Plan {
    /// Each file once, in declared order.
    pub(super) files: Vec<PlannedFile>,
    /// The files of each declaration; `None` for an exclude and for a skipped one.
    pub(super) sources: Vec<Option<PlannedSource>>,
    pub(super) notices: Vec<Notice>,
    /// The directories that were walked, including those without files.
    pub(super) directories: Vec<PathBuf>,
    /// The links that were found, and the files that they lead to.
    pub(super) links: Vec<PathBuf>,
}

/// The files of a declaration.
pub(super) struct PlannedSource {
    /// Indexes of the files.
    pub(super) files: Vec<usize>,
    /// Whether they come from a directory or glob, not from an explicit name.
    pub(super) is_walk: bool,
}

/// A file to read.
pub(super) struct PlannedFile {
    /// The canonical path.
    pub(super) path: PathBuf,
    /// The path it was found at: that of a link, or the canonical path.
    pub(super) found_at: PathBuf,
    pub(super) identity: Identity,
    /// The index of the first declaration that it belongs to.
    pub(super) declared: usize,
    /// Whether a declaration names it explicitly.
    pub(super) is_named: bool,
}

/// Finds the files of declarations. Reads directories, but no files.
pub(super) fn plan(declared: &[Declared], context: &Context<'_>) -> Result<Plan, AttachError> {
    let excludes: Vec<&Exclude> = declared
        .iter()
        .filter_map(|one| one.source.as_exclude())
        .collect();
    let own_excludes = declared
        .iter()
        .filter(|one| one.is_trusted)
        .filter_map(|one| one.source.as_exclude())
        .collect();
    let named = declared
        .iter()
        .filter_map(|one| one.source.as_path())
        .map(Path::as_os_str)
        .collect();
    let mut planner = Planner {
        context,
        excludes,
        own_excludes,
        named,
        files: Vec::new(),
        indexes: HashMap::new(),
        secrets: HashSet::new(),
        notices: Vec::new(),
        directories: Vec::new(),
        links: Vec::new(),
    };
    let mut sources = Vec::with_capacity(declared.len());
    for (index, one) in declared.iter().enumerate() {
        let source = context
            .unavailable
            .tolerate(planner.add_declared(index, one))?;
        sources.push(source.unwrap_or_else(|error| {
            planner.notices.push(Notice::Skipped(error));
            None
        }));
    }
    let Planner {
        files,
        notices,
        directories,
        links,
        ..
    } = planner;
    Ok(Plan {
        files,
        sources,
        notices,
        directories,
        links,
    })
}

struct Planner<'a> {
    context: &'a Context<'a>,
    excludes: Vec<&'a Exclude>,
    /// The excludes of this command. One of an earlier message does not leave out a file that is
    /// named now.
    own_excludes: Vec<&'a Exclude>,
    /// The explicitly named paths.
    named: HashSet<&'a OsStr>,
    files: Vec<PlannedFile>,
    /// The index of each path in `files`. Hashing a string is faster than hashing the components of
    /// a path, and the paths are canonical.
    indexes: HashMap<OsString, usize>,
    /// The files that were already reported as left out.
    secrets: HashSet<String>,
    notices: Vec<Notice>,
    directories: Vec<PathBuf>,
    links: Vec<PathBuf>,
}

impl Planner<'_> {
    /// Plans the files of a declaration.
    fn add_declared(
        &mut self,
        index: usize,
        declared: &Declared,
    ) -> Result<Option<PlannedSource>, AttachError> {
        let source = match &declared.source {
            Source::Glob(glob) => self.walk(index, declared, &glob.base, Some(glob)),
            Source::Path(path) => match std::fs::metadata(path) {
                Ok(found) if found.is_dir() => self.walk(index, declared, path, None),
                Ok(_) => self.add_named(index, declared, path).map(Some),
                Err(error) => Err(AttachError::io(&declared.input, "look at", path, error)),
            },
            // An exclude. Other handlers resolve all other sources.
            _ => return Ok(None),
        }?;
        self.notices.extend(declared.link_out.as_ref().map(|name| {
            let (name, uri) = (name.clone(), declared.declaration.clone());
            Notice::LeavesWorkspace { name, uri }
        }));
        Ok(source)
    }

    /// Plans an explicitly named file.
    fn add_named(
        &mut self,
        index: usize,
        declared: &Declared,
        path: &Path,
    ) -> Result<PlannedSource, AttachError> {
        if self
            .own_excludes
            .iter()
            .any(|exclude| exclude.covers(path, false))
        {
            let identity = self.context.place.identify(path, None);
            let name = identity.map(|identity| identity.name).unwrap_or_default();
            self.notices.push(Notice::Excluded { name });
            return Ok(PlannedSource {
                files: Vec::new(),
                is_walk: false,
            });
        }
        let found = FoundFile {
            path: path.to_owned(),
            link: None,
        };
        let file = self.add(index, declared, found, None)?;
        Ok(PlannedSource {
            files: vec![file],
            is_walk: false,
        })
    }

    /// Plans the files below a directory. Returns `None` if all of them were skipped.
    fn walk(
        &mut self,
        index: usize,
        declared: &Declared,
        base: &Path,
        glob: Option<&Glob>,
    ) -> Result<Option<PlannedSource>, AttachError> {
        let walk = Walk {
            input: &declared.input,
            base,
            is_trusted: declared.is_trusted,
            glob,
            excludes: &self.excludes,
            named: &self.named,
            context: self.context,
            scope: Scope::Whole,
        };
        let mut found = walk.find()?;
        // Before `check`, because a directory without files may have some later.
        self.directories.append(&mut found.directories);
        self.links.append(&mut found.links);
        let WalkResult {
            files,
            notices,
            secrets,
            left_to_others,
            ..
        } = walk.check(found)?;
        self.notices.extend(notices);
        for name in secrets {
            if self.secrets.insert(name.clone()) {
                self.notices.push(Notice::SecretFile { name });
            }
        }
        let mut indexes = Vec::with_capacity(files.len());
        self.files.reserve(files.len());
        self.indexes.reserve(files.len());
        for file in files {
            let added = self.add(index, declared, file, Some(base));
            match self.context.unavailable.tolerate(added)? {
                Ok(index) => indexes.push(index),
                Err(error) => self.notices.push(Notice::Skipped(error)),
            }
        }
        // A link next to its target leads to the same file.
        indexes.dedup();
        let has_files = !indexes.is_empty() || left_to_others > 0;
        Ok(has_files.then_some(PlannedSource {
            files: indexes,
            is_walk: true,
        }))
    }

    /// Plans a file, unless it is already planned. Returns its index.
    fn add(
        &mut self,
        index: usize,
        declared: &Declared,
        file: FoundFile,
        attached: Option<&Path>,
    ) -> Result<usize, AttachError> {
        let found_at = file.found_at().to_owned();
        let path = file.path;
        if let Some(file) = self.indexes.get(path.as_os_str()) {
            return Ok(*file);
        }
        let limit = self.context.limits.max_files;
        if self.files.len() == limit {
            return Err(AttachError::TooManyFiles {
                input: declared.input.clone(),
                limit,
            });
        }
        let identity =
            self.context
                .place
                .identify(&path, attached)
                .map_err(|_| AttachError::NotUtf8 {
                    input: declared.input.clone(),
                    path: path.clone(),
                })?;
        self.indexes
            .insert(path.clone().into_os_string(), self.files.len());
        let is_named = self.named.contains(path.as_os_str());
        self.files.push(PlannedFile {
            path,
            found_at,
            identity,
            declared: index,
            is_named,
        });
        Ok(self.files.len() - 1)
    }
}

impl Source {
    fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            _ => None,
        }
    }

    pub(super) fn as_exclude(&self) -> Option<&Exclude> {
        match self {
            Self::Exclude(exclude) => Some(exclude),
            _ => None,
        }
    }
}
