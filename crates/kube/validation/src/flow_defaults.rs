//! Default `FlowSchemas` and `PriorityLevelConfigurations` of Kubernetes 1.35.

use serde_json::{Map, Value};
use std::sync::LazyLock;

static DEFAULTS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    // The file is embedded, and a test parses it.
    serde_json::from_str(include_str!("flow_defaults.json")).unwrap_or_default()
});

/// The default specs by name, of `flowschemas` or `prioritylevelconfigurations`.
pub fn specs(plural: &str) -> impl Iterator<Item = (&'static String, &'static Value)> {
    DEFAULTS.get(plural).and_then(Value::as_object).into_iter().flatten()
}

/// The default spec of one object.
pub fn spec(plural: &str, name: &str) -> Option<Value> {
    DEFAULTS.get(plural)?.get(name).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_flow_schema_names_a_default_priority_level() {
        let levels = "prioritylevelconfigurations";
        assert_eq!((specs("flowschemas").count(), specs(levels).count()), (11, 8));
        for (_, schema) in specs("flowschemas") {
            let level = schema["priorityLevelConfiguration"]["name"].as_str().unwrap();
            assert!(spec(levels, level).is_some(), "{level}");
        }
    }
}
