//! What looks like a secret, and what happens to it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;
use testing::{Sandbox, answering, last_message};

/// Puts together what looks like a token, so that nothing finds one in this file.
fn token() -> String {
    ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat()
}

#[test]
fn walk_leaves_out_what_is_secret_by_name_and_keys_and_says_so() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    let key = [
        "-----BEGIN OPENSSH ",
        "PRIVATE KEY-----\nb3Blb\n-----END OPENSSH PRIVATE KEY-----\n",
    ]
    .concat();
    sandbox.write("conf/app.toml", "port = 1");
    sandbox.write("conf/.env", "PASSWORD=1");
    sandbox.write("conf/.env.example", "PASSWORD=");
    sandbox.write("conf/deploy", &key);
    let run = sandbox
        .jp(&["q", "--new", "-a", "conf", "what?"])
        .succeeded();
    assert!(
        run.stderr
            .contains("\"conf/.env\" looks like it holds secrets"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr
            .contains("\"conf/deploy\" looks like it holds secrets"),
        "{}",
        run.stderr
    );
    let names = |rows: serde_json::Value| {
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| row["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(sandbox.json(&["resource", "ls"])),
        [json!("conf/.env.example"), json!("conf/app.toml")]
    );
    sandbox
        .jp(&["q", "-a", "conf/.env", "-a", "conf/deploy", "mine"])
        .succeeded();
    assert!(
        last_message(&server).contains("PASSWORD=1") && last_message(&server).contains("b3Blb")
    );
    sandbox
        .jp(&["q", "--new", "-a", "conf", "again"])
        .succeeded();
    assert!(
        !last_message(&server).contains("b3Blb"),
        "a key that was attached once is no known file"
    );
}

#[test]
fn scan_warns_or_refuses_before_anything_is_stored() {
    let server = answering("Yes.");
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write("src/a.py", format!("import os\nTOKEN = '{}'\n", token()));
    sandbox.write("src/b.py", "fine");
    let with = |secrets: &str, more: &[&str]| {
        let setting = format!("conversation.attachment.secrets={secrets}");
        let mut arguments = vec!["q", "--new", "-c", &setting, "what?"];
        arguments.extend(more);
        sandbox.jp(&arguments)
    };
    let refused = with("refuse", &["-a", "src"]).failed(
        3,
        &[
            "src/a.py",
            "line 2",
            "password or token",
            "conversation.attachment.secrets=warn",
        ],
    );
    assert!(!refused.stderr.contains(&token()), "{}", refused.stderr);
    assert!(!sandbox.path(".jp/conversations").exists());
    assert_eq!(sandbox.files(".jp/blobs").len(), 0);
    with("refuse", &["-a", &format!("data:text/plain,{}", token())]).failed(3, &["data:"]);
    with("refuse", &["-a", &format!("cmd:echo {}", token())]).failed(3, &["cmd:"]);

    with("refuse", &["-a", "src", "--skip-unavailable"]).succeeded();
    assert!(!last_message(&server).contains(&token()) && last_message(&server).contains("fine"));
    let warned = with("warn", &["-a", "src"]).succeeded();
    assert!(
        warned
            .stderr
            .contains("warning: \"src/a.py\" line 2 holds what looks like a"),
        "{}",
        warned.stderr
    );
    assert!(last_message(&server).contains(&token()));
    // Known files are looked at as well.
    with("refuse", &["-a", "src"]).failed(3, &["src/a.py"]);
}
