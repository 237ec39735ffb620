//! From a bundle to the plain manifests that install it.
//!
//! This is how extensions (OLM v1) install a bundle: no ClusterServiceVersion, but accounts, roles,
//! definitions, deployments and webhooks as they would be applied. It is a pure function: what goes
//! in is the bundle and [`Settings`], the same in gives the same out, to the byte.
//!
//! ```text
//! tree ─► Content ─┬─► support ─► configuration ─► Settings ─┐      (Content::install)
//!                  └──────────────────────────────────────────┴─► checks ─► targets ─► objects
//! ```
//!
//! Objects, names and messages are upstream's (`upstream-olm-v1.md` §2.7, recorded answers of
//! operator-controller 1.11); where it has a random order, this has the order of names. The bundle is
//! read by other rules than [`crate::Bundle`]'s: all documents of a file count, lists are taken
//! apart, the last ClusterServiceVersion wins, hidden files are read, sub-folders are refused.
//!
//! What this does not do: apply anything, make certificates (see [`Certificates`]), or render for
//! several namespaces by configuration, for which upstream has no way.

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
    CertManager, CertificateProvider, CertificateSecret, ServiceCa, WebhookServing,
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
    /// The namespaces it watches; `[""]` means all. Empty: all, if the bundle supports that.
    pub targets: &'a [String],
    /// Who provides the certificates of webhooks; nobody if none.
    pub certificates: Option<&'a dyn CertificateProvider>,
    /// What is changed in the deployments.
    pub deployment_config: Option<&'a DeploymentConfig>,
}

impl RegistryV1Bundle {
    /// The objects that install the bundle, in the order in which upstream has them.
    ///
    /// # Errors
    /// Everything that is wrong with the bundle ([`RenderStage::Bundle`]), or namespaces that it cannot
    /// watch ([`RenderStage::Settings`]).
    pub fn render(&self, settings: &RenderSettings<'_>) -> Result<Vec<Value>, RenderError> {
        self.clone().into_rendered(settings)
    }

    /// As [`RegistryV1Bundle::render`], for who needs the bundle no more: what passes through is not copied.
    ///
    /// # Errors
    /// As [`RegistryV1Bundle::render`].
    pub fn into_rendered(
        mut self,
        settings: &RenderSettings<'_>,
    ) -> Result<Vec<Value>, RenderError> {
        let wrong = checks::all(&self);
        if !wrong.is_empty() {
            return Err(RenderError::Invalid(wrong));
        }
        let all = [String::new()];
        let targets = match settings.targets {
            [] if self.supports(targets::ALL) => &all[..],
            targets => targets,
        };
        targets::check(&self, settings.namespace, targets)?;
        let definitions = std::mem::take(&mut self.definitions);
        let others = std::mem::take(&mut self.others);
        let job = RenderContext { content: &self, targets, settings };
        let mut out = permissions::accounts(&job);
        out.extend(permissions::roles(&job));
        out.extend(permissions::cluster_roles(&job));
        out.extend(webhooks::definitions(&job, definitions)?);
        out.extend(objects::others(&job, others));
        out.extend(deployments::all(&job));
        out.extend(webhooks::configurations(&job, webhooks::VALIDATING));
        out.extend(webhooks::configurations(&job, webhooks::MUTATING));
        out.extend(webhooks::services(&job));
        out.extend(webhooks::certificates(&job));
        Ok(out)
    }
}

/// One rendering under way.
struct RenderContext<'a> {
    /// The bundle, without the objects that pass through.
    content: &'a RegistryV1Bundle,
    /// What is watched; never empty.
    targets: &'a [String],
    settings: &'a RenderSettings<'a>,
}

impl RenderContext<'_> {
    fn watches_all(&self) -> bool {
        self.targets.len() == 1 && self.targets[0].is_empty()
    }
}
