//! Names that no tool may write to, because they belong to git or jp.

use std::ffi::OsStr;

/// Returns whether a name is `.git` or `.jp`, or a name that some file system treats as the same.
///
/// Ignores case (APFS, NTFS), dots and spaces at the end, text after a colon and short names of
/// NTFS, and characters that HFS+ ignores in a comparison.
pub(super) fn is_reserved(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let kept: String = name
        .chars()
        .filter(|letter| !is_left_out(*letter))
        .collect();
    let kept = kept.to_lowercase();
    let kept = kept
        .split(':')
        .next()
        .unwrap_or_default()
        .trim_end_matches(['.', ' ']);
    matches!(kept, ".git" | ".jp") || is_short(kept, "git~") || is_short(kept, "jp~")
}

fn is_short(name: &str, start: &str) -> bool {
    let number = name.strip_prefix(start).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_left_out(letter: char) -> bool {
    matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_reserved_name_is_known() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".jp",
            ".JP",
            ".git.",
            ".git ",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            "git~1",
            "GIT~2",
            "JP~1",
            ".g\u{200c}it",
        ] {
            assert!(is_reserved(OsStr::new(name)), "{name:?}");
        }
        for name in [
            "git",
            "jp",
            ".github",
            ".gitignore",
            ".gitmodules",
            ".jpignore",
            "git~",
            "git~a",
            "a.git",
            "",
            ".",
        ] {
            assert!(!is_reserved(OsStr::new(name)), "{name:?}");
        }
    }
}
