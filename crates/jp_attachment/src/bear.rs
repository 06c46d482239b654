//! Notes of the Bear app, read from its database.

#[cfg(any(feature = "bear", target_os = "macos"))]
mod notes;

use std::{error::Error, path::PathBuf};

use jp_resource::uri::percent_decode;

use crate::{AttachError, Context, Declared, Resolved, Source, handler::Handler, keep};

/// Notes that are asked for.
///
/// Written `bear://get/ID`, `bear:ID`, as the app's own link to a note,
/// `bear://x-callback-url/open-note?id=ID`, or `bear://search/WORDS?tag=A&tag=B`; percent-encoding is
/// decoded, a `+` is itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BearUri {
    /// The note with this identifier.
    Note(String),
    /// Each note whose title or text holds `words`, in any case, and that has one of `tags`, if there are
    /// any. Neither is a pattern.
    Search {
        /// What a note holds; may be empty where there are tags.
        words: String,
        /// Tags without `#`.
        tags: Vec<String>,
    },
}

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

/// Resolves `bear:` to notes, each with its title as name and the URI `bear://get/ID`.
///
/// Reads the database and never writes to it. A search gives no note that is archived, locked or in the
/// trash; one that is archived can be named.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BearHandler;

impl Handler for BearHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["bear"]
    }

    /// One after the other: it is one database, and a search reads all of it.
    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError> {
        let read = |declared| context.unavailable.tolerate(read(declared, context));
        let given = declared
            .iter()
            .map(read)
            .collect::<Result<_, AttachError>>()?;
        keep::assemble(declared, given, context)
    }
}

#[cfg(any(feature = "bear", target_os = "macos"))]
fn read(declared: &Declared, context: &Context<'_>) -> Result<Vec<keep::Kept>, AttachError> {
    let Source::Bear(uri) = &declared.source else {
        return Ok(Vec::new());
    };
    let notes = notes::read(uri, declared, context)?;
    notes
        .into_iter()
        .map(|note| context.keep(declared, note))
        .collect()
}

#[cfg(not(any(feature = "bear", target_os = "macos")))]
fn read(declared: &Declared, _: &Context<'_>) -> Result<Vec<keep::Kept>, AttachError> {
    match &declared.source {
        Source::Bear(_) => Err(AttachError::Bear {
            input: declared.input.clone(),
            source: BearError::NotSupported,
        }),
        _ => Ok(Vec::new()),
    }
}

impl BearUri {
    /// Reads what follows `bear:`. Says what is wrong where it can't.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let Some(rest) = rest.strip_prefix("//") else {
            return Self::note(decoded(rest)?);
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A configuration's table encodes the `/` as well.
        let path = decoded(path)?;
        let (action, argument) = path.split_once('/').unwrap_or((&path, ""));
        match action {
            "get" => Self::note(argument.to_owned()),
            "search" => Self::search(argument.to_owned(), parameters(query, "tag")?),
            "x-callback-url" if argument == "open-note" => Self::note(
                parameters(query, "id")?
                    .into_iter()
                    .next()
                    .unwrap_or_default(),
            ),
            _ => Err(FORMS.to_owned()),
        }
    }

    fn note(id: String) -> Result<Self, String> {
        if id.is_empty() {
            Err(FORMS.to_owned())
        } else {
            Ok(Self::Note(id))
        }
    }

    fn search(words: String, tags: Vec<String>) -> Result<Self, String> {
        if words.is_empty() && tags.is_empty() {
            return Err("a search needs words or a tag, `bear://search/WORDS?tag=TAG`".to_owned());
        }
        Ok(Self::Search { words, tags })
    }
}

const FORMS: &str = "a note is `bear://get/ID`, several are `bear://search/WORDS?tag=TAG`";

/// Returns the values that a query gives a parameter. Refuses any other: it would change nothing.
fn parameters(query: &str, name: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some((key, value)) if key == name => values.push(decoded(value)?),
            _ if name == "id" => {}
            _ => {
                return Err(format!(
                    "{parameter:?} is not a parameter of it; `tag=TAG` is"
                ));
            }
        }
    }
    values.retain(|value| !value.is_empty());
    Ok(values)
}

fn decoded(text: &str) -> Result<String, String> {
    percent_decode(text).map_err(|_| format!("{text:?} does not decode to UTF-8"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Place, parse_configured, parse_input, parse_stored};

    fn place() -> Place {
        Place {
            root: "/w".into(),
            current_dir: "/w/none".into(),
            home: None,
            external_key: None,
        }
    }

    fn note(id: &str) -> BearUri {
        BearUri::Note(id.into())
    }

    fn search(words: &str, tags: &[&str]) -> BearUri {
        BearUri::Search {
            words: words.into(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        }
    }

    #[test]
    fn forms_are_read_and_stored_as_written() {
        for (input, uri) in [
            ("bear://get/A-1", note("A-1")),
            ("bear:A-1", note("A-1")),
            ("BEAR:a%20b", note("a b")),
            ("bear://get%2FA-1", note("A-1")),
            (
                "bear://x-callback-url/open-note?id=A-1&edit=yes",
                note("A-1"),
            ),
            (
                "bear://search/milk%20and+honey",
                search("milk and+honey", &[]),
            ),
            (
                "bear://search/a/b?tag=work/x&tag=%F0%9F%90%BB",
                search("a/b", &["work/x", "🐻"]),
            ),
            ("bear://search/?tag=a", search("", &["a"])),
            ("bear://search?tag=a", search("", &["a"])),
        ] {
            for declared in [
                parse_input(input, &place()),
                parse_stored(input, &place()),
                parse_configured(input, &place()),
            ] {
                let declared = declared.unwrap();
                assert_eq!(declared.source, Source::Bear(uri.clone()), "{input}");
                assert_eq!(declared.declaration.as_deref(), Some(input));
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_declaration_is_named() {
        for (input, reason) in [
            ("bear:", FORMS),
            ("bear://", FORMS),
            ("bear://get/", FORMS),
            ("bear://get", FORMS),
            ("bear://create/x", FORMS),
            ("bear://x-callback-url/open-note?title=x", FORMS),
            (
                "bear://search/",
                "a search needs words or a tag, `bear://search/WORDS?tag=TAG`",
            ),
            (
                "bear://search/?tag=",
                "a search needs words or a tag, `bear://search/WORDS?tag=TAG`",
            ),
            (
                "bear://search/x?tags=a",
                r#""tags=a" is not a parameter of it; `tag=TAG` is"#,
            ),
            ("bear:%FF", r#""%FF" does not decode to UTF-8"#),
        ] {
            let expected = format!("attach {input:?}: {reason}");
            assert_eq!(
                parse_input(input, &place()).unwrap_err().to_string(),
                expected
            );
        }
    }

    #[cfg(not(any(feature = "bear", target_os = "macos")))]
    #[test]
    fn build_without_the_database_says_so() {
        let place = place();
        let context = Context::new(
            &place,
            &crate::store::Nowhere,
            std::time::SystemTime::UNIX_EPOCH,
        );
        let declared = [parse_input("bear:A-1", &place).unwrap()];
        let error = BearHandler.resolve(&declared, &context).unwrap_err();
        assert!(error.is_unavailable());
        assert_eq!(
            error.source().unwrap().to_string(),
            "Bear notes can be attached on macOS"
        );
    }

    proptest! {
        #[test]
        fn reading_never_panics(rest: String, query in "//search/[a%2?&=/+]{0,20}") {
            let _ = (BearUri::parse(&rest), BearUri::parse(&query));
        }
    }
}
