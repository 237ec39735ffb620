//! The content store.

use mainstay_image::{
    digest::{Algorithm, Digest},
    manifest::{Descriptor, ImageIndex, ImageManifest, media_type as media},
    reference::ImageReference,
    store::{ImageStore, ImageStoreError, UntaggedManifests},
};
use std::{fs, time::Duration};

fn store() -> (tempfile::TempDir, ImageStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path().join("store")).unwrap();
    (folder, store)
}

fn partial(store: &ImageStore) -> usize {
    fs::read_dir(store.root().join("partial")).unwrap().count()
}

fn reference(text: &str) -> ImageReference {
    text.parse().unwrap()
}

/// An image of one layer.
fn image(store: &ImageStore, layer: &str) -> Descriptor {
    store.put(layer.as_bytes()).unwrap();
    store.put(b"{}").unwrap();
    let layers = vec![Descriptor::of(media::OCI_LAYER, layer.as_bytes())];
    let manifest = ImageManifest::oci(Descriptor::of(media::OCI_EMPTY, b"{}"), layers);
    store.put_json(media::OCI_MANIFEST, &manifest).unwrap()
}

#[test]
fn content_with_a_wrong_digest_or_size_is_not_stored() {
    let (_folder, store) = store();
    let wanted = Digest::of(b"content");
    let mut writer = store.writer(100).unwrap();
    writer.append(b"other").unwrap();
    assert!(matches!(writer.commit(Some(&wanted), None), Err(ImageStoreError::Digest { .. })));
    let mut writer = store.writer(100).unwrap();
    writer.append(b"cont").unwrap();
    assert!(matches!(
        writer.commit(Some(&wanted), Some(7)),
        Err(ImageStoreError::Size { found: 4, .. })
    ));
    let mut writer = store.writer(3).unwrap();
    assert!(matches!(writer.append(b"content"), Err(ImageStoreError::TooLong(3))));
    drop(writer);
    assert_eq!((store.size_of(&wanted).unwrap(), partial(&store)), (None, 0));
    store.take(&mut b"content".as_slice(), &wanted, Some(7)).unwrap();
    assert_eq!((store.size_of(&wanted).unwrap(), partial(&store)), (Some(7), 0));
    let mut long = store.writer_of(Algorithm::Sha512, 9).unwrap();
    long.append(b"content").unwrap();
    let digest = long.commit(None, None).unwrap();
    assert_eq!(store.bytes(&digest, 7).unwrap(), b"content");
    assert!(store.bytes(&digest, 6).is_err());
}

#[test]
fn unfinished_write_is_resumed() {
    let (_folder, store) = store();
    let wanted = Digest::of(b"content");
    let mut writer = store.resume(&wanted, 7).unwrap();
    assert_eq!(writer.length(), 0);
    writer.append(b"con").unwrap();
    // A concurrent writer starts from nothing, in a separate file.
    let mut other = store.resume(&wanted, 7).unwrap();
    assert_eq!(other.length(), 0);
    other.append(b"content").unwrap();
    other.commit(Some(&wanted), Some(7)).unwrap();
    drop(writer);
    let mut writer = store.resume(&wanted, 7).unwrap();
    assert_eq!(writer.length(), 3);
    writer.append(b"tent").unwrap();
    writer.commit(Some(&wanted), Some(7)).unwrap();
    assert_eq!((store.bytes(&wanted, 7).unwrap(), partial(&store)), (b"content".to_vec(), 0));
    // Content with a wrong digest is removed.
    let mut writer = store.resume(&wanted, 7).unwrap();
    writer.append(b"CONTENT").unwrap();
    writer.commit(Some(&wanted), Some(7)).unwrap_err();
    assert_eq!(store.resume(&wanted, 7).unwrap().length(), 0);
}

#[test]
fn damaged_documents_are_refused() {
    let (_folder, store) = store();
    let image = image(&store, "layer");
    fs::write(store.blob_path(&image.digest), b"{}").unwrap();
    assert!(matches!(store.document(&image.digest), Err(ImageStoreError::Digest { .. })));
    assert!(matches!(store.verify(&image.digest), Err(ImageStoreError::Digest { .. })));
    store.verify(&Digest::of(b"layer")).unwrap();
}

#[test]
fn references_resolve_to_manifests() {
    let (_folder, store) = store();
    let image = image(&store, "layer");
    let tagged = reference("quay.io/org/name:v1");
    assert_eq!(store.resolve(&tagged).unwrap(), None);
    store.set(&tagged, &image).unwrap();
    store.set(&reference("quay.io/org"), &image).unwrap();
    store.set(&tagged.with_digest(image.digest.clone()), &image).unwrap();
    assert_eq!(store.resolve(&tagged).unwrap(), Some(image.clone()));
    assert_eq!(store.repositories().unwrap(), ["quay.io/org", "quay.io/org/name"]);
    assert_eq!(store.tags("quay.io/org/name").unwrap(), ["v1"]);
    assert_eq!(store.tags("quay.io/org").unwrap(), ["latest"]);
    assert_eq!(store.references().unwrap().len(), 3);
    assert!(store.forget(&tagged).unwrap());
    assert!(!store.forget(&tagged).unwrap());
    let unknown = Descriptor::of(media::OCI_MANIFEST, b"unknown");
    assert!(matches!(store.set(&tagged, &unknown), Err(ImageStoreError::NoBlob(_))));
}

#[test]
fn unreferenced_content_is_collected_after_its_grace_period() {
    let (_folder, store) = store();
    let (kept, lost) = (image(&store, "kept"), image(&store, "lost"));
    let index = store.put_json(media::OCI_INDEX, &ImageIndex::oci(vec![kept.clone()])).unwrap();
    store.set(&reference("r.io/a:b"), &index).unwrap();
    let by_digest = reference("r.io/a").with_digest(lost.digest.clone());
    store.set(&by_digest, &lost).unwrap();
    let mut about = ImageManifest::oci(Descriptor::of(media::OCI_EMPTY, b"{}"), Vec::new());
    about.subject = Some(kept.clone());
    let about = store.put_json(media::OCI_MANIFEST, &about).unwrap();
    store.set(&reference("r.io/a").with_digest(about.digest.clone()), &about).unwrap();
    drop(store.resume(&Digest::of(b"never finished"), 9).unwrap());

    let past = jiff::Timestamp::from_second(1_000_000_000).unwrap();
    let future = jiff::Timestamp::from_second(30_000_000_000).unwrap();
    let hour = Duration::from_hours(1);
    let nothing = store.collect(past, hour, UntaggedManifests::Forget).unwrap();
    assert_eq!((nothing.blobs, nothing.unfinished), (0, 0), "all of it is fresh");
    let first = store.collect(future, hour, UntaggedManifests::Keep).unwrap();
    assert_eq!((first.blobs, first.unfinished), (0, 1));
    let second = store.collect(future, hour, UntaggedManifests::Forget).unwrap();
    assert_eq!(
        second.blobs, 2,
        "the lost manifest and its layer; the empty configuration is shared"
    );
    assert_eq!(store.resolve(&by_digest).unwrap(), None);
    store.verify(&Digest::of(b"kept")).unwrap();
    store.document(&about.digest).expect("its subject stays");
}

#[test]
fn concurrent_writes_of_the_same_content_succeed() {
    let (_folder, store) = store();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..20 {
                    let content = format!("{}", (round + number) % 10);
                    let digest = store.put(content.as_bytes()).unwrap();
                    assert_eq!(store.bytes(&digest, 10).unwrap(), content.as_bytes());
                }
            });
        }
    });
    assert_eq!(partial(&store), 0);
}
