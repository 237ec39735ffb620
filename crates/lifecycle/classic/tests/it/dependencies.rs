//! Dependencies and conflicts between operators of one namespace.

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, csv, true_condition};
use base64::Engine as _;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

/// A version of a package in a channel, with the kinds that it owns and requires.
pub(crate) struct Release<'a> {
    pub(crate) package: &'a str,
    pub(crate) channel: &'a str,
    pub(crate) version: &'a str,
    pub(crate) replaces: Option<&'a str>,
    /// The owned kind.
    pub(crate) owns: &'a str,
    /// The required kind.
    pub(crate) needs: Option<&'a str>,
}

pub(crate) const ANVIL: Release<'_> = Release {
    package: "anvil",
    channel: "stable",
    version: "1.0.0",
    replaces: None,
    owns: "Anvil",
    needs: None,
};
pub(crate) const CHISEL: Release<'_> = Release { package: "chisel", owns: "Chisel", ..ANVIL };
pub(crate) const NEEDY: Release<'_> = Release { needs: Some("Chisel"), ..ANVIL };

impl Release<'_> {
    fn name(&self) -> String {
        format!("{}.v{}", self.package, self.version)
    }

    fn reference(kind: &str) -> Value {
        let plural = format!("{}s", kind.to_lowercase());
        json!({"name": format!("{plural}.forge.example.com"), "kind": kind, "version": "v1"})
    }

    pub(crate) fn csv(&self) -> Value {
        let mut csv = csv(self.version, None);
        csv["metadata"]["name"] = self.name().into();
        let replaces = self.replaces.map(|version| format!("{}.v{version}", self.package));
        csv["spec"]["replaces"] = replaces.into();
        csv["spec"]["customresourcedefinitions"] = json!({
            "owned": [Self::reference(self.owns)],
            "required": self.needs.iter().map(|api| Self::reference(api)).collect::<Vec<_>>(),
        });
        let deployment = &mut csv["spec"]["install"]["spec"]["deployments"][0];
        deployment["name"] = self.package.into();
        csv
    }

    pub(crate) fn crd(&self) -> Value {
        let (kind, small) = (self.owns, self.owns.to_lowercase());
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{small}s.forge.example.com")},
            "spec": {
                "group": "forge.example.com", "scope": "Namespaced",
                "names": {
                    "kind": kind, "listKind": format!("{kind}List"),
                    "plural": format!("{small}s"), "singular": small,
                },
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}],
            },
        })
    }

    fn bundle(&self, edit: &dyn Fn(&str, &mut Value)) -> Value {
        let mut csv = self.csv();
        edit(&self.name(), &mut csv);
        let object = |object: Value| {
            let data = base64::engine::general_purpose::STANDARD.encode(object.to_string());
            json!({"type": "olm.bundle.object", "value": {"data": data}})
        };
        let api = |kind: &str| json!({"group": "forge.example.com", "kind": kind, "version": "v1"});
        let mut properties = vec![
            json!({"type": "olm.package", "value": {"packageName": self.package, "version": self.version}}),
            json!({"type": "olm.gvk", "value": api(self.owns)}),
            object(csv),
            object(self.crd()),
        ];
        properties
            .extend(self.needs.map(|kind| json!({"type": "olm.gvk.required", "value": api(kind)})));
        json!({
            "schema": "olm.bundle", "name": self.name(), "package": self.package,
            "properties": properties,
        })
    }
}

/// A catalog of these releases and further documents; the channel of the first release of a package
/// is the default.
pub(crate) fn catalog(
    versions: &[Release<'_>],
    edit: &dyn Fn(&str, &mut Value),
    more: &[Value],
) -> String {
    let mut documents: Vec<Value> = Vec::new();
    let mut channels: Vec<(&str, &str)> = Vec::new();
    for release in versions {
        if !channels.iter().any(|(package, _)| *package == release.package) {
            documents.push(json!({
                "schema": "olm.package", "name": release.package, "defaultChannel": release.channel,
            }));
        }
        if !channels.contains(&(release.package, release.channel)) {
            channels.push((release.package, release.channel));
        }
        if !documents.iter().any(|other| other["name"] == release.name()) {
            documents.push(release.bundle(edit));
        }
    }
    for (package, channel) in channels {
        let entries = versions
            .iter()
            .filter(|release| (release.package, release.channel) == (package, channel));
        let entry = |release: &Release<'_>| {
            let replaces = release.replaces.map(|before| format!("{package}.v{before}"));
            json!({"name": release.name(), "replaces": replaces})
        };
        documents.push(json!({
            "schema": "olm.channel", "package": package, "name": channel,
            "entries": entries.map(entry).collect::<Vec<_>>(),
        }));
    }
    documents.extend_from_slice(more);
    documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

pub(crate) async fn olm_with_releases(versions: &[Release<'_>]) -> OlmCluster {
    let olm = OlmCluster::start(&[]).await;
    olm.publish_text(&catalog(versions, &|_, _| (), &[]));
    olm.apply_group("og").await;
    olm
}

/// Adds a catalog with this text and priority in the namespace of the catalogs.
pub(crate) async fn add_catalog(
    olm: &mut OlmCluster,
    name: &'static str,
    priority: i64,
    text: &str,
) {
    olm.stop_controllers().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("catalog.json"), text).unwrap();
    olm.others.push((name, folder));
    olm.start_controllers().await;
    olm.create_catalog_source(name, priority).await;
    let ready = |source: &Object| {
        source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
    };
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), name, ready).await;
}

pub(crate) async fn subscribe(olm: &OlmCluster, name: &str, spec: Value) {
    let mut all = json!({"source": "cat", "sourceNamespace": CATALOG_NAMESPACE});
    all.as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
    let object = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": name, "namespace": "team"}, "spec": all,
    });
    olm.cluster.apply(Object::from_value(object).unwrap()).await;
}

pub(crate) async fn wait_until_latest(
    olm: &OlmCluster,
    name: &str,
    version: &'static str,
) -> Object {
    let latest = move |subscription: &Object| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
            && subscription.str(&["status", "installedCSV"]) == Some(version)
            && true_condition(subscription, "InstallPlanPending").is_none()
    };
    olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), name, latest).await
}

pub(crate) async fn wait_until_unsatisfiable(olm: &OlmCluster, name: &str) -> String {
    let is_unsatisfiable = |subscription: &Object| {
        true_condition(subscription, "ResolutionFailed")
            .is_some_and(|condition| condition.0 == "ConstraintsNotSatisfiable")
    };
    let subscription =
        olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), name, is_unsatisfiable).await;
    true_condition(&subscription, "ResolutionFailed").unwrap().1
}

pub(crate) async fn delete_object(
    olm: &OlmCluster,
    resource: &mainstay_object::Resource,
    name: &str,
) {
    let params = DeleteOptions::default();
    olm.cluster.cluster().delete(resource, Some("team"), name, &params).await.unwrap();
}

pub(crate) async fn wait_until_plans_complete(olm: &OlmCluster) -> Vec<Object> {
    let over = |all: &[&Object]| {
        !all.is_empty() && all.iter().all(|plan| plan.str(&["status", "phase"]) == Some("Complete"))
    };
    olm.wait_for_plans(over).await
}

#[tokio::test]
async fn dependency_is_installed_by_the_same_plan_with_a_generated_subscription() {
    let mut olm = olm_with_releases(&[NEEDY, Release { channel: "beta", ..CHISEL }]).await;
    // Another catalog has the dependency, too.
    add_catalog(&mut olm, "aaa", 0, &catalog(&[CHISEL], &|_, _| (), &[])).await;
    subscribe(&olm, "anvil", json!({"name": "anvil", "channel": "stable"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.wait_until_succeeded("chisel.v1.0.0").await;
    let dependency_subscription =
        wait_until_latest(&olm, "chisel-beta-cat-olm", "chisel.v1.0.0").await;
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let plans = wait_until_plans_complete(&olm).await;
    assert_eq!(plans.len(), 1);
    // shows E014 E017
    assert_eq!(plans[0].array(&["status", "catalogSources"]), ["cat"]);
    // shows E014
    assert_eq!(
        plans[0].array(&["spec", "clusterServiceVersionNames"]),
        ["anvil.v1.0.0", "chisel.v1.0.0"]
    );
    assert_eq!(plans[0].owner_references().len(), 1, "the dependency was not there yet");
    assert_eq!(dependency_subscription.label("olm.managed"), Some("true"));
    assert_eq!(dependency_subscription.annotation("olm.generated-by"), Some(plans[0].name()));
    assert_eq!(
        dependency_subscription.get(&["spec"]),
        Some(&json!({
            "name": "chisel", "channel": "beta", "source": "cat", "sourceNamespace": "olm",
            "startingCSV": "chisel.v1.0.0", "installPlanApproval": "Automatic",
        }))
    );
    for path in [&["status", "installPlanRef"], &["status", "installplan"]] {
        assert_eq!(dependency_subscription.get(path), anvil.get(path));
    }
    assert_eq!(dependency_subscription.i64(&["status", "installPlanGeneration"]), None);
    olm.wait_until_idle().await;
}

#[tokio::test]
async fn deleted_dependency_is_reinstalled_while_a_csv_requires_it() {
    let olm = olm_with_releases(&[NEEDY, CHISEL]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    let old = olm.wait_until_succeeded("chisel.v1.0.0").await;
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    wait_until_plans_complete(&olm).await;
    delete_object(&olm, &SUBSCRIPTION, "chisel-stable-cat-olm").await;
    delete_object(&olm, &CLUSTER_SERVICE_VERSION, "chisel.v1.0.0").await;
    let uid = old.uid().to_owned();
    let back =
        move |csv: &Object| csv.uid() != uid && csv.str(&["status", "phase"]) == Some("Succeeded");
    olm.cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some("team"), "chisel.v1.0.0", back).await;
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    assert_eq!(wait_until_plans_complete(&olm).await.len(), 2, "one plan brought it back");
}

#[tokio::test]
async fn package_with_an_unavailable_dependency_waits_without_blocking_others() {
    let olm = olm_with_releases(&[NEEDY, Release { package: "saw", owns: "Saw", ..ANVIL }]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    let message = wait_until_unsatisfiable(&olm, "anvil").await;
    let start = "constraints not satisfiable: bundle anvil.v1.0.0 requires an operator providing an API with group: forge.example.com, version: v1, kind: Chisel, ";
    // shows E021 K07
    assert!(message.starts_with(start), "{message}");
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    olm.publish_text(&catalog(&[NEEDY, CHISEL], &|_, _| (), &[]));
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    // shows E021 K07
    assert_eq!(true_condition(&anvil, "ResolutionFailed"), None);
    olm.wait_until_succeeded("chisel.v1.0.0").await;
}

#[tokio::test]
async fn subscription_is_resolved_when_the_conflicting_subscription_is_deleted() {
    let newer = Release { channel: "beta", version: "2.0.0", ..ANVIL };
    let mut olm = olm_with_releases(&[ANVIL, newer]).await;
    // A Subscription that is resolved alone would be installed.
    olm.stop_controllers().await;
    for (name, channel) in [("first", "stable"), ("second", "beta")] {
        subscribe(&olm, name, json!({"name": "anvil", "channel": channel})).await;
    }
    olm.start_controllers().await;
    for name in ["first", "second"] {
        let message = wait_until_unsatisfiable(&olm, name).await;
        assert!(message.contains(" originate from package anvil, "), "{message}");
    }
    delete_object(&olm, &SUBSCRIPTION, "second").await;
    let first = wait_until_latest(&olm, "first", "anvil.v1.0.0").await;
    assert_eq!(true_condition(&first, "ResolutionFailed"), None);
}

#[tokio::test]
async fn pending_upgrade_is_no_resolution_failure_and_blocks_no_other_subscription() {
    let saw = || Release { package: "saw", owns: "Saw", ..ANVIL };
    let olm = olm_with_releases(&[ANVIL, saw()]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    // It requires a CRD that no catalog provides, and lacks the property for that.
    let lacks = |name: &str, csv: &mut Value| {
        if name == "anvil.v2.0.0" {
            csv["spec"]["customresourcedefinitions"]["required"] =
                json!([Release::reference("Gone")]);
        }
    };
    let second = || Release { version: "2.0.0", replaces: Some("1.0.0"), ..ANVIL };
    let third = Release { version: "3.0.0", replaces: Some("2.0.0"), ..ANVIL };
    olm.publish_text(&catalog(&[ANVIL, second(), saw()], &lacks, &[]));
    olm.wait_for_csv("anvil.v1.0.0", "Replacing", "BeingReplaced").await;
    olm.wait_for_csv("anvil.v2.0.0", "Pending", "RequirementsNotMet").await;
    olm.publish_text(&catalog(&[ANVIL, second(), third, saw()], &lacks, &[]));
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    let saw = wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v2.0.0").await;
    for subscription in [&saw, &anvil] {
        assert_eq!(true_condition(subscription, "ResolutionFailed"), None);
    }
    let plans = wait_until_plans_complete(&olm).await;
    let has_third = |plan: &Object| {
        plan.array(&["spec", "clusterServiceVersionNames"]).contains(&"anvil.v3.0.0".into())
    };
    assert!(!plans.iter().any(has_third), "one upgrade after the other");
}

#[tokio::test]
async fn failed_upgrade_is_replaced_by_a_good_version_with_fail_forward() {
    let olm = OlmCluster::start(&[]).await;
    olm.publish_text(&catalog(&[ANVIL], &|_, _| (), &[]));
    olm.cluster
        .apply_yaml(
            "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: team}
spec: {targetNamespaces: [team], upgradeStrategy: TechPreviewUnsafeFailForward}
",
        )
        .await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let broken = |name: &str, csv: &mut Value| {
        if name == "anvil.v2.0.0" {
            csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["selector"] =
                json!({"matchLabels": {"app": "other"}});
        }
    };
    let second = || Release { version: "2.0.0", replaces: Some("1.0.0"), ..ANVIL };
    olm.publish_text(&catalog(&[ANVIL, second()], &broken, &[]));
    olm.wait_for_csv("anvil.v2.0.0", "Failed", "InstallComponentFailed").await;
    // The running operator stays: its Deployment is replaced only by one that the API accepts.
    let cluster = olm.cluster.cluster();
    let deployment = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    assert_eq!(deployment.label("olm.owner"), Some("anvil.v1.0.0"));
    let third = Release { version: "3.0.0", replaces: Some("2.0.0"), ..ANVIL };
    olm.publish_text(&catalog(&[ANVIL, second(), third], &broken, &[]));
    olm.wait_until_succeeded("anvil.v3.0.0").await;
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v3.0.0").await;
    assert_eq!(true_condition(&anvil, "ResolutionFailed"), None);
    for gone in ["anvil.v1.0.0", "anvil.v2.0.0"] {
        olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), gone).await;
    }
}

#[tokio::test]
async fn subscription_reports_a_version_blocked_by_a_failed_upgrade() {
    let olm = olm_with_releases(&[ANVIL]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let broken = |name: &str, csv: &mut Value| {
        if name == "anvil.v2.0.0" {
            csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["selector"] =
                json!({"matchLabels": {"app": "other"}});
        }
    };
    let second = || Release { version: "2.0.0", replaces: Some("1.0.0"), ..ANVIL };
    olm.publish_text(&catalog(&[ANVIL, second()], &broken, &[]));
    olm.wait_for_csv("anvil.v2.0.0", "Failed", "InstallComponentFailed").await;
    wait_until_latest(&olm, "anvil", "anvil.v2.0.0").await;
    let third = || Release { version: "3.0.0", replaces: Some("2.0.0"), ..ANVIL };
    olm.publish_text(&catalog(&[ANVIL, second(), third()], &broken, &[]));
    let state = |state: &'static str| {
        olm.wait_for_subscription(move |subscription| {
            subscription.str(&["status", "state"]) == Some(state)
        })
    };
    let waiting = state("UpgradeAvailable").await;
    assert_eq!(waiting.str(&["status", "installedCSV"]), Some("anvil.v2.0.0"));
    // The catalog withdraws the new version.
    olm.publish_text(&catalog(&[ANVIL, second()], &broken, &[]));
    state("AtLatestKnown").await;
    // The version returns, and fail-forward lets it replace the failed one.
    olm.publish_text(&catalog(&[ANVIL, second(), third()], &broken, &[]));
    state("UpgradeAvailable").await;
    let forward = json!({"spec": {"upgradeStrategy": "TechPreviewUnsafeFailForward"}});
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &Patch::Merge(forward)).await.unwrap();
    wait_until_latest(&olm, "anvil", "anvil.v3.0.0").await;
    olm.wait_until_succeeded("anvil.v3.0.0").await;
}

#[tokio::test]
async fn csv_without_install_plan_and_dependency_gets_a_new_plan() {
    let olm = olm_with_releases(&[ANVIL]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let plan = wait_until_plans_complete(&olm).await.remove(0);
    let params = DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    let definition = &builtin::CUSTOM_RESOURCE_DEFINITION;
    cluster.delete(definition, None, "anvils.forge.example.com", &params).await.unwrap();
    let lacks = |csv: &Object| csv.str(&["status", "reason"]) == Some("RequirementsNotMet");
    let version = &CLUSTER_SERVICE_VERSION;
    olm.cluster.wait_for(version, Some("team"), "anvil.v1.0.0", lacks).await;
    delete_object(&olm, &INSTALL_PLAN, plan.name()).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    assert_eq!(anvil.i64(&["status", "installPlanGeneration"]), Some(2));
    assert_eq!(true_condition(&anvil, "InstallPlanMissing"), None);
}

#[tokio::test]
async fn second_subscription_to_a_package_shares_the_plan_that_waits_for_approval() {
    let olm =
        olm_with_releases(&[NEEDY, CHISEL, Release { package: "saw", owns: "Saw", ..ANVIL }]).await;
    let manual = json!({"name": "anvil", "installPlanApproval": "Manual"});
    subscribe(&olm, "anvil", manual).await;
    let pending = |subscription: &Object| {
        true_condition(subscription, "InstallPlanPending")
            .is_some_and(|condition| condition.0 == "RequiresApproval")
    };
    let wait =
        |name: &'static str| olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), name, pending);
    let first = wait("anvil").await;
    subscribe(&olm, "again", json!({"name": "anvil"})).await;
    let second = wait("again").await;
    let plan = |subscription: &Object| {
        subscription.str(&["status", "installPlanRef", "name"]).unwrap().to_owned()
    };
    assert_eq!(plan(&second), plan(&first));
    // An unrelated package gets its own InstallPlan, and the dependency stays in the first one.
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    let saw = wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    assert_ne!(plan(&saw), plan(&first));
    let plans = olm.wait_for_plans(|all| all.len() == 2).await;
    for install_plan in &plans {
        let names = install_plan.array(&["spec", "clusterServiceVersionNames"]);
        let (wanted, approval) =
            if install_plan.name() == plan(&saw) { (1, "Automatic") } else { (2, "Manual") };
        assert_eq!(names.len(), wanted, "{names:?}");
        assert_eq!(install_plan.str(&["spec", "approval"]), Some(approval));
    }
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    for install_plan in &plans {
        let cluster = olm.cluster.cluster();
        cluster.patch(&INSTALL_PLAN, Some("team"), install_plan.name(), &approve).await.unwrap();
    }
    wait_until_latest(&olm, "again", "anvil.v1.0.0").await;
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    assert_eq!(wait_until_plans_complete(&olm).await.len(), 2);
    // The generated Subscription is Automatic, but its operator is not upgraded while its dependent
    // waits for approval.
    let chisel = Release { version: "1.1.0", replaces: Some("1.0.0"), ..CHISEL };
    let saw = Release { package: "saw", owns: "Saw", ..ANVIL };
    let newer_saw = Release { version: "1.1.0", replaces: Some("1.0.0"), ..saw };
    olm.publish_text(&catalog(
        &[NEEDY, CHISEL, chisel, Release { package: "saw", owns: "Saw", ..ANVIL }, newer_saw],
        &|_, _| (),
        &[],
    ));
    wait_until_latest(&olm, "saw", "saw.v1.1.0").await;
    let upgrade = wait("chisel-stable-cat-olm").await;
    assert_eq!(upgrade.str(&["status", "currentCSV"]), Some("chisel.v1.1.0"));
    assert_eq!(upgrade.str(&["status", "installedCSV"]), Some("chisel.v1.0.0"));
}

#[tokio::test]
async fn deprecations_are_subscription_conditions_while_the_catalog_has_them() {
    let olm = olm_with_releases(&[ANVIL]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let deprecations = |entries: &[(&str, Option<&str>)]| {
        let entry = |(kind, name): &(&str, Option<&str>)| {
            let mut reference = json!({"schema": format!("olm.{kind}")});
            if let Some(name) = name {
                reference["name"] = (*name).into();
            }
            json!({"reference": reference, "message": format!("the {kind} ends")})
        };
        json!({
            "schema": "olm.deprecations", "package": "anvil",
            "entries": entries.iter().map(entry).collect::<Vec<_>>(),
        })
    };
    let all = [("package", None), ("channel", Some("stable")), ("bundle", Some("anvil.v1.0.0"))];
    olm.publish_text(&catalog(&[ANVIL], &|_, _| (), &[deprecations(&all)]));
    let whole = "olm.package/anvil: the package ends; olm.channel/stable: the channel ends; olm.bundle/anvil.v1.0.0: the bundle ends";
    let is_deprecated = move |subscription: &Object| {
        true_condition(subscription, "Deprecated")
            .is_some_and(|condition| condition == (String::new(), whole.to_owned()))
    };
    // The installed bundle is deprecated later, which is E030.
    // shows E028 E030
    let anvil = olm.wait_for_subscription(is_deprecated).await;
    let mut parts = whole.split("; ");
    for kind in ["PackageDeprecated", "ChannelDeprecated", "BundleDeprecated"] {
        // shows E028
        assert_eq!(
            true_condition(&anvil, kind).map(|condition| condition.1).as_deref(),
            parts.next(),
            "{kind}"
        );
    }
    // Only the package and the channel are deprecated.
    olm.publish_text(&catalog(&[ANVIL], &|_, _| (), &[deprecations(&all[..2])]));
    let part = whole.rsplit_once("; ").unwrap().0;
    let is_deprecated = move |subscription: &Object| {
        true_condition(subscription, "Deprecated").is_some_and(|condition| condition.1 == part)
    };
    let anvil = olm.wait_for_subscription(is_deprecated).await;
    let mut parts = part.split("; ");
    for kind in ["PackageDeprecated", "ChannelDeprecated", "BundleDeprecated"] {
        // shows E029
        assert_eq!(
            true_condition(&anvil, kind).map(|condition| condition.1).as_deref(),
            parts.next(),
            "{kind}"
        );
    }
    let second = Release { version: "2.0.0", replaces: Some("1.0.0"), ..ANVIL };
    olm.publish_text(&catalog(&[ANVIL, second], &|_, _| (), &[deprecations(&all[2..])]));
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v2.0.0").await;
    for kind in ["PackageDeprecated", "ChannelDeprecated", "BundleDeprecated", "Deprecated"] {
        // shows E028
        assert_eq!(true_condition(&anvil, kind), None, "{kind}");
    }
}

#[tokio::test]
async fn operator_group_can_exclude_global_catalogs() {
    let olm = OlmCluster::start(&[]).await;
    olm.publish_text(&catalog(&[ANVIL], &|_, _| (), &[]));
    olm.cluster
        .apply_yaml(
            "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: og
  namespace: team
  annotations: {olm.operatorframework.io/exclude-global-namespace-resolution: 'true'}
spec: {targetNamespaces: [team]}
",
        )
        .await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    let message = wait_until_unsatisfiable(&olm, "anvil").await;
    assert!(message.contains("no operators found from catalog cat in namespace olm"), "{message}");
    let cluster = olm.cluster.cluster();
    let annotation = "olm.operatorframework.io/exclude-global-namespace-resolution";
    let allow = Patch::Merge(json!({"metadata": {"annotations": {annotation: null}}}));
    let group = &OPERATOR_GROUP;
    cluster.patch(group, Some("team"), "og", &allow).await.unwrap();
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
}
