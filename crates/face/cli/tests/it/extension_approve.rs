//! `mainstay extension approve`: what a bundle needs, what is approved, and the roles that approve it.

use super::extension_commands::run_in;
use super::extension_rbac::folder;
use super::recorded_cluster::RecordedCluster;
use mainstay_cause::Cause;
use mainstay_clitest::CommandOutput;
use mainstay_command::cluster::{CatalogEndpoint, CatalogReadError, ClusterWriteError};
use mainstay_object::Object;
use serde_json::Value;

/// An extension whose installed bundle is the folder `b`, and a catalog that offers the folder `n`.
const STATE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: catalogd-ca, namespace: olmv1-system}
data: {ca.crt: the CA}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: shop, generation: 1}
spec: {priority: 7}
status:
  urls: {base: 'https://127.0.0.1:4433/catalogs/shop'}
  conditions: [{type: Serving, status: 'True', reason: Available}, {type: Progressing, status: 'True', reason: Succeeded}]
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: kiwi, uid: e1, generation: 1}
spec:
  namespace: fruit
  source: {sourceType: Catalog, catalog: {packageName: kiwi}}
status:
  install: {bundle: {name: kiwi.v1.0.0, version: 1.0.0}}
  conditions:
  - {type: Installed, status: 'True', reason: Succeeded, observedGeneration: 1, message: Installed bundle b successfully}
";

const SHOP: &str = r#"{"schema": "olm.package", "name": "kiwi", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "kiwi", "name": "stable", "entries": [{"name": "kiwi.v1.0.0"}, {"name": "kiwi.v2.0.0", "replaces": "kiwi.v1.0.0"}]}
{"schema": "olm.bundle", "package": "kiwi", "name": "kiwi.v1.0.0", "image": "b", "properties": [{"type": "olm.package", "value": {"version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "kiwi", "name": "kiwi.v2.0.0", "image": "n", "properties": [{"type": "olm.package", "value": {"version": "2.0.0"}}]}
"#;

fn documents(_: &CatalogEndpoint, path: &str) -> Result<Vec<u8>, CatalogReadError> {
    let is_package = |line: &&str| line.contains("olm.package\", \"name");
    match path {
        "api/v1/metas?schema=olm.package&name=kiwi" => {
            Ok(SHOP.lines().filter(is_package).collect::<String>().into_bytes())
        }
        "api/v1/metas?package=kiwi" => Ok(SHOP.as_bytes().to_vec()),
        _ => Err(CatalogReadError::NotFound(Cause::new("there is no such package"))),
    }
}

fn cluster(text: &str) -> RecordedCluster {
    RecordedCluster { documents, ..RecordedCluster::new("fruit", text).writable(|_| {}) }
}

fn approve(cluster: &RecordedCluster, arguments: &str, answer: Option<&str>) -> CommandOutput {
    run_in(&folder(), cluster.clone(), &format!("approve {arguments}"), answer)
}

/// The roles of the cluster: kind, namespace, labels, and the number of rules.
fn roles(cluster: &RecordedCluster) -> Vec<(String, String, String, usize)> {
    let objects = cluster.objects.borrow();
    let roles = objects.iter().filter(|object| object.name() == "kiwi-approved-permissions");
    let mut found: Vec<_> = roles
        .map(|role| {
            let labels: Vec<String> =
                role.labels().map(|(label, value)| format!("{label}={value}")).collect();
            let (kind, namespace) = (role.kind().to_owned(), role.namespace().to_owned());
            (kind, namespace, labels.join(","), role.array(&["rules"]).len())
        })
        .collect();
    found.sort();
    found
}

const NEW: &str = "kiwi --bundle b --namespace fruit";

#[test]
fn first_approval_shows_all_permissions_and_creates_labelled_roles() {
    let cluster = cluster("");
    let answer = approve(&cluster, NEW, Some("y\n"));
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert_eq!(answer.err, "approve these permissions for extension \"kiwi\"? [y/N] ");
    insta::assert_snapshot!(answer.out);
    let labels = "mainstay.dev/approves-extension=kiwi,mainstay.dev/approves-namespace=fruit";
    let found = roles(&cluster);
    let places: Vec<(&str, &str, &str)> = found
        .iter()
        .map(|(kind, namespace, labels, _)| (&**kind, &**namespace, &**labels))
        .collect();
    assert_eq!(places, [("ClusterRole", "", labels), ("Role", "fruit", labels)]);
    assert!(found.iter().all(|(.., rules)| *rules > 0));
    let again = approve(&cluster, NEW, None);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(
        again.out.ends_with(
            "compared with what is approved, it needs the same permissions\nthe permissions are approved already: nothing to do\n"
        ),
        "{}",
        again.out
    );
}

#[test]
fn upgrade_that_the_catalog_offers_needs_the_permissions_of_both_bundles() {
    let cluster = cluster(STATE);
    let first = approve(&cluster, &format!("{NEW} --yes"), None);
    assert_eq!(first.code, 0, "{}", first.err);
    let answer = approve(&cluster, "kiwi --yes", None);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let (needed, compared) = answer.out.split_once("compared with").unwrap();
    assert!(
        needed.starts_with("kiwi.v2.0.0 for ClusterExtension kiwi in namespace fruit needs:\n")
    );
    // The upgrade deletes the CustomResourceDefinition of the first bundle.
    assert!(needed.contains("customresourcedefinitions.apiextensions.k8s.io: kiwis.fruit"));
    insta::assert_snapshot!(compared);
    // Afterwards, the first bundle is not needed any more.
    cluster.objects.borrow_mut().retain(|object| object.kind() != "ClusterExtension");
    let answer = approve(&cluster, "kiwi --bundle n --namespace fruit --yes", None);
    let (_, compared) = answer.out.split_once("compared with what is approved, it ").unwrap();
    assert!(compared.starts_with("no longer needs:\nin the whole cluster:\n"), "{compared}");
    assert!(compared.contains("ClusterRole kiwi-approved-permissions changed\n"), "{compared}");
}

#[test]
fn copy_of_the_installed_bundle_takes_the_place_of_its_image() {
    let state = STATE.replace("bundle b success", "bundle r.example/GONE:v1 success");
    let cluster = cluster(&state);
    let unreachable = approve(&cluster, "kiwi --yes", None);
    assert_ne!(unreachable.code, 0);
    assert!(unreachable.err.contains("--installed DIR|IMAGE"), "{}", unreachable.err);
    let answer = approve(&cluster, "kiwi --installed b --yes", None);
    assert_eq!(answer.code, 0, "{}", answer.err);
    // The upgrade deletes the CustomResourceDefinition of the installed bundle.
    assert!(answer.out.contains("customresourcedefinitions.apiextensions.k8s.io: kiwis.fruit"));
    cluster.objects.borrow_mut().retain(|object| object.kind() != "ClusterExtension");
    let nothing_installed = approve(&cluster, &format!("{NEW} --installed n --yes"), None);
    assert_eq!(nothing_installed.code, 2);
    let why = "because ClusterExtension kiwi has no other bundle installed\n";
    assert!(nothing_installed.err.contains(why), "{}", nothing_installed.err);
}

#[test]
fn copy_of_the_installed_bundle_needs_no_other_copy() {
    let state = STATE.replace("bundle b success", "bundle r.example/GONE:v1 success");
    let answer = approve(&cluster(&state), "kiwi --bundle b --yes", None);
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn nothing_is_stored_without_a_confirmation_and_in_a_dry_run() {
    let cluster = cluster("");
    let refused = approve(&cluster, NEW, None);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("confirm it with --yes"), "{}", refused.err);
    let cancelled = approve(&cluster, NEW, Some("n\n"));
    assert!(cancelled.out.ends_with("the approval is cancelled: nothing is changed\n"));
    let dry = approve(&cluster, &format!("{NEW} --dry-run"), None);
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.ends_with(
        "ClusterRole kiwi-approved-permissions created (dry run)\nRole fruit/kiwi-approved-permissions created (dry run)\n"
    ));
    assert!(roles(&cluster).is_empty());
    let json = approve(&cluster, &format!("{NEW} --dry-run -o json"), None).json();
    let kinds: Vec<&Value> =
        json["items"].as_array().unwrap().iter().map(|role| &role["kind"]).collect();
    assert_eq!(kinds, ["ClusterRole", "Role"]);
}

#[test]
fn user_without_the_permissions_is_told_who_can_approve() {
    let refusal = |text: &str| {
        let error = ClusterWriteError::Forbidden(Cause::new(text.to_owned()));
        let cluster = RecordedCluster { refusal: Some(error), ..cluster("") };
        let answer = approve(&cluster, &format!("{NEW} --yes"), None);
        assert_eq!(answer.code, 1);
        answer.err
    };
    insta::assert_snapshot!(refusal(
        "clusterroles.rbac.authorization.k8s.io \"kiwi-approved-permissions\" is forbidden: user \"ann\" (groups=[\"a\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"
    ));
    let text =
        refusal("clusterroles.rbac.authorization.k8s.io is forbidden: User \"ann\" cannot create");
    assert!(text.contains("have an administrator of the cluster approve"), "{text}");
}

#[test]
fn role_of_somebody_else_in_the_place_of_the_approval_is_not_changed() {
    let labels = "mainstay.dev/approves-extension=kiwi mainstay.dev/approves-namespace=fruit";
    for (kind, namespace, place, command) in [
        (
            "ClusterRole",
            "",
            "ClusterRole kiwi-approved-permissions",
            "kubectl label clusterrole kiwi-approved-permissions",
        ),
        (
            "Role",
            "fruit",
            "Role fruit/kiwi-approved-permissions",
            "kubectl label role kiwi-approved-permissions -n fruit",
        ),
    ] {
        let metadata = match namespace {
            "" => String::new(),
            namespace => format!(", namespace: {namespace}"),
        };
        let foreign = format!(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata: {{name: kiwi-approved-permissions, uid: r1{metadata}}}
rules: []
"
        );
        let cluster = cluster(&foreign);
        let answer = approve(&cluster, &format!("{NEW} --yes"), None);
        assert_eq!(answer.code, 2);
        assert!(answer.err.contains(&format!("{place} exists and is no approval")), "{answer:?}");
        assert!(answer.err.contains(&format!("{command} {labels}\n")), "{answer:?}");
        // Nothing else is written either.
        let expected = (kind.to_owned(), namespace.to_owned(), String::new(), 0);
        assert_eq!(roles(&cluster), [expected]);
    }
}

#[test]
fn approvals_of_others_count_and_stay() {
    let platform = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: platform
  uid: r1
  labels: {mainstay.dev/approves-extension: kiwi, mainstay.dev/approves-namespace: fruit}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}
";
    let cluster = cluster(platform);
    let answer = approve(&cluster, &format!("{NEW} --yes"), None);
    assert!(
        answer.out.contains("compared with what is approved, it needs the same permissions\n"),
        "{}",
        answer.out
    );
    assert!(answer.out.ends_with("nothing to do\n"), "{}", answer.out);
    assert!(roles(&cluster).is_empty());
    let objects = cluster.objects.borrow();
    let found = objects.iter().find(|object| object.name() == "platform").map(Object::uid);
    assert_eq!(found, Some("r1"));
}

#[test]
fn extension_that_does_not_exist_and_one_without_a_bundle_have_remedies() {
    let missing = approve(&cluster(STATE), "melon", None);
    assert_eq!(missing.code, 2);
    let remedy = "before the ClusterExtension exists, add --bundle DIR|IMAGE and --namespace NAME";
    assert!(missing.err.contains(remedy), "{}", missing.err);
    let without = STATE.replace("packageName: kiwi", "packageName: melon");
    let without = without.replace("Installed bundle b successfully", "No bundle installed");
    let without = approve(&cluster(&without), "kiwi", None);
    assert_ne!(without.code, 0);
    assert!(without.err.contains("or name the bundle with --bundle DIR|IMAGE"), "{}", without.err);
}
