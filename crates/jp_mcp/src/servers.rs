//! The servers of a configuration, each started when something needs it.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::OnceCell,
};

use crate::{
    Caller, Client, Connection, Fault, Limits, Login, ServerConfig, ServerError, Tokens, Transport,
    auth, connection,
};

/// How often whoever waits is asked whether they still want to.
const TICK: Duration = Duration::from_millis(50);

/// The servers of a configuration.
///
/// A server is started once, by whoever needs it first; those that run end with this.
#[derive(Debug)]
pub struct Servers {
    /// Taken by whoever ends it.
    runtime: Option<Runtime>,
    client: Arc<Client>,
    tokens: Option<Arc<Tokens>>,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    config: Arc<ServerConfig>,
    connection: Arc<OnceCell<Result<Arc<Connection>, ServerError>>>,
    /// Whether it was told what the server wrote before it failed.
    is_told: AtomicBool,
}

impl Servers {
    /// Puts servers together; none is started. Fails where the system has no thread left.
    pub fn new(configs: Vec<ServerConfig>, client: Client) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("mcp")
            .enable_all()
            .build()?;
        let entry = |config: ServerConfig| {
            let name = config.name.clone();
            (
                name,
                Entry {
                    config: Arc::new(config),
                    connection: Arc::default(),
                    is_told: AtomicBool::new(false),
                },
            )
        };
        let entries = configs.into_iter().map(entry).collect();
        Ok(Self {
            runtime: Some(runtime),
            client: Arc::new(client),
            tokens: None,
            entries,
        })
    }

    /// Has requests carry what logins gave, and keeps there what logins give.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(Arc::new(tokens));
        self
    }

    /// Has someone log in at a server that is reached by HTTP, which is not started for that.
    ///
    /// The caller is asked to visit a page, as [`crate::Elicitation::Url`]; whoever accepts has gone there, or will. This then
    /// waits until the page leads back to this machine, and keeps what that gives ([`Self::with_tokens`]). Servers that are
    /// connected to later use it by themselves.
    pub fn log_in(
        &self,
        name: &str,
        login: &Login,
        caller: &dyn Caller,
    ) -> Result<(), ServerError> {
        let config = self
            .config(name)
            .ok_or_else(|| ServerError::new(name, Fault::Unknown))?;
        let result = match (&config.transport, &self.tokens) {
            (Transport::Http(endpoint), Some(tokens)) => {
                auth::log_in(self.runtime(), endpoint, tokens, login, caller)
            }
            (Transport::Http(_), None) => Err(Fault::Login(
                "there is no place to keep its tokens".to_owned(),
            )),
            (Transport::Stdio(_), _) => Err(Fault::Login(
                "only servers that are reached by HTTP have one".to_owned(),
            )),
        };
        result.map_err(|fault| ServerError::new(name, fault))
    }

    /// Returns the names of the servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns how a server is configured.
    #[must_use]
    pub fn config(&self, name: &str) -> Option<&ServerConfig> {
        self.entries.get(name).map(|entry| &*entry.config)
    }

    /// Has a server started, and does not wait for it.
    pub fn start(&self, name: &str) {
        if let Some(entry) = self.entries.get(name) {
            drop(self.start_connecting(entry));
        }
    }

    /// Returns the connection to a server, which is started if nobody has; waits until it is ready.
    pub fn connect(&self, name: &str, caller: &dyn Caller) -> Result<Arc<Connection>, ServerError> {
        let failure = |fault| ServerError::new(name, fault);
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| failure(Fault::Unknown))?;
        let ready = self.start_connecting(entry);
        loop {
            match ready.recv_timeout(TICK) {
                Ok(Err(error)) if entry.is_told.swap(true, Relaxed) => {
                    return Err(ServerError {
                        stderr: Vec::new(),
                        ..error
                    });
                }
                Ok(connection) => return connection,
                Err(mpsc::RecvTimeoutError::Timeout) if caller.is_cancelled() => {
                    return Err(failure(Fault::Interrupted));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(failure(Fault::Ended("starting it failed".to_owned())));
                }
            }
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime
            .as_ref()
            .unwrap_or_else(|| unreachable!("it is there until this is dropped"))
    }

    fn start_connecting(
        &self,
        entry: &Entry,
    ) -> mpsc::Receiver<Result<Arc<Connection>, ServerError>> {
        let (sender, ready) = mpsc::channel();
        let (config, client, cell) = (
            Arc::clone(&entry.config),
            Arc::clone(&self.client),
            Arc::clone(&entry.connection),
        );
        let tokens = self.tokens.clone();
        self.runtime().spawn(async move {
            let connect = || async {
                connection::connect(&config, &client, tokens.as_deref(), Limits::USUAL)
                    .await
                    .map(Arc::new)
            };
            let connection = cell.get_or_init(connect).await.clone();
            // Whoever only has it started does not wait.
            _ = sender.send(connection);
        });
        ready
    }
}

/// Ends the servers that run, all at once, politely first.
impl Drop for Servers {
    fn drop(&mut self) {
        let connections: Vec<_> = self
            .entries
            .values()
            .filter_map(|entry| entry.connection.get()?.as_ref().ok().map(Arc::clone))
            .map(|connection| {
                self.runtime()
                    .spawn(async move { connection.close().await })
            })
            .collect();
        let (sender, ended) = mpsc::channel();
        self.runtime().spawn(async move {
            for connection in connections {
                _ = connection.await;
            }
            _ = sender.send(());
        });
        // Each has its own bounds; this only holds where one of them fails to.
        _ = ended.recv_timeout(Duration::from_secs(10));
        // A thread that waits for what another process has is not waited for.
        self.runtime
            .take()
            .into_iter()
            .for_each(|runtime| runtime.shutdown_timeout(TICK));
    }
}
