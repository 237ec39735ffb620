//! Secrets as the recordings tell them: what a release says, which objects a ClusterObjectSet has, and of all
//! others the keys only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use mainstay_api::names::olm_v1::OBJECT_DATA_SECRET_TYPE;
use mainstay_image::digest::Digest;
use mainstay_releases::{
    CHUNK_SECRET_TYPE, INDEX_SECRET_TYPE, MAX_DECODED_BYTES, Release, decode_release,
};
use serde_json::{Map, Value, json};
use std::io::Read as _;

/// Replaces the hash in the names of chunk Secrets, which depends on the compression.
fn number_chunks(objects: &mut [Value]) {
    let chunks = objects.iter_mut().filter(|object| object["type"] == CHUNK_SECRET_TYPE);
    for (count, chunk) in chunks.enumerate() {
        let key = chunk["metadata"]["labels"]["key"].as_str().unwrap_or_default();
        let name = format!("{key}-{{chunk {count}}}");
        chunk["metadata"]["name"] = name.into();
    }
}

/// Replaces the data of a Secret by what the recordings tell of it. `chunks` has the further chunks of
/// releases.
pub(super) fn describe(secret: &mut Value, chunks: &[Value]) {
    for label in ["createdAt", "modifiedAt"] {
        if let Some(time) = secret.pointer_mut(&format!("/metadata/labels/{label}")) {
            *time = "{time}".into();
        }
    }
    if secret["type"] == OBJECT_DATA_SECRET_TYPE {
        tell_objects(secret);
        return;
    }
    let is_release = secret["type"] == INDEX_SECRET_TYPE;
    let words = if is_release { release(secret, chunks) } else { None };
    let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) else { return };
    match words {
        Some(words) => *data = words,
        None => data.values_mut().for_each(|value| *value = "{bytes}".into()),
    }
}

/// Replaces the objects of a ClusterObjectSet by their kinds and names.
fn tell_objects(secret: &mut Value) {
    let data = secret.get_mut("data").and_then(Value::as_object_mut);
    for value in data.into_iter().flat_map(Map::values_mut) {
        let object = value.as_str().and_then(object_of).unwrap_or_default();
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        *value = format!("{} {namespace}/{name}", text("/kind")).into();
    }
}

/// The object that a Secret has under a key, compressed or not.
fn object_of(encoded: &str) -> Option<Value> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let mut text = Vec::new();
    if MultiGzDecoder::new(&*bytes).read_to_end(&mut text).is_err() {
        text = bytes;
    }
    serde_json::from_slice(&text).ok()
}

/// What a release says.
fn release(index: &Value, chunks: &[Value]) -> Option<Map<String, Value>> {
    let release = decode_release(index, chunks, MAX_DECODED_BYTES).ok()?;
    json!({"release": words(&release)}).as_object().cloned()
}

fn words(release: &Release) -> Value {
    let mut objects: Vec<String> = release
        .objects()
        .unwrap_or_default()
        .iter()
        .map(|object| {
            let text =
                |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            format!("{} {namespace}/{name}", text("/kind"))
        })
        .collect();
    objects.sort();
    let json: Value = serde_json::from_str(&release.to_json()).unwrap_or_default();
    json!({
        "chart": json["chart"]["metadata"],
        "config": null,
        "description": release.info.description,
        "labels": release.labels,
        "manifest sha256": digest(release.objects().unwrap_or_default()),
        "name": release.name,
        "namespace": release.namespace,
        "objects": objects,
        "status": release.info.status.as_str(),
        "templates": release.chart.templates.as_ref().map_or(0, Vec::len),
        "version": release.version,
    })
}

fn digest(objects: Vec<Value>) -> String {
    let mut objects = Value::Array(objects);
    super::normalize::map_texts(&mut objects, &mut |text| super::normalize::without_uids(text));
    let digest = Digest::of(mainstay_testdata::python_json(&objects).as_bytes());
    digest.hex().get(..16).unwrap_or_default().to_owned()
}

/// The number in the name of a Secret of a release.
fn version(secret: &Value) -> Option<i64> {
    if secret["type"] != INDEX_SECRET_TYPE {
        return None;
    }
    secret.pointer("/metadata/labels/version")?.as_str()?.parse().ok()
}

/// The part of an error that is the same in the first attempt and in later ones.
fn cause(description: &str) -> Option<String> {
    let (_, error) = description.split_once(" failed: ")?;
    let error = error.strip_prefix("failed to create resource: ").unwrap_or(error);
    let error = error.strip_prefix("1 error occurred:\n\t* ").unwrap_or(error);
    Some(error.trim_end().to_owned())
}

/// Removes all but the last one of consecutive failed releases of an extension, and numbers the rest
/// anew: how often something was tried differs from run to run.
pub(super) fn collapse_failures(objects: &mut Vec<Value>) {
    number_chunks(objects);
    let name = |secret: &Value| secret["metadata"]["labels"]["name"].as_str().map(str::to_owned);
    let mut releases: Vec<(String, i64, usize)> = objects
        .iter()
        .enumerate()
        .filter_map(|(at, object)| Some((name(object)?, version(object)?, at)))
        .collect();
    releases.sort();
    // The last of them may be superseded by a success.
    let failed = |at: usize| {
        let words = &objects[at]["data"]["release"];
        words["status"] == "failed"
            || (words["status"] == "superseded"
                && words["description"].as_str().is_some_and(|text| text.contains(" failed: ")))
    };
    let repeated: Vec<usize> = releases
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0 && failed(pair[0].2) && failed(pair[1].2))
        .map(|pair| pair[0].2)
        .collect();
    releases.retain(|(_, _, at)| !repeated.contains(at));
    for of_extension in releases.chunk_by(|left, right| left.0 == right.0) {
        for (number, (name, _, at)) in (1..).zip(of_extension) {
            renumber(&mut objects[*at], name, number);
        }
    }
    for object in objects.iter_mut() {
        if let Some(description) = object.pointer_mut("/data/release/description")
            && let Some(cause) = description.as_str().and_then(cause)
        {
            *description = cause.into();
        }
    }
    let mut at = 0;
    objects.retain(|_| {
        at += 1;
        !repeated.contains(&(at - 1))
    });
}

fn renumber(secret: &mut Value, extension: &str, number: i64) {
    let key = format!("sh.helm.release.v1.{extension}.v{number}");
    secret["metadata"]["name"] = key.clone().into();
    secret["metadata"]["labels"]["key"] = key.into();
    secret["metadata"]["labels"]["version"] = number.to_string().into();
    if let Some(version) = secret.pointer_mut("/data/release/version") {
        *version = number.into();
    }
}
