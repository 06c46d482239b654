//! Prompts at the terminal while tools run: the real binary in a pty.

#![cfg(unix)]

use std::{fs, process::Command};

use serde_json::{Value, json};
use testing::{
    Reply, Sandbox, Server, Terminal, answer, assert_contains, assert_count, assert_lacks,
    calling_as, content_text, items, last_request, mock::Mock, skip,
};

const RUN: &str = "Run it? [y]es, [n]o, [a]lways this turn, [e]dit arguments, [w]hy not:";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// Somebody at a terminal, a workspace with tools and a model that calls them.
struct Desk {
    sandbox: Sandbox,
    server: Server,
}

impl Desk {
    /// The model makes each of `calls` in a separate answer, then says `Done.`
    fn new(calls: &[Value]) -> Self {
        let mut replies: Vec<_> = calls.iter().map(calling).collect();
        replies.push(answer("Done."));
        let server = Server::new(replies);
        Self {
            sandbox: Sandbox::new().with_server(&server),
            server,
        }
    }

    /// The model calls a tool, each time on its own, that returns these blocks until it has an answer to `q`.
    fn asking(calls: usize, blocks: &[Value]) -> Self {
        let desk = Self::new(&vec![json!([["ask", {}]]); calls]);
        let asked = json!({"content": blocks});
        let script = format!(
            "case \"$1\" in\n*'\"answers\":{{}}'*) cat <<'END'\n{asked}\nEND\n;;\n*) printf '%s' \"$1\" > context; echo heard;;\nesac\n"
        );
        desk.tool("ask", "run = \"unattended\"", &script);
        desk
    }

    /// Adds a local tool, a shell script that is handed its context as its argument.
    fn tool(&self, name: &str, settings: &str, script: &str) {
        let path = self.sandbox.write(&format!("~/tools/{name}.sh"), script);
        let path = path.display();
        self.configure(
            name,
            &format!("command = \"sh {path} {{{{context}}}}\"\n{settings}"),
        );
    }

    fn configure(&self, name: &str, settings: &str) {
        let path = self.sandbox.path("~/.config/jp/config.toml");
        let before = fs::read_to_string(&path).unwrap_or_default();
        let tool = format!("[conversation.tools.{name}]\nsource = \"local\"\n{settings}\n");
        self.sandbox.configure(before + &tool);
    }

    /// Adds the tool `greet`: it says whom it greets, and keeps count.
    fn greeter(&self) {
        self.tool(
            "greet",
            "parameters.name.type = \"string\"",
            "echo run >> runs\nprintf '%s' \"$1\" | sed 's/.*\"name\":\"\\([a-z]*\\)\"}.*/Hello, \\1!/'",
        );
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.sandbox.path("runs"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    fn command(&self, words: &[&str]) -> Command {
        self.sandbox.command(&[&["query"], words].concat())
    }

    fn ask(&self) -> Terminal {
        Terminal::run(self.command(&["Begin."]))
    }

    /// Starts the query with an editor, a shell script that is handed the file.
    fn ask_with_editor(&self, script: &str) -> Terminal {
        let path = self
            .sandbox
            .write_program("~/bin/my editor", format!("#!/bin/sh\n{script}"));
        let mut command = self.command(&["Begin."]);
        command.env("EDITOR", format!("'{}' --wait", path.display()));
        Terminal::run(command)
    }

    /// Returns the results that the model received, in order.
    fn results(&self) -> Vec<String> {
        let request = last_request(&self.server);
        let messages = items(&request["messages"]).iter();
        messages
            .filter(|message| message["role"] == "tool")
            .map(|message| content_text(&message["content"]))
            .collect()
    }

    /// Returns the answer that the tool was handed.
    fn answer(&self) -> Value {
        let context = self.sandbox.read("context");
        serde_json::from_str::<Value>(&context).unwrap()["tool"]["answers"]["q"].clone()
    }
}

/// A model's answer that calls tools: `[[NAME, ARGUMENTS], …]`.
fn calling(calls: &Value) -> Reply {
    let calls: Vec<_> = items(calls)
        .iter()
        .enumerate()
        .map(|(index, call)| (format!("call_{index}"), call[0].as_str().unwrap(), &call[1]))
        .collect();
    calling_as("Let me see.", &calls)
}

fn greeting() -> Desk {
    let desk = Desk::new(&[json!([["greet", {"name": "ada"}]])]);
    desk.greeter();
    desk
}

#[test]
fn call_runs_once_the_person_agrees() {
    let desk = greeting();
    let mut terminal = desk.ask();
    // The model's text before the call ends with a new line.
    terminal.expect("Let me see.\r\n");
    terminal.expect("The model wants to run `greet`:");
    terminal.expect("greet.sh");
    terminal.expect("\"name\": \"ada\"");
    assert_eq!(desk.runs(), 0);
    terminal.answer(RUN, "y\n");
    terminal.finish("Done.");
    assert_eq!(desk.runs(), 1);
    assert_eq!(desk.results(), ["Hello, ada!"]);
}

#[test]
fn model_receives_the_refusal_of_a_call() {
    for no in ["n\n", "\n", CTRL_D] {
        let desk = greeting();
        let mut terminal = desk.ask();
        terminal.answer(RUN, no);
        terminal.finish("Done.");
        assert_eq!(desk.runs(), 0);
        assert_contains(&desk.results()[0], "The user refused the call of `greet`.");
    }
}

#[test]
fn model_is_told_why_not() {
    let desk = greeting();
    let mut terminal = desk.ask();
    terminal.answer(RUN, "w\n");
    terminal.answer("Why not?", "she is asleep\n");
    terminal.finish("Done.");
    assert_contains(
        &desk.results()[0],
        "The user refused the call of `greet`: she is asleep",
    );
}

#[test]
fn anything_else_is_asked_again_with_help() {
    let desk = greeting();
    let mut terminal = desk.ask();
    terminal.answer(RUN, "what?\n");
    terminal.expect("refuses it, and tells the model your reason");
    terminal.answer(RUN, "YES\n");
    assert_eq!(terminal.wait(), 0);
    assert_eq!(desk.runs(), 1);
}

#[test]
fn always_this_turn_holds_for_calls_that_wait_too() {
    let call = |name: &str| json!(["greet", {"name": name}]);
    let desk = Desk::new(&[
        json!([call("ada"), call("bob"), call("cyd")]),
        json!([call("dan")]),
    ]);
    desk.greeter();
    let mut terminal = desk.ask();
    terminal.answer(RUN, "a\n");
    terminal.finish("Done.");
    assert_eq!(desk.runs(), 4);
    assert_count(terminal.output(), RUN, 1);
}

#[test]
fn edited_arguments_are_shown_again_before_they_run() {
    let desk = greeting();
    // The editor first saves invalid JSON, and finds it again the second time.
    let mut terminal = desk.ask_with_editor(
        "test \"$1\" = --wait || exit 1\nif grep -q oops \"$2\"; then echo '{\"name\":\"eve\"}' > \"$2\"; else echo oops > \"$2\"; fi",
    );
    terminal.answer(RUN, "e\n");
    terminal.expect("The arguments are not a JSON object");
    terminal.answer(RUN, "e\n");
    terminal.expect("\"name\": \"eve\"");
    assert_eq!(desk.runs(), 0);
    terminal.answer(RUN, "y\n");
    terminal.finish("Done.");
    let results = desk.results();
    assert_contains(&results[0], "The user changed the arguments");
    assert_contains(&results[0], "Hello, eve!");
}

#[test]
fn edited_arguments_that_do_not_fit_are_asked_for_again() {
    let desk = greeting();
    let mut terminal = desk.ask_with_editor("echo '{\"name\":7}' > \"$2\"");
    terminal.answer(RUN, "e\n");
    terminal.expect("The arguments of `greet` do not match its parameters: at /name");
    terminal.answer(RUN, "n\n");
    assert_eq!(terminal.wait(), 0);
    assert_eq!(desk.runs(), 0);
}

#[test]
fn editor_that_changes_nothing_or_fails_leads_back_to_the_question() {
    for (script, said) in [
        ("true", "The arguments are unchanged."),
        (": > \"$2\"", "The arguments are unchanged."),
        ("exit 3", "The editor ended with exit status: 3"),
    ] {
        let desk = greeting();
        let mut terminal = desk.ask_with_editor(script);
        terminal.answer(RUN, "e\n");
        terminal.expect(said);
        terminal.answer(RUN, "n\n");
        assert_eq!(terminal.wait(), 0);
    }
}

#[test]
fn missing_editor_is_named() {
    let path = std::env::var("PATH").unwrap();
    for (editor, path, said) in [
        (
            "no-such-editor -w",
            path.as_str(),
            "no-such-editor -w` could not be started",
        ),
        ("'", &path, "is not a valid command line"),
        ("", "/nowhere", "jp found no editor. Set VISUAL or EDITOR"),
    ] {
        let desk = greeting();
        let mut command = desk.command(&["Begin."]);
        command.env("VISUAL", editor).env("PATH", path);
        let mut terminal = Terminal::run(command);
        terminal.answer(RUN, "e\n");
        terminal.expect(said);
        terminal.answer(RUN, "n\n");
        assert_eq!(terminal.wait(), 0);
    }
}

#[test]
fn yes_allows_without_asking() {
    let desk = greeting();
    let mut terminal = Terminal::run(desk.command(&["--yes", "Begin."]));
    assert_eq!(terminal.wait(), 0);
    assert_eq!(desk.runs(), 1);
    assert_lacks(terminal.output(), RUN);
}

#[test]
fn prompts_go_to_stderr_whatever_stdout_is_for() {
    for options in [&["-q"][..], &["-F", "json"]] {
        let desk = greeting();
        let out = desk.sandbox.path("out");
        let command = desk.command(&[options, &["Begin."]].concat());
        let mut terminal = Terminal::writing_to(command, fs::File::create(&out).unwrap());
        terminal.answer(RUN, "y\n");
        assert_eq!(terminal.wait(), 0);
        assert_eq!(desk.runs(), 1);
        let out = fs::read_to_string(out).unwrap();
        assert!(out.contains("Done.") && !out.contains(RUN), "{out}");
    }
}

#[test]
fn person_is_asked_on_the_terminal_where_stdin_is_piped() {
    let desk = greeting();
    let mut terminal = Terminal::piped(desk.command(&["Begin."]), "a diff\n");
    terminal.answer(RUN, "y\n");
    terminal.finish("Done.");
    assert_eq!(desk.runs(), 1);
    let request = last_request(&desk.server).to_string();
    assert_contains(&request, "a diff");
    assert_contains(&request, "Begin.");
}

#[test]
fn only_the_persons_word_trusts_a_workspace_with_a_tool() {
    let desk = Desk::new(&[json!([["greet", {}]]), json!([["greet", {}]])]);
    let tool = "[conversation.tools.greet]\ncommand = \"printf hello\"\nrun = \"unattended\"\n";
    desk.sandbox.append_config(tool);
    let mut terminal = desk.ask();
    terminal.expect("tool greet, unattended: printf hello");
    terminal.answer("[t]rust it from now on", "y\n");
    terminal.answer("[t]rust it from now on", "t\n");
    terminal.finish("Done.");
    let desk = Desk {
        server: Server::new(vec![calling(&json!([["greet", {}]])), answer("Done.")]),
        ..desk
    };
    let url = format!("providers.llm.llamacpp.base_url={}", desk.server.url());
    let run = testing::run(desk.command(&["-c", &url, "Again."])).succeeded();
    assert_contains(&run.stderr, "Called greet: 5 B");
}

#[test]
fn call_that_was_not_shown_whole_is_not_approved() {
    let content = (1..=250)
        .map(|number| format!("line {number}\n"))
        .collect::<String>();
    let desk = Desk::new(&[json!([["create_file", {"path": "a.txt", "content": content}]])]);
    let mut terminal = Terminal::run(desk.command(&["-t", "create_file", "Begin."]));
    terminal.expect("Some of it is not shown. Type v to see all of it.");
    terminal.answer(RUN, "y\n");
    terminal.expect("Some of it is not shown. Type v to see all of it.");
    assert!(!desk.sandbox.path("a.txt").exists());
    terminal.answer(RUN, "v\n");
    terminal.expect("+line 250");
    terminal.answer(RUN, "y\n");
    terminal.finish("Done.");
    assert_eq!(desk.sandbox.read("a.txt"), content);
}

#[test]
fn call_without_a_terminal_is_refused() {
    let desk = greeting();
    let run = testing::run(desk.command(&["Begin."])).failed(3);
    assert_contains(&run.stderr, "`--yes`");
    assert_lacks(&run.stderr, RUN);
    assert_eq!(desk.runs(), 0);
}

#[test]
fn what_was_typed_before_a_prompt_does_not_answer_it() {
    let desk = Desk::asking(
        1,
        &[
            json!({"type": "question", "question": {"id": "first", "text": "What now?", "schema": {"type": "boolean"}}}),
            question(&json!({"type": "string"}), None),
        ],
    );
    let mut terminal = desk.ask();
    // The second line comes before the second question, and is not its answer.
    terminal.answer("What now? [y/n]", "y\nmeant for something else\n");
    terminal.answer("What now?", "this\n");
    assert_eq!(terminal.wait(), 0);
    assert_eq!(desk.answer(), "this");
}

fn question(schema: &Value, default: Option<Value>) -> Value {
    let mut question = json!({"id": "q", "text": "What now?", "schema": schema});
    if let Some(default) = default {
        question["default"] = default;
    }
    json!({"type": "question", "question": question})
}

/// Answers a question with this schema: waits for each text, then types the one that follows it.
#[track_caller]
fn answered(schema: &Value, default: Option<Value>, dialogue: &[(&str, &str)]) -> Value {
    let desk = Desk::asking(1, &[question(schema, default)]);
    let mut terminal = desk.ask();
    terminal.expect("The tool `ask` asks:");
    dialogue
        .iter()
        .for_each(|(shown, typed)| terminal.answer(shown, typed));
    terminal.finish("Done.");
    desk.answer()
}

#[test]
fn boolean_is_answered_with_yes_or_no() {
    let schema = json!({"type": "boolean"});
    assert_eq!(answered(&schema, None, &[("What now? [y/n]", "y\n")]), true);
    assert_eq!(
        answered(
            &schema,
            None,
            &[("[y/n]", "\n"), ("Type y or n.", ""), ("[y/n]", "No\n")]
        ),
        false
    );
    assert_eq!(
        answered(&schema, Some(json!(true)), &[("[Y/n]", "\n")]),
        true
    );
    assert_eq!(
        answered(
            &schema,
            Some(json!(false)),
            &[("[y/N]", "?\n"), ("Ctrl-D", ""), ("[y/N]", "\n")]
        ),
        false
    );
    // A default that is no answer is none.
    assert_eq!(
        answered(&schema, Some(json!("yes")), &[("[y/n]", "n\n")]),
        false
    );
}

#[test]
fn one_of_several_is_chosen_by_its_number_or_its_words() {
    let schema = json!({"type": "string", "enum": ["main", "develop", "1"]});
    let shown = ("  2. develop", "");
    assert_eq!(
        answered(&schema, None, &[shown, ("Which one?", "2\n")]),
        "develop"
    );
    assert_eq!(
        answered(&schema, None, &[shown, ("Which one?", "main\n")]),
        "main"
    );
    // An answer that could be a value or a number is the value.
    assert_eq!(answered(&schema, None, &[("Which one?", "1\n")]), "1");
    assert_eq!(
        answered(
            &schema,
            Some(json!("develop")),
            &[("Which one? [develop]", "\n")]
        ),
        "develop"
    );
    let wrong = [
        ("Which one?", "4\n"),
        ("Type the number", ""),
        ("Which one?", "\n"),
        ("Type the number", ""),
    ];
    assert_eq!(
        answered(
            &schema,
            None,
            &[&wrong[..], &[("Which one?", "3\n")]].concat()
        ),
        "1"
    );
    let titled =
        json!({"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f"}]});
    assert_eq!(
        answered(
            &titled,
            None,
            &[("1. #f00 (Red)", ""), ("Which one?", "Red\n")]
        ),
        "#f00"
    );
    assert_eq!(
        answered(&json!({"enum": [10, null]}), None, &[("Which one?", "1\n")]),
        10
    );
}

#[test]
fn text_is_typed_on_a_line() {
    let schema = json!({"type": "string"});
    assert_eq!(
        answered(&schema, None, &[("What now?", "go  on!\n")]),
        "go  on!"
    );
    assert_eq!(answered(&schema, None, &[("What now?", "\n")]), "");
    assert_eq!(
        answered(&schema, Some(json!("stop")), &[("What now? [stop]", "\n")]),
        "stop"
    );
    let bounded = json!({"type": "string", "minLength": 2, "description": "Two letters or more."});
    let dialogue = [
        ("Two letters or more.", ""),
        ("What now?", "\n"),
        ("is not valid", ""),
        ("What now?", "ok\n"),
    ];
    assert_eq!(answered(&bounded, None, &dialogue), "ok");
}

#[test]
fn number_is_typed_as_one() {
    let schema = json!({"type": "integer", "minimum": 1});
    let dialogue = [
        ("What now?", "many\n"),
        ("Type a number", ""),
        ("What now?", "0\n"),
        ("is not valid", ""),
    ];
    assert_eq!(
        answered(
            &schema,
            None,
            &[&dialogue[..], &[("What now?", "3\n")]].concat()
        ),
        3
    );
    assert_eq!(
        answered(
            &json!({"type": "number"}),
            Some(json!(0.5)),
            &[("What now? [0.5]", "\n")]
        ),
        0.5
    );
}

#[test]
fn anything_else_is_written_in_the_editor_until_it_fits() {
    let schema = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}});
    let desk = Desk::asking(1, &[question(&schema, Some(json!({"name": "default"})))]);
    // Invalid JSON, then JSON that does not match; each time the editor opens the saved text.
    let mut terminal = desk.ask_with_editor(
        "case $(cat \"$2\") in *default*) echo '{';; '{') echo '{\"name\":\"\"}';; *) echo '{\"name\":\"ada\"}';; esac > \"$2.new\"; mv \"$2.new\" \"$2\"",
    );
    let prompt = "or type n to give no answer:";
    terminal.expect("What now?");
    terminal.answer(prompt, "\n");
    terminal.expect("That is not JSON");
    terminal.answer(prompt, "\n");
    terminal.expect("That answer is not valid: at /name");
    terminal.answer(prompt, "\n");
    terminal.finish("Done.");
    assert_eq!(desk.answer(), json!({"name": "ada"}));
}

#[test]
fn editor_begins_with_a_template_of_the_answer() {
    let schema =
        json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}});
    let desk = Desk::asking(1, &[question(&schema, None)]);
    let mut terminal =
        desk.ask_with_editor("echo \"$(sed 's/: \"\"/: \"ada\"/' \"$2\")\" > \"$2\"");
    terminal.answer("Press Enter to open it in your editor", "\n");
    assert_eq!(terminal.wait(), 0);
    assert_eq!(desk.answer(), json!({"name": "ada"}));
}

#[test]
fn same_for_this_turn_is_not_asked_again() {
    for (schema, typed, answer) in [
        (json!({"type": "boolean"}), "y!\n", json!(true)),
        (
            json!({"type": "string", "enum": ["main", "develop"]}),
            "2!\n",
            json!("develop"),
        ),
    ] {
        let desk = Desk::asking(2, &[question(&schema, None)]);
        let mut terminal = desk.ask();
        terminal.answer("(? for help)", typed);
        terminal.finish("Done.");
        assert_count(terminal.output(), "(? for help)", 1);
        assert_eq!(desk.answer(), answer);
        assert_eq!(desk.results(), ["heard\n"; 2]);
    }
}

#[test]
fn question_without_an_answer_is_an_error_result() {
    for (schema, typed) in [
        (json!({"type": "boolean"}), CTRL_D),
        (json!({"type": "string"}), CTRL_D),
        (json!({"type": "string", "enum": ["a"]}), CTRL_D),
        (json!({"type": "array"}), CTRL_D),
        (json!({"type": "array"}), "n\n"),
    ] {
        let desk = Desk::asking(1, &[question(&schema, None)]);
        let mut terminal = desk.ask();
        terminal.expect("What now?");
        // The select and the editor ask on a line of their own.
        terminal.answer("\x1b[0m ", typed);
        terminal.finish("Done.");
        assert_contains(&desk.results()[0], "The user did not answer");
    }
}

#[test]
fn ctrl_c_at_a_prompt_ends_the_turn() {
    let asked = json!({"content": [question(&json!({"type": "string"}), None)]});
    let asks = format!("cat <<'END'\n{asked}\nEND");
    for (prompt, settings, script) in [
        (RUN, "run = \"ask\"", "true"),
        ("What now?", "run = \"unattended\"", asks.as_str()),
    ] {
        let desk = Desk::new(&[json!([["sleep", {}], ["ask", {}]])]);
        desk.tool(
            "sleep",
            "run = \"unattended\"",
            "echo $$ > pid\nexec sleep 60",
        );
        desk.tool("ask", settings, script);
        let mut terminal = desk.ask();
        let modes = terminal.modes();
        terminal.expect(prompt);
        let pid = wait_for(|| {
            fs::read_to_string(desk.sandbox.path("pid"))
                .ok()?
                .trim()
                .parse()
                .ok()
        });
        terminal.send("half a line");
        terminal.send(CTRL_C);
        terminal.expect("interrupted");
        assert_eq!(terminal.wait(), 130);
        assert_eq!(terminal.modes(), modes);
        assert!(!runs(pid), "the other tool still runs");
        let events = desk.sandbox.events();
        let results = events
            .iter()
            .filter(|event| event["type"] == "tool_call_response");
        let results: Vec<_> = results
            .map(|event| content_text(&event["content"]))
            .collect();
        let is_told = |result: &String| result.starts_with("The call was interrupted");
        assert!(
            results.len() == 2 && results.iter().all(is_told),
            "{results:?}"
        );
        assert_lacks(terminal.output(), "no terminal");
    }
}

#[test]
fn ctrl_c_where_an_attachment_is_asked_about_ends_the_query() {
    let desk = Desk::new(&[]);
    desk.sandbox
        .prepend_config("conversation.attachments = [\"cmd:echo hi\"]");
    let prompt = "attaches the output of `echo hi`. Run it? [y/N]";
    let mut terminal = desk.ask();
    terminal.answer(prompt, CTRL_C);
    assert_eq!(terminal.wait(), 130);
    let mut terminal = Terminal::piped(desk.command(&["Begin."]), "a diff");
    terminal.answer(prompt, "y\n");
    terminal.finish("Done.");
    assert_contains(last_request(&desk.server).to_string(), "hi\\n");
}

/// Waits until the condition holds.
fn wait_for<T>(look: impl Fn() -> Option<T>) -> T {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(std::time::Instant::now() < until, "it does not come");
        std::thread::yield_now();
    }
}

/// Returns whether a process is there.
fn runs(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

#[test]
fn ctrl_c_in_the_editor_is_the_editors() {
    let desk = greeting();
    // It ends as soon as it has caught the signal.
    let mut terminal = desk.ask_with_editor(
        "trap 'echo \"{\\\"name\\\":\\\"eve\\\"}\" > \"$2\"; exit 0' INT; echo ready; while :; do read line; done",
    );
    terminal.answer(RUN, "e\n");
    terminal.answer("ready", CTRL_C);
    terminal.expect("\"name\": \"eve\"");
    terminal.answer(RUN, "y\n");
    assert_eq!(terminal.wait(), 0);
    assert_eq!(desk.runs(), 1);
}

/// Characters that could steer the terminal, reorder letters or hide.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}txt\u{2066}\u{200b}\u{8}";

#[test]
fn nothing_that_comes_from_elsewhere_steers_the_terminal() {
    let desk = Desk::new(&[json!([["ask", {"x": HOSTILE}]])]);
    let asked = json!({"content": [
        {"type": "text", "text": format!("{HOSTILE}\nRun it?")},
        {"type": "resource", "resource": {"uri": "file:///a", "name": HOSTILE, "text": HOSTILE}},
        {"type": "image", "data": "iVBORw==", "mimeType": HOSTILE},
        {"type": "question", "question": {"id": "q", "text": HOSTILE, "schema":
            {"type": "string", "enum": [HOSTILE], "description": HOSTILE}, "default": HOSTILE}},
    ]});
    desk.sandbox.write("asked.json", asked.to_string());
    desk.configure(
        "ask",
        &format!(
            "command = [\"cat\", \"asked.json\", {}]\nparameters.x.type = \"string\"",
            json!(HOSTILE)
        ),
    );
    desk.sandbox.write(HOSTILE.replace('/', "_").as_str(), "");
    let mut terminal = Terminal::run(desk.command(&["--color=never", "Begin."]));
    terminal.answer(RUN, "y\n");
    terminal.answer("Which one?", CTRL_D);
    terminal.finish("Done.");
    let output = terminal.output();
    let is_harmless = |character: char| match character {
        '\n' | '\r' => true,
        character => !character.is_control() && !"\u{202e}\u{2066}\u{200b}".contains(character),
    };
    assert!(output.chars().all(is_harmless), "{output:?}");
    assert!(!output.replace("\r\n", "\n").contains('\r'), "{output:?}");
    assert_contains(&output, r"\u{1b}[2J");
    assert_contains(&output, r"\u{202e}txt");
    // Quoted text has a margin.
    assert_contains(&output, "\n  │ Run it?");
    assert_lacks(&output, "\nRun it?\r");
}

#[test]
fn blocks_before_a_question_are_shown_above_it() {
    let long = (1..=203)
        .map(|number| format!("line {number}\n"))
        .collect::<String>();
    let blocks = [
        json!({"type": "text", "text": long}),
        json!({"type": "resource", "resource": {"uri": "file:///a.rs", "mimeType": "text/x-rust", "text": "fn main() {}"}}),
        json!({"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "AAAA"}}),
        json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
        question(&json!({"type": "string"}), None),
    ];
    let desk = Desk::asking(1, &blocks);
    let mut terminal = desk.ask();
    for shown in [
        "│ line 200",
        "… and 3 more lines",
        "│ fn main() {}",
        "a.pdf: application/pdf, 3 B)",
        "(a sound: audio/wav, 3 B)",
    ] {
        terminal.expect(shown);
    }
    terminal.answer("What now?", "ok\n");
    assert_eq!(terminal.wait(), 0);
    assert_lacks(terminal.output(), "line 201");
}

/// Prints blocks, and with them two questions until it has the answers.
const SURVEY: &str = r#"
import json, sys
answers = json.loads(sys.argv[1])["tool"]["answers"]
def question(id, text, schema, **more):
    return {"type": "question", "question": {"id": id, "text": text, "schema": schema, **more}}
page = {"type": "resource", "resource": {"uri": "file:///page.md", "mimeType": "text/markdown", "text": "A page"}}
if {"branch", "name"} <= answers.keys():
    said = "{branch} for {name}".format(**answers)
    print(json.dumps({"content": [page, {"type": "text", "text": said}]}))
else:
    print(json.dumps({"content": [
        page,
        question("branch", "Which branch?", {"type": "string", "enum": ["main", "develop"]}, default="main"),
        {"type": "text", "text": "One more thing."},
        question("name", "Your name?", {"type": "string", "minLength": 1}),
    ]}))
"#;

fn has_python() -> bool {
    let has = Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has {
        skip("python3 is not installed");
    }
    has
}

impl Desk {
    /// Adds the tool `survey`, in Python.
    fn survey(&self) {
        self.sandbox.write("survey.py", SURVEY);
        self.configure("survey", "command = \"python3 survey.py {{context}}\"");
    }
}

#[test]
fn tool_in_python_asks_two_questions_at_once() {
    if !has_python() {
        return;
    }
    let desk = Desk::new(&[json!([["survey", {}]])]);
    desk.survey();
    let mut terminal = desk.ask();
    terminal.answer(RUN, "y\n");
    terminal.expect("│ A page");
    terminal.answer("Which one? [main]", "2\n");
    terminal.expect("│ One more thing.");
    terminal.answer("Your name?", "ada\n");
    terminal.finish("Done.");
    let results = desk.results();
    assert_contains(&results[0], "A page");
    assert_contains(&results[0], "develop for ada");
    assert_lacks(&results[0], "One more thing.");
    let inquiries = desk
        .sandbox
        .events()
        .into_iter()
        .filter(|event| event["type"] == "inquiry_response");
    let answers: Vec<_> = inquiries.map(|event| event["answer"].clone()).collect();
    assert_eq!(answers, ["develop", "ada"]);
}

/// A call of the long turn: its tool and arguments, the answers to its prompts, and a part of its result.
type Scene = (
    &'static str,
    Value,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// The calls of the long turn: the model makes those of one list at once.
fn scenes() -> Vec<Vec<Scene>> {
    let greet = |name: &str| json!({"name": name});
    vec![
        vec![("greet", greet("ada"), &[(RUN, "y\n")], "Hello, ada!")],
        vec![("list", json!({}), &[(RUN, "yes\n")], "a.txt\nb.txt\n")],
        vec![(
            "survey",
            json!({}),
            &[
                (RUN, "y\n"),
                ("Which one?", "develop\n"),
                ("Your name?", "ada\n"),
            ],
            "develop for ada",
        )],
        vec![(
            "greet",
            greet("bob"),
            &[(RUN, "\n")],
            "The user refused the call of `greet`.",
        )],
        vec![(
            "greet",
            greet("cyd"),
            &[(RUN, "w\n"), ("Why not?", "she is asleep\n")],
            "The user refused the call of `greet`: she is asleep",
        )],
        vec![(
            "greet",
            greet("dan"),
            &[(RUN, "e\n"), ("\"name\": \"eve\"", ""), (RUN, "y\n")],
            "Hello, eve!",
        )],
        vec![
            ("count", json!({}), &[(RUN, "a\n")], "counted"),
            ("count", json!({}), &[], "counted"),
            ("count", json!({}), &[], "counted"),
        ],
        vec![("count", json!({}), &[], "counted")],
        vec![(
            "forbidden",
            json!({}),
            &[],
            "the user's configuration denies it",
        )],
        vec![("unknown", json!({}), &[], "There is no tool `unknown`.")],
        vec![(
            "read_file",
            json!({"path": "notes/a.txt"}),
            &[],
            "\"name\":\"notes/a.txt\"",
        )],
        vec![(
            "edit_file",
            json!({"path": "notes/b.txt", "old": "another", "new": "one more"}),
            &[("-another", ""), ("+one more", ""), (RUN, "y\n")],
            "Edited notes/b.txt: 1 line added, 1 removed.",
        )],
    ]
}

/// Writes aimock's script of the long turn.
fn fixtures(scenes: &[Vec<Scene>]) -> Value {
    let mut number = 0;
    let mut fixtures: Vec<_> = Vec::new();
    for (turn, calls) in scenes.iter().enumerate() {
        let call = |(name, arguments, ..): &Scene| {
            number += 1;
            json!({"id": format!("call_{number}"), "name": name, "arguments": arguments})
        };
        let calls: Vec<_> = calls.iter().map(call).collect();
        fixtures.push(
            json!({"match": {"userMessage": "Begin", "turnIndex": turn}, "response": {"toolCalls": calls}}),
        );
    }
    let end = json!({"content": "All of that is done."});
    fixtures.push(
        json!({"match": {"userMessage": "Begin", "turnIndex": scenes.len()}, "response": end}),
    );
    json!({ "fixtures": fixtures })
}

#[test]
fn turn_of_a_dozen_calls_is_answered_at_the_terminal() {
    let scenes = scenes();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fixtures.json");
    fs::write(&file, fixtures(&scenes).to_string()).unwrap();
    let Some(mock) = Mock::aimock(&file) else {
        return;
    };
    if !has_python() {
        return;
    }
    let desk = Desk {
        sandbox: Sandbox::new().with_url(&mock.url),
        server: Server::new(vec![answer("unused")]),
    };
    desk.greeter();
    desk.survey();
    desk.sandbox.write("notes/a.txt", "a note");
    desk.sandbox.write("notes/b.txt", "another");
    desk.configure("list", "command = [\"ls\", \"notes\"]");
    desk.tool("count", "", "echo counted");
    desk.tool("forbidden", "run = \"deny\"", "echo never");
    let config = desk.sandbox.path("~/.config/jp/config.toml");
    let settings =
        fs::read_to_string(&config).unwrap() + "[conversation.tools.edit_file]\nenable = true\n";
    fs::write(&config, settings).unwrap();
    let mut terminal = desk.ask_with_editor("echo \"$(sed 's/dan/eve/' \"$2\")\" > \"$2\"");
    for (_, _, dialogue, _) in scenes.iter().flatten() {
        dialogue
            .iter()
            .for_each(|(shown, typed)| terminal.answer(shown, typed));
    }
    terminal.finish("All of that is done.");
    assert_eq!(desk.sandbox.read("notes/b.txt"), "one more");
    check_stream(&desk.sandbox.events(), &scenes);
}

/// Checks that each call is in the stream with its result after it, before the next call of the model's.
#[track_caller]
fn check_stream(events: &[Value], scenes: &[Vec<Scene>]) {
    let is_of_a_call = |event: &&Value| event["type"].as_str().unwrap().starts_with("tool_call_");
    let mut events = events.iter().filter(is_of_a_call);
    for calls in scenes {
        let requests: Vec<_> = events.by_ref().take(calls.len()).collect();
        let results: Vec<_> = events.by_ref().take(calls.len()).collect();
        for ((name, arguments, _, expected), request) in calls.iter().zip(requests) {
            assert_eq!(
                (request["name"].as_str(), &request["arguments"]),
                (Some(*name), arguments)
            );
            let result = results
                .iter()
                .find(|result| result["id"] == request["id"])
                .unwrap();
            assert_eq!(result["type"], "tool_call_response");
            let blocks = items(&result["content"]).iter();
            let said: String = blocks
                .clone()
                .filter_map(|block| block["text"].as_str())
                .collect();
            let said = said + &blocks.map(Value::to_string).collect::<String>();
            assert!(said.contains(expected), "{expected:?} is not in {said:?}");
        }
    }
    assert_eq!(events.next(), None);
}
