//! What a JSON text that is known to be one holds and a value does not show: keys that an object has
//! twice.

use memchr::memchr2;
use std::ops::Range;

/// Where keys stand for the second time (with their quotes), in the order of the text. Keys are
/// compared as they are written.
pub fn repeated_keys(json: &[u8]) -> Vec<Range<usize>> {
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
    use super::repeated_keys;
    use proptest::prelude::*;

    #[test]
    fn keys_of_one_object_are_compared() {
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
        fn any_bytes_are_gone_through(text in r#"[{}\[\]",:a\\]{0,40}"#) {
            repeated_keys(text.as_bytes());
        }
    }
}
