//! Checks before objects are written: permissions that the ServiceAccount lacks, and changes of
//! CustomResourceDefinitions that break stored objects.

use super::apply::WantedObject;
use super::failure::Failure;
use crate::context::Context;
use crate::features::TrustMode;
use mainstay_api::{ClusterExtension, CrdUpgradeSafetyEnforcement};
use mainstay_client::ObjectList;
use mainstay_controller::api_message;
use mainstay_crdsafety::{Crd, condition_message, preflight};
use mainstay_object::{Gvk, Object, Resource, builtin};
use mainstay_permissions::{
    ExtensionApplier, GrantedRules, InstallManifest, RbacObjects, RbacSubject, missing_permissions,
};
use serde_json::Value;

/// The kinds of RBAC objects, which give permissions.
const RBAC: [Resource; 4] =
    [builtin::CLUSTER_ROLE, builtin::CLUSTER_ROLE_BINDING, builtin::ROLE, builtin::ROLE_BINDING];

/// Checks that the ServiceAccount of an extension may write and grant what a bundle needs.
///
/// # Errors
/// All permissions that it lacks, or a kind that the cluster does not have.
pub(super) async fn check_permissions(
    context: &Context,
    extension: &ClusterExtension,
    applier: &ExtensionApplier,
    objects: &[Value],
) -> Result<(), Failure> {
    let features = &context.features;
    if features.trust != TrustMode::ServiceAccount || !features.preflight_permissions {
        return Ok(());
    }
    let failed = |error: &mainstay_client::Error| Failure::retrying(api_message(error));
    let resources = context.resources.of_objects(&context.cluster, objects).await;
    let resources = resources.map_err(|error| failed(&error))?;
    let (name, namespace) = (&extension.metadata.name, &extension.spec.namespace);
    let resolve = |gvk: &Gvk| resources.get(gvk).cloned().flatten();
    let manifest = InstallManifest::new(objects, &resolve, namespace)
        .map_err(|error| Failure::retrying(error.condition_message()))?;
    let mut rbac = RbacObjects::default();
    for resource in &RBAC {
        let list = context.cluster.list(resource, None, &ObjectList::default()).await;
        for object in list.map_err(|error| failed(&error))?.items {
            rbac.add(&object.into_value());
        }
    }
    let account = extension.spec.service_account.as_ref();
    let account = account.map(|account| &*account.name).unwrap_or_default();
    let granted = GrantedRules::new(&rbac, &RbacSubject::service_account(namespace, account));
    let missing = missing_permissions(&manifest, name, applier, &granted, &rbac)
        .map_err(|error| Failure::retrying(error.to_string()))?;
    match missing.condition_message() {
        None => Ok(()),
        Some(message) => Err(Failure::retrying(message)),
    }
}

/// Checks each CustomResourceDefinition against the one that exists.
///
/// # Errors
/// The findings for all that are refused.
pub(super) fn check_crds(
    extension: &ClusterExtension,
    wanted: &[WantedObject],
    existing: &[Option<Object>],
) -> Result<(), Failure> {
    let checks = extension.spec.install.as_ref().and_then(|install| install.preflight.as_ref());
    let enforcement = checks.map(|checks| &checks.crd_upgrade_safety.enforcement);
    if enforcement == Some(&CrdUpgradeSafetyEnforcement::None) {
        return Ok(());
    }
    let mut messages = Vec::new();
    for (wanted, existing) in wanted.iter().zip(existing) {
        let Some(existing) = existing.as_ref() else { continue };
        if wanted.object.kind() != "CustomResourceDefinition" {
            continue;
        }
        let crd = |object: &Object| {
            Crd::from_value(&object.to_value())
                .map_err(|error| Failure::retrying(error.to_string()))
        };
        let lines = preflight(&crd(existing)?, &crd(&wanted.object)?)
            .map_err(|error| Failure::retrying(error.to_string()))?;
        messages.extend(condition_message(wanted.object.name(), &lines));
    }
    if messages.is_empty() { Ok(()) } else { Err(Failure::retrying(messages.join("\n"))) }
}
