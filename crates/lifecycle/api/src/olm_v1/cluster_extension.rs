//! `ClusterExtension`: a package that is installed from the catalogs and kept up to date.

#[cfg(feature = "schema")]
use super::rules::{
    BUNDLE_RELEASE, BUNDLE_VERSION, LABEL, SUBDOMAIN, VERSION_RANGE, rules, rules_and_subdomain,
};
use crate::{ApiKind, Condition, TypedObject, resources};
use mainstay_object::Resource;
use serde_json::{Map, Value};

/// A package that is installed from the catalogs and kept up to date.
pub type ClusterExtension = TypedObject<ClusterExtensionSpec, ClusterExtensionStatus>;

impl ApiKind for ClusterExtension {
    const RESOURCE: Resource = resources::CLUSTER_EXTENSION;
}

text_enum! {
    /// The kind of the source of a ClusterExtension.
    pub enum ClusterExtensionSourceType {
        /// The catalogs of the cluster.
        Catalog = "Catalog",
    }

    /// Which versions may follow the installed one.
    pub enum UpgradeConstraintPolicy {
        /// Those that the catalog's channels allow; an empty field means the same.
        CatalogProvided = "CatalogProvided",
        /// All that match the spec, older ones too.
        SelfCertified = "SelfCertified",
    }

    /// Whether an upgrade that could break stored custom resources is refused.
    pub enum CrdUpgradeSafetyEnforcement {
        /// Nothing is checked.
        None = "None",
        /// Unsafe upgrades are refused.
        Strict = "Strict",
    }

    /// The form of the configuration of a ClusterExtension.
    pub enum ClusterExtensionConfigType {
        /// An object in the spec.
        Inline = "Inline",
    }

    /// Condition type of a ClusterExtension.
    pub enum ClusterExtensionConditionType {
        /// Whether a bundle is installed.
        Installed = "Installed",
        /// Whether the installation gets closer to the spec.
        Progressing = "Progressing",
        /// Whether the installed objects work; only with object sets.
        Available = "Available",
        /// Whether anything of the extension is deprecated.
        Deprecated = "Deprecated",
        /// Whether the package is deprecated.
        PackageDeprecated = "PackageDeprecated",
        /// Whether a channel of the extension is deprecated.
        ChannelDeprecated = "ChannelDeprecated",
        /// Whether the installed bundle is deprecated.
        BundleDeprecated = "BundleDeprecated",
    }

    /// Reason of a condition of a ClusterExtension.
    pub enum ClusterExtensionReason {
        /// Installed, Progressing: the bundle of the spec is installed.
        Succeeded = "Succeeded",
        /// Installed: no bundle is installed, or the installed one cannot be read.
        Failed = "Failed",
        /// Installed, `BundleDeprecated`: no bundle is installed yet.
        Absent = "Absent",
        /// Progressing: the objects of a bundle are being applied.
        RollingOut = "RollingOut",
        /// Progressing: an error occurred, and the controller tries again.
        Retrying = "Retrying",
        /// Progressing: an error that only a change of the spec can remove.
        Blocked = "Blocked",
        /// Progressing: the bundle refuses the configuration.
        InvalidConfiguration = "InvalidConfiguration",
        /// Progressing: the rollout takes longer than allowed.
        ProgressDeadlineExceeded = "ProgressDeadlineExceeded",
        /// A deprecation holds.
        Deprecated = "Deprecated",
        /// A deprecation does not hold.
        NotDeprecated = "NotDeprecated",
        /// No catalog says whether a deprecation holds.
        DeprecationStatusUnknown = "DeprecationStatusUnknown",
        /// Available: all probes succeed.
        ProbesSucceeded = "ProbesSucceeded",
        /// Available: a probe fails.
        ProbeFailure = "ProbeFailure",
        /// Available: an error occurred before the probes.
        Reconciling = "Reconciling",
        /// Available: the object set is archived.
        Archived = "Archived",
    }
}

view! {
    /// Desired state of a ClusterExtension.
    pub struct ClusterExtensionSpec {
        required {
            /// Namespace for the namespaced objects of the bundle; it must exist.
            "namespace" namespace: String, with {
                "maxLength": 63,
                "x-kubernetes-validations": rules(&[
                    ("self == oldSelf", "namespace is immutable"),
                    (LABEL, "namespace must be a valid DNS1123 label"),
                ])
            };
            /// Where the bundle comes from.
            "source" source: ClusterExtensionSource;
        }
        optional {
            /// Deprecated: ServiceAccount of earlier versions; it has no effect.
            "serviceAccount" service_account: Option<ServiceAccountReference>;
            /// Options of the installation.
            "install" install: Option<ClusterExtensionInstall>;
            /// Configuration of the bundle.
            "config" config: Option<ClusterExtensionConfig>;
            /// Minutes that a rollout may take; without it, there is no deadline.
            "progressDeadlineMinutes" progress_deadline_minutes: Option<i64>, with {
                "format": "int32", "minimum": 10, "maximum": 720
            };
        }
    }

    /// Reference to a ServiceAccount in the namespace of the spec.
    pub struct ServiceAccountReference with {"minProperties": 1} {
        optional {
            /// Name of the ServiceAccount.
            "name" name: String, with {
                "minLength": 1, "maxLength": 253,
                "x-kubernetes-validations": rules_and_subdomain(
                    &[("self == oldSelf", "name is immutable once set but may be cleared")], "name",
                )
            };
        }
    }

    /// Source of the bundle of a ClusterExtension.
    pub struct ClusterExtensionSource with {
        "x-kubernetes-validations": rules(&[(
            "has(self.sourceType) && self.sourceType == 'Catalog' ? has(self.catalog) : !has(self.catalog)",
            "catalog is required when sourceType is Catalog, and forbidden otherwise",
        )])
    } {
        required {
            /// Kind of the source: `Catalog`.
            "sourceType" source_type: ClusterExtensionSourceType, with {"enum": ["Catalog"]};
        }
        optional {
            /// Which bundles of the catalogs are allowed, for the type `Catalog`.
            "catalog" catalog: Option<CatalogFilter>;
        }
    }

    /// Bundles that a ClusterExtension allows.
    pub struct CatalogFilter {
        required {
            /// Name of the package.
            "packageName" package_name: String, with {
                "maxLength": 253,
                "x-kubernetes-validations": rules_and_subdomain(
                    &[("self == oldSelf", "packageName is immutable")], "packageName",
                )
            };
        }
        optional {
            /// Version or range of versions; empty allows all.
            "version" version: String, with {
                "maxLength": 64, "x-kubernetes-validations": rules(&[VERSION_RANGE])
            };
            /// Channels of the package; an empty list allows all.
            "channels" channels: Vec<String>, with {
                "maxItems": 256,
                "items": {
                    "type": "string", "maxLength": 253,
                    "x-kubernetes-validations": rules(&[
                        (SUBDOMAIN, "channels entries must be valid DNS1123 subdomains"),
                    ])
                }
            };
            /// Label selector for ClusterCatalogs; without it, all are used.
            "selector" selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Which versions may follow the installed one: `CatalogProvided` or `SelfCertified`.
            "upgradeConstraintPolicy" upgrade_constraint_policy: UpgradeConstraintPolicy, with {
                "default": "CatalogProvided", "enum": ["CatalogProvided", "SelfCertified"]
            };
        }
    }

    /// Options of an installation.
    pub struct ClusterExtensionInstall with {
        "x-kubernetes-validations": rules(&[(
            "has(self.preflight)",
            "at least one of [preflight] are required when install is specified",
        )])
    } {
        optional {
            /// Checks before an installation or upgrade.
            "preflight" preflight: Option<Preflight>;
        }
    }

    /// Checks before an installation or upgrade.
    pub struct Preflight with {
        "x-kubernetes-validations": rules(&[(
            "has(self.crdUpgradeSafety)",
            "at least one of [crdUpgradeSafety] are required when preflight is specified",
        )])
    } {
        required {
            /// Check of changed CustomResourceDefinitions.
            "crdUpgradeSafety" crd_upgrade_safety: CrdUpgradeSafety;
        }
    }

    /// Check that an upgrade does not break stored custom resources.
    pub struct CrdUpgradeSafety {
        required {
            /// Whether the check is made: `Strict` or `None`.
            "enforcement" enforcement: CrdUpgradeSafetyEnforcement, with {"enum": ["None", "Strict"]};
        }
    }

    /// Configuration of a bundle.
    pub struct ClusterExtensionConfig with {
        "x-kubernetes-validations": rules(&[(
            "has(self.configType) && self.configType == 'Inline' ?has(self.inline) : !has(self.inline)",
            "inline is required when configType is Inline, and forbidden otherwise",
        )])
    } {
        required {
            /// Form of the configuration: `Inline`.
            "configType" config_type: ClusterExtensionConfigType, with {"enum": ["Inline"]};
        }
        optional {
            /// The configuration, for the type `Inline`; the bundle decides on its fields.
            "inline" inline: Option<Map<String, Value>>, with {"minProperties": 1};
        }
    }

    /// Observed state of a ClusterExtension.
    pub struct ClusterExtensionStatus {
        optional {
            /// Conditions: Installed, Progressing, Available and deprecations.
            "conditions" conditions: Vec<Condition>, with {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]
            };
            /// What is installed.
            "install" install: Option<ClusterExtensionInstallStatus>;
            /// Object sets of the extension that are not archived.
            "activeRevisions" active_revisions: Vec<RevisionStatus>, with {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]
            };
        }
    }

    /// What is installed.
    pub struct ClusterExtensionInstallStatus {
        required {
            /// The installed bundle.
            "bundle" bundle: BundleMetadata;
        }
    }

    /// Name and version of a bundle.
    pub struct BundleMetadata {
        required {
            /// Name of the bundle in the catalog.
            "name" name: String, with {
                "x-kubernetes-validations": rules_and_subdomain(&[], "packageName")
            };
            /// Version of the bundle.
            "version" version: String, with {"x-kubernetes-validations": rules(&[BUNDLE_VERSION])};
        }
        optional {
            /// Release of the version; absent and empty are different releases.
            "release" release: Option<String>, with {
                "maxLength": 20, "x-kubernetes-validations": rules(&[BUNDLE_RELEASE])
            };
        }
    }

    /// State of an object set.
    pub struct RevisionStatus {
        required {
            /// Name of the ClusterObjectSet.
            "name" name: String;
        }
        optional {
            /// Conditions of the ClusterObjectSet.
            "conditions" conditions: Vec<Condition>, with {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]
            };
        }
    }
}
