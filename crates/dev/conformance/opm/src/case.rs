//! Recorded cases.

use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of a case's folder that belong to the recording, and were not there when the case ran.
const OUTPUT_FILES: [&str; 4] = ["case.json", "out", "calls.jsonl", "rows.jsonl"];

/// One recorded case.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The name of its folder, `NNNN-AREA-SLUG`.
    pub name: String,
    /// The area of the command line interface.
    pub area: String,
    /// The path of the folder.
    pub folder: PathBuf,
    /// The command line after the program's name.
    pub arguments: Vec<String>,
    /// Whether `HELP_ALPHA` is set.
    pub alpha: bool,
    /// Further environment variables.
    pub environment: BTreeMap<String, String>,
    /// The standard input.
    pub input: String,
    /// What the case needs besides its folder: `registry`, or the archive with published catalogs
    /// or bundles.
    pub needs: Option<String>,
    /// The recorded exit codes.
    pub exits: Vec<i64>,
    /// The recorded errors.
    pub messages: Vec<String>,
    /// The recorded outputs.
    pub outputs: Vec<String>,
    /// The SHA-256 of an output that is too large to record.
    pub digest: Option<String>,
    /// The SHA-256 of written files that are too large to record, by path in the folder that the
    /// command line names.
    pub written: Option<BTreeMap<String, String>>,
    /// Recorded calls to the served catalog, one per line.
    pub calls: Option<String>,
    /// The inputs of a case that runs one command line on many inputs.
    pub rows: Vec<Row>,
    /// Whether upstream logged that it started the command's actual work.
    pub started: bool,
    /// The rule that the case tests.
    pub rule: String,
}

/// One of many inputs of a case.
#[derive(Clone, Debug)]
pub struct Row {
    /// The arguments that replace `{bundle}` and `{flags}`.
    pub arguments: Vec<String>,
    /// The exit code.
    pub exit: i64,
    /// The error, if it failed.
    pub message: Option<String>,
    /// The SHA-256 of the output, if it did not fail.
    pub digest: Option<String>,
}

impl Row {
    fn of(row: &Value) -> Self {
        let flags = row["flags"].as_array().into_iter().flatten();
        let arguments = std::iter::once(&row["bundle"]).chain(flags);
        Self {
            arguments: arguments.filter_map(Value::as_str).map(str::to_owned).collect(),
            exit: row["exit"].as_i64().unwrap_or_default(),
            message: row["message"].as_str().map(str::to_owned),
            digest: row["sha256_raw"].as_str().map(str::to_owned),
        }
    }
}

/// Reads all cases in a folder, sorted by name.
///
/// # Errors
///
/// A file cannot be read.
pub fn read_all(root: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(root).with_context(|| root.display().to_string())? {
        let folder = entry?.path();
        if folder.join("case.json").is_file() {
            cases.push(read(&folder).with_context(|| folder.display().to_string())?);
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn read(folder: &Path) -> anyhow::Result<Case> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let case: Value = serde_json::from_slice(&fs::read(folder.join("case.json"))?)?;
    let texts = |key: &str| -> Vec<String> {
        let items = case[key].as_array().into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let text = |key: &str| case[key].as_str().map(str::to_owned);
    let variables = case["env"].as_object().into_iter().flatten();
    let mut exits: Vec<i64> =
        case["exits"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    exits.extend(case["exit"].as_i64());
    let mut messages = texts("messages");
    messages.extend(text("message"));
    let mut outputs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_output(&file, "stdout") {
            outputs.push(String::from_utf8_lossy(&fs::read(path)?).into_owned());
        }
    }
    // Of large outputs and of scripts only the size was recorded.
    if case["stdout_bytes"].as_u64().is_some_and(|size| size > 0) {
        outputs.retain(|output| !output.is_empty());
    }
    let lines = |file: &str| -> anyhow::Result<Vec<Value>> {
        let path = folder.join(file);
        if !path.is_file() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(path)?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    };
    let written = case["out_sha256_raw"].as_object().map(|files| {
        let texts = files.iter().filter_map(|(path, sum)| Some((path.clone(), sum.as_str()?)));
        texts.map(|(path, sum)| (path, sum.to_owned())).collect()
    });
    Ok(Case {
        area: name.split('-').nth(1).unwrap_or_default().to_owned(),
        name,
        folder: folder.to_owned(),
        arguments: texts("argv").into_iter().skip(1).collect(),
        alpha: case["env"]["HELP_ALPHA"] == "true",
        environment: variables
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
        input: text("stdin").unwrap_or_default(),
        needs: text("needs"),
        exits,
        messages,
        outputs,
        digest: text("stdout_sha256_raw"),
        written,
        calls: fs::read_to_string(folder.join("calls.jsonl")).ok(),
        rows: lines("rows.jsonl")?.iter().map(Row::of).collect(),
        started: fs::read_to_string(folder.join("stderr"))
            .is_ok_and(|stderr| stderr.contains(" level=info ")),
        rule: text("why").unwrap_or_default(),
    })
}

/// Whether a file is `stdout`, `stdout.2` and so on.
fn is_output(file: &str, kind: &str) -> bool {
    file.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a file of a case's folder is an input of the case.
pub(super) fn is_input(file: &str) -> bool {
    !OUTPUT_FILES.contains(&file) && !is_output(file, "stdout") && !is_output(file, "stderr")
}
