//! Mirror rules, signature policies and signatures.

use crate::{
    layouts::sample,
    net::{Net, answer},
};
use base64::Engine as _;
use mainstay_clock::Clock;
use mainstay_image::{
    digest::Digest,
    fetch::{FetchError, Fetcher},
    manifest::{Descriptor, ImageManifest, media_type},
    mirror::{self, MirrorRules},
    policy::{PolicyRefusal, Signature, SignaturePolicy, signature_tag},
    reference::ImageReference,
    registry::{ImageSelection, Security},
    serve::{self, RegistryHandler},
    store::ImageStore,
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use serde_json::json;

const COSIGN: &str = "cosign container image signature";
const HEX: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn sources(rules: &MirrorRules, text: &str) -> Result<Vec<String>, String> {
    let reference: ImageReference = text.parse().unwrap();
    let found = rules.sources(&reference, Security::Tls).map_err(|error| error.to_string())?;
    let line = |source: &mirror::MirrorSource| {
        let insecure = if source.security == Security::Insecure { " insecure" } else { "" };
        format!("{}{insecure}", source.reference).replace(HEX, "HEX")
    };
    Ok(found.iter().map(line).collect())
}

#[test]
fn longest_prefix_decides_the_sources_of_an_image() {
    let rules = mirror::from_toml(
        r#"
        unqualified-search-registries = ["quay.io"]
        [[registry]]
        location = "quay.io"
        [[registry.mirror]]
        location = "mirror.test:5000/quay"
        insecure = true
        [[registry]]
        prefix = "quay.io/org"
        location = "other.test/place"
        insecure = true
        [[registry.mirror]]
        location = "digests.test/org"
        pull-from-mirror = "digest-only"
        [[registry.mirror]]
        location = "tags.test/org"
        pull-from-mirror = "tag-only"
        [[registry]]
        location = "blocked.test"
        blocked = true
        [[registry]]
        location = "only.test"
        blocked = true
        mirror-by-digest-only = true
        [[registry.mirror]]
        location = "mirror.test/only"
        [[registry]]
        prefix = "*.wild.test"
        [[registry.mirror]]
        location = "mirror.test/wild"
        [[registry]]
        prefix = "a.wild.test/x"
        location = "a.wild.test/x"
        [[registry]]
        prefix = "here.test"
        location = "there.test:8443"
        "#,
    )
    .unwrap();
    assert_eq!(rules.search, ["quay.io"]);
    let digest = format!("sha256:{HEX}");
    let cases: [(String, Result<&[&str], &str>); 13] = [
        ("free.test/a:b".into(), Ok(&["free.test/a:b"])),
        ("quay.io/x/y:z".into(), Ok(&["mirror.test:5000/quay/x/y:z insecure", "quay.io/x/y:z"])),
        ("quay.io.evil.test/x".into(), Ok(&["quay.io.evil.test/x"])),
        (
            "quay.io/organisation/x".into(),
            Ok(&["mirror.test:5000/quay/organisation/x insecure", "quay.io/organisation/x"]),
        ),
        ("quay.io/org/x:y".into(), Ok(&["tags.test/org/x:y", "other.test/place/x:y insecure"])),
        (
            format!("quay.io/org/x@{digest}"),
            Ok(&["digests.test/org/x@sha256:HEX", "other.test/place/x@sha256:HEX insecure"]),
        ),
        (
            "blocked.test/a".into(),
            Err("registry blocked.test is blocked by the rule for blocked.test"),
        ),
        ("only.test/a:b".into(), Err("is blocked")),
        (format!("only.test/a@{digest}"), Ok(&["mirror.test/only/a@sha256:HEX"])),
        ("b.wild.test:80/a".into(), Ok(&["mirror.test/wild/a", "b.wild.test:80/a"])),
        ("wild.test/a".into(), Ok(&["wild.test/a"])),
        ("a.wild.test/x/y".into(), Ok(&["a.wild.test/x/y"])),
        ("here.test/a:b".into(), Ok(&["there.test:8443/a:b"])),
    ];
    for (text, want) in cases {
        match (sources(&rules, &text), want) {
            (Ok(found), Ok(want)) => assert_eq!(found, want, "{text}"),
            (Err(found), Err(want)) => assert!(found.contains(want), "{text}: {found}"),
            (found, want) => panic!("{text}: {found:?}, not {want:?}"),
        }
    }
}

#[test]
fn ambiguous_registries_conf_is_refused() {
    for (text, says) in [
        ("[registries.search]\nregistries = []", "of version 1"),
        ("[[registry]]\nblocked = true", "neither prefix nor location"),
        ("[[registry]]\nlocation = \"https://quay.io\"", "without https://"),
        ("[[registry]]\nprefix = \"quay.*\"", "* stands for what is before a domain"),
        ("[[registry]]\nprefix = \"*.a.test/x\"", "* stands for"),
        (
            "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\ninsecure = true",
            "has no location",
        ),
        (
            "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\nlocation = \"b.test\"\npull-from-mirror = \"some\"",
            "must be all, digest-only or tag-only",
        ),
        (
            "[[registry]]\nlocation = \"a.test\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"b.test\"\npull-from-mirror = \"all\"",
            "cannot have pull-from-mirror",
        ),
        (
            "[[registry]]\nlocation = \"a.test\"\n[[registry]]\nlocation = \"a.test\"\nblocked = true",
            "that differ",
        ),
        ("[[registry]]\nlocation = 1", "it is not valid"),
        ("[[", "it is not valid"),
    ] {
        let error = mirror::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn mirror_sets_of_a_cluster_become_rules() {
    let objects = [
        json!({"kind": "ImageDigestMirrorSet", "metadata": {"name": "b"}, "spec": {"imageDigestMirrors": [
            {"source": "quay.io/org", "mirrors": ["two.test/org", "one.test/org"], "mirrorSourcePolicy": "NeverContactSource"},
        ]}}),
        json!({"kind": "ImageContentSourcePolicy", "metadata": {"name": "a"}, "spec": {"repositoryDigestMirrors": [
            {"source": "quay.io/org", "mirrors": ["one.test/org"]},
        ]}}),
        json!({"kind": "ImageTagMirrorSet", "metadata": {"name": "c"}, "spec": {"imageTagMirrors": [
            {"source": "*.wild.test", "mirrors": ["tags.test"]},
        ]}}),
        json!({"kind": "ConfigMap", "metadata": {"name": "d"}}),
    ];
    let rules = mirror::from_objects(&objects).unwrap();
    assert_eq!(
        sources(&rules, &format!("quay.io/org/x@sha256:{HEX}")).unwrap(),
        ["one.test/org/x@sha256:HEX", "two.test/org/x@sha256:HEX"]
    );
    assert!(sources(&rules, "quay.io/org/x:y").unwrap_err().contains("blocked"));
    assert_eq!(sources(&rules, "a.wild.test/x:y").unwrap(), ["tags.test/x:y", "a.wild.test/x:y"]);
    for (entry, says) in [
        (json!({"mirrors": ["a.test"]}), "has no source"),
        (json!({"source": "https://a.test"}), "not a location"),
        (json!({"source": "a.test", "mirrors": ["b c"]}), "not a location"),
        (json!({"source": "a.test", "mirrorSourcePolicy": "Perhaps"}), "is unknown"),
    ] {
        let object = json!({"kind": "ImageDigestMirrorSet", "metadata": {"name": "n"}, "spec": {"imageDigestMirrors": [entry]}});
        let error = mirror::from_objects([&object]).unwrap_err().to_string();
        assert!(error.contains(says) && error.starts_with("ImageDigestMirrorSet n: "), "{error}");
    }
}

/// A fetcher over a network.
fn fetcher(net: &Net, store: ImageStore, rules: &str, policy: SignaturePolicy) -> Fetcher {
    let rules = mirror::from_toml(rules).unwrap();
    Fetcher { client: net.client(), rules, policy, store, security: Security::Plain }
}

/// Adds the registry `good.test` with the image `org/a:b`.
fn add_registry_with_image(net: &Net, folder: &std::path::Path) -> (ImageStore, Descriptor) {
    let theirs = ImageStore::open(folder.join("theirs")).unwrap();
    let image = sample(&theirs, "text");
    theirs.set(&"good.test/org/a:b".parse().unwrap(), &image).unwrap();
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let registry =
        RegistryHandler::new(theirs.clone(), serve::RegistrySettings::new("good.test"), clock);
    net.registry("good.test", 80, None, registry);
    (theirs, image)
}

const MIRRORS: &str = "[[registry]]\nlocation = \"far.test\"\nblocked = true\n\
     [[registry.mirror]]\nlocation = \"empty.test\"\ninsecure = true\n\
     [[registry.mirror]]\nlocation = \"good.test\"\ninsecure = true";

#[tokio::test(start_paused = true)]
async fn next_source_is_tried_when_one_does_not_have_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let net = Net::default();
    let (_, image) = add_registry_with_image(&net, folder.path());
    net.host("empty.test", 80, None, |_| answer(404, &[], ""));
    let store = ImageStore::open(folder.path().join("ours")).unwrap();
    let fetcher = fetcher(&net, store.clone(), MIRRORS, SignaturePolicy::accept_anything());
    let reference: ImageReference = "far.test/org/a:b".parse().unwrap();
    let pulled = fetcher.fetch(&reference, &ImageSelection::All).await.unwrap();
    // shows OLMV1-2
    assert_eq!(pulled.top.digest, image.digest);
    assert_eq!(store.resolve(&reference).unwrap().unwrap().digest, image.digest);
    let lost: ImageReference = "far.test/org/lost:b".parse().unwrap();
    let error = fetcher.fetch(&lost, &ImageSelection::All).await.unwrap_err().to_string();
    for place in ["[empty.test/org/lost: ", "[good.test/org/lost: "] {
        assert!(error.contains(place), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn image_is_stored_only_if_the_policy_accepts_it() {
    let folder = tempfile::tempdir().unwrap();
    let net = Net::default();
    let (theirs, image) = add_registry_with_image(&net, folder.path());
    net.host("empty.test", 80, None, |_| answer(404, &[], ""));
    let store = ImageStore::open(folder.path().join("ours")).unwrap();
    let reference: ImageReference = "far.test/org/a:b".parse().unwrap();
    let refuse =
        SignaturePolicy::read(br#"{"default": [{"type": "reject"}]}"#, |_| unreachable!()).unwrap();
    let refused =
        fetcher(&net, store.clone(), MIRRORS, refuse).fetch(&reference, &ImageSelection::All).await;
    assert!(matches!(refused, Err(FetchError::Refused(PolicyRefusal::Rejected(_)))));
    assert!(net.log().is_empty(), "no registry gets a request");

    let (key, pem) = key();
    let fetcher = fetcher(&net, store.clone(), MIRRORS, signed_policy(&pem, &json!(null)));
    let error = fetcher.fetch(&reference, &ImageSelection::All).await.unwrap_err().to_string();
    assert!(error.contains("it has no signature"), "{error}");
    assert!(store.references().unwrap().is_empty());

    // The signature names the requested reference, and is stored beside the image in the mirror.
    let signature = sign(&key, "far.test/org/a:b", &image.digest.to_string(), COSIGN);
    theirs.put(&signature.payload).unwrap();
    theirs.put(b"{}").unwrap();
    let format = "application/vnd.dev.cosign.simplesigning.v1+json";
    let mut layer = Descriptor::of(format, &signature.payload);
    let annotation = "dev.cosignproject.cosign/signature".to_owned();
    layer.annotations.insert(annotation, signature.base64);
    let manifest = ImageManifest::oci(Descriptor::of(media_type::OCI_EMPTY, b"{}"), vec![layer]);
    let manifest = theirs.put_json(media_type::OCI_MANIFEST, &manifest).unwrap();
    let place: ImageReference =
        format!("good.test/org/a:{}", signature_tag(&image.digest)).parse().unwrap();
    theirs.set(&place, &manifest).unwrap();
    let pulled = fetcher.fetch(&reference, &ImageSelection::All).await.unwrap();
    assert_eq!(pulled.top.digest, image.digest);
    assert_eq!(store.resolve(&reference).unwrap().unwrap().digest, image.digest);
}

/// A key pair, and its public key in PEM.
fn key() -> (EcdsaKeyPair, String) {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let signing = EcdsaKeyPair::from_pkcs8(algorithm, &pair.serialize_der(), &random).unwrap();
    (signing, pair.public_key_pem())
}

fn sign(key: &EcdsaKeyPair, name: &str, digest: &str, kind: &str) -> Signature {
    let payload = json!({"critical": {
        "identity": {"docker-reference": name},
        "image": {"docker-manifest-digest": digest},
        "type": kind,
    }, "optional": null});
    let payload = payload.to_string().into_bytes();
    let signature = key.sign(&SystemRandom::new(), &payload).unwrap();
    let base64 = base64::engine::general_purpose::STANDARD.encode(signature.as_ref());
    Signature { payload, base64 }
}

fn signed_policy(pem: &str, identity: &serde_json::Value) -> SignaturePolicy {
    let data = base64::engine::general_purpose::STANDARD.encode(pem);
    let text = json!({"default": [{"type": "sigstoreSigned", "keyData": data, "signedIdentity": identity}]});
    SignaturePolicy::read(text.to_string().as_bytes(), |_| unreachable!()).unwrap()
}

#[test]
fn signature_is_valid_by_key_digest_and_identity() {
    let ((ours, pem), (theirs, _)) = (key(), key());
    let digest = Digest::of(b"image");
    let text = digest.to_string();
    let tagged = "r.test/a:v1";
    let by_digest = format!("r.test/a@{digest}");
    let none = json!(null);
    let rule = |kind: &str| json!({"type": kind});
    let exact = json!({"type": "exactReference", "dockerReference": "s.test/b:v2"});
    let repository = json!({"type": "exactRepository", "dockerRepository": "s.test/b"});
    let remap = json!({"type": "remapIdentity", "prefix": "r.test", "signedPrefix": "s.test/x"});
    let other = Digest::of(b"other").to_string();
    let bad = Signature { payload: b"{}".to_vec(), base64: "!".to_owned() };
    let mut changed = sign(&ours, tagged, &text, COSIGN);
    changed.payload.push(b' ');
    let cases = [
        ("as asked for", &none, tagged, vec![sign(&ours, tagged, &text, COSIGN)], ""),
        (
            "by digest, the repository is enough",
            &none,
            &by_digest,
            vec![sign(&ours, "r.test/a", &text, COSIGN)],
            "",
        ),
        (
            "by tag it is not",
            &none,
            tagged,
            vec![sign(&ours, "r.test/a", &text, COSIGN)],
            "is for \"r.test/a\"",
        ),
        (
            "unless that is said",
            &rule("matchRepository"),
            tagged,
            vec![sign(&ours, "r.test/a", &text, COSIGN)],
            "",
        ),
        (
            "another tag",
            &rule("matchExact"),
            tagged,
            vec![sign(&ours, "r.test/a:v2", &text, COSIGN)],
            "is for",
        ),
        (
            "another repository",
            &rule("matchRepository"),
            tagged,
            vec![sign(&ours, "r.test/ab:v1", &text, COSIGN)],
            "is for",
        ),
        ("exact reference", &exact, tagged, vec![sign(&ours, "s.test/b:v2", &text, COSIGN)], ""),
        ("exact repository", &repository, tagged, vec![sign(&ours, "s.test/b", &text, COSIGN)], ""),
        ("remapped", &remap, tagged, vec![sign(&ours, "s.test/x/a:v1", &text, COSIGN)], ""),
        ("remapped, wrong", &remap, tagged, vec![sign(&ours, tagged, &text, COSIGN)], "is for"),
        (
            "another image",
            &none,
            tagged,
            vec![sign(&ours, tagged, &other, COSIGN)],
            "is of sha256:",
        ),
        (
            "another key",
            &none,
            tagged,
            vec![sign(&theirs, tagged, &text, COSIGN)],
            "by none of the keys",
        ),
        (
            "another kind",
            &none,
            tagged,
            vec![sign(&ours, tagged, &text, "attestation")],
            "something else",
        ),
        ("changed afterwards", &none, tagged, vec![changed], "by none of the keys"),
        ("damaged", &none, tagged, vec![bad], "damaged"),
        ("none", &none, tagged, vec![], "it has no signature"),
        (
            "one good one is enough",
            &none,
            tagged,
            vec![sign(&theirs, tagged, &text, COSIGN), sign(&ours, tagged, &text, COSIGN)],
            "",
        ),
    ];
    for (name, identity, reference, signatures, says) in cases {
        let policy = signed_policy(&pem, identity);
        let reference: ImageReference = reference.parse().unwrap();
        assert!(policy.needs_signatures(&reference));
        match policy.check(&reference, &digest, &signatures) {
            Ok(()) => assert_eq!(says, "", "{name}"),
            Err(error) => {
                let error = error.to_string();
                assert!(!says.is_empty() && error.contains(says), "{name}: {error}");
            }
        }
    }
    assert_eq!(signature_tag(&digest), format!("sha256-{}.sig", digest.hex()));
}

#[test]
fn most_specific_scope_of_a_policy_applies() {
    let text = json!({
        "default": [{"type": "reject"}],
        "transports": {
            "docker": {
                "quay.io": [{"type": "insecureAcceptAnything"}],
                "quay.io/bad": [{"type": "reject"}],
                "quay.io/bad/good": [{"type": "insecureAcceptAnything"}],
                "quay.io/bad/good:v2": [{"type": "reject"}],
                "*.wild.test": [{"type": "insecureAcceptAnything"}],
                "pgp.test": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "/k"}],
                "both.test": [{"type": "insecureAcceptAnything"}, {"type": "reject"}],
            },
            "dir": {"": [{"type": "insecureAcceptAnything"}]},
        },
    });
    let policy = SignaturePolicy::read(text.to_string().as_bytes(), |_| unreachable!()).unwrap();
    let digest = Digest::of(b"image");
    for (reference, says) in [
        ("quay.io/a:b", ""),
        ("quay.io/bad/a", "is rejected by policy"),
        ("quay.io/badly/a", ""),
        ("quay.io/bad/good:v1", ""),
        ("quay.io/bad/good:v2", "is rejected by policy"),
        ("a.b.wild.test:5000/x", ""),
        ("wild.test/x", "is rejected"),
        ("elsewhere.test/x", "is rejected"),
        ("pgp.test/x", "signedBy (OpenPGP), which is not supported"),
        ("both.test/x", "is rejected"),
    ] {
        let reference: ImageReference = reference.parse().unwrap();
        match policy.check(&reference, &digest, &[]) {
            Ok(()) => assert_eq!(says, "", "{reference}"),
            Err(error) => assert!(!says.is_empty() && error.to_string().contains(says), "{error}"),
        }
    }
    let anything = SignaturePolicy::accept_anything();
    assert!(anything.check(&"a.test/b".parse().unwrap(), &digest, &[]).is_ok());
}

#[test]
fn invalid_policy_is_refused() {
    let signed = |fields: serde_json::Value| {
        let mut one = json!({"type": "sigstoreSigned"});
        one.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"default": [one]})
    };
    for (text, says) in [
        (json!({}), "default: must be a list with at least one requirement"),
        (json!({"default": []}), "must be a list with at least one requirement"),
        (json!({"default": [{}]}), "has no type"),
        (json!({"default": [{"type": "accept"}]}), "type \"accept\" is unknown"),
        (json!({"default": [{"type": "reject"}], "transport": {}}), "\"transport\" is unknown"),
        (json!({"default": [{"type": "reject", "but": 1}]}), "\"but\" is unknown"),
        (
            json!({"default": [{"type": "reject"}], "transports": {"docker": {"a.test": []}}}),
            "transports.docker",
        ),
        (signed(json!({})), "needs one of keyPath"),
        (signed(json!({"keyPath": "a", "keyData": "b"})), "needs one of keyPath"),
        (signed(json!({"keyPath": "lost"})), "keyPath \"lost\": "),
        (signed(json!({"keyData": "!"})), "is not base64"),
        (signed(json!({"keyData": "YQ=="})), "it is not a public key in PEM"),
        (signed(json!({"keyDatas": []})), "is empty"),
        (signed(json!({"keyData": "YQ==", "keydata": "x"})), "\"keydata\" is unknown"),
    ] {
        let lost = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        let error =
            SignaturePolicy::read(text.to_string().as_bytes(), lost).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    for fields in [json!({"fulcio": {}}), json!({"keyData": "x", "rekorPublicKeyPath": "x"})] {
        let policy = signed(fields).to_string();
        let policy = SignaturePolicy::read(policy.as_bytes(), |_| unreachable!()).unwrap();
        let refused = policy.check(&"a.test/b".parse().unwrap(), &Digest::of(b""), &[]);
        assert!(matches!(refused, Err(PolicyRefusal::Unsupported(..))), "{refused:?}");
    }
}

#[test]
fn policy_with_a_duplicate_key_is_refused() {
    let accept = r#"[{"type": "insecureAcceptAnything"}]"#;
    let reject = r#"[{"type": "reject"}]"#;
    for (text, key) in [
        (format!(r#"{{"default": {reject}, "default": {accept}}}"#), "default"),
        (
            format!(
                r#"{{"default": {reject}, "transports": {{"docker": {{"a.test": {reject}, "a.test": {accept}}}}}}}"#
            ),
            "a.test",
        ),
        (
            format!(
                r#"{{"default": {reject}, "transports": {{"docker": {{}}, "docker": {{"a.test": {accept}}}}}}}"#
            ),
            "docker",
        ),
        (
            r#"{"default": [{"type": "reject", "type": "insecureAcceptAnything"}]}"#.to_owned(),
            "type",
        ),
        // An escaped key is the same key.
        (format!(r#"{{"default": {reject}, "def\u0061ult": {accept}}}"#), "default"),
    ] {
        let error =
            SignaturePolicy::read(text.as_bytes(), |_| unreachable!()).unwrap_err().to_string();
        assert!(error.contains(&format!("duplicate key \"{key}\"")), "{text}: {error}");
    }
    let once =
        format!(r#"{{"default": {reject}, "transports": {{"docker": {{"default": {accept}}}}}}}"#);
    SignaturePolicy::read(once.as_bytes(), |_| unreachable!()).unwrap();
}
