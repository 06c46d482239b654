//! The MCP servers of the configuration: which there are, and whose word it takes to start one.
//!
//! A workspace can come from anywhere, so a server that it has a part in is started only once the person agreed to what it
//! is: the program with all that it gets, or the endpoint with all that is sent there.

pub mod advice;
mod agreement;
pub mod reading;
pub(crate) mod watched;

use crate::person::Person;
use std::{
    collections::BTreeMap,
    env,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agreement::Agreement;
use jp_config::{CommandSetting, Layer, McpKind, McpServer, Resolved};
use jp_mcp::{
    Caller, Client, Connection, Endpoint, Program, Revision, ServerConfig, ServerError, Tokens,
    Transport,
};

use crate::{
    error::{ErrorKind, SessionError},
    model::provider::USUAL_KEY_VARIABLES,
    notice::Notice,
    session::{Session, Setup},
    similar::find_similar,
    text::quoted,
};

const STARTUP_TIMEOUT: u64 = 30;
const TIMEOUT: u64 = 60;

/// The servers of the configuration; those that were started end with it.
#[derive(Debug)]
pub struct Servers {
    /// Where there are any.
    pub servers: Arc<jp_mcp::Servers>,
    /// What logins gave: kept by endpoint, for this user alone.
    pub tokens: Tokens,
    /// Where what servers log is told.
    person: Arc<dyn Person>,
    known: BTreeMap<String, Known>,
    /// What the person said of servers that the workspace has a part in.
    said: Mutex<BTreeMap<String, bool>>,
    cancelled: Arc<AtomicBool>,
}

/// What is known of a server without starting it.
#[derive(Debug)]
struct Known {
    /// Whether a query goes on without it.
    is_optional: bool,
    /// What the person agrees to, where they have to.
    agreement: Option<Agreement>,
    /// What is started or reached, for people.
    shown: String,
    /// The variable that should hold its token and is not set.
    missing: Option<String>,
    /// The variable whose token others can read on its way there.
    exposed: Option<String>,
    is_warned_of: AtomicBool,
}

/// Somebody who asks for nothing but can be interrupted.
struct Waiting<'a>(&'a AtomicBool);

impl Caller for Waiting<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Servers {
    /// Reads what is configured; nothing is started.
    pub(crate) fn configured(setup: Setup<'_>) -> Result<Self, SessionError> {
        let Setup { session, config } = setup;
        let mut known = BTreeMap::new();
        let mut configs = Vec::new();
        for (name, settings) in &config.config.providers.mcp {
            let reading = Reading {
                name,
                settings,
                config,
            };
            let server = reading.server(session)?;
            known.insert(name.clone(), reading.known(session, &server));
            configs.push(server);
        }
        let root = session.workspace.root().to_owned();
        let wants_logs = session.options.wants_logs;
        let client = Client {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            root,
            wants_logs,
        };
        let tokens = Tokens::new(session.surroundings.data.join("mcp-tokens"));
        let servers = jp_mcp::Servers::new(configs, client).map_err(|error| {
            SessionError::from_system("start the thread of the MCP servers", error)
        })?;
        let servers = Arc::new(servers.with_tokens(tokens.clone()));
        let cancelled = session.interrupt().shared_flag();
        let person = Arc::clone(&session.person);
        Ok(Self {
            servers,
            tokens,
            person,
            known,
            said: Mutex::default(),
            cancelled,
        })
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Returns whether a query goes on without a server that fails.
    pub fn is_optional(&self, name: &str) -> bool {
        self.known.get(name).is_none_or(|known| known.is_optional)
    }

    /// Returns what is started or reached, for people.
    pub fn shown(&self, name: &str) -> &str {
        self.known.get(name).map_or("", |known| &known.shown)
    }

    /// Fails where a server is not configured.
    pub fn check(&self, name: &str) -> Result<(), SessionError> {
        if self.known.contains_key(name) {
            return Ok(());
        }
        let names: Vec<_> = self.names().collect();
        let hint = match names.as_slice() {
            [] => {
                "no server is configured; `jp help mcp-servers` explains how to add one.".to_owned()
            }
            names => format!("the configured servers are: {}.", names.join(", ")),
        };
        let failure = SessionError::new(format!("there is no MCP server `{name}`"));
        let failure = match find_similar(name, &names) {
            Some(meant) => failure.with_hint(format!("did you mean `{meant}`?")),
            None => failure,
        };
        Err(failure.with_hint(hint))
    }

    /// Has a server started that may be, and does not wait for it.
    pub(crate) fn start(&self, name: &str) {
        if self.may_start(name) && self.check_token(name).is_ok() {
            self.servers.start(name);
        }
    }

    /// Returns the connection to a server that may be started, once it is ready.
    pub fn connect(&self, name: &str) -> Result<Arc<Connection>, Refusal> {
        self.connect_for(name, &Waiting(&self.cancelled))
    }

    /// As [`Self::connect`], for somebody who is told what comes up.
    pub(crate) fn connect_for(
        &self,
        name: &str,
        caller: &dyn Caller,
    ) -> Result<Arc<Connection>, Refusal> {
        if !self.may_start(name) {
            return Err(self.not_agreed(name));
        }
        self.check_token(name)?;
        if let Some(known) = self.known.get(name) {
            self.warn_of_exposure(name, known);
        }
        Ok(self.servers.connect(name, caller)?)
    }

    /// Connects to several servers and asks each something, all at once; returns what came of it in their order.
    ///
    /// Those that need the person's word are asked about first.
    pub fn ask<T: Send>(
        &self,
        session: &Session,
        names: &[&str],
        what: &str,
        ask: impl Fn(&Arc<Connection>, &dyn Caller) -> Result<T, ServerError> + Sync,
    ) -> Result<Vec<Answer<T>>, SessionError> {
        for name in names {
            self.agreed(session, name)?;
        }
        let what = format!("{what} {}", names.join(", "));
        let answers = watched::with_each(session, names, &what, |name, person| {
            let answer = self
                .connect_for(name, person)
                .and_then(|connection| Ok(ask(&connection, person)?));
            (name.to_owned(), answer)
        });
        session.interrupt().check()?;
        Ok(answers)
    }

    /// Fails where the variable that is to hold a server's token is not set.
    pub fn check_token(&self, name: &str) -> Result<(), Refusal> {
        match self.known.get(name).and_then(|known| known.missing.clone()) {
            Some(variable) => Err(Refusal::NoToken {
                server: name.to_owned(),
                variable,
            }),
            None => Ok(()),
        }
    }

    /// Warns, once, of a token that can be read on its way.
    fn warn_of_exposure(&self, name: &str, known: &Known) {
        if let Some(variable) = &known.exposed
            && !known.is_warned_of.swap(true, Ordering::Relaxed)
        {
            self.person.tell(Notice::ServerTokenExposed {
                server: name.to_owned(),
                variable: variable.clone(),
            });
        }
    }

    fn said(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, bool>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server, and what came of what it was asked.
pub type Answer<T> = (String, Result<T, Refusal>);

/// Why there is no connection to a server.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// The person did not agree to it.
    #[error("the MCP server `{server}` needs your approval before it starts: {why}")]
    NotAgreed {
        /// The server.
        server: String,
        /// What the workspace has to do with it.
        why: &'static str,
    },
    /// What should prove who asks is not there.
    #[error(
        "the MCP server `{server}` has no token: the environment variable `{variable}` is not set"
    )]
    NoToken {
        /// The server.
        server: String,
        /// The variable.
        variable: String,
    },
    /// It failed.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// A server's settings while they are read.
struct Reading<'a> {
    name: &'a str,
    settings: &'a McpServer,
    config: &'a Resolved,
}

impl Reading<'_> {
    fn server(&self, session: &Session) -> Result<ServerConfig, SessionError> {
        self.check_name()?;
        let settings = self.settings;
        let kind = match (settings.kind, &settings.command, &settings.url) {
            (Some(kind), ..) => kind,
            (None, Some(_), None) => McpKind::Stdio,
            (None, None, Some(_)) => McpKind::Http,
            (None, Some(_), Some(_)) => {
                return Err(
                    self.fault("", "has both a command and a url; set `type` to choose one")
                );
            }
            (None, None, None) => {
                return Err(self
                    .fault("", "has neither a command nor a url")
                    .with_hint(EXAMPLE));
            }
        };
        let transport = match kind {
            McpKind::Stdio => Transport::Stdio(self.program(session)?),
            McpKind::Http => Transport::Http(self.endpoint()?),
        };
        let seconds = |field: &str, seconds: Option<u64>, usual: u64| match seconds.unwrap_or(usual)
        {
            0 => Err(self.fault(field, "is 0; the minimum is 1")),
            seconds => Ok(Duration::from_secs(seconds)),
        };
        Ok(ServerConfig {
            name: self.name.to_owned(),
            transport,
            revision: settings
                .revision
                .as_deref()
                .map(|revision| self.revision(revision))
                .transpose()?,
            startup_timeout: seconds(
                "startup_timeout_secs",
                settings.startup_timeout_secs,
                STARTUP_TIMEOUT,
            )?,
            timeout: seconds("timeout_secs", settings.timeout_secs, TIMEOUT)?,
        })
    }

    fn revision(&self, named: &str) -> Result<Revision, SessionError> {
        let found = Revision::ALL
            .into_iter()
            .find(|revision| revision.name() == named);
        found.ok_or_else(|| {
            let names = Revision::ALL.map(Revision::name).join(", ");
            self.fault("revision", "is not a revision that jp supports")
                .with_hint(format!("the supported revisions are: {names}."))
        })
    }

    /// A name is a part of `mcp+NAME+URI`, of `mcp.NAME.TOOL` and of the names of tools.
    fn check_name(&self) -> Result<(), SessionError> {
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=40).contains(&self.name.len()) && self.name.bytes().all(is_usual) {
            return Ok(());
        }
        let failure = self.fault("", "is not a valid name for a server");
        Err(failure.with_hint("use 1 to 40 of these characters: a-z, A-Z, 0-9, _ and -."))
    }

    fn program(&self, session: &Session) -> Result<Program, SessionError> {
        let words = match &self.settings.command {
            None => return Err(self.fault("", "has no command").with_hint(EXAMPLE)),
            Some(CommandSetting::Words(words)) => words.clone(),
            Some(CommandSetting::Line(line)) => shlex::split(line)
                .ok_or_else(|| self.fault("command", "has an unclosed quotation mark"))?,
        };
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        let program =
            program.ok_or_else(|| self.fault("command", "is empty").with_hint(EXAMPLE))?;
        let mut withheld = secret_variables(Setup::new(session, self.config));
        withheld.retain(|variable| !self.settings.variables.contains(variable));
        Ok(Program {
            program,
            arguments: words
                .chain(self.settings.arguments.iter().cloned())
                .collect(),
            environment: self.settings.environment.clone(),
            withheld,
            directory: session.workspace.root().to_owned(),
        })
    }

    fn endpoint(&self) -> Result<Endpoint, SessionError> {
        let url = self
            .settings
            .url
            .as_deref()
            .ok_or_else(|| self.fault("", "has no url").with_hint(EXAMPLE))?;
        let read = url::Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = read.ok_or_else(|| self.fault("url", "is not an http or https URL"))?;
        let token = self
            .settings
            .token_env
            .as_ref()
            .and_then(|variable| token(variable));
        Ok(Endpoint {
            url,
            headers: self.settings.headers.clone(),
            token,
        })
    }

    fn known(&self, session: &Session, server: &ServerConfig) -> Known {
        let shown = match &server.transport {
            Transport::Stdio(program) => {
                let words = std::iter::once(&program.program).chain(&program.arguments);
                format!(
                    "it runs `{}`",
                    words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
                )
            }
            Transport::Http(endpoint) => format!("it is at {}", endpoint.url),
        };
        let token_env = &self.settings.token_env;
        Known {
            is_optional: self.settings.optional.unwrap_or(true),
            agreement: self.agreement(session, server),
            shown,
            missing: token_env
                .clone()
                .filter(|variable| token(variable).is_none()),
            exposed: token_env.clone().filter(|_| is_exposed(&server.transport)),
            is_warned_of: AtomicBool::new(false),
        }
    }

    /// Says what is wrong with a field, or with the server where none is named: `KEY in LAYER FAULT`.
    fn fault(&self, field: &str, fault: &str) -> SessionError {
        let dot = if field.is_empty() { "" } else { "." };
        let key = format!("providers.mcp.{}{dot}{field}", self.name);
        let layer = self
            .config
            .contributors(&key)
            .pop()
            .unwrap_or(&Layer::Default);
        let is_typed = matches!(layer, Layer::Argument { .. } | Layer::Flag { .. });
        let failure = SessionError::new(format!("{key} in {layer} {fault}"));
        SessionError {
            kind: if is_typed {
                ErrorKind::Usage
            } else {
                ErrorKind::Failed
            },
            ..failure
        }
    }
}

/// Returns whether others can read on the way what is sent there.
fn is_exposed(transport: &Transport) -> bool {
    match transport {
        Transport::Stdio(_) => false,
        Transport::Http(endpoint) => {
            let is_here = match endpoint.url.host() {
                Some(url::Host::Domain(name)) => name == "localhost",
                Some(url::Host::Ipv4(address)) => address.is_loopback(),
                Some(url::Host::Ipv6(address)) => address.is_loopback(),
                None => false,
            };
            endpoint.url.scheme() == "http" && !is_here
        }
    }
}

fn token(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|token| !token.is_empty())
}

const EXAMPLE: &str =
    r#"set a program, `command = "my-server --flag"`, or an endpoint, `url = "https://…/mcp"`."#;

/// Names the variables that hold keys: those of providers, and what is called like one.
pub(crate) fn secret_variables(setup: Setup<'_>) -> Vec<String> {
    let Setup { session, config } = setup;
    let config = &config.config;
    let configured = config
        .providers
        .llm
        .values()
        .filter_map(|llm| llm.api_key_env.clone());
    let tokens = config
        .providers
        .mcp
        .values()
        .filter_map(|server| server.token_env.clone());
    let usual = USUAL_KEY_VARIABLES
        .iter()
        .map(|(_, variable)| (*variable).to_owned());
    let mut variables = session.surroundings.secret_variables.clone();
    let external = config.conversation.attachment.external_key.clone();
    variables.extend(configured.chain(tokens).chain(usual).chain(external));
    variables.sort_unstable();
    variables.dedup();
    variables
}
