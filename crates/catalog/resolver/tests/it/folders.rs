//! Inputs whose catalogs are file-based catalogs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_catalog::{Catalog, LoadOptions, MemorySource};
use mainstay_resolver::fixture::CatalogData;
use mainstay_resolver::{
    CatalogContent, CatalogKey, CatalogView, OperatorGroup, ResolutionInput, Snapshot,
    Subscription, SuggestedFix, resolve, resolve_explaining,
};
use mainstay_version::Version;
use serde_json::{Value, json};
use std::sync::Arc;

/// A catalog with `tea.v1`, and `tea.v2` with one more property.
fn tea(property: &Value) -> Arc<Catalog> {
    let bundle = |name: &str, version: &str, more: &[&Value]| {
        let identity = json!({"packageName": "tea", "version": version});
        let mut properties = vec![json!({"type": "olm.package", "value": identity})];
        properties.extend(more.iter().map(|property| (*property).clone()));
        json!({
            "schema": "olm.bundle", "package": "tea", "name": name,
            "image": format!("example.com/{name}"), "properties": properties,
        })
    };
    let text = [
        json!({"schema": "olm.package", "name": "tea", "defaultChannel": "stable"}),
        json!({
            "schema": "olm.channel", "package": "tea", "name": "stable",
            "entries": [{"name": "tea.v1"}, {"name": "tea.v2", "replaces": "tea.v1"}],
        }),
        bundle("tea.v1", "1.0.0", &[]),
        bundle("tea.v2", "2.0.0", &[property]),
    ]
    .map(|document| document.to_string())
    .join("\n");
    let files: MemorySource = [("catalog.json", &*text)].into_iter().collect();
    Catalog::load_from(&files, &LoadOptions::default()).unwrap()
}

fn input<'a>(
    content: &'a Snapshot,
    kubernetes: Option<Version>,
    start: &str,
) -> ResolutionInput<'a> {
    let key = CatalogKey::new("cat", "ns");
    ResolutionInput {
        namespace: "ns".to_owned(),
        operator_groups: vec![OperatorGroup::default()],
        catalogs: vec![CatalogView {
            key: key.clone(),
            priority: 0,
            content: CatalogContent::Ready(content),
        }],
        subscriptions: vec![Subscription {
            name: "mine".to_owned(),
            package: "tea".to_owned(),
            catalog: key,
            starting_csv: start.to_owned(),
            ..Subscription::default()
        }],
        kube_version: kubernetes,
        ..ResolutionInput::default()
    }
}

#[test]
fn installs_of_one_part_have_the_same_part_number() {
    let catalog = tea(&json!({
        "type": "olm.package.required", "value": {"packageName": "tea", "versionRange": ">=1.0.0"},
    }));
    let content = Snapshot::of(&catalog);
    let outcome = resolve(&input(&content, None, ""));
    assert_eq!(outcome.installs.iter().map(|install| install.part).collect::<Vec<_>>(), [0]);
    assert_eq!(outcome.parts, [["mine"]]);
}

#[test]
fn resolve_explaining_explains_only_the_selected_failures() {
    let catalog = tea(&json!({"type": "own", "value": {}}));
    let content = Snapshot::of(&catalog);
    let input = input(&content, None, "tea.v3");
    let whole = resolve(&input);
    for wanted in [true, false] {
        let outcome = resolve_explaining(&input, |_| wanted);
        assert_eq!(outcome.failures[0].message, whole.failures[0].message);
        assert_eq!(outcome == whole, wanted);
        assert_eq!(outcome.failures[0].repairs.is_empty(), !wanted);
    }
}

#[test]
fn bundles_with_a_later_min_kube_version_are_not_chosen() {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "tea.v2"}, "spec": {"minKubeVersion": "1.40.0"},
    });
    let data = STANDARD.encode(csv.to_string());
    for property in [
        json!({"type": "olm.csv.metadata", "value": {"minKubeVersion": "1.40.0"}}),
        json!({"type": "olm.bundle.object", "value": {"data": data}}),
    ] {
        let catalog = tea(&property);
        // The plain data of the catalog give the same outcome.
        for content in [Snapshot::of(&catalog), CatalogData::of(&catalog).snapshot()] {
            for (version, wanted) in [
                (Some(Version::new(1, 35, 0)), "tea.v1"),
                (Some(Version::new(1, 40, 0)), "tea.v2"),
                (None, "tea.v2"),
            ] {
                let outcome = resolve(&input(&content, version, ""));
                assert_eq!(outcome.resolved[0].name, wanted, "{property}");
            }
            let outcome = resolve(&input(&content, Some(Version::new(1, 35, 0)), "tea.v2"));
            let failure = &outcome.failures[0];
            let text = failure.cause.render();
            let why = "needs Kubernetes 1.40.0 or later, and the cluster has 1.35.0";
            assert!(text.contains(why), "{text}");
            let upgrade = SuggestedFix::UpgradeKubernetes { version: Version::new(1, 40, 0) };
            assert!(failure.repairs.contains(&upgrade), "{text}");
        }
    }
}
