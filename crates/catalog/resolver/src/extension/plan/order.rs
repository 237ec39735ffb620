//! Order of a plan: dependencies first.

use super::choose::Pick;
use super::{ExtensionPlan, PlanInput, PlanStep, PresentDependency, RequiredDependency};
use std::collections::{BTreeMap, BTreeSet};

/// Puts the chosen bundles in order. Of a cycle, the extension that is reached first comes last.
pub(super) fn plan(
    input: &PlanInput<'_>,
    mut picks: BTreeMap<String, Pick>,
    edges: &BTreeMap<String, Vec<String>>,
    required: &BTreeMap<String, Vec<RequiredDependency>>,
    present: Vec<PresentDependency>,
) -> ExtensionPlan {
    let mut ordered: Vec<String> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let root = input.request.package.as_str();
    // Each entry: a package and the number of its dependencies that were visited.
    let mut path: Vec<(&str, usize)> = vec![(root, 0)];
    seen.insert(root);
    while let Some((package, at)) = path.last_mut() {
        let needed = edges.get(*package).and_then(|needed| needed.get(*at));
        *at += 1;
        match needed {
            Some(needed) if seen.insert(needed) => path.push((needed, 0)),
            Some(_) => {}
            None => {
                ordered.push((*package).to_owned());
                path.pop();
            }
        }
    }
    let place: BTreeMap<&str, usize> =
        ordered.iter().enumerate().map(|(at, package)| (package.as_str(), at)).collect();
    let step = |(at, package): (usize, &String)| {
        let needs_later = edges
            .get(package)
            .is_some_and(|needed| needed.iter().any(|other| place.get(&**other) > Some(&at)));
        let Pick { choice, version, catalog, .. } = picks.remove(package)?;
        let needed_by = required.get(package).cloned().unwrap_or_default();
        let package = package.clone();
        Some(PlanStep { package, choice, version, catalog, needed_by, needs_later })
    };
    let steps = ordered.iter().enumerate().filter_map(step).collect();
    ExtensionPlan { steps, present }
}
