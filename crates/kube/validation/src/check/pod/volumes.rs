//! Volumes of pods: exactly one source each, and what every source needs.

use super::super::super::rules::{Check, Errors, Node, Rule, amounts, formats, walk};
use super::super::storage;
use super::super::volume_sources::{self as shared, Source, source, sources};
use super::{ALL_CONTAINERS, environment};
use mainstay_object::names;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

const MODE: Rule =
    Rule::Within(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive");
const KEYS_TO_PATHS: &[Check] = &[
    ("key", Rule::Needed("")),
    ("path", Rule::Needed("")),
    ("path", Rule::Always(formats::volume_file)),
    ("mode", MODE),
];
const SECRET_NAME: &[Check] = &[("name", Rule::Needed(""))];
/// In the order in which the original looks at them.
const SOURCES: &[Source] = &[
    source("emptyDir", &[("sizeLimit", Rule::With(size_limit))]),
    source("hostPath", shared::HOST_PATH),
    source(
        "gitRepo",
        &[("repository", Rule::Needed("")), ("directory", Rule::Always(formats::descending_path))],
    ),
    Source {
        field: "gcePersistentDisk",
        shown: "persistentDisk",
        surplus: "gcePersistentDisk",
        checks: shared::DISK,
    },
    source("awsElasticBlockStore", shared::VOLUME_ID),
    source(
        "secret",
        &[
            ("secretName", Rule::Needed("")),
            ("defaultMode", MODE),
            ("items", Rule::Each(KEYS_TO_PATHS)),
        ],
    ),
    source("nfs", shared::NFS),
    source("iscsi", &[("", Rule::With(shared::iscsi))]),
    source("glusterfs", shared::GLUSTER),
    source("flocker", shared::FLOCKER),
    source("persistentVolumeClaim", &[("claimName", Rule::Needed(""))]),
    source("rbd", shared::RBD),
    source("cinder", &[("volumeID", Rule::Needed("")), ("secretRef", Rule::Inside(SECRET_NAME))]),
    Source { field: "cephfs", shown: "cephfs", surplus: "cephFS", checks: shared::MONITORS },
    source("quobyte", shared::QUOBYTE),
    Source {
        field: "downwardAPI",
        shown: "downwardAPI",
        surplus: "downwarAPI",
        checks: &[("", Rule::With(downward))],
    },
    source("fc", shared::FIBRE),
    source("flexVolume", shared::FLEX),
    source(
        "configMap",
        &[("name", Rule::Needed("")), ("defaultMode", MODE), ("items", Rule::Each(KEYS_TO_PATHS))],
    ),
    source("azureFile", &[("secretName", Rule::Needed("")), ("shareName", Rule::Needed(""))]),
    source("vsphereVolume", shared::VSPHERE),
    source("photonPersistentDisk", shared::PHOTON),
    source("portworxVolume", shared::PORTWORX),
    source("azureDisk", shared::AZURE_DISK),
    source("storageos", &[("", Rule::With(shared::storage_os))]),
    source("projected", &[("defaultMode", MODE), ("", Rule::With(projected))]),
    source("scaleIO", shared::SCALE_IO),
    source("csi", &[("", Rule::With(csi))]),
    source("ephemeral", &[("volumeClaimTemplate", Rule::With(claim_template))]),
];

/// Checks volumes and returns those that are good, by name.
pub(super) fn volumes<'v>(
    node: &Node<'_, 'v>,
    pod: &str,
    is_pod: bool,
    errors: &mut Errors,
) -> BTreeMap<&'v str, &'v Value> {
    let mut good: BTreeMap<&'v str, &'v Value> = BTreeMap::new();
    let made: HashSet<String> = node
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
        walk(&at, &[("", Rule::Named(names::dns1123_label))], errors);
        if good.contains_key(at.text()) {
            errors.duplicate(&at, at.text());
        }
        if errors.len() == before {
            good.insert(at.text(), volume.value());
        }
        let claim = volume.get("persistentVolumeClaim");
        let claim = claim.get("claimName");
        if made.contains(claim.text()) {
            let words = "must not reference a PVC that gets created for an ephemeral volume";
            errors.wrong(&claim, words);
        }
    }
    good
}

fn volume_sources(volume: &Node<'_, '_>, pod: &str, is_pod: bool, errors: &mut Errors) {
    let name = volume.text_of("name");
    let mut found = sources(volume, SOURCES, errors, |field, source, errors| match field {
        "iscsi" => {
            let portal = source.text_of("targetPortal");
            if source.has("initiatorName") && name.len() + 1 + portal.len() > 64 {
                let words = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
                errors.invalid(&volume.get("name"), name, words);
            }
        }
        "ephemeral" if !pod.is_empty() && !name.is_empty() => {
            let claim = format!("{pod}-{name}");
            for problem in names::dns1123_subdomain(&claim) {
                let words = format!("PVC name {claim:?}: {problem}");
                errors.invalid(&volume.get("name"), name, words);
            }
        }
        _ => {}
    });
    let image = volume.get("image");
    if image.is_set() {
        if found > 0 {
            errors.forbidden(&image, "may not specify more than 1 volume type");
        } else {
            found += 1;
            if is_pod {
                walk(&image, &[("reference", Rule::Needed(""))], errors);
            }
            walk(&image, &[("pullPolicy", super::containers::PULL_POLICY)], errors);
        }
    }
    if found == 0 {
        errors.required(volume, "must specify a volume type");
    }
}

fn size_limit(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() && amounts::nano(node.value()) < 0 {
        errors.forbidden(node, "SizeLimit field must be a valid resource quantity");
    }
}

fn downward(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(node, &[("defaultMode", MODE)], errors);
    let items = node.get("items");
    // The original names neither the list nor the place in it.
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
    let of = |key: &str| file.get(key).unwrap_or(&Value::Null);
    let path = node.named("path", of("path"));
    walk(&path, &[("", Rule::Needed("")), ("", Rule::Always(formats::volume_file))], errors);
    let field = node.named("fieldRef", of("fieldRef"));
    let resource = node.named("resourceFieldRef", of("resourceFieldRef"));
    if field.is_set() {
        environment::field_reference(&field, &FIELDS, errors);
        if resource.is_set() {
            let words = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid(node, "resource", words);
        }
    } else if resource.is_set() {
        environment::resource_reference(&resource, true, errors);
    } else {
        errors.required(node, "one of fieldRef and resourceFieldRef is required");
    }
    walk(&node.named("mode", of("mode")), &[("", MODE)], errors);
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
        Some(..600) => errors.wrong(&seconds, "may not specify a duration less than 10 minutes"),
        Some(0x1_0000_0001..) => {
            errors.wrong(&seconds, "may not specify a duration larger than 2^32 seconds");
        }
        _ => {}
    }
    // Here the original leaves the source out of the path.
    let path = node.named("path", token.get("path").value());
    if path.text().is_empty() {
        errors.required(&path, "");
    } else {
        errors.each(&path, path.text(), formats::volume_file(path.text()));
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
            let at = node.named("name", name.value());
            errors.each(&at, name.text(), names::dns1123_subdomain(name.text()));
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

/// Files that variables are read from are in volumes of the pod that have no other source.
pub(super) fn file_references(spec: &Node<'_, '_>, errors: &mut Errors) {
    // The first of a name counts.
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
                        errors.wrong(&at, "referenced volume must be of type emptyDir");
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
