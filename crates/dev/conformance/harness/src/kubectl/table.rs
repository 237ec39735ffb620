//! `kubectl get`.

use super::{CommandLine, Target, kind_name, request};
use mainstay_client::{Cluster, ObjectList};
use serde_json::Value;
use std::fmt::Write as _;

/// The content types that kubectl accepts.
const TABLE_ACCEPT: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// What the recordings have instead of an age.
const AGE: &str = "{age}";
/// The blanks between two columns.
const PADDING: usize = 3;

/// The output and the standard error.
pub(super) async fn get(
    cluster: &Cluster,
    target: &Target,
    line: &CommandLine,
    with_kind: bool,
) -> anyhow::Result<(String, String)> {
    let resource = &target.resource;
    if line.output == "name" {
        let list = cluster.list(resource, target.namespace(), &selected(line)).await?;
        let named = |name: &String| target.names.is_empty() || target.names.contains(name);
        let names = list.items.iter().map(|item| item.name().to_owned()).filter(named);
        let mut output = String::new();
        for name in names {
            let _ = writeln!(output, "{}/{name}", kind_name(resource));
        }
        return Ok((output, String::new()));
    }
    let collection = resource.collection_path(target.namespace());
    let mut rows = Vec::new();
    let mut columns = Vec::new();
    let paths = if target.names.is_empty() {
        let escaped = line.selector.replace('=', "%3D").replace(',', "%2C");
        vec![format!("{collection}?labelSelector={escaped}")]
    } else {
        target.names.iter().map(|name| format!("{collection}/{name}")).collect()
    };
    for path in paths {
        let request = http::Request::get(path).header("accept", TABLE_ACCEPT).body(Vec::new())?;
        let table = request::send(cluster, request).await?;
        columns = items(&table["columnDefinitions"]).to_vec();
        rows.extend(items(&table["rows"]).iter().map(|row| cells(&columns, row)));
    }
    if rows.is_empty() {
        let error = match target.namespace() {
            Some(namespace) => format!("No resources found in {namespace} namespace.\n"),
            None => "No resources found\n".to_owned(),
        };
        return Ok((String::new(), error));
    }
    let shown = columns.iter().filter(|column| is_shown(column));
    let titles = shown.map(|column| text(&column["name"]).to_uppercase()).collect();
    if with_kind {
        for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = format!("{}/{name}", kind_name(resource));
        }
    }
    rows.insert(0, titles);
    Ok((print(&rows), String::new()))
}

fn selected(line: &CommandLine) -> ObjectList {
    if line.selector.is_empty() {
        ObjectList::default()
    } else {
        ObjectList::labels(line.selector.clone())
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Columns of a higher priority are printed with `-o wide` only.
fn is_shown(column: &Value) -> bool {
    column["priority"].as_i64().unwrap_or_default() == 0
}

fn cells(columns: &[Value], row: &Value) -> Vec<String> {
    let pairs = columns.iter().zip(items(&row["cells"])).filter(|(column, _)| is_shown(column));
    let cell = |(column, value): (&Value, &Value)| {
        let of_time = column["name"] == "Age" || column["type"] == "date";
        match text(value) {
            value if of_time && !value.is_empty() && !value.starts_with('<') => AGE.to_owned(),
            value => value,
        }
    };
    pairs.map(cell).collect()
}

/// Aligns the columns.
fn print(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..count)
        .map(|at| {
            let lengths =
                rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            lengths.max().unwrap_or_default() + PADDING
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            let width = if at + 1 == row.len() { 0 } else { widths[at] };
            let _ = write!(out, "{cell:width$}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_have_aligned_columns_without_ages() {
        let columns = json!([
            {"name": "Name"}, {"name": "Unpacked", "type": "date"}, {"name": "Wide", "priority": 1},
            {"name": "Age", "type": "date"},
        ]);
        let columns = items(&columns);
        let row = |values: Value| cells(columns, &json!({"cells": values}));
        let titles = ["NAME", "UNPACKED", "AGE"].map(str::to_owned).to_vec();
        let rows =
            [titles, row(json!(["anvil", "5s", "x", "3d"])), row(json!(["b", "", "x", "1s"]))];
        let wanted = "NAME    UNPACKED   AGE\nanvil   {age}      {age}\nb                  {age}\n";
        assert_eq!(print(&rows), wanted);
    }
}
