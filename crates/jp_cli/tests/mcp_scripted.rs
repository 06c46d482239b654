//! Scripted MCP servers: their start, the order of calls, and the handling of their messages.

#![cfg(unix)]

use serde_json::{Value, json};
use testing::{
    Run, Sandbox, Server, answer, assert_contains, assert_fields, assert_lacks, assert_starts,
    calling, items, last_request, results,
};

const USER: &str = "~/.config/jp/config.toml";
const PROGRAM: &str = testing::programs::SCRIPTED;

/// The description of a server of 2025-11-25.
fn initialized(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "serverInfo": {"name": "peer", "version": "1"},
    })
}

/// The description of a server of 2026-07-28.
fn discovered(capabilities: &Value) -> Value {
    json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
    })
}

/// A list of tools, each of which takes anything.
fn tools(names: &[&str]) -> Value {
    let tools: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools})
}

fn said(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
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
    sandbox.configure(config);
}

/// Someone with one server, called `peer`.
fn with(script: Value) -> Sandbox {
    let sandbox = Sandbox::new();
    configure(&sandbox, &[("peer", script)]);
    sandbox
}

/// A model that makes these calls in one message, and someone who asks it.
fn asked(servers: &[(&str, Value)], calls: &[(&str, Value)]) -> (Server, Sandbox, Run) {
    let (sandbox, server) = Sandbox::with_replies(vec![calling(calls), answer("Done.")]);
    configure(&sandbox, servers);
    let run = sandbox.run("q --new x");
    (server, sandbox, run)
}

// -- the order of calls --------------------------------------------------------------------------------------------

/// A server that logs when its calls begin and end; the first takes longer than the others.
fn logging(log: &str) -> Value {
    json!({
        "server/discover": discovered(&json!({"tools": {}})), "tools/list": tools(&["add", "commit", "status"]),
        "tools/call": {"add": said("added"), "commit": said("committed"), "status": said("clean")},
        "slow": ["add"], "log": log,
    })
}

fn calls_in(sandbox: &Sandbox, log: &str) -> Vec<String> {
    let log = sandbox.read(log);
    log.lines()
        .filter(|line| !line.contains(['/', '{']))
        .map(str::to_owned)
        .collect()
}

const ONE_AFTER_THE_OTHER: [&str; 6] = [
    "add begins",
    "add ends",
    "commit begins",
    "commit ends",
    "status begins",
    "status ends",
];

#[test]
fn calls_of_one_message_reach_a_server_in_order() {
    let calls = ["peer_add", "peer_commit", "peer_status"].map(|name| (name, json!({})));
    let (server, sandbox, _) = asked(&[("peer", logging("log"))], &calls);
    assert_eq!(calls_in(&sandbox, "log"), ONE_AFTER_THE_OTHER);
    assert_eq!(results(&server), ["added", "committed", "clean"]);
}

#[test]
fn call_after_the_server_ended_fails_unsent() {
    let mut script = logging("log");
    script["die"] = json!("add");
    let calls = ["peer_add", "peer_commit"].map(|name| (name, json!({})));
    let (server, sandbox, _) = asked(&[("peer", script)], &calls);
    assert_eq!(calls_in(&sandbox, "log"), ["add begins"]);
    let results = results(&server);
    assert_contains(&results[0], "The call may have had effects.");
    assert_contains(&results[1], "The call was not sent");
}

/// `setsid` ends at once and leaves the server behind.
#[cfg(target_os = "linux")]
#[test]
fn server_whose_launcher_has_ended_is_still_there() {
    let (sandbox, server) =
        Sandbox::with_replies(vec![calling(&[("peer_add", json!({}))]), answer("Done.")]);
    configure(&sandbox, &[("peer", logging("log"))]);
    let config = sandbox.read(USER);
    sandbox.configure(config.replace("['python3'", "['setsid', 'python3'"));
    sandbox.run("q --new x");
    assert_eq!(results(&server), ["added"]);
}

#[test]
fn calls_to_two_servers_run_side_by_side() {
    let names = ["one_add", "one_commit", "two_add", "two_commit"];
    let servers = ["one", "two"].map(|name| {
        let mut script = logging("log");
        // Each waits for the other server's call.
        script["meets"] = json!({"add": 2});
        (name, script)
    });
    let (_, sandbox, _) = asked(&servers, &names.map(|name| (name, json!({}))));
    let log = calls_in(&sandbox, "log");
    assert_eq!(log[..2], ["add begins"; 2], "{log:?}");
}

#[test]
fn prompt_does_not_wait_for_earlier_calls_that_need_none() {
    let mut script = logging("log");
    // The call ends once the tool that asks has run and written the same line.
    script["meets"] = json!({"add": 2});
    let calls = ["peer_add", "peer_commit", "greet"].map(|name| (name, json!({})));
    let (sandbox, server) = Sandbox::with_replies(vec![calling(&calls), answer("Done.")]);
    configure(&sandbox, &[("peer", script)]);
    let greet = sandbox.write("~/greet.sh", "echo 'add begins' >> log\n");
    let config = sandbox.read(USER);
    let tool = format!(
        "[conversation.tools.greet]\ncommand = 'sh {}'\nrun = 'ask'\n",
        greet.display()
    );
    sandbox.configure(config + &tool);
    let mut terminal = sandbox.terminal("q --new x");
    terminal.expect("The model wants to run `greet`:");
    // The first call may not even have begun.
    assert_lacks(sandbox.read("log"), "add ends");
    terminal.answer("Run it?", "y\n");
    assert_eq!(terminal.wait(), 0);
    assert_eq!(results(&server)[..2], ["added", "committed"]);
}

#[test]
fn resource_of_a_server_is_refreshed_after_the_calls_before_it() {
    let mut script = logging("log");
    script["server/discover"] = discovered(&json!({"tools": {}, "resources": {}}));
    script["resources/read"] = json!({"note:one": {
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "contents": [{"uri": "note:one", "text": "One."}],
    }});
    let calls = [
        ("peer_add", json!({})),
        ("refresh_resource", json!({"uri": "note:one"})),
        ("peer_status", json!({})),
    ];
    let (sandbox, _) = Sandbox::with_replies(vec![calling(&calls), answer("Done.")]);
    configure(&sandbox, &[("peer", script)]);
    sandbox.run("q --new -a mcp+peer+note:one x");
    let log = sandbox.read("log");
    let at = |line: &str| log.lines().position(|other| other == line).unwrap();
    let refreshed = log
        .lines()
        .enumerate()
        .filter(|(_, line)| *line == "resources/read begins")
        .last()
        .unwrap();
    assert!(
        at("add ends") < refreshed.0 && refreshed.0 < at("status begins"),
        "{log}"
    );
}

#[test]
fn dead_server_fails_no_calls_to_others() {
    let dying = json!({
        "server/discover": discovered(&json!({"tools": {}})), "tools/list": tools(&["add", "commit"]), "die": "add",
    });
    let servers = [("bad", dying), ("good", logging("log"))];
    let names = ["bad_add", "bad_commit", "good_status"];
    let (server, ..) = asked(&servers, &names.map(|name| (name, json!({}))));
    let results = results(&server);
    assert_contains(&results[0], "exit status: 3");
    assert_contains(&results[1], "failed");
    assert_eq!(results[2], "clean");
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
        (
            "elder",
            None,
            older(),
            ["initialize", DISCOVER],
            "2025-11-25",
        ),
        ("both", newer(), older(), [DISCOVER, "initialize"], newest),
        (
            "either",
            newer(),
            older(),
            ["initialize", DISCOVER],
            "2025-11-25",
        ),
    ];
    let servers = cases
        .clone()
        .map(|(name, newer, older, order, _)| (name, slow(newer, older, order)));
    let sandbox = Sandbox::new();
    configure(&sandbox, &servers);
    let limits = cases
        .iter()
        .map(|(name, ..)| format!("-cproviders.mcp.{name}.startup_timeout_secs=6"));
    let listed =
        sandbox.json(&[vec!["mcp".to_owned(), "ls".to_owned()], limits.collect()].concat());
    for (name, _, _, _, revision) in cases {
        let row = items(&listed)
            .iter()
            .find(|row| row["name"] == name)
            .unwrap();
        assert_eq!(
            (&row["revision"], &row["tools"]),
            (&json!(revision), &json!(1)),
            "{row}"
        );
    }
}

#[test]
fn revision_that_jp_does_not_speak_is_refused_by_its_name() {
    let mut script = json!({"initialize": initialized(&json!({})), "tools/list": tools(&[])});
    script["initialize"]["protocolVersion"] = "1999-01-01".into();
    let refused = with(script.clone()).jp(&["mcp", "ls"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let said = r#"it supports no MCP revision that jp supports: it named "1999-01-01"; jp supports 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"#;
    assert_contains(&refused.stdout, said);
    script["initialize"]["protocolVersion"] = "2024-11-05".into();
    let listed = with(script).json(&["mcp", "ls"]);
    assert_eq!(listed[0]["revision"], "2024-11-05");
}

// -- lists ---------------------------------------------------------------------------------------------------------

#[test]
fn server_without_templates_or_without_resources_has_none() {
    let resources =
        json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "resources": []});
    let scripts = [
        json!({"server/discover": discovered(&json!({"resources": {}})), "resources/list": resources}),
        json!({"initialize": initialized(&json!({"resources": {}}))}),
        json!({"initialize": initialized(&json!({}))}),
    ];
    for script in scripts {
        let sandbox = with(script);
        for list in ["templates", "resources"] {
            let run = sandbox.run(&["mcp", list]);
            assert_eq!(
                (&*run.stdout, &*run.stderr),
                ("", &*format!("There are no {list}.\n"))
            );
            assert_eq!(sandbox.json(&["mcp", list, "peer"]), json!([]));
        }
    }
}

// -- schemas -------------------------------------------------------------------------------------------------------

/// A server with one tool, whose arguments have this schema; it logs the arguments of calls.
fn schema(input_schema: &Value) -> Value {
    let mut tools = tools(&["find"]);
    tools["tools"][0]["inputSchema"] = input_schema.clone();
    json!({
        "server/discover": discovered(&json!({"tools": {}})), "tools/list": tools,
        "tools/call": {"find": said("found")}, "log": "log",
    })
}

#[test]
fn schema_that_cannot_be_compiled_costs_only_the_check() {
    let pattern = json!({"type": "string", "pattern": "^(?!secret).*$"});
    let input =
        json!({"type": "object", "properties": {"name": pattern, "limit": {"type": "integer"}}});
    let calls = [
        ("peer_find", json!({"name": "secret"})),
        ("peer_find", json!({"limit": "many"})),
    ];
    let (server, _, run) = asked(&[("peer", schema(&input))], &calls);
    let warning = "warning: the MCP server `peer`: jp can't fully check the arguments of these tools: \"find\" (at /properties/name/pattern";
    assert_contains(&run.stderr, warning);
    let results = results(&server);
    assert_eq!(results[0], "found");
    assert_contains(&results[1], "want integer");
    let tools = last_request(&server)["tools"].clone();
    let find = items(&tools)
        .iter()
        .find(|tool| tool["function"]["name"] == "peer_find")
        .unwrap();
    assert_eq!(find["function"]["parameters"], input);
}

#[test]
fn default_of_what_is_required_is_filled_in() {
    let input = json!({
        "type": "object", "required": ["limit", "name", "where"], "additionalProperties": false,
        "properties": {
            "limit": {"type": "integer", "default": 10}, "name": {"type": "string"},
            "where": {"type": "object", "required": ["kind"], "properties": {"kind": {"default": "any"}}},
        },
    });
    let calls = [
        ("peer_find", json!({"name": "a", "where": {}})),
        ("peer_find", json!({"limit": 1})),
    ];
    let (server, sandbox, _) = asked(&[("peer", schema(&input))], &calls);
    let log = sandbox.read("log");
    assert_contains(
        &log,
        r#"find gets {"limit": 10, "name": "a", "where": {"kind": "any"}}"#,
    );
    let results = results(&server);
    assert_eq!(results[0], "found");
    assert_contains(&results[1], "missing properties 'name', 'where'");
}

// -- whom content is for -------------------------------------------------------------------------------------------

/// Someone whose model has called a tool that returned these blocks.
fn returned(blocks: &Value) -> (Server, Sandbox, Run) {
    let script = json!({
        "server/discover": discovered(&json!({"tools": {}})), "tools/list": tools(&["find"]),
        "tools/call": {"find": {"resultType": "complete", "content": blocks, "elapsed": 3}},
    });
    asked(&[("peer", script)], &[("peer_find", json!({}))])
}

#[test]
fn content_for_the_user_alone_is_shown_despite_quiet() {
    let text = (0..250).map(|n| format!("row {n}\n")).collect::<String>();
    let block = json!({"type": "text", "text": text, "annotations": {"audience": ["user"]}});
    let script = json!({
        "server/discover": discovered(&json!({"tools": {}})), "tools/list": tools(&["find"]),
        "tools/call": {"find": {"resultType": "complete", "content": [block]}},
    });
    let (sandbox, _) =
        Sandbox::with_replies(vec![calling(&[("peer_find", json!({}))]), answer("Done.")]);
    configure(&sandbox, &[("peer", script)]);
    let run = sandbox.run("q --yes --quiet --new x").says(["row 199\n"]);
    assert_contains(
        &run.stderr,
        "… and 50 more lines; `jp conversation print` prints all of it",
    );
    assert_contains(&sandbox.run("conversation print").stdout, "row 249");
}

#[test]
fn content_for_the_user_alone_is_not_sent() {
    let for_user = json!({"audience": ["user"]});
    let blocks = json!([
        {"type": "text", "text": "secret line\nsecond \u{1b}[2J", "annotations": for_user},
        {"type": "text", "text": "for both", "annotations": {"audience": ["user", "assistant"]}},
        {"type": "resource", "annotations": for_user, "resource": {"uri": "note:1", "text": "secret note"}},
    ]);
    let (server, sandbox, run) = returned(&blocks);
    let shown = "The tool `peer_find` shows this only to you:\n  │ secret line\n  │ second \\u{1b}[2J\n  │ ```(note:1)\n  │ secret note\n";
    assert_contains(&run.stderr, shown);
    assert_eq!(results(&server), ["for both"]);
    let kept = serde_json::to_string(&sandbox.events()).unwrap();
    assert_contains(&kept, "secret line");
    assert_contains(&kept, r#""uri":"note:1""#);
    assert_contains(&kept, r#""computer.jp/unknown":{"elapsed":3}"#);
    let as_sent = sandbox.run("conversation print --as-sent").stdout;
    assert_contains(&as_sent, "for both");
    assert_lacks(&as_sent, "secret");
    assert_lacks(sandbox.run("q --explain --format json y").stdout, "note:1");
    sandbox.run("q y");
    assert_lacks(last_request(&server).to_string(), "secret");
}

#[test]
fn model_is_told_of_a_result_that_is_for_the_user_alone() {
    let blocks = json!([{"type": "text", "text": "secret", "annotations": {"audience": ["user"]}}]);
    let (server, ..) = returned(&blocks);
    let note = "[jp showed this tool output to the user. It is only for the user, so you don't receive it.]";
    assert_eq!(results(&server), [note]);
}

#[test]
fn link_is_kept_whole_though_the_model_gets_its_name() {
    let link = |uri: &str| json!({"type": "resource_link", "uri": uri, "name": "report", "icons": [{"src": "i"}], "_meta": {"k": 1}});
    let contents = json!([{"uri": "note:1", "text": "One."}]);
    let script = json!({
        "server/discover": discovered(&json!({"tools": {}, "resources": {}})), "tools/list": tools(&["find"]),
        "tools/call": {"find": {"resultType": "complete", "content": [link("note:1"), link("note:gone")]}},
        "resources/read": {"note:1": {
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "contents": contents,
        }},
    });
    let (server, sandbox, _) = asked(&[("peer", script)], &[("peer_find", json!({}))]);
    let result = results(&server).remove(0);
    assert_starts(&result, "```(report, note:1)\nOne.\n```\n");
    assert_contains(&result, "A link to the resource report: note:gone.");
    let response = &sandbox.events_of("tool_call_response")[0];
    for (index, uri) in ["note:1", "note:gone"].into_iter().enumerate() {
        let kept = json!({"uri": uri, "name": "report", "icons": [{"src": "i"}]});
        assert_fields!(response["content"][index], {"_meta": {"k": 1, "computer.jp/link": kept}});
    }
}
