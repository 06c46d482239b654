//! `jp mcp read`: the content of a resource.

use std::{thread, time::Duration};

use crate::{
    cmd::mcp::{ChosenServers, SHOWN_URI, shorten},
    context::Context,
    error::{Code, SessionError},
};
use jp_mcp::{Change, Read};
use jp_resource::Resource;
use jp_session::{
    servers::{Servers, advice},
    size,
    text::one_line,
};
use serde_json::json;

/// The time between two checks for a change: 50 ms, which a user doesn't notice.
const TICK: Duration = Duration::from_millis(50);

/// Reads a resource and writes its raw content.
pub(super) fn read_once(
    context: &Context<'_>,
    servers: &Servers,
    server: &str,
    uri: &str,
) -> Result<Code, SessionError> {
    let chosen = ChosenServers::only(servers, server)?;
    let is_json = context.output.is_json();
    let read = chosen.ask_one(context, |connection, caller| match is_json {
        // The JSON also contains the resource's entry in the server's list.
        true => connection.resource(uri, caller),
        false => connection.read(uri, caller),
    })?;
    write(context, server, &read)?;
    Ok(Code::Done)
}

/// Reads a resource, and reads it again after each change that the server reports, until the user ends it.
pub(super) fn watch(
    context: &Context<'_>,
    servers: &Servers,
    server: &str,
    uri: &str,
) -> Result<Code, SessionError> {
    if context.output.is_json() {
        return Err(SessionError::usage(
            "--watch writes the content repeatedly, but --format json writes one document",
        )
        .with_hint("remove one of the two options."));
    }
    let chosen = ChosenServers::only(servers, server)?;
    chosen.ask_one(context, |connection, caller| {
        connection.subscribe(&[uri], caller)
    })?;
    loop {
        // The read follows the subscription, so a change between the two is reported, too.
        let read = chosen.ask_one(context, |connection, caller| connection.read(uri, caller))?;
        write(context, server, &read)?;
        if context.output.is_closed() {
            return Ok(Code::Done);
        }
        await_change(context, servers, server, uri)?;
        context
            .output
            .status(&format!("{} changed.", one_line(uri, SHOWN_URI)));
    }
}

/// Waits until the server reports a change of the resource or of a part of it.
fn await_change(
    context: &Context<'_>,
    servers: &Servers,
    server: &str,
    uri: &str,
) -> Result<(), SessionError> {
    let connection = servers.connect(server).map_err(advice::failure)?;
    while !connection
        .changes()
        .iter()
        .any(|change| matches!(change, Change::Resource(changed) if is_at_or_below(changed, uri)))
    {
        context.session.interrupt().check()?;
        if connection.is_closed() {
            return Err(
                SessionError::new(format!("the MCP server `{server}` has ended"))
                    .with_hint("run `jp mcp read` again to restart it."),
            );
        }
        thread::sleep(TICK);
    }
    Ok(())
}

/// Returns whether a URI is that of a resource or of a part of it (MCP 2025-11-25, "Subscriptions": a sub-resource).
fn is_at_or_below(changed: &str, uri: &str) -> bool {
    changed.strip_prefix(uri).is_some_and(|rest| {
        rest.is_empty() || uri.ends_with(['/', '?', '#']) || rest.starts_with(['/', '?', '#'])
    })
}

fn write(context: &Context<'_>, server: &str, read: &Read) -> Result<(), SessionError> {
    for warning in &read.warnings {
        context.output.warn(&format!(
            "the MCP server `{server}`: {}",
            one_line(warning, SHOWN_URI)
        ));
    }
    if context.output.is_json() {
        let mut document = json!({"contents": read.contents});
        if let Some(ttl) = read.ttl {
            document["ttlMs"] = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).into();
        }
        return context.output.json(&document);
    }
    match read.contents.as_slice() {
        [] => context.output.status("The resource has no content."),
        [one] => return context.output.content(one.content.as_bytes()),
        several => return write_several(context, several),
    }
    Ok(())
}

/// Writes several contents. If a terminal can't show one, writes the others and returns the error at the end.
fn write_several(context: &Context<'_>, contents: &[Resource]) -> Result<(), SessionError> {
    let mut written = Ok(());
    for resource in contents {
        let bytes = resource.content.as_bytes();
        let kind = shorten(resource.mime_type.as_deref().unwrap_or("no type"));
        let size = size::bytes(bytes.len() as u64);
        context.output.status(&format!(
            "{} ({kind}, {size}):",
            one_line(&resource.uri, SHOWN_URI)
        ));
        match context.output.content(bytes) {
            // The next heading starts a new line on a terminal; a file keeps the exact content.
            Ok(()) if !bytes.ends_with(b"\n") => _ = context.output.end_line_on_screen()?,
            Ok(()) => {}
            Err(failure) => written = Err(failure),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_uri_is_the_resource_or_below_it() {
        for changed in ["note:1", "note:1/a", "note:1?lang=de", "note:1#end"] {
            assert!(is_at_or_below(changed, "note:1"), "{changed}");
        }
        for changed in ["note:10", "note:", "note:1-draft", "note:2"] {
            assert!(!is_at_or_below(changed, "note:1"), "{changed}");
        }
        assert!(is_at_or_below("notes:/a/b", "notes:/a/"));
    }
}
