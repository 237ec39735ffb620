//! Secrets as the recordings describe them: what a release says, which objects a ClusterObjectSet has, and of all
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

/// Replaces the data of a Secret by what the recordings say of it. `chunks` has the further chunks of
/// releases.
pub(super) fn describe(secret: &mut Value, chunks: &[Value]) {
    for label in ["createdAt", "modifiedAt"] {
        if let Some(time) = secret.pointer_mut(&format!("/metadata/labels/{label}")) {
            *time = "{time}".into();
        }
    }
    if secret["type"] == OBJECT_DATA_SECRET_TYPE {
        describe_objects(secret);
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
fn describe_objects(secret: &mut Value) {
    let data = secret.get_mut("data").and_then(Value::as_object_mut);
    for value in data.into_iter().flat_map(Map::values_mut) {
        let object = value.as_str().and_then(object_of).unwrap_or_default();
        *value = object_name(&object).into();
    }
}

/// Kind, namespace and name of an object.
fn object_name(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{} {namespace}/{name}", text("/kind"))
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
    json!({"release": release_fields(&release)}).as_object().cloned()
}

/// The fields of a release that the recordings have.
fn release_fields(release: &Release) -> Value {
    let content = release.objects().unwrap_or_default();
    let mut objects: Vec<String> = content.iter().map(object_name).collect();
    objects.sort();
    let json: Value = serde_json::from_str(&release.to_json()).unwrap_or_default();
    json!({
        "chart": json["chart"]["metadata"],
        "config": null,
        "description": release.info.description,
        "labels": release.labels,
        "manifest sha256": digest(content),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn release(extension: &str, version: i64, status: &str, description: &str) -> Value {
        let key = format!("sh.helm.release.v1.{extension}.v{version}");
        json!({
            "type": INDEX_SECRET_TYPE,
            "metadata": {"name": key, "labels": {
                "key": key, "name": extension, "version": version.to_string(),
            }},
            "data": {"release": {
                "status": status, "description": description, "version": version,
            }},
        })
    }

    /// Name, status and description of each release.
    fn collapsed(mut objects: Vec<Value>) -> Vec<String> {
        collapse_failures(&mut objects);
        let field = |object: &Value, path: &str| object.pointer(path).unwrap().to_string();
        let line = |object: &Value| {
            [
                "/metadata/name",
                "/data/release/version",
                "/data/release/status",
                "/data/release/description",
            ]
            .map(|path| field(object, path).replace('"', ""))
            .join(" ")
        };
        objects.iter().map(line).collect()
    }

    #[test]
    fn only_repeated_failures_of_one_extension_are_collapsed() {
        let failed = "Upgrade \"a\" failed: no room";
        let found = collapsed(vec![
            release("a", 1, "superseded", "Install complete"),
            release("a", 2, "failed", failed),
            release("a", 3, "superseded", failed),
            release("a", 4, "deployed", "Upgrade complete"),
            release("b", 5, "failed", failed),
            release("c", 6, "failed", failed),
        ]);
        let expected = [
            "sh.helm.release.v1.a.v1 1 superseded Install complete",
            "sh.helm.release.v1.a.v2 2 superseded no room",
            "sh.helm.release.v1.a.v3 3 deployed Upgrade complete",
            "sh.helm.release.v1.b.v1 1 failed no room",
            "sh.helm.release.v1.c.v1 1 failed no room",
        ];
        assert_eq!(found, expected);
    }
}
