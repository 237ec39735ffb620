//! Replay of recorded kubectl requests, for machines without kubectl.

use crate::exchange::{self, Request};
use crate::kubectl::is_watch;
use crate::proxy::AGENT;
use crate::run::{Events, Next, Run};
use anyhow::{Context, bail};
use serde_json::{Map, Value};
use std::time::Duration;

/// The timeout for the event that kubectl waited for.
const NEXT_EVENT: Duration = Duration::from_secs(8);

/// Replays a recorded kubectl step: sends its requests; the output stays as recorded.
pub(crate) async fn run(run: &mut Run<'_>, at: usize, recorded: &Value) -> anyhow::Result<Value> {
    let Some(calls) = recorded["calls"].as_array() else {
        bail!("there is no recording of this invocation");
    };
    let mut replayed = recorded.clone();
    let mut answers = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let context = || format!("call {number}: {}", call["ask"]);
        answers.push(replay_call(run, at, number, call).await.with_context(context)?);
    }
    replayed["calls"] = answers.into();
    Ok(replayed)
}

async fn replay_call(
    run: &mut Run<'_>,
    at: usize,
    number: usize,
    call: &Value,
) -> anyhow::Result<Value> {
    let request = request(run, call)?;
    let mut replayed: Map<String, Value> = ["ask", "accept", "sends", "with"]
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), call.get(*key)?.clone())))
        .chain(impersonation_headers(call).map(|(name, value)| (name.clone(), value.clone())))
        .collect();
    if is_watch(&request.path) {
        let (head, last) = read_last_event(run, request, &call["last"]).await?;
        replayed.append(&mut head.outline(&mut run.masker));
        replayed.insert("last".to_owned(), last);
    } else {
        let answer = run.server.send(request).await?;
        let body = answer.value();
        replayed.append(&mut answer.outline(&mut run.masker));
        replayed.insert("answer".to_owned(), run.masker.value(&body));
        run.references.record(at, number, &body);
    }
    Ok(replayed.into())
}

/// The impersonation headers of a recorded request.
fn impersonation_headers(call: &Value) -> impl Iterator<Item = (&String, &Value)> {
    call.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("impersonate-"))
}

/// Builds the recorded request.
fn request(run: &Run<'_>, call: &Value) -> anyhow::Result<Request> {
    let ask = call["ask"].as_str().context("the recording asks nothing")?;
    let (method, path) = ask.split_once(' ').context("the recording asks nothing")?;
    let mut headers = vec![("user-agent".to_owned(), AGENT.to_owned())];
    let accept = call["accept"].as_str().unwrap_or("application/json");
    headers.push(("accept".to_owned(), accept.to_owned()));
    if let Some(sends) = call["sends"].as_str() {
        headers.push(("content-type".to_owned(), sends.to_owned()));
    }
    for (name, value) in impersonation_headers(call) {
        headers.push((name.clone(), fill_text(run, value.as_str().unwrap_or_default())?));
    }
    let body = match &call["with"] {
        Value::Null => Vec::new(),
        with => exchange::bytes(&fill(run, with)?),
    };
    let path = fill_text(run, path)?;
    Ok(Request { method: method.to_owned(), path, headers, body })
}

fn fill_text(run: &Run<'_>, text: &str) -> anyhow::Result<String> {
    let text = run.masker.unmask(text);
    run.references.fill(&text.replace("<time>", "2026-01-01T00:00:00Z")).map_err(anyhow::Error::msg)
}

fn fill(run: &Run<'_>, value: &Value) -> anyhow::Result<Value> {
    Ok(match value {
        Value::String(text) => fill_text(run, text)?.into(),
        Value::Array(items) => {
            items.iter().map(|item| fill(run, item)).collect::<anyhow::Result<Vec<_>>>()?.into()
        }
        Value::Object(only) if only.len() == 1 && only.contains_key("base64") => {
            let bytes = run.masker.unmask_bytes(&exchange::bytes(value));
            return Ok(exchange::as_base64(&bytes));
        }
        Value::Object(fields) => {
            let mut result = Map::new();
            for (key, value) in fields {
                result.insert(fill_text(run, key)?, fill(run, value)?);
            }
            result.into()
        }
        other => other.clone(),
    })
}

/// Reads a watch until the recorded last event comes; returns the last received event.
async fn read_last_event(
    run: &mut Run<'_>,
    request: Request,
    wanted: &Value,
) -> anyhow::Result<(exchange::ServerResponse, Value)> {
    let mut events = Events::open(run.server, request).await?;
    let mut last = Value::Null;
    while !wanted.is_null() && last != *wanted {
        match events.next(NEXT_EVENT).await? {
            Next::Event(event) => last = run.masker.value(&event),
            Next::Closed | Next::TimedOut => break,
        }
    }
    Ok((events.head, last))
}
