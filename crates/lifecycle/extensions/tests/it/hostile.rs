//! Images and registries that want to do harm: each ends in the right condition, and what was served stays.

use crate::olm_cluster::{LABEL, OlmCluster, condition, message};
use crate::registry::{Registry, Treatment};
use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_image::build::{self, Layer};
use mainstay_image::digest::Digest;
use mainstay_image::manifest::{Descriptor, ImageConfig, RunConfig, media_type};
use mainstay_image::platform::Platform;
use mainstay_image::reference::ImageReference;
use serde_json::json;
use std::io::Write as _;

const FIRST: &str = "schema: olm.package\nname: a\n";
const FIRST_LINE: &str = "{\"name\":\"a\",\"schema\":\"olm.package\"}\n";
const SECOND: &str = "schema: olm.package\nname: b\n";
const SECOND_LINE: &str = "{\"name\":\"b\",\"schema\":\"olm.package\"}\n";

/// An entry of an archive with this type, name, link target and size, without its content.
fn header(kind: u8, name: &str, link: &str, size: usize) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[136..147].copy_from_slice(b"00000000000");
    header[156] = kind;
    header[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

/// An archive of entries with their content.
fn archive(entries: &[(u8, &str, &str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, name, link, content) in entries {
        bytes.extend(header(*kind, name, link, content.len()));
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Stores an image whose layer is this archive.
fn put_archive(olm: &OlmCluster, name: &str, archive: &[u8]) {
    let store = olm.store();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(archive).unwrap();
    let compressed = compressed.finish().unwrap();
    let digest = store.put(&compressed).unwrap();
    let descriptor = Descriptor::new(media_type::OCI_LAYER_GZIP, digest, compressed.len() as u64);
    let layer = Layer { descriptor, diff_id: Digest::of(archive) };
    let labels = [(LABEL.to_owned(), "/configs".to_owned())].into_iter().collect();
    let config = RunConfig { labels, ..RunConfig::default() };
    let config = ImageConfig { config, ..ImageConfig::default() };
    let image = build::image(&store, Platform::host(), config, &[layer]).unwrap();
    store.set(&ImageReference::parse(name).unwrap(), &image).unwrap();
}

/// So many letters that cannot be compressed well, always the same.
fn noise(count: usize) -> String {
    let mut state = 7_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from(state >> 28).unwrap())
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[tokio::test]
async fn hostile_images_are_refused_with_their_reason() {
    let olm = OlmCluster::start().await;
    let bomb = vec![b'\n'; 32 << 20];
    let long_line = format!("schema: olm.package\nname: \"{}\"\n", noise(17 << 20));
    let mut late_error = "schema: a\nname: a\n---\n".repeat(100_000);
    late_error.push_str("schema: olm.package\nname: [a\n");
    for (name, entries, expected) in [
        (
            "link",
            vec![(b'2', "configs/catalog.yaml", "../../../../etc/passwd", &b""[..])],
            "open configs/catalog.yaml: no such file or directory",
        ),
        (
            "hard-link",
            vec![(b'1', "configs/catalog.yaml", "/etc/passwd", &b""[..])],
            "open configs/catalog.yaml: no such file or directory",
        ),
        (
            "parent",
            vec![(b'0', "configs/../../outside.yaml", "", FIRST.as_bytes())],
            "error applying layer[0]",
        ),
        ("device", vec![(b'3', "configs/catalog.yaml", "", &b""[..])], "error applying layer[0]"),
        (
            "bomb",
            vec![(b'0', "configs/catalog.yaml", "", &bomb[..])],
            "error applying layer[0]: it unpacks to more than 200 times its size",
        ),
        ("long", vec![(b'0', "configs/catalog.yaml", "", long_line.as_bytes())], "16777216"),
        (
            "late-error",
            vec![(b'0', "configs/catalog.yaml", "", late_error.as_bytes())],
            "error converting YAML to JSON: yaml: line 2: did not find expected ',' or ']'",
        ),
    ] {
        let reference = format!("r.example/{name}:v1");
        put_archive(&olm, &reference, &archive(&entries));
        olm.apply_catalog(name, json!({"ref": reference}), json!({})).await;
        let failed =
            olm.wait_for(name, |catalog| condition(catalog, "Progressing").1 == "Retrying").await;
        let message = message(&failed, "Progressing");
        assert!(message.contains(expected), "{name}: {message}");
        assert_eq!((olm.lines(name), olm.stored_count()), (None, 0), "{name}");
    }
}

/// A cluster whose images come from a registry, and a catalog `a` of its image.
async fn with_registry() -> (OlmCluster, Registry) {
    let mut olm = OlmCluster::stopped().await;
    olm.uses_registries = true;
    let registry = Registry::start(olm.store()).await;
    olm.put_image("store.example/cat:v1", Some(FIRST));
    olm.start_controllers().await;
    let reference = format!("{}/cat:v1", registry.host);
    olm.apply_catalog("a", json!({"ref": reference}), json!({})).await;
    olm.wait_until_serving("a", "store.example/cat:v1").await;
    (olm, registry)
}

/// Makes the controller ask the registry again: a new spec.
async fn change_spec(olm: &OlmCluster, registry: &Registry, priority: i32) {
    let reference = format!("{}/cat:v1", registry.host);
    olm.apply_catalog("a", json!({"ref": reference}), json!({"priority": priority})).await;
}

#[tokio::test]
async fn registry_that_refuses_truncates_or_stalls_is_retried_while_the_old_content_is_served() {
    let (olm, registry) = with_registry().await;
    olm.put_image("store.example/cat:v1", Some(SECOND));
    for (priority, part, treatment, expected) in [
        (1, "/manifests/", Treatment::Status(401), "authentication required"),
        (2, "/manifests/", Treatment::Status(403), "403"),
        (3, "/manifests/", Treatment::Status(429), "429"),
        (4, "/blobs/", Treatment::Status(500), "500"),
        (5, "/blobs/", Treatment::Truncate, "unexpected EOF"),
        (6, "/blobs/", Treatment::Stall, "no data was transferred"),
    ] {
        registry.treat(move |path| if path.contains(part) { treatment } else { Treatment::Answer });
        change_spec(&olm, &registry, priority).await;
        let failed = olm
            .wait_for("a", |catalog| {
                let (_, reason, observed) = condition(catalog, "Progressing");
                reason == "Retrying" && observed == catalog.i64(&["metadata", "generation"])
            })
            .await;
        let message = message(&failed, "Progressing");
        assert!(message.contains(expected), "{treatment:?}: {message}");
        assert_eq!(condition(&failed, "Serving").0, "True", "{treatment:?}");
        assert_eq!(olm.lines("a").as_deref(), Some(FIRST_LINE), "{treatment:?}");
    }
    // It recovers without a change of the spec.
    registry.treat(|_| Treatment::Answer);
    olm.wait_until_serving("a", "store.example/cat:v1").await;
    assert_eq!((olm.lines("a").as_deref(), olm.stored_count()), (Some(SECOND_LINE), 1));
}

#[tokio::test]
async fn tag_that_moves_during_a_pull_is_pulled_as_it_was_resolved() {
    let (olm, registry) = with_registry().await;
    olm.put_image("store.example/cat:v1", Some(SECOND));
    let resolved = olm.digest("store.example/cat:v1");
    olm.put_image("store.example/next:v1", Some("schema: olm.package\nname: c\n"));
    let (store, tag) = (olm.store(), ImageReference::parse("store.example/cat:v1").unwrap());
    let next = ImageReference::parse("store.example/next:v1").unwrap();
    registry.treat(move |path| {
        if path.contains("/blobs/") {
            let moved = store.resolve(&next).unwrap().unwrap();
            store.set(&tag, &moved).unwrap();
        }
        Treatment::Answer
    });
    change_spec(&olm, &registry, 1).await;
    olm.wait_for("a", |catalog| {
        let resolved_now = catalog.str(&["status", "resolvedSource", "image", "ref"]);
        resolved_now.is_some_and(|reference| reference.ends_with(&resolved))
    })
    .await;
    assert_eq!(olm.lines("a").as_deref(), Some(SECOND_LINE));
}
