//! Image layouts and archives.

use crate::tarball::{archive, file, gzip, symlink};
use mainstay_image::{
    build::{self, LayerFiles},
    digest::Digest,
    layout::{self, NamedImage},
    manifest::{Descriptor, ImageConfig, ImageDocument, ImageIndex, media_type as media},
    platform::Platform,
    store::ImageStore,
    unpack::{self, Options},
};
use serde_json::json;
use std::{fs, path::Path};

pub(crate) fn sample(store: &ImageStore, text: &str) -> Descriptor {
    let mut files = LayerFiles::default();
    files.add("manifests/csv.yaml", text).unwrap();
    files.add(&format!("metadata/{}.yaml", "long".repeat(40)), "x").unwrap();
    let layer = build::layer(store, &files).unwrap();
    let mut config = ImageConfig::default();
    config.config.labels.insert("a".to_owned(), "b".to_owned());
    build::image(store, Platform::linux("amd64"), config, &[layer]).unwrap()
}

fn names(read: &[NamedImage]) -> Vec<String> {
    read.iter().flat_map(|one| one.names.clone()).collect()
}

#[test]
fn same_files_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for round in ["one", "two"] {
        let store = ImageStore::open(folder.path().join(round)).unwrap();
        let image = sample(&store, "text");
        let mut bytes = Vec::new();
        layout::write_archive(&store, &[("v1".to_owned(), image.clone())], &mut bytes).unwrap();
        seen.push((image.digest, Digest::of(&bytes)));
    }
    assert_eq!(seen[0], seen[1]);
    let mut files = LayerFiles::default();
    for name in ["/a", "a/../b", "", "a//b", ".wh.a", "a/"] {
        assert!(files.add(name, "x").is_err(), "{name}");
    }
}

#[test]
fn images_are_written_and_read_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path().join("store")).unwrap();
    let (first, second) = (sample(&store, "first"), sample(&store, "second"));
    let index = ImageIndex::oci(vec![first.clone(), second.clone()]);
    let index = store.put_json(media::OCI_INDEX, &index).unwrap();
    let images = [("v1".to_owned(), index.clone()), ("quay.io/a/b:v2".to_owned(), second.clone())];
    let (as_folder, as_archive) = (folder.path().join("layout"), folder.path().join("layout.tar"));
    layout::write_folder(&store, &images, &as_folder).unwrap();
    assert!(layout::write_folder(&store, &images, &as_folder).is_err(), "the folder exists");
    layout::write_archive(&store, &images, fs::File::create(&as_archive).unwrap()).unwrap();
    let packed = folder.path().join("layout.tar.gz");
    fs::write(&packed, gzip(&fs::read(&as_archive).unwrap())).unwrap();
    for (round, path) in [as_folder, as_archive, packed].iter().enumerate() {
        let other = ImageStore::open(folder.path().join(format!("other{round}"))).unwrap();
        let read = layout::read(&other, path).unwrap();
        assert_eq!(names(&read), ["v1", "v2", "quay.io/a/b:v2"]);
        assert_eq!(read[0].descriptor.digest, index.digest);
        assert_eq!(fs::read_dir(other.root().join("partial")).unwrap().count(), 0);
        let ImageDocument::Manifest(manifest) = other.document(&first.digest).unwrap() else {
            panic!()
        };
        let config = other.config(&manifest).unwrap();
        assert_eq!(config.config.labels["a"], "b");
        let target = folder.path().join(format!("unpacked{round}"));
        unpack::image(&other, &manifest, &config, &target, Options::default()).unwrap();
        assert_eq!(fs::read_to_string(target.join("manifests/csv.yaml")).unwrap(), "first");
    }
}

#[test]
fn docker_archives_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path().join("store")).unwrap();
    let image = sample(&store, "text");
    let path = folder.path().join("image.tar");
    let images = [(vec!["quay.io/a/b:v1".to_owned()], image)];
    layout::write_docker_archive(&store, &images, fs::File::create(&path).unwrap()).unwrap();
    let other = ImageStore::open(folder.path().join("other")).unwrap();
    let read = layout::read(&other, &path).unwrap();
    assert_eq!(names(&read), ["quay.io/a/b:v1"]);
    let digest = &read[0].descriptor.digest;
    let ImageDocument::Manifest(manifest) = other.document(digest).unwrap() else { panic!() };
    assert_eq!(manifest.media_type, media::DOCKER_MANIFEST);
    let config = other.config(&manifest).unwrap();
    let target = folder.path().join("unpacked");
    unpack::image(&other, &manifest, &config, &target, Options::default()).unwrap();
    assert_eq!(fs::read_to_string(target.join("manifests/csv.yaml")).unwrap(), "text");
}

/// A Docker archive with one layer, configurable for cases.
fn docker(layer: &[u8], diff: &Digest, link: bool) -> Vec<u8> {
    let config = json!({"rootfs": {"type": "layers", "diff_ids": [diff]}}).to_string();
    let list = json!([{"Config": "c.json", "RepoTags": null, "Layers": ["x/layer.tar"]}]);
    let mut real = file("y/layer.tar", "");
    real.content = layer.to_vec();
    if !link {
        real.name = b"x/layer.tar".to_vec();
    }
    let mut entries = vec![file("manifest.json", &list.to_string()), file("c.json", &config), real];
    if link {
        entries.push(symlink("x/layer.tar", "../y/layer.tar"));
    }
    archive(&entries)
}

#[test]
fn hostile_layouts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let layer = archive(&[file("a", "b")]);
    let diff = Digest::of(&layer);
    let good = json!({"imageLayoutVersion": "1.0.0"}).to_string();
    let image = |media: &str, digest: &Digest, size: usize| {
        json!({"schemaVersion": 2, "manifests": [{"mediaType": media, "digest": digest, "size": size}]})
            .to_string()
    };
    let manifest = |digest: &Digest| {
        let part = json!({"mediaType": "x", "digest": digest, "size": 1});
        json!({"schemaVersion": 2, "config": part, "layers": []}).to_string()
    };
    let lost = manifest(&Digest::of(b"lost"));
    let blob = |text: &str| format!("blobs/sha256/{}", Digest::of(text.as_bytes()).hex());
    let oci = |parts: &[(&str, &str)]| {
        archive(&parts.iter().map(|(name, text)| file(name, text)).collect::<Vec<_>>())
    };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("nothing", archive(&[file("a", "b")]), "neither an oci-layout nor a manifest.json"),
        ("no tar", b"no archive".to_vec(), "ends within an entry"),
        ("later", oci(&[("oci-layout", r#"{"imageLayoutVersion":"2"}"#)]), "version \"2\""),
        ("no index", oci(&[("oci-layout", &good)]), "has no index.json"),
        (
            "no manifest",
            oci(&[("oci-layout", &good), ("index.json", &image(media::OCI_MANIFEST, &diff, 1))]),
            "has no blobs/sha256/",
        ),
        (
            "wrong digest",
            oci(&[
                ("oci-layout", &good),
                ("index.json", &image(media::OCI_MANIFEST, &diff, 1)),
                (&format!("blobs/sha256/{}", diff.hex()), "{}"),
            ]),
            "the content has digest",
        ),
        (
            "no configuration",
            oci(&[
                ("oci-layout", &good),
                (
                    "index.json",
                    &image(media::OCI_MANIFEST, &Digest::of(lost.as_bytes()), lost.len()),
                ),
                (&blob(&lost), &lost),
            ]),
            "has no blobs/sha256/",
        ),
        (
            "another format than announced",
            oci(&[
                ("oci-layout", &good),
                ("index.json", &image(media::OCI_INDEX, &Digest::of(lost.as_bytes()), lost.len())),
                (&blob(&lost), &lost),
            ]),
            "so it is ambiguous",
        ),
        ("large", oci(&[("oci-layout", &" ".repeat(5000))]), "4096 are allowed"),
        ("wrong layer", docker(&layer, &Digest::of(b"other"), false), "has diff id"),
        ("a list that is none", oci(&[("manifest.json", "{}")]), "manifest.json: it is not valid"),
        (
            "a link in a circle",
            archive(&[symlink("manifest.json", "b"), symlink("b", "manifest.json")]),
            "neither an oci-layout",
        ),
        (
            "a link out",
            archive(&[symlink("manifest.json", "../../../../etc/passwd")]),
            "neither an oci-layout",
        ),
    ];
    for (name, bytes, want) in cases {
        let path = folder.path().join("archive.tar");
        fs::write(&path, bytes).unwrap();
        let store = ImageStore::open(folder.path().join(format!("store of {name}"))).unwrap();
        let error = layout::read(&store, &path).expect_err(name).to_string();
        assert!(error.contains(want), "{name}: {error}");
        assert_eq!(count(store.root()), 0, "{name}");
    }
    let path = folder.path().join("archive.tar");
    fs::write(&path, docker(&layer, &diff, true)).unwrap();
    let store = ImageStore::open(folder.path().join("store")).unwrap();
    assert_eq!(layout::read(&store, &path).unwrap().len(), 1, "links within the archive are read");
}

/// The number of unfinished writes.
fn count(root: &Path) -> usize {
    fs::read_dir(root.join("partial")).unwrap().count()
}
