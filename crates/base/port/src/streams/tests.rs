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

const PATIENCE: Duration = Duration::from_mins(1);
const WINDOW: u32 = 0xffff;

type Answer = BoxBody<Bytes, Infallible>;

/// Bytes that say when the last part of them is let go of.
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

/// An answer in one piece, and who hears when nothing of it is held any more.
fn large(bytes: usize) -> (Answer, mpsc::UnboundedReceiver<()>) {
    let (tell, told) = mpsc::unbounded_channel();
    (Full::new(Bytes::from_owner(Tracked(vec![7; bytes], tell))).boxed(), told)
}

/// A client that asks once, with a window of so many bytes for the answer, and who hears when the port
/// cuts the connection.
async fn ask(
    answer: Answer,
    window: u32,
) -> (Response<Incoming>, client::SendRequest<Empty<Bytes>>, mpsc::UnboundedReceiver<()>) {
    let (near, far) = duplex(1 << 20);
    let streams = Streams::new(PATIENCE);
    let stuck = streams.stuck();
    let answer = Arc::new(parking_lot::Mutex::new(Some(answer)));
    let service = hyper::service::service_fn(move |_| {
        let answer = answer.lock().take();
        async move {
            let answer = answer.unwrap_or_else(|| Empty::new().boxed());
            Ok::<_, Infallible>(Response::new(Paced::new(answer)))
        }
    });
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut builder = server::Builder::new(streams);
        let connection =
            builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(far), service);
        tokio::select! {
            _ = connection => {}
            () = stuck => drop(tell.send(())),
        }
    });
    let mut builder = client::Builder::new(TokioExecutor::new());
    let builder = builder.initial_stream_window_size(window);
    let (mut ask, connection) = builder.handshake(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);
    let response = ask.send_request(Request::new(Empty::new())).await.unwrap();
    (response, ask, told)
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_one_piece_that_is_not_taken_is_let_go_of() {
    let (answer, mut gone) = large(10 << 20);
    let begun = Clock::system();
    let (response, mut ask, mut stuck) = ask(answer, WINDOW).await;
    gone.recv().await.unwrap();
    assert!(begun.elapsed() >= PATIENCE, "{:?}", begun.elapsed());
    assert!(response.into_body().collect().await.is_err(), "the stream is reset");
    assert!(stuck.try_recv().is_err(), "the connection goes on");
    ask.send_request(Request::new(Empty::new())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_let_go_of_when_no_window_was_ever_open() {
    for bytes in [1, 10 << 20] {
        let (answer, mut gone) = large(bytes);
        let (_response, _ask, _stuck) = ask(answer, 0).await;
        gone.recv().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_connection_ends_when_the_end_of_an_answer_is_not_taken() {
    // All of it was handed over to be sent, and the last byte does not go.
    let (answer, mut gone) = large(WINDOW as usize + 1);
    let begun = Clock::system();
    let (response, _ask, mut stuck) = ask(answer, WINDOW).await;
    stuck.recv().await.unwrap();
    assert!(begun.elapsed() >= PATIENCE, "{:?}", begun.elapsed());
    gone.recv().await.unwrap();
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn who_takes_a_little_now_and_then_gets_all() {
    let (answer, mut gone) = large(1 << 20);
    let (response, _ask, mut stuck) = ask(answer, WINDOW).await;
    let (mut body, mut got, begun) = (response.into_body(), 0, Clock::system());
    while let Some(frame) = body.frame().await {
        got += frame.unwrap().into_data().unwrap().len();
        sleep(PATIENCE / 8).await;
    }
    assert_eq!(got, 1 << 20);
    assert!(begun.elapsed() > PATIENCE * 2, "{:?}", begun.elapsed());
    gone.recv().await.unwrap();
    assert!(stuck.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_which_nothing_comes_stays_until_what_comes_is_not_taken() {
    let event = |bytes: usize| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![7; bytes])));
    let quiet = futures::stream::once(async move {
        sleep(PATIENCE * 100).await;
        event(10)
    });
    let all = futures::stream::iter([event(10)])
        .chain(quiet)
        // Part of it fits into the window, and then nothing comes again.
        .chain(futures::stream::iter([event(5000)]))
        .chain(futures::stream::once(pending()));
    let begun = Clock::system();
    let (response, _ask, mut stuck) =
        ask(BodyExt::boxed(StreamBody::new(Box::pin(all))), 1000).await;
    let mut body = response.into_body();
    for _ in 0..2 {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 10);
    }
    assert!(begun.elapsed() >= PATIENCE * 100);
    sleep(PATIENCE * 2).await;
    assert!(body.collect().await.is_err(), "the stream is reset");
    assert!(stuck.try_recv().is_err(), "the connection goes on");
}
