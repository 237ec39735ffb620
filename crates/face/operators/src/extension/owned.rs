//! Objects of a ClusterExtension: those with the labels of their owner, of all kinds that bundles contain; and the
//! account that the controller keeps for it.

use mainstay_api::names::olm_v1::{INSTALLER_LABEL, OWNER_KIND_LABEL, OWNER_NAME_LABEL};
use mainstay_api::resources::CLUSTER_OBJECT_SET;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError};
use mainstay_command::exit::CommandFailure;
use mainstay_command::text::count;
use mainstay_formats::names::LABEL_MAX;
use mainstay_object::builtin::{self, addons, openshift};
use mainstay_object::{Object, Resource};
use mainstay_removal::{ExtensionParts, is_owned_by_extension};

/// The kinds of registry+v1 bundles and of the providers of their certificates. The discovery of the
/// cluster would list all kinds, most of them never part of a bundle.
static KINDS: [Resource; 27] = [
    builtin::CUSTOM_RESOURCE_DEFINITION,
    builtin::DEPLOYMENT,
    builtin::SERVICE_ACCOUNT,
    builtin::SERVICE,
    builtin::CONFIG_MAP,
    builtin::SECRET,
    builtin::CLUSTER_ROLE,
    builtin::CLUSTER_ROLE_BINDING,
    builtin::ROLE,
    builtin::ROLE_BINDING,
    builtin::VALIDATING_WEBHOOK_CONFIGURATION,
    builtin::MUTATING_WEBHOOK_CONFIGURATION,
    builtin::NETWORK_POLICY,
    builtin::POD_DISRUPTION_BUDGET,
    builtin::PRIORITY_CLASS,
    addons::ISSUER,
    addons::CERTIFICATE,
    addons::PROMETHEUS_RULE,
    addons::SERVICE_MONITOR,
    addons::POD_MONITOR,
    addons::VERTICAL_POD_AUTOSCALER,
    openshift::CONSOLE_YAML_SAMPLE,
    openshift::CONSOLE_QUICK_START,
    openshift::CONSOLE_CLI_DOWNLOAD,
    openshift::CONSOLE_LINK,
    openshift::CONSOLE_PLUGIN,
    CLUSTER_OBJECT_SET,
];

/// The kinds of the objects of an account that the controller keeps for an extension; they are among [`KINDS`], too.
static ACCOUNT_KINDS: [Resource; 5] = [
    builtin::SERVICE_ACCOUNT,
    builtin::CLUSTER_ROLE_BINDING,
    builtin::CLUSTER_ROLE,
    builtin::ROLE_BINDING,
    builtin::ROLE,
];

/// The objects of a ClusterExtension, as far as the account may list them.
#[derive(Debug, Default)]
pub(crate) struct OwnedObjects {
    pub(crate) objects: Vec<Object>,
    /// The kinds that the account may not list.
    pub(crate) hidden: Vec<String>,
}

impl OwnedObjects {
    /// Whether the account may not list the CustomResourceDefinitions.
    pub(crate) fn hides_crds(&self) -> bool {
        self.hidden.iter().any(|kind| kind == "CustomResourceDefinition")
    }
}

/// The resource of an object that [`owned_objects`] lists.
pub(crate) fn owned_resource(object: &Object) -> Option<&'static Resource> {
    let gvk = object.gvk();
    KINDS.iter().find(|kind| kind.kind == gvk.kind && kind.group == gvk.group)
}

/// A note about kinds that the account may not list; empty without such kinds.
pub(crate) fn hidden_note(hidden: &[String]) -> String {
    const MAX: usize = 5;
    let more = match hidden.len().saturating_sub(MAX) {
        0 => String::new(),
        more => format!(" and {}", count(more, "other kind")),
    };
    match hidden {
        [] => String::new(),
        hidden => {
            let kinds: Vec<&str> = hidden.iter().take(MAX).map(String::as_str).collect();
            format!("note: this account may not list {}{more}\n", kinds.join(", "))
        }
    }
}

/// The label selector of the objects of a ClusterExtension; none if its name is no value of a label.
pub(crate) fn owner_selector(extension: &str) -> Option<String> {
    let selector = format!("{OWNER_KIND_LABEL}=ClusterExtension,{OWNER_NAME_LABEL}={extension}");
    (extension.len() <= LABEL_MAX).then_some(selector)
}

/// Lists the objects of a ClusterExtension.
///
/// # Errors
/// The cluster does not respond.
pub(crate) async fn owned_objects(
    cluster: &impl ClusterHandle,
    extension: &str,
) -> Result<OwnedObjects, CommandFailure> {
    let mut owned = OwnedObjects::default();
    let Some(selector) = owner_selector(extension) else { return Ok(owned) };
    for kind in &KINDS {
        match cluster.list(kind, None, Some(&selector)).await {
            Ok(objects) => owned.objects.extend(objects),
            Err(ClusterReadError::UnknownKind(_)) => {}
            Err(ClusterReadError::Forbidden(_)) => owned.hidden.push(kind.kind.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(owned)
}

/// Lists the account that the controller keeps for a ClusterExtension (`--extension-trust approved`), which goes with
/// it. Of kinds that may not be listed, [`owned_objects`] says so.
///
/// # Errors
/// The cluster does not respond.
pub(crate) async fn account_objects(
    cluster: &impl ClusterHandle,
    extension: &str,
) -> Result<Vec<Object>, CommandFailure> {
    let mut all = Vec::new();
    if extension.len() > LABEL_MAX {
        return Ok(all);
    }
    let selector = format!("{INSTALLER_LABEL}={extension}");
    for kind in &ACCOUNT_KINDS {
        match cluster.list(kind, None, Some(&selector)).await {
            Ok(objects) => all.extend(objects),
            Err(ClusterReadError::UnknownKind(_) | ClusterReadError::Forbidden(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Labels alone are no proof: anybody may write them.
    all.retain(|object| is_owned_by_extension(object, &ExtensionParts::default(), extension));
    Ok(all)
}

/// Lists the CustomResourceDefinitions of a ClusterExtension.
///
/// # Errors
/// The account may not list them, or the cluster does not respond.
pub(super) async fn owned_crds(
    cluster: &impl ClusterHandle,
    extension: &str,
) -> Result<Vec<Object>, CommandFailure> {
    let Some(selector) = owner_selector(extension) else { return Ok(Vec::new()) };
    Ok(cluster.list(&builtin::CUSTOM_RESOURCE_DEFINITION, None, Some(&selector)).await?)
}

/// An object as kubectl names it.
pub(crate) fn object_text(object: &Object) -> String {
    match object.namespace() {
        "" => format!("{} {}", object.kind(), object.name()),
        namespace => format!("{} {namespace}/{}", object.kind(), object.name()),
    }
}
