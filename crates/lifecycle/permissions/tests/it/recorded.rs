//! Recorded messages of operator-controller about missing permissions.

use crate::{install, recorded_bundles};
use mainstay_bundle::MemoryFiles;
use mainstay_permissions::{
    BundleKinds, ExtensionApplier, GrantedRules, InstallManifest, RbacObjects, RbacSubject,
    missing_permissions,
};
use mainstay_testdata::sorted_entries;
use serde_json::{Value, json};
use std::fs;

const CASES: [&str; 4] = [
    "c225-preflight-rights-exp",
    "c227-preflight-rights-box",
    "c229-synthetic-user",
    "c267-box-account",
];

/// The steps after which an account has all permissions.
const SUFFICIENT: [&str; 4] = ["c225/04", "c227/04", "c229/04", "c267/02"];

/// The message that follows from the objects of a step.
fn our_message(
    objects: &[Value],
    extension: &Value,
    bundle: &MemoryFiles,
    subject: &RbacSubject,
) -> Option<String> {
    let name = extension["metadata"]["name"].as_str().unwrap();
    let namespace = extension["spec"]["namespace"].as_str().unwrap();
    let mut existing = RbacObjects::from_objects(objects);
    // A ClusterRole of every cluster, which recordings do not repeat.
    existing.add(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "cluster-admin"},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
    }));
    let granted = GrantedRules::new(&existing, subject);
    let rendered = install(bundle, namespace);
    let manifest = InstallManifest::new(&rendered[0], &BundleKinds, namespace).unwrap();
    let with_object_sets = ["c227", "c267"].contains(&namespace);
    let applier = if with_object_sets {
        ExtensionApplier::ObjectSets { object_set: format!("{name}-1") }
    } else {
        ExtensionApplier::Helm
    };
    let missing = missing_permissions(&manifest, name, &applier, &granted, &existing).unwrap();
    assert_eq!(missing.is_empty(), missing.condition_message().is_none(), "{missing:?}");
    missing.condition_message()
}

/// The recorded message of the condition `Progressing`, without what the controller puts before it.
fn recorded_message(extension: &Value) -> Option<&str> {
    let conditions = extension["status"]["conditions"].as_array()?;
    let progressing = conditions.iter().find(|condition| condition["type"] == "Progressing")?;
    let message = progressing["message"].as_str()?;
    let start = message.find("pre-authorization failed")?;
    Some(&message[start..])
}

#[test]
fn reports_are_those_of_operator_controller() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "recorded permission reports")
    else {
        return;
    };
    let (mut reports, mut sufficient) = (0, 0);
    for case in CASES {
        let mut bundles = Vec::new();
        for step in sorted_entries(&data.path().join("olm-v1/cases").join(case)) {
            if !step.is_dir() {
                continue;
            }
            bundles.extend(recorded_bundles(&step));
            let objects: Vec<Value> =
                serde_json::from_slice(&fs::read(step.join("objects.json")).unwrap()).unwrap();
            let found = objects.iter().find(|object| object["kind"] == "ClusterExtension");
            let Some(extension) = found else { continue };
            let name = step.strip_prefix(data.path()).unwrap().display().to_string();
            let spec = &extension["spec"];
            let subject = RbacSubject::service_account(
                spec["namespace"].as_str().unwrap(),
                spec["serviceAccount"]["name"].as_str().unwrap(),
            );
            let ours = our_message(&objects, extension, &bundles[0].1, &subject);
            if let Some(recorded) = recorded_message(extension) {
                // shows PRE-01 PRE-06 PRE-07 PRE-08 PRE-09 PRE-12 PRE-14
                assert_eq!(ours.as_deref(), Some(recorded), "{name}");
                reports += 1;
            }
            let step = step.file_name().unwrap().to_str().unwrap();
            if case.starts_with("c229") && step.starts_with("03") {
                // operator-controller checks the account and not the user that acts.
                let user = crate::user("olm:clusterextension:ext-c229", &["olm:clusterextensions"]);
                assert_eq!(our_message(&objects, extension, &bundles[0].1, &user), None, "{name}");
            }
            if SUFFICIENT.contains(&&*format!("{}/{}", &case[..4], &step[..2])) {
                // shows PRE-04
                assert_eq!(ours, None, "{name}");
                sufficient += 1;
            }
        }
    }
    assert_eq!((reports, sufficient), (8, SUFFICIENT.len()));
    mainstay_testdata::ran(&format!(
        "{reports} recorded reports about missing permissions, {sufficient} steps where nothing is missing"
    ));
}
