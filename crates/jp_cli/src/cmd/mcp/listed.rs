//! `jp mcp resources` and `jp mcp templates`.

use crate::{
    cmd::mcp::{ChosenServers, SHOWN_URI, shorten, shorten_first_line},
    context::Context,
    error::{Code, SessionError},
};
use jp_mcp::{Caller, Connection, Listed, ResourceInfo, ServerError, TemplateInfo};
use jp_session::{
    servers::{Refusal, advice},
    size,
    text::one_line,
};
use serde_json::{Map, Value, json};

/// A kind of list: its request, its table and its JSON.
struct ListKind<T> {
    noun: &'static str,
    ask: fn(&Connection, &dyn Caller) -> Result<Listed<T>, ServerError>,
    header: &'static [&'static str],
    cells: fn(&T) -> Vec<String>,
    document: fn(&T) -> Value,
}

/// Lists the resources of servers.
pub(super) fn list_resources(
    context: &Context<'_>,
    chosen: &ChosenServers<'_>,
) -> Result<Code, SessionError> {
    let kind = ListKind {
        noun: "resource",
        ask: |connection, caller| connection.resources(caller),
        header: &["server", "name", "type", "size", "URI"],
        cells: |resource: &ResourceInfo| {
            vec![
                // The title is for people, the name for programs (MCP 2025-11-25, "Resources").
                shorten(resource.title.as_ref().unwrap_or(&resource.name)),
                shorten(resource.mime_type.as_deref().unwrap_or("-")),
                resource.size.map_or_else(|| "-".to_owned(), size::bytes),
                one_line(&resource.uri, SHOWN_URI),
            ]
        },
        document: |resource| {
            json!({
                "uri": resource.uri, "name": resource.name, "title": resource.title,
                "description": resource.description, "mimeType": resource.mime_type, "size": resource.size,
                "annotations": resource.annotations,
            })
        },
    };
    list(context, chosen, &kind)
}

/// Lists the resource templates of servers.
pub(super) fn list_templates(
    context: &Context<'_>,
    chosen: &ChosenServers<'_>,
) -> Result<Code, SessionError> {
    let kind = ListKind {
        noun: "template",
        ask: |connection, caller| connection.templates(caller),
        header: &["server", "name", "type", "template", "description"],
        cells: |template: &TemplateInfo| {
            vec![
                shorten(template.title.as_ref().unwrap_or(&template.name)),
                shorten(template.mime_type.as_deref().unwrap_or("-")),
                one_line(&template.uri_template, SHOWN_URI),
                shorten_first_line(template.description.as_deref()),
            ]
        },
        document: |template| {
            json!({
                "uriTemplate": template.uri_template, "name": template.name, "title": template.title,
                "description": template.description, "mimeType": template.mime_type,
            })
        },
    };
    list(context, chosen, &kind)
}

/// Asks the servers and writes their lists. Skips servers that fail, unless there is only one.
fn list<T: Send>(
    context: &Context<'_>,
    chosen: &ChosenServers<'_>,
    kind: &ListKind<T>,
) -> Result<Code, SessionError> {
    let answers = chosen.ask(context, kind.ask)?;
    let count = answers.len();
    let mut lists = Vec::new();
    for (server, answer) in answers {
        match answer {
            Ok(listed) => {
                warn_of_gaps(context, &server, &listed);
                lists.push((server, listed.items));
            }
            Err(refusal) if count == 1 => return Err(advice::failure(refusal)),
            // The user knows about a server that they did not approve, and without a terminal jp has already warned of it.
            Err(Refusal::NotApproved { .. }) => {}
            Err(refusal) => advice::warn(&*context.session.person, refusal),
        }
    }
    // Every server failed, and its warning is printed.
    if count > 0 && lists.is_empty() {
        return Ok(Code::Failed);
    }
    write(context, &lists, kind)?;
    Ok(Code::Done)
}

fn write<T>(
    context: &Context<'_>,
    lists: &[(String, Vec<T>)],
    kind: &ListKind<T>,
) -> Result<(), SessionError> {
    let items: Vec<_> = lists
        .iter()
        .flat_map(|(server, items)| items.iter().map(move |item| (server, item)))
        .collect();
    if context.output.is_json() {
        let documents = items.iter().map(|(server, item)| {
            let mut document = Map::from_iter([("server".to_owned(), json!(server))]);
            if let Value::Object(fields) = (kind.document)(item) {
                document.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
            }
            document
        });
        return context.output.json(&documents.collect::<Vec<_>>());
    }
    if items.is_empty() {
        // Without any server, `choose_servers` has said so.
        if !lists.is_empty() {
            context
                .output
                .status(&format!("There are no {}s.", kind.noun));
        }
        return Ok(());
    }
    let mut rows = vec![kind.header.iter().map(|name| (*name).to_owned()).collect()];
    rows.extend(
        items
            .iter()
            .map(|(server, item)| [vec![(*server).clone()], (kind.cells)(item)].concat()),
    );
    context.output.table(&rows)
}

/// Warns of entries that were skipped, and of a list that is incomplete.
pub(super) fn warn_of_gaps<T>(context: &Context<'_>, server: &str, listed: &Listed<T>) {
    /// The number of skipped entries that get a warning each, so that a faulty server doesn't flood the terminal.
    const WARNED: usize = 5;
    let warnings = listed.warnings.iter().take(WARNED);
    warnings.for_each(|warning| {
        context.output.warn(&format!(
            "the MCP server `{server}`: {}",
            one_line(warning, SHOWN_URI)
        ))
    });
    let more = listed.warnings.len().saturating_sub(WARNED);
    if more > 0 {
        context.output.warn(&format!(
            "the MCP server `{server}`: {} more are skipped",
            size::thousands(more as u64)
        ));
    }
    if let Some(cut) = &listed.cut {
        let count = size::thousands(listed.items.len() as u64);
        let reason = one_line(&cut.fault.to_string(), SHOWN_URI);
        context.output.warn(&format!(
            "the MCP server `{server}`: only the first {count} are shown because {reason}"
        ));
    }
}
