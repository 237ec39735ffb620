//! `OperatorHub` of `config.openshift.io`: which of the default catalogs a cluster has.

use crate::{ApiKind, TypedObject, resources};
use mainstay_object::Resource;

/// Which of the default catalogs a cluster has; the only object is named `cluster`.
pub type OperatorHub = TypedObject<OperatorHubSpec, OperatorHubStatus>;

impl ApiKind for OperatorHub {
    const RESOURCE: Resource = resources::OPERATOR_HUB;
}

view! {
    /// Desired state of the OperatorHub.
    pub struct OperatorHubSpec {
        optional {
            /// Whether all default CatalogSources are disabled, except those that `sources` enables.
            "disableAllDefaultSources" disable_all_default_sources: bool;
            /// Settings of single default CatalogSources.
            "sources" sources: Vec<HubSource>;
        }
    }

    /// Setting of a default CatalogSource.
    pub struct HubSource {
        optional {
            /// Name of the CatalogSource.
            "name" name: String, with {"minLength": 1, "maxLength": 253};
            /// Whether the CatalogSource is disabled.
            "disabled" disabled: bool;
        }
    }

    /// Observed state of the OperatorHub.
    pub struct OperatorHubStatus {
        optional {
            /// Status of each default CatalogSource, and of each one in the spec.
            "sources" sources: Vec<HubSourceStatus>;
        }
    }

    /// Status of a CatalogSource.
    pub struct HubSourceStatus {
        required {
            /// Whether the CatalogSource is disabled.
            "disabled" disabled: bool;
        }
        optional {
            /// Name of the CatalogSource.
            "name" name: String, with {"minLength": 1, "maxLength": 253};
            /// `Success` or `Error`.
            "status" status: String;
            /// Human-readable error.
            "message" message: String;
        }
    }
}
