//! ClusterObjectSet of a ClusterExtension: from rendered objects to the object set and its Secrets.
//!
//! ```text
//! rendered objects ─ scrub ─► phases ─► DesiredObjectSet ─ packed(revision) ─► ClusterObjectSet, Secrets
//! ```
//!
//! A [`DesiredObjectSet`] has no revision yet: it is compared with the newest ClusterObjectSet under the name
//! of that one ([`crate::change`]), and gets the next revision only if it differs.

use crate::default_probes::default_progression_probes;
use crate::pack::{ObjectSecret, PackObjectsError, object_json, pack_objects};
use crate::phase::{ObjectPhase, PhaseSplit, sort_into_phases};
use crate::scrub::scrub;
use mainstay_api::names::olm_v1::{
    BUNDLE_NAME, BUNDLE_PROPERTIES_ANNOTATION, BUNDLE_REFERENCE, BUNDLE_RELEASE, BUNDLE_VERSION,
    MIGRATED_FROM_HELM_LABEL, OWNER_KIND_LABEL, OWNER_NAME_LABEL, PACKAGE_NAME,
    SERVICE_ACCOUNT_NAME_ANNOTATION, SERVICE_ACCOUNT_NAMESPACE_ANNOTATION,
};
use mainstay_api::{
    ApiKind, ClusterExtension, ClusterObjectSet, ClusterObjectSetSpec, CollisionProtection,
    LifecycleState, ObjectSetObject, ObjectSetPhase,
};
use mainstay_gocompat::json::Numbers;
use mainstay_object::{Object, OwnerReference};
use std::collections::BTreeMap;

/// How many bytes of JSON the objects in a spec have at most. etcd accepts 1.5 MiB of an object, of which
/// `managedFields` take a part.
const MAX_INLINE_BYTES: usize = 900 * 1024;

/// The annotations that a ClusterObjectSet gets from its ClusterExtension and bundle.
pub(crate) const OWNED_ANNOTATIONS: [&str; 8] = [
    BUNDLE_NAME,
    BUNDLE_PROPERTIES_ANNOTATION,
    BUNDLE_REFERENCE,
    BUNDLE_RELEASE,
    BUNDLE_VERSION,
    PACKAGE_NAME,
    SERVICE_ACCOUNT_NAME_ANNOTATION,
    SERVICE_ACCOUNT_NAMESPACE_ANNOTATION,
];

/// The bundle of a ClusterObjectSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleIdentity {
    /// Package.
    pub package: String,
    /// Name.
    pub name: String,
    /// Version, without a release.
    pub version: String,
    /// Release, if the bundle states one.
    pub release: Option<String>,
    /// Image, as the catalog names it.
    pub image: String,
}

/// The ClusterExtension of a ClusterObjectSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionIdentity {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Name and namespace of the ServiceAccount with whose permissions objects are applied; none from
    /// OLM v1.11 on.
    pub service_account: Option<(String, String)>,
    /// Minutes that a rollout may take.
    pub progress_deadline_minutes: Option<i64>,
}

impl ExtensionIdentity {
    /// The identity of a ClusterExtension. `uses_service_account` is true for the model of OLM up to v1.10,
    /// which applies objects with the permissions of the ServiceAccount of the extension.
    pub fn new(extension: &ClusterExtension, uses_service_account: bool) -> Self {
        let account = extension.spec.service_account.as_ref().filter(|_| uses_service_account);
        Self {
            name: extension.metadata.name.clone(),
            uid: extension.metadata.uid.clone(),
            service_account: account
                .map(|account| (account.name.clone(), extension.spec.namespace.clone())),
            progress_deadline_minutes: extension.spec.progress_deadline_minutes,
        }
    }

    /// The owner reference of what the extension owns.
    pub fn owner_reference(&self) -> OwnerReference {
        let resource = ClusterExtension::RESOURCE;
        OwnerReference {
            api_version: resource.api_version(),
            kind: resource.kind.into_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// The labels of ClusterObjectSets and of their objects.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let kind = ClusterExtension::RESOURCE.kind.into_owned();
        [(OWNER_KIND_LABEL, kind), (OWNER_NAME_LABEL, self.name.clone())]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }
}

/// A ClusterObjectSet without revision and name, with its objects.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObjectSet {
    /// The ClusterExtension.
    pub extension: ExtensionIdentity,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The objects in phases.
    pub phases: Vec<ObjectPhase>,
    /// When existing objects may be taken over.
    pub collision_protection: CollisionProtection,
}

/// A ClusterObjectSet, and the Secrets that must exist before it.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedObjectSet {
    /// The ClusterObjectSet.
    pub object_set: ClusterObjectSet,
    /// The Secrets.
    pub secrets: Vec<ObjectSecret>,
}

/// The name of the ClusterObjectSet of a revision.
fn object_set_name(extension: &str, revision: i64) -> String {
    format!("{extension}-{revision}")
}

impl DesiredObjectSet {
    /// The ClusterObjectSet for the rendered objects of a bundle. `properties` is the annotation
    /// `olm.properties` of the bundle.
    pub fn from_bundle(
        objects: Vec<Object>,
        bundle: &BundleIdentity,
        properties: Option<&str>,
        extension: ExtensionIdentity,
        split: PhaseSplit,
    ) -> Self {
        let mut annotations = bundle_annotations(bundle);
        if let Some(properties) = properties {
            annotations.insert(BUNDLE_PROPERTIES_ANNOTATION.to_owned(), properties.to_owned());
        }
        let annotations_of_objects = object_annotations(bundle, false);
        let protection = CollisionProtection::Prevent;
        Self::new(objects, &annotations_of_objects, annotations, extension, protection, split)
    }

    /// The first ClusterObjectSet of an extension that Helm installed, from the objects of its release. It
    /// takes the objects over; [`DesiredObjectSet::first_revision`] says where it has them.
    pub fn from_helm_release(
        objects: Vec<Object>,
        bundle: &BundleIdentity,
        extension: ExtensionIdentity,
    ) -> Self {
        let annotations_of_objects = object_annotations(bundle, true);
        let annotations = bundle_annotations(bundle);
        let protection = CollisionProtection::None;
        let mut desired = Self::new(
            objects,
            &annotations_of_objects,
            annotations,
            extension,
            protection,
            PhaseSplit::AtLimit,
        );
        desired.labels.insert(MIGRATED_FROM_HELM_LABEL.to_owned(), "true".to_owned());
        desired
    }

    fn new(
        objects: Vec<Object>,
        object_annotations: &BTreeMap<String, String>,
        mut annotations: BTreeMap<String, String>,
        extension: ExtensionIdentity,
        collision_protection: CollisionProtection,
        split: PhaseSplit,
    ) -> Self {
        if let Some((name, namespace)) = &extension.service_account {
            annotations.insert(SERVICE_ACCOUNT_NAME_ANNOTATION.to_owned(), name.clone());
            annotations.insert(SERVICE_ACCOUNT_NAMESPACE_ANNOTATION.to_owned(), namespace.clone());
        }
        let labels = extension.labels();
        let scrubbed = objects.into_iter().map(|object| scrub(object, &labels, object_annotations));
        let objects = scrubbed.collect();
        let phases = sort_into_phases(objects, split);
        Self { extension, labels, annotations, phases, collision_protection }
    }

    /// The ClusterObjectSet of a revision, with its objects in Secrets of `namespace`.
    ///
    /// # Errors
    /// An object is too large for a Secret.
    pub fn packed(
        &self,
        revision: i64,
        namespace: &str,
    ) -> Result<PackedObjectSet, PackObjectsError> {
        let name = object_set_name(&self.extension.name, revision);
        let (phases, secrets) = pack_objects(&self.phases, &name, &self.extension.name, namespace)?;
        Ok(PackedObjectSet { object_set: self.object_set(&name, revision, phases), secrets })
    }

    /// The ClusterObjectSet for a Helm release: with its objects in the spec, or in Secrets of `namespace` if they
    /// are too large for the spec, or if one of them is a Secret, because who may read ClusterObjectSets need not
    /// be allowed to read Secrets.
    ///
    /// # Errors
    /// An object is too large for a Secret.
    pub fn first_revision(&self, namespace: &str) -> Result<PackedObjectSet, PackObjectsError> {
        let has_secret = self.objects().any(|object| object.kind() == "Secret");
        let bytes =
            || self.objects().map(|object| object_json(object.fields(), Numbers::Object).len());
        if has_secret || bytes().sum::<usize>() > MAX_INLINE_BYTES {
            return self.packed(1, namespace);
        }
        Ok(PackedObjectSet { object_set: self.inline(1), secrets: Vec::new() })
    }

    /// The ClusterObjectSet of a revision, with its objects in the spec.
    pub fn inline(&self, revision: i64) -> ClusterObjectSet {
        let phase = |phase: &ObjectPhase| ObjectSetPhase {
            name: phase.name.clone(),
            objects: phase
                .objects
                .iter()
                .map(|object| ObjectSetObject {
                    object: Some(object.clone()),
                    ..ObjectSetObject::default()
                })
                .collect(),
            ..ObjectSetPhase::default()
        };
        let phases = self.phases.iter().map(phase).collect();
        self.object_set(&object_set_name(&self.extension.name, revision), revision, phases)
    }

    /// The ClusterObjectSet with these phases.
    pub(crate) fn object_set(
        &self,
        name: &str,
        revision: i64,
        phases: Vec<ObjectSetPhase>,
    ) -> ClusterObjectSet {
        let mut set = ClusterObjectSet::new("", name);
        set.metadata.labels.clone_from(&self.labels);
        set.metadata.annotations.clone_from(&self.annotations);
        set.metadata.owner_references = vec![self.extension.owner_reference()];
        set.spec = ClusterObjectSetSpec {
            lifecycle_state: LifecycleState::Active,
            revision,
            collision_protection: self.collision_protection.clone(),
            phases,
            progress_deadline_minutes: self
                .extension
                .progress_deadline_minutes
                .filter(|minutes| *minutes > 0),
            progression_probes: default_progression_probes(),
        };
        set
    }

    /// All objects, in the order of the phases: for checks before a revision is created.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.phases.iter().flat_map(|phase| &phase.objects)
    }
}

fn bundle_annotations(bundle: &BundleIdentity) -> BTreeMap<String, String> {
    let mut annotations: BTreeMap<String, String> = [
        (BUNDLE_NAME, &bundle.name),
        (PACKAGE_NAME, &bundle.package),
        (BUNDLE_VERSION, &bundle.version),
        (BUNDLE_REFERENCE, &bundle.image),
    ]
    .map(|(name, value)| (name.to_owned(), value.clone()))
    .into();
    if let Some(release) = &bundle.release {
        annotations.insert(BUNDLE_RELEASE.to_owned(), release.clone());
    }
    annotations
}

/// The annotations that each object gets.
fn object_annotations(bundle: &BundleIdentity, with_release: bool) -> BTreeMap<String, String> {
    let release = bundle.release.as_ref().filter(|_| with_release);
    [(BUNDLE_VERSION, &bundle.version), (PACKAGE_NAME, &bundle.package)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .chain(release.map(|release| (BUNDLE_RELEASE, release)))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::Gvk;

    fn first_revision(objects: Vec<Object>) -> PackedObjectSet {
        let (bundle, extension) = (BundleIdentity::default(), ExtensionIdentity::default());
        let desired = DesiredObjectSet::from_helm_release(objects, &bundle, extension);
        desired.first_revision("olmv1-system").unwrap()
    }

    fn object(kind: &str, name: &str, text: &str) -> Object {
        let mut object = Object::new(&Gvk::from_api_version("v1", kind), name);
        object.set(&["data", "x"], text.into());
        object
    }

    #[test]
    fn first_revision_has_its_objects_in_the_spec_unless_they_are_large_or_secret() {
        let has_references = |packed: &PackedObjectSet| {
            let phases = packed.object_set.spec.phases.iter();
            let mut objects = phases.flat_map(|phase| &phase.objects);
            objects.any(|object| object.reference.is_some())
        };
        let small = first_revision(vec![object("ConfigMap", "a", "1")]);
        assert!(small.secrets.is_empty() && !has_references(&small));
        let secret = first_revision(vec![object("Secret", "a", "1")]);
        assert!(secret.secrets.len() == 1 && has_references(&secret));
        let half = "x".repeat(MAX_INLINE_BYTES / 2);
        let large = ["a", "b"].map(|name| object("ConfigMap", name, &half));
        let large = first_revision(large.to_vec());
        assert!(large.secrets.len() == 2 && has_references(&large));
        let spec = large.object_set.to_object().unwrap().to_value();
        assert!(spec.to_string().len() < 10_000);
    }

    #[test]
    fn phases_of_a_large_release_are_split() {
        let objects = (0..51).map(|at| object("ConfigMap", &format!("m{at}"), "1")).collect();
        let phases = first_revision(objects).object_set.spec.phases;
        let sizes: Vec<usize> = phases.iter().map(|phase| phase.objects.len()).collect();
        assert_eq!(sizes, [50, 1]);
    }
}
