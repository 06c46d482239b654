use std::time::{Duration, Instant};

use super::*;

#[cfg(unix)]
#[test]
fn command_returns_its_whole_output() {
    let workspace = Workspace::new(&[("sub/a", "x")]);
    let told = |arguments: Value| workspace.told("run_command", &arguments);
    insta::assert_snapshot!(told(json!({"command": "ls; pwd"})), @"
    sub
    ROOT
    ");
    insta::assert_snapshot!(told(json!({"command": "cat a | tr x y", "path": "sub"})), @"y");
    insta::assert_snapshot!(told(json!({"command": "echo out; echo err >&2; exit 3"})), @"
    out

    [stderr]
    err

    The command exited with status 3.
    ");
    insta::assert_snapshot!(told(json!({"command": "cat; true"})), @"The command printed nothing.");
    insta::assert_snapshot!(told(json!({"command": "kill -9 $$"})), @"The command was ended by a signal: 9 (SIGKILL).");
    insta::assert_snapshot!(told(json!({"command": " "})), @"`command` is empty or contains a NUL.");
    insta::assert_snapshot!(told(json!({"command": "ls", "path": "sub/a"})), @"sub/a is not a directory.");
    let called = workspace
        .call("run_command", &json!({"command": "exit 3"}))
        .unwrap();
    assert!(called.response.is_error);
}

#[cfg(unix)]
#[test]
fn command_gets_no_api_keys() {
    let workspace = Workspace::new(&[("sub/a", "x")]);
    let command = "echo \"[${CARGO_MANIFEST_DIR-none}]\"\n\x1b[2Kls";
    let called = workspace
        .call("run_command", &json!({"command": command, "path": "sub"}))
        .unwrap();
    let title = r#"echo "[${CARGO_MANIFEST_DIR-none}]"\n\u{1b}[2Kls (in sub)"#;
    assert_eq!(
        called.preview,
        Preview {
            title: title.into(),
            detail: None
        }
    );
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "else this proves nothing"
    );
    assert!(called.text().starts_with("[none]\n"), "{}", called.text());
}

#[cfg(unix)]
#[test]
fn command_ends_at_its_limits() {
    let mut workspace = Workspace::new(&[]);
    let tools = &mut workspace.toolbox.tools;
    tools
        .iter_mut()
        .for_each(|tool| tool.timeout = Duration::from_millis(100));
    let started = Instant::now();
    insta::assert_snapshot!(workspace.told("run_command", &json!({"command": "sleep 60"})), @"The command ran for more than 0.1 seconds and was ended with every process that it had started.");
    let called = workspace
        .call_on(
            "run_command",
            &json!({"command": "sleep 60"}),
            &Line::unheard(true),
        )
        .unwrap();
    assert_eq!(
        called.text(),
        "The call was interrupted, and the command was ended."
    );
    assert!(started.elapsed() < Duration::from_secs(30));
}
