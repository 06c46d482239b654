mod server;

use std::{
    error::Error,
    io,
    net::IpAddr,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    time::{Instant, SystemTime},
};

use jp_resource::{BlobRef, Resource, ResourceContent};

use self::server::{Server, ok};
use testing::assert_ends;

use super::{
    client::{Lookup, Names},
    *,
};
use crate::{Limits, MemoryStore, Notice, Place, parse_input, parse_stored};

/// Names that stand for this machine, and nothing else.
struct Loopback(&'static [&'static str]);

impl Names for Loopback {
    fn lookup(&self, host: String) -> Lookup {
        let is_known = self.0.contains(&&*host);
        Box::pin(async move {
            match is_known {
                true => Ok(vec![IpAddr::from([127, 0, 0, 1])]),
                false => Err(io::Error::other(format!("{host} is not known"))),
            }
        })
    }
}

/// What a test resolves with.
struct World {
    place: Place,
    store: MemoryStore,
    limits: Limits,
    timeout: Duration,
    unavailable: Unavailable,
    cancelled: Arc<AtomicBool>,
}

impl World {
    fn new() -> Self {
        Self {
            place: Place::new("/nowhere"),
            store: MemoryStore::default(),
            limits: Limits {
                max_bytes: 100_000,
                ..Limits::default()
            },
            timeout: Duration::from_secs(20),
            unavailable: Unavailable::Fail,
            cancelled: Arc::default(),
        }
    }

    fn typed(&self, url: &str) -> Declared {
        parse_input(url, &self.place).unwrap()
    }

    fn resolve(&self, declared: &[Declared]) -> Result<Resolved, AttachError> {
        let context = Context {
            limits: self.limits,
            timeout: self.timeout,
            unavailable: self.unavailable,
            cancelled: Some(&self.cancelled),
            ..Context::new(&self.place, &self.store, SystemTime::UNIX_EPOCH)
        };
        let names = Arc::new(Loopback(&["public.test", "other.test", "localhost"]));
        resolve_with(
            declared,
            &context,
            Network {
                names,
                has_proxies: false,
            },
        )
    }

    fn page(&self, url: &str) -> Resource<BlobRef> {
        let mut resolved = self
            .resolve(&[self.typed(url)])
            .unwrap_or_else(|error| panic!("{}", chain(&error)));
        assert_eq!(resolved.resources.len(), 1);
        resolved.resources.remove(0)
    }

    fn text(&self, page: &Resource<BlobRef>) -> String {
        self.store
            .get(&page.content)
            .unwrap()
            .as_text()
            .unwrap()
            .to_owned()
    }

    fn error(&self, declared: Declared) -> String {
        chain(&self.resolve(&[declared]).unwrap_err())
    }

    fn typed_error(&self, url: &str) -> String {
        self.error(self.typed(url))
    }
}

/// Shows an error with its causes.
fn chain(error: &dyn Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", chain(cause)));
    format!("{error}{}", cause.unwrap_or_default())
}

/// Takes a server's address out of a message.
fn anonymous(message: &str, server: &Server) -> String {
    message.replace(&server.address.to_string(), "SERVER")
}

#[test]
fn page_is_described_by_its_server() {
    let headers = "content-type: text/html; charset=utf-8\r\nlast-modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
    let server = Server::always(ok(headers, "<title>T</title><p>A <b>page</b>"));
    let world = World::new();
    let page = world.page(&server.url("/a/../b#c"));
    assert_eq!(page.uri, server.url("/b"));
    assert_eq!(page.name.as_deref(), Some(&*page.uri));
    assert_eq!(page.title.as_deref(), Some("T"));
    assert_eq!(page.mime_type.as_deref(), Some("text/html"));
    assert_eq!(page.formatted.as_deref(), Some("A **page**"));
    assert_eq!(
        page.annotations.unwrap().last_modified.as_deref(),
        Some("2015-10-21T07:28:00Z")
    );
    let request = server.requests().remove(0).to_ascii_lowercase();
    let agent = format!("user-agent: jp/{}\r\n", env!("CARGO_PKG_VERSION"));
    assert!(
        request.starts_with("get /b http/1.1\r\n") && request.contains(&agent),
        "{request}"
    );
}

#[test]
fn type_without_a_header_follows_the_content() {
    let server = Server::start(|exchange| match &*exchange.path {
        "/main.rs" => exchange.write(&ok("", "fn main() {}")),
        _ => exchange.write(&ok("", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")),
    });
    let world = World::new();
    assert_eq!(
        world.page(&server.url("/main.rs")).mime_type.as_deref(),
        Some("text/x-rust")
    );
    assert_eq!(
        world.page(&server.url("/x")).mime_type.as_deref(),
        Some("image/png")
    );
}

#[test]
fn wrong_charset_gives_a_notice() {
    let server = Server::always(ok(
        "content-type: text/plain; charset=utf-8\r\n",
        b"caf\xe9",
    ));
    let world = World::new();
    let resolved = world.resolve(&[world.typed(&server.url("/"))]).unwrap();
    assert!(
        matches!(&resolved.notices[..], [Notice::Garbled { .. }]),
        "{:?}",
        resolved.notices
    );
    assert_eq!(
        resolved.resources[0].formatted.as_deref(),
        Some("caf\u{fffd}")
    );
    assert_eq!(
        resolved.resources[0].content,
        ResourceContent::Blob(b"caf\xe9".to_vec()).blob_ref()
    );
}

#[test]
fn compressed_page_is_decompressed() {
    let headers = "content-type: text/plain\r\ncontent-encoding: gzip\r\n";
    let server = Server::always(ok(headers, gzip(b"a page")));
    let world = World::new();
    let page = world.page(&server.url("/"));
    assert_eq!(world.text(&page), "a page");
    let server = Server::always(ok("content-encoding: br\r\n", b"x"));
    assert!(
        world
            .typed_error(&server.url("/"))
            .ends_with(r#"it is encoded as "br", which jp did not request"#)
    );
}

#[test]
fn error_status_is_an_error() {
    let world = World::new();
    for (status, shown) in [
        ("404 Not Found", "404 (Not Found)"),
        ("500 Internal Server Error", "500 (Internal Server Error)"),
        ("304 Not Modified", "304 (Not Modified)"),
        ("302 Found", "302 (Found)"),
        ("799 Odd", "799"),
    ] {
        let server = Server::always(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"));
        let message = anonymous(&world.typed_error(&server.url("/x")), &server);
        let expected = format!(
            r#"attach "http://SERVER/x": get http://SERVER/x: the server answered {shown}"#
        );
        assert_eq!(message, expected);
    }
}

#[test]
fn redirected_page_keeps_its_name() {
    let server = Server::start(|exchange| match &*exchange.path {
        "/a" => exchange.redirect("b/c?d"),
        "/b/c?d" => exchange.redirect("//localhost.:1/../e"),
        _ => exchange.write(&ok("content-type: text/plain\r\n", "page")),
    });
    let world = World::new();
    assert!(
        world
            .typed_error(&server.url("/a"))
            .contains("http://localhost.:1/e")
    );
    assert_eq!(server.requests().len(), 2);
    let server = Server::start(|exchange| match &*exchange.path {
        "/a" => exchange.redirect("b/c?d"),
        _ => exchange.write(&ok("content-type: text/plain\r\n", "page")),
    });
    let page = world.page(&server.url("/a"));
    assert_eq!(
        (page.uri.clone(), world.text(&page)),
        (server.url("/a"), "page".to_owned())
    );
}

#[test]
fn redirects_have_an_end() {
    let world = World::new();
    let circle = Server::start(|exchange| match &*exchange.path {
        "/a" => exchange.redirect("/b"),
        _ => exchange.redirect("/a"),
    });
    let message = anonymous(&world.typed_error(&circle.url("/a")), &circle);
    assert_eq!(
        message,
        r#"attach "http://SERVER/a": get http://SERVER/a: its redirects form a loop"#
    );
    let endless =
        Server::start(|exchange| exchange.redirect(&format!("{}x", exchange.path.clone())));
    let message = anonymous(&world.typed_error(&endless.url("/")), &endless);
    assert_ends(
        &message,
        "get http://SERVER/xxxxxxxxxxx: it redirects more than 10 times",
    );
    assert_eq!(endless.requests().len(), 11);
}

#[test]
fn redirect_never_leads_into_a_private_network() {
    let secret = Server::always(ok("", "secret"));
    let port = secret.address.port();
    for target in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://other.test:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[fd00::1]/".to_owned(),
        "http://10.0.0.1/".to_owned(),
    ] {
        let location = target.clone();
        let server = Server::start(move |exchange| exchange.redirect(&location));
        let world = World::new();
        let typed = world.typed(&format!("http://public.test:{}/", server.address.port()));
        let error = world.resolve(&[typed]).unwrap_err();
        let AttachError::Http { source, .. } = &error else {
            panic!("{error:?}")
        };
        assert!(
            matches!(**source, HttpError::PrivateAddress { .. }),
            "{target}: {error:?}"
        );
    }
    assert_eq!(secret.requests(), [""; 0]);
}

#[test]
fn private_address_must_be_typed() {
    let server = Server::always(ok("content-type: text/plain\r\n", "page"));
    let world = World::new();
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "public.test", "2130706433"] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(world.text(&world.page(&url)), "page");
        let stored = world.typed(&url).declaration.unwrap();
        let message = world.error(parse_stored(&stored, &world.place).unwrap());
        assert_ends(&message, "which only a URL that the user typed may reach");
    }
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn credentials_go_only_to_their_origin() {
    let other = Server::always(ok("content-type: text/plain\r\n", "page"));
    let elsewhere = other.url("/c").replace("127.0.0.1", "other.test");
    let server = Server::start(move |exchange| match &*exchange.path {
        "/a" => exchange.redirect("/b"),
        "/b" => exchange.redirect(&elsewhere),
        _ => {}
    });
    let world = World::new();
    let typed = world.typed(&format!(
        "http://JOE:S%3ACRET@public.test:{}/a",
        server.address.port()
    ));
    let shown = format!("{typed:?}");
    let message = world.error(typed);
    assert!(!shown.contains("CRET") && !shown.contains("JOE"), "{shown}");
    assert!(
        !message.contains("CRET") && !message.contains("JOE"),
        "{message}"
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "{message}");
    // `JOE:S:CRET`
    assert!(
        requests
            .iter()
            .all(|head| head.contains("authorization: Basic Sk9FOlM6Q1JFVA==")),
        "{requests:?}"
    );
}

#[test]
fn redirect_to_another_port_of_a_private_host_is_refused() {
    let other = Server::always(ok("content-type: text/plain\r\n", "page"));
    let elsewhere = other.url("/c");
    let server = Server::start(move |exchange| exchange.redirect(&elsewhere));
    let world = World::new();
    let typed = world.typed(&server.url("/a").replace("//", "//JOE:SECRET@"));
    let error = world.resolve(&[typed]).unwrap_err();
    assert!(!format!("{error:?}").contains("SECRET"));
    let AttachError::Http { source, .. } = error else {
        panic!("{error}")
    };
    assert!(
        matches!(*source, HttpError::PrivateAddress { .. }),
        "{source}"
    );
    assert!(server.requests()[0].contains("authorization"));
    assert_eq!(other.requests(), Vec::<String>::new());
}

#[test]
fn endless_content_is_cut_off() {
    let world = World::new();
    let limit = "it is longer than the 100000 bytes that conversation.attachment.max_bytes allows";
    let chunked = Server::start(|exchange| {
        exchange.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        exchange.write_endlessly(b"10\r\n0123456789abcdef\r\n");
    });
    let until_closed = Server::start(|exchange| {
        exchange.write(b"HTTP/1.1 200 OK\r\n\r\n");
        exchange.write_endlessly(&[b'x'; 1024]);
    });
    let announced = Server::start(|exchange| {
        exchange.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n");
        exchange.stall();
    });
    let headers = "content-encoding: gzip\r\ncontent-type: text/plain\r\n";
    let bomb = Server::always(ok(headers, gzip(&vec![0; 50_000_000])));
    for server in [chunked, until_closed, announced, bomb] {
        let message = world.typed_error(&server.url("/"));
        assert!(message.ends_with(limit), "{message}");
    }
    let exact = Server::always(ok("content-type: text/plain\r\n", vec![b'x'; 100_000]));
    assert_eq!(world.page(&exact.url("/")).content.size, 100_000);
}

#[test]
fn stalled_server_times_out() {
    let world = World {
        timeout: Duration::from_millis(200),
        ..World::new()
    };
    let silent = Server::start(server::Exchange::stall);
    let interrupted = Server::start(|exchange| {
        exchange.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
        exchange.stall();
    });
    for server in [silent, interrupted] {
        let message = anonymous(&world.typed_error(&server.url("/")), &server);
        assert_ends(
            &message,
            "get http://SERVER/: it did not arrive within 0.2 s",
        );
    }
}

#[test]
fn broken_answer_is_an_error() {
    let world = World::new();
    for (answer, part) in [
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec(),
            "read the content of",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_vec(),
            "read the content of",
        ),
        (
            ok("content-encoding: gzip\r\n", &gzip(b"a page")[..12]),
            "decompress the content of",
        ),
        (
            ok("content-encoding: gzip\r\n", "not gzip"),
            "decompress the content of",
        ),
        (
            ok("content-encoding: gzip\r\n", ""),
            "decompress the content of",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), "get http"),
        (b"HTTP/1.1 200 OK\r\nx: ".to_vec(), "get http"),
        (Vec::new(), "get http"),
    ] {
        let server = Server::always(answer.clone());
        let message = world.typed_error(&server.url("/"));
        assert!(
            message.contains(part),
            "{:?}: {message}",
            String::from_utf8_lossy(&answer)
        );
    }
    // The system does not assign this port to programs that ask for any port.
    let message = world.typed_error("http://127.0.0.1:1/");
    assert!(
        message.to_ascii_lowercase().contains("refused"),
        "{message}"
    );
    let message = world.typed_error("http://unknown.test/");
    assert!(message.contains("unknown.test is not known"), "{message}");
}

#[test]
fn server_without_tls_is_an_error() {
    let server = Server::always(ok("", "page"));
    let world = World::new();
    let message = world.typed_error(&format!("https://{}/", server.address));
    assert!(
        anonymous(&message, &server)
            .contains("make a secure connection (TLS) to https://SERVER/: "),
        "{message}"
    );
}

#[test]
fn interrupt_ends_requests_at_once() {
    let world = World::new();
    let cancelled = Arc::clone(&world.cancelled);
    let server = Server::start(move |exchange| {
        cancelled.store(true, Ordering::Relaxed);
        exchange.stall();
    });
    let started = Instant::now();
    let error = world.resolve(&[world.typed(&server.url("/"))]).unwrap_err();
    assert!(matches!(error, AttachError::Interrupted) && started.elapsed() < world.timeout);
}

#[test]
fn pages_are_fetched_at_once() {
    // The server answers only after eight requests have arrived.
    let barrier = Barrier::new(MAX_REQUESTS);
    let server = Server::start(move |exchange| {
        barrier.wait();
        exchange.write(&ok("content-type: text/plain\r\n", exchange.path.clone()));
    });
    let world = World::new();
    let declared: Vec<_> = (0..2 * MAX_REQUESTS)
        .map(|number| world.typed(&server.url(&format!("/{number}"))))
        .collect();
    let resolved = world.resolve(&declared).unwrap();
    let texts: Vec<_> = resolved
        .resources
        .iter()
        .map(|page| world.text(page))
        .collect();
    assert_eq!(
        texts,
        (0..2 * MAX_REQUESTS)
            .map(|number| format!("/{number}"))
            .collect::<Vec<_>>()
    );
}

#[test]
fn missing_page_can_be_skipped() {
    let server = Server::start(|exchange| match &*exchange.path {
        "/gone" => exchange.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
        _ => exchange.write(&ok("content-type: text/plain\r\n", "page")),
    });
    let mut world = World::new();
    let declared = ["/a", "/gone", "/b"].map(|path| world.typed(&server.url(path)));
    assert!(matches!(
        world.resolve(&declared).unwrap_err(),
        AttachError::Http { .. }
    ));
    world.unavailable = Unavailable::Skip;
    let resolved = world.resolve(&declared).unwrap();
    assert_eq!(resolved.resources.len(), 2);
    assert!(matches!(
        &resolved.notices[..],
        [Notice::Skipped(AttachError::Http { .. })]
    ));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut compressed = vec![0; compressor.gzip_compress_bound(bytes.len())];
    let length = compressor.gzip_compress(bytes, &mut compressed).unwrap();
    compressed.truncate(length);
    compressed
}
