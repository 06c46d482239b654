//! Files and texts that look like secrets.

use std::time::SystemTime;

use super::support::{World, link, names};
use jp_attachment::{AttachError, Context, Resolved, Secrets, Unavailable, parse_stored, resolve};

/// Returns a private key; put together here, so that no scanner takes this file for one.
fn key() -> String {
    format!(
        "-----{} PRIVATE KEY-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX\n",
        "BEGIN"
    )
}

fn github_token() -> String {
    format!("{}{}", "ghp_", "q7Zr2WvK9xLmT4bNcH8sYd3FgJp6RwUe5XtQ")
}

fn attach(world: &World, inputs: &[&str], secrets: Secrets) -> Result<Resolved, AttachError> {
    resolve(
        &world.declare(inputs)?,
        &Context {
            secrets,
            ..world.context()
        },
    )
}

#[test]
fn file_with_a_secret_name_is_left_out_with_a_notice() {
    let world = World::new(&[
        "a",
        "config/.env",
        "config/.env.example",
        "config/x",
        "id_rsa",
        "id_rsa.pub",
    ]);
    let resolved = world.attach(&["."]).unwrap();
    assert_eq!(
        names(&resolved),
        ["a", "config/.env.example", "config/x", "id_rsa.pub"]
    );
    let notice = |name| {
        format!(
            "{name:?} seems to contain secrets and was left out; name it explicitly to attach it"
        )
    };
    assert_eq!(
        world.notices(&resolved),
        [notice("config/.env"), notice("id_rsa")]
    );

    let resolved = world.attach(&["config/*", "config", "!id_rsa"]).unwrap();
    assert_eq!(names(&resolved), ["config/.env.example", "config/x"]);
    assert_eq!(world.notices(&resolved), [notice("config/.env")]);
    let resolved = world.attach(&[".", "!.env", "!id_rsa"]).unwrap();
    assert!(resolved.notices.is_empty());
}

#[test]
fn explicitly_named_file_is_attached() {
    let world = World::new(&["config/.env", "config/x"]);
    world.write("config/key.pem", key());
    assert_eq!(
        world.names(&["config/.env", "config/key.pem"]),
        ["config/.env", "config/key.pem"]
    );
    for inputs in [
        ["config", "config/.env", "config/key.pem"],
        ["config/.env", "config/key.pem", "config/**"],
    ] {
        let resolved = world.attach(&inputs).unwrap();
        let mut found = names(&resolved);
        found.sort();
        assert_eq!(found, ["config/.env", "config/key.pem", "config/x"]);
        assert!(resolved.notices.is_empty(), "{:?}", resolved.notices);
        // The explicit names do not change the files of the walk.
        for delivered in &resolved.delivered {
            assert_eq!(delivered.resources.len(), 1, "{delivered:?}");
        }
    }
    let resolved = world
        .attach(&[
            "config/.env*",
            "config/.env",
            "config/*.pem",
            "config/key.pem",
        ])
        .unwrap();
    assert_eq!(names(&resolved), ["config/.env", "config/key.pem"]);
    assert_eq!(
        resolved
            .delivered
            .iter()
            .map(|one| one.resources.len())
            .collect::<Vec<_>>(),
        [0, 1, 0, 1]
    );
}

#[test]
fn walk_of_only_secrets_fails_with_the_reason() {
    let world = World::new(&["a.env", "sub/b.env", "x"]);
    world.write("keys/server.pem", key());
    let named = "name a file explicitly to attach it";
    let only = "every file seems to contain secrets, for example";
    assert_eq!(
        world.error(&["*.env"]),
        format!("attach \"*.env\": {only} \"a.env\"; {named}")
    );
    assert_eq!(
        world.error(&["x", "sub"]),
        format!("attach \"sub\": {only} \"sub/b.env\"; {named}")
    );
    assert_eq!(
        world.error(&["keys"]),
        format!("attach \"keys\": {only} \"keys/server.pem\"; {named}")
    );
    let declared = world.declare(&["x", "sub", "keys"]).unwrap();
    let resolved = resolve(&declared, &world.skipping()).unwrap();
    assert_eq!(names(&resolved), ["x"]);
    assert_eq!(resolved.delivered.len(), 1);
}

#[test]
fn link_to_a_secret_is_left_out() {
    let world = World::new(&["a", "../outside/.env", "../outside/plain"]);
    link("../outside/.env", world.root.join("settings"));
    link("../outside/plain", world.root.join(".env"));
    let resolved = world.attach(&["."]).unwrap();
    assert_eq!(names(&resolved), ["a"]);
    assert_eq!(resolved.notices.len(), 2);
    assert_eq!(names(&world.attach(&["../outside"]).unwrap()), ["plain"]);
    assert_eq!(world.names(&["settings", "."]), [".env", "a"]);
}

#[test]
fn private_key_is_never_remembered() {
    let world = World::new(&["a"]);
    world.write("server.txt", key());
    assert_eq!(world.names(&["server.txt", "a"]), ["server.txt", "a"]);
    assert_eq!(world.store.files(), [world.root.join("a")]);
    let resolved = world.attach(&["."]).unwrap();
    assert_eq!(
        (names(&resolved), resolved.totals.known),
        (vec!["a".to_owned()], 1)
    );
    assert_eq!(resolved.notices.len(), 1);
    assert_eq!(world.names(&["server.txt"]), ["server.txt"]);
    // Nothing of a left out file was stored.
    let other = World::new(&["a"]);
    other.write("server.txt", key());
    other.attach(&["."]).unwrap();
    assert_eq!(other.store.len(), 1);
}

#[test]
fn private_key_in_another_file_is_left_out_of_a_walk() {
    let world = World::new(&["a"]);
    world.write(
        "tls.yaml",
        format!("tls:\n  key: |\n    {}", key().replace('\n', "\n    ")),
    );
    world.write("notes.txt", format!("{}{}", "note\n".repeat(200), key()));
    let units = format!("\u{feff}{}", key());
    world.write(
        "wide.txt",
        units
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>(),
    );
    let resolved = world.attach(&["."]).unwrap();
    assert_eq!(names(&resolved), ["a"]);
    assert_eq!(resolved.notices.len(), 3, "{:?}", resolved.notices);
    assert_eq!(world.names(&["tls.yaml", "."]), ["tls.yaml", "a"]);
}

#[test]
fn source_that_quotes_a_key_is_attached() {
    let world = World::new(&[]);
    world.write("test.rs", format!("const KEY: &str = \"{}\";\n", key()));
    world.write("ca.pem", key().replace("PRIVATE KEY", "CERTIFICATE"));
    assert_eq!(world.names(&["."]), ["ca.pem", "test.rs"]);
}

#[test]
fn scan_warns_of_each_kind_without_showing_the_secret() {
    let world = World::new(&["plain"]);
    world.write("a.txt", format!("one\n\n{0}\n{0}\n", github_token()));
    world.write("server.pem", key());
    let url = format!("data:,{}", github_token());
    let inputs = ["a.txt", "server.pem", "plain", url.as_str()];
    let resolved = attach(&world, &inputs, Secrets::Warn).unwrap();
    assert_eq!(resolved.resources.len(), 4);
    let notices = world.notices(&resolved);
    assert_eq!(
        notices[..2],
        [
            r#""a.txt" line 3 seems to contain a GitHub token"#,
            r#""server.pem" line 1 seems to contain a private key"#,
        ]
    );
    assert_eq!(
        notices[2..],
        [r#""data:,…" line 1 seems to contain a GitHub token"#]
    );
    assert!(
        attach(&world, &inputs, Secrets::Off)
            .unwrap()
            .notices
            .is_empty()
    );
}

#[test]
fn scan_refuses_before_content_is_stored() {
    let world = World::new(&[]);
    world.write("a.txt", github_token());
    let error = attach(&world, &["a.txt"], Secrets::Refuse).unwrap_err();
    assert_eq!(
        error.to_string(),
        "attach \"a.txt\": \"a.txt\" line 1 seems to contain a GitHub token, and conversation.attachment.secrets refuses it"
    );
    let url = format!("data:,{}", github_token());
    let error = attach(&world, &[&url], Secrets::Refuse).unwrap_err();
    assert!(matches!(
        error,
        AttachError::Secret {
            kind: "a GitHub token",
            line: 1,
            ..
        }
    ));
    assert!(!error.to_string().contains("ghp_"), "{error}");
    assert!(world.store.is_empty());

    world.write("b.txt", "x");
    let declared = world.declare(&["a.txt", "b.txt"]).unwrap();
    let context = Context {
        secrets: Secrets::Refuse,
        unavailable: Unavailable::Skip,
        ..world.context()
    };
    assert_eq!(names(&resolve(&declared, &context).unwrap()), ["b.txt"]);
    assert_eq!(world.store.len(), 1);
}

#[test]
fn known_file_is_scanned() {
    let world = World::new(&[]);
    world.write("a.txt", github_token());
    attach(&world, &["a.txt"], Secrets::Off).unwrap();
    assert_eq!(
        attach(&world, &["a.txt"], Secrets::Off)
            .unwrap()
            .totals
            .known,
        1
    );
    let warned = attach(&world, &["a.txt"], Secrets::Warn).unwrap();
    assert_eq!((warned.totals.known, warned.notices.len()), (0, 1));
    assert!(attach(&world, &["a.txt"], Secrets::Refuse).is_err());
}

#[test]
fn named_secret_does_not_change_the_walk() {
    let world = World::new(&["d/.env", "d/x"]);
    let resolved = world.attach(&["d", "d/.env"]).unwrap();
    let stored = parse_stored(&resolved.delivered[0].declaration, &world.place).unwrap();
    let again = resolve(
        &[stored],
        &Context::new(&world.place, &world.store, SystemTime::now()),
    )
    .unwrap();
    assert_eq!(names(&again), ["d/x"]);
}
