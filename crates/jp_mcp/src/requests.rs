//! What is asked of a server beside its lists: calls of tools, and resources.

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

/// What a call of a tool came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// What it returned, with the content of what it linked to.
    pub response: ToolResponse,
    /// What was passed over, and why.
    pub warnings: Vec<String>,
}

impl Connection {
    /// Calls a tool, and reads what its result links to: each URI once as long as the connection is there, which is a turn.
    pub fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        caller: &dyn Caller,
    ) -> Result<Called, ServerError> {
        let _turn = self.turn(caller)?;
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
                "it links to {count} resources, and the first {limit} were followed"
            ));
        }
        // From the last to the first, so that places stay right; read in their order.
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

    /// Returns the content of what a link leads to; where it can't be had, words that stand for it.
    fn follow(
        &self,
        link: &ResourceLink,
        index: usize,
        warnings: &mut Vec<String>,
        caller: &dyn Caller,
    ) -> Vec<ContentBlock> {
        let told = |reason: &str| vec![link.description_block(reason)];
        if index >= self.limits.links {
            return told("It was not read, as the result has too many links.");
        }
        if self.followed_links().contains(&link.uri) {
            return told("It was read earlier in this turn.");
        }
        match self.read(&link.uri, caller) {
            Ok(read) if read.contents.is_empty() => told("The server has no content for it."),
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
                    "the link to {uri} was not followed: {}",
                    error.fault
                ));
                told("It could not be read; a warning says why.")
            }
        }
    }

    fn followed_links(&self) -> MutexGuard<'_, HashSet<String>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a resource (MCP, `resources/read`), as the server gives it.
    pub fn read(&self, uri: &str, caller: &dyn Caller) -> Result<Read, ServerError> {
        if !self.about().has_resources {
            return Err(self.error(Fault::Unsupported("resources")));
        }
        let answer = self.request("resources/read", json!({"uri": uri}), caller)?;
        content::contents(&answer, &self.limits).map_err(|fault| self.error(fault))
    }

    /// Reads a resource, with what the server lists of it where its contents don't say: names, types, hints.
    pub fn resource(&self, uri: &str, caller: &dyn Caller) -> Result<Read, ServerError> {
        let mut read = self.read(uri, caller)?;
        let is_complete = |resource: &jp_resource::Resource| {
            resource.name.is_some()
                && resource.mime_type.is_some()
                && resource.annotations.is_some()
        };
        if read.contents.iter().all(is_complete) {
            return Ok(read);
        }
        // Without a list there is less to say of it, that is all.
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
