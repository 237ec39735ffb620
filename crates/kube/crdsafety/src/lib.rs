//! x
mod go;
mod godiff;

#[doc(hidden)]
pub fn probe(a: &serde_json::Value, b: &serde_json::Value) -> (String, String) {
    let (a, b) = (go::decode_schema(a).unwrap(), go::decode_schema(b).unwrap());
    (godiff::difference(&a, &b), go::dump_schema(&a))
}
