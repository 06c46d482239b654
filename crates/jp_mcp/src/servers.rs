//! The servers of a configuration. Each is started at its first use.

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
    auth, connect,
};

/// The interval at which a wait checks if the caller cancelled. A person doesn't notice it.
const TICK: Duration = Duration::from_millis(50);

/// The servers of a configuration.
///
/// A server is started once, at its first use. Drop ends all that run.
#[derive(Debug)]
pub struct Servers {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    client: Arc<Client>,
    tokens: Option<Arc<Tokens>>,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    config: Arc<ServerConfig>,
    connection: Arc<OnceCell<Result<Arc<Connection>, ServerError>>>,
    /// True if the stderr of a failed start was already reported.
    is_stderr_reported: AtomicBool,
}

impl Servers {
    /// Makes the set of servers and starts none. Fails if the system can't create threads.
    pub fn new(configs: Vec<ServerConfig>, client: Client) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("mcp")
            .enable_all()
            .build()?;
        let entries = configs
            .into_iter()
            .map(|config| {
                let entry = Entry {
                    config: Arc::new(config),
                    connection: Arc::default(),
                    is_stderr_reported: AtomicBool::new(false),
                };
                (entry.config.name.clone(), entry)
            })
            .collect();
        Ok(Self {
            runtime: Some(runtime),
            client: Arc::new(client),
            tokens: None,
            entries,
        })
    }

    /// Sends the tokens of logins with requests, and stores new ones there.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(Arc::new(tokens));
        self
    }

    /// Logs the user in at an HTTP server without connecting to it.
    ///
    /// It asks the caller to visit a page ([`crate::Elicitation::Url`]). If the caller accepts, it waits until
    /// the page redirects to this machine, and stores the tokens ([`Self::with_tokens`]). Later connections
    /// use them.
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
            (Transport::Http(_), None) => {
                Err(Fault::Login("there is no store for its tokens".to_owned()))
            }
            (Transport::Stdio(_), _) => {
                Err(Fault::Login("only HTTP servers support a login".to_owned()))
            }
        };
        result.map_err(|fault| ServerError::new(name, fault))
    }

    /// Returns the names of the servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns the configuration of a server.
    #[must_use]
    pub fn config(&self, name: &str) -> Option<&ServerConfig> {
        self.entries.get(name).map(|entry| &*entry.config)
    }

    /// Starts a server without waiting for it.
    pub fn start(&self, name: &str) {
        if let Some(entry) = self.entries.get(name) {
            drop(self.start_connecting(entry));
        }
    }

    /// Returns the connection to a server. Starts the server if necessary, and waits until it is ready.
    pub fn connect(&self, name: &str, caller: &dyn Caller) -> Result<Arc<Connection>, ServerError> {
        let failure = |fault| ServerError::new(name, fault);
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| failure(Fault::Unknown))?;
        let ready = self.start_connecting(entry);
        loop {
            match ready.recv_timeout(TICK) {
                Ok(Err(error)) if entry.is_stderr_reported.swap(true, Relaxed) => {
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
            .unwrap_or_else(|| unreachable!("only drop takes it"))
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
            let connection = cell
                .get_or_init(|| async {
                    connect::connect(&config, &client, tokens.as_deref(), Limits::USUAL)
                        .await
                        .map(Arc::new)
                })
                .await
                .clone();
            // Fails after `start`, which doesn't wait.
            _ = sender.send(connection);
        });
        ready
    }
}

/// Ends all running servers at once: first closes their connections, then kills their programs.
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
        // Each connection has its own time limits. This one only matters if they fail.
        _ = ended.recv_timeout(Duration::from_secs(10));
        // Don't wait for a thread that waits for another process.
        self.runtime
            .take()
            .into_iter()
            .for_each(|runtime| runtime.shutdown_timeout(TICK));
    }
}
