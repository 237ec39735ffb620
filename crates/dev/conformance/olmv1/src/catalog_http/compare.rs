//! Comparison of a response with the recorded answer.

use super::client::Response;
use super::recording::RecordedAnswer;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read as _};

/// The headers that recorded answers have. Others are not compared: ours has `ETag` and `Allow`, too.
pub const HEADERS: [&str; 10] = [
    "Accept-Ranges",
    "Content-Encoding",
    "Content-Length",
    "Content-Range",
    "Content-Type",
    "Last-Modified",
    "Location",
    "Transfer-Encoding",
    "Vary",
    "X-Content-Type-Options",
];

/// Headers about the length of the body, which depends on the compressor for a compressed one.
const FRAMING: [&str; 2] = ["Content-Length", "Transfer-Encoding"];

/// The differences; empty if there are none.
pub fn compare(recorded: &RecordedAnswer, ours: &Response, last_modified: &str) -> Vec<String> {
    let mut differences = Vec::new();
    if recorded.status != ours.status {
        differences.push(format!("status: recorded {}, ours {}", recorded.status, ours.status));
    }
    for unknown in recorded.headers.keys().filter(|name| !HEADERS.contains(&name.as_str())) {
        differences.push(format!("header {unknown}: recorded, and not compared"));
    }
    let boundary = ours
        .header("Content-Type")
        .and_then(|kind| kind.strip_prefix("multipart/byteranges; boundary="))
        .unwrap_or("{boundary}");
    let is_compressed = recorded.headers.contains_key("Content-Encoding");
    for name in HEADERS {
        if is_compressed && FRAMING.contains(&name) {
            continue;
        }
        let theirs = recorded.headers.get(name).map(|value| value.replace("{time}", last_modified));
        let ours = ours.header(name).map(|value| value.replace(boundary, "{boundary}"));
        if theirs != ours {
            differences.push(format!("header {name}: recorded {theirs:?}, ours {ours:?}"));
        }
    }
    match decompress(ours) {
        Err(error) => differences.push(format!("body: {error}")),
        Ok(body) => {
            let text = String::from_utf8_lossy(&body).replace(boundary, "{boundary}");
            differences.extend(compare_body(recorded, &text));
        }
    }
    differences
}

fn compare_body(recorded: &RecordedAnswer, ours: &str) -> Vec<String> {
    let mut differences = Vec::new();
    if let Some(body) = &recorded.body
        && body != ours
    {
        differences.push(format!("body: recorded {body:?}, ours {ours:?}"));
    }
    let lines = ours.matches('\n').count();
    for (what, recorded, ours) in
        [("bytes", recorded.bytes, ours.len()), ("lines", recorded.lines, lines)]
    {
        if recorded.is_some_and(|recorded| recorded != ours) {
            differences.push(format!("{what} of the body: recorded {recorded:?}, ours {ours}"));
        }
    }
    if recorded.sha256.as_ref().is_some_and(|recorded| *recorded != sha256(ours.as_bytes())) {
        differences.push("digest of the body".to_owned());
    }
    differences
}

/// The body without its coding.
fn decompress(response: &Response) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    match response.header("Content-Encoding") {
        Some("gzip") => {
            GzDecoder::new(&*response.body).read_to_end(&mut plain)?;
        }
        Some("zstd") => {
            let mut rest = &*response.body;
            while !rest.is_empty() {
                let frame = ruzstd::decoding::StreamingDecoder::new(&mut rest);
                frame.map_err(io::Error::other)?.read_to_end(&mut plain)?;
            }
        }
        _ => plain.clone_from(&response.body),
    }
    Ok(plain)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_answer_counts() {
        let recorded =
            |json: serde_json::Value| -> RecordedAnswer { serde_json::from_value(json).unwrap() };
        let ours = Response {
            status: 200,
            headers: vec![("vary".to_owned(), "x".to_owned()), ("etag".to_owned(), "y".to_owned())],
            body: b"a\nb\n".to_vec(),
        };
        let count = |json| compare(&recorded(json), &ours, "now").len();
        let digest = sha256(b"a\nb\n");
        for (json, differences) in [
            (serde_json::json!({"status": 200, "headers": {"Vary": "x"}, "body": "a\nb\n"}), 0),
            (
                serde_json::json!({"status": 200, "headers": {"Vary": "x"}, "bytes": 4, "lines": 2, "sha256": digest}),
                0,
            ),
            (serde_json::json!({"status": 404, "headers": {"Vary": "x"}, "body": "a\nb\n"}), 1),
            (serde_json::json!({"status": 200, "headers": {}, "body": "a\nb\n"}), 1),
            (
                serde_json::json!({"status": 200, "headers": {"Vary": "x", "Location": "/"}, "body": "a\nb\n"}),
                1,
            ),
            (
                serde_json::json!({"status": 200, "headers": {"Vary": "x", "Other": "/"}, "body": "a\nb\n"}),
                1,
            ),
            (
                serde_json::json!({"status": 200, "headers": {"Vary": "x"}, "bytes": 5, "lines": 3, "sha256": ""}),
                3,
            ),
        ] {
            assert_eq!(count(json.clone()), differences, "{json}");
        }
    }
}
