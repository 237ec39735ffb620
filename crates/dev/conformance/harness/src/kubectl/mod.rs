//! Recorded kubectl commands, carried out without kubectl.
//!
//! [`run`] has the effect of a command on objects, its exit code, and what it prints; [`read`] prints
//! what `get` and `describe` print. Ages and times in tables are the placeholder of the recordings.
//!
//! What is missing: waiting for deletions (the steps of the recordings wait), warnings of the server,
//! strategic merges of `apply`, and the events of `describe`.

mod apply;
mod command_line;
mod describe;
mod message;
mod request;
mod table;

pub use command_line::{CommandLine, namespace};

use anyhow::{Context, bail};
use mainstay_client::{Cluster, DeleteOptions, ObjectList, Patch, Propagation};
use mainstay_object::{Object, Resource};
use message::Failure;
use serde_json::{Map, Value, json};

/// The annotation in which kubectl stores the applied configuration.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandResult {
    /// The exit code.
    pub exit: i64,
    /// The standard output.
    pub output: String,
    /// The standard error.
    pub error: String,
}

impl CommandResult {
    fn new(output: String, error: String) -> Self {
        Self { exit: i64::from(!error.is_empty()), output, error }
    }
}

/// Runs a command that changes objects; `None` if it only reads.
///
/// # Errors
/// The command is not supported, or its input is not YAML.
pub async fn run(
    cluster: &Cluster,
    line: &CommandLine,
    input: &str,
) -> anyhow::Result<Option<CommandResult>> {
    match line.verb.as_str() {
        "get" | "describe" => return Ok(None),
        "apply" | "create" => {
            let (output, failures) = apply::documents(cluster, line, input).await?;
            let error = message::standard_error(&failures);
            return Ok(Some(CommandResult::new(output, error)));
        }
        "patch" | "delete" | "annotate" | "label" | "scale" | "set" | "rollout" => {}
        other => bail!("no such command is known here: {other}"),
    }
    let result = run_on_object(cluster, line).await;
    result.map(Some)
}

/// Runs a command that only reads.
///
/// # Errors
/// The command is not supported.
pub async fn read(cluster: &Cluster, line: &CommandLine) -> anyhow::Result<CommandResult> {
    if line.verb == "get" && line.arguments.first().is_some_and(|kinds| kinds.contains(',')) {
        return get_kinds(cluster, line).await;
    }
    let target = match Target::of(cluster, line).await? {
        Ok(target) => target,
        Err(error) => return Ok(CommandResult::new(String::new(), error)),
    };
    let output = match line.verb.as_str() {
        "get" => table::get(cluster, &target, line, false).await,
        "describe" => describe::objects(cluster, &target).await,
        other => bail!("no such command is known here: {other}"),
    };
    outcome(output)
}

/// The result of a command whose request may fail; other errors are not results.
fn outcome(output: anyhow::Result<(String, String)>) -> anyhow::Result<CommandResult> {
    match output {
        // What kubectl adds on its standard error is no failure.
        Ok((output, error)) => Ok(CommandResult { exit: 0, output, error }),
        Err(error) => match error.downcast::<mainstay_client::Error>() {
            Ok(error) => {
                let error = message::standard_error(&[Failure { prefix: "", error }]);
                Ok(CommandResult::new(String::new(), error))
            }
            Err(error) => Err(error),
        },
    }
}

/// Short names of resources.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("csv", "clusterserviceversions"),
    ("og", "operatorgroups"),
    ("sa", "serviceaccounts"),
    ("ns", "namespaces"),
    ("crd", "customresourcedefinitions"),
    ("crds", "customresourcedefinitions"),
    ("ip", "installplans"),
    ("sub", "subscriptions"),
    ("catsrc", "catalogsources"),
    ("deploy", "deployments"),
    ("cm", "configmaps"),
    ("svc", "services"),
];

async fn resource(cluster: &Cluster, name: &str) -> anyhow::Result<Option<Resource>> {
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
    Ok(fitting.first().map(|api| api.resource.clone()))
}

/// An object as kubectl names it in its output: `kind.group/name`.
fn kind_and_name(resource: &Resource, name: &str) -> String {
    format!("{}/{name}", kind_name(resource))
}

fn kind_name(resource: &Resource) -> String {
    let kind = resource.kind.to_lowercase();
    if resource.group.is_empty() { kind } else { format!("{kind}.{}", resource.group) }
}

/// The objects of a command line.
struct Target {
    resource: Resource,
    /// The namespace; none for cluster-scoped kinds.
    namespace: Option<String>,
    /// The names; none means all that the selector selects.
    names: Vec<String>,
    /// The arguments that are neither kind nor name.
    rest: Vec<String>,
}

impl Target {
    /// Parses the arguments. The inner error is kubectl's, about a kind that the server does not
    /// have.
    async fn of(cluster: &Cluster, line: &CommandLine) -> anyhow::Result<Result<Self, String>> {
        let mut arguments = line.arguments.iter();
        if matches!(line.verb.as_str(), "set" | "rollout") {
            arguments.next();
        }
        let mut words: Vec<String> = arguments.cloned().collect();
        if words.is_empty() {
            bail!("a kind");
        }
        let mut kind = words.remove(0);
        let mut names = Vec::new();
        if let Some((left, name)) = kind.clone().split_once('/') {
            left.clone_into(&mut kind);
            names.push(name.to_owned());
        } else {
            // Only `get` and `delete` take several names.
            let several = matches!(line.verb.as_str(), "get" | "delete" | "describe");
            let count = if several { words.len() } else { words.len().min(1) };
            names.extend(words.drain(..count));
        }
        let Some(resource) = resource(cluster, &kind).await? else {
            // kubectl names the resource without its group.
            let plural = kind.split('.').next().unwrap_or_default();
            let error = format!("error: the server doesn't have a resource type \"{plural}\"\n");
            return Ok(Err(error));
        };
        let namespace = line.namespace.as_deref().unwrap_or("default");
        let namespace = resource.is_namespaced().then(|| namespace.to_owned());
        Ok(Ok(Self { resource, namespace, names, rest: words }))
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

async fn run_on_object(cluster: &Cluster, line: &CommandLine) -> anyhow::Result<CommandResult> {
    if line.verb == "delete" && line.arguments.first().is_some_and(|kinds| kinds.contains(',')) {
        return outcome(delete_kinds(cluster, line).await);
    }
    let target = match Target::of(cluster, line).await? {
        Ok(target) => target,
        Err(error) => return Ok(CommandResult::new(String::new(), error)),
    };
    let output = match line.verb.as_str() {
        "delete" => delete(cluster, &target, line).await,
        _ => change(cluster, &target, line).await,
    };
    outcome(output)
}

/// Prints a table for each of several kinds, with the kind before each name.
async fn get_kinds(cluster: &Cluster, line: &CommandLine) -> anyhow::Result<CommandResult> {
    let kinds = line.arguments.first().context("a kind")?;
    let mut tables = Vec::new();
    for kind in kinds.split(',') {
        let line = CommandLine { arguments: vec![kind.to_owned()], ..line.clone() };
        let target = match Target::of(cluster, &line).await? {
            Ok(target) => target,
            Err(error) => return Ok(CommandResult::new(String::new(), error)),
        };
        let (table, _) = table::get(cluster, &target, &line, true).await?;
        tables.extend(Some(table).filter(|table| !table.is_empty()));
    }
    let nothing = if tables.is_empty() { "No resources found\n" } else { "" };
    outcome(Ok((tables.join("\n"), nothing.to_owned())))
}

/// Changes one object. The result is the standard output and error.
async fn change(
    cluster: &Cluster,
    target: &Target,
    line: &CommandLine,
) -> anyhow::Result<(String, String)> {
    let Target { resource, names, .. } = target;
    let name = names.first().context("a name")?;
    let before = cluster.get(resource, target.namespace(), name).await?;
    let patch = patch(line, &target.rest)?;
    // The server takes the name of the field manager from it.
    let cluster = cluster.clone().with_user_agent(&format!("kubectl-{}", line.verb));
    let after = if line.subresource == "status" {
        cluster.patch_status(resource, target.namespace(), name, &patch).await?
    } else {
        cluster.patch(resource, target.namespace(), name, &patch).await?
    };
    let outcome = match line.verb.as_str() {
        "annotate" => "annotated",
        "label" => label_outcome(&before, &after, line),
        "scale" => "scaled",
        "set" => "image updated",
        "rollout" => "restarted",
        _ if before == after => "patched (no change)",
        _ => "patched",
    };
    Ok((format!("{} {outcome}\n", kind_and_name(resource, name)), String::new()))
}

fn label_outcome(before: &Object, after: &Object, line: &CommandLine) -> &'static str {
    let labels = |object: &Object| object.get(&["metadata", "labels"]).cloned();
    let count = |object: &Object| object.labels().count();
    if labels(before) == labels(after) {
        "not labeled"
    } else if count(after) < count(before) && !line.has("--overwrite") {
        "unlabeled"
    } else {
        "labeled"
    }
}

fn patch(line: &CommandLine, rest: &[String]) -> anyhow::Result<Patch> {
    Ok(match line.verb.as_str() {
        "patch" => {
            let body: Value = serde_json::from_str(&line.patch).context("read the patch")?;
            match line.patch_type.as_str() {
                "json" => Patch::Json(body),
                "merge" => Patch::Merge(body),
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
            Patch::Merge(json!({"metadata": {field: fields}}))
        }
        "scale" => Patch::Merge(json!({"spec": {"replicas": line.replicas}})),
        "set" => {
            let images = rest.iter().filter_map(|argument| argument.split_once('='));
            let containers: Vec<Value> =
                images.map(|(name, image)| json!({"name": name, "image": image})).collect();
            Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
        }
        "rollout" => Patch::Strategic(json!({"spec": {"template": {"metadata": {
            "annotations": {"kubectl.kubernetes.io/restartedAt": "2024-01-02T03:04:05Z"}
        }}}})),
        other => bail!("no such command is known here: {other}"),
    })
}

/// Deletes objects of several kinds: `delete role,rolebinding -l a=b`.
async fn delete_kinds(cluster: &Cluster, line: &CommandLine) -> anyhow::Result<(String, String)> {
    let (mut output, mut error) = (String::new(), String::new());
    let kinds = line.arguments.first().map(String::as_str).unwrap_or_default();
    for kind in kinds.split(',') {
        let mut line = line.clone();
        kind.clone_into(&mut line.arguments[0]);
        let target = match Target::of(cluster, &line).await? {
            Ok(target) => target,
            Err(unknown) => return Ok((output, unknown)),
        };
        let (deleted, warning) = delete(cluster, &target, &line).await?;
        error += &warning;
        if deleted != NOTHING_FOUND {
            output += &deleted;
        }
    }
    if output.is_empty() {
        NOTHING_FOUND.clone_into(&mut output);
    }
    Ok((output, error))
}

/// What kubectl prints if a selector selects nothing.
const NOTHING_FOUND: &str = "No resources found\n";

/// Deletes objects. The result is the standard output and error.
async fn delete(
    cluster: &Cluster,
    target: &Target,
    line: &CommandLine,
) -> anyhow::Result<(String, String)> {
    let Target { resource, names, .. } = target;
    let mut options = DeleteOptions::default();
    if line.has("--cascade=orphan") {
        options = options.propagation(Propagation::Orphan);
    }
    let mut error = String::new();
    if line.namespace.is_some() && !resource.is_namespaced() {
        error +=
            "Warning: deleting cluster-scoped resources, not scoped to the provided namespace\n";
    }
    let deleted = |name: &str| format!("{} \"{name}\" deleted\n", kind_name(resource));
    let mut output = String::new();
    for name in names {
        cluster.delete(resource, target.namespace(), name, &options).await?;
        output += &deleted(name);
    }
    if !names.is_empty() {
        return Ok((output, error));
    }
    if !line.all && line.selector.is_empty() {
        bail!("delete what?");
    }
    let params = ObjectList::labels(line.selector.clone());
    let list = cluster.list(resource, target.namespace(), &params).await?;
    if list.items.is_empty() {
        output += NOTHING_FOUND;
    }
    for item in list.items {
        let namespace = target.namespace().map(|_| item.namespace());
        cluster.ensure_deleted(resource, namespace, item.name(), &options).await?;
        output += &deleted(item.name());
    }
    Ok((output, error))
}
