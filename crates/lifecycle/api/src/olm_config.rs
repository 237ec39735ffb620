//! `OLMConfig`: settings of the lifecycle manager.

use crate::{ApiKind, Condition, TypedObject, resources};
use mainstay_object::Resource;

/// Settings of the lifecycle manager; the only object is named `cluster`.
pub type OlmConfig = TypedObject<OlmConfigSpec, OlmConfigStatus>;

impl ApiKind for OlmConfig {
    const RESOURCE: Resource = resources::OLM_CONFIG;
}

view! {
    /// The settings.
    pub struct OlmConfigSpec {
        optional {
            /// What is switched on or off.
            "features" features: Option<Features>;
        }
    }

    /// What is switched on or off.
    pub struct Features {
        optional {
            /// Whether operators for all namespaces are shown only in their own.
            "disableCopiedCSVs" disable_copied_csvs: Option<bool>;
            /// How often package manifests are read again, as a Go duration.
            "packageServerSyncInterval" package_server_sync_interval: Option<String>, with {
                "pattern": "^([0-9]+(\\.[0-9]+)?(s|m|h))+$"
            };
        }
    }

    /// What was seen of the settings.
    pub struct OlmConfigStatus {
        optional {
            /// Conditions.
            "conditions" conditions: Vec<Condition>;
        }
    }
}
