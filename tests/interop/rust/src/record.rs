//! A client that does what it is told and prints what it gets; ../../through_record.py
//! explains more.
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    calls::{Session, call},
    cells::{Problem, failed},
    client::Judge,
    items::to,
};

const STEP_TIME: Duration = Duration::from_secs(300);

fn plain<T: Serialize>(value: T) -> Result<Value, Problem> {
    Ok(serde_json::to_value(value)?)
}

async fn act(session: &Session, step: &Value) -> Result<Value, Problem> {
    let (name, given) = (&step[1], &step[2]);
    match step[0].as_str().unwrap_or_default() {
        "hello" => {
            let about = plain(session.peer_info())?;
            Ok(json!({"name": about["serverInfo"]["name"], "instructions": about["instructions"]}))
        }
        "tools/list" => plain(session.list_all_tools().await?),
        "prompts/list" => plain(session.list_all_prompts().await?),
        "resources/list" => plain(session.list_all_resources().await?),
        "resources/templates/list" => plain(session.list_all_resource_templates().await?),
        "resources/read" => {
            let params = to(json!({"uri": name}));
            plain(session.read_resource(params).await?)
        }
        "prompts/get" => {
            let params = to(json!({"name": name, "arguments": given}));
            plain(session.get_prompt(params).await?)
        }
        "tools/call" => {
            let tool = name.as_str().unwrap_or_default();
            plain(call(session, tool, given.clone()).await?)
        }
        other => Err(failed(format!("no step {other}"))),
    }
}

pub async fn record(era: &str, server: &[String]) -> Result<(), String> {
    let steps: Vec<Value> =
        serde_json::from_reader(std::io::stdin()).map_err(|error| error.to_string())?;
    let session = Judge::new(era, server).open_own().await;
    let session = session.map_err(|problem| problem.text().to_owned())?;
    for step in &steps {
        let line = match tokio::time::timeout(STEP_TIME, act(&session, step)).await {
            Ok(Ok(result)) => json!({"result": result}),
            Ok(Err(problem)) => json!({"error": problem.text()}),
            Err(_) => json!({"error": "not done in time"}),
        };
        println!("{line}");
    }
    let _ = session.cancel().await;
    Ok(())
}
