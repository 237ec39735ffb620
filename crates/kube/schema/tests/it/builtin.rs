//! The table of built-in kinds, compared with objects recorded by Kubernetes' own tests.

use mainstay_object::{Gvk, Scope};
use mainstay_schema::builtin;
use mainstay_schema::strict;
use mainstay_testdata::{ran, unpack};
use std::collections::BTreeSet;

#[test]
fn each_kind_has_a_type_and_each_stored_kind_a_list_type() {
    for row in builtin::kinds() {
        assert!(builtin::definition_of(&row.gvk()).is_some(), "{}", row.gvk());
        let list = Gvk::new(row.group, row.version, row.list_kind());
        assert_eq!(builtin::definition_of(&list).is_some(), row.has_verb("list"), "{list}");
        assert!(row.verbs.is_sorted(), "{} has the verbs {:?}", row.gvk(), row.verbs);
        let names: Vec<&str> = row.subresources.iter().map(|row| row.name).collect();
        assert!(names.is_sorted(), "{} has the subresources {names:?}", row.gvk());
        for part in row.subresources {
            let (kind, name, verbs) = (row.gvk(), part.name, part.verbs);
            assert!(
                verbs.is_sorted(),
                "{kind} has the subresource {name} with the verbs {verbs:?}"
            );
        }
    }
}

#[test]
fn kinds_are_unique_and_found_by_kind_and_by_plural() {
    let mut distinct = BTreeSet::new();
    for row in builtin::kinds() {
        assert!(
            distinct.insert((row.group, row.version, row.kind)),
            "{} is there twice",
            row.gvk()
        );
        let by_kind = builtin::kind(row.group, row.version, row.kind).unwrap();
        assert!(std::ptr::eq(by_kind, row), "found {by_kind:?} instead of {row:?}");
        let by_plural = builtin::resource(row.group, row.version, row.plural).unwrap();
        assert!(std::ptr::eq(by_plural, row), "found {by_plural:?} instead of {row:?}");
    }
    let node = builtin::resource("", "v1", "nodes").unwrap();
    assert_eq!((node.kind, node.scope), ("Node", Scope::Cluster));
    assert_eq!(builtin::kind("events.k8s.io", "v1", "Event").unwrap().storage, "events");
    let eviction = builtin::resource("", "v1", "pods").unwrap().subresource("eviction").unwrap();
    assert_eq!(eviction.gvk(builtin::resource("", "v1", "pods").unwrap()).group, "policy");
}

/// Objects with all fields set, from Kubernetes' own tests; they are not part of this project.
#[test]
fn recorded_objects_have_a_known_kind_and_no_unknown_field() {
    let Some(data) = unpack("kubernetes-api", "recorded objects of Kubernetes") else { return };
    let recorded = data.path().join("kubernetes-api/testdata/v1.35.0");
    let groups: BTreeSet<&str> = builtin::kinds().iter().map(|row| row.group).collect();
    let mut checked = 0;
    let mut skipped = BTreeSet::new();
    for entry in std::fs::read_dir(recorded).unwrap() {
        let path = entry.unwrap().path();
        // `after_roundtrip` is the object as a later release would write it.
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension() != Some("json".as_ref()) || name.contains(".after_roundtrip.") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        // Discovery documents such as `APIVersions` have no version.
        let Some(api_version) = value["apiVersion"].as_str() else { continue };
        let gvk = Gvk::from_api_version(api_version, value["kind"].as_str().unwrap());
        let served = gvk.version == "v1" || (gvk.group == "autoscaling" && gvk.version == "v2");
        // Kinds that are not served: options of requests, responses, parts of others.
        let unserved = builtin::definition_of(&gvk).is_none();
        if !served || !groups.contains(gvk.group.as_str()) || unserved {
            skipped.insert((gvk.group, gvk.version, gvk.kind));
            continue;
        }
        let definition =
            builtin::definition_of(&gvk).unwrap_or_else(|| panic!("no type for {gvk}"));
        assert_eq!(strict::unknown_fields(definition, &value), [""; 0], "{gvk}");
        assert_eq!(strict::decode(definition, &mut value), Ok(Vec::new()), "{gvk}");
        checked += 1;
    }
    assert!(checked > 60, "{checked} objects");
    for row in builtin::kinds() {
        let kind = (row.group.to_owned(), row.version.to_owned(), row.kind.to_owned());
        assert!(!skipped.contains(&kind), "{kind:?}");
    }
    ran(&format!("{checked} recorded objects of Kubernetes"));
}
