//! Round trips: a package is installed, upgraded and uninstalled twice.
//!
//! The first `mainstay uninstall` runs without options, as by an administrator who knows nothing of
//! dependents and operands. The second one removes everything, with `--operands --definitions`.
//!
//! ```text
//! dump ─► install, upgrade ─► create examples ─► uninstall ─► dump ─► delete leftovers ───────────┐
//!   ▲ equal, but for allowed leftovers ─────────────────────────┘                                 │
//!   └ equal ◄── dump ◄── uninstall --operands --definitions ◄── install, upgrade, create examples ┘
//! ```
//!
//! Each uninstallation prints a preview of what it deletes and keeps; the dumps must agree with it.

use super::catalogs::PackageUnderTest;
use super::dump::Dump;
use super::uninstall::{self, Preview};
use super::walk_cluster::{NAME, NAMESPACE, WalkCluster};
use super::{
    PackageWalkEnd, UninstallReport, UpgradePath, Walk, examples, leftovers, package_walk,
};
use anyhow::{Context, bail};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_client::{DeleteOptions, Patch};
use serde_json::json;

/// The greatest number of operators to uninstall, dependencies included.
const MAX_UNINSTALLS: usize = 50;

/// How often a check with findings is repeated. Each check waits until the cluster is idle.
const MAX_CHECKS: usize = 4;

/// A package and the cluster in which it is installed and uninstalled.
pub(super) struct RoundTrip<'a> {
    pub(super) cluster: &'a WalkCluster,
    pub(super) item: &'a PackageUnderTest,
    pub(super) path: &'a UpgradePath,
}

impl WalkCluster {
    /// Dumps the idle cluster and checks it, until a check has no findings or the attempts run out.
    pub(super) async fn check_until_clean(
        &self,
        report: &mut UninstallReport,
        check: impl Fn(&Dump, &mut UninstallReport),
    ) -> anyhow::Result<Dump> {
        let mut tries = 0;
        loop {
            let after = self.dump_when_idle().await?;
            let mut checked = report.clone();
            check(&after, &mut checked);
            tries += 1;
            if checked.findings.len() == report.findings.len() || tries == MAX_CHECKS {
                *report = checked;
                return Ok(after);
            }
        }
    }

    /// Waits until the cluster is as before, and returns it; `report` gets what still differs at the end.
    pub(super) async fn check_nothing_left(
        &self,
        before: &Dump,
        report: &mut UninstallReport,
    ) -> anyhow::Result<Dump> {
        let check = |after: &Dump, report: &mut UninstallReport| {
            leftovers::check_no_leftovers(before, after, report);
        };
        self.check_until_clean(report, check).await
    }
}

impl RoundTrip<'_> {
    /// Runs both round trips.
    pub(super) async fn run(&self, walk: &mut Walk) -> anyhow::Result<()> {
        let before = self.cluster.dump_when_idle().await?;
        package_walk::install_and_upgrade(self.cluster, self.item, self.path, walk).await?;
        let mut report = UninstallReport::default();
        self.create_examples(&mut report).await?;
        let previews = self.uninstall_all(false, &mut report).await?;
        let after = self
            .cluster
            .check_until_clean(&mut report, |after, report| {
                leftovers::check_leftovers(&before, after, report);
                report.findings.extend(uninstall::unannounced_leftovers(&previews, &before, after));
            })
            .await?;

        // Objects that list others are created again as long as the listed objects exist.
        let mut remaining = after;
        for _ in 0..MAX_CHECKS {
            if remaining.not_in(&before).next().is_none() {
                break;
            }
            self.delete_leftovers(&before, &remaining).await?;
            remaining = self.cluster.dump_when_idle().await?;
        }
        let before = self.cluster.check_nothing_left(&before, &mut report).await?;
        let mut again =
            Walk { installed_csvs: Vec::new(), dependencies: Vec::new(), ..walk.clone() };
        package_walk::install_and_upgrade(self.cluster, self.item, self.path, &mut again).await?;
        if matches!(walk.end, PackageWalkEnd::Completed)
            && (&again.end, &again.installed_csvs) != (&walk.end, &walk.installed_csvs)
        {
            report.findings.push(format!("the second time it ends in {:?}", again.end));
        }
        self.create_examples(&mut UninstallReport::default()).await?;
        self.uninstall_all(true, &mut report).await?;
        self.cluster.check_nothing_left(&before, &mut report).await?;
        report.findings.sort();
        report.findings.dedup();
        walk.uninstall_report = Some(report);
        Ok(())
    }

    /// Uninstalls the package, and then its dependencies, until no Subscription is left.
    async fn uninstall_all(
        &self,
        all: bool,
        report: &mut UninstallReport,
    ) -> anyhow::Result<Vec<Preview>> {
        let mut previews = Vec::new();
        let mut next = NAME.to_owned();
        for _ in 0..MAX_UNINSTALLS {
            let before = self.cluster.dump_when_idle().await?;
            match self.cluster.uninstaller.uninstall(NAMESPACE, &next, all).await? {
                Ok(preview) => {
                    self.cluster
                        .check_until_clean(report, |after, report| {
                            report
                                .findings
                                .extend(uninstall::preview_mismatches(&preview, &before, after));
                        })
                        .await?;
                    previews.push(preview);
                }
                Err(error) => {
                    report.findings.push(format!("{next} cannot be uninstalled: {error}"));
                    return Ok(previews);
                }
            }
            let subscriptions = self.cluster.list(&SUBSCRIPTION).await?;
            let csvs = self.cluster.list(&CLUSTER_SERVICE_VERSION).await?;
            match uninstall::next_to_uninstall(&subscriptions, &csvs) {
                Some(other) => other.name().clone_into(&mut next),
                None => return Ok(previews),
            }
        }
        bail!("operators come again and again")
    }

    /// Creates the custom resources of the examples of the installed version.
    async fn create_examples(&self, report: &mut UninstallReport) -> anyhow::Result<()> {
        let cluster = &self.cluster.api;
        let installed = cluster.find(&SUBSCRIPTION, Some(NAMESPACE), NAME).await?;
        let name = installed
            .as_ref()
            .and_then(|subscription| subscription.str(&["status", "installedCSV"]));
        let Some(name) = name else { return Ok(()) };
        let Some(csv) = cluster.find(&CLUSTER_SERVICE_VERSION, Some(NAMESPACE), name).await? else {
            return Ok(());
        };
        report.examples += examples::create(cluster, NAMESPACE, &csv).await?;
        Ok(())
    }

    /// Deletes all objects that are not in the earlier dump, and their finalizers.
    async fn delete_leftovers(&self, before: &Dump, after: &Dump) -> anyhow::Result<()> {
        let cluster = &self.cluster.api;
        for (id, resource, object) in after.not_in(before) {
            let namespace = resource.is_namespaced().then(|| object.namespace());
            if object.finalizers().next().is_some() {
                let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                match cluster.patch(resource, namespace, object.name(), &free).await {
                    Err(error) if !error.is_not_found() => {
                        return Err(error).with_context(|| format!("free {id}"));
                    }
                    _ => {}
                }
            }
            let options = DeleteOptions::default();
            let gone = cluster.ensure_deleted(resource, namespace, object.name(), &options).await;
            gone.with_context(|| format!("delete {id}"))?;
        }
        Ok(())
    }
}
