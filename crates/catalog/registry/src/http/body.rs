//! Content that is made while it is sent.

use super::query::Query;
use bytes::{Buf, Bytes};
use flate2::{Compression, write::GzEncoder};
use http_body::{Frame, SizeHint};
use mainstay_catalog::{Blob, Catalog, ContentError};
use std::{
    io::Write,
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{sync::OwnedSemaphorePermit, task::JoinHandle};

/// Blobs are put together until there is as much as this.
const FRAME: usize = 64 << 10;

/// Blobs longer than this are inflated on a thread of their own: other connections go on.
const LONG: usize = 256 << 10;

/// What is sent is read again from the next hop, so that time counts more than size.
const LEVEL: u32 = 1;

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// What is kept of a blob is damaged.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The thread that inflated a blob ended, because the process does.
    #[error("a blob could not be inflated: {0}")]
    Thread(#[from] tokio::task::JoinError),
    /// Compressing failed, which in memory it does not.
    #[error("compressing failed: {0}")]
    Compress(#[from] std::io::Error),
}

/// The body of an answer.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    Text(Bytes),
    Download(Box<Download>),
}

impl Body {
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

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Kind::Text(text) if text.is_empty() => Poll::Ready(None),
            Kind::Text(text) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Kind::Download(download) => {
                let next = ready!(download.poll_next(context));
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
            Kind::Download(download) if download.gzip.is_none() => {
                SizeHint::with_exact(download.left + download.piece.len() as u64)
            }
            Kind::Download(_) => SizeHint::default(),
        }
    }
}

/// Blobs of a catalog in their order.
#[derive(Debug)]
pub(super) struct Blobs {
    catalog: Arc<Catalog>,
    /// Which; `None` is all.
    chosen: Option<Vec<usize>>,
}

impl Blobs {
    /// Those that are asked for.
    pub(super) fn of(catalog: &Arc<Catalog>, query: &Query<'_>) -> Self {
        let chosen = (!query.is_all()).then(|| {
            let blobs = catalog.blobs().enumerate();
            blobs.filter(|(_, blob)| query.matches(blob)).map(|(index, _)| index).collect()
        });
        Self { catalog: Arc::clone(catalog), chosen }
    }

    fn get(&self, index: usize) -> Option<Blob> {
        let index = match &self.chosen {
            None => index,
            Some(chosen) => *chosen.get(index)?,
        };
        self.catalog.blob_at(index)
    }

    /// Bytes of all lines.
    pub(super) fn size(&self) -> u64 {
        (0..).map_while(|index| self.get(index)).map(|blob| line_length(&blob)).sum()
    }
}

fn line_length(blob: &Blob) -> u64 {
    blob.json_len() as u64 + 1
}

/// A download under way: at any time it holds the blobs of one frame, or one long blob.
#[derive(Debug)]
pub(super) struct Download {
    blobs: Blobs,
    /// The blob that comes next.
    next: usize,
    /// Bytes of lines to leave out before anything is sent.
    skip: u64,
    /// Bytes to take from lines after that.
    left: u64,
    /// What was taken and not yet sent.
    piece: Bytes,
    inflating: Option<JoinHandle<Result<Vec<u8>, ContentError>>>,
    gzip: Option<GzEncoder<Vec<u8>>>,
    _permit: OwnedSemaphorePermit,
}

impl Download {
    /// That part of the lines of those blobs.
    pub(super) fn new(
        blobs: Blobs,
        part: Range<u64>,
        compressed: bool,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let encoder = || GzEncoder::new(Vec::new(), Compression::new(LEVEL));
        Self {
            blobs,
            next: 0,
            skip: part.start,
            left: part.end - part.start,
            piece: Bytes::new(),
            inflating: None,
            gzip: compressed.then(encoder),
            _permit: permit,
        }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.piece.is_empty() && self.gzip.is_none()
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            if self.piece.is_empty() {
                self.piece = ready!(self.poll_lines(context))?;
            }
            if self.piece.is_empty() {
                let Some(gzip) = self.gzip.take() else { return Poll::Ready(Ok(None)) };
                return Poll::Ready(Ok(Some(gzip.finish()?.into())));
            }
            let frame = self.piece.split_to(self.piece.len().min(FRAME));
            let Some(gzip) = &mut self.gzip else { return Poll::Ready(Ok(Some(frame))) };
            gzip.write_all(&frame)?;
            let compressed = std::mem::take(gzip.get_mut());
            if !compressed.is_empty() {
                return Poll::Ready(Ok(Some(compressed.into())));
            }
        }
    }

    /// The next lines, as far as they are wanted; none at the end.
    fn poll_lines(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, BodyError>> {
        let mut lines = Vec::new();
        while (lines.len() as u64) < self.skip.saturating_add(self.left) && lines.len() < FRAME {
            if let Some(inflating) = &mut self.inflating {
                let line = ready!(Pin::new(inflating).poll(context));
                self.inflating = None;
                lines = line??;
                lines.push(b'\n');
                break;
            }
            let Some(blob) = self.blobs.get(self.next) else { break };
            let length = line_length(&blob);
            if lines.is_empty() && self.skip >= length {
                self.skip -= length;
                self.next += 1;
                continue;
            }
            if blob.json_len() <= LONG {
                lines.extend_from_slice(&blob.json()?);
                lines.push(b'\n');
            } else if lines.is_empty() {
                self.inflating = Some(tokio::task::spawn_blocking(move || blob.json()));
            } else {
                // It gets a turn of its own.
                break;
            }
            self.next += 1;
        }
        let mut lines = Bytes::from(lines);
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(lines.len());
        lines.advance(skipped);
        self.skip -= skipped as u64;
        lines.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= lines.len() as u64;
        Poll::Ready(Ok(lines))
    }
}
