//! What is in the way is named, with the command that removes it.

use mainstay_cause::Cause;
use mainstay_explain::{Hidden, Kind, Target, World, explain};
use mainstay_object::Object;
use mainstay_yaml::{Options, documents};

const GROUP: &str = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: team}
spec: {targetNamespaces: [team]}
status: {namespaces: [team], lastUpdated: '2026-01-01T00:00:00Z'}
";
const CATALOG: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: cat, namespace: olm}
spec: {sourceType: grpc, image: 'x.io/cat:1'}
status: {connectionState: {lastObservedState: READY, address: 'cat.olm.svc:50051'}}
";

/// A Subscription with that status.
fn subscription(status: &str) -> String {
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

fn plan(status: &str) -> String {
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

fn version(status: &str) -> String {
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

fn objects(texts: &[&str]) -> Vec<Object> {
    texts
        .iter()
        .flat_map(|text| documents(text.as_bytes(), &Options::default()).collect::<Vec<_>>())
        .map(|document| document.unwrap().value)
        .filter(|value| !value.is_null())
        .map(|value| Object::from_value(value).unwrap())
        .collect()
}

fn told_of(target: &str, world: &World) -> String {
    let (kind, name) = target.split_once('/').unwrap();
    let kind: Kind = kind.parse().unwrap();
    let target = Target { kind, namespace: "team".to_owned(), name: name.to_owned() };
    match explain(world, &target) {
        Ok(answer) => {
            let mut text = match &answer.why {
                Some(why) => why.render(),
                None => format!("{} {}\n", answer.target, answer.standing),
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
    told_of(target, &World { objects: objects(texts), ..World::default() })
}

#[test]
fn nothing_is_said_where_everything_is_well() {
    let well = subscription(
        "{state: AtLatestKnown, installedCSV: anvil.v1, currentCSV: anvil.v1, lastUpdated: '2026-01-01T00:00:00Z', installPlanRef: {name: install-abcde}}",
    );
    let runs = version("{phase: Succeeded, reason: InstallSucceeded}");
    let done = plan("{phase: Complete}");
    let all = [GROUP, CATALOG, &well, &runs, &done];
    insta::assert_snapshot!(
        ["sub/anvil", "ip/install-abcde", "csv/anvil.v1"]
            .map(|target| explanation(target, &all))
            .concat()
    );
    let deprecated = well.replace("currentCSV", "conditions: [{type: ChannelDeprecated, status: 'True', message: take another}], catalogHealth: [{healthy: false, catalogSourceRef: {name: far, namespace: team}}], currentCSV");
    insta::assert_snapshot!(explanation("sub/anvil", &[GROUP, CATALOG, &deprecated, &runs, &done]));
}

#[test]
fn what_is_not_there_is_looked_for_elsewhere() {
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
    assert!("pod".parse::<Kind>().is_err());
    for word in [
        "subscriptions.operators.coreos.com",
        "SUB",
        "ClusterServiceVersion",
        "csvs",
        "catsrc",
        "ip",
    ] {
        word.parse::<Kind>().unwrap();
    }
}

#[test]
fn a_namespace_must_have_one_group_that_selects_something() {
    let subscribed = subscription(
        "{lastUpdated: '2026-01-01T00:00:00Z', conditions: [{type: ResolutionFailed, status: 'True', reason: ErrorPreventedResolution, message: 'found 0 operatorGroups, expected 1'}]}",
    );
    let everywhere = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: global, namespace: operators}
status: {namespaces: ['']}
";
    let second =
        GROUP.replace("name: og", "name: second, creationTimestamp: '2026-02-01T00:00:00Z'");
    let first = GROUP.replace("name: og", "name: og, creationTimestamp: '2026-01-01T00:00:00Z'");
    let scoped = GROUP.replace("targetNamespaces: [team]", "serviceAccountName: installer");
    let nobody = GROUP
        .replace("targetNamespaces: [team]", "selector: {matchLabels: {team: red}}")
        .replace("namespaces: [team], ", "");
    insta::assert_snapshot!(
        [
            explanation("sub/anvil", &[CATALOG, everywhere, &subscribed]),
            explanation("sub/anvil", &[CATALOG, &second, &first, &subscribed]),
            explanation(
                "sub/anvil",
                &[CATALOG, &scoped, &subscription("{state: UpgradePending, lastUpdated: x}")]
            ),
            explanation(
                "sub/anvil",
                &[CATALOG, &nobody, &subscription("{state: UpgradePending, lastUpdated: x}")]
            ),
        ]
        .join("\n")
    );
}

#[test]
fn a_catalog_that_cannot_be_asked_is_named_with_its_trouble() {
    let subscribed = subscription(
        "{lastUpdated: x, conditions: [{type: ResolutionFailed, status: 'True', reason: ErrorPreventedResolution, message: 'error using catalogsource olm/cat: failed to list bundles'}]}",
    );
    let down = CATALOG.replace(
        "lastObservedState: READY",
        "lastObservedState: TRANSIENT_FAILURE, lastConnect: '2026-01-01T00:00:00Z'",
    );
    let wrong = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: far, namespace: team}
spec: {sourceType: configmap, configMap: packages}
status: {reason: ConfigMapError, message: 'failed to get catalog config map packages: not found'}
";
    let new = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: new, namespace: team}
spec: {sourceType: grpc, address: 'x:1'}
";
    insta::assert_snapshot!(
        [
            explanation("sub/anvil", &[GROUP, &down, &subscribed]),
            explanation("sub/anvil", &[GROUP, wrong, &subscribed]),
            explanation("catalogsource/far", &[wrong]),
            explanation("catalogsource/new", &[new]),
        ]
        .join("\n")
    );
}

#[test]
fn what_the_resolver_says_stands_below_the_subscription() {
    let subscribed = subscription(
        "{lastUpdated: x, conditions: [{type: ResolutionFailed, status: 'True', reason: ConstraintsNotSatisfiable, message: 'constraints not satisfiable: long words'}]}",
    );
    let why = Cause::new("package `anvil` has no channel `stabel`")
        .remedy("set `spec.channel` of Subscription `anvil` to `stable`");
    let mut world = World { objects: objects(&[GROUP, CATALOG, &subscribed]), ..World::default() };
    let alone = told_of("sub/anvil", &world);
    world.resolved = true;
    let over = told_of("sub/anvil", &world);
    world.unresolved.insert("anvil".to_owned(), why);
    insta::assert_snapshot!([alone, over, told_of("sub/anvil", &world)].join("\n"));
}

#[test]
fn a_plan_says_what_it_waits_for() {
    let refers = subscription(
        "{state: UpgradePending, lastUpdated: x, currentCSV: anvil.v1, installPlanRef: {name: install-abcde}}",
    );
    let steps = "plan: [{status: Created, resource: {kind: Role, name: r}}, {status: Unknown, resource: {kind: ClusterServiceVersion, name: anvil.v1}}, {status: WaitingForApi, resource: {kind: CustomResourceDefinition, name: anvils.x.io}}]";
    let denied = "retrying execution due to error: error creating csv anvil.v1: clusterserviceversions.operators.coreos.com is forbidden: User \"system:serviceaccount:team:installer\" cannot create resource \"clusterserviceversions\" in API group \"operators.coreos.com\" in the namespace \"team\"";
    let strict = "error validating existing CRs against new CRD's schema for \"anvils.x.io\": error validating x.io/v1, Kind=Anvil \"team/big\"";
    let all = [
        "{phase: RequiresApproval}".to_owned(),
        format!("{{phase: Installing, message: '{}', {steps}}}", denied.replace('\'', "''")),
        format!("{{phase: Failed, message: '{}', conditions: [{{type: Installed, status: 'False', reason: InstallComponentFailed, message: x}}]}}", strict.replace('\'', "''")),
        "{phase: Planning, conditions: [{type: Resolved, status: 'False', message: no catalog has a bundle anvil.v1}]}".to_owned(),
        "{phase: Installing, bundleLookups: [{path: 'x.io/anvil:1', conditions: [{type: BundleLookupPending, status: 'True', reason: JobIncomplete, message: unpack job not completed}]}]}".to_owned(),
    ];
    let texts: Vec<String> = all
        .iter()
        .map(|status| explanation("sub/anvil", &[GROUP, CATALOG, &refers, &plan(status)]))
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
    insta::assert_snapshot!(explanation("ip/install-abcde", &[GROUP, &plan(&all[0])]));
    let gone = refers.replace("lastUpdated: x", "lastUpdated: x, conditions: [{type: InstallPlanMissing, status: 'True', reason: ReferencedInstallPlanNotFound}]");
    insta::assert_snapshot!(explanation("sub/anvil", &[GROUP, CATALOG, &gone]));
}

#[test]
fn a_version_says_what_it_lacks() {
    let lacks = "{phase: Pending, reason: RequirementsNotMet, message: x, requirementStatus: [{kind: CustomResourceDefinition, name: anvils.x.io, status: Present}, {kind: CustomResourceDefinition, name: chisels.x.io, status: NotPresent, message: CRD is not present}, {kind: ServiceAccount, name: anvil, status: PresentNotSatisfied, message: 'Policy rule not satisfied for service account', dependents: [{kind: PolicyRule, status: NotSatisfied, message: 'namespaced rule:{}'}]}]}";
    let refers = subscription(
        "{state: AtLatestKnown, lastUpdated: x, currentCSV: anvil.v1, installedCSV: anvil.v1, installPlanRef: {name: install-abcde}}",
    );
    insta::assert_snapshot!(
        [
            explanation(
                "sub/anvil",
                &[GROUP, CATALOG, &refers, &plan("{phase: Complete}"), &version(lacks)]
            ),
            explanation("csv/anvil.v1", &[GROUP, &version(lacks)]),
        ]
        .join("\n")
    );
}

#[test]
fn an_upgrade_that_is_held_back_says_by_whom_and_how_to_overrule() {
    let held = version(
        "{phase: Pending, reason: OperatorConditionNotUpgradeable, message: 'operator is not upgradeable: the operator is not upgradeable: a migration is running'}",
    );
    let before = version("{phase: Replacing, reason: BeingReplaced}")
        .replace("name: anvil.v1,", "name: anvil.v0,")
        .replace("replaces: anvil.v0", "replaces: ''");
    let said = "
apiVersion: operators.coreos.com/v2
kind: OperatorCondition
metadata: {name: anvil.v0, namespace: team}
spec: {conditions: [{type: Upgradeable, status: 'False', reason: Migrating, message: a migration is running}]}
";
    let refers = subscription(
        "{state: UpgradePending, lastUpdated: x, currentCSV: anvil.v1, installedCSV: anvil.v0, installPlanRef: {name: install-abcde}}",
    );
    insta::assert_snapshot!(
        [
            explanation(
                "sub/anvil",
                &[GROUP, CATALOG, &refers, &plan("{phase: Complete}"), &held, &before, said]
            ),
            explanation("csv/anvil.v0", &[GROUP, &held, &before, said]),
        ]
        .join("\n")
    );
}

#[test]
fn a_failed_version_says_what_to_do_about_its_reason() {
    let rival = version("{phase: Succeeded}").replace("name: anvil.v1,", "name: rival.v1,");
    let elsewhere = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: all, namespace: forge, annotations: {olm.providedAPIs: 'Anvil.v1.x.io,Tong.v1.x.io'}}
status: {namespaces: [''], lastUpdated: '2026-01-01T00:00:00Z'}
";
    let failed = |reason: &str, message: &str| {
        version(&format!("{{phase: Failed, reason: {reason}, message: '{message}'}}"))
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
        explanation("csv/anvil.v1", &[GROUP, &failed(reason, message), &rival, elsewhere])
    })
    .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_subscription_that_waits_for_the_bundle_of_another_one_names_it() {
    let other = subscription(
        "{conditions: [{type: BundleUnpacking, status: 'True', reason: JobIncomplete, message: 'unpacking anvil.v1'}]}",
    );
    let waits = subscription("{lastUpdated: '2026-01-01T00:00:00Z'}")
        .replace("name: anvil,", "name: tongs,");
    let text = explanation("subscription/tongs", &[GROUP, CATALOG, &waits, &other]);
    insta::assert_snapshot!(text);
}

#[test]
fn pods_that_do_not_start_are_named_with_their_reason() {
    let waits = version(
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
    let crashes = deployment.replace("reason: ImagePullBackOff", "reason: CrashLoopBackOff");
    insta::assert_snapshot!(
        [
            explanation("csv/anvil.v1", &[GROUP, &waits, deployment]),
            explanation("csv/anvil.v1", &[GROUP, &waits, &crashes]),
            explanation("csv/anvil.v1", &[GROUP, &waits]),
        ]
        .join("\n")
    );
}

#[test]
fn an_upgrade_whose_new_pod_does_not_start_names_that_pod_and_not_the_old_one() {
    let waits = version(
        "{phase: Installing, reason: InstallWaiting, message: 'installing: waiting for deployment anvil to become ready: deployment \"anvil\" waiting for 1 outdated replica(s) to be terminated'}",
    );
    let before = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: anvil.v0, namespace: team}
status: {phase: Replacing, reason: BeingReplaced, message: 'being replaced by csv: anvil.v1'}
";
    let subscribed = subscription(
        "{state: AtLatestKnown, installedCSV: anvil.v1, currentCSV: anvil.v1, lastUpdated: x, installPlanRef: {name: install-abcde}}",
    );
    let done = plan("{phase: Complete}");
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
    let new = |status: &str| {
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
        let text = explanation("sub/anvil", &[GROUP, CATALOG, &subscribed, &done, before, &waits, deployment, &new(status)]);
        assert!(!text.contains("outdated"), "{text}");
        assert!(!text.contains("→ wait"), "{text}");
        assert!(text.contains("anvil-1-b"), "{text}");
        assert!(!text.contains("anvil-0-a"), "{text}");
        text
    });
    insta::assert_snapshot!(texts.join("\n"));
    // The version that is being replaced leads to the same Pod.
    let old = explanation(
        "csv/anvil.v0",
        &[
            GROUP,
            before,
            &waits,
            deployment,
            &new(
                "containerStatuses: [{name: main, state: {waiting: {reason: ErrImagePull, message: 'not found'}}}]",
            ),
        ],
    );
    assert!(
        old.contains("container main of Pod anvil-1-b waits: ErrImagePull: not found"),
        "{old}"
    );
    // A Deployment whose update has come to its end is nobody's trouble.
    let settled =
        deployment.replace("replicas: 2, updatedReplicas: 1", "replicas: 1, updatedReplicas: 1");
    let text = explanation("csv/anvil.v1", &[GROUP, before, &waits, &settled]);
    assert!(!text.contains("is being updated"), "{text}");
}

/// A catalog in the catalog namespace that no connection leads to.
const FAR: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: far, namespace: olm}
spec: {sourceType: grpc, address: '192.0.2.1:50051'}
status: {connectionState: {lastObservedState: CONNECTING, address: '192.0.2.1:50051', lastConnect: '2026-01-01T00:00:00Z'}}
";

#[test]
fn another_catalog_that_nobody_has_an_answer_of_is_named_while_nothing_is_chosen() {
    let waits = subscription(
        "{lastUpdated: x, conditions: [{type: CatalogSourcesUnhealthy, status: 'False', reason: AllCatalogSourcesHealthy}], catalogHealth: [{healthy: true, catalogSourceRef: {name: cat, namespace: olm}}, {healthy: true, catalogSourceRef: {name: far, namespace: olm}}]}",
    );
    let failed = subscription(
        "{lastUpdated: x, conditions: [{type: ResolutionFailed, status: 'True', reason: ErrorPreventedResolution, message: 'failed to populate resolver cache from source far/olm: failed to list bundles: rpc error'}]}",
    );
    let lost = FAR.replace("CONNECTING", "TRANSIENT_FAILURE");
    let elsewhere = FAR.replace("namespace: olm", "namespace: west");
    let runs = version("{phase: Succeeded}");
    let well = subscription(
        "{state: AtLatestKnown, installedCSV: anvil.v1, currentCSV: anvil.v1, lastUpdated: x}",
    );
    let waiting = explanation("sub/anvil", &[GROUP, CATALOG, FAR, &waits]);
    let prevented = explanation("sub/anvil", &[GROUP, CATALOG, &lost, &failed]);
    for text in [&waiting, &prevented] {
        assert!(text.contains("catalog olm/far cannot be asked"), "{text}");
        assert!(!text.contains("→ wait") && !text.contains("connected at"), "{text}");
    }
    insta::assert_snapshot!(
        [
            waiting,
            prevented,
            // Nobody there sees that one.
            explanation("sub/anvil", &[GROUP, CATALOG, &elsewhere, &waits]),
            // What runs waits for nobody.
            explanation("sub/anvil", &[GROUP, CATALOG, &lost, &well, &runs]),
        ]
        .join("\n")
    );
}

#[test]
fn what_could_not_be_listed_is_said_and_is_not_taken_for_absent() {
    let hidden = |kind: &str, seen_in: &[&str]| Hidden {
        kind: kind.to_owned(),
        seen_in: seen_in.iter().map(|namespace| (*namespace).to_owned()).collect(),
    };
    let pending = "{state: UpgradePending, installedCSV: anvil.v0, currentCSV: anvil.v1, lastUpdated: x, installPlanRef: {name: install-abcde}, catalogHealth: [{healthy: false, catalogSourceRef: {name: cat, namespace: olm}}]}";
    let waits = plan("{phase: RequiresApproval}");
    let world = |status: &str, hidden: Vec<Hidden>| World {
        objects: objects(&[GROUP, &subscription(status), &waits]),
        hidden,
        ..World::default()
    };
    let elsewhere = || vec![hidden("OperatorGroup", &["team"]), hidden("CatalogSource", &["team"])];
    let everything = ["OperatorGroup", "CatalogSource", "InstallPlan", "ClusterServiceVersion"]
        .map(|kind| hidden(kind, &[]));
    let text = [
        told_of("sub/anvil", &world(pending, elsewhere())),
        told_of(
            "sub/anvil",
            &world(&pending.replace("healthy: false", "healthy: true"), elsewhere()),
        ),
        told_of("sub/anvil", &world(pending, everything.to_vec())),
        told_of("csv/anvil.v1", &world(pending, everything.to_vec())),
    ]
    .join("\n");
    assert!(!text.contains("there is no"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_copy_that_has_the_name_of_the_wanted_version_is_named() {
    let copy = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: anvil.v1, namespace: team, labels: {olm.copiedFrom: operators}}
status: {phase: Succeeded, reason: Copied}
";
    let wants = subscription(
        "{state: AtLatestKnown, currentCSV: anvil.v1, installedCSV: anvil.v1, lastUpdated: '2026-01-01T00:00:00Z'}",
    );
    let world = World { objects: objects(&[GROUP, CATALOG, &wants, copy]), ..World::default() };
    let ask = |kind, name: &str| {
        let target = Target { kind, namespace: "team".to_owned(), name: name.to_owned() };
        explain(&world, &target).unwrap()
    };
    let why = ask(Kind::Subscription, "anvil").why.unwrap().render();
    for words in [
        "the name anvil.v1 is taken by the copy of ClusterServiceVersion operators/anvil.v1",
        "watches namespace team already",
        "kubectl -n team delete subscription anvil",
        "mainstay uninstall anvil -n operators --dry-run",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
    let copied = ask(Kind::ClusterServiceVersion, "anvil.v1");
    assert!(copied.is_healthy() && copied.standing.starts_with("is a copy"), "{copied:?}");
    assert_eq!(copied.notes, ["ask about the original: mainstay why csv/anvil.v1 -n operators"]);
}

#[test]
fn a_catalog_that_serves_its_last_content_is_in_nobodys_way() {
    let broken = |state: &str| {
        CATALOG.replace(
            "lastObservedState: READY, address: 'cat.olm.svc:50051'}",
            &format!("lastObservedState: {state}}}, reason: RegistryServerError, message: 'a.yaml:3:1: no'"),
        )
    };
    let runs = |healthy: bool| {
        subscription(&format!(
            "{{state: AtLatestKnown, currentCSV: anvil.v1, installedCSV: anvil.v1, lastUpdated: '2026-01-01T00:00:00Z', \
             catalogHealth: [{{healthy: {healthy}, catalogSourceRef: {{name: cat, namespace: olm}}}}]}}"
        ))
    };
    let well = version("{phase: Succeeded, reason: InstallSucceeded}");
    for state in ["READY", "TRANSIENT_FAILURE"] {
        let look = |healthy| {
            let texts = [GROUP, &broken(state), &runs(healthy), &well];
            let world = World { objects: objects(&texts), ..World::default() };
            let target = Target {
                kind: Kind::Subscription,
                namespace: "team".to_owned(),
                name: "anvil".to_owned(),
            };
            explain(&world, &target).unwrap()
        };
        let answer = look(true);
        assert!(answer.is_healthy(), "{answer:?}");
        let note = "the newest content of catalog olm/cat cannot be read, and what it served before counts: a.yaml:3:1: no";
        assert_eq!(answer.notes, [note]);
        // Without any content it is in the way.
        let why = look(false).why.unwrap().render();
        assert!(why.contains("catalog olm/cat cannot be asked"), "{why}");
    }
}
