//! Kinds of the core group that make no pods.

use super::super::fields::{has, items, part, text};
use super::super::quantity;
use super::{Errors, NOT_NEGATIVE, field, immutable};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::{FieldError, FieldErrorKind, FieldPath, Object};
use serde_json::{Map, Value};

/// The most bytes that all values of a Secret or ConfigMap may have together.
const MOST_DATA: usize = 1024 * 1024;
const KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const WHEN_IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// Keys of secrets and config maps.
fn keys(data: &Map<String, Value>, path: &FieldPath, errors: &mut Errors) {
    for key in data.keys() {
        let path = path.key(key);
        let mut refuse = |words: &str| errors.push(FieldError::invalid(&path, key.as_str(), words));
        if key.len() > 253 {
            refuse("must be no more than 253 characters");
        }
        if key.is_empty()
            || !key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        {
            refuse(KEY_RULE);
        }
        if key == "." {
            refuse("must not be '.'");
        } else if key == ".." {
            refuse("must not be '..'");
        } else if key.starts_with("..") {
            refuse("must not start with '..'");
        }
    }
}

fn too_large(size: usize, path: &str, errors: &mut Errors) {
    if size > MOST_DATA {
        let kind = FieldErrorKind::TooLong(Some(MOST_DATA as u64));
        errors.push(FieldError::new(&FieldPath::new(path), kind, ""));
    }
}

fn map<'a>(object: &'a Object, key: &str) -> &'a Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    object.fields().get(key).and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// Bytes of one value of a Secret.
fn decoded(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => Some(Vec::new()),
        // Go's decoder ignores line ends inside.
        Value::String(text) => STANDARD.decode(text.replace(['\n', '\r'], "")).ok(),
        _ => None,
    }
}

pub(in super::super) fn secret(object: &Object, errors: &mut Errors) {
    let (data, path) = (map(object, "data"), FieldPath::new("data"));
    let mut size = 0;
    for (key, value) in data {
        match decoded(value) {
            Some(bytes) => size += bytes.len(),
            None => errors.push(FieldError::invalid(
                &path.key(key),
                "<secret contents redacted>",
                "must be base64 data",
            )),
        }
    }
    keys(data, &path, errors);
    too_large(size, "data", errors);
    let needed: &[&str] = match object.str(&["type"]).unwrap_or_default() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        // One of the two is enough.
        "kubernetes.io/basic-auth"
            if !data.contains_key("username") && !data.contains_key("password") =>
        {
            &["username", "password"]
        }
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if object.annotation(key).is_none_or(str::is_empty) {
                let path = FieldPath::new("metadata").child("annotations").key(key);
                errors.push(FieldError::required(&path, ""));
            }
            &[]
        }
        _ => &[],
    };
    for key in needed {
        match data.get(*key).and_then(decoded) {
            None => errors.push(FieldError::required(&path.key(key), "")),
            Some(bytes)
                if key.starts_with(".docker")
                    && serde_json::from_slice::<Value>(&bytes).is_err() =>
            {
                let words = "must be valid JSON";
                let value = "<secret contents redacted>";
                errors.push(FieldError::invalid(&path.key(key), value, words));
            }
            Some(_) => {}
        }
    }
}

pub(in super::super) fn secret_update(object: &Object, old: &Object, errors: &mut Errors) {
    immutable(field(object, "type"), field(old, "type"), &FieldPath::new("type"), errors);
    frozen(object, old, &["data"], errors);
}

/// What was made immutable stays as it is.
fn frozen(object: &Object, old: &Object, data: &[&str], errors: &mut Errors) {
    if old.bool(&["immutable"]) != Some(true) {
        return;
    }
    let refuse = |key: &str| FieldError::forbidden(&FieldPath::new(key), WHEN_IMMUTABLE);
    if object.bool(&["immutable"]) != Some(true) {
        errors.push(refuse("immutable"));
    }
    for key in data {
        if map(object, key) != map(old, key) {
            errors.push(refuse(key));
        }
    }
}

pub(in super::super) fn config_map(object: &Object, errors: &mut Errors) {
    let (data, binary) = (map(object, "data"), map(object, "binaryData"));
    let path = FieldPath::new("data");
    keys(data, &path, errors);
    for key in data.keys().filter(|key| binary.contains_key(*key)) {
        let words = "duplicate of key present in binaryData";
        errors.push(FieldError::invalid(&path.key(key), key.as_str(), words));
    }
    keys(binary, &FieldPath::new("binaryData"), errors);
    let texts = data.values().map(|value| value.as_str().map_or(0, str::len));
    let bytes = binary.values().map(|value| decoded(value).map_or(0, |bytes| bytes.len()));
    too_large(texts.chain(bytes).sum(), "", errors);
}

pub(in super::super) fn config_map_update(object: &Object, old: &Object, errors: &mut Errors) {
    frozen(object, old, &["data", "binaryData"], errors);
}

/// An event stands in the namespace of what it is about; cluster-scoped things in `default`.
pub(in super::super) fn event(object: &Object, errors: &mut Errors) {
    let about = object.str(&["involvedObject", "namespace"]).unwrap_or_default();
    let fits = match about {
        "" => matches!(object.namespace(), "default" | ""),
        namespace => namespace == object.namespace(),
    };
    // Events of the newer group are about cluster-scoped things in any system namespace.
    let newer = object.get(&["eventTime"]).is_some_and(|time| !time.is_null());
    let system = about.is_empty() && object.namespace() == "kube-system";
    if !(fits || newer && system) {
        let field = FieldPath::new("involvedObject").child("namespace");
        errors.push(FieldError::invalid(&field, about, "does not match event.namespace"));
    }
}

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(in super::super) fn volume_claim(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    let modes = items(spec, "accessModes");
    if modes.is_empty() {
        let words = "at least 1 access mode is required";
        errors.push(FieldError::required(&path.child("accessModes"), words));
    }
    for mode in modes.iter().filter_map(Value::as_str).filter(|mode| !ACCESS_MODES.contains(mode)) {
        let field = path.child("accessModes");
        errors.push(FieldError::not_supported(&field, mode, &ACCESS_MODES));
    }
    let field = path.child("resources").key("storage");
    match part(part(part(spec, "resources"), "requests"), "storage") {
        Value::Null => errors.push(FieldError::required(&field, "")),
        value => {
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            if quantity::nano(&text).is_none_or(|amount| amount <= 0) {
                errors.push(FieldError::invalid(&field, text, "must be greater than zero"));
            }
        }
    }
}

pub(in super::super) fn volume_claim_update(object: &Object, old: &Object, errors: &mut Errors) {
    const CHANGEABLE: [&str; 3] = ["resources", "volumeName", "volumeAttributesClassName"];
    let fixed = |object: &Object| {
        let mut spec = field(object, "spec").clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|key, _| !CHANGEABLE.contains(&key.as_str()));
        }
        spec
    };
    let bound = |object: &Object| text(field(object, "spec"), "volumeName").to_owned();
    let rebound = !bound(old).is_empty() && bound(object) != bound(old);
    // A class may be filled in later, once.
    let (new, before) = (fixed(object), fixed(old));
    let class_added = !has(&before, "storageClassName") && {
        let mut without = new.clone();
        without.as_object_mut().and_then(|fields| fields.remove("storageClassName"));
        without == before
    };
    if rebound || (new != before && !class_added) {
        let words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden(&FieldPath::new("spec"), words));
    }
}

pub(in super::super) fn quota(object: &Object, errors: &mut Errors) {
    let path = FieldPath::new("spec").child("hard");
    let hard = part(field(object, "spec"), "hard").as_object();
    for (resource, value) in hard.into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        if quantity::nano(&text).is_some_and(|amount| amount < 0) {
            errors.push(FieldError::invalid(&path.key(resource), text, NOT_NEGATIVE));
        }
    }
}
