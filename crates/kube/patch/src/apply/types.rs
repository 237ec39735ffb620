//! Types in server-side apply: whether values are scalars, lists or maps, whether those are atomic,
//! and how list elements are identified.
//!
//! A type comes from the table of built-in types, from the structural schema of a custom resource,
//! or else from the value itself. [`TypeRef`] is a handle that is cheap to copy. A traversal
//! resolves it at each value ([`TypeRef::resolve`]) and gets handles for the values below.
//!
//! The rules are those of kube-openapi (`schemaconv`), with which Kubernetes makes schemas for
//! structured-merge-diff from its OpenAPI documents:
//!
//! - A list is atomic unless its type says otherwise; elements without a type are atomic.
//! - An object without properties has free fields, each with the type of its value. With
//!   properties, other fields are free only if it or an object above it preserves unknown fields.
//! - A value without a type may be anything.
//! - Custom objects and embedded objects have `apiVersion`, `kind` and `metadata`, whatever their
//!   schema says about those.
//! - In a free value, objects are granular and lists atomic.

use mainstay_schema::builtin::{self, FieldType, JsonForm, OmitRule, TypeDefinition};
use mainstay_schema::structural::{self, Schema};
use serde_json::Value;
use std::sync::LazyLock;

/// Built-in types with special rules.
const OBJECT_META: &str = "apimachinery.pkg.apis.meta.v1.ObjectMeta";
const RAW_EXTENSION: &str = "apimachinery.pkg.runtime.RawExtension";

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub struct TypeRef<'a>(TypeSource<'a>);

#[derive(Clone, Copy, Debug)]
enum TypeSource<'a> {
    /// No value is valid.
    Nothing,
    /// A built-in definition, and whether it is atomic if a field overrides that.
    Definition(&'a TypeDefinition, Option<bool>),
    /// A field of a built-in definition.
    Field(&'a builtin::FieldDefinition),
    /// The element type of a built-in list or map.
    Inner(&'a FieldType),
    /// A structural schema.
    Structural { schema: &'a Schema, preserves_unknown: bool, is_object_root: bool },
    /// A string.
    Text,
    /// A free value.
    Deduced,
    /// A free value that is atomic.
    Atomic,
}

/// The shapes that a value of a type may have. If several are possible, the value decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Atom<'a> {
    pub(super) scalar: Option<ScalarType>,
    pub(super) list: Option<ListType<'a>>,
    pub(super) map: Option<MapType<'a>>,
}

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarType {
    Numeric,
    String,
    Boolean,
    Any,
}

/// The type of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListType<'a> {
    pub(super) atomic: bool,
    /// The keys of a list map; empty for sets and atomic lists.
    pub(super) keys: &'a [Box<str>],
    pub(super) element: TypeRef<'a>,
}

/// The type of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapType<'a> {
    pub(super) atomic: bool,
    fields: DeclaredFields<'a>,
    /// The type of fields that are not declared.
    pub(super) element: TypeRef<'a>,
}

#[derive(Clone, Copy, Debug)]
enum DeclaredFields<'a> {
    None,
    Definition(&'a TypeDefinition),
    Structural { schema: &'a Schema, preserves_unknown: bool, is_object_root: bool },
}

/// The shape as which a value is treated.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeShape<'a> {
    Scalar(ScalarType),
    List(ListType<'a>),
    Map(MapType<'a>),
}

impl<'a> TypeRef<'a> {
    /// The type for which no value is valid.
    pub(super) const NOTHING: Self = Self(TypeSource::Nothing);

    /// A built-in type.
    pub const fn builtin(definition: &'a TypeDefinition) -> Self {
        Self(TypeSource::Definition(definition, None))
    }

    /// The type of a custom object, by the schema of its version. `preserves_unknown` is
    /// `spec.preserveUnknownFields` of the CRD.
    pub const fn structural(schema: &'a Schema, preserves_unknown: bool) -> Self {
        Self(TypeSource::Structural { schema, preserves_unknown, is_object_root: true })
    }

    /// The type of a value without a schema: objects are granular, lists atomic.
    pub const fn deduced() -> Self {
        Self(TypeSource::Deduced)
    }

    /// The shapes of the type.
    pub(super) fn resolve(self) -> Atom<'a> {
        match self.0 {
            TypeSource::Nothing => Atom::default(),
            TypeSource::Definition(definition, atomic) => definition_atom(definition, atomic),
            TypeSource::Field(field) => field_atom(field),
            TypeSource::Inner(ty) => type_atom(ty, None, true, &[]),
            TypeSource::Structural { schema, preserves_unknown, is_object_root } => {
                schema_atom(schema, preserves_unknown, is_object_root)
            }
            TypeSource::Text => Atom::scalar(ScalarType::String),
            TypeSource::Deduced => Atom::free(false),
            TypeSource::Atomic => Atom::free(true),
        }
    }

    /// Whether this is a free value, whose topology cannot change.
    fn is_free(self) -> bool {
        match self.0 {
            TypeSource::Deduced => true,
            TypeSource::Inner(_) | TypeSource::Structural { .. } | TypeSource::Text => {
                self.resolve().scalar == Some(ScalarType::Any)
                    && !matches!(self.0, TypeSource::Inner(FieldType::Object(_)))
            }
            TypeSource::Nothing
            | TypeSource::Definition(..)
            | TypeSource::Field(_)
            | TypeSource::Atomic => false,
        }
    }

    /// Whether no value is valid.
    pub(super) const fn is_nothing(self) -> bool {
        matches!(self.0, TypeSource::Nothing)
    }
}

impl<'a> Atom<'a> {
    const fn scalar(scalar: ScalarType) -> Self {
        Self { scalar: Some(scalar), list: None, map: None }
    }

    const fn list(atomic: bool, keys: &'a [Box<str>], element: TypeRef<'a>) -> Self {
        Self { scalar: None, list: Some(ListType { atomic, keys, element }), map: None }
    }

    const fn map(atomic: bool, fields: DeclaredFields<'a>, element: TypeRef<'a>) -> Self {
        Self { scalar: None, list: None, map: Some(MapType { atomic, fields, element }) }
    }

    /// The shapes of a free value.
    const fn free(atomic: bool) -> Self {
        let list = TypeRef(TypeSource::Atomic);
        let map = TypeRef(if atomic { TypeSource::Atomic } else { TypeSource::Deduced });
        Self {
            scalar: Some(ScalarType::Any),
            list: Some(ListType { atomic: true, keys: &[], element: list }),
            map: Some(MapType { atomic, fields: DeclaredFields::None, element: map }),
        }
    }

    /// The shape as which a value is treated. Null, and a value of none of the shapes, has the
    /// first possible of map, scalar, list; none if no shape is possible.
    pub(super) fn shape(&self, value: &Value) -> Option<TypeShape<'a>> {
        let fitting = match value {
            Value::Null => None,
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.scalar.map(TypeShape::Scalar)
            }
            Value::Array(_) => self.list.map(TypeShape::List),
            Value::Object(_) => self.map.map(TypeShape::Map),
        };
        fitting.or_else(|| self.first())
    }

    /// The first possible shape.
    pub(super) fn first(&self) -> Option<TypeShape<'a>> {
        (self.map.map(TypeShape::Map))
            .or_else(|| self.scalar.map(TypeShape::Scalar))
            .or_else(|| self.list.map(TypeShape::List))
    }
}

impl TypeShape<'_> {
    /// Whether both are scalars, lists or maps.
    pub(super) const fn is_same_shape(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Scalar(_), Self::Scalar(_))
                | (Self::List(_), Self::List(_))
                | (Self::Map(_), Self::Map(_))
        )
    }
}

impl<'a> MapType<'a> {
    /// The type of a declared field.
    pub(super) fn field(&self, name: &str) -> Option<TypeRef<'a>> {
        match self.fields {
            DeclaredFields::None => None,
            DeclaredFields::Definition(definition) => {
                definition.field(name).map(|field| TypeRef(TypeSource::Field(field)))
            }
            DeclaredFields::Structural { schema, preserves_unknown, is_object_root } => {
                match name {
                    "apiVersion" | "kind" if is_object_root => Some(TypeRef(TypeSource::Text)),
                    "metadata" if is_object_root => Some(
                        builtin::definition(OBJECT_META)
                            .map_or_else(TypeRef::deduced, TypeRef::builtin),
                    ),
                    _ => schema.property(name).map(|schema| {
                        TypeRef(TypeSource::Structural {
                            schema,
                            preserves_unknown,
                            is_object_root: false,
                        })
                    }),
                }
            }
        }
    }

    /// The default of a field.
    pub(super) fn default(&self, name: &str) -> Option<&'a Value> {
        let value = match self.fields {
            DeclaredFields::None => None,
            DeclaredFields::Definition(definition) => field_default(definition.field(name)?),
            DeclaredFields::Structural { schema, .. } => schema.property(name)?.default_value(),
        };
        value.filter(|value| !value.is_null())
    }

    /// Whether the object has only free fields.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.fields, DeclaredFields::None) && self.element.is_free()
    }
}

/// The default of a built-in field. The OpenAPI documents have one for each scalar that Go writes
/// even if it is zero.
fn field_default(field: &builtin::FieldDefinition) -> Option<&Value> {
    static EMPTY: Value = Value::String(String::new());
    static FALSE: Value = Value::Bool(false);
    static ZERO: LazyLock<Value> = LazyLock::new(|| 0.into());
    field.default.as_ref().or_else(|| {
        if field.pointer || field.omit != OmitRule::Never {
            return None;
        }
        match field.ty {
            FieldType::String => Some(&EMPTY),
            FieldType::Boolean => Some(&FALSE),
            FieldType::Int32 | FieldType::Int64 | FieldType::Double => Some(&ZERO),
            FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) | FieldType::Object(_) => {
                None
            }
        }
    })
}

fn definition_atom(definition: &TypeDefinition, atomic: Option<bool>) -> Atom<'_> {
    let atomic = atomic.unwrap_or(definition.is_atomic());
    match definition.json_form() {
        JsonForm::FreeObject if definition.name() == RAW_EXTENSION => Atom::free(true),
        JsonForm::Object if !definition.fields().is_empty() => {
            Atom::map(atomic, DeclaredFields::Definition(definition), TypeRef::NOTHING)
        }
        JsonForm::Object | JsonForm::FreeObject => {
            Atom::map(atomic, DeclaredFields::None, TypeRef::deduced())
        }
        JsonForm::Time | JsonForm::MicroTime | JsonForm::Quantity | JsonForm::ParsedText => {
            Atom::scalar(ScalarType::Any)
        }
        JsonForm::Any | JsonForm::IntOrString => Atom::free(false),
    }
}

fn field_atom(field: &builtin::FieldDefinition) -> Atom<'_> {
    let atomic_list = matches!(field.list_type, None | Some(builtin::ListType::Atomic));
    let atomic = (field.atomic || field.granular).then_some(field.atomic);
    type_atom(&field.ty, atomic, atomic_list, &field.list_map_keys)
}

fn type_atom<'a>(
    ty: &'a FieldType,
    atomic_map: Option<bool>,
    atomic_list: bool,
    keys: &'a [Box<str>],
) -> Atom<'a> {
    match ty {
        FieldType::String | FieldType::Bytes => Atom::scalar(ScalarType::String),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => {
            Atom::scalar(ScalarType::Numeric)
        }
        FieldType::Boolean => Atom::scalar(ScalarType::Boolean),
        FieldType::List(element) => {
            Atom::list(atomic_list, keys, TypeRef(TypeSource::Inner(element)))
        }
        FieldType::Map(element) => {
            let element = TypeRef(TypeSource::Inner(element));
            Atom::map(atomic_map.unwrap_or_default(), DeclaredFields::None, element)
        }
        FieldType::Object(_) => ty.definition().map_or_else(
            || Atom::free(false),
            |definition| definition_atom(definition, atomic_map),
        ),
    }
}

fn schema_atom(schema: &Schema, preserves_unknown: bool, is_object_root: bool) -> Atom<'_> {
    let preserves_unknown = preserves_unknown || schema.preserves_unknown_fields();
    let is_object_root = is_object_root || schema.is_embedded_resource();
    let nested = |schema| {
        TypeRef(TypeSource::Structural { schema, preserves_unknown, is_object_root: false })
    };
    let map = || {
        let has_fields = is_object_root || schema.properties().len() > 0;
        let element = match schema.additional_properties() {
            Some(schema) => nested(schema),
            None if preserves_unknown || !has_fields || schema.allows_any_property() => {
                TypeRef::deduced()
            }
            None => TypeRef::NOTHING,
        };
        let fields = if has_fields {
            DeclaredFields::Structural { schema, preserves_unknown, is_object_root }
        } else {
            DeclaredFields::None
        };
        MapType { atomic: schema.is_atomic_map(), fields, element }
    };
    let list = || {
        let atomic = matches!(schema.list_type(), None | Some(structural::ListType::Atomic));
        let element = schema.items().map_or(TypeRef(TypeSource::Atomic), nested);
        ListType { atomic, keys: schema.list_map_keys(), element }
    };
    match schema.type_name() {
        Some("object") => Atom { map: Some(map()), ..Atom::default() },
        Some("array") => Atom { list: Some(list()), ..Atom::default() },
        Some("integer" | "number") => Atom::scalar(ScalarType::Numeric),
        Some("boolean") => Atom::scalar(ScalarType::Boolean),
        // Other code validates formats.
        Some(_) if schema.has_format() => Atom::scalar(ScalarType::Any),
        Some(_) => Atom::scalar(ScalarType::String),
        None => Atom { scalar: Some(ScalarType::Any), list: Some(list()), map: Some(map()) },
    }
}
