use jp_resource::uri::{
    PathStyle, canonical_file_uri, encode_path, external_name, external_uri, file_path, file_uri,
    is_external, percent_decode, percent_encode_segment, split_fragment,
};

/// Takes `text` as a URI, as a path and as a file's name, by Unix's rules and by Windows'.
///
/// No input panics; canonical URIs are canonical; paths and URIs stand for each other.
pub fn uris(text: &str) {
    for style in [PathStyle::Unix, PathStyle::Windows] {
        check_uri(text, style);
        check_path(text, style);
        check_external(text, style);
    }
    check_percent(text);
}

fn check_uri(uri: &str, style: PathStyle) {
    let path = file_path(uri, style).ok();
    let Ok(canonical) = canonical_file_uri(uri, style) else {
        assert_eq!(path, None, "{uri:?} has a path but no canonical form");
        return;
    };
    assert_eq!(
        canonical_file_uri(&canonical, style).as_deref(),
        Ok(&*canonical),
        "{uri:?}"
    );
    assert_eq!(file_path(&canonical, style).ok(), path, "{uri:?}");
    let resource = canonical.split(['?', '#']).next().unwrap_or_default();
    if let Some(path) = path {
        assert_eq!(file_uri(&path, style).as_deref(), Ok(resource), "{uri:?}");
    }
}

fn check_path(path: &str, style: PathStyle) {
    let Ok(uri) = file_uri(path, style) else {
        return;
    };
    assert_eq!(
        canonical_file_uri(&uri, style).as_deref(),
        Ok(&*uri),
        "{path:?}"
    );
    let normalised = file_path(&uri, style).expect("a path's URI names a path");
    assert_eq!(
        file_uri(&normalised, style).as_deref(),
        Ok(&*uri),
        "{path:?}"
    );
}

fn check_external(text: &str, style: PathStyle) {
    assert!(
        external_name(text).is_none() || is_external(text),
        "{text:?}"
    );
    let (parent, name) = text.rsplit_once('/').unwrap_or(("", text));
    let is_name = !["", ".", ".."].contains(&name) && !name.contains('\0');
    for key in [None, Some(parent.as_bytes())] {
        let uri = external_uri(parent, name, key, style);
        assert!(is_external(&uri), "{uri:?}");
        assert_eq!(
            external_name(&uri).as_deref(),
            is_name.then_some(name),
            "{uri:?}"
        );
        assert_eq!(split_fragment(&uri), (&*uri, None));
        assert_eq!(
            uri.split_once('/').map(|(hash, _)| hash.len()),
            Some("external:".len() + 64),
            "{uri:?}"
        );
    }
}

fn check_percent(text: &str) {
    for encoded in [percent_encode_segment(text), encode_path(text)] {
        assert!(
            encoded.is_ascii() && !encoded.contains(['?', '#', ' ']),
            "{encoded:?}"
        );
        assert_eq!(percent_decode(&encoded).as_deref(), Ok(text));
    }
    if let Ok(decoded) = percent_decode(text) {
        assert_eq!(
            percent_decode(&percent_encode_segment(&decoded)).as_deref(),
            Ok(&*decoded)
        );
    }
    let (resource, fragment) = split_fragment(text);
    let joined = fragment.map_or(resource.to_owned(), |fragment| {
        format!("{resource}#{fragment}")
    });
    assert_eq!(joined, text);
}
