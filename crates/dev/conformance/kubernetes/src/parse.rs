//! Parser of scenario files. It is strict: a misspelt key is an error with its line, and not a step
//! that silently does less.

use crate::backend::{Reply, ReplyContent};
use crate::scenario::{
    Kubectl, Payload, Scenario, ScenarioBackend, ScenarioRequest, ScenarioStep, ScenarioWatch,
    Wait, digest,
};
use base64::Engine;
use mainstay_yaml::{DuplicateKeys, Options, PathStep, locate};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The HTTP methods that may be keys of steps.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// A parse error and its line.
#[derive(Debug)]
pub(crate) struct ParseError {
    line: usize,
    what: String,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

impl std::error::Error for ParseError {}

/// A value of the document and its path.
#[derive(Clone)]
struct Node<'a> {
    value: &'a Value,
    path: Vec<PathStep<'a>>,
}

type Parsed<T> = Result<T, (Vec<OwnedStep>, String)>;

/// A step of a path, owned.
#[derive(Clone, Debug)]
enum OwnedStep {
    Field(String),
    Item(usize),
}

impl<'a> Node<'a> {
    fn error<T>(&self, what: impl Into<String>) -> Parsed<T> {
        let path = self.path.iter().map(|to| match to {
            PathStep::Field(name) => OwnedStep::Field((*name).to_owned()),
            PathStep::Item(index) => OwnedStep::Item(*index),
        });
        Err((path.collect(), what.into()))
    }

    fn at(&self, value: &'a Value, to: PathStep<'a>) -> Self {
        let mut path = self.path.clone();
        path.push(to);
        Node { value, path }
    }

    fn map(&self) -> Parsed<&'a Map<String, Value>> {
        self.value.as_object().map_or_else(|| self.error("a mapping is expected"), Ok)
    }

    fn items(&self) -> Parsed<Vec<Self>> {
        let Some(list) = self.value.as_array() else { return self.error("a list is expected") };
        Ok(list.iter().enumerate().map(|(at, item)| self.at(item, PathStep::Item(at))).collect())
    }

    fn text(&self) -> Parsed<String> {
        match self.value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => self.error("a text is expected (quote numbers and the like)"),
        }
    }

    fn field(&self, name: &'a str) -> Option<Self> {
        self.value.get(name).map(|value| self.at(value, PathStep::Field(name)))
    }

    fn only(&self, known: &[&str]) -> Parsed<()> {
        for (key, value) in self.map()? {
            if !known.contains(&key.as_str()) {
                let words = known.join(", ");
                return self
                    .at(value, PathStep::Field(key))
                    .error(format!("`{key}` is none of {words}"));
            }
        }
        Ok(())
    }

    fn optional<T: Default>(
        &self,
        name: &'a str,
        read: impl FnOnce(&Self) -> Parsed<T>,
    ) -> Parsed<T> {
        self.field(name).map_or_else(|| Ok(T::default()), |node| read(&node))
    }

    fn texts(&self) -> Parsed<Vec<String>> {
        self.items()?.iter().map(Self::text).collect()
    }

    fn table(&self) -> Parsed<BTreeMap<String, String>> {
        let fields = self.map()?.iter();
        fields.map(|(k, v)| Ok((k.clone(), self.at(v, PathStep::Field(k)).text()?))).collect()
    }

    fn path(&self) -> Parsed<String> {
        let path = self.text()?;
        if path.starts_with('/') { Ok(path) } else { self.error("a path begins with /") }
    }
}

/// Parses a file of scenarios.
pub(crate) fn file(area: &str, file: &str, text: &str) -> Result<Vec<Scenario>, ParseError> {
    let options = Options { duplicate_keys: DuplicateKeys::Refuse, ..Options::default() };
    let document = mainstay_yaml::one(text.as_bytes(), &options)
        .map_err(|error| ParseError { line: error.line, what: error.fault.to_string() })?;
    let root = Node { value: &document, path: Vec::new() };
    let read = root.items().and_then(|items| {
        items.iter().map(|item| scenario(area, file, item)).collect::<Parsed<Vec<_>>>()
    });
    read.map_err(|(path, what)| {
        let steps: Vec<PathStep<'_>> = path
            .iter()
            .map(|place| match place {
                OwnedStep::Field(name) => PathStep::Field(name),
                OwnedStep::Item(index) => PathStep::Item(*index),
            })
            .collect();
        ParseError { line: locate(text, &steps).map_or(1, |(line, _)| line), what }
    })
}

fn scenario(area: &str, file: &str, node: &Node<'_>) -> Parsed<Scenario> {
    node.only(&["name", "about", "steps", "cleanup", "alone"])?;
    let Some(name) = node.field("name") else { return node.error("a scenario has a name") };
    let title = name.text()?;
    if title.is_empty()
        || !title.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    {
        return name.error("a name has lower-case letters, digits and dashes");
    }
    let Some(steps) = node.field("steps") else { return node.error("a scenario has steps") };
    let read: Vec<ScenarioStep> = steps.items()?.iter().map(step).collect::<Parsed<_>>()?;
    if read.is_empty() {
        return steps.error("a scenario has steps");
    }
    let cleanup =
        node.optional("cleanup", |list| list.items()?.iter().map(Node::path).collect())?;
    let source = steps.value.to_string();
    Ok(Scenario {
        area: area.to_owned(),
        file: file.to_owned(),
        name: title,
        steps: read,
        cleanup,
        runs_alone: node.optional("alone", flag)?,
        digest: digest(&source),
        source: source + &cleanup_text(node),
    })
}

fn cleanup_text(node: &Node<'_>) -> String {
    node.value.get("cleanup").map(Value::to_string).unwrap_or_default()
}

fn step(node: &Node<'_>) -> Parsed<ScenarioStep> {
    let fields = node.map()?;
    let methods: Vec<&str> =
        METHODS.into_iter().filter(|method| fields.contains_key(*method)).collect();
    match methods.as_slice() {
        [method] => call(node, method).map(ScenarioStep::Call),
        [_, ..] => node.error("a step has one method"),
        [] if fields.contains_key("watch") => watch(node).map(ScenarioStep::Watch),
        [] if fields.contains_key("wait") => wait(node).map(ScenarioStep::Wait),
        [] if fields.contains_key("kubectl") => kubectl(node).map(ScenarioStep::Kubectl),
        [] if fields.contains_key("serve") => serve(node).map(ScenarioStep::Serve),
        [] if fields.contains_key("received") => {
            node.only(&["received"])?;
            node.optional("received", Node::text).map(ScenarioStep::Received)
        }
        [] if fields.contains_key("settle") => {
            node.only(&["settle"])?;
            node.optional("settle", flag)?;
            Ok(ScenarioStep::Settle)
        }
        [] => node.error("a step is a method, watch, wait, kubectl, serve, received or settle"),
    }
}

fn accept(node: &Node<'_>) -> Parsed<String> {
    let accept = node.optional("accept", Node::text)?;
    Ok(if accept.is_empty() { "application/json".to_owned() } else { accept })
}

fn call<'a>(node: &Node<'a>, method: &'a str) -> Parsed<ScenarioRequest> {
    node.only(&[method, "body", "text", "base64", "type", "accept", "headers", "save", "only"])?;
    let Some(path) = node.field(method) else { return node.error("a path is missing") };
    let bodies = ["body", "text", "base64"].map(|name| node.field(name));
    let body = match bodies {
        [None, None, None] => Payload::None,
        [Some(body), None, None] => Payload::Json(body.value.clone()),
        [None, Some(text), None] => Payload::Text(text.text()?),
        [None, None, Some(text)] => {
            let packed = text.text()?.replace(char::is_whitespace, "");
            match base64::engine::general_purpose::STANDARD.decode(packed) {
                Ok(bytes) => Payload::Bytes(bytes),
                Err(error) => return text.error(format!("not base64: {error}")),
            }
        }
        _ => return node.error("one of body, text and base64"),
    };
    let only = node.optional("only", Node::texts)?;
    Ok(ScenarioRequest {
        method: method.to_owned(),
        path: path.path()?,
        body,
        content_type: node.field("type").map(|content_type| content_type.text()).transpose()?,
        accept: accept(node)?,
        headers: node.optional("headers", Node::table)?,
        save: node.optional("save", Node::table)?,
        only,
    })
}

fn watch(node: &Node<'_>) -> Parsed<ScenarioWatch> {
    node.only(&["watch", "events", "bookmarks", "accept", "headers", "save"])?;
    let Some(path) = node.field("watch") else { return node.error("a path is missing") };
    let Some(events) = node.field("events") else { return node.error("how many events?") };
    let Some(count) = events.value.as_u64().and_then(|count| usize::try_from(count).ok()) else {
        return events.error("a number is expected");
    };
    Ok(ScenarioWatch {
        path: path.path()?,
        events: count,
        bookmarks: node.optional("bookmarks", flag)?,
        accept: accept(node)?,
        headers: node.optional("headers", Node::table)?,
        save: node.optional("save", Node::table)?,
    })
}

fn wait(node: &Node<'_>) -> Parsed<Wait> {
    node.only(&["wait", "until", "gone", "headers", "body"])?;
    let Some(path) = node.field("wait") else { return node.error("a path is missing") };
    let until: BTreeMap<String, Value> = node.optional("until", |until| {
        Ok(until.map()?.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
    })?;
    let gone = node.optional("gone", flag)?;
    if until.is_empty() != gone {
        return node.error("a wait has either `until` or `gone: true`");
    }
    Ok(Wait {
        path: path.path()?,
        until,
        gone,
        headers: node.optional("headers", Node::table)?,
        body: node.field("body").map(|body| body.value.clone()),
    })
}

fn flag(node: &Node<'_>) -> Parsed<bool> {
    node.value.as_bool().map_or_else(|| node.error("true or false is expected"), Ok)
}

fn kubectl(node: &Node<'_>) -> Parsed<Kubectl> {
    node.only(&["kubectl", "stdin", "files", "env"])?;
    let Some(words) = node.field("kubectl") else { return node.error("arguments are missing") };
    Ok(Kubectl {
        arguments: words.texts()?,
        stdin: node.optional("stdin", Node::text)?,
        files: node.optional("files", Node::table)?,
        env: node.optional("env", Node::table)?,
    })
}

fn serve(node: &Node<'_>) -> Parsed<ScenarioBackend> {
    node.only(&["serve", "names", "answers"])?;
    let Some(name) = node.field("serve") else { return node.error("a name is missing") };
    let mut names = node.optional("names", Node::texts)?;
    if names.is_empty() {
        names.push("127.0.0.1".to_owned());
    }
    let answers = node.optional("answers", |answers| {
        let each = answers.map()?.iter();
        each.map(|(path, reply)| {
            Ok((path.clone(), answer(&answers.at(reply, PathStep::Field(path)))?))
        })
        .collect()
    })?;
    Ok(ScenarioBackend { name: name.text()?, names, answers })
}

fn answer(node: &Node<'_>) -> Parsed<Reply> {
    let content = ["text", "response", "convert", "silent", "close", "bytes"];
    let mut known = vec!["status", "type", "headers"];
    known.extend(content);
    node.only(&known)?;
    let given: Vec<Node<'_>> = content.iter().filter_map(|name| node.field(name)).collect();
    let [one] = given.as_slice() else {
        return node.error(format!("an answer has one of {}", content.join(", ")));
    };
    let number = |node: &Node<'_>| {
        node.value.as_u64().map_or_else(|| node.error("a number is expected"), Ok)
    };
    let (content, usual) = match one.path.last() {
        Some(PathStep::Field("text")) => (ReplyContent::Text(one.text()?), "text/plain"),
        Some(PathStep::Field("response")) => {
            (ReplyContent::Response(one.value.clone()), "application/json")
        }
        Some(PathStep::Field("convert")) => {
            let steps = one.map()?.iter().map(|(key, value)| (key.clone(), value.clone()));
            (ReplyContent::Convert(steps.collect()), "application/json")
        }
        Some(PathStep::Field("silent")) => (ReplyContent::Silence, ""),
        Some(PathStep::Field("close")) => (ReplyContent::Close, ""),
        _ => (ReplyContent::Bytes(number(one)?), "application/json"),
    };
    let status = node.field("status").map(|status| number(&status)).transpose()?;
    let content_type = node.field("type").map(|content_type| content_type.text()).transpose()?;
    Ok(Reply {
        status: u16::try_from(status.unwrap_or(200)).unwrap_or(200),
        content_type: content_type.unwrap_or_else(|| usual.to_owned()),
        headers: node.optional("headers", Node::table)?,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        file("apply", "f", text).unwrap_err().to_string()
    }

    #[test]
    fn parse_error_names_the_line() {
        let step = |step: &str| format!("- name: a\n  steps:\n  - {step}\n");
        for (text, message) in [
            ("a: 1", "1: a list is expected"),
            ("- name: a\n", "1: a scenario has steps"),
            (
                "- name: A b\n  steps: [{GET: /a}]",
                "1: a name has lower-case letters, digits and dashes",
            ),
            ("- name: a\n  steps: []", "2: a scenario has steps"),
            ("- name: a\n  step: []", "2: `step` is none of name, about, steps, cleanup, alone"),
            (&step("GET: api"), "3: a path begins with /"),
            (&step("{GET: /a, POST: /a}"), "3: a step has one method"),
            (
                &step("get: /a"),
                "3: a step is a method, watch, wait, kubectl, serve, received or settle",
            ),
            (
                &step("GET: /a\n    bdy: 1"),
                "4: `bdy` is none of GET, body, text, base64, type, accept, headers, save, only",
            ),
            (&step("POST: /a\n    body: 1\n    text: x"), "3: one of body, text and base64"),
            (&step("POST: /a\n    base64: '*'"), "4: not base64: Invalid symbol 42, offset 0."),
            (&step("watch: /a"), "3: how many events?"),
            (&step("watch: /a\n    events: x"), "4: a number is expected"),
            (&step("wait: /a"), "3: a wait has either `until` or `gone: true`"),
            (&step("wait: /a\n    gone: 1"), "4: true or false is expected"),
            (&step("kubectl: [get, 1]"), "3: a text is expected (quote numbers and the like)"),
            (&step("GET: /a\n    GET: /b"), "4: key \"GET\" already set in map"),
        ] {
            assert_eq!(error(text), message, "{text}");
        }
    }

    #[test]
    fn digest_covers_the_steps_only() {
        let digest = |text: &str| file("apply", "f", text).unwrap().remove(0).digest;
        let first = digest("- {name: a, steps: [{GET: /a}]}");
        assert_eq!(first, digest("# more\n- name: b\n  about: c\n  steps:\n  - GET: /a\n"));
        assert_ne!(first, digest("- {name: a, steps: [{GET: /b}]}"));
    }
}
