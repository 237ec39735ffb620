//! Storage plugins: `DefaultStorageClass`, `StorageObjectInUseProtection` and
//! `PersistentVolumeClaimResize`; also `DefaultIngressClass`, which selects a class in the same way.
//!
//! Rules and texts: the plugins of the same names in Kubernetes 1.35.

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use mainstay_object::Object;
use mainstay_store::Store;
use std::cmp::Reverse;

const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE_CLASSES: &str = "storage.k8s.io/storageclasses";
const INGRESS_CLASSES: &str = "networking.k8s.io/ingressclasses";
/// The older annotation for the class of a `PersistentVolumeClaim`.
const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The older annotation for the class of an Ingress.
const INGRESS_CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
/// The annotations of the default `StorageClass`.
const DEFAULT_STORAGE_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The annotations of the default `IngressClass`.
const DEFAULT_INGRESS_CLASS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

/// The newest class that is annotated as the default; of several of one second the first by name.
fn default_class(store: &Store, resource: &str, annotations: &[&str]) -> Option<String> {
    let classes = store.list(resource, None);
    let defaults = classes.iter().map(|stored| stored.object()).filter(|class| {
        let is_true = |name: &&str| class.str(&["metadata", "annotations", name]) == Some("true");
        annotations.iter().any(is_true)
    });
    defaults
        .min_by_key(|class| (Reverse(class.creation_timestamp()), class.name().to_owned()))
        .map(|class| class.name().to_owned())
}

/// The class name of an object: in the older annotation, or in the field.
fn class_name<'a>(object: &'a Object, annotation: &str, field: &str) -> Option<&'a str> {
    let annotated = object.str(&["metadata", "annotations", annotation]);
    annotated.or_else(|| object.str(&["spec", field]))
}

/// Sets the default class of an object without a class.
fn set_default_class<'a>(
    attributes: &mut AdmissionAttributes<'_>,
    (annotation, field): (&str, &str),
    (classes, annotations): (&str, &[&str]),
) -> AdmissionDecision<'a> {
    if let Some(object) = &mut attributes.object
        && class_name(object, annotation, field).is_none()
        && let Some(class) =
            default_class(&attributes.request.admission.store, classes, annotations)
    {
        object.set(&["spec", field], class.into());
    }
    ADMITTED
}

fn is_operation(attributes: &AdmissionAttributes<'_>, storage: &str, operation: Operation) -> bool {
    &*attributes.row.storage == storage
        && attributes.subresource.is_empty()
        && attributes.operation == operation
}

/// A `PersistentVolumeClaim` without a class gets the default `StorageClass`.
pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_operation(attributes, CLAIMS, Operation::Create)
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let names = (BETA_STORAGE_CLASS, "storageClassName");
        set_default_class(attributes, names, (STORAGE_CLASSES, &DEFAULT_STORAGE_CLASS))
    }
}

/// An Ingress without a class gets the default `IngressClass`.
pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_operation(attributes, "networking.k8s.io/ingresses", Operation::Create)
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let names = (INGRESS_CLASS_ANNOTATION, "ingressClassName");
        set_default_class(attributes, names, (INGRESS_CLASSES, &DEFAULT_INGRESS_CLASS))
    }
}

/// A finalizer protects storage objects that are in use from deletion.
pub(super) struct StorageObjectInUseProtection;

/// The protection finalizer of a kind.
fn finalizer(storage: &str) -> Option<&'static str> {
    match storage {
        "persistentvolumes" => Some("kubernetes.io/pv-protection"),
        CLAIMS => Some("kubernetes.io/pvc-protection"),
        "storage.k8s.io/volumeattributesclasses" => Some("kubernetes.io/vac-protection"),
        _ => None,
    }
}

impl Plugin for StorageObjectInUseProtection {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && finalizer(&attributes.row.storage).is_some()
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        if let Some(object) = &mut attributes.object {
            add_protection_finalizer(&attributes.request.row.storage, object);
        }
        ADMITTED
    }
}

/// Adds the protection finalizer of its kind to a new object.
pub(crate) fn add_protection_finalizer(storage: &str, object: &mut Object) {
    let Some(finalizer) = finalizer(storage) else { return };
    if !object.finalizers().any(|present| present == finalizer) {
        let mut all = object.array(&["metadata", "finalizers"]).to_vec();
        all.push(finalizer.into());
        object.set(&["metadata", "finalizers"], all.into());
    }
}

/// A `PersistentVolumeClaim` may grow only if its `StorageClass` allows volume expansion.
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_operation(attributes, CLAIMS, Operation::Update)
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let (Some(new), Some(old)) = (&attributes.object, attributes.old) else { return ADMITTED };
        let size = |claim: &Object| {
            let size = claim.str(&["spec", "resources", "requests", "storage"])?;
            mainstay_validation::quantity::parse_nano(size)
        };
        let grows = match (size(new), size(old)) {
            (Some(new), Some(old)) => new > old,
            (new, None) => new.is_some(),
            (None, Some(_)) => false,
        };
        if !grows {
            return ADMITTED;
        }
        if old.str(&["status", "phase"]) != Some("Bound") {
            let message = "Only bound persistent volume claims can be expanded";
            return AdmissionDecision::Ready(Err(attributes.forbidden(message)));
        }
        let class = |claim| {
            class_name(claim, BETA_STORAGE_CLASS, "storageClassName")
                .filter(|class| !class.is_empty())
        };
        let allowed = class(new).filter(|name| class(old) == Some(*name)).is_some_and(|name| {
            let class = attributes.admission.store.find(STORAGE_CLASSES, "", name);
            class.is_some_and(|class| class.object().bool(&["allowVolumeExpansion"]) == Some(true))
        });
        if allowed {
            return ADMITTED;
        }
        let message = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        AdmissionDecision::Ready(Err(attributes.forbidden(message)))
    }
}
