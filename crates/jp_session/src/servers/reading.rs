//! Resources of MCP servers as attachments: which servers that takes, and reading from them.

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
    servers::{Refusal, Servers, watched::tell_log},
    session::{Session, Setup},
    text::one_line,
};
use jp_attachment::{AttachError, Declared, McpContents, McpError, ReadMcp, Source};
use jp_mcp::{Caller, Elicitation, Elicited, Fault, LogMessage, ServerError};

/// What servers answer a request for what is not there with, in revisions until 2025-11-25 and since (MCP, "Resources").
const NOT_FOUND: [i32; 2] = [-32002, -32602];

/// How much is shown of what a server says.
const SHOWN: usize = 600;

/// Returns the servers that are configured, if there are any.
pub fn configured<'a>(setup: Setup<'a>) -> Result<Option<&'a Arc<Servers>>, SessionError> {
    let Setup { session, config } = setup;
    if config.config.providers.mcp.is_empty() {
        return Ok(None);
    }
    Ok(Some(session.servers(config)?))
}

/// Returns what is wrong with the first declaration of a server that is not configured.
pub fn unknown(servers: Option<&Arc<Servers>>, declared: &[Declared]) -> Option<AttachError> {
    declared.iter().find_map(|declared| {
        let Source::Mcp(uri) = &declared.source else {
            return None;
        };
        let is_known = servers.is_some_and(|servers| servers.known.contains_key(&uri.server));
        let known = || {
            servers
                .into_iter()
                .flat_map(|servers| servers.names())
                .map(str::to_owned)
                .collect()
        };
        let source = if servers.is_none() {
            McpError::NoClient
        } else {
            McpError::Unknown { known: known() }
        };
        (!is_known).then(|| failed(&declared.input, &uri.server, source))
    })
}

/// Has the servers started that declarations name, all at once. The person is asked about those that the workspace
/// configures, so this is for the thread that has the terminal.
pub(crate) fn start(
    session: &Session,
    servers: &Servers,
    declared: &[Declared],
) -> Result<(), SessionError> {
    for name in names(declared) {
        if servers.known.contains_key(name) && servers.agreed(session, name)? {
            servers.start(name);
        }
    }
    Ok(())
}

/// As [`start`], of servers that need no question now; the others stay as they are.
pub(crate) fn start_unasked<'d>(
    session: &Session,
    servers: &Servers,
    declared: impl IntoIterator<Item = &'d Declared>,
) {
    for name in names(declared) {
        if servers.is_agreed(session, name) {
            servers.start(name);
        }
    }
}

fn names<'d>(declared: impl IntoIterator<Item = &'d Declared>) -> BTreeSet<&'d str> {
    let uris = declared
        .into_iter()
        .filter_map(|declared| match &declared.source {
            Source::Mcp(uri) => Some(uri),
            _ => None,
        });
    uris.map(|uri| uri.server.as_str()).collect()
}

/// Says that something can't be had of a server.
pub(crate) fn failed(input: &str, server: &str, source: McpError) -> AttachError {
    AttachError::Mcp {
        input: input.to_owned(),
        server: server.to_owned(),
        source,
    }
}

/// Returns what a server wrote last before it failed, for people; a margin keeps it apart from jp's own words.
pub(crate) fn last_words(error: &AttachError) -> Option<String> {
    let AttachError::Mcp { source, .. } = error else {
        return None;
    };
    let lines = super::advice::stderr(refusal(source)?);
    (!lines.is_empty()).then(|| format!("; its last lines on stderr:\n{}", lines.join("\n")))
}

/// Says why a server was not read from, in words that a conversation may keep: where its program is stays out of them.
pub(crate) fn cause(error: &McpError) -> String {
    match refusal(error) {
        Some(Refusal::Server(ServerError {
            fault: Fault::Start { .. },
            ..
        })) => "the program of its MCP server can't be started".to_owned(),
        _ => chain(error),
    }
}

fn refusal(error: &McpError) -> Option<&Refusal> {
    let McpError::Read(error) = error else {
        return None;
    };
    error.downcast_ref().map(|Unread(refusal)| refusal)
}

/// Why a server was not read from; which one it is has been said.
#[derive(Debug)]
pub(crate) struct Unread(pub(crate) Refusal);

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Refusal::NotAgreed { why, .. } => {
                write!(f, "it needs approval before it starts: {why}")
            }
            Refusal::NoToken { variable, .. } => {
                write!(
                    f,
                    "it has no token: the environment variable `{variable}` is not set"
                )
            }
            // The words may be the server's.
            Refusal::Server(error) => f.write_str(&one_line(&error.fault.to_string(), SHOWN)),
        }
    }
}

impl std::error::Error for Unread {}

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
            }) if method == "resources/read" && NOT_FOUND.contains(&code) => {
                Self::NotFound(one_line(&message, SHOWN))
            }
            refusal => Self::Read(Box::new(Unread(refusal))),
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
        if !self.known.contains_key(server) {
            return Err(McpError::Unknown {
                known: self.names().map(str::to_owned).collect(),
            });
        }
        let reader = Reader {
            server,
            person: &*self.person,
            is_cancelled,
            declined: RefCell::default(),
        };
        let connection = self.connect_for(server, &reader)?;
        let read = connection.resource(uri, &reader).map_err(Refusal::from)?;
        let mut warnings = read.warnings;
        warnings.extend(reader.declined.into_inner());
        Ok(McpContents {
            contents: read.contents,
            ttl: read.ttl,
            warnings,
        })
    }
}

/// Reads from servers with less patience than the configuration has.
pub(crate) struct Hurried<'a> {
    pub(crate) servers: &'a dyn ReadMcp,
    pub(crate) limit: Duration,
}

impl ReadMcp for Hurried<'_> {
    fn read(
        &self,
        server: &str,
        uri: &str,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<McpContents, McpError> {
        let until = Instant::now() + self.limit;
        let is_late = || Instant::now() >= until;
        match self
            .servers
            .read(server, uri, &|| is_cancelled() || is_late())
        {
            Err(_) if is_late() && !is_cancelled() => {
                let seconds = self.limit.as_secs_f64();
                Err(McpError::Read(
                    format!("it did not answer within {seconds} s").into(),
                ))
            }
            read => read,
        }
    }
}

/// Whoever resolves attachments.
struct Reader<'a> {
    server: &'a str,
    person: &'a dyn Person,
    is_cancelled: &'a dyn Fn() -> bool,
    /// What the server asked, which nobody is asked while attachments are read.
    declined: RefCell<Vec<String>>,
}

impl Caller for Reader<'_> {
    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }

    fn asked(&self, elicitation: &Elicitation) -> Elicited {
        let (Elicitation::Form { message, .. } | Elicitation::Url { message, .. }) = elicitation;
        let told = format!(
            "the server asked a question, which jp declined: {}",
            one_line(message, 200)
        );
        self.declined.borrow_mut().push(told);
        Elicited::Decline
    }

    fn logged(&self, message: &LogMessage) {
        tell_log(self.person, self.server, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers nothing until it is given up.
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
    fn words_of_a_server_are_on_one_line_and_steer_nothing() {
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
    fn nobody_waits_for_longer_than_the_limit() {
        let hurried = Hurried {
            servers: &Silent,
            limit: Duration::from_millis(20),
        };
        let error = hurried.read("docs", "note:one", &|| false).unwrap_err();
        assert_eq!(error.to_string(), "it did not answer within 0.02 s");
        let error = hurried.read("docs", "note:one", &|| true).unwrap_err();
        assert!(matches!(error, McpError::Empty));
    }
}
