//! Blob downloads: streamed from disk, whole or in part.

use super::response::{self, ErrorCode, ErrorResponse, HandlerResult, RegistryBody};
use crate::digest::Digest;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Range,
};

/// How many bytes are read at once.
const CHUNK: u64 = 256 << 10;

pub(super) fn blob(file: File, length: u64, digest: &Digest, headers: &HeaderMap) -> HandlerResult {
    let requested = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (status, range) = match requested.map(|requested| range(requested, length)) {
        None | Some(RequestedRange::All) => (StatusCode::OK, 0..length),
        Some(RequestedRange::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(RequestedRange::Nothing) => {
            let why = format!("the blob has {length} bytes");
            return Err(ErrorResponse::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                ErrorCode::SizeInvalid,
                &why,
            ));
        }
    };
    let mut response = response::response(status, stream_file(file, range.clone()));
    response::put(&mut response, "content-length", &(range.end - range.start).to_string());
    response::put(&mut response, "content-type", "application/octet-stream");
    response::put(&mut response, "accept-ranges", "bytes");
    response::put(&mut response, "docker-content-digest", &digest.to_string());
    response::put(&mut response, "etag", &format!("\"{digest}\""));
    if status == StatusCode::PARTIAL_CONTENT {
        let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        response::put(&mut response, "content-range", &text);
    }
    Ok(response)
}

/// A part of a file as a body, with one chunk in memory at a time.
pub(crate) fn stream_file(file: File, range: Range<u64>) -> RegistryBody {
    let state = (file, range, false);
    let stream = stream::try_unfold(state, |(mut file, range, sought)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            if !sought {
                file.seek(SeekFrom::Start(range.start))?;
            }
            let most = (range.end - range.start).min(CHUNK);
            let mut piece = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
            (&mut file).take(most).read_to_end(&mut piece)?;
            if piece.is_empty() {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            let rest = range.start + piece.len() as u64..range.end;
            Ok((Bytes::from(piece), (file, rest, true)))
        });
        let (piece, state) = read.await.map_err(io::Error::other)??;
        Ok(Some((Frame::data(piece), state)))
    });
    StreamBody::new(stream).boxed()
}

#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    All,
    Part(Range<u64>),
    Nothing,
}

/// Parses `Range`. An unsupported range stands for the whole blob, as the HTTP specification
/// demands.
fn range(text: &str, length: u64) -> RequestedRange {
    let Some((from, to)) = text.strip_prefix("bytes=").and_then(|text| text.split_once('-')) else {
        return RequestedRange::All;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (number(from), number(to)) {
        (Some(from), Some(to)) if from <= to => from..to.saturating_add(1).min(length),
        (Some(from), None) if to.trim().is_empty() => from..length,
        (None, Some(last)) if from.trim().is_empty() => length.saturating_sub(last)..length,
        _ => return RequestedRange::All,
    };
    if range.is_empty() { RequestedRange::Nothing } else { RequestedRange::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_http_defines_them() {
        for (text, want) in [
            ("bytes=0-3", RequestedRange::Part(0..4)),
            ("bytes=4-", RequestedRange::Part(4..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-30", RequestedRange::Part(0..10)),
            ("bytes=8-99", RequestedRange::Part(8..10)),
            ("bytes=10-", RequestedRange::Nothing),
            ("bytes=-0", RequestedRange::Nothing),
            ("bytes=3-1", RequestedRange::All),
            ("bytes=0-1,3-4", RequestedRange::All),
            ("lines=0-1", RequestedRange::All),
            ("bytes=-", RequestedRange::All),
        ] {
            assert_eq!(range(text, 10), want, "{text}");
        }
    }
}
