//! The custom resource definitions, embedded.

use flate2::read::DeflateDecoder;
use mainstay_object::Object;
use std::io::Read;

/// Deflated JSON: a list of manifests. Written by `cargo xtask crds`.
static PACKED: &[u8] = include_bytes!("crds.bin");

/// The eight custom resource definitions, in alphabetical order of their plurals.
///
/// Inflated and parsed by every call (they are needed once, when a server starts): about a
/// millisecond.
pub fn crds() -> Vec<Object> {
    let mut json = Vec::new();
    // A test holds that the embedded bytes are sound.
    if DeflateDecoder::new(PACKED).read_to_end(&mut json).is_err() {
        return Vec::new();
    }
    serde_json::from_slice(&json).unwrap_or_default()
}
