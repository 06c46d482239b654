//! The MCP servers of the configuration, and the approval that each needs before it starts.
//!
//! A workspace may come from a stranger. So jp starts a server that the workspace configures only if the user approved
//! it as a whole: the program with its arguments and environment, or the endpoint with its headers.

pub mod advice;
mod approval;
pub(crate) mod progress;
pub mod reading;

use crate::person::Person;
use std::{
    collections::BTreeMap,
    env,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use approval::ServerApproval;
use jp_config::{CommandSetting, McpKind, McpServer, Resolved};
use jp_mcp::{
    Caller, Client, Connection, Endpoint, Program, Revision, ServerConfig, ServerError, Tokens,
    Transport,
};

use crate::{
    error::SessionError,
    model::provider::USUAL_KEY_VARIABLES,
    notice::Notice,
    session::{Session, Setup},
    similar::hints_for_unknown,
    text::{has_usual_characters, quote_word},
};

/// Default for `startup_timeout_secs`: `npx` and `uvx` may download the server at its first start.
const STARTUP_TIMEOUT_SECS: u64 = 30;
/// Default for `timeout_secs`, as in the clients of the TypeScript SDK.
const TIMEOUT_SECS: u64 = 60;

/// The configured servers. Those that jp started end when it is dropped.
#[derive(Debug)]
pub struct Servers {
    /// The client of the servers.
    pub servers: Arc<jp_mcp::Servers>,
    /// The tokens of logins, by endpoint, for this user alone.
    pub tokens: Tokens,
    /// The receiver of the servers' log messages.
    person: Arc<dyn Person>,
    known: BTreeMap<String, KnownServer>,
    /// The user's answers about servers that need an approval.
    answers: Mutex<BTreeMap<String, bool>>,
    cancelled: Arc<AtomicBool>,
}

/// The facts about a server that is not started yet.
#[derive(Debug)]
struct KnownServer {
    /// A query continues without it if it fails.
    is_optional: bool,
    /// The approval that it needs, if any.
    approval: Option<ServerApproval>,
    /// Its program or endpoint, for people.
    description: String,
    /// The variable of its token, if it is not set.
    missing_variable: Option<String>,
    /// The variable of its token, if others can read the token on the way to the server.
    exposed_variable: Option<String>,
    is_warned_of: AtomicBool,
}

/// A caller that answers no questions and shows nothing, but can be interrupted.
struct QuietCaller<'a>(&'a AtomicBool);

impl Caller for QuietCaller<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Servers {
    /// Reads the configuration and starts nothing.
    pub(crate) fn from_config(setup: Setup<'_>) -> Result<Self, SessionError> {
        let Setup { session, config } = setup;
        let mut known = BTreeMap::new();
        let mut configs = Vec::new();
        // All entries are checked, so that a mistake appears even if this command needs another server.
        for (name, settings) in &config.config.providers.mcp {
            let entry = ServerEntry {
                name,
                settings,
                config,
            };
            let server = entry.to_config(session)?;
            known.insert(name.clone(), entry.to_known(session, &server));
            configs.push(server);
        }
        let client = Client {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            root: session.workspace.root().to_owned(),
            wants_logs: session.options.wants_logs,
        };
        let tokens = Tokens::new(session.surroundings.data.join("mcp-tokens"));
        let servers = jp_mcp::Servers::new(configs, client).map_err(|error| {
            SessionError::from_system("start the thread of the MCP servers", error)
        })?;
        Ok(Self {
            servers: Arc::new(servers.with_tokens(tokens.clone())),
            tokens,
            person: Arc::clone(&session.person),
            known,
            answers: Mutex::default(),
            cancelled: session.interrupt().shared_flag(),
        })
    }

    /// Returns whether no server is configured.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Returns whether a query continues without a server if it fails.
    pub fn is_optional(&self, name: &str) -> bool {
        self.known.get(name).is_none_or(|known| known.is_optional)
    }

    /// Returns the program or endpoint of a server, for people.
    pub fn description(&self, name: &str) -> &str {
        self.known.get(name).map_or("", |known| &known.description)
    }

    /// Fails if a server is not configured.
    pub fn check(&self, name: &str) -> Result<(), SessionError> {
        if self.known.contains_key(name) {
            return Ok(());
        }
        let names: Vec<_> = self.names().collect();
        let hints = match names.as_slice() {
            [] => vec![
                "no server is configured; `jp help mcp-servers` explains how to add one."
                    .to_owned(),
            ],
            names => hints_for_unknown(name, names, "configured servers"),
        };
        Err(SessionError {
            hints,
            ..SessionError::new(format!("there is no MCP server `{name}`"))
        })
    }

    /// Starts a server if it may start, and does not wait for it.
    pub(crate) fn start(&self, name: &str) {
        if self.may_start(name) && self.check_token(name).is_ok() {
            self.servers.start(name);
        }
    }

    /// Returns the connection to a server once it is ready. It fails if the server lacks an approval.
    pub fn connect(&self, name: &str) -> Result<Arc<Connection>, Refusal> {
        self.connect_for(name, &QuietCaller(&self.cancelled))
    }

    /// Connects as [`Self::connect`] does. The caller receives the server's progress, log and questions.
    pub(crate) fn connect_for(
        &self,
        name: &str,
        caller: &dyn Caller,
    ) -> Result<Arc<Connection>, Refusal> {
        if !self.may_start(name) {
            return Err(self.not_approved(name));
        }
        self.check_token(name)?;
        // The warning comes only now, when the token is about to be sent.
        if let Some(known) = self.known.get(name) {
            self.warn_of_exposure(name, known);
        }
        Ok(self.servers.connect(name, caller)?)
    }

    /// Connects to servers and makes a request to each, all at once. Returns the results in their order.
    ///
    /// First it asks the user to approve those that need it.
    pub fn ask<T: Send>(
        &self,
        session: &Session,
        names: &[&str],
        what: &str,
        ask: impl Fn(&Arc<Connection>, &dyn Caller) -> Result<T, ServerError> + Sync,
    ) -> Result<Vec<Answer<T>>, SessionError> {
        for name in names {
            self.approve_or_ask(session, name)?;
        }
        let what = format!("{what} {}", names.join(", "));
        let answers = progress::with_each_server(session, names, &what, |name, caller| {
            let answer = self
                .connect_for(name, caller)
                .and_then(|connection| Ok(ask(&connection, caller)?));
            (name.to_owned(), answer)
        });
        // After Ctrl-C the answers are errors of cancelled requests, which no one needs to see.
        session.interrupt().check()?;
        Ok(answers)
    }

    /// Fails if the variable of a server's token is not set.
    pub fn check_token(&self, name: &str) -> Result<(), Refusal> {
        let known = self.known.get(name);
        match known.and_then(|known| known.missing_variable.clone()) {
            Some(variable) => Err(Refusal::NoToken {
                server: name.to_owned(),
                variable,
            }),
            None => Ok(()),
        }
    }

    /// Warns once if others can read a server's token on its way.
    fn warn_of_exposure(&self, name: &str, known: &KnownServer) {
        if let Some(variable) = &known.exposed_variable
            && !known.is_warned_of.swap(true, Ordering::Relaxed)
        {
            self.person.tell(Notice::ServerTokenExposed {
                server: name.to_owned(),
                variable: variable.clone(),
            });
        }
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server and the result of a request to it.
pub type Answer<T> = (String, Result<T, Refusal>);

/// The reason why there is no connection to a server.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// The user has not approved it.
    #[error("the MCP server `{server}` needs your approval before it starts: {why}")]
    NotApproved {
        /// The server.
        server: String,
        /// The reason why it needs an approval.
        why: &'static str,
    },
    /// The variable of its token is not set.
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

/// A server's entry in the configuration.
struct ServerEntry<'a> {
    name: &'a str,
    settings: &'a McpServer,
    config: &'a Resolved,
}

impl ServerEntry<'_> {
    /// Checks the entry and turns it into the configuration of the client.
    fn to_config(&self, session: &Session) -> Result<ServerConfig, SessionError> {
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
        let revision = settings.revision.as_deref();
        Ok(ServerConfig {
            name: self.name.to_owned(),
            transport,
            revision: revision.map(|name| self.revision(name)).transpose()?,
            startup_timeout: self.duration(
                "startup_timeout_secs",
                settings
                    .startup_timeout_secs
                    .unwrap_or(STARTUP_TIMEOUT_SECS),
            )?,
            timeout: self.duration(
                "timeout_secs",
                settings.timeout_secs.unwrap_or(TIMEOUT_SECS),
            )?,
        })
    }

    fn duration(&self, field: &str, seconds: u64) -> Result<Duration, SessionError> {
        match seconds {
            0 => Err(self.fault(field, "is 0; the minimum is 1")),
            seconds => Ok(Duration::from_secs(seconds)),
        }
    }

    fn revision(&self, name: &str) -> Result<Revision, SessionError> {
        let known = Revision::ALL
            .into_iter()
            .find(|revision| revision.name() == name);
        known.ok_or_else(|| {
            let names = Revision::ALL.map(Revision::name).join(", ");
            self.fault("revision", "is not a revision that jp supports")
                .with_hint(format!("the supported revisions are: {names}."))
        })
    }

    /// Checks the name, which is a part of `mcp+NAME+URI`, of `mcp.NAME.TOOL` and of the names of tools.
    fn check_name(&self) -> Result<(), SessionError> {
        // Names of tools begin with it and have 64 characters at most, so 40 leave some for the tool's own name.
        if (1..=40).contains(&self.name.len()) && has_usual_characters(self.name) {
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
        // `variables` names the secrets that this server may have.
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
        // Other schemes have no transport of MCP.
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

    fn to_known(&self, session: &Session, server: &ServerConfig) -> KnownServer {
        let description = match &server.transport {
            Transport::Stdio(program) => {
                let words = std::iter::once(&program.program).chain(&program.arguments);
                let words: Vec<_> = words.map(|word| quote_word(word)).collect();
                format!("it runs `{}`", words.join(" "))
            }
            Transport::Http(endpoint) => format!("it is at {}", endpoint.url),
        };
        let token_env = &self.settings.token_env;
        KnownServer {
            is_optional: self.settings.optional.unwrap_or(true),
            approval: self.approval(session, server),
            description,
            missing_variable: token_env
                .clone()
                .filter(|variable| token(variable).is_none()),
            exposed_variable: token_env.clone().filter(|_| is_exposed(&server.transport)),
            is_warned_of: AtomicBool::new(false),
        }
    }

    /// Makes the error about a field, or about the whole server if the field is empty: `KEY in LAYER FAULT`.
    fn fault(&self, field: &str, fault: &str) -> SessionError {
        let dot = if field.is_empty() { "" } else { "." };
        let key = format!("providers.mcp.{}{dot}{field}", self.name);
        SessionError::about_key(self.config, &key, fault)
    }
}

/// Returns whether others can read requests on their way to a server: they are not encrypted and leave this machine.
fn is_exposed(transport: &Transport) -> bool {
    let Transport::Http(endpoint) = transport else {
        return false;
    };
    let is_loopback = match endpoint.url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    endpoint.url.scheme() == "http" && !is_loopback
}

/// Returns the token in a variable; an empty one counts as unset.
fn token(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|token| !token.is_empty())
}

/// Hint for an entry without a program or endpoint.
const EXAMPLE: &str =
    r#"set a program, `command = "my-server --flag"`, or an endpoint, `url = "https://…/mcp"`."#;

/// Returns the variables that hold secrets: those of providers and servers, and those with the name of a secret.
pub(crate) fn secret_variables(setup: Setup<'_>) -> Vec<String> {
    let Setup { session, config } = setup;
    let config = &config.config;
    let mut variables = session.surroundings.secret_variables.clone();
    let keys = config.providers.llm.values();
    variables.extend(keys.filter_map(|provider| provider.api_key_env.clone()));
    let tokens = config.providers.mcp.values();
    variables.extend(tokens.filter_map(|server| server.token_env.clone()));
    let usual = USUAL_KEY_VARIABLES.iter();
    variables.extend(usual.map(|(_, variable)| (*variable).to_owned()));
    variables.extend(config.conversation.attachment.external_key.clone());
    variables.sort_unstable();
    variables.dedup();
    variables
}
