//! The items of the server beside plain tools: resources, prompts, completion, and tools
//! that ask the client.
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
        CompleteResult, ContentBlock, CreateMessageRequestParams, ElicitRequestParams,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequests,
        InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ReadResourceResponse, ReadResourceResult, Request, ServerRequest,
    },
    service::{RequestContext, ServiceError},
};
use serde_json::{Value, json};

use crate::items::{UPDATED, to};

pub const ASKING: [&str; 4] = ["ask_name", "ask_twice", "ask_model", "ask_roots"];
const MODERN: &str = "2026-07-28";

pub fn resources(with_extra: bool) -> ListResourcesResult {
    let mut all = vec![
        json!({"uri": UPDATED, "name": "static-text", "mimeType": "text/plain"}),
        json!({"uri": "test://static-binary", "name": "static-binary"}),
    ];
    if with_extra {
        all.push(json!({"uri": "test://extra", "name": "extra"}));
    }
    ListResourcesResult::with_all_items(to(json!(all)))
}

pub fn templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(to(json!([
        {"uriTemplate": "test://template/{id}/data", "name": "template"}])))
}

pub fn read(uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let id = uri
        .strip_prefix("test://template/")
        .and_then(|rest| rest.strip_suffix("/data"));
    let part = match (uri, id) {
        (UPDATED, _) => json!({"uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource."}),
        ("test://static-binary", _) => {
            json!({"uri": uri, "mimeType": "image/png", "blob": "iVBORwA="})
        }
        (_, Some(id)) => json!({"uri": uri, "text": format!("Data of {id}")}),
        _ => {
            let data = Some(json!({"uri": uri}));
            return Err(ErrorData::resource_not_found("no such resource", data));
        }
    };
    let result: ReadResourceResult = to(json!({"contents": [part]}));
    Ok(result.into())
}

pub fn prompts(with_extra: bool) -> ListPromptsResult {
    let arguments = json!([{"name": "arg1", "required": true}, {"name": "arg2"}]);
    let mut all = vec![
        json!({"name": "arguments", "arguments": arguments}),
        json!({"name": "blocks"}),
    ];
    if with_extra {
        all.push(json!({"name": "extra"}));
    }
    ListPromptsResult::with_all_items(to(json!(all)))
}

pub fn prompt(request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let given = Value::Object(request.arguments.unwrap_or_default());
    let argument = |name: &str| given[name].as_str().unwrap_or("none").to_owned();
    let messages = match request.name.as_ref() {
        "arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            let said = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
            json!([{"role": "user", "content": {"type": "text", "text": said}}])
        }
        "blocks" => json!([
            {"role": "user",
             "content": {"type": "image", "mimeType": "image/png", "data": "cG5n"}},
            {"role": "user", "content": {"type": "resource",
             "resource": {"uri": "test://x", "text": "Embedded."}}}]),
        _ => return Err(ErrorData::invalid_params("no such prompt", None)),
    };
    let result: GetPromptResult = to(json!({"messages": messages}));
    Ok(result.into())
}

pub fn complete(request: CompleteRequestParams) -> CompleteResult {
    let words: Vec<_> = ["paris", "park", "london"]
        .into_iter()
        .filter(|word| word.starts_with(&request.argument.value))
        .collect();
    to(json!({"completion": {"values": words}}))
}

// ---- questions ----

fn question(tool: &str) -> Value {
    match tool {
        "ask_model" => json!({"method": "sampling/createMessage", "params": {"maxTokens": 100,
            "messages": [{"role": "user",
                          "content": {"type": "text", "text": "Say something."}}]}}),
        "ask_roots" => json!({"method": "roots/list"}),
        _ => json!({"method": "elicitation/create", "params": {"mode": "form",
            "message": "Your name?", "requestedSchema":
                {"type": "object", "properties": {"name": {"type": "string"}}}}}),
    }
}

fn tell(tool: &str, answer: &Value) -> String {
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match tool {
        "ask_model" => format!(
            "{}: {}",
            part(&answer["model"]),
            part(&answer["content"]["text"])
        ),
        "ask_roots" => part(&answer["roots"][0]["uri"]),
        "ask_name" => {
            let name = part(&answer["content"]["name"]);
            format!("{} {name}", part(&answer["action"]))
                .trim()
                .to_owned()
        }
        _ => part(&answer["content"]["name"]),
    }
}

fn said(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// Before 2026-07-28 the server asks in the middle of the call.
async fn ask_now(tool: &str, context: &RequestContext<RoleServer>) -> Result<Value, ServiceError> {
    let params = question(tool)["params"].take();
    let peer = &context.peer;
    let answer = match tool {
        "ask_model" => {
            let params: CreateMessageRequestParams = to(params);
            serde_json::to_value(peer.create_message(params).await?)
        }
        "ask_roots" => serde_json::to_value(peer.list_roots().await?),
        _ => {
            let params: ElicitRequestParams = to(params);
            let request = ServerRequest::ElicitRequest(Request::new(params));
            serde_json::to_value(peer.send_request(request).await?)
        }
    };
    Ok(answer.unwrap_or_default())
}

/// In 2026-07-28 a call ends with its question, and comes again with the answer.
fn ask_again(tool: &str, state: Option<&str>) -> CallToolResponse {
    let requests: InputRequests = to(json!({"it": question(tool)}));
    InputRequiredResult::new(Some(requests), state.map(str::to_owned)).into()
}

pub async fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let tool = request.name.as_ref();
    let twice = tool == "ask_twice";
    if context
        .protocol_version()
        .is_none_or(|version| version.as_str() < MODERN)
    {
        let ask = async || {
            let answer = ask_now(tool, context).await;
            answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
        };
        let mut text = tell(tool, &ask().await?);
        if twice {
            text = format!("{text} and {}", tell(tool, &ask().await?));
        }
        return Ok(said(text));
    }
    let answers = request.input_responses.as_ref();
    let Some(answer) = answers.and_then(|all| all.get("it")) else {
        return Ok(ask_again(tool, twice.then_some("begun")));
    };
    let text = tell(tool, answer);
    Ok(match request.request_state.as_deref() {
        Some("begun") => ask_again(tool, Some(&text)),
        Some(before) if twice => said(format!("{before} and {text}")),
        _ => said(text),
    })
}
