//! The workspace's files, as far as tools may reach them.

use std::{io, path::Path};

use cap_std::{ambient_authority, fs::Dir};

/// The workspace's files, as far as tools may reach them.
#[derive(Debug)]
pub struct Files {
    #[expect(dead_code, reason = "read by the tools that come next")]
    root: Dir,
}

impl Files {
    /// Opens the workspace.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { root: Dir::open_ambient_dir(root, ambient_authority())? })
    }
}
