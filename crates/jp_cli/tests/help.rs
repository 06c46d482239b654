//! `jp help`: commands, topics and unknown words.

use testing::{Sandbox, assert_contains, assert_lacks};

/// A place without a workspace, which help doesn't need.
fn elsewhere() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::remove_dir_all(sandbox.path(".jp")).unwrap();
    sandbox
}

/// Returns the names and descriptions of the topics that `jp help` lists.
fn topics(help: &str) -> Vec<(String, String)> {
    let section = help.split_once("\nTopics").unwrap().1;
    let lines = section.lines().skip(1).take_while(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, description) = line.trim().split_once("  ").unwrap();
            (name.to_owned(), description.trim().to_owned())
        })
        .collect()
}

#[test]
fn topics_are_listed_after_the_commands() {
    let help = elsewhere().jp(&["help"]).succeeded().stdout;
    assert!(help.find("\nCommands:") < help.find("\nTopics"), "{help}");
    let topics = topics(&help);
    for name in ["permissions", "settings", "json", "exit-codes"] {
        assert!(topics.iter().any(|topic| topic.0 == name), "{topics:?}");
    }
    let is_short = |topic: &(String, String)| !topic.1.is_empty() && topic.1.len() <= 60;
    assert!(topics.iter().all(is_short), "{topics:?}");
}

#[test]
fn each_topic_is_printed_as_plain_text() {
    let sandbox = elsewhere();
    for (name, _) in topics(&sandbox.run("help").stdout) {
        let run = sandbox.run(&["help", &name]);
        assert_eq!(run.stderr, "", "{name}");
        assert!(run.stdout.lines().count() > 10, "{name}");
        for mark in ["\u{1b}", "```", "](", "|---", "\n#"] {
            assert!(!run.stdout.contains(mark), "{name} contains {mark:?}");
        }
    }
}

#[test]
fn words_of_a_topic_may_be_separate() {
    let sandbox = elsewhere();
    let one = sandbox.run("help exit-codes").stdout;
    assert_eq!(sandbox.run("help exit codes").stdout, one);
}

#[test]
fn help_of_a_command_is_that_of_its_flag() {
    let sandbox = elsewhere();
    for command in [&["query"][..], &["q"], &["conversation", "fork"], &["help"]] {
        let flag = sandbox.run(&[command, &["--help"]].concat());
        let help = sandbox.run(&[&["help"], command].concat());
        assert_eq!(help.stdout, flag.stdout, "{command:?}");
        assert_contains(&help.stdout, "Usage: jp ");
    }
}

#[test]
fn unknown_topic_is_an_error_with_a_suggestion() {
    elsewhere().jp(&["help", "setings"]).failed(2).says([
        "there is no command or topic `setings`",
        "did you mean `jp help settings`?",
        "permissions, models, settings",
    ]);
    let run = elsewhere()
        .jp(&["help", "zzzzzzz"])
        .failed(2)
        .says(["exit-codes"]);
    assert_lacks(&run.stderr, "did you mean");
}

#[test]
fn unknown_command_of_a_command_is_an_error() {
    elsewhere()
        .jp(&["help", "conversation", "frok"])
        .failed(2)
        .says([
            "there is no command `conversation frok`",
            "did you mean `jp help conversation fork`?",
            "`jp help conversation` lists its commands",
        ]);
}

#[test]
fn further_words_after_a_topic_are_an_error() {
    elsewhere()
        .jp(&["help", "conversations", "ls"])
        .failed(2)
        .says([
            "the topic `conversations` takes no further words",
            "`jp help conversations` prints it",
        ]);
    elsewhere()
        .jp(&["help", "query", "extra"])
        .failed(2)
        .says(["`jp help query` shows its options"]);
}

/// Returns the words of every `` `jp help WORDS` `` in the sources of all crates.
fn hints(directory: &std::path::Path, hints: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            self::hints(&path, hints);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(path).unwrap();
            let after = text.split("`jp help ").skip(1);
            let words = after.filter_map(|after| after.split('`').next());
            hints.extend(
                words
                    .filter(|words| !words.contains(['{', '\n']))
                    .map(str::to_owned),
            );
        }
    }
}

#[test]
fn hints_name_topics_that_exist() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut named = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() {
            hints(&source, &mut named);
        }
    }
    named.retain(|words| words != "TOPIC");
    named.sort();
    named.dedup();
    assert!(
        named.iter().any(|words| words == "mcp-servers"),
        "{named:?}"
    );
    let sandbox = elsewhere();
    for words in named {
        let arguments: Vec<_> = ["help"].into_iter().chain(words.split(' ')).collect();
        sandbox.jp(&arguments).succeeded();
    }
}
