//! The resources of the hostile server.

use serde_json::{Map, Value, json};

use super::{
    modes::Mode,
    outgoing::FILLING,
    server::{INVALID_PARAMS, Reply, Server},
    tools::{BAD_BASE64, NASTY},
};

/// The content of `note:blob`: the bytes 0 to 5, in base64.
pub(crate) const BLOB: &str = "AAECAwQF";
/// The code of 2025-11-25 for a resource that is not there.
const NOT_FOUND: i64 = -32002;
const NAMES: &[&str] = &["one", "both", "blob"];
const LANGUAGES: &[&str] = &["de", "en", "fr"];
/// The length of the image and the blob of `huge-blob`, in base64.
pub(crate) const HUGE: usize = 100_000_000;
/// URIs and names that lead elsewhere when they are taken for paths.
pub(crate) const PATHS: &[&str] = &[
    "file:///../../etc/passwd",
    "file:///etc/passwd",
    "../../secret",
    "/etc/shadow",
    "note:a/../../b",
    "note:nul\0byte",
    "note:line\nbreak",
    "note:\u{1b}[31mred\u{1b}[0m",
    "..",
    "",
];

pub(crate) fn list(mode: Mode, params: &Value) -> Value {
    let cursor = params["cursor"].as_str();
    match mode {
        Mode::ManyPages => pages(cursor),
        Mode::CursorLoop => json!({"resources": [one()], "nextCursor": "again"}),
        Mode::PathEscape => {
            let hostile = PATHS.iter().map(|path| json!({"uri": path, "name": path}));
            let resources: Vec<Value> = [one()].into_iter().chain(hostile).collect();
            json!({"resources": resources})
        }
        Mode::Escapes => json!({"resources": [
            one(),
            {"uri": "note:nasty", "name": NASTY, "title": NASTY, "description": NASTY, "mimeType": NASTY},
        ]}),
        mode if mode.offers_everything() && cursor.is_none() => {
            json!({"resources": [one()], "nextCursor": "the rest"})
        }
        mode if mode.offers_everything() => json!({"resources": [
            {"uri": "note:both", "name": "both"},
            {"uri": "note:blob", "name": "blob", "mimeType": "application/octet-stream", "size": 6},
        ]}),
        _ => json!({"resources": [one()]}),
    }
}

fn one() -> Value {
    json!({
        "uri": "note:one", "name": "one", "title": "Note one", "description": "The first note.",
        "mimeType": "text/plain", "annotations": annotations(),
    })
}

pub(crate) fn annotations() -> Value {
    json!({"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"})
}

fn pages(cursor: Option<&str>) -> Value {
    let page: u64 = cursor
        .and_then(|cursor| cursor.parse().ok())
        .unwrap_or_default();
    let resources: Vec<Value> = (page * 10..page * 10 + 10)
        .map(|number| json!({"uri": format!("note:{number}"), "name": number.to_string()}))
        .collect();
    json!({"resources": resources, "nextCursor": (page + 1).to_string()})
}

pub(crate) fn templates(mode: Mode) -> Value {
    if !mode.offers_everything() {
        return json!({"resourceTemplates": []});
    }
    json!({"resourceTemplates": [{
        "uriTemplate": "note:{name}{?lang}", "name": "note", "title": "Notes", "description": "A note by its name.",
        "mimeType": "text/plain",
    }]})
}

pub(crate) fn complete(params: &Value) -> Value {
    let typed = params["argument"]["value"].as_str().unwrap_or_default();
    let offered = match params["argument"]["name"].as_str() {
        Some("name") => NAMES,
        Some("lang") => LANGUAGES,
        _ => &[],
    };
    let values: Vec<_> = offered
        .iter()
        .filter(|value| value.starts_with(typed))
        .collect();
    json!({"completion": {"total": values.len(), "hasMore": false, "values": values}})
}

pub(crate) fn read(server: &Server, params: &Value) -> Reply {
    let Some(uri) = params["uri"].as_str() else {
        return Reply::invalid("there is no uri to read");
    };
    match (server.mode, uri) {
        (Mode::SilentCall, _) => Reply::Elsewhere,
        (Mode::HugeBlob, _) => {
            Reply::Filled(contents(&[json!({"uri": uri, "blob": FILLING})]), HUGE)
        }
        (Mode::BadBase64, _) => Reply::Result(contents(&[json!({"uri": uri, "blob": BAD_BASE64})])),
        (Mode::SelfLink, "note:self") => {
            let link =
                json!({"type": "resource_link", "uri": "note:self", "name": "self"}).to_string();
            Reply::Result(contents(&[
                json!({"uri": uri, "mimeType": "application/json", "text": link}),
            ]))
        }
        (Mode::PathEscape, uri) if PATHS.contains(&uri) => Reply::Result(contents(&[
            json!({"uri": uri, "text": "The server's own words."}),
        ])),
        (Mode::Escapes, "note:nasty") => Reply::Result(contents(&[
            json!({"uri": uri, "mimeType": NASTY, "text": NASTY}),
        ])),
        _ => note(server, uri),
    }
}

fn note(server: &Server, uri: &str) -> Reply {
    let (name, language) = match uri.split_once("?lang=") {
        Some((name, language)) => (name, Some(language)),
        None => (uri, None),
    };
    let text = |text: String| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    let blob = json!({"uri": uri, "mimeType": "application/octet-stream", "blob": BLOB});
    match (name, language) {
        ("note:one", Some(language)) => {
            Reply::Result(contents(&[text(format!("Note one, in {language}."))]))
        }
        ("note:one", None) => Reply::Result(contents(&[text(match server.touched {
            0 => "The first note.".to_owned(),
            times => format!("The first note, version {}.", times + 1),
        })])),
        ("note:both", _) => Reply::Result(contents(&[text("Both of them.".to_owned()), blob])),
        ("note:blob", _) => Reply::Result(contents(&[blob])),
        _ => Reply::Error {
            code: if server.mode.is_modern() {
                INVALID_PARAMS
            } else {
                NOT_FOUND
            },
            message: "there is no such note".to_owned(),
            data: json!({"uri": uri}),
        },
    }
}

fn contents(contents: &[Value]) -> Value {
    Value::Object(Map::from_iter([("contents".to_owned(), json!(contents))]))
}
