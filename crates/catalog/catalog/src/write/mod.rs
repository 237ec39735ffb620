//! Writing of catalogs, byte for byte as upstream writes them.
//!
//! ```text
//! Declared, bundles of folders ─► Rendition ─► (migrate) ─► parts in order ─► form ─► JSON or YAML
//! ```
//!
//! Packages are sorted by name. Each package has its package document, its channels and bundles by
//! name, documents of other schemas by schema, and its deprecations. Documents without a package
//! come last. Documents are written one after the other, so their text is never in memory as a
//! whole.

mod form;

pub(crate) use form::shape;

use crate::{
    CatalogDocuments,
    content::{Blob, BlobError, BlobOrigin},
    decode::Facts,
    problem::BlobName,
};
use mainstay_bundle::DeclaredBundle;
use mainstay_gocompat::json::{Html, JsonWriter, Numbers};
use mainstay_gocompat::sort_slice;
use serde_json::Value;
use std::{collections::BTreeMap, io, sync::Arc};

/// The format of written documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogFormat {
    /// A stream of objects, indented with four blanks for each level.
    Json,
    /// Documents that begin with `---`, with sorted keys.
    Yaml,
}

/// Why a catalog cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The content of a document is damaged, or was not stored.
    #[error(transparent)]
    Content(#[from] BlobError),
    /// YAML cannot express a character. The text is upstream's.
    #[error("yaml: control characters are not allowed")]
    Characters,
    /// The output fails.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Documents to write: those of catalogs, and those of bundle folders.
#[derive(Clone, Debug, Default)]
pub struct Rendition {
    items: Vec<Item>,
}

/// The classes of documents, in the order in which a package writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Package,
    Channel,
    Bundle,
    Other,
    Deprecations,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) class: Class,
    schema: Arc<str>,
    pub(crate) package: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) content: Content,
    /// Whether the document is a bundle with an image and with manifests.
    pub(crate) has_objects: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// The document that was read.
    Read(Blob),
    /// Compact JSON with ordered fields.
    Made(Box<str>),
}

impl Rendition {
    /// The documents of a catalog.
    pub fn of(declared: &CatalogDocuments) -> Self {
        let item = |(blob, facts): (Blob, &Facts)| Item {
            class: match facts {
                Facts::Package(_) => Class::Package,
                Facts::Channel(_) => Class::Channel,
                Facts::Bundle(_) => Class::Bundle,
                Facts::Deprecations(_) => Class::Deprecations,
                Facts::Other => Class::Other,
            },
            has_objects: match facts {
                Facts::Bundle(bundle) => bundle.objects > 0 && !bundle.image.is_empty(),
                _ => false,
            },
            schema: blob.schema().clone(),
            package: blob.package().clone(),
            name: blob.name().clone(),
            content: Content::Read(blob),
        };
        Self { items: declared.documents().map(item).collect() }
    }

    /// Appends the documents of another rendition.
    pub fn append(&mut self, mut other: Self) {
        self.items.append(&mut other.items);
    }

    /// Adds the document of a bundle that was read from a folder.
    pub fn add(&mut self, bundle: &DeclaredBundle) {
        self.items.push(Item {
            class: Class::Bundle,
            schema: "olm.bundle".into(),
            package: bundle.package.as_str().into(),
            name: bundle.name.as_str().into(),
            content: Content::Made(bundle.json().into()),
            // Bundles of folders are migrated when they are declared.
            has_objects: false,
        });
    }

    /// Keeps the documents that `wanted` accepts.
    pub fn retain(&mut self, mut wanted: impl FnMut(&BlobName) -> bool) {
        self.items.retain(|item| wanted(&item.blob_name()));
    }

    /// The names of the documents, and the origins of those that were read, in the order of
    /// writing.
    pub fn names(&self) -> Vec<(BlobName, Option<BlobOrigin>)> {
        let items = self.parts().into_iter().flat_map(|part| part.items);
        let origin = |item: &Item| match &item.content {
            Content::Read(blob) => Some(blob.origin().clone()),
            Content::Made(_) => None,
        };
        items.map(|item| (item.blob_name(), origin(item))).collect()
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(crate) fn items_mut(&mut self) -> &mut [Item] {
        &mut self.items
    }

    /// The documents by package, those without a package last.
    ///
    /// Like upstream, this omits documents of known schemas without a package.
    pub fn parts(&self) -> Vec<PackageDocuments<'_>> {
        let mut packages: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
        let mut rest = Vec::new();
        for item in &self.items {
            if !item.package.is_empty() {
                packages.entry(&item.package).or_default().push(item);
            } else if item.class == Class::Other {
                rest.push(item);
            }
        }
        let mut parts: Vec<PackageDocuments<'_>> = packages
            .into_iter()
            .map(|(package, items)| PackageDocuments { package, items: in_order(items) })
            .collect();
        if !rest.is_empty() {
            parts.push(PackageDocuments { package: "", items: rest });
        }
        parts
    }

    /// Writes all documents.
    ///
    /// # Errors
    /// Those of the output, and the first document that cannot be written. The documents before it
    /// are written.
    pub fn write(&self, format: CatalogFormat, out: &mut dyn io::Write) -> Result<(), WriteError> {
        let mut text = String::new();
        self.parts().iter().try_for_each(|part| part.write_with(&mut text, format, out))
    }
}

/// The documents of a package in the order of writing.
fn in_order(items: Vec<&Item>) -> Vec<&Item> {
    let mut classes: BTreeMap<Class, Vec<&Item>> = BTreeMap::new();
    for item in items {
        classes.entry(item.class).or_default().push(item);
    }
    for (class, items) in &mut classes {
        match class {
            Class::Channel | Class::Bundle => sort_slice(items, |a, b| a.name < b.name),
            Class::Other => items.sort_by(|a, b| a.schema.cmp(&b.schema)),
            Class::Package | Class::Deprecations => {}
        }
    }
    classes.into_values().flatten().collect()
}

/// The documents of one package, or those without a package.
#[derive(Debug)]
pub struct PackageDocuments<'r> {
    package: &'r str,
    items: Vec<&'r Item>,
}

impl PackageDocuments<'_> {
    /// The package; empty for documents without a package.
    pub fn package(&self) -> &str {
        self.package
    }

    /// Writes the documents of this part.
    ///
    /// # Errors
    /// As [`Rendition::write`].
    pub fn write(&self, format: CatalogFormat, out: &mut dyn io::Write) -> Result<(), WriteError> {
        self.write_with(&mut String::new(), format, out)
    }

    fn write_with(
        &self,
        text: &mut String,
        format: CatalogFormat,
        out: &mut dyn io::Write,
    ) -> Result<(), WriteError> {
        for item in &self.items {
            text.clear();
            match format {
                CatalogFormat::Json => item.write_json(text)?,
                CatalogFormat::Yaml => item.write_yaml(text)?,
            }
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

impl Item {
    fn blob_name(&self) -> BlobName {
        let Self { schema, package, name, .. } = self;
        BlobName { schema: schema.clone(), package: package.clone(), name: name.clone() }
    }

    /// The document in the form of its schema.
    fn shaped(&self, blob: &Blob) -> Result<Value, BlobError> {
        Ok(shape(&self.schema, blob.value()?))
    }

    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        let mut writer = JsonWriter::indented(out, Html::Plain, Numbers::Float);
        match &self.content {
            Content::Read(blob) => form::write(&mut writer, &self.schema, &self.shaped(blob)?),
            Content::Made(json) => writer.raw(json),
        }
        out.push('\n');
        Ok(())
    }

    fn write_yaml(&self, out: &mut String) -> Result<(), WriteError> {
        let value = match &self.content {
            Content::Read(blob) => self.shaped(blob)?,
            Content::Made(json) => serde_json::from_str(json).map_err(io::Error::from)?,
        };
        yaml(value, out)
    }

    /// The document as it was read.
    pub(crate) fn value(&self) -> Result<Value, WriteError> {
        Ok(match &self.content {
            Content::Read(blob) => blob.value()?,
            Content::Made(json) => serde_json::from_str(json).map_err(io::Error::from)?,
        })
    }
}

/// Writes a value as a YAML document.
pub(crate) fn yaml(mut value: Value, out: &mut String) -> Result<(), WriteError> {
    form::unsigned_zeros(&mut value);
    if !is_readable(&value) {
        return Err(WriteError::Characters);
    }
    out.push_str("---\n");
    out.push_str(&mainstay_yaml::to_string(&value));
    Ok(())
}

/// Whether upstream can write the value as YAML. Its conversion passes through a text in which some
/// characters are not escaped.
fn is_readable(value: &Value) -> bool {
    let refused = |c: char| {
        matches!(
            c,
            '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    let fine = |text: &str| text.bytes().all(|byte| byte < 0x7f) || !text.contains(refused);
    match value {
        Value::String(text) => fine(text),
        Value::Array(items) => items.iter().all(is_readable),
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| fine(name) && is_readable(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}
