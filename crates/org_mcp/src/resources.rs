//! Registers the files as resources.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use mcp_resources::{Bundle, Parameters, Partial, ReadError, Resource, ResourceTemplate};
use percent_encoding::percent_decode_str;

use crate::files::{File, Files};
use crate::org::{Outline, segment};

/// The most bytes of values that complete a variable. Real files have fewer. It bounds the cost of a hostile
/// file.
const MAX_OFFERED: usize = 10 * 1024 * 1024;

/// Makes the resources of the files, and the templates for their outlines and headlines.
///
/// The templates are lenient, because people write names such as `office/notes.org`, and IDs, unencoded.
pub(crate) fn resources(files: &Files) -> Bundle {
    let templates = [
        outline_template(files),
        headline_template(files),
        id_template(files),
    ];
    Bundle::new()
        .resources(files.iter().cloned().map(file_resource))
        .templates(templates)
}

fn file_resource(file: File) -> Resource {
    let (uri, name, path) = (file.uri(), file.name.clone(), file.path.clone());
    let description = format!("The whole Org file; {uri}/outline has its headlines");
    Resource::new(uri, name, move || file.read())
        .description(description)
        .mime_type("text/plain")
        .source(path)
}

fn outline_template(files: &Files) -> ResourceTemplate {
    let reading = files.clone();
    let template = ResourceTemplate::new(
        "org://{filename}/outline",
        "Org file outline",
        move |parameters: Parameters| {
            let text = reading.find(parameters.text("filename")?)?.read()?;
            Ok::<_, ReadError>(Outline::new(&text).to_json())
        },
    );
    with_filename(files, template)
        .description(
            "The headlines of an Org file as a tree, each with its level, its path and its ID, if it has one",
        )
        .mime_type("application/json")
}

fn headline_template(files: &Files) -> ResourceTemplate {
    let (reading, completing) = (files.clone(), files.clone());
    let template = ResourceTemplate::new(
        "org://{filename}/headline/{+path}",
        "Org headline by path",
        move |parameters: Parameters| {
            let file = reading.find(parameters.text("filename")?)?;
            find_headline(&file.read()?, &parameters)
        },
    );
    with_filename(files, template)
        .description(
            "A headline of an Org file and everything below it; the path contains the headlines above it, such as Tasks/Urgent; \
             write / in a title as %2F",
        )
        .mime_type("text/plain")
        .complete("path", move |partial| complete_path(&completing, &partial))
}

/// Completes the path of a headline of the file that the client has chosen before.
fn complete_path(files: &Files, partial: &Partial) -> Vec<String> {
    let file = partial
        .others
        .get("filename")
        .and_then(|name| files.find(name).ok());
    let text = file.and_then(|file| file.read().ok()).unwrap_or_default();
    complete(Outline::new(&text).paths(), partial)
}

fn id_template(files: &Files) -> ResourceTemplate {
    let (reading, completing, sources) = (files.clone(), files.clone(), files.clone());
    ResourceTemplate::new(
        "org://id/{id}",
        "Org headline by ID",
        move |parameters: Parameters| find_by_id(&reading, parameters.text("id")?),
    )
    .lenient()
    .description("The headline with this ID property, in any file, and everything below it")
    .mime_type("text/plain")
    .complete("id", move |partial| complete_id(&completing, &partial))
    // A headline may be moved to any file.
    .source(move |_| {
        sources
            .iter()
            .map(|file| file.path.clone())
            .collect::<Vec<_>>()
    })
}

fn find_by_id(files: &Files, id: &str) -> Result<String, ReadError> {
    files
        .texts()
        // Most files don't have the ID, and this is much faster than finding their headlines.
        .filter(|text| text.contains(id))
        .find_map(|text| Outline::new(&text).with_id(id).map(str::to_owned))
        .ok_or_else(|| ReadError::bad_parameters(format!("no headline has the ID {id:?}")))
}

fn complete_id(files: &Files, partial: &Partial) -> Vec<String> {
    let ids = files.texts().flat_map(|text| {
        Outline::new(&text)
            .ids()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    complete(ids, partial)
}

/// Adds what all templates with `{filename}` have.
fn with_filename(files: &Files, template: ResourceTemplate) -> ResourceTemplate {
    let (completing, sources) = (files.clone(), files.clone());
    template
        .lenient()
        .complete("filename", move |partial| {
            complete(completing.iter().map(|file| file.name.clone()), &partial)
        })
        .source(move |parameters| {
            Some(
                sources
                    .find(parameters.text("filename").ok()?)
                    .ok()?
                    .path
                    .clone(),
            )
        })
}

/// Returns the values that start with what the user typed, each once.
fn complete(values: impl Iterator<Item = String>, partial: &Partial) -> Vec<String> {
    let (mut bytes, mut known) = (0, HashSet::new());
    values
        .filter(|value| value.starts_with(&partial.value))
        .filter(|value| known.insert(value.clone()))
        .take_while(|value| {
            bytes += value.len();
            bytes <= MAX_OFFERED
        })
        .collect()
}

/// Finds the headline that a URI names.
///
/// A client that expands the template leaves `%2F` in a path alone, so the parts are decoded one by one. A
/// client that encodes the whole path is right after decoding it once; that is tried second.
fn find_headline(text: &str, parameters: &Parameters) -> Result<String, ReadError> {
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
    found.map(str::to_owned).ok_or_else(|| {
        ReadError::bad_parameters(format!(
            "there is no headline {path:?} in the file; its outline has the paths of all"
        ))
    })
}
