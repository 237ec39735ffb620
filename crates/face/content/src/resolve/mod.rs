//! `mainstay resolve`: what would be installed, each upgrade up to the head, and why an operator cannot
//! be installed.
//!
//! ```text
//! cluster, --state ─► ClusterState ──────────┐
//! --catalog, registries ─► CatalogSnapshots ─┴─► WhatIfQuery ─► NamespaceWhatIf ─┬─► text
//! --universe ─► ResolutionInput ─────────────────────────────────────┘           └─► JSON
//! ```
//!
//! The resolution is in `mainstay-whatif`. This module has the arguments, the reading of a cluster, and
//! the rendering of previews and failures.

mod argument;
mod contradictions;
mod crds;
mod extension;
mod failure;
mod observe;
mod preview;
mod remedies;
pub mod resolution;
mod stopwatch;
mod text;
mod universe;
mod value;

use argument::ChangeArgument;
use argument::ResolveTarget;
use clap::Args;
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ConnectionArguments, read_registries};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::io::finish;
use mainstay_command::text::Format;
use mainstay_object::Object;
use mainstay_version::{Version, parse_tolerant};
use mainstay_whatif::{
    CatalogOverrides, CatalogSnapshots, ClusterState, FolderCache, FolderOverride, PackageRequest,
    PriorityOverride,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments of `resolve`.
///
/// What is looked at: with `--state`, a state that was saved; with PACKAGEs, an empty cluster that
/// subscribes to them; otherwise, or with `--cluster`, the cluster that the kubeconfig names.
#[derive(Args, Debug)]
pub struct ResolveArguments {
    /// Packages to subscribe to, in addition to the Subscriptions of the state; or clusterextension/NAME to
    /// resolve only that ClusterExtension of the state.
    #[arg(value_name = "[CATALOG/]PACKAGE[:CHANNEL][@VERSION]", conflicts_with = "universe")]
    targets: Vec<ResolveTarget>,
    /// Content of the CatalogSource with this name, or of a new one (repeatable).
    #[arg(long = "catalog", value_name = "[NAMESPACE/]NAME=DIR", value_parser = argument::catalog_folder, conflicts_with = "universe")]
    catalogs: Vec<FolderOverride>,
    /// Priority of a catalog, instead of the priority of its CatalogSource (repeatable).
    #[arg(long = "priority", value_name = "[NAMESPACE/]NAME=N", value_parser = argument::catalog_priority, conflicts_with = "universe")]
    priorities: Vec<PriorityOverride>,
    /// Saved state: the output of `kubectl get sub,csv,og,catalogsource -A -o yaml`, or for OLM v1 of
    /// `kubectl get clusterextension,clustercatalog -o yaml`; `-` reads standard input (repeatable).
    #[arg(long = "state", value_name = "FILE", conflicts_with_all = ["universe", "cluster", "kubeconfig", "context"])]
    states: Vec<String>,
    /// Read the cluster of the kubeconfig even if packages are given.
    #[arg(long, conflicts_with = "universe")]
    cluster: bool,
    /// The cluster to read.
    #[command(flatten)]
    pub connection: ConnectionArguments,
    /// Namespace to resolve [default: all namespaces with Subscriptions].
    #[arg(short, long, value_name = "NAME", value_parser = argument::namespace, conflicts_with = "universe")]
    namespace: Option<String>,
    /// Global catalog namespace [default: `olm`, or `openshift-marketplace` if it has catalogs].
    #[arg(long, value_name = "NAME", value_parser = argument::namespace, conflicts_with = "universe")]
    global_namespace: Option<String>,
    /// Name of a bundle to treat as installed (repeatable).
    #[arg(long, value_name = "BUNDLE")]
    installed: Vec<String>,
    /// Kubernetes version, for bundles that require one [default: that of the cluster; without a cluster,
    /// these requirements are ignored].
    #[arg(long, value_name = "VERSION", value_parser = argument::kube_version)]
    kube_version: Option<Version>,
    /// Show the effect of a supposed change (repeatable): `subscribe=PACKAGE[:CHANNEL][@VERSION]`,
    /// `unsubscribe=[NAMESPACE/]NAME`, `catalog=NAME=DIR`, `outage=NAME`, `installed=BUNDLE`,
    /// `prohibit=PACKAGE|BUNDLE`, `kube-version=VERSION`.
    #[arg(long = "what-if", value_name = "CHANGE")]
    changes: Vec<ChangeArgument>,
    /// Resolve the recorded input in this file, instead of all of the above: a universe, or a test case
    /// that contains one; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    universe: Option<String>,
    /// Folder of the published catalogs that a universe names with `realData`: `catalog-NAME/` or
    /// `catalog-NAME.tar.xz` [default: the folder in `MAINSTAY_PUBLISHED`].
    #[arg(long, value_name = "DIR")]
    published: Option<PathBuf>,
    /// Write the input of the resolution, with all changes, to this file as a universe, for a bug report.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// Exit with 4 if an operator would be installed or upgraded.
    #[arg(long)]
    exit_code: bool,
}

impl ResolveArguments {
    /// The requested packages.
    fn packages(&self) -> Vec<PackageRequest> {
        let packages = self.targets.iter().filter_map(|target| match target {
            ResolveTarget::Package(package) => Some(package.clone()),
            ResolveTarget::Extension(_) => None,
        });
        packages.collect()
    }

    /// The names of the ClusterExtensions that are resolved; none for all.
    fn extension_names(&self) -> Vec<&str> {
        let names = self.targets.iter().filter_map(|target| match target {
            ResolveTarget::Package(_) => None,
            ResolveTarget::Extension(name) => Some(&**name),
        });
        names.collect()
    }

    /// Whether the command reads a cluster.
    pub fn needs_cluster(&self) -> bool {
        let names_cluster = self.cluster || self.connection.cluster.is_named();
        names_cluster
            || self.universe.is_none() && self.states.is_empty() && self.packages().is_empty()
    }
}

/// The reasons why Subscriptions of a namespace cannot be resolved, by name. `None` if a catalog's
/// content cannot be read.
pub async fn unresolved_subscriptions(
    objects: Vec<Object>,
    namespace: &str,
    cluster: &impl ClusterHandle,
) -> Option<BTreeMap<String, Cause>> {
    let mut state = ClusterState::default();
    for object in objects {
        state.add(object);
    }
    let kube_version = cluster.kube_version().await;
    state.kube_version = kube_version.and_then(|text| parse_tolerant(&text).ok());
    let mut catalogs = CatalogSnapshots::assemble(
        &FolderCache::new(""),
        &state,
        state.global_namespace(),
        &[namespace.to_owned()],
        &CatalogOverrides::default(),
    )
    .ok()?;
    read_registries(cluster, &mut catalogs).await;
    mainstay_whatif::unresolved_subscriptions(&state, namespace, &catalogs)
}

/// Runs the command. It connects to a cluster only if the arguments need one.
pub async fn run<C: ClusterHandle>(
    arguments: &ResolveArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce() -> Result<C, CommandFailure>,
) -> ExitStatus {
    finish(io, async |io| match &arguments.universe {
        Some(file) => universe::run(arguments, file, io),
        None => preview::run(arguments, io, connect).await,
    })
    .await
}
