//! `mainstay image`: transfers between registries, files and the store.

use mainstay_clitest::{LoopbackRegistry, SOUND_CATALOG, TestFolder};
use serde_json::Value;
use std::fs;

/// A folder with a catalog image for four platforms in a layout, and its digest.
fn catalog() -> (TestFolder, String) {
    let place = TestFolder::with_bundle().file("c/catalog.yaml", SOUND_CATALOG);
    let built = place.catalog("build c oci:layout:v1 -o json").json();
    (place, built["digest"].as_str().unwrap().to_owned())
}

#[test]
fn copy_between_registry_file_and_store_keeps_the_digest() {
    let (place, digest) = catalog();
    let registry = LoopbackRegistry::open(place.path());
    let name = format!("{}/org/catalog:v1", registry.domain);
    let done = |arguments: &str| {
        let answer = place.image(arguments);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{arguments}");
        answer.out
    };
    for (source, target) in [
        ("oci:layout", name.as_str()),
        (&*name, "oci-archive:catalog.tar:v1"),
        ("oci-archive:catalog.tar", "store:quay.io/org/catalog:v1"),
        ("store:quay.io/org/catalog:v1", "oci:again"),
    ] {
        assert_eq!(done(&format!("copy {source} {target}")), format!("{target} {digest}\n"));
    }
    assert_eq!(done(&format!("tags {}/org/catalog", registry.domain)), "v1\n");
    assert_eq!(done(&format!("pull --all-platforms {name}")), format!("{name} {digest}\n"));
    let other = format!("{}/other:v2", registry.domain);
    assert_eq!(done(&format!("push {name} {other}")), format!("{other} {digest}\n"));
    let listed = place.image("list -o json").json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[1]["image"], "quay.io/org/catalog:v1");
    assert_eq!(listed[1]["digest"], *digest);
    assert_eq!(listed[1]["platforms"].as_array().unwrap().len(), 4);
}

#[test]
fn pull_takes_one_platform_unless_all_are_requested() {
    let (place, digest) = catalog();
    let registry = LoopbackRegistry::open(place.path());
    let name = format!("{}/org/catalog:v1", registry.domain);
    place.image(&format!("copy oci:layout {name} -o json")).json();
    let pulled = place.image(&format!("pull --platform linux/s390x {name} -o json")).json();
    assert_eq!(pulled[0]["digest"], *digest);
    assert_eq!(pulled[0]["platform"], "linux/s390x");
    let listed = place.image("ls -o json").json();
    assert_eq!(listed[0]["platforms"], serde_json::json!(["linux/s390x"]));
    // A missing image cannot be pushed; the error names those that can.
    let answer = place.image(&format!("push {name} {}/other:v1", registry.domain));
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("--platform OS/ARCH"), "{}", answer.err);
    let one = format!("push --platform linux/s390x {name} {}/other:v1 -o json", registry.domain);
    let pushed = place.image(&one).json();
    assert_eq!(pushed["digest"], pulled[0]["imageDigest"]);
    let answer = place.image(&format!("pull --platform windows/amd64 {name}"));
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("it has linux/amd64, linux/arm64"), "{}", answer.err);
}

#[test]
fn inspect_reads_manifests_and_no_layers() {
    let (place, digest) = catalog();
    let registry = LoopbackRegistry::open(place.path());
    let name = format!("{}/org/catalog:v1", registry.domain);
    place.image(&format!("copy oci:layout {name} -o json")).json();
    let raw = place.image(&format!("inspect --raw {name}")).out;
    assert_eq!(mainstay_image::digest::Digest::of(raw.as_bytes()).to_string(), digest);
    let config = place.image(&format!("inspect --config --platform linux/arm64 {name}")).out;
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["architecture"], "arm64");
    let answer = place.image(&format!("inspect --platform linux/amd64 {name}"));
    assert_eq!(answer.code, 0);
    let text = answer.out.replace(&registry.domain, "REGISTRY");
    let text = text.lines().map(|line| line.split("sha256:").next().unwrap()).collect::<Vec<_>>();
    insta::assert_snapshot!(text.join("\n"), @"
    Image:      REGISTRY/org/catalog:v1
    Holds:      catalog in /configs
    Digest:     
    Media type: application/vnd.oci.image.index.v1+json
    Platform:   linux/amd64
    Layers:     1 layer, 261 B
    Labels:
      operators.operatorframework.io.index.configs.v1: /configs
    Images:
      linux/amd64     
      linux/arm64     
      linux/ppc64le   
      linux/s390x
    ");
    assert!(!place.path().join("mainstay/images/blobs").exists());
}

#[test]
fn remove_and_gc_free_the_store() {
    let (place, _) = catalog();
    place.image("copy oci:layout store:quay.io/org/catalog:v1 -o json").json();
    let answer = place.image("rm quay.io/org/catalog:v1 quay.io/org/catalog:v2");
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("there is no image quay.io/org/catalog:v2"), "{}", answer.err);
    assert_eq!(place.image("list -o json").out.matches("digest").count(), 1);
    place.image("copy oci:layout store:quay.io/org/other:v1 -o json").json();
    let removed = place.image("remove quay.io/org/other:v1 -o json").json();
    assert_eq!(removed, serde_json::json!([{"image": "quay.io/org/other:v1", "removed": true}]));
    let kept = place.image("gc --grace 0 -o json").json();
    assert_eq!(kept["blobs"], 0);
    assert_eq!(
        place.image("remove quay.io/org/catalog:v1").out,
        "quay.io/org/catalog:v1 removed\n"
    );
    // An index, four images, four configurations, one layer.
    let gone = place.image("gc --grace 0 -o json").json();
    assert_eq!(gone["blobs"], 10);
    insta::assert_snapshot!(place.image("list").out, @"IMAGE   DIGEST   PLATFORMS   SIZE");
}

#[test]
fn mirrors_of_both_file_formats_come_before_the_registry() {
    let (place, digest) = catalog();
    let registry = LoopbackRegistry::open(place.path());
    let domain = &registry.domain;
    place.image(&format!("copy oci:layout {domain}/mirror/catalog:v1 -o json")).json();
    let by_tag = format!(
        "apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {{name: a}}\nspec:\n  \
         imageTagMirrors:\n  - {{source: quay.invalid/org, mirrors: [{domain}/mirror], mirrorSourcePolicy: NeverContactSource}}\n"
    );
    let by_digest =
        by_tag.replace("Tag", "Digest").replace("imageTagMirrors", "imageDigestMirrors");
    let older = format!(
        "apiVersion: operator.openshift.io/v1alpha1\nkind: ImageContentSourcePolicy\nmetadata: {{name: a}}\n\
         spec:\n  repositoryDigestMirrors:\n  - {{source: quay.invalid/org, mirrors: [{domain}/mirror]}}\n"
    );
    let conf = format!(
        "[[registry]]\nprefix = \"quay.invalid/org\"\nblocked = true\n[[registry.mirror]]\nlocation = \"{domain}/mirror\"\n"
    );
    let place = place
        .file("tag.yaml", by_tag)
        .file("digest.yaml", by_digest)
        .file("older.yaml", older)
        .file("registries.conf", conf);
    let tagged = "quay.invalid/org/catalog:v1".to_owned();
    let exact = format!("quay.invalid/org/catalog@{digest}");
    for (options, name) in [
        ("--mirrors tag.yaml", &tagged),
        ("--mirrors digest.yaml", &exact),
        ("--mirrors older.yaml", &exact),
        ("--registries-conf registries.conf", &tagged),
    ] {
        let answer = place.image(&format!("pull --retries 0 {options} {name}"));
        assert_eq!((answer.code, answer.out), (0, format!("{name} {digest}\n")), "{}", answer.err);
        let answer = place.image(&format!("inspect --raw --retries 0 {options} {name}"));
        assert_eq!(answer.code, 0, "{}", answer.err);
    }
    let answer = place.image("tags --retries 0 --mirrors tag.yaml quay.invalid/org/catalog");
    assert_eq!((answer.code, answer.out.as_str()), (0, "v1\n"), "{}", answer.err);
}

#[test]
fn policies_and_cosign_keys_decide_which_images_are_accepted() {
    let (place, _) = catalog();
    let registry = LoopbackRegistry::open(place.path());
    let name = format!("{}/org/catalog:v1", registry.domain);
    place.image(&format!("copy oci:layout {name} -o json")).json();
    let key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhyQCx0E9wQWSFI9ULGwy3BuRklnt\nIqozONbbdbqz11hlRJy9c7SG+hdcFl9jE9uE/dwtuwU2MqU9T/cN0YkWww==\n-----END PUBLIC KEY-----\n";
    let place = place
        .file("no.json", r#"{"default":[{"type":"reject"}]}"#)
        .file("key.pub", key)
        .file("broken.json", r#"{"default":[{"type":"maybe"}]}"#);
    for (options, code, wanted) in [
        ("--policy no.json", 1, "is rejected by policy"),
        ("--cosign-key key.pub", 1, "is not signed as the policy requires: it has no signature"),
        ("--policy broken.json", 2, "type \"maybe\" is unknown"),
        ("--cosign-key no.json", 2, "name public keys of cosign (PEM)"),
        ("--policy nowhere.json", 2, "no such file or directory"),
    ] {
        let answer = place.image(&format!("pull {options} {name}"));
        assert_eq!((answer.code, answer.out.as_str()), (code, ""), "{}", answer.err);
        assert!(answer.err.contains(wanted), "{}", answer.err);
    }
    assert_eq!(place.image("list -o json").json(), serde_json::json!([]));
}

#[test]
fn missing_credentials_are_reported_with_a_remedy_and_without_passwords() {
    let (place, _) = catalog();
    let registry = LoopbackRegistry::locked(place.path(), "me:secret");
    let domain = registry.domain.clone();
    let with = |password: &str| {
        format!(r#"{{"auths":{{"{domain}":{{"username":"me","password":"{password}"}}}}}}"#)
    };
    let place = place
        .file("right.json", with("secret"))
        .file("wrong.json", with("other-secret"))
        .file("broken.json", with("secret").replace("}}}", "}"));
    let name = format!("{domain}/org/catalog:v1");
    let mut all = String::new();
    for (options, code, wanted) in [
        ("", 1, "log in, or name a file"),
        (" --authfile wrong.json", 1, "log in, or name a file"),
        (" --authfile broken.json", 2, "is not a credentials file (line 1"),
        (" --authfile nowhere.json", 2, "no such file or directory"),
        (" --authfile right.json", 0, ""),
    ] {
        let answer = place.image(&format!("copy oci:layout {name} --retries 0{options}"));
        assert_eq!(answer.code, code, "{options}: {}", answer.err);
        assert!(answer.err.contains(wanted), "{options}: {}", answer.err);
        all = all + &answer.out + &answer.err;
    }
    assert!(!all.contains("secret"), "{all}");
}

#[test]
fn failures_have_a_reason_and_a_remedy() {
    let (place, _) = catalog();
    let registry = LoopbackRegistry::open(place.path());
    let domain = &registry.domain;
    let place = place.file("there", "a file").file("dir/x", "x");
    for (arguments, code, wanted) in [
        (format!("pull --retries 0 {domain}/org/none:v1"), 1, "mainstay image tags REPOSITORY"),
        (
            "pull --retries 0 --plain-http 127.0.0.1:1/none".to_owned(),
            1,
            "check that the registry runs",
        ),
        ("pull ./layout".to_owned(), 2, "for a folder or a file write"),
        ("copy oci:nowhere oci:out".to_owned(), 2, "name a layout or an archive that exists"),
        ("copy oci:dir oci:out".to_owned(), 2, "neither an oci-layout nor a manifest.json"),
        ("copy oci-archive:there oci:out".to_owned(), 1, "oci-archive:there cannot be read"),
        ("copy oci:layout:v9 oci:out".to_owned(), 2, "name one of them: v1"),
        (
            "copy oci:layout oci:c".to_owned(),
            2,
            "name a path that does not exist, or the folder of",
        ),
        ("copy oci:layout oci-archive:there".to_owned(), 2, "there exists already"),
        ("copy oci:layout docker-archive:x.tar".to_owned(), 2, "choose one with --platform"),
        ("copy --platform linux/riscv64 oci:layout oci:out".to_owned(), 2, "it has linux/amd64,"),
        (
            "unpack oci:layout dir --platform linux/amd64".to_owned(),
            2,
            "name a folder that does not exist",
        ),
        ("push quay.io/a/b:v1".to_owned(), 2, "mainstay image pull quay.io/a/b:v1"),
        ("inspect oci:layout --platform windows/amd64".to_owned(), 2, "it has linux/amd64"),
        ("inspect oci:layout --platform nonsense".to_owned(), 2, "is not a platform"),
        ("list --store there/x".to_owned(), 1, "name another folder with --store DIR"),
        (
            "copy oci:layout oci:out --ca-file there".to_owned(),
            2,
            "the file contains no certificate",
        ),
        ("copy oci:layout oci:out --mirrors nowhere".to_owned(), 2, "no such file or directory"),
        ("copy oci:layout oci:out --registries-conf there".to_owned(), 2, "--registries-conf FILE"),
    ] {
        let answer = place.image(&arguments);
        assert_eq!(answer.code, code, "{arguments}: {}", answer.err);
        assert!(answer.err.contains(wanted), "{arguments}: {}", answer.err);
        assert!(!place.path().join("out").exists(), "{arguments}");
    }
}

#[test]
fn docker_archive_reads_back() {
    let (place, _) = catalog();
    let copied =
        place.image("copy --platform linux/amd64 oci:layout docker-archive:x.tar:quay.io/a/b:v1");
    assert_eq!(copied.code, 0, "{}", copied.err);
    let seen = place.image("inspect -o json docker-archive:x.tar:quay.io/a/b:v1").json();
    assert_eq!(seen["holds"], "catalog in /configs");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(place.path().join("x.tar")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o644);
}
