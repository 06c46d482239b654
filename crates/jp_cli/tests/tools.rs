//! Tools: declared, chosen, allowed, run, and their results in the next request.

use std::fs;

use jp_resource::Checksum;
use serde_json::{Value, json};
use testing::{
    Reply, Sandbox, Server, answer, assert_contains, assert_fields, assert_lacks, assert_starts,
    calling, column, items, last_request, results,
};

/// The user's own configuration.
const USER: &str = "~/.config/jp/config.toml";

/// A user with these tools, and a model that calls one and then answers `Done.`
fn calling_once(tools: &str, name: &str, arguments: Value) -> (Server, Sandbox) {
    let (sandbox, server) =
        Sandbox::with_replies(vec![calling(&[(name, arguments)]), answer("Done.")]);
    sandbox.configure(tools);
    (server, sandbox)
}

/// Returns the names of the tools in the last request.
fn offered(server: &Server) -> Vec<String> {
    let request = last_request(server);
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

fn offers(server: &Server, name: &str) -> bool {
    offered(server).iter().any(|offered| offered == name)
}

#[test]
fn output_of_a_program_reaches_the_model() {
    let (server, sandbox) = calling_once(
        "[conversation.tools.greet]
        command = '../../scripts/greet --to world'
        run = 'unattended'
        summary = 'Greets.'
        description = 'Only once.'
        [conversation.tools.greet.parameters.name]
        type = 'string'
        required = true
        summary = 'Whom.'",
        "greet",
        json!({"name": "Jean"}),
    );
    sandbox.write_program("~/scripts/greet", "#!/bin/sh\necho \"hello $2\"\n");
    let run = sandbox.run("q --new greet");
    assert_eq!(run.stdout, "Done.\n");
    assert_starts(&run.stderr, "Called greet Jean: 12 B\n");
    assert_eq!(results(&server), ["hello world\n"]);
    let tools = items(&last_request(&server)["tools"]).to_vec();
    let function = json!({
        "name": "greet", "description": "Greets.\n\nOnly once.",
        "parameters": {
            "type": "object", "properties": {"name": {"type": "string", "description": "Whom."}},
            "required": ["name"], "additionalProperties": false,
        },
    });
    assert_eq!(tools.last().unwrap()["function"], function);
    let kinds = column(&sandbox.events(), "type");
    for kind in ["tool_call_request", "tool_call_response"] {
        assert_eq!(
            kinds.iter().filter(|other| **other == kind).count(),
            1,
            "{kinds:?}"
        );
    }
    assert_eq!(sandbox.run("q --new -q greet").stderr, "");
}

#[test]
fn conversation_is_printed_with_its_calls() {
    let (_server, sandbox) = calling_once(
        "conversation.tools.greet = { command = 'printf hello', run = 'unattended' }",
        "greet",
        json!({}),
    );
    sandbox.run("q --new greet");
    let path = sandbox.events_path();
    let inquiry = json!({"timestamp": "2026-11-21T12:00:00Z", "type": "inquiry_request", "id": "call_1.sure",
        "question": {"id": "sure", "text": "Sure?", "schema": {"type": "boolean"}}});
    let answer = json!({"timestamp": "2026-11-21T12:00:00Z", "type": "inquiry_response", "id": "call_1.sure", "answer": true});
    let events = fs::read_to_string(&path).unwrap();
    let line = events
        .lines()
        .find(|line| line.contains("tool_call_response"))
        .unwrap();
    fs::write(
        &path,
        events.replace(line, &format!("{inquiry},\n{answer},\n{line}")),
    )
    .unwrap();
    let printed = sandbox.run("conversation print").stdout;
    insta::assert_snapshot!(printed, @r#"
    ## Turn 1

    greet

    ### Tool call: greet

    ```json
    {}
    ```

    ### Question: Sure?

    Answer: `true`

    ### Tool result

    hello

    Done.
    "#);
    let document = sandbox.json("conversation print");
    let kinds = column(items(&document["turns"][0]["events"]), "type");
    assert_eq!(
        kinds,
        [
            "chat_request",
            "tool_call_request",
            "inquiry_request",
            "inquiry_response",
            "tool_call_response",
            "chat_response"
        ]
    );
}

#[test]
fn words_before_a_call_end_their_line() {
    let call = json!({"index": 0, "id": "1", "function": {"name": "nothing", "arguments": "{}"}});
    let chunk = json!({"choices": [{"delta": {"content": "I look.", "tool_calls": [call]}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let call = Reply::stream(&format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n"));
    let (sandbox, _) = Sandbox::with_replies(vec![call, answer("Done.")]);
    assert_eq!(sandbox.run("q --new x").stdout, "I look.\nDone.\n");
}

#[test]
fn command_line_is_split_without_a_shell() {
    let (server, sandbox) = calling_once(
        r#"conversation.tools.say = { command = "printf '%s|' '$HOME *' a\\ b", run = "unattended" }"#,
        "say",
        json!({}),
    );
    sandbox.run("q --new say");
    assert_eq!(results(&server), ["$HOME *|a b|"]);
}

#[test]
fn context_in_a_command_stays_whole() {
    let line = r#"printf %s "{{context}}""#;
    let words = [json!(line), json!(["printf", "%s", "{{context}}"])];
    for command in words {
        let (server, sandbox) = calling_once(
            &format!("conversation.tools.say = {{ command = {command}, run = 'unattended' }}"),
            "say",
            json!({"a b": "'\"\n"}),
        );
        sandbox.configure(format!("conversation.tools.say = {{ command = {command}, run = 'unattended', parameters = {{ 'a b' = {{}} }} }}"));
        sandbox.run("q --new say");
        let context: Value = serde_json::from_str(&results(&server)[0]).unwrap();
        assert_eq!(context["tool"]["arguments"], json!({"a b": "'\"\n"}));
        assert_eq!(context["context"]["root"], json!(sandbox.root));
    }
}

#[test]
fn keys_are_kept_from_tools() {
    let (server, sandbox) = calling_once(
        "conversation.tools.env = { command = 'env', run = 'unattended' }
        providers.llm.other.api_key_env = 'MY_OWN'",
        "env",
        json!({}),
    );
    let mut command = sandbox.command("q --new env");
    for name in [
        "ANTHROPIC_API_KEY",
        "MY_OWN",
        "SOME_API_TOKEN",
        "AWS_SECRET_KEY",
        "AN_ACCESS_KEY",
    ] {
        command.env(name, "s3cret");
    }
    command.env("KEYBOARD", "qwerty");
    testing::run(command).succeeded();
    let environment = results(&server).remove(0);
    assert_contains(&environment, "KEYBOARD=qwerty");
    assert_lacks(&environment, "s3cret");
}

#[test]
fn turn_continues_after_a_call_refused_without_a_terminal() {
    let tools = "conversation.tools.greet = { command = 'printf hello' }";
    let (server, sandbox) = calling_once(tools, "greet", json!({}));
    let run = sandbox.fail("q --new greet", 3);
    assert_eq!(run.stdout, "Done.\n");
    for words in [
        "warning: the call of `greet` was refused",
        "--yes",
        "Called greet: error: ",
    ] {
        assert_contains(&run.stderr, words);
    }
    let result = results(&server).remove(0);
    for words in [
        "error",
        "there is no terminal",
        "`--yes`",
        "conversation.tools.greet.run",
    ] {
        assert!(result.contains(words), "{words:?} is not in {result}");
    }

    let (server, sandbox) = calling_once(tools, "greet", json!({}));
    sandbox.run("q --new --yes greet");
    assert_eq!(results(&server), ["hello"]);
}

#[test]
fn denied_tool_never_runs() {
    for tools in [
        "conversation.tools.make = { command = 'touch made', run = 'deny' }",
        "conversation.tools = { make = { command = 'touch made' }, '*' = { run = 'deny' } }",
    ] {
        let (server, sandbox) = calling_once(tools, "make", json!({}));
        sandbox.run("q --new --yes make");
        assert_contains(&results(&server)[0], "configuration denies it");
        assert!(!sandbox.path("made").exists());
    }
}

#[test]
fn settings_of_all_tools_are_those_of_each_that_says_nothing() {
    let tools = "[conversation.tools.'*']
        run = 'unattended'
        max_output_bytes = '10KB'
        [conversation.tools.one]
        command = 'printf one'
        [conversation.tools.two]
        command = 'printf two'
        run = 'ask'";
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("one", json!({})), ("two", json!({}))]),
        answer("Done."),
    ]);
    sandbox.configure(tools);
    sandbox.fail("q --new x", 3).says(["`two` was refused"]);
    let results = results(&server);
    assert!(
        results[0] == "one" && results[1].contains("refused"),
        "{results:?}"
    );
}

#[test]
fn readers_run_unasked_whatever_is_said_of_all_tools() {
    let uri = format!("jp://blob/{}", Checksum::compute(b"none"));
    let tools = "conversation.tools.'*'.run = 'deny'";
    let (server, sandbox) = calling_once(tools, "read_more", json!({"uri": uri}));
    sandbox.run("q --new x");
    let result = results(&server).remove(0);
    assert!(result.contains(&uri) && !result.contains("den"), "{result}");
    let (server, sandbox) = calling_once(
        "conversation.tools.read_more.run = 'deny'",
        "read_more",
        json!({"uri": uri}),
    );
    sandbox.run("q --new x");
    assert_contains(&results(&server)[0], "configuration denies it");
}

#[test]
fn model_is_told_of_tools_that_there_are_not_or_that_are_off() {
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("nothing", json!({})), ("greet", json!({}))]),
        answer("Done."),
    ]);
    sandbox.configure("conversation.tools.greet = { command = 'printf hello', enable = false }");
    sandbox.run("q --new --yes x");
    let results = results(&server);
    assert_contains(&results[0], "There is no tool `nothing`");
    assert_contains(&results[1], "`greet` is switched off");
}

#[test]
fn only_what_reads_is_on_by_default() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new x");
    let offered = offered(&server);
    assert!(offered.contains(&"read_more".to_owned()), "{offered:?}");
    for writer in [
        "create_file",
        "edit_file",
        "move_file",
        "delete_file",
        "run_command",
        "shell",
    ] {
        assert!(!offered.contains(&writer.to_owned()), "{offered:?}");
    }
}

#[test]
fn tools_are_offered_in_one_order() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.configure("conversation.tools = { b = { command = 'b' }, a = { command = 'a' } }");
    sandbox.run("q --new x");
    let offered = offered(&server);
    assert_eq!(offered[offered.len() - 2..], ["a", "b"]);
}

#[test]
fn chosen_tools_stay_chosen_in_their_conversation() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.configure(
        "conversation.tools = { a = { command = 'a' }, b = { command = 'b', enable = false } }",
    );
    let tools = |arguments: &[&str]| {
        sandbox.run(arguments);
        last_request(&server)["tools"].to_string()
    };
    let untouched = tools(&["q", "--new", "x"]);
    assert!(offers(&server, "a") && !offers(&server, "b"));
    let chosen = tools(&["q", "--new", "-t", "b", "-T=a", "x"]);
    assert!(!offers(&server, "a") && offers(&server, "b") && offers(&server, "read_more"));
    assert_eq!(tools(&["q", "again"]), chosen);

    assert_eq!(tools(&["q", "--no-tool", "no", "tools"]), "null");
    assert_eq!(testing::last_message(&server), "no tools");
    assert_eq!(tools(&["q", "again"]), "null");
    tools(&["q", "-T", "--tool", "a", "only one"]);
    assert_eq!(offered(&server), ["a"]);
    assert_eq!(tools(&["q", "--new", "x"]), untouched);
}

#[test]
fn message_after_the_flag_is_no_name() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.run("q --new -T read_more");
    assert_eq!(testing::last_message(&server), "read_more");
    assert_eq!(offered(&server), Vec::<String>::new());
}

#[test]
fn unknown_tool_is_a_mistake_of_usage_that_stores_nothing() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let run = sandbox.jp("q --new -t red_more x");
    run.failed(2).says([
        "there is no tool `red_more`",
        "hint: did you mean `read_more`?",
        "hint: the tools are: ",
    ]);
    sandbox
        .fail("q --new -T=elsewhere x", 2)
        .says(["there is no tool `elsewhere`"]);
    let both = sandbox.jp("q --new -T=read_more -t read_more x");
    both.failed(2)
        .says(["--tool and --no-tool both name `read_more`"]);
    assert_eq!(server.received().len(), 0);
    assert!(!sandbox.path(".jp/conversations").exists());
}

#[test]
fn parallel_calls_are_answered_in_their_order() {
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("first", json!({})), ("second", json!({}))]),
        answer("Done."),
    ]);
    sandbox.configure(r#"[conversation.tools]
        first = { command = ["sh", "-c", "until [ -e made ]; do sleep 0.01; done; echo 1"], run = "unattended" }
        second = { command = ["sh", "-c", "touch made; echo 2"], run = "unattended" }"#);
    let document = sandbox.json("q --new both");
    assert_eq!(results(&server), ["1\n", "2\n"]);
    let call = |id: &str, tool: &str| json!({"id": id, "tool": tool, "arguments": {}, "is_error": false, "decision": "allowed", "reason": "run"});
    assert_fields!(document, {"calls": [call("call_1", "first"), call("call_2", "second")]});
    assert_eq!(document["answer"], "Done.");
}

#[test]
fn document_says_which_calls_failed() {
    let (_server, sandbox) = calling_once("", "nothing", json!({"a": 1}));
    let document = sandbox.json("q --new x");
    let call = json!({"id": "call_1", "tool": "nothing", "arguments": {"a": 1}, "is_error": true,
        "decision": null, "reason": null});
    assert_eq!(document["calls"], json!([call]));
}

#[test]
fn calls_that_share_an_id_are_told_apart() {
    let ok = || calling(&[("ok", json!({}))]);
    let (sandbox, _) = Sandbox::with_replies(vec![
        calling(&[("nothing", json!({}))]),
        ok(),
        answer("Done."),
        ok(),
        answer("Done."),
    ]);
    sandbox.configure("conversation.tools.ok = { command = 'true', run = 'unattended' }");
    let failed = |document: &Value| {
        let calls = items(&document["calls"]).iter();
        calls
            .map(|call| call["is_error"].as_bool().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(failed(&sandbox.json("q --new x")), [true, false]);
    assert_eq!(failed(&sandbox.json("q again")), [false]);
}

#[test]
fn explain_lists_the_costs_of_tools() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox
        .configure("conversation.tools.greet = { command = 'printf hello', summary = 'Greets.' }");
    let arguments = ["q", "--new", "--explain", "-T", "-t", "greet", "x"];
    let shown = sandbox.run(&arguments).stdout;
    assert_contains(&shown, "tools: greet, about 21 more tokens\n");
    let document = sandbox.json(&arguments);
    assert_fields!(document, {"tools": [{"name": "greet", "bytes": 82, "tokens": 21}]});
    assert_eq!(document["request"]["tools"][0]["function"]["name"], "greet");
    assert_lacks(sandbox.run("q --new --explain -T x").stdout, "tools:");
}

/// A user in a workspace that declares tools.
fn in_workspace(tools: &str, name: &str) -> (Server, Sandbox) {
    let (sandbox, server) =
        Sandbox::with_replies(vec![calling(&[(name, json!({}))]), answer("Done.")]);
    sandbox.prepend_config(tools);
    (server, sandbox)
}

/// Stores the user's approval of this.
fn agree(sandbox: &Sandbox, text: &str) {
    let [data, cache] = [".local/share/jp", ".cache/jp"].map(|path| sandbox.home.join(path));
    jp_storage::Workspace::open(&sandbox.root, &data, &cache)
        .unwrap()
        .trust()
        .add([text])
        .unwrap();
}

#[test]
fn workspace_lets_no_tool_run_unattended_before_the_person_agrees() {
    let tools = "[conversation.tools.greet]\ncommand = 'printf hello'\nrun = 'unattended'\n";
    let (server, sandbox) = in_workspace(tools, "greet");
    let run = sandbox.fail("q --new x", 3);
    assert_contains(&results(&server)[0], "refused");
    let words = [
        "warning: the tool `greet` needs your approval for each call because the workspace affects",
        "-c conversation.tools.greet",
    ];
    assert!(
        words.iter().all(|words| run.stderr.contains(words)),
        "{}",
        run.stderr
    );

    let ran = |arguments: &[&str], tools: &str| {
        let (server, sandbox) = in_workspace(tools, "greet");
        agree(&sandbox, "tool greet, unattended: printf hello");
        let run = sandbox.jp(&[&["q", "--new", "x"], arguments].concat());
        let result = results(&server).remove(0);
        assert_eq!(run.code, if result.contains("refused") { 3 } else { 0 });
        assert_eq!(
            run.stderr.contains("the workspace affects"),
            result.contains("refused"),
            "{}",
            run.stderr
        );
        result
    };
    assert_eq!(ran(&[], tools), "hello");
    let changed = tools.replace("hello", "hullo");
    assert!(ran(&[], &changed).contains("refused"));
    assert_eq!(
        ran(&["-c", "conversation.tools.greet.run=unattended"], &changed),
        "hullo"
    );
    assert_eq!(ran(&["--yes"], &changed), "hullo");
}

#[test]
fn persons_word_on_a_tool_is_not_about_a_command_of_the_workspaces() {
    let (server, sandbox) = in_workspace(
        "conversation.tools.greet.command = 'printf hello'\n",
        "greet",
    );
    sandbox.configure("conversation.tools.greet.run = 'unattended'");
    sandbox.fail("q --new x", 3);
    assert_contains(&results(&server)[0], "refused");
}

#[test]
fn workspace_gives_no_leave_that_the_person_denied() {
    let tools = "conversation.tools.greet = { command = 'printf hello', run = 'ask' }\n";
    let (server, sandbox) = in_workspace(tools, "greet");
    sandbox.configure("conversation.tools.'*'.run = 'deny'");
    sandbox.run("q --new --yes x");
    assert_contains(&results(&server)[0], "configuration denies it");
}

#[test]
fn workspace_gives_no_answers_in_the_persons_place_before_they_agree() {
    let question = r#"{"content": [{"type": "question", "question": {"id": "sure", "text": "Sure?", "schema": {"type": "boolean"}}}]}"#;
    for (setting, agreed) in [
        ("answer = true", "true"),
        ("target = 'assistant'", "whatever the model says"),
    ] {
        let tools = format!(
            "[conversation.tools.ask]\ncommand = ['printf', '%s', '{question}']\nquestions.sure.{setting}\n"
        );
        let asked = |agreed: Option<&str>| {
            let (server, sandbox) = in_workspace(&tools, "ask");
            agreed.into_iter().for_each(|text| agree(&sandbox, text));
            let run = [
                "q",
                "--new",
                "-c",
                "conversation.tools.ask.run=unattended",
                "x",
            ];
            sandbox.run(&run);
            results(&server).remove(0)
        };
        assert_contains(asked(None), "there is no terminal to ask");
        let text = format!("tool ask: printf %s '{question}'; sure = {agreed}");
        assert_lacks(asked(Some(&text)), "terminal");
    }
}

#[test]
fn history_only_says_which_tools_are_on() {
    let (server, sandbox) = calling_once(
        "conversation.tools = { a = { command = 'printf a' }, b = { command = 'printf b' } }",
        "a",
        json!({}),
    );
    sandbox.run("q --new -T x");
    let delta = json!({"conversation": {
        "read_only_paths": ["none"],
        "tools": {
            "*": {"run": "unattended", "enable": true},
            "a": {"enable": true, "run": "unattended", "command": "printf evil"},
            "gone": {"enable": true},
            "forged": {"enable": true, "command": "printf evil"},
        },
    }});
    sandbox.prepend_delta(&delta);
    let shown = sandbox.run("config show conversation").stdout;
    for words in ["evil", "conversation.tools.'*'", "none", "\"unattended\""] {
        assert_lacks(&shown, words);
    }
    sandbox.run("q -t a x");
    assert_eq!(offered(&server), ["a"]);
}

#[test]
fn what_the_person_trusts_is_what_the_workspace_has_now() {
    let settings = |script: &str| {
        format!(
            "[conversation.tools.greet]\ncommand = ['sh', 'greet.sh', '{{{{tool.options.to}}}}']\nrun = 'unattended'\n\
             options.to = '{script}'\n"
        )
    };
    let script = "echo hello $1\n";
    let checksum = Checksum::compute(script.as_bytes());
    let text = |to: &str| {
        format!(
            "tool greet, unattended: sh greet.sh '{{{{tool.options.to}}}}'; options = {{\"to\":\"{to}\"}}; \
             greet.sh as it is now ({checksum})"
        )
    };
    let ran = |to: &str, script: &str| {
        let (server, sandbox) = in_workspace(&settings(to), "greet");
        sandbox.write("greet.sh", script);
        agree(&sandbox, &text("jean"));
        let run = sandbox.jp("q --new x");
        let result = results(&server).remove(0);
        assert_eq!(run.code, if result.contains("refused") { 3 } else { 0 });
        result
    };
    assert_eq!(ran("jean", script), "hello jean\n");
    assert!(ran("all; id", script).contains("refused"));
    assert!(ran("jean", "echo changed\n").contains("refused"));
}

#[test]
fn tool_that_the_persons_own_file_lets_run_is_asked_about_where_the_workspace_has_its_script() {
    let tools = "conversation.tools.greet = { command = 'sh greet.sh', run = 'unattended' }";
    let (server, sandbox) = calling_once(tools, "greet", json!({}));
    sandbox.write("greet.sh", "echo hello\n");
    let run = sandbox.fail("q --new x", 3);
    assert_contains(&run.stderr, "the workspace affects what it runs");
    assert_contains(&results(&server)[0], "refused");
}

#[test]
fn history_of_somebody_else_switches_no_tool_on() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.configure("conversation.tools.run_command = { enable = false, run = 'unattended' }");
    sandbox.run("q --new x");
    let delta = json!({"conversation": {"tools": {"run_command": {"enable": true}}}});
    sandbox.prepend_delta(&delta);
    let run = sandbox.run("q x");
    assert_contains(&run.stderr, "off until you enable it with `-t run_command`");
    assert!(!offers(&server, "run_command"));
    sandbox.run("q -t run_command x");
    sandbox.run("q x");
    assert!(offers(&server, "run_command"));
    sandbox.run("c fork");
    sandbox.run("q x");
    assert!(offers(&server, "run_command"));
}

#[test]
fn workspace_switches_nothing_on_that_the_person_has_off_for_all() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let tools = "[conversation.tools.read_file]\nenable = true\n";
    sandbox.append_config(tools);
    sandbox.configure("conversation.tools.'*'.enable = false");
    sandbox.run("q --new x");
    assert_eq!(offered(&server), [""; 0]);
}

#[test]
fn what_jp_keeps_for_the_person_is_written_by_no_tool_where_their_home_is_the_workspace() {
    let create = calling(&[(
        "create_file",
        json!({"path": ".config/jp/extra.toml", "content": "x"}),
    )]);
    let (sandbox, server) = Sandbox::with_replies(vec![create, answer("Done.")]);
    let home = sandbox.home.display().to_string();
    fs::create_dir_all(sandbox.home.join(".jp")).unwrap();
    fs::copy(
        sandbox.path(".jp/config.toml"),
        sandbox.home.join(".jp/config.toml"),
    )
    .unwrap();
    fs::write(sandbox.home.join(".jp/.id"), "home\n").unwrap();
    sandbox.run(&["-w", &home, "q", "--new", "--yes", "-t", "create_file", "x"]);
    assert_contains(&results(&server)[0], "error");
    assert!(!sandbox.home.join(".config/jp/extra.toml").exists());
}

#[test]
fn denied_tool_is_not_offered() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.configure("conversation.tools.read_file.run = 'deny'");
    sandbox.run("q --new x");
    assert_eq!(
        offered(&server),
        ["list_files", "search_files", "read_more"]
    );
}

#[test]
fn calls_that_look_at_files_come_after_those_before_them_that_change_some() {
    let calls = [
        ("create_file", json!({"path": "a.txt", "content": "made"})),
        ("read_file", json!({"path": "a.txt"})),
        (
            "run_command",
            json!({"command": "printf ' and changed' >> a.txt"}),
        ),
        ("read_file", json!({"path": "a.txt"})),
    ];
    let (sandbox, server) = Sandbox::with_replies(vec![calling(&calls), answer("Done.")]);
    sandbox.run("q --yes -t create_file -t run_command x");
    let results = results(&server);
    assert_contains(&results[1], "made\n");
    assert_contains(&results[3], "made and changed\n");
}

#[test]
fn what_cant_be_offered_is_found_before_anything_happens() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let long = format!("'{}' = {{ command = 'a' }}", "x".repeat(65));
    for (tool, words) in [
        (
            "x = {}",
            "conversation.tools.x in ~/.config/jp/config.toml has no command, and is not a builtin tool",
        ),
        (
            "x = { command = '' }",
            "conversation.tools.x.command in ~/.config/jp/config.toml is empty",
        ),
        (
            "x = { command = '  ' }",
            "conversation.tools.x.command in ~/.config/jp/config.toml is empty",
        ),
        (
            "x = { command = [''] }",
            "conversation.tools.x.command in ~/.config/jp/config.toml is empty",
        ),
        (
            "x = { command = \"a 'b\" }",
            "has an unclosed quotation mark",
        ),
        (
            "x = { command = \"sh -c 'grep {{tool.arguments.word}} a'\" }",
            "hint: pass the argument as a separate word: command = [\"sh\", \"-c\", 'grep -e \"$1\"",
        ),
        (
            "x = { command = \"gawk -f a.awk -e '/{{tool.arguments.word}}/'\" }",
            "hint: awk takes the argument with `-v word={{tool.arguments.word}}`",
        ),
        ("'a b' = { command = 'a' }", "conversation.tools.'a b' in"),
        (
            "'é' = { command = 'a' }",
            "has a name that providers refuse",
        ),
        (&*long, "has a name that providers refuse"),
        (
            "read_more = { command = 'a' }",
            "conversation.tools.read_more.command in",
        ),
        (
            "read_more = { source = 'local' }",
            "redefines the builtin tool `read_more`",
        ),
        (
            "read_more = { summary = 'Reads.' }",
            "has no effect on the builtin tool `read_more`",
        ),
        (
            "x = { source = 'builtin' }",
            "conversation.tools.x.source in",
        ),
        (
            "x = { source = 'elsewhere' }",
            "is not a source of tools: `elsewhere`",
        ),
        (
            "x = { command = 'a', parameters = { n = 1 } }",
            "conversation.tools.x.parameters.n in",
        ),
        (
            "x = { command = 'a', parameters = { n = { type = 'text' } } }",
            "is not a JSON Schema: at ",
        ),
        (
            "x = { command = 'a', keep = true }",
            "conversation.tools.x.keep in",
        ),
        (
            "x = { command = 'a', stateful = true, actions = [] }",
            "is empty",
        ),
        (
            "x = { command = 'a', timeout_secs = 0 }",
            "conversation.tools.x.timeout_secs in",
        ),
        (
            "'*' = { command = 'a' }",
            "conversation.tools.'*'.command in",
        ),
        (
            "'*' = { timeout_secs = 0 }",
            "conversation.tools.'*'.timeout_secs in",
        ),
    ] {
        sandbox.configure(format!("[conversation.tools]\n{tool}\n"));
        sandbox.fail("q --new x", 1).says([words]);
        sandbox.fail("q --new --explain x", 1).says([words]);
    }
    fs::remove_file(sandbox.path(USER)).unwrap();
    sandbox
        .fail("q --new -c conversation.tools.x.run=deny x", 2)
        .says(["tools.x in `-c"]);
    assert_eq!(server.received().len(), 0);
    assert!(!sandbox.path(".jp/conversations").exists());
}

/// Returns the blocks of the documentation that are in a language.
fn documented(language: &str) -> Vec<String> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let text = fs::read_to_string(page).unwrap();
    let begin = format!("```{language}\n");
    let blocks = text.split(&begin).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn tools_of_the_documentation_run() {
    let config: String = documented("toml")
        .into_iter()
        .filter(|block| block.contains("scripts/"))
        .collect();
    let scripts = [documented("bash").remove(0), documented("python").remove(0)];
    let arguments = json!({"name": "a.md"});
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("todo", json!({})), ("note", arguments)]),
        answer("Done."),
    ]);
    sandbox.configure(config);
    sandbox.write("src/main.rs", "// TODO: all of it\n");
    sandbox.write("notes/a.md", "# A note\n");
    for script in scripts {
        let name = script
            .lines()
            .nth(1)
            .unwrap()
            .split(':')
            .next()
            .unwrap()
            .trim_start_matches("# ");
        sandbox.write_program(name, &script);
    }
    let no = "conversation.tools.note.questions.archive.answer=false";
    let run = sandbox.run(&["q", "--new", "--yes", "-c", no, "x"]);
    let results = results(&server);
    assert_eq!(results[0], "src/main.rs:1:// TODO: all of it\n");
    if run.stderr.contains("python3") {
        return testing::skip("python3 is not installed");
    }
    assert_contains(&results[1], "# A note");
    assert_lacks(&results[1], "archived");
}

#[test]
fn tool_of_an_unknown_server_is_left_out_with_a_warning() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.configure("conversation.tools.notes.source = 'mcp.bear.notes'");
    sandbox.run("q --new x").says([
        "conversation.tools.notes.source",
        "the MCP server `bear`, which is not configured",
        "[providers.mcp.bear]",
    ]);
    assert!(!offers(&server, "notes"));
    sandbox.configure("conversation.tools.notes = { source = 'mcp.bear.notes', enable = false }");
    assert_lacks(&sandbox.run("q --new x").stderr, "notes");
}

#[test]
fn keys_are_kept_from_every_kind_of_tool() {
    let spawn = |handle: &str| json!({"action": "spawn", "handle": handle});
    let in_shell = json!({"action": "apply", "handle": "s", "input": {"text": "env >shell.env"}});
    let (sandbox, _) = Sandbox::with_replies(vec![
        calling(&[
            ("local", json!({})),
            ("run_command", json!({"command": "env >run_command.env"})),
            ("kept", spawn("k")),
            ("shell", spawn("s")),
        ]),
        calling(&[("shell", in_shell)]),
        answer("Done."),
    ]);
    let line = r#"{"content":[{"type":"text","text":"up"}]}"#;
    sandbox.write(
        "kept.sh",
        format!("env >kept.env\nwhile read -r line; do echo '{line}'; done\n"),
    );
    let tools = "conversation.tools.local.command = ['sh', '-c', 'env >local.env']\n\
                 conversation.tools.kept = { command = 'sh kept.sh', stateful = true }\n";
    sandbox.configure(tools);
    let mut command = sandbox.command("q --new --yes -t shell -t run_command env");
    for variable in ["GITHUB_PAT", "NPM_CONFIG__AUTH", "AWS_SESSION"] {
        command.env(variable, "s3cret");
    }
    command.env("KEYBOARD", "qwerty");
    testing::run(command).succeeded();
    for tool in ["local", "run_command", "kept", "shell"] {
        let environment = sandbox.read(&format!("{tool}.env"));
        assert!(
            environment.contains("KEYBOARD=qwerty"),
            "{tool}: {environment}"
        );
        assert!(!environment.contains("s3cret"), "{tool}: {environment}");
    }
}
