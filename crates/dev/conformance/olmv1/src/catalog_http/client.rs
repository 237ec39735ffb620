//! A client for requests byte for byte, also those that no HTTP library sends.

use super::recording::RecordedRequest;
use anyhow::{Context, bail, ensure};
use mainstay_tls::AnyCertificate;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// Sends a request on a connection of its own.
///
/// # Errors
/// The server does not answer with HTTP/1.1.
pub async fn send(
    address: SocketAddr,
    request: &RecordedRequest,
    last_modified: &str,
) -> anyhow::Result<Response> {
    let config = mainstay_tls::builder_with_verifier(AnyCertificate)?.with_no_client_auth();
    let stream = TcpStream::connect(address).await.context("connect")?;
    let name = ServerName::try_from("localhost").context("name the server")?;
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.context("begin TLS")?;
    let (method, path) = (&request.method, &request.path);
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: catalogd.test\r\n");
    for (name, value) in &request.headers {
        let value = value.replace("{last-modified}", last_modified);
        bytes.push_str(&format_header(name, &value));
    }
    let body =
        if request.body_bytes > 0 { "x".repeat(request.body_bytes) } else { request.body.clone() };
    if !body.is_empty() {
        bytes.push_str(&format_header("Content-Length", &body.len().to_string()));
    }
    bytes.push_str("Connection: close\r\n\r\n");
    bytes.push_str(&body);
    stream.write_all(bytes.as_bytes()).await.context("send the request")?;
    let mut answer = Vec::new();
    // A server that closes early closes without the end of TLS.
    if let Err(error) = stream.read_to_end(&mut answer).await
        && answer.is_empty()
    {
        return Err(error).context("read the response");
    }
    parse(&answer, method == "HEAD")
}

fn format_header(name: &str, value: &str) -> String {
    format!("{name}: {value}\r\n")
}

/// Splits a response into its parts.
fn parse(answer: &[u8], head_only: bool) -> anyhow::Result<Response> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("no head")?;
    let head = std::str::from_utf8(&answer[..end]).context("read the head")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let status = status.and_then(|line| line.get(..3)?.parse().ok()).context("read the status")?;
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').context("read a header")?;
            Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect::<anyhow::Result<_>>()?;
    let mut response = Response { status, headers, body: answer[end + 4..].to_vec() };
    if response.header("transfer-encoding") == Some("chunked") && !head_only {
        response.body = unchunk(&response.body)?;
    } else if let Some(length) = response.header("content-length")
        && !head_only
    {
        let length: usize = length.parse().context("read the length")?;
        ensure!(length == response.body.len(), "{length} bytes promised");
    }
    Ok(response)
}

/// Joins the chunks of a body.
fn unchunk(mut rest: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|bytes| bytes == b"\r\n").context("no chunk")?;
        let length = std::str::from_utf8(&rest[..end]).context("read the length of a chunk")?;
        let length = usize::from_str_radix(length, 16).context("read the length of a chunk")?;
        rest = &rest[end + 2..];
        if length == 0 {
            return Ok(body);
        }
        let Some((chunk, after)) = rest.split_at_checked(length) else { bail!("half a chunk") };
        body.extend_from_slice(chunk);
        rest = after.strip_prefix(b"\r\n").context("no end of a chunk")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_without_its_framing() {
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        let response = parse(chunked, false).unwrap();
        assert_eq!((response.status, &*response.body), (200, &b"abc0123456789"[..]));
        let short = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nab";
        assert!(parse(short, false).is_err());
        assert_eq!(
            parse(b"HTTP/1.1 404 X\r\nContent-Length: 3\r\n\r\n", true).unwrap().status,
            404
        );
        assert!(unchunk(b"5\r\nabc\r\n0\r\n\r\n").is_err());
    }
}
