//! Sources of volumes: what pods and persistent volumes ask of them alike.

use super::super::rules::{Check, Errors, Node, Rule, formats, walk};
use mainstay_object::names;

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
pub(super) struct Source {
    /// Field of the volume.
    pub(super) field: &'static str,
    /// Name of the field in paths of its rules.
    pub(super) shown: &'static str,
    /// Name of the field when there is another source before it.
    pub(super) surplus: &'static str,
    /// What it must be.
    pub(super) checks: &'static [Check],
}

/// A source whose rules name its field.
pub(super) const fn source(field: &'static str, checks: &'static [Check]) -> Source {
    Source { field, shown: field, surplus: field, checks }
}

pub(super) const NFS: &[Check] =
    &[("server", Rule::Needed("")), ("path", Rule::Needed("")), ("path", Rule::Always(absolute))];
pub(super) const HOST_PATH: &[Check] = &[("", Rule::With(host_path))];
pub(super) const DISK: &[Check] = &[("pdName", Rule::Needed("")), ("partition", PARTITION)];
pub(super) const VOLUME_ID: &[Check] = &[("volumeID", Rule::Needed("")), ("partition", PARTITION)];
pub(super) const FLOCKER: &[Check] = &[("", Rule::With(flocker))];
pub(super) const RBD: &[Check] = &[("monitors", Rule::Needed("")), ("image", Rule::Needed(""))];
pub(super) const MONITORS: &[Check] = &[("monitors", Rule::Needed(""))];
pub(super) const QUOBYTE: &[Check] = &[
    ("registry", Rule::Needed("must be a host:port pair or multiple pairs separated by commas")),
    ("volume", Rule::Needed("")),
];
pub(super) const FIBRE: &[Check] = &[("", Rule::With(fibre_channel))];
pub(super) const FLEX: &[Check] =
    &[("driver", Rule::Needed("")), ("options", Rule::With(flex_options))];
pub(super) const VSPHERE: &[Check] = &[("volumePath", Rule::Needed(""))];
pub(super) const PHOTON: &[Check] = &[("pdID", Rule::Needed(""))];
pub(super) const PORTWORX: &[Check] = &[("volumeID", Rule::Needed(""))];
pub(super) const SCALE_IO: &[Check] = &[
    ("gateway", Rule::Needed("")),
    ("system", Rule::Needed("")),
    ("volumeName", Rule::Needed("")),
];
pub(super) const AZURE_DISK: &[Check] = &[
    ("diskName", Rule::Needed("")),
    ("diskURI", Rule::Needed("")),
    ("cachingMode", Rule::OneOf(&["None", "ReadOnly", "ReadWrite"])),
    ("kind", Rule::OneOf(&["Dedicated", "Managed", "Shared"])),
    ("", Rule::With(azure_disk)),
];
pub(super) const GLUSTER: &[Check] = &[("endpoints", Rule::Needed("")), ("path", Rule::Needed(""))];

/// Checks the sources in a row's order; returns how many there are.
pub(super) fn sources(
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

fn absolute(path: &str) -> Vec<String> {
    if path.starts_with('/') { Vec::new() } else { vec!["must be an absolute path".to_owned()] }
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

/// What is wrong with the name of an initiator or a target.
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
pub(super) fn iscsi(node: &Node<'_, '_>, errors: &mut Errors) {
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

/// The name of a driver of volumes.
pub(super) fn driver_name(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.text().is_empty() {
        errors.required(node, "");
        return;
    }
    if node.text().len() > 63 {
        errors.too_long(node, 63);
    }
    errors.each(node, node.text(), formats::caseless_subdomain(node.text()));
}

/// A volume of `StorageOS`.
pub(super) fn storage_os(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(
        node,
        &[
            ("volumeName", Rule::Named(names::dns1123_label)),
            ("volumeNamespace", Rule::Format(names::dns1123_label)),
            ("secretRef", Rule::Inside(&[("name", Rule::Needed(""))])),
        ],
        errors,
    );
}
