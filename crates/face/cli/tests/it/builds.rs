//! `mainstay bundle build` and `mainstay catalog build`: content and digests of the images.

use mainstay_clitest::{
    ANNOTATIONS, CSV, CommandOutput, LoopbackRegistry, SOUND_CATALOG, TestFolder,
};
use std::fs;

#[test]
fn bundle_annotations_are_the_labels_of_its_image() {
    let place = TestFolder::with_bundle();
    let built = place.bundle("build b oci:out:v1 -o json").json();
    assert_eq!(built["image"], "oci:out:v1");
    assert_eq!(built["platforms"][0], "linux/amd64");
    let seen = place.image("inspect oci:out -o json").json();
    assert_eq!(seen["digest"], built["digest"]);
    assert_eq!(seen["holds"], "bundle of kiwi");
    assert_eq!(seen["labels"], built["labels"]);
    let labels = seen["labels"].as_object().unwrap();
    assert_eq!(labels.len(), 7);
    for line in ANNOTATIONS.lines().skip(1) {
        let (key, value) = line.trim().split_once(": ").unwrap();
        assert_eq!(labels[key], value);
    }
}

#[test]
fn bundle_image_has_manifests_metadata_and_annotated_tests() {
    let place =
        TestFolder::with_bundle().file("b/metadata/.hidden", "x").file("b/tests/other", "x");
    assert_eq!(place.bundle("build b oci:out").code, 0);
    let answer = place.image("unpack oci:out files -o json");
    assert_eq!(answer.json()["entries"], 8, "{answer:?}");
    let read = |name: &str| fs::read_to_string(place.path().join("files").join(name)).ok();
    assert_eq!(read("manifests/csv.yaml").as_deref(), Some(CSV));
    assert!(read("metadata/.hidden").is_some() && read("tests/scorecard/config.yaml").is_some());
    assert!(read("README.md").is_none() && read("tests/other").is_none());
    assert_eq!(place.catalog("validate files").code, 0);
}

#[test]
fn digest_of_a_folder_does_not_depend_on_time_or_place() {
    // Pinned: a change in the image format changes the digest of every image.
    let pinned = "sha256:1ef7a5985c9e90f106ec690ed931e64c386aacfad3eba4dddc648390ec19ca31";
    for target in ["oci:out:v1", "oci-archive:out.tar", "store:quay.io/a/kiwi:v1"] {
        let place = TestFolder::with_bundle();
        // Times and permissions of files do not count.
        let file = place.path().join("b/manifests/csv.yaml");
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        fs::set_permissions(&file, mode).unwrap();
        fs::File::open(&file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let answer = place.bundle(&format!("build b {target}"));
        assert_eq!(
            (answer.code, answer.out),
            (0, format!("{target} {pinned}\n")),
            "{}",
            answer.err
        );
    }
}

#[test]
fn bundle_with_errors_is_refused_unless_forced() {
    let broken = CSV.replace("minKubeVersion: 1.25.0", "minKubeVersion: v1.25");
    let place = TestFolder::with_bundle().file("b/manifests/csv.yaml", broken);
    let answer = place.bundle("build b oci:out");
    assert_eq!((answer.code, answer.out.as_str()), (1, ""));
    insta::assert_snapshot!(answer.err, @"
    b/manifests/csv.yaml:9: error: csv.Spec.MinKubeVersion has an invalid value: v1.25 [csv]
        write a version such as 1.25.0

    RULE   ERRORS   WARNINGS
    csv    1        0

    PACKAGE   ERRORS   WARNINGS
    kiwi      1        0

    1 error
    error: b: the bundle has errors
      → correct them
      → build the image anyway with --force
    ");
    assert!(!place.path().join("out").exists());
    assert_eq!(place.bundle("build b oci:out --force").code, 0);
    assert!(place.path().join("out/index.json").exists());
}

#[test]
fn folder_without_a_bundle_is_refused_even_with_force() {
    let place = TestFolder::new().file("b/manifests/x.yaml", "kind: A\napiVersion: v1\n");
    let answer =
        place.file("b/metadata/annotations.yaml", ANNOTATIONS).bundle("build b oci:out --force");
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("b/manifests: no csv in bundle"), "{}", answer.err);
    let place = TestFolder::with_bundle();
    std::os::unix::fs::symlink("/etc/passwd", place.path().join("b/metadata/passwd")).unwrap();
    let answer = place.bundle("build b oci:out --force");
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("the symbolic link leaves the bundle"), "{}", answer.err);
    assert!(!place.path().join("out").exists());
}

#[test]
fn added_labels_must_not_contradict_those_of_the_bundle() {
    let place = TestFolder::with_bundle();
    let built = place.bundle("build b oci:out --label org.example.x=y=z -o json").json();
    assert_eq!(built["labels"]["org.example.x"], "y=z");
    for (label, wanted) in [
        ("operators.operatorframework.io.bundle.package.v1=other", "to \"kiwi\""),
        ("nothing", "`nothing` is not a label"),
    ] {
        let answer = place.bundle(&format!("build b oci:other --label {label}"));
        assert_eq!(answer.code, 2);
        assert!(answer.err.contains(wanted), "{}", answer.err);
    }
}

#[test]
fn catalog_image_is_an_index_of_the_same_files_for_every_architecture() {
    let place = TestFolder::with(SOUND_CATALOG)
        .file("c/.indexignore", "*.md\n")
        .file("c/notes.md", "not a catalog")
        .file("c/more/empty.yaml", "");
    let built = place.catalog("build c oci:out:v1 -o json").json();
    assert_eq!(
        built["platforms"],
        serde_json::json!(["linux/amd64", "linux/arm64", "linux/ppc64le", "linux/s390x"])
    );
    for platform in ["linux/amd64", "linux/s390x"] {
        let seen = place.image(&format!("inspect oci:out -o json --platform {platform}")).json();
        assert_eq!(seen["platform"], platform);
        assert_eq!(seen["holds"], "catalog in /configs");
        let label = "operators.operatorframework.io.index.configs.v1";
        assert_eq!(seen["labels"], serde_json::json!({ label: "/configs" }));
    }
    let unpacked = place.image("unpack oci:out files --only configs --platform linux/arm64");
    assert_eq!(unpacked.code, 0, "{}", unpacked.err);
    let file = |name: &str| place.path().join("files/configs").join(name);
    assert_eq!(fs::read_to_string(file("catalog.yaml")).unwrap(), SOUND_CATALOG);
    assert!(!file("notes.md").exists());
    assert!(file("more/empty.yaml").exists());
    assert_eq!(place.catalog("validate files/configs").code, 0);
    // One platform is an image, not an index.
    let built = place.catalog("build c oci:one --platform linux/amd64 -o json").json();
    assert_eq!(built["mediaType"], "application/vnd.oci.image.manifest.v1+json");
}

#[test]
fn catalog_with_errors_is_refused_unless_forced() {
    let place = TestFolder::with(
        &SOUND_CATALOG.replace("defaultChannel: preview", "defaultChannel: other"),
    );
    let answer = place.catalog("build c oci:out");
    assert_eq!((answer.code, answer.out.as_str()), (1, ""));
    assert!(answer.err.contains("error: c: the catalog has errors"), "{}", answer.err);
    assert_eq!(place.catalog("build c oci:out --force").code, 0);
    let answer = TestFolder::with_bundle().catalog("build b oci:out");
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("mainstay bundle build b"), "{}", answer.err);
}

#[test]
fn layout_holds_several_images_and_a_name_means_the_last_one() {
    let place = TestFolder::with_bundle().file("c/catalog.yaml", SOUND_CATALOG);
    let digest = |answer: &CommandOutput| answer.json()["digest"].as_str().unwrap().to_owned();
    let kiwi = digest(&place.bundle("build b oci:out:kiwi -o json"));
    let first = digest(&place.catalog("build c oci:out:catalog -o json"));
    // Building again changes nothing.
    let index = || fs::read(place.path().join("out/index.json")).unwrap();
    let before = index();
    assert_eq!(digest(&place.catalog("build c oci:out:catalog -o json")), first);
    assert!(index() == before);
    let place = place.file("c/more.yaml", "");
    let second = digest(&place.catalog("build c oci:out:catalog -o json"));
    assert_ne!(first, second);
    for (name, wanted) in [("kiwi", &kiwi), ("catalog", &second)] {
        let seen = place.image(&format!("inspect oci:out:{name} -o json")).json();
        assert_eq!(seen["digest"], **wanted);
    }
    // A file that is no layout stays unchanged.
    let place = place.file("other/notes.txt", "mine");
    let answer = place.bundle("build b oci:other");
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("exists already"), "{}", answer.err);
    assert_eq!(fs::read_dir(place.path().join("other")).unwrap().count(), 1);
}

#[test]
fn build_pushes_directly_to_a_registry() {
    let place = TestFolder::with_bundle().file("c/catalog.yaml", SOUND_CATALOG);
    let registry = LoopbackRegistry::locked(place.path(), "me:secret");
    let domain = &registry.domain;
    let auth = format!(r#"{{"auths":{{"{domain}":{{"username":"me","password":"secret"}}}}}}"#);
    let place = place.file("auth.json", auth);
    let target = format!("{domain}/org/kiwi:v1");
    let refused = place.bundle(&format!("build b {target} --retries 0"));
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("--authfile FILE"), "{}", refused.err);
    for (answer, target) in [
        (place.bundle(&format!("build b {target} --authfile auth.json -o json")), target.clone()),
        (
            place.catalog(&format!("build c {domain}/org/catalog:v1 --authfile auth.json -o json")),
            format!("{domain}/org/catalog:v1"),
        ),
    ] {
        let built = answer.json();
        let there = registry.store.resolve(&target.parse().unwrap()).unwrap().unwrap();
        assert_eq!(built["digest"], there.digest.to_string());
        assert!(!answer.out.contains("secret") && !answer.err.contains("secret"));
    }
    // No temporary file is left.
    let left = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("mainstay-images")));
}
