//! The commands of kubectl that the recordings have, carried out without kubectl.
//!
//! Only what a command does to objects is repeated, and whether it succeeds; what it prints is
//! not.

use anyhow::{Context, bail};
use mainstay_client::{Cluster, DeleteOptions, ListParams, Patch};
use mainstay_object::{Object, Resource};
use serde_json::{Map, Value, json};

/// Where kubectl keeps what was applied.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What kubectl calls itself as a manager of fields.
const MANAGER: &str = "kubectl-client-side-apply";

/// The namespace that a command line names.
pub(super) fn namespace(text: &str) -> Option<String> {
    line(text).ok()?.namespace
}

/// Splits a line as a shell does, with quotes.
fn words(line: &str) -> Vec<String> {
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

/// A command line taken apart.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) verb: String,
    pub(super) namespace: Option<String>,
    pub(super) rest: Vec<String>,
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

pub(super) fn line(text: &str) -> anyhow::Result<Line> {
    let mut line = Line::default();
    let mut words = words(text).into_iter().skip(1);
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
            _ => line.rest.push(word),
        }
    }
    Ok(line)
}

/// What is answered: whether the command succeeded, and what was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) exit: i64,
    pub(super) error: String,
}

/// Carries out a command line; `None` if it only reads.
pub(super) async fn run(
    cluster: &Cluster,
    text: &str,
    input: &str,
) -> anyhow::Result<Option<Done>> {
    let line = line(text)?;
    let mut done = Done::default();
    let mut failed = |error: &dyn std::fmt::Display| {
        done.exit = 1;
        done.error += &error.to_string();
        done.error.push('\n');
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
            let outcome = named(cluster, &line).await;
            if let Err(error) = outcome {
                match error.downcast_ref::<mainstay_client::Error>() {
                    Some(error) => failed(error),
                    None => return Err(error.context(text.to_owned())),
                }
            }
        }
        other => bail!("no such command is known here: {other}"),
    }
    Ok(Some(done))
}

/// Short names of resources.
const SHORT: &[(&str, &str)] = &[
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
    let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
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

async fn named(cluster: &Cluster, line: &Line) -> anyhow::Result<()> {
    let mut rest = line.rest.as_slice();
    if line.verb == "set" {
        rest = rest.get(1..).unwrap_or_default();
    }
    let (kind, rest) = rest.split_first().context("a kind")?;
    let (kind, name, rest) = match kind.split_once('/') {
        Some((kind, name)) => (kind, Some(name), rest),
        None => match rest.split_first() {
            Some((name, rest)) => (kind.as_str(), Some(name.as_str()), rest),
            None => (kind.as_str(), None, rest),
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
            for word in rest {
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
            let images = rest.iter().filter_map(|argument| argument.split_once('='));
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
    line: &Line,
) -> anyhow::Result<()> {
    let options = DeleteOptions::default();
    if let Some(name) = name {
        cluster.delete(resource, namespace, name, &options).await?;
        return Ok(());
    }
    if !line.all && line.selector.is_empty() {
        bail!("delete what?");
    }
    let params = ListParams::labels(line.selector.clone());
    let list = cluster.list(resource, namespace, &params).await?;
    for item in list.items {
        let namespace = namespace.map(|_| item.namespace());
        cluster.ensure_deleted(resource, namespace, item.name(), &options).await?;
    }
    Ok(())
}

/// Client-side apply: creates, or merges what was applied before, what is given now and what is
/// there.
async fn apply(cluster: &Cluster, value: Value) -> mainstay_client::Result<()> {
    let mut object = Object::from_value(value).map_err(invalid)?;
    let gvk = object.gvk();
    let Some(resource) = cluster.resource_of(&gvk).await? else {
        return Err(invalid(format!("no matches for kind \"{}\"", gvk.kind)));
    };
    if resource.is_namespaced() && object.namespace().is_empty() {
        object.set(&["metadata", "namespace"], "default".into());
    }
    let mut kept = object.clone();
    if kept.get(&["metadata", "annotations"]).is_none() {
        kept.set(&["metadata", "annotations"], json!({}));
    }
    object.set_annotation(LAST_APPLIED, format!("{}\n", kept.to_value()));
    let namespace = resource.is_namespaced().then(|| object.namespace().to_owned());
    let live = cluster.find(&resource, namespace.as_deref(), object.name()).await?;
    let Some(live) = live else {
        // kubectl asks for fields that nobody knows to be refused.
        let path = resource.collection_path(namespace.as_deref());
        let path = format!("{path}?fieldValidation=Strict&fieldManager={MANAGER}");
        let body = serde_json::to_vec(&object.to_value()).map_err(invalid)?;
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(body).map_err(invalid)?;
        cluster.client().request::<Value>(request).await?;
        return Ok(());
    };
    let before =
        live.annotation(LAST_APPLIED).and_then(|annotation| serde_json::from_str(annotation).ok());
    let before: Value = before.unwrap_or_else(|| json!({}));
    let mut patch = changed(&live.to_value(), &object.to_value());
    removed(&before, &object.to_value(), &mut patch);
    if patch.as_object().is_some_and(Map::is_empty) {
        return Ok(());
    }
    cluster.patch(&resource, namespace.as_deref(), object.name(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn invalid(why: impl std::fmt::Display) -> mainstay_client::Error {
    mainstay_client::Error::Status(mainstay_object::Status::bad_request(why.to_string()))
}

/// What has to be added or changed, as a merge patch.
fn changed(live: &Value, wanted: &Value) -> Value {
    let (Value::Object(live), Value::Object(wanted)) = (live, wanted) else {
        return wanted.clone();
    };
    let mut patch = Map::new();
    for (key, value) in wanted {
        match live.get(key) {
            Some(before) if before == value => {}
            Some(before) if before.is_object() && value.is_object() => {
                let inner = changed(before, value);
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

/// Adds what was applied before and is given no more, as nulls.
fn removed(before: &Value, wanted: &Value, patch: &mut Value) {
    let (Value::Object(before), Value::Object(wanted), Value::Object(patch)) =
        (before, wanted, patch)
    else {
        return;
    };
    for (key, value) in before {
        match wanted.get(key) {
            None => {
                patch.insert(key.clone(), Value::Null);
            }
            Some(now) if value.is_object() && now.is_object() => {
                let mut inner = patch.get(key).cloned().unwrap_or_else(|| json!({}));
                removed(value, now, &mut inner);
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
    fn a_command_line_is_taken_apart() {
        let found = line(
            r#"kubectl -n c1 patch csv a --subresource status --type merge -p '{"status": {"x": "y"}}'"#,
        );
        let found = found.unwrap();
        assert_eq!((found.verb.as_str(), found.namespace.as_deref()), ("patch", Some("c1")));
        assert_eq!(found.rest, ["csv", "a"]);
        assert_eq!(found.patch, r#"{"status": {"x": "y"}}"#);
        let found = line("kubectl -n c1 scale deployment/a --replicas=0").unwrap();
        assert_eq!((found.replicas, found.rest), (Some(0), vec!["deployment/a".to_owned()]));
        let found = line("kubectl -n c1 label csv a olm.copiedFrom- x= --overwrite").unwrap();
        assert_eq!(found.rest, ["csv", "a", "olm.copiedFrom-", "x="]);
    }

    #[test]
    fn applying_again_removes_what_is_given_no_more() {
        let before = json!({"spec": {"a": 1, "b": {"c": 1}}});
        let live = json!({"spec": {"a": 1, "b": {"c": 1, "set": 1}}, "status": {}});
        let wanted = json!({"spec": {"a": 2, "b": {}}});
        let mut patch = changed(&live, &wanted);
        removed(&before, &wanted, &mut patch);
        assert_eq!(patch, json!({"spec": {"a": 2, "b": {"c": null}}}));
    }
}
