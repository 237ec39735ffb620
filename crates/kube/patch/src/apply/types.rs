//! Types as apply sees them: which values are scalars, lists and maps, which of those are one value
//! for ownership, and how elements of lists are known.
//!
//! Three sources say it: the table of built-in types, structural schemas of custom resources, and
//! the value itself where nothing else does. [`TypeRef`] is a handle that is free to copy; a
//! walk resolves it at each value ([`TypeRef::resolve`]) and gets handles for what lies below.
//!
//! The rules are those by which Kubernetes makes a schema for structured-merge-diff out of its
//! OpenAPI documents (kube-openapi `schemaconv`):
//!
//! - A list is atomic unless its type says otherwise; without a type for elements they are atomic.
//! - An object without properties has free fields, of which each is what its value is. With
//!   properties, other fields are free only if it or an object above it preserves unknown ones.
//! - What has no type may be anything.
//! - Custom objects and objects embedded in them have `apiVersion`, `kind` and `metadata`, whatever
//!   their schema says of those.
//! - In a free value, objects are granular and lists atomic.

use mainstay_schema::builtin::{self, FieldType, JsonForm, OmitRule, TypeDefinition};
use mainstay_schema::structural::{self, Schema};
use serde_json::Value;
use std::sync::LazyLock;

/// The built-in types that mean more than they say.
const OBJECT_META: &str = "apimachinery.pkg.apis.meta.v1.ObjectMeta";
const RAW_EXTENSION: &str = "apimachinery.pkg.runtime.RawExtension";

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub struct TypeRef<'a>(Kind<'a>);

#[derive(Clone, Copy, Debug)]
enum Kind<'a> {
    /// No value may be here.
    Nothing,
    /// A built-in definition; whether it is atomic, if a field says so.
    Definition(&'a TypeDefinition, Option<bool>),
    /// A field of a built-in definition.
    Field(&'a builtin::FieldDefinition),
    /// A built-in type inside another.
    Inner(&'a FieldType),
    /// A structural schema.
    Structural { schema: &'a Schema, preserving: bool, whole: bool },
    /// A text.
    Text,
    /// A free value.
    Deduced,
    /// A free value that is one value.
    Atomic,
}

/// What a value of a type may be. Several are possible; the value decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Atom<'a> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<ListType<'a>>,
    pub(super) map: Option<MapType<'a>>,
}

/// Which scalars are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    String,
    Boolean,
    Any,
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListType<'a> {
    pub(super) atomic: bool,
    /// The keys of a list map; empty for sets and atomic lists.
    pub(super) keys: &'a [Box<str>],
    pub(super) element: TypeRef<'a>,
}

/// An object.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapType<'a> {
    pub(super) atomic: bool,
    fields: Fields<'a>,
    /// The type of fields that have none of their own.
    pub(super) element: TypeRef<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Fields<'a> {
    None,
    Definition(&'a TypeDefinition),
    Structural { schema: &'a Schema, preserving: bool, whole: bool },
}

/// Which of the possibilities a value is treated as.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shaped<'a> {
    Scalar(Scalar),
    List(ListType<'a>),
    Map(MapType<'a>),
}

impl<'a> TypeRef<'a> {
    /// The type of what may not be there.
    pub(super) const NOTHING: Self = Self(Kind::Nothing);

    /// A built-in type.
    pub const fn builtin(definition: &'a TypeDefinition) -> Self {
        Self(Kind::Definition(definition, None))
    }

    /// A whole custom object, by its version's schema. `preserving` is the old
    /// `spec.preserveUnknownFields` of its definition.
    pub const fn structural(schema: &'a Schema, preserving: bool) -> Self {
        Self(Kind::Structural { schema, preserving, whole: true })
    }

    /// A value of which nothing is known: objects are granular, lists atomic.
    pub const fn deduced() -> Self {
        Self(Kind::Deduced)
    }

    /// What a value may be.
    pub(super) fn resolve(self) -> Atom<'a> {
        match self.0 {
            Kind::Nothing => Atom::default(),
            Kind::Definition(definition, atomic) => of_definition(definition, atomic),
            Kind::Field(field) => of_field(field),
            Kind::Inner(ty) => of_type(ty, None, true, &[]),
            Kind::Structural { schema, preserving, whole } => of_schema(schema, preserving, whole),
            Kind::Text => Atom::scalar(Scalar::String),
            Kind::Deduced => Atom::free(false),
            Kind::Atomic => Atom::free(true),
        }
    }

    /// Whether this is a free value, which has no topology that could change.
    fn is_free(self) -> bool {
        match self.0 {
            Kind::Deduced => true,
            Kind::Inner(_) | Kind::Structural { .. } | Kind::Text => {
                self.resolve().scalar == Some(Scalar::Any)
                    && !matches!(self.0, Kind::Inner(FieldType::Object(_)))
            }
            Kind::Nothing | Kind::Definition(..) | Kind::Field(_) | Kind::Atomic => false,
        }
    }

    /// Whether a value may be here at all.
    pub(super) const fn is_nothing(self) -> bool {
        matches!(self.0, Kind::Nothing)
    }
}

impl<'a> Atom<'a> {
    const fn scalar(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), list: None, map: None }
    }

    const fn list(atomic: bool, keys: &'a [Box<str>], element: TypeRef<'a>) -> Self {
        Self { scalar: None, list: Some(ListType { atomic, keys, element }), map: None }
    }

    const fn map(atomic: bool, fields: Fields<'a>, element: TypeRef<'a>) -> Self {
        Self { scalar: None, list: None, map: Some(MapType { atomic, fields, element }) }
    }

    /// Any value.
    const fn free(atomic: bool) -> Self {
        let list = TypeRef(Kind::Atomic);
        let map = TypeRef(if atomic { Kind::Atomic } else { Kind::Deduced });
        Self {
            scalar: Some(Scalar::Any),
            list: Some(ListType { atomic: true, keys: &[], element: list }),
            map: Some(MapType { atomic, fields: Fields::None, element: map }),
        }
    }

    /// What a value is treated as. A value that fits nothing, and null, is treated as the first
    /// possibility of map, scalar, list; none if there is none.
    pub(super) fn shape(&self, value: &Value) -> Option<Shaped<'a>> {
        let fitting = match value {
            Value::Null => None,
            Value::Bool(_) | Value::Number(_) | Value::String(_) => self.scalar.map(Shaped::Scalar),
            Value::Array(_) => self.list.map(Shaped::List),
            Value::Object(_) => self.map.map(Shaped::Map),
        };
        fitting.or_else(|| self.first())
    }

    /// The first possibility.
    pub(super) fn first(&self) -> Option<Shaped<'a>> {
        (self.map.map(Shaped::Map))
            .or_else(|| self.scalar.map(Shaped::Scalar))
            .or_else(|| self.list.map(Shaped::List))
    }
}

impl Shaped<'_> {
    /// Whether both are the same possibility.
    pub(super) const fn is_kind_of(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Scalar(_), Self::Scalar(_))
                | (Self::List(_), Self::List(_))
                | (Self::Map(_), Self::Map(_))
        )
    }
}

impl<'a> MapType<'a> {
    /// The type of a field that the type names.
    pub(super) fn field(&self, name: &str) -> Option<TypeRef<'a>> {
        match self.fields {
            Fields::None => None,
            Fields::Definition(definition) => {
                definition.field(name).map(|field| TypeRef(Kind::Field(field)))
            }
            Fields::Structural { schema, preserving, whole } => match name {
                "apiVersion" | "kind" if whole => Some(TypeRef(Kind::Text)),
                "metadata" if whole => Some(
                    builtin::definition(OBJECT_META)
                        .map_or_else(TypeRef::deduced, TypeRef::builtin),
                ),
                _ => schema
                    .property(name)
                    .map(|schema| TypeRef(Kind::Structural { schema, preserving, whole: false })),
            },
        }
    }

    /// The default of a field.
    pub(super) fn default(&self, name: &str) -> Option<&'a Value> {
        let value = match self.fields {
            Fields::None => None,
            Fields::Definition(definition) => default_of(definition.field(name)?),
            Fields::Structural { schema, .. } => schema.property(name)?.default_value(),
        };
        value.filter(|value| !value.is_null())
    }

    /// Whether the object has free fields only.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.fields, Fields::None) && self.element.is_free()
    }
}

/// The default of a built-in field. The documents of the API have one for every scalar that Go writes
/// even if it is zero.
fn default_of(field: &builtin::FieldDefinition) -> Option<&Value> {
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

fn of_definition(definition: &TypeDefinition, atomic: Option<bool>) -> Atom<'_> {
    let atomic = atomic.unwrap_or(definition.is_atomic());
    match definition.json_form() {
        JsonForm::FreeObject if definition.name() == RAW_EXTENSION => Atom::free(true),
        JsonForm::Object if !definition.fields().is_empty() => {
            Atom::map(atomic, Fields::Definition(definition), TypeRef::NOTHING)
        }
        JsonForm::Object | JsonForm::FreeObject => {
            Atom::map(atomic, Fields::None, TypeRef::deduced())
        }
        JsonForm::Time | JsonForm::MicroTime | JsonForm::Quantity | JsonForm::ParsedText => {
            Atom::scalar(Scalar::Any)
        }
        JsonForm::Any | JsonForm::IntOrString => Atom::free(false),
    }
}

fn of_field(field: &builtin::FieldDefinition) -> Atom<'_> {
    let atomic_list = matches!(field.list_type, None | Some(builtin::ListType::Atomic));
    let atomic = (field.atomic || field.granular).then_some(field.atomic);
    of_type(&field.ty, atomic, atomic_list, &field.list_map_keys)
}

fn of_type<'a>(
    ty: &'a FieldType,
    atomic_map: Option<bool>,
    atomic_list: bool,
    keys: &'a [Box<str>],
) -> Atom<'a> {
    match ty {
        FieldType::String | FieldType::Bytes => Atom::scalar(Scalar::String),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => Atom::scalar(Scalar::Numeric),
        FieldType::Boolean => Atom::scalar(Scalar::Boolean),
        FieldType::List(element) => Atom::list(atomic_list, keys, TypeRef(Kind::Inner(element))),
        FieldType::Map(element) => {
            let element = TypeRef(Kind::Inner(element));
            Atom::map(atomic_map.unwrap_or_default(), Fields::None, element)
        }
        FieldType::Object(_) => ty
            .definition()
            .map_or_else(|| Atom::free(false), |definition| of_definition(definition, atomic_map)),
    }
}

fn of_schema(schema: &Schema, preserving: bool, whole: bool) -> Atom<'_> {
    let preserving = preserving || schema.preserves_unknown_fields();
    let whole = whole || schema.is_embedded_resource();
    let map = || {
        let named = whole || schema.properties().len() > 0;
        let element = match schema.additional_properties() {
            Some(schema) => TypeRef(Kind::Structural { schema, preserving, whole: false }),
            None if preserving || !named || schema.allows_any_property() => TypeRef::deduced(),
            None => TypeRef::NOTHING,
        };
        let fields =
            if named { Fields::Structural { schema, preserving, whole } } else { Fields::None };
        MapType { atomic: schema.is_atomic_map(), fields, element }
    };
    let list = || {
        let atomic = matches!(schema.list_type(), None | Some(structural::ListType::Atomic));
        let element = schema.items().map_or(TypeRef(Kind::Atomic), |schema| {
            TypeRef(Kind::Structural { schema, preserving, whole: false })
        });
        ListType { atomic, keys: schema.list_map_keys(), element }
    };
    match schema.type_name() {
        Some("object") => Atom { map: Some(map()), ..Atom::default() },
        Some("array") => Atom { list: Some(list()), ..Atom::default() },
        Some("integer" | "number") => Atom::scalar(Scalar::Numeric),
        Some("boolean") => Atom::scalar(Scalar::Boolean),
        // Checking what has a format is left to those who know formats.
        Some(_) if schema.has_format() => Atom::scalar(Scalar::Any),
        Some(_) => Atom::scalar(Scalar::String),
        None => Atom { scalar: Some(Scalar::Any), list: Some(list()), map: Some(map()) },
    }
}
