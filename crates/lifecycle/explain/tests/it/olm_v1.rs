//! Explanations of ClusterExtensions, ClusterCatalogs and ClusterObjectSets.

use crate::explanations::objects;
use mainstay_cause::Cause;
use mainstay_explain::{
    ClusterObjects, ExplainedKind, ExplainedObject, Explanation, ExtensionResolution,
    FetchedPackage, explain, selected_catalogs,
};
use mainstay_object::Object;
use mainstay_resolver::extension::read_package;
use std::fmt::Write as _;

/// A ClusterExtension whose conditions of the present spec are these.
fn extension(conditions: &str) -> String {
    format!(
        "
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {{name: tea, generation: 2}}
spec:
  namespace: kitchen
  serviceAccount: {{name: tea-installer}}
  source: {{sourceType: Catalog, catalog: {{packageName: teapot, channels: [stable], version: 2.x}}}}
status:
  install: {{bundle: {{name: teapot.v1, version: 1.0.0}}}}
  conditions: {conditions}
"
    )
}

const INSTALLED: &str = "{type: Installed, status: 'True', reason: Succeeded, observedGeneration: 2, message: Installed bundle x.io/teapot:1 successfully}";

/// A ClusterExtension with a failure in the condition Progressing.
fn failing(reason: &str, message: &str) -> String {
    let status = if reason == "Retrying" || reason == "RollingOut" { "True" } else { "False" };
    let message = serde_json::Value::from(message);
    extension(&format!(
        "[{INSTALLED}, {{type: Progressing, status: '{status}', reason: {reason}, observedGeneration: 2, message: {message}}}]"
    ))
}

fn healthy() -> String {
    failing("Succeeded", "Desired state reached")
        .replace("'False', reason: Succeeded", "'True', reason: Succeeded")
}

fn target(kind: ExplainedKind, name: &str) -> ExplainedObject {
    ExplainedObject { kind, namespace: String::new(), name: name.to_owned() }
}

fn explanation(texts: &[&str], target: &ExplainedObject) -> Explanation {
    let cluster = ClusterObjects { objects: objects(texts), ..ClusterObjects::default() };
    explain(&cluster, target).unwrap()
}

fn text(explanation: &Explanation) -> String {
    let mut text = match &explanation.cause {
        Some(cause) => cause.render(),
        None => format!("{} {}\n", explanation.target, explanation.state),
    };
    for line in explanation.resolution.iter().flat_map(ExtensionResolution::lines) {
        text.push_str(&line);
        text.push('\n');
    }
    for note in &explanation.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn why_extension(texts: &[&str]) -> String {
    text(&explanation(texts, &target(ExplainedKind::ClusterExtension, "tea")))
}

fn why(message: &str) -> String {
    why_extension(&[&failing("Retrying", message)])
}

const WRAPPED: &str = "error for resolved bundle \"teapot.v2\" with version \"2.0.0\": ";

const CATALOGS: &str = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: shop, generation: 1}
status: {conditions: [{type: Serving, status: 'True', reason: Available, observedGeneration: 1}, {type: Progressing, status: 'True', reason: Succeeded, observedGeneration: 1}]}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: market, generation: 1}
spec: {priority: -5, source: {type: Image, image: {ref: 'x.io/market:1'}}}
status: {conditions: [{type: Progressing, status: 'True', reason: Retrying, observedGeneration: 1, message: 'source catalog content: error copying image: 404'}]}
";

const PACKAGE: &str = r#"
{"schema": "olm.package", "name": "teapot"}
{"schema": "olm.channel", "package": "teapot", "name": "stable", "entries": [{"name": "teapot.v1"}, {"name": "teapot.v2", "replaces": "teapot.v1"}]}
{"schema": "olm.channel", "package": "teapot", "name": "next", "entries": [{"name": "teapot.v3"}]}
{"schema": "olm.bundle", "package": "teapot", "name": "teapot.v1", "image": "x.io/teapot:1", "properties": [{"type": "olm.package", "value": {"version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "teapot", "name": "teapot.v2", "image": "x.io/teapot:2", "properties": [{"type": "olm.package", "value": {"version": "2.0.0"}}]}
{"schema": "olm.bundle", "package": "teapot", "name": "teapot.v3", "image": "x.io/teapot:3", "properties": [{"type": "olm.package", "value": {"version": "3.0.0"}}]}
"#;

/// The explanation with this content of the ClusterCatalog `shop`; `market` is not served.
fn resolved(extension: &str, shop: &FetchedPackage) -> String {
    resolved_with(extension, shop, &FetchedPackage::NotServed)
}

/// The explanation with these contents of the ClusterCatalogs.
fn resolved_with(extension: &str, shop: &FetchedPackage, market: &FetchedPackage) -> String {
    let objects = objects(&[extension, CATALOGS]);
    let contents: Vec<(Object, FetchedPackage)> = objects
        .iter()
        .filter(|object| object.kind() == "ClusterCatalog")
        .map(|catalog| {
            let is_shop = catalog.name() == "shop";
            (catalog.clone(), if is_shop { shop.clone() } else { market.clone() })
        })
        .collect();
    let resolution = Some(ExtensionResolution::of(&objects[0], &contents));
    let cluster = ClusterObjects { objects, resolution, ..ClusterObjects::default() };
    text(&explain(&cluster, &target(ExplainedKind::ClusterExtension, "tea")).unwrap())
}

fn package() -> FetchedPackage {
    FetchedPackage::Read(read_package("teapot", PACKAGE.as_bytes()).unwrap())
}

#[test]
fn healthy_extension_has_its_resolution_and_its_catalogs() {
    let up_to_date = healthy().replace("teapot.v1, version: 1.0.0", "teapot.v2, version: 2.0.0");
    insta::assert_snapshot!(resolved(&up_to_date, &package()));
    insta::assert_snapshot!(resolved(&healthy(), &package()));
}

#[test]
fn failed_resolution_is_explained_filter_by_filter() {
    let greedy =
        |message: &str| failing("Retrying", message).replace("version: 2.x", "version: 3.x");
    let message = "error upgrading from currently installed version \"1.0.0\": no bundles found for package \"teapot\" matching version \"3.x\" in channels [stable]";
    let market = FetchedPackage::Read(None);
    insta::assert_snapshot!(resolved_with(&greedy(message), &package(), &market));
    // Without the content of the catalogs, the message stays alone.
    insta::assert_snapshot!(why_extension(&[&greedy(message)]));
}

#[test]
fn package_that_no_catalog_has_may_have_another_name() {
    let absent = FetchedPackage::Read(None);
    let message = "no bundles found for package \"teapot\" matching version \"2.x\"";
    insta::assert_snapshot!(resolved_with(&failing("Retrying", message), &absent, &absent));
    let off = FetchedPackage::Read(None);
    let unselected = failing("Retrying", message)
        .replace("version: 2.x", "version: 2.x, selector: {matchLabels: {none: has-it}}");
    let text = resolved_with(&unselected, &off, &off);
    assert!(text.contains("→ create a ClusterCatalog that has the package"), "{text}");
    assert!(!text.contains("check the name"), "{text}");
}

#[test]
fn catalog_that_is_not_served_is_the_cause_of_a_resolution_that_reads_it() {
    let message = "error walking catalogs: error getting package \"teapot\" from catalog \"market\": catalog \"market\" is not being served";
    let extension = failing("Retrying", message);
    insta::assert_snapshot!(resolved(&extension, &FetchedPackage::Read(None)));
}

#[test]
fn unread_catalog_is_a_note_and_never_a_cause() {
    let unread = FetchedPackage::Unread(
        Cause::new("ClusterCatalog shop cannot be read").because(Cause::new("connection refused")),
    );
    let message = "no bundles found for package \"teapot\"";
    insta::assert_snapshot!(resolved(&failing("Retrying", message), &unread));
}

#[test]
fn only_selected_catalogs_that_are_switched_on_are_read() {
    let extension = extension("[]").replace(
        "version: 2.x",
        "version: 2.x, selector: {matchExpressions: [{key: olm.operatorframework.io/metadata.name, operator: NotIn, values: [market]}]}",
    );
    let off = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: closed}
spec: {availabilityMode: Unavailable}
";
    let objects = objects(&[&extension, CATALOGS, off]);
    let catalogs = &objects[1..];
    assert_eq!(selected_catalogs(&objects[0], catalogs).into_iter().collect::<Vec<_>>(), ["shop"]);
}

#[test]
fn failed_pull_names_the_image_if_it_is_known() {
    let pull = "error copying image: GET https://x.io/v2/teapot/manifests/2: 404";
    let message = format!("{WRAPPED}{pull}");
    insta::assert_snapshot!(resolved(&failing("Retrying", &message), &package()));
    insta::assert_snapshot!(why(&message));
}

#[test]
fn refused_configuration_and_unsupported_bundle_have_remedies() {
    let config = format!(
        "{WRAPPED}invalid ClusterExtension configuration: invalid configuration: unknown field \"x\""
    );
    insta::assert_snapshot!(why_extension(&[&failing("InvalidConfiguration", &config)]));
    insta::assert_snapshot!(why(&format!(
        "{WRAPPED}unsupported bundle: apiServiceDefintions are not supported"
    )));
    let reference = format!(
        "{WRAPPED}error parsing image reference \"busybox:1\": repository name must be canonical"
    );
    insta::assert_snapshot!(why_extension(&[&failing("Blocked", &reference)]));
}

#[test]
fn missing_cert_manager_has_its_own_remedies() {
    let missing = |group: &str| {
        why(&format!(
            "{WRAPPED}unable to build kubernetes objects from release manifest: resource mapping not found for name: \"c\" namespace: \"kitchen\" from \"\": no matches for kind \"Certificate\" in version \"{group}/v1\"\nensure CRDs are installed first"
        ))
    };
    let explained = missing("cert-manager.io");
    assert!(explained.contains("→ install cert-manager\n"), "{explained}");
    assert!(explained.contains("--extension-certificates own"), "{explained}");
    let other = missing("x.io");
    assert!(!other.contains("--extension-certificates"), "{other}");
}

#[test]
fn every_missing_permission_is_a_cause() {
    let message = format!(
        "{WRAPPED}creating new Revision: pre-authorization failed: service account requires the following permissions to manage cluster extension:\n  Namespace:\"\" APIGroups:[apps] Resources:[deployments] Verbs:[list,watch]\n  Namespace:\"kitchen\" APIGroups:[apps] Resources:[deployments] ResourceNames:[pot] Verbs:[get]"
    );
    insta::assert_snapshot!(why(&message));
    let unknown = format!(
        "{WRAPPED}pre-authorization failed: authorization evaluation error: unable to get REST mapping"
    );
    insta::assert_snapshot!(why(&unknown));
    insta::assert_snapshot!(why(
        "operation cannot proceed due to the following validation error(s): service account \"tea-installer\" not found in namespace \"kitchen\""
    ));
}

#[test]
fn permissions_that_nobody_approved_have_the_command_that_approves_them() {
    let message = format!(
        "{WRAPPED}creating new Revision: pre-authorization failed: the bundle needs permissions that are not approved (to approve them: mainstay extension approve tea):\n  Namespace:\"\" APIGroups:[apps] Resources:[deployments] Verbs:[list,watch]\n  Namespace:\"kitchen\" APIGroups:[apps] Resources:[deployments] ResourceNames:[pot] Verbs:[get]"
    );
    insta::assert_snapshot!(why(&message));
}

#[test]
fn every_finding_about_a_changed_crd_is_a_cause() {
    let message = format!(
        "{WRAPPED}validating upgrade for CRD \"pots.x.io\": v1: ^.spec.a: type: type changed : \"boolean\" -> \"string\"\nv1: ^.spec.b: existingFieldRemoval: removed field : v1.^.spec.b\nvalidating upgrade for CRD \"cups.x.io\": scope: scope changed : \"Namespaced\" -> \"Cluster\""
    );
    insta::assert_snapshot!(why(&message));
}

#[test]
fn object_of_another_extension_is_named_with_the_extension_of_the_same_package() {
    let message = format!(
        "{WRAPPED}failed to get release state using server-side dry-run: ConfigMap 'leaves' already exists in namespace 'kitchen' and cannot be managed by operator-controller"
    );
    let rival = failing("Succeeded", "").replace("name: tea,", "name: coffee,");
    insta::assert_snapshot!(why_extension(&[&failing("Retrying", &message), &rival]));
    let upgrade = format!(
        "{WRAPPED}Unable to continue with update: ConfigMap \"leaves\" in namespace \"kitchen\" exists and cannot be imported into the current release: invalid ownership metadata; label validation error"
    );
    insta::assert_snapshot!(why(&upgrade));
}

#[test]
fn custom_resource_definition_that_is_in_the_way_may_be_a_kept_one() {
    let message = format!(
        "{WRAPPED}failed to get release state using server-side dry-run: CustomResourceDefinition 'pots.x.io' already exists in namespace '' and cannot be managed by operator-controller"
    );
    insta::assert_snapshot!(why(&message));
}

#[test]
fn refusal_of_the_api_has_the_commands_that_grant_it_and_a_missing_namespace_the_one_that_creates_it()
 {
    let refusal = format!(
        "{WRAPPED}2 errors occurred:\n\t* deployments.apps is forbidden: User \"system:serviceaccount:kitchen:tea-installer\" cannot create resource \"deployments\" in API group \"apps\" in the namespace \"kitchen\"\n\t* services \"tea\" is invalid\n\n"
    );
    insta::assert_snapshot!(why(&refusal));
    insta::assert_snapshot!(why(&format!(
        "{WRAPPED}failed to create resource: namespaces \"kitchen\" not found"
    )));
}

/// In the mode `approved`, no role may be added to the account: it has what is approved.
#[test]
fn refusal_of_the_kept_account_is_mended_by_an_approval() {
    let refusal = format!(
        "{WRAPPED}services is forbidden: User \"system:serviceaccount:kitchen:tea-installer\" cannot create resource \"services\" in API group \"\" in the namespace \"kitchen\""
    );
    let kept = failing("Retrying", &refusal).replace("name: tea-installer", "name: other");
    let text = why_extension(&[&kept]);
    assert!(
        text.contains("→ look at them and approve them: mainstay extension approve tea"),
        "{text}"
    );
    assert!(!text.contains("create role"), "{text}");
}

#[test]
fn roles_for_cluster_object_sets_are_named_where_they_are_missing() {
    let report = format!(
        "{WRAPPED}creating new Revision: pre-authorization failed: service account requires the following permissions to manage cluster extension:\n  Namespace:\"\" APIGroups:[olm.operatorframework.io] Resources:[clusterobjectsets/finalizers] ResourceNames:[tea-1] Verbs:[update]"
    );
    let text = why(&report);
    assert!(text.contains(" --service-account tea-installer --applier object-sets"), "{text}");
}

#[test]
fn condition_about_an_earlier_spec_and_a_missing_one_are_no_report() {
    let stale = healthy().replace("observedGeneration: 2", "observedGeneration: 1");
    insta::assert_snapshot!(why_extension(&[&stale]));
    let new =
        extension("[]").replace("install: {bundle: {name: teapot.v1, version: 1.0.0}}", "x: {}");
    assert!(why_extension(&[&new]).contains("is not installed\n  because no controller"));
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: pot
  namespace: kitchen
  generation: 1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
spec: {replicas: 1, selector: {matchLabels: {app: pot}}}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: pot-1, namespace: kitchen, labels: {app: pot}}
spec: {containers: [{name: manager, image: 'x.io/pot:1'}]}
status:
  phase: Pending
  containerStatuses: [{name: manager, ready: false, state: {waiting: {reason: ImagePullBackOff, message: Back-off pulling image}}}]
";

#[test]
fn installed_extension_whose_pods_do_not_start_does_not_work() {
    insta::assert_snapshot!(why_extension(&[&healthy(), DEPLOYMENT]));
    let unscheduled = DEPLOYMENT.replace(
        "phase: Pending",
        "conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes are available}]",
    );
    assert!(
        why_extension(&[&healthy(), &unscheduled])
            .contains("mainstay extension update tea --config FILE")
    );
    let of_another = DEPLOYMENT.replace("owner-name: tea", "owner-name: coffee");
    assert!(!why_extension(&[&healthy(), &of_another]).contains("kitchen/pot"));
}

/// A ClusterObjectSet of the extension, with these conditions.
fn object_set(conditions: &str) -> String {
    format!(
        "
apiVersion: olm.operatorframework.io/v1
kind: ClusterObjectSet
metadata:
  name: tea-2
  generation: 1
  labels: {{olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}}
  annotations: {{olm.operatorframework.io/bundle-reference: 'x.io/teapot:2'}}
spec: {{lifecycleState: Active, revision: 2}}
status: {{conditions: {conditions}}}
"
    )
}

#[test]
fn rollout_of_a_revision_is_followed_to_the_container() {
    let set = object_set(
        "[{type: Progressing, status: 'True', reason: RollingOut, observedGeneration: 1, message: Revision 2.0.0 is rolling out.}, {type: Available, status: 'False', reason: ProbeFailure, observedGeneration: 1, message: \"Object CustomResourceDefinition.apiextensions.k8s.io/v1 /pots.x.io: condition Established is missing\\nObject Deployment.apps/v1 kitchen/pot: condition Available is False\"}]",
    );
    let rolling = failing("RollingOut", "Revision 2.0.0 is rolling out.").replace(
        "conditions: [",
        "conditions: [{type: Available, status: 'False', reason: ProbeFailure, message: 'Object Deployment.apps/v1 kitchen/pot: condition'}, ",
    );
    insta::assert_snapshot!(why_extension(&[&rolling, &set, DEPLOYMENT]));
    let of_set = target(ExplainedKind::ClusterObjectSet, "tea-2");
    insta::assert_snapshot!(text(&explanation(&[&rolling, &set, DEPLOYMENT], &of_set)));
}

#[test]
fn collision_names_the_object_and_its_controller() {
    let message = "revision object collisions in phase 5\\nObject ConfigMap.v1 kitchen/leaves\\nAction: \\\"Collision\\\"\\nProbes:\\n- Progress: Succeeded\\nConflicting Owner: &OwnerReference{Kind:ClusterObjectSet,Name:coffee-1,UID:u,APIVersion:olm.operatorframework.io/v1,Controller:*true,BlockOwnerDeletion:*true,}\\n";
    let set = object_set(&format!(
        "[{{type: Progressing, status: 'True', reason: Retrying, observedGeneration: 1, message: \"{message}\"}}]"
    ));
    let rolling = failing("Retrying", &message.replace("\\n", "\n").replace("\\\"", "\""));
    insta::assert_snapshot!(why_extension(&[&rolling, &set]));
    let blocked = object_set(
        "[{type: Progressing, status: 'False', reason: Blocked, observedGeneration: 1, message: the following secrets are not immutable}]",
    );
    let of_set = target(ExplainedKind::ClusterObjectSet, "tea-2");
    insta::assert_snapshot!(text(&explanation(&[&blocked], &of_set)));
    let late = object_set(
        "[{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, observedGeneration: 1, message: Revision has not rolled out for 10 minute(s).}]",
    );
    assert!(text(&explanation(&[&late], &of_set)).contains("spec.progressDeadlineMinutes"));
    let archived = object_set(
        "[{type: Progressing, status: 'False', reason: Archived, observedGeneration: 1}]",
    )
    .replace("lifecycleState: Active", "lifecycleState: Archived");
    assert!(explanation(&[&archived], &of_set).is_healthy());
}

#[test]
fn crd_that_an_uninstallation_kept_has_the_name_of_its_extension() {
    let message = "revision object collisions in phase 1\nObject CustomResourceDefinition.apiextensions.k8s.io/v1 /pots.x.io\nAction: \"Collision\"\nProbes:\n- Progress: Succeeded\nConflicting Owner: nil\n";
    insta::assert_snapshot!(why_extension(&[&failing("Retrying", message)]));
}

#[test]
fn catalog_is_served_or_has_a_cause_with_a_remedy() {
    let why = |name: &str, text_of: &str| {
        text(&explanation(&[text_of], &target(ExplainedKind::ClusterCatalog, name)))
    };
    insta::assert_snapshot!(why("shop", CATALOGS));
    insta::assert_snapshot!(why("market", CATALOGS));
    let polling = CATALOGS.replace(
        "status: {conditions: [{type: Progressing, status: 'True', reason: Retrying",
        "status: {conditions: [{type: Serving, status: 'True', reason: Available}, {type: Progressing, status: 'True', reason: Retrying",
    );
    assert!(
        why("market", &polling).starts_with("ClusterCatalog market serves its previous content")
    );
    let off = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: closed}
spec: {availabilityMode: Unavailable}
";
    insta::assert_snapshot!(why("closed", off));
    let deleted = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: gone, deletionTimestamp: x, finalizers: [olm.operatorframework.io/delete-server-cache]}
";
    insta::assert_snapshot!(why("gone", deleted));
}

/// What is left of a deleted extension: a CustomResourceDefinition that waits for an object with a finalizer.
const LEFTOVERS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pots.x.io
  deletionTimestamp: x
  finalizers: [customresourcecleanup.apiextensions.k8s.io]
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
spec: {group: x.io, names: {kind: Pot}}
---
apiVersion: x.io/v1
kind: Pot
metadata: {name: green, namespace: garden, finalizers: [x.io/empty]}
---
apiVersion: x.io/v1
kind: Pot
metadata: {name: clean, namespace: garden}
";

#[test]
fn extension_whose_custom_resource_definition_is_being_deleted_does_not_work() {
    insta::assert_snapshot!(why_extension(&[&healthy(), LEFTOVERS]));
    let gone = LEFTOVERS.replace("deletionTimestamp: x", "generation: 1");
    assert!(
        explanation(&[&healthy(), &gone], &target(ExplainedKind::ClusterExtension, "tea"))
            .is_healthy()
    );
}

#[test]
fn stuck_deletion_names_finalizers_and_the_objects_that_are_waited_for() {
    let deleted = |finalizers: &str| {
        healthy().replace(
            "generation: 2}",
            &format!("generation: 2, deletionTimestamp: x, finalizers: [{finalizers}]}}"),
        )
    };
    insta::assert_snapshot!(why_extension(&[
        &deleted("olm.operatorframework.io/cleanup-unpack-cache"),
        LEFTOVERS
    ]));
    insta::assert_snapshot!(why_extension(&[
        &deleted("foregroundDeletion, x.io/mine, mainstay.dev/keep-crds"),
        LEFTOVERS
    ]));
    let held_set = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterObjectSet
metadata:
  name: tea-1
  deletionTimestamp: x
  finalizers: [x.io/hold]
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
";
    let of_controller = deleted("olm.operatorframework.io/cleanup-unpack-cache");
    let why = why_extension(&[&of_controller, held_set]);
    let cause = "because ClusterObjectSet tea-1 waits for its finalizers: x.io/hold";
    assert!(why.contains(cause), "{why}");
    let refused = "an object is to be kept: customresourcedefinitions.apiextensions.k8s.io \"pots.x.io\" is forbidden: User \"system:serviceaccount:olmv1-system:mainstay\" cannot patch resource \"customresourcedefinitions\" in API group \"apiextensions.k8s.io\" at the cluster scope";
    let waits = format!(
        "{held_set}status: {{conditions: [{{type: Progressing, status: 'True', reason: Retrying, message: {}}}]}}\n",
        serde_json::Value::from(refused)
    );
    for target in [
        target(ExplainedKind::ClusterExtension, "tea"),
        target(ExplainedKind::ClusterObjectSet, "tea-1"),
    ] {
        let why = text(&explanation(&[&of_controller, &waits], &target));
        assert!(why.contains(&format!("because {refused}\n")), "{why}");
        assert!(
            why.contains(
                "→ grant it: kubectl create clusterrole mainstay-customresourcedefinitions"
            ),
            "{why}"
        );
    }
    // The extension itself is gone.
    insta::assert_snapshot!(why_extension(&[LEFTOVERS]));
    let kept = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pots.x.io
  annotations: {helm.sh/resource-policy: keep}
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
";
    let of_tea = target(ExplainedKind::ClusterExtension, "tea");
    assert!(explanation(&[kept], &of_tea).is_healthy());
    let left = kept.replace("policy: keep", "policy: delete");
    assert!(!explanation(&[&left], &of_tea).is_healthy());
    let nothing = ClusterObjects::default();
    let unknown = explain(&nothing, &target(ExplainedKind::ClusterExtension, "tea")).unwrap_err();
    insta::assert_snapshot!(unknown.render());
}
