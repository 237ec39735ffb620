//! The descriptions of the columns of built-in kinds.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Descriptions by kind and column, from `columns.txt`.
static TEXTS: LazyLock<HashMap<&'static str, Cow<'static, str>>> = LazyLock::new(|| {
    let mut found = HashMap::new();
    let mut text = Cow::Borrowed("");
    for line in include_str!("columns.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('=') {
            Some(line) if line.contains('\\') => {
                text = Cow::Owned(line.replace("\\n", "\n").replace("\\\\", "\\"));
            }
            Some(line) => text = Cow::Borrowed(line),
            None => found.extend(line.split(' ').map(|key| (key, text.clone()))),
        }
    }
    found
});

/// The description of a column; empty if there is none.
pub(super) fn description(kind: &str, column: &str) -> &'static str {
    let key = format!("{kind}/{}", column.replace(' ', "_"));
    TEXTS.get(key.as_str()).map_or("", |text| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_a_kind_has_its_own_text() {
        assert_eq!(
            description("Pod", "Ready"),
            "The aggregate readiness state of this pod for accepting traffic."
        );
        assert_eq!(description("Pod", "Name"), description("Secret", "Name"));
        assert!(description("Service", "Cluster-IP").contains("clusterIP"));
        assert_eq!(description("Pod", "Nothing"), "");
    }
}
