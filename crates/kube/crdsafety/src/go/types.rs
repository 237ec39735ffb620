//! The Go types of JSON schemas: kinds, printed names and fields in their order.

/// The kind of a Go type, as `reflect` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `bool`.
    Bool,
    /// `int64`.
    Int,
    /// `float64`.
    Float,
    /// `uint8`, an element of `[]byte`.
    Byte,
    /// `string`.
    Text,
    /// A pointer to the element type.
    Pointer,
    /// A struct.
    Struct,
    /// A slice of the element type.
    Slice,
    /// A map from strings to the element type.
    Map,
}

/// How JSON is decoded into a value of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonForm {
    /// As the kind says.
    Plain,
    /// `JSON`: the text of any JSON value.
    Raw,
    /// `JSONSchemaPropsOrArray`.
    SchemaOrArray,
    /// `JSONSchemaPropsOrBool`.
    SchemaOrBool,
    /// `JSONSchemaPropsOrStringArray`.
    SchemaOrNames,
}

/// A Go type.
#[derive(Debug)]
pub(crate) struct Type {
    /// The name as Go prints it.
    pub(crate) name: &'static str,
    /// The name in texts of `String()`, without the package; empty if the type has no `String()`.
    pub(crate) short_name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) form: JsonForm,
    /// The type of elements of a pointer, slice or map.
    pub(crate) element: Option<&'static Self>,
    pub(crate) fields: &'static [Field],
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The key in JSON.
    pub(crate) key: &'static str,
    pub(crate) kind: &'static Type,
}

impl Type {
    const fn scalar(name: &'static str, kind: Kind) -> Self {
        Self { name, short_name: "", kind, form: JsonForm::Plain, element: None, fields: &[] }
    }

    const fn of(name: &'static str, kind: Kind, element: &'static Self) -> Self {
        Self {
            name,
            short_name: "",
            kind,
            form: JsonForm::Plain,
            element: Some(element),
            fields: &[],
        }
    }

    const fn record(
        name: &'static str,
        short_name: &'static str,
        form: JsonForm,
        fields: &'static [Field],
    ) -> Self {
        Self { name, short_name, kind: Kind::Struct, form, element: None, fields }
    }
}

static BOOL: Type = Type::scalar("bool", Kind::Bool);
static INT: Type = Type::scalar("int64", Kind::Int);
static FLOAT: Type = Type::scalar("float64", Kind::Float);
static BYTE: Type = Type::scalar("uint8", Kind::Byte);
static STRING: Type = Type::scalar("string", Kind::Text);
static URL: Type = Type::scalar("v1.JSONSchemaURL", Kind::Text);
static REASON: Type = Type::scalar("v1.FieldValueErrorReason", Kind::Text);

static BOOL_POINTER: Type = Type::of("*bool", Kind::Pointer, &BOOL);
static INT_POINTER: Type = Type::of("*int64", Kind::Pointer, &INT);
static FLOAT_POINTER: Type = Type::of("*float64", Kind::Pointer, &FLOAT);
static STRING_POINTER: Type = Type::of("*string", Kind::Pointer, &STRING);
static REASON_POINTER: Type = Type::of("*v1.FieldValueErrorReason", Kind::Pointer, &REASON);
static BYTES: Type = Type::of("[]uint8", Kind::Slice, &BYTE);
static STRINGS: Type = Type::of("[]string", Kind::Slice, &STRING);

static JSON: Type =
    Type::record("v1.JSON", "JSON", JsonForm::Raw, &[Field { name: "Raw", key: "", kind: &BYTES }]);
static JSON_POINTER: Type = Type::of("*v1.JSON", Kind::Pointer, &JSON);
static JSON_SLICE: Type = Type::of("[]v1.JSON", Kind::Slice, &JSON);

/// The type of a pointer to a schema.
pub(crate) static SCHEMA_POINTER: Type = Type::of("*v1.JSONSchemaProps", Kind::Pointer, &SCHEMA);
static SCHEMA_SLICE: Type = Type::of("[]v1.JSONSchemaProps", Kind::Slice, &SCHEMA);
static SCHEMA_MAP: Type = Type::of("map[string]v1.JSONSchemaProps", Kind::Map, &SCHEMA);
static DEFINITIONS: Type = Type::of("v1.JSONSchemaDefinitions", Kind::Map, &SCHEMA);

static SCHEMA_OR_ARRAY: Type = Type::record(
    "v1.JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrArray",
    JsonForm::SchemaOrArray,
    &[
        Field { name: "Schema", key: "", kind: &SCHEMA_POINTER },
        Field { name: "JSONSchemas", key: "", kind: &SCHEMA_SLICE },
    ],
);
static SCHEMA_OR_ARRAY_POINTER: Type =
    Type::of("*v1.JSONSchemaPropsOrArray", Kind::Pointer, &SCHEMA_OR_ARRAY);
static SCHEMA_OR_BOOL: Type = Type::record(
    "v1.JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrBool",
    JsonForm::SchemaOrBool,
    &[
        Field { name: "Allows", key: "", kind: &BOOL },
        Field { name: "Schema", key: "", kind: &SCHEMA_POINTER },
    ],
);
static SCHEMA_OR_BOOL_POINTER: Type =
    Type::of("*v1.JSONSchemaPropsOrBool", Kind::Pointer, &SCHEMA_OR_BOOL);
static SCHEMA_OR_NAMES: Type = Type::record(
    "v1.JSONSchemaPropsOrStringArray",
    "JSONSchemaPropsOrStringArray",
    JsonForm::SchemaOrNames,
    &[
        Field { name: "Schema", key: "", kind: &SCHEMA_POINTER },
        Field { name: "Property", key: "", kind: &STRINGS },
    ],
);
static DEPENDENCIES: Type = Type::of("v1.JSONSchemaDependencies", Kind::Map, &SCHEMA_OR_NAMES);

static DOCS: Type = Type::record(
    "v1.ExternalDocumentation",
    "ExternalDocumentation",
    JsonForm::Plain,
    &[
        Field { name: "Description", key: "description", kind: &STRING },
        Field { name: "URL", key: "url", kind: &STRING },
    ],
);
static DOCS_POINTER: Type = Type::of("*v1.ExternalDocumentation", Kind::Pointer, &DOCS);

static RULE: Type = Type::record(
    "v1.ValidationRule",
    "ValidationRule",
    JsonForm::Plain,
    &[
        Field { name: "Rule", key: "rule", kind: &STRING },
        Field { name: "Message", key: "message", kind: &STRING },
        Field { name: "MessageExpression", key: "messageExpression", kind: &STRING },
        Field { name: "Reason", key: "reason", kind: &REASON_POINTER },
        Field { name: "FieldPath", key: "fieldPath", kind: &STRING },
        Field { name: "OptionalOldSelf", key: "optionalOldSelf", kind: &BOOL_POINTER },
    ],
);
static RULES: Type = Type::of("v1.ValidationRules", Kind::Slice, &RULE);

/// Lists the fields of `JSONSchemaProps` once: for [`SCHEMA`] and as indexes for [`field`].
macro_rules! schema_fields {
    ($($index:ident $name:literal $key:literal $kind:ident,)*) => {
        /// The type of a schema.
        pub(crate) static SCHEMA: Type = Type::record(
            "v1.JSONSchemaProps",
            "JSONSchemaProps",
            JsonForm::Plain,
            &[$(Field { name: $name, key: $key, kind: &$kind },)*],
        );

        /// Indexes of the fields of a schema.
        #[allow(dead_code, reason = "the list is that of the type")]
        #[expect(clippy::upper_case_acronyms, non_camel_case_types, reason = "each becomes a constant")]
        enum SchemaField {
            $($index,)*
        }

        /// Indexes of the fields of a schema.
        #[allow(dead_code, reason = "the list is that of the type")]
        pub(crate) mod field {
            $(pub(crate) const $index: usize = super::SchemaField::$index as usize;)*
        }
    };
}

schema_fields! {
    ID "ID" "id" STRING,
    META_SCHEMA "Schema" "$schema" URL,
    REF "Ref" "$ref" STRING_POINTER,
    DESCRIPTION "Description" "description" STRING,
    TYPE "Type" "type" STRING,
    FORMAT "Format" "format" STRING,
    TITLE "Title" "title" STRING,
    DEFAULT "Default" "default" JSON_POINTER,
    MAXIMUM "Maximum" "maximum" FLOAT_POINTER,
    EXCLUSIVE_MAXIMUM "ExclusiveMaximum" "exclusiveMaximum" BOOL,
    MINIMUM "Minimum" "minimum" FLOAT_POINTER,
    EXCLUSIVE_MINIMUM "ExclusiveMinimum" "exclusiveMinimum" BOOL,
    MAX_LENGTH "MaxLength" "maxLength" INT_POINTER,
    MIN_LENGTH "MinLength" "minLength" INT_POINTER,
    PATTERN "Pattern" "pattern" STRING,
    MAX_ITEMS "MaxItems" "maxItems" INT_POINTER,
    MIN_ITEMS "MinItems" "minItems" INT_POINTER,
    UNIQUE_ITEMS "UniqueItems" "uniqueItems" BOOL,
    MULTIPLE_OF "MultipleOf" "multipleOf" FLOAT_POINTER,
    ENUM "Enum" "enum" JSON_SLICE,
    MAX_PROPERTIES "MaxProperties" "maxProperties" INT_POINTER,
    MIN_PROPERTIES "MinProperties" "minProperties" INT_POINTER,
    REQUIRED "Required" "required" STRINGS,
    ITEMS "Items" "items" SCHEMA_OR_ARRAY_POINTER,
    ALL_OF "AllOf" "allOf" SCHEMA_SLICE,
    ONE_OF "OneOf" "oneOf" SCHEMA_SLICE,
    ANY_OF "AnyOf" "anyOf" SCHEMA_SLICE,
    NOT "Not" "not" SCHEMA_POINTER,
    PROPERTIES "Properties" "properties" SCHEMA_MAP,
    ADDITIONAL_PROPERTIES "AdditionalProperties" "additionalProperties" SCHEMA_OR_BOOL_POINTER,
    PATTERN_PROPERTIES "PatternProperties" "patternProperties" SCHEMA_MAP,
    DEPENDENCIES "Dependencies" "dependencies" DEPENDENCIES,
    ADDITIONAL_ITEMS "AdditionalItems" "additionalItems" SCHEMA_OR_BOOL_POINTER,
    DEFINITIONS "Definitions" "definitions" DEFINITIONS,
    EXTERNAL_DOCS "ExternalDocs" "externalDocs" DOCS_POINTER,
    EXAMPLE "Example" "example" JSON_POINTER,
    NULLABLE "Nullable" "nullable" BOOL,
    PRESERVE_UNKNOWN_FIELDS "XPreserveUnknownFields" "x-kubernetes-preserve-unknown-fields" BOOL_POINTER,
    EMBEDDED_RESOURCE "XEmbeddedResource" "x-kubernetes-embedded-resource" BOOL,
    INT_OR_STRING "XIntOrString" "x-kubernetes-int-or-string" BOOL,
    LIST_MAP_KEYS "XListMapKeys" "x-kubernetes-list-map-keys" STRINGS,
    LIST_TYPE "XListType" "x-kubernetes-list-type" STRING_POINTER,
    MAP_TYPE "XMapType" "x-kubernetes-map-type" STRING_POINTER,
    VALIDATIONS "XValidations" "x-kubernetes-validations" RULES,
}
