//! `jp mcp resources` and `jp mcp templates`.

use crate::{
    cmd::mcp::{Chosen, SHOWN_URI, first_line, shown},
    context::Context,
    error::{Code, Failure},
    output::table,
};
use jp_mcp::{Caller, Connection, Listed, ResourceInfo, ServerError, TemplateInfo};
use jp_session::{
    servers::{Refusal, advice},
    size,
    text::one_line,
};
use serde_json::{Value, json};

/// What is listed: how it is asked for, and how one of it is written.
struct Kind<T> {
    noun: &'static str,
    ask: fn(&Connection, &dyn Caller) -> Result<Listed<T>, ServerError>,
    header: &'static [&'static str],
    cells: fn(&T) -> Vec<String>,
    document: fn(&T) -> Value,
}

/// Lists resources.
pub(super) fn resources(context: &Context<'_>, chosen: &Chosen<'_>) -> Result<Code, Failure> {
    let kind = Kind {
        noun: "resource",
        ask: |connection, caller| connection.resources(caller),
        header: &["server", "name", "type", "size", "URI"],
        cells: |resource: &ResourceInfo| {
            vec![
                shown(resource.title.as_ref().unwrap_or(&resource.name)),
                shown(resource.mime_type.as_deref().unwrap_or("-")),
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

/// Lists templates of resources.
pub(super) fn templates(context: &Context<'_>, chosen: &Chosen<'_>) -> Result<Code, Failure> {
    let kind = Kind {
        noun: "template",
        ask: |connection, caller| connection.templates(caller),
        header: &["server", "name", "type", "template", "description"],
        cells: |template: &TemplateInfo| {
            vec![
                shown(template.title.as_ref().unwrap_or(&template.name)),
                shown(template.mime_type.as_deref().unwrap_or("-")),
                one_line(&template.uri_template, SHOWN_URI),
                first_line(template.description.as_deref()),
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

/// Lists; a server that fails is passed over, unless it is the only one.
fn list<T: Send>(
    context: &Context<'_>,
    chosen: &Chosen<'_>,
    kind: &Kind<T>,
) -> Result<Code, Failure> {
    let answers = chosen.ask(context, kind.ask)?;
    let count = answers.len();
    let mut lists = Vec::new();
    for (server, answer) in answers {
        match answer {
            Ok(listed) => {
                warn_of(context, &server, &listed);
                lists.push((server, listed.items));
            }
            Err(refusal) if count == 1 => return Err(advice::failure(refusal).into()),
            Err(refusal) => left_out(context, refusal),
        }
    }
    if count > 0 && lists.is_empty() {
        return Ok(Code::Failed);
    }
    write(context, &lists, kind)?;
    Ok(Code::Done)
}

fn left_out(context: &Context<'_>, refusal: Refusal) {
    // Whoever did not agree knows, and where nobody could it was said.
    if !matches!(refusal, Refusal::NotApproved { .. }) {
        advice::warn(&*context.session.person, refusal);
    }
}

fn write<T>(
    context: &Context<'_>,
    lists: &[(String, Vec<T>)],
    kind: &Kind<T>,
) -> Result<(), Failure> {
    let items = || {
        lists
            .iter()
            .flat_map(|(server, items)| items.iter().map(move |item| (server, item)))
    };
    if context.output.is_json() {
        let document = |(server, item)| {
            let mut document = json!({"server": server});
            let fields = (kind.document)(item);
            let said = fields
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(_, value)| !value.is_null());
            said.for_each(|(key, value)| document[key] = value.clone());
            document
        };
        return context
            .output
            .json(&items().map(document).collect::<Vec<_>>());
    }
    if items().next().is_none() {
        if !lists.is_empty() {
            context
                .output
                .status(&format!("There are no {}s.", kind.noun));
        }
        return Ok(());
    }
    let header = kind.header.iter().map(|name| (*name).to_owned()).collect();
    let rows = items().map(|(server, item)| [vec![server.clone()], (kind.cells)(item)].concat());
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    table(&rows)
        .iter()
        .try_for_each(|line| context.output.line(line.trim_end()))
}

/// Says what of a list was passed over, and why there is no more of it.
pub(super) fn warn_of<T>(context: &Context<'_>, server: &str, listed: &Listed<T>) {
    /// How many are told one by one.
    const TOLD: usize = 5;
    let warnings = listed.warnings.iter().take(TOLD);
    warnings.for_each(|warning| {
        context.output.warn(&format!(
            "the MCP server `{server}`: {}",
            one_line(warning, SHOWN_URI)
        ))
    });
    if let Some(more) = listed
        .warnings
        .len()
        .checked_sub(TOLD)
        .filter(|more| *more > 0)
    {
        context.output.warn(&format!(
            "the MCP server `{server}`: {} more are passed over",
            size::thousands(more as u64)
        ));
    }
    if let Some(cut) = &listed.cut {
        let count = size::thousands(listed.items.len() as u64);
        let reason = one_line(&cut.fault.to_string(), SHOWN_URI);
        context.output.warn(&format!(
            "the MCP server `{server}`: of its list the first {count} are shown, as {reason}"
        ));
    }
}
