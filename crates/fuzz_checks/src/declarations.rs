use jp_attachment::{AttachError, Declared, Place, Source, parse_input, parse_stored};

/// Takes `text` as something a person attaches, and as something that is stored.
///
/// No input panics; what is stored of anything but a file reads back as the same thing, and holds no
/// credentials of a URL.
pub fn declarations(text: &str) {
    let place = Place::new("/nonexistent");
    _ = parse_stored(text, &place);
    let Ok(Declared {
        declaration: Some(stored),
        source,
        ..
    }) = parse_input(text, &place)
    else {
        return;
    };
    match (
        &source,
        parse_stored(&stored, &place).map(|declared| declared.source),
    ) {
        (Source::Path(_) | Source::Glob(_) | Source::Exclude(_), _) => {}
        (Source::Http { url, .. }, read) => match read {
            Ok(Source::Http {
                url: again,
                credentials: None,
            }) => {
                assert_eq!(url, &again, "{text:?}");
                assert_eq!(url.to_string(), stored, "{text:?}");
            }
            read => panic!("{text:?} is stored as {stored:?}, which reads as {read:?}"),
        },
        (source, Ok(read)) => assert_eq!(source, &read, "{text:?}"),
        // Something is there by now.
        (_, Err(AttachError::Io { .. })) => {}
        (_, Err(error)) => panic!("{text:?} is stored as {stored:?}: {error}"),
    }
}
