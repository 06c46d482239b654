//! Hints for attachments that failed.

use crate::{
    error::{ErrorKind, SessionError},
    servers::reading::last_words,
    similar::hints_for_unknown,
    text::{quote_word, without_credentials},
};
use jp_attachment::{
    AttachError, BearError, CommandError, HttpError, McpError, Scheme, SpecialFile,
};

/// The hint about a declaration that the command can do without. Callers look for the option in it.
pub(crate) const SKIP_HINT: &str = "`--skip-unavailable` continues without it.";

/// Hint about files that are too many or too large together.
const EXCLUDE_HINT: &str = "exclude files with `--attach '!PATTERN'`.";

/// Turns an error about an attachment into the failure that the user reads, with its hints.
pub fn failure(error: AttachError) -> SessionError {
    let kind = match error {
        AttachError::Interrupted => return SessionError::interrupted(),
        AttachError::Secret { .. } => ErrorKind::Refused,
        _ => ErrorKind::Failed,
    };
    let mut failure = SessionError {
        kind,
        ..SessionError::from_library(&error)
    };
    // The server's own words come last, because they may have several lines.
    failure.message += &last_words(&error).unwrap_or_default();
    // A URL in the message may have a password.
    failure.message = without_credentials(&failure.message);
    failure.hints.extend(hints(&error));
    if error.is_unavailable() {
        failure.hints.push(SKIP_HINT.to_owned());
    }
    failure
}

/// Returns what the user can do about an error, a sentence each.
fn hints(error: &AttachError) -> Vec<String> {
    match error {
        AttachError::TooLarge {
            input, path, size, ..
        } => {
            // A file that was named itself can't be excluded from anything.
            let is_named = path.ends_with(input.trim_start_matches("./"));
            let exclude = (!is_named).then(|| EXCLUDE_HINT.to_owned());
            let raise = raise_limit("max_bytes", &megabytes(*size));
            exclude.into_iter().chain([raise]).collect()
        }
        // The size is unknown, because the source was cut off at the limit: five times that is a guess.
        AttachError::TooLong { limit, .. }
        | AttachError::Command {
            source: CommandError::TooLong { limit },
            ..
        } => vec![raise_limit("max_bytes", &megabytes(limit * 5))],
        AttachError::TooManyFiles { limit, .. } => vec![
            EXCLUDE_HINT.to_owned(),
            raise_limit("max_files", &(limit * 5).max(1000).to_string()),
        ],
        AttachError::TooManyBytes { size, .. } => vec![
            EXCLUDE_HINT.to_owned(),
            raise_limit("max_total_bytes", &megabytes(*size)),
        ],
        AttachError::Http { source, .. } => http_hint(source).into_iter().collect(),
        AttachError::Special {
            kind: SpecialFile::Pipe,
            ..
        } => one("pipe the content in: `COMMAND | jp query -a - …`."),
        AttachError::MadeUp { path, .. } => {
            let command = quote_word(&format!(
                "cmd:cat {}",
                quote_word(&path.display().to_string())
            ));
            vec![format!("`-a {command}` attaches its current content.")]
        }
        AttachError::Secret { .. } => {
            one("`-c conversation.attachment.secrets=warn` attaches it anyway.")
        }
        AttachError::Command {
            source: CommandError::Timeout { .. },
            ..
        } => vec![raise_limit("timeout_secs", "600")],
        AttachError::Mcp { server, source, .. } => mcp_hints(server, source),
        AttachError::Malformed { input, .. } => server_hint(input).into_iter().collect(),
        AttachError::Bear {
            source: BearError::NotSupported | BearError::NoHome | BearError::NoDatabase(_),
            ..
        } => one("attach the text of the note as a file, or pipe it in with `--attach -`."),
        _ => Vec::new(),
    }
}

fn one(hint: &str) -> Vec<String> {
    vec![hint.to_owned()]
}

fn raise_limit(key: &str, value: &str) -> String {
    format!("`-c conversation.attachment.{key}={value}` raises the limit for this command.")
}

/// Writes a size that holds so many bytes as the configuration does.
fn megabytes(bytes: u64) -> String {
    format!("{}MB", bytes / 1_000_000 + 1)
}

fn http_hint(error: &HttpError) -> Option<String> {
    match error {
        HttpError::Timeout { .. } => Some(raise_limit("timeout_secs", "600")),
        HttpError::Status { status, .. } if status.starts_with("401") => Some(
            "put the user and password into the URL; jp uses them for one message and doesn't store them."
                .to_owned(),
        ),
        _ => None,
    }
}

fn mcp_hints(server: &str, error: &McpError) -> Vec<String> {
    match error {
        McpError::NoClient => vec![
            "`jp help mcp-servers` explains how to configure a server.".to_owned(),
            "attach the content as a file, or pipe it in with `--attach -`.".to_owned(),
        ],
        McpError::Unknown { known } => {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            hints_for_unknown(server, &names, "configured servers")
        }
        McpError::NotFound(_) => vec![format!(
            "`jp mcp resources {server}` lists its resources, `jp mcp templates {server}` its templates."
        )],
        McpError::Empty | McpError::Read(_) => Vec::new(),
    }
}

/// Returns the hint for an input that names a server but nothing to read from it.
fn server_hint(input: &str) -> Option<String> {
    let (Scheme::Mcp, rest) = Scheme::split(input)? else {
        return None;
    };
    let server = rest.strip_suffix('+').unwrap_or(rest);
    let is_name = !server.is_empty() && !server.contains('+');
    is_name.then(|| {
        format!(
            "`jp mcp resources {}` lists its resources.",
            quote_word(server)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_quotes_the_path_for_a_shell() {
        let made_up = |path: &str| AttachError::MadeUp {
            input: path.to_owned(),
            path: path.into(),
        };
        assert_eq!(
            failure(made_up("/proc/version")).hints[0],
            "`-a 'cmd:cat /proc/version'` attaches its current content."
        );
        assert_eq!(
            failure(made_up("/proc/a b")).hints[0],
            r"`-a 'cmd:cat '\''/proc/a b'\'''` attaches its current content."
        );
    }
}
