//! Features of the subsystem that an administrator chooses.

use mainstay_api::CrdChannel;

/// With whose permissions the objects of extensions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustMode {
    /// With those of the controller, which is cluster-admin: OLM v1 from 1.11 on. Who may create a
    /// ClusterExtension may install whatever the catalogs have.
    #[default]
    ClusterAdmin,
    /// With those of the ServiceAccount that the extension names: OLM v1 up to 1.10. Objects that it may
    /// not write are not written.
    ServiceAccount,
    /// With those of a ServiceAccount that the controller creates and keeps for each extension. It has exactly the
    /// permissions that the bundle needs, if a person has approved them. OLM v1 has no such mode.
    Approved,
}

/// What issues the certificates of webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookCertificates {
    /// cert-manager, which must be in the cluster: upstream's choice on most clusters.
    #[default]
    CertManager,
    /// The service CA of OpenShift: upstream's choice there.
    ServiceCa,
    /// The controller: a CA for each extension, which the controller keeps in the namespace of releases.
    Own,
}

/// The features.
#[expect(clippy::struct_excessive_bools, reason = "each is a feature gate of upstream")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The channel of the CustomResourceDefinitions.
    pub channel: CrdChannel,
    /// With whose permissions objects are written.
    pub trust: TrustMode,
    /// Whether a bundle may watch one namespace: upstream's gate `SingleOwnNamespaceInstallSupport`.
    pub single_namespaces: bool,
    /// Whether `spec.config` may change Deployments: upstream's gate `DeploymentConfig`.
    pub deployment_config: bool,
    /// Whether a bundle states its release beside its version: upstream's gate `BundleReleaseSupport`.
    pub explicit_releases: bool,
    /// Whether all permissions that the ServiceAccount lacks are reported before anything is written:
    /// upstream's gate `PreflightPermissions`. Without it, the API server reports the first one.
    pub preflight_permissions: bool,
    /// Whether ClusterObjectSets apply the objects of extensions: upstream's gate `BoxcutterRuntime`. It
    /// needs the CustomResourceDefinitions of the experimental channel.
    pub object_sets: bool,
    /// What issues the certificates of webhooks.
    pub certificates: WebhookCertificates,
}

impl Features {
    /// The features of upstream's experimental channel.
    pub const fn experimental(trust: TrustMode) -> Self {
        Self {
            channel: CrdChannel::Experimental,
            trust,
            single_namespaces: true,
            deployment_config: true,
            explicit_releases: true,
            preflight_permissions: true,
            object_sets: false,
            certificates: WebhookCertificates::CertManager,
        }
    }

    /// The same features with certificates of this issuer.
    #[must_use]
    pub const fn with_certificates(self, certificates: WebhookCertificates) -> Self {
        Self { certificates, ..self }
    }

    /// The features of upstream's experimental channel, with ClusterObjectSets as applier.
    pub const fn object_sets(trust: TrustMode) -> Self {
        Self { object_sets: true, ..Self::experimental(trust) }
    }

    /// The features of upstream's standard channel, and the report about missing permissions.
    pub const fn standard(trust: TrustMode) -> Self {
        Self {
            channel: CrdChannel::Standard,
            trust,
            single_namespaces: false,
            deployment_config: false,
            explicit_releases: false,
            preflight_permissions: true,
            object_sets: false,
            certificates: WebhookCertificates::CertManager,
        }
    }
}

impl Default for Features {
    fn default() -> Self {
        Self::standard(TrustMode::default())
    }
}
