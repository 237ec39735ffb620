//! Types with declared fields.

use super::check_table;
use mainstay_cel::Env;
use mainstay_cel::types::{FieldResolver, ObjectType, Type};
use std::sync::Arc;

/// Fields of `Spec` and its `Status`.
#[derive(Debug)]
struct SpecFields;

impl FieldResolver for SpecFields {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        Some(match (owner, field) {
            ("Spec", "replicas") => Type::Int,
            ("Spec", "labels") => Type::map(Type::String, Type::String),
            ("Spec", "status") => object("Status"),
            ("Spec", "all") => Type::list(object("Status")),
            ("Status", "ready") => Type::Bool,
            ("Status", "since") => Type::Timestamp,
            _ => return None,
        })
    }
}

fn object(name: &str) -> Type {
    Type::Object(ObjectType { name: name.into(), fields: Arc::new(SpecFields) })
}

fn env() -> Env {
    Env::kubernetes(34)
        .with_type("Spec", object("Spec"))
        .with_type("Spec.Status", object("Status"))
        .with_variable("self", object("Spec"))
        .with_variable("oldSelf", Type::optional(object("Spec")))
}

#[test]
fn fields_have_their_declared_types() {
    check_table(
        &env(),
        &[
            ("self", "Spec"),
            ("self.replicas", "int"),
            ("self.labels.a", "string"),
            ("self.status.ready", "bool"),
            ("self.all[0].since", "timestamp"),
            ("self.all.map(s, s.ready)", "list(bool)"),
            ("self.all.exists(s, s == self.status)", "bool"),
            ("has(self.status.ready)", "bool"),
            ("self.?status.ready", "optional_type(bool)"),
            ("oldSelf.replicas", "optional_type(int)"),
            ("oldSelf.?status.?ready.orValue(true)", "bool"),
            ("self.status == null", "bool"),
            ("self.none", "1:5: undefined field 'none'"),
            ("has(self.none)", "1:4: undefined field 'none'"),
            ("self.?none", "1:5: undefined field 'none'"),
            ("self.status.none.more", "1:12: undefined field 'none'"),
            (
                "self.status == self",
                "1:13: found no matching overload for '_==_' applied to '(Status, Spec)'",
            ),
            (
                "self['replicas']",
                "1:5: found no matching overload for '_[_]' applied to '(Spec, string)'",
            ),
            (
                "self.all(f, true)",
                "1:1: expression of type 'Spec' cannot be range of a comprehension (must be list, \
                 map, or dynamic)",
            ),
            ("[self, null]", "1:8: expected type 'Spec' but found 'null'"),
        ],
    );
}

#[test]
fn object_literals_have_declared_fields() {
    check_table(
        &env(),
        &[
            ("Spec{}", "Spec"),
            ("Spec", "type(Spec)"),
            ("Spec{replicas: 1}.replicas", "int"),
            ("Spec.Status{ready: true}", "Status"),
            ("Spec{status: Spec.Status{}}", "Spec"),
            ("Spec{status: null}", "Spec"),
            ("Spec{?replicas: oldSelf.?replicas}", "Spec"),
            (
                "Spec{replicas: 'a'}",
                "1:14: expected type of field 'replicas' is 'int' but provided type is 'string'",
            ),
            ("Spec{none: 1}", "1:10: undefined field 'none'"),
            ("Spec{?replicas: 1}", "1:17: expected type 'optional_type(int)' but found 'int'"),
            ("Status{}", "1:7: undeclared reference to 'Status' (in container '')"),
            ("self{}", "1:5: 'Spec' is not a type"),
        ],
    );
}
