use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::canonical_path;

struct World {
    _directory: TempDir,
    outer: PathBuf,
    place: Place,
}

/// Creates a workspace with some files, a directory next to it and a home directory.
fn world() -> World {
    let directory = tempfile::tempdir().unwrap();
    let outer = canonical_path(directory.path()).unwrap();
    for file in [
        "w/src/main.rs",
        "w/a b#%.md",
        "w/a[1].txt",
        "w/app/[slug]/x.ts",
        "w/~",
        "beside/x.rs",
        "home/n.md",
    ] {
        fs::create_dir_all(outer.join(file).parent().unwrap()).unwrap();
        fs::write(outer.join(file), "x").unwrap();
    }
    let place = Place {
        home: Some(outer.join("home")),
        ..Place::new(outer.join("w"))
    };
    World {
        _directory: directory,
        outer,
        place,
    }
}

impl World {
    fn at(&self, directory: &str) -> Place {
        Place {
            current_dir: self.place.root.join(directory),
            ..self.place.clone()
        }
    }

    fn declaration(&self, input: &str, directory: &str) -> String {
        let place = self.at(directory);
        let declared =
            parse_input(input, &place).unwrap_or_else(|error| panic!("{input:?}: {error}"));
        if let Some(stored) = declared
            .declaration
            .as_deref()
            .filter(|stored| stored.starts_with("file:"))
        {
            let again = parse_stored(stored, &self.place).unwrap();
            assert_eq!(again.declaration.as_deref(), Some(stored));
            assert_eq!(again.source, declared.source, "{input:?} as {stored:?}");
        }
        declared.declaration.unwrap_or("none".into())
    }

    fn error(&self, input: &str) -> String {
        let error = parse_input(input, &self.place).unwrap_err().to_string();
        error.replace(self.outer.to_str().unwrap(), "OUTER")
    }
}

#[test]
fn input_is_stored_relative_to_the_workspace() {
    let world = world();
    let root = world.place.root.to_str().unwrap().to_owned();
    let absolute = format!("{root}/src/main.rs");
    let url = format!("file://{absolute}");
    let absolute_glob = format!("{root}/src/*.rs");
    let table = [
        ("src/main.rs", "", "file:src/main.rs"),
        ("main.rs", "src", "file:src/main.rs"),
        ("./src/../src/main.rs", "", "file:src/main.rs"),
        ("../a b#%.md", "src", "file:a%20b%23%25.md"),
        (&absolute, "src", "file:src/main.rs"),
        (&url, "src", "file:src/main.rs"),
        ("FILE:main.rs", "src", "file:src/main.rs"),
        ("file:a%20b%23%25.md", "", "file:a%20b%23%25.md"),
        ("src", "", "file:src/"),
        ("src/", "", "file:src/"),
        (".", "", "file:./"),
        ("..", "src", "file:./"),
        (".", "src", "file:src/"),
        ("*.rs", "src", "file:src/*.rs"),
        ("**/*.rs", "", "file:**/*.rs"),
        ("../**/*.rs", "src", "file:**/*.rs"),
        ("src/mai?.rs", "", "file:src/mai[!/].rs"),
        ("file:src/mai?.rs", "", "file:src/mai[!/].rs"),
        (&absolute_glob, "app", "file:src/*.rs"),
        ("src/{main,lib}.rs", "", "file:src/{main,lib}.rs"),
        ("a b*", "", "file:a%20b*"),
        ("a[1].txt", "", "file:a%5B1%5D.txt"),
        ("file:a[1].txt", "", "file:a%5B1%5D.txt"),
        ("a[2].txt", "", "file:a[2].txt"),
        ("app/[slug]/*.ts", "", "file:app/%5Bslug%5D/*.ts"),
        ("./~", "", "file:%7E"),
    ];
    for (input, directory, declaration) in table {
        assert_eq!(
            world.declaration(input, directory),
            declaration,
            "{input:?} in {directory:?}"
        );
    }
}

#[test]
fn exclude_is_stored_relative_to_the_workspace() {
    let world = world();
    let table = [
        ("!target/**", "", "file:target/**?exclude"),
        ("target/**?exclude", "", "file:target/**?exclude"),
        ("file:target/**?exclude", "", "file:target/**?exclude"),
        ("!*.lock", "", "file:*.lock?exclude"),
        ("!*.lock", "src", "file:src/**/*.lock?exclude"),
        ("!./*.lock", "src", "file:src/*.lock?exclude"),
        ("!./*.lock", "", "file:./*.lock?exclude"),
        ("!src/gone/", "", "file:src/gone/?exclude"),
        ("!build/", "src", "file:src/**/build/?exclude"),
        ("!../x", "src", "file:./x?exclude"),
        ("!mai?.rs", "", "file:mai[!/].rs?exclude"),
        ("!~/n.md", "", "none"),
        ("!../*.md", "", "none"),
    ];
    for (input, directory, declaration) in table {
        assert_eq!(
            world.declaration(input, directory),
            declaration,
            "{input:?} in {directory:?}"
        );
    }
}

#[test]
fn path_outside_is_stored_as_its_external_uri() {
    let world = world();
    let home =
        jp_resource::Checksum::compute(world.outer.join("home").to_str().unwrap().as_bytes());
    assert_eq!(
        world.declaration("~/n.md", "src"),
        format!("external:{home}/n.md")
    );
    assert_eq!(
        world.declaration("../../home/n.md", "src"),
        format!("external:{home}/n.md")
    );
    assert_eq!(world.declaration("~", ""), "none");
    assert_eq!(world.declaration("../beside/*.rs", ""), "none");
    let key = Some(crate::ExternalKey::new("secret"));
    let keyed = parse_input(
        "~/n.md",
        &Place {
            external_key: key,
            ..world.place.clone()
        },
    )
    .unwrap();
    assert_ne!(keyed.declaration, Some(format!("external:{home}/n.md")));
}

#[test]
fn older_absolute_declarations_are_relative_to_the_workspace() {
    let world = world();
    for declaration in [
        "file:///src/main.rs",
        "file://src/main.rs",
        "file:/src/main.rs",
        "file:src/main.rs",
    ] {
        let declared = parse_stored(declaration, &world.place).unwrap();
        assert_eq!(
            declared.source,
            Source::Path(world.place.root.join("src/main.rs")),
            "{declaration:?}"
        );
        assert_eq!(declared.declaration.as_deref(), Some(declaration));
    }
    let beside = format!("file://{}", world.outer.join("beside/x.rs").display());
    let declared = parse_stored(&beside, &world.place).unwrap();
    assert_eq!(
        declared.source,
        Source::Path(world.outer.join("beside/x.rs"))
    );
    let Source::Glob(glob) = parse_stored("file:///src/*.rs", &world.place)
        .unwrap()
        .source
    else {
        panic!()
    };
    assert_eq!(glob.base, world.place.root.join("src"));
    assert!(matches!(
        parse_stored("external:abc/x", &world.place),
        Err(AttachError::Snapshot { .. })
    ));
}

#[test]
fn mistakes_are_explained() {
    let world = world();
    let table = [
        ("", "attach an empty name"),
        (
            "gone.rs",
            r#"attach "gone.rs": "OUTER/w/gone.rs" does not exist"#,
        ),
        (
            "gone\n#%\"🦀",
            r#"attach "gone\n#%\"🦀": "OUTER/w/gone\n#%\"🦀" does not exist"#,
        ),
        (
            "gone/*.rs",
            r#"attach "gone/*.rs": "OUTER/w/gone" does not exist"#,
        ),
        (
            "file:gone",
            r#"attach "file:gone": "OUTER/w/gone" does not exist"#,
        ),
        (
            "src/main.rs/",
            r#"attach "src/main.rs/": resolve "OUTER/w/src/main.rs/""#,
        ),
        (
            "src/[a",
            r#"attach "src/[a": unclosed character class; missing ']'"#,
        ),
        (
            "src/*/../x",
            r#"attach "src/*/../x": `..` can't come after a wildcard"#,
        ),
        ("file:%FF", r#"attach "file:%FF""#),
        ("file:", "attach an empty name"),
        ("file://", "attach an empty name"),
        ("!", "attach an empty name"),
        ("!/", "attach an empty name"),
        (
            "external:abc/x",
            r#"attach "external:abc/x": a snapshot can't be read again; attach its source again"#,
        ),
        (
            "gopher://example.com",
            r#"attach "gopher://example.com": `gopher:` is not supported; jp attaches a path, a directory, a glob, a file:, http(s): or data: URL, cmd: with a command, mcp+SERVER+URI, bear:, clip: for the clipboard, or - for stdin"#,
        ),
        (
            "stdin:abc",
            r#"attach "stdin:abc": a snapshot can't be read again; attach its source again"#,
        ),
        (
            "clip:abc",
            r#"attach "clip:abc": a snapshot can't be read again; attach its source again"#,
        ),
        (
            "cmd:echo 'a",
            r#"attach "cmd:echo 'a": the `'` at character 10 is not closed: 'a"#,
        ),
        (
            "data:x",
            r#"attach "data:x": a data: URL is `data:TYPE[;base64],DATA`"#,
        ),
    ];
    for (input, message) in table {
        assert_eq!(world.error(input), message, "{input:?}");
    }
    let place = Place {
        home: None,
        ..world.place.clone()
    };
    let error = parse_input("~/x", &place).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"attach "~/x": the home directory that `~` stands for is unknown"#
    );
}

#[cfg(unix)]
#[test]
fn link_decides_by_its_target() {
    use std::os::unix::fs::symlink;
    let world = world();
    let root = &world.place.root;
    symlink("src/main.rs", root.join("inner")).unwrap();
    symlink(world.outer.join("beside"), root.join("docs")).unwrap();
    symlink(root, world.outer.join("link")).unwrap();
    symlink("loop", root.join("loop")).unwrap();

    assert_eq!(world.declaration("inner", ""), "file:src/main.rs");
    let through = Place {
        current_dir: world.outer.join("link/src"),
        ..world.place.clone()
    };
    assert_eq!(
        parse_input("main.rs", &through)
            .unwrap()
            .declaration
            .as_deref(),
        Some("file:src/main.rs")
    );

    let out = parse_input("docs/x.rs", &world.place).unwrap();
    assert_eq!(out.source, Source::Path(world.outer.join("beside/x.rs")));
    assert!(out.declaration.unwrap().starts_with("external:"));
    assert_eq!(out.link_out.as_deref(), Some("docs/x.rs"));
    assert_eq!(
        parse_input("docs", &world.place)
            .unwrap()
            .link_out
            .as_deref(),
        Some("docs")
    );
    assert_eq!(
        parse_input("../beside/x.rs", &world.place)
            .unwrap()
            .link_out,
        None
    );
    assert!(matches!(
        parse_input("loop", &world.place),
        Err(AttachError::Io { .. })
    ));
}

#[cfg(unix)]
#[test]
fn name_that_is_not_utf8_is_refused() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let world = world();
    let name = OsStr::from_bytes(b"bad\xff");
    fs::write(world.place.root.join(name), "x").unwrap();
    std::os::unix::fs::symlink(name, world.place.root.join("link")).unwrap();
    assert_eq!(
        world.error("link"),
        r#"attach "link": the name of "OUTER/w/bad\xFF" is not UTF-8; rename it or exclude it"#
    );
}

#[test]
fn url_is_stored_without_credentials() {
    let world = world();
    let declared = parse_input(
        "HTTPS://joe:secret@Example.com:443/a/../%7eb?q=%c3#part",
        &world.place,
    )
    .unwrap();
    assert_eq!(
        declared.declaration.as_deref(),
        Some("https://example.com/~b?q=%C3")
    );
    assert_eq!(declared.input, "https://example.com/~b?q=%C3");
    assert!(declared.is_trusted && !format!("{declared:?}").contains("secret"));
    assert_eq!(declared.source.reach(&world.place), Reach::Network);
    let Source::Http { url, credentials } = declared.source else {
        panic!()
    };
    assert!(credentials.is_some());
    let stored = parse_stored("https://example.com/~b?q=%C3", &world.place).unwrap();
    assert_eq!(
        stored.source,
        Source::Http {
            url,
            credentials: None
        }
    );
    assert!(!stored.is_trusted);
    let configured = parse_configured("http://u:p@h", &world.place).unwrap();
    assert_eq!(configured.declaration.as_deref(), Some("http://h/"));
    assert_eq!(
        world.error("http://joe:secret@h:port/"),
        r#"attach "http://…@h:port/": invalid port number"#
    );
}

#[test]
fn removal_finds_deleted_files() {
    let world = world();
    let place = world.at("src");
    let declared = parse_input("main.rs", &place).unwrap().declaration.unwrap();
    assert!(possible_declarations("main.rs", &place).contains(&declared));
    fs::remove_dir_all(world.place.root.join("src")).unwrap();
    assert!(possible_declarations("main.rs", &place).contains(&declared));
    assert!(possible_declarations("../src", &place).contains(&"file:src/".to_owned()));
    assert!(possible_declarations("!x", &world.place).contains(&"file:x?exclude".to_owned()));
}

#[test]
fn existing_path_wins() {
    let world = world();
    for name in ["!x", "cmd:git diff", "x?exclude", "file:y", "*"] {
        fs::write(world.place.root.join(name), "x").unwrap();
        let source = parse_input(name, &world.place).unwrap().source;
        assert_eq!(
            source,
            Source::Path(world.place.root.join(name)),
            "{name:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn stored_declaration_means_the_same(name in "[^/\0]{1,40}|[a*?\\[\\]{}!~%#&=,\\\\ 2A7E.]{1,12}") {
        prop_assume!(name.len() < 200 && name != "." && name != "..");
        let world = world();
        let path = world.place.root.join("names").join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x").unwrap();
        let place = world.at("names");
        let declared = parse_input(&format!("./{name}"), &place).unwrap();
        prop_assert_eq!(&declared.source, &Source::Path(path.clone()));
        let stored = declared.declaration.unwrap();
        prop_assert!(stored.is_ascii() && !stored.contains(['?', '*', '[', '{', ' ', '#']), "{}", stored);
        let again = parse_stored(&stored, &world.place).unwrap();
        prop_assert_eq!(again.source, declared.source);
        fs::remove_file(&path).unwrap();
        let is_missing = matches!(parse_stored(&stored, &world.place), Err(AttachError::Missing { .. }));
        prop_assert!(is_missing);
    }

    #[test]
    fn stored_url_means_the_same(url in "https?://([a-z]{1,4}:[a-z]{1,4}@)?[a-zA-Z0-9.]{1,8}(:[0-9]{1,4})?[ -~é]{0,24}") {
        let place = Place {
            current_dir: "/w/nowhere".into(),
            ..Place::new("/w")
        };
        let Ok(declared) = parse_input(&url, &place) else { return Ok(()) };
        let Source::Http { url, .. } = declared.source else { panic!() };
        let stored = declared.declaration.unwrap();
        prop_assert_eq!(&stored, url.as_str());
        prop_assert_eq!(parse_stored(&stored, &place).unwrap().source, Source::Http { url, credentials: None });
    }

    #[test]
    fn reading_never_panics(input: String, url in "file:[/.~%a-c2EF*?!{},\\[\\]\\\\]{0,12}") {
        let place = Place {
            current_dir: "/w/nowhere".into(),
            ..Place::new("/w")
        };
        let _ = (parse_input(&input, &place), parse_stored(&input, &place), possible_declarations(&input, &place));
        let _ = (parse_input(&url, &place), parse_stored(&url, &place), possible_declarations(&url, &place));
    }
}

#[test]
fn approval_scope_follows_the_reach() {
    let World { place, outer, .. } = &world();
    let outside = outer.join("beside/x.rs");
    let cases = [
        ("src/main.rs", ApprovalScope::Serving),
        ("src", ApprovalScope::Serving),
        ("src/*.rs", ApprovalScope::Nothing),
        ("!src", ApprovalScope::Nothing),
        ("data:,x", ApprovalScope::Nothing),
        ("https://example.com/", ApprovalScope::Resolving),
        ("cmd:git status", ApprovalScope::Resolving),
        ("mcp+docs+note:x", ApprovalScope::Resolving),
        (outside.to_str().unwrap(), ApprovalScope::Attaching),
        ("../beside/*.rs", ApprovalScope::Attaching),
        ("-", ApprovalScope::Attaching),
        ("clip:", ApprovalScope::Attaching),
        ("bear://get/1", ApprovalScope::Attaching),
    ];
    for (input, scope) in cases {
        let declared = parse_input(input, place).unwrap();
        assert_eq!(declared.source.approval_scope(place), scope, "{input}");
    }
}
