use std::{
    io::{self, Read as _, Write as _},
    net::TcpListener,
    sync::Arc,
    thread::{self, sleep},
    time::{Duration, Instant},
};

use jp_resource::{BlobRef, Encoding, ResourceContent};

use super::*;
use crate::{
    BaseUrl, Later, Loaded, Measure, Secret, TextSource, error::with_causes, json::GAP,
    later::TextForm, retry::Policy,
};
use testing::{
    Reply, UNUSED_URL, assert_contains, assert_ends, assert_lacks, assert_starts, block_on, chunk,
};

fn endpoint(url: &str) -> Endpoint {
    let mut endpoint = Endpoint::new("llamacpp", BaseUrl::parse(url).unwrap(), "m");
    endpoint.retry.base_delay = Duration::from_millis(1);
    endpoint
}

fn body(text: &str) -> Body {
    Body::new(|out| Ok(out.write_all(text.as_bytes())?))
        .unwrap()
        .0
}

/// What a whole exchange looked like: words, then the error with its causes; and the retries.
#[derive(Debug, PartialEq)]
struct Exchange {
    words: String,
    error: String,
    retries: Vec<String>,
}

fn exchange(endpoint: Endpoint) -> Exchange {
    let client = Client::new(endpoint).unwrap();
    let mut exchange = Exchange {
        words: String::new(),
        error: String::new(),
        retries: Vec::new(),
    };
    let result = block_on(async {
        let on_retry = &mut |notice: RetryNotice<'_>| {
            exchange
                .retries
                .push(format!("{} {}", notice.attempt, with_causes(notice.reason)));
        };
        let mut response = client.send(&body("{}"), on_retry).await?;
        while let Some(event) = response.next().await? {
            if let StreamEvent::Text(text) = event {
                exchange.words += &text;
            }
        }
        assert!(
            matches!(response.next().await, Ok(None)),
            "nothing comes after the end"
        );
        Ok(())
    });
    exchange.error = result
        .err()
        .map(|error: Error| with_causes(&error))
        .unwrap_or_default();
    exchange
}

/// Plays the script and takes the server's address out of what happened.
fn play(
    replies: Vec<Reply>,
    change: impl FnOnce(&mut Endpoint),
) -> (Exchange, Vec<testing::Received>) {
    let server = testing::Server::new(replies);
    let mut endpoint = endpoint(server.url());
    change(&mut endpoint);
    let mut exchange = exchange(endpoint);
    exchange.error = exchange.error.replace(server.url(), "URL");
    exchange
        .retries
        .iter_mut()
        .for_each(|retry| *retry = retry.replace(server.url(), "URL"));
    (exchange, server.received())
}

fn unchanged(_: &mut Endpoint) {}

#[test]
fn request_has_the_headers_that_servers_need() {
    let server = testing::Server::new(vec![Reply::words(&["hi"])]);
    let mut endpoint = endpoint(&format!("{}/v1/", server.url()));
    endpoint.api_key = Some(Secret::new("sk-1"));
    let client = Client::new(endpoint).unwrap();
    let body = body(&"x".repeat(300_000));
    block_on(async { client.send(&body, &mut |_| {}).await.map(drop) }).unwrap();
    let received = &server.received()[0];
    assert_eq!(received.body.len(), 300_000);
    for line in [
        "post /v1/chat/completions http/1.1",
        "content-length: 300000",
        "authorization: bearer sk-1",
    ] {
        assert_eq!(
            received.head.lines().filter(|found| *found == line).count(),
            1,
            "{}",
            received.head
        );
    }
    assert_lacks(&received.head, "transfer-encoding");
}

/// What is read for a body: `None` can't be.
struct Read(Option<&'static str>);

impl TextSource for Read {
    fn read(&self, blobs: Vec<BlobRef>) -> Box<dyn Iterator<Item = Loaded> + Send> {
        let read = self
            .0
            .map(|text| ResourceContent::Text(text.repeat(100_000)))
            .ok_or("no such blob");
        Box::new(blobs.into_iter().map(move |_| Ok(read.clone()?)))
    }
}

/// A body with room for a long text between two commas.
fn body_with_room(read: Read) -> Body {
    let text = "\"x\"\n".repeat(100_000);
    let blob = BlobRef::for_content(text.as_bytes(), Encoding::Utf8);
    let measure = Measure::from_text(&text).unwrap();
    let mut later = Later::new(Arc::new([(blob.checksum, measure)].into()), Arc::new(read));
    later
        .leave_room(&blob, "file:///a", TextForm::Plain)
        .unwrap();
    Body::new(|out| Ok(out.write_all(&[b',', GAP, b','])?))
        .unwrap()
        .0
        .with_room(&mut later)
}

#[test]
fn text_that_there_is_room_for_is_sent_again_with_a_retry() {
    let server = testing::Server::new(vec![Reply::json(500, "{}"), Reply::words(&["hi"])]);
    let client = Client::new(endpoint(server.url())).unwrap();
    let body = body_with_room(Read(Some("\"x\"\n")));
    block_on(async { client.send(&body, &mut |_| {}).await.map(drop) }).unwrap();
    let expected = format!(",{},", r#"\"x\"\n"#.repeat(100_000));
    for received in server.received() {
        assert!(received.body == expected.as_bytes());
        assert_contains(&received.head, "content-length: 700002");
    }
    assert_eq!(server.received().len(), 2);
}

#[test]
fn text_that_can_not_be_read_ends_the_request() {
    let server = testing::Server::new(vec![Reply::words(&["hi"])]);
    let client = Client::new(endpoint(server.url())).unwrap();
    for (read, error) in [
        (Read(None), "load file:///a for the request: no such blob"),
        (
            Read(Some("x")),
            "load file:///a for the request: it is shorter than the room for it",
        ),
        (
            Read(Some("xxxxxxxx")),
            "load file:///a for the request: it is longer than the room for it",
        ),
    ] {
        let body = body_with_room(read);
        let mut retries = 0;
        let sent = block_on(async { client.send(&body, &mut |_| retries += 1).await.map(drop) });
        assert_eq!(
            (with_causes(&sent.unwrap_err()).as_str(), retries),
            (error, 0)
        );
    }
    assert_eq!(server.received().len(), 0);
}

#[test]
fn answer_that_begins_before_the_request_is_sent_is_none() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 100]).unwrap();
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned() + &chunk("ok");
        stream.write_all(answer.as_bytes()).unwrap();
        stream
    });
    let client = Client::new(endpoint(&url)).unwrap();
    let (body, mut retries) = (body(&"x".repeat(30_000_000)), 0);
    let sent = block_on(async { client.send(&body, &mut |_| retries += 1).await.map(drop) });
    let error = with_causes(&sent.unwrap_err()).replace(&url, "URL");
    assert_eq!(
        error,
        "read the answer of llamacpp at URL: it began before the whole request was sent"
    );
    assert_eq!(retries, 0);
    drop(answering.join().unwrap());
}

#[test]
fn answer_arrives_whole() {
    let (exchange, _) = play(vec![Reply::words(&["Hello, ", "wörld"])], unchanged);
    let expected = Exchange {
        words: "Hello, wörld".to_owned(),
        error: String::new(),
        retries: vec![],
    };
    assert_eq!(exchange, expected);
}

#[test]
fn busy_server_is_asked_again_after_the_time_it_names() {
    let busy = Reply::with_headers(
        429,
        "retry-after-ms: 5\r\n",
        r#"{"error":{"message":"slow down"}}"#,
    );
    let (exchange, received) = play(vec![busy, Reply::words(&["ok"])], |endpoint| {
        endpoint.retry.base_delay = Duration::from_secs(3600);
    });
    let notice =
        "1 get an answer from llamacpp at URL: 429: slow down (it asks to wait 0.0 s)".to_owned();
    assert_eq!(
        exchange,
        Exchange {
            words: "ok".to_owned(),
            error: String::new(),
            retries: vec![notice]
        }
    );
    assert_eq!(received[0].body, received[1].body);
}

#[test]
fn failing_server_is_given_up_after_five_retries() {
    let (exchange, received) = play(
        vec![Reply::json(500, r#"{"error":"no memory"}"#)],
        unchanged,
    );
    assert_eq!(
        exchange.error,
        "get an answer from llamacpp at URL: 500: no memory"
    );
    assert_eq!((exchange.retries.len(), received.len()), (5, 6));
}

#[test]
fn refused_request_is_not_sent_again() {
    let (exchange, received) = play(
        vec![Reply::json(400, r#"{"error":{"message":"too\nlong"}}"#)],
        unchanged,
    );
    assert_eq!(
        exchange.error,
        "get an answer from llamacpp at URL: 400: too long"
    );
    assert_eq!(received.len(), 1);
    let (exchange, _) = play(
        vec![Reply::with_headers(503, "x-should-retry: false\r\n", "")],
        unchanged,
    );
    assert_eq!(
        exchange.error,
        "get an answer from llamacpp at URL: 503: Service Unavailable"
    );
    assert_eq!(exchange.retries.len(), 0);
}

#[test]
fn server_that_asks_for_too_long_a_wait_is_given_up() {
    let (exchange, received) = play(
        vec![Reply::with_headers(429, "retry-after: 301\r\n", "later")],
        unchanged,
    );
    assert_eq!(
        exchange.error,
        "get an answer from llamacpp at URL: 429: later (it asks to wait 301.0 s)"
    );
    assert_eq!(received.len(), 1);
}

#[test]
fn nobody_on_this_machine_is_found_out_quickly() {
    let started = Instant::now();
    let exchange = exchange(Endpoint {
        retry: Policy::default(),
        ..endpoint(UNUSED_URL)
    });
    assert_eq!(
        exchange.error,
        format!("reach llamacpp at {UNUSED_URL}: connection refused")
    );
    assert_eq!(exchange.retries.len(), 1);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn stream_that_breaks_before_its_first_word_is_asked_for_again() {
    let short = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\n: ping\n\n";
    let (exchange, _) = play(
        vec![
            Reply::stream(": ping\n\n"),
            Reply::raw(short),
            Reply::raw(""),
            Reply::words(&["ok"]),
        ],
        unchanged,
    );
    assert_eq!(
        (exchange.words.as_str(), exchange.error.as_str()),
        ("ok", "")
    );
    insta::assert_snapshot!(exchange.retries.join("\n"), @r#"
    1 read the answer of llamacpp at URL: it ended before it was complete
    2 read the answer of llamacpp at URL: the connection broke: error decoding response body: error reading a body from connection: end of file before message length reached
    3 reach llamacpp at URL: error sending request: client error (SendRequest): connection closed before message completed
    "#);
}

#[test]
fn stream_that_breaks_after_a_word_is_an_error_that_keeps_the_word() {
    let half = chunk("half");
    let unfinished = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{half}"
    );
    for (reply, error) in [
        (
            Reply::stream(&half),
            "read the answer of llamacpp at URL: it ended before it was complete",
        ),
        (
            Reply::raw(unfinished),
            "read the answer of llamacpp at URL: the connection broke",
        ),
        (
            Reply::stream(
                &(half.clone() + "data: {\"error\":{\"message\":\"gone\",\"code\":500}}\n\n"),
            ),
            "read the answer of llamacpp at URL: the server says: gone",
        ),
        (
            Reply::stream(&(half.clone() + "data: \u{1b}[31mgarbage\n\n")),
            "read the answer of llamacpp at URL: it contains invalid data: [31mgarbage",
        ),
    ] {
        let (exchange, received) = play(vec![reply], unchanged);
        assert_eq!((exchange.words.as_str(), received.len()), ("half", 1));
        assert!(exchange.error.starts_with(error), "{}", exchange.error);
    }
}

#[test]
fn connection_that_breaks_after_the_last_word_is_no_error() {
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"usa";
    let events = chunk("all") + end;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    let (exchange, _) = play(vec![Reply::raw(format!("{head}{events}"))], unchanged);
    assert_eq!(
        (exchange.words.as_str(), exchange.error.as_str()),
        ("all", "")
    );
}

#[test]
fn error_in_the_stream_before_the_first_word_is_retried_if_it_may_pass() {
    let error = |code| {
        Reply::stream(&format!(
            "data: {{\"error\":{{\"message\":\"no\",\"code\":{code}}}}}\n\n"
        ))
    };
    assert_eq!(
        play(vec![error(503), Reply::words(&["ok"])], unchanged)
            .0
            .words,
        "ok"
    );
    let (exchange, received) = play(vec![error(400), Reply::words(&["ok"])], unchanged);
    assert_eq!(
        exchange.error,
        "read the answer of llamacpp at URL: the server says: no"
    );
    assert_eq!(received.len(), 1);
}

#[test]
fn page_in_place_of_a_stream_is_named() {
    let page = Reply::with_headers(200, "content-type: text/html\r\n", "<html>\n<b>Log in</b>");
    let (exchange, received) = play(vec![page], unchanged);
    assert_eq!(
        exchange.error,
        "read the answer of llamacpp at URL: it is text/html, not text/event-stream: <html> <b>Log in</b>"
    );
    assert_eq!(received.len(), 1);
}

#[test]
fn compressed_answer_is_not_asked_for_again() {
    let page = Reply::with_headers(
        200,
        "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n",
        "x",
    );
    let (exchange, received) = play(vec![page], unchanged);
    assert_eq!(
        exchange.error,
        "read the answer of llamacpp at URL: it is compressed (gzip), although jp did not request that; a proxy may have compressed it"
    );
    assert_eq!(received.len(), 1);
}

#[test]
fn redirect_is_an_error_that_names_the_place() {
    let redirect = Reply::with_headers(307, "location: http://elsewhere/\r\n", "");
    assert_eq!(
        play(vec![redirect], unchanged).0.error,
        "get an answer from llamacpp at URL: 307: redirects to http://elsewhere/, which is not followed"
    );
}

#[test]
fn silence_ends_the_answer_at_any_point() {
    let limits = |endpoint: &mut Endpoint| {
        endpoint.first_byte_timeout = Duration::from_millis(40);
        endpoint.idle_timeout = Duration::from_millis(20);
    };
    for (reply, words, seconds) in [
        (Reply::hang(), "", "0.04"),
        (Reply::stream(": ping\n\n").then_hang(), "", "0.04"),
        (Reply::stream(&chunk("half")).then_hang(), "half", "0.02"),
    ] {
        let (exchange, received) = play(vec![reply], limits);
        assert_eq!(
            exchange.error,
            format!("read the answer of llamacpp at URL: no data arrived for {seconds} s")
        );
        assert_eq!((exchange.words.as_str(), received.len()), (words, 1));
    }
}

#[test]
fn silence_counts_from_what_the_server_took_last() {
    let limit = Duration::from_secs(2);
    let begin = Instant::now();
    let (exchange, _) = play(vec![Reply::hang()], |endpoint| {
        endpoint.first_byte_timeout = limit
    });
    assert_eq!(
        exchange.error,
        "read the answer of llamacpp at URL: no data arrived for 2 s"
    );
    assert!(
        begin.elapsed() < 2 * limit,
        "it waited twice: {:?}",
        begin.elapsed()
    );
}

/// More than the buffers between a client and a server on one machine hold.
const LONG: usize = 64 << 20;

/// Reads a long request so many bytes at a time, with a pause before each, and answers.
fn read_slowly(listener: &TcpListener, at_a_time: u64, pause: Duration) {
    let (mut connection, _) = listener.accept().unwrap();
    let mut left = LONG as u64;
    while left > 0 {
        sleep(pause);
        let read = io::copy(
            &mut (&connection).take(left.min(at_a_time)),
            &mut io::sink(),
        )
        .unwrap();
        if read == 0 {
            return;
        }
        left -= read;
    }
    let stream = chunk("hi") + "data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    connection
        .write_all((head.to_owned() + &stream).as_bytes())
        .unwrap();
}

#[test]
fn slow_upload_is_told_from_one_that_stands_still() {
    let long = body(&"x".repeat(LONG));
    let send_to = |listener: &TcpListener, limit| {
        let mut endpoint = endpoint(&format!("http://{}", listener.local_addr().unwrap()));
        endpoint.first_byte_timeout = limit;
        let client = Client::new(endpoint).unwrap();
        block_on(async { client.send(&long, &mut |_| {}).await.map(drop) })
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let limit = Duration::from_secs(3);
    thread::scope(|scope| {
        scope.spawn(|| read_slowly(&listener, LONG as u64 / 8, Duration::from_millis(500)));
        let begin = Instant::now();
        send_to(&listener, limit).unwrap();
        assert!(begin.elapsed() > limit, "it was slow");
    });
    // Nobody accepts this one; the system takes a little of it.
    let error = with_causes(&send_to(&listener, Duration::from_millis(200)).unwrap_err());
    let told = "sending the request stalled for 0.2 s, after ";
    assert!(
        error.contains(told) && error.ends_with(" of its 67108864 bytes"),
        "{error}"
    );
}

#[test]
fn endless_answer_is_cut_at_the_limit() {
    let reply = || Reply::stream(&chunk("x"));
    let limit = |endpoint: &mut Endpoint| endpoint.max_response_bytes = 1 << 20;
    let (exchange, _) = play(vec![reply().then_repeat(chunk("x"))], limit);
    assert_eq!(
        exchange.error,
        "read the answer of llamacpp at URL: it has more than 1048576 bytes"
    );
    assert!(exchange.words.len() > 1000);
    let (exchange, _) = play(vec![reply().then_repeat("x".repeat(1 << 16))], |_| {});
    assert_eq!(
        exchange.error,
        "read the answer of llamacpp at URL: it has more than 8388608 bytes"
    );
}

#[test]
fn key_that_a_server_repeats_is_not_in_the_error() {
    for reply in [
        Reply::json(401, r#"{"error":{"message":"bad key sk-1"}}"#),
        Reply::stream("data: {\"error\":{\"message\":\"bad key sk-1\"}}\n\n"),
        Reply::with_headers(200, "content-type: text/plain\r\n", "bad key sk-1"),
        Reply::stream("data: bad key sk-1\n\n"),
    ] {
        let (exchange, _) = play(vec![reply], |endpoint| {
            endpoint.api_key = Some(Secret::new("sk-1"))
        });
        assert_ends(&exchange.error, "bad key [api key]");
    }
}

#[test]
fn unusable_key_is_an_error_without_the_key() {
    let (exchange, _) = play(vec![], |endpoint| {
        endpoint.api_key = Some(Secret::new("sk-1\n"))
    });
    assert_starts(&exchange.error, "set up the connection to llamacpp at URL");
    assert!(!exchange.error.contains("sk-1"), "{}", exchange.error);
}

#[test]
fn dropped_answer_ends_the_connection() {
    let server = testing::Server::new(vec![Reply::stream(&chunk("x")).then_repeat(chunk("x"))]);
    let client = Client::new(endpoint(server.url())).unwrap();
    block_on(async {
        let mut response = client.send(&body("{}"), &mut |_| {}).await.unwrap();
        assert_eq!(
            response.next().await.unwrap(),
            Some(StreamEvent::Text("x".to_owned()))
        );
    });
}

#[test]
fn ollama_answers_in_lines() {
    let lines = "{\"message\":{\"content\":\"Hi\"},\"done\":false}\n{\"done\":true}\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";
    let server = testing::Server::new(vec![
        Reply::raw(format!("{head}{lines}")),
        Reply::words(&["no"]),
    ]);
    let endpoint = || Endpoint::new("ollama", BaseUrl::parse(server.url()).unwrap(), "m");
    assert_eq!(exchange(endpoint()).words, "Hi");
    let received = &server.received()[0];
    assert_starts(&received.head, "post /api/chat ");
    assert_contains(&received.head, "accept: application/x-ndjson");
    let error = exchange(endpoint()).error;
    assert_contains(&error, "it is text/event-stream, not application/x-ndjson");
}
