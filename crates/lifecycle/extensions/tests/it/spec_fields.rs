//! Fields of ClusterExtensions: what the spec selects, and what the status says.

use crate::bundles::TestBundle;
use crate::extensions::{NAMESPACE, catalog};
use crate::olm_cluster::{OlmCluster, condition, message};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_client::{ObjectList, Patch};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const CONFIG: &mainstay_object::Resource = &builtin::CONFIG_MAP;
const CONDITIONS: [&str; 7] = [
    "Deprecated",
    "PackageDeprecated",
    "ChannelDeprecated",
    "BundleDeprecated",
    "Installed",
    "Progressing",
    "Ready",
];

/// A cluster with running controllers and a catalog of the package `a` with these versions.
async fn with_versions(versions: &[&str]) -> OlmCluster {
    let mut olm = OlmCluster::for_extensions().await;
    for version in versions {
        TestBundle::new("a", version).with_configs(&["kept"]).store(&olm);
    }
    olm.start_controllers().await;
    publish(&olm, "cat", &catalog(&[("a", versions)]), json!({})).await;
    olm
}

/// Serves a catalog of this content.
async fn publish(olm: &OlmCluster, name: &str, content: &str, more: Value) {
    let image = format!("r.example/{name}:v1");
    olm.put_image(&image, Some(content));
    olm.apply_catalog(name, json!({"ref": image}), more).await;
    olm.wait_until_serving(name, &image).await;
}

/// Merges fields into the catalog filter of an extension.
async fn select(olm: &OlmCluster, name: &str, filter: Value) -> Object {
    let patch = Patch::Merge(json!({"spec": {"source": {"catalog": filter}}}));
    olm.cluster.cluster().patch(&CLUSTER_EXTENSION, None, name, &patch).await.unwrap()
}

/// The observed generations of all conditions.
fn observed(extension: &Object) -> Vec<i64> {
    CONDITIONS.iter().filter_map(|kind| condition(extension, kind).2).collect()
}

/// The time at which the status of a condition changed last.
fn changed_at(extension: &Object, kind: &str) -> String {
    let conditions = extension.array(&["status", "conditions"]);
    let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    found["lastTransitionTime"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn objects_carry_the_name_of_the_extension_and_stand_in_its_namespace() {
    let mut olm = OlmCluster::for_extensions().await;
    let size = json!({"size": {"type": "integer"}});
    TestBundle::new("a", "1.0.0").with_configs(&["kept"]).with_crd("Anvil", &size).store(&olm);
    olm.start_controllers().await;
    publish(&olm, "cat", &catalog(&[("a", &["1.0.0"])]), json!({})).await;
    let created = olm.apply_extension("ext", "a", "").await;
    // shows CE-11 INS-06
    assert_eq!(
        created.str(&["spec", "source", "catalog", "upgradeConstraintPolicy"]),
        Some("CatalogProvided")
    );
    // shows OLMV1-96
    let installed = olm.wait_until_installed("ext", "1.0.0").await;
    // shows CE-03
    assert_eq!((installed.namespace(), CLUSTER_EXTENSION.is_namespaced()), ("", false));
    // shows CE-05 CE-06 INS-01 INS-02
    assert_eq!(
        installed.get(&["spec"]),
        Some(&json!({
            "namespace": NAMESPACE,
            "source": {"sourceType": "Catalog", "catalog": {
                "packageName": "a", "upgradeConstraintPolicy": "CatalogProvided",
            }},
        }))
    );
    let cluster = olm.cluster.cluster();
    let selector = "olm.operatorframework.io/owner-kind=ClusterExtension,olm.operatorframework.io/owner-name=ext";
    for (resource, namespace, expected) in [
        (CONFIG, NAMESPACE, 1),
        (&builtin::DEPLOYMENT, NAMESPACE, 1),
        (&builtin::SERVICE_ACCOUNT, NAMESPACE, 1),
        (&builtin::CLUSTER_ROLE, "", 1),
        (&builtin::CLUSTER_ROLE_BINDING, "", 1),
        (&builtin::CUSTOM_RESOURCE_DEFINITION, "", 1),
    ] {
        let found = cluster.list(resource, None, &ObjectList::labels(selector)).await.unwrap();
        let places: Vec<&str> = found.items.iter().map(Object::namespace).collect();
        // shows CE-01 CE-03 OWN-07
        assert_eq!(places, vec![namespace; expected], "{}", resource.kind);
        for object in &found.items {
            let owners = object.owner_references();
            // shows OWN-01 OWN-08
            assert!(
                matches!(&*owners, [owner] if owner.uid == installed.uid() && owner.block_owner_deletion == Some(true)),
                "{owners:?}"
            );
        }
    }
    let crds = ObjectList::labels(selector);
    let crds = cluster.list(&builtin::CUSTOM_RESOURCE_DEFINITION, None, &crds).await.unwrap().items;
    // shows AT-56 UAC-03
    assert_eq!(crds.iter().map(Object::name).collect::<Vec<_>>(), ["anvils.example.com"]);
    let roles = cluster.list(&builtin::CLUSTER_ROLE, None, &ObjectList::default()).await.unwrap();
    let about_anvils = |role: &&Object| role.to_value().to_string().contains("\"anvils\"");
    // shows UAC-01
    assert_eq!(roles.items.iter().filter(about_anvils).count(), 0);
}

#[tokio::test]
async fn labels_and_expressions_select_the_catalogs_of_an_extension() {
    let mut olm = OlmCluster::for_extensions().await;
    let versions = ["1.0.0", "2.0.0", "3.0.0"];
    for version in versions {
        TestBundle::new("a", version).with_configs(&["kept"]).store(&olm);
    }
    olm.start_controllers().await;
    for (name, version, labels) in [
        ("one", versions[0], json!({"support": "production"})),
        ("two", versions[1], json!({"support": "supported", "testing": "true"})),
        ("three", versions[2], json!({})),
    ] {
        publish(&olm, name, &catalog(&[("a", &[version])]), json!({})).await;
        let catalogs = &mainstay_api::resources::CLUSTER_CATALOG;
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        olm.cluster.cluster().patch(catalogs, None, name, &patch).await.unwrap();
    }
    let expression = |key: &str, operator: &str, values: Value| json!({"key": key, "operator": operator, "values": values});
    let name = "olm.operatorframework.io/metadata.name";
    olm.apply_extension("ext", "a", "").await;
    let ambiguous = olm
        .wait_for_extension("ext", |extension| {
            message(extension, "Progressing").contains("[one three two]")
        })
        .await;
    // shows OLMV1-3
    assert_eq!(
        message(&ambiguous, "Progressing"),
        "found bundles for package \"a\" in multiple catalogs with the same priority [one three two]"
    );
    for (selector, version) in [
        (json!({"matchLabels": {"support": "production"}}), versions[0]),
        (
            json!({"matchLabels": null, "matchExpressions": [
                expression("support", "In", json!(["supported", "gold"])),
            ]}),
            versions[1],
        ),
        (
            json!({"matchExpressions": [
                expression(name, "NotIn", json!(["two"])),
                expression("support", "DoesNotExist", Value::Null),
            ]}),
            versions[2],
        ),
    ] {
        select(
            &olm,
            "ext",
            json!({"selector": selector, "upgradeConstraintPolicy": "SelfCertified"}),
        )
        .await;
        // shows CE-09 CE-10
        olm.wait_until_installed("ext", version).await;
    }
}

#[tokio::test]
async fn conditions_tell_generation_and_time_of_their_change() {
    let olm = with_versions(&["1.0.0", "1.5.0", "2.0.0"]).await;
    olm.apply_extension("ext", "a", "<1.1").await;
    let first = olm.wait_until_installed("ext", "1.0.0").await;
    let kinds: Vec<&str> = first
        .array(&["status", "conditions"])
        .iter()
        .filter_map(|condition| condition["type"].as_str())
        .collect();
    // shows CE-21
    assert_eq!(kinds, CONDITIONS);
    for (kind, text) in [
        ("Deprecated", "not deprecated"),
        ("PackageDeprecated", "package not deprecated"),
        ("ChannelDeprecated", "channel not deprecated"),
        ("BundleDeprecated", "bundle not deprecated"),
    ] {
        let expected = ("False".to_owned(), "NotDeprecated".to_owned(), Some(1));
        // shows CE-22
        assert_eq!((condition(&first, kind), &*message(&first, kind)), (expected, text));
    }
    let expected = ("True".to_owned(), "Succeeded".to_owned(), Some(1));
    // shows CE-25
    assert_eq!(
        (condition(&first, "Progressing"), &*message(&first, "Progressing")),
        (expected, "Desired state reached")
    );

    let edited = select(&olm, "ext", json!({"version": "1.x"})).await;
    let second = olm.wait_until_installed("ext", "1.5.0").await;
    // shows CE-29 UPD-06
    assert_eq!((edited.generation(), observed(&second)), (2, vec![2; CONDITIONS.len()]));
    // shows CE-29
    assert_eq!((second.uid(), second.generation()), (first.uid(), 2));
    // shows UPD-06
    assert_eq!(message(&second, "Installed"), "Installed bundle r.example/a:v1.5.0 successfully");
    for kind in ["Installed", "Progressing"] {
        // shows CE-28
        assert_eq!(changed_at(&second, kind), changed_at(&first, kind));
    }

    select(&olm, "ext", json!({"version": "9.x"})).await;
    let failed = olm
        .wait_for_extension("ext", |extension| condition(extension, "Progressing").1 == "Retrying")
        .await;
    let unknown = ("Unknown".to_owned(), "DeprecationStatusUnknown".to_owned(), Some(3));
    // shows CE-27
    assert_eq!(condition(&failed, "PackageDeprecated"), unknown);
    for kind in ["Installed", "Progressing"] {
        // shows CE-28
        assert_eq!(changed_at(&failed, kind), changed_at(&first, kind));
    }
    select(&olm, "ext", json!({"version": "2.x"})).await;
    // shows CE-34
    olm.wait_until_installed("ext", "2.0.0").await;
}

#[tokio::test]
async fn deprecations_are_known_before_the_objects_are_written() {
    let mut olm = OlmCluster::for_extensions().await;
    TestBundle::new("a", "1.0.0").with_configs(&["kept"]).store(&olm);
    olm.start_controllers().await;
    let deprecations = json!({"schema": "olm.deprecations", "package": "a", "entries": [
        {"reference": {"schema": "olm.package"}, "message": "use b"},
        {"reference": {"schema": "olm.channel", "name": "stable"}, "message": "use beta"},
        {"reference": {"schema": "olm.bundle", "name": "a.v1.0.0"}, "message": "1.0.0 is broken"},
    ]});
    let content = format!("{}\n---\n{deprecations}", catalog(&[("a", &["1.0.0"])]));
    publish(&olm, "cat", &content, json!({})).await;
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kept", "namespace": NAMESPACE},
    });
    olm.cluster.apply(Object::from_value(foreign).unwrap()).await;
    olm.apply_extension("ext", "a", "").await;
    let refused = olm
        .wait_for_extension("ext", |extension| condition(extension, "Progressing").1 == "Retrying")
        .await;
    let of =
        |extension: &Object, kind: &str| (condition(extension, kind).0, message(extension, kind));
    // shows INS-05
    assert_eq!(of(&refused, "PackageDeprecated"), ("True".to_owned(), "use b".to_owned()));
    // shows INS-05
    assert_eq!(condition(&refused, "Installed").0, "False");
    let options = mainstay_client::DeleteOptions::default();
    olm.cluster.cluster().delete(CONFIG, Some(NAMESPACE), "kept", &options).await.unwrap();
    let installed = olm.wait_until_installed("ext", "1.0.0").await;
    for (kind, text) in [
        ("Deprecated", "use b\nuse beta\n1.0.0 is broken"),
        ("PackageDeprecated", "use b"),
        ("ChannelDeprecated", "use beta"),
        ("BundleDeprecated", "1.0.0 is broken"),
    ] {
        // shows CE-23 OLMV1-132
        assert_eq!(of(&installed, kind), ("True".to_owned(), text.to_owned()));
    }
}

#[tokio::test]
async fn update_is_selected_by_version_range_channel_or_channel_with_range() {
    let mut olm = OlmCluster::for_extensions().await;
    let versions = ["1.14.5", "1.15.0", "1.15.2", "1.16.2", "1.17.1", "1.18.0"];
    for version in versions {
        TestBundle::new("a", version).with_configs(&["kept"]).store(&olm);
    }
    olm.start_controllers().await;
    // In the channel `latest`, 1.15.0 and 1.17.1 only; each replaces its predecessor in `stable`, too.
    let latest = json!({
        "schema": "olm.channel", "package": "a", "name": "latest", "entries": [
            {"name": "a.v1.15.0", "skipRange": "<1.15.0"},
            {"name": "a.v1.17.1", "replaces": "a.v1.15.0", "skipRange": "<1.17.1"},
        ],
    });
    let content = format!("{}\n---\n{latest}", catalog(&[("a", &versions)]));
    publish(&olm, "cat", &content, json!({})).await;
    olm.apply_extension("ext", "a", "1.14.x").await;
    olm.wait_until_installed("ext", "1.14.5").await;
    for (filter, version) in [
        (json!({"version": "<1.16", "channels": ["latest"]}), "1.15.0"),
        (json!({"version": ">=1.15.1, <1.16", "channels": null}), "1.15.2"),
        (json!({"version": "1.16.2"}), "1.16.2"),
        (json!({"version": null, "channels": ["latest"]}), "1.17.1"),
    ] {
        select(&olm, "ext", filter).await;
        // shows UPD-04
        let installed = olm.wait_until_installed("ext", version).await;
        // shows UPD-03
        assert_eq!(
            installed.str(&["status", "install", "bundle", "name"]),
            Some(&*format!("a.v{version}"))
        );
    }
}
