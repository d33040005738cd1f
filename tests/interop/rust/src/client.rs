use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientLifecycleMode, ClientServiceExt,
    model::{
        ClientRequest, CustomRequest, LoggingLevel, PaginatedRequestParams, PingRequest,
        ProtocolVersion, Request, RequestMetaObject, SetLevelRequestParams, SubscriptionFilter,
    },
    service::{PeerRequestOptions, ServiceError},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    calls::{Session, call, cut_connections, expect, greet, greet_again, params, refused, text_of},
    cells::{Outcome, Problem, cell, equal, failed, until},
    items::Items,
    notes::Notes,
};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const BIG: usize = 8 << 20;
const ODD: &str = "snow \u{2603}, emoji \u{1F600}, tab\t, newline\n, nul \0, quote \" \\ \u{2028}";

pub struct Judge {
    modern: bool,
    server: Vec<String>, // a command or one URL
    notes: Notes,
    session: Option<Session>,
}

fn version(name: &str) -> ProtocolVersion {
    serde_json::from_value(json!(name)).expect("a version")
}

impl Judge {
    fn over_http(&self) -> bool {
        self.server[0].starts_with("http")
    }

    fn session(&self) -> Result<&Session, Problem> {
        self.session
            .as_ref()
            .ok_or_else(|| failed("there is no session"))
    }

    async fn open(&self, how: ClientLifecycleMode, notes: Notes) -> Result<Session, Problem> {
        if self.over_http() {
            let config = StreamableHttpClientTransportConfig::with_uri(self.server[0].clone());
            let transport = StreamableHttpClientTransport::from_config(config);
            return Ok(notes.serve_with_lifecycle(transport, how).await?);
        }
        let mut command = Command::new(&self.server[0]);
        command.args(&self.server[1..]);
        Ok(notes
            .serve_with_lifecycle(TokioChildProcess::new(command)?, how)
            .await?)
    }

    async fn open_as(&self, name: &str) -> Result<Session, Problem> {
        let mut notes = self.notes.clone();
        notes.version = Some(version(name));
        let how = if name == MODERN {
            ClientLifecycleMode::Discover {
                preferred_versions: vec![version(name)],
            }
        } else {
            ClientLifecycleMode::Initialize
        };
        self.open(how, notes).await
    }

    pub fn new(era: &str, server: &[String]) -> Self {
        Judge {
            modern: era == "modern",
            server: server.to_vec(),
            notes: Notes::default(),
            session: None,
        }
    }

    /// Opens a session of the judge's era.
    pub async fn open_own(&self) -> Result<Session, Problem> {
        self.open_as(if self.modern { MODERN } else { LEGACY })
            .await
    }

    async fn connect(&mut self) -> Outcome {
        let name = if self.modern { MODERN } else { LEGACY };
        let session = self.open_own().await?;
        let about = serde_json::to_value(session.peer_info().ok_or_else(|| failed("no peer"))?)?;
        self.session = Some(session);
        equal(
            [
                &about["protocolVersion"],
                &about["serverInfo"]["name"],
                &about["instructions"],
                &about["capabilities"]["tools"]["listChanged"],
            ],
            [
                &json!(name),
                &json!("segue-fixture"),
                &json!("Call greet first."),
                &json!(true),
            ],
            "the server",
        )
    }

    async fn is_of_use(&self, session: Session, name: &str) -> Outcome {
        let about = serde_json::to_value(session.peer_info().ok_or_else(|| failed("no peer"))?)?;
        equal(&about["protocolVersion"], &json!(name), "the version")?;
        session.list_tools(None).await?;
        greet(&session).await?;
        session.cancel().await?;
        Ok(())
    }

    async fn finds_era(&self) -> Outcome {
        let how = ClientLifecycleMode::Auto {
            preferred_versions: vec![version(MODERN)],
            legacy_version: None,
        };
        let session = self.open(how, self.notes.clone()).await?;
        self.is_of_use(session, MODERN).await
    }

    async fn negotiates(&self, name: &str) -> Outcome {
        self.is_of_use(self.open_as(name).await?, name).await
    }

    async fn ping(&self) -> Outcome {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        self.session()?.send_request(ping).await?;
        Ok(())
    }

    async fn list(&self) -> Outcome {
        let (mut names, mut cursor, mut pages) = (Vec::new(), None, 0);
        while pages == 0 || cursor.is_some() {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.session()?.list_tools(Some(asked)).await?;
            names.extend(page.tools.into_iter().map(|tool| tool.name.to_string()));
            cursor = page.next_cursor;
            pages += 1;
        }
        let count = names.len();
        names.sort();
        names.dedup();
        let known = ["greet", "add", "toggle"]
            .iter()
            .all(|name| names.iter().any(|n| n == name));
        equal(
            (pages > 3, names.len(), known),
            (true, count, true),
            "the list",
        )
    }

    async fn bad_cursor(&self) -> Outcome {
        let asked = PaginatedRequestParams::default().with_cursor(Some("nonsense".into()));
        refused(
            self.session()?.list_tools(Some(asked)).await,
            -32602,
            Value::Null,
        )
    }

    async fn structured(&self) -> Outcome {
        let result = call(self.session()?, "add", json!({"a": 40, "b": 2})).await?;
        equal(
            result.structured_content,
            Some(json!({"sum": 42})),
            "structuredContent",
        )
    }

    async fn media(&self) -> Outcome {
        let blocks = call(self.session()?, "media", json!({})).await?.content;
        let value = serde_json::to_value(&blocks)?;
        equal(blocks.len(), 4, "blocks")?;
        equal(
            (
                blocks[0].as_image().is_some(),
                blocks[1].as_audio().is_some(),
                blocks[2].as_resource().is_some(),
                blocks[3].as_resource_link().is_some(),
            ),
            (true, true, true, true),
            "an image, audio, a resource, a link",
        )?;
        equal(
            [&value[0]["data"], &value[2]["resource"]["text"]],
            [&json!("iVBORw=="), &json!("inside")],
            "what they hold",
        )
    }

    async fn is_error(&self) -> Outcome {
        let result = call(self.session()?, "fail", json!({})).await?;
        equal(
            (result.is_error, text_of(&result)),
            (Some(true), "failed on purpose"),
            "the result",
        )
    }

    async fn refuse(&self, tool: &str, code: i32, data: Value) -> Outcome {
        let outcome = call(self.session()?, tool, json!({})).await;
        if data.is_null()
            && let Err(ServiceError::McpError(mut error)) = outcome
        {
            error.data = None;
            return refused::<()>(Err(ServiceError::McpError(error)), code, data);
        }
        refused(outcome, code, data)
    }

    async fn see_progress(&self) -> Outcome {
        let seen = &self.notes.progress;
        seen.lock().expect("a lock").clear();
        call(self.session()?, "steps", json!({"n": 3})).await?;
        until(|| seen.lock().expect("a lock").len() >= 3, "progress").await?;
        let want: Vec<_> = (1..=3).map(|n| json!([n as f64, 3.0, "a step"])).collect();
        let mut seen = seen.lock().expect("a lock").clone();
        seen.sort_by_key(ToString::to_string); // a separate task handles each
        equal(seen, want, "the progress")
    }

    async fn set_level(&self, level: LoggingLevel) -> Outcome {
        if !self.modern {
            self.session()?
                .set_level(SetLevelRequestParams::new(level))
                .await?;
        }
        Ok(())
    }

    async fn see_logs(&self) -> Outcome {
        self.set_level(LoggingLevel::Info).await?;
        let logs = &self.notes.logs;
        logs.lock().expect("a lock").clear();
        let mut asked = params("chatty", json!({"n": 2}));
        if self.modern {
            let mut meta = RequestMetaObject::new();
            meta.set_log_level(LoggingLevel::Info);
            asked.meta = Some(meta);
        }
        self.session()?.call_tool(asked).await?;
        until(|| !logs.lock().expect("a lock").is_empty(), "a message").await?;
        equal(
            logs.lock().expect("a lock").clone(),
            vec![json!(["info", "begin"])],
            "messages",
        )?;
        self.set_level(LoggingLevel::Emergency).await?;
        call(self.session()?, "chatty", json!({})).await?;
        equal(
            logs.lock().expect("a lock").len(),
            1,
            "messages, after they were not asked for,",
        )
    }

    fn request(tool: &str) -> ClientRequest {
        ClientRequest::CallToolRequest(Request::new(params(tool, json!({}))))
    }

    async fn cancel(&self) -> Outcome {
        let session = self.session()?;
        let options = PeerRequestOptions::no_options();
        let handle = session
            .send_cancellable_request(Self::request("hang_plain"), options)
            .await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
        handle.cancel(None).await?;
        greet(session).await
    }

    async fn timeout(&self) -> Outcome {
        let session = self.session()?;
        let options = PeerRequestOptions::with_timeout(Duration::from_millis(100));
        let handle = session
            .send_cancellable_request(Self::request("hang_plain"), options)
            .await?;
        match handle.await_response().await {
            Err(ServiceError::Timeout { .. }) => greet(session).await,
            other => Err(failed(format!("it ended with {other:?}"))),
        }
    }

    async fn concurrency(&self) -> Outcome {
        let session = self.session()?;
        // the slow call lasts until all the others have ended
        let slow = session
            .send_cancellable_request(
                Self::request("hang_plain"),
                PeerRequestOptions::no_options(),
            )
            .await?;
        let mut calls = tokio::task::JoinSet::new();
        for at in 0..20 {
            let peer = session.peer().clone();
            calls.spawn(async move {
                let asked = params("greet", json!({"name": format!("n{at}")}));
                let result = peer.call_tool(asked).await?;
                equal(text_of(&result), &format!("Hello, n{at}!"), "the text")
            });
        }
        while let Some(done) = calls.join_next().await {
            done??;
        }
        slow.cancel(None).await?;
        Ok(())
    }

    async fn big_result(&self) -> Outcome {
        let result = call(self.session()?, "big", json!({"bytes": BIG})).await?;
        equal(text_of(&result).len(), BIG, "the length")
    }

    async fn big_arguments(&self) -> Outcome {
        let text = "y".repeat(BIG);
        let result = call(self.session()?, "echo", json!({"text": text})).await?;
        equal(text_of(&result) == text, true, "the same text")
    }

    async fn list_changed(&self) -> Outcome {
        let lists = || *self.notes.lists.lock().expect("a lock");
        let before = lists();
        expect(self.session()?, "toggle", json!({}), "changed").await?;
        until(|| lists() > before, "list_changed").await
    }

    async fn listen(&self) -> Outcome {
        let session = self.session()?;
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = session.listen(filter).await?;
        equal(
            subscription.acknowledged().tools_list_changed,
            Some(true),
            "what is agreed",
        )?;
        expect(session, "toggle", json!({}), "changed").await?;
        let note = subscription
            .next()
            .await?
            .ok_or_else(|| failed("no notification"))?;
        equal(
            &serde_json::to_value(note)?["method"],
            &json!("notifications/tools/list_changed"),
            "the method",
        )?;
        subscription.cancel().await?;
        greet(session).await
    }

    /// Makes the tap end all connections while a call is answered.
    async fn cut_stream(&self) -> Outcome {
        let session = self.session()?;
        let peer = session.peer().clone();
        let seen = &self.notes.progress;
        seen.lock().expect("a lock").clear();
        let slow = tokio::spawn(async move {
            peer.call_tool(params("steps", json!({"n": 20, "delayMs": 100})))
                .await
        });
        until(
            || !seen.lock().expect("a lock").is_empty(),
            "the first step",
        )
        .await?;
        cut_connections(&self.server[0]).await?;
        match slow.await? {
            Ok(_) if self.modern => return Err(failed("the call has an answer")),
            Ok(result) => equal(text_of(&result), "arrived", "the text")?,
            Err(_) if self.modern => {}
            Err(error) => return Err(failed(error)),
        }
        greet_again(session).await
    }

    /// Ends the server, which is started again over HTTP only.
    async fn death(&self) -> Outcome {
        let session = self.session()?;
        if call(session, "die", json!({})).await.is_ok() {
            return Err(failed("it was answered"));
        }
        let Err(last) = greet_again(session).await else {
            return Ok(());
        };
        self.negotiates(if self.modern { MODERN } else { LEGACY })
            .await?;
        Err(Problem::Missing(format!(
            "the client stays without a session: {}",
            last.text()
        )))
    }

    async fn close(&mut self) -> Outcome {
        let session = self
            .session
            .take()
            .ok_or_else(|| failed("there is no session"))?;
        session.cancel().await?;
        Ok(())
    }

    async fn errors(&self) {
        let hint = json!({"hint": "on purpose"});
        let task_only = if self.modern { -32021 } else { -32601 };
        cell(
            "error: unknown tool",
            self.refuse("no_such_tool", -32602, Value::Null),
        )
        .await;
        cell(
            "error: of the handler, with data",
            self.refuse("protocol_error_job", -32603, hint),
        )
        .await;
        cell(
            "error: a tool that must be a task",
            self.refuse("failing_job", task_only, Value::Null),
        )
        .await;
        cell("error: unknown method", async {
            refused(
                self.session()?
                    .send_request(ClientRequest::CustomRequest(CustomRequest::new(
                        "no/such_method",
                        Some(json!({})),
                    )))
                    .await,
                -32601,
                Value::Null,
            )
        })
        .await;
    }

    async fn run(&mut self) {
        cell("connect", self.connect()).await;
        if self.modern {
            cell("connect: finds the era itself", self.finds_era()).await;
        } else {
            cell("ping", self.ping()).await;
        }
        cell("tools/list: all pages", self.list()).await;
        cell("tools/list: bad cursor", self.bad_cursor()).await;
        cell("tools/call", async { greet(self.session()?).await }).await;
        cell("tools/call: unicode and control characters", async {
            expect(self.session()?, "repeat", json!({"text": ODD}), ODD).await
        })
        .await;
        cell("structuredContent", self.structured()).await;
        cell("content: image, audio, resource, link", self.media()).await;
        cell("isError", self.is_error()).await;
        self.errors().await;
        cell("progress", self.see_progress()).await;
        cell("log messages", self.see_logs()).await;
        cell("cancel", self.cancel()).await;
        cell("timeout", self.timeout()).await;
        cell("concurrency: 20 calls and a slow one", self.concurrency()).await;
        cell("large result, 8 MiB", self.big_result()).await;
        cell("large arguments, 8 MiB", self.big_arguments()).await;
        if self.modern {
            cell("subscriptions/listen", self.listen()).await;
        } else {
            cell("list_changed", self.list_changed()).await;
        }
        if let Some(session) = &self.session {
            let (asked, modern) = (&self.notes.asked, self.modern);
            let items = Items {
                session,
                asked,
                modern,
            };
            items.run().await;
        }
        if self.over_http() {
            cell("reconnect: a stream is cut", self.cut_stream()).await;
        }
        for name in ["2025-11-25", "2025-06-18", "2025-03-26"] {
            if !self.modern {
                cell(&format!("protocol version {name}"), self.negotiates(name)).await;
            }
        }
        cell("reconnect: the server dies", self.death()).await;
        cell("close", self.close()).await;
    }
}

pub async fn judge(era: &str, server: &[String]) {
    Judge::new(era, server).run().await;
}
