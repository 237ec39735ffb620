//! Accepting connections: so many at a time, until it is time to stop, and then none that outstays
//! its grace. And streams on which nothing moves are cut ([`Guard`]), and requests know whether they
//! were read ([`Received`]).

mod guard;
mod received;

pub use guard::Guard;
pub use received::{ReadToEnd, Received};

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Hands every connection to `serve`, on a task of its own and `most` of them at one time; more wait
/// in the system's queue. Once `stop` is cancelled nobody is accepted any more, and what `serve` has
/// not ended after `grace` is dropped; then this returns.
pub async fn connections<F>(
    listener: TcpListener,
    most: usize,
    grace: Duration,
    stop: &CancellationToken,
    serve: impl Fn(TcpStream, SocketAddr) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(most));
    let tasks = TaskTracker::new();
    // Connections that are dropped end with this.
    let abort = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let (permit, stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Usually no file descriptors are left; they come back when connections end.
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (connection, abort) = (serve(stream, peer), abort.clone());
        tasks.spawn(async move {
            let _permit = permit;
            abort.run_until_cancelled(connection).await;
        });
    }
    drop(listener);
    tasks.close();
    if timeout(grace, tasks.wait()).await.is_err() {
        tracing::debug!(connections = tasks.len(), "dropping connections that do not end");
        abort.cancel();
        tasks.wait().await;
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((permit, stream, peer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{io::AsyncReadExt as _, sync::mpsc};

    #[tokio::test]
    async fn so_many_at_a_time_and_none_beyond_its_grace() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let (told, mut begun) = mpsc::unbounded_channel();
        let stopping = stop.clone();
        let port = tokio::spawn(async move {
            let grace = Duration::from_millis(1);
            connections(listener, 1, grace, &stopping, |mut stream, _| {
                let told = told.clone();
                async move {
                    let _ = told.send(());
                    let _ = stream.read(&mut [0]).await;
                }
            })
            .await;
        });
        let first = TcpStream::connect(address).await?;
        let mut second = TcpStream::connect(address).await?;
        assert_eq!(begun.recv().await, Some(()));
        assert!(begun.try_recv().is_err(), "the second waits for the first");
        drop(first);
        assert_eq!(begun.recv().await, Some(()), "and has its turn then");
        stop.cancel();
        port.await?;
        assert_eq!(second.read(&mut [0]).await?, 0, "who does not end is dropped");
        Ok(())
    }
}
