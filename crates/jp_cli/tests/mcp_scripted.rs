//! MCP servers that answer as a script says: how they start, in which order they are called, what becomes of what they say.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::Sandbox;

const USER: &str = "~/.config/jp/config.toml";
const PROGRAM: &str = include_str!("support/scripted.py");

/// What a server of 2025-11-25 says of itself.
fn initialized(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "serverInfo": {"name": "peer", "version": "1"},
    })
}

/// What a server of 2026-07-28 says of itself.
fn discovered(capabilities: &Value) -> Value {
    json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
    })
}

/// A list of tools, each of which takes anything.
fn tools(names: &[&str]) -> Value {
    let tools: Vec<_> =
        names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools})
}

/// Configures servers of the user's own that follow these scripts; every tool runs unasked.
fn configure(sandbox: &Sandbox, servers: &[(&str, Value)]) {
    sandbox.write("~/scripted.py", PROGRAM);
    let mut config = "conversation.tools.'*'.run = 'unattended'\n".to_owned();
    for (name, script) in servers {
        sandbox.write(&format!("~/{name}.json"), script.to_string());
        config += &format!(
            "[providers.mcp.{name}]\ncommand = ['python3', '../../scripted.py', '../../{name}.json']\n"
        );
    }
    sandbox.write(USER, config);
}

/// Someone with one server, called `peer`.
fn with(script: Value) -> Sandbox {
    let sandbox = Sandbox::new();
    configure(&sandbox, &[("peer", script)]);
    sandbox
}

// -- starting ------------------------------------------------------------------------------------------------------

/// A server that answers only once it has been asked both who it is now and who it would have been before 2026-07-28.
fn slow(discovered: Option<Value>, initialized: Option<Value>, order: [&str; 2]) -> Value {
    let mut script = json!({"tools/list": tools(&["add"]), "at_last": order});
    let answers = [("server/discover", discovered), ("initialize", initialized)];
    for (method, answer) in answers {
        script[method] = answer.unwrap_or_default();
    }
    script
}

#[test]
fn server_that_starts_slowly_is_spoken_to_in_the_revision_that_it_answers_first() {
    const DISCOVER: &str = "server/discover";
    let tools = json!({"tools": {}});
    let (newer, older) = (|| Some(discovered(&tools)), || Some(initialized(&tools)));
    let newest = "2026-07-28";
    let cases = [
        ("new", newer(), None, [DISCOVER, "initialize"], newest),
        ("later", newer(), None, ["initialize", DISCOVER], newest),
        ("old", None, older(), [DISCOVER, "initialize"], "2025-11-25"),
        ("elder", None, older(), ["initialize", DISCOVER], "2025-11-25"),
        ("both", newer(), older(), [DISCOVER, "initialize"], newest),
        ("either", newer(), older(), ["initialize", DISCOVER], "2025-11-25"),
    ];
    let servers = cases.clone().map(|(name, newer, older, order, _)| (name, slow(newer, older, order)));
    let sandbox = Sandbox::new();
    configure(&sandbox, &servers);
    let limits = cases.iter().map(|(name, ..)| format!("-cproviders.mcp.{name}.startup_timeout_secs=6"));
    let listed = sandbox.json(&[vec!["mcp".to_owned(), "ls".to_owned()], limits.collect()].concat());
    for (name, _, _, _, revision) in cases {
        let row = listed.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        assert_eq!((&row["revision"], &row["tools"]), (&json!(revision), &json!(1)), "{row}");
    }
}

#[test]
fn revision_that_jp_does_not_speak_is_refused_by_its_name() {
    let mut script = json!({"initialize": initialized(&json!({})), "tools/list": tools(&[])});
    script["initialize"]["protocolVersion"] = "1999-01-01".into();
    let refused = with(script.clone()).jp(&["mcp", "ls"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let said = r#"it speaks no revision of MCP that jp does: it says "1999-01-01", and jp speaks 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"#;
    assert!(refused.stdout.contains(said), "{}", refused.stdout);
    script["initialize"]["protocolVersion"] = "2024-11-05".into();
    let listed = with(script).json(&["mcp", "ls"]);
    assert_eq!(listed[0]["revision"], "2024-11-05");
}

// -- lists ---------------------------------------------------------------------------------------------------------

#[test]
fn server_without_templates_or_without_resources_has_none() {
    let resources = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "resources": []});
    let scripts = [
        json!({"server/discover": discovered(&json!({"resources": {}})), "resources/list": resources}),
        json!({"initialize": initialized(&json!({"resources": {}}))}),
        json!({"initialize": initialized(&json!({}))}),
    ];
    for script in scripts {
        let sandbox = with(script);
        for list in ["templates", "resources"] {
            let run = sandbox.jp(&["mcp", list]).succeeded();
            assert_eq!((&*run.stdout, &*run.stderr), ("", &*format!("There are no {list}.\n")));
            assert_eq!(sandbox.json(&["mcp", list, "peer"]), json!([]));
        }
    }
}
