//! An image registry on loopback with the images of the recorded cases.

use anyhow::Context;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use mainstay_clock::Clock;
use mainstay_image::serve::{RegistryHandler, RegistrySettings};
use mainstay_image::{layout, reference::ImageReference, store::ImageStore};
use std::path::Path;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A running registry. Dropping it stops it.
#[derive(Debug)]
pub struct ImageRegistry {
    /// Its host and port.
    pub address: String,
    /// Taken when the registry is dropped.
    runtime: Option<Runtime>,
    _store: TempDir,
}

impl Drop for ImageRegistry {
    fn drop(&mut self) {
        // The registry may be dropped in another runtime, which must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl ImageRegistry {
    /// Serves the images of an OCI layout; each is annotated with `repository:tag`.
    ///
    /// # Errors
    ///
    /// The layout cannot be read, or no port can be opened.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let store_folder = tempfile::tempdir()?;
        let store = ImageStore::open(store_folder.path())?;
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
                let reference: ImageReference = format!("{address}/{name}").parse()?;
                store.set(&reference, &image.descriptor)?;
            }
        }
        let registry =
            RegistryHandler::new(store, RegistrySettings::new(&address), Clock::system());
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let registry = registry.clone();
                let answer = hyper::service::service_fn(move |request| {
                    let registry = registry.clone();
                    async move { Ok::<_, std::convert::Infallible>(registry.handle(request).await) }
                });
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // The client reports the error.
                    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Ok(Self { address, runtime: Some(runtime), _store: store_folder })
    }
}
