//! `mainstay extension migrate` on a cluster with both systems.

mod anvil;
mod left_alone;
mod uninstalled;
mod webhooks;

use super::live_cluster::LiveCluster;
use anvil::{CSV, IMAGE, csv, documents, manifests, subscription};
use clap::Parser;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_CATALOG, CLUSTER_EXTENSION, CLUSTER_OBJECT_SET,
    CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_cli::args::{Arguments, Command};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_clitest::{CommandOutput, DirectCluster};
use mainstay_command::io::CommandIo;
use mainstay_extensions::{Features, TrustMode};
use mainstay_object::{Object, Resource, builtin};
use mainstay_operators::extension;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A cluster on which OLM classic has installed the operator for all namespaces.
async fn installed(features: Features) -> LiveCluster {
    let live = subscribed(features, json!({})).await;
    wait_for_classic(&live).await;
    live
}

/// A cluster with a Subscription with more fields.
async fn subscribed(features: Features, more: Value) -> LiveCluster {
    subscribed_to(&manifests(), features, more).await
}

/// The same with a bundle of these manifests.
async fn subscribed_to(
    manifests: &[(&str, Value)],
    features: Features,
    more: Value,
) -> LiveCluster {
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": "anvil",
    }});
    let mut files = vec![("metadata/annotations.yaml", annotations.to_string())];
    files.extend(manifests.iter().map(|(path, manifest)| (*path, manifest.to_string())));
    let live = LiveCluster::start(features, &documents(manifests), &[(IMAGE, &files)]).await;
    let mut subscription = subscription("anvil");
    subscription["spec"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    for manifest in [
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "og", "namespace": "team"}, "spec": {},
        }),
        subscription,
    ] {
        live.cluster.apply(Object::from_value(manifest).unwrap()).await;
    }
    live
}

/// Waits until OLM classic has the operator in a steady state.
async fn wait_for_classic(live: &LiveCluster) {
    let is_latest = |found: &Object| found.str(&["status", "state"]) == Some("AtLatestKnown");
    live.cluster.wait_for(&SUBSCRIPTION, Some("team"), "anvil", is_latest).await;
    let succeeded = |csv: &Object| csv.str(&["status", "phase"]) == Some("Succeeded");
    live.cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some("team"), CSV, succeeded).await;
}

/// Runs `mainstay extension migrate`; blanks separate the arguments.
async fn migrate(live: &LiveCluster, arguments: &str) -> CommandOutput {
    migrate_on(&live.commands, live.folder(), arguments).await
}

/// The same on any cluster, in a folder.
async fn migrate_on(cluster: &DirectCluster, folder: &Path, arguments: &str) -> CommandOutput {
    let words = ["mainstay", "extension", "migrate"].into_iter().chain(arguments.split(' '));
    let parsed = match Arguments::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) => return CommandOutput::refused(&error),
    };
    let Command::Extension(arguments) = parsed.command else { unreachable!("it was typed") };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let stdin = &mut std::io::empty();
    let mut io = CommandIo::unattended(stdin, &mut out, &mut err, folder);
    let status = extension::run(&arguments, &mut io, async |_, _| Ok(cluster.clone())).await;
    let code = match status {
        mainstay_command::exit::ExitStatus::Done => 0,
        mainstay_command::exit::ExitStatus::Failed => 1,
        mainstay_command::exit::ExitStatus::Usage => 2,
        mainstay_command::exit::ExitStatus::Unresolved => 3,
        mainstay_command::exit::ExitStatus::Changes => 4,
    };
    CommandOutput::of(code, out, err)
}

#[track_caller]
fn assert_done(output: &CommandOutput) {
    assert_eq!(output.code, 0, "{}{}", output.out, output.err);
}

/// The uids of the objects that must stay, with the pods.
async fn identities(live: &LiveCluster) -> BTreeMap<String, String> {
    let cluster = live.cluster.cluster();
    let mut all = BTreeMap::new();
    // A rollout would have begun by then.
    let is_observed = |deployment: &Object| {
        deployment.i64(&["status", "observedGeneration"]) == Some(deployment.generation())
    };
    let kind = &builtin::DEPLOYMENT;
    let deployment = live.cluster.wait_for(kind, Some("team"), "anvil", is_observed).await;
    let template = deployment.get(&["spec", "template"]).unwrap();
    all.insert("template".to_owned(), template.to_string());
    let pods = ObjectList::labels("app=anvil");
    for kind in [builtin::POD, builtin::REPLICA_SET] {
        for object in cluster.list(&kind, Some("team"), &pods).await.unwrap().items {
            all.insert(format!("{} {}", object.kind(), object.name()), object.uid().to_owned());
        }
    }
    for (kind, namespace, name) in [
        (builtin::DEPLOYMENT, Some("team"), "anvil"),
        (builtin::SERVICE_ACCOUNT, Some("team"), "anvil"),
        (builtin::CONFIG_MAP, Some("team"), "anvil-settings"),
        (builtin::CLUSTER_ROLE, None, "anvil-readers"),
        (builtin::CUSTOM_RESOURCE_DEFINITION, None, "anvils.forge.example.com"),
    ] {
        let object = cluster.get(&kind, namespace, name).await.unwrap();
        all.insert(format!("{} {name}", object.kind()), object.uid().to_owned());
    }
    assert_eq!(all.len(), 8, "one pod and one ReplicaSet: {all:?}");
    all
}

async fn find(live: &LiveCluster, kind: &Resource, name: &str) -> Option<Object> {
    let namespace = (kind.scope == mainstay_object::Scope::Namespaced).then_some("team");
    live.cluster.cluster().find(kind, namespace, name).await.unwrap()
}

/// Checks that OLM v1 has the operator, and OLM classic does not.
async fn assert_converted(live: &LiveCluster) {
    let extension = find(live, &CLUSTER_EXTENSION, "anvil").await.unwrap();
    assert_eq!(extension.condition("Installed"), Some("True"));
    assert_eq!(extension.str(&["status", "install", "bundle", "name"]), Some(CSV));
    assert_eq!(extension.str(&["spec", "source", "catalog", "version"]), None, "the pin is gone");
    assert_eq!(extension.annotation("olm.operatorframework.io/migration-unfinished"), None);
    assert!(find(live, &SUBSCRIPTION, "anvil").await.is_none());
    assert!(find(live, &CLUSTER_SERVICE_VERSION, CSV).await.is_none());
    let deployment = find(live, &builtin::DEPLOYMENT, "anvil").await.unwrap();
    let owner = deployment.controller_owner().unwrap().kind;
    assert!(["ClusterExtension", "ClusterObjectSet"].contains(&&*owner), "{owner}");
    let roles = ObjectList::labels("olm.operatorframework.io/owner-name=anvil");
    let roles = live.cluster.cluster().list(&builtin::CLUSTER_ROLE, None, &roles).await.unwrap();
    assert!(roles.items.len() >= 2, "the permissions of OLM v1 are there");
}

#[tokio::test]
async fn operator_goes_to_v1_and_back_and_to_v1_without_a_new_pod() {
    let live = installed(Features::default()).await;
    let before = identities(&live).await;

    let check = migrate(&live, "check anvil -n team").await;
    assert_done(&check);
    assert!(check.out.starts_with("team/anvil: Eligible: all checks passed\n"), "{}", check.out);

    let dry_run = migrate(&live, "convert anvil -n team --dry-run").await;
    assert_done(&dry_run);
    let mut lines = dry_run.out.lines();
    for wanted in [
        "would hold upgrades of Subscription team/anvil",
        "would create Secret olmv1-system/sh.helm.release.v1.anvil.v1",
        "would label ClusterRole anvil-readers",
        "would label ConfigMap team/anvil-settings",
        "would label CustomResourceDefinition anvils.forge.example.com",
        "would label Deployment team/anvil",
        "would label ServiceAccount team/anvil",
        "would create ClusterExtension anvil",
        "would delete Subscription team/anvil",
        "would delete ClusterServiceVersion team/anvil.v1.0.0",
        "would remove the pin of ClusterExtension anvil",
    ] {
        assert_eq!(lines.next(), Some(wanted), "{}", dry_run.out);
    }
    assert_eq!(lines.next(), None, "{}", dry_run.out);
    let dry_run = migrate(&live, "convert anvil -n team --dry-run -o json").await.json();
    let operator = &dry_run["operators"][0];
    assert_eq!(operator["steps"].as_array().unwrap().len(), 11);
    let catalog = &operator["clusterExtension"]["spec"]["source"]["catalog"];
    assert_eq!((&catalog["version"], &catalog["channels"]), (&json!("1.0.0"), &json!(["stable"])));
    assert!(find(&live, &CLUSTER_EXTENSION, "anvil").await.is_none());

    let convert = migrate(&live, "convert anvil -n team --backup saved").await;
    assert_done(&convert);
    assert_eq!(identities(&live).await, before);
    assert_converted(&live).await;
    for file in ["migration.json", "subscription.yaml", "objects/deployment-anvil.yaml"] {
        assert!(live.folder().join("saved").join(file).exists(), "{file}");
    }
    let check = migrate(&live, "check --all -o json").await;
    assert_eq!(check.json()["operators"][0]["state"], "AlreadyMigrated");

    let refused = migrate(&live, "rollback anvil").await;
    assert_eq!(refused.code, 2, "{}", refused.err);
    let rollback = migrate(&live, "rollback ./saved --acknowledge-installed").await;
    assert_done(&rollback);
    wait_for_classic(&live).await;
    assert_eq!(identities(&live).await, before);
    assert!(find(&live, &CLUSTER_EXTENSION, "anvil").await.is_none());
    let deployment = find(&live, &builtin::DEPLOYMENT, "anvil").await.unwrap();
    assert_eq!(deployment.owner_references()[0].kind, "ClusterServiceVersion");
    assert_eq!(deployment.owner_references().len(), 1);

    let convert = migrate(&live, "convert --all --backup again").await;
    assert_done(&convert);
    assert_eq!(identities(&live).await, before);
    assert_converted(&live).await;
    let cleanup = migrate(&live, "cleanup anvil --delete-operatorgroup").await;
    assert_done(&cleanup);
    assert!(cleanup.out.contains("labels of Deployment team/anvil removed\n"), "{}", cleanup.out);
    let plans = ObjectList::default();
    let plans = live.cluster.cluster().list(&INSTALL_PLAN, Some("team"), &plans).await.unwrap();
    assert_eq!(plans.items.len(), 0);
    assert!(find(&live, &OPERATOR_GROUP, "og").await.is_none());
    live.cluster.wait_gone(&OPERATOR, None, "anvil.team").await;
    assert_eq!(identities(&live).await, before);
    let deployment = find(&live, &builtin::DEPLOYMENT, "anvil").await.unwrap();
    assert!(!deployment.labels().any(|(label, _)| label.starts_with("olm.owner")));
    let cleanup = migrate(&live, "cleanup anvil").await;
    assert_eq!(cleanup.out, "ClusterExtension anvil: nothing is left\n");

    // Without its ClusterExtension, the backup alone restores the Subscription.
    let cluster = live.cluster.cluster();
    let options = DeleteOptions::default();
    cluster.delete(&CLUSTER_EXTENSION, None, "anvil", &options).await.unwrap();
    live.cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "anvil").await;
    let crd = "anvils.forge.example.com";
    live.cluster.wait_gone(&builtin::CUSTOM_RESOURCE_DEFINITION, None, crd).await;
    let restore = migrate(&live, "rollback again/team.anvil").await;
    assert_done(&restore);
    assert_eq!(restore.out, "Subscription team/anvil restored\n");
    wait_for_classic(&live).await;
    let subscription = find(&live, &SUBSCRIPTION, "anvil").await.unwrap();
    assert_eq!(subscription.str(&["spec", "startingCSV"]), Some(CSV));
    assert!(find(&live, &OPERATOR_GROUP, "og").await.is_some());

    // A backup of another version is not waited for.
    let file = live.folder().join("again/team.anvil/migration.json");
    let saved = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, saved.replace(CSV, "anvil.v0.9.0")).unwrap();
    let late = migrate(&live, "rollback again/team.anvil").await;
    assert_eq!(late.code, 2, "{}{}", late.out, late.err);
    let why = format!(
        "Subscription team/anvil exists already, with {CSV}\n  because the backup has anvil.v0.9.0\n"
    );
    assert!(late.err.contains(&why), "{}", late.err);
    live.shutdown().await;
}

/// Runs a command again and again, killed after one more write each time, until it succeeds. Returns how
/// often it was killed.
async fn kill_at_each_write(live: &LiveCluster, arguments: &str) -> usize {
    for writes in 0..100 {
        live.commands.limit_writes(writes);
        let output = migrate(live, arguments).await;
        live.commands.limit_writes(usize::MAX);
        if output.code == 0 {
            return writes;
        }
        assert!(output.err.contains("killed"), "{}", output.err);
    }
    panic!("{arguments} never ends");
}

#[tokio::test]
async fn killed_commands_continue() {
    kill_both_ways(Features::default()).await;
}

#[tokio::test]
async fn killed_commands_continue_with_object_sets() {
    kill_both_ways(Features::object_sets(TrustMode::ClusterAdmin)).await;
}

/// Approves all permissions of the extension.
async fn approve(live: &LiveCluster) {
    let approval = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "anvil-approved", "labels": {
            "mainstay.dev/approves-extension": "anvil", "mainstay.dev/approves-namespace": "team",
        }},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    live.cluster.apply(Object::from_value(approval).unwrap()).await;
}

/// With an account that the controller keeps, a deleted ClusterExtension deletes its ClusterObjectSets itself, before
/// the account goes.
#[tokio::test]
async fn object_sets_with_an_approved_account_go_back() {
    let live = installed(Features::object_sets(TrustMode::Approved)).await;
    let before = identities(&live).await;
    let waiting = migrate(&live, "convert anvil -n team --timeout 1s --backup early").await;
    assert_eq!(waiting.code, 1, "{}{}", waiting.out, waiting.err);
    assert!(waiting.err.contains("approve"), "{}", waiting.err);
    for (flag, why) in [
        ("--ce-name other", "another name cannot be chosen any more"),
        ("--backup late", "late cannot become its backup any more"),
    ] {
        let refused = migrate(&live, &format!("convert anvil -n team {flag}")).await;
        assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
    approve(&live).await;
    assert_done(&migrate(&live, "convert anvil -n team --backup early").await);
    assert_converted(&live).await;
    assert_done(&migrate(&live, "rollback anvil --acknowledge-installed").await);
    wait_for_classic(&live).await;
    assert_eq!(identities(&live).await, before);
    let cluster = live.cluster.cluster();
    let sets = cluster.list(&CLUSTER_OBJECT_SET, None, &ObjectList::default()).await.unwrap();
    assert!(sets.items.is_empty(), "{:?}", sets.items);
    for (kind, name) in [
        (&builtin::DEPLOYMENT, "anvil"),
        (&builtin::SERVICE_ACCOUNT, "anvil"),
        (&builtin::CONFIG_MAP, "anvil-settings"),
        (&builtin::CLUSTER_ROLE, "anvil-readers"),
    ] {
        let object = find(&live, kind, name).await.unwrap();
        let mut left = object.labels().chain(object.annotations());
        let found = left.find(|(key, _)| key.starts_with("olm.operatorframework.io/"));
        assert_eq!(found, None, "{} {name}", object.kind());
    }
    live.shutdown().await;
}

/// Kills a conversion and a rollback after each write, until they end.
async fn kill_both_ways(features: Features) {
    let live = installed(features).await;
    let before = identities(&live).await;
    let kills = kill_at_each_write(&live, "convert anvil -n team").await;
    assert!(kills >= 3, "{kills}");
    assert_eq!(identities(&live).await, before);
    assert_converted(&live).await;
    let kills = kill_at_each_write(&live, "rollback anvil --acknowledge-installed").await;
    assert!(kills >= 3, "{kills}");
    wait_for_classic(&live).await;
    assert_eq!(identities(&live).await, before);
    let subscription = find(&live, &SUBSCRIPTION, "anvil").await.unwrap();
    assert_eq!(subscription.str(&["spec", "installPlanApproval"]), None, "not frozen any more");
    live.shutdown().await;
}

#[tokio::test]
async fn killed_conversion_can_be_undone() {
    undo_after_each_write(false).await;
}

/// InstallPlans name the objects of a bundle. Without them, a ClusterRole that lost its owner labels must be
/// known by something else.
#[tokio::test]
async fn killed_conversion_can_be_undone_without_install_plans() {
    undo_after_each_write(true).await;
}

/// Kills a conversion after one more write each time, and rolls it back.
async fn undo_after_each_write(deletes_plans: bool) {
    let live = installed(Features::default()).await;
    let before = identities(&live).await;
    let mut lost_only_its_subscription = false;
    for writes in 1..100 {
        if deletes_plans {
            let (cluster, all) = (live.cluster.cluster(), ObjectList::default());
            let options = DeleteOptions::default();
            for plan in cluster.list(&INSTALL_PLAN, Some("team"), &all).await.unwrap().items {
                cluster.delete(&INSTALL_PLAN, Some("team"), plan.name(), &options).await.unwrap();
            }
        }
        live.commands.limit_writes(writes);
        let convert = migrate(&live, "convert anvil -n team").await;
        live.commands.limit_writes(usize::MAX);
        let is_over = convert.code == 0;
        assert!(is_over || convert.err.contains("killed"), "{}", convert.err);
        if find(&live, &SUBSCRIPTION, "anvil").await.is_none()
            && find(&live, &CLUSTER_SERVICE_VERSION, CSV).await.is_some()
        {
            lost_only_its_subscription = true;
            let check = migrate(&live, "check anvil -n team").await;
            let state =
                "team/anvil: Conflict: the conversion to ClusterExtension anvil has not ended";
            assert!(check.out.starts_with(state), "{}", check.out);
            // As a GitOps controller would.
            live.cluster.apply(Object::from_value(subscription("anvil")).unwrap()).await;
        }
        assert_done(&migrate(&live, "rollback anvil --acknowledge-installed").await);
        wait_for_classic(&live).await;
        assert_eq!(identities(&live).await, before, "after {writes} writes");
        assert!(find(&live, &CLUSTER_EXTENSION, "anvil").await.is_none());
        let subscription = find(&live, &SUBSCRIPTION, "anvil").await.unwrap();
        assert_eq!(subscription.str(&["spec", "installPlanApproval"]), None, "{writes}");
        let releases = ObjectList::labels("owner=operator-controller");
        let cluster = live.cluster.cluster();
        let releases = cluster.list(&builtin::SECRET, Some("olmv1-system"), &releases).await;
        for release in releases.unwrap().items {
            live.cluster.wait_gone(&builtin::SECRET, Some("olmv1-system"), release.name()).await;
        }
        if is_over {
            assert!(writes >= 8, "{writes}");
            assert!(lost_only_its_subscription);
            return live.shutdown().await;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn approval_stays_manual_on_both_sides() {
    let manual = json!({"installPlanApproval": "Manual"});
    let live = subscribed(Features::default(), manual).await;
    let named = |plan: &Object| plan.bool(&["spec", "approved"]) == Some(false);
    let plans = Selection::all(INSTALL_PLAN);
    let plans = live.cluster.wait_for_all(plans, |all| all.iter().any(|plan| named(plan))).await;
    let approved = Patch::Merge(json!({"spec": {"approved": true}}));
    let cluster = live.cluster.cluster();
    cluster.patch(&INSTALL_PLAN, Some("team"), plans[0].name(), &approved).await.unwrap();
    wait_for_classic(&live).await;
    let before = identities(&live).await;
    assert_done(&migrate(&live, "convert anvil -n team --ce-name forge").await);
    let extension = find(&live, &CLUSTER_EXTENSION, "forge").await.unwrap();
    assert_eq!(extension.str(&["spec", "source", "catalog", "version"]), Some("1.0.0"));
    assert_done(&migrate(&live, "rollback forge --acknowledge-installed").await);
    wait_for_classic(&live).await;
    assert_eq!(identities(&live).await, before);
    let subscription = find(&live, &SUBSCRIPTION, "anvil").await.unwrap();
    assert_eq!(subscription.str(&["spec", "installPlanApproval"]), Some("Manual"));
    live.shutdown().await;
}

#[tokio::test]
async fn catalog_sources_become_cluster_catalogs() {
    let live = installed(Features::default()).await;
    live.put_catalog("r.example/other:v1", &documents(&manifests()));
    for (name, image) in [("mirror", "r.example/cat:v1"), ("other", "r.example/other:v1")] {
        let source = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {
                "sourceType": "grpc", "image": image, "priority": 5,
                "updateStrategy": {"registryPoll": {"interval": "90s"}},
            },
        });
        live.cluster.apply(Object::from_value(source).unwrap()).await;
    }
    let dry_run = migrate(&live, "catalogs --dry-run").await;
    assert_eq!(dry_run.code, 3, "one cannot be converted");
    assert!(find(&live, &CLUSTER_CATALOG, "other").await.is_none());
    let migrated = migrate(&live, "catalogs --delete-catalogsource").await;
    assert_eq!(migrated.code, 3, "{}", migrated.err);
    assert_eq!(
        migrated.out,
        "olm/cat: skipped: it names an address and no image
  remedy: build an image of its content: mainstay opm generate dockerfile
team/mirror: adopted: ClusterCatalog cat: it has the same image
  CatalogSource deleted
team/other: created: ClusterCatalog other: from image r.example/other:v1
  CatalogSource deleted
"
    );
    let other = find(&live, &CLUSTER_CATALOG, "other").await.unwrap();
    assert_eq!(other.condition("Serving"), Some("True"));
    assert_eq!(other.i64(&["spec", "priority"]), Some(5));
    assert_eq!(other.i64(&["spec", "source", "image", "pollIntervalMinutes"]), Some(1));
    let from = "olm.operatorframework.io/migrated-from-catalogsource";
    assert_eq!(other.annotation(from), Some("team/other"));
    let cat = find(&live, &CLUSTER_CATALOG, "cat").await.unwrap();
    assert_eq!(cat.annotation(from), Some("team/mirror"));
    assert!(find(&live, &CATALOG_SOURCE, "mirror").await.is_none());
    live.shutdown().await;
}

#[tokio::test]
async fn operator_of_one_namespace_is_not_converted() {
    let live = installed(Features::default()).await;
    let mut group = find(&live, &OPERATOR_GROUP, "og").await.unwrap();
    group.set(&["spec", "targetNamespaces"], json!(["team"]));
    live.cluster.cluster().update(&OPERATOR_GROUP, &group).await.unwrap();
    let check = migrate(&live, "check anvil -n team").await;
    assert_eq!(check.code, 3, "{}", check.out);
    let failed = "failed: C1 watched namespaces: OperatorGroup og targets team";
    assert!(check.out.contains(failed), "{}", check.out);
    live.commands.limit_writes(0);
    let convert = migrate(&live, "convert anvil -n team").await;
    assert_eq!((convert.code, convert.out.contains(failed)), (3, true), "{}", convert.err);
    let missing = migrate(&live, "check hammer -n team").await;
    assert_eq!(missing.code, 2, "{}", missing.err);
    live.shutdown().await;
}
