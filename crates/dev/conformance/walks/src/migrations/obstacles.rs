//! Expected results of `migrate check`: what is in the way of an operator, from its bundle alone.

use crate::extensions::refusal::{
    DEPENDENCIES, converts_in_other_modes, install_modes, rules, serves_apis,
};
use mainstay_catalog::Bundle;
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeSet;

/// The APIs of OLM classic.
const CLASSIC_GROUP: &str = "operators.coreos.com";
const CLASSIC_APIS: [&str; 5] =
    ["subscriptions", "installplans", "clusterserviceversions", "catalogsources", "*"];
/// The APIs of OLM v1.
const V1_GROUP: &str = "olm.operatorframework.io";

/// What is in the way of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// Its OperatorGroup does not target all namespaces, and it cannot watch them.
    InstallModes,
    /// It requires other operators.
    Dependencies,
    /// It serves aggregated APIs.
    ApiServices,
    /// It has conversion webhooks, and supports more install modes than `AllNamespaces`.
    ConversionInstallModes,
    /// It has webhooks, and the cluster has no cert-manager.
    Certificates,
    /// It uses APIs of OLM classic; a flag accepts that.
    ClassicApis,
}

impl Obstacle {
    /// Those of a bundle, on a cluster with or without cert-manager.
    pub(super) fn of(bundle: &Bundle, csv: &Object, has_cert_manager: bool) -> BTreeSet<Self> {
        let mut all = BTreeSet::new();
        if !install_modes(csv).contains("AllNamespaces") {
            all.insert(Self::InstallModes);
        }
        if bundle.properties.iter().any(|property| DEPENDENCIES.contains(&&*property.kind)) {
            all.insert(Self::Dependencies);
        }
        if serves_apis(csv) {
            all.insert(Self::ApiServices);
        }
        if converts_in_other_modes(csv) {
            all.insert(Self::ConversionInstallModes);
        }
        if !csv.array(&["spec", "webhookdefinitions"]).is_empty() && !has_cert_manager {
            all.insert(Self::Certificates);
        }
        if uses_classic(csv) {
            all.insert(Self::ClassicApis);
        }
        all
    }

    /// The checks that fail: number and name.
    pub(super) const fn checks(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::InstallModes => {
                &[("C1", "watched namespaces"), ("C1", "install mode AllNamespaces")]
            }
            Self::Dependencies => &[("C2", "dependencies")],
            Self::ApiServices => &[("C3", "APIServices")],
            Self::ConversionInstallModes => &[("", "conversion webhooks")],
            Self::Certificates => &[("", "certificates of webhooks")],
            Self::ClassicApis => &[("C5", "use of OLM classic")],
        }
    }

    /// The flag that accepts it.
    pub(super) const fn flag(self) -> Option<&'static str> {
        match self {
            Self::ClassicApis => Some("--acknowledge-olmv0-api-access"),
            _ => None,
        }
    }

    /// It in a few words.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::InstallModes => rules::INSTALL_MODES,
            Self::Dependencies => rules::DEPENDENCIES,
            Self::ApiServices => rules::API_SERVICES,
            Self::ConversionInstallModes => rules::CONVERSION_INSTALL_MODES,
            Self::Certificates => rules::WEBHOOKS,
            Self::ClassicApis => "use of APIs of OLM classic",
        }
    }

    /// Whether a walk removes it: by a flag, or by starting cert-manager.
    pub(super) const fn is_removed(self) -> bool {
        matches!(self, Self::ClassicApis | Self::Certificates)
    }
}

/// Whether the operator may use APIs of OLM classic, and none of OLM v1.
fn uses_classic(csv: &Object) -> bool {
    let permissions = csv.array(&["spec", "install", "spec", "clusterPermissions"]);
    let rules: Vec<&Value> = permissions
        .iter()
        .filter_map(|permission| permission["rules"].as_array())
        .flatten()
        .collect();
    let has = |rule: &Value, field: &str, wanted: &[&str]| {
        let mut values = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        values.any(|value| wanted.contains(&value))
    };
    rules.iter().any(|rule| {
        has(rule, "apiGroups", &[CLASSIC_GROUP]) && has(rule, "resources", &CLASSIC_APIS)
    }) && !rules.iter().any(|rule| has(rule, "apiGroups", &[V1_GROUP]))
}
