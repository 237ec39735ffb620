//! A registry on loopback that misbehaves as a test wants.

use mainstay_image::reference::ImageReference;
use mainstay_image::store::ImageStore;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How the registry treats a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It answers.
    Answer,
    /// It answers with this status, and no content.
    Status(u16),
    /// It closes the connection in the middle of the content.
    Truncate,
    /// It sends a part of the content, and then nothing.
    Stall,
}

/// Decides about a request by its path.
type Decide = Box<dyn FnMut(&str) -> Treatment + Send>;

/// The registry; it serves the images of a store until the runtime ends.
pub(crate) struct Registry {
    /// Its host and port.
    pub(crate) host: String,
    decide: Arc<Mutex<Decide>>,
}

impl Registry {
    /// Starts a registry that answers every request. An image `NAME:TAG` of the store is the image
    /// `store.example/NAME:TAG`.
    pub(crate) async fn start(store: ImageStore) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let decide: Arc<Mutex<Decide>> = Arc::new(Mutex::new(Box::new(|_| Treatment::Answer)));
        let shared = Arc::clone(&decide);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, store.clone(), Arc::clone(&shared)));
            }
        });
        Self { host, decide }
    }

    /// Treats requests as `decide` says from now on.
    pub(crate) fn treat(&self, decide: impl FnMut(&str) -> Treatment + Send + 'static) {
        *self.decide.lock() = Box::new(decide);
    }
}

/// Serves the requests of a connection.
async fn serve(stream: TcpStream, store: ImageStore, decide: Arc<Mutex<Decide>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match stream.read_line(&mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => head.push(line),
            }
        }
        let mut words = head.first().map_or("", String::as_str).split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let treatment = (decide.lock())(path);
        let found = match treatment {
            Treatment::Status(status) => Err(status),
            _ => content(&store, path).ok_or(404),
        };
        let (status, kind, digest, body) = match found {
            Ok((kind, digest, body)) => (200, kind, digest, body),
            Err(status) => (status, "text/plain".to_owned(), String::new(), Vec::new()),
        };
        let head = format!(
            "HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nDocker-Content-Digest: {digest}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let sent = match (method, treatment) {
            ("HEAD", _) => &[][..],
            (_, Treatment::Truncate | Treatment::Stall) => &body[..body.len() / 2],
            _ => &body,
        };
        if stream.write_all(head.as_bytes()).await.is_err() || stream.write_all(sent).await.is_err()
        {
            return;
        }
        match treatment {
            Treatment::Truncate if method != "HEAD" => return,
            Treatment::Stall if method != "HEAD" => std::future::pending().await,
            _ => {}
        }
    }
}

/// The media type, the digest and the bytes of a path of the registry.
fn content(store: &ImageStore, path: &str) -> Option<(String, String, Vec<u8>)> {
    const LIMIT: u64 = 1 << 30;
    let octets = "application/octet-stream".to_owned();
    let Some(rest) = path.strip_prefix("/v2/").filter(|rest| !rest.is_empty()) else {
        return Some((octets, String::new(), Vec::new()));
    };
    if let Some((_, digest)) = rest.split_once("/blobs/") {
        let bytes = store.bytes(&digest.parse().ok()?, LIMIT).ok()?;
        return Some((octets, digest.to_owned(), bytes));
    }
    let (name, wanted) = rest.split_once("/manifests/")?;
    let digest = if wanted.contains(':') {
        wanted.parse().ok()?
    } else {
        let reference = ImageReference::parse(&format!("store.example/{name}:{wanted}")).ok()?;
        store.resolve(&reference).ok()??.digest
    };
    let bytes = store.bytes(&digest, LIMIT).ok()?;
    let manifest = "application/vnd.oci.image.manifest.v1+json".to_owned();
    Some((manifest, digest.to_string(), bytes))
}
