use super::*;

fn resource(uri: &str, text: &'static str) -> Resource {
    Resource::new(uri, uri, move || text)
}

fn template(uri_template: &str, text: &'static str) -> ResourceTemplate {
    ResourceTemplate::new(uri_template, uri_template, move |_: Parameters| text)
}

async fn text(registry: &Registry, uri: &str) -> Option<String> {
    registry
        .read(uri)
        .await
        .ok()
        .map(|reading| reading.text().unwrap().to_owned())
}

fn listed(registry: &Registry) -> (usize, usize) {
    (
        registry.resources(None, 100).entries.len(),
        registry.templates(None, 100).entries.len(),
    )
}

/// The events since the last look.
fn events(receiver: &mut broadcast::Receiver<Event>) -> Vec<String> {
    std::iter::from_fn(|| receiver.try_recv().ok())
        .map(|event| format!("{event:?}"))
        .collect()
}

#[tokio::test]
async fn first_registration_stays_until_all_are_taken_back() {
    let registry = Registry::new();
    let mut receiver = registry.events();
    for (text, known) in [("first", false), ("second", true)] {
        let registered = registry.register_resource(resource("x:a", text)).unwrap();
        assert_eq!(registered.known == ["x:a"], known);
        let registered = registry.register_template(template("t:{a}", text)).unwrap();
        assert_eq!(registered.known == ["t:{a}"], known);
        assert_eq!(registered.overlaps, [], "none with itself");
    }
    assert_eq!(
        events(&mut receiver),
        ["ListChanged", "ListChanged"],
        "the second ones change no list"
    );
    assert_eq!(listed(&registry), (1, 1));
    for remaining in [1, 0] {
        assert_eq!(text(&registry, "x:a").await.as_deref(), Some("first"));
        assert_eq!(text(&registry, "t:1").await.as_deref(), Some("first"));
        assert!(registry.unregister_resource("x:a") && registry.unregister_template("t:{a}"));
        assert_eq!(
            events(&mut receiver).len(),
            if remaining == 0 { 2 } else { 0 }
        );
    }
    assert_eq!(
        (text(&registry, "x:a").await, text(&registry, "t:1").await),
        (None, None)
    );
    assert!(!registry.unregister_resource("x:a") && !registry.unregister_template("t:{a}"));
    assert_eq!(events(&mut receiver).len(), 0);
}

#[test]
fn server_is_registered_with_all_or_nothing() {
    let good = || {
        Bundle::new()
            .resource(resource("x:a", ""))
            .template(template("t:{a}", ""))
    };
    let bad = [
        good()
            .resource(resource("x:b", "").annotations(crate::Annotations::default().priority(1.5))),
        good()
            .resource(resource("X:%61", ""))
            .resource(resource("x:%61", "")),
        good().resource(resource("x:a", "")),
        good().template(template("t:{a}", "")),
        good().template(template("t:{", "")),
        good().template(template("t:plain", "")),
        good().template(template("u:{a}", "").complete("b", |_| Vec::new())),
        good().resource(resource("x:{a}", "")),
        good().resource(resource("no scheme", "")),
        good().resource(resource("noscheme", "")),
        good().resource(resource("", "")),
    ];
    let registry = Registry::new();
    let mut receiver = registry.events();
    for bundle in bad {
        registry.register_server("s", bundle).unwrap_err();
        assert_eq!(listed(&registry), (0, 0));
    }
    assert_eq!(events(&mut receiver).len(), 0);
    assert!(!registry.unregister_server("s"));
    registry.register_server("s", good()).unwrap();
    assert_eq!(
        (listed(&registry), events(&mut receiver).len()),
        ((1, 1), 1),
        "one call, one change"
    );
}

#[test]
fn templates_that_would_answer_for_foreign_schemes_are_refused() {
    let registry = Registry::new();
    for uri_template in [
        "{+all}",
        "users{/id}",
        "{scheme}://x",
        "x{rest}:",
        "/x:{id}",
        "1x:{id}",
    ] {
        let error = registry
            .register_template(template(uri_template, ""))
            .unwrap_err();
        assert_eq!(
            error,
            RegisterError::SchemeMissing {
                uri: uri_template.to_owned()
            }
        );
        let message = format!(
            "{uri_template:?} does not start with a scheme; put one in front, as in \"notes://\""
        );
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(listed(&registry), (0, 0));
    for uri_template in ["x:{+all}", "x+y://{id}"] {
        registry
            .register_template(template(uri_template, ""))
            .unwrap();
    }
}

#[test]
fn errors_of_registration_say_what_to_do() {
    let registry = Registry::new();
    let message = |resource| {
        registry
            .register_resource(resource)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(resource("notes", "")),
        r#""notes" does not start with a scheme; put one in front, as in "notes://""#
    );
    assert_eq!(
        message(resource("x:{a}", "")),
        r#""x:{a}" has variables; register it as a template"#
    );
    assert_eq!(
        message(Resource::new("x:a", "", || "")),
        r#""x:a" needs a name"#
    );
    let twice = Bundle::new().resources([resource("x:a", ""), resource("x:a", "")]);
    assert_eq!(
        registry
            .register_server("s", twice)
            .unwrap_err()
            .to_string(),
        r#""x:a" is registered twice"#
    );
}

#[test]
fn servers_of_one_process_are_taken_back_one_by_one() {
    let registry = Registry::new();
    let bundle = |own: &str| Bundle::new().resources([resource("x:shared", ""), resource(own, "")]);
    registry.register_server("one", bundle("x:one")).unwrap();
    registry.register_server("two", bundle("x:two")).unwrap();
    registry.register_server("two", bundle("x:more")).unwrap();
    assert_eq!(listed(&registry).0, 4);
    assert!(registry.unregister_server("two"));
    assert!(
        !registry.contains("x:more") && registry.contains("x:two"),
        "the latest first"
    );
    assert!(registry.unregister_server("one"));
    assert!(registry.contains("x:shared") && !registry.contains("x:one"));
    assert!(registry.unregister_server("two"));
    assert_eq!(listed(&registry).0, 0);
    assert!(!registry.unregister_server("two"));
}

#[tokio::test]
async fn server_is_replaced_in_one_step() {
    let registry = Registry::new();
    let bundle = |texts: &[(&str, &'static str)]| {
        Bundle::new().resources(
            texts
                .iter()
                .map(|(uri, text)| resource(uri, text))
                .collect::<Vec<_>>(),
        )
    };
    registry
        .replace_server("s", bundle(&[("x:gone", ""), ("x:stays", "before")]))
        .unwrap();
    let mut receiver = registry.events();
    registry
        .replace_server("s", bundle(&[("x:new", ""), ("x:stays", "after")]))
        .unwrap();
    assert_eq!(events(&mut receiver), ["ListChanged"]);
    assert!(!registry.contains("x:gone"));
    assert_eq!(text(&registry, "x:stays").await.as_deref(), Some("after"));
    let uris: Vec<_> = registry
        .resources(None, 9)
        .entries
        .iter()
        .map(|one| one.uri.clone())
        .collect();
    assert_eq!(
        uris,
        ["x:new", "x:stays"],
        "in the order of what has it now"
    );
    registry
        .replace_server("s", bundle(&[("x:a", ""), ("x:a", "")]))
        .unwrap_err();
    assert_eq!(listed(&registry).0, 2, "all stays where something is wrong");
    assert!(registry.unregister_server("s") && !registry.unregister_server("s"));
}

#[test]
fn pages_go_on_after_a_server_was_replaced_or_where_it_has_something_new() {
    let registry = Registry::new();
    let bundle = |names: &str| {
        let (resources, templates) = (names.split(' '), names.split(' '));
        Bundle::new()
            .resources(resources.map(|name| resource(&format!("x:{name}"), "")))
            .templates(templates.map(|name| template(&format!("t:{name}/{{a}}"), "")))
    };
    let listed = |after: (Option<u64>, Option<u64>)| {
        let (resources, templates) = (
            registry.resources(after.0, 9),
            registry.templates(after.1, 9),
        );
        let uris: Vec<_> = resources
            .entries
            .iter()
            .map(|one| one.uri[2..].to_owned())
            .collect();
        let texts = templates
            .entries
            .iter()
            .map(|one| one.description.uri_template.as_str());
        let texts: Vec<_> = texts
            .map(|text| text[2..].trim_end_matches("/{a}").to_owned())
            .collect();
        assert_eq!(uris, texts);
        uris.join(" ")
    };
    registry.register_resource(resource("x:other", "")).unwrap();
    registry
        .register_template(template("t:other/{a}", ""))
        .unwrap();
    for (now, rest) in [
        ("0 1 2 3 4 5", "4 5"),
        ("2 3 4 5 6 7", "4 5 6 7"),
        ("0 2 3 4 5", "4 5"),
        ("0 1 2 4 5 3", "4 5 3"),
        ("0 1 2 new 3 4 5", "new 3 4 5"),
        ("0 1 2 3 other new 5", "new 5"),
        ("5 4 3 2 1 0", "5 4 3 2 1 0"),
    ] {
        registry.replace_server("s", bundle("0 1 2 3 4 5")).unwrap();
        let read = (
            registry.resources(None, 5).last,
            registry.templates(None, 5).last,
        );
        registry.replace_server("s", bundle(now)).unwrap();
        assert_eq!(listed(read), rest, "{now}");
        assert!(
            listed((None, None)).ends_with(&now.replace("other ", "")),
            "{now}"
        );
        assert!(registry.unregister_server("s"));
    }
}

/// Looks into a registry when it is dropped, and tells that it did.
struct Looks(Registry, std::sync::mpsc::Sender<()>);

impl Drop for Looks {
    fn drop(&mut self) {
        // A test that failed as the registry is locked must come to its end.
        if !std::thread::panicking() {
            self.0.contains("x:a");
            self.1.send(()).unwrap();
        }
    }
}

#[test]
fn handlers_may_look_into_the_registry_when_they_are_dropped() {
    type Change = Box<dyn FnOnce(&Registry) + Send>;
    let registry = Registry::new();
    let (sender, dropped) = std::sync::mpsc::channel();
    let bundle = |registry: &Registry| {
        let looks = [(); 2].map(|()| Looks(registry.clone(), sender.clone()));
        let [resource, template] =
            looks.map(|looks| move || if looks.0.contains("x:b") { "b" } else { "a" });
        Bundle::new()
            .resource(Resource::new("x:a", "a", resource))
            .template(ResourceTemplate::new("t:{a}", "a", move |_: Parameters| {
                template()
            }))
    };
    let (known, other) = (bundle(&registry), bundle(&registry));
    let changes: [(usize, Change); 5] = [
        // What is known counts, and its handlers are for nothing.
        (
            2,
            Box::new(|registry| _ = registry.register_server("s", known)),
        ),
        (0, Box::new(|registry| _ = registry.unregister_server("s"))),
        (
            2,
            Box::new(|registry| _ = registry.replace_server("s", other)),
        ),
        (
            1,
            Box::new(|registry| _ = registry.unregister_resource("x:a")),
        ),
        (
            1,
            Box::new(|registry| _ = registry.unregister_template("t:{a}")),
        ),
    ];
    registry.register_server("s", bundle(&registry)).unwrap();
    for (step, (drops, change)) in changes.into_iter().enumerate() {
        let registry = registry.clone();
        let changing = std::thread::spawn(move || change(&registry));
        for _ in 0..drops {
            dropped
                .recv_timeout(Duration::from_secs(20))
                .unwrap_or_else(|_| panic!("step {step} locks"));
        }
        changing.join().unwrap();
    }
}

#[tokio::test]
async fn uri_beyond_ascii_is_read_in_either_form() {
    let registry = Registry::new();
    registry
        .register_resource(resource("x:é/%2f", "found"))
        .unwrap();
    assert_eq!(registry.resources(None, 1).entries[0].uri, "x:%C3%A9/%2f");
    for uri in ["x:é/%2f", "x:%c3%a9/%2F", "X:%C3%A9/%2F"] {
        assert_eq!(
            text(&registry, uri).await.as_deref(),
            Some("found"),
            "{uri}"
        );
    }
    assert!(registry.unregister_resource("x:é/%2F"));
}

#[tokio::test]
async fn contents_over_the_limit_are_refused() {
    let registry = Registry::with_limits(Limits::default().bytes(100));
    registry
        .register_resource(Resource::new("x:100", "x", || "a".repeat(100)))
        .unwrap();
    registry
        .register_resource(Resource::new("x:101", "x", || {
            vec![Content::text("a"), Content::bytes([0; 100])]
        }))
        .unwrap();
    registry
        .register_resource(Resource::new("x:100m", "x", || vec![0; 100_000_000]))
        .unwrap();
    assert!(registry.read("x:100").await.is_ok());
    assert!(matches!(
        registry.read("x:101").await,
        Err(ReadError::TooLarge {
            size: 101,
            limit: 100
        })
    ));
    assert!(matches!(
        registry.read("x:100m").await,
        Err(ReadError::TooLarge { .. })
    ));
}

#[tokio::test]
async fn handlers_that_take_too_long_are_left_behind() {
    let registry = Registry::with_limits(Limits::default().time(Duration::from_millis(20)));
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let block = move || {
        blocked
            .lock()
            .map(|blocked| blocked.recv().is_ok())
            .map_or("", |_| "")
    };
    registry
        .register_resource(Resource::new("x:blocks", "x", block))
        .unwrap();
    registry
        .register_resource(Resource::new(
            "x:waits",
            "x",
            std::future::pending::<String>,
        ))
        .unwrap();
    registry
        .register_resource(Resource::new("x:works", "x", || {
            std::future::ready("works")
        }))
        .unwrap();
    for uri in ["x:blocks", "x:waits"] {
        assert!(
            matches!(registry.read(uri).await, Err(ReadError::TimedOut(_))),
            "{uri}"
        );
    }
    assert_eq!(text(&registry, "x:works").await.as_deref(), Some("works"));
    drop(release);
}

#[tokio::test]
async fn read_that_is_given_up_ends_its_async_handler() {
    let registry = Registry::new();
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let ended = Arc::new(std::sync::Mutex::new(Some(ended)));
    let wait = move || {
        let ended = ended.lock().unwrap().take();
        async move {
            std::future::pending::<()>().await;
            drop(ended);
            ""
        }
    };
    registry
        .register_resource(Resource::new("x:waits", "x", wait))
        .unwrap();
    let read = tokio::time::timeout(Duration::from_millis(5), registry.read("x:waits"));
    assert!(read.await.is_err());
    assert!(end.await.is_err(), "the handler was dropped");
}

#[test]
fn only_the_first_hundred_overlaps_are_named() {
    let templates =
        |count: usize| (0..count).map(|number| template(&format!("x:{{+v{number}}}"), ""));
    // Fourteen make 91 pairs, fifteen 105.
    for (count, named, has_more) in [(14, 91, false), (15, 100, true), (1000, 100, true)] {
        let bundle = || Bundle::new().templates(templates(count));
        let registry = Registry::new();
        let registered = registry.register_server("s", bundle()).unwrap();
        assert_eq!(
            (registered.overlaps.len(), registered.has_more_overlaps),
            (named, has_more),
            "{count}"
        );
        let first = Overlap {
            template: "x:{+v1}".to_owned(),
            other: "x:{+v0}".to_owned(),
        };
        assert_eq!(registered.overlaps[0], first);
        let again = registry.register_server("s", bundle()).unwrap();
        assert_eq!(
            (
                again.known.len(),
                again.overlaps.len(),
                again.has_more_overlaps
            ),
            (count, 0, false)
        );
    }
}
