//! What-if resolution without a command line: a saved state and folders in, walks and typed errors out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use mainstay_cause::FileLocation;
use mainstay_whatif::{
    CatalogOverrides, CatalogSnapshots, ChangeError, ChangeTargetError, ChangeTargets,
    ClusterState, FolderCache, FolderOverride, NamespaceWhatIf, PathSummary, SavedStateError,
    SavedStateReader, WalkEnd, WhatIfChange, WhatIfError, WhatIfQuery, compare,
    namespaces_to_resolve,
};
use tempfile::TempDir;

/// A package with three versions in one channel.
const CATALOG: &str = "---
schema: olm.package
name: tea
defaultChannel: stable
---
schema: olm.channel
package: tea
name: stable
entries:
- name: tea.v1.0.0
- {name: tea.v1.1.0, replaces: tea.v1.0.0}
- {name: tea.v1.2.0, replaces: tea.v1.1.0}
---
schema: olm.bundle
package: tea
name: tea.v1.0.0
image: example.com/tea:v1.0.0
properties:
- {type: olm.package, value: {packageName: tea, version: 1.0.0}}
---
schema: olm.bundle
package: tea
name: tea.v1.1.0
image: example.com/tea:v1.1.0
properties:
- {type: olm.package, value: {packageName: tea, version: 1.1.0}}
---
schema: olm.bundle
package: tea
name: tea.v1.2.0
image: example.com/tea:v1.2.0
properties:
- {type: olm.package, value: {packageName: tea, version: 1.2.0}}
";

/// A namespace that has version 1.0.0 installed.
const STATE: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: shop, namespace: olm}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: all, namespace: operators}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: mine, namespace: operators}
spec: {name: tea, channel: stable, source: shop, sourceNamespace: olm}
status: {installedCSV: tea.v1.0.0, currentCSV: tea.v1.0.0}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: tea.v1.0.0, namespace: operators}
spec: {version: 1.0.0}
status: {phase: Succeeded}
";

fn state(text: &str) -> Result<ClusterState, SavedStateError> {
    let mut reader = SavedStateReader::default();
    reader.read(&FileLocation::file("state.yaml"), text)?;
    Ok(reader.finish())
}

/// Answers a question about the state and the catalog.
fn answers(changes: &[WhatIfChange]) -> Result<Vec<NamespaceWhatIf>, WhatIfError> {
    let place = TempDir::new().unwrap();
    std::fs::create_dir(place.path().join("shop")).unwrap();
    std::fs::write(place.path().join("shop/catalog.yaml"), CATALOG).unwrap();
    let state = state(STATE).unwrap();
    let folder = FolderOverride { name: "shop".parse().unwrap(), folder: "shop".to_owned() };
    let overrides = CatalogOverrides { folders: &[folder], ..CatalogOverrides::default() };
    let namespaces = namespaces_to_resolve(&state, changes, false);
    let cache = FolderCache::new(place.path());
    let catalogs =
        CatalogSnapshots::assemble(&cache, &state, "olm", &namespaces, &overrides).unwrap();
    let targets = ChangeTargets::of(changes, &state, &namespaces, false).unwrap();
    let question = WhatIfQuery {
        state: &state,
        global_namespace: "olm",
        namespaces: &namespaces,
        requests: &[],
        installed: &[],
        changes,
        targets: &targets,
        is_live: false,
        records_input: false,
    };
    question.run_what_if(&catalogs, &catalogs)
}

#[test]
fn a_walk_takes_every_hop_to_the_head_of_the_channel() {
    let answers = answers(&[]).unwrap();
    assert_eq!(answers.len(), 1);
    let walk = answers[0].final_walk();
    assert_eq!(walk.namespace, "operators");
    let path = &walk.operators[0];
    let bundles: Vec<&str> = path.hops.iter().map(|hop| &*hop.bundle).collect();
    assert_eq!(bundles, ["tea.v1.1.0", "tea.v1.2.0"]);
    assert!(matches!(path.end, WalkEnd::Head));
    assert_eq!(PathSummary(path).to_string(), "tea.v1.0.0 → … → tea.v1.2.0 (2 hops)");
}

#[test]
fn supposed_change_does_not_alter_the_walk_before_it() {
    let answers = answers(&[WhatIfChange::Prohibit("tea.v1.2.0".to_owned())]).unwrap();
    let comparison = compare(&answers[0].before, answers[0].after.as_ref().unwrap());
    assert_eq!(comparison.same, 0);
    let row = &comparison.differences[0];
    assert_eq!(row.before.as_deref(), Some("tea.v1.0.0 → … → tea.v1.2.0 (2 hops)"));
    assert_eq!(row.after.as_deref(), Some("tea.v1.0.0 → tea.v1.1.0, held there"));
}

#[test]
fn unknown_package_is_an_error_with_the_nearest_name() {
    let Err(error) = answers(&[WhatIfChange::Subscribe("teas".parse().unwrap())]) else {
        panic!("the package does not exist");
    };
    let WhatIfError::Suppose { change: 0, source: ChangeError::FindPackage(not_found) } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((&*not_found.name, &*not_found.nearest), ("teas", &["tea".to_owned()][..]));
}

#[test]
fn unknown_namespace_of_a_subscription_is_an_error() {
    let state = state(STATE).unwrap();
    let change =
        WhatIfChange::Unsubscribe { namespace: Some("other".to_owned()), name: "x".to_owned() };
    let namespaces = ["operators".to_owned()];
    let targets = ChangeTargets::of(&[change], &state, &namespaces, false);
    assert!(matches!(targets, Err(ChangeTargetError::FindNamespace { change: 0, .. })));
}

#[test]
fn field_of_another_type_is_refused_with_its_place() {
    let wrong = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: operators.coreos.com/v1alpha1\n  kind: Subscription\n  metadata: {name: mine, namespace: operators}\n  spec: {name: [7]}\n";
    let error = state(wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "items[0], Subscription operators/mine: `spec.name` is a list, not a text"
    );
    assert_eq!(error.place().to_string(), "state.yaml:1");
}
