//! Conversations for the tests of every format: events by hand, and any at all.

use std::{
    collections::{HashMap, VecDeque},
    error::Error as StdError,
};

use jp_conversation::{
    ChatRequest, ChatResponse, Event, EventKind, Stream, ToolCallRequest, ToolCallResponse,
    view::{Thread, thread},
};
use jp_resource::{BlobRef, Resource, ResourceContent, Snapshot};
use jp_tool::{ContentBlock, Media, StoredBlock};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::{Capabilities, Contents, Decoder, Error, Fault, Note, StreamEvent, Tool};

/// Payloads by reference, and the references in the order they were asked for.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) bytes: HashMap<BlobRef, Vec<u8>>,
    pub(crate) asked: Vec<BlobRef>,
}

impl Contents for Store {
    fn load(&mut self, blob: &BlobRef) -> Result<ResourceContent, Box<dyn StdError + Send + Sync>> {
        self.asked.push(*blob);
        let bytes = self.bytes.get(blob).ok_or("no such blob")?;
        Ok(ResourceContent::from_blob(blob, bytes.clone())?)
    }
}

pub(crate) fn stream(kinds: Vec<EventKind>, store: &mut Store) -> Stream {
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let mut event = |kind| {
        let mut event = Event::new(now, kind);
        let put = |bytes: &[u8], encoding| {
            let blob = BlobRef::for_content(bytes, encoding);
            store.bytes.insert(blob, bytes.to_owned());
            Ok::<_, std::convert::Infallible>(blob)
        };
        event.store_payloads(put).unwrap();
        event
    };
    Stream::from_events(kinds.into_iter().map(&mut event).collect())
}

pub(crate) fn request(content: &str, resources: Vec<Resource>) -> EventKind {
    let resources = resources.into_iter().map(Snapshot::from).collect();
    EventKind::ChatRequest(ChatRequest {
        resources,
        ..ChatRequest::new(content)
    })
}

pub(crate) fn text(uri: &str, text: &str) -> Resource {
    Resource::new(uri, ResourceContent::Text(text.to_owned()))
}

pub(crate) fn binary(name: &str, mime: &str, bytes: &[u8]) -> Resource {
    let resource = Resource::new(
        format!("file:///{name}"),
        ResourceContent::Blob(bytes.to_owned()),
    );
    resource.with_name(name).with_mime_type(mime)
}

pub(crate) fn said(text: &str) -> EventKind {
    EventKind::ChatResponse(ChatResponse::message(text))
}

pub(crate) fn thought(text: &str) -> EventKind {
    EventKind::ChatResponse(ChatResponse::reasoning(text))
}

pub(crate) fn call(id: &str) -> EventKind {
    let arguments = [
        ("z".to_owned(), Value::from("\"")),
        ("a".to_owned(), Value::from(1)),
    ];
    EventKind::ToolCallRequest(ToolCallRequest {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: arguments.into_iter().collect(),
        metadata: Map::new(),
    })
}

pub(crate) fn result(id: &str, is_error: bool, content: Vec<ContentBlock>) -> EventKind {
    EventKind::ToolCallResponse(ToolCallResponse {
        id: id.to_owned(),
        content: content.into_iter().map(StoredBlock::from).collect(),
        is_error,
        structured_content: None,
        meta: Map::new(),
    })
}

pub(crate) fn any_text() -> impl Strategy<Value = String> {
    "(?s)(</resource>|```|[\\x00-\\x1f]|\"|\\\\|\n|é|.){0,12}"
}

pub(crate) fn any_resource() -> impl Strategy<Value = Resource> {
    let content = prop_oneof![
        any_text().prop_map(ResourceContent::Text),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(ResourceContent::Blob),
    ];
    let mime = prop::option::of(prop::sample::select(vec![
        "image/png",
        "text/x-rust",
        "application/pdf",
    ]));
    (any_text(), content, mime, prop::option::of(any_text())).prop_map(
        |(uri, content, mime, formatted)| {
            let mut resource = Resource::new(uri, content);
            resource.mime_type = mime.map(str::to_owned);
            resource.formatted = formatted;
            resource
        },
    )
}

pub(crate) fn any_blocks() -> impl Strategy<Value = Vec<ContentBlock>> {
    let block = prop_oneof![
        any_text().prop_map(ContentBlock::text),
        any_resource().prop_map(ContentBlock::resource)
    ];
    prop::collection::vec(block, 0..3)
}

/// A request: the beginning of a turn.
pub(crate) fn any_request() -> impl Strategy<Value = Vec<EventKind>> {
    let schema = prop::option::of(Just(Map::new()));
    (
        any_text(),
        prop::collection::vec(any_resource(), 0..3),
        schema,
    )
        .prop_map(|(words, resources, schema)| {
            let EventKind::ChatRequest(request) = request(&words, resources) else {
                unreachable!()
            };
            vec![EventKind::ChatRequest(ChatRequest { schema, ..request })]
        })
}

/// What one response of a model says and calls, with the results, which come in any order.
pub(crate) fn any_round() -> impl Strategy<Value = Vec<EventKind>> {
    let part = prop_oneof![
        any_text().prop_map(|text| said(&text)),
        any_text().prop_map(|text| thought(&text))
    ];
    let results = prop::collection::vec(("[ab]?", any::<bool>(), any_blocks()), 0..3);
    (prop::collection::vec(part, 0..3), results).prop_map(|(mut events, results)| {
        events.extend(results.iter().map(|(id, ..)| call(id)));
        events.extend(
            results
                .into_iter()
                .rev()
                .map(|(id, is_error, blocks)| result(&id, is_error, blocks)),
        );
        events
    })
}

/// An answer that was cut off.
fn any_cut_off() -> impl Strategy<Value = Vec<EventKind>> {
    (prop::option::of(any_text()), any_text()).prop_map(|(reasoning, text)| {
        let half = ChatResponse {
            incomplete: Some("cut".to_owned()),
            ..ChatResponse::message(text)
        };
        let reasoning = reasoning.map(|text| thought(&text));
        reasoning
            .into_iter()
            .chain([EventKind::ChatResponse(half)])
            .collect()
    })
}

/// Steps of a conversation; a request to the model may follow each.
pub(crate) fn any_steps() -> impl Strategy<Value = Vec<Vec<EventKind>>> {
    prop::collection::vec(
        prop_oneof![3 => any_request(), 3 => any_round(), 1 => any_cut_off()],
        0..10,
    )
}

/// Gives a part of an answer or a call what the provider wants back with it.
pub(crate) fn with_metadata(kind: EventKind, metadata: Value) -> EventKind {
    let metadata = object(metadata);
    match kind {
        EventKind::ChatResponse(response) => EventKind::ChatResponse(ChatResponse {
            metadata,
            ..response
        }),
        EventKind::ToolCallRequest(call) => {
            EventKind::ToolCallRequest(ToolCallRequest { metadata, ..call })
        }
        other => panic!("{other:?} has no metadata"),
    }
}

/// A request whose answer must fit a schema.
pub(crate) fn question(words: &str, schema: Value) -> EventKind {
    EventKind::ChatRequest(ChatRequest {
        schema: Some(object(schema)),
        ..ChatRequest::new(words)
    })
}

pub(crate) fn tool(name: &str, description: &str, parameters: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: object(parameters),
    }
}

pub(crate) fn media(mime_type: &str, data: &[u8]) -> Media {
    Media {
        data: data.to_owned(),
        mime_type: mime_type.to_owned(),
        annotations: None,
        meta: None,
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

/// A model that takes everything.
pub(crate) const EVERYTHING: Capabilities = Capabilities {
    images: true,
    pdf: true,
    files: true,
    audio: true,
    binary_results: true,
    schema: true,
    tools: true,
};
/// A model that takes text, schemas and tools.
pub(crate) const TEXT_ONLY: Capabilities = Capabilities {
    images: false,
    pdf: false,
    files: false,
    audio: false,
    binary_results: false,
    ..EVERYTHING
};

/// Encodes a conversation, and returns the request's body and what the encoder noted.
///
/// Checks that payloads were asked for in the thread's order.
pub(crate) fn encode_events(
    kinds: Vec<EventKind>,
    encode: impl FnOnce(&Thread<'_>, &mut Store, &mut Vec<u8>) -> Result<Vec<Note>, Error>,
) -> (String, Vec<String>) {
    let mut store = Store::default();
    let stream = stream(kinds, &mut store);
    let thread = thread(&stream);
    let mut out = Vec::new();
    let notes = encode(&thread, &mut store, &mut out).unwrap();
    assert_eq!(store.asked, thread.blobs(), "in the thread's order");
    (
        String::from_utf8(out).unwrap(),
        notes.iter().map(Note::to_string).collect(),
    )
}

/// Returns the members of an array of a body, one a line, without the first `skipped`.
pub(crate) fn rows(body: &str, array: &str, skipped: usize) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let rows = body[array].as_array().unwrap().iter().skip(skipped);
    rows.map(|row| format!("{row}\n")).collect()
}

/// Cuts a body down to what it says of the history: what is between `start` and `end`.
pub(crate) fn cut_history<'b>(body: &'b str, start: &str, end: &str) -> &'b str {
    let (_, history) = body.split_once(start).unwrap();
    history.strip_suffix(end).unwrap()
}

/// Checks that encoding twice gives the same, and JSON.
pub(crate) fn check_stable(
    encode: impl Fn() -> (String, Vec<String>),
) -> Result<(), TestCaseError> {
    let (body, notes) = encode();
    prop_assert!(serde_json::from_str::<Value>(&body).is_ok(), "{}", body);
    prop_assert_eq!(encode(), (body, notes));
    Ok(())
}

/// Checks that the history of each request after a step begins with that of the request before; returns the bodies.
pub(crate) fn check_histories(
    steps: &[Vec<EventKind>],
    encode: impl Fn(Vec<EventKind>) -> String,
    history: impl Fn(&str) -> String,
) -> Result<Vec<String>, TestCaseError> {
    // A model's response that called nothing ends its turn: only a request may follow.
    let asks = |end: &usize| {
        !matches!(
            steps[end - 1].last(),
            None | Some(EventKind::ChatResponse(_))
        )
    };
    let ends = (1..=steps.len()).filter(asks);
    let bodies: Vec<_> = ends.map(|end| encode(steps[..end].concat())).collect();
    for pair in bodies.windows(2) {
        let [before, after] = [&pair[0], &pair[1]].map(|body| history(body));
        prop_assert!(after.starts_with(&before), "{}\n{}", pair[0], pair[1]);
    }
    Ok(bodies)
}

/// What a stream gave, and why it ended early if it did.
pub(crate) type Decoded = (Vec<StreamEvent>, Result<(), String>);

/// Writes what a stream gave, a line each.
pub(crate) fn lines((events, result): Decoded) -> Vec<String> {
    let line = |event| match event {
        StreamEvent::Text(text) => format!("text {text}"),
        StreamEvent::Reasoning(text) => format!("reasoning {text}"),
        StreamEvent::EndPart(metadata) => format!("end {}", Value::Object(metadata)),
        StreamEvent::ToolCall(call) => {
            let [arguments, metadata] = [call.arguments, call.metadata].map(Value::Object);
            format!("call {}:{} {arguments} {metadata}", call.id, call.name)
        }
        StreamEvent::Usage(usage) => serde_json::to_string(&usage).unwrap(),
        StreamEvent::Finish(reason) => format!("{reason:?}"),
    };
    events.into_iter().map(line).chain(result.err()).collect()
}

/// Decodes a stream that comes in these chunks; `describe` writes the fault that it ends with.
pub(crate) fn decode_chunks(
    mut decoder: Decoder,
    chunks: &[&[u8]],
    describe: impl FnOnce(Fault) -> String,
) -> Decoded {
    let mut events = VecDeque::new();
    let mut result = Ok(());
    for chunk in chunks {
        result = result.and_then(|()| decoder.push(chunk, &mut events));
    }
    let result = result.and_then(|()| decoder.finish(&mut events));
    (events.into(), result.map_err(describe))
}

/// Writes a fault, with the status that the provider names.
pub(crate) fn describe_with_status(fault: Fault) -> String {
    match fault {
        Fault::Provider {
            status: Some(status),
            ..
        } => format!("{status}: {fault}"),
        fault => fault.to_string(),
    }
}

/// Cuts a stream into chunks at these places, which may be beyond its end or the same.
pub(crate) fn split(stream: &str, cuts: Vec<usize>) -> Vec<&[u8]> {
    let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    let pairs = cuts.windows(2);
    pairs
        .map(|pair| &stream.as_bytes()[pair[0]..pair[1]])
        .collect()
}

/// Checks a recorded stream, if it is there: how many events it gives, wherever it is cut.
pub(crate) fn assert_recorded(decode: impl Fn(&[&[u8]]) -> Decoded, name: &str, count: usize) {
    let Some(stream) = recorded(name) else { return };
    let (events, result) = decode(&[&stream]);
    assert_eq!((events.len(), result), (count, Ok(())));
    assert_every_cut(decode, &stream);
}

/// Checks that a stream gives the same wherever it is cut, and in single bytes.
pub(crate) fn assert_every_cut(decode: impl Fn(&[&[u8]]) -> Decoded, stream: &[u8]) {
    let whole = decode(&[stream]);
    for cut in 0..stream.len() {
        assert_eq!(decode(&[&stream[..cut], &stream[cut..]]), whole, "{cut}");
    }
    assert_eq!(decode(&stream.chunks(1).collect::<Vec<_>>()), whole);
}

/// Reads a recorded stream; `None`, with the reason printed, if there is none.
pub(crate) fn recorded(name: &str) -> Option<Vec<u8>> {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/provider-examples/"
    );
    let path = folder.to_owned() + name;
    let stream = std::fs::read(&path).ok();
    if stream.is_none() {
        println!("skipped: no {path}");
    }
    stream
}
