//! Sends what kubectl sent when it was recorded, where there is no kubectl to send it.

use crate::exchange::{self, Request};
use crate::kubectl::is_watch;
use crate::proxy::AGENT;
use crate::run::{Events, Next, Run};
use anyhow::{Context, bail};
use serde_json::{Map, Value};
use std::time::Duration;

/// How long the event may take that kubectl waited for.
const NEXT_EVENT: Duration = Duration::from_secs(8);

/// Takes a recorded step of kubectl again: the requests are sent, the texts are as recorded.
pub(crate) async fn run(run: &mut Run<'_>, at: usize, recorded: &Value) -> anyhow::Result<Value> {
    let Some(calls) = recorded["calls"].as_array() else {
        bail!("there is no recording of this invocation");
    };
    let mut again = recorded.clone();
    let mut answers = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let context = || format!("call {number}: {}", call["ask"]);
        answers.push(one(run, at, number, call).await.with_context(context)?);
    }
    again["calls"] = answers.into();
    Ok(again)
}

async fn one(run: &mut Run<'_>, at: usize, number: usize, call: &Value) -> anyhow::Result<Value> {
    let request = request(run, call)?;
    let mut again: Map<String, Value> = ["ask", "accept", "sends", "with"]
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), call.get(*key)?.clone())))
        .chain(acting(call).map(|(name, value)| (name.clone(), value.clone())))
        .collect();
    if is_watch(&request.path) {
        let (head, last) = last_event(run, request, &call["last"]).await?;
        again.append(&mut head.outline(&mut run.masker));
        again.insert("last".to_owned(), last);
    } else {
        let answer = run.server.ask(request).await?;
        let body = answer.value();
        again.append(&mut answer.outline(&mut run.masker));
        again.insert("answer".to_owned(), run.masker.value(&body));
        run.places.note(at, number, &body);
    }
    Ok(again.into())
}

/// Whom a recorded request acts as.
fn acting(call: &Value) -> impl Iterator<Item = (&String, &Value)> {
    call.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("impersonate-"))
}

/// The request that a recording describes.
fn request(run: &Run<'_>, call: &Value) -> anyhow::Result<Request> {
    let ask = call["ask"].as_str().context("the recording asks nothing")?;
    let (method, path) = ask.split_once(' ').context("the recording asks nothing")?;
    let mut headers = vec![("user-agent".to_owned(), AGENT.to_owned())];
    let accept = call["accept"].as_str().unwrap_or("application/json");
    headers.push(("accept".to_owned(), accept.to_owned()));
    if let Some(sends) = call["sends"].as_str() {
        headers.push(("content-type".to_owned(), sends.to_owned()));
    }
    for (name, value) in acting(call) {
        headers.push((name.clone(), filled_text(run, value.as_str().unwrap_or_default())?));
    }
    let body = match &call["with"] {
        Value::Null => Vec::new(),
        with => exchange::bytes(&filled(run, with)?),
    };
    let path = filled_text(run, path)?;
    Ok(Request { method: method.to_owned(), path, headers, body })
}

fn filled_text(run: &Run<'_>, text: &str) -> anyhow::Result<String> {
    let text = run.masker.unmask(text);
    run.places.fill(&text.replace("<time>", "2026-01-01T00:00:00Z")).map_err(anyhow::Error::msg)
}

fn filled(run: &Run<'_>, value: &Value) -> anyhow::Result<Value> {
    Ok(match value {
        Value::String(text) => filled_text(run, text)?.into(),
        Value::Array(items) => {
            items.iter().map(|item| filled(run, item)).collect::<anyhow::Result<Vec<_>>>()?.into()
        }
        Value::Object(only) if only.len() == 1 && only.contains_key("base64") => {
            let bytes = run.masker.unmask_bytes(&exchange::bytes(value));
            return Ok(exchange::as_base64(&bytes));
        }
        Value::Object(fields) => {
            let mut filled_in = Map::new();
            for (key, value) in fields {
                filled_in.insert(filled_text(run, key)?, filled(run, value)?);
            }
            filled_in.into()
        }
        other => other.clone(),
    })
}

/// Reads a watch until the event comes that was the last one when it was recorded; or returns the
/// last one that came.
async fn last_event(
    run: &mut Run<'_>,
    request: Request,
    wanted: &Value,
) -> anyhow::Result<(exchange::Answer, Value)> {
    let mut events = Events::open(run.server, request).await?;
    let mut last = Value::Null;
    while !wanted.is_null() && last != *wanted {
        match events.next(NEXT_EVENT).await? {
            Next::Event(event) => last = run.masker.value(&event),
            Next::Closed | Next::Silence => break,
        }
    }
    Ok((events.head, last))
}
