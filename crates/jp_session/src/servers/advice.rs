//! What to do about an MCP server that fails.
//!
//! Most of what there is to say comes from the server, which nobody vouches for: it is shown on one line, shortened, and with
//! what can't be seen as its escape. What it wrote to stderr follows, each line behind a margin.

use crate::person::Person;
use crate::{
    error::SessionError,
    notice::Notice,
    servers::Refusal,
    text::{one_line, without_credentials},
};
use jp_mcp::{Fault, HttpStatus, ServerError};

/// How much is shown of what is wrong, and of a line that a server wrote.
const SHOWN: usize = 600;
const MARGIN: &str = "  │ ";

/// Turns a refusal into what a person reads.
pub fn failure(refusal: impl Into<Refusal>) -> SessionError {
    let refusal = refusal.into();
    if is_interrupt(&refusal) {
        return SessionError::interrupted();
    }
    let message = with_stderr(shown(&refusal), &refusal);
    SessionError {
        hints: hints(&refusal),
        ..SessionError::new(message)
    }
}

/// Warns of a server that a command goes on without.
pub fn warn(person: &dyn Person, refusal: impl Into<Refusal>) {
    let refusal = refusal.into();
    if is_interrupt(&refusal) {
        return;
    }
    person.tell(Notice::ServerLeftOut {
        reason: shown(&refusal),
        stderr: last_lines(&refusal).collect(),
        hints: hints(&refusal),
    });
}

/// Says what is wrong, without the name of the server.
pub fn state(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotAgreed { why, .. } => format!("not started: {why}"),
        Refusal::NoToken { variable, .. } => format!("no token: `{variable}` is not set"),
        Refusal::Server(error) => format!("failed: {}", shown(&error.fault)),
    }
}

/// Says what a person can do.
pub fn hints(refusal: &Refusal) -> Vec<String> {
    match refusal {
        // Who asked them has said so.
        Refusal::NotAgreed { .. } => Vec::new(),
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
        Refusal::NotAgreed { .. } | Refusal::NoToken { .. } => &[],
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

fn shown(text: &dyn std::fmt::Display) -> String {
    one_line(&without_credentials(&text.to_string()), SHOWN)
}

fn with_stderr(message: String, refusal: &Refusal) -> String {
    match stderr(refusal).as_slice() {
        [] => message,
        lines => format!("{message}; its last lines on stderr:\n{}", lines.join("\n")),
    }
}

fn hint(error: &ServerError) -> Option<String> {
    let key = |field: &str| format!("providers.mcp.{}.{field}", error.server);
    let longer = |field: &str, seconds: u64, what: &str| {
        format!(
            "`-c {}={}` gives it more time{what}.",
            key(field),
            (seconds * 4).max(1)
        )
    };
    let once = "it does not report changes; leave out `--watch` to read it once.".to_owned();
    Some(match &error.fault {
        Fault::Unknown => "`jp mcp ls` lists the configured servers.".to_owned(),
        Fault::Start { .. } => {
            format!("check {}; a program outside PATH needs its full path.", key("command"))
        }
        Fault::StartTimeout(limit) => longer(
            "startup_timeout_secs",
            limit.as_secs(),
            ", for example to install itself at its first start",
        ),
        Fault::Timeout { timeout, .. } => longer("timeout_secs", timeout.as_secs(), ""),
        Fault::Ended(_) | Fault::NotSent(_) if error.stderr.is_empty() => {
            "it wrote nothing to stderr; run its command in a shell to see more.".to_owned()
        }
        Fault::Refused { method, .. } if method == "resources/read" => {
            format!(
                "`jp mcp resources {0}` lists its resources, `jp mcp templates {0}` its templates.",
                error.server
            )
        }
        Fault::Unsupported("subscriptions") => once,
        Fault::Refused { method, .. } if method.contains("subscri") => once,
        Fault::Unsupported(_) => "`jp mcp ls` shows what it supports.".to_owned(),
        Fault::Status(status) => of_status(status, &error.server, &key)?,
        Fault::Unreachable(_) => format!("check {}, and that the server runs.", key("url")),
        Fault::MessageTooLong(_) | Fault::TooLong { .. } | Fault::TooMany { .. } => {
            "jp has this limit for every server; the server must send less at once.".to_owned()
        }
        Fault::Malformed(_) | Fault::CursorLoop { .. } | Fault::TooManyRounds(_) => {
            "this is a bug in the server; report it to its maintainers.".to_owned()
        }
        Fault::NoCommonRevision(_) => "update the server or jp.".to_owned(),
        Fault::Login(reason) if !reason.contains("egistration") => return None,
        Fault::Login(_) => {
            "if its provider doesn't let programs register themselves, pass the id that it gave you with `--client-id`; a server that asks for no login needs none."
                .to_owned()
        }
        Fault::Declined => return None,
        Fault::UrlRequired(_) => "run the command at a terminal to see them.".to_owned(),
        Fault::Ended(_) | Fault::NotSent(_) | Fault::Refused { .. } | Fault::Interrupted => return None,
    })
}

fn of_status(status: &HttpStatus, server: &str, key: &dyn Fn(&str) -> String) -> Option<String> {
    let (url, token) = (key("url"), key("token_env"));
    Some(match status.status {
        401 => format!(
            "`jp mcp login {server}` logs in; if you have a token, set {token} to the name of its variable."
        ),
        403 => format!(
            "your login lacks this right: log in with more rights, `jp mcp login {server}`, or replace the token of {token}."
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
                shown(&location)
            ),
            None => format!("set {url} to the address that it redirects to."),
        },
        429 => "it limits the number of requests; try again later.".to_owned(),
        500.. => "the server has a problem of its own; try again later.".to_owned(),
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

    fn told(fault: Fault) -> String {
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
    fn each_fault_is_told_with_what_to_do() {
        let start = Fault::Start {
            program: "no-such".into(),
            reason: "there is no such program in PATH".into(),
        };
        let refused = Fault::Refused {
            method: "resources/read".into(),
            code: -32002,
            message: "no\nnote".into(),
        };
        let told: Vec<String> = [
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
        .map(told)
        .into();
        insta::assert_snapshot!(told.join("\n"), @r#"
        the MCP server `notes`: "no-such" can't be started: there is no such program in PATH
        hint: check providers.mcp.notes.command; a program outside PATH needs its full path.
        the MCP server `notes`: it did not get ready within 30 s
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
        hint: your login lacks this right: log in with more rights, `jp mcp login notes`, or replace the token of providers.mcp.notes.token_env.
        the MCP server `notes`: it answered with the status 404 Not Found
        hint: check providers.mcp.notes.url: it must be the full endpoint, which often ends in /mcp.
        the MCP server `notes`: it answered with the status 307 Temporary Redirect, a redirect to https://…@other.example/mcp, which is not followed
        hint: if you trust that address, set providers.mcp.notes.url = "https://…@other.example/mcp".
        the MCP server `notes`: it sent more than 1000 tools
        hint: jp has this limit for every server; the server must send less at once.
        the MCP server `notes`: the pages of `tools/list` lead in a circle: the cursor "again" came twice
        hint: this is a bug in the server; report it to its maintainers.
        "#);
    }

    #[test]
    fn last_lines_of_stderr_follow_and_can_not_steer_a_terminal() {
        let stderr = [
            "\u{1b}[1;31mError\u{1b}[0m: no \u{1b}[2Jdatabase",
            "\tat x\rok",
            &"x".repeat(700),
        ];
        let stderr = stderr.map(str::to_owned).to_vec();
        let told = failure(ServerError {
            stderr,
            ..error(Fault::Ended("it ended".into()))
        })
        .to_string();
        let lines: Vec<_> = told.lines().collect();
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
    fn interrupt_is_told_as_one() {
        assert_eq!(told(Fault::Interrupted), "interrupted");
    }
}
