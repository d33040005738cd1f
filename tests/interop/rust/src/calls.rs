//! Calls of the tools of Segue's server.
use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, CallToolResult},
    service::{RunningService, ServiceError},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    cells::{Outcome, equal, failed},
    notes::Notes,
};

pub type Session = RunningService<RoleClient, Notes>;

pub fn params(tool: &str, given: Value) -> CallToolRequestParams {
    let arguments = given.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}

pub async fn call(
    session: &Session,
    tool: &str,
    given: Value,
) -> Result<CallToolResult, ServiceError> {
    session.call_tool(params(tool, given)).await
}

pub fn text_of(result: &CallToolResult) -> &str {
    let block = result.content.first().and_then(|block| block.as_text());
    block.map_or("no text", |block| &block.text)
}

pub async fn expect(session: &Session, tool: &str, given: Value, want: &str) -> Outcome {
    equal(
        text_of(&call(session, tool, given).await?),
        want,
        "the text",
    )
}

pub async fn greet(session: &Session) -> Outcome {
    expect(session, "greet", json!({"name": "Ada"}), "Hello, Ada!").await
}

/// Calls until there is an answer. A call may be lost with its connection, or with a
/// pooled connection whose end the client has not noticed yet.
pub async fn greet_again(session: &Session) -> Outcome {
    let mut outcome = Ok(());
    for _ in 0..20 {
        outcome = greet(session).await;
        if outcome.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    outcome
}

/// The outcome must be a JSON-RPC error with that code and, unless null, that data.
pub fn refused<T>(outcome: Result<T, ServiceError>, code: i32, data: Value) -> Outcome {
    match outcome {
        Ok(_) => Err(failed("it was not refused")),
        Err(ServiceError::McpError(error)) => {
            equal(error.code.0, code, "the code")?;
            equal(error.data.unwrap_or_default(), data, "the data")
        }
        Err(error) => Err(failed(format!("no JSON-RPC error but {error}"))),
    }
}

/// Makes the tap in front of the server at that URL end all other connections.
pub async fn cut_connections(url: &str) -> Outcome {
    let place = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut tap = TcpStream::connect(place).await?;
    tap.write_all(b"POST /cut HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        .await?;
    tap.read_to_end(&mut Vec::new()).await?;
    Ok(())
}
