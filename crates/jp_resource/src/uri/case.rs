/// Picks the directory entry that names the same file as `name` where case may be folded.
///
/// `entries` are the names in the directory, `is_same` asks the file system whether an entry is the
/// file that `name` opens. An exact match wins; otherwise it is the entry that differs in nothing but
/// case and that `is_same` confirms: on a file system that tells `A` from `a` there is none. Calls
/// `is_same` only for such entries. Case is Unicode's lower-case mapping, character by character.
pub fn true_case<'a>(
    name: &str,
    entries: impl IntoIterator<Item = &'a str>,
    is_same: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let mut folded = Vec::new();
    for entry in entries {
        // On a file system that tells cases apart, both `A` and `a` may be there.
        if entry == name {
            return Some(entry);
        }
        if eq_ignoring_case(entry, name) {
            folded.push(entry);
        }
    }
    folded.into_iter().find(|entry| is_same(entry))
}

/// Compares character by character: `str::to_lowercase` would tell a final sigma from others.
fn eq_ignoring_case(left: &str, right: &str) -> bool {
    let (left, right) = (left.chars(), right.chars());
    left.flat_map(char::to_lowercase)
        .eq(right.flat_map(char::to_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: [&str; 5] = ["readme.md", "README.md", "Src", "ÉCOLE", "ΟΔΟΣ"];

    #[test]
    fn exact_match_wins_unasked() {
        assert_eq!(
            true_case("README.md", ENTRIES, |_| panic!("asked")),
            Some("README.md")
        );
    }

    #[test]
    fn other_case_needs_the_file_systems_word() {
        let table = [
            ("src", Some("Src")),
            ("école", Some("ÉCOLE")),
            ("οδοσ", Some("ΟΔΟΣ")),
            ("οδος", None),
            ("Readme.md", Some("readme.md")),
            ("lib", None),
        ];
        for (name, entry) in table {
            assert_eq!(true_case(name, ENTRIES, |_| true), entry, "{name}");
            assert_eq!(true_case(name, ENTRIES, |_| false), None, "{name}");
        }
        assert_eq!(
            true_case("ReadMe.md", ENTRIES, |entry| entry == "README.md"),
            Some("README.md")
        );
    }
}
