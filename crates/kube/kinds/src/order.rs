//! The order of API versions.

use std::cmp::Ordering;

/// Compares two versions, the preferred one first: `v2`, `v1`, `v1beta2`, `v1alpha1`, then others
/// by name (`k8s.io/apimachinery/pkg/version`, `CompareKubeAwareVersionStrings`).
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Stability (3 for stable, 2 beta, 1 alpha), major, minor.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..end].parse().ok()?;
    let minor = |text: &str| text.parse().ok();
    match &rest[end..] {
        "" => Some((3, major, 0)),
        tail if tail.starts_with("beta") => Some((2, major, minor(&tail[4..])?)),
        tail if tail.starts_with("alpha") => Some((1, major, minor(&tail[5..])?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_stable_beta_alpha_then_by_name() {
        let mut all =
            ["foo1", "v1alpha1", "v10", "v1beta1", "v2", "v1beta2", "v1", "foo10", "v11alpha2"];
        all.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(
            all,
            ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo1", "foo10"]
        );
    }
}
