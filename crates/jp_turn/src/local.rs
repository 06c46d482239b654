//! Local tools: programs that the user configured.
//!
//! The program gets what it is called with as one JSON document ([`jp_tool::Invocation`]), on stdin
//! and in the placeholders of its command line. It runs in the workspace root without a shell, in a
//! process group of its own and without the keys of the environment; [`parse_command_output`] reads
//! what it prints.

mod resources;
mod title;

use std::{
    collections::BTreeSet,
    error::Error as StdError,
    io,
    path::{Path, PathBuf},
};

use jp_process::{Bounds, End, ProcessError, brief_program};
use jp_tool::{CallContext, Invocation, ToolCall, ToolResponse};
use serde_json::{Map, Value};

use self::resources::with_canonical_uris;
use crate::{
    Command, Parsed, Preview, Tool, Toolbox,
    command::template,
    line::Line,
    parse::{MAX_PRINTED, limit_warnings, parse_command_output, warning_block},
    plan::Plan,
};

/// Plans a call of a local tool.
pub(crate) fn plan<'a>(
    command: &'a Command,
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let call = Call {
        command,
        tool,
        arguments: arguments.clone(),
        toolbox,
    };
    let preview = preview(command, tool, arguments, &toolbox.surroundings)?;
    let mut told = BTreeSet::new();
    let act = move |answers: &Map<String, Value>, line: &Line| call.run(answers, line, &mut told);
    Ok(Plan {
        preview,
        is_sensitive: false,
        act: Box::new(act),
    })
}

/// A call of a local tool.
struct Call<'a> {
    command: &'a Command,
    tool: &'a Tool,
    arguments: Map<String, Value>,
    toolbox: &'a Toolbox,
}

impl Call<'_> {
    /// Runs the program once. `told` holds what the user was warned of in earlier runs of this
    /// call.
    fn run(
        &self,
        answers: &Map<String, Value>,
        line: &Line,
        told: &mut BTreeSet<String>,
    ) -> ToolResponse {
        let document = self.document(answers);
        let program = match self.program(&document) {
            Ok(program) => program,
            Err(reason) => return ToolResponse::from_error(reason),
        };
        let bounds = Bounds {
            timeout: self.tool.timeout,
            max_bytes: MAX_PRINTED as u64,
            is_moot: &|| line.is_cancelled(),
        };
        // The newline is for programs that read their input by lines.
        let captured =
            match jp_process::capture(program, format!("{document}\n").as_bytes(), &bounds) {
                Ok(captured) => captured,
                Err(error) => return self.report_start_failure(&error, &document, line),
            };
        let name = &self.tool.name;
        if let End::TimedOut(limit) = captured.end {
            line.notice(format!(
                "`{name}` ran for more than {} s and was ended; raise `conversation.tools.{name}.timeout_secs` to allow more",
                limit.as_secs_f64()
            ));
        }
        with_warnings(
            parse_command_output(captured),
            self.tool,
            &self.toolbox.surroundings,
            line,
            told,
        )
    }

    fn document(&self, answers: &Map<String, Value>) -> Value {
        document(
            self.tool,
            &self.arguments,
            answers,
            &self.toolbox.surroundings,
        )
    }

    fn program(&self, document: &Value) -> Result<std::process::Command, String> {
        let surroundings = &self.toolbox.surroundings;
        check_root(self.tool, surroundings)?;
        Ok(program(&self.command.words, document, surroundings))
    }

    fn report_start_failure(
        &self,
        error: &ProcessError,
        document: &Value,
        line: &Line,
    ) -> ToolResponse {
        let name = &self.tool.name;
        let place = format!("`conversation.tools.{name}.command`");
        let reason = match error {
            ProcessError::Start { source, .. }
                if source.kind() == io::ErrorKind::ArgumentListTooLong =>
            {
                "its command line is too long; the program can read its arguments from stdin"
                    .to_owned()
            }
            error => {
                let program = template::fill(&self.command.words[0], document);
                describe_start_error(
                    error,
                    &brief_program(&program, &self.toolbox.surroundings.root),
                )
            }
        };
        line.notice(format!("`{name}` did not run: {reason}; check {place}"));
        ToolResponse::from_error(format!(
            "The tool `{name}` did not run: {reason}. The user configures it with {place}."
        ))
    }
}

/// Describes why a program does not start. Paths are specific to this machine, so the text uses the
/// name in the configuration.
pub(crate) fn describe_start_error(error: &ProcessError, program: &str) -> String {
    match error {
        ProcessError::Missing { .. } => format!("there is no program {program:?}"),
        ProcessError::Start { source, .. } => format!("{program:?} can't be started: {source}"),
        error => with_causes(error),
    }
}

/// Makes the preview of the command line, with long words in full below it. Placeholders for the
/// whole document stay as they are, because the arguments say more.
pub(crate) fn preview(
    command: &Command,
    tool: &Tool,
    arguments: &Map<String, Value>,
    surroundings: &crate::Surroundings,
) -> Result<Preview, String> {
    let document = document(tool, arguments, &Map::new(), surroundings);
    let words: Vec<_> = command
        .words
        .iter()
        .map(|word| template::fill_parts(word, &document))
        .collect();
    if words.iter().any(|word| word.contains('\0')) {
        return Err(format!(
            "An argument of `{}` contains a NUL, which a command line can't contain.",
            tool.name
        ));
    }
    let line = title::join_words(&words);
    Ok(match title::short_line(&words) {
        None => Preview::from_title(line),
        Some(short) => {
            let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
            Preview {
                title: short,
                detail: Some(format!("{line}\n{arguments}")),
            }
        }
    })
}

/// Checks that there is a directory to run in.
pub(crate) fn check_root(tool: &Tool, surroundings: &crate::Surroundings) -> Result<(), String> {
    match surroundings.root.is_dir() {
        true => Ok(()),
        false => Err(format!(
            "`{}` did not run: the workspace no longer exists.",
            tool.name
        )),
    }
}

/// Makes the URIs of a response canonical, and adds its warnings: for the model to the response,
/// for the user as notices. `told` holds the warnings that the user has already seen.
pub(crate) fn with_warnings(
    parsed: Parsed,
    tool: &Tool,
    surroundings: &crate::Surroundings,
    line: &Line,
    told: &mut BTreeSet<String>,
) -> ToolResponse {
    let Parsed {
        response,
        mut warnings,
    } = parsed;
    let (mut response, of_uris) = with_canonical_uris(response, surroundings);
    warnings.extend(of_uris);
    let warnings = limit_warnings(&warnings);
    for warning in warnings
        .iter()
        .filter(|warning| told.insert(String::clone(warning)))
    {
        line.notice(format!("`{}`: {warning}", tool.name));
    }
    response.content.extend(warning_block(&warnings));
    response
}

/// Makes the document that a program is given.
pub(crate) fn document(
    tool: &Tool,
    arguments: &Map<String, Value>,
    answers: &Map<String, Value>,
    surroundings: &crate::Surroundings,
) -> Value {
    let tool = ToolCall {
        name: tool.name.clone(),
        arguments: arguments.clone(),
        answers: answers.clone(),
        options: tool.options.clone(),
    };
    // JSON has no other paths.
    let root = PathBuf::from(surroundings.root.to_string_lossy().into_owned());
    let context = CallContext {
        root,
        conversation_id: surroundings.conversation.clone(),
    };
    serde_json::to_value(Invocation { tool, context })
        .expect("its maps have string keys, its path is UTF-8")
}

/// Makes the program of a command: it runs in the workspace root, and without the API keys of the
/// environment.
pub(crate) fn program(
    words: &[String],
    document: &Value,
    surroundings: &crate::Surroundings,
) -> std::process::Command {
    let words: Vec<_> = words
        .iter()
        .map(|word| template::fill(word, document))
        .collect();
    let mut program = std::process::Command::new(executable(&words[0], &surroundings.root));
    // No shell is involved, so no quoting can go wrong: each word stays one argument.
    program.args(&words[1..]).current_dir(&surroundings.root);
    surroundings
        .secret_variables
        .iter()
        .for_each(|name| _ = program.env_remove(name));
    program
}

/// Returns what to start: a name to look up, or a path below the root.
fn executable(word: &str, root: &Path) -> PathBuf {
    let has_separator = word.contains('/') || (cfg!(windows) && word.contains('\\'));
    if has_separator {
        root.join(word)
    } else {
        PathBuf::from(word)
    }
}

fn with_causes(error: &dyn StdError) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
