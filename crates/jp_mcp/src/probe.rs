//! Lets a slow server answer `server/discover` late.
//!
//! The first request to a server is `server/discover` (MCP 2026-07-28). Older servers don't know it, and some
//! never answer. So after a while, jp also sends `initialize`. A slow server answers both, in any order.
//! rmcp would take the late answer to one request for the answer to the other, and fail. So the answers pass
//! through [`Probe`]: the first one that settles the revision counts, and the other one is dropped.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, DiscoverResult, ErrorData,
        Implementation, InitializeResult, ProtocolVersion, RequestId, ServerJsonRpcMessage,
        ServerResult,
    },
    transport::Transport,
};
use tokio::time::Instant;

use crate::request::until;

/// The longest wait for an answer to `server/discover` before `initialize` is sent. rmcp would wait 10 s.
const LONGEST: Duration = Duration::from_secs(9);

/// A transport whose server may answer `server/discover` late.
pub(crate) struct Probing<T> {
    transport: T,
    probe: Probe,
    /// The longest wait for one answer.
    limit: Duration,
    /// The end of the current wait.
    deadline: Option<Instant>,
}

impl<T> Probing<T> {
    /// Makes the transport. It waits for a third of the startup timeout, so that there is time left for
    /// `initialize`.
    pub(crate) fn new(transport: T, startup_timeout: Duration) -> Self {
        let limit = (startup_timeout / 3).min(LONGEST);
        Self {
            transport,
            probe: Probe::default(),
            limit,
            deadline: None,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probing<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_sent = self.probe.note_sent(&message);
        if matches!(self.probe, Probe::Asked(_)) {
            self.deadline = Some(Instant::now() + self.limit);
        }
        let sent = is_sent.then(|| self.transport.send(message));
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Ok(()),
            }
        }
    }

    /// Can be cancelled and called again if the inner transport can.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let seen = tokio::select! {
                biased;
                message = self.transport.receive() => match message {
                    Some(message) => self.probe.take_received(message),
                    // The error is more useful than the end of the connection.
                    None => return self.probe.take_refusal(),
                },
                () = until(self.deadline) => {
                    self.deadline = None;
                    self.probe.expire()
                }
            };
            if self.deadline.is_none()
                && matches!(
                    self.probe,
                    Probe::Both {
                        refusal: Some(_),
                        ..
                    }
                )
            {
                self.deadline = Some(Instant::now() + self.limit);
            }
            if seen.is_some() {
                return seen;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// State of the negotiation of a server's revision.
#[derive(Debug, Default)]
enum Probe {
    /// No request is open.
    #[default]
    Idle,
    /// `server/discover` was sent.
    Asked(RequestId),
    /// `server/discover` was not answered in time, and rmcp received an error.
    Overdue(RequestId),
    /// `initialize` was sent as well.
    Both {
        discover: RequestId,
        initialize: RequestId,
        /// The error that answers `initialize`. It counts only if `server/discover` doesn't succeed.
        refusal: Option<Box<ServerJsonRpcMessage>>,
    },
    /// The revision is known. The answer to the other request may still arrive.
    Settled {
        late: RequestId,
        /// True if the revision has no `initialize`.
        is_stateless: bool,
    },
}

impl Probe {
    /// Records a message to the server. Returns true if it must be sent.
    fn note_sent(&mut self, message: &ClientJsonRpcMessage) -> bool {
        match message {
            ClientJsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::DiscoverRequest(_) => *self = Self::Asked(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.note_initialize(&request.id),
                _ => {}
            },
            ClientJsonRpcMessage::Notification(notification) => {
                let is_initialized = matches!(
                    notification.notification,
                    ClientNotification::InitializedNotification(_)
                );
                return !(is_initialized
                    && matches!(
                        self,
                        Self::Settled {
                            is_stateless: true,
                            ..
                        }
                    ));
            }
            _ => {}
        }
        true
    }

    fn note_initialize(&mut self, id: &RequestId) {
        if let Self::Asked(discover) | Self::Overdue(discover) = self {
            *self = Self::Both {
                discover: discover.clone(),
                initialize: id.clone(),
                refusal: None,
            };
        }
    }

    /// Handles a message from the server. Returns the message for rmcp.
    fn take_received(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let Some(id) = request_of_answer(&message) else {
            return Some(message);
        };
        let id = id.cloned();
        let id = id.as_ref();
        match self {
            Self::Asked(discover) => {
                // An error without an id belongs to the only request.
                if id.is_none_or(|id| *id == *discover) {
                    *self = Self::Idle;
                }
                Some(message)
            }
            Self::Both {
                discover,
                initialize,
                refusal,
            } => {
                let (discover, initialize) = (discover.clone(), initialize.clone());
                if id == Some(&initialize) {
                    if is_error(&message) {
                        *refusal = Some(Box::new(message));
                        return None;
                    }
                    *self = Self::Settled {
                        late: discover,
                        is_stateless: false,
                    };
                    return Some(message);
                }
                if id.is_some_and(|id| *id != discover) {
                    return Some(message);
                }
                let refusal = refusal.take();
                match convert_discovered(message) {
                    Some(about) => {
                        *self = match refusal {
                            Some(_) => Self::Idle,
                            None => Self::Settled {
                                late: initialize.clone(),
                                is_stateless: true,
                            },
                        };
                        Some(ServerJsonRpcMessage::response(
                            ServerResult::InitializeResult(about),
                            initialize,
                        ))
                    }
                    None => {
                        *self = Self::Idle;
                        refusal.map(|refusal| *refusal)
                    }
                }
            }
            Self::Settled { late, .. } if id == Some(late) => {
                *self = Self::Idle;
                None
            }
            Self::Idle | Self::Overdue(_) | Self::Settled { .. } => Some(message),
        }
    }

    /// Returns the message for rmcp at the end of a wait.
    fn expire(&mut self) -> Option<ServerJsonRpcMessage> {
        match self {
            Self::Asked(discover) => {
                let discover = discover.clone();
                *self = Self::Overdue(discover.clone());
                let error =
                    ErrorData::internal_error("`server/discover` is not answered yet", None);
                Some(ServerJsonRpcMessage::error(error, Some(discover)))
            }
            _ => self.take_refusal(),
        }
    }

    /// Takes the error that answers `initialize`, if it was held back.
    fn take_refusal(&mut self) -> Option<ServerJsonRpcMessage> {
        let Self::Both { refusal, .. } = self else {
            return None;
        };
        let refusal = refusal.take()?;
        *self = Self::Idle;
        Some(*refusal)
    }
}

/// Returns the id of the request that a message answers. Errors can lack the id. `None` if the message isn't
/// an answer.
fn request_of_answer(message: &ServerJsonRpcMessage) -> Option<Option<&RequestId>> {
    match message {
        ServerJsonRpcMessage::Response(response) => Some(Some(&response.id)),
        ServerJsonRpcMessage::Error(error) => Some(error.id.as_ref()),
        _ => None,
    }
}

fn is_error(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, ServerJsonRpcMessage::Error(_))
}

/// Converts the answer to `server/discover` of a server that supports 2026-07-28.
///
/// The result has the form of an answer to `initialize`, because rmcp waits for that. Because of its version,
/// rmcp makes all later requests stateless.
fn convert_discovered(message: ServerJsonRpcMessage) -> Option<InitializeResult> {
    let ServerJsonRpcMessage::Response(response) = message else {
        return None;
    };
    let ServerResult::DiscoverResult(discovered) = response.result else {
        return None;
    };
    if !discovered
        .supported_versions
        .contains(&ProtocolVersion::V_2026_07_28)
    {
        return None;
    }
    let server_info = discovered
        .server_info()
        .unwrap_or_else(|| Implementation::new("", ""));
    let DiscoverResult {
        capabilities,
        instructions,
        meta,
        ..
    } = discovered;
    let mut about = InitializeResult::default();
    about.protocol_version = ProtocolVersion::V_2026_07_28;
    about.capabilities = capabilities;
    about.server_info = server_info;
    about.instructions = instructions;
    about.meta = meta;
    Some(about)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{
        ClientNotification, DiscoverRequest, InitializeRequest, InitializedNotification,
    };
    use serde_json::{Value, json};

    use super::*;

    const DISCOVER: i64 = 0;
    const INITIALIZE: i64 = 1;

    fn request(request: ClientRequest, id: i64) -> ClientJsonRpcMessage {
        ClientJsonRpcMessage::request(request, RequestId::Number(id))
    }

    /// A server that has been asked both.
    fn asked_both() -> Probe {
        let mut probe = Probe::default();
        assert!(probe.note_sent(&request(
            ClientRequest::DiscoverRequest(DiscoverRequest::default()),
            DISCOVER
        )));
        let told = json!(probe.expire().unwrap());
        assert_eq!(
            (&told["id"], told["error"].is_object()),
            (&json!(DISCOVER), true)
        );
        let initialize = ClientRequest::InitializeRequest(InitializeRequest::default());
        assert!(probe.note_sent(&request(initialize, INITIALIZE)));
        probe
    }

    fn message(id: i64, key: &str, value: Value) -> ServerJsonRpcMessage {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, key: value})).unwrap()
    }

    fn discovered(versions: Value) -> ServerJsonRpcMessage {
        let about = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "supportedVersions": versions, "capabilities": {"tools": {}}});
        message(DISCOVER, "result", about)
    }

    fn initialized() -> ServerJsonRpcMessage {
        let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
        message(INITIALIZE, "result", about)
    }

    fn refused(id: i64) -> ServerJsonRpcMessage {
        message(id, "error", json!({"code": -32601, "message": "unknown"}))
    }

    /// Returns what rmcp sees of messages: ids, with versions or codes.
    fn seen(
        probe: &mut Probe,
        messages: impl IntoIterator<Item = ServerJsonRpcMessage>,
    ) -> Vec<String> {
        let seen = messages
            .into_iter()
            .filter_map(|message| probe.take_received(message));
        let line = |message| {
            let message = json!(message);
            let said = message
                .pointer("/result/protocolVersion")
                .or(message.pointer("/error/code"));
            format!("{} {}", message["id"], said.cloned().unwrap_or_default())
        };
        seen.map(line).collect()
    }

    fn sends_initialized(probe: &mut Probe) -> bool {
        let notification =
            ClientNotification::InitializedNotification(InitializedNotification::default());
        probe.note_sent(&ClientJsonRpcMessage::notification(notification))
    }

    #[test]
    fn answer_in_time_is_passed_on() {
        for answer in [discovered(json!(["2026-07-28"])), refused(DISCOVER)] {
            let mut probe = Probe::default();
            probe.note_sent(&request(
                ClientRequest::DiscoverRequest(DiscoverRequest::default()),
                DISCOVER,
            ));
            assert_eq!(json!(probe.take_received(answer.clone())), json!(answer));
            assert!(probe.expire().is_none());
            let initialize = ClientRequest::InitializeRequest(InitializeRequest::default());
            probe.note_sent(&request(initialize, INITIALIZE));
            assert_eq!(seen(&mut probe, [refused(INITIALIZE)]), ["1 -32601"]);
        }
    }

    #[test]
    fn late_answer_of_a_newer_server_settles_the_revision() {
        let mut probe = asked_both();
        assert_eq!(
            seen(&mut probe, [discovered(json!(["2026-07-28"]))]),
            [r#"1 "2026-07-28""#]
        );
        assert!(!sends_initialized(&mut probe));
        assert_eq!(seen(&mut probe, [refused(INITIALIZE)]), [""; 0]);
        let mut probe = asked_both();
        let both = [discovered(json!(["2026-07-28"])), initialized()];
        assert_eq!(seen(&mut probe, both), [r#"1 "2026-07-28""#]);
    }

    #[test]
    fn late_refusal_of_an_older_server_is_dropped() {
        for first in [refused(DISCOVER), discovered(json!(["2099-01-01"]))] {
            let mut probe = asked_both();
            assert_eq!(
                seen(&mut probe, [first, initialized()]),
                [r#"1 "2025-11-25""#]
            );
            assert!(sends_initialized(&mut probe));
        }
    }

    #[test]
    fn answer_to_initialize_alone_settles_the_revision() {
        for late in [refused(DISCOVER), discovered(json!(["2026-07-28"]))] {
            let mut probe = asked_both();
            assert_eq!(seen(&mut probe, [initialized()]), [r#"1 "2025-11-25""#]);
            assert!(sends_initialized(&mut probe));
            assert_eq!(seen(&mut probe, [late]), [""; 0]);
        }
    }

    #[test]
    fn refused_initialize_waits_for_the_other_answer() {
        let mut probe = asked_both();
        let both = [refused(INITIALIZE), discovered(json!(["2026-07-28"]))];
        assert_eq!(seen(&mut probe, both), [r#"1 "2026-07-28""#]);
        let mut probe = asked_both();
        assert_eq!(
            seen(&mut probe, [refused(INITIALIZE), refused(DISCOVER)]),
            ["1 -32601"]
        );
        let mut probe = asked_both();
        assert_eq!(seen(&mut probe, [refused(INITIALIZE)]), [""; 0]);
        assert_eq!(json!(probe.expire())["id"], INITIALIZE);
    }

    #[test]
    fn error_without_an_id_is_about_the_probe() {
        let error = || -> ServerJsonRpcMessage {
            let error =
                json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "not initialized"}});
            serde_json::from_value(error).unwrap()
        };
        let mut probe = asked_both();
        assert_eq!(
            seen(&mut probe, [error(), initialized()]),
            [r#"1 "2025-11-25""#]
        );
    }
}
