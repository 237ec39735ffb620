//! The schemas of a definition's versions, read once, and what is wrong with them.

use super::expressions::{Costs, Place};
use super::hub::{self, Hub};
use super::rules;
use crate::structural::Schema;
use crate::structural::expressions::Compiled;
use mainstay_object::{FieldError, FieldPath};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// The schemas of all versions, in the definition's order.
#[derive(Default)]
pub(super) struct Schemas {
    rows: Vec<Row>,
}

/// The schema of one version; none of its own means one that knows nothing.
pub(super) struct Row {
    pub(super) source: Arc<Value>,
    pub(super) schema: Arc<Schema>,
    /// The rules of the schema that are expressions, for whoever needs them first.
    pub(super) rules: Arc<OnceLock<Option<Compiled>>>,
    /// What keeps it from being structural.
    wrong: Vec<FieldError>,
}

impl Schemas {
    /// Reads the schemas. Versions with the same one share it.
    pub(super) fn read(versions: &[Value]) -> Self {
        let hub = Hub::of(versions);
        let shared = hub.schema.top().is_some();
        let mut rows: Vec<Row> = Vec::with_capacity(versions.len());
        for (at, version) in versions.iter().enumerate() {
            let source = hub::inner(version.get("schema")).unwrap_or(&Value::Null);
            let known = rows.iter().find(|row| *row.source == *source);
            let row = match known {
                Some(known) if known.wrong.is_empty() || shared => Row {
                    source: known.source.clone(),
                    schema: known.schema.clone(),
                    rules: known.rules.clone(),
                    wrong: Vec::new(),
                },
                _ => Row::read(source, &path(shared, at)),
            };
            rows.push(row);
        }
        Self { rows }
    }

    /// The schema of a version.
    pub(super) fn row(&self, at: usize) -> Option<&Row> {
        self.rows.get(at)
    }

    /// Whether any schema has a default.
    pub(super) fn any_default(&self) -> bool {
        self.rows.iter().any(|row| row.schema.has_defaults())
    }

    /// All that is wrong with the schema of a version, which stands at `path`. `unchanged`: it is
    /// what it was, so that its rules may cost what they did.
    pub(super) fn check(
        &self,
        at: usize,
        has_status: bool,
        unchanged: bool,
        path: &FieldPath,
    ) -> Vec<FieldError> {
        let Some(row) = self.rows.get(at) else { return Vec::new() };
        let mut errors = rules::root(&row.source, has_status, path);
        let mut found = rules::every(&row.source, None, Costs::new(false), path);
        // A schema with parts that are not supported cannot be read as a structural one.
        if found.unsupported.is_none() {
            let wrong =
                if row.wrong.is_empty() { row.schema.check(path) } else { row.wrong.clone() };
            if wrong.is_empty() && row.schema.has_expressions() {
                let costs = Costs::new(unchanged);
                found = rules::every(&row.source, Some(Place::root(&row.schema)), costs, path);
            }
            errors.extend(wrong);
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

impl Row {
    fn read(source: &Value, path: &FieldPath) -> Self {
        let (schema, wrong) = match Schema::parse_at(source, path) {
            Ok(schema) => (schema, Vec::new()),
            Err(wrong) => (Schema::default_schema(), wrong),
        };
        Self {
            source: Arc::new(source.clone()),
            schema: Arc::new(schema),
            rules: Arc::default(),
            wrong,
        }
    }
}

/// Where the original says that a schema stands.
fn path(shared: bool, at: usize) -> FieldPath {
    let spec = FieldPath::new("spec");
    let holder = if shared {
        spec.child("validation")
    } else {
        spec.child("versions").index(at).child("schema")
    };
    holder.child("openAPIV3Schema")
}
