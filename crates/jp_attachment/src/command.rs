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
    handler::Handler,
    keep::{Kept, assemble},
    parallel,
};

/// Resolves `cmd:` to what a program prints.
///
/// The program runs in the workspace root with the environment of this one, stdin empty. It may print as
/// much as a resource may have and take as long as [`Context::timeout`]; beyond that it is ended, with
/// what it started. An exit status other than 0 is part of the content; not to start, to be ended by a
/// signal or by a bound is a [`CommandError`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CommandHandler;

/// How many commands run at once.
const AT_ONCE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

impl Handler for CommandHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["cmd"]
    }

    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError> {
        let failed = AtomicUsize::new(usize::MAX);
        let indexes: Vec<usize> = (0..declared.len()).collect();
        let work = |(): &mut (), index: &usize| {
            // Once an earlier one failed, nobody waits for this one.
            let is_moot = || failed.load(Relaxed) < *index;
            let given = context
                .unavailable
                .tolerate(attach(&declared[*index], &is_moot, context));
            if given.is_err() {
                failed.fetch_min(*index, Relaxed);
            }
            given
        };
        assemble(
            declared,
            parallel::map(&indexes, AT_ONCE, || (), work)?,
            context,
        )
    }
}

fn attach(
    declared: &Declared,
    is_moot: &dyn Fn() -> bool,
    context: &Context<'_>,
) -> Result<Vec<Kept>, AttachError> {
    let Source::Command(line) = &declared.source else {
        return Ok(Vec::new());
    };
    let root = &context.place.root;
    let mut command = Command::new(line.executable(root));
    command.args(line.arguments()).current_dir(root);
    let failed = |source| AttachError::Command {
        input: declared.input.clone(),
        source,
    };
    let output = run_within(command, is_moot, context)?.map_err(failed)?;
    let mut notices = notices(line, &output);
    let resource = content::resource(line, output);
    if resource.formatted.is_some() {
        notices.push(Notice::Garbled {
            name: line.name(),
            charset: "UTF-8".to_owned(),
        });
    }
    let limit = context.limits.max_bytes;
    if resource.content.as_bytes().len() as u64 > limit {
        return Err(failed(CommandError::TooLong { limit }));
    }
    let mut kept = context.keep(declared, resource)?;
    kept.notices.extend(notices);
    Ok(vec![kept])
}

/// Runs a command within the bounds of a context; interruption is the outer error.
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
    if is_moot() {
        return Err(AttachError::Interrupted);
    }
    run(command, &bounds)
        .transpose()
        .ok_or(AttachError::Interrupted)
}

fn notices(line: &CommandLine, output: &Output) -> Vec<Notice> {
    let name = || line.name();
    let is_empty = output.status == 0 && output.stdout.is_empty() && output.stderr.is_empty();
    let empty = is_empty.then(|| Notice::EmptyOutput { name: name() });
    let failed = (output.status != 0).then(|| Notice::ExitStatus {
        name: name(),
        status: output.status,
    });
    let held = output.was_held.then(|| Notice::HeldOutput { name: name() });
    [empty, failed, held].into_iter().flatten().collect()
}
