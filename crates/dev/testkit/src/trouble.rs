//! A connection on which things go wrong, as a test decides request by request.
//!
//! ```text
//! controllers ─► Cluster ─► kube::Client ─► Troubled ─► the server's service
//!                                              │
//!                                              └── judge(&Asked) -> Fate
//! ```
//!
//! What is decided for a request depends on nothing but its number, so a run can be told by a seed.

use crate::TestCluster;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use mainstay_auth::Identity;
use mainstay_client::Cluster;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tower::Service;

/// A request that is about to be sent.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How many were sent before it over this connection.
    pub number: usize,
    /// How many of those were writes.
    pub writes: usize,
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub target: String,
}

impl Asked {
    /// Whether it could change something.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// Whether its answer goes on for as long as somebody listens.
    pub fn is_watch(&self) -> bool {
        self.target.contains("watch=1") || self.target.contains("watch=true")
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing special.
    Pass,
    /// The server never hears of it; the connection breaks.
    Lost,
    /// The server carries it out, and the connection breaks before the answer is there.
    Unanswered,
    /// Something on the way refuses it with this code, and the server never hears of it.
    Refused(u16),
    /// The server gets it twice, one after the other; the answer is that to the second. A watch is
    /// opened twice, and nobody listens to the first.
    Twice,
    /// It arrives later.
    Late(Duration),
    /// It arrives after so many requests that are sent after it; or a little later, where these do not
    /// come because they wait for it.
    Behind(usize),
    /// Every part of the answer takes so much longer. What a watch tells is that old.
    Slow(Duration),
    /// The answer ends after so many parts, as a watch does when a server goes away.
    Cut(usize),
    /// The connection breaks, and the server carries it out so much later, whatever has become of its
    /// sender.
    Adrift(Duration),
}

impl TestCluster {
    /// The cluster over a connection of which `judge` says what goes wrong.
    pub fn troubled(&self, judge: impl Fn(&Asked) -> Fate + Send + Sync + 'static) -> Cluster {
        let service = self.server().service(Identity::admin());
        let judge = Arc::new(judge);
        let wrote = AtomicUsize::new(0);
        let sent = watch::Sender::new(0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let target = request.uri().path_and_query().map(ToString::to_string);
            let method = request.method().clone();
            let writes = if method == Method::GET {
                wrote.load(Ordering::SeqCst)
            } else {
                wrote.fetch_add(1, Ordering::SeqCst)
            };
            let mut number = 0;
            sent.send_modify(|sent| {
                number = *sent;
                *sent += 1;
            });
            let asked = Asked { number, writes, method, target: target.unwrap_or_default() };
            let (fate, mut sent) = (judge(&asked), sent.subscribe());
            let service = service.clone();
            async move {
                if let Fate::Behind(others) = fate {
                    let passed = sent.wait_for(|sent| *sent > asked.number + others);
                    // Both are as good: they passed, or they do not come.
                    let _ = tokio::time::timeout(OVERTAKEN, passed).await;
                }
                send(service, request, fate, asked.is_watch()).await
            }
            .boxed()
        });
        Cluster::new(kube::Client::new(service, "default"))
    }
}

/// How long a request waits for others to overtake it.
const OVERTAKEN: Duration = Duration::from_millis(100);

/// The body of an answer.
type Answer = UnsyncBoxBody<Bytes, io::Error>;

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke")
}

async fn send<S, B>(
    mut service: S,
    request: Request<Body>,
    fate: Fate,
    is_watch: bool,
) -> Result<Response<Answer>, io::Error>
where
    S: Service<Request<Body>, Response = Response<B>, Error = std::convert::Infallible>
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let again = || Request::from_parts(parts.clone(), Body::from(body.to_vec()));
    match fate {
        Fate::Lost => return Err(broken()),
        Fate::Refused(code) => return Ok(refusal(code)),
        Fate::Late(time) => tokio::time::sleep(time).await,
        Fate::Adrift(time) => {
            let request = again();
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                let Ok(answer) = service.call(request).await;
                let _ = answer.into_body().collect().await;
            });
            return Err(broken());
        }
        Fate::Twice => {
            let Ok(first) = service.call(again()).await;
            // To its end, as a server would have sent it; that of a watch does not come.
            if !is_watch {
                let _ = first.into_body().collect().await;
            }
        }
        Fate::Pass | Fate::Unanswered | Fate::Slow(_) | Fate::Cut(_) | Fate::Behind(_) => {}
    }
    let Ok(response) = service.call(again()).await;
    let (head, body) = response.into_parts();
    let data = body.into_data_stream().map_err(io::Error::other);
    let frames = data.map_ok(http_body::Frame::data);
    let body = match fate {
        Fate::Unanswered => return Err(broken()),
        Fate::Slow(time) => StreamBody::new(frames.then(move |frame| async move {
            tokio::time::sleep(time).await;
            frame
        }))
        .boxed_unsync(),
        Fate::Cut(after) => StreamBody::new(frames.take(after)).boxed_unsync(),
        _ => StreamBody::new(frames).boxed_unsync(),
    };
    Ok(Response::from_parts(head, body))
}

/// An answer as a proxy or an overloaded server gives it.
fn refusal(code: u16) -> Response<Answer> {
    let body = Full::new(Bytes::from_static(b"no")).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() =
        StatusCode::from_u16(code).expect("the test names a code that there is");
    response
}
