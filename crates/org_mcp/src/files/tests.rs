use std::fs;
use std::path::PathBuf;

use super::Files;

/// The names and URIs of files that need not be there.
fn named(paths: &[&str]) -> Vec<(String, String)> {
    let files = Files::new(paths.iter().map(PathBuf::from).collect());
    files
        .iter()
        .map(|file| (file.name.clone(), file.uri()))
        .collect()
}

fn names(paths: &[&str]) -> Vec<String> {
    named(paths).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn file_is_named_by_its_last_part() {
    assert_eq!(names(&["/none/a.org", "/none/b/c.org"]), ["a.org", "c.org"]);
}

#[test]
fn equal_names_get_the_shortest_path_that_tells_them_apart() {
    let paths = [
        "/none/x/office/notes.org",
        "/none/x/home/notes.org",
        "/none/y/home/notes.org",
        "/none/a.org",
    ];
    assert_eq!(
        names(&paths),
        [
            "office/notes.org",
            "x/home/notes.org",
            "y/home/notes.org",
            "a.org"
        ]
    );
    assert_eq!(
        names(&["/notes.org", "/none/notes.org"]),
        ["notes.org", "none/notes.org"]
    );
}

#[test]
fn file_that_is_named_twice_is_there_once() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("sub")).unwrap();
    let path = directory.path().join("a.org");
    let round = directory.path().join("sub/../a.org");
    assert_eq!(
        Files::new(vec![path.clone(), round, path]).iter().count(),
        1
    );
}

#[test]
fn no_name_is_that_of_an_id_or_of_a_part_of_another_file() {
    assert_eq!(names(&["/none/x/id"]), ["x/id"]);
    assert_eq!(
        names(&["/none/id/a.org", "/none/b/a.org"]),
        ["none/id/a.org", "b/a.org"]
    );
    let parts = [
        "/none/a.org",
        "/none/x/a.org/outline",
        "/none/y/outline",
        "/none/z/a.org/headline/outline",
    ];
    assert_eq!(
        names(&parts),
        ["a.org", "x/a.org/outline", "y/outline", "headline/outline"]
    );
}

#[test]
fn uri_encodes_all_but_the_slash() {
    let uris = named(&[
        "/none/a b#%.org",
        "/none/ä?.org",
        "/none/x/c.org",
        "/none/y/c.org",
    ]);
    let uris: Vec<String> = uris.into_iter().map(|(_, uri)| uri).collect();
    assert_eq!(
        uris,
        [
            "org://a%20b%23%25.org",
            "org://%C3%A4%3F.org",
            "org://x/c.org",
            "org://y/c.org"
        ]
    );
}

#[test]
fn other_file_is_not_found_whatever_the_name_says() {
    let files = Files::new(vec![PathBuf::from("/none/a.org")]);
    assert_eq!(
        files.find("a.org").unwrap().path,
        PathBuf::from("/none/a.org")
    );
    for name in [
        "",
        "b.org",
        "A.org",
        "/none/a.org",
        "../a.org",
        "./a.org",
        "none/a.org",
        "a.org\0",
        "a.org/",
    ] {
        let error = files.find(name).unwrap_err().to_string();
        assert!(
            error.ends_with("resources/list names all"),
            "{name}: {error}"
        );
    }
}

#[test]
fn file_that_grew_too_large_is_not_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.org");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let files = Files::new(vec![path]);
    let error = files.find("a.org").unwrap().read().unwrap_err().to_string();
    assert_eq!(
        error,
        "the resource could not be read: the file has more than 67108864 bytes"
    );
    assert_eq!(files.texts().count(), 0);
}

#[cfg(unix)]
#[test]
fn pipe_in_the_place_of_a_file_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.org");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let error = Files::new(vec![path])
        .find("a.org")
        .unwrap()
        .read()
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the path does not name a file");
}

#[cfg(unix)]
#[test]
fn file_that_is_swapped_with_a_link_while_it_is_read_gives_nothing_else() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("secret"), "secret").unwrap();
    fs::write(at("a.org"), "* mine").unwrap();
    let files = Files::new(vec![at("a.org")]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::os::unix::fs::symlink("secret", at("link")).unwrap();
                fs::rename(at("link"), at("a.org")).unwrap();
                fs::write(at("file"), "* mine").unwrap();
                fs::rename(at("file"), at("a.org")).unwrap();
            }
        });
        // Who swaps may be held up for long while it is a link.
        let reads = (0..5_000_000).filter_map(|_| files.find("a.org").unwrap().read().ok());
        let texts: Vec<String> = reads.take(3000).collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(texts.len(), 3000);
        assert!(texts.iter().all(|text| text == "* mine"));
    });
}
