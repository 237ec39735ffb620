//! The registry servers of a case, each at a port of its own.

use anyhow::Context;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_registry::http::Api;
use mainstay_registry::server::{Limits, serve};
use mainstay_registry::{Index, Served, Shelf, grpc};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The server whose port the recordings call `{port}`.
const USUAL: &str = "cat";

/// Servers by name.
#[derive(Default)]
pub(super) struct Servers(BTreeMap<String, Server>);

struct Server {
    served: Arc<Served>,
    /// What it serves.
    text: String,
    address: SocketAddr,
    /// The port before it is served at: nobody else gets it.
    kept: Option<TcpListener>,
    running: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Server {
    async fn run(&mut self) -> anyhow::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }
        let listener = match self.kept.take() {
            Some(listener) => listener,
            None => TcpListener::bind(self.address).await.context("take the port again")?,
        };
        let stop = CancellationToken::new();
        let answers = grpc::service_until(Arc::clone(&self.served), stop.clone());
        let limits = Limits { grace: Duration::from_millis(50), ..Limits::default() };
        let http = Api::new(Arc::new(Shelf::default()));
        let serving = tokio::spawn(serve(listener, http, answers, limits, None, stop.clone()));
        self.running = Some((stop, serving));
        Ok(())
    }
}

impl Servers {
    /// A port for each of the names that a text of the recordings mentions as `{port-NAME}`.
    pub(super) async fn of(text: &str) -> anyhow::Result<Self> {
        let mut servers = BTreeMap::new();
        for (at, _) in text.match_indices("{port") {
            let rest = &text[at + "{port".len()..];
            let Some((name, _)) = rest.split_once('}') else { continue };
            let name = name.strip_prefix('-').unwrap_or(USUAL);
            if servers.contains_key(name) {
                continue;
            }
            let listener = TcpListener::bind("127.0.0.1:0").await.context("take a port")?;
            let server = Server {
                served: Arc::new(Served::new(name)),
                text: String::new(),
                address: listener.local_addr()?,
                kept: Some(listener),
                running: None,
            };
            servers.insert(name.to_owned(), server);
        }
        Ok(Self(servers))
    }

    /// What stands for each address in the recordings.
    pub(super) fn addresses(&self) -> BTreeMap<String, String> {
        let placeholder = |name: &str| {
            if name == USUAL { "{port}".to_owned() } else { format!("{{port-{name}}}") }
        };
        let of = |(name, server): (&String, &Server)| {
            (server.address.to_string(), format!("127.0.0.1:{}", placeholder(name)))
        };
        self.0.iter().map(of).collect()
    }

    /// Serves a catalog from now on.
    pub(super) async fn publish(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let Some(server) = self.0.get_mut(name) else { return Ok(()) };
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("catalog.yaml"), text)?;
        let catalog = Catalog::load(folder.path(), &LoadOptions::default());
        let catalog = catalog.with_context(|| format!("read the catalog {name}"))?;
        text.clone_into(&mut server.text);
        server.served.put(Arc::new(Index::new(catalog, SystemTime::UNIX_EPOCH)));
        server.run().await
    }

    /// What the usual server serves, and the servers that a text mentions and that serve nothing.
    pub(super) fn silent(&self, text: &str) -> (&str, Vec<String>) {
        let usual = self.0.get(USUAL).map_or("", |server| server.text.as_str());
        let mentioned = |name: &String| text.contains(&format!("{{port-{name}}}"));
        let silent =
            self.0.iter().filter(|(name, server)| server.text.is_empty() && mentioned(name));
        (usual, silent.map(|(name, _)| name.clone()).collect())
    }

    /// A server goes away.
    pub(super) async fn stop(&mut self, name: &str) {
        let running = self.0.get_mut(name).and_then(|server| server.running.take());
        if let Some((stop, serving)) = running {
            stop.cancel();
            // That it ended is all that counts.
            let _ = serving.await;
        }
    }

    /// All servers go away.
    pub(super) async fn end(&mut self) {
        let names: Vec<String> = self.0.keys().cloned().collect();
        for name in names {
            self.stop(&name).await;
        }
    }
}
