//! The program for `benches/bench.py resources`:
//!
//! ```text
//! $ resource_bench match                                # how long finding the template of a URI takes
//! $ resource_bench serve                                # a server of small resources on standard input and output
//! $ resource_bench drive REQUESTS WINDOW URI COMMAND…   # reads from a server, with so many requests on their way
//! ```
//!
//! A `#` in the URI is the request's number. `drive` prints the microseconds a request took and the resident memory of
//! the server, in KiB, after a hundredth of the requests, but 10,000 at least, and after all.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints"
)]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::RangeInclusive;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_resources::template::{Matcher, TemplateError, TemplateSet, UriTemplate};
use mcp_resources::{Parameters, Registry, Resource, ResourceTemplate, Server};

/// The length of a URI that is made to hurt.
const HOSTILE: usize = 64 * 1024;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["match"] => measure_matching(),
        ["serve"] => serve(),
        ["drive", requests, window, uri, program, ref rest @ ..] => {
            drive(requests, window, uri, Command::new(program).args(rest))
        }
        _ => Err("usage: resource_bench match | serve | drive REQUESTS WINDOW URI COMMAND…".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A name, a template by its number, and a URI of the seventh.
type Shape = (&'static str, fn(usize) -> String, &'static str);

fn measure_matching() -> Result<(), Box<dyn Error>> {
    let shapes: [Shape; 6] = [
        (
            "prefixes that differ",
            |n| format!("app://kind{n}/{{id}}/{{+path}}"),
            "app://kind7/12/some/path",
        ),
        (
            "one prefix, ends that differ",
            |n| format!("app://{{id}}/kind{n}"),
            "app://12/kind7",
        ),
        (
            "one prefix, middles that differ",
            |n| format!("app://{{id}}/kind{n}/{{+path}}"),
            "app://12/kind7/some/path",
        ),
        (
            "one prefix, text that may stand anywhere",
            |n| format!("app://{{+path}}/kind{n}/{{+rest}}"),
            "app://12/kind7/some/path",
        ),
        (
            "one prefix, text in a segment",
            |n| format!("app://{{id}}-kind{n}-{{name}}"),
            "app://12-kind7-name",
        ),
        (
            "one prefix, names of queries",
            |n| format!("app://kind/{{id}}{{?of{n}}}"),
            "app://kind/12?of7=1",
        ),
    ];
    for (name, template, uri) in shapes {
        let (ten, thousand) = (set(10, template)?, set(1000, template)?);
        let (ten, thousand) = (time_find(&ten, uri), time_find(&thousand, uri));
        let ratio = thousand / ten;
        println!(
            "find, {name}: {ten:.0} ns among 10, {thousand:.0} ns among 1,000, ratio {ratio:.2}"
        );
    }
    let mut slowest = (Duration::ZERO, String::new());
    for (template, unit, end) in hostile() {
        let matcher = Matcher::new(&UriTemplate::parse(&template)?)?;
        let uri = format!("x{}{end}", unit.repeat(HOSTILE / unit.len()));
        let once = |_| elapsed(|| drop(black_box(matcher.matches(black_box(&uri)))));
        // What is slower than all before is measured again, as it may be noise.
        let time = once(0);
        let time = if time > slowest.0 {
            (0..7).map(once).min().unwrap_or_default()
        } else {
            time
        };
        if time <= slowest.0 {
            continue;
        }
        let name = format!(
            "{}… with {unit:?} again and again, {end:?} at the end",
            shortened(&template)
        );
        slowest = (time, name);
    }
    println!(
        "one template and a URI of 64 KiB, the slowest: {:.2?}, {}",
        slowest.0, slowest.1
    );
    let middles = set(1000, |n| format!("x:{{a}}-kind{n}-{{b}}"))?;
    let slow = set(1000, |n| {
        format!("x:{{+p}}{}{{;k{n}}}", "{/a}{.b}".repeat(30))
    })?;
    let repeated = format!("x:{}", "-kind99".repeat(HOSTILE / 7));
    let texts: String = (0..1000).map(|n| format!("-kind{n}-")).collect();
    let late = format!("x:{}{texts}/", "a".repeat(HOSTILE - texts.len()));
    let dashes = format!("x:{}:", "-".repeat(HOSTILE));
    let sets = [
        ("one text again and again", &middles, repeated),
        ("the texts of all at the end", &middles, late),
        ("each of them slow", &slow, dashes),
    ];
    for (name, set, uri) in sets {
        let once = |_| elapsed(|| drop(black_box(set.find(black_box(&uri)))));
        let time = (0..5).map(once).min().unwrap_or_default();
        println!("1,000 templates of one prefix and a URI of 64 KiB, {name}: {time:.2?}");
    }
    Ok(())
}

fn set(count: usize, template: fn(usize) -> String) -> Result<TemplateSet, TemplateError> {
    let matcher = |number| Matcher::new(&UriTemplate::parse(&template(number))?);
    Ok(TemplateSet::new(
        (0..count).map(matcher).collect::<Result<_, _>>()?,
    ))
}

/// Nanoseconds, the least of many runs.
fn time_find(set: &TemplateSet, uri: &str) -> f64 {
    const CALLS: u32 = 1000;
    let once = |_| {
        elapsed(|| {
            (0..CALLS).for_each(|_| assert!(black_box(set).find(black_box(uri)).is_some(), "{uri}"))
        })
    };
    let least = (0..50).map(once).min().unwrap_or_default();
    least.as_secs_f64() * 1e9 / f64::from(CALLS)
}

fn elapsed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn shortened(template: &str) -> String {
    template.chars().take(30).collect()
}

/// Templates, what URIs that hurt them repeat, and their ends.
fn hostile() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    let pieces = [
        "{a}-",
        "{+a}-",
        "{a}aab",
        "{+a}aab",
        "{a}{.b}-",
        "{a}{.b}-{c}{/d}-",
        "{/a}",
        "{.a}",
        "{/a}{.b}",
        "{;a}",
        "{;a,b*}",
        "{a:9}-",
        "{v}-",
        "{l*}/",
    ];
    let heads = ["", "{+p}", "{+p}/", "{p}"];
    let tails = [
        "",
        "!",
        "zz{z}",
        "aab{z}",
        "{/l*}",
        "{?a*,b}",
        "{?a*}{#f}",
        "{#f}",
    ];
    let units = [
        "a", "-", "a-", "aa", "aab", "/", "/a", "/:", ".", ".a", "./", ";", ";a", ";a=1", ";b=1",
        ",", "a,", "%41", "\u{e9}", "?a=1", "&a=1", "#",
    ];
    let ends = ["", "!", ":", "zz"];
    let templates = heads.into_iter().flat_map(move |head| {
        pieces.into_iter().flat_map(move |piece| {
            tails
                .into_iter()
                .filter_map(move |tail| matchable(head, piece, tail))
        })
    });
    templates.flat_map(move |template| {
        units.into_iter().flat_map(move |unit| {
            let template = template.clone();
            ends.into_iter()
                .map(move |end| (template.clone(), unit, end))
        })
    })
}

/// The template with as many of the pieces as it may have.
fn matchable(head: &str, piece: &str, tail: &str) -> Option<String> {
    let fits = |template: &String| Matcher::new(&UriTemplate::parse(template).ok()?).ok();
    let repeated = |count| format!("x{head}{}{tail}", piece.repeat(count));
    [60, 30, 15, 1]
        .map(repeated)
        .into_iter()
        .find(|template| fits(template).is_some())
}

fn serve() -> Result<(), Box<dyn Error>> {
    let text = "A small note.\n".repeat(8);
    let (sync, async_text, item_text) = (text.clone(), text.clone(), text);
    let registry = Registry::new();
    registry.register_resource(Resource::new("bench://small", "Small", move || {
        sync.clone()
    }))?;
    registry.register_resource(Resource::new("bench://async", "Small, async", move || {
        let text = async_text.clone();
        async move { text }
    }))?;
    let forever = || {
        loop {
            std::thread::park();
        }
    };
    registry.register_resource(Resource::new(
        "bench://forever",
        "Never read",
        move || -> String { forever() },
    ))?;
    let item = move |parameters: Parameters| {
        let text = item_text.clone();
        async move {
            parameters
                .text("number")
                .map(|number| format!("{number}: {text}"))
        }
    };
    registry.register_template(ResourceTemplate::new("bench://item/{number}", "Item", item))?;
    Ok(Server::new("bench", "1", registry).run_stdio()?)
}

fn drive(
    requests: &str,
    window: &str,
    uri: &str,
    command: &mut Command,
) -> Result<(), Box<dyn Error>> {
    let (requests, window) = (requests.parse()?, window.parse()?);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let result = drive_child(requests, window, uri, &mut child);
    child.kill()?;
    child.wait()?;
    result
}

fn drive_child(
    requests: usize,
    window: usize,
    uri: &str,
    child: &mut Child,
) -> Result<(), Box<dyn Error>> {
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    let mut stdout = BufReader::with_capacity(1 << 16, child.stdout.take().ok_or("no stdout")?);
    connect(&mut stdin, &mut stdout)?;
    // What is done once is not measured.
    run(1..=100.min(requests), 1, uri, &mut stdin, &mut stdout)?;
    let start = Instant::now();
    let part = (requests / 100).max(10_000).min(requests);
    run(1..=part, window, uri, &mut stdin, &mut stdout)?;
    let early = resident(child)?;
    run(part + 1..=requests, window, uri, &mut stdin, &mut stdout)?;
    let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(requests)?);
    println!("{each:.3} {early} {}", resident(child)?);
    Ok(())
}

fn connect(stdin: &mut ChildStdin, stdout: &mut impl BufRead) -> Result<(), Box<dyn Error>> {
    stdin.write_all(
        concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
            "\n",
        )
        .as_bytes(),
    )?;
    let mut answer = String::new();
    stdout.read_line(&mut answer)?;
    if !answer.contains(r#""2025-11-25""#) {
        return Err(format!("the server does not speak 2025-11-25: {answer}").into());
    }
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
    Ok(())
}

/// Reads with these requests, so many of them on their way at a time.
fn run(
    numbers: RangeInclusive<usize>,
    window: usize,
    uri: &str,
    stdin: &mut ChildStdin,
    stdout: &mut BufReader<ChildStdout>,
) -> Result<(), Box<dyn Error>> {
    if window > 1 {
        return run_pipelined(numbers, window, uri, stdin, stdout);
    }
    for number in numbers {
        let mut line = Vec::new();
        push_request(&mut line, uri, number);
        stdin.write_all(&line)?;
        line.clear();
        stdout.read_until(b'\n', &mut line)?;
        check_answer(&line)?;
    }
    Ok(())
}

fn run_pipelined(
    numbers: RangeInclusive<usize>,
    window: usize,
    uri: &str,
    stdin: &mut ChildStdin,
    stdout: &mut BufReader<ChildStdout>,
) -> Result<(), Box<dyn Error>> {
    let count = numbers.clone().count();
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(numbers, window, uri, stdin, &answered));
        let mut line = Vec::new();
        let mut result = Ok(());
        for _ in 0..count {
            line.clear();
            let read = stdout.read_until(b'\n', &mut line);
            let ended = !matches!(read, Ok(1..));
            result = result
                .and(read.map_err(Into::into))
                .and_then(|_| check_answer(&line));
            // The writer is not left waiting for a server that ended, or that can't be read.
            answered.fetch_add(if ended { count } else { 1 }, Ordering::Release);
            writer.thread().unpark();
            if ended {
                break;
            }
        }
        writer.join().map_err(|_| "the writer panicked")?.ok();
        result
    })
}

/// Writes whatever the window has room for, at once.
fn write(
    numbers: RangeInclusive<usize>,
    window: usize,
    uri: &str,
    stdin: &mut ChildStdin,
    answered: &AtomicUsize,
) -> std::io::Result<()> {
    let mut lines = Vec::new();
    let is_full = |sent: usize| sent.saturating_sub(answered.load(Ordering::Acquire)) >= window;
    for (sent, number) in numbers.enumerate() {
        if is_full(sent) {
            stdin.write_all(&lines)?;
            lines.clear();
            while is_full(sent) {
                std::thread::park();
            }
        }
        push_request(&mut lines, uri, number);
    }
    stdin.write_all(&lines)
}

fn push_request(out: &mut Vec<u8>, uri: &str, number: usize) {
    out.extend_from_slice(
        format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"resources/read","params":{{"uri":""#)
            .as_bytes(),
    );
    out.extend_from_slice(uri.replace('#', &number.to_string()).as_bytes());
    out.extend_from_slice(b"\"}}\n");
}

fn check_answer(line: &[u8]) -> Result<(), Box<dyn Error>> {
    let line = std::str::from_utf8(line)?;
    match line.contains(r#""result":{"#) {
        true => Ok(()),
        false => Err(format!("no result but {line:?}").into()),
    }
}

/// The memory of a process in KiB; 0 where the system does not say.
fn resident(child: &Child) -> Result<usize, Box<dyn Error>> {
    let mut status = String::new();
    let Ok(mut file) = std::fs::File::open(format!("/proc/{}/status", child.id())) else {
        return Ok(0);
    };
    file.read_to_string(&mut status)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("no VmRSS")?;
    Ok(number.parse()?)
}
