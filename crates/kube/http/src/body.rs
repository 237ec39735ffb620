//! Response bodies: one buffer, chunks made on demand, or an endless stream.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::Stream;
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::fmt;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes compressed in one step: the cost of one poll.
const GZIP_STEP: usize = 64 * 1024;

/// The body of a response.
///
/// A list of many thousand objects is never one buffer. Its chunks are copied from the shared bytes
/// of the objects while the connection takes them.
pub struct Body(Inner);

enum Inner {
    Empty,
    Full(Bytes),
    Chunks(Box<dyn Iterator<Item = Bytes> + Send>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Inner::Empty => "Body::Empty",
            Inner::Full(_) => "Body::Full",
            Inner::Chunks(_) => "Body::Chunks",
            Inner::Stream(_) => "Body::Stream",
        })
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self(Inner::Empty) } else { Self(Inner::Full(bytes)) }
    }
}

impl Body {
    /// A body of chunks made on demand.
    pub fn chunks(chunks: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Chunks(Box::new(chunks)))
    }

    /// A body that ends when the stream ends.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Stream(Box::pin(stream)))
    }

    /// The same body; a stream drops `guard` when it was sent. Other bodies drop it at once.
    #[must_use]
    pub fn with_guard<T: Send + 'static>(self, guard: Option<T>) -> Self {
        match (self.0, guard) {
            (Inner::Stream(stream), Some(guard)) => {
                Self(Inner::Stream(Box::pin(GuardedStream(stream, guard))))
            }
            (inner, _) => Self(inner),
        }
    }

    /// The whole body in one buffer.
    ///
    /// # Errors
    ///
    /// The body is a stream; it is returned unchanged.
    pub fn into_bytes(self) -> Result<Bytes, Self> {
        match self.0 {
            Inner::Empty => Ok(Bytes::new()),
            Inner::Full(bytes) => Ok(bytes),
            Inner::Chunks(chunks) => {
                let mut out = Vec::new();
                chunks.for_each(|chunk| out.extend_from_slice(&chunk));
                Ok(out.into())
            }
            stream @ Inner::Stream(_) => Err(Self(stream)),
        }
    }

    /// Whether compression pays: the body has at least `min_size` bytes, or is made on demand.
    pub const fn is_worth_compressing(&self, min_size: usize) -> bool {
        match &self.0 {
            Inner::Full(bytes) => bytes.len() >= min_size,
            Inner::Chunks(_) => true,
            Inner::Empty | Inner::Stream(_) => false,
        }
    }

    /// The same body compressed. Streams stay as they are: each watch event must leave at once.
    #[must_use]
    pub fn gzip(self) -> Self {
        let chunks: Box<dyn Iterator<Item = Bytes> + Send> = match self.0 {
            Inner::Full(bytes) => Box::new(Slices(bytes)),
            Inner::Chunks(chunks) => chunks,
            other => return Self(other),
        };
        // Level 1, as in kube-apiserver: a local client is faster than any deflate.
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        Self(Inner::Chunks(Box::new(Gzip { chunks, encoder: Some(encoder) })))
    }
}

/// A stream and a guard that is dropped with it.
struct GuardedStream<T>(Pin<Box<dyn Stream<Item = Bytes> + Send>>, T);

// The stream is on the heap, so nothing in this type is pinned.
impl<T> Unpin for GuardedStream<T> {}

impl<T> Stream for GuardedStream<T> {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.get_mut().0.as_mut().poll_next(context)
    }
}

/// A buffer in slices that are cheap to compress.
struct Slices(Bytes);

impl Iterator for Slices {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let step = self.0.len().min(GZIP_STEP);
        (step > 0).then(|| self.0.split_to(step))
    }
}

struct Gzip {
    chunks: Box<dyn Iterator<Item = Bytes> + Send>,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Iterator for Gzip {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        loop {
            let encoder = self.encoder.as_mut()?;
            let Some(chunk) = self.chunks.next() else {
                // Writing to a vector and finishing such an encoder do not fail.
                return self.encoder.take()?.finish().ok().map(Bytes::from);
            };
            encoder.write_all(&chunk).ok()?;
            if !encoder.get_ref().is_empty() {
                return Some(std::mem::take(encoder.get_mut()).into());
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let inner = &mut self.get_mut().0;
        let chunk = match inner {
            Inner::Empty => None,
            Inner::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *inner = Inner::Empty;
                Some(bytes)
            }
            Inner::Chunks(chunks) => chunks.next(),
            Inner::Stream(stream) => match stream.as_mut().poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(chunk) => chunk,
            },
        };
        if chunk.is_none() {
            *inner = Inner::Empty;
        }
        Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Chunks(_) | Inner::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn compressed_bodies_decompress_to_the_same_bytes() {
        let text = "0123456789abcdef".repeat(40_000);
        for body in [
            Body::from(Bytes::from(text.clone())),
            Body::chunks(vec![Bytes::from(text.clone())].into_iter()),
        ] {
            let compressed = body.gzip().into_bytes().unwrap();
            assert!(compressed.len() < text.len() / 10, "{} bytes", compressed.len());
            let mut decompressed = String::new();
            GzDecoder::new(&compressed[..]).read_to_string(&mut decompressed).unwrap();
            assert_eq!(decompressed, text);
        }
    }
}
