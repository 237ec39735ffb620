//! Claims and volumes: `DefaultStorageClass`, `StorageObjectInUseProtection` and
//! `PersistentVolumeClaimResize`; and `DefaultIngressClass`, which chooses in the same way.
//!
//! The rules and texts are those of the original's plugins of the same names (Kubernetes 1.35).

use super::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use mainstay_object::Object;
use mainstay_store::Store;
use std::cmp::Reverse;

const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE_CLASSES: &str = "storage.k8s.io/storageclasses";
const INGRESS_CLASSES: &str = "networking.k8s.io/ingressclasses";
/// How a claim names its class before it had a field for it.
const OLD_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The same of an ingress.
const OLD_INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
/// What marks the class of claims that name none.
const DEFAULT_STORAGE_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The same of ingresses.
const DEFAULT_INGRESS_CLASS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

/// The newest class that is marked as the default; of several from one second the first by name.
fn default_class(store: &Store, resource: &str, marks: &[&str]) -> Option<String> {
    let classes = store.list(resource, None);
    let marked = classes.iter().map(|stored| stored.object()).filter(|class| {
        let says = |mark: &&str| class.str(&["metadata", "annotations", mark]) == Some("true");
        marks.iter().any(says)
    });
    marked
        .min_by_key(|class| (Reverse(class.creation_timestamp()), class.name().to_owned()))
        .map(|class| class.name().to_owned())
}

/// A class that an object names: in its old annotation, or in its field.
fn class_of<'a>(object: &'a Object, annotation: &str, field: &str) -> Option<&'a str> {
    let old = object.str(&["metadata", "annotations", annotation]);
    old.or_else(|| object.str(&["spec", field]))
}

/// Fills in the class of an object that names none.
fn choose<'a>(
    attributes: &mut Attributes<'_>,
    (annotation, field): (&str, &str),
    (classes, marks): (&str, &[&str]),
) -> Verdict<'a> {
    if let Some(object) = &mut attributes.object
        && class_of(object, annotation, field).is_none()
        && let Some(class) = default_class(&attributes.asked.admission.store, classes, marks)
    {
        object.set(&["spec", field], class.into());
    }
    ADMITTED
}

fn is_write(attributes: &Attributes<'_>, storage: &str, operation: Operation) -> bool {
    &*attributes.row.storage == storage
        && attributes.subresource.is_empty()
        && attributes.operation == operation
}

/// A claim that names no class gets the default one.
pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is_write(attributes, CLAIMS, Operation::Create)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        let names = (OLD_STORAGE_CLASS, "storageClassName");
        choose(attributes, names, (STORAGE_CLASSES, &DEFAULT_STORAGE_CLASS))
    }
}

/// An ingress that names no class gets the default one.
pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is_write(attributes, "networking.k8s.io/ingresses", Operation::Create)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        let names = (OLD_INGRESS_CLASS, "ingressClassName");
        choose(attributes, names, (INGRESS_CLASSES, &DEFAULT_INGRESS_CLASS))
    }
}

/// What others use is not deleted under them.
pub(super) struct StorageObjectInUseProtection;

/// What holds a new object of a kind.
fn finalizer(storage: &str) -> Option<&'static str> {
    match storage {
        "persistentvolumes" => Some("kubernetes.io/pv-protection"),
        CLAIMS => Some("kubernetes.io/pvc-protection"),
        "storage.k8s.io/volumeattributesclasses" => Some("kubernetes.io/vac-protection"),
        _ => None,
    }
}

impl Plugin for StorageObjectInUseProtection {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && finalizer(&attributes.row.storage).is_some()
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        if let Some(object) = &mut attributes.object {
            protect(&attributes.asked.row.storage, object);
        }
        ADMITTED
    }
}

/// Gives a new object what holds it.
pub(crate) fn protect(storage: &str, object: &mut Object) {
    let Some(finalizer) = finalizer(storage) else { return };
    if !object.finalizers().any(|one| one == finalizer) {
        let mut all = object.array(&["metadata", "finalizers"]).to_vec();
        all.push(finalizer.into());
        object.set(&["metadata", "finalizers"], all.into());
    }
}

/// Only what a class allows to grow grows.
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is_write(attributes, CLAIMS, Operation::Update)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let (Some(new), Some(old)) = (&attributes.object, attributes.old) else { return ADMITTED };
        let size = |claim: &Object| {
            let size = claim.str(&["spec", "resources", "requests", "storage"])?;
            mainstay_validation::quantity::nano(size)
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
            let why = "Only bound persistent volume claims can be expanded";
            return Verdict::Now(Err(attributes.forbidden(why)));
        }
        let class = |claim| {
            class_of(claim, OLD_STORAGE_CLASS, "storageClassName").filter(|class| !class.is_empty())
        };
        let allowed = class(new).filter(|name| class(old) == Some(*name)).is_some_and(|name| {
            let class = attributes.admission.store.find(STORAGE_CLASSES, "", name);
            class.is_some_and(|class| class.object().bool(&["allowVolumeExpansion"]) == Some(true))
        });
        if allowed {
            return ADMITTED;
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        Verdict::Now(Err(attributes.forbidden(why)))
    }
}
