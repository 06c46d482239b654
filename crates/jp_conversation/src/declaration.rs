use std::fmt;

use jp_resource::uri::{encode_argument, encode_program, split_mcp};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

/// A request to attach something, in its stored form: a URL, paths relative to the workspace.
///
/// Two declarations are the same if their text is. The handlers give the text its meaning; a
/// conversation only needs to know which declarations it has delivered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Declaration(String);

impl Declaration {
    /// Wraps the stored form.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the stored form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the declaration excludes files from other declarations (`file:target/**?exclude`).
    #[must_use]
    pub fn is_exclude(&self) -> bool {
        let query = self
            .0
            .strip_prefix("file:")
            .and_then(|rest| rest.split_once('?'));
        query.is_some_and(|(_, query)| query.split('&').any(|parameter| parameter == "exclude"))
    }

    /// Returns the MCP server of an MCP resource (`mcp+SERVER+URI`).
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        split_mcp(&self.0)
            .filter(|(_, uri)| !uri.is_empty())
            .map(|(server, _)| server)
    }

    /// Returns true if the declaration only names a snapshot, whose source can't be found again: a file
    /// outside the workspace, piped input, the clipboard, a long `data:` URL.
    #[must_use]
    pub fn names_snapshot(&self) -> bool {
        let is_hashed_data = self.0.starts_with("data:")
            && self
                .0
                .strip_suffix(',')
                .is_some_and(|header| header.contains(";sha256="));
        is_hashed_data
            || ["external:", "stdin:", "clip:"]
                .iter()
                .any(|scheme| self.0.starts_with(scheme))
    }

    /// Reads a declaration of a configuration: a URL, or a table `{type, path, params}`.
    ///
    /// A table becomes `TYPE://PATH?PARAMS`. `args` of older tables counts as `arg`. A table of files becomes
    /// `file:PATH` or `file:PATH?exclude`; files have no other parameter. The error describes the mistake.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(Self::new(text)),
            Value::Object(table) => table_url(table).map(Self),
            _ => Err(format!("a declaration is a string or a table, not {value}")),
        }
    }
}

impl fmt::Display for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Declaration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

fn table_url(table: &Map<String, Value>) -> Result<String, String> {
    let field = |key: &str| {
        let value = table.get(key).and_then(Value::as_str);
        value.ok_or_else(|| format!("a declaration table needs `{key}` as a string"))
    };
    let (scheme, path) = (field("type")?, field("path")?);
    let parameters = parameters(table)?;
    if scheme == "file" {
        let query = if is_excluded(parameters)? {
            "?exclude"
        } else {
            ""
        };
        return Ok(format!("file:{path}{query}"));
    }
    let mut url = match scheme {
        "cmd" => format!("cmd://{}", encode_program(path)),
        // The path is SERVER+URI, and a server's URI must not be encoded again.
        "mcp" => format!("mcp+{path}"),
        scheme => {
            let names: Vec<_> = path.split('/').map(encode_argument).collect();
            format!("{scheme}://{}", names.join("/"))
        }
    };
    let pairs = parameters
        .into_iter()
        .flatten()
        .flat_map(|(key, value)| values(value).map(move |value| (key.as_str(), value)));
    for (index, (key, value)) in pairs.enumerate() {
        let key = if key == "args" { "arg" } else { key };
        url.push(if index == 0 { '?' } else { '&' });
        url.push_str(&format!(
            "{}={}",
            encode_argument(key),
            encode_argument(&value)
        ));
    }
    Ok(url)
}

fn parameters(table: &Map<String, Value>) -> Result<Option<&Map<String, Value>>, String> {
    match table.get("params") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(parameters)) => Ok(Some(parameters)),
        Some(other) => Err(format!("`params` of a declaration is a table, not {other}")),
    }
}

/// Returns true if the parameters of a table of files make it an exclude. An empty value is true, as in
/// `?exclude=`.
fn is_excluded(parameters: Option<&Map<String, Value>>) -> Result<bool, String> {
    let mut is_excluded = false;
    for (key, value) in parameters.into_iter().flatten() {
        if key != "exclude" {
            return Err(format!(
                "a declaration of files has no parameter `{key}`, only `exclude`"
            ));
        }
        let values: Vec<String> = values(value).collect();
        is_excluded = match values.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["true" | ""] => true,
            ["false"] => false,
            _ => {
                return Err(format!(
                    "the parameter `exclude` is true or false, not {value}"
                ));
            }
        };
    }
    Ok(is_excluded)
}

fn values(value: &Value) -> Box<dyn Iterator<Item = String> + '_> {
    match value {
        Value::Array(values) => Box::new(values.iter().flat_map(values_of_scalar)),
        value => Box::new(values_of_scalar(value)),
    }
}

fn values_of_scalar(value: &Value) -> std::option::IntoIter<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
    .into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn excludes_are_recognised_by_their_query() {
        assert!(Declaration::new("file:target/**?exclude").is_exclude());
        assert!(!Declaration::new("file:a%3Fexclude").is_exclude());
        assert!(!Declaration::new("https://example.com/?exclude").is_exclude());
    }

    #[test]
    fn tables_become_urls() {
        for (table, url) in [
            (
                json!({"type": "file", "path": "README.md", "refresh": "notify"}),
                "file:README.md",
            ),
            (
                json!({"type": "cmd", "path": "git", "params": {"arg": ["diff", "--cached"]}}),
                "cmd://git?arg=diff&arg=--cached",
            ),
            (
                json!({"type": "cmd", "path": "rg", "params": {"args": ["a&b"], "description": "x y"}}),
                "cmd://rg?arg=a%26b&description=x%20y",
            ),
            (
                json!({"type": "file", "path": "*.lock", "params": {"exclude": true}}),
                "file:*.lock?exclude",
            ),
            (
                json!({"type": "file", "path": "a", "params": {"exclude": ["true"]}}),
                "file:a?exclude",
            ),
            (
                json!({"type": "file", "path": "a", "params": {"exclude": ""}}),
                "file:a?exclude",
            ),
            (
                json!({"type": "file", "path": "a", "params": {"exclude": "false"}}),
                "file:a",
            ),
            (
                json!({"type": "file", "path": "a", "params": null}),
                "file:a",
            ),
            (
                json!({"type": "cmd", "path": "scripts/a (b)"}),
                "cmd://scripts/a%20%28b%29",
            ),
            (
                json!({"type": "http", "path": "example.com/docs"}),
                "http://example.com/docs",
            ),
            (
                json!({"type": "mcp", "path": "docs+note:a b%7e/c?d"}),
                "mcp+docs+note:a b%7e/c?d",
            ),
        ] {
            assert_eq!(Declaration::from_json(&table), Ok(Declaration::new(url)));
        }
    }

    #[test]
    fn scheme_of_a_server_ignores_case() {
        for (text, server) in [
            ("mcp+docs+note:x", Some("docs")),
            ("MCP+docs+note:x", Some("docs")),
            ("mcp+docs+", None),
            ("mcp+docs", None),
            ("file:mcp+docs+x", None),
        ] {
            assert_eq!(Declaration::new(text).server(), server, "{text}");
        }
    }

    #[test]
    fn errors_name_the_mistake_in_a_table() {
        let file = |params| json!({"type": "file", "path": "a", "params": params});
        for (value, reason) in [
            (
                json!({"type": "cmd"}),
                "a declaration table needs `path` as a string",
            ),
            (
                json!(["file:a"]),
                r#"a declaration is a string or a table, not ["file:a"]"#,
            ),
            (
                file(json!("exclude")),
                r#"`params` of a declaration is a table, not "exclude""#,
            ),
            (
                file(json!({"exclude": true, "depth": 2})),
                "a declaration of files has no parameter `depth`, only `exclude`",
            ),
            (
                file(json!({"exclude": "*.rs"})),
                r#"the parameter `exclude` is true or false, not "*.rs""#,
            ),
            (
                file(json!({"exclude": {}})),
                "the parameter `exclude` is true or false, not {}",
            ),
        ] {
            assert_eq!(Declaration::from_json(&value), Err(reason.to_owned()));
        }
    }
}
