//! Request smuggling: requests whose end two parsers might see at different places. Every ambiguous
//! request is rejected, and the connection closed, so that no hidden request is handled.

use super::shows_canary;
use crate::report::Report;
use crate::server::{ATTACKER_NAMESPACE, Server, VICTIM_NAMESPACE};
use crate::wire::Identity;
use std::time::Duration;

/// The request that is hidden in the body; a response to it would be a breach.
fn hidden() -> String {
    format!("GET /api/v1/namespaces/{VICTIM_NAMESPACE}/secrets/canary HTTP/1.1\r\nhost: x\r\n\r\n")
}

pub(super) async fn run(
    server: &Server,
    attacker: &Identity,
    report: &mut Report,
) -> anyhow::Result<()> {
    let row = report.row("access", "smuggled requests", 30);
    let path = format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}/configmaps");
    for (what, headers, body) in ambiguous() {
        for identity in [attacker, &server.admin()] {
            let mut connection = server.connect(identity).await?;
            let head = connection.head("POST", &path, &[("content-type", "application/json")]);
            connection.send(format!("{head}{headers}\r\n{body}").as_bytes()).await?;
            let (closed, said) = connection.closes(Duration::from_secs(5)).await;
            let text = String::from_utf8_lossy(&said);
            let answers = text.matches("HTTP/1.1 ").count();
            let refused = text.is_empty() || text.starts_with("HTTP/1.1 4");
            row.check(closed && refused && answers <= 1 && !shows_canary(&said), || {
                format!(
                    "{what}: closed {closed}, {answers} answers: {}",
                    text.chars().take(200).collect::<String>()
                )
            });
        }
    }
    row.done();
    Ok(())
}

/// Ambiguous requests: description, headers and body.
fn ambiguous() -> Vec<(&'static str, String, String)> {
    let hidden = hidden();
    let chunked = format!("0\r\n\r\n{hidden}");
    let length = hidden.len();
    let both = |name: &str, value: &str| format!("content-length: {length}\r\n{name}: {value}\r\n");
    vec![
        (
            "two lengths",
            format!("content-length: 2\r\ncontent-length: {length}\r\n"),
            format!("{{}}{hidden}"),
        ),
        ("two lengths in one", format!("content-length: 2, {length}\r\n"), format!("{{}}{hidden}")),
        ("a length with a sign", "content-length: +2\r\n".to_owned(), format!("{{}}{hidden}")),
        ("a negative length", "content-length: -2\r\n".to_owned(), hidden.clone()),
        ("a length in hex", "content-length: 0x2\r\n".to_owned(), format!("{{}}{hidden}")),
        (
            "an endless length",
            "content-length: 99999999999999999999999\r\n".to_owned(),
            hidden.clone(),
        ),
        (
            "chunked in a list",
            "transfer-encoding: chunked, identity\r\n".to_owned(),
            chunked.clone(),
        ),
        ("chunked that is none", "transfer-encoding: xchunked\r\n".to_owned(), chunked.clone()),
        ("a length and chunks", both("transfer-encoding", "chunked"), chunked.clone()),
        ("a length and identity", both("transfer-encoding", "identity"), hidden.clone()),
        ("a space before the colon", "content-length : 2\r\n".to_owned(), format!("{{}}{hidden}")),
        ("a folded header", "content-length:\r\n 2\r\n".to_owned(), format!("{{}}{hidden}")),
        ("a header without a colon", "content-length 2\r\n".to_owned(), hidden.clone()),
        (
            "a null byte in a header",
            "x-odd: a\0b\r\ncontent-length: 2\r\n".to_owned(),
            format!("{{}}{hidden}"),
        ),
        (
            "an odd chunk size",
            "transfer-encoding: chunked\r\n".to_owned(),
            format!("0x2\r\n{{}}\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "a chunk size beyond all",
            "transfer-encoding: chunked\r\n".to_owned(),
            format!("ffffffffffffffffff\r\n{hidden}"),
        ),
        (
            "a negative chunk",
            "transfer-encoding: chunked\r\n".to_owned(),
            format!("-1\r\n{hidden}"),
        ),
    ]
}
