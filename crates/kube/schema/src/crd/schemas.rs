//! The parsed schemas of a CRD's versions, and their errors.

use super::expressions::{RuleCosts, RulePosition};
use super::internal::{self, InternalVersions};
use super::rules;
use crate::structural::Schema;
use crate::structural::expressions::CompiledRules;
use mainstay_object::{FieldError, FieldPath};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// The schemas of all versions, in the CRD's order.
#[derive(Default)]
pub(super) struct Schemas {
    rows: Vec<VersionSchema>,
}

/// The schema of one version; an empty one if the version has none.
pub(super) struct VersionSchema {
    pub(super) source: Arc<Value>,
    pub(super) schema: Arc<Schema>,
    /// The compiled CEL rules of the schema.
    pub(super) rules: Arc<OnceLock<Option<CompiledRules>>>,
    /// The errors that keep it from being structural.
    errors: Vec<FieldError>,
}

impl Schemas {
    /// Parses the schemas. Versions with equal schemas share one.
    pub(super) fn read(versions: &[Value]) -> Self {
        let internal = InternalVersions::of(versions);
        let shared = internal.schema.top_level().is_some();
        let mut rows: Vec<VersionSchema> = Vec::with_capacity(versions.len());
        for (at, version) in versions.iter().enumerate() {
            let source = internal::openapi_schema(version.get("schema")).unwrap_or(&Value::Null);
            let equal = rows.iter().find(|row| *row.source == *source);
            let row = match equal {
                Some(equal) if equal.errors.is_empty() || shared => VersionSchema {
                    source: equal.source.clone(),
                    schema: equal.schema.clone(),
                    rules: equal.rules.clone(),
                    errors: Vec::new(),
                },
                _ => VersionSchema::read(source, &schema_path(shared, at)),
            };
            rows.push(row);
        }
        Self { rows }
    }

    /// The schema of a version.
    pub(super) fn row(&self, at: usize) -> Option<&VersionSchema> {
        self.rows.get(at)
    }

    /// Whether any schema has a default.
    pub(super) fn any_default(&self) -> bool {
        self.rows.iter().any(|row| row.schema.has_defaults())
    }

    /// The errors of the schema of a version, which is at `path`. The CEL rules of an `unchanged` schema
    /// may exceed the cost limit.
    pub(super) fn check(
        &self,
        at: usize,
        has_status: bool,
        unchanged: bool,
        path: &FieldPath,
    ) -> Vec<FieldError> {
        let Some(row) = self.rows.get(at) else { return Vec::new() };
        let mut errors = rules::check_root(&row.source, has_status, path);
        let mut found = rules::check_all(&row.source, None, RuleCosts::new(false), path);
        // Upstream does not parse a schema with unsupported parts as a structural one.
        if found.unsupported.is_none() {
            let structural =
                if row.errors.is_empty() { row.schema.check(path) } else { row.errors.clone() };
            if structural.is_empty() && row.schema.has_expressions() {
                let costs = RuleCosts::new(unchanged);
                found = rules::check_all(
                    &row.source,
                    Some(RulePosition::root(&row.schema)),
                    costs,
                    path,
                );
            }
            errors.extend(structural);
        }
        errors.extend(found.errors);
        errors.extend(found.expressions);
        if errors.is_empty()
            && let Some(why) = found.unsupported
        {
            errors.push(FieldError::invalid(path, "", why));
        }
        errors.extend(found.costs.errors(path));
        errors
    }
}

impl VersionSchema {
    fn read(source: &Value, path: &FieldPath) -> Self {
        let (schema, errors) = match Schema::parse_at(source, path) {
            Ok(schema) => (schema, Vec::new()),
            Err(errors) => (Schema::empty(), errors),
        };
        Self {
            source: Arc::new(source.clone()),
            schema: Arc::new(schema),
            rules: Arc::default(),
            errors,
        }
    }
}

/// The path of a schema in upstream's errors.
fn schema_path(shared: bool, at: usize) -> FieldPath {
    let spec = FieldPath::new("spec");
    let holder = if shared {
        spec.child("validation")
    } else {
        spec.child("versions").index(at).child("schema")
    };
    holder.child("openAPIV3Schema")
}
