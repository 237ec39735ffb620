//! Releases of recorded cases, built again from their bundles.

use crate::recorded::{RecordedRelease, files, releases};
use jiff::Timestamp;
use mainstay_bundle::Limits;
use mainstay_bundle::render::{
    CertManager, InstallSettings, RegistryV1Bundle, TemplateAnnotations,
};
use mainstay_releases::{
    EncodedRelease, MAX_DECODED_BYTES, Release, ReleaseAction, ReleaseContent, ReleaseOwner,
    SecretWrite, decode_release,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

fn owner(name: &str) -> ReleaseOwner<'_> {
    ReleaseOwner {
        api_version: "olm.operatorframework.io/v1",
        kind: "ClusterExtension",
        name,
        uid: "{uid}",
    }
}

/// The content of a recorded release, from its bundle.
fn content(recorded: &RecordedRelease) -> Result<ReleaseContent, String> {
    let bundle = RegistryV1Bundle::read(&files(&recorded.image), &Limits::default())
        .map_err(|error| error.to_string())?;
    let experimental = recorded.profile != "std";
    let config = recorded.extension["config"]["inline"].as_object();
    let config = config.filter(|_| experimental).map(|config| serde_json::to_vec(config).unwrap());
    let namespace = recorded.extension["namespace"].as_str().unwrap_or_default();
    let objects = bundle
        .install(&InstallSettings {
            certificates: Some(&CertManager),
            single_namespaces: experimental,
            deployment_config: experimental,
            config: config.as_deref(),
            template_annotations: TemplateAnnotations::TargetNamespaces,
            ..InstallSettings::into_namespace(namespace)
        })
        .map_err(|error| error.to_string())?;
    let name = recorded.secret["data"]["release"]["name"].as_str().unwrap();
    let labels: BTreeMap<String, String> = [
        ("olm.operatorframework.io/owner-kind", "ClusterExtension"),
        ("olm.operatorframework.io/owner-name", name),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let annotations = bundle.annotations();
    Ok(ReleaseContent::from_objects(&objects, annotations, namespace, &owner(name), &labels))
}

/// A release with the history that the recorded words tell.
fn release(recorded: &Value, content: ReleaseContent) -> Release {
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let name = recorded["name"].as_str().unwrap();
    let namespace = recorded["namespace"].as_str().unwrap();
    let labels: BTreeMap<String, String> =
        serde_json::from_value(recorded["labels"].clone()).unwrap();
    let version = recorded["version"].as_i64().unwrap();
    let mut release = Release::pending_install(name, namespace, content.clone(), labels, now);
    let mut action = ReleaseAction::Install;
    if version > 1 {
        let last = Release { version: version - 1, ..release };
        action = ReleaseAction::Upgrade;
        release = Release::pending_upgrade(&last, &last, content, BTreeMap::new(), now);
    }
    // The description of a failed release stays when a later one supersedes it.
    let description = recorded["description"].as_str().unwrap();
    match description.split_once(" failed: ") {
        Some((_, error)) => release.fail(action, &error),
        None => release.complete(action),
    }
    if recorded["status"] == "superseded" {
        release.supersede();
    }
    release
}

/// A release in the words of the recordings.
fn in_words(release: &Release) -> Value {
    let objects = release.objects().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = objects
        .iter()
        .map(|object| {
            let metadata = &object["metadata"];
            format!(
                "{} {}/{}",
                text(&object["kind"]),
                text(&metadata["namespace"]),
                text(&metadata["name"])
            )
        })
        .collect();
    names.sort();
    let digest = Sha256::digest(mainstay_testdata::python_json(&objects.into()).as_bytes());
    let digest = format!("{:016x}", u64::from_be_bytes(digest[..8].try_into().unwrap()));
    let json: Value = serde_json::from_str(&release.to_json()).unwrap();
    json!({
        "name": json["name"],
        "namespace": json["namespace"],
        "version": json["version"],
        "status": json["info"]["status"],
        "description": json["info"]["description"],
        "labels": json["labels"],
        "chart": json["chart"]["metadata"],
        "config": json["config"],
        "templates": json["chart"]["templates"].as_array().map_or(0, Vec::len),
        "objects": names,
        "manifest sha256": digest,
    })
}

/// A Secret in the words of the recordings, without its data.
fn secret_in_words(secret: &Value) -> Value {
    let mut secret = secret.clone();
    secret.as_object_mut().unwrap().remove("data");
    for name in ["createdAt", "modifiedAt"] {
        if let Some(label) = secret["metadata"]["labels"].get_mut(name) {
            *label = "{time}".into();
        }
    }
    secret
}

#[test]
fn recorded_releases_are_built_again_from_their_bundles() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "recorded releases") else {
        return;
    };
    let (mut same, mut charts, mut digests) = (0, 0, 0);
    for recorded in releases(&data.path().join("olm-v1/cases")) {
        let place = &recorded.place;
        if !recorded.image["chart"].is_null() {
            charts += 1;
            continue;
        }
        let content = content(&recorded).unwrap_or_else(|error| panic!("{place}: {error}"));
        let wanted = &recorded.secret["data"]["release"];
        let release = release(wanted, content);

        let encoded = EncodedRelease::new(&release).unwrap();
        let time = Timestamp::from_second(1_700_000_000).unwrap();
        let write = SecretWrite::Update { created_at: "1700000000", modified: time };
        let owners = [owner(&release.name).reference()];
        let index = encoded.index_secret("olmv1-system", &owners, write);
        let chunks = encoded.chunk_secrets("olmv1-system", "{uid}", write);
        let decoded = decode_release(&index, &chunks, MAX_DECODED_BYTES).unwrap();
        assert_eq!(decoded, release, "{place}");

        let found = in_words(&decoded);
        digests += usize::from(found["manifest sha256"] == wanted["manifest sha256"]);
        assert_eq!(found, *wanted, "{place}");
        assert_eq!(secret_in_words(&index), secret_in_words(&recorded.secret), "{place}");
        assert_eq!(chunks.len(), recorded.chunks.len(), "{place}");
        for (chunk, wanted) in chunks.iter().zip(&recorded.chunks) {
            let (mut chunk, mut wanted) = (secret_in_words(chunk), secret_in_words(wanted));
            // The bytes differ, as the compressors do, and with them the hash in the name.
            let lengths = [&mut chunk, &mut wanted].map(|secret| {
                let name = std::mem::take(&mut secret["metadata"]["name"]);
                let name = name.as_str().unwrap();
                (name.len(), name[..=release_key(&release).len()].to_owned())
            });
            assert_eq!(lengths[0], lengths[1], "{place}");
            assert_eq!(chunk, wanted, "{place}");
        }
        same += 1;
    }
    // Every recorded bundle release, each status of it once; three states of a Helm chart.
    assert_eq!((same, digests, charts), (221, 221, 3));
    mainstay_testdata::ran(&format!("{same} recorded releases, their Secrets and digests"));
}

fn release_key(release: &Release) -> String {
    mainstay_releases::secret_name(&release.name, release.version)
}
