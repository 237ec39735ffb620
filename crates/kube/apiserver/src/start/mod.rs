//! Start of a server, and its TLS port.

mod error;

pub use self::error::StartError;

use crate::aggregation;
use crate::flow;
use crate::handlers;
use crate::policy_status;
use crate::serve;
use crate::server::{ApiServer, ApiServerConfig};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

impl ApiServer {
    /// Starts a server on a store. It serves the kinds of stored CRDs, finishes pending deletions
    /// of CRDs, and creates the namespaces, roles and bindings that every cluster has.
    pub async fn start(config: ApiServerConfig) -> Result<Arc<Self>, StartError> {
        let server = Arc::new(Self::new(config));
        handlers::crds::restore::restore(&server);
        handlers::bootstrap::ensure_namespaces(&server).await?;
        handlers::bootstrap::ensure_service_cidr(&server)
            .await
            .map_err(StartError::ServiceRange)?;
        handlers::roles::ensure_roles(&server).await?;
        flow::controller::start(&server).await.map_err(StartError::Flow)?;
        policy_status::start(&server);
        aggregation::local::seed(&server).await.map_err(StartError::Groups)?;
        aggregation::controller::start(&server).map_err(StartError::Groups)?;
        Ok(server)
    }

    /// Serves a TLS port until `shutdown` is cancelled and its connections have ended. It maintains
    /// the Service `default/kubernetes`, which names the port. Watches of in-process clients
    /// continue until the server's own end.
    pub async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
        shutdown: CancellationToken,
    ) {
        let service = self.port_service();
        let address = match listener.local_addr() {
            Ok(address) => Some(address),
            Err(error) => {
                tracing::warn!(%error, "the port has no address");
                None
            }
        };
        let keeping = async {
            if let Some(address) = address {
                handlers::bootstrap::maintain_service(self, address).await;
            }
            std::future::pending::<()>().await;
        };
        if let Some(address) = address {
            handlers::bootstrap::ensure_service(self, address).await;
        }
        let port = serve::serve(listener, tls, serve::Limits::default(), shutdown, service);
        tokio::select! {
            () = port => {}
            () = keeping => {}
        }
    }
}
