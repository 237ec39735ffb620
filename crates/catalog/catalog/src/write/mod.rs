//! Catalogs as upstream writes them, byte for byte.
//!
//! ```text
//! Declared, bundles of folders ─► Rendition ─► (migrate) ─► parts in order ─► form ─► JSON or YAML
//! ```
//!
//! The order is that of packages by name; of each the documents of the package, of its channels and
//! bundles by name, those of other schemas by schema, its deprecations; then what belongs to no
//! package. Documents are written one after the other and never held as text all together.

mod form;

pub(crate) use form::shape;

use crate::{
    Declared,
    content::{Blob, ContentError, Origin},
    decode::Facts,
    problem::BlobName,
};
use mainstay_bundle::DeclaredBundle;
use mainstay_gocompat::json::{Html, JsonWriter, Numbers};
use mainstay_gocompat::sort_slice;
use serde_json::Value;
use std::{collections::BTreeMap, io, sync::Arc};

/// How documents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A stream of objects, laid out with four blanks for each level.
    Json,
    /// Documents that begin with `---`, keys sorted.
    Yaml,
}

/// Why a catalog could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What was kept of a document is not whole, or was not kept.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// YAML has no way to write a character, in upstream's words.
    #[error("yaml: control characters are not allowed")]
    Characters,
    /// The destination refuses it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Documents to be written: those of catalogs, and those that were made of bundle folders.
#[derive(Clone, Debug, Default)]
pub struct Rendition {
    items: Vec<Item>,
}

/// The kinds of documents, in the order in which those of a package are written.
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
    /// A bundle with an image and with manifests.
    pub(crate) has_objects: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// As it was read.
    Read(Blob),
    /// A compact JSON text, fields in their order.
    Made(Box<str>),
}

impl Rendition {
    /// The documents of a catalog.
    pub fn of(declared: &Declared) -> Self {
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

    /// Takes over the documents of another one, behind those that are here already.
    pub fn append(&mut self, mut other: Self) {
        self.items.append(&mut other.items);
    }

    /// Takes the document of a bundle that was read from a folder.
    pub fn add(&mut self, bundle: &DeclaredBundle) {
        self.items.push(Item {
            class: Class::Bundle,
            schema: "olm.bundle".into(),
            package: bundle.package.as_str().into(),
            name: bundle.name.as_str().into(),
            content: Content::Made(bundle.json().into()),
            // Folders migrate while they are declared.
            has_objects: false,
        });
    }

    /// Leaves out the documents that `wanted` does not want.
    pub fn retain(&mut self, mut wanted: impl FnMut(&BlobName) -> bool) {
        self.items.retain(|item| wanted(&item.called()));
    }

    /// What the documents are called and where those stand that were read, in the order in which
    /// they are written.
    pub fn names(&self) -> Vec<(BlobName, Option<Origin>)> {
        let items = self.parts().into_iter().flat_map(|part| part.items);
        let origin = |item: &Item| match &item.content {
            Content::Read(blob) => Some(blob.origin().clone()),
            Content::Made(_) => None,
        };
        items.map(|item| (item.called(), origin(item))).collect()
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(crate) fn items_mut(&mut self) -> &mut [Item] {
        &mut self.items
    }

    /// The documents package by package, those without a package last.
    ///
    /// Known schemas without a package are left out, as upstream leaves them out.
    pub fn parts(&self) -> Vec<Part<'_>> {
        let mut packages: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
        let mut rest = Vec::new();
        for item in &self.items {
            if !item.package.is_empty() {
                packages.entry(&item.package).or_default().push(item);
            } else if item.class == Class::Other {
                rest.push(item);
            }
        }
        let mut parts: Vec<Part<'_>> = packages
            .into_iter()
            .map(|(package, items)| Part { package, items: in_order(items) })
            .collect();
        if !rest.is_empty() {
            parts.push(Part { package: "", items: rest });
        }
        parts
    }

    /// Writes all documents.
    ///
    /// # Errors
    /// Those of the destination, and the first document that cannot be written; what stands before
    /// it is written.
    pub fn write(&self, format: Format, out: &mut dyn io::Write) -> Result<(), WriteError> {
        let mut text = String::new();
        self.parts().iter().try_for_each(|part| part.write_with(&mut text, format, out))
    }
}

/// The documents of a package in the order in which they are written.
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

/// The documents of one package, or those of none.
#[derive(Debug)]
pub struct Part<'r> {
    package: &'r str,
    items: Vec<&'r Item>,
}

impl Part<'_> {
    /// The package; empty for what belongs to none.
    pub fn package(&self) -> &str {
        self.package
    }

    /// Writes the documents of this part.
    ///
    /// # Errors
    /// As [`Rendition::write`].
    pub fn write(&self, format: Format, out: &mut dyn io::Write) -> Result<(), WriteError> {
        self.write_with(&mut String::new(), format, out)
    }

    fn write_with(
        &self,
        text: &mut String,
        format: Format,
        out: &mut dyn io::Write,
    ) -> Result<(), WriteError> {
        for item in &self.items {
            text.clear();
            match format {
                Format::Json => item.write_json(text)?,
                Format::Yaml => item.write_yaml(text)?,
            }
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

impl Item {
    fn called(&self) -> BlobName {
        let Self { schema, package, name, .. } = self;
        BlobName { schema: schema.clone(), package: package.clone(), name: name.clone() }
    }

    /// The document in its form.
    fn shaped(&self, blob: &Blob) -> Result<Value, ContentError> {
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

    /// The document as it is.
    pub(crate) fn value(&self) -> Result<Value, WriteError> {
        Ok(match &self.content {
            Content::Read(blob) => blob.value()?,
            Content::Made(json) => serde_json::from_str(json).map_err(io::Error::from)?,
        })
    }
}

/// Writes a value as a document of YAML.
pub(crate) fn yaml(mut value: Value, out: &mut String) -> Result<(), WriteError> {
    form::unsigned_zeros(&mut value);
    if !is_readable(&value) {
        return Err(WriteError::Characters);
    }
    out.push_str("---\n");
    out.push_str(&mainstay_yaml::to_string(&value));
    Ok(())
}

/// Whether upstream can read the value back on its way to YAML, where it passes through a text in
/// which some characters stand as they are.
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
