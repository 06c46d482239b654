//! Calls tools and reads resources.

use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value, json};
use std::{
    collections::HashSet,
    sync::{MutexGuard, PoisonError},
};

use crate::{
    Caller, Connection, Fault, Read, ServerError,
    content::{self, ResourceLink, Returned},
};

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The result, with the content of linked resources.
    pub response: ToolResponse,
    /// The skipped parts, with reasons.
    pub warnings: Vec<String>,
}

impl Connection {
    /// Calls a tool and reads the resources that its result links to.
    ///
    /// Each URI is read once per connection, which lasts one turn.
    pub fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        caller: &dyn Caller,
    ) -> Result<Called, ServerError> {
        let _turn = self.wait_for_turn(caller)?;
        let answer = self.request(
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
            caller,
        )?;
        let returned = content::result(answer, &self.limits).map_err(|fault| self.error(fault))?;
        let Returned {
            mut response,
            links,
            mut warnings,
            ..
        } = returned;
        if links.len() > self.limits.links {
            let (count, limit) = (links.len(), self.limits.links);
            warnings.push(format!(
                "it links to {count} resources; jp read the first {limit}"
            ));
        }
        // Read them in order, but insert the last one first, so that earlier places stay valid.
        let blocks: Vec<_> = links
            .into_iter()
            .enumerate()
            .map(|(index, (place, link))| (place, self.follow(&link, index, &mut warnings, caller)))
            .collect();
        for (place, blocks) in blocks.into_iter().rev() {
            response.content.splice(place..place, blocks);
        }
        Ok(Called { response, warnings })
    }

    /// Returns the content of a linked resource, or text about the link if there is none.
    fn follow(
        &self,
        link: &ResourceLink,
        index: usize,
        warnings: &mut Vec<String>,
        caller: &dyn Caller,
    ) -> Vec<ContentBlock> {
        if index >= self.limits.links {
            return vec![
                link.description_block("It was not read because the result has too many links."),
            ];
        }
        if self.followed_links().contains(&link.uri) {
            return vec![link.description_block("It was read earlier in this turn.")];
        }
        match self.read(&link.uri, caller) {
            Ok(read) if read.contents.is_empty() => {
                vec![link.description_block("The server has no content for it.")]
            }
            Ok(read) => {
                self.followed_links().insert(link.uri.clone());
                warnings.extend(read.warnings);
                read.contents
                    .into_iter()
                    .map(|resource| link.block(resource))
                    .collect()
            }
            Err(error) => {
                let uri = crate::raw::quote(&link.uri);
                warnings.push(format!(
                    "the linked resource {uri} was not read: {}",
                    error.fault
                ));
                vec![link.description_block("It could not be read; a warning says why.")]
            }
        }
    }

    fn followed_links(&self) -> MutexGuard<'_, HashSet<String>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a resource (MCP, `resources/read`) without additions from the server's list.
    pub fn read(&self, uri: &str, caller: &dyn Caller) -> Result<Read, ServerError> {
        if !self.about().has_resources {
            return Err(self.error(Fault::Unsupported("resources")));
        }
        let answer = self.request("resources/read", json!({"uri": uri}), caller)?;
        content::contents(&answer, &self.limits).map_err(|fault| self.error(fault))
    }

    /// Reads a resource. Names, types and hints that its contents lack come from the server's list.
    pub fn resource(&self, uri: &str, caller: &dyn Caller) -> Result<Read, ServerError> {
        let mut read = self.read(uri, caller)?;
        let is_complete = read.contents.iter().all(|resource| {
            resource.name.is_some()
                && resource.mime_type.is_some()
                && resource.annotations.is_some()
        });
        if is_complete {
            return Ok(read);
        }
        // If the server has no list, the contents stay as they are.
        let listed = self.listed.get_or_init(|| {
            self.resources(caller)
                .map(|list| list.items)
                .unwrap_or_default()
        });
        for resource in &mut read.contents {
            if let Some(listed) = listed.iter().find(|listed| listed.uri == resource.uri) {
                content::complete(resource, listed);
            }
        }
        Ok(read)
    }
}
