//! Text that looks like a secret.

use serde_json::json;
use testing::{Sandbox, assert_contains, assert_lacks, items, last_message};

/// Assembles a text that looks like a token, so that scanners don't find one in this file.
fn token() -> String {
    ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat()
}

#[test]
fn walk_reports_the_secrets_it_leaves_out() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let key = [
        "-----BEGIN OPENSSH ",
        "PRIVATE KEY-----\nb3Blb\n-----END OPENSSH PRIVATE KEY-----\n",
    ]
    .concat();
    sandbox.write("conf/app.toml", "port = 1");
    sandbox.write("conf/.env", "PASSWORD=1");
    sandbox.write("conf/.env.example", "PASSWORD=");
    sandbox.write("conf/deploy", &key);
    let run = sandbox.run("q --new -a conf what?");
    assert_contains(&run.stderr, "\"conf/.env\" seems to contain secrets");
    assert_contains(&run.stderr, "\"conf/deploy\" seems to contain secrets");
    let names = |rows: serde_json::Value| {
        items(&rows)
            .iter()
            .map(|row| row["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(sandbox.json("resource ls")),
        [json!("conf/.env.example"), json!("conf/app.toml")]
    );
    sandbox.run("q -a conf/.env -a conf/deploy mine");
    assert_contains(last_message(&server), "PASSWORD=1");
    assert_contains(last_message(&server), "b3Blb");
    sandbox.run("q --new -a conf again");
    // A key that was attached once is no known file.
    assert_lacks(last_message(&server), "b3Blb");
}

#[test]
fn scan_warns_or_refuses_before_anything_is_stored() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("src/a.py", format!("import os\nTOKEN = '{}'\n", token()));
    sandbox.write("src/b.py", "fine");
    let with = |secrets: &str, more: &[&str]| {
        let setting = format!("conversation.attachment.secrets={secrets}");
        let mut arguments = vec!["q", "--new", "-c", &setting, "what?"];
        arguments.extend(more);
        sandbox.jp(&arguments)
    };
    let refused = with("refuse", &["-a", "src"]).failed(3).says([
        "src/a.py",
        "line 2",
        "password or token",
        "conversation.attachment.secrets=warn",
    ]);
    assert_lacks(&refused.stderr, token());
    assert!(!sandbox.path(".jp/conversations").exists());
    assert_eq!(sandbox.files(".jp/blobs").len(), 0);
    with("refuse", &["-a", &format!("data:text/plain,{}", token())])
        .failed(3)
        .says(["data:"]);
    with("refuse", &["-a", &format!("cmd:echo {}", token())])
        .failed(3)
        .says(["cmd:"]);

    with("refuse", &["-a", "src", "--skip-unavailable"]).succeeded();
    assert!(!last_message(&server).contains(&token()) && last_message(&server).contains("fine"));
    let warned = with("warn", &["-a", "src"]).succeeded();
    assert_contains(
        &warned.stderr,
        "warning: \"src/a.py\" line 2 seems to contain a",
    );
    assert!(last_message(&server).contains(&token()));
    // Known files are looked at as well.
    with("refuse", &["-a", "src"]).failed(3).says(["src/a.py"]);
}
