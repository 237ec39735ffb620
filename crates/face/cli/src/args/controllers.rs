//! The arguments that select subsystems and their features, for `up`, `run` and `manifests`.

use clap::Args;
use mainstay_operators::extension::settings::{
    ExtensionApplierArgument, ExtensionCertificates, ExtensionTrust,
};

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

/// A channel of CustomResourceDefinitions of OLM v1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CrdChannelArgument {
    /// The stable fields.
    Standard,
    /// All fields, and ClusterObjectSets.
    Experimental,
}
