//! Folders of recorded cases: their JSON files, and the files of their images.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The entries of a folder, sorted.
///
/// # Panics
///
/// The folder cannot be read.
#[expect(clippy::panic, reason = "damaged test data fails the test")]
pub fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
    });
    let mut paths = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    paths.sort();
    paths
}

/// The content of a JSON file.
///
/// # Panics
///
/// The file cannot be read.
#[expect(clippy::panic, reason = "damaged test data fails the test")]
pub fn read_json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of an image in a recorded `images.yaml`: texts with placeholders of random bytes, or `base64`.
///
/// # Panics
///
/// A file is not base64.
#[expect(clippy::panic, reason = "damaged test data fails the test")]
pub fn image_files(image: &Value) -> Vec<(String, Vec<u8>)> {
    let content = |path: &str, file: &Value| match file {
        Value::String(text) => fill_random(text).into_bytes(),
        file => STANDARD
            .decode(file["base64"].as_str().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{path}: {error}")),
    };
    let files = image["files"].as_object().into_iter().flatten();
    files.map(|(path, file)| (path.clone(), content(path, file))).collect()
}

/// Replaces `{{random:SEED:BYTES}}` by the bytes that the recordings generate from the seed, in base64. Other
/// texts stay as they are.
pub fn fill_random(text: &str) -> String {
    const START: &str = "{{random:";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(START) {
        out.push_str(before);
        let found = after.split_once("}}").and_then(|(placeholder, after)| {
            let (seed, bytes) = placeholder.rsplit_once(':')?;
            Some((seed, bytes.parse().ok()?, after))
        });
        if let Some((seed, bytes, after)) = found {
            out.push_str(&STANDARD.encode(random(seed, bytes)));
            rest = after;
        } else {
            out.push_str(START);
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

fn random(seed: &str, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(32))
        .flat_map(|block| Sha256::digest(format!("{seed}:{block}")))
        .take(bytes)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn random_bytes_follow_from_the_seed() {
        let text = fill_random("a: {{random:s:40}}, {{random:none}}, {{time}}");
        let (random, rest) = text.strip_prefix("a: ").unwrap().split_once(", ").unwrap();
        let bytes = STANDARD.decode(random).unwrap();
        assert_eq!(bytes.len(), 40);
        assert_eq!(bytes[..32], Sha256::digest("s:0")[..]);
        assert_eq!(bytes[32..], Sha256::digest("s:1")[..8]);
        assert_eq!(rest, "{{random:none}}, {{time}}");
    }

    #[test]
    fn image_files_are_texts_or_base64() {
        let image = json!({"files": {"a": "text", "b": {"base64": "AAE="}}});
        let expected = [("a".to_owned(), b"text".to_vec()), ("b".to_owned(), vec![0, 1])];
        assert_eq!(image_files(&image), expected);
        assert_eq!(image_files(&Value::Null), []);
    }
}
