//! The resolution of a namespace with one Subscription, whose operator requires another one. Run it
//! with `cargo run -p mainstay-resolver --example resolve`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mainstay_resolver::{
    BundleFacts, BundleProperty, CatalogContent, CatalogKey, CatalogView, EntryFacts,
    OperatorGroup, ResolutionInput, Snapshot, SnapshotBuilder, Subscription, resolve,
};

/// The snapshot of a catalog, built by hand. `Snapshot::of` builds it from a file-based catalog.
fn catalog() -> Snapshot {
    let mut catalog = SnapshotBuilder::default();
    let mut add = |package, name, version, replaces, properties: &[BundleProperty<'_>]| {
        let facts = BundleFacts { version, properties, ..BundleFacts::default() };
        // None would mean that no catalog client can read the bundle.
        let Some(bundle) = catalog.bundle(package, &facts) else { return };
        let place = EntryFacts {
            name,
            channel: "stable",
            default_channel: true,
            replaces,
            ..EntryFacts::default()
        };
        catalog.entry(&bundle, &place);
    };
    let kettle = r#"{"group": "kitchen.example.com", "version": "v1", "kind": "Kettle"}"#;
    let needs = [BundleProperty { kind: "olm.gvk.required", json: kettle }];
    let gives = [BundleProperty { kind: "olm.gvk", json: kettle }];
    add("teapot", "teapot.v1.0.0", "1.0.0", None, &[]);
    add("teapot", "teapot.v1.1.0", "1.1.0", Some("teapot.v1.0.0"), &needs);
    add("kettle", "kettle.v2.0.0", "2.0.0", None, &gives);
    catalog.finish()
}

fn main() {
    let snapshot = catalog();
    let kitchen = CatalogKey::new("kitchen", "olm");
    let input = ResolutionInput {
        namespace: "tea".to_owned(),
        global_namespace: "olm".to_owned(),
        operator_groups: vec![OperatorGroup { name: "tea".to_owned(), ..OperatorGroup::default() }],
        catalogs: vec![CatalogView {
            key: kitchen.clone(),
            priority: 0,
            content: CatalogContent::Ready(&snapshot),
        }],
        subscriptions: vec![Subscription {
            name: "teapot".to_owned(),
            package: "teapot".to_owned(),
            channel: "stable".to_owned(),
            catalog: kitchen,
            ..Subscription::default()
        }],
        ..ResolutionInput::default()
    };

    let outcome = resolve(&input);
    for install in &outcome.installs {
        let chosen = &outcome.resolved[install.chosen];
        match install.subscriptions.as_slice() {
            [] => println!("install {} because something needs it", chosen.name),
            asking => println!("install {} for {}", chosen.name, asking.join(", ")),
        }
    }
    for new in &outcome.new_subscriptions {
        println!("make Subscription {} that starts with {}", new.name, new.starting_csv);
    }
}
