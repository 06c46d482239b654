use std::{collections::BTreeSet, fs, path::PathBuf};

use jp_attachment::{Context, Limits, Nowhere, Survey, canonical_path, parse_input, resolve};

use super::*;

/// A workspace below a temporary directory.
struct Tree {
    _directory: tempfile::TempDir,
    root: PathBuf,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = canonical_path(directory.path()).unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let tree = Self {
            _directory: directory,
            root,
        };
        files
            .iter()
            .for_each(|(path, content)| tree.write(path, content));
        tree
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn place(&self) -> Place {
        Place::new(&self.root)
    }

    fn files(&self) -> Files {
        Files::open(self.place(), 1000, Secrets::Off).unwrap()
    }

    /// Every path below the root, those behind links to directories too, but no deeper than that.
    fn paths(&self) -> Vec<String> {
        let (mut paths, mut pending) = (Vec::new(), vec![(self.root.clone(), false)]);
        while let Some((directory, is_linked)) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let path = entry.path();
                let is_link = entry.file_type().unwrap().is_symlink();
                if path.is_dir() && !(is_link && is_linked) {
                    pending.push((path.clone(), is_link || is_linked));
                }
                paths.push(
                    path.strip_prefix(&self.root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
        paths
    }
}

fn path(path: &str) -> PathParam {
    PathParam::new(path).unwrap()
}

#[test]
fn rule_above_the_root_is_told_without_where_it_stands() {
    let tree = Tree::new(&[
        ("made/x", "x"),
        ("../.gitignore", "made/\n"),
        ("../.git/HEAD", ""),
    ]);
    let refused = tree.files().read(&path("made/x")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "made/x is not offered: .gitignore ignores it by the rule `made/`; read another file"
    );
}

#[cfg(unix)]
#[test]
fn file_is_readable_exactly_if_a_walk_finds_it() {
    use std::os::unix::fs::symlink;

    let key = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n";
    let tree = Tree::new(&[
        ("../outside.txt", "outside"),
        (".git/info/exclude", "excluded.txt\n"),
        (".git/config", "git"),
        (
            ".gitignore",
            "*.log\n!kept.log\nbuilt/\n/only-here\n*.tmp\n",
        ),
        (".jp/config.toml", "jp"),
        ("a/.ignore", "x*\n!x-kept\n"),
        ("a/b/.jpignore", "!xyz\n!t.tmp\nno\n"),
        ("a/b/c/.gitignore", "*\n!.gitignore\n!yes\n"),
    ]);
    for file in [
        "read.me",
        ".hidden",
        ".config/x",
        "x.log",
        "kept.log",
        "built/x",
        "a/built/kept.log",
        "only-here",
        "a/only-here",
        "t.tmp",
        "excluded.txt",
        "a/excluded.txt",
        "a/x1",
        "a/x-kept",
        "a/b/xyz",
        "a/b/x1",
        "a/b/t.tmp",
        "a/b/no",
        "a/b/c/yes",
        "a/b/c/other",
        ".env",
        "a/.env.local",
        "id_rsa",
        "a/.aws/credentials",
        "a/.aws/config",
        "strange ü?#%41.txt",
        "a/kept.log/y",
        "a/b/.git",
        "Read.me",
    ] {
        tree.write(file, "text");
    }
    tree.write("a/key.pem", key);
    let links = [
        ("read.me", "to-file"),
        ("x.log", "to-ignored"),
        ("a/key.pem", "to-key"),
        (".env", "to-secret"),
        ("read.me", "id_dsa"),
        ("../outside.txt", "to-outside"),
        ("a", "to-directory"),
        ("nothing", "to-nothing"),
        (".git/config", "to-git"),
        ("to-file", "to-link"),
        ("../read.me", "a/up"),
        ("read.me", "linked.log"),
        (".", "a/itself"),
    ];
    links
        .into_iter()
        .for_each(|(target, link)| symlink(target, tree.root.join(link)).unwrap());

    let (files, place) = (tree.files(), tree.place());
    let is_read = |path: &String| files.read(&self::path(path)).is_ok();
    let read: BTreeSet<PathBuf> = tree
        .paths()
        .iter()
        .filter(|path| is_read(path))
        .map(|path| canonical_path(&tree.root.join(path)).unwrap())
        .collect();
    let declared = parse_input(".", &place).unwrap();
    let declared = Declared {
        is_trusted: false,
        ..declared
    };
    let walked = resolve(
        &[declared],
        &Context::new(&place, &Nowhere, std::time::SystemTime::now()),
    )
    .unwrap();
    let walked = walked
        .resources
        .iter()
        .map(|resource| file_path(&resource.uri, PathStyle::native()).unwrap());
    let walked: BTreeSet<PathBuf> = walked
        .map(PathBuf::from)
        .filter(|path| !has_closed(path.strip_prefix(&tree.root).unwrap()))
        .collect();
    assert_eq!(read, walked);
    assert!(read.len() > 15, "{read:?}");
    for path in tree.paths().iter().filter(|path| !path.contains("key")) {
        let value = path.replace('%', "%25");
        let is_offered = files.complete_path(&value).contains(&value);
        assert_eq!(is_offered, is_read(path), "{path}");
    }
}

#[test]
fn what_becomes_a_link_after_it_was_checked_is_not_followed() {
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        let tree = Tree::new(&[
            ("a/x", "x"),
            ("private/x", "secret"),
            (".jpignore", "private\n"),
        ]);
        let files = tree.files();
        let checked = files
            .whole
            .find(&tree.root.join("a/x"), &tree.place())
            .unwrap();
        fs::rename(tree.root.join("a"), tree.root.join("b")).unwrap();
        symlink("private", tree.root.join("a")).unwrap();
        assert!(
            files
                .read_real(&path("a/x"), &checked, Grant::Walk)
                .is_err(),
            "a directory"
        );
        fs::remove_file(tree.root.join("b/x")).unwrap();
        symlink("../private/x", tree.root.join("b/x")).unwrap();
        assert!(
            files
                .read_real(&path("b/x"), &tree.root.join("b/x"), Grant::Walk)
                .is_err(),
            "the file"
        );
    }
}

#[test]
fn listed_file_is_refused_once_the_walk_that_gave_it_would_not() {
    let tree = Tree::new(&[("built/x", "x"), (".gitignore", "built/\n"), ("a/y", "y")]);
    let (files, place) = (tree.files(), tree.place());
    let walked = |input: &str| Arc::new(Walked::new(parse_input(input, &place).unwrap(), &[]));
    let listed = |input: &str, path: &str| Listed::Walked {
        walked: walked(input),
        found_at: tree.root.join(path),
    };
    let built = listed("built", "built/x");
    assert!(
        files.read(&path("built/x")).is_err(),
        "a walk from the root does not go there"
    );
    assert!(
        files.read_listed(&path("built/x"), &built).is_ok(),
        "the one from the directory does"
    );
    let (glob, all) = (listed("a/*", "a/y"), listed("a", "a/y"));
    tree.write("a/.ignore", "y\n");
    for listed in [glob, all] {
        let refused = files
            .read_listed(&path("a/y"), &listed)
            .unwrap_err()
            .to_string();
        assert_eq!(
            refused,
            "a/y is not offered: a/.ignore ignores it by the rule `y`; read another file"
        );
    }
    assert!(files.read_listed(&path("a/y"), &Listed::ByUser).is_ok());
}

#[test]
fn uri_that_the_server_gives_a_meaning_is_its_own_however_it_is_written() {
    let tree = Tree::new(&[]);
    let files = tree.files();
    let root = files.root_uri().to_owned();
    let encoded = root.replace("project", "pro%6Aect");
    let upper = root.replacen("file", "FILE", 1);
    for own in [
        "jp://conversation/17",
        "JP://blob/x",
        "jp:x",
        &root,
        &format!("{root}a%2Fb"),
        &format!("{root}%FF"),
        &format!("{encoded}a"),
        &format!("{upper}a"),
        &format!("{root}../x"),
        &format!("{root}a?b#c"),
        &root.replacen("file://", "file://localhost", 1),
        root.trim_end_matches('/'),
        &format!("{}x/../project/a", root.trim_end_matches("project/")),
    ] {
        assert!(files.is_own(own), "{own}");
    }
    for other in [
        "https://example.com/",
        "file:///elsewhere/x",
        "notes://jp:x",
        "external:abc/x",
        "mcp+a+jp://x",
    ] {
        assert!(!files.is_own(other), "{other}");
    }
}

#[test]
fn file_that_is_not_there_yet_has_no_source_if_a_rule_would_leave_it_out() {
    let tree = Tree::new(&[
        ("a/x", ""),
        ("a/.ignore", "*.tmp\n!kept.log\n"),
        ("a/b/x", ""),
        (".gitignore", "*.log\n/a/c\nonly-a-directory/\n"),
    ]);
    let files = tree.files();
    for given in [
        "new",
        "a/new",
        "a/kept.log",
        "a/b/kept.log",
        "new.tmp",
        "only-a-directory",
        "c",
    ] {
        assert_eq!(
            files.source(&path(given)),
            Some(tree.root.join(given)),
            "{given}"
        );
    }
    for left_out in [
        "new.log",
        "a/new.log",
        "a/b/new.log",
        "a/new.tmp",
        "a/b/new.tmp",
        "a/c",
    ] {
        assert_eq!(files.source(&path(left_out)), None, "{left_out}");
    }
    fs::write(
        tree.root.parent().unwrap().join(".gitignore"),
        "project\n*.old\n",
    )
    .unwrap();
    fs::create_dir(tree.root.parent().unwrap().join(".git")).unwrap();
    assert_eq!(
        files.source(&path("a/new.old")),
        None,
        "a rule above the root"
    );
    assert_eq!(
        files.source(&path("a/new")),
        Some(tree.root.join("a/new")),
        "the root is offered all the same"
    );
}

#[test]
fn file_that_is_not_there_yet_has_a_source_if_it_could_be_given() {
    let tree = Tree::new(&[("a/x", "x"), ("built/x", "x"), (".gitignore", "built/\n")]);
    let files = tree.files();
    assert_eq!(files.source(&path("a/new")), Some(tree.root.join("a/new")));
    assert_eq!(files.source(&path("a/x")), Some(tree.root.join("a/x")));
    for none in [
        ".env",
        ".git/new",
        ".jp/x",
        "built/new",
        "built/x",
        "nowhere/new",
    ] {
        assert_eq!(files.source(&path(none)), None, "{none}");
    }
}

fn survey(tree: &Tree, input: &str) -> Survey {
    let place = tree.place();
    Survey::take(
        &parse_input(input, &place).unwrap(),
        &[],
        &place,
        Limits::default(),
    )
    .unwrap()
}

#[test]
fn survey_depends_on_everything_that_it_looked_at() {
    let tree = Tree::new(&[("a/b/x", "x"), ("a/empty/.ignore", ""), ("a/.git/HEAD", "")]);
    let survey = survey(&tree, "a");
    for path in [
        "a",
        "a/b",
        "a/b/x",
        "a/empty",
        "a/empty/.ignore",
        ".gitignore",
        "a/.git/info/exclude",
    ] {
        assert!(survey.depends_on.contains(&tree.root.join(path)), "{path}");
    }
    let unneeded = tree.root.join("a/b/.gitignore");
    assert!(
        !survey.depends_on.contains(&unneeded),
        "its directory changes when it comes to be"
    );
}

#[test]
fn survey_depends_on_what_may_come_to_give_something() {
    let tree = Tree::new(&[
        ("a/b/x", "x"),
        ("large/y", ""),
        (".gitignore", "no\n"),
        ("c/d/no", ""),
    ]);
    fs::remove_file(tree.root.join("a/b/x")).unwrap();
    tree.write("large/y", &"y".repeat(100));
    for (input, path) in [("a", "a/b"), ("a/**/*.md", "a/b"), ("c", "c/d")] {
        assert!(
            survey(&tree, input)
                .depends_on
                .contains(&tree.root.join(path)),
            "{input}"
        );
    }
    let place = tree.place();
    let limits = Limits {
        max_bytes: 10,
        ..Limits::default()
    };
    let skipped =
        Survey::take(&parse_input("large", &place).unwrap(), &[], &place, limits).unwrap();
    assert!(skipped.files.is_empty() && skipped.depends_on.contains(&tree.root.join("large/y")));
}

#[cfg(unix)]
#[test]
fn survey_depends_on_where_links_lead() {
    use std::os::unix::fs::symlink;

    let tree = Tree::new(&[("a/x", ""), ("b/c/target", "x")]);
    symlink("../b/c/target", tree.root.join("a/link")).unwrap();
    symlink("nothing", tree.root.join("a/broken")).unwrap();
    let survey = survey(&tree, "a");
    for path in [
        "a/link",
        "a/broken",
        "b/c/target",
        "b/c/.ignore",
        "b/.ignore",
    ] {
        assert!(survey.depends_on.contains(&tree.root.join(path)), "{path}");
    }
}

#[cfg(unix)]
#[test]
fn name_that_no_client_can_ask_for_is_not_offered() {
    let tree = Tree::new(&[
        ("docs/a:b.txt", ""),
        ("docs/x\\y.md", ""),
        ("docs/plain.md", ""),
    ]);
    let files = tree.files();
    assert_eq!(files.complete_path("docs/"), ["docs/plain.md"]);
    let path_of = |name: &str| {
        let (uri, _) = tree.place().uri_and_name(&tree.root.join(name)).unwrap();
        files.path_of(&uri)
    };
    assert_eq!(path_of("docs/plain.md"), Ok(Some(path("docs/plain.md"))));
    for name in ["docs/a:b.txt", "docs/x\\y.md"] {
        assert_eq!(path_of(name), Err(name.to_owned()));
    }
}

#[test]
fn file_that_the_workspace_attaches_is_given_as_a_walk_would() {
    let key = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n";
    let tree = Tree::new(&[
        (".env", "x"),
        ("key", key),
        ("made", ""),
        (".gitignore", "made\n"),
        ("plain", "x"),
    ]);
    let files = tree.files();
    for closed in [".env", "key", "made"] {
        assert!(
            files.read_listed(&path(closed), &Listed::Named).is_err(),
            "{closed}"
        );
        assert!(
            files.read_listed(&path(closed), &Listed::ByUser).is_ok(),
            "{closed}"
        );
    }
    assert!(files.read_listed(&path("plain"), &Listed::Named).is_ok());
}

#[test]
fn file_of_the_user_is_given_with_its_key() {
    let key = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n";
    let tree = Tree::new(&[("key", key), (".git/HEAD", "x"), (".jp/config.toml", "x")]);
    let files = tree.files();
    assert!(files.read_listed(&path("key"), &Listed::ByUser).is_ok());
    assert!(
        files
            .read(&path("key"))
            .unwrap_err()
            .to_string()
            .contains("it is a private key")
    );
    for closed in [".git/HEAD", ".jp/config.toml"] {
        assert!(
            files.read_listed(&path(closed), &Listed::ByUser).is_err(),
            "{closed}"
        );
        assert_eq!(
            files.path_of(&format!("{}{closed}", files.root_uri())),
            Ok(None)
        );
    }
}

#[test]
fn offered_name_with_a_percent_sign_leads_back_to_its_file() {
    use mcp_resources::template::{UriTemplate, Value};

    let tree = Tree::new(&[
        ("a%20b.txt", "percent"),
        ("a b.txt", "space"),
        ("50%/x", "half"),
    ]);
    let files = tree.files();
    assert_eq!(files.complete_path("a"), ["a b.txt", "a%2520b.txt"]);
    assert_eq!(files.complete_path("50%25/"), ["50%25/x"]);
    let template = UriTemplate::parse("file:///{+path}").unwrap();
    let values = [("path".to_owned(), Value::from("a%2520b.txt"))].into();
    assert_eq!(template.expand(&values).unwrap(), "file:///a%2520b.txt");
}
