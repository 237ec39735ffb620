//! The images of the recorded cases, in a registry on loopback, and a home with a policy that takes
//! them.

use anyhow::Context;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use mainstay_clock::Clock;
use mainstay_image::serve::{Registry, Settings};
use mainstay_image::{layout, reference::Reference, store::Store};
use std::path::Path;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The registry. It serves for as long as this lives.
#[derive(Debug)]
pub struct Stock {
    /// Its host and port.
    pub address: String,
    /// There until the end.
    runtime: Option<Runtime>,
    _store: TempDir,
}

impl Drop for Stock {
    fn drop(&mut self) {
        // It may end within another runtime, which must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Stock {
    /// Serves the images of a layout, which name themselves `repository:tag`.
    ///
    /// # Errors
    ///
    /// A layout that cannot be read, or a port that cannot be had.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let place = tempfile::tempdir()?;
        let store = Store::open(place.path())?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?.to_string();
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        for image in layout::read(&store, folder).context("images")? {
            for name in &image.names {
                let reference: Reference = format!("{address}/{name}").parse()?;
                store.set(&reference, &image.descriptor)?;
            }
        }
        let registry = Registry::new(store, Settings::new(&address), Clock::system());
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let registry = registry.clone();
                let answer = hyper::service::service_fn(move |request| {
                    let registry = registry.clone();
                    async move { Ok::<_, std::convert::Infallible>(registry.handle(request).await) }
                });
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // Who asks sees what went wrong.
                    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Ok(Self { address, runtime: Some(runtime), _store: place })
    }
}
