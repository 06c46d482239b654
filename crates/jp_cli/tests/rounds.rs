//! Turns of several rounds: the parts that are sent again and stored if one of them fails.

use std::fs;

use serde_json::{Value, json};
use testing::{
    Reply, Sandbox, Server, answer, assert_contains, assert_lacks, calling, finish, items, results,
    start,
};

/// Returns the bodies of the requests to the model.
fn bodies(server: &Server) -> Vec<Vec<u8>> {
    let asks = |head: &str| head.starts_with("post /v1/chat/completions");
    server
        .received()
        .into_iter()
        .filter(|request| asks(&request.head))
        .map(|request| request.body)
        .collect()
}

fn count(sandbox: &Sandbox, kind: &str) -> usize {
    sandbox.events_of(kind).len()
}

#[test]
fn turn_goes_on_from_its_results_after_a_round_that_failed() {
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("look", json!({}))]),
        Reply::json(400, r#"{"error":"no"}"#),
        answer("Done."),
    ]);
    sandbox.fail("query Look.", 1).says(["400"]);
    assert_eq!(
        [
            count(&sandbox, "tool_call_request"),
            count(&sandbox, "tool_call_response")
        ],
        [1, 1]
    );
    assert_eq!(sandbox.run("query").stdout, "Done.\n");
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[1], bodies[2]);
    assert_eq!(
        [
            count(&sandbox, "chat_request"),
            count(&sandbox, "tool_call_request")
        ],
        [1, 1]
    );
}

#[test]
fn server_that_refuses_tools_is_told_of_with_what_to_do() {
    let refused = Reply::json(
        400,
        r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#,
    );
    let (sandbox, _) = Sandbox::with_replies(vec![refused]);
    let hints = [
        "llamacpp/m does not accept tools",
        "`jp query -T`",
        "providers.llm.llamacpp.models.\"m\".tools = false",
    ];
    sandbox.fail("query Look.", 1).says(hints);
}

/// Returns the messages of each request to the model.
fn messages(server: &Server) -> Vec<Vec<Value>> {
    let messages =
        |body: Vec<u8>| serde_json::from_slice::<Value>(&body).unwrap()["messages"].take();
    bodies(server)
        .into_iter()
        .map(|body| items(&messages(body)).to_vec())
        .collect()
}

#[test]
fn model_answers_the_question_of_a_tool_with_the_conversation_before_it() {
    let asks = "case $(cat) in
        *'\"answers\":{}'*) echo '{\"content\": [
            {\"type\": \"text\", \"text\": \"Two files would change.\"},
            {\"type\": \"question\", \"question\": {\"id\": \"sure\", \"text\": \"Apply?\", \"schema\": {\"type\": \"boolean\"}}}]}';;
        *'\"sure\":true'*) echo applied;;
        esac";
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("change", json!({})), ("other", json!({}))]),
        answer(r#"{"sure": true}"#),
        answer("Done."),
    ]);
    let script = sandbox.write("~/change.sh", asks);
    sandbox.configure(format!("[conversation.tools.change]\ncommand = 'sh {}'\nrun = 'unattended'\n\
         questions.sure.target = 'assistant'\n[conversation.tools.other]\ncommand = 'printf other'\nrun = 'unattended'\n", script.display()));
    assert_eq!(sandbox.run("query 'Change it.'").stdout, "Done.\n");
    let mut results = results(&server);
    results.sort();
    assert_eq!(results, ["applied\n", "other"]);

    let requests = messages(&server);
    let [first, inquiry, last] = &requests[..] else {
        panic!("{} requests", requests.len())
    };
    assert_eq!(inquiry[..first.len()], first[..]);
    let text = |message: &Value| message["content"].to_string();
    assert!(
        inquiry[first.len()..]
            .iter()
            .any(|message| text(message).contains("Two files would change."))
    );
    assert!(
        text(inquiry.last().unwrap()).contains("Apply?"),
        "{inquiry:?}"
    );
    assert!(
        !last.iter().any(|message| text(message).contains("Apply?")),
        "{last:?}"
    );
    let tools = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["tools"].take();
    assert!(
        bodies(&server)
            .windows(2)
            .all(|pair| tools(&pair[0]) == tools(&pair[1]))
    );

    let events = sandbox.events();
    let find = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(find("inquiry_request")["source"]["target"], "assistant");
    assert_eq!(find("inquiry_response")["answer"], true);
    // The model was asked three times, and each time cost something.
    assert_eq!(
        [count(&sandbox, "usage"), count(&sandbox, "chat_response")],
        [2, 1]
    );
}

#[test]
fn turn_with_an_interrupted_tool_can_be_continued() {
    let calls = [("wait", json!({})), ("quick", json!({}))];
    let (sandbox, server) = Sandbox::with_replies(vec![calling(&calls), answer("Done.")]);
    let script = sandbox.write("~/wait.sh", "sleep 1000 & echo $! > pid; echo begun; wait");
    sandbox.configure(format!(
        "[conversation.tools.wait]\ncommand = 'sh {}'\nrun = 'unattended'\n\
         [conversation.tools.quick]\ncommand = 'printf quick'\nrun = 'unattended'\n",
        script.display()
    ));
    let child = start(sandbox.command("query Wait."));
    let pid = wait_for(|| {
        fs::read_to_string(sandbox.path("pid"))
            .ok()?
            .trim()
            .parse::<i32>()
            .ok()
    });
    // It is being written to, and need not be a whole document each time.
    let written = || fs::read_to_string(sandbox.events_path()).unwrap_or_default();
    wait_for(|| (written().matches("\"tool_call_response\"").count() == 1).then_some(()));
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let run = finish(child);
    assert_eq!(run.code, 130);
    let said = &run.stderr;
    assert_contains(said, "`jp query` without a message lets the model continue");
    let sleeper = rustix::process::Pid::from_raw(pid).unwrap();
    wait_for(|| {
        rustix::process::test_kill_process(sleeper)
            .is_err()
            .then_some(())
    });

    let events = sandbox.events();
    let responses = events
        .iter()
        .filter(|event| event["type"] == "tool_call_response");
    let texts: Vec<_> = responses
        .map(|event| event["content"].to_string())
        .collect();
    assert_eq!(texts.len(), 2);
    assert_contains(&texts[0], "quick");
    assert_contains(&texts[1], "begun");
    assert_contains(&texts[1], "interrupted");
    assert_eq!(sandbox.run("query").stdout, "Done.\n");
    assert_eq!(results(&server).len(), 2);
}

#[test]
fn calls_that_wait_for_others_do_not_begin_after_ctrl_c() {
    let mut calls = vec![("wait", json!({})); 8];
    calls.extend([
        ("leave", json!({})),
        ("create_file", json!({"path": "created", "content": "x"})),
    ]);
    let (sandbox, _) = Sandbox::with_replies(vec![calling(&calls), answer("Done.")]);
    sandbox.configure(
        "[conversation.tools.wait]\ncommand = 'sh -c \"echo >> begun; sleep 1000\"'\n\
         [conversation.tools.leave]\ncommand = 'touch left'\n",
    );
    let mut child = start(sandbox.command("query --yes -t create_file Wait."));
    wait_for(|| {
        let begun = fs::read_to_string(sandbox.path("begun")).unwrap_or_default();
        (begun.lines().count() == 8).then_some(())
    });
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(count(&sandbox, "tool_call_response"), 10);
    assert!(!sandbox.path("left").exists() && !sandbox.path("created").exists());
}

#[test]
fn long_result_is_read_on_where_nothing_is_stored() {
    let checksum = jp_resource::Checksum::compute("word\n".repeat(200).as_bytes());
    let more = json!({"uri": format!("jp://blob/{checksum}"), "offset": 900});
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("long", json!({}))]),
        calling(&[("read_more", more)]),
        answer("Done."),
    ]);
    sandbox.configure(
        "[conversation.tools.long]\ncommand = 'sh -c \"for i in $(seq 200); do echo word; done\"'\n\
         run = 'unattended'\nmax_output_bytes = 500\n",
    );
    sandbox.run("query --no-persist Read.");
    let results = results(&server);
    assert!(results[0].contains(&checksum.to_string()), "{results:?}");
    assert!(results[1].starts_with(&"word\n".repeat(20)), "{results:?}");
}

/// Has a model that sees images read `a.png`, of so many bytes. Returns the result, the next turn's
/// request and what the user was told.
fn reading_an_image(bytes: usize, tools: &str) -> (String, String, String, Sandbox) {
    let config = format!("providers.llm.llamacpp.models.m.images = true\n{tools}");
    let call = calling(&[("read_file", json!({"path": "a.png"}))]);
    let (sandbox, server) = Sandbox::with_replies(vec![call, answer("Done.")]);
    sandbox.configure(config);
    sandbox.write(
        "a.png",
        [b"\x89PNG\r\n\x1a\n".to_vec(), vec![0xff; bytes - 8]].concat(),
    );
    let told = sandbox.run("q --new look").stderr;
    sandbox.run("q again");
    (
        results(&server).remove(0),
        testing::last_request(&server).to_string(),
        told,
        sandbox,
    )
}

#[test]
fn image_of_ordinary_size_in_a_result_is_shown() {
    let (result, request, told, _) = reading_an_image(1_000_000, "");
    assert_lacks(&told, "max_output_bytes");
    assert_contains(&result, "is in the next message: image/png; 1000000 bytes");
    assert!(request.len() > 1_300_000 && request.contains("data:image/png;base64,"));
}

#[test]
fn binary_that_is_too_large_for_a_result_is_kept_behind_a_note() {
    let all = "[conversation.tools.'*']\nmax_output_bytes = '10KB'";
    let own = "[conversation.tools.read_file]\nmax_output_bytes = '10KB'";
    for (bytes, tools) in [(9_600_000, ""), (20_000, own), (20_000, all)] {
        let (result, request, told, sandbox) = reading_an_image(bytes, tools);
        assert_contains(
            &told,
            "raise `conversation.tools.read_file.max_output_bytes` to allow more",
        );
        assert!(
            request.len() < 50_000 && !request.contains("base64,"),
            "{bytes}: {}",
            request.len()
        );
        let label = format!("a.png (file://{}/a.png)", testing::shown(&sandbox.root));
        for said in [
            &*label,
            "image/png",
            &format!("{bytes} bytes"),
            "max_output_bytes",
        ] {
            assert!(result.contains(said), "{said:?} is not in {result}");
        }
        let response = &sandbox.events_of("tool_call_response")[0];
        assert_eq!(response["content"][0]["resource"]["content"]["size"], bytes);
    }
}

#[test]
fn image_that_the_person_attached_is_shown_whatever_tools_may_show() {
    let (sandbox, server) = Sandbox::with_replies(vec![answer("Seen.")]);
    let tools = "providers.llm.llamacpp.models.m.images = true\n[conversation.tools.'*']\nmax_output_bytes = '10KB'";
    sandbox.configure(tools);
    sandbox.write(
        "a.png",
        [b"\x89PNG\r\n\x1a\n".to_vec(), vec![0xff; 20_000]].concat(),
    );
    sandbox.run("q --new -a a.png look");
    assert_contains(
        testing::last_request(&server).to_string(),
        "data:image/png;base64,",
    );
}

/// Waits until the condition holds.
fn wait_for<T>(look: impl Fn() -> Option<T>) -> T {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(std::time::Instant::now() < until, "it does not come"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn state_is_kept_between_calls() {
    let spawn = |handle: &str| json!({"action": "spawn", "handle": handle});
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("counter", spawn("c")), ("shell", spawn("s"))]),
        calling(&[
            (
                "counter",
                json!({"action": "apply", "handle": "c", "input": {}}),
            ),
            (
                "shell",
                json!({"action": "apply", "handle": "s", "input": {"text": "cd docs && X=kept"}}),
            ),
        ]),
        calling(&[
            ("counter", json!({"action": "abort", "handle": "c"})),
            (
                "shell",
                json!({"action": "apply", "handle": "s", "input": {"text": "pwd; echo $X"}}),
            ),
        ]),
        answer("Done."),
    ]);
    sandbox.write("docs/a.md", "");
    sandbox.write(
        "counter.sh",
        "n=0\nwhile read -r line; do n=$((n+1))
         echo \"{\\\"content\\\":[{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"$n\\\"}],\\\"_meta\\\":{\\\"computer.jp/status\\\":\\\"running\\\"}}\"\ndone\n",
    );
    let tool = "[conversation.tools.counter]\ncommand = 'sh counter.sh'\nstateful = true\n";
    sandbox.configure(tool);
    assert_eq!(sandbox.run("query --yes -t shell Count.").stdout, "Done.\n");
    let results = results(&server);
    let has = |index: usize, words: &[&str]| {
        words.iter().for_each(|words| {
            assert!(
                results[index].contains(words),
                "{words:?} is not in {results:?}"
            )
        });
    };
    has(0, &["1", "Status of \"c\": running."]);
    has(2, &["2", "Status of \"c\": running."]);
    has(4, &["3", "Status of \"c\": stopped."]);
    has(5, &["/docs\n", "kept", "Status of \"s\": running."]);
}

#[test]
fn kept_tool_ends_with_its_conversation() {
    let spawn = json!({"action": "spawn", "handle": "c"});
    let (sandbox, server) =
        Sandbox::with_replies(vec![calling(&[("stay", spawn)]), answer("Done.")]);
    let line =
        r#"{"content":[{"type":"text","text":"up"}],"_meta":{"computer.jp/status":"running"}}"#;
    sandbox.write(
        "stay.sh",
        format!("echo $$ > pid\nwhile read -r line; do echo '{line}'; done\n"),
    );
    let tool = "[conversation.tools.stay]\ncommand = 'sh stay.sh'\nstateful = true\nkeep = true\n";
    sandbox.configure(tool);
    sandbox.run("query --yes Stay.");
    assert_contains(&results(&server)[0], "running");
    let pid = sandbox.read("pid").trim().parse().unwrap();
    let process = rustix::process::Pid::from_raw(pid).unwrap();
    assert!(rustix::process::test_kill_process(process).is_ok());
    let id = sandbox.json("c ls")[0]["id"].as_str().unwrap().to_owned();
    let run = sandbox.run(&["c", "rm", &id]);
    assert_contains(&run.stderr, "Ended 1 tool that still ran.");
    wait_for(|| {
        rustix::process::test_kill_process(process)
            .is_err()
            .then_some(())
    });
}
