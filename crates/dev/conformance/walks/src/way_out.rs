//! `mainstay uninstall`, and whether it does what it says.

use super::dump::{Dump, Id};
use super::stays;
use anyhow::Context;
use clap::Parser;
use mainstay_cause::Cause;
use mainstay_cli::cluster::{ClusterHandle, ClusterReadError};
use mainstay_cli::exit::Exit;
use mainstay_cli::resolve::Io;
use mainstay_cli::uninstall::{self, UninstallArguments};
use mainstay_client::{Cluster, DeleteOptions, ListParams};
use mainstay_clock::Clock;
use mainstay_object::{Object, Resource};
use mainstay_removal::Step;
use mainstay_resolver::universe::CatalogData;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Handle;

/// How often it is looked whether something is gone.
const LOOK: Duration = Duration::from_millis(20);

/// The command line, as far as it is needed.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    uninstall: UninstallArguments,
}

/// What is said to go, to stay and to hang.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Preview {
    goes: Vec<Told>,
    pub(super) stays: Vec<Told>,
    hangs: Vec<Told>,
}

/// An object that is told of.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told {
    kind: String,
    namespace: String,
    name: String,
}

impl Told {
    /// Whether it means an object.
    pub(super) fn is(&self, id: &Id) -> bool {
        self.kind == id.kind && self.namespace == id.namespace && self.name == id.name
    }
}

/// Who uninstalls.
pub(super) enum Way {
    /// The command's own code, in this process.
    Here(Box<Cluster>),
    /// The command.
    Command { program: PathBuf, kubeconfig: PathBuf },
}

impl Way {
    /// Uninstalls, and returns what was said before; or what was said against it.
    pub(super) async fn out(
        &self,
        namespace: &str,
        name: &str,
        all: bool,
    ) -> anyhow::Result<Result<Preview, String>> {
        let mut words: Vec<String> =
            ["uninstall", name, "--namespace", namespace, "--output", "json"]
                .map(str::to_owned)
                .to_vec();
        if all {
            words.extend(["--operands", "--definitions"].map(str::to_owned));
        }
        let (done, said, error) = match self {
            Self::Here(cluster) => {
                let cluster = cluster.clone();
                let runtime = Handle::current();
                // The command is a task of one thread: its outputs cannot move to others.
                let command = move || runtime.block_on(here(*cluster, &words));
                tokio::task::spawn_blocking(command).await??
            }
            Self::Command { program, kubeconfig } => command(program, kubeconfig, &words).await?,
        };
        if !done {
            return Ok(Err(error));
        }
        let preview = serde_json::from_str(&said);
        Ok(Ok(preview.with_context(|| format!("read the preview: {said}"))?))
    }
}

/// Whether it was done, and what was said, on both outputs.
type Said = (bool, String, String);

async fn command(program: &Path, kubeconfig: &Path, words: &[String]) -> anyhow::Result<Said> {
    let mut command = tokio::process::Command::new(program);
    command.args(words).arg("--kubeconfig").arg(kubeconfig).env("NO_COLOR", "1");
    let output = command.output().await.with_context(|| format!("run {}", program.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
}

async fn here(cluster: Cluster, words: &[String]) -> anyhow::Result<Said> {
    let line = Line::try_parse_from(words)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = Io {
        stdin: &mut std::io::empty(),
        stdout: &mut stdout,
        stderr: &mut stderr,
        folder: PathBuf::new(),
        colour: false,
    };
    let connect = async move || Ok(InProcessCluster(cluster));
    let exit = uninstall::run(&line.uninstall, &mut io, connect).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((matches!(exit, Exit::Done), text(&stdout), text(&stderr)))
}

/// A cluster that is reached without a socket.
struct InProcessCluster(Cluster);

fn refused(error: &mainstay_client::Error) -> ClusterReadError {
    let cause = cause(error);
    if error.is_not_found() {
        ClusterReadError::UnknownKind(cause)
    } else {
        ClusterReadError::Failed(cause)
    }
}

fn cause(error: &mainstay_client::Error) -> Cause {
    Cause::new(error.to_string())
}

impl ClusterHandle for InProcessCluster {
    async fn list(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, ClusterReadError> {
        let params = labels.map_or_else(ListParams::default, ListParams::labels);
        let list = self.0.list_pages(kind, namespace, &params).await;
        list.map(|list| list.items).map_err(|error| refused(&error))
    }

    async fn get(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ClusterReadError> {
        self.0.find(kind, namespace, name).await.map_err(|error| refused(&error))
    }

    async fn delete(&self, step: &Step) -> Result<(), Cause> {
        let options = DeleteOptions::uid(&step.uid);
        let namespace = step.namespace.as_deref();
        let deleted = self.0.ensure_deleted(&step.resource, namespace, &step.name, &options).await;
        deleted.map_err(|error| cause(&error))
    }

    async fn wait_until_gone(
        &self,
        step: &Step,
        timeout: Duration,
    ) -> Result<Option<Object>, Cause> {
        let clock = Clock::system();
        let began = clock.elapsed();
        loop {
            let found = self.get(&step.resource, step.namespace.as_deref(), &step.name).await?;
            let found = found.filter(|object| object.uid() == step.uid);
            if found.is_none() || began + timeout < clock.elapsed() {
                return Ok(found);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn default_namespace(&self) -> &'static str {
        "default"
    }

    async fn kube_version(&self) -> Option<String> {
        None
    }

    async fn namespaces(&self) -> Option<Vec<String>> {
        None
    }

    async fn read_catalog(&self, address: &str) -> Result<CatalogData, Cause> {
        Err(Cause::new(format!("nobody reads the catalog at {address} to uninstall")))
    }
}

/// Where it was not as it was said.
pub(super) fn broken(preview: &Preview, before: &Dump, after: &Dump) -> Vec<String> {
    let mut wrong = Vec::new();
    let gone: BTreeSet<&Id> = before.beyond(after).map(|(id, _, _)| id).collect();
    for object in &preview.goes {
        match before.named(&object.kind, &object.namespace, &object.name) {
            None => wrong
                .push(format!("{} {} is said to go, and was not there", object.kind, object.name)),
            Some(id) if !gone.contains(id) => {
                wrong.push(format!("{id} is said to go, and is there"));
            }
            Some(_) => {}
        }
    }
    for object in preview.stays.iter().chain(&preview.hangs) {
        match before.named(&object.kind, &object.namespace, &object.name) {
            None => {
                wrong.push(format!(
                    "{} {} is said to stay, and was not there",
                    object.kind, object.name
                ));
            }
            Some(id) if gone.contains(id) => {
                wrong.push(format!("{id} is said to stay, and is gone"));
            }
            Some(_) => {}
        }
    }
    // What goes with a definition or an API, the roles of its users, is no business of the operator.
    let apis =
        gone.iter().filter(|id| ["CustomResourceDefinition", "APIService"].contains(&&*id.kind));
    let uids = apis.filter_map(|id| Some(before.objects.get(*id)?.1.uid().to_owned()));
    let with_apis = before.dependents(uids.collect());
    for (id, _, object) in before.beyond(after) {
        let told = preview.goes.iter().any(|object| object.is(id));
        if !told && !stays::follows(id, object) && !with_apis.contains(id) {
            wrong.push(format!("{id} goes, and nobody was told"));
        }
    }
    for (id, _, object) in after.beyond(before) {
        if !stays::follows(id, object) {
            wrong.push(format!("{id} is new after it"));
        }
    }
    wrong
}

/// What is there since an installation, and none of its ends has told of.
pub(super) fn untold(previews: &[Preview], base: &Dump, after: &Dump) -> Vec<String> {
    let told =
        |id: &Id| previews.iter().any(|object| object.stays.iter().any(|object| object.is(id)));
    let uids = after
        .beyond(base)
        .filter(|(id, _, _)| told(id))
        .map(|(_, _, object)| object.uid().to_owned());
    let with = after.dependents(uids.collect());
    let left = after
        .beyond(base)
        .filter(|(id, _, object)| !told(id) && !with.contains(id) && !stays::follows(id, object));
    left.map(|(id, _, _)| format!("{id} stays, and nobody was told")).collect()
}

/// The package of a Subscription that no other of its namespace needs, to begin with; any if each is
/// needed by another.
pub(super) fn first<'a>(subscriptions: &'a [Object], versions: &[Object]) -> Option<&'a Object> {
    let of = |object: &Object, kind: &str| -> Vec<Value> {
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
        let brings = versions.iter().find(|csv| csv.name() == installed);
        let apis = brings.map(|csv| of(csv, "olm.gvk")).unwrap_or_default();
        let package = subscription.str(&["spec", "name"]).unwrap_or_default();
        versions.iter().filter(|csv| csv.name() != installed).any(|other| {
            of(other, "olm.package.required")
                .iter()
                .any(|property| property["packageName"] == *package)
                || of(other, "olm.gvk.required").iter().any(|property| apis.contains(property))
        })
    };
    subscriptions
        .iter()
        .find(|subscription| !needed(subscription))
        .or_else(|| subscriptions.first())
}
