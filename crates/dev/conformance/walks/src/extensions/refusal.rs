//! Expected refusals: the rules of OLM v1 that a bundle does not meet, from its content alone.

use mainstay_catalog::Bundle;
use mainstay_client::Cluster;
use mainstay_crdsafety::{Crd, condition_message, preflight};
use mainstay_object::Object;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// The properties that require other operators.
pub(crate) const DEPENDENCIES: [&str; 3] =
    ["olm.package.required", "olm.gvk.required", "olm.constraint"];
/// The kinds that a bundle with webhooks needs for its certificates.
const CERTIFICATE_KINDS: [(&str, &str); 2] =
    [("cert-manager.io/v1", "Certificate"), ("cert-manager.io/v1", "Issuer")];
/// The kinds that manifests of a bundle may have.
const MANIFEST_KINDS: [&str; 22] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterServiceVersion",
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "CustomResourceDefinition",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PodMonitor",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

/// Rules of OLM v1 in a few words.
pub(crate) mod rules {
    pub(crate) const DEPENDENCIES: &str = "dependencies";
    pub(crate) const API_SERVICES: &str = "aggregated APIs";
    pub(crate) const INSTALL_MODES: &str = "no `AllNamespaces` install mode";
    pub(crate) const CONVERSION_INSTALL_MODES: &str =
        "conversion webhooks with other install modes";
    pub(crate) const WEBHOOKS: &str = "webhooks, without cert-manager";
}

/// The install modes that a ClusterServiceVersion supports.
pub(crate) fn install_modes(csv: &Object) -> BTreeSet<&str> {
    let modes = csv.array(&["spec", "installModes"]).iter();
    modes
        .filter(|mode| mode["supported"] == true)
        .filter_map(|mode| mode["type"].as_str())
        .collect()
}

/// Whether an operator serves aggregated APIs.
pub(crate) fn serves_apis(csv: &Object) -> bool {
    !csv.array(&["spec", "apiservicedefinitions", "owned"]).is_empty()
}

/// Whether an operator has conversion webhooks, and supports more install modes than `AllNamespaces`.
pub(crate) fn converts_in_other_modes(csv: &Object) -> bool {
    let mut webhooks = csv.array(&["spec", "webhookdefinitions"]).iter();
    webhooks.any(|webhook| webhook["type"] == "ConversionWebhook") && install_modes(csv).len() > 1
}

/// A rule of OLM v1 that a bundle does not meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It requires other operators, by this type of property.
    Dependency(String),
    /// It serves aggregated APIs.
    ApiServices,
    /// It cannot watch all namespaces.
    InstallModes,
    /// It has conversion webhooks, and supports more install modes than `AllNamespaces`.
    ConversionInstallModes,
    /// It has manifests of these kinds, which no bundle may have.
    ManifestKinds(BTreeSet<String>),
    /// It has webhooks, and the cluster has no cert-manager.
    Webhooks,
    /// It has objects of kinds that the cluster does not serve.
    UnknownKinds(BTreeSet<KindName>),
}

/// API version and kind.
pub(crate) type KindName = (String, String);

impl Refusal {
    /// The first rule that a bundle does not meet; none if it can be installed.
    pub(super) fn of(
        bundle: &Bundle,
        objects: &[Object],
        served: &BTreeSet<KindName>,
    ) -> Option<Self> {
        let dependency =
            bundle.properties.iter().find(|property| DEPENDENCIES.contains(&&*property.kind));
        if let Some(property) = dependency {
            return Some(Self::Dependency(property.kind.to_string()));
        }
        let csv = objects.iter().find(|object| object.kind() == "ClusterServiceVersion")?;
        if serves_apis(csv) {
            return Some(Self::ApiServices);
        }
        if !install_modes(csv).contains("AllNamespaces") {
            return Some(Self::InstallModes);
        }
        let webhooks = csv.array(&["spec", "webhookdefinitions"]);
        if converts_in_other_modes(csv) {
            return Some(Self::ConversionInstallModes);
        }
        let kinds = objects.iter().map(Object::kind);
        let unsupported: BTreeSet<String> =
            kinds.filter(|kind| !MANIFEST_KINDS.contains(kind)).map(str::to_owned).collect();
        if !unsupported.is_empty() {
            return Some(Self::ManifestKinds(unsupported));
        }
        let unknown: BTreeSet<KindName> = objects
            .iter()
            .filter(|object| object.kind() != "ClusterServiceVersion")
            .map(|object| (object.gvk().api_version(), object.kind().to_owned()))
            .filter(|kind| !served.contains(kind))
            .collect();
        if !unknown.is_empty() {
            return Some(Self::UnknownKinds(unknown));
        }
        (!webhooks.is_empty()).then_some(Self::Webhooks)
    }

    /// The rule in a few words, without what is special to a bundle.
    pub(super) const fn rule(&self) -> &'static str {
        match self {
            Self::Dependency(_) => rules::DEPENDENCIES,
            Self::ApiServices => rules::API_SERVICES,
            Self::InstallModes => rules::INSTALL_MODES,
            Self::ConversionInstallModes => rules::CONVERSION_INSTALL_MODES,
            Self::ManifestKinds(_) => "kinds that no bundle may have",
            Self::Webhooks => rules::WEBHOOKS,
            Self::UnknownKinds(_) => "kinds that the cluster does not have",
        }
    }

    /// Whether a message of the condition `Progressing` states this rule.
    pub(super) fn explains(&self, message: &str) -> bool {
        let has = |text: &str| message.contains(text);
        let has_kind = |api_version: &str, kind: &str| {
            has(&format!("no matches for kind \"{kind}\" in version \"{api_version}\""))
        };
        match self {
            Self::Dependency(property) => has(&format!(
                "has a dependency declared via property \"{property}\" which is currently not \
                 supported"
            )),
            Self::ApiServices => has("unsupported bundle: apiServiceDefintions are not supported"),
            Self::InstallModes => {
                has("unsupported bundle: bundle does not support AllNamespaces install mode")
            }
            Self::ConversionInstallModes => {
                has("conversion webhooks are only supported for bundles that only support \
                 AllNamespaces install mode")
            }
            Self::ManifestKinds(kinds) => {
                kinds.iter().all(|kind| has(&format!("with kind \"{kind}\"")))
                    && has("unsupported resource ")
            }
            Self::Webhooks => {
                CERTIFICATE_KINDS.iter().any(|(api_version, kind)| has_kind(api_version, kind))
            }
            Self::UnknownKinds(kinds) => {
                kinds.iter().any(|(api_version, kind)| has_kind(api_version, kind))
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |names: &mut dyn Iterator<Item = String>| {
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Dependency(property) => write!(f, "a dependency (`{property}`)"),
            Self::ApiServices => f.write_str("an aggregated API"),
            Self::InstallModes => f.write_str("no `AllNamespaces` install mode"),
            Self::ConversionInstallModes => {
                f.write_str("conversion webhooks with other install modes than `AllNamespaces`")
            }
            Self::ManifestKinds(kinds) => {
                write!(f, "manifests of {}", quoted(&mut kinds.iter().cloned()))
            }
            Self::Webhooks => f.write_str("webhooks, without cert-manager"),
            Self::UnknownKinds(kinds) => {
                let mut names =
                    kinds.iter().map(|(api_version, kind)| format!("{kind}.{api_version}"));
                write!(f, "the cluster has no {}", quoted(&mut names))
            }
        }
    }
}

/// The API versions and kinds that a cluster serves.
pub(crate) async fn served_kinds(cluster: &Cluster) -> anyhow::Result<BTreeSet<KindName>> {
    let resources = cluster.resources().await?.resources.into_iter();
    let kind =
        |resource: mainstay_object::Resource| (resource.api_version(), resource.kind.to_string());
    Ok(resources.map(|api| kind(api.resource)).collect())
}

/// The CustomResourceDefinitions because of which an update is refused, as it may break stored custom
/// resources, with the messages; empty if it is safe.
pub(crate) fn unsafe_crds(old: &[Object], new: &[Object]) -> Vec<(String, String)> {
    let crds = |objects: &[Object]| -> Vec<(String, Value)> {
        let crds = objects.iter().filter(|object| object.kind() == "CustomResourceDefinition");
        crds.map(|crd| (crd.name().to_owned(), crd.to_value())).collect()
    };
    let old = crds(old);
    let mut found = Vec::new();
    for (name, crd) in crds(new) {
        let Some((_, before)) = old.iter().find(|(other, _)| *other == name) else { continue };
        let lines = Crd::from_value(before)
            .and_then(|before| preflight(&before, &Crd::from_value(&crd)?))
            .map_or_else(|error| Some(error.to_string()), |lines| condition_message(&name, &lines));
        found.extend(lines.map(|message| (name, message)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_to_state_the_rule_that_is_not_met() {
        let message = "error for resolved bundle \"a.v1\" with version \"1.0.0\": unsupported bundle: \
                       apiServiceDefintions are not supported";
        assert!(Refusal::ApiServices.explains(message));
        let kinds = |kind: &str| {
            Refusal::UnknownKinds([("x.example/v1".to_owned(), kind.to_owned())].into())
        };
        for other in [
            Refusal::InstallModes,
            Refusal::Webhooks,
            Refusal::Dependency("olm.constraint".to_owned()),
            Refusal::ManifestKinds(["Job".to_owned()].into()),
            kinds("Route"),
        ] {
            assert!(!other.explains(message), "{other}");
        }
        let message = "no matches for kind \"Route\" in version \"x.example/v1\"";
        assert!(kinds("Route").explains(message) && !kinds("Rout").explains(message));
        assert!(!Refusal::Webhooks.explains(message));
    }
}
