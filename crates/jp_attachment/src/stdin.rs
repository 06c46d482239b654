use std::io::Read as _;

use jp_resource::{Resource, ResourceContent};

use crate::{
    AttachError, Context, Declared, Resolved, classify::classify, handler::Handler, keep::assemble,
};

/// Resolves `-` to what is piped into the command.
///
/// The URI is `stdin:` with the checksum of the content. It names a snapshot: nothing reads it again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StdinHandler;

impl Handler for StdinHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["stdin"]
    }

    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError> {
        let Some(first) = declared.first() else {
            return Ok(Resolved::default());
        };
        let given = read(context).and_then(|bytes| {
            let size = bytes.len() as u64;
            let limit = context.limits.max_bytes;
            if size > limit {
                return Err(AttachError::TooLong {
                    input: first.input.clone(),
                    limit,
                });
            }
            if bytes.is_empty() {
                return Err(AttachError::EmptyStdin);
            }
            context.keep(first, resource(bytes)).map(|kept| vec![kept])
        });
        assemble(&declared[..1], vec![given], context)
    }
}

/// Reads to the end, and one byte more than is allowed at most.
fn read(context: &Context<'_>) -> Result<Vec<u8>, AttachError> {
    let limit = context.limits.max_bytes.saturating_add(1);
    let mut bytes = Vec::new();
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

/// Waits until there is something to read, or the person interrupts.
#[cfg(unix)]
fn wait(context: &Context<'_>) -> Result<(), AttachError> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
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
            // What is amiss with it, reading will say.
            Ok(_) | Err(_) => return Ok(()),
        }
    }
}

#[cfg(not(unix))]
fn wait(context: &Context<'_>) -> Result<(), AttachError> {
    context.check_cancelled()
}

fn resource(bytes: Vec<u8>) -> Resource {
    let (content, mime_type) = classify(bytes, "stdin");
    snapshot("stdin", content)
        .with_mime_type(mime_type)
        .with_name("stdin")
}

/// Makes a resource whose URI is a scheme and the checksum of its content.
pub(crate) fn snapshot(scheme: &str, content: ResourceContent) -> Resource {
    let checksum = content.blob_ref().checksum;
    Resource::new(format!("{scheme}:{checksum}"), content)
}
