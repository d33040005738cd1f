use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
        CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, ServerInitializeError, SubscriptionContext},
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{
    items::UPDATED,
    server_items::{self, ASKING},
};

const DIED: i32 = 3; // how the tool `die` ends the process
const MODERN: &str = "2026-07-28";

/// Over HTTP each session has a clone.
#[derive(Clone)]
struct Judged {
    versions: Cow<'static, [ProtocolVersion]>,
    /// true = the tool `extra` is there
    extra: Arc<watch::Sender<bool>>,
    logs: Arc<watch::Sender<bool>>,
    /// true = the resource and the prompt `extra` are there
    items: Arc<watch::Sender<bool>>,
    updates: Arc<watch::Sender<u32>>, // counts updates of a resource
}

fn text(value: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(value)])
}

fn int(given: &Value, name: &str) -> u64 {
    given[name].as_u64().unwrap_or_default()
}

fn media() -> CallToolResult {
    let inside = json!({"type": "resource", "resource":
        {"uri": "test://x", "mimeType": "text/plain", "text": "inside"}});
    CallToolResult::success(vec![
        ContentBlock::image("iVBORw==", "image/png"),
        ContentBlock::audio("UklGRg==", "audio/wav"),
        serde_json::from_value(inside).expect("a block"),
    ])
}

impl Judged {
    fn tools(&self) -> Vec<Tool> {
        let with = |names: &[&str]| -> Arc<serde_json::Map<String, Value>> {
            let properties: HashMap<_, _> = names.iter().map(|name| (name, json!({}))).collect();
            let schema = json!({"type": "object", "properties": properties});
            Arc::new(schema.as_object().expect("an object").clone())
        };
        let mut tools = vec![
            Tool::new("greet", "", with(&["name"])),
            Tool::new("repeat", "", with(&["text"])),
            Tool::new("big", "", with(&["bytes"])),
            Tool::new("add", "", with(&["a", "b"])),
            Tool::new("steps", "", with(&["n", "delayMs"])),
        ];
        let others = [
            "media",
            "fail",
            "hang",
            "die",
            "toggle",
            "update",
            "toggle_items",
        ];
        for name in others.into_iter().chain(ASKING) {
            tools.push(Tool::new(name, "", with(&[])));
        }
        if *self.extra.borrow() {
            tools.push(Tool::new("extra", "", with(&[])));
        }
        tools
    }

    async fn take_steps(
        &self,
        given: &Value,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let token = context.meta.get_progress_token();
        let wants_logs = *self.logs.borrow() || context.meta.log_level().is_some();
        for at in 1..=int(given, "n") {
            tokio::time::sleep(Duration::from_millis(int(given, "delayMs"))).await;
            if wants_logs {
                let note =
                    LoggingMessageNotificationParam::new(LoggingLevel::Info, json!({"step": at}));
                let _ = context.peer.notify_logging_message(note).await;
            }
            if let Some(token) = &token {
                let note = ProgressNotificationParam::new(token.clone(), at as f64)
                    .with_total(int(given, "n") as f64);
                let _ = context.peer.notify_progress(note).await;
            }
        }
        text("arrived")
    }

    async fn toggle(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.extra.send_modify(|there| *there = !*there);
        if is_legacy(context) {
            let _ = context.peer.notify_tool_list_changed().await;
        }
        text("changed")
    }

    async fn toggle_items(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.items.send_modify(|there| *there = !*there);
        if is_legacy(context) {
            let _ = context.peer.notify_resource_list_changed().await;
            let _ = context.peer.notify_prompt_list_changed().await;
        }
        text("changed")
    }

    async fn update(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.updates.send_modify(|count| *count += 1);
        if is_legacy(context) {
            let note = ResourceUpdatedNotificationParam::new(UPDATED);
            let _ = context.peer.notify_resource_updated(note).await;
        }
        text("updated")
    }
}

fn is_legacy(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_none_or(|version| version.as_str() < MODERN)
}

impl ServerHandler for Judged {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("judged", "1.0.0"))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.versions.clone()
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.logs.send_replace(true);
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(server_items::resources(*self.items.borrow()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(server_items::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        server_items::read(&request.uri)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(server_items::prompts(*self.items.borrow()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        server_items::prompt(request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(server_items::complete(request))
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.extra.subscribe();
        let mut items = self.items.subscribe();
        let mut updates = self.updates.subscribe();
        loop {
            tokio::select! {
                _ = context.cancelled() => return Ok(()),
                _ = changes.changed() => {
                    let _ = context.sink().notify_tool_list_changed().await;
                }
                _ = items.changed() => {
                    let _ = context.sink().notify_resource_list_changed().await;
                    let _ = context.sink().notify_prompt_list_changed().await;
                }
                _ = updates.changed() => {
                    let _ = context.sink().notify_resource_updated(UPDATED).await;
                }
            }
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if ASKING.contains(&request.name.as_ref()) {
            return server_items::ask(&request, &context).await;
        }
        let given = Value::Object(request.arguments.unwrap_or_default());
        let result = match request.name.as_ref() {
            "greet" => text(format!(
                "Hello, {}!",
                given["name"].as_str().unwrap_or("World")
            )),
            "repeat" => text(given["text"].as_str().unwrap_or_default()),
            "big" => text("x".repeat(int(&given, "bytes") as usize)),
            "add" => {
                CallToolResult::structured(json!({"sum": int(&given, "a") + int(&given, "b")}))
            }
            "steps" => self.take_steps(&given, &context).await,
            "media" => media(),
            "fail" => CallToolResult::error(vec![ContentBlock::text("failed on purpose")]),
            "hang" => {
                context.ct.cancelled().await;
                text("cancelled")
            }
            "die" => std::process::exit(DIED),
            "toggle" => self.toggle(&context).await,
            "toggle_items" => self.toggle_items(&context).await,
            "update" => self.update(&context).await,
            "extra" => text("extra"),
            _ => return Err(ErrorData::invalid_params("unknown tool", None)),
        };
        Ok(result.into())
    }
}

/// Prints its URL, and offers resumable sessions to clients of the handshake eras.
async fn serve_http(judged: Judged, port: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    // The SDK forgets a call that has ended, whoever is connected, so clients must come
    // back in time.
    let retry = Some(Duration::from_millis(100));
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = retry;
    let service = StreamableHttpService::new(
        move || Ok(judged.clone()),
        Arc::new(sessions),
        StreamableHttpServerConfig::default()
            .with_max_request_body_bytes(16 << 20)
            .with_sse_retry(retry),
    );
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn serve_stdio(judged: Judged) -> Result<(), Box<dyn std::error::Error>> {
    match judged.serve(stdio()).await {
        Ok(session) => session.waiting().await?,
        // the client only looked
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    Ok(())
}

pub async fn serve(args: &[String]) {
    let after = |name| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)
    };
    let versions = match after("--versions") {
        Some(list) => list
            .split(',')
            .map(|name| serde_json::from_value(json!(name)).expect("a version"))
            .collect::<Vec<_>>()
            .into(),
        None => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
    };
    let judged = Judged {
        versions,
        extra: Arc::new(watch::Sender::new(false)),
        logs: Arc::new(watch::Sender::new(false)),
        items: Arc::new(watch::Sender::new(false)),
        updates: Arc::new(watch::Sender::new(0)),
    };
    let Some(port) = after("--http") else {
        return serve_stdio(judged)
            .await
            .expect("a client that says goodbye");
    };
    let mut stop = signal(SignalKind::terminate()).expect("a signal");
    tokio::select! {
        _ = stop.recv() => {}
        ended = serve_http(judged, port) => ended.expect("a port"),
    }
    std::process::exit(0) // open streams do not delay the end
}
