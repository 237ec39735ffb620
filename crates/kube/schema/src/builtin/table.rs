//! Table of Go types: reads `table.bin`, which `cargo xtask schema` generates.
//!
//! The file begins with a directory, one line for each Go package: name, compressed and plain length
//! of its types, compressed and plain length of its texts. An empty line ends the directory; the
//! deflated parts follow in its order.
//!
//! The types of a package are lines. `=Pod` begins a definition. Then comes a letter if its JSON form
//! is not an object with known fields, and `atomic` if server-side apply treats the whole as one
//! value. One line for each field follows, in order of names: name (with `!` if required), type,
//! options. Types are letters: `s`tring, b`y`tes, `i`nt32, int6`4` as `l`, `d`ouble, `b`oolean, `[`
//! and `{` for a list and a map of the next type, `@Name` for a definition.
//!
//! Options: `t` protobuf tags separated by dots, `e` the types that embed the field, `g` Go's form
//! (`p`ointer, `a`lways written, omitted when `z`ero), `n` Go's name of a type, `lt` list type, `k`
//! list map keys, `mt` map type, `mk` patch merge key, `ps` patch strategies, `d` default, `o`
//! position in the order of declaration, if that is not the order of the tags.
//!
//! The texts of a package are one line for each definition and field, in the same order. A line is
//! empty if no document contains the type (alpha and beta versions). A tab and a JSON merge patch
//! may follow the description: additions to the OpenAPI schema, such as enumerations and unions.

use crate::protobuf::Layout;
use flate2::read::DeflateDecoder;
use serde_json::Value;
use std::io::Read;
use std::sync::OnceLock;

static TABLE: &[u8] = include_bytes!("table.bin");

/// A Go type of the built-in API.
#[derive(Debug)]
pub struct TypeDefinition {
    name: Box<str>,
    json_form: JsonForm,
    atomic: bool,
    fields: Vec<FieldDefinition>,
    /// The first byte of each field's name.
    initials: Vec<u8>,
    /// Positions of the fields that are always written.
    always_written: Vec<u16>,
    /// Positions of the fields in the order of their declaration, computed at the first use.
    declared: OnceLock<Box<[u16]>>,
    /// Line of its description in the texts of its package.
    pub(super) line: usize,
    /// Computed when the first protobuf message of the type is written.
    layout: OnceLock<Layout>,
}

/// The JSON form of a [`TypeDefinition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonForm {
    /// An object with the fields of [`TypeDefinition::fields`].
    Object,
    /// An object with any fields.
    FreeObject,
    /// Any value.
    Any,
    /// An RFC 3339 time.
    Time,
    /// An RFC 3339 time with microseconds.
    MicroTime,
    /// An integer or a text.
    IntOrString,
    /// A quantity such as `100m` or `2Gi`, as text or number.
    Quantity,
    /// A text that the Go type parses itself: versions and releases of operators.
    ParsedText,
}

/// A field of a [`TypeDefinition`].
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent markers of the Go sources")]
pub struct FieldDefinition {
    /// JSON name.
    pub name: Box<str>,
    /// Type of the value.
    pub ty: FieldType,
    /// Whether the OpenAPI document requires the field.
    pub required: bool,
    /// How server-side apply treats a list; none if the value is no list.
    pub list_type: Option<ListType>,
    /// Keys of the elements of a list of type map.
    pub list_map_keys: Vec<Box<str>>,
    /// Whether server-side apply treats the whole object as one value.
    pub atomic: bool,
    /// Whether server-side apply merges the fields of the object, although its type is atomic
    /// elsewhere.
    pub granular: bool,
    /// Key by which strategic merge patch identifies elements; none for lists of scalars.
    pub patch_merge_key: Option<Box<str>>,
    /// Whether strategic merge patch merges the list instead of replacing it.
    pub patch_merge: bool,
    /// Whether strategic merge patch replaces an object instead of merging it.
    pub patch_replace: bool,
    /// Whether strategic merge patch supports `$retainKeys` in the value
    /// (`patchStrategy: retainKeys`).
    pub patch_retain_keys: bool,
    /// The default.
    pub default: Option<Value>,
    /// Protobuf tags: those of the embedding messages, then its own. Empty for `apiVersion` and
    /// `kind`, which are in the envelope.
    pub tags: Box<[u32]>,
    /// Go's names of the types that embed the field, separated by dots; usually empty.
    pub embedded: Box<str>,
    /// Whether the Go field is a pointer, which distinguishes absent from zero.
    pub pointer: bool,
    /// When Go omits the field from the JSON of an object.
    pub omit: OmitRule,
    /// Go's name of a named scalar type. For a list or map, the name of the element type, or that of
    /// the whole after a `*`. A name without a package is in the owner's package.
    pub type_name: Option<Box<str>>,
    /// Position in the order of declaration, if that is not the order of the tags.
    declared_at: Option<u16>,
}

/// When Go omits a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OmitRule {
    /// Never: written even when it is empty.
    Never,
    /// A zero scalar, a nil pointer, an empty list or map (`omitempty`). An empty struct is written.
    IfEmpty,
    /// A zero value, structs included (`omitzero`).
    IfZero,
}

impl FieldDefinition {
    /// Whether Go writes the field even when it is empty.
    fn is_always_written(&self) -> bool {
        let is_struct = !self.pointer && matches!(self.ty, FieldType::Object(_));
        self.omit == OmitRule::Never || (is_struct && self.omit == OmitRule::IfEmpty)
    }
}

/// Type of a field or an element.
#[derive(Debug)]
pub enum FieldType {
    /// Text.
    String,
    /// Bytes: base64 in JSON.
    Bytes,
    /// Integer of 32 bits.
    Int32,
    /// Integer of 64 bits.
    Int64,
    /// Floating point number.
    Double,
    /// Boolean.
    Boolean,
    /// List of values of one type.
    List(Box<Self>),
    /// Map from names to values of one type.
    Map(Box<Self>),
    /// A defined type.
    Object(Box<TypeReference>),
}

/// A reference to a definition by name, resolved once.
#[derive(Debug)]
pub struct TypeReference {
    name: Box<str>,
    found: OnceLock<&'static TypeDefinition>,
}

impl TypeReference {
    fn new(name: String) -> Self {
        Self { name: name.into(), found: OnceLock::new() }
    }

    /// The name of the definition.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition.
    pub fn definition(&self) -> Option<&'static TypeDefinition> {
        if let Some(found) = self.found.get() {
            return Some(found);
        }
        let found = definition(&self.name)?;
        Some(self.found.get_or_init(|| found))
    }
}

/// `x-kubernetes-list-type`: how server-side apply treats a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One value.
    Atomic,
    /// A set of scalars.
    Set,
    /// A map with the keys [`FieldDefinition::list_map_keys`].
    Map,
}

impl ListType {
    /// The text of the extension.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Set => "set",
            Self::Map => "map",
        }
    }
}

impl TypeDefinition {
    /// The name in OpenAPI documents without the leading `io.k8s.`, such as `api.core.v1.Pod`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last part of the name, such as `Pod`.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// The JSON form of values.
    pub const fn json_form(&self) -> JsonForm {
        self.json_form
    }

    /// The text of the zero value of a type that parses itself ([`JsonForm::ParsedText`]).
    pub fn zero_text(&self) -> &'static str {
        if self.short_name() == "OperatorVersion" { "0.0.0" } else { "" }
    }

    /// Whether server-side apply treats the whole object as one value.
    pub const fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// The fields, in order of their names.
    pub fn fields(&self) -> &[FieldDefinition] {
        &self.fields
    }

    /// The fields in the order of their Go declaration, in which Go writes them.
    pub fn declared_fields(&self) -> impl Iterator<Item = &FieldDefinition> {
        let declared = self.declared.get_or_init(|| {
            let mut positions: Vec<u16> = (0..).take(self.fields.len()).collect();
            // `kind` and `apiVersion` have no tags and come first.
            positions.sort_by_key(|at| {
                let field = &self.fields[usize::from(*at)];
                (field.declared_at, &field.tags, &*field.name == "apiVersion")
            });
            positions.into()
        });
        declared.iter().filter_map(|at| self.fields.get(usize::from(*at)))
    }

    /// The fields that Go writes even when they are empty, structs that are no pointers included.
    pub(crate) fn always_written(&self) -> impl Iterator<Item = &FieldDefinition> {
        self.always_written.iter().filter_map(|at| self.fields.get(usize::from(*at)))
    }

    /// The field of this JSON name.
    pub fn field(&self, name: &str) -> Option<&FieldDefinition> {
        self.position(name).map(|at| &self.fields[at])
    }

    /// The position of the field of this JSON name in [`TypeDefinition::fields`].
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        // Fields with the same initial are few and adjacent.
        let initial = name.bytes().next()?;
        let first = memchr::memchr(initial, &self.initials)?;
        let same = self.initials[first..].iter().take_while(|other| **other == initial).count();
        let found = self.fields[first..][..same].iter().position(|field| *field.name == *name)?;
        Some(first + found)
    }

    /// The layout of its protobuf messages.
    pub(crate) fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| Layout::of(self))
    }
}

impl FieldType {
    /// The definition of a defined type.
    pub fn definition(&self) -> Option<&'static TypeDefinition> {
        match self {
            Self::Object(reference) => reference.definition(),
            _ => None,
        }
    }

    /// The type of the elements of a list or a map.
    pub const fn element(&self) -> Option<&Self> {
        match self {
            Self::List(element) | Self::Map(element) => Some(element),
            _ => None,
        }
    }
}

/// A Go package of the table.
#[derive(Debug)]
pub(super) struct Package {
    name: &'static str,
    types: CompressedText,
    pub(super) texts: CompressedText,
    definitions: OnceLock<Vec<TypeDefinition>>,
}

/// A deflated part of the table, and its plain length.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompressedText {
    bytes: &'static [u8],
    length: usize,
}

impl CompressedText {
    pub(super) fn inflate(self) -> String {
        let mut text = String::with_capacity(self.length);
        // A corrupt table has no types; a test checks that it is not corrupt.
        if DeflateDecoder::new(self.bytes).read_to_string(&mut text).is_err() {
            text.clear();
        }
        text
    }
}

impl Package {
    fn definitions(&self) -> &[TypeDefinition] {
        self.definitions.get_or_init(|| read_types(self.name, &self.types.inflate()))
    }
}

fn packages() -> &'static [Package] {
    static PACKAGES: OnceLock<Vec<Package>> = OnceLock::new();
    PACKAGES.get_or_init(|| read_directory(TABLE).unwrap_or_default())
}

fn read_directory(table: &'static [u8]) -> Option<Vec<Package>> {
    let end = table.windows(2).position(|pair| pair == b"\n\n")?;
    let (directory, mut rest) = (str::from_utf8(&table[..end]).ok()?, &table[end + 2..]);
    let mut found = Vec::new();
    for line in directory.lines() {
        let mut words = line.split(' ');
        let name = words.next()?;
        let mut part = || {
            let (compressed, length) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let (bytes, tail) = rest.split_at_checked(compressed)?;
            rest = tail;
            Some(CompressedText { bytes, length })
        };
        found.push(Package { name, types: part()?, texts: part()?, definitions: OnceLock::new() });
    }
    Some(found)
}

fn read_types(package: &str, text: &str) -> Vec<TypeDefinition> {
    let mut found: Vec<TypeDefinition> = Vec::new();
    for (line, content) in text.lines().enumerate() {
        if let Some(head) = content.strip_prefix('=') {
            let mut words = head.split(' ');
            let mut definition = TypeDefinition {
                name: format!("{package}.{}", words.next().unwrap_or_default()).into(),
                json_form: JsonForm::Object,
                atomic: false,
                fields: Vec::new(),
                initials: Vec::new(),
                always_written: Vec::new(),
                declared: OnceLock::new(),
                line,
                layout: OnceLock::new(),
            };
            for word in words {
                match word {
                    "t" => definition.json_form = JsonForm::Time,
                    "u" => definition.json_form = JsonForm::MicroTime,
                    "x" => definition.json_form = JsonForm::IntOrString,
                    "q" => definition.json_form = JsonForm::Quantity,
                    "s" => definition.json_form = JsonForm::ParsedText,
                    "o" => definition.json_form = JsonForm::FreeObject,
                    "a" => definition.json_form = JsonForm::Any,
                    "atomic" => definition.atomic = true,
                    _ => {}
                }
            }
            found.push(definition);
        } else if let Some(definition) = found.last_mut() {
            let field = read_field(package, content);
            if field.is_always_written() {
                definition.always_written.extend(u16::try_from(definition.fields.len()));
            }
            definition.fields.push(field);
        }
    }
    for definition in &mut found {
        definition.fields.shrink_to_fit();
        let initial = |field: &FieldDefinition| field.name.bytes().next().unwrap_or_default();
        definition.initials = definition.fields.iter().map(initial).collect();
        definition.always_written.shrink_to_fit();
    }
    found
}

fn read_field(package: &str, line: &str) -> FieldDefinition {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let ty = read_type(package, words.next().unwrap_or_default());
    let mut field = FieldDefinition {
        name: name.trim_end_matches('!').into(),
        required: name.ends_with('!'),
        list_type: matches!(ty, FieldType::List(_)).then_some(ListType::Atomic),
        ty,
        list_map_keys: Vec::new(),
        atomic: false,
        granular: false,
        patch_merge_key: None,
        patch_merge: false,
        patch_replace: false,
        patch_retain_keys: false,
        default: None,
        tags: Box::default(),
        embedded: Box::default(),
        pointer: false,
        omit: OmitRule::IfEmpty,
        type_name: None,
        declared_at: None,
    };
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match (key, value) {
            ("e", names) => field.embedded = names.into(),
            ("t", tags) => field.tags = tags.split('.').flat_map(str::parse).collect(),
            ("g", letters) => {
                field.pointer = letters.contains('p');
                if letters.contains('a') {
                    field.omit = OmitRule::Never;
                } else if letters.contains('z') {
                    field.omit = OmitRule::IfZero;
                }
            }
            ("o", at) => field.declared_at = at.parse().ok(),
            ("n", name) => field.type_name = Some(name.into()),
            ("lt", "set") => field.list_type = Some(ListType::Set),
            ("lt", "map") => field.list_type = Some(ListType::Map),
            ("mt", "atomic") => field.atomic = true,
            ("mt", "granular") => field.granular = true,
            ("k", keys) => field.list_map_keys = keys.split(',').map(Into::into).collect(),
            ("mk", key) => field.patch_merge_key = Some(key.into()),
            ("ps", strategies) => {
                let has = |name: &str| strategies.split(',').any(|word| word == name);
                field.patch_merge = has("merge");
                field.patch_replace = has("replace");
                field.patch_retain_keys = has("retainKeys");
            }
            ("d", text) => {
                field.default = Some(match field.ty {
                    FieldType::String | FieldType::Object(_) => text.into(),
                    _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
                });
            }
            _ => {}
        }
    }
    field
}

fn read_type(package: &str, letters: &str) -> FieldType {
    let mut rest = letters.chars();
    match rest.next() {
        Some('y') => FieldType::Bytes,
        Some('i') => FieldType::Int32,
        Some('l') => FieldType::Int64,
        Some('d') => FieldType::Double,
        Some('b') => FieldType::Boolean,
        Some('[') => FieldType::List(Box::new(read_type(package, rest.as_str()))),
        Some('{') => FieldType::Map(Box::new(read_type(package, rest.as_str()))),
        Some('@') if rest.as_str().contains('.') => {
            FieldType::Object(Box::new(TypeReference::new(rest.as_str().to_owned())))
        }
        Some('@') => {
            FieldType::Object(Box::new(TypeReference::new(format!("{package}.{}", rest.as_str()))))
        }
        _ => FieldType::String,
    }
}

pub(super) fn package(name: &str) -> Option<&'static Package> {
    // The directory is in order of names.
    let at = packages().binary_search_by(|package| package.name.cmp(name)).ok()?;
    packages().get(at)
}

/// The definition of this name, with or without the leading `io.k8s.`.
pub fn definition(name: &str) -> Option<&'static TypeDefinition> {
    let name = name.strip_prefix("io.k8s.").unwrap_or(name);
    let package = package(name.rsplit_once('.')?.0)?;
    let definitions = package.definitions();
    let at = definitions.binary_search_by(|definition| (*definition.name).cmp(name)).ok()?;
    definitions.get(at)
}

/// Groups of the built-in API with types but without served kinds.
const UNSERVED: [&str; 6] = [
    "admission.k8s.io",
    "apidiscovery.k8s.io",
    "extensions",
    "imagepolicy.k8s.io",
    "resource.k8s.io",
    "storagemigration.k8s.io",
];

/// The name of the definition of a kind in a built-in group-version, whether or not it exists.
pub fn definition_name(group: &str, version: &str, kind: &str) -> Option<String> {
    let package = match group {
        "" => "api.core",
        "apiregistration.k8s.io" => "kube-aggregator.pkg.apis.apiregistration",
        "apiextensions.k8s.io" => "apiextensions-apiserver.pkg.apis.apiextensions",
        "meta.k8s.io" => "apimachinery.pkg.apis.meta",
        "internal.apiserver.k8s.io" => "api.apiserverinternal",
        other => {
            let is_served = super::kinds().iter().any(|row| row.group == other);
            if !is_served && !UNSERVED.contains(&other) {
                return None;
            }
            let first = other.split('.').next().unwrap_or_default();
            return Some(format!("api.{first}.{version}.{kind}"));
        }
    };
    Some(format!("{package}.{version}.{kind}"))
}

/// The bytes of the whole table, for the hash of OpenAPI documents.
pub(crate) const fn bytes() -> &'static [u8] {
    TABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_that_a_field_refers_to_exists() {
        assert!(packages().len() > 20);
        assert!(packages().is_sorted_by_key(|package| package.name));
        for package in packages() {
            assert!(!package.definitions().is_empty(), "{}", package.name);
            let texts = package.texts.inflate();
            assert_eq!(texts.lines().count(), package.types.inflate().lines().count());
            for definition in package.definitions() {
                assert!(definition.fields.is_sorted_by(|a, b| a.name < b.name));
                for field in &definition.fields {
                    let mut ty = &field.ty;
                    while let Some(element) = ty.element() {
                        ty = element;
                    }
                    if let FieldType::Object(reference) = ty {
                        let found = ty.definition().map(TypeDefinition::name);
                        assert_eq!(found, Some(reference.name()), "{}", definition.name);
                    }
                }
            }
        }
    }

    #[test]
    fn markers_of_the_go_sources_are_in_the_table() {
        let container = definition("io.k8s.api.core.v1.Container").unwrap();
        let ports = container.field("ports").unwrap();
        assert_eq!(ports.patch_merge_key.as_deref(), Some("containerPort"));
        assert_eq!(ports.list_type, Some(ListType::Map));
        assert_eq!(ports.list_map_keys, ["containerPort".into(), "protocol".into()]);
        let port = ports.ty.element().unwrap().definition().unwrap();
        assert_eq!(port.field("protocol").unwrap().default, Some("TCP".into()));
        let spec = definition("api.core.v1.PodSpec").unwrap();
        let volumes = spec.field("volumes").unwrap();
        assert!(volumes.patch_merge && volumes.patch_retain_keys);
        assert!(definition("api.core.v1.SecretKeySelector").unwrap().is_atomic());
    }

    #[test]
    fn declared_fields_have_the_order_of_go() {
        let names = |name: &str| -> Vec<&str> {
            definition(name).unwrap().declared_fields().map(|field| &*field.name).collect()
        };
        let metadata = ["kind", "apiVersion", "metadata", "spec", "status"];
        assert_eq!(names("api.core.v1.Pod"), metadata);
        let rule = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];
        assert_eq!(names("api.rbac.v1.PolicyRule"), rule);
        let owner = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
        assert_eq!(names("apimachinery.pkg.apis.meta.v1.OwnerReference"), owner);
        let csv = "operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersion";
        assert_eq!(names(csv), metadata);
    }

    #[test]
    fn the_table_has_less_than_400_kilobytes() {
        assert!(TABLE.len() < 400_000, "{}", TABLE.len());
    }
}
