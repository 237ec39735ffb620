//! Registry servers: each catalog of a case is served at a port of its own.

use anyhow::Context;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::server::{Limits, serve};
use mainstay_registry::{RegistryIndex, ServedCatalog, ServedCatalogs, grpc};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The server whose port is `{port}` in the recordings.
const MAIN: &str = "cat";

/// Servers by name.
#[derive(Default)]
pub(super) struct Servers(BTreeMap<String, Server>);

struct Server {
    served: Arc<ServedCatalog>,
    /// The catalog that it serves; empty before the first one.
    text: String,
    address: SocketAddr,
    /// The listener that reserves the port until the server runs.
    reserved: Option<TcpListener>,
    task: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Server {
    async fn run(&mut self) -> anyhow::Result<()> {
        if self.task.is_some() {
            return Ok(());
        }
        let listener = match self.reserved.take() {
            Some(listener) => listener,
            None => TcpListener::bind(self.address).await.context("take the port again")?,
        };
        let stop = CancellationToken::new();
        let answers = grpc::service_until(Arc::clone(&self.served), stop.clone());
        let limits = Limits { grace: Duration::from_millis(50), ..Limits::default() };
        let http = CatalogHttpApi::new(Arc::new(ServedCatalogs::default()));
        let serving = tokio::spawn(serve(listener, http, answers, limits, None, stop.clone()));
        self.task = Some((stop, serving));
        Ok(())
    }
}

impl Servers {
    /// Reserves a port for each name that a recorded text mentions as `{port-NAME}`.
    pub(super) async fn of(text: &str) -> anyhow::Result<Self> {
        let mut servers = BTreeMap::new();
        for (at, _) in text.match_indices("{port") {
            let rest = &text[at + "{port".len()..];
            let Some((name, _)) = rest.split_once('}') else { continue };
            let name = name.strip_prefix('-').unwrap_or(MAIN);
            if servers.contains_key(name) {
                continue;
            }
            let listener = TcpListener::bind("127.0.0.1:0").await.context("take a port")?;
            let server = Server {
                served: Arc::new(ServedCatalog::new(name)),
                text: String::new(),
                address: listener.local_addr()?,
                reserved: Some(listener),
                task: None,
            };
            servers.insert(name.to_owned(), server);
        }
        Ok(Self(servers))
    }

    /// The recordings' placeholder of each address.
    pub(super) fn addresses(&self) -> BTreeMap<String, String> {
        let placeholder = |name: &str| {
            if name == MAIN { "{port}".to_owned() } else { format!("{{port-{name}}}") }
        };
        let entry = |(name, server): (&String, &Server)| {
            (server.address.to_string(), format!("127.0.0.1:{}", placeholder(name)))
        };
        self.0.iter().map(entry).collect()
    }

    /// Serves a catalog, and starts the server if necessary.
    pub(super) async fn publish(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let Some(server) = self.0.get_mut(name) else { return Ok(()) };
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("catalog.yaml"), text)?;
        let catalog = Catalog::load(folder.path(), &LoadOptions::default());
        let catalog = catalog.with_context(|| format!("read the catalog {name}"))?;
        text.clone_into(&mut server.text);
        server.served.put(Arc::new(RegistryIndex::new(catalog, SystemTime::UNIX_EPOCH)));
        server.run().await
    }

    /// The main server's catalog, and the names of mentioned servers without a catalog.
    pub(super) fn unserved(&self, text: &str) -> (&str, Vec<String>) {
        let main = self.0.get(MAIN).map_or("", |server| server.text.as_str());
        let mentioned = |name: &String| text.contains(&format!("{{port-{name}}}"));
        let unserved =
            self.0.iter().filter(|(name, server)| server.text.is_empty() && mentioned(name));
        (main, unserved.map(|(name, _)| name.clone()).collect())
    }

    /// Stops a server.
    pub(super) async fn stop(&mut self, name: &str) {
        let task = self.0.get_mut(name).and_then(|server| server.task.take());
        if let Some((stop, serving)) = task {
            stop.cancel();
            // The server's own result does not matter.
            let _ = serving.await;
        }
    }

    /// Stops all servers.
    pub(super) async fn stop_all(&mut self) {
        let names: Vec<String> = self.0.keys().cloned().collect();
        for name in names {
            self.stop(&name).await;
        }
    }
}
