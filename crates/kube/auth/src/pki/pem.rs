//! PEM blocks (RFC 7468), as Go's `encoding/pem` finds them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A PEM block.
#[derive(Debug)]
pub struct PemBlock {
    /// The label after `BEGIN`.
    pub label: String,
    /// Whether headers precede the content.
    pub has_headers: bool,
    /// The decoded content.
    pub bytes: Vec<u8>,
}

/// All blocks of a text; malformed ones are skipped.
pub fn blocks(text: &str) -> Vec<PemBlock> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("-----BEGIN ") {
        let at_line_start = rest[..start].is_empty() || rest[..start].ends_with('\n');
        rest = &rest[start + 11..];
        if !at_line_start {
            continue;
        }
        let Some((label, body)) = rest.split_once("-----") else { break };
        let end = format!("-----END {label}-----");
        let Some((body, after)) = body.split_once(&end) else { continue };
        let lines: Vec<&str> =
            body.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let (headers, lines): (Vec<&str>, Vec<&str>) =
            lines.into_iter().partition(|line| line.contains(':'));
        if let Ok(bytes) = STANDARD.decode(lines.concat()) {
            let has_headers = !headers.is_empty();
            found.push(PemBlock { label: label.to_owned(), has_headers, bytes });
        }
        rest = after;
    }
    found
}

/// The text of a block, in lines of 64 characters.
pub(crate) fn encode(label: &str, bytes: &[u8]) -> String {
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in STANDARD.encode(bytes).as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str("-----END ");
    out.push_str(label);
    out.push_str("-----\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_other_text_and_malformed_ones_are_skipped() {
        let encoded = encode("A B", &[1; 100]);
        let all = format!("x\n{encoded}y\n-----BEGIN C-----\nk: v\n\nAAAA\n-----END C-----\n");
        let found = blocks(&all);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (&*found[0].label, &found[0].bytes, found[0].has_headers),
            ("A B", &vec![1; 100], false)
        );
        assert_eq!((&*found[1].label, found[1].has_headers), ("C", true));
        for malformed in [
            "-----BEGIN A-----\n!\n-----END A-----\n",
            "-----BEGIN A-----\nAAAA\n-----END B-----\n",
            " -----BEGIN A-----\nAAAA\n-----END A-----\n",
            "-----BEGIN A",
        ] {
            assert!(blocks(malformed).is_empty(), "{malformed}");
        }
    }
}
