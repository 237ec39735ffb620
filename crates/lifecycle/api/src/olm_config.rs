//! `OLMConfig`: settings of the lifecycle manager.

use crate::{ApiKind, Condition, TypedObject, resources};
use mainstay_object::Resource;

/// Settings of the lifecycle manager; the only object is named `cluster`.
pub type OlmConfig = TypedObject<OlmConfigSpec, OlmConfigStatus>;

impl ApiKind for OlmConfig {
    const RESOURCE: Resource = resources::OLM_CONFIG;
}

view! {
    /// Desired state of the OLMConfig.
    pub struct OlmConfigSpec {
        optional {
            /// Optional features.
            "features" features: Option<Features>;
        }
    }

    /// Optional features.
    pub struct Features {
        optional {
            /// Whether no copied ClusterServiceVersions are created for operators in all namespaces.
            "disableCopiedCSVs" disable_copied_csvs: Option<bool>;
            /// Sync interval of the package server, as a Go duration.
            "packageServerSyncInterval" package_server_sync_interval: Option<String>, with {
                "pattern": "^([0-9]+(\\.[0-9]+)?(s|m|h))+$"
            };
        }
    }

    /// Observed state of the OLMConfig.
    pub struct OlmConfigStatus {
        optional {
            /// Conditions.
            "conditions" conditions: Vec<Condition>;
        }
    }
}
