//! URI templates from a shell:
//!
//! ```text
//! $ uri_template expand 'org://{file}/headline/{+path}' '{"file":"notes.org","path":"Tasks/Urgent"}'
//! org://notes.org/headline/Tasks/Urgent
//! $ uri_template match 'org://{file}/headline/{+path}' org://notes.org/headline/Tasks/Urgent
//! {"file":"notes.org","path":"Tasks/Urgent"}
//! ```
//!
//! JSON is an object with a text, a number, a list or an object of these for each variable; the values of a match are
//! texts and lists. Ends with 1 and a message on stderr where that fails, with 2 for wrong arguments.

#![expect(clippy::print_stderr, reason = "a program that prints")]

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use mcp_resources::template::{Matcher, UriTemplate, Value, Values};
use serde_json::{Map, Value as Json};

const USAGE: &str = "\
usage: uri_template expand TEMPLATE JSON   prints the URI that the values make, as '{\"path\": \"a/b\", \"tags\": [\"x\"]}'
       uri_template match TEMPLATE URI     prints the values that make the URI, as JSON
Ends with 1 where the template, the values or the URI don't fit, and says why.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["expand", template, values] => expand(template, values),
        ["match", template, uri] => find(template, uri),
        ["--help" | "-h"] => Ok(USAGE.to_owned()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result.and_then(|line| Ok(print(&line)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line; who reads no more of it has what it wants.
fn print(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Returns the part of an argument for a message.
fn shown(argument: &str) -> String {
    match argument.char_indices().nth(200) {
        Some((end, _)) => format!("{:?} and so on", &argument[..end]),
        None => format!("{argument:?}"),
    }
}

fn expand(template: &str, values: &str) -> Result<String, Box<dyn Error>> {
    let template = UriTemplate::parse(template)?;
    let values = serde_json::from_str(values)
        .map_err(|error| format!("the values have to be a JSON object: {error}"))
        .and_then(values_of)?;
    Ok(template.expand(&values)?)
}

fn find(template: &str, uri: &str) -> Result<String, Box<dyn Error>> {
    let matcher = Matcher::new(&UriTemplate::parse(template)?)?;
    let found = matcher
        .matches(uri)
        .ok_or_else(|| format!("{} does not match {}", shown(uri), shown(template)))?;
    let variables = found.variables().iter();
    let object: Map<_, _> = variables
        .map(|variable| (variable.name.to_string(), json(&variable.value)))
        .collect();
    Ok(Json::Object(object).to_string())
}

/// `null` is no value, numbers and booleans are texts.
fn values_of(object: Map<String, Json>) -> Result<Values, String> {
    let defined = object.into_iter().filter(|(_, value)| !value.is_null());
    defined
        .map(|(name, value)| value_of(&name, value).map(|value| (name, value)))
        .collect()
}

fn value_of(name: &str, value: Json) -> Result<Value, String> {
    let nested = || format!("{name:?} has to be a text, a list of texts or an object of texts");
    let text = |value| text_of(value).ok_or_else(nested);
    match value {
        Json::Array(items) => {
            let items = items.into_iter().filter(|item| !item.is_null());
            Ok(Value::List(items.map(text).collect::<Result<_, _>>()?))
        }
        Json::Object(entries) => {
            let entries = entries.into_iter().filter(|(_, value)| !value.is_null());
            let entries = entries.map(|(key, value)| Ok((key, text(value)?)));
            Ok(Value::Map(entries.collect::<Result<_, String>>()?))
        }
        value => text(value).map(Value::Text),
    }
}

fn text_of(value: Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text),
        Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(items) => Json::from(items.as_slice()),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), Json::from(value.as_str())))
            .collect(),
    }
}
