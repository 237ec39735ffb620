//! Stories: what managers write, one after the other, and what comes of it.
//!
//! A story is a text, one line for each event:
//!
//! ```text
//! apply one: {text: a}              one applies a configuration, of which `spec` is told
//! force one: {text: a}              the same by force
//! apply one: {text: b} ! two .spec.text, two .spec.number      … and it conflicts
//! update one: {text: a}             one writes the object
//! same one: {text: a}               one applies and nothing changes
//! apply one@v2: {text: a}           … in another version than v1
//! = {text: a}                       what `spec` is now, in the last event's version
//! one: .spec.text .spec.number      what one owns now; names that are not told own nothing
//! ```

use super::kind::{Kind, renamed, yaml};
use mainstay_patch::apply::{
    Applied, ApplyError, Duplicates, Filter, Managers, PathElement, Set, Updater, validate,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The state of a story.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) kind: Kind,
    pub(crate) filters: BTreeMap<String, Filter>,
    pub(crate) object: Value,
    pub(crate) managers: Managers,
}

impl Story {
    pub(crate) fn of(kind: Kind) -> Self {
        Self {
            kind,
            filters: BTreeMap::new(),
            object: json!({"apiVersion": "v1"}),
            managers: Managers::new(),
        }
    }

    /// Tells a story and checks everything that it says.
    pub(crate) fn tell(&mut self, story: &str) -> &mut Self {
        let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (head, rest) = line.split_once([':', ' ']).unwrap();
            match head {
                "=" => {
                    assert_eq!(
                        self.object.get("spec").cloned().unwrap_or_default(),
                        yaml(rest),
                        "{story}"
                    );
                }
                "apply" | "force" | "update" | "same" => self.event(head, rest, story),
                manager => {
                    let paths = rest.split_whitespace().map(str::to_owned).collect();
                    owners.insert(manager.to_owned(), paths);
                }
            }
        }
        if !owners.is_empty() {
            let found: BTreeMap<String, Vec<String>> = (self.managers.iter())
                .map(|(name, owned)| (name.clone(), texts(&owned.set)))
                .collect();
            for paths in owners.values_mut() {
                paths.sort();
            }
            assert_eq!(found, owners, "{story}");
        }
        self
    }

    fn event(&mut self, act: &str, rest: &str, story: &str) {
        let (name, rest) = rest.split_once(':').unwrap();
        let (manager, version) = name.split_once('@').unwrap_or((name, "v1"));
        let (text, conflicts) = rest.split_once(" ! ").unwrap_or((rest, ""));
        let object = json!({"apiVersion": version, "spec": yaml(text)});
        let duplicates = if act == "update" { Duplicates::Allowed } else { Duplicates::Refused };
        validate(&object, self.kind.ty(), duplicates).unwrap();
        let mut live = self.object.clone();
        if live["apiVersion"] != version {
            live = renamed(&live, version);
        }
        let updater = Updater { versions: &self.kind, filters: &self.filters };
        if act == "update" {
            self.managers =
                updater.update(&live, &object, version, self.managers.clone(), manager).unwrap();
            self.object = object;
        } else {
            let managers = self.managers.clone();
            match updater.apply(&live, &object, version, managers, manager, act == "force") {
                Ok(Applied { object, managers }) => {
                    assert!(conflicts.is_empty(), "no conflict: {story}");
                    assert!(act != "same" || object.is_none(), "something changed: {story}");
                    self.managers = managers;
                    self.object = object.unwrap_or(live);
                }
                Err(ApplyError::Conflicts(found)) => {
                    let found: Vec<String> = found
                        .iter()
                        .map(|conflict| format!("{} {}", conflict.manager, conflict.path))
                        .collect();
                    assert_eq!(found.join(", "), conflicts, "{story}");
                }
                Err(error) => panic!("{error}: {story}"),
            }
        }
        // Types and versions are set aside before sets are stored.
        let version: Set = [&[PathElement::field("apiVersion")][..]].into_iter().collect();
        for owned in self.managers.values_mut() {
            owned.set = std::mem::take(&mut owned.set).difference(&version);
        }
        self.managers.retain(|_, owned| !owned.set.is_empty());
    }
}

pub(crate) fn texts(set: &Set) -> Vec<String> {
    let mut texts: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}
