//! The recorded cases: their releases, with the images and settings from which each was made.

use mainstay_bundle::MemoryFiles;
use mainstay_testdata::{read_json, sorted_entries};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A recorded index Secret, at the first step that shows it in this state.
pub(crate) struct RecordedRelease {
    /// Case, step and Secret, for messages.
    pub(crate) place: String,
    /// The gates of the case: `std`, `exp` or `box`.
    pub(crate) profile: String,
    /// The Secret, with the release told in words.
    pub(crate) secret: Value,
    /// The chunk Secrets of the same release.
    pub(crate) chunks: Vec<Value>,
    /// The `spec` of the ClusterExtension at the first step that shows the release.
    pub(crate) extension: Value,
    /// The bundle image.
    pub(crate) image: Value,
}

/// The releases of all cases.
pub(crate) fn releases(cases: &Path) -> Vec<RecordedRelease> {
    sorted_entries(cases).iter().flat_map(|case| releases_of_case(case)).collect()
}

/// The objects of each step of a case.
pub(crate) fn steps(case: &Path) -> Vec<(String, Vec<Value>)> {
    let folders =
        sorted_entries(case).into_iter().filter(|path| path.join("objects.json").is_file());
    folders
        .map(|folder| {
            let Value::Array(objects) = read_json(&folder.join("objects.json")) else {
                panic!("{} has no list of objects", folder.display());
            };
            (name(&folder), objects)
        })
        .collect()
}

fn releases_of_case(case: &Path) -> Vec<RecordedRelease> {
    let profile = read_json(&case.join("case.json"))["profile"].as_str().unwrap().to_owned();
    let mut images: BTreeMap<String, Value> = BTreeMap::new();
    // By name of the Secret and digest of the manifest.
    let mut extensions: BTreeMap<(String, String), (Value, Value)> = BTreeMap::new();
    let mut releases: Vec<RecordedRelease> = Vec::new();
    for (step, objects) in steps(case) {
        let pushed = fs::read(case.join(&step).join("images.yaml")).unwrap_or_default();
        if let Ok(Value::Array(list)) =
            mainstay_yaml::one(&pushed, &mainstay_yaml::Options::default())
        {
            images.extend(
                list.into_iter().map(|image| (image["ref"].as_str().unwrap().to_owned(), image)),
            );
        }
        for secret in objects.iter().filter(|object| !object["data"]["release"].is_null()) {
            let release = &secret["data"]["release"];
            let secret_name = secret["metadata"]["name"].as_str().unwrap();
            let digest = release["manifest sha256"].as_str().unwrap().to_owned();
            let reference = &release["labels"]["olm.operatorframework.io/bundle-reference"];
            let found = extensions.entry((secret_name.to_owned(), digest)).or_insert_with(|| {
                let extension = objects.iter().find(|object| {
                    object["kind"] == "ClusterExtension"
                        && object["metadata"]["name"] == release["name"]
                });
                let image = images.get(reference.as_str().unwrap()).cloned();
                (
                    extension.map(|extension| extension["spec"].clone()).unwrap_or_default(),
                    image.unwrap_or_default(),
                )
            });
            let same = |other: &RecordedRelease| {
                other.secret["metadata"]["name"] == secret_name
                    && other.secret["data"] == secret["data"]
            };
            if releases.iter().any(same) {
                continue;
            }
            let is_chunk = |object: &&Value| {
                object["type"] == mainstay_releases::CHUNK_SECRET_TYPE
                    && object["metadata"]["labels"]["key"] == secret_name
            };
            releases.push(RecordedRelease {
                place: format!("{}/{step}/{secret_name}", name(case)),
                profile: profile.clone(),
                secret: secret.clone(),
                chunks: objects.iter().filter(is_chunk).cloned().collect(),
                extension: found.0.clone(),
                image: found.1.clone(),
            });
        }
    }
    releases
}

/// The files of an image.
pub(crate) fn files(image: &Value) -> MemoryFiles {
    mainstay_testdata::image_files(image).into_iter().collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
