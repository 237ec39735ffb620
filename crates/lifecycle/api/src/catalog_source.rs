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
    /// What a CatalogSource asks for.
    pub struct CatalogSourceSpec {
        required {
            /// How the catalog is served: `grpc`, `configmap` or `internal`.
            "sourceType" source_type: SourceType;
        }
        optional {
            /// Host and port of a running server; no Pod is made then.
            "address" address: String;
            /// ConfigMap with the content, for the types `configmap` and `internal`.
            "configMap" config_map: String;
            /// Text for people.
            "description" description: String;
            /// Name for people.
            "displayName" display_name: String;
            /// Settings of the Pod that serves an image.
            "grpcPodConfig" grpc_pod_config: Option<GrpcPodConfig>;
            /// Logo.
            "icon" icon: Option<Icon>;
            /// Image that serves the catalog.
            "image" image: String;
            /// Weight in dependency resolution; higher is preferred.
            "priority" priority: i64;
            /// Who publishes the catalog.
            "publisher" publisher: String;
            /// Names of pull secrets.
            "secrets" secrets: Vec<String>;
            /// How a newer image is noticed.
            "updateStrategy" update_strategy: Option<UpdateStrategy>;
        }
    }

    /// Settings of the Pod that serves a catalog image.
    pub struct GrpcPodConfig {
        optional {
            /// Scheduling rules; replace the default.
            "affinity" affinity: Option<Value> as "io.k8s.api.core.v1.Affinity";
            /// Serve content copied out of the image with our own server.
            "extractContent" extract_content: Option<ExtractContent>;
            /// Memory to request.
            "memoryTarget" memory_target: Option<Value> as "io.k8s.apimachinery.pkg.api.resource.Quantity";
            /// Node selector; replaces the default.
            "nodeSelector" node_selector: BTreeMap<String, String>;
            /// Priority class; the empty text asks for the default priority.
            "priorityClassName" priority_class_name: Option<String>;
            /// `legacy` or `restricted`; absent: by the namespace's pod security level.
            "securityContextConfig" security_context_config: String, with {"enum": ["legacy", "restricted"]};
            /// Tolerations; replace the default.
            "tolerations" tolerations: Vec<Value> as "io.k8s.api.core.v1.Toleration";
        }
    }

    /// Where an image keeps its catalog.
    pub struct ExtractContent {
        required {
            /// Folder of the file-based catalog.
            "catalogDir" catalog_dir: String;
        }
        optional {
            /// Folder of a prepared cache.
            "cacheDir" cache_dir: String;
        }
    }

    /// A logo.
    pub struct Icon {
        required {
            /// The image in base64.
            "base64data" base64_data: String;
            /// Media type of the image.
            "mediatype" media_type: String;
        }
    }

    /// How a newer catalog image is noticed.
    pub struct UpdateStrategy {
        optional {
            /// By looking at regular times.
            "registryPoll" registry_poll: Option<RegistryPoll>;
        }
    }

    /// When to look for a newer catalog image.
    pub struct RegistryPoll {
        optional {
            /// Time between two looks, as a Go duration; kept as written, errors go to the status.
            "interval" interval: String;
        }
    }

    /// What was seen of a CatalogSource.
    pub struct CatalogSourceStatus {
        optional {
            /// Conditions, of the image template.
            "conditions" conditions: Vec<Condition>, with {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]
            };
            /// The ConfigMap that was read.
            "configMapReference" config_map_reference: Option<ConfigMapReference>;
            /// Connection to the content.
            "connectionState" connection_state: Option<ConnectionState>;
            /// When a newer image was last looked for.
            "latestImageRegistryPoll" latest_image_registry_poll: Option<Time>;
            /// What is wrong.
            "message" message: String;
            /// What is wrong, in one word.
            "reason" reason: CatalogSourceReason;
            /// The server of the catalog.
            "registryService" registry_service: Option<RegistryService>;
        }
    }

    /// The ConfigMap that a catalog was read from.
    pub struct ConfigMapReference {
        required {
            /// Name.
            "name" name: String;
            /// Namespace.
            "namespace" namespace: String;
        }
        optional {
            /// When it was read.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Version that was read.
            "resourceVersion" resource_version: String;
            /// Uid.
            "uid" uid: String;
        }
    }

    /// Connection to a catalog's content.
    pub struct ConnectionState {
        required {
            /// State when last looked at.
            "lastObservedState" last_observed_state: LastObservedState;
        }
        optional {
            /// Where the content comes from.
            "address" address: String;
            /// When the state was last reached.
            "lastConnect" last_connect: Option<Time>;
        }
    }

    /// The server of a catalog.
    pub struct RegistryService {
        optional {
            /// When it was made.
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
