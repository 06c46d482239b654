//! Output on the screen: colours, columns and suggestions.

#![cfg(unix)]

use testing::{Sandbox, Terminal, assert_contains, assert_lacks};

/// Returns the output of a command at a terminal of this type.
fn shown_at(sandbox: &Sandbox, terminal: &str, arguments: &[&str]) -> String {
    let mut command = sandbox.command(arguments);
    command.env("TERM", terminal);
    let mut terminal = Terminal::run(command);
    terminal.wait();
    terminal.output()
}

#[test]
fn dumb_terminal_gets_no_escape_sequences_unless_colour_is_asked_for() {
    let sandbox = Sandbox::new();
    let fails = ["conversation", "show", "17"];
    assert!(shown_at(&sandbox, "xterm", &fails).contains("\x1b[31;1merror: "));
    for terminal in ["dumb", ""] {
        let dumb = shown_at(&sandbox, terminal, &fails);
        assert!(
            dumb.contains("error: ") && !dumb.contains('\x1b'),
            "{terminal:?}: {dumb:?}"
        );
    }
    let asked_for = shown_at(
        &sandbox,
        "dumb",
        &["--color", "always", "conversation", "show", "17"],
    );
    assert_contains(&asked_for, "\x1b[31;1merror: ");
}

#[test]
fn columns_stay_aligned_after_wide_characters() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("日本.md", "1\n");
    sandbox.write("plain.md", "2\n");
    sandbox.run("q --new -a 日本.md -a plain.md x");
    let listed = sandbox.run("attachment ls").stdout;
    for row in ["  日本.md   file:///", "  plain.md  file:///"] {
        assert_contains(&listed, row);
    }
}

#[test]
fn suggested_commands_are_names_of_visible_ones() {
    let sandbox = Sandbox::new();
    for (words, suggested) in [
        (
            &["ask"][..],
            "  tip: a similar subcommand exists: 'query'\n",
        ),
        (&["hello"], "  tip: a similar subcommand exists: 'help'\n"),
        (
            &["atach"],
            "  tip: a similar subcommand exists: 'attachment'\n",
        ),
        (&["qury"], "  tip: a similar subcommand exists: 'query'\n"),
        (
            &["conversation", "delete"],
            "  tip: a similar subcommand exists: 'rm'\n",
        ),
        (
            &["-w", ".", "c", "list"],
            "  tip: a similar subcommand exists: 'ls'\n",
        ),
    ] {
        let run = sandbox.fail(words, 2).says(["unrecognized subcommand"]);
        assert_contains(&run.stderr, suggested);
    }
    let run = sandbox
        .fail("shell-sesion", 2)
        .says(["unrecognized subcommand 'shell-sesion'"]);
    assert_lacks(&run.stderr, "tip:");
}
