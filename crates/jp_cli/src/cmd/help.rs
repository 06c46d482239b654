//! `jp help`: the help of commands, and the users' pages of `docs/`.
//!
//! Installed users don't have `docs/`, so the pages are part of the program.

mod plain_text;

use clap::{Command, CommandFactory as _};
use jp_session::similar::find_similar;

use crate::{
    args::Args,
    error::{Code, SessionError},
    output::{Output, format_table},
};

/// A page of `docs/`.
struct Topic {
    name: &'static str,
    description: &'static str,
    /// The name of the file, by which other pages link to it.
    file: &'static str,
    markdown: &'static str,
}

/// Describes a topic whose page is a file of `docs/`.
macro_rules! topic {
    ($name:literal, $file:literal, $description:literal) => {
        Topic {
            name: $name,
            description: $description,
            file: $file,
            markdown: include_str!(concat!("../../../../docs/", $file)),
        }
    };
}

/// All topics, in the order in which `jp help` lists them. No name may be that of a command.
#[rustfmt::skip]
const TOPICS: [Topic; 12] = [
    topic!("attachments", "attachments.md", "Attach files, pages, commands and more"),
    topic!("uris", "uris.md", "How jp normalises URIs, and which match a template"),
    topic!("tools", "tools.md", "Choose and write tools that a model can call"),
    topic!("permissions", "permissions.md", "What runs without a prompt, and what jp trusts"),
    topic!("models", "models.md", "Choose a model, configure a provider, get answers in JSON"),
    topic!("settings", "settings.md", "All configuration keys, with types and defaults"),
    topic!("delivery", "delivery.md", "What a request contains and what it costs"),
    topic!("compaction", "compaction.md", "Shorten a long conversation"),
    topic!("conversations", "storage.md", "How jp stores conversations on disk"),
    topic!("mcp-servers", "mcp.md", "Use MCP servers, and serve a workspace over MCP"),
    topic!("json", "json.md", "The output of --format json, command by command"),
    topic!("exit-codes", "exit-codes.md", "Exit codes for scripts"),
];

/// Prints help for jp, for a command or for a topic.
///
/// # Errors
///
/// Returns a usage error if there is no such command or topic.
pub(crate) fn run(words: &[String], output: &Output) -> Result<Code, SessionError> {
    // `jp help exit codes` means the topic `exit-codes`.
    let topic = find_topic(&words.join("-"));
    if let Some(topic) = topic {
        output.text(&plain_text::render(topic.markdown, topic_of_file))?;
        return Ok(Code::Done);
    }
    check_command(words)?;
    Args::exit_with_help(words, list_topics())
}

fn find_topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

/// Returns the name of the topic whose page is this file of `docs/`.
fn topic_of_file(file: &str) -> Option<&'static str> {
    TOPICS
        .iter()
        .find(|topic| topic.file == file)
        .map(|topic| topic.name)
}

/// Returns the section "Topics" in the form of clap's own sections.
fn list_topics() -> String {
    let rows = TOPICS.map(|topic| vec![format!("  {}", topic.name), topic.description.to_owned()]);
    format!(
        "Topics (`jp help TOPIC` shows one):\n{}",
        format_table(&rows).join("\n")
    )
}

/// Checks that each word is a command of the one before it.
fn check_command(words: &[String]) -> Result<(), SessionError> {
    let mut command = Args::command();
    // Subcommands are made only when they are needed.
    command.build();
    if let [first, _, ..] = words
        && find_topic(first).is_some()
        && command.find_subcommand(first).is_none()
    {
        return Err(
            SessionError::usage(format!("the topic `{first}` takes no further words"))
                .with_hint(format!("`jp help {first}` prints it.")),
        );
    }
    let mut known = &command;
    for (index, word) in words.iter().enumerate() {
        known = known
            .find_subcommand(word)
            .ok_or_else(|| unknown_error(known, &words[..index], word))?;
    }
    Ok(())
}

/// Words the error for an unknown command, or an unknown topic if the word stands alone.
fn unknown_error(parent: &Command, before: &[String], word: &str) -> SessionError {
    let commands = parent
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let mut names: Vec<_> = commands.map(Command::get_name).collect();
    if before.is_empty() {
        names.extend(TOPICS.iter().map(|topic| topic.name));
    }
    let path: String = before.iter().map(|word| format!("{word} ")).collect();
    let mut failure = SessionError::usage(match before {
        [] => format!("there is no command or topic `{word}`"),
        _ => format!("there is no command `{path}{word}`"),
    });
    if let Some(name) = find_similar(word, &names) {
        failure = failure.with_hint(format!("did you mean `jp help {path}{name}`?"));
    }
    failure.with_hint(match before {
        [] => format!(
            "the topics are {}. `jp help` lists the commands, too.",
            TOPICS.map(|topic| topic.name).join(", ")
        ),
        _ if names.is_empty() => format!("`jp help {}` shows its options.", path.trim_end()),
        _ => format!("`jp help {}` lists its commands.", path.trim_end()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_topic_has_the_name_of_a_command() {
        let mut command = Args::command();
        command.build();
        let taken: Vec<_> = TOPICS
            .iter()
            .filter(|topic| command.find_subcommand(topic.name).is_some())
            .map(|topic| topic.name)
            .collect();
        assert!(
            command.find_subcommand("query").is_some(),
            "commands are built"
        );
        assert_eq!(taken, [""; 0]);
    }

    #[test]
    fn pages_are_at_most_80_columns_wide_but_for_code_and_long_words() {
        for topic in &TOPICS {
            let text = plain_text::render(topic.markdown, topic_of_file);
            let wide: Vec<_> = text
                .lines()
                .filter(|line| !line.starts_with("    ") && line.contains(' '))
                .filter(|line| line.chars().count() > 80)
                .collect();
            assert_eq!(wide, [""; 0], "{}", topic.name);
        }
    }

    #[test]
    fn links_to_pages_name_topics() {
        for topic in &TOPICS {
            let text = plain_text::render(topic.markdown, topic_of_file);
            assert!(!text.contains(".md)"), "{} links to a file", topic.name);
        }
    }
}
