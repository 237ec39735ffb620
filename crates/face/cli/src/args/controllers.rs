//! The arguments that select subsystems and their features, for `up`, `run` and `manifests`.

use clap::Args;

/// The selected subsystems.
#[derive(Args, Clone, Debug)]
pub struct ControllersArguments {
    /// The subsystems to run: names, `*` for all, `-NAME` to exclude one. They are `classic`, Operator
    /// Lifecycle Manager, and `extensions`, its v1.
    #[arg(
        long = "controllers",
        id = "controllers",
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    pub list: Vec<String>,
    /// Channel of the CustomResourceDefinitions of `extensions`.
    #[arg(long, value_enum, value_name = "CHANNEL", default_value_t = CrdChannelArgument::Standard)]
    pub crd_channel: CrdChannelArgument,
    /// With whose permissions the objects of ClusterExtensions are written.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ExtensionTrust::ClusterAdmin)]
    pub extension_trust: ExtensionTrust,
    /// What records the versions of ClusterExtensions, and from which their objects are written.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = ExtensionApplierArgument::Releases)]
    pub extension_applier: ExtensionApplierArgument,
    /// What issues the certificates of the webhooks of ClusterExtensions [default: `own` for `up`, which has
    /// neither of the others; `service-ca` with `--profile openshift`; else `cert-manager`].
    #[arg(long, value_enum, value_name = "ISSUER")]
    pub extension_certificates: Option<ExtensionCertificates>,
}

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

/// A channel of CustomResourceDefinitions of OLM v1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CrdChannelArgument {
    /// The stable fields.
    Standard,
    /// All fields, and ClusterObjectSets.
    Experimental,
}
