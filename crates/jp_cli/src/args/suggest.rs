//! Suggests commands when the user types one that doesn't exist.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue},
};

/// Words that people type for a command, with its name.
const OTHER_WORDS: [(&str, &str); 6] = [
    ("ask", "query"),
    ("chat", "query"),
    ("send", "query"),
    ("list", "ls"),
    ("delete", "rm"),
    ("remove", "rm"),
];

/// Replaces clap's suggestions: these take a one-letter alias for part of a word and name hidden commands.
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
    // Subcommands are made when they are first needed.
    root.build();
    let suggested = choose(typed, similar, &visible_names(find_command(&root, &usage)));
    error.remove(ContextKind::SuggestedSubcommand);
    if !suggested.is_empty() {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(suggested),
        );
    }
    error
}

/// Finds the command of a usage line: `Usage: jp conversation [OPTIONS] <COMMAND>`.
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

/// Chooses among the names of visible commands: the one that the word stands for, else those that are similar to it.
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
        let similar = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(choose("ask", &similar(&["a"]), &visible), ["query"]);
        assert_eq!(
            choose("atach", &similar(&["a", "attachment"]), &visible),
            ["attachment"]
        );
        assert_eq!(
            choose("hello", &similar(&["shell-session", "help"]), &visible),
            ["help"]
        );
        assert_eq!(
            choose("list", &similar(&["ls"]), &visible),
            [""; 0],
            "this command has no `ls`"
        );
    }
}
