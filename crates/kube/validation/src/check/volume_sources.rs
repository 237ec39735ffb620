//! Validation of volume sources that Pods and `PersistentVolumes` share.

use super::super::rules::{Errors, FieldRule, Node, Rule, formats, walk};
use mainstay_object::names;

const PARTITION: Rule = Rule::Range(0, 255, "must be between 1 and 255, inclusive");
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

/// A volume source: its field, its names in error paths, and its rules.
pub(super) struct VolumeSource {
    /// The field of the volume.
    pub(super) field: &'static str,
    /// The field name in the paths of its errors.
    pub(super) path_name: &'static str,
    /// The field name in the error for a second source.
    pub(super) surplus_name: &'static str,
    /// The rules of the source.
    pub(super) rules: &'static [FieldRule],
}

/// A volume source whose error paths have its field name.
pub(super) const fn volume_source(
    field: &'static str,
    rules: &'static [FieldRule],
) -> VolumeSource {
    VolumeSource { field, path_name: field, surplus_name: field, rules }
}

pub(super) const NFS: &[FieldRule] = &[
    ("server", Rule::Required("")),
    ("path", Rule::Required("")),
    ("path", Rule::AlwaysFormat(absolute)),
];
pub(super) const HOST_PATH: &[FieldRule] = &[("", Rule::Custom(host_path))];
pub(super) const DISK: &[FieldRule] = &[("pdName", Rule::Required("")), ("partition", PARTITION)];
pub(super) const VOLUME_ID: &[FieldRule] =
    &[("volumeID", Rule::Required("")), ("partition", PARTITION)];
pub(super) const FLOCKER: &[FieldRule] = &[("", Rule::Custom(flocker))];
pub(super) const RBD: &[FieldRule] =
    &[("monitors", Rule::Required("")), ("image", Rule::Required(""))];
pub(super) const MONITORS: &[FieldRule] = &[("monitors", Rule::Required(""))];
pub(super) const QUOBYTE: &[FieldRule] = &[
    ("registry", Rule::Required("must be a host:port pair or multiple pairs separated by commas")),
    ("volume", Rule::Required("")),
];
pub(super) const FIBRE: &[FieldRule] = &[("", Rule::Custom(fibre_channel))];
pub(super) const FLEX: &[FieldRule] =
    &[("driver", Rule::Required("")), ("options", Rule::Custom(flex_options))];
pub(super) const VSPHERE: &[FieldRule] = &[("volumePath", Rule::Required(""))];
pub(super) const PHOTON: &[FieldRule] = &[("pdID", Rule::Required(""))];
pub(super) const PORTWORX: &[FieldRule] = &[("volumeID", Rule::Required(""))];
pub(super) const SCALE_IO: &[FieldRule] = &[
    ("gateway", Rule::Required("")),
    ("system", Rule::Required("")),
    ("volumeName", Rule::Required("")),
];
pub(super) const AZURE_DISK: &[FieldRule] = &[
    ("diskName", Rule::Required("")),
    ("diskURI", Rule::Required("")),
    ("cachingMode", Rule::OneOf(&["None", "ReadOnly", "ReadWrite"])),
    ("kind", Rule::OneOf(&["Dedicated", "Managed", "Shared"])),
    ("", Rule::Custom(azure_disk)),
];
pub(super) const GLUSTER: &[FieldRule] =
    &[("endpoints", Rule::Required("")), ("path", Rule::Required(""))];

/// Validates the sources in the order of a table; returns the number of accepted sources: 0 or 1.
pub(super) fn validate_sources(
    node: &Node<'_, '_>,
    table: &'static [VolumeSource],
    errors: &mut Errors,
    mut check_source: impl FnMut(&str, &Node<'_, '_>, &mut Errors),
) -> usize {
    let mut found = 0;
    for source in table {
        let value = node.get(source.field).value();
        if value.is_null() {
            continue;
        }
        if found > 0 {
            let detail = "may not specify more than 1 volume type";
            errors.forbidden(&node.get(source.surplus_name), detail);
        } else {
            found += 1;
            let at = node.child_with_value(source.path_name, value);
            walk(&at, source.rules, errors);
            check_source(source.field, &at, errors);
        }
    }
    found
}

fn absolute(path: &str) -> Vec<String> {
    if path.starts_with('/') { Vec::new() } else { vec!["must be an absolute path".to_owned()] }
}

fn flocker(node: &Node<'_, '_>, errors: &mut Errors) {
    let (name, uuid) = (node.text_of("datasetName"), node.text_of("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.required(node, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.invalid(node, "resource", detail);
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
        errors.invalid_value(&wwns, "targetWWNs and wwids can not be specified simultaneously");
    }
    if wwns.len() > 0 {
        let lun = node.get("lun");
        match lun.number() {
            None => errors.required(&lun, "lun is required if targetWWNs is specified"),
            Some(0..=255) => {}
            Some(_) => errors.invalid_value(&lun, "must be between 0 and 255, inclusive"),
        }
    }
}

fn host_path(node: &Node<'_, '_>, errors: &mut Errors) {
    let path = node.get("path");
    if path.text().is_empty() {
        errors.required(&path, "");
        return;
    }
    walk(
        node,
        &[
            ("path", Rule::AlwaysFormat(formats::path_without_backsteps)),
            ("type", Rule::OneOf(&HOST_PATHS)),
        ],
        errors,
    );
}

/// The problem of the name of an iSCSI initiator or target.
fn iscsi_name(name: &str) -> Option<&'static str> {
    let is_alphanumeric = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let is_valid = match name.get(..3) {
        Some("eui") => name.strip_prefix("eui.").is_some_and(|rest| is_alphanumeric(rest, 16)),
        Some("naa") => name.strip_prefix("naa.").is_some_and(|rest| is_alphanumeric(rest, 32)),
        Some("iqn") => is_iqn(name),
        _ => return Some("must be valid format starting with iqn, eui, or naa"),
    };
    (!is_valid).then_some("must be valid format")
}

/// `iqn.2006-01.com.example:name`.
fn is_iqn(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("iqn.") else { return false };
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let digits = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_digit())
    };
    let has_date =
        date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2));
    let domain = rest.split_once(':').map_or(rest, |(domain, _)| domain);
    has_date
        && !domain.is_empty()
        && domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}

/// Validates an iSCSI source.
pub(super) fn iscsi(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(node, &[("targetPortal", Rule::Required("")), ("iqn", Rule::Required(""))], errors);
    let iqn = node.get("iqn");
    if let Some(detail) = iscsi_name(iqn.text()).filter(|_| !iqn.text().is_empty()) {
        errors.invalid_value(&iqn, detail);
    }
    walk(node, &[("lun", Rule::Range(0, 255, "must be between 0 and 255, inclusive"))], errors);
    let authenticates = node.is_true("chapAuthDiscovery") || node.is_true("chapAuthSession");
    if authenticates && !node.has("secretRef") {
        errors.required(&node.get("secretRef"), "");
    }
    let initiator = node.get("initiatorName").value();
    if !initiator.is_null() {
        let at = node.child_with_value("initiatorname", initiator);
        if let Some(detail) = iscsi_name(at.text()) {
            errors.invalid_value(&at, detail);
        }
    }
}

/// Validates the name of a CSI driver.
pub(super) fn driver_name(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.text().is_empty() {
        errors.required(node, "");
        return;
    }
    if node.text().len() > 63 {
        errors.too_long(node, 63);
    }
    errors.add_problems(node, node.text(), formats::caseless_subdomain(node.text()));
}

/// Validates a `StorageOS` source.
pub(super) fn storage_os(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(
        node,
        &[
            ("volumeName", Rule::RequiredFormat(names::dns1123_label)),
            ("volumeNamespace", Rule::Format(names::dns1123_label)),
            ("secretRef", Rule::Fields(&[("name", Rule::Required(""))])),
        ],
        errors,
    );
}
