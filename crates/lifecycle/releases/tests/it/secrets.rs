//! Secrets of releases: sizes, hostile content, and the messages about it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use mainstay_releases::{
    CHUNK_BYTES, CHUNK_SECRET_TYPE, Chart, ChartFile, DecodeProblem, DecodeReleaseError,
    EncodedRelease, INDEX_SECRET_TYPE, MAX_DECODED_BYTES, Release, SecretWrite, decode_release,
    extra_chunk_names,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;

/// A release whose compressed form has about as many bytes.
fn release(bytes: usize) -> Release {
    let random: Vec<u8> =
        (0_u64..).flat_map(|at| Sha256::digest(at.to_le_bytes())).take(bytes).collect();
    let files = Some(vec![ChartFile { name: "random".into(), data: random }]);
    Release {
        name: "ext".into(),
        version: 3,
        chart: Chart { files, ..Chart::default() },
        ..Release::default()
    }
}

fn write() -> SecretWrite<'static> {
    SecretWrite::Create(Timestamp::from_second(1_700_000_000).unwrap())
}

/// Index and chunk Secrets of a release.
fn secrets(release: &Release) -> (Value, Vec<Value>) {
    let encoded = EncodedRelease::new(release).unwrap();
    (encoded.index_secret("system", &[], write()), encoded.chunk_secrets("system", "u", write()))
}

/// An index Secret with this content.
fn index(compressed: &[u8]) -> Value {
    json!({
        "metadata": {"name": "sh.helm.release.v1.ext.v3", "namespace": "system"},
        "type": INDEX_SECRET_TYPE,
        "data": {"chunk": STANDARD.encode(compressed), "extraChunks": STANDARD.encode("[]")},
    })
}

fn gzip(parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for part in parts {
        encoder.write_all(&part).unwrap();
    }
    encoder.finish().unwrap()
}

fn refused(index: &Value, chunks: &[Value]) -> DecodeReleaseError {
    decode_release(index, chunks, MAX_DECODED_BYTES).unwrap_err()
}

#[test]
fn large_release_is_read_from_its_chunks_in_any_order() {
    let large = release(2 * CHUNK_BYTES + 1000);
    let (index, mut chunks) = secrets(&large);
    assert_eq!(chunks.len(), 2);
    let names = extra_chunk_names(&index).unwrap();
    for (chunk, name) in chunks.iter().zip(&names) {
        assert_eq!(chunk["metadata"]["name"], **name);
        assert_eq!(chunk["metadata"]["labels"]["createdAt"], "1700000000");
        assert_eq!(chunk["immutable"], true);
    }
    chunks.reverse();
    // Chunks of other releases do not disturb.
    chunks.push(json!({"metadata": {"name": "other"}, "type": CHUNK_SECRET_TYPE}));
    assert_eq!(decode_release(&index, &chunks, MAX_DECODED_BYTES).unwrap(), large);
}

#[test]
fn too_large_release_is_refused_in_upstream_words() {
    assert!(EncodedRelease::new(&release(10 * CHUNK_BYTES)).is_ok());
    let error = EncodedRelease::new(&release(11 * CHUNK_BYTES)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "create: failed to encode release \"ext\": release too large: \"ext\" requires 12 chunks, which \
         exceeds the maximum of 11"
    );
}

#[test]
fn missing_and_duplicate_chunks_are_named() {
    let (index, chunks) = secrets(&release(2 * CHUNK_BYTES + 1000));
    let second = chunks[1]["metadata"]["name"].as_str().unwrap();
    assert_eq!(
        refused(&index, &chunks[..1]).to_string(),
        format!(
            "cannot read the release in Secret system/sh.helm.release.v1.ext.v3: chunk 3 of 3 is \
             missing: Secret {second} does not exist; to discard this release, run: kubectl delete \
             secret --namespace system sh.helm.release.v1.ext.v3"
        )
    );
    let twice = [chunks.clone(), chunks.clone()].concat();
    assert!(matches!(
        refused(&index, &twice).problem,
        DecodeProblem::DuplicateChunk { secret } if secret == chunks[0]["metadata"]["name"]
    ));
    let mut listed_twice = index.clone();
    let name = &chunks[0]["metadata"]["name"];
    let list = json!([name, name]).to_string();
    listed_twice["data"]["extraChunks"] = STANDARD.encode(list).into();
    let error = refused(&listed_twice, &chunks);
    assert!(matches!(error.problem, DecodeProblem::DuplicateChunk { .. }), "{error}");
}

#[test]
fn secrets_of_another_type_are_refused() {
    let (index, mut chunks) = secrets(&release(CHUNK_BYTES + 1000));
    chunks[0]["type"] = "Opaque".into();
    let error = refused(&index, &chunks);
    assert!(matches!(error.problem, DecodeProblem::WrongType { .. }), "{error}");
    let mut other = index;
    other["type"] = "helm.sh/release.v1".into();
    assert!(refused(&other, &[]).to_string().contains("has the type \"helm.sh/release.v1\""));
    assert!(extra_chunk_names(&other).is_err());
    for broken in [json!(null), json!(7), json!({"type": INDEX_SECRET_TYPE, "data": 1})] {
        assert!(decode_release(&broken, &[], 10).is_err());
    }
}

#[test]
fn damaged_data_is_refused() {
    let complete = gzip([release(1000).to_json().into_bytes()]);
    assert!(decode_release(&index(&complete), &[], MAX_DECODED_BYTES).is_ok());
    for end in [0, 5, 12, complete.len() / 2, complete.len() - 9, complete.len() - 1] {
        let error = refused(&index(&complete[..end]), &[]);
        assert!(
            matches!(error.problem, DecodeProblem::Compression(_) | DecodeProblem::Json(_)),
            "{end}: {error}"
        );
    }
    let mut flipped = complete.clone();
    let at = flipped.len() - 6;
    flipped[at] ^= 1;
    assert!(matches!(refused(&index(&flipped), &[]).problem, DecodeProblem::Compression(_)));
    for text in ["", "7", "{\"info\": 7}", "{\"version\": \"x\"}", "{\"name\": \"a\""] {
        let error = refused(&index(&gzip([text.into()])), &[]);
        assert!(matches!(error.problem, DecodeProblem::Json(_)), "{text}: {error}");
    }
    for text in ["[]", "{}", "{\"name\": \"ext\", \"version\": 4}"] {
        let error = refused(&index(&gzip([text.into()])), &[]);
        assert!(matches!(error.problem, DecodeProblem::OtherRelease { .. }), "{text}: {error}");
    }
    let deep = gzip([format!("{{\"config\": {{\"a\": {}", "[".repeat(100_000)).into_bytes()]);
    assert!(matches!(refused(&index(&deep), &[]).problem, DecodeProblem::Json(_)));
    let mut wrong = index(&complete);
    wrong["data"]["chunk"] = "%".into();
    assert!(matches!(refused(&wrong, &[]).problem, DecodeProblem::NoData { key: "chunk", .. }));
    wrong["data"]["extraChunks"] = STANDARD.encode("{}").into();
    assert!(matches!(refused(&wrong, &[]).problem, DecodeProblem::ChunkNames(_)));
    wrong["data"]["extraChunks"] = STANDARD.encode(json!(vec!["x"; 11]).to_string()).into();
    assert!(matches!(refused(&wrong, &[]).problem, DecodeProblem::TooManyChunks { chunks: 12 }));
}

#[test]
fn decompression_stops_at_the_limit() {
    // 64 MiB of blanks, in 64 KiB.
    let bomb = gzip(std::iter::repeat_n(vec![b' '; 1 << 20], 64));
    let error = decode_release(&index(&bomb), &[], 1 << 20).unwrap_err();
    assert!(matches!(error.problem, DecodeProblem::TooLarge { limit: 1_048_576 }), "{error}");
    // The release itself fits, but not what follows.
    let padded = gzip([b"{}".to_vec(), vec![b' '; 1 << 20]]);
    let error = decode_release(&index(&padded), &[], 1000).unwrap_err();
    assert!(matches!(error.problem, DecodeProblem::TooLarge { limit: 1000 }), "{error}");
    let json = release(1000).to_json();
    let exact = index(&gzip([json.clone().into_bytes()]));
    assert!(decode_release(&exact, &[], json.len() as u64).is_ok());
    assert!(decode_release(&exact, &[], json.len() as u64 - 1).is_err());
}

#[test]
fn unknown_fields_and_nulls_are_accepted() {
    let text = r#"{"name":"ext","version":3,"new":{"a":[1]},"info":{"deleted":"","status":"brand-new","first_deployed":
        "2024-01-01T10:00:00.5+02:00","last_deployed":"0001-01-01T00:00:00Z","also":1},"chart":null,
        "config":null,"hooks":[{"name":"h","events":null,"last_run":{"started_at":""}}],"labels":null}"#;
    let release = decode_release(&index(&gzip([text.into()])), &[], 10_000).unwrap();
    assert_eq!(release.info.status.as_str(), "unknown");
    assert_eq!(release.info.first_deployed.unwrap().to_string(), "2024-01-01T08:00:00.5Z");
    assert_eq!(release.info.last_deployed, None);
    assert_eq!(release.hooks[0].name, "h");
}
