//! Repeated keys of JSON objects, which the parsed value no longer shows. The text must be valid
//! JSON.

use memchr::memchr2;
use std::ops::Range;

/// The second occurrences of keys, with their quotes, in the order of the text. Keys are compared
/// as written, without decoding escapes.
pub fn repeated_keys(json: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // The keys of all open objects, and for each open collection the index of its first key.
    let mut keys: Vec<Range<usize>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    let mut last = 0..0;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => {
                last = at..end_of_string(json, at);
                at = last.end;
                continue;
            }
            b':' => keys.push(last.clone()),
            b'{' | b'[' => open.push(keys.len()),
            b'}' | b']' => {
                let mut object_keys = keys.split_off(open.pop().unwrap_or(0).min(keys.len()));
                object_keys
                    .sort_by(|a, b| (&json[a.clone()], a.start).cmp(&(&json[b.clone()], b.start)));
                let same = object_keys
                    .windows(2)
                    .filter(|pair| json[pair[0].clone()] == json[pair[1].clone()]);
                found.extend(same.map(|pair| pair[1].clone()));
            }
            _ => {}
        }
        at += 1;
    }
    found.sort_by_key(|key| key.start);
    found
}

/// The end of the string whose opening quote is at `start`.
fn end_of_string(json: &[u8], start: usize) -> usize {
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
    use super::repeated_keys;
    use proptest::prelude::*;

    #[test]
    fn only_keys_of_the_same_object_repeat() {
        for (json, expected) in [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#, &[][..]),
            (r#"{"a":1,"b":2,"a":3,"a":4}"#, &[13, 19]),
            (r#"{"x":{"a":"a","a":":"},"a":[],"a":{}}"#, &[14, 30]),
            (r#"{"\"a":1,"a":2,"\"a":3}"#, &[15]),
            (r#"["a","a"]"#, &[]),
        ] {
            let starts: Vec<usize> =
                repeated_keys(json.as_bytes()).iter().map(|key| key.start).collect();
            assert_eq!(starts, expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in r#"[{}\[\]",:a\\]{0,40}"#) {
            repeated_keys(text.as_bytes());
        }
    }
}
