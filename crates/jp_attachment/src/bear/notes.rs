use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use jp_resource::{Annotations, Resource, ResourceContent, uri::encode_path};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::{BearError, BearUri};
use crate::{AttachError, Context, Declared};

/// Where the app keeps its database, below the home directory.
const DATABASE: &str =
    "Library/Group Containers/9K33E3U3T4.net.shinyfrog.bear/Application Data/database.sqlite";

/// 2001-01-01, from which Core Data counts seconds, in seconds since 1970.
const CORE_DATA_EPOCH: f64 = 978_307_200.0;

/// How long the database waits for the app before it is asked whether to go on.
const PATIENCE: Duration = Duration::from_millis(50);

/// Reads the notes that `uri` asks for, sorted by title. Waits while the app writes.
pub(super) fn read(
    uri: &BearUri,
    declared: &Declared,
    context: &Context<'_>,
) -> Result<Vec<Resource>, AttachError> {
    let reading = Reading { declared, context };
    let path = reading.database()?;
    let deadline = Instant::now().checked_add(context.timeout);
    loop {
        context.check_cancelled()?;
        match reading.read(uri, &path) {
            Err(Failure::Database(error))
                if is_busy(&error) && deadline.is_none_or(|end| Instant::now() < end) => {}
            Err(Failure::Database(error)) => {
                return Err(reading.failure(BearError::Database {
                    path,
                    source: error.into(),
                }));
            }
            Err(Failure::Attach(error)) => return Err(error),
            Ok(notes) => return Ok(notes),
        }
    }
}

/// Why notes were not read.
enum Failure {
    Database(rusqlite::Error),
    Attach(AttachError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        Self::Attach(error)
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

struct Reading<'a> {
    declared: &'a Declared,
    context: &'a Context<'a>,
}

impl Reading<'_> {
    /// Returns where the database is, if it is there.
    fn database(&self) -> Result<PathBuf, AttachError> {
        let default = || {
            self.context
                .place
                .home
                .as_ref()
                .map(|home| home.join(DATABASE))
        };
        let path = self
            .context
            .bear_database
            .map(Path::to_owned)
            .or_else(default);
        let path = path.ok_or_else(|| self.failure(BearError::NoHome))?;
        match path.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(path),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(self.failure(BearError::Database {
                    path,
                    source: error.into(),
                }))
            }
            _ => Err(self.failure(BearError::NoDatabase(path))),
        }
    }

    /// Reads in one transaction, so that all is of one state.
    fn read(&self, uri: &BearUri, path: &Path) -> Result<Vec<Resource>, Failure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        let transaction = connection.transaction()?;
        let schema = Schema::of(&transaction)?;
        if let Some(missing) = schema.missing(uri) {
            return Err(self
                .failure(BearError::Schema {
                    path: path.to_owned(),
                    missing,
                })
                .into());
        }
        match uri {
            BearUri::Note(id) => self.note(&transaction, &schema, id).map(|note| vec![note]),
            BearUri::Search { words, tags } => self.search(&transaction, &schema, words, tags),
        }
    }

    fn note(
        &self,
        connection: &Connection,
        schema: &Schema,
        id: &str,
    ) -> Result<Resource, Failure> {
        let mut statement = connection.prepare(&schema.select("ZUNIQUEIDENTIFIER = ?1"))?;
        let mut rows = statement.query([id])?;
        let Some(row) = rows.next()? else {
            return Err(self.failure(BearError::NoNote).into());
        };
        match Note::of(row)? {
            Note {
                is_deleted: true, ..
            } => Err(self.failure(BearError::NoNote).into()),
            Note {
                is_trashed: true, ..
            } => Err(self.failure(BearError::Trashed).into()),
            Note {
                is_locked: true, ..
            } => Err(self.failure(BearError::Locked).into()),
            note => Ok(self.resource(note)?),
        }
    }

    fn search(
        &self,
        connection: &Connection,
        schema: &Schema,
        words: &str,
        tags: &[String],
    ) -> Result<Vec<Resource>, Failure> {
        let (words, limit) = (words.to_lowercase(), self.context.limits.max_files);
        let tagged = schema.tagged(connection, tags)?;
        let mut statement =
            connection.prepare(&schema.select("NOT (deleted OR trashed OR archived OR locked)"))?;
        let mut rows = statement.query([])?;
        let mut notes = Vec::new();
        while let Some(row) = rows.next()? {
            self.context.check_cancelled()?;
            let note = Note::of(row)?;
            let has_tag = tags.is_empty() || tagged.contains(&note.key);
            if !has_tag || !note.holds(&words) {
                continue;
            }
            if notes.len() == limit {
                let input = self.declared.input.clone();
                return Err(AttachError::TooManyFiles { input, limit }.into());
            }
            notes.push(self.resource(note)?);
        }
        if notes.is_empty() {
            return Err(self.failure(BearError::NoMatch).into());
        }
        notes.sort_by(|left, right| (&left.name, &left.uri).cmp(&(&right.name, &right.uri)));
        Ok(notes)
    }

    fn resource(&self, note: Note) -> Result<Resource, AttachError> {
        let limit = self.context.limits.max_bytes;
        if note.text.len() as u64 > limit {
            return Err(AttachError::TooLong {
                input: self.declared.input.clone(),
                limit,
            });
        }
        let uri = format!("bear://get/{}", encode_path(&note.id));
        let name = if note.title.is_empty() {
            uri.clone()
        } else {
            note.title
        };
        let resource = Resource::new(uri, ResourceContent::Text(note.text));
        let mut resource = resource.with_mime_type("text/markdown").with_name(name);
        resource.annotations = note
            .modified
            .and_then(last_modified)
            .map(|time| Annotations {
                last_modified: Some(time),
                ..Annotations::default()
            });
        Ok(resource)
    }

    fn failure(&self, source: BearError) -> AttachError {
        AttachError::Bear {
            input: self.declared.input.clone(),
            source,
        }
    }
}

/// A note as the database has it.
struct Note {
    key: i64,
    id: String,
    title: String,
    text: String,
    modified: Option<f64>,
    is_deleted: bool,
    is_trashed: bool,
    is_locked: bool,
}

impl Note {
    /// Reads the columns of [`Schema::select`].
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get("key")?,
            id: row.get("id")?,
            title: row.get::<_, Option<String>>("title")?.unwrap_or_default(),
            text: row.get::<_, Option<String>>("text")?.unwrap_or_default(),
            modified: row.get("modified")?,
            is_deleted: row.get("deleted")?,
            is_trashed: row.get("trashed")?,
            is_locked: row.get("locked")?,
        })
    }

    /// Returns whether title or text holds words that are in lower case.
    fn holds(&self, words: &str) -> bool {
        self.title.to_lowercase().contains(words) || self.text.to_lowercase().contains(words)
    }
}

/// What there is of Bear's tables. Their numbers and some columns differ by the app's version.
struct Schema {
    /// The columns of `ZSFNOTE`.
    note: Vec<String>,
    has_tags: bool,
    /// Which note has which tag.
    join: Option<Join>,
}

/// The table `Z_5TAGS` with the columns `Z_5NOTES` and `Z_13TAGS`, or other numbers.
struct Join {
    table: String,
    notes: String,
    tags: String,
}

impl Schema {
    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement =
            connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        let tables: Vec<String> = statement
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut join = None;
        for table in tables.iter().filter(|table| is_numbered(table, "TAGS")) {
            let columns = columns(connection, table)?;
            let column = |name| {
                columns
                    .iter()
                    .find(|column| is_numbered(column, name))
                    .cloned()
            };
            join = join.or(column("NOTES")
                .zip(column("TAGS"))
                .map(|(notes, tags)| Join {
                    table: table.clone(),
                    notes,
                    tags,
                }));
        }
        let has_tags = tables.iter().any(|table| table == "ZSFNOTETAG");
        Ok(Self {
            note: columns(connection, "ZSFNOTE")?,
            has_tags,
            join,
        })
    }

    /// Returns what is needed and not there.
    fn missing(&self, uri: &BearUri) -> Option<String> {
        let column = |name: &&&str| !self.has(name);
        let needs_tags = matches!(uri, BearUri::Search { tags, .. } if !tags.is_empty());
        if self.note.is_empty() {
            return Some("table ZSFNOTE".to_owned());
        }
        if let Some(column) = ["Z_PK", "ZUNIQUEIDENTIFIER", "ZTITLE", "ZTEXT"]
            .iter()
            .find(column)
        {
            return Some(format!("column {column} in ZSFNOTE"));
        }
        match (needs_tags, self.has_tags, &self.join) {
            (true, false, _) => Some("table ZSFNOTETAG".to_owned()),
            (true, true, None) => Some("table of the notes' tags".to_owned()),
            _ => None,
        }
    }

    fn has(&self, column: &str) -> bool {
        self.note.iter().any(|name| name == column)
    }

    /// Returns the query for notes.
    fn select(&self, condition: &str) -> String {
        let flag = |column: &str| match self.has(column) {
            true => format!("(coalesce({column}, 0) <> 0)"),
            false => "0".to_owned(),
        };
        let modified = if self.has("ZMODIFICATIONDATE") {
            "ZMODIFICATIONDATE"
        } else {
            "NULL"
        };
        format!(
            "SELECT * FROM (SELECT Z_PK AS key, ZUNIQUEIDENTIFIER, ZUNIQUEIDENTIFIER AS id, ZTITLE AS title, \
             ZTEXT AS text, CAST({modified} AS REAL) AS modified, {} AS deleted, {} AS trashed, \
             {} AS archived, ({} OR {}) AS locked FROM ZSFNOTE WHERE ZUNIQUEIDENTIFIER IS NOT NULL) \
             WHERE {condition}",
            flag("ZPERMANENTLYDELETED"),
            flag("ZTRASHED"),
            flag("ZARCHIVED"),
            flag("ZENCRYPTED"),
            flag("ZLOCKED"),
        )
    }

    /// Returns the keys of the notes that have one of `tags`.
    fn tagged(&self, connection: &Connection, tags: &[String]) -> rusqlite::Result<HashSet<i64>> {
        let (Some(join), false) = (&self.join, tags.is_empty()) else {
            return Ok(HashSet::new());
        };
        let Join {
            table,
            notes,
            tags: tag,
        } = join;
        let query = format!(
            "SELECT {notes}, ZTITLE FROM {table} JOIN ZSFNOTETAG ON ZSFNOTETAG.Z_PK = {tag} \
             WHERE ZTITLE IS NOT NULL"
        );
        let tags: Vec<String> = tags.iter().map(|tag| same_tag(tag)).collect();
        let mut statement = connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        let mut keys = HashSet::new();
        while let Some(row) = rows.next()? {
            let title: String = row.get(1)?;
            if tags.contains(&same_tag(&title)) {
                keys.insert(row.get(0)?);
            }
        }
        Ok(keys)
    }
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// Returns whether a table or column is `Z_` and a number and `name`.
fn is_numbered(text: &str, name: &str) -> bool {
    let number = text
        .strip_prefix("Z_")
        .and_then(|text| text.strip_suffix(name));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Writes a tag one way: case does not matter to Bear, and it keeps a space as `+`.
fn same_tag(tag: &str) -> String {
    tag.strip_prefix('#')
        .unwrap_or(tag)
        .replace('+', " ")
        .trim()
        .to_lowercase()
}

/// Writes a Core Data time as RFC 3339, in whole seconds of UTC.
fn last_modified(seconds: f64) -> Option<String> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float out of range saturates, and is then no time"
    )]
    let seconds = (seconds + CORE_DATA_EPOCH).floor() as i64;
    Timestamp::from_second(seconds)
        .ok()
        .map(|time| time.to_string())
}

#[cfg(test)]
mod tests;
