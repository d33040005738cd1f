//! The peer of `make bench-peers` on rmcp: a server over HTTP with the tools echo and
//! report. It prints its port, and then its version.
use std::sync::Arc;

use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const LOCK: &str = include_str!("../../Cargo.lock");

#[derive(Clone)]
struct Bench;

fn tool(name: &'static str) -> Tool {
    let schema = json!({"type": "object"});
    Tool::new(name, "", Arc::new(schema.as_object().expect("an object").clone()))
}

async fn report(n: u64, context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    for at in 1..=n {
        let note = ProgressNotificationParam::new(token.clone(), at as f64).with_total(n as f64);
        let _ = context.peer.notify_progress(note).await;
    }
}

impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![tool("echo"), tool("report")]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = Value::Object(request.arguments.unwrap_or_default());
        let said = match request.name.as_ref() {
            "echo" => given["text"].as_str().unwrap_or_default().to_owned(),
            "report" => {
                report(given["n"].as_u64().unwrap_or_default(), &context).await;
                "done".to_owned()
            }
            _ => return Err(ErrorData::invalid_params("unknown tool", None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

/// The version of rmcp that Cargo.lock names.
fn version() -> &'static str {
    let mut lines = LOCK.lines().skip_while(|line| *line != "name = \"rmcp\"");
    let line = lines.nth(1).unwrap_or_default();
    line.split('"').nth(1).unwrap_or("unknown")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let service = StreamableHttpService::new(
        || Ok(Bench),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    println!("{}\nrmcp {}", listener.local_addr()?.port(), version());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
