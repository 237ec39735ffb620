//! Update route: several updates that lead into a requested range.

use super::bundle_match::{InstalledVersion, entries, pin};
use super::package_content::PackageContent;
use super::request::{ExtensionRequest, InstalledExtensionBundle};
use mainstay_version::VersionRelease;
use mainstay_version::{Version, VersionConstraint};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// How many entries the search examines at most, so that explanations stay fast.
const MAX_ENTRY_LOOKS: usize = 200_000;

/// A route from the installed bundle into the requested range.
pub(super) struct Route {
    /// The bundle of the first step.
    pub first: Arc<str>,
    /// The range for the version of each step.
    pub steps: Vec<String>,
}

/// The shortest route in one catalog along edges of the requested channels.
pub(super) fn route(
    content: &PackageContent,
    request: &ExtensionRequest,
    installed: &InstalledExtensionBundle,
) -> Option<Route> {
    let installed_version = InstalledVersion::parse(installed).ok()?;
    let range = VersionConstraint::parse(&request.version).ok()?;
    let edges: Vec<_> = entries(content, request).collect();
    let versions: HashMap<&str, VersionRelease> = content
        .bundles()
        .filter_map(|bundle| {
            Some((&*bundle.name, VersionRelease::parse_legacy(&bundle.version).ok()?))
        })
        .collect();
    let mut seen: HashSet<&str> = HashSet::from([&*installed_version.name]);
    let mut queue: VecDeque<(Arc<str>, Version, Vec<Arc<str>>)> = VecDeque::from([(
        installed_version.name.as_str().into(),
        installed_version.version,
        Vec::new(),
    )]);
    for _ in 0..MAX_ENTRY_LOOKS / edges.len().max(1) {
        let (name, version, way) = queue.pop_front()?;
        if !way.is_empty() && range.contains(versions.get(&*name)?.version()) {
            let steps = way.iter().filter_map(|name| versions.get(&**name)).map(pin);
            return Some(Route { first: way.first()?.clone(), steps: steps.collect() });
        }
        let mut next: Vec<&Arc<str>> = edges
            .iter()
            .filter(|edge| edge.covers(&name, Some(&version)).is_some())
            .map(|edge| &edge.name)
            .filter(|name| versions.contains_key(&***name) && !seen.contains(&***name))
            .collect();
        // The highest version first, as each update prefers it.
        next.sort_by(|a, b| versions[&***b].cmp(&versions[&***a]).then(b.cmp(a)));
        for target in next {
            if seen.insert(target) {
                let mut longer = way.clone();
                longer.push(target.clone());
                queue.push_back((target.clone(), versions[&**target].version().clone(), longer));
            }
        }
    }
    None
}
