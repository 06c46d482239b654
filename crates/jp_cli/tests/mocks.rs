//! The real binary against two mock servers that others wrote: llmock (PyPI), which breaks answers and judges how its
//! clients take that, and aimock (npm), which plays scripted answers in every format.
//!
//! Of what providers send, aimock has no `thoughtSignature` of Gemini and no `reasoning_details` of OpenRouter, and it
//! names Ollama's `thinking` otherwise. Recorded streams in `jp_llm` stand for those.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testing::{
    Run, Sandbox, assert_contains, assert_fields, assert_lacks, items,
    mock::{Mock, Relay},
};

/// A provider, and how the mocks are spoken to as if each were it.
struct Provider {
    name: &'static str,
    model: &'static str,
    other_model: &'static str,
    variable: &'static str,
    /// Below the root of llmock, and the paths of its requests there; llmock does not speak Ollama's format.
    llmock: Option<(&'static str, &'static str)>,
    /// Below the root of aimock.
    aimock: &'static str,
}

const ANTHROPIC: Provider = Provider {
    name: "anthropic",
    model: "claude-sonnet-4-5",
    other_model: "claude-opus-4-1",
    variable: "ANTHROPIC_API_KEY",
    llmock: Some(("/anthropic", "/anthropic/v1/messages")),
    aimock: "",
};
const OPENAI: Provider = Provider {
    name: "openai",
    model: "gpt-5",
    other_model: "o3",
    variable: "OPENAI_API_KEY",
    llmock: Some(("", "/v1/responses")),
    aimock: "",
};
const GOOGLE: Provider = Provider {
    name: "google",
    model: "gemini-2.5-pro",
    other_model: "gemini-2.5-flash",
    variable: "GEMINI_API_KEY",
    llmock: Some(("/gemini", "/gemini/*:streamGenerateContent")),
    aimock: "",
};
const OPENROUTER: Provider = Provider {
    name: "openrouter",
    model: "deepseek/deepseek-r1",
    other_model: "openai/gpt-5",
    variable: "OPENROUTER_API_KEY",
    llmock: Some(("", "/v1/chat/completions")),
    aimock: "/api",
};
const LLAMACPP: Provider = Provider {
    name: "llamacpp",
    model: "qwen3",
    other_model: "gpt-oss",
    variable: "UNUSED",
    llmock: Some(("/groq/openai", "/groq/openai/v1/chat/completions")),
    aimock: "",
};
const OLLAMA: Provider = Provider {
    name: "ollama",
    model: "qwen3",
    other_model: "gpt-oss",
    variable: "UNUSED",
    llmock: None,
    aimock: "",
};

const PROVIDERS: [Provider; 6] = [ANTHROPIC, OPENAI, GOOGLE, OPENROUTER, LLAMACPP, OLLAMA];

/// Someone who talks to one provider.
struct Person<'a> {
    provider: &'a Provider,
    sandbox: Sandbox,
    /// The options of each query.
    flags: &'static [&'static str],
}

impl<'a> Person<'a> {
    fn new(provider: &'a Provider, url: &str) -> Self {
        let sandbox = Sandbox::new();
        let Provider { name, model, .. } = provider;
        let config = format!(
            "[assistant.model]\nid = \"{name}/{model}\"\n[providers.llm.{name}]\nbase_url = \"{url}\"\n\
             models.\"{model}\".tools = true\n\
             [conversation.tools.lookup]\ncommand = \"printf found\"\nrun = \"unattended\"\n\
             parameters.q.type = \"string\"\n"
        );
        sandbox.configure(config);
        Self {
            provider,
            sandbox,
            flags: &[],
        }
    }

    fn query(&self, arguments: &[&str]) -> Run {
        let mut command = self
            .sandbox
            .command(&[&["query"], self.flags, arguments].concat());
        command.env(self.provider.variable, "sk-test");
        testing::run(command)
    }

    /// Returns the events of a type.
    fn events(&self, kind: &str) -> Vec<Value> {
        self.sandbox.events_of(kind)
    }
}

/// Runs the checks of all users at the same time.
fn each(people: &[Person<'_>], check: impl Fn(&Person<'_>) + Sync) {
    thread::scope(|scope| {
        people
            .iter()
            .for_each(|person| _ = scope.spawn(|| check(person)))
    });
}

/// llmock with a fault for each format it speaks, and who is going to meet it.
struct Trouble {
    mock: Mock,
    people: Vec<Person<'static>>,
}

impl Trouble {
    /// Prepares faults, as llmock's README describes them, one per request; `None` where llmock is not
    /// installed.
    fn new<const N: usize>(faults: [Value; N]) -> Option<Self> {
        let mock = Mock::llmock()?;
        let mut people = Vec::new();
        for (provider, (root, path)) in PROVIDERS
            .iter()
            .filter_map(|provider| Some((provider, provider.llmock?)))
        {
            let mut faults = faults.clone();
            faults
                .iter_mut()
                .for_each(|fault| fault["match"] = json!({ "path": path }));
            mock.post(
                "/_llmock/scenario",
                &json!({ "behaviors": faults.to_vec() }),
            );
            // llmock calls tools if the format allows it.
            people.push(Person {
                flags: &["-T"],
                ..Person::new(provider, &format!("{}{root}", mock.url))
            });
        }
        Some(Self { mock, people })
    }

    fn each(&self, check: impl Fn(&Person<'_>) + Sync) {
        each(&self.people, check);
    }

    /// Returns llmock's log of this many requests, with warnings.
    #[track_caller]
    fn verdict(&self, attempts: usize) -> Vec<String> {
        let verdict = self.ended(attempts);
        assert_eq!(verdict["attempts"], attempts, "{verdict}");
        let findings = items(&verdict["findings"]).iter();
        findings
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until llmock has seen the end of so many requests, which it can long after jp has: what is sent before that
    /// is no retry to it.
    fn ended(&self, attempts: usize) -> Value {
        let start = Instant::now();
        loop {
            let verdict = self.mock.get("/_llmock/verdict");
            let count = verdict["attempts"].as_u64().unwrap();
            if count >= attempts as u64 || start.elapsed() > Duration::from_secs(10) {
                return verdict;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

const CLEAN: [&str; 0] = [];

/// A long answer with a fault in it; the rest arrives well after jp has hung up.
fn broken(kind: &str, after_chunks: usize) -> [Value; 2] {
    let words = "Hello! This is a mock response ".repeat(10);
    let fault = json!({"type": "stream_fault", "kind": kind, "after_chunks": after_chunks, "stall_seconds": 30});
    [json!({"type": "reply", "text": words}), fault]
}

/// The words of every other answer of llmock.
fn hello(person: &Person<'_>) -> String {
    format!(
        "Hello! This is a mock response from {}.\n",
        person.provider.model
    )
}

#[test]
fn busy_server_is_asked_again_when_it_says() {
    let busy = json!({"type": "fail", "status": 429, "retry_after": 0.3, "times": 2});
    let Some(trouble) = Trouble::new([busy]) else {
        return;
    };
    trouble.each(|person| {
        let run = person.query(&["hi"]).succeeded();
        assert_eq!(run.stdout, hello(person));
        assert_contains(&run.stderr, "429: ");
        assert_contains(&run.stderr, "(it asks to wait 0.3 s); retry 2 in 0.3 s");
        assert_eq!(person.events("chat_response")[0].get("incomplete"), None);
    });
    assert_eq!(trouble.verdict(15), CLEAN);
}

#[test]
fn failing_server_is_asked_again_ever_later() {
    let Some(trouble) = Trouble::new([json!({"type": "fail", "status": 500, "times": 3})]) else {
        return;
    };
    trouble.each(|person| {
        let run = person.query(&["hi"]).succeeded();
        assert_eq!(run.stdout, hello(person));
        assert_contains(&run.stderr, "500: ");
        assert_contains(&run.stderr, "; retry 3 in ");
    });
    assert_eq!(trouble.verdict(20), CLEAN);
}

#[test]
fn message_to_a_busy_server_is_kept_for_the_next_query() {
    let fail = |status| json!({"type": "fail", "status": status, "retry_after": 0.02, "times": 3});
    let Some(trouble) = Trouble::new([fail(500), fail(429)]) else {
        return;
    };
    trouble.each(|person| {
        let run = person
            .query(&["hi"])
            .failed(1)
            .says(["error: failed to get an answer", "the message is kept"]);
        assert_eq!(run.stdout, "");
        let count = |words| run.stderr.matches(words).count();
        assert_eq!(
            (count(": 500: "), count(": 429: "), count("; retry ")),
            (3, 3, 5),
            "{}",
            run.stderr
        );
        assert_eq!(person.events("chat_request").len(), 1);
        assert_eq!(person.events("chat_response").len(), 0);
        assert_eq!(person.query(&[]).succeeded().stdout, hello(person));
        assert_eq!(person.events("chat_request").len(), 1);
    });
    assert_eq!(trouble.verdict(35), CLEAN);
}

#[test]
fn answer_that_ends_before_its_first_word_is_asked_for_again() {
    let fault = |kind| json!({"type": "stream_fault", "kind": kind, "after_chunks": 0});
    let Some(trouble) = Trouble::new([fault("truncate"), fault("disconnect")]) else {
        return;
    };
    trouble.each(|person| {
        let run = person.query(&["hi"]).succeeded();
        assert_eq!(run.stdout, hello(person));
        for reason in ["it ended before it was complete", "the connection broke"] {
            assert_contains(&run.stderr, reason);
        }
    });
    assert_eq!(trouble.verdict(15), CLEAN);
}

#[test]
fn message_with_a_nonsense_answer_is_kept_for_the_next_query() {
    let Some(trouble) = Trouble::new(broken("malformed", 0)) else {
        return;
    };
    trouble.each(|person| {
        let words = ["it contains invalid data", "the message is kept"];
        assert_eq!(person.query(&["hi"]).failed(1).says(words).stdout, "");
    });
    trouble.ended(5);
    trouble.each(|person| assert_eq!(person.query(&[]).succeeded().stdout, hello(person)));
    assert_eq!(trouble.verdict(10), CLEAN);
}

/// An answer breaks off after its first words. jp can't take those back, so it does not retry automatically: it keeps
/// them, says so and fails.
fn break_off(kind: &str, reason: &str) -> Option<Trouble> {
    let trouble = Trouble::new(broken(kind, 6))?;
    trouble.each(|person| {
        let timeout = format!("providers.llm.{}.idle_timeout_secs=1", person.provider.name);
        let run = person
            .query(&["-c", &timeout, "hi"])
            .failed(1)
            .says([reason, "the incomplete answer is kept"]);
        let arrived = run.stdout.strip_suffix('\n').unwrap();
        assert!(
            arrived.starts_with("Hello! This ") && hello(person).starts_with(arrived),
            "{arrived:?}"
        );
        let responses = person.events("chat_response");
        assert_eq!(responses.len(), 1, "{responses:?}");
        assert_eq!(responses[0]["message"], arrived);
        assert_contains(responses[0]["incomplete"].as_str().unwrap(), reason);
        assert_eq!(person.events("chat_request")[0]["content"], "hi");
    });
    Some(trouble)
}

/// The person asks again, without words: that is the same request, the retry that llmock waits for. The whole answer
/// takes the place of what there was.
fn ask_again(trouble: &Trouble) {
    trouble.each(|person| {
        assert_eq!(person.query(&[]).succeeded().stdout, hello(person));
        assert_eq!(person.query(&["Go on."]).succeeded().stdout, hello(person));
    });
    let requests = trouble.mock.get("/_llmock/requests");
    let bodies: Vec<_> = items(&requests["requests"])
        .iter()
        .map(|it| it["body"].to_string())
        .collect();
    let goes_on =
        |body: &&String| body.contains("Go on.") && body.matches("Hello! This ").count() == 1;
    assert_eq!(bodies.iter().filter(goes_on).count(), 5, "{bodies:?}");
    assert_eq!(trouble.verdict(15), CLEAN);
}

/// llmock sees requests, and not what becomes of an answer: it takes one that is not asked for again for one that was
/// used, though jp has failed.
#[test]
fn answer_that_ends_early_is_kept_as_incomplete() {
    let Some(trouble) = break_off("truncate", "it ended before it was complete") else {
        return;
    };
    assert_eq!(trouble.verdict(5), ["truncated_stream_accepted"; 5]);
    ask_again(&trouble);
}

/// As above, a warning.
#[test]
fn answer_whose_connection_breaks_is_kept_as_incomplete() {
    let Some(trouble) = break_off("disconnect", "the connection broke") else {
        return;
    };
    assert_eq!(trouble.verdict(5), ["gave_up"; 5]);
    ask_again(&trouble);
}

/// "The client neither retried nor stopped reading", llmock warns, and has on record that jp left before the end.
#[test]
fn answer_with_nonsense_in_it_is_kept_as_incomplete() {
    let Some(trouble) = break_off("malformed", "it contains invalid data") else {
        return;
    };
    assert_eq!(trouble.verdict(5), ["malformed_chunk_ignored"; 5]);
    let requests = trouble.mock.get("/_llmock/requests");
    let is_whole = |request: &Value| request["completed"] != false;
    assert!(
        !items(&requests["requests"]).iter().any(is_whole),
        "{requests}"
    );
    ask_again(&trouble);
}

#[test]
fn answer_that_stalls_is_kept_as_incomplete() {
    let Some(trouble) = break_off("stall", "no data arrived for 1 s") else {
        return;
    };
    assert_eq!(trouble.verdict(5), CLEAN);
    ask_again(&trouble);
}

/// aimock with scripted answers, and who is going to get them; requests go through a relay that keeps them.
struct Script {
    mock: Mock,
    relays: Vec<Relay>,
    people: Vec<Person<'static>>,
}

const ANSWER: &str = "A long enough answer, in more than one piece.";

impl Script {
    /// Scripts one answer to a message that has the words `Begin`, and [`ANSWER`] to all others and to what tools
    /// return; `None` where aimock is not installed.
    fn new(response: &Value) -> Option<Self> {
        let usage = json!({"input_tokens": 12, "output_tokens": 3});
        let mut first = response.clone();
        first["usage"] = usage.clone();
        let fixtures = json!({"fixtures": [
            {"match": {"userMessage": "Begin", "hasToolResult": false}, "response": first},
            {"match": {}, "response": {"content": ANSWER, "usage": usage}},
        ]});
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fixtures.json");
        std::fs::write(&file, fixtures.to_string()).unwrap();
        let mock = Mock::aimock(&file)?;
        let relays: Vec<_> = PROVIDERS.iter().map(|_| Relay::new(&mock.url)).collect();
        let person = |(provider, relay): (&'static Provider, &Relay)| {
            Person::new(provider, &format!("{}{}", relay.url, provider.aimock))
        };
        let people = PROVIDERS.iter().zip(&relays).map(person).collect();
        Some(Self {
            mock,
            relays,
            people,
        })
    }

    /// Sends messages for each user, and returns the last request of each by its provider.
    fn requests(&self, check: impl Fn(&Person<'_>) + Sync) -> Value {
        each(&self.people, check);
        let names = PROVIDERS.iter().map(|provider| provider.name.to_owned());
        Value::Object(names.zip(self.relays.iter().map(Relay::last)).collect())
    }
}

/// aimock has no figures of Ollama's.
fn assert_usage(person: &Person<'_>) {
    let usage = person.events("usage").pop().unwrap();
    let label = format!("{}/{}", person.provider.name, person.provider.model);
    let (input, output) = if person.provider.name == "ollama" {
        (0, 0)
    } else {
        (12, 3)
    };
    assert_fields!(usage, {"model": label, "input": input, "output": output});
}

#[test]
fn streamed_answer_arrives_whole_in_every_format() {
    let Some(script) = Script::new(&json!({ "content": ANSWER })) else {
        return;
    };
    script.requests(|person| {
        assert_eq!(
            person.query(&["Begin."]).succeeded().stdout,
            format!("{ANSWER}\n")
        );
        let responses = person.events("chat_response");
        assert_eq!(
            responses.last().unwrap()["message"],
            ANSWER,
            "{responses:?}"
        );
        assert_usage(person);
    });
}

#[test]
fn tool_calls_go_back_in_every_format() {
    let call =
        json!({"toolCalls": [{"id": "call_1", "name": "lookup", "arguments": {"q": "brest"}}]});
    let Some(script) = Script::new(&call) else {
        return;
    };
    let requests = script.requests(|person| {
        let run = person.query(&["Begin."]).succeeded();
        assert_eq!(run.stdout, format!("{ANSWER}\n"));
        assert_contains(&run.stderr, "Called lookup brest: 5 B\n");
        let (call, result) = (
            person.events("tool_call_request"),
            person.events("tool_call_response"),
        );
        assert_fields!(call[0], {"name": "lookup", "arguments": {"q": "brest"}});
        assert_eq!(
            (&result[0]["id"], &result[0]["is_error"]),
            (&call[0]["id"], &json!(false))
        );
        assert_usage(person);
        assert_eq!(
            person.query(&["And now?"]).succeeded().stdout,
            format!("{ANSWER}\n")
        );
    });
    insta::assert_snapshot!(answers_in(&requests), @r#"
    anthropic {"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"lookup","input":{"q":"brest"}}]}
    anthropic {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"found"}],"cache_control":{"type":"ephemeral"}}]}
    anthropic {"role":"assistant","content":[{"type":"text","text":"A long enough answer, in more than one piece."}]}
    anthropic {"role":"user","content":[{"type":"text","text":"And now?","cache_control":{"type":"ephemeral"}}]}
    openai {"type":"function_call","call_id":"call_1","name":"lookup","arguments":"{\"q\":\"brest\"}"}
    openai {"type":"function_call_output","call_id":"call_1","output":"found"}
    openai {"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"A long enough answer, in more than one piece.","annotations":[]}]}
    openai {"type":"message","role":"user","content":[{"type":"input_text","text":"And now?"}]}
    google {"role":"model","parts":[{"functionCall":{"id":"call_1","name":"lookup","args":{"q":"brest"}}}]}
    google {"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"lookup","response":{"output":"found"}}}]}
    google {"role":"model","parts":[{"text":"A long enough answer, in more than one piece."}]}
    google {"role":"user","parts":[{"text":"And now?"}]}
    openrouter {"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"lookup","arguments":"{\"q\":\"brest\"}"}}]}
    openrouter {"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"found"}]}
    openrouter {"role":"assistant","content":"A long enough answer, in more than one piece."}
    openrouter {"role":"user","content":"And now?"}
    llamacpp {"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"lookup","arguments":"{\"q\":\"brest\"}"}}]}
    llamacpp {"role":"tool","tool_call_id":"call_1","content":"found"}
    llamacpp {"role":"assistant","content":"A long enough answer, in more than one piece."}
    llamacpp {"role":"user","content":"And now?"}
    ollama {"role":"assistant","content":"","tool_calls":[{"id":"call_0","function":{"name":"lookup","arguments":{"q":"brest"}}}]}
    ollama {"role":"tool","tool_name":"lookup","tool_call_id":"call_0","content":"found"}
    ollama {"role":"assistant","content":"A long enough answer, in more than one piece."}
    ollama {"role":"user","content":"And now?"}
    "#);
    // The second and the third request of each, as aimock parsed them.
    let journal = script.mock.get("/v1/_requests");
    let understood = items(&journal)
        .iter()
        .map(|entry| entry["body"]["messages"].to_string());
    let is_answered =
        |messages: &String| messages.contains("\"lookup\"") && messages.contains("found");
    assert_eq!(understood.filter(is_answered).count(), 12, "{journal}");
}

/// Returns all between the first message and the last of each request, a line each.
fn answers_in(requests: &Value) -> String {
    let mut lines = Vec::new();
    for (provider, request) in requests.as_object().unwrap() {
        let messages = ["messages", "input", "contents"]
            .iter()
            .find_map(|field| request[field].as_array())
            .unwrap();
        // aimock's reasoning and messages of OpenAI have other ids each time.
        let messages = messages[1..]
            .iter()
            .filter(|message| message["type"] != "reasoning")
            .cloned();
        lines.extend(messages.map(|mut message| {
            message.as_object_mut().unwrap().shift_remove("id");
            format!("{provider} {message}")
        }));
    }
    lines.join("\n")
}

#[test]
fn reasoning_goes_back_only_to_the_model_that_made_it() {
    let thought = "I need the tool.";
    let Some(script) = Script::new(&json!({
        "reasoning": thought, "reasoningSignature": "c2lnbmF0dXJl", "redactedThinking": ["b3BhcXVl"],
        "content": "Let me see.", "toolCalls": [{"id": "call_1", "name": "lookup", "arguments": {"q": "brest"}}],
    })) else {
        return;
    };
    let requests = script.requests(|person| {
        let said = person.query(&["Begin."]).succeeded().stdout;
        assert_eq!(said, format!("Let me see.\n{ANSWER}\n"));
        let is_kept = person
            .events("chat_response")
            .iter()
            .any(|response| response["reasoning"] == thought);
        assert_eq!(
            is_kept,
            person.provider.name != "ollama",
            "{}",
            person.provider.name
        );
        person.query(&["And now?"]).succeeded();
    });
    assert_eq!(
        items(&requests["anthropic"]["messages"][1]["content"])[..2],
        [
            json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
            json!({"type": "thinking", "thinking": thought, "signature": "c2lnbmF0dXJl"}),
        ]
    );
    let mut item = requests["openai"]["input"][1].clone();
    let is_opaque = |field: &str| item[field].as_str().is_some_and(|text| !text.is_empty());
    assert!(is_opaque("id") && is_opaque("encrypted_content"), "{item}");
    assert_eq!(item["type"].take(), "reasoning");
    assert_fields!(item, {"summary": [{"type": "summary_text", "text": thought}]});
    // Reasoning that no signature came with is not sent back.
    for provider in ["google", "openrouter", "llamacpp", "ollama"] {
        assert_lacks(requests[provider].to_string(), thought);
    }
    let requests = script.requests(|person| {
        let model = format!("{}/{}", person.provider.name, person.provider.other_model);
        person.query(&["-m", &model, "And you?"]).succeeded();
    });
    for (_, request) in requests.as_object().unwrap() {
        let text = request.to_string();
        assert_contains(&text, "Let me see.");
        assert_contains(&text, "And you?");
        for left_out in [
            thought,
            "c2lnbmF0dXJl",
            "b3BhcXVl",
            "\"type\":\"reasoning\"",
        ] {
            assert_lacks(&text, left_out);
        }
    }
}
