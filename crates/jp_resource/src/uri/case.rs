/// Finds the directory entry for `name` on a file system that may ignore case.
///
/// `entries` are the names in the directory. `is_same` asks the file system whether an entry is the
/// file that `name` opens. An exact match wins. Otherwise it is an entry that differs only in case
/// and that `is_same` confirms. A file system that distinguishes `A` from `a` has none. Calls
/// `is_same` only for such entries. Case is Unicode's lower-case mapping, character by character.
pub fn true_case<'a>(
    name: &str,
    entries: impl IntoIterator<Item = &'a str>,
    is_same: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let mut folded = Vec::new();
    for entry in entries {
        // If the file system distinguishes case, both `A` and `a` may exist.
        if entry == name {
            return Some(entry);
        }
        if eq_ignoring_case(entry, name) {
            folded.push(entry);
        }
    }
    folded.into_iter().find(|entry| is_same(entry))
}

/// Compares character by character, because `str::to_lowercase` treats a final sigma differently.
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
    fn exact_match_wins_without_a_check() {
        assert_eq!(
            true_case("README.md", ENTRIES, |_| panic!("asked")),
            Some("README.md")
        );
    }

    #[test]
    fn other_case_needs_the_file_systems_confirmation() {
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
