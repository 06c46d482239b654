//! A server's memory does not grow with the requests that it answered; `benches/bench.py resources` asks a million.
#![cfg(all(target_os = "linux", feature = "stdio"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Command;

use support::example;

/// Kibibytes after 10,000 of the requests and after all, as the example tells them.
fn memory(requests: usize, uri: &str) -> (f64, f64) {
    let program = example("resource_bench");
    let mut command = Command::new(&program);
    command.args(["drive", &requests.to_string(), "64", uri]).arg(&program).arg("serve");
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers.len(), 3, "{}", String::from_utf8_lossy(&output.stderr));
    (numbers[1], numbers[2])
}

#[test]
fn memory_is_flat_over_many_requests() {
    for uri in ["bench://small", "bench://async", "bench://item/#"] {
        let (early, late) = memory(40_000, uri);
        // 100 bytes kept of each of the 30,000 requests between would be more; threads come and go as a busy machine has it.
        assert!(late < early * 1.05 + 2048.0, "{uri}: {early} KiB, then {late}");
    }
}
