//! What a model calls a file.

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use jp_resource::uri::{self, PathStyle};

/// Length of the longest path that is looked at, in bytes.
const MAX_BYTES: usize = 4096;

/// Reads a path: relative to the root, absolute inside it, or a `file:` URI inside it. Returns its names from the root
/// on; the error is a sentence.
///
/// Nothing is looked up. A path with `..` is refused wherever that leads, and so is a name that would be one if it were
/// decoded once more: who writes such a thing means another file than the one of that name.
pub(super) fn names(text: &str, roots: &[PathBuf]) -> Result<Vec<OsString>, String> {
    if text.is_empty() {
        return Err("The path is empty; `.` is the workspace itself.".to_owned());
    }
    if text.len() > MAX_BYTES {
        return Err(format!(
            "The path has {} bytes, and the longest that is taken {MAX_BYTES}.",
            text.len()
        ));
    }
    let path = local(text)?;
    let relative = match path.has_root() {
        true => roots.iter().find_map(|root| path.strip_prefix(root).ok()),
        false => Some(path.as_path()),
    };
    let components = relative.ok_or_else(|| outside(text))?.components();
    components
        .filter(|component| *component != Component::CurDir)
        .map(|name| checked(name, text))
        .collect()
}

/// Says that a path is refused as it leads out.
pub(super) fn outside(text: &str) -> String {
    format!(
        "{text:?} is not in the workspace. Only files in it can be reached, by paths relative to its root."
    )
}

/// Returns the path that is written, be it as a URI.
fn local(text: &str) -> Result<PathBuf, String> {
    let is_uri = text
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    if is_uri {
        let (place, _) = uri::split_fragment(text);
        let path = uri::file_path(place, PathStyle::native());
        return path
            .map(PathBuf::from)
            .map_err(|error| format!("The path can't be read: {error}."));
    }
    if text.contains("://") {
        return Err(format!(
            "{text:?} is no file of the workspace: of URIs, only `file:///…` ones are taken."
        ));
    }
    let is_drive =
        text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
    if cfg!(not(windows)) && is_drive {
        return Err(format!("{text:?} is no path here: there are no drives."));
    }
    if text.starts_with('~') && (text == "~" || text.contains('/')) {
        return Err(format!(
            "{text:?} is not in the workspace: `~` stands for a home directory."
        ));
    }
    Ok(PathBuf::from(text))
}

/// Returns the name that a component is.
fn checked(component: Component<'_>, text: &str) -> Result<OsString, String> {
    let Component::Normal(name) = component else {
        return Err(format!(
            "{text:?} is refused: write the path without `..`, from the workspace's root on."
        ));
    };
    let shown = name.to_string_lossy();
    if shown.contains('\0') || (cfg!(windows) && shown.contains(':')) {
        return Err(format!(
            "{text:?} is no path: {shown:?} can't be a file's name."
        ));
    }
    if shown.contains('\\') {
        return Err(format!("{text:?} is refused: names are separated by `/`."));
    }
    if leads_on_when_decoded(&shown) {
        return Err(format!(
            "{text:?} is refused: write the path without percent-encoding."
        ));
    }
    Ok(name.to_owned())
}

/// Returns whether a name, decoded as often as it can be, is `.` or `..` or has a separator in it.
fn leads_on_when_decoded(name: &str) -> bool {
    let mut name = name.to_owned();
    while let Ok(decoded) = uri::percent_decode(&name)
        && decoded != name
    {
        if matches!(decoded.as_str(), "." | "..") || decoded.contains(['/', '\\', '\0']) {
            return true;
        }
        name = decoded;
    }
    false
}

/// Returns the names of a link's target; `None` where it is absolute and not inside.
pub(super) fn of_target(target: &Path, roots: &[PathBuf]) -> Option<(bool, Vec<OsString>)> {
    let is_absolute = target.has_root();
    let relative = match is_absolute {
        true => roots
            .iter()
            .find_map(|root| target.strip_prefix(root).ok())?,
        false => target,
    };
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(Some(name.to_owned())),
        Component::ParentDir => Some(Some("..".into())),
        Component::CurDir => Some(None),
        Component::Prefix(_) | Component::RootDir => None,
    };
    let names: Option<Vec<_>> = relative.components().map(name).collect();
    Some((is_absolute, names?.into_iter().flatten().collect()))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let names = names(text, &["/w/project".into(), "/link".into()])?;
        Ok(names
            .iter()
            .map(|name| name.to_str().unwrap())
            .collect::<Vec<_>>()
            .join("/"))
    }

    #[test]
    fn path_inside_is_read_from_the_root_on() {
        let table = [
            (".", ""),
            ("src/a.rs", "src/a.rs"),
            ("./src//a.rs", "src/a.rs"),
            ("/w/project/src/a.rs", "src/a.rs"),
            ("/w/project", ""),
            ("/link/src/a.rs", "src/a.rs"),
            ("file:///w/project/a%20b", "a b"),
            ("file:///w/project/a#L1-2", "a"),
            ("file:///w/project/x/%2E%2E/a", "a"),
            ("./~x", "~x"),
            ("~x", "~x"),
            ("100%", "100%"),
            ("a%20b", "a%20b"),
            ("a b\u{e9}", "a b\u{e9}"),
            ("...", "..."),
        ];
        for (text, path) in table {
            assert_eq!(read(text).as_deref(), Ok(path), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_gives_a_name_that_leads_elsewhere(text in "[a.%/\\\\~:2efF5cC0]{0,24}|(file:)?[a-z/.%2e]{0,16}|.*") {
            if let Ok(names) = names(&text, &["/w".into()]) {
                for name in names {
                    let name = name.to_str().unwrap();
                    prop_assert!(!name.is_empty() && name != "." && name != "..");
                    prop_assert!(!name.contains(['/', '\0']));
                }
            }
        }
    }
}
