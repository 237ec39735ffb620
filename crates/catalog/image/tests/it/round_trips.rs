//! Our client with our registry: pulling returns the pushed bytes.

use crate::{
    layouts::sample,
    net::{Net, certificate},
};
use futures::future::BoxFuture;
use mainstay_clock::Clock;
use mainstay_image::{
    digest::Digest,
    manifest::{Descriptor, ImageIndex, ImageManifest, media_type as media},
    platform::Platform,
    reference::ImageReference,
    registry::{
        ClientSettings, Dialer, ImageClient, ImageSelection, Proxies, RegistryError,
        RegistryStream, RetryListener, Security,
    },
    serve::{self, RegistryHandler},
    store::ImageStore,
};
use std::{
    fs, io,
    path::Path,
    sync::{Arc, Mutex},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn registry(folder: &Path, domain: &str) -> (ImageStore, RegistryHandler) {
    let store = ImageStore::open(folder).unwrap();
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    (store.clone(), RegistryHandler::new(store, serve::RegistrySettings::new(domain), clock))
}

/// An index of two platforms.
fn store_index(store: &ImageStore) -> Descriptor {
    let mut arm = sample(store, "for arm");
    arm.platform = Some(Platform::linux("arm64"));
    let index = ImageIndex::oci(vec![sample(store, "for amd"), arm]);
    store.put_json(media::OCI_INDEX, &index).unwrap()
}

fn blobs(store: &ImageStore) -> Vec<String> {
    let folder = fs::read_dir(store.root().join("blobs/sha256")).unwrap();
    let mut names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn pushed_image_is_pulled_unchanged() {
    for (security, port) in [(Security::Plain, 80), (Security::Tls, 443), (Security::Insecure, 443)]
    {
        let folder = tempfile::tempdir().unwrap();
        let ours = ImageStore::open(folder.path().join("ours")).unwrap();
        let (theirs, registry) = registry(&folder.path().join("theirs"), "r.test");
        let net = Net::default();
        let (acceptor, authority) = certificate("r.test");
        net.registry("r.test", port, (port == 443).then_some(acceptor), registry);
        let mut settings = net.settings();
        if security == Security::Tls {
            settings.authorities = vec![authority];
        }
        let client = ImageClient::new(settings).unwrap();
        let image = store_index(&ours);
        let reference: ImageReference = "r.test/org/name:v1".parse().unwrap();
        client.push(&ours, &image, &reference, security).await.unwrap();
        assert_eq!(blobs(&ours), blobs(&theirs));
        let again = net.log().len();
        client.push(&ours, &image, &reference, security).await.unwrap();
        let lines = net.lines();
        assert!(
            !lines[again..].iter().any(|line| line.contains("uploads")),
            "nothing is sent twice"
        );

        let back = ImageStore::open(folder.path().join("back")).unwrap();
        let pulled = client.pull(&reference, security, &ImageSelection::All, &back).await.unwrap();
        assert_eq!((pulled.top.digest.clone(), blobs(&back)), (image.digest.clone(), blobs(&ours)));
        assert_eq!(back.resolve(&reference).unwrap().unwrap().digest, image.digest);
        assert_eq!(client.tags(&reference, security).await.unwrap(), ["v1"]);

        let one = ImageStore::open(folder.path().join("one")).unwrap();
        let by_digest = reference.with_digest(image.digest.clone());
        let want = ImageSelection::Platform(Platform::linux("arm64"));
        let pulled = client.pull(&by_digest, security, &want, &one).await.unwrap();
        assert_eq!(pulled.image.unwrap().platform.unwrap().architecture, "arm64");
        assert_eq!(blobs(&one).len(), 4, "index, manifest, configuration, layer");
        let asked = net.log().len();
        client.pull(&by_digest, security, &want, &one).await.unwrap();
        assert_eq!(net.log().len(), asked, "what is there by digest is not asked for");
        let want = ImageSelection::Platform(Platform::linux("s390x"));
        let error = client.pull(&reference, security, &want, &one).await.unwrap_err();
        assert!(error.to_string().contains("it has linux/amd64, linux/arm64"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn untrusted_certificate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, registry) = registry(folder.path(), "r.test");
    let net = Net::default();
    net.registry("r.test", 443, Some(certificate("r.test").0), registry);
    let reference = "r.test/a".parse().unwrap();
    let error = net.client().tags(&reference, Security::Tls).await.unwrap_err();
    assert!(matches!(&error, RegistryError::Connection { .. }), "{error}");
    assert!(net.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn retry_is_reported_before_the_wait() {
    // No host listens.
    let net = Net::default();
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&errors);
    let mut settings = net.settings();
    let clock = settings.clock;
    let begun = clock.elapsed();
    settings.on_retry = RetryListener::new(move |error| {
        let after = clock.elapsed().saturating_sub(begun).as_secs();
        log.lock().unwrap().push(format!("{after} s: {error}"));
    });
    let client = ImageClient::new(settings).unwrap();
    let reference: ImageReference = "r.test/a:b".parse().unwrap();
    let error = client.resolve(&reference, Security::Tls).await.unwrap_err().to_string();
    let errors = errors.lock().unwrap();
    assert_eq!(errors.len(), 3, "the fourth attempt is the last one: {errors:?}");
    assert_eq!(errors[0], format!("0 s: {error}"));
}

#[tokio::test(start_paused = true)]
async fn insecure_registry_may_have_no_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (store, registry) = registry(folder.path(), "r.test:5000");
    let image = sample(&store, "text");
    store.set(&"r.test:5000/a:b".parse().unwrap(), &image).unwrap();
    let net = Net::default();
    net.registry("r.test", 5000, None, registry);
    let reference: ImageReference = "r.test:5000/a:b".parse().unwrap();
    let (found, _) = net.client().resolve(&reference, Security::Insecure).await.unwrap();
    assert_eq!(found.digest, image.digest);
    assert!(net.client().resolve(&reference, Security::Tls).await.is_err());
}

/// Sends a request to our registry without a connection.
async fn send_request(
    registry: &RegistryHandler,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, http::HeaderMap, Vec<u8>) {
    use http_body_util::{BodyExt as _, Full};
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(bytes::Bytes::copy_from_slice(body))).unwrap();
    let (parts, body) = registry.handle(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    (parts.status.as_u16(), parts.headers, body)
}

#[tokio::test]
async fn registry_follows_the_distribution_specification() {
    let folder = tempfile::tempdir().unwrap();
    let (store, registry) = registry(folder.path(), "r.test");
    let (config, layer) = (b"{}", b"0123456789");
    let (config_digest, layer_digest) = (Digest::of(config), Digest::of(layer));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();

    assert_eq!(send_request(&registry, "GET", "/v2/", &[], b"").await.0, 200);
    // Uploads in one request, and in chunks.
    let path = format!("/v2/a/b/blobs/uploads/?digest={config_digest}");
    assert_eq!(send_request(&registry, "POST", &path, &[], config).await.0, 201);
    let (status, headers, _) =
        send_request(&registry, "POST", "/v2/a/b/blobs/uploads/", &[], b"").await;
    assert_eq!(status, 202);
    let upload = headers["location"].to_str().unwrap().to_owned();
    let (status, headers, _) =
        send_request(&registry, "PATCH", &upload, &[("content-range", "0-3")], &layer[..4]).await;
    assert_eq!((status, headers["range"].to_str().unwrap()), (202, "0-3"));
    let (status, ..) =
        send_request(&registry, "PATCH", &upload, &[("content-range", "6-9")], b"6789").await;
    assert_eq!(status, 416, "a gap");
    let (status, headers, _) = send_request(&registry, "GET", &upload, &[], b"").await;
    assert_eq!((status, headers["range"].to_str().unwrap()), (204, "0-3"));
    let path = format!("{upload}?digest={layer_digest}");
    let (status, headers, _) = send_request(&registry, "PUT", &path, &[], &layer[4..]).await;
    assert_eq!(
        (status, headers["docker-content-digest"].to_str().unwrap()),
        (201, &*layer_digest.to_string())
    );
    assert_eq!(
        send_request(&registry, "PUT", &path, &[], b"").await.0,
        404,
        "the upload has ended"
    );

    let blob = format!("/v2/a/b/blobs/{layer_digest}");
    let (status, headers, body) =
        send_request(&registry, "GET", &blob, &[("range", "bytes=2-4")], b"").await;
    assert_eq!((status, text(&body).as_str()), (206, "234"));
    assert_eq!(headers["content-range"], "bytes 2-4/10");
    assert_eq!(send_request(&registry, "GET", &blob, &[("range", "bytes=10-")], b"").await.0, 416);
    let (status, headers, body) = send_request(&registry, "HEAD", &blob, &[], b"").await;
    assert_eq!((status, headers["content-length"].to_str().unwrap(), body.len()), (200, "10", 0));
    assert_eq!(send_request(&registry, "DELETE", &blob, &[], b"").await.0, 405);
    // Mounting from another repository, with an existing and a missing blob.
    let mount = format!("/v2/c/blobs/uploads/?mount={layer_digest}&from=a/b");
    assert_eq!(send_request(&registry, "POST", &mount, &[], b"").await.0, 201);
    let mount = format!("/v2/c/blobs/uploads/?mount={}&from=a/b", Digest::of(b"lost"));
    assert_eq!(send_request(&registry, "POST", &mount, &[], b"").await.0, 202);

    let manifest = ImageManifest::oci(
        Descriptor::of(media::OCI_EMPTY, config),
        vec![Descriptor::of(media::OCI_LAYER, layer)],
    );
    let bytes = serde_json::to_vec(&manifest).unwrap();
    let typed = [("content-type", media::OCI_MANIFEST)];
    for tag in ["v2", "v1", "v3"] {
        let path = format!("/v2/a/b/manifests/{tag}");
        assert_eq!(send_request(&registry, "PUT", &path, &typed, &bytes).await.0, 201);
    }
    let (_, headers, body) =
        send_request(&registry, "GET", "/v2/a/b/tags/list?n=2", &[], b"").await;
    assert_eq!(text(&body), r#"{"name":"a/b","tags":["v1","v2"]}"#);
    assert_eq!(headers["link"], "</v2/a/b/tags/list?n=2&last=v2>; rel=\"next\"");
    let (_, headers, body) =
        send_request(&registry, "GET", "/v2/a/b/tags/list?n=2&last=v2", &[], b"").await;
    assert_eq!(
        (text(&body).as_str(), headers.get("link")),
        (r#"{"name":"a/b","tags":["v3"]}"#, None)
    );
    let (_, _, body) = send_request(&registry, "GET", "/v2/_catalog", &[], b"").await;
    assert_eq!(text(&body), r#"{"repositories":["a/b"]}"#);
    // The repository of another registry, for which this one is a mirror.
    let (status, ..) =
        send_request(&registry, "GET", "/v2/a/b/manifests/v1?ns=other.test", &[], b"").await;
    assert_eq!(status, 404);

    let digest = Digest::of(&bytes);
    let mut about = ImageManifest::oci(Descriptor::of(media::OCI_EMPTY, config), Vec::new());
    about.subject = Some(Descriptor::of(media::OCI_MANIFEST, &bytes));
    about.artifact_type = Some("application/example".to_owned());
    let about = serde_json::to_vec(&about).unwrap();
    let path = format!("/v2/a/b/manifests/{}", Digest::of(&about));
    let (status, headers, _) = send_request(&registry, "PUT", &path, &typed, &about).await;
    assert_eq!((status, headers["oci-subject"].to_str().unwrap()), (201, &*digest.to_string()));
    for (kind, count) in
        [("", 1), ("?artifactType=application%2Fexample", 1), ("?artifactType=x", 0)]
    {
        let path = format!("/v2/a/b/referrers/{digest}{kind}");
        let (_, _, body) = send_request(&registry, "GET", &path, &[], b"").await;
        let index: ImageIndex = serde_json::from_slice(&body).unwrap();
        assert_eq!(index.manifests.len(), count, "{kind}");
    }
    // Deleting a tag keeps other tags; deleting a digest removes its tags.
    assert_eq!(send_request(&registry, "DELETE", "/v2/a/b/manifests/v2", &[], b"").await.0, 202);
    assert_eq!(store.tags("r.test/a/b").unwrap(), ["v1", "v3"]);
    let path = format!("/v2/a/b/manifests/{digest}");
    assert_eq!(send_request(&registry, "DELETE", &path, &[], b"").await.0, 202);
    assert!(store.tags("r.test/a/b").unwrap().is_empty());
    assert_eq!(send_request(&registry, "GET", &path, &[], b"").await.0, 404);
}

#[tokio::test]
async fn registry_returns_the_error_codes_of_the_specification() {
    let folder = tempfile::tempdir().unwrap();
    let (_, registry) = registry(folder.path(), "r.test");
    let hex = "a".repeat(64);
    let lost = format!(
        r#"{{"schemaVersion":2,"config":{{"digest":"sha256:{hex}","size":1}},"layers":[]}}"#
    );
    let blob = format!("/v2/a/blobs/sha256:{hex}");
    let by_digest = format!("/v2/a/manifests/sha256:{hex}");
    let upload = format!("/v2/a/blobs/uploads/?digest=sha256:{hex}");
    let unknown = format!("/v2/a/blobs/uploads/{hex}?digest=sha256:{hex}");
    let long = vec![b' '; (4 << 20) + 1];
    let cases: &[(&str, &str, &[u8], u16, &str)] = &[
        ("GET", "/", b"", 404, "NAME_UNKNOWN"),
        ("GET", "/v2/a/tags/list", b"", 404, "NAME_UNKNOWN"),
        ("GET", "/v2/A/tags/list", b"", 400, "NAME_INVALID"),
        ("GET", "/v2/../../etc/tags/list", b"", 400, "NAME_INVALID"),
        ("GET", "/v2/_tags/tags/list", b"", 400, "NAME_INVALID"),
        ("GET", "/v2/a/tags/list?ns=../..", b"", 400, "NAME_INVALID"),
        ("GET", "/v2/a/manifests/v1", b"", 404, "MANIFEST_UNKNOWN"),
        ("GET", "/v2/a/manifests/..%2f..", b"", 404, "MANIFEST_UNKNOWN"),
        ("GET", "/v2/a/manifests/sha256:abc", b"", 400, "DIGEST_INVALID"),
        ("GET", &blob, b"", 404, "BLOB_UNKNOWN"),
        ("GET", "/v2/a/blobs/sha256:..%2f..%2fx", b"", 400, "DIGEST_INVALID"),
        ("POST", &upload, b"other", 400, "DIGEST_INVALID"),
        ("PUT", &unknown, b"", 404, "BLOB_UPLOAD_UNKNOWN"),
        ("PATCH", "/v2/a/blobs/uploads/x", b"", 404, "BLOB_UPLOAD_UNKNOWN"),
        ("PUT", "/v2/a/manifests/v1", b"{}", 400, "MANIFEST_INVALID"),
        ("PUT", "/v2/a/manifests/v1", &long, 413, "MANIFEST_INVALID"),
        ("PUT", "/v2/a/manifests/v1", lost.as_bytes(), 404, "MANIFEST_BLOB_UNKNOWN"),
        ("PUT", &by_digest, lost.as_bytes(), 400, "DIGEST_INVALID"),
        ("POST", "/v2/a/manifests/v1", b"", 405, "UNSUPPORTED"),
        ("DELETE", &blob, b"", 405, "UNSUPPORTED"),
    ];
    for (method, path, body, status, code) in cases {
        let (found, _, answer) = send_request(&registry, method, path, &[], body).await;
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(found, *status, "{method} {path}: {answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{method} {path}: {answer}");
    }
    let mut settings = serve::RegistrySettings::new("r.test");
    settings.writable = false;
    settings.uploads = 1;
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let store = ImageStore::open(folder.path()).unwrap();
    let closed = RegistryHandler::new(store.clone(), settings.clone(), clock);
    assert_eq!(send_request(&closed, "POST", "/v2/a/blobs/uploads/", &[], b"").await.0, 405);
    settings.writable = true;
    let small = RegistryHandler::new(store, settings, clock);
    assert_eq!(send_request(&small, "POST", "/v2/a/blobs/uploads/", &[], b"").await.0, 202);
    assert_eq!(send_request(&small, "POST", "/v2/a/blobs/uploads/", &[], b"").await.0, 429);
}

#[tokio::test]
async fn writing_to_a_registry_with_an_account_requires_its_password() {
    use mainstay_image::credentials::Keyring;
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path()).unwrap();
    let image = sample(&store, "text");
    store.set(&"r.test/a:v1".parse().unwrap(), &image).unwrap();
    let account = serve::Account::random("mainstay").unwrap();
    let file = account.credentials_file(&["r.test".to_owned()]);
    let joined: serde_json::Value = serde_json::from_str(&file).unwrap();
    let good = format!("Basic {}", joined["auths"]["r.test"]["auth"].as_str().unwrap());
    let mut settings = serve::RegistrySettings::new("r.test");
    settings.account = Some(account);
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let registry = RegistryHandler::new(store.clone(), settings, clock);
    let (manifest, blob) = ("/v2/a/manifests/v1", format!("/v2/a/blobs/{}", image.digest));
    let mount = format!("/v2/b/blobs/uploads/?mount={}&from=a", image.digest);
    let nobody = [("authorization", "Basic Og==")];
    let wrong = [("authorization", "Basic bWFpbnN0YXk6")];
    let known = [("authorization", good.as_str())];
    let upload = "/v2/a/blobs/uploads/";
    for (method, path, open) in [
        ("GET", "/v2/", false),
        ("GET", "/v2/_catalog", true),
        ("GET", "/v2/a/tags/list", true),
        ("GET", manifest, true),
        ("HEAD", manifest, true),
        ("GET", blob.as_str(), true),
        ("POST", upload, false),
        ("POST", mount.as_str(), false),
        ("PUT", manifest, false),
        ("DELETE", manifest, false),
        ("DELETE", blob.as_str(), false),
        ("GET", "/v2/a/blobs/uploads/x", false),
        ("PATCH", "/v2/a/blobs/uploads/x", false),
        ("POST", "/elsewhere", false),
    ] {
        for headers in [&[][..], &nobody, &wrong] {
            let (status, found, body) = send_request(&registry, method, path, headers, b"").await;
            let refused = !open || headers == wrong;
            assert_eq!(status == 401, refused, "{method} {path} {headers:?}: {status}");
            if refused {
                assert_eq!(
                    found["www-authenticate"],
                    "Basic realm=\"mainstay\", charset=\"UTF-8\""
                );
                let text = String::from_utf8(body).unwrap();
                let says = text.contains("\"code\":\"UNAUTHORIZED\"");
                assert!(says || method == "HEAD", "{text}");
            }
        }
        if method != "DELETE" {
            let status = send_request(&registry, method, path, &known, b"").await.0;
            assert_ne!(status, 401, "{method} {path}");
        }
    }
    assert!(store.resolve(&"r.test/a:v1".parse().unwrap()).unwrap().is_some());

    // Our client sends its credentials after a challenge.
    let net = Net::default();
    net.registry("r.test", 80, None, registry);
    let (ours, reference) = (ImageStore::open(folder.path().join("ours")).unwrap(), "r.test/c:v1");
    let pushed = sample(&ours, "other");
    let reference: ImageReference = reference.parse().unwrap();
    let mut keyring = Keyring::new();
    let client = net.client();
    let refused = client.push(&ours, &pushed, &reference, Security::Plain).await.unwrap_err();
    assert!(matches!(refused, RegistryError::Unauthorized { .. }), "{refused}");
    keyring.add_file("a file", file.as_bytes()).unwrap();
    let settings = ClientSettings { keyring: Arc::new(keyring), ..net.settings() };
    let client = ImageClient::new(settings).unwrap();
    client.push(&ours, &pushed, &reference, Security::Plain).await.unwrap();
    assert!(store.resolve(&reference).unwrap().is_some());
}

#[test]
fn store_files_are_accessible_only_to_their_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path().join("deep/store")).unwrap();
    let image = sample(&store, "private");
    store.set(&"r.test/a:v1".parse().unwrap(), &image).unwrap();
    let mut open = vec![folder.path().join("deep")];
    let mut seen = 0;
    while let Some(path) = open.pop() {
        let about = path.symlink_metadata().unwrap();
        assert_eq!(about.permissions().mode() & 0o077, 0, "{}", path.display());
        seen += 1;
        if about.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen > 10, "{seen}");
}

/// A proxy in front of a network: its status line, and the requests that it received.
struct Tunnel {
    net: Net,
    asked: Arc<Mutex<Vec<String>>>,
    status: &'static str,
}

impl Dialer for Tunnel {
    fn dial(
        &self,
        host: String,
        port: u16,
    ) -> BoxFuture<'static, io::Result<Box<dyn RegistryStream>>> {
        let (net, asked, status) = (self.net.clone(), Arc::clone(&self.asked), self.status);
        Box::pin(async move {
            assert_eq!((host.as_str(), port), ("proxy.test", 3128), "all go through the proxy");
            let (near, mut far) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(far.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap().to_owned();
                asked.lock().unwrap().push(head);
                far.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await.unwrap();
                let (host, port) = target.rsplit_once(':').unwrap();
                let there = net.dial(host.to_owned(), port.parse().unwrap()).await;
                let _ = tokio::io::copy_bidirectional(&mut far, &mut there.unwrap()).await;
            });
            Ok(Box::new(near) as Box<dyn RegistryStream>)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn proxy_tunnel_is_requested_with_the_proxy_password() {
    for (status, fine) in [("200 OK", true), ("407 Proxy Authentication Required", false)] {
        let folder = tempfile::tempdir().unwrap();
        let (store, registry) = registry(folder.path(), "r.test");
        let image = sample(&store, "text");
        store.set(&"r.test/a:b".parse().unwrap(), &image).unwrap();
        let net = Net::default();
        let (acceptor, authority) = certificate("r.test");
        net.registry("r.test", 443, Some(acceptor), registry);
        let asked = Arc::default();
        let tunnel = Tunnel { net: net.clone(), asked: Arc::clone(&asked), status };
        let proxies = Proxies::from_environment(|name| {
            (name == "HTTPS_PROXY").then(|| "http://name:s3cret@proxy.test:3128".to_owned())
        });
        let client = ImageClient::new(ClientSettings {
            dial: Arc::new(tunnel),
            authorities: vec![authority],
            proxies: proxies.unwrap(),
            ..net.settings()
        });
        let reference = "r.test/a:b".parse().unwrap();
        match client.unwrap().resolve(&reference, Security::Tls).await {
            Ok((found, _)) => assert!(fine && found.digest == image.digest),
            Err(error) => {
                let error = format!("{error} {error:?}");
                // shows OLMV1-55
                assert!(
                    !fine && error.contains("the proxy refuses the connection with status 407"),
                    "{error}"
                );
                assert!(!error.contains("s3cret"), "{error}");
            }
        }
        let asked = asked.lock().unwrap().concat();
        // shows OLMV1-55
        assert!(
            asked.starts_with("CONNECT r.test:443 HTTP/1.1\r\nHost: r.test:443\r\n"),
            "{asked}"
        );
        assert!(asked.contains("Proxy-Authorization: Basic bmFtZTpzM2NyZXQ=\r\n"), "{asked}");
        for asked in net.log() {
            assert_eq!(
                asked.header("proxy-authorization"),
                None,
                "the registry does not get the proxy's credentials"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn first_path_component_with_a_dot_is_a_registry_with_folders() {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::open(folder.path()).unwrap();
    for name in ["localhost/kiwi:v1", "quay.io/fruit/kiwi:v2", "other:5000/fig:v3"] {
        store.set(&name.parse().unwrap(), &sample(&store, name)).unwrap();
    }
    let mut settings = serve::RegistrySettings::new("localhost");
    settings.folders = true;
    let addresses = ["localhost".to_owned(), "127.0.0.1:7".to_owned()];
    for (name, wanted) in [
        ("localhost/kiwi:v1", "localhost/kiwi:v1"),
        ("127.0.0.1:7/kiwi:v1", "localhost/kiwi:v1"),
        ("127.0.0.1:7/quay.io/fruit/kiwi:v1", "quay.io/fruit/kiwi:v1"),
        ("127.0.0.1:7/quay.io:v1", "localhost/quay.io:v1"),
        ("127.0.0.1:8/kiwi:v1", "127.0.0.1:8/kiwi:v1"),
        ("quay.io/fruit/kiwi:v1", "quay.io/fruit/kiwi:v1"),
    ] {
        let reference: ImageReference = name.parse().unwrap();
        assert_eq!(settings.stored(&reference, &addresses).to_string(), wanted, "{name}");
    }
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let registry = RegistryHandler::new(store, settings, clock);
    for (path, wanted) in [
        ("/v2/_catalog", "{\"repositories\":[\"kiwi\",\"quay.io/fruit/kiwi\"]}"),
        ("/v2/_catalog?ns=quay.io", "{\"repositories\":[\"fruit/kiwi\"]}"),
        ("/v2/kiwi/tags/list", "{\"name\":\"kiwi\",\"tags\":[\"v1\"]}"),
        ("/v2/quay.io/fruit/kiwi/tags/list", "{\"name\":\"quay.io/fruit/kiwi\",\"tags\":[\"v2\"]}"),
        ("/v2/fruit/kiwi/tags/list?ns=quay.io", "{\"name\":\"fruit/kiwi\",\"tags\":[\"v2\"]}"),
    ] {
        let (status, _, body) = send_request(&registry, "GET", path, &[], b"").await;
        assert_eq!((status, String::from_utf8_lossy(&body).as_ref()), (200, wanted), "{path}");
    }
}
