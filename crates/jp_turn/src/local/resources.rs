//! Identifies the files that a tool returned, as attached ones are.

use std::{
    io,
    path::{Path, PathBuf},
};

use jp_attachment::{HttpUrl, Place, binary_type, canonical_path};
use jp_resource::{
    Resource, ResourceContent, mime,
    uri::{self, PathStyle, UriError},
};
use jp_tool::{ContentBlock, ToolResponse};

use crate::Surroundings;

/// Makes the `file:` URIs of a local tool's resources canonical, and says which could not be.
///
/// `file:src/a.rs` is a path from the workspace root. Links are resolved as far as there is a file.
/// Inside the workspace the result is `file:///…`, outside it is `external:…`; query and fragment
/// stay. A resource without a name, or without a MIME type, gets what its path says. `http(s):`
/// URIs become canonical too, other URIs are kept byte for byte.
pub(crate) fn with_canonical_uris(
    mut response: ToolResponse,
    surroundings: &Surroundings,
) -> (ToolResponse, Vec<String>) {
    let place = place(surroundings);
    let mut warnings = Vec::new();
    response.content.retain_mut(|block| {
        let ContentBlock::Resource { resource, .. } = block else {
            return true;
        };
        let identified = identify(resource, &place);
        if let Err(reason) = &identified {
            warnings.push(format!("a content block was skipped: {reason}"));
        }
        identified.is_ok()
    });
    (response, warnings)
}

fn place(surroundings: &Surroundings) -> Place {
    surroundings.place.clone().unwrap_or_else(|| {
        let root = canonical_path(&surroundings.root).unwrap_or_else(|_| surroundings.root.clone());
        Place::new(root)
    })
}

fn identify(resource: &mut Resource, place: &Place) -> Result<(), String> {
    let Some(path) = strip_file_scheme(&resource.uri) else {
        if let Some(canonical) = HttpUrl::canonical(&resource.uri) {
            resource.uri = canonical;
        }
        return Ok(());
    };
    let (path, suffix) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
    let path =
        absolute(path, &place.root).map_err(|error| no_file(&resource.uri, cause(&error)))?;
    let path = canonical_as_far_as_there(&path);
    let (uri, name) = place
        .uri_and_name(&path)
        .ok_or_else(|| no_file(&resource.uri, ""))?;
    if resource.mime_type.is_none() {
        let found = match &resource.content {
            ResourceContent::Text(_) => mime::from_path(&name),
            ResourceContent::Blob(bytes) => Some(binary_type(bytes, &name)),
        };
        resource.mime_type = found.map(str::to_owned);
    }
    resource.uri = uri + suffix;
    resource.name.get_or_insert(name);
    Ok(())
}

fn no_file(uri: &str, cause: &str) -> String {
    format!("its URI {uri:?} names no file{cause}")
}

/// Describes the error without the path: its own message contains that of the workspace.
fn cause(error: &UriError) -> &'static str {
    match error {
        UriError::RemoteHost { .. } => " of this machine: what follows two slashes is a host",
        UriError::EncodedSeparator(_) => ": a name in it contains an encoded separator",
        UriError::Nul(_) => ": a name in it contains a NUL",
        UriError::NotUtf8(_) => ": a name in it is not UTF-8",
        UriError::NotFile(_) | UriError::Relative(_) | UriError::Device(_) => "",
    }
}

fn strip_file_scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    scheme.eq_ignore_ascii_case("file").then_some(rest)
}

/// Reads the path of a `file:` URI, relative ones from the root on.
fn absolute(path: &str, root: &Path) -> Result<PathBuf, UriError> {
    let style = PathStyle::native();
    let is_absolute =
        path.starts_with('/') || (cfg!(windows) && path.as_bytes().get(1) == Some(&b':'));
    let uri = match is_absolute {
        true => format!("file:{path}"),
        false => format!("{}/{path}", uri::file_uri(&root.to_string_lossy(), style)?),
    };
    uri::file_path(&uri, style).map(PathBuf::from)
}

/// Resolves the links of the existing part of a path, and appends the rest unchanged.
fn canonical_as_far_as_there(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|ancestor| {
        let canonical: io::Result<PathBuf> = canonical_path(ancestor);
        canonical.ok().zip(path.strip_prefix(ancestor).ok())
    });
    match found {
        // Joined with nothing, a path would end with a separator.
        Some((canonical, rest)) if rest == Path::new("") => canonical,
        Some((canonical, rest)) => canonical.join(rest),
        None => path.to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn identified(root: &Path, uri: &str) -> Result<Resource, String> {
        let surroundings = Surroundings {
            root: root.to_owned(),
            ..Surroundings::default()
        };
        let resource = Resource::new(uri, ResourceContent::Text("x".to_owned()));
        let checksum = resource.checksum();
        let response = ToolResponse::new([ContentBlock::resource(resource)]);
        let (mut response, warnings) = with_canonical_uris(response, &surroundings);
        match response.content.pop() {
            Some(ContentBlock::Resource { resource, .. }) => {
                assert_eq!((resource.checksum(), warnings), (checksum, vec![]));
                Ok(resource)
            }
            _ => Err(warnings.join("; ")),
        }
    }

    #[test]
    fn files_of_the_workspace_get_canonical_uris() {
        let directory = tempfile::tempdir().unwrap();
        let root = canonical_path(directory.path()).unwrap();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a b.rs"), "").unwrap();
        symlink("a b.rs", root.join("src/link.rs")).unwrap();
        symlink("src", root.join("sources")).unwrap();
        let uri = format!("file://{}/src/a%20b.rs", root.display());
        for given in [
            "file:src/a%20b.rs".to_owned(),
            "FILE:./src/../src//a b.rs".to_owned(),
            format!("file:{}/src/a%20b.rs", root.display()),
            format!("file://localhost{}/src/./a b.rs", root.display()),
            "file:src/link.rs".to_owned(),
            "file:sources/link.rs".to_owned(),
        ] {
            let resource = identified(&root, &given).unwrap();
            assert_eq!(
                (&resource.uri, resource.name.as_deref()),
                (&uri, Some("src/a b.rs")),
                "{given}"
            );
            assert_eq!(resource.mime_type.as_deref(), Some("text/x-rust"));
            assert_eq!(
                identified(&root, &format!("{given}#L10-200")).unwrap().uri,
                format!("{uri}#L10-200")
            );
        }
        let gone = identified(&root, "file:sources/gone.rs").unwrap();
        assert_eq!(gone.uri, format!("file://{}/src/gone.rs", root.display()));
    }

    #[test]
    fn file_outside_of_the_workspace_is_named_without_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let outside = canonical_path(directory.path()).unwrap();
        let root = outside.join("project");
        fs::create_dir(&root).unwrap();
        fs::write(outside.join("secret.txt"), "").unwrap();
        symlink(outside.join("secret.txt"), root.join("inside.txt")).unwrap();
        let expected = uri::external_uri(
            outside.to_str().unwrap(),
            "secret.txt",
            None,
            PathStyle::Unix,
        );
        for given in [
            "file:../secret.txt",
            "file:inside.txt",
            "file:%2e%2e/secret.txt",
        ] {
            let resource = identified(&root, given).unwrap();
            assert_eq!(
                (&resource.uri, resource.name.as_deref()),
                (&expected, Some("secret.txt")),
                "{given}"
            );
        }
    }

    #[test]
    fn missing_name_or_type_is_filled_in() {
        let root = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            root: root.path().to_owned(),
            ..Surroundings::default()
        };
        let png = ResourceContent::Blob(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec());
        let said = Resource::new("file:a.rs", ResourceContent::Text(String::new()));
        let blocks = [
            Resource::new("file:shot", png),
            Resource::new("file:b.bin", ResourceContent::Blob(vec![0, 159])),
            said.with_mime_type("text/plain").with_name("A"),
        ];
        let response = ToolResponse::new(blocks.map(ContentBlock::resource));
        let (response, _) = with_canonical_uris(response, &surroundings);
        let told = response.content.iter().map(|block| match block {
            ContentBlock::Resource { resource, .. } => (
                resource.name.as_deref().unwrap_or(""),
                resource.mime_type.as_deref().unwrap_or(""),
            ),
            _ => panic!("{block:?}"),
        });
        let expected = [
            ("shot", "image/png"),
            ("b.bin", "application/octet-stream"),
            ("A", "text/plain"),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn uri_that_names_no_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let http = identified(
            root.path(),
            "HTTPS://me:pw@Example.org:443/%7Ea/../b?q#L%31",
        )
        .unwrap();
        assert_eq!(http.uri, "https://example.org/b?q#L%31");
        for uri in ["urn:x:y", "external:0/x", "notes://a/../b"] {
            assert_eq!(identified(root.path(), uri).unwrap().uri, uri);
        }
        for (uri, reason) in [
            (
                "file://elsewhere/x",
                "\"file://elsewhere/x\" names no file of this machine",
            ),
            ("file:a%2Fb", "encoded separator"),
            ("file:a%00b", "NUL"),
            ("file:///", "names no file"),
        ] {
            let warning = identified(root.path(), uri).unwrap_err();
            assert!(
                warning.contains(reason) && warning.contains(uri),
                "{warning}"
            );
        }
    }
}
