//! Reading a request's body, with a bound.

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use mainstay_object::{Reason, Status};
use std::fmt::Display;
use std::pin::Pin;
use std::time::Duration;

/// Largest body taken, in bytes: what the original's store takes as one write, doubled.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// How much of a body that is too large is read and thrown away.
const DRAIN_LIMIT: usize = 64 * 1024 * 1024;

/// How long a body may take, also of a request that may take for ever.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads a whole body of at most [`BODY_LIMIT`] bytes. A body of one frame is not copied.
pub async fn gather<B>(body: B) -> Result<Bytes, Status>
where
    B: Body<Data: Buf, Error: Display>,
{
    tokio::time::timeout(PATIENCE, read(body)).await.unwrap_or_else(|_| {
        let why = "Timeout: request did not complete within the allotted timeout";
        Err(Status::new(Reason::Timeout, why))
    })
}

async fn read<B>(body: B) -> Result<Bytes, Status>
where
    B: Body<Data: Buf, Error: Display>,
{
    let too_large = || {
        Status::new(
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        )
    };
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut fits = body.size_hint().lower() <= BODY_LIMIT as u64;
    while fits && let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("reading the body: {error}")))?;
        let Ok(mut data) = frame.into_data() else { continue };
        fits = first.len() + all.len() + data.remaining() <= BODY_LIMIT;
        if !fits {
            break;
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
    if !fits {
        drain(body).await;
        return Err(too_large());
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Reads on, keeping nothing: a client that is still writing would not read the answer. What is
/// longer than [`DRAIN_LIMIT`] is cut off.
async fn drain<B>(mut body: Pin<&mut B>)
where
    B: Body<Data: Buf, Error: Display>,
{
    let mut passed = 0;
    while let Some(frame) = body.frame().await.and_then(Result::ok) {
        passed += frame.data_ref().map_or(0, Buf::remaining);
        if passed > DRAIN_LIMIT {
            return;
        }
    }
}
