//! The cost of a request: `--explain`, `--budget`, and the figures after it.

use serde_json::json;
use testing::{Sandbox, answer, assert_contains, assert_count, assert_lacks, calling, playing};

/// Asks once with a long file attached.
fn asked_once(sandbox: &Sandbox) {
    sandbox.write("long.txt", "many words\n".repeat(400));
    sandbox.run("q --new -a long.txt one");
}

#[test]
fn explain_counts_exactly_the_last_request() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let document = sandbox.json("q --new --explain one");
    assert_eq!(document["cached_prefix_tokens"], 0);
    asked_once(&sandbox);
    let document = sandbox.json("q --explain two");
    let blocks = &document["turns"][0]["blocks"];
    let of_request: u64 = (0..2)
        .map(|index| blocks[index]["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(document["cached_prefix_tokens"], of_request);
    assert_eq!(blocks[2]["kind"], "message");
    assert_eq!(document["cache_is_cold"], false);
    let keys = [
        "tokens",
        "plain_tokens",
        "system_tokens",
        "cache_marks",
        "request",
    ];
    assert!(
        keys.iter().all(|key| !document[key].is_null()),
        "{document}"
    );
}

#[test]
fn explain_says_that_another_model_has_nothing_cached() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    asked_once(&sandbox);
    let other = [
        "q",
        "--explain",
        "-m",
        "llamacpp/n",
        "-c",
        "providers.llm.llamacpp.models.n.tools:=true",
        "two",
    ];
    let shown = sandbox.run(&other).stdout;
    assert_contains(&shown, "of them, but the provider no longer caches them\n");
    assert_eq!(sandbox.json(&other)["cache_is_cold"], true);
}

#[test]
fn explain_shows_where_the_request_has_cache_marks() {
    let sandbox = Sandbox::new();
    sandbox.configure(
        "[providers.llm.anthropic]\nbase_url = \"http://127.0.0.1:9\"\nmodels.m.tools = true\n",
    );
    sandbox.write("a.txt", "abc");
    let explain = |flags: &[&str]| {
        let mut command = sandbox.command("q --new --explain -m anthropic/m -a a.txt one");
        command.args(flags).env("ANTHROPIC_API_KEY", "sk-test");
        testing::run(command).succeeded().stdout
    };
    let shown = explain(&[]);
    assert_contains(
        &shown,
        "cache marks after: the system prompt and the tools, turn 1\n",
    );
    let document: serde_json::Value = serde_json::from_str(&explain(&["-F", "json"])).unwrap();
    assert_eq!(document["cache_marks"], json!([{"turn": 0}, {"turn": 1}]));
    assert_count(document["request"].to_string(), "cache_control", 2);
}

#[test]
fn request_beyond_the_budget_is_neither_sent_nor_stored() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("long.txt", "many words\n".repeat(400));
    let run = sandbox
        .fail("q --new --budget 1000 -a long.txt one", 3)
        .says([
            "the request has about ",
            " tokens, and the budget is 1,000",
            "tokens: long.txt, turn 1",
            "hint: nothing was sent or stored. Run the same command with a larger --budget to send it.",
            "--explain",
        ]);
    assert!(
        run.stdout.is_empty() && !run.stderr.contains("compact"),
        "{run:?}"
    );
    assert!(server.received().is_empty() && sandbox.files(".jp/conversations").is_empty());
    let json = sandbox.jp("q --new --budget 1000 -a long.txt -F json one");
    assert!(
        json.failed(3)
            .says(["error: the request has about"])
            .stdout
            .is_empty()
    );

    sandbox.run("q --new --budget 20000 -a long.txt one");
    let (events, requests) = (sandbox.events(), server.received().len());
    sandbox
        .fail("q --budget 1000 two", 3)
        .says(["hint: `jp conversation compact` shortens older turns"]);
    assert_eq!(
        (sandbox.events(), server.received().len()),
        (events, requests)
    );
}

#[test]
fn budget_counts_new_content_as_it_is_sent_before_it_is_stored() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let text = |word: &str| {
        (1..300)
            .map(|line| format!("{word} {line}\n"))
            .collect::<String>()
    };
    sandbox.write("a.txt", text("a line"));
    sandbox.run("q --new -T -a 'cmd:cat a.txt' one");
    sandbox.write("a.txt", text("a line").replace("a line 30\n", "another\n"));
    let again = ["q", "-T", "-a", "cmd:cat a.txt", "two"];
    let explained = sandbox.json(&[&again[..], &["--explain"]].concat());
    let needed =
        explained["tokens"].as_u64().unwrap() + explained["system_tokens"].as_u64().unwrap();
    assert!(
        needed + 500 < explained["plain_tokens"].as_u64().unwrap(),
        "{explained}"
    );
    let budget = |tokens: u64| format!("--budget={tokens}");
    sandbox
        .fail(&[&again[..], &[&budget(needed - 1)]].concat(), 3)
        .says(["nothing was sent or stored"]);
    sandbox.run(&[&again[..], &[&budget(needed)]].concat());
}

#[test]
fn tools_that_a_model_is_not_told_of_count_for_nothing() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let asked = |flag| {
        [
            "q",
            "--new",
            flag,
            "-c",
            "providers.llm.llamacpp.models.m.tools:=false",
            "one",
        ]
    };
    assert_eq!(sandbox.json(&asked("--explain"))["tools"], json!([]));
    sandbox.run(&asked("--budget=100"));
    sandbox
        .fail("q --new --budget=100 one", 3)
        .says(["the budget is 100"]);
}

#[test]
fn what_a_model_is_not_shown_counts_as_the_note_that_it_gets() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write(
        "raw.bin",
        (0..=255_u8).cycle().take(300_000).collect::<Vec<_>>(),
    );
    let asked = ["q", "--new", "-T", "-a", "raw.bin", "one"];
    assert!(
        sandbox.json(&[&asked[..], &["--explain"]].concat())["tokens"]
            .as_u64()
            .unwrap()
            < 100
    );
    sandbox.run(&[&asked[..], &["--budget=100"]].concat());
    // The history's values don't count either.
    sandbox.run("q --budget=100 two");
    let explained = sandbox.json("q --explain three");
    assert!(
        explained["cached_prefix_tokens"].as_u64().unwrap() < 100,
        "{explained}"
    );
    let refused = sandbox
        .fail("q --budget=5 three", 3)
        .says(["the budget is 5"]);
    assert_lacks(&refused.stderr, "75,0");
}

#[test]
fn explain_shows_a_request_that_the_budget_refuses() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let run = sandbox
        .fail("q --new --explain --budget 1 one", 3)
        .says(["the budget is 1"]);
    assert_contains(&run.stdout, "new in this turn");
}

#[test]
fn budget_is_a_number_of_tokens() {
    let sandbox = Sandbox::new();
    for budget in ["0", "some", "-1", "1.5"] {
        sandbox
            .fail(&["q", &format!("--budget={budget}"), "one"], 2)
            .says(["--budget <TOKENS>"]);
    }
}

#[test]
fn larger_budget_continues_a_turn_that_the_budget_ended() {
    let (sandbox, _) = Sandbox::with_replies(vec![
        calling(&[("read_file", json!({"path": "long.txt"}))]),
        answer("Long."),
    ]);
    sandbox.write("long.txt", "many words\n".repeat(1000));
    sandbox.fail("q --new --budget 2500 'What is in it?'", 3).says(["and the budget is 2,500",
            "tokens: ",
            "hint: the answer so far is kept: `jp query` with a larger --budget and without a message continues it."]);
    let kinds = |kind: &str| sandbox.events_of(kind).len();
    assert_eq!(
        [kinds("tool_call_response"), kinds("chat_response")],
        [1, 0]
    );
    assert_eq!(sandbox.run("q --budget 20000").stdout, "Long.\n");
    assert_eq!(
        [
            kinds("chat_request"),
            kinds("tool_call_response"),
            kinds("chat_response")
        ],
        [1, 1, 1]
    );
}

#[test]
fn conversation_shows_what_all_its_requests_cost() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new one");
    let shown = |sandbox: &Sandbox| sandbox.run("c show").stdout;
    let line =
        "50 input, 40 cached read, 7 output in 1 request; 80 % of the input was read from cache\n";
    assert_contains(shown(&sandbox), line);
    let other = "providers.llm.llamacpp.models.n.tools:=true";
    sandbox.run(&["q", "-m", "llamacpp/n", "-c", other, "two"]);
    let line = "llamacpp/n: 50 input, 40 cached read, 7 output in 1 request;";
    assert!(
        shown(&sandbox).contains("in 2 requests") && shown(&sandbox).contains(line),
        "{}",
        shown(&sandbox)
    );
    let document = sandbox.json("c show");
    assert_eq!(
        document["usage"],
        json!({"input": 100, "cached_read": 80, "output": 14, "cached_percent": 80, "requests": 2})
    );
    assert_eq!(document["by_model"]["llamacpp/m"]["requests"], 1);
}

#[test]
fn answer_says_how_many_tokens_delivery_saved() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    let document = sandbox.json("q --new one");
    assert_eq!(
        (&document["saved_tokens"], &document["usage"]["input"]),
        (&json!(0), &json!(50))
    );
    let run = sandbox.run("q two");
    assert_contains(&run.stderr, "Tokens: 50 input, 40 from cache, 7 output\n");
}

#[test]
fn saved_tokens_are_those_of_all_requests_of_a_turn() {
    let reading = |path: &str| calling(&[("read_file", json!({"path": path}))]);
    let (sandbox, _) = Sandbox::with_replies(vec![
        answer("Yes."),
        reading("long.txt"),
        reading("b.txt"),
        answer("Both."),
        answer("Yes."),
    ]);
    sandbox.write("b.txt", "b\n");
    asked_once(&sandbox);
    let document = sandbox.json("q two");
    let explained = sandbox.json("q --explain three");
    let of_one =
        explained["plain_tokens"].as_u64().unwrap() - explained["tokens"].as_u64().unwrap();
    assert!(of_one > 500, "{of_one}");
    // The first of the three requests had nothing to refer to yet.
    assert_eq!(document["saved_tokens"], 2 * of_one);
    assert_eq!(sandbox.json("q three")["saved_tokens"], of_one);
}

#[test]
fn version_that_is_dropped_counts_as_saved() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    asked_once(&sandbox);
    sandbox.write("long.txt", "other lines\n".repeat(400));
    let always = "conversation.superseded.policy=always";
    let saved = |words: &[&str]| {
        sandbox.json(&[&["q", "-c", always], words].concat())["saved_tokens"].as_u64()
    };
    assert!(saved(&["-a", "long.txt", "two"]).unwrap() > 900);
}

/// A server whose model thinks before it answers; Chat Completions takes none of that back.
fn thinking() -> testing::Server {
    let delta =
        |delta: serde_json::Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let thought = delta(json!({"reasoning_content": "I wonder. ".repeat(100)}));
    let words = delta(json!({"content": "Yes."}));
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    playing(vec![testing::Reply::stream(&format!(
        "{thought}{words}{end}"
    ))])
}

#[test]
fn reasoning_that_the_provider_does_not_take_back_is_not_counted() {
    let (sandbox, _) = Sandbox::with_model(thinking());
    sandbox.run("q --new one");
    let explained = sandbox.json("q --explain -T two");
    let row = &explained["turns"][0]["blocks"][1];
    let expected = json!({"kind": "reasoning", "bytes": 0, "tokens": 0, "delivery": "left out",
        "reason": "the provider does not accept it"});
    assert_eq!(*row, expected);
    assert!(explained["tokens"].as_u64().unwrap() < 10, "{explained}");
    assert_lacks(explained["request"].to_string(), "I wonder");
    sandbox.run("q -T --budget 50 two");

    let sent = || sandbox.run("c print --as-sent").stdout;
    assert_contains(sent(), "Yes.");
    assert_lacks(sent(), "I wonder");
    let before = sandbox.json("q --explain -T three");
    let nothing = sandbox.run("c compact --strip reasoning --keep-last 0");
    assert_contains(&nothing.stderr, "Nothing to compact");
    let after = sandbox.json("q --explain -T three");
    assert_eq!(
        before["cached_prefix_tokens"],
        after["cached_prefix_tokens"]
    );
    assert_eq!(after["cache_is_cold"], false);
    // The receiving model is unknown.
    sandbox.write(".jp/config.toml", "");
    assert_contains(sent(), "I wonder");
}

#[test]
fn nothing_of_a_fork_was_sent_before_its_first_answer() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    asked_once(&sandbox);
    let path = sandbox.events_path();
    let mut events = sandbox.events();
    events
        .iter_mut()
        .for_each(|event| event["timestamp"] = json!("2020-01-02T03:04:05Z"));
    std::fs::write(path, json!(events).to_string()).unwrap();
    // The name is the time of its creation; two in the same tenth of a second would have the same name.
    let old = "15779342450";
    std::fs::rename(
        sandbox.conversation(),
        sandbox.path(".jp/conversations").join(old),
    )
    .unwrap();
    sandbox.run(&["c", "fork", old]);
    let explained = || {
        let document = sandbox.json("q --explain next");
        (
            document["cached_prefix_tokens"].as_u64().unwrap(),
            document["cache_is_cold"].clone(),
        )
    };
    assert_eq!(explained(), (0, json!(false)));
    sandbox.run("q two");
    let (tokens, is_cold) = explained();
    assert!(tokens > 1000 && is_cold == json!(false), "{tokens}");
}

#[test]
fn file_is_named_by_its_path_in_every_block() {
    let (sandbox, _) = Sandbox::with_replies(vec![
        calling(&[("read_file", json!({"path": "long.txt"}))]),
        answer("Long."),
    ]);
    sandbox.write("long.txt", "many words\n".repeat(1000));
    sandbox
        .fail("q --new --budget 2500 'What is in it?'", 3)
        .says(["tokens: long.txt, turn 1"]);
    let shown = sandbox.run("q --explain -a long.txt again").stdout;
    assert_count(&shown, " long.txt ", 2);
    assert_lacks(&shown, "file://");
}
