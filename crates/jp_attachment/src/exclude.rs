use std::{
    fmt,
    path::{Path, PathBuf},
};

use globset::GlobMatcher;

use crate::glob::{canonicalize, compile};

/// A pattern of files to leave out. It has the meaning of a line in a `.gitignore` of `base`.
///
/// Without a `/` it matches at any depth, otherwise from `base` on. A trailing `/` restricts it to
/// directories. All files below a matching directory are excluded.
#[derive(Clone)]
pub struct Exclude {
    /// The directory that the pattern is relative to.
    pub base: PathBuf,
    /// The pattern.
    pub pattern: String,
    matcher: GlobMatcher,
}

impl Exclude {
    /// Compiles `pattern`. The error is the reason why it is malformed.
    pub(crate) fn new(base: PathBuf, pattern: &str) -> Result<Self, String> {
        let pattern = canonicalize(pattern);
        let name = pattern.strip_suffix('/').unwrap_or(&pattern);
        let matcher = match name.contains('/') {
            true => compile(name.trim_start_matches("./").trim_start_matches('/')),
            false => compile(&format!("**/{name}")),
        }?;
        Ok(Self {
            base,
            pattern,
            matcher,
        })
    }

    /// Returns whether the pattern matches the absolute `path` itself.
    pub(crate) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        if !is_directory && self.pattern.ends_with('/') {
            return false;
        }
        let relative = match path.strip_prefix(&self.base) {
            Ok(relative) => Some(relative),
            // Outside its base, a pattern that matches at any depth is compared with the name.
            Err(_) if !self.pattern.trim_end_matches('/').contains('/') => {
                path.file_name().map(Path::new)
            }
            Err(_) => None,
        };
        relative
            .is_some_and(|relative| relative != Path::new("") && self.matcher.is_match(relative))
    }

    /// Returns whether the pattern matches `path` or a directory that it is in.
    pub(crate) fn covers(&self, path: &Path, is_directory: bool) -> bool {
        self.matches(path, is_directory)
            || path
                .ancestors()
                .skip(1)
                .any(|parent| self.matches(parent, true))
    }
}

impl PartialEq for Exclude {
    fn eq(&self, other: &Self) -> bool {
        (&self.base, &self.pattern) == (&other.base, &other.pattern)
    }
}

impl Eq for Exclude {}

impl fmt::Debug for Exclude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclude")
            .field("base", &self.base)
            .field("pattern", &self.pattern)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_reads_like_a_gitignore() {
        let table = [
            ("*.lock", "/w/Cargo.lock", true),
            ("*.lock", "/w/a/b/Cargo.lock", true),
            ("target", "/w/target/debug/x", true),
            ("target", "/w/a/target/x", true),
            ("target/", "/w/a/target/x", true),
            ("target/", "/w/target", false),
            ("./target", "/w/target/x", true),
            ("./target", "/w/a/target/x", false),
            ("a/*.rs", "/w/a/x.rs", true),
            ("a/*.rs", "/w/b/a/x.rs", false),
            ("target/**", "/w/target/x", true),
            ("*.lock", "/elsewhere/Cargo.lock", true),
            ("a/*.lock", "/elsewhere/a/Cargo.lock", false),
            ("**", "/w/a", true),
        ];
        for (pattern, path, covered) in table {
            let exclude = Exclude::new("/w".into(), pattern).unwrap();
            assert_eq!(
                exclude.covers(Path::new(path), false),
                covered,
                "{pattern:?} {path:?}"
            );
        }
    }
}
