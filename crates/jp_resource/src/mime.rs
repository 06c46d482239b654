//! MIME types of text: their code fences, and the types of file names.
//!
//! One table has the languages and formats that developers attach. It only has types of text. The
//! caller decides whether content is binary.
//!
//! ```
//! use jp_resource::mime::{fence_for, fence_language, from_path};
//!
//! let mime = from_path("src/main.rs").unwrap();
//! assert_eq!(mime, "text/x-rust");
//! assert_eq!(fence_language(mime), Some("rs"));
//! assert_eq!(fence_for("a ``` b"), "````");
//! ```

mod table;

use table::{TYPES, TextType};

/// Returns the tag of a code fence around content of type `mime`.
///
/// Parameters (`; charset=utf-8`) and case don't matter. Nor does the `x-` of an unregistered type
/// of `text/`: `text/rust` and `text/x-rust` are `rs`. A type that is not in the table has the tag
/// of its structured syntax suffix (`+json`, `+xml`, `+yaml`; RFC 6839, RFC 9512), if any.
/// `text/plain` has none.
#[must_use]
pub fn fence_language(mime: &str) -> Option<&'static str> {
    let essence = essence(mime);
    match find_type(&essence) {
        Some(known) => known.fence,
        None => structured_suffix(&essence),
    }
}

/// Returns the type of text that a file of this name contains, if the name is known.
///
/// Takes a file name or a path. The whole name counts first (`Makefile`, `Cargo.lock`), then the
/// extension, then the start of the name (`Dockerfile.dev`). Case does not matter. The types are
/// IANA's, but no vendor types outside `text/`; if there is none, the type is `text/x-NAME`. Never
/// returns a binary type: `.ts` is TypeScript, not a video.
#[must_use]
pub fn from_path(file_name: &str) -> Option<&'static str> {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    // `Cargo.lock` is TOML although `.lock` is not, and `Dockerfile.rs` is Rust.
    find_by_name(name)
        .or_else(|| find_by_extension(name))
        .or_else(|| find_by_start(name))
        .map(|known| known.mime)
}

fn find_by_name(name: &str) -> Option<&'static TextType> {
    TYPES.iter().find(|known| contains(known.file_names, name))
}

fn find_by_extension(name: &str) -> Option<&'static TextType> {
    // `.gitignore` is a name without an extension.
    let (_, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
    TYPES
        .iter()
        .find(|known| contains(known.extensions, extension))
}

fn find_by_start(name: &str) -> Option<&'static TextType> {
    TYPES
        .iter()
        .find(|known| known.file_names.iter().any(|glob| is_start(glob, name)))
}

/// Returns whether `mime` is a type of text: `text/*`, a type of the table, or JSON, XML or YAML.
#[must_use]
pub fn is_text(mime: &str) -> bool {
    let essence = essence(mime);
    essence.starts_with("text/")
        || find_type(&essence).is_some()
        || structured_suffix(&essence).is_some()
}

/// Returns the fence for a code block around `content`: more backticks than the content has in a
/// row, and at least three (CommonMark §4.5).
#[must_use]
pub fn fence_for(content: &str) -> String {
    let longest = content
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    // A closing fence is at least as long as the opening one.
    "`".repeat(3.max(longest + 1))
}

/// Returns type and subtype, without parameters, in lower case.
fn essence(mime: &str) -> String {
    mime.split(';')
        .next()
        .unwrap_or(mime)
        .trim()
        .to_ascii_lowercase()
}

fn find_type(essence: &str) -> Option<&'static TextType> {
    TYPES
        .iter()
        .find(|known| known.names().any(|name| is_same_type(name, essence)))
}

fn is_same_type(left: &str, right: &str) -> bool {
    left == right || text_subtype(left).is_some_and(|subtype| text_subtype(right) == Some(subtype))
}

fn text_subtype(essence: &str) -> Option<&str> {
    let subtype = essence.strip_prefix("text/")?;
    Some(subtype.strip_prefix("x-").unwrap_or(subtype))
}

fn structured_suffix(essence: &str) -> Option<&'static str> {
    let (_, suffix) = essence.rsplit_once('+')?;
    ["json", "xml", "yaml"]
        .into_iter()
        .find(|known| *known == suffix)
}

fn contains(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns whether `glob` ends in `*` and `name` continues from there.
fn is_start(glob: &str, name: &str) -> bool {
    let Some(start) = glob.strip_suffix('*') else {
        return false;
    };
    name.get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fence_follows_the_type() {
        let table = [
            ("text/rust", Some("rs")),
            ("text/x-rust", Some("rs")),
            ("Text/X-Rust; charset=utf-8", Some("rs")),
            (" text/x-rust ;charset=utf-8", Some("rs")),
            ("text/javascript", Some("js")),
            ("application/javascript", Some("js")),
            ("text/x-typescript", Some("ts")),
            ("text/x-c++src", Some("cpp")),
            ("text/x-shellscript", Some("sh")),
            ("text/yaml", Some("yaml")),
            ("text/toml", Some("toml")),
            ("text/xml", Some("xml")),
            ("image/svg+xml", Some("svg")),
            ("application/problem+json", Some("json")),
            ("application/openapi+yaml", Some("yaml")),
            ("application/soap+xml", Some("xml")),
            ("text/plain", None),
            ("text/plain; charset=utf-8", None),
            ("text/unheard-of", None),
            ("application/protobuf", None),
            ("application/octet-stream", None),
            ("image/png", None),
            ("video/mp2t", None),
            ("rust", None),
            ("", None),
        ];
        for (mime, fence) in table {
            assert_eq!(fence_language(mime), fence, "{mime:?}");
        }
    }

    #[test]
    fn type_follows_the_name() {
        let table = [
            ("main.rs", Some("text/x-rust")),
            ("MAIN.RS", Some("text/x-rust")),
            ("src/main.rs", Some("text/x-rust")),
            (r"src\main.rs", Some("text/x-rust")),
            ("main.ts", Some("text/x-typescript")),
            ("types.d.ts", Some("text/x-typescript")),
            ("a.c", Some("text/x-c")),
            ("a.h", Some("text/x-c")),
            ("a.json", Some("application/json")),
            ("a.yml", Some("application/yaml")),
            ("a.md", Some("text/markdown")),
            ("a.html", Some("text/html")),
            ("logo.svg", Some("image/svg+xml")),
            ("notes.txt", Some("text/plain")),
            ("Cargo.lock", Some("application/toml")),
            ("Cargo.toml", Some("application/toml")),
            ("package-lock.json", Some("application/json")),
            ("yarn.lock", Some("text/plain")),
            ("other.lock", Some("text/plain")),
            ("Makefile", Some("text/x-makefile")),
            ("Makefile.am", Some("text/x-makefile")),
            ("Dockerfile", Some("text/x-dockerfile")),
            ("dockerfile.dev", Some("text/x-dockerfile")),
            ("api.Dockerfile", Some("text/x-dockerfile")),
            ("Dockerfile.md", Some("text/markdown")),
            ("CMakeLists.txt", Some("text/x-cmake")),
            ("LICENSE", Some("text/plain")),
            ("LICENSE.pdf", None),
            (".gitignore", Some("text/x-gitignore")),
            (".env", Some("text/x-dotenv")),
            (".env.local", Some("text/x-dotenv")),
            (".environment", None),
            (".rs", None),
            ("rs", None),
            ("photo.png", None),
            ("movie.mp4", None),
            ("archive.tar.gz", None),
            ("main.rs/", None),
            ("é.", None),
            ("", None),
        ];
        for (name, mime) in table {
            assert_eq!(from_path(name), mime, "{name:?}");
        }
    }

    #[test]
    fn every_type_of_the_table_has_its_fence() {
        for known in TYPES {
            for name in known.names() {
                assert!(is_text(name), "{name}");
                assert_eq!(fence_language(name), known.fence, "{name}");
            }
            for name in known.file_names {
                assert_eq!(
                    from_path(&name.replace('*', "local")),
                    Some(known.mime),
                    "{name}"
                );
            }
            for extension in known.extensions {
                assert_eq!(
                    from_path(&format!("some.{extension}")),
                    Some(known.mime),
                    "{extension}"
                );
            }
        }
    }

    #[test]
    fn text_types_are_recognised() {
        let table = [
            ("text/anything", true),
            ("TEXT/Plain; charset=latin1", true),
            ("application/json", true),
            ("application/vnd.api+json; charset=utf-8", true),
            ("application/sql", true),
            ("image/svg+xml", true),
            ("image/png", false),
            ("application/pdf", false),
            ("application/x-protobuf", false),
            ("application/x-java", false),
            ("application/geo+json-seq", false),
            ("model/step+zip", false),
            ("", false),
        ];
        for (mime, text) in table {
            assert_eq!(is_text(mime), text, "{mime:?}");
        }
    }

    #[test]
    fn fence_is_longer_than_any_run_inside() {
        let table = [
            ("", "```"),
            ("plain", "```"),
            ("a `b` ``c``", "```"),
            ("```rs\nx\n```", "````"),
            ("````````", "`````````"),
            ("é```", "````"),
        ];
        for (content, fence) in table {
            assert_eq!(fence_for(content), fence, "{content:?}");
        }
    }

    proptest! {
        #[test]
        fn content_never_holds_its_fence(content in "[`a\n]*|.*") {
            let fence = fence_for(&content);
            prop_assert!(fence.len() >= 3 && !content.contains(&fence));
        }

        #[test]
        fn type_with_a_fence_is_text(text in ".*|[a-z/+;. é-]*|(Dockerfile|.env).*") {
            prop_assert!(fence_language(&text).is_none() || is_text(&text));
            prop_assert!(from_path(&text).is_none_or(is_text));
        }
    }
}
