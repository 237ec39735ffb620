//! A minimal gRPC client: messages of strings out, fields of messages in. Responses are decoded no
//! further than necessary, so that the figures are the server's.

use anyhow::{Context, Result, bail, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// The flow-control window of the client, in bytes.
const WINDOW: u32 = 4 << 20;

/// A connection without TLS.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    base: String,
}

impl Connection {
    /// Connects to a port of this machine.
    pub(super) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(TokioIo::new(stream))
            .await
            .context("beginning HTTP/2")?;
        // Ends with the server or with the last call.
        tokio::spawn(async move { connection.await.ok() });
        Ok(Self { sender, base: format!("http://127.0.0.1:{port}") })
    }

    /// Calls an RPC with these strings as fields 1, 2, …; returns all messages of the response.
    ///
    /// # Errors
    /// The server returns an error.
    pub(super) async fn call(&mut self, rpc: &str, texts: &[&str]) -> Result<Vec<Bytes>> {
        let message = texts.iter().zip(1_u64..).fold(BytesMut::new(), |mut out, (text, field)| {
            varint(&mut out, field << 3 | 2);
            varint(&mut out, text.len() as u64);
            out.put_slice(text.as_bytes());
            out
        });
        let mut body = BytesMut::new();
        body.put_u8(0);
        body.put_u32(u32::try_from(message.len())?);
        body.put_slice(&message);
        let request = http::Request::post(format!("{}/{rpc}", self.base))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(body.freeze()))?;
        self.sender.ready().await.context("waiting for the connection")?;
        let answer = self.sender.send_request(request).await.context("calling")?;
        let refused = status(answer.headers());
        let collected = answer.into_body().collect().await.context("reading an answer")?;
        let refused = refused.or_else(|| collected.trailers().and_then(status));
        ensure!(refused.as_deref() == Some("0"), "{rpc} ended with status {refused:?}");
        let mut bytes = collected.to_bytes();
        let mut messages = Vec::new();
        while !bytes.is_empty() {
            ensure!(bytes.len() >= 5 && bytes[0] == 0, "{rpc}: a message without its length");
            let head = bytes.split_to(5);
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            ensure!(length <= bytes.len(), "{rpc}: half a message");
            messages.push(bytes.split_to(length));
        }
        Ok(messages)
    }
}

fn status(headers: &http::HeaderMap) -> Option<String> {
    Some(headers.get("grpc-status")?.to_str().ok()?.to_owned())
}

fn varint(out: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.put_u8(number.to_le_bytes()[0]);
}

/// The fields of a message: number, and bytes or integer.
pub(super) fn fields(message: &[u8]) -> Result<Vec<(u64, Field<'_>)>> {
    let mut rest = message;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let key = number(&mut rest)?;
        let field = match key & 7 {
            0 => Field::Number(number(&mut rest)?),
            2 => {
                let length = usize::try_from(number(&mut rest)?)?;
                let (bytes, after) = rest.split_at_checked(length).context("half a field")?;
                rest = after;
                Field::Bytes(bytes)
            }
            other => bail!("a field of the wire type {other}"),
        };
        found.push((key >> 3, field));
    }
    Ok(found)
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

/// The string in a field; empty if the field is missing.
pub(super) fn text(message: &[u8], wanted: u64) -> Result<String> {
    for (field, value) in fields(message)? {
        if let (true, Field::Bytes(bytes)) = (field == wanted, value) {
            return Ok(String::from_utf8(bytes.to_vec())?);
        }
    }
    Ok(String::new())
}

fn number(rest: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first().context("half a number")?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    bail!("a number that does not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_fields_are_found_by_number() {
        // 1: "ab", 2: 300, 1: "" and a truncated one.
        let message = [0x0a, 2, b'a', b'b', 0x10, 0xac, 0x02, 0x0a, 0];
        let expected = [
            (1, Field::Bytes(b"ab".as_slice())),
            (2, Field::Number(300)),
            (1, Field::Bytes(b"".as_slice())),
        ];
        assert_eq!(fields(&message).unwrap(), expected);
        assert_eq!(text(&message, 1).unwrap(), "ab");
        assert_eq!(text(&message, 9).unwrap(), "");
        assert!(fields(&message[..3]).is_err());
        let mut out = BytesMut::new();
        varint(&mut out, 300);
        assert_eq!(&out[..], [0xac, 0x02]);
    }
}
