//! Starts a server or connects to it, and negotiates the revision of MCP.

use std::sync::{Arc, Mutex, OnceLock};

use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, CustomRequest, ErrorCode, ProtocolVersion},
    service::{
        ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
    },
};
use serde_json::json;
use tokio::runtime::Handle;

use crate::{
    About, Client, Connection, Endpoint, Fault, Limits, Revision, ServerConfig, ServerError,
    Tokens, Transport,
    attendant::{Attendant, Shared},
    http::{self, Http},
    probe::Probing,
    raw::Raw,
    request::{CLOSE_TIMEOUT, refusal},
    stdio::{self, Process},
};

/// Starts a server and negotiates the revision.
pub(crate) async fn connect(
    config: &ServerConfig,
    client: &Client,
    tokens: Option<&Tokens>,
    limits: Limits,
) -> Result<Connection, ServerError> {
    let raw = Arc::new(Raw::default());
    let shared = Arc::new(Shared::new(Arc::clone(&raw), client.clone(), limits.rounds));
    let failure = |fault| ServerError::new(&config.name, fault);
    let attendant = Attendant::new(Arc::clone(&shared), config.revision);
    let (process, served) = match &config.transport {
        Transport::Stdio(program) => {
            let (process, messages) =
                stdio::start(program, Arc::clone(&raw), limits).map_err(failure)?;
            let messages = Probing::new(messages, config.startup_timeout);
            let served =
                serve_client_with_lifecycle(attendant, messages, lifecycle(config.revision));
            let served = async { Ok(served.await?) };
            (Some(process), wait_until_ready(config, served).await)
        }
        Transport::Http(endpoint) => {
            let http = Http::new(endpoint, tokens, Arc::clone(&raw), limits).map_err(failure)?;
            let served = serve_http(config.revision, endpoint, &http, limits, attendant);
            (None, wait_until_ready(config, served).await)
        }
    };
    let service = match served {
        Ok(service) => service,
        Err(failure) => return Err(end_failed_start(config, failure, process, &raw).await),
    };
    let peer = service.peer().clone();
    let info = peer.peer_info();
    let about = info.as_deref().map(About::read).unwrap_or_default();
    let has_logs = info
        .as_deref()
        .is_some_and(|info| info.capabilities.logging.is_some());
    if client.wants_logs && has_logs && !about.is_stateless() {
        tokio::spawn(ask_for_logs(peer.clone()));
    }
    Ok(Connection {
        name: config.name.clone(),
        runtime: Handle::current(),
        peer,
        service: Mutex::new(Some(service)),
        process: process.map(Arc::new),
        shared,
        about,
        timeout: config.timeout,
        limits,
        calling: Mutex::default(),
        followed: Mutex::default(),
        listed: OnceLock::new(),
    })
}

/// Asks a server to log. A refusal doesn't matter.
async fn ask_for_logs(peer: Peer<RoleClient>) {
    let request = CustomRequest::new("logging/setLevel", Some(json!({"level": "info"})));
    _ = peer
        .send_request(ClientRequest::CustomRequest(request))
        .await;
}

/// Returns the handshake for a configured revision. Without one, it probes for the newest revision and
/// falls back to `initialize`.
fn lifecycle(revision: Option<Revision>) -> ClientLifecycleMode {
    let newest = vec![ProtocolVersion::V_2026_07_28];
    match revision {
        None => ClientLifecycleMode::Auto {
            preferred_versions: newest,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        Some(Revision::V2026_07_28) => ClientLifecycleMode::Discover {
            preferred_versions: newest,
        },
        Some(_) => ClientLifecycleMode::Initialize,
    }
}

type Served = Result<RunningService<RoleClient, Attendant>, NotReady>;

/// The reason why a session did not start.
enum NotReady {
    /// The server took too long.
    Late,
    /// The cause is known.
    Known(Fault),
    /// rmcp could not start the session.
    Failed(Box<ClientInitializeError>),
}

impl From<ClientInitializeError> for NotReady {
    fn from(error: ClientInitializeError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Starts a session over HTTP.
///
/// Unlike on stdio, each request has its own answer, so jp waits for the answer to the probe. rmcp would give
/// up and take it for the answer to the next request. A session of an older revision uses a new transport.
async fn serve_http(
    revision: Option<Revision>,
    endpoint: &Endpoint,
    http: &Http,
    limits: Limits,
    attendant: Attendant,
) -> Served {
    let serve = async |lifecycle| {
        let transport = http::transport(http.clone(), endpoint, limits).map_err(NotReady::Known)?;
        Ok(serve_client_with_lifecycle(attendant.clone(), transport, lifecycle).await?)
    };
    match serve(lifecycle(Some(revision.unwrap_or(Revision::V2026_07_28)))).await {
        Err(NotReady::Failed(error)) if revision.is_none() && is_of_older_server(&error) => {
            serve(ClientLifecycleMode::Initialize).await
        }
        served => served,
    }
}

/// Returns true if a server that doesn't know `server/discover` may have answered it with this error.
fn is_of_older_server(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::JsonRpcError(error) = error else {
        return false;
    };
    !matches!(
        error.code,
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | ErrorCode::HEADER_MISMATCH
    )
}

/// Waits for the end of the handshake and checks the negotiated revision.
async fn wait_until_ready(config: &ServerConfig, served: impl Future<Output = Served>) -> Served {
    let served = tokio::time::timeout(config.startup_timeout, served).await;
    let mut service = served.map_err(|_| NotReady::Late)??;
    let version = service
        .peer()
        .peer_info()
        .map(|info| info.protocol_version.to_string());
    match version.filter(|version| !Revision::SUPPORTED.contains(&&**version)) {
        None => Ok(service),
        Some(version) => {
            _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
            Err(NotReady::Known(Fault::NoCommonRevision(version)))
        }
    }
}

/// Ends a server that failed to start, and returns the error.
async fn end_failed_start(
    config: &ServerConfig,
    failure: NotReady,
    process: Option<Process>,
    raw: &Raw,
) -> ServerError {
    let fault = match (&failure, raw.take_start_fault()) {
        (NotReady::Known(fault), _) => fault.clone(),
        (NotReady::Late, None | Some(Fault::Status(_))) => {
            Fault::StartTimeout(config.startup_timeout)
        }
        (_, Some(fault)) => fault,
        (NotReady::Failed(error), None) => match (handshake_fault(error), &process) {
            (Some(fault), _) => fault,
            (None, Some(process)) => Fault::Ended(process.describe_end().await),
            (None, None) => Fault::Ended(format!("the connection failed: {error}")),
        },
    };
    let mut stderr = Vec::new();
    if let Some(process) = process {
        process.stop().await;
        stderr = process.take_stderr();
    }
    ServerError {
        stderr,
        ..ServerError::new(&config.name, fault)
    }
}

/// Returns the fault of a server that answered the handshake with an error or something unexpected; `None`
/// if it did not answer.
fn handshake_fault(error: &ClientInitializeError) -> Option<Fault> {
    match error {
        ClientInitializeError::JsonRpcError(error) => Some(refusal("initialize", error)),
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let all: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            Some(Fault::NoCommonRevision(all.join(", ")))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_fault(fallback),
        ClientInitializeError::ExpectedInitResponse(Some(_))
        | ClientInitializeError::ExpectedInitResult(Some(_))
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => Some(Fault::Malformed(
            "it answered `initialize` with something else".to_owned(),
        )),
        _ => None,
    }
}
