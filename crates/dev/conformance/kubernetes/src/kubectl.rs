//! Runs kubectl against a server and notes what it printed, what it asked and what it got.

use crate::exchange::{self, Request};
use crate::place::{self, Places};
use crate::proxy::{Exchange, Proxy};
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

/// The minor version whose texts are recorded.
pub const MINOR: u32 = 35;
/// How long an invocation may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A kubectl of the recorded minor version.
#[derive(Clone)]
pub struct Kubectl {
    program: Vec<String>,
    /// Its version, as `v1.35.4`.
    pub version: String,
    /// How many may run at a time: each is a large program.
    at_a_time: Arc<Semaphore>,
}

impl Kubectl {
    /// The program `words` (a path and further words, separated by blanks), or why it does not do.
    ///
    /// # Errors
    ///
    /// Why, in words.
    pub fn find(words: Option<&str>) -> Result<Self, String> {
        let program: Vec<String> =
            words.unwrap_or("kubectl").split_whitespace().map(ToOwned::to_owned).collect();
        let Some((first, rest)) = program.split_first() else {
            return Err("no kubectl is named".to_owned());
        };
        let told = std::process::Command::new(first)
            .args(rest)
            .args(["version", "--client", "-o", "json"])
            .output()
            .map_err(|_| format!("there is no {first}"))?;
        let told: Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
        let version = told["clientVersion"]["gitVersion"].as_str().unwrap_or("of unknown version");
        if version.split('.').nth(1) != Some(&MINOR.to_string()) {
            return Err(format!("kubectl is {version}, not 1.{MINOR}"));
        }
        let version = version.to_owned();
        Ok(Self { program, version, at_a_time: Arc::new(Semaphore::new(2)) })
    }
}

/// Takes a step of kubectl. What came back is `{exit, stdout, stderr, calls}`.
pub(crate) async fn run(
    run: &mut Run<'_>,
    at: usize,
    step: &scenario::Kubectl,
    kubectl: &Kubectl,
) -> anyhow::Result<Value> {
    let _turn = kubectl.at_a_time.acquire().await.context("wait for a turn")?;
    let proxy = Proxy::start(run.server.client()).await?;
    let home = tempfile::tempdir().context("make a folder")?;
    let work = home.path().join("work");
    std::fs::create_dir_all(&work)?;
    run.masker.also(&work.to_string_lossy(), "<folder>");
    run.masker.also(&home.path().to_string_lossy(), "<home>");
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
            // kubectl may end before it has read everything, which is its own verdict to give.
            let _ = stdin.write_all(&input).await;
        }
        drop(stdin);
    };
    let both = async { tokio::join!(feed, child.wait_with_output()).1 };
    let output = tokio::time::timeout(PATIENCE, both).await.context("kubectl does not end")?;
    let output = output.context("run kubectl")?;
    let mut calls = Vec::new();
    for (number, exchange) in proxy.exchanges().iter().enumerate() {
        calls.push(noted(&mut run.masker, &run.places, exchange));
        run.places.note(at, number, &exchange.answer.value());
    }
    let printed = |bytes: &[u8]| run.masker.printed(&String::from_utf8_lossy(bytes));
    Ok(json!({
        "exit": output.status.code(),
        "stdout": printed(&output.stdout),
        "stderr": printed(&output.stderr),
        "calls": calls,
    }))
}

/// The search path of this process: kubectl runs diff and editors.
#[expect(clippy::disallowed_methods, reason = "other programs are found as the shell finds them")]
fn path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Whether a request opens a watch.
pub(crate) fn is_watch(path: &str) -> bool {
    path.split(['?', '&']).skip(1).any(|word| matches!(word, "watch=1" | "watch=true"))
}

/// An exchange as a recording has it.
fn noted(masker: &mut Masker, places: &Places, exchange: &Exchange) -> Value {
    let Exchange { request, answer } = exchange;
    let mut call = asked(masker, places, request);
    call.append(&mut answer.outline(masker));
    if is_watch(&request.path) {
        // How many steps an object takes is a matter of timing; what kubectl waited for is not.
        let text = String::from_utf8_lossy(&answer.body);
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map(|line| exchange::body(line.as_bytes())).unwrap_or_default();
        call.insert("last".to_owned(), masker.value(&last));
    } else {
        call.insert("answer".to_owned(), masker.value(&answer.value()));
    }
    call.into()
}

/// What was asked, with what it repeats of earlier answers named by its place there.
fn asked(masker: &mut Masker, places: &Places, request: &Request) -> Map<String, Value> {
    let mut asked = Map::new();
    let path = masker.text(&referring_path(masker, places, &request.path));
    asked.insert("ask".to_owned(), format!("{} {path}", request.method).into());
    for (name, value) in &request.headers {
        let usual = name == "user-agent" || (name == "accept" && value == "application/json");
        if !usual {
            let value =
                if name.starts_with("impersonate-") { masker.text(value) } else { value.clone() };
            asked.insert(name.replace("content-type", "sends"), value.into());
        }
    }
    if !request.body.is_empty() {
        let body = exchange::body(&request.body);
        let body = referring(masker, places, "", &body);
        asked.insert("with".to_owned(), masker.value(&body));
    }
    asked
}

/// Fields whose values are places if they are known.
fn repeats(masker: &Masker, key: &str, value: &str) -> bool {
    match key {
        "uid" | "continue" => true,
        "resourceVersion" => value != "0",
        _ => masker.is_made_up(value),
    }
}

fn referring(masker: &Masker, places: &Places, key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if repeats(masker, key, text) => match places.of(text) {
            Some(place) => place.into(),
            // Nobody told kubectl: it stands in a file of the scenario.
            None if key == "resourceVersion" && !text.is_empty() => place::written(text).into(),
            None => value.clone(),
        },
        Value::Array(items) => {
            items.iter().map(|item| referring(masker, places, "", item)).collect()
        }
        Value::Object(fields) => {
            // The value of an operation of a JSON patch is that of the field at its path.
            let path = fields.get("path").and_then(Value::as_str).unwrap_or_default();
            let field = path.rsplit('/').next().unwrap_or_default();
            let fields = fields.iter().map(|(k, v)| {
                let key = if k == "value" && !field.is_empty() { field } else { k };
                (k.clone(), referring(masker, places, key, v))
            });
            fields.collect()
        }
        other => other.clone(),
    }
}

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static WORD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?P<lead>[?&](?P<key>[A-Za-z]+)=|/)(?P<it>[^/?&]+)").expect("a pattern")
});

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a pattern")
});

fn referring_path(masker: &Masker, places: &Places, path: &str) -> String {
    let path = WORD.replace_all(path, |found: &regex::Captures<'_>| {
        let key = found.name("key").map_or("", |key| key.as_str());
        let value = &found["it"];
        let value = match key {
            // Chosen at random.
            "timeoutSeconds" => "400".to_owned(),
            "fieldSelector" => {
                // From a map of Go, in any order.
                let mut terms: Vec<&str> = value.split("%2C").collect();
                terms.sort_unstable();
                terms.join("%2C")
            }
            _ if repeats(masker, key, value) => places.of(value).unwrap_or(value).to_owned(),
            _ => value.to_owned(),
        };
        format!("{}{value}", &found["lead"])
    });
    let uid = |found: &regex::Captures<'_>| places.of(&found[0]).unwrap_or(&found[0]).to_owned();
    UID.replace_all(&path, uid).into_owned()
}
