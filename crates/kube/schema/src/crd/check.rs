//! Validation of a CRD, without the common rules for metadata.
//!
//! The order of rules is upstream's, because clients see it in the causes.

use super::approval::{self, Approval, is_protected};
use super::internal::{self, InternalVersions, has_status};
use super::schemas::Schemas;
use super::{go_print, present};
use crate::{paths, webhook};
use mainstay_gocompat::is_printable;
use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath, Object, names};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE_FIELDS: u64 = 8;

/// The errors of spec and status; on update, `old` is the stored CRD.
pub(super) fn check_all(
    object: &Object,
    old: Option<&Object>,
    schemas: &Schemas,
) -> Vec<FieldError> {
    let old_versions = versions_by_name(old);
    let mut check = Check { found: FieldErrors::default(), schemas, old, old_versions };
    let spec = FieldPath::new("spec");
    let versions = object.array(&["spec", "versions"]);
    let internal = InternalVersions::of(versions);
    check.group(object, &spec);
    let scope = object.str(&["spec", "scope"]).unwrap_or_default();
    check.one_of(scope, &["Cluster", "Namespaced"], &spec.child("scope"));
    let preserves = object.bool(&["spec", "preserveUnknownFields"]) == Some(true);
    let declared = object.get(&["spec", "versions"]).is_some_and(Value::is_array);
    check.versions(&internal, declared, preserves, &spec);
    check.names(object.get(&["spec", "names"]), true, &spec.child("names"));
    check.shared_parts(&internal, &spec);
    if let Some(conversion) = object.get(&["spec", "conversion"]) {
        check.conversion(conversion, preserves, &spec.child("conversion"));
    }
    if let Some(old) = old {
        check.check_immutable(object, old, &spec);
    }
    check.status(object);
    check.stored_versions(object, versions);
    check.approval(object);
    let preserved =
        old.is_some_and(|crd| crd.bool(&["spec", "preserveUnknownFields"]) == Some(true));
    if preserves && !preserved {
        check.invalid(
            &spec.child("preserveUnknownFields"),
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        );
    }
    check.found.into_vec()
}

/// The errors of a status.
pub(super) fn check_status(object: &Object) -> Vec<FieldError> {
    let schemas = Schemas::default();
    let mut check = Check {
        found: FieldErrors::default(),
        schemas: &schemas,
        old: None,
        old_versions: HashMap::new(),
    };
    check.status(object);
    check.found.into_vec()
}

/// The problem of a CRD's name. Upstream checks it together with the metadata.
pub(super) fn name_problem(object: &Object, name: &str) -> Option<String> {
    let plural = object.str(&["spec", "names", "plural"]).unwrap_or_default();
    let group = object.str(&["spec", "group"]).unwrap_or_default();
    (name != format!("{plural}.{group}"))
        .then(|| "must be spec.names.plural+\".\"+spec.group".to_owned())
}

struct Check<'a> {
    found: FieldErrors,
    schemas: &'a Schemas,
    old: Option<&'a Object>,
    /// The versions of the stored CRD; the first of several with one name counts.
    old_versions: HashMap<&'a str, &'a Value>,
}

/// The versions of a CRD by name.
fn versions_by_name(definition: Option<&Object>) -> HashMap<&str, &Value> {
    let versions = definition.map_or(&[][..], |object| object.array(&["spec", "versions"]));
    // In reverse, so that the first of several with one name wins.
    versions.iter().rev().map(|version| (str_of(version, "name"), version)).collect()
}

fn str_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl Check<'_> {
    fn required(&mut self, path: &FieldPath, detail: impl Into<String>) {
        self.found.push_with(|| FieldError::required(path, detail));
    }

    fn invalid(&mut self, path: &FieldPath, value: impl Into<Value>, detail: impl Into<String>) {
        self.found.push_with(|| FieldError::invalid(path, value, detail));
    }

    fn one_of(&mut self, value: &str, allowed: &[&str], path: &FieldPath) {
        if value.is_empty() {
            self.required(path, "");
        } else if !allowed.contains(&value) {
            self.found.push(FieldError::not_supported(path, value, allowed));
        }
    }

    /// Checks a DNS-1035 label; all problems become one error.
    fn label(&mut self, value: &str, path: &FieldPath) {
        let problems = names::dns1035_label(value);
        if !problems.is_empty() {
            self.invalid(path, value, problems.join(","));
        }
    }

    fn kind(&mut self, value: &str, path: &FieldPath) {
        let problems = names::dns1035_label(&value.to_lowercase());
        if !value.is_empty() && !problems.is_empty() {
            let rules = problems.join(",");
            let detail = format!("may have mixed case, but should otherwise match: {rules}");
            self.invalid(path, value, detail);
        }
    }

    fn group(&mut self, object: &Object, spec: &FieldPath) {
        let path = spec.child("group");
        let group = object.str(&["spec", "group"]).unwrap_or_default();
        let problems = names::dns1123_subdomain(group);
        if group.is_empty() {
            self.required(&path, "");
        } else if !problems.is_empty() {
            self.invalid(&path, group, problems.join(","));
        } else if !group.contains('.') {
            self.invalid(&path, group, "should be a domain with at least one dot");
        }
    }

    fn versions(
        &mut self,
        internal: &InternalVersions<'_>,
        declared: bool,
        preserves: bool,
        spec: &FieldPath,
    ) {
        let path = spec.child("versions");
        if internal::openapi_schema(internal.schema.top_level()).is_none() {
            for (at, version) in internal.versions.iter().enumerate() {
                if internal::openapi_schema(internal.schema.of_version(version, "schema")).is_none()
                {
                    let path = path.index(at).child("schema").child("openAPIV3Schema");
                    self.required(&path, "");
                }
            }
        }
        if preserves && self.schemas.any_default() {
            let detail = "must be false in order to use defaults in the schema";
            self.invalid(&spec.child("preserveUnknownFields"), true, detail);
        }
        for (at, version) in internal.versions.iter().enumerate() {
            self.version(internal, version, at, &path.index(at));
        }
        let mut names: Vec<&str> =
            internal.versions.iter().map(|version| str_of(version, "name")).collect();
        names.sort_unstable();
        let mut report = |detail: &str| {
            let kind = FieldErrorKind::InvalidText(go_print::versions(internal, declared));
            self.found.push(FieldError::new(&path, kind, detail));
        };
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            report("must contain unique version names");
        }
        if internal.versions.iter().filter(|version| version["storage"] == true).count() != 1 {
            report("must have exactly one version marked as storage version");
        }
        // Upstream's internal version also has the first version as `spec.version`.
        let first = internal.versions.first().map_or("", |version| str_of(version, "name"));
        if !first.is_empty() {
            self.label(first, &spec.child("version"));
        }
    }

    fn version(
        &mut self,
        internal: &InternalVersions<'_>,
        version: &Value,
        at: usize,
        path: &FieldPath,
    ) {
        self.label(str_of(version, "name"), &path.child("name"));
        self.deprecation(version, &path.child("deprecationWarning"));
        let schema = internal.schema.of_version(version, "schema");
        if internal::openapi_schema(schema).is_some() {
            let path = path.child("schema").child("openAPIV3Schema");
            let unchanged = self.is_unchanged(version);
            self.found.extend(self.schemas.check(at, has_status(version), unchanged, &path));
        }
        if let Some(own) = internal.subresources.of_version(version, "subresources") {
            self.subresources(own, &path.child("subresources"));
        }
        self.columns(internal.columns.of_version(version, "additionalPrinterColumns"), path);
        if let Some(fields) = internal.selectable.of_version(version, "selectableFields") {
            let path = path.child("selectableFields");
            match internal::openapi_schema(schema) {
                Some(schema) => {
                    self.selectable(fields, schema, Some(str_of(version, "name")), &path);
                }
                None => self.invalid(
                    &path,
                    "",
                    "may only be set when `version.schema.openAPIV3Schema` is not included",
                ),
            }
        }
    }

    /// Checks the shared parts of all versions, at the top level.
    fn shared_parts(&mut self, internal: &InternalVersions<'_>, spec: &FieldPath) {
        let schema = internal.schema.top_level();
        if internal::openapi_schema(schema).is_some() {
            let path = spec.child("validation").child("openAPIV3Schema");
            let unchanged = internal.versions.first().is_some_and(|first| self.is_unchanged(first));
            self.found.extend(self.schemas.check(0, internal.any_status(), unchanged, &path));
        }
        if let Some(subresources) = internal.subresources.top_level() {
            self.subresources(subresources, &spec.child("subresources"));
        }
        self.columns(internal.columns.top_level(), spec);
        if let Some(fields) = internal.selectable.top_level() {
            let path = spec.child("selectableFields");
            match schema {
                Some(schema) => {
                    let nothing = Value::Null;
                    let schema = internal::openapi_schema(Some(schema)).unwrap_or(&nothing);
                    self.selectable(fields, schema, None, &path);
                }
                None => {
                    self.invalid(&path, "", "may only be set when validations.schema is included");
                }
            }
        }
    }

    /// Whether the stored CRD has the same schema for the version.
    fn is_unchanged(&self, version: &Value) -> bool {
        let old = self.old_versions.get(str_of(version, "name"));
        old.is_some_and(|old| old.get("schema") == version.get("schema"))
    }

    fn deprecation(&mut self, version: &Value, path: &FieldPath) {
        let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
            return;
        };
        // Upstream prints the value of a pointer, which is quoted in another way than strings.
        let mut report = |detail: &str| {
            let mut printed = String::new();
            mainstay_gocompat::values::write_text(warning, &mut printed);
            let kind = FieldErrorKind::InvalidText(printed);
            self.found.push(FieldError::new(path, kind, detail));
        };
        if version["deprecated"] != true {
            return report("can only be set for deprecated versions");
        }
        if warning.len() > 256 {
            report("must be <= 256 characters long");
        }
        if warning.is_empty() {
            report("must not be an empty string");
        }
        if let Some((at, _)) = warning.char_indices().find(|(_, letter)| !is_printable(*letter)) {
            let detail = format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            );
            report(&detail);
        }
    }

    fn subresources(&mut self, subresources: &Value, path: &FieldPath) {
        let Some(scale) = present(subresources.get("scale")) else { return };
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
        let is_valid = value.starts_with('.');
        if !is_valid {
            self.invalid(path, value, "must be a simple json path starting with .");
        }
        is_valid
    }

    fn columns(&mut self, columns: Option<&Value>, path: &FieldPath) {
        let columns = columns.and_then(Value::as_array).into_iter().flatten();
        for (at, column) in columns.enumerate() {
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

    fn selectable(
        &mut self,
        fields: &Value,
        schema: &Value,
        version: Option<&str>,
        path: &FieldPath,
    ) {
        let mut distinct: HashSet<String> = HashSet::new();
        for (at, field) in fields.as_array().into_iter().flatten().enumerate() {
            let path = path.index(at).child("jsonPath");
            let json_path = str_of(field, "jsonPath");
            if json_path.is_empty() {
                self.required(&path, "");
                continue;
            }
            let (found, target) = match paths::resolve(json_path, schema, false) {
                Ok(found) => found,
                Err(error) => {
                    self.invalid(&path, json_path, format!("is an invalid path: {error}"));
                    continue;
                }
            };
            if found == "metadata" || found.starts_with("metadata.") {
                self.invalid(&path, json_path, "must not point to fields in metadata");
            }
            if !matches!(str_of(target, "type"), "string" | "boolean" | "integer") {
                self.invalid(
                    &path,
                    json_path,
                    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
                );
            }
            if !distinct.insert(found) {
                self.found.push(FieldError::duplicate(&path, json_path));
            }
        }
        let count = distinct.len() as u64;
        if count > MAX_SELECTABLE_FIELDS && !self.had_same_selectable_fields(fields, version) {
            let kind = FieldErrorKind::TooMany(count, MAX_SELECTABLE_FIELDS);
            self.found.push(FieldError::new(path, kind, ""));
        }
    }

    /// Whether the stored CRD has the same selectable fields, which then may be too many.
    fn had_same_selectable_fields(&self, fields: &Value, version: Option<&str>) -> bool {
        let same = |old: &Value| old.get("selectableFields") == Some(fields);
        match version {
            Some(name) => self.old_versions.get(name).is_some_and(|old| same(old)),
            None => self.old_versions.values().any(|old| same(old)),
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
            let name = str_of(source, field);
            if !name.is_empty() {
                self.label(name, &path.child(field));
            }
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

    fn conversion(&mut self, conversion: &Value, preserves: bool, path: &FieldPath) {
        let strategy = str_of(conversion, "strategy");
        if strategy != "None" && preserves {
            let detail = "must be None if spec.preserveUnknownFields is true";
            self.invalid(&path.child("strategy"), strategy, detail);
        }
        self.one_of(strategy, &["None", "Webhook"], &path.child("strategy"));
        let webhook = conversion.get("webhook");
        let client = webhook
            .and_then(|webhook| webhook.get("clientConfig"))
            .filter(|config| !config.is_null());
        let client_path = path.child("webhookClientConfig");
        let versions = webhook.map_or(&[][..], |webhook| list(webhook, "conversionReviewVersions"));
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
        let mut distinct: HashSet<&str> = HashSet::new();
        for (at, version) in versions.iter().enumerate() {
            let version = version.as_str().unwrap_or_default();
            let path = versions_path.index(at);
            if !distinct.insert(version) {
                self.invalid(&path, version, "duplicate version");
                continue;
            }
            for problem in names::dns1035_label(version) {
                self.invalid(&path, version, problem);
            }
        }
        if !distinct.contains("v1") && !distinct.contains("v1beta1") {
            let detail = "must include at least one of v1, v1beta1";
            self.invalid(&versions_path, versions.to_vec(), detail);
        }
    }

    fn client(&mut self, client: &Value, path: &FieldPath) {
        let url = client.get("url").and_then(Value::as_str);
        let service = client.get("service").filter(|service| service.is_object());
        match (url, service) {
            (Some(url), None) => {
                self.found.extend(webhook::check_url(&path.child("url"), url));
            }
            (None, Some(service)) => {
                let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
                // Upstream swaps name and namespace here, which its errors show.
                let (name, namespace) = (str_of(service, "name"), str_of(service, "namespace"));
                let at = service.get("path").and_then(Value::as_str);
                let path = path.child("service");
                self.found.extend(webhook::check_service(&path, name, namespace, at, port));
            }
            _ => self.required(path, "exactly one of url or service is required"),
        }
        let bundle = str_of(client, "caBundle");
        if !bundle.is_empty() && self.checks_ca_bundle() {
            self.found.extend(webhook::check_ca_bundle(&path.child("caBundle"), bundle));
        }
    }

    /// Whether the CA bundle is checked: only for an established CRD whose stored bundle is valid.
    fn checks_ca_bundle(&self) -> bool {
        let Some(old) = self.old.filter(|old| old.condition("Established") == Some("True")) else {
            return false;
        };
        let path = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
        let before = old.str(&path).unwrap_or_default();
        before.is_empty() || webhook::check_ca_bundle(&FieldPath::root(), before).is_empty()
    }

    /// Checks immutable fields. Some are immutable only once the CRD is established.
    fn check_immutable(&mut self, object: &Object, old: &Object, spec: &FieldPath) {
        let established = old.condition("Established") == Some("True");
        let immutable: [(&[&str], bool); 4] = [
            (&["scope"], established),
            (&["names", "kind"], established),
            (&["group"], true),
            (&["names", "plural"], true),
        ];
        for (path, _) in immutable.into_iter().filter(|row| row.1) {
            let full: Vec<&str> = std::iter::once("spec").chain(path.iter().copied()).collect();
            let text = |object: &Object| object.str(&full).unwrap_or_default().to_owned();
            if text(object) != text(old) {
                let field = path.iter().fold(spec.clone(), |at, name| at.child(name));
                self.invalid(&field, text(object), "field is immutable");
            }
        }
    }

    fn status(&mut self, object: &Object) {
        if let Some(accepted) = object.get(&["status", "acceptedNames"]) {
            self.names(Some(accepted), false, &FieldPath::new("status").child("acceptedNames"));
        }
    }

    /// Checks `storedVersions`: it contains the storage version, and each of its versions is in the spec.
    fn stored_versions(&mut self, object: &Object, versions: &[Value]) {
        let path = FieldPath::new("status").child("storedVersions");
        let stored = object.array(&["status", "storedVersions"]);
        if stored.is_empty() {
            return self.invalid(&path, Value::Null, "must have at least one stored version");
        }
        let stored_names: HashSet<&Value> = stored.iter().collect();
        let mut spec_names: HashSet<&Value> = HashSet::new();
        for version in versions {
            let name = &version["name"];
            if version["storage"] == true
                && (!stored_names.contains(name) || spec_names.contains(name))
            {
                let name = name.as_str().unwrap_or_default();
                let detail = format!("must have the storage version {name}");
                self.invalid(&path, stored.to_vec(), detail);
            }
            spec_names.insert(name);
        }
        for (at, name) in stored.iter().enumerate().filter(|(_, name)| !spec_names.contains(name)) {
            let name = name.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            self.invalid(&path.index(at), name, detail);
        }
    }

    /// Checks the approval annotation, which groups of the Kubernetes community require.
    fn approval(&mut self, object: &Object) {
        if !is_protected(object.str(&["spec", "group"]).unwrap_or_default()) {
            return;
        }
        let approval = Approval::of(object);
        // An update with the same approval state is not checked again.
        if self.old.is_some_and(|old| Approval::of(old) == approval) {
            return;
        }
        let path = FieldPath::new("metadata").child("annotations").key(approval::ANNOTATION);
        match approval {
            Approval::Missing => self.required(&path, approval.message(object)),
            Approval::Invalid => {
                let value = object.annotation(approval::ANNOTATION).unwrap_or_default();
                self.invalid(&path, value, approval.message(object));
            }
            Approval::Approved | Approval::Bypassed => {}
        }
    }
}
