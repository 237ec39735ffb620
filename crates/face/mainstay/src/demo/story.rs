//! Story of the demo, chapter by chapter. Each step waits for a state in the API and prints that state.

use super::SOURCE;
use super::scenario::{InstallMode, Scenario};
use crate::embedded::Embedded;
use crate::wait::{wait_until, wait_until_deleted};
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_client::{Cluster, ObjectList, Patch};
use mainstay_command::report::{ProgressReport, shell_word};
use mainstay_command::text::columns;
use mainstay_object::builtin::{DEPLOYMENT, NAMESPACE};
use mainstay_object::{Object, Resource, value_at};
use serde_json::{Value, json};
use std::time::Duration;

/// Namespace of an operator that cannot watch all namespaces.
const OWN_NAMESPACE: &str = "demo";
/// Namespace of the Subscription that is refused.
const REFUSED_NAMESPACE: &str = "demo-refused";

/// Runs all chapters.
///
/// `keeps_running` says whether the cluster runs on after the story.
pub(super) async fn run(
    embedded: &Embedded,
    scenario: &Scenario,
    report: &ProgressReport,
    keeps_running: bool,
) -> Result<(), Cause> {
    let story = Story { embedded, cluster: embedded.cluster(), scenario, report };
    let result = async {
        story.cluster_and_catalog().await?;
        let namespace = story.namespace_for_operator().await?;
        story.install(&namespace).await?;
        story.upgrade(&namespace).await?;
        story.refusal().await?;
        story.look_around(keeps_running).await
    }
    .await;
    if result.is_err() {
        report.failed("the demo ends here");
    }
    result
}

struct Story<'a> {
    embedded: &'a Embedded,
    cluster: &'a Cluster,
    scenario: &'a Scenario,
    report: &'a ProgressReport,
}

impl Story<'_> {
    async fn cluster_and_catalog(&self) -> Result<(), Cause> {
        let report = self.report;
        report.heading("A cluster in this process");
        let version = self
            .cluster
            .get_raw("/version")
            .await
            .map_err(|error| failed("ask for the version", &error))?;
        let version =
            value_at(&version, &["gitVersion"]).and_then(Value::as_str).unwrap_or_default();
        let startup_time = self.embedded.startup_time();
        report.done(format!("Kubernetes API {version} at {}", self.embedded.url()), startup_time);

        report.heading("A catalog");
        let started = self.embedded.clock().elapsed();
        let goal = format!("CatalogSource `{SOURCE}` becomes READY");
        let state = ["status", "connectionState", "lastObservedState"];
        let source = wait_until(
            self.cluster,
            &CATALOG_SOURCE,
            self.embedded.catalog_namespace(),
            &goal,
            |object| {
                (object.name() == SOURCE && object.str(&state) == Some("READY"))
                    .then(|| object.clone())
            },
        )
        .await?;
        report.done(
            format!("CatalogSource {} is {}", source.key(), source.str(&state).unwrap_or_default()),
            self.elapsed_since(started),
        );
        let counts = &self.scenario.counts;
        report.detail(format!(
            "{} packages, {} channels, {} bundles",
            counts.packages, counts.channels, counts.bundles
        ));
        Ok(())
    }

    /// Creates the namespace that fits the operator's install mode.
    async fn namespace_for_operator(&self) -> Result<String, Cause> {
        match self.scenario.install_mode {
            InstallMode::AllNamespaces => Ok(self.embedded.operator_namespace().to_owned()),
            InstallMode::OwnNamespace => {
                self.namespace_with_group(OWN_NAMESPACE).await?;
                Ok(OWN_NAMESPACE.to_owned())
            }
        }
    }

    async fn namespace_with_group(&self, name: &str) -> Result<(), Cause> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let group = json!({
            "apiVersion": "operators.coreos.com/v1",
            "kind": "OperatorGroup",
            "metadata": {"name": name, "namespace": name},
            "spec": {"targetNamespaces": [name]},
        });
        self.create(&NAMESPACE, namespace).await?;
        self.create(&OPERATOR_GROUP, group).await?;
        Ok(())
    }

    fn subscription(&self, name: &str, namespace: &str, package: &str, channel: &str) -> Value {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "Subscription",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "name": package,
                "channel": channel,
                "source": SOURCE,
                "sourceNamespace": self.embedded.catalog_namespace(),
                "installPlanApproval": "Manual",
            },
        })
    }

    async fn install(&self, namespace: &str) -> Result<(), Cause> {
        let (scenario, report) = (self.scenario, self.report);
        let first = &scenario.path[0];
        report.heading(format!("An operator: {}", scenario.package));
        let mut subscription =
            self.subscription(&scenario.package, namespace, &scenario.package, &scenario.channel);
        subscription["spec"]["startingCSV"] = first.as_str().into();
        report.detail(format!(
            "kubectl apply -f - <<E\n{}E",
            mainstay_yaml::to_string(&subscription)
        ));
        let started = self.embedded.clock().elapsed();
        self.create(&SUBSCRIPTION, subscription).await?;
        self.install_csv(namespace, first, started).await
    }

    async fn upgrade(&self, namespace: &str) -> Result<(), Cause> {
        let upgrades = self.scenario.path.windows(2);
        let count = upgrades.len();
        if count == 0 {
            self.report
                .heading("No upgrade: the channel has no older version with an update to its head");
            return Ok(());
        }
        self.report.heading(format!("{count} upgrade{}", if count == 1 { "" } else { "s" }));
        for upgrade in upgrades {
            let [before, after] = upgrade else { continue };
            let started = self.embedded.clock().elapsed();
            self.install_csv(namespace, after, started).await?;
            let goal = format!("the Subscription reports `{after}` as installed");
            let package = &self.scenario.package;
            wait_until(self.cluster, &SUBSCRIPTION, namespace, &goal, |object| {
                (object.name() == package && object.str(&["status", "installedCSV"]) == Some(after))
                    .then_some(())
            })
            .await?;
            // The controllers delete the replaced CSV after the new one has succeeded.
            wait_until_deleted(self.cluster, &CLUSTER_SERVICE_VERSION, namespace, before).await?;
            self.report.done(
                format!("ClusterServiceVersion {before} is deleted"),
                self.elapsed_since(started),
            );
        }
        Ok(())
    }

    /// Approves one InstallPlan, and waits until its CSV has succeeded.
    async fn install_csv(
        &self,
        namespace: &str,
        csv: &str,
        started: Duration,
    ) -> Result<(), Cause> {
        let report = self.report;
        let goal = format!("an InstallPlan for `{csv}` waits for approval");
        let plan = wait_until(self.cluster, &INSTALL_PLAN, namespace, &goal, |object| {
            let names = object.array(&["spec", "clusterServiceVersionNames"]);
            let waits = object.str(&["status", "phase"]) == Some("RequiresApproval");
            (waits && names.iter().any(|name| name == csv)).then(|| object.clone())
        })
        .await?;
        report.done(
            format!("InstallPlan {} waits for approval", plan.name()),
            self.elapsed_since(started),
        );
        report.detail(steps(&plan));

        let started = self.embedded.clock().elapsed();
        report.command(format!(
            "kubectl patch installplan {} -n {namespace} --type=merge -p '{{\"spec\":{{\"approved\":true}}}}'",
            plan.name()
        ));
        let approve = Patch::Merge(json!({"spec": {"approved": true}}));
        self.cluster
            .patch(&INSTALL_PLAN, Some(namespace), plan.name(), &approve)
            .await
            .map_err(|error| failed("approve the InstallPlan", &error))?;
        let mut phases: Vec<String> = Vec::new();
        let goal = format!("ClusterServiceVersion `{csv}` succeeds");
        let done = wait_until(self.cluster, &CLUSTER_SERVICE_VERSION, namespace, &goal, |object| {
            if object.name() != csv {
                return None;
            }
            let phase = object.str(&["status", "phase"]).unwrap_or_default();
            if !phase.is_empty() && phases.last().map(String::as_str) != Some(phase) {
                phases.push(phase.to_owned());
            }
            (phase == "Succeeded").then(|| object.clone())
        })
        .await?;
        report.done(
            format!("ClusterServiceVersion {csv}: {}", phases.join(" → ")),
            self.elapsed_since(started),
        );
        report.detail(done.str(&["status", "message"]).unwrap_or_default());
        self.deployments(namespace, &done).await
    }

    /// Prints the state of a CSV's Deployments.
    async fn deployments(&self, namespace: &str, csv: &Object) -> Result<(), Cause> {
        for deployment in csv.array(&["spec", "install", "spec", "deployments"]) {
            let Some(name) = deployment.get("name").and_then(Value::as_str) else { continue };
            let live = self
                .cluster
                .get(&DEPLOYMENT, Some(namespace), name)
                .await
                .map_err(|error| failed("read the Deployment", &error))?;
            let ready = live.i64(&["status", "readyReplicas"]).unwrap_or_default();
            let goal = live.i64(&["spec", "replicas"]).unwrap_or_default();
            let image = live
                .array(&["spec", "template", "spec", "containers"])
                .first()
                .and_then(|container| container.get("image"))
                .and_then(Value::as_str)
                .unwrap_or_default();
            self.report.detail(format!("Deployment {name}: {ready}/{goal} ready, {image}"));
        }
        Ok(())
    }

    async fn refusal(&self) -> Result<(), Cause> {
        let (refusal, report) = (&self.scenario.refusal, self.report);
        report.heading(format!("A Subscription that cannot be resolved: {}", refusal.about));
        self.namespace_with_group(REFUSED_NAMESPACE).await?;
        let started = self.embedded.clock().elapsed();
        let name = &refusal.package;
        let subscription =
            self.subscription(name, REFUSED_NAMESPACE, &refusal.package, &refusal.channel);
        self.create(&SUBSCRIPTION, subscription).await?;
        let goal = "the Subscription gets the condition ResolutionFailed";
        let message = wait_until(self.cluster, &SUBSCRIPTION, REFUSED_NAMESPACE, goal, |object| {
            let conditions = object.array(&["status", "conditions"]).iter();
            let text = |condition: &Value, key: &str| {
                condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            conditions
                .filter(|condition| text(condition, "type") == "ResolutionFailed")
                .filter(|condition| text(condition, "status") == "True")
                .map(|condition| {
                    format!("{}: {}", text(condition, "reason"), text(condition, "message"))
                })
                .next()
        })
        .await?;
        report.done(
            format!("Subscription {REFUSED_NAMESPACE}/{name}: ResolutionFailed"),
            self.elapsed_since(started),
        );
        report.detail(message);
        Ok(())
    }

    async fn look_around(&self, keeps_running: bool) -> Result<(), Cause> {
        let report = self.report;
        if keeps_running {
            report.heading("Next commands");
            let kubeconfig = shell_word(self.embedded.kubeconfig());
            report.command(format!("export KUBECONFIG={kubeconfig}"));
        } else {
            report.heading("The installed operators");
        }
        report.command("kubectl get csv -A");
        let list = self
            .cluster
            .list(&CLUSTER_SERVICE_VERSION, None, &ObjectList::default())
            .await
            .map_err(|error| failed("list the ClusterServiceVersions", &error))?;
        let rows: Vec<Vec<String>> = list
            .items
            .iter()
            .map(|csv| {
                let text = |path: &[&str]| csv.str(path).unwrap_or_default().to_owned();
                vec![
                    csv.namespace().to_owned(),
                    csv.name().to_owned(),
                    text(&["spec", "displayName"]),
                    text(&["spec", "version"]),
                    text(&["spec", "release"]),
                    text(&["spec", "replaces"]),
                    text(&["status", "phase"]),
                ]
            })
            .collect();
        report.detail(columns(
            &["NAMESPACE", "NAME", "DISPLAY", "VERSION", "RELEASE", "REPLACES", "PHASE"],
            &rows,
        ));
        if keeps_running {
            report.command("kubectl get subscriptions,installplans -A");
            report.command(format!(
                "kubectl describe subscription {} -n {REFUSED_NAMESPACE}",
                self.scenario.refusal.package
            ));
        }
        Ok(())
    }

    fn elapsed_since(&self, started: Duration) -> Duration {
        self.embedded.clock().elapsed().saturating_sub(started)
    }

    async fn create(&self, resource: &Resource, value: Value) -> Result<Object, Cause> {
        let object = Object::from_value(value).unwrap_or_default();
        self.cluster.create(resource, &object).await.map_err(|error| {
            Cause::new(format!("{} {} cannot be created", object.kind(), object.key()))
                .because(Cause::new(error.to_string()))
        })
    }
}

/// The steps of an InstallPlan, as `status.plan` lists them.
fn steps(plan: &Object) -> String {
    let rows: Vec<Vec<String>> = plan
        .array(&["status", "plan"])
        .iter()
        .map(|step| {
            let text = |path: &[&str]| {
                value_at(step, path).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            vec![text(&["resource", "kind"]), text(&["resource", "name"]), text(&["status"])]
        })
        .collect();
    columns(&["STEP", "NAME", "STATUS"], &rows)
}

fn failed(what: &str, error: &mainstay_client::Error) -> Cause {
    Cause::new(format!("cannot {what}")).because(Cause::new(error.to_string()))
}
