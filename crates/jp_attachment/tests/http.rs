//! The HTTP handler with common servers on loopback.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    error::Error as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

use jp_attachment::{
    AttachError, Context, HttpError, MemoryStore, Place, canonical_path, parse_input, resolve,
};
use jp_resource::{BlobRef, Resource, ResourceContent};
use tempfile::TempDir;
use testing::{Background, free_port};

/// A file of a server: its name, content and type, whether it is text, and what the model sees.
type Served = (
    &'static str,
    &'static [u8],
    &'static str,
    bool,
    Option<&'static str>,
);

const FILES: &[Served] = &[
    (
        "page.html",
        b"<title>A page</title><h1>Head</h1><p>Text",
        "text/html",
        true,
        Some("# Head\n\nText"),
    ),
    ("notes.txt", b"caf\xc3\xa9", "text/plain", true, None),
    ("data.json", b"{\"a\": 1}", "application/json", true, None),
    ("style.css", b"p {}", "text/css", true, None),
    (
        "feed.xml",
        b"<?xml version=\"1.0\"?><a/>",
        "XML",
        true,
        None,
    ),
    ("drawing.svg", b"<svg/>", "image/svg+xml", true, None),
    (
        "image.png",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "image/png",
        false,
        None,
    ),
    ("paper.pdf", b"%PDF-1.4\n", "application/pdf", false, None),
    ("Makefile", b"all:\n", "text/x-makefile", true, None),
    (
        "archive.bin",
        b"\0\x01\x02",
        "application/octet-stream",
        false,
        None,
    ),
    ("a b+c%.txt", b"x", "text/plain", true, None),
    ("empty.txt", b"", "text/plain", true, None),
];

/// A server that ends with the test.
struct Server {
    _process: Background,
    port: u16,
}

fn get(url: &str) -> Result<(Resource<BlobRef>, ResourceContent), AttachError> {
    let place = Place::new("/nowhere");
    let store = MemoryStore::default();
    let declared = parse_input(url, &place).unwrap();
    let mut resolved = resolve(
        &[declared],
        &Context::new(&place, &store, SystemTime::now()),
    )?;
    let resource = resolved.resources.remove(0);
    let content = store.get(&resource.content).unwrap();
    Ok((resource, content))
}

/// Prints why a test does nothing.
#[expect(clippy::print_stdout, reason = "a skipped test has not passed")]
fn skip(server: &str) {
    println!("skipped: there is no {server} on this machine");
}

fn has(program: &str, argument: &str) -> bool {
    let run = Command::new(program)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    run.is_ok_and(|status| status.success())
}

fn files() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content, ..) in FILES {
        fs::write(directory.path().join(name), content).unwrap();
    }
    fs::create_dir(directory.path().join("folder")).unwrap();
    fs::write(directory.path().join("folder/index.html"), "<p>Index").unwrap();
    directory
}

fn encoded(name: &str) -> String {
    name.replace('%', "%25").replace(' ', "%20")
}

/// Checks what becomes of each file.
fn serves_files(server: &Server) {
    let base = format!("http://127.0.0.1:{}", server.port);
    for (name, bytes, mime_type, is_text, formatted) in FILES {
        let (resource, content) = get(&format!("{base}/{}", encoded(name))).unwrap();
        let found = resource.mime_type.unwrap();
        let found = if found.ends_with("/xml") {
            "XML"
        } else {
            &found
        };
        assert_eq!(found, *mime_type, "{name}");
        assert_eq!(content.as_bytes(), *bytes, "{name}");
        assert_eq!(content.as_text().is_some(), *is_text, "{name}");
        assert_eq!(resource.formatted.as_deref(), *formatted, "{name}");
        let modified = resource.annotations.unwrap().last_modified.unwrap();
        assert!(
            modified.ends_with('Z') && modified.contains('T'),
            "{modified}"
        );
    }
    let (resource, _) = get(&format!("{base}/folder")).unwrap();
    assert_eq!(resource.uri, format!("{base}/folder"));
    assert_eq!(resource.formatted.as_deref(), Some("Index"));
    let error = get(&format!("{base}/gone"))
        .unwrap_err()
        .source()
        .unwrap()
        .to_string();
    assert_eq!(
        error,
        format!("get {base}/gone: the server answered 404 (Not Found)")
    );
}

#[test]
fn python_serves_files() {
    if !has("python3", "--version") {
        return skip("python3");
    }
    let directory = files();
    let mut process = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let port = announced_port(&mut process, "port ");
    serves_files(&Server {
        _process: Background { process },
        port,
    });
}

#[test]
fn nginx_serves_files() {
    if !has("nginx", "-v") {
        return skip("nginx");
    }
    let directory = files();
    let root = canonical_path(directory.path()).unwrap();
    let port = free_port();
    fs::write(root.join("nginx.conf"), nginx_configuration(&root, port)).unwrap();
    let process = Command::new("nginx")
        .args(["-e", "stderr", "-p"])
        .arg(&root)
        .arg("-c")
        .arg(root.join("nginx.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server {
        _process: Background { process },
        port,
    };
    await_connection(port);
    serves_files(&server);
    let base = format!("http://127.0.0.1:{port}");
    let (compressed, content) = get(&format!("{base}/long.html")).unwrap();
    assert_eq!(content.as_bytes().len(), 4000);
    assert_eq!(compressed.formatted.unwrap().len(), 4000 - "<p>".len());
    let (resource, content) = get(&format!("{base}/latin/latin.txt")).unwrap();
    assert_eq!(
        resource.mime_type.as_deref(),
        Some("text/plain; charset=koi8-r")
    );
    assert_eq!(
        (content.as_bytes(), resource.formatted.as_deref()),
        (&b"\xc1\xc2"[..], Some("аб"))
    );
    let error = get(&format!("{base}/protected"))
        .unwrap_err()
        .source()
        .unwrap()
        .to_string();
    assert!(error.ends_with("401 (Unauthorized)"), "{error}");
    let (_, content) = get(&format!("http://joe:s%40cret@127.0.0.1:{port}/protected")).unwrap();
    assert_eq!(content.as_text(), Some("in"));
}

/// Writes what else the server has, and how it serves it.
fn nginx_configuration(root: &Path, port: u16) -> String {
    fs::write(root.join("long.html"), format!("<p>{}", "x".repeat(3997))).unwrap();
    fs::create_dir(root.join("latin")).unwrap();
    fs::write(root.join("latin/latin.txt"), b"\xc1\xc2").unwrap();
    fs::write(root.join("passwords"), "joe:{PLAIN}s@cret\n").unwrap();
    fs::write(root.join("protected"), "in").unwrap();
    let root = root.display();
    format!(
        "daemon off; master_process off; pid {root}/nginx.pid;
        events {{}}
        http {{
            types {{
                text/html html; text/css css; text/plain txt; text/xml xml; application/json json;
                image/svg+xml svg; image/png png; application/pdf pdf;
            }}
            default_type application/octet-stream;
            access_log off;
            client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
            uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
            gzip on; gzip_min_length 1000; gzip_types text/html;
            server {{
                listen 127.0.0.1:{port};
                root {root};
                location /latin/ {{ charset koi8-r; }}
                location /protected {{ auth_basic jp; auth_basic_user_file {root}/passwords; }}
            }}
        }}"
    )
}

#[test]
fn unsigned_certificate_is_refused() {
    if !has("openssl", "version") {
        return skip("openssl");
    }
    let directory = tempfile::tempdir().unwrap();
    let run = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
        ])
        .args([
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            "key.pem",
            "-out",
            "certificate.pem",
        ])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let mut process = Command::new("openssl")
        .args([
            "s_server",
            "-www",
            "-accept",
            "127.0.0.1:0",
            "-key",
            "key.pem",
            "-cert",
            "certificate.pem",
        ])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let port = announced_port(&mut process, "ACCEPT 127.0.0.1:");
    let server = Server {
        _process: Background { process },
        port,
    };
    let error = get(&format!("https://127.0.0.1:{}/", server.port)).unwrap_err();
    let AttachError::Http { source, .. } = &error else {
        panic!("{error:?}")
    };
    assert!(matches!(**source, HttpError::Tls { .. }), "{source:?}");
}

/// Reads the port that a server says it listens on.
fn announced_port(process: &mut Child, before: &str) -> u16 {
    let output = BufReader::new(process.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok).take(20);
    let line = lines
        .find(|line| line.contains(before))
        .expect("the server starts");
    let (_, rest) = line.split_once(before).unwrap();
    rest.split(|character: char| !character.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

fn await_connection(port: u16) {
    let started = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(mut stream) => return stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap(),
            Err(error) if started.elapsed() > Duration::from_secs(10) => panic!("{error}"),
            Err(_) => thread::yield_now(),
        }
    }
}
