//! Request bodies: reading with a limit of size and time.

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use mainstay_object::{Reason, Status};
use std::fmt::Display;
use std::pin::Pin;
use std::time::Duration;

/// The largest accepted body, in bytes: twice what etcd takes as one write.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// How many bytes of a body that is too large are read and discarded.
const DRAIN_LIMIT: usize = 64 * 1024 * 1024;

/// The timeout for reading a body, also for requests that have no timeout.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// Reads a whole body of at most [`BODY_LIMIT`] bytes. A body of one frame is not copied.
pub async fn read_body<B>(body: B) -> Result<Bytes, Status>
where
    B: Body<Data: Buf, Error: Display>,
{
    tokio::time::timeout(BODY_TIMEOUT, read_limited(body)).await.unwrap_or_else(|_| {
        let message = "Timeout: request did not complete within the allotted timeout";
        Err(Status::new(Reason::Timeout, message))
    })
}

async fn read_limited<B>(body: B) -> Result<Bytes, Status>
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

/// Discards the rest of a body: a client that is still writing would not read the response. A body
/// longer than [`DRAIN_LIMIT`] is not read to its end.
async fn drain<B>(mut body: Pin<&mut B>)
where
    B: Body<Data: Buf, Error: Display>,
{
    let mut discarded = 0;
    while let Some(frame) = body.frame().await.and_then(Result::ok) {
        discarded += frame.data_ref().map_or(0, Buf::remaining);
        if discarded > DRAIN_LIMIT {
            return;
        }
    }
}
