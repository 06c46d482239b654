//! Notifications to clients in each era. The servers run in this process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_resources::rmcp::ServerHandler;
use mcp_resources::rmcp::model::{ErrorData, ServerConfig, SubscriptionFilter};
use mcp_resources::rmcp::service::SubscriptionContext;
use mcp_resources::{Bundle, Limits, Parameters, Registry, Resource, ResourceTemplate, Server};
use serde_json::{Value, json};
use testing::assert_fields;
use testing::mcp::{Client, Era};

const LATEST: Era = Era::Legacy("2025-11-25");

fn note(name: &str) -> Resource {
    Resource::new(format!("org://{name}"), name, || "")
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register_resource(note("a.org")).unwrap();
    registry
        .register_template(ResourceTemplate::new("id://{id}", "ID", |_: Parameters| ""))
        .unwrap();
    registry
}

fn server(registry: &Registry) -> Server {
    Server::new("test", "1", registry.clone())
}

/// Waits until all that a client sent before is done.
async fn settle(client: &mut Client) {
    client.result("resources/list", json!({})).await;
}

/// Starts to listen; gives the id after the acknowledgment.
async fn listen(client: &mut Client, notifications: Value) -> (u64, Value) {
    let id = client
        .send(
            "subscriptions/listen",
            json!({ "notifications": notifications }),
        )
        .await;
    let acknowledged = client.notice().await;
    assert_fields!(acknowledged, {"method": "notifications/subscriptions/acknowledged"});
    (id, acknowledged["params"]["notifications"].clone())
}

#[tokio::test]
async fn subscriber_until_2025_hears_of_its_resources_until_it_unsubscribes() {
    let registry = registry();
    let mut client = support::serve(server(&registry), LATEST).await;
    client
        .result("resources/subscribe", json!({ "uri": "org://a.org" }))
        .await;
    client
        .result("resources/subscribe", json!({ "uri": "id://7" }))
        .await;
    registry.notify_updated("org://b.org");
    registry.notify_updated("ORG://a.org");
    let notice = client.notice().await;
    assert_eq!(notice["method"], "notifications/resources/updated");
    assert_eq!(notice["params"], json!({ "uri": "org://a.org" }));
    client
        .result("resources/unsubscribe", json!({ "uri": "org://a.org" }))
        .await;
    registry.notify_updated("org://a.org");
    registry.notify_updated("id://7");
    assert_eq!(client.notice().await["params"]["uri"], "id://7");
}

#[tokio::test]
async fn subscribing_to_what_is_not_there_is_refused() {
    let mut client = support::serve(server(&registry()), LATEST).await;
    let (code, _, data) = client
        .error("resources/subscribe", json!({ "uri": "org://none.org" }))
        .await;
    assert_eq!((code, data), (-32602, json!({ "uri": "org://none.org" })));
}

#[tokio::test]
async fn client_can_not_subscribe_without_end() {
    let mut client = support::serve(server(&registry()), LATEST).await;
    for number in 0..1024 {
        client
            .result(
                "resources/subscribe",
                json!({ "uri": format!("id://{number}") }),
            )
            .await;
    }
    client
        .result("resources/subscribe", json!({ "uri": "id://5" }))
        .await;
    let (code, message, _) = client
        .error("resources/subscribe", json!({ "uri": "id://more" }))
        .await;
    assert_eq!(code, -32602);
    assert_eq!(
        message,
        "a client may subscribe to 1024 resources, with URIs of 1 MiB in all, and of 16 MiB with all its streams; unsubscribe from some first"
    );
    let mut client = support::serve(server(&registry()), LATEST).await;
    let long = |number: usize| json!({ "uri": format!("id://{number}{}", "x".repeat(100_000)) });
    for number in 0..10 {
        client.result("resources/subscribe", long(number)).await;
    }
    assert_eq!(
        client.error("resources/subscribe", long(10)).await.0,
        -32602
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn listener_that_named_resources_twice_or_none_leaves_nothing_behind() {
    let registry = registry();
    let (sender, ends) = std::sync::mpsc::channel();
    let _observing = registry.on_interest(move |_, interest| {
        if let mcp_resources::Interest::Ends(uri) = interest {
            sender.send(uri.to_owned()).unwrap();
        }
    });
    let mut client = support::serve(server(&registry), Era::Modern).await;
    let mut uris: Vec<String> = (0..1024).map(|number| format!("id://{number}")).collect();
    uris.push("id://0".to_owned());
    let twice = vec!["id://twice".to_owned(), "id://twice".to_owned()];
    let named = [twice, uris, Vec::new(), vec!["other://".to_owned()]];
    for (number, uris) in named.into_iter().enumerate() {
        let wanted = json!({ "resourceSubscriptions": uris, "resourcesListChanged": true });
        let (id, _) = listen(&mut client, wanted).await;
        registry
            .register_resource(note(&format!("{number}.org")))
            .unwrap();
        client
            .expect_notice("notifications/resources/list_changed")
            .await;
        client
            .notify("notifications/cancelled", json!({ "requestId": id }))
            .await;
    }
    settle(&mut client).await;
    let next = || ends.recv_timeout(testing::mcp::PATIENCE).unwrap();
    let ended: Vec<String> = tokio::task::block_in_place(|| (0..1025).map(|_| next()).collect());
    assert!(ended.contains(&"id://twice".to_owned()) && ended.contains(&"id://1023".to_owned()));
}

#[tokio::test]
async fn changes_of_the_list_reach_the_clients_of_all_servers_that_share_it() {
    let registry = registry();
    let (one, other) = (Arc::new(server(&registry)), Arc::new(server(&registry)));
    let mut clients = [
        support::share(&one, LATEST).await,
        support::share(&one, Era::Legacy("2025-03-26")).await,
        support::share(&other, Era::Legacy("2025-06-18")).await,
        support::share(&other, Era::Modern).await,
    ];
    for client in &mut clients {
        match client.era {
            Era::Legacy(_) => {
                client
                    .result("resources/subscribe", json!({ "uri": "id://1" }))
                    .await
            }
            Era::Modern => {
                listen(client, json!({ "resourcesListChanged": true }))
                    .await
                    .1
            }
        };
    }
    let bundle = Bundle::new().resources((0..50).map(|number| note(&format!("{number}.org"))));
    registry.register_server("more", bundle).unwrap();
    for client in &mut clients {
        client
            .expect_notice("notifications/resources/list_changed")
            .await;
        settle(client).await;
        assert_eq!(
            client.notices,
            [Value::Null; 0],
            "one call, one notification"
        );
    }
    registry.unregister_server("more");
    for client in &mut clients {
        client
            .expect_notice("notifications/resources/list_changed")
            .await;
    }
}

#[tokio::test]
async fn listener_from_2026_gets_what_it_asked_for_marked_as_its_own() {
    let registry = registry();
    let mut client = support::serve(server(&registry), Era::Modern).await;
    let wanted = json!({ "resourceSubscriptions": ["org://a.org", "org://none.org"], "toolsListChanged": true });
    let (id, accepted) = listen(&mut client, wanted).await;
    assert_eq!(
        accepted,
        json!({ "resourceSubscriptions": ["org://a.org"] }),
        "no more than there is"
    );
    registry.register_resource(note("new.org")).unwrap();
    registry.notify_updated("org://new.org");
    registry.notify_updated("org://a.org");
    let notice = client.notice().await;
    assert_eq!(notice["method"], "notifications/resources/updated");
    assert_eq!(notice["params"]["uri"], "org://a.org");
    assert_eq!(
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
}

#[tokio::test]
async fn cancelled_listener_hears_no_more() {
    let registry = registry();
    let mut client = support::serve(server(&registry), Era::Modern).await;
    let (first, _) = listen(
        &mut client,
        json!({ "resourceSubscriptions": ["org://a.org"] }),
    )
    .await;
    let (second, _) = listen(
        &mut client,
        json!({ "resourceSubscriptions": ["org://a.org"] }),
    )
    .await;
    client
        .notify("notifications/cancelled", json!({ "requestId": first }))
        .await;
    settle(&mut client).await;
    registry.notify_updated("org://a.org");
    let notice = client.notice().await;
    assert_eq!(
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        second
    );
    settle(&mut client).await;
    assert_eq!(client.notices, [Value::Null; 0]);
}

#[tokio::test]
async fn each_era_has_its_own_way_to_subscribe() {
    let mut modern = support::serve(server(&registry()), Era::Modern).await;
    assert_eq!(
        modern
            .error("resources/subscribe", json!({ "uri": "org://a.org" }))
            .await
            .0,
        -32601
    );
    let mut legacy = support::serve(server(&registry()), LATEST).await;
    assert_eq!(
        legacy
            .error("subscriptions/listen", json!({ "notifications": {} }))
            .await
            .0,
        -32601
    );
}

#[tokio::test]
async fn client_that_fell_behind_is_told_that_everything_changed() {
    let registry = registry();
    let mut client = support::serve(server(&registry), LATEST).await;
    client
        .result("resources/subscribe", json!({ "uri": "org://a.org" }))
        .await;
    // In one go, so that on this one thread nobody reads in between.
    registry.notify_updated("org://a.org");
    (0..5000).for_each(|number| registry.notify_updated(&format!("id://{number}")));
    let methods =
        [client.notice().await, client.notice().await].map(|notice| notice["method"].clone());
    assert_eq!(
        methods,
        [
            "notifications/resources/list_changed",
            "notifications/resources/updated"
        ]
    );
}

/// Says that its tools changed as soon as somebody listens.
struct Restless;

impl ServerHandler for Restless {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::default();
        config.capabilities =
            serde_json::from_value(json!({ "tools": { "listChanged": true } })).unwrap();
        config
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        context.sink().notify_tool_list_changed().await.unwrap();
        context.cancelled().await;
        Ok(())
    }
}

#[tokio::test]
async fn one_stream_carries_changes_of_handler_and_registry() {
    let registry = registry();
    let mut client = support::serve(server(&registry).with_handler(Restless), Era::Modern).await;
    let wanted = json!({
        "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["org://a.org"],
    });
    let (id, accepted) = listen(&mut client, wanted.clone()).await;
    assert_eq!(accepted, wanted);
    client
        .expect_notice("notifications/tools/list_changed")
        .await;
    registry.notify_updated("org://a.org");
    client
        .expect_notice("notifications/resources/updated")
        .await;
    client
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await;
    settle(&mut client).await;
    registry.notify_updated("org://a.org");
    settle(&mut client).await;
    assert!(client.notices.is_empty(), "{:?}", client.notices);
}

#[tokio::test]
async fn observer_that_does_not_return_holds_up_nothing_but_subscribing() {
    let registry = Registry::with_limits(Limits::default().time(Duration::from_millis(500)));
    registry
        .register_resource(Resource::new("org://a.org", "a.org", || {
            std::future::ready("a")
        }))
        .unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = Mutex::new(ended);
    let _observing = registry.on_interest(move |_, _| _ = ended.lock().unwrap().recv());
    // Dropped before what waits for the observer, should the test fail.
    let end = end;
    let mut client = support::serve(server(&registry), LATEST).await;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let (code, message, _) = client.error(method, json!({ "uri": "org://a.org" })).await;
        assert_eq!(code, -32603);
        assert_eq!(
            message,
            "the resource watcher does not respond; try again later"
        );
    }
    client
        .result("resources/read", json!({ "uri": "org://a.org" }))
        .await;
    drop(end);
}
