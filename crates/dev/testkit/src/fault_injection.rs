//! Fault injection: a connection to the cluster on which a test chooses the fault of each request.
//!
//! ```text
//! controllers ─► Cluster ─► kube::Client ─► this module ─► the server's service
//!                                               │
//!                                               └── decide(&ObservedRequest) -> InjectedFault
//! ```
//!
//! The decision depends only on the request and its number, so a run can be reproduced from a seed.

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
pub struct ObservedRequest {
    /// The number of requests sent before it on this connection.
    pub number: usize,
    /// The number of writes among those.
    pub writes: usize,
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub target: String,
}

impl ObservedRequest {
    /// Whether it could change an object.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// Whether it opens a watch, whose response is endless.
    pub fn is_watch(&self) -> bool {
        self.target.contains("watch=1") || self.target.contains("watch=true")
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The request is handled normally.
    Pass,
    /// The connection breaks before the server receives the request.
    ConnectionLost,
    /// The server handles the request, and the connection breaks before the response arrives.
    ResponseLost,
    /// A proxy responds with this status code; the server does not receive the request.
    Refused(u16),
    /// The server handles the request twice, sequentially; the client gets the second response. A
    /// watch is opened twice, and the first is not read.
    SentTwice,
    /// The server receives the request later.
    Delayed(Duration),
    /// So many later requests overtake the request. If they do not come, because they wait for it,
    /// it is sent after a short timeout.
    Overtaken(usize),
    /// Every frame of the response is delayed, so that a watch lags.
    SlowResponse(Duration),
    /// The response ends after so many frames, as a watch does when a server stops.
    TruncatedResponse(usize),
    /// The connection breaks, and the server handles the request later, even if the client is gone.
    DeliveredAfterDisconnect(Duration),
}

impl TestCluster {
    /// The cluster over a connection on which `decide` chooses the fault of each request.
    pub fn with_faults(
        &self,
        decide: impl Fn(&ObservedRequest) -> InjectedFault + Send + Sync + 'static,
    ) -> Cluster {
        let service = self.server().service(Identity::admin());
        let decide = Arc::new(decide);
        let write_count = AtomicUsize::new(0);
        let sent = watch::Sender::new(0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let target = request.uri().path_and_query().map(ToString::to_string);
            let method = request.method().clone();
            let writes = if method == Method::GET {
                write_count.load(Ordering::SeqCst)
            } else {
                write_count.fetch_add(1, Ordering::SeqCst)
            };
            let mut number = 0;
            sent.send_modify(|sent| {
                number = *sent;
                *sent += 1;
            });
            let info =
                ObservedRequest { number, writes, method, target: target.unwrap_or_default() };
            let (fault, mut sent) = (decide(&info), sent.subscribe());
            let service = service.clone();
            async move {
                if let InjectedFault::Overtaken(others) = fault {
                    let passed = sent.wait_for(|sent| *sent > info.number + others);
                    // Continue in either case: the others have passed, or do not come.
                    let _ = tokio::time::timeout(OVERTAKE_TIMEOUT, passed).await;
                }
                send(service, request, fault, info.is_watch()).await
            }
            .boxed()
        });
        Cluster::new(kube::Client::new(service, "default"))
    }
}

/// The timeout for other requests to overtake one.
const OVERTAKE_TIMEOUT: Duration = Duration::from_millis(100);

/// The body of a response.
type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

fn connection_reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke")
}

async fn send<S, B>(
    mut service: S,
    request: Request<Body>,
    fault: InjectedFault,
    is_watch: bool,
) -> Result<Response<ResponseBody>, io::Error>
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
    let copy_request = || Request::from_parts(parts.clone(), Body::from(body.to_vec()));
    match fault {
        InjectedFault::ConnectionLost => return Err(connection_reset()),
        InjectedFault::Refused(code) => return Ok(error_response(code)),
        InjectedFault::Delayed(time) => tokio::time::sleep(time).await,
        InjectedFault::DeliveredAfterDisconnect(time) => {
            let request = copy_request();
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                let Ok(answer) = service.call(request).await;
                let _ = answer.into_body().collect().await;
            });
            return Err(connection_reset());
        }
        InjectedFault::SentTwice => {
            let Ok(first) = service.call(copy_request()).await;
            // Read it completely, as a server would have sent it; a watch is endless.
            if !is_watch {
                let _ = first.into_body().collect().await;
            }
        }
        InjectedFault::Pass
        | InjectedFault::ResponseLost
        | InjectedFault::SlowResponse(_)
        | InjectedFault::TruncatedResponse(_)
        | InjectedFault::Overtaken(_) => {}
    }
    let Ok(response) = service.call(copy_request()).await;
    let (head, body) = response.into_parts();
    let data = body.into_data_stream().map_err(io::Error::other);
    let frames = data.map_ok(http_body::Frame::data);
    let body = match fault {
        InjectedFault::ResponseLost => return Err(connection_reset()),
        InjectedFault::SlowResponse(time) => {
            StreamBody::new(frames.then(move |frame| async move {
                tokio::time::sleep(time).await;
                frame
            }))
            .boxed_unsync()
        }
        InjectedFault::TruncatedResponse(after) => {
            StreamBody::new(frames.take(after)).boxed_unsync()
        }
        _ => StreamBody::new(frames).boxed_unsync(),
    };
    Ok(Response::from_parts(head, body))
}

/// An error response of a proxy or an overloaded server.
fn error_response(code: u16) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from_static(b"no")).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() =
        StatusCode::from_u16(code).expect("the test names a code that there is");
    response
}
