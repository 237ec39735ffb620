use super::*;
use crate::offers::PackageOffer;
use serde_json::json;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// An operator whose checks all pass.
struct Scenario {
    subscription: Object,
    csv: Option<Object>,
    groups: Vec<Object>,
    condition: Option<Object>,
    subscriptions: Vec<Object>,
    csvs: Vec<Object>,
    extensions: Vec<Object>,
    crd: Option<Object>,
    has_certificate_issuer: bool,
    offers: Vec<CatalogOffer>,
    acknowledged: Acknowledgements,
    name: &'static str,
}

impl Scenario {
    fn new() -> Self {
        let documents = r#"
            {"schema": "olm.package", "name": "tea", "defaultChannel": "stable"}
            {"schema": "olm.channel", "name": "stable", "package": "tea", "entries": [{"name": "tea.v1"}]}
            {"schema": "olm.bundle", "name": "tea.v1", "package": "tea", "image": "r/tea:1",
             "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": "1.0.0"}}]}"#;
        let package = PackageOffer::parse("tea", documents.as_bytes()).unwrap();
        Self {
            subscription: object(json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                "metadata": {"name": "tea", "namespace": "ns"},
                "spec": {"name": "tea", "channel": "stable"},
                "status": {"installedCSV": "tea.v1", "state": "AtLatestKnown"},
            })),
            csv: Some(object(json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": {"name": "tea.v1", "namespace": "ns"},
                "spec": {
                    "version": "1.0.0",
                    "installModes": [{"type": "AllNamespaces", "supported": true}],
                    "customresourcedefinitions": {"owned": [{"name": "pots.tea"}]},
                },
                "status": {"phase": "Succeeded", "reason": "InstallSucceeded"},
            }))),
            groups: vec![object(json!({
                "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
                "metadata": {"name": "og", "namespace": "ns"}, "spec": {},
            }))],
            condition: None,
            subscriptions: Vec::new(),
            csvs: Vec::new(),
            extensions: Vec::new(),
            crd: None,
            has_certificate_issuer: false,
            offers: vec![CatalogOffer {
                catalog: "cat".to_owned(),
                priority: 0,
                package: Ok(package),
            }],
            acknowledged: Acknowledgements::new(),
            name: "tea",
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn with_csv(self, path: &[&str], value: Value) -> Self {
        self.with(|scenario| scenario.csv.as_mut().unwrap().set(path, value))
    }

    fn report(&self) -> OperatorReport {
        check(&CheckInput {
            subscription: &self.subscription,
            csv: self.csv.as_ref(),
            groups: &self.groups,
            condition: self.condition.as_ref(),
            subscriptions: &self.subscriptions,
            csvs: &self.csvs,
            extensions: &self.extensions,
            extension_crd: self.crd.as_ref(),
            has_certificate_issuer: self.has_certificate_issuer,
            offers: &self.offers,
            extension: self.name,
            acknowledged: &self.acknowledged,
        })
    }

    /// `id name: reason` of failed checks.
    fn failures(&self) -> Vec<String> {
        let report = self.report();
        let failed = report.checks.iter().filter(|check| check.outcome == CheckOutcome::Failed);
        let failed = failed.map(|check| format!("{} {}: {}", check.id, check.name, check.reason));
        let failed: Vec<String> = failed.collect();
        let is_eligible = report.state == MigrationState::Eligible;
        assert_eq!(is_eligible, failed.is_empty(), "{}", report.reason);
        failed
    }
}

#[test]
fn healthy_operator_is_eligible() {
    let scenario = Scenario::new();
    assert_eq!(scenario.failures(), [""; 0]);
    let report = scenario.report();
    assert_eq!((report.version.as_str(), report.warnings.len()), ("1.0.0", 0));
    let ids: BTreeSet<&str> = report.checks.iter().map(|check| check.id).collect();
    let all = ["", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9"];
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn hard_checks_cannot_be_acknowledged() {
    let all: Acknowledgements = Acknowledgement::ALL.into();
    let properties = r#"[{"type": "olm.gvk.required", "value": {"kind": "Cup"}}]"#;
    for (scenario, expected) in [
        (
            Scenario::new().with_csv(&["spec", "installModes"], json!([])),
            "C1 install mode AllNamespaces: the bundle does not support it",
        ),
        (
            Scenario::new().with_csv(
                &["metadata", "annotations"],
                json!({"operatorframework.io/properties": properties}),
            ),
            r#"C2 dependencies: the bundle requires olm.gvk.required {"kind":"Cup"}"#,
        ),
        (
            Scenario::new().with_csv(
                &["spec", "apiservicedefinitions"],
                json!({"owned": [{"name": "v1.tea"}]}),
            ),
            "C3 APIServices: the bundle has v1.tea",
        ),
        (
            Scenario::new().with(|scenario| scenario.offers.clear()),
            "C7 catalog: no ClusterCatalog has package tea",
        ),
        (
            Scenario::new().with(|scenario| {
                scenario.subscription.set(&["spec", "channel"], "fast".into());
            }),
            "C7 catalog: package tea of cat has no tea.v1 in channel fast",
        ),
        (
            Scenario::new().with(|scenario| scenario.csv = None),
            "C8 ClusterServiceVersion: tea.v1 does not exist",
        ),
        (
            Scenario::new().with(|scenario| {
                scenario.subscription.set_annotation("olm.generated-by", "install-abc");
            }),
            "C9 installed by a user: InstallPlan install-abc installed it as a dependency",
        ),
        (
            Scenario::new().with(|scenario| {
                let mut other = scenario.subscription.clone();
                other.set(&["metadata", "namespace"], "far".into());
                scenario.subscriptions = vec![scenario.subscription.clone(), other];
            }),
            " other installations: Subscription far/tea has the package, too",
        ),
        (
            Scenario::new().with(|scenario| {
                scenario.extensions = vec![object(json!({
                    "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                    "metadata": {"name": "mine"},
                    "spec": {"source": {"catalog": {"packageName": "tea"}}},
                }))];
            }),
            " other installations: ClusterExtension mine has the package",
        ),
        (
            Scenario::new().with(|scenario| {
                scenario.extensions = vec![object(json!({
                    "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                    "metadata": {"name": "tea"},
                    "spec": {"source": {"catalog": {"packageName": "coffee"}}},
                }))];
            }),
            " other installations: ClusterExtension tea has the name",
        ),
        (
            Scenario::new().with(|scenario| {
                scenario.subscription.set(&["spec", "config"], json!({"env": [{"name": "A"}]}));
            }),
            " configuration: the Subscription has spec.config, and ClusterExtensions have no field for it",
        ),
        (
            Scenario::new().with(|scenario| {
                scenario.name = "forty-two-characters-are-too-long-for-this";
            }),
            " name: forty-two-characters-are-too-long-for-this is 2 characters too long for a release",
        ),
        (
            Scenario::new().with(|scenario| scenario.groups.clear()),
            "C1 watched namespaces: the namespace has no OperatorGroup",
        ),
    ] {
        let scenario = scenario.with(|scenario| scenario.acknowledged.clone_from(&all));
        assert_eq!(scenario.failures(), [expected]);
    }
}

#[test]
fn name_must_be_one_of_a_cluster_extension() {
    let scenario = Scenario::new().with(|scenario| scenario.name = "Kiwi_X");
    let failures = scenario.failures();
    let expected = " name: Kiwi_X is no name of a ClusterExtension: a lowercase RFC 1123 subdomain";
    assert!(failures.len() == 1 && failures[0].starts_with(expected), "{failures:?}");
}

#[test]
fn operator_that_is_not_installed_yet_is_explained_by_its_subscription() {
    let scenario = Scenario::new().with(|scenario| {
        scenario.csv = None;
        scenario.subscription.set(&["status", "installedCSV"], "".into());
    });
    let report = scenario.report();
    for (id, reason) in [
        ("C7", "no version is installed that a ClusterCatalog could have"),
        ("C8", "none is installed"),
    ] {
        let found = |check: &&Check| check.id == id && check.outcome == CheckOutcome::Failed;
        let check = report.checks.iter().find(found).unwrap();
        assert_eq!(check.reason, reason);
        assert_eq!(check.remedy, "see why with: mainstay why subscription/tea -n ns");
    }
}

#[test]
fn soft_checks_pass_once_they_are_acknowledged() {
    let permissions = json!([{"rules": [
        {"apiGroups": ["operators.coreos.com"], "resources": ["subscriptions", "operatorconditions"]},
    ]}]);
    for (flag, scenario, expected) in [
        (
            Acknowledgement::WatchScopeChange,
            Scenario::new().with(|scenario| {
                scenario.groups[0].set(&["spec", "targetNamespaces"], json!(["a", "b"]));
            }),
            vec!["C1 watched namespaces: OperatorGroup og targets a, b"],
        ),
        (
            Acknowledgement::WatchScopeChange,
            Scenario::new().with(|scenario| {
                let selector = json!({"matchLabels": {"a": "b"}});
                scenario.groups[0].set(&["spec", "selector"], selector);
            }),
            vec!["C1 watched namespaces: OperatorGroup og targets namespaces by a selector"],
        ),
        (
            Acknowledgement::OperatorCondition,
            Scenario::new().with(|scenario| {
                scenario.condition = Some(object(json!({
                    "apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition",
                    "metadata": {"name": "tea.v1"},
                    "spec": {"conditions": [{"type": "Upgradeable"}]},
                })));
            }),
            vec!["C4 OperatorCondition: the operator reports conditions"],
        ),
        (
            Acknowledgement::Olmv0ApiAccess,
            Scenario::new()
                .with_csv(&["spec", "install", "spec", "clusterPermissions"], permissions),
            vec!["C5 use of OLM classic: the operator may use subscriptions"],
        ),
        (
            Acknowledgement::ScopedServiceAccount,
            Scenario::new().with(|scenario| {
                scenario.groups[0].set(&["spec", "serviceAccountName"], "small".into());
            }),
            vec![
                "C6 ServiceAccount of the OperatorGroup: ServiceAccount small limits the installation",
            ],
        ),
        (
            Acknowledgement::NotSteadyState,
            Scenario::new()
                .with(|scenario| scenario.subscription.set(&["status", "state"], "".into()))
                .with_csv(&["status", "phase"], "Failed".into()),
            vec![
                "C8 Subscription: its state is \"\", not AtLatestKnown or UpgradePending",
                "C8 ClusterServiceVersion: the phase of tea.v1 is \"Failed\" (InstallSucceeded)",
            ],
        ),
    ] {
        assert_eq!(scenario.failures(), expected);
        let remedies = scenario.report();
        let mut remedies = remedies.checks.iter().filter(|check| !check.remedy.is_empty());
        let wanted = format!("accept with --acknowledge-{} that", flag.name());
        assert!(remedies.all(|check| check.remedy.starts_with(&wanted)), "{wanted}");
        let acknowledged = scenario.with(|scenario| scenario.acknowledged.extend([flag]));
        assert_eq!(acknowledged.failures(), [""; 0]);
    }
}

#[test]
fn operator_that_knows_v1_may_use_classic() {
    let rules = json!([{"rules": [
        {"apiGroups": ["operators.coreos.com"], "resources": ["*"]},
        {"apiGroups": ["olm.operatorframework.io"], "resources": ["clusterextensions"]},
    ]}]);
    let scenario =
        Scenario::new().with_csv(&["spec", "install", "spec", "clusterPermissions"], rules);
    assert_eq!(scenario.failures(), [""; 0]);
}

#[test]
fn webhooks_need_cert_manager_and_conversions_no_other_install_mode() {
    let webhooks = |kind: &str| json!([{"type": kind, "generateName": "w.tea"}]);
    let path = ["spec", "webhookdefinitions"];
    let validating = || Scenario::new().with_csv(&path, webhooks("ValidatingAdmissionWebhook"));
    assert_eq!(
        validating().failures(),
        ["certificates of webhooks: the bundle has webhooks, and the cluster has no cert-manager"]
            .map(|text| format!(" {text}"))
    );
    let ready = validating().with(|scenario| scenario.has_certificate_issuer = true);
    assert_eq!(ready.failures(), [""; 0]);
    let modes = json!([
        {"type": "OwnNamespace", "supported": true}, {"type": "AllNamespaces", "supported": true},
        {"type": "SingleNamespace", "supported": false},
    ]);
    let several = ready.with_csv(&["spec", "installModes"], modes);
    assert_eq!(several.failures(), [""; 0], "only conversions need a single install mode");
    let converting = several.with_csv(&path, webhooks("ConversionWebhook"));
    assert_eq!(
        converting.failures(),
        [" conversion webhooks: the bundle has some, and supports OwnNamespace, too"]
    );
    let modes = json!([{"type": "AllNamespaces", "supported": true}]);
    assert_eq!(converting.with_csv(&["spec", "installModes"], modes).failures(), [""; 0]);
}

#[test]
fn dependants_are_a_warning() {
    let dependant = |name: &str, copied: bool| {
        let mut csv = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": name, "namespace": "far"},
            "spec": {"customresourcedefinitions": {"required": [{"name": "pots.tea"}]}},
        }));
        if copied {
            csv.set_label("olm.copiedFrom", "far");
        }
        csv
    };
    let scenario = Scenario::new().with(|scenario| {
        scenario.csvs = vec![dependant("cup.v1", false), dependant("copy.v1", true)];
    });
    assert_eq!(scenario.failures(), [""; 0]);
    assert_eq!(
        scenario.report().warnings,
        [
            "these operators depend on package tea, and OLM classic does not find it any more: far/cup.v1"
        ]
    );
}

#[test]
fn annotation_with_two_values_is_a_warning() {
    let template = json!({"metadata": {"annotations": {"product": "2", "other": "x"}}});
    let deployments = json!([{"name": "pot", "spec": {"template": template}}]);
    let scenario = |product: &str| {
        let path = ["spec", "install", "spec", "deployments"];
        let mut scenario = Scenario::new().with_csv(&path, deployments.clone());
        if let Some(csv) = &mut scenario.csv {
            csv.set_annotation("product", product);
        }
        scenario
    };
    assert!(scenario("2").report().warnings.is_empty());
    let warning = "the pods of Deployment pot restart: their annotation product has another value in the ClusterServiceVersion";
    assert_eq!(scenario("1").report().warnings, [warning]);
}

#[test]
fn subscription_beside_its_extension_is_a_conflict() {
    let extension = object(json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "renamed", "annotations": {MIGRATED_FROM_SUBSCRIPTION: "ns/tea"}},
    }));
    let migrated = migrated_report(&extension).unwrap();
    assert_eq!(migrated.state, MigrationState::AlreadyMigrated);
    assert_eq!((migrated.namespace.as_str(), migrated.name.as_str()), ("ns", "tea"));
    let scenario = Scenario::new().with(|scenario| scenario.extensions = vec![extension]);
    let report = scenario.report();
    assert_eq!((report.state, report.extension.as_str()), (MigrationState::Conflict, "renamed"));
    assert!(report.checks.is_empty());
}
