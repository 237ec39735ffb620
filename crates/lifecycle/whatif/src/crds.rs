//! CRD changes on upgrade paths that upstream's CRD upgrade safety check refuses.
//!
//! ```text
//! hop ─► bundle before, bundle after ─► CRDs of the same name ─► mainstay-crdsafety ─► CrdChange
//! ```
//!
//! OLM classic does not run this check, so a change is a remark on a hop: no resolution depends on
//! it. Only manifests in a catalog are compared. Where they are in the image of a bundle alone,
//! nothing is known.

use crate::catalogs::{CatalogSnapshot, CatalogSnapshots, SnapshotContent, SnapshotSource};
use crate::walk::{NamespaceWalk, OperatorPath};
use mainstay_catalog::Bundle;
use mainstay_crdsafety::{Configuration, Crd, Finding, FindingSeverity, compare};
use mainstay_resolver::CatalogKey;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// A change of a CRD that upstream's CRD upgrade safety check refuses.
#[derive(Clone, Debug)]
pub struct CrdChange {
    /// The name of the CRD.
    pub crd: String,
    /// The change, with its impact.
    pub finding: Finding,
}

/// The CRDs of a bundle by name.
type CrdManifests = BTreeMap<String, Value>;

/// Comparisons of the CRDs of bundles. Each pair of bundles is compared once, however many
/// namespaces upgrade from one to the other.
#[derive(Default)]
pub(crate) struct CrdComparisons<'c> {
    /// By the addresses of the bundles, which live as long as this.
    compared: HashMap<(*const Bundle, *const Bundle), Arc<[CrdChange]>>,
    /// The CRDs of the bundle that was read last: on a path, it is the next one to be replaced.
    last_read: Option<(&'c Bundle, Rc<CrdManifests>)>,
}

impl<'c> CrdComparisons<'c> {
    /// Adds the CRD changes of each hop to a walk. `catalogs` are those that the walk used;
    /// `installed_from` are those that installed bundles come from.
    pub(crate) fn add_to(
        &mut self,
        walk: &mut NamespaceWalk,
        global_namespace: &str,
        installed_from: &'c CatalogSnapshots,
        catalogs: &'c CatalogSnapshots,
    ) {
        let namespaces = [&*walk.namespace, global_namespace];
        for path in &mut walk.operators {
            let mut before = path.installed.as_deref().and_then(|name| {
                find_bundle(installed_from, namespaces, path, name)
                    .or_else(|| find_bundle(catalogs, namespaces, path, name))
            });
            for at in 0..path.hops.len() {
                let after = find_bundle(catalogs, namespaces, path, &path.hops[at].bundle);
                if let (Some(before), Some(after)) = (before, after) {
                    path.hops[at].crd_changes = self.changes(before, after);
                }
                before = after;
            }
        }
    }

    fn changes(&mut self, before: &'c Bundle, after: &'c Bundle) -> Arc<[CrdChange]> {
        if before.object_count() == 0 || after.object_count() == 0 {
            return Arc::default();
        }
        let pair = (std::ptr::from_ref(before), std::ptr::from_ref(after));
        if let Some(known) = self.compared.get(&pair) {
            return Arc::clone(known);
        }
        let (before, after) = (self.manifests(before), self.manifests(after));
        let changes: Arc<[CrdChange]> = compare_manifests(&before, &after).into();
        self.compared.insert(pair, Arc::clone(&changes));
        changes
    }

    fn manifests(&mut self, bundle: &'c Bundle) -> Rc<CrdManifests> {
        if let Some((last, manifests)) = &self.last_read
            && std::ptr::eq(*last, bundle)
        {
            return Rc::clone(manifests);
        }
        // Manifests that cannot be read are reported by the installation.
        let objects = bundle.objects().unwrap_or_default().into_iter();
        let crds = objects.filter(|object| object.kind() == "CustomResourceDefinition");
        let crds = crds.map(|object| (object.name().to_owned(), object.into_value()));
        let manifests = Rc::new(crds.collect::<CrdManifests>());
        self.last_read = Some((bundle, Rc::clone(&manifests)));
        manifests
    }
}

/// The bundle of a path in the catalogs that its namespace sees: in that of the path, or in any.
fn find_bundle<'c>(
    catalogs: &'c CatalogSnapshots,
    namespaces: [&str; 2],
    path: &OperatorPath,
    name: &str,
) -> Option<&'c Bundle> {
    let find_in = |snapshot: &'c CatalogSnapshot| match &*snapshot.content {
        SnapshotContent::Ready(_, SnapshotSource::Catalog(catalog)) => {
            catalog.bundle(&path.package, name).map(|bundle| &**bundle)
        }
        _ => None,
    };
    let is_visible = |key: &CatalogKey| namespaces.contains(&&*key.namespace);
    let of_path = catalogs.catalogs.get(&path.catalog).and_then(find_in);
    of_path.or_else(|| {
        let visible = catalogs.catalogs.iter().filter(|(key, _)| is_visible(key));
        visible.map(|(_, snapshot)| snapshot).find_map(find_in)
    })
}

/// The changes that are refused: those with the highest impact first, then by CRD.
fn compare_manifests(before: &CrdManifests, after: &CrdManifests) -> Vec<CrdChange> {
    let mut changes = Vec::new();
    for (name, new) in after {
        let Some(old) = before.get(name).filter(|old| *old != new) else { continue };
        for finding in refused_changes(old, new) {
            changes.push(CrdChange { crd: name.clone(), finding });
        }
    }
    changes.sort_by_key(|change| Reverse(change.finding.impact));
    changes
}

/// The findings with which upstream refuses an upgrade. None for what it cannot compare: CRDs of
/// `v1beta1`, and versions without a schema.
fn refused_changes(old: &Value, new: &Value) -> Vec<Finding> {
    let (Ok(old), Ok(new)) = (Crd::from_value(old), Crd::from_value(new)) else {
        return Vec::new();
    };
    let mut findings =
        compare(&old, &new, &Configuration::operator_controller()).unwrap_or_default();
    findings.retain(|finding| finding.severity == FindingSeverity::Error);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_crdsafety::Impact;
    use serde_json::json;

    fn crd(name: &str, properties: &Value) -> (String, Value) {
        let schema = json!({"type": "object", "properties": properties});
        let value = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {"scope": "Namespaced", "versions": [
                {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}},
            ]},
        });
        (name.to_owned(), value)
    }

    #[test]
    fn breaking_changes_come_first_and_new_crds_are_not_compared() {
        let before = CrdManifests::from([
            crd("anvils", &json!({"size": {"type": "string", "maxLength": 5}})),
            crd("bellows", &json!({"size": {"type": "string"}})),
            crd("same", &json!({"size": {"type": "string"}})),
        ]);
        let after = CrdManifests::from([
            crd("anvils", &json!({"size": {"type": "string", "maxLength": 9}})),
            crd("bellows", &json!({"size": {"type": "integer"}})),
            crd("same", &json!({"size": {"type": "string"}})),
            crd("tongs", &json!({"size": {"type": "integer"}})),
        ]);
        let changes = compare_manifests(&before, &after);
        let found: Vec<(&str, Impact)> =
            changes.iter().map(|change| (&*change.crd, change.finding.impact)).collect();
        assert_eq!(found.first(), Some(&("bellows", Impact::Breaking)));
        assert!(found.iter().all(|(name, _)| *name != "same" && *name != "tongs"), "{found:?}");
        assert!(found.is_sorted_by_key(|(_, impact)| Reverse(*impact)), "{found:?}");
    }

    #[test]
    fn what_upstream_allows_or_cannot_compare_is_no_change() {
        let (_, old) = crd("anvils", &json!({"size": {"type": "string"}}));
        let with_description = json!({"size": {"type": "string", "description": "in inches"}});
        let (_, described) = crd("anvils", &with_description);
        assert!(refused_changes(&old, &described).is_empty());
        let (_, mut beta) = crd("anvils", &json!({"size": {"type": "integer"}}));
        beta["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
        assert!(refused_changes(&old, &beta).is_empty());
        let (_, mut without_schema) = crd("anvils", &json!({}));
        without_schema["spec"]["versions"][0]["schema"] = Value::Null;
        assert!(refused_changes(&old, &without_schema).is_empty());
    }
}
