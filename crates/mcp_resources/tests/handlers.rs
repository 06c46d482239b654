//! Handlers that misbehave, handlers of rmcp, and what is counted.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_resources::rmcp::ServerHandler;
use mcp_resources::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsRequestMethod, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool,
};
use mcp_resources::rmcp::service::{RequestContext, RoleServer};
use mcp_resources::{
    Limits, Metrics, Parameters, ReadError, Registry, Resource, ResourceTemplate, Server,
};
use serde_json::json;
use testing::mcp::{ERAS, Era};

const LATEST: Era = Era::Legacy("2025-11-25");

#[tokio::test]
async fn server_outlives_handlers_that_panic_and_flood() {
    let registry = Registry::new();
    let hostile = [
        Resource::new("h:panic", "panic", || -> String { panic!("boo") }),
        Resource::new("h:flood", "flood", || "x".repeat(100_000_000)),
    ];
    let errors = [
        ("h:panic", "the resource's handler panicked"),
        (
            "h:flood",
            "the resource has 100000000 bytes, over the server's limit of 10485760",
        ),
    ];
    outlives(&registry, hostile, errors).await;
}

#[tokio::test]
async fn server_outlives_handlers_that_block_and_wait() {
    let registry = Registry::with_limits(Limits::default().time(Duration::from_millis(500)));
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let block = move || {
        blocked
            .lock()
            .is_ok_and(|blocked| blocked.recv().is_ok())
            .to_string()
    };
    let hostile = [
        Resource::new("h:block", "block", block),
        Resource::new("h:wait", "wait", std::future::pending::<String>),
    ];
    let late = "the resource could not be read within 500ms";
    outlives(&registry, hostile, [("h:block", late), ("h:wait", late)]).await;
    drop(release);
}

/// Reads what is hostile at once and one by one, and then something else, in each era.
async fn outlives(registry: &Registry, hostile: [Resource; 2], errors: [(&str, &str); 2]) {
    // It needs no time, however busy the machine is.
    let works = Resource::new("h:works", "works", || std::future::ready("works"));
    for resource in hostile.into_iter().chain([works]) {
        registry
            .register_resource(resource)
            .expect("nothing else is there");
    }
    for era in ERAS {
        let mut client = support::serve(Server::new("test", "1", registry.clone()), era).await;
        for (uri, _) in errors {
            client.send_read(uri).await;
        }
        let result = client.result("resources/list", json!({})).await;
        assert_eq!(
            result["resources"].as_array().map(Vec::len),
            Some(3),
            "{era:?}"
        );
        for (uri, expected) in errors {
            let (code, message, _) = client.refusal(uri).await;
            assert_eq!(code, -32603, "{era:?} {uri}");
            assert!(message.starts_with(expected), "{era:?} {uri}: {message}");
        }
        let result = client.read_uri("h:works").await;
        assert_eq!(result["contents"][0]["text"], "works", "{era:?}");
    }
}

#[tokio::test]
async fn values_are_offered_as_far_as_they_have_no_more_bytes_than_may_be_given() {
    let registry = Registry::with_limits(Limits::default().bytes(100));
    for (name, length) in [("x", 40), ("y", 50), ("z", 101)] {
        let template = ResourceTemplate::new(format!("{name}:{{a}}"), name, |_: Parameters| "");
        let complete = move |_| vec!["v".repeat(length); 3];
        registry
            .register_template(template.complete("a", complete))
            .unwrap();
    }
    for era in ERAS {
        let mut client = support::serve(Server::new("test", "1", registry.clone()), era).await;
        for (name, offered) in [
            ("x", vec!["v".repeat(40); 2]),
            ("y", vec!["v".repeat(50); 2]),
            ("z", vec![]),
        ] {
            let reference = json!({ "type": "ref/resource", "uri": format!("{name}:{{a}}") });
            let params = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
            let completed = client.result("completion/complete", params).await;
            let expected = json!({ "values": offered, "total": 3, "hasMore": true });
            assert_eq!(completed["completion"], expected, "{era:?} {name}");
        }
    }
}

#[tokio::test]
async fn cancelled_read_ends_its_handler() {
    let registry = Registry::new();
    let (started, ended) = (
        Arc::new(tokio::sync::Notify::new()),
        Arc::new(tokio::sync::Notify::new()),
    );
    let (start, end) = (Arc::clone(&started), Arc::clone(&ended));
    let wait = move || {
        let (start, end) = (Arc::clone(&start), Ended(Arc::clone(&end)));
        async move {
            start.notify_one();
            std::future::pending::<()>().await;
            drop(end);
            ""
        }
    };
    registry
        .register_resource(Resource::new("x:wait", "wait", wait))
        .unwrap();
    let mut client = support::serve(Server::new("test", "1", registry), LATEST).await;
    let id = client.send_read("x:wait").await;
    started.notified().await;
    client
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await;
    tokio::time::timeout(testing::mcp::PATIENCE, ended.notified())
        .await
        .expect("the handler ends");
    let next = client.send("ping", json!({})).await;
    assert_eq!(client.read().await["id"], next);
}

/// Tells that it is gone.
struct Ended(Arc<tokio::sync::Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

struct Greeter;

impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions("Greet.")
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        assert_ne!(request.name, "panic");
        Ok(
            CallToolResult::success(vec![ContentBlock::text(format!("called {}", request.name))])
                .into(),
        )
    }
}

#[tokio::test]
async fn tools_of_a_handler_pass_through_beside_the_resources() {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new("x:a", "a", || "text"))
        .unwrap();
    for era in ERAS {
        let server = Server::new("test", "1", registry.clone()).with_handler(Greeter);
        let mut client = support::serve(server, era).await;
        let called = client
            .result("tools/call", json!({ "name": "greet", "arguments": {} }))
            .await;
        assert_eq!(called["content"][0]["text"], "called greet", "{era:?}");
        let read = client.read_uri("x:a").await;
        assert_eq!(read["contents"][0]["text"], "text", "{era:?}");
        let panicking = json!({ "name": "panic", "arguments": {} });
        assert_eq!(
            client.error("tools/call", panicking).await.0,
            -32603,
            "{era:?}"
        );
        if era == Era::Modern {
            let discovered = client.result("server/discover", json!({})).await;
            let capabilities =
                json!({ "resources": { "listChanged": true, "subscribe": true }, "tools": {} });
            assert_eq!(discovered["capabilities"], capabilities);
            assert_eq!(discovered["instructions"], "Greet.");
        }
    }
}

/// Declares what it is made with and answers nothing but lists.
struct Declaring {
    capabilities: ServerCapabilities,
    tools: Vec<Tool>,
}

impl ServerHandler for Declaring {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(self.capabilities.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        match self.tools.is_empty() {
            true => Err(ErrorData::method_not_found::<ListToolsRequestMethod>()),
            false => Ok(ListToolsResult::with_all_items(self.tools.clone())),
        }
    }
}

#[tokio::test]
async fn lists_of_a_handler_are_its_own_where_it_declares_them() {
    let greet = Tool::new("greet", "Greets", serde_json::Map::new());
    let both = ServerCapabilities::builder()
        .enable_tools()
        .enable_prompts()
        .build();
    let neither = ServerCapabilities::default();
    for era in ERAS {
        let client = async |capabilities: &ServerCapabilities, tools: &[Tool]| {
            let handler = Declaring {
                capabilities: capabilities.clone(),
                tools: tools.to_vec(),
            };
            support::serve(
                Server::new("test", "1", Registry::new()).with_handler(handler),
                era,
            )
            .await
        };
        for capabilities in [&both, &neither] {
            let mut with_tools = client(capabilities, std::slice::from_ref(&greet)).await;
            let listed = with_tools.result("tools/list", json!({})).await;
            assert_eq!(listed["tools"][0]["name"], "greet", "{era:?}");
            assert_eq!(
                with_tools.result("prompts/list", json!({})).await["prompts"],
                json!([]),
                "{era:?}"
            );
        }
        let listed = client(&neither, &[])
            .await
            .result("tools/list", json!({}))
            .await;
        assert_eq!(listed["tools"], json!([]), "{era:?}");
        let refused = client(&both, &[])
            .await
            .error("tools/list", json!({}))
            .await;
        assert_eq!(
            refused.0, -32601,
            "{era:?}: a handler that declares tools and refuses to list them"
        );
    }
}

#[tokio::test]
async fn arguments_of_prompts_are_completed_by_the_handler_or_by_nothing() {
    let of_prompt = || json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" } });
    let registry = Registry::new();
    let template = ResourceTemplate::new("x:{a}", "a", |_: Parameters| Ok::<_, ReadError>("a"));
    registry
        .register_template(template.complete("a", |_| vec!["1".to_owned()]))
        .unwrap();
    for era in ERAS {
        let server = Server::new("test", "1", registry.clone()).with_handler(Greeter);
        let mut client = support::serve(server, era).await;
        let completed = client.result("completion/complete", of_prompt()).await;
        assert_eq!(
            completed["completion"]["values"],
            json!([]),
            "{era:?}: the templates declare completions"
        );
        let server = Server::new("test", "1", Registry::new()).with_handler(Greeter);
        let mut client = support::serve(server, era).await;
        let refused = client.error("completion/complete", of_prompt()).await;
        assert_eq!(refused.0, -32601, "{era:?}: nothing declares completions");
    }
}

#[tokio::test]
async fn calls_are_counted_when_asked() {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new("x:a", "a", || "text"))
        .unwrap();
    let metrics = Metrics::default();
    let mut client =
        support::serve(Server::new("t", "1", registry).metrics(&metrics), LATEST).await;
    client
        .result("resources/read", json!({ "uri": "x:a" }))
        .await;
    client.refusal("x:b").await;
    client.result("resources/list", json!({})).await;
    let metrics = metrics.methods();
    assert_eq!(
        metrics.keys().copied().collect::<Vec<_>>(),
        ["resources/list", "resources/read"]
    );
    let read = metrics["resources/read"];
    assert_eq!((read.calls, read.errors), (2, 1));
    assert!(read.time > Duration::ZERO);
}

#[tokio::test]
async fn errors_of_handlers_are_told_to_the_server_with_their_causes() {
    let registry = Registry::new();
    let failing = || -> Result<String, ReadError> {
        Err(ReadError::failed(std::io::Error::other(
            "the disk is on fire",
        )))
    };
    registry
        .register_resource(Resource::new("x:a", "a", failing))
        .unwrap();
    let (sender, errors) = std::sync::mpsc::channel();
    let server = Server::new("t", "1", registry)
        .on_error(move |uri, error| sender.send(format!("{uri}: {error}")).unwrap());
    let mut client = support::serve(server, LATEST).await;
    client.refusal("x:b").await;
    client.refusal("x:a").await;
    assert_eq!(
        errors.try_iter().collect::<Vec<_>>(),
        ["x:a: the resource could not be read: the disk is on fire"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_never_returns_takes_no_thread_from_others_however_often_it_is_asked() {
    let registry = Registry::with_limits(Limits::default().time(Duration::from_secs(3)));
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    let blocks = move || {
        let _ = ended.lock().unwrap().recv();
        ""
    };
    registry
        .register_resource(Resource::new("x:blocks", "blocks", blocks))
        .unwrap();
    registry
        .register_resource(Resource::new("x:other", "other", || "text"))
        .unwrap();
    let mut client = support::serve(Server::new("t", "1", registry), LATEST).await;
    for _ in 0..700 {
        client.send_read("x:blocks").await;
    }
    client
        .result("resources/read", json!({ "uri": "x:other" }))
        .await;
    let (code, message, _) = client.refusal("x:blocks").await;
    assert_eq!(code, -32603);
    assert_eq!(message, "too many reads are pending; try again later");
    client
        .result("resources/read", json!({ "uri": "x:other" }))
        .await;
    drop(end);
}

#[tokio::test]
async fn handlers_that_never_return_leave_threads_to_what_is_no_handler() {
    let registry = Registry::with_limits(Limits::default().time(Duration::from_secs(3)));
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = Arc::new(Mutex::new(ended));
    for number in 0..20 {
        let ended = Arc::clone(&ended);
        let blocks = move || {
            let _ = ended.lock().unwrap().recv();
            ""
        };
        registry
            .register_resource(Resource::new(format!("x:{number}"), "blocks", blocks))
            .unwrap();
    }
    let read = |number: usize| {
        let registry = registry.clone();
        async move { registry.read(&format!("x:{}", number % 20)).await }
    };
    let mut reads: tokio::task::JoinSet<_> = (0..600).map(read).collect();
    let mut busy = 0;
    while let Some(result) = reads.join_next().await {
        busy += usize::from(matches!(result.unwrap(), Err(ReadError::Busy)));
    }
    assert_eq!(busy, 600 - 256, "the others run");
    let free = tokio::task::spawn_blocking(|| "free");
    let free = tokio::time::timeout(testing::mcp::PATIENCE, free).await;
    assert_eq!(free.expect("a thread is left").unwrap(), "free");
    let mut client = support::serve(Server::new("t", "1", registry), LATEST).await;
    client
        .result("resources/subscribe", json!({ "uri": "x:0" }))
        .await;
    client
        .result("resources/unsubscribe", json!({ "uri": "x:0" }))
        .await;
    drop(end);
}
