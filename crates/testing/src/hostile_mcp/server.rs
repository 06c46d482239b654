//! Answers messages, whichever way they come, in the era that the mode speaks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value, json};

use super::{
    modes::Mode,
    outgoing::{Outbox, Outgoing},
    resources, tools,
};

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";
const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The number of questions of `asks-forever` and `rounds-forever` for one call.
const FOREVER: u32 = 1000;
/// The methods whose results say how long they hold, in 2026-07-28.
const CACHEABLE: &[&str] = &[
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The outcome of a request.
pub(crate) enum Reply {
    Result(Value),
    /// A result with a hole in it for so many bytes.
    Filled(Value, usize),
    Error {
        code: i64,
        message: String,
        data: Value,
    },
    /// The questions to the client before there is a result.
    Ask(Question),
    /// Sent from elsewhere, or never.
    Elsewhere,
}

impl Reply {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Error {
            code: INVALID_PARAMS,
            message: message.into(),
            data: Value::Null,
        }
    }
}

/// A request to the client, and how often it is made.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    pub(crate) times: u32,
}

impl Question {
    pub(crate) fn once(method: &'static str, params: Value) -> Self {
        Self {
            method,
            params,
            times: 1,
        }
    }

    pub(crate) fn forever(method: &'static str, params: Value) -> Self {
        Self {
            method,
            params,
            times: FOREVER,
        }
    }
}

/// A request in hand.
pub(crate) struct Call<'a> {
    pub(crate) id: Value,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    pub(crate) outbox: &'a Outbox,
}

/// A call of a tool that waits for the client's answer to a question.
struct Waiting {
    call: Value,
    outbox: Outbox,
    question: Question,
}

/// A `subscriptions/listen` that is open.
struct Subscription {
    id: Value,
    wants: Value,
    outbox: Outbox,
}

/// The ids of requests that the client has cancelled, for the threads that work on them.
#[derive(Clone, Default)]
pub(crate) struct Cancelled(Arc<Mutex<Vec<Value>>>);

impl Cancelled {
    fn add(&self, id: Value) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(id);
    }

    pub(crate) fn has(&self, id: &Value) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(id)
    }
}

/// The server, whatever carries its messages.
pub(crate) struct Server {
    pub(crate) mode: Mode,
    pub(crate) cancelled: Cancelled,
    /// True if `grow` was called.
    pub(crate) grown: bool,
    /// The number of calls of `touch`.
    pub(crate) touched: u32,
    /// The client's description of itself, its notifications and its requests, which the tool `heard` returns.
    pub(crate) client: Value,
    pub(crate) notifications: Vec<Value>,
    pub(crate) requests: Vec<String>,
    waiting: BTreeMap<String, Waiting>,
    /// The `requestState`s that are out, with how many more times their question is to be asked.
    rounds: BTreeMap<String, u32>,
    asked: u32,
    subscribed: BTreeSet<String>,
    subscriptions: Vec<Subscription>,
}

impl Server {
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            mode,
            cancelled: Cancelled::default(),
            grown: false,
            touched: 0,
            client: Value::Null,
            notifications: Vec::new(),
            requests: Vec::new(),
            waiting: BTreeMap::new(),
            rounds: BTreeMap::new(),
            asked: 0,
            subscribed: BTreeSet::new(),
            subscriptions: Vec::new(),
        }
    }

    /// Takes a message and sends what it leads to.
    pub(crate) fn receive(&mut self, message: Value, outbox: &Outbox) {
        let (id, method) = (message.get("id"), message["method"].as_str());
        match (id, method) {
            (Some(id), Some(method)) => {
                self.request(&Call {
                    id: id.clone(),
                    method,
                    params: &message["params"],
                    outbox,
                });
            }
            (None, Some(method)) => self.notification(method, &message),
            (Some(_), None) => self.answer(&message),
            (None, None) => {}
        }
    }

    fn request(&mut self, call: &Call<'_>) {
        self.requests.push(
            match call.params["uri"].as_str().or(call.params["name"].as_str()) {
                Some(what) => format!("{} {what}", call.method),
                None => call.method.to_owned(),
            },
        );
        if matches!(self.mode, Mode::Silent | Mode::OnlyRubbish) {
            return;
        }
        let reply = self.reply(call);
        self.send(call, reply);
    }

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        let modern = self.mode.is_modern();
        if modern && let Some(refusal) = refusal(call.params) {
            return refusal;
        }
        match call.method {
            "initialize" if !modern => self.initialize(call.params),
            "server/discover" if modern => self.discover(call.params),
            "ping" | "logging/setLevel" if !modern => Reply::Result(json!({})),
            "resources/subscribe" | "resources/unsubscribe" if !modern => self.subscribe(call),
            "subscriptions/listen" if modern => self.listen(call),
            "tools/list" => Reply::Result(tools::list(self, call.params)),
            "tools/call" => tools::call(self, call),
            "resources/list" => Reply::Result(resources::list(self.mode, call.params)),
            "resources/templates/list" => Reply::Result(resources::templates(self.mode)),
            "resources/read" => resources::read(self, call.params),
            "completion/complete" => Reply::Result(resources::complete(call.params)),
            other => Reply::Error {
                code: METHOD_NOT_FOUND,
                message: format!("there is no method {other}"),
                data: Value::Null,
            },
        }
    }

    fn send(&mut self, call: &Call<'_>, reply: Reply) {
        let id = if self.mode == Mode::WrongId && call.method == "tools/call" {
            json!(987_654)
        } else {
            call.id.clone()
        };
        let sent = match reply {
            Reply::Result(result) => {
                Outgoing::Message(answered(id, self.complete(call.method, result)))
            }
            Reply::Filled(result, size) => {
                Outgoing::Filled(answered(id, self.complete(call.method, result)), size)
            }
            Reply::Error {
                code,
                message,
                data,
            } => Outgoing::Message(refused(id, code, message, data)),
            Reply::Ask(question) => return self.ask(call, question),
            Reply::Elsewhere => return,
        };
        // The client may be gone.
        let _ = call.outbox.send(sent);
    }

    /// The result with what 2026-07-28 wants in each.
    fn complete(&self, method: &str, mut result: Value) -> Value {
        if !self.mode.is_modern() {
            return result;
        }
        let fields = result.as_object_mut().expect("every result is an object");
        fields
            .entry("resultType")
            .or_insert_with(|| json!("complete"));
        if CACHEABLE.contains(&method) {
            fields.insert("ttlMs".to_owned(), json!(5000));
            fields.insert("cacheScope".to_owned(), json!("private"));
        }
        let meta = fields
            .entry("_meta")
            .or_insert_with(|| Value::Object(Map::new()));
        meta[SERVER_INFO] = server_info();
        result
    }

    fn initialize(&mut self, params: &Value) -> Reply {
        self.client = params.clone();
        Reply::Result(json!({
            "protocolVersion": LEGACY,
            "capabilities": {
                "tools": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true},
                "completions": {},
                "logging": {},
            },
            "serverInfo": server_info(),
            "instructions": "A server for tests.",
        }))
    }

    fn discover(&mut self, params: &Value) -> Reply {
        self.client = params["_meta"].clone();
        Reply::Result(json!({
            "supportedVersions": [MODERN],
            "capabilities": {
                "tools": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true},
                "completions": {},
                "logging": {},
            },
            "instructions": "A server for tests.",
        }))
    }

    fn notification(&mut self, method: &str, message: &Value) {
        self.notifications
            .push(json!({"method": method, "params": message["params"]}));
        if method == "notifications/cancelled" {
            let id = &message["params"]["requestId"];
            self.cancelled.add(id.clone());
            self.subscriptions
                .retain(|subscription| subscription.id != *id);
            self.waiting.retain(|_, waiting| waiting.call != *id);
        }
    }

    // -- questions to the client ---------------------------------------------------------------------------------

    fn ask(&mut self, call: &Call<'_>, question: Question) {
        if self.mode.offers_everything() && !self.can_be_asked(call, &question) {
            self.send(call, not_declared());
        } else if self.mode.is_modern() {
            let reply = self.round(call.params, question);
            self.send(call, reply);
        } else {
            self.put(Waiting {
                call: call.id.clone(),
                outbox: call.outbox.clone(),
                question,
            });
        }
    }

    /// True if the client declared that it answers questions. A refusal of other requests does no harm.
    fn can_be_asked(&self, call: &Call<'_>, question: &Question) -> bool {
        let capabilities = if self.mode.is_modern() {
            &call.params["_meta"][CLIENT_CAPABILITIES]
        } else {
            &self.client["capabilities"]
        };
        question.method != "elicitation/create" || capabilities["elicitation"].is_object()
    }

    /// Sends the question as a request of its own (2025-11-25).
    fn put(&mut self, waiting: Waiting) {
        self.asked += 1;
        let id = format!("ask-{}", self.asked);
        let Question { method, params, .. } = &waiting.question;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let _ = waiting.outbox.send(Outgoing::Message(request));
        self.waiting.insert(id, waiting);
    }

    /// Takes the client's answer to a question, and asks again or answers the call.
    fn answer(&mut self, message: &Value) {
        let waiting = message["id"]
            .as_str()
            .and_then(|id| self.waiting.remove(id));
        let Some(mut waiting) = waiting else { return };
        waiting.question.times -= 1;
        if waiting.question.times > 0 {
            return self.put(waiting);
        }
        let answer = message.get("result").unwrap_or(&message["error"]);
        let result = tools::text(&format!("The answer was: {answer}"));
        let _ = waiting
            .outbox
            .send(Outgoing::Message(answered(waiting.call, result)));
    }

    /// Wants the question answered with a retry of the call, or takes that answer (2026-07-28).
    fn round(&mut self, params: &Value, question: Question) -> Reply {
        let left = match (
            params["requestState"].as_str(),
            params.get("inputResponses"),
        ) {
            (None, None) => question.times,
            (state, Some(answers)) => {
                let Some(left) = state.and_then(|state| self.rounds.remove(state)) else {
                    return Reply::invalid("this requestState is none of ours, or was used before");
                };
                match answers.get("question") {
                    Some(answer) if left <= 1 => {
                        return Reply::Result(tools::text(&format!("The answer was: {answer}")));
                    }
                    _ => left - 1,
                }
            }
            (Some(_), None) => {
                return Reply::invalid("there is a requestState, and no inputResponses");
            }
        };
        self.asked += 1;
        let state = format!("state-{}", self.asked);
        self.rounds.insert(state.clone(), left);
        Reply::Result(json!({
            "resultType": "input_required",
            "inputRequests": {"question": {"method": question.method, "params": question.params}},
            "requestState": state,
        }))
    }

    // -- subscriptions -------------------------------------------------------------------------------------------

    fn subscribe(&mut self, call: &Call<'_>) -> Reply {
        let uri = call.params["uri"].as_str().unwrap_or_default().to_owned();
        if call.method == "resources/subscribe" {
            self.subscribed.insert(uri);
        } else {
            self.subscribed.remove(&uri);
        }
        Reply::Result(json!({}))
    }

    fn listen(&mut self, call: &Call<'_>) -> Reply {
        let wants = call.params["notifications"].clone();
        self.subscriptions.push(Subscription {
            id: call.id.clone(),
            wants: wants.clone(),
            outbox: call.outbox.clone(),
        });
        let params = json!({"notifications": wants, "_meta": {SUBSCRIPTION_ID: call.id}});
        let _ = call.outbox.send(notification(
            "notifications/subscriptions/acknowledged",
            params,
        ));
        Reply::Elsewhere
    }

    /// Tells who wants to know that the list of tools has changed.
    pub(crate) fn announce_tools(&self, outbox: &Outbox) {
        let method = "notifications/tools/list_changed";
        if !self.mode.is_modern() {
            let _ = outbox.send(notification(method, json!({})));
        }
        for subscription in &self.subscriptions {
            if subscription.wants["toolsListChanged"] == true {
                subscription.tell(method, json!({}));
            }
        }
    }

    /// Tells who wants to know that this resource has changed.
    pub(crate) fn announce_update(&self, uri: &str, outbox: &Outbox) {
        let method = "notifications/resources/updated";
        if self.subscribed.contains(uri) {
            let _ = outbox.send(notification(method, json!({"uri": uri})));
        }
        for subscription in &self.subscriptions {
            let uris = subscription.wants["resourceSubscriptions"].as_array();
            if uris.is_some_and(|uris| uris.iter().any(|wanted| wanted == uri)) {
                subscription.tell(method, json!({"uri": uri}));
            }
        }
    }
}

impl Subscription {
    fn tell(&self, method: &str, mut params: Value) {
        params["_meta"] = json!({SUBSCRIPTION_ID: self.id});
        let _ = self.outbox.send(notification(method, params));
    }
}

/// Returns the error of a request of 2026-07-28 that doesn't name its version and its client's capabilities.
fn refusal(params: &Value) -> Option<Reply> {
    let meta = &params["_meta"];
    match meta[PROTOCOL_VERSION].as_str() {
        None => Some(Reply::invalid(format!("_meta has no {PROTOCOL_VERSION}"))),
        Some(MODERN) if meta[CLIENT_CAPABILITIES].is_object() => None,
        Some(MODERN) => Some(Reply::invalid(format!(
            "_meta has no {CLIENT_CAPABILITIES}"
        ))),
        Some(other) => Some(Reply::Error {
            code: UNSUPPORTED_VERSION,
            message: "unsupported protocol version".to_owned(),
            data: json!({"requested": other, "supported": [MODERN]}),
        }),
    }
}

fn not_declared() -> Reply {
    Reply::Error {
        code: MISSING_CAPABILITY,
        message: "the client has not said that it can be asked".to_owned(),
        data: json!({"requiredCapabilities": {"elicitation": {}}}),
    }
}

fn server_info() -> Value {
    json!({"name": "hostile", "version": "1.0.0"})
}

pub(crate) fn notification(method: &str, params: Value) -> Outgoing {
    Outgoing::Message(json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

pub(crate) fn answered(id: Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn refused(id: Value, code: i64, message: impl Into<String>, data: Value) -> Value {
    let mut error = json!({"code": code, "message": message.into()});
    if !data.is_null() {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}
