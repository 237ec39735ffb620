//! `mainstay extension describe`: what is installed, the conditions in plain words, the objects.

use super::list::age;
use super::owned::{OwnedObjects, hidden_note, object_text, owned_objects};
use super::{RequestTimeout, find_extension, state};
use clap::Args;
use jiff::Timestamp;
use mainstay_clock::Clock;
use mainstay_command::cluster::{ClusterArguments, ClusterHandle, ConnectionArguments};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, count, escape_controls};
use mainstay_object::Object;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Arguments of `describe`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension.
    #[arg(value_name = "NAME")]
    name: String,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    connection: ConnectionArguments,
}

pub(super) async fn run<C: ClusterHandle>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let connection = &arguments.connection;
    let cluster = connect(&connection.cluster, RequestTimeout::Flag(connection.timeout())).await?;
    let extension = find_extension(&cluster, &arguments.name).await?;
    let owned = owned_objects(&cluster, extension.name()).await?;
    let now = Clock::system().now();
    let text = format_output(arguments.output, &value(&extension, &owned), || {
        text(&extension, &owned, now)
    });
    io.print(&text);
    Ok(())
}

/// The description as a value: the summary of `list`, sentences and objects.
fn value(extension: &Object, owned: &OwnedObjects) -> Value {
    let objects = owned.objects.iter().map(|object| {
        json!({
            "apiVersion": object.api_version(),
            "kind": object.kind(),
            "namespace": object.namespace(),
            "name": object.name(),
        })
    });
    let mut value = state::summary(extension);
    value["spec"] = extension.get(&["spec"]).cloned().unwrap_or_default();
    value["state"] = state::condition_sentences(extension).into();
    value["objects"] = objects.collect();
    value["hidden"] = owned.hidden.clone().into();
    value
}

fn text(extension: &Object, owned: &OwnedObjects, now: Timestamp) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(out, "{:<12}{}", format!("{name}:"), escape_controls(value));
    };
    let spec = |path: &[&str]| {
        let path: Vec<&str> = ["spec"].iter().chain(path).copied().collect();
        extension.str(&path).unwrap_or_default()
    };
    field("name", extension.name());
    field("age", &age(extension, now));
    field("package", spec(&["source", "catalog", "packageName"]));
    field("namespace", spec(&["namespace"]));
    field("allowed", &allowed_bundles(extension));
    match state::installed_bundle(extension) {
        Some(bundle) => {
            field("installed", &format!("{} version {}", bundle.name, bundle.version_text()));
        }
        None => field("installed", "nothing"),
    }
    if let Some(image) = state::installed_image(extension) {
        field("image", image);
    }
    if extension.is_terminating() {
        field("deletion", "it is being deleted");
    }
    let sentences = state::condition_sentences(extension);
    if sentences.is_empty() {
        field("state", "no controller has reported a condition; check that one of OLM v1 runs");
    } else {
        out.push_str("state:\n");
        for sentence in sentences {
            let _ = writeln!(out, "  {}", sentence.replace('\n', "\n    "));
        }
    }
    if owned.objects.is_empty() {
        let objects = if owned.hidden.is_empty() { "none" } else { "unknown" };
        let _ = writeln!(out, "objects:    {objects}");
    } else {
        let _ = writeln!(out, "objects:    {}", count(owned.objects.len(), "object"));
        for object in &owned.objects {
            let _ = writeln!(out, "  {}", escape_controls(&object_text(object)));
        }
    }
    out.push_str(&hidden_note(&owned.hidden));
    out
}

/// Which bundles the spec allows, in words.
fn allowed_bundles(extension: &Object) -> String {
    let catalog = |field: &str| extension.get(&["spec", "source", "catalog", field]);
    let version = catalog("version").and_then(Value::as_str).filter(|text| !text.is_empty());
    let channels: Vec<&str> = catalog("channels")
        .and_then(Value::as_array)
        .map(|channels| channels.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let version =
        version.map_or_else(|| "any version".to_owned(), |text| format!("version {text}"));
    let channels = match channels.as_slice() {
        [] => "all channels".to_owned(),
        [one] => format!("channel {one}"),
        several => format!("channels {}", several.join(", ")),
    };
    let catalogs = if catalog("selector").is_some() { "selected catalogs" } else { "all catalogs" };
    let policy = match catalog("upgradeConstraintPolicy").and_then(Value::as_str) {
        Some("SelfCertified") => ", also updates that the catalog does not provide",
        _ => "",
    };
    format!("{version} in {channels} of {catalogs}{policy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_says_what_is_allowed_installed_and_wrong() {
        let extension = Object::from_value(json!({
            "metadata": {"name": "tea", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2},
            "spec": {
                "namespace": "kitchen",
                "source": {"sourceType": "Catalog", "catalog": {
                    "packageName": "teapot", "channels": ["stable"], "version": "2.x",
                    "upgradeConstraintPolicy": "SelfCertified",
                }},
            },
            "status": {
                "install": {"bundle": {"name": "teapot.v1", "version": "1.0.0"}},
                "conditions": [
                    {"type": "Installed", "status": "True", "reason": "Succeeded", "observedGeneration": 1, "message": "Installed bundle x.io/teapot:1 successfully"},
                    {"type": "Progressing", "status": "True", "reason": "Retrying", "observedGeneration": 2, "message": "no bundles\nfound"},
                ],
            },
        }))
        .unwrap();
        let deployment =
            json!({"kind": "Deployment", "metadata": {"name": "pot", "namespace": "kitchen"}});
        let owned = OwnedObjects {
            objects: vec![Object::from_value(deployment).unwrap()],
            hidden: vec!["Secret".to_owned()],
        };
        let now = "2026-01-01T00:00:05Z".parse().unwrap();
        insta::assert_snapshot!(text(&extension, &owned, now), @"
        name:       tea
        age:        5s
        package:    teapot
        namespace:  kitchen
        allowed:    version 2.x in channel stable of all catalogs, also updates that the catalog does not provide
        installed:  teapot.v1 version 1.0.0
        image:      x.io/teapot:1
        state:
          a bundle is installed (about an earlier spec)
          the controller met an error and retries: no bundles
            found
        objects:    1 object
          Deployment kitchen/pot
        note: this account may not list Secret
        ");
    }
}
