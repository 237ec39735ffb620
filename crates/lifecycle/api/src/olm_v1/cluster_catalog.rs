//! `ClusterCatalog`: a file-based catalog of packages in an image.

#[cfg(feature = "schema")]
use super::rules::{
    BASE_URL, CATALOG_SOURCE_UNION, IMAGE_REFERENCE, RESOLVED_IMAGE_REFERENCE, rules,
};
use crate::{ApiKind, Condition, Time, TypedObject, resources};
use mainstay_object::Resource;

/// A file-based catalog of packages in an image.
pub type ClusterCatalog = TypedObject<ClusterCatalogSpec, ClusterCatalogStatus>;

impl ApiKind for ClusterCatalog {
    const RESOURCE: Resource = resources::CLUSTER_CATALOG;
}

text_enum! {
    /// The kind of the source of a ClusterCatalog.
    pub enum ClusterCatalogSourceType {
        /// A container image.
        Image = "Image",
    }

    /// Whether the content of a ClusterCatalog is served.
    pub enum AvailabilityMode {
        /// The content is served; an empty field means the same.
        Available = "Available",
        /// The content is neither served nor kept.
        Unavailable = "Unavailable",
    }

    /// Condition type of a ClusterCatalog.
    pub enum ClusterCatalogConditionType {
        /// Whether the content gets closer to the desired one.
        Progressing = "Progressing",
        /// Whether the content is served.
        Serving = "Serving",
    }

    /// Reason of a condition of a ClusterCatalog.
    pub enum ClusterCatalogReason {
        /// Progressing: the desired content is unpacked.
        Succeeded = "Succeeded",
        /// Progressing: an error occurred, and the controller tries again.
        Retrying = "Retrying",
        /// Progressing: an error that only a change of the spec can remove.
        Blocked = "Blocked",
        /// Serving: the content is served.
        Available = "Available",
        /// Serving: no content is served.
        Unavailable = "Unavailable",
        /// Serving: the spec asks for no content to be served.
        UserSpecifiedUnavailable = "UserSpecifiedUnavailable",
    }
}

view! {
    /// Desired state of a ClusterCatalog.
    pub struct ClusterCatalogSpec {
        required {
            /// Where the content of the catalog comes from.
            "source" source: ClusterCatalogSource;
        }
        optional {
            /// Weight among catalogs with the same bundle; higher is preferred.
            "priority" priority: i64, with {
                "default": 0, "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX
            };
            /// Whether the content is served: `Available` or `Unavailable`.
            "availabilityMode" availability_mode: AvailabilityMode, with {
                "default": "Available", "enum": ["Unavailable", "Available"]
            };
        }
    }

    /// Source of the content of a catalog.
    pub struct ClusterCatalogSource with {
        "x-kubernetes-validations": rules(CATALOG_SOURCE_UNION)
    } {
        required {
            /// Kind of the source: `Image`.
            "type" kind: ClusterCatalogSourceType, with {"enum": ["Image"]};
        }
        optional {
            /// The catalog image, for the type `Image`.
            "image" image: Option<ImageSource>;
        }
    }

    /// Catalog image.
    pub struct ImageSource with {
        "x-kubernetes-validations": rules(&[(
            r#"self.ref.find('(@.*:)') != "" ? !has(self.pollIntervalMinutes) : true"#,
            "cannot specify pollIntervalMinutes while using digest-based image",
        )])
    } {
        required {
            /// Image reference with a tag or a digest.
            "ref" reference: String, with {
                "maxLength": 1000, "x-kubernetes-validations": rules(IMAGE_REFERENCE)
            };
        }
        optional {
            /// Minutes between two checks whether the tag has a new digest; without it, the tag is
            /// resolved once.
            "pollIntervalMinutes" poll_interval_minutes: Option<i64>, with {"minimum": 1};
        }
    }

    /// Observed state of a ClusterCatalog.
    pub struct ClusterCatalogStatus {
        optional {
            /// Conditions: Progressing and Serving.
            "conditions" conditions: Vec<Condition>, with {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]
            };
            /// The source that was unpacked.
            "resolvedSource" resolved_source: Option<ResolvedCatalogSource>;
            /// Addresses of the content.
            "urls" urls: Option<ClusterCatalogUrls>;
            /// When the content was last unpacked.
            "lastUnpacked" last_unpacked: Option<Time>;
        }
    }

    /// Source of unpacked content.
    pub struct ResolvedCatalogSource with {
        "x-kubernetes-validations": rules(CATALOG_SOURCE_UNION)
    } {
        required {
            /// Kind of the source: `Image`.
            "type" kind: ClusterCatalogSourceType, with {"enum": ["Image"]};
            /// The unpacked image.
            "image" image: ResolvedImageSource;
        }
    }

    /// Unpacked catalog image.
    pub struct ResolvedImageSource {
        required {
            /// Image reference with a digest.
            "ref" reference: String, with {
                "maxLength": 1000, "x-kubernetes-validations": rules(RESOLVED_IMAGE_REFERENCE)
            };
        }
    }

    /// Addresses of the content of a catalog.
    pub struct ClusterCatalogUrls {
        required {
            /// URL to which the paths of the catalog API are appended.
            "base" base: String, with {
                "maxLength": 525, "x-kubernetes-validations": rules(BASE_URL)
            };
        }
    }
}

impl ClusterCatalogSpec {
    /// Whether the content is to be served.
    pub fn is_available(&self) -> bool {
        self.availability_mode != AvailabilityMode::Unavailable
    }
}
