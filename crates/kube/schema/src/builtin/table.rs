//! The generated table of types, `table.bin`, which `cargo xtask schema` writes.
//!
//! The file begins with a directory, one line for each Go package of types: name, packed and plain
//! length of its types, packed and plain length of its texts. An empty line ends it; the deflated
//! parts follow in the directory's order.
//!
//! The types of a package are lines too. `=Pod` begins a definition, with a letter behind it when
//! its JSON form is not an object with known fields, and `atomic` when server-side apply takes the
//! whole as one value. Then follows one line for each field in order of names: name (with `!` when
//! required), type, options. Types are letters: `s`tring, b`y`tes, `i`nt32, int6`4` as `l`,
//! `d`ouble, `b`oolean, `[` and `{` for list and map of what follows, `@Name` for a definition.
//! Options: `t` tags on the wire with dots between, `e` the types it is embedded in, `g` Go's form (`p`ointer, `a`lways written,
//! left out when `z`ero), `n` Go's name of a type, `lt` list type, `k` list map keys, `mt` map type,
//! `mk` patch merge key, `ps` patch strategies, `d` default, `o` position in the order of declaration of
//! a type whose fields are not declared in the order of their tags.
//!
//! The texts of a package are one line for each definition and field, in the same order; empty ones
//! for what no document shows (alpha and beta versions). Behind the description, after a tab, may
//! stand a JSON merge patch for what documents say of it and nothing else needs: enumerations, unions.

use crate::protobuf::Layout;
use flate2::read::DeflateDecoder;
use serde_json::Value;
use std::io::Read;
use std::sync::OnceLock;

static TABLE: &[u8] = include_bytes!("table.bin");

/// A type of the built-in API.
#[derive(Debug)]
pub struct Definition {
    name: Box<str>,
    shape: Shape,
    atomic: bool,
    fields: Vec<Field>,
    /// The first letter of each field.
    initials: Vec<u8>,
    /// Positions of the fields that are written even if they are empty.
    written: Vec<u16>,
    /// Positions of the fields in the order of their declaration. Made when somebody asks.
    declared: OnceLock<Box<[u16]>>,
    /// Line of its description in the texts of its package.
    pub(super) line: usize,
    /// Made when the first message of the type is written.
    layout: OnceLock<Layout>,
}

/// What a [`Definition`] looks like in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An object with the fields of [`Definition::fields`].
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
    /// A text that its Go type parses itself: versions and releases of operators.
    ParsedText,
}

/// A field of a [`Definition`].
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent markers of the Go sources")]
pub struct Field {
    /// JSON name.
    pub name: Box<str>,
    /// Type of the value.
    pub ty: Type,
    /// Whether the API's documents call it required.
    pub required: bool,
    /// How server-side apply sees a list; none when the value is no list.
    pub list_type: Option<ListType>,
    /// Keys of the elements of a list that is a map.
    pub list_map_keys: Vec<Box<str>>,
    /// Whether server-side apply takes the whole object as one value.
    pub atomic: bool,
    /// Whether server-side apply takes the fields of the object one by one, although its type is
    /// one value elsewhere.
    pub granular: bool,
    /// Key by which strategic merge patch knows elements; none for lists of scalars.
    pub patch_merge_key: Option<Box<str>>,
    /// Whether strategic merge patch merges the list instead of replacing it.
    pub patch_merge: bool,
    /// Whether strategic merge patch replaces an object instead of merging it.
    pub patch_replace: bool,
    /// Whether strategic merge patch understands `$retainKeys` in the value
    /// (`patchStrategy: retainKeys`).
    pub patch_retain_keys: bool,
    /// What the server fills in.
    pub default: Option<Value>,
    /// Where it stands in a protobuf message: its tag, behind the tags of the messages in which it is
    /// embedded. Empty for `apiVersion` and `kind`, which stand in the envelope.
    pub tags: Box<[u32]>,
    /// Go's names of the types in which it is embedded, with dots between; usually empty.
    pub embedded: Box<str>,
    /// Whether Go holds a pointer, for which absent and zero are two things.
    pub pointer: bool,
    /// When an object that Go writes has the field.
    pub written: Written,
    /// Go's name of the type where it is no plain one; of a list or a map the name of what it holds,
    /// or with `*` before it that of the whole. Without a package it is in the owner's.
    pub type_name: Option<Box<str>>,
    /// Position in the order of declaration, where that is not the order of the tags.
    declared_at: Option<u16>,
}

/// When Go writes a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Always, empty or not.
    Always,
    /// Unless it is a scalar that is zero, an absent pointer or an empty list or map (`omitempty`).
    /// An empty struct is written.
    UnlessEmpty,
    /// Unless it is zero, structs too (`omitzero`).
    UnlessZero,
}

impl Field {
    /// Whether the field is there even when nothing is in it.
    fn is_always_there(&self) -> bool {
        let whole = !self.pointer && matches!(self.ty, Type::Object(_));
        self.written == Written::Always || (whole && self.written == Written::UnlessEmpty)
    }
}

/// Type of a value.
#[derive(Debug)]
pub enum Type {
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
    /// Another definition.
    Object(Box<Reference>),
}

/// The name of a definition, which is looked up once.
#[derive(Debug)]
pub struct Reference {
    name: Box<str>,
    found: OnceLock<&'static Definition>,
}

impl Reference {
    fn new(name: String) -> Self {
        Self { name: name.into(), found: OnceLock::new() }
    }

    /// The name of the definition.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition.
    pub fn definition(&self) -> Option<&'static Definition> {
        if let Some(found) = self.found.get() {
            return Some(found);
        }
        let found = definition(&self.name)?;
        Some(self.found.get_or_init(|| found))
    }
}

/// `x-kubernetes-list-type`: how server-side apply sees a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One value.
    Atomic,
    /// A set of scalars.
    Set,
    /// A map: elements are known by [`Field::list_map_keys`].
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

impl Definition {
    /// The name in OpenAPI documents without the leading `io.k8s.`, such as `api.core.v1.Pod`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last part of the name, such as `Pod`.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// What values look like.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// What a type that parses itself ([`Shape::ParsedText`]) writes where nothing was read.
    pub fn text_of_none(&self) -> &'static str {
        if self.short_name() == "OperatorVersion" { "0.0.0" } else { "" }
    }

    /// Whether server-side apply takes the whole object as one value.
    pub const fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// The fields, in order of their names.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The fields in the order in which Go declares, and so writes, them.
    pub fn declared_fields(&self) -> impl Iterator<Item = &Field> {
        let declared = self.declared.get_or_init(|| {
            let mut positions: Vec<u16> = (0..).take(self.fields.len()).collect();
            // `kind` and `apiVersion` have no tags and stand first.
            positions.sort_by_key(|at| {
                let field = &self.fields[usize::from(*at)];
                (field.declared_at, &field.tags, &*field.name == "apiVersion")
            });
            positions.into()
        });
        declared.iter().filter_map(|at| self.fields.get(usize::from(*at)))
    }

    /// The fields that are there even when nothing is in them: what Go writes always, and structs
    /// that are no pointers.
    pub(crate) fn always_there(&self) -> impl Iterator<Item = &Field> {
        self.written.iter().filter_map(|at| self.fields.get(usize::from(*at)))
    }

    /// The field of this JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.position(name).map(|at| &self.fields[at])
    }

    /// The position of the field of this JSON name in [`Definition::fields`].
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        // Few fields begin with the same letter, and they stand together.
        let initial = name.bytes().next()?;
        let first = memchr::memchr(initial, &self.initials)?;
        let same = self.initials[first..].iter().take_while(|other| **other == initial).count();
        let found = self.fields[first..][..same].iter().position(|field| *field.name == *name)?;
        Some(first + found)
    }

    /// The form of its protobuf messages.
    pub(crate) fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| Layout::of(self))
    }
}

impl Type {
    /// The definition, when the value is one.
    pub fn definition(&self) -> Option<&'static Definition> {
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

/// A part of the table.
#[derive(Debug)]
pub(super) struct Package {
    name: &'static str,
    types: Packed,
    pub(super) texts: Packed,
    definitions: OnceLock<Vec<Definition>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    bytes: &'static [u8],
    length: usize,
}

impl Packed {
    pub(super) fn inflate(self) -> String {
        let mut text = String::with_capacity(self.length);
        // A table that cannot be read is a table without types; a test holds that it can.
        if DeflateDecoder::new(self.bytes).read_to_string(&mut text).is_err() {
            text.clear();
        }
        text
    }
}

impl Package {
    fn definitions(&self) -> &[Definition] {
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
            let (packed, length) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let (bytes, behind) = rest.split_at_checked(packed)?;
            rest = behind;
            Some(Packed { bytes, length })
        };
        found.push(Package { name, types: part()?, texts: part()?, definitions: OnceLock::new() });
    }
    Some(found)
}

fn read_types(package: &str, text: &str) -> Vec<Definition> {
    let mut found: Vec<Definition> = Vec::new();
    for (line, content) in text.lines().enumerate() {
        if let Some(head) = content.strip_prefix('=') {
            let mut words = head.split(' ');
            let mut definition = Definition {
                name: format!("{package}.{}", words.next().unwrap_or_default()).into(),
                shape: Shape::Object,
                atomic: false,
                fields: Vec::new(),
                initials: Vec::new(),
                written: Vec::new(),
                declared: OnceLock::new(),
                line,
                layout: OnceLock::new(),
            };
            for word in words {
                match word {
                    "t" => definition.shape = Shape::Time,
                    "u" => definition.shape = Shape::MicroTime,
                    "x" => definition.shape = Shape::IntOrString,
                    "q" => definition.shape = Shape::Quantity,
                    "s" => definition.shape = Shape::ParsedText,
                    "o" => definition.shape = Shape::FreeObject,
                    "a" => definition.shape = Shape::Any,
                    "atomic" => definition.atomic = true,
                    _ => {}
                }
            }
            found.push(definition);
        } else if let Some(definition) = found.last_mut() {
            let field = read_field(package, content);
            if field.is_always_there() {
                definition.written.extend(u16::try_from(definition.fields.len()));
            }
            definition.fields.push(field);
        }
    }
    for definition in &mut found {
        definition.fields.shrink_to_fit();
        let initial = |field: &Field| field.name.bytes().next().unwrap_or_default();
        definition.initials = definition.fields.iter().map(initial).collect();
        definition.written.shrink_to_fit();
    }
    found
}

fn read_field(package: &str, line: &str) -> Field {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let ty = read_type(package, words.next().unwrap_or_default());
    let mut field = Field {
        name: name.trim_end_matches('!').into(),
        required: name.ends_with('!'),
        list_type: matches!(ty, Type::List(_)).then_some(ListType::Atomic),
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
        written: Written::UnlessEmpty,
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
                    field.written = Written::Always;
                } else if letters.contains('z') {
                    field.written = Written::UnlessZero;
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
                    Type::String | Type::Object(_) => text.into(),
                    _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
                });
            }
            _ => {}
        }
    }
    field
}

fn read_type(package: &str, letters: &str) -> Type {
    let mut rest = letters.chars();
    match rest.next() {
        Some('y') => Type::Bytes,
        Some('i') => Type::Int32,
        Some('l') => Type::Int64,
        Some('d') => Type::Double,
        Some('b') => Type::Boolean,
        Some('[') => Type::List(Box::new(read_type(package, rest.as_str()))),
        Some('{') => Type::Map(Box::new(read_type(package, rest.as_str()))),
        Some('@') if rest.as_str().contains('.') => {
            Type::Object(Box::new(Reference::new(rest.as_str().to_owned())))
        }
        Some('@') => Type::Object(Box::new(Reference::new(format!("{package}.{}", rest.as_str())))),
        _ => Type::String,
    }
}

pub(super) fn package(name: &str) -> Option<&'static Package> {
    // The directory is in order of names.
    let at = packages().binary_search_by(|package| package.name.cmp(name)).ok()?;
    packages().get(at)
}

/// The definition of this name, with or without the leading `io.k8s.`.
pub fn definition(name: &str) -> Option<&'static Definition> {
    let name = name.strip_prefix("io.k8s.").unwrap_or(name);
    let package = package(name.rsplit_once('.')?.0)?;
    let definitions = package.definitions();
    let at = definitions.binary_search_by(|definition| (*definition.name).cmp(name)).ok()?;
    definitions.get(at)
}

/// Groups of the built-in API that have types and serve none of them.
const UNSERVED: [&str; 6] = [
    "admission.k8s.io",
    "apidiscovery.k8s.io",
    "extensions",
    "imagepolicy.k8s.io",
    "resource.k8s.io",
    "storagemigration.k8s.io",
];

/// The name of the definition of a kind in a built-in group-version, whether or not there is one.
pub fn definition_name(group: &str, version: &str, kind: &str) -> Option<String> {
    let package = match group {
        "" => "api.core",
        "apiregistration.k8s.io" => "kube-aggregator.pkg.apis.apiregistration",
        "apiextensions.k8s.io" => "apiextensions-apiserver.pkg.apis.apiextensions",
        "meta.k8s.io" => "apimachinery.pkg.apis.meta",
        "internal.apiserver.k8s.io" => "api.apiserverinternal",
        other => {
            let known = super::kinds().iter().any(|row| row.group == other);
            if !known && !UNSERVED.contains(&other) {
                return None;
            }
            let first = other.split('.').next().unwrap_or_default();
            return Some(format!("api.{first}.{version}.{kind}"));
        }
    };
    Some(format!("{package}.{version}.{kind}"))
}

/// The whole table as bytes: what documents of built-in kinds are made of.
pub(crate) const fn bytes() -> &'static [u8] {
    TABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_that_a_field_names_exists() {
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
                    if let Type::Object(reference) = ty {
                        let found = ty.definition().map(Definition::name);
                        assert_eq!(found, Some(reference.name()), "{}", definition.name);
                    }
                }
            }
        }
    }

    #[test]
    fn markers_of_the_go_sources_arrive() {
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
    fn fields_are_declared_in_the_order_of_go() {
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
    fn the_table_is_small() {
        assert!(TABLE.len() < 400_000, "{}", TABLE.len());
    }
}
