//! Our client against a third-party registry, if it is installed: Debian's `docker-registry`, with
//! TLS, with passwords, and with a token service.

use crate::{
    layouts::sample,
    net::{answer, certificate},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use http::{Request, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use mainstay_clock::Clock;
use mainstay_image::{
    credentials::Keyring,
    manifest::{ImageIndex, media_type},
    platform::Platform,
    reference::ImageReference,
    registry::{ClientSettings, ImageClient, ImageSelection, RegistryError, Security},
    store::ImageStore,
};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use std::{convert::Infallible, fs, path::Path, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpListener,
    process::{Child, Command},
};

/// `kiwi:fruit` as a bcrypt hash, which the registry requires.
const HTPASSWD: &str = "kiwi:$2b$05$u6NEnvFg6AAbVBZbQOoBSeYhPCz99j6d8I0pX/i6X01iySF4oUb/m\n";

/// A running registry; killed when dropped.
struct RunningRegistry {
    _child: Child,
    address: String,
}

/// Files with a certificate and its key.
struct Files {
    certificate: String,
    key: String,
    authority: CertificateDer<'static>,
    pair: EcdsaKeyPair,
}

fn files(folder: &Path, name: &str) -> Files {
    let self_signed = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let path = |suffix: &str| folder.join(format!("{name}.{suffix}")).display().to_string();
    let (certificate, key) = (path("crt"), path("key"));
    fs::write(&certificate, self_signed.cert.pem()).unwrap();
    fs::write(&key, self_signed.signing_key.serialize_pem()).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        &self_signed.signing_key.serialize_der(),
        &ring::rand::SystemRandom::new(),
    );
    Files { certificate, key, authority: self_signed.cert.der().clone(), pair: pair.unwrap() }
}

/// Starts the registry on a free port of loopback, and returns when it listens.
async fn start(folder: &Path, name: &str, auth: Value, tls: Option<&Files>) -> RunningRegistry {
    // The port was free a moment ago; another process is unlikely to take it.
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let mut http = json!({"addr": address});
    if let Some(tls) = tls {
        http["tls"] = json!({"certificate": tls.certificate, "key": tls.key});
    }
    let data = folder.join(name);
    let mut config = json!({
        "version": 0.1,
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": data}, "delete": {"enabled": true}},
        "http": http,
    });
    if !auth.is_null() {
        config["auth"] = auth;
    }
    let file = folder.join(format!("{name}.yml"));
    // JSON is YAML.
    fs::write(&file, config.to_string()).unwrap();
    let mut child = Command::new("docker-registry")
        .arg("serve")
        .arg(&file)
        .kill_on_drop(true)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    loop {
        let Some(line) = said.next_line().await.unwrap() else {
            panic!("the registry ended before it listened")
        };
        if line.contains("listening on") {
            break;
        }
    }
    // The rest of the log must be read, so that the registry does not block.
    tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
    RunningRegistry { _child: child, address }
}

fn client(authorities: &[&CertificateDer<'static>], keyring: Option<Value>) -> ImageClient {
    let mut ring = Keyring::new();
    if let Some(file) = keyring {
        ring.add_file("auth.json", file.to_string().as_bytes()).unwrap();
    }
    let mut settings = ClientSettings::new(Clock::system());
    settings.system_authorities = false;
    settings.authorities = authorities.iter().map(|&one| one.clone()).collect();
    settings.keyring = Arc::new(ring);
    settings.attempts = 2;
    settings.backoff = Duration::from_millis(10);
    ImageClient::new(settings).unwrap()
}

fn login(address: &str, password: &str) -> Value {
    let joined = STANDARD.encode(format!("kiwi:{password}"));
    json!({"auths": {address: {"auth": joined}}})
}

/// Pushes an index of two platforms, pulls it into an empty store, and compares.
async fn push_and_pull(client: &ImageClient, address: &str, security: Security, folder: &Path) {
    let ours = ImageStore::open(folder.join("ours")).unwrap();
    let back = tempfile::tempdir_in(folder).unwrap();
    let back = ImageStore::open(back.path()).unwrap();
    let (amd, mut arm) = (sample(&ours, "for amd"), sample(&ours, "for arm"));
    arm.platform = Some(Platform::linux("arm64"));
    let index = ours.put_json(media_type::OCI_INDEX, &ImageIndex::oci(vec![amd, arm])).unwrap();
    let reference: ImageReference = format!("{address}/fruit/kiwi:v1").parse().unwrap();
    client.push(&ours, &index, &reference, security).await.unwrap();
    // Existing blobs are not sent again, and mounted where possible.
    client.push(&ours, &index, &reference, security).await.unwrap();
    let pulled = client.pull(&reference, security, &ImageSelection::All, &back).await.unwrap();
    assert_eq!(pulled.top.digest, index.digest);
    for part in ours.document(&index.digest).unwrap().parts() {
        let manifest = back.document(&part.digest).unwrap();
        for blob in manifest.parts() {
            back.verify(&blob.digest).unwrap();
        }
    }
    assert_eq!(client.tags(&reference, security).await.unwrap(), ["v1"]);
    let missing = reference.with_tag("v2").unwrap();
    let error = client.resolve(&missing, security).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

fn is_installed() -> bool {
    let found = std::process::Command::new("docker-registry").arg("--version").output().is_ok();
    if !found {
        mainstay_testdata::skipped("docker-registry against our client: it is not installed");
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_registry_works_with_and_without_tls() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let plain = start(root, "plain", Value::Null, None).await;
    push_and_pull(&client(&[], None), &plain.address, Security::Plain, root).await;
    // An empty registry, so that all blobs are sent.
    let other = start(root, "other", Value::Null, None).await;
    push_and_pull(&client(&[], None), &other.address, Security::Insecure, root).await;
    let files = files(root, "tls");
    let tls = start(root, "secure", Value::Null, Some(&files)).await;
    let trusting = client(&[&files.authority], None);
    push_and_pull(&trusting, &tls.address, Security::Tls, root).await;
    push_and_pull(&client(&[], None), &tls.address, Security::Insecure, root).await;
    // An untrusted certificate is an error.
    let reference: ImageReference = format!("{}/fruit/kiwi:v1", tls.address).parse().unwrap();
    let error = client(&[], None).resolve(&reference, Security::Tls).await.unwrap_err();
    assert!(matches!(error, RegistryError::Connection { .. }), "{error}");
    mainstay_testdata::ran("our client against docker-registry, with and without TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_registry_works_with_passwords() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let htpasswd = root.join("htpasswd");
    fs::write(&htpasswd, HTPASSWD).unwrap();
    let files = files(root, "tls");
    let auth = json!({"htpasswd": {"realm": "fruit", "path": htpasswd}});
    let registry = start(root, "named", auth, Some(&files)).await;
    let address = &registry.address;
    let known = client(&[&files.authority], Some(login(address, "fruit")));
    push_and_pull(&known, address, Security::Tls, root).await;
    let reference: ImageReference = format!("{address}/fruit/kiwi:v1").parse().unwrap();
    for keyring in [None, Some(login(address, "vegetable"))] {
        let unauthorized = client(&[&files.authority], keyring);
        let error = unauthorized.resolve(&reference, Security::Tls).await.unwrap_err();
        assert!(matches!(error, RegistryError::Unauthorized { .. }), "{error}");
        assert!(!error.to_string().contains("vegetable"), "{error}");
    }
    mainstay_testdata::ran("our client against docker-registry, with a name and a password");
}

/// A token for the registry: a JWT with the certificate of its key.
fn token(files: &Files, service: &str, scopes: &str) -> String {
    let access: Vec<Value> = scopes
        .split(' ')
        .filter_map(|scope| {
            let mut parts = scope.splitn(3, ':');
            let (kind, name, actions) = (parts.next()?, parts.next()?, parts.next()?);
            let actions: Vec<&str> = actions.split(',').collect();
            Some(json!({"type": kind, "name": name, "actions": actions}))
        })
        .collect();
    let now = Clock::system().now().as_second();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = json!({"typ": "JWT", "alg": "ES256", "x5c": [STANDARD.encode(&files.authority)]});
    let claims = json!({
        "iss": "orchard", "sub": "kiwi", "aud": service, "exp": now + 300, "nbf": now - 10,
        "iat": now, "jti": "1", "access": access,
    });
    let text = format!("{}.{}", part(head), part(claims));
    let random = ring::rand::SystemRandom::new();
    let signature = files.pair.sign(&random, text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}

/// Responds to requests with the password with a token for the requested scope.
fn grant(files: &Files, request: &Request<Incoming>) -> http::Response<crate::net::Body> {
    let wanted = format!("Basic {}", STANDARD.encode("kiwi:fruit"));
    let shown = request.headers().get(header::AUTHORIZATION);
    if shown.and_then(|header| header.to_str().ok()) != Some(&wanted) {
        return answer(401, &[], "who are you?");
    }
    let query = request.uri().query().unwrap_or_default();
    let all = |key: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let values = pairs.filter(|(name, _)| *name == key);
        let decoded = values.map(|(_, value)| {
            value.replace("%3A", ":").replace("%2F", "/").replace("%2C", ",").replace(['+'], " ")
        });
        decoded.map(|value| value.replace("%20", " ")).collect::<Vec<_>>().join(" ")
    };
    let token = token(files, &all("service"), &all("scope"));
    answer(200, &["content-type: application/json"], json!({"token": token}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_registry_works_with_a_token_service() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let signer = Arc::new(files(root, "signer"));
    let (acceptor, authority) = certificate("127.0.0.1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = listener.local_addr().unwrap();
    let granting = Arc::clone(&signer);
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, files) = (acceptor.clone(), Arc::clone(&granting));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request| {
                    let answer = grant(&files, &request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let tls = files(root, "tls");
    let auth = json!({"token": {
        "realm": format!("https://{service}/token"), "service": "fruit", "issuer": "orchard",
        "rootcertbundle": signer.certificate,
    }});
    let registry = start(root, "tokens", auth, Some(&tls)).await;
    let address = &registry.address;
    let with =
        |password: &str| client(&[&tls.authority, &authority], Some(login(address, password)));
    push_and_pull(&with("fruit"), address, Security::Tls, root).await;
    let reference: ImageReference = format!("{address}/fruit/kiwi:v1").parse().unwrap();
    let error = with("vegetable").resolve(&reference, Security::Tls).await.unwrap_err();
    assert!(!error.to_string().contains("vegetable"), "{error}");
    serving.abort();
    mainstay_testdata::ran("our client against docker-registry, with a token service");
}
