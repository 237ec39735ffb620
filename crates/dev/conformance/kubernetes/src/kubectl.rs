//! Runs kubectl against a server, and records its output, requests and responses.

use crate::exchange::{self, Request};
use crate::proxy::{Exchange, Proxy};
use crate::references::{self, References};
use crate::run::Run;
use crate::{mask::Masker, scenario};
use anyhow::Context;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::process::Stdio;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

/// The minor version of kubectl whose output is recorded.
pub const MINOR_VERSION: u32 = 35;
/// The timeout of a kubectl command.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A kubectl of the recorded minor version.
#[derive(Clone)]
pub struct Kubectl {
    program: Vec<String>,
    /// Its version, as `v1.35.4`.
    pub version: String,
    /// Limits the number of concurrent processes: each is a large program.
    slots: Arc<Semaphore>,
}

impl Kubectl {
    /// Finds the program `words`: a path and further arguments, separated by blanks.
    ///
    /// # Errors
    ///
    /// Why it cannot be used, as text.
    pub fn find(words: Option<&str>) -> Result<Self, String> {
        let program: Vec<String> =
            words.unwrap_or("kubectl").split_whitespace().map(ToOwned::to_owned).collect();
        let Some((first, rest)) = program.split_first() else {
            return Err("no kubectl is named".to_owned());
        };
        let output = std::process::Command::new(first)
            .args(rest)
            .args(["version", "--client", "-o", "json"])
            .output()
            .map_err(|_| format!("there is no {first}"))?;
        let output: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let version =
            output["clientVersion"]["gitVersion"].as_str().unwrap_or("of unknown version");
        if version.split('.').nth(1) != Some(&MINOR_VERSION.to_string()) {
            return Err(format!("kubectl is {version}, not 1.{MINOR_VERSION}"));
        }
        let version = version.to_owned();
        Ok(Self { program, version, slots: Arc::new(Semaphore::new(2)) })
    }
}

/// Runs a kubectl step; the result is `{exit, stdout, stderr, calls}`.
pub(crate) async fn run(
    run: &mut Run<'_>,
    at: usize,
    step: &scenario::Kubectl,
    kubectl: &Kubectl,
) -> anyhow::Result<Value> {
    let _permit = kubectl.slots.acquire().await.context("wait for a turn")?;
    let proxy = Proxy::start(run.server.client()).await?;
    let home = tempfile::tempdir().context("make a folder")?;
    let work = home.path().join("work");
    std::fs::create_dir_all(&work)?;
    run.masker.add_word(&work.to_string_lossy(), "<folder>");
    run.masker.add_word(&home.path().to_string_lossy(), "<home>");
    for (name, text) in run.vars.table(&step.files) {
        let path = work.join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "scenario",
        "clusters": [{"name": "scenario", "cluster": {"server": proxy.url}}],
        "users": [{"name": "scenario", "user": {}}],
        "contexts": [{"name": "scenario", "context":
            {"cluster": "scenario", "user": "scenario", "namespace": run.namespace}}],
    });
    let config = home.path().join("kubeconfig");
    std::fs::write(&config, kubeconfig.to_string())?;
    let arguments = step.arguments.iter().map(|argument| run.vars.fill(argument));
    let (program, words) = kubectl.program.split_first().context("kubectl has a name")?;
    let mut command = Command::new(program);
    command
        .args(words)
        .args(arguments)
        .current_dir(&work)
        .env_clear()
        .env("PATH", path())
        .env("HOME", home.path())
        .env("KUBECONFIG", &config)
        .env("KUBECACHEDIR", home.path().join("cache"))
        .env("KUBERC", "off")
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .envs(run.vars.table(&step.env))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().context("start kubectl")?;
    let mut stdin = child.stdin.take();
    let input = run.vars.fill(&step.stdin).into_bytes();
    let feed = async move {
        if let Some(stdin) = &mut stdin {
            // kubectl may exit before it has read its whole input.
            let _ = stdin.write_all(&input).await;
        }
        drop(stdin);
    };
    let both = async { tokio::join!(feed, child.wait_with_output()).1 };
    let output = tokio::time::timeout(TIMEOUT, both).await.context("kubectl does not end")?;
    let output = output.context("run kubectl")?;
    let mut calls = Vec::new();
    for (number, exchange) in proxy.exchanges().iter().enumerate() {
        calls.push(record_exchange(&mut run.masker, &run.references, exchange));
        run.references.record(at, number, &exchange.answer.value());
    }
    let printed = |bytes: &[u8]| run.masker.printed(&String::from_utf8_lossy(bytes));
    Ok(json!({
        "exit": output.status.code(),
        "stdout": printed(&output.stdout),
        "stderr": printed(&output.stderr),
        "calls": calls,
    }))
}

/// The `PATH` of this process: kubectl runs diff and editors.
#[expect(clippy::disallowed_methods, reason = "other programs are found as the shell finds them")]
fn path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Whether a request opens a watch.
pub(crate) fn is_watch(path: &str) -> bool {
    path.split(['?', '&']).skip(1).any(|word| matches!(word, "watch=1" | "watch=true"))
}

/// Converts an exchange to its recorded form.
fn record_exchange(masker: &mut Masker, references: &References, exchange: &Exchange) -> Value {
    let Exchange { request, answer } = exchange;
    let mut call = record_request(masker, references, request);
    call.append(&mut answer.outline(masker));
    if is_watch(&request.path) {
        // The number of events depends on timing; the event that kubectl waited for does not.
        let text = String::from_utf8_lossy(&answer.body);
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map(|line| exchange::body(line.as_bytes())).unwrap_or_default();
        call.insert("last".to_owned(), masker.value(&last));
    } else {
        call.insert("answer".to_owned(), masker.value(&answer.value()));
    }
    call.into()
}

/// Converts a request to its recorded form, with references for values of earlier responses.
fn record_request(
    masker: &mut Masker,
    references: &References,
    request: &Request,
) -> Map<String, Value> {
    let mut record_request = Map::new();
    let path = masker.text(&path_with_references(masker, references, &request.path));
    record_request.insert("ask".to_owned(), format!("{} {path}", request.method).into());
    for (name, value) in &request.headers {
        let usual = name == "user-agent" || (name == "accept" && value == "application/json");
        if !usual {
            let value =
                if name.starts_with("impersonate-") { masker.text(value) } else { value.clone() };
            record_request.insert(name.replace("content-type", "sends"), value.into());
        }
    }
    if !request.body.is_empty() {
        let body = exchange::body(&request.body);
        let body = with_references(masker, references, "", &body);
        record_request.insert("with".to_owned(), masker.value(&body));
    }
    record_request
}

/// Whether a field's value is replaced by a reference, if one exists.
fn is_reference(masker: &Masker, key: &str, value: &str) -> bool {
    match key {
        "uid" | "continue" => true,
        "resourceVersion" => value != "0",
        _ => masker.is_made_up(value),
    }
}

fn with_references(masker: &Masker, references: &References, key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if is_reference(masker, key, text) => {
            match references.reference_to(text) {
                Some(place) => place.into(),
                // No response had it: a file of the scenario has it.
                None if key == "resourceVersion" && !text.is_empty() => {
                    references::literal(text).into()
                }
                None => value.clone(),
            }
        }
        Value::Array(items) => {
            items.iter().map(|item| with_references(masker, references, "", item)).collect()
        }
        Value::Object(fields) => {
            // The value of a JSON patch operation is treated as the field at its path.
            let path = fields.get("path").and_then(Value::as_str).unwrap_or_default();
            let field = path.rsplit('/').next().unwrap_or_default();
            let fields = fields.iter().map(|(k, v)| {
                let key = if k == "value" && !field.is_empty() { field } else { k };
                (k.clone(), with_references(masker, references, key, v))
            });
            fields.collect()
        }
        other => other.clone(),
    }
}

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static WORD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?P<lead>[?&](?P<key>[A-Za-z]+)=|/)(?P<value>[^/?&]+)").expect("a pattern")
});

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a pattern")
});

fn path_with_references(masker: &Masker, references: &References, path: &str) -> String {
    let path = WORD.replace_all(path, |found: &regex::Captures<'_>| {
        let key = found.name("key").map_or("", |key| key.as_str());
        let value = &found["value"];
        let value = match key {
            // A random number.
            "timeoutSeconds" => "400".to_owned(),
            "fieldSelector" => {
                // The terms come from a Go map, in random order.
                let mut terms: Vec<&str> = value.split("%2C").collect();
                terms.sort_unstable();
                terms.join("%2C")
            }
            _ if is_reference(masker, key, value) => {
                references.reference_to(value).unwrap_or(value).to_owned()
            }
            _ => value.to_owned(),
        };
        format!("{}{value}", &found["lead"])
    });
    let uid = |found: &regex::Captures<'_>| {
        references.reference_to(&found[0]).unwrap_or(&found[0]).to_owned()
    };
    UID.replace_all(&path, uid).into_owned()
}
