//! The walk of one package as a ClusterExtension.

use super::content::{BundleContent, ExtensionContent};
use super::installer::Installer;
use super::path::ExtensionUpgradePath;
use super::refusal::{self, Refusal};
use super::{Applier, ExtensionRuns, ExtensionWalk, UnsafeUpdate, cluster};
use crate::catalogs::PackageUnderTest;
use crate::dump::Dump;
use crate::table::truncate;
use crate::walk_cluster::{NAME, NAMESPACE, WalkCluster};
use crate::{UninstallReport, examples, leftovers};
use anyhow::Context;
use mainstay_api::names::olm_v1::{OWNER_NAME_LABEL, REVISION_NAME_LABEL};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_client::{DeleteOptions, ObjectList};
use mainstay_extensions::TrustMode;
use mainstay_object::Object;
use mainstay_permissions::ExtensionApplier;
use mainstay_updates::Graph;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long an expected state may take after another one was reported. Attempts follow each other
/// within a fifth of a second.
const GRACE: Duration = Duration::from_secs(30);

/// The end of a message that is longer than a condition allows.
const CUT: &str = "\n\n... [message truncated]";

/// Walks a package, once for each trust mode.
pub(super) async fn walk(item: PackageUnderTest, runs: ExtensionRuns) -> ExtensionWalk {
    let empty = ExtensionWalk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        ..ExtensionWalk::default()
    };
    if item.loaded_package().is_none() {
        return empty;
    }
    let content = match ExtensionContent::read(&item) {
        Ok(content) => content,
        Err(error) => return ExtensionWalk { findings: vec![format!("{error:#}")], ..empty },
    };
    let mut first: Option<ExtensionWalk> = None;
    let mut findings = Vec::new();
    for trust in runs.trust {
        let mut walk = empty.clone();
        let mode = match trust {
            TrustMode::ClusterAdmin => "cluster-admin",
            TrustMode::ServiceAccount => "service-account",
            TrustMode::Approved => "approved",
        };
        if let Err(error) = run(&item, &content, trust, runs.applier, &mut walk).await {
            walk.findings.push(format!("{error:#}"));
        }
        findings.extend(walk.findings.drain(..).map(|finding| format!("{mode}: {finding}")));
        match &first {
            Some(first) if *first != walk => {
                findings.push(format!("{mode}: another result: {:?}", walk.installed));
            }
            Some(_) => {}
            None => first = Some(walk),
        }
    }
    ExtensionWalk { findings, ..first.unwrap_or(empty) }
}

async fn run(
    item: &PackageUnderTest,
    content: &ExtensionContent,
    trust: TrustMode,
    applier: Applier,
    walk: &mut ExtensionWalk,
) -> anyhow::Result<()> {
    let cluster = cluster::start(item, content, cluster::features(trust, applier)).await?;
    let mut steps = Steps {
        cluster: &cluster,
        content,
        applier,
        installer: None,
        before: cluster.dump_when_idle().await?,
        walk,
    };
    let outcome = steps.run(item, trust).await;
    cluster.clean_up().await?;
    outcome
}

/// What an extension says about its current spec.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// The spec is fulfilled, by this bundle.
    Installed(String),
    /// It is not fulfilled.
    Refused(String),
}

impl Progress {
    /// The progress; none before the controller has seen the current spec.
    fn of(extension: &Object) -> Option<Self> {
        let mut conditions = extension.array(&["status", "conditions"]).iter();
        let condition = conditions.find(|condition| {
            condition["type"] == "Progressing"
                && condition["observedGeneration"].as_i64() == Some(extension.generation())
        })?;
        let installed = extension.str(&["status", "install", "bundle", "name"]);
        Some(match condition["reason"].as_str() {
            Some("Succeeded") => Self::Installed(installed.unwrap_or_default().to_owned()),
            Some("RollingOut") => return None,
            _ => Self::Refused(condition["message"].as_str().unwrap_or_default().to_owned()),
        })
    }
}

impl Progress {
    /// Whether the spec is not fulfilled because of this.
    fn states(&self, why: &str) -> bool {
        let Self::Refused(message) = self else { return false };
        let Some(cut) = message.strip_suffix(CUT) else { return message.contains(why) };
        let first = why.lines().next().unwrap_or_default();
        cut.find(first).is_some_and(|at| cut[at..].starts_with(why) || why.starts_with(&cut[at..]))
    }
}

/// The version and the check that an extension requests.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    /// None: the best version.
    version: Option<&'a str>,
    /// Whether updates are refused that may break custom resources.
    is_safe: bool,
}

/// The steps of a walk on one cluster.
struct Steps<'a> {
    cluster: &'a WalkCluster,
    content: &'a ExtensionContent,
    applier: Applier,
    /// In the mode `service-account`.
    installer: Option<Installer>,
    /// All objects before the first step.
    before: Dump,
    walk: &'a mut ExtensionWalk,
}

impl Steps<'_> {
    async fn run(&mut self, item: &PackageUnderTest, trust: TrustMode) -> anyhow::Result<()> {
        let package = item.loaded_package().context("there is no such package")?;
        let graph = Graph::of(package);
        let served = refusal::served_kinds(&self.cluster.api).await?;
        let refused = |bundle: &BundleContent| {
            let is_offered =
                graph.channels().iter().any(|one| one.entry(&bundle.bundle.name).is_some());
            is_offered.then(|| Refusal::of(&bundle.bundle, &bundle.objects, &served)).flatten()
        };
        let refused: BTreeMap<String, Refusal> = self
            .content
            .bundles
            .iter()
            .filter_map(|(name, bundle)| Some((name.clone(), refused(bundle)?)))
            .collect();
        if !refused.is_empty() {
            self.create_installer(trust).await?;
            for (name, refusal) in &refused {
                self.expect_refusal(name, refusal).await?;
            }
            self.delete_extension().await?;
        }
        self.walk.path = ExtensionUpgradePath::of(&graph, |name| !refused.contains_key(name));
        let Some(path) = self.walk.path.clone() else { return Ok(()) };
        self.create_installer(trust).await?;
        if self.follow(&path).await? {
            self.request_best(&path, &refused).await?;
            self.check_objects(path.end()).await?;
            if let Some(csv) = self.content.bundle(path.end())?.csv() {
                self.walk.examples = examples::create(&self.cluster.api, NAMESPACE, csv).await?;
            }
        }
        self.delete_extension().await
    }

    fn find(&mut self, finding: &str) {
        self.walk.findings.push(truncate(finding));
    }

    /// Creates the ServiceAccount, without permissions.
    async fn create_installer(&mut self, trust: TrustMode) -> anyhow::Result<()> {
        if trust == TrustMode::ServiceAccount {
            let applier = match self.applier {
                Applier::HelmReleases => ExtensionApplier::Helm,
                Applier::ObjectSets => {
                    ExtensionApplier::ObjectSets { object_set: format!("{NAME}-1") }
                }
            };
            let mut installer = Installer::new(applier);
            installer.create(self.cluster).await?;
            self.installer = Some(installer);
        }
        Ok(())
    }

    /// Requests a bundle that OLM v1 has to refuse.
    async fn expect_refusal(&mut self, name: &str, refusal: &Refusal) -> anyhow::Result<()> {
        let version = self.content.bundle(name)?.bundle.version.to_string();
        let request = Request { version: Some(&version), is_safe: true };
        let explains = |progress: &Progress| match progress {
            Progress::Refused(message) => message.contains(name) && refusal.explains(message),
            Progress::Installed(_) => false,
        };
        let progress = self.request(request, explains).await?;
        if !explains(&progress) {
            self.find(&format!("{name} has {refusal}, and the extension says {progress:?}"));
        }
        self.walk.refused.insert(name.to_owned(), refusal.clone());
        Ok(())
    }

    /// Installs the bundles of a path one after the other; returns whether the last one is installed.
    async fn follow(&mut self, path: &ExtensionUpgradePath) -> anyhow::Result<bool> {
        let mut installed: Option<&str> = None;
        for name in path.bundles() {
            if !self.install(installed, name).await? {
                return Ok(false);
            }
            installed = Some(name);
        }
        Ok(true)
    }

    /// Installs a bundle; returns whether it is installed.
    async fn install(&mut self, installed: Option<&str>, name: &str) -> anyhow::Result<bool> {
        let bundle = self.content.bundle(name)?;
        let version = bundle.bundle.version.to_string();
        let mut request = Request { version: Some(&version), is_safe: true };
        let objects = bundle.installed_objects(NAMESPACE)?;
        let installed = installed.map(|name| self.content.bundle(name)).transpose()?;
        let old = match installed {
            Some(installed) => installed.installed_objects(NAMESPACE)?,
            None => Vec::new(),
        };
        self.grant(request, &old, &objects).await?;
        if let Some(installed) = installed {
            let crds = refusal::unsafe_crds(&installed.objects, &bundle.objects);
            if !crds.is_empty() {
                let states = |progress: &Progress| {
                    let is_cut = matches!(progress, Progress::Refused(text) if text.ends_with(CUT));
                    let mut stated = crds.iter().map(|(_, why)| progress.states(why));
                    if is_cut { stated.any(|stated| stated) } else { stated.all(|stated| stated) }
                };
                let progress = self.request(request, states).await?;
                if !states(&progress) {
                    self.find(&format!("{name} should be refused, {crds:?}: {progress:?}"));
                }
                self.walk.unsafe_updates.push(UnsafeUpdate {
                    from: installed.bundle.name.to_string(),
                    to: name.to_owned(),
                    crds: crds.into_iter().map(|(crd, _)| crd).collect(),
                });
                request.is_safe = false;
            }
        }
        let wanted = Progress::Installed(name.to_owned());
        let progress = self.request(request, |progress| *progress == wanted).await?;
        if progress != wanted {
            self.find(&format!("{name} is not installed: {progress:?}"));
            return Ok(false);
        }
        self.walk.installed.push(name.to_owned());
        if matches!(self.applier, Applier::ObjectSets) {
            self.wait_until_archived().await?;
        }
        if let Some(installer) = &mut self.installer {
            installer.grant(self.cluster, &objects).await?;
        }
        Ok(true)
    }

    /// Waits until the objects that only earlier revisions have are gone. The account needs the permissions for
    /// them until then.
    async fn wait_until_archived(&mut self) -> anyhow::Result<()> {
        let sets = self.cluster.api.list(&CLUSTER_OBJECT_SET, None, &ObjectList::default()).await?;
        let mut sets: Vec<(Option<i64>, &str)> =
            sets.items.iter().map(|set| (set.i64(&["spec", "revision"]), set.name())).collect();
        sets.sort_unstable();
        // Those before it were waited for after earlier updates.
        let Some((_, previous)) = sets.iter().rev().nth(1) else { return Ok(()) };
        let is_archived = |set: &Object| {
            let mut conditions = set.array(&["status", "conditions"]).iter();
            conditions.any(|condition| condition["reason"] == "Archived")
        };
        let test = self.cluster.test()?;
        let wait = test.wait_for(&CLUSTER_OBJECT_SET, None, previous, is_archived);
        if tokio::time::timeout(GRACE, wait).await.is_err() {
            self.find(&format!("the revision {previous} is not archived"));
        }
        Ok(())
    }

    /// Grants what an update to `new` needs. Without these permissions it has to be refused first.
    async fn grant(
        &mut self,
        request: Request<'_>,
        old: &[Value],
        new: &[Value],
    ) -> anyhow::Result<()> {
        let Some(installer) = &self.installer else { return Ok(()) };
        if let Some(report) = installer.missing(self.cluster, new).await? {
            let states = |progress: &Progress| progress.states(&report);
            let progress = self.request(request, states).await?;
            if !states(&progress) {
                self.find(&format!("it should lack permissions, {report}: {progress:?}"));
            }
        }
        let objects: Vec<Value> = new.iter().chain(old).cloned().collect();
        match &mut self.installer {
            Some(installer) => installer.grant(self.cluster, &objects).await,
            None => Ok(()),
        }
    }

    /// Requests the best version: the installed one stays, unless the catalog has an update, which has
    /// to be refused.
    async fn request_best(
        &mut self,
        path: &ExtensionUpgradePath,
        refused: &BTreeMap<String, Refusal>,
    ) -> anyhow::Result<()> {
        let next = path.next.as_deref();
        let refusal = next.and_then(|next| refused.get(next));
        let wanted = Progress::Installed(next.unwrap_or(path.end()).to_owned());
        let is_right = |progress: &Progress| match (progress, refusal) {
            (Progress::Refused(message), Some(refusal)) => refusal.explains(message),
            (progress, None) => *progress == wanted,
            _ => false,
        };
        let progress = self.request(Request { version: None, is_safe: true }, is_right).await?;
        if !is_right(&progress) {
            self.find(&format!(
                "the best version is {}, refused by {refusal:?}: {progress:?}",
                next.unwrap_or(path.end())
            ));
        }
        Ok(())
    }

    /// Changes the spec; returns what the extension says about it, preferably the expected.
    async fn request(
        &self,
        request: Request<'_>,
        is_expected: impl Fn(&Progress) -> bool + Send + Sync,
    ) -> anyhow::Result<Progress> {
        let mut extension = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": NAME},
            "spec": {
                "namespace": NAMESPACE,
                "source": {"sourceType": "Catalog", "catalog": {"packageName": self.walk.package}},
                "install": {"preflight": {"crdUpgradeSafety": {
                    "enforcement": if request.is_safe { "Strict" } else { "None" },
                }}},
            },
        });
        if let Some(version) = request.version {
            extension["spec"]["source"]["catalog"]["version"] = version.into();
        }
        if let Some(installer) = &self.installer {
            extension["spec"]["serviceAccount"] = json!({"name": installer.account()});
        }
        self.cluster.apply(extension).await?;
        let read = async || self.cluster.api.find(&CLUSTER_EXTENSION, None, NAME).await;
        let generation = read().await?.context("it was applied")?.generation();
        let progress = |extension: &Object| {
            (extension.generation() == generation).then(|| Progress::of(extension)).flatten()
        };
        let test = self.cluster.test()?;
        let first = test
            .wait_for(&CLUSTER_EXTENSION, None, NAME, |extension| progress(extension).is_some());
        let first = Progress::of(&first.await).context("it has a condition")?;
        if is_expected(&first) {
            return Ok(first);
        }
        let wait = test.wait_for(&CLUSTER_EXTENSION, None, NAME, |extension| {
            progress(extension).is_some_and(|progress| is_expected(&progress))
        });
        let found = match tokio::time::timeout(GRACE, wait).await {
            Ok(found) => Some(found),
            Err(_) => read().await?,
        };
        Ok(found.as_ref().and_then(Progress::of).unwrap_or(first))
    }

    /// Checks that the cluster has exactly the objects of a bundle.
    async fn check_objects(&mut self, name: &str) -> anyhow::Result<()> {
        let dump = self.cluster.dump_when_idle().await?;
        let key = |kind: &str, name: &str| format!("{kind} {name}");
        let found: BTreeSet<String> = dump
            .objects
            .iter()
            .map(|(id, (_, object))| (id, object))
            .filter(|(_, object)| object.label(OWNER_NAME_LABEL) == Some(NAME))
            // Kubernetes copies the labels of a Service to its endpoints.
            .filter(|(id, object)| !leftovers::is_derived(id, object))
            .filter(|(id, _)| id.kind != *CLUSTER_OBJECT_SET.kind)
            // Secrets with the content of a ClusterObjectSet.
            .filter(|(_, object)| object.label(REVISION_NAME_LABEL).is_none())
            .map(|(id, _)| key(&id.kind, &id.name))
            .collect();
        let objects = self.content.bundle(name)?.installed_objects(NAMESPACE)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let wanted: BTreeSet<String> = objects
            .iter()
            .map(|object| key(&text(&object["kind"]), &text(&object["metadata"]["name"])))
            .collect();
        for missing in wanted.difference(&found) {
            self.find(&format!("{name} is installed without {missing}"));
        }
        for extra in found.difference(&wanted) {
            self.find(&format!("{extra} of an earlier version remains"));
        }
        Ok(())
    }

    /// Deletes the extension, and checks that nothing remains.
    async fn delete_extension(&mut self) -> anyhow::Result<()> {
        let options = DeleteOptions::default();
        self.cluster.api.ensure_deleted(&CLUSTER_EXTENSION, None, NAME, &options).await?;
        self.cluster.test()?.wait_gone(&CLUSTER_EXTENSION, None, NAME).await;
        if let Some(mut installer) = self.installer.take() {
            installer.delete(self.cluster).await?;
        }
        let mut report = UninstallReport::default();
        self.cluster.check_nothing_left(&self.before, &mut report).await?;
        self.walk.findings.extend(report.findings);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_that_was_cut_states_what_it_begins_with() {
        let refused = |text: &str| Progress::Refused(format!("error for a.v1: {text}"));
        let why = "crd a\nfirst\nsecond";
        assert!(refused(why).states(why));
        assert!(refused(&format!("crd a\nfirst\nsec{CUT}")).states(why));
        assert!(!refused(&format!("crd a\nfirst\nother{CUT}")).states(why));
        assert!(!refused("crd a\nfirst\nsec").states(why));
        assert!(!Progress::Installed("crd a".to_owned()).states("crd a"));
    }
}
