//! Kept CustomResourceDefinitions: how a ClusterExtension goes and they stay, whatever controller manages it.
//!
//! ```text
//! finalizer on the extension ─► annotation on CRDs ─► deletion ─► its controller ends ─► CRDs lose their owner
//!   ─► finalizer goes
//! ```
//!
//! The garbage collector deletes the objects of an extension once the extension is gone. While its controller
//! works on it, the controller would restore a removed owner reference. So a finalizer holds the extension, its
//! deletion ends the work of the controller, and only then the CustomResourceDefinitions are released. The
//! controllers of Mainstay release them themselves, because of the annotation, and delete ClusterObjectSets before
//! they end; those of upstream leave both to the garbage collector. Each step is a single write, and a second run
//! continues after the last one.

use crate::extension::wait_until_controller_ends;
use mainstay_api::names::olm_v1::{KEEP_CRDS_FINALIZER, RESOURCE_POLICY_ANNOTATION, is_kept};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_cause::Cause;
use mainstay_command::cluster::{
    ClusterHandle, ClusterReadError, ClusterWriteError, ClusterWriter, ObjectWrite,
};
use mainstay_command::exit::CommandFailure;
use mainstay_object::{Object, builtin};
use mainstay_removal::{DeletionStep, ExtensionParts};
use serde_json::{Value, json};
use std::time::Duration;

/// How often an object is read again that changes meanwhile.
const ATTEMPTS: u32 = 5;

/// Deletes a ClusterExtension, and keeps CustomResourceDefinitions. Returns before the other objects are gone.
///
/// # Errors
/// The cluster refuses a write, or the controller does not end its work in time. Nothing that is to be kept is
/// lost then.
pub(super) async fn delete_and_keep(
    cluster: &impl ClusterWriter,
    extension: &Object,
    parts: &ExtensionParts,
    crds: &[Object],
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let name = extension.name();
    let is_held = has_finalizer(extension, KEEP_CRDS_FINALIZER);
    if extension.is_terminating() && !is_held {
        let cause = Cause::new(format!(
            "the CustomResourceDefinitions of ClusterExtension {name} cannot be kept safely"
        ));
        return Err(CommandFailure::usage(
            cause
                .because(Cause::new(
                    "its deletion has begun already, and no finalizer can be added any more",
                ))
                .remedy(format!(
                    "see what the deletion waits for: mainstay why clusterextension/{name}"
                )),
        ));
    }
    // A refusal must come before the first change.
    for crd in crds {
        change_crd(cluster, crd, true, |crd| released(crd, extension, parts)).await?;
    }
    if !is_held {
        add_hold(cluster, extension).await?;
    }
    let step = DeletionStep {
        is_garbage_collected: false,
        resource: CLUSTER_EXTENSION,
        namespace: None,
        name: name.to_owned(),
        uid: extension.uid().to_owned(),
    };
    for crd in crds {
        change_crd(cluster, crd, false, marked).await?;
    }
    if !extension.is_terminating() {
        cluster.delete(&step).await?;
    }
    let held = match wait_until_controller_ends(cluster, extension, timeout).await? {
        Ok(Some(held)) if has_finalizer(&held, KEEP_CRDS_FINALIZER) => Some(held),
        // Somebody removed the hold: the release below may still come in time.
        Ok(_) => None,
        Err(_) => {
            let cause = Cause::new(format!(
                "the controller of ClusterExtension {name} has not ended its work after {} s, and the uninstallation stops",
                timeout.as_secs()
            ));
            return Err(cause
                .remedy("check that a controller of OLM v1 runs, such as `mainstay run`, and run the command again")
                .remedy("or allow more time with --timeout SECONDS")
                .into());
        }
    };
    for crd in crds {
        change_crd(cluster, crd, false, |crd| released(crd, extension, parts)).await?;
    }
    // A controller that still wrote one of them would have taken it back.
    for crd in crds {
        let found = find_crd(cluster, crd).await?;
        if owners_left(&found, extension, parts).len() < owner_count(&found) {
            return Err(Cause::new(format!(
                "CustomResourceDefinition {} has been taken back by its controller, and the uninstallation stops",
                crd.name()
            ))
            .remedy("run the command again")
            .into());
        }
    }
    match held {
        Some(held) => remove_hold(cluster, &held).await,
        None => Ok(()),
    }
}

fn has_finalizer(object: &Object, name: &str) -> bool {
    object.finalizers().any(|finalizer| finalizer == name)
}

async fn add_hold(cluster: &impl ClusterWriter, extension: &Object) -> Result<(), CommandFailure> {
    change(cluster, extension, |current| {
        let mut finalizers: Vec<&str> = current.finalizers().collect();
        finalizers.push(KEEP_CRDS_FINALIZER);
        let finalizers = json!(finalizers);
        current.set(&["metadata", "finalizers"], finalizers);
    })
    .await
}

/// Removes the finalizer that holds a ClusterExtension.
///
/// # Errors
/// The cluster refuses.
pub(super) async fn remove_hold(
    cluster: &impl ClusterWriter,
    extension: &Object,
) -> Result<(), CommandFailure> {
    change(cluster, extension, |current| {
        let others: Vec<&str> =
            current.finalizers().filter(|name| *name != KEEP_CRDS_FINALIZER).collect();
        let others = json!(others);
        current.set(&["metadata", "finalizers"], others);
    })
    .await
}

/// Changes a ClusterExtension, again if it changes meanwhile. One that is gone needs no change.
async fn change(
    cluster: &impl ClusterWriter,
    extension: &Object,
    edit: impl Fn(&mut Object),
) -> Result<(), CommandFailure> {
    let mut attempt = 1;
    loop {
        let found = cluster.get(&CLUSTER_EXTENSION, None, extension.name()).await?;
        let Some(mut current) = found.filter(|found| found.uid() == extension.uid()) else {
            return Ok(());
        };
        edit(&mut current);
        match cluster.write(&CLUSTER_EXTENSION, ObjectWrite::Replace(&current), false).await {
            Ok(_) | Err(ClusterWriteError::NotFound(_)) => return Ok(()),
            Err(ClusterWriteError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => {
                let what = format!(
                    "the finalizers of ClusterExtension {} cannot be changed",
                    extension.name()
                );
                return Err(Cause::new(what).because(error.into()).into());
            }
        }
    }
}

fn owner_count(crd: &Object) -> usize {
    crd.array(&["metadata", "ownerReferences"]).len()
}

/// The owner references of a CustomResourceDefinition but those to the extension and its ClusterObjectSets.
fn owners_left(crd: &Object, extension: &Object, parts: &ExtensionParts) -> Vec<Value> {
    let sets = parts.owned.iter().filter(|(resource, _)| *resource == CLUSTER_OBJECT_SET);
    let sets: Vec<&str> = sets.map(|(_, set)| set.uid()).collect();
    let is_other = |owner: &&Value| {
        let uid = owner["uid"].as_str().unwrap_or_default();
        uid != extension.uid() && !sets.contains(&uid)
    };
    crd.array(&["metadata", "ownerReferences"]).iter().filter(is_other).cloned().collect()
}

/// The CustomResourceDefinition without the extension as owner; none if it is so already.
fn released(crd: &Object, extension: &Object, parts: &ExtensionParts) -> Option<Object> {
    let owners = owners_left(crd, extension, parts);
    if owners.len() == owner_count(crd) {
        return marked(crd);
    }
    let mut released = marked(crd).unwrap_or_else(|| crd.clone());
    if owners.is_empty() {
        released.remove(&["metadata", "ownerReferences"]);
    } else {
        released.set(&["metadata", "ownerReferences"], Value::Array(owners));
    }
    Some(released)
}

/// The CustomResourceDefinition with the annotation that keeps it when its owner goes; none if it has it.
fn marked(crd: &Object) -> Option<Object> {
    if is_kept(crd) {
        return None;
    }
    let mut marked = crd.clone();
    marked.set_annotation(RESOURCE_POLICY_ANNOTATION, "keep");
    Some(marked)
}

/// Changes a CustomResourceDefinition, again if it changes meanwhile; not if `edit` returns none.
async fn change_crd(
    cluster: &impl ClusterWriter,
    crd: &Object,
    dry_run: bool,
    edit: impl Fn(&Object) -> Option<Object>,
) -> Result<(), CommandFailure> {
    let mut attempt = 1;
    loop {
        let Some(changed) = edit(&find_crd(cluster, crd).await?) else { return Ok(()) };
        let kind = &builtin::CUSTOM_RESOURCE_DEFINITION;
        match cluster.write(kind, ObjectWrite::Replace(&changed), dry_run).await {
            Ok(_) => return Ok(()),
            Err(ClusterWriteError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(not_released(crd, error)),
        }
    }
}

fn not_released(crd: &Object, error: ClusterWriteError) -> CommandFailure {
    Cause::new(format!("CustomResourceDefinition {} cannot be kept", crd.name()))
        .because(error.into())
        .remedy("use an account that may update CustomResourceDefinitions")
        .into()
}

/// The CustomResourceDefinition as it is now.
async fn find_crd(cluster: &impl ClusterHandle, crd: &Object) -> Result<Object, CommandFailure> {
    let found = cluster.get(&builtin::CUSTOM_RESOURCE_DEFINITION, None, crd.name()).await;
    match found.map_err(|error: ClusterReadError| CommandFailure::from(error))? {
        Some(found) if found.uid() == crd.uid() && !found.is_terminating() => Ok(found),
        _ => Err(Cause::new(format!(
            "CustomResourceDefinition {} has been deleted meanwhile",
            crd.name()
        ))
        .into()),
    }
}
