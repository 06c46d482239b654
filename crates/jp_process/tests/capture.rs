//! `capture` on real programs.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    process::Command,
    time::{Duration, Instant},
};

use jp_process::{Bounds, Captured, End, ProcessError, capture};

/// Long enough for a loaded machine, and no test waits for it unless it fails.
const LONG: Duration = Duration::from_secs(30);

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn within(script: &str, input: &[u8], timeout: Duration, max_bytes: u64) -> Captured {
    let bounds = Bounds {
        timeout,
        max_bytes,
        is_moot: &|| false,
    };
    capture(shell(script), input, &bounds).unwrap()
}

fn text(captured: Captured) -> (String, String, End) {
    let text = |kept: jp_process::BoundedOutput| String::from_utf8(kept.into_bytes()).unwrap();
    (text(captured.stdout), text(captured.stderr), captured.end)
}

#[test]
fn program_reads_its_input_to_the_end() {
    let (stdout, stderr, end) = text(within("cat; echo done >&2", b"one\ntwo\n", LONG, 1000));
    assert_eq!(
        (&*stdout, &*stderr, end),
        ("one\ntwo\n", "done\n", End::Exited(0))
    );
}

#[test]
fn program_that_does_not_read_a_large_input_ends_all_the_same() {
    let input = vec![b'x'; 10_000_000];
    assert_eq!(text(within("echo hello", &input, LONG, 1000)).0, "hello\n");
    let (stdout, _, end) = text(within("exec <&-; echo closed; exit 3", &input, LONG, 1000));
    assert_eq!((&*stdout, end), ("closed\n", End::Exited(3)));
}

#[test]
fn middle_of_a_long_output_is_left_out() {
    let script =
        "echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last; echo oops >&2";
    let captured = within(script, b"", LONG, 20_000);
    assert_eq!((captured.end, captured.was_held), (End::Exited(0), false));
    assert_eq!(captured.stdout.total_len(), 200_000_012);
    assert_eq!(captured.stdout.left_out(), 200_000_012 - 20_000);
    assert_eq!(captured.stderr.into_bytes(), b"oops\n");
    let (head, tail) = captured.stdout.into_parts();
    assert!(head.starts_with(b"first\nx") && tail.ends_with(b"x\nlast\n"));
    assert_eq!((head.len(), tail.len()), (10_000, 10_000));
}

#[test]
fn output_until_the_end_of_a_terminated_program_is_kept() {
    let script =
        "trap 'echo bye; exit' TERM; echo half; echo why >&2; while :; do sleep 0.01; done";
    let (stdout, stderr, end) = text(within(script, b"", Duration::from_millis(300), 1000));
    // The shell may tell of the `sleep` that was ended with it.
    assert_eq!((&*stdout, &stderr[..4]), ("half\nbye\n", "why\n"));
    assert_eq!(end, End::TimedOut(Duration::from_millis(300)));
}

#[test]
fn program_that_does_not_end_when_asked_is_ended() {
    let started = Instant::now();
    let (stdout, _, end) = text(within(
        "trap '' TERM; echo half; while :; do :; done",
        b"",
        Duration::from_millis(200),
        1000,
    ));
    assert_eq!(
        (&*stdout, end),
        ("half\n", End::TimedOut(Duration::from_millis(200)))
    );
    assert!(started.elapsed() < LONG);
}

#[test]
fn signal_is_reported_after_the_output() {
    let (stdout, _, end) = text(within("echo half; kill -SEGV $$", b"", LONG, 1000));
    let End::Signal(status) = end else {
        panic!("{end:?}")
    };
    assert_eq!(
        (&*stdout, status.to_string().contains("SIGSEGV")),
        ("half\n", true)
    );
}

#[test]
fn moot_program_is_ended_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let ticks = directory.path().join("ticks");
    let script = format!(
        "echo up; (while :; do echo x >> {0}; sleep 0.01; done) & wait",
        ticks.display()
    );
    let is_moot = || ticks.exists();
    let bounds = Bounds {
        timeout: LONG,
        max_bytes: 1000,
        is_moot: &is_moot,
    };
    let (stdout, _, end) = text(capture(shell(&script), b"", &bounds).unwrap());
    assert_eq!((&*stdout, end), ("up\n", End::Moot));
    let length = || std::fs::metadata(&ticks).unwrap().len();
    let started = Instant::now();
    let grows = || {
        let before = length();
        std::thread::sleep(Duration::from_millis(50));
        length() != before
    };
    while grows() {
        assert!(started.elapsed() < LONG, "what it started runs on");
    }
}

#[test]
fn daemon_that_holds_the_output_does_not_hold_us() {
    let captured = within("echo started; sleep 20 & echo $!", b"", LONG, 1000);
    assert!(captured.was_held);
    assert_eq!(captured.end, End::Exited(0));
    assert!(text(captured).0.starts_with("started\n"));
}

#[test]
fn program_that_there_is_not_is_an_error() {
    let bounds = Bounds {
        timeout: LONG,
        max_bytes: 1000,
        is_moot: &|| false,
    };
    let error = capture(Command::new("no-such-program"), b"{}", &bounds).unwrap_err();
    assert!(matches!(error, ProcessError::NotFound { program } if program == "no-such-program"));
}

#[cfg(target_os = "linux")]
#[test]
fn process_that_left_the_group_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    // Its parent is gone, too.
    let script = format!(
        "(setsid sh -c 'echo $$ > {0}; exec sleep 1000' &); sleep 1000",
        file.display()
    );
    let is_written = || std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'));
    let bounds = Bounds {
        timeout: LONG,
        max_bytes: 1000,
        is_moot: &is_written,
    };
    let captured = capture(shell(&script), &[], &bounds).unwrap();
    assert_eq!(captured.end, End::Moot);
    let until = Instant::now() + LONG;
    let pid = std::fs::read_to_string(&file).unwrap();
    while std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z "))
    {
        assert!(Instant::now() < until, "{pid} is still there");
        std::thread::yield_now();
    }
}
