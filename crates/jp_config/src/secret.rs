//! Detects and hides configuration values that may be secrets.

use serde_json::Value;

use crate::{Key, key::find_equals};

/// Placeholder for a hidden value.
const HIDDEN: &str = "…";

/// Returns a value for display, with possible secrets hidden.
///
/// It hides the headers and variables of MCP servers, the secrets in their arguments and URLs, and
/// commands that print an API key.
#[must_use]
pub fn without_secrets(key: &Key, value: &Value) -> Value {
    match (server_field(key), value) {
        (Some("arguments" | "command"), Value::Array(words)) => {
            let shown =
                words_without_secrets(words.iter().map(|word| word.as_str().unwrap_or_default()));
            return shown.into();
        }
        (Some("command"), Value::String(line)) => return line_without_secrets(line).into(),
        (Some("url"), Value::String(url)) => return url_without_query(url).into(),
        _ => {}
    }
    match value {
        Value::Array(list) => list
            .iter()
            .map(|value| without_secrets(key, value))
            .collect(),
        Value::Object(table) => table
            .iter()
            .map(|(name, value)| (name.clone(), without_secrets(&key.child(name), value)))
            .collect(),
        _ if is_secret(key) => HIDDEN.into(),
        value => value.clone(),
    }
}

/// Returns a `KEY=VALUE` argument for display, with a value that may hold a secret hidden.
pub(crate) fn argument_without_secrets(text: &str) -> String {
    let Some(equals) = find_equals(text) else {
        return text.to_owned();
    };
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let key = name.strip_suffix([':', '+']).unwrap_or(name).parse::<Key>();
    match key {
        Ok(key)
            if is_secret(&key)
                || is_in_server_table(&key)
                || may_hold_secrets(&key, value)
                || is_part_of_server_with_secrets(&key, value) =>
        {
            format!("{name}={HIDDEN}")
        }
        _ => text.to_owned(),
    }
}

/// Returns a `KEY=VALUE` argument for display with the value hidden: if the key is unknown, the
/// value may be a secret.
pub(crate) fn argument_without_value(text: &str) -> String {
    find_equals(text).map_or_else(
        || text.to_owned(),
        |equals| format!("{}={HIDDEN}", &text[..equals]),
    )
}

/// Returns true if the value at a key, or a part of it, may be a secret.
fn is_secret(key: &Key) -> bool {
    match &key.parts().collect::<Vec<_>>()[..] {
        ["providers", "mcp", _, field, ..] => matches!(*field, "headers" | "environment"),
        ["providers", "llm", _, field, ..] => *field == "api_key_command",
        _ => false,
    }
}

/// Returns true if a key is in a table of an MCP server: headers or variables, even if that name is
/// mistyped.
fn is_in_server_table(key: &Key) -> bool {
    matches!(
        key.parts().collect::<Vec<_>>()[..],
        ["providers", "mcp", _, _, _, ..]
    )
}

/// Returns true if the text of a table seems to name a field that may be a secret.
fn may_hold_secrets(table: &Key, text: &str) -> bool {
    let is_above = matches!(
        table.parts().collect::<Vec<_>>()[..],
        ["providers"] | ["providers", "mcp" | "llm"] | ["providers", "mcp" | "llm", _]
    );
    is_above
        && ["headers", "environment", "api_key_command", "arguments"]
            .iter()
            .any(|field| text.contains(field))
}

/// Returns true if the text of an MCP server, or of a field of one, may hold a secret in a command
/// line or a URL.
///
/// An appended argument may be a secret because its flag is in another layer.
fn is_part_of_server_with_secrets(key: &Key, text: &str) -> bool {
    const PUNCTUATION: [char; 7] = ['"', '\'', ',', '[', ']', '{', '}'];
    let is_server = matches!(
        key.parts().collect::<Vec<_>>()[..],
        ["providers"] | ["providers", "mcp", ..]
    );
    let words = text.replace(PUNCTUATION, " ");
    server_field(key) == Some("arguments") || (is_server && line_without_secrets(&words) != words)
}

/// Returns the name of a field of an MCP server.
fn server_field(key: &Key) -> Option<&str> {
    match key.parts().collect::<Vec<_>>()[..] {
        ["providers", "mcp", _, field] => Some(field),
        _ => None,
    }
}

/// Returns a command line with the secrets in it hidden.
fn line_without_secrets(line: &str) -> String {
    let shown = words_without_secrets(line.split(' ')).join(" ");
    // A quoted or escaped word may contain spaces, so the end of a secret is unknown.
    match shown.split_once(' ') {
        Some((program, _)) if shown != line && line.contains(['\'', '"', '\\']) => {
            format!("{program} {HIDDEN}")
        }
        _ => shown,
    }
}

/// Returns the words of a command line with the secrets in them hidden.
fn words_without_secrets<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut previous = "";
    let shown = words.map(|word| {
        // An empty word needs no look at the one before it, which may be long.
        let is_value = !word.is_empty() && !word.starts_with("--");
        let shown = if is_value && announces_secret(previous) {
            HIDDEN.to_owned()
        } else {
            word_without_secrets(word, previous)
        };
        // Several spaces, or the brackets of a list, leave empty words between a flag and its
        // value.
        previous = if word.is_empty() { previous } else { word };
        shown
    });
    shown.collect()
}

/// Returns true if the word after this one is a secret: `--token`, or the scheme of an
/// `Authorization` header.
fn announces_secret(word: &str) -> bool {
    let is_scheme = ["basic", "bearer"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme));
    let is_flag = word.starts_with('-') && !word.contains(['=', ':']) && is_secret_name(word);
    is_scheme || is_flag
}

/// Returns a word with the secret in it hidden: in `--env=API_KEY=…`, `Authorization: …`,
/// `Bearer …`, `--user=me:…` or the query of a URL.
fn word_without_secrets(word: &str, previous: &str) -> String {
    let word = url_without_query(word);
    let Some(start) = find_secret(&word, previous) else {
        return word;
    };
    format!("{}{HIDDEN}", &word[..start])
}

/// Returns the offset of a secret in a word that follows another.
fn find_secret(word: &str, previous: &str) -> Option<usize> {
    let is_separator = |character: char| character.is_whitespace() || "=:".contains(character);
    let (mut previous, mut rest) = (previous, word);
    while let Some((name, after)) = rest.split_once(is_separator) {
        let separator = &rest[name.len()..rest.len() - after.len()];
        let is_announced = match separator {
            ":" if follows_user_flag(name, previous) => !is_scheme_of_url(name, after),
            "=" | ":" => is_name_of_secret(name),
            _ => announces_secret(name),
        };
        if is_announced {
            let value = if separator == ":" {
                after.strip_prefix(' ').unwrap_or(after)
            } else {
                after
            };
            return Some(word.len() - value.len());
        }
        previous = if name.is_empty() { previous } else { name };
        rest = after;
    }
    None
}

/// Returns true if a text before `=` or `:` names a secret, also if it follows the letter of a
/// flag: `-HAuthorization`.
fn is_name_of_secret(name: &str) -> bool {
    let after_letter = name.strip_prefix('-').and_then(|letters| {
        let mut characters = letters.chars();
        characters.next().filter(|letter| letter.is_alphabetic())?;
        Some(characters.as_str())
    });
    !name.contains(['/', '?']) && (is_secret_name(name) || after_letter.is_some_and(is_secret_name))
}

/// Returns true if a text before `:` is the name in `NAME:PASSWORD`: curl's `--user=me:…`,
/// `-u me:…` and `-ume:…`.
fn follows_user_flag(name: &str, previous: &str) -> bool {
    const FLAGS: [&str; 4] = ["--proxy-user", "--user", "-U", "-u"];
    FLAGS.contains(&previous) || name.starts_with("-U") || name.starts_with("-u")
}

fn is_scheme_of_url(name: &str, after: &str) -> bool {
    matches!(name, "http" | "https") && after.starts_with("//")
}

/// Returns a text with the values in the query of its URL hidden; those of the names stay.
fn url_without_query(text: &str) -> String {
    let query = text
        .find("://")
        .and_then(|start| Some(start + text[start..].find('?')? + 1));
    let Some(start) = query else {
        return text.to_owned();
    };
    let end = text[start..]
        .find('#')
        .map_or(text.len(), |length| start + length);
    let shown: Vec<String> = text[start..end]
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) => format!("{name}={HIDDEN}"),
            None => HIDDEN.to_owned(),
        })
        .collect();
    format!("{}{}{}", &text[..start], shown.join("&"), &text[end..])
}

/// Returns true if the name of a variable, a flag or a header suggests a secret, by the words in
/// it.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    const NAMES: [&str; 2] = ["DATABASE_URL", "SSHPASS"];
    const WORDS: [&str; 17] = [
        "AUTH",
        "AUTHORIZATION",
        "BEARER",
        "COOKIE",
        "CREDENTIAL",
        "CREDENTIALS",
        "CREDS",
        "DSN",
        "JWT",
        "KEY",
        "KEYS",
        "PASS",
        "PASSWD",
        "PAT",
        "SECRETS",
        "WEBHOOK",
        "WEBHOOKS",
    ];
    /// These count at the end of a word as well: `PGPASSWORD`, `_authToken`.
    const ENDINGS: [&str; 5] = ["APIKEY", "PASSPHRASE", "PASSWORD", "SECRET", "TOKEN"];
    /// The last word of a name whose value is a path: `SSH_AUTH_SOCK`, `PASSWORD_STORE_DIR`.
    const PLACES: [&str; 2] = ["DIR", "SOCK"];
    /// Sessions that aren't secrets: the desktop's and jp's own.
    const SESSIONS: [&str; 2] = ["DESKTOP_SESSION", "JP_SESSION"];
    let name = name.to_uppercase();
    let words: Vec<&str> = name
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    // `PWD` alone is the working directory; `DB_PWD` is a password.
    let has_secret_end = match words[..] {
        [_, .., "PWD"] => true,
        [_, .., "SESSION"] => !SESSIONS.contains(&&*name),
        _ => false,
    };
    let is_place = words.last().is_some_and(|last| PLACES.contains(last));
    let has_secret_word = words
        .iter()
        .any(|word| WORDS.contains(word) || ENDINGS.iter().any(|ending| word.ends_with(ending)));
    NAMES.contains(&&*name) || (!is_place && has_secret_word) || has_secret_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_is_shown_without_a_secret_in_it() {
        for (text, shown) in [
            (
                "providers.mcp.docs.headers.Authorization=Bearer s",
                "providers.mcp.docs.headers.Authorization=…",
            ),
            (
                "providers.mcp.'a=b'.headers.x=s",
                "providers.mcp.'a=b'.headers.x=…",
            ),
            (
                "providers.mcp.docs.environment:={\"A\": \"s\"}",
                "providers.mcp.docs.environment:=…",
            ),
            (
                "providers.mcp.docs={ url = 'x', headers = { A = 's' } }",
                "providers.mcp.docs=…",
            ),
            (
                "providers:={\"llm\": {\"x\": {\"api_key_command\": [\"s\"]}}}",
                "providers:=…",
            ),
            (
                "providers.mcp.docs.header.Authorization:=Bearer s",
                "providers.mcp.docs.header.Authorization:=…",
            ),
            (
                "providers.llm.x.api_key_command+=s",
                "providers.llm.x.api_key_command+=…",
            ),
            (
                "providers.mcp.docs.command=docker run --env=API_KEY=s x",
                "providers.mcp.docs.command=…",
            ),
            (
                "providers.mcp.docs.command:=[\"curl\", \"-u\", \"me:s\"]",
                "providers.mcp.docs.command:=…",
            ),
            (
                "providers.mcp.docs={ command = 'a' }",
                "providers.mcp.docs={ command = 'a' }",
            ),
            (
                "assistant.system_prompt=headers",
                "assistant.system_prompt=headers",
            ),
            ("file.toml", "file.toml"),
        ] {
            assert_eq!(argument_without_secrets(text), shown);
        }
    }

    #[test]
    fn secrets_in_command_lines_are_hidden() {
        for (line, shown) in [
            ("notes --token=s --quiet", "notes --token=… --quiet"),
            ("notes --token s --quiet", "notes --token … --quiet"),
            ("notes --auth --quiet", "notes --auth --quiet"),
            (
                "docker run -e API_KEY=s -e HOME=/x",
                "docker run -e API_KEY=… -e HOME=/x",
            ),
            ("curl -H 'Authorization: Bearer s' x", "curl …"),
            ("curl -H Authorization:s", "curl -H Authorization:…"),
            (
                "npx remote https://h/mcp?key=s&t",
                "npx remote https://h/mcp?key=…&…",
            ),
            (
                "npx --url=https://h/mcp?key=s#f",
                "npx --url=https://h/mcp?key=…#f",
            ),
            (
                "docker run --env=API_KEY=s x",
                "docker run --env=API_KEY=… x",
            ),
            (
                "git --config-env=DB_PASSWORD=s",
                "git --config-env=DB_PASSWORD=…",
            ),
            ("curl --header='X-Api-Key: s' x", "curl …"),
            ("curl -d 'a=b&token=s' x", "curl …"),
            (
                "curl --user=me:s -u me:s -Ume:s",
                "curl --user=me:… -u me:… -Ume:…",
            ),
            ("npx remote --header Authorization:\\ Bearer\\ s", "npx …"),
            ("notes --token a\\ s", "notes …"),
            ("TOKEN=s notes C:\\x", "TOKEN=… …"),
            ("curl -u  me:s --token  s", "curl -u  me:… --token  …"),
            (
                "notes -u https://h/x -url=https://h:80",
                "notes -u https://h/x -url=https://h:80",
            ),
            (
                "npx https://h/mcp?a=s&key=s&t",
                "npx https://h/mcp?a=…&key=…",
            ),
            (
                "notes --port=80 C:\\x a:b 'c d'",
                "notes --port=80 C:\\x a:b 'c d'",
            ),
        ] {
            assert_eq!(line_without_secrets(line), shown);
        }
        let words = [
            "--header",
            "Authorization: Bearer s",
            "Bearer s",
            "X-Api-Key: s",
            "bearer",
            "s",
        ];
        let shown = [
            "--header",
            "Authorization: …",
            "Bearer …",
            "X-Api-Key: …",
            "bearer",
            "…",
        ];
        assert_eq!(words_without_secrets(words.into_iter()), shown);
        for (word, shown) in [
            (
                "--header=Authorization: Bearer s",
                "--header=Authorization: …",
            ),
            ("-HAuthorization: Bearer s", "-HAuthorization: …"),
            ("-key=s", "-key=…"),
            ("X-Forwarded: Bearer s", "X-Forwarded: Bearer …"),
            (
                "{\"a\": \"b\", \"token\": \"s\"}",
                "{\"a\": \"b\", \"token\": …",
            ),
            ("export TOKEN=s; curl x", "export TOKEN=…"),
            ("curl -u me:s x", "curl -u me:…"),
            ("notes --token\ts", "notes --token\t…"),
        ] {
            assert_eq!(words_without_secrets([word].into_iter()), [shown]);
        }
    }

    #[test]
    fn variable_is_a_secret_by_its_words() {
        for name in [
            "ANTHROPIC_API_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION",
            "AWS_SESSION_TOKEN",
            "CI_JOB_JWT",
            "DATABASE_URL",
            "DB_PASS",
            "DB_PWD",
            "DOCKER_AUTH_CONFIG",
            "GITHUB_PAT",
            "GITHUB_TOKEN_READ",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "MYSQL_PWD",
            "NPM_CONFIG__AUTH",
            "npm_config_//registry.example/:_authToken",
            "OPENAI_APIKEY",
            "PGPASSWORD",
            "REDISCLI_AUTH",
            "SENTRY_DSN",
            "SERVICE_SECRETS",
            "SIGNING_KEY_PASSPHRASE",
            "SLACK_WEBHOOK_URL",
            "SSHPASS",
            "STRIPE_KEY_LIVE",
            "api-key",
            "authorization",
            "some_secret",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "COLORTERM",
            "DBUS_SESSION_BUS_ADDRESS",
            "DESKTOP_SESSION",
            "GIT_ASKPASS",
            "GIT_AUTHOR_NAME",
            "HOME",
            "JP_SESSION",
            "KEYBOARD",
            "MAX_TOKENS",
            "MONKEY",
            "OLDPWD",
            "PASSWORD_STORE_DIR",
            "PATH",
            "PWD",
            "SESSION_MANAGER",
            "SSH_AUTH_SOCK",
            "TERM_SESSION_ID",
            "TOKENIZERS_PARALLELISM",
            "XAUTHORITY",
            "XDG_SESSION_TYPE",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
