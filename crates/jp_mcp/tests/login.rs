//! Logins at a server on this machine that is its own authorization server, over real HTTP.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use jp_mcp::{
    Caller, Client, Elicitation, Elicited, Endpoint, Fault, Login, Program, ServerConfig, Servers,
    Tokens, Transport,
};
use serde_json::{Value, json};
use support::{Request, Response};
use url::Url;

/// A server that wants a token.
struct Server {
    url: Url,
    state: Arc<Mutex<State>>,
}

/// What the server gives and takes now; whatever is a secret begins with `hush`.
#[derive(Default)]
struct State {
    /// What the path of its issuer is.
    moved_to: &'static str,
    /// How many tokens were given; the last is the one that is taken.
    given: usize,
    expires_in: u64,
    is_revoked: bool,
    /// What the token endpoint refuses with.
    refusal: Option<&'static str>,
    /// What it was asked: method and path, with what proves who asks and with the form.
    log: Vec<String>,
}

impl Server {
    fn start() -> Self {
        let state = State::default();
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let root = support::start(move |request| shared.lock().unwrap().answer(request));
        Self {
            url: root.join("/mcp").unwrap(),
            state,
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    /// Returns what was asked since the last time, of what concerns logins and tokens.
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Response {
        let at = |path: &str| request.target.join(path).unwrap().to_string();
        let root = at("/").trim_end_matches('/').to_owned();
        let issuer = format!("{root}{}", self.moved_to);
        match &*request.what {
            "GET /.well-known/oauth-protected-resource/mcp" => Response::json(&json!({
                "resource": at("/mcp"), "authorization_servers": [issuer], "scopes_supported": ["read"],
            })),
            "GET /.well-known/oauth-authorization-server"
            | "GET /.well-known/oauth-authorization-server/other" => Response::json(&json!({
                "issuer": issuer,
                "authorization_endpoint": at("/authorize"),
                "token_endpoint": at("/token"),
                "registration_endpoint": at("/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            })),
            "POST /register" => {
                self.log.push(request.what.clone());
                Response::json(
                    &json!({"client_id": "jp-1", "client_secret": "hush-client", "redirect_uris": []}),
                )
            }
            "GET /authorize" => {
                let query: BTreeMap<_, _> = request.target.query_pairs().collect();
                let (redirect, state) = (&query["redirect_uri"], &query["state"]);
                self.log
                    .push(format!("{} {}", request.what, query["scope"]));
                Response::empty(
                    "302 Found",
                    format!("Location: {redirect}?code=hush-code&state={state}"),
                )
            }
            "POST /token" => self.token(request),
            "GET /mcp" | "POST /mcp" | "POST /other" if !self.is_proved(request) => {
                self.log
                    .push(format!("{} refused {:?}", request.what, proof(request)));
                let pointer = at("/.well-known/oauth-protected-resource/mcp");
                let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"{pointer}\"");
                Response::empty("401 Unauthorized", challenge)
            }
            "POST /mcp" => {
                self.log.push(format!("{} taken", request.what));
                let id = serde_json::from_str::<Value>(&request.body).unwrap()["id"].clone();
                let result = json!({
                    "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "supportedVersions": ["2026-07-28"], "capabilities": {},
                });
                Response::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
            _ => Response::empty("404 Not Found", "Cache-Control: no-store"),
        }
    }

    fn is_proved(&self, request: &Request) -> bool {
        !self.is_revoked
            && self.given > 0
            && proof(request) == format!("Bearer hush-access-{}", self.given)
    }

    fn token(&mut self, request: &Request) -> Response {
        let mut form: Vec<_> = url::form_urlencoded::parse(request.body.as_bytes()).collect();
        form.retain(|(name, _)| !["code_verifier", "redirect_uri"].contains(&&**name));
        form.sort();
        let form: Vec<_> = form
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.log.push(format!(
            "{} {} {}",
            request.what,
            proof(request),
            form.join(" ")
        ));
        if let Some(refusal) = self.refusal {
            let body = json!({"error": refusal, "error_description": "no more"});
            return Response {
                status: "400 Bad Request",
                ..Response::json(&body)
            };
        }
        self.given += 1;
        self.is_revoked = false;
        Response::json(&json!({
            "access_token": format!("hush-access-{}", self.given),
            "refresh_token": format!("hush-refresh-{}", self.given),
            "token_type": "Bearer",
            "expires_in": self.expires_in,
        }))
    }
}

fn proof(request: &Request) -> &str {
    request
        .headers
        .get("authorization")
        .map_or("", String::as_str)
}

/// Someone who goes wherever they are sent, as a browser does.
struct Willing;

impl Caller for Willing {
    fn answer(&self, elicitation: &Elicitation) -> Elicited {
        let Elicitation::Url { url, .. } = elicitation else {
            panic!("{elicitation:?}")
        };
        let url = url.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                reqwest::Client::builder()
                    .no_proxy()
                    .build()
                    .unwrap()
                    .get(url)
                    .send()
                    .await
            })
        });
        Elicited::Accept(None)
    }
}

fn servers(transport: Transport, tokens: &Path) -> Servers {
    let (startup_timeout, timeout) = (Duration::from_secs(10), Duration::from_secs(10));
    let config = ServerConfig {
        name: "notes".to_owned(),
        transport,
        revision: None,
        startup_timeout,
        timeout,
    };
    let client = Client {
        version: "1".to_owned(),
        root: tokens.to_owned(),
        wants_logs: false,
    };
    Servers::new(vec![config], client)
        .unwrap()
        .with_tokens(Tokens::new(tokens.join("tokens")))
}

fn at(url: &Url) -> Transport {
    Transport::Http(Endpoint {
        url: url.clone(),
        headers: BTreeMap::new(),
        token: None,
    })
}

fn login() -> Login {
    Login {
        client: None,
        metadata_url: None,
        challenge: None,
        scopes: Vec::new(),
        port: 0,
        timeout: Duration::from_secs(10),
    }
}

/// A server at which someone has logged in, and where what that gave is kept.
fn logged_in(expires_in: u64) -> (Server, tempfile::TempDir) {
    let (server, home) = (Server::start(), tempfile::tempdir().unwrap());
    server.change(|state| state.expires_in = expires_in);
    servers(at(&server.url), home.path())
        .log_in("notes", &login(), &Willing)
        .unwrap();
    let log = server.log();
    let resource = &server.url;
    assert_eq!(
        log,
        [
            "GET /mcp refused \"\"".to_owned(),
            "POST /register".to_owned(),
            "GET /authorize read".to_owned(),
            format!(
                "POST /token {BASIC} code=hush-code grant_type=authorization_code resource={resource}"
            ),
        ]
    );
    (server, home)
}

/// The client and its secret, as the registration gave them.
const BASIC: &str = "Basic anAtMTpodXNoLWNsaWVudA==";

#[test]
fn whoever_has_logged_in_is_known_from_then_on() {
    let (server, home) = logged_in(3600);
    servers(at(&server.url), home.path())
        .connect("notes", &())
        .unwrap();
    assert_eq!(server.log(), ["POST /mcp taken"]);

    let other = servers(at(&server.url.join("/other").unwrap()), home.path());
    let error = other.connect("notes", &()).unwrap_err();
    assert!(matches!(error.fault, Fault::Status(status) if status.status == 401));
    assert!(
        server
            .log()
            .iter()
            .all(|line| line == "POST /other refused \"\""),
        "tokens stay with their endpoint"
    );

    assert!(
        Tokens::new(home.path().join("tokens"))
            .forget(&server.url)
            .unwrap()
    );
    servers(at(&server.url), home.path())
        .connect("notes", &())
        .unwrap_err();
}

#[test]
fn token_that_is_refused_is_renewed_as_who_logged_in() {
    let (server, home) = logged_in(3600);
    server.change(|state| state.is_revoked = true);
    servers(at(&server.url), home.path())
        .connect("notes", &())
        .unwrap();
    let log = server.log();
    let resource = &server.url;
    // Without a scope the renewed token has the scope that was granted (RFC 6749 §6).
    let form = format!("grant_type=refresh_token refresh_token=hush-refresh-1 resource={resource}");
    assert_eq!(
        log,
        [
            "POST /mcp refused \"Bearer hush-access-1\"".to_owned(),
            "GET /mcp refused \"\"".to_owned(),
            format!("POST /token {BASIC} {form}"),
            "POST /mcp taken".to_owned(),
        ]
    );
    servers(at(&server.url), home.path())
        .connect("notes", &())
        .unwrap();
    assert_eq!(server.log(), ["POST /mcp taken"], "the new one is kept");
}

#[test]
fn token_that_has_run_out_is_renewed_before_it_is_sent() {
    let (server, home) = logged_in(0);
    server.change(|state| state.expires_in = 3600);
    servers(at(&server.url), home.path())
        .connect("notes", &())
        .unwrap();
    let log = server.log();
    let [asked, renewed, taken] = &log[..] else {
        panic!("{log:?}")
    };
    assert_eq!(
        (&**asked, &**taken),
        ("GET /mcp refused \"\"", "POST /mcp taken")
    );
    assert!(renewed.contains("grant_type=refresh_token"), "{renewed}");
}

#[test]
fn token_of_another_process_is_taken_rather_than_renewed_again() {
    let (server, home) = logged_in(3600);
    let one = servers(at(&server.url), home.path());
    let connection = one.connect("notes", &()).unwrap();
    server.change(|state| state.is_revoked = true);
    servers(at(&server.url), home.path())
        .connect("notes", &())
        .unwrap();
    server.log();
    connection.subscribe(&[], &()).unwrap_err();
    let log = server.log();
    assert_eq!(
        log,
        [
            "POST /mcp refused \"Bearer hush-access-1\"",
            "POST /mcp taken"
        ]
    );
}

#[test]
fn nothing_is_sent_to_who_now_says_to_be_the_authorization_server() {
    let (server, home) = logged_in(3600);
    server.change(|state| {
        state.is_revoked = true;
        state.moved_to = "/other";
    });
    let error = servers(at(&server.url), home.path())
        .connect("notes", &())
        .unwrap_err();
    assert!(matches!(error.fault, Fault::Status(status) if status.status == 401));
    assert!(
        !server
            .log()
            .iter()
            .any(|line| line.starts_with("POST /token"))
    );
}

#[test]
fn renewal_that_is_refused_leaves_the_servers_answer() {
    let (server, home) = logged_in(3600);
    server.change(|state| (state.is_revoked, state.refusal) = (true, Some("invalid_grant")));
    let servers = servers(at(&server.url), home.path());
    let error = servers.connect("notes", &()).unwrap_err();
    assert!(matches!(&error.fault, Fault::Status(status) if status.status == 401));
    let shown = format!("{error} {error:?} {servers:?}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn login_that_is_refused_says_why() {
    let (server, home) = (Server::start(), tempfile::tempdir().unwrap());
    server.change(|state| state.refusal = Some("invalid_client"));
    let error = servers(at(&server.url), home.path())
        .log_in("notes", &login(), &Willing)
        .unwrap_err();
    let expected = "the MCP server `notes`: the login failed: OAuth token exchange failed: \
                    Server returned error response: invalid_client: no more";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn page_that_is_not_visited_is_the_end_of_a_login() {
    let (server, home) = (Server::start(), tempfile::tempdir().unwrap());
    let error = servers(at(&server.url), home.path())
        .log_in("notes", &login(), &())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the MCP server `notes`: the login failed: you declined to visit its page"
    );
}

#[test]
fn some_servers_have_no_login() {
    let home = tempfile::tempdir().unwrap();
    let refused = |transport| {
        servers(transport, home.path())
            .log_in("notes", &login(), &Willing)
            .unwrap_err()
            .fault
            .to_string()
    };
    let plain = Url::parse("http://notes.example/mcp").unwrap();
    assert_eq!(
        refused(at(&plain)),
        "the login failed: http://notes.example/mcp does not use https"
    );
    let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer hush".to_owned())]);
    let url = Url::parse("https://notes.example/mcp").unwrap();
    let proved = Transport::Http(Endpoint {
        url,
        headers,
        token: None,
    });
    assert_eq!(
        refused(proved),
        "the login failed: the configuration already has a token or an Authorization header"
    );
    let program = Program {
        program: "notes".to_owned(),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        withheld: Vec::new(),
        directory: home.path().to_owned(),
    };
    assert_eq!(
        refused(Transport::Stdio(program)),
        "the login failed: only HTTP servers support a login"
    );
}

#[test]
fn login_that_nobody_wants_any_more_ends() {
    struct Leaving;
    impl Caller for Leaving {
        fn is_cancelled(&self) -> bool {
            true
        }
    }
    // It takes connections, and says nothing.
    let (silent, home) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let url = Url::parse(&format!("http://{}/mcp", silent.local_addr().unwrap())).unwrap();
    let error = servers(at(&url), home.path())
        .log_in("notes", &login(), &Leaving)
        .unwrap_err();
    assert!(matches!(error.fault, Fault::Interrupted));
}

#[test]
fn damaged_file_is_no_obstacle_to_a_login() {
    let (server, home) = logged_in(3600);
    let files = fs::read_dir(home.path().join("tokens"))
        .unwrap()
        .map(|file| file.unwrap().path());
    files.for_each(|file| fs::write(file, "{").unwrap());
    let servers = servers(at(&server.url), home.path());
    servers.log_in("notes", &login(), &Willing).unwrap();
    servers.connect("notes", &()).unwrap();
}

#[test]
fn more_is_asked_for_on_top_of_what_was_granted() {
    let (server, home) = logged_in(3600);
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"".to_owned();
    let wider = Login {
        challenge: Some(challenge),
        ..login()
    };
    servers(at(&server.url), home.path())
        .log_in("notes", &wider, &Willing)
        .unwrap();
    assert!(
        server
            .log()
            .contains(&"GET /authorize read write".to_owned())
    );
}
