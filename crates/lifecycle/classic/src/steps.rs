//! InstallPlan steps: turns the objects of a bundle into steps.

use crate::image::bundles::Key;
use crate::permissions;
use mainstay_api::{
    BundleLookup, ClusterServiceVersion, ObjectReference, Step, StepResource, StepStatus, names,
    resources,
};
use mainstay_catalog::Bundle;
use mainstay_controller::gojson::{self, GoType};
use mainstay_gocompat::values;
use mainstay_object::{NamespacedName, Object};
use mainstay_resolver::NewSubscription;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of a step for a Secret in a bundle. A step of kind `Secret` copies a pull secret
/// instead.
pub(crate) const BUNDLE_SECRET: &str = "BundleSecret";

/// Properties that hold whole manifests, and therefore are not in the annotation.
const BULKY: [&str; 2] = ["olm.bundle.object", "olm.csv.metadata"];

/// A bundle of a catalog that is to be installed.
pub(crate) struct BundleInstall<'a> {
    pub(crate) bundle: &'a Bundle,
    /// The catalog that it comes from.
    pub(crate) catalog: &'a NamespacedName,
    /// The CSV that it replaces in this namespace; empty for a first install.
    pub(crate) replaces: &'a str,
    /// The objects of unpacked bundles, by image.
    pub(crate) unpacked: &'a BTreeMap<Key, Arc<Vec<Object>>>,
}

/// The steps of a bundle; and, for a bundle by image, its key and its entry in the InstallPlan.
pub(crate) type BundleSteps = (Vec<Step>, Option<(Key, BundleLookup)>);

/// Why a bundle has no steps.
#[derive(Debug)]
pub(crate) enum NoSteps {
    /// It cannot be installed.
    Refused(String),
    /// It must be unpacked.
    Image(Key),
}

/// The steps that install a bundle into a namespace.
pub(crate) fn for_install(
    namespace: &str,
    wanted: &BundleInstall<'_>,
) -> Result<BundleSteps, NoSteps> {
    let BundleInstall { bundle, catalog, replaces, unpacked } = *wanted;
    let name = &*bundle.name;
    let refused = |why: String| NoSteps::Refused(format!("bundle {name} {why}"));
    let properties: Vec<Value> = bundle
        .properties
        .iter()
        .map(|property| json!({"type": *property.kind, "value": property.value()}))
        .collect();
    let (objects, lookup) = if bundle.object_count() > 0 {
        let objects = bundle.objects();
        (objects.map_err(|error| refused(format!("cannot be read: {error}")))?, None)
    } else if bundle.image.is_empty() {
        return Err(refused("has neither manifests nor an image".to_owned()));
    } else {
        let image = Key { catalog: catalog.clone(), image: bundle.image.to_string() };
        let Some(objects) = unpacked.get(&image) else { return Err(NoSteps::Image(image)) };
        let lookup = BundleLookup {
            path: image.image.clone(),
            identifier: name.to_owned(),
            replaces: replaces.to_owned(),
            catalog_source_ref: Some(ObjectReference {
                namespace: catalog.namespace.to_string(),
                name: catalog.name.to_string(),
                ..ObjectReference::default()
            }),
            properties: properties_annotation(&properties),
            ..BundleLookup::default()
        };
        (objects.to_vec(), Some((image, lookup)))
    };
    let (csvs, others): (Vec<Object>, Vec<Object>) =
        objects.into_iter().partition(|object| object.kind() == "ClusterServiceVersion");
    let csv = csvs.first().ok_or_else(|| refused("has no ClusterServiceVersion".to_owned()))?;
    if lookup.is_some() && csv.name() != name {
        return Err(refused(format!("has the ClusterServiceVersion {} in it", csv.name())));
    }
    ClusterServiceVersion::from_object(csv)
        .map_err(|error| refused(format!("cannot be read: {error}")))?;
    let contents =
        BundleContents { csv, objects: &others, properties: &properties, replaces, catalog };
    Ok((for_contents(namespace, &contents), lookup))
}

/// The steps that install these objects of a bundle; none without a CSV.
pub(crate) fn for_objects(
    namespace: &str,
    objects: Vec<Object>,
    properties: &[Value],
    replaces: &str,
    catalog: &NamespacedName,
) -> Option<Vec<Step>> {
    let (csvs, others): (Vec<Object>, Vec<Object>) =
        objects.into_iter().partition(|object| object.kind() == "ClusterServiceVersion");
    let csv = csvs.first()?;
    let contents = BundleContents { csv, objects: &others, properties, replaces, catalog };
    Some(for_contents(namespace, &contents))
}

/// The parts of a chosen bundle.
struct BundleContents<'a> {
    /// Its ClusterServiceVersion.
    csv: &'a Object,
    /// Its other objects.
    objects: &'a [Object],
    /// Its properties, as `{type, value}`.
    properties: &'a [Value],
    /// The CSV that it replaces in this namespace; empty for a first install.
    replaces: &'a str,
    /// The catalog that it comes from.
    catalog: &'a NamespacedName,
}

/// The annotation with the properties of an installed CSV, for the resolver.
fn properties_annotation(properties: &[Value]) -> String {
    let small: Vec<&Value> = properties
        .iter()
        .filter(|property| {
            let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
            !BULKY.contains(&kind)
        })
        .collect();
    values::json(&json!({"properties": small}))
}

/// The steps that install a bundle into a namespace: its CSV, its other objects, and the RBAC
/// objects for its permissions.
fn for_contents(namespace: &str, contents: &BundleContents<'_>) -> Vec<Step> {
    let mut csv = contents.csv.clone();
    csv.set(&["metadata", "namespace"], namespace.into());
    if contents.replaces.is_empty() {
        csv.remove(&["spec", "replaces"]);
    } else {
        csv.set(&["spec", "replaces"], contents.replaces.into());
    }
    csv.set_annotation(names::PROPERTIES, properties_annotation(contents.properties));
    let resource = resources::CLUSTER_SERVICE_VERSION;
    let step = |group: &str, version: &str, kind: &str, name: &str, manifest: String| Step {
        resolving: csv.name().to_owned(),
        resource: StepResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            source_name: contents.catalog.name.to_string(),
            source_namespace: contents.catalog.namespace.to_string(),
            manifest,
        },
        status: StepStatus::Unknown,
        optional: false,
    };
    let mut manifest = gojson::encode(GoType::ClusterServiceVersion, &csv.to_value());
    manifest.push('\n');
    let mut steps =
        vec![step(&resource.group, &resource.version, &resource.kind, csv.name(), manifest)];
    for object in contents.objects {
        let gvk = object.gvk();
        let mut manifest = values::json(&object.to_value());
        manifest.push('\n');
        let kind = if gvk.kind == "Secret" { BUNDLE_SECRET } else { &gvk.kind };
        let name = match object.name() {
            "" => object.str(&["metadata", "generateName"]).unwrap_or_default(),
            name => name,
        };
        steps.push(step(&gvk.group, &gvk.version, kind, name, manifest));
    }
    for generated in permissions::generated(&csv) {
        steps.push(step(
            generated.group,
            "v1",
            generated.kind,
            &generated.name,
            generated.manifest,
        ));
    }
    steps
}

/// The step that creates the Subscription of a dependency.
///
/// Its manifest has upstream's fields in the same order.
pub(crate) fn for_dependency(namespace: &str, new: &NewSubscription) -> Step {
    let text = |text: &str| values::json(&Value::from(text));
    let resource = resources::SUBSCRIPTION;
    let manifest = format!(
        "{{\"metadata\":{{\"name\":{},\"namespace\":{}}},\"spec\":{{\"source\":{},\"sourceNamespace\":{},\"name\":{},\"channel\":{},\"startingCSV\":{},\"installPlanApproval\":\"Automatic\"}},\"status\":{{\"lastUpdated\":null}}}}\n",
        text(&new.name),
        text(namespace),
        text(&new.catalog.name),
        text(&new.catalog.namespace),
        text(&new.package),
        text(&new.channel),
        text(&new.starting_csv),
    );
    Step {
        resolving: new.starting_csv.clone(),
        resource: StepResource {
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            kind: resource.kind.to_string(),
            name: new.name.clone(),
            source_name: new.catalog.name.clone(),
            source_namespace: new.catalog.namespace.clone(),
            manifest,
        },
        status: StepStatus::Unknown,
        optional: false,
    }
}

/// Sorts steps: CSVs first, as other objects name them as owner; then CustomResourceDefinitions, so
/// that their kinds are served; then the rest in its order.
pub(crate) fn in_install_order(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(|step| match step.resource.kind.as_str() {
        "ClusterServiceVersion" => 0,
        "CustomResourceDefinition" if !mainstay_fault::is_on("definitions-come-last") => 1,
        _ => 2,
    });
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn the_subscription_of_a_dependency_starts_with_the_chosen_csv() {
        let step = for_dependency(
            "ns",
            &NewSubscription {
                name: "b-beta-cat-olm".to_owned(),
                package: "b".to_owned(),
                channel: "beta".to_owned(),
                catalog: mainstay_resolver::CatalogKey::new("cat", "olm"),
                starting_csv: "b.v1".to_owned(),
            },
        );
        assert_eq!(
            step.resource.manifest,
            concat!(
                r#"{"metadata":{"name":"b-beta-cat-olm","namespace":"ns"},"spec":{"source":"cat","#,
                r#""sourceNamespace":"olm","name":"b","channel":"beta","startingCSV":"b.v1","#,
                r#""installPlanApproval":"Automatic"},"status":{"lastUpdated":null}}"#,
                "\n"
            )
        );
        assert_eq!((&*step.resolving, &*step.resource.kind), ("b.v1", "Subscription"));
    }

    #[test]
    fn csvs_come_first_then_crds_then_the_rest_in_their_order() {
        let csv = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "a.v2"},
            "spec": {"displayName": "A", "replaces": "a.v0", "version": "2.0.0", "unknown": 1},
        }));
        let objects = [
            object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})),
            object(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "as.example.com"},
            })),
            object(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "extra"},
            })),
            object(json!({"apiVersion": "", "kind": "Service", "metadata": {"name": "web"}})),
        ];
        let catalog = NamespacedName::new("olm", "cat");
        let steps = in_install_order(for_contents(
            "ns",
            &BundleContents {
                csv: &csv,
                objects: &objects,
                properties: &[
                    json!({"type": "olm.package", "value": {"packageName": "a", "version": "2.0.0"}}),
                    json!({"type": "olm.bundle.object", "value": {"data": "…"}}),
                ],
                replaces: "a.v1",
                catalog: &catalog,
            },
        ));
        let kinds: Vec<&str> = steps.iter().map(|step| step.resource.kind.as_str()).collect();
        // shows IP-08 R009 R010
        assert_eq!(
            kinds,
            [
                "ClusterServiceVersion",
                "CustomResourceDefinition",
                BUNDLE_SECRET,
                "RoleBinding",
                "Service"
            ]
        );
        let stored: Value = serde_json::from_str(&steps[0].resource.manifest).unwrap();
        assert_eq!(stored["spec"]["replaces"], "a.v1");
        assert_eq!(stored["spec"].get("unknown"), None);
        assert_eq!(
            stored["metadata"]["annotations"][names::PROPERTIES],
            r#"{"properties":[{"type":"olm.package","value":{"packageName":"a","version":"2.0.0"}}]}"#
        );
        assert!(
            steps.iter().all(|step| step.resolving == "a.v2" && step.resource.source_name == "cat")
        );
    }
}
