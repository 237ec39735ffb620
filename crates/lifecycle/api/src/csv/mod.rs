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
    /// Desired state of a ClusterServiceVersion: one version of an operator.
    pub struct ClusterServiceVersionSpec {
        required {
            /// Display name.
            "displayName" display_name: String;
            /// Install strategy.
            "install" install: InstallStrategy;
        }
        optional {
            /// Annotations for all objects of the operator.
            "annotations" annotations: BTreeMap<String, String>;
            /// APIServices of the operator.
            "apiservicedefinitions" api_service_definitions: ApiServiceDefinitions;
            /// Cleanup when the ClusterServiceVersion is deleted.
            "cleanup" cleanup: Option<CleanupSpec>;
            /// CustomResourceDefinitions of the operator.
            "customresourcedefinitions" custom_resource_definitions: CustomResourceDefinitions;
            /// Description in Markdown.
            "description" description: String;
            /// Icons.
            "icon" icon: Vec<Icon>;
            /// Supported install modes.
            "installModes" install_modes: Vec<InstallMode>;
            /// Keywords for a search.
            "keywords" keywords: Vec<String>;
            /// Labels of the operator.
            "labels" labels: BTreeMap<String, String>;
            /// Links about the operator.
            "links" links: Vec<CsvLink>;
            /// Maintainers.
            "maintainers" maintainers: Vec<Maintainer>;
            /// Maturity, such as `alpha` or `stable`.
            "maturity" maturity: String;
            /// Minimum Kubernetes version.
            "minKubeVersion" min_kube_version: String;
            /// Kinds that the cluster must serve.
            "nativeAPIs" native_apis: Vec<GroupVersionKind>;
            /// Provider.
            "provider" provider: Provider;
            /// Images that the operator uses.
            "relatedImages" related_images: Vec<RelatedImage>;
            /// Release of the version: distinguishes bundles with the same version.
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
            /// Name of the ClusterServiceVersion that this one replaces.
            "replaces" replaces: String;
            /// Label selector for related objects.
            "selector" selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Names of ClusterServiceVersions that this one skips.
            "skips" skips: Vec<String>;
            /// Version of the operator.
            "version" version: String;
            /// Webhooks of the operator.
            "webhookdefinitions" webhook_definitions: Vec<WebhookDescription>;
        }
    }

    /// Install strategy of an operator.
    pub struct InstallStrategy {
        required {
            /// Name of the strategy; only `deployment` is supported.
            "strategy" strategy: String;
        }
        optional {
            /// Spec of the strategy.
            "spec" spec: InstallStrategyDetails;
        }
    }

    /// Deployments of an operator, and permissions of its ServiceAccounts.
    pub struct InstallStrategyDetails {
        required {
            /// The Deployments.
            "deployments" deployments: Vec<DeploymentSpec>;
        }
        optional {
            /// Permissions in the whole cluster.
            "clusterPermissions" cluster_permissions: Vec<DeploymentPermissions>;
            /// Permissions in the target namespaces of the OperatorGroup.
            "permissions" permissions: Vec<DeploymentPermissions>;
        }
    }

    /// Deployment of an operator.
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

    /// Permissions of a ServiceAccount.
    pub struct DeploymentPermissions {
        required {
            /// RBAC rules.
            "rules" rules: Vec<Value> as "io.k8s.api.rbac.v1.PolicyRule";
            /// Name of the ServiceAccount.
            "serviceAccountName" service_account_name: String;
        }
    }

    /// Whether the operator supports an install mode.
    pub struct InstallMode {
        required {
            /// Whether the install mode is supported.
            "supported" supported: bool;
            /// Type of the install mode.
            "type" kind: InstallModeType;
        }
    }

    /// Link about the operator.
    pub struct CsvLink {
        optional {
            /// Name of the link.
            "name" name: String;
            /// URL of the link.
            "url" url: String;
        }
    }

    /// Maintainer of an operator.
    pub struct Maintainer {
        optional {
            /// Email address.
            "email" email: String;
            /// Name.
            "name" name: String;
        }
    }

    /// Provider of an operator.
    pub struct Provider {
        optional {
            /// Name.
            "name" name: String;
            /// URL of the home page.
            "url" url: String;
        }
    }

    /// Image that an operator uses.
    pub struct RelatedImage {
        required {
            /// Image reference, by digest.
            "image" image: String;
            /// Name of the image for tools.
            "name" name: String;
        }
    }

    /// Group, version and kind.
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

    /// Cleanup when the ClusterServiceVersion is deleted.
    pub struct CleanupSpec {
        required {
            /// Whether the custom resources of the operator are deleted.
            "enabled" enabled: bool;
        }
    }

    /// CustomResourceDefinitions of an operator.
    pub struct CustomResourceDefinitions {
        optional {
            /// CustomResourceDefinitions that the bundle contains.
            "owned" owned: Vec<CrdDescription>;
            /// Definitions that the operator requires.
            "required" required: Vec<CrdDescription>;
        }
    }

    /// CustomResourceDefinition of an operator.
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
            /// Actions in user interfaces.
            "actionDescriptors" action_descriptors: Vec<ActionDescriptor>;
            /// Description.
            "description" description: String;
            /// Display name.
            "displayName" display_name: String;
            /// Kinds of objects that an object of this kind manages.
            "resources" resources: Vec<ApiResourceReference>;
            /// Descriptors of fields in the spec.
            "specDescriptors" spec_descriptors: Vec<ActionDescriptor>;
            /// Descriptors of fields in the status.
            "statusDescriptors" status_descriptors: Vec<ActionDescriptor>;
        }
    }

    /// Field or action in user interfaces.
    pub struct ActionDescriptor {
        required {
            /// Path of the field.
            "path" path: String;
        }
        optional {
            /// Description.
            "description" description: String;
            /// Display name.
            "displayName" display_name: String;
            /// Value, as JSON in base64.
            "value" value: Option<Raw>, with {"format": "byte"};
            /// Capabilities for user interfaces.
            "x-descriptors" x_descriptors: Vec<String>;
        }
    }

    /// Kind of a managed object.
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

    /// APIServices of an operator.
    pub struct ApiServiceDefinitions {
        optional {
            /// APIServices that the operator serves.
            "owned" owned: Vec<ApiServiceDescription>;
            /// Definitions that the operator requires.
            "required" required: Vec<ApiServiceDescription>;
        }
    }

    /// APIService of an operator.
    pub struct ApiServiceDescription {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Plural name of the resource.
            "name" name: String;
            /// Version.
            "version" version: String;
        }
        optional {
            /// Actions in user interfaces.
            "actionDescriptors" action_descriptors: Vec<ActionDescriptor>;
            /// Port of the server.
            "containerPort" container_port: i64, with {"format": "int32"};
            /// Deployment of the server.
            "deploymentName" deployment_name: String;
            /// Description.
            "description" description: String;
            /// Display name.
            "displayName" display_name: String;
            /// Kinds of objects that an object of this kind manages.
            "resources" resources: Vec<ApiResourceReference>;
            /// Descriptors of fields in the spec.
            "specDescriptors" spec_descriptors: Vec<ActionDescriptor>;
            /// Descriptors of fields in the status.
            "statusDescriptors" status_descriptors: Vec<ActionDescriptor>;
        }
    }

    /// Webhook of an operator.
    pub struct WebhookDescription {
        required {
            /// Supported versions of `AdmissionReview` or `ConversionReview`.
            "admissionReviewVersions" admission_review_versions: Vec<String>;
            /// Name prefix of the webhook configuration.
            "generateName" generate_name: String;
            /// Side effects.
            "sideEffects" side_effects: Option<String>;
            /// Type of the webhook.
            "type" kind: WebhookKind, with {
                "enum": ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"]
            };
        }
        optional {
            /// Port of the Service.
            "containerPort" container_port: i64, with {
                "format": "int32", "default": 443, "minimum": 1, "maximum": 65535
            };
            /// Names of the CustomResourceDefinitions that the webhook converts.
            "conversionCRDs" conversion_crds: Vec<String>;
            /// Deployment that serves the webhook.
            "deploymentName" deployment_name: String;
            /// Failure policy: `Ignore` or `Fail`.
            "failurePolicy" failure_policy: Option<String>;
            /// Match policy: `Exact` or `Equivalent`.
            "matchPolicy" match_policy: Option<String>;
            /// Label selector for the objects of requests.
            "objectSelector" object_selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Reinvocation policy: `Never` or `IfNeeded`.
            "reinvocationPolicy" reinvocation_policy: Option<String>;
            /// Operations and resources that the webhook handles.
            "rules" rules: Vec<Value> as "io.k8s.api.admissionregistration.v1.RuleWithOperations";
            /// Port of the pods.
            "targetPort" target_port: Option<Value> as "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
            /// Timeout of a call in seconds.
            "timeoutSeconds" timeout_seconds: Option<i64>, with {"format": "int32"};
            /// Path of the server.
            "webhookPath" webhook_path: Option<String>;
        }
    }

    /// Observed state of a ClusterServiceVersion.
    pub struct ClusterServiceVersionStatus {
        optional {
            /// When the serving certificates were last generated.
            "certsLastUpdated" certs_last_updated: Option<Time>;
            /// When the serving certificates are rotated.
            "certsRotateAt" certs_rotate_at: Option<Time>;
            /// Objects that the cleanup has not deleted yet.
            "cleanup" cleanup: CleanupStatus;
            /// History of phases, oldest first.
            "conditions" conditions: Vec<ClusterServiceVersionCondition>;
            /// When the phase last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When this status was last written.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Human-readable reason.
            "message" message: String;
            /// Phase.
            "phase" phase: CsvPhase;
            /// Reason in one CamelCase word.
            "reason" reason: CsvReason;
            /// Status of each requirement.
            "requirementStatus" requirement_status: Vec<RequirementStatus>;
        }
    }

    /// Entry in the phase history of a ClusterServiceVersion.
    pub struct ClusterServiceVersionCondition {
        optional {
            /// When the phase last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When the condition was last written.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Human-readable reason.
            "message" message: String;
            /// Phase.
            "phase" phase: CsvPhase;
            /// Reason in one CamelCase word.
            "reason" reason: CsvReason;
        }
    }

    /// Objects that the cleanup has not deleted yet.
    pub struct CleanupStatus {
        optional {
            /// Objects by kind.
            "pendingDeletion" pending_deletion: Vec<PendingDeletion>;
        }
    }

    /// Objects of one kind that are not deleted yet.
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

    /// Object that is not deleted yet.
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

    /// Status of a requirement.
    pub struct RequirementStatus {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Human-readable reason.
            "message" message: String;
            /// Name.
            "name" name: String;
            /// Whether the requirement is satisfied.
            "status" status: RequirementState;
            /// Version.
            "version" version: String;
        }
        optional {
            /// Status of the RBAC rules that a ServiceAccount needs.
            "dependents" dependents: Vec<DependentStatus>;
            /// Uid.
            "uuid" uuid: String;
        }
    }

    /// Status of a dependent of a requirement: an RBAC rule of a ServiceAccount.
    pub struct DependentStatus {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Whether the requirement is satisfied.
            "status" status: RequirementState;
            /// Version.
            "version" version: String;
        }
        optional {
            /// Human-readable reason.
            "message" message: String;
            /// Uid.
            "uuid" uuid: String;
        }
    }
}
