//! Replay of recorded registry API calls (`calls.jsonl`): our server answers them, and every
//! message is compared.

use anyhow::Context;
use mainstay_registry::grpc::Grpc;
use mainstay_registry::json::{RpcCallResult, call};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Makes all calls of a recording, in order. Returns each call (method and request) with its
/// differences.
///
/// # Errors
///
/// A line is no recorded call.
pub async fn replay(recording: &str, grpc: &Grpc) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let mut calls = Vec::new();
    for (index, line) in recording.lines().enumerate() {
        let expected: Value =
            serde_json::from_str(line).with_context(|| format!("line {}", index + 1))?;
        let rpc = expected["rpc"].as_str().unwrap_or_default();
        let metadata: Vec<(&str, &str)> = expected["metadata"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let answer = call(grpc.clone(), rpc, &expected["request"], &metadata)
            .await
            .map_err(|why| anyhow::anyhow!("line {}: {why}", index + 1))?;
        let call = format!("{rpc}{}", expected["request"]);
        calls.push((call, compare(rpc, &expected, answer).into_iter().collect()));
    }
    Ok(calls)
}

/// The difference between a recorded response and ours.
fn compare(rpc: &str, expected: &Value, answer: RpcCallResult) -> Option<String> {
    let (code, message) = (&expected["code"], expected["message"].as_str().unwrap_or_default());
    if code != answer.code || message != answer.message {
        return Some(format!(
            "{code} {message:?} is wanted, {} {:?} is given",
            answer.code, answer.message
        ));
    }
    let mut actual: Vec<String> = answer.messages.into_iter().map(canonical).collect();
    let has_alternatives = expected["one_of"].is_array();
    if let Some(sum) = expected["sha256"].as_str().filter(|_| !has_alternatives) {
        actual.sort();
        let text = actual.join("\n") + "\n";
        let counts = (expected["count"].as_u64(), expected["bytes"].as_u64());
        if counts != (Some(actual.len() as u64), Some(text.len() as u64)) || sum != hash(&text) {
            return Some(format!(
                "{counts:?} messages and bytes are wanted, {} and {} (or of other content) are given",
                actual.len(),
                text.len()
            ));
        }
        return None;
    }
    // Upstream iterates over a hash table: a few recordings may miss that the order varies.
    let any_order = rpc != "ListBundles" || expected["order"] == "any";
    if any_order {
        actual.sort();
    }
    let all = expected["one_of"].as_array().into_iter().flatten().chain([&expected["answers"]]);
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
    if all.contains(&actual) {
        return None;
    }
    let expected = all.first().map(Vec::as_slice).unwrap_or_default();
    let at = expected.iter().zip(&actual).position(|(expected, actual)| expected != actual);
    let at = at.unwrap_or(expected.len().min(actual.len()));
    Some(format!(
        "{} messages are wanted, {} given; message {at}:\n  {}\n  {}",
        expected.len(),
        actual.len(),
        expected.get(at).map_or("-", String::as_str),
        actual.get(at).map_or("-", String::as_str)
    ))
}

/// A message as compact JSON with sorted keys and normalized numbers.
fn canonical(mut message: Value) -> String {
    normalize_numbers(&mut message);
    message.to_string()
}

/// All numbers of messages are floats; whole ones are written as integers.
fn normalize_numbers(value: &mut Value) {
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
        Value::Array(items) => items.iter_mut().for_each(normalize_numbers),
        Value::Object(fields) => fields.values_mut().for_each(normalize_numbers),
        _ => {}
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
