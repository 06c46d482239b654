use std::{error::Error, sync::atomic::AtomicBool, time::SystemTime};

use rusqlite::params;
use tempfile::TempDir;

use testing::assert_ends;

use super::*;
use crate::{Notice, Place, Resolved, Unavailable, parse_input, resolve, store::Nowhere};

/// A home directory with a database as the app makes it, whose numbers are `notes` and `tags`.
struct World {
    _directory: TempDir,
    place: Place,
    database: PathBuf,
    connection: Connection,
    join: (u8, u8),
}

/// The state of a note.
#[derive(Default)]
struct Flags {
    archived: bool,
    trashed: bool,
    encrypted: bool,
    deleted: bool,
}

impl World {
    fn new(join: (u8, u8)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_owned();
        let database = home.join(DATABASE);
        std::fs::create_dir_all(database.parent().unwrap()).unwrap();
        let connection = Connection::open(&database).unwrap();
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .unwrap();
        let (notes, tags) = join;
        connection
            .execute_batch(&format!(
                "CREATE TABLE ZSFNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZARCHIVED INTEGER,
                 ZENCRYPTED INTEGER, ZLOCKED INTEGER, ZPERMANENTLYDELETED INTEGER, ZPINNED INTEGER,
                 ZTRASHED INTEGER, ZCREATIONDATE TIMESTAMP, ZMODIFICATIONDATE TIMESTAMP, ZTEXT VARCHAR,
                 ZTITLE VARCHAR, ZUNIQUEIDENTIFIER VARCHAR, ZENCRYPTEDDATA BLOB);
                 CREATE TABLE ZSFNOTETAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZISROOT INTEGER,
                 ZMODIFICATIONDATE TIMESTAMP, ZTITLE VARCHAR);
                 CREATE TABLE Z_{notes}TAGS (Z_{notes}NOTES INTEGER, Z_{tags}TAGS INTEGER,
                 PRIMARY KEY (Z_{notes}NOTES, Z_{tags}TAGS));
                 CREATE TABLE Z_{notes}PINNEDINTAGS (Z_{notes}PINNEDNOTES INTEGER, Z_{tags}PINNEDINTAGS INTEGER);"
            ))
            .unwrap();
        let place = Place {
            home: Some(home),
            ..Place::new("/w")
        };
        Self {
            _directory: directory,
            place,
            database,
            connection,
            join,
        }
    }

    fn note(&self, id: &str, title: &str, text: &str, tags: &[&str], flags: &Flags) {
        let Flags {
            archived,
            trashed,
            encrypted,
            deleted,
        } = flags;
        self.connection
            .execute(
                "INSERT INTO ZSFNOTE (ZUNIQUEIDENTIFIER, ZTITLE, ZTEXT, ZARCHIVED, ZTRASHED, ZENCRYPTED,
                 ZPERMANENTLYDELETED, ZLOCKED, ZMODIFICATIONDATE) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 662601600.75)",
                params![id, title, (!encrypted).then_some(text), archived, trashed, encrypted, deleted],
            )
            .unwrap();
        let note = self.connection.last_insert_rowid();
        for tag in tags {
            let insert = "INSERT INTO ZSFNOTETAG (ZTITLE) VALUES (?)";
            self.connection.execute(insert, [tag]).unwrap();
            let insert = format!("INSERT INTO Z_{}TAGS VALUES (?, ?)", self.join.0);
            self.connection
                .execute(&insert, [note, self.connection.last_insert_rowid()])
                .unwrap();
        }
    }

    fn context(&self) -> Context<'_> {
        Context::new(&self.place, &Nowhere, SystemTime::UNIX_EPOCH)
    }

    fn attach(&self, input: &str) -> Result<Resolved, AttachError> {
        resolve(&[parse_input(input, &self.place).unwrap()], &self.context())
    }

    fn names(&self, input: &str) -> Vec<String> {
        let resolved = self
            .attach(input)
            .unwrap_or_else(|error| panic!("{input}: {}", message(&error)));
        resolved
            .resources
            .into_iter()
            .map(|resource| resource.name.unwrap())
            .collect()
    }

    fn error(&self, input: &str) -> String {
        let home = self.place.home.as_ref().unwrap().to_str().unwrap();
        message(&self.attach(input).unwrap_err()).replace(home, "HOME")
    }
}

fn message(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", message(source)),
        None => error.to_string(),
    }
}

fn some_notes(join: (u8, u8)) -> World {
    let world = World::new(join);
    let live = Flags::default();
    world.note(
        "A-1",
        "Groceries",
        "# Groceries\nMilk, 100% oats\n#home",
        &["home"],
        &live,
    );
    world.note(
        "B-2",
        "Ärger",
        "# Ärger\nsnake_case\n#work/long name#",
        &["work", "work/long+name"],
        &live,
    );
    world.note("C-3", "", "no title", &[], &live);
    world.note(
        "D-4",
        "Archived",
        "milk",
        &["home"],
        &Flags {
            archived: true,
            ..Flags::default()
        },
    );
    world.note(
        "E-5",
        "Trashed",
        "milk",
        &["home"],
        &Flags {
            trashed: true,
            ..Flags::default()
        },
    );
    world.note(
        "F-6",
        "Locked milk",
        "milk",
        &["home"],
        &Flags {
            encrypted: true,
            ..Flags::default()
        },
    );
    world.note(
        "G-7",
        "Deleted",
        "milk",
        &["home"],
        &Flags {
            deleted: true,
            ..Flags::default()
        },
    );
    world
}

#[test]
fn note_is_a_described_resource() {
    let world = some_notes((5, 13));
    let resolved = world.attach("bear:A-1").unwrap();
    let [note] = resolved.resources.as_slice() else {
        panic!()
    };
    assert_eq!(note.uri, "bear://get/A-1");
    assert_eq!(note.name.as_deref(), Some("Groceries"));
    assert_eq!(note.mime_type.as_deref(), Some("text/markdown"));
    let text = ResourceContent::Text("# Groceries\nMilk, 100% oats\n#home".into());
    assert_eq!(note.content, text.blob_ref());
    let modified = note.annotations.as_ref().unwrap().last_modified.as_deref();
    assert_eq!(modified, Some("2021-12-31T00:00:00Z"));
    assert_eq!(resolved.delivered[0].declaration, "bear:A-1");
    assert_eq!(world.names("bear://get/D-4"), ["Archived"]);
    assert_eq!(world.names("bear://get/C-3"), ["bear://get/C-3"]);
}

#[test]
fn search_ignores_case() {
    for join in [(5, 13), (7, 14)] {
        let world = some_notes(join);
        for (input, names) in [
            ("bear://search/milk", vec!["Groceries"]),
            ("bear://search/GROCER", vec!["Groceries"]),
            ("bear://search/%C3%A4RGER", vec!["Ärger"]),
            ("bear://search/100%25", vec!["Groceries"]),
            ("bear://search/e_c", vec!["Ärger"]),
            (
                "bear://search/o",
                vec!["Groceries", "bear://get/C-3", "Ärger"],
            ),
            ("bear://search/?tag=home", vec!["Groceries"]),
            (
                "bear://search/?tag=home&tag=WORK",
                vec!["Groceries", "Ärger"],
            ),
            ("bear://search/?tag=%23work/long%20name", vec!["Ärger"]),
            ("bear://search/snake?tag=work&tag=none", vec!["Ärger"]),
        ] {
            assert_eq!(world.names(input), names, "{input}");
        }
        for input in [
            "%25x",
            "_",
            "*",
            "%25%25",
            "mi_k",
            "snake?tag=home",
            "?tag=hom",
            "?tag=%25",
            "locked",
        ] {
            if input == "_" {
                assert_eq!(world.names("bear://search/_"), ["Ärger"]);
                continue;
            }
            let error = world.attach(&format!("bear://search/{input}")).unwrap_err();
            assert!(
                matches!(
                    error,
                    AttachError::Bear {
                        source: BearError::NoMatch,
                        ..
                    }
                ),
                "{input}: {error:?}"
            );
        }
    }
}

#[test]
fn unavailable_note_is_an_error() {
    let world = some_notes((5, 13));
    for (input, message) in [
        ("bear:X", r#"attach "bear:X": there is no such note"#),
        ("bear:a-1", r#"attach "bear:a-1": there is no such note"#),
        ("bear:G-7", r#"attach "bear:G-7": there is no such note"#),
        (
            "bear:E-5",
            r#"attach "bear:E-5": the note is in the trash; restore it to attach it"#,
        ),
        (
            "bear:F-6",
            r#"attach "bear:F-6": the note is locked; unlock it in Bear to attach it"#,
        ),
    ] {
        assert_eq!(world.error(input), message);
    }
    let declared = ["bear:X", "bear:A-1"].map(|input| parse_input(input, &world.place).unwrap());
    let resolved = resolve(
        &declared,
        &Context {
            unavailable: Unavailable::Skip,
            ..world.context()
        },
    )
    .unwrap();
    assert_eq!(resolved.resources.len(), 1);
    assert!(matches!(resolved.notices[..], [Notice::Skipped(_)]));
}

#[test]
fn unusable_database_is_an_error() {
    let world = World::new((5, 13));
    let other = world.database.with_file_name("other.sqlite");
    let error = |world: &World| {
        let declared = parse_input("bear://search/?tag=x", &world.place).unwrap();
        let context = Context {
            bear_database: Some(&other),
            ..world.context()
        };
        let home = world.place.home.as_ref().unwrap().to_str().unwrap();
        message(&resolve(&[declared], &context).unwrap_err())
            .replace(home, "HOME")
            .replace(
                other
                    .parent()
                    .unwrap()
                    .strip_prefix(home)
                    .unwrap()
                    .to_str()
                    .unwrap(),
                "DATA",
            )
    };
    let named = r#"attach "bear://search/?tag=x": "#;
    assert_eq!(
        error(&world),
        format!("{named}there is no Bear database at \"HOME/DATA/other.sqlite\"")
    );
    std::fs::write(
        &other,
        "not a database, and long enough to be looked at".repeat(50),
    )
    .unwrap();
    let malformed =
        format!("{named}read the Bear database \"HOME/DATA/other.sqlite\": file is not a database");
    assert!(error(&world).starts_with(&malformed), "{}", error(&world));
    std::fs::remove_file(&other).unwrap();
    let connection = Connection::open(&other).unwrap();
    let missing = "is not a Bear database that jp can read: it has no";
    for (statement, what) in [
        ("CREATE TABLE x (y)", "table ZSFNOTE"),
        (
            "CREATE TABLE ZSFNOTE (Z_PK, ZUNIQUEIDENTIFIER, ZTITLE)",
            "column ZTEXT in ZSFNOTE",
        ),
        ("ALTER TABLE ZSFNOTE ADD COLUMN ZTEXT", "table ZSFNOTETAG"),
        (
            "CREATE TABLE ZSFNOTETAG (Z_PK, ZTITLE)",
            "table of the notes' tags",
        ),
    ] {
        connection.execute_batch(statement).unwrap();
        assert_eq!(
            error(&world),
            format!("{named}\"HOME/DATA/other.sqlite\" {missing} {what}")
        );
    }
    let place = Place {
        home: None,
        ..world.place.clone()
    };
    let declared = parse_input("bear:A-1", &place).unwrap();
    let error = resolve(
        &[declared],
        &Context {
            place: &place,
            ..world.context()
        },
    )
    .unwrap_err();
    assert!(matches!(
        error,
        AttachError::Bear {
            source: BearError::NoHome,
            ..
        }
    ));
}

#[test]
fn limits_hold() {
    let world = some_notes((5, 13));
    let attach = |input: &str, with: fn(&mut Context<'_>)| {
        let mut context = world.context();
        with(&mut context);
        resolve(&[parse_input(input, &world.place).unwrap()], &context).unwrap_err()
    };
    let error = attach("bear:A-1", |context| context.limits.max_bytes = 5);
    assert!(matches!(error, AttachError::TooLong { limit: 5, .. }));
    let error = attach("bear://search/o", |context| context.limits.max_files = 2);
    assert!(matches!(error, AttachError::TooManyFiles { limit: 2, .. }));
}

#[test]
fn reader_waits_while_the_app_writes() {
    let world = some_notes((5, 13));
    world
        .connection
        .pragma_update(None, "journal_mode", "DELETE")
        .unwrap();
    world.connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let declared = [parse_input("bear:A-1", &world.place).unwrap()];
    let context = Context {
        timeout: Duration::from_millis(1),
        ..world.context()
    };
    let error = resolve(&declared, &context).unwrap_err();
    assert_ends(message(&error), "database is locked");
    let cancelled = AtomicBool::new(true);
    let error = resolve(
        &declared,
        &Context {
            cancelled: Some(&cancelled),
            ..world.context()
        },
    )
    .unwrap_err();
    assert!(matches!(error, AttachError::Interrupted));
    world.connection.execute_batch("COMMIT").unwrap();
    assert_eq!(world.names("bear:A-1"), ["Groceries"]);
}

#[test]
fn database_is_not_written_to() {
    let world = some_notes((5, 13));
    world
        .connection
        .pragma_update(None, "journal_mode", "DELETE")
        .unwrap();
    let before = std::fs::read(&world.database).unwrap();
    world.names("bear://search/o");
    assert_eq!(std::fs::read(&world.database).unwrap(), before);
    assert_eq!(
        std::fs::read_dir(world.database.parent().unwrap())
            .unwrap()
            .count(),
        1
    );
}
