//! The order of API versions: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then everything else.

use std::cmp::Ordering;

/// Compares two versions by preference: the greater is preferred. Releases are greater than betas,
/// betas than alphas, higher numbers than lower ones. Other names are less, in reverse alphabetical
/// order (`k8s.io/apimachinery/pkg/version`, `CompareKubeAwareVersionStrings`).
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

/// Stability, major number, minor number.
fn rank(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let number = |digits: &str| -> Option<u64> {
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let major = number(major)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    if let Some(minor) = rest.strip_prefix("beta") {
        return Some((1, major, number(minor)?));
    }
    Some((0, major, number(rest.strip_prefix("alpha")?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_in_discovery() {
        let mut names = vec![
            "foo10",
            "v1beta",
            "v01alpha1",
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v3beta1",
            "v12alpha1",
            "foo1",
            "v11alpha2",
            "v10beta3",
        ];
        names.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            names,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "v01alpha1",
                "foo1",
                "foo10",
                "v1beta"
            ]
        );
    }
}
