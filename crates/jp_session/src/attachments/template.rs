//! Templates of MCP servers: from `mcp+SERVER+TEMPLATE` to the URI that is attached.
//!
//! The values are what follows the template, `?name=value&…`, else what the person types.

use std::sync::Arc;

use crate::{
    attachments::advice,
    error::SessionError,
    notice::Notice,
    person::{Answer, Question},
    servers::{Servers, reading, watched},
    session::{Session, Setup},
};
use jp_attachment::Scheme;
use jp_mcp::{Caller, Connection};
use mcp_resources::template::{UriTemplate, Value, Values};
use serde_json::{Map, Value as Json};

/// How many of the values that a server offers are shown at once.
const SHOWN: usize = 10;

/// Returns what was typed with its template expanded; what has none, as it is.
pub(crate) fn expanded(setup: Setup<'_>, input: &str) -> Result<String, SessionError> {
    let Setup { session, config } = setup;
    let Some(written) = Written::read(input)? else {
        return Ok(input.to_owned());
    };
    let Written {
        input,
        server,
        template,
        mut values,
    } = written;
    let asks_for_all = values.is_empty();
    let wanted = template.variables().into_iter().filter(|name| {
        !values.contains_key(*name) && (asks_for_all || !is_optional(template.as_str(), name))
    });
    let wanted: Vec<&str> = wanted.collect();
    if !wanted.is_empty() {
        let servers = session.servers(config)?;
        servers.check(server)?;
        if !session.can_ask() {
            return Err(nobody_to_ask(input, &template, &wanted));
        }
        let connection = connection(session, servers, server, input)?;
        let mut asking = Asking {
            session,
            server,
            connection: &connection,
            template: &template,
            intro: vec![format!(
                "The MCP server {server} has the template {template}. Enter its values:"
            )],
        };
        for name in wanted {
            values.extend(
                asking
                    .value(name, &values)?
                    .map(|value| (name.to_owned(), Value::Text(value))),
            );
        }
    }
    let uri = template
        .expand(&values)
        .map_err(|error| SessionError::new(format!("failed to attach {input:?}: {error}")))?;
    let expanded = format!("mcp+{server}+{uri}");
    session.person.tell(Notice::TemplateExpanded {
        uri: expanded.clone(),
    });
    Ok(expanded)
}

/// Returns what was typed with its template expanded, where that takes nothing but what was typed.
pub fn expanded_by_itself(input: &str) -> Option<String> {
    let Written {
        server,
        template,
        values,
        ..
    } = Written::read(input).ok()??;
    if values.is_empty() {
        return None;
    }
    template
        .expand(&values)
        .ok()
        .map(|uri| format!("mcp+{server}+{uri}"))
}

/// What was typed, taken apart.
#[derive(Debug)]
struct Written<'a> {
    input: &'a str,
    server: &'a str,
    template: UriTemplate,
    values: Values,
}

impl<'a> Written<'a> {
    /// Takes a template apart from its values; `None` where there is no template.
    fn read(input: &'a str) -> Result<Option<Self>, SessionError> {
        let Some((server, text)) = parts(input).filter(|(_, text)| text.contains('{')) else {
            return Ok(None);
        };
        let mut unknown = None;
        for at in question_marks(text) {
            let template = parsed(input, &text[..at])?;
            let given = pairs(&text[at + 1..]);
            let variables = template.variables();
            let is_known = |(name, _): &(String, String)| variables.contains(&name.as_str());
            let stranger = given
                .iter()
                .find(|pair| !is_known(pair))
                .map(|(name, _)| name.clone());
            match stranger {
                None => {
                    return Ok(Some(Self {
                        input,
                        server,
                        values: collected(given),
                        template,
                    }));
                }
                Some(name) if given.iter().any(is_known) => {
                    return Err(no_variable(input, &name, &template));
                }
                // The question mark may be one of the template, if values follow later.
                Some(name) => _ = unknown.get_or_insert(name),
            }
        }
        let template = parsed(input, text)?;
        match unknown {
            Some(name) => Err(no_variable(input, &name, &template)),
            None => Ok(Some(Self {
                input,
                server,
                template,
                values: Values::new(),
            })),
        }
    }
}

fn parsed(input: &str, template: &str) -> Result<UriTemplate, SessionError> {
    let failure = |error| SessionError::new(format!("failed to attach {input:?}: {error}"));
    UriTemplate::parse(template).map_err(failure)
}

/// Takes the server, and what is to be read from it, out of `mcp+SERVER+REST`.
fn parts(input: &str) -> Option<(&str, &str)> {
    let (Scheme::Mcp, rest) = Scheme::split(input)? else {
        return None;
    };
    rest.split_once('+')
}

/// Finds the question marks that values may follow: those after the last variable.
fn question_marks(text: &str) -> impl Iterator<Item = usize> {
    let last = text.rfind('{').unwrap_or(0);
    let end = text[last..].find('}').map_or(text.len(), |end| last + end);
    text[end..].match_indices('?').map(move |(at, _)| end + at)
}

/// Reads `name=value&…`, percent-decoded; a plus is one.
fn pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.replace('+', "%2B").as_bytes())
        .into_owned()
        .collect()
}

/// What is given more than once is a list.
fn collected(given: Vec<(String, String)>) -> Values {
    let mut values = Values::new();
    for (name, value) in given {
        let value = match values.remove(&name) {
            None => Value::Text(value),
            Some(Value::Text(first)) => Value::List(vec![first, value]),
            Some(Value::List(mut list)) => {
                list.push(value);
                Value::List(list)
            }
            Some(map @ Value::Map(_)) => map,
        };
        values.insert(name, value);
    }
    values
}

/// Returns whether a variable is one of a query everywhere, `{?name}` or `{&name}`: those are left out without a value.
///
/// This reads RFC 6570 a second time, for [`UriTemplate`] says which variables there are, and not of which operator each is.
fn is_optional(template: &str, name: &str) -> bool {
    let expressions = template
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}'));
    let mut its = expressions
        .map(|(expression, _)| expression)
        .filter(|expression| {
            let names = expression
                .trim_start_matches(['+', '#', '.', '/', ';', '?', '&'])
                .split(',');
            names
                .map(|one| one.split([':', '*']).next().unwrap_or(one))
                .any(|one| one == name)
        });
    its.all(|expression| expression.starts_with(['?', '&']))
}

fn no_variable(input: &str, name: &str, template: &UriTemplate) -> SessionError {
    let variables = template.variables().join(", ");
    SessionError::new(format!(
        "failed to attach {input:?}: the template has no variable {name:?}; it has: {variables}"
    ))
    .with_hint(
        "write the values after the whole template, percent-encoded: `mcp+SERVER+TEMPLATE?NAME=VALUE&NAME=VALUE`.",
    )
}

fn nobody_to_ask(input: &str, template: &UriTemplate, wanted: &[&str]) -> SessionError {
    let told = |name: &&str| {
        let remark = if is_optional(template.as_str(), name) {
            " (optional)"
        } else {
            ""
        };
        format!("{name}{remark}")
    };
    let variables = wanted.iter().map(told).collect::<Vec<_>>().join(", ");
    let (server, _) = parts(input).unwrap_or_default();
    let form: Vec<_> = template
        .variables()
        .iter()
        .map(|name| format!("{name}=…"))
        .collect();
    SessionError::new(format!(
        "failed to attach {input:?}: the template has no values for {variables}, and there is no terminal to ask you on"
    ))
    .with_hint(format!("write the values after the template, percent-encoded: 'mcp+{server}+{template}?{}'.", form.join("&")))
}

/// Starts the server that knows which values there are.
fn connection(
    session: &Session,
    servers: &Servers,
    server: &str,
    input: &str,
) -> Result<Arc<Connection>, SessionError> {
    servers.agreed(session, server)?;
    let what = format!("Waiting for the MCP server {server}");
    let connected = watched::with(session, server, &what, |person| {
        servers.connect_for(server, person)
    });
    connected.map_err(|refusal| advice::failure(reading::failed(input, server, refusal.into())))
}

/// Somebody who is asked for the values.
struct Asking<'a> {
    session: &'a Session,
    server: &'a str,
    connection: &'a Connection,
    template: &'a UriTemplate,
    /// What to say before the next question.
    intro: Vec<String>,
}

impl Asking<'_> {
    /// Asks for a value; none is one of its own where the variable may be left out.
    fn value(&mut self, name: &str, others: &Values) -> Result<Option<String>, SessionError> {
        let is_optional = is_optional(self.template.as_str(), name);
        let mut beginning = String::new();
        loop {
            let offered = self.offered(name, &beginning, others);
            let intro = std::mem::take(&mut self.intro);
            let typed = match self.session.person.ask(Question::Line {
                intro: &intro,
                prompt: &prompt(name, &beginning, is_optional, &offered),
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
                Some(start) if self.connection.about().has_completions => {
                    start.clone_into(&mut beginning)
                }
                _ if !typed.is_empty() => return Ok(Some(typed)),
                _ if is_optional => return Ok(None),
                _ => self.intro.push("A value is required.".to_owned()),
            }
        }
    }

    /// Returns what the server offers; nothing where it does not say.
    fn offered(&self, name: &str, beginning: &str, others: &Values) -> Vec<String> {
        let text =
            |(name, value): (&String, &Value)| Some((name.clone(), Json::from(value.as_text()?)));
        let others: Map<String, Json> = others.iter().filter_map(text).collect();
        let complete = |caller: &dyn Caller| {
            self.connection
                .complete(self.template.as_str(), name, beginning, &others, caller)
        };
        let what = format!("Asking {} for values", self.server);
        watched::with(self.session, self.server, &what, |person| complete(person))
            .unwrap_or_default()
    }
}

fn prompt(name: &str, beginning: &str, is_optional: bool, offered: &[String]) -> String {
    let mut remarks = Vec::new();
    let shown = offered
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match (offered.len(), beginning.is_empty()) {
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
        let written = Written::read(input).unwrap().unwrap();
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
    fn values_are_what_follows_the_whole_template() {
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
    fn what_is_no_template_is_left_alone() {
        for input in [
            "mcp+s+note:one?name=a",
            "mcp+s",
            "mcp+s+",
            "a{b}",
            "src/{a,b}.rs",
            "https://h/{a}",
            "cmd:a + b + {c}",
        ] {
            assert!(Written::read(input).unwrap().is_none(), "{input}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_the_variables() {
        let unknown = |text: &str| Written::read(text).unwrap_err().message;
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
    fn variables_of_a_query_may_be_left_out() {
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
    fn prompt_says_what_is_offered() {
        let offered = |count: usize| {
            (0..count)
                .map(|index| format!("v{index}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(prompt("name", "", false, &[]), "name:");
        assert_eq!(prompt("name", "", true, &[]), "name (optional):");
        assert_eq!(
            prompt("name", "", true, &offered(2)),
            "name (v0, v1; optional):"
        );
        assert_eq!(
            prompt("name", "x", false, &[]),
            "name (no value begins with x):"
        );
        assert_eq!(
            prompt("name", "", false, &offered(12)),
            "name (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9 and 2 more: type a beginning and `?` to list them):"
        );
    }
}
