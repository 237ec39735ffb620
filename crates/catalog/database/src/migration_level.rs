//! Migration levels of the database schema: how the tables of each level are read.
//!
//! | Level | |
//! |---|---|
//! | none, 0 – 3 | cannot be migrated unless they are empty |
//! | 4 | bundles have no versions, and upstream does not derive them |
//! | 5 | APIs belong to entries of channels |
//! | 6, 7 | APIs belong to bundles |
//! | 8 | dependencies have a table |
//! | 9 | properties have a table |
//! | 10 – 13 | no change in the tables that this crate reads |
//!
//! Levels above 13 are read as 13, as upstream does. The source is `upstream-opm.md` §3.5.

use crate::{
    error::DatabaseError,
    rows::{Cell, DatabaseReader},
};
use mainstay_gocompat::json::quoted;
use std::collections::BTreeMap;

/// The columns of a bundle without its manifests.
pub(crate) struct BundleRow {
    /// The image reference; NULL if the manifests are only in the database.
    pub(crate) image: Option<String>,
    /// The version.
    pub(crate) version: Option<String>,
    /// The range of versions that it skips.
    pub(crate) skip_range: String,
}

/// Types and values, as texts, by bundle name.
pub(crate) type PairsByBundle = BTreeMap<String, Vec<(String, String)>>;

/// The tables of a database, read by its migration level.
pub(crate) struct Tables<'r> {
    reader: &'r DatabaseReader,
    level: i64,
}

impl<'r> Tables<'r> {
    /// Reads the migration level. `None` for an old, empty database.
    pub(crate) fn open(reader: &'r DatabaseReader) -> Result<Option<Self>, DatabaseError> {
        let mut level = -1;
        if reader.has("schema_migrations")? {
            let mut first = None;
            reader.for_each_row(
                "SELECT version FROM schema_migrations LIMIT 1",
                &[],
                |[version]| {
                    first = Some(version);
                    Ok(())
                },
            )?;
            let number = |version: Cell| version.and_then(|version| version.parse().ok());
            if let Some(version) = first {
                let content_error =
                    || reader.content_error("schema_migrations: the version is no number");
                level = number(version).ok_or_else(content_error)?;
            }
        }
        if level >= 4 {
            return Ok(Some(Self { reader, level }));
        }
        let mut rows = 0;
        for table in ["package", "channel"] {
            if reader.has(table)? {
                let query = format!("SELECT 1 FROM \"{table}\" LIMIT 1");
                reader.for_each_row(&query, &[], |[_]| {
                    rows += 1;
                    Ok(())
                })?;
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        Err(DatabaseError::Outdated { file: reader.file().to_owned(), level })
    }

    /// The bundles by name.
    pub(crate) fn bundles(&self) -> Result<BTreeMap<String, BundleRow>, DatabaseError> {
        let query = if self.level >= 5 {
            "SELECT name, bundlepath, version, skiprange FROM operatorbundle"
        } else {
            "SELECT name, bundlepath, NULL, NULL FROM operatorbundle"
        };
        let mut found = BTreeMap::new();
        self.reader.for_each_row(query, &[], |[name, image, version, skip_range]| {
            if let Some(name) = name {
                let skip_range = skip_range.unwrap_or_default();
                found.insert(name, BundleRow { image, version, skip_range });
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The properties of bundles.
    pub(crate) fn properties(&self) -> Result<PairsByBundle, DatabaseError> {
        if self.level >= 9 { self.pairs("properties") } else { self.api_pairs("api_provider") }
    }

    /// The dependencies of bundles.
    pub(crate) fn dependencies(&self) -> Result<PairsByBundle, DatabaseError> {
        if self.level >= 8 { self.pairs("dependencies") } else { self.api_pairs("api_requirer") }
    }

    /// The related images by bundle name.
    pub(crate) fn images(&self) -> Result<BTreeMap<String, Vec<String>>, DatabaseError> {
        let query = "SELECT image, operatorbundle_name FROM related_image";
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        self.reader.for_each_row(query, &[], |[image, bundle]| {
            if let (Some(image), Some(bundle)) = (image, bundle) {
                found.entry(bundle).or_default().push(image);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// A table of types and values.
    fn pairs(&self, table: &str) -> Result<PairsByBundle, DatabaseError> {
        let query = format!("SELECT operatorbundle_name, type, value FROM {table}");
        let mut found = PairsByBundle::new();
        self.reader.for_each_row(&query, &[], |[bundle, kind, value]| {
            let Some(bundle) = bundle else { return Ok(()) };
            let pair = (kind.unwrap_or_default(), value.unwrap_or_default());
            found.entry(bundle).or_default().push(pair);
            Ok(())
        })?;
        Ok(found)
    }

    /// The `olm.gvk` pairs that later levels derive from the tables of APIs.
    fn api_pairs(&self, table: &str) -> Result<PairsByBundle, DatabaseError> {
        let query = if self.level >= 6 {
            format!("SELECT operatorbundle_name, group_name, version, kind FROM {table}")
        } else {
            format!(
                "SELECT entry.operatorbundle_name, api.group_name, api.version, api.kind \
                 FROM {table} AS api \
                 JOIN channel_entry AS entry ON entry.entry_id = api.channel_entry_id"
            )
        };
        let mut found = PairsByBundle::new();
        self.reader.for_each_row(&query, &[], |[bundle, group, version, kind]| {
            let (Some(bundle), Some(group), Some(version), Some(kind)) =
                (bundle, group, version, kind)
            else {
                return Ok(());
            };
            let value = gvk(&group, &kind, &version);
            found.entry(bundle).or_default().push(("olm.gvk".to_owned(), value));
            Ok(())
        })?;
        Ok(found)
    }
}

/// The value of an `olm.gvk` property.
pub(crate) fn gvk(group: &str, kind: &str, version: &str) -> String {
    let (group, kind, version) = (quoted(group), quoted(kind), quoted(version));
    format!("{{\"group\":{group},\"kind\":{kind},\"version\":{version}}}")
}
