//! `ClusterServiceVersion`: one version of an operator.

mod phases;

use crate::{ApiKind, Icon, Time, TypedObject, resources};
use mainstay_object::Resource;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub use phases::{CsvPhase, CsvReason, InstallModeType, RequirementState, WebhookKind};

/// One version of an operator.
pub type ClusterServiceVersion =
    TypedObject<ClusterServiceVersionSpec, ClusterServiceVersionStatus>;

impl ApiKind for ClusterServiceVersion {
    const RESOURCE: Resource = resources::CLUSTER_SERVICE_VERSION;
}

/// Something of which only the API server knows whether it is right: its schema asks for bytes, and
/// manifests have anything. Read as it is, so that a wrong one is refused with the field's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw(pub Value);

#[cfg(feature = "schema")]
impl crate::schema::Shape for Raw {
    fn shape(_: &str) -> Value {
        serde_json::json!({"type": "string"})
    }
}

view! {
    /// What a version of an operator consists of and needs.
    pub struct ClusterServiceVersionSpec {
        required {
            /// Name for people.
            "displayName" display_name: String;
            /// How it is installed.
            "install" install: InstallStrategy;
        }
        optional {
            /// Annotations for everything that belongs to the operator.
            "annotations" annotations: BTreeMap<String, String>;
            /// APIs served by the operator's own servers.
            "apiservicedefinitions" api_service_definitions: ApiServiceDefinitions;
            /// What is removed with the operator.
            "cleanup" cleanup: Option<CleanupSpec>;
            /// Custom resource definitions of the operator.
            "customresourcedefinitions" custom_resource_definitions: CustomResourceDefinitions;
            /// Text for people, in Markdown.
            "description" description: String;
            /// Logos.
            "icon" icon: Vec<Icon>;
            /// How far the operator may watch.
            "installModes" install_modes: Vec<InstallMode>;
            /// Words to find it by.
            "keywords" keywords: Vec<String>;
            /// Labels that belong to the operator.
            "labels" labels: BTreeMap<String, String>;
            /// Links for people.
            "links" links: Vec<CsvLink>;
            /// Who maintains it.
            "maintainers" maintainers: Vec<Maintainer>;
            /// How mature it is.
            "maturity" maturity: String;
            /// The least Kubernetes version.
            "minKubeVersion" min_kube_version: String;
            /// Kinds that must be served.
            "nativeAPIs" native_apis: Vec<GroupVersionKind>;
            /// Who publishes it.
            "provider" provider: Provider;
            /// Images that it uses.
            "relatedImages" related_images: Vec<RelatedImage>;
            /// Release of this version: what was rebuilt without a new version.
            "release" release: String, with {
                "maxLength": 20,
                "x-kubernetes-validations": [
                    {
                        "rule": "self.matches('^[0-9A-Za-z-]+(\\\\.[0-9A-Za-z-]+)*$')",
                        "message": "release version must be composed of dot-separated identifiers containing only alphanumerics and hyphens"
                    },
                    {
                        "rule": "!self.split('.').exists(x, x.matches('^0[0-9]+$'))",
                        "message": "numeric identifiers in release version must not have leading zeros"
                    }
                ]
            };
            /// Name of the version that it replaces.
            "replaces" replaces: String;
            /// Labels of what belongs to it.
            "selector" selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Names of versions that it replaces too.
            "skips" skips: Vec<String>;
            /// The version.
            "version" version: String;
            /// Webhooks that the operator serves.
            "webhookdefinitions" webhook_definitions: Vec<WebhookDescription>;
        }
    }

    /// How an operator is installed.
    pub struct InstallStrategy {
        required {
            /// The only strategy is `deployment`.
            "strategy" strategy: String;
        }
        optional {
            /// Details of the strategy.
            "spec" spec: InstallStrategyDetails;
        }
    }

    /// Deployments of an operator and the rights of its accounts.
    pub struct InstallStrategyDetails {
        required {
            /// The Deployments.
            "deployments" deployments: Vec<DeploymentSpec>;
        }
        optional {
            /// Rights in the whole cluster.
            "clusterPermissions" cluster_permissions: Vec<DeploymentPermissions>;
            /// Rights in the namespaces that the operator serves.
            "permissions" permissions: Vec<DeploymentPermissions>;
        }
    }

    /// A Deployment of an operator.
    pub struct DeploymentSpec {
        required {
            /// Name of the Deployment.
            "name" name: String;
            /// Spec of the Deployment.
            "spec" spec: Value as "io.k8s.api.apps.v1.DeploymentSpec";
        }
        optional {
            /// Labels of the Deployment.
            "label" label: BTreeMap<String, String>;
        }
    }

    /// Rights of an account.
    pub struct DeploymentPermissions {
        required {
            /// The rights.
            "rules" rules: Vec<Value> as "io.k8s.api.rbac.v1.PolicyRule";
            /// The account.
            "serviceAccountName" service_account_name: String;
        }
    }

    /// Whether the operator may watch in a certain way.
    pub struct InstallMode {
        required {
            /// Whether it may.
            "supported" supported: bool;
            /// The way.
            "type" kind: InstallModeType;
        }
    }

    /// A link for people.
    pub struct CsvLink {
        optional {
            /// What it leads to.
            "name" name: String;
            /// Where it leads.
            "url" url: String;
        }
    }

    /// Who maintains an operator.
    pub struct Maintainer {
        optional {
            /// Address.
            "email" email: String;
            /// Name.
            "name" name: String;
        }
    }

    /// Who publishes an operator.
    pub struct Provider {
        optional {
            /// Name.
            "name" name: String;
            /// Home page.
            "url" url: String;
        }
    }

    /// An image that an operator uses.
    pub struct RelatedImage {
        required {
            /// Reference, by digest.
            "image" image: String;
            /// Name for tools.
            "name" name: String;
        }
    }

    /// Names a kind.
    pub struct GroupVersionKind {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Version.
            "version" version: String;
        }
    }

    /// What is removed with an operator.
    pub struct CleanupSpec {
        required {
            /// Whether objects of its kinds are removed.
            "enabled" enabled: bool;
        }
    }

    /// Custom resource definitions of an operator.
    pub struct CustomResourceDefinitions {
        optional {
            /// Those it brings.
            "owned" owned: Vec<CrdDescription>;
            /// Those it needs.
            "required" required: Vec<CrdDescription>;
        }
    }

    /// A custom resource definition of an operator.
    pub struct CrdDescription {
        required {
            /// Kind.
            "kind" kind: String;
            /// Name: `plural.group`.
            "name" name: String;
            /// Version.
            "version" version: String;
        }
        optional {
            /// Buttons for people.
            "actionDescriptors" action_descriptors: Vec<ActionDescriptor>;
            /// Text for people.
            "description" description: String;
            /// Name for people.
            "displayName" display_name: String;
            /// Kinds that belong to an object of this kind.
            "resources" resources: Vec<ApiResourceReference>;
            /// Fields of the spec for people.
            "specDescriptors" spec_descriptors: Vec<ActionDescriptor>;
            /// Fields of the status for people.
            "statusDescriptors" status_descriptors: Vec<ActionDescriptor>;
        }
    }

    /// A field or action that a user interface shows.
    pub struct ActionDescriptor {
        required {
            /// Path of the field.
            "path" path: String;
        }
        optional {
            /// Text for people.
            "description" description: String;
            /// Name for people.
            "displayName" display_name: String;
            /// A value, as JSON in base64.
            "value" value: Option<Raw>, with {"format": "byte"};
            /// What user interfaces make of it.
            "x-descriptors" x_descriptors: Vec<String>;
        }
    }

    /// A kind that belongs to another.
    pub struct ApiResourceReference {
        required {
            /// Kind.
            "kind" kind: String;
            /// Name of the resource; often empty.
            "name" name: String;
            /// Version.
            "version" version: String;
        }
    }

    /// APIs served by an operator's own servers.
    pub struct ApiServiceDefinitions {
        optional {
            /// Those it serves.
            "owned" owned: Vec<ApiServiceDescription>;
            /// Those it needs.
            "required" required: Vec<ApiServiceDescription>;
        }
    }

    /// An API served by an operator's own server.
    pub struct ApiServiceDescription {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Plural.
            "name" name: String;
            /// Version.
            "version" version: String;
        }
        optional {
            /// Buttons for people.
            "actionDescriptors" action_descriptors: Vec<ActionDescriptor>;
            /// Port of the server.
            "containerPort" container_port: i64, with {"format": "int32"};
            /// Deployment of the server.
            "deploymentName" deployment_name: String;
            /// Text for people.
            "description" description: String;
            /// Name for people.
            "displayName" display_name: String;
            /// Kinds that belong to an object of this kind.
            "resources" resources: Vec<ApiResourceReference>;
            /// Fields of the spec for people.
            "specDescriptors" spec_descriptors: Vec<ActionDescriptor>;
            /// Fields of the status for people.
            "statusDescriptors" status_descriptors: Vec<ActionDescriptor>;
        }
    }

    /// A webhook that an operator serves.
    pub struct WebhookDescription {
        required {
            /// Versions of the review that it takes.
            "admissionReviewVersions" admission_review_versions: Vec<String>;
            /// Prefix of the configuration's name.
            "generateName" generate_name: String;
            /// Side effects.
            "sideEffects" side_effects: Option<String>;
            /// What kind of webhook it is.
            "type" kind: WebhookKind, with {
                "enum": ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"]
            };
        }
        optional {
            /// Port of the Service.
            "containerPort" container_port: i64, with {
                "format": "int32", "default": 443, "minimum": 1, "maximum": 65535
            };
            /// Definitions that it converts.
            "conversionCRDs" conversion_crds: Vec<String>;
            /// Deployment that serves it.
            "deploymentName" deployment_name: String;
            /// What happens when it does not answer.
            "failurePolicy" failure_policy: Option<String>;
            /// How rules are compared with requests.
            "matchPolicy" match_policy: Option<String>;
            /// Labels of the objects it is asked about.
            "objectSelector" object_selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Whether it is asked again after others.
            "reinvocationPolicy" reinvocation_policy: Option<String>;
            /// What it is asked about.
            "rules" rules: Vec<Value> as "io.k8s.api.admissionregistration.v1.RuleWithOperations";
            /// Port of the pods.
            "targetPort" target_port: Option<Value> as "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
            /// Seconds to wait for the answer.
            "timeoutSeconds" timeout_seconds: Option<i64>, with {"format": "int32"};
            /// Path of the server.
            "webhookPath" webhook_path: Option<String>;
        }
    }

    /// What was seen of a version.
    pub struct ClusterServiceVersionStatus {
        optional {
            /// When certificates were last made.
            "certsLastUpdated" certs_last_updated: Option<Time>;
            /// When certificates are made again.
            "certsRotateAt" certs_rotate_at: Option<Time>;
            /// What is still to be removed.
            "cleanup" cleanup: CleanupStatus;
            /// History of phases, oldest first.
            "conditions" conditions: Vec<ClusterServiceVersionCondition>;
            /// When the phase last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When this status was last written.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Why, for people.
            "message" message: String;
            /// Where it stands.
            "phase" phase: CsvPhase;
            /// Why, in one word.
            "reason" reason: CsvReason;
            /// What it needs and whether that is there.
            "requirementStatus" requirement_status: Vec<RequirementStatus>;
        }
    }

    /// One step in the history of a version.
    pub struct ClusterServiceVersionCondition {
        optional {
            /// When the phase last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When this was last written.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Why, for people.
            "message" message: String;
            /// Where it stood.
            "phase" phase: CsvPhase;
            /// Why, in one word.
            "reason" reason: CsvReason;
        }
    }

    /// What is still to be removed.
    pub struct CleanupStatus {
        optional {
            /// Objects by kind.
            "pendingDeletion" pending_deletion: Vec<PendingDeletion>;
        }
    }

    /// Objects of one kind that are still to be removed.
    pub struct PendingDeletion {
        required {
            /// Group.
            "group" group: String;
            /// The objects.
            "instances" instances: Vec<PendingInstance>;
            /// Kind.
            "kind" kind: String;
        }
    }

    /// One object that is still to be removed.
    pub struct PendingInstance {
        required {
            /// Name.
            "name" name: String;
        }
        optional {
            /// Namespace; empty for cluster-scoped objects.
            "namespace" namespace: String;
        }
    }

    /// Something a version needs.
    pub struct RequirementStatus {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Why, for people.
            "message" message: String;
            /// Name.
            "name" name: String;
            /// Whether it is there.
            "status" status: RequirementState;
            /// Version.
            "version" version: String;
        }
        optional {
            /// What it needs in turn.
            "dependents" dependents: Vec<DependentStatus>;
            /// Uid.
            "uuid" uuid: String;
        }
    }

    /// Something a requirement needs in turn: a rule of an account.
    pub struct DependentStatus {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Whether it is there.
            "status" status: RequirementState;
            /// Version.
            "version" version: String;
        }
        optional {
            /// Why, for people.
            "message" message: String;
            /// Uid.
            "uuid" uuid: String;
        }
    }
}
