//! Image manifests, indexes and configurations.

use mainstay_image::manifest::{ImageConfig, ImageDocument, ImageManifest, media_type as media};
use serde_json::json;

const HEX: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn part(size: i64) -> serde_json::Value {
    json!({"mediaType": "application/x", "digest": format!("sha256:{HEX}"), "size": size})
}

#[test]
fn ambiguous_documents_are_refused() {
    let manifest = |extra: serde_json::Value| {
        let mut value = json!({"schemaVersion": 2, "config": part(2), "layers": [part(3)]});
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        value.to_string()
    };
    let list = |extra: serde_json::Value| {
        let mut value = json!({"schemaVersion": 2, "manifests": [part(3)]});
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        value.to_string()
    };
    let none = || json!({});
    let cases: Vec<(String, Option<&str>, Result<&str, &str>)> = vec![
        (manifest(none()), None, Ok(media::OCI_MANIFEST)),
        (manifest(none()), Some("application/json; charset=utf-8"), Ok(media::OCI_MANIFEST)),
        (manifest(json!({"mediaType": media::DOCKER_MANIFEST})), None, Ok(media::DOCKER_MANIFEST)),
        (list(none()), None, Ok(media::OCI_INDEX)),
        (list(none()), Some(media::OCI_INDEX), Ok(media::OCI_INDEX)),
        (
            list(json!({"mediaType": media::DOCKER_LIST})),
            Some(media::DOCKER_LIST),
            Ok(media::DOCKER_LIST),
        ),
        (list(json!({"config": part(1)})), None, Err("so it is ambiguous")),
        (list(json!({"layers": []})), None, Err("so it is ambiguous")),
        (list(json!({"fsLayers": []})), None, Err("so it is ambiguous")),
        (list(none()), Some(media::OCI_MANIFEST), Err("so it is ambiguous")),
        (manifest(none()), Some(media::OCI_INDEX), Err("so it is ambiguous")),
        (
            manifest(json!({"mediaType": media::DOCKER_MANIFEST})),
            Some(media::OCI_MANIFEST),
            Err("is sent as"),
        ),
        (manifest(json!({"mediaType": "text/html"})), None, Err("neither a manifest nor an index")),
        (manifest(json!({"schemaVersion": 1})), None, Err("schema 1")),
        (manifest(json!({"schemaVersion": 3})), None, Err("schemaVersion is 3")),
        (manifest(none()), Some(media::DOCKER_SCHEMA1_SIGNED), Err("schema 1")),
        (json!({"schemaVersion": 2}).to_string(), None, Err("neither a manifest nor an index")),
        (manifest(json!({"config": part(-1)})), None, Err("a size is negative")),
        (manifest(json!({"config": {"digest": "sha256:x", "size": 1}})), None, Err("not valid")),
        (manifest(json!({"layers": vec![part(1); 513]})), None, Err("513 layers")),
        (list(json!({"manifests": vec![part(1); 1025]})), None, Err("1025 images")),
        ("[".repeat(100_000), None, Err("not valid")),
        (String::new(), None, Err("not valid")),
        (" ".repeat(5 << 20), None, Err("4194304 are allowed")),
        (
            r#"{"schemaVersion":2,"config":{},"config":{},"layers":[]}"#.to_owned(),
            None,
            Err("duplicate field"),
        ),
    ];
    for (text, sent, want) in cases {
        let read = ImageDocument::read(text.as_bytes(), sent);
        let start: String = text.chars().take(120).collect();
        match (read, want) {
            (Ok(read), Ok(want)) => assert_eq!(read.media_type(), want, "{start}"),
            (Err(error), Err(want)) => {
                assert!(error.to_string().contains(want), "{start}: {error}");
            }
            (read, want) => panic!("{start}: {read:?}, not {want:?}"),
        }
    }
}

#[test]
fn configuration_must_have_the_layers_of_its_manifest() {
    let text = json!({"schemaVersion": 2, "config": part(2), "layers": [part(3)]}).to_string();
    let Ok(ImageDocument::Manifest(manifest)) = ImageDocument::read(text.as_bytes(), None) else {
        panic!()
    };
    let read = |value: serde_json::Value, manifest: &ImageManifest| {
        ImageConfig::read(value.to_string().as_bytes(), manifest).map_err(|error| error.to_string())
    };
    let config_with_layers = |layers: usize| {
        json!({
            "architecture": "amd64", "os": "linux", "config": {"Labels": {"a": "b"}, "Env": null},
            "rootfs": {"type": "layers", "diff_ids": vec![format!("sha256:{HEX}"); layers]}
        })
    };
    let config = read(config_with_layers(1), &manifest).unwrap();
    assert_eq!((config.config.labels["a"].as_str(), config.platform.os.as_str()), ("b", "linux"));
    assert_eq!(
        read(config_with_layers(2), &manifest).unwrap_err(),
        "the configuration has 2 layers and the manifest 1"
    );
    assert!(read(json!({}), &manifest).is_ok(), "an artifact's configuration says nothing");
}
