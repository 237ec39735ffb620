//! Bodies of requests that tell whether they were read to their end.
//!
//! An answer over HTTP/1.1 that is given before the whole request was read leaves bytes on the
//! connection that are no next request. The connection has to end then, and the answer has to say
//! so, or the client sends its next request into nothing. HTTP/2 resets the stream alone.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

/// The body of a request.
#[derive(Debug)]
pub struct Received {
    body: Incoming,
    /// None where nothing depends on it.
    read: Option<Arc<AtomicBool>>,
}

/// Whether a request was read to its end; asked when its answer begins.
#[derive(Clone, Debug)]
pub struct ReadToEnd(Option<Arc<AtomicBool>>);

impl Received {
    /// The same request, and who knows whether it was read.
    pub fn watch(request: Request<Incoming>) -> (Request<Self>, ReadToEnd) {
        let has_rest = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
        let read = has_rest.then(Arc::<AtomicBool>::default);
        let told = ReadToEnd(read.clone());
        (request.map(|body| Self { body, read }), told)
    }
}

impl ReadToEnd {
    /// Says in the head of an answer that the connection ends with it, if the request was not read to
    /// its end. An upgrade has no end of that kind.
    pub fn announce(&self, status: StatusCode, headers: &mut HeaderMap) {
        let unread = self.0.as_ref().is_some_and(|read| !read.load(Ordering::Acquire));
        if unread && status != StatusCode::SWITCHING_PROTOCOLS {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(read) = &self.read
            && (frame.is_none() || self.body.is_end_stream())
        {
            read.store(true, Ordering::Release);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
