mod content;
mod line;
mod words;

use std::{
    num::NonZeroUsize,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

pub use self::line::CommandLine;
pub(crate) use jp_process::Output;
pub use jp_process::ProcessError as CommandError;
use jp_process::{Bounds, run};

use crate::{
    AttachError, Context, Declared, Notice, Resolved, Source,
    keep::{KeptResource, assemble},
    parallel,
};

/// The number of commands that run at once. Most of them wait for a disk or a network, so this
/// doesn't depend on the number of processors.
const MAX_RUNNING: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

/// Resolves `cmd:` to the output of a program.
///
/// The program runs in the workspace root with the environment of jp and empty stdin. If it prints
/// more than a resource may have, or takes longer than [`Context::timeout`], it is ended together
/// with all processes that it started. An exit status other than 0 is part of the content. A
/// program that can't start, is ended by a signal or exceeds a limit is a [`CommandError`].
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let first_failed = AtomicUsize::new(usize::MAX);
    let indexes: Vec<usize> = (0..declared.len()).collect();
    let kept = parallel::map(
        &indexes,
        MAX_RUNNING,
        || (),
        |(), index| {
            // If an earlier command failed, its error is the result and this command is not needed.
            let is_moot = || first_failed.load(Relaxed) < *index;
            let kept = context
                .unavailable
                .tolerate(attach(&declared[*index], &is_moot, context));
            if kept.is_err() {
                first_failed.fetch_min(*index, Relaxed);
            }
            kept
        },
    )?;
    assemble(declared, kept, context)
}

fn attach(
    declared: &Declared,
    is_moot: &dyn Fn() -> bool,
    context: &Context<'_>,
) -> Result<Vec<KeptResource>, AttachError> {
    let Source::Command(line) = &declared.source else {
        return Ok(Vec::new());
    };
    let root = &context.place.root;
    let mut command = Command::new(line.executable(root));
    command.args(line.arguments()).current_dir(root);
    let output =
        run_within(command, is_moot, context)?.map_err(|source| command_error(declared, source))?;
    let mut notices = notices(line, &output);
    let resource = content::resource(line, output);
    if resource.formatted.is_some() {
        notices.push(Notice::Garbled {
            name: line.name(),
            charset: "UTF-8".to_owned(),
        });
    }
    // stdout and stderr were bounded while they were read. Together they can still be too long.
    let limit = context.limits.max_bytes;
    if resource.content.as_bytes().len() as u64 > limit {
        return Err(command_error(declared, CommandError::TooLong { limit }));
    }
    let mut kept = context.keep(declared, resource)?;
    kept.notices.extend(notices);
    Ok(vec![kept])
}

fn command_error(declared: &Declared, source: CommandError) -> AttachError {
    AttachError::Command {
        input: declared.input.clone(),
        source,
    }
}

/// Runs a command within the limits of a context. Interruption is the outer error.
pub(crate) fn run_within(
    command: Command,
    is_moot: &dyn Fn() -> bool,
    context: &Context<'_>,
) -> Result<Result<Output, CommandError>, AttachError> {
    let is_moot = || is_moot() || context.check_cancelled().is_err();
    let bounds = Bounds {
        timeout: context.timeout,
        max_bytes: context.limits.max_bytes,
        is_moot: &is_moot,
    };
    // Don't start a program whose result is not needed.
    if is_moot() {
        return Err(AttachError::Interrupted);
    }
    run(command, &bounds)
        .transpose()
        .ok_or(AttachError::Interrupted)
}

fn notices(line: &CommandLine, output: &Output) -> Vec<Notice> {
    let (name, status) = (line.name(), output.status);
    let mut notices = Vec::new();
    if status != 0 {
        let name = name.clone();
        notices.push(Notice::ExitStatus { name, status });
    } else if output.stdout.is_empty() && output.stderr.is_empty() {
        notices.push(Notice::EmptyOutput { name: name.clone() });
    }
    if output.was_held {
        notices.push(Notice::HeldOutput { name });
    }
    notices
}
