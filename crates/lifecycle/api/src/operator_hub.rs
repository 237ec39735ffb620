//! `OperatorHub` of `config.openshift.io`: which of the default catalogs a cluster has.

use crate::{ApiKind, TypedObject, resources};
use mainstay_object::Resource;

/// Which of the default catalogs a cluster has; the only object is named `cluster`.
pub type OperatorHub = TypedObject<OperatorHubSpec, OperatorHubStatus>;

impl ApiKind for OperatorHub {
    const RESOURCE: Resource = resources::OPERATOR_HUB;
}

view! {
    /// Which default catalogs are wanted.
    pub struct OperatorHubSpec {
        optional {
            /// Whether no default catalog is wanted, except those that `sources` enables.
            "disableAllDefaultSources" disable_all_default_sources: bool;
            /// Default catalogs of which it is said one by one.
            "sources" sources: Vec<HubSource>;
        }
    }

    /// Whether a default catalog is wanted.
    pub struct HubSource {
        optional {
            /// Name of the CatalogSource.
            "name" name: String, with {"minLength": 1, "maxLength": 253};
            /// Whether it is not wanted.
            "disabled" disabled: bool;
        }
    }

    /// What became of it.
    pub struct OperatorHubStatus {
        optional {
            /// Each default catalog, and each that the spec names.
            "sources" sources: Vec<HubSourceStatus>;
        }
    }

    /// What became of a catalog.
    pub struct HubSourceStatus {
        required {
            /// Whether it is not wanted.
            "disabled" disabled: bool;
        }
        optional {
            /// Name of the CatalogSource.
            "name" name: String, with {"minLength": 1, "maxLength": 253};
            /// `Success` or `Error`.
            "status" status: String;
            /// What is wrong.
            "message" message: String;
        }
    }
}
