//! Recorded kubectl commands, carried out without kubectl.
//!
//! Only the effect of a command on objects is reproduced, and whether it succeeds; its output is
//! not.

use anyhow::{Context, bail};
use mainstay_client::{Cluster, DeleteOptions, ObjectList, Patch};
use mainstay_object::{Object, Resource};
use serde_json::{Map, Value, json};

/// The annotation in which kubectl stores the applied configuration.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// kubectl's field manager.
const FIELD_MANAGER: &str = "kubectl-client-side-apply";

/// The namespace option of a command line.
pub(super) fn namespace(text: &str) -> Option<String> {
    parse(text).ok()?.namespace
}

/// Splits a line into words, as a shell does with quotes.
fn split_words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        if quote == Some(letter) {
            quote = None;
        } else if quote.is_none() && matches!(letter, '\'' | '"') {
            quote = Some(letter);
            word.get_or_insert_default();
        } else if quote.is_none() && letter.is_whitespace() {
            all.extend(word.take());
        } else {
            word.get_or_insert_default().push(letter);
        }
    }
    all.extend(word);
    all
}

/// A parsed command line.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CommandLine {
    pub(super) verb: String,
    pub(super) namespace: Option<String>,
    pub(super) arguments: Vec<String>,
    kind: String,
    patch: String,
    subresource: String,
    pub(super) selector: String,
    pub(super) fields: String,
    pub(super) output: String,
    pub(super) flags: Vec<String>,
    all: bool,
    replicas: Option<i64>,
    pub(super) raw: Option<String>,
}

pub(super) fn parse(text: &str) -> anyhow::Result<CommandLine> {
    let mut line = CommandLine::default();
    let mut words = split_words(text).into_iter().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("a value of {word}"));
        match word.as_str() {
            "-n" | "--namespace" => line.namespace = Some(value()?),
            "--type" => line.kind = value()?,
            "-p" | "--patch" => line.patch = value()?,
            "--subresource" => line.subresource = value()?,
            "-l" | "--selector" => line.selector = value()?,
            "--raw" => line.raw = Some(value()?),
            "-o" => line.output = value()?,
            "--field-selector" => line.fields = value()?,
            "-f" => drop(value()?),
            "--all" => line.all = true,
            other if other.starts_with("--replicas=") => {
                line.replicas = Some(other["--replicas=".len()..].parse()?);
            }
            other if other.starts_with('-') && other.len() > 1 => line.flags.push(word),
            _ if line.verb.is_empty() => line.verb = word,
            _ => line.arguments.push(word),
        }
    }
    Ok(line)
}

/// The result of a command: exit code and error messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandResult {
    pub(super) exit: i64,
    pub(super) error: String,
}

/// Runs a command line; `None` if it only reads.
pub(super) async fn run(
    cluster: &Cluster,
    text: &str,
    input: &str,
) -> anyhow::Result<Option<CommandResult>> {
    let line = parse(text)?;
    let mut result = CommandResult::default();
    let mut failed = |error: &dyn std::fmt::Display| {
        result.exit = 1;
        result.error += &error.to_string();
        result.error.push('\n');
    };
    match line.verb.as_str() {
        "get" => return Ok(None),
        "apply" => {
            for document in
                mainstay_yaml::documents(input.as_bytes(), &mainstay_yaml::Options::default())
            {
                let value = document.context("read the input")?.value;
                if value.is_null() {
                    continue;
                }
                if let Err(error) = apply(cluster, value).await {
                    failed(&error);
                }
            }
        }
        "patch" | "delete" | "annotate" | "label" | "scale" | "set" => {
            let outcome = run_on_object(cluster, &line).await;
            if let Err(error) = outcome {
                match error.downcast_ref::<mainstay_client::Error>() {
                    Some(error) => failed(error),
                    None => return Err(error.context(text.to_owned())),
                }
            }
        }
        other => bail!("no such command is known here: {other}"),
    }
    Ok(Some(result))
}

/// Short names of resources.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("csv", "clusterserviceversions"),
    ("og", "operatorgroups"),
    ("sa", "serviceaccounts"),
    ("ns", "namespaces"),
    ("crd", "customresourcedefinitions"),
    ("ip", "installplans"),
    ("sub", "subscriptions"),
    ("catsrc", "catalogsources"),
];

async fn resource(cluster: &Cluster, name: &str) -> anyhow::Result<Resource> {
    let found = cluster.resources().await?;
    let name = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    let fits = |resource: &Resource| {
        let (plural, kind) = (resource.plural.as_ref(), resource.kind.to_lowercase());
        let full = format!("{plural}.{}.{}", resource.version, resource.group);
        name == plural || name == kind || name == resource.group_resource() || name == full
    };
    let mut fitting: Vec<_> = found
        .resources
        .iter()
        .filter(|resource| fits(&resource.resource) && resource.can("list"))
        .collect();
    fitting.sort_by_key(|resource| !resource.preferred);
    let first = fitting.first().with_context(|| format!("no resource is called {name}"))?;
    Ok(first.resource.clone())
}

async fn run_on_object(cluster: &Cluster, line: &CommandLine) -> anyhow::Result<()> {
    let mut arguments = line.arguments.as_slice();
    if line.verb == "set" {
        arguments = arguments.get(1..).unwrap_or_default();
    }
    let (kind, arguments) = arguments.split_first().context("a kind")?;
    let (kind, name, arguments) = match kind.split_once('/') {
        Some((kind, name)) => (kind, Some(name), arguments),
        None => match arguments.split_first() {
            Some((name, arguments)) => (kind.as_str(), Some(name.as_str()), arguments),
            None => (kind.as_str(), None, arguments),
        },
    };
    let resource = resource(cluster, kind).await?;
    let namespace =
        resource.is_namespaced().then(|| line.namespace.as_deref().unwrap_or("default"));
    let merge = |value: Value| Patch::Merge(value);
    if line.verb == "delete" {
        return delete(cluster, &resource, namespace, name, line).await;
    }
    let name = name.context("a name")?;
    let patch = match line.verb.as_str() {
        "patch" => {
            let body: Value = serde_json::from_str(&line.patch).context("read the patch")?;
            match line.kind.as_str() {
                "json" => Patch::Json(body),
                "merge" => merge(body),
                _ => Patch::Strategic(body),
            }
        }
        verb @ ("annotate" | "label") => {
            let mut fields = Map::new();
            for word in arguments {
                if let Some((key, value)) = word.split_once('=') {
                    fields.insert(key.to_owned(), value.into());
                } else if let Some(key) = word.strip_suffix('-') {
                    fields.insert(key.to_owned(), Value::Null);
                }
            }
            let field = if verb == "label" { "labels" } else { "annotations" };
            merge(json!({"metadata": {field: fields}}))
        }
        "scale" => merge(json!({"spec": {"replicas": line.replicas}})),
        "set" => {
            let images = arguments.iter().filter_map(|argument| argument.split_once('='));
            let containers: Vec<Value> =
                images.map(|(name, image)| json!({"name": name, "image": image})).collect();
            Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
        }
        other => bail!("no such command is known here: {other}"),
    };
    if line.subresource == "status" {
        cluster.patch_status(&resource, namespace, name, &patch).await?;
    } else {
        cluster.patch(&resource, namespace, name, &patch).await?;
    }
    Ok(())
}

async fn delete(
    cluster: &Cluster,
    resource: &Resource,
    namespace: Option<&str>,
    name: Option<&str>,
    line: &CommandLine,
) -> anyhow::Result<()> {
    let options = DeleteOptions::default();
    if let Some(name) = name {
        cluster.delete(resource, namespace, name, &options).await?;
        return Ok(());
    }
    if !line.all && line.selector.is_empty() {
        bail!("delete what?");
    }
    let params = ObjectList::labels(line.selector.clone());
    let list = cluster.list(resource, namespace, &params).await?;
    for item in list.items {
        let namespace = namespace.map(|_| item.namespace());
        cluster.ensure_deleted(resource, namespace, item.name(), &options).await?;
    }
    Ok(())
}

/// Client-side apply: creates the object, or merges the last applied configuration, the new one and
/// the live object.
async fn apply(cluster: &Cluster, value: Value) -> mainstay_client::Result<()> {
    let mut object = Object::from_value(value).map_err(invalid)?;
    let gvk = object.gvk();
    let Some(resource) = cluster.resource_of(&gvk).await? else {
        return Err(invalid(format!("no matches for kind \"{}\"", gvk.kind)));
    };
    if resource.is_namespaced() && object.namespace().is_empty() {
        object.set(&["metadata", "namespace"], "default".into());
    }
    let mut configuration = object.clone();
    if configuration.get(&["metadata", "annotations"]).is_none() {
        configuration.set(&["metadata", "annotations"], json!({}));
    }
    object.set_annotation(LAST_APPLIED, format!("{}\n", configuration.to_value()));
    let namespace = resource.is_namespaced().then(|| object.namespace().to_owned());
    let live = cluster.find(&resource, namespace.as_deref(), object.name()).await?;
    let Some(live) = live else {
        // kubectl asks the server to reject unknown fields.
        let path = resource.collection_path(namespace.as_deref());
        let path = format!("{path}?fieldValidation=Strict&fieldManager={FIELD_MANAGER}");
        let body = serde_json::to_vec(&object.to_value()).map_err(invalid)?;
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(body).map_err(invalid)?;
        cluster.client().request::<Value>(request).await?;
        return Ok(());
    };
    let before =
        live.annotation(LAST_APPLIED).and_then(|annotation| serde_json::from_str(annotation).ok());
    let before: Value = before.unwrap_or_else(|| json!({}));
    let mut patch = merge_patch(&live.to_value(), &object.to_value());
    add_removals(&before, &object.to_value(), &mut patch);
    if patch.as_object().is_some_and(Map::is_empty) {
        return Ok(());
    }
    cluster.patch(&resource, namespace.as_deref(), object.name(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn invalid(why: impl std::fmt::Display) -> mainstay_client::Error {
    mainstay_client::Error::Status(mainstay_object::Status::bad_request(why.to_string()))
}

/// The merge patch that adds and changes fields.
fn merge_patch(live: &Value, applied: &Value) -> Value {
    let (Value::Object(live), Value::Object(applied)) = (live, applied) else {
        return applied.clone();
    };
    let mut patch = Map::new();
    for (key, value) in applied {
        match live.get(key) {
            Some(before) if before == value => {}
            Some(before) if before.is_object() && value.is_object() => {
                let inner = merge_patch(before, value);
                if inner.as_object().is_some_and(|fields| !fields.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

/// Adds nulls to the patch for fields that were applied before and are not applied now.
fn add_removals(before: &Value, applied: &Value, patch: &mut Value) {
    let (Value::Object(before), Value::Object(applied), Value::Object(patch)) =
        (before, applied, patch)
    else {
        return;
    };
    for (key, value) in before {
        match applied.get(key) {
            None => {
                patch.insert(key.clone(), Value::Null);
            }
            Some(now) if value.is_object() && now.is_object() => {
                let mut inner = patch.get(key).cloned().unwrap_or_else(|| json!({}));
                add_removals(value, now, &mut inner);
                if inner.as_object().is_some_and(|fields| !fields.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_parsed_into_verb_arguments_and_options() {
        let found = parse(
            r#"kubectl -n c1 patch csv a --subresource status --type merge -p '{"status": {"x": "y"}}'"#,
        );
        let found = found.unwrap();
        assert_eq!((found.verb.as_str(), found.namespace.as_deref()), ("patch", Some("c1")));
        assert_eq!(found.arguments, ["csv", "a"]);
        assert_eq!(found.patch, r#"{"status": {"x": "y"}}"#);
        let found = parse("kubectl -n c1 scale deployment/a --replicas=0").unwrap();
        assert_eq!((found.replicas, found.arguments), (Some(0), vec!["deployment/a".to_owned()]));
        let found = parse("kubectl -n c1 label csv a olm.copiedFrom- x= --overwrite").unwrap();
        assert_eq!(found.arguments, ["csv", "a", "olm.copiedFrom-", "x="]);
    }

    #[test]
    fn apply_removes_fields_that_are_no_longer_applied() {
        let before = json!({"spec": {"a": 1, "b": {"c": 1}}});
        let live = json!({"spec": {"a": 1, "b": {"c": 1, "set": 1}}, "status": {}});
        let applied = json!({"spec": {"a": 2, "b": {}}});
        let mut patch = merge_patch(&live, &applied);
        add_removals(&before, &applied, &mut patch);
        assert_eq!(patch, json!({"spec": {"a": 2, "b": {"c": null}}}));
    }
}
