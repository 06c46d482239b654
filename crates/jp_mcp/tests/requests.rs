//! What a server can do in the middle of a request, over stdio: the server is a script of Python's.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    env,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use jp_mcp::{
    Caller, Change, Client, Elicitation, Elicited, Fault, Limits, Program, ServerConfig, Servers,
    Transport,
};
use jp_tool::ContentBlock;
use serde_json::{Map, json};

/// What every server here begins with: `send` writes a message, `result` an answer, `asks` an elicitation whose answer it
/// waits for, and `requests` gives what comes, once the beginning is over.
const SERVER: &str = r#"
import json, sys, time
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def result(request, **fields):
    send(id=request["id"], result=fields)
def text(request, words):
    result(request, content=[{"type": "text", "text": words}])
def progress(request):
    token = request["params"]["_meta"]["progressToken"]
    send(method="notifications/progress", params={"progressToken": token, "progress": time.time()})
def read():
    line = sys.stdin.readline()
    if not line: sys.exit()
    return json.loads(line)
def asks(schema):
    send(id="q", method="elicitation/create", params={"message": "Well?", "requestedSchema": schema})
    while True:
        message = read()
        if message.get("id") == "q": return message["result"]
def requests():
    while True:
        request = read()
        method = request.get("method")
        if method == "server/discover":
            send(id=request["id"], error={"code": -32601, "message": "what?"})
        elif method == "initialize":
            result(request, protocolVersion="2025-11-25", capabilities={"tools": {}, "resources": {}}, serverInfo={"name": "s", "version": "1"})
        elif "id" in request and method:
            yield request
"#;

fn python() -> bool {
    Command::new("python3").arg("--version").output().is_ok()
}

fn servers(script: &str, timeout: Duration) -> Servers {
    let program = Program {
        program: "python3".to_owned(),
        arguments: vec!["-c".to_owned(), format!("{SERVER}{script}")],
        environment: BTreeMap::new(),
        withheld: Vec::new(),
        directory: env::temp_dir(),
    };
    let config = ServerConfig {
        name: "s".to_owned(),
        transport: Transport::Stdio(program),
        revision: None,
        startup_timeout: Duration::from_secs(20),
        timeout,
    };
    let client = Client {
        version: "1".to_owned(),
        root: env::temp_dir(),
        wants_logs: false,
    };
    Servers::new(vec![config], client).unwrap()
}

/// Answers each question after a while.
struct Answering {
    after: Duration,
    asked: Cell<usize>,
}

impl Caller for Answering {
    fn answer(&self, _: &Elicitation) -> Elicited {
        self.asked.set(self.asked.get() + 1);
        thread::sleep(self.after);
        Elicited::Accept(Some(Map::new()))
    }
}

fn answering(after: Duration) -> Answering {
    Answering {
        after,
        asked: Cell::new(0),
    }
}

fn words(block: &ContentBlock) -> &str {
    match block {
        ContentBlock::Text { text, .. } => text,
        block => panic!("{block:?} is no text"),
    }
}

#[test]
fn time_that_a_person_takes_is_theirs() {
    if !python() {
        return;
    }
    let script = "
for request in requests():
    progress(request)
    answer = asks({'type': 'object', 'properties': {}})
    text(request, answer['action'])
";
    let servers = servers(script, Duration::from_millis(300));
    let connection = servers.connect("s", &()).unwrap();
    // Longer than the timeout, and than the most that a request may take in all.
    let caller = answering(Duration::from_millis(3_500));
    let called = connection.call("t", &Map::new(), &caller).unwrap();
    assert_eq!(words(&called.response.content[0]), "accept");
}

#[test]
fn signs_of_life_put_the_end_off_but_not_for_ever() {
    if !python() {
        return;
    }
    let script = "
for request in requests():
    if request['params']['name'] == 'slow':
        for _ in range(12):
            time.sleep(0.1)
            progress(request)
        text(request, 'done')
    for _ in range(2000 if request['params']['name'] == 'endless' else 0):
        time.sleep(0.05)
        progress(request)
";
    let servers = servers(script, Duration::from_millis(500));
    let connection = servers.connect("s", &()).unwrap();
    let called = connection.call("slow", &Map::new(), &()).unwrap();
    assert_eq!(words(&called.response.content[0]), "done");
    let start = Instant::now();
    let error = connection.call("endless", &Map::new(), &()).unwrap_err();
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        error.fault.to_string(),
        "it did not answer `tools/call` within 5 s"
    );
}

#[test]
fn page_that_is_no_object_is_a_mistake_of_the_servers() {
    if !python() {
        return;
    }
    let script = "
for request in requests():
    send(id=request['id'], error={'code': -32042, 'message': 'visit', 'data': {'elicitations': ['x']}})
";
    let servers = servers(script, Duration::from_secs(10));
    let error = servers
        .connect("s", &())
        .unwrap()
        .read("x:y", &())
        .unwrap_err();
    assert!(matches!(error.fault, Fault::Malformed(_)), "{error}");
}

#[test]
fn page_that_is_not_visited_is_no_mistake() {
    if !python() {
        return;
    }
    let script = "
for request in requests():
    page = {'mode': 'url', 'message': 'Log in.', 'url': 'https://example.test/', 'elicitationId': '1'}
    send(id=request['id'], error={'code': -32042, 'message': 'visit', 'data': {'elicitations': [page]}})
";
    let servers = servers(script, Duration::from_secs(10));
    let connection = servers.connect("s", &()).unwrap();
    assert!(matches!(
        connection.read("x:y", &()).unwrap_err().fault,
        Fault::Declined
    ));
    // A person who always says yes is not asked for ever.
    let caller = answering(Duration::ZERO);
    let error = connection.read("x:y", &caller).unwrap_err();
    assert!(matches!(error.fault, Fault::TooManyRounds(_)), "{error}");
    assert_eq!(caller.asked.get(), Limits::USUAL.rounds);
}

/// Keeps which tools were called when a question came.
struct Named<'a> {
    name: &'a str,
    asked: &'a RefCell<Vec<String>>,
}

impl Caller for Named<'_> {
    fn answer(&self, _: &Elicitation) -> Elicited {
        self.asked.borrow_mut().push(self.name.to_owned());
        Elicited::Decline
    }
}

#[test]
fn question_meets_the_call_it_is_of_while_links_of_another_are_read() {
    if !python() {
        return;
    }
    let script = "
for request in requests():
    if request['method'] == 'resources/read':
        time.sleep(0.3)
        result(request, contents=[{'uri': request['params']['uri'], 'text': 'x'}])
    elif request['params']['name'] == 'links':
        result(request, content=[{'type': 'resource_link', 'uri': uri, 'name': uri} for uri in ['a:1', 'a:2']])
    else:
        text(request, asks({'type': 'object', 'properties': {}})['action'])
";
    let servers = servers(script, Duration::from_secs(10));
    let connection = servers.connect("s", &()).unwrap();
    thread::scope(|scope| {
        let links = scope.spawn(|| {
            let asked = RefCell::default();
            connection
                .call(
                    "links",
                    &Map::new(),
                    &Named {
                        name: "links",
                        asked: &asked,
                    },
                )
                .unwrap();
            asked.into_inner()
        });
        let asks = scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            let asked = RefCell::default();
            connection
                .call(
                    "asks",
                    &Map::new(),
                    &Named {
                        name: "asks",
                        asked: &asked,
                    },
                )
                .unwrap();
            asked.into_inner()
        });
        assert_eq!(
            (links.join().unwrap(), asks.join().unwrap()),
            (vec![], vec!["asks".to_owned()])
        );
    });
}

#[test]
fn link_that_failed_is_read_again_and_one_without_content_stays_a_link() {
    if !python() {
        return;
    }
    let script = "
reads = 0
for request in requests():
    uri = request['params'].get('uri') or request['params']['name']
    if request['method'] == 'tools/call':
        link = {'type': 'resource_link', 'uri': uri, 'name': 'n', 'title': 'T', 'description': 'D', '_meta': {'k': 1}}
        result(request, content=[link])
    elif uri == 'a:empty':
        result(request, contents=[])
    else:
        reads += 1
        if reads == 1: send(id=request['id'], error={'code': -32603, 'message': 'not now', 'data': {'in': '1 s'}})
        else: result(request, contents=[{'uri': uri, 'blob': 'eMOk', 'mimeType': 'text/plain'}])
";
    let servers = servers(script, Duration::from_secs(10));
    let connection = servers.connect("s", &()).unwrap();
    let failed = connection.call("a:1", &Map::new(), &()).unwrap();
    assert!(
        words(&failed.response.content[0]).contains("T (n): a:1"),
        "{failed:?}"
    );
    assert!(
        failed.warnings[0].contains(r#"not now ({"in":"1 s"})"#),
        "{failed:?}"
    );
    let read = connection.call("a:1", &Map::new(), &()).unwrap();
    // Bytes that are the text that their type says are text.
    let link = json!({"uri": "a:1", "name": "n", "title": "T", "description": "D"});
    assert_eq!(
        serde_json::to_value(&read.response.content[0]).unwrap(),
        json!({"type": "resource", "_meta": {"k": 1, "computer.jp/link": link}, "resource": {
            "uri": "a:1", "text": "xä", "mimeType": "text/plain", "name": "n", "title": "T", "description": "D",
        }})
    );
    let again = connection.call("a:1", &Map::new(), &()).unwrap();
    assert!(
        words(&again.response.content[0]).contains("read earlier in this turn"),
        "{again:?}"
    );
    let empty = connection.call("a:empty", &Map::new(), &()).unwrap();
    assert!(
        words(&empty.response.content[0]).contains("has no content"),
        "{empty:?}"
    );
}

#[test]
fn structured_content_is_not_told_twice_nor_without_bounds() {
    if !python() {
        return;
    }
    let script = r#"
for request in requests():
    name = request['params']['name']
    if name == 'same':
        result(request, content=[{"type": "text", "text": "all of it"}], structuredContent={"content": "all of it"})
    elif name == 'list':
        result(request, content=[{"type": "text", "text": '[{"a": 1}]'}], structuredContent={"entities": [{"a": 1}]})
    elif name == 'more':
        result(request, content=[{"type": "text", "text": "see below"}], structuredContent={"n": 1})
    else:
        result(request, content=[{"type": "text", "text": "much"}], structuredContent={"n": "x" * 11_000_000})
"#;
    let servers = servers(script, Duration::from_secs(20));
    let connection = servers.connect("s", &()).unwrap();
    let call = |name: &str| connection.call(name, &Map::new(), &()).unwrap();
    assert_eq!(
        [call("same"), call("list")].map(|called| called.response.content.len()),
        [1, 1]
    );
    assert_eq!(words(&call("more").response.content[1]), r#"{"n":1}"#);
    let long = call("long");
    assert_eq!(
        (
            long.response.content.len(),
            long.response.structured_content
        ),
        (1, None)
    );
    assert!(
        long.warnings[0].contains("structured content was skipped"),
        "{:?}",
        long.warnings
    );
}

#[test]
fn message_of_too_many_values_is_refused_before_it_is_read() {
    if !python() {
        return;
    }
    let script = r#"
for request in requests():
    print('{"jsonrpc":"2.0","id":%d,"result":{"tools":[' % request['id'] + '0,' * 3_000_000 + '0]}}', flush=True)
"#;
    let servers = servers(script, Duration::from_secs(20));
    let error = servers.connect("s", &()).unwrap().tools(&()).unwrap_err();
    assert_eq!(
        error.fault.to_string(),
        "it sent more than 2000000 values in one message"
    );
}

#[test]
fn first_and_last_lines_of_stderr_are_told_once() {
    if !python() {
        return;
    }
    let script = "
for request in requests():
    print('Error: there is no database', file=sys.stderr)
    for line in range(40): print('    at', line, file=sys.stderr)
    sys.exit(3)
";
    let servers = servers(script, Duration::from_secs(10));
    let connection = servers.connect("s", &()).unwrap();
    let error = connection.call("t", &Map::new(), &()).unwrap_err();
    assert_eq!(error.fault.to_string(), "it ended with exit status: 3");
    assert_eq!(error.stderr.first().unwrap(), "Error: there is no database");
    assert_eq!(error.stderr.last().unwrap().trim(), "at 39");
    assert!(
        error
            .stderr
            .iter()
            .any(|line| line.contains("21 lines are left out")),
        "{:?}",
        error.stderr
    );
    assert!(
        connection
            .call("t", &Map::new(), &())
            .unwrap_err()
            .stderr
            .is_empty()
    );
}

#[test]
fn stream_of_changes_that_ends_is_opened_again() {
    if !python() {
        return;
    }
    let script = "
streams = 0
while True:
    request = read()
    method = request.get('method')
    if method == 'server/discover':
        result(request, resultType='complete', supportedVersions=['2026-07-28'], capabilities={'resources': {'subscribe': True}}, ttlMs=0, cacheScope='private')
    elif method == 'subscriptions/listen':
        streams += 1
        meta = {'io.modelcontextprotocol/subscriptionId': request['id']}
        send(method='notifications/subscriptions/acknowledged', params={'notifications': request['params']['notifications'], '_meta': meta})
        if streams == 1: result(request, resultType='complete', _meta=meta)
";
    let servers = servers(script, Duration::from_secs(10));
    let connection = servers.connect("s", &()).unwrap();
    connection.subscribe(&["a:b"], &()).unwrap();
    let start = Instant::now();
    while !connection
        .changes()
        .contains(&Change::Resource("a:b".to_owned()))
    {
        assert!(
            !connection.is_closed() && start.elapsed() < Duration::from_secs(15),
            "nothing was told"
        );
        thread::sleep(Duration::from_millis(20));
    }
}
