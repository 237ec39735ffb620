//! `minKubeVersion` of a bundle: the minimum Kubernetes version in its ClusterServiceVersion.

use crate::case_fold;
use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_gocompat::decode_base64;
use memchr::memmem::Finder;
use serde_json::Value;
use std::sync::LazyLock;

const FIELD: &str = "minKubeVersion";

/// The base64 of the field's name at each alignment: base64 encodes three bytes as four characters,
/// and the name begins at one of three offsets in a group.
static ENCODED_FIELD: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| {
    [0, 1, 2].map(|from| {
        let whole = (FIELD.len() - from) / 3 * 3;
        Finder::new(STANDARD.encode(&FIELD[from..from + whole]).as_bytes()).into_owned()
    })
});

/// The `minKubeVersion` of a manifest, if it is a ClusterServiceVersion with one.
///
/// Manifests are nearly all of a catalog, so only those that may have the field are decoded.
pub(crate) fn find_in_object(value: Option<&Value>) -> Option<String> {
    let data = case_fold::get(value?, "data")?.as_str()?;
    if !may_contain_field(data) {
        return None;
    }
    let bytes = decode_base64(data).ok()?;
    let manifest: Value = match serde_json::from_slice(&bytes) {
        Ok(manifest) => manifest,
        Err(_) => mainstay_yaml::one(&bytes, &mainstay_yaml::Options::default()).ok()?,
    };
    let text = |value: &Value, field: &str| Some(value.get(field)?.as_str()?.to_owned());
    (text(&manifest, "kind")? == "ClusterServiceVersion")
        .then(|| text(manifest.get("spec")?, FIELD))
        .flatten()
}

/// Whether a base64 text may contain the field's name. Line breaks hide it, so they count as yes.
fn may_contain_field(base64: &str) -> bool {
    let text = base64.as_bytes();
    memchr::memchr2(b'\n', b'\r', text).is_some()
        || ENCODED_FIELD.iter().any(|finder| finder.find(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::{STANDARD, find_in_object, may_contain_field};
    use base64::Engine;
    use serde_json::json;

    #[test]
    fn field_name_is_found_in_base64_at_each_alignment() {
        for before in ["", "a", "ab", "abc"] {
            for after in ["", "x", "xy"] {
                let has = STANDARD.encode(format!("{before}minKubeVersion{after}"));
                let has_not = STANDARD.encode(format!("{before}minKubVersion{after}"));
                assert!(
                    may_contain_field(&has) && !may_contain_field(&has_not),
                    "{before} {after}"
                );
            }
        }
    }

    #[test]
    fn only_a_cluster_service_version_has_a_min_kube_version() {
        let csv = r#"{"kind": "ClusterServiceVersion", "spec": {"minKubeVersion": "1.30.0"}}"#;
        let yaml = "kind: ClusterServiceVersion\nspec:\n  minKubeVersion: 1.30.0\n";
        let lines =
            STANDARD.encode(csv).as_bytes().chunks(20).map(<[u8]>::to_vec).collect::<Vec<_>>();
        for (data, expected) in [
            (STANDARD.encode(csv), Some("1.30.0")),
            (STANDARD.encode(yaml), Some("1.30.0")),
            (String::from_utf8(lines.join(&b'\n')).unwrap(), Some("1.30.0")),
            (STANDARD.encode(csv.replace("ClusterServiceVersion", "Note")), None),
            (STANDARD.encode(csv.replace("1.30.0", "")), Some("")),
            (STANDARD.encode(csv.replace("\"1.30.0\"", "7")), None),
            (STANDARD.encode("minKubeVersion"), None),
        ] {
            assert_eq!(find_in_object(Some(&json!({"data": data}))).as_deref(), expected, "{data}");
        }
        assert_eq!(find_in_object(None), None);
    }
}
