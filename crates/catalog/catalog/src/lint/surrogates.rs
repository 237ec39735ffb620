//! Unpaired surrogates in JSON escapes. The decoded value does not show them.

use memchr::memchr;

/// The offsets of escapes of unpaired surrogates.
pub(super) fn unpaired_surrogates(json: &[u8]) -> Vec<usize> {
    let code = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(more) = json.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += more;
        match (code(at), code(at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at += 12,
            (Some(0xd800..0xe000), _) => {
                found.push(at);
                at += 6;
            }
            _ => at += 2,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::unpaired_surrogates;

    #[test]
    fn unpaired_surrogates_are_found_and_pairs_are_not() {
        let table: [(&str, &[usize]); 5] = [
            (r#"{"a":"\ud83d\ude00 \\ud800 \u0041"}"#, &[]),
            (r#"{"a":"\ud83d"}"#, &[6]),
            (r#"{"a":"\ude00\ud83d\ude00"}"#, &[6]),
            (r#"{"a":"\ud83d\ud83d\ude00\uDC00"}"#, &[6, 24]),
            (r#"{"a":"\\\ud83dx"}"#, &[8]),
        ];
        for (json, expected) in table {
            assert_eq!(unpaired_surrogates(json.as_bytes()), expected, "{json}");
        }
    }
}
