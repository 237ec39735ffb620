//! Archives of `docker save`: a list of images, configurations, and uncompressed layers.

use super::{LayoutError, NamedImage, Parts, document, missing};
use crate::{
    compress::{self, Compression},
    digest::Hasher,
    manifest::{self, Descriptor, ImageConfig, ImageManifest, media_type},
    store::ImageStore,
};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// An entry of the list of images.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Image {
    pub(super) config: String,
    pub(super) repo_tags: Option<Vec<String>>,
    #[serde(default)]
    pub(super) layers: Vec<String>,
}

pub(super) fn read(
    store: &ImageStore,
    parts: &dyn Parts,
    list: &[u8],
) -> Result<Vec<NamedImage>, LayoutError> {
    let images: Vec<Image> = serde_json::from_slice(list)
        .map_err(|error| document(parts.path(), "manifest.json")(error.into()))?;
    images.into_iter().map(|image| read_image(store, parts, image)).collect()
}

fn read_image(
    store: &ImageStore,
    parts: &dyn Parts,
    image: Image,
) -> Result<NamedImage, LayoutError> {
    let bytes = parts.require(&image.config, manifest::LONGEST_CONFIG)?;
    let read: ImageConfig = serde_json::from_slice(&bytes)
        .map_err(|error| document(parts.path(), &image.config)(error.into()))?;
    let (wanted, there) = (read.rootfs.diff_ids.len(), image.layers.len());
    if wanted != there {
        let error = manifest::ImageManifestError::LayerCount { config: wanted, manifest: there };
        return Err(document(parts.path(), &image.config)(error));
    }
    store.put(&bytes)?;
    let config = Descriptor::of(media_type::DOCKER_CONFIG, &bytes);
    let mut layers = Vec::new();
    for (name, wanted) in image.layers.iter().zip(read.rootfs.diff_ids) {
        let failed = |source| LayoutError::Io {
            what: "cannot read a layer of",
            path: parts.path().to_owned(),
            source,
        };
        let Some((content, size)) = parts.open(name)? else {
            return Err(missing(parts.path(), name));
        };
        let mut opened = compress::open(content).map_err(failed)?;
        let compression = opened.compression();
        let mut diff = Hasher::new(wanted.algorithm());
        let mut buffer = vec![0; 1 << 16];
        // The layer is hashed before it is stored, so that a wrong one never enters the store.
        loop {
            match opened.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => diff.update(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let found = diff.finish();
        if found != wanted {
            let (path, name) = (parts.path().to_owned(), name.clone());
            return Err(LayoutError::DiffId { path, name, wanted, found });
        }
        drop(opened);
        let Some((mut content, _)) = parts.open(name)? else {
            return Err(missing(parts.path(), name));
        };
        let mut writer = store.writer(size)?;
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    writer.append(&buffer[..count])?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let digest = writer.commit(None, Some(size))?;
        let format = match compression {
            Compression::None => media_type::DOCKER_LAYER,
            Compression::Gzip => media_type::DOCKER_LAYER_GZIP,
            Compression::Zstd => media_type::OCI_LAYER_ZSTD,
        };
        layers.push(Descriptor::new(format, digest, size));
    }
    let mut manifest = ImageManifest::oci(config, layers);
    media_type::DOCKER_MANIFEST.clone_into(&mut manifest.media_type);
    let descriptor = store.put_json(media_type::DOCKER_MANIFEST, &manifest)?;
    Ok(NamedImage { names: image.repo_tags.unwrap_or_default(), descriptor })
}
