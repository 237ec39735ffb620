//! Validation of `PersistentVolumes`, `PersistentVolumeClaims`, `StorageClasses` and CSI objects.

use super::super::quantity;
use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, go_structs, immutable, one_of, quantities,
    selectors::{annotations, label_selector, labels, node_selector},
    semantically_equal, walk, walk_object,
};
use super::object_field;
use super::volume_sources::{
    self as sources, VolumeSource, driver_name, storage_os, volume_source,
};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::HashSet;

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: Rule = Rule::OneOf(&["Block", "Filesystem"]);
const CLASS: Rule = Rule::Format(names::dns1123_subdomain);
const INVALID_QUANTITY: &str = "must be a valid resource quantity";

/// A reference to a Secret in any namespace.
const SECRET: &[FieldRule] = &[
    ("name", Rule::RequiredFormat(names::dns1123_subdomain)),
    ("namespace", Rule::RequiredFormat(names::dns1123_label)),
];
const NAME_AND_NAMESPACE: &[FieldRule] =
    &[("name", Rule::Required("")), ("namespace", Rule::Required(""))];

/// The sources of `PersistentVolumes`, in the order of Kubernetes.
const VOLUME_SOURCES: &[VolumeSource] = &[
    volume_source("hostPath", sources::HOST_PATH),
    VolumeSource {
        field: "gcePersistentDisk",
        path_name: "persistentDisk",
        surplus_name: "gcePersistentDisk",
        rules: sources::DISK,
    },
    volume_source("awsElasticBlockStore", sources::VOLUME_ID),
    volume_source("glusterfs", sources::GLUSTER),
    volume_source("flocker", sources::FLOCKER),
    volume_source("nfs", sources::NFS),
    volume_source("rbd", sources::RBD),
    volume_source("quobyte", sources::QUOBYTE),
    VolumeSource {
        field: "cephfs",
        path_name: "cephfs",
        surplus_name: "cephFS",
        rules: sources::MONITORS,
    },
    volume_source("iscsi", &[("", Rule::Custom(sources::iscsi))]),
    volume_source(
        "cinder",
        &[("volumeID", Rule::Required("")), ("secretRef", Rule::Fields(NAME_AND_NAMESPACE))],
    ),
    volume_source("fc", sources::FIBRE),
    volume_source("flexVolume", sources::FLEX),
    volume_source(
        "azureFile",
        &[("secretName", Rule::Required("")), ("shareName", Rule::Required(""))],
    ),
    volume_source("vsphereVolume", sources::VSPHERE),
    volume_source("photonPersistentDisk", sources::PHOTON),
    volume_source("portworxVolume", sources::PORTWORX),
    volume_source("azureDisk", sources::AZURE_DISK),
    volume_source("scaleIO", sources::SCALE_IO),
    volume_source(
        "local",
        &[
            ("path", Rule::Required("")),
            ("path", Rule::AlwaysFormat(formats::path_without_backsteps)),
        ],
    ),
    volume_source("storageos", &[("", Rule::Custom(storage_os))]),
    volume_source(
        "csi",
        &[
            ("driver", Rule::Custom(driver_name)),
            ("volumeHandle", Rule::Required("")),
            ("controllerPublishSecretRef", Rule::Fields(SECRET)),
            ("controllerExpandSecretRef", Rule::Fields(SECRET)),
            ("nodePublishSecretRef", Rule::Fields(SECRET)),
            ("nodeExpandSecretRef", Rule::Fields(SECRET)),
        ],
    ),
];

fn access_modes(node: &Node<'_, '_>, errors: &mut Errors) {
    let (mut has_single_pod, mut others) = (false, false);
    for mode in node.items() {
        if !ACCESS_MODES.contains(&mode.text()) {
            errors.unsupported(node, mode.text(), &ACCESS_MODES);
        }
        has_single_pod |= mode.text() == "ReadWriteOncePod";
        others |= mode.text() != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode.text());
    }
    if has_single_pod && others {
        errors.forbidden(node, "may not use ReadWriteOncePod with other access modes");
    }
}

pub(in super::super) const VOLUME: &[FieldRule] = &[("spec", Rule::Custom(volume))];

fn volume(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (modes, capacity) = (spec.get("accessModes"), spec.get("capacity"));
    if modes.len() == 0 {
        errors.required(&modes, "");
    }
    access_modes(&modes, errors);
    if capacity.len() == 0 {
        errors.required(&capacity, "");
    }
    if !capacity.has("storage") || capacity.len() > 1 {
        errors.unsupported(&capacity, capacity.value().clone(), &["storage"]);
    }
    for (_, at) in capacity.entries() {
        let whole = quantities::nano(at.value()).div_euclid(1_000_000_000);
        if whole < 0 {
            errors.invalid(&at, i64::try_from(whole).unwrap_or(i64::MIN), INVALID_QUANTITY);
        }
        quantities::positive(&at, errors);
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    walk(&policy, &[("", Rule::OneOf(&["Delete", "Recycle", "Retain"]))], errors);
    let affinity = spec.get("nodeAffinity");
    if affinity.is_set() {
        let required = affinity.get("required");
        if required.is_set() {
            node_selector(&required, errors);
        } else {
            errors.required(&required, "must specify required node constraints");
        }
    }
    let found = sources::validate_sources(spec, VOLUME_SOURCES, errors, |field, _, errors| {
        if field == "local" && !affinity.is_set() {
            errors.required(&affinity, "Local volume requires node affinity");
        }
    });
    if found == 0 {
        errors.required(spec, "must specify a volume type");
    }
    let path = spec.get("hostPath").text_of("path");
    if !path.is_empty() && path.split('/').all(str::is_empty) && policy.text() == "Recycle" {
        errors.forbidden(&policy, "may not be 'recycle' for a hostPath mount of '/'");
    }
    walk(spec, &[("storageClassName", CLASS), ("volumeMode", VOLUME_MODES)], errors);
    let class = spec.get("volumeAttributesClassName");
    if class.is_set() {
        if class.text().is_empty() {
            errors.required(&class, "an empty string is disallowed");
        }
        walk(&class, &[("", CLASS)], errors);
        if !spec.has("csi") {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.required(&spec.get("csi"), detail);
        }
    }
}

pub(in super::super) fn volume_update(object: &Object, old: &Object, errors: &mut Errors) {
    // Kubernetes validates an update twice: as a creation and as an update.
    walk_object(object, VOLUME, errors);
    walk_object(object, VOLUME, errors);
    let (new, before) = (object_field(object, "spec"), object_field(old, "spec"));
    let spec = Node::top_level(new, "spec");
    let comparable_source = |spec: &Value, field: &str| -> Value {
        let mut source = spec.get(field).cloned().unwrap_or_default();
        let had = before.pointer("/csi/controllerExpandSecretRef").is_some();
        if field == "csi"
            && !had
            && let Some(fields) = source.as_object_mut()
        {
            // `controllerExpandSecretRef` may be added later.
            fields.remove("controllerExpandSecretRef");
        }
        source
    };
    if VOLUME_SOURCES.iter().any(|source| {
        !semantically_equal(
            &comparable_source(new, source.field),
            &comparable_source(before, source.field),
        )
    }) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.forbidden(&spec.get("persistentvolumesource"), detail);
    }
    let null = Value::Null;
    let old_of = |key: &str| before.get(key).unwrap_or(&null);
    immutable(
        &Node::top_level(spec.get("volumeMode").value(), "volumeMode"),
        old_of("volumeMode"),
        errors,
    );
    let affinity = spec.get("nodeAffinity").value();
    if !old_of("nodeAffinity").is_null() && !semantically_equal(affinity, old_of("nodeAffinity")) {
        let printed = go_structs::pointer("VolumeNodeAffinity", affinity);
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.printed(&Node::top_level(affinity, "nodeAffinity"), Some(printed), detail);
    }
    let class = spec.get("volumeAttributesClassName");
    if !class.is_set() && !old_of("volumeAttributesClassName").is_null() {
        errors.forbidden(&class, "update from non-nil value to nil is forbidden");
    }
}

pub(in super::super) const CLAIM: &[FieldRule] = &[("spec", Rule::Custom(claim_spec))];

/// Validates the spec of a `PersistentVolumeClaim`.
pub(super) fn claim_spec(spec: &Node<'_, '_>, errors: &mut Errors) {
    let modes = spec.get("accessModes");
    if modes.len() == 0 {
        errors.required(&modes, "at least 1 access mode is required");
    }
    label_selector(&spec.get("selector"), errors);
    access_modes(&modes, errors);
    let resources = spec.get("resources");
    let wanted = resources.get("requests").get("storage").value();
    let root = Node::root(wanted);
    let storage = resources.key("storage");
    if wanted.is_null() {
        errors.required(&storage, "");
    } else if quantities::nano(root.value()) <= 0 {
        let detail = super::super::rules::ABOVE_ZERO;
        errors.invalid(&storage, &*quantities::text(wanted), detail);
    }
    walk(spec, &[("storageClassName", CLASS), ("volumeMode", VOLUME_MODES)], errors);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for node in [&source, &reference] {
        if node.is_set() {
            data_source(node, errors);
        }
    }
    let namespace = reference.get("namespace");
    if !namespace.text().is_empty() {
        errors.add_problems(&namespace, namespace.text(), names::dns1123_label(namespace.text()));
    }
    let detail = if namespace.text().is_empty() {
        let differs = ["apiGroup", "kind", "name"]
            .iter()
            .any(|key| source.get(key).value() != reference.get(key).value());
        (source.is_set() && reference.is_set() && differs).then_some("must match dataSourceRef")
    } else {
        source.is_set().then_some("may not be specified when dataSourceRef.namespace is specified")
    };
    if let Some(detail) = detail {
        // Kubernetes prints the path as the value, which is a struct without exported fields.
        errors.printed(spec, Some("{}".to_owned()), detail);
    }
    walk(spec, &[("volumeAttributesClassName", CLASS)], errors);
}

fn data_source(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(node, &[("name", Rule::Required("")), ("kind", Rule::Required(""))], errors);
    let group = node.get("apiGroup");
    if group.text().is_empty() && node.text_of("kind") != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid(node, node.text_of("kind"), detail);
    }
    walk(&group, &[("", CLASS)], errors);
}

/// Validates the claim template of an ephemeral volume.
pub(super) fn claim_template(node: &Node<'_, '_>, errors: &mut Errors) {
    let metadata = node.get("metadata");
    annotations(&metadata.get("annotations"), errors);
    labels(&metadata.get("labels"), errors);
    for (key, _) in metadata.map().into_iter().flatten() {
        if !matches!(key.as_str(), "annotations" | "labels" | "creationTimestamp") {
            errors.forbidden(&metadata.get(key), "cannot be set");
        }
    }
    claim_spec(&node.get("spec"), errors);
}

pub(in super::super) fn claim_update(object: &Object, old: &Object, errors: &mut Errors) {
    const ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
    walk_object(object, CLAIM, errors);
    let (mut new, mut before) =
        (object_field(object, "spec").clone(), object_field(old, "spec").clone());
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if text(&before, "volumeName").is_none_or(|name| name.is_empty()) {
        set_or_remove(&mut before, "volumeName", new.get("volumeName").cloned());
    }
    let annotation = |object: &Object| object.annotation(ANNOTATION).map(str::to_owned);
    let (class, class_before) = (text(&new, "storageClassName"), text(&before, "storageClassName"));
    let from_annotation = annotation(old).is_some()
        && class_before.is_none()
        && class == annotation(old)
        && annotation(object).is_none_or(|found| Some(found) == annotation(old));
    if from_annotation {
        set_or_remove(&mut new, "storageClassName", None);
    } else {
        let (found, expected) = (annotation(object), annotation(old));
        if found.clone().unwrap_or_default() != expected.clone().unwrap_or_default() {
            let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
            let annotations = metadata.get("annotations");
            let at = annotations.get(ANNOTATION);
            errors.invalid(&at, found.unwrap_or_default(), super::IMMUTABLE);
        }
        if class.is_some() && class_before.is_none() && (expected.is_none() || expected == class) {
            set_or_remove(&mut new, "storageClassName", before.get("storageClassName").cloned());
        }
    }
    let is_bound = object.str(&["status", "phase"]) == Some("Bound");
    let size = |value: &Value| value.pointer("/resources/requests/storage").cloned();
    let (size_now, size_before) = (size(&new), size(&before));
    if is_bound {
        if let Some(requests) = new.pointer_mut("/resources/requests") {
            set_or_remove(requests, "storage", size_before.clone());
        }
        set_or_remove(
            &mut new,
            "volumeAttributesClassName",
            before.get("volumeAttributesClassName").cloned(),
        );
    }
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    if !semantically_equal(&new, &before) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.forbidden(&spec, detail);
    }
    let nano = |value: Option<&Value>| value.map_or(0, quantities::nano);
    if nano(size_now.as_ref()) < nano(size_before.as_ref())
        && nano(size_now.as_ref()) <= nano(old.get(&["status", "capacity", "storage"]))
    {
        let resources = spec.get("resources");
        let requests = resources.get("requests");
        let detail = "field can not be less than status.capacity";
        errors.forbidden(&requests.get("storage"), detail);
    }
    let mode = spec.get("volumeMode").value();
    let mode_before = before.get("volumeMode").cloned().unwrap_or_default();
    immutable(&Node::top_level(mode, "volumeMode"), &mode_before, errors);
    attributes_class(&spec, old, errors);
}

fn attributes_class(spec: &Node<'_, '_>, old: &Object, errors: &mut Errors) {
    let class = spec.get("volumeAttributesClassName");
    let before = object_field(old, "spec").get("volumeAttributesClassName").unwrap_or(&Value::Null);
    let current = old.get(&["status", "currentVolumeAttributesClassName"]);
    if class.value() == before || current.is_none() {
        return;
    }
    if !class.is_set() {
        let detail =
            "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil";
        errors.forbidden(&class, detail);
    } else if class.text().is_empty() {
        let detail = "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil";
        errors.forbidden(&class, detail);
    }
}

fn set_or_remove(value: &mut Value, key: &str, new: Option<Value>) {
    let Some(fields) = value.as_object_mut() else { return };
    match new {
        Some(new) => fields.insert(key.to_owned(), new),
        None => fields.remove(key),
    };
}

pub(in super::super) const STORAGE_CLASS: &[FieldRule] = &[
    ("provisioner", Rule::RequiredFormat(formats::caseless_qualified)),
    ("parameters", Rule::Custom(parameters)),
    ("reclaimPolicy", Rule::Custom(reclaim_policy)),
    ("volumeBindingMode", Rule::OneOf(&["Immediate", "WaitForFirstConsumer"])),
    ("allowedTopologies", Rule::Custom(topologies)),
];

fn reclaim_policy(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.text().is_empty() {
        one_of(node, &["Delete", "Retain"], errors);
    }
}

fn parameters(node: &Node<'_, '_>, errors: &mut Errors) {
    const MAX_SIZE: usize = 256 * 1024;
    if node.len() > 512 {
        errors.too_long(node, 512);
    }
    let mut size = 0;
    for (key, value) in node.map().into_iter().flatten() {
        if key.is_empty() {
            errors.invalid(node, "", "field can not be empty.");
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_SIZE {
        errors.too_long(node, MAX_SIZE);
    }
}

fn topologies(node: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen: HashSet<&Value> = HashSet::new();
    for term in node.items() {
        let expressions = term.get("matchLabelExpressions");
        let mut keys = HashSet::new();
        for expression in expressions.items() {
            let (key, values) = (expression.get("key"), expression.get("values"));
            if values.len() == 0 {
                errors.required(&values, "");
            }
            let mut found = HashSet::new();
            for value in values.items() {
                if found.contains(&value.text()) {
                    errors.duplicate(&value, value.text());
                }
                found.insert(value.text());
            }
            errors.add_problems(&key, key.text(), names::qualified_name(key.text()));
            if keys.contains(&key.text()) {
                errors.duplicate(&key, key.text());
            }
            keys.insert(key.text());
        }
        // An empty term counts as a duplicate.
        if expressions.len() == 0 || seen.contains(&expressions.value()) {
            errors.duplicate(&expressions, "");
        }
        seen.insert(expressions.value());
    }
}

pub(in super::super) fn class_update(object: &Object, old: &Object, errors: &mut Errors) {
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if !semantically_equal(object_field(object, field), object_field(old, field)) {
            let detail = format!("updates to {field} are forbidden.");
            errors.forbidden(&Node::top_level(object_field(object, field), field), detail);
        }
    }
    let field = "volumeBindingMode";
    immutable(
        &Node::top_level(object_field(object, field), field),
        object_field(old, field),
        errors,
    );
}

pub(in super::super) const ATTRIBUTES_CLASS: &[FieldRule] = &[
    ("driverName", Rule::RequiredFormat(formats::caseless_qualified)),
    ("parameters", Rule::Custom(parameters)),
    ("parameters", Rule::Required("must contain at least one key/value pair")),
];

pub(in super::super) fn attributes_class_update(
    object: &Object,
    old: &Object,
    errors: &mut Errors,
) {
    for field in ["driverName", "parameters"] {
        if !semantically_equal(object_field(object, field), object_field(old, field)) {
            let detail = format!("updates to {field} are forbidden.");
            errors.forbidden(&Node::top_level(object_field(object, field), field), detail);
        }
    }
    walk_object(object, ATTRIBUTES_CLASS, errors);
}

pub(in super::super) const DRIVER: &[FieldRule] = &[("spec", Rule::Custom(driver))];

fn driver(spec: &Node<'_, '_>, errors: &mut Errors) {
    const POLICIES: [&str; 3] = ["File", "None", "ReadWriteOnceWithFSType"];
    walk(spec, &[("fsGroupPolicy", Rule::OneOf(&POLICIES))], errors);
    let requests = spec.get("tokenRequests");
    let mut audiences = HashSet::new();
    for request in requests.items() {
        let audience = request.text_of("audience");
        if audiences.contains(&audience) {
            errors.duplicate(&request.get("audience"), audience);
            continue;
        }
        audiences.insert(audience);
        let seconds = request.get("expirationSeconds");
        match seconds.number() {
            Some(..600) => {
                errors.invalid_value(&seconds, "may not specify a duration less than 10 minutes");
            }
            Some(0x1_0000_0001..) => {
                errors
                    .invalid_value(&seconds, "may not specify a duration larger than 2^32 seconds");
            }
            _ => {}
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items().filter(|mode| !matches!(mode.text(), "Persistent" | "Ephemeral")) {
        errors.unsupported(&modes, mode.text(), &["Persistent", "Ephemeral"]);
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.number().is_some_and(|period| period < 10) {
        errors.invalid_value(&period, "must be greater than or equal to 10 seconds");
    }
    let secrets = spec.get("serviceAccountTokenInSecrets");
    if secrets.is_set() && requests.len() == 0 {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid_value(&secrets, detail);
    }
}

pub(in super::super) fn driver_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, DRIVER, errors);
    let (new, before) = (object_field(object, "spec"), object_field(old, "spec"));
    let spec = Node::top_level(new, "spec");
    for (field, path_name) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let value = spec.get(field).value();
        immutable(
            &spec.child_with_value(path_name, value),
            before.get(field).unwrap_or(&Value::Null),
            errors,
        );
    }
}

pub(in super::super) const CSI_NODE: &[FieldRule] = &[("spec", Rule::Custom(csi_node))];

fn csi_node(spec: &Node<'_, '_>, errors: &mut Errors) {
    let drivers = spec.get("drivers");
    let mut seen = HashSet::new();
    for driver in drivers.items() {
        driver_name(&driver.get("name"), errors);
        let id = driver.get("nodeID");
        if id.text().is_empty() {
            errors.required(&id, "");
        }
        if id.text().len() > 256 {
            errors.invalid_value(&id, "must be 256 characters or less");
        }
        walk(&driver.get("allocatable"), &[("count", Rule::NotNegative)], errors);
        if seen.contains(&driver.text_of("name")) {
            errors.duplicate(&driver.get("name"), driver.text_of("name"));
        }
        seen.insert(driver.text_of("name"));
        let keys = driver.get("topologyKeys");
        let mut found = HashSet::new();
        for key in keys.items() {
            if key.text().is_empty() {
                errors.required(&driver, "");
            }
            if found.contains(&key.text()) {
                errors.duplicate(&driver, key.text());
            }
            found.insert(key.text());
            errors.add_problems(&driver, key.text(), names::qualified_name(key.text()));
        }
    }
}

pub(in super::super) const CAPACITY: &[FieldRule] = &[
    ("nodeTopology", Rule::Custom(label_selector)),
    ("storageClassName", Rule::AlwaysFormat(names::dns1123_subdomain)),
    ("capacity", Rule::Custom(capacity)),
];

fn capacity(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() && quantity::parse_nano(&quantities::text(node.value())).is_some() {
        quantities::not_negative(node, errors);
    }
}

pub(in super::super) fn capacity_update(object: &Object, old: &Object, errors: &mut Errors) {
    for field in ["nodeTopology", "storageClassName"] {
        immutable(
            &Node::top_level(object_field(object, field), field),
            object_field(old, field),
            errors,
        );
    }
}
