//! What webhooks, APIs and certificates mean for the phase of their version.

use super::certificate::Certified;
use super::objects;
use super::observed::{ApiService, Configuration, Conversion, Hook, is_mutating};
use super::required;
use crate::csv::phase::Decision;
use crate::csv::requirements;
use crate::csv::scenario::{Stage, pending, time, told};
use crate::fields::Crd;
use mainstay_api::{CsvPhase, CsvReason, InstallMode, InstallModeType, names};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

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
        // shows WHK-05
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
            required::no_conversion(&stage.csv, &stage.seen.crds)
        };
        // shows WHK-06
        assert_eq!(why.as_deref(), Some(message));
    }
    let crd = Crd { preserves: true, ..(*stage.seen.crds["as.g"]).clone() };
    stage.seen.crds.insert("as.g".to_owned(), Arc::new(crd));
    stage.csv.spec.webhook_definitions = serde_json::from_value(hook(json!(["as.g"]))).unwrap();
    let why = required::no_conversion(&stage.csv, &stage.seen.crds).unwrap();
    // shows WHK-06
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
    stage.unready(|deployment| {
        deployment.template_annotations.insert(names::CA_HASH.to_owned(), "h".to_owned());
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

#[test]
fn what_is_wrong_around_an_api_fails_its_version_which_is_installed_again() {
    assert_eq!(served().decide_at(200), Decision::Running);
    let wrong: [(Change, &str); 7] = [
        (
            |stage| stage.seen.serving.apis.clear(),
            "apiservice.apiregistration.k8s.io \"v1.api\" not found",
        ),
        (|stage| stage.seen.serving.services.clear(), "service \"d-service\" not found"),
        (
            |stage| api(stage, |api| api.service = Some(("ns".into(), "other".into()))),
            "found APIService and service reference mismatch",
        ),
        (|stage| api(stage, |api| api.authorities.clear()), "cert PEM empty"),
        (|stage| certified(stage, |certificate| certificate.readable = false), "cert PEM empty"),
        (
            |stage| certified(stage, |certificate| certificate.annotated = "other".into()),
            "secret d-service-cert CA cert hash does not match expected",
        ),
        (|stage| stage.unready(|_| ()), "deployment d CA cert hash does not match expected"),
    ];
    for (change, message) in wrong {
        let mut stage = served().with(change);
        let wanted = format!("Failed/APIServiceResourceIssue {message}");
        // shows C10
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
    // shows C04
    assert_eq!(told(&stage.decide_at(200)), "Failed/OwnerConflict unable to adopt APIService");
}

#[test]
fn certificates_are_made_anew_when_they_are_due_and_nothing_else_is_done_before() {
    let wanted = "Pending/NeedsCertRotation CSV owns resources that require a cert refresh";
    let said = served().with(|stage| stage.csv.status.certs_rotate_at = Some(time(150)));
    assert_eq!(said.decide_at(149), Decision::Running);
    // shows C09
    assert_eq!(told(&said.decide_at(150)), wanted);
    let day = 24 * 60 * 60;
    let mut ends = served();
    assert_eq!(ends.decide_at(1_000_000 - day - 1), Decision::Running);
    // shows C11
    assert_eq!(told(&ends.decide_at(1_000_000 - day)), wanted);
    ends.csv.status.phase = CsvPhase::Failed;
    ends.csv.status.reason = CsvReason::ComponentUnhealthy;
    let again = "Pending/NeedsCertRotation owned APIServices need cert refresh";
    // shows C11
    assert_eq!(told(&ends.decide_at(2_000_000)), again);
    let useless = served().with(|stage| certified(stage, |certificate| certificate.life = None));
    assert_eq!(told(&useless.decide_at(200)), wanted);
    ends.csv.status.phase = CsvPhase::Installing;
    assert_eq!(
        told(&ends.decide_at(2_000_000)),
        "Pending/NeedsReinstall calculated deployment install is bad"
    );
}

#[test]
fn a_server_that_is_away_has_a_moment_to_come_back() {
    let away = served().with(|stage| api(stage, |api| api.available = false));
    // shows C36
    assert_eq!(away.decide_at(110), Decision::Wait(Duration::from_secs(20)));
    let wanted = "Failed/ComponentUnhealthy apiServices not installed";
    // shows C36
    assert_eq!(told(&away.decide_at(130)), wanted);
    let mut failed = away;
    failed.csv.status.phase = CsvPhase::Failed;
    failed.csv.status.reason = CsvReason::ComponentUnhealthy;
    assert_eq!(failed.decide_at(131), Decision::Rest);
    api(&mut failed, |api| api.available = true);
    let wanted = "Succeeded/InstallSucceeded install strategy completed with no errors";
    assert_eq!(told(&failed.decide_at(132)), wanted);
    let mut installing = served().with(|stage| api(stage, |api| api.available = false));
    installing.csv.status.phase = CsvPhase::Installing;
    assert_eq!(
        told(&installing.decide_at(1)),
        "Installing/InstallWaiting apiServices not installed"
    );
}

/// A version that is being installed with a webhook of this type, of its running Deployment.
fn hooked(kind: &str) -> Stage {
    let mut stage = served();
    stage.csv.status.phase = CsvPhase::Installing;
    stage.csv.spec.api_service_definitions.owned.clear();
    let hooks = json!([{
        "type": kind, "generateName": "w", "deploymentName": "d", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "conversionCRDs": ["as.g"], "webhookPath": "/convert",
    }]);
    stage.csv.spec.webhook_definitions = serde_json::from_value(hooks).unwrap();
    stage
}

/// Has what calls the webhook of a version trust these authorities.
fn called(stage: &mut Stage, authorities: &[&str]) {
    let authorities: Vec<String> =
        authorities.iter().map(|authority| (*authority).to_owned()).collect();
    let description = stage.csv.spec.webhook_definitions[0].clone();
    if required::converters(&stage.csv).next().is_some() {
        let conversion = Conversion {
            service: ("ns".into(), "d-service".into()),
            path: "/convert".into(),
            port: 443,
            reviews: vec!["v1".into()],
            authorities,
        };
        let crd = Crd { conversion: Some(conversion), ..(*stage.seen.crds["as.g"]).clone() };
        stage.seen.crds.insert("as.g".into(), Arc::new(crd));
        return;
    }
    let selector = objects::namespaces(&stage.groups[0]);
    let labels = [
        (names::WEBHOOK_GENERATE_NAME, description.generate_name.clone()),
        (names::WEBHOOK_HASH, required::fingerprint(&description)),
    ];
    let configuration = Configuration {
        labels: labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        webhooks: vec![objects::webhook(&stage.csv, &description, &selector, None)],
        authorities,
    };
    stage.seen.serving.hooks.push(Hook {
        name: "w-1".into(),
        mutating: is_mutating(&description.kind),
        is: Arc::new(configuration),
    });
}

#[test]
fn a_version_runs_once_what_calls_its_webhook_trusts_its_authority_whatever_its_type() {
    for kind in ["ConversionWebhook", "ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"] {
        let told = |authorities: Option<&[&str]>| {
            let stage = hooked(kind);
            told(
                &stage
                    .with(|stage| authorities.into_iter().for_each(|all| called(stage, all)))
                    .decide_at(200),
            )
        };
        let runs = "Succeeded/InstallSucceeded install strategy completed with no errors";
        assert_eq!(told(None), "serve", "{kind}: nobody calls it");
        assert_eq!(told(Some(&[])), "serve", "{kind}: nobody is trusted");
        assert_eq!(told(Some(&["x"])), "serve", "{kind}: somebody else is trusted");
        // shows C26
        assert_eq!(told(Some(&["h"])), runs, "{kind}");
        // The one before is trusted as well, until the pods that show it are gone.
        assert_eq!(told(Some(&["h", "x"])), runs, "{kind}");
    }
    // Two configurations of one description are one too many.
    let twice = hooked("ValidatingAdmissionWebhook").with(|stage| {
        called(stage, &["h"]);
        called(stage, &["h"]);
    });
    assert_eq!(twice.decide_at(200), Decision::Serve);
}
