//! The effect of webhooks, APIServices and certificates on the phase of their CSV.

use super::certificate::CertificateSecret;
use super::objects;
use super::observed::{
    ApiService, Conversion, OwnedWebhookConfiguration, WebhookConfiguration, is_mutating,
};
use super::required;
use crate::csv::phase::Decision;
use crate::csv::requirements;
use crate::csv::scenario::{Scenario, decision_text, pending, time};
use crate::fields::Crd;
use mainstay_api::{CsvPhase, CsvReason, InstallMode, InstallModeType, names};
use mainstay_certificates::Validity;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn forbidden_webhooks_are_refused_once_with_the_message_of_the_original() {
    let webhook = |name: &str, deployment: &str, group: &str, resource: &str| {
        json!({
            "generateName": name, "type": "ValidatingAdmissionWebhook", "deploymentName": deployment,
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}],
        })
    };
    let admission = "admissionregistration.k8s.io";
    let own = "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources";
    for (webhooks, message) in [
        (
            vec![webhook("v", "d", "g", "as"), webhook("v", "d", "g", "as")],
            "CSV contains repeated WebhookDescription name",
        ),
        (vec![webhook("v", "d", "*", "as")], "webhook rules cannot include all groups"),
        (
            vec![webhook("v", "d", "operators.coreos.com", "as")],
            "webhook rules cannot include the OLM group",
        ),
        (vec![webhook("v", "d", admission, "*")], own),
        (vec![webhook("v", "d", admission, "ValidatingWebhookConfiguration")], own),
        (
            vec![webhook("v", "e", "g", "as")],
            "strategyDetailsDeployment is missing deployment e for WebhookDescription v",
        ),
    ] {
        let mut scenario = pending();
        scenario.csv.spec.webhook_definitions = serde_json::from_value(webhooks.into()).unwrap();
        let wanted = format!("Failed/InvalidWebhookDescription {message}");
        // shows WHK-05
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
        scenario.csv.status.phase = CsvPhase::Succeeded;
        assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
        scenario.csv.status.phase = CsvPhase::Failed;
        scenario.csv.status.reason = CsvReason::InvalidWebhookDescription;
        message.clone_into(&mut scenario.csv.status.message);
        assert_eq!(scenario.decide_at(1), Decision::Rest);
    }
    let mut scenario = pending();
    let other = webhook("v", "d", admission, "validatingadmissionpolicies");
    scenario.csv.spec.webhook_definitions = serde_json::from_value(json!([other])).unwrap();
    let wanted = "InstallReady/AllRequirementsMet all requirements found, attempting install";
    assert_eq!(decision_text(&scenario.decide_at(1)), wanted);
}

#[test]
fn conversion_webhooks_need_owned_crds_and_all_namespaces() {
    let mut scenario = Scenario::at(CsvPhase::Failed, CsvReason::ComponentFailed, "");
    let modes = scenario.csv.spec.install_modes.clone();
    let webhook = |crds: Value| {
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
        scenario.csv.spec.webhook_definitions = serde_json::from_value(webhook(crds)).unwrap();
        let why = {
            scenario.csv.spec.install_modes.clone_from(modes);
            required::conversion_problem(&scenario.csv, &scenario.observed.crds)
        };
        // shows WHK-06
        assert_eq!(why.as_deref(), Some(message));
    }
    let crd = Crd { preserves: true, ..(*scenario.observed.crds["as.g"]).clone() };
    scenario.observed.crds.insert("as.g".to_owned(), Arc::new(crd));
    scenario.csv.spec.webhook_definitions =
        serde_json::from_value(webhook(json!(["as.g"]))).unwrap();
    let why = required::conversion_problem(&scenario.csv, &scenario.observed.crds).unwrap();
    // shows WHK-06
    assert!(why.starts_with("crd.Spec.PreserveUnknownFields must be false"), "{why}");
}

/// A running CSV that serves an API with its Deployment.
fn serving_scenario() -> Scenario {
    let message = "install strategy completed with no errors";
    let mut scenario = Scenario::at(CsvPhase::Succeeded, CsvReason::InstallSuccessful, message);
    let owned = json!([{
        "group": "api", "version": "v1", "kind": "B", "name": "bs", "deploymentName": "d",
    }]);
    scenario.csv.spec.api_service_definitions.owned = serde_json::from_value(owned).unwrap();
    scenario.csv.status.requirement_status =
        requirements::check(&scenario.csv, &scenario.observed).1;
    scenario.with_deployment(|deployment| {
        deployment.template_annotations.insert(names::CA_HASH.to_owned(), "h".to_owned());
    });
    let at = |second: i64| time(second).timestamp();
    let certified = CertificateSecret {
        ca_hash: "h".into(),
        annotated_ca_hash: "h".into(),
        readable: true,
        validity: Some(Validity { from: at(0), until: at(1_000_000) }),
        ..CertificateSecret::default()
    };
    let api = ApiService {
        available: true,
        since: Some(at(100)),
        service: Some(("ns".into(), "d-service".into())),
        ca_hashes: vec!["h".into()],
        ..ApiService::default()
    };
    let observed = &mut scenario.observed.serving;
    observed.certificates.insert("d".into(), Arc::new(certified));
    observed.services.insert("d-service".into(), Arc::default());
    observed.apis.insert("v1.api".into(), Arc::new(api));
    scenario
}

fn change_api(scenario: &mut Scenario, change: impl FnOnce(&mut ApiService)) {
    let found = scenario.observed.serving.apis.get_mut("v1.api").unwrap();
    change(Arc::get_mut(found).unwrap());
}

fn change_certificate(scenario: &mut Scenario, change: impl FnOnce(&mut CertificateSecret)) {
    let found = scenario.observed.serving.certificates.get_mut("d").unwrap();
    change(Arc::get_mut(found).unwrap());
}

/// A change to the observed state of such a CSV.
type Change = fn(&mut Scenario);

#[test]
fn a_problem_with_an_api_service_fails_the_csv_which_is_installed_again() {
    assert_eq!(serving_scenario().decide_at(200), Decision::Running);
    let problems: [(Change, &str); 7] = [
        (
            |scenario| scenario.observed.serving.apis.clear(),
            "apiservice.apiregistration.k8s.io \"v1.api\" not found",
        ),
        (|scenario| scenario.observed.serving.services.clear(), "service \"d-service\" not found"),
        (
            |scenario| {
                change_api(scenario, |api| api.service = Some(("ns".into(), "other".into())));
            },
            "found APIService and service reference mismatch",
        ),
        (|scenario| change_api(scenario, |api| api.ca_hashes.clear()), "cert PEM empty"),
        (
            |scenario| change_certificate(scenario, |certificate| certificate.readable = false),
            "cert PEM empty",
        ),
        (
            |scenario| {
                change_certificate(scenario, |certificate| {
                    certificate.annotated_ca_hash = "other".into();
                });
            },
            "secret d-service-cert CA cert hash does not match expected",
        ),
        (
            |scenario| scenario.with_deployment(|_| ()),
            "deployment d CA cert hash does not match expected",
        ),
    ];
    for (change, message) in problems {
        let mut scenario = serving_scenario().with(change);
        let wanted = format!("Failed/APIServiceResourceIssue {message}");
        // shows C10
        assert_eq!(decision_text(&scenario.decide_at(200)), wanted);
        scenario.csv.status.phase = CsvPhase::Failed;
        scenario.csv.status.reason = CsvReason::ApiServiceResourceIssue;
        let wanted = format!("Pending/APIServiceResourcesNeedReinstall {message}");
        assert_eq!(decision_text(&scenario.decide_at(200)), wanted);
    }
    // An APIService of another owner is never taken.
    let mut scenario = serving_scenario();
    scenario.observed.serving.foreign.insert("v1.api".into());
    assert_eq!(
        decision_text(&scenario.decide_at(200)),
        "Failed/APIServiceResourceIssue v1.api is unadoptable"
    );
    scenario.csv.status.phase = CsvPhase::Failed;
    assert_eq!(scenario.decide_at(200), Decision::Rest);
    scenario.csv.status.phase = CsvPhase::Pending;
    // shows C04
    assert_eq!(
        decision_text(&scenario.decide_at(200)),
        "Failed/OwnerConflict unable to adopt APIService"
    );
}

#[test]
fn certificates_that_are_due_are_replaced_first() {
    let wanted = "Pending/NeedsCertRotation CSV owns resources that require a cert refresh";
    let scheduled =
        serving_scenario().with(|scenario| scenario.csv.status.certs_rotate_at = Some(time(150)));
    assert_eq!(scheduled.decide_at(149), Decision::Running);
    // shows C09
    assert_eq!(decision_text(&scheduled.decide_at(150)), wanted);
    let day = 24 * 60 * 60;
    let mut ends = serving_scenario();
    assert_eq!(ends.decide_at(1_000_000 - day - 1), Decision::Running);
    // shows C11
    assert_eq!(decision_text(&ends.decide_at(1_000_000 - day)), wanted);
    ends.csv.status.phase = CsvPhase::Failed;
    ends.csv.status.reason = CsvReason::ComponentUnhealthy;
    let again = "Pending/NeedsCertRotation owned APIServices need cert refresh";
    // shows C11
    assert_eq!(decision_text(&ends.decide_at(2_000_000)), again);
    let unusable = serving_scenario()
        .with(|scenario| change_certificate(scenario, |certificate| certificate.validity = None));
    assert_eq!(decision_text(&unusable.decide_at(200)), wanted);
    ends.csv.status.phase = CsvPhase::Installing;
    assert_eq!(
        decision_text(&ends.decide_at(2_000_000)),
        "Pending/NeedsReinstall calculated deployment install is bad"
    );
}

#[test]
fn an_unavailable_api_service_fails_its_csv_after_a_grace_period() {
    let unavailable =
        serving_scenario().with(|scenario| change_api(scenario, |api| api.available = false));
    // shows C36
    assert_eq!(unavailable.decide_at(110), Decision::Wait(Duration::from_secs(20)));
    let wanted = "Failed/ComponentUnhealthy apiServices not installed";
    // shows C36
    assert_eq!(decision_text(&unavailable.decide_at(130)), wanted);
    let mut failed = unavailable;
    failed.csv.status.phase = CsvPhase::Failed;
    failed.csv.status.reason = CsvReason::ComponentUnhealthy;
    assert_eq!(failed.decide_at(131), Decision::Rest);
    change_api(&mut failed, |api| api.available = true);
    let wanted = "Succeeded/InstallSucceeded install strategy completed with no errors";
    assert_eq!(decision_text(&failed.decide_at(132)), wanted);
    let mut installing =
        serving_scenario().with(|scenario| change_api(scenario, |api| api.available = false));
    installing.csv.status.phase = CsvPhase::Installing;
    assert_eq!(
        decision_text(&installing.decide_at(1)),
        "Installing/InstallWaiting apiServices not installed"
    );
}

/// A CSV that is being installed, with a webhook of this type in its running Deployment.
fn webhook_scenario(kind: &str) -> Scenario {
    let mut scenario = serving_scenario();
    scenario.csv.status.phase = CsvPhase::Installing;
    scenario.csv.spec.api_service_definitions.owned.clear();
    let webhooks = json!([{
        "type": kind, "generateName": "w", "deploymentName": "d", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "conversionCRDs": ["as.g"], "webhookPath": "/convert",
    }]);
    scenario.csv.spec.webhook_definitions = serde_json::from_value(webhooks).unwrap();
    scenario
}

/// Lets the callers of the webhook trust these CAs.
fn set_webhook_cas(scenario: &mut Scenario, ca_hashes: &[&str]) {
    let ca_hashes: Vec<String> = ca_hashes.iter().map(|hash| (*hash).to_owned()).collect();
    let description = scenario.csv.spec.webhook_definitions[0].clone();
    if required::conversion_webhooks(&scenario.csv).next().is_some() {
        let conversion = Conversion {
            service: ("ns".into(), "d-service".into()),
            path: "/convert".into(),
            port: 443,
            reviews: vec!["v1".into()],
            ca_hashes,
        };
        let crd = Crd { conversion: Some(conversion), ..(*scenario.observed.crds["as.g"]).clone() };
        scenario.observed.crds.insert("as.g".into(), Arc::new(crd));
        return;
    }
    let selector = objects::namespaces(&scenario.groups[0]);
    let labels = [
        (names::WEBHOOK_GENERATE_NAME, description.generate_name.clone()),
        (names::WEBHOOK_HASH, required::webhook_hash(&description)),
    ];
    let configuration = WebhookConfiguration {
        labels: labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        webhooks: vec![objects::webhook(&scenario.csv, &description, &selector, None)],
        ca_hashes,
    };
    scenario.observed.serving.webhook_configurations.push(OwnedWebhookConfiguration {
        name: "w-1".into(),
        mutating: is_mutating(&description.kind),
        configuration: Arc::new(configuration),
    });
}

#[test]
fn a_csv_succeeds_once_the_callers_of_its_webhook_trust_its_ca() {
    for kind in ["ConversionWebhook", "ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"] {
        let decision = |ca_hashes: Option<&[&str]>| {
            let scenario = webhook_scenario(kind);
            decision_text(
                &scenario
                    .with(|scenario| {
                        if let Some(ca_hashes) = ca_hashes {
                            set_webhook_cas(scenario, ca_hashes);
                        }
                    })
                    .decide_at(200),
            )
        };
        let runs = "Succeeded/InstallSucceeded install strategy completed with no errors";
        assert_eq!(decision(None), "serve", "{kind}: nobody calls it");
        assert_eq!(decision(Some(&[])), "serve", "{kind}: nobody is trusted");
        assert_eq!(decision(Some(&["x"])), "serve", "{kind}: somebody else is trusted");
        // shows C26
        assert_eq!(decision(Some(&["h"])), runs, "{kind}");
        // The previous CA is also trusted, until the pods that use it are gone.
        assert_eq!(decision(Some(&["h", "x"])), runs, "{kind}");
    }
    // Two configurations for one description are too many.
    let twice = webhook_scenario("ValidatingAdmissionWebhook").with(|scenario| {
        set_webhook_cas(scenario, &["h"]);
        set_webhook_cas(scenario, &["h"]);
    });
    assert_eq!(twice.decide_at(200), Decision::Serve);
}
