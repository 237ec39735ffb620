//! Downloads: documents that are read, or compressed blocks that are loaded, piece by piece.
//!
//! ```text
//! parts (texts, spans of bytes) ────────────┐
//!                                           ├─► step: in place, or on a blocking thread ─► piece
//! selected documents ─► blocks, and others ─┘
//! ```
//!
//! A piece is produced when the connection wants more. So a client that reads slowly holds one
//! piece, and a client that does not read holds no more.

use crate::documents::{
    ContentError, Segment, Selection, ServedDocuments,
    encoding::{Coding, GzipStream},
};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{sync::OwnedSemaphorePermit, task::JoinHandle};

/// The length of a piece, in bytes.
const PIECE: u64 = 256 << 10;
/// The length of a piece that is read without coding, in bytes: short enough that its memory is used
/// again while it is still in the caches of the processor.
const PLAIN_PIECE: u64 = 64 << 10;
/// Documents are read in place up to this length, in bytes, if no disk is read for them.
const IN_PLACE: u64 = 256 << 10;
/// Documents that fill no block are compressed in place up to this length, in bytes.
const COMPRESSED_IN_PLACE: u64 = 16 << 10;

/// Why a download ended early.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The content cannot be read.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The blocking thread ended because the process does.
    #[error("a part of a catalog could not be read: {0}")]
    Thread(#[from] tokio::task::JoinError),
}

/// A part of a response without coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A text between parts.
    Text(Bytes),
    /// A range of the bytes of all lines.
    Span(Range<u64>),
}

impl Part {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Span(span) => span.end - span.start,
        }
    }
}

/// A response that is being produced.
#[derive(Debug)]
pub(super) struct Download {
    documents: Arc<ServedDocuments>,
    rest: Rest,
    /// Produced and not taken yet.
    ready: Bytes,
    running: Option<JoinHandle<Result<Piece, ContentError>>>,
    /// The length of what follows, if it was promised.
    remaining: Option<u64>,
    _permit: OwnedSemaphorePermit,
}

/// What is still to be produced.
#[derive(Debug)]
enum Rest {
    Parts(VecDeque<Part>),
    Selected { selection: Selection, next: usize },
    Encoded { selection: Selection, next: usize, stream: Encoding },
    Done,
}

/// A compressed response in progress.
#[derive(Debug)]
enum Encoding {
    /// Nothing is sent yet.
    Gzip(GzipStream),
    Zstd,
}

/// The outcome of a step.
#[derive(Debug)]
enum Piece {
    Plain(Bytes),
    Encoded(Segment),
}

/// The work for the next piece.
enum Step {
    Text(Bytes),
    Read(Vec<Range<u64>>),
    Blocks(Range<usize>, Coding),
    Compress(Vec<Range<u64>>, Coding),
}

impl Download {
    /// These parts, one after the other.
    pub(super) fn parts(
        documents: Arc<ServedDocuments>,
        parts: Vec<Part>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let length = parts.iter().map(Part::length).sum();
        Self::new(documents, Rest::Parts(parts.into()), Some(length), permit)
    }

    /// The lines of the selected documents. `length` is promised to the client, if given.
    pub(super) fn selected(
        documents: Arc<ServedDocuments>,
        selection: Selection,
        length: Option<u64>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let rest = match &selection {
            // Bytes in a file may be divided anywhere.
            Selection::These(chosen) if !documents.is_in_memory() => {
                let spans = spans(&documents, chosen, &mut 0, |_, _| true);
                Rest::Parts(spans.into_iter().map(Part::Span).collect())
            }
            _ => Rest::Selected { selection, next: 0 },
        };
        Self::new(documents, rest, length, permit)
    }

    /// The lines of the selected documents, compressed.
    pub(super) fn encoded(
        documents: Arc<ServedDocuments>,
        selection: Selection,
        coding: Coding,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let (stream, header) = match coding {
            Coding::Gzip => {
                (Encoding::Gzip(GzipStream::default()), Bytes::from_static(&GzipStream::HEADER))
            }
            Coding::Zstd => (Encoding::Zstd, Bytes::new()),
        };
        let mut download =
            Self::new(documents, Rest::Encoded { selection, next: 0, stream }, None, permit);
        download.ready = header;
        download
    }

    fn new(
        documents: Arc<ServedDocuments>,
        rest: Rest,
        remaining: Option<u64>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self { documents, rest, ready: Bytes::new(), running: None, remaining, _permit: permit }
    }

    pub(super) fn is_done(&self) -> bool {
        self.remaining == Some(0)
            || (matches!(self.rest, Rest::Done) && self.ready.is_empty() && self.running.is_none())
    }

    pub(super) const fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    pub(super) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, DownloadError>> {
        loop {
            if !self.ready.is_empty() {
                let length = self.ready.len().min(usize::try_from(PIECE).unwrap_or(usize::MAX));
                let piece = self.ready.split_to(length);
                if let Some(remaining) = &mut self.remaining {
                    *remaining = remaining.saturating_sub(piece.len() as u64);
                }
                return Poll::Ready(Ok(Some(piece)));
            }
            if let Some(running) = &mut self.running {
                let piece = ready!(Pin::new(running).poll(context));
                self.running = None;
                self.take(piece??);
                continue;
            }
            let Some(step) = self.next_step() else {
                self.finish();
                if self.ready.is_empty() {
                    return Poll::Ready(Ok(None));
                }
                continue;
            };
            if self.is_short(&step) {
                let piece = step.run(&self.documents)?;
                self.take(piece);
            } else {
                let documents = Arc::clone(&self.documents);
                self.running = Some(tokio::task::spawn_blocking(move || step.run(&documents)));
            }
        }
    }

    /// The next step; none at the end.
    fn next_step(&mut self) -> Option<Step> {
        let documents = &self.documents;
        match &mut self.rest {
            Rest::Parts(parts) => match parts.pop_front()? {
                Part::Text(text) => Some(Step::Text(text)),
                Part::Span(span) => {
                    let end = documents.chunk_end(span.start, PLAIN_PIECE).min(span.end);
                    if end < span.end {
                        parts.push_front(Part::Span(end..span.end));
                    }
                    Some(Step::Read(std::iter::once(span.start..end).collect()))
                }
            },
            Rest::Selected { selection: Selection::All, .. } => {
                let all = VecDeque::from([Part::Span(0..documents.size())]);
                self.rest = Rest::Parts(all);
                self.next_step()
            }
            Rest::Selected { selection: Selection::These(chosen), next } => {
                let spans = spans(documents, chosen, next, |_, length| length < PLAIN_PIECE);
                (!spans.is_empty()).then_some(Step::Read(spans))
            }
            Rest::Encoded { selection, next, stream } => {
                let coding = stream.coding();
                let chosen = match selection {
                    Selection::All => {
                        let (block, after) = documents.block_from(*next)?;
                        *next = after;
                        let mut blocks = block..block + 1;
                        while documents.joins(&blocks, coding, PIECE)
                            && let Some((block, after)) = documents.block_from(*next)
                        {
                            *next = after;
                            blocks.end = block + 1;
                        }
                        return Some(Step::Blocks(blocks, coding));
                    }
                    Selection::These(chosen) => chosen,
                };
                if let Some(block) = whole_block(documents, chosen, next) {
                    let mut blocks = block..block + 1;
                    let mut ahead = *next;
                    while documents.joins(&blocks, coding, PIECE)
                        && whole_block(documents, chosen, &mut ahead) == Some(blocks.end)
                    {
                        *next = ahead;
                        blocks.end += 1;
                    }
                    return Some(Step::Blocks(blocks, coding));
                }
                let spans = spans(documents, chosen, next, |rest, length| {
                    length < PIECE && whole_block(documents, rest, &mut 0).is_none()
                });
                (!spans.is_empty()).then_some(Step::Compress(spans, coding))
            }
            Rest::Done => None,
        }
    }

    /// Whether a step neither waits for a disk nor needs much processor time.
    fn is_short(&self, step: &Step) -> bool {
        let length =
            |spans: &[Range<u64>]| -> u64 { spans.iter().map(|span| span.end - span.start).sum() };
        let documents = &self.documents;
        match step {
            Step::Text(_) => true,
            Step::Read(spans) => length(spans) <= IN_PLACE && documents.are_cached(spans),
            Step::Blocks(blocks, coding) => documents.are_ready(blocks, *coding),
            Step::Compress(spans, _) => {
                documents.is_in_memory() && length(spans) <= COMPRESSED_IN_PLACE
            }
        }
    }

    fn take(&mut self, piece: Piece) {
        self.ready = match piece {
            Piece::Plain(bytes) => bytes,
            Piece::Encoded(segment) => {
                if let Rest::Encoded { stream: Encoding::Gzip(stream), .. } = &mut self.rest {
                    stream.add(segment.checksum);
                }
                segment.bytes
            }
        };
    }

    /// Ends the response.
    fn finish(&mut self) {
        let rest = std::mem::replace(&mut self.rest, Rest::Done);
        if let Rest::Encoded { stream: Encoding::Gzip(stream), .. } = rest {
            self.ready = stream.end().into();
        }
    }
}

impl Encoding {
    const fn coding(&self) -> Coding {
        match self {
            Self::Gzip(_) => Coding::Gzip,
            Self::Zstd => Coding::Zstd,
        }
    }
}

impl Step {
    fn run(self, documents: &ServedDocuments) -> Result<Piece, ContentError> {
        let read = |spans: Vec<Range<u64>>| {
            let mut bytes = Vec::new();
            for span in spans {
                documents.read(span, &mut bytes)?;
            }
            Ok::<_, ContentError>(bytes)
        };
        match self {
            Self::Text(text) => Ok(Piece::Plain(text)),
            Self::Read(spans) => Ok(Piece::Plain(read(spans)?.into())),
            Self::Blocks(blocks, coding) => documents.blocks(blocks, coding).map(Piece::Encoded),
            Self::Compress(spans, coding) => Ok(Piece::Encoded(coding.segment(&read(spans)?))),
        }
    }
}

/// The spans of chosen documents from `next` on, neighbours joined, while `more` allows another
/// document: it gets the documents that are left, and the length of the spans. At least one.
fn spans(
    documents: &ServedDocuments,
    chosen: &[u32],
    next: &mut usize,
    more: impl Fn(&[u32], u64) -> bool,
) -> Vec<Range<u64>> {
    let mut spans: Vec<Range<u64>> = Vec::new();
    let mut length = 0;
    while let Some(&document) = chosen.get(*next) {
        if length > 0 && !more(&chosen[*next..], length) {
            break;
        }
        let span = documents.span_of(document as usize..document as usize + 1);
        length += span.end - span.start;
        match spans.last_mut() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => spans.push(span),
        }
        *next += 1;
    }
    spans
}

/// The block whose documents are exactly the next chosen ones; `next` is then the one after them.
fn whole_block(documents: &ServedDocuments, chosen: &[u32], next: &mut usize) -> Option<usize> {
    let rest = chosen.get(*next..)?;
    let first = *rest.first()? as usize;
    let (block, after) = documents.block_from(first)?;
    let count = after - first;
    // The documents are in ascending order, so the last one decides.
    let last = *rest.get(count - 1)? as usize;
    (last + 1 == after).then(|| {
        *next += count;
        block
    })
}
