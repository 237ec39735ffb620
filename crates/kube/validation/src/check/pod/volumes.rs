//! Validation of the volumes of pods: exactly one valid source each.

use super::super::super::rules::{Errors, FieldRule, Node, Rule, formats, quantities, walk};
use super::super::storage;
use super::super::volume_sources::{self as shared, VolumeSource, validate_sources, volume_source};
use super::{ALL_CONTAINERS, environment};
use mainstay_object::names;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

const MODE: Rule =
    Rule::Range(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive");
const KEYS_TO_PATHS: &[FieldRule] = &[
    ("key", Rule::Required("")),
    ("path", Rule::Required("")),
    ("path", Rule::AlwaysFormat(formats::volume_file)),
    ("mode", MODE),
];
const SECRET_NAME: &[FieldRule] = &[("name", Rule::Required(""))];
/// The sources of pod volumes, in the order of Kubernetes.
const VOLUME_SOURCES: &[VolumeSource] = &[
    volume_source("emptyDir", &[("sizeLimit", Rule::Custom(size_limit))]),
    volume_source("hostPath", shared::HOST_PATH),
    volume_source(
        "gitRepo",
        &[
            ("repository", Rule::Required("")),
            ("directory", Rule::AlwaysFormat(formats::local_descending_path)),
        ],
    ),
    VolumeSource {
        field: "gcePersistentDisk",
        path_name: "persistentDisk",
        surplus_name: "gcePersistentDisk",
        rules: shared::DISK,
    },
    volume_source("awsElasticBlockStore", shared::VOLUME_ID),
    volume_source(
        "secret",
        &[
            ("secretName", Rule::Required("")),
            ("defaultMode", MODE),
            ("items", Rule::Elements(KEYS_TO_PATHS)),
        ],
    ),
    volume_source("nfs", shared::NFS),
    volume_source("iscsi", &[("", Rule::Custom(shared::iscsi))]),
    volume_source("glusterfs", shared::GLUSTER),
    volume_source("flocker", shared::FLOCKER),
    volume_source("persistentVolumeClaim", &[("claimName", Rule::Required(""))]),
    volume_source("rbd", shared::RBD),
    volume_source(
        "cinder",
        &[("volumeID", Rule::Required("")), ("secretRef", Rule::Fields(SECRET_NAME))],
    ),
    VolumeSource {
        field: "cephfs",
        path_name: "cephfs",
        surplus_name: "cephFS",
        rules: shared::MONITORS,
    },
    volume_source("quobyte", shared::QUOBYTE),
    VolumeSource {
        field: "downwardAPI",
        path_name: "downwardAPI",
        surplus_name: "downwarAPI",
        rules: &[("", Rule::Custom(downward))],
    },
    volume_source("fc", shared::FIBRE),
    volume_source("flexVolume", shared::FLEX),
    volume_source(
        "configMap",
        &[
            ("name", Rule::Required("")),
            ("defaultMode", MODE),
            ("items", Rule::Elements(KEYS_TO_PATHS)),
        ],
    ),
    volume_source(
        "azureFile",
        &[("secretName", Rule::Required("")), ("shareName", Rule::Required(""))],
    ),
    volume_source("vsphereVolume", shared::VSPHERE),
    volume_source("photonPersistentDisk", shared::PHOTON),
    volume_source("portworxVolume", shared::PORTWORX),
    volume_source("azureDisk", shared::AZURE_DISK),
    volume_source("storageos", &[("", Rule::Custom(shared::storage_os))]),
    volume_source("projected", &[("defaultMode", MODE), ("", Rule::Custom(projected))]),
    volume_source("scaleIO", shared::SCALE_IO),
    volume_source("csi", &[("", Rule::Custom(csi))]),
    volume_source("ephemeral", &[("volumeClaimTemplate", Rule::Custom(claim_template))]),
];

/// Validates volumes and returns the valid ones by name.
pub(super) fn volumes<'v>(
    node: &Node<'_, 'v>,
    pod: &str,
    is_pod: bool,
    errors: &mut Errors,
) -> BTreeMap<&'v str, &'v Value> {
    let mut valid: BTreeMap<&'v str, &'v Value> = BTreeMap::new();
    let ephemeral_claims: HashSet<String> = node
        .list()
        .iter()
        .filter(|volume| {
            !pod.is_empty() && volume.get("ephemeral").is_some_and(|template| !template.is_null())
        })
        .map(|volume| format!("{pod}-{}", volume.get("name").and_then(Value::as_str).unwrap_or("")))
        .collect();
    for volume in node.items() {
        let before = errors.len();
        let at = volume.get("name");
        volume_sources(&volume, pod, is_pod, errors);
        walk(&at, &[("", Rule::RequiredFormat(names::dns1123_label))], errors);
        if valid.contains_key(at.text()) {
            errors.duplicate(&at, at.text());
        }
        if errors.len() == before {
            valid.insert(at.text(), volume.value());
        }
        let claim = volume.get("persistentVolumeClaim");
        let claim = claim.get("claimName");
        if ephemeral_claims.contains(claim.text()) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid_value(&claim, detail);
        }
    }
    valid
}

fn volume_sources(volume: &Node<'_, '_>, pod: &str, is_pod: bool, errors: &mut Errors) {
    let name = volume.text_of("name");
    let mut found = validate_sources(volume, VOLUME_SOURCES, errors, |field, source, errors| {
        match field {
            "iscsi" => {
                let portal = source.text_of("targetPortal");
                if source.has("initiatorName") && name.len() + 1 + portal.len() > 64 {
                    let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
                    errors.invalid(&volume.get("name"), name, detail);
                }
            }
            "ephemeral" if !pod.is_empty() && !name.is_empty() => {
                let claim = format!("{pod}-{name}");
                for problem in names::dns1123_subdomain(&claim) {
                    let detail = format!("PVC name {claim:?}: {problem}");
                    errors.invalid(&volume.get("name"), name, detail);
                }
            }
            _ => {}
        }
    });
    let image = volume.get("image");
    if image.is_set() {
        if found > 0 {
            errors.forbidden(&image, "may not specify more than 1 volume type");
        } else {
            found += 1;
            if is_pod {
                walk(&image, &[("reference", Rule::Required(""))], errors);
            }
            walk(&image, &[("pullPolicy", super::containers::PULL_POLICY)], errors);
        }
    }
    if found == 0 {
        errors.required(volume, "must specify a volume type");
    }
}

fn size_limit(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() && quantities::nano(node.value()) < 0 {
        errors.forbidden(node, "SizeLimit field must be a valid resource quantity");
    }
}

fn downward(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(node, &[("defaultMode", MODE)], errors);
    let items = node.get("items");
    // Kubernetes omits the list and the index from the path.
    items.items().for_each(|file| downward_file(node, file.value(), errors));
}

fn downward_file(node: &Node<'_, '_>, file: &Value, errors: &mut Errors) {
    const FIELDS: [&str; 5] = [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    ];
    let field_of = |key: &str| file.get(key).unwrap_or(&Value::Null);
    let path = node.child_with_value("path", field_of("path"));
    walk(
        &path,
        &[("", Rule::Required("")), ("", Rule::AlwaysFormat(formats::volume_file))],
        errors,
    );
    let field = node.child_with_value("fieldRef", field_of("fieldRef"));
    let resource = node.child_with_value("resourceFieldRef", field_of("resourceFieldRef"));
    if field.is_set() {
        environment::field_reference(&field, &FIELDS, errors);
        if resource.is_set() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid(node, "resource", detail);
        }
    } else if resource.is_set() {
        environment::resource_reference(&resource, true, errors);
    } else {
        errors.required(node, "one of fieldRef and resourceFieldRef is required");
    }
    walk(&node.child_with_value("mode", field_of("mode")), &[("", MODE)], errors);
}

fn projected<'v>(node: &Node<'_, 'v>, errors: &mut Errors) {
    let mut seen: HashSet<&'v str> = HashSet::new();
    let sources = node.get("sources");
    for source in sources.items() {
        let mut found = 0;
        for kind in ["secret", "configMap"] {
            let from = source.get(kind);
            if !from.is_set() {
                continue;
            }
            found += 1;
            walk(&from, SECRET_NAME, errors);
            let items = from.get("items");
            for item in items.items() {
                walk(&item, KEYS_TO_PATHS, errors);
                let path = item.text_of("path");
                if !path.is_empty() && !seen.insert(path) {
                    errors.invalid(node, from.text_of("name"), "conflicting duplicate paths");
                }
            }
        }
        let from = source.get("downwardAPI");
        if from.is_set() {
            found += 1;
            let items = from.get("items");
            for item in items.items() {
                downward_file(&from, item.value(), errors);
                let path = item.text_of("path");
                if !path.is_empty() && !seen.insert(path) {
                    errors.invalid(node, path, "conflicting duplicate paths");
                }
            }
        }
        let from = source.get("serviceAccountToken");
        if from.is_set() {
            found += 1;
            token(node, &from, errors);
        }
        if found > 1 {
            errors.forbidden(&source, "may not specify more than 1 volume type per source");
        }
    }
}

fn token(node: &Node<'_, '_>, token: &Node<'_, '_>, errors: &mut Errors) {
    let seconds = token.get("expirationSeconds");
    match seconds.number() {
        Some(..600) => {
            errors.invalid_value(&seconds, "may not specify a duration less than 10 minutes");
        }
        Some(0x1_0000_0001..) => {
            errors.invalid_value(&seconds, "may not specify a duration larger than 2^32 seconds");
        }
        _ => {}
    }
    // Kubernetes omits the source from the path.
    let path = node.child_with_value("path", token.get("path").value());
    if path.text().is_empty() {
        errors.required(&path, "");
    } else {
        errors.add_problems(&path, path.text(), formats::volume_file(path.text()));
    }
}

fn csi(node: &Node<'_, '_>, errors: &mut Errors) {
    shared::driver_name(&node.get("driver"), errors);
    let secret = node.get("nodePublishSecretRef");
    if secret.is_set() {
        let name = secret.get("name");
        if name.text().is_empty() {
            errors.required(&name, "");
        } else {
            let at = node.child_with_value("name", name.value());
            errors.add_problems(&at, name.text(), names::dns1123_subdomain(name.text()));
        }
    }
}

fn claim_template(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        errors.required(node, "");
        return;
    }
    storage::claim_template(node, errors);
}

/// Validates that files of variables are in `emptyDir` volumes of the pod.
pub(super) fn file_references(spec: &Node<'_, '_>, errors: &mut Errors) {
    // The first volume of a name counts.
    let mut volumes: HashMap<&Value, &Value> = HashMap::new();
    for volume in spec.get("volumes").list() {
        if let Some(name) = volume.get("name") {
            volumes.entry(name).or_insert(volume);
        }
    }
    for list in ALL_CONTAINERS {
        let containers = spec.get(list);
        for container in containers.items() {
            let env = container.get("env");
            for variable in env.items() {
                let from = variable.get("valueFrom");
                let file = from.get("fileKeyRef");
                if !file.is_set() {
                    continue;
                }
                let at = file.get("volumeName");
                match volumes.get(at.value()) {
                    None => errors.not_found(&at, at.text(), ""),
                    Some(volume) if volume.get("emptyDir").is_none_or(Value::is_null) => {
                        errors.invalid_value(&at, "referenced volume must be of type emptyDir");
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
