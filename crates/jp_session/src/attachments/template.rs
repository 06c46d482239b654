//! URI templates of MCP servers: turns `mcp+SERVER+TEMPLATE` into the URI to attach.
//!
//! The values follow the template as `?name=value&…`. jp asks for them if there are none.

use std::sync::Arc;

use crate::{
    attachments::advice,
    error::SessionError,
    notice::Notice,
    person::{Answer, Question},
    servers::{Servers, progress, reading},
    session::{Session, Setup},
};
use jp_attachment::Scheme;
use jp_mcp::Connection;
use mcp_resources::template::{UriTemplate, Value, Values};
use serde_json::{Map, Value as Json};

/// Limit for the completions in a prompt, which should stay on a few rows of a terminal.
const SHOWN: usize = 10;

/// Expands the template in an input and asks for missing values; returns an input without a template unchanged.
pub(crate) fn expand_input(setup: Setup<'_>, input: &str) -> Result<String, SessionError> {
    let Some(parsed) = TemplateInput::parse(input)? else {
        return Ok(input.to_owned());
    };
    let TemplateInput {
        server,
        template,
        mut values,
        ..
    } = parsed;
    // If the user typed some values, they left the optional ones out on purpose.
    let asks_for_all = values.is_empty();
    let mut missing = template.variables();
    missing.retain(|name| {
        !values.contains_key(*name) && (asks_for_all || !is_optional(template.as_str(), name))
    });
    if !missing.is_empty() {
        ask_for_values(setup, input, server, &template, &missing, &mut values)?;
    }
    let uri = template
        .expand(&values)
        .map_err(|error| SessionError::new(format!("failed to attach {input:?}: {error}")))?;
    let expanded = format!("mcp+{server}+{uri}");
    setup.session.person.tell(Notice::TemplateExpanded {
        uri: expanded.clone(),
    });
    Ok(expanded)
}

/// Expands the template in an input with the values in it; `None` if it has no template or no values.
pub fn expand_with_given_values(input: &str) -> Option<String> {
    let parsed = TemplateInput::parse(input).ok()??;
    if parsed.values.is_empty() {
        return None;
    }
    let uri = parsed.template.expand(&parsed.values).ok()?;
    Some(format!("mcp+{}+{uri}", parsed.server))
}

/// Asks the user for the values of variables, with completions of the server.
fn ask_for_values(
    setup: Setup<'_>,
    input: &str,
    server: &str,
    template: &UriTemplate,
    missing: &[&str],
    values: &mut Values,
) -> Result<(), SessionError> {
    let Setup { session, config } = setup;
    let servers = session.servers(config)?;
    servers.check(server)?;
    if !session.can_ask() {
        return Err(missing_values_error(input, template, missing));
    }
    let connection = connect(session, servers, server, input)?;
    let mut prompt = ValuePrompt {
        session,
        server,
        connection: &connection,
        template,
        intro: vec![format!(
            "The MCP server {server} has the template {template}. Enter its values:"
        )],
    };
    for name in missing {
        let value = prompt.ask(name, values)?;
        values.extend(value.map(|value| ((*name).to_owned(), Value::Text(value))));
    }
    Ok(())
}

/// An input with a template, split into its parts.
#[derive(Debug)]
struct TemplateInput<'a> {
    server: &'a str,
    template: UriTemplate,
    values: Values,
}

impl<'a> TemplateInput<'a> {
    /// Splits an input into a template and its values; `None` if there is no template.
    fn parse(input: &'a str) -> Result<Option<Self>, SessionError> {
        let Some((server, text)) = split_input(input).filter(|(_, text)| text.contains('{')) else {
            return Ok(None);
        };
        let mut unknown = None;
        // The first question mark with known names after it counts: a value may contain further ones.
        for at in question_marks(text) {
            let template = parse_template(input, &text[..at])?;
            let pairs = parse_pairs(&text[at + 1..]);
            let variables = template.variables();
            let (known, others): (Vec<_>, Vec<_>) = pairs
                .iter()
                .partition(|(name, _)| variables.contains(&name.as_str()));
            match others.first() {
                None => {
                    return Ok(Some(Self {
                        server,
                        values: collect_values(pairs),
                        template,
                    }));
                }
                Some((name, _)) if !known.is_empty() => {
                    return Err(unknown_variable_error(input, name, &template));
                }
                // The question mark may be one of the template, if values follow later.
                Some((name, _)) => _ = unknown.get_or_insert_with(|| name.clone()),
            }
        }
        let template = parse_template(input, text)?;
        match unknown {
            Some(name) => Err(unknown_variable_error(input, &name, &template)),
            None => Ok(Some(Self {
                server,
                template,
                values: Values::new(),
            })),
        }
    }
}

fn parse_template(input: &str, template: &str) -> Result<UriTemplate, SessionError> {
    UriTemplate::parse(template)
        .map_err(|error| SessionError::new(format!("failed to attach {input:?}: {error}")))
}

/// Splits `mcp+SERVER+REST` into the server and the rest.
fn split_input(input: &str) -> Option<(&str, &str)> {
    let (Scheme::Mcp, rest) = Scheme::split(input)? else {
        return None;
    };
    rest.split_once('+')
}

/// Returns the positions of the question marks that values may follow: those after the last variable.
fn question_marks(text: &str) -> impl Iterator<Item = usize> {
    // A question mark inside an expression, `{?name}`, is an operator.
    let last = text.rfind('{').unwrap_or(0);
    let end = text[last..].find('}').map_or(text.len(), |end| last + end);
    text[end..].match_indices('?').map(move |(at, _)| end + at)
}

/// Parses `name=value&…`, percent-decoded. A plus stays a plus, unlike in a form.
fn parse_pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.replace('+', "%2B").as_bytes())
        .into_owned()
        .collect()
}

/// Collects pairs; a name that occurs more than once has a list.
fn collect_values(pairs: Vec<(String, String)>) -> Values {
    let mut values = Values::new();
    for (name, value) in pairs {
        let value = match values.remove(&name) {
            None => Value::Text(value),
            Some(Value::Text(first)) => Value::List(vec![first, value]),
            Some(Value::List(mut list)) => {
                list.push(value);
                Value::List(list)
            }
            // No pair makes a map.
            Some(map @ Value::Map(_)) => map,
        };
        values.insert(name, value);
    }
    values
}

/// Returns whether a variable only occurs in query expressions, `{?name}` or `{&name}`: without a value, these expand
/// to nothing.
///
/// This parses RFC 6570 expressions again, because [`UriTemplate`] lists the variables but not their operators.
fn is_optional(template: &str, name: &str) -> bool {
    template
        .split('{')
        .skip(1)
        .filter_map(|part| Some(part.split_once('}')?.0))
        .filter(|expression| {
            let variables = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
            // A modifier may follow the name: `{var:3}`, `{list*}`.
            variables
                .split(',')
                .any(|variable| variable.split([':', '*']).next() == Some(name))
        })
        .all(|expression| expression.starts_with(['?', '&']))
}

fn unknown_variable_error(input: &str, name: &str, template: &UriTemplate) -> SessionError {
    let variables = template.variables().join(", ");
    SessionError::new(format!(
        "failed to attach {input:?}: the template has no variable {name:?}; it has: {variables}"
    ))
    .with_hint(
        "write the values after the whole template, percent-encoded: `mcp+SERVER+TEMPLATE?NAME=VALUE&NAME=VALUE`.",
    )
}

fn missing_values_error(input: &str, template: &UriTemplate, missing: &[&str]) -> SessionError {
    let mut names = Vec::new();
    for name in missing {
        let remark = match is_optional(template.as_str(), name) {
            true => " (optional)",
            false => "",
        };
        names.push(format!("{name}{remark}"));
    }
    let (server, _) = split_input(input).unwrap_or_default();
    let form: Vec<_> = template
        .variables()
        .iter()
        .map(|name| format!("{name}=…"))
        .collect();
    SessionError::new(format!(
        "failed to attach {input:?}: the template has no values for {}, and there is no terminal to ask you on",
        names.join(", ")
    ))
    .with_hint(format!(
        "write the values after the template, percent-encoded: 'mcp+{server}+{template}?{}'.",
        form.join("&")
    ))
}

/// Connects to the server, which completes values.
fn connect(
    session: &Session,
    servers: &Servers,
    server: &str,
    input: &str,
) -> Result<Arc<Connection>, SessionError> {
    servers.approve_or_ask(session, server)?;
    let what = format!("Waiting for the MCP server {server}");
    let connected = progress::with_server(session, server, &what, |caller| {
        servers.connect_for(server, caller)
    });
    connected.map_err(|refusal| advice::failure(reading::read_error(input, server, refusal.into())))
}

/// Prompts for the values of a template.
struct ValuePrompt<'a> {
    session: &'a Session,
    server: &'a str,
    connection: &'a Connection,
    template: &'a UriTemplate,
    /// Lines to show before the next prompt.
    intro: Vec<String>,
}

impl ValuePrompt<'_> {
    /// Asks for a value; returns `None` if the user leaves an optional one out.
    fn ask(&mut self, name: &str, others: &Values) -> Result<Option<String>, SessionError> {
        let is_optional = is_optional(self.template.as_str(), name);
        let mut beginning = String::new();
        loop {
            let completions = self.complete(name, &beginning, others);
            let intro = std::mem::take(&mut self.intro);
            let typed = match self.session.person.ask(Question::Line {
                intro: &intro,
                prompt: &prompt_text(name, &beginning, is_optional, &completions),
            }) {
                Some(Answer::Line(line)) => line,
                Some(Answer::Interrupted) => return Err(SessionError::interrupted()),
                _ => {
                    return Err(SessionError::new(format!(
                        "the variable {name:?} of the template has no value"
                    )));
                }
            };
            match typed.strip_suffix('?') {
                // Without completions, a question mark is a part of the value.
                Some(start) if self.connection.about().has_completions => {
                    start.clone_into(&mut beginning)
                }
                _ if !typed.is_empty() => return Ok(Some(typed)),
                _ if is_optional => return Ok(None),
                _ => self.intro.push("A value is required.".to_owned()),
            }
        }
    }

    /// Returns the server's completions of a value; none if it has none or fails.
    fn complete(&self, name: &str, beginning: &str, others: &Values) -> Vec<String> {
        let others: Map<String, Json> = others
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), Json::from(value.as_text()?))))
            .collect();
        let what = format!("Asking {} for values", self.server);
        progress::with_server(self.session, self.server, &what, |caller| {
            self.connection
                .complete(self.template.as_str(), name, beginning, &others, caller)
        })
        .unwrap_or_default()
    }
}

fn prompt_text(name: &str, beginning: &str, is_optional: bool, completions: &[String]) -> String {
    let mut remarks = Vec::new();
    let shown = completions
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match (completions.len(), beginning.is_empty()) {
        (0, true) => {}
        (0, false) => remarks.push(format!("no value begins with {beginning}")),
        (count, _) if count > SHOWN => {
            remarks.push(format!(
                "{shown} and {} more: type a beginning and `?` to list them",
                count - SHOWN
            ));
        }
        _ => remarks.push(shown),
    }
    remarks.extend(is_optional.then(|| "optional".to_owned()));
    if remarks.is_empty() {
        format!("{name}:")
    } else {
        format!("{name} ({}):", remarks.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> (String, Vec<(String, Value)>) {
        let written = TemplateInput::parse(input).unwrap().unwrap();
        (
            written.template.to_string(),
            written.values.into_iter().collect(),
        )
    }

    fn values(values: &[(&str, &str)]) -> Vec<(String, Value)> {
        values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
            .collect()
    }

    #[test]
    fn values_follow_the_whole_template() {
        for (text, template, expected) in [
            ("note:{name}{?lang}", "note:{name}{?lang}", &[][..]),
            (
                "note:{name}{?lang}?name=a",
                "note:{name}{?lang}",
                &[("name", "a")],
            ),
            (
                "note:{name}{?lang}?name=a%20b%26&lang=d+e",
                "note:{name}{?lang}",
                &[("lang", "d+e"), ("name", "a b&")],
            ),
            (
                "note:{name}?name=what?",
                "note:{name}",
                &[("name", "what?")],
            ),
            (
                "note:{name}?fixed=1?name=a",
                "note:{name}?fixed=1",
                &[("name", "a")],
            ),
            (
                "x:{a}?q={b}?a=1&b=",
                "x:{a}?q={b}",
                &[("a", "1"), ("b", "")],
            ),
            ("x:{a}?a=1}2", "x:{a}", &[("a", "1}2")]),
            (
                "git+https://h/{+p}?p=a/b",
                "git+https://h/{+p}",
                &[("p", "a/b")],
            ),
        ] {
            assert_eq!(
                read(&format!("MCP+s+{text}")),
                (template.to_owned(), values(expected)),
                "{text}"
            );
        }
        let (_, given) = read("mcp+s+x:{?t*}?t=a&t=b&t=c");
        assert_eq!(given, [("t".to_owned(), Value::from(["a", "b", "c"]))]);
    }

    #[test]
    fn input_without_a_template_is_left_alone() {
        for input in [
            "mcp+s+note:one?name=a",
            "mcp+s",
            "mcp+s+",
            "a{b}",
            "src/{a,b}.rs",
            "https://h/{a}",
            "cmd:a + b + {c}",
        ] {
            assert!(TemplateInput::parse(input).unwrap().is_none(), "{input}");
        }
    }

    #[test]
    fn error_names_the_unknown_variable() {
        let unknown = |text: &str| TemplateInput::parse(text).unwrap_err().message;
        for text in [
            "mcp+s+note:{name}{?lang}?nmae=a",
            "mcp+s+note:{name}{?lang}?lang=a&nmae=a",
        ] {
            let expected = r#"the template has no variable "nmae"; it has: name, lang"#;
            assert!(unknown(text).ends_with(expected), "{}", unknown(text));
        }
        assert!(
            unknown("mcp+s+note:{na").contains("failed to attach"),
            "{}",
            unknown("mcp+s+note:{na")
        );
    }

    #[test]
    fn variables_of_a_query_are_optional() {
        for (template, name, expected) in [
            ("note:{name}{?lang}", "name", false),
            ("note:{name}{?lang}", "lang", true),
            ("x:{?a,b*}{&c:3}", "b", true),
            ("x:{?a,b*}{&c:3}", "c", true),
            ("x:{a}{?a}", "a", false),
            ("x:{+path,b}", "b", false),
        ] {
            assert_eq!(is_optional(template, name), expected, "{template} {name}");
        }
    }

    #[test]
    fn prompt_lists_completions() {
        let offered = |count: usize| {
            (0..count)
                .map(|index| format!("v{index}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(prompt_text("name", "", false, &[]), "name:");
        assert_eq!(prompt_text("name", "", true, &[]), "name (optional):");
        assert_eq!(
            prompt_text("name", "", true, &offered(2)),
            "name (v0, v1; optional):"
        );
        assert_eq!(
            prompt_text("name", "x", false, &[]),
            "name (no value begins with x):"
        );
        assert_eq!(
            prompt_text("name", "", false, &offered(12)),
            "name (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9 and 2 more: type a beginning and `?` to list them):"
        );
    }
}
