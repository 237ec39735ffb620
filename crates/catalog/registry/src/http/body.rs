//! Response bodies that are produced while they are sent.

use super::query::Query;
use bytes::{Buf, Bytes};
use flate2::{Compression, write::GzEncoder};
use http_body::{Frame, SizeHint};
use mainstay_catalog::{Blob, BlobError, Catalog};
use std::{
    io::Write,
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{sync::OwnedSemaphorePermit, task::JoinHandle};

/// Small blobs are joined up to this size.
const FRAME: usize = 64 << 10;

/// Blobs longer than this are decompressed on a blocking thread, so that other connections go on.
const LONG: usize = 256 << 10;

/// The gzip level: the output only travels, so speed counts more than size.
const LEVEL: u32 = 1;

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The stored form of a blob is damaged.
    #[error(transparent)]
    Content(#[from] BlobError),
    /// The blocking thread ended because the process does.
    #[error("a blob could not be inflated: {0}")]
    Thread(#[from] tokio::task::JoinError),
    /// Compression failed, which it cannot in memory.
    #[error("compressing failed: {0}")]
    Compress(#[from] std::io::Error),
}

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
                SizeHint::with_exact(download.remaining + download.piece.len() as u64)
            }
            Kind::Download(_) => SizeHint::default(),
        }
    }
}

/// Selected blobs of a catalog, in order.
#[derive(Debug)]
pub(super) struct Blobs {
    catalog: Arc<Catalog>,
    /// Indexes of the blobs; `None` means all.
    chosen: Option<Vec<usize>>,
}

impl Blobs {
    /// The blobs that a query selects.
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

    /// The size of all lines in bytes.
    pub(super) fn size(&self) -> u64 {
        (0..).map_while(|index| self.get(index)).map(|blob| line_length(&blob)).sum()
    }
}

fn line_length(blob: &Blob) -> u64 {
    blob.json_len() as u64 + 1
}

/// A download in progress: it holds the blobs of one frame, or one long blob.
#[derive(Debug)]
pub(super) struct Download {
    blobs: Blobs,
    /// The next blob.
    next: usize,
    /// Bytes to skip before anything is sent.
    skip: u64,
    /// Bytes to send after that.
    remaining: u64,
    /// Data that is produced but not sent yet.
    piece: Bytes,
    inflating: Option<JoinHandle<Result<Vec<u8>, BlobError>>>,
    gzip: Option<GzEncoder<Vec<u8>>>,
    _permit: OwnedSemaphorePermit,
}

impl Download {
    /// The given range of the lines of those blobs.
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
            remaining: part.end - part.start,
            piece: Bytes::new(),
            inflating: None,
            gzip: compressed.then(encoder),
            _permit: permit,
        }
    }

    fn is_done(&self) -> bool {
        self.remaining == 0 && self.piece.is_empty() && self.gzip.is_none()
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

    /// The next lines within the range; none at the end.
    fn poll_lines(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, BodyError>> {
        let mut lines = Vec::new();
        while (lines.len() as u64) < self.skip.saturating_add(self.remaining) && lines.len() < FRAME
        {
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
                // A long blob gets a frame of its own.
                break;
            }
            self.next += 1;
        }
        let mut lines = Bytes::from(lines);
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(lines.len());
        lines.advance(skipped);
        self.skip -= skipped as u64;
        lines.truncate(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        self.remaining -= lines.len() as u64;
        Poll::Ready(Ok(lines))
    }
}
