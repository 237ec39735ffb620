//! Image references and platforms.

use mainstay_image::{
    platform::Platform,
    reference::{ImageReference, ImageReferenceError},
};

const HEX: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn references_get_dockers_defaults() {
    let digest = format!("sha256:{HEX}");
    let cases = [
        ("busybox", "docker.io/library/busybox", "busybox"),
        ("busybox:1.36", "docker.io/library/busybox:1.36", "busybox:1.36"),
        ("library/busybox", "docker.io/library/busybox", "busybox"),
        ("someone/thing", "docker.io/someone/thing", "someone/thing"),
        ("docker.io/busybox", "docker.io/library/busybox", "busybox"),
        ("index.docker.io/busybox", "docker.io/library/busybox", "busybox"),
        ("docker.io/library/a/b", "docker.io/library/a/b", "library/a/b"),
        ("localhost/a", "localhost/a", "localhost/a"),
        ("localhost:5000/a:b", "localhost:5000/a:b", "localhost:5000/a:b"),
        ("quay.io/org/name", "quay.io/org/name", "quay.io/org/name"),
        ("Registry/a", "Registry/a", "Registry/a"),
        ("[::1]:5000/a", "[::1]:5000/a", "[::1]:5000/a"),
        ("a.b/c__d/e-----f/g.h", "a.b/c__d/e-----f/g.h", "a.b/c__d/e-----f/g.h"),
        ("busybox:5000/a", "busybox:5000/a", "busybox:5000/a"),
    ];
    for (text, whole, familiar) in cases {
        let reference: ImageReference = text.parse().expect(text);
        assert_eq!(reference.to_string(), whole, "{text}");
        assert_eq!(reference.familiar(), familiar, "{text}");
        assert_eq!(whole.parse::<ImageReference>().as_ref(), Ok(&reference), "{text}");
    }
    let both: ImageReference = format!("quay.io/a/b:c@{digest}").parse().unwrap();
    assert_eq!((both.tag(), both.wanted()), (Some("c"), digest.clone()));
    assert_eq!(both.tag_or_default(), Some("c"));
    let only: ImageReference = format!("quay.io/a/b@{digest}").parse().unwrap();
    assert_eq!((only.tag_or_default(), only.repository().as_str()), (None, "quay.io/a/b"));
    let none: ImageReference = "quay.io/a/b".parse().unwrap();
    assert_eq!((none.tag_or_default(), none.wanted().as_str()), (Some("latest"), "latest"));
    let moved = both.moved_to("mirror:5000/x/b").unwrap();
    assert_eq!(moved.to_string(), format!("mirror:5000/x/b:c@{digest}"));
}

#[test]
fn invalid_references_give_the_usual_errors() {
    let format = "invalid reference format";
    let long = format!("quay.io/{}", "a/".repeat(130) + "a");
    let cases: [(String, &str); 22] = [
        (String::new(), format),
        (":tag".to_owned(), format),
        ("a:".to_owned(), format),
        ("a@".to_owned(), format),
        ("a@sha256:abc".to_owned(), "invalid digest: invalid checksum digest length"),
        (format!("a@md5:{HEX}"), "invalid digest: unsupported digest algorithm"),
        (format!("a@{HEX}"), format),
        ("a//b".to_owned(), format),
        ("quay.io/".to_owned(), format),
        ("/a".to_owned(), format),
        ("a/".to_owned(), format),
        ("a.-b".to_owned(), format),
        ("a___b".to_owned(), format),
        ("a..b".to_owned(), format),
        ("-a.io/b".to_owned(), format),
        ("quay.io:port/a".to_owned(), format),
        ("https://quay.io/a".to_owned(), format),
        ("a b".to_owned(), format),
        ("quay.io/Org/a".to_owned(), "repository name (Org/a) must be lowercase"),
        (HEX.to_owned(), "cannot specify 64-byte hexadecimal strings"),
        (long, "must not be more than 255 characters"),
        (format!("a:{}", "t".repeat(129)), format),
    ];
    for (text, want) in cases {
        let error = text.parse::<ImageReference>().expect_err(&text).to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
    assert_eq!(ImageReference::parse_canonical("nope"), Err(ImageReferenceError::NotCanonical));
    assert!(ImageReference::parse_canonical("quay.io/a").is_ok());
}

#[test]
fn closest_runnable_image_is_chosen() {
    let cases: &[(&str, &[&str], Option<usize>)] = &[
        ("linux/amd64", &["linux/arm64", "linux/amd64"], Some(1)),
        ("linux/amd64", &["linux/arm64", "windows/amd64"], None),
        ("linux/x86_64", &["linux/amd64"], Some(0)),
        ("linux/arm64", &["linux/arm64/v8"], Some(0)),
        ("linux/arm64", &["linux/arm/v6", "linux/arm/v7"], Some(1)),
        ("linux/arm64", &["linux/arm/v7", "linux/aarch64"], Some(1)),
        ("linux/arm", &["linux/arm/v6", "linux/arm/v7"], Some(1)),
        ("linux/arm/v6", &["linux/arm/v7", "linux/arm/v5", "linux/arm/v6"], Some(2)),
        ("linux/arm/v6", &["linux/arm/v7", "linux/arm/v5"], Some(1)),
        ("linux/arm/v5", &["linux/arm/v6"], None),
        ("linux/amd64/v3", &["linux/amd64", "linux/amd64/v2"], Some(1)),
        ("linux/amd64/v2", &["linux/amd64/v3", "linux/amd64"], Some(1)),
        ("linux/amd64", &["linux/amd64/v2"], None),
        ("linux/s390x", &["linux/s390x", "linux/s390x"], Some(0)),
        ("linux/ppc64le", &[], None),
    ];
    for (wanted, offers, place) in cases {
        let platform: Platform = wanted.parse().expect(wanted);
        let offers: Vec<Platform> = offers.iter().map(|text| text.parse().expect(text)).collect();
        let offered = offers.iter().map(Some);
        assert_eq!(platform.choose(offered), *place, "{wanted} of {offers:?}");
    }
    let nobody: Option<&Platform> = None;
    assert_eq!(Platform::linux("amd64").choose([nobody]), None);
    for text in ["linux", "linux/", "/amd64", "linux/a/b/c", "linux/a b", ""] {
        assert!(text.parse::<Platform>().is_err(), "{text}");
    }
}
