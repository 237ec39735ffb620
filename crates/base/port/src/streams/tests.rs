use super::*;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2 as client;
use hyper::server::conn::http2 as server;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use mainstay_clock::Clock;
use std::convert::Infallible;
use std::future::pending;
use tokio::io::duplex;
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_mins(1);
const WINDOW: u32 = 0xffff;

type ResponseBody = BoxBody<Bytes, Infallible>;

/// Bytes that report when their last part is dropped.
struct Tracked(Vec<u8>, mpsc::UnboundedSender<()>);

impl AsRef<[u8]> for Tracked {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let _ = self.1.send(());
    }
}

/// A response in one piece, and a receiver that hears when all of it is dropped.
fn large(bytes: usize) -> (ResponseBody, mpsc::UnboundedReceiver<()>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Full::new(Bytes::from_owner(Tracked(vec![7; bytes], sender))).boxed(), receiver)
}

/// Sends one request with a window of so many bytes for the response. The receiver hears when the
/// server closes the connection.
async fn send_request(
    response: ResponseBody,
    window: u32,
) -> (Response<Incoming>, client::SendRequest<Empty<Bytes>>, mpsc::UnboundedReceiver<()>) {
    let (near, far) = duplex(1 << 20);
    let streams = StreamExecutor::new(TIMEOUT);
    let stuck = streams.stuck();
    let response = Arc::new(parking_lot::Mutex::new(Some(response)));
    let service = hyper::service::service_fn(move |_| {
        let body = response.lock().take();
        async move {
            let body = body.unwrap_or_else(|| Empty::new().boxed());
            Ok::<_, Infallible>(Response::new(PacedBody::new(body)))
        }
    });
    let (sender, closed) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut builder = server::Builder::new(streams);
        let connection =
            builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(far), service);
        tokio::select! {
            _ = connection => {}
            () = stuck => drop(sender.send(())),
        }
    });
    let mut builder = client::Builder::new(TokioExecutor::new());
    let builder = builder.initial_stream_window_size(window);
    let (mut client, connection) = builder.handshake(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);
    let response = client.send_request(Request::new(Empty::new())).await.unwrap();
    (response, client, closed)
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_reset_when_the_client_does_not_read_a_response_in_one_piece() {
    let (body, mut dropped) = large(10 << 20);
    let clock = Clock::system();
    let (response, mut client, mut closed) = send_request(body, WINDOW).await;
    dropped.recv().await.unwrap();
    assert!(clock.elapsed() >= TIMEOUT, "{:?}", clock.elapsed());
    assert!(response.into_body().collect().await.is_err(), "the stream is reset");
    assert!(closed.try_recv().is_err(), "the connection goes on");
    client.send_request(Request::new(Empty::new())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_response_is_dropped_when_the_client_never_opens_a_window() {
    for bytes in [1, 10 << 20] {
        let (body, mut dropped) = large(bytes);
        let (_response, _client, _closed) = send_request(body, 0).await;
        dropped.recv().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_connection_closes_when_the_client_does_not_read_the_end_of_a_response() {
    // hyper has all of it, and cannot send the last byte.
    let (body, mut dropped) = large(WINDOW as usize + 1);
    let clock = Clock::system();
    let (response, _client, mut closed) = send_request(body, WINDOW).await;
    closed.recv().await.unwrap();
    assert!(clock.elapsed() >= TIMEOUT, "{:?}", clock.elapsed());
    dropped.recv().await.unwrap();
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_gets_the_whole_response() {
    let (body, mut dropped) = large(1 << 20);
    let (response, _client, mut closed) = send_request(body, WINDOW).await;
    let (mut body, mut got, clock) = (response.into_body(), 0, Clock::system());
    while let Some(frame) = body.frame().await {
        got += frame.unwrap().into_data().unwrap().len();
        sleep(TIMEOUT / 8).await;
    }
    assert_eq!(got, 1 << 20);
    assert!(clock.elapsed() > TIMEOUT * 2, "{:?}", clock.elapsed());
    dropped.recv().await.unwrap();
    assert!(closed.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_events_stays_until_the_client_does_not_read_an_event() {
    let event = |bytes: usize| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![7; bytes])));
    let quiet = futures::stream::once(async move {
        sleep(TIMEOUT * 100).await;
        event(10)
    });
    let all = futures::stream::iter([event(10)])
        .chain(quiet)
        // Part of it fits into the window, and then nothing comes again.
        .chain(futures::stream::iter([event(5000)]))
        .chain(futures::stream::once(pending()));
    let clock = Clock::system();
    let (response, _client, mut closed) =
        send_request(BodyExt::boxed(StreamBody::new(Box::pin(all))), 1000).await;
    let mut body = response.into_body();
    for _ in 0..2 {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 10);
    }
    assert!(clock.elapsed() >= TIMEOUT * 100);
    sleep(TIMEOUT * 2).await;
    assert!(body.collect().await.is_err(), "the stream is reset");
    assert!(closed.try_recv().is_err(), "the connection goes on");
}
