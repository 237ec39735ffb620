//! Blob downloads: streamed from disk, whole or in part.

use super::answer::{self, Body, Code, Failure, Outcome};
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
const PIECE: u64 = 256 << 10;

pub(super) fn blob(file: File, length: u64, digest: &Digest, headers: &HeaderMap) -> Outcome {
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (status, range) = match asked.map(|asked| range(asked, length)) {
        None | Some(Asked::All) => (StatusCode::OK, 0..length),
        Some(Asked::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(Asked::Nothing) => {
            let why = format!("the blob has {length} bytes");
            return Err(Failure::new(StatusCode::RANGE_NOT_SATISFIABLE, Code::SizeInvalid, &why));
        }
    };
    let mut answer = answer::answer(status, pieces(file, range.clone()));
    answer::put(&mut answer, "content-length", &(range.end - range.start).to_string());
    answer::put(&mut answer, "content-type", "application/octet-stream");
    answer::put(&mut answer, "accept-ranges", "bytes");
    answer::put(&mut answer, "docker-content-digest", &digest.to_string());
    answer::put(&mut answer, "etag", &format!("\"{digest}\""));
    if status == StatusCode::PARTIAL_CONTENT {
        let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        answer::put(&mut answer, "content-range", &text);
    }
    Ok(answer)
}

/// A part of a file as a body, with one chunk in memory at a time.
pub(crate) fn pieces(file: File, range: Range<u64>) -> Body {
    let state = (file, range, false);
    let stream = stream::try_unfold(state, |(mut file, range, sought)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            if !sought {
                file.seek(SeekFrom::Start(range.start))?;
            }
            let most = (range.end - range.start).min(PIECE);
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
enum Asked {
    All,
    Part(Range<u64>),
    Nothing,
}

/// Parses `Range`. An unsupported range stands for the whole blob, as the HTTP specification
/// demands.
fn range(text: &str, length: u64) -> Asked {
    let Some((from, to)) = text.strip_prefix("bytes=").and_then(|text| text.split_once('-')) else {
        return Asked::All;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (number(from), number(to)) {
        (Some(from), Some(to)) if from <= to => from..to.saturating_add(1).min(length),
        (Some(from), None) if to.trim().is_empty() => from..length,
        (None, Some(last)) if from.trim().is_empty() => length.saturating_sub(last)..length,
        _ => return Asked::All,
    };
    if range.is_empty() { Asked::Nothing } else { Asked::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_http_defines_them() {
        for (text, want) in [
            ("bytes=0-3", Asked::Part(0..4)),
            ("bytes=4-", Asked::Part(4..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=8-99", Asked::Part(8..10)),
            ("bytes=10-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=3-1", Asked::All),
            ("bytes=0-1,3-4", Asked::All),
            ("lines=0-1", Asked::All),
            ("bytes=-", Asked::All),
        ] {
            assert_eq!(range(text, 10), want, "{text}");
        }
    }
}
