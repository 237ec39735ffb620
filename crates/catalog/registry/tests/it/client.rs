//! Reading another registry with the client.

use crate::catalogs::{SMALL, index};
use mainstay_catalog::Catalog;
use mainstay_registry::{
    ServedCatalog, ServedCatalogs,
    client::{Address, RegistryConnection},
    grpc::service_until,
    http::CatalogHttpApi,
    server::{Limits, serve},
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(5);

struct RegistryServer {
    served: Arc<ServedCatalog>,
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl RegistryServer {
    async fn new(files: &[(&str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(ServedCatalog::new("mine"));
        served.put(index(files));
        let stop = CancellationToken::new();
        let grpc = service_until(Arc::clone(&served), stop.clone());
        let http = CatalogHttpApi::new(Arc::new(ServedCatalogs::default()));
        let limits = Limits { grace: Duration::from_millis(100), ..Limits::default() };
        let serving = tokio::spawn(serve(listener, http, grpc, limits, None, stop.clone()));
        Self { served, address, stop, serving }
    }

    async fn connect(&self) -> RegistryConnection {
        let address: Address = self.address.to_string().parse().unwrap();
        RegistryConnection::open(&address, TIMEOUT).await.unwrap()
    }
}

/// Packages, channels, entries and properties, as far as the registry API has them.
fn facts(catalog: &Catalog) -> Vec<String> {
    let mut all = Vec::new();
    for package in catalog.packages() {
        all.push(format!("{} {} {:?}", package.name, package.default_channel, package.deprecation));
        for channel in package.channels() {
            all.push(format!("{} {:?} {:?}", channel.name, channel.deprecation, channel.entries()));
        }
        for bundle in package.bundles() {
            let properties = bundle
                .properties
                .iter()
                .map(|property| format!("{}={}", property.kind, property.json));
            let objects = bundle.objects().unwrap().len();
            all.push(format!(
                "{} {} {} {:?} {:?} {objects}",
                bundle.name,
                bundle.version,
                bundle.image,
                bundle.deprecation,
                properties.collect::<Vec<_>>(),
            ));
        }
    }
    all
}

const RICH: &[(&str, &str)] = &[(
    "rich.yaml",
    r#"
schema: olm.package
name: rich
defaultChannel: b
---
{schema: olm.channel, package: rich, name: a, entries: [{name: rich.v1}]}
---
schema: olm.channel
package: rich
name: b
entries:
- {name: rich.v1}
- {name: rich.v2, replaces: rich.v1, skips: [rich.v1.5], skipRange: <2.0.0}
---
schema: olm.bundle
package: rich
name: rich.v1
image: example.com/rich:1
properties:
- {type: olm.package, value: {packageName: rich, version: 1.0.0}}
- {type: olm.gvk, value: {group: example.com, kind: Rich, version: v1}}
- {type: olm.gvk.required, value: {group: example.com, kind: Poor, version: v1}}
- {type: olm.package.required, value: {packageName: poor, versionRange: ">=1.0.0"}}
- {type: olm.constraint, value: {failureMessage: no, gvk: {group: g, kind: K, version: v1}}}
---
schema: olm.bundle
package: rich
name: rich.v2
properties:
- {type: olm.package, value: {packageName: rich, version: 2.0.0}}
- type: olm.bundle.object
  value: {data: eyJhcGlWZXJzaW9uIjoib3BlcmF0b3JzLmNvcmVvcy5jb20vdjFhbHBoYTEiLCJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwibWV0YWRhdGEiOnsibmFtZSI6InJpY2gudjIifSwic3BlYyI6eyJ2ZXJzaW9uIjoiMi4wLjAifX0=}
- type: olm.bundle.object
  value: {data: eyJhcGlWZXJzaW9uIjoidjEiLCJraW5kIjoiQ29uZmlnTWFwIiwibWV0YWRhdGEiOnsibmFtZSI6ImMifX0=}
---
schema: olm.deprecations
package: rich
entries:
- {reference: {schema: olm.package}, message: package}
- {reference: {schema: olm.channel, name: a}, message: channel}
- {reference: {schema: olm.bundle, name: rich.v1}, message: bundle}
"#,
)];

#[tokio::test]
async fn a_client_reads_the_served_catalog() {
    let registry = RegistryServer::new(RICH).await;
    let connection = registry.connect().await;
    let (read, unsound) = connection.catalog().await.unwrap();
    assert!(unsound.is_none());
    assert_eq!(facts(&read), facts(index(RICH).catalog()));
    let again = connection.catalog().await.unwrap().0;
    assert_eq!(read.digest(), again.digest(), "the same content is the same catalog");
}

#[tokio::test]
async fn a_connection_reports_new_content_and_its_own_end() {
    let registry = RegistryServer::new(SMALL).await;
    let connection = registry.connect().await;
    let mut watch = connection.watch().await;
    let before = connection.catalog().await.unwrap().0;
    registry.served.put(index(RICH));
    assert!(watch.changed().await, "there is something new");
    let after = connection.catalog().await.unwrap().0;
    assert_ne!(before.digest(), after.digest());
    registry.stop.cancel();
    while watch.changed().await {}
    registry.serving.await.unwrap();
    let address: Address = registry.address.to_string().parse().unwrap();
    let fault = RegistryConnection::open(&address, TIMEOUT).await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!(
            "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp {}: connect: connection refused\"",
            registry.address
        )
    );
}

#[tokio::test]
async fn a_server_without_the_registry_api_differs_from_an_unreachable_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Address = listener.local_addr().unwrap().to_string().parse().unwrap();
    let hangs_up = tokio::spawn(async move { listener.accept().await.map(drop) });
    let fault = match RegistryConnection::open(&address, TIMEOUT).await {
        Ok(connection) => connection.catalog().await.unwrap_err().to_string(),
        Err(fault) => fault.to_string(),
    };
    hangs_up.await.unwrap().unwrap();
    assert!(fault.starts_with("rpc error: code = Unavailable desc = "), "{fault}");

    let served = Arc::new(ServedCatalog::new("empty"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Address = listener.local_addr().unwrap().to_string().parse().unwrap();
    let stop = CancellationToken::new();
    let grpc = service_until(served, stop.clone());
    let http = CatalogHttpApi::new(Arc::new(ServedCatalogs::default()));
    let serving = tokio::spawn(serve(listener, http, grpc, Limits::default(), None, stop.clone()));
    let connection = RegistryConnection::open(&address, TIMEOUT).await.unwrap();
    let fault = connection.catalog().await.unwrap_err().to_string();
    assert_eq!(
        fault,
        "rpc error: code = Unavailable desc = catalog \"empty\" is still being loaded"
    );
    drop(connection);
    stop.cancel();
    serving.await.unwrap();
}
