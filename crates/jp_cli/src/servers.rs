//! The MCP servers of the configuration: which there are, and whose word it takes to start one.
//!
//! A workspace can come from anywhere, so a server that it has a part in is started only once the person agreed to what it
//! is: the program with all that it gets, or the endpoint with all that is sent there.

pub(crate) mod advice;
pub(crate) mod reading;
pub(crate) mod watched;

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jp_config::{CommandSetting, Layer, McpKind, McpServer, Resolved};
use jp_mcp::{
    Caller, Client, Connection, Endpoint, Program, Revision, ServerConfig, ServerError, Tokens, Transport,
};
use jp_resource::Checksum;

use crate::{
    cmd::USUAL_KEY_VARIABLES,
    error::{Code, Failure},
    output::quoted,
    terminal::Terminal,
    workspace::Context,
};

const STARTUP_TIMEOUT: u64 = 30;
const TIMEOUT: u64 = 60;

/// The servers of the configuration; those that were started end with it.
#[derive(Debug)]
pub(crate) struct Servers {
    /// Where there are any.
    pub(crate) servers: Arc<jp_mcp::Servers>,
    /// What logins gave: kept by endpoint, for this user alone.
    pub(crate) tokens: Tokens,
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
    to_agree: Option<String>,
    /// What is started or reached, for people.
    shown: String,
    /// The variable that should hold its token and is not set.
    missing: Option<String>,
}

/// Somebody who asks for nothing but can be interrupted.
pub(crate) struct Waiting<'a>(pub(crate) &'a AtomicBool);

impl Caller for Waiting<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Servers {
    /// Reads what is configured; nothing is started.
    pub(crate) fn configured(context: &Context<'_>, config: &Resolved) -> Result<Self, Failure> {
        let mut known = BTreeMap::new();
        let mut configs = Vec::new();
        for (name, settings) in &config.config.providers.mcp {
            let reading = Reading { name, settings, config };
            let server = reading.server(context)?;
            known.insert(name.clone(), reading.known(context, &server));
            configs.push(server);
        }
        let root = context.workspace.root().to_owned();
        let wants_logs = context.global.verbose > 0;
        let client = Client { version: env!("CARGO_PKG_VERSION").to_owned(), root, wants_logs };
        let tokens = Tokens::new(context.environment.data.join("mcp-tokens"));
        let servers = Arc::new(jp_mcp::Servers::new(configs, client)?.with_tokens(tokens.clone()));
        let cancelled = context.interrupt().shared_flag();
        Ok(Self { servers, tokens, known, said: Mutex::default(), cancelled })
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns their names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Returns whether a query goes on without a server that fails.
    pub(crate) fn is_optional(&self, name: &str) -> bool {
        self.known.get(name).is_none_or(|known| known.is_optional)
    }

    /// Returns what is started or reached, for people.
    pub(crate) fn shown(&self, name: &str) -> &str {
        self.known.get(name).map_or("", |known| &known.shown)
    }

    /// Fails where a server is not configured.
    pub(crate) fn check(&self, name: &str) -> Result<(), Failure> {
        if self.known.contains_key(name) {
            return Ok(());
        }
        let names: Vec<_> = self.names().collect();
        let hint = match names.as_slice() {
            [] => "none is configured; docs/mcp.md says how.".to_owned(),
            names => format!("there are: {}.", names.join(", ")),
        };
        let failure = Failure::new(format!("there is no MCP server `{name}`"));
        let failure = match advice::meant(name, &names) {
            Some(meant) => failure.with_hint(format!("did you mean `{meant}`?")),
            None => failure,
        };
        Err(failure.with_hint(hint))
    }

    /// Returns whether a server may be started; asks the person where the workspace has a part in it and they have not been
    /// asked before. To be called by whoever has the terminal, before [`Self::connect`].
    pub(crate) fn agreed(&self, context: &Context<'_>, name: &str) -> Result<bool, Failure> {
        let Some(text) = self.known.get(name).and_then(|known| known.to_agree.as_ref()) else {
            return Ok(true);
        };
        if let Some(said) = self.said().get(name) {
            return Ok(*said);
        }
        let trust = context.workspace.trust();
        let is_agreed = context.global.yes || trust.contains(text) || self.asked(context, name)?;
        if is_agreed
            && !context.global.yes
            && let Err(error) = trust.add([text.as_str()])
        {
            context.output.detail(&format!("what was agreed to was not remembered: {error}"));
        }
        self.said().insert(name.to_owned(), is_agreed);
        Ok(is_agreed)
    }

    fn asked(&self, context: &Context<'_>, name: &str) -> Result<bool, Failure> {
        let Some(terminal) = Terminal::open(context) else {
            context.output.warn(&format!(
                "the MCP server `{name}` is not started: the workspace configures it, and there is no terminal to ask you on"
            ));
            context.output.hint("`--yes` starts it.");
            return Ok(false);
        };
        terminal.confirm(&format!(
            "The workspace configures the MCP server `{name}`: {}. Start it?",
            self.shown(name)
        ))
    }

    /// Has a server started that may be, and does not wait for it.
    pub(crate) fn start(&self, name: &str) {
        let lacks_token = self.known.get(name).is_some_and(|known| known.missing.is_some());
        if self.may_start(name) && !lacks_token {
            self.servers.start(name);
        }
    }

    /// Returns the connection to a server that may be started, once it is ready.
    pub(crate) fn connect(&self, name: &str) -> Result<Arc<Connection>, Refusal> {
        self.connect_for(name, &self.waiting())
    }

    fn connect_for(&self, name: &str, caller: &dyn Caller) -> Result<Arc<Connection>, Refusal> {
        if !self.may_start(name) {
            return Err(Refusal::NotAgreed(name.to_owned()));
        }
        if let Some(variable) = self.known.get(name).and_then(|known| known.missing.as_ref()) {
            return Err(Refusal::NoToken { server: name.to_owned(), variable: variable.clone() });
        }
        Ok(self.servers.connect(name, caller)?)
    }

    /// Returns somebody to wait in the person's place, who asks for nothing.
    pub(crate) fn waiting(&self) -> Waiting<'_> {
        Waiting(&self.cancelled)
    }

    /// Connects to several servers at once; a person who watches sees that it takes a while.
    ///
    /// Those that need the person's word are asked about first.
    pub(crate) fn connect_all(
        &self,
        context: &Context<'_>,
        names: &[&str],
    ) -> Result<Vec<Connecting>, Failure> {
        for name in names {
            self.agreed(context, name)?;
        }
        names.iter().for_each(|name| self.start(name));
        let connect = || names.iter().map(|name| ((*name).to_owned(), self.connect(name))).collect();
        let what = format!("Starting {}", names.join(", "));
        let connected: Vec<Connecting> = watched::watched(context.output, &what, |_| connect());
        context.interrupt().check()?;
        Ok(connected)
    }

    fn may_start(&self, name: &str) -> bool {
        let needs_word = self.known.get(name).is_some_and(|known| known.to_agree.is_some());
        !needs_word || self.said().get(name) == Some(&true)
    }

    fn said(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, bool>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server, and what connecting to it came to.
pub(crate) type Connecting = (String, Result<Arc<Connection>, Refusal>);

/// Why there is no connection to a server.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Refusal {
    /// The person did not agree to it.
    #[error("the MCP server `{0}` is not started: the workspace configures it, and nobody agreed to that")]
    NotAgreed(String),
    /// What should prove who asks is not there.
    #[error(
        "the MCP server `{server}`: its token is to be in the variable `{variable}` of the environment, which is not set"
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
    fn server(&self, context: &Context<'_>) -> Result<ServerConfig, Failure> {
        self.check_name()?;
        let settings = self.settings;
        let kind = match (settings.kind, &settings.command, &settings.url) {
            (Some(kind), ..) => kind,
            (None, Some(_), None) => McpKind::Stdio,
            (None, None, Some(_)) => McpKind::Http,
            (None, Some(_), Some(_)) => {
                return Err(self.fault("", "has a command and a url; `type` says which counts"));
            }
            (None, None, None) => {
                return Err(self.fault("", "has neither a command nor a url").with_hint(EXAMPLE));
            }
        };
        let transport = match kind {
            McpKind::Stdio => Transport::Stdio(self.program(context)?),
            McpKind::Http => Transport::Http(self.endpoint()?),
        };
        let seconds = |field: &str, seconds: Option<u64>, usual: u64| match seconds.unwrap_or(usual) {
            0 => Err(self.fault(field, "is 0, which no server can keep to")),
            seconds => Ok(Duration::from_secs(seconds)),
        };
        Ok(ServerConfig {
            name: self.name.to_owned(),
            transport,
            revision: settings.revision.as_deref().map(|revision| self.revision(revision)).transpose()?,
            startup_timeout: seconds("startup_timeout_secs", settings.startup_timeout_secs, STARTUP_TIMEOUT)?,
            timeout: seconds("timeout_secs", settings.timeout_secs, TIMEOUT)?,
        })
    }

    fn revision(&self, named: &str) -> Result<Revision, Failure> {
        let found = Revision::ALL.into_iter().find(|revision| revision.name() == named);
        found.ok_or_else(|| {
            let names = Revision::ALL.map(Revision::name).join(", ");
            self.fault("revision", "is none that jp speaks").with_hint(format!("there are: {names}."))
        })
    }

    /// A name is a part of `mcp+NAME+URI`, of `mcp.NAME.TOOL` and of the names of tools.
    fn check_name(&self) -> Result<(), Failure> {
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=40).contains(&self.name.len()) && self.name.bytes().all(is_usual) {
            return Ok(());
        }
        let failure = self.fault("", "is no name for a server");
        Err(failure.with_hint("a name has 1 to 40 of these: a-z, A-Z, 0-9, _ and -."))
    }

    fn program(&self, context: &Context<'_>) -> Result<Program, Failure> {
        let words = match &self.settings.command {
            None => return Err(self.fault("", "has no command").with_hint(EXAMPLE)),
            Some(CommandSetting::Words(words)) => words.clone(),
            Some(CommandSetting::Line(line)) => shlex::split(line)
                .ok_or_else(|| self.fault("command", "has a quotation mark that is not closed"))?,
        };
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| self.fault("command", "is empty").with_hint(EXAMPLE))?;
        let mut withheld = secret_variables(context, self.config);
        withheld.retain(|variable| !self.settings.variables.contains(variable));
        Ok(Program {
            program,
            arguments: words.chain(self.settings.arguments.iter().cloned()).collect(),
            environment: self.settings.environment.clone(),
            withheld,
            directory: context.workspace.root().to_owned(),
        })
    }

    fn endpoint(&self) -> Result<Endpoint, Failure> {
        let url =
            self.settings.url.as_deref().ok_or_else(|| self.fault("", "has no url").with_hint(EXAMPLE))?;
        let read = url::Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = read.ok_or_else(|| self.fault("url", "is no http or https URL"))?;
        let token = self.settings.token_env.as_ref().and_then(|variable| token(variable));
        Ok(Endpoint { url, headers: self.settings.headers.clone(), token })
    }

    fn known(&self, context: &Context<'_>, server: &ServerConfig) -> Known {
        let shown = match &server.transport {
            Transport::Stdio(program) => {
                let words = std::iter::once(&program.program).chain(&program.arguments);
                format!("it runs `{}`", words.map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
            }
            Transport::Http(endpoint) => format!("it is at {}", endpoint.url),
        };
        let key = format!("providers.mcp.{}", self.name);
        let layers = self.config.contributors(&key);
        let is_workspaces = layers.iter().any(|layer| matches!(layer, Layer::Workspace { .. }));
        Known {
            is_optional: self.settings.optional.unwrap_or(true),
            to_agree: is_workspaces.then(|| self.agreement(context, server)),
            shown: shown + &self.extras(),
            missing: self.settings.token_env.clone().filter(|variable| token(variable).is_none()),
        }
    }

    /// Names what else of the environment goes there.
    fn extras(&self) -> String {
        let settings = self.settings;
        let variables = settings.variables.iter().chain(&settings.token_env);
        let variables: Vec<_> = variables.map(|variable| format!("`{variable}`")).collect();
        match variables.as_slice() {
            [] => String::new(),
            variables => format!(", with what your environment has as {}", variables.join(", ")),
        }
    }

    /// Says all that is agreed to: where any of it changes, the person is asked again.
    fn agreement(&self, context: &Context<'_>, server: &ServerConfig) -> String {
        let settings = serde_json::to_string(self.settings).unwrap_or_default();
        let mut text = format!("MCP server {}: {settings}", self.name);
        if let Transport::Stdio(program) = &server.transport {
            let root = context.workspace.root();
            for word in std::iter::once(&program.program).chain(&program.arguments) {
                let path = root.join(word).canonicalize().ok();
                let script = path.filter(|path| path.starts_with(root) && path.is_file());
                if let Some(content) = script.and_then(|script| std::fs::read(script).ok()) {
                    text += &format!("; {word} as it is now ({})", Checksum::of(&content));
                }
            }
        }
        text
    }

    /// Says what is wrong with a field, or with the server where none is named: `KEY in LAYER FAULT`.
    fn fault(&self, field: &str, fault: &str) -> Failure {
        let dot = if field.is_empty() { "" } else { "." };
        let key = format!("providers.mcp.{}{dot}{field}", self.name);
        let layer = self.config.contributors(&key).pop().unwrap_or(&Layer::Default);
        let is_typed = matches!(layer, Layer::Argument { .. } | Layer::Flag { .. });
        let failure = Failure::new(format!("{key} in {layer} {fault}"));
        Failure { code: if is_typed { Code::Usage } else { Code::Failed }, ..failure }
    }
}

fn token(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|token| !token.is_empty())
}

const EXAMPLE: &str =
    r#"name a program, command = "my-server --flag", or an endpoint, url = "https://…/mcp"."#;

/// Names the variables that hold keys: those of providers, and what is called like one.
pub(crate) fn secret_variables(context: &Context<'_>, config: &Resolved) -> Vec<String> {
    let config = &config.config;
    let configured = config.providers.llm.values().filter_map(|llm| llm.api_key_env.clone());
    let tokens = config.providers.mcp.values().filter_map(|server| server.token_env.clone());
    let usual = USUAL_KEY_VARIABLES.iter().map(|(_, variable)| (*variable).to_owned());
    let mut variables = context.environment.secret_variables.clone();
    let external = config.conversation.attachment.external_key.clone();
    variables.extend(configured.chain(tokens).chain(usual).chain(external));
    variables.sort_unstable();
    variables.dedup();
    variables
}
