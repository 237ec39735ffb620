//! Adding images to an existing layout, as other tools do. A reused name refers to the new image;
//! the old image stays in the layout without a name.

use super::write::{VERSION, blobs, describe, failed, write_folder};
use super::{Folder, IMAGE_NAME, LayoutError, Parts, REF_NAME, document, is_layout};
use crate::{
    digest::Digest,
    manifest::{self, Descriptor, ImageIndex, within},
    store::ImageStore,
};
use serde_json::{Map, Value, json};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// Writes images, each with its name (which may be empty), into a layout in a folder. Creates the
/// folder if it does not exist.
///
/// # Errors
/// If something cannot be read or written. A folder with other content stays unchanged.
pub fn put_folder(
    store: &ImageStore,
    images: &[(String, Descriptor)],
    path: &Path,
) -> Result<(), LayoutError> {
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return write_folder(store, images, path);
        }
        _ => return Err(LayoutError::Exists(path.to_owned())),
    }
    let mut entries = fs::read_dir(path).map_err(failed("cannot read", path))?;
    let version = path.join("oci-layout");
    if entries.next().is_none() {
        fs::write(&version, VERSION).map_err(failed("cannot write", &version))?;
    } else if !is_layout(&Folder(path.to_owned()))? {
        return Err(LayoutError::Exists(path.to_owned()));
    }
    // Concurrent writers wait; readers see the index of before or after.
    let lock = File::open(&version).map_err(failed("cannot read", &version))?;
    lock.lock().map_err(failed("cannot lock", &version))?;
    let index = index(path, images)?;
    for (digest, length) in blobs(store, &images.iter().map(|(_, one)| one).collect::<Vec<_>>())? {
        blob(store, path, &digest, length)?;
    }
    replace(&path.join("index.json"), |file| io::copy(&mut index.as_slice(), file).map(drop))
}

/// The index with the added images.
fn index(path: &Path, images: &[(String, Descriptor)]) -> Result<Vec<u8>, LayoutError> {
    const NAME: &str = "index.json";
    let wrong = |error: serde_json::Error| document(path, NAME)(error.into());
    let read = Folder(path.to_owned()).bytes(NAME, manifest::LONGEST_MANIFEST)?;
    // Unknown fields are preserved.
    let mut index: Map<String, Value> = match read {
        Some(bytes) => {
            // This checks that the document is an index.
            let _: ImageIndex = serde_json::from_slice(&bytes).map_err(wrong)?;
            serde_json::from_slice(&bytes).map_err(wrong)?
        }
        None => match json!(ImageIndex::oci(Vec::new())) {
            Value::Object(index) => index,
            _ => Map::new(),
        },
    };
    let mut manifests = match index.remove("manifests") {
        Some(Value::Array(manifests)) => manifests,
        _ => Vec::new(),
    };
    for (name, descriptor) in images {
        let added = describe(name, descriptor);
        let text = |value: &Value, key: &str| value["annotations"][key].as_str().map(str::to_owned);
        let (short, whole) =
            (added.annotations.get(REF_NAME).cloned(), added.annotations.get(IMAGE_NAME).cloned());
        for entry in manifests.iter_mut().filter(|_| short.is_some()) {
            let other = text(entry, IMAGE_NAME);
            let is_other = whole.is_some() && other.is_some() && whole != other;
            if text(entry, REF_NAME) == short && !is_other {
                remove_names(entry);
            }
        }
        let digest = added.digest.to_string();
        let same = manifests
            .iter_mut()
            .find(|entry| entry["digest"] == *digest && text(entry, REF_NAME).is_none());
        let added = serde_json::to_value(&added).map_err(wrong)?;
        match same {
            Some(entry) => *entry = added,
            None => manifests.push(added),
        }
    }
    index.insert("manifests".to_owned(), Value::Array(manifests));
    let bytes = serde_json::to_vec(&index).map_err(wrong)?;
    within(bytes.len() as u64, manifest::LONGEST_MANIFEST).map_err(document(path, NAME))?;
    Ok(bytes)
}

/// Removes the names of an entry.
fn remove_names(entry: &mut Value) {
    let Some(annotations) = entry.get_mut("annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.remove(REF_NAME);
    annotations.remove(IMAGE_NAME);
    if annotations.is_empty()
        && let Some(entry) = entry.as_object_mut()
    {
        entry.remove("annotations");
    }
}

/// Writes a blob, unless a file of its length exists.
fn blob(store: &ImageStore, path: &Path, digest: &Digest, length: u64) -> Result<(), LayoutError> {
    let folder = path.join("blobs");
    let target = path.join(super::blob_name(digest));
    for folder in [&folder, &folder.join(digest.algorithm().name())] {
        ensure_folder(folder)?;
    }
    let existing = target.symlink_metadata();
    if existing.is_ok_and(|existing| existing.is_file() && existing.len() == length) {
        return Ok(());
    }
    let (mut from, _) = store.blob(digest)?;
    replace(&target, |file| io::copy(&mut from, file).map(drop))
}

/// Creates a folder, or checks that it is no symbolic link: files below must stay in the layout.
fn ensure_folder(path: &Path) -> Result<(), LayoutError> {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(failed("cannot write into", path)(io::Error::other(
            "it is not a folder of the layout",
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(path).map_err(failed("cannot make", path))
        }
        Err(error) => Err(failed("cannot read", path)(error)),
    }
}

/// Writes a temporary file beside the target and renames it.
fn replace(
    target: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), LayoutError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        failed("cannot name a file beside", target)(io::Error::other(error.to_string()))
    })?;
    let mut temporary = target.as_os_str().to_owned();
    temporary.push(format!(".{}.partial", crate::digest::hex(&random)));
    let temporary = PathBuf::from(temporary);
    let written = File::create_new(&temporary)
        .and_then(|mut file| write(&mut file).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed("cannot write", target))
}
