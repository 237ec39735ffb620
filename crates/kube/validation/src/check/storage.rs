//! Volumes, claims to them, their classes and drivers.

use super::super::quantity;
use super::super::rules::{
    Check, Errors, Node, Rule, amounts, formats, forms, immutable, one_of, same,
    selectors::{annotations, label_selector, labels, node_selector},
    walk, walk_object,
};
use super::view;
use super::volume_sources::{self as sources, Source, driver_name, source, storage_os};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::HashSet;

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: Rule = Rule::OneOf(&["Block", "Filesystem"]);
const CLASS: Rule = Rule::Format(names::dns1123_subdomain);
const NEGATIVE: &str = "must be a valid resource quantity";

/// A secret in any namespace.
const SECRET: &[Check] = &[
    ("name", Rule::Named(names::dns1123_subdomain)),
    ("namespace", Rule::Named(names::dns1123_label)),
];
const NAME_AND_NAMESPACE: &[Check] = &[("name", Rule::Needed("")), ("namespace", Rule::Needed(""))];

/// Sources of volumes of the cluster, in the order in which the original looks at them.
const SOURCES: &[Source] = &[
    source("hostPath", sources::HOST_PATH),
    Source {
        field: "gcePersistentDisk",
        shown: "persistentDisk",
        surplus: "gcePersistentDisk",
        checks: sources::DISK,
    },
    source("awsElasticBlockStore", sources::VOLUME_ID),
    source("glusterfs", sources::GLUSTER),
    source("flocker", sources::FLOCKER),
    source("nfs", sources::NFS),
    source("rbd", sources::RBD),
    source("quobyte", sources::QUOBYTE),
    Source { field: "cephfs", shown: "cephfs", surplus: "cephFS", checks: sources::MONITORS },
    source("iscsi", &[("", Rule::With(sources::iscsi))]),
    source(
        "cinder",
        &[("volumeID", Rule::Needed("")), ("secretRef", Rule::Inside(NAME_AND_NAMESPACE))],
    ),
    source("fc", sources::FIBRE),
    source("flexVolume", sources::FLEX),
    source("azureFile", &[("secretName", Rule::Needed("")), ("shareName", Rule::Needed(""))]),
    source("vsphereVolume", sources::VSPHERE),
    source("photonPersistentDisk", sources::PHOTON),
    source("portworxVolume", sources::PORTWORX),
    source("azureDisk", sources::AZURE_DISK),
    source("scaleIO", sources::SCALE_IO),
    source("local", &[("path", Rule::Needed("")), ("path", Rule::Always(formats::no_backsteps))]),
    source("storageos", &[("", Rule::With(storage_os))]),
    source(
        "csi",
        &[
            ("driver", Rule::With(driver_name)),
            ("volumeHandle", Rule::Needed("")),
            ("controllerPublishSecretRef", Rule::Inside(SECRET)),
            ("controllerExpandSecretRef", Rule::Inside(SECRET)),
            ("nodePublishSecretRef", Rule::Inside(SECRET)),
            ("nodeExpandSecretRef", Rule::Inside(SECRET)),
        ],
    ),
];

fn access_modes(node: &Node<'_, '_>, errors: &mut Errors) {
    let (mut alone, mut others) = (false, false);
    for mode in node.items() {
        if !MODES.contains(&mode.text()) {
            errors.unsupported(node, mode.text(), &MODES);
        }
        alone |= mode.text() == "ReadWriteOncePod";
        others |= mode.text() != "ReadWriteOncePod" && MODES.contains(&mode.text());
    }
    if alone && others {
        errors.forbidden(node, "may not use ReadWriteOncePod with other access modes");
    }
}

pub(in super::super) const VOLUME: &[Check] = &[("spec", Rule::With(volume))];

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
        let whole = amounts::nano(at.value()).div_euclid(1_000_000_000);
        if whole < 0 {
            errors.invalid(&at, i64::try_from(whole).unwrap_or(i64::MIN), NEGATIVE);
        }
        amounts::positive(&at, errors);
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
    let found = sources::sources(spec, SOURCES, errors, |field, _, errors| {
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
            let words = "has to be specified when using volumeAttributesClassName";
            errors.required(&spec.get("csi"), words);
        }
    }
}

pub(in super::super) fn volume_update(object: &Object, old: &Object, errors: &mut Errors) {
    // As the original does: once as a new one, once as a changed one.
    walk_object(object, VOLUME, errors);
    walk_object(object, VOLUME, errors);
    let (new, before) = (view(object, "spec"), view(old, "spec"));
    let spec = Node::top(new, "spec");
    let of = |spec: &Value, field: &str| -> Value {
        let mut source = spec.get(field).cloned().unwrap_or_default();
        let had = before.pointer("/csi/controllerExpandSecretRef").is_some();
        if field == "csi"
            && !had
            && let Some(fields) = source.as_object_mut()
        {
            // It may be added later.
            fields.remove("controllerExpandSecretRef");
        }
        source
    };
    if SOURCES.iter().any(|source| !same(&of(new, source.field), &of(before, source.field))) {
        let words = "spec.persistentvolumesource is immutable after creation";
        errors.forbidden(&spec.get("persistentvolumesource"), words);
    }
    let null = Value::Null;
    let old_of = |key: &str| before.get(key).unwrap_or(&null);
    immutable(
        &Node::top(spec.get("volumeMode").value(), "volumeMode"),
        old_of("volumeMode"),
        errors,
    );
    let affinity = spec.get("nodeAffinity").value();
    if !old_of("nodeAffinity").is_null() && !same(affinity, old_of("nodeAffinity")) {
        let printed = forms::pointer("VolumeNodeAffinity", affinity);
        let words = "field is immutable, except for updating from beta label to GA";
        errors.printed(&Node::top(affinity, "nodeAffinity"), Some(printed), words);
    }
    let class = spec.get("volumeAttributesClassName");
    if !class.is_set() && !old_of("volumeAttributesClassName").is_null() {
        errors.forbidden(&class, "update from non-nil value to nil is forbidden");
    }
}

pub(in super::super) const CLAIM: &[Check] = &[("spec", Rule::With(claim_spec))];

/// What is wanted of a volume.
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
    } else if amounts::nano(root.value()) <= 0 {
        let words = super::super::rules::ABOVE_ZERO;
        errors.invalid(&storage, &*amounts::text(wanted), words);
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
        errors.each(&namespace, namespace.text(), names::dns1123_label(namespace.text()));
    }
    let words = if namespace.text().is_empty() {
        let differs = ["apiGroup", "kind", "name"]
            .iter()
            .any(|key| source.get(key).value() != reference.get(key).value());
        (source.is_set() && reference.is_set() && differs).then_some("must match dataSourceRef")
    } else {
        source.is_set().then_some("may not be specified when dataSourceRef.namespace is specified")
    };
    if let Some(words) = words {
        // The original shows the field's path as the value, which is a struct without fields.
        errors.printed(spec, Some("{}".to_owned()), words);
    }
    walk(spec, &[("volumeAttributesClassName", CLASS)], errors);
}

fn data_source(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(node, &[("name", Rule::Needed("")), ("kind", Rule::Needed(""))], errors);
    let group = node.get("apiGroup");
    if group.text().is_empty() && node.text_of("kind") != "PersistentVolumeClaim" {
        let words = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid(node, node.text_of("kind"), words);
    }
    walk(&group, &[("", CLASS)], errors);
}

/// A template of a claim, in a pod's volume.
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
    let (mut new, mut before) = (view(object, "spec").clone(), view(old, "spec").clone());
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if text(&before, "volumeName").is_none_or(|name| name.is_empty()) {
        put(&mut before, "volumeName", new.get("volumeName").cloned());
    }
    let annotation = |object: &Object| object.annotation(ANNOTATION).map(str::to_owned);
    let (class, class_before) = (text(&new, "storageClassName"), text(&before, "storageClassName"));
    let from_annotation = annotation(old).is_some()
        && class_before.is_none()
        && class == annotation(old)
        && annotation(object).is_none_or(|found| Some(found) == annotation(old));
    if from_annotation {
        put(&mut new, "storageClassName", None);
    } else {
        let (found, expected) = (annotation(object), annotation(old));
        if found.clone().unwrap_or_default() != expected.clone().unwrap_or_default() {
            let metadata = Node::top(view(object, "metadata"), "metadata");
            let annotations = metadata.get("annotations");
            let at = annotations.get(ANNOTATION);
            errors.invalid(&at, found.unwrap_or_default(), super::IMMUTABLE);
        }
        if class.is_some() && class_before.is_none() && (expected.is_none() || expected == class) {
            put(&mut new, "storageClassName", before.get("storageClassName").cloned());
        }
    }
    let bound = object.str(&["status", "phase"]) == Some("Bound");
    let size = |value: &Value| value.pointer("/resources/requests/storage").cloned();
    let (size_now, size_before) = (size(&new), size(&before));
    if bound {
        if let Some(requests) = new.pointer_mut("/resources/requests") {
            put(requests, "storage", size_before.clone());
        }
        put(
            &mut new,
            "volumeAttributesClassName",
            before.get("volumeAttributesClassName").cloned(),
        );
    }
    let spec = Node::top(view(object, "spec"), "spec");
    if !same(&new, &before) {
        let words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.forbidden(&spec, words);
    }
    let nano = |value: Option<&Value>| value.map_or(0, amounts::nano);
    if nano(size_now.as_ref()) < nano(size_before.as_ref())
        && nano(size_now.as_ref()) <= nano(old.get(&["status", "capacity", "storage"]))
    {
        let resources = spec.get("resources");
        let requests = resources.get("requests");
        let words = "field can not be less than status.capacity";
        errors.forbidden(&requests.get("storage"), words);
    }
    let mode = spec.get("volumeMode").value();
    let mode_before = before.get("volumeMode").cloned().unwrap_or_default();
    immutable(&Node::top(mode, "volumeMode"), &mode_before, errors);
    attributes_class(&spec, old, errors);
}

fn attributes_class(spec: &Node<'_, '_>, old: &Object, errors: &mut Errors) {
    let class = spec.get("volumeAttributesClassName");
    let before = view(old, "spec").get("volumeAttributesClassName").unwrap_or(&Value::Null);
    let current = old.get(&["status", "currentVolumeAttributesClassName"]);
    if class.value() == before || current.is_none() {
        return;
    }
    if !class.is_set() {
        let words =
            "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil";
        errors.forbidden(&class, words);
    } else if class.text().is_empty() {
        let words = "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil";
        errors.forbidden(&class, words);
    }
}

fn put(value: &mut Value, key: &str, new: Option<Value>) {
    let Some(fields) = value.as_object_mut() else { return };
    match new {
        Some(new) => fields.insert(key.to_owned(), new),
        None => fields.remove(key),
    };
}

pub(in super::super) const CLASSES: &[Check] = &[
    ("provisioner", Rule::Named(formats::caseless_qualified)),
    ("parameters", Rule::With(parameters)),
    ("reclaimPolicy", Rule::With(reclaim_policy)),
    ("volumeBindingMode", Rule::OneOf(&["Immediate", "WaitForFirstConsumer"])),
    ("allowedTopologies", Rule::With(topologies)),
];

fn reclaim_policy(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.text().is_empty() {
        one_of(node, &["Delete", "Retain"], errors);
    }
}

fn parameters(node: &Node<'_, '_>, errors: &mut Errors) {
    const MOST: usize = 256 * 1024;
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
    if size > MOST {
        errors.too_long(node, MOST);
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
            errors.each(&key, key.text(), names::qualified_name(key.text()));
            if keys.contains(&key.text()) {
                errors.duplicate(&key, key.text());
            }
            keys.insert(key.text());
        }
        // A term that says nothing is found twice.
        if expressions.len() == 0 || seen.contains(&expressions.value()) {
            errors.duplicate(&expressions, "");
        }
        seen.insert(expressions.value());
    }
}

pub(in super::super) fn class_update(object: &Object, old: &Object, errors: &mut Errors) {
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if !same(view(object, field), view(old, field)) {
            let words = format!("updates to {field} are forbidden.");
            errors.forbidden(&Node::top(view(object, field), field), words);
        }
    }
    let field = "volumeBindingMode";
    immutable(&Node::top(view(object, field), field), view(old, field), errors);
}

pub(in super::super) const ATTRIBUTES_CLASS: &[Check] = &[
    ("driverName", Rule::Named(formats::caseless_qualified)),
    ("parameters", Rule::With(parameters)),
    ("parameters", Rule::Needed("must contain at least one key/value pair")),
];

pub(in super::super) fn attributes_class_update(
    object: &Object,
    old: &Object,
    errors: &mut Errors,
) {
    for field in ["driverName", "parameters"] {
        if !same(view(object, field), view(old, field)) {
            let words = format!("updates to {field} are forbidden.");
            errors.forbidden(&Node::top(view(object, field), field), words);
        }
    }
    walk_object(object, ATTRIBUTES_CLASS, errors);
}

pub(in super::super) const DRIVER: &[Check] = &[("spec", Rule::With(driver))];

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
                errors.wrong(&seconds, "may not specify a duration less than 10 minutes");
            }
            Some(0x1_0000_0001..) => {
                errors.wrong(&seconds, "may not specify a duration larger than 2^32 seconds");
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
        errors.wrong(&period, "must be greater than or equal to 10 seconds");
    }
    let secrets = spec.get("serviceAccountTokenInSecrets");
    if secrets.is_set() && requests.len() == 0 {
        let words = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.wrong(&secrets, words);
    }
}

pub(in super::super) fn driver_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, DRIVER, errors);
    let (new, before) = (view(object, "spec"), view(old, "spec"));
    let spec = Node::top(new, "spec");
    for (field, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let value = spec.get(field).value();
        immutable(&spec.named(shown, value), before.get(field).unwrap_or(&Value::Null), errors);
    }
}

pub(in super::super) const CSI_NODE: &[Check] = &[("spec", Rule::With(csi_node))];

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
            errors.wrong(&id, "must be 256 characters or less");
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
            errors.each(&driver, key.text(), names::qualified_name(key.text()));
        }
    }
}

pub(in super::super) const CAPACITY: &[Check] = &[
    ("nodeTopology", Rule::With(label_selector)),
    ("storageClassName", Rule::Always(names::dns1123_subdomain)),
    ("capacity", Rule::With(capacity)),
];

fn capacity(node: &Node<'_, '_>, errors: &mut Errors) {
    if node.is_set() && quantity::nano(&amounts::text(node.value())).is_some() {
        amounts::not_negative(node, errors);
    }
}

pub(in super::super) fn capacity_update(object: &Object, old: &Object, errors: &mut Errors) {
    for field in ["nodeTopology", "storageClassName"] {
        immutable(&Node::top(view(object, field), field), view(old, field), errors);
    }
}
