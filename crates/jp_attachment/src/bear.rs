//! Notes of the Bear app, read from its database.

mod error;
#[cfg(any(feature = "bear", target_os = "macos"))]
mod notes;
mod uri;

pub use self::{error::BearError, uri::BearUri};
use crate::{
    AttachError, Context, Declared, Resolved, Source,
    keep::{KeptResource, assemble},
};

/// Resolves `bear:` to notes, each with its title as name and the URI `bear://get/ID`.
///
/// Reads the database and never writes to it. A search skips notes that are archived, locked or in
/// the trash. An archived note can be attached by its identifier.
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    // One after the other, because all read the same database.
    let kept = declared
        .iter()
        .map(|declared| context.unavailable.tolerate(read(declared, context)))
        .collect::<Result<_, AttachError>>()?;
    assemble(declared, kept, context)
}

#[cfg(any(feature = "bear", target_os = "macos"))]
fn read(declared: &Declared, context: &Context<'_>) -> Result<Vec<KeptResource>, AttachError> {
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
fn read(declared: &Declared, _: &Context<'_>) -> Result<Vec<KeptResource>, AttachError> {
    match &declared.source {
        Source::Bear(_) => Err(AttachError::Bear {
            input: declared.input.clone(),
            source: BearError::NotSupported,
        }),
        _ => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{uri::FORMS, *};
    use crate::{Place, parse_configured, parse_input, parse_stored};

    fn place() -> Place {
        Place {
            current_dir: "/w/none".into(),
            ..Place::new("/w")
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
    fn forms_are_stored_as_written() {
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
    fn malformed_declaration_is_explained() {
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
                r#""tags=a" is not a parameter of a search; use `tag=TAG`"#,
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
        use std::error::Error as _;
        let place = place();
        let context = Context::new(
            &place,
            &crate::store::Nowhere,
            std::time::SystemTime::UNIX_EPOCH,
        );
        let declared = [parse_input("bear:A-1", &place).unwrap()];
        let error = resolve(&declared, &context).unwrap_err();
        assert!(error.is_unavailable());
        assert_eq!(
            error.source().unwrap().to_string(),
            "Bear notes can be attached only on macOS"
        );
    }

    proptest! {
        #[test]
        fn reading_never_panics(rest: String, query in "//search/[a%2?&=/+]{0,20}") {
            let _ = (BearUri::parse(&rest), BearUri::parse(&query));
        }
    }
}
