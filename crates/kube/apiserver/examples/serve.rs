//! A bare API server in memory on a loopback port, for trying clients on it:
//! `cargo run -p mainstay-apiserver --example serve -- KUBECONFIG [PORT]`.

use mainstay_apiserver::{ApiServer, ApiServerConfig, VersionInfo};
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kubeconfig = arguments.next().ok_or("usage: serve KUBECONFIG [PORT]")?;
    let port: u16 = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let clock = Clock::system();
    let pki = Pki::ephemeral(&clock, &[])?;
    let stop = CancellationToken::new();
    let server = ApiServer::start(ApiServerConfig {
        store: Store::in_memory(Options::new(clock)),
        clock,
        authenticator: Arc::new(pki.authenticator(clock)?),
        version: VersionInfo::default(),
        stop: stop.clone(),
    })
    .await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let url = format!("https://{}", listener.local_addr()?);
    pki.write_kubeconfig(Path::new(&kubeconfig), &url, "bare")?;
    let interrupted = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    server.serve(listener, pki.server_config()?, stop).await;
    Ok(())
}
