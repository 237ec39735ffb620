//! Hostile and failing registries.

use crate::net::{Body, Net, answer, breaking, certificate, stalling, with_body};
use http::{Request, Response};
use hyper::body::Incoming;
use mainstay_image::{
    credentials::Keyring,
    digest::Digest,
    manifest::{Descriptor, ImageManifest, media_type as media},
    platform::Platform,
    reference::ImageReference,
    registry::{ClientSettings, ImageClient, ImageSelection, RegistrySecret, Security},
    store::ImageStore,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::time::Duration;

pub(crate) const PASSWORD: &str = "correct-horse-battery";
pub(crate) const LAYER: &[u8] = b"0123456789";

/// A manifest with one layer and an empty configuration.
pub(crate) fn manifest() -> Vec<u8> {
    let config = Descriptor::of(media::OCI_EMPTY, b"{}");
    let layer = Descriptor::of(media::OCI_LAYER, LAYER);
    serde_json::to_vec(&ImageManifest::oci(config, vec![layer])).unwrap()
}

pub(crate) fn path(request: &Request<Incoming>) -> &str {
    request.uri().path()
}

/// The responses of an honest registry.
pub(crate) fn honest(request: &Request<Incoming>) -> Response<Body> {
    let path = path(request);
    if path.contains("/manifests/") {
        answer(200, &[&format!("content-type: {}", media::OCI_MANIFEST)], manifest())
    } else if path.ends_with(Digest::of(b"{}").hex()) {
        answer(200, &[], "{}")
    } else if path.ends_with(Digest::of(LAYER).hex()) {
        answer(200, &[], LAYER)
    } else {
        answer(404, &[], "")
    }
}

fn is_layer(request: &Request<Incoming>) -> bool {
    path(request).ends_with(Digest::of(LAYER).hex())
}

pub(crate) fn settings_with_password(net: &Net) -> ClientSettings {
    let mut keyring = Keyring::new();
    keyring.add("r.test", "somebody", RegistrySecret::new(PASSWORD));
    ClientSettings { keyring: Arc::new(keyring), ..net.settings() }
}

/// Pulls `r.test/a:v1` and returns the error; nothing unfinished or wrong may be left.
pub(crate) async fn pull_with(settings: ClientSettings, security: Security) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path()).unwrap();
    let client = ImageClient::new(settings).unwrap();
    let reference: ImageReference = "r.test/a:v1".parse().unwrap();
    let want = ImageSelection::Platform(Platform::linux("amd64"));
    let pulled = client.pull(&reference, security, &want, &store).await;
    let there = store.size_of(&Digest::of(LAYER)).unwrap();
    match pulled {
        Ok(_) => {
            store.verify(&Digest::of(LAYER)).unwrap();
            Ok(())
        }
        Err(error) => {
            assert_eq!(store.resolve(&reference).unwrap(), None);
            if there.is_some() {
                store.verify(&Digest::of(LAYER)).unwrap();
            }
            let text = format!("{error} {error:?}");
            assert!(!text.contains(PASSWORD) && !text.contains("s3cret"), "{text}");
            Err(error.to_string())
        }
    }
}

type Script = Box<dyn Fn(&Request<Incoming>, usize) -> Response<Body> + Send + Sync>;

/// A script with the expected error and the maximum number of requests.
struct Case {
    name: &'static str,
    script: Script,
    says: Option<&'static str>,
    most: usize,
}

fn case(
    name: &'static str,
    says: Option<&'static str>,
    most: usize,
    script: impl Fn(&Request<Incoming>, usize) -> Response<Body> + Send + Sync + 'static,
) -> Case {
    Case { name, script: Box::new(script), says, most }
}

/// A response in place of the manifest.
fn instead(
    text: &'static str,
    media: &'static str,
) -> impl Fn(&Request<Incoming>, usize) -> Response<Body> {
    move |request, _| {
        if path(request).contains("/manifests/") {
            answer(200, &[&format!("content-type: {media}")], text)
        } else {
            honest(request)
        }
    }
}

/// A response in place of the layer; the script gets the number of earlier requests.
fn layer(
    script: impl Fn(&Request<Incoming>, usize) -> Response<Body> + Send + Sync + 'static,
) -> impl Fn(&Request<Incoming>, usize) -> Response<Body> + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |request, _| {
        if is_layer(request) {
            script(request, count.fetch_add(1, Ordering::SeqCst))
        } else {
            honest(request)
        }
    }
}

fn cases() -> Vec<Case> {
    const BEARER: &str = "www-authenticate: Bearer realm=\"http://r.test/token\",service=\"s\"";
    const BASIC: &str = "www-authenticate: Basic realm=\"r\"";
    let token = |text: &'static str| {
        move |request: &Request<Incoming>, _| match path(request) {
            "/token" => answer(200, &[], text),
            _ => answer(401, &[BEARER], ""),
        }
    };
    vec![
        case("honest", None, 3, |request, _| honest(request)),
        // Authentication.
        case("a loop of tokens", Some("the token is not accepted"), 5, token(r#"{"token":"t0k"}"#)),
        case("a loop of passwords", Some("the credentials are not accepted"), 2, |_, _| {
            answer(401, &[BASIC], "")
        }),
        case("no challenge", Some("names no authentication scheme"), 1, |_, _| {
            answer(401, &[], "")
        }),
        case("an unknown challenge", Some("names no authentication scheme"), 1, |_, _| {
            answer(401, &["www-authenticate: Negotiate"], "")
        }),
        case("a token service elsewhere", Some("its token service has no https URL"), 1, |_, _| {
            answer(401, &["www-authenticate: Bearer realm=\"ftp://r.test/token\""], "")
        }),
        case("a token service with a name in it", Some("or one with credentials"), 1, |_, _| {
            answer(401, &["www-authenticate: Bearer realm=\"http://r.test@evil.test/\""], "")
        }),
        case(
            "a token that is none",
            Some("invalid characters"),
            2,
            token(r#"{"token":"a\r\nb: c"}"#),
        ),
        case("an answer without a token", Some("has no token"), 2, token(r#"{"token":""}"#)),
        case("an answer that is no answer", Some("is not valid JSON"), 2, token("<html>")),
        case(
            "a token service that refuses",
            Some("does not accept the credentials"),
            2,
            |request, _| match path(request) {
                "/token" => answer(401, &[], ""),
                _ => answer(401, &[BEARER], ""),
            },
        ),
        case("a token service in trouble", Some("503"), 5, |request, _| match path(request) {
            "/token" => answer(503, &[], ""),
            _ => answer(401, &[BEARER], ""),
        }),
        case("an endless token", Some("has more than"), 2, |request, _| match path(request) {
            "/token" => answer(200, &[], vec![b' '; 2 << 20]),
            _ => answer(401, &[BEARER], ""),
        }),
        case("a password that comes back", Some("DENIED because *** is wrong"), 2, |request, _| {
            if request.headers().contains_key("authorization") {
                let text = format!(
                    r#"{{"errors":[{{"code":"DENIED","message":"because {PASSWORD} is wrong"}}]}}"#
                );
                answer(403, &[], text)
            } else {
                answer(401, &[BASIC], "")
            }
        }),
        // Errors.
        case("too many requests, for ever", Some("429"), 4, |_, _| answer(429, &[], "")),
        case("trouble, for ever", Some("502"), 4, |_, _| answer(502, &[], "<html>")),
        case("asked to wait for ever", Some("503"), 4, |_, _| {
            answer(503, &["retry-after: 99999999"], "")
        }),
        case("asked to wait in nonsense", Some("503"), 4, |_, _| {
            answer(503, &["retry-after: soon"], "")
        }),
        case("trouble that passes", None, 6, |request, count| {
            if count < 3 { answer(503, &["retry-after: 1"], "") } else { honest(request) }
        }),
        case("not there", Some("404"), 1, |_, _| answer(404, &[], "")),
        case("a fault that does not pass", Some("418"), 1, |_, _| answer(418, &[], "")),
        case("control letters", Some("403 Forbidden: DENIED [31mred"), 1, |_, _| {
            answer(
                403,
                &[],
                "{\"errors\":[{\"code\":\"DENIED\",\"message\":\"\\u001b[31mred\\n\"}]}",
            )
        }),
        // Stalls.
        case("a manifest that stalls", Some("no data was transferred for 30 s"), 4, |_, _| {
            with_body(200, &[], stalling("{"))
        }),
        case(
            "a layer that stalls",
            Some("no data was transferred for 30 s"),
            9,
            layer(|_, _| with_body(200, &[], stalling(""))),
        ),
        case("an error that stalls", Some("403"), 1, |_, _| with_body(403, &[], stalling("{"))),
        // Redirects.
        case("a loop of redirects", Some("there are too many redirects"), 6, |_, _| {
            answer(307, &["location: /v2/a/manifests/v1"], "")
        }),
        case("to a file", Some("it is not HTTP"), 1, |_, _| {
            answer(302, &["location: file:///etc/passwd"], "")
        }),
        case("to ftp", Some("it is not HTTP"), 1, |_, _| {
            answer(302, &["location: ftp://r.test/x"], "")
        }),
        case("to data", Some("refused to be redirected"), 1, |_, _| {
            answer(302, &["location: data:text/plain,x"], "")
        }),
        case("to a password", Some("it contains credentials"), 1, |_, _| {
            answer(302, &["location: http://a:s3cret@r.test/x"], "")
        }),
        case("to a secret", Some("redirected to ftp://b.test/x:"), 1, |_, _| {
            answer(302, &["location: ftp://b.test/x?sig=s3cret"], "")
        }),
        case("to nowhere", Some("the redirect has no Location"), 1, |_, _| answer(302, &[], "")),
        case("to nobody", Some("http://nobody.test/x"), 4, |_, _| {
            answer(302, &["location: http://nobody.test/x?sig=s3cret"], "")
        }),
        // Documents.
        case("a web page", Some("it begins with '<'"), 1, instead("<html>", "text/html")),
        case("another digest than it says", Some("the content has digest"), 1, |request, _| {
            let says = format!("docker-content-digest: {}", Digest::of(b"other"));
            if path(request).contains("/manifests/") {
                answer(200, &[&says], manifest())
            } else {
                honest(request)
            }
        }),
        case(
            "schema 1",
            Some("schema 1"),
            1,
            instead(r#"{"schemaVersion":1}"#, media::DOCKER_SCHEMA1_SIGNED),
        ),
        case(
            "two meanings",
            Some("so it is ambiguous"),
            1,
            instead(r#"{"schemaVersion":2,"manifests":[],"layers":[]}"#, media::OCI_INDEX),
        ),
        case("an endless manifest", Some("has more than 4194304 bytes"), 1, |_, _| {
            answer(200, &[], vec![b' '; 5 << 20])
        }),
        case(
            "an index without images",
            Some("has no image for linux/amd64; it has none"),
            1,
            instead(r#"{"schemaVersion":2,"manifests":[]}"#, media::OCI_INDEX),
        ),
        case("an index of something else", Some("the content has digest"), 2, |request, _| {
            if path(request).ends_with("/v1") {
                let text = format!(
                    r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"{}","digest":"{}","size":9,"platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#,
                    media::OCI_MANIFEST,
                    Digest::of(b"other"),
                );
                answer(200, &[&format!("content-type: {}", media::OCI_INDEX)], text)
            } else {
                honest(request)
            }
        }),
        case("an index in an index in an index", Some("nested too deeply"), 12, |request, _| {
            let (documents, top) = crate::hostile::chain(40);
            let name = path(request).rsplit('/').next().unwrap_or_default();
            let name = if name == "v1" { top } else { name.to_owned() };
            match documents.get(&name) {
                Some(bytes) => {
                    answer(200, &[&format!("content-type: {}", media::OCI_INDEX)], bytes.clone())
                }
                None => answer(404, &[], ""),
            }
        }),
        case("a layer without an end", Some("is longer than"), 2, |request, _| {
            let text = String::from_utf8(manifest())
                .unwrap()
                .replace("\"size\":10", "\"size\":1152921504606846976");
            if path(request).contains("/manifests/") {
                answer(200, &[&format!("content-type: {}", media::OCI_MANIFEST)], text)
            } else {
                honest(request)
            }
        }),
        case("a configuration without an end", Some("is longer than"), 1, |request, _| {
            let text = String::from_utf8(manifest())
                .unwrap()
                .replace("\"size\":2", "\"size\":1152921504606846976");
            if path(request).contains("/manifests/") {
                answer(200, &[&format!("content-type: {}", media::OCI_MANIFEST)], text)
            } else {
                honest(request)
            }
        }),
        // Layers.
        case("a layer that somebody else has", Some("404"), 3, |request, _| {
            if path(request).contains("/manifests/") {
                let config = Descriptor::of(media::OCI_EMPTY, b"{}");
                let mut layer = Descriptor::of(media::OCI_LAYER, LAYER);
                layer.urls = vec!["http://nobody.test/layer".to_owned()];
                let text = serde_json::to_vec(&ImageManifest::oci(config, vec![layer])).unwrap();
                answer(200, &[&format!("content-type: {}", media::OCI_MANIFEST)], text)
            } else if is_layer(request) {
                answer(404, &[], "")
            } else {
                honest(request)
            }
        }),
        case(
            "another layer",
            Some("the content has digest"),
            3,
            layer(|_, _| answer(200, &[], "9876543210")),
        ),
        case(
            "a longer layer",
            Some("longer than 10 bytes"),
            3,
            layer(|_, _| answer(200, &[], "0123456789x")),
        ),
        case(
            "a shorter layer, for ever",
            Some("the connection ended after"),
            9,
            layer(|_, _| answer(200, &[], "0123")),
        ),
        case("no layer", Some("404"), 3, layer(|_, _| answer(404, &[], ""))),
        case(
            "a layer that breaks once",
            None,
            4,
            layer(|request, count| {
                if count == 0 {
                    return with_body(200, &[], breaking("0123"));
                }
                assert_eq!(request.headers()["range"], "bytes=4-");
                answer(206, &["content-range: bytes 4-9/10"], &LAYER[4..])
            }),
        ),
        case(
            "a layer that begins again",
            None,
            4,
            layer(|_, count| {
                if count == 0 {
                    with_body(200, &[], breaking("0123"))
                } else {
                    answer(200, &[], LAYER)
                }
            }),
        ),
        case(
            "another part than asked for",
            None,
            5,
            layer(|_, count| match count {
                0 => with_body(200, &[], breaking("0123")),
                1 => answer(206, &["content-range: bytes 2-9/10"], &LAYER[2..]),
                _ => answer(200, &[], LAYER),
            }),
        ),
        case(
            "no part at all",
            None,
            5,
            layer(|_, count| match count {
                0 => with_body(200, &[], breaking("0123")),
                1 => answer(416, &[], ""),
                _ => answer(200, &[], LAYER),
            }),
        ),
        case(
            "the wrong rest",
            None,
            5,
            layer(|request, count| match count {
                0 => with_body(200, &[], breaking("0123")),
                1 => answer(206, &["content-range: bytes 4-9/10"], "xxxxxx"),
                _ => {
                    assert!(!request.headers().contains_key("range"));
                    answer(200, &[], LAYER)
                }
            }),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn hostile_registries_are_not_trusted_and_retries_are_limited() {
    let (log, _guard) = crate::hostile::record_log();
    let mut wrong = Vec::new();
    for Case { name, script, says, most } in cases() {
        let net = Net::default();
        let count = AtomicUsize::new(0);
        net.host("r.test", 80, None, move |request| {
            script(request, count.fetch_add(1, Ordering::SeqCst))
        });
        let clock = net.settings().clock;
        let pulled = pull_with(settings_with_password(&net), Security::Plain).await;
        match (&pulled, says) {
            (Ok(()), None) => {}
            (Err(error), Some(says)) if error.contains(says) => {}
            _ => wrong.push(format!("{name}: {pulled:?}, not {says:?}: {:?}", net.lines())),
        }
        let asked = net.lines();
        let took = clock.elapsed();
        if asked.len() > most || took > Duration::from_mins(6) {
            wrong.push(format!("{name}: {took:?}, {asked:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    crate::hostile::assert_no_secret(&log);
}

#[tokio::test(start_paused = true)]
async fn credentials_are_sent_only_to_their_registry() {
    let net = Net::default();
    net.host("r.test", 80, None, |request| {
        let sent = request.headers().get("authorization");
        match sent.and_then(|value| value.to_str().ok()) {
            None => answer(401, &["www-authenticate: Basic realm=\"r\""], ""),
            Some(_) if is_layer(request) => {
                answer(307, &["location: http://cdn.test/layer?signature=s3cret"], "")
            }
            Some(_) => honest(request),
        }
    });
    net.host("cdn.test", 80, None, |_| answer(200, &[], LAYER));
    pull_with(settings_with_password(&net), Security::Plain).await.unwrap();
    for asked in net.log() {
        let sent = asked.header("authorization");
        assert!(!(asked.line.contains("cdn.test") && sent.is_some()), "{asked:?}");
    }
    assert!(net.lines().iter().any(|line| line.starts_with("GET cdn.test/layer?signature=")));
}

#[tokio::test(start_paused = true)]
async fn redirects_from_tls_to_plain_http_are_refused() {
    let headers: [(&str, &[&str], &str); 2] = [
        ("302", &["location: http://r.test/v2/"], "it is not encrypted"),
        (
            "401",
            &["www-authenticate: Bearer realm=\"http://r.test/token\""],
            "its token service has no https URL",
        ),
    ];
    for (status, headers, says) in headers {
        let net = Net::default();
        let (acceptor, authority) = certificate("r.test");
        let status: u16 = status.parse().unwrap();
        net.host("r.test", 443, Some(acceptor), move |_| answer(status, headers, ""));
        net.host("r.test", 80, None, |_| panic!("nobody is asked without TLS"));
        let settings =
            ClientSettings { authorities: vec![authority], ..settings_with_password(&net) };
        let error = pull_with(settings, Security::Tls).await.unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected_up_to_a_limit() {
    for (header, at_least) in [
        ("retry-after: 40", 40),
        ("retry-after: Thu, 01 Jan 1970 00:00:40 GMT", 39),
        ("retry-after: 4000", 60),
    ] {
        let net = Net::default();
        let count = AtomicUsize::new(0);
        net.host("r.test", 80, None, move |request| {
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                answer(429, &[header], "")
            } else {
                honest(request)
            }
        });
        let settings = net.settings();
        let clock = settings.clock;
        pull_with(settings, Security::Plain).await.unwrap();
        let waited = clock.elapsed().as_secs();
        assert!((at_least..at_least + 20).contains(&waited), "{header}: {waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn token_is_requested_once() {
    let net = Net::default();
    net.host("r.test", 80, None, |request| match path(request) {
        "/token" => {
            let query = request.uri().query().unwrap_or_default();
            assert_eq!(query, "service=a%20b&scope=repository%3Aa%3Apull");
            answer(200, &[], r#"{"access_token":"t0k","expires_in":300}"#)
        }
        _ if request.headers().get("authorization").is_some_and(|one| one == "Bearer t0k") => {
            honest(request)
        }
        _ => answer(
            401,
            &["www-authenticate: Bearer realm=\"http://r.test/token\",service=\"a b\""],
            "",
        ),
    });
    pull_with(settings_with_password(&net), Security::Plain).await.unwrap();
    let tokens = net.lines().iter().filter(|line| line.contains("/token")).count();
    assert_eq!((tokens, net.lines().len()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn interrupted_pull_is_resumed_by_the_next_one() {
    let net = Net::default();
    net.host("r.test", 80, None, |request| match request.headers().get("range") {
        _ if !is_layer(request) => honest(request),
        None => with_body(200, &[], breaking("01234")),
        Some(range) if range == "bytes=5-" => {
            answer(206, &["content-range: bytes 5-9/10"], "56789")
        }
        Some(_) => answer(416, &[], ""),
    });
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path()).unwrap();
    let reference: ImageReference = "r.test/a:v1".parse().unwrap();
    let once = ImageClient::new(ClientSettings { attempts: 1, ..net.settings() }).unwrap();
    let want = ImageSelection::All;
    once.pull(&reference, Security::Plain, &want, &store).await.unwrap_err();
    once.pull(&reference, Security::Plain, &want, &store).await.unwrap();
    let ranges: Vec<_> =
        net.log().iter().filter_map(|one| one.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges, ["bytes=5-"]);
}

#[tokio::test(start_paused = true)]
async fn uploads_to_invalid_locations_are_refused() {
    for (location, says) in [
        ("ftp://r.test/upload", "it is not HTTP"),
        ("http://name:s3cret@r.test/upload", "it contains credentials"),
        ("http://elsewhere.test/upload", "http://elsewhere.test/upload: connection refused"),
    ] {
        let net = Net::default();
        net.host("r.test", 80, None, move |request| match request.method().as_str() {
            "POST" => answer(202, &[&format!("location: {location}")], ""),
            _ => answer(404, &[], ""),
        });
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::open(folder.path()).unwrap();
        let image = crate::layouts::sample(&store, "text");
        let client = ImageClient::new(settings_with_password(&net)).unwrap();
        let reference = "r.test/a:v1".parse().unwrap();
        let error = client.push(&store, &image, &reference, Security::Plain).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains(says) && !error.contains("s3cret"), "{error}");
    }
}
