//! `jp mcp read`.

use std::{thread, time::Duration};

use crate::{
    cmd::mcp::{Chosen, SHOWN_URI, shown},
    context::Context,
    error::{Code, Failure},
};
use jp_mcp::{Change, Read};
use jp_resource::Resource;
use jp_session::{
    servers::{Servers, advice},
    size,
    text::one_line,
};
use serde_json::json;

/// How often it is looked whether the server said that something changed.
const TICK: Duration = Duration::from_millis(50);

/// Reads a resource, and writes its raw content.
pub(super) fn once(
    context: &Context<'_>,
    servers: &Servers,
    server: &str,
    uri: &str,
) -> Result<Code, Failure> {
    servers.check(server)?;
    let one = Chosen {
        servers,
        names: vec![server],
    };
    let is_json = context.output.is_json();
    let read = one.ask_one(context, |connection, caller| match is_json {
        // A document says all that is known of it, also where that is in the list.
        true => connection.resource(uri, caller),
        false => connection.read(uri, caller),
    })?;
    write(context, server, &read)?;
    Ok(Code::Done)
}

/// Reads a resource, and again each time the server says that it changed, until the person ends it.
pub(super) fn each_change(
    context: &Context<'_>,
    servers: &Servers,
    server: &str,
    uri: &str,
) -> Result<Code, Failure> {
    if context.output.is_json() {
        return Err(Failure::usage(
            "--watch writes again and again, and --format json is one document",
        )
        .with_hint("leave one of them out."));
    }
    servers.check(server)?;
    let one = Chosen {
        servers,
        names: vec![server],
    };
    one.ask_one(context, |connection, caller| {
        connection.subscribe(&[uri], caller)
    })?;
    loop {
        // What changes from here on is read again.
        let read = one.ask_one(context, |connection, caller| connection.read(uri, caller))?;
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

/// Waits until the server says that a resource changed, or something below it.
fn await_change(
    context: &Context<'_>,
    servers: &Servers,
    server: &str,
    uri: &str,
) -> Result<(), Failure> {
    let connection = servers.connect(server).map_err(advice::failure)?;
    let is_meant = |change: &Change| matches!(change, Change::Resource(changed) if is_at_or_below(changed, uri));
    while !connection.changes().iter().any(is_meant) {
        context.session.interrupt().check()?;
        if connection.is_closed() {
            let hint = "`jp mcp read` starts it again.";
            return Err(
                Failure::new(format!("the MCP server `{server}` has ended")).with_hint(hint)
            );
        }
        thread::sleep(TICK);
    }
    Ok(())
}

/// Returns whether what changed is a resource or a part of it (MCP 2025-11-25, "Subscriptions": a sub-resource).
fn is_at_or_below(changed: &str, uri: &str) -> bool {
    changed.strip_prefix(uri).is_some_and(|rest| {
        rest.is_empty() || uri.ends_with(['/', '?', '#']) || rest.starts_with(['/', '?', '#'])
    })
}

fn write(context: &Context<'_>, server: &str, read: &Read) -> Result<(), Failure> {
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
        [] => context.output.status("It has no content."),
        [one] => return context.output.content(one.content.as_bytes()),
        several => return write_several(context, several),
    }
    Ok(())
}

/// Writes contents one after the other; one that can't be shown on a terminal is no reason to leave others out.
fn write_several(context: &Context<'_>, contents: &[Resource]) -> Result<(), Failure> {
    let mut written = Ok(());
    for resource in contents {
        let bytes = resource.content.as_bytes();
        let kind = shown(resource.mime_type.as_deref().unwrap_or("no type"));
        let size = size::bytes(bytes.len() as u64);
        context.output.status(&format!(
            "{} ({kind}, {size}):",
            one_line(&resource.uri, SHOWN_URI)
        ));
        match context.output.content(bytes) {
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
    fn change_is_of_the_resource_or_of_what_is_below_it() {
        for changed in ["note:1", "note:1/a", "note:1?lang=de", "note:1#end"] {
            assert!(is_at_or_below(changed, "note:1"), "{changed}");
        }
        for changed in ["note:10", "note:", "note:1-draft", "note:2"] {
            assert!(!is_at_or_below(changed, "note:1"), "{changed}");
        }
        assert!(is_at_or_below("notes:/a/b", "notes:/a/"));
    }
}
