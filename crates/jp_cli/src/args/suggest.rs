//! Suggests commands when the user types one that doesn't exist.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue},
};

/// Other words for a command, with its name.
const OTHER_WORDS: [(&str, &str); 6] = [
    ("ask", "query"),
    ("chat", "query"),
    ("send", "query"),
    ("list", "ls"),
    ("delete", "rm"),
    ("remove", "rm"),
];

/// Replaces clap's suggestions. clap takes a one-letter alias for a similar word, and suggests hidden commands.
pub(super) fn suggest_commands(mut error: Error, mut root: Command) -> Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(name)) => std::slice::from_ref(name),
        Some(ContextValue::Strings(names)) => names,
        _ => &[],
    };
    let usage = error
        .get(ContextKind::Usage)
        .map(ToString::to_string)
        .unwrap_or_default();
    // Without this, deferred commands have no subcommands yet.
    root.build();
    let suggested = choose(typed, similar, &visible_names(find_command(&root, &usage)));
    // clap prints a tip if the context exists.
    error.remove(ContextKind::SuggestedSubcommand);
    if !suggested.is_empty() {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(suggested),
        );
    }
    error
}

/// Finds the command of a usage line such as `Usage: jp conversation [OPTIONS] <COMMAND>`.
fn find_command<'a>(root: &'a Command, usage: &str) -> &'a Command {
    let words = usage
        .split_whitespace()
        .skip_while(|word| *word != root.get_name())
        .skip(1);
    words
        .map_while(|word| Some(word).filter(|word| !word.starts_with(['[', '<'])))
        .fold(root, |command, word| {
            command.find_subcommand(word).unwrap_or(command)
        })
}

fn visible_names(command: &Command) -> Vec<&str> {
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(Command::get_name)
        .collect()
}

/// Chooses from the visible commands: the one that the word stands for, else those with a similar name.
fn choose(typed: &str, similar: &[String], visible: &[&str]) -> Vec<String> {
    let meant = OTHER_WORDS
        .iter()
        .find(|(word, name)| *word == typed && visible.contains(name));
    match meant {
        Some((_, name)) => vec![(*name).to_owned()],
        None => similar
            .iter()
            .filter(|name| visible.contains(&name.as_str()))
            .cloned()
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_names_are_suggested() {
        let visible = ["query", "attachment", "help"];
        for (typed, similar, suggested) in [
            ("ask", &["a"][..], &["query"][..]),
            ("atach", &["a", "attachment"], &["attachment"]),
            ("hello", &["shell-session", "help"], &["help"]),
            // This command has no `ls`.
            ("list", &["ls"], &[]),
        ] {
            let similar: Vec<_> = similar.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(choose(typed, &similar, &visible), suggested, "{typed}");
        }
    }
}
