//! Errors and hints for MCP servers that fail.
//!
//! Most of the text comes from the server, which may be hostile. It is shown on one line, shortened, and with escapes for
//! invisible characters. The last lines of its stderr follow, each behind a margin.

use crate::person::Person;
use crate::{
    error::SessionError,
    notice::Notice,
    servers::Refusal,
    text::{one_line, without_credentials},
};
use jp_mcp::{Fault, HttpStatus, ServerError};

/// Limit for a server's message and for a line of its stderr, in characters.
const SHOWN: usize = 600;
/// The beginning of each line of stderr, so that it can't pass as jp's own.
const MARGIN: &str = "  │ ";

/// Turns a refusal into the failure that the user reads, with its hints.
pub fn failure(refusal: impl Into<Refusal>) -> SessionError {
    let refusal = refusal.into();
    if is_interrupt(&refusal) {
        return SessionError::interrupted();
    }
    SessionError {
        hints: hints(&refusal),
        ..SessionError::new(to_line(&refusal) + &quote_stderr(&refusal))
    }
}

/// Warns about a server that the command continues without.
pub fn warn(person: &dyn Person, refusal: impl Into<Refusal>) {
    let refusal = refusal.into();
    if is_interrupt(&refusal) {
        return;
    }
    person.tell(Notice::ServerLeftOut {
        reason: to_line(&refusal),
        stderr: last_lines(&refusal).collect(),
        hints: hints(&refusal),
    });
}

/// Words the state of a server that can't be used, without its name.
pub fn state(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotApproved { why, .. } => format!("not started: {why}"),
        Refusal::NoToken { variable, .. } => format!("no token: `{variable}` is not set"),
        Refusal::Server(error) => format!("failed: {}", to_line(&error.fault)),
    }
}

/// Returns what the user can do, a sentence each.
pub fn hints(refusal: &Refusal) -> Vec<String> {
    match refusal {
        // The prompt or its notice has said what to do.
        Refusal::NotApproved { .. } => Vec::new(),
        Refusal::NoToken { server, variable } => {
            vec![format!(
                "set {variable}, or name another variable in providers.mcp.{server}.token_env."
            )]
        }
        Refusal::Server(error) => hint(error).into_iter().collect(),
    }
}

/// Returns the last lines that a server wrote to stderr, each behind a margin.
pub fn stderr(refusal: &Refusal) -> Vec<String> {
    last_lines(refusal)
        .map(|line| format!("{MARGIN}{line}"))
        .collect()
}

/// Returns the last lines that a server wrote to stderr, safe to show.
fn last_lines(refusal: &Refusal) -> impl Iterator<Item = String> {
    let lines = match refusal {
        Refusal::Server(error) => error.stderr.as_slice(),
        Refusal::NotApproved { .. } | Refusal::NoToken { .. } => &[],
    };
    lines
        .iter()
        .map(|line| one_line(&without_colours(line), SHOWN))
}

fn is_interrupt(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Server(ServerError {
            fault: Fault::Interrupted,
            ..
        })
    )
}

fn to_line(text: &dyn std::fmt::Display) -> String {
    one_line(&without_credentials(&text.to_string()), SHOWN)
}

/// Returns the last lines of stderr as the end of an error message; nothing if there are none.
pub(crate) fn quote_stderr(refusal: &Refusal) -> String {
    match stderr(refusal).as_slice() {
        [] => String::new(),
        lines => format!("; its last lines on stderr:\n{}", lines.join("\n")),
    }
}

/// Returns what the user can do about an error, if there is anything.
fn hint(error: &ServerError) -> Option<String> {
    let server = &error.server;
    let key = format!("providers.mcp.{server}");
    Some(match &error.fault {
        Fault::Unknown => "`jp mcp ls` lists the configured servers.".to_owned(),
        Fault::Start { .. } => {
            format!("check {key}.command; a program outside PATH needs its full path.")
        }
        // Four times the limit, so that one further attempt usually suffices.
        Fault::StartTimeout(limit) => format!(
            "`-c {key}.startup_timeout_secs={}` gives it more time, for example to install itself at its first start.",
            (limit.as_secs() * 4).max(1)
        ),
        Fault::Timeout { timeout, .. } => format!(
            "`-c {key}.timeout_secs={}` gives it more time.",
            (timeout.as_secs() * 4).max(1)
        ),
        Fault::Ended(_) | Fault::NotSent(_) if error.stderr.is_empty() => {
            "it wrote nothing to stderr; run its command in a shell to see more.".to_owned()
        }
        Fault::Refused { method, .. } if method == "resources/read" => {
            format!(
                "`jp mcp resources {server}` lists its resources, `jp mcp templates {server}` its templates."
            )
        }
        Fault::Unsupported("subscriptions") => WITHOUT_WATCH.to_owned(),
        Fault::Refused { method, .. } if method.contains("subscri") => WITHOUT_WATCH.to_owned(),
        Fault::Unsupported(_) => "`jp mcp ls` shows what it supports.".to_owned(),
        Fault::Status(status) => status_hint(status, server)?,
        Fault::Unreachable(_) => format!("check {key}.url, and that the server runs."),
        Fault::MessageTooLong(_) | Fault::TooLong { .. } | Fault::TooMany { .. } => {
            "jp has this limit for every server; the server must send less at once.".to_owned()
        }
        Fault::Malformed(_) | Fault::CursorLoop { .. } | Fault::TooManyRounds(_) => {
            "this is a bug in the server; report it to its maintainers.".to_owned()
        }
        Fault::NoCommonRevision(_) => "update the server or jp.".to_owned(),
        // Other failures of a login say themselves what to do.
        Fault::Login(reason) if !reason.contains("egistration") => return None,
        Fault::Login(_) => {
            "if its provider doesn't let programs register themselves, pass the id that it gave you with `--client-id`; a server that asks for no login needs none."
                .to_owned()
        }
        // The user refused to visit the page, and knows it.
        Fault::Declined => return None,
        Fault::UrlRequired(_) => "run the command at a terminal to see them.".to_owned(),
        Fault::Ended(_) | Fault::NotSent(_) | Fault::Refused { .. } | Fault::Interrupted => return None,
    })
}

/// Hint for a server without subscriptions.
const WITHOUT_WATCH: &str = "it does not report changes; leave out `--watch` to read it once.";

/// Returns what the user can do about an HTTP status, if there is anything.
fn status_hint(status: &HttpStatus, server: &str) -> Option<String> {
    let url = format!("providers.mcp.{server}.url");
    let token = format!("providers.mcp.{server}.token_env");
    Some(match status.status {
        401 => format!(
            "`jp mcp login {server}` logs in; if you have a token, set {token} to the name of its variable."
        ),
        403 => format!(
            "your login lacks a permission: log in again with `jp mcp login {server}`, or replace the token that {token} names."
        ),
        404 => format!("check {url}: it must be the full endpoint, which often ends in /mcp."),
        405 => format!("check {url}; jp doesn't support the older transport HTTP+SSE."),
        300..=399 => match status
            .location
            .as_deref()
            .filter(|location| location.starts_with("http"))
        {
            Some(location) => format!(
                "if you trust that address, set {url} = \"{}\".",
                to_line(&location)
            ),
            None => format!("set {url} to the address that it redirects to."),
        },
        429 => "it limits the number of requests; try again later.".to_owned(),
        500.. => "the server reports an internal error; try again later.".to_owned(),
        _ => return None,
    })
}

/// Returns a line without the sequences that colour it on a terminal (ECMA-48, "CSI … m").
fn without_colours(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece
            .find(|character: char| !matches!(character, '0'..='9' | ';' | ':'))
            .unwrap_or(piece.len());
        match piece[end..].strip_prefix('m') {
            Some(rest) => plain += rest,
            None => plain += &format!("\u{1b}[{piece}"),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn error(fault: Fault) -> ServerError {
        ServerError {
            server: "notes".to_owned(),
            fault,
            stderr: Vec::new(),
        }
    }

    fn message(fault: Fault) -> String {
        failure(error(fault)).to_string()
    }

    fn status(status: u16, location: Option<&str>) -> Fault {
        let location = location.map(str::to_owned);
        Fault::Status(Box::new(HttpStatus {
            status,
            location,
            challenge: None,
            body: String::new(),
        }))
    }

    #[test]
    fn each_fault_has_a_hint() {
        let start = Fault::Start {
            program: "no-such".into(),
            reason: "there is no such program in PATH".into(),
        };
        let refused = Fault::Refused {
            method: "resources/read".into(),
            code: -32002,
            message: "no\nnote".into(),
        };
        let messages: Vec<String> = [
            start,
            Fault::StartTimeout(Duration::from_secs(30)),
            Fault::Timeout {
                method: "tools/list".into(),
                timeout: Duration::from_secs(60),
            },
            Fault::Ended("it ended with exit status: 3".into()),
            refused,
            status(401, None),
            status(403, None),
            status(404, None),
            status(307, Some("https://user:word@other.example/mcp")),
            Fault::TooMany {
                what: "tools",
                limit: 1000,
            },
            Fault::CursorLoop {
                method: "tools/list".into(),
                cursor: "again".into(),
            },
        ]
        .map(message)
        .into();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        the MCP server `notes`: "no-such" can't be started: there is no such program in PATH
        hint: check providers.mcp.notes.command; a program outside PATH needs its full path.
        the MCP server `notes`: it was not ready within 30 s
        hint: `-c providers.mcp.notes.startup_timeout_secs=120` gives it more time, for example to install itself at its first start.
        the MCP server `notes`: it did not answer `tools/list` within 60 s
        hint: `-c providers.mcp.notes.timeout_secs=240` gives it more time.
        the MCP server `notes`: it ended with exit status: 3
        hint: it wrote nothing to stderr; run its command in a shell to see more.
        the MCP server `notes`: it answered `resources/read` with the error -32002: no\nnote
        hint: `jp mcp resources notes` lists its resources, `jp mcp templates notes` its templates.
        the MCP server `notes`: it answered with the status 401 Unauthorized
        hint: `jp mcp login notes` logs in; if you have a token, set providers.mcp.notes.token_env to the name of its variable.
        the MCP server `notes`: it answered with the status 403 Forbidden
        hint: your login lacks a permission: log in again with `jp mcp login notes`, or replace the token that providers.mcp.notes.token_env names.
        the MCP server `notes`: it answered with the status 404 Not Found
        hint: check providers.mcp.notes.url: it must be the full endpoint, which often ends in /mcp.
        the MCP server `notes`: it answered with the status 307 Temporary Redirect, a redirect to https://…@other.example/mcp, which is not followed
        hint: if you trust that address, set providers.mcp.notes.url = "https://…@other.example/mcp".
        the MCP server `notes`: it sent more than 1000 tools
        hint: jp has this limit for every server; the server must send less at once.
        the MCP server `notes`: it returned the cursor "again" of `tools/list` twice
        hint: this is a bug in the server; report it to its maintainers.
        "#);
    }

    #[test]
    fn last_lines_of_stderr_cannot_steer_the_terminal() {
        let stderr = [
            "\u{1b}[1;31mError\u{1b}[0m: no \u{1b}[2Jdatabase",
            "\tat x\rok",
            &"x".repeat(700),
        ];
        let stderr = stderr.map(str::to_owned).to_vec();
        let message = failure(ServerError {
            stderr,
            ..error(Fault::Ended("it ended".into()))
        })
        .to_string();
        let lines: Vec<_> = message.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "the MCP server `notes`: it ended; its last lines on stderr:",
                r"  │ Error: no \u{1b}[2Jdatabase",
                r"  │  at x\rok",
            ]
        );
        assert_eq!(lines[3].chars().count(), "  │ ".chars().count() + SHOWN + 1);
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn interrupt_stays_an_interrupt() {
        assert_eq!(message(Fault::Interrupted), "interrupted");
    }
}
