//! `FlowSchema` and `PriorityLevelConfiguration` objects that every cluster has, as Kubernetes 1.35
//! makes them.

use serde_json::{Map, Value};
use std::sync::LazyLock;

static DEFAULTS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    // The file is part of the program, and a test reads it.
    serde_json::from_str(include_str!("flow_defaults.json")).unwrap_or_default()
});

/// The specs by name, of `flowschemas` or `prioritylevelconfigurations`.
pub fn specs(plural: &str) -> impl Iterator<Item = (&'static String, &'static Value)> {
    DEFAULTS.get(plural).and_then(Value::as_object).into_iter().flatten()
}

/// The spec of one of these objects.
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
