//! Rendering for a ClusterExtension: check of supported features, configuration, objects.

use super::{
    CertificateProvider, RegistryV1Bundle, RenderError, RenderSettings, SupportError,
    TemplateAnnotations, configuration, targets,
};
use serde_json::Value;

/// How a ClusterExtension installs a bundle.
#[derive(Clone, Copy, Debug)]
pub struct InstallSettings<'a> {
    /// The namespace that the operator runs in.
    pub namespace: &'a str,
    /// The provider of webhook certificates.
    pub certificates: Option<&'a dyn CertificateProvider>,
    /// Whether bundles may have webhooks.
    pub webhooks: bool,
    /// Whether bundles may watch a single namespace.
    pub single_namespaces: bool,
    /// Whether Deployments may be configured.
    pub deployment_config: bool,
    /// The configuration, YAML or JSON.
    pub config: Option<&'a [u8]>,
    /// The annotations of Pod templates.
    pub template_annotations: TemplateAnnotations,
}

impl<'a> InstallSettings<'a> {
    /// All features are enabled, without configuration and without a certificate provider.
    pub const fn into_namespace(namespace: &'a str) -> Self {
        Self {
            namespace,
            certificates: None,
            webhooks: true,
            single_namespaces: true,
            deployment_config: true,
            config: None,
            template_annotations: TemplateAnnotations::Namespaces,
        }
    }
}

impl RegistryV1Bundle {
    /// The objects of a ClusterExtension that installs this bundle.
    ///
    /// # Errors
    /// If a feature is not supported, or the configuration is invalid, or as
    /// [`RegistryV1Bundle::render`].
    pub fn install(&self, install: &InstallSettings<'_>) -> Result<Vec<Value>, RenderError> {
        self.clone().into_installed(install)
    }

    /// As [`RegistryV1Bundle::install`], for a caller that does not need the bundle afterwards.
    ///
    /// # Errors
    /// As [`RegistryV1Bundle::install`].
    pub fn into_installed(self, install: &InstallSettings<'_>) -> Result<Vec<Value>, RenderError> {
        self.check_support(install).map_err(RenderError::Unsupported)?;
        let config = if install.single_namespaces || install.config.is_some() {
            configuration::read(&self, install.config, install.namespace, install.deployment_config)
                .map_err(RenderError::Configure)?
        } else {
            configuration::Configuration::default()
        };
        let targets: Vec<String> = config.watch.into_iter().collect();
        self.into_rendered(&RenderSettings {
            namespace: install.namespace,
            targets: &targets,
            certificates: install.certificates,
            deployment_config: config.deployment.as_ref(),
            template_annotations: install.template_annotations,
        })
    }

    /// Checks that the bundle owns no aggregated APIs, which are not rendered.
    ///
    /// # Errors
    /// If it owns one.
    pub fn check_api_services(&self) -> Result<(), RenderError> {
        self.check_no_api_services().map_err(RenderError::Unsupported)
    }

    fn check_no_api_services(&self) -> Result<(), SupportError> {
        if self.owns_api_services { Err(SupportError::ApiServices) } else { Ok(()) }
    }

    fn check_support(&self, install: &InstallSettings<'_>) -> Result<(), SupportError> {
        self.check_no_api_services()?;
        if !self.webhooks.is_empty() {
            if !install.webhooks {
                return Err(SupportError::Webhooks);
            }
            if install.certificates.is_none() {
                return Err(SupportError::Certificates);
            }
        }
        let supported = [targets::ALL, targets::SINGLE, targets::OWN];
        if !install.single_namespaces && !self.supports(targets::ALL) {
            return Err(SupportError::AllNamespaces);
        }
        if !supported.iter().any(|mode| self.supports(mode)) {
            return Err(SupportError::InstallModes);
        }
        Ok(())
    }
}
