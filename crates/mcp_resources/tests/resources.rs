//! Registration, reading and templates as a client sees them: the plan of the library's first specification, test
//! by test, and what came to it. The server runs in this process; the client writes JSON lines.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use mcp_resources::template::{Matcher, UriTemplate, Values};
use mcp_resources::{
    Annotations, CacheScope, Content, Icon, Parameters, Partial, ReadError, RegisterError,
    Registry, Resource, ResourceTemplate, Role, Server,
};
use serde_json::{Value, json};
use testing::assert_fields;
use testing::items;
use testing::mcp::{Client, ERAS, Era};

const LATEST: Era = Era::Legacy("2025-11-25");

fn server(registry: &Registry) -> Server {
    Server::new("test", "1.2.3", registry.clone())
}

fn note(name: &str) -> Resource {
    let text = format!("text of {name}");
    Resource::new(format!("org://{name}"), name, move || text.clone())
}

/// Registers templates that answer with their parameters.
fn register(registry: &Registry, templates: &[&str]) {
    for uri_template in templates {
        registry.register_template(template(uri_template)).unwrap();
    }
}

fn with_templates(templates: &[&str]) -> Registry {
    let registry = Registry::new();
    register(&registry, templates);
    registry
}

fn template(uri_template: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri_template, uri_template, |parameters: Parameters| {
        let values = parameters.values().clone().into_values();
        values
            .iter()
            .map(|(name, value)| format!("{name}={value:?};"))
            .collect::<String>()
    })
}

// Feature 1: basic registration.

#[tokio::test]
async fn lists_are_empty_while_nothing_is_registered() {
    for era in ERAS {
        let mut client = support::serve(server(&Registry::new()), era).await;
        let resources = client.result("resources/list", json!({})).await;
        let templates = client.result("resources/templates/list", json!({})).await;
        assert_eq!(resources["resources"], json!([]), "{era:?}");
        assert_eq!(templates["resourceTemplates"], json!([]), "{era:?}");
    }
}

#[tokio::test]
async fn resource_needs_only_uri_name_handler() {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new(
            "org://projects.org",
            "projects.org",
            || "* A",
        ))
        .unwrap();
    let result = support::serve(server(&registry), LATEST)
        .await
        .result("resources/list", json!({}))
        .await;
    assert_eq!(
        result,
        json!({ "resources": [{ "uri": "org://projects.org", "name": "projects.org" }] })
    );
}

#[tokio::test]
async fn list_has_all_that_was_said_about_a_resource() {
    let registry = Registry::new();
    let icon = Icon::new("https://a.example/i.png")
        .mime_type("image/png")
        .sizes(["48x48"]);
    let annotations = Annotations::default()
        .audience([Role::User, Role::Assistant])
        .priority(0.5)
        .last_modified("2026-07-28T12:00:00Z");
    let full = note("a.org")
        .title("A")
        .description("The first")
        .mime_type("text/org")
        .size(13)
        .icons([icon.clone()]);
    registry
        .register_resource(full.annotations(annotations.clone()))
        .unwrap();
    let full = template("org://{file}/outline")
        .title("O")
        .description("Headlines")
        .mime_type("text/org")
        .icons([icon]);
    registry
        .register_template(full.annotations(annotations))
        .unwrap();
    let mut client = support::serve(server(&registry), LATEST).await;
    let resources = client.result("resources/list", json!({})).await;
    let mut expected = json!({
        "uri": "org://a.org", "name": "a.org", "title": "A", "description": "The first", "mimeType": "text/org", "size": 13,
        "icons": [{ "src": "https://a.example/i.png", "mimeType": "image/png", "sizes": ["48x48"] }],
        "annotations": { "audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2026-07-28T12:00:00Z" },
    });
    assert_eq!(resources["resources"][0], expected);
    let templates = client.result("resources/templates/list", json!({})).await;
    let object = expected.as_object_mut().unwrap();
    object.retain(|key, _| !["uri", "size"].contains(&key.as_str()));
    for (key, value) in [
        ("uriTemplate", "org://{file}/outline"),
        ("name", "org://{file}/outline"),
        ("title", "O"),
        ("description", "Headlines"),
    ] {
        object.insert(key.to_owned(), json!(value));
    }
    assert_eq!(templates["resourceTemplates"][0], expected);
}

#[test]
fn registering_without_a_name_is_refused() {
    let registry = Registry::new();
    let nameless = Resource::new("org://a.org", " ", || "");
    let error = registry.register_resource(nameless).unwrap_err();
    assert_eq!(
        error,
        RegisterError::NameMissing {
            key: "org://a.org".into()
        }
    );
    let nameless = ResourceTemplate::new("org://{file}", "", |_: Parameters| "");
    assert!(matches!(
        registry.register_template(nameless),
        Err(RegisterError::NameMissing { .. })
    ));
    assert!(!registry.contains("org://a.org"));
}

#[tokio::test]
async fn unregistered_resource_is_neither_listed_nor_read() {
    let registry = Registry::new();
    registry.register_resource(note("a.org")).unwrap();
    registry.register_resource(note("b.org")).unwrap();
    assert!(registry.unregister_resource("org://a.org"));
    assert!(!registry.unregister_resource("org://a.org"));
    let mut client = support::serve(server(&registry), LATEST).await;
    assert_eq!(client.uris().await, ["org://b.org"]);
    assert_eq!(client.refusal("org://a.org").await.0, -32602);
}

// Feature 2: reading direct resources.

#[tokio::test]
async fn reading_what_is_not_registered_is_an_error_with_the_uri() {
    for era in ERAS {
        let mut client = support::serve(server(&Registry::new()), era).await;
        let error = client.refusal("org://none.org").await;
        let expected = (
            -32602,
            "there is no resource org://none.org".to_owned(),
            json!({ "uri": "org://none.org" }),
        );
        assert_eq!(error, expected, "{era:?}");
    }
}

#[tokio::test]
async fn registered_resource_is_read() {
    let registry = Registry::new();
    registry.register_resource(note("a.org")).unwrap();
    for era in ERAS {
        let mut client = support::serve(server(&registry), era).await;
        let result = client.read_uri("org://a.org").await;
        let contents =
            json!([{ "uri": "org://a.org", "mimeType": "text/plain", "text": "text of a.org" }]);
        assert_eq!(result["contents"], contents, "{era:?}");
    }
}

#[tokio::test]
async fn errors_of_handlers_become_protocol_errors() {
    let registry = Registry::new();
    let failing = [
        Resource::new("e:gone", "gone", || Err::<String, _>(ReadError::NotFound)),
        Resource::new("e:file", "file", || std::fs::read("no such file")),
        Resource::new("e:bad", "bad", || {
            Err::<String, _>(ReadError::bad_parameters("the year is not a number"))
        }),
        Resource::new("e:own", "own", || async {
            Err::<String, _>(ReadError::failed("the database is away"))
        }),
        Resource::new("e:panic", "panic", || -> String { panic!("a secret") }),
        Resource::new("e:later", "later", || async {
            tokio::task::yield_now().await;
            if true {
                panic!("a secret");
            }
            ""
        }),
    ];
    failing
        .into_iter()
        .for_each(|resource| _ = registry.register_resource(resource).unwrap());
    let mut client = support::serve(server(&registry), LATEST).await;
    let panicked = "the resource's handler panicked; the server's standard error says why";
    let table = [
        (
            "e:gone",
            -32602,
            "there is no resource e:gone",
            json!({ "uri": "e:gone" }),
        ),
        (
            "e:file",
            -32602,
            "there is no resource e:file",
            json!({ "uri": "e:file" }),
        ),
        (
            "e:bad",
            -32602,
            "the year is not a number",
            json!({ "uri": "e:bad" }),
        ),
        (
            "e:own",
            -32603,
            "the resource could not be read: the database is away",
            Value::Null,
        ),
        ("e:panic", -32603, panicked, Value::Null),
        ("e:later", -32603, panicked, Value::Null),
    ];
    for (uri, code, message, data) in table {
        let error = client.refusal(uri).await;
        assert_eq!(error, (code, message.to_owned(), data), "{uri}");
    }
}

#[tokio::test]
async fn several_resources_are_read_independently() {
    let registry = Registry::new();
    registry.register_resource(note("a.org")).unwrap();
    registry
        .register_resource(Resource::new("org://bad.org", "bad", || {
            Err::<String, _>(ReadError::failed("x"))
        }))
        .unwrap();
    registry.register_resource(note("b.org")).unwrap();
    let mut client = support::serve(server(&registry), LATEST).await;
    assert_eq!(client.text("org://a.org").await, "text of a.org");
    assert_eq!(client.refusal("org://bad.org").await.0, -32603);
    assert_eq!(client.text("org://b.org").await, "text of b.org");
}

// Feature 3: templates.

#[test]
fn simple_variable_is_parsed() {
    assert_eq!(
        UriTemplate::parse("org://{filename}").unwrap().variables(),
        ["filename"]
    );
}

#[test]
fn reserved_expansion_is_parsed() {
    let template = UriTemplate::parse("org://{filename}/headline/{+path}").unwrap();
    assert_eq!(template.variables(), ["filename", "path"]);
    let values = Values::from([
        ("filename".to_owned(), "a".into()),
        ("path".to_owned(), "x/y".into()),
    ]);
    assert_eq!(template.expand(&values).unwrap(), "org://a/headline/x/y");
}

#[test]
fn template_matches_the_uris_it_makes() {
    let matcher = Matcher::new(&UriTemplate::parse("org://{filename}/outline").unwrap()).unwrap();
    assert!(matcher.matches("org://a.org/outline").is_some());
    for uri in [
        "org://a.org",
        "org://a.org/outline/",
        "org://a/b/outline",
        "file://a.org/outline",
    ] {
        assert!(matcher.matches(uri).is_none(), "{uri}");
    }
}

#[test]
fn parameters_are_extracted_from_a_matching_uri() {
    let matcher =
        Matcher::new(&UriTemplate::parse("org://{filename}/headline/{+path}").unwrap()).unwrap();
    let found = matcher
        .matches("org://my%20projects.org/headline/Tasks/Urgent")
        .unwrap();
    assert_eq!(found.text("filename"), Some("my projects.org"));
    assert_eq!(found.text("path"), Some("Tasks/Urgent"));
}

#[test]
fn invalid_template_syntax_is_refused_with_its_place() {
    let registry = Registry::new();
    for (uri_template, place) in [
        ("org://{", 6),
        ("org://{a", 6),
        ("org://}", 6),
        ("org://{a}{b}", 10),
        ("org://{=a}", 7),
    ] {
        let error = registry
            .register_template(template(uri_template))
            .unwrap_err();
        let RegisterError::Template { source, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(source.offset(), place, "{uri_template}: {source}");
    }
}

#[test]
fn registering_says_in_its_error_what_is_wrong() {
    let registry = Registry::new();
    let template = registry
        .register_template(template("org://{a}{b}"))
        .unwrap_err();
    assert_eq!(
        template.to_string(),
        "\"org://{a}{b}\" is not a template that can be served: the template doesn't show where \"a\" ends and \"b\" begins, \
         so URIs can't be matched; put text between them, at byte 10: \"b}\""
    );
    let uri = registry
        .register_resource(Resource::new("org://a b", "a", || ""))
        .unwrap_err();
    assert_eq!(
        uri.to_string(),
        "\"org://a b\" is not a URI: the character ' ' must be percent-encoded, at byte 7: \" b\""
    );
}

// Feature 4: template resources.

#[tokio::test]
async fn registered_template_is_listed() {
    let registry = with_templates(&["org://{filename}/outline"]);
    for era in ERAS {
        let mut client = support::serve(server(&registry), era).await;
        let result = client.result("resources/templates/list", json!({})).await;
        let listed = json!([{ "uriTemplate": "org://{filename}/outline", "name": "org://{filename}/outline" }]);
        assert_eq!(result["resourceTemplates"], listed, "{era:?}");
        assert_eq!(client.uris().await, [""; 0], "templates are no resources");
    }
}

#[tokio::test]
async fn read_passes_the_parameters_of_the_template() {
    let registry = Registry::new();
    let headline = |parameters: Parameters| async move {
        let raw = parameters
            .raw("path")
            .and_then(|raw| raw.as_text())
            .unwrap_or_default()
            .to_owned();
        let level: u8 = parameters.parse("level")?;
        Ok::<_, ReadError>(format!(
            "{} {} {raw} {level} {}",
            parameters.text("filename")?,
            parameters.text("path")?,
            parameters.uri()
        ))
    };
    registry
        .register_template(ResourceTemplate::new(
            "org://{filename}/{level}/{+path}",
            "Headline",
            headline,
        ))
        .unwrap();
    let mut client = support::serve(server(&registry), LATEST).await;
    let uri = "org://a%20b.org/2/Tasks/Very%20Urgent";
    let result = client.read_uri(uri).await;
    let text = format!("a b.org Tasks/Very Urgent Tasks/Very%20Urgent 2 {uri}");
    assert_eq!(
        result,
        json!({ "contents": [{ "uri": uri, "text": text }] }),
        "no type where nobody named one"
    );
    let (code, message, data) = client.refusal("org://a/two/b").await;
    assert_eq!(code, -32602);
    assert_eq!(
        message,
        r#"the parameter "level" can't be "two": invalid digit found in string"#
    );
    assert_eq!(data, json!({ "uri": "org://a/two/b" }));
}

#[tokio::test]
async fn direct_resource_wins_over_every_template() {
    let registry = with_templates(&["org://{filename}", "org://a.or{end}"]);
    registry.register_resource(note("a.org")).unwrap();
    let mut client = support::serve(server(&registry), LATEST).await;
    assert_eq!(client.text("org://a.org").await, "text of a.org");
    assert_eq!(client.text("ORG://a.org").await, "text of a.org");
    registry.unregister_resource("org://a.org");
    assert_eq!(client.text("org://a.org").await, r#"end=Text("g");"#);
}

// Feature 5: more of templates.

#[tokio::test]
async fn several_variables_segments_and_queries_are_passed() {
    let registry = with_templates(&["org://{a}/{b,c}{/d*}{?e,f*}", "file:///{+path}"]);
    let mut client = support::serve(server(&registry), LATEST).await;
    assert_eq!(
        client.text("org://1/2,3/4/5?f=7&e=6&f=8").await,
        r#"a=Text("1");b=Text("2");c=Text("3");d=List(["4", "5"]);e=Text("6");f=List(["7", "8"]);"#
    );
    assert_eq!(
        client.text("org://1/2,3").await,
        r#"a=Text("1");b=Text("2");c=Text("3");"#
    );
    assert_eq!(
        client.text("file:///a/b/c.rs").await,
        r#"path=Text("a/b/c.rs");"#
    );
}

#[tokio::test]
async fn of_overlapping_templates_the_most_specific_reads_then_the_first() {
    let registry = Registry::new();
    assert_eq!(
        registry
            .register_template(template("org://{+all}"))
            .unwrap()
            .overlaps,
        []
    );
    let overlaps = registry
        .register_template(template("org://id/{id}"))
        .unwrap()
        .overlaps;
    assert_eq!(
        (overlaps[0].template.as_str(), overlaps[0].other.as_str()),
        ("org://id/{id}", "org://{+all}")
    );
    assert_eq!(
        registry
            .register_template(template("org://{file}/outline"))
            .unwrap()
            .overlaps
            .len(),
        2
    );
    register(&registry, &["org://{also}/outline"]);
    assert_eq!(
        registry
            .register_template(template("file:///{+all}"))
            .unwrap()
            .overlaps,
        []
    );
    let mut client = support::serve(server(&registry), LATEST).await;
    assert_eq!(client.text("org://id/7").await, r#"id=Text("7");"#);
    assert_eq!(client.text("org://id/outline").await, r#"file=Text("id");"#);
    assert_eq!(client.text("org://x/y").await, r#"all=Text("x/y");"#);
}

#[tokio::test]
async fn uris_at_the_edge_match_or_are_not_found() {
    let registry = with_templates(&["org://{file}/x"]);
    registry
        .register_template(template("lax://{file}/x").lenient())
        .unwrap();
    let mut client = support::serve(server(&registry), LATEST).await;
    assert_eq!(client.text("org:///x").await, r#"file=Text("");"#);
    assert_eq!(client.text("org://%C3%A9/x").await, r#"file=Text("é");"#);
    assert_eq!(client.text("lax://a/b#c/x").await, r#"file=Text("a/b#c");"#);
    let long = format!("org://{}/x", "a".repeat(200_000));
    for uri in [
        "",
        "org://",
        "org://a/b/x",
        "org://%/x",
        "org://%ff/x",
        "org://a/x/",
        " org://a/x",
        long.as_str(),
    ] {
        let (code, _, data) = client.refusal(uri).await;
        assert_eq!(code, -32602, "{uri:.40}");
        assert!(
            data["uri"].as_str().unwrap().len() <= 1024,
            "an error repeats no endless URI"
        );
    }
}

// Security.

#[tokio::test]
async fn malicious_uris_reach_no_other_handler() {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new("org://secret", "secret", || "secret"))
        .unwrap();
    register(&registry, &["pub://{name}/end{?q}"]);
    let mut client = support::serve(server(&registry), LATEST).await;
    let table = [
        (
            "pub://..%2F..%2Fsecret/end",
            r#"name=Text("../../secret");"#,
        ),
        ("pub://%252e%252e/end", r#"name=Text("%2e%2e");"#),
        ("pub://a%3Fq%3D1/end", r#"name=Text("a?q=1");"#),
        ("pub://{name}/end", r#"name=Text("{name}");"#),
        (
            "pub://org%3A%2F%2Fsecret/end",
            r#"name=Text("org://secret");"#,
        ),
        ("pub://a%00b/end", r#"name=Text("a\0b");"#),
    ];
    for (uri, parameters) in table {
        assert_eq!(client.text(uri).await, parameters, "{uri}");
    }
    for uri in [
        "pub://a/../org://secret",
        "pub://a/end/../../secret",
        "pub://a/end?q=1&name=b",
        "pub://a/end?q=1&q=2",
    ] {
        assert_eq!(client.refusal(uri).await.0, -32602, "{uri}");
    }
}

#[tokio::test]
async fn resource_is_reached_by_no_template_however_its_uri_is_encoded() {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new("org://secret-1", "secret", || "secret"))
        .unwrap();
    register(
        &registry,
        &["org://{file}", "org://id/{id}", "org://{+path}"],
    );
    let mut client = support::serve(server(&registry), LATEST).await;
    let table = [
        ("org://secret-1", "secret"),
        ("ORG://s%65cret%2D1", "secret"),
        ("org://secret%2d1", "secret"),
        ("org://%69d/7", r#"id=Text("7");"#),
        ("org://secret%2F1", r#"file=Text("secret/1");"#),
    ];
    for (uri, expected) in table {
        assert_eq!(client.text(uri).await, expected, "{uri}");
    }
}

#[tokio::test]
async fn servers_with_registries_of_their_own_see_nothing_of_each_other() {
    let (one, other) = (Registry::new(), Registry::new());
    one.register_resource(note("a.org")).unwrap();
    other.register_resource(note("b.org")).unwrap();
    let mut client = support::serve(server(&other), LATEST).await;
    assert_eq!(client.uris().await, ["org://b.org"]);
    assert_eq!(client.refusal("org://a.org").await.0, -32602);
}

// The protocol.

#[tokio::test]
async fn capabilities_say_resources_whatever_is_registered() {
    let expected = json!({ "resources": { "listChanged": true, "subscribe": true } });
    let (near, far) = tokio::io::duplex(1 << 16);
    let session = Arc::new(server(&Registry::new()).title("T").instructions("Read.")).session();
    let serving = tokio::spawn(mcp_resources::rmcp::ServiceExt::serve(session, far));
    let (input, output) = tokio::io::split(near);
    let mut client = Client::connect(input, output, Era::Modern).await;
    let discovered = client.result("server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"], expected);
    assert_eq!(discovered["instructions"], "Read.");
    assert!(items(&discovered["supportedVersions"]).contains(&json!("2025-11-25")));
    assert!(items(&discovered["supportedVersions"]).contains(&json!("2026-07-28")));
    client.era = LATEST;
    let initialized = client
        .result("initialize", testing::mcp::initialize("2025-11-25"))
        .await;
    assert_eq!(initialized["capabilities"], expected);
    assert_eq!(
        initialized["serverInfo"],
        json!({ "name": "test", "version": "1.2.3", "title": "T" })
    );
    drop(serving);
}

#[tokio::test]
async fn client_of_an_unknown_revision_gets_the_newest_with_initialize() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let session = Arc::new(server(&Registry::new())).session();
    tokio::spawn(async move {
        mcp_resources::rmcp::ServiceExt::serve(session, far)
            .await
            .unwrap()
            .waiting()
            .await
    });
    let (input, output) = tokio::io::split(near);
    let mut client = Client::connect(input, output, Era::Modern).await;
    client.era = LATEST;
    let result = client
        .result("initialize", testing::mcp::initialize("2099-01-01"))
        .await;
    assert_eq!(result["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn ping_is_answered_where_it_exists() {
    for era in ERAS {
        let mut client = support::serve(server(&Registry::new()), era).await;
        let answer = client.request("ping", json!({})).await;
        match era {
            Era::Legacy(_) => assert_eq!(answer["result"], json!({})),
            Era::Modern => assert!(
                answer["error"].is_object() || answer["result"] == json!({}),
                "{answer}"
            ),
        }
    }
}

#[tokio::test]
async fn unknown_methods_tools_and_prompts_are_not_found() {
    for era in ERAS {
        let mut client = support::serve(server(&Registry::new()), era).await;
        for method in ["tools/call", "prompts/get", "resources/delete"] {
            let params = json!({ "name": "any" });
            assert_eq!(
                client.error(method, params).await.0,
                -32601,
                "{era:?} {method}"
            );
        }
    }
}

#[tokio::test]
async fn lists_of_tools_and_prompts_are_empty_without_the_capability() {
    for era in ERAS {
        let mut client = support::serve(server(&Registry::new()), era).await;
        for (method, list) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
            let result = client.result(method, json!({})).await;
            assert_eq!(result[list], json!([]), "{era:?} {method}");
        }
    }
}

/// Returns the capabilities that a new client gets.
async fn capabilities(registry: &Registry, era: Era) -> Value {
    let (near, far) = tokio::io::duplex(1 << 16);
    let session = Arc::new(server(registry)).session();
    tokio::spawn(async move {
        mcp_resources::rmcp::ServiceExt::serve(session, far)
            .await
            .unwrap()
            .waiting()
            .await
    });
    let (input, output) = tokio::io::split(near);
    let mut client = Client::connect(input, output, Era::Modern).await;
    client.era = era;
    let mut result = match era {
        Era::Legacy(version) => {
            client
                .result("initialize", testing::mcp::initialize(version))
                .await
        }
        Era::Modern => client.result("server/discover", json!({})).await,
    };
    result["capabilities"].take()
}

#[tokio::test]
async fn completions_are_declared_while_a_template_completes_a_variable() {
    for era in ERAS {
        let registry = with_templates(&["x:{plain}"]);
        assert_eq!(
            capabilities(&registry, era).await.get("completions"),
            None,
            "{era:?}"
        );
        let mut early = support::serve(server(&registry), era).await;
        registry
            .register_template(template("y:{a}").complete("a", |_| vec!["1".to_owned()]))
            .unwrap();
        assert_eq!(
            capabilities(&registry, era).await["completions"],
            json!({}),
            "{era:?}"
        );
        // A client that is connected already may ask for it as well.
        let of_template = json!({ "ref": { "type": "ref/resource", "uri": "y:{a}" }, "argument": { "name": "a", "value": "" } });
        let result = early.result("completion/complete", of_template).await;
        assert_eq!(result["completion"]["values"], json!(["1"]), "{era:?}");
        registry.unregister_template("y:{a}");
        assert_eq!(
            capabilities(&registry, era).await.get("completions"),
            None,
            "{era:?}"
        );
    }
}

#[tokio::test]
async fn pages_hold_each_entry_once_while_others_change() {
    let registry = Registry::new();
    (0..25).for_each(|number| {
        _ = registry
            .register_resource(note(&format!("{number}.org")))
            .unwrap()
    });
    (0..3).for_each(|number| {
        _ = registry
            .register_template(template(&format!("t{number}:{{x}}")))
            .unwrap()
    });
    let mut client = support::serve(server(&registry).page_size(10), LATEST).await;
    let first = client.result("resources/list", json!({})).await;
    registry.unregister_resource("org://9.org");
    registry.unregister_resource("org://0.org");
    registry.register_resource(note("0.org")).unwrap();
    let mut seen = first["resources"].as_array().unwrap().clone();
    let mut cursor = first["nextCursor"].clone();
    while cursor.is_string() {
        let page = client
            .result("resources/list", json!({ "cursor": cursor }))
            .await;
        assert!(page["resources"].as_array().unwrap().len() <= 10);
        seen.extend(page["resources"].as_array().unwrap().iter().cloned());
        cursor = page["nextCursor"].clone();
    }
    let seen: Vec<_> = seen
        .iter()
        .map(|resource| resource["name"].as_str().unwrap())
        .collect();
    let expected: Vec<_> = (0..25)
        .chain([0])
        .map(|number| format!("{number}.org"))
        .collect();
    assert_eq!(
        seen, expected,
        "in the order of registration; what came again, at the end"
    );
    let templates = client.result("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 3);
    assert_eq!(templates.get("nextCursor"), None);
}

#[tokio::test]
async fn unknown_cursor_is_refused() {
    let mut client = support::serve(server(&Registry::new()), LATEST).await;
    for method in ["resources/list", "resources/templates/list"] {
        let (code, message, _) = client.error(method, json!({ "cursor": "nonsense" })).await;
        assert_eq!(
            (code, message.as_str()),
            (
                -32602,
                "the cursor is not from this server; start without one"
            )
        );
    }
}

#[tokio::test]
async fn contents_may_differ_from_the_resource() {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new("b:1", "bytes", || vec![0_u8, 255]))
        .unwrap();
    let several = || {
        vec![
            Content::text("a")
                .uri("d:1/a.md")
                .mime_type("text/markdown"),
            Content::bytes([1]).uri("d:1/b.bin").mime_type("image/png"),
            Content::text("c"),
        ]
    };
    registry
        .register_resource(Resource::new("d:1", "directory", several).mime_type("text/x-all"))
        .unwrap();
    let mut client = support::serve(server(&registry), LATEST).await;
    let bytes = client.read_uri("b:1").await;
    let expected =
        json!([{ "uri": "b:1", "mimeType": "application/octet-stream", "blob": "AP8=" }]);
    assert_eq!(bytes["contents"], expected);
    let several = client.read_uri("d:1").await;
    let expected = json!([
        { "uri": "d:1/a.md", "mimeType": "text/markdown", "text": "a" },
        { "uri": "d:1/b.bin", "mimeType": "image/png", "blob": "AQ==" },
        { "uri": "d:1", "mimeType": "text/x-all", "text": "c" },
    ]);
    assert_eq!(several["contents"], expected);
}

#[tokio::test]
async fn ttl_is_told_to_those_who_know_it() {
    let registry = Registry::new();
    let hour = Duration::from_secs(3600);
    registry
        .register_resource(note("kept.org").ttl(hour).cache_scope(CacheScope::Public))
        .unwrap();
    registry.register_resource(note("plain.org")).unwrap();
    let table = [
        ("org://kept.org", 3_600_000, "public"),
        ("org://plain.org", 0, "private"),
    ];
    let mut client = support::serve(
        server(&registry).list_ttl(Duration::from_secs(5)),
        Era::Modern,
    )
    .await;
    for (uri, ttl, scope) in table {
        let result = client.read_uri(uri).await;
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(ttl), &json!(scope)),
            "{uri}"
        );
    }
    assert_eq!(
        client.result("resources/list", json!({})).await["ttlMs"],
        5000
    );
    let mut client = support::serve(server(&registry), LATEST).await;
    let result = client.read_uri("org://kept.org").await;
    assert_eq!(
        (result.get("ttlMs"), result.get("cacheScope")),
        (None, None)
    );
}

#[tokio::test]
async fn values_of_template_variables_are_offered() {
    let registry = Registry::new();
    let numbers = |partial: Partial| {
        let folder = partial.others.get("folder").cloned().unwrap_or_default();
        let all = (0..250).map(|number| format!("{folder}{number}"));
        all.filter(|value| value.starts_with(&partial.value))
            .collect()
    };
    let offered = template("org://{folder}/{file}")
        .complete("file", numbers)
        .complete("folder", |_| panic!("a secret"));
    registry.register_template(offered).unwrap();
    register(&registry, &["x:{plain}"]);
    for era in ERAS {
        let mut client = support::serve(server(&registry), era).await;
        let params = |template: &str, name: &str, value: &str| json!({ "ref": { "type": "ref/resource", "uri": template }, "argument": { "name": name, "value": value } });
        let file = params("org://{folder}/{file}", "file", "24");
        let result = client.result("completion/complete", file).await;
        let values = [
            "24", "240", "241", "242", "243", "244", "245", "246", "247", "248", "249",
        ];
        assert_fields!(result, {"completion": { "values": values, "total": 11, "hasMore": false }});
        let mut many = params("org://{folder}/{file}", "file", "");
        many["context"] = json!({ "arguments": { "folder": "f" } });
        let result = client.result("completion/complete", many).await;
        assert_eq!(
            result["completion"]["values"].as_array().unwrap().len(),
            100
        );
        assert_eq!(result["completion"]["values"][0], "f0");
        assert_fields!(result["completion"], {"total": 250, "hasMore": true});
        let none = client
            .result("completion/complete", params("x:{plain}", "plain", ""))
            .await;
        assert_eq!(none["completion"]["values"], json!([]));
        for (template, name, code) in [
            ("x:{other}", "other", -32602),
            ("x:{plain}", "other", -32602),
            ("org://{folder}/{file}", "folder", -32603),
        ] {
            let (found, message, _) = client
                .error("completion/complete", params(template, name, ""))
                .await;
            assert_eq!(found, code, "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}

#[tokio::test]
async fn parameters_that_are_none_are_an_error_that_says_what_is_wrong() {
    let registry = Registry::new();
    registry.register_resource(note("a.org")).unwrap();
    for era in ERAS {
        let mut client = support::serve(Server::new("test", "1", registry.clone()), era).await;
        let table = [
            (
                "resources/read",
                json!({}),
                "the parameters of resources/read can't be read: missing field `uri`",
            ),
            (
                "resources/read",
                json!({ "uri": 5 }),
                "the parameters of resources/read can't be read: invalid type",
            ),
            (
                "completion/complete",
                json!({}),
                "the parameters of completion/complete can't be read: missing field",
            ),
        ];
        for (method, params, expected) in table {
            let (code, message, _) = client.error(method, params).await;
            assert_eq!(code, -32602, "{era:?} {method}");
            assert!(message.starts_with(expected), "{era:?} {method}: {message}");
        }
    }
}
