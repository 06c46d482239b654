//! Reads resources of MCP servers as attachments, and starts the servers that this needs.

use crate::person::Person;
use std::{
    cell::RefCell,
    collections::BTreeSet,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    error::{SessionError, chain},
    servers::{Refusal, Servers, advice, progress::tell_log},
    session::{Session, Setup},
    text::one_line,
};
use jp_attachment::{AttachError, Declared, McpContents, McpError, ReadMcp, Source};
use jp_mcp::{Caller, Elicitation, Elicited, Fault, LogMessage, ServerError};

/// The errors of servers for a missing resource, in revisions until 2025-11-25 and since (MCP, "Resources").
const NOT_FOUND: [i32; 2] = [-32002, -32602];

/// Limit for a server's own words in an error, in characters.
const SHOWN: usize = 600;

/// Returns the configured servers, if there are any.
pub fn find_servers<'a>(setup: Setup<'a>) -> Result<Option<&'a Arc<Servers>>, SessionError> {
    let Setup { session, config } = setup;
    if config.config.providers.mcp.is_empty() {
        return Ok(None);
    }
    Ok(Some(session.servers(config)?))
}

/// Returns the error for the first declaration of a server that is not configured.
pub fn find_unknown_server(
    servers: Option<&Arc<Servers>>,
    declared: &[Declared],
) -> Option<AttachError> {
    declared.iter().find_map(|declared| {
        let Source::Mcp(uri) = &declared.source else {
            return None;
        };
        let source = match servers {
            None => McpError::NoClient,
            Some(servers) => servers.check_known(&uri.server).err()?,
        };
        Some(read_error(&declared.input, &uri.server, source))
    })
}

impl Servers {
    /// Fails if a server is not configured.
    fn check_known(&self, server: &str) -> Result<(), McpError> {
        if self.known.contains_key(server) {
            return Ok(());
        }
        Err(McpError::Unknown {
            known: self.names().map(str::to_owned).collect(),
        })
    }
}

/// Starts the servers that declarations name, all at once.
///
/// It asks the user to approve servers of the workspace, so the caller must have the terminal.
pub(crate) fn start(
    session: &Session,
    servers: &Servers,
    declared: &[Declared],
) -> Result<(), SessionError> {
    for name in server_names(declared) {
        if servers.known.contains_key(name) && servers.approve_or_ask(session, name)? {
            servers.start(name);
        }
    }
    Ok(())
}

/// Starts the servers that declarations name and that need no prompt now.
pub(crate) fn start_unasked<'d>(
    session: &Session,
    servers: &Servers,
    declared: impl IntoIterator<Item = &'d Declared>,
) {
    for name in server_names(declared) {
        if servers.may_start_unasked(session, name) {
            servers.start(name);
        }
    }
}

fn server_names<'d>(declared: impl IntoIterator<Item = &'d Declared>) -> BTreeSet<&'d str> {
    declared
        .into_iter()
        .filter_map(|declared| match &declared.source {
            Source::Mcp(uri) => Some(uri.server.as_str()),
            _ => None,
        })
        .collect()
}

/// Makes the error for an input that can't be read from a server.
pub(crate) fn read_error(input: &str, server: &str, source: McpError) -> AttachError {
    AttachError::Mcp {
        input: input.to_owned(),
        server: server.to_owned(),
        source,
    }
}

/// Returns the last lines on a failed server's stderr, to follow the message of the error. A margin marks them as the
/// server's.
pub(crate) fn last_words(error: &AttachError) -> Option<String> {
    let AttachError::Mcp { source, .. } = error else {
        return None;
    };
    Some(advice::quote_stderr(refusal(source)?))
}

/// Words the reason why a read failed for a conversation, which must not contain the path of the server's program.
pub(crate) fn cause(error: &McpError) -> String {
    match refusal(error) {
        Some(Refusal::Server(ServerError {
            fault: Fault::Start { .. },
            ..
        // The error names the program with its path.
        })) => "the program of its MCP server can't be started".to_owned(),
        _ => chain(error),
    }
}

fn refusal(error: &McpError) -> Option<&Refusal> {
    let McpError::Read(error) = error else {
        return None;
    };
    error.downcast_ref().map(|ReadRefusal(refusal)| refusal)
}

/// The reason why a read failed, in words that follow the name of the server.
#[derive(Debug)]
pub(crate) struct ReadRefusal(pub(crate) Refusal);

impl fmt::Display for ReadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Refusal::NotApproved { why, .. } => {
                write!(f, "it needs approval before it starts: {why}")
            }
            Refusal::NoToken { variable, .. } => {
                write!(
                    f,
                    "it has no token: the environment variable `{variable}` is not set"
                )
            }
            // The text may come from the server.
            Refusal::Server(error) => f.write_str(&one_line(&error.fault.to_string(), SHOWN)),
        }
    }
}

impl std::error::Error for ReadRefusal {}

impl From<Refusal> for McpError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Server(ServerError {
                fault:
                    Fault::Refused {
                        method,
                        code,
                        message,
                    },
                ..
            // In answers to other requests, -32602 means invalid parameters.
            }) if method == "resources/read" && NOT_FOUND.contains(&code) => {
                Self::NotFound(one_line(&message, SHOWN))
            }
            refusal => Self::Read(Box::new(ReadRefusal(refusal))),
        }
    }
}

impl ReadMcp for Servers {
    fn read(
        &self,
        server: &str,
        uri: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<McpContents, McpError> {
        self.check_known(server)?;
        let caller = AttachmentCaller {
            server,
            person: &*self.person,
            is_cancelled,
            declined: RefCell::default(),
        };
        let connection = self.connect_for(server, &caller)?;
        let read = connection.resource(uri, &caller).map_err(Refusal::from)?;
        let mut warnings = read.warnings;
        warnings.extend(caller.declined.into_inner());
        Ok(McpContents {
            contents: read.contents,
            ttl: read.ttl,
            warnings,
        })
    }
}

/// Reads from servers with a shorter timeout than the configured one.
pub(crate) struct HurriedReader<'a> {
    pub(crate) servers: &'a dyn ReadMcp,
    pub(crate) limit: Duration,
}

impl ReadMcp for HurriedReader<'_> {
    fn read(
        &self,
        server: &str,
        uri: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<McpContents, McpError> {
        let started = Instant::now();
        match self.servers.read(server, uri, &|| {
            is_cancelled() || started.elapsed() >= self.limit
        }) {
            // Giving up looks like an interrupt to the server's reader, but the user did not interrupt.
            Err(_) if started.elapsed() >= self.limit && !is_cancelled() => {
                let seconds = self.limit.as_secs_f64();
                Err(McpError::Read(
                    format!("it did not answer within {seconds} s").into(),
                ))
            }
            read => read,
        }
    }
}

/// The caller of a server while jp resolves attachments.
struct AttachmentCaller<'a> {
    server: &'a str,
    person: &'a dyn Person,
    is_cancelled: &'a dyn Fn() -> bool,
    /// Warnings about the server's questions. jp declines them all, because several attachments resolve at once.
    declined: RefCell<Vec<String>>,
}

impl Caller for AttachmentCaller<'_> {
    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }

    fn answer(&self, elicitation: &Elicitation) -> Elicited {
        let (Elicitation::Form { message, .. } | Elicitation::Url { message, .. }) = elicitation;
        let warning = format!(
            "the server asked a question, which jp declined: {}",
            one_line(message, 200)
        );
        self.declined.borrow_mut().push(warning);
        Elicited::Decline
    }

    fn report_log(&self, message: &LogMessage) {
        tell_log(self.person, self.server, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives no answer until the caller gives up.
    struct Silent;

    impl ReadMcp for Silent {
        fn read(
            &self,
            _: &str,
            _: &str,
            is_cancelled: &dyn Fn() -> bool,
        ) -> Result<McpContents, McpError> {
            while !is_cancelled() {
                std::thread::yield_now();
            }
            Err(McpError::Empty)
        }
    }

    #[test]
    fn text_of_a_server_cannot_steer_the_terminal() {
        for (code, method) in [
            (-32002, "resources/read"),
            (-32603, "resources/read"),
            (-1, "tools/list"),
        ] {
            let message = "no\nerror: all is lost \u{1b}[2J\u{202e}".to_owned();
            let fault = Fault::Refused {
                method: method.to_owned(),
                code,
                message,
            };
            let error = ServerError {
                server: "docs".to_owned(),
                fault,
                stderr: Vec::new(),
            };
            let told = chain(&McpError::from(Refusal::Server(error)));
            assert!(!told.contains(['\n', '\u{1b}', '\u{202e}']), "{told}");
        }
    }

    #[test]
    fn wait_ends_at_the_limit() {
        let hurried = HurriedReader {
            servers: &Silent,
            limit: Duration::from_millis(20),
        };
        let error = hurried.read("docs", "note:one", &|| false).unwrap_err();
        assert_eq!(error.to_string(), "it did not answer within 0.02 s");
        let error = hurried.read("docs", "note:one", &|| true).unwrap_err();
        assert!(matches!(error, McpError::Empty));
    }
}
