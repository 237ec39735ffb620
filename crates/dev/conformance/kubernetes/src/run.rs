//! Takes the steps of a scenario on a server and notes what came back, masked.

use crate::backend::{Backend, Reply, Says};
use crate::exchange::{Answer, Request};
use crate::kubectl::{self, Kubectl};
use crate::mask::Masker;
use crate::place::Places;
use crate::replay;
use crate::scenario::{Call, Payload, Scenario, Serve, Step, Wait, Watch};
use crate::server::{PATIENCE, Server, headers};
use crate::vars::Vars;
use anyhow::{Context, bail};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Who the runner says that it is, unless a step says otherwise.
const AGENT: &str = "scenario/1.0";
/// How long the real server may take to read what was configured.
const SETTLES: Duration = Duration::from_millis(1500);
/// How long a watch may take until its next event.
const NEXT_EVENT: Duration = Duration::from_secs(15);
/// How long something may take that must come to pass on a server of any make, which may be busy with
/// many other namespaces; on the embedded one, which has nothing else to do.
const COMES_TO_PASS: [Duration; 2] = [Duration::from_secs(90), Duration::from_secs(20)];

/// How steps of kubectl are taken.
pub enum Mode<'a> {
    /// kubectl runs.
    Live(&'a Kubectl),
    /// Its recorded requests are sent; the recorded steps are given.
    Replay(&'a [Value]),
}

/// What came back from the steps of a scenario.
pub struct Outcome {
    /// What came back, a value for each step that was taken.
    pub steps: Vec<Value>,
    /// Why the steps after these could not be taken.
    pub broken: Option<String>,
}

/// A run.
pub(crate) struct Run<'a> {
    pub(crate) server: &'a Server,
    pub(crate) namespace: String,
    pub(crate) vars: Vars,
    pub(crate) masker: Masker,
    pub(crate) places: Places,
    backends: BTreeMap<String, Backend>,
}

/// Runs a scenario. Whatever goes wrong is part of the outcome; no wait is without an end.
pub async fn run(scenario: &Scenario, server: &Server, mode: &Mode<'_>) -> Outcome {
    let id = format!("id{}", word());
    let namespace = format!("ns-{}", word());
    let masker = Masker::new(&namespace, &id, &scenario.source);
    let mut vars = Vars::default();
    vars.set("ns", namespace.clone());
    vars.set("id", id);
    let places = Places::default();
    let backends = BTreeMap::new();
    let mut run = Run { server, namespace, vars, masker, places, backends };
    let mut steps = Vec::new();
    let taken = run.take(scenario, mode, &mut steps).await;
    let ended = run.clean_up(scenario).await;
    let broken = taken.and(ended).err().map(|error| format!("{error:#}"));
    Outcome { steps, broken }
}

/// Eight random letters and digits.
fn word() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0_u8; 8];
    // Without randomness two runs would meet in a namespace, and say so.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

impl Run<'_> {
    async fn take(
        &mut self,
        scenario: &Scenario,
        mode: &Mode<'_>,
        steps: &mut Vec<Value>,
    ) -> anyhow::Result<()> {
        if scenario.needs_namespace() {
            self.make_namespace().await.context("make the namespace")?;
        }
        for (at, step) in scenario.steps.iter().enumerate() {
            let taken = match (step, mode) {
                (Step::Call(call), _) => self.call(at, call, steps).await,
                (Step::Watch(watch), _) => self.watch(watch, steps).await,
                (Step::Wait(wait), _) => {
                    steps.push(Value::Null);
                    self.wait(wait).await
                }
                (Step::Serve(serve), _) => {
                    steps.push(Value::Null);
                    self.serve(serve).await
                }
                (Step::Received(name), _) => self.received(name, steps),
                (Step::Settle, _) => {
                    steps.push(Value::Null);
                    self.settle().await;
                    Ok(())
                }
                (Step::Kubectl(step), Mode::Live(kubectl)) => {
                    kubectl::run(self, at, step, kubectl).await.map(|made| steps.push(made))
                }
                (Step::Kubectl(_), Mode::Replay(recorded)) => {
                    let recorded = recorded.get(at).unwrap_or(&Value::Null);
                    replay::run(self, at, recorded).await.map(|made| steps.push(made))
                }
            };
            taken.with_context(|| format!("step {at}"))?;
        }
        Ok(())
    }

    async fn serve(&mut self, serve: &Serve) -> anyhow::Result<()> {
        let names: Vec<String> = serve.names.iter().map(|name| self.vars.fill(name)).collect();
        let filled = |reply: &Reply| {
            let mut reply = reply.clone();
            reply.says = match reply.says {
                Says::Text(text) => Says::Text(self.vars.fill(&text)),
                Says::Response(value) => Says::Response(self.vars.value(&value)),
                other => other,
            };
            reply
        };
        let answers = serve.answers.iter().map(|(path, reply)| (path.clone(), filled(reply)));
        let backend = Backend::start(&names, answers.collect()).await?;
        let name = &serve.name;
        let (address, authority) = (&backend.address, &backend.authority);
        self.masker.also(address, &format!("<{name}>"));
        self.masker.also(authority, &format!("<{name} authority>"));
        self.vars.set(&format!("{name}-url"), format!("https://{address}"));
        self.vars.set(&format!("{name}-address"), address.clone());
        self.vars.set(&format!("{name}-ca"), authority.clone());
        self.backends.insert(name.clone(), backend);
        Ok(())
    }

    fn received(&mut self, name: &str, steps: &mut Vec<Value>) -> anyhow::Result<()> {
        let backend = self.backends.get(name).with_context(|| format!("no server {name}"))?;
        let mut received = backend.received();
        for one in &mut received {
            // Who the runner is differs; whom it plays does not.
            let user = one.pointer_mut("/body/request/userInfo");
            let Some(user) = user else { continue };
            let known = user["username"].as_str().is_some_and(|name| {
                self.masker.is_written(name) || name.starts_with("system:serviceaccount:")
            });
            if !known {
                *user = "<who>".into();
            } else if let Some(fields) = user.as_object_mut() {
                fields.remove("extra");
            }
        }
        steps.push(self.masker.value(&received.into()));
        Ok(())
    }

    /// The embedded server knows what is configured as soon as it has answered. The original reads
    /// it a moment later, and nothing says when.
    async fn settle(&self) {
        if !self.server.is_embedded() {
            tokio::time::sleep(SETTLES).await;
        }
    }

    async fn make_namespace(&self) -> anyhow::Result<()> {
        let name = &self.namespace;
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let made = self.plain("POST", "/api/v1/namespaces", &body).await?;
        if made.status != 201 {
            bail!("{}", made.value());
        }
        // What every namespace gets shall not appear in the middle of a scenario.
        for path in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
            let path = format!("/api/v1/namespaces/{name}/{path}");
            self.until(&path, |answer| answer.status == 200).await?;
        }
        Ok(())
    }

    async fn clean_up(&self, scenario: &Scenario) -> anyhow::Result<()> {
        for path in &scenario.cleanup {
            self.plain("DELETE", &self.vars.path(path)?, &Value::Null).await?;
        }
        if scenario.needs_namespace() {
            let path = format!("/api/v1/namespaces/{}", self.namespace);
            self.plain("DELETE", &path, &Value::Null).await?;
        }
        Ok(())
    }

    /// A request that is no part of the scenario.
    async fn plain(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.plain_with(method, path, body, &[]).await
    }

    async fn plain_with(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        more: &[(String, String)],
    ) -> anyhow::Result<Answer> {
        let json = |name: &str| (name.to_owned(), "application/json".to_owned());
        let mut headers =
            vec![json("accept"), json("content-type"), ("user-agent".into(), AGENT.into())];
        headers.extend_from_slice(more);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request { method: method.to_owned(), path: path.to_owned(), headers, body };
        self.server.ask(request).await
    }

    async fn call(&mut self, at: usize, call: &Call, steps: &mut Vec<Value>) -> anyhow::Result<()> {
        let body = match &call.body {
            Payload::None => Vec::new(),
            Payload::Json(value) => self.vars.value(value).to_string().into_bytes(),
            Payload::Text(text) => self.vars.fill(text).into_bytes(),
            Payload::Bytes(bytes) => self.masker.unmask_bytes(bytes),
        };
        let mut headers = self.headers(&call.accept, &call.headers);
        match (&call.content_type, &call.body) {
            (None, Payload::None) => {}
            (None, _) => headers.push(("content-type".into(), "application/json".into())),
            (Some(empty), _) if empty.is_empty() => {}
            (Some(kind), _) => headers.push(("content-type".into(), self.vars.fill(kind))),
        }
        let path = self.vars.path(&call.path)?;
        let request = Request { method: call.method.clone(), path, headers, body };
        let answer = self.server.ask(request).await?;
        let body = answer.value();
        let mut outline = answer.outline(&mut self.masker);
        if call.only.is_empty() {
            outline.insert("body".to_owned(), self.masker.value(&body));
        } else {
            // Made-up words may stand outside of the parts that are compared.
            self.masker.value(&body);
            let mut parts = Map::new();
            for pointer in &call.only {
                let part = body.pointer(&self.vars.fill(pointer)).cloned().unwrap_or_default();
                parts.insert(pointer.clone(), self.masker.value(&part));
            }
            outline.insert("only".to_owned(), parts.into());
        }
        self.places.note(at, 0, &body);
        steps.push(outline.into());
        for (name, from) in &call.save {
            let value = if let Some(header) = from.strip_prefix("header:") {
                answer.header(&header.to_ascii_lowercase()).next().map(ToOwned::to_owned)
            } else {
                body.pointer(&self.vars.fill(from)).map(plain_text)
            };
            let value = value.with_context(|| format!("the answer has no {from}"))?;
            self.vars.set(name, value);
        }
        Ok(())
    }

    fn headers(&self, accept: &str, more: &BTreeMap<String, String>) -> Vec<(String, String)> {
        let mut headers = vec![("accept".to_owned(), self.vars.fill(accept))];
        let agent = more.keys().any(|name| name.eq_ignore_ascii_case("user-agent"));
        if !agent {
            headers.push(("user-agent".to_owned(), AGENT.to_owned()));
        }
        headers.extend(self.vars.table(more));
        headers
    }

    async fn watch(&mut self, watch: &Watch, steps: &mut Vec<Value>) -> anyhow::Result<()> {
        let path = self.vars.path(&watch.path)?;
        let path = format!("{path}{}watch=1", if path.contains('?') { '&' } else { '?' });
        let headers = self.headers(&watch.accept, &watch.headers);
        let request = Request { method: "GET".to_owned(), path, headers, body: Vec::new() };
        let mut events = Events::open(self.server, request).await?;
        let mut seen = Vec::new();
        let mut end = None;
        while seen.len() < watch.events {
            match events.next(NEXT_EVENT).await? {
                Next::Event(event) if watch.bookmarks || counts(&event) => seen.push(event),
                Next::Event(_) => {}
                Next::Closed => {
                    end = Some("closed");
                    break;
                }
                Next::Silence => {
                    end = Some("nothing came");
                    break;
                }
            }
        }
        let seen = Value::Array(seen);
        let mut outline = events.head.outline(&mut self.masker);
        outline.insert("events".to_owned(), self.masker.value(&seen));
        if let Some(end) = end {
            outline.insert("end".to_owned(), end.into());
        }
        steps.push(outline.into());
        for (name, pointer) in &watch.save {
            let value = seen.pointer(pointer).map(plain_text);
            let value = value.with_context(|| format!("the events have no {pointer}"))?;
            self.vars.set(name, value);
        }
        Ok(())
    }

    async fn wait(&self, wait: &Wait) -> anyhow::Result<()> {
        let path = self.vars.path(&wait.path)?;
        let until: Vec<(String, Value)> = wait
            .until
            .iter()
            .map(|(pointer, value)| (self.vars.fill(pointer), self.vars.value(value)))
            .collect();
        let fill = |(name, value): (&String, &String)| (name.to_lowercase(), self.vars.fill(value));
        let headers: Vec<(String, String)> = wait.headers.iter().map(fill).collect();
        let body = wait.body.as_ref().map_or(Value::Null, |body| self.vars.value(body));
        let method = if wait.body.is_some() { "POST" } else { "GET" };
        self.until_asked((method, &path, &body, &headers), |answer| {
            if wait.gone {
                return answer.status == 404;
            }
            let body = answer.value();
            until.iter().all(|(pointer, value)| select(&body, pointer) == Some(value))
        })
        .await
    }

    async fn until(&self, path: &str, good: impl Fn(&Answer) -> bool) -> anyhow::Result<()> {
        self.until_asked(("GET", path, &Value::Null, &[]), good).await
    }

    async fn until_asked(
        &self,
        (method, path, body, headers): (&str, &str, &Value, &[(String, String)]),
        good: impl Fn(&Answer) -> bool,
    ) -> anyhow::Result<()> {
        let patience = COMES_TO_PASS[usize::from(self.server.is_embedded())];
        let mut last = Value::Null;
        let mut poll = tokio::time::interval(Duration::from_millis(40));
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let look = async {
            loop {
                poll.tick().await;
                let answer = self.plain_with(method, path, body, headers).await?;
                if good(&answer) {
                    return anyhow::Ok(());
                }
                last = answer.value();
            }
        };
        match tokio::time::timeout(patience, look).await {
            Ok(done) => done,
            Err(_) => bail!("waited for {path} in vain; it is {last}"),
        }
    }
}

/// Whether an event counts where bookmarks were not asked for: those that end the initial events do.
pub(crate) fn counts(event: &Value) -> bool {
    event["type"] != "BOOKMARK"
        || event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some()
}

/// A scalar as a variable has it.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// A part of a value by a JSON pointer, in which `key=value` selects the first such item of a list.
fn select<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, segment| {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        match (value, segment.split_once('=')) {
            (Value::Array(items), Some((key, wanted))) => {
                items.iter().find(|item| item[key].as_str() == Some(wanted))
            }
            (Value::Array(items), None) => items.get(segment.parse::<usize>().ok()?),
            _ => value.get(&segment),
        }
    })
}

/// The events of a watch, as they come.
pub(crate) struct Events {
    /// The answer without its body; of an answer that is no stream, with it.
    pub(crate) head: Answer,
    body: kube::client::Body,
    rest: Vec<u8>,
}

/// What comes next in a watch.
pub(crate) enum Next {
    /// An event (or, of an answer that is no stream, the answer).
    Event(Value),
    /// The server ended it.
    Closed,
    /// Nothing for too long.
    Silence,
}

impl Events {
    /// Opens a watch.
    pub(crate) async fn open(server: &Server, request: Request) -> anyhow::Result<Self> {
        let (head, body) = server.open(request).await?.into_parts();
        let head = Answer {
            status: head.status.as_u16(),
            headers: headers(&head.headers),
            body: Vec::new(),
        };
        Ok(Self { head, body, rest: Vec::new() })
    }

    /// Waits for what comes next.
    pub(crate) async fn next(&mut self, patience: Duration) -> anyhow::Result<Next> {
        debug_assert!(patience < PATIENCE, "a watch is given up before a whole answer");
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(Next::Event(crate::exchange::body(line.trim_ascii())));
            }
            match tokio::time::timeout(patience, self.body.frame()).await {
                Err(_) => return Ok(Next::Silence),
                Ok(None) if self.rest.is_empty() => return Ok(Next::Closed),
                Ok(None) => {
                    let last = std::mem::take(&mut self.rest);
                    return Ok(Next::Event(crate::exchange::body(last.trim_ascii())));
                }
                Ok(Some(frame)) => {
                    if let Ok(data) = frame.context("read the watch")?.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_selects_from_lists_by_what_items_say() {
        let value = json!({"c": [{"type": "A", "s": 1}, {"type": "B", "s": 2}], "a/b": 3});
        assert_eq!(select(&value, "/c/type=B/s"), Some(&json!(2)));
        assert_eq!(select(&value, "/c/0/s"), Some(&json!(1)));
        assert_eq!(select(&value, "/a~1b"), Some(&json!(3)));
        assert_eq!(select(&value, "/c/type=C/s"), None);
    }

    #[test]
    fn only_bookmarks_that_end_the_initial_events_count() {
        let ends = json!({"type": "BOOKMARK", "object": {"metadata":
            {"annotations": {"k8s.io/initial-events-end": "true"}}}});
        assert!(counts(&ends) && counts(&json!({"type": "ADDED"})));
        assert!(!counts(&json!({"type": "BOOKMARK", "object": {"metadata": {}}})));
    }
}
