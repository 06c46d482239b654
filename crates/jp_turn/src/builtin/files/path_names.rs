//! Parses the paths that models write.

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use jp_resource::uri::{self, PathStyle};

/// The maximum length of a path in bytes: `PATH_MAX` of Linux.
const MAX_BYTES: usize = 4096;

/// Parses a path that is relative to the root, absolute inside it, or a `file:` URI inside it.
/// Returns its names from the root on. The error is a sentence for the model.
///
/// Does not access the disk. Refuses `..` wherever it leads, and a name that would become `..` if
/// it were decoded once more: a model that writes it means another file.
pub(super) fn parse(text: &str, roots: &[PathBuf]) -> Result<Vec<OsString>, String> {
    if text.is_empty() {
        return Err("The path is empty. `.` is the workspace root.".to_owned());
    }
    if text.len() > MAX_BYTES {
        return Err(format!(
            "The path has {} bytes. The limit is {MAX_BYTES}.",
            text.len()
        ));
    }
    let path = local_path(text)?;
    let relative = match path.has_root() {
        true => roots.iter().find_map(|root| path.strip_prefix(root).ok()),
        false => Some(path.as_path()),
    };
    let components = relative.ok_or_else(|| refuse_outside(text))?.components();
    components
        .filter(|component| *component != Component::CurDir)
        .map(|name| check_name(name, text))
        .collect()
}

/// Returns the error for a path outside the workspace.
pub(super) fn refuse_outside(text: &str) -> String {
    format!("{text:?} is outside the workspace. Use a path relative to the workspace root.")
}

/// Returns the path, also from a URI.
fn local_path(text: &str) -> Result<PathBuf, String> {
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
            "{text:?} is not a file of the workspace. Only `file:///…` URIs are accepted."
        ));
    }
    let is_drive =
        text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
    if cfg!(not(windows)) && is_drive {
        return Err(format!(
            "{text:?} is not a path on this system: it has no drives."
        ));
    }
    if text.starts_with('~') && (text == "~" || text.contains('/')) {
        return Err(format!(
            "{text:?} is outside the workspace: `~` stands for a home directory."
        ));
    }
    Ok(PathBuf::from(text))
}

/// Returns the name of a component, unless it is refused.
fn check_name(component: Component<'_>, text: &str) -> Result<OsString, String> {
    let Component::Normal(name) = component else {
        return Err(format!(
            "{text:?} is refused: write the path without `..`, relative to the workspace root."
        ));
    };
    let shown = name.to_string_lossy();
    if shown.contains('\0') || (cfg!(windows) && shown.contains(':')) {
        return Err(format!(
            "{text:?} is not a valid path: {shown:?} can't be a file name."
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

/// Returns whether a name, decoded repeatedly, becomes `.` or `..` or contains a separator.
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

/// Returns whether a link's target is absolute, and its names. `None` if it is absolute and
/// outside.
pub(super) fn read_target(target: &Path, roots: &[PathBuf]) -> Option<(bool, Vec<OsString>)> {
    let is_absolute = target.has_root();
    let relative = match is_absolute {
        true => roots
            .iter()
            .find_map(|root| target.strip_prefix(root).ok())?,
        false => target,
    };
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => names.push("..".into()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    Some((is_absolute, names))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let names = parse(text, &["/w/project".into(), "/link".into()])?;
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
        fn no_parsed_name_leads_elsewhere(text in "[a.%/\\\\~:2efF5cC0]{0,24}|(file:)?[a-z/.%2e]{0,16}|.*") {
            if let Ok(names) = parse(&text, &["/w".into()]) {
                for name in names {
                    let name = name.to_str().unwrap();
                    prop_assert!(!name.is_empty() && name != "." && name != "..");
                    prop_assert!(!name.contains(['/', '\0']));
                }
            }
        }
    }
}
