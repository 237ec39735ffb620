//! Images of a case: builds what `images.yaml` describes.
//!
//! The images are made of bytes and not with the builder of the product, because many are broken on
//! purpose.

use super::placeholders::Placeholders;
use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use mainstay_image::digest::Digest;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use tar::{EntryType, Header};

/// The media types of an image.
struct MediaTypes {
    manifest: &'static str,
    index: &'static str,
    config: &'static str,
    layer: &'static str,
    plain_layer: &'static str,
}

const OCI: MediaTypes = MediaTypes {
    manifest: "application/vnd.oci.image.manifest.v1+json",
    index: "application/vnd.oci.image.index.v1+json",
    config: "application/vnd.oci.image.config.v1+json",
    layer: "application/vnd.oci.image.layer.v1.tar+gzip",
    plain_layer: "application/vnd.oci.image.layer.v1.tar",
};
const DOCKER: MediaTypes = MediaTypes {
    manifest: "application/vnd.docker.distribution.manifest.v2+json",
    index: "application/vnd.docker.distribution.manifest.list.v2+json",
    config: "application/vnd.docker.container.image.v1+json",
    layer: "application/vnd.docker.image.rootfs.diff.tar.gzip",
    plain_layer: "application/vnd.docker.image.rootfs.diff.tar",
};
const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const HELM_CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The architectures of an index that names none.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
/// The architecture of an image outside an index.
const ARCHITECTURE: &str = "amd64";

/// A document or layer of an image.
#[derive(Clone, Debug)]
pub(super) struct ImageBlob {
    pub(super) digest: Digest,
    pub(super) media_type: &'static str,
    pub(super) bytes: Bytes,
}

impl ImageBlob {
    fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of(&bytes), media_type, bytes: bytes.into() }
    }

    fn json(media_type: &'static str, value: &Value) -> Self {
        Self::new(media_type, value.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({
            "mediaType": self.media_type,
            "digest": self.digest.to_string(),
            "size": self.bytes.len(),
        })
    }
}

/// An image as a registry stores it.
#[derive(Clone, Debug)]
pub(super) struct CaseImage {
    /// Host, repository and tag.
    pub(super) reference: String,
    /// Manifests and indexes; the last one is the image itself.
    pub(super) manifests: Vec<ImageBlob>,
    /// Configurations and layers.
    pub(super) blobs: Vec<ImageBlob>,
}

impl CaseImage {
    /// Builds the image of an entry of `images.yaml`.
    pub(super) fn build(entry: &Value, placeholders: &Placeholders) -> anyhow::Result<Self> {
        let reference = entry["ref"].as_str().context("an image without ref")?.to_owned();
        let image = build(entry, placeholders);
        let (manifests, blobs) = image.with_context(|| format!("build {reference}"))?;
        Ok(Self { reference, manifests, blobs })
    }

    /// The image itself.
    pub(super) fn digest(&self) -> Option<&Digest> {
        self.manifests.last().map(|manifest| &manifest.digest)
    }
}

/// Fails for fields that this replay does not know: the image would be another one.
fn check_fields(entry: &Value, known: &[&str]) -> anyhow::Result<()> {
    let unknown = |key: &&String| !known.contains(&key.as_str());
    match entry.as_object().into_iter().flatten().map(|(key, _)| key).find(unknown) {
        Some(key) => bail!("the field {key} is not known"),
        None => Ok(()),
    }
}

fn build(
    entry: &Value,
    placeholders: &Placeholders,
) -> anyhow::Result<(Vec<ImageBlob>, Vec<ImageBlob>)> {
    let reference = entry["ref"].as_str().unwrap_or_default();
    check_fields(entry, &["ref", "labels", "files", "layers", "docker", "index", "chart"])?;
    if entry["chart"].is_object() {
        return chart(&entry["chart"], reference, placeholders);
    }
    let types = if entry["docker"] == true { &DOCKER } else { &OCI };
    let mut layers = Vec::new();
    match entry["layers"].as_array() {
        Some(described) => {
            for one in described {
                check_fields(one, &["files", "plain", "garbage"])?;
                layers.push(layer(one, types, reference, placeholders)?);
            }
        }
        None => layers.push(layer(entry, types, reference, placeholders)?),
    }
    let named: Vec<&str> =
        entry["index"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_index = !entry["index"].is_null() && entry["index"] != false;
    let architectures = match named.as_slice() {
        [] if is_index => &ARCHITECTURES[..],
        [] => &[ARCHITECTURE],
        named => named,
    };
    let mut blobs: Vec<ImageBlob> = Vec::new();
    let mut manifests = Vec::new();
    for architecture in architectures {
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": {"Labels": entry["labels"]},
            "rootfs": {
                "type": "layers",
                "diff_ids": layers.iter().map(|layer| layer.diff_id.to_string()).collect::<Vec<_>>(),
            },
        });
        let config = ImageBlob::json(types.config, &config);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": types.manifest,
            "config": config.descriptor(),
            "layers": layers.iter().map(|layer| layer.blob.descriptor()).collect::<Vec<_>>(),
        });
        manifests.push(ImageBlob::json(types.manifest, &manifest));
        blobs.push(config);
    }
    blobs.extend(layers.into_iter().map(|layer| layer.blob));
    if is_index {
        let images = manifests.iter().zip(architectures).map(|(manifest, architecture)| {
            let mut descriptor = manifest.descriptor();
            descriptor["platform"] = json!({"architecture": architecture, "os": "linux"});
            descriptor
        });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": types.index,
            "manifests": images.collect::<Vec<_>>(),
        });
        manifests.push(ImageBlob::json(types.index, &index));
    }
    Ok((manifests, blobs))
}

/// A Helm chart in a registry.
fn chart(
    chart: &Value,
    reference: &str,
    placeholders: &Placeholders,
) -> anyhow::Result<(Vec<ImageBlob>, Vec<ImageBlob>)> {
    check_fields(chart, &["metadata", "files"])?;
    let config = ImageBlob::json(HELM_CONFIG, &chart["metadata"]);
    let files = files(&chart["files"], placeholders)?;
    let content = ImageBlob::new(HELM_CONTENT, gzip(&archive(&files)?, reference)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": OCI.manifest,
        "config": config.descriptor(),
        "layers": [content.descriptor()],
    });
    Ok((vec![ImageBlob::json(OCI.manifest, &manifest)], vec![config, content]))
}

struct Layer {
    blob: ImageBlob,
    /// The digest of the archive.
    diff_id: Digest,
}

fn layer(
    described: &Value,
    types: &MediaTypes,
    reference: &str,
    placeholders: &Placeholders,
) -> anyhow::Result<Layer> {
    let archive = archive(&files(&described["files"], placeholders)?)?;
    let diff_id = Digest::of(&archive);
    let blob = if described["garbage"] == true {
        ImageBlob::new(types.layer, b"this is neither compressed nor an archive".to_vec())
    } else if described["plain"] == true {
        ImageBlob::new(types.plain_layer, archive)
    } else {
        ImageBlob::new(types.layer, gzip(&archive, reference)?)
    };
    Ok(Layer { blob, diff_id })
}

/// Compresses an archive. The header names the repository: ours stores a blob once for all
/// repositories, and a repository with a fault would else get its layers from another one.
fn gzip(bytes: &[u8], reference: &str) -> anyhow::Result<Vec<u8>> {
    let (repository, _) = reference.rsplit_once(':').unwrap_or((reference, ""));
    let builder = GzBuilder::new().filename(repository).operating_system(255);
    let mut encoder = builder.write(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// An entry of a layer.
enum LayerEntry {
    File(Vec<u8>),
    Symlink(String),
    Folder,
}

/// The entries by name, sorted.
fn files(
    described: &Value,
    placeholders: &Placeholders,
) -> anyhow::Result<Vec<(String, LayerEntry)>> {
    let none = Map::new();
    let mut all = Vec::new();
    for (name, content) in described.as_object().unwrap_or(&none) {
        let mut name = name.clone();
        let entry = match content {
            Value::String(text) => LayerEntry::File(placeholders.fill(text).into_bytes()),
            Value::Null => LayerEntry::File(Vec::new()),
            Value::Object(_) => {
                check_fields(content, &["base64", "symlink", "dir", "whiteout"])?;
                if let Some(text) = content["base64"].as_str() {
                    LayerEntry::File(STANDARD.decode(text)?)
                } else if let Some(target) = content["symlink"].as_str() {
                    LayerEntry::Symlink(target.to_owned())
                } else if content["whiteout"] == true {
                    let (folder, file) = name.rsplit_once('/').unwrap_or(("", &name));
                    let blank = if folder.is_empty() { "" } else { "/" };
                    name = format!("{folder}{blank}.wh.{file}");
                    LayerEntry::File(Vec::new())
                } else {
                    LayerEntry::Folder
                }
            }
            other => bail!("{name} has the content {other}"),
        };
        all.push((name, entry));
    }
    all.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(all)
}

fn archive(files: &[(String, LayerEntry)]) -> anyhow::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    let mut folder = |builder: &mut tar::Builder<Vec<u8>>, name: &str| -> anyhow::Result<()> {
        if folders.insert(name.to_owned()) {
            let mut header = header(EntryType::Directory, 0o755, 0);
            builder.append_data(&mut header, name, &[][..])?;
        }
        Ok(())
    };
    for (name, entry) in files {
        for (at, _) in name.match_indices('/') {
            folder(&mut builder, &name[..=at])?;
        }
        match entry {
            LayerEntry::File(content) => {
                let mut header = header(EntryType::Regular, 0o644, content.len() as u64);
                builder.append_data(&mut header, name, content.as_slice())?;
            }
            LayerEntry::Symlink(target) => {
                let mut header = header(EntryType::Symlink, 0o777, 0);
                builder.append_link(&mut header, name, target)?;
            }
            LayerEntry::Folder => {
                folder(&mut builder, &format!("{}/", name.trim_end_matches('/')))?;
            }
        }
    }
    Ok(builder.into_inner()?)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn image(text: &str) -> anyhow::Result<CaseImage> {
        let entry = mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default());
        CaseImage::build(&entry.unwrap(), &Placeholders::default())
    }

    fn names(blob: &ImageBlob) -> Vec<String> {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&blob.bytes[..]).read_to_end(&mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let paths = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned());
        paths.collect()
    }

    #[test]
    fn layers_have_folders_links_and_whiteouts() {
        let text = "
ref: registry.example/a/b:v1
labels: {a: b}
layers:
- files: {configs/a.yaml: x, configs/old: {whiteout: true}, etc/l: {symlink: ../x}, empty: {dir: true}}
";
        let image = image(text).unwrap();
        assert_eq!(image.manifests.len(), 1);
        let layer = image.blobs.last().unwrap();
        assert_eq!(
            names(layer),
            ["configs/", "configs/.wh.old", "configs/a.yaml", "empty/", "etc/", "etc/l"]
        );
        let config: Value = serde_json::from_slice(&image.blobs[0].bytes).unwrap();
        assert_eq!(config["config"]["Labels"]["a"], "b");
    }

    #[test]
    fn an_index_has_an_image_for_each_architecture() {
        let image = image("{ref: registry.example/a:v1, files: {}, docker: true, index: [s390x]}");
        let image = image.unwrap();
        let [manifest, index] = image.manifests.as_slice() else { panic!("two documents") };
        assert_eq!((manifest.media_type, index.media_type), (DOCKER.manifest, DOCKER.index));
        let index: Value = serde_json::from_slice(&index.bytes).unwrap();
        assert_eq!(index["manifests"][0]["platform"]["architecture"], "s390x");
    }

    #[test]
    fn unknown_fields_are_refused() {
        let error = image("{ref: registry.example/a:v1, files: {}, zstd: true}").unwrap_err();
        assert!(format!("{error:#}").contains("the field zstd is not known"));
    }
}
