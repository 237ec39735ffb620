//! Settings of the controllers of ClusterExtensions that commands take as arguments.

/// What issues the certificates of the webhooks of ClusterExtensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExtensionCertificates {
    /// cert-manager, which must be in the cluster.
    CertManager,
    /// The service CA of OpenShift.
    ServiceCa,
    /// The controllers themselves: the cluster needs nothing else.
    Own,
}

/// What records the versions of ClusterExtensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExtensionApplierArgument {
    /// Secrets with releases, in the form of Helm: the standard of OLM v1.
    Releases,
    /// ClusterObjectSets, upstream's feature gate `BoxcutterRuntime`. They need `--crd-channel experimental`.
    ObjectSets,
}

/// With whose permissions the objects of ClusterExtensions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExtensionTrust {
    /// With those of the controllers, which may do all: OLM v1 from 1.11 on.
    ClusterAdmin,
    /// With those of the ServiceAccount that the extension names: OLM v1 up to 1.10.
    ServiceAccount,
    /// With those of a ServiceAccount that the controllers keep for each extension. It has exactly the permissions
    /// that the bundle needs, once `mainstay extension approve` has approved them.
    Approved,
}
