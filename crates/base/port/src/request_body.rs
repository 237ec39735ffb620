//! Request bodies that record whether they were read to the end.
//!
//! An HTTP/1.1 response before the end of its request leaves bytes on the connection that are not the
//! next request. The connection must close then, and the response must say so, or the client loses its
//! next request. HTTP/2 resets only the stream.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

/// A request body that records whether it was read to the end.
#[derive(Debug)]
pub struct TrackedBody {
    body: Incoming,
    /// None for HTTP/2 and for empty bodies, where it does not matter.
    read: Option<Arc<AtomicBool>>,
}

/// Whether a request was read to its end; read when its response begins.
#[derive(Clone, Debug)]
pub struct ReadTracker(Option<Arc<AtomicBool>>);

impl TrackedBody {
    /// Wraps the body of a request; the tracker says later whether it was read.
    pub fn track(request: Request<Incoming>) -> (Request<Self>, ReadTracker) {
        let has_rest = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
        let read = has_rest.then(Arc::<AtomicBool>::default);
        let tracker = ReadTracker(read.clone());
        (request.map(|body| Self { body, read }), tracker)
    }
}

impl ReadTracker {
    /// Adds `Connection: close` to the head of a response if the request was not read to its end. An
    /// upgraded connection stays open.
    pub fn close_if_unread(&self, status: StatusCode, headers: &mut HeaderMap) {
        let unread = self.0.as_ref().is_some_and(|read| !read.load(Ordering::Acquire));
        if unread && status != StatusCode::SWITCHING_PROTOCOLS {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl Body for TrackedBody {
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
