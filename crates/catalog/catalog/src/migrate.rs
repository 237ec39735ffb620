//! Migrations: conversions of catalogs from older forms to newer ones, as upstream offers them.
//!
//! There is one: `olm.csv.metadata`, the metadata that clients show, replaces the manifests inside
//! bundles (`olm.bundle.object`).

use crate::{
    content::Blob,
    model::{BUNDLE_OBJECT, CSV_METADATA},
    write::{Content, Rendition, WriteError, shape},
};
use mainstay_bundle::{DeclaredBundle, DeclaredProperty, RelatedImage, TypeError, csv_metadata};
use mainstay_gocompat::decode_base64;
use mainstay_gocompat::json::{Html, Numbers};
use mainstay_gocompat::quote;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// The target of a migration: this level, after all levels before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MigrationLevel {
    /// No migration.
    None,
    /// `olm.bundle.object` becomes `olm.csv.metadata`.
    CsvMetadata,
}

impl MigrationLevel {
    /// All levels in order.
    pub const ALL: [Self; 2] = [Self::None, Self::CsvMetadata];

    /// The last level.
    pub const LAST: Self = Self::CsvMetadata;

    /// The name of the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::CsvMetadata => "bundle-object-to-csv-metadata",
        }
    }

    /// Parses the name of a level; `all` is the last one.
    ///
    /// # Errors
    /// If no level has the name.
    pub fn parse(name: &str) -> Result<Self, UnknownMigrationLevel> {
        if name == "all" {
            return Ok(Self::LAST);
        }
        Self::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .ok_or_else(|| UnknownMigrationLevel { name: name.to_owned() })
    }
}

/// No migration level has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown migration level {}", quote(name))]
pub struct UnknownMigrationLevel {
    /// The name.
    pub name: String,
}

/// Why documents cannot be migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A ClusterServiceVersion does not have the shape of its type.
    #[error(transparent)]
    Csv(#[from] TypeError),
    /// A document cannot be read back.
    #[error(transparent)]
    Content(#[from] WriteError),
}

impl Rendition {
    /// Migrates the documents.
    ///
    /// # Errors
    /// The first bundle that cannot be migrated. Bundles before it stay migrated.
    pub fn migrate(&mut self, level: MigrationLevel) -> Result<(), MigrateError> {
        if level < MigrationLevel::CsvMetadata {
            return Ok(());
        }
        for item in self.items_mut().iter_mut().filter(|item| item.has_objects) {
            let Content::Read(blob) = &item.content else { continue };
            if let Some(bundle) = remove_manifests(blob)? {
                item.content = Content::Made(bundle.json().into());
                item.has_objects = false;
            }
        }
        Ok(())
    }
}

/// The bundle without its manifests; `None` if it needs no migration.
fn remove_manifests(blob: &Blob) -> Result<Option<DeclaredBundle>, MigrateError> {
    let document = blob.value().map_err(WriteError::from)?;
    let bundle = shape("olm.bundle", document);
    let list = |name: &str| bundle[name].as_array().map_or(&[][..], Vec::as_slice);
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let properties = list("properties");
    let is = |property: &Value, kind: &str| property["type"] == kind;
    let mut objects = properties.iter().filter(|property| is(property, BUNDLE_OBJECT));
    let Some(csv) = objects.find_map(|property| find_csv(&property["value"])) else {
        return Ok(None);
    };
    let value = csv_metadata(&csv)?;
    if properties.iter().any(|property| is(property, CSV_METADATA)) {
        return Ok(None);
    }
    let stored = properties.iter().filter(|property| !is(property, BUNDLE_OBJECT));
    let stored = stored.map(|property| DeclaredProperty {
        kind: text(property, "type"),
        value: mainstay_gocompat::json::value(&property["value"], Html::Plain, Numbers::Float),
    });
    let metadata = DeclaredProperty { kind: CSV_METADATA.to_owned(), value };
    let image =
        |image: &Value| RelatedImage { name: text(image, "name"), image: text(image, "image") };
    Ok(Some(DeclaredBundle {
        name: text(&bundle, "name"),
        package: text(&bundle, "package"),
        image: text(&bundle, "image"),
        properties: stored.chain([metadata]).collect(),
        related_images: list("relatedImages").iter().map(image).collect(),
    }))
}

/// The ClusterServiceVersion in a property's value, if it holds one.
pub(crate) fn find_csv(value: &Value) -> Option<Value> {
    #[derive(Deserialize)]
    struct Head<'h> {
        #[serde(borrow)]
        kind: Option<Cow<'h, str>>,
    }
    const KIND: &str = "ClusterServiceVersion";
    let bytes = decode_base64(crate::case_fold::get(value, "data")?.as_str()?).ok()?;
    // Parsing JSON is faster than YAML, and most manifests are of other kinds.
    if let Ok(head) = serde_json::from_slice::<Head<'_>>(&bytes) {
        let found = head.kind? == KIND && !is_json_only(&bytes);
        return found.then(|| serde_json::from_slice(&bytes).ok())?;
    }
    let mut documents = mainstay_yaml::documents(&bytes, &mainstay_yaml::Options::default());
    let manifest = documents.next()?.ok()?.value;
    (manifest["kind"] == KIND).then_some(manifest)
}

/// Whether a JSON text is not valid YAML, because of characters that YAML escapes differently or
/// forbids. Upstream looks for the ClusterServiceVersion with a YAML parser, and does not find it
/// then.
fn is_json_only(json: &[u8]) -> bool {
    let suspicious =
        json.windows(3).any(|three| three[..2] == *b"\\u" && matches!(three[2], b'd' | b'D'))
            || json.iter().any(|&byte| byte >= 0x7f);
    suspicious && mainstay_yaml::libyaml::find_error(json).is_some()
}
