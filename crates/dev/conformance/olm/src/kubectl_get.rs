//! The output of `kubectl get` for packages, computed from the responses to kubectl's requests.
//!
//! Tables are compared cell by cell, and rows and images are sorted: the original's order is
//! random.

use super::case::CaseStep;
use anyhow::Context;
use mainstay_client::Cluster;
use mainstay_conformance_harness::kubectl::CommandLine;
use mainstay_packages::{GROUP, VERSION};
use serde_json::{Value, json};
use std::fmt::Write as _;

const PLURAL: &str = "packagemanifests";
/// The content types that kubectl accepts.
const TABLE_ACCEPT: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// The recorded output of a step's command.
pub(super) fn recorded_output(step: &CaseStep) -> Value {
    let (out, error) = &step.printed;
    let output = match serde_json::from_str::<Value>(out) {
        Ok(value) => canonicalize(value),
        Err(_) if out.lines().next().is_some_and(|header| header.contains("NAME ")) => cells(out),
        Err(_) => out.trim_end().into(),
    };
    outcome(step.exit.unwrap_or_default(), output, error)
}

/// The output with our API; none if the command is not about packages.
pub(super) async fn print(cluster: &Cluster, text: &str) -> anyhow::Result<Option<Value>> {
    let line = CommandLine::parse(text)?;
    let of_packages = match &line.raw {
        Some(path) => path.contains(GROUP),
        None => line.arguments.first().is_some_and(|argument| argument == PLURAL),
    };
    if line.verb != "get" || !of_packages {
        return Ok(None);
    }
    Ok(Some(match output(cluster, &line).await {
        Ok((value, None)) => outcome(0, value, ""),
        Ok((value, Some(error))) => outcome(1, value, &error),
        Err(error) => match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => {
                let (reason, message) = (&status.reason, &status.message);
                let found = if line.fields.is_empty() || reason != "BadRequest" {
                    message.clone()
                } else {
                    format!(
                        "Unable to find \"{GROUP}/{VERSION}, Resource={PLURAL}\" that match label selector {:?}, field selector {:?}: {message}",
                        line.selector, line.fields
                    )
                };
                outcome(1, "", &format!("Error from server ({reason}): {found}"))
            }
            _ => return Err(error),
        },
    }))
}

fn outcome(exit: i64, out: impl Into<Value>, error: &str) -> Value {
    let out: Value = out.into();
    json!({"exit": exit, "out": out, "error": error.trim_end()})
}

/// The output, and the error message if the command fails.
async fn output(cluster: &Cluster, line: &CommandLine) -> anyhow::Result<(Value, Option<String>)> {
    if let Some(path) = &line.raw {
        let text = get_text(cluster, path, "application/json").await?;
        let value = serde_json::from_str(&text).map(canonicalize);
        return Ok((value.unwrap_or_else(|_| text.trim_end().into()), None));
    }
    let all_namespaces = line.flags.iter().any(|flag| flag == "-A");
    let mut path = format!("/apis/{GROUP}/{VERSION}");
    if !all_namespaces {
        let _ = write!(path, "/namespaces/{}", line.namespace.as_deref().unwrap_or("default"));
    }
    let _ = write!(path, "/{PLURAL}");
    if let Some(name) = line.arguments.get(1) {
        let _ = write!(path, "/{name}");
    }
    let escaped = |text: &str| text.replace('=', "%3D").replace(',', "%2C");
    let (labels, fields) = (escaped(&line.selector), escaped(&line.fields));
    let _ = write!(path, "?labelSelector={labels}&fieldSelector={fields}");
    if line.output == "json" {
        let text = get_text(cluster, &path, "application/json").await?;
        return Ok((canonicalize(serde_json::from_str(&text)?), None));
    }
    let table: Value = serde_json::from_str(&get_text(cluster, &path, TABLE_ACCEPT).await?)?;
    let show_labels = line.flags.iter().any(|flag| flag == "--show-labels");
    let printed_rows = rows(&table, all_namespaces, show_labels);
    if line.flags.iter().any(|flag| flag == "--watch") {
        let revision = table["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let watch = format!("{path}&watch=true&timeoutSeconds=1&resourceVersion={revision}");
        if let Err(error) = get_text(cluster, &watch, TABLE_ACCEPT).await {
            return Ok((printed_rows, Some(error.to_string())));
        }
    }
    Ok((printed_rows, None))
}

async fn get_text(cluster: &Cluster, path: &str, accept: &str) -> anyhow::Result<String> {
    let request = http::Request::get(path).header("accept", accept).body(Vec::new());
    let request = request.context("make a request")?;
    Ok(cluster.client().request_text(request).await?)
}

/// A value without fields that differ between two runs.
fn canonicalize(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    "creationTimestamp" => *value = "{time}".into(),
                    "relatedImages" => {
                        if let Some(images) = value.as_array_mut() {
                            images.sort_by_key(Value::to_string);
                        }
                    }
                    _ => *value = canonicalize(value.take()),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = canonicalize(item.take())),
        _ => {}
    }
    value
}

/// The rows of a printed table.
fn cells(text: &str) -> Value {
    let split = |line: &str| -> Value {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(Value::from).collect()
    };
    let mut lines: Vec<&str> = text.lines().filter(|row| !row.trim().is_empty()).collect();
    lines.get_mut(1..).unwrap_or_default().sort_unstable();
    lines.into_iter().map(split).collect()
}

/// The rows of a table as kubectl prints them.
fn rows(table: &Value, all_namespaces: bool, show_labels: bool) -> Value {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut titles: Vec<String> = items(&table["columnDefinitions"])
        .iter()
        .map(|column_definition| text(&column_definition["name"]).to_uppercase())
        .collect();
    let age = titles.iter().position(|title| title == "AGE");
    let row_cells = |row: &Value| {
        let mut cells: Vec<String> = items(&row["cells"]).iter().map(text).collect();
        if let Some(cell) = age.and_then(|at| cells.get_mut(at)) {
            "{age}".clone_into(cell);
        }
        let metadata = &row["object"]["metadata"];
        if all_namespaces {
            cells.insert(0, text(&metadata["namespace"]));
        }
        if show_labels {
            let labels = metadata["labels"].as_object().into_iter().flatten();
            let mut labels: Vec<String> =
                labels.map(|(key, value)| format!("{key}={}", text(value))).collect();
            labels.sort_unstable();
            cells.push(labels.join(","));
        }
        cells.retain(|cell| !cell.is_empty());
        cells
    };
    let mut all: Vec<Vec<String>> = items(&table["rows"]).iter().map(row_cells).collect();
    all.sort();
    if all_namespaces {
        titles.insert(0, "NAMESPACE".to_owned());
    }
    if show_labels {
        titles.push("LABELS".to_owned());
    }
    all.insert(0, titles);
    json!(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_table_equals_the_api_table_that_it_renders() {
        let output = "NAMESPACE   NAME   CATALOG     AGE   LABELS\nb           y      My things   {age}    a=b,c=\na           x      Cat         {age}    <none>\n";
        let row = |namespace: &str, cells: Value, labels: Value| json!({"cells": cells, "object": {"metadata": {"namespace": namespace, "labels": labels}}});
        let table = json!({
            "columnDefinitions": [{"name": "Name"}, {"name": "Catalog"}, {"name": "Age"}],
            "rows": [
                row("b", json!(["y", "My things", "5s"]), json!({"c": "", "a": "b"})),
                row("a", json!(["x", "Cat", "3d"]), json!({"<none>": ""})),
            ],
        });
        let mut expected = cells(output);
        expected[1][4] = "<none>=".into();
        assert_eq!(rows(&table, true, true), expected);
    }
}
