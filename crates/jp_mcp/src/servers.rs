//! The servers of a configuration, each started when something needs it.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::OnceCell,
};

use crate::{Caller, Client, Connection, Fault, Limits, ServerConfig, ServerError, connection};

/// How often whoever waits is asked whether they still want to.
const TICK: Duration = Duration::from_millis(50);

/// The servers of a configuration.
///
/// A server is started once, by whoever needs it first; those that run end with this.
#[derive(Debug)]
pub struct Servers {
    runtime: Runtime,
    client: Arc<Client>,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    config: Arc<ServerConfig>,
    connection: Arc<OnceCell<Result<Arc<Connection>, ServerError>>>,
}

impl Servers {
    /// Puts servers together; none is started. Fails where the system has no thread left.
    pub fn new(configs: Vec<ServerConfig>, client: Client) -> io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("mcp").enable_all().build()?;
        let entry = |config: ServerConfig| {
            let name = config.name.clone();
            (name, Entry { config: Arc::new(config), connection: Arc::default() })
        };
        Ok(Self { runtime, client: Arc::new(client), entries: configs.into_iter().map(entry).collect() })
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
            drop(self.started(entry));
        }
    }

    /// Returns the connection to a server, which is started if nobody has; waits until it is ready.
    pub fn connect(&self, name: &str, caller: &dyn Caller) -> Result<Arc<Connection>, ServerError> {
        let failure = |fault| ServerError::new(name, fault);
        let entry = self.entries.get(name).ok_or_else(|| failure(Fault::Unknown))?;
        let ready = self.started(entry);
        loop {
            match ready.recv_timeout(TICK) {
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

    fn started(&self, entry: &Entry) -> mpsc::Receiver<Result<Arc<Connection>, ServerError>> {
        let (sender, ready) = mpsc::channel();
        let (config, client, cell) =
            (Arc::clone(&entry.config), Arc::clone(&self.client), Arc::clone(&entry.connection));
        self.runtime.spawn(async move {
            let connect =
                || async { connection::connect(&config, &client, Limits::USUAL).await.map(Arc::new) };
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
            .map(|connection| self.runtime.spawn(async move { connection.close().await }))
            .collect();
        if connections.is_empty() {
            return;
        }
        self.runtime.spawn(async {});
        let (sender, ended) = mpsc::channel();
        self.runtime.spawn(async move {
            for connection in connections {
                _ = connection.await;
            }
            _ = sender.send(());
        });
        // Each has its own bounds; this only holds where one of them fails to.
        _ = ended.recv_timeout(Duration::from_secs(10));
    }
}
