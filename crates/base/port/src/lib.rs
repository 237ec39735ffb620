//! Listeners: they accept a limited number of connections, and drain them on shutdown.
//!
//! [`ConnectionLimit`] decides which connection ends for a newcomer. Idle connections time out
//! ([`TimeoutStream`]), and so do HTTP/2 responses that the client does not read ([`StreamExecutor`]).
//! Requests record whether they were read ([`TrackedBody`]). [`plain`] is a listener without TLS,
//! [`secure`] one with TLS.

mod connections;
mod deadline;
pub mod plain;
mod request_body;
pub mod secure;
mod streams;
mod timeout;

pub use connections::{ConnectionHandle, ConnectionLimit, ConnectionOwner, RequestGuard};
pub use request_body::{ReadTracker, TrackedBody};
pub use streams::{PacedBody, StreamExecutor};
pub use timeout::TimeoutStream;

use connections::ConnectionTable;
use std::{future::Future, net::SocketAddr, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Runs `serve` for each connection, on a task of its own.
///
/// A newcomer is accepted at once, and [`ConnectionLimit`] says which connection ends for it. It waits
/// only while all connections are busy ones of administrators. Once `stop` is cancelled, no connection is
/// accepted any more; tasks that run after `grace` are dropped, and this returns.
pub async fn accept_connections<F>(
    listener: TcpListener,
    limit: ConnectionLimit,
    grace: Duration,
    stop: &CancellationToken,
    serve: impl Fn(TcpStream, SocketAddr, ConnectionHandle) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let table = ConnectionTable::new(limit);
    let tasks = TaskTracker::new();
    // Drops the connections that outlast the grace period.
    let abort = CancellationToken::new();
    loop {
        let Some(accepted) = stop.run_until_cancelled(listener.accept()).await else { break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Usually the process has no file descriptors left: ending a connection frees one.
                // Otherwise they come back when connections end.
                tracing::warn!(%error, "a connection could not be accepted");
                let pause = if table.free_descriptor() { 1 } else { 50 };
                sleep(Duration::from_millis(pause)).await;
                continue;
            }
        };
        if stop.run_until_cancelled(table.wait_for_capacity()).await.is_none() {
            break;
        }
        let admitted = table.admit(peer.ip());
        let evicted = admitted.evicted();
        // On the heap once: a future that is passed by value has space in each future on its way.
        let mut connection = Box::pin(serve(stream, peer, admitted.handle()));
        let abort = abort.clone();
        tasks.spawn(async move {
            let _admitted = admitted;
            tokio::select! {
                () = connection.as_mut() => {}
                () = evicted.cancelled() => {}
                () = abort.cancelled() => {}
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use tokio::{io::AsyncReadExt as _, sync::mpsc};

    /// A listener whose connections report that they have begun, and then read. A client that sends an
    /// exclamation mark has authenticated.
    fn spawn_listener(
        listener: TcpListener,
        limit: ConnectionLimit,
        stop: CancellationToken,
    ) -> mpsc::UnboundedReceiver<()> {
        let (begins, begun) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let grace = Duration::from_millis(1);
            accept_connections(listener, limit, grace, &stop, |mut stream, _, handle| {
                let begins = begins.clone();
                async move {
                    let _ = begins.send(());
                    let mut byte = [0];
                    while let Ok(1) = stream.read(&mut byte).await {
                        if byte == *b"!" {
                            handle.mark_authenticated(ConnectionOwner::Administrator);
                            let _ = begins.send(());
                        }
                    }
                }
            })
            .await;
        });
        begun
    }

    #[tokio::test]
    async fn a_newcomer_is_accepted_at_once_and_shutdown_drops_connections_after_the_grace()
    -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let mut begun = spawn_listener(listener, ConnectionLimit::anonymous(1), stop.clone());
        let mut first = TcpStream::connect(address).await?;
        assert_eq!(begun.recv().await, Some(()));
        let mut second = TcpStream::connect(address).await?;
        assert_eq!(begun.recv().await, Some(()), "the second does not wait for the first");
        assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0, "the first ends for the second");
        stop.cancel();
        assert_eq!(
            second.read(&mut [0]).await.unwrap_or(0),
            0,
            "a connection that does not end is dropped"
        );
        assert_eq!(begun.recv().await, None);
        Ok(())
    }

    #[tokio::test]
    async fn silent_connections_keep_no_client_out() -> io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let mut begun = spawn_listener(listener, ConnectionLimit::authenticated(16), stop.clone());
        let mut authenticated = TcpStream::connect(address).await?;
        authenticated.write_all(b"!").await?;
        for _ in 0..2 {
            assert_eq!(begun.recv().await, Some(()));
        }
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(TcpStream::connect(address).await?);
            assert_eq!(begun.recv().await, Some(()));
        }
        let mut newcomer = TcpStream::connect(address).await?;
        newcomer.write_all(b"!").await?;
        for _ in 0..2 {
            assert_eq!(begun.recv().await, Some(()));
        }
        authenticated.write_all(b"!").await?;
        assert_eq!(begun.recv().await, Some(()), "the authenticated connection stays open");
        drop((silent, newcomer));
        stop.cancel();
        Ok(())
    }
}
