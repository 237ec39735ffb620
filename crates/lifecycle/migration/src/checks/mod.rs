//! The checks before a migration (C1 to C9 of `library-olm`), and the state that follows from them.

use crate::extension::is_unfinished;
use crate::installed::{ClassicOperator, installed_csv, package_of, properties, reference};
use crate::names::MIGRATED_FROM_SUBSCRIPTION;
use crate::offers::{CatalogOffer, best_offer};
use mainstay_api::names;
use mainstay_formats::names::dns1123_subdomain;
use mainstay_object::Object;
use mainstay_releases::secret_name;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// What an administrator may accept in spite of a failed check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acknowledgement {
    /// The operator watches all namespaces afterwards.
    WatchScopeChange,
    /// The operator has no OperatorCondition afterwards.
    OperatorCondition,
    /// The operator uses APIs of OLM classic.
    Olmv0ApiAccess,
    /// The objects are written with the permissions of OLM v1.
    ScopedServiceAccount,
    /// The Subscription or the ClusterServiceVersion is not in a steady state.
    NotSteadyState,
}

impl Acknowledgement {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::WatchScopeChange,
        Self::OperatorCondition,
        Self::Olmv0ApiAccess,
        Self::ScopedServiceAccount,
        Self::NotSteadyState,
    ];

    /// The name in flags (`--acknowledge-…`) and annotations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WatchScopeChange => "watch-scope-change",
            Self::OperatorCondition => "operator-condition",
            Self::Olmv0ApiAccess => "olmv0-api-access",
            Self::ScopedServiceAccount => "scoped-serviceaccount",
            Self::NotSteadyState => "not-steady-state",
        }
    }
}

/// What is acknowledged.
pub type Acknowledgements = BTreeSet<Acknowledgement>;

/// The state of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum MigrationState {
    /// Both a Subscription and the ClusterExtension that replaces it exist, or the conversion has not ended.
    Conflict,
    /// A check failed.
    Ineligible,
    /// A ClusterExtension replaced the Subscription.
    AlreadyMigrated,
    /// The operator can be converted.
    Eligible,
}

impl MigrationState {
    /// The name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::Ineligible => "Ineligible",
            Self::AlreadyMigrated => "AlreadyMigrated",
            Self::Eligible => "Eligible",
        }
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CheckOutcome {
    /// Nothing is in the way.
    Passed,
    /// It failed, and that is acknowledged.
    Acknowledged,
    /// It failed.
    Failed,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its number in `library-olm`; empty for checks that have none.
    pub id: &'static str,
    /// What is checked.
    pub name: &'static str,
    /// Its outcome.
    pub outcome: CheckOutcome,
    /// Why.
    pub reason: String,
    /// What helps, if it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// What is known of an operator before its migration.
#[derive(Clone, Debug)]
pub struct CheckInput<'a> {
    /// The Subscription.
    pub subscription: &'a Object,
    /// The ClusterServiceVersion of `status.installedCSV`, if it exists.
    pub csv: Option<&'a Object>,
    /// The OperatorGroups of the namespace.
    pub groups: &'a [Object],
    /// The OperatorCondition of the ClusterServiceVersion.
    pub condition: Option<&'a Object>,
    /// All Subscriptions.
    pub subscriptions: &'a [Object],
    /// All ClusterServiceVersions; copies do not count.
    pub csvs: &'a [Object],
    /// All ClusterExtensions.
    pub extensions: &'a [Object],
    /// The CustomResourceDefinition of ClusterExtensions.
    pub extension_crd: Option<&'a Object>,
    /// Whether something issues the certificates of webhooks at OLM v1: cert-manager, if the cluster has its kinds, or
    /// another issuer that the administrator names.
    pub has_certificate_issuer: bool,
    /// What the ClusterCatalogs offer of the package.
    pub offers: &'a [CatalogOffer],
    /// The name of the new ClusterExtension.
    pub extension: &'a str,
    /// What is acknowledged.
    pub acknowledged: &'a Acknowledgements,
}

/// The report about an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorReport {
    /// The namespace of the Subscription.
    pub namespace: String,
    /// The name of the Subscription.
    pub name: String,
    /// The name of the ClusterExtension.
    pub extension: String,
    /// The package.
    pub package: String,
    /// The installed ClusterServiceVersion.
    #[serde(rename = "installedCSV")]
    pub installed_csv: String,
    /// The installed version.
    pub version: String,
    /// The state.
    pub state: MigrationState,
    /// Why it has this state.
    pub reason: String,
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// What an administrator should know, and what is in the way of nothing.
    pub warnings: Vec<String>,
}

/// `namespace/name` of the Subscription that a ClusterExtension replaces.
pub fn migrated_from(extension: &Object) -> Option<(&str, &str)> {
    extension.annotation(MIGRATED_FROM_SUBSCRIPTION)?.split_once('/')
}

/// The report about a ClusterExtension whose Subscription is gone; none if it replaces no Subscription.
pub fn migrated_report(extension: &Object) -> Option<OperatorReport> {
    let (namespace, name) = migrated_from(extension)?;
    let field = |path: &[&str]| extension.str(path).unwrap_or_default().to_owned();
    let converted = extension.name();
    let (state, reason) = if is_unfinished(extension) {
        let reason = format!("the conversion to ClusterExtension {converted} has not ended");
        (MigrationState::Conflict, reason)
    } else {
        let reason = format!("ClusterExtension {converted} replaced the Subscription");
        (MigrationState::AlreadyMigrated, reason)
    };
    Some(OperatorReport {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        extension: extension.name().to_owned(),
        package: field(&["spec", "source", "catalog", "packageName"]),
        installed_csv: field(&["status", "install", "bundle", "name"]),
        version: field(&["status", "install", "bundle", "version"]),
        state,
        reason,
        checks: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Checks an operator.
pub fn check(input: &CheckInput<'_>) -> OperatorReport {
    let subscription = input.subscription;
    let operator = input.csv.map(|csv| ClassicOperator { subscription, csv });
    let own = reference(subscription);
    let ours = input
        .extensions
        .iter()
        .find(|extension| extension.annotation(MIGRATED_FROM_SUBSCRIPTION) == Some(&own));
    let mut report = OperatorReport {
        namespace: subscription.namespace().to_owned(),
        name: subscription.name().to_owned(),
        extension: ours.map_or(input.extension, Object::name).to_owned(),
        package: package_of(subscription).to_owned(),
        installed_csv: installed_csv(subscription).to_owned(),
        version: operator.map(|operator| operator.version()).unwrap_or_default(),
        state: MigrationState::Conflict,
        reason: String::new(),
        checks: Vec::new(),
        warnings: Vec::new(),
    };
    if let Some(extension) = ours {
        let name = extension.name();
        report.reason = format!("the Subscription and its ClusterExtension {name} both exist");
        return report;
    }
    let mut checks = Checks { acknowledged: input.acknowledged, all: Vec::new() };
    checks.operator_group(subscription, input.groups);
    if let Some(csv) = input.csv {
        checks.csv(csv);
    }
    checks.condition(input.condition);
    if let Some(csv) = input.csv {
        checks.api_access(csv);
    }
    checks.account(input.groups);
    checks.catalogs(input);
    checks.steady_state(input);
    checks.dependency(subscription);
    checks.uniqueness(input);
    checks.name(input.extension);
    checks.configuration(input);
    if let Some(csv) = input.csv {
        checks.webhooks(csv, input.has_certificate_issuer);
    }
    report.checks = checks.all;
    report.warnings = warnings::of(input);
    let failed = report.checks.iter().filter(|check| check.outcome == CheckOutcome::Failed).count();
    (report.state, report.reason) = match failed {
        0 => (MigrationState::Eligible, "all checks passed".to_owned()),
        1 => (MigrationState::Ineligible, "1 check failed".to_owned()),
        many => (MigrationState::Ineligible, format!("{many} checks failed")),
    };
    report
}

/// The command that explains the state of a Subscription.
fn why_command(subscription: &Object) -> String {
    format!("mainstay why subscription/{} -n {}", subscription.name(), subscription.namespace())
}

struct Checks<'a> {
    acknowledged: &'a Acknowledgements,
    all: Vec<Check>,
}

impl Checks<'_> {
    fn pass(&mut self, id: &'static str, name: &'static str, reason: impl Into<String>) {
        let (outcome, reason) = (CheckOutcome::Passed, reason.into());
        self.all.push(Check { id, name, outcome, reason, remedy: String::new() });
    }

    fn fail(
        &mut self,
        id: &'static str,
        name: &'static str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (outcome, reason) = (CheckOutcome::Failed, reason.into());
        self.all.push(Check { id, name, outcome, reason, remedy: remedy.into() });
    }

    /// A failure that may be acknowledged. `effect` is what the flag accepts.
    fn object_to(
        &mut self,
        id: &'static str,
        name: &'static str,
        reason: String,
        (flag, effect): (Acknowledgement, &str),
    ) {
        if self.acknowledged.contains(&flag) {
            let (outcome, remedy) = (CheckOutcome::Acknowledged, String::new());
            let reason = format!("{reason}; acknowledged: {effect}");
            self.all.push(Check { id, name, outcome, reason, remedy });
        } else {
            let flag = flag.name();
            self.fail(id, name, reason, format!("accept with --acknowledge-{flag} that {effect}"));
        }
    }

    /// C1: the OperatorGroup targets all namespaces.
    fn operator_group(&mut self, subscription: &Object, groups: &[Object]) {
        const NAME: &str = "watched namespaces";
        let [group] = groups else {
            let reason = match groups {
                [] => "the namespace has no OperatorGroup".to_owned(),
                groups => format!("the namespace has {} OperatorGroups", groups.len()),
            };
            let remedy = format!("repair the installation first: {}", why_command(subscription));
            return self.fail("C1", NAME, reason, remedy);
        };
        let targets = group.array(&["spec", "targetNamespaces"]);
        let targets: Vec<&str> = targets.iter().filter_map(Value::as_str).collect();
        let selects = group.get(&["spec", "selector"]).is_some_and(|selector| {
            ["matchLabels", "matchExpressions"].iter().any(|part| match &selector[part] {
                Value::Object(labels) => !labels.is_empty(),
                Value::Array(expressions) => !expressions.is_empty(),
                _ => false,
            })
        });
        let name = group.name();
        let reason = match (targets.as_slice(), selects) {
            ([], false) => {
                return self.pass("C1", NAME, format!("OperatorGroup {name} targets all"));
            }
            ([], true) => format!("OperatorGroup {name} targets namespaces by a selector"),
            (targets, _) => format!("OperatorGroup {name} targets {}", targets.join(", ")),
        };
        let effect = "the operator watches all namespaces, and its pods restart once";
        self.object_to("C1", NAME, reason, (Acknowledgement::WatchScopeChange, effect));
    }

    /// C1 to C3: what the bundle needs.
    fn csv(&mut self, csv: &Object) {
        const MODE: &str = "install mode AllNamespaces";
        const DEPENDENCIES: &str = "dependencies";
        const SERVICES: &str = "APIServices";
        let modes = csv.array(&["spec", "installModes"]);
        let is_supported =
            |mode: &Value| mode["type"] == "AllNamespaces" && mode["supported"] == true;
        if modes.iter().any(is_supported) {
            self.pass("C1", MODE, "the bundle supports it");
        } else {
            let remedy =
                "keep OLM classic for this operator, or wait for a version that supports it";
            self.fail("C1", MODE, "the bundle does not support it", remedy);
        }
        let requires = ["olm.package.required", "olm.gvk.required", "olm.constraint"];
        let properties = properties(csv);
        let required: Vec<String> = properties
            .iter()
            .filter(|(kind, _)| requires.contains(&kind.as_str()))
            .map(|(kind, value)| format!("{kind} {value}"))
            .collect();
        if required.is_empty() {
            self.pass("C2", DEPENDENCIES, "the bundle has none");
        } else {
            let reason = format!("the bundle requires {}", required.join(", "));
            let remedy = "OLM v1 resolves no dependencies: keep OLM classic for this operator";
            self.fail("C2", DEPENDENCIES, reason, remedy);
        }
        let owned = csv.array(&["spec", "apiservicedefinitions", "owned"]);
        let owned: Vec<&str> = owned.iter().filter_map(|api| api["name"].as_str()).collect();
        if owned.is_empty() {
            self.pass("C3", SERVICES, "the bundle has none");
        } else {
            let reason = format!("the bundle has {}", owned.join(", "));
            let remedy = "OLM v1 installs no APIServices: keep OLM classic for this operator";
            self.fail("C3", SERVICES, reason, remedy);
        }
    }

    /// C4: the operator does not report an OperatorCondition. Its permission to do so does not count.
    fn condition(&mut self, condition: Option<&Object>) {
        const NAME: &str = "OperatorCondition";
        let is_reported = condition.is_some_and(|condition| {
            ["spec", "status"].iter().any(|part| !condition.array(&[part, "conditions"]).is_empty())
        });
        if !is_reported {
            return self.pass("C4", NAME, "the operator reports none");
        }
        let effect = "the operator cannot delay upgrades";
        let reason = "the operator reports conditions".to_owned();
        self.object_to("C4", NAME, reason, (Acknowledgement::OperatorCondition, effect));
    }

    /// C5: the operator does not use APIs of OLM classic, or knows those of OLM v1, too.
    fn api_access(&mut self, csv: &Object) {
        const NAME: &str = "use of OLM classic";
        const RESOURCES: [&str; 5] =
            ["subscriptions", "installplans", "clusterserviceversions", "catalogsources", "*"];
        let mut used = BTreeSet::new();
        let mut knows_v1 = false;
        for permission in csv.array(&["spec", "install", "spec", "clusterPermissions"]) {
            for rule in permission["rules"].as_array().map(Vec::as_slice).unwrap_or_default() {
                let texts = |field: &str| -> Vec<&str> {
                    let all = rule[field].as_array().map(Vec::as_slice).unwrap_or_default();
                    all.iter().filter_map(Value::as_str).collect()
                };
                let groups = texts("apiGroups");
                knows_v1 |= groups.contains(&"olm.operatorframework.io");
                if groups.contains(&"operators.coreos.com") {
                    let resources = texts("resources").into_iter();
                    used.extend(resources.filter(|resource| RESOURCES.contains(resource)));
                }
            }
        }
        match (used.is_empty(), knows_v1) {
            (true, _) => self.pass("C5", NAME, "the operator has no permission for its APIs"),
            (false, true) => self.pass("C5", NAME, "the operator may use OLM v1, too"),
            (false, false) => {
                let used: Vec<&str> = used.into_iter().collect();
                let reason = format!("the operator may use {}", used.join(", "));
                let effect = "what it does with them has no effect";
                self.object_to("C5", NAME, reason, (Acknowledgement::Olmv0ApiAccess, effect));
            }
        }
    }

    /// C6: no ServiceAccount limits the installation.
    fn account(&mut self, groups: &[Object]) {
        const NAME: &str = "ServiceAccount of the OperatorGroup";
        let accounts = groups.iter().filter_map(|group| group.str(&["spec", "serviceAccountName"]));
        match accounts.into_iter().find(|account| !account.is_empty()) {
            None => self.pass("C6", NAME, "none"),
            Some(account) => {
                let reason = format!("ServiceAccount {account} limits the installation");
                let effect = "the objects are written with the permissions of OLM v1";
                self.object_to("C6", NAME, reason, (Acknowledgement::ScopedServiceAccount, effect));
            }
        }
    }

    /// C7: a ClusterCatalog has the installed bundle.
    fn catalogs(&mut self, input: &CheckInput<'_>) {
        const NAME: &str = "catalog";
        let subscription = input.subscription;
        let (package, bundle) = (package_of(subscription), installed_csv(subscription));
        let channel = subscription.str(&["spec", "channel"]).unwrap_or_default();
        if bundle.is_empty() {
            let reason = "no version is installed that a ClusterCatalog could have";
            let remedy = format!("see why with: {}", why_command(subscription));
            return self.fail("C7", NAME, reason, remedy);
        }
        if let Some((offer, ..)) = best_offer(input.offers, bundle, channel) {
            let catalog = &offer.catalog;
            return self.pass("C7", NAME, format!("ClusterCatalog {catalog} has {bundle}"));
        }
        let unreadable = input.offers.iter().filter_map(|offer| {
            let why = offer.package.as_ref().err()?;
            Some(format!("ClusterCatalog {} cannot be read: {why}", offer.catalog))
        });
        let unreadable: Vec<String> = unreadable.collect();
        let having = input.offers.iter().filter(|offer| matches!(offer.package, Ok(Some(_))));
        let having: Vec<&str> = having.map(|offer| &*offer.catalog).collect();
        let in_channel =
            if channel.is_empty() { String::new() } else { format!(" in channel {channel}") };
        let mut reason = if having.is_empty() {
            format!("no ClusterCatalog has package {package}")
        } else {
            format!("package {package} of {} has no {bundle}{in_channel}", having.join(", "))
        };
        for why in unreadable {
            reason.push_str("; ");
            reason.push_str(&why);
        }
        let remedy = "convert the CatalogSource first: mainstay extension migrate catalogs";
        self.fail("C7", NAME, reason, remedy);
    }

    /// C8: the Subscription and its ClusterServiceVersion are in a steady state.
    fn steady_state(&mut self, input: &CheckInput<'_>) {
        const SUBSCRIPTION: &str = "Subscription";
        const CSV: &str = "ClusterServiceVersion";
        let effect = "the state at this moment is kept";
        let flag = (Acknowledgement::NotSteadyState, effect);
        let state = input.subscription.str(&["status", "state"]).unwrap_or_default();
        if matches!(state, "AtLatestKnown" | "UpgradePending") {
            self.pass("C8", SUBSCRIPTION, format!("its state is {state}"));
        } else {
            let reason = format!("its state is {state:?}, not AtLatestKnown or UpgradePending");
            self.object_to("C8", SUBSCRIPTION, reason, flag);
        }
        let Some(csv) = input.csv else {
            let reason = match installed_csv(input.subscription) {
                "" => "none is installed".to_owned(),
                name => format!("{name} does not exist"),
            };
            let remedy = format!("see why with: {}", why_command(input.subscription));
            return self.fail("C8", CSV, reason, remedy);
        };
        let field = |name| csv.str(&["status", name]).unwrap_or_default();
        match (field("phase"), field("reason")) {
            ("Succeeded", "InstallSucceeded") => {
                self.pass("C8", CSV, format!("{} succeeded", csv.name()));
            }
            (phase, reason) => {
                let reason = format!("the phase of {} is {phase:?} ({reason})", csv.name());
                self.object_to("C8", CSV, reason, flag);
            }
        }
    }

    /// C9: nobody but the user asked for the operator.
    fn dependency(&mut self, subscription: &Object) {
        const NAME: &str = "installed by a user";
        match subscription.annotation(names::GENERATED_BY) {
            None => self.pass("C9", NAME, "no InstallPlan made the Subscription"),
            Some(plan) => {
                let reason = format!("InstallPlan {plan} installed it as a dependency");
                let remedy =
                    "OLM classic would install it again: keep OLM classic for it and its dependant";
                self.fail("C9", NAME, reason, remedy);
            }
        }
    }

    /// Nothing else has the package or the name.
    fn uniqueness(&mut self, input: &CheckInput<'_>) {
        const NAME: &str = "other installations";
        let (own, package) = (reference(input.subscription), package_of(input.subscription));
        let other = input
            .subscriptions
            .iter()
            .find(|other| package_of(other) == package && reference(other) != own);
        let has_package = |extension: &&Object| {
            extension.str(&["spec", "source", "catalog", "packageName"]) == Some(package)
        };
        let has_name = |extension: &&Object| extension.name() == input.extension;
        let extension = input.extensions.iter().find(has_package);
        match (other, extension.or_else(|| input.extensions.iter().find(has_name))) {
            (None, None) => self.pass("", NAME, "none of the package"),
            (Some(other), _) => {
                let reason = format!("Subscription {} has the package, too", reference(other));
                let remedy = "OLM v1 installs a package once per cluster: remove one of them";
                self.fail("", NAME, reason, remedy);
            }
            (None, Some(extension)) if has_package(&extension) => {
                let reason = format!("ClusterExtension {} has the package", extension.name());
                let remedy =
                    "OLM v1 installs a package once per cluster: delete the ClusterExtension";
                self.fail("", NAME, reason, remedy);
            }
            (None, Some(extension)) => {
                let reason = format!("ClusterExtension {} has the name", extension.name());
                self.fail("", NAME, reason, "name the new one with --ce-name, or delete it");
            }
        }
    }

    /// The name is one of a ClusterExtension, and fits into the labels of releases.
    fn name(&mut self, extension: &str) {
        const NAME: &str = "name";
        if let Some(why) = dns1123_subdomain(extension).into_iter().next() {
            let reason = format!("{extension} is no name of a ClusterExtension: {why}");
            return self.fail("", NAME, reason, "choose another name with --ce-name NAME");
        }
        // Revisions of two digits have room, too.
        let longest = secret_name(extension, 10).len();
        match longest.checked_sub(63).filter(|excess| *excess > 0) {
            None => self.pass("", NAME, extension),
            Some(excess) => {
                let reason = format!("{extension} is {excess} characters too long for a release");
                self.fail("", NAME, reason, "choose a shorter name with --ce-name NAME");
            }
        }
    }

    /// `spec.config` of the Subscription has a place in the ClusterExtension.
    fn configuration(&mut self, input: &CheckInput<'_>) {
        const NAME: &str = "configuration";
        let config = crate::extension::deployment_config(input.subscription);
        let has_field = input.extension_crd.is_some_and(|crd| {
            crd.array(&["spec", "versions"]).iter().any(|version| {
                let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
                version["name"] == "v1" && !spec["properties"]["config"].is_null()
            })
        });
        match (config, has_field) {
            (None, _) => self.pass("", NAME, "the Subscription has none"),
            (Some(_), true) => {
                self.pass("", NAME, "spec.config becomes the deploymentConfig");
            }
            (Some(_), false) => {
                let reason =
                    "the Subscription has spec.config, and ClusterExtensions have no field for it";
                let remedy = "install the experimental CustomResourceDefinitions: mainstay run --crd-channel experimental";
                self.fail("", NAME, reason, remedy);
            }
        }
    }
}

#[cfg(test)]
mod tests;
mod warnings;
mod webhooks;
