//! Spellings of a URI or a path that a model may use.

use std::{borrow::Cow, path::Path};

use jp_attachment::{Place, Scheme, canonical_path, parse_input};
use jp_resource::uri::{self, PathStyle};

/// Returns the canonical URIs that a text may stand for, the most likely first.
///
/// `file:` and `http(s):` URLs, command lines and paths have several spellings; other schemes have only one,
/// and none here. Nothing is opened: at most the links of a path below the workspace root are followed.
pub(crate) fn canonical_uris(text: &str, place: &Place) -> Vec<String> {
    match Scheme::split(text) {
        Some((Scheme::File, rest)) => {
            let mut uris = Vec::from_iter(uri::canonical_file_uri(text, PathStyle::native()).ok());
            uris.extend(path_uris(local_path(rest), place));
            // Stored declarations may write the workspace root as `/`.
            uris.extend(path_uris(rest.trim_start_matches('/'), place));
            uris
        }
        Some((Scheme::Http | Scheme::Command, _)) => {
            let declared = parse_input(text, place).ok();
            declared
                .and_then(|declared| declared.declaration)
                .into_iter()
                .collect()
        }
        Some(_) => Vec::new(),
        None => path_uris(text, place),
    }
}

/// Returns the path in the rest of a `file:` URL, without a host that is this machine.
fn local_path(rest: &str) -> &str {
    let Some(authority) = rest.strip_prefix("//") else {
        return rest;
    };
    let (host, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
    if host.is_empty() || host.eq_ignore_ascii_case("localhost") {
        path
    } else {
        authority
    }
}

/// Returns the URIs of a path that may be percent-encoded, lead through links or have a fragment.
fn path_uris(path: &str, place: &Place) -> Vec<String> {
    // `#` and `%` may also be part of a file's name, so each reading is tried.
    let whole = [path, uri::split_fragment(path).0];
    let decoded =
        whole.map(|path| uri::percent_decode(path).map_or(Cow::Borrowed(path), Cow::Owned));
    let paths = whole.into_iter().chain(decoded.iter().map(|path| &**path));
    let mut uris: Vec<_> = paths.filter_map(|path| path_uri(path, place)).collect();
    uris.dedup();
    let linked: Vec<_> = uris
        .iter()
        .filter_map(|uri| target_uri(uri, place))
        .collect();
    uris.extend(linked);
    uris
}

/// Returns the URI of a path from the root.
pub(crate) fn path_uri(path: &str, place: &Place) -> Option<String> {
    uri::file_uri(place.root.join(path).to_str()?, PathStyle::native()).ok()
}

/// Returns the URI of a path below the root with its links followed. Other paths may be on a network, so jp doesn't
/// look at them.
fn target_uri(uri: &str, place: &Place) -> Option<String> {
    let path = uri::file_path(uri, PathStyle::native()).ok()?;
    let is_below = Path::new(&path).starts_with(&place.root);
    let target = is_below
        .then(|| canonical_path(Path::new(&path)).ok())
        .flatten()?;
    path_uri(target.to_str()?, place)
}

/// Replaces the entities that XML has in attributes (XML 1.0 §4.1, §4.6); other text stays.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        read.push_str(before);
        let entity = after
            .split_once(';')
            .and_then(|(name, rest)| Some((character(name)?, rest)));
        let (character, after) = entity.unwrap_or(('&', after));
        read.push(character);
        rest = after;
    }
    read.push_str(rest);
    read.into()
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(number.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_replaced_once() {
        for (text, read) in [
            ("a", "a"),
            ("?a=1&amp;b=2", "?a=1&b=2"),
            ("&lt;&gt;&quot;&apos;&#10;&#xe9;", "<>\"'\n\u{e9}"),
            ("&amp;lt;", "&lt;"),
            ("&;&x;&#;&#xD800;& a;b&", "&;&x;&#;&#xD800;& a;b&"),
        ] {
            assert_eq!(unescape(text), read, "{text}");
        }
    }
}
