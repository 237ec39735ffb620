//! Bundles: from the image that a catalog names to the objects that install it.

use super::failure::Failure;
use super::webhook_certificates;
use crate::context::Context;
use crate::features::{TrustMode, WebhookCertificates};
use crate::image_texts::{LayerText, PullText, has_tag};
use jiff::Timestamp;
use mainstay_api::ClusterExtension;
use mainstay_api::names::olm_v1::WATCH_NAMESPACE_ANNOTATION;
use mainstay_bundle::render::{
    CertManager, CertificateProvider, InstallSettings, IssuedCertificates, RenderError, ServiceCa,
    TemplateAnnotations, WebhookServing,
};
use mainstay_image::reference::{ImageReference, ImageReferenceError};
use mainstay_images::RegistryV1Error;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A rendered bundle.
#[derive(Debug)]
pub(super) struct RenderedBundle {
    /// The objects, in the order of the renderer.
    pub(super) objects: Vec<Value>,
    /// The annotations of its ClusterServiceVersion.
    pub(super) annotations: BTreeMap<String, String>,
    /// The servers of webhooks whose certificates the controller has issued.
    pub(super) issued_for: Vec<WebhookServing>,
    /// When it has to be rendered again, because the certificates in it are due for renewal.
    pub(super) renew_at: Option<Timestamp>,
}

/// Pulls the image of a bundle and renders it for an extension.
///
/// # Errors
/// The text and reason for the condition `Progressing`.
pub(super) async fn render(
    context: &Arc<Context>,
    extension: &ClusterExtension,
    image: &str,
) -> Result<RenderedBundle, Failure> {
    let reference = parse_reference(image)?;
    let pull = context.puller.begin(&reference, &context.requester);
    let pulled = async {
        let digest = pull.resolve().await?;
        pull.fetch(&digest).await
    };
    let unavailable = |error| Failure::content_unavailable(PullText(&error).to_string());
    let pulled = pulled.await.map_err(unavailable)?;
    let puller = context.puller.clone();
    let read = move || puller.registry_v1(&pulled).map_err(|error| read_failure(&error));
    let bundle = mainstay_images::blocking(read, Failure::retrying).await?;
    let spec = &extension.spec;
    let features = &context.features;
    let config = configuration(extension, features.single_namespaces);
    let config = config.as_ref().map(serde_json::to_vec).transpose();
    let config = config.map_err(|error| Failure::retrying(error.to_string()))?;
    let issued_for = match features.certificates {
        WebhookCertificates::Own => bundle.webhook_servings(&spec.namespace),
        WebhookCertificates::CertManager | WebhookCertificates::ServiceCa => Vec::new(),
    };
    let issued = if issued_for.is_empty() {
        None
    } else {
        Some(webhook_certificates::issue(context, extension, &issued_for).await?)
    };
    let none = IssuedCertificates::default();
    let certificates: &dyn CertificateProvider = match features.certificates {
        WebhookCertificates::CertManager => &CertManager,
        WebhookCertificates::ServiceCa => &ServiceCa,
        WebhookCertificates::Own => issued.as_ref().map_or(&none, |issued| &issued.certificates),
    };
    let settings = InstallSettings {
        namespace: &spec.namespace,
        certificates: Some(certificates),
        webhooks: true,
        single_namespaces: features.single_namespaces,
        deployment_config: features.deployment_config,
        config: config.as_deref(),
        template_annotations: match features.trust {
            TrustMode::ClusterAdmin | TrustMode::Approved => TemplateAnnotations::Namespaces,
            TrustMode::ServiceAccount => TemplateAnnotations::TargetNamespaces,
        },
    };
    let annotations = bundle.annotations().clone();
    let objects = bundle.into_installed(&settings).map_err(|error| render_failure(&error))?;
    let renew_at = issued.map(|issued| issued.renew_at);
    Ok(RenderedBundle { objects, annotations, issued_for, renew_at })
}

/// The configuration of a bundle: that of the spec. Without one, the annotation of OpenShift 4.18 and 4.19
/// says which namespace the bundle watches (NS-04); an empty one means all namespaces.
fn configuration(
    extension: &ClusterExtension,
    single_namespaces: bool,
) -> Option<Map<String, Value>> {
    let inline = extension.spec.config.as_ref().and_then(|config| config.inline.clone());
    let watched = extension.metadata.annotations.get(WATCH_NAMESPACE_ANNOTATION);
    let watched = watched.filter(|watched| single_namespaces && !watched.is_empty());
    let of_annotation =
        |watched: &String| Map::from_iter([("watchNamespace".to_owned(), json!(watched))]);
    inline.or_else(|| watched.map(of_annotation))
}

/// Parses an image reference by the rules of operator-controller.
fn parse_reference(image: &str) -> Result<ImageReference, Failure> {
    let unreadable = |error: &ImageReferenceError| {
        let why = match error {
            ImageReferenceError::Uppercase(_) => {
                "invalid reference format: repository name must be lowercase".to_owned()
            }
            other => other.to_string(),
        };
        Failure::blocked(format!("error parsing image reference \"{image}\": {why}"))
    };
    let reference = ImageReference::parse_canonical(image).map_err(|error| unreadable(&error))?;
    let (has_tag, has_digest) = (has_tag(image), reference.digest().is_some());
    let why = match (has_tag, has_digest) {
        (true, true) => {
            "Docker references with both a tag and digest are currently not supported".to_owned()
        }
        (false, false) => format!(
            "Docker reference {image} is not for an unknown digest case; tag or digest is needed"
        ),
        _ => return Ok(reference),
    };
    Err(Failure::blocked(format!("error creating reference: {why}")))
}

fn read_failure(error: &RegistryV1Error) -> Failure {
    match error {
        RegistryV1Error::Unpack(error) => Failure::content_unavailable(format!(
            "error applying image: unpacking layer: {}",
            LayerText(error)
        )),
        RegistryV1Error::Read(error) => render_failure(error),
    }
}

fn render_failure(error: &RenderError) -> Failure {
    match error {
        RenderError::Configure(error) => Failure::invalid_configuration(error.to_string()),
        error => Failure::retrying(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_of_a_bundle_has_a_registry_and_a_tag_or_a_digest() {
        let digest = "@sha256:1212121212121212121212121212121212121212121212121212121212121212";
        for (image, expected) in [
            ("r.example/a:v1".to_owned(), None),
            (format!("r.example/a{digest}"), None),
            (
                format!("r.example/a:v1{digest}"),
                Some(
                    "error creating reference: Docker references with both a tag and digest are currently not supported",
                ),
            ),
            (
                "r.example/a".to_owned(),
                Some(
                    "error creating reference: Docker reference r.example/a is not for an unknown digest case; tag or digest is needed",
                ),
            ),
            (
                "busybox:1".to_owned(),
                Some(
                    "error parsing image reference \"busybox:1\": repository name must be canonical",
                ),
            ),
            (
                "UPPER/Case:v1".to_owned(),
                Some(
                    "error parsing image reference \"UPPER/Case:v1\": invalid reference format: repository name must be lowercase",
                ),
            ),
            (String::new(), Some("error parsing image reference \"\": invalid reference format")),
        ] {
            let failure = parse_reference(&image).err();
            let expected = expected.map(|text| Failure::blocked(text.to_owned()));
            assert_eq!(failure, expected, "{image}");
        }
    }
}
