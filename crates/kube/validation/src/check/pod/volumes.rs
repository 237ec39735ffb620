//! Volumes of pods: exactly one source each, and what every source needs.

use super::super::super::rules::{Check, Errors, Node, Rule, amounts, formats, walk};
use super::super::storage;
use super::{ALL_CONTAINERS, environment};
use mainstay_object::names;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

const MODE: Rule =
    Rule::Within(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive");
const PARTITION: Rule = Rule::Within(0, 255, "must be between 1 and 255, inclusive");
const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// A source of a volume: its field, the name under which the original reports on it if that is
/// another, and its rules.
pub(in super::super) struct Source {
    /// Field of the volume.
    pub(in super::super) field: &'static str,
    /// Name of the field in paths of its rules.
    pub(in super::super) shown: &'static str,
    /// Name of the field when there is another source before it.
    pub(in super::super) surplus: &'static str,
    /// What it must be.
    pub(in super::super) checks: &'static [Check],
}

const fn source(field: &'static str, checks: &'static [Check]) -> Source {
    Source { field, shown: field, surplus: field, checks }
}

const KEYS_TO_PATHS: &[Check] = &[
    ("key", Rule::Needed("")),
    ("path", Rule::Needed("")),
    ("path", Rule::Always(formats::volume_file)),
    ("mode", MODE),
];
const SECRET_NAME: &[Check] = &[("name", Rule::Needed(""))];
pub(in super::super) const NFS: &[Check] =
    &[("server", Rule::Needed("")), ("path", Rule::Needed("")), ("path", Rule::Always(absolute))];
pub(in super::super) const HOST_PATH: &[Check] = &[("", Rule::With(host_path))];
pub(in super::super) const DISK: &[Check] =
    &[("pdName", Rule::Needed("")), ("partition", PARTITION)];
pub(in super::super) const VOLUME_ID: &[Check] =
    &[("volumeID", Rule::Needed("")), ("partition", PARTITION)];
pub(in super::super) const FLOCKER: &[Check] = &[("", Rule::With(flocker))];
pub(in super::super) const RBD: &[Check] =
    &[("monitors", Rule::Needed("")), ("image", Rule::Needed(""))];
pub(in super::super) const MONITORS: &[Check] = &[("monitors", Rule::Needed(""))];
pub(in super::super) const QUOBYTE: &[Check] = &[
    ("registry", Rule::Needed("must be a host:port pair or multiple pairs separated by commas")),
    ("volume", Rule::Needed("")),
];
pub(in super::super) const FIBRE: &[Check] = &[("", Rule::With(fibre_channel))];
pub(in super::super) const FLEX: &[Check] =
    &[("driver", Rule::Needed("")), ("options", Rule::With(flex_options))];
pub(in super::super) const VSPHERE: &[Check] = &[("volumePath", Rule::Needed(""))];
pub(in super::super) const PHOTON: &[Check] = &[("pdID", Rule::Needed(""))];
pub(in super::super) const PORTWORX: &[Check] = &[("volumeID", Rule::Needed(""))];
pub(in super::super) const SCALE_IO: &[Check] = &[
    ("gateway", Rule::Needed("")),
    ("system", Rule::Needed("")),
    ("volumeName", Rule::Needed("")),
];
pub(in super::super) const AZURE_DISK: &[Check] = &[
    ("diskName", Rule::Needed("")),
    ("diskURI", Rule::Needed("")),
    ("cachingMode", Rule::OneOf(&["None", "ReadOnly", "ReadWrite"])),
    ("kind", Rule::OneOf(&["Dedicated", "Managed", "Shared"])),
    ("", Rule::With(azure_disk)),
];
pub(in super::super) const GLUSTER: &[Check] =
    &[("endpoints", Rule::Needed("")), ("path", Rule::Needed(""))];

/// In the order in which the original looks at them.
const SOURCES: &[Source] = &[
    source("emptyDir", &[("sizeLimit", Rule::With(size_limit))]),
    source("hostPath", HOST_PATH),
    source(
        "gitRepo",
        &[("repository", Rule::Needed("")), ("directory", Rule::Always(formats::descending_path))],
    ),
    Source {
        field: "gcePersistentDisk",
        shown: "persistentDisk",
        surplus: "gcePersistentDisk",
        checks: DISK,
    },
    source("awsElasticBlockStore", VOLUME_ID),
    source(
        "secret",
        &[
            ("secretName", Rule::Needed("")),
            ("defaultMode", MODE),
            ("items", Rule::Each(KEYS_TO_PATHS)),
        ],
    ),
    source("nfs", NFS),
    source("iscsi", &[("", Rule::With(iscsi))]),
    source("glusterfs", GLUSTER),
    source("flocker", FLOCKER),
    source("persistentVolumeClaim", &[("claimName", Rule::Needed(""))]),
    source("rbd", RBD),
    source("cinder", &[("volumeID", Rule::Needed("")), ("secretRef", Rule::Inside(SECRET_NAME))]),
    Source { field: "cephfs", shown: "cephfs", surplus: "cephFS", checks: MONITORS },
    source("quobyte", QUOBYTE),
    Source {
        field: "downwardAPI",
        shown: "downwardAPI",
        surplus: "downwarAPI",
        checks: &[("", Rule::With(downward))],
    },
    source("fc", FIBRE),
    source("flexVolume", FLEX),
    source(
        "configMap",
        &[("name", Rule::Needed("")), ("defaultMode", MODE), ("items", Rule::Each(KEYS_TO_PATHS))],
    ),
    source("azureFile", &[("secretName", Rule::Needed("")), ("shareName", Rule::Needed(""))]),
    source("vsphereVolume", VSPHERE),
    source("photonPersistentDisk", PHOTON),
    source("portworxVolume", PORTWORX),
    source("azureDisk", AZURE_DISK),
    source("storageos", &[("", Rule::With(storage::storage_os))]),
    source("projected", &[("defaultMode", MODE), ("", Rule::With(projected))]),
    source("scaleIO", SCALE_IO),
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
        .filter(|volume| !pod.is_empty() && volume.get("ephemeral").is_some_and(|it| !it.is_null()))
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

/// Checks the sources in a row's order; returns how many there are.
pub(in super::super) fn sources(
    node: &Node<'_, '_>,
    table: &'static [Source],
    errors: &mut Errors,
    mut also: impl FnMut(&str, &Node<'_, '_>, &mut Errors),
) -> usize {
    let mut found = 0;
    for source in table {
        let value = node.get(source.field).value();
        if value.is_null() {
            continue;
        }
        if found > 0 {
            let words = "may not specify more than 1 volume type";
            errors.forbidden(&node.get(source.surplus), words);
        } else {
            found += 1;
            let at = node.named(source.shown, value);
            walk(&at, source.checks, errors);
            also(source.field, &at, errors);
        }
    }
    found
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

fn absolute(path: &str) -> Vec<String> {
    if path.starts_with('/') { Vec::new() } else { vec!["must be an absolute path".to_owned()] }
}

fn size_limit(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() && amounts::nano(node.value()) < 0 {
        errors.forbidden(node, "SizeLimit field must be a valid resource quantity");
    }
}

fn flocker(node: &Node<'_, '_>, errors: &mut Errors) {
    let (name, uuid) = (node.text_of("datasetName"), node.text_of("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.required(node, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        let words = "datasetName and datasetUUID can not be specified simultaneously";
        errors.invalid(node, "resource", words);
    }
    if name.contains('/') {
        errors.invalid(&node.get("datasetName"), name, "must not contain '/'");
    }
}

fn flex_options(node: &Node<'_, '_>, errors: &mut Errors) {
    for (key, at) in node.entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            errors.invalid(&at, key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn azure_disk(node: &Node<'_, '_>, errors: &mut Errors) {
    let uri = node.text_of("diskURI");
    let (prefix, form) = match node.text_of("kind") {
        "" => return,
        "Managed" => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        _ => {
            ("https://", "https://{account-name}.blob.windows.net/{container-name}/{disk-name}.vhd")
        }
    };
    if !uri.starts_with(prefix) {
        errors.unsupported(&node.get("diskURI"), uri, &[form]);
    }
}

fn fibre_channel(node: &Node<'_, '_>, errors: &mut Errors) {
    let wwns = node.get("targetWWNs");
    let ids = node.get("wwids").len();
    if wwns.len() == 0 && ids == 0 {
        errors.required(&wwns, "must specify either targetWWNs or wwids, but not both");
    }
    if wwns.len() > 0 && ids > 0 {
        errors.wrong(&wwns, "targetWWNs and wwids can not be specified simultaneously");
    }
    if wwns.len() > 0 {
        let lun = node.get("lun");
        match lun.number() {
            None => errors.required(&lun, "lun is required if targetWWNs is specified"),
            Some(0..=255) => {}
            Some(_) => errors.wrong(&lun, "must be between 0 and 255, inclusive"),
        }
    }
}

/// The two forms of an initiator's or target's name.
fn host_path(node: &Node<'_, '_>, errors: &mut Errors) {
    let path = node.get("path");
    if path.text().is_empty() {
        errors.required(&path, "");
        return;
    }
    walk(
        node,
        &[("path", Rule::Always(formats::no_backsteps)), ("type", Rule::OneOf(&HOST_PATHS))],
        errors,
    );
}

fn iscsi_name(name: &str) -> Option<&'static str> {
    let alnum = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let good = match name.get(..3) {
        Some("eui") => name.strip_prefix("eui.").is_some_and(|rest| alnum(rest, 16)),
        Some("naa") => name.strip_prefix("naa.").is_some_and(|rest| alnum(rest, 32)),
        Some("iqn") => is_iqn(name),
        _ => return Some("must be valid format starting with iqn, eui, or naa"),
    };
    (!good).then_some("must be valid format")
}

/// `iqn.2006-01.com.example:name`.
fn is_iqn(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("iqn.") else { return false };
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let digits = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_digit())
    };
    let dated =
        date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    let domain = rest.split_once(':').map_or(rest, |(domain, _)| domain);
    dated
        && !domain.is_empty()
        && domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}

/// A disk over the network.
pub(in super::super) fn iscsi(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(node, &[("targetPortal", Rule::Needed("")), ("iqn", Rule::Needed(""))], errors);
    let iqn = node.get("iqn");
    if let Some(words) = iscsi_name(iqn.text()).filter(|_| !iqn.text().is_empty()) {
        errors.wrong(&iqn, words);
    }
    walk(node, &[("lun", Rule::Within(0, 255, "must be between 0 and 255, inclusive"))], errors);
    let authenticates = node.is_true("chapAuthDiscovery") || node.is_true("chapAuthSession");
    if authenticates && !node.has("secretRef") {
        errors.required(&node.get("secretRef"), "");
    }
    let initiator = node.get("initiatorName").value();
    if !initiator.is_null() {
        let at = node.named("initiatorname", initiator);
        if let Some(words) = iscsi_name(at.text()) {
            errors.wrong(&at, words);
        }
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
    storage::driver_name(&node.get("driver"), errors);
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
