//! Figures that can't be noisy: system calls a blob, syncs a command, bytes an append, files opened by `ls` and by a
//! question, and that words are shown as they arrive.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};
use testing::{Sandbox, chunk, run};

/// Runs a command under strace, and returns the calls it made, or says why it can't.
#[cfg(target_os = "linux")]
fn traced(sandbox: &Sandbox, arguments: &[&str]) -> Option<Vec<String>> {
    let log = sandbox.home.join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_jp"))
        .args(arguments);
    let plain = sandbox.command(arguments);
    command
        .current_dir(&sandbox.root)
        .env_clear()
        .stdin(std::process::Stdio::null());
    command.envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    if !Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        testing::skip("strace is not installed");
        return None;
    }
    run(command).succeeded();
    let text = fs::read_to_string(&log).unwrap();
    // strace prints an interrupted call on two lines; the second one does not repeat the name.
    let calls = text.lines().filter(|line| !line.contains("resumed>"));
    Some(
        calls
            .map(|line| line.split_once(' ').unwrap().1.trim_start().to_owned())
            .collect(),
    )
}

#[cfg(target_os = "linux")]
fn count(calls: &[String], names: &[&str]) -> usize {
    calls
        .iter()
        .filter(|call| {
            names
                .iter()
                .any(|name| call.starts_with(&format!("{name}(")))
        })
        .count()
}

#[test]
#[cfg(target_os = "linux")]
fn new_blob_has_bounded_system_calls() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let make = |directory: &str, files: usize| {
        for index in 0..files {
            sandbox.write(
                &format!("{directory}/{index:04}.txt"),
                format!("{directory} {index}"),
            );
        }
    };
    make("few", 10);
    make("many", 1010);
    let Some(few) = traced(&sandbox, &["q", "--new", "-a", "few", "x"]) else {
        return;
    };
    let Some(many) = traced(&sandbox, &["q", "--new", "-a", "many", "x"]) else {
        return;
    };
    // Four of them read the blob back for the request; the wake-ups of threads depend on the machine.
    let working = |calls: &[String]| calls.len() - count(calls, &["futex", "sched_yield"]);
    let each = (working(&many) - working(&few)) as f64 / 1000.0;
    // A store's first blobs make its 256 directories, one call each.
    let directories = (count(&many, &["mkdirat"]) - count(&few, &["mkdirat"])) as f64 / 1000.0;
    let own = each - 2.0 * directories - 4.0;
    assert!(
        own <= 14.0,
        "{own} system calls a blob ({each} with reading it back and new directories)"
    );
    let syncs = count(&many, &["fsync", "fdatasync", "syncfs", "sync"]);
    assert!(syncs <= 5, "{syncs} syncs");
}

#[test]
#[cfg(target_os = "linux")]
fn attaching_again_opens_only_the_files() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    for index in 0..40 {
        sandbox.write(
            &format!("src/{index}.txt"),
            format!("a text of its own, {index}\n").repeat(500),
        );
    }
    // A file may change again within one tick of its time, so jp does not cache a file written this instant.
    std::thread::sleep(std::time::Duration::from_millis(200));
    sandbox.run("q --new -a src x");
    let Some(calls) = traced(&sandbox, &["q", "--new", "-a", "src", "x"]) else {
        return;
    };
    let opened = |name: &str| {
        calls
            .iter()
            .filter(|call| call.starts_with("open") && call.contains(name))
            .count()
    };
    assert_eq!((opened(".txt"), opened(".blob.gz")), (40, 0));
    let request = &server.received()[1].body;
    assert!(
        request.len() > 400_000 && request == &server.received()[0].body,
        "the same is sent"
    );
    assert_eq!(
        opened("O_TMPFILE"),
        0,
        "the request is not written to a file first"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn append_writes_little_more_than_the_event() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.run(&["q", "--new", &"history ".repeat(10_000)]);
    let path = sandbox.events_path();
    let before = fs::metadata(&path).unwrap().len();
    let Some(calls) = traced(&sandbox, &["q", "short"]) else {
        return;
    };
    let grown = fs::metadata(&path).unwrap().len() - before;
    let is_event = |call: &&String| call.starts_with("write(") && call.contains("timestamp");
    let written: u64 = calls
        .iter()
        .filter(is_event)
        .filter_map(|call| call.rsplit_once("= ")?.1.trim().parse::<u64>().ok())
        .sum();
    assert!(
        written >= grown && written <= grown + 100,
        "{written} bytes written for {grown} more"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn listing_opens_no_file_of_a_conversation() {
    let sandbox = Sandbox::new();
    for index in 0..50 {
        let directory = format!(".jp/conversations/{}-x", 17_000_000_000_u64 + index);
        sandbox.write(&format!("{directory}/events.json"), "[\n]\n");
        sandbox.write(&format!("{directory}/metadata.json"), "{}\n");
    }
    sandbox.run("c ls");
    let Some(calls) = traced(&sandbox, &["c", "ls"]) else {
        return;
    };
    let is_open = |call: &&String| {
        call.starts_with("openat")
            && (call.contains("events.json") || call.contains("metadata.json"))
    };
    let opened: Vec<_> = calls.iter().filter(is_open).collect();
    assert!(opened.is_empty(), "{opened:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn question_has_bounded_file_accesses() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    for index in 0..40 {
        sandbox.write(
            &format!("src/{index}.txt"),
            format!("a text of its own, {index}"),
        );
    }
    sandbox.run("q --new -a src x");
    let Some(calls) = traced(&sandbox, &["q", "short"]) else {
        return;
    };
    let opens = |call: &&String, name: &str| call.starts_with("openat") && call.contains(name);
    let reads_events = |call: &&String| opens(call, "events.json") && call.contains("O_RDONLY");
    assert_eq!(calls.iter().filter(reads_events).count(), 1);
    let blobs = calls.iter().filter(|call| opens(call, ".blob.gz"));
    let blobs: Vec<&str> = blobs.filter_map(|call| call.split('"').nth(1)).collect();
    assert_eq!(
        (blobs.len(), blobs.iter().collect::<BTreeSet<_>>().len()),
        (40, 40),
        "{blobs:?}"
    );
    // The question, the time of the last use, the answer, the usage.
    assert_eq!(count(&calls, &["fsync", "fdatasync", "syncfs", "sync"]), 3);
}

#[test]
fn first_word_is_shown_while_the_rest_is_held_back() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sandbox = Sandbox::new().with_url(&format!("http://{}", listener.local_addr().unwrap()));
    let (shown, is_shown) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(BufReader::new(&stream));
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream
            .write_all(format!("{head}{}", chunk("First")).as_bytes())
            .unwrap();
        let is_seen = is_shown.recv_timeout(Duration::from_secs(20)).is_ok();
        stream
            .write_all(format!("{}data: [DONE]\n\n", chunk(" and last.")).as_bytes())
            .unwrap();
        is_seen
    });
    let mut jp = sandbox
        .command("q --new x")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = jp.stdout.take().unwrap();
    let mut word = [0; 5];
    stdout.read_exact(&mut word).unwrap();
    _ = shown.send(());
    assert!(server.join().unwrap(), "the word came with the rest only");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(jp.wait().unwrap().success());
    assert_eq!((&word, rest.as_str()), (b"First", " and last.\n"));
}

fn read_request(mut reader: impl BufRead) {
    let mut head = String::new();
    while reader.read_line(&mut head).unwrap() > 2 {}
    let length = head
        .to_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    reader.read_exact(&mut vec![0; length.unwrap()]).unwrap();
}

#[test]
fn benches_are_runnable() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/bench.py");
    match Command::new("python3").arg(script).arg("--help").output() {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => testing::skip(&format!("python3: {error}")),
    }
}
