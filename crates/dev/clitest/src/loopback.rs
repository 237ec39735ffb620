//! Our image registry on a loopback port, in a thread of its own.

use base64::Engine as _;
use http::{Response, StatusCode, header};
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use mainstay_clock::Clock;
use mainstay_image::{
    serve::{RegistryHandler, RegistrySettings},
    store::ImageStore,
};
use std::{convert::Infallible, path::Path};
use tokio::net::TcpListener;

/// A running registry. Dropping it stops it.
pub struct LoopbackRegistry {
    /// Its address and port, as in image references.
    pub domain: String,
    /// Its store.
    pub store: ImageStore,
    runtime: Option<tokio::runtime::Runtime>,
}

impl LoopbackRegistry {
    /// A registry without authentication.
    pub fn open(folder: &Path) -> Self {
        Self::start(folder, None)
    }

    /// A registry that requires a login, `NAME:PASSWORD`.
    pub fn locked(folder: &Path, login: &str) -> Self {
        let login = base64::engine::general_purpose::STANDARD.encode(login);
        Self::start(folder, Some(format!("Basic {login}")))
    }

    fn start(folder: &Path, login: Option<String>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let domain = listener.local_addr().unwrap().to_string();
        let store = ImageStore::open(folder.join("registry")).unwrap();
        let registry =
            RegistryHandler::new(store.clone(), RegistrySettings::new(&domain), Clock::system());
        runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (registry, login) = (registry.clone(), login.clone());
                tokio::spawn(async move {
                    let service =
                        service_fn(move |request: http::Request<hyper::body::Incoming>| {
                            let (registry, login) = (registry.clone(), login.clone());
                            async move {
                                let authorization = request.headers().get(header::AUTHORIZATION);
                                let authorization =
                                    authorization.and_then(|value| value.to_str().ok());
                                let authorized =
                                    login.is_none() || login.as_deref() == authorization;
                                let mut response = registry.handle(request).await;
                                if !authorized {
                                    response = Response::new(
                                        mainstay_image::serve::RegistryBody::default(),
                                    );
                                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                                    let challenge = "Basic realm=\"test\"".parse().unwrap();
                                    response
                                        .headers_mut()
                                        .insert(header::WWW_AUTHENTICATE, challenge);
                                }
                                Ok::<_, Infallible>(response)
                            }
                        });
                    let server = auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { domain, store, runtime: Some(runtime) }
    }
}

impl Drop for LoopbackRegistry {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
