//! Response bodies that are produced while they are sent.

use super::download::{Download, DownloadError};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The body of a response.
#[derive(Debug)]
pub struct CatalogBody(Kind);

#[derive(Debug)]
enum Kind {
    Text(Bytes),
    Download(Box<Download>),
}

impl CatalogBody {
    pub(super) fn empty() -> Self {
        Self(Kind::Text(Bytes::new()))
    }

    pub(super) fn text(text: String) -> Self {
        Self(Kind::Text(text.into()))
    }

    pub(super) fn download(download: Download) -> Self {
        Self(Kind::Download(Box::new(download)))
    }
}

impl http_body::Body for CatalogBody {
    type Data = Bytes;
    type Error = DownloadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, DownloadError>>> {
        match &mut self.0 {
            Kind::Text(text) if text.is_empty() => Poll::Ready(None),
            Kind::Text(text) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Kind::Download(download) => {
                let next = ready!(download.poll_next(context));
                if let Err(error) = &next {
                    tracing::warn!(%error, "a download of a catalog ended early");
                }
                Poll::Ready(next.map(|bytes| bytes.map(Frame::data)).transpose())
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Text(text) => text.is_empty(),
            Kind::Download(download) => download.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Text(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Download(download) => {
                download.remaining().map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}
