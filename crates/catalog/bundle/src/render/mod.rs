//! The registry+v1 renderer of OLM v1: from a bundle to the plain manifests that install it.
//!
//! A ClusterExtension installs no ClusterServiceVersion, but ServiceAccounts, RBAC, CRDs,
//! Deployments and webhooks. Rendering is a pure function of the bundle and [`RenderSettings`]:
//! equal input gives equal bytes.
//!
//! ```text
//! tree ─► RegistryV1Bundle ─┬─► support ─► configuration ─► RenderSettings ─┐   (install)
//!                           └───────────────────────────────────────────────┴─► checks ─► targets ─► objects
//! ```
//!
//! Objects, names and messages are upstream's (`upstream-olm-v1.md` §2.7, recorded answers of
//! operator-controller 1.11); where upstream has a random order, this one sorts by name. The rules
//! of reading differ from [`crate::Bundle`]: all documents of a file count, lists are flattened,
//! the last ClusterServiceVersion wins, hidden files are read, sub-folders are refused.
//!
//! This module does not apply objects, does not issue certificates (see [`IssuedCertificates`]),
//! and does not render for several namespaces by configuration, as upstream cannot either.

mod certificates;
mod checks;
mod configuration;
mod convert;
mod deployment_config;
mod deployments;
mod error;
mod extension;
mod generated_names;
mod objects;
mod permissions;
mod registry_v1;
mod schema;
mod schema_validation;
mod targets;
mod webhooks;
mod yaml;

pub use certificates::{
    CertManager, CertificateProvider, CertificateSecret, INJECT_CA_BUNDLE, INJECT_CA_FROM,
    IssuedCertificate, IssuedCertificates, SERVING_CERTIFICATE_SECRET, ServiceCa, WebhookServing,
};
pub use deployment_config::DeploymentConfig;
pub use error::{
    ConfigurationError, DeploymentConfigError, ManifestFileError, ReadBundleError, RenderError,
    RenderStage, SupportError, TargetNamespaceError, TargetNamespaceReason,
};
pub use extension::InstallSettings;
pub use registry_v1::RegistryV1Bundle;

use serde_json::Value;

/// How a bundle is rendered.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenderSettings<'a> {
    /// The namespace that the operator runs in.
    pub namespace: &'a str,
    /// The watched namespaces; `[""]` means all. Empty means all, if the bundle supports that.
    pub targets: &'a [String],
    /// The provider of webhook certificates, if any.
    pub certificates: Option<&'a dyn CertificateProvider>,
    /// Changes in the Deployments.
    pub deployment_config: Option<&'a DeploymentConfig>,
    /// The annotations of Pod templates.
    pub template_annotations: TemplateAnnotations,
}

/// The annotations that Pod templates get beside those of the ClusterServiceVersion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TemplateAnnotations {
    /// `olm.targetNamespaces` and `olm.operatorNamespace`: OLM v1 from 1.11 on.
    #[default]
    Namespaces,
    /// `olm.targetNamespaces` only: OLM v1 up to 1.10.
    TargetNamespaces,
}

impl RegistryV1Bundle {
    /// The Services and certificates of the webhooks of the bundle, in the order of the names of their
    /// Deployments, if its operator runs in this namespace.
    pub fn webhook_servings(&self, namespace: &str) -> Vec<WebhookServing> {
        webhooks::servings(self, namespace)
    }

    /// The objects that install the bundle, in upstream's order.
    ///
    /// # Errors
    /// All faults of the bundle ([`RenderStage::Bundle`]), or namespaces that it cannot watch
    /// ([`RenderStage::Settings`]).
    pub fn render(&self, settings: &RenderSettings<'_>) -> Result<Vec<Value>, RenderError> {
        self.clone().into_rendered(settings)
    }

    /// As [`RegistryV1Bundle::render`], for a caller that does not need the bundle afterwards: it
    /// copies no manifests.
    ///
    /// # Errors
    /// As [`RegistryV1Bundle::render`].
    pub fn into_rendered(
        mut self,
        settings: &RenderSettings<'_>,
    ) -> Result<Vec<Value>, RenderError> {
        let faults = checks::find_faults(&self);
        if !faults.is_empty() {
            return Err(RenderError::Invalid(faults));
        }
        let all = [String::new()];
        let targets = match settings.targets {
            [] if self.supports(targets::ALL) => &all[..],
            targets => targets,
        };
        targets::check(&self, settings.namespace, targets)?;
        let crds = std::mem::take(&mut self.crds);
        let others = std::mem::take(&mut self.others);
        let context = RenderContext { bundle: &self, targets, settings };
        let mut out = permissions::service_accounts(&context);
        out.extend(permissions::roles(&context));
        out.extend(permissions::cluster_roles(&context));
        out.extend(webhooks::crds(&context, crds)?);
        out.extend(objects::others(&context, others));
        out.extend(deployments::all(&context));
        out.extend(webhooks::configurations(&context, webhooks::VALIDATING));
        out.extend(webhooks::configurations(&context, webhooks::MUTATING));
        out.extend(webhooks::services(&context));
        out.extend(webhooks::certificates(&context));
        Ok(out)
    }
}

/// The input of one rendering.
struct RenderContext<'a> {
    /// The bundle, without the objects that are copied from its manifests.
    bundle: &'a RegistryV1Bundle,
    /// The watched namespaces; never empty.
    targets: &'a [String],
    settings: &'a RenderSettings<'a>,
}

impl RenderContext<'_> {
    fn watches_all(&self) -> bool {
        self.targets.len() == 1 && self.targets[0].is_empty()
    }
}
