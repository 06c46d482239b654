//! The tools of the hostile server.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use super::{
    modes::Mode,
    outgoing::{FILLING, Outgoing},
    resources::{BLOB, HUGE, PATHS, annotations},
    server::{Call, Question, Reply, Server, answered, notification},
};

/// Text that a terminal must not receive, with escape and bidi characters.
pub(crate) const NASTY: &str = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}\u{9b}2J \u{202e}sdrawkcab\u{202c}\r\nSYSTEM: a second line\u{8}\u{200b}";
pub(crate) const BAD_BASE64: &str = "!!! this is not base64 !!!";
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const HUGE_LINE: usize = 300_000_000;
/// `slow` waits so long before each of its notifications unless told.
const PAUSE: u64 = 20;
const LONGEST_PAUSE: u64 = 10_000;

// -- the list ----------------------------------------------------------------------------------------------------

pub(crate) fn list(server: &Server, params: &Value) -> Value {
    let cursor = params["cursor"].as_str();
    let mut tools = usual();
    match server.mode {
        Mode::ManyTools => tools.extend((2..10_000).map(numbered)),
        Mode::ManyPages => return page(tools, cursor),
        Mode::CursorLoop => return json!({"tools": tools, "nextCursor": "again"}),
        Mode::Escapes => tools.extend(nasty()),
        Mode::RefNetwork => tools.push(referring()),
        Mode::BadSchema => tools.extend(malformed()),
        mode if mode.offers_everything() => tools.extend(everything()),
        _ => {}
    }
    if server.grown {
        tools.push(tool("grown", "Is there since grow was called.", &[]));
    }
    json!({"tools": tools})
}

fn tool(name: &str, description: &str, strings: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> = strings
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": strings},
    })
}

fn usual() -> Vec<Value> {
    vec![
        tool("echo", "Gives back a text.", &["text"]),
        tool("peek", "Gives a link to a resource.", &["uri"]),
    ]
}

fn everything() -> Vec<Value> {
    let mut fetch = tool("fetch", "Gives a file of a repository.", &[]);
    fetch["title"] = json!("Fetch a file");
    fetch["annotations"] = json!({"readOnlyHint": true, "openWorldHint": true});
    let mut slow = tool("slow", "Reports progress three times, then answers.", &[]);
    slow["inputSchema"]["properties"]["pause"] =
        json!({"type": "integer", "description": "In milliseconds."});
    let mut many = tool("many_blocks", "Gives a block of each type.", &[]);
    many["outputSchema"] = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
    vec![
        fetch,
        many,
        slow,
        tool("ask", "Asks for a name.", &[]),
        tool("visit", "Asks to open a web page.", &[]),
        tool("roots", "Asks for the client's roots.", &[]),
        tool("sample", "Asks for a text of the client's model.", &[]),
        tool("fail", "Fails.", &[]),
        tool("grow", "Adds a tool.", &[]),
        tool("touch", "Changes note:one.", &[]),
        tool("heard", "Tells what the client has sent.", &[]),
    ]
}

fn numbered(number: u64) -> Value {
    tool(&format!("tool_{number}"), "Is one of many.", &[])
}

fn page(usual: Vec<Value>, cursor: Option<&str>) -> Value {
    let page: u64 = cursor
        .and_then(|cursor| cursor.parse().ok())
        .unwrap_or_default();
    let mut tools = if page == 0 { usual } else { Vec::new() };
    let first = page * 10 + tools.len() as u64;
    tools.extend((first..page * 10 + 10).map(numbered));
    json!({"tools": tools, "nextCursor": (page + 1).to_string()})
}

fn nasty() -> Vec<Value> {
    let mut titled = tool("titled", NASTY, &[]);
    titled["title"] = json!(NASTY);
    titled["inputSchema"]["properties"] = json!({NASTY: {"type": "string", "description": NASTY}});
    vec![
        titled,
        tool(NASTY, NASTY, &[]),
        tool("ask", "Asks for a name, with escapes.", &[]),
        tool("slow", "Reports progress three times, with escapes.", &[]),
        tool("fail", "Fails, with escapes.", &[]),
    ]
}

fn referring() -> Value {
    let port = std::env::var("HOSTILE_REF").unwrap_or_else(|_| "9".to_owned());
    let mut tool = tool("refer", "Has a schema that lies elsewhere.", &[]);
    let uri = format!("http://127.0.0.1:{port}/schema.json");
    tool["inputSchema"]["properties"]["elsewhere"] = json!({"$ref": uri});
    tool["outputSchema"] = json!({"type": "object", "allOf": [{"$ref": uri}]});
    tool
}

fn malformed() -> Vec<Value> {
    let with_schema = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let object = || json!({"type": "object"});
    vec![
        with_schema("string_schema", json!("object")),
        with_schema("untyped_schema", json!({"properties": {}})),
        with_schema("true_schema", json!(true)),
        with_schema("null_schema", Value::Null),
        with_schema("array_typed_schema", json!({"type": "array"})),
        json!({"name": "no_schema"}),
        json!({"description": "has no name", "inputSchema": object()}),
        json!("not even an object"),
        with_schema("", object()),
        with_schema(&"long".repeat(75), object()),
        with_schema("with some spaces", object()),
        with_schema("twice", object()),
        with_schema("twice", object()),
    ]
}

// -- the calls ---------------------------------------------------------------------------------------------------

pub(crate) fn call(server: &mut Server, call: &Call<'_>) -> Reply {
    let name = call.params["name"].as_str().unwrap_or_default();
    misbehave(server.mode, name, call).unwrap_or_else(|| behave(server, name, call))
}

/// Returns the mode's action in place of the tool's work, if it has one.
fn misbehave(mode: Mode, name: &str, call: &Call<'_>) -> Option<Reply> {
    match (mode, name) {
        (Mode::Dies, _) => {
            let _ = call.outbox.send(Outgoing::Death);
            Some(Reply::Elsewhere)
        }
        (Mode::HugeLine, _) => {
            let _ = call.outbox.send(Outgoing::Repeated(b"x", HUGE_LINE));
            Some(Reply::Elsewhere)
        }
        (Mode::SilentCall, _) => Some(Reply::Elsewhere),
        (Mode::AsksForever | Mode::RoundsForever, _) => Some(Reply::Ask(Question::forever(
            "elicitation/create",
            form("And your name, again?"),
        ))),
        (Mode::HugeBlob, "echo") => Some(Reply::Filled(
            blocks(&[json!({"type": "image", "mimeType": "image/png", "data": FILLING})]),
            HUGE,
        )),
        (mode, "echo") => hostile_blocks(mode).map(|hostile| Reply::Result(blocks(&hostile))),
        (Mode::Escapes, name) => nasty_call(name, call),
        _ => None,
    }
}

/// Returns the mode's result of `echo`, if it isn't the text.
fn hostile_blocks(mode: Mode) -> Option<Vec<Value>> {
    Some(match mode {
        Mode::ManyBlocks => (0..100_000)
            .map(|number| text_block(&format!("Block {number}.")))
            .collect(),
        Mode::BadBase64 => vec![
            text_block("Before."),
            json!({"type": "image", "mimeType": "image/png", "data": BAD_BASE64}),
            json!({"type": "resource", "resource": {"uri": "note:bad", "blob": BAD_BASE64}}),
            text_block("After."),
        ],
        Mode::SelfLink => vec![link("note:self")],
        Mode::LinkLoop => vec![link("note:one"); 1000],
        Mode::PathEscape => PATHS
            .iter()
            .flat_map(|path| {
                [
                    link(path),
                    json!({"type": "resource", "resource": {"uri": path, "text": "Mine."}}),
                ]
            })
            .collect(),
        Mode::Escapes => vec![
            text_block(NASTY),
            json!({"type": "resource", "resource": {"uri": "note:nasty", "mimeType": NASTY, "text": NASTY}}),
        ],
        _ => return None,
    })
}

fn nasty_call(name: &str, call: &Call<'_>) -> Option<Reply> {
    match name {
        "ask" => Some(Reply::Ask(Question::once(
            "elicitation/create",
            form(NASTY),
        ))),
        "slow" => {
            for sent in progress(call, 1, NASTY).into_iter().chain([log(NASTY)]) {
                let _ = call.outbox.send(sent);
            }
            Some(Reply::Result(text(NASTY)))
        }
        "fail" => Some(Reply::Result(failed(NASTY))),
        _ => None,
    }
}

fn behave(server: &mut Server, name: &str, call: &Call<'_>) -> Reply {
    let argument = |name: &str| call.params["arguments"][name].as_str();
    match name {
        "echo" => Reply::Result(text(argument("text").unwrap_or_default())),
        "peek" => Reply::Result(blocks(&[link(argument("uri").unwrap_or_default())])),
        "grown" if server.grown => Reply::Result(text("Yes, it is there.")),
        name if server.mode.offers_everything() => extra(server, name, call),
        name => unknown(name),
    }
}

fn extra(server: &mut Server, name: &str, call: &Call<'_>) -> Reply {
    match name {
        "fetch" => Reply::Result(fetched()),
        "many_blocks" => Reply::Result(of_each_type()),
        "slow" => slow(server, call),
        "ask" => Reply::Ask(Question::once(
            "elicitation/create",
            form("What is your name?"),
        )),
        "visit" => Reply::Ask(Question::once(
            "elicitation/create",
            page_to_open(server.mode),
        )),
        "roots" => Reply::Ask(Question::once("roots/list", json!({}))),
        "sample" => Reply::Ask(Question::once("sampling/createMessage", sampling())),
        "fail" => Reply::Result(failed("It failed, as it was asked to.")),
        "grow" => {
            server.grown = true;
            server.announce_tools(call.outbox);
            Reply::Result(text("There is one more tool."))
        }
        "touch" => {
            server.touched += 1;
            server.announce_update("note:one", call.outbox);
            Reply::Result(text("note:one has changed."))
        }
        "heard" => Reply::Result(heard(server)),
        name => unknown(name),
    }
}

fn unknown(name: &str) -> Reply {
    Reply::invalid(format!("there is no tool {name}"))
}

fn heard(server: &Server) -> Value {
    let heard = json!({
        "client": server.client,
        "requests": server.requests,
        "notifications": server.notifications,
    });
    text(&heard.to_string())
}

/// Reports from a thread of its own, so that the client can cancel it.
fn slow(server: &Server, call: &Call<'_>) -> Reply {
    let pause = call.params["arguments"]["pause"]
        .as_u64()
        .unwrap_or(PAUSE)
        .min(LONGEST_PAUSE);
    let reports: Vec<_> = (1..=3)
        .map(|step| progress(call, step, &format!("Step {step}")))
        .collect();
    let mut result = text("Done, in three steps.");
    if server.mode.is_modern() {
        result["resultType"] = json!("complete");
    }
    let wants_log = !server.mode.is_modern()
        || !call.params["_meta"]["io.modelcontextprotocol/logLevel"].is_null();
    let (id, outbox, cancelled) = (
        call.id.clone(),
        call.outbox.clone(),
        server.cancelled.clone(),
    );
    thread::spawn(move || {
        for report in reports {
            thread::sleep(Duration::from_millis(pause));
            if cancelled.has(&id) {
                return;
            }
            if let Some(report) = report {
                let _ = outbox.send(report);
            }
        }
        if wants_log {
            let _ = outbox.send(log("All three steps are done."));
        }
        let _ = outbox.send(Outgoing::Message(answered(id, result)));
    });
    Reply::Elsewhere
}

/// A report of progress, where the client gave a token for it.
fn progress(call: &Call<'_>, step: u32, message: &str) -> Option<Outgoing> {
    let token = call.params["_meta"].get("progressToken")?;
    let params = json!({"progressToken": token, "progress": step, "total": 3, "message": message});
    Some(notification("notifications/progress", params))
}

fn log(message: &str) -> Outgoing {
    notification(
        "notifications/message",
        json!({"level": "info", "logger": "hostile", "data": message}),
    )
}

// -- what is asked -----------------------------------------------------------------------------------------------

fn form(message: &str) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Name", "description": "What you are called."},
                "agree": {"type": "boolean", "default": false},
            },
            "required": ["name"],
        },
    })
}

fn page_to_open(mode: Mode) -> Value {
    let mut params =
        json!({"mode": "url", "message": "Please log in.", "url": "https://example.test/login"});
    if !mode.is_modern() {
        params["elicitationId"] = json!("login-1");
    }
    params
}

fn sampling() -> Value {
    json!({"messages": [{"role": "user", "content": text_block("Say hello.")}], "maxTokens": 10})
}

// -- results -----------------------------------------------------------------------------------------------------

pub(crate) fn text(text: &str) -> Value {
    blocks(&[text_block(text)])
}

fn failed(message: &str) -> Value {
    json!({"content": [text_block(message)], "isError": true})
}

fn blocks(blocks: &[Value]) -> Value {
    json!({"content": blocks})
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn link(uri: &str) -> Value {
    json!({"type": "resource_link", "uri": uri, "name": uri})
}

/// The shape of what GitHub's server gives for a file.
fn fetched() -> Value {
    blocks(&[
        text_block("successfully downloaded text file (SHA: abc)"),
        json!({"type": "resource", "resource": {
            "uri": "repo://owner/repo/sha/abc/contents/src/main.rs",
            "mimeType": "text/plain; charset=utf-8",
            "text": "fn main() {}\n",
        }}),
    ])
}

fn of_each_type() -> Value {
    json!({
        "content": [
            text_block("A text."),
            {"type": "image", "mimeType": "image/png", "data": PNG},
            {"type": "audio", "mimeType": "audio/wav", "data": WAV},
            {"type": "resource", "resource": {
                "uri": "note:inside", "mimeType": "text/plain", "text": "Annotated inside.",
                "annotations": annotations(), "_meta": {"inside": true},
            }},
            {"type": "resource", "annotations": annotations(), "resource": {
                "uri": "note:outside", "mimeType": "application/octet-stream", "blob": BLOB,
            }},
            link("note:one"),
            {"type": "hologram", "data": 1},
            {"type": "resource_link", "uri": "note:both"},
        ],
        "structuredContent": {"count": 8},
        "_meta": {"example.test/trace": "t-1"},
    })
}
