//! What a JSON text that is known to be one holds and a value does not show: keys that an object has
//! twice, and escapes that stand for half of a character.

use memchr::{memchr, memchr2};
use std::ops::Range;

/// Where keys stand for the second time (with their quotes), in the order of the text. Keys are
/// compared as they are written.
pub(super) fn repeated(json: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // The keys of all open objects, and where those of each collection begin.
    let mut keys: Vec<Range<usize>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    let mut last = 0..0;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => {
                last = at..end_of_text(json, at);
                at = last.end;
                continue;
            }
            b':' => keys.push(last.clone()),
            b'{' | b'[' => open.push(keys.len()),
            b'}' | b']' => {
                let mut own = keys.split_off(open.pop().unwrap_or(0).min(keys.len()));
                own.sort_by(|a, b| (&json[a.clone()], a.start).cmp(&(&json[b.clone()], b.start)));
                let same =
                    own.windows(2).filter(|pair| json[pair[0].clone()] == json[pair[1].clone()]);
                found.extend(same.map(|pair| pair[1].clone()));
            }
            _ => {}
        }
        at += 1;
    }
    found.sort_by_key(|key| key.start);
    found
}

/// Where escapes stand that are half of a pair whose other half is not there.
pub(super) fn halves(json: &[u8]) -> Vec<usize> {
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

/// The end of the text that begins with the quote at `start`.
fn end_of_text(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(more) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += more;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::{halves, repeated};
    use proptest::prelude::*;

    #[test]
    fn halves_of_characters_are_found_and_pairs_are_not() {
        let table: [(&str, &[usize]); 5] = [
            (r#"{"a":"\ud83d\ude00 \\ud800 \u0041"}"#, &[]),
            (r#"{"a":"\ud83d"}"#, &[6]),
            (r#"{"a":"\ude00\ud83d\ude00"}"#, &[6]),
            (r#"{"a":"\ud83d\ud83d\ude00\uDC00"}"#, &[6, 24]),
            (r#"{"a":"\\\ud83dx"}"#, &[8]),
        ];
        for (json, expected) in table {
            assert_eq!(halves(json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn keys_of_one_object_are_compared() {
        for (json, expected) in [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#, &[][..]),
            (r#"{"a":1,"b":2,"a":3,"a":4}"#, &[13, 19]),
            (r#"{"x":{"a":"a","a":":"},"a":[],"a":{}}"#, &[14, 30]),
            (r#"{"\"a":1,"a":2,"\"a":3}"#, &[15]),
            (r#"["a","a"]"#, &[]),
        ] {
            let starts: Vec<usize> = repeated(json.as_bytes()).iter().map(|it| it.start).collect();
            assert_eq!(starts, expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_gone_through(text in r#"[{}\[\]",:a\\]{0,40}"#) {
            repeated(text.as_bytes());
        }
    }
}
