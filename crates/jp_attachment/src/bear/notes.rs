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

/// The path of the app's database below the home directory.
const DATABASE: &str =
    "Library/Group Containers/9K33E3U3T4.net.shinyfrog.bear/Application Data/database.sqlite";

/// The start of Core Data's time, 2001-01-01, in seconds since 1970.
const CORE_DATA_EPOCH: f64 = 978_307_200.0;

/// The time that SQLite waits while the app writes. Between the waits jp checks whether the user
/// interrupted.
const PATIENCE: Duration = Duration::from_millis(50);

/// Reads the notes of `uri`, sorted by title. Waits while the app writes.
pub(super) fn read(
    uri: &BearUri,
    declared: &Declared,
    context: &Context<'_>,
) -> Result<Vec<Resource>, AttachError> {
    let reader = NoteReader { declared, context };
    let path = reader.database()?;
    let deadline = Instant::now().checked_add(context.timeout);
    loop {
        context.check_cancelled()?;
        match reader.read(uri, &path) {
            Err(Failure::Database(error))
                if is_busy(&error) && deadline.is_none_or(|end| Instant::now() < end) => {}
            Err(Failure::Database(error)) => {
                return Err(reader.error(BearError::Database {
                    path,
                    source: error.into(),
                }));
            }
            Err(Failure::Attach(error)) => return Err(error),
            Ok(notes) => return Ok(notes),
        }
    }
}

/// An error of reading notes. Only that of the database may be worth another attempt.
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

/// Reads the notes of a declaration.
struct NoteReader<'a> {
    declared: &'a Declared,
    context: &'a Context<'a>,
}

impl NoteReader<'_> {
    /// Returns the path of the database, if it exists.
    fn database(&self) -> Result<PathBuf, AttachError> {
        let path = match (self.context.bear_database, &self.context.place.home) {
            (Some(path), _) => path.to_owned(),
            (None, Some(home)) => home.join(DATABASE),
            (None, None) => return Err(self.error(BearError::NoHome)),
        };
        match path.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(path),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(self.error(BearError::Database {
                    path,
                    source: error.into(),
                }))
            }
            _ => Err(self.error(BearError::NoDatabase(path))),
        }
    }

    /// Reads the notes in one transaction, so that they belong to one state of the database.
    fn read(&self, uri: &BearUri, path: &Path) -> Result<Vec<Resource>, Failure> {
        // Read-only, so that jp can't damage the app's data or block its writes.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        let transaction = connection.transaction()?;
        let schema = Schema::read(&transaction)?;
        if let Some(missing) = schema.missing(uri) {
            return Err(self
                .error(BearError::Schema {
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

    /// Reads the note with the identifier `id`. An archived one is allowed, because the user named
    /// it.
    fn note(
        &self,
        connection: &Connection,
        schema: &Schema,
        id: &str,
    ) -> Result<Resource, Failure> {
        let mut statement = connection.prepare(&schema.select("ZUNIQUEIDENTIFIER = ?1"))?;
        let mut rows = statement.query([id])?;
        let Some(row) = rows.next()? else {
            return Err(self.error(BearError::NoNote).into());
        };
        match Note::from_row(row)? {
            Note {
                is_deleted: true, ..
            } => Err(self.error(BearError::NoNote).into()),
            Note {
                is_trashed: true, ..
            } => Err(self.error(BearError::Trashed).into()),
            Note {
                is_locked: true, ..
            } => Err(self.error(BearError::Locked).into()),
            note => Ok(self.resource(note)?),
        }
    }

    /// Reads the notes that contain `words` and have one of `tags`.
    ///
    /// SQLite's own functions only know the case of ASCII, so the notes are compared here.
    fn search(
        &self,
        connection: &Connection,
        schema: &Schema,
        words: &str,
        tags: &[String],
    ) -> Result<Vec<Resource>, Failure> {
        let (words, limit) = (words.to_lowercase(), self.context.limits.max_files);
        let tagged = schema.find_tagged(connection, tags)?;
        let mut statement =
            connection.prepare(&schema.select("NOT (deleted OR trashed OR archived OR locked)"))?;
        let mut rows = statement.query([])?;
        let mut notes = Vec::new();
        while let Some(row) = rows.next()? {
            self.context.check_cancelled()?;
            let note = Note::from_row(row)?;
            let has_tag = tags.is_empty() || tagged.contains(&note.key);
            if !has_tag || !note.contains(&words) {
                continue;
            }
            // The limit counts matches, not the notes of the database.
            if notes.len() == limit {
                let input = self.declared.input.clone();
                return Err(AttachError::TooManyFiles { input, limit }.into());
            }
            notes.push(self.resource(note)?);
        }
        if notes.is_empty() {
            return Err(self.error(BearError::NoMatch).into());
        }
        notes.sort_by(|left, right| (&left.name, &left.uri).cmp(&(&right.name, &right.uri)));
        Ok(notes)
    }

    fn resource(&self, note: Note) -> Result<Resource, AttachError> {
        self.context
            .check_length(&self.declared.input, note.text.len())?;
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

    fn error(&self, source: BearError) -> AttachError {
        AttachError::Bear {
            input: self.declared.input.clone(),
            source,
        }
    }
}

/// A note of the database.
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
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
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

    /// Returns whether the title or the text contains `words`, which are in lower case.
    fn contains(&self, words: &str) -> bool {
        self.title.to_lowercase().contains(words) || self.text.to_lowercase().contains(words)
    }
}

/// The tables and columns of the database. Some columns, and the numbers in names, depend on the
/// version of the app.
struct Schema {
    /// The columns of `ZSFNOTE`.
    note: Vec<String>,
    has_tags: bool,
    /// The table of the tags of each note.
    tag_table: Option<TagTable>,
}

/// The table `Z_5TAGS` with the columns `Z_5NOTES` and `Z_13TAGS`, or with other numbers.
struct TagTable {
    table: String,
    notes: String,
    tags: String,
}

impl Schema {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement =
            connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        let tables: Vec<String> = statement
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut tag_table = None;
        for table in tables.iter().filter(|table| is_numbered(table, "TAGS")) {
            let columns = columns(connection, table)?;
            let notes = columns.iter().find(|column| is_numbered(column, "NOTES"));
            let tags = columns.iter().find(|column| is_numbered(column, "TAGS"));
            if let (None, Some(notes), Some(tags)) = (&tag_table, notes, tags) {
                tag_table = Some(TagTable {
                    table: table.clone(),
                    notes: notes.clone(),
                    tags: tags.clone(),
                });
            }
        }
        let has_tags = tables.iter().any(|table| table == "ZSFNOTETAG");
        Ok(Self {
            note: columns(connection, "ZSFNOTE")?,
            has_tags,
            tag_table,
        })
    }

    /// Returns the first table or column that `uri` needs and the database lacks.
    fn missing(&self, uri: &BearUri) -> Option<String> {
        let needs_tags = matches!(uri, BearUri::Search { tags, .. } if !tags.is_empty());
        if self.note.is_empty() {
            return Some("table ZSFNOTE".to_owned());
        }
        if let Some(column) = ["Z_PK", "ZUNIQUEIDENTIFIER", "ZTITLE", "ZTEXT"]
            .iter()
            .find(|column| !self.has(column))
        {
            return Some(format!("column {column} in ZSFNOTE"));
        }
        match (needs_tags, self.has_tags, &self.tag_table) {
            (true, false, _) => Some("table ZSFNOTETAG".to_owned()),
            (true, true, None) => Some("table of the notes' tags".to_owned()),
            _ => None,
        }
    }

    fn has(&self, column: &str) -> bool {
        self.note.iter().any(|name| name == column)
    }

    /// Returns the SQL expression of a flag; one whose column is missing is never set.
    fn flag(&self, column: &str) -> String {
        match self.has(column) {
            true => format!("(coalesce({column}, 0) <> 0)"),
            false => "0".to_owned(),
        }
    }

    /// Returns the query for notes.
    fn select(&self, condition: &str) -> String {
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
            self.flag("ZPERMANENTLYDELETED"),
            self.flag("ZTRASHED"),
            self.flag("ZARCHIVED"),
            self.flag("ZENCRYPTED"),
            self.flag("ZLOCKED"),
        )
    }

    /// Returns the keys of the notes that have one of `tags`.
    fn find_tagged(
        &self,
        connection: &Connection,
        tags: &[String],
    ) -> rusqlite::Result<HashSet<i64>> {
        let (Some(tag_table), false) = (&self.tag_table, tags.is_empty()) else {
            return Ok(HashSet::new());
        };
        let TagTable {
            table,
            notes,
            tags: tag,
        } = tag_table;
        let query = format!(
            "SELECT {notes}, ZTITLE FROM {table} JOIN ZSFNOTETAG ON ZSFNOTETAG.Z_PK = {tag} \
             WHERE ZTITLE IS NOT NULL"
        );
        let tags: Vec<String> = tags.iter().map(|tag| normalize_tag(tag)).collect();
        let mut statement = connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        let mut keys = HashSet::new();
        while let Some(row) = rows.next()? {
            let title: String = row.get(1)?;
            if tags.contains(&normalize_tag(&title)) {
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

/// Returns whether the name of a table or column is `Z_`, a number and `name`.
fn is_numbered(text: &str, name: &str) -> bool {
    let number = text
        .strip_prefix("Z_")
        .and_then(|text| text.strip_suffix(name));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Normalizes a tag: Bear ignores case, and stores a space as `+`.
fn normalize_tag(tag: &str) -> String {
    tag.strip_prefix('#')
        .unwrap_or(tag)
        .replace('+', " ")
        .trim()
        .to_lowercase()
}

/// Converts a Core Data time to RFC 3339, in whole seconds of UTC.
fn last_modified(seconds: f64) -> Option<String> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float out of range saturates, and is then not a valid time"
    )]
    let seconds = (seconds + CORE_DATA_EPOCH).floor() as i64;
    Timestamp::from_second(seconds)
        .ok()
        .map(|time| time.to_string())
}

#[cfg(test)]
mod tests;
