#![expect(clippy::large_stack_arrays, reason = "tables of whole worlds, in tests only")]
use super::*;
use crate::csv::serving::certificate::Certified;
use crate::csv::serving::seen::ApiService;
use crate::facts::{Api, Crd, Csv, Deployment};
use mainstay_api::{InstallMode, InstallModeType};
use mainstay_object::Object;
use serde_json::{Value, json};

/// A world in which a version of one Deployment and one definition is all right.
struct Stage {
    csv: ClusterServiceVersion,
    groups: Vec<Arc<OperatorGroup>>,
    elsewhere: Vec<Arc<OperatorGroup>>,
    seen: Observed,
    deployments: BTreeMap<String, Arc<Deployment>>,
}

fn group(namespace: &str, targets: &[&str], provided: &str) -> Arc<OperatorGroup> {
    let mut group = OperatorGroup::new(namespace, "og");
    group.spec.target_namespaces = targets.iter().map(|it| (*it).to_owned()).collect();
    group.status.namespaces.clone_from(&group.spec.target_namespaces);
    group.metadata.annotations.insert(names::PROVIDED_APIS.to_owned(), provided.to_owned());
    Arc::new(group)
}

fn deployment() -> Deployment {
    Deployment {
        spec_hash: Some("h".into()),
        observed: true,
        replicas: (1, 1),
        available: Some(("True".into(), String::new())),
        template_annotations: [
            (names::OPERATOR_GROUP.to_owned(), "og".to_owned()),
            (names::OPERATOR_NAMESPACE.to_owned(), "ns".to_owned()),
            (names::TARGET_NAMESPACES.to_owned(), "ns".to_owned()),
        ]
        .into(),
        ..Deployment::default()
    }
}

impl Stage {
    fn at(phase: CsvPhase, reason: CsvReason, message: &str) -> Self {
        let object = Object::from_value(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "a.v2", "namespace": "ns", "uid": "me",
                "finalizers": [names::CSV_CLEANUP_FINALIZER],
                "annotations": {
                    names::OPERATOR_GROUP: "og", names::OPERATOR_NAMESPACE: "ns",
                    names::TARGET_NAMESPACES: "ns",
                },
            },
            "spec": {
                "displayName": "A", "replaces": "a.v1",
                "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "d", "spec": {}}]}},
                "customresourcedefinitions": {"owned": [{"name": "as.g", "version": "v1", "kind": "A"}]},
            },
        }))
        .unwrap();
        let mut csv = ClusterServiceVersion::from_object(&object).unwrap();
        csv.spec.install_modes =
            vec![InstallMode { kind: InstallModeType::OwnNamespace, supported: true }];
        csv.status.phase = phase;
        csv.status.reason = reason;
        csv.status.message = message.to_owned();
        csv.status.last_transition_time = Some(time(0));
        let crd = Crd {
            uid: "crd".into(),
            versions: vec![("v1".into(), true)],
            established: true,
            ..Crd::default()
        };
        let seen =
            Observed { crds: [("as.g".to_owned(), Arc::new(crd))].into(), ..Observed::default() };
        csv.status.requirement_status = requirements::check(&csv, &seen).1;
        Self {
            csv,
            groups: vec![group("ns", &["ns"], "A.v1.g")],
            elsewhere: Vec::new(),
            seen,
            deployments: [("d".to_owned(), Arc::new(deployment()))].into(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn peer(&mut self, name: &str, replaces: &str, phase: CsvPhase) {
        let peer = Csv { replaces: replaces.into(), phase, ..Csv::default() };
        self.seen.peers.insert(name.to_owned(), Arc::new(peer));
    }

    fn unready(&mut self, change: impl FnOnce(&mut Deployment)) {
        let mut changed = deployment();
        change(&mut changed);
        self.deployments.insert("d".to_owned(), Arc::new(changed));
    }

    fn decide_at(&self, now: i64) -> Decision {
        let targets: Option<&[String]> =
            self.groups.first().map(|it| it.spec.target_namespaces.as_slice());
        decide(&World {
            csv: &self.csv,
            groups: &self.groups,
            targets,
            elsewhere: &self.elsewhere,
            seen: &self.seen,
            expected: &[Expected { name: "d".into(), spec_hash: "h".into() }],
            deployments: &self.deployments,
            provides: &[Api { group: "g".into(), version: "v1".into(), kind: "A".into() }].into(),
            now: time(now),
            patience: Duration::from_mins(5),
        })
    }
}

fn time(second: i64) -> Time {
    Time::new(jiff::Timestamp::from_second(second).unwrap())
}

/// `phase/reason message` of a move, or the name of another decision.
fn told(decision: &Decision) -> String {
    let of = |it: &Move| format!("{}/{} {}", it.phase, it.reason, it.message);
    match decision {
        Decision::Move(it) => of(it),
        Decision::Withdraw(it) => format!("withdraw, {}", of(it)),
        Decision::Install(_) => "install".to_owned(),
        Decision::Claim(what) => format!("claim {}", what.len()),
        Decision::Provide(text) => format!("provide {text}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn pending() -> Stage {
    Stage::at(CsvPhase::Pending, CsvReason::RequirementsUnknown, "requirements not yet checked")
}

fn installing() -> Stage {
    Stage::at(
        CsvPhase::Installing,
        CsvReason::InstallSuccessful,
        "waiting for install components to report healthy",
    )
}

fn succeeded() -> Stage {
    Stage::at(
        CsvPhase::Succeeded,
        CsvReason::InstallSuccessful,
        "install strategy completed with no errors",
    )
}

fn broken(reason: CsvReason) -> Stage {
    Stage::at(CsvPhase::Failed, reason, "whatever")
}

#[test]
fn guards_come_before_the_phase() {
    let new = || Stage::at(CsvPhase::None, CsvReason::default(), "");
    let claim: fn(&mut Stage) = |it| it.csv.metadata.finalizers.clear();
    for (stage, wanted) in [
        (new(), "Pending/RequirementsUnknown requirements not yet checked"),
        (new().with(claim), "claim 3"),
        (
            new().with(|it| {
                claim(it);
                it.groups.clear();
            }),
            "claim 0",
        ),
        (
            new().with(|it| it.groups.clear()),
            "Failed/NoOperatorGroup csv in namespace with no operatorgroups",
        ),
        (
            new().with(|it| it.groups.push(group("ns", &["ns"], ""))),
            "Failed/TooManyOperatorGroups csv created in namespace with multiple operatorgroups, can't pick one automatically",
        ),
        (new().with(|it| it.csv.metadata.annotations.clear()), "claim 3"),
        // The group has not caught up with its spec.
        (new().with(|it| Arc::make_mut(&mut it.groups[0]).status.namespaces.clear()), "rest"),
        (
            new().with(|it| {
                it.groups = vec![group("ns", &[], "")];
                it.csv.metadata.annotations.remove(names::TARGET_NAMESPACES);
            }),
            "Failed/NoTargetNamespaces no targetNamespaces are matched operatorgroups namespace selection",
        ),
        (
            new().with(|it| it.csv.spec.install_modes.clear()),
            "Failed/UnsupportedOperatorGroup OwnNamespace InstallModeType not supported, cannot configure to watch own namespace",
        ),
        (
            new().with(|it| {
                let twice = it.csv.spec.install_modes[0].clone();
                it.csv.spec.install_modes.push(twice);
            }),
            "Failed/InvalidInstallModes InstallMode list contains duplicates, cannot make set: [{OwnNamespace true} {OwnNamespace true}]",
        ),
        (
            new().with(|it| it.groups = vec![group("ns", &["ns"], "B.v1.g")]),
            "provide A.v1.g,B.v1.g",
        ),
        (
            new().with(|it| {
                it.groups = vec![group("ns", &["ns"], "")];
                it.elsewhere = vec![group("other", &[""], "A.v1.g")];
            }),
            "withdraw, Failed/InterOperatorGroupOwnerConflict intersecting operatorgroups provide the same apis",
        ),
        (
            new().with(|it| {
                it.groups = vec![group("ns", &["ns"], "")];
                Arc::make_mut(&mut it.groups[0]).spec.static_provided_apis = true;
            }),
            "withdraw, Failed/CannotModifyStaticOperatorGroupProvidedAPIs static provided api operatorgroup cannot be modified by these apis",
        ),
    ] {
        assert_eq!(told(&stage.decide_at(1)), wanted);
    }
}

#[test]
fn a_pending_version_waits_for_requirements_conflicts_and_its_predecessor() {
    for (stage, wanted) in [
        (pending(), "InstallReady/AllRequirementsMet all requirements found, attempting install"),
        (
            pending().with(|it| it.seen.crds.clear()),
            "Pending/RequirementsNotMet one or more requirements couldn't be found",
        ),
        (
            pending().with(|it| {
                it.seen.peers.insert(
                    "b.v1".into(),
                    Arc::new(Csv { owned_crds: vec!["as.g".into()], ..Csv::default() }),
                );
            }),
            "Failed/OwnerConflict conflicting CRD owner in namespace",
        ),
        (pending().with(|it| it.peer("a.v1", "", CsvPhase::Succeeded)), "rest"),
        (pending().with(|it| it.peer("a.v1", "", CsvPhase::Failed)), "rest"),
        (
            pending().with(|it| it.peer("a.v1", "", CsvPhase::Replacing)),
            "InstallReady/AllRequirementsMet all requirements found, attempting install",
        ),
        (
            pending().with(|it| it.csv.spec.install.strategy = "helm".into()),
            "Failed/InvalidInstallStrategy install strategy invalid: unrecognized install strategy",
        ),
        (Stage::at(CsvPhase::InstallReady, CsvReason::AllRequirementsMet, ""), "install"),
    ] {
        assert_eq!(told(&stage.decide_at(1)), wanted);
    }
}

#[test]
fn an_installing_version_follows_its_deployments_for_five_minutes() {
    let waiting = "waiting for deployment d to become ready: deployment \"d\" not available: no";
    let unready: fn(&mut Deployment) = |it| it.available = Some(("False".into(), "no".into()));
    for (stage, now, wanted) in [
        (installing(), 1, "Succeeded/InstallSucceeded install strategy completed with no errors".to_owned()),
        (
            installing().with(|it| it.unready(unready)),
            1,
            format!("Installing/InstallWaiting installing: {waiting}"),
        ),
        (
            Stage::at(CsvPhase::Installing, CsvReason::Waiting, &format!("installing: {waiting}"))
                .with(|it| it.unready(unready)),
            100,
            "wait(200s)".to_owned(),
        ),
        (
            installing().with(|it| it.unready(unready)),
            300,
            "Failed/InstallCheckFailed install timeout".to_owned(),
        ),
        (
            installing().with(|it| it.unready(|it| it.spec_hash = Some("x".into()))),
            1,
            "InstallReady/InstallWaiting installing: deployment changed old hash=x, new hash=h".to_owned(),
        ),
        (
            installing().with(|it| it.unready(|it| it.progressing = Some("ProgressDeadlineExceeded".into()))),
            1,
            "Failed/InstallCheckFailed install failed: deployment d not ready before timeout: deployment \"d\" exceeded its progress deadline".to_owned(),
        ),
    ] {
        assert_eq!(told(&stage.decide_at(now)), wanted);
    }
}

#[test]
fn a_running_version_notices_what_is_lost() {
    for (stage, wanted) in [
        (succeeded(), "running"),
        (
            succeeded().with(|it| it.peer("a.v3", "a.v2", CsvPhase::Pending)),
            "Replacing/BeingReplaced being replaced by csv: a.v3",
        ),
        (
            succeeded().with(|it| it.seen.crds.clear()),
            "Failed/RequirementsNotMet requirements no longer met",
        ),
        // A rollout that keeps it available is nobody's business.
        (succeeded().with(|it| it.unready(|it| it.replicas = (2, 1))), "rest"),
        (
            succeeded().with(|it| it.deployments.clear()),
            "Failed/ComponentUnhealthy installing: missing deployment with name=d",
        ),
        (
            succeeded().with(|it| it.unready(|it| it.spec_hash = Some("x".into()))),
            "InstallReady/ComponentUnhealthy installing: deployment changed old hash=x, new hash=h",
        ),
    ] {
        assert_eq!(told(&stage.decide_at(1)), wanted);
    }
}

#[test]
fn a_failed_version_comes_back_when_its_reason_is_gone_and_stays_while_it_lasts() {
    let modes = "Pending/RequirementsUnknown InstallModes now support target namespaces";
    let unready: fn(&mut Deployment) = |it| it.available = None;
    for (stage, wanted) in [
        (broken(CsvReason::NoOperatorGroup), modes),
        (broken(CsvReason::TooManyOperatorGroups), modes),
        (broken(CsvReason::UnsupportedOperatorGroup), modes),
        (broken(CsvReason::NoTargetNamespaces), modes),
        (
            broken(CsvReason::InterOperatorGroupOwnerConflict),
            "Pending/RequirementsUnknown OperatorGroup no longer intersecting with conflicting owner",
        ),
        (
            broken(CsvReason::RequirementsNotMet).with(|it| it.seen.crds.clear()),
            "Pending/RequirementsNotMet requirements not met",
        ),
        (
            broken(CsvReason::RequirementsNotMet),
            "Succeeded/InstallSucceeded install strategy completed with no errors",
        ),
        (
            broken(CsvReason::ComponentUnhealthy).with(|it| it.deployments.clear()),
            "Pending/NeedsReinstall installing: missing deployment with name=d",
        ),
        (broken(CsvReason::InstallCheckFailed).with(|it| it.unready(unready)), "rest"),
        (
            broken(CsvReason::InstallCheckFailed).with(|it| it.deployments.clear()),
            "Pending/NeedsReinstall installing: missing deployment with name=d",
        ),
        (broken(CsvReason::ComponentFailed).with(|it| it.deployments.clear()), "install"),
        (
            broken(CsvReason::OwnerConflict).with(|it| {
                it.seen.peers.insert(
                    "b.v1".into(),
                    Arc::new(Csv { owned_crds: vec!["as.g".into()], ..Csv::default() }),
                );
            }),
            "rest",
        ),
        (
            broken(CsvReason::ComponentUnhealthy).with(|it| {
                Arc::make_mut(&mut it.groups[0]).spec.upgrade_strategy =
                    UpgradeStrategy::FailForward;
                it.peer("a.v3", "a.v2", CsvPhase::Pending);
            }),
            "Replacing/BeingReplaced Fail Forward is enabled, allowing Failed csv to be replaced by csv: a.v3",
        ),
    ] {
        assert_eq!(told(&stage.decide_at(1)), wanted);
    }
}

#[test]
fn a_replaced_version_goes_when_it_is_the_oldest_and_its_successor_runs() {
    let replacing = || Stage::at(CsvPhase::Replacing, CsvReason::BeingReplaced, "x");
    for (stage, wanted) in [
        (
            replacing().with(|it| it.peer("a.v3", "a.v2", CsvPhase::Succeeded)),
            "Deleting/Replaced has been replaced by a newer ClusterServiceVersion that has successfully installed.",
        ),
        (replacing().with(|it| it.peer("a.v3", "a.v2", CsvPhase::Installing)), "rest"),
        (
            replacing().with(|it| {
                it.peer("a.v3", "a.v2", CsvPhase::Succeeded);
                it.peer("a.v1", "", CsvPhase::Replacing);
            }),
            "rest",
        ),
        // The successor was deleted by hand.
        (replacing(), "Pending/RequirementsUnknown requirements not yet checked"),
        (Stage::at(CsvPhase::Deleting, CsvReason::Replaced, ""), "delete"),
    ] {
        assert_eq!(told(&stage.decide_at(1)), wanted);
    }
}

#[test]
fn a_version_whose_accounts_its_successor_has_taken_steps_aside() {
    let mut stage = pending();
    let permissions = json!([{"serviceAccountName": "sa", "rules": []}]);
    stage.csv.spec.install.spec.permissions = serde_json::from_value(permissions).unwrap();
    let wanted = "Pending/RequirementsNotMet one or more requirements couldn't be found";
    assert_eq!(told(&stage.decide_at(1)), wanted);
    stage.peer("a.v3", "a.v2", CsvPhase::Pending);
    let wanted = "Replacing/BeingReplaced being replaced by csv: a.v3";
    assert_eq!(told(&stage.decide_at(1)), wanted);
    // What else it lacks, its successor may lack as well: people have to see it.
    stage.seen.crds.clear();
    let wanted = "Pending/RequirementsNotMet one or more requirements couldn't be found";
    assert_eq!(told(&stage.decide_at(1)), wanted);
}

// ids: WHK-05
#[test]
fn webhooks_that_nobody_may_have_are_refused_once_in_the_words_of_the_original() {
    let hook = |name: &str, deployment: &str, group: &str, resource: &str| {
        json!({
            "generateName": name, "type": "ValidatingAdmissionWebhook", "deploymentName": deployment,
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}],
        })
    };
    let admission = "admissionregistration.k8s.io";
    let own = "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources";
    for (hooks, message) in [
        (
            vec![hook("v", "d", "g", "as"), hook("v", "d", "g", "as")],
            "CSV contains repeated WebhookDescription name",
        ),
        (vec![hook("v", "d", "*", "as")], "webhook rules cannot include all groups"),
        (
            vec![hook("v", "d", "operators.coreos.com", "as")],
            "webhook rules cannot include the OLM group",
        ),
        (vec![hook("v", "d", admission, "*")], own),
        (vec![hook("v", "d", admission, "ValidatingWebhookConfiguration")], own),
        (
            vec![hook("v", "e", "g", "as")],
            "strategyDetailsDeployment is missing deployment e for WebhookDescription v",
        ),
    ] {
        let mut stage = pending();
        stage.csv.spec.webhook_definitions = serde_json::from_value(hooks.into()).unwrap();
        let wanted = format!("Failed/InvalidWebhookDescription {message}");
        assert_eq!(told(&stage.decide_at(1)), wanted);
        stage.csv.status.phase = CsvPhase::Succeeded;
        assert_eq!(told(&stage.decide_at(1)), wanted);
        stage.csv.status.phase = CsvPhase::Failed;
        stage.csv.status.reason = CsvReason::InvalidWebhookDescription;
        message.clone_into(&mut stage.csv.status.message);
        assert_eq!(stage.decide_at(1), Decision::Rest);
    }
    let mut stage = pending();
    let other = hook("v", "d", admission, "validatingadmissionpolicies");
    stage.csv.spec.webhook_definitions = serde_json::from_value(json!([other])).unwrap();
    let wanted = "InstallReady/AllRequirementsMet all requirements found, attempting install";
    assert_eq!(told(&stage.decide_at(1)), wanted);
}

// ids: WHK-06
#[test]
fn kinds_are_converted_only_for_who_owns_them_and_serves_all_namespaces() {
    let mut stage = Stage::at(CsvPhase::Failed, CsvReason::ComponentFailed, "");
    let modes = stage.csv.spec.install_modes.clone();
    let hook = |crds: Value| {
        json!([{
            "generateName": "c", "type": "ConversionWebhook", "deploymentName": "d",
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "conversionCRDs": crds,
        }])
    };
    let all = vec![InstallMode { kind: InstallModeType::AllNamespaces, supported: true }];
    for (modes, crds, message) in [
        (
            &modes,
            json!(["as.g"]),
            "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces",
        ),
        (
            &all,
            json!([]),
            "unable to manager conversion webhook: conversion webhook must have at least one CRD specified",
        ),
        (&all, json!(["bs.g"]), "csv a.v2 does not own CRD bs.g"),
    ] {
        stage.csv.spec.webhook_definitions = serde_json::from_value(hook(crds)).unwrap();
        let why = {
            stage.csv.spec.install_modes.clone_from(modes);
            asked::no_conversion(&stage.csv, &stage.seen.crds)
        };
        assert_eq!(why.as_deref(), Some(message));
    }
    let crd = Crd { preserves: true, ..(*stage.seen.crds["as.g"]).clone() };
    stage.seen.crds.insert("as.g".to_owned(), Arc::new(crd));
    stage.csv.spec.webhook_definitions = serde_json::from_value(hook(json!(["as.g"]))).unwrap();
    let why = asked::no_conversion(&stage.csv, &stage.seen.crds).unwrap();
    assert!(why.starts_with("crd.Spec.PreserveUnknownFields must be false"), "{why}");
}

/// A version that runs and serves an API with its Deployment.
fn served() -> Stage {
    let message = "install strategy completed with no errors";
    let mut stage = Stage::at(CsvPhase::Succeeded, CsvReason::InstallSuccessful, message);
    let owned = json!([{
        "group": "api", "version": "v1", "kind": "B", "name": "bs", "deploymentName": "d",
    }]);
    stage.csv.spec.api_service_definitions.owned = serde_json::from_value(owned).unwrap();
    stage.csv.status.requirement_status = requirements::check(&stage.csv, &stage.seen).1;
    stage.unready(|it| {
        it.template_annotations.insert(names::CA_HASH.to_owned(), "h".to_owned());
    });
    let at = |second: i64| time(second).timestamp();
    let certified = Certified {
        authority: "h".into(),
        annotated: "h".into(),
        readable: true,
        life: Some((at(0), at(1_000_000))),
        ..Certified::default()
    };
    let api = ApiService {
        available: true,
        since: Some(at(100)),
        service: Some(("ns".into(), "d-service".into())),
        authorities: vec!["h".into()],
        ..ApiService::default()
    };
    let seen = &mut stage.seen.serving;
    seen.certificates.insert("d".into(), Arc::new(certified));
    seen.services.insert("d-service".into(), Arc::default());
    seen.apis.insert("v1.api".into(), Arc::new(api));
    stage
}

fn api(stage: &mut Stage, change: impl FnOnce(&mut ApiService)) {
    let found = stage.seen.serving.apis.get_mut("v1.api").unwrap();
    change(Arc::get_mut(found).unwrap());
}

fn certified(stage: &mut Stage, change: impl FnOnce(&mut Certified)) {
    let found = stage.seen.serving.certificates.get_mut("d").unwrap();
    change(Arc::get_mut(found).unwrap());
}

/// What somebody does to a version that serves an API.
type Change = fn(&mut Stage);

// ids: C10
#[test]
fn what_is_wrong_around_an_api_fails_its_version_which_is_installed_again() {
    assert_eq!(served().decide_at(200), Decision::Running);
    let wrong: [(Change, &str); 7] = [
        (
            |it| it.seen.serving.apis.clear(),
            "apiservice.apiregistration.k8s.io \"v1.api\" not found",
        ),
        (|it| it.seen.serving.services.clear(), "service \"d-service\" not found"),
        (
            |it| api(it, |it| it.service = Some(("ns".into(), "other".into()))),
            "found APIService and service reference mismatch",
        ),
        (|it| api(it, |it| it.authorities.clear()), "cert PEM empty"),
        (|it| certified(it, |it| it.readable = false), "cert PEM empty"),
        (
            |it| certified(it, |it| it.annotated = "other".into()),
            "secret d-service-cert CA cert hash does not match expected",
        ),
        (|it| it.unready(|_| ()), "deployment d CA cert hash does not match expected"),
    ];
    for (change, message) in wrong {
        let mut stage = served().with(change);
        let wanted = format!("Failed/APIServiceResourceIssue {message}");
        assert_eq!(told(&stage.decide_at(200)), wanted);
        stage.csv.status.phase = CsvPhase::Failed;
        stage.csv.status.reason = CsvReason::ApiServiceResourceIssue;
        let wanted = format!("Pending/APIServiceResourcesNeedReinstall {message}");
        assert_eq!(told(&stage.decide_at(200)), wanted);
    }
    // What belongs to others is not taken, however often it is tried.
    let mut stage = served();
    stage.seen.serving.foreign.insert("v1.api".into());
    assert_eq!(told(&stage.decide_at(200)), "Failed/APIServiceResourceIssue v1.api is unadoptable");
    stage.csv.status.phase = CsvPhase::Failed;
    assert_eq!(stage.decide_at(200), Decision::Rest);
    stage.csv.status.phase = CsvPhase::Pending;
    assert_eq!(told(&stage.decide_at(200)), "Failed/OwnerConflict unable to adopt APIService");
}

// ids: C09 C11
#[test]
fn certificates_are_made_anew_when_they_are_due_and_nothing_else_is_done_before() {
    let wanted = "Pending/NeedsCertRotation CSV owns resources that require a cert refresh";
    let said = served().with(|it| it.csv.status.certs_rotate_at = Some(time(150)));
    assert_eq!(said.decide_at(149), Decision::Running);
    assert_eq!(told(&said.decide_at(150)), wanted);
    let day = 24 * 60 * 60;
    let mut ends = served();
    assert_eq!(ends.decide_at(1_000_000 - day - 1), Decision::Running);
    assert_eq!(told(&ends.decide_at(1_000_000 - day)), wanted);
    ends.csv.status.phase = CsvPhase::Failed;
    ends.csv.status.reason = CsvReason::ComponentUnhealthy;
    let again = "Pending/NeedsCertRotation owned APIServices need cert refresh";
    assert_eq!(told(&ends.decide_at(2_000_000)), again);
    let useless = served().with(|it| certified(it, |it| it.life = None));
    assert_eq!(told(&useless.decide_at(200)), wanted);
    ends.csv.status.phase = CsvPhase::Installing;
    assert_eq!(
        told(&ends.decide_at(2_000_000)),
        "Pending/NeedsReinstall calculated deployment install is bad"
    );
}

// ids: C36
#[test]
fn a_server_that_is_away_has_a_moment_to_come_back() {
    let away = served().with(|it| api(it, |it| it.available = false));
    assert_eq!(away.decide_at(110), Decision::Wait(Duration::from_secs(20)));
    let wanted = "Failed/ComponentUnhealthy apiServices not installed";
    assert_eq!(told(&away.decide_at(130)), wanted);
    let mut failed = away;
    failed.csv.status.phase = CsvPhase::Failed;
    failed.csv.status.reason = CsvReason::ComponentUnhealthy;
    assert_eq!(failed.decide_at(131), Decision::Rest);
    api(&mut failed, |it| it.available = true);
    let wanted = "Succeeded/InstallSucceeded install strategy completed with no errors";
    assert_eq!(told(&failed.decide_at(132)), wanted);
    let mut installing = served().with(|it| api(it, |it| it.available = false));
    installing.csv.status.phase = CsvPhase::Installing;
    assert_eq!(
        told(&installing.decide_at(1)),
        "Installing/InstallWaiting apiServices not installed"
    );
}
