//! Opens the user's editor.

use std::{fs, io, path::Path, process::Command};

use crate::terminal::Terminal;

/// The editors that jp tries if the environment names none.
const COMMON_EDITORS: [&str; 2] = ["vi", "nano"];

/// Opens a JSON document in the editor and returns it as saved; the error is a sentence with the reason of a failure.
pub(super) fn edit(text: &str, terminal: &Terminal<'_>) -> Result<String, String> {
    let failed = |error: io::Error| format!("jp can't create a file for the editor: {error}.");
    let directory = tempfile::Builder::new()
        .prefix("jp-")
        .tempdir()
        .map_err(failed)?;
    // Editors choose the syntax by the extension.
    let path = directory.path().join("edit.json");
    fs::write(&path, text).map_err(failed)?;
    match terminal.editor {
        Some(line) => run_named(line, &path, terminal)?,
        None => run_common(&path, terminal)?,
    }
    fs::read_to_string(&path)
        .map_err(|error| format!("jp can't read the file that the editor saved: {error}."))
}

fn run_named(line: &str, path: &Path, terminal: &Terminal<'_>) -> Result<(), String> {
    let words = shlex::split(line).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        return Err(format!(
            "VISUAL or EDITOR is not a valid command line: `{line}`."
        ));
    };
    run(Command::new(program).args(arguments).arg(path), terminal).unwrap_or_else(|error| {
        Err(format!(
            "The editor `{line}` could not be started: {error}."
        ))
    })
}

/// Runs the first of [`COMMON_EDITORS`] that is installed.
fn run_common(path: &Path, terminal: &Terminal<'_>) -> Result<(), String> {
    for program in COMMON_EDITORS {
        match run(Command::new(program).arg(path), terminal) {
            Ok(ended) => return ended,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(format!(
                    "The editor `{program}` could not be started: {error}."
                ));
            }
        }
    }
    Err("jp found no editor. Set VISUAL or EDITOR to yours.".to_owned())
}

/// Runs an editor to its end. The outer error means that it did not start, the inner one that it reported a failure.
fn run(command: &mut Command, terminal: &Terminal<'_>) -> io::Result<Result<(), String>> {
    let status = terminal.lend(command)?;
    Ok(if status.success() {
        Ok(())
    } else {
        Err(format!(
            "The editor ended with {status}, so jp ignores its changes."
        ))
    })
}
