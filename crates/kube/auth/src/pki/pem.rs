//! Blocks of PEM texts (RFC 7468), found as Go's `encoding/pem` finds them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// One block.
#[derive(Debug)]
pub struct Block {
    /// What it is called.
    pub label: String,
    /// Whether it has headers before its bytes.
    pub has_headers: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// All blocks of a text; what is broken is passed over.
pub fn blocks(text: &str) -> Vec<Block> {
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
            found.push(Block { label: label.to_owned(), has_headers, bytes });
        }
        rest = after;
    }
    found
}

/// One block as a text, in lines of 64 letters.
pub(crate) fn text(label: &str, bytes: &[u8]) -> String {
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
    fn blocks_are_found_between_other_text() {
        let written = text("A B", &[1; 100]);
        let all = format!("x\n{written}y\n-----BEGIN C-----\nk: v\n\nAAAA\n-----END C-----\n");
        let found = blocks(&all);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (&*found[0].label, &found[0].bytes, found[0].has_headers),
            ("A B", &vec![1; 100], false)
        );
        assert_eq!((&*found[1].label, found[1].has_headers), ("C", true));
        for broken in [
            "-----BEGIN A-----\n!\n-----END A-----\n",
            "-----BEGIN A-----\nAAAA\n-----END B-----\n",
            " -----BEGIN A-----\nAAAA\n-----END A-----\n",
            "-----BEGIN A",
        ] {
            assert!(blocks(broken).is_empty(), "{broken}");
        }
    }
}
