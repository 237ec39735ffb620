//! The walk of one package from OLM classic to OLM v1 and back.

use super::cert_manager::{CERTIFICATE_NAME, CertManager};
use super::comparison::{self, Comparison, ExpectedOperator};
use super::obstacles::Obstacle;
use super::{MigrationWalk, cluster};
use crate::catalogs::PackageUnderTest;
use crate::dump::Dump;
use crate::extensions::cluster::served;
use crate::extensions::content::{BundleContent, ExtensionContent};
use crate::extensions::refusal;
use crate::package_walk::wait_until_installed;
use crate::table::truncate;
use crate::upgrade_path::UpgradePath;
use crate::walk_cluster::{CATALOG_NAMESPACE, NAME, NAMESPACE, WalkCluster, delete};
use crate::{Applier, UninstallReport, examples, leftovers};
use anyhow::{Context, bail};
use clap::Parser;
use mainstay_api::names::olm_v1::RESOURCE_POLICY_ANNOTATION;
use mainstay_api::names::{OPERATOR_NAMESPACE, TARGET_NAMESPACES};
use mainstay_api::resources::{
    CLUSTER_EXTENSION, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION,
};
use mainstay_cli::args::{Arguments, Command};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_clitest::DirectCluster;
use mainstay_command::exit::ExitStatus;
use mainstay_command::io::CommandIo;
use mainstay_object::Object;
use mainstay_object::builtin::{self, addons};
use mainstay_operators::extension;
use mainstay_registry::ServedCatalogs;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a command waits for a controller.
const TIMEOUT: &str = "120s";

/// How long a walk waits for a controller.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// Walks a package.
pub(super) async fn walk(item: PackageUnderTest, applier: Applier) -> MigrationWalk {
    let mut walk = MigrationWalk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        ..MigrationWalk::default()
    };
    // A package without readable bundles is in no catalog.
    if item.loaded_package().is_none() {
        return walk;
    }
    let path = match item.upgrade_path() {
        Ok(path) => path,
        Err(why) => {
            walk.not_installed = Some(why);
            return walk;
        }
    };
    if let Err(error) = run(&item, &path, applier, &mut walk).await {
        walk.findings.push(truncate(&format!("{error:#}")));
    }
    walk
}

async fn run(
    item: &PackageUnderTest,
    path: &UpgradePath,
    applier: Applier,
    walk: &mut MigrationWalk,
) -> anyhow::Result<()> {
    let content = ExtensionContent::read(item)?;
    let served = served(&content);
    let cluster = cluster::start(item, &content, applier, &served).await?;
    let channel = path.segments.last().map_or("", |segment| &*segment.channel);
    let mut steps = Steps { cluster: &cluster, content: &content, served, channel, walk };
    let outcome = steps.run(item, path).await;
    cluster.clean_up().await?;
    outcome
}

/// What a command said.
#[derive(Debug)]
struct Said {
    status: ExitStatus,
    out: String,
    err: String,
}

/// The steps of a walk on its cluster.
struct Steps<'a> {
    cluster: &'a WalkCluster,
    content: &'a ExtensionContent,
    served: Arc<ServedCatalogs>,
    /// The channel of the Subscription.
    channel: &'a str,
    walk: &'a mut MigrationWalk,
}

impl<'a> Steps<'a> {
    async fn run(&mut self, item: &PackageUnderTest, path: &UpgradePath) -> anyhow::Result<()> {
        let content: &'a ExtensionContent = self.content;
        let bundle = content.bundle(path.end())?;
        let csv = bundle.csv().context("a bundle has a ClusterServiceVersion")?;
        self.create_group(csv).await?;
        let before = self.cluster.dump_when_idle().await?;
        self.subscribe(path.end(), "Automatic").await?;
        if let Some(why) = wait_until_installed(self.cluster, path.end()).await? {
            self.walk.not_installed = Some(why);
            let said = self.migrate(&["check", "--all", "-o", "json"]).await?;
            if said.status != ExitStatus::Unresolved {
                self.add_finding(&format!(
                    "an operator that does not work passes the check: {said:?}"
                ));
            }
            return Ok(());
        }
        self.walk.installed = Some(path.end().to_owned());
        let examples = examples::create(&self.cluster.api, NAMESPACE, csv).await?;
        let obstacles = self.check(bundle, false).await?;
        self.walk.obstacles.clone_from(&obstacles);
        if obstacles.iter().any(|obstacle| !obstacle.is_removed()) {
            return self.expect_refusal().await;
        }
        let cert_manager = self.remove_obstacles(bundle, &obstacles).await?;
        self.walk.examples = examples;
        self.make_round_trip(bundle).await?;
        self.delete_extension().await?;
        if let Some(older) = self.older(item, path).await? {
            self.upgrade(older, bundle).await?;
        }
        if let Some(cert_manager) = cert_manager {
            cert_manager.remove(self.cluster).await?;
            // It may have read a Certificate just before the end of it.
            self.delete_issued_secrets().await?;
        }
        self.expect_nothing_left(&before).await
    }

    fn add_finding(&mut self, finding: &str) {
        self.walk.findings.push(truncate(finding));
    }

    fn add_comparison(&mut self, what: &str, found: Comparison) {
        self.walk.exceptions.extend(found.exceptions);
        for finding in found.findings {
            self.add_finding(&format!("{what}: {finding}"));
        }
    }

    /// Creates the OperatorGroup: for all namespaces, if the version can watch them.
    async fn create_group(&self, csv: &Object) -> anyhow::Result<()> {
        let modes = refusal::install_modes(csv);
        let spec = if modes.contains("AllNamespaces") {
            json!({})
        } else if modes.contains("OwnNamespace") {
            json!({"targetNamespaces": [NAMESPACE]})
        } else if modes.contains("SingleNamespace") {
            json!({"targetNamespaces": ["default"]})
        } else {
            json!({"targetNamespaces": [NAMESPACE, "default"]})
        };
        self.cluster
            .apply(json!({
                "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
                "metadata": {"name": "group", "namespace": NAMESPACE}, "spec": spec,
            }))
            .await
    }

    async fn subscribe(&self, csv: &str, approval: &str) -> anyhow::Result<()> {
        self.cluster
            .apply(json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                "metadata": {"name": NAME, "namespace": NAMESPACE},
                "spec": {
                    "name": self.walk.package, "channel": self.channel, "startingCSV": csv,
                    "source": NAME, "sourceNamespace": CATALOG_NAMESPACE,
                    "installPlanApproval": approval,
                },
            }))
            .await
    }

    /// Runs `mainstay extension migrate`.
    async fn migrate(&self, arguments: &[&str]) -> anyhow::Result<Said> {
        let words = ["mainstay", "extension", "migrate"].iter().chain(arguments);
        let parsed = Arguments::try_parse_from(words)?;
        let (cluster, served) = (self.cluster.api.clone(), Arc::clone(&self.served));
        let runtime = Handle::current();
        // The future of the command is not `Send`, because of the output streams that it borrows.
        let command = move || {
            runtime.block_on(async {
                let Command::Extension(arguments) = parsed.command else {
                    bail!("it is another command")
                };
                let (mut out, mut err) = (Vec::new(), Vec::new());
                let stdin = &mut std::io::empty();
                let mut io = CommandIo::unattended(stdin, &mut out, &mut err, Path::new(""));
                let connect = async |_: &_, _| {
                    Ok(DirectCluster::with_catalogs(cluster.clone(), Arc::clone(&served)))
                };
                let status = extension::run(&arguments, &mut io, connect).await;
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Ok(Said { status, out: text(&out), err: text(&err) })
            })
        };
        tokio::task::spawn_blocking(command).await?
    }

    /// Runs a command that has to succeed.
    async fn expect_done(&self, arguments: &[&str]) -> anyhow::Result<Said> {
        let said = self.migrate(arguments).await?;
        if said.status != ExitStatus::Done {
            bail!("migrate {}: {:?}: {}{}", arguments.join(" "), said.status, said.out, said.err);
        }
        Ok(said)
    }

    /// Compares `migrate check` with what the bundle lets expect, and returns that.
    async fn check(
        &mut self,
        bundle: &BundleContent,
        has_cert_manager: bool,
    ) -> anyhow::Result<BTreeSet<Obstacle>> {
        let csv = bundle.csv().context("a bundle has a ClusterServiceVersion")?;
        let obstacles = Obstacle::of(&bundle.bundle, csv, has_cert_manager);
        let said = self.migrate(&["check", "--all", "-o", "json"]).await?;
        let report: Value = serde_json::from_str(&said.out)
            .with_context(|| format!("migrate check says {said:?}"))?;
        let reports = report["operators"].as_array().map(Vec::as_slice).unwrap_or_default();
        let failures = |report: &Value| -> BTreeSet<(String, String)> {
            let checks = report["checks"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
            let failed = checks.filter(|check| check["outcome"] == "Failed");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            failed.map(|check| (text(&check["id"]), text(&check["name"]))).collect()
        };
        let wanted: BTreeSet<(String, String)> = obstacles
            .iter()
            .flat_map(|obstacle| obstacle.checks())
            .map(|(id, name)| ((*id).to_owned(), (*name).to_owned()))
            .collect();
        let own = reports.iter().find(|report| report["name"] == NAME);
        let found = own.map(failures).unwrap_or_default();
        let state = own.map_or(&Value::Null, |report| &report["state"]);
        let is_eligible = state == "Eligible";
        if found != wanted || is_eligible != wanted.is_empty() {
            self.add_finding(&format!(
                "the check says {state}, {found:?}, and should say {wanted:?}"
            ));
        }
        // The Subscriptions of dependencies.
        for report in reports.iter().filter(|report| report["name"] != NAME) {
            let is_right =
                failures(report).contains(&("C9".to_owned(), "installed by a user".to_owned()));
            if !is_right {
                self.add_finding(&format!("a dependency passes the check: {report}"));
            }
        }
        Ok(obstacles)
    }

    /// Tries the conversion of an operator that cannot be converted: nothing changes.
    async fn expect_refusal(&mut self) -> anyhow::Result<()> {
        let before = self.cluster.dump_when_idle().await?;
        let said = self.migrate(&["convert", NAME, "-n", NAMESPACE]).await?;
        if said.status != ExitStatus::Unresolved {
            self.add_finding(&format!("the conversion should be refused: {said:?}"));
        }
        let after = self.cluster.dump_when_idle().await?;
        let mut report = UninstallReport::default();
        leftovers::check_no_leftovers(&before, &after, &mut report);
        self.walk.findings.extend(report.findings);
        Ok(())
    }

    /// Starts cert-manager where the check asks for it.
    async fn remove_obstacles(
        &mut self,
        bundle: &BundleContent,
        obstacles: &BTreeSet<Obstacle>,
    ) -> anyhow::Result<Option<CertManager>> {
        if !obstacles.contains(&Obstacle::Certificates) {
            return Ok(None);
        }
        self.expect_refusal().await?;
        let cert_manager = CertManager::start(self.cluster).await?;
        self.check(bundle, true).await?;
        Ok(Some(cert_manager))
    }

    /// Converts the operator.
    async fn convert(&self) -> anyhow::Result<()> {
        let mut arguments = vec!["convert", NAME, "-n", NAMESPACE, "--timeout", TIMEOUT];
        arguments.extend(self.walk.obstacles.iter().filter_map(|obstacle| obstacle.flag()));
        self.expect_done(&arguments).await.map(drop)
    }

    /// Converts the operator, gives it back, and converts it again.
    async fn make_round_trip(&mut self, bundle: &BundleContent) -> anyhow::Result<()> {
        let operator = operator(bundle)?;
        let before = self.cluster.dump_when_idle().await?;
        let has = |(kind, namespace, name): &&comparison::BundleObject| {
            before.find_id(kind, namespace, name).is_some()
        };
        self.walk.objects = operator.rendered.iter().filter(has).count();
        self.convert().await?;
        let converted = self.cluster.dump_when_idle().await?;
        self.add_comparison("converted", comparison::converted(&before, &converted, &operator));
        self.expect_installed(&bundle.bundle.name).await?;
        let rollback = ["rollback", NAME, "--acknowledge-installed", "--timeout", TIMEOUT];
        self.expect_done(&rollback).await?;
        if let Some(why) = wait_until_installed(self.cluster, &bundle.bundle.name).await? {
            bail!("OLM classic does not have it again: {why}");
        }
        let restored = self.cluster.dump_when_idle().await?;
        self.add_comparison("rolled back", comparison::restored(&before, &restored, &operator));
        self.convert().await?;
        let again = self.cluster.dump_when_idle().await?;
        self.add_comparison("converted again", comparison::converted(&restored, &again, &operator));
        self.clean_up(&operator).await?;
        self.walk.completed_round_trip = true;
        Ok(())
    }

    /// Removes what OLM classic left, and checks that OLM v1 has all that it had.
    async fn clean_up(&mut self, operator: &ExpectedOperator) -> anyhow::Result<()> {
        let before = self.cluster.dump_when_idle().await?;
        self.expect_done(&["cleanup", NAME]).await?;
        let after = self.cluster.dump_when_idle().await?;
        self.add_comparison("cleaned up", comparison::cleaned_up(&before, &after, operator));
        let said = self.expect_done(&["cleanup", NAME]).await?;
        if !said.out.ends_with(": nothing is left\n") {
            self.add_finding(&format!("a second cleanup finds more: {}", said.out));
        }
        Ok(())
    }

    /// Checks that the extension has a bundle, and that OLM classic has nothing.
    async fn expect_installed(&mut self, name: &str) -> anyhow::Result<()> {
        let extension = self.cluster.api.find(&CLUSTER_EXTENSION, None, NAME).await?;
        let extension = extension.context("there is no ClusterExtension")?;
        let installed = extension.str(&["status", "install", "bundle", "name"]);
        if extension.condition("Installed") != Some("True") || installed != Some(name) {
            self.add_finding(&format!(
                "the extension is not installed: {:?}",
                extension.get(&["status"])
            ));
        }
        for kind in [&SUBSCRIPTION, &CLUSTER_SERVICE_VERSION] {
            for object in self.cluster.list(kind).await? {
                self.add_finding(&format!("{} {} is left", kind.kind, object.name()));
            }
        }
        Ok(())
    }

    /// Deletes the extension, and what it has to keep.
    async fn delete_extension(&mut self) -> anyhow::Result<()> {
        let options = DeleteOptions::default();
        self.cluster.api.ensure_deleted(&CLUSTER_EXTENSION, None, NAME, &options).await?;
        let gone = self.cluster.test()?.wait_gone(&CLUSTER_EXTENSION, None, NAME);
        in_time("the end of the ClusterExtension", gone).await?;
        // The garbage collector deletes its objects. What is installed meanwhile would find them, and lose them.
        self.cluster.dump_when_idle().await?;
        let (kind, all) = (&builtin::CUSTOM_RESOURCE_DEFINITION, ObjectList::default());
        for crd in self.cluster.api.list(kind, None, &all).await?.items {
            if crd.annotation(RESOURCE_POLICY_ANNOTATION) == Some("keep") {
                delete(&self.cluster.api, kind, crd.name()).await?;
                self.walk.exceptions.insert(comparison::KEPT.0);
            }
        }
        if !self.walk.obstacles.contains(&Obstacle::Certificates) {
            return Ok(());
        }
        let certificates = Selection::all(addons::CERTIFICATE);
        let gone = self.cluster.test()?.wait_for_all(certificates, |all| all.is_empty());
        in_time("the end of the Certificates", gone).await?;
        self.delete_issued_secrets().await
    }

    /// Deletes the Secrets of Certificates, which cert-manager leaves.
    async fn delete_issued_secrets(&self) -> anyhow::Result<()> {
        let options = DeleteOptions::default();
        for secret in self.cluster.list(&builtin::SECRET).await? {
            if secret.annotation(CERTIFICATE_NAME).is_some() {
                let kind = &builtin::SECRET;
                let (namespace, name) = (Some(NAMESPACE), secret.name());
                self.cluster.api.ensure_deleted(kind, namespace, name, &options).await?;
            }
        }
        Ok(())
    }

    /// Checks that the cluster is as before the installation.
    async fn expect_nothing_left(&mut self, before: &Dump) -> anyhow::Result<()> {
        let mut report = UninstallReport::default();
        self.cluster.check_nothing_left(before, &mut report).await?;
        self.walk.findings.extend(report.findings);
        Ok(())
    }

    /// The version before the last one of the path, if the channel has it, the cluster has its kinds and it
    /// can be converted, too.
    async fn older(
        &self,
        item: &PackageUnderTest,
        path: &UpgradePath,
    ) -> anyhow::Result<Option<&'a BundleContent>> {
        let updates = path.segments.iter().flat_map(|segment| &segment.updates);
        let mut names: Vec<&String> = std::iter::once(&path.start).chain(updates).collect();
        names.pop();
        let Some(name) = names.pop() else { return Ok(None) };
        let package = item.loaded_package().context("there is no such package")?;
        let channel = package.channel(self.channel).context("the path ends in a channel")?;
        let content: &'a ExtensionContent = self.content;
        let bundle = content.bundle(name)?;
        let csv = bundle.csv().context("a bundle has a ClusterServiceVersion")?;
        let obstacles = Obstacle::of(&bundle.bundle, csv, true);
        let served = refusal::served_kinds(&self.cluster.api).await?;
        let others = bundle.objects.iter().filter(|object| object.kind() != csv.kind());
        let mut kinds =
            others.map(|object| (object.api_version().to_owned(), object.kind().to_owned()));
        let is_fit = kinds.all(|kind| served.contains(&kind))
            && obstacles.is_subset(&self.walk.obstacles)
            && channel.entries().iter().any(|entry| *entry.name == **name)
            && item.missing_requirements(name).is_none();
        Ok(is_fit.then_some(bundle))
    }

    /// Converts an older version whose upgrades need an approval, and upgrades it as an extension.
    async fn upgrade(&mut self, old: &BundleContent, new: &BundleContent) -> anyhow::Result<()> {
        let (old_name, test) = (&*old.bundle.name, self.cluster.test()?);
        self.subscribe(old_name, "Manual").await?;
        let plans = Selection::all(INSTALL_PLAN).namespace(NAMESPACE);
        let waits = |plan: &Object| plan.bool(&["spec", "approved"]) == Some(false);
        let plans = test.wait_for_all(plans, |all| all.iter().any(|plan| waits(plan)));
        let plans = in_time("an InstallPlan of the older version", plans).await?;
        let plan = plans.iter().find(|plan| waits(plan)).context("it was waited for")?;
        let approved = Patch::Merge(json!({"spec": {"approved": true}}));
        self.cluster.api.patch(&INSTALL_PLAN, Some(NAMESPACE), plan.name(), &approved).await?;
        let is_held = |subscription: &Object| {
            subscription.str(&["status", "installedCSV"]) == Some(old_name)
                && subscription.str(&["status", "state"]) == Some("UpgradePending")
        };
        let is_held = test.wait_for(&SUBSCRIPTION, Some(NAMESPACE), NAME, is_held);
        in_time("the Subscription with a pending upgrade", is_held).await?;
        let runs = |csv: &Object| csv.str(&["status", "phase"]) == Some("Succeeded");
        let runs = test.wait_for(&CLUSTER_SERVICE_VERSION, Some(NAMESPACE), old_name, runs);
        if let Err(error) = in_time("the ClusterServiceVersion of the older version", runs).await {
            let csvs = self.cluster.list(&CLUSTER_SERVICE_VERSION).await?;
            let states: Vec<String> = csvs
                .iter()
                .map(|csv| {
                    let field = |name| csv.str(&["status", name]).unwrap_or_default();
                    format!("{} is {}: {}", csv.name(), field("phase"), field("message"))
                })
                .collect();
            return Err(error.context(states.join(", ")));
        }
        if let Some(csv) = old.csv() {
            examples::create(&self.cluster.api, NAMESPACE, csv).await?;
        }
        let before = self.cluster.dump_when_idle().await?;
        self.convert().await?;
        let after = self.cluster.dump_when_idle().await?;
        let operators = (operator(old)?, operator(new)?);
        self.add_comparison("older version", comparison::converted(&before, &after, &operators.0));
        self.clean_up(&operators.0).await?;
        let before = self.cluster.dump_when_idle().await?;
        let is_safe = refusal::unsafe_crds(&old.objects, &new.objects).is_empty();
        let enforcement = if is_safe { "Strict" } else { "None" };
        let patch = Patch::Merge(json!({"spec": {
            "source": {"catalog": {"version": new.bundle.version.to_string()}},
            "install": {"preflight": {"crdUpgradeSafety": {"enforcement": enforcement}}},
        }}));
        self.cluster.api.patch(&CLUSTER_EXTENSION, None, NAME, &patch).await?;
        let is_new = |extension: &Object| {
            extension.str(&["status", "install", "bundle", "name"]) == Some(&*new.bundle.name)
        };
        in_time("the upgrade", test.wait_for(&CLUSTER_EXTENSION, None, NAME, is_new)).await?;
        let after = self.cluster.dump_when_idle().await?;
        self.add_comparison("upgraded", comparison::upgraded(&before, &after, &operators));
        self.walk.upgraded_from = Some(old_name.to_owned());
        self.delete_extension().await
    }
}

/// Waits for something.
///
/// # Errors
/// It does not come in time.
async fn in_time<T>(what: &str, wait: impl Future<Output = T>) -> anyhow::Result<T> {
    let waited = tokio::time::timeout(MAX_WAIT, wait).await;
    waited.with_context(|| format!("{what} does not come"))
}

/// What the comparison has to know of a bundle.
fn operator(bundle: &BundleContent) -> anyhow::Result<ExpectedOperator> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = bundle.installed_objects(NAMESPACE)?;
    let rendered = objects.iter().map(|object| {
        let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
        // They are rendered with a namespace, and have none.
        let is_global = kind.ends_with("WebhookConfiguration");
        let namespace = if is_global { String::new() } else { text(&metadata["namespace"]) };
        (kind, namespace, text(&metadata["name"]))
    });
    let csv = bundle.csv().context("a bundle has a ClusterServiceVersion")?;
    Ok(ExpectedOperator {
        csv: bundle.bundle.name.to_string(),
        rendered: rendered.collect(),
        has_webhooks: !csv.array(&["spec", "webhookdefinitions"]).is_empty(),
        has_other_annotations: has_other_annotations(csv, &objects),
    })
}

/// Whether OLM v1 writes an annotation to pods that OLM classic does not write, or writes with another value.
fn has_other_annotations(csv: &Object, rendered: &[Value]) -> bool {
    let annotations = |deployment: &Value| -> BTreeMap<String, Value> {
        let all = deployment["spec"]["template"]["metadata"]["annotations"].as_object();
        all.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    csv.array(&["spec", "install", "spec", "deployments"]).iter().any(|deployment| {
        let mut classic = annotations(deployment);
        let own = csv.annotations();
        classic.extend(own.map(|(name, value)| (name.to_owned(), Value::from(value))));
        let is_it = |found: &&Value| {
            found["kind"] == "Deployment" && found["metadata"]["name"] == deployment["name"]
        };
        let v1 = rendered.iter().find(is_it).map(annotations).unwrap_or_default();
        v1.iter().any(|(name, value)| {
            // Both systems write them.
            let is_of_both = [TARGET_NAMESPACES, OPERATOR_NAMESPACE].contains(&&**name);
            !is_of_both && classic.get(name) != Some(value)
        })
    })
}
