//! The replay: servers with the recorded catalogs, and every request against them.

use super::client::send;
use super::compare::compare;
use super::recording::{RecordedAnswer, RecordedRequest, RequestRecording};
use anyhow::Context;
use mainstay_catalog::{Blob, CatalogDocuments, DocumentRules, LoadOptions, MemorySource};
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::server::{DOWNLOAD_LIMITS, Limits, serve_https};
use mainstay_registry::{ServedCatalogs, ServedDocuments, stored};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The catalog that was switched off when the requests were recorded.
const SWITCHED_OFF: &str = "http-off";

/// The outcome of one request.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The recording and the id of the request.
    pub name: String,
    /// Whether it went to GraphQL, so that it was compared with what a server without GraphQL answers.
    pub is_graphql: bool,
    /// The differences; empty if there are none.
    pub differences: Vec<String>,
}

/// Replays all requests of the recordings in a folder.
///
/// # Errors
/// The recordings cannot be read, or a server cannot be started.
pub async fn replay(folder: &Path) -> anyhow::Result<Vec<Outcome>> {
    let catalogs = read_catalogs(&folder.join("catalogs"))?;
    let stored = tempfile::tempdir().context("create a folder")?;
    let modified = UNIX_EPOCH + Duration::from_secs(1_767_366_245);
    let last_modified = httpdate::fmt_http_date(modified);
    let mut outcomes = Vec::new();
    for recording in RequestRecording::read_all(folder)? {
        let mut servers = Vec::new();
        for place in [None, Some(stored.path())] {
            servers.push(Server::start(&catalogs, place, modified, recording.metas).await?);
        }
        for request in &recording.requests {
            let name = format!("{}:{}", recording.name, request.id);
            let without_graphql = (request.is_graphql() && recording.metas).then(no_such_page);
            let recorded = without_graphql.as_ref().unwrap_or(&request.answer);
            let mut differences = Vec::new();
            for server in &servers {
                differences.extend(server.differences(request, recorded, &last_modified).await);
            }
            differences.dedup();
            outcomes.push(Outcome { name, is_graphql: without_graphql.is_some(), differences });
        }
    }
    Ok(outcomes)
}

/// The answer for a path that is not served.
fn no_such_page() -> RecordedAnswer {
    let headers = [
        ("Content-Length", "19"),
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Vary", "Accept-Encoding"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    RecordedAnswer {
        status: 404,
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body: Some("404 page not found\n".to_owned()),
        bytes: None,
        lines: None,
        sha256: None,
    }
}

/// The documents of each catalog that had content.
fn read_catalogs(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<Blob>>> {
    let mut catalogs = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).context("name a catalog")?;
        let source = MemorySource::from_iter([("catalog.yaml", fs::read(&path)?)]);
        let options = LoadOptions { rules: DocumentRules::Meta, ..LoadOptions::default() };
        let documents = CatalogDocuments::read(&source, &options)
            .with_context(|| path.display().to_string())?;
        catalogs.insert(name.to_owned(), documents.blobs().collect());
    }
    Ok(catalogs)
}

/// A running server; stops when dropped.
struct Server {
    address: SocketAddr,
    stop: CancellationToken,
}

impl Server {
    /// Serves catalogs from memory, or from files in `place`.
    async fn start(
        catalogs: &BTreeMap<String, Vec<Blob>>,
        place: Option<&Path>,
        modified: SystemTime,
        metas: bool,
    ) -> anyhow::Result<Self> {
        let served = Arc::new(ServedCatalogs::default());
        for (name, blobs) in catalogs.iter().filter(|(name, _)| *name != SWITCHED_OFF) {
            let documents = match place {
                None => ServedDocuments::in_memory(blobs.clone(), modified)?,
                Some(folder) => stored::create(&folder.join(name), blobs.clone(), modified)?,
            };
            served.put_documents(name, Arc::new(documents));
        }
        let api = CatalogHttpApi::new(served).with_metas(metas);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let key = key.map_err(|error| anyhow::anyhow!("the key of the server: {error}"))?;
        let tls = ServerConfig::builder_with_provider(mainstay_tls::provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("open a port")?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let limits = Limits { grace: Duration::from_millis(10), ..DOWNLOAD_LIMITS };
        tokio::spawn(serve_https(listener, Arc::new(tls), api, limits, None, stop.clone()));
        Ok(Self { address, stop })
    }

    async fn differences(
        &self,
        request: &RecordedRequest,
        recorded: &RecordedAnswer,
        last_modified: &str,
    ) -> Vec<String> {
        match send(self.address, request, last_modified).await {
            Ok(response) => compare(recorded, &response, last_modified),
            Err(error) => vec![format!("no response: {error:#}")],
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
