//! Named checks; each prints one JSON line.
use std::{
    fmt::{Debug, Display},
    future::Future,
    time::Duration,
};

use serde_json::json;

const CELL_TIME: Duration = Duration::from_secs(30);

pub enum Problem {
    /// The peer lacks the feature.
    Missing(String),
    Failed(String),
}

pub type Outcome = Result<(), Problem>;

impl Problem {
    pub fn text(&self) -> &str {
        match self {
            Problem::Missing(why) | Problem::Failed(why) => why,
        }
    }
}

pub fn failed(why: impl Display) -> Problem {
    Problem::Failed(why.to_string())
}

impl<E: std::error::Error> From<E> for Problem {
    fn from(error: E) -> Self {
        failed(error)
    }
}

pub fn equal<A: PartialEq<B> + Debug, B: Debug>(actual: A, expected: B, what: &str) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    Err(failed(format!(
        "{what} is {}, not {}",
        start(&format!("{actual:?}"), 200),
        start(&format!("{expected:?}"), 200)
    )))
}

fn start(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// Polls, at most five seconds.
pub async fn until(check: impl Fn() -> bool, what: &str) -> Outcome {
    for _ in 0..500 {
        if check() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(failed(format!("{what} did not happen")))
}

pub async fn cell(what: &str, check: impl Future<Output = Outcome>) {
    let outcome = tokio::time::timeout(CELL_TIME, check)
        .await
        .unwrap_or_else(|_| Err(failed("not done in time")));
    let (state, reason) = match outcome {
        Ok(()) => ("green", String::new()),
        Err(Problem::Missing(why)) => ("missing", why),
        Err(Problem::Failed(why)) => ("FAILED", why),
    };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    println!(
        "{}",
        json!({"what": what, "state": state, "reason": start(&reason, 300)})
    );
}
