//! Accepting connections: so many at a time, until it is time to stop, and then none that outstays
//! its grace. Who goes when there is no room for all is a matter of shares ([`Room`]). Streams on which
//! nothing moves are cut ([`Guard`]), answers over HTTP/2 that nobody takes too ([`Streams`]), and requests know whether they were read
//! ([`Received`]). A port without TLS is ready to use ([`plain`]).

mod guard;
pub mod plain;
mod received;
mod room;
mod streams;

pub use guard::Guard;
pub use received::{ReadToEnd, Received};
pub use room::{Client, Request, Room, Seat};
pub use streams::{Paced, Streams};

use room::Shared;
use std::{future::Future, net::SocketAddr, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Hands every connection to `serve`, on a task of its own, with its [`Seat`] in the room. A newcomer is
/// accepted at once; who goes for it is what [`Room`] says, and only where all connections belong to
/// administrators that work it waits. Once `stop` is cancelled nobody is accepted any more, and what `serve` has
/// not ended after `grace` is dropped; then this returns.
pub async fn connections<F>(
    listener: TcpListener,
    room: Room,
    grace: Duration,
    stop: &CancellationToken,
    serve: impl Fn(TcpStream, SocketAddr, Seat) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let room = Shared::new(room);
    let tasks = TaskTracker::new();
    // Connections that are dropped end with this.
    let abort = CancellationToken::new();
    loop {
        let Some(accepted) = stop.run_until_cancelled(listener.accept()).await else { break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Usually no file descriptors are left: those of a stranger help. Otherwise they come back
                // when connections end.
                tracing::warn!(%error, "a connection could not be accepted");
                let pause = if room.relieve() { 1 } else { 50 };
                sleep(Duration::from_millis(pause)).await;
                continue;
            }
        };
        if stop.run_until_cancelled(room.room()).await.is_none() {
            break;
        }
        let place = room.admit(peer.ip());
        let evicted = place.evicted();
        // On the heap once: a future that is handed on by value lies in each future on its way.
        let mut connection = Box::pin(serve(stream, peer, place.seat()));
        let abort = abort.clone();
        tasks.spawn(async move {
            let _place = place;
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

    /// A port whose connections say that they have begun, and then wait for the client. One that sends
    /// an exclamation mark has proved itself.
    fn port(
        listener: TcpListener,
        room: Room,
        stop: CancellationToken,
    ) -> mpsc::UnboundedReceiver<()> {
        let (begins, begun) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            connections(listener, room, Duration::from_millis(1), &stop, |mut stream, _, seat| {
                let begins = begins.clone();
                async move {
                    let _ = begins.send(());
                    let mut byte = [0];
                    while let Ok(1) = stream.read(&mut byte).await {
                        if byte == *b"!" {
                            seat.prove(Client::Administrator);
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
    async fn a_newcomer_is_accepted_at_once_and_none_outstays_its_grace() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let mut begun = port(listener, Room::open(1), stop.clone());
        let mut first = TcpStream::connect(address).await?;
        assert_eq!(begun.recv().await, Some(()));
        let mut second = TcpStream::connect(address).await?;
        assert_eq!(begun.recv().await, Some(()), "the second does not wait for the first");
        assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0, "which ends for it");
        stop.cancel();
        assert_eq!(second.read(&mut [0]).await.unwrap_or(0), 0, "who does not end is dropped");
        assert_eq!(begun.recv().await, None);
        Ok(())
    }

    #[tokio::test]
    async fn thousands_of_silent_connections_keep_nobody_out() -> io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let mut begun = port(listener, Room::guarded(16), stop.clone());
        let mut known = TcpStream::connect(address).await?;
        known.write_all(b"!").await?;
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
        known.write_all(b"!").await?;
        assert_eq!(begun.recv().await, Some(()), "who is known has noticed nothing");
        drop((silent, newcomer));
        stop.cancel();
        Ok(())
    }
}
