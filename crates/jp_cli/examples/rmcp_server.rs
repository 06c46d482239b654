//! A small MCP server on rmcp, over stdio: `tests/mcp_peers.rs` has jp speak to it.

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::stdio,
};
use serde_json::{Map, Value, json};

struct Notes;

fn schema(properties: Value) -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties),
    ])
}

impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_resources()
                .build(),
        )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let number = json!({"type": "integer"});
        let add = Tool::new(
            "add",
            "Adds two numbers.",
            schema(json!({"a": number, "b": number})),
        );
        let note = Tool::new("note", "Links to a note.", schema(json!({})));
        Ok(ListToolsResult::with_all_items(vec![add, note]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let number = |name: &str| arguments[name].as_i64().unwrap_or_default();
        let result = match &*request.name {
            "add" => CallToolResult::structured(json!({"sum": number("a") + number("b")})),
            "note" => CallToolResult::success(vec![ContentBlock::resource_link(Resource::new(
                "note:one", "one",
            ))]),
            name => {
                return Err(ErrorData::invalid_params(
                    format!("there is no tool {name}"),
                    None,
                ));
            }
        };
        Ok(result.into())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match &*request.uri {
            "note:one" => Ok(ReadResourceResult::new(vec![ResourceContents::text(
                "The first note.",
                "note:one",
            )])
            .into()),
            uri => Err(ErrorData::resource_not_found(
                format!("there is no resource {uri}"),
                None,
            )),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Notes.serve(stdio()).await?.waiting().await?;
    Ok(())
}
