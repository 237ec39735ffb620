//! Recorded calls of the registry API (`calls.jsonl`), answered by ours and compared message by
//! message.

use anyhow::Context;
use mainstay_registry::grpc::Grpc;
use mainstay_registry::json::{Answer, ask};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Makes all calls of a recording, in order. Gives each call (method and request) and what is
/// different about its answer.
///
/// # Errors
///
/// If a line is none of a recording.
pub async fn replay(recording: &str, grpc: &Grpc) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let mut calls = Vec::new();
    for (index, line) in recording.lines().enumerate() {
        let wanted: Value =
            serde_json::from_str(line).with_context(|| format!("line {}", index + 1))?;
        let rpc = wanted["rpc"].as_str().unwrap_or_default();
        let metadata: Vec<(&str, &str)> = wanted["metadata"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let answer = ask(grpc.clone(), rpc, &wanted["request"], &metadata)
            .await
            .map_err(|why| anyhow::anyhow!("line {}: {why}", index + 1))?;
        let call = format!("{rpc}{}", wanted["request"]);
        calls.push((call, compare(rpc, &wanted, answer).into_iter().collect()));
    }
    Ok(calls)
}

/// What differs between a recorded call and an answer.
fn compare(rpc: &str, wanted: &Value, answer: Answer) -> Option<String> {
    let (code, message) = (&wanted["code"], wanted["message"].as_str().unwrap_or_default());
    if code != answer.code || message != answer.message {
        return Some(format!(
            "{code} {message:?} is wanted, {} {:?} is given",
            answer.code, answer.message
        ));
    }
    let mut given: Vec<String> = answer.messages.into_iter().map(canonical).collect();
    let several = wanted["one_of"].is_array();
    if let Some(sum) = wanted["sha256"].as_str().filter(|_| !several) {
        given.sort();
        let text = given.join("\n") + "\n";
        let counts = (wanted["count"].as_u64(), wanted["bytes"].as_u64());
        if counts != (Some(given.len() as u64), Some(text.len() as u64)) || sum != hash(&text) {
            return Some(format!(
                "{counts:?} messages and bytes are wanted, {} and {} (or of other content) are given",
                given.len(),
                text.len()
            ));
        }
        return None;
    }
    // Upstream's order is that of a hash table, which few repetitions need not show.
    let any_order = rpc != "ListBundles" || wanted["order"] == "any";
    if any_order {
        given.sort();
    }
    let all = wanted["one_of"].as_array().into_iter().flatten().chain([&wanted["answers"]]);
    let all: Vec<Vec<String>> = all
        .map(|messages| {
            let messages = messages.as_array().into_iter().flatten().cloned();
            let mut messages: Vec<String> = messages.map(canonical).collect();
            if any_order {
                messages.sort();
            }
            messages
        })
        .collect();
    if all.contains(&given) {
        return None;
    }
    let wanted = all.first().map(Vec::as_slice).unwrap_or_default();
    let at = wanted.iter().zip(&given).position(|(wanted, given)| wanted != given);
    let at = at.unwrap_or(wanted.len().min(given.len()));
    Some(format!(
        "{} messages are wanted, {} given; message {at}:\n  {}\n  {}",
        wanted.len(),
        given.len(),
        wanted.get(at).map_or("-", String::as_str),
        given.get(at).map_or("-", String::as_str)
    ))
}

/// A message as compact JSON with sorted keys; whole numbers in full.
fn canonical(mut message: Value) -> String {
    numbers(&mut message);
    message.to_string()
}

/// All numbers of messages are floats; those that are whole are written so.
fn numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or_default();
            #[expect(clippy::cast_possible_truncation, reason = "within the range of both")]
            let whole = float as i64;
            if float.fract() == 0.0 && float.abs() < 9e15 {
                *number = Number::from(whole);
            } else if let Some(float) = Number::from_f64(float) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(numbers),
        Value::Object(fields) => fields.values_mut().for_each(numbers),
        _ => {}
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
