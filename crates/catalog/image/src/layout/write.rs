//! Reproducible writing of layouts and archives: the same images and names give the same bytes.

use super::{IMAGE_NAME, LayoutError, REF_NAME, docker, missing};
use crate::{
    build::header,
    compress,
    digest::Digest,
    manifest::{DEEPEST_INDEX, Descriptor, ImageConfig, ImageDocument, ImageIndex, ImageManifest},
    reference::ImageReference,
    store::ImageStore,
};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufWriter, Read, Seek as _, Write},
    path::Path,
};
use tar::{Builder, EntryType};

pub(super) const VERSION: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

pub(super) fn failed<'p>(
    what: &'static str,
    path: &'p Path,
) -> impl FnOnce(io::Error) -> LayoutError + use<'p> {
    move |source| LayoutError::Io { what, path: path.to_owned(), source }
}

/// All blobs of some images with their lengths, sorted by digest.
pub(super) fn blobs(
    store: &ImageStore,
    images: &[&Descriptor],
) -> Result<BTreeMap<Digest, u64>, LayoutError> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(Descriptor, usize)> =
        images.iter().map(|image| ((*image).clone(), 0)).collect();
    while let Some((descriptor, depth)) = open.pop() {
        if depth > DEEPEST_INDEX {
            return Err(LayoutError::TooDeep);
        }
        let document = store.document_of(&descriptor)?;
        found.insert(descriptor.digest.clone(), store.blob(&descriptor.digest)?.1);
        for part in document.parts() {
            match &document {
                ImageDocument::Index(_) => open.push((part.clone(), depth + 1)),
                ImageDocument::Manifest(_) => {
                    found.insert(part.digest.clone(), store.blob(&part.digest)?.1);
                }
            }
        }
    }
    Ok(found)
}

/// The entry of an image in the index of a layout. A whole reference is also written in
/// containerd's annotation; its tag is the name in the layout.
pub(super) fn describe(name: &str, descriptor: &Descriptor) -> Descriptor {
    let mut descriptor = descriptor.clone();
    if !name.is_empty() {
        let whole = name.contains('/').then(|| name.parse::<ImageReference>().ok()).flatten();
        let short = whole.as_ref().and_then(|whole| whole.tag_or_default());
        let short = short.unwrap_or(name).to_owned();
        descriptor.annotations.insert(REF_NAME.to_owned(), short);
        if let Some(whole) = whole {
            descriptor.annotations.insert(IMAGE_NAME.to_owned(), whole.to_string());
        }
    }
    descriptor
}

/// The index of a layout.
fn index(images: &[(String, Descriptor)]) -> Result<Vec<u8>, LayoutError> {
    let manifests = images.iter().map(|(name, descriptor)| describe(name, descriptor)).collect();
    serde_json::to_vec(&ImageIndex::oci(manifests)).map_err(|source| LayoutError::Document {
        path: "index.json".into(),
        name: String::new(),
        source: source.into(),
    })
}

/// Writes images, each with its name (which may be empty), as a layout in a new folder. The folder
/// is written under a temporary name and renamed.
pub fn write_folder(
    store: &ImageStore,
    images: &[(String, Descriptor)],
    path: &Path,
) -> Result<(), LayoutError> {
    if path.symlink_metadata().is_ok() {
        return Err(LayoutError::Exists(path.to_owned()));
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        failed("cannot name a folder beside", path)(io::Error::other(error.to_string()))
    })?;
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.partial", crate::digest::hex(&random)));
    let temporary = Path::new(&temporary);
    let written = fill_folder(store, images, temporary)
        .and_then(|()| fs::rename(temporary, path).map_err(failed("cannot make", path)));
    if written.is_err() {
        let _ = fs::remove_dir_all(temporary);
    }
    written
}

fn fill_folder(
    store: &ImageStore,
    images: &[(String, Descriptor)],
    path: &Path,
) -> Result<(), LayoutError> {
    let blobs = blobs(store, &images.iter().map(|(_, image)| image).collect::<Vec<_>>())?;
    fs::create_dir_all(path.join("blobs/sha256")).map_err(failed("cannot make", path))?;
    for digest in blobs.keys() {
        let target = path.join(super::blob_name(digest));
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(failed("cannot make", folder))?;
        }
        let (mut from, _) = store.blob(digest)?;
        let mut to = File::create_new(&target).map_err(failed("cannot make", &target))?;
        io::copy(&mut from, &mut to).map_err(failed("cannot write", &target))?;
        to.sync_all().map_err(failed("cannot flush", &target))?;
    }
    for (name, content) in [("index.json", index(images)?), ("oci-layout", VERSION.to_vec())] {
        let target = path.join(name);
        fs::write(&target, content).map_err(failed("cannot write", &target))?;
    }
    Ok(())
}

/// Writes images as a layout in a tar archive (`oci-archive`).
pub fn write_archive(
    store: &ImageStore,
    images: &[(String, Descriptor)],
    out: impl Write,
) -> Result<(), LayoutError> {
    let path = Path::new("the archive");
    let failed_write = || failed("cannot write", path);
    let blobs = blobs(store, &images.iter().map(|(_, image)| image).collect::<Vec<_>>())?;
    let mut archive = Builder::new(BufWriter::new(out));
    let folder = |archive: &mut Builder<_>, name: &str| {
        archive.append_data(&mut header(EntryType::Directory, 0o755, 0), name, io::empty())
    };
    folder(&mut archive, "blobs/").map_err(failed_write())?;
    let mut last = None;
    for (digest, length) in &blobs {
        if last != Some(digest.algorithm()) {
            last = Some(digest.algorithm());
            let name = format!("blobs/{}/", digest.algorithm().name());
            folder(&mut archive, &name).map_err(failed_write())?;
        }
        let (file, _) = store.blob(digest)?;
        append(&mut archive, &super::blob_name(digest), *length, file).map_err(failed_write())?;
    }
    for (name, content) in [("index.json", index(images)?), ("oci-layout", VERSION.to_vec())] {
        append(&mut archive, name, content.len() as u64, content.as_slice())
            .map_err(failed_write())?;
    }
    let mut out = archive.into_inner().map_err(failed_write())?;
    out.flush().map_err(failed_write())
}

fn append(
    archive: &mut Builder<impl Write>,
    name: &str,
    length: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = header(EntryType::Regular, 0o644, length);
    archive.append_data(&mut header, name, content.take(length))
}

/// Writes images, each with its names, in the format of `docker save`, which `docker load` and
/// `podman load` read. Layers are written uncompressed.
pub fn write_docker_archive(
    store: &ImageStore,
    images: &[(Vec<String>, Descriptor)],
    out: impl Write,
) -> Result<(), LayoutError> {
    let path = Path::new("the archive");
    let failed_write = || failed("cannot write", path);
    let mut archive = Builder::new(BufWriter::new(out));
    let mut written = std::collections::BTreeSet::new();
    let mut list = Vec::new();
    for (names, descriptor) in images {
        let manifest: ImageManifest = match store.document_of(descriptor)? {
            ImageDocument::Manifest(manifest) => manifest,
            // The format has one image for each name.
            ImageDocument::Index(_) => return Err(missing(path, "image for one platform")),
        };
        let bytes = store.bytes(&manifest.config.digest, crate::manifest::LONGEST_CONFIG)?;
        let config: ImageConfig = store.config(&manifest)?;
        let mut layers = Vec::new();
        for (layer, diff_id) in manifest.layers.iter().zip(&config.rootfs.diff_ids) {
            let name = format!("{}.tar", diff_id.hex());
            if written.insert(name.clone()) {
                let (file, _) = store.blob(&layer.digest)?;
                let mut plain = compress::open(file).map_err(failed_write())?;
                // The length must be known before the content is written.
                let mut spool = store.writer(u64::MAX)?.file().map_err(failed_write())?;
                let length = io::copy(&mut plain, &mut spool).map_err(failed_write())?;
                spool.rewind().map_err(failed_write())?;
                append(&mut archive, &name, length, spool).map_err(failed_write())?;
            }
            layers.push(name);
        }
        let name = format!("{}.json", manifest.config.digest.hex());
        if written.insert(name.clone()) {
            append(&mut archive, &name, bytes.len() as u64, bytes.as_slice())
                .map_err(failed_write())?;
        }
        let tags = Some(names.clone()).filter(|names| !names.is_empty());
        list.push(docker::Image { config: name, repo_tags: tags, layers });
    }
    let list = serde_json::to_vec(&list).map_err(|error| failed_write()(error.into()))?;
    append(&mut archive, "manifest.json", list.len() as u64, list.as_slice())
        .map_err(failed_write())?;
    let mut out = archive.into_inner().map_err(failed_write())?;
    out.flush().map_err(failed_write())
}
