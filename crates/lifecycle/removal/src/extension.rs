//! Uninstall plans of ClusterExtensions (OLM v1): which objects go with an extension, and which data would be
//! lost.
//!
//! Upstream deletes all objects of an extension, also its CustomResourceDefinitions and with them all objects
//! of their kinds (DEL-04). So a plan names each object that would be lost. Kept CustomResourceDefinitions stay
//! with their objects: the caller releases them from the extension before the garbage collector sees its end.

use crate::parts::crd_resource;
use crate::{DeletionStep, PlanItem, UninstallPlan, item, step};
use mainstay_api::names::olm_v1::{OWNER_KIND_LABEL, OWNER_NAME_LABEL, is_kept};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_cause::Cause;
use mainstay_object::{Object, Resource, builtin};
use serde_json::Value;
use std::collections::BTreeSet;

/// A request to uninstall a ClusterExtension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionRemovalRequest {
    /// The name of the ClusterExtension.
    pub name: String,
    /// Whether the objects of its kinds go before the extension, while the operator removes their finalizers.
    pub operands: bool,
    /// Whether its CustomResourceDefinitions stay, with the objects of their kinds.
    pub keep_crds: bool,
    /// Whether its CustomResourceDefinitions go even if their annotation keeps them.
    pub definitions: bool,
}

/// The objects of a ClusterExtension, as far as the account may list them.
#[derive(Clone, Debug, Default)]
pub struct ExtensionParts {
    /// The ClusterExtension; none if it is deleted, and objects of it are left.
    pub extension: Option<Object>,
    /// The objects with its labels, without CustomResourceDefinitions.
    pub owned: Vec<(Resource, Object)>,
    /// Its CustomResourceDefinitions.
    pub crds: Vec<ExtensionCrd>,
    /// Objects that may use its kinds: ClusterRoles of other ClusterExtensions, and ClusterServiceVersions.
    pub users: Vec<Object>,
    /// Whether the account may list CustomResourceDefinitions.
    pub hides_crds: bool,
}

/// A CustomResourceDefinition of a ClusterExtension.
#[derive(Clone, Debug)]
pub struct ExtensionCrd {
    /// The CustomResourceDefinition.
    pub definition: Object,
    /// The objects of its kind in all namespaces; none if the account may not list them.
    pub objects: Option<Vec<Object>>,
}

impl ExtensionCrd {
    /// The resource that it defines, in its storage version.
    pub fn resource(&self) -> Option<Resource> {
        crd_resource(&self.definition)
    }

    fn kind(&self) -> &str {
        self.definition.str(&["spec", "names", "kind"]).unwrap_or_default()
    }
}

/// The objects of a kind that would be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostObjects {
    /// The name of the CustomResourceDefinition.
    pub crd: String,
    /// The kind of the objects.
    pub kind: String,
    /// Namespace and name of each object; none if the account may not list them.
    pub objects: Option<Vec<(String, String)>>,
}

/// The plan to uninstall a ClusterExtension.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtensionRemovalPlan {
    /// What goes, what stays, and what would hang. The garbage collector carries out most steps.
    pub plan: UninstallPlan,
    /// The objects of the kinds of the extension that would be lost.
    pub losses: Vec<LostObjects>,
    /// The users of CustomResourceDefinitions that go, each with its reason.
    pub users: Vec<PlanItem>,
    /// The CustomResourceDefinitions that stay, as they are now.
    pub kept_crds: Vec<Object>,
}

impl ExtensionRemovalPlan {
    /// Whether somebody loses data or a kind in use.
    pub const fn is_harmful(&self) -> bool {
        !self.losses.is_empty() || !self.users.is_empty()
    }
}

/// Whether an owner reference of an object names the ClusterExtension or a ClusterObjectSet of it: then the
/// garbage collector deletes the object with them.
pub fn is_owned_by_extension(object: &Object, parts: &ExtensionParts, name: &str) -> bool {
    object.owner_references().iter().any(|owner| {
        let is_extension = owner.kind == *CLUSTER_EXTENSION.kind && owner.name == name;
        let is_set = owner.kind == *CLUSTER_OBJECT_SET.kind
            && parts.owned.iter().any(|(_, set)| set.uid() == owner.uid);
        is_extension || is_set
    })
}

/// Plans the uninstallation of a ClusterExtension.
///
/// # Errors
/// If neither the extension nor an object of it exists, or its CustomResourceDefinitions cannot be kept.
pub fn plan_extension_removal(
    parts: &ExtensionParts,
    request: &ExtensionRemovalRequest,
) -> Result<ExtensionRemovalPlan, Cause> {
    let name = &request.name;
    if parts.extension.is_none() && parts.owned.is_empty() && parts.crds.is_empty() {
        return Err(Cause::new(format!("the cluster has no ClusterExtension {name}"))
            .remedy("list them with: mainstay extension list"));
    }
    if request.keep_crds && parts.hides_crds {
        return Err(Cause::new("the CustomResourceDefinitions cannot be kept")
            .because(Cause::new("your account may not list CustomResourceDefinitions"))
            .remedy("use an account that may list and update them"));
    }
    let mut removal = ExtensionRemovalPlan::default();
    let (kept, deleted): (Vec<&ExtensionCrd>, Vec<&ExtensionCrd>) = parts
        .crds
        .iter()
        .partition(|crd| (request.keep_crds || is_kept(&crd.definition)) && !request.definitions);
    for crd in &kept {
        keep_crd(parts, crd, request, &mut removal)?;
    }
    for crd in &deleted {
        add_deleted_crd(parts, crd, request, &mut removal);
    }
    if let Some(extension) = &parts.extension {
        removal.plan.steps.push(step(&CLUSTER_EXTENSION, extension));
        removal.plan.deleted.push(item(extension, "", None));
    }
    for (resource, object) in &parts.owned {
        if is_owned_by_extension(object, parts, name) {
            removal.plan.deleted.push(item(object, "", None));
            let step = step(resource, object);
            removal.plan.steps.push(DeletionStep { is_garbage_collected: true, ..step });
        } else {
            let why = "it has the labels of the extension, but the extension does not own it";
            let remedy = format!("if it is not needed: {}", delete_command(resource, object));
            removal.plan.retained.push(item(object, why, Some(remedy)));
        }
    }
    for crd in &deleted {
        let is_garbage_collected = is_owned_by_extension(&crd.definition, parts, name)
            // A controller that honours the annotation releases the CRD.
            && !is_kept(&crd.definition);
        let step = step(&builtin::CUSTOM_RESOURCE_DEFINITION, &crd.definition);
        removal.plan.steps.push(DeletionStep { is_garbage_collected, ..step });
    }
    let names: BTreeSet<&str> = deleted.iter().map(|crd| crd.definition.name()).collect();
    removal.users = users(parts, name, &deleted, &names);
    Ok(removal)
}

fn delete_command(resource: &Resource, object: &Object) -> String {
    let flag = match object.namespace() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let group = match &*resource.group {
        "" => String::new(),
        group => format!(".{group}"),
    };
    format!("kubectl delete {}{group} {}{flag}", resource.plural, object.name())
}

/// Adds a CustomResourceDefinition that stays, with its objects.
fn keep_crd(
    parts: &ExtensionParts,
    crd: &ExtensionCrd,
    request: &ExtensionRemovalRequest,
    removal: &mut ExtensionRemovalPlan,
) -> Result<(), Cause> {
    let definition = &crd.definition;
    if definition.is_terminating() {
        let what = format!("CustomResourceDefinition {} cannot be kept", definition.name());
        return Err(Cause::new(what)
            .because(Cause::new("it is being deleted, which cannot be undone"))
            .remedy(format!(
                "see why it still exists: mainstay why clusterextension/{}",
                request.name
            )));
    }
    let why =
        if request.keep_crds { "--keep-crds" } else { "its annotation helm.sh/resource-policy" };
    let remedy = format!(
        "to delete it later, with all its objects: kubectl delete crd {}",
        definition.name()
    );
    let reason = format!("{why} keeps it; {}", count_text(crd));
    removal.plan.retained.push(item(definition, reason, Some(remedy)));
    removal.kept_crds.push(definition.clone());
    for object in crd.objects.iter().flatten() {
        if request.operands {
            add_operand(crd, object, parts, &mut removal.plan);
            continue;
        }
        removal.plan.retained.push(item(object, "", None));
        if let Some(finalizers) = finalizers(object) {
            let why = format!(
                "it has the finalizer {finalizers}, which only the operator removes: without it, the deletion of the object or its namespace never finishes"
            );
            removal.plan.stuck.push(item(
                object,
                why,
                Some("--operands deletes it first".to_owned()),
            ));
        }
    }
    if request.operands {
        removal.losses.extend(loss(crd));
    }
    Ok(())
}

/// Adds a CustomResourceDefinition that goes, with its objects.
fn add_deleted_crd(
    parts: &ExtensionParts,
    crd: &ExtensionCrd,
    request: &ExtensionRemovalRequest,
    removal: &mut ExtensionRemovalPlan,
) {
    removal.plan.deleted.push(item(&crd.definition, count_text(crd), None));
    removal.losses.extend(loss(crd));
    for object in crd.objects.iter().flatten() {
        if request.operands {
            add_operand(crd, object, parts, &mut removal.plan);
            continue;
        }
        removal.plan.deleted.push(item(object, "", None));
        if let Some(finalizers) = finalizers(object) {
            let why = format!(
                "it has the finalizer {finalizers}, which only the running operator removes"
            );
            let remedy = "--operands deletes it first, while the operator runs".to_owned();
            removal.plan.stuck.push(item(object, why, Some(remedy)));
        }
    }
}

/// Adds an object of a kind of the extension that goes before it.
fn add_operand(
    crd: &ExtensionCrd,
    object: &Object,
    parts: &ExtensionParts,
    plan: &mut UninstallPlan,
) {
    let is_installed = parts.extension.is_some();
    let why = if is_installed { "before the operator, which may have to finalize it" } else { "" };
    plan.deleted.push(item(object, why, None));
    if let Some(finalizers) = finalizers(object).filter(|_| !is_installed) {
        let why = format!(
            "it has the finalizer {finalizers}, and the operator that removes it is uninstalled"
        );
        let remedy = "install the operator again first, or remove the finalizer".to_owned();
        plan.stuck.push(item(object, why, Some(remedy)));
    }
    if let Some(resource) = crd.resource() {
        plan.steps.push(step(&resource, object));
    }
}

fn finalizers(object: &Object) -> Option<String> {
    let finalizers: Vec<&str> = object.finalizers().collect();
    (!finalizers.is_empty()).then(|| finalizers.join(", "))
}

fn count_text(crd: &ExtensionCrd) -> String {
    match crd.objects.as_deref() {
        None => "your account may not list its objects".to_owned(),
        Some([]) => "it has no objects".to_owned(),
        Some([one]) => format!("it has one object: {}", one.key()),
        Some(many) => format!("it has {} objects", many.len()),
    }
}

/// The objects of a kind that are lost; none if the kind has none.
fn loss(crd: &ExtensionCrd) -> Option<LostObjects> {
    let place = |object: &Object| (object.namespace().to_owned(), object.name().to_owned());
    let objects = crd.objects.as_ref().map(|objects| {
        let mut places: Vec<(String, String)> = objects.iter().map(place).collect();
        places.sort();
        places
    });
    let is_loss = objects.as_ref().is_none_or(|objects| !objects.is_empty());
    is_loss.then(|| LostObjects {
        crd: crd.definition.name().to_owned(),
        kind: crd.kind().to_owned(),
        objects,
    })
}

/// Who else uses CustomResourceDefinitions that go: other extensions by objects or by permissions, and
/// operators of OLM classic.
fn users(
    parts: &ExtensionParts,
    name: &str,
    deleted: &[&ExtensionCrd],
    names: &BTreeSet<&str>,
) -> Vec<PlanItem> {
    let mut users = BTreeSet::new();
    let other_extension = |object: &Object| {
        let is_extension = object.label(OWNER_KIND_LABEL) == Some(&*CLUSTER_EXTENSION.kind);
        let owner = object.label(OWNER_NAME_LABEL).filter(|_| is_extension)?;
        (owner != name).then(|| owner.to_owned())
    };
    let user = |kind: &str, namespace: &str, name: String, reason: String| PlanItem {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name,
        reason,
        remedy: None,
    };
    for crd in deleted {
        for object in crd.objects.iter().flatten() {
            if let Some(extension) = other_extension(object) {
                let reason = format!("{} {} belongs to it", object.kind(), object.key());
                users.insert(user(&CLUSTER_EXTENSION.kind, "", extension, reason));
            }
        }
    }
    for object in &parts.users {
        match object.kind() {
            "ClusterRole" => {
                let Some(extension) = other_extension(object) else { continue };
                for crd in deleted.iter().filter(|crd| grants(object, crd)) {
                    let reason = format!(
                        "its ClusterRole {} has permissions for {}",
                        object.name(),
                        crd.definition.name()
                    );
                    users.insert(user(&CLUSTER_EXTENSION.kind, "", extension.clone(), reason));
                }
            }
            "ClusterServiceVersion" => {
                for relation in ["owned", "required"] {
                    let crds = object.array(&["spec", "customresourcedefinitions", relation]);
                    let found = crds.iter().filter_map(|crd| crd["name"].as_str());
                    for crd in found.filter(|crd| names.contains(crd)) {
                        let verb = if relation == "owned" { "owns" } else { "requires" };
                        let reason = format!("it {verb} {crd}");
                        let (namespace, name) = (object.namespace(), object.name().to_owned());
                        users.insert(user("ClusterServiceVersion", namespace, name, reason));
                    }
                }
            }
            _ => {}
        }
    }
    users.into_iter().collect()
}

/// Whether a ClusterRole names the kind of a CustomResourceDefinition. Wildcards say nothing about it.
fn grants(role: &Object, crd: &ExtensionCrd) -> bool {
    let Some(resource) = crd.resource() else { return false };
    let has = |rule: &Value, field: &str, word: &str| {
        rule[field].as_array().is_some_and(|words| words.iter().any(|found| found == word))
    };
    role.array(&["rules"]).iter().any(|rule| {
        has(rule, "apiGroups", &resource.group) && has(rule, "resources", &resource.plural)
    })
}
