//! The recorded cases with object sets: their steps, images and inputs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::{ClusterExtension, ClusterObjectSet};
use mainstay_bundle::render::{
    CertManager, InstallSettings, RegistryV1Bundle, TemplateAnnotations,
};
use mainstay_bundle::{Limits, MemoryFiles};
use mainstay_object::Object;
use mainstay_objectsets::{
    BundleIdentity, DesiredObjectSet, ExtensionIdentity, PhaseSplit, bundle_of,
};
use mainstay_releases::{ReleaseContent, ReleaseOwner};
use mainstay_testdata::{read_json, sorted_entries};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The namespace of the Secrets.
pub(crate) const SYSTEM_NAMESPACE: &str = "olmv1-system";

/// A step of a case.
pub(crate) struct RecordedStep {
    /// Case and step, for messages.
    pub(crate) place: String,
    /// The objects after the step.
    pub(crate) objects: Vec<Object>,
    /// The ClusterObjectSets after the step.
    pub(crate) sets: Vec<ClusterObjectSet>,
    /// The images that exist, by reference.
    pub(crate) images: BTreeMap<String, Value>,
    /// The Secrets that administrators applied so far, with their data.
    pub(crate) secrets: Vec<Object>,
}

/// The steps of all cases with object sets, case by case.
pub(crate) fn cases(root: &Path) -> Vec<Vec<RecordedStep>> {
    let folders = sorted_entries(root).into_iter();
    folders
        .filter(|folder| read_json(&folder.join("case.json"))["profile"] == "box")
        .map(|folder| steps(&folder))
        .collect()
}

fn steps(case: &Path) -> Vec<RecordedStep> {
    let mut images: BTreeMap<String, Value> = BTreeMap::new();
    let mut secrets: Vec<Object> = Vec::new();
    let folders =
        sorted_entries(case).into_iter().filter(|path| path.join("objects.json").is_file());
    folders
        .map(|folder| {
            for image in yaml(&folder.join("images.yaml")).into_iter().flat_map(list) {
                images.insert(image["ref"].as_str().unwrap().to_owned(), image);
            }
            let inputs = yaml(&folder.join("input.yaml")).into_iter();
            secrets.extend(inputs.filter(|object| object["kind"] == "Secret").map(with_data));
            let objects: Vec<Object> = list(read_json(&folder.join("objects.json")))
                .into_iter()
                .map(|object| Object::from_value(object).unwrap())
                .collect();
            let sets = objects.iter().filter(|object| object.kind() == "ClusterObjectSet");
            RecordedStep {
                place: format!("{}/{}", name(case), name(&folder)),
                sets: sets.map(|set| ClusterObjectSet::from_object(set).unwrap()).collect(),
                objects,
                images: images.clone(),
                secrets: secrets.clone(),
            }
        })
        .collect()
}

impl RecordedStep {
    /// An object of the cluster. The renderer gives webhook configurations a namespace, which the API drops.
    pub(crate) fn find(&self, wanted: &Object) -> Option<&Object> {
        self.objects.iter().find(|object| {
            object.gvk() == wanted.gvk()
                && object.name() == wanted.name()
                && ["", wanted.namespace()].contains(&object.namespace())
        })
    }

    /// The ClusterExtension of a set.
    pub(crate) fn extension_of(&self, set: &ClusterObjectSet) -> Option<ClusterExtension> {
        let owner = set.metadata.owner_references.first()?;
        let extension = self
            .objects
            .iter()
            .find(|object| object.kind() == "ClusterExtension" && object.name() == owner.name)?;
        Some(ClusterExtension::from_object(extension).unwrap())
    }

    /// The set that the bundle of a recorded set makes.
    pub(crate) fn build(
        &self,
        set: &ClusterObjectSet,
        extension: &ClusterExtension,
    ) -> DesiredObjectSet {
        let identity = bundle_of(set);
        let image = &self.images[&identity.image];
        let bundle = RegistryV1Bundle::read(&files(image), &Limits::default()).unwrap();
        let inline = extension.spec.config.as_ref().and_then(|config| config.inline.as_ref());
        let config = inline.map(|config| serde_json::to_vec(config).unwrap());
        let settings = InstallSettings {
            certificates: Some(&CertManager),
            config: config.as_deref(),
            template_annotations: TemplateAnnotations::TargetNamespaces,
            ..InstallSettings::into_namespace(&extension.spec.namespace)
        };
        let rendered =
            bundle.install(&settings).unwrap_or_else(|error| panic!("{}: {error}", self.place));
        let uid = set.metadata.owner_references[0].uid.clone();
        let owner = ExtensionIdentity { uid, ..ExtensionIdentity::new(extension, true) };
        if set.metadata.labels.contains_key("olm.operatorframework.io/migrated-from-helm") {
            return from_release(&rendered, &bundle, &identity, owner, extension);
        }
        let properties = bundle.annotations().get("olm.properties").map(String::as_str);
        let objects = rendered.into_iter().map(|object| Object::from_value(object).unwrap());
        DesiredObjectSet::from_bundle(
            objects.collect(),
            &identity,
            properties,
            owner,
            PhaseSplit::Never,
        )
    }
}

/// The set of an extension that Helm installed.
fn from_release(
    rendered: &[Value],
    bundle: &RegistryV1Bundle,
    identity: &BundleIdentity,
    owner: ExtensionIdentity,
    extension: &ClusterExtension,
) -> DesiredObjectSet {
    let reference = owner.owner_reference();
    let release_owner = ReleaseOwner {
        api_version: &reference.api_version,
        kind: &reference.kind,
        name: &reference.name,
        uid: &reference.uid,
    };
    let content = ReleaseContent::from_objects(
        rendered,
        bundle.annotations(),
        &extension.spec.namespace,
        &release_owner,
        &owner.labels(),
    );
    let objects = content.objects.into_iter().map(|object| Object::from_value(object).unwrap());
    DesiredObjectSet::from_helm_release(objects.collect(), identity, owner)
}

/// A Secret with `data` in place of `stringData`.
fn with_data(secret: Value) -> Object {
    let mut secret = Object::from_value(secret).unwrap();
    if let Some(Value::Object(texts)) = secret.remove(&["stringData"]) {
        for (key, text) in texts {
            secret.set(&["data", &key], STANDARD.encode(text.as_str().unwrap()).into());
        }
    }
    secret
}

/// The files of an image.
fn files(image: &Value) -> MemoryFiles {
    mainstay_testdata::image_files(image).into_iter().collect()
}

/// The documents of a YAML file; none without the file, or if it has another content.
fn yaml(path: &Path) -> Vec<Value> {
    let bytes = fs::read(path).unwrap_or_default();
    let documents = String::from_utf8(bytes).unwrap();
    documents
        .split("\n---\n")
        .filter_map(|document| {
            mainstay_yaml::one(document.as_bytes(), &mainstay_yaml::Options::default()).ok()
        })
        .collect()
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
