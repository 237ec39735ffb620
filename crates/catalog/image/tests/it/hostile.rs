//! Hosts that do not speak HTTP correctly, folders that are no layouts, and secrets in logs.

use crate::hostile_registries::{LAYER, PASSWORD, honest, path, pull_with, settings_with_password};
use crate::net::{Net, answer};
use base64::Engine as _;
use futures::future::BoxFuture;
use mainstay_image::{
    digest::Digest,
    fetch::Fetcher,
    layout,
    manifest::{Descriptor, ImageIndex, media_type as media},
    mirror,
    platform::Platform,
    policy::SignaturePolicy,
    registry::{ImageClient, ImageSelection, Security},
    store::ImageStore,
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    sync::{Arc, Mutex},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::Duration;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};

/// Nested indexes by digest, and the digest of the outermost one.
pub(crate) fn chain(length: usize) -> (BTreeMap<String, Vec<u8>>, String) {
    let mut documents = BTreeMap::new();
    let mut inner = Descriptor::of(media::OCI_INDEX, b"nothing");
    for _ in 0..length {
        inner.platform = Some(Platform::linux("amd64"));
        let bytes = serde_json::to_vec(&ImageIndex::oci(vec![inner])).unwrap();
        inner = Descriptor::of(media::OCI_INDEX, &bytes);
        documents.insert(inner.digest.to_string(), bytes);
    }
    (documents, inner.digest.to_string())
}

/// The log of this thread.
#[derive(Clone, Default)]
pub(crate) struct RecordedLog(Arc<Mutex<String>>);

impl Visit for RecordedLog {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0.lock().unwrap(), "{field}={value:?} ");
    }
}

impl Subscriber for RecordedLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Records the log at every level, until the guard is dropped.
pub(crate) fn record_log() -> (RecordedLog, DefaultGuard) {
    let log = RecordedLog::default();
    let guard = tracing::subscriber::set_default(log.clone());
    (log, guard)
}

/// Checks that the log contains no password, no token and no signature of a URL.
pub(crate) fn assert_no_secret(log: &RecordedLog) {
    let log = log.0.lock().unwrap();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("somebody:{PASSWORD}"));
    for secret in [PASSWORD, &*basic, "s3cret", "t0k"] {
        assert!(!log.contains(secret), "{secret} was logged: {log}");
    }
}

#[tokio::test(start_paused = true)]
async fn log_of_a_refused_request_contains_no_secret() {
    let (log, _guard) = record_log();
    let net = Net::default();
    net.host("r.test", 80, None, |request| {
        if request.headers().contains_key("authorization") {
            let text =
                format!("{{\"errors\":[{{\"code\":\"DENIED\",\"message\":\"no {PASSWORD}\"}}]}}");
            answer(403, &[], text)
        } else {
            answer(401, &["www-authenticate: Basic realm=\"r\""], "")
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let fetcher = Fetcher {
        client: ImageClient::new(settings_with_password(&net)).unwrap(),
        rules: mirror::from_toml("").unwrap(),
        policy: SignaturePolicy::accept_anything(),
        store: ImageStore::open(folder.path()).unwrap(),
        security: Security::Plain,
    };
    fetcher.fetch(&"r.test/a:v1".parse().unwrap(), &ImageSelection::All).await.unwrap_err();
    assert!(log.0.lock().unwrap().contains("DENIED no ***"), "what happened is logged");
    assert_no_secret(&log);
}

type Serve = fn(DuplexStream) -> BoxFuture<'static, ()>;

/// Sends a text after the first byte of a request, and then holds or closes the connection.
fn send_text<T: Into<Vec<u8>>>(
    text: T,
    holds: bool,
) -> impl Fn(DuplexStream) -> BoxFuture<'static, ()> + use<T> {
    let text: Arc<Vec<u8>> = Arc::new(text.into());
    move |mut stream| {
        let text = Arc::clone(&text);
        Box::pin(async move {
            let _ = stream.read_u8().await;
            let _ = stream.write_all(&text).await;
            if holds {
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                std::future::pending::<()>().await;
            }
        })
    }
}

/// Sends a text, and then another one repeatedly, until the client closes the connection.
fn send_repeatedly(
    first: &'static str,
    again: &'static str,
    every: Duration,
) -> impl Fn(DuplexStream) -> BoxFuture<'static, ()> {
    move |mut stream| {
        Box::pin(async move {
            let _ = stream.read_u8().await;
            let mut text = first;
            while stream.write_all(text.as_bytes()).await.is_ok() {
                tokio::time::sleep(every).await;
                text = again;
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn client_gives_up_on_hosts_that_do_not_speak_http() {
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.oci.image.manifest.v1+json\r\n";
    let none = Duration::ZERO;
    let silent: Serve = |stream| {
        Box::pin(async move {
            let _stream = stream;
            std::future::pending::<()>().await;
        })
    };
    let gone: Serve = |_| Box::pin(async {});
    let boxed = |serve: Box<dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync>| serve;
    let cases = [
        (
            "it takes connections and says nothing",
            boxed(Box::new(silent)),
            "no data was transferred for 30 s",
        ),
        ("it hangs up", boxed(Box::new(gone)), "r.test/v2/a/manifests/v1: "),
        (
            "it speaks something else",
            boxed(Box::new(send_text("\x16\x03\x01 hello\r\n\r\n", true))),
            "manifests/v1: ",
        ),
        (
            "a line without an end",
            boxed(Box::new(send_text(format!("HTTP/1.1 200 {}", "x".repeat(1 << 20)), true))),
            "manifests/v1: ",
        ),
        (
            "headers without an end",
            boxed(Box::new(send_repeatedly(HEAD, "x: y\r\n", none))),
            "manifests/v1: ",
        ),
        (
            "interim answers without an end",
            boxed(Box::new(send_repeatedly(
                "HTTP/1.1 100 Continue\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\n",
                Duration::from_secs(1),
            ))),
            "no data was transferred for 30 s",
        ),
        (
            "an answer byte by byte",
            boxed(Box::new(send_repeatedly(
                "HTTP/1.1 200 OK\r\ncontent-length: 4000000\r\n\r\n",
                " ",
                Duration::from_secs(20),
            ))),
            "the response was not complete after 150 s",
        ),
        (
            "two lengths",
            boxed(Box::new(send_text(
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
                true,
            ))),
            "manifests/v1: ",
        ),
        (
            "less than was announced",
            boxed(Box::new(send_text(
                "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello",
                false,
            ))),
            "manifests/v1: ",
        ),
        (
            "a chunk that is none",
            boxed(Box::new(send_text(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                true,
            ))),
            "manifests/v1: ",
        ),
        (
            "chunks without an end",
            boxed(Box::new(send_repeatedly(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                "8\r\n        \r\n",
                none,
            ))),
            "more than 4194304 bytes",
        ),
    ];
    let mut wrong = Vec::new();
    for (name, serve, says) in cases {
        let net = Net::default();
        net.raw("r.test", 80, serve);
        let clock = net.settings().clock;
        let pulled = pull_with(net.settings(), Security::Plain).await;
        let (took, asked) = (clock.elapsed(), net.lines().len());
        let good = pulled.as_ref().is_err_and(|error| error.contains(says));
        if !good || asked > 4 || took > Duration::from_mins(12) {
            wrong.push(format!("{name}: {pulled:?} after {took:?} and {asked} connections"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let net = Net::default();
    net.raw("r.test", 443, silent);
    let error = pull_with(net.settings(), Security::Tls).await.unwrap_err();
    assert!(
        error.contains("no connection within the timeout") && net.lines().len() <= 4,
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn credentials_are_sent_only_for_challenges_of_the_registry() {
    let net = Net::default();
    net.host("r.test", 80, None, |request| {
        if path(request).ends_with(Digest::of(LAYER).hex()) {
            answer(307, &["location: http://cdn.test/layer"], "")
        } else {
            honest(request)
        }
    });
    net.host("cdn.test", 80, None, |_| {
        answer(
            401,
            &["www-authenticate: Bearer realm=\"http://evil.test/token\",service=\"s\""],
            "",
        )
    });
    net.host("evil.test", 80, None, |_| answer(200, &[], r#"{"token":"t"}"#));
    let error = pull_with(settings_with_password(&net), Security::Plain).await.unwrap_err();
    assert!(error.contains("it does not get its credentials"), "{error}");
    assert!(net.lines().iter().all(|line| !line.contains("evil.test")), "{:?}", net.lines());
}

#[tokio::test(start_paused = true)]
async fn tag_lists_are_limited_and_stay_on_their_registry() {
    for (link, says) in [
        (
            "<http://evil.test/v2/a/tags/list?x=://r.test/>; rel=\"next\"",
            "the next page of the list of tags is on another host",
        ),
        (
            "<http://r.test.evil.test/v2/a/tags/list>; rel=\"next\"",
            "the next page of the list of tags is on another host",
        ),
        ("<file:///etc/passwd>; rel=\"next\"", "it is not HTTP"),
        // The same page repeatedly, one megabyte each.
        ("</v2/a/tags/list?last=x>; rel=\"next\"", "the list of tags has more than"),
    ] {
        let net = Net::default();
        net.host("r.test", 80, None, move |_| {
            let tags = format!(r#"{{"tags":["{}"]}}"#, "x".repeat(1 << 20));
            answer(200, &[&format!("link: {link}")], tags)
        });
        net.host("evil.test", 80, None, |_| panic!("nobody is sent here"));
        let client = ImageClient::new(settings_with_password(&net)).unwrap();
        let reference = "r.test/a".parse().unwrap();
        let error = client.tags(&reference, Security::Plain).await.unwrap_err().to_string();
        assert!(error.contains(says) && error.len() < 500, "{link}: {error}");
        assert!(net.lines().len() < 50, "{link}");
    }
}

/// The response to a method: a status and a header.
type Script = fn(&str) -> (u16, &'static str);

#[tokio::test(start_paused = true)]
async fn refused_pushes_end() {
    let cases: [(&str, Script, &str); 6] = [
        ("too many requests, for ever", |_| (429, "x: y"), "429"),
        (
            "trouble at the beginning",
            |method| if method == "POST" { (503, "x: y") } else { (404, "x: y") },
            "503",
        ),
        (
            "nowhere to upload to",
            |method| if method == "POST" { (202, "x: y") } else { (404, "x: y") },
            "the response has no Location for the upload",
        ),
        (
            "an upload that is always gone",
            |method| if method == "POST" { (202, "location: /v2/a/up") } else { (404, "x: y") },
            "404",
        ),
        (
            "an upload that leads elsewhere again",
            |method| match method {
                "POST" => (202, "location: /v2/a/up"),
                "PUT" => (307, "location: http://evil.test/"),
                _ => (404, "x: y"),
            },
            "only GET and HEAD requests follow redirects",
        ),
        (
            "a manifest that is refused",
            |method| match method {
                "HEAD" => (200, "x: y"),
                _ => (400, "x: y"),
            },
            "400",
        ),
    ];
    for (name, script, says) in cases {
        let net = Net::default();
        net.host("r.test", 80, None, move |request| {
            let (status, header) = script(request.method().as_str());
            answer(status, &[header], "")
        });
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::open(folder.path()).unwrap();
        let image = crate::layouts::sample(&store, "text");
        let client = ImageClient::new(net.settings()).unwrap();
        let reference = "r.test/a:v1".parse().unwrap();
        let error = client.push(&store, &image, &reference, Security::Plain).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains(says), "{name}: {error}");
        assert!(net.lines().len() <= 40, "{name}: {}", net.lines().len());
    }
}

/// A change that makes a layout invalid.
type Harm<'h> = Box<dyn Fn(&std::path::Path) + 'h>;

#[test]
fn invalid_layout_folders_are_refused_without_blocking() {
    let place = tempfile::tempdir().unwrap();
    let store = ImageStore::open(place.path().join("store")).unwrap();
    let good = place.path().join("good");
    let image = crate::layouts::sample(&store, "text");
    layout::write_folder(&store, &[("v1".to_owned(), image.clone())], &good).unwrap();
    let pipe = |path: &std::path::Path| {
        let _ = fs::remove_file(path);
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let blob = format!("blobs/sha256/{}", image.digest.hex());
    let (documents, top) = chain(40);
    let nested = |folder: &std::path::Path| {
        for (digest, bytes) in &documents {
            let name = digest.trim_start_matches("sha256:");
            fs::write(folder.join("blobs/sha256").join(name), bytes).unwrap();
        }
        let outer = Descriptor::of(media::OCI_INDEX, &documents[&top]);
        let index = serde_json::to_vec(&ImageIndex::oci(vec![outer])).unwrap();
        fs::write(folder.join("index.json"), index).unwrap();
    };
    let secret = place.path().join("secret");
    fs::write(&secret, "s3cret").unwrap();
    let instead = |path: &std::path::Path| {
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink(&secret, path).unwrap();
    };
    let cases: Vec<(&str, Harm<'_>, &str)> = vec![
        (
            "a pipe as index",
            Box::new(|folder| pipe(&folder.join("index.json"))),
            "it is not a regular file",
        ),
        (
            "a pipe as version",
            Box::new(|folder| pipe(&folder.join("oci-layout"))),
            "it is not a regular file",
        ),
        (
            "a pipe as blob",
            Box::new(|folder| pipe(&folder.join(&blob))),
            "it is not a regular file",
        ),
        ("indexes in each other", Box::new(nested), "nested deeper than"),
        (
            "another file as index",
            Box::new(|folder| instead(&folder.join("index.json"))),
            "index.json",
        ),
        (
            "another file as blob",
            Box::new(|folder| instead(&folder.join(&blob))),
            "the content has digest",
        ),
        (
            "an index that is too long",
            Box::new(|folder| fs::write(folder.join("index.json"), " ".repeat(5 << 20)).unwrap()),
            "are allowed",
        ),
    ];
    for (at, (name, harm, says)) in cases.into_iter().enumerate() {
        let folder = place.path().join(format!("case{at}"));
        layout::write_folder(&store, &[("v1".to_owned(), image.clone())], &folder).unwrap();
        harm(&folder);
        let other = ImageStore::open(place.path().join(format!("other{at}"))).unwrap();
        let error = layout::read(&other, &folder).expect_err(name).to_string();
        assert!(error.contains(says) && !error.contains("s3cret"), "{name}: {error}");
    }
    pipe(&place.path().join("pipe"));
    let error = layout::read(&store, &place.path().join("pipe")).unwrap_err().to_string();
    assert!(error.contains("neither a file nor a folder"), "{error}");
}

#[test]
fn images_are_added_only_inside_the_layout() {
    let place = tempfile::tempdir().unwrap();
    let store = ImageStore::open(place.path().join("store")).unwrap();
    let image = crate::layouts::sample(&store, "text");
    let images = [("v1".to_owned(), image.clone())];
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let version = "{\"imageLayoutVersion\":\"1.0.0\"}";
    let link =
        |to: &std::path::Path, at: &std::path::Path| std::os::unix::fs::symlink(to, at).unwrap();
    for (name, files, says) in [
        (
            "another version",
            vec![("oci-layout", "{\"imageLayoutVersion\":\"2.0\"}")],
            "1.0.0 is supported",
        ),
        ("no version", vec![("oci-layout", "s3cret")], "it is not valid"),
        ("something else", vec![("notes.txt", "mine")], "exists already"),
        (
            "an index that is none",
            vec![("oci-layout", version), ("index.json", "[]")],
            "index.json",
        ),
        (
            "an index of nonsense",
            vec![
                ("oci-layout", version),
                ("index.json", "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"../../x\"}]}"),
            ],
            "index.json",
        ),
    ] {
        let folder = place.path().join(name);
        fs::create_dir(&folder).unwrap();
        for (name, text) in &files {
            fs::write(folder.join(name), text).unwrap();
        }
        let error = layout::put_folder(&store, &images, &folder).expect_err(name).to_string();
        assert!(error.contains(says) && !error.contains("s3cret"), "{name}: {error}");
        for (name, text) in files {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), text, "it is as it was");
        }
    }
    for (name, at) in [("blobs elsewhere", "blobs"), ("sha256 elsewhere", "blobs/sha256")] {
        let folder = place.path().join(name);
        fs::create_dir_all(folder.join(at).parent().unwrap()).unwrap();
        fs::write(folder.join("oci-layout"), version).unwrap();
        link(&outside, &folder.join(at));
        let error = layout::put_folder(&store, &images, &folder).expect_err(name).to_string();
        assert!(error.contains("it is not a folder of the layout"), "{name}: {error}");
        assert!(!folder.join("index.json").exists(), "{name}");
    }
    // Links are replaced by files, and their targets stay unchanged.
    let folder = place.path().join("links");
    fs::create_dir_all(folder.join("blobs/sha256")).unwrap();
    fs::write(folder.join("oci-layout"), version).unwrap();
    let victim = outside.join("victim");
    fs::write(&victim, "{\"schemaVersion\":2,\"manifests\":[]}").unwrap();
    link(&victim, &folder.join("index.json"));
    link(&victim, &folder.join("blobs/sha256").join(image.digest.hex()));
    layout::put_folder(&store, &images, &folder).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "{\"schemaVersion\":2,\"manifests\":[]}");
    let other = ImageStore::open(place.path().join("other")).unwrap();
    assert_eq!(layout::read(&other, &folder).unwrap()[0].descriptor.digest, image.digest);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
