//! A client that writes JSON lines and reads them, and nothing more.

use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// The time limit for an answer in a test.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The way in which a client opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize`.
    Legacy(&'static str),
    /// With `_meta` in each request.
    Modern,
}

/// All revisions.
pub const ERAS: [Era; 5] = [
    Era::Legacy("2024-11-05"),
    Era::Legacy("2025-03-26"),
    Era::Legacy("2025-06-18"),
    Era::Legacy("2025-11-25"),
    Era::Modern,
];

/// A client of one session.
pub struct Client {
    /// The way in which it opened the session.
    pub era: Era,
    next: u64,
    /// The messages that aren't answers.
    pub notices: Vec<Value>,
    output: Pin<Box<dyn AsyncWrite + Send>>,
    input: Pin<Box<dyn AsyncBufRead + Send>>,
}

impl Client {
    /// Connects to what reads `output` and writes `input`.
    pub async fn connect(
        input: impl AsyncRead + Send + 'static,
        output: impl AsyncWrite + Send + 'static,
        era: Era,
    ) -> Self {
        let (input, output) = (Box::pin(BufReader::new(input)), Box::pin(output));
        let mut client = Self {
            era,
            next: 0,
            notices: Vec::new(),
            output,
            input,
        };
        if let Era::Legacy(version) = era {
            let result = client.result("initialize", initialize(version)).await;
            assert_eq!(result["protocolVersion"], version);
            client.notify("notifications/initialized", json!({})).await;
        }
        client
    }

    /// The result, without what all results of the era have.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params).await;
        let mut result = answer["result"].take();
        assert!(!result.is_null(), "{method}: {answer}");
        if self.era == Era::Modern {
            assert_eq!(result["resultType"], "complete", "{method}: {result}");
            result.as_object_mut().unwrap().remove("resultType");
        }
        result
    }

    /// The code, the message and the data of an error.
    pub async fn error(&mut self, method: &str, params: Value) -> (i64, String, Value) {
        let mut answer = self.request(method, params).await;
        let code = answer["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("{method}: {answer}"));
        let message = answer["error"]["message"].as_str().unwrap().to_owned();
        (code, message, answer["error"]["data"].take())
    }

    /// Reads a resource.
    pub async fn read_uri(&mut self, uri: &str) -> Value {
        self.result("resources/read", json!({ "uri": uri })).await
    }

    /// Asks for a resource and does not wait; returns the id of the request.
    pub async fn send_read(&mut self, uri: &str) -> u64 {
        self.send("resources/read", json!({ "uri": uri })).await
    }

    /// Reads a resource, and returns its first content.
    pub async fn read_resource(&mut self, uri: &str) -> Value {
        self.read_uri(uri).await["contents"][0].take()
    }

    /// Reads a resource, and returns its text.
    pub async fn text(&mut self, uri: &str) -> String {
        let content = self.read_resource(uri).await;
        content["text"].as_str().unwrap().to_owned()
    }

    /// Reads a resource in vain, and returns the error.
    pub async fn refusal(&mut self, uri: &str) -> (i64, String, Value) {
        self.error("resources/read", json!({ "uri": uri })).await
    }

    /// Returns the URIs of the list of resources.
    pub async fn uris(&mut self) -> Vec<String> {
        let listed = self.result("resources/list", json!({})).await;
        let resources = listed["resources"].as_array().unwrap().iter();
        resources
            .map(|resource| resource["uri"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Subscribes to resources, as the revision has it.
    pub async fn subscribe(&mut self, uris: &[&str]) {
        if self.era != Era::Modern {
            for uri in uris {
                self.result("resources/subscribe", json!({ "uri": uri }))
                    .await;
            }
            return;
        }
        self.listen(json!({ "resourceSubscriptions": uris })).await;
    }

    /// Begins a stream of these notifications, and waits until it is acknowledged.
    pub async fn listen(&mut self, notifications: Value) {
        let params = json!({ "notifications": notifications });
        self.send("subscriptions/listen", params).await;
        self.expect_notice("notifications/subscriptions/acknowledged")
            .await;
    }

    /// Waits for the news of a change, and returns the URI of the resource.
    pub async fn updated(&mut self) -> Value {
        self.expect_notice("notifications/resources/updated").await["uri"].take()
    }

    /// Waits for the news of a change, which must be of this resource; `when` says of which change.
    pub async fn expect_update(&mut self, uri: &str, when: &str) {
        assert_eq!(self.updated().await, uri, "{when}");
    }

    /// Waits for a notification, which must be this one, and returns its parameters.
    pub async fn expect_notice(&mut self, method: &str) -> Value {
        let mut notice = self.notice().await;
        assert_eq!(notice["method"], method, "{notice}");
        notice["params"].take()
    }

    /// Completes a variable of a template; `others` are the variables that have a value.
    pub async fn complete(
        &mut self,
        template: &str,
        name: &str,
        value: &str,
        others: Value,
    ) -> Value {
        let reference = json!({ "type": "ref/resource", "uri": template });
        let argument = json!({ "name": name, "value": value });
        let params =
            json!({ "ref": reference, "argument": argument, "context": { "arguments": others } });
        self.result("completion/complete", params).await["completion"].take()
    }

    /// Sends a request and waits for the answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Writes a request and does not wait; gives its id.
    pub async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if self.era == Era::Modern {
            params["_meta"] = meta();
        }
        self.write(
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }),
        )
        .await;
        self.next
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Waits for the answer to a request; answers to others are dropped.
    pub async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.read().await;
            match message.get("method") {
                Some(_) => self.notices.push(message),
                None if message["id"] == id => return message,
                None => (),
            }
        }
    }

    /// Waits for a notification.
    pub async fn notice(&mut self) -> Value {
        if !self.notices.is_empty() {
            return self.notices.remove(0);
        }
        let message = self.read().await;
        assert!(message.get("method").is_some(), "{message}");
        message
    }

    /// Writes a message as it is.
    pub async fn write(&mut self, message: Value) {
        self.write_line(&message.to_string()).await;
    }

    /// Writes a line as it is.
    pub async fn write_line(&mut self, line: &str) {
        self.output
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        self.output.flush().await.unwrap();
    }

    /// Reads a line and looks at nothing in it.
    pub async fn skip(&mut self) {
        let mut line = Vec::new();
        let read = self.input.read_until(b'\n', &mut line);
        assert!(
            tokio::time::timeout(PATIENCE, read)
                .await
                .expect("no answer")
                .unwrap()
                > 0
        );
    }

    /// Reads a message.
    pub async fn read(&mut self) -> Value {
        let mut line = String::new();
        let read = self.input.read_line(&mut line);
        tokio::time::timeout(PATIENCE, read)
            .await
            .expect("no answer")
            .unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Says that nothing more will be asked.
    pub async fn close(&mut self) {
        self.output.shutdown().await.unwrap();
        self.output = Box::pin(tokio::io::sink());
    }
}

/// Waits for what a process ends with.
pub async fn within_patience<T>(wait: impl Future<Output = std::io::Result<T>>) -> T {
    let ended = tokio::time::timeout(PATIENCE, wait).await;
    ended.expect("it goes on").unwrap()
}

/// Returns the parameters of `initialize`.
pub fn initialize(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

/// Returns the `_meta` of a request of 2026-07-28.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
