//! A registry on this machine for tests: ours, on a port of its own, on a thread of its own.

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use mainstay_clock::Clock;
use mainstay_image::{
    serve::{Registry, Settings},
    store::Store,
};
use std::{convert::Infallible, path::Path};
use tokio::net::TcpListener;

/// A registry; gone with this value.
pub(crate) struct Loopback {
    /// Its name: address and port.
    pub(crate) domain: String,
    /// What it has.
    pub(crate) store: Store,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Loopback {
    /// A registry that takes everything.
    pub(crate) fn open(folder: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let domain = listener.local_addr().unwrap().to_string();
        let store = Store::open(folder.join("registry")).unwrap();
        let registry = Registry::new(store.clone(), Settings::new(&domain), Clock::system());
        runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let registry = registry.clone();
                tokio::spawn(async move {
                    let service =
                        service_fn(move |request: http::Request<hyper::body::Incoming>| {
                            let registry = registry.clone();
                            async move { Ok::<_, Infallible>(registry.handle(request).await) }
                        });
                    let server = auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { domain, store, runtime: Some(runtime) }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
