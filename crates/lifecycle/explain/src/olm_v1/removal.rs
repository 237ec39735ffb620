//! Deletions of ClusterExtensions: which finalizers and objects hold them up.

use super::object_set::kept_cause;
use super::{object_text, owned_objects};
use crate::{ClusterObjects, ExplainedObject, Finding};
use mainstay_api::names::olm_v1::{
    CONTENT_MANAGER_CACHE_FINALIZER, KEEP_CRDS_FINALIZER, UNPACK_CACHE_FINALIZER, is_kept,
};
use mainstay_api::resources::CLUSTER_OBJECT_SET;
use mainstay_cause::Cause;
use mainstay_object::Object;

/// Most objects that a cause names.
const MAX_OBJECTS: usize = 5;
/// The finalizer of an object that waits for the objects that it owns.
const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a CustomResourceDefinition that waits for the objects of its kind.
const CUSTOM_OBJECTS: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Explains a ClusterExtension that does not exist any more, if objects of it do.
pub(crate) fn deleted_extension_finding(
    cluster: &ClusterObjects,
    target: &ExplainedObject,
) -> Option<Finding> {
    let causes = leftover_causes(cluster, &target.name);
    let (kept, remains): (Vec<&Object>, Vec<&Object>) = owned_objects(cluster, &target.name)
        .partition(|object| is_kept(object) && !object.is_terminating());
    let texts = |objects: Vec<&Object>| objects.into_iter().map(object_text).collect::<Vec<_>>();
    let (kept, remains) = (texts(kept), texts(remains));
    if remains.is_empty() && causes.is_empty() {
        let note =
            format!("kept by the annotation helm.sh/resource-policy: {}", first_names(&kept));
        return (!kept.is_empty()).then(|| Finding {
            state: "is deleted, and only objects that were to be kept still exist".to_owned(),
            causes,
            notes: vec![note],
        });
    }
    let causes =
        if causes.is_empty() {
            vec![Cause::new(format!("nothing deletes {}", first_names(&remains))).remedy(format!(
                "delete them: mainstay uninstall clusterextension/{}",
                target.name
            ))]
        } else {
            causes
        };
    let state = "is deleted, but some of its objects still exist".to_owned();
    Some(Finding { state, causes, notes: Vec::new() })
}

/// What holds the deletion of a ClusterExtension up.
pub(super) fn causes(cluster: &ClusterObjects, extension: &Object) -> Vec<Cause> {
    let name = extension.name();
    let finalizers: Vec<&str> = extension.finalizers().collect();
    let mut causes = Vec::new();
    let of_controller: Vec<&str> = finalizers
        .iter()
        .copied()
        .filter(|name| [UNPACK_CACHE_FINALIZER, CONTENT_MANAGER_CACHE_FINALIZER].contains(name))
        .collect();
    if !of_controller.is_empty() {
        // The controller waits for their end.
        let sets = owned_objects(cluster, name)
            .filter(|object| object.kind() == CLUSTER_OBJECT_SET.kind && object.is_terminating());
        causes.push(
            Cause::new(format!(
                "its controller has not removed its finalizers: {}",
                of_controller.join(", ")
            ))
            .because_all(sets.map(|set| leftover_cause(cluster, set)))
            .remedy("check that a controller of OLM v1 runs, such as `mainstay run`"),
        );
    }
    for finalizer in &finalizers {
        match *finalizer {
            UNPACK_CACHE_FINALIZER | CONTENT_MANAGER_CACHE_FINALIZER => {}
            KEEP_CRDS_FINALIZER => causes.push(
                Cause::new(
                    "an uninstallation that keeps its CustomResourceDefinitions was interrupted",
                )
                .remedy(format!(
                    "finish it: mainstay uninstall clusterextension/{name} --keep-crds"
                )),
            ),
            FOREGROUND => {
                let owned: Vec<String> = owned_objects(cluster, name).map(object_text).collect();
                let what = match owned.as_slice() {
                    [] => "it waits for the objects that it owns".to_owned(),
                    owned => {
                        format!("it waits for the objects that it owns: {}", first_names(owned))
                    }
                };
                causes.push(Cause::new(what).because_all(leftover_causes(cluster, name)));
            }
            other => causes.push(
                Cause::new(format!("the finalizer {other} blocks the deletion"))
                    .remedy("wait for its controller, which removes it when its work is done"),
            ),
        }
    }
    if causes.is_empty() {
        causes.push(Cause::new("the deletion has just begun"));
    }
    causes
}

/// Why objects of a ClusterExtension that are being deleted still exist.
fn leftover_causes(cluster: &ClusterObjects, extension: &str) -> Vec<Cause> {
    let terminating = owned_objects(cluster, extension).filter(|object| object.is_terminating());
    terminating.map(|object| leftover_cause(cluster, object)).collect()
}

/// A cause for each object of a ClusterExtension that is being deleted although the ClusterExtension is not.
pub(super) fn deleted_object_causes(cluster: &ClusterObjects, extension: &str) -> Vec<Cause> {
    let mut terminating: Vec<&Object> = owned_objects(cluster, extension)
        .filter(|object| object.is_terminating() && object.kind() != CLUSTER_OBJECT_SET.kind)
        .collect();
    terminating.sort_by_key(|object| (object.kind(), object.key()));
    let cause_of = |object: &Object| {
        let mut cause = Cause::new(format!("{} is being deleted", object_text(object)));
        if object.finalizers().next().is_some() {
            let remedy = "wait until the operator has removed them";
            cause = cause.because(holding_cause(cluster, object, remedy));
        }
        cause.remedy("the controller of the ClusterExtension creates it again once it is gone")
    };
    terminating.into_iter().map(cause_of).collect()
}

fn leftover_cause(cluster: &ClusterObjects, object: &Object) -> Cause {
    holding_cause(cluster, object, "install the operator again, until it has removed them")
}

/// What holds the deletion of an object up, with the remedy for finalizers that the operator removes.
fn holding_cause(cluster: &ClusterObjects, object: &Object, remedy: &str) -> Cause {
    let what = object_text(object);
    if let Some(why) = kept_cause(object) {
        return Cause::new(format!("{what} is being deleted")).because(why);
    }
    let finalizers: Vec<&str> = object.finalizers().collect();
    if !finalizers.contains(&CUSTOM_OBJECTS) {
        return match finalizers.as_slice() {
            [] => Cause::new(format!("{what} is being deleted")),
            _ => Cause::new(format!("{what} waits for its finalizers: {}", finalizers.join(", ")))
                .remedy("wait for their controllers, which remove them when their work is done"),
        };
    }
    let kind = object.str(&["spec", "names", "kind"]).unwrap_or_default();
    let group = object.str(&["spec", "group"]).unwrap_or_default();
    let is_custom = |other: &&Object| other.kind() == kind && *other.gvk().group == *group;
    let held: Vec<&Object> = cluster
        .objects
        .iter()
        .filter(is_custom)
        .filter(|custom| custom.finalizers().next().is_some())
        .collect();
    let cause = Cause::new(format!("{what} waits for the objects of its kind"));
    if held.is_empty() {
        return cause;
    }
    let names: Vec<String> = held.iter().map(|custom| object_text(custom)).collect();
    let mut finalizers: Vec<&str> = held.iter().flat_map(|custom| custom.finalizers()).collect();
    finalizers.sort_unstable();
    finalizers.dedup();
    let first = held[0];
    let flag = match first.namespace() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    cause
        .because(Cause::new(format!(
            "{} {} finalizers, which only the operator removes: {}",
            first_names(&names),
            if names.len() == 1 { "has" } else { "have" },
            finalizers.join(", ")
        )))
        .remedy(remedy)
        .remedy(format!(
            "or give up what the finalizers protect, for each object: kubectl patch {} {}{flag} --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
            object.name(),
            first.name()
        ))
}

/// Names of objects, the first ones in full.
fn first_names(objects: &[String]) -> String {
    let shown: Vec<&str> = objects.iter().take(MAX_OBJECTS).map(String::as_str).collect();
    match objects.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
