//! A server's memory does not grow with the requests that it answered, as `benches/bench.py resources` asks a million, and
//! hardly with the subscriptions to what is read from many files.
#![cfg(all(target_os = "linux", feature = "stdio"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::PathBuf;
use std::process::Command;

use mcp_resources::{FileWatch, Parameters, Registry, ResourceTemplate, Server};
use serde_json::json;

use support::example;
use testing::mcp::Era;

/// Kibibytes after 10,000 of the requests and after all, as the example tells them.
fn memory(requests: usize, uri: &str) -> (f64, f64) {
    let program = example("resource_bench");
    let mut command = Command::new(&program);
    command
        .args(["drive", &requests.to_string(), "64", uri])
        .arg(&program)
        .arg("serve");
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = printed
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(
        numbers.len(),
        3,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (numbers[1], numbers[2])
}

#[test]
fn memory_is_flat_over_many_requests() {
    for uri in ["bench://small", "bench://async", "bench://item/#"] {
        let (early, late) = memory(40_000, uri);
        // 100 bytes kept of each of the 30,000 requests between would be more; threads come and go as a busy machine has it.
        assert!(
            late < early * 1.05 + 2048.0,
            "{uri}: {early} KiB, then {late}"
        );
    }
}

/// Kibibytes of this process.
fn own_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[tokio::test]
async fn many_subscriptions_to_the_same_files_take_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..2000)
        .map(|number| directory.path().join(format!("{number}.org")))
        .collect();
    let (sources, last) = (files.clone(), files.last().unwrap());
    let registry = Registry::new();
    let template = ResourceTemplate::new("org://id/{id}", "Headline", |_: Parameters| "");
    registry
        .register_template(template.source(move |_| sources.clone()))
        .unwrap();
    let _watch = FileWatch::start(&registry, |error| panic!("{error}")).unwrap();
    let mut client = support::serve(Server::new("test", "1", registry), Era::Modern).await;
    let uris: Vec<String> = (0..300)
        .map(|number| format!("org://id/{number}"))
        .collect();
    let before = own_memory();
    let wanted = json!({ "notifications": { "resourceSubscriptions": uris } });
    client.send("subscriptions/listen", wanted).await;
    client
        .expect_notice("notifications/subscriptions/acknowledged")
        .await;
    std::fs::write(last, "1").unwrap();
    for _ in &uris {
        client
            .expect_notice("notifications/resources/updated")
            .await;
    }
    let grown = own_memory() - before;
    // Two paths for each file of each URI would be twice that.
    assert!(grown < 40.0 * 1024.0, "{grown} KiB");
}
