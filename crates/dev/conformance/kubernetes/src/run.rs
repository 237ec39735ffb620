//! Runs the steps of a scenario on a server, and records the masked results.

use crate::backend::{Backend, Reply, ReplyContent};
use crate::exchange::{Request, ServerResponse};
use crate::kubectl::{self, Kubectl};
use crate::mask::Masker;
use crate::references::References;
use crate::replay;
use crate::scenario::{
    Payload, Scenario, ScenarioBackend, ScenarioRequest, ScenarioStep, ScenarioWatch, Wait,
};
use crate::server::{Server, TIMEOUT, headers};
use crate::vars::Vars;
use anyhow::{Context, bail};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The default user agent.
const AGENT: &str = "scenario/1.0";
/// The time that the real server needs to observe its configuration.
const CONFIGURATION_DELAY: Duration = Duration::from_millis(1500);
/// The timeout for the next event of a watch.
const NEXT_EVENT: Duration = Duration::from_secs(15);
/// The timeout of waits: on a real server, which may be busy with many other namespaces, and on the
/// embedded one, which is not.
const WAIT_TIMEOUTS: [Duration; 2] = [Duration::from_secs(90), Duration::from_secs(20)];

/// How kubectl steps run.
pub enum Mode<'a> {
    /// kubectl runs.
    Live(&'a Kubectl),
    /// The recorded requests are sent, from these recorded steps.
    Replay(&'a [Value]),
}

/// The result of a scenario.
pub struct ScenarioOutcome {
    /// The result of each step that ran.
    pub steps: Vec<Value>,
    /// The error that prevented the remaining steps.
    pub error: Option<String>,
}

/// The state of a running scenario.
pub(crate) struct Run<'a> {
    pub(crate) server: &'a Server,
    pub(crate) namespace: String,
    pub(crate) vars: Vars,
    pub(crate) masker: Masker,
    pub(crate) references: References,
    backends: BTreeMap<String, Backend>,
}

/// Runs a scenario. Every error is part of the outcome, and every wait has a timeout.
pub async fn run(scenario: &Scenario, server: &Server, mode: &Mode<'_>) -> ScenarioOutcome {
    let id = format!("id{}", random_word());
    let namespace = format!("ns-{}", random_word());
    let masker = Masker::new(&namespace, &id, &scenario.source);
    let mut vars = Vars::default();
    vars.set("ns", namespace.clone());
    vars.set("id", id);
    let references = References::default();
    let backends = BTreeMap::new();
    let mut run = Run { server, namespace, vars, masker, references, backends };
    let mut steps = Vec::new();
    let result = run.run_steps(scenario, mode, &mut steps).await;
    let ended = run.clean_up(scenario).await;
    let error = result.and(ended).err().map(|error| format!("{error:#}"));
    ScenarioOutcome { steps, error }
}

/// Eight random letters and digits.
fn random_word() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0_u8; 8];
    // Without randomness two runs would share a namespace, and fail.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

impl Run<'_> {
    async fn run_steps(
        &mut self,
        scenario: &Scenario,
        mode: &Mode<'_>,
        steps: &mut Vec<Value>,
    ) -> anyhow::Result<()> {
        if scenario.needs_namespace() {
            self.make_namespace().await.context("make the namespace")?;
        }
        for (at, step) in scenario.steps.iter().enumerate() {
            let result = match (step, mode) {
                (ScenarioStep::Call(call), _) => self.call(at, call, steps).await,
                (ScenarioStep::Watch(watch), _) => self.watch(watch, steps).await,
                (ScenarioStep::Wait(wait), _) => {
                    steps.push(Value::Null);
                    self.wait(wait).await
                }
                (ScenarioStep::Serve(serve), _) => {
                    steps.push(Value::Null);
                    self.serve(serve).await
                }
                (ScenarioStep::Received(name), _) => self.received(name, steps),
                (ScenarioStep::Settle, _) => {
                    steps.push(Value::Null);
                    self.wait_for_configuration().await;
                    Ok(())
                }
                (ScenarioStep::Kubectl(step), Mode::Live(kubectl)) => {
                    kubectl::run(self, at, step, kubectl).await.map(|created| steps.push(created))
                }
                (ScenarioStep::Kubectl(_), Mode::Replay(recorded)) => {
                    let recorded = recorded.get(at).unwrap_or(&Value::Null);
                    replay::run(self, at, recorded).await.map(|created| steps.push(created))
                }
            };
            result.with_context(|| format!("step {at}"))?;
        }
        Ok(())
    }

    async fn serve(&mut self, serve: &ScenarioBackend) -> anyhow::Result<()> {
        let names: Vec<String> = serve.names.iter().map(|name| self.vars.fill(name)).collect();
        let filled = |reply: &Reply| {
            let mut reply = reply.clone();
            reply.content = match reply.content {
                ReplyContent::Text(text) => ReplyContent::Text(self.vars.fill(&text)),
                ReplyContent::Response(value) => ReplyContent::Response(self.vars.value(&value)),
                other => other,
            };
            reply
        };
        let answers = serve.answers.iter().map(|(path, reply)| (path.clone(), filled(reply)));
        let backend = Backend::start(&names, answers.collect()).await?;
        let name = &serve.name;
        let (address, ca) = (&backend.address, &backend.ca);
        self.masker.add_word(address, &format!("<{name}>"));
        self.masker.add_word(ca, &format!("<{name} authority>"));
        self.vars.set(&format!("{name}-url"), format!("https://{address}"));
        self.vars.set(&format!("{name}-address"), address.clone());
        self.vars.set(&format!("{name}-ca"), ca.clone());
        self.backends.insert(name.clone(), backend);
        Ok(())
    }

    fn received(&mut self, name: &str, steps: &mut Vec<Value>) -> anyhow::Result<()> {
        let backend = self.backends.get(name).with_context(|| format!("no server {name}"))?;
        let mut received = backend.received();
        for request in &mut received {
            // The runner's own user differs between servers; an impersonated user does not.
            let user = request.pointer_mut("/body/request/userInfo");
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

    /// The embedded server applies its configuration before it responds. The original reads it a
    /// moment later, without a signal.
    async fn wait_for_configuration(&self) {
        if !self.server.is_embedded() {
            tokio::time::sleep(CONFIGURATION_DELAY).await;
        }
    }

    async fn make_namespace(&self) -> anyhow::Result<()> {
        let name = &self.namespace;
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let created = self.send_setup_request("POST", "/api/v1/namespaces", &body).await?;
        if created.status != 201 {
            bail!("{}", created.value());
        }
        // The default objects of a namespace must not appear in the middle of a scenario.
        for path in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
            let path = format!("/api/v1/namespaces/{name}/{path}");
            self.wait_for_path(&path, |answer| answer.status == 200).await?;
        }
        Ok(())
    }

    async fn clean_up(&self, scenario: &Scenario) -> anyhow::Result<()> {
        for path in &scenario.cleanup {
            self.send_setup_request("DELETE", &self.vars.path(path)?, &Value::Null).await?;
        }
        if scenario.needs_namespace() {
            let path = format!("/api/v1/namespaces/{}", self.namespace);
            self.send_setup_request("DELETE", &path, &Value::Null).await?;
        }
        Ok(())
    }

    /// Sends a request that is not part of the scenario.
    async fn send_setup_request(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<ServerResponse> {
        self.send_with_headers(method, path, body, &[]).await
    }

    async fn send_with_headers(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        further_headers: &[(String, String)],
    ) -> anyhow::Result<ServerResponse> {
        let json = |name: &str| (name.to_owned(), "application/json".to_owned());
        let mut headers =
            vec![json("accept"), json("content-type"), ("user-agent".into(), AGENT.into())];
        headers.extend_from_slice(further_headers);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request { method: method.to_owned(), path: path.to_owned(), headers, body };
        self.server.send(request).await
    }

    async fn call(
        &mut self,
        at: usize,
        call: &ScenarioRequest,
        steps: &mut Vec<Value>,
    ) -> anyhow::Result<()> {
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
        let answer = self.server.send(request).await?;
        let body = answer.value();
        let mut outline = answer.outline(&mut self.masker);
        if call.only.is_empty() {
            outline.insert("body".to_owned(), self.masker.value(&body));
        } else {
            // Generated names may occur outside of the compared parts: learn them.
            self.masker.value(&body);
            let mut parts = Map::new();
            for pointer in &call.only {
                let part = body.pointer(&self.vars.fill(pointer)).cloned().unwrap_or_default();
                parts.insert(pointer.clone(), self.masker.value(&part));
            }
            outline.insert("only".to_owned(), parts.into());
        }
        self.references.record(at, 0, &body);
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

    fn headers(
        &self,
        accept: &str,
        further_headers: &BTreeMap<String, String>,
    ) -> Vec<(String, String)> {
        let mut headers = vec![("accept".to_owned(), self.vars.fill(accept))];
        let agent = further_headers.keys().any(|name| name.eq_ignore_ascii_case("user-agent"));
        if !agent {
            headers.push(("user-agent".to_owned(), AGENT.to_owned()));
        }
        headers.extend(self.vars.table(further_headers));
        headers
    }

    async fn watch(&mut self, watch: &ScenarioWatch, steps: &mut Vec<Value>) -> anyhow::Result<()> {
        let path = self.vars.path(&watch.path)?;
        let path = format!("{path}{}watch=1", if path.contains('?') { '&' } else { '?' });
        let headers = self.headers(&watch.accept, &watch.headers);
        let request = Request { method: "GET".to_owned(), path, headers, body: Vec::new() };
        let mut events = Events::open(self.server, request).await?;
        let mut events_read = Vec::new();
        let mut end = None;
        while events_read.len() < watch.events {
            match events.next(NEXT_EVENT).await? {
                Next::Event(event) if watch.bookmarks || is_counted(&event) => {
                    events_read.push(event);
                }
                Next::Event(_) => {}
                Next::Closed => {
                    end = Some("closed");
                    break;
                }
                Next::TimedOut => {
                    end = Some("nothing came");
                    break;
                }
            }
        }
        let events_read = Value::Array(events_read);
        let mut outline = events.head.outline(&mut self.masker);
        outline.insert("events".to_owned(), self.masker.value(&events_read));
        if let Some(end) = end {
            outline.insert("end".to_owned(), end.into());
        }
        steps.push(outline.into());
        for (name, pointer) in &watch.save {
            let value = events_read.pointer(pointer).map(plain_text);
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
        self.poll_until((method, &path, &body, &headers), |answer| {
            if wait.gone {
                return answer.status == 404;
            }
            let body = answer.value();
            until.iter().all(|(pointer, value)| select(&body, pointer) == Some(value))
        })
        .await
    }

    async fn wait_for_path(
        &self,
        path: &str,
        is_done: impl Fn(&ServerResponse) -> bool,
    ) -> anyhow::Result<()> {
        self.poll_until(("GET", path, &Value::Null, &[]), is_done).await
    }

    async fn poll_until(
        &self,
        (method, path, body, headers): (&str, &str, &Value, &[(String, String)]),
        is_done: impl Fn(&ServerResponse) -> bool,
    ) -> anyhow::Result<()> {
        let wait_timeout = WAIT_TIMEOUTS[usize::from(self.server.is_embedded())];
        let mut last = Value::Null;
        let mut poll = tokio::time::interval(Duration::from_millis(40));
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let poll_loop = async {
            loop {
                poll.tick().await;
                let answer = self.send_with_headers(method, path, body, headers).await?;
                if is_done(&answer) {
                    return anyhow::Ok(());
                }
                last = answer.value();
            }
        };
        match tokio::time::timeout(wait_timeout, poll_loop).await {
            Ok(done) => done,
            Err(_) => bail!("waited for {path} in vain; it is {last}"),
        }
    }
}

/// Whether an event counts if bookmarks are ignored: bookmarks that end the initial events do.
pub(crate) fn is_counted(event: &Value) -> bool {
    event["type"] != "BOOKMARK"
        || event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some()
}

/// The text of a scalar, as the value of a variable.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The value at a JSON pointer, in which `key=value` selects the first such element of a list.
fn select<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, segment| {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        match (value, segment.split_once('=')) {
            (Value::Array(items), Some((key, expected))) => {
                items.iter().find(|item| item[key].as_str() == Some(expected))
            }
            (Value::Array(items), None) => items.get(segment.parse::<usize>().ok()?),
            _ => value.get(&segment),
        }
    })
}

/// The events of an open watch.
pub(crate) struct Events {
    /// The head of the response.
    pub(crate) head: ServerResponse,
    body: kube::client::Body,
    rest: Vec<u8>,
}

/// The next result of a watch.
pub(crate) enum Next {
    /// An event; or the whole response, if it is no stream.
    Event(Value),
    /// The server closed the stream.
    Closed,
    /// No event within the timeout.
    TimedOut,
}

impl Events {
    /// Opens a watch.
    pub(crate) async fn open(server: &Server, request: Request) -> anyhow::Result<Self> {
        let (head, body) = server.open(request).await?.into_parts();
        let head = ServerResponse {
            status: head.status.as_u16(),
            headers: headers(&head.headers),
            body: Vec::new(),
        };
        Ok(Self { head, body, rest: Vec::new() })
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self, timeout: Duration) -> anyhow::Result<Next> {
        debug_assert!(timeout < TIMEOUT, "a watch is given up before a whole answer");
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(Next::Event(crate::exchange::body(line.trim_ascii())));
            }
            match tokio::time::timeout(timeout, self.body.frame()).await {
                Err(_) => return Ok(Next::TimedOut),
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
    fn wait_selects_list_elements_by_field_value() {
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
        assert!(is_counted(&ends) && is_counted(&json!({"type": "ADDED"})));
        assert!(!is_counted(&json!({"type": "BOOKMARK", "object": {"metadata": {}}})));
    }
}
