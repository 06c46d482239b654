use std::{cell::Cell, future, rc::Rc, sync::Arc, time::Duration};

use jp_conversation::{Event, EventKind, Stream, view};
use jp_llm::{BaseUrl, Client, Endpoint};
use jp_resource::Checksum;
use proptest::prelude::*;
use testing::{Reply, Server, block_on, chunk};

use super::*;
use crate::{Delta, Files, Surroundings, Toolbox};

const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"REASON\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn finish(reason: &str) -> String {
    FINISH.replace("REASON", reason)
}

fn reasoning(text: &str) -> String {
    chunk(text).replace("content", "reasoning_content")
}

/// What happened, a line each, and how it ended.
struct Course {
    lines: Vec<String>,
    shown: String,
    recorded: Vec<EventKind>,
}

impl Course {
    fn stream(&self) -> Stream {
        let event =
            |kind: &EventKind| Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind.clone());
        Stream::from_events(self.recorded.iter().map(event).collect())
    }

    /// All text that was recorded.
    fn kept(&self) -> String {
        let text = |kind: &EventKind| match kind {
            EventKind::ChatResponse(response) => match &response.content {
                jp_conversation::ResponseContent::Message(text) => text.clone(),
                jp_conversation::ResponseContent::Reasoning(text) => text.clone(),
            },
            _ => String::new(),
        };
        self.recorded.iter().map(text).collect()
    }
}

/// Runs a turn that is cancelled once `cancel_after` pieces were shown.
fn course(reply: Reply, cancel_after: Option<usize>) -> Course {
    course_of("llamacpp", vec![reply], cancel_after)
}

fn course_of(provider: &str, replies: Vec<Reply>, cancel_after: Option<usize>) -> Course {
    let server = Server::new(replies);
    let mut endpoint = Endpoint::new(provider, BaseUrl::parse(server.url()).unwrap(), "m");
    endpoint.idle_timeout = Duration::from_millis(50);
    endpoint.retry.base_delay = Duration::from_millis(1);
    endpoint.retry.max_retries = 1;
    let client = Client::new(endpoint).unwrap();
    let root = tempfile::tempdir().unwrap();
    let files = Files::open(root.path(), &[]).unwrap();
    let toolbox = &Arc::new(Toolbox::new(Vec::new(), Surroundings::default(), files));

    let mut course = Course {
        lines: vec![],
        shown: String::new(),
        recorded: vec![],
    };
    let shown = Rc::new(Cell::new(0));
    let pieces = Rc::clone(&shown);
    let cancel = future::poll_fn(move |_| match cancel_after {
        Some(after) if pieces.get() >= after => std::task::Poll::Ready(()),
        _ => std::task::Poll::Pending,
    });
    let mut witness = Witness {
        course: &mut course,
        shown,
    };
    let turn = Turn {
        client: &client,
        toolbox,
        model: "llamacpp/m",
        check: None,
        max_rounds: 3,
    };
    let outcome = block_on(run(turn, cancel, &mut witness));
    course.lines.push(format!("= {}", ending(&outcome)));
    course
        .lines
        .iter_mut()
        .for_each(|line| *line = line.replace(server.url(), "URL"));
    course
}

/// Logs events; there is no terminal to ask on.
struct Witness<'a> {
    course: &'a mut Course,
    shown: Rc<Cell<usize>>,
}

impl Host for Witness<'_> {
    fn take(&mut self, event: TurnEvent<'_>) {
        if let TurnEvent::Delta(Delta::Text(text) | Delta::Reasoning(text)) = &event {
            self.course.shown += text;
            self.shown.set(self.shown.get() + 1);
        }
        self.course.lines.push(line(&event));
        if let TurnEvent::Record(kinds) = event {
            self.course.recorded.extend(kinds);
        }
    }

    fn body(&mut self, _: &[EventKind]) -> Result<Body, Box<dyn std::error::Error + Send + Sync>> {
        let (body, ()) = Body::new(|_| Ok(())).unwrap();
        Ok(body)
    }

    fn blob(
        &mut self,
        _: &Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(None)
    }
}

fn line(event: &TurnEvent<'_>) -> String {
    match event {
        TurnEvent::Delta(delta) => format!("{delta:?}"),
        TurnEvent::Retry(notice) => format!("Retry({} {})", notice.attempt, notice.reason),
        TurnEvent::Notice(notice) => format!("Notice({notice})"),
        TurnEvent::Progress(progress) => format!("Progress({progress})"),
        TurnEvent::Detail(detail) => format!("Detail({detail})"),
        TurnEvent::Permit(request, _) => format!("Permit({})", request.preview.title),
        TurnEvent::Ask(question, _) => format!("Ask({})", question.input.text),
        TurnEvent::Show { tool, .. } => format!("Show({tool})"),
        TurnEvent::ShowToUser { tool, .. } => format!("ShowToUser({tool})"),
        TurnEvent::Called { call, .. } => format!("Called({})", call.id),
        TurnEvent::Record(kinds) => {
            let json = |kind: &EventKind| {
                let event = Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind.clone());
                event
                    .to_json()
                    .unwrap()
                    .replace("{\"timestamp\":\"2026-11-21T12:00:00Z\",", "{")
            };
            kinds.iter().map(json).collect::<Vec<_>>().join("\n")
        }
    }
}

fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { finish } => format!("{finish:?}"),
        Outcome::Interrupted => "Interrupted".to_owned(),
        Outcome::Failed(error) => format!("failed to {error}"),
        Outcome::Unprepared(error) => format!("failed to prepare: {error}"),
        Outcome::Endless { rounds } => format!("endless after {rounds}"),
    }
}

fn lines(events: &[&str]) -> String {
    course(Reply::stream(&events.concat()), None)
        .lines
        .join("\n")
}

#[test]
fn each_run_is_recorded_once_when_it_is_complete() {
    let events = [
        &reasoning("h"),
        &reasoning("m"),
        &chunk("Hel"),
        &chunk("lo"),
        &finish("stop"),
        USAGE,
        DONE,
    ];
    insta::assert_snapshot!(lines(&events), @r#"
    Reasoning("h")
    Reasoning("m")
    {"type":"chat_response","reasoning":"hm"}
    Text("Hel")
    Text("lo")
    {"type":"chat_response","message":"Hello"}
    {"type":"usage","model":"llamacpp/m","input":9,"output":3}
    = Stop
    "#);
}

#[test]
fn length_limit_marks_the_last_run() {
    insta::assert_snapshot!(lines(&[&reasoning("hm"), &chunk("half"), &finish("length"), DONE]), @r#"
    Reasoning("hm")
    {"type":"chat_response","reasoning":"hm"}
    Text("half")
    {"type":"chat_response","message":"half","incomplete":"length limit reached"}
    = Length
    "#);
}

#[test]
fn lost_connection_keeps_the_shown_text() {
    insta::assert_snapshot!(lines(&[&chunk("half")]), @r#"
    Text("half")
    {"type":"chat_response","message":"half","incomplete":"connection lost: it ended before it was complete"}
    = failed to read the answer of llamacpp at URL
    "#);
    insta::assert_snapshot!(course(Reply::stream(&chunk("half")).then_hang(), None).lines.join("\n"), @r#"
    Text("half")
    {"type":"chat_response","message":"half","incomplete":"connection lost: no data arrived for 0.05 s"}
    = failed to read the answer of llamacpp at URL
    "#);
    insta::assert_snapshot!(lines(&[&chunk("half"), "data: {\"error\":{\"message\":\"gone\"}}\n\n"]), @r#"
    Text("half")
    {"type":"chat_response","message":"half","incomplete":"failed to read the answer: the server says: gone"}
    = failed to read the answer of llamacpp at URL
    "#);
}

#[test]
fn answer_that_is_cut_off_between_two_parts_is_incomplete() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ];
    let stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let course = course_of("anthropic", vec![Reply::stream(&stream)], None);
    insta::assert_snapshot!(course.lines.join("\n"), @r#"
    Reasoning("hm")
    {"type":"chat_response","reasoning":"hm","metadata":{"signature":"s","model":"llamacpp/m"},"incomplete":"connection lost: it ended before it was complete"}
    = failed to read the answer of anthropic at URL
    "#);
}

#[test]
fn answer_cut_off_after_a_call_leaves_the_call_out() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ];
    let stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let course = course_of("anthropic", vec![Reply::stream(&stream)], None);
    insta::assert_snapshot!(course.lines.join("\n"), @r#"
    Notice(the answer was cut off, so its call of the tool `read` did not run)
    {"type":"chat_response","message":"","incomplete":"connection lost: it ended before it was complete"}
    = failed to read the answer of anthropic at URL
    "#);
}

#[test]
fn interruption_keeps_the_shown_text() {
    let events = [reasoning("hm"), chunk("half")].concat();
    insta::assert_snapshot!(course(Reply::stream(&events).then_hang(), Some(2)).lines.join("\n"), @r#"
    Reasoning("hm")
    {"type":"chat_response","reasoning":"hm"}
    Text("half")
    {"type":"chat_response","message":"half","incomplete":"interrupted"}
    = Interrupted
    "#);
}

#[test]
fn interruption_before_the_first_word_records_nothing() {
    assert_eq!(course(Reply::hang(), Some(0)).lines, ["= Interrupted"]);
}

#[test]
fn failure_before_the_first_word_records_nothing() {
    insta::assert_snapshot!(course(Reply::json(500, "{\"error\":\"no memory\"}"), None).lines.join("\n"), @r#"
    Retry(1 get an answer from llamacpp at URL: 500: no memory)
    = failed to get an answer from llamacpp at URL: 500: no memory
    "#);
}

#[test]
fn call_of_a_tool_that_there_is_not_has_an_error_that_the_model_goes_on_from() {
    let call = |id: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"{id}\",\"function\":{{\"name\":\"read\",\"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n"
        )
    };
    let calls = [
        chunk("I look."),
        call("1"),
        finish("tool_calls"),
        USAGE.to_owned(),
        DONE.to_owned(),
    ];
    let answer = [chunk("So be it."), finish("stop"), DONE.to_owned()];
    let replies = vec![
        Reply::stream(&calls.concat()),
        Reply::stream(&answer.concat()),
    ];
    let course = course_of("llamacpp", replies, None);
    insta::assert_snapshot!(course.lines.join("\n"), @r#"
    Text("I look.")
    {"type":"chat_response","message":"I look."}
    {"type":"tool_call_request","id":"1","name":"read","arguments":{}}
    {"type":"usage","model":"llamacpp/m","input":9,"output":3}
    Called(1)
    {"type":"tool_call_response","id":"1","content":[{"type":"text","text":"There is no tool `read`: no tools are available."}],"is_error":true}
    Text("So be it.")
    {"type":"chat_response","message":"So be it."}
    = Stop
    "#);
    let stream = course.stream();
    let answered = |message: &view::Message<'_>| {
        matches!(
            message,
            view::Message::Tool {
                response: Some(_),
                ..
            }
        )
    };
    let messages = view::thread(&stream).messages;
    assert_eq!(
        messages.iter().map(answered).collect::<Vec<_>>(),
        [false, true, false]
    );
}

/// A chunk with calls: index, id, name, arguments.
fn calls(calls: &[(usize, &str, &str, &str)]) -> String {
    let call = |(index, id, name, arguments): &(usize, &str, &str, &str)| serde_json::json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    let calls: Vec<_> = calls.iter().map(call).collect();
    format!(
        "data: {}\n\n",
        serde_json::json!({"choices": [{"delta": {"tool_calls": calls}}]})
    )
}

fn answer(pieces: &[&str], reason: &str) -> Reply {
    Reply::stream(&[&pieces.concat(), &*finish(reason), DONE].concat())
}

#[test]
fn calls_of_one_answer_have_a_result_each_whatever_is_wrong_with_them() {
    let several = [
        (0, "1", "read", "{}"),
        (1, "1-3", "look", "{}"),
        (2, "1", "look", "{}"),
        (3, "3", "", "{}"),
        (4, "4", "find", "{\"a\":"),
    ];
    let replies = vec![
        answer(&[&chunk("I look."), &calls(&several)], "tool_calls"),
        answer(&[&chunk("So be it.")], "stop"),
    ];
    let course = course_of("llamacpp", replies, None);
    let ids = |of: fn(&EventKind) -> Option<&String>| {
        let mut ids: Vec<_> = course.recorded.iter().filter_map(of).cloned().collect();
        // Results come as they are ready.
        ids.sort_unstable();
        ids
    };
    let called = ids(|kind| match kind {
        EventKind::ToolCallRequest(call) => Some(&call.id),
        _ => None,
    });
    let failed = ids(|kind| match kind {
        EventKind::ToolCallResponse(response) if response.is_error => Some(&response.id),
        _ => None,
    });
    assert_eq!(
        (&called, &called),
        (
            &failed,
            &["1", "1-3", "1-4", "3", "4"].map(str::to_owned).to_vec()
        )
    );
    assert_eq!(course.lines.last().unwrap(), "= Stop");
}

#[test]
fn text_keeps_its_place_between_calls() {
    let block = |index: usize, start: &str, delta: &str| {
        let event = |kind: &str, name: &str, value: &str| {
            format!(
                "data: {{\"type\":\"content_block_{kind}\",\"index\":{index},\"{name}\":{value}}}\n\n"
            )
        };
        let stop = format!("data: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n");
        event("start", "content_block", start) + &event("delta", "delta", delta) + &stop
    };
    let words = |index, words: &str| {
        let delta = format!(r#"{{"type":"text_delta","text":"{words}"}}"#);
        block(index, r#"{"type":"text","text":""}"#, &delta)
    };
    let call = |index, id: &str| {
        let start = format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{}}}}"#);
        block(
            index,
            &start,
            r#"{"type":"input_json_delta","partial_json":"{}"}"#,
        )
    };
    let stop = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"REASON\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let reply = |events: &[String], reason: &str| {
        Reply::stream(&(events.concat() + &stop.replace("REASON", reason)))
    };
    let replies = vec![
        reply(
            &[
                words(0, "First."),
                call(1, "a"),
                words(2, "Then."),
                call(3, "b"),
            ],
            "tool_use",
        ),
        reply(&[words(0, "Done.")], "end_turn"),
    ];
    let course = course_of("anthropic", replies, None);
    let kinds: Vec<_> = course
        .recorded
        .iter()
        .map(|kind| match kind {
            EventKind::ChatResponse(_) => "words".to_owned(),
            EventKind::ToolCallRequest(call) => format!("call {}", call.id),
            EventKind::ToolCallResponse(_) => "result".to_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "words", "call a", "words", "call b", "result", "result", "words"
        ]
    );
    assert_eq!(course.shown, "First.Then.Done.");
}

#[test]
fn model_that_calls_for_ever_is_stopped() {
    let course = course_of(
        "llamacpp",
        vec![answer(&[&calls(&[(0, "1", "read", "{}")])], "tool_calls")],
        None,
    );
    assert_eq!(course.lines.last().unwrap(), "= endless after 3");
    let count = |is: fn(&EventKind) -> bool| course.recorded.iter().filter(|kind| is(kind)).count();
    assert_eq!(
        count(|kind| matches!(kind, EventKind::ToolCallRequest(_))),
        3
    );
    assert_eq!(
        count(|kind| matches!(kind, EventKind::ToolCallResponse(_))),
        3
    );
}

#[test]
fn usage_of_each_request_is_recorded() {
    let round = |reason: &str, piece: String| {
        Reply::stream(&[piece, finish(reason), USAGE.to_owned(), DONE.to_owned()].concat())
    };
    let replies = vec![
        round("tool_calls", calls(&[(0, "1", "read", "{}")])),
        round("stop", chunk("Done.")),
    ];
    let course = course_of("llamacpp", replies, None);
    let usages = course
        .recorded
        .iter()
        .filter(|kind| matches!(kind, EventKind::Usage(_)));
    assert_eq!(usages.count(), 2);
}

#[test]
fn failure_in_a_later_round_keeps_earlier_events() {
    let replies = vec![
        answer(&[&calls(&[(0, "1", "read", "{}")])], "tool_calls"),
        Reply::json(500, "{}"),
    ];
    let course = course_of("llamacpp", replies, None);
    assert!(matches!(
        course.recorded[..],
        [
            EventKind::ToolCallRequest(_),
            EventKind::ToolCallResponse(_)
        ]
    ));
    assert!(
        course
            .lines
            .last()
            .unwrap()
            .starts_with("= failed to get an answer"),
        "{:?}",
        course.lines
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn nothing_shown_is_lost(
        pieces in prop::collection::vec((any::<bool>(), "[a-z]{1,3}"), 1..8),
        cut in 0usize..600,
        cancel_after in prop::option::of(0usize..8),
    ) {
        let piece = |(is_reasoning, text): &(bool, String)| if *is_reasoning { reasoning(text) } else { chunk(text) };
        let events = pieces.iter().map(piece).collect::<String>() + &finish("stop") + DONE;
        let course = course(Reply::stream(&events[..cut.min(events.len())]), cancel_after);
        prop_assert_eq!(course.kept(), course.shown);
    }
}
