//! The subsystems of this binary, and what a cluster must have before they start.
//!
//! A new subsystem is one line of [`all`]; its CustomResourceDefinitions, its ClusterRoles, its value of
//! `--controllers` and its part of `mainstay manifests` follow from the
//! [`SubsystemInfo`] there.

use crate::layout;
use mainstay_cause::Cause;
use mainstay_cli::args::{ControllersArguments, CrdChannelArgument, ManifestsArguments};
use mainstay_client::Cluster;
use mainstay_command::profile::Profile;
use mainstay_controller::SubsystemInfo;
use mainstay_extensions::{Features, TrustMode, WebhookCertificates};
use mainstay_object::builtin::CLUSTER_ROLE;
use mainstay_operators::extension::settings::{
    ExtensionApplierArgument, ExtensionCertificates, ExtensionTrust,
};
use serde_json::{Value, json};

/// Every subsystem, with the features of extensions.
fn all(features: Features) -> [&'static SubsystemInfo; 2] {
    [&mainstay_classic::SUBSYSTEM, mainstay_extensions::subsystem(features)]
}

/// What issues the certificates of webhooks in clusters that other programs manage, as upstream has it.
pub(crate) const fn upstream_certificates(profile: Profile) -> WebhookCertificates {
    match profile {
        Profile::Standard => WebhookCertificates::CertManager,
        Profile::Openshift => WebhookCertificates::ServiceCa,
    }
}

/// The features of extensions that the arguments choose. `certificates` counts unless the arguments say
/// otherwise.
///
/// # Errors
/// The standard channel has no ClusterObjectSets.
fn extension_features(
    arguments: &ControllersArguments,
    certificates: WebhookCertificates,
) -> Result<Features, Cause> {
    let certificates = match arguments.extension_certificates {
        Some(ExtensionCertificates::CertManager) => WebhookCertificates::CertManager,
        Some(ExtensionCertificates::ServiceCa) => WebhookCertificates::ServiceCa,
        Some(ExtensionCertificates::Own) => WebhookCertificates::Own,
        None => certificates,
    };
    let trust = match arguments.extension_trust {
        ExtensionTrust::ClusterAdmin => TrustMode::ClusterAdmin,
        ExtensionTrust::ServiceAccount => TrustMode::ServiceAccount,
        ExtensionTrust::Approved => TrustMode::Approved,
    };
    let features = match (arguments.crd_channel, arguments.extension_applier) {
        (CrdChannelArgument::Standard, ExtensionApplierArgument::Releases) => {
            Features::standard(trust)
        }
        (CrdChannelArgument::Experimental, ExtensionApplierArgument::Releases) => {
            Features::experimental(trust)
        }
        (CrdChannelArgument::Experimental, ExtensionApplierArgument::ObjectSets) => {
            Features::object_sets(trust)
        }
        (CrdChannelArgument::Standard, ExtensionApplierArgument::ObjectSets) => {
            return Err(Cause::new("--extension-applier object-sets")
                .because(Cause::new("the standard channel of OLM v1 has no ClusterObjectSets"))
                .remedy("add --crd-channel experimental"));
        }
    };
    Ok(features.with_certificates(certificates))
}

/// The name of the ServiceAccount that the controllers act as on another cluster, and of its roles.
const ACCOUNT: &str = "mainstay";

/// The subsystems that a process runs, and the features of extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selected {
    subsystems: Vec<&'static SubsystemInfo>,
    features: Features,
}

impl Selected {
    /// No subsystem: the API alone.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Every subsystem, on a cluster of this program.
    pub(crate) fn all() -> Self {
        let features = Features::default().with_certificates(WebhookCertificates::Own);
        Self { subsystems: all(features).to_vec(), features }
    }

    /// What `--controllers` and the other arguments select. `certificates` counts unless the arguments name
    /// what issues the certificates of webhooks.
    ///
    /// # Errors
    /// The list names an unknown subsystem or selects none, or the arguments contradict each other.
    pub(crate) fn parse(
        arguments: &ControllersArguments,
        certificates: WebhookCertificates,
    ) -> Result<Self, Cause> {
        let features = extension_features(arguments, certificates)?;
        let list = &arguments.list;
        let selected = mainstay_controller::select(&all(features), list);
        selected.map(|subsystems| Self { subsystems, features }).map_err(|error| {
            Cause::new(format!("--controllers {}", list.join(",")))
                .because(Cause::new(error.to_string()))
                .remedy("list names, `*` for all of them, or `-NAME` to exclude one")
        })
    }

    /// The features of extensions.
    pub(crate) const fn features(&self) -> Features {
        self.features
    }

    /// Whether nothing is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.subsystems.is_empty()
    }

    /// Whether this subsystem is selected.
    pub(crate) fn contains(&self, subsystem: &SubsystemInfo) -> bool {
        self.subsystems.iter().any(|info| info.name == subsystem.name)
    }

    /// Establishes the CustomResourceDefinitions of the subsystems and applies their ClusterRoles.
    pub(crate) async fn install(&self, cluster: &Cluster) -> Result<(), Cause> {
        let definitions: Vec<_> =
            self.subsystems.iter().flat_map(|info| (info.definitions)()).collect();
        layout::establish_crds(cluster, &definitions).await?;
        for role in self.subsystems.iter().flat_map(|info| (info.cluster_roles)()) {
            layout::apply(cluster, &CLUSTER_ROLE, &role).await?;
        }
        Ok(())
    }

    /// The manifests for a cluster on which `mainstay run` acts as a ServiceAccount in `namespace`.
    fn manifests(&self, namespace: &str) -> Vec<Value> {
        let subject = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace});
        let role = json!({
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT,
        });
        let mut rules: Vec<Value> = Vec::new();
        let permissions = self.subsystems.iter().flat_map(|info| (info.permissions)());
        for rule in permissions.chain(process_permissions()) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let mut manifests = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": ACCOUNT, "namespace": namespace},
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": ACCOUNT},
                "rules": rules,
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": ACCOUNT},
                "roleRef": role,
                "subjects": [subject],
            }),
        ];
        let objects = |info: &&SubsystemInfo| {
            let definitions = (info.definitions)().into_iter();
            definitions.chain((info.cluster_roles)()).collect::<Vec<_>>()
        };
        let objects = self.subsystems.iter().flat_map(objects);
        manifests.extend(objects.map(|object| object.to_value()));
        manifests
    }
}

/// What `mainstay run` itself needs beside its controllers: its Lease, the objects that it applies before
/// they start, the endpoints of its servers, and the checks of its clients.
fn process_permissions() -> Vec<Value> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let applied = ["get", "list", "watch", "create", "patch", "delete"];
    vec![
        rule("coordination.k8s.io", &["leases"], &["get", "list", "create", "update", "patch"]),
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &applied),
        // The ClusterRoles of users have permissions that the controllers need not have.
        rule(
            "rbac.authorization.k8s.io",
            &["clusterroles"],
            &["get", "create", "patch", "escalate", "bind"],
        ),
        rule("", &["namespaces", "configmaps", "services"], &applied),
        rule("discovery.k8s.io", &["endpointslices"], &applied),
        rule("apps", &["deployments"], &["get", "list"]),
        // The CA that the catalog servers share.
        rule("", &["secrets"], &["get", "create"]),
        rule("", &["nodes"], &["list"]),
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ]
}

/// The text of `mainstay manifests`, for `kubectl apply`.
///
/// # Errors
/// `--controllers` selects nothing that there is.
pub(crate) fn manifests(arguments: &ManifestsArguments) -> Result<String, Cause> {
    let certificates = upstream_certificates(arguments.profile);
    let selected = Selected::parse(&arguments.controllers, certificates)?;
    let manifests = selected.manifests(arguments.profile.manager_namespace());
    Ok(arguments.text(&manifests))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> ControllersArguments {
        ControllersArguments {
            list: vec!["*".to_owned()],
            crd_channel: CrdChannelArgument::Standard,
            extension_trust: ExtensionTrust::ServiceAccount,
            extension_applier: ExtensionApplierArgument::Releases,
            extension_certificates: None,
        }
    }

    #[test]
    fn object_sets_need_the_experimental_channel() {
        let mut arguments = ControllersArguments {
            extension_applier: ExtensionApplierArgument::ObjectSets,
            ..arguments()
        };
        let parse =
            |arguments: &_| Selected::parse(arguments, upstream_certificates(Profile::Standard));
        let error = parse(&arguments).unwrap_err().to_string();
        assert!(error.contains("--extension-applier object-sets"), "{error}");
        arguments.crd_channel = CrdChannelArgument::Experimental;
        let features = parse(&arguments).unwrap().features();
        assert_eq!(features, Features::object_sets(TrustMode::ServiceAccount));
    }

    #[test]
    fn issuer_of_certificates_is_that_of_the_profile_unless_one_is_named() {
        let issuer = |arguments: &_, profile| {
            let selected = Selected::parse(arguments, upstream_certificates(profile)).unwrap();
            selected.features().certificates
        };
        let mut arguments = arguments();
        assert_eq!(issuer(&arguments, Profile::Standard), WebhookCertificates::CertManager);
        assert_eq!(issuer(&arguments, Profile::Openshift), WebhookCertificates::ServiceCa);
        for (argument, expected) in [
            (ExtensionCertificates::CertManager, WebhookCertificates::CertManager),
            (ExtensionCertificates::ServiceCa, WebhookCertificates::ServiceCa),
            (ExtensionCertificates::Own, WebhookCertificates::Own),
        ] {
            arguments.extension_certificates = Some(argument);
            assert_eq!(issuer(&arguments, Profile::Openshift), expected);
        }
    }
}
