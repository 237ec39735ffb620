//! Reading a request's body, with a bound.

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use mainstay_object::{Reason, Status};
use std::fmt::Display;

/// Largest body taken, in bytes: what the original's store takes as one write, doubled.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Reads a whole body of at most [`BODY_LIMIT`] bytes. A body of one frame is not copied.
pub(crate) async fn gather<B>(body: B) -> Result<Bytes, Status>
where
    B: Body<Data: Buf, Error: Display>,
{
    let too_large = || {
        Status::new(
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        )
    };
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large());
    }
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("reading the body: {error}")))?;
        let Ok(mut data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.remaining() > BODY_LIMIT {
            return Err(too_large());
        }
        let data = data.copy_to_bytes(data.remaining());
        if all.is_empty() && first.is_empty() {
            first = data;
            continue;
        }
        if !first.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
