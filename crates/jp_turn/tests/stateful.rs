//! Stateful tools, driven through whole turns: a scripted model calls real processes.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, VecDeque},
    error::Error,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use jp_conversation::{EventKind, ToolCallResponse};
use jp_llm::{BaseUrl, Body, Client, Endpoint};
use jp_resource::Checksum;
use jp_tool::StoredBlock;
use jp_turn::{
    Action, Answerer, Builtin, Command, Decision, Files, Host, Outcome, Permission, Reply, Source,
    Stateful, Surroundings, Tool, Toolbox, Turn, TurnEvent, run,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use testing::{Server, assert_contains, block_on, calling_as};

/// What every script starts with: `say TEXT STATUS` answers, `ask ID` asks.
const PRELUDE: &str = r#"
say() { printf '{"content":[{"type":"text","text":"%s"}],"_meta":{"computer.jp/status":"%s"}}\n' "$1" "$2"; }
ask() { printf '{"content":[{"type":"text","text":"before"},{"type":"question","question":{"id":"%s","text":"Which?","schema":{"type":"string"}}}],"_meta":{"computer.jp/status":"%s"}}\n' "$1" "${2:-waiting}"; }
"#;

/// A tool that prints each action until `abort`.
const ECHO: &str = r#"
while read -r line; do
    printf '%s\n' "$line" >> log
    case $line in
        *abort*) say ended stopped; exit ;;
        *) say ok running ;;
    esac
done
"#;

const ALL: [Action; 4] = [Action::Spawn, Action::Fetch, Action::Apply, Action::Abort];

fn tool(script: &str) -> Tool {
    let words = ["sh", "-c", &format!("{PRELUDE}\n{script}")]
        .map(str::to_owned)
        .to_vec();
    let parameters = object(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    Tool {
        permission: Permission::Unattended,
        timeout: Duration::from_secs(20),
        stateful: Some(Stateful {
            actions: ALL.to_vec(),
            keep: false,
        }),
        ..Tool::new("t", parameters, Source::Local(Command { words }))
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn call(action: &str, handle: &str, input: Value) -> Value {
    json!({"action": action, "handle": handle, "input": input})
}

fn spawn(handle: &str) -> Value {
    call("spawn", handle, json!({}))
}

/// A turn that is to be played.
struct Play {
    root: TempDir,
    tool: Tool,
    secret_variables: Vec<String>,
    /// Whether there is a place for tools that stay: `handles` in the root.
    keeps: bool,
    executable: PathBuf,
    /// The user's replies. After the last one, there is no terminal.
    replies: Vec<Reply>,
    /// True if the user allows each call; otherwise there is no terminal.
    is_attended: bool,
    /// The turn is cancelled once this is in the root.
    cancelled_by: Option<&'static str>,
}

/// What became of it.
struct Course {
    results: Vec<String>,
    /// What was recorded of questions and their answers.
    inquiries: Vec<Value>,
    /// What the user was asked, a line each.
    asked: Vec<String>,
    outcome: Outcome,
    /// How long it took to end the turn.
    ending: Duration,
}

impl Play {
    fn new(tool: Tool) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            tool,
            secret_variables: Vec::new(),
            keeps: true,
            executable: PathBuf::new(),
            replies: Vec::new(),
            is_attended: false,
            cancelled_by: None,
        }
    }

    fn script(script: &str) -> Self {
        Self::new(tool(script))
    }

    /// Has the model make these calls, one after another.
    fn calls(&self, calls: Vec<Value>) -> Course {
        self.rounds(calls.into_iter().map(|call| vec![call]).collect())
    }

    /// Has the model make these calls, those of each round at once.
    fn rounds(&self, rounds: Vec<Vec<Value>>) -> Course {
        let server = Server::new(answers(&self.tool.name, &rounds));
        let mut endpoint = Endpoint::new("llamacpp", BaseUrl::parse(server.url()).unwrap(), "m");
        endpoint.retry.max_retries = 0;
        let client = Client::new(endpoint).unwrap();
        let surroundings = Surroundings {
            root: self.root.path().to_owned(),
            secret_variables: self.secret_variables.clone(),
            handles: self.keeps.then(|| self.handles()),
            executable: self.executable.clone(),
            ..Surroundings::default()
        };
        let files = Files::open(self.root.path(), &[]).unwrap();
        let toolbox = Arc::new(Toolbox::new(vec![self.tool.clone()], surroundings, files));
        let turn = Turn {
            client: &client,
            toolbox: &toolbox,
            model: "llamacpp/m",
            check: None,
            max_rounds: Turn::MAX_ROUNDS,
        };
        let mut witness = Witness {
            results: BTreeMap::new(),
            inquiries: Vec::new(),
            asked: Vec::new(),
            replies: self.replies.clone().into(),
            is_attended: self.is_attended,
        };
        let outcome = block_on(run(turn, self.cancel(), &mut witness));
        let ended = Instant::now();
        drop(toolbox);
        Course {
            results: witness.results.into_values().collect(),
            inquiries: witness.inquiries,
            asked: witness.asked,
            outcome,
            ending: ended.elapsed(),
        }
    }

    async fn cancel(&self) {
        loop {
            if self
                .cancelled_by
                .is_some_and(|name| self.root.path().join(name).exists())
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn handles(&self) -> PathBuf {
        self.root.path().join("handles")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.root.path().join("log")).unwrap()
    }
}

impl Course {
    fn text(&self) -> String {
        self.results.join("\n---\n")
    }
}

/// Makes the model's answers: the calls of each round, and words in the end.
fn answers(name: &str, rounds: &[Vec<Value>]) -> Vec<testing::Reply> {
    let answer = |(round, calls): (usize, &Vec<Value>)| {
        let calls = calls.iter().enumerate();
        let calls: Vec<_> = calls
            .map(|(index, arguments)| (format!("{round:03}-{index:03}"), name, arguments))
            .collect();
        calling_as("", &calls)
    };
    let answers = rounds.iter().enumerate().map(answer);
    answers.chain([testing::Reply::words(&["Done."])]).collect()
}

/// Writes down results and plays the user.
struct Witness {
    results: BTreeMap<String, String>,
    inquiries: Vec<Value>,
    asked: Vec<String>,
    replies: VecDeque<Reply>,
    is_attended: bool,
}

impl Host for Witness {
    fn take(&mut self, event: TurnEvent<'_>) {
        match event {
            TurnEvent::Record(kinds) => {
                for kind in kinds {
                    match kind {
                        EventKind::ToolCallResponse(response) => {
                            self.results.insert(response.id.clone(), shown(&response));
                        }
                        EventKind::InquiryRequest(request) => {
                            self.inquiries.push(serde_json::to_value(request).unwrap());
                        }
                        EventKind::InquiryResponse(response) => {
                            self.inquiries.push(serde_json::to_value(response).unwrap());
                        }
                        _ => {}
                    }
                }
            }
            TurnEvent::Permit(request, decision) => {
                let detail = request.preview.detail.unwrap_or_default();
                self.asked.push(
                    format!("{} {detail}", request.preview.title)
                        .trim()
                        .to_owned(),
                );
                if self.is_attended {
                    decision.send(Decision::Allow).unwrap();
                }
            }
            TurnEvent::Ask(question, answer) => {
                self.asked
                    .push(format!("{}: {}", question.input.id, question.input.text));
                if let Some(reply) = self.replies.pop_front() {
                    answer.send(reply).unwrap();
                }
            }
            TurnEvent::Notice(notice) => self.asked.push(format!("notice: {notice}")),
            _ => {}
        }
    }

    fn body(&mut self, _: &[EventKind]) -> Result<Body, Box<dyn Error + Send + Sync>> {
        let (body, ()) = Body::new(|_| Ok(())).unwrap();
        Ok(body)
    }

    fn blob(&mut self, _: &Checksum) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        Ok(None)
    }
}

fn shown(response: &ToolCallResponse) -> String {
    let text = |block: &StoredBlock| {
        serde_json::to_value(block).unwrap()["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let text = response
        .content
        .iter()
        .map(text)
        .collect::<Vec<_>>()
        .join("\n");
    if response.is_error {
        format!("! {text}")
    } else {
        text
    }
}

/// Waits for a condition, for a while.
fn eventually(condition: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !condition() {
        if started.elapsed() > Duration::from_secs(20) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Returns whether a process is there; one that only waits to be reaped is not.
fn is_alive(pid: &str) -> bool {
    let output = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .unwrap();
    let stat = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !stat.is_empty() && !stat.starts_with('Z')
}

#[test]
fn process_lives_between_calls() {
    let play = Play::script(ECHO);
    let course = play.calls(vec![
        call("spawn", "h.1", json!({"n": 1})),
        call("fetch", "h.1", json!({})),
        call("apply", "h.1", json!({"more": [true]})),
        call("abort", "h.1", json!({})),
        call("fetch", "h.1", json!({})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    ok
    Status of "h.1": running.
    ---
    ok
    Status of "h.1": running.
    ---
    ok
    Status of "h.1": running.
    ---
    ended
    Status of "h.1": stopped.
    ---
    ! `t` has no handle "h.1" and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`.
    "#);
    insta::assert_snapshot!(play.log(), @r#"
    {"action":"spawn","handle":"h.1","arguments":{"n":1}}
    {"action":"fetch","handle":"h.1","arguments":{}}
    {"action":"apply","handle":"h.1","arguments":{"more":[true]}}
    {"action":"abort","handle":"h.1","arguments":{}}
    "#);
}

#[test]
fn definition_has_the_configured_actions() {
    let mut tool = tool(ECHO);
    tool.parameters = object(json!({
        "type": "object", "required": ["n"],
        "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}},
    }));
    tool.stateful = Some(Stateful {
        actions: vec![Action::Spawn, Action::Fetch],
        keep: false,
    });
    let offered = serde_json::to_string_pretty(&tool.definition().parameters).unwrap();
    insta::assert_snapshot!(offered, @r##"
    {
      "type": "object",
      "properties": {
        "action": {
          "type": "string",
          "enum": [
            "spawn",
            "fetch"
          ],
          "description": "`spawn` starts it. `fetch` asks for its progress."
        },
        "handle": {
          "type": "string",
          "pattern": "^[A-Za-z0-9_.-]{1,64}$",
          "description": "A name that you choose for the process that `spawn` starts. Use it again for the other actions. Make calls with the same handle one after another."
        },
        "input": {
          "type": "object",
          "description": "The input of the tool. If the tool is waiting for answers: one property for each question id. `spawn` requires: n.",
          "properties": {
            "n": {
              "$ref": "#/$defs/n"
            }
          }
        }
      },
      "required": [
        "action",
        "handle"
      ],
      "additionalProperties": false,
      "$defs": {
        "n": {
          "type": "integer"
        }
      }
    }
    "##);
    let course = Play::new(tool).calls(vec![
        call("spawn", "h", json!({})),
        call("spawn", "h", json!({"n": "x"})),
        call("abort", "h", json!({})),
        call("spawn", "../h", json!({"n": 1})),
        call("spawn", "h", json!({"n": 1})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    ! The `input` does not match the parameters of `t`: at its top: missing properties 'n'
    ---
    ! The arguments of `t` do not match its parameters: at /input/n: want integer, but got string
    ---
    ! The arguments of `t` do not match its parameters: at /action: value must be one of 'spawn', 'fetch'
    ---
    ! The arguments of `t` do not match its parameters: at /handle: '../h' does not match pattern '^[A-Za-z0-9_.-]{1,64}$'
    ---
    ok
    Status of "h": running.
    "#);
}

#[test]
fn no_status_is_the_end() {
    let course = Play::script(r#"read -r line; echo '{"content":[{"type":"text","text":"all"}]}'"#)
        .calls(vec![spawn("h"), spawn("h")]);
    assert_eq!(course.results, ["all\nStatus of \"h\": stopped."; 2]);
}

#[test]
fn user_answers_until_there_are_no_more_questions() {
    let script = r#"
        read -r line; ask one
        read -r line; echo "$line" >> log; ask two running
        read -r line; echo "$line" >> log; say thanks running
        read -r line
    "#;
    let play = Play {
        replies: vec![Reply::Once(json!("a")), Reply::Once(json!("b"))],
        ..Play::script(script)
    };
    let course = play.calls(vec![spawn("h")]);
    assert_eq!(course.asked, ["one: Which?", "two: Which?"]);
    assert_eq!(course.results, ["thanks\nStatus of \"h\": running."]);
    insta::assert_snapshot!(play.log(), @r#"
    {"action":"apply","handle":"h","answers":{"one":"a"}}
    {"action":"apply","handle":"h","answers":{"two":"b"}}
    "#);
}

#[test]
fn no_answer_is_made_up_for_the_user() {
    let script = r#"
        read -r line; ask one
        read -r line; ask one
        read -r line; echo "$line" >> log; say thanks stopped
    "#;
    let play = Play {
        replies: vec![Reply::Declined, Reply::Once(json!("mine"))],
        ..Play::script(script)
    };
    let course = play.calls(vec![
        spawn("h"),
        call("apply", "h", json!({"one": "model's"})),
        call("fetch", "h", json!({})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    ! The user did not answer "Which?", asked by `t`.
    Status of "h": waiting.
    ---
    ! `t` is waiting for an answer that only the user can give. `fetch` asks the user again, `abort` ends it.
    Status of "h": waiting.
    ---
    thanks
    Status of "h": stopped.
    "#);
    insta::assert_snapshot!(play.log(), @r#"{"action":"apply","handle":"h","answers":{"one":"mine"}}"#);
}

#[test]
fn model_answers_its_questions() {
    let script = r#"
        read -r line
        printf '{"content":[{"type":"question","question":{"id":"a","text":"A?","schema":{"type":"boolean"},"default":true}},'
        printf '{"type":"question","question":{"id":"b","text":"B?","schema":{"type":"string"}}},'
        printf '{"type":"question","question":{"id":"c","text":"C?","schema":{"type":"string"}}}]}\n'
        read -r line; echo "$line" >> log; say thanks stopped
    "#;
    let questions = [
        ("a", Answerer::Assistant),
        ("c", Answerer::Fixed(json!("fixed"))),
    ];
    let questions = questions.map(|(id, who)| (id.to_owned(), who)).into();
    let play = Play {
        replies: vec![Reply::Once(json!("user's"))],
        ..Play::new(Tool {
            questions,
            ..tool(script)
        })
    };
    let course = play.calls(vec![
        spawn("h"),
        call("apply", "h", json!({})),
        call("apply", "h", json!({"a": 1})),
        call("apply", "h", json!({"a": false})),
    ]);
    assert_eq!(course.asked, ["b: B?"]);
    insta::assert_snapshot!(course.text(), @r#"
    Question `a`: A?
    Schema of the answer: {"type":"boolean"}
    Default: true
    The tool is waiting for answers. Call `apply` with an `input` that has one property for each question id.
    Status of "h": waiting.
    ---
    ! The `input` has no answer to `a`. It needs: `a`.
    Status of "h": waiting.
    ---
    ! The answer to `a` is invalid: at its top: want boolean, but got number
    Status of "h": waiting.
    ---
    thanks
    Status of "h": stopped.
    "#);
    insta::assert_snapshot!(play.log(), @r#"{"action":"apply","handle":"h","answers":{"b":"user's","c":"fixed","a":false}}"#);
}

#[test]
fn answer_of_the_model_is_recorded() {
    let questions = [("one".to_owned(), Answerer::Assistant)].into();
    let script = "read -r line; ask one; read -r line; say thanks stopped";
    let play = Play::new(Tool {
        questions,
        ..tool(script)
    });
    let course = play.calls(vec![
        spawn("h"),
        call("apply", "h", json!({"one": 1})),
        call("apply", "h", json!({"one": "mine"})),
    ]);
    let expected = json!([
        {
            "id": "002-000.one",
            "source": {"source": "tool", "name": "t", "call": "002-000", "target": "assistant"},
            "question": {"id": "one", "text": "Which?", "schema": {"type": "string"}},
        },
        {"id": "002-000.one", "answer": "mine"},
    ]);
    assert_eq!(Value::from(course.inquiries), expected);
}

#[test]
fn question_that_can_not_be_answered_is_an_error_at_once() {
    let question = |schema: Value| json!({"type": "question", "question": {"id": "one", "text": "?", "schema": schema}});
    let string = || question(json!({"type": "string"}));
    for (blocks, reason) in [
        (
            vec![question(json!({"type": 1}))],
            "! `t` asks \"?\" with an invalid schema: ",
        ),
        (
            vec![question(json!({"x": "x".repeat(130_000)}))],
            "! `t` asks \"?\" with a schema of 130008 bytes",
        ),
        (
            vec![string(), string()],
            "! `t` asks two questions with the same id, \"one\", at once",
        ),
    ] {
        let questions = [("one".to_owned(), Answerer::Assistant)].into();
        let play = Play::new(Tool {
            questions,
            ..tool("while read -r line; do cat response; done")
        });
        let response = json!({"content": blocks, "_meta": {"computer.jp/status": "waiting"}});
        fs::write(play.root.path().join("response"), format!("{response}\n")).unwrap();
        let course = play.calls(vec![spawn("h")]);
        assert!(course.results[0].starts_with(reason), "{}", course.text());
        assert!(
            course.results[0].ends_with("Status of \"h\": waiting."),
            "{}",
            course.text()
        );
    }
}

#[test]
fn answer_of_the_model_that_is_too_large_is_refused() {
    let questions = [("one".to_owned(), Answerer::Assistant)].into();
    let play = Play::new(Tool {
        questions,
        ..tool("read -r line; ask one; read -r line")
    });
    let course = play.calls(vec![
        spawn("h"),
        call("apply", "h", json!({"one": "x".repeat(1_000_000)})),
    ]);
    insta::assert_snapshot!(course.results[1], @r#"
    ! The answer to `one` is invalid: it has 1000002 bytes; the limit is 1000000
    Status of "h": waiting.
    "#);
}

#[test]
fn questions_without_end_are_given_up() {
    let questions = [("one".to_owned(), Answerer::Fixed(json!("x")))].into();
    let course = Play::new(Tool {
        questions,
        ..tool("while read -r line; do ask one; done")
    })
    .calls(vec![spawn("h")]);
    insta::assert_snapshot!(course.text(), @r#"
    ! `t` asked 100 times in one call and got an answer each time.
    Status of "h": waiting.
    "#);
}

#[test]
fn wait_for_nothing_is_an_error() {
    let course =
        Play::script("while read -r line; do say hm waiting; done").calls(vec![spawn("h")]);
    insta::assert_snapshot!(course.text(), @r#"
    ! hm
    The tool reports that it is waiting for answers, but it has not asked a question.
    Status of "h": running.
    "#);
}

#[test]
fn death_is_an_error_with_its_last_words() {
    let script = "read -r line; echo no such thing >&2; exit 7";
    let course = Play::script(script).calls(vec![spawn("h"), spawn("h")]);
    insta::assert_snapshot!(course.text(), @r#"
    ! `t` ended without an answer (exit status: 7).
    Its last output on stderr:
    no such thing
    Status of "h": stopped.
    ---
    ! `t` ended without an answer (exit status: 7).
    Its last output on stderr:
    no such thing
    Status of "h": stopped.
    "#);
    let course = Play::script("read -r line; kill -9 $$").calls(vec![spawn("h")]);
    insta::assert_snapshot!(course.text(), @r#"
    ! `t` ended without an answer (signal: 9 (SIGKILL)).
    Status of "h": stopped.
    "#);
}

#[test]
fn death_is_noticed_though_a_child_holds_the_output() {
    let course = Play::script("read -r line; sleep 30 & exit 7").calls(vec![spawn("h")]);
    insta::assert_snapshot!(course.text(), @r#"
    ! `t` ended without an answer (exit status: 7).
    Status of "h": stopped.
    "#);
}

#[test]
fn invalid_line_costs_only_itself() {
    let script = r#"read -r line; echo Compiling; say first running; while read -r line; do say next running; done"#;
    let course = Play::script(script).calls(vec![
        spawn("h"),
        call("fetch", "h", json!({})),
        call("fetch", "h", json!({})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    ! `t` wrote a line that is not a response: Compiling
    Status of "h": running.
    ---
    first
    Status of "h": running.
    ---
    next
    Status of "h": running.
    "#);
}

#[test]
fn unasked_line_does_not_answer_the_next_call() {
    let script = r#"
        read -r line
        case $line in *slow*) sleep 0.5; say ok stopped; exit ;; esac
        both=$(say first running; say second running); echo "$both"
        while read -r line; do say answer running; done
    "#;
    let course = Play::script(script).calls(vec![
        spawn("h"),
        spawn("slow"),
        call("apply", "h", json!({})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    first
    Status of "h": running.
    ---
    ok
    Status of "slow": stopped.
    ---
    Lines that the tool wrote before this call, left out here: 1.
    answer
    Status of "h": running.
    "#);
}

#[test]
fn lines_without_end_are_left_out_up_to_a_bound() {
    let script = "read -r line; exec yes x";
    let calls = || {
        vec![
            spawn("h"),
            call("apply", "h", json!({})),
            call("abort", "h", json!({})),
        ]
    };
    insta::assert_snapshot!(Play::new(kept(script)).calls(calls()).text(), @r#"
    ! `t` wrote a line that is not a response: x
    Status of "h": running.
    ---
    ! Lines that the tool wrote before this call, left out here: 1000. There may be more, so the answer below may not be the answer to this call.
    `t` wrote a line that is not a response: x
    Status of "h": running.
    ---
    ! `t` wrote a line that is not a response: x
    Status of "h": stopped.
    "#);
    // How many there are at a time is chance.
    let course = Play::script(script).calls(calls());
    assert!(
        course.results[2].ends_with("Status of \"h\": stopped."),
        "{}",
        course.text()
    );
}

#[test]
fn empty_lines_without_end_are_no_answer() {
    for tool in [
        tool("read -r line; exec yes ''"),
        kept("read -r line; exec yes ''"),
    ] {
        let play = Play::new(Tool {
            timeout: Duration::from_millis(300),
            ..tool
        });
        let course = play.calls(vec![spawn("h"), call("abort", "h", json!({}))]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(course.text(), @r#"
            `t` has written nothing for 0.3 seconds and is still running. `fetch` waits longer, `abort` ends it.
            Status of "h": running.
            ---
            `t` sent no final answer and was ended.
            Status of "h": stopped.
            "#);
        }
    }
}

#[test]
fn malformed_parts_are_reported_to_the_user_once() {
    let bad = |n: usize| json!({"type": format!("{n:02}{}", "x".repeat(1000))});
    let nameless = json!({"type": "resource", "resource": {"uri": "a.txt", "text": ""}});
    let blocks: Vec<_> = [nameless].into_iter().chain((2..=12).map(bad)).collect();
    let response = json!({"content": blocks, "_meta": {"computer.jp/status": "running"}});
    let play = Play::script("while read -r line; do cat response; done");
    fs::write(play.root.path().join("response"), format!("{response}\n")).unwrap();
    let course = play.calls(vec![spawn("h"), call("fetch", "h", json!({}))]);
    assert_eq!(course.results[0], course.results[1]);
    let told: Vec<_> = course.results[0].lines().collect();
    assert_eq!(told[0], "Warnings about this result:");
    assert_eq!(told.len(), 14, "{}", course.text());
    assert!(
        told.iter().all(|line| line.chars().count() <= 303),
        "{}",
        course.text()
    );
    assert_eq!(told[11], "- and 2 more");
    assert_eq!(course.asked.len(), 11, "{:?}", course.asked);
}

#[test]
fn resource_that_nothing_identifies_is_skipped() {
    let nameless = json!({"type": "resource", "resource": {"uri": "a.txt", "text": ""}});
    let response = json!({"content": [nameless]});
    let play = Play::script("read -r line; cat response");
    fs::write(play.root.path().join("response"), format!("{response}\n")).unwrap();
    insta::assert_snapshot!(play.calls(vec![spawn("h")]).text(), @r#"
    Warnings about this result:
    - a content block was skipped: its URI "a.txt" has no scheme; use `file:PATH` for a file of the workspace

    Status of "h": stopped.
    "#);
}

#[test]
fn endless_line_ends_the_process() {
    let script = "read -r line; head -c 65000000 /dev/zero; sleep 30";
    let course = Play::script(script).calls(vec![spawn("h"), call("fetch", "h", json!({}))]);
    insta::assert_snapshot!(course.text(), @r#"
    ! `t` wrote a line of more than 64000000 bytes and was ended.
    Status of "h": stopped.
    ---
    ! `t` has no handle "h" and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`.
    "#);
}

#[test]
fn silent_process_stays() {
    let play = Play::new(Tool {
        timeout: Duration::from_millis(800),
        ..tool("read -r line; echo working >&2; sleep 30")
    });
    let course = play.calls(vec![spawn("h"), call("apply", "h", json!({}))]);
    insta::assert_snapshot!(course.text(), @r#"
    `t` has written nothing for 0.8 seconds and is still running. `fetch` waits longer, `abort` ends it.
    Its last output on stderr:
    working
    Status of "h": running.
    ---
    ! `t` has not answered the last call yet. `fetch` waits for its answer.
    Status of "h": running.
    "#);
}

#[test]
fn late_answer_is_fetched() {
    let script =
        "read -r line; sleep 1; say late running; read -r line; say next running; read -r line";
    let play = Play::new(Tool {
        timeout: Duration::from_millis(800),
        ..tool(script)
    });
    let course = play.calls(vec![
        spawn("h"),
        call("fetch", "h", json!({})),
        call("fetch", "h", json!({})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    `t` has written nothing for 0.8 seconds and is still running. `fetch` waits longer, `abort` ends it.
    Status of "h": running.
    ---
    late
    Status of "h": running.
    ---
    next
    Status of "h": running.
    "#);
}

#[test]
fn abort_ends_a_process_that_ignores_it() {
    let script = r#"
        trap '' TERM
        sleep 1000 & echo $! > pids; echo $$ >> pids
        read -r line; say started running
        while :; do sleep 1; done
    "#;
    let play = Play::script(script);
    let course = play.calls(vec![
        spawn("h"),
        call("abort", "h", json!({})),
        call("fetch", "h", json!({})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    started
    Status of "h": running.
    ---
    `t` sent no final answer and was ended.
    Status of "h": stopped.
    ---
    ! `t` has no handle "h" and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`.
    "#);
    let pids = fs::read_to_string(play.root.path().join("pids")).unwrap();
    assert!(eventually(|| !pids.lines().any(is_alive)), "{pids}");
}

#[test]
fn number_of_handles_is_limited() {
    let play = Play::script(ECHO);
    let mut calls: Vec<_> = (1..=9).map(|n| spawn(&format!("h{n}"))).collect();
    calls.insert(1, spawn("h1"));
    calls.insert(2, call("fetch", "h", json!({})));
    let course = play.calls(calls);
    let errors: Vec<_> = course
        .results
        .iter()
        .filter(|result| result.starts_with('!'))
        .cloned()
        .collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    ! The handle "h1" of `t` is in use. Choose another handle, or end this one with `abort`.
    ! `t` has no handle "h". Live handles: "h1".
    ! 8 handles are live, which is the limit. End one of them first: "h1" of `t`, "h2" of `t`, "h3" of `t`, "h4" of `t`, "h5" of `t`, "h6" of `t`, "h7" of `t`, "h8" of `t`.
    "#);
}

#[test]
fn handle_is_used_by_one_call_at_a_time() {
    let script = "while read -r line; do sleep 0.2; say ok running; done";
    let play = Play::script(script);
    let both = vec![call("fetch", "h", json!({})), call("fetch", "h", json!({}))];
    let course = play.rounds(vec![vec![spawn("h")], both]);
    let refused = course
        .results
        .iter()
        .filter(|result| result.starts_with('!'))
        .collect::<Vec<_>>();
    insta::assert_snapshot!(refused[0], @r#"! Another call with the handle "h" is running. Make calls with the same handle one after another."#);
    assert_eq!(refused.len(), 1);
}

#[test]
fn interrupted_call_returns_at_once() {
    let play = Play {
        cancelled_by: Some("started"),
        ..Play::script("read -r line; touch started; sleep 30")
    };
    let started = Instant::now();
    let course = play.calls(vec![spawn("h")]);
    assert!(matches!(course.outcome, Outcome::Interrupted));
    assert!(started.elapsed() < Duration::from_secs(20));
    insta::assert_snapshot!(course.text(), @r#"
    ! The call was interrupted before `t` answered.
    Status of "h": running.
    "#);
}

#[test]
fn process_runs_in_the_root_without_secrets() {
    let script = r#"read -r line; say "home: $HOME, path: ${PATH:+there}, in: $(pwd -P)" stopped"#;
    let play = Play {
        secret_variables: vec!["HOME".to_owned()],
        ..Play::script(script)
    };
    let course = play.calls(vec![spawn("h")]);
    let root = play.root.path().canonicalize().unwrap();
    let expected = format!(
        "home: , path: there, in: {}\nStatus of \"h\": stopped.",
        root.display()
    );
    assert_eq!(course.results, [expected]);
}

#[test]
fn template_has_the_context() {
    let words = ["sh", "-c", "echo \"$0\" > log", "{{context}}"]
        .map(str::to_owned)
        .to_vec();
    let play = Play::new(Tool {
        source: Source::Local(Command { words }),
        ..tool("")
    });
    play.calls(vec![call("spawn", "h", json!({"n": 3}))]);
    let context: Value = serde_json::from_str(&play.log()).unwrap();
    assert_eq!(
        context["tool"],
        json!({"name": "t", "arguments": {"n": 3}, "answers": {}, "options": {}})
    );
}

#[test]
fn missing_program_is_reported() {
    let words = vec!["no-such-program-anywhere".to_owned()];
    let play = Play::new(Tool {
        source: Source::Local(Command { words }),
        ..tool("")
    });
    insta::assert_snapshot!(play.calls(vec![spawn("h"), call("fetch", "h", json!({}))]).text(), @r#"
    ! `t` can't start "no-such-program-anywhere": No such file or directory (os error 2).
    ---
    ! `t` has no handle "h" and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`.
    "#);
}

#[test]
fn turn_ends_all_that_it_started() {
    let script = r#"
        trap '' TERM
        sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done' &
        echo $$ >> pids
        while [ $(wc -l < pids) -lt $N ]; do sleep 0.01; done
        read -r line; say ok running
        while :; do sleep 1; done
    "#;
    let play = Play::script(&format!("N=2\n{script}"));
    let course = play.calls(vec![spawn("a"), spawn("b"), spawn("c")]);
    assert!(
        course.ending < Duration::from_secs(2),
        "{:?}",
        course.ending
    );
    let pids = fs::read_to_string(play.root.path().join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 6);
    assert!(eventually(|| !pids.lines().any(is_alive)), "{pids}");
}

#[test]
fn user_is_asked_before_input_is_sent() {
    let words = ["sh", "serve.sh", "n is {{tool.arguments.n}}", "{{context}}"]
        .map(str::to_owned)
        .to_vec();
    let source = Source::Local(Command { words });
    let tool = Tool {
        permission: Permission::Ask,
        source,
        ..tool("")
    };
    let play = Play {
        is_attended: true,
        ..Play::new(tool.clone())
    };
    fs::write(
        play.root.path().join("serve.sh"),
        format!("{PRELUDE}{ECHO}"),
    )
    .unwrap();
    let course = play.calls(vec![
        call("spawn", "h", json!({"n": 1})),
        call("fetch", "h", json!({})),
        call("apply", "h", json!({"more": "text"})),
        call("fetch", "h", json!({"delete": "all"})),
        call("abort", "h", json!({})),
    ]);
    insta::assert_snapshot!(course.asked.join("\n"), @r#"
    spawn h: sh serve.sh 'n is 1' '{{context}}' {
      "n": 1
    }
    apply h {
      "more": "text"
    }
    fetch h {
      "delete": "all"
    }
    "#);
    let course = Play::new(tool).calls(vec![spawn("h")]);
    assert!(
        course.results[0].starts_with("! The call of `t` was refused"),
        "{}",
        course.text()
    );
}

#[test]
fn long_word_is_shortened_only_in_the_title() {
    let long = "x".repeat(100);
    let words = vec!["cat".to_owned(), long.clone()];
    let tool = Tool {
        permission: Permission::Ask,
        source: Source::Local(Command { words }),
        ..tool("")
    };
    let course = Play::new(tool).calls(vec![spawn("h")]);
    let short = format!("spawn h: cat {}…{}", "x".repeat(53), "x".repeat(26));
    assert_eq!(
        course.asked[0].replace("'", ""),
        format!("{short} cat {long}\n{{}}")
    );
}

#[test]
fn argument_with_a_nul_is_not_spawned() {
    let words = ["cat", "{{tool.arguments.s}}"].map(str::to_owned).to_vec();
    let play = Play::new(Tool {
        source: Source::Local(Command { words }),
        ..tool("")
    });
    let course = play.calls(vec![call("spawn", "h", json!({"s": "a\u{0}b"}))]);
    insta::assert_snapshot!(course.text(), @"! An argument of `t` contains a NUL, which a command line can't contain.");
}

#[test]
fn nothing_is_spawned_in_a_workspace_that_is_gone() {
    let play = Play {
        keeps: false,
        ..Play::script(r#"read -r line; rm -r "$PWD"; say ok stopped"#)
    };
    let course = play.calls(vec![spawn("h"), spawn("h")]);
    assert_eq!(course.results[0], "ok\nStatus of \"h\": stopped.");
    assert_eq!(
        course.results[1],
        "! `t` did not run: the workspace no longer exists."
    );
}

#[test]
fn one_shot_tool_has_its_own_parameters() {
    let tool = Tool {
        stateful: None,
        ..tool("")
    };
    assert_eq!(tool.definition().parameters, tool.parameters);
}

fn kept(script: &str) -> Tool {
    Tool {
        stateful: Some(Stateful {
            actions: ALL.to_vec(),
            keep: true,
        }),
        ..tool(script)
    }
}

#[test]
fn kept_process_goes_on_in_the_next_turn() {
    let play = Play::new(kept(&format!("echo $$ > pid; {ECHO}")));
    let first = play.calls(vec![spawn("h")]);
    assert_eq!(first.results, ["ok\nStatus of \"h\": running."]);
    let pid = fs::read_to_string(play.root.path().join("pid")).unwrap();
    assert!(is_alive(pid.trim()));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(play.handles()), mode(play.handles().join("t=h"))),
        (0o700, 0o700)
    );

    let second = play.calls(vec![
        spawn("h"),
        call("apply", "h", json!({"more": 1})),
        call("abort", "h", json!({})),
        call("fetch", "h", json!({})),
    ]);
    insta::assert_snapshot!(second.text(), @r#"
    ! The handle "h" of `t` is in use. Choose another handle, or end this one with `abort`.
    ---
    ok
    Status of "h": running.
    ---
    ended
    Status of "h": stopped.
    ---
    ! `t` has no handle "h" and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`.
    "#);
    assert!(eventually(|| !is_alive(pid.trim())));
    assert_eq!(fs::read_dir(play.handles()).unwrap().count(), 0);
}

#[test]
fn kept_process_gets_its_answers_in_the_next_turn() {
    let script = r#"read -r line; ask one; read -r line; echo "$line" >> log; say thanks stopped"#;
    let questions = [("one".to_owned(), Answerer::Assistant)].into();
    let play = Play::new(Tool {
        questions,
        ..kept(script)
    });
    play.calls(vec![spawn("h")]);
    let course = play.calls(vec![call("apply", "h", json!({"one": "answer"}))]);
    assert_eq!(course.results, ["thanks\nStatus of \"h\": stopped."]);
    insta::assert_snapshot!(play.log(), @r#"{"action":"apply","handle":"h","answers":{"one":"answer"}}"#);
}

#[test]
fn output_of_a_kept_process_between_turns_is_not_lost() {
    let script = r#"
        read -r line; both=$(say one running; say two running); echo "$both"
        read -r line; while [ ! -e go ]; do sleep 0.02; done; say three running
        read -r line
    "#;
    let play = Play::new(Tool {
        timeout: Duration::from_millis(800),
        ..kept(script)
    });
    play.calls(vec![spawn("h")]);
    let silent = play.calls(vec![
        call("fetch", "h", json!({})),
        call("fetch", "h", json!({})),
    ]);
    fs::write(play.root.path().join("go"), "").unwrap();
    let course = play.calls(vec![
        call("fetch", "h", json!({})),
        call("abort", "h", json!({})),
    ]);
    insta::assert_snapshot!(silent.text() + "\n===\n" + &course.text(), @r#"
    two
    Status of "h": running.
    ---
    `t` has written nothing for 0.8 seconds and is still running. `fetch` waits longer, `abort` ends it.
    Status of "h": running.
    ===
    three
    Status of "h": running.
    ---
    `t` sent no final answer and was ended.
    Status of "h": stopped.
    "#);
}

#[test]
fn kept_process_that_ended_between_turns_is_reported() {
    let script = "read -r line; say ok running; while [ ! -e go ]; do sleep 0.02; done; echo tired >&2; touch gone";
    let play = Play::new(kept(&format!("echo $$ > pid; {script}")));
    play.calls(vec![spawn("h")]);
    let pid = fs::read_to_string(play.root.path().join("pid")).unwrap();
    fs::write(play.root.path().join("go"), "").unwrap();
    assert!(eventually(|| !is_alive(pid.trim())));
    let course = play.calls(vec![
        call("fetch", "h", json!({})),
        call("fetch", "h", json!({})),
    ]);
    insta::assert_snapshot!(course.text(), @r#"
    ! "h" of `t` has ended since the last turn. Its last output on stderr:
    tired
    ---
    ! `t` has no handle "h" and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`.
    "#);
    assert_eq!(fs::read_dir(play.handles()).unwrap().count(), 0);
}

#[test]
fn handle_of_a_process_that_is_gone_is_free() {
    let script = r#"
        read -r line; echo $$ > pid
        if [ -e again ]; then say ok stopped; exit; fi
        touch again; echo tired >&2; say ok running
    "#;
    let play = Play::new(kept(script));
    play.calls(vec![spawn("h")]);
    let pid = fs::read_to_string(play.root.path().join("pid")).unwrap();
    assert!(eventually(|| !is_alive(pid.trim())));
    let course = play.calls(vec![spawn("h"), call("fetch", "h", json!({}))]);
    insta::assert_snapshot!(course.text(), @r#"
    ok
    Status of "h": stopped.
    ---
    ! `t` has no handle "h" and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`.
    "#);
}

#[test]
fn long_line_of_a_kept_process_is_read_in_one_go() {
    let script = "read -r line; head -c 12000000 /dev/zero | tr '\\0' x; echo; read -r line";
    let play = Play::new(kept(script));
    let started = Instant::now();
    let course = play.calls(vec![spawn("h")]);
    assert_contains(course.text(), "wrote a line that is not a response: xxx");
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    play.calls(vec![call("abort", "h", json!({}))]);
}

#[test]
fn stderr_of_a_kept_process_is_bounded() {
    let script = r#"
        read -r line; head -c 3000000 /dev/zero | tr '\0' x >&2; echo tired >&2; say ok running
        read -r line; echo more >&2; exit 7
    "#;
    let play = Play::new(kept(script));
    play.calls(vec![spawn("h")]);
    let length = fs::metadata(play.handles().join("t=h/errors"))
        .unwrap()
        .len();
    assert!(length <= 1_000_000, "{length}");
    let course = play.calls(vec![call("fetch", "h", json!({}))]);
    assert!(course.text().contains("xxx"), "{}", course.text());
    assert_contains(course.text(), "tired\nmore\nStatus of \"h\": stopped.");
}

#[test]
fn death_of_a_kept_process_is_an_error_with_its_last_words() {
    let course =
        Play::new(kept("read -r line; echo no such thing >&2; exit 7")).calls(vec![spawn("h")]);
    insta::assert_snapshot!(course.text(), @r#"
    ! `t` ended without an answer (exit status: 7).
    Its last output on stderr:
    no such thing
    Status of "h": stopped.
    "#);
}

#[test]
fn process_is_kept_only_with_a_directory() {
    let play = Play {
        keeps: false,
        ..Play::new(kept(ECHO))
    };
    insta::assert_snapshot!(play.calls(vec![spawn("h")]).text(), @"! `t` has `keep = true`, but this conversation has no place to keep it.");
}

#[test]
fn shell_is_served_by_the_executable() {
    let play = Play::new(Tool {
        permission: Permission::Ask,
        ..Builtin::Shell.tool()
    });
    let executable = play.root.path().join("jp");
    fs::write(
        &executable,
        format!("#!/bin/sh\n{PRELUDE}\nread -r line; say \"$*\" running; {ECHO}"),
    )
    .unwrap();
    fs::set_permissions(&executable, fs::Permissions::from_mode(0o700)).unwrap();
    let play = Play {
        executable,
        is_attended: true,
        ..play
    };
    let course = play.calls(vec![
        spawn("h"),
        call("apply", "h", json!({"text": "make\nmake test"})),
        call("apply", "h", json!({"keys": "ctrl-c"})),
        call("apply", "h", json!({"text": "x", "wait_secs": 1})),
    ]);
    assert_eq!(
        course.results[0],
        "shell-session\nStatus of \"h\": running."
    );
    insta::assert_snapshot!(course.asked.join("\n"), @r"
    spawn h
    apply h make
    make test
    apply h ctrl-c
    apply h x
    ");
    insta::assert_snapshot!(play.log(), @r#"
    {"action":"apply","handle":"h","arguments":{"text":"make\nmake test"}}
    {"action":"apply","handle":"h","arguments":{"keys":"ctrl-c"}}
    {"action":"apply","handle":"h","arguments":{"text":"x","wait_secs":1}}
    "#);
}
