//! Explanations of objects: the causes, each with the command that resolves it.

use mainstay_cause::Cause;
use mainstay_explain::{ClusterObjects, ExplainedKind, ExplainedObject, HiddenKind, explain};
use mainstay_object::Object;
use mainstay_yaml::{Options, documents};

pub(crate) const GROUP: &str = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: team}
spec: {targetNamespaces: [team]}
status: {namespaces: [team], lastUpdated: '2026-01-01T00:00:00Z'}
";
pub(crate) const CATALOG: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: cat, namespace: olm}
spec: {sourceType: grpc, image: 'x.io/cat:1'}
status: {connectionState: {lastObservedState: READY, address: 'cat.olm.svc:50051'}}
";

/// A Subscription with a status.
pub(crate) fn subscription(status: &str) -> String {
    format!(
        "
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {{name: anvil, namespace: team}}
spec: {{name: anvil, channel: stable, source: cat, sourceNamespace: olm}}
status: {status}
"
    )
}

fn install_plan(status: &str) -> String {
    format!(
        "
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {{name: install-abcde, namespace: team}}
spec: {{clusterServiceVersionNames: [anvil.v1, chisel.v3], approved: false, approval: Manual}}
status: {status}
"
    )
}

pub(crate) fn csv(status: &str) -> String {
    format!(
        "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {{name: anvil.v1, namespace: team}}
spec:
  replaces: anvil.v0
  installModes: [{{type: OwnNamespace, supported: true}}, {{type: AllNamespaces, supported: false}}]
  customresourcedefinitions:
    owned: [{{name: anvils.x.io, kind: Anvil, version: v1}}]
    required: [{{name: chisels.x.io, kind: Chisel, version: v1}}]
  install: {{strategy: deployment, spec: {{deployments: [{{name: anvil}}]}}}}
status: {status}
"
    )
}

pub(crate) fn objects(texts: &[&str]) -> Vec<Object> {
    texts
        .iter()
        .flat_map(|text| documents(text.as_bytes(), &Options::default()).collect::<Vec<_>>())
        .map(|document| document.unwrap().value)
        .filter(|value| !value.is_null())
        .map(|value| Object::from_value(value).unwrap())
        .collect()
}

fn explanation_in(target: &str, cluster: &ClusterObjects) -> String {
    let (kind, name) = target.split_once('/').unwrap();
    let kind: ExplainedKind = kind.parse().unwrap();
    let target = ExplainedObject { kind, namespace: "team".to_owned(), name: name.to_owned() };
    match explain(cluster, &target) {
        Ok(answer) => {
            let mut text = match &answer.cause {
                Some(why) => why.render(),
                None => format!("{} {}\n", answer.target, answer.state),
            };
            for note in &answer.notes {
                text.push_str("note: ");
                text.push_str(note);
                text.push('\n');
            }
            text
        }
        Err(cause) => format!("error: {}", cause.render()),
    }
}

pub(crate) fn explanation(target: &str, texts: &[&str]) -> String {
    explanation_in(target, &ClusterObjects { objects: objects(texts), ..ClusterObjects::default() })
}

#[test]
fn healthy_objects_have_no_causes() {
    let healthy = subscription(
        "{state: AtLatestKnown, installedCSV: anvil.v1, currentCSV: anvil.v1, lastUpdated: '2026-01-01T00:00:00Z', installPlanRef: {name: install-abcde}}",
    );
    let succeeded = csv("{phase: Succeeded, reason: InstallSucceeded}");
    let complete = install_plan("{phase: Complete}");
    let texts = [GROUP, CATALOG, &healthy, &succeeded, &complete];
    insta::assert_snapshot!(
        ["sub/anvil", "ip/install-abcde", "csv/anvil.v1"]
            .map(|target| explanation(target, &texts))
            .concat()
    );
    let deprecated = healthy.replace("currentCSV", "conditions: [{type: ChannelDeprecated, status: 'True', message: take another}], catalogHealth: [{healthy: false, catalogSourceRef: {name: far, namespace: team}}], currentCSV");
    insta::assert_snapshot!(explanation(
        "sub/anvil",
        &[GROUP, CATALOG, &deprecated, &succeeded, &complete]
    ));
}

#[test]
fn missing_object_is_looked_up_in_other_namespaces() {
    let subscribed = subscription("{}");
    let other = subscribed.replace("namespace: team", "namespace: west");
    insta::assert_snapshot!(
        [
            explanation("sub/anvil", &[&other]),
            explanation("sub/hammer", &[&subscribed]),
            explanation("csv/anvil.v1", &[&subscribed]),
        ]
        .concat()
    );
    assert!("pod".parse::<ExplainedKind>().is_err());
    for word in [
        "subscriptions.operators.coreos.com",
        "SUB",
        "ClusterServiceVersion",
        "csvs",
        "catsrc",
        "ip",
    ] {
        word.parse::<ExplainedKind>().unwrap();
    }
}

#[test]
fn namespace_needs_exactly_one_operator_group_with_target_namespaces() {
    let subscribed = subscription(
        "{lastUpdated: '2026-01-01T00:00:00Z', conditions: [{type: ResolutionFailed, status: 'True', reason: ErrorPreventedResolution, message: 'found 0 operatorGroups, expected 1'}]}",
    );
    let global = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: global, namespace: operators}
status: {namespaces: ['']}
";
    let second =
        GROUP.replace("name: og", "name: second, creationTimestamp: '2026-02-01T00:00:00Z'");
    let first = GROUP.replace("name: og", "name: og, creationTimestamp: '2026-01-01T00:00:00Z'");
    let scoped = GROUP.replace("targetNamespaces: [team]", "serviceAccountName: installer");
    let selects_nothing = GROUP
        .replace("targetNamespaces: [team]", "selector: {matchLabels: {team: red}}")
        .replace("namespaces: [team], ", "");
    insta::assert_snapshot!(
        [
            explanation("sub/anvil", &[CATALOG, global, &subscribed]),
            explanation("sub/anvil", &[CATALOG, &second, &first, &subscribed]),
            explanation(
                "sub/anvil",
                &[CATALOG, &scoped, &subscription("{state: UpgradePending, lastUpdated: x}")]
            ),
            explanation(
                "sub/anvil",
                &[
                    CATALOG,
                    &selects_nothing,
                    &subscription("{state: UpgradePending, lastUpdated: x}")
                ]
            ),
        ]
        .join("\n")
    );
}

#[test]
fn unavailable_catalog_source_is_a_cause_with_its_reason() {
    let subscribed = subscription(
        "{lastUpdated: x, conditions: [{type: ResolutionFailed, status: 'True', reason: ErrorPreventedResolution, message: 'error using catalogsource olm/cat: failed to list bundles'}]}",
    );
    let unreachable = CATALOG.replace(
        "lastObservedState: READY",
        "lastObservedState: TRANSIENT_FAILURE, lastConnect: '2026-01-01T00:00:00Z'",
    );
    let no_config_map = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: far, namespace: team}
spec: {sourceType: configmap, configMap: packages}
status: {reason: ConfigMapError, message: 'failed to get catalog config map packages: not found'}
";
    let no_status = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: new, namespace: team}
spec: {sourceType: grpc, address: 'x:1'}
";
    insta::assert_snapshot!(
        [
            explanation("sub/anvil", &[GROUP, &unreachable, &subscribed]),
            explanation("sub/anvil", &[GROUP, no_config_map, &subscribed]),
            explanation("catalogsource/far", &[no_config_map]),
            explanation("catalogsource/new", &[no_status]),
        ]
        .join("\n")
    );
}

#[test]
fn resolver_failure_is_a_cause_of_the_subscription() {
    let subscribed = subscription(
        "{lastUpdated: x, conditions: [{type: ResolutionFailed, status: 'True', reason: ConstraintsNotSatisfiable, message: 'constraints not satisfiable: long words'}]}",
    );
    let failure = Cause::new("package `anvil` has no channel `stabel`")
        .remedy("set `spec.channel` of Subscription `anvil` to `stable`");
    let mut cluster = ClusterObjects {
        objects: objects(&[GROUP, CATALOG, &subscribed]),
        ..ClusterObjects::default()
    };
    let without_resolver = explanation_in("sub/anvil", &cluster);
    cluster.resolved = true;
    let resolved = explanation_in("sub/anvil", &cluster);
    cluster.unresolved.insert("anvil".to_owned(), failure);
    insta::assert_snapshot!(
        [without_resolver, resolved, explanation_in("sub/anvil", &cluster)].join("\n")
    );
}

#[test]
fn install_plan_explains_each_phase_before_complete() {
    let subscribed = subscription(
        "{state: UpgradePending, lastUpdated: x, currentCSV: anvil.v1, installPlanRef: {name: install-abcde}}",
    );
    let steps = "plan: [{status: Created, resource: {kind: Role, name: r}}, {status: Unknown, resource: {kind: ClusterServiceVersion, name: anvil.v1}}, {status: WaitingForApi, resource: {kind: CustomResourceDefinition, name: anvils.x.io}}]";
    let denied = "retrying execution due to error: error creating csv anvil.v1: clusterserviceversions.operators.coreos.com is forbidden: User \"system:serviceaccount:team:installer\" cannot create resource \"clusterserviceversions\" in API group \"operators.coreos.com\" in the namespace \"team\"";
    let strict = "error validating existing CRs against new CRD's schema for \"anvils.x.io\": error validating x.io/v1, Kind=Anvil \"team/big\"";
    let statuses = [
        "{phase: RequiresApproval}".to_owned(),
        format!("{{phase: Installing, message: '{}', {steps}}}", denied.replace('\'', "''")),
        format!("{{phase: Failed, message: '{}', conditions: [{{type: Installed, status: 'False', reason: InstallComponentFailed, message: x}}]}}", strict.replace('\'', "''")),
        "{phase: Planning, conditions: [{type: Resolved, status: 'False', message: no catalog has a bundle anvil.v1}]}".to_owned(),
        "{phase: Installing, bundleLookups: [{path: 'x.io/anvil:1', conditions: [{type: BundleLookupPending, status: 'True', reason: JobIncomplete, message: unpack job not completed}]}]}".to_owned(),
    ];
    let texts: Vec<String> = statuses
        .iter()
        .map(|status| {
            explanation("sub/anvil", &[GROUP, CATALOG, &subscribed, &install_plan(status)])
        })
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
    insta::assert_snapshot!(explanation("ip/install-abcde", &[GROUP, &install_plan(&statuses[0])]));
    let without_plan = subscribed.replace("lastUpdated: x", "lastUpdated: x, conditions: [{type: InstallPlanMissing, status: 'True', reason: ReferencedInstallPlanNotFound}]");
    insta::assert_snapshot!(explanation("sub/anvil", &[GROUP, CATALOG, &without_plan]));
}

#[test]
fn pending_csv_names_requirements_that_are_not_met() {
    let pending = "{phase: Pending, reason: RequirementsNotMet, message: x, requirementStatus: [{kind: CustomResourceDefinition, name: anvils.x.io, status: Present}, {kind: CustomResourceDefinition, name: chisels.x.io, status: NotPresent, message: CRD is not present}, {kind: ServiceAccount, name: anvil, status: PresentNotSatisfied, message: 'Policy rule not satisfied for service account', dependents: [{kind: PolicyRule, status: NotSatisfied, message: 'namespaced rule:{}'}]}]}";
    let subscribed = subscription(
        "{state: AtLatestKnown, lastUpdated: x, currentCSV: anvil.v1, installedCSV: anvil.v1, installPlanRef: {name: install-abcde}}",
    );
    insta::assert_snapshot!(
        [
            explanation(
                "sub/anvil",
                &[GROUP, CATALOG, &subscribed, &install_plan("{phase: Complete}"), &csv(pending)]
            ),
            explanation("csv/anvil.v1", &[GROUP, &csv(pending)]),
        ]
        .join("\n")
    );
}

#[test]
fn operator_condition_that_blocks_an_upgrade_is_named_with_its_override() {
    let not_upgradeable = csv(
        "{phase: Pending, reason: OperatorConditionNotUpgradeable, message: 'operator is not upgradeable: the operator is not upgradeable: a migration is running'}",
    );
    let replaced = csv("{phase: Replacing, reason: BeingReplaced}")
        .replace("name: anvil.v1,", "name: anvil.v0,")
        .replace("replaces: anvil.v0", "replaces: ''");
    let operator_condition = "
apiVersion: operators.coreos.com/v2
kind: OperatorCondition
metadata: {name: anvil.v0, namespace: team}
spec: {conditions: [{type: Upgradeable, status: 'False', reason: Migrating, message: a migration is running}]}
";
    let subscribed = subscription(
        "{state: UpgradePending, lastUpdated: x, currentCSV: anvil.v1, installedCSV: anvil.v0, installPlanRef: {name: install-abcde}}",
    );
    insta::assert_snapshot!(
        [
            explanation(
                "sub/anvil",
                &[
                    GROUP,
                    CATALOG,
                    &subscribed,
                    &install_plan("{phase: Complete}"),
                    &not_upgradeable,
                    &replaced,
                    operator_condition
                ]
            ),
            explanation("csv/anvil.v0", &[GROUP, &not_upgradeable, &replaced, operator_condition]),
        ]
        .join("\n")
    );
}

#[test]
fn failed_csv_has_a_remedy_for_each_reason() {
    let rival = csv("{phase: Succeeded}").replace("name: anvil.v1,", "name: rival.v1,");
    let other_group = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: all, namespace: forge, annotations: {olm.providedAPIs: 'Anvil.v1.x.io,Tong.v1.x.io'}}
status: {namespaces: [''], lastUpdated: '2026-01-01T00:00:00Z'}
";
    let failed = |reason: &str, message: &str| {
        csv(&format!("{{phase: Failed, reason: {reason}, message: '{message}'}}"))
    };
    let texts: Vec<String> = [
        ("UnsupportedOperatorGroup", "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces"),
        ("OwnerConflict", "conflicting CRD owner in namespace"),
        ("CannotModifyStaticOperatorGroupProvidedAPIs", "static provided api operatorgroup cannot be modified by these apis"),
        ("InstallComponentFailed", "install strategy failed: Deployment.apps \"anvil\" is invalid"),
        ("InstallComponentFailedNoRetry", "deployments.apps \"anvil\" is forbidden: User \"system:serviceaccount:team:installer\" cannot get resource \"deployments\" in API group \"apps\" in the namespace \"team\""),
        ("InvalidInstallModes", "InstallMode list contains duplicates"),
        ("InterOperatorGroupOwnerConflict", "intersecting operatorgroups provide the same apis"),
    ]
    .iter()
    .map(|(reason, message)| {
        explanation("csv/anvil.v1", &[GROUP, &failed(reason, message), &rival, other_group])
    })
    .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn subscription_waits_for_bundle_unpacking_of_another_subscription() {
    let other = subscription(
        "{conditions: [{type: BundleUnpacking, status: 'True', reason: JobIncomplete, message: 'unpacking anvil.v1'}]}",
    );
    let waits = subscription("{lastUpdated: '2026-01-01T00:00:00Z'}")
        .replace("name: anvil,", "name: tongs,");
    let text = explanation("subscription/tongs", &[GROUP, CATALOG, &waits, &other]);
    insta::assert_snapshot!(text);
}

#[test]
fn pods_that_do_not_start_are_causes_of_the_csv() {
    let installing = csv(
        "{phase: Installing, reason: InstallWaiting, message: 'installing: waiting for deployment anvil to become ready'}",
    );
    let deployment = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: anvil, namespace: team}
spec: {replicas: 2, selector: {matchLabels: {app: anvil}}}
status: {replicas: 2, conditions: [{type: Available, status: 'False'}, {type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: 'ReplicaSet \"anvil-1\" has timed out progressing.'}]}
---
apiVersion: v1
kind: Pod
metadata: {name: anvil-1-a, namespace: team, labels: {app: anvil}}
status: {phase: Pending, containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image \"x.io/anvil:1\"'}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: anvil-1-b, namespace: team, labels: {app: anvil}}
status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', message: 0/1 nodes are available}]}
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: team, labels: {app: other}}
status: {phase: Pending}
";
    let crash_loop = deployment.replace("reason: ImagePullBackOff", "reason: CrashLoopBackOff");
    insta::assert_snapshot!(
        [
            explanation("csv/anvil.v1", &[GROUP, &installing, deployment]),
            explanation("csv/anvil.v1", &[GROUP, &installing, &crash_loop]),
            explanation("csv/anvil.v1", &[GROUP, &installing]),
        ]
        .join("\n")
    );
}

#[test]
fn upgrade_names_the_new_pod_that_does_not_start_and_not_the_old_one() {
    let installing = csv(
        "{phase: Installing, reason: InstallWaiting, message: 'installing: waiting for deployment anvil to become ready: deployment \"anvil\" waiting for 1 outdated replica(s) to be terminated'}",
    );
    let replaced = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: anvil.v0, namespace: team}
status: {phase: Replacing, reason: BeingReplaced, message: 'being replaced by csv: anvil.v1'}
";
    let subscribed = subscription(
        "{state: AtLatestKnown, installedCSV: anvil.v1, currentCSV: anvil.v1, lastUpdated: x, installPlanRef: {name: install-abcde}}",
    );
    let complete = install_plan("{phase: Complete}");
    let deployment = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: anvil, namespace: team, generation: 2}
spec: {replicas: 1, selector: {matchLabels: {app: anvil}}}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: ReplicaSetUpdated}]}
---
apiVersion: v1
kind: Pod
metadata: {name: anvil-0-a, namespace: team, labels: {app: anvil}, creationTimestamp: '2026-01-01T00:00:00Z'}
status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}
";
    let new_pod = |status: &str| {
        format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: anvil-1-b, namespace: team, labels: {{app: anvil}}, creationTimestamp: '2026-01-02T00:00:00Z'}}
spec: {{serviceAccountName: smith, containers: [{{name: main, image: 'x.io/anvil:1'}}]}}
status: {{phase: Pending, {status}}}
"
        )
    };
    let texts = [
        "containerStatuses: [{name: main, state: {waiting: {reason: ErrImagePull, message: 'not found'}}}]",
        "containerStatuses: [{name: main, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image \"x.io/anvil:1\"'}}}]",
        "containerStatuses: [{name: main, state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}}}]",
        "conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/1 nodes are available: 1 Insufficient memory.'}]",
    ]
    .map(|status| {
        let text = explanation("sub/anvil", &[GROUP, CATALOG, &subscribed, &complete, replaced, &installing, deployment, &new_pod(status)]);
        assert!(!text.contains("outdated"), "{text}");
        assert!(!text.contains("→ wait"), "{text}");
        assert!(text.contains("anvil-1-b"), "{text}");
        assert!(!text.contains("anvil-0-a"), "{text}");
        text
    });
    insta::assert_snapshot!(texts.join("\n"));
    // The replaced ClusterServiceVersion leads to the same Pod.
    let explanation_of_replaced = explanation(
        "csv/anvil.v0",
        &[
            GROUP,
            replaced,
            &installing,
            deployment,
            &new_pod(
                "containerStatuses: [{name: main, state: {waiting: {reason: ErrImagePull, message: 'not found'}}}]",
            ),
        ],
    );
    assert!(
        explanation_of_replaced
            .contains("container main of Pod anvil-1-b waits: ErrImagePull: not found"),
        "{explanation_of_replaced}"
    );
    // A Deployment whose rollout is complete is no cause.
    let rolled_out =
        deployment.replace("replicas: 2, updatedReplicas: 1", "replicas: 1, updatedReplicas: 1");
    let text = explanation("csv/anvil.v1", &[GROUP, replaced, &installing, &rolled_out]);
    assert!(!text.contains("is being updated"), "{text}");
}

/// A catalog in the global namespace whose registry does not respond.
const FAR: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: far, namespace: olm}
spec: {sourceType: grpc, address: '192.0.2.1:50051'}
status: {connectionState: {lastObservedState: CONNECTING, address: '192.0.2.1:50051', lastConnect: '2026-01-01T00:00:00Z'}}
";

#[test]
fn other_unhealthy_catalogs_are_causes_while_nothing_is_resolved() {
    let unresolved = subscription(
        "{lastUpdated: x, conditions: [{type: CatalogSourcesUnhealthy, status: 'False', reason: AllCatalogSourcesHealthy}], catalogHealth: [{healthy: true, catalogSourceRef: {name: cat, namespace: olm}}, {healthy: true, catalogSourceRef: {name: far, namespace: olm}}]}",
    );
    let failed = subscription(
        "{lastUpdated: x, conditions: [{type: ResolutionFailed, status: 'True', reason: ErrorPreventedResolution, message: 'failed to populate resolver cache from source far/olm: failed to list bundles: rpc error'}]}",
    );
    let unreachable = FAR.replace("CONNECTING", "TRANSIENT_FAILURE");
    let in_other_namespace = FAR.replace("namespace: olm", "namespace: west");
    let succeeded = csv("{phase: Succeeded}");
    let healthy = subscription(
        "{state: AtLatestKnown, installedCSV: anvil.v1, currentCSV: anvil.v1, lastUpdated: x}",
    );
    let text_unresolved = explanation("sub/anvil", &[GROUP, CATALOG, FAR, &unresolved]);
    let text_failed = explanation("sub/anvil", &[GROUP, CATALOG, &unreachable, &failed]);
    for text in [&text_unresolved, &text_failed] {
        assert!(text.contains("CatalogSource olm/far is not available"), "{text}");
        assert!(!text.contains("→ wait") && !text.contains("connected at"), "{text}");
    }
    insta::assert_snapshot!(
        [
            text_unresolved,
            text_failed,
            // The namespace does not see that catalog.
            explanation("sub/anvil", &[GROUP, CATALOG, &in_other_namespace, &unresolved]),
            // A Subscription whose ClusterServiceVersion runs does not wait for it.
            explanation("sub/anvil", &[GROUP, CATALOG, &unreachable, &healthy, &succeeded]),
        ]
        .join("\n")
    );
}

#[test]
fn kinds_that_may_not_be_listed_are_noted_and_not_reported_missing() {
    let hidden = |kind: &str, seen_in: &[&str]| HiddenKind {
        kind: kind.to_owned(),
        readable_namespaces: seen_in.iter().map(|namespace| (*namespace).to_owned()).collect(),
    };
    let pending = "{state: UpgradePending, installedCSV: anvil.v0, currentCSV: anvil.v1, lastUpdated: x, installPlanRef: {name: install-abcde}, catalogHealth: [{healthy: false, catalogSourceRef: {name: cat, namespace: olm}}]}";
    let requires_approval = install_plan("{phase: RequiresApproval}");
    let cluster = |status: &str, hidden: Vec<HiddenKind>| ClusterObjects {
        objects: objects(&[GROUP, &subscription(status), &requires_approval]),
        hidden,
        ..ClusterObjects::default()
    };
    let cluster_wide_kinds =
        || vec![hidden("OperatorGroup", &["team"]), hidden("CatalogSource", &["team"])];
    let all_kinds = ["OperatorGroup", "CatalogSource", "InstallPlan", "ClusterServiceVersion"]
        .map(|kind| hidden(kind, &[]));
    let text = [
        explanation_in("sub/anvil", &cluster(pending, cluster_wide_kinds())),
        explanation_in(
            "sub/anvil",
            &cluster(&pending.replace("healthy: false", "healthy: true"), cluster_wide_kinds()),
        ),
        explanation_in("sub/anvil", &cluster(pending, all_kinds.to_vec())),
        explanation_in("csv/anvil.v1", &cluster(pending, all_kinds.to_vec())),
    ]
    .join("\n");
    assert!(!text.contains("there is no"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn copied_csv_with_the_name_of_the_wanted_csv_is_a_cause() {
    let copy = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: anvil.v1, namespace: team, labels: {olm.copiedFrom: operators}}
status: {phase: Succeeded, reason: Copied}
";
    let subscribed = subscription(
        "{state: AtLatestKnown, currentCSV: anvil.v1, installedCSV: anvil.v1, lastUpdated: '2026-01-01T00:00:00Z'}",
    );
    let cluster = ClusterObjects {
        objects: objects(&[GROUP, CATALOG, &subscribed, copy]),
        ..ClusterObjects::default()
    };
    let explain_object = |kind, name: &str| {
        let target = ExplainedObject { kind, namespace: "team".to_owned(), name: name.to_owned() };
        explain(&cluster, &target).unwrap()
    };
    let cause = explain_object(ExplainedKind::Subscription, "anvil").cause.unwrap().render();
    for words in [
        "the copy of ClusterServiceVersion operators/anvil.v1 has the name anvil.v1",
        "watches namespace team already",
        "kubectl -n team delete subscription anvil",
        "mainstay uninstall anvil -n operators --dry-run",
    ] {
        assert!(cause.contains(words), "{words}: {cause}");
    }
    let copied = explain_object(ExplainedKind::ClusterServiceVersion, "anvil.v1");
    assert!(copied.is_healthy() && copied.state.starts_with("is a copy"), "{copied:?}");
    assert_eq!(copied.notes, ["explain the original: mainstay why csv/anvil.v1 -n operators"]);
}
