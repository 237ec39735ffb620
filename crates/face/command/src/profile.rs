//! The standard namespaces of a cluster.

use clap::ValueEnum;

/// Which standard namespaces a new cluster gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Catalogs in `olm`, operators for all namespaces in `operators`.
    Standard,
    /// Catalogs in `openshift-marketplace`, operators in `openshift-operators`.
    Openshift,
}

impl Profile {
    /// The global catalog namespace, whose catalogs every namespace sees.
    pub const fn catalog_namespace(self) -> &'static str {
        match self {
            Self::Standard => "olm",
            Self::Openshift => "openshift-marketplace",
        }
    }

    /// The namespace of operators that watch all namespaces.
    pub const fn operator_namespace(self) -> &'static str {
        match self {
            Self::Standard => "operators",
            Self::Openshift => "openshift-operators",
        }
    }

    /// The namespace of the catalog server of OLM v1, and of its pull secret.
    pub const fn catalogd_namespace(self) -> &'static str {
        match self {
            Self::Standard => "olmv1-system",
            Self::Openshift => "openshift-catalogd",
        }
    }

    /// The namespace with the releases of ClusterExtensions and the Secrets of ClusterObjectSets.
    pub const fn operator_controller_namespace(self) -> &'static str {
        match self {
            Self::Standard => "olmv1-system",
            Self::Openshift => "openshift-operator-controller",
        }
    }

    /// The namespace of the lifecycle manager.
    pub const fn manager_namespace(self) -> &'static str {
        match self {
            Self::Standard => "olm",
            Self::Openshift => "openshift-operator-lifecycle-manager",
        }
    }
}
