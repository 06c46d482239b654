//! What to do about what can't be attached.

use crate::{
    error::{ErrorKind, SessionError},
    servers::reading::last_words,
    similar::find_similar,
    text::{quoted, without_credentials},
};
use jp_attachment::{
    AttachError, BearError, CommandError, HttpError, McpError, Scheme, SpecialFile,
};

/// Writes a size that holds so many bytes as the configuration does.
fn megabytes(bytes: u64) -> String {
    format!("{}MB", bytes / 1_000_000 + 1)
}

/// Says how to see what a server has that was named without anything to read from it.
fn server_alone(input: &str) -> Option<String> {
    let (Scheme::Mcp, rest) = Scheme::split(input)? else {
        return None;
    };
    let server = rest.strip_suffix('+').unwrap_or(rest);
    let is_name = !server.is_empty() && !server.contains('+');
    is_name.then(|| format!("`jp mcp resources {}` lists what it has.", quoted(server)))
}

/// Turns an error into what a person reads.
pub fn failure(error: AttachError) -> SessionError {
    let raise = |key: &str, value: &str| {
        format!("`-c conversation.attachment.{key}={value}` allows more for this command.")
    };
    let fewer = || "exclude some with `--attach '!PATTERN'`.".to_owned();
    let advice = match &error {
        AttachError::Interrupted => return SessionError::interrupted(),
        AttachError::TooLarge {
            input, path, size, ..
        } => {
            let exclude = (!path.ends_with(input.trim_start_matches("./"))).then(fewer);
            exclude
                .into_iter()
                .chain([raise("max_bytes", &megabytes(*size))])
                .collect()
        }
        AttachError::TooLong { limit, .. }
        | AttachError::Command {
            source: CommandError::TooLong { limit },
            ..
        } => {
            vec![raise("max_bytes", &megabytes(limit * 5))]
        }
        AttachError::TooManyFiles { limit, .. } => {
            vec![
                fewer(),
                raise("max_files", &(limit * 5).max(1000).to_string()),
            ]
        }
        AttachError::TooManyBytes { size, .. } => {
            vec![fewer(), raise("max_total_bytes", &megabytes(*size))]
        }
        AttachError::Http { source, .. } => match &**source {
            HttpError::Timeout { .. } => vec![raise("timeout_secs", "600")],
            HttpError::Status { status, .. } if status.starts_with("401") => {
                let advice =
                    "a user and password in the URL are used for one message and not kept.";
                vec![advice.to_owned()]
            }
            _ => Vec::new(),
        },
        AttachError::Special {
            kind: SpecialFile::Pipe,
            ..
        } => {
            vec!["`-a -` attaches what is piped in: `COMMAND | jp query -a - …`.".to_owned()]
        }
        AttachError::MadeUp { path, .. } => {
            let command = quoted(&format!("cmd:cat {}", quoted(&path.display().to_string())));
            vec![format!("`-a {command}` attaches what that prints.")]
        }
        AttachError::Secret { .. } => {
            vec!["`-c conversation.attachment.secrets=warn` attaches it all the same.".to_owned()]
        }
        AttachError::Command {
            source: CommandError::Timeout { .. },
            ..
        } => {
            vec![raise("timeout_secs", "600")]
        }
        AttachError::Mcp {
            source: McpError::NoClient,
            ..
        } => {
            vec![
                "`jp help mcp-servers` explains how to configure one.".to_owned(),
                "attach what the server has now as a file, or pipe it in with `--attach -`."
                    .to_owned(),
            ]
        }
        AttachError::Mcp {
            server,
            source: McpError::Unknown { known },
            ..
        } => {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let meant =
                find_similar(server, &names).map(|meant| format!("did you mean `{meant}`?"));
            meant
                .into_iter()
                .chain([format!("there are: {}.", known.join(", "))])
                .collect()
        }
        AttachError::Mcp {
            server,
            source: McpError::NotFound(_),
            ..
        } => {
            vec![format!(
                "`jp mcp resources {server}` and `jp mcp templates {server}` list what it has."
            )]
        }
        AttachError::Malformed { input, .. } => server_alone(input).into_iter().collect(),
        AttachError::Bear {
            source: BearError::NotSupported | BearError::NoHome | BearError::NoDatabase(_),
            ..
        } => {
            vec![
                "attach the text of the note as a file, or pipe it in with `--attach -`."
                    .to_owned(),
            ]
        }
        _ => Vec::new(),
    };
    let skip = error
        .is_unavailable()
        .then(|| "--skip-unavailable goes on without it.".to_owned());
    let kind = if matches!(error, AttachError::Secret { .. }) {
        ErrorKind::Refused
    } else {
        ErrorKind::Failed
    };
    let words = last_words(&error).unwrap_or_default();
    let mut failure = SessionError {
        kind,
        ..SessionError::from_library(&error)
    };
    failure.message.push_str(&words);
    failure.message = without_credentials(&failure.message);
    failure.hints.extend(advice.into_iter().chain(skip));
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_can_be_typed_whatever_the_path() {
        let made_up = |path: &str| AttachError::MadeUp {
            input: path.to_owned(),
            path: path.into(),
        };
        assert_eq!(
            failure(made_up("/proc/version")).hints[0],
            "`-a 'cmd:cat /proc/version'` attaches what that prints."
        );
        assert_eq!(
            failure(made_up("/proc/a b")).hints[0],
            r"`-a 'cmd:cat '\''/proc/a b'\'''` attaches what that prints."
        );
    }
}
