use std::{error::Error, path::PathBuf};

/// Why notes could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum BearError {
    /// This build can't read the database.
    #[error("Bear notes can be attached on macOS")]
    NotSupported,
    /// The home directory is not known, nor where else the database is.
    #[error("there is no home directory that Bear's database could be in")]
    NoHome,
    /// There is no database.
    #[error("there is no Bear database at {0:?}")]
    NoDatabase(PathBuf),
    /// The database can't be read.
    #[error("read the Bear database {path:?}")]
    Database {
        /// The database.
        path: PathBuf,
        /// Why it can't.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database is not as Bear makes it.
    #[error("{path:?} is no Bear database that can be read: it has no {missing}")]
    Schema {
        /// The database.
        path: PathBuf,
        /// The table or column that is missing.
        missing: String,
    },
    /// No note has the identifier.
    #[error("there is no such note")]
    NoNote,
    /// The note is in the trash.
    #[error("the note is in the trash; restore it to attach it")]
    Trashed,
    /// The note can only be read in the app.
    #[error("the note is locked; unlock it in Bear to attach it")]
    Locked,
    /// A search finds nothing.
    #[error("no note matches; notes that are archived, locked or in the trash are not looked at")]
    NoMatch,
}
