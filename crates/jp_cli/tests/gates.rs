//! Figures that can't be noisy: system calls a blob, syncs a command, bytes an append, files opened by `ls`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, path::Path, process::Command};

use support::{Sandbox, answering, run};

/// Runs a command under strace, and returns the calls it made, or says why it can't.
#[cfg(target_os = "linux")]
fn traced(sandbox: &Sandbox, arguments: &[&str]) -> Option<Vec<String>> {
    let log = sandbox.home.join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(&log).arg(env!("CARGO_BIN_EXE_jp")).args(arguments);
    let plain = sandbox.command(arguments);
    command.current_dir(&sandbox.root).env_clear().stdin(std::process::Stdio::null());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if !Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success()) {
        support::skip("strace is not installed");
        return None;
    }
    run(command).succeeded();
    let text = fs::read_to_string(&log).unwrap();
    // A call that another thread interrupted is on two lines; the second one has no name of its own.
    let calls = text.lines().filter(|line| !line.contains("resumed>"));
    Some(calls.map(|line| line.split_once(' ').unwrap().1.trim_start().to_owned()).collect())
}

#[cfg(target_os = "linux")]
fn count(calls: &[String], names: &[&str]) -> usize {
    calls.iter().filter(|call| names.iter().any(|name| call.starts_with(&format!("{name}(")))).count()
}

#[test]
#[cfg(target_os = "linux")]
fn new_blob_costs_at_most_14_system_calls_and_a_query_a_handful_of_syncs() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    let make = |directory: &str, files: usize| {
        for index in 0..files {
            sandbox.write(&format!("{directory}/{index:04}.txt"), format!("{directory} {index}"));
        }
    };
    make("few", 10);
    make("many", 510);
    let Some(few) = traced(&sandbox, &["q", "--new", "-a", "few", "x"]) else { return };
    let Some(many) = traced(&sandbox, &["q", "--new", "-a", "many", "x"]) else { return };
    // Four of them read the blob back for the request; the wake-ups of threads depend on the machine.
    let working = |calls: &[String]| calls.len() - count(calls, &["futex", "sched_yield"]);
    let each = (working(&many) - working(&few)) as f64 / 500.0;
    // A store's first blobs make its 256 directories, one call each.
    let directories = (count(&many, &["mkdirat"]) - count(&few, &["mkdirat"])) as f64 / 500.0;
    let own = each - 2.0 * directories - 4.0;
    assert!(own <= 14.0, "{own} system calls a blob ({each} with reading it back and new directories)");
    let syncs = count(&many, &["fsync", "fdatasync", "syncfs", "sync"]);
    assert!(syncs <= 5, "{syncs} syncs");
}

#[test]
#[cfg(target_os = "linux")]
fn append_writes_little_more_than_the_event() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.jp(&["q", "--new", &"history ".repeat(10_000)]).succeeded();
    let path = sandbox.conversation().join("events.json");
    let before = fs::metadata(&path).unwrap().len();
    let Some(calls) = traced(&sandbox, &["q", "short"]) else { return };
    let grown = fs::metadata(&path).unwrap().len() - before;
    let is_event = |call: &&String| call.starts_with("write(") && call.contains("timestamp");
    let written: u64 = calls
        .iter()
        .filter(is_event)
        .filter_map(|call| call.rsplit_once("= ")?.1.trim().parse::<u64>().ok())
        .sum();
    assert!(written >= grown && written <= grown + 100, "{written} bytes written for {grown} more");
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
    sandbox.jp(&["c", "ls"]).succeeded();
    let Some(calls) = traced(&sandbox, &["c", "ls"]) else { return };
    let is_open = |call: &&String| {
        call.starts_with("openat(") && (call.contains("events.json") || call.contains("metadata.json"))
    };
    let opened: Vec<_> = calls.iter().filter(is_open).collect();
    assert!(opened.is_empty(), "{opened:?}");
}

#[test]
fn benches_are_runnable() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/bench.py");
    match Command::new("python3").arg(script).arg("--help").output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => support::skip(&format!("python3: {error}")),
    }
}
