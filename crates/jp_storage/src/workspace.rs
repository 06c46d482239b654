use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use jp_resource::Checksum;

use crate::{
    ConversationId, Index, Places, Sessions, Stamps, Store, Trust,
    directory::{Access, RefusedLink},
    tree::Tree,
};

/// The directory that contains `.jp/`, with the user's directories for its data and cache.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    id: String,
    data: PathBuf,
    cache: PathBuf,
    shared: Tree,
    local: Tree,
}

const DIRECTORY: &str = ".jp";
const ID: &str = ".id";

/// A workspace that can't be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A file or directory can't be read or written.
    #[error("open {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path is not UTF-8.
    #[error("use {path:?} as a workspace: its path is not UTF-8; rename it")]
    NotUtf8 {
        /// The directory.
        path: PathBuf,
    },
}

impl Workspace {
    /// Finds the nearest directory at or above `start` that contains `.jp`. It may be a link, which
    /// [`open`](Self::open) refuses.
    #[must_use]
    pub fn find(start: &Path) -> Option<PathBuf> {
        start
            .ancestors()
            .find(|directory| {
                fs::symlink_metadata(directory.join(DIRECTORY))
                    .is_ok_and(|found| found.is_dir() || found.is_symlink())
            })
            .map(Path::to_owned)
    }

    /// Makes `directory` a workspace with these files in `.jp/`. Existing files stay unchanged.
    ///
    /// Returns true if it wasn't a workspace before.
    pub fn init(directory: &Path, contents: &[(&str, &str)]) -> Result<bool, InitError> {
        // `open` checks the canonical path, which may differ.
        if directory.to_str().is_none() {
            return Err(InitError::NotUtf8 {
                path: directory.to_owned(),
            });
        }
        let path = directory.join(DIRECTORY);
        let failed = |path: PathBuf| move |source| InitError::Io { path, source };
        let jp = Tree::new(directory, Access::Shared)
            .make_directory(&path)
            .map_err(failed(path.clone()))?;
        let mut made = false;
        for (name, content) in contents {
            match jp
                .create_file(name)
                .and_then(|mut file| file.write_all(content.as_bytes()))
            {
                Ok(()) => made |= *name == ID,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    jp.refuse_link(name).map_err(failed(path.join(name)))?;
                }
                Err(source) => return Err(failed(path.join(name))(source)),
            }
        }
        jp.sync().map_err(failed(path))?;
        Ok(made)
    }

    /// Opens the workspace at `root`. `data` and `cache` are directories of the user.
    pub fn open(root: &Path, data: &Path, cache: &Path) -> Result<Self, InitError> {
        let root = fs::canonicalize(root).map_err(|source| InitError::Io {
            path: root.to_owned(),
            source,
        })?;
        if root.to_str().is_none() {
            return Err(InitError::NotUtf8 { path: root });
        }
        let shared = Tree::new(&root, Access::Shared);
        let path = root.join(DIRECTORY).join(ID);
        let id = match shared.read(&path) {
            Err(source) if RefusedLink::behind(&source).is_some() => {
                return Err(InitError::Io { path, source });
            }
            read => read
                .ok()
                .and_then(parse_id)
                .unwrap_or_else(|| id_of_path(&root)),
        };
        let [data, cache] = [data, cache].map(|directory| directory.join("workspaces").join(&id));
        let local = Tree::new(&data, Access::Private);
        Ok(Self {
            root,
            id,
            data,
            cache,
            shared,
            local,
        })
    }

    /// Reads the workspace's configuration; `None` if it has none.
    ///
    /// # Errors
    ///
    /// Fails if it can't be read, if it isn't a regular file, or if its path contains a link below the
    /// workspace.
    pub fn read_config(&self) -> io::Result<Option<Vec<u8>>> {
        self.shared.read_if_present(&self.config())
    }

    /// Returns the path of the workspace's configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.root.join(DIRECTORY).join("config.toml")
    }

    /// Returns the canonical path of the workspace.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the workspace's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the store of shared conversations, in the workspace.
    #[must_use]
    pub fn store(&self) -> Store {
        Store::new(
            self.shared.clone(),
            self.root.join(DIRECTORY),
            self.locks(),
            self.places(),
        )
    }

    /// Returns the store of the user's local conversations.
    #[must_use]
    pub fn local_store(&self) -> Store {
        Store::new(
            self.local.clone(),
            self.data.clone(),
            self.locks(),
            self.places(),
        )
    }

    /// Returns the store of the current conversation.
    #[must_use]
    pub fn sessions(&self, session: Option<&str>) -> Sessions {
        Sessions::new(self.data.join("sessions").join(self.place()), session)
    }

    /// Returns the directory for the pipes of a conversation's tools that outlive a turn.
    #[must_use]
    pub fn handles(&self, conversation: ConversationId) -> PathBuf {
        self.data
            .join("handles")
            .join(self.place())
            .join(conversation.to_string())
    }

    /// Returns the store of the user's approvals.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust::new(self.data.join("trusted").join(self.place()))
    }

    /// Returns the cache of file states.
    #[must_use]
    pub fn stamps(&self) -> Stamps {
        Stamps::open(self.cache.join("checksums"))
    }

    /// Returns the cache for listing conversations.
    #[must_use]
    pub fn index(&self) -> Index {
        Index::open(self.cache.join("index.json"))
    }

    /// Returns the conversion of the workspace's paths.
    #[must_use]
    pub fn places(&self) -> Places {
        Places::new(
            self.root
                .to_str()
                .expect("checked when the workspace was opened"),
        )
    }

    /// Returns a name for this checkout. Other checkouts have the same workspace id, but their own state.
    fn place(&self) -> String {
        short_checksum(&self.root)
    }

    fn locks(&self) -> PathBuf {
        self.data.join("locks")
    }
}

/// Parses the id. One that isn't a safe directory name counts as missing.
fn parse_id(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let id = text.lines().next()?.trim();
    let is_name = id
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    // An id becomes a part of paths, so its length is limited.
    (is_name && (1..=64).contains(&id.len())).then(|| id.to_owned())
}

/// Returns the id of a workspace without an `.id`.
fn id_of_path(root: &Path) -> String {
    format!("path-{}", short_checksum(root))
}

fn short_checksum(path: &Path) -> String {
    Checksum::compute(path.as_os_str().as_encoded_bytes()).short()
}
