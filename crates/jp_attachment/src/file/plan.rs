use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::walk::{Found, FoundFile, Scope, Walk};
use crate::{AttachError, Context, Declared, Exclude, Glob, Notice, Source, place::Identity};

/// Which files to read, and what asked for them.
pub(super) struct Plan {
    /// Each file once, in declared order.
    pub(super) files: Vec<Planned>,
    /// For each declaration its files; none for an exclude and what was skipped.
    pub(super) given: Vec<Option<Given>>,
    pub(super) notices: Vec<Notice>,
    /// Directories that were gone through, also those where nothing was found.
    pub(super) directories: Vec<PathBuf>,
    /// Links that were looked at, and the files that they lead to.
    pub(super) links: Vec<PathBuf>,
}

/// What a declaration gives.
pub(super) struct Given {
    /// Indexes of the files.
    pub(super) files: Vec<usize>,
    /// Whether a directory or glob gives them, rather than their own name.
    pub(super) is_walk: bool,
}

/// A file to read.
pub(super) struct Planned {
    /// The canonical path.
    pub(super) path: PathBuf,
    /// The path it was found at: that of a link, or the same.
    pub(super) found_at: PathBuf,
    pub(super) identity: Identity,
    /// Index of the first declaration that gave it.
    pub(super) declared: usize,
    /// Whether some declaration names it outright.
    pub(super) is_named: bool,
}

/// Finds the files that declarations stand for. Reads directories, and no file.
pub(super) fn plan(declared: &[Declared], context: &Context<'_>) -> Result<Plan, AttachError> {
    let excludes: Vec<&Exclude> = declared
        .iter()
        .filter_map(|one| one.source.as_exclude())
        .collect();
    let own = declared.iter().filter(|one| one.is_trusted);
    let own_excludes = own.filter_map(|one| one.source.as_exclude()).collect();
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
    let mut given = Vec::with_capacity(declared.len());
    for (index, one) in declared.iter().enumerate() {
        let files = context.unavailable.tolerate(planner.declared(index, one))?;
        given.push(files.unwrap_or_else(|error| {
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
        given,
        notices,
        directories,
        links,
    })
}

struct Planner<'a> {
    context: &'a Context<'a>,
    excludes: Vec<&'a Exclude>,
    /// Those of this command: one of an earlier message does not keep out what is named outright now.
    own_excludes: Vec<&'a Exclude>,
    /// Paths that are named outright.
    named: HashSet<&'a OsStr>,
    files: Vec<Planned>,
    /// Where each path is among `files`. A canonical path is compared, and hashed, as the string that it is.
    indexes: HashMap<OsString, usize>,
    /// Files that are reported as left out.
    secrets: HashSet<String>,
    notices: Vec<Notice>,
    directories: Vec<PathBuf>,
    links: Vec<PathBuf>,
}

impl Planner<'_> {
    fn declared(
        &mut self,
        index: usize,
        declared: &Declared,
    ) -> Result<Option<Given>, AttachError> {
        let given = match &declared.source {
            Source::Glob(glob) => self.walk(index, declared, &glob.base, Some(glob)),
            Source::Path(path) => match std::fs::metadata(path) {
                Ok(found) if found.is_dir() => self.walk(index, declared, path, None),
                Ok(_) => self.file(index, declared, path).map(Some),
                Err(error) => Err(AttachError::io(&declared.input, "look at", path, error)),
            },
            // The rest is for other handlers; an exclude gives nothing.
            _ => return Ok(None),
        }?;
        self.notices.extend(declared.link_out.as_ref().map(|name| {
            let (name, uri) = (name.clone(), declared.declaration.clone());
            Notice::LeavesWorkspace { name, uri }
        }));
        Ok(given)
    }

    /// Plans a file that is named outright.
    fn file(
        &mut self,
        index: usize,
        declared: &Declared,
        path: &Path,
    ) -> Result<Given, AttachError> {
        if self
            .own_excludes
            .iter()
            .any(|exclude| exclude.covers(path, false))
        {
            let identity = self.context.place.identify(path, None);
            let name = identity.map(|identity| identity.name).unwrap_or_default();
            self.notices.push(Notice::Excluded { name });
            return Ok(Given {
                files: Vec::new(),
                is_walk: false,
            });
        }
        let file = self.add(
            index,
            declared,
            FoundFile {
                path: path.to_owned(),
                link: None,
            },
            None,
        )?;
        Ok(Given {
            files: vec![file],
            is_walk: false,
        })
    }

    /// Plans what is below a directory; gives none where all of it was skipped.
    fn walk(
        &mut self,
        index: usize,
        declared: &Declared,
        base: &Path,
        glob: Option<&Glob>,
    ) -> Result<Option<Given>, AttachError> {
        let (input, excludes, named) = (declared.input.as_str(), &self.excludes, &self.named);
        let (context, is_trusted) = (self.context, declared.is_trusted);
        let walk = Walk {
            input,
            base,
            is_trusted,
            glob,
            excludes,
            named,
            context,
            scope: Scope::Whole,
        };
        let mut found = walk.find()?;
        // Where nothing is found now, something may be another time.
        self.directories.append(&mut found.directories);
        self.links.append(&mut found.links);
        let Found {
            files,
            notices,
            secrets,
            left_to_others,
            ..
        } = walk.check(found)?;
        self.notices.extend(notices);
        let secrets = secrets
            .into_iter()
            .filter(|name| self.secrets.insert(name.clone()));
        self.notices
            .extend(secrets.map(|name| Notice::SecretFile { name }));
        let mut given = Vec::with_capacity(files.len());
        self.files.reserve(files.len());
        self.indexes.reserve(files.len());
        for file in files {
            let added = self.add(index, declared, file, Some(base));
            match self.context.unavailable.tolerate(added)? {
                Ok(file) => given.push(file),
                Err(error) => self.notices.push(Notice::Skipped(error)),
            }
        }
        given.dedup();
        let is_something = !given.is_empty() || left_to_others > 0;
        Ok(is_something.then_some(Given {
            files: given,
            is_walk: true,
        }))
    }

    /// Plans a file, unless it is planned already; returns its index.
    fn add(
        &mut self,
        index: usize,
        declared: &Declared,
        file: FoundFile,
        attached: Option<&Path>,
    ) -> Result<usize, AttachError> {
        let found_at = file.place().to_owned();
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
        let not_utf8 = |_| AttachError::NotUtf8 {
            input: declared.input.clone(),
            path: path.clone(),
        };
        let identity = self
            .context
            .place
            .identify(&path, attached)
            .map_err(not_utf8)?;
        self.indexes
            .insert(path.clone().into_os_string(), self.files.len());
        let is_named = self.named.contains(path.as_os_str());
        self.files.push(Planned {
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

    fn as_exclude(&self) -> Option<&Exclude> {
        match self {
            Self::Exclude(exclude) => Some(exclude),
            _ => None,
        }
    }
}
