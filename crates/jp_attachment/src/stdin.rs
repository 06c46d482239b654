use std::io::Read as _;

use crate::{AttachError, Context, Declared, Resolved, snapshot::resolve_once};

/// Resolves `-` to the content of standard input, which becomes a snapshot.
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    resolve_once("stdin", "stdin", declared, context, |first| {
        let bytes = read(context)?;
        context.check_length(&first.input, bytes.len())?;
        if bytes.is_empty() {
            return Err(AttachError::EmptyStdin);
        }
        Ok(bytes)
    })
}

/// Reads to the end, or one byte more than the limit, which shows that there is too much.
fn read(context: &Context<'_>) -> Result<Vec<u8>, AttachError> {
    let limit = context.limits.max_bytes.saturating_add(1);
    let mut bytes = Vec::new();
    // The capacity of a pipe on Linux, so that one call can empty it.
    let mut chunk = vec![0; 64 << 10];
    while (bytes.len() as u64) < limit {
        wait(context)?;
        let length = std::io::stdin()
            .lock()
            .read(&mut chunk)
            .map_err(|source| AttachError::Stdin { source })?;
        if length == 0 {
            break;
        }
        if let Some(progress) = context.progress {
            progress.read(length as u64);
        }
        bytes.extend_from_slice(&chunk[..length]);
    }
    Ok(bytes)
}

/// Waits until there is something to read. Fails if the user interrupts.
#[cfg(unix)]
fn wait(context: &Context<'_>) -> Result<(), AttachError> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    // How soon Ctrl-C takes effect; a person notices no shorter time.
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    loop {
        context.check_cancelled()?;
        match poll(
            &mut [PollFd::new(&std::io::stdin(), PollFlags::IN)],
            Some(&patience),
        ) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // Reading returns the error, if there is one.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
}

#[cfg(not(unix))]
fn wait(context: &Context<'_>) -> Result<(), AttachError> {
    context.check_cancelled()
}
