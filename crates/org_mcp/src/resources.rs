//! The files as resources: what an MCP client sees of them.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use mcp_resources::{Bundle, Parameters, Partial, ReadError, Resource, ResourceTemplate};
use percent_encoding::percent_decode_str;

use crate::files::{File, Files};
use crate::org::{Outline, segment};

/// How many bytes of values are offered at most, which is more than real files have.
const MAX_OFFERED: usize = 10 * 1024 * 1024;

/// Makes the resources of the files, and the templates of what is in them.
///
/// The templates are lenient: a file is `office/notes.org` where there are two of its name, and people write that, and
/// IDs, as they are.
pub(crate) fn resources(files: &Files) -> Bundle {
    let templates = [outline(files), headline(files), id(files)];
    Bundle::new()
        .resources(files.iter().cloned().map(whole))
        .templates(templates)
}

fn whole(file: File) -> Resource {
    let (uri, name, path) = (file.uri(), file.name.clone(), file.path.clone());
    let description = format!("The whole Org file; {uri}/outline has its headlines");
    Resource::new(uri, name, move || file.read())
        .description(description)
        .mime_type("text/plain")
        .source(path)
}

fn outline(files: &Files) -> ResourceTemplate {
    let readable = files.clone();
    let read = move |parameters: Parameters| {
        let text = readable.named(parameters.text("filename")?)?.read()?;
        Ok::<_, ReadError>(Outline::new(&text).to_json())
    };
    of_file(files, ResourceTemplate::new("org://{filename}/outline", "Org file outline", read))
        .description(
            "The headlines of an Org file as a tree, each with its level, its path and its ID, if it has one",
        )
        .mime_type("application/json")
}

fn headline(files: &Files) -> ResourceTemplate {
    let (readable, completed) = (files.clone(), files.clone());
    let read = move |parameters: Parameters| {
        let file = readable.named(parameters.text("filename")?)?;
        section(&file.read()?, &parameters)
    };
    let complete = move |partial: Partial| {
        let file = partial
            .others
            .get("filename")
            .and_then(|name| completed.named(name).ok());
        let text = file.and_then(|file| file.read().ok()).unwrap_or_default();
        offered(Outline::new(&text).paths(), &partial)
    };
    of_file(files, ResourceTemplate::new("org://{filename}/headline/{+path}", "Org headline by path", read))
        .description(
            "A headline of an Org file and all below it; the path has the headlines above it, as Tasks/Urgent, \
             with %2F for a / of a title",
        )
        .mime_type("text/plain")
        .complete("path", complete)
}

fn id(files: &Files) -> ResourceTemplate {
    let (readable, completed, sources) = (files.clone(), files.clone(), files.clone());
    let read = move |parameters: Parameters| {
        let id = parameters.text("id")?;
        let mut texts = readable.texts().filter(|text| text.contains(id));
        let found = texts.find_map(|text| Outline::new(&text).with_id(id).map(str::to_owned));
        found.ok_or_else(|| ReadError::bad_parameters(format!("no headline has the ID {id:?}")))
    };
    let complete = move |partial: Partial| {
        let of_text = |text: String| {
            Outline::new(&text)
                .ids()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        offered(completed.texts().flat_map(of_text), &partial)
    };
    ResourceTemplate::new("org://id/{id}", "Org headline by ID", read)
        .lenient()
        .description(
            "The headline with this ID property, in whichever file it is, and all below it",
        )
        .mime_type("text/plain")
        .complete("id", complete)
        // A headline may be moved to any of them.
        .source(move |_| {
            sources
                .iter()
                .map(|file| file.path.clone())
                .collect::<Vec<_>>()
        })
}

/// What all templates of `{filename}` have.
fn of_file(files: &Files, template: ResourceTemplate) -> ResourceTemplate {
    let (completed, sources) = (files.clone(), files.clone());
    template
        .lenient()
        .complete("filename", move |partial| {
            offered(completed.iter().map(|file| file.name.clone()), &partial)
        })
        .source(move |parameters| {
            Some(
                sources
                    .named(parameters.text("filename").ok()?)
                    .ok()?
                    .path
                    .clone(),
            )
        })
}

/// The values that go on from what was typed, each once.
fn offered(values: impl Iterator<Item = String>, partial: &Partial) -> Vec<String> {
    let mut bytes = 0;
    let fits = |value: &String| {
        bytes += value.len();
        bytes <= MAX_OFFERED
    };
    let mut known = HashSet::new();
    let wanted = values.filter(|value| value.starts_with(&partial.value));
    wanted
        .filter(|value| known.insert(value.clone()))
        .take_while(fits)
        .collect()
}

/// Finds the headline that a URI names.
///
/// A client that fills the template in leaves `%2F` as it is, so the parts are decoded one by one; one that encodes all
/// of a path has it right after decoding once.
fn section(text: &str, parameters: &Parameters) -> Result<String, ReadError> {
    let path = parameters.text("path")?;
    let raw = parameters
        .raw("path")
        .and_then(|raw| raw.as_text())
        .unwrap_or_default();
    let segments = raw
        .split('/')
        .map(|part| segment(&percent_decode_str(part).decode_utf8_lossy()));
    let outline = Outline::new(text);
    let found = outline
        .at(&segments.collect::<Vec<_>>().join("/"))
        .or_else(|| outline.at(path));
    let unknown =
        || format!("there is no headline {path:?} in the file; its outline has the paths of all");
    found
        .map(str::to_owned)
        .ok_or_else(|| ReadError::bad_parameters(unknown()))
}
