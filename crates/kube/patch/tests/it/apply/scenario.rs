//! Scenarios: writes of managers, and their expected results.
//!
//! A scenario is a text with one line for each step:
//!
//! ```text
//! apply one: {text: a}              one applies a configuration with this `spec`
//! force one: {text: a}              one applies with force
//! apply one: {text: b} ! two .spec.text, two .spec.number      … with these conflicts
//! update one: {text: a}             one updates the object
//! same one: {text: a}               one applies without a change
//! apply one@v2: {text: a}           … in another version than v1
//! = {text: a}                       the expected `spec`, in the version of the last write
//! one: .spec.text .spec.number      the expected fields of one; other managers own nothing
//! ```

use super::kind::{TestKind, convert, parse_yaml};
use mainstay_patch::apply::{
    ApplyError, ApplyResult, Duplicates, FieldFilter, FieldSet, Managers, PathElement, Updater,
    validate,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The state of a scenario.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) kind: TestKind,
    pub(crate) filters: BTreeMap<String, FieldFilter>,
    pub(crate) object: Value,
    pub(crate) managers: Managers,
}

impl Scenario {
    pub(crate) fn of(kind: TestKind) -> Self {
        Self {
            kind,
            filters: BTreeMap::new(),
            object: json!({"apiVersion": "v1"}),
            managers: Managers::new(),
        }
    }

    /// Runs a scenario and checks its expectations.
    pub(crate) fn run(&mut self, scenario: &str) -> &mut Self {
        let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in scenario.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (verb, rest) = line.split_once([':', ' ']).unwrap();
            match verb {
                "=" => {
                    assert_eq!(
                        self.object.get("spec").cloned().unwrap_or_default(),
                        parse_yaml(rest),
                        "{scenario}"
                    );
                }
                "apply" | "force" | "update" | "same" => self.write(verb, rest, scenario),
                manager => {
                    let paths = rest.split_whitespace().map(str::to_owned).collect();
                    owners.insert(manager.to_owned(), paths);
                }
            }
        }
        if !owners.is_empty() {
            let found: BTreeMap<String, Vec<String>> = (self.managers.iter())
                .map(|(name, owned)| (name.clone(), sorted_paths(&owned.set)))
                .collect();
            for paths in owners.values_mut() {
                paths.sort();
            }
            assert_eq!(found, owners, "{scenario}");
        }
        self
    }

    fn write(&mut self, verb: &str, rest: &str, scenario: &str) {
        let (name, rest) = rest.split_once(':').unwrap();
        let (manager, version) = name.split_once('@').unwrap_or((name, "v1"));
        let (text, conflicts) = rest.split_once(" ! ").unwrap_or((rest, ""));
        let object = json!({"apiVersion": version, "spec": parse_yaml(text)});
        let duplicates = if verb == "update" { Duplicates::Allowed } else { Duplicates::Rejected };
        validate(&object, self.kind.ty(), duplicates).unwrap();
        let mut live = self.object.clone();
        if live["apiVersion"] != version {
            live = convert(&live, version);
        }
        let updater = Updater { versions: &self.kind, filters: &self.filters };
        if verb == "update" {
            self.managers =
                updater.update(&live, &object, version, self.managers.clone(), manager).unwrap();
            self.object = object;
        } else {
            let managers = self.managers.clone();
            match updater.apply(&live, &object, version, managers, manager, verb == "force") {
                Ok(ApplyResult { object, managers }) => {
                    assert!(conflicts.is_empty(), "no conflict: {scenario}");
                    assert!(verb != "same" || object.is_none(), "object changed: {scenario}");
                    self.managers = managers;
                    self.object = object.unwrap_or(live);
                }
                Err(ApplyError::Conflicts(found)) => {
                    let found: Vec<String> = found
                        .iter()
                        .map(|conflict| format!("{} {}", conflict.manager, conflict.path))
                        .collect();
                    assert_eq!(found.join(", "), conflicts, "{scenario}");
                }
                Err(error) => panic!("{error}: {scenario}"),
            }
        }
        // As in managed fields, `apiVersion` is removed from the sets.
        let version: FieldSet = [&[PathElement::field("apiVersion")][..]].into_iter().collect();
        for owned in self.managers.values_mut() {
            owned.set = std::mem::take(&mut owned.set).difference(&version);
        }
        self.managers.retain(|_, owned| !owned.set.is_empty());
    }
}

pub(crate) fn sorted_paths(set: &FieldSet) -> Vec<String> {
    let mut paths: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    paths.sort();
    paths
}
