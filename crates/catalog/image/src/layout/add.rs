//! Adding images to a layout that is there, as other tools do: a name that is given again means the
//! new image from then on, and what it meant before stays without a name.

use super::write::{VERSION, blobs, described, failed, write_folder};
use super::{Folder, IMAGE_NAME, LayoutError, Parts, REF_NAME, document, is_layout};
use crate::{
    digest::Digest,
    manifest::{self, Descriptor, Index, within},
    store::Store,
};
use serde_json::{Map, Value, json};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// Writes images, each with its name (which may be empty), into a layout in a folder, which is made if
/// it is not there.
///
/// # Errors
/// What cannot be read or written. A folder with something else in it is left as it is.
pub fn put_folder(
    store: &Store,
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
    // Who adds at the same time waits; whoever only reads finds the index of before or after.
    let lock = File::open(&version).map_err(failed("cannot read", &version))?;
    lock.lock().map_err(failed("cannot lock", &version))?;
    let index = index(path, images)?;
    for (digest, length) in blobs(store, &images.iter().map(|(_, one)| one).collect::<Vec<_>>())? {
        blob(store, path, &digest, length)?;
    }
    replace(&path.join("index.json"), |file| io::copy(&mut index.as_slice(), file).map(drop))
}

/// The index with the images in it.
fn index(path: &Path, images: &[(String, Descriptor)]) -> Result<Vec<u8>, LayoutError> {
    const NAME: &str = "index.json";
    let wrong = |error: serde_json::Error| document(path, NAME)(error.into());
    let read = Folder(path.to_owned()).bytes(NAME, manifest::LONGEST_MANIFEST)?;
    // Fields that are not known here stay.
    let mut index: Map<String, Value> = match read {
        Some(bytes) => {
            // Held to what an index is first.
            let _: Index = serde_json::from_slice(&bytes).map_err(wrong)?;
            serde_json::from_slice(&bytes).map_err(wrong)?
        }
        None => match json!(Index::oci(Vec::new())) {
            Value::Object(index) => index,
            _ => Map::new(),
        },
    };
    let mut manifests = match index.remove("manifests") {
        Some(Value::Array(manifests)) => manifests,
        _ => Vec::new(),
    };
    for (name, descriptor) in images {
        let added = described(name, descriptor);
        let text = |value: &Value, key: &str| value["annotations"][key].as_str().map(str::to_owned);
        let (short, whole) =
            (added.annotations.get(REF_NAME).cloned(), added.annotations.get(IMAGE_NAME).cloned());
        for known in manifests.iter_mut().filter(|_| short.is_some()) {
            let other = text(known, IMAGE_NAME);
            let is_other = whole.is_some() && other.is_some() && whole != other;
            if text(known, REF_NAME) == short && !is_other {
                unname(known);
            }
        }
        let digest = added.digest.to_string();
        let same = manifests
            .iter_mut()
            .find(|known| known["digest"] == *digest && text(known, REF_NAME).is_none());
        let added = serde_json::to_value(&added).map_err(wrong)?;
        match same {
            Some(known) => *known = added,
            None => manifests.push(added),
        }
    }
    index.insert("manifests".to_owned(), Value::Array(manifests));
    let bytes = serde_json::to_vec(&index).map_err(wrong)?;
    within(bytes.len() as u64, manifest::LONGEST_MANIFEST).map_err(document(path, NAME))?;
    Ok(bytes)
}

/// Takes the names of an entry away.
fn unname(entry: &mut Value) {
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

/// Writes a blob that is not there in this length.
fn blob(store: &Store, path: &Path, digest: &Digest, length: u64) -> Result<(), LayoutError> {
    let folder = path.join("blobs");
    let target = path.join(super::blob_name(digest));
    for folder in [&folder, &folder.join(digest.algorithm().name())] {
        own_folder(folder)?;
    }
    let there = target.symlink_metadata();
    if there.is_ok_and(|there| there.is_file() && there.len() == length) {
        return Ok(());
    }
    let (mut from, _) = store.blob(digest)?;
    replace(&target, |file| io::copy(&mut from, file).map(drop))
}

/// Makes a folder, or makes sure that it is one: what is written below stays in the layout.
fn own_folder(path: &Path) -> Result<(), LayoutError> {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(failed("cannot write into", path)(io::Error::other(
            "it is no folder of the layout",
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(path).map_err(failed("cannot make", path))
        }
        Err(error) => Err(failed("cannot read", path)(error)),
    }
}

/// Writes a file aside and puts it into its place.
fn replace(
    target: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), LayoutError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        failed("cannot name a file beside", target)(io::Error::other(error.to_string()))
    })?;
    let mut aside = target.as_os_str().to_owned();
    aside.push(format!(".{}.partial", crate::digest::hex(&random)));
    let aside = PathBuf::from(aside);
    let written = File::create_new(&aside)
        .and_then(|mut file| write(&mut file).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&aside, target));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written.map_err(failed("cannot write", target))
}
