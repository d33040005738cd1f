//! The client with the resources, prompts, completions and questions of Segue's server.
use std::sync::{Arc, Mutex};

use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, GetPromptRequestParams,
        ListRootsResult, ReadResourceRequestParams, Role, SamplingMessage, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::ServiceError,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    calls::{Session, call, expect, greet, refused, text_of},
    cells::{Outcome, Problem, cell, equal, failed, until},
};

pub const UPDATED: &str = "test://static-text";

/// Questions and changes that the server has sent by itself.
#[derive(Clone, Default)]
pub struct Asked {
    messages: Arc<Mutex<Vec<String>>>,
    declines: Arc<Mutex<bool>>,
    pub changes: Arc<Mutex<Vec<String>>>,
}

impl Asked {
    pub fn elicit(&self, request: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Err(ErrorData::invalid_params("not a form", None));
        };
        let content = match message.as_str() {
            "Your name?" => json!({"name": "Ada"}),
            "Are you sure?" => json!({"confirm": true}),
            "What context?" => json!({"context": "here"}),
            _ => json!({}),
        };
        self.messages.lock().expect("a lock").push(message);
        if *self.declines.lock().expect("a lock") {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        }
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    pub fn sample(
        &self,
        request: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let first = request.messages.first().map(|message| &message.content);
        let content = first
            .and_then(|content| content.first())
            .and_then(|block| block.as_text());
        let said = format!("{}!", content.map_or("no text", |block| &block.text));
        let message = SamplingMessage::new(
            Role::Assistant,
            rmcp::model::SamplingMessageContentBlock::text(said),
        );
        Ok(CreateMessageResult::new(message, "judge".into()))
    }

    pub fn roots(&self) -> Result<ListRootsResult, ErrorData> {
        Ok(to(
            json!({"roots": [{"uri": "file:///judged", "name": "judged"}]}),
        ))
    }

    pub fn note(&self, what: &str) {
        self.changes.lock().expect("a lock").push(what.to_owned());
    }

    fn noted(&self, what: &str) -> usize {
        let changes = self.changes.lock().expect("a lock");
        changes.iter().filter(|change| *change == what).count()
    }
}

/// Makes a value of the SDK from its JSON.
pub fn to<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a value of the protocol")
}

fn plain<T: Serialize>(outcome: Result<T, ServiceError>) -> Result<Value, Problem> {
    Ok(serde_json::to_value(outcome?)?)
}

pub struct Items<'a> {
    pub session: &'a Session,
    pub asked: &'a Asked,
    pub modern: bool,
}

impl Items<'_> {
    async fn read(&self, uri: &str) -> Result<Value, Problem> {
        let params: ReadResourceRequestParams = to(json!({"uri": uri}));
        Ok(plain(self.session.read_resource(params).await)?["contents"].take())
    }

    async fn prompt(&self, name: &str, given: Value) -> Result<Value, Problem> {
        let params: GetPromptRequestParams = to(json!({"name": name, "arguments": given}));
        Ok(plain(self.session.get_prompt(params).await)?["messages"].take())
    }

    async fn list_resources(&self) -> Outcome {
        let all = plain(self.session.list_all_resources().await)?;
        let known = |item: &&Value| item["name"] == "static-text";
        let found = all.as_array().and_then(|all| all.iter().find(known));
        let found = found.ok_or_else(|| failed("it is not listed"))?;
        equal(
            [&found["uri"], &found["mimeType"]],
            [&json!(UPDATED), &json!("text/plain")],
            "the resource",
        )
    }

    async fn list_templates(&self) -> Outcome {
        let all = plain(self.session.list_all_resource_templates().await)?;
        let all = all.as_array().cloned().unwrap_or_default();
        let mut names: Vec<_> = all.iter().map(|item| item["name"].clone()).collect();
        names.sort_by_key(ToString::to_string);
        equal(names, vec![json!("files"), json!("template")], "the list")
    }

    async fn read_both(&self) -> Outcome {
        let text = self.read(UPDATED).await?;
        let blob = self.read("test://static-binary").await?;
        equal(
            [&text[0]["text"], &blob[0]["mimeType"], &blob[0]["blob"]],
            [
                &json!("This is the content of the static text resource."),
                &json!("image/png"),
                &json!("iVBORwA="),
            ],
            "what they hold",
        )
    }

    async fn read_many(&self) -> Outcome {
        let parts = self.read("test://many").await?;
        equal(
            [&parts[0]["text"], &parts[1]["blob"], &parts[2]["text"]],
            [&json!("a"), &json!("Yg=="), &json!("c")],
            "the parts",
        )
    }

    async fn read_by_template(&self) -> Outcome {
        let parts = self.read("test://template/%C3%A9%2F7/data").await?;
        let text = parts[0]["text"].as_str().unwrap_or_default();
        let inside: Value = serde_json::from_str(text)?;
        equal(&inside["id"], &json!("é/7"), "the variable")
    }

    async fn read_nowhere(&self) -> Outcome {
        let code = if self.modern { -32602 } else { -32002 };
        let params: ReadResourceRequestParams = to(json!({"uri": "test://nowhere"}));
        let outcome = self.session.read_resource(params).await;
        refused(outcome, code, json!({"uri": "test://nowhere"}))
    }

    async fn list_prompts(&self) -> Outcome {
        let all = plain(self.session.list_all_prompts().await)?;
        let known = |item: &&Value| item["name"] == "arguments";
        let found = all.as_array().and_then(|all| all.iter().find(known));
        let given = &found.ok_or_else(|| failed("it is not listed"))?["arguments"];
        equal(
            [&given[0]["name"], &given[0]["required"], &given[1]["name"]],
            [&json!("arg1"), &json!(true), &json!("arg2")],
            "the arguments",
        )
    }

    async fn prompt_with_arguments(&self) -> Outcome {
        let given = json!({"arg1": "x", "arg2": "y"});
        let messages = self.prompt("arguments", given).await?;
        equal(
            [&messages[0]["role"], &messages[0]["content"]["text"]],
            [
                &json!("user"),
                &json!("Prompt with arguments: arg1='x', arg2='y'"),
            ],
            "the message",
        )
    }

    async fn prompt_of_blocks(&self) -> Outcome {
        let messages = self.prompt("blocks", json!({})).await?;
        equal(
            [
                &messages[0]["content"]["resource"]["text"],
                &messages[1]["content"]["type"],
                &messages[1]["content"]["data"],
                &messages[2]["role"],
                &messages[3]["content"]["text"],
            ],
            [
                &json!("Embedded."),
                &json!("image"),
                &json!("cG5n"),
                &json!("assistant"),
                &json!("As JSON."),
            ],
            "the messages",
        )
    }

    async fn refused_prompts(&self) -> Outcome {
        for name in ["no-such-prompt", "arguments"] {
            let params: GetPromptRequestParams = to(json!({"name": name}));
            match self.session.get_prompt(params).await {
                Err(ServiceError::McpError(error)) => equal(error.code.0, -32602, name)?,
                other => return Err(failed(format!("{name}: {other:?}"))),
            }
        }
        Ok(())
    }

    async fn complete(&self) -> Outcome {
        let ask = async |reference: Value, name: &str, value: &str, known: Value| {
            let params: CompleteRequestParams = to(json!({"ref": reference,
                "argument": {"name": name, "value": value}, "context": {"arguments": known}}));
            plain(self.session.complete(params).await).map(|mut all| all["completion"].take())
        };
        let arguments = json!({"type": "ref/prompt", "name": "arguments"});
        let some = ask(arguments, "arg1", "word-14", json!({})).await?;
        let template = json!({"type": "ref/resource", "uri": "test://template/{id}/data"});
        let many = ask(template, "id", "", json!({})).await?;
        let blocks = json!({"type": "ref/prompt", "name": "blocks"});
        let told = ask(blocks, "x", "", json!({"language": "python"})).await?;
        let count = |all: &Value| all["values"].as_array().map_or(0, Vec::len);
        equal(
            (count(&some), count(&many)),
            (11, 100),
            "the numbers of values",
        )?;
        equal(
            [&many["total"], &many["hasMore"], &told["values"]],
            [
                &json!(150),
                &json!(true),
                &json!(["completion/complete", "blocks", "python"]),
            ],
            "what is told",
        )
    }

    async fn resource_changes(&self) -> Outcome {
        let uri = json!({"uri": UPDATED});
        if self.modern {
            let filter: SubscriptionFilter = to(json!({"resourceSubscriptions": [UPDATED]}));
            let mut subscription = self.session.listen(filter).await?;
            expect(self.session, "update", json!({}), "updated").await?;
            let note = subscription.next().await?;
            let note = serde_json::to_value(note.ok_or_else(|| failed("no notification"))?)?;
            equal(&note["params"]["uri"], &uri["uri"], "what has changed")?;
            return Ok(subscription.cancel().await?);
        }
        let what = format!("updated {UPDATED}");
        let params: SubscribeRequestParams = to(uri.clone());
        self.session.subscribe(params).await?;
        expect(self.session, "update", json!({}), "updated").await?;
        until(|| self.asked.noted(&what) == 1, "the notification").await?;
        let params: UnsubscribeRequestParams = to(uri);
        self.session.unsubscribe(params).await?;
        expect(self.session, "update", json!({}), "updated").await?;
        greet(self.session).await?;
        equal(self.asked.noted(&what), 1, "notifications after the end")
    }

    async fn lists_change(&self) -> Outcome {
        if !self.modern {
            expect(self.session, "toggle_items", json!({}), "changed").await?;
            let all = || self.asked.noted("resources") > 0 && self.asked.noted("prompts") > 0;
            return until(all, "both notifications").await;
        }
        let filter = json!({"resourcesListChanged": true, "promptsListChanged": true});
        let mut subscription = self.session.listen(to(filter)).await?;
        expect(self.session, "toggle_items", json!({}), "changed").await?;
        let mut seen = Vec::new();
        for _ in 0..2 {
            let note = subscription.next().await?;
            let note = note.ok_or_else(|| failed("no notification"))?;
            seen.push(serde_json::to_value(note)?["method"].to_string());
        }
        seen.sort();
        let wanted = ["prompts", "resources"]
            .map(|items| json!(format!("notifications/{items}/list_changed")).to_string());
        equal(seen, wanted.to_vec(), "the notifications")?;
        Ok(subscription.cancel().await?)
    }

    /// Returns what a tool that asks reports of the answer, and how often it asked.
    async fn ask(&self, tool: &str) -> Result<(String, usize), Problem> {
        self.asked.messages.lock().expect("a lock").clear();
        let result = call(self.session, tool, json!({})).await?;
        let count = self.asked.messages.lock().expect("a lock").len();
        Ok((text_of(&result).to_owned(), count))
    }

    async fn ask_for(&self, tool: &str, want: Value) -> Outcome {
        let said: Value = serde_json::from_str(&self.ask(tool).await?.0)?;
        equal(said, want, "what the tool was told")
    }

    async fn decline(&self) -> Outcome {
        *self.asked.declines.lock().expect("a lock") = true;
        let outcome = self.ask_for("ask_name", json!({"action": "decline"})).await;
        *self.asked.declines.lock().expect("a lock") = false;
        outcome
    }

    async fn ask_two(&self) -> Outcome {
        let (text, count) = self.ask("ask_both").await?;
        let answers = text.matches("\"accept\"").count();
        equal((count, answers), (2, 2), "questions and answers")
    }

    async fn ask_three(&self) -> Outcome {
        let (text, count) = self.ask("ask_rounds").await?;
        equal((text.as_str(), count), ("asked 3 times", 3), "the rounds")
    }

    async fn ask_for_items(&self) -> Outcome {
        let messages = self.prompt("ask", json!({})).await?;
        let parts = self.read("test://ask").await?;
        for text in [&messages[0]["content"]["text"], &parts[0]["text"]] {
            let said: Value = serde_json::from_str(text.as_str().unwrap_or_default())?;
            equal(&said["content"], &json!({"context": "here"}), "the answer")?;
        }
        Ok(())
    }

    pub async fn run(&self) {
        cell("resources/list", self.list_resources()).await;
        cell("resources/templates/list", self.list_templates()).await;
        cell("resources/read: text and blob", self.read_both()).await;
        cell("resources/read: several contents", self.read_many()).await;
        cell("resources/read: by a template", self.read_by_template()).await;
        cell("resources/read: not found", self.read_nowhere()).await;
        cell("prompts/list", self.list_prompts()).await;
        cell("prompts/get: arguments", self.prompt_with_arguments()).await;
        cell("prompts/get: image and resource", self.prompt_of_blocks()).await;
        cell(
            "prompts/get: unknown, and an argument is missing",
            self.refused_prompts(),
        )
        .await;
        cell("completion/complete", self.complete()).await;
        cell("a resource changes", self.resource_changes()).await;
        cell("list_changed: resources and prompts", self.lists_change()).await;
        let named = json!({"action": "accept", "content": {"name": "Ada"}});
        cell("elicitation: form", self.ask_for("ask_name", named)).await;
        cell("elicitation: declined", self.decline()).await;
        cell("elicitation: two at once", self.ask_two()).await;
        cell("elicitation: three in turn", self.ask_three()).await;
        cell(
            "elicitation: for a prompt and a resource",
            self.ask_for_items(),
        )
        .await;
        let said = json!({"role": "assistant", "model": "judge",
            "content": {"type": "text", "text": "Say something.!"}});
        cell("sampling", self.ask_for("ask_model", said)).await;
        let roots = json!({"roots": [{"uri": "file:///judged", "name": "judged"}]});
        cell("roots", self.ask_for("ask_roots", roots)).await;
    }
}
