//! `CatalogSource`: a catalog of packages.

use crate::{ApiKind, Condition, Time, TypedObject, resources};
use mainstay_object::Resource;
use serde_json::Value;
use std::collections::BTreeMap;

/// A catalog of packages.
pub type CatalogSource = TypedObject<CatalogSourceSpec, CatalogSourceStatus>;

impl ApiKind for CatalogSource {
    const RESOURCE: Resource = resources::CATALOG_SOURCE;
}

text_enum! {
    /// How the content of a catalog is served.
    pub enum SourceType {
        /// By a server that speaks the registry protocol, at an address or in an image.
        Grpc = "grpc",
        /// By the content of a ConfigMap.
        ConfigMap = "configmap",
        /// Older spelling of `configmap`.
        Internal = "internal",
    }

    /// The reason for `status.message`.
    pub enum CatalogSourceReason {
        /// The spec is contradictory or incomplete.
        SpecInvalid = "SpecInvalidError",
        /// The ConfigMap is missing or invalid.
        ConfigMap = "ConfigMapError",
        /// The registry server could not be set up.
        RegistryServer = "RegistryServerError",
        /// The poll interval is no duration.
        InvalidInterval = "InvalidIntervalError",
    }

    /// The state of the connection to the content of a catalog.
    pub enum LastObservedState {
        /// The client has sent no request yet.
        Idle = "IDLE",
        /// The client is connecting.
        Connecting = "CONNECTING",
        /// The content is available.
        Ready = "READY",
        /// The connection failed, and is retried.
        TransientFailure = "TRANSIENT_FAILURE",
        /// The connection is closed.
        Shutdown = "SHUTDOWN",
    }
}

view! {
    /// Desired state of a CatalogSource.
    pub struct CatalogSourceSpec {
        required {
            /// How the catalog is served: `grpc`, `configmap` or `internal`.
            "sourceType" source_type: SourceType;
        }
        optional {
            /// Host and port of an existing registry server; then no Pod is created.
            "address" address: String;
            /// ConfigMap with the content, for the types `configmap` and `internal`.
            "configMap" config_map: String;
            /// Description.
            "description" description: String;
            /// Display name.
            "displayName" display_name: String;
            /// Configuration of the Pod that serves the catalog image.
            "grpcPodConfig" grpc_pod_config: Option<GrpcPodConfig>;
            /// Icon.
            "icon" icon: Option<Icon>;
            /// Catalog image.
            "image" image: String;
            /// Weight in dependency resolution; higher is preferred.
            "priority" priority: i64;
            /// Publisher of the catalog.
            "publisher" publisher: String;
            /// Names of pull secrets.
            "secrets" secrets: Vec<String>;
            /// Update strategy for the catalog image.
            "updateStrategy" update_strategy: Option<UpdateStrategy>;
        }
    }

    /// Configuration of the Pod that serves a catalog image.
    pub struct GrpcPodConfig {
        optional {
            /// Affinity; replaces the default.
            "affinity" affinity: Option<Value> as "io.k8s.api.core.v1.Affinity";
            /// Extraction of the catalog from the image; a registry server of the controller serves it.
            "extractContent" extract_content: Option<ExtractContent>;
            /// Memory request of the registry container.
            "memoryTarget" memory_target: Option<Value> as "io.k8s.apimachinery.pkg.api.resource.Quantity";
            /// Node selector; replaces the default.
            "nodeSelector" node_selector: BTreeMap<String, String>;
            /// Name of the priority class; an empty name stands for the default priority.
            "priorityClassName" priority_class_name: Option<String>;
            /// `legacy` or `restricted`; if absent, the Pod Security Standard of the namespace decides.
            "securityContextConfig" security_context_config: String, with {"enum": ["legacy", "restricted"]};
            /// Tolerations; replace the default.
            "tolerations" tolerations: Vec<Value> as "io.k8s.api.core.v1.Toleration";
        }
    }

    /// Location of the catalog in an image.
    pub struct ExtractContent {
        required {
            /// Folder with the file-based catalog.
            "catalogDir" catalog_dir: String;
        }
        optional {
            /// Folder with the cache.
            "cacheDir" cache_dir: String;
        }
    }

    /// Icon.
    pub struct Icon {
        required {
            /// The image in base64.
            "base64data" base64_data: String;
            /// Media type of the image.
            "mediatype" media_type: String;
        }
    }

    /// Update strategy for a catalog image.
    pub struct UpdateStrategy {
        optional {
            /// Polling of the registry.
            "registryPoll" registry_poll: Option<RegistryPoll>;
        }
    }

    /// Polling of the registry for a newer catalog image.
    pub struct RegistryPoll {
        optional {
            /// Poll interval as a Go duration; the status reports an invalid one.
            "interval" interval: String;
        }
    }

    /// Observed state of a CatalogSource.
    pub struct CatalogSourceStatus {
        optional {
            /// Conditions of the image template.
            "conditions" conditions: Vec<Condition>, with {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]
            };
            /// ConfigMap with the catalog.
            "configMapReference" config_map_reference: Option<ConfigMapReference>;
            /// State of the connection to the catalog.
            "connectionState" connection_state: Option<ConnectionState>;
            /// When the registry was last polled for a newer image.
            "latestImageRegistryPoll" latest_image_registry_poll: Option<Time>;
            /// Human-readable error.
            "message" message: String;
            /// Reason of the error in one CamelCase word.
            "reason" reason: CatalogSourceReason;
            /// Registry server of the catalog.
            "registryService" registry_service: Option<RegistryService>;
        }
    }

    /// ConfigMap with a catalog.
    pub struct ConfigMapReference {
        required {
            /// Name.
            "name" name: String;
            /// Namespace.
            "namespace" namespace: String;
        }
        optional {
            /// When the ConfigMap was read.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Resource version of the ConfigMap.
            "resourceVersion" resource_version: String;
            /// Uid.
            "uid" uid: String;
        }
    }

    /// State of the connection to a catalog.
    pub struct ConnectionState {
        required {
            /// Last observed state.
            "lastObservedState" last_observed_state: LastObservedState;
        }
        optional {
            /// Address of the catalog.
            "address" address: String;
            /// When the state last changed.
            "lastConnect" last_connect: Option<Time>;
        }
    }

    /// The server of a catalog.
    pub struct RegistryService {
        optional {
            /// When the registry server was created.
            "createdAt" created_at: Option<Time>;
            /// Port.
            "port" port: String;
            /// Protocol: `grpc`.
            "protocol" protocol: String;
            /// Name of the Service.
            "serviceName" service_name: String;
            /// Namespace of the Service.
            "serviceNamespace" service_namespace: String;
        }
    }
}
