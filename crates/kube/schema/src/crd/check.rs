//! What is wrong with a definition, apart from its schemas.

use super::is_shared;
use mainstay_object::{FieldError, FieldErrorKind, FieldPath, Object, names};
use serde_json::Value;

const APPROVED: &str = "api-approved.kubernetes.io";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MOST_SELECTABLE: u64 = 8;

/// All broken rules of metadata and spec.
pub(super) fn spec(object: &Object) -> Vec<FieldError> {
    let mut check = Check { found: Vec::new() };
    let spec = FieldPath::new("spec");
    check.name(object);
    check.group(object, &spec);
    let scope = object.str(&["spec", "scope"]).unwrap_or_default();
    check.one_of(scope, &["Cluster", "Namespaced"], &spec.child("scope"));
    let versions = object.array(&["spec", "versions"]);
    check.versions(versions, &spec.child("versions"));
    check.names(object.get(&["spec", "names"]), true, &spec.child("names"));
    check.shared_parts(versions, &spec);
    if let Some(conversion) = object.get(&["spec", "conversion"]) {
        check.conversion(conversion, &spec.child("conversion"));
    }
    if let Some(accepted) = object.get(&["status", "acceptedNames"]) {
        check.names(Some(accepted), false, &FieldPath::new("status").child("acceptedNames"));
    }
    check.stored(object, versions);
    check.approval(object);
    if object.bool(&["spec", "preserveUnknownFields"]) == Some(true) {
        check.invalid(
            &spec.child("preserveUnknownFields"),
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        );
    }
    check.found
}

/// Versions that are gone although objects may be stored in them.
pub(super) fn stored_versions(new: &Object, old: &Object) -> Vec<FieldError> {
    let versions = new.array(&["spec", "versions"]);
    let kept = |name: &str| versions.iter().any(|version| version["name"] == name);
    let path = FieldPath::new("status").child("storedVersions");
    let stored = old.array(&["status", "storedVersions"]).iter().enumerate();
    stored
        .filter_map(|(at, name)| Some((at, name.as_str()?)))
        .filter(|(_, name)| !kept(name))
        .map(|(at, name)| {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            FieldError::invalid(&path.index(at), name, detail)
        })
        .collect()
}

struct Check {
    found: Vec<FieldError>,
}

fn str_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl Check {
    fn required(&mut self, path: &FieldPath, detail: impl Into<String>) {
        self.found.push(FieldError::required(path, detail));
    }

    fn invalid(&mut self, path: &FieldPath, value: impl Into<Value>, detail: impl Into<String>) {
        self.found.push(FieldError::invalid(path, value, detail));
    }

    fn one_of(&mut self, value: &str, allowed: &[&str], path: &FieldPath) {
        if value.is_empty() {
            self.required(path, "");
        } else if !allowed.contains(&value) {
            self.found.push(FieldError::not_supported(path, value, allowed));
        }
    }

    /// A DNS-1035 label; all broken rules in one error.
    fn label(&mut self, value: &str, path: &FieldPath) {
        let wrong = names::dns1035_label(value);
        if !value.is_empty() && !wrong.is_empty() {
            self.invalid(path, value, wrong.join(","));
        }
    }

    fn kind(&mut self, value: &str, path: &FieldPath) {
        let wrong = names::dns1035_label(&value.to_lowercase());
        if !value.is_empty() && !wrong.is_empty() {
            let rules = wrong.join(",");
            let detail = format!("may have mixed case, but should otherwise match: {rules}");
            self.invalid(path, value, detail);
        }
    }

    fn name(&mut self, object: &Object) {
        let path = FieldPath::new("metadata").child("name");
        let name = object.name();
        if name.is_empty() {
            return self.required(&path, "name or generateName is required");
        }
        for detail in names::dns1123_subdomain(name) {
            self.invalid(&path, name, detail);
        }
        let plural = object.str(&["spec", "names", "plural"]).unwrap_or_default();
        let group = object.str(&["spec", "group"]).unwrap_or_default();
        if name != format!("{plural}.{group}") {
            self.invalid(&path, name, "must be spec.names.plural+\".\"+spec.group");
        }
    }

    fn group(&mut self, object: &Object, spec: &FieldPath) {
        let path = spec.child("group");
        let group = object.str(&["spec", "group"]).unwrap_or_default();
        let wrong = names::dns1123_subdomain(group);
        if group.is_empty() {
            self.required(&path, "");
        } else if !wrong.is_empty() {
            self.invalid(&path, group, wrong.join(","));
        } else if !group.contains('.') {
            self.invalid(&path, group, "should be a domain with at least one dot");
        }
    }

    fn versions(&mut self, versions: &[Value], path: &FieldPath) {
        for (at, version) in versions.iter().enumerate() {
            if version.pointer("/schema/openAPIV3Schema").is_none() {
                let path = path.index(at).child("schema").child("openAPIV3Schema");
                self.required(&path, "");
            }
        }
        for (at, version) in versions.iter().enumerate() {
            let path = path.index(at);
            let name = str_of(version, "name");
            let wrong = names::dns1035_label(name);
            if !wrong.is_empty() {
                self.invalid(&path.child("name"), name, wrong.join(","));
            }
            self.deprecation(version, &path.child("deprecationWarning"));
            if !is_shared(versions, "subresources") {
                self.subresources(version, &path.child("subresources"));
            }
            if !is_shared(versions, "additionalPrinterColumns") {
                self.columns(version, &path);
            }
            if !is_shared(versions, "selectableFields") {
                self.selectable(version, &path.child("selectableFields"));
            }
        }
        // The original keeps the first version in a field of its own as well.
        let first = versions.first().map_or("", |version| str_of(version, "name"));
        self.label(first, &FieldPath::new("spec").child("version"));
        let mut seen: Vec<&str> = versions.iter().map(|version| str_of(version, "name")).collect();
        seen.sort_unstable();
        let all = Value::Array(versions.to_vec());
        if seen.windows(2).any(|pair| pair[0] == pair[1]) {
            self.invalid(path, all.clone(), "must contain unique version names");
        }
        let stored = versions.iter().filter(|version| version["storage"] == true).count();
        if stored != 1 {
            let detail = "must have exactly one version marked as storage version";
            self.invalid(path, all, detail);
        }
    }

    /// Parts that are the same in all versions are checked once, at the top.
    fn shared_parts(&mut self, versions: &[Value], spec: &FieldPath) {
        let Some(first) = versions.first() else { return };
        if is_shared(versions, "subresources") {
            self.subresources(first, &spec.child("subresources"));
        }
        if is_shared(versions, "additionalPrinterColumns") {
            self.columns(first, spec);
        }
        if is_shared(versions, "selectableFields") {
            self.selectable(first, &spec.child("selectableFields"));
        }
    }

    fn deprecation(&mut self, version: &Value, path: &FieldPath) {
        let Some(words) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
        if version["deprecated"] != true {
            self.invalid(path, words, "can only be set for deprecated versions");
        }
        if words.len() > 256 {
            self.invalid(path, words, "must be <= 256 characters long");
        }
        if words.is_empty() {
            self.invalid(path, words, "must not be an empty string");
        }
        if let Some((at, _)) = words.char_indices().find(|(_, letter)| letter.is_control()) {
            let detail = format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            );
            self.invalid(path, words, detail);
        }
    }

    fn subresources(&mut self, version: &Value, path: &FieldPath) {
        let Some(scale) = version.pointer("/subresources/scale") else { return };
        for (field, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
            let path = path.child(&format!("scale.{field}"));
            let value = str_of(scale, field);
            if value.is_empty() {
                self.required(&path, "");
            } else if self.simple_path(value, &path) && !value.starts_with(root) {
                let root = root.trim_end_matches('.');
                self.invalid(&path, value, format!("should be a json path under {root}"));
            }
        }
        let value = str_of(scale, "labelSelectorPath");
        let path = path.child("scale.labelSelectorPath");
        if !value.is_empty()
            && self.simple_path(value, &path)
            && !value.starts_with(".spec.")
            && !value.starts_with(".status.")
        {
            self.invalid(&path, value, "should be a json path under either .spec or .status");
        }
    }

    fn simple_path(&mut self, value: &str, path: &FieldPath) -> bool {
        let good = value.starts_with('.');
        if !good {
            self.invalid(path, value, "must be a simple json path starting with .");
        }
        good
    }

    fn columns(&mut self, version: &Value, path: &FieldPath) {
        for (at, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
            let path = path.child("additionalPrinterColumns").index(at);
            if str_of(column, "name").is_empty() {
                self.required(&path.child("name"), "");
            }
            let kind = str_of(column, "type");
            let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
            if kind.is_empty() {
                self.required(&path.child("type"), detail);
            } else if !COLUMN_TYPES.contains(&kind) {
                self.invalid(&path.child("type"), kind, detail);
            }
            let format = str_of(column, "format");
            if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
                let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
                self.invalid(&path.child("format"), format, detail);
            }
            let json_path = str_of(column, "jsonPath");
            if json_path.is_empty() {
                self.required(&path.child("JSONPath"), "");
            } else {
                self.simple_path(json_path, &path.child("JSONPath"));
            }
        }
    }

    fn selectable(&mut self, version: &Value, path: &FieldPath) {
        let schema = version.pointer("/schema/openAPIV3Schema");
        let mut seen: Vec<&str> = Vec::new();
        for (at, field) in list(version, "selectableFields").iter().enumerate() {
            let path = path.index(at).child("jsonPath");
            let json_path = str_of(field, "jsonPath");
            if json_path.is_empty() {
                self.required(&path, "");
                continue;
            }
            let mut target = schema;
            for name in json_path.trim_start_matches('.').split('.') {
                target = target.and_then(|it| it.get("properties")).and_then(|it| it.get(name));
            }
            let Some(target) = target.filter(|_| json_path.starts_with('.')) else {
                let detail = "is an invalid path: does not refer to a valid field";
                self.invalid(&path, json_path, detail);
                continue;
            };
            if json_path.starts_with(".metadata.") || json_path == ".metadata" {
                self.invalid(&path, json_path, "must not point to fields in metadata");
            }
            if !matches!(str_of(target, "type"), "string" | "boolean" | "integer") {
                self.invalid(
                    &path,
                    json_path,
                    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
                );
            }
            if seen.contains(&json_path) {
                self.found.push(FieldError::duplicate(&path, json_path));
            } else {
                seen.push(json_path);
            }
        }
        let count = seen.len() as u64;
        if count > MOST_SELECTABLE {
            let kind = FieldErrorKind::TooMany(count, MOST_SELECTABLE);
            self.found.push(FieldError::new(path, kind, ""));
        }
    }

    fn names(&mut self, source: Option<&Value>, required: bool, path: &FieldPath) {
        let empty = Value::Null;
        let source = source.unwrap_or(&empty);
        for field in ["plural", "singular", "kind", "listKind"] {
            if required && str_of(source, field).is_empty() {
                self.required(&path.child(field), "");
            }
        }
        for field in ["plural", "singular"] {
            self.label(str_of(source, field), &path.child(field));
        }
        let (kind, list_kind) = (str_of(source, "kind"), str_of(source, "listKind"));
        self.kind(kind, &path.child("kind"));
        self.kind(list_kind, &path.child("listKind"));
        for (at, name) in list(source, "shortNames").iter().enumerate() {
            self.label(name.as_str().unwrap_or_default(), &path.child("shortNames").index(at));
        }
        if !kind.is_empty() && kind == list_kind {
            let detail = "kind and listKind may not be the same";
            self.invalid(&path.child("listKind"), list_kind, detail);
        }
        for (at, name) in list(source, "categories").iter().enumerate() {
            self.label(name.as_str().unwrap_or_default(), &path.child("categories").index(at));
        }
    }

    fn conversion(&mut self, conversion: &Value, path: &FieldPath) {
        let strategy = str_of(conversion, "strategy");
        self.one_of(strategy, &["None", "Webhook"], &path.child("strategy"));
        let webhook = conversion.get("webhook");
        let client = webhook.and_then(|it| it.get("clientConfig")).filter(|it| !it.is_null());
        let client_path = path.child("webhookClientConfig");
        let versions = webhook.map_or(&[][..], |it| list(it, "conversionReviewVersions"));
        let versions_path = path.child("conversionReviewVersions");
        if strategy != "Webhook" {
            let detail = "should not be set when strategy is not set to Webhook";
            if client.is_some() {
                self.found.push(FieldError::forbidden(&client_path, detail));
            }
            if !versions.is_empty() {
                self.found.push(FieldError::forbidden(&versions_path, detail));
            }
            return;
        }
        match client {
            None => self.required(&client_path, "required when strategy is set to Webhook"),
            Some(client) => self.client(client, &client_path),
        }
        if versions.is_empty() {
            return self.required(&versions_path, "");
        }
        if !versions.iter().any(|version| *version == "v1" || *version == "v1beta1") {
            let detail = "must include at least one of v1, v1beta1";
            self.invalid(&versions_path, versions.to_vec(), detail);
        }
    }

    fn client(&mut self, client: &Value, path: &FieldPath) {
        let url = client.get("url").and_then(Value::as_str);
        let service = client.get("service").filter(|it| it.is_object());
        match (url, service) {
            (Some(url), None) => {
                let form = "; desired format: https://host[/path]";
                let path = path.child("url");
                match url.split_once("://") {
                    Some(("https", "")) => {
                        self.invalid(&path, "", format!("host must be specified{form}"));
                    }
                    Some(("https", _)) => {}
                    scheme => {
                        let scheme = scheme.map_or("", |parts| parts.0);
                        let detail = format!("'https' is the only allowed URL scheme{form}");
                        self.invalid(&path, scheme, detail);
                    }
                }
            }
            (None, Some(service)) => {
                let path = path.child("service");
                // The original confuses the two, and clients see what it says.
                for (field, said) in [("name", "namespace"), ("namespace", "name")] {
                    if str_of(service, field).is_empty() {
                        self.required(&path.child(said), "");
                    }
                }
                let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
                if !(1..=65535).contains(&port) {
                    let detail = "port is not valid: must be between 1 and 65535, inclusive";
                    self.invalid(&path.child("port"), port, detail);
                }
            }
            _ => self.required(path, "exactly one of url or service is required"),
        }
    }

    /// The version that objects are stored in must be among those that they may be stored in.
    fn stored(&mut self, object: &Object, versions: &[Value]) {
        let path = FieldPath::new("status").child("storedVersions");
        let stored = object.array(&["status", "storedVersions"]);
        if stored.is_empty() {
            return self.invalid(&path, Value::Null, "must have at least one stored version");
        }
        let mut open: Vec<&Value> = stored.iter().collect();
        for version in versions {
            let name = &version["name"];
            if version["storage"] == true && !open.contains(&name) {
                let name = name.as_str().unwrap_or_default();
                let detail = format!("must have the storage version {name}");
                self.invalid(&path, stored.to_vec(), detail);
            }
            open.retain(|other| *other != name);
        }
    }

    /// Groups of the Kubernetes community need an approval, or the word that they have none.
    fn approval(&mut self, object: &Object) {
        let group = object.str(&["spec", "group"]).unwrap_or_default();
        let within = |domain: &str| {
            group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if !within("k8s.io") && !within("kubernetes.io") {
            return;
        }
        let path = FieldPath::new("metadata").child("annotations").key(APPROVED);
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        let annotation = object.annotation(APPROVED).unwrap_or_default();
        if annotation.is_empty() {
            let detail =
                format!("protected groups must have approval annotation {APPROVED:?}, {see}");
            self.required(&path, detail);
        } else if !annotation.starts_with("unapproved")
            && annotation.split_once("://").is_none_or(|(_, host)| host.is_empty())
        {
            let detail = format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \"unapproved\", {see}"
            );
            self.invalid(&path, annotation, detail);
        }
    }
}
