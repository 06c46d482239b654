//! Reads a server's lists of tools, resources and templates, page by page.

use std::{collections::HashSet, fmt, time::Instant};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{
    Caller, Connection, Fault, Listed, ResourceInfo, ServerError, TemplateInfo, ToolInfo,
    raw::quote, tool_headers,
};

/// The code of an error for a method that is unknown (JSON-RPC 2.0, "Error object").
const METHOD_NOT_FOUND: i32 = -32601;

/// A list that servers have.
#[derive(Clone, Copy)]
struct Kind {
    method: &'static str,
    key: &'static str,
    what: &'static str,
    limit: usize,
}

impl Connection {
    /// Lists the tools. Over HTTP, skips tools with parameters that must become headers but can't.
    pub fn tools(&self, caller: &dyn Caller) -> Result<Listed<ToolInfo>, ServerError> {
        let kind = Kind {
            method: "tools/list",
            key: "tools",
            what: "tools",
            limit: self.limits.tools,
        };
        let mut listed = self.list::<ToolInfo>(kind, self.about().has_tools, caller)?;
        if self.process.is_none() && self.about().is_stateless() {
            let warnings = &mut listed.warnings;
            listed.items.retain(|tool| {
                let checked = tool_headers::check(&tool.input_schema);
                warnings.extend(
                    checked
                        .as_ref()
                        .err()
                        .map(|reason| describe_skipped(&json!(tool.name), kind, reason)),
                );
                checked.is_ok()
            });
        }
        Ok(listed)
    }

    /// Lists the resources.
    pub fn resources(&self, caller: &dyn Caller) -> Result<Listed<ResourceInfo>, ServerError> {
        let kind = Kind {
            method: "resources/list",
            key: "resources",
            what: "resources",
            limit: self.limits.resources,
        };
        none_if_unknown(self.list(kind, self.about().has_resources, caller))
    }

    /// Lists the templates of resources.
    pub fn templates(&self, caller: &dyn Caller) -> Result<Listed<TemplateInfo>, ServerError> {
        let kind = Kind {
            method: "resources/templates/list",
            key: "resourceTemplates",
            what: "templates",
            limit: self.limits.resources,
        };
        none_if_unknown(self.list(kind, self.about().has_resources, caller))
    }

    /// Asks the server to complete the value of a template's variable (MCP, "Completion"). `values` has those
    /// of other variables.
    pub fn complete(
        &self,
        template: &str,
        variable: &str,
        beginning: &str,
        values: &Map<String, Value>,
        caller: &dyn Caller,
    ) -> Result<Vec<String>, ServerError> {
        if !self.about().has_completions {
            return Ok(Vec::new());
        }
        let params = json!({
            "ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": variable, "value": beginning},
            "context": {"arguments": values},
        });
        let answer = self.request("completion/complete", params, caller)?;
        let offered = answer
            .pointer("/completion/values")
            .and_then(Value::as_array);
        // The protocol allows 100 values.
        Ok(offered
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .take(100)
            .collect())
    }

    /// Reads all pages within the bounds. If a page fails, returns the items before it.
    fn list<T: DeserializeOwned>(
        &self,
        kind: Kind,
        is_offered: bool,
        caller: &dyn Caller,
    ) -> Result<Listed<T>, ServerError> {
        let mut listed = Listed::default();
        if !is_offered {
            return Ok(listed);
        }
        let start = Instant::now();
        let mut cursor: Option<String> = None;
        let mut seen = HashSet::new();
        for page in 0.. {
            let params = cursor
                .as_ref()
                .map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let answer = match self.request(kind.method, params, caller) {
                Ok(answer) => answer,
                Err(error) if page == 0 => return Err(error),
                Err(error) => return Ok(listed.cut_by(error)),
            };
            if let Some(fault) = listed.add_page(&answer, kind) {
                return Ok(listed.cut_by(self.error(fault)));
            }
            cursor = answer
                .get("nextCursor")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let Some(cursor) = &cursor else { break };
            let most = self.longest();
            if start.elapsed() > most {
                let (method, timeout) = (kind.method.to_owned(), most);
                return Ok(listed.cut_by(self.error(Fault::Timeout { method, timeout })));
            }
            if page + 1 >= self.limits.pages {
                let fault = Fault::TooMany {
                    what: "pages",
                    limit: self.limits.pages,
                };
                return Ok(listed.cut_by(self.error(fault)));
            }
            // Otherwise, a server that repeats its cursors would be asked up to the bound on pages.
            if !seen.insert(cursor.clone()) {
                let (method, cursor) = (kind.method.to_owned(), cursor.clone());
                return Ok(listed.cut_by(self.error(Fault::CursorLoop { method, cursor })));
            }
        }
        Ok(listed)
    }
}

/// Replaces the error of an unknown method with an empty list. A server with resources may have no
/// templates, and the other way round.
fn none_if_unknown<T>(listed: Result<Listed<T>, ServerError>) -> Result<Listed<T>, ServerError> {
    match listed {
        Err(ServerError {
            fault:
                Fault::Refused {
                    code: METHOD_NOT_FOUND,
                    ..
                },
            ..
        }) => Ok(Listed::default()),
        listed => listed,
    }
}

impl<T: DeserializeOwned> Listed<T> {
    /// Adds a page. Returns a fault if no more pages can be added.
    fn add_page(&mut self, page: &Value, kind: Kind) -> Option<Fault> {
        let Some(items) = page.get(kind.key).and_then(Value::as_array) else {
            return Some(Fault::Malformed(format!(
                "its answer to `{}` has no `{}`",
                kind.method, kind.key
            )));
        };
        for item in items {
            if self.items.len() + self.warnings.len() >= kind.limit {
                return Some(Fault::TooMany {
                    what: kind.what,
                    limit: kind.limit,
                });
            }
            match T::deserialize(item) {
                Ok(item) => self.items.push(item),
                Err(error) => self
                    .warnings
                    .push(describe_skipped(name(item), kind, &error)),
            }
        }
        None
    }

    fn cut_by(mut self, error: ServerError) -> Self {
        self.cut = Some(error);
        self
    }
}

/// Returns the name of an item, or its URI.
fn name(item: &Value) -> &Value {
    item.get("name").or(item.get("uri")).unwrap_or(&Value::Null)
}

fn describe_skipped(name: &Value, kind: Kind, error: &dyn fmt::Display) -> String {
    let name = name
        .as_str()
        .map(|name| format!(", {},", quote(name)))
        .unwrap_or_default();
    format!("one of its {}{name} was skipped: {error}", kind.what)
}
