//! The CustomResourceDefinitions, compared with those of upstream.

use mainstay_api::{crds, resources};
use mainstay_object::{Object, value_at};
use mainstay_schema::crd::{self, CustomResourceDefinition};
use mainstay_testdata::{ran, unpack};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Intended differences, as [`compare`] records them, each with its reason.
const DIFFERENCES: &[(&str, &str)] = &[];

#[test]
fn each_kind_has_one_crd() {
    let names: Vec<String> = crds().iter().map(|crd| crd.name().to_owned()).collect();
    let expected: Vec<String> =
        resources::ALL.iter().map(mainstay_object::Resource::group_resource).collect();
    assert_eq!(names, expected);
    for (crd, resource) in crds().iter().zip(&resources::ALL) {
        assert_eq!(crd.str(&["spec", "names", "kind"]), Some(&*resource.kind));
        let storage =
            crd.array(&["spec", "versions"]).iter().find(|version| version["storage"] == true);
        assert_eq!(storage.unwrap()["name"], json!(resource.version));
    }
}

#[test]
fn crds_are_valid_with_their_validation_rules() {
    for mut crd in crds() {
        crd::default(&mut crd);
        assert_eq!(crd::validate(&crd), [], "{}", crd.name());
    }
}

#[test]
fn csv_release_is_dot_separated_identifiers() {
    let name = "clusterserviceversions.operators.coreos.com";
    let compare_crds = crds().into_iter().find(|crd| crd.name() == name).unwrap();
    let compare_crds = CustomResourceDefinition::read(&compare_crds);
    let version = compare_crds.storage_version().unwrap();
    for (release, errors) in
        [("1.0.a-b", 0), ("0", 0), ("1..0", 1), ("1.01", 1), ("ä.007", 2), ("0a.07a", 0)]
    {
        let object = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "a"}, "spec": {"release": release},
        });
        let rules = version.rules().unwrap();
        let verdict = rules.evaluate(&version.schema, object.as_object().unwrap(), None);
        assert_eq!(verdict.errors.len(), errors, "{release}: {:?}", verdict.errors);
        assert!(verdict.errors.iter().all(|error| error.field == "spec.release"));
    }
}

#[test]
fn crds_have_the_schemas_of_upstream() {
    let Some(folder) = unpack("crds", "the original definitions") else { return };
    let mut found = BTreeSet::new();
    for ours in crds() {
        let name = format!(
            "operators.coreos.com_{}.yaml",
            ours.str(&["spec", "names", "plural"]).unwrap()
        );
        let bytes = std::fs::read(folder.path().join("crds/olm-classic").join(&name)).unwrap();
        let mut documents = mainstay_yaml::documents(&bytes, &mainstay_yaml::Options::default());
        let theirs = documents.next().unwrap().unwrap().value;
        let theirs = Object::from_value(theirs).unwrap();
        compare_crds(&ours, &theirs, &mut found);
    }
    let listed: BTreeSet<&str> = DIFFERENCES.iter().map(|(place, _)| *place).collect();
    let unlisted: Vec<_> = found.iter().filter(|place| !listed.contains(&***place)).collect();
    assert!(unlisted.is_empty(), "not in the list:\n{unlisted:#?}");
    let unused: Vec<_> = listed.iter().filter(|place| !found.contains(**place)).collect();
    assert!(unused.is_empty(), "in the list, but the same: {unused:#?}");
    ran(&format!("{} definitions beside the original ones", crds().len()));
}

fn compare_crds(ours: &Object, theirs: &Object, found: &mut BTreeSet<String>) {
    let kind = theirs.str(&["spec", "names", "kind"]).unwrap();
    for path in
        [&["metadata", "name"][..], &["spec", "group"], &["spec", "names"], &["spec", "scope"]]
    {
        if ours.get(path) != theirs.get(path) {
            found.insert(format!("{kind} {}", path.join(".")));
        }
    }
    let versions = ours.array(&["spec", "versions"]);
    assert_eq!(versions.len(), theirs.array(&["spec", "versions"]).len(), "{kind}");
    for (ours, theirs) in versions.iter().zip(theirs.array(&["spec", "versions"])) {
        let place = format!("{kind}/{}", theirs["name"].as_str().unwrap());
        for key in ["name", "served", "storage", "subresources", "additionalPrinterColumns"] {
            if without_descriptions(&ours[key]) != without_descriptions(&theirs[key]) {
                found.insert(format!("{place} {key}"));
            }
        }
        let schema = ["schema", "openAPIV3Schema"];
        let (ours, theirs) = (value_at(ours, &schema), value_at(theirs, &schema));
        compare(&place, ours.unwrap(), theirs.unwrap(), found);
    }
}

/// Printer columns without descriptions.
fn without_descriptions(value: &Value) -> Value {
    let mut value = value.clone();
    for item in value.as_array_mut().into_iter().flatten() {
        item.as_object_mut().unwrap().remove("description");
    }
    value
}

/// Records where two schemas differ in anything but descriptions.
fn compare(place: &str, ours: &Value, theirs: &Value, found: &mut BTreeSet<String>) {
    let (Some(a), Some(b)) = (ours.as_object(), theirs.as_object()) else {
        if ours != theirs {
            found.insert(place.to_owned());
        }
        return;
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys.into_iter().filter(|key| *key != "description") {
        match (&**key, a.get(key), b.get(key)) {
            ("properties", ours, theirs) => {
                let names = |properties: Option<&Value>| -> BTreeSet<String> {
                    properties
                        .and_then(Value::as_object)
                        .into_iter()
                        .flatten()
                        .map(|entry| entry.0.clone())
                        .collect()
                };
                for name in names(ours).union(&names(theirs)) {
                    let place = format!("{place}.{name}");
                    match (
                        ours.and_then(|properties| properties.get(name)),
                        theirs.and_then(|properties| properties.get(name)),
                    ) {
                        (Some(ours), Some(theirs)) => compare(&place, ours, theirs, found),
                        (Some(_), None) => drop(found.insert(format!("{place} only ours"))),
                        _ => drop(found.insert(format!("{place} only theirs"))),
                    }
                }
            }
            ("items" | "additionalProperties", Some(ours), Some(theirs)) => {
                compare(&format!("{place}[]"), ours, theirs, found);
            }
            ("required", Some(ours), Some(theirs)) => {
                let values = |list: &Value| -> BTreeSet<String> {
                    list.as_array().unwrap().iter().map(ToString::to_string).collect()
                };
                if values(ours) != values(theirs) {
                    found.insert(format!("{place} required"));
                }
            }
            (_, ours, theirs) if ours != theirs => {
                found.insert(format!("{place} {key}"));
            }
            _ => {}
        }
    }
}
