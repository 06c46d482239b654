use std::{error::Error, path::PathBuf};

/// An error of reading notes of the Bear app.
#[derive(Debug, thiserror::Error)]
pub enum BearError {
    /// This build can't read the database.
    #[error("Bear notes can be attached only on macOS")]
    NotSupported,
    /// Neither the home directory nor another place of the database is known.
    #[error("the home directory, which contains Bear's database, is unknown")]
    NoHome,
    /// There is no database.
    #[error("there is no Bear database at {0:?}")]
    NoDatabase(PathBuf),
    /// The database can't be read.
    #[error("read the Bear database {path:?}")]
    Database {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database lacks a table or column.
    #[error("{path:?} is not a Bear database that jp can read: it has no {missing}")]
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
    #[error("no note matches; a search skips notes that are archived, locked or in the trash")]
    NoMatch,
}
