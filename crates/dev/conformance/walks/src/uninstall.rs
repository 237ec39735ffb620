//! `mainstay uninstall`: runs the command, and compares its preview with what it does.

use super::dump::{Dump, ObjectId};
use super::leftovers;
use anyhow::Context;
use clap::Parser;
use mainstay_client::Cluster;
use mainstay_clitest::DirectCluster;
use mainstay_command::exit::ExitStatus;
use mainstay_command::io::CommandIo;
use mainstay_object::Object;
use mainstay_operators::uninstall::{self, UninstallArguments};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// The part of the command line that the in-process run parses.
#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    uninstall: UninstallArguments,
}

/// The preview: objects that will be deleted, objects that remain, and objects whose deletion may
/// hang.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Preview {
    goes: Vec<ObjectRef>,
    pub(super) stays: Vec<ObjectRef>,
    hangs: Vec<ObjectRef>,
}

/// An object that a preview names.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectRef {
    kind: String,
    namespace: String,
    name: String,
}

impl ObjectRef {
    /// Whether the preview names this object.
    pub(super) fn matches(&self, id: &ObjectId) -> bool {
        self.kind == id.kind && self.namespace == id.namespace && self.name == id.name
    }
}

/// How the command is run.
pub(super) enum Uninstaller {
    /// As a function in this process.
    InProcess(Box<Cluster>),
    /// As a process.
    Command { program: PathBuf, kubeconfig: PathBuf },
}

impl Uninstaller {
    /// Uninstalls a Subscription and returns the preview, or the command's error message.
    pub(super) async fn uninstall(
        &self,
        namespace: &str,
        name: &str,
        all: bool,
    ) -> anyhow::Result<Result<Preview, String>> {
        let mut arguments: Vec<String> =
            ["uninstall", name, "--namespace", namespace, "--output", "json"]
                .map(str::to_owned)
                .to_vec();
        if all {
            arguments.extend(["--operands", "--definitions"].map(str::to_owned));
        }
        let (succeeded, output, error) = match self {
            Self::InProcess(cluster) => {
                let cluster = cluster.clone();
                let runtime = Handle::current();
                // The command's future is not `Send`, because of the output streams that it
                // borrows.
                let command = move || runtime.block_on(run_in_process(*cluster, &arguments));
                tokio::task::spawn_blocking(command).await??
            }
            Self::Command { program, kubeconfig } => {
                run_command(program, kubeconfig, &arguments).await?
            }
        };
        if !succeeded {
            return Ok(Err(error));
        }
        let preview = serde_json::from_str(&output);
        Ok(Ok(preview.with_context(|| format!("read the preview: {output}"))?))
    }
}

/// Whether the command succeeded, its standard output and its standard error.
type CommandResult = (bool, String, String);

async fn run_command(
    program: &Path,
    kubeconfig: &Path,
    arguments: &[String],
) -> anyhow::Result<CommandResult> {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig).env("NO_COLOR", "1");
    let output = command.output().await.with_context(|| format!("run {}", program.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
}

async fn run_in_process(cluster: Cluster, arguments: &[String]) -> anyhow::Result<CommandResult> {
    let line = CommandLine::try_parse_from(arguments)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let stdin = &mut std::io::empty();
    let mut io = CommandIo::unattended(stdin, &mut stdout, &mut stderr, Path::new(""));
    let connect = async move || Ok(DirectCluster::new(cluster));
    let exit = uninstall::run(&line.uninstall, &mut io, connect).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((matches!(exit, ExitStatus::Done), text(&stdout), text(&stderr)))
}

/// Deviations of an uninstallation from its preview.
pub(super) fn preview_mismatches(preview: &Preview, before: &Dump, after: &Dump) -> Vec<String> {
    let mut findings = Vec::new();
    let deleted: BTreeSet<&ObjectId> = before.not_in(after).map(|(id, _, _)| id).collect();
    for object in &preview.goes {
        match before.find_id(&object.kind, &object.namespace, &object.name) {
            None => findings
                .push(format!("{} {} is said to go, and was not there", object.kind, object.name)),
            Some(id) if !deleted.contains(id) => {
                findings.push(format!("{id} is said to go, and is there"));
            }
            Some(_) => {}
        }
    }
    for object in preview.stays.iter().chain(&preview.hangs) {
        match before.find_id(&object.kind, &object.namespace, &object.name) {
            None => {
                findings.push(format!(
                    "{} {} is said to stay, and was not there",
                    object.kind, object.name
                ));
            }
            Some(id) if deleted.contains(id) => {
                findings.push(format!("{id} is said to stay, and is gone"));
            }
            Some(_) => {}
        }
    }
    // Dependents of CustomResourceDefinitions and APIServices, such as the aggregated ClusterRoles
    // for users, are not listed in previews.
    let apis =
        deleted.iter().filter(|id| ["CustomResourceDefinition", "APIService"].contains(&&*id.kind));
    let uids = apis.filter_map(|id| Some(before.objects.get(*id)?.1.uid().to_owned()));
    let with_apis = before.dependents(uids.collect());
    for (id, _, object) in before.not_in(after) {
        let announced = preview.goes.iter().any(|object| object.matches(id));
        if !announced && !leftovers::is_derived(id, object) && !with_apis.contains(id) {
            findings.push(format!("{id} goes, and nobody was told"));
        }
    }
    for (id, _, object) in after.not_in(before) {
        if !leftovers::is_derived(id, object) {
            findings.push(format!("{id} is new after it"));
        }
    }
    findings
}

/// Objects that were added since the installation and that no preview announces.
pub(super) fn unannounced_leftovers(
    previews: &[Preview],
    base: &Dump,
    after: &Dump,
) -> Vec<String> {
    let announced = |id: &ObjectId| {
        previews.iter().any(|object| object.stays.iter().any(|object| object.matches(id)))
    };
    let uids = after
        .not_in(base)
        .filter(|(id, _, _)| announced(id))
        .map(|(_, _, object)| object.uid().to_owned());
    let with = after.dependents(uids.collect());
    let unannounced = after.not_in(base).filter(|(id, _, object)| {
        !announced(id) && !with.contains(id) && !leftovers::is_derived(id, object)
    });
    unannounced.map(|(id, _, _)| format!("{id} stays, and nobody was told")).collect()
}

/// The first Subscription whose package no other ClusterServiceVersion requires, or any
/// Subscription if all packages are required.
pub(super) fn next_to_uninstall<'a>(
    subscriptions: &'a [Object],
    csvs: &[Object],
) -> Option<&'a Object> {
    let property_values = |object: &Object, kind: &str| -> Vec<Value> {
        let text = object.annotation(mainstay_api::names::PROPERTIES).unwrap_or_default();
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let all = value["properties"].as_array().cloned().unwrap_or_default();
        all.into_iter()
            .filter(|property| property["type"] == kind)
            .map(|property| property["value"].clone())
            .collect()
    };
    let needed = |subscription: &&Object| {
        let installed = subscription.str(&["status", "installedCSV"]).unwrap_or_default();
        let installed_csv = csvs.iter().find(|csv| csv.name() == installed);
        let apis = installed_csv.map(|csv| property_values(csv, "olm.gvk")).unwrap_or_default();
        let package = subscription.str(&["spec", "name"]).unwrap_or_default();
        csvs.iter().filter(|csv| csv.name() != installed).any(|other| {
            property_values(other, "olm.package.required")
                .iter()
                .any(|property| property["packageName"] == *package)
                || property_values(other, "olm.gvk.required")
                    .iter()
                    .any(|property| apis.contains(property))
        })
    };
    subscriptions
        .iter()
        .find(|subscription| !needed(subscription))
        .or_else(|| subscriptions.first())
}
